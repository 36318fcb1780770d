"""Computing the profile of a data file, with advice.

One pass counts rows, labels and faults of the whole file. The first rows are kept as a matrix of
bounded size, from which all statistics are computed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from ahpatron_cli.advice import advice_on, advice_on_columns, advice_on_faults, next_commands
from ahpatron_cli.alignment import Alignment, align
from ahpatron_cli.core import Gaussian, Kernel
from ahpatron_cli.core.rows import CsrRows, Floats, row_sums, sliced
from ahpatron_cli.core.tally import Tally
from ahpatron_cli.data.batch import Batch, Reader
from ahpatron_cli.data.cell_reader import CellReader
from ahpatron_cli.data.file_formats import is_table, open_reader
from ahpatron_cli.data.hashes import row_hashes
from ahpatron_cli.data.inference import pandas_index
from ahpatron_cli.data.labels import LabelTally, class_fault, show
from ahpatron_cli.data.layout import is_filled
from ahpatron_cli.data.libsvm.grammar import Fault, hint_of
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.readers import reader_of
from ahpatron_cli.data.scaling import scaled
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.data.table_statistics import no_rows
from ahpatron_cli.data.tables import TableReader, read_names
from ahpatron_cli.errors import UserError
from ahpatron_cli.metrics import metrics_of
from ahpatron_cli.number_text import short
from ahpatron_cli.overview import Overview
from ahpatron_cli.profile import FaultyLine, LabelCount, Profile, TriedWeight, rare_label
from ahpatron_cli.settings import Data
from ahpatron_cli.sigma import (
    MOST_TRIED_ROWS,
    SUGGESTED_LEARNER,
    TOO_SMALL,
    best_sigma,
    is_best,
    sigma_range,
    try_learner,
    try_sigmas,
)

MOST_VALUES = 1 << 21
"""Largest number of values plus rows of the matrix (about 75 MB with copies)."""
MOST_COLUMNS = 1 << 20
"""Number of first features for which statistics are computed."""
MOST_SAMPLED = 4000
"""Largest number of randomly drawn rows for distances and A_T."""
MOST_SAMPLED_VALUES = 1 << 20
"""Largest number of values of these rows."""
MOST_FAULTS = 20
"""Largest number of faulty lines that are listed; all are counted."""
TRIED_WEIGHTS = (2.0, 5.0, 10.0, 20.0)
"""Weights of a rare label that are tried."""
_COMPARABLE_RATIO = 10.0
"""Largest ratio of feature ranges that needs no scaling."""
_UNIT_TOLERANCE = 1e-3
"""Tolerance for rows of length 1."""


def profile_of(
    source: Source,
    *,
    data: Data = Data(),  # noqa: B008 - it cannot change
    positive: float | None = None,
    scale: str | None = None,
    sigma: float | None = None,
    seed: int = 0,
    table: TableOptions = TableOptions(),  # noqa: B008 - it cannot change
    on_progress: Callable[[int], None] = lambda rows: None,
) -> Profile:
    """Compute the profile of a source with bounded memory; of a table without a label its columns.

    Pipes are read once; tables in files another time for their columns.

    Parameters
    ----------
    scale : str, optional
        Scaling of the rows for distances; None selects the advised one.
    sigma : float, optional
        A further σ for which A_T is computed.
    seed : int
        Seed for drawing the rows for distances, A_T and trying values of σ.
    on_progress : callable
        Called with the number of rows read so far.
    """
    if table.label is None and is_table(source, table):
        return _profile_without_label(source, table, on_progress)
    faults = _Faults(source.name)
    preparation = Preparation(data, may_lack_labels=True, table=table)
    reader = reader_of(source, preparation, faults=faults)
    overview = _overview_of_file(source, reader, table)
    tally, head = _read(reader, on_progress)
    profile = _profile_of_file(source, reader, faults=faults, overview=overview)
    if reader.rows_read:
        profile = _with_labels(profile, tally, reader=reader, positive=positive)
        profile = _with_head(profile, head, reader, positive=positive, scale=scale)
        profile = _with_geometry(profile, head, seed=seed, asked=sigma)
    return _with_advice(profile, table)


def _with_advice(profile: Profile, table: TableOptions) -> Profile:
    """A profile with what follows from it for the user."""
    advice = tuple(advice_on(profile))
    commands = tuple(next_commands(profile, table))
    return replace(profile, advice=advice, next=commands)


def _overview_of_file(source: Source, reader: Reader, table: TableOptions) -> Overview | None:
    """The overview of a table: of a file at once, with all columns; of a pipe while it is read."""
    if not isinstance(reader, TableReader):
        return None
    if not source.rereadable:
        names = [column.name for column in reader.schema.columns]
        special = (table.label, table.id)
        names += [name for name in special if name]
        overview = _new_overview(names, table)
        reader.on_cells = overview.add
        return overview
    with open_source(source.name) as again:
        cells = open_reader(again, lambda fault: None, table.spelling)
        cells.undivided = table.undivided(None)
        read_names(again, cells, on_fault=lambda fault: None)
        overview = _new_overview(cells.names, table)
        with suppress(UserError):  # the reader reports it
            _add_all(overview, cells, table)
    return overview


def _new_overview(names: Sequence[str], table: TableOptions) -> Overview:
    """An overview of these columns, by the options of the table."""
    return Overview(
        names,
        table,
        dropped=[*table.drop, *pandas_index(names)],
    )


def _add_all(
    overview: Overview,
    reader: CellReader,
    table: TableOptions,
    on_progress: Callable[[int], None] = lambda rows: None,
) -> None:
    """Add all rows that a reader returns."""
    exact: list[str] = []
    if table.id:
        exact = [table.id]
    named = (table.label, table.id, *table.category)
    text = {name for name in named if name}
    for cells in reader.batches(set(reader.names), text):
        cleaned = table.spelling.cleaned(cells, exact, text)
        overview.add(cleaned)
        on_progress(overview.rows)


def _profile_without_label(
    source: Source, table: TableOptions, on_progress: Callable[[int], None]
) -> Profile:
    """The columns of a table of which the column of labels is not known."""
    faults = _Faults(source.name)
    stopped = False
    reader = open_reader(source, faults.add_of_table, table.spelling)
    reader.undivided = table.undivided(None)
    read_names(source, reader, on_fault=lambda fault: None)
    overview = _new_overview(reader.names, table)
    try:
        _add_all(overview, reader, table=table, on_progress=on_progress)
    except UserError as fault:
        faults.add_of_table(fault)
        stopped = True
    if not overview.rows and not faults.count:
        raise no_rows(reader.path)
    columns = overview.columns()
    profile = Profile(
        path=source.name,
        sha256=source.sha256(),
        from_pipe=not source.rereadable,
        notes=(),
        rows=overview.rows,
        features=len(columns),
        density=None,
        faults=faults.count,
        faulty_lines=tuple(faults.lines),
        stopped=stopped,
        columns=columns,
    )
    advice = [
        *advice_on_faults(profile),
        "name the column of labels, --label COLUMN, to see how many mistakes a rule on each column "
        "alone makes, and what fits the data",
        *advice_on_columns(profile),
        *overview.suspicions(reader.leading_zeros),  # with labels, they are among the notes
    ]
    return replace(profile, advice=tuple(advice))


def _read(reader: Reader, on_progress: Callable[[int], None]) -> tuple[LabelTally, _Head]:
    """Read a file to its end; return the counts of its labels and its first rows."""
    tally = LabelTally()
    head = _Head()
    for batch in reader:
        tally.add(batch.labels)
        head.add(batch)
        on_progress(reader.rows_read)
    return tally, head


def _profile_of_file(
    source: Source,
    reader: Reader,
    faults: _Faults,
    overview: Overview | None,
) -> Profile:
    """The profile of the whole file, after it has been read."""
    rows = reader.rows_read
    info = reader.info
    columns = overview.columns() if overview else ()
    density = None
    if rows and info.features:
        density = reader.values_read / rows / info.features
    return Profile(
        path=source.name,
        sha256=source.sha256(),
        from_pipe=not source.rereadable,
        notes=info.notes,
        rows=rows,
        features=info.features,
        density=density,
        faults=reader.faults,
        faulty_lines=tuple(sorted(faults.lines, key=lambda one: one.line)),
        stopped=reader.stopped,
        columns=columns,
    )


class _Faults:
    """The first faulty lines of a file, and the number of all."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.count = 0
        self.lines: list[FaultyLine] = []

    def add(self, line: int, fault: Fault) -> None:
        """Take note of a fault in LIBSVM text."""
        self.count += 1
        if len(self.lines) >= MOST_FAULTS:
            return
        problem = fault.problem
        if fault.note:
            problem += f" ({fault.note})"
        hint = hint_of(fault, self._path)
        found = FaultyLine(line, column=fault.column, problem=problem, hint=hint)
        self.lines.append(found)

    def add_of_table(self, fault: UserError) -> None:
        """Take note of a fault in a table."""
        self.count += 1
        if len(self.lines) >= MOST_FAULTS:
            return
        line = fault.place.line if fault.place else None
        self.lines.append(
            FaultyLine(line or 1, column=None, problem=fault.problem, hint=fault.hint)
        )


class _Head:
    """The first rows of a file, as many as `MOST_VALUES` allows."""

    def __init__(self) -> None:
        self._room = MOST_VALUES
        self._parts: list[CsrRows] = []
        self._hashes: list[NDArray[np.uint64]] = []
        self._labels: list[Floats] = []

    def add(self, batch: Batch) -> None:
        """Keep those of the next rows for which there is room."""
        part = batch.stored.without_zeros()
        rows_before = np.arange(len(part) + 1)
        sizes = part.indptr + rows_before  # an empty row needs memory, too
        fitting = np.searchsorted(sizes, self._room, "right")
        count = int(fitting) - 1
        if count:
            kept = part.slice(0, count)
            self._parts.append(kept)
            self._hashes.append(row_hashes(kept))
            self._labels.append(batch.labels[:count])
        if count == len(part):
            self._room -= int(sizes[count])
        else:
            self._room = 0

    @cached_property
    def matrix(self) -> CsrRows:
        """The rows, without stored zeros."""
        matrix = CsrRows.concatenate(self._parts)
        self._parts.clear()
        return matrix

    @cached_property
    def labels(self) -> Floats:
        """Label of each row; NaN if there is none."""
        return np.concatenate(self._labels)

    @cached_property
    def labelled(self) -> NDArray[np.bool_]:
        """Whether each row has a label."""
        return ~np.isnan(self.labels)

    @cached_property
    def hashes(self) -> NDArray[np.uint64]:
        """Hash of each row."""
        return np.concatenate(self._hashes)


def _with_head(
    profile: Profile,
    head: _Head,
    reader: Reader,
    *,
    positive: float | None,
    scale: str | None,
) -> Profile:
    """A profile with fields on the first rows; `positive` and `scale` are values of options."""
    classes = head.labels
    if positive is not None:
        is_positive = classes == positive
        classes = np.where(head.labelled, is_positive, np.nan)
    info = reader.info
    first = 0 if info.zero_based else 1
    duplicates = _duplicates(head.hashes, classes, head.labelled)
    width = info.max_index + 1
    ranges = _ranges(head.matrix, width=width, first=first, schema=reader.schema)
    profile = replace(profile, **duplicates, **ranges)
    if reader.schema is not None and profile.widest is not None:
        feature, low, high = profile.widest
        name = reader.schema.features[int(feature) - 1]
        profile = replace(profile, widest=(name, low, high))
    if not profile.label_problem:
        profile = replace(profile, baseline=_baseline(classes[head.labelled]))
    return replace(profile, scale=scale or profile.advised_scale)


def _draw(head: _Head, seed: int) -> NDArray[np.int64]:
    """Numbers of rows with a label, drawn at random, with a bounded number of values."""
    labelled = np.flatnonzero(head.labelled)
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(labelled)[:MOST_SAMPLED]
    sizes = np.diff(head.matrix.indptr)
    totals = np.cumsum(sizes[drawn])
    count = int(np.searchsorted(totals, MOST_SAMPLED_VALUES, "right"))
    return drawn[: max(count, 1)]


def _with_labels(
    profile: Profile, tally: LabelTally, reader: Reader, positive: float | None
) -> Profile:
    """A profile with how `run` would encode these labels; `positive` is the value of --positive."""
    labels = sorted(tally.counts)
    complete = not tally.overflowed
    unlabelled = reader.rows_read - tally.rows
    negative: float | None = None
    encoded_positive: float | None = None
    problem = None
    are_known = complete and bool(labels)
    may_occur = positive in labels or not are_known
    if positive is not None and not may_occur:
        problem = f"no row has the label {show(positive)} that --positive names"
    elif positive is not None:
        others = [label for label in labels if label != positive]
        if len(others) == 1 and complete:
            negative = others[0]
        encoded_positive = positive
    elif fault := class_fault(tally):
        problem = f"{fault}: --positive LABEL runs one label against all others"
    elif not labels:
        problem = "no row has a label: there is nothing to learn"
    elif len(labels) == 1:
        which = "all rows with a label" if unlabelled else "all rows"
        problem = f"{which} have the same label: there is nothing to learn"
    elif len(labels) == 2:
        negative, encoded_positive = labels
    return replace(
        profile,
        labels=_label_counts(tally, reader.schema),
        unlabelled=unlabelled,
        all_labels=complete,
        negative=negative,
        positive=encoded_positive,
        label_problem=problem,
        grouped=tally.grouped,
    )


def _label_counts(tally: LabelTally, schema: Schema | None) -> tuple[LabelCount, ...]:
    """The labels with their counts, sorted by label, and with their names in a table."""
    names: dict[float, str] = {}
    if schema:
        names = {value: name for name, value in schema.labels.items()}
    counts = []
    for label, rows in sorted(tally.counts.items()):
        count = LabelCount(label, rows, names.get(label))
        counts.append(count)
    return tuple(counts)


def _baseline(labels: Floats) -> float:
    """Mistake rate of always predicting the most frequent label so far, as `run` counts it."""
    names, numbers = np.unique(labels, return_inverse=True)
    scores_per_row: tuple[int, ...] = ()
    if len(names) > 2:
        scores_per_row = (len(names),)
        encoded = numbers.astype(np.float64)
    else:
        signs = 2 * numbers - 1
        encoded = signs.astype(np.float64)
    classes = max(len(names), 2)
    tally = Tally.of(classes)
    pieces = len(encoded) // 4096 + 1
    for block in np.array_split(encoded, pieces):
        shape = (len(block), *scores_per_row)
        tally.count(np.zeros(shape), block)
    return tally.baseline_mistakes / len(labels)


def _duplicates(
    hashes: NDArray[np.uint64], labels: Floats, labelled: NDArray[np.bool_]
) -> dict[str, Any]:
    """Fields on rows that equal others."""
    known = labels[labelled]
    own = hashes[labelled]
    _, earliest, group = np.unique(own, return_index=True, return_inverse=True)
    of_earliest = known[earliest]
    contradicts = known != of_earliest[group]
    examined = len(hashes)
    distinct = len(np.unique(hashes))
    return {
        "examined": examined,
        "duplicates": examined - distinct,
        "contradictory": int(np.count_nonzero(contradicts)),
    }


def _ranges(rows: CsrRows, *, width: int, first: int, schema: Schema | None) -> dict[str, Any]:
    """Fields on the ranges of features and advised scaling; features are columns from `first`."""
    examined = min(width, MOST_COLUMNS)
    looked_at = max(examined, first)
    low, high = _bounds(rows, looked_at)
    low = low[first:]
    high = high[first:]
    halves = high / 2 - low / 2  # the full range may overflow a double
    with np.errstate(over="ignore", under="ignore"):
        squares = rows.values * rows.values
        lengths = np.sqrt(row_sums(rows, squares))
    nonzero = lengths[lengths > 0]
    deviations = abs(nonzero - 1)
    unit = bool(np.all(deviations < _UNIT_TOLERANCE))
    width = len(low)
    filled = is_filled(len(rows), width, stored=len(rows.values))
    kinds = {column.kind for column in schema.columns} if schema else {"number"}
    are_alike = kinds == {"number"}
    sparse = not filled and are_alike
    scale, reason = _advise_scale(low, high, halves, unit=unit, sparse=sparse)
    facts: dict[str, Any] = {
        "low": None,
        "high": None,
        "constant": int(np.count_nonzero(low == high)),
        "widest": None,
        "advised_scale": scale,
        "reason": reason,
    }
    if len(low):
        widest = int(np.argmax(halves))
        lowest = float(low[widest])
        highest = float(high[widest])
        facts["low"] = float(low.min())
        facts["high"] = float(high.max())
        facts["widest"] = (first + widest, lowest, highest)
    return facts


def _bounds(rows: CsrRows, width: int) -> tuple[Floats, Floats]:
    """Smallest and largest value of each of the first `width` columns."""
    looked = rows.columns < width
    columns = rows.columns[looked]
    values = rows.values[looked]
    # values that are not stored are 0; a feature that is stored in every row has no zeros
    counts = np.bincount(columns, minlength=width)
    zero = counts < len(rows)
    low = np.where(zero, 0.0, np.inf)
    high = np.where(zero, 0.0, -np.inf)
    np.minimum.at(low, columns, values)
    np.maximum.at(high, columns, values)
    return low, high


def _advise_scale(
    low: Floats, high: Floats, halves: Floats, *, unit: bool, sparse: bool
) -> tuple[str, str]:
    """The advised value of --scale, and the reason.

    It is "none" if all values are within -1..1, if all rows have length 1, or if features are of
    comparable size: the largest range is at most ten times the lower quartile of the ranges.
    Otherwise sparse rows (under 10 % stored) are scaled to length 1, and features of dense rows to
    0..1. Rows with dates or categories are never `sparse`: the length would be that of a date.
    """
    varying = halves[halves > 0]
    if not len(low):
        return "none", "there are no features"
    if not len(varying):
        return "none", "all features are constant"
    lowest = low.min()
    highest = high.max()
    if lowest >= -1 and highest <= 1:
        return "none", "all values lie between -1 and 1"
    if unit:
        return "none", "all rows have length 1"
    quartile = np.quantile(varying, 0.25, method="lower")
    if varying.max() / _COMPARABLE_RATIO <= quartile:
        return "none", "the features are of comparable size"
    why = "the features are of very different size"
    if sparse:
        return "unit", f"the data are sparse, and {why}"
    return "minmax", why


class _Sample(NamedTuple):
    """Rows drawn at random, with their labels."""

    drawn: CsrRows
    """The rows as they are."""
    rows: CsrRows
    """The same rows, scaled, without columns that do not occur."""
    labels: Floats

    def signs(self, positive: float | None) -> Floats:
        """+1 for rows with the label `positive`, -1 for all others."""
        return np.where(self.labels == positive, 1.0, -1.0)


def _with_geometry(profile: Profile, head: _Head, *, seed: int, asked: float | None) -> Profile:
    """A profile with distances, A_T and learners tried, on rows drawn at random."""
    numbers = _draw(head, seed)
    drawn = head.matrix.take(numbers)
    rows = _narrowed(drawn, profile.scale or "none")
    sample = _Sample(drawn, rows, head.labels[numbers])
    profile = _with_distances(profile, sample)
    profile = _with_alignments(profile, sample, asked)
    if profile.sigma is None or profile.label_problem:
        return profile
    profile = _with_tried(profile, sample, profile.sigma)
    rare = rare_label(profile.labels)
    if rare is None or profile.positive is None:
        return profile
    return _with_tried_weights(profile, sample, head=head, rare=rare.label)


def _with_distances(profile: Profile, sample: _Sample) -> Profile:
    """A profile with the median distance and the useful widths, or why these are not known."""
    found = sigma_range(sample.rows)
    if isinstance(found, str):
        return replace(profile, unknown=(*profile.unknown, f"distances and σ: {found}"))
    median, low, high = found
    return replace(profile, sigma=median, sigma_low=low, sigma_high=high)


def _with_alignments(profile: Profile, sample: _Sample, asked: float | None) -> Profile:
    """A profile with A_T at the median distance and at the width `asked` for, or why not."""
    if profile.label_problem:
        return replace(profile, unknown=(*profile.unknown, f"A_T: {profile.label_problem}"))
    if profile.positive is None:
        reason = "A_T: requires two classes; --positive LABEL selects one"
        return replace(profile, unknown=(*profile.unknown, reason))
    wanted = [sigma for sigma in (profile.sigma, asked) if sigma is not None]
    signs = sample.signs(profile.positive)
    alignments, too_small = _alignments(sample.rows, signs, wanted, total=profile.rows)
    reasons = [f"A_T at σ = {short(sigma)}: {TOO_SMALL}" for sigma in too_small]
    unknown = (*profile.unknown, *reasons)
    return replace(profile, alignments=tuple(alignments), unknown=unknown)


def _alignments(
    rows: CsrRows,
    signs: Floats,
    sigmas: Sequence[float],
    *,
    total: int,
) -> tuple[list[Alignment], list[float]]:
    """A_T at these values of σ, each once, and the values at which it cannot be computed."""
    found: list[Alignment] = []
    too_small: list[float] = []
    for sigma in dict.fromkeys(sigmas):
        alignment = align(rows, signs, sigma=sigma, total=total)
        if alignment is None:
            too_small.append(sigma)
        else:
            found.append(alignment)
    return found, too_small


def _with_tried_weights(profile: Profile, sample: _Sample, head: _Head, rare: float) -> Profile:
    """A profile with F1 of a rare label for several weights of it, if that can be computed."""
    trial = _trial_of_weights(profile, sample)
    tried = _try_weights(trial, sample.labels == rare)
    if not tried:
        return profile
    scale = profile.scale or "none"
    is_confirmed = _is_confirmed(trial, head, rare, tried=tried, scale=scale)
    return replace(profile, tried_weights=tried, confirmed_weight=is_confirmed)


def _narrowed(drawn: CsrRows, scale: str) -> CsrRows:
    """The scaled rows; columns that occur are renumbered from 0, so that rows are not wide."""
    used, numbers = np.unique(drawn.columns, return_inverse=True)
    narrow = CsrRows(
        indptr=drawn.indptr,
        columns=numbers.astype(np.int32),
        values=drawn.values,
        width=len(used),
    )
    rows = scaled(narrow, scale)
    assert isinstance(rows, CsrRows)
    return rows


def _with_tried(profile: Profile, sample: _Sample, median: float) -> Profile:
    """A profile with learners tried: values of σ on scaled rows, and metron on rows as drawn."""
    encoded = sample.labels
    if profile.positive is not None:
        encoded = sample.signs(profile.positive)
    first = slice(0, min(len(encoded), MOST_TRIED_ROWS))
    tally = try_learner("metron", sliced(sample.drawn, first), encoded[first])
    rate = None
    if tally is not None:
        rate = tally.mistakes / tally.rounds
    return replace(profile, tried=try_sigmas(sample.rows, encoded, median), tried_metron=rate)


class _TrialOfWeights(NamedTuple):
    """A learner with which weights of a rare label are tried, and its rows."""

    learner: str
    rows: CsrRows
    kernel: Kernel | None

    def f1(self, is_rare: NDArray[np.bool_], weight: float) -> float | None:
        """F1 of the rare label with this weight; None if it cannot be computed."""
        tally = try_learner(
            self.learner,
            self.rows,
            is_rare.astype(np.float64),
            kernel=self.kernel,
            weights=np.where(is_rare, weight, 1.0),
        )
        if tally is None:
            return None
        confusion = tally.confusion.tolist()
        return metrics_of(confusion).f1 or 0.0


def _trial_of_weights(profile: Profile, sample: _Sample) -> _TrialOfWeights:
    """The better learner so far: metron on rows as drawn, or the other on scaled rows."""
    if profile.sigma is None or is_best(profile.tried_metron, profile.tried):
        return _TrialOfWeights("metron", sample.drawn, kernel=None)
    sigma = best_sigma(profile.sigma, profile.tried)
    return _TrialOfWeights(SUGGESTED_LEARNER, sample.rows, Gaussian(sigma=sigma))


def _try_weights(trial: _TrialOfWeights, is_rare: NDArray[np.bool_]) -> tuple[TriedWeight, ...]:
    """F1 of the rare label with weights of it from 1 on; empty if it cannot be computed."""
    found: list[TriedWeight] = []
    for weight in (1.0, *TRIED_WEIGHTS):
        f1 = trial.f1(is_rare, weight)
        if f1 is None:
            return ()
        found.append(TriedWeight(weight, f1))
    return tuple(found)


def _is_confirmed(
    trial: _TrialOfWeights,
    head: _Head,
    rare: float,
    *,
    tried: Sequence[TriedWeight],
    scale: str,
) -> bool:
    """Whether the best weight does not lower F1 on the first rows, in the order of the file."""
    labelled = np.flatnonzero(head.labelled)
    first = labelled[:MOST_TRIED_ROWS]
    rows = head.matrix.take(first)
    if trial.kernel is not None:
        rows = _narrowed(rows, scale)
    own = trial._replace(rows=rows)
    weighted = tried[1:]
    best = max(weighted, key=lambda one: one.f1)
    is_rare = head.labels[first] == rare
    plain = own.f1(is_rare, 1.0)
    weighed = own.f1(is_rare, best.weight)
    if plain is None or weighed is None:
        return False
    return weighed >= plain
