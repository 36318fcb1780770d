"""The one loop over rounds: predict, see the label, update; a block of examples at a time.

A block's kernel values are computed at once, but the protocol stays strict: what is predicted for a
round depends on the rounds before it and on nothing else. The rounds up to the first update of a
block are passed over in one leap.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ahpatron_cli.core.kernels import Gaussian, Kernel, NumericalError
from ahpatron_cli.core.learners.base import Learner, wrong
from ahpatron_cli.core.points import DensePoints, Points
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, rows_of

ALGORITHM = 1
"""Raised whenever a learner or the engine may count otherwise than before on the same stream."""
BLOCK = 64
"""Rounds per block. Results do not depend on it; bits may, so it is fixed for a version."""
CHUNK = 64
"""Blocks whose rows are brought into kernel-ready form together."""
NEAR_TIE = 1e-9
"""|f(x)| below this is a prediction that other hardware might make differently."""


@dataclass
class Tally:
    """What is counted over the rounds of a pass."""

    rounds: int = 0
    mistakes: int = 0
    """|M_T|: sign(f(x)) ≠ y, sign(0) = +1."""
    failures: int = 0
    """|M'_T|: y·f(x) <= 0."""
    updates: int = 0
    margin_updates: int = 0
    """|N_T|: rounds that updated although y·f(x) > 0."""
    near_ties: int = 0
    seconds: float = 0.0
    """Time spent learning."""


class Player:
    """One learner's pass over a stream that arrives in pieces."""

    def __init__(
        self,
        learner: Learner,
        kernel: Kernel | None = None,
        *,
        seed: Sequence[int] = (0,),
        horizon: int | None = None,
        block: int = BLOCK,
    ) -> None:
        """`seed` is for learners that draw lots; `horizon` is T, where it is known beforehand."""
        self.learner = learner
        self.kernel = kernel if kernel is not None else Gaussian()
        self.f = learner.begin(self.kernel, np.random.default_rng(seed), horizon)
        self.tally = Tally()
        self._block = block
        self._centre: Floats | None = None
        self._sparse = False  # once a stream was sparse, it stays so

    def feed(self, rows: Rows, labels: Floats) -> Floats:
        """Play these rounds and return each round's f(x), as it was when it was predicted.

        Pieces whose length is a multiple of the block size give the same bits as one long piece.
        """
        if not (np.abs(labels) == 1).all():
            raise ValueError("labels must be -1 and +1")
        start = time.perf_counter()
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._feed(rows, labels)
        margins = scores * labels
        tally = self.tally
        tally.rounds += len(labels)
        tally.mistakes += int(np.count_nonzero(wrong(margins, labels)))
        tally.failures += int(np.count_nonzero(margins <= 0))
        close = np.abs(margins) < NEAR_TIE
        close[: tally.rounds == 0] = False  # the first round of all: f is still 0, everywhere
        tally.near_ties += int(np.count_nonzero(close))
        tally.seconds += time.perf_counter() - start
        return scores

    def scores(self, rows: Rows) -> Floats:
        """f, as it is now, at these rows. Nothing is learned, nothing counted, nothing changed."""
        reader = copy.copy(self)
        if isinstance(rows, CsrRows) and not self._sparse:
            reader.f = copy.deepcopy(self.f)
        with np.errstate(over="ignore", invalid="ignore"):
            return reader._in_blocks(rows, lambda block, part: reader.f.at(block))

    def _feed(self, rows: Rows, labels: Floats) -> Floats:
        return self._in_blocks(rows, lambda block, part: self._play_block(block, labels[part]))

    def _in_blocks(self, rows: Rows, score: Callable[[Points, slice], ArrayLike]) -> Floats:
        """`score` of each block of rows, and of where it stands among them, joined and checked."""
        if isinstance(rows, CsrRows) and not self._sparse:
            centre = self._centre
            self.f.compress(None if centre is None else centre / self.kernel.unit())
            self._centre, self._sparse = None, True
        scores = np.empty(len(rows))
        for first, points in self._chunks(rows):
            for begin in range(0, points.size, self._block):
                end = min(begin + self._block, points.size)
                part = slice(first + begin, first + end)
                try:
                    scores[part] = score(points.slice(begin, end), part)
                except NumericalError as error:
                    raise NumericalError(str(error), part.start + error.row) from None
                finite = np.isfinite(scores[part])
                if not finite.all():
                    row = part.start + int(np.argmin(finite))
                    raise NumericalError("f(x) is not a finite number", row)
        return scores

    def _chunks(self, rows: Rows) -> Iterator[tuple[int, Points]]:
        """Some blocks' rows at a time in kernel-ready form, and where they begin."""
        chunk = CHUNK * self._block
        for first in range(0, len(rows), chunk):
            part = rows_of(rows, slice(first, min(first + chunk, len(rows))))
            try:
                points = self.kernel.points(part, self._centre_for(part))
            except NumericalError as error:
                raise NumericalError(str(error), first + error.row) from None
            if self._sparse and isinstance(points, DensePoints):
                points = points.to_sparse(None)
            yield first, points

    def _play_block(self, block: Points, labels: Floats) -> list[float]:
        """A block from opening to closing."""
        self.f.open(block, labels)
        scores = self._play_rounds(labels)
        self.f.close()
        return scores

    def _play_rounds(self, labels: Floats) -> list[float]:
        """The rounds of the open block: predict, see the label, update."""
        f, learner, tally = self.f, self.learner, self.tally
        values = f.values()
        scores: list[float] = values.tolist()
        first, empty = 0, f.empty
        if not empty and not learner.every_round:
            # Until the first update of the block, f is the same for all its rounds.
            first = learner.wants(labels * values, labels).tobytes().find(1)
            if first < 0:
                return scores
        for now, y in enumerate(labels[first:].tolist(), first):
            scores[now] = score = f.value(now)
            margin = y * score
            if learner.every_round:
                learner.pass_round(f)
            if empty or learner.wants(margin, y):
                changed = learner.update(f, margin, y)
                empty = f.empty
                if changed is not False:
                    tally.updates += 1
                    tally.margin_updates += margin > 0
        return scores

    def _centre_for(self, rows: Rows) -> Floats | None:
        """A point near the data, fixed by the first rounds: shifting saves digits and keeps κ."""
        if self._sparse or isinstance(rows, CsrRows) or not self.kernel.centred:
            return None
        if self._centre is None:
            # the median: one wild value among the first must not move everything away from zero
            self._centre = np.nan_to_num(np.median(rows[: self._block], axis=0))
        elif len(self._centre) < rows.shape[1]:
            self._centre = np.pad(self._centre, (0, rows.shape[1] - len(self._centre)))
        return self._centre


def play(
    learner: Learner,
    rows: Rows,
    labels: Floats,
    kernel: Kernel | None = None,
    *,
    seed: Sequence[int] = (0,),
) -> Player:
    """Play a whole stream at once; the returned player holds the counts and the hypothesis."""
    player = Player(learner, kernel, seed=seed, horizon=len(labels))
    player.feed(rows, labels)
    return player
