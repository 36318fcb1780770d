"""What the learners by gradient descent share: a step on the hinge loss wherever it is not zero."""

from __future__ import annotations

import math
from typing import Any

from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.parameters import real, whole

STEPS = 10.0
UNKNOWN_STEP = 0.1


def step_parameter() -> Any:
    """Declare η."""
    return real(
        "η",
        "step of the descent",
        over=0,
        optional=True,
        formula="10/√T, or 0.1 where T is not known",
    )


def horizon_parameter() -> Any:
    """Declare T."""
    return whole(
        "T",
        "number of rounds, for defaults that depend on it",
        at_least=1,
        optional=True,
        formula="length of the stream, where it is known",
    )


class GradientLearner(Learner):
    """`f ← f + η·y·κ(x,·)` if `y·f(x) < 1`: a step against the gradient of `max(0, 1 - y·f(x))`.

    Subclasses are dataclasses that declare `step` and `horizon`, and resolve both when a pass
    begins.
    """

    wants_horizon = True

    step: float | None
    horizon: int | None

    def wants(self, margin: Any, y: Any) -> Any:
        """Where the hinge loss is not zero."""
        return margin < 1.0

    def _resolve_step(self, horizon: int | None) -> float:
        """Settle T, a stated one before the stream's own, and then η; both show in `params`."""
        if self.horizon is None:
            self.horizon = horizon
        if self.step is None:
            self.step = STEPS / math.sqrt(self.horizon) if self.horizon else UNKNOWN_STEP
        return self.step
