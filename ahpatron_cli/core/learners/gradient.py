"""What the learners by gradient descent share: a step on the hinge loss wherever it is not zero."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, Self

from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.learners.base import F, Learner, on_hinge_loss
from ahpatron_cli.core.parameters import real, whole

STEPS = 10.0
UNKNOWN_STEP = 0.1


def step_parameter() -> Any:
    """Declare η."""
    formula = "10/√T, or 0.1 where T is not known"
    return real("η", "step of the descent", over=0, optional=True, formula=formula)


def horizon_parameter(meaning: str = "number of rounds, for defaults that depend on it") -> Any:
    """Declare T."""
    formula = "length of the stream, where it is known"
    return whole("T", meaning, at_least=1, optional=True, formula=formula)


def shrinkage_parameter(default: float | None = None, **options: Any) -> Any:
    """Declare λ."""
    return real("λ", "strength of the regulariser λ‖f‖²/2", default, at_least=0, **options)


def check_shrinkage(step: float, shrinkage: float) -> None:
    """Refuse a λ by which f would change its sign in a round."""
    if step * shrinkage >= 1:
        message = f"shrinkage must be a number below 1/step = {1 / step:g}, got {shrinkage}"
        raise ParameterError(message, "shrinkage")


class GradientLearner(Learner[F]):
    """`f ← f + η·y·κ(x,·)` if `y·f(x) < 1`: a step against the gradient of `max(0, 1 - y·f(x))`.

    Subclasses are dataclasses that declare `step` and `horizon`; both have a value while a pass is
    played, T only if it is known.
    """

    step: float
    horizon: int | None
    wants = on_hinge_loss

    def resolved(self, horizon: int | None) -> Self:
        """T, a stated one before the stream's own, and then η."""
        T = self.horizon or horizon
        step: float | None = self.step
        if step is None:
            step = STEPS / math.sqrt(T) if T else UNKNOWN_STEP
        return dataclasses.replace(self, horizon=T, step=step)  # type: ignore[call-arg]  # see above
