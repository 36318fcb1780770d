"""metron's hypothesis with two memories: a steady head and a tracker on one active set."""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.expansion import EXACT, exact_zeros
from ahpatron_cli.core.judging import hinge_steps
from ahpatron_cli.core.metric_expansion import MetricExpansion
from ahpatron_cli.core.numerics import CANCELLED, blend, cancelled, ddot
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.second_order import ForgettingHead, Head, Products
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.core.symmetric import Symmetric
from ahpatron_cli.core.tally import mistaken

CLIP = 1.5
"""Values of the heads are clipped to this before they are mixed."""
RATE = 0.5
HANDICAP = 2.0
FIRST_HANDICAP = 4.0
"""The weight of the tracker is 1/(1 + exp(RATE·(its mistakes + HANDICAP - the other's))).

Before the first alarm, FIRST_HANDICAP stands for HANDICAP."""
DISCOUNT = 1.0 - 1.0 / 200.0
"""Factor of earlier mistakes in each round."""
LEAST_CHANGE = 0.05
"""The metric stays as it is if its weights would change by less (`Weighting.change_from`)."""


class Experience:
    """Mixin of the two heads: how well each head predicts by itself.

    Attributes
    ----------
    value : float or array of shape (k,)
        Value at the current example, before its label is known.
    margin : float
        Margin of this value; with k classes half of `f_y - max_{c≠y} f_c`.
    step : float or array of shape (k,)
        Hinge loss times ±1; valid if the margin is below 1.
    mistake : bool
        Whether the prediction of this head is wrong.
    loss, rounds : float, int
        Sum of squared hinge losses and number of rounds, with one round of loss 1 at first.
    mistakes : float
        Discounted number of mistakes, M_i.
    learned : int
        Number of rounds that have changed the head; of the steady head since the last alarm.
    """

    experienced: ClassVar[Any] = {
        "loss": float,
        "rounds": int,
        "mistakes": float,
        "learned": int,
    }
    loss = 1.0
    rounds = 1
    mistakes = 0.0
    learned = 0
    value: Any
    margin: float
    step: Any
    mistake: bool

    def judge(self, y: float) -> None:
        """Compare the value with the label y = ±1."""
        margin = y * self.value
        self.margin = margin
        self.rounds += 1
        self.mistakes *= DISCOUNT
        self.mistake = False
        if margin < 1.0:
            step = y - self.value  # (1 - margin)·y
            self.step = step
            self.loss += step * step
            if mistaken(y, margin):
                self.mistake = True
                self.mistakes += 1.0

    def judge_classes(self, true: int, step: Floats) -> None:
        """Compare the values with the label `true` of k classes; `step` are `hinge_steps`."""
        values = self.value.tolist()
        size = max(max(values), -min(values))
        slack = CANCELLED * size
        own = values[true]
        values[true] = -math.inf
        best = max(values)
        margin = own - best
        mistake = margin < 0.0
        if abs(margin) <= slack:  # a tie up to rounding: the first of them is predicted
            margin = 0.0
            tied = best - slack
            mistake = any(value >= tied for value in values[:true])
        self.margin = margin / 2.0
        self.step = step
        self.mistake = mistake
        self.rounds += 1
        squares = float(ddot(step, step))
        self.loss += squares / len(step)
        self.mistakes *= DISCOUNT
        if mistake:
            self.mistakes += 1.0


class Steady(Experience, Head):
    """The head that never forgets; an alarm of the learner resets it."""

    state_fields: ClassVar[Any] = {**Head.state_fields, **Experience.experienced}

    def reset(self, prior: Symmetric) -> None:
        """Start again: a = 0 and C = Q; only the discounted mistakes stay. Between two blocks."""
        self.a = np.zeros_like(self.a)
        self.C = Symmetric(prior.A.copy(order="F"))
        self.loss = 1.0
        self.rounds = 1
        self.learned = 0


class Tracker(Experience, ForgettingHead):
    """The head that forgets all the time, and so follows a concept that moves.

    Attributes
    ----------
    handicap : float
        Mistakes that it is charged when it is compared with the steady head.
    """

    state_fields: ClassVar[Any] = {
        **Head.state_fields,
        **Experience.experienced,
        "handicap": float,
    }
    handicap = FIRST_HANDICAP

    def lag(self, steady: Steady) -> float:
        """By how many mistakes it is behind the steady head, with its handicap."""
        return self.mistakes + self.handicap - steady.mistakes

    def weight_against(self, steady: Steady) -> float:
        """w, its weight in the mixture."""
        odds_against = math.exp(RATE * self.lag(steady))
        return 1.0 / (1.0 + odds_against)


class MixedValues:
    """Values F of the mixture at the rounds of the open block, read one by one."""

    def __init__(self, steady: Steady, tracker: Tracker) -> None:
        self._steady = steady
        self._tracker = tracker

    def __getitem__(self, t: int) -> float:
        """F of round t, and the values of both heads; exactly 0 if they cancel up to rounding."""
        steady = self._steady
        tracker = self._tracker
        first = steady.g.item(t)
        if -steady.rounding <= first <= steady.rounding:
            first = steady.exact_value(t)
        second = tracker.g.item(t)
        if -tracker.rounding <= second <= tracker.rounding:
            second = tracker.exact_value(t)
        steady.value = first
        tracker.value = second
        w = tracker.weight_against(steady)
        first = (1.0 - w) * _clipped(first)
        second = w * _clipped(second)
        mixed = first + second
        if first * second < 0.0 and cancelled(mixed, abs(first)):
            return 0.0
        return mixed


def _clipped(value: float) -> float:
    """The value, or ±`CLIP` if it is beyond."""
    if -CLIP < value < CLIP:
        return value
    return math.copysign(CLIP, value)


class TwoMemories(MetricExpansion):
    """Two heads on one S, one metric and one K; their mixture F is what is predicted.

        F = (1-w)·clip(f_1) + w·clip(f_2),   w = 1/(1 + exp(0.5·(M_2 + h - M_1)))

    f_1 is the steady head and f_2 the tracker; M_i is the discounted number of mistakes of f_i,
    and h is 4 before the first alarm and 2 from then on.
    Q = K^{-1} is always kept: the tracker forgets towards it.
    """

    state_fields: ClassVar[Any] = {
        **MetricExpansion.state_fields,
        "head": Steady,
        "tracker": Tracker,
        "_budget": "fixed",
    }
    head: Steady
    least_change = LEAST_CHANGE

    def __init__(self, budget: int, classes: tuple[int, ...] = ()) -> None:
        super().__init__(budget, classes)
        self.head = Steady(classes)
        self.tracker = Tracker(classes)
        self._budget = budget
        self._limit = None  # Q is kept also if S is full

    @property
    def heads(self) -> tuple[Steady, Tracker]:
        """The steady head and the tracker."""
        return self.head, self.tracker

    @property
    def tracker_weight(self) -> float:
        """w, the weight of the tracker."""
        return self.tracker.weight_against(self.head)

    @property
    def tracker_leads(self) -> bool:
        """Whether the tracker has more than half of the weight."""
        return self.tracker.lag(self.head) < 0.0

    @property
    def mixture(self) -> Floats:
        """Coefficients of the mixture without clipping, by column."""
        w = self.tracker_weight
        steady = (1.0 - w) * self.head.a
        return steady + w * self.tracker.a

    def check(self, state: StateReader) -> None:
        super().check(state)
        for head in self.heads:
            if len(head.a) != self.size:
                raise state.refusal("a", "does not fit the examples")

    # A block ------------------------------------------------------------------------------------

    def open(self, block: Points, start: int = 0) -> None:
        super().open(block, start)
        if self.size == self._budget:
            self.room = self.n

    def evaluate(self) -> None:
        super().evaluate()
        tracker = self.tracker
        missing = self.columns - len(tracker.a)
        more = np.zeros((missing, *self.classes))
        tracker.a = np.concatenate((tracker.a, more))
        tracker.evaluate()
        self.rounding = EXACT  # as those of the mixture are
        self.values = MixedValues(self.head, tracker)
        self.prior = Products(self.Q, self.K)

    def _close(self) -> None:
        support = self.support
        super()._close()
        tracker = self.tracker
        tracker.a = tracker.a.take(support, 0)
        if len(self.Q.A) != len(tracker.C.A):  # joins are pending in one of them only
            self.Q.settle()
            tracker.C.settle()

    # Values -------------------------------------------------------------------------------------

    def class_values(self, start: int, stop: int) -> Floats:
        """F of each class in round `start`; the weight of the tracker changes with every round."""
        for head in self.heads:
            row = head.g[start]
            sizes = np.abs(row)
            if sizes.min() <= head.rounding:
                head.solve()
                k = self.K[start : start + 1]
                (row,) = exact_zeros(k, row[None], head.a)
            head.value = row
        F = self.mixed(self.head.value, self.tracker.value)
        return F[None]

    def mixed(self, steady: Floats, tracker: Floats) -> Floats:
        """F from values of both heads."""
        w = self.tracker_weight
        first = np.clip(steady, -CLIP, CLIP)
        first *= 1.0 - w
        second = np.clip(tracker, -CLIP, CLIP)
        second *= w
        F = first + second
        terms = np.abs(first) + np.abs(second)
        is_rounding = np.abs(F) <= CANCELLED * terms
        F[is_rounding] = 0.0
        return F

    def at(self, points: Points) -> Floats:
        if self.points is None:
            classes = self.a.shape[1:]
            return np.zeros((points.size, *classes))
        weighted = self.metric.weighted(points)
        support = self.points.widened(weighted.width)
        K = self.kernel.between(weighted, support)
        head, tracker = self.heads
        steady = exact_zeros(K, K @ head.a, head.a)
        forgetting = exact_zeros(K, K @ tracker.a, tracker.a)
        return self.mixed(steady, forgetting)

    @property
    def coefficients(self) -> Floats:
        a = self.mixture
        if len(a) == self.size:
            return a
        return a.take(self.support, 0)

    @property
    def norm(self) -> float:
        """‖f‖ of the mixture without clipping; with several classes `√(Σ_c ‖f_c‖²)`."""
        if self.points is None:
            return 0.0
        a = self.coefficients
        gram = self.kernel.between(self.points, self.points)
        products = a * (gram @ a)
        square = float(products.sum())
        return math.sqrt(max(square, 0.0))

    # A round ------------------------------------------------------------------------------------

    def judge(self, y: float | Floats) -> None:
        """Let each head compare its own value with the label; of several classes, an array."""
        if not isinstance(y, np.ndarray):
            self.head.judge(y)
            self.tracker.judge(y)
            return
        true = int(y.argmax())
        for head in self.heads:
            step = hinge_steps(head.value, y)
            head.judge_classes(true, step)

    def projection(self) -> tuple[Floats, float]:
        base = self.prior.image(self.t)
        d = self.Q.times(self.k, base)
        explained = float(ddot(self.k, d))
        return d, self.diagonal[self.t] - explained

    def reset_steady(self) -> None:
        """After the current round: reset the steady head; at most B/2 examples stay in S.

        Those stay whose removal would change the tracker the most. All rows so far count half in
        the statistics of the metric.
        """
        self.leave_block()
        self.metric.halve()
        self.tracker.handicap = HANDICAP
        self.Q.settle()
        for head in self.heads:
            head.C.settle()
        half = self._budget // 2
        if self.size > half:
            self._shrink(half)
        self.head.reset(self.Q)

    def _shrink(self, count: int) -> None:
        """Keep `count` examples and project both heads onto their span; between two blocks.

        With D the examples that leave and R those that stay, `V = -Q_DD^{-1}·Q_DR` expresses the
        former by the latter: `a_R += Vᵀa_D`, `C ← [I Vᵀ]·C·[I Vᵀ]ᵀ`, `Q_RR += Q_RD·V`.
        """
        assert self.points is not None
        assert self.examples is not None
        Q = self.Q.whole()
        a = self.tracker.a.reshape(self.size, -1)
        squares = np.square(a)
        losses = squares.sum(axis=1) / Q.diagonal()
        order = np.argsort(losses, kind="stable")
        leaving = self.size - count
        leaves = np.sort(order[:leaving])  # of equal ones, the older
        stays = np.sort(order[leaving:])
        Q_DD = Q[np.ix_(leaves, leaves)]
        Q_DR = Q[np.ix_(leaves, stays)]
        V = -np.linalg.solve(Q_DD, Q_DR)
        for head in self.heads:
            C = head.C.whole()
            C_rows = C[stays] + V.T @ C[leaves]  # [I Vᵀ]·C
            from_leaving = C_rows[:, leaves] @ V
            projected = C_rows[:, stays] + from_leaving
            moved = V.T @ head.a[leaves]
            head.a = head.a[stays] + moved
            head.C = Symmetric(np.asfortranarray(projected))
        Q_RR = Q[np.ix_(stays, stays)]
        Q_RD = Q[np.ix_(stays, leaves)]
        inverse = Q_RR + Q_RD @ V
        self.Q = Symmetric(np.asfortranarray(inverse))
        self.points.keep(stays)
        self.examples.keep(stays)
        self.size = count

    def forget(self, q: float) -> None:
        """The tracker forgets: `C_2 ← q·C_2 + (1-q)·Q`."""
        if not self.is_interrupted:
            self.tracker.forget(q)
        else:  # the block has been closed by `reset_steady`
            blend(self.tracker.C.A, self.Q.A, q)
