"""What every learner is: parameters, a trigger and an update."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.hypothesis import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.core.state import State, Stored


@dataclass
class Learner(Declared):
    """An online learner: `wants` says which rounds change f, `update` changes it.

    The engine predicts, sees the label, and calls `update` where `wants` is true; while f is empty
    it calls it in any case. A learner is good for one pass: what it counts belongs to that pass.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """One line for tables: what it is and where it comes from."""
    keeps_gram: ClassVar[bool] = False
    """Whether the Gram matrix of the active set is needed."""
    wants_horizon: ClassVar[bool] = False
    """Whether T, the number of rounds, is asked for before the first."""
    every_round: ClassVar[bool] = False
    """Whether `pass_round` is to be called in every round, update or not."""

    remembers: ClassVar[tuple[str, ...]] = ()
    """The counts and sums that a pass keeps besides f, by attribute."""

    def begin(self, kernel: Kernel, rng: np.random.Generator, horizon: int | None) -> Hypothesis:
        """The empty f that a pass starts with. `rng` is for lots; `horizon` is T, if known."""
        return Expansion(kernel, keep_gram=self.keeps_gram)

    def wants(self, margin: Any, y: Any) -> Any:
        """Whether a round with `y·f(x) = margin` is to change f; for arrays, which rounds are."""
        raise NotImplementedError

    def update(self, f: Any, margin: float, y: float) -> bool | None:
        """Change f, which `begin` made, by the current example, whose label is y.

        False says that nothing changed after all, and the round does not count as an update.
        """
        raise NotImplementedError

    def pass_round(self, f: Any) -> None:
        """What happens to f after every prediction, before any update."""

    def state(self) -> State:
        """What the learner remembers, besides f."""
        return {name.lstrip("_"): getattr(self, name) for name in self.remembers}

    def restore(self, stored: Stored) -> None:
        """Go on from a state; parameters are the same, and the pass has begun."""
        for name in self.remembers:
            whole = isinstance(getattr(self, name), int)
            key = name.lstrip("_")
            setattr(self, name, stored.integer(key) if whole else stored.number(key, infinite=True))

    def fits(self, f: Any) -> bool:
        """Whether a state that was restored and that of f belong together."""
        return True

    def halvings(self) -> int | None:
        """How often the active set was halved; None for learners that never do."""
        return None

    def zeta(self) -> float | None:
        """ζ̂ of Theorem 5, where it is defined."""
        return None

    def margin_steps(self) -> float | None:
        """The sum of λ_t over the rounds of N_T, where there is a λ_t."""
        return None

    def warnings(self) -> list[str]:
        """What the user must know about the numbers of this pass."""
        return []


def wrong(margin: Any, y: Any) -> Any:
    """Where sign(f(x)) differs from y, with sign(0) = +1."""
    return (margin < 0) | ((margin == 0) & (y < 0))
