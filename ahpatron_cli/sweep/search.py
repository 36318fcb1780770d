"""Search strategies: all trials of a grid, or those selected by successive halving or tuning."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ahpatron_cli.records import grouped, setting_key
from ahpatron_cli.sweep.summary import Criterion, Outcome, settings_of
from ahpatron_cli.sweep.trial import Trial, run_trials

SEARCHES = ("grid", "halving")
"""Values of `--search`."""
KEPT = 3
"""Factor of successive halving: a third of the settings is kept, for three times the rounds."""
FEWEST_ROUNDS = 500
"""Smallest number of rounds of a prefix; shorter ones are not informative."""
SHORT_ROUNDS = 1000
"""Number of rounds of the trials from which the time of a sweep is estimated."""


def rungs(settings: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Stages of halving: rounds of the prefix, number of settings kept; none for few settings."""
    by_settings = round(math.log(max(settings, 1), KEPT), 9)
    by_rounds = round(math.log(max(rounds / FEWEST_ROUNDS, 1), KEPT), 9)
    for left in range(int(min(by_settings, by_rounds)), 0, -1):
        settings = math.ceil(settings / KEPT)
        yield math.ceil(rounds / KEPT**left), settings


@dataclass(frozen=True)
class Search:
    """A grid of trials and the strategy that decides which of them are run.

    Successive halving runs all settings of a learner on the first rounds of each permutation, keeps
    the best third, runs these on three times as many rounds, and so on; the last few are run in
    full. With --tune-orders only the best setting is run on the other permutations. The next trials
    depend on the results alone, so the same command continues after any interruption.
    """

    trials: Sequence[Trial]
    """The whole grid on all permutations."""
    criterion: Criterion
    halving: bool = False
    shard: tuple[int, int] = (1, 1)
    """(I, N): run only the I-th of N parts."""

    def needed(self, known: Mapping[str, Outcome]) -> list[Trial]:
        """The trials to run given the results so far, including those that are done."""
        if self.halving or self.criterion.tune_orders:
            return [
                trial
                for group in grouped(self.trials, learner_and_data)
                for trial in self._needed(grouped(group, setting_key), known)
            ]
        # distributed in order of id, which mixes fast and slow trials
        part, parts = self.shard
        chosen = set(sorted(trial.id for trial in self.trials)[part - 1 :: parts])
        return [trial for trial in self.trials if trial.id in chosen]

    def missing(self, trials: Sequence[Trial], known: Mapping[str, Outcome]) -> list[Trial]:
        """Trials that were not run yet, or whose results do not have the metric."""
        runs = {outcome.id: outcome.run for outcome in known.values() if outcome.run is not None}
        value = self.criterion.metric.of
        return [one for one in trials if one.id not in runs or value(runs[one.id]) is None]

    def _needed(
        self, settings: Sequence[list[Trial]], known: Mapping[str, Outcome]
    ) -> Iterator[Trial]:
        """Trials of one learner on one data set; `settings` has a list of trials per setting."""
        tune, rounds = self.criterion.tune_orders, settings[0][0].data.rounds

        def ranked(stage: Sequence[Sequence[Trial]]) -> list[int] | None:
            """Indices of settings by rank, failed ones last; None if trials are missing."""
            if any(trial.id not in known for trial in chain(*stage)):
                return None
            done = ([known[one.id] for one in some if known[one.id].run] for some in stage)
            ranks = [settings_of(some, self.criterion.metric)[0].rank if some else (0,)
                     for some in done]  # fmt: skip
            return sorted(range(len(stage)), key=ranks.__getitem__)

        left = list(settings)
        for prefix, kept in rungs(len(settings), rounds) if self.halving else ():
            stage = [[one.on_prefix(prefix) for one in _below(some, tune)] for some in left]
            yield from chain(*stage)
            if (order := ranked(stage)) is None:
                return
            left = [left[number] for number in sorted(order[:kept])]
        stage = [_below(some, tune) for some in left]
        yield from chain(*stage)
        if tune and (order := ranked(stage)) is not None:
            yield from (trial for trial in left[order[0]] if trial.repeat >= tune)


def estimated_seconds(trials: Sequence[Trial]) -> float | None:
    """Estimated learning time of trials in seconds, from a short trial per learner and file.

    Too low if S keeps growing after the short trial; None if a short trial fails.
    """
    groups = grouped(trials, learner_and_data)
    chosen = [group[len(group) // 2] for group in groups]
    short = [trial.on_prefix(min(SHORT_ROUNDS, trial.data.rounds)) for trial in chosen]
    runs = {one.id: one.run for one in run_trials(short, jobs=1, retries=0) if one is not None}
    total = 0.0
    for trial, group in zip(short, groups, strict=True):
        if (run := runs[trial.id]) is None:
            return None
        rounds = sum(one.data.prefix or one.data.rounds for one in group)
        total += run.seconds / run.rounds * rounds
    return total


def learner_and_data(trial: Trial) -> tuple[object, ...]:
    """Key that is equal for trials of the same learner on the same data set."""
    return *trial.data.identity, trial.learner


def _below(trials: Sequence[Trial], tune: int) -> list[Trial]:
    """Trials on the first `tune` permutations; all trials if `tune` is 0."""
    return [trial for trial in trials if not tune or trial.repeat < tune]
