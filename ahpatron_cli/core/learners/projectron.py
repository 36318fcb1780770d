"""Projectron: a Perceptron that keeps an example only if S cannot stand in for it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.gram_inverse import DRIFT, Inverse
from ahpatron_cli.core.learners.base import Learner, wrong
from ahpatron_cli.core.parameters import real, whole
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import State, Stored


class LimitReachedError(RuntimeError):
    """The active set would outgrow the limit that was set; `name` is the parameter's."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass
class Projectron(Learner):
    """Project a mistake onto the span of S, if it is near; else add it (Orabona et al. 2008).

    The problem: a Perceptron whose active set S stays small although nothing is ever forgotten.
    With k = κ(S, x), K the Gram matrix of S, on a mistake

        d = K^{-1} k,   δ² = κ(x,x) - k·d     (the projection of κ(x,·) onto the span; its distance)
        a ← a + y·d                           if δ <= η
        add x with coefficient y              else.

    Symbols: η `tolerance`. There is no budget, but where the data lie in a bounded region S stays
    finite; `max_support` ends a run, with a message, before S outgrows it. Every update costs
    O(|S|²). δ² below 1e-10 is taken as 0, and an example whose δ cannot be told from rounding does
    not join, whatever η is.
    """

    name = "projectron"
    title = "Projectron: projects mistakes onto the span of S if near (Orabona et al. 2008)"
    keeps_gram = True

    tolerance: float = real(
        "η", "examples at most this far from the span of S do not join", 0.1, over=0, under=1
    )
    max_support: int | None = whole(
        "|S|", "end the run before S is larger than this", at_least=1, optional=True
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self._inverse = Inverse()

    def wants(self, margin: Any, y: Any) -> Any:
        """On a mistake."""
        return wrong(margin, y)

    def update(self, f: Expansion, margin: float, y: float) -> bool | None:
        """Stay in the span of S, or let x join."""
        d, squared = self._inverse.project(f.column(), f.diagonal(), f.gram)
        self._learn(f, y, d, squared)
        return None

    def _learn(self, f: Expansion, y: float, d: Floats, squared: float) -> None:
        if self._inverse.holds(squared, self.tolerance):
            f.move(y, d)
            return
        if self.max_support is not None and f.size >= self.max_support:
            message = f"one more example would make S larger than max_support={self.max_support}"
            raise LimitReachedError("max_support", message)
        f.add(y)
        f.settle()
        self._inverse.grow(d, squared, f.gram)

    def state(self) -> State:
        return {**super().state(), "inverse": self._inverse.state()}

    def restore(self, stored: Stored) -> None:
        super().restore(stored)
        self._inverse.restore(stored.child("inverse"), self.max_support or 2**31)

    def fits(self, f: Expansion) -> bool:
        """The inverse is that of all of S."""
        return self._inverse.size == f.size

    def warnings(self) -> list[str]:
        """Examples that are nearly dependent, which cost digits."""
        if self._inverse.drift <= DRIFT:
            return []
        drift = f"{self._inverse.drift:.0e}"
        return [f"the kernel matrix of S is nearly singular: projections are good to {drift} only"]
