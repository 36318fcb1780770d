"""From a source to its profile: one pass that feeds three sketches, then what follows from them.

- `Columns`: smallest and largest value and count of each of the first 2^20 columns.
- `RowsSeen`: hash, label and line of each of the first 2 million rows.
- `Sample`: rows drawn at random, at most 4,000 rows and 2^20 values.

So the memory needed does not depend on the length of the file. Rows are compared by 64-bit hashes:
among 2 million rows any two that differ collide with probability 1e-7.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, row_sums
from ahpatron_cli.core.tally import Tally
from ahpatron_cli.data.dataset import DENSE_SHARE, DENSE_WIDTH
from ahpatron_cli.data.geometry import (
    MOST_COMPARED,
    TOO_SMALL,
    align,
    measure,
    row_hashes,
    try_learner,
    try_sigmas,
)
from ahpatron_cli.data.labels import LabelTally, class_fault, show
from ahpatron_cli.data.libsvm.grammar import MAX_FEATURES, Fault, hint_of
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.scaling import scaled
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.tables import TableOptions, TableReader, is_table
from ahpatron_cli.numbers import short
from ahpatron_cli.profile.profile import (
    FaultFacts,
    FaultyLine,
    FeatureFacts,
    FeatureRange,
    LabelCount,
    LabelFacts,
    Profile,
    RowFacts,
    Scaling,
)

MOST_FAULTS = 20
"""Faulty lines that are listed; all are counted."""
MOST_LISTED = 5
"""Features named singly: those of the largest range."""
_COMPARABLE_RATIO = 10.0
"""Ranges that differ by at most this factor need no scaling."""
_UNIT_TOLERANCE = 1e-3
"""Rows of a length this near to 1 are scaled already."""
_TAIL_SHARE = 0.1
"""A feature has a tail if its middle 98 % fill less than this share of its range."""
_BLOCK = 4096
MOST_COLUMNS = 1 << 20
MOST_FINGERPRINTS = 2_000_000
MOST_SAMPLED = 4000
MOST_SAMPLED_VALUES = 1 << 20


def profile_of(
    source: Source,
    *,
    max_features: int = MAX_FEATURES,
    positive: float | None = None,
    scale: str | None = None,
    sigma: float | None = None,
    seed: int = 0,
    table: TableOptions = TableOptions(),  # noqa: B008 - it cannot change
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Profile:
    """Read a source once, in bounded memory.

    Parameters
    ----------
    scale : str, optional
        Of the rows between which distances are computed; None: the advised one.
    sigma : float, optional
        Another σ to compute A_T for.
    on_progress : callable
        Gets the number of rows read so far.
    """
    kinds, first = Counter[str](), list[FaultyLine]()

    def take_fault(line: int, fault: Fault) -> None:
        kinds[fault.kind] += 1
        if len(first) < MOST_FAULTS:
            hint = hint_of(fault, source.name)
            what = fault.column, fault.kind, fault.problem, fault.note
            first.append(FaultyLine(line, *what, None if hint is None else str(hint)))

    reader: SvmReader | TableReader
    if is_table(source, table):
        reader = TableReader(source, table)  # whose first fault ends the reading
    else:
        reader = SvmReader(source, max_features=max_features, on_fault=take_fault)
    tally, columns, seen, sample = LabelTally(), Columns(), RowsSeen(), Sample(seed)
    for chunk in reader:
        tally.add(chunk.labels)
        columns.add(chunk.stored)
        classes = chunk.labels if positive is None else chunk.labels == positive
        seen.add(chunk.stored, classes, chunk.lines)
        sample.add(chunk.stored, chunk.labels)
        on_progress(reader.rows_read)
    rows, traits, stored = reader.rows_read, reader.traits, reader.values_read
    found: dict[str, Any] = {}
    if rows:
        index = int(not traits.zero_based)  # of the first column
        ranges = columns.result(index, traits.max_index + 1)
        row_facts, feature_facts = seen.facts(), _feature_facts(ranges, index)
        sparse = stored < DENSE_SHARE * rows * traits.features
        advised, reason = _advise_scale(
            sparse, row_facts, feature_facts, ranges, sample.rows, index
        )
        scaling = Scaling(advised, reason, scale or advised)
        schema = traits.schema
        names = {} if schema is None else {value: name for name, value in schema.labels.items()}
        labels = _label_facts(tally, positive, seen.labels(), names)
        found = {"labels": labels, "row_facts": row_facts, "feature_facts": feature_facts}
        found |= {"scaling": scaling, **_geometry(sample, labels, scaling.applied, sigma, rows)}
    return Profile(
        path=source.name,
        sha256=source.sha256(),
        rows=rows,
        features=traits.features,
        stored=stored,
        density=stored / rows / traits.features if rows and traits.features else None,
        from_pipe=not source.rereadable,
        seed=seed,
        notes=reader.traits.notes,
        faults=FaultFacts(reader.faults, dict(kinds.most_common()), tuple(first), reader.stopped),
        table=table.words,
        **found,
    )


def _geometry(
    sample: Sample, labels: LabelFacts, scale: str, asked: float | None, total: int
) -> dict[str, Any]:
    """Distances, A_T and values of σ tried, from a sample of `total` rows."""
    # columns that occur, numbered from 0, so that the sample is not wide
    used, numbers = np.unique(sample.rows.columns, return_inverse=True)
    narrow = CsrRows(sample.rows.indptr, numbers.astype(np.int32), sample.rows.values, len(used))
    rows = scaled(narrow, scale)
    assert isinstance(rows, CsrRows)
    measured = measure(rows.slice(0, min(len(rows), MOST_COMPARED)))
    distances = None if isinstance(measured, str) else measured
    unknown = [f"distances and σ: {measured}"] if distances is None else []
    if labels.problem:
        unknown.append(f"A_T: {labels.problem}")
    elif labels.positive is None:
        unknown.append("A_T: requires two classes; --positive LABEL selects one of these")
    alignments = []
    signs = np.where(sample.labels == labels.positive, 1.0, -1.0)
    for sigma in dict.fromkeys([distances.sigma if distances else None, asked]):
        if sigma is None or labels.positive is None:
            continue
        if (alignment := align(rows, signs, sigma, total)) is None:
            unknown.append(f"A_T at σ = {short(sigma)}: {TOO_SMALL}")
        else:
            alignments.append(alignment)
    found: dict[str, Any] = {"distances": distances, "alignments": tuple(alignments)}
    if distances and not labels.problem:
        encoded = sample.labels if labels.positive is None else signs
        found["tried"] = try_sigmas(rows, encoded, distances.sigma)
        found["tried_metron"] = try_learner("metron", sample.rows, encoded)
    return found | {"unknown": tuple(unknown)}


def _feature_facts(ranges: tuple[Floats, Floats, Integers], first: int) -> FeatureFacts:
    """Of the columns from `first` on."""
    low, high, count = ranges
    widest = np.argsort(low / 2 - high / 2, kind="stable")[:MOST_LISTED]
    return FeatureFacts(
        examined=len(low),
        low=float(low.min()) if len(low) else None,
        high=float(high.max()) if len(low) else None,
        never_used=int(np.count_nonzero(count == 0)),
        constant=int(np.count_nonzero((count > 0) & (low == high))),
        within_0_1=int(np.count_nonzero((low >= 0) & (high <= 1))),
        within_1_1=int(np.count_nonzero((low >= -1) & (high <= 1))),
        widest=tuple(
            FeatureRange(first + at, float(low[at]), float(high[at]))
            for at in widest.tolist()
            if low[at] < high[at]
        ),
    )


def _label_facts(
    tally: LabelTally, positive: float | None, in_order: Floats, names: Mapping[float, str]
) -> LabelFacts:
    """How `run` would encode these labels; `positive` is the one after --positive."""
    labels, complete = sorted(tally.counts), not tally.overflowed
    pair: tuple[float | None, float | None] = None, None
    problem = None
    if positive is not None and positive not in labels and complete:
        problem = f"no row has the label {show(positive)} that --positive names"
    elif positive is not None:
        others = [label for label in labels if label != positive]
        pair = others[0] if len(others) == 1 and complete else None, positive
    elif fault := class_fault(tally):
        problem = f"{fault}: --positive LABEL runs one label against all others"
    elif len(labels) == 1:
        problem = "all rows have the same label: there is nothing to learn"
    elif len(labels) == 2:
        pair = labels[0], labels[1]
    counts = tuple(LabelCount(one, tally.counts[one], names.get(one)) for one in labels)
    baseline = None if problem else _baseline(in_order)
    return LabelFacts(counts, complete, *pair, problem, tally.grouped, baseline)


def _baseline(labels: Floats) -> float:
    """Mistake rate of always predicting the most frequent label so far, as `run` counts it."""
    names, numbers = np.unique(labels, return_inverse=True)
    tally, shape = Tally.of(max(len(names), 2)), () if len(names) <= 2 else (len(names),)
    encoded = (numbers if shape else 2 * numbers - 1).astype(np.float64)
    for start in range(0, len(encoded), _BLOCK):
        block = encoded[start : start + _BLOCK]
        tally.count(np.zeros((len(block), *shape)), block)
    return tally.baseline_mistakes / len(labels)


def _advise_scale(
    sparse: bool,
    rows: RowFacts,
    features: FeatureFacts,
    ranges: tuple[Floats, Floats, Integers],
    sample: CsrRows,
    first: int,
) -> tuple[str, str]:
    """A value of --scale, and why.

    None is needed if all values are within -1..1, if all rows have length 1, or if features are of
    comparable size: the largest range is at most ten times the lower quartile of the ranges.
    Otherwise sparse rows (under 10 % stored) are scaled to length 1, and features of dense rows to
    0..1. Features are scaled to deviation 1 instead if 0..1 would squeeze many of them: more than a
    tenth of the features outside of -1..1 have their middle 98 % (of the sample) in a tenth of
    their range.
    """
    if not features.examined:
        return "none", "there are no features"
    if features.within_1_1 == features.examined:
        return "none", "all values lie between -1 and 1"
    shortest, longest = rows.shortest, rows.longest
    if shortest and longest and max(1 - shortest, longest - 1) < _UNIT_TOLERANCE:
        return "none", "all rows have length 1"
    low, high, _ = ranges
    halves = high / 2 - low / 2  # a whole range may not fit into a double
    varying = halves[halves > 0]
    if not len(varying):
        return "none", "all features are constant"
    if varying.max() / _COMPARABLE_RATIO <= np.quantile(varying, 0.25, method="lower"):
        return "none", "the features are of comparable size"
    why = "the features are of very different size"
    if sparse:
        return "unit", f"the data are sparse, and {why}"
    if sample.width <= DENSE_WIDTH:
        dense = sample.slice(0, min(len(sample), MOST_COMPARED)).dense(first + len(low))[:, first:]
        wide = np.maximum(-low, high) > 1.0
        middle = np.diff(np.quantile(dense[:, wide] / 2, [0.01, 0.99], axis=0), axis=0)
        if np.mean(middle < _TAIL_SHARE * halves[wide]) > _TAIL_SHARE:
            return "standard", f"{why}, and many of them have a few far larger values"
    return "minmax", why


# Sketches -----------------------------------------------------------------------------------------


class Columns:
    """Extremes of every column, zeros that are not stored included, and its values other than 0."""

    def __init__(self, limit: int = MOST_COLUMNS) -> None:
        self._limit, self._rows = limit, 0
        self._low, self._high = np.zeros(0), np.zeros(0)
        self._count = np.zeros(0, dtype=np.int64)

    def add(self, rows: CsrRows) -> None:
        """Take in the next rows."""
        self._rows += len(rows)
        taken = (rows.values != 0) & (rows.columns < self._limit)
        columns, values = rows.columns[taken], rows.values[taken]
        self._grow(min(rows.width, self._limit))
        np.minimum.at(self._low, columns, values)
        np.maximum.at(self._high, columns, values)
        np.add.at(self._count, columns, 1)

    def _grow(self, width: int) -> None:
        """Room doubles when it runs out, up to the limit."""
        have = len(self._low)
        if width > have:
            more = 0, min(max(width, 2 * have), self._limit) - have
            self._low = np.pad(self._low, more, constant_values=np.inf)
            self._high = np.pad(self._high, more, constant_values=-np.inf)
            self._count = np.pad(self._count, more)

    def result(self, first: int, stop: int) -> tuple[Floats, Floats, Integers]:
        """Smallest and largest values and counts of the columns `first` to `stop`, if looked at."""
        stop = max(min(stop, self._limit), first)
        self._grow(stop)
        part = slice(first, stop)
        sparse = self._count[part] < self._rows  # such a column has a zero somewhere
        low = np.where(sparse, np.minimum(self._low[part], 0.0), self._low[part])
        high = np.where(sparse, np.maximum(self._high[part], 0.0), self._high[part])
        return low, high, self._count[part]


class RowsSeen:
    """Lengths of rows, and a hash of each with its label and line, which finds those seen again."""

    def __init__(self, limit: int = MOST_FINGERPRINTS) -> None:
        self._left = limit
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._empty, self._shortest, self._longest = 0, math.inf, 0.0

    def add(self, rows: CsrRows, labels: NDArray[Any], lines: Integers) -> None:
        """Take in the next rows, and remember them while there is room."""
        lengths = _lengths(rows)
        self._empty += len(rows) - len(lengths)
        self._shortest = min(self._shortest, float(lengths.min(initial=math.inf)))
        self._longest = max(self._longest, float(lengths.max(initial=0.0)))
        if taken := min(len(rows), self._left):
            hashes = row_hashes(rows.slice(0, taken))
            self._parts.append((hashes, labels[:taken].copy(), lines[:taken].copy()))
            self._left -= taken

    def labels(self) -> Floats:
        """Those of the rows remembered, in order."""
        return np.concatenate([part[1] for part in self._parts])

    def facts(self) -> RowFacts:
        """Lengths, and how many rows equal an earlier one, or one of another label."""
        hashes, labels, lines = (np.concatenate(one) for one in zip(*self._parts, strict=True))
        order = np.lexsort((labels, hashes))
        hashes, labels, lines = hashes[order], labels[order], lines[order]
        same = hashes[1:] == hashes[:-1]
        differs = same & (labels[1:] != labels[:-1])
        starts = np.flatnonzero(np.append(True, ~same))
        mixed = np.add.reduceat(np.append(False, differs).astype(np.int64), starts) > 0
        return RowFacts(
            empty=self._empty,
            shortest=self._shortest if 0 < self._shortest < math.inf else None,
            longest=self._longest if 0 < self._longest < math.inf else None,
            compared=len(lines),
            duplicates=int(np.count_nonzero(same)),
            duplicate_lines=_earliest(lines, np.flatnonzero(same)),
            contradictory=int(np.diff(starts, append=len(lines))[mixed].sum()),
            contradictory_lines=_earliest(lines, np.flatnonzero(differs)),
        )


def _lengths(rows: CsrRows) -> Floats:
    """Euclidean lengths of rows that are not empty; 0 or infinite where squares do not fit."""
    used = row_sums(rows, (rows.values != 0).astype(np.float64)) > 0
    with np.errstate(over="ignore", under="ignore"):
        return np.sqrt(row_sums(rows, rows.values * rows.values)[used])


def _earliest(lines: Integers, places: Integers) -> tuple[int, int] | None:
    """Of the neighbours at these places and the next ones, the pair that is complete first."""
    if not len(places):
        return None
    pairs = np.sort(np.stack((lines[places], lines[places + 1])), axis=0)
    first, second = pairs[:, np.argmin(pairs[1])].tolist()
    return first, second


class Sample:
    """Rows drawn at random without replacement, in one pass and repeatably.

    Every row gets a random number; those with the smallest ones stay, in this order. So the first
    rows of a sample are a sample, too, and one that holds too many values is simply cut.
    """

    def __init__(
        self, seed: int, most_rows: int = MOST_SAMPLED, most_values: int = MOST_SAMPLED_VALUES
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._most_rows, self._most_values = most_rows, most_values
        self._drawn = np.zeros(0)
        self.labels: Floats = np.zeros(0)
        self.rows = CsrRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)

    def add(self, rows: CsrRows, labels: Floats) -> None:
        """Let the next rows take part."""
        drawn = self._random.random(len(rows))
        highest = self._drawn[-1] if len(self._drawn) >= self._most_rows else 1.0
        candidates = np.flatnonzero(drawn < highest)
        joined = CsrRows.concatenate([self.rows, rows.take(candidates)])
        drawn = np.append(self._drawn, drawn[candidates])
        order = np.argsort(drawn, kind="stable")[: self._most_rows]
        values = np.cumsum(np.diff(joined.indptr)[order])
        fitting = max(int(np.searchsorted(values, self._most_values, side="right")), 1)
        if fitting < len(order):
            self._most_rows, order = fitting, order[:fitting]
        self.rows, self._drawn = joined.take(order), drawn[order]
        self.labels = np.append(self.labels, labels[candidates])[order]
