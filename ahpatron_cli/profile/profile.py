"""What a data file is like, and what to do about it: the record that `ahpatron inspect DATA` makes.

Field names are the public contract of its `--format json`; they change only with `SCHEMA`.
"""

from __future__ import annotations

import shlex

from msgspec import Struct

from ahpatron_cli.data.geometry import (
    SUGGESTED_LEARNER,
    Alignment,
    Distances,
    TriedSigma,
    best_sigma,
    is_best,
)
from ahpatron_cli.data.labels import PLAIN_PAIRS, show
from ahpatron_cli.data.libsvm.grammar import MAX_FEATURES
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.numbers import share, short

RARE = 0.1
"""A class with a smaller share of the rows makes the data imbalanced."""


class LabelCount(Struct, frozen=True):
    """A label and its rows."""

    label: float
    rows: int
    name: str | None = None
    """In a table, unless it is the number itself."""


class LabelFacts(Struct, frozen=True):
    """Labels with their rows, and how a run encodes them."""

    counts: tuple[LabelCount, ...]
    """Of at most 1,000 different labels, by label."""
    complete: bool
    """Whether these are all."""
    negative: float | None
    """Encoded as -1; None: every other label, or nothing."""
    positive: float | None
    """Encoded as +1; None if all are classes, or where `problem` says why."""
    problem: str | None
    grouped: bool
    """Whether all rows of each label stand together."""
    baseline: float | None = None
    """Mistake rate of always predicting the most frequent label so far, in file order."""


class RowFacts(Struct, frozen=True):
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


class FeatureRange(Struct, frozen=True):
    """One feature and the values that it takes."""

    index: int
    low: float
    high: float


class FeatureFacts(Struct, frozen=True):
    """Ranges, and features that carry no information."""

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


class FaultyLine(Struct, frozen=True):
    """One faulty line, and what to try."""

    line: int
    column: int
    kind: str
    problem: str
    note: str
    hint: str | None


class FaultFacts(Struct, frozen=True):
    """All faulty lines: how many, of which kinds, and the first ones."""

    count: int
    kinds: dict[str, int]
    first: tuple[FaultyLine, ...]
    stopped: bool
    """The last one made the rest of the file meaningless: it was not read."""


class Scaling(Struct, frozen=True):
    """Which `--scale` is advised and why, and after which one distances were taken."""

    advised: str
    reason: str
    applied: str


class Profile(Struct, frozen=True, kw_only=True):
    """All that `ahpatron inspect DATA` finds out; from `labels` on null where no row was read."""

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
    table: tuple[tuple[str, str], ...] = ()
    """Options that select the columns of a table, each with its text."""
    labels: LabelFacts | None = None
    row_facts: RowFacts | None = None
    feature_facts: FeatureFacts | None = None
    scaling: Scaling | None = None
    distances: Distances | None = None
    alignments: tuple[Alignment, ...] = ()
    """A_T at the σ of the median heuristic, and at a σ that was asked for."""
    unknown: tuple[str, ...] = ()
    """What could not be computed, and why."""
    tried: tuple[TriedSigma, ...] = ()
    """Values of σ that were tried, the best first."""
    tried_metron: float | None = None
    """Mistake rate of metron on the same rows, not scaled."""


def advice(profile: Profile) -> list[str]:
    """What to do before a run, and what to expect of it."""
    faults, labels, items = profile.faults, profile.labels, list[str]()
    if faults.stopped:
        items.append("the file cannot be read beyond the last fault")
        if faults.count == len(faults.first) and (hint := faults.first[-1].hint):
            items.append(hint)
    elif faults.count:
        items.append("correct the faulty lines: `ahpatron run` stops at the first of them")
    if labels is None or profile.row_facts is None or profile.scaling is None:
        return items
    if labels.problem:
        items.append(labels.problem)
    if labels.grouped:
        items.append("use --shuffle: the rows are grouped by label, online learners need a mix")
    rarer = min(labels.counts, key=lambda one: one.rows)
    part = rarer.rows / profile.rows
    if labels.positive is not None and len(labels.counts) == 2 and part < RARE:
        name = rarer.name or show(rarer.label)
        items.append(
            f"only {share(part)} of the rows have the label {name}: use --metrics, "
            f"which shows its recall, and --cost {name}={round(1 / part - 1)}"
        )
    if contradictory := profile.row_facts.contradictory:
        items.append(f"{contradictory:,} rows contradict others: no learner gets all of them right")
    if profile.scaling.advised != "none":
        reason = f"{profile.scaling.reason}; metron does not need it"
        items.append(f"use --scale {profile.scaling.advised}: {reason}")
    elif profile.distances:
        items.append(f"no scaling is needed: {profile.scaling.reason}")
    return items


def next_commands(profile: Profile) -> list[str]:
    """Commands to continue with; none if the file cannot be learned from."""
    labels, found = profile.labels, profile.distances
    if profile.faults.count or not labels or labels.problem or not found or not profile.scaling:
        return []
    positive, scale = labels.positive, profile.scaling.applied
    words = ["FILE" if profile.path == STDIN_NAME else profile.path]
    words += [word for name, text in profile.table for word in (f"--{name}", text)]
    plain = (labels.negative, positive) in PLAIN_PAIRS or profile.table
    if positive is not None and (labels.negative is None or (profile.from_pipe and not plain)):
        words += ["--positive", show(positive)]
    if profile.features > MAX_FEATURES:
        words += ["--max-features", str(profile.features)]
    scaled = ["--scale", scale] if scale != "none" else []
    shuffle = ["--shuffle"] if labels.grouped or (profile.from_pipe and positive is None) else []
    sigma = best_sigma(found.sigma, profile.tried)
    options = ["-l", "metron"]  # it makes the fewest mistakes on most data, not scaled
    if not is_best(profile.tried_metron, profile.tried):
        options = [*scaled, "-l", SUGGESTED_LEARNER, "--sigma", short(sigma)]
    commands = [["run", *words, *options, *shuffle]]
    if not profile.from_pipe:
        low, high = min(found.sigma_low, sigma), max(found.sigma_high, sigma)
        grid = f"sigma=log:{short(low)}:{short(high)}:7"
        # ahpatron+ is quicker, and a sweep runs it many times
        more = ["-l", "ahpatron+", "-g", grid, "--repeats", "5", "--out", "sigma.jsonl"]
        commands.append(["sweep", *words, *scaled, *more])
    return [shlex.join(["ahpatron", *command]) for command in commands]
