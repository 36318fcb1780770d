"""metron: second-order learning in a metric learned from the stream, with two memories."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ahpatron_cli.core.kernels import Kernel, Matern
from ahpatron_cli.core.learners.arow import Arow, SecondOrderLearner
from ahpatron_cli.core.learners.base import REST, SHARED, budget_parameter, multiclass_parameter
from ahpatron_cli.core.metric_expansion import MetricExpansion
from ahpatron_cli.core.numerics import HINGE
from ahpatron_cli.core.parameters import as_in, choice
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.second_order import SecondOrder
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.core.two_memories import Steady, Tracker, TwoMemories

FORGET_EVERY = 16
FORGET = (1.0 - 1.0 / 500.0) ** FORGET_EVERY
"""After every 16 rounds, the covariance of the tracker is multiplied by this."""
AFTER_ALARM = 64
"""Number of rounds from an alarm to the next change of the metric."""
ALARMS_KEPT = 100
"""Number of alarms whose rounds are kept: the last ones."""


@dataclass(frozen=True)
class Memories:
    """What the two memories of a learner have done so far."""

    tracker_weight: float
    """w after the last round."""
    alarms: int
    """Number of alarms."""
    alarm_rounds: tuple[int, ...]
    """Rounds, from 1, of the last 100 alarms."""
    steady_rows: int
    """Number of rows that the steady memory has learned from since the last alarm."""
    tracker_rows: int
    """Number of rows that the tracker has learned from since the first round."""

    @property
    def tracker_leads(self) -> bool:
        """Whether the tracker has more than half of the weight."""
        return self.tracker_weight > 0.5


@dataclass
class Metron(SecondOrderLearner):
    """Second-order learning in a metric learned from the stream, with two memories; ours.

    The kernel needs no σ and no scaling:

        κ(x, z) = 0.8·M(d/3) + 0.2·M(d/0.7),   d = ‖P(x - z)‖,
        M(s) = (1 + √3·s)·exp(-√3·s)   (Matérn 3/2);   exp(-d²/(2·1.5²)) "without neighbours"

    P has a weight per feature, and Σ_j var_j·P_j² = 1. Two heads f_1 (steady) and f_2 (tracker)
    share S, κ and Q = K^{-1}. f_i has coefficients a_i, their covariance C_i, the mean loss e_i
    (one round of loss 1 before the first), and M_i = 0. In round t = 1, 2, …, with k = κ(S, x):

        1 predict  f_i = a_i·k;  F = (1-w)·clip(f_1, ±1.5) + w·clip(f_2, ±1.5),
                   w = 1/(1 + exp(0.5·(M_2 + h - M_1))), h = 4 before the first alarm, 2 after it
        2 judge    each head its own margin m_i = y·f_i, and the loss max(0, 1 - m_i)² for e_i;
                   M_i ← (1 - 1/200)·M_i + 1 if f_i is wrong, else (1 - 1/200)·M_i
        3 test     Page's test of the mistakes of f_1 (see `Arow`): an alarm if f_1 is wrong and
                   g > alarm
        4 join     |S| < B, m < 1 - |S|/B, d = Q·k, δ = 1 - k·d > tolerance: x joins S with
                   coefficients 0, D = (d, -1); Q, C_1, C_2 += D·Dᵀ/δ. m = m_1 up to the first
                   alarm, its round included; afterwards m = min(m_1, m_2)
        5 update   each head with m_i < 1 (at an alarm not f_1), r = max(0.001, 0.3·e_i²):
                   u = C_i·k; b = 1/(k·u + r); a_i += (1 - m_i)·y·b·u; C_i -= b·u·uᵀ
        6 count    x joins the statistics of the features
        7 alarm    if |S| > B/2, the B/2 examples with the largest ‖a_2j‖²/Q_jj stay, and both heads
                   are projected onto their span. a_1 = 0, C_1 = Q, e_1 and g start again. All rows
                   so far count half in the statistics of the features
        8 forget   after rounds 16, 32, …:  C_2 ← q·C_2 + (1-q)·Q,  q = (1 - 1/500)^16
        9 metric   after rounds 2, 4, 8, …; after an alarm 64, 128, 256, … rounds later

    A change of the metric:

        spread     s2_j: the variance of feature j, divided by the share of rows where it is not 0
        relevance  |S| < 10: R_j = 1/d, d the number of features that vary; else, with g_j the mean
                   over S of (∂f/∂x_j)²·s2_j, f = (1-w)·f_1 + w·f_2:
                   λ = max(0.1, 60d/(60d + t)),  R_j = (1 - λ)·g_j/Σg + λ/d
        metric     P_j = √(R_j/s2_j), up to the common factor; a feature that has not varied has
                   the square of its first value that is not 0 as s2, and R = λ/d
        stay       Σ_j R_j·|log(P_j/P_j before)| < 0.05, over the features that vary: nothing
                   changes
        κ          |S| >= 10: "without neighbours" if the median distance in S to the nearest other
                   example exceeds 1
        f          examples within `tolerance` of the span of older ones leave S; the prior of each
                   head is replaced by that of the new kernel, and the evidence from the rounds is
                   kept

    Before the first change, P_j = 1/(√n·|x_j|), x_j the first value of feature j that is not 0 and
    n the number of such values in the first row. With `multiclass=shared`, margin, loss and update
    are those of `Arow`, g is summed over the k classes, and t in λ is multiplied by √(k - 1). An
    example of weight v has the noise r/v in both heads. Symbols: B `budget`, g_0 `alarm`.

    `tracker=off` is the rule of version 1.0: f_1 alone, everything else as in `Arow` with its
    defaults. An alarm resets the learner, its metric included; t and the changes of the metric
    count from there, and no change is left out.

    Examples
    --------
    >>> from ahpatron_cli.core import Metron, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Metron(budget=100), X, y).tally.mistakes
    132
    """

    name = "metron"
    title = "metron: arow in a metric learned from the stream; no σ, no scaling (ours)"
    references = ("crammer2009", "page1954")
    own_kernel = Matern()

    budget: int = budget_parameter()
    alarm: float = as_in(Arow, "alarm", 12.0, over=None, at_least=1)
    multiclass: str = multiclass_parameter(SHARED, REST)
    tracker: str = choice("", "a second memory that follows a concept that moves", "on", "off")

    next_call = 1
    _change_is_due = False  # after the last round of the last block
    metric_changes = 0
    effective_features = 0.0
    tracker_led = 0  # number of rounds in which the tracker had more than half of the weight
    alarm_rounds = np.empty(0, dtype=np.int64)  # of the last alarms, from 1
    state_fields = (
        *SecondOrderLearner.state_fields,
        "metric_changes",
        "effective_features",
        "tracker_led",
        "alarm_rounds",
    )
    reports = ("restarts", "metric_changes", "effective_features")

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> MetricExpansion:
        super().begin(kernel, classes)
        if self.tracker == "off":
            return MetricExpansion(self.budget, classes)
        self.update_below = math.inf  # every round counts for both heads
        return TwoMemories(self.budget, classes)

    def statistics(self) -> dict[str, int | float | None]:
        found = super().statistics()
        found["effective_features"] = self.effective_features or None
        if self.tracker == "on":
            found["alarms"] = self.restarts
            found["tracker_led"] = self.tracker_led
        return found

    def check(self, state: StateReader) -> None:
        super().check(state)
        rounds = self.alarm_rounds
        alarms = 0
        if self.tracker == "on":
            alarms = self.restarts
        kept = min(alarms, ALARMS_KEPT)
        if rounds.dtype != np.int64 or rounds.shape != (kept,):
            raise state.refusal("alarm_rounds", "does not fit the rounds")
        gaps = np.diff(rounds, prepend=0, append=self.round + 1)
        if gaps.min() <= 0:
            raise state.refusal("alarm_rounds", "does not fit the rounds")
        if self.tracker_led > self.round:
            raise state.refusal("tracker_led", "does not fit the rounds")
        if self.tracker == "on" and self.update_below != math.inf:
            raise state.refusal("update_below", "leaves out rounds, and both memories need all")

    def memories(self, f: TwoMemories) -> Memories:
        """What the two memories have done so far."""
        return Memories(
            tracker_weight=f.tracker_weight,
            alarms=self.restarts,
            alarm_rounds=tuple(self.alarm_rounds.tolist()),
            steady_rows=f.head.learned,
            tracker_rows=f.tracker.learned,
        )

    @property
    def last_reset(self) -> int | None:
        """None with a tracker, which keeps what it has learned at an alarm."""
        if self.tracker == "on":
            return None
        return super().last_reset

    def warnings(self, f: SecondOrder) -> list[str]:
        if self.tracker == "on":
            return []
        return super().warnings(f)

    def update(self, f: Any, y: Any, margin: float) -> bool:
        if isinstance(f, TwoMemories):
            updated = self.update_both(f, y)
        elif margin < HINGE or f.classes:
            updated = super().update(f, y, margin)
            if f.successor is not None:  # the learner was reset
                self.next_call = self.birth + 1
                return False
        else:
            updated = False
        if self.round == self.next_call:
            if f.t + 1 < f.m:
                f.leave_block()
                self._change_metric(f)
            else:
                self._change_is_due = True
        return updated

    def finish_round(self, f: MetricExpansion) -> None:
        """Change the metric, if that is due: answers do not wait for it."""
        if self._change_is_due:
            self._change_metric(f)

    def _change_metric(self, f: MetricExpansion) -> None:
        """Change the metric between two blocks, and note the round of the next change."""
        self._change_is_due = False
        since = self.round + 1 - self.birth
        self.next_call = self.birth + 2 * since - 1
        if not f.size:
            return
        rounds = since
        if isinstance(f, TwoMemories):
            rounds = self.round + 1  # its metric is never reset
        if f.change_metric(rounds, self.tolerance):
            self.metric_changes += 1
            self.effective_features = f.metric.effective

    def update_both(self, f: TwoMemories, y: float | Floats) -> bool:
        """Update both heads; whether one of them has changed."""
        steady = f.head
        tracker = f.tracker
        self.tracker_led += f.tracker_leads
        f.judge(y)
        alarm = False
        if steady.mistake or self.page:  # else g stays 0
            alarm = self.has_risen(steady.mistake)
        updated = False
        lowest = min(steady.margin, tracker.margin)
        if lowest < HINGE:
            join_below = 1.0 - f.size / self.budget  # 1 - |S|/B
            margin = lowest if self.restarts else steady.margin
            if f.size < self.budget and margin < join_below:
                f.enter(self.tolerance)
            if steady.margin < HINGE and not alarm:
                updated = self._learn(steady)
            if tracker.margin < HINGE:
                updated |= self._learn(tracker)
        if alarm:
            self._reset_steady(f)
        if (self.round + 1) % FORGET_EVERY == 0:
            f.forget(FORGET)
        return updated

    def _learn(self, head: Steady | Tracker) -> bool:
        """Update a head; whether it has changed."""
        mean_loss = head.loss / head.rounds
        updated = head.learn(head.step, self.r_at(mean_loss))
        head.learned += updated
        return updated

    def _reset_steady(self, f: TwoMemories) -> None:
        """Let the steady head start again after this round, and Page's test with it."""
        f.reset_steady()
        self.restart_test()
        self.next_call = self.birth + AFTER_ALARM - 1
        rounds = np.append(self.alarm_rounds, self.round + 1)
        self.alarm_rounds = rounds[-ALARMS_KEPT:]
