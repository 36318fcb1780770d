"""Expansions that know K^{-1}, and so the distance of an example to the span of S.

With `d = K^{-1} k`, k = κ(S, x), the projection of κ(x,·) onto the span of S is `Σ d_i κ(s_i,·)`,
and `δ² = κ(x,x) - k·d` is its squared distance to the span. When x joins,

    K^{-1} ← [ K^{-1} + d·dᵀ/δ²   -d/δ² ]
             [      -dᵀ/δ²         1/δ² ]

which costs O(|S|²).
"""

from __future__ import annotations

import math
from typing import overload

import numpy as np

from ahpatron_cli.core.blas import ddot, dgemv, dpotrf, dpotri, dspmv, dspr, dsymv, dsyrk
from ahpatron_cli.core.budget import oldest_smallest
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import DensePoints, Points, exchange_points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import Saved, Stored

IN_SPAN = 1e-10
"""δ² below this is taken as 0: the example is in the span of S, as a duplicate is."""
NEAR_SPAN = 1e-4
"""δ² below this is computed with greater care."""
DOUBTFUL = 1e-2
"""δ² below this is computed with greater care where examples leave S again."""
DRIFT = 1e-8
"""How far K·K^{-1} may be from I."""
PROBE_EVERY = 50
"""Growths between two probes."""
SLOTS_AT_ONCE = 16
"""How many are added when all are taken."""
WAITING = 64
"""The most changes of K^{-1} that wait."""
LARGE_ENTRY = 1e3
"""Entries of K^{-1} from which on every growth is probed."""
ROUNDING = float(np.finfo(np.float64).eps)
NOISE = 1e3 * ROUNDING
"""Error of δ² for each unit of the largest entry of K^{-1}, with a margin."""


class Inverse(Saved):
    """K^{-1} of the active set S, for learners that project onto its span.

    Only one triangle is kept, packed column by column: a new column goes to the end, and nothing
    moves. Rounding adds up over the growths, the faster the larger K^{-1} is: it is probed against
    K every few growths, and where it has drifted it is computed anew; where it is large, d is
    corrected once before a growth, and every growth is probed.
    """

    def __init__(self) -> None:
        self.size = 0
        self.refreshes = 0
        """How often it had drifted and was computed anew."""
        self.drift = 0.0
        """The drift that was left after the last time; above 1e-8 if K is nearly singular."""
        self._largest = 1.0  # entry of K^{-1}
        self._packed: Floats = np.zeros(64)  # the upper triangle, column by column

    def project(self, column: Floats, diagonal: float, gram: Floats) -> tuple[Floats, float]:
        """d and δ² of an example, given κ(S, x), κ(x, x) and K."""
        d = self.times(column)
        if not self.size:
            return d, diagonal
        squared = diagonal - ddot(column, d)
        if (
            squared < NEAR_SPAN
        ):  # of few digits; `κ(x,x) - 2k·d + dᵀKd` is least at d, so it has more
            squared -= ddot(d, column - gram @ d)
        return d, squared if squared >= IN_SPAN else 0.0

    def holds(self, squared: float, tolerance: float) -> bool:
        """Whether δ <= tolerance; also where δ² is too small to be told from rounding."""
        return squared <= max(tolerance * tolerance, NOISE * self._largest)

    def times(self, vector: Floats) -> Floats:
        """`K^{-1}·vector`."""
        if not self.size:
            return np.empty(0)
        return np.asarray(dspmv(self.size, 1.0, self._packed, vector))

    def grow(self, d: Floats, squared: float, gram: Floats) -> None:
        """Let the example join of which `project` gave d and δ² > 0; `gram` is K with it."""
        if squared < IN_SPAN:
            raise ValueError("an example in the span of S would make K singular")
        old, begin = self.size, _entries(self.size)
        if self._largest > LARGE_ENTRY:
            column = gram[:old, old]
            d = d + self.times(column - gram[:old, :old] @ d)
            squared = max(float(gram[old, old] - column @ d), IN_SPAN)
        self._make_room(begin + old + 1)
        if old:
            dspr(old, 1.0 / squared, d, self._packed, overwrite_ap=1)
            self._packed[begin : begin + old] = d / -squared
        self._packed[begin + old] = 1.0 / squared
        self.size += 1
        i = np.arange(self.size)
        self._largest = float(self._packed.take(_entries(i) + i).max())  # it is on the diagonal
        if self.size % PROBE_EVERY == 0 or self._largest > LARGE_ENTRY:
            self.mend(gram)

    def mend(self, gram: Floats) -> None:
        """Compute K^{-1} anew from K, if it has drifted."""
        if self._probe(gram) > max(DRIFT, 10 * self.drift):
            below = np.tri(self.size, dtype=bool)  # row by row: the upper triangle by columns
            self._packed[: _entries(self.size)] = inverse_of(gram)[below]
            self.refreshes += 1
            self.drift = self._probe(gram)

    def exchange(self, stored: Stored) -> None:
        self.size = stored.integer("size", self.size, at_most=2**31)
        self.refreshes = stored.integer("refreshes", self.refreshes)
        self.drift = stored.number("drift", self.drift, infinite=True)
        self._largest = stored.number("largest", self._largest)
        entries = _entries(self.size)
        self._packed = stored.array("packed", (entries,), self._packed[:entries])

    def _probe(self, gram: Floats) -> float:
        """The largest entry of `K·(K^{-1}v) - v` for a v with entries of size one."""
        v = np.random.default_rng(self.size).choice([-1.0, 1.0], self.size)
        worst = float(np.abs(gram @ self.times(v) - v).max())
        return worst if np.isfinite(worst) else np.inf

    def _make_room(self, entries: int) -> None:
        if entries > len(self._packed):
            grown = np.zeros(2 * entries)
            grown[: len(self._packed)] = self._packed
            self._packed = grown


@overload
def _entries(size: int) -> int: ...
@overload
def _entries(size: Integers) -> Integers: ...
def _entries(size: int | Integers) -> int | Integers:
    """Of a triangle; where its column `size` begins."""
    return size * (size + 1) // 2


def inverse_of(gram: Floats) -> Floats:
    """K^{-1} (its lower triangle) by Cholesky; if K is singular but for rounding, K^+."""
    factor, info = dpotrf(gram, lower=1)
    if info == 0:
        inverse, info = dpotri(factor, lower=1)
        if info == 0:
            return np.asarray(inverse)  # its lower triangle; the upper one is not meant
    eigenvalues, vectors = np.linalg.eigh(gram)
    solid = eigenvalues > len(gram) ** 2 * ROUNDING
    return np.asarray((vectors * (solid / np.where(solid, eigenvalues, 1.0))) @ vectors.T)


class SpanExpansion(Expansion):
    """`f = Σ_i a_i κ(s_i,·)`; examples join it, or are projected onto its span."""

    def __init__(self, kernel: Kernel, most: float = math.inf) -> None:
        """Once S has `most` examples, K^{-1} is no longer kept up: nothing is near any more."""
        super().__init__(kernel, keep_gram=True)
        self.inverse = Inverse()
        self._most = most

    def projection(self) -> tuple[Floats, float]:
        """`d = K^{-1} κ(S, x)` and `δ² = κ(x,x) - κ(S,x)·d` of the current example x."""
        self._d, self._squared = self.inverse.project(self.column(), self.diagonal(), self.gram)
        return self._d, self._squared

    def near(self, tolerance: float) -> bool:
        """Whether δ <= tolerance for the example that `projection` was asked for."""
        return self.inverse.holds(self._squared, tolerance)

    def in_span(self, tolerance: float) -> Floats | None:
        """d, if the current example is at most so far from the span of S; else None."""
        if self.size >= self._most:
            return None
        d, _ = self.projection()
        return d if self.near(tolerance) else None

    def explained(self, d: Floats) -> float:
        """`dᵀKd`: the squared norm of the current example's projection."""
        return ddot(d, self.column()) if len(d) else 0.0

    def join(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)` for the example that was found not to be near."""
        grows = self.size < self._most
        self.add(coefficient)
        if grows:
            self.inverse.grow(self._d, self._squared, self.gram)

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        stored.part("inverse", self.inverse)
        if self.inverse.size != min(self.size, self._most):
            raise stored.refuse("inverse", "is not that of S")


class LeastSquaresExpansion(SpanExpansion):
    """`f = Σ_i a_i κ(s_i,·)` with `P = (AᵀA)^{-1}`, row t of A being `d_t = K^{-1} κ(S, x_t)`.

    Columns that A got later are 0 in the rows before. Of P one triangle is kept, packed column by
    column: what S gains goes to the end.
    """

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel)
        self._P: Floats = np.zeros(64)

    def expand(self, error: float) -> None:
        """Let the current example join, so that f(x) = y, and f stays as it is at S.

        d and δ² are those that `projection` gave last, and `error` is y - f(x).
        """
        step = error / self._squared
        self._shift(-step * self._d)
        self.join(step)
        self.norm_squared = math.nan
        entries = _entries(self.size)
        if entries > len(self._P):
            self._P = np.concatenate([self._P, np.zeros(2 * entries - len(self._P))])
        self._P[entries - self.size : entries - 1] = 0.0
        self._P[entries - 1] = 1.0

    def refit(self, error: float) -> None:
        """One step of recursive least squares for the current example, which stays outside S."""
        if not self.size:
            return
        Pd = dspmv(self.size, 1.0, self._P, self._d)
        scale = 1 / (1 + ddot(self._d, Pd))
        self._P = dspr(self.size, -scale, Pd, self._P, overwrite_ap=1)
        self._shift((error * scale) * self.inverse.times(Pd))

    def _shift(self, by: Floats) -> None:
        """`a ← a + by`."""
        if self.size:
            self.shift(by)
            self.value(self._now)
            self.norm_squared = math.nan

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        entries = _entries(self.size)
        self._P = stored.array("covariance", (entries,), self._P[:entries])


class Slots(Saved):
    """K and Q = K^{-1} of examples that join and leave, each in a slot of its own.

    Nothing else moves: a slot that is free has zeros in Q and on the diagonal of K. Of both only
    the upper triangle counts. Vectors are in order of slots.

    Each that joins or leaves changes Q by ±u·uᵀ. These changes wait, as rows of U, until `settle`
    adds many at once: `Q·v = Q_0·v + Uᵀ·(±Uv)` takes less than going through Q for each.
    """

    def __init__(self) -> None:
        self._size = 0
        self._slots: Integers = np.empty(0, dtype=np.int64)
        self._free: list[int] = []
        self._joined = 0
        self._K: Floats = np.zeros((0, 0), order="F")
        self._Q: Floats = np.zeros((0, 0), order="F")  # Q_0
        self._U: Floats = np.empty((WAITING, 0))
        self._signs: Floats = np.empty(WAITING)
        self._waiting = 0
        self._residual: Floats | None = None  # k - K·d of the last example, if its δ² was small
        self._diagonal: Floats = np.empty(0)  # of Q, with the first `_counted` changes
        self._counted = 0

    @property
    def slots(self) -> Integers:
        """Those in use, in order of age."""
        return self._slots[: self._size]

    def project(self, column: Floats, diagonal: float) -> tuple[Floats, Floats, float]:
        """k, `d = Q·k` and δ² of an example, given κ(S, x) in order of age and κ(x, x)."""
        if not self._free:
            self._make_room()
        k = np.zeros(len(self._Q))
        k[self.slots] = column
        d = self._times(k)
        squared = diagonal - ddot(k, d)
        self._residual = None
        if squared < DOUBTFUL:  # κ(x,x) - 2k·d + dᵀKd is least at d, so it has more digits
            self._residual = k - dsymv(1.0, self._K, d)
            squared -= ddot(d, self._residual)
        return k, d, squared

    def join(self, k: Floats, diagonal: float, d: Floats, squared: float) -> None:
        """Let the example join of which `project` gave k, d and δ² > 0.

        With d = -1 in its own slot, that adds `d·dᵀ/δ²` to Q. Where δ² is small, d is corrected by
        `Q·(k - K·d)` first: Q would soon have drifted.
        """
        if self._residual is not None:
            d += self._times(self._residual)
        slot = min(self._free)
        self._free.remove(slot)
        k[slot], d[slot] = diagonal, -1.0
        self._K[:slot, slot] = k[:slot]
        self._K[slot, slot:] = k[slot:]
        self._change(d, 1.0, squared)
        self._slots[self._size] = slot
        self._size += 1
        self._joined += 1
        if self._joined % PROBE_EVERY == 0:
            self._mend()

    def leave(self, age: int) -> Floats:
        """Let an example leave; the coefficients of its projection onto the others, by age.

        With q = Q·e_j, these are `-q/q_j`, and theirs is `Q - q·qᵀ/q_j`; both without j.
        """
        j = self._slots.item(age)
        q = self._column(j)
        self._change(q, -1.0, q.item(j))
        self._K[j, j] = 0.0
        self._Q[:j, j] = self._Q[j, j:] = 0.0
        self._U[: self._waiting, j] = 0.0
        self._diagonal[j] = 0.0
        self._free.append(j)
        self._size -= 1
        self._slots[age : self._size] = self._slots[age + 1 : self._size + 1]
        share: Floats = q.take(self.slots)
        share /= -q.item(j)
        return share

    def diagonal(self) -> Floats:
        """That of Q, in order of age."""
        if self._counted < self._waiting:
            new = slice(self._counted, self._waiting)
            self._diagonal += self._signs[new] @ np.square(self._U[new])
            self._counted = self._waiting
        return self._diagonal.take(self.slots)

    def settle(self) -> None:
        """Add to Q what waits."""
        signs = self._signs[: self._waiting]
        for sign in (1.0, -1.0):
            u = self._U[: self._waiting][signs == sign]
            if len(u):
                dsyrk(sign, u.T, beta=1.0, c=self._Q, overwrite_c=1)
        self._waiting = self._counted = 0
        self._diagonal = self._Q.diagonal().copy()

    def exchange(self, stored: Stored) -> None:
        if stored.writes:
            self.settle()
        room = stored.integer("room", len(self._Q), at_most=2**16)
        slots = stored.array("slots", (None,), self.slots, np.int64)
        self._joined = stored.integer("joined", self._joined)
        self._K = np.asfortranarray(stored.array("gram", (room, room), self._K))
        self._Q = np.asfortranarray(stored.array("inverse", (room, room), self._Q))
        if not np.array_equal(np.sort(slots), np.flatnonzero(self._K.diagonal())):
            raise stored.refuse("slots", "are not those of the Gram matrix")
        self._size = len(slots)
        self._slots = np.concatenate([slots, np.zeros(room - len(slots), dtype=np.int64)])
        self._free = np.setdiff1d(np.arange(room), slots).tolist()
        self._U = np.empty((WAITING, room))
        self.settle()

    def _times(self, v: Floats) -> Floats:
        """`Q·v`."""
        if not self._waiting:
            return np.asarray(dsymv(1.0, self._Q, v))
        U = self._U[: self._waiting].T
        w = dgemv(1.0, U, v, trans=1)
        w *= self._signs[: self._waiting]
        return np.asarray(dsymv(1.0, self._Q, v, 1.0, dgemv(1.0, U, w), overwrite_y=1))

    def _column(self, slot: int) -> Floats:
        """`Q·e_slot`."""
        U = self._U[: self._waiting]
        column: Floats = (U[:, slot] * self._signs[: self._waiting]).dot(U)
        column[:slot] += self._Q[:slot, slot]
        column[slot:] += self._Q[slot, slot:]
        return column

    def _change(self, u: Floats, sign: float, by: float) -> None:
        """`Q ← Q ± u·uᵀ/by`."""
        if self._waiting == WAITING:
            self.settle()
        np.multiply(u, 1.0 / math.sqrt(by), out=self._U[self._waiting])
        self._signs[self._waiting] = sign
        self._waiting += 1

    def _make_room(self) -> None:
        self.settle()
        old, room = len(self._Q), len(self._Q) + SLOTS_AT_ONCE
        for name in ("_K", "_Q"):
            grown = np.zeros((room, room), order="F")
            grown[:old, :old] = getattr(self, name)
            setattr(self, name, grown)
        self._U = np.empty((WAITING, room))
        self._slots = np.concatenate([self._slots, np.zeros(SLOTS_AT_ONCE, dtype=np.int64)])
        self._free = list(range(old, room))
        self._diagonal = self._Q.diagonal().copy()

    def _mend(self) -> None:
        """Compute Q anew from K, if it has drifted."""
        slots = self.slots
        v = np.zeros(len(self._Q))
        v[slots] = np.random.default_rng(len(slots)).choice([-1.0, 1.0], len(slots))
        drift = np.abs(dsymv(1.0, self._K, self._times(v)) - v)[slots].max()
        if not drift <= DRIFT:
            self.settle()
            taken = np.ix_(np.sort(slots), np.sort(slots))
            self._Q[taken] = inverse_of(self._K[taken].T).T
            self._diagonal = self._Q.diagonal().copy()


class PrunedExpansion(Expansion):
    """Examples join at once, and leave by projecting f onto the span of the others.

    With `Q = K^{-1}`, the part of `a_j κ(s_j,·)` outside the span of the others has the norm
    `γ_j = |a_j|/√Q_jj`. An x in the span of S, δ² <= `in_span`·κ(x,x), never joins: f moves within
    the span, and K stays far from singular.
    """

    def __init__(self, kernel: Kernel, in_span: float) -> None:
        super().__init__(kernel)
        self._in_span = in_span
        self._known = Slots()

    def add(self, coefficient: float) -> None:
        """`f ← f + coefficient·κ(x,·)`; if x is in the span of S, in the span."""
        column, diagonal = self.column(), self.diagonal()
        k, d, squared = self._known.project(column, diagonal)
        if squared <= self._in_span * diagonal:
            self.move(coefficient, d[self._known.slots])
        else:
            super().add(coefficient)
            self._known.join(k, diagonal, d, squared)

    def prune(self, tolerance: float) -> None:
        """While the smallest γ is at most `tolerance`, project f onto the others."""
        while self.size:
            gamma = np.abs(self.coefficients) / np.sqrt(self._known.diagonal())
            if gamma.item(gamma.argmin()) > tolerance:
                return
            self._leave(gamma)

    def project_smallest(self) -> None:
        """Project the example with the smallest |a| onto the others."""
        self._leave(np.abs(self._a.take(self.members)))

    def _leave(self, sizes: Floats) -> None:
        """Let the smallest go; where equal but for rounding of the largest, the oldest."""
        age = oldest_smallest(sizes)
        share = self._scale * self._a.item(self._places.item(age)) * self._known.leave(age)
        self.drop(age)
        self.shift(share)

    def close(self) -> None:
        self._known.settle()
        super().close()

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        stored.part("known", self._known)
        if len(self._known.slots) != self.size:
            raise stored.refuse("known", "is not that of S")


class HintedExpansion(SpanExpansion):
    """`F = f + λ·h`, where the hint h is the mean of `y_τ κ(x_τ,·)` over the last M rounds.

    The M rounds before a block are opened along with it, placed after its own: all kernel values
    that the hints of the block need are then in K and G.
    """

    def __init__(self, kernel: Kernel, memory: int, most: int, weight: float) -> None:
        """`memory` is M; K^{-1} is known until S has `most` examples; `weight` is the first λ."""
        super().__init__(kernel, most)
        self.hint_weight = weight
        """λ."""
        self._memory = memory
        self._recent: Points | None = None
        self._recent_labels: Floats = np.empty(0)

    def open(self, block: Points, labels: Floats) -> None:
        self._recent = (self._recent or block.slice(0, 0)).widened(block.width)
        now, before = np.arange(block.size), np.arange(self._recent.size)
        together = block.subset(now)
        together.append(self._recent, before)
        super().open(together, labels)
        rounds = np.concatenate([now, before - len(before)])  # the block begins with round 0
        unplayed = np.zeros(block.size - len(labels))  # what a short block is filled up with
        self._labels = np.concatenate([labels, unplayed, self._recent_labels])
        self._played = len(labels)
        age = now - rounds[:, None]
        seen = (age >= 1) & (age <= self._memory)  # column t: the rounds that round t looks back to
        self._shares = seen * self._labels[:, None] / np.maximum(seen.sum(axis=0), 1)
        self._hints: Floats = (self._shares * self._table[now, self._first :].T).sum(axis=0)

    def values(self) -> Floats:
        return super().values()[: len(self._hints)] + self.hint_weight * self._hints

    def value(self, round_: int) -> float:
        return super().value(round_) + self.hint_weight * self._hints.item(round_)

    def close(self) -> None:
        super().close()
        before = np.arange(len(self._hints), self._block.size)
        last = np.concatenate([before, np.arange(self._played)])[-self._memory :]
        self._recent, self._recent_labels = self._block.subset(last), self._labels[last]

    def at(self, points: Points) -> Floats:
        values = super().at(points)
        if self._recent is None:
            return values
        near = self.kernel.between(self._recent.widened(points.width), points)
        return values + self.hint_weight * (self._recent_labels @ near) / self._recent.size

    def compress(self, origin: Floats | None) -> None:
        super().compress(origin)
        if isinstance(self._recent, DensePoints):
            self._recent = self._recent.to_sparse(origin)

    def exchange(self, stored: Stored) -> None:
        super().exchange(stored)
        self.hint_weight = stored.number("hint_weight", self.hint_weight)
        self._recent = exchange_points(stored, "recent", self._recent)
        size = 0 if self._recent is None else self._recent.size
        self._recent_labels = stored.array("recent_labels", (size,), self._recent_labels)
        if size > self._memory:
            raise stored.refuse("recent", "holds more rounds than the memory")

    def hint(self) -> float:
        """h(x) of the current example."""
        return self._hints.item(self._now)

    def hint_of(self, d: Floats) -> float:
        """The inner product of h and `Σ d_i κ(s_i,·)`."""
        return ddot(self._table @ self.by_place(d), self._shares[:, self._now]) if len(d) else 0.0
