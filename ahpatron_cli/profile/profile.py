"""What a data file is like, what to do about it: the record that `ahpatron inspect DATA` makes.

Field names are the public contract of its `--format json`; they change only with `SCHEMA`.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass

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


@dataclass(frozen=True)
class LabelFacts:
    """Labels with their rows, and how they are played."""

    counts: tuple[tuple[float, int], ...]
    """Of at most 1,000 different labels, by label."""
    complete: bool
    """Whether these are all."""
    negative: float | None
    """BatchResult as -1; None: every other label, or nothing."""
    positive: float | None
    """BatchResult as +1; None if all are played as classes, or where `problem` says why."""
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
    hint: str | None
    """What to try."""


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
    tried: tuple[TriedSigma, ...] = ()
    """Values of σ that were tried, the best first."""
    tried_metron: float | None = None
    """Mistake rate of metron on the same rows, not scaled."""


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
    table: tuple[tuple[str, str], ...] = ()
    """Options that say which columns of a table are what, each with its text."""


def advice(profile: Profile) -> list[str]:
    """What to do before a run, and what to expect of it."""
    content, faults = profile.content, profile.faults
    items = []
    if faults.stopped:
        items.append("the file cannot be read beyond the last fault")
        if faults.count == len(faults.first) and (hint := faults.first[-1].hint):
            items.append(hint)
    elif faults.count:
        items.append("correct the faulty lines: `ahpatron run` stops at the first of them")
    if content is None:
        return items
    labels, rows, scaling = content.labels, content.row_facts, content.scaling
    if labels.problem:
        items.append(labels.problem)
    if labels.grouped:
        items.append("use --shuffle: the rows are grouped by label, online learners need a mix")
    if rare := imbalanced(labels, profile.rows):
        label, part = rare
        items.append(
            f"only {share(part)} of the rows have the label {show(label)}: use --metrics, which "
            f"shows its recall, and --cost {show(label)}={short(round(1 / part - 1), 3)}"
        )
    if rows.contradictory:
        many = f"{rows.contradictory:,} rows contradict others"
        items.append(f"{many}: no learner gets all of them right")
    if scaling.advised != "none":
        items.append(f"use --scale {scaling.advised}: {scaling.reason}")
    elif content.distances:
        items.append(f"no scaling is needed: {scaling.reason}")
    return items


RARE = 0.1
"""A class with a smaller share of the rows makes the data imbalanced."""


def imbalanced(labels: LabelFacts, rows: int) -> tuple[float, float] | None:
    """The rarer of two labels and its share of the rows, if the data are imbalanced."""
    if labels.positive is None or len(labels.counts) != 2:
        return None
    label, count = min(labels.counts, key=lambda one: one[1])
    return (label, count / rows) if count < RARE * rows else None


def next_commands(profile: Profile) -> list[str]:
    """Commands to continue with; none if the file cannot be played, or not to any use."""
    content = profile.content
    if profile.faults.count or content is None:
        return []
    labels, scale, found = content.labels, content.scaling.applied, content.distances
    positive = labels.positive
    if labels.problem or found is None:
        return []
    words = ["FILE" if profile.path == STDIN_NAME else profile.path]  # it was read to its end
    words += [word for name, text in profile.table for word in (f"--{name}", text)]
    plain = (labels.negative, positive) in PLAIN_PAIRS or profile.table
    if positive is not None and (labels.negative is None or (profile.from_pipe and not plain)):
        words += ["--positive", show(positive)]
    if profile.features > MAX_FEATURES:
        words += ["--max-features", str(profile.features)]
    scaled = ["--scale", scale] if scale != "none" else []
    shuffle = ["--shuffle"] if labels.grouped or (profile.from_pipe and positive is None) else []
    sigma = best_sigma(found.sigma, content.tried)
    options = ["-l", "metron"]  # it makes the fewest mistakes on most data, raw as they are
    if not is_best(content.tried_metron, content.tried):
        options = [*scaled, "-l", SUGGESTED_LEARNER, "--sigma", short(sigma)]
    commands = [shlex.join(["ahpatron", "run", *words, *options, *shuffle])]
    words += scaled
    if not profile.from_pipe:
        low, high = min(found.sigma_low, sigma), max(found.sigma_high, sigma)
        grid = f"sigma=log:{short(low)}:{short(high)}:7"
        # ahpatron+ is quicker, and a sweep plays it many times
        more = ["-l", "ahpatron+", "-g", grid, "--repeats", "5", "--out", "sigma.jsonl"]
        commands.append(shlex.join(["ahpatron", "sweep", *words, *more]))
    return commands
