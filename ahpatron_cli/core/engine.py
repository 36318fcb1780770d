"""The engine: one loop over the rounds of a stream, for every learner.

    in each round: predict f(x), see y, margin = y·f(x)
    if margin < learner.update_below, or f(x) = 0 and y = -1, or S is empty:
        learner.update(f, y, margin)

Kernel values are computed for a block of rounds at once, but the protocol stays strict: a
prediction depends on the rounds before it and on nothing else. Blocks end at multiples of 64 rounds
of the stream, or where a piece of it ends.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.random import default_rng  # slow to import: not while the first row waits
from numpy.typing import ArrayLike

from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.errors import NumericalError, ParameterError, StateError
from ahpatron_cli.core.expansion import Hypothesis
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import SHARED, Learner
from ahpatron_cli.core.points import NARROW, Points
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed, rows_from, rows_of
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import Tally, class_margins

ALGORITHM = 8
"""Version of the learners: raised when any count on the same stream may have changed."""
BLOCK = 64
"""Rounds per block. Affects the last bits of scores, but no counts; fixed for a version."""


class Loop:
    """The loop over the rounds of a block, for one learner and its f.

    `classes` is () for labels -1 and +1, or (k,) for k classes on one S, with labels 0, 1, …. Then
    f has a column per class and y is a direction: +1 for the true class, -1 for the best other
    class, 0 elsewhere. The margin is y·f(x), so an update reads the same in both cases.
    """

    def __init__(
        self, learner: Learner, kernel: Kernel, classes: tuple[int, ...], seed: Sequence[int]
    ) -> None:
        self.learner, self.classes = learner, classes
        learner.rng = default_rng(seed)
        for name in ("update_below", "next_call"):  # instance attributes are faster to read
            setattr(learner, name, getattr(learner, name))
        self.f: Any = learner.begin(kernel, classes) if classes else learner.begin(kernel)

    def run(
        self, block: Points, labels: Floats, weights: list[float] | None, first: int, tally: Tally
    ) -> Any:
        """Run a block that starts at round `first`; return f(x) of each round before its update."""
        self.learner.weight = 1.0
        self.f.open(block)
        try:
            scores = self._rounds(labels, weights, first, tally)
            self.learner.observe(block)
        finally:
            self.f.close()
        if not math.isfinite(scores.sum() if self.classes else sum(scores)):
            _check_finite(np.array(scores))
        return scores

    def _rounds(self, labels: Floats, weights: list[float] | None, first: int, tally: Tally) -> Any:
        learner, f, classes, update = self.learner, self.f, self.classes, self.learner.update
        scores: Any = np.empty((len(labels), *classes)) if classes else [0.0] * len(labels)
        updates = margin_updates = start = stop = 0
        margins: list[float] = []
        values, noise, scale, empty = f.values, f.noise, f.scale, f.size == 0
        below, call = learner.update_below, learner.next_call - first
        y: Any
        for t, y in enumerate(labels.tolist()):
            if classes:
                if t == stop:  # compute margins of several rounds: valid until the next update
                    start, stop = t, min(t + (1 if below == math.inf else 8), len(labels))
                    scores[start:stop] = ahead = f.class_values(start, stop)
                    found, rivals = class_margins(ahead, labels[start:stop])
                    margins = found.tolist()
                margin = margins[t - start]
            else:
                value = values[t]
                if -noise <= value <= noise:  # possibly only rounding of a sum that cancels
                    value = f.careful(t)
                scores[t] = value = value * scale
                margin = y * value
            if margin < below or margin == 0.0 > y or empty or t == call:
                learner.round, f.t = first + t, t
                if weights is not None:
                    learner.weight = weights[t]
                if classes:
                    true, y, stop = int(y), np.zeros(classes), t + 1
                    y[true], y[rivals[t - start]] = 1.0, -1.0
                if update(f, y, margin) is not False:
                    updates += 1
                    if margin > 0.0:
                        margin_updates += 1
                if f.successor is not None:
                    f = self._succeed()
                values, noise, scale, empty = f.values, f.noise, f.scale, f.size == 0
                below, call = learner.update_below, learner.next_call - first
        tally.updates += updates
        tally.margin_updates += margin_updates
        return scores

    def _succeed(self) -> Any:
        """Replace f by its successor and open the rest of the current block on it."""
        f, self.f = self.f, self.f.successor
        f.successor = None
        if f is not self.f:  # else the update has closed the block itself
            f.close()
        self.f.open(f.block)
        return self.f

    def state_dict(self) -> State:
        """State of the learner, of f and of the random generator, as a nested dict."""
        return {
            "learner": self.learner.state_dict(),
            "f": self.f.state_dict(),
            "random": self.learner.rng.bit_generator.state,
        }

    def load_state_dict(self, state: StateReader, rounds: int) -> None:
        """Restore a state that was saved after `rounds` rounds."""
        random = state.take("random")
        try:
            if min(*random["state"].values(), random["has_uint32"], random["uinteger"]) < 0:
                raise ValueError  # older versions of NumPy only warn
            self.learner.rng.bit_generator.state = random
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError):
            raise state.refusal("random", "is not the state of a random generator") from None
        self.learner.round = rounds
        learner = state.value("learner", self.learner)
        f, most = state.value("f", self.f, self.learner.successors), self.learner.most_kept
        if learner is not self.learner or not isinstance(f, Hypothesis):
            raise state.refusal("f", f"is not a hypothesis of {self.learner.name}")
        if most is not None and f.size is not None and f.size > most:
            raise state.refusal("f", "keeps more examples than the budget")
        self.f = f


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

    Attributes
    ----------
    loops : list of Loop
        The copies of the learner with their current f: one, or one per class (one-vs-rest).
    learner, f
        Learner and hypothesis of the first loop.
    tally : Tally
        Counts over all rounds so far.

    Notes
    -----
    The class with the largest f(x) is predicted; ties up to rounding go to the first class. Pieces
    that end at multiples of 64 rounds give bit-identical results to one long piece, other pieces
    the same predictions up to rounding. The first piece decides whether the stream is dense or
    sparse.

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

    _tally: Tally
    _uncounted: list[tuple[Floats, Floats]]

    def __init__(
        self,
        learner: Learner,
        kernel: Kernel | None = None,
        *,
        classes: int = 2,
        seed: Sequence[int] = (0,),
        horizon: int | None = None,
        block: int = BLOCK,
    ) -> None:
        self._options = {"classes": classes, "seed": seed, "horizon": horizon, "block": block}
        self.classes = classes
        self.kernel = learner.own_kernel or (Gaussian() if kernel is None else kernel)
        self._shape = () if classes == 2 else (classes,)
        self._legal = {-1.0, 1.0} if classes == 2 else set(range(classes))
        shared = classes == 2 or getattr(learner, "multiclass", None) == SHARED
        seeds = [seed] if shared else [(*seed, c) for c in range(classes)]
        of_loop = self._shape if shared else ()
        self.loops = [Loop(learner.resolved(horizon), self.kernel, of_loop, s) for s in seeds]
        self.tally = Tally.of(classes)
        self._calibration = Calibration(classes)
        self._block, self._rounds = block, 0
        self._centre: Floats | None = None
        self._sparse: bool | None = None  # decided by the first piece

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
        return None if None in sizes else max(sizes)

    @property
    def norm(self) -> float:
        """‖f‖; with several classes `√(Σ_c ‖f_c‖²)`."""
        return math.hypot(*(loop.f.norm for loop in self.loops))

    @property
    def tally(self) -> Tally:
        """Counts over all rounds so far (computed lazily, or after every 64 pieces)."""
        if self._uncounted:
            scores, labels = (np.concatenate(parts) for parts in zip(*self._uncounted, strict=True))
            self._uncounted = []
            self._tally.count(scores, labels)
            self._calibration.add(scores, labels)
        return self._tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        self._tally, self._uncounted = tally, []

    @property
    def calibration(self) -> Calibration:
        """Link from scores to probabilities, fitted to all rounds so far."""
        self._tally = self.tally  # counts pending rounds, which also feed the link
        self._calibration.fit()
        return self._calibration

    # Learning -----------------------------------------------------------------------------------

    @np.errstate(over="ignore", invalid="ignore")
    def feed(self, rows: Any, labels: Any, weights: Any = None) -> Floats:
        """Predict and learn from these rows, in order, one round per row.

        Parameters
        ----------
        rows : array of shape (n, d), scipy.sparse matrix or CsrRows
        labels : array of shape (n,)
            -1 or +1; with more than two classes 0, 1, ….
        weights : array of shape (n,), optional
            Weights of the examples, for learners with `takes_costs`.

        Returns
        -------
        array of shape (n,), or (n, k) with k classes
            f(x) of each round before its update.
        """
        start, done = time.perf_counter(), 0
        rows, labels, weights = self._checked(rows, labels, weights)
        scores = np.empty((len(labels), *self._shape))
        several = len(self.loops) > 1
        try:
            for block in self._blocks(rows, self._rounds):
                part = slice(done, done + block.size)
                costs = None if weights is None else weights[part].tolist()
                for c, loop in enumerate(self.loops):
                    y = np.where(labels[part] == c, 1.0, -1.0) if several else labels[part]
                    found = loop.run(block, y, costs, self._rounds, self._tally)
                    scores[(part, c) if several else part] = found
                self._rounds += block.size
                done = part.stop
        except NumericalError as error:
            raise error.shifted(done) from None
        finally:  # count the rounds before a block that failed
            self._uncounted.append((scores[:done].copy(), labels[:done]))
            if len(self._uncounted) == 64:
                self._tally = self.tally  # counts the pending rounds
        self._tally.seconds += time.perf_counter() - start
        return scores

    def _blocks(self, rows: Rows, before: int) -> Iterator[Points]:
        """Yield rows as points, block by block; `before` is the number of earlier rounds."""
        start = ready = 0
        while start < len(rows):
            left = self._block - (before + start) % self._block  # rounds left in the block
            if start == ready:  # 64 blocks at once
                first, ready = start, min(start + left + 63 * self._block, len(rows))
                points = self.points_of(rows_of(rows, slice(first, ready)))
            stop = min(start + left, ready)
            whole = stop - start == points.size
            yield points if whole else points.slice(start - first, stop - first)
            start = stop

    def learn(self, row: Any, y: float, weight: float | None = None) -> Any:
        """Predict and learn from one row.

        Parameters
        ----------
        row : array of shape (d,), or a scipy.sparse matrix or CsrRows with one row
        y : float
            Label as in `feed`.
        weight : float, optional

        Returns
        -------
        float, or array of shape (k,) with k classes
            f(x) before the row was learned.
        """
        weights = None if weight is None else [weight]
        scores = self.feed(_one_row(row), [y], weights)[0]
        return scores if self._shape else float(scores)

    def score(self, row: Any) -> Any:
        """Value of the current f at one row, without learning. `row` is as in `learn`."""
        scores = self.scores(_one_row(row))[0]
        return scores if self._shape else float(scores)

    @np.errstate(over="ignore", invalid="ignore")
    def scores(self, rows: Any) -> Floats:
        """Values of the current f at these rows, without learning or counting.

        Returns
        -------
        array of shape (n,), or (n, k) with k classes
        """
        rows, fixed, done = rows_from(rows), (self._centre, self._sparse), 0
        scores = np.empty((len(rows), *self._shape))
        # no round changes f, so blocks may be larger: about 1 MB of kernel values
        step = max(self._block, (1 << 17) // (self.size or 4096))
        try:
            for start in range(0, len(rows), step):
                part = slice(start, min(start + step, len(rows)))
                block = self.points_of(rows_of(rows, part))
                values = [loop.f.at(block) for loop in self.loops]
                scores[part] = values[0] if len(values) == 1 else np.stack(values, axis=1)
                _check_finite(scores[part])
                done = part.stop
        except NumericalError as error:
            raise error.shifted(done) from None
        finally:
            self._centre, self._sparse = fixed
        return scores

    # Rows ---------------------------------------------------------------------------------------

    def points_of(self, rows: Rows) -> Points:
        """Convert rows to points of the kernel; dense rows are centred on the first row."""
        if self._sparse is None:
            self._sparse = isinstance(rows, CsrRows) and not self.learner.dense
        if self._sparse:
            return self.kernel.points(compressed(rows))
        if isinstance(rows, CsrRows):
            wide = rows.owners[rows.columns >= NARROW]
            if len(wide):
                message = f"dense streams have at most {NARROW:,} features, got {rows.width:,}"
                raise NumericalError(message, int(wide[0]))
            rows = replace(rows, width=min(rows.width, NARROW)).dense()
        if self._centre is None:
            # shifting does not change κ and saves digits; only the first row decides the centre
            first = np.nan_to_num(rows[0].astype(np.float64))
            self.kernel.points(rows[:1])  # if its square overflows, the second row is not to blame
            self._centre = first if self.kernel.centred else np.zeros(rows.shape[1])
        missing = rows.shape[1] - len(self._centre)
        if missing > 0:
            self._centre = np.pad(self._centre, (0, missing))
        elif missing < 0:
            rows = np.pad(rows, ((0, 0), (0, -missing)))
        return self.kernel.points(rows, self._centre if self.kernel.centred else None)

    def _checked(self, rows: Any, labels: ArrayLike, weights: ArrayLike | None) -> Any:
        """Validated rows, labels and weights as arrays; a ValueError if their lengths differ."""
        rows, labels = rows_from(rows), np.asarray(labels, dtype=np.float64)
        if labels.shape != (len(rows),):
            message = f"there must be a label for each of {len(rows)} rows, got {labels.shape}"
            raise ValueError(message)
        if not self._legal.issuperset(labels.tolist()):
            numbers = "-1 and +1" if self.classes == 2 else f"0 to {self.classes - 1}"
            raise ValueError(f"labels must be {numbers}")
        if weights is not None:
            weights = np.asarray(weights, dtype=np.float64)
            if weights.shape != labels.shape or not ((weights > 0) & (weights < np.inf)).all():
                raise ValueError("there must be a finite weight > 0 for each row")
            if not self.learner.takes_costs and (weights != 1).any():
                raise ParameterError(f"{self.learner.name} cannot weigh examples", "weights")
        return rows, labels, weights

    # Statistics ---------------------------------------------------------------------------------

    def statistics(self) -> dict[str, int | float | None]:
        """Statistics of the learner in addition to the tally, by name.

        With one learner per class, counts are summed and all other statistics are left out.
        """
        reports = [loop.learner.statistics() for loop in self.loops]
        if not self._shape:
            return reports[0]
        counts = [name for name, value in reports[0].items() if isinstance(value, int)]
        return {name: sum(int(report[name] or 0) for report in reports) for name in counts}

    def warnings(self) -> list[str]:
        """Warnings about numerical problems or resets during the run, one text each."""
        several = len(self.loops) > 1
        return [
            f"class {number} of {len(self.loops)}: {text}" if several else text
            for number, loop in enumerate(self.loops, 1)
            for text in loop.learner.warnings(loop.f)
        ]

    # State --------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """The complete state as a nested dict of numbers, text and arrays."""
        return {
            "tally": self.tally.state_dict(),
            "calibration": self.calibration.state_dict(),
            "centre": self._centre,
            "sparse": self._sparse,
            "loops": {str(c): loop.state_dict() for c, loop in enumerate(self.loops)},
        }

    @np.errstate(over="ignore", invalid="ignore")
    def load_state_dict(self, state: State) -> Self:
        """Restore a state in a new player with the same learner, kernel and parameters."""
        with StateReader(state, {}) as reader:
            reader.value("tally", self.tally)
            reader.value("calibration", self._calibration)
            self._rounds, self._sparse = self._tally.rounds, reader.value("sparse")
            self._centre = reader.value("centre")
            begun = type(self._sparse) is bool if self._rounds else self._sparse is None
            if not begun or (self._sparse is False) != isinstance(self._centre, np.ndarray):
                raise reader.refusal("sparse", "does not fit the stream")
            with reader.part("loops") as loops:
                for c, loop in enumerate(self.loops):
                    context = {"kernel": self.kernel, "rng": loop.learner.rng}
                    with loops.part(str(c), **context) as own:
                        loop.load_state_dict(own, self._rounds)
        if self._rounds:
            try:  # predict one row: inconsistent parts would fail later
                width = 1 if self._centre is None else len(self._centre)
                self.scores(np.zeros((1, width)))
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                raise StateError(f"its parts do not fit together: {error}") from None
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle and deepcopy through the state, without the tables of the last block."""
        return _restored, (self.learner, self.kernel, self._options, self.state_dict())


def _restored(learner: Learner, kernel: Kernel, options: State, state: State) -> Player:
    return Player(learner, kernel, **options).load_state_dict(state)


def _check_finite(scores: Floats) -> None:
    finite = np.isfinite(scores.reshape(len(scores), -1)).all(axis=1)
    if not finite.all():
        raise NumericalError("f(x) is not a finite number", int(finite.argmin()))


def _one_row(row: Any) -> Any:
    """A single row as a matrix of shape (1, d)."""
    return row if isinstance(row, CsrRows) or hasattr(row, "tocsr") else np.asarray(row)[None]


def play(
    learner: Learner,
    rows: Any,
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
