"""arow: second-order learning in the span of at most B examples."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import (
    REST,
    SHARED,
    Learner,
    budget_parameter,
    multiclass_parameter,
)
from ahpatron_cli.core.numerics import (
    CANCELLED,
    EPS,
    HINGE,
    ORTHOGONAL,
    dasum,
    daxpy,
    dgemv,
    dpotrf,
    dtrsm,
    flush,
)
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.span import SpanExpansion, Symmetric
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.core.tally import mistaken


class SecondOrder(SpanExpansion):
    """f in the span of S, the covariance C of its coefficients, and Q = K^{-1} while |S| < B.

    With `C = A + Σ_e s_e·v_e·v_eᵀ`, an update needs `u = C·k`, and K·u, by which f changes at the
    rounds of the block. Only the products `p_e = K·v_e` are kept up to date: `v_e·k_t` is an entry
    of p_e, so K·u costs O(block) per change and not O(|S|). The vectors u, and a, are computed for
    many updates at once (`solve`): `u_i = A·k_i + Σ_{e<i} s_e·p_e[t_i]·v_e` is triangular.
    """

    kept: ClassVar[Any] = {**SpanExpansion.kept, "C": Symmetric, "_unchecked": int}
    _log: Any = ()  # round and step of each pending change,
    _joins: Any = ()  # and which of them are joins, whose vectors are known already

    def __init__(self, kernel: Kernel, budget: int, classes: tuple[int, ...] = ()) -> None:
        super().__init__(kernel, classes, most=budget)
        self.C, self._unchecked = Symmetric(), 0  # changes since C was checked

    def open(self, block: Points) -> None:
        self._log, self._joins, self._ready = [], [], False
        super().open(block)

    def _prepare(self) -> None:
        """Compute the matrix products of the block, before its first update."""
        self._ready = True
        C, m = self.C, self.m
        self._columns = len(self.a) if self.spans else self.n  # columns that may be in S
        C.open(self._columns, 2 * m)
        self._images: dict[int, Floats] = {}  # A·k by round
        self._moves: dict[int, Floats] = {}  # K·A·k
        if m > 1:  # a single row computes them on demand
            near = np.abs(self.g)  # the margin, if the prediction is right
            if self.classes:
                two = np.partition(self.g, -2, axis=1)
                near = (two[:, -1] - two[:, -2]) / 2
            likely = (near < 1.05).nonzero()[0]  # rounds that are likely to update
            images = C.images(self.K[likely])
            self._images.update(zip(likely.tolist(), images, strict=True))
            self._moves.update(zip(likely.tolist(), images @ self.K[:, : C.n].T, strict=True))
        self._P, self._sP = np.empty((2, len(C.V), m))  # p_e and s_e·p_e
        self._P[: C.count] = C.V[: C.count] @ self.K[:, : self._columns].T
        self._sP[: C.count] = self._P[: C.count] * C.s[: C.count, None]
        self._flat_sP, self._solved = self._sP.reshape(-1), C.count

    def evaluate(self) -> None:
        super().evaluate()
        # updates of g carry the rounding errors of C: recompute more values near 0
        self.noise = 1e4 * CANCELLED * (1.0 + dasum(self.a.reshape(-1)))

    def careful(self, t: int) -> float:
        value = self.g.item(t)
        if abs(value) > self.noise * float((np.abs(self.K[t]) * self.alive).max()):
            return value  # x is far from S: f(x) is small, but exact
        self.solve()
        return super().careful(t)

    def _exact_zeros(self, K: Floats, values: Floats) -> Floats:
        self.solve()
        return super()._exact_zeros(K, values)

    def close(self) -> None:
        if self._ready:
            self.solve()
            self.C.close(self.support)
        super().close()
        if self._unchecked >= max(4096, 8 * self.size):
            self.repair()

    def enter(self, tolerance: float) -> None:
        """Add x to S with coefficient 0 if its squared distance to the span exceeds `tolerance`."""
        if not self._ready:
            self._prepare()
        d, squared = self.projection()
        if squared > tolerance:
            self.alive[self.n + self.t] = True
            self.size += 1
            self.grow(d, squared)
            count = self.C.count
            self._P[count] = dgemv(1.0, self.K.T, d, trans=1)
            self._sP[count] = self._P[count] / squared
            self.C.change(d, 1.0 / squared)
            self._log.append((self.t, 0.0 * self.g[0]))
            self._joins.append(count - self._solved)

    def learn(self, step: Any, noise: float) -> bool:
        """`a += step·b·u`, `C -= b·u·uᵀ`, with u = C·k, b = 1/(k·u + noise); False if k·u = 0."""
        if not self._ready:
            self._prepare()
        t, C = self.t, self.C
        count = C.count
        if t not in self._images:
            self._images[t] = image = C.image(self.k)
            self._moves[t] = self.K[:, : C.n] @ image
        w = self._P[count]  # K·u
        w[:] = self._moves[t]
        if count:
            dgemv(1.0, self._P[:count].T, self._flat_sP, 1.0, w, t, self.m, overwrite_y=1)
        v = w.item(t)
        if not v > ORTHOGONAL:
            return False
        b = 1.0 / (v + noise)
        step = step * b
        np.multiply(w, -b, out=self._sP[count])
        C.s[count] = -b
        C.count = count + 1
        self._log.append((t, step))
        if self.classes:
            self.g += w[:, None] * step
        else:
            daxpy(w, self.g, a=step)
        return True

    def solve(self) -> None:
        """Compute the vectors u of all pending updates, and the coefficients a."""
        if not self._log:
            return
        C, first, count = self.C, self._solved, self.C.count
        rounds, steps = zip(*self._log, strict=True)
        share = self._sP[:count].take(rounds, 1).T  # entry (i, e): share of change e in update i
        v, joins = C.V[first:count], self._joins
        known = v[joins] if joins else None
        v[:, : C.n], v[:, C.n :] = [self._images[t] for t in rounds], 0.0
        if joins:
            share[joins], v[joins] = 0.0, known
        if first:
            v += share[:, :first] @ C.V[:first]
        if len(v) > 1:
            flush(share)
            # v ← (I - share)^{-1} v; only the part of `share` below its diagonal is read
            dtrsm(1.0, -share[:, first:], v.T, side=1, lower=1, trans_a=1, diag=1, overwrite_b=1)
        self.a[: self._columns] += v.T @ np.array(steps)
        self._unchecked += count - first
        self._solved, self._log, self._joins = count, [], []
        self.forget_norm()

    def repair(self) -> None:
        """If rounding made C indefinite, raise its eigenvalues to at least the rounding level."""
        self._unchecked = 0
        self.C.settle()
        A = self.C.A
        level = len(A) * EPS * float(A.diagonal().max(initial=0.0))
        raised = A + level * np.eye(len(A))
        raised[np.abs(raised) < EPS * level] = 0.0  # avoid denormals, ten times as slow
        if dpotrf(raised, lower=1, overwrite_a=1)[1]:
            values, vectors = np.linalg.eigh(A)  # of the lower triangle
            level = len(A) * EPS * max(float(values[-1]), EPS)
            self.C.A = np.asfortranarray((vectors * np.maximum(values, level)) @ vectors.T)


def page_statistic(g: float, right: int, rate: float | None) -> float:
    """Page's g (see `Arow`) after `right` correct rounds, then a mistake at rate p if given."""
    g = max(0.0, g + right * math.log(0.75))  # (1-q)/(1-p) = 3/4
    return g if rate is None else g + math.log(0.75 + 0.25 / rate)


class SecondOrderLearner(Learner):
    """Update rule of `Arow` and `Metron`: noise, Page's test, growth of S and the step."""

    takes_costs = True
    budget: int
    noise = 0.3
    floor = 0.001
    tolerance = 0.001
    alarm = 12.0
    caution = 0.0
    update_below = HINGE

    birth = 0  # the first round after the last reset; the counts below start there
    next_seen = 0  # the first round that Page's test has not seen yet
    loss = 1.0
    wrong = 1
    page = 0.0  # g
    restarts = 0
    kept: ClassVar[Any] = ("birth", "next_seen", "loss", "wrong", "page", "restarts")
    reports: ClassVar[tuple[str, ...]] = ("restarts",)

    def check(self, state: StateReader) -> None:
        fits = self.birth <= self.next_seen <= self.round and self.loss < 1e40  # loss⁶ is finite
        if not fits or not 1 <= self.wrong <= self.round - self.birth + 1 or self.loss <= 0:
            raise state.refusal("birth", "does not fit the rounds")

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> SecondOrder:
        if classes:
            self.update_below = math.inf  # every round contributes to the mean loss
        return SecondOrder(kernel, self.budget, classes)

    def update(self, f: SecondOrder, y: Any, margin: float) -> bool:
        if f.classes:
            signs = np.where(y > 0, 1.0, -1.0)
            step: Any = signs * np.maximum(1.0 - signs * f.value, 0.0)
            mistake = margin < 0 or bool(margin == 0 and y.argmin() < y.argmax())
            self.loss += float(np.square(step).mean())
            margin /= 2.0
            if margin >= HINGE:
                return False
        else:
            step, mistake = (1.0 - margin) * y, mistaken(y, margin)
            self.loss += step * step
        seen = self.round + 2 - self.birth  # includes this round, and one of loss 1 at first
        e = self.loss / seen
        right = self.round - self.next_seen - mistake + 1  # correct rounds since the last call
        self.page = page_statistic(self.page, right, self.wrong / seen if mistake else None)
        if self.page > self.alarm:
            self.reset(f)
            return False
        self.next_seen = self.round + 1
        self.wrong += mistake
        r, room = self.noise * e * e, 1.0 - f.size / self.budget
        if self.caution:
            r += self.caution * min(1.0, 8.0 * e**6 * math.sqrt(min(1.0, f.size / seen)))
            room *= 1.0 - 0.8 * self.caution * e**4
        if f.size < self.budget and margin < room:
            f.enter(self.tolerance)
        return f.learn(step, max(self.floor, r) / self.weight)

    def reset(self, f: SecondOrder) -> None:
        """Reset the learner: from the next round on, f and all counts start from scratch."""
        self.birth = self.next_seen = self.round + 1
        self.loss, self.wrong, self.page = 1.0, 1, 0.0
        self.restarts += 1
        f.successor = self.begin(f.kernel, f.classes)

    @property
    def last_reset(self) -> int | None:
        return self.birth or None

    def warnings(self, f: SecondOrder) -> list[str]:
        if not self.restarts:
            return []
        times = f"{self.restarts:,} times, last " if self.restarts > 1 else ""
        reset = f"the learner was reset {times}in round {self.birth:,}"
        return [f"the mistake rate rose: {reset}"]


@dataclass
class Arow(SecondOrderLearner):
    """AROW (Crammer, Kulesza, Dredze 2009) in the span of at most B examples; our variant.

    S only grows; once |S| = B, learning continues in the span of S. a are the
    coefficients, C their covariance, Q = K^{-1}. With k = κ(S, x), m = y·f(x), e the mean of
    max(0, 1 - m)² over the rounds so far (this one included, and one round of loss 1 before):

        r = max(floor, noise·e²)
        if m < 1 - |S|/B, d = Q·k, δ = κ(x,x) - k·d > tolerance:  x joins S with coefficient 0,
            D = (d, -1); Q += D·Dᵀ/δ and C += D·Dᵀ/δ, both padded with zeros
        if m < 1:  u = C·k; b = 1/(k·u + r); a += (1 - m)·y·b·u; C -= b·u·uᵀ

    So at first x joins on any margin violation, and near |S| = B only on a mistake. Page's test of
    the mistake rate p: g = max(0, g + log(q/p)) on a mistake, else g + log((1-q)/(1-p)), with
    q = p + (1-p)/4 and p from the rounds before. If g > alarm, the learner is reset, without an
    update in this round. An example of weight w has the noise r/w, so it counts as w examples.
    Symbols: B `budget`, η `noise`, δ_0 `tolerance`, g_0 `alarm`.

    `caution` c > 0 is for noisy streams that are short compared with B. In round t,

        r = max(floor, noise·e² + c·min(1, 8e⁶·√(|S|/t)));  joins if m < (1 - |S|/B)·(1 - 0.8·c·e⁴).

    With `multiclass=shared`, the classes share S, Q and C, and a has a column for each. With t = 1
    for the true class y and -1 for the others, m = (f_y - max_{c≠y} f_c)/2, the loss is the mean of
    max(0, 1 - t_c·f_c)² over the classes, and `a_c += max(0, 1 - t_c·f_c)·t_c·b·u` if m < 1.

    In a fixed span this is AROW, with its mistake bound. The growth of S, the noise and the reset
    are ours: that they make fewer mistakes is measured (tests/benchmarks), not proved.
    """

    name = "arow"
    title = "arow: second-order learning in the span of at most B examples (ours, after AROW 2009)"

    budget: int = budget_parameter()
    noise: float = real("η", "r = η·e², e the mean squared hinge loss", default=0.3, over=0)
    floor: float = real("r_0", "least noise r", default=0.001, at_least=1e-5)
    tolerance: float = real(
        "δ_0", "squared distance to the span above which x is added", 0.001, at_least=1e-4
    )
    alarm: float = real("g_0", "Page's statistic that causes a reset", 12.0, over=0, infinite=True)
    caution: float = real(
        "c", "more noise, slower growth if losses are large", 0.0, at_least=0, at_most=1
    )
    multiclass: str = multiclass_parameter(SHARED, REST)
