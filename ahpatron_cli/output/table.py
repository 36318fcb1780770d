"""A table before any output format: what stands in it, not how it is set.

The terminal, Markdown and LaTeX set the same sheets. Text of ours (`about`, heads, notes) may hold
the signs ± → − ζ̂ – and *, which each of them spells in its own way; names and cells may come from
outside and are escaped by each of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Column:
    """A head, and what a renderer may do with the cells below it."""

    head: str
    words: bool = False
    """Set flush left; numbers are set flush right."""
    spare: bool = False
    """Said elsewhere too, so left out where a window is too narrow for all columns."""


@dataclass(frozen=True)
class Cell:
    """A name or a number."""

    text: str
    spread: str | None = None
    """What follows a number after ±."""
    bold: bool = False
    mark: bool = False
    """A star before the text: bold type does not show in a pipe."""


@dataclass(frozen=True)
class Sheet:
    """One table and what is said above and below it."""

    name: str
    """Of the data, from outside."""
    about: str
    columns: Sequence[Column]
    rows: Sequence[Sequence[Cell | None]]
    """None stands for a value that does not exist."""
    notes: Sequence[str] = ()

    def without_spare(self) -> Sheet:
        """The sheet with only what it alone says."""
        kept = [number for number, column in enumerate(self.columns) if not column.spare]
        return replace(
            self,
            columns=[self.columns[number] for number in kept],
            rows=[[row[number] for number in kept] for row in self.rows],
        )


@dataclass(frozen=True)
class Page:
    """All tables of a command, and what is said once below them."""

    sheets: Sequence[Sheet]
    remark: str = ""
    """Ours, without signs."""
    items: Sequence[str] = ()
    """What the remark lists; may quote text from outside."""


def spelled(text: str, signs: Mapping[str, str]) -> str:
    """A text of ours with its signs as `signs` spells them; earlier ones of equal start win."""
    return re.sub("|".join(map(re.escape, signs)), lambda sign: signs[sign[0]], text)
