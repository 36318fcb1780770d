"""Which trials of a grid are run: all, or those that successive halving and tuning ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ahpatron_cli.records import grouped, setting_key
from ahpatron_cli.sweep.summary import Criterion, Outcome, settings_of
from ahpatron_cli.sweep.trial import Trial, run_trials

SEARCHES = ("grid", "halving")
"""What `--search` takes."""
KEPT = 3
"""One of so many settings is kept, and runs on so many times as many rounds."""
FEWEST_ROUNDS = 500
"""Of the shortest prefix: fewer say little."""
SHORT_ROUNDS = 1000
"""Of the trials from which the time of a sweep is estimated."""


def rungs(settings: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Rounds of each prefix, and how many settings are kept after it; none for few settings."""
    by_settings = round(math.log(max(settings, 1), KEPT), 9)
    by_rounds = round(math.log(max(rounds / FEWEST_ROUNDS, 1), KEPT), 9)
    for left in range(int(min(by_settings, by_rounds)), 0, -1):
        settings = math.ceil(settings / KEPT)
        yield math.ceil(rounds / KEPT**left), settings


@dataclass(frozen=True)
class Search:
    """A grid, and how the best of its settings are sought.

    Successive halving runs all settings of a learner on the first rounds of each permutation, keeps
    the best third, runs these on three times as many rounds, and so on; the last few are run in
    full. With tuning orders only the best setting is run on the other permutations. What comes next
    follows from the results alone, so the same command continues after any interruption.
    """

    trials: Sequence[Trial]
    """The whole grid on all permutations."""
    criterion: Criterion
    halving: bool = False
    shard: tuple[int, int] = (1, 1)
    """I and N: the I-th of N parts is run here."""

    def needed(self, known: Mapping[str, Outcome]) -> list[Trial]:
        """The trials that these results ask for, with those that are among them already."""
        if self.halving or self.criterion.tune_orders:
            return [
                trial
                for group in grouped(self.trials, learner_and_data)
                for trial in self._needed(grouped(group, setting_key), known)
            ]
        # dealt in order of id, which mixes quick and slow trials
        part, parts = self.shard
        chosen = set(sorted(trial.id for trial in self.trials)[part - 1 :: parts])
        return [trial for trial in self.trials if trial.id in chosen]

    def missing(self, trials: Sequence[Trial], known: Mapping[str, Outcome]) -> list[Trial]:
        """Those that were not run, or not measured by what is asked for."""
        runs = {outcome.id: outcome.run for outcome in known.values() if outcome.run is not None}
        value = self.criterion.metric.of
        return [one for one in trials if one.id not in runs or value(runs[one.id]) is None]

    def _needed(
        self, settings: Sequence[list[Trial]], known: Mapping[str, Outcome]
    ) -> Iterator[Trial]:
        """Those of one learner on one data set; `settings` are the permutations of each."""
        tune, rounds = self.criterion.tune_orders, settings[0][0].data.record.rounds

        def ranked(stage: Sequence[Sequence[Trial]]) -> list[int] | None:
            """Settings by rank, those that failed everywhere last; None if trials are missing."""
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
    """Learning time of trials, from one short trial of each learner on each file.

    It is low where S would grow on after these rounds; None if a short trial fails.
    """
    groups = grouped(trials, learner_and_data)
    chosen = [group[len(group) // 2] for group in groups]
    short = [trial.on_prefix(min(SHORT_ROUNDS, trial.data.record.rounds)) for trial in chosen]
    runs = {one.id: one.run for one in run_trials(short, jobs=1, retries=0) if one is not None}
    total = 0.0
    for trial, group in zip(short, groups, strict=True):
        if (run := runs[trial.id]) is None:
            return None
        rounds = sum(one.data.prefix or one.data.record.rounds for one in group)
        total += run.seconds / run.counts.rounds * rounds
    return total


def learner_and_data(trial: Trial) -> tuple[object, ...]:
    """Equal for trials of the same learner on the same data set."""
    return *trial.data.identity, trial.learner


def _below(trials: Sequence[Trial], tune: int) -> list[Trial]:
    """Those on tuning orders, if there are any."""
    return [trial for trial in trials if not tune or trial.repeat < tune]
