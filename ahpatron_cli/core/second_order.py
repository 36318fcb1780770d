"""Second-order hypotheses: functions in the span of S whose coefficients have a covariance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.numerics import (
    CANCELLED,
    EPS,
    ORTHOGONAL,
    blend,
    cancelled,
    dasum,
    daxpy,
    ddot,
    dgemv,
    dpotrf,
    dtrsm,
    flush,
    rounding_level,
)
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.span import SpanExpansion
from ahpatron_cli.core.state import Stateful
from ahpatron_cli.core.symmetric import Symmetric

LIKELY = 1.05
"""Rounds with a smaller margin when the block opens are prepared for an update."""


class Products:
    """`A·k_t` and `K·A·k_t` by round t of an open block, for the matrix A of a `Symmetric`.

    A·k_t is the image of k_t. K·A·k_t is by how much it moves g if it is added to the coefficients.

    Attributes
    ----------
    places : dict
        The row of each round whose products have been fetched, in the two tables.
    images, moves : arrays of shape (fetched rounds, n) and (fetched rounds, rounds)
        Tables of A·k_t and of K·A·k_t.
    """

    images: Floats = np.empty((0, 0))
    moves: Floats = np.empty((0, 0))

    def __init__(self, matrix: Symmetric, K: Floats) -> None:
        self._matrix = matrix
        self._K = K
        self.places: dict[int, int] = {}
        self._single_images: dict[int, Floats] = {}
        self._single_moves: dict[int, Floats] = {}

    def fetch(self, rounds: Integers) -> None:
        """Compute both products for these rounds, which is faster than one by one; only once."""
        n = self._matrix.n
        values = self._K[rounds, :n]
        old_columns = self._K[:, :n]
        self.images = self._matrix.rows_times_base(values)
        self.moves = self.images @ old_columns.T
        for place, t in enumerate(rounds.tolist()):
            self.places[t] = place

    def image(self, t: int) -> Any:
        """A·k of round t, over the columns of A."""
        place = self.places.get(t)
        if place is not None:
            return self.images[place]
        image = self._single_images.get(t)
        if image is None:
            image = self._matrix.times_base(self._K[t])
            self._single_images[t] = image
        return image

    def images_of(self, rounds: Sequence[int]) -> Floats:
        """A·k of these rounds, a row for each; a copy."""
        places = [self.places.get(t, -1) for t in rounds]  # -1: not fetched
        if -1 in places:
            return np.array([self.image(t) for t in rounds])
        return self.images.take(places, 0)

    def move(self, t: int) -> Any:
        """K·A·k of round t, for each round of the block."""
        place = self.places.get(t)
        if place is not None:
            return self.moves[place]
        found = self._single_moves.get(t)
        if found is None:
            image = self.image(t)
            found = self._K[:, : len(image)] @ image
            self._single_moves[t] = found
        return found


class Head(Stateful):
    """A function `Σ_i a_i κ(s_i,·)` on the S of an expansion, and the covariance C of a.

    With `C = A + Σ_e s_e·v_e·v_eᵀ`, an update needs `u = C·k`, and K·u, by which the function
    changes at the rounds of the block. Only the products `p_e = K·v_e` are kept up to date:
    `v_e·k_t` is an entry of p_e, so K·u costs O(block) per change and not O(|S|). The vectors u,
    and a, are computed for many updates at once (`solve`):
    `u_i = A·k_i + Σ_{e<i} s_e·p_e[t_i]·v_e` is triangular.

    Attributes
    ----------
    a : array of shape (columns,) or (columns, k)
        Coefficients; in an open block without its pending updates.
    g : array of shape (rounds,) or (rounds, k)
        Values at the rounds of the open block, with all updates.
    C : Symmetric
        Covariance of a.
    rounding : float
        Values of g up to this may be pure rounding.

    In an open block, the row `_places[t]` of `_moves` is K·A·k of round t, if it has been fetched.
    """

    state_fields: ClassVar[Any] = {"a": "n...", "C": Symmetric, "_unchecked": int}
    g: Floats
    rounding: float
    f: SecondOrder
    """The expansion whose block is open."""
    _ready = False  # whether the products of the open block have been computed

    def __init__(self, classes: tuple[int, ...] = ()) -> None:
        self.a: Floats = np.empty((0, *classes))
        self.C = Symmetric()
        self._unchecked = 0  # changes since C was checked

    def open(self, f: SecondOrder) -> None:
        """Start a block of f, whose table K has been computed."""
        self.f = f
        self._ready = False
        self._log: list[tuple[int, Any]] = []  # round and step of each pending change
        self._joins: list[int] = []  # which of them are joins, whose vectors are known already

    def evaluate(self) -> None:
        """Compute `g = K·a`."""
        self.g = np.dot(self.f.K, self.a)
        # updates of g carry the rounding errors of C: recompute more values near 0
        size = dasum(self.a.reshape(-1))
        self.rounding = 1e4 * CANCELLED * (1.0 + size)

    def exact_value(self, t: int) -> float:
        """Value in round t; exactly 0 if its terms cancel up to rounding."""
        row = self.f.K[t]
        value = self.g.item(t)
        near = np.abs(row) * self.f.alive
        nearest = float(near.max())  # the largest κ(s, x)
        if abs(value) > self.rounding * nearest:
            return value  # x is far from S: the value is small, but exact
        self.solve()
        value = float(ddot(self.a, row))
        terms = self.a * row
        if cancelled(value, dasum(terms)):
            return 0.0
        return value

    # Changes ------------------------------------------------------------------------------------

    def prepare(self) -> None:
        """Compute the matrix products of the block, before its first change."""
        self._ready = True
        f = self.f
        C = self.C
        C.open(f.room, 2 * f.m)
        self._products = Products(C, f.K)
        if f.m > 1:  # the others are computed on demand
            self._likely = self.likely()
            self._products.fetch(self._likely)
        self._places = self._products.places
        self._moves = self._products.moves
        shape = (len(C.V), f.m)
        self._P = np.empty(shape)  # p_e
        self._sP = np.empty(shape)  # s_e·p_e
        pending = C.count
        factors = C.s[:pending]
        columns = f.K[:, : f.room]
        products = C.V[:pending] @ columns.T
        self._P[:pending] = products
        self._sP[:pending] = products * factors[:, None]
        self._flat_sP = self._sP.reshape(-1)
        self._solved = pending

    def likely(self) -> Integers:
        """Rounds that are likely to update."""
        near = np.abs(self.g)  # the margin, if the prediction is right
        if near.ndim > 1:
            two = np.partition(self.g, -2, axis=1)
            best = two[:, -1]
            second = two[:, -2]
            near = (best - second) / 2
        return (near < LIKELY).nonzero()[0]

    def move(self, t: int) -> Any:
        """K·A·k of a round t whose products were not fetched."""
        return self._products.move(t)

    def join(self, d: Floats, residual: float) -> None:
        """Extend C by the current example x, which joins S with coefficient 0: `C += d·dᵀ/δ²`.

        d is the projection of x onto the span of S, by column, with -1 for x; `residual` is δ².
        """
        if not self._ready:
            self.prepare()
        count = self.C.count
        product = dgemv(1.0, self.f.K.T, d, trans=1)
        self._P[count] = product
        self._sP[count] = product / residual
        self.C.change(d, 1.0 / residual)
        self._joins.append(len(self._log))
        no_step = 0.0 * self.g[0]
        self._log.append((self.f.t, no_step))

    def learn(self, step: float | Floats, r: float) -> bool:
        """`a += step·b·u`, `C -= b·u·uᵀ`, with u = C·k, b = 1/(k·u + r); False if k·u = 0."""
        if not self._ready:
            self.prepare()
        f = self.f
        t = f.t
        C = self.C
        count = C.count
        w = self._P[count]  # K·u
        place = self._places.get(t)
        if place is None:
            w[:] = self.move(t)
        else:
            w[:] = self._moves[place]
        if count:  # w += Σ_e s_e·p_e[t]·p_e
            dgemv(1.0, self._P[:count].T, self._flat_sP, 1.0, w, t, f.m, overwrite_y=1)
        v = w.item(t)  # k·u
        if not v > ORTHOGONAL:
            return False
        b = 1.0 / (v + r)
        step = step * b
        np.multiply(w, -b, out=self._sP[count])
        C.s[count] = -b
        C.count = count + 1
        self._log.append((t, step))
        if self.g.ndim > 1:
            self.g += w[:, None] * step
        else:
            daxpy(w, self.g, a=step)
        return True

    def solve(self) -> None:
        """Compute the vectors u of all pending updates, and the coefficients a.

        Before change i, `C = A + Σ_{e<i} s_e·v_e·v_eᵀ`, where e are all earlier changes, solved
        ones included. An update in round t_i has `v_i = u_i = C·k_i`. Since k_i is row t_i of K,
        `v_e·k_i` is entry t_i of `p_e = K·v_e`, which was computed without v_e. So

            v_i = A·k_i + Σ_{e<i} L_ie·v_e,    L_ie = s_e·p_e[t_i].

        For a join, v_i = d is known: its row of L is 0, and d takes the place of A·k_i. Let R be
        the matrix with these rows A·k_i or d, and let the indices 0 and 1 stand for the changes
        that are solved and those that are pending:

            V_1 = R + L_0·V_0 + L_1·V_1,    so    (I - L_1)·V_1 = R + L_0·V_0.

        L_1 is strictly lower triangular, so V_1 is the solution of one triangular system, at the
        speed of matrix products; one update after the other would read all of V each time. Then
        `a += Σ_i step_i·v_i`; joins have the step 0. `images` and `shares` return A·k_i and L as
        they were in round t_i, also if the head has forgotten since.
        """
        if not self._ready or not self._log:
            return
        C = self.C
        first = self._solved
        rounds, steps = zip(*self._log, strict=True)
        share = self.shares(rounds)
        share[self._joins] = 0.0
        v = C.V[first : C.count]
        self._write_images(v, rounds)
        if first:
            v += share[:, :first] @ C.V[:first]
        if len(v) > 1:
            flush(share)
            # v ← (I - share)^{-1} v; only the part of `share` below its diagonal is read
            dtrsm(1.0, -share[:, first:], v.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
        self.a[: self.f.room] += v.T @ np.array(steps)
        self._unchecked += len(v)
        self._solved = C.count
        self._log = []
        self._joins = []

    def _write_images(self, v: Floats, rounds: Sequence[int]) -> None:
        """Write A·k_i to row i of v for each pending update; rows of joins have d already."""
        updates: Any = slice(None)
        if self._joins:
            joins = set(self._joins)
            updates = [i for i in range(len(v)) if i not in joins]
            rounds = [rounds[i] for i in updates]
        if len(rounds):
            n = self.C.n
            v[updates, :n] = self.images(rounds)
            v[updates, n:] = 0.0

    def images(self, rounds: Sequence[int]) -> Floats:
        """A·k of these rounds, a row for each."""
        return self._products.images_of(rounds)

    def shares(self, rounds: Sequence[int]) -> Floats:
        """Entry (i, e) is `s_e·p_e[t_i]`: the share of change e in the pending update i."""
        changes = self._sP[: self.C.count]
        return changes.take(rounds, 1).T

    def close(self, support: Integers) -> None:
        """End the block: the columns `support` are the new S."""
        if self._ready:
            self.solve()
            self.C.close(support)
        del self.f

    def maintain(self) -> None:
        """Repair C from time to time, between blocks."""
        limit = max(4096, 8 * len(self.a))
        if self._unchecked >= limit:
            self.repair()

    def repair(self) -> None:
        """If rounding made C indefinite, raise its eigenvalues to at least the rounding level."""
        self._unchecked = 0
        self.C.settle()
        A = self.C.A
        level = rounding_level(A)
        raised = A + level * np.eye(len(A))
        negligible = np.abs(raised) < EPS * level
        raised[negligible] = 0.0  # avoid denormals, ten times as slow
        _, failed = dpotrf(raised, lower=1, overwrite_a=1)
        if failed:
            values, vectors = np.linalg.eigh(A)  # of the lower triangle
            largest = max(float(values[-1]), EPS)
            lowest = len(A) * EPS * largest
            lifted = np.maximum(values, lowest)
            repaired = (vectors * lifted) @ vectors.T
            self.C.A = np.asfortranarray(repaired)


def _refused(method: str) -> TypeError:
    """The error for a method that changes coefficients without their covariance."""
    return TypeError(f"`{method}` would not change the covariance of f: use `enter` and `learn`")


class SecondOrder(SpanExpansion):
    """f in the span of S with one head: coefficients a, their covariance C; Q = K^{-1}.

    Q is kept while |S| < B.
    """

    prior: Products
    """Products of Q in the open block, for heads that forget."""

    state_fields: ClassVar[Any] = {
        **{name: form for name, form in SpanExpansion.state_fields.items() if name != "a"},
        "head": Head,
    }

    def __init__(self, kernel: Kernel, budget: int, classes: tuple[int, ...] = ()) -> None:
        self.head = Head(classes)
        super().__init__(kernel, classes, limit=budget)

    @property
    def heads(self) -> Sequence[Head]:
        """All heads."""
        return (self.head,)

    @property
    def a(self) -> Floats:
        """Coefficients of the head."""
        return self.head.a

    @a.setter
    def a(self, a: Floats) -> None:
        self.head.a = a

    @property
    def g(self) -> Floats:
        """Values of the head at the rounds of the open block."""
        return self.head.g

    @g.setter
    def g(self, g: Floats) -> None:
        self.head.g = g

    def open(self, block: Points, start: int = 0) -> None:
        for head in self.heads:
            head.open(self)
        super().open(block, start)
        self.room = self.columns if self.spans else self.n
        """Number of columns that may be in S when the block ends."""

    def evaluate(self) -> None:
        self.head.evaluate()
        view: Any = memoryview  # faster than an array for reading single numbers
        self.values = view(self.head.g)
        self.rounding = self.head.rounding

    def exact_value(self, t: int) -> float:
        return self.head.exact_value(t)

    def _exact_zeros(self, K: Floats, values: Floats) -> Floats:
        self.head.solve()
        return super()._exact_zeros(K, values)

    def close(self) -> None:
        support = self.support
        for head in self.heads:
            head.close(support)
        super().close()
        self.forget_norm()  # updates do not track it
        for head in self.heads:
            head.maintain()

    # Changes of an expansion that would leave the covariance as it is: refused

    def add(self, coefficient: object, radius: float | None = None) -> None:
        raise _refused("add")

    def drop(self, column: int) -> None:
        raise _refused("drop")

    def shrink(self, factor: float) -> None:
        raise _refused("shrink")

    def cap(self, limit: float) -> None:
        raise _refused("cap")

    def project(self, radius: float) -> None:
        raise _refused("project")

    def enter(self, tolerance: float) -> None:
        """Add x to S with coefficient 0 if its squared distance to the span exceeds `tolerance`."""
        d, residual = self.projection()
        if residual > tolerance:
            self.alive[self.n + self.t] = True
            self.size += 1
            self.extend_inverse(d, residual)
            for head in self.heads:
                head.join(d, residual)

    def learn(self, step: float | Floats, r: float) -> bool:
        """Update the head by the current example (`Head.learn`)."""
        return self.head.learn(step, r)


class ForgettingHead(Head):
    """A head whose covariance returns to the prior Q = K^{-1} all the time.

    `forget(q)` is `C ← q·C + (1-q)·Q`. In an open block it is lazy: with A_C and A_Q the matrices A
    of C and Q when the block opened, and c the product of all q since,

        C = c·A_C + (1-c)·A_Q + Σ_joins d·dᵀ/δ² + Σ_updates s_e·u_e·u_eᵀ.

    A join adds d·dᵀ/δ² to C and to Q, so it is not forgotten. The s_e of updates, which are
    negative, are multiplied by q. For this, joins must be pending in both C and Q or in none, which
    f sees to between blocks.
    """

    def open(self, f: SecondOrder) -> None:
        super().open(f)
        self._remembered = 1.0  # c
        self._forgotten: list[tuple[int, float]] = []  # pending changes so far and c, before each q

    def forget(self, q: float) -> None:
        """`C ← q·C + (1-q)·Q`, in an open block."""
        if not self._ready:
            self.prepare()
        own = self._products
        prior = self.f.prior
        if self._remembered == 1.0:  # from now on, the products of Q are needed, too
            if self.f.m > 1:
                is_ahead = self._likely > self.f.t
                prior.fetch(self._likely[is_ahead])
            self._places = prior.places
        before = (len(self._log), self._remembered)
        self._forgotten.append(before)
        count = self.C.count
        is_update = self.C.s[:count] < 0.0
        factors = np.where(is_update, q, 1.0)
        self.C.s[:count] *= factors
        self._sP[:count] *= factors[:, None]
        c = self._remembered * q
        self._remembered = c
        first = len(own.moves) - len(prior.moves)  # the rounds that were fetched for both
        self._moves = c * own.moves[first:]
        self._moves += (1.0 - c) * prior.moves

    def move(self, t: int) -> Any:
        c = self._remembered
        if c == 1.0:
            return super().move(t)
        own: Floats = self._products.move(t)
        prior: Floats = self.f.prior.move(t)
        return prior * (1.0 - c) + c * own

    def solve(self) -> None:
        super().solve()
        self._forgotten = []

    def remembered_at_changes(self) -> Floats:
        """c at each pending change."""
        found = np.full(len(self._log), self._remembered)
        start = 0
        for stop, c in self._forgotten:
            found[start:stop] = c
            start = stop
        return found

    def images(self, rounds: Sequence[int]) -> Floats:
        own = super().images(rounds)
        remembered = self.remembered_at_changes()
        if self._joins:
            remembered = np.delete(remembered, self._joins)
        first = int((remembered == 1.0).sum())  # rounds before anything was forgotten
        if first < len(rounds):
            c = remembered[first:, None]
            prior = self.f.prior.images_of(rounds[first:])
            prior *= 1.0 - c
            own[first:] *= c
            own[first:] += prior
        return own

    def shares(self, rounds: Sequence[int]) -> Floats:
        share = super().shares(rounds)
        forgotten_since = self.remembered_at_changes() / self._remembered
        factors = self.C.s[: self.C.count]
        is_update = factors < 0.0  # not a join
        share *= np.where(is_update, forgotten_since[:, None], 1.0)
        return share

    def close(self, support: Integers) -> None:
        if self._ready:
            self.solve()
            c = self._remembered
            if c != 1.0:
                blend(self.C.A, self.f.Q.A, c)
        super().close(support)
