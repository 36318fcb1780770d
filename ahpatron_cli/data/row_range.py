"""Which rows of a source are used: all readers, and the scan before a run, ask here."""

from __future__ import annotations

from dataclasses import dataclass

from ahpatron_cli.settings import Data


@dataclass(frozen=True)
class RowRange:
    """The rows of a source that are used, counted from 0."""

    stop: int | None = None
    """The first row that is not used any more; None if all are."""

    @classmethod
    def of(cls, data: Data) -> RowRange:
        """The rows that these options leave."""
        return cls(stop=data.limit)

    @property
    def is_everything(self) -> bool:
        """Whether all rows are used."""
        return self == RowRange()

    def ends_at(self, seen: int) -> bool:
        """Whether no row after the first `seen` rows is used."""
        return self.stop is not None and seen >= self.stop

    def most_left(self, seen: int) -> int | None:
        """Number of rows after the first `seen` rows that have to be read; None for all."""
        return None if self.stop is None else self.stop - seen

    def part(self, seen: int, count: int) -> slice:
        """Which of the next `count` rows after `seen` rows are used."""
        if self.stop is None:
            return slice(0, count)
        return slice(0, min(count, self.stop - seen))
