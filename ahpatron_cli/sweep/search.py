"""Which trials of a grid a sweep plays: all, or in stages, each chosen by the results of the last.

Successive halving plays all settings of a learner on the first rounds of each order, keeps the best
third, plays these on three times as many rounds, and so on; the last few are played in full. With
tuning orders only the best setting is played on the other orders. What comes next follows from the
results alone, so the same command goes on after anything.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ahpatron_cli.numbers import counted
from ahpatron_cli.sweep.summary import Criterion, TrialRecord, ranked, settings_of
from ahpatron_cli.sweep.trial import Task

KEPT = 3
"""One of so many settings is kept, and plays so many times as many rounds."""
FEWEST_ROUNDS = 500
"""Of the shortest prefix: fewer say little."""
SEARCHES = ("grid", "halving")


def rungs(settings: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Rounds of each prefix, and how many settings are kept after it; none for few settings."""
    by_settings = round(math.log(max(settings, 1), KEPT), 9)
    by_rounds = round(math.log(max(rounds / FEWEST_ROUNDS, 1), KEPT), 9)
    for left in range(int(min(by_settings, by_rounds)), 0, -1):
        settings = math.ceil(settings / KEPT)
        yield math.ceil(rounds / KEPT**left), settings


@dataclass(frozen=True)
class Search:
    """A grid, and how the best of its settings are sought."""

    tasks: Sequence[Task]
    """The whole grid on all orders."""
    criterion: Criterion
    halving: bool = False
    staged: bool = True
    """Whether settings that lost on the tuning orders are spared the others."""

    def needed(self, known: Mapping[str, TrialRecord]) -> list[Task]:
        """The trials that these results ask for, with those that are among them already."""
        if not self.halving and not (self.staged and self.criterion.tune_orders):
            return list(self.tasks)
        return [task for group in self.groups() for task in self._needed(group, known)]

    def groups(self) -> list[list[list[Task]]]:
        """The orders of each setting, for each learner on each data set."""
        groups: dict[tuple[object, ...], dict[tuple[object, ...], list[Task]]] = {}
        for task in self.tasks:
            trial = task.trial
            group = groups.setdefault((*trial.data.identity, trial.setup.learner), {})
            group.setdefault(tuple(sorted(trial.params.items())), []).append(task)
        return [list(group.values()) for group in groups.values()]

    def unhalved(self) -> list[str]:
        """For each learner and data set that halving plays in full: their sizes, in words.

        One setting of a learner among others that are halved is not worth a word.
        """
        found, some = [], False
        for group in self.groups() if self.halving else ():
            trial = group[0][0].trial
            rounds = trial.data.record.rounds
            if list(rungs(len(group), rounds)):
                some = True
                continue
            sizes = f"{counted(len(group), 'setting')}, {counted(rounds, 'round')}"
            text = f"{trial.setup.learner} on {trial.data.record.path} ({sizes})"
            found.append((len(group), text))
        return [text for settings, text in found if settings > 1 or not some]

    def _needed(
        self, settings: Sequence[list[Task]], known: Mapping[str, TrialRecord]
    ) -> Iterator[Task]:
        """Those of one learner on one data set; `settings` are the orders of each."""
        tune = self.criterion.tune_orders
        if tune:
            chosen_on = [[task for task in some if task.trial.repeat < tune] for some in settings]
        else:
            chosen_on = list(settings)
        left = list(range(len(settings)))
        rounds = settings[0][0].trial.data.record.rounds
        for prefix, kept in rungs(len(settings), rounds) if self.halving else ():
            stage = {
                number: [task.on_prefix(prefix) for task in chosen_on[number]] for number in left
            }
            for some in stage.values():
                yield from some
            if not _played(stage.values(), known):
                return
            left = sorted(self._best_first(stage, known)[:kept])
        for number in left:
            yield from chosen_on[number]
        if tune and _played([chosen_on[number] for number in left], known):
            best, *_ = self._best_first({number: chosen_on[number] for number in left}, known)
            yield from (task for task in settings[best] if task.trial.repeat >= tune)

    def _best_first(
        self, stage: Mapping[int, Sequence[Task]], known: Mapping[str, TrialRecord]
    ) -> list[int]:
        """Settings that failed on some orders come later, those that failed on all last."""
        found = {}
        for number, tasks in stage.items():
            trials = [known[task.id] for task in tasks if known[task.id].run is not None]
            if trials:
                (found[number],) = settings_of(trials, self.criterion.metric)
        order = [id(setting) for setting in ranked(list(found.values()))]
        places = {number: order.index(id(setting)) for number, setting in found.items()}
        return sorted(stage, key=lambda number: places.get(number, len(order)))


def _played(stage: Iterable[Sequence[Task]], known: Mapping[str, TrialRecord]) -> bool:
    return all(task.id in known for some in stage for task in some)


def spared(search: Search, known: Mapping[str, TrialRecord]) -> float:
    """The share of the rounds of the whole grid that were played neither now nor earlier."""
    total = sum(_rounds(task) for task in search.tasks)
    played = {task.id: task for task in search.tasks if task.id in known}
    played |= {task.id: task for task in search.needed(known)}
    return 1 - sum(map(_rounds, played.values())) / total


def _rounds(task: Task) -> int:
    data = task.trial.data
    return data.prefix or data.record.rounds
