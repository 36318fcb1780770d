"""Comparators against brute force: losses and norms in loops, SVMs by their duality gap."""

import math

import numpy as np
import pytest

from ahpatron_cli.core import Gaussian, Kernel, Linear, certificates
from ahpatron_cli.core.certificates import Comparator, Pieces, comparators, svm_path
from ahpatron_cli.core.rows import Floats, Rows
from support.cases import KERNEL_PAIRS
from support.streams import Example, compress, make_stream


def in_pieces(*parts: tuple[Rows, Floats]) -> Pieces:
    return lambda: parts


def gram_of(stream: Example, kernel: Kernel) -> Floats:
    points = kernel.points(stream.X)
    return kernel.between(points, points)


@pytest.mark.parametrize("name", KERNEL_PAIRS)
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_losses_and_norms_against_brute_force(
    name: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every direction at many lengths, in loops."""
    kernel, formula = KERNEL_PAIRS[name]
    stream = make_stream(seed=3, rounds=40, features=3, noise=0.3)
    rng = np.random.default_rng(1)
    weights = {f"SVM, C = {C:.3g}": rng.normal(size=40) * C for C in certificates.SVM_COSTS}
    made = list(weights.values())
    monkeypatch.setattr(certificates, "svm_path", lambda *_, seed: made)
    weights["mean of 40"] = stream.y
    rows = compress(stream.X) if form == "sparse" else stream.X
    candidates = comparators(in_pieces((rows, stream.y)), 40, kernel, [0.3])
    assert {f.name for f in candidates} == {"0", *weights}
    assert {0.3} <= {f.norm for f in candidates}
    K = [[formula(u, v) for v in stream.rows] for u in stream.rows]
    assert candidates[0] == Comparator("0", 40.0, 0.0)
    for f in candidates[1::13]:
        a = weights[f.name]
        norm = math.sqrt(math.fsum(a[i] * K[i][j] * a[j] for i in range(40) for j in range(40)))
        values = [
            f.norm / norm * math.fsum(w * k for w, k in zip(a, row, strict=True)) for row in K
        ]
        losses = [max(0.0, 1.0 - y * v) for y, v in zip(stream.labels, values, strict=True)]
        assert f.loss == pytest.approx(math.fsum(losses), rel=1e-6)


def test_a_sample_stands_in_for_a_long_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificates, "SAMPLE", 30)
    stream = make_stream(seed=5, rounds=200, features=2)
    kernel = Gaussian(sigma=0.5)
    cut = [slice(0, 70), slice(70, 71), slice(71, 200)]
    pieces = in_pieces(*((stream.X[part], stream.y[part]) for part in cut))
    candidates = comparators(pieces, 200, kernel, seed=9)
    for f, other in zip(
        candidates, comparators(in_pieces((stream.X, stream.y)), 200, kernel, seed=9), strict=True
    ):
        assert f == Comparator(other.name, pytest.approx(other.loss), other.norm)
    chosen = np.sort(np.random.default_rng([9, 200]).choice(200, 30, replace=False))
    K = gram_of(stream, kernel)
    norm = math.sqrt(stream.y[chosen] @ K[np.ix_(chosen, chosen)] @ stream.y[chosen])
    values = stream.y * (K[:, chosen] @ stream.y[chosen]) / norm
    means = [f for f in candidates if f.name == "mean of 30"]
    assert len(means) > 100
    for f in means:
        loss = np.maximum(0, 1 - f.norm * values).sum()  # over all 200
        assert f.loss == pytest.approx(loss, rel=1e-6)


def test_the_svm_path_minimises() -> None:
    """The gap between primal and dual value bounds how far from the minimum the solution is."""
    stream = make_stream(seed=9, rounds=300, features=2, noise=0.3)
    gram, costs = gram_of(stream, Gaussian(sigma=0.5)), [0.01, 0.1, 1.0, 10.0]
    for cost, a in zip(costs, svm_path(gram, stream.y, costs, seed=0), strict=True):
        alphas = a * stream.y
        assert alphas.min() >= 0
        assert alphas.max() <= cost
        squared = a @ gram @ a
        primal = squared / 2 + cost * np.maximum(0, 1 - stream.y * (gram @ a)).sum()
        dual = alphas.sum() - squared / 2
        assert dual * (1 - 1e-12) <= primal <= 1.02 * dual  # equal up to rounding where solved


def test_one_round_and_rows_of_zeros() -> None:
    single = comparators(in_pieces((np.array([[1.0]]), np.array([1.0]))), 1, Gaussian())
    assert min(f.loss for f in single) < 1e-6
    rows, labels = np.zeros((5, 2)), np.array([1.0, -1, 1, 1, -1])
    nothing = comparators(in_pieces((rows, labels)), 5, Linear())
    assert nothing[0] == Comparator("0", 5.0, 0.0)
    assert min(f.loss for f in nothing) >= 5
