"""The engine: one loop over the rounds of a stream, for every learner.

    in each round: predict f(x), see y, margin = y·f(x)
    if margin < learner.update_below, or f(x) = 0 and y = -1, or S is empty:
        learner.update(f, y, margin)

Kernel values are computed for a block of rounds at once, but the protocol stays strict: a
prediction depends on the rounds before it and on nothing else. Blocks end at multiples of 64 rounds
of the stream, or where a piece of it ends.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from ahpatron_cli.core.errors import NumericalError, ParameterError
from ahpatron_cli.core.expansion import Hypothesis
from ahpatron_cli.core.kernels import Gaussian, Kernel
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, as_double, compressed, rows_from, rows_of
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import Tally

ALGORITHM = 7
"""Version of the learners: raised whenever one may count differently on the same stream."""
BLOCK = 64
"""Rounds per block. Counts do not depend on it; bits may, so it is fixed for a version."""


class Player:
    """One pass of a learner over a stream that arrives in pieces, or row by row.

    Parameters
    ----------
    learner : Learner
        A configuration; the pass works on a copy of it.
    kernel : Kernel, default=Gaussian()
        Unless the learner has a kernel of its own.
    seed : sequence of int
        Seed of the learner's random generator.
    horizon : int, optional
        T, the number of rounds, if it is known beforehand.
    block : int, default=64
        Rounds whose kernel values are computed together.

    Attributes
    ----------
    learner : Learner
        The copy: parameters that depend on T have their values, and its counts are of this pass.
    f : Hypothesis
        The hypothesis as it is now.
    tally : Tally
        What was counted so far.

    Notes
    -----
    Pieces that end at multiples of 64 rounds give the same bits as one long piece; other pieces
    give the same predictions up to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from ahpatron_cli.core import Ahpatron, Gaussian, Player
    >>> player = Player(Ahpatron(budget=10), Gaussian(sigma=0.5))
    >>> player.learn([0.0, 1.0], 1)
    0.0
    >>> round(player.learn([0.0, 0.9], -1), 3)
    0.245
    >>> player.tally.mistakes
    1
    >>> player.score([0.0, 1.0]) < 0.5
    True
    """

    _tally: Tally
    _uncounted: list[tuple[Floats, Floats]]
    shape: tuple[int, ...] = ()
    """Shape of the prediction of one round."""

    def __init__(
        self,
        learner: Learner,
        kernel: Kernel | None = None,
        *,
        seed: Sequence[int] = (0,),
        horizon: int | None = None,
        block: int = BLOCK,
    ) -> None:
        self.learner = learner.resolved(horizon)
        self.learner.rng = np.random.default_rng(seed)
        for name in ("update_below", "next_call"):  # in the object they are read more quickly
            setattr(self.learner, name, getattr(self.learner, name))
        self.kernel = self.learner.own_kernel or (Gaussian() if kernel is None else kernel)
        self.tally = self.new_tally()
        self._block, self._rounds = block, 0
        self._centre: Floats | None = None
        self._sparse: bool | None = None  # decided by the first row
        self._begin()

    def _begin(self) -> None:
        self.f: Any = self.learner.begin(self.kernel)

    def new_tally(self) -> Tally:
        """Counts of no rounds."""
        return Tally()

    @property
    def tally(self) -> Tally:
        """Counts so far. Rounds are counted when they are asked for, or 64 pieces at once."""
        if self._uncounted:
            scores, labels = (np.concatenate(parts) for parts in zip(*self._uncounted, strict=True))
            self._uncounted = []
            self._tally.count(scores, labels)
        return self._tally

    @tally.setter
    def tally(self, tally: Tally) -> None:
        self._tally, self._uncounted = tally, []

    # Learning -----------------------------------------------------------------------------------

    def feed(self, rows: Any, labels: ArrayLike, weights: ArrayLike | None = None) -> Floats:
        """Predict and learn from these rounds.

        Parameters
        ----------
        rows : array of shape (n, d), scipy.sparse matrix or CsrRows
        labels : array of shape (n,)
            -1 and +1; with several classes their numbers from 0 on.
        weights : array of shape (n,), optional
            Weights of the examples, for learners with `takes_costs`.

        Returns
        -------
        array of shape (n,), or (n, k) with k classes
            f(x) of each round, as it was predicted.
        """
        start = time.perf_counter()
        rows, signs, costs = self._checked(rows, labels, weights)
        scores = np.empty((len(signs), *self.shape))
        with np.errstate(over="ignore", invalid="ignore"):
            first, chunk = 0, 64 * self._block  # rows that are made kernel-ready together
            while first < len(signs):
                last = min(first + chunk - self._rounds % self._block, len(signs))
                self._feed(first, rows_of(rows, slice(first, last)), signs, costs, scores)
                first = last
        self._tally.seconds += time.perf_counter() - start
        return scores

    def _feed(self, first: int, rows: Rows, labels: Floats, weights: Any, scores: Floats) -> None:
        """Run the blocks of some rows, which begin at `first` in the piece."""
        done, before = 0, self._rounds
        try:
            points = self.points(rows)
            while done < points.size:
                end = min(done + self._block - (before + done) % self._block, points.size)
                part = slice(first + done, first + end)
                costs = None if weights is None else weights[part]
                block = points.slice(done, end) if end - done < points.size else points
                scores[part] = self.run_block(block, labels[part], costs, before + done)
                done = end
        except NumericalError as error:
            raise error.shifted(first + done) from None
        finally:  # the rounds of a block that fails are not counted
            self._rounds += done
            part = slice(first, first + done)
            self._uncounted.append((scores[part].copy(), labels[part]))
            if len(self._uncounted) == 64:
                self._tally = self.tally  # counts

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
        return scores if self.shape else float(scores)

    def score(self, row: Any) -> Any:
        """f, as it is now, at one row; nothing is learned. Arguments as in `learn`."""
        scores = self.scores(_one_row(row))[0]
        return scores if self.shape else float(scores)

    def scores(self, rows: Any) -> Floats:
        """f, as it is now, at these rows; nothing is learned, counted or changed.

        Returns
        -------
        array of shape (n,), or (n, k) with k classes
        """
        rows = rows_from(rows)
        scores = np.empty((len(rows), *self.shape))
        with np.errstate(over="ignore", invalid="ignore"):
            for begin in range(0, len(rows), 64 * self._block):
                piece = rows_of(rows, slice(begin, min(begin + 64 * self._block, len(rows))))
                try:
                    points, f = self._read(piece)
                except NumericalError as error:
                    raise error.shifted(begin) from None
                for start in range(0, points.size, self._block):
                    stop = min(start + self._block, points.size)
                    scores[begin + start : begin + stop] = f.at(points.slice(start, stop))
        _check_finite(scores)
        return scores

    def run_block(self, block: Points, labels: Floats, weights: Floats | None, first: int) -> Any:
        """Run the rounds of one block, from round `first` on; f(x) of each, as predicted."""
        self.learner.weight = 1.0
        self.f.open(block)
        try:
            scores, updates, margin_updates = self._run_rounds(labels, weights, first)
            self.learner.observe(block)
        finally:
            self.f.close()
        if not math.isfinite(sum(scores) if isinstance(scores, list) else scores.sum()):
            _check_finite(np.array(scores))
        self._tally.updates += updates
        self._tally.margin_updates += margin_updates
        return scores

    def _run_rounds(
        self, labels: Floats, weights: Floats | None, first: int
    ) -> tuple[Any, int, int]:
        """The loop: f(x) of each round, the number of updates, and of those with y·f(x) > 0."""
        learner, f, update = self.learner, self.f, self.learner.update
        scores = [0.0] * len(labels)
        costs = None if weights is None else weights.tolist()
        updates = margin_updates = 0
        values, noise, scale, empty = f.values, f.noise, f.scale, f.size == 0
        below, call = learner.update_below, learner.next_call - first
        for t, y in enumerate(labels.tolist()):
            value = values[t]
            if -noise <= value <= noise:  # perhaps a sum that cancelled
                value = f.careful(t)
            scores[t] = value = value * scale
            margin = y * value
            if margin < below or margin == 0.0 > y or empty or t == call:
                learner.round, f.t = first + t, t
                if costs is not None:
                    learner.weight = costs[t]
                if update(f, y, margin) is not False:
                    updates += 1
                    if margin > 0.0:
                        margin_updates += 1
                if f.successor is not None:
                    f = self._succeed()
                values, noise, scale, empty = f.values, f.noise, f.scale, f.size == 0
                below, call = learner.update_below, learner.next_call - first
        return scores, updates, margin_updates

    def _succeed(self) -> Any:
        """Continue the open block with the successor of f."""
        f, self.f = self.f, self.f.successor
        f.successor = None
        if f is not self.f:  # else the update has closed it
            f.close()
        self.f.open(f.block)
        return self.f

    # Rows ---------------------------------------------------------------------------------------

    def points(self, rows: Rows) -> Points:
        """Rows in kernel-ready form, dense ones centred on the first row of the stream.

        The first row decides whether the stream is dense or sparse. A dense stream becomes sparse
        with the first sparse rows, and stays so.
        """
        if self._sparse is None:
            self._sparse = isinstance(rows, CsrRows)
        elif isinstance(rows, CsrRows) and not self._sparse:
            self.f.to_sparse(None if self._centre is None else self._centre / self.kernel.unit())
            self._centre, self._sparse = None, True
        return self._points(rows)

    def _points(self, rows: Rows) -> Points:
        if self._sparse:
            return self.kernel.points(compressed(as_double(rows)))
        assert isinstance(rows, np.ndarray)
        if self._centre is None:
            # shifting keeps κ and saves digits, and no later round has a say
            first = np.nan_to_num(rows[0].astype(np.float64))
            self._centre = first if self.kernel.centred else np.zeros(rows.shape[1])
        missing = rows.shape[1] - len(self._centre)
        if missing > 0:
            self._centre = np.pad(self._centre, (0, missing))
        elif missing < 0:
            rows = np.pad(rows, ((0, 0), (0, -missing)))
        return self.kernel.points(rows, self._centre if self.kernel.centred else None)

    def _read(self, rows: Rows) -> tuple[Points, Hypothesis]:
        """Rows in kernel-ready form and f, without a change of this player."""
        reader = copy.copy(self)
        if self._sparse is False and isinstance(rows, CsrRows):
            reader.f = copy.deepcopy(self.f)
        return reader.points(rows), reader.f

    def _checked(
        self, rows: Any, labels: ArrayLike, weights: ArrayLike | None
    ) -> tuple[Rows, Floats, Floats | None]:
        """Rows, labels and weights in the form that a pass takes, if they fit together."""
        rows, labels = rows_from(rows), np.asarray(labels, dtype=np.float64)
        if labels.shape != (len(rows),):
            message = f"there must be a label for each of {len(rows)} rows, got {labels.shape}"
            raise ValueError(message)
        problem = self._label_problem(labels)
        if problem is not None:
            raise ValueError(problem)
        if weights is None:
            return rows, labels, None
        weights = np.asarray(weights, dtype=np.float64)
        if weights.shape != labels.shape or not ((weights > 0) & (weights < np.inf)).all():
            raise ValueError("there must be a finite weight > 0 for each row")
        if not self.learner.takes_costs and (weights != 1).any():
            raise ParameterError(f"{self.learner.name} cannot weigh examples", "weights")
        return rows, labels, weights

    def _label_problem(self, labels: Floats) -> str | None:
        few = len(labels) <= 64  # then a set is quicker
        legal = {-1.0, 1.0}.issuperset(labels.tolist()) if few else (np.abs(labels) == 1).all()
        return None if legal else "labels must be -1 and +1"

    # What a pass reports ------------------------------------------------------------------------

    def statistics(self) -> dict[str, int | float | None]:
        """What the learner reports in addition to the tally, by name."""
        return self.learner.statistics()

    def warnings(self) -> list[str]:
        """What the user must know about the numbers of this pass."""
        return self.learner.warnings(self.f)

    # State --------------------------------------------------------------------------------------

    def state_dict(self) -> State:
        """The whole pass, as plain numbers, text and arrays."""
        return {
            "tally": dict(vars(self.tally)),
            "centre": self._centre,
            "sparse": self._sparse,
            "pass": self._pass_state(),
        }

    def load_state_dict(self, state: State) -> Self:
        """Continue from a state, in a fresh player of the same learner, kernel and parameters."""
        shared = {"kernel": self.kernel, "rng": self.learner.rng}
        with np.errstate(over="ignore", invalid="ignore"), StateReader(state, shared) as reader:
            with reader.part("tally") as tally:
                self.tally.load_state_dict(tally)
            self._rounds = self._tally.rounds
            self._sparse = sparse = reader.value("sparse")
            self._centre = reader.array("centre", "d") if sparse is False else reader.take("centre")
            with reader.part("pass") as own:
                self._load_pass(own)
            begun = type(sparse) is bool if self.tally.rounds else sparse is None
            width = len(self._centre) if isinstance(self._centre, np.ndarray) else 0
            legal = begun and (sparse is False or self._centre is None)
            if not legal or not self.f.suits(bool(sparse), width):
                raise reader.refusal("pass", "has examples that are not of this stream")
        return self

    def _pass_state(self) -> State:
        bits: Any = self.learner.rng.bit_generator.state
        return {
            "learner": self.learner.state_dict(),
            "f": self.f.state_dict(),
            "random": {**bits["state"], "has": bits["has_uint32"], "half": bits["uinteger"]},
        }

    def _load_pass(self, state: StateReader) -> None:
        with state.part("random") as random:
            number = {name: random.integer(name, 2**128 - 1) for name in ("state", "inc")}
            self.learner.rng.bit_generator.state = {
                "bit_generator": "PCG64",
                "state": number,
                "has_uint32": random.integer("has", 1),
                "uinteger": random.integer("half", 2**32 - 1),
            }
        self.learner.round = self.tally.rounds
        learner = state.value("learner", self.learner)
        f = state.value("f", self.f, self.learner.successors)
        if learner is not self.learner or not isinstance(f, Hypothesis):
            raise state.refusal("f", f"is not what {self.learner.name} learns")
        most = self.learner.most_kept
        if most is not None and f.size is not None and f.size > most:
            raise state.refusal("f", "keeps more examples than the budget")
        self.f = f


def _check_finite(scores: Floats) -> None:
    finite = np.isfinite(scores.reshape(len(scores), -1)).all(axis=1)
    if not finite.all():
        raise NumericalError("f(x) is not a finite number", int(finite.argmin()), "score")


def _one_row(row: Any) -> Any:
    """One row as a matrix."""
    return row if isinstance(row, CsrRows) or hasattr(row, "tocsr") else np.asarray(row)[None]


def play(
    learner: Learner,
    rows: Any,
    labels: ArrayLike,
    kernel: Kernel | None = None,
    *,
    seed: Sequence[int] = (0,),
) -> Player:
    """Run a learner on a whole stream at once.

    Parameters
    ----------
    learner, kernel, seed
        As for `Player`.
    rows, labels
        As for `Player.feed`.

    Returns
    -------
    Player
        The finished pass: counts in `tally`, the hypothesis in `f`.

    Examples
    --------
    >>> import numpy as np
    >>> from ahpatron_cli.core import Perceptron, play
    >>> X = np.array([[0.0], [1.0], [0.1], [0.9]])
    >>> play(Perceptron(), X, [-1, 1, -1, 1]).tally.mistakes
    2
    """
    labels = np.asarray(labels, dtype=np.float64)
    player = Player(learner, kernel, seed=seed, horizon=labels.size)
    player.feed(rows, labels)
    return player
