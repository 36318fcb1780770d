"""Which trials of a grid are run: all, or those that successive halving and tuning ask for."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from ahpatron_cli.numbers import counted
from ahpatron_cli.records import grouped
from ahpatron_cli.sweep import summary
from ahpatron_cli.sweep.summary import Criterion, Outcome
from ahpatron_cli.sweep.trial import Trial, play_all

KEPT = 3
"""One of so many settings is kept, and runs on so many times as many rounds."""
SHORT_ROUNDS = 1000
"""Of the trials from which the time of a sweep is estimated."""
FEWEST_ROUNDS = 500
"""Of the shortest prefix: fewer say little."""


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

    Successive halving runs all settings of a learner on the first rounds of each order, keeps the
    best third, runs these on three times as many rounds, and so on; the last few are run in full.
    With tuning orders only the best setting is run on the other orders. What comes next follows
    from the results alone, so the same command continues after any interruption.
    """

    trials: Sequence[Trial]
    """The whole grid on all orders."""
    criterion: Criterion
    halving: bool = False
    staged: bool = True
    """Whether settings that lost on the tuning orders are spared the others."""

    def needed(self, known: Mapping[str, Outcome]) -> list[Trial]:
        """The trials that these results ask for, with those that are among them already."""
        if not self.halving and not (self.staged and self.criterion.tune_orders):
            return list(self.trials)
        return [trial for group in self.groups() for trial in self._needed(group, known)]

    def groups(self) -> list[list[list[Trial]]]:
        """The orders of each setting, for each learner on each data set."""
        groups = grouped(self.trials, lambda trial: (*trial.data.identity, trial.setup.learner))
        return [grouped(some, lambda trial: tuple(sorted(trial.params.items()))) for some in groups]

    def unhalved(self) -> list[str]:
        """For each learner and data set that halving runs in full: their sizes, in words.

        One setting of a learner among others that are halved is not mentioned.
        """
        found, some = [], False
        for group in self.groups() if self.halving else ():
            trial = group[0][0]
            rounds = trial.data.record.rounds
            if list(rungs(len(group), rounds)):
                some = True
                continue
            sizes = f"{counted(len(group), 'setting')}, {counted(rounds, 'round')}"
            text = f"{trial.setup.learner} on {trial.data.record.path} ({sizes})"
            found.append((len(group), text))
        return [text for settings, text in found if settings > 1 or not some]

    def _needed(
        self, settings: Sequence[list[Trial]], known: Mapping[str, Outcome]
    ) -> Iterator[Trial]:
        """Those of one learner on one data set; `settings` are the orders of each."""
        tune = self.criterion.tune_orders

        def played(stage: Sequence[Sequence[Trial]]) -> bool:
            return all(trial.id in known for trial in chain(*stage))

        def best_first(stage: Sequence[Sequence[Trial]]) -> list[int]:
            """Settings that failed on some orders come later, those that failed on all last."""
            done = [[known[trial.id] for trial in some if known[trial.id].run] for some in stage]
            ranks = [summary.rank(some, self.criterion.metric) for some in done]
            return sorted(range(len(stage)), key=ranks.__getitem__)

        left = [[trial for trial in some if not tune or trial.repeat < tune] for some in settings]
        orders = list(settings)
        rounds = settings[0][0].data.record.rounds
        for prefix, kept in rungs(len(settings), rounds) if self.halving else ():
            stage = [[trial.on_prefix(prefix) for trial in some] for some in left]
            yield from chain(*stage)
            if not played(stage):
                return
            best = sorted(best_first(stage)[:kept])
            left, orders = [left[number] for number in best], [orders[number] for number in best]
        yield from chain(*left)
        if tune and played(left):
            yield from (trial for trial in orders[best_first(left)[0]] if trial.repeat >= tune)


def spared(search: Search, known: Mapping[str, Outcome]) -> float:
    """The share of the rounds of the whole grid that were run neither now nor earlier."""
    total = sum(_rounds(trial) for trial in search.trials)
    played = {trial.id: trial for trial in search.trials if trial.id in known}
    played |= {trial.id: trial for trial in search.needed(known)}
    return 1 - sum(map(_rounds, played.values())) / total


def estimated_seconds(trials: Sequence[Trial]) -> float | None:
    """Learning time of trials, from one short trial of each learner on each file.

    It is low where S would grow on after these rounds; None if a short trial fails.
    """
    total = 0.0
    groups = grouped(trials, lambda trial: (*trial.data.identity, trial.setup.learner))
    chosen = [group[len(group) // 2] for group in groups]
    short = [trial.on_prefix(min(SHORT_ROUNDS, trial.data.record.rounds)) for trial in chosen]
    runs = {one.id: one.run for one in play_all(short, jobs=1, retries=0) if one is not None}
    for trial, group in zip(short, groups, strict=True):
        if (run := runs[trial.id]) is None:
            return None
        total += run.seconds / run.rounds * sum(map(_rounds, group))
    return total


def _rounds(trial: Trial) -> int:
    data = trial.data
    return data.prefix or data.record.rounds
