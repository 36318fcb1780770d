"""What a user asks of data before they are read."""

from __future__ import annotations

from dataclasses import dataclass

from ahpatron_cli.data.scaling import LEARNED_SCALES
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.settings import Data


@dataclass(frozen=True)
class Preparation:
    """Options for preparing a file before learners run on it."""

    data: Data = Data()  # noqa: RUF009 - it cannot change
    positive: float | None = None
    """The label that is +1 for LIBSVM text; every other one is then -1."""
    labels: tuple[float, ...] | None = None
    """All labels in increasing order, for pipes, which cannot be scanned."""
    may_lack_labels: bool = False
    """Whether rows without a label are accepted; their label is NaN."""
    table: TableOptions = TableOptions()  # noqa: RUF009 - it cannot change
    """Options for the columns of a table."""
    requires_rows: bool = False
    """Whether --sigma auto or --warm-up asks for the first rows of a stream before round 1."""
    may_grow: bool = True
    """Whether columns and categories are added to an open schema as they appear."""
    has_late_labels: bool = False
    """Whether a line with a label and no other cell is the label of an earlier row."""

    @property
    def learns_scale(self) -> bool:
        """Whether the scale is computed from the first rows."""
        return self.data.scale in LEARNED_SCALES

    @property
    def waits(self) -> bool:
        """Whether a stream has to wait for its first rows: for the scale, σ or means."""
        return self.requires_rows or self.learns_scale or self.table.missing == "mean"

    @property
    def learned(self) -> str:
        """The scale as text, with the number of rows from which it is computed."""
        if self.learns_scale:
            return f"{self.data.scale} of the first {self.data.warm_up}"
        return self.data.scale
