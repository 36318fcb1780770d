"""The interface of readers of cells, one for each format of tables."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator
from typing import ClassVar, TypeAlias

from ahpatron_cli.data.cells import Cells
from ahpatron_cli.errors import UserError
from ahpatron_cli.settings import RowFormat

OnFault: TypeAlias = Callable[[UserError], None] | None
"""What is called with each fault, which is then left out; None: the first one is raised."""


class CellReader(ABC):
    """Reader of the columns of a table as numbers, dates and text: those of `cells`.

    Parameters
    ----------
    path : str
        The name of the table, for errors.
    """

    may_lack_columns: ClassVar[bool] = False
    """Whether rows may lack columns, as objects may lack keys: such a cell is missing."""
    row_format: ClassVar[RowFormat] = "csv"
    """In which format rows of a stream are answered."""
    names: list[str]
    """Names of the columns, as far as they are known."""
    undivided: Collection[str] = ()
    """Columns whose cells may not be objects or lists: those of labels and ids."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.padded: set[str] = set()
        """Numeric columns with spaces around cells, as far as they were read."""
        self.leading_zeros: set[str] = set()
        self.thousands: set[str] = set()
        """Numeric columns with leading zeros or separators of thousands, as far as read."""

    @abstractmethod
    def batches(
        self,
        used: set[str],
        text: Collection[str],
        no_numbers: Collection[str] = (),
        copied: Collection[str] = (),
    ) -> Iterator[Cells]:
        """Batches of the `used` columns: as floats if all cells are numbers, else as text.

        Columns in `text` are text in any case. So are those in `no_numbers`, a collection that may
        grow while batches are read. Columns that are `copied` are `Spans`, if the format has them.
        """


class TextReader(CellReader):
    """Reader of a format that is text, whose rows can be read as they arrive."""

    @property
    @abstractmethod
    def line(self) -> int:
        """Number of the first line that was not parsed, from 1."""

    @abstractmethod
    def chunks(self) -> Iterator[bytes]:
        """The text behind the header, if there is one, in chunks that end with a row."""

    @abstractmethod
    def parse(self, raw: bytes, line: int, text: Collection[str]) -> Cells:
        """The cells of all columns in these lines; a `UserError` if one line is faulty."""
