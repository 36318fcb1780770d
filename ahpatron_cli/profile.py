"""The profile of a data file: the record and JSON document of `ahpatron inspect DATA`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ahpatron_cli import __version__
from ahpatron_cli.alignment import Alignment
from ahpatron_cli.overview import ColumnOverview
from ahpatron_cli.records import DOCUMENT_VERSION
from ahpatron_cli.sigma import TriedSigma

RARE = 0.1
"""Share of rows below which a class counts as rare."""


class LabelCount(Struct, frozen=True):
    """A label and the number of its rows."""

    label: float
    rows: int
    name: str | None = None
    """Name of the label in a table, unless it is a number."""


class TriedWeight(Struct, frozen=True, rename={"weight": "cost"}):
    """A weight of the rare label, and F1 of that label on the rows drawn at random."""

    weight: float
    f1: float


class FaultyLine(Struct, frozen=True):
    """Position and description of a fault, with a hint."""

    line: int
    column: int | None
    """Position in the line; None in a table, where the problem names the column."""
    problem: str
    hint: str | None


class Profile(
    Struct,
    frozen=True,
    kw_only=True,
    rename={"tried_weights": "tried_costs", "confirmed_weight": "confirmed_cost"},
):
    """The result of `ahpatron inspect DATA`; also its JSON document.

    Fields from `examined` on are statistics of the first rows; null if they cannot be computed.
    """

    schema: int = DOCUMENT_VERSION
    version: str = __version__
    path: str
    sha256: str | None
    from_pipe: bool
    notes: tuple[str, ...]
    rows: int
    features: int
    density: float | None
    """Share of nonzero values."""
    labels: tuple[LabelCount, ...] = ()
    """Counts of at most 1,000 distinct labels, sorted by label."""
    all_labels: bool = True
    """Whether `labels` is complete."""
    negative: float | None = None
    """The label that `run` encodes as -1; None if it is all others, or if there is none."""
    positive: float | None = None
    """The label that `run` encodes as +1; None for several classes or with a `label_problem`."""
    label_problem: str | None = None
    unlabelled: int = 0
    """Number of rows without a label."""
    grouped: bool = False
    """Whether the rows are grouped by label."""
    faults: int
    """Number of faulty lines."""
    faulty_lines: tuple[FaultyLine, ...]
    """The first faulty lines."""
    stopped: bool
    """Whether the last fault made the rest of the file meaningless, so that it was not read."""
    examined: int = 0
    """Number of first rows from which the statistics are computed."""
    baseline: float | None = None
    """Mistake rate of always predicting the most frequent label so far, in file order."""
    duplicates: int | None = None
    """Number of rows that equal an earlier row, by 64-bit hashes."""
    contradictory: int | None = None
    """Number of duplicates whose label differs from that of the first equal row."""
    low: float | None = None
    high: float | None = None
    constant: int | None = None
    """Number of features with the same value in all rows, most often 0."""
    widest: tuple[int | str, float, float] | None = None
    """The feature with the largest range (index, or name in a table), its minimum and maximum."""
    advised_scale: str | None = None
    reason: str | None = None
    scale: str | None = None
    """The scaling applied before computing all fields below."""
    sigma: float | None = None
    """The median nonzero distance between two rows."""
    sigma_low: float | None = None
    """Smallest σ for which at least 5 % of the pairs of rows have κ >= 0.05."""
    sigma_high: float | None = None
    """Largest σ for which at least 5 % of the pairs of rows have κ <= 0.95."""
    alignments: tuple[Alignment, ...] = ()
    """A_T at the median σ, and at the σ given by --sigma."""
    unknown: tuple[str, ...] = ()
    """Statistics that could not be computed, with the reason."""
    tried: tuple[TriedSigma, ...] = ()
    """Results of the values of σ that were tried, the best first."""
    tried_metron: float | None = None
    """Mistake rate of metron on the same rows, without scaling."""
    tried_weights: tuple[TriedWeight, ...] = ()
    """F1 with several weights of a rare label, of the suggested learner; first with weight 1."""
    confirmed_weight: bool | None = None
    """Whether the weight with the largest F1 also does not lower F1 on the first rows of the file;
    null if none was tried."""
    advice: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    """Suggested next commands."""
    columns: tuple[ColumnOverview, ...] = ()
    """The columns of a table; of one in a pipe, those that are used."""


def rare_label(labels: Sequence[LabelCount]) -> LabelCount | None:
    """The rarer of two labels, if it is rare; else None."""
    if len(labels) != 2:
        return None
    rarer = min(labels, key=lambda one: one.rows)
    rows = sum(one.rows for one in labels)
    if rarer.rows < RARE * rows:
        return rarer
    return None
