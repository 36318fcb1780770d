"""arow: second-order learning in the span of at most B examples; the rule that metron shares."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from ahpatron_cli.core.judging import hinge_steps, page_statistic
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    REST,
    SHARED,
    Learner,
    budget_parameter,
    multiclass_parameter,
)
from ahpatron_cli.core.numerics import HINGE
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.second_order import SecondOrder
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.core.tally import mistaken


class SecondOrderLearner(Learner):
    """Update rule of `Arow` and `Metron`: noise, Page's test, growth of S and the step."""

    takes_costs = True
    budget: int
    noise = 0.3
    floor = 0.001
    tolerance = 0.001
    alarm = 12.0
    caution = 0.0
    update_below = HINGE

    birth = 0  # the first round after the last reset; the counts below start there
    next_seen = 0  # the first round that Page's test has not seen yet
    loss = 1.0
    wrong = 1
    page = 0.0  # g
    restarts = 0
    state_fields: ClassVar[Any] = ("birth", "next_seen", "loss", "wrong", "page", "restarts")
    reports: ClassVar[tuple[str, ...]] = ("restarts",)

    def check(self, state: StateReader) -> None:
        in_order = self.birth <= self.next_seen <= self.round
        rounds = self.round - self.birth
        counted = 1 <= self.wrong <= rounds + 1
        usable = 0 < self.loss < 1e40  # loss⁶ is finite
        if not (in_order and counted and usable):
            raise state.refusal("birth", "does not fit the rounds")

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> SecondOrder:
        if classes:
            self.update_below = math.inf  # every round contributes to the mean loss
        return SecondOrder(kernel, self.budget, classes)

    def update(self, f: SecondOrder, y: Any, margin: float) -> bool:
        step: Any
        if f.classes:
            step = hinge_steps(f.value, y)
            is_wrong_tie = margin == 0 and y.argmin() < y.argmax()
            mistake = margin < 0 or bool(is_wrong_tie)
            squares = step * step
            self.loss += float(squares.mean())
            margin /= 2.0
            if margin >= HINGE:
                return False
        else:
            step = (1.0 - margin) * y
            mistake = mistaken(y, margin)
            self.loss += step * step
        if self.has_risen(mistake):
            self.reset(f)
            return False
        seen = self.seen
        e = self.loss / seen
        more = 0.0
        join_below = 1.0 - f.size / self.budget  # 1 - |S|/B
        if self.caution:
            filled = min(1.0, f.size / seen)
            per_round = math.sqrt(filled)  # √(|S|/t)
            share = min(1.0, 8.0 * e**6 * per_round)
            more = self.caution * share
            join_below *= 1.0 - 0.8 * self.caution * e**4
        if f.size < self.budget and margin < join_below:
            f.enter(self.tolerance)
        return f.learn(step, self.r_at(e, more))

    @property
    def seen(self) -> int:
        """Number of rounds since the last reset: this one, and one of loss 1 before the first."""
        return self.round + 2 - self.birth

    def has_risen(self, mistake: bool) -> bool:
        """Page's test (see `Arow`), if this round is a mistake or not: whether g > alarm.

        The rounds since the last call were correct.
        """
        right = self.round - self.next_seen
        self.next_seen = self.round + 1
        if not mistake:
            self.page = page_statistic(self.page, right + 1)
            return False
        rate = self.wrong / self.seen  # p
        self.page = page_statistic(self.page, right, rate)
        self.wrong += 1
        return self.page > self.alarm

    def r_at(self, e: float, more: float = 0.0) -> float:
        """r of an example of this weight; e is the mean squared hinge loss."""
        r = max(self.floor, self.noise * e * e + more)
        return r / self.weight

    def reset(self, f: SecondOrder) -> None:
        """Reset the learner: from the next round on, f and all counts start from scratch."""
        self.loss = 1.0
        self.restart_test()
        f.successor = self.begin(f.kernel, f.classes)

    def restart_test(self) -> None:
        """Restart Page's test after an alarm in this round, and count the alarm."""
        self.birth = self.round + 1
        self.next_seen = self.birth
        self.wrong = 1
        self.page = 0.0
        self.restarts += 1

    @property
    def last_reset(self) -> int | None:
        return self.birth or None

    def warnings(self, f: SecondOrder) -> list[str]:
        if not self.restarts:
            return []
        times = ""
        if self.restarts > 1:
            times = f"{self.restarts:,} times, last "
        reset = f"the learner was reset {times}in round {self.birth:,}"
        return [f"the mistake rate rose: {reset}"]


@dataclass
class Arow(SecondOrderLearner):
    """AROW (Crammer, Kulesza, Dredze 2009) in the span of at most B examples; our variant.

    S only grows; once |S| = B, learning continues in the span of S. a are the
    coefficients, C their covariance, Q = K^{-1}. With k = κ(S, x), m = y·f(x), e the mean of
    max(0, 1 - m)² over the rounds so far (this one included, and one round of loss 1 before):

        r = max(floor, noise·e²)
        if m < 1 - |S|/B, d = Q·k, δ = κ(x,x) - k·d > tolerance:  x joins S with coefficient 0,
            D = (d, -1); Q += D·Dᵀ/δ and C += D·Dᵀ/δ, both padded with zeros
        if m < 1:  u = C·k; b = 1/(k·u + r); a += (1 - m)·y·b·u; C -= b·u·uᵀ

    So at first x joins on any margin violation, and near |S| = B only on a mistake. Page's test of
    the mistake rate p: g ← max(0, g + s), s = log(q/p) on a mistake and else log((1-q)/(1-p)), with
    q = p + (1-p)/4 and p from the rounds before. If g > alarm, the learner is reset, without an
    update in this round. An example of weight w has the noise r/w, so it counts as w examples.
    Symbols: B `budget`, η `noise`, δ_0 `tolerance`, g_0 `alarm`.

    `caution` c > 0 is for noisy streams that are short compared with B. In round t,

        r = max(floor, noise·e² + c·min(1, 8e⁶·√(|S|/t)));  joins if m < (1 - |S|/B)·(1 - 0.8·c·e⁴).

    With `multiclass=shared`, the classes share S, Q and C, and a has a column for each. With t = 1
    for the true class y and -1 for the others, m = (f_y - max_{c≠y} f_c)/2, the loss is the mean of
    max(0, 1 - t_c·f_c)² over the classes, and `a_c += max(0, 1 - t_c·f_c)·t_c·b·u` if m < 1.

    In a fixed span this is AROW, with its mistake bound. The growth of S, the noise and the reset
    are ours: that they make fewer mistakes is measured (tests/benchmarks), not proved.

    Examples
    --------
    >>> from ahpatron_cli.core import Arow, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Arow(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    130
    """

    name = "arow"
    title = "arow: second-order learning in the span of at most B examples (ours, after AROW 2009)"
    references = ("crammer2009", "page1954")

    budget: int = budget_parameter()
    noise: float = real("η", "r = η·e², e the mean squared hinge loss", default=0.3, over=0)
    floor: float = real("r_0", "least noise r", default=0.001, at_least=1e-5)
    tolerance: float = real(
        "δ_0", "squared distance to the span above which x is added", 0.001, at_least=1e-4
    )
    alarm: float = real("g_0", "Page's statistic that causes a reset", 12.0, over=0, infinite=True)
    caution: float = real(
        "c", "more noise, slower growth if losses are large", 0.0, at_least=0, at_most=1
    )
    multiclass: str = multiclass_parameter(SHARED, REST)
