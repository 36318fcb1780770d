"""What a data file is like: the record that `ahpatron inspect DATA` makes.

Field names are the public contract of its `--format json`; they change only with `SCHEMA`.
"""

from __future__ import annotations

from dataclasses import dataclass

from ahpatron_cli.profile.distances import Alignment, Distances


@dataclass(frozen=True)
class LabelFacts:
    """Labels with their rows, and how they are played."""

    counts: tuple[tuple[float, int], ...]
    """Of at most 1,000 different labels, by label."""
    complete: bool
    """Whether these are all."""
    negative: float | None
    """Played as -1; None: every other label, or nothing."""
    positive: float | None
    """Played as +1; None where `problem` says why."""
    problem: str | None
    grouped: bool
    """Whether all rows of each label stand together."""


@dataclass(frozen=True)
class RowFacts:
    """Empty rows, lengths, and rows that appear again."""

    empty: int
    """Rows in which no value but 0 is."""
    shortest: float | None
    """The smallest Euclidean length of a row that is not empty."""
    longest: float | None
    compared: int
    """Duplicates were looked for among so many rows, the first ones."""
    duplicates: int
    """Rows that equal an earlier row."""
    duplicate_lines: tuple[int, int] | None
    contradictory: int
    """Rows whose features another row has with another label (with --positive: another sign)."""
    contradictory_lines: tuple[int, int] | None


@dataclass(frozen=True)
class FeatureRange:
    """One feature and the values that it takes."""

    index: int
    low: float
    high: float


@dataclass(frozen=True)
class FeatureFacts:
    """Ranges, and features that say nothing."""

    examined: int
    """Looked at one by one, the first ones; all numbers below are of these."""
    low: float | None
    high: float | None
    never_used: int
    """No value but 0."""
    constant: int
    """Another value than 0, the same in all rows."""
    within_0_1: int
    within_1_1: int
    """Between -1 and 1; those between 0 and 1 are among them."""
    widest: tuple[FeatureRange, ...]


@dataclass(frozen=True)
class FaultyLine:
    """One faulty line."""

    line: int
    column: int
    kind: str
    problem: str
    note: str


@dataclass(frozen=True)
class FaultFacts:
    """All faulty lines: how many, of which kinds, and the first ones."""

    count: int
    kinds: dict[str, int]
    first: tuple[FaultyLine, ...]
    stopped: bool
    """The last one made the rest of the file meaningless: it was not read."""


@dataclass(frozen=True)
class Scaling:
    """Which `--scale` is advised and why, and after which one distances were taken."""

    advised: str
    reason: str
    applied: str


@dataclass(frozen=True)
class Content:
    """What the rows of a file are like."""

    labels: LabelFacts
    row_facts: RowFacts
    feature_facts: FeatureFacts
    scaling: Scaling
    distances: Distances | None
    alignments: tuple[Alignment, ...]
    """A_T at the σ of the median heuristic, and at a σ that was asked for."""
    unknown: tuple[str, ...]
    """What could not be computed, and why."""


@dataclass(frozen=True)
class Profile:
    """All that `ahpatron inspect DATA` finds out."""

    path: str
    sha256: str | None
    rows: int
    features: int
    stored: int
    """Values written in the file."""
    density: float | None
    """Stored values per row and feature."""
    from_pipe: bool
    seed: int
    """Of the sample that distances and A_T may be taken from."""
    notes: tuple[str, ...]
    faults: FaultFacts
    content: Content | None
    """None where no row could be read."""
