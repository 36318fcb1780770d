"""From a source to its profile: one pass that feeds all sketches, then what follows from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass

import numpy as np

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.dataset import DENSE_SHARE, DENSE_WIDTH
from ahpatron_cli.data.geometry import (
    MOST_COMPARED,
    TOO_SMALL,
    TriedSigma,
    align,
    measure,
    try_learner,
    try_sigmas,
)
from ahpatron_cli.data.labels import LabelTally, class_fault, show
from ahpatron_cli.data.libsvm.grammar import MAX_FEATURES, Fault, hint_of
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.scaling import Scaler, scaled
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.tables import TableOptions, TableReader, is_table
from ahpatron_cli.numbers import short
from ahpatron_cli.profile.profile import (
    Content,
    FaultFacts,
    FaultyLine,
    FeatureFacts,
    FeatureRange,
    LabelFacts,
    Profile,
    RowFacts,
    Scaling,
)
from ahpatron_cli.profile.sketches import ColumnResult, Columns, RowsSeen, Sample

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


@dataclass
class Profiler:
    """Reads a source once. Memory is that of the sketches and of one chunk."""

    source: Source
    _: KW_ONLY
    max_features: int = MAX_FEATURES
    positive: float | None = None
    scale: str | None = None
    """None: the advised one."""
    sigma: float | None = None
    """Another σ to compute A_T for."""
    seed: int = 0
    table: TableOptions = TableOptions()  # noqa: RUF009 - it cannot change

    def run(self, on_progress: Callable[[int], None] = lambda rows: None) -> Profile:
        """The profile of all of it; `on_progress` gets the number of rows read so far."""
        source, kinds, first = self.source, Counter[str](), list[FaultyLine]()

        def take_fault(line: int, fault: Fault) -> None:
            kinds[fault.kind] += 1
            if len(first) < MOST_FAULTS:
                hint = hint_of(fault, source.name)
                told = line, fault.column, fault.kind, fault.problem, fault.note
                first.append(FaultyLine(*told, None if hint is None else str(hint)))

        reader: SvmReader | TableReader
        if is_table(source, self.table):
            reader = TableReader(source, self.table)  # whose first fault ends the reading
        else:
            reader = SvmReader(source, max_features=self.max_features, on_fault=take_fault)
        tally, columns, seen, sample = LabelTally(), Columns(), RowsSeen(), Sample(self.seed)
        for chunk in reader:
            tally.add(chunk.labels)
            columns.add(chunk.stored)
            classes = chunk.labels if self.positive is None else chunk.labels == self.positive
            seen.add(chunk.stored, classes, chunk.lines)
            sample.add(chunk.stored, chunk.labels)
            on_progress(reader.rows_read)
        rows, features, stored = reader.rows_read, reader.traits.features, reader.values_read
        return Profile(
            path=source.name,
            sha256=source.sha256(),
            rows=rows,
            features=features,
            stored=stored,
            density=stored / rows / features if rows and features else None,
            from_pipe=not source.rereadable,
            seed=self.seed,
            notes=reader.traits.notes,
            faults=FaultFacts(
                count=reader.faults,
                kinds=dict(sorted(kinds.items(), key=lambda one: (-one[1], one[0]))),
                first=tuple(first),
                stopped=reader.stopped,
            ),
            content=self._content(reader, tally, columns, seen, sample) if rows else None,
            table=self.table.words,
        )

    def _content(
        self,
        reader: SvmReader | TableReader,
        tally: LabelTally,
        ranges: Columns,
        seen: RowsSeen,
        drawn: Sample,
    ) -> Content:
        rows, traits = reader.rows_read, reader.traits
        columns = ranges.result(int(not traits.zero_based), traits.max_index + 1)
        labels, row_facts = _label_facts(tally, self.positive), seen.facts()
        feature_facts = _feature_facts(columns)
        sparse = reader.values_read < DENSE_SHARE * rows * traits.features
        advised, reason = _advise_scale(sparse, row_facts, feature_facts, columns, drawn.rows)
        scaling = Scaling(advised, reason, self.scale or advised)
        sample = _scaled(drawn.rows, scaling.applied, columns, traits.features)
        measured = measure(sample.slice(0, min(len(sample), MOST_COMPARED)))
        distances = None if isinstance(measured, str) else measured
        unknown = [f"distances and σ: {measured}"] if distances is None else []
        if labels.problem:
            unknown.append(f"A_T: {labels.problem}")
        elif labels.positive is None:
            unknown.append("A_T: requires two classes; --positive LABEL plays one of these")
        alignments = []
        signs = np.where(drawn.labels == labels.positive, 1.0, -1.0)
        for sigma in dict.fromkeys([distances.sigma if distances else None, self.sigma]):
            if sigma is None or labels.positive is None:
                continue
            found = align(sample, signs, sigma, rows)
            if found is None:
                unknown.append(f"A_T at σ = {short(sigma)}: {TOO_SMALL}")
            else:
                alignments.append(found)
        tried, metron = tuple[TriedSigma, ...](), None
        if distances and not labels.problem:
            encoded = signs if labels.positive is not None else drawn.labels
            tried = try_sigmas(sample, encoded, distances.sigma)
            metron = try_learner("metron", drawn.rows, encoded)
        facts = labels, row_facts, feature_facts, scaling, distances
        return Content(*facts, tuple(alignments), tuple(unknown), tried, metron)


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
    else:
        largest = np.maximum(np.abs(columns.low), np.abs(columns.high))
        largest[largest == 0] = 1.0
        spreads = columns.high / largest - columns.low / largest
        spreads[spreads == 0] = 1.0
        unused = np.ones(columns.first)
        largest, spreads = np.append(unused, largest), np.append(unused, spreads)
        rows = Scaler(largest, np.zeros(len(largest)), spreads)(sample)
    assert isinstance(rows, CsrRows)
    return rows


def _label_facts(tally: LabelTally, positive: float | None) -> LabelFacts:
    """How `run` would play these labels; `positive` is the one after --positive."""
    counts = tuple(sorted(tally.counts.items()))
    labels, complete = [label for label, _ in counts], not tally.overflowed
    pair: tuple[float | None, float | None] = None, None
    problem = None
    if positive is not None:
        others = [label for label in labels if label != positive]
        pair = others[0] if len(others) == 1 and complete else None, positive
        if positive not in labels and complete:
            pair = None, None
            problem = f"no row has the label {show(positive)} that --positive names"
    elif fault := class_fault(tally):
        problem = f"{fault}: --positive LABEL plays one label against all others"
    elif len(labels) == 1:
        problem = "all rows have the same label: there is nothing to learn"
    elif len(labels) == 2:
        pair = labels[0], labels[1]
    return LabelFacts(counts, complete, *pair, problem, tally.grouped)


def _advise_scale(
    sparse: bool,
    rows: RowFacts,
    features: FeatureFacts,
    columns: ColumnResult,
    sample: CsrRows,
) -> tuple[str, str]:
    """A value of --scale, and why.

    None is needed if all values are within -1..1, if all rows have length 1, or if features are of
    comparable size: the largest range is at most ten times the lower quartile of the ranges.
    Otherwise sparse rows (under 10 % stored) are scaled to length 1, and features of dense rows to
    0..1. Features are scaled to deviation 1 instead if 0..1 would squeeze many of them: more than a
    tenth of the features outside of -1..1 have their middle 98 % (of the sample) in a tenth of
    their range.
    """
    if features.low is None or features.high is None:
        return "none", "there are no features"
    if features.within_1_1 == features.examined:
        return "none", "all values lie between -1 and 1"
    shortest, longest = rows.shortest, rows.longest
    if shortest and longest and max(1 - shortest, longest - 1) < _UNIT_TOLERANCE:
        return "none", "all rows have length 1"
    spreads = columns.spreads()
    varying = spreads[spreads > 0]
    if not len(varying):
        return "none", "all features are constant"
    quartile = float(np.quantile(varying, 0.25, method="lower"))
    if varying.max() <= _COMPARABLE_RATIO * quartile:
        return "none", "the features are of comparable size"
    if sparse:
        return "unit", "the data are sparse, and the features are of very different size"
    why = "the features are of very different size"
    if sample.width <= DENSE_WIDTH and _has_tails(columns, sample):
        return "standard", f"{why}, and many of them have a few far larger values"
    return "minmax", why


def _has_tails(columns: ColumnResult, sample: CsrRows) -> bool:
    some = sample.slice(0, min(len(sample), MOST_COMPARED))
    dense = some.dense(columns.first + len(columns.low))[:, columns.first :]
    wide = np.maximum(-columns.low, columns.high) > 1.0
    half_low, half_high = np.quantile(dense[:, wide] / 2, [0.01, 0.99], axis=0)
    half_ranges = columns.high[wide] / 2 - columns.low[wide] / 2
    return bool(np.mean(half_high - half_low < _TAIL_SHARE * half_ranges) > _TAIL_SHARE)
