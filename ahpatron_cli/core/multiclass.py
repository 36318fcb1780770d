"""More than two classes: f(x) has a value f_c(x) for each class c.

Labels are the numbers of the classes, from 0 on. The class with the largest value is predicted; of
classes that are equal up to rounding, the first. `SharedPlayer` learns all classes on one active
set, `OneAgainstRestPlayer` has a player for each class.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ahpatron_cli.core.engine import Player
from ahpatron_cli.core.expansion import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import SHARED, Learner
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import Tally, class_margins

MAX_CLASSES = 1000
LOOK_AHEAD = 8
"""Rounds whose margins are compared at once."""


class ClassPlayer(Player):
    """A pass over a stream of several classes; parameters as for `Player`, and `classes`."""

    def __init__(
        self, learner: Learner, kernel: Kernel | None = None, *, classes: int, **others: Any
    ) -> None:
        self.shape = (classes,)
        super().__init__(learner, kernel, **others)

    def new_tally(self) -> Tally:
        return Tally(np.zeros(2 * self.shape, dtype=np.int64))

    def _label_problem(self, labels: Floats) -> str | None:
        (k,) = self.shape
        legal = (labels >= 0) & (labels < k) & (labels == np.floor(labels))
        return None if legal.all() else f"labels must be the numbers of classes, 0 to {k - 1}"

    def statistics(self) -> dict[str, int | float | None]:
        """Counts of the learners, summed; other statistics are defined for two classes only."""
        reports = [player.learner.statistics() for player in self.players]
        return {
            name: sum(int(report[name] or 0) for report in reports)
            for name, value in reports[0].items()
            if isinstance(value, int)
        }

    @property
    def players(self) -> list[Player]:
        """The players that learn: this one, or one per class."""
        return [self]


class SharedPlayer(ClassPlayer):
    """All classes on one active set: f has a column per class, and y is a direction.

    y is +1 for the true class, -1 for the best other class and 0 elsewhere, and the margin is
    y·f(x). So the update of a learner reads the same for two classes and for several.
    """

    def _begin(self) -> None:
        self.f = self.learner.begin(self.kernel, self.shape)

    def _run_rounds(
        self, labels: Floats, weights: Floats | None, first: int
    ) -> tuple[Any, int, int]:
        learner, f, rounds = self.learner, self.f, len(labels)
        scores = np.empty((rounds, *self.shape))
        updates = margin_updates = t = 0
        while t < rounds:
            ahead = 1 if learner.update_below == math.inf else LOOK_AHEAD
            stop = min(t + ahead, rounds)
            scores[t:stop] = values = f.class_values(t, stop)
            margins, rivals = class_margins(values, labels[t:stop])
            due = margins < learner.update_below
            due[0] |= f.size == 0
            if t <= learner.next_call - first < stop:
                due[int(learner.next_call) - first - t] = True
            if not due.any():
                t = stop
                continue
            i = int(due.argmax())
            t += i
            y = np.zeros(self.shape)
            y[int(labels[t])], y[rivals[i]] = 1.0, -1.0
            learner.round, f.t, margin = first + t, t, margins.item(i)
            if weights is not None:
                learner.weight = weights.item(t)
            if learner.update(f, y, margin) is not False:
                updates += 1
                margin_updates += margin > 0
            if f.successor is not None:
                f = self._succeed()
            t += 1
        return scores, updates, margin_updates


class OneAgainstRestPlayer(ClassPlayer):
    """A player for each class, for which that class is +1 and every other one -1.

    Each has its own f, budget and random generator; rows are made kernel-ready once, for all.
    """

    def __init__(
        self,
        learner: Learner,
        kernel: Kernel | None = None,
        *,
        classes: int,
        seed: Sequence[int] = (0,),
        **others: Any,
    ) -> None:
        self._players = [Player(learner, kernel, seed=(*seed, c), **others) for c in range(classes)]
        super().__init__(learner, kernel, classes=classes, seed=seed, **others)

    def _begin(self) -> None:
        self.f = OneAgainstRest(self._players)

    @property
    def players(self) -> list[Player]:
        return self._players

    def run_block(
        self, block: Points, labels: Floats, weights: Floats | None, first: int
    ) -> Floats:
        scores = np.empty((len(labels), *self.shape))
        for c, player in enumerate(self._players):
            player._tally = self._tally  # where updates are counted
            signs = np.where(labels == c, 1.0, -1.0)
            scores[:, c] = player.run_block(block, signs, weights, first)
        return scores

    def warnings(self) -> list[str]:
        return [
            f"class {number} of {len(self._players)}: {text}"
            for number, player in enumerate(self._players, 1)
            for text in player.warnings()
        ]

    def _pass_state(self) -> State:
        return {str(c): player._pass_state() for c, player in enumerate(self._players)}

    def _load_pass(self, state: StateReader) -> None:
        for c, player in enumerate(self._players):
            player.tally = self.tally
            with state.part(str(c), rng=player.learner.rng) as own:
                player._load_pass(own)


class OneAgainstRest(Hypothesis):
    """The hypotheses of all players as one."""

    def __init__(self, players: list[Player]) -> None:
        self.players = players

    def close(self) -> None:
        """Each player closes its own."""

    def at(self, points: Points) -> Floats:
        return np.stack([player.f.at(points) for player in self.players], axis=1)

    def to_sparse(self, origin: Floats | None) -> None:
        for player in self.players:
            player.f.to_sparse(origin)

    @property
    def size(self) -> int | None:  # type: ignore[override]  # computed
        """The largest |S| of the players."""
        sizes = [player.f.size for player in self.players]
        return None if None in sizes else max(sizes)

    @property
    def norm(self) -> float:
        """`√(Σ_c ‖f_c‖²)`."""
        return math.hypot(*(player.f.norm for player in self.players))

    def suits(self, sparse: bool, width: int) -> bool:
        return all(player.f.suits(sparse, width) for player in self.players)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self)


def make_player(
    learner: Learner, kernel: Kernel | None = None, *, classes: int = 2, **others: Any
) -> Player:
    """A new pass over a stream of two classes (-1 and +1) or of several (0, 1, …).

    Parameters
    ----------
    learner, kernel
        As for `Player`.
    classes : int, default=2
    **others
        Further parameters of `Player`.

    Examples
    --------
    >>> from ahpatron_cli.core import Arow, make_player
    >>> player = make_player(Arow(budget=10), classes=3)
    >>> player.feed([[0.0], [5.0], [9.0], [0.1]], [0, 1, 2, 0]).shape
    (4, 3)
    >>> player.tally.mistakes
    2
    """
    if classes == 2:
        return Player(learner, kernel, **others)
    shared = getattr(learner, "multiclass", None) == SHARED
    kind = SharedPlayer if shared else OneAgainstRestPlayer
    return kind(learner, kernel, classes=classes, **others)
