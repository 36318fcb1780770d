"""What the engine asks of a hypothesis f, whatever it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod

from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Saved


class Standing(Saved, ABC):
    """f between two blocks of examples: that is when its state is asked for and given back."""

    size: int | None = 0
    """|S|: the examples that f keeps in memory; None where it is not made of examples."""
    norm_drift: float = 0.0
    """Largest relative difference seen between a tracked norm and the exact one."""

    @abstractmethod
    def at(self, points: Points) -> Floats:
        """f at any points while no block is open: what it would predict next. Changes nothing."""

    @abstractmethod
    def compress(self, origin: Floats | None) -> None:
        """Go on with sparse points: the stream has become too wide for dense ones.

        `origin` is what had been subtracted from dense points.
        """

    @property
    @abstractmethod
    def norm(self) -> float:
        """‖f‖."""


class Hypothesis(Standing):
    """f over one block of examples at a time: opened, read round by round, changed, closed."""

    looks_ahead: bool = False
    """Whether `values` may be asked at any time, for little."""

    @abstractmethod
    def open(self, block: Points, labels: Floats) -> None:
        """Take up a block. A round's label may be used from the next round on, and no earlier."""

    @abstractmethod
    def values(self) -> Floats:
        """f at all examples of a block that was just opened; as it is now, if it looks ahead."""

    @abstractmethod
    def value(self, round_: int) -> float:
        """f, as it is now, at the block's example of this round, which becomes the current one."""

    @abstractmethod
    def close(self) -> None:
        """End the block: what it holds and the learner did not take is forgotten."""

    @property
    def empty(self) -> bool:
        """Whether nothing was learned so far: the next round then updates in any case."""
        return self.size == 0
