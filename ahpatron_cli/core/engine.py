"""The engine: one loop over the rounds of a stream, for every learner.

    in each round: predict f(x), see y, margin = y·f(x)
    if margin < learner.update_below, or the prediction is wrong by a tie, or S is empty:
        learner.update(f, y, margin)

Kernel values are computed for a block of rounds at once, but the protocol stays strict: a
prediction depends on the rounds before it and on nothing else. Blocks end at multiples of 64 rounds
of the stream, or where a piece of it ends.
"""

from __future__ import annotations

import contextlib
import copy
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.conversion import Conversion
from ahpatron_cli.core.counts import Counts
from ahpatron_cli.core.errors import NumericalError, ParameterError, StateError
from ahpatron_cli.core.journal import Block, Journal
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import SHARED, Learner
from ahpatron_cli.core.loop import Loop, check_finite
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, RowsLike, as_rows, sliced
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import Tally

ALGORITHM = 8
"""Version of the learners: raised when any count on the same stream may have changed."""
BLOCK = 64
"""Rounds per block. Affects the last bits of scores, but no counts; fixed for a version."""


class Player:
    """The engine: runs a learner on a stream that arrives in pieces or row by row.

    Parameters
    ----------
    learner : Learner
        The learner to run; the player works on a copy of it.
    kernel : Kernel, default=Gaussian()
        The kernel; ignored by learners with a kernel of their own.
    classes : int, default=2
        Number of classes. With 2, labels are -1 and +1; with more, 0, 1, …. More classes share one
        active set if the learner has `multiclass="shared"`; otherwise they are learned one-vs-rest
        by one copy of the learner per class, each with its own f and budget.
    seed : sequence of int
        Seed of the learner's random generator.
    horizon : int, optional
        T, the number of rounds, if it is known beforehand.
    block : int, default=64
        Rounds whose kernel values are computed together.
    growing : bool, default=False
        Whether classes may appear: the label k, where there are k classes so far (at least 1), adds
        one. There is always a spare function of x, that of a class that has not appeared: in all
        rounds it was "not it". A new class gets a copy of it, and is never predicted in its first
        round.

    Attributes
    ----------
    loops : list of Loop
        The copies of the learner with their current f: one, or one per class (one-vs-rest).
    learner, f
        Learner and hypothesis of the first loop.
    conversion : Conversion
        Conversion of rows to points, dense or sparse.
    tally : Tally
        Counts over all rounds so far.

    Notes
    -----
    The class with the largest f(x) is predicted; ties up to rounding go to the first class. Pieces
    that end at multiples of 64 rounds give bit-identical results to one long piece, other pieces
    the same predictions up to rounding. The first piece decides whether the stream is dense or
    sparse.

    A call that fails, or is interrupted by Ctrl-C, leaves the player as it was after the last
    complete block: the rounds of this block are neither counted nor learned.

    Examples
    --------
    >>> from ahpatron_cli.core import Ahpatron, Arow, Gaussian, Player
    >>> player = Player(Ahpatron(budget=10), Gaussian(sigma=0.5))
    >>> player.learn([0.0, 1.0], 1)
    0.0
    >>> round(player.learn([0.0, 0.9], -1), 3)
    0.245
    >>> player.tally.mistakes
    1
    >>> player.score([0.0, 1.0]) < 0.5
    True
    >>> player = Player(Arow(budget=10), classes=3)
    >>> player.feed([[0.0], [5.0], [9.0], [0.1]], [0, 1, 2, 0]).shape
    (4, 3)
    """

    _counts: Counts
    _journal: Journal | None
    _finished = True
    """Whether no learner can have put off a part of the last round."""
    _is_first_of_class = False
    """Whether the next row is the first one of a class that has just been added."""

    def __init__(
        self,
        learner: Learner,
        kernel: Kernel | None = None,
        *,
        classes: int = 2,
        seed: Sequence[int] = (0,),
        horizon: int | None = None,
        block: int = BLOCK,
        growing: bool = False,
    ) -> None:
        _check_at_least(1 if growing else 2, "classes", classes)
        _check_at_least(1, "block", block)
        self._options: State = {
            "classes": classes,
            "seed": seed,
            "horizon": horizon,
            "block": block,
            "growing": growing,
        }
        self.growing = growing
        self.classes = classes
        if kernel is None:
            kernel = Gaussian()
        self.kernel = learner.own_kernel or kernel
        self._has_classes = classes > 2 or growing
        self._set_shape()
        self._loops = self._new_loops(learner, seed, horizon)
        self._counts = Counts(
            Tally.of(classes),
            Calibration(classes if self._has_classes else 2, of_classes=growing),
        )
        self._block = block
        self._rounds = 0
        self.conversion = Conversion(self.kernel, dense=self.learner.dense)
        self._complete = True  # whether loops and counts are those of the same rounds
        self._journal = None  # made before the first block

    def _set_shape(self) -> None:
        """Set what depends on the number of classes."""
        self._shape: tuple[int, ...] = ()
        self._functions = 1
        self._legal = {-1.0, 1.0}
        if self._has_classes:
            self._shape = (self.classes,)
            self._functions = self.classes + self.growing  # with the spare one
            self._legal = set(range(self.classes))

    def _new_loops(self, learner: Learner, seed: Sequence[int], horizon: int | None) -> list[Loop]:
        """A loop for all classes, or one for each class (one-vs-rest)."""
        if not self._has_classes:
            return [Loop(learner.resolved(horizon), self.kernel, classes=(), seed=seed)]
        if getattr(learner, "multiclass", None) == SHARED:
            own = learner.resolved(horizon)
            return [Loop(own, self.kernel, classes=(self._functions,), seed=seed)]
        return [
            Loop(learner.resolved(horizon), self.kernel, classes=(), seed=(*seed, c))
            for c in range(self._functions)
        ]

    @property
    def loops(self) -> list[Loop]:
        """The loops; the last round is finished first (`Learner.finish_round`)."""
        if not self._finished:
            try:
                for loop in self._loops:
                    loop.learner.finish_round(loop.f)
                self._finished = True
            except BaseException:
                self._complete = False
                self._restore(self._rounds)
                raise
        return self._loops

    @property
    def learner(self) -> Learner:
        return self.loops[0].learner

    @property
    def f(self) -> Any:
        return self.loops[0].f

    @property
    def size(self) -> int | None:
        """Number of support examples |S|, the largest of all loops; None if f has no examples."""
        sizes = [loop.f.size for loop in self.loops]
        if None in sizes:
            return None
        largest: int = max(sizes)
        return largest

    @property
    def norm(self) -> float:
        """‖f‖; with several classes `√(Σ_c ‖f_c‖²)`."""
        norms = [loop.f.norm for loop in self.loops]
        return math.hypot(*norms)

    @property
    def tally(self) -> Tally:
        """Counts over all rounds so far (computed lazily, or after every 1,024 blocks)."""
        self._count()
        return self._counts.tally

    def _count(self) -> None:
        """Count the rounds that wait."""
        self._check_intact()
        self._counts.count()

    @property
    def is_intact(self) -> bool:
        """False after an error inside a block that could not be undone: nothing is possible then.

        Errors can be undone if the state of the learner can be saved.
        """
        return self._complete

    def _check_intact(self) -> None:
        if not self._complete:
            message = "an error inside a block could not be undone: load an earlier state"
            raise StateError(message)

    @property
    def calibration(self) -> Calibration:
        """Link from scores to probabilities, fitted to all rounds so far."""
        self._count()
        self._counts.fit()
        return self._counts.calibration

    # Learning -----------------------------------------------------------------------------------

    def feed(
        self,
        rows: RowsLike,
        labels: ArrayLike,
        weights: ArrayLike | None = None,
        *,
        answered: Floats | None = None,
    ) -> Floats:
        """Predict and learn from these rows, in order, one round per row.

        Parameters
        ----------
        rows : array of shape (n, p), scipy.sparse matrix or CsrRows
        labels : array of shape (n,)
            -1 or +1; with more than two classes 0, 1, ….
        weights : array of shape (n,), optional
            Weights of the examples, for learners with `takes_costs`.
        answered : array like the result, optional
            Scores with which these rows were answered earlier, if their labels came late: these are
            counted. NaN: without an answer, which is a mistake. The learner still judges f(x) as it
            is now.

        Returns
        -------
        array of shape (n,), or (n, k) with k classes
            f(x) of each round before its update.
        """
        scores = self._feed(rows, labels, weights, answered=answered)
        return scores.copy()  # the caller may change it before it is counted

    @np.errstate(over="ignore", invalid="ignore")
    def _feed(
        self,
        data: RowsLike,
        given_labels: ArrayLike,
        given_weights: ArrayLike | None,
        *,
        answered: Floats | None = None,
    ) -> Floats:
        """As `feed`; the scores may not be changed."""
        if self._has_new_class(given_labels):
            return self._feed_new_classes(data, given_labels, given_weights, answered=answered)
        start = time.perf_counter()
        done = 0
        self._check_intact()
        rows, labels, weights = self._checked(data, given_labels, given_weights)
        scores = np.empty((len(labels), *self._shape))
        try:
            for points in self._blocks(rows, self._rounds):
                part = slice(done, done + points.size)
                block = Block(
                    first=self._rounds,
                    points=points,
                    labels=labels[part],
                    weights=None if weights is None else weights[part].tolist(),
                    scores=scores[part],
                )
                if answered is not None:
                    block.answered = self._as_answered(answered[part])
                self._learn_block(block)
                self._is_first_of_class = False
                done = part.stop
        except NumericalError as error:
            fault = error.shifted(done)
            fault.learned = scores[:done]
            raise fault from None
        finally:
            if not self._rounds:  # no row was learned: the next piece is the first one
                self.conversion.forget()
        self._counts.tally.seconds += time.perf_counter() - start
        return scores

    def _has_new_class(self, labels: ArrayLike) -> bool:
        """Whether these rows have to be learned in parts, because a class appears in them."""
        if not self.growing:
            return False
        if self._is_first_of_class and np.size(labels) > 1:
            return True
        return bool(np.max(labels, initial=0) >= self.classes)

    def _as_answered(self, scores: Floats) -> Floats:
        """Scores with which rows were answered, with those of classes that appeared since."""
        return padded(scores, self.classes) if self.growing else scores

    def _feed_new_classes(
        self,
        data: RowsLike,
        given_labels: ArrayLike,
        given_weights: ArrayLike | None,
        *,
        answered: Floats | None,
    ) -> Floats:
        """As `_feed`, of rows with classes that appear: each is added before its first row.

        A class has no score in the rows before: there it gets the smallest of the others.
        """
        rows = as_rows(data)
        labels = np.array(given_labels, dtype=np.float64)
        weights = None if given_weights is None else np.asarray(given_weights, dtype=np.float64)
        parts: list[Floats] = []
        start = 0
        while start < len(labels):
            is_new = labels[start:] >= self.classes
            count = int(is_new.argmax()) if is_new.any() else len(is_new)
            if count == 0:
                self._add_class(labels[start])
            if self._is_first_of_class:
                count = 1
            part = slice(start, start + count)
            own = None if weights is None else weights[part]
            given = None if answered is None else answered[part]
            try:
                piece = sliced(rows, part)
                parts.append(self._feed(piece, labels[part], own, answered=given))
            except NumericalError as error:
                fault = error.shifted(start)
                fault.learned = self._joined([*parts, error.learned])
                raise fault from None
            start = part.stop
        return self._joined(parts)

    def _joined(self, parts: Sequence[Floats]) -> Floats:
        """The scores of parts, of which the first ones may have fewer classes."""
        return np.concatenate([padded(part, self.classes) for part in parts])

    def _add_class(self, label: float) -> None:
        """Add a class, whose first row comes next: the spare function becomes its own."""
        if label != self.classes:
            message = f"classes must appear in the order of their numbers: {self.classes} is next"
            raise ValueError(message)
        self._count()
        for loop in self.loops:
            if loop.classes:
                loop.f.copy_last_class()
                loop.classes = (self._functions + 1,)
        if not self._loops[-1].classes:
            self._loops.append(self._copied(self._loops[-1]))
        self._journal = None
        self.classes += 1
        self._options["classes"] = self.classes
        self._set_shape()
        self._counts.add_class()
        self._is_first_of_class = True

    def begin_after(self, before: Player) -> None:
        """Go on counting after rounds of a player with two labels, all of which were class 0."""
        tally = before.tally
        right = int(tally.confusion.trace())
        answered = int(tally.confusion.sum())
        rounds = tally.rounds
        of_one_class = np.full((1, 1), rounds)
        self._counts.tally = replace(tally, confusion=of_one_class, nonpositive_margins=0)
        self._add_class(1.0)
        self._counts.tally.confusion[0] = [right, answered - right]
        self._rounds = rounds

    def _copied(self, loop: Loop) -> Loop:
        """A loop with the same state; its random numbers go on differently."""
        seed = (*self._options["seed"], self._functions)
        learner = copy.copy(loop.learner)
        copied = Loop(learner, self.kernel, classes=(), seed=seed)
        state = copy.deepcopy(loop.state_dict())
        state["random"] = learner.rng.bit_generator.state
        with StateReader(state, self._context(copied)) as reader:
            copied.load_state_dict(reader, self._rounds)
        return copied

    def _learn_block(self, block: Block) -> None:
        """Learn a block and write f(x) to its scores; if this fails, restore the state before."""
        if self._counts.are_many(block):  # not after the block: `undo_block` needs it uncounted
            self._count()
        journal = self._journal
        if journal is None or (block.first >= journal.ask_from and journal.is_over(block.first)):
            journal = self._begin_journal()
        points = block.points
        assert points is not None
        scores = block.scores
        try:
            self._complete = False
            self._run_loops(block, points, scores)
            for loop in self._loops:
                block.updates += loop.updates
                block.margin_updates += loop.margin_updates
            if block.answered is not None:
                block.scores = block.answered
            self._counts.waiting.append(block)
            self._rounds = block.first + points.size
            if journal is None:
                block.points = None
            else:
                journal.add(block, points)
            self._complete = True
        except BaseException:
            self._restore(block.first)
            raise

    def undo_block(self) -> None:
        """Undo the block learned last, as if it had failed; only right after `feed`.

        Several players that learn the same row need it, if one of them cannot.
        """
        last = self._counts.waiting[-1]
        self._complete = False
        self._restore(last.first)

    def _begin_journal(self) -> Journal | None:
        """Begin another journal; None if the learner cannot be saved."""
        before = self._journal
        try:
            self._journal = Journal(self.loops, self._rounds)
        except StateError:
            self._journal = None
        if before is not None:
            before.end()
        return self._journal

    def _restore(self, rounds: int) -> None:
        """Restore the state after `rounds` rounds; if that fails, the player stays incomplete."""
        journal = self._journal
        if journal is None:
            return
        with contextlib.suppress(Exception):  # the error that called for it is raised
            again = Player(self._loops[0].learner, self.kernel, **self._options)
            for loop, state in zip(again._loops, journal.states, strict=True):
                with StateReader(state, self._context(loop)) as reader:
                    loop.load_state_dict(reader, journal.first)
            self._loops = again._loops
            journal.blocks = [one for one in journal.blocks if one.first < rounds]
            for earlier in journal.blocks:
                assert earlier.points is not None
                unused = np.empty((earlier.points.size, *self._shape))
                self._run_loops(earlier, earlier.points, unused)
            self._counts.forget_from(rounds)
            self._rounds = rounds
            self._complete = True

    def _run_loops(self, block: Block, points: Points, scores: Floats) -> None:
        """Run a block in all loops; write f(x) of each round before its update to `scores`."""
        self._finished = False
        weights = block.weights
        first = block.first
        if len(self._loops) == 1:
            (loop,) = self._loops
            values = loop.run(points, block.labels, weights=weights, first=first)
            scores[:] = np.asarray(values)[:, : self.classes] if self.growing else values
        else:
            for c, loop in enumerate(self._loops):
                signs = np.where(block.labels == c, 1.0, -1.0)
                own = loop.run(points, signs, weights=weights, first=first)
                if c < self.classes:
                    scores[:, c] = own
        if self._is_first_of_class:  # it did not exist when the row was predicted
            others = scores[:, :-1].max(axis=1)
            scores[:, -1] = np.minimum(scores[:, -1], others)

    def _blocks(self, rows: Rows, before: int) -> Iterator[Points]:
        """Yield rows as points, block by block; `before` is the number of earlier rounds."""
        start = 0
        ready = 0
        while start < len(rows):
            left = self._block - (before + start) % self._block  # rounds left in the block
            if start == ready:  # 64 blocks at once
                first = start
                ready = min(start + left + 63 * self._block, len(rows))
                points = self.conversion.convert(sliced(rows, slice(first, ready)))
            stop = min(start + left, ready)
            if stop - start == points.size:
                yield points
            else:
                yield points.slice(start - first, stop - first)
            start = stop

    def learn(self, row: RowsLike, y: float, weight: float | None = None) -> Any:
        """Predict and learn from one row.

        Parameters
        ----------
        row : array of shape (p,), or a scipy.sparse matrix or CsrRows with one row
        y : float
            Label as in `feed`.
        weight : float, optional

        Returns
        -------
        float, or array of shape (k,) with k classes
            f(x) before the row was learned.
        """
        weights = None if weight is None else [weight]
        scores = self._feed(_one_row(row), [y], weights)[0]
        if self._shape:
            return scores.copy()
        return float(scores)

    def score(self, row: RowsLike) -> Any:
        """Value of the current f at one row, without learning. `row` is as in `learn`."""
        scores = self.scores(_one_row(row))[0]
        if self._shape:
            return scores
        return float(scores)

    @np.errstate(over="ignore", invalid="ignore")
    def scores(self, rows: RowsLike) -> Floats:
        """Values of the current f at these rows, without learning or counting.

        Returns
        -------
        array of shape (n,), or (n, k) with k classes
        """
        self._check_intact()
        rows = as_rows(rows)
        count = len(rows)
        scores = np.empty((count, *self._shape))
        # no round changes f, so blocks may be larger: about 1 MB of kernel values
        step = max(self._block, (1 << 17) // (self.size or 4096))
        conversion = self.conversion.copy()  # the first piece to learn decides, not these rows
        done = 0
        try:
            for start in range(0, count, step):
                stop = min(start + step, count)
                part = slice(start, stop)
                block = conversion.convert(sliced(rows, part))
                values = [loop.f.at(block) for loop in self.loops]
                if len(values) > 1:
                    values = [np.stack(values, axis=1)]
                found = values[0]
                scores[part] = found[:, : self.classes] if self.growing else found
                check_finite(scores[part])
                done = stop
        except NumericalError as error:
            raise error.shifted(done) from None
        return scores

    # Checks -------------------------------------------------------------------------------------

    def _checked(
        self, data: RowsLike, given_labels: ArrayLike, given_weights: ArrayLike | None
    ) -> tuple[Rows, Floats, Floats | None]:
        """Validated rows, labels and weights as arrays; a ValueError if their lengths differ."""
        rows = as_rows(data)
        count = len(rows)
        labels = np.array(given_labels, dtype=np.float64)
        if labels.shape != (count,):
            message = f"there must be a label for each of {count} rows, got {labels.shape}"
            raise ValueError(message)
        if not self._legal.issuperset(labels.tolist()):
            numbers = "-1 and +1"
            if self.classes > 2:
                numbers = f"0 to {self.classes - 1}"
            raise ValueError(f"labels must be {numbers}")
        if given_weights is None:
            return rows, labels, None
        weights = np.asarray(given_weights, dtype=np.float64)
        self._check_weights(weights, count=count)
        return rows, labels, weights

    def _check_weights(self, weights: Floats, count: int) -> None:
        """Raise an error if these are not `count` weights that the learner can use."""
        legal = (weights > 0) & (weights < np.inf)
        if weights.shape != (count,) or not legal.all():
            raise ValueError("there must be a finite weight > 0 for each row")
        if not self.learner.takes_costs and (weights != 1).any():
            raise ParameterError(f"{self.learner.name} cannot weigh examples", "weights")

    # Statistics ---------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int | float | None]:
        """Statistics of the learner in addition to the tally, by name.

        With one learner per class, statistics that are integers in the first are summed over the
        classes, and all others are left out.
        """
        reports = [loop.learner.statistics() for loop in self.loops]
        if len(reports) == 1:
            return reports[0]
        sums: dict[str, int | float | None] = {}
        for name, first in reports[0].items():
            if not isinstance(first, int):
                continue
            total = 0
            for report in reports:
                total += int(report[name] or 0)
            sums[name] = total
        return sums

    @property
    def last_reset(self) -> int | None:
        """The round, from 1, of the last reset of a learner; None if there was none.

        f knows only the rows after it; with one learner per class, that of at least one class.
        """
        resets = [loop.learner.last_reset for loop in self.loops]
        known = [reset for reset in resets if reset is not None]
        return max(known, default=None)

    def warnings(self) -> list[str]:
        """Warnings about numerical problems or resets during the run, one text each."""
        count = len(self.loops)
        texts = []
        for number, loop in enumerate(self.loops, 1):
            for text in loop.learner.warnings(loop.f):
                if count > 1:
                    text = f"class {number} of {count}: {text}"
                texts.append(text)
        return texts

    # State --------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """The complete state as a nested dict of numbers, text and arrays."""
        tally = self.tally.state_dict()
        calibration = self.calibration.state_dict()
        loops = {}
        for number, loop in enumerate(self.loops):
            loops[str(number)] = loop.state_dict()
        return {
            "tally": tally,
            "calibration": calibration,
            "centre": self.conversion.centre,
            "sparse": self.conversion.sparse,
            "loops": loops,
        }

    @np.errstate(over="ignore", invalid="ignore")
    def load_state_dict(self, state: State) -> Self:
        """Restore a state in a new player with the same learner, kernel and parameters."""
        self._journal = None
        conversion = self.conversion
        with StateReader(state, {}) as reader:
            reader.value("tally", self.tally)
            reader.value("calibration", self._counts.calibration)
            self._rounds = self._counts.tally.rounds
            conversion.sparse = reader.value("sparse")
            conversion.centre = reader.value("centre")
            if not conversion.is_consistent(begun=self._rounds > 0):
                raise reader.refusal("sparse", "does not fit the stream")
            with reader.part("loops") as loops:
                for number, loop in enumerate(self.loops):
                    context = self._context(loop)
                    with loops.part(str(number), **context) as own:
                        loop.load_state_dict(own, self._rounds)
        if self._rounds:
            self._check_parts()
        return self

    def _check_parts(self) -> None:
        """Predict one row: a StateError if parts of the state do not fit together."""
        centre = self.conversion.centre
        width = 1 if centre is None else len(centre)
        row = np.zeros((1, width))
        try:
            self.scores(row)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise StateError(f"its parts do not fit together: {error}") from None

    def _context(self, loop: Loop) -> State:
        """Attributes of all objects that are created from a loop's state."""
        return {"kernel": self.kernel, "rng": loop.learner.rng}

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle and deepcopy through the state, without the tables of the last block."""
        return _restored, (self.learner, self.kernel, self._options, self.state_dict())


def _restored(learner: Learner, kernel: Kernel, options: State, state: State) -> Player:
    return Player(learner, kernel, **options).load_state_dict(state)


def padded(scores: Floats, classes: int) -> Floats:
    """Scores with a column per class: classes that were not known get the smallest score."""
    missing = classes - scores.shape[1]
    if missing <= 0:
        return scores
    least = scores.min(axis=1, keepdims=True)
    return np.concatenate([scores, np.repeat(least, missing, axis=1)], axis=1)


def _check_at_least(least: int, name: str, value: int) -> None:
    """Raise a ParameterError if an argument of a player is too small."""
    if value < least:
        raise ParameterError(f"{name} must be a whole number >= {least}, got {value}", name)


def _one_row(row: RowsLike) -> RowsLike:
    """A single row as a matrix of shape (1, p)."""
    if isinstance(row, CsrRows) or hasattr(row, "tocsr"):
        return row
    features = np.asarray(row)
    return features[None]


def play(
    learner: Learner,
    rows: RowsLike,
    labels: ArrayLike,
    kernel: Kernel | None = None,
    *,
    seed: Sequence[int] = (0,),
) -> Player:
    """Run a learner on a complete stream with two classes and return the `Player`.

    Parameters are those of `Player` and `Player.feed`; T is the number of labels.

    Examples
    --------
    >>> from ahpatron_cli.core import Perceptron, play
    >>> play(Perceptron(), [[0.0], [1.0], [0.1], [0.9]], [-1, 1, -1, 1]).tally.mistakes
    2
    """
    labels = np.asarray(labels, dtype=np.float64)
    player = Player(learner, kernel, seed=seed, horizon=labels.size)
    player.feed(rows, labels)
    return player
