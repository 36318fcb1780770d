"""The one loop over rounds: predict, see the label, update; a block of examples at a time.

A block's kernel values are computed at once, but the protocol stays strict: what is predicted for a
round depends on the rounds before it and on nothing else. Where updates are rare, the rounds up to
the next one are passed over in one leap.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike

from ahpatron_cli.core.blas import dasum
from ahpatron_cli.core.errors import NumericalError, ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.hypothesis import Hypothesis, Standing
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import Learner, wrong
from ahpatron_cli.core.points import DensePoints, Points, csr_from
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, as_double, joined_rows, rows_from, rows_of
from ahpatron_cli.core.state import State, Stored, generator_state

ALGORITHM = 6
"""Raised whenever a learner or the engine may count otherwise than before on the same stream."""
BLOCK = 64
"""Rounds per block. Results do not depend on it; bits may, so it is fixed for a version."""
LEAP = 16
"""Rounds to the next update, on average, from which on they are looked at together."""
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
    positives: int = 0
    """Rounds with y = +1."""
    false_positives: int = 0
    """Mistakes with y = -1."""
    baseline_mistakes: int = 0
    """Mistakes of always predicting the more frequent label so far; +1 if both are as frequent."""
    seconds: float = 0.0
    """Time spent learning."""


class Player:
    """One learner's pass over a stream that arrives in pieces."""

    tally: Tally
    _columns: tuple[int, ...] = ()
    """The shape of what is predicted for a round."""

    def __init__(
        self,
        learner: Learner[Any],
        kernel: Kernel | None = None,
        *,
        seed: Sequence[int] = (0,),
        horizon: int | None = None,
        block: int = BLOCK,
        costs: Sequence[float] | None = None,
    ) -> None:
        """`seed` is for what is drawn at random; `horizon` is T, where it is known beforehand.

        `costs` are those of examples with the label -1 and +1, if they are not all 1.

        A piece that ends within a block leaves it open: how the pass stood when the block began is
        remembered, and what comes later is played as if the block had never been cut. So pieces of
        any length give the same bits, and a pass can be kept (`state`) after any of them.
        """
        self.learner = learner.resolved(horizon)
        """The pass's own copy: what depends on T is filled in, and its counts are of this pass."""
        self.kernel = kernel if kernel is not None else Gaussian()
        self.rng = np.random.default_rng(seed)
        self.f: Standing = self.learner.begin(self.kernel, self.rng)
        self.tally = Tally()
        self._each_round = type(learner).each_round is not Learner.each_round
        self._sweeps = (
            isinstance(self.f, Expansion)
            and _defined_together(type(self.f), "sweep", "value", "scale", "add", "project")
            and _defined_together(type(learner), "steps", "wants", "update", "each_round")
        )
        self._costs = None if costs is None else np.array(costs, dtype=np.float64)
        if costs is not None and not learner.takes_costs:
            raise ParameterError(f"{learner.name} cannot weigh examples", "costs")
        self._block = block
        self._centre: Floats | None = None
        self._sparse = False  # once a stream was sparse, it stays so
        self._before: dict[str, Any] | None = None  # how the pass stood when the open block began
        self._open: tuple[Rows, Floats] | None = None  # the rounds played of that block

    def feed(self, rows: Rows, labels: Floats) -> Floats:
        """Play these rounds and return each round's f(x), as it was when it was predicted.

        Pieces of any length give the same bits as one long piece; pieces of whole blocks take the
        least time, because the rounds of an open block are played again with those that follow.
        """
        rows, labels = self._checked(rows, labels)
        start = time.perf_counter()
        replayed = 0
        if self._open is not None:
            replayed = len(self._open[1])
            rows, labels = joined_rows(self._open[0], rows), np.append(self._open[1], labels)
            self._go_back()
        whole = len(labels) // self._block * self._block
        done = 0
        try:
            scores = self._count(rows_of(rows, slice(0, whole)), labels[:whole])
            if whole < len(labels):
                done = whole
                rest = rows_of(rows, slice(whole, len(labels)))
                self._before, self._open = self._memory(), (rest, labels[whole:])
                scores = np.concatenate((scores, self._count(rest, labels[whole:])))
        except NumericalError as error:
            raise error.later(done - replayed) from None
        self.tally.seconds += time.perf_counter() - start
        return scores[replayed:]

    def judge(self, rows: Rows, labels: Floats) -> Floats:
        """Predict these rounds and count the mistakes, without learning."""
        rows, labels = self._checked(rows, labels)
        start = time.perf_counter()
        scores = self.scores(rows)
        self._judge(scores, labels)
        self.tally.seconds += time.perf_counter() - start
        return scores

    def _memory(self) -> dict[str, Any]:
        """A copy of all that a round can change."""
        names = ("learner", "f", "rng", "tally", "_centre", "_sparse")
        return copy.deepcopy({name: getattr(self, name) for name in names})

    def _go_back(self) -> None:
        """To the beginning of the open block."""
        assert self._before is not None
        seconds = self.tally.seconds
        vars(self).update(self._before)
        self.tally = replace(self.tally, seconds=seconds)
        self._before = self._open = None

    def _count(self, rows: Rows, labels: Floats) -> Floats:
        first = self.tally.rounds == 0  # f is still 0 then, everywhere: that is no tie
        with np.errstate(over="ignore", invalid="ignore"):
            scores = self._feed(rows, labels)
        self._judge(scores, labels, spared=int(first))
        return scores

    def _judge(self, scores: Floats, labels: Floats, spared: int = 0) -> None:
        margins = scores * labels
        tally = self.tally
        close = np.abs(margins[spared:]) < NEAR_TIE
        mistaken = wrong(margins, labels)
        positive = labels > 0
        before = np.cumsum(labels) - labels + (2 * tally.positives - tally.rounds)  # Σ y_s, s < t
        tally.baseline_mistakes += int(np.count_nonzero((before >= 0) != positive))
        tally.positives += int(np.count_nonzero(positive))
        tally.false_positives += int(np.count_nonzero(mistaken & ~positive))
        tally.rounds += len(labels)
        tally.mistakes += int(np.count_nonzero(mistaken))
        tally.failures += int(np.count_nonzero(margins <= 0))
        tally.near_ties += int(np.count_nonzero(close))

    def scores(self, rows: Rows) -> Floats:
        """f, as it is now, at these rows. Nothing is learned, nothing counted, nothing changed."""
        rows = rows_from(rows)
        reader = copy.copy(self)
        if isinstance(rows, CsrRows) and not self._sparse:
            reader.f = copy.deepcopy(self.f)
        with np.errstate(over="ignore", invalid="ignore"):
            return reader._in_blocks(
                rows, lambda block, part: reader.f.at(block)[: part.stop - part.start]
            )

    def _feed(self, rows: Rows, labels: Floats) -> Floats:
        return self._in_blocks(rows, lambda block, part: self.play_block(block, labels[part]))

    def _in_blocks(self, rows: Rows, score: Callable[[Points, slice], ArrayLike]) -> Floats:
        """`score` of each block of rows, and of where it stands among them, joined and checked."""
        if isinstance(rows, CsrRows) and not self._sparse:
            centre = self._centre
            self.f.compress(None if centre is None else centre / self.kernel.unit())
            self._centre, self._sparse = None, True
        scores = np.empty((len(rows), *self._columns))
        for first, points in self._chunks(rows):
            for begin in range(0, points.size, self._block):
                end = min(begin + self._block, points.size)
                part = slice(first + begin, first + end)
                try:
                    scores[part] = score(self._full_block(points, begin, end), part)
                except NumericalError as error:
                    raise error.later(part.start) from None
                if not math.isfinite(dasum(scores[part].reshape(-1))):
                    finite = np.isfinite(scores[part].reshape(end - begin, -1)).all(axis=1)
                    if not finite.all():
                        row = part.start + int(finite.argmin())
                        raise NumericalError("f(x) is not a finite number", row, "score")
        return scores

    def _chunks(self, rows: Rows) -> Iterator[tuple[int, Points]]:
        """Some blocks' rows at a time in kernel-ready form, and where they begin."""
        chunk = CHUNK * self._block
        for first in range(0, len(rows), chunk):
            part = as_double(rows_of(rows, slice(first, min(first + chunk, len(rows)))))
            try:
                points = self.kernel.points(part, self._centre_for(part))
            except NumericalError as error:
                raise error.later(first) from None
            if self._sparse and isinstance(points, DensePoints):
                points = points.to_sparse(None)
            yield first, points

    def play_block(self, block: Points, labels: Floats, costs: Floats | None = None) -> ArrayLike:
        """A block from opening to closing."""
        f = cast("Hypothesis", self.f)
        f.open(block, labels)
        if self._costs is not None:
            costs = self._costs[(labels > 0).astype(int)]
        scores = self._play_rounds(f, labels, None if costs is None else costs.tolist())
        f.close()
        return scores

    def _full_block(self, points: Points, begin: int, end: int) -> Points:
        """A short block is filled up with its last example: products then have the same shapes.

        BLAS may add in another order where shapes differ; a pass that is cut must not show it.
        """
        if end - begin == self._block:
            return points.slice(begin, end)
        return points.subset(np.minimum(np.arange(begin, begin + self._block), end - 1))

    def _play_rounds(self, f: Hypothesis, labels: Floats, costs: list[float] | None) -> list[float]:
        """The rounds of the open block: predict, see the label, update."""
        learner, tally = self.learner, self.tally
        rounds, signs = len(labels), labels.tolist()
        scores = [0.0] * rounds
        now, wanted, empty = 0, 0, f.empty
        updates = margin_updates = 0
        each_round = self._each_round
        steps = learner.steps() if self._sweeps and costs is None else None
        if steps is not None:
            updates, margin_updates = cast("Expansion", f).sweep(steps, signs, scores)
            now = rounds
        leap = not each_round
        while now < rounds:
            if leap and not empty:
                # Until the next update f stays the same: all rounds up to it are read at once.
                values = f.values()[now:rounds]
                scores[now:] = values.tolist()
                wants = learner.wants(labels[now:] * values, labels[now:])
                ahead = np.asarray(wants).tobytes().find(1)
                if ahead < 0:
                    break
                now += ahead
                leap = False
            scores[now] = score = f.value(now)
            y = signs[now]
            margin = y * score
            if each_round:
                learner.each_round(f, margin, y)
            if empty or learner.wants(margin, y):
                if costs is not None:
                    learner.__dict__["_weight"] = costs[now]
                changed = learner.update(f, margin, y)
                empty = f.empty
                wanted += 1
                # worth it where updates are rare
                leap = LEAP * wanted <= now and f.looks_ahead and not each_round
                if changed is not False:
                    updates += 1
                    margin_updates += margin > 0
            now += 1
        tally.updates += updates
        tally.margin_updates += margin_updates
        return scores

    def _centre_for(self, rows: Rows) -> Floats | None:
        """The first example: shifting saves digits and keeps κ, and no later round has a say."""
        if self._sparse or isinstance(rows, CsrRows) or not self.kernel.centred:
            return None
        if self._centre is None:
            self._centre = np.nan_to_num(rows[0])
        elif len(self._centre) < rows.shape[1]:
            self._centre = np.pad(self._centre, (0, rows.shape[1] - len(self._centre)))
        return self._centre

    def state(self) -> State:
        """The whole pass, to be kept: as it stood when the open block began, and that block."""
        then = self._before or self._memory()
        rows, labels = self._open or (np.empty((0, 0)), np.empty(0))
        return {
            "learner": then["learner"].state(),
            "f": then["f"].state(),
            "random": generator_state(then["rng"]),
            "tally": {**vars(then["tally"]), "seconds": self.tally.seconds},
            "centre": then["_centre"],
            "sparse": then["_sparse"],
            "open_form": "sparse" if isinstance(rows, CsrRows) else "dense",
            "open": vars(rows) if isinstance(rows, CsrRows) else {"dense": rows},
            "open_labels": labels,
        }

    def restore(self, stored: Stored) -> None:
        """Go on from a state, in a fresh player of the same learner, kernel and parameters."""
        stored.part("learner", self.learner)
        stored.part("f", self.f)
        stored.generator("random", self.rng)
        tally = stored.child("tally")
        self._restore_tally(tally)
        self._centre = None if stored.is_none("centre") else stored.array("centre", (None,))
        self._sparse = stored.flag("sparse")
        labels = stored.array("open_labels", (None,))
        form = stored.word("open_form", ("dense", "sparse"))
        rows = stored.child("open")
        opened = csr_from(rows) if form == "sparse" else rows.array("dense", (len(labels), None))
        for part in (tally, rows, stored):
            part.finish()
        if (
            len(opened) != len(labels)
            or len(labels) >= self._block
            or self._label_fault(labels) is not None
        ):
            raise stored.refuse("open_labels", "do not fit an open block")
        if not self._adds_up():
            raise stored.refuse("tally", "does not add up")
        budget = self.learner.most_kept
        if budget is not None and self.f.size is not None and self.f.size > budget:
            raise stored.refuse("f", "keeps more examples than the budget")
        if len(labels):
            self._before, self._open = self._memory(), (opened, labels)
            self._count(opened, labels)

    def _restore_tally(self, stored: Stored) -> None:
        for name, value in vars(self.tally).items():
            read = stored.integer if isinstance(value, int) else stored.number
            setattr(self.tally, name, read(name))

    def _adds_up(self) -> bool:
        """Whether a pass can have counted this."""
        counts = self.tally
        return (
            counts.mistakes <= counts.failures <= counts.rounds <= 2**60
            and counts.margin_updates <= counts.updates <= counts.rounds
            and counts.near_ties <= counts.rounds
            and counts.false_positives <= min(counts.mistakes, counts.rounds - counts.positives)
            and counts.mistakes - counts.false_positives <= counts.positives <= counts.rounds
            and counts.baseline_mistakes <= counts.rounds
            and counts.seconds >= 0
        )

    def forget_counts(self) -> None:
        """Count from here on."""
        self.tally = Tally()

    def statistics(self) -> dict[str, int | float | None]:
        """What the learner reports beyond the common counts, by name."""
        return self.learner.statistics()

    def warnings(self) -> list[str]:
        """What the user must know about the numbers of this pass."""
        return self.learner.warnings(self.f)

    def _checked(self, rows: Any, labels: Any) -> tuple[Rows, Floats]:
        """Rows and labels in the form that a pass takes, if they go together."""
        rows, labels = rows_from(rows), np.asarray(labels, dtype=np.float64)
        if labels.shape != (len(rows),):
            message = f"there must be a label for each of {len(rows)} rows, got {labels.shape}"
            raise ValueError(message)
        fault = self._label_fault(labels)
        if fault is not None:
            raise ValueError(fault)
        return rows, labels

    def _label_fault(self, labels: Floats) -> str | None:
        """What is wrong with these labels, if anything is."""
        return None if (np.abs(labels) == 1).all() else "labels must be -1 and +1"


def _defined_together(kind: type, first: str, *others: str) -> bool:
    """Whether no subclass changed one of the other methods and left the first as it was."""
    depth = {
        name: next(depth for depth, cls in enumerate(kind.__mro__) if name in vars(cls))
        for name in (first, *others)
    }
    return all(depth[first] <= depth[name] for name in others)


def play(
    learner: Learner[Any],
    rows: Any,
    labels: ArrayLike,
    kernel: Kernel | None = None,
    *,
    seed: Sequence[int] = (0,),
) -> Player:
    """Play a whole stream at once; the returned player holds the counts and the hypothesis.

    Rows are a dense array, a matrix or array of `scipy.sparse`, or `CsrRows`; labels are ±1.
    """
    given = np.asarray(labels, dtype=np.float64)
    player = Player(learner, kernel, seed=seed, horizon=given.size)
    player.feed(rows, given)
    return player
