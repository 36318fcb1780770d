"""More than two classes: a pass whose f(x) has a value f_c(x) for each class c.

Labels are the numbers of the classes, 0 to k - 1, in the order of their labels.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ahpatron_cli.core.classwise import SHARED, SharingLearner, class_margins, predicted
from ahpatron_cli.core.engine import BLOCK, NEAR_TIE, Player, Tally
from ahpatron_cli.core.hypothesis import Hypothesis, Standing
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Saved, Stored

LOOK_AHEAD = 8
"""Rounds whose margins are compared together, if the last round was an update; else more."""


@dataclass
class ClassTally(Tally):
    """What is counted over the rounds of a pass with several classes.

    `failures` are rounds whose margin f_y - max f_c is at most 0; `updates` and `margin_updates`
    are summed over the learners.
    """

    confusion: Integers = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int64))
    """Rounds by true class (rows) and predicted class (columns)."""


class MulticlassPlayer(Player):
    """A learner's pass over a stream of k classes: one against the rest, or on one shared S."""

    f: Hypothesis | OneAgainstRest
    tally: ClassTally

    def __init__(
        self,
        learner: Learner[Any],
        kernel: Kernel | None = None,
        *,
        classes: int,
        seed: Sequence[int] = (0,),
        horizon: int | None = None,
        block: int = BLOCK,
        costs: Sequence[float] | None = None,
    ) -> None:
        """`costs` are those of the examples of each class, if they are not all 1."""
        super().__init__(learner, kernel, seed=seed, horizon=horizon, block=block, costs=costs)
        self._columns = (classes,)
        if isinstance(self.learner, SharingLearner) and self.learner.multiclass == SHARED:
            self.f = self.learner.shared(self.kernel, classes)
        else:
            seeds = ((*seed, c) for c in range(classes))
            self.f = OneAgainstRest(
                [Player(learner, kernel, seed=one, horizon=horizon, block=block) for one in seeds]
            )
        self.forget_counts()

    def play_block(self, block: Points, labels: Floats, costs: Floats | None = None) -> ArrayLike:
        if self._costs is not None:
            costs = self._costs[labels.astype(np.int64)]
        if isinstance(self.f, Hypothesis):
            return self._play_shared(self.f, block, labels, costs)
        scores = np.empty((len(labels), *self._columns))
        for c, player in enumerate(self.f.players):
            player.tally = self.tally  # where updates are counted
            scores[:, c] = player.play_block(block, np.where(labels == c, 1.0, -1.0), costs)
        return scores

    def _play_shared(self, f: Hypothesis, block: Points, labels: Floats, costs: Any) -> Floats:
        """f_c(x) of each round and class, as it was when it was predicted."""
        learner, tally = self.learner, self.tally
        assert isinstance(learner, SharingLearner)
        f.open(block, labels)
        rounds, now, look = len(labels), 0, LOOK_AHEAD
        scores = np.empty((rounds, *self._columns))
        while now < rounds:  # from one update to the next f stays the same
            values = f.values()[now : min(now + look, rounds)]
            margins, _ = class_margins(values, labels[now : now + len(values)])
            due = learner.wants_class(margins).nonzero()[0]
            ahead = due.item(0) if len(due) else len(values)
            scores[now : now + ahead] = values[:ahead]
            learner.pass_over(values[:ahead], labels[now : now + ahead])
            now += ahead
            if not len(due):
                look *= 2
                continue
            look = LOOK_AHEAD
            scores[now] = value = np.asarray(f.value(now))
            (margin,), (rival,) = class_margins(value[None], labels[now : now + 1])
            if costs is not None:
                learner.__dict__["_weight"] = costs.item(now)
            y = int(labels[now])
            if learner.update_class(f, value, y, int(rival), float(margin)) is not False:
                tally.updates += 1
                tally.margin_updates += bool(margin > 0)
            now += 1
        f.close()
        return scores

    def _judge(self, scores: Floats, labels: Floats, spared: int = 0) -> None:
        tally, true, found = self.tally, labels.astype(np.int64), predicted(scores)
        tally.baseline_mistakes += self._baseline(true)
        tally.confusion = tally.confusion.copy()
        np.add.at(tally.confusion, (true, found), 1)
        tally.rounds += len(labels)
        tally.mistakes += int(np.count_nonzero(found != true))
        tally.failures += int(np.count_nonzero(class_margins(scores, labels)[0] <= 0))
        two = np.partition(scores[spared:], -2, axis=1)[:, -2:]
        tally.near_ties += int(np.count_nonzero(two[:, 1] - two[:, 0] < NEAR_TIE))

    def _baseline(self, true: Integers) -> int:
        """Mistakes of always the most frequent class so far; the first of equally frequent ones."""
        counts: list[int] = self.tally.confusion.sum(axis=1).tolist()
        leader, mistakes = counts.index(max(counts)), 0
        for y in true.tolist():
            mistakes += y != leader
            counts[y] += 1
            if (-counts[y], y) < (-counts[leader], leader):
                leader = y
        return mistakes

    def forget_counts(self) -> None:
        self.tally = ClassTally(confusion=np.zeros(2 * self._columns, dtype=np.int64))

    def statistics(self) -> dict[str, int | float | None]:
        """Counts of the learners, summed; what is no count is about two classes, and left out."""
        players = self.f.players if isinstance(self.f, OneAgainstRest) else [self]
        found = [player.learner.statistics() for player in players]
        return {
            name: sum(int(one[name] or 0) for one in found)
            for name, value in found[0].items()
            if isinstance(value, int)
        }

    def warnings(self) -> list[str]:
        if isinstance(self.f, Hypothesis):
            return super().warnings()
        return [
            f"class {number} of {len(self.f.players)}: {text}"
            for number, player in enumerate(self.f.players, 1)
            for text in player.warnings()
        ]

    def _label_fault(self, labels: Floats) -> str | None:
        (k,) = self._columns
        whole = (labels >= 0) & (labels < k) & (labels == np.floor(labels))
        return None if whole.all() else f"labels must be the numbers of classes, 0 to {k - 1}"

    def _restore_tally(self, stored: Stored) -> None:
        shape = self.tally.confusion.shape
        confusion = stored.array("confusion", shape, dtype=np.int64)
        del self.tally.confusion
        super()._restore_tally(stored)
        self.tally.confusion = confusion

    def _adds_up(self) -> bool:
        counts, confusion = self.tally, self.tally.confusion
        return (
            bool((confusion >= 0).all())
            and int(confusion.sum()) == counts.rounds <= 2**60
            and counts.rounds - int(confusion.trace()) == counts.mistakes <= counts.failures
            and counts.margin_updates <= counts.updates <= counts.rounds * len(confusion)
            and max(counts.failures, counts.near_ties, counts.baseline_mistakes) <= counts.rounds
            and counts.seconds >= 0
        )


class OneAgainstRest(Standing):
    """One learner for each class, for which that class is +1 and every other one -1."""

    def __init__(self, players: Sequence[Player]) -> None:
        """Each has its own f, budget and random generator; rows are prepared once, for all."""
        self.players = players

    def at(self, points: Points) -> Floats:
        return np.stack([player.f.at(points) for player in self.players], axis=1)

    @property
    def size(self) -> int | None:  # type: ignore[override]  # computed
        """The largest |S| of the learners."""
        sizes = [player.f.size for player in self.players]
        return None if None in sizes else max(size or 0 for size in sizes)

    @property
    def norm(self) -> float:
        """√(Σ ‖f_c‖²)."""
        return math.hypot(*(player.f.norm for player in self.players))

    @property
    def norm_drift(self) -> float:  # type: ignore[override]  # computed
        """The largest of the learners."""
        return max(player.f.norm_drift for player in self.players)

    def compress(self, origin: Floats | None) -> None:
        for player in self.players:
            player.f.compress(origin)

    def exchange(self, stored: Stored) -> None:
        for c, player in enumerate(self.players):
            stored.part(str(c), _Rival(player))


class _Rival(Saved):
    """What a player in `OneAgainstRest` has of its own."""

    def __init__(self, player: Player) -> None:
        self._player = player

    def exchange(self, stored: Stored) -> None:
        stored.part("learner", self._player.learner)
        stored.part("f", self._player.f)
        stored.generator("random", self._player.rng)


def make_player(learner: Learner[Any], kernel: Kernel, *, classes: int, **others: Any) -> Player:
    """A fresh pass over a stream of so many classes; two are played as -1 and +1."""
    if classes == 2:
        return Player(learner, kernel, **others)
    return MulticlassPlayer(learner, kernel, classes=classes, **others)
