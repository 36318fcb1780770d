"""Perceptrons and related learners, with and without a budget."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Classes, Learner, budget_parameter
from ahpatron_cli.core.numerics import HINGE, SLACK, TINY, cancelled, first_smallest, up_to
from ahpatron_cli.core.parameters import real
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Integers


@dataclass
class Perceptron(Learner):
    """Kernel Perceptron: adds every mistake to S (Rosenblatt 1958; Freund, Schapire 1999).

    `f ← f + y·κ(x,·)` if `sign(f(x)) ≠ y`. No budget, no parameters. For every f in the space,
    `|M_T| <= 2·L_T(f) + ‖f‖²` (Theorem 1 of Liao et al. 2024), L_T the sum of hinge losses.

    Deviations
    ----------
    The first example always joins, also if sign(0) = +1 predicts it correctly: f would stay 0.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, Perceptron, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Perceptron(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    227
    """

    name = "perceptron"
    title = "Perceptron: adds every mistake, no budget"
    references = ("rosenblatt1958", "freund1999")

    def update(self, f: Expansion, y: float, margin: float) -> None:
        f.add(y)


@dataclass
class Alma(Learner):
    """ALMA_2: requires a margin that shrinks with the updates (Gentile 2001, ALMA_p, p = 2).

    With k = 1 at first: if `y·f(x) <= (1 - α)·β/√k`, then `f ← Proj_1(f + (C/√k)·y·κ(x,·))` and
    k ← k + 1; Proj_1 projects onto the unit ball. No budget. Symbols: α `alpha`, β `beta` (B in the
    publication), C `gain`.

    Deviations
    ----------
    The publication divides by ‖x‖; here κ(x,x) = 1.

    Examples
    --------
    >>> from ahpatron_cli.core import Alma, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Alma(), X, y, Gaussian(sigma=0.2)).tally.mistakes
    188
    """

    name = "alma2"
    title = "ALMA_2: requires a decreasing margin, no budget (Gentile 2001)"
    references = ("gentile2001",)
    grid = ("alpha=0.5,0.7,0.9,1",)

    alpha: float = real("α", "the required margin is (1-α)·β/√k", 0.9, over=0, at_most=1)
    beta: float = real(
        "β",
        "scale of the required margin",
        over=0,
        formula="1/α",
        derive=lambda own: 1 / own.alpha,
    )
    gain: float = real("C", "coefficient of the first example", math.sqrt(2), over=0, formula="√2")

    updates = 0  # k - 1
    state_fields = ("updates",)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Expansion:
        self.update_below = self.required_margin()
        return Expansion(kernel)

    def update(self, f: Expansion, y: float, margin: float) -> None:
        k = self.updates + 1
        root = math.sqrt(k)
        step = y * self.gain / root  # (C/√k)·y
        f.add(step, 1.0)
        self.updates = k
        self.update_below = self.required_margin()

    def required_margin(self) -> float:
        """`(1 - α)·β/√k`."""
        k = self.updates + 1
        required = (1 - self.alpha) * self.beta
        required /= math.sqrt(k)
        return up_to(required)


@dataclass
class RandomBudgetPerceptron(Learner):
    """Perceptron that drops a random example (Cavallanti, Cesa-Bianchi, Gentile 2007, RBP).

    On a mistake: if |S| = B, drop one example uniformly at random; add x with y.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, RandomBudgetPerceptron, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(RandomBudgetPerceptron(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    267
    """

    name = "rbp"
    title = "RBP: Perceptron that forgets a random example (Cavallanti et al. 2007)"
    references = ("cavallanti2007",)

    budget: int = budget_parameter()

    def update(self, f: Expansion, y: float, margin: float) -> None:
        if f.size == self.budget:
            index = self.rng.integers(f.size)
            column = f.support.item(index)
            f.drop(column)
        f.add(y)


@dataclass
class Forgetron(Learner):
    """Perceptron that shrinks f and drops the oldest (Dekel, Shalev-Shwartz, Singer 2008).

    On a mistake, add x with y. If now |S| > B: let r be the oldest example, σ = |a_r| and
    μ = y_r·f(x_r); multiply f by φ and drop r. φ is the largest value in (0, 1] that keeps
    `Ψ(φ) + Q <= (15/32)·M` (self-tuned variant), where `Ψ(φ) = (φσ)² + 2φσ - 2φσ·φμ` is the cost of
    dropping r, Q the sum of earlier costs and M the number of mistakes, this one included.
    For every f with `‖f‖ <= √(B+1) / (4·√ln(B+1))`: `|M_T| <= 4·L_T(f) + 2·‖f‖²`.

    Examples
    --------
    >>> from ahpatron_cli.core import Forgetron, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(Forgetron(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    290
    """

    name = "forgetron"
    title = "Forgetron: forgets the oldest, shrinking first (Dekel et al. 2008, self-tuned)"
    references = ("dekel2008",)

    budget: int = budget_parameter()

    mistakes = 0  # M
    cost = 0.0  # Q
    state_fields = ("mistakes", "cost")

    def update(self, f: Expansion, y: float, margin: float) -> None:
        self.mistakes += 1
        f.add(y)
        if f.size > self.budget:
            r = f.oldest
            a = f.a.item(r)
            coefficient = f.scale * a
            value = f.value_at(r)
            phi = self.shrinking(coefficient, value)
            f.shrink(phi)
            f.drop(r)

    def shrinking(self, coefficient: float, value: float) -> float:
        """Largest φ <= 1 with aφ² + bφ + c <= 0, a = σ² - 2σμ, b = 2σ, c = Q - 15M/32 < 0.

        `coefficient` is a_r, whose sign is that of y_r; `value` is f(x_r).
        """
        sigma = abs(coefficient)
        label = math.copysign(1.0, coefficient)  # y_r
        mu = label * value
        b = 2 * sigma
        a = sigma**2 - b * mu
        allowed = 15 / 32 * self.mistakes
        c = self.cost - allowed
        c = min(c, -SLACK)  # < 0 even in a forged state
        # At φ = 0 the sum is c < 0. If it is above 0 at φ = 1, the crossing between them is the
        # root below, in the form that also holds for a = 0 and loses no digits.
        if a + b + c <= 0:
            phi = 1.0
        else:
            discriminant = b * b - 4 * a * c
            root = math.sqrt(discriminant)
            phi = -2 * c / (b + root)
        paid = a * phi**2 + b * phi  # Ψ(φ)
        self.cost += paid
        return phi


class SupportExpansion(Expansion):
    """Expansion that tracks f at S: O(|S|) for each example that joins or leaves."""

    def __init__(self, kernel: Kernel) -> None:
        super().__init__(kernel, gram=True)

    def open(self, block: Points, start: int = 0) -> None:
        super().open(block, start)
        gram = self.gram().copy()
        a = self.a[: self.n]
        self._before = gram  # K of the first n columns
        self._old_values = gram @ a  # f at them
        diagonals = (gram.diagonal(), self.diagonal)
        self._diagonals = np.concatenate(diagonals)

    def add(self, coefficient: float, radius: float | None = None) -> None:
        super().add(coefficient, radius)
        row = self.K[self.t, : self.n]
        self._old_values += coefficient * row

    def drop(self, column: int) -> None:
        if column < self.n:
            row = self._before[column]
        else:
            t = column - self.n
            row = self.K[t, : self.n]
        a = self.a.item(column)
        self._old_values -= a * row
        super().drop(column)

    def at_support(self, support: Integers) -> tuple[Floats, Floats]:
        """f(s) and κ(s,s) of the examples in these columns, two arrays."""
        values = np.concatenate((self._old_values, self.g))
        at_support = values.take(support)
        own = self._diagonals.take(support)
        return at_support, own


@dataclass
class BudgetPerceptron(Learner):
    """Perceptron that drops the example f classifies best without it (Crammer et al. 2003).

    On `y·f(x) <= β` (β = 0: on a mistake), if |S| = B first drop
    `argmax_i y_i·(f(s_i) - a_i·κ(s_i,s_i))` (ties: the oldest); then add x with y.
    Symbols: B `budget`, β `threshold`.

    Deviations
    ----------
    The publication drops examples as long as one has a margin above β without itself; this is the
    fixed-budget form that later papers compare with.

    Examples
    --------
    >>> from ahpatron_cli.core import BudgetPerceptron, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(BudgetPerceptron(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    501
    """

    name = "budget-perceptron"
    title = "Budget Perceptron: drops the largest margin without it (Crammer et al. 2003)"
    references = ("crammer2003",)
    grid = ("threshold=0,0.5",)

    budget: int = budget_parameter()
    threshold: float = real("β", "update if y·f(x) <= β", default=0.0, at_least=0)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> SupportExpansion:
        if self.threshold:
            self.update_below = up_to(self.threshold)
        return SupportExpansion(kernel)

    def update(self, f: SupportExpansion, y: float, margin: float) -> None:
        if f.size == self.budget:
            support = f.support
            values, own = f.at_support(support)
            a = f.a.take(support)
            errors = own - a * values  # a_i = y_i
            # f(s_i) is a sum of |S| terms of at most 1: that is the scale of ties
            best = first_smallest(errors, f.size)
            f.drop(support.item(best))
        f.add(y)


@dataclass
class TighterPerceptron(Learner):
    """Perceptron that drops the example whose removal causes the fewest errors (Weston 2005).

    On a mistake, if |S| = B first drop the i with the smallest
    `#{k ∈ S ∪ {x}: y_k·(f(s_k) - a_i·κ(s_i,s_k)) <= 0}`; ties: that with the largest
    `y_i·(f(s_i) - a_i·κ(s_i,s_i))`, then the oldest. Then add x with y.

    Deviations
    ----------
    The publication counts errors on a cache of examples; here the cache is S and x.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian, TighterPerceptron, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(TighterPerceptron(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    322
    """

    name = "tighter-perceptron"
    title = (
        "Tighter Perceptron: drops the example that costs the fewest errors (Weston et al. 2005)"
    )
    references = ("weston2005",)

    budget: int = budget_parameter()

    def begin(self, kernel: Kernel, classes: Classes = ()) -> SupportExpansion:
        return SupportExpansion(kernel)

    def update(self, f: SupportExpansion, y: float, margin: float) -> None:
        if f.size == self.budget:
            best = self.fewest_errors(f, y, margin)
            column = f.support.item(best)
            f.drop(column)
        f.add(y)

    def fewest_errors(self, f: SupportExpansion, y: float, margin: float) -> int:
        """Index, by age, of the example whose removal causes the fewest errors on S and x."""
        support = f.support
        zero = SLACK * f.size  # margins are sums of |S| terms of at most 1
        a = f.a.take(support)
        values, _ = f.at_support(support)
        gram = f.gram()
        column = a[:, None]
        parts = column * gram  # row i: the part of i in f at S
        left = a * (values - parts)  # row i: margins of S without i
        k = f.k[support]
        at_x = margin - y * a * k  # entry i: margin of x without i
        errors = np.count_nonzero(left <= zero, axis=1)
        errors = errors + (at_x <= zero)
        least = errors.min()
        fewest = np.flatnonzero(errors == least)
        own = left.diagonal()[fewest]
        best = first_smallest(-own, f.size)
        return fewest.item(best)


class ReplaceableExpansion(Expansion):
    """Expansion that finds the example of S whose replacement by x changes f least."""

    largest = 0.0  # the largest a² so far
    state_fields: ClassVar[Any] = {**Expansion.state_fields, "largest": float}

    def open(self, block: Points, start: int = 0) -> None:
        super().open(block, start)
        # 1 - κ(s,x)²: the part of κ(s,·) that x cannot replace; never 0, which times inf is NaN
        parts = 1.0 - np.square(self.K)
        self._parts = np.maximum(parts, TINY)
        squares = self.a * self.a
        self._squares = np.where(self.alive, squares, np.inf)

    def add(self, coefficient: float, radius: float | None = None) -> None:
        super().add(coefficient, radius)
        column = self.n + self.t
        square = coefficient * coefficient
        self._squares[column] = square
        if square > self.largest:
            self.largest = square

    def drop(self, column: int) -> None:
        super().drop(column)
        self._squares[column] = np.inf

    def cheapest(self) -> int:
        """Column with the smallest `a²·(1 - κ(s,x)²)`; ties: the oldest."""
        parts = self._parts[self.t]
        costs = parts * self._squares
        return first_smallest(costs, self.largest)


@dataclass
class BpaS(Learner):
    """Budgeted passive-aggressive learning, simple (Wang, Vucetic 2010, BPA-S).

    If `y·f(x) < 1`, τ = min(C, 1 - y·f(x)). While |S| < B, add x with τ·y. Else, dropping r from S
    and adding x with `β_r = a_r·κ(s_r,x) + τ·y`, the minimiser of `½‖f' - f‖² + C·loss(f')`, costs

        Q_r = ½(a_r² + β_r² - 2·a_r·β_r·κ(s_r,x)) + C·max(0, 1 - y·f(x) - τ);

    drop the r that costs least (ties: the oldest). κ(x,x) = 1 as in the publication.
    Symbols: B `budget`, C `aggressiveness`.

    Examples
    --------
    >>> from ahpatron_cli.core import BpaS, Gaussian, play
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> play(BpaS(budget=100), X, y, Gaussian(sigma=0.2)).tally.mistakes
    137
    """

    name = "bpa-s"
    title = "BPA-S: passive-aggressive, replaces one example (Wang, Vucetic 2010)"
    references = ("wang2010",)
    grid = ("aggressiveness=log:0.01:1:5",)

    budget: int = budget_parameter()
    aggressiveness: float = real("C", "largest step", default=1.0, over=0)
    update_below = HINGE

    def begin(self, kernel: Kernel, classes: Classes = ()) -> ReplaceableExpansion:
        return ReplaceableExpansion(kernel)

    def update(self, f: ReplaceableExpansion, y: float, margin: float) -> None:
        tau = min(self.aggressiveness, 1.0 - margin)
        step = y * tau
        if f.size == self.budget:
            column = f.cheapest()  # minimises Q_r, up to terms that do not depend on r
            a = f.a.item(column)
            k = f.K.item(f.t, column)
            taken_over = a * k  # a_r·κ(s_r,x)
            f.drop(column)
            beta = step + taken_over  # β_r
            terms = abs(step) + abs(taken_over)
            if cancelled(beta, terms):
                beta = 0.0
            step = beta
        f.add(step)
