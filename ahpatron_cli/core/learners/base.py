"""What every learner is: parameters, a trigger and an update."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.errors import LimitReachedError
from ahpatron_cli.core.expansion import Expansion, Steps
from ahpatron_cli.core.hypothesis import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.parameters import Declared, whole
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Saved, Stored

F = TypeVar("F", bound=Hypothesis)
"""What the learner's f is made of."""
Margin: TypeAlias = float | Floats
"""y·f(x) of one round, or of each of several; labels are of the same kind."""
Trigger: TypeAlias = bool | NDArray[np.bool_]
"""Whether that round is meant; or which of them are."""

REACHED = 1e-10
"""Margins that differ by no more than this share of the threshold are on it: rounding must not
decide which rounds update, and sums that end just there would else be followed by tiny steps."""


def under(threshold: float) -> float:
    """The largest margin that updates by the rule `y·f(x) < threshold`; never 0 itself."""
    return math.nextafter(threshold * (1.0 - REACHED), -math.inf) or math.ulp(0.0)


def up_to(threshold: float) -> float:
    """The largest margin that updates by the rule `y·f(x) <= threshold`; never 0 itself."""
    return threshold * (1.0 + REACHED) or math.ulp(0.0)


HINGE = under(1.0)
"""The largest margin that has a hinge loss."""


@dataclass
class Learner(Declared, Saved, Generic[F]):
    """An online learner: `wants` says which rounds change f, `update` changes it.

    The engine predicts, sees the label, and calls `update` where `wants` is true; while f is empty
    it calls it in any case. Subclasses are dataclasses. Their parameters never change; what a pass
    counts is declared with `pass_state` and belongs to a copy of the learner that the engine makes
    (`resolved`), so one object can play any number of streams.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """One line for tables: what it is and where it comes from."""
    takes_costs: ClassVar[bool] = False
    """Whether examples may weigh more or less than others: `_weight` is that of the current one."""
    _weight: ClassVar[float] = 1.0  # a pass with costs sets its own
    keeps_gram: ClassVar[bool] = False
    """Whether the Gram matrix of the active set is needed."""

    def resolved(self, horizon: int | None) -> Self:
        """A copy for one pass, with parameters filled in that depend on T, if T is known."""
        return dataclasses.replace(self)

    def begin(self, kernel: Kernel, rng: np.random.Generator) -> F:
        """The empty f that a pass starts with; `rng` is for all that is drawn at random."""
        self._rng = rng
        return self.hypothesis(kernel)

    def hypothesis(self, kernel: Kernel) -> F:
        """The empty f: an expansion, unless the learner has another."""
        return cast("F", Expansion(kernel, keep_gram=self.keeps_gram, most=self.most_kept))

    def wants(self, margin: Margin, y: Margin) -> Trigger:
        """Whether a round with `y·f(x) = margin` is to change f; for arrays, which rounds are."""
        raise NotImplementedError

    def update(self, f: F, margin: float, y: float) -> bool | None:
        """Change f by the current example, whose label is y.

        False says that nothing changed after all, and the round does not count as an update.
        """
        raise NotImplementedError

    def steps(self) -> Steps | None:
        """What `wants`, `update` and `each_round` do, if it is no more than steps.

        f then plays by itself. Ignored where a subclass has one of these of its own and no `steps`,
        where f has an `add`, `scale`, `value` or `project` of its own, and where there are costs.
        """
        return None

    def each_round(self, f: F, margin: float, y: float) -> None:
        """What happens in every round after the prediction, before any update."""

    @property
    def most_kept(self) -> int | None:
        """The most examples that f ever keeps; None: there is no such limit."""
        limits = (getattr(self, name, None) for name in ("budget", "max_support"))
        return min((limit for limit in limits if limit is not None), default=None)

    def statistics(self) -> dict[str, int | float | None]:
        """What the pass reports beyond the common counts, by name; None: not defined yet."""
        return {
            field.name.lstrip("_"): getattr(self, field.name)
            for field in _pass_fields(self)
            if field.metadata["reported"]
        }

    def warnings(self, f: F) -> list[str]:
        """What the user must know about the numbers of this pass."""
        return []

    def exchange(self, stored: Stored) -> None:
        """Write all that the pass has counted so far, besides f, or go on from it."""
        for field in _pass_fields(self):
            key, value = field.name.lstrip("_"), getattr(self, field.name)
            if isinstance(value, int):
                self.__dict__[field.name] = stored.integer(key, value)
            else:
                self.__dict__[field.name] = stored.number(key, value, infinite=True)


def _pass_fields(learner: Learner[Any]) -> list[dataclasses.Field[Any]]:
    return [field for field in dataclasses.fields(learner) if "pass_state" in field.metadata]


def max_support_parameter() -> Any:
    """Declare the size of S that ends the run."""
    return whole("|S|", "end the run before S is larger than this", at_least=1, optional=True)


def check_support(size: int, most: int | None) -> None:
    """End the run rather than let S grow to a size above `max_support`."""
    if most is not None and size > most:
        message = f"one more example would make S larger than max_support={most}"
        raise LimitReachedError(message, "max_support")


@overload
def wrong(margin: float, y: float) -> bool: ...
@overload
def wrong(margin: Floats, y: Floats) -> NDArray[np.bool_]: ...
@overload
def wrong(margin: Margin, y: Margin) -> Trigger: ...
def wrong(margin: Margin, y: Margin) -> Trigger:
    """Where sign(f(x)) differs from y, with sign(0) = +1."""
    return (margin < 0) | ((margin == 0) & (y < 0))


def on_mistake(self: Learner[Any], margin: Margin, y: Margin) -> Trigger:
    """`wants` of learners that change f on a mistake."""
    return wrong(margin, y)


def unit_step(margin: float, own: float) -> float:
    """1: `Steps.step_at` of learners that add every example with its label."""
    return 1.0


def on_hinge_loss(self: Learner[Any], margin: Margin, y: Margin) -> Trigger:
    """`wants` of learners that change f where the hinge loss is not zero."""
    return margin <= HINGE
