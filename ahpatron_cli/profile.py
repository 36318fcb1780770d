"""Profile of a data file with advice: the record of `ahpatron inspect DATA`.

One pass counts rows, labels and faults of the whole file. The first rows are kept as a matrix of
bounded size, from which all statistics are computed.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from ahpatron_cli import __version__
from ahpatron_cli.core import Gaussian, Kernel
from ahpatron_cli.core.rows import CsrRows, Floats, row_sums, rows_of
from ahpatron_cli.core.tally import Tally
from ahpatron_cli.data.dataset import DENSE_SHARE
from ahpatron_cli.data.geometry import (
    MOST_TRIED_ROWS,
    SUGGESTED_LEARNER,
    TOO_SMALL,
    Alignment,
    TriedSigma,
    align,
    best_sigma,
    is_best,
    row_hashes,
    sigma_range,
    try_learner,
    try_sigmas,
)
from ahpatron_cli.data.labels import PLAIN_PAIRS, LabelTally, class_fault, show
from ahpatron_cli.data.libsvm.grammar import MAX_FEATURES, Fault, hint_of
from ahpatron_cli.data.libsvm.reader import SvmReader
from ahpatron_cli.data.scaling import scaled
from ahpatron_cli.data.source import STDIN_NAME, Source
from ahpatron_cli.data.tables import TableOptions, TableReader, check_features, is_table
from ahpatron_cli.errors import UserError
from ahpatron_cli.metrics import metrics_of
from ahpatron_cli.numbers import counted, share, short
from ahpatron_cli.records import SCHEMA

MOST_VALUES = 1 << 21
"""Largest number of values plus rows of the matrix (about 75 MB with copies)."""
MOST_COLUMNS = 1 << 20
"""Number of first features for which statistics are computed."""
MOST_SAMPLED, MOST_SAMPLED_VALUES = 4000, 1 << 20
"""Largest number of randomly drawn rows, and of their values, for distances and A_T."""
MOST_FAULTS = 20
"""Largest number of faulty lines that are listed; all are counted."""
MOST_HINTS = 3
"""Largest number of different hints on the faults of a table."""
RARE = 0.1
"""Share of rows below which a class counts as rare."""
TRIED_COSTS = (2.0, 5.0, 10.0, 20.0)
"""Weights of a rare label that are tried."""
WORTHWHILE = 0.02
"""Smallest gain of F1 for which a weight is advised."""
_COMPARABLE_RATIO = 10.0
"""Largest ratio of feature ranges that needs no scaling."""
_UNIT_TOLERANCE = 1e-3
"""Tolerance for rows of length 1."""


class LabelCount(Struct, frozen=True):
    """A label and the number of its rows."""

    label: float
    rows: int
    name: str | None = None
    """Name of the label in a table, unless it is a number."""


class TriedCost(Struct, frozen=True):
    """A weight of the rare label, and F1 of that label on the rows drawn at random."""

    cost: float
    f1: float


class FaultyLine(Struct, frozen=True):
    """Position and description of a fault, with a hint."""

    line: int
    column: int | None
    """Position in the line; None in a table, where the problem names the column."""
    problem: str
    hint: str | None


class Profile(Struct, frozen=True, kw_only=True):
    """The result of `ahpatron inspect DATA`; also its JSON document.

    Fields from `examined` on are statistics of the first rows; null if they cannot be computed.
    """

    schema: int = SCHEMA
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
    tried_costs: tuple[TriedCost, ...] = ()
    """F1 with several weights of a rare label, of the suggested learner; first with weight 1."""
    advice: tuple[str, ...] = ()
    next: tuple[str, ...] = ()
    """Suggested next commands."""


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
    """Compute the profile of a source in one pass with bounded memory.

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
    faulty = list[FaultyLine]()

    def take_fault(line: int, fault: Fault) -> None:
        if len(faulty) < MOST_FAULTS:
            problem = fault.problem + (f" ({fault.note})" if fault.note else "")
            faulty.append(FaultyLine(line, fault.column, problem, hint_of(fault, source.name)))

    def take_fault_of_table(fault: UserError) -> None:
        if len(faulty) < MOST_FAULTS:
            line = fault.place.line if fault.place else None
            faulty.append(FaultyLine(line or 1, None, fault.problem, fault.hint))

    reader: SvmReader | TableReader
    if is_table(source, table):
        reader = TableReader(source, table, on_fault=take_fault_of_table)
        check_features(reader.schema, max_features, source.name)
    else:
        reader = SvmReader(
            source, max_features=max_features, on_fault=take_fault, may_lack_labels=True
        )
    tally, room = LabelTally(), MOST_VALUES
    parts, hashes, labels = list[CsrRows](), list[Any](), list[Floats]()
    for chunk in reader:
        tally.add(chunk.labels)
        part = chunk.stored.without_zeros()
        sizes = part.indptr + np.arange(len(part) + 1)  # an empty row needs memory, too
        count = int(np.searchsorted(sizes, room, "right")) - 1
        if count:
            parts.append(part.slice(0, count))
            hashes.append(row_hashes(parts[-1]))
            labels.append(chunk.labels[:count])
        room = room - int(sizes[count]) if count == len(part) else 0
        on_progress(reader.rows_read)
    rows, info = reader.rows_read, reader.traits
    found: dict[str, Any] = {
        "path": source.name,
        "sha256": source.sha256(),
        "from_pipe": not source.rereadable,
        "notes": info.notes,
        "rows": rows,
        "features": info.features,
        "density": reader.values_read / rows / info.features if rows and info.features else None,
        "faults": reader.faults,
        "faulty_lines": tuple(sorted(faulty, key=lambda one: one.line)),
        "stopped": reader.stopped,
    }
    if rows:
        names = {value: name for name, value in info.schema.labels.items()} if info.schema else {}
        found["unlabelled"] = rows - tally.rows
        found |= _label_facts(tally, positive, names, lacks_labels=tally.rows < rows)
        first, seen = np.concatenate(labels), np.concatenate(hashes)
        matrix = CsrRows.concatenate(parts)
        parts.clear()
        labelled = np.flatnonzero(~np.isnan(first))
        classes = first if positive is None else np.where(np.isnan(first), first, first == positive)
        found |= _statistics(matrix, seen, classes, info.max_index + 1, int(not info.zero_based))
        if info.schema and (widest := found["widest"]):  # features of a table have names
            found["widest"] = (info.schema.features[widest[0] - 1], *widest[1:])
        found["scale"] = scale or found["advised_scale"]
        if not found["label_problem"]:
            found["baseline"] = _baseline(classes[labelled])
        drawn = np.random.default_rng(seed).permutation(labelled)[:MOST_SAMPLED]
        values = np.cumsum(np.diff(matrix.indptr)[drawn])
        drawn = drawn[: max(int(np.searchsorted(values, MOST_SAMPLED_VALUES, "right")), 1)]
        found |= _geometry(matrix.take(drawn), first[drawn], found, sigma)
    profile = Profile(**found)
    commands = tuple(_next_commands(profile, table))
    return replace(profile, advice=tuple(_advice(profile)), next=commands)


def _label_facts(
    tally: LabelTally, positive: float | None, names: Mapping[float, str], *, lacks_labels: bool
) -> dict[str, Any]:
    """Fields on how `run` would encode these labels; `positive` is the value of --positive.

    `lacks_labels` means that there are also rows without a label.
    """
    labels, complete = sorted(tally.counts), not tally.overflowed
    pair: tuple[float | None, float | None] = None, None
    problem = None
    if positive is not None and positive not in labels and complete and labels:
        problem = f"no row has the label {show(positive)} that --positive names"
    elif positive is not None:
        others = [label for label in labels if label != positive]
        pair = others[0] if len(others) == 1 and complete else None, positive
    elif fault := class_fault(tally):
        problem = f"{fault}: --positive LABEL runs one label against all others"
    elif not labels:
        problem = "no row has a label: there is nothing to learn"
    elif len(labels) == 1:
        which = "all rows with a label" if lacks_labels else "all rows"
        problem = f"{which} have the same label: there is nothing to learn"
    elif len(labels) == 2:
        pair = labels[0], labels[1]
    return {
        "labels": tuple(LabelCount(one, tally.counts[one], names.get(one)) for one in labels),
        "all_labels": complete,
        "negative": pair[0],
        "positive": pair[1],
        "label_problem": problem,
        "grouped": tally.grouped,
    }


def _baseline(labels: Floats) -> float:
    """Mistake rate of always predicting the most frequent label so far, as `run` counts it."""
    names, numbers = np.unique(labels, return_inverse=True)
    tally, shape = Tally.of(max(len(names), 2)), () if len(names) <= 2 else (len(names),)
    encoded = (numbers if shape else 2 * numbers - 1).astype(np.float64)
    for block in np.array_split(encoded, len(encoded) // 4096 + 1):
        tally.count(np.zeros((len(block), *shape)), block)
    return tally.baseline_mistakes / len(labels)


def _statistics(
    rows: CsrRows, hashes: Any, labels: Floats, width: int, first: int
) -> dict[str, Any]:
    """Fields on duplicates, ranges and advised scaling; features are columns from `first` on."""
    labelled = ~np.isnan(labels)
    known = labels[labelled]
    _, earliest, group = np.unique(hashes[labelled], return_index=True, return_inverse=True)
    width = max(min(width, MOST_COLUMNS), first)
    looked = rows.columns < width
    columns, values = rows.columns[looked], rows.values[looked]
    # values that are not stored are 0; a feature that is stored in every row has no zeros
    zero = np.bincount(columns, minlength=width) < len(rows)
    low, high = np.where(zero, 0.0, np.inf), np.where(zero, 0.0, -np.inf)
    np.minimum.at(low, columns, values)
    np.maximum.at(high, columns, values)
    low, high = low[first:], high[first:]
    halves = high / 2 - low / 2  # the full range may overflow a double
    with np.errstate(over="ignore", under="ignore"):
        lengths = np.sqrt(row_sums(rows, rows.values * rows.values))
    unit = bool(np.all(abs(lengths[lengths > 0] - 1) < _UNIT_TOLERANCE))
    sparse = len(rows.values) < DENSE_SHARE * len(rows) * len(low)
    scale, reason = _advise_scale(low, high, halves, unit=unit, sparse=sparse)
    at = int(np.argmax(halves)) if len(halves) else 0
    return {
        "examined": len(rows),
        "duplicates": len(rows) - len(np.unique(hashes)),
        "contradictory": int(np.count_nonzero(known != known[earliest][group])),
        "low": float(low.min()) if len(low) else None,
        "high": float(high.max()) if len(high) else None,
        "constant": int(np.count_nonzero(low == high)),
        "widest": (first + at, float(low[at]), float(high[at])) if len(low) else None,
        "advised_scale": scale,
        "reason": reason,
    }


def _advise_scale(
    low: Floats, high: Floats, halves: Floats, *, unit: bool, sparse: bool
) -> tuple[str, str]:
    """The advised value of --scale, and the reason.

    It is "none" if all values are within -1..1, if all rows have length 1, or if features are of
    comparable size: the largest range is at most ten times the lower quartile of the ranges.
    Otherwise sparse rows (under 10 % stored) are scaled to length 1, and features of dense rows to
    0..1.
    """
    varying = halves[halves > 0]
    if not len(varying):
        return "none", "all features are constant" if len(low) else "there are no features"
    if low.min() >= -1 and high.max() <= 1:
        return "none", "all values lie between -1 and 1"
    if unit:
        return "none", "all rows have length 1"
    if varying.max() / _COMPARABLE_RATIO <= np.quantile(varying, 0.25, method="lower"):
        return "none", "the features are of comparable size"
    why = "the features are of very different size"
    return ("unit", f"the data are sparse, and {why}") if sparse else ("minmax", why)


def _geometry(
    drawn: CsrRows, labels: Floats, found: Mapping[str, Any], asked: float | None
) -> dict[str, Any]:
    """Fields on distances, A_T and the values of σ tried, from rows drawn at random."""
    # renumber the columns that occur from 0, so that the sample is not wide
    used, numbers = np.unique(drawn.columns, return_inverse=True)
    narrow = CsrRows(drawn.indptr, numbers.astype(np.int32), drawn.values, len(used))
    rows = scaled(narrow, found["scale"])
    assert isinstance(rows, CsrRows)
    median, unknown, alignments = sigma_range(rows), list[str](), list[Alignment]()
    facts: dict[str, Any] = {}
    positive, problem = found["positive"], found["label_problem"]
    if isinstance(median, str):
        unknown.append(f"distances and σ: {median}")
    else:
        facts = dict(zip(("sigma", "sigma_low", "sigma_high"), median, strict=True))
    if problem or positive is None:
        unknown.append(f"A_T: {problem or 'requires two classes; --positive LABEL selects one'}")
    signs = np.where(labels == positive, 1.0, -1.0)
    wanted = dict.fromkeys([facts.get("sigma"), asked]) if positive is not None else ()
    for sigma in (one for one in wanted if one is not None):
        if (alignment := align(rows, signs, sigma, found["rows"])) is None:
            unknown.append(f"A_T at σ = {short(sigma)}: {TOO_SMALL}")
        else:
            alignments.append(alignment)
    if facts and not problem:
        encoded = labels if positive is None else signs
        facts["tried"] = try_sigmas(rows, encoded, facts["sigma"])
        first = slice(0, min(len(labels), MOST_TRIED_ROWS))
        metron = try_learner("metron", rows_of(drawn, first), encoded[first])
        facts["tried_metron"] = metron and metron.mistakes / metron.rounds
        rare = _rare_label(found["labels"])
        if rare is not None and positive is not None:
            is_rare = labels == rare.label
            if is_best(facts["tried_metron"], facts["tried"]):
                facts["tried_costs"] = _try_costs("metron", drawn, is_rare)
            else:
                kernel = Gaussian(sigma=best_sigma(facts["sigma"], facts["tried"]))
                facts["tried_costs"] = _try_costs(SUGGESTED_LEARNER, rows, is_rare, kernel)
    return {**facts, "alignments": tuple(alignments), "unknown": tuple(unknown)}


def _rare_label(labels: Sequence[LabelCount]) -> LabelCount | None:
    """The rarer of two labels, if it is rare; else None."""
    if len(labels) != 2:
        return None
    rarer = min(labels, key=lambda one: one.rows)
    return rarer if rarer.rows < RARE * sum(one.rows for one in labels) else None


def _try_costs(
    learner: str, rows: CsrRows, is_rare: NDArray[np.bool_], kernel: Kernel | None = None
) -> tuple[TriedCost, ...]:
    """F1 of the rare label on these rows, with weights of it from 1 on; empty if not computed."""
    found = list[TriedCost]()
    for cost in (1.0, *TRIED_COSTS):
        weights = np.where(is_rare, cost, 1.0)
        tally = try_learner(learner, rows, is_rare.astype(np.float64), kernel, weights)
        if tally is None:
            return ()
        f1 = metrics_of(tally.confusion.tolist(), None, None).f1
        found.append(TriedCost(cost, f1 or 0.0))
    return tuple(found)


def _advice(profile: Profile) -> list[str]:
    """Advice on preparing the data for a run."""
    items = list[str]()
    if profile.stopped:
        items.append("the file cannot be read beyond the last fault")
        items += [one.hint for one in profile.faulty_lines[-1:] if one.hint]
    elif profile.faults:
        items.append("correct the faulty lines: `ahpatron run` stops at the first of them")
        hints = [one.hint for one in profile.faulty_lines if one.hint and one.column is None]
        items += list(dict.fromkeys(hints))[:MOST_HINTS]
    if not profile.rows:
        return items
    if profile.label_problem:
        items.append(profile.label_problem)
    if profile.grouped:
        items.append("use --shuffle: the rows are grouped by label, online learners need a mix")
    if profile.unlabelled:
        items.append(
            f"{counted(profile.unlabelled, 'row')} without a label: `ahpatron run` predicts "
            "such rows and does not learn from them; --shuffle and sweeps refuse them"
        )
    if profile.positive is not None and (rare := _rare_label(profile.labels)):
        items.append(_advice_on_rare(rare, profile))
    if contradictory := profile.contradictory:
        items.append(f"{contradictory:,} rows contradict others: no learner gets all of them right")
    if profile.advised_scale != "none":
        items.append(f"use --scale {profile.advised_scale}: {profile.reason}; metron needs none")
    elif profile.sigma:
        items.append(f"no scaling is needed: {profile.reason}")
    return items


def _advice_on_rare(rare: LabelCount, profile: Profile) -> str:
    """Advice for data with a rare label: how to see its figures, and a weight if one helps."""
    name = rare.name or show(rare.label)
    part = rare.rows / (profile.rows - profile.unlabelled)
    options = "--metrics" if rare.label == profile.positive else f"--positive {name} --metrics"
    text = f"only {share(part)} of the rows have the label {name}: use {options}, which shows"
    text += " its precision, recall and F1"
    if profile.tried_costs:
        plain, *weighed = profile.tried_costs
        best = max(weighed, key=lambda one: one.f1)
        by_guessing = 2 * part / (1 + part)  # F1 of predicting the rare label for every row
        if best.f1 >= max(plain.f1, by_guessing) + WORTHWHILE:
            gain = f"F1 rises from {share(plain.f1)} to {share(best.f1)} on rows drawn at random"
            text += f"; with --cost {name}={short(best.cost)} {gain}"
    return text


def _next_commands(profile: Profile, table: TableOptions) -> list[str]:
    """Suggested next commands; none if the file is not suitable for learning."""
    median, low, high = profile.sigma, profile.sigma_low, profile.sigma_high
    if profile.faults or profile.label_problem or not (median and low and high):
        return []
    positive = profile.positive
    words = ["FILE" if profile.path == STDIN_NAME else profile.path]
    words += [word for name, text in table.words for word in (f"--{name}", text)]
    plain = (profile.negative, positive) in PLAIN_PAIRS or table.words
    if positive is not None and (profile.negative is None or (profile.from_pipe and not plain)):
        words += ["--positive", show(positive)]
    if profile.features > MAX_FEATURES:
        words += ["--max-features", str(profile.features)]
    scale = ["--scale", profile.scale] if profile.scale and profile.scale != "none" else []
    shuffle = profile.grouped or (profile.from_pipe and positive is None)
    sigma = best_sigma(median, profile.tried)
    options = ["-l", "metron"]  # fewest mistakes on most data, without scaling
    if not is_best(profile.tried_metron, profile.tried):
        options = [*scale, "-l", SUGGESTED_LEARNER, "--sigma", short(sigma)]
    commands = [["run", *words, *options, *(["--shuffle"] if shuffle else [])]]
    if not profile.from_pipe:
        grid = f"sigma=log:{short(min(low, sigma))}:{short(max(high, sigma))}:7"
        # ahpatron+ is faster, which matters in a sweep
        more = ["-l", "ahpatron+", "-g", grid, "--repeats", "5", "--out", "sigma.jsonl"]
        commands.append(["sweep", *words, *scale, *more])
    return [shlex.join(["ahpatron", *command]) for command in commands]
