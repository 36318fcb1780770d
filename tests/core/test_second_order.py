"""Second-order hypotheses: updates that wait are those of the rule, made one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.second_order import ForgettingHead, Products, SecondOrder
from support.streams import full

KERNEL = Gaussian(sigma=0.8)
ROWS = np.random.default_rng(2).normal(size=(48, 2))
LABELS = np.where(ROWS.sum(axis=1) > 0, 1.0, -1.0)
TOLERANCE = 0.02
R = 0.3
Q_SHARE = 0.9
"""What a head that forgets keeps of its covariance after every 5 rounds."""


class Forgetting(SecondOrder):
    """f with a head that forgets."""

    def __init__(self) -> None:
        super().__init__(KERNEL, budget=len(ROWS) + 1)
        self.head = ForgettingHead()

    def evaluate(self) -> None:
        super().evaluate()
        self.prior = Products(self.Q, self.K)

    def close(self) -> None:
        super().close()
        if len(self.Q.A) != len(self.head.C.A):  # joins must be pending in both or in none
            self.Q.settle()
            self.head.C.settle()


class ByTheRule:
    """The same f with plain matrices, which are updated in every round."""

    def __init__(self) -> None:
        self.rows: list[Floats] = []
        self.a = np.zeros(0)
        self.C = np.zeros((0, 0))

    def k(self, x: Floats) -> Floats:
        """κ(s, x) for each s in S."""
        squares = [np.square(s - x).sum() for s in self.rows]
        return np.exp(-np.array(squares) / (2 * KERNEL.sigma**2))

    def inverse(self) -> Floats:
        """Q = K(S,S)^{-1}."""
        if not self.rows:
            return np.zeros((0, 0))
        return np.linalg.inv([self.k(s) for s in self.rows])

    def enter(self, x: Floats) -> None:
        """`C += D·Dᵀ/δ²`, D = (d, -1), if x is outside the span."""
        k = self.k(x)
        d = self.inverse() @ k
        residual = 1.0 - k @ d
        if residual > TOLERANCE:
            D = np.append(d, -1.0)
            self.C = np.pad(self.C, (0, 1)) + np.outer(D, D) / residual
            self.a = np.append(self.a, 0.0)
            self.rows.append(x)

    def learn(self, x: Floats, step: float) -> None:
        """`a += step·b·u`, `C -= b·u·uᵀ`, with u = C·k and b = 1/(k·u + r)."""
        k = self.k(x)
        u = self.C @ k
        b = 1.0 / (k @ u + R)
        self.a = self.a + step * b * u
        self.C = self.C - b * np.outer(u, u)

    def forget(self) -> None:
        """`C ← q·C + (1-q)·Q`."""
        self.C = Q_SHARE * self.C + (1 - Q_SHARE) * self.inverse()


def learned(f: SecondOrder, block: int) -> ByTheRule:
    """Learn all rows with f, and by the rule; values of f are compared in every round."""
    rule = ByTheRule()
    points = KERNEL.points(ROWS)
    for start in range(0, len(ROWS), block):
        f.open(points.slice(start, min(start + block, len(ROWS))))
        for t in range(f.m):
            f.t = t
            x = ROWS[start + t]
            y = LABELS[start + t]
            value = float(rule.a @ rule.k(x))
            assert f.g[t] == pytest.approx(value, abs=1e-9)
            f.enter(TOLERANCE)
            rule.enter(x)
            if y * value < 1.0:
                f.learn(y - value, R)
                rule.learn(x, y - value)
            if isinstance(f, Forgetting) and (start + t) % 5 == 4:
                f.head.forget(Q_SHARE)  # type: ignore[attr-defined]  # it is of this kind
                rule.forget()
        f.close()
    return rule


@pytest.mark.parametrize("block", [1, 7, 48])
def test_coefficients_and_covariance_are_those_of_the_rule(block: int) -> None:
    f = SecondOrder(KERNEL, budget=len(ROWS) + 1)
    rule = learned(f, block)
    np.testing.assert_allclose(f.coefficients, rule.a, atol=1e-8)
    np.testing.assert_allclose(full(f.head.C), rule.C, atol=1e-8)


@pytest.mark.parametrize("block", [1, 7, 48])
def test_a_covariance_returns_to_the_prior_as_the_rule_says(block: int) -> None:
    f = Forgetting()
    rule = learned(f, block)
    np.testing.assert_allclose(f.coefficients, rule.a, atol=1e-8)
    np.testing.assert_allclose(full(f.head.C), rule.C, atol=1e-8)


def test_a_head_that_learns_nothing_any_more_has_the_prior_in_the_end() -> None:
    f = Forgetting()
    learned(f, block=16)
    for _ in range(400):
        f.open(KERNEL.points(ROWS[:1]))
        f.head.forget(Q_SHARE)  # type: ignore[attr-defined]  # it is of this kind
        f.close()
    np.testing.assert_allclose(full(f.head.C), full(f.Q), rtol=1e-6, atol=1e-8)


def test_an_example_far_from_all_others_teaches_nothing_that_is_in_their_span() -> None:
    f = SecondOrder(KERNEL, budget=9)
    f.open(KERNEL.points(np.array([[0.0, 0.0], [1e3, 0.0]])))
    f.t = 0
    f.enter(TOLERANCE)
    f.t = 1
    assert not f.learn(1.0, R)
