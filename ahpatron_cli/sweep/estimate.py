"""Estimate of the time of a sweep, from trials on the first rounds of each file.

The time of a learner with a budget is proportional to the number of rounds once S is full. That of
others grows with S: a round takes up to O(|S|²), and S grows with the number of rounds, so the time
of a trial is about `a·T + b·T² + c·T³`. The numbers a, b, c >= 0 are fitted to prefixes of doubling
length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ahpatron_cli.records import RunRecord, grouped, setting_key
from ahpatron_cli.sweep.trial import Trial, run_trials

SHORT_ROUNDS = 1000
"""Number of rounds of the first prefix; a quarter of it if the learner has no budget."""
FEWEST_PREFIXES = 3
"""Prefixes that show how a time grows."""
MEASURED_SECONDS = 1.0
"""Prefixes are doubled until one has taken so long."""
SAMPLED_SETTINGS = 3
"""Number of settings of a learner on a file that are measured; the others take their mean."""
REACH = 4.0
"""How many times as many rounds as measured the time of a growing learner is extrapolated to."""


class Prefix(NamedTuple):
    """The learning time of a trial on the first rounds."""

    rounds: int
    seconds: float


class TrialTime(NamedTuple):
    """The estimated seconds of a trial."""

    seconds: float
    is_known: bool = True
    """False if the time may be many times as long, because S grows."""


@dataclass(frozen=True)
class SweepTime:
    """The estimated time of trials."""

    seconds: float
    """Of all trials; a lower bound if there are unknown ones."""
    unknown: Sequence[str]
    """`LEARNER on FILE` of trials whose time grows too fast to be estimated."""


def estimated_time(trials: Sequence[Trial]) -> SweepTime | None:
    """Estimate the learning time of trials on all rounds; None if a short trial fails."""
    total = 0.0
    unknown = []
    for group in grouped(trials, lambda trial: (*trial.data.identity, trial.learner)):
        first = group[0]
        sampled = _sample(group)
        seconds = 0.0
        is_known = True
        for one in sampled:
            time = _time_of(one)
            if time is None:
                return None
            seconds += time.seconds
            is_known &= time.is_known
        total += seconds / len(sampled) * len(group)
        if not is_known:
            unknown.append(f"{first.learner} on {first.data.path}")
    return SweepTime(total, unknown)


def _sample(trials: Sequence[Trial]) -> list[Trial]:
    """Trials of a few settings, evenly spaced over the grid."""
    first = [group[0] for group in grouped(trials, setting_key)]
    count = len(first)
    if count <= SAMPLED_SETTINGS:
        return first
    places = np.linspace(0, count - 1, SAMPLED_SETTINGS)
    return [first[round(place)] for place in places]


def _time_of(trial: Trial) -> TrialTime | None:
    """The estimated time of a trial on all rounds; None if it fails on the first ones."""
    learner, _ = trial.setup.build()
    limit = learner.most_kept
    rounds = trial.data.rounds
    enough = rounds
    length = min(SHORT_ROUNDS // 4, rounds)
    if limit is not None:
        enough = max(SHORT_ROUNDS, 2 * limit)
        length = min(SHORT_ROUNDS, rounds)
    measured: list[Prefix] = []
    while True:
        run = _run(trial.on_prefix(length))
        if run is None:
            return None
        measured.append(Prefix(length, run.seconds))
        if length >= min(enough, rounds) or run.seconds >= MEASURED_SECONDS:
            break
        length = min(2 * length, rounds)
    if limit is None:
        return growing_time(measured, rounds)
    return TrialTime(steady_time(measured, rounds))


def _run(trial: Trial) -> RunRecord | None:
    """The record of a trial, run in this process; None if it fails."""
    for outcome in run_trials([trial], jobs=1, retries=0):
        if outcome is not None:
            return outcome.run
    return None


def steady_time(measured: Sequence[Prefix], rounds: int) -> float:
    """The time of all rounds, if the last ones that were measured are like those to come."""
    last = measured[-1]
    per_round = last.seconds / last.rounds
    if len(measured) > 1:
        before = measured[-2]
        seconds = last.seconds - before.seconds
        recent = seconds / (last.rounds - before.rounds)
        per_round = max(per_round, recent)
    left = rounds - last.rounds
    return last.seconds + per_round * left


def growing_time(measured: Sequence[Prefix], rounds: int) -> TrialTime:
    """The time of all rounds, if it is `a·T + b·T² + c·T³` for T rounds.

    It is unknown if T is more than `REACH` times what was measured, and the growing terms matter:
    S may grow on, or hardly any more. Then it is that of rounds as slow as the last ones.
    """
    from scipy.optimize import nnls  # lazy: most commands do not need it

    last = measured[-1]
    if last.rounds == rounds:
        return TrialTime(last.seconds)
    lengths = np.array([one.rounds / rounds for one in measured])
    seconds = np.array([one.seconds for one in measured])
    powers = np.column_stack((lengths, lengths**2, lengths**3))
    # relative errors count: the longest prefix must not drown the others
    relative = powers / seconds[:, None]
    terms, _ = nnls(relative, np.ones(len(seconds)))
    total = float(terms.sum())
    linear = last.seconds * rounds / last.rounds
    is_near = rounds <= REACH * last.rounds
    hardly_grows = total < 2.0 * linear
    shows_growth = len(measured) >= FEWEST_PREFIXES
    is_known = shows_growth and (is_near or hardly_grows)
    if not is_known:
        return TrialTime(steady_time(measured, rounds), is_known)
    return TrialTime(max(total, last.seconds))
