"""The hypothesis `f = Σ_i a_i κ(s_i, ·)` in the span of S, with the covariance C of a; Q = K^{-1}.

Within a block S, a, Q and C stay as they were when it opened; what the rounds do is kept as a list
of rank-one events

    C_now = C + Σ_e s_e·g_e·g_eᵀ,   g = (-d, 1), s = 1/δ where an example joins,
                                    g = C_now·k, s = -b where one teaches,

of which the rounds see only the products g_e·k_t, one row of length m per event:

    joins at s:    ρ_t = g·k_t = κ(s,t) - k_t·Q·k_s - Σ_joins ρ_j,t·ρ_j,s/δ_j,      δ = ρ_s
    teaches at s:  w_t = g·k_t = k_t·C·k_s + Σ_e s_e·(g_e·k_t)(g_e·k_s),            f_t += c·w_t

(k_t grows with S; its new entries are in κ(s,t) already.) So an update costs two calls with arrays
as long as a block, and S, a, Q, C are brought up to date once per block ("settle").
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ahpatron_cli.core.blas import dasum, daxpy, dgemv, dpotrf, dsymm, dsymv, dsyrk, dtrsm
from ahpatron_cli.core.expansion import CANCELLED
from ahpatron_cli.core.hypothesis import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points, exchange_points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import Stored

DOUBTFUL = 1e4 * CANCELLED
"""Values of f this small beside Σ|a|·max κ are computed anew from kernel values."""
MARGIN_SLACK = 0.05
"""Rounds with |f(x)| < 1 plus this at the opening are expected to teach."""
LANES = 8
"""Products have a multiple of this many rows: each row's bits then do not depend on the others."""
ROUNDING = float(np.finfo(np.float64).eps)
NEGLIGIBLE = 1e-250
"""k·C·k up to this is 0 but for underflow: x is orthogonal to S, and teaches nothing."""
WATCH_EVERY = 4096
"""Updates between two checks that C is positive semidefinite; more where S is large."""


class SecondOrder(Hypothesis):
    """f in the span of S, with the covariance of its coefficients."""

    size: int
    """|S|, this block's newcomers included."""
    looks_ahead = True
    _a: Floats
    _C: Floats  # lower triangle
    _Q: Floats  # lower triangle; empty once S is full
    _since_watch: int

    def __init__(self, kernel: Kernel, budget: int, columns: tuple[int, ...] = ()) -> None:
        """`columns` are those of a: none, or one per class."""
        self.kernel = kernel
        self._columns = columns
        self.budget = budget
        self.rounds = 0
        """Rounds played in the blocks before this one."""
        self.cleared: list[int] = []
        """The rounds, from 0, in which f was set to 0."""
        self.mended = 0
        """How often C had lost positive semidefiniteness to rounding, and was mended."""
        self.points: Points | None = None
        self._empty()
        self._room = 0
        self._now = 0
        self._events = 0
        """Joins and updates since the arrays were up to date."""
        self._in_C: _Products
        self._in_Q: _Products

    # What the engine does -----------------------------------------------------------------------

    def open(self, block: Points, labels: Floats) -> None:
        self.points = (self.points or block.slice(0, 0)).widened(block.width)
        self._block, self._played = block, len(labels)
        n, m = self.points.size, block.size
        table = self.kernel.between(block, self.points.followed_by(block))
        self._K, self._G = table[:, :n], table[:, n:]
        self._make_room(m)
        self._begin()

    def values(self) -> Floats:
        """f of all rounds of the block, as it is now; each at rounding level as `value` has it."""
        values = self._f
        doubtful = np.flatnonzero((np.abs(values) <= self._noise) & (values != 0.0))
        if len(doubtful):
            values = values.copy()
            for t in doubtful.tolist():
                values[t] = self._exact(t)
        return values

    def value(self, round_: int) -> float:
        self._now = round_
        value = self._f.item(round_)
        if -self._noise <= value <= self._noise and value != 0.0:
            value = self._exact(round_)
        return value

    def close(self) -> None:
        self._settle()
        self.rounds += self._played

    def at(self, points: Points) -> Floats:
        if self.points is None:
            return np.zeros((points.size, *self._columns))
        K = self.kernel.between(self.points.widened(points.width), points)
        values = self._a.T @ K
        cancelled = np.abs(values) <= CANCELLED * (np.abs(self._a.T) @ np.abs(K))
        return np.where(cancelled, 0.0, values).T

    @property
    def norm(self) -> float:
        """‖f‖."""
        if not self.size:
            return 0.0
        assert self.points is not None
        gram = self.kernel.between(self.points, self.points)
        a = self._a
        squared = np.sum(a * (gram @ a)) if self._columns else a @ gram @ a
        return math.sqrt(max(float(squared), 0.0))

    def compress(self, origin: Floats | None) -> None:
        if isinstance(self.points, DensePoints):
            self.points = self.points.to_sparse(origin)

    def exchange(self, stored: Stored) -> None:
        self.rounds = stored.integer("rounds", self.rounds)
        cleared = np.array(self.cleared, dtype=np.int64)
        self.cleared = stored.array("cleared", (None,), cleared, np.int64).tolist()
        self.mended = stored.integer("mended", self.mended)
        self._since_watch = stored.integer("since_watch", self._since_watch)
        self.points = exchange_points(stored, "points", self.points)
        self.size = size = 0 if self.points is None else self.points.size
        self._a = stored.array("coefficients", (size, *self._columns), self._a)
        self._C = _exchange_lower(stored, "covariance", self._C, size)
        self._Q = _exchange_lower(stored, "inverse", self._Q, 0 if size == self.budget else size)

    def __getstate__(self) -> dict[str, Any]:
        """What a copy takes along between two blocks: buffers are views of each other."""
        names = ("kernel", "budget", "size", "rounds", "cleared", "mended", "points")
        own = ("_columns", "_a", "_C", "_Q", "_since_watch", "_suspect")
        return {name: getattr(self, name) for name in names + own} | {"_room": 0, "_now": 0}

    # What the learner does ----------------------------------------------------------------------

    @property
    def age(self) -> int:
        """Rounds played before the current one."""
        return self.rounds + self._now

    @property
    def room(self) -> float:
        """1 - |S|/B: the part of the budget that is left."""
        return 1.0 - self.size / self.budget

    def clear(self) -> None:
        """f ← 0, with nothing in S."""
        assert self.points is not None
        self.cleared.append(self.age)
        self.points = self.points.slice(0, 0)
        self._empty()
        self._K = np.empty((self._G.shape[0], 0))
        self._begin()

    def _empty(self) -> None:
        self.size = 0
        self._a = np.zeros((0, *self._columns))
        self._C, self._Q = np.zeros((0, 0), order="F"), np.zeros((0, 0), order="F")
        self._since_watch, self._suspect = 0, False

    def join(self, tolerance: float) -> bool:
        """Let the current example into S, with coefficient 0, unless the span has it already."""
        now, j, i = self._now, len(self._joined), self._events
        slot = self._in_Q.slot(now)
        rho = self._RZ[j]
        np.subtract(self._G[now], self._in_Q.products[slot], out=rho)
        if j:
            rho -= self._RX[:j, now] @ self._RZ[:j]
        delta = rho.item(now)
        if not delta > tolerance:
            return False
        np.divide(rho, delta, out=self._RX[j])
        self._Z[i], self._X[i] = rho, self._RX[j]
        self._joined.append((now, slot, delta, i))
        self._log.append((now, -1, self._no_step, 0.0))
        self._events = i + 1
        self.size += 1
        return True

    def teach(self, step: Any, noise: float) -> bool:
        """`a += step·b·u`, `C -= b·u·uᵀ`, u = C·k, b = 1/(k·u + noise), for the current example.

        False: k·u is 0, and nothing changed.
        """
        now, i = self._now, self._events
        slot = self._in_C.slots[now]
        if slot < 0:
            slot = self._in_C.slot(now)
        w = self._Zrows[i]
        w[:] = self._in_C.products[slot]
        if i:
            dgemv(1.0, self._heads[i], self._Xflat, 1.0, w, now, self._room, overwrite_y=1)
        v = w.item(now)
        if not v > NEGLIGIBLE:
            self._suspect = self._suspect or v < 0.0
            return False
        b = 1.0 / (v + noise)
        step = step * b
        np.multiply(w, -b, out=self._Xrows[i])
        self._move(w, step)
        self._log.append((now, slot, step, b))
        self._events = i + 1
        return True

    def _move(self, w: Floats, step: Any) -> None:
        """`f += step·w`, in place."""
        daxpy(w, self._f, a=step)

    # Housekeeping -------------------------------------------------------------------------------

    def _make_room(self, m: int) -> None:
        """Buffers for blocks of m rounds: two events a round, at most."""
        if m == self._room:
            return
        self._room = m
        self._Z, self._X = np.zeros((2 * m, m)), np.zeros((2 * m, m))
        self._Zrows, self._Xrows = list(self._Z), list(self._X)
        self._Xflat = self._X.reshape(-1)
        self._heads = [self._Z[:i].T for i in range(2 * m + 1)]
        self._RZ, self._RX = np.zeros((m, m)), np.zeros((m, m))

    def _begin(self) -> None:
        """No event yet in this block, or none since everything was settled."""
        n, m = len(self._a), self._room
        self._events = 0
        self._log: list[tuple[int, int, Any, float]] = []  # round, slot in C or -1, c, b
        self._joined: list[tuple[int, int, float, int]] = []  # round, slot in Q, δ, event
        self._f = self._K @ self._a if n else np.zeros((m, *self._columns))
        self._no_step = np.zeros(self._columns) if self._columns else 0.0
        self._noise = DOUBTFUL * (1.0 + dasum(self._a.ravel())) if n else DOUBTFUL
        near = self._distances()
        self._in_C = _Products(self._C, self._K, near, 1.0 + MARGIN_SLACK)
        self._in_Q = _Products(self._Q, self._K, near, self.room)

    def _distances(self) -> Floats:
        """|f| of each round, by which it is seen whether the round is likely to teach."""
        return np.abs(self._f)

    def _exact(self, t: int) -> float:
        """f at a round of the block from kernel values, and exactly 0 where its terms cancel.

        Where x is far from all of S, f may well be small: then no digits were lost.
        """
        value = self._f.item(t)
        if abs(value) > self._noise * self._largest_kernel_value(t):
            return value
        self._settle()
        self._begin()
        if self._cancelled(t):
            self._f[t] = 0.0
        return self._f.item(t)

    def _largest_kernel_value(self, t: int) -> float:
        """Of a round of the block with S."""
        new = [s for s, _, _, _ in self._joined]
        near, own = np.abs(self._K[t]), np.abs(self._G[t, new])
        return float(max(near.max(initial=0.0), own.max(initial=0.0)))

    def _cancelled(self, t: int) -> Any:
        """Whether f at a round, or which f_c there, is a sum that cancelled but for rounding."""
        return np.abs(self._f[t]) <= CANCELLED * (np.abs(self._K[t]) @ np.abs(self._a))

    def _settle(self) -> None:
        """Bring S, a, Q and C up to date with the events of the block."""
        E = self._events
        if not E:
            return
        assert self.points is not None
        old, J = len(self._a), len(self._joined)
        n = old + J
        g = np.zeros((E, n))
        times, slots, steps, shrinks = (np.array(column) for column in zip(*self._log, strict=True))
        taught = np.flatnonzero(slots >= 0)
        g[taught, :old] = self._in_C.images[slots[taught]]
        mix = self._X[:E].take(times, axis=1)  # event e's share in event i, for e < i
        if J:
            rounds = np.array([t for t, _, _, _ in self._joined])
            rows = [i for _, _, _, i in self._joined]
            scales = np.array([1.0 / math.sqrt(delta) for _, _, delta, _ in self._joined])
            own = np.zeros((J, n))  # -D
            own[:, :old] = -self._in_Q.images[[slot for _, slot, _, _ in self._joined]]
            own[:, old:] = np.eye(J)
            share = -self._RX[:J].take(rounds, axis=1)
            own = _unmixed(own, share)
            g[rows] = own
            mix[:, rows] = 0.0
            own *= scales[:, None]
            self._C, self._Q = _grown(self._C, own), _grown(self._Q, own)
            self._a = np.concatenate((self._a, np.zeros((J, *self._columns))))
            self.points.append(self._block, rounds)
            self._K = np.concatenate((self._K, self._G[:, rounds]), axis=1)
            if n == self.budget:
                self._Q = np.zeros((0, 0), order="F")
        if len(taught):
            g = _unmixed(g, mix)
            self._a = self._a + (g.T @ steps if self._columns else steps @ g)
            g *= np.sqrt(shrinks)[:, None]
            self._C = dsyrk(-1.0, g.T, beta=1.0, c=self._C, lower=1, overwrite_c=1)
            self._since_watch += len(taught)
        if self._suspect or self._since_watch >= max(WATCH_EVERY, 8 * n):
            self._watch()

    def _watch(self) -> None:
        """Mend C where rounding made it indefinite: raise the eigenvalues below rounding."""
        self._since_watch, self._suspect = 0, False
        n = len(self._a)
        if not n:
            return
        level = n * ROUNDING * float(np.diagonal(self._C).max())
        lifted = self._C.copy(order="F")
        np.fill_diagonal(lifted, np.diagonal(self._C) + level)
        if dpotrf(lifted, lower=1, overwrite_a=1)[1] == 0:
            return
        values, vectors = np.linalg.eigh(self._C)  # of the lower triangle
        level = n * ROUNDING * max(float(values[-1]), ROUNDING)
        self._C = np.asfortranarray((vectors * np.maximum(values, level)) @ vectors.T)
        self.mended += 1


class _Products:
    """A·k_s and its products k_t·A·k_s with all rounds t of a block, for the rounds s that ask.

    The first to ask brings along all rounds whose |f| was below `limit` when the block opened: they
    are likely to ask as well, and one product for all costs little more. Others come alone. So what
    a round gets depends on no other round, and on no label.
    """

    def __init__(self, A: Floats, K: Floats, near: Floats, limit: float) -> None:
        """A has its lower triangle; K is m x n, one row per round; `near` is |f| of the rounds."""
        self._A, self._K = A, K
        self._likely = (near < limit).nonzero()[0]  # f will move
        self.slots = [-1] * len(near)
        self._count = -1

    def slot(self, now: int) -> int:
        """Where round `now` stands in `images` and `products`."""
        if self._count < 0:
            self._gather()
        slot = self.slots[now]
        if slot < 0:
            slot = self.slots[now] = self._count
            self._count += 1
            if self._A.size:
                image = self.images[slot] = dsymv(1.0, self._A, self._K[now], lower=1)
                self.products[slot] = self._K @ image
        return slot

    def _gather(self) -> None:
        (m, n), chosen = self._K.shape, self._likely
        self._count = count = -(-len(chosen) // LANES) * LANES
        self.images, self.products = np.zeros((count + m, n)), np.zeros((count + m, m))
        if not count:
            return
        for slot, t in enumerate(chosen.tolist()):
            self.slots[t] = slot
        if n:
            rows, images = self._K[np.resize(chosen, count)], self.images[:count]
            dsymm(1.0, self._A, rows.T, c=images.T, lower=1, overwrite_c=1)
            np.dot(images, self._K.T, out=self.products[:count])


def _unmixed(rows: Floats, share: Floats) -> Floats:
    """g with `g_i = rows_i + Σ_{e<i} share_ei·g_e`."""
    turned = dtrsm(1.0, -share.T, rows.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
    return np.asarray(turned.T)


def _grown(A: Floats, own: Floats) -> Floats:
    """A padded with zeros, plus `ownᵀ·own`; lower triangles."""
    n, old = own.shape[1], len(A)
    grown = np.zeros((n, n), order="F")
    grown[:old, :old] = A
    return np.asarray(dsyrk(1.0, own.T, beta=1.0, c=grown, lower=1, overwrite_c=1))


def _exchange_lower(stored: Stored, name: str, A: Floats, size: int) -> Floats:
    """Write the lower triangle of A, row by row, or read back what was written."""
    entries = stored.array(name, (size * (size + 1) // 2,), A[np.tril_indices(len(A))])
    lower = np.zeros((size, size), order="F")
    lower[np.tril_indices(size)] = entries
    return lower
