"""From a source to its profile: one pass that feeds all sketches, then what follows from them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats, row_sums
from ahpatron_cli.data.compact import Traits
from ahpatron_cli.data.dataset import DENSE_WIDTH
from ahpatron_cli.data.geometry import TOO_SMALL
from ahpatron_cli.data.libsvm.grammar import MAX_FEATURES, Fault, hint_of
from ahpatron_cli.data.libsvm.reader import Chunk, SvmReader
from ahpatron_cli.data.scaling import scaled
from ahpatron_cli.data.source import Source
from ahpatron_cli.numbers import short
from ahpatron_cli.profile.distances import MOST_COMPARED, align, measure
from ahpatron_cli.profile.profile import (
    SPARSE_DENSITY,
    SUGGESTED_LEARNER,
    Content,
    FaultFacts,
    FaultyLine,
    FeatureFacts,
    FeatureRange,
    Profile,
    RowFacts,
    Scaling,
    TriedSigma,
    advise_scale,
    played,
)
from ahpatron_cli.profile.sketches import ColumnResult, Columns, Fingerprints, LabelTally, Sample

TRIED_FACTORS = (1.0, 0.5, 0.25, 0.125, 2.0)
"""Values of σ that are played, as multiples of the median distance (that of --sigma auto)."""
FEWEST_TRIED_ROWS, MOST_TRIED_ROWS = 200, 1000
"""Rows that they are played on: in all at most a second."""
MOST_TRIED_CLASSES = 100
MOST_LISTED = 5
"""Features named singly: those of the largest range."""


@dataclass(frozen=True)
class Wanted:
    """What is asked of a profile."""

    max_faults: int = 20
    max_features: int = MAX_FEATURES
    positive: float | None = None
    scale: str | None = None
    """None: the advised one."""
    sigma: float | None = None
    """Another σ to compute A_T for."""
    seed: int = 0


class Profiler:
    """Reads a source once. Memory is that of the sketches and of one chunk."""

    def __init__(self, source: Source, wanted: Wanted) -> None:
        self._source = source
        self._wanted = wanted
        self._labels = LabelTally()
        self._columns = Columns()
        self._fingerprints = Fingerprints()
        self._sample = Sample(wanted.seed)
        self._lengths = _Lengths()
        self._kinds: dict[str, int] = {}
        self._faults: list[FaultyLine] = []
        self._stopped = False
        limit = wanted.max_features
        self._reader = SvmReader(source, max_features=limit, on_fault=self._take_fault)

    def run(self, on_progress: Callable[[int], None] = lambda rows: None) -> Profile:
        """The profile of all of it; `on_progress` is told how many rows were read so far."""
        for chunk in self._reader:
            self._take(chunk)
            on_progress(self._reader.rows_read)
        return self._profile()

    def _take(self, chunk: Chunk) -> None:
        self._labels.add(chunk.labels)
        self._columns.add(chunk.rows)
        positive = self._wanted.positive
        classes = chunk.labels if positive is None else (chunk.labels == positive).astype(float)
        self._fingerprints.add(chunk.rows, classes, chunk.lines)
        self._sample.add(chunk.rows, chunk.labels)
        self._lengths.add(chunk.rows)

    def _take_fault(self, line: int, fault: Fault) -> None:
        self._kinds[fault.kind] = self._kinds.get(fault.kind, 0) + 1
        if len(self._faults) < self._wanted.max_faults:
            hint = hint_of(fault, self._source.name)
            told = FaultyLine(line, fault.column, fault.kind, fault.problem, fault.note, hint)
            self._faults.append(told)
        self._stopped = fault.whole_file

    def _profile(self) -> Profile:
        reader, source, traits = self._reader, self._source, Traits.of(self._reader)
        rows, features, stored = reader.rows_read, traits.features, reader.counts["values"]
        return Profile(
            path=source.name,
            sha256=source.sha256(),
            rows=rows,
            features=features,
            stored=stored,
            density=stored / rows / features if rows and features else None,
            from_pipe=not source.rereadable,
            seed=self._wanted.seed,
            notes=traits.notes,
            faults=FaultFacts(
                count=reader.counts["faults"],
                kinds=dict(sorted(self._kinds.items(), key=lambda one: (-one[1], one[0]))),
                first=tuple(self._faults),
                stopped=self._stopped,
            ),
            content=self._content(features) if rows else None,
        )

    def _content(self, features: int) -> Content:
        wanted, rows, sample = self._wanted, self._reader.rows_read, self._sample.rows
        assert sample is not None
        columns = self._columns.result(int(not self._reader.zero_based), self._reader.max_index + 1)
        labels = played(self._labels, wanted.positive)
        row_facts = self._row_facts()
        feature_facts = _feature_facts(columns)
        sparse = self._reader.counts["values"] < SPARSE_DENSITY * rows * features
        advised, reason = advise_scale(sparse, row_facts, feature_facts, columns, sample)
        scaling = Scaling(advised, reason, wanted.scale or advised)
        sample = _scaled(sample, scaling.applied, columns, features)
        measured = measure(sample.slice(0, min(len(sample), MOST_COMPARED)))
        distances, unknown = None, []
        if isinstance(measured, str):
            unknown.append(f"distances and σ: {measured}")
        else:
            distances = measured
        if labels.problem:
            unknown.append(f"A_T: {labels.problem}")
        elif labels.positive is None:
            unknown.append("A_T: requires two classes; --positive LABEL plays one of these")
        alignments = []
        signs = np.where(self._sample.labels == labels.positive, 1.0, -1.0)
        widths = [distances.sigma if distances else None, wanted.sigma]
        for sigma in dict.fromkeys(widths):
            if sigma is None or labels.positive is None:
                continue
            found = align(sample, signs, sigma, rows)
            if found is None:
                unknown.append(f"A_T at σ = {short(sigma)}: {TOO_SMALL}")
            else:
                alignments.append(found)
        tried: tuple[TriedSigma, ...] = ()
        if distances and not labels.problem:
            played_as = signs if labels.positive is not None else self._sample.labels
            tried = _tried(sample, played_as, distances.sigma)
        facts = labels, row_facts, feature_facts, scaling, distances
        return Content(*facts, tuple(alignments), tuple(unknown), tried)

    def _row_facts(self) -> RowFacts:
        lengths, repeats = self._lengths, self._fingerprints.result()
        return RowFacts(
            empty=lengths.empty,
            shortest=lengths.shortest if math.isfinite(lengths.shortest) else None,
            longest=lengths.longest if 0 < lengths.longest < math.inf else None,
            compared=self._fingerprints.count,
            **vars(repeats),
        )


class _Lengths:
    """The shortest and the longest row that is not empty."""

    def __init__(self) -> None:
        self.empty = 0
        self.shortest = math.inf
        self.longest = 0.0

    def add(self, rows: CsrRows) -> None:
        """Euclidean lengths, in units of 2^e so that no square overflows or underflows."""
        exponents = np.frexp(rows.values)[1]
        exponent = int(exponents.max(initial=-2000))
        values = np.ldexp(rows.values, -exponent)
        used = row_sums(rows, (rows.values != 0).astype(np.float64)) > 0
        with np.errstate(over="ignore"):
            lengths = np.ldexp(np.sqrt(row_sums(rows, values * values)[used]), exponent)
        self.empty += len(rows) - len(lengths)
        self.shortest = min(self.shortest, float(lengths.min(initial=math.inf)))
        self.longest = max(self.longest, float(lengths.max(initial=0.0)))


def _tried(sample: CsrRows, labels: Floats, median: float) -> tuple[TriedSigma, ...]:
    """Play some values of σ around the median distance; the best first, then the nearest to it."""
    from ahpatron_cli.core.errors import NumericalError
    from ahpatron_cli.core.kernels import Gaussian
    from ahpatron_cli.core.learners import REGISTRY
    from ahpatron_cli.core.multiclass import make_player

    names, numbers = np.unique(labels, return_inverse=True)
    rounds = min(len(sample), MOST_TRIED_ROWS)
    if rounds < FEWEST_TRIED_ROWS or not 2 <= len(names) <= MOST_TRIED_CLASSES:
        return ()
    rows = sample.slice(0, rounds)
    dense = rows.width <= DENSE_WIDTH and len(rows.values) >= SPARSE_DENSITY * rounds * rows.width
    played = numbers.astype(np.float64)
    if len(names) == 2:
        played = 2 * played - 1
    found = []
    for factor in TRIED_FACTORS:
        learner = REGISTRY[SUGGESTED_LEARNER]()  # with its own defaults, as the suggested run
        sigma = factor * median
        player = make_player(
            learner, Gaussian(sigma=sigma), classes=len(names), seed=(0,), horizon=rounds
        )
        try:
            player.feed(rows.dense() if dense else rows, played[:rounds])
        except NumericalError:
            return ()
        found.append(TriedSigma(sigma, rounds, player.tally.mistakes / rounds))
    return tuple(
        sorted(found, key=lambda one: (one.mistake_rate, abs(math.log(one.sigma / median))))
    )


def _feature_facts(columns: ColumnResult) -> FeatureFacts:
    low, high, count = columns.low, columns.high, columns.count
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
            FeatureRange(columns.first + at, float(low[at]), float(high[at]))
            for at in widest.tolist()
            if low[at] < high[at]
        ),
    )


def _scaled(sample: CsrRows, scale: str, columns: ColumnResult, features: int) -> CsrRows:
    """The sample as `run --scale` would play it, but for shifts, which no distance sees.

    Ranges for `minmax` are those of all rows, where all columns were looked at; means and
    deviations are those of the sample.
    """
    if scale != "minmax" or len(columns.low) < features:
        used, numbers = np.unique(sample.columns, return_inverse=True)  # so that it is not wide
        narrow = CsrRows(sample.indptr, numbers.astype(np.int32), sample.values, len(used))
        rows = scaled(narrow, scale)
        assert isinstance(rows, CsrRows)
        return rows
    largest = np.maximum(np.abs(columns.low), np.abs(columns.high))
    largest[largest == 0] = 1.0
    spreads = columns.high / largest - columns.low / largest
    spreads[spreads == 0] = 1.0
    places = sample.columns - columns.first
    values = sample.values / largest[places] / spreads[places]
    return CsrRows(sample.indptr, sample.columns, values, sample.width)
