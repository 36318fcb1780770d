"""The profile of a file, against plain NumPy on the whole matrix."""

from __future__ import annotations

import io
import math
import tracemalloc

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from ahpatron_cli.data.geometry import Alignment, Distances, align, measure
from ahpatron_cli.data.source import Source
from ahpatron_cli.numbers import short
from ahpatron_cli.profile.profile import next_commands
from ahpatron_cli.profile.profiler import Columns, RowsSeen, Sample, profile_of
from support.profiles import Matrix, alignment_of, distances_of, profile, to_text
from support.streams import compress


@pytest.fixture(params=["dense", "sparse"])
def matrix(request: pytest.FixtureRequest) -> Matrix:
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 12)).round(3)
    if request.param == "sparse":
        X[rng.random(X.shape) < 0.85] = 0.0
    X[:, 3] = 0.0
    X[:, 5] = 2.5
    X[20] = X[4]
    X[30] = X[4]
    return X


@pytest.fixture
def labels() -> NDArray[np.float64]:
    y = np.where(np.random.default_rng(1).random(60) < 0.4, 1.0, -1.0)
    y[[4, 20, 30]] = 1.0, 1.0, -1.0
    return y


def test_ranges_and_constants(matrix: Matrix, labels: Matrix) -> None:
    facts = profile(to_text(matrix, labels)).feature_facts
    low, high = matrix.min(axis=0), matrix.max(axis=0)
    assert (facts.examined, facts.low, facts.high) == (12, low.min(), high.max())
    assert (facts.never_used, facts.constant) == (1, 1)
    assert facts.within_0_1 == np.count_nonzero((low >= 0) & (high <= 1))
    assert facts.within_1_1 == np.count_nonzero((low >= -1) & (high <= 1))
    widest = sorted(range(12), key=lambda j: low[j] - high[j])[:5]
    assert [(one.index, one.low, one.high) for one in facts.widest] == [
        (j + 1, low[j], high[j]) for j in widest
    ]


def test_duplicate_and_contradictory_rows(matrix: Matrix, labels: Matrix) -> None:
    facts = profile(to_text(matrix, labels)).row_facts
    same = (matrix[:, None, :] == matrix[None, :, :]).all(axis=2)
    repeated = [i for i in range(60) if same[i, :i].any()]
    contradicted = [i for i in range(60) if (same[i] & (labels != labels[i])).any()]
    assert 20 in repeated
    assert {4, 20, 30} <= set(contradicted)
    assert facts.compared == 60
    assert (facts.duplicates, facts.contradictory) == (len(repeated), len(contradicted))
    for pair, differs in ((facts.duplicate_lines, False), (facts.contradictory_lines, True)):
        assert pair is not None
        first, second = pair[0] - 1, pair[1] - 1
        assert first < second
        assert same[first, second]
        assert not differs or labels[first] != labels[second]
    lengths = np.linalg.norm(matrix, axis=1)
    assert facts.shortest == pytest.approx(lengths.min())
    assert facts.longest == pytest.approx(lengths.max())


def test_with_a_positive_label_only_signs_contradict() -> None:
    text = b"1 1:5\n2 1:5\n3 1:7\n"
    assert profile(text).row_facts.contradictory == 2
    assert profile(text, positive=3.0).row_facts.contradictory == 0
    assert profile(text, positive=2.0).row_facts.contradictory == 2


def test_columns_beyond_the_limit_are_not_looked_at() -> None:
    columns = Columns(limit=3)
    columns.add(compress(np.array([[0.0, 1.0, 2.0, 9.0, 9.0], [0.0, 1.0, 3.0, 0.0, 9.0]])))
    low, high, _ = columns.result(1, 5)
    assert (low.tolist(), high.tolist()) == ([1.0, 2.0], [1.0, 3.0])


def test_rows_beyond_the_limit_are_not_compared() -> None:
    seen = RowsSeen(limit=3)
    X = np.array([[1.0], [1.0], [2.0], [2.0], [1.0], [1.0]])
    for part in (slice(0, 2), slice(2, 4), slice(4, 6)):
        seen.add(compress(X[part]), np.ones(2), np.arange(6)[part] + 1)
    assert seen.facts().compared == 3
    assert seen.facts().duplicates == 1


def test_distances_and_sigma(matrix: Matrix) -> None:
    found = measure(compress(matrix))
    assert isinstance(found, Distances)
    every = distances_of(matrix)
    apart = np.sort(every[every > 0])
    assert (found.rows, found.pairs, found.zero_pairs) == (60, 1770, 1770 - len(apart))
    assert found.zero_pairs >= 3
    assert (found.smallest, found.largest) == pytest.approx((apart[0], apart[-1]))
    ranks = [apart[math.ceil(q * len(apart)) - 1] for q in (0.05, 0.5, 0.95)]
    assert [found.quantile_05, found.median, found.quantile_95] == pytest.approx(ranks)
    assert found.sigma == found.median
    assert sum(found.histogram_counts) == len(apart)
    slack = 1e-9  # two ways to compute a distance differ in their last digits
    edges, counts = found.histogram_edges, found.histogram_counts
    for low, high, count in zip(edges, edges[1:], counts, strict=False):
        fewest = np.count_nonzero((apart > low + slack) & (apart < high - slack))
        most = np.count_nonzero((apart > low - slack) & (apart < high + slack))
        assert fewest <= count <= most


def test_the_useful_range_is_what_it_says(matrix: Matrix) -> None:
    found = measure(compress(matrix))
    assert isinstance(found, Distances)
    every = distances_of(matrix)
    apart = every[every > 0]

    def shares(sigma: float) -> tuple[float, float]:
        kappa = np.exp(-(apart**2) / (2 * sigma**2))
        return float(np.mean(kappa >= 0.05 - 1e-9)), float(np.mean(kappa <= 0.95 + 1e-9))

    for sigma in np.geomspace(found.sigma_low, found.sigma_high, 9):
        assert min(shares(sigma)) >= 0.05
    assert shares(0.97 * found.sigma_low)[0] < 0.05
    assert shares(1.03 * found.sigma_high)[1] < 0.05


@pytest.mark.parametrize("sigma", [0.05, 0.8, 3.0, 100.0])
def test_the_alignment_is_the_papers(matrix: Matrix, labels: Matrix, sigma: float) -> None:
    found = align(compress(matrix), labels, sigma, total=60)
    assert found is not None
    assert found.value == pytest.approx(alignment_of(matrix, labels, sigma), rel=1e-9)
    assert (found.exact, found.standard_error, found.rows) == (True, None, 60)
    assert found.per_round == found.value / 60


def test_the_estimate_and_its_standard_error() -> None:
    rng = np.random.default_rng(5)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] > 0.3, 1.0, -1.0)
    exact = align(compress(X), y, 1.0, total=400)
    assert exact is not None
    misses = []
    for seed in range(200):
        chosen = np.random.default_rng(seed).permutation(400)[:80]
        found = align(compress(X[chosen]), y[chosen], 1.0, total=400)
        assert isinstance(found, Alignment)
        assert not found.exact
        assert found.standard_error
        misses.append((found.value - exact.value) / found.standard_error)
    assert abs(np.mean(misses)) < 0.25  # unbiased
    assert 0.8 < np.std(misses) < 1.2  # and the error is as large as it says
    two = align(compress(X[:2]), y[:2], 1.0, total=400)
    assert two is not None
    assert two.standard_error is None


def test_a_sample_is_fair_and_does_not_depend_on_how_rows_arrive() -> None:
    X = np.arange(1.0, 301.0)[:, None]
    counts = np.zeros(300)
    for seed in range(300):
        sample = Sample(seed, most_rows=30)
        for part in np.array_split(X, 4):
            sample.add(compress(part), part[:, 0])
        assert len(sample.rows) == 30
        assert sample.rows.values.tolist() == sample.labels.tolist()
        counts[sample.labels.astype(int) - 1] += 1
    expected = 30.0
    assert ((counts - expected) ** 2 / expected).sum() < 380  # χ² with 299 degrees: 380 is 99.9 %
    whole = Sample(299, most_rows=30)
    whole.add(compress(X), X[:, 0])
    assert whole.labels.tolist() == sample.labels.tolist()


def test_large_files_are_estimated_from_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 2)).round(3)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    small = Sample.__init__.__defaults__
    assert small is not None
    monkeypatch.setattr(Sample.__init__, "__defaults__", (100, small[1]))
    first = profile(to_text(X, y), seed=1)
    assert first.distances is not None
    assert first.distances.rows == 100
    (found,) = first.alignments
    assert not found.exact
    assert found.standard_error
    truth = alignment_of(X, y, found.sigma)
    assert abs(found.value - truth) < 4 * found.standard_error
    assert profile(to_text(X, y), seed=1) == first
    assert profile(to_text(X, y), seed=2) != first


@pytest.mark.parametrize(
    ("scale", "scaled"),
    [
        ("minmax", lambda X: (X - X.min(axis=0)) / np.ptp(X, axis=0)),
        ("standard", lambda X: (X - X.mean(axis=0)) / X.std(axis=0)),
        ("unit", lambda X: X / np.linalg.norm(X, axis=1, keepdims=True)),
        ("none", lambda X: X),
    ],
)
def test_distances_are_those_after_scaling(scale: str, scaled: object) -> None:
    assert callable(scaled)
    rng = np.random.default_rng(4)
    X = (rng.normal(size=(50, 4)) * [1, 10, 100, 1000] + 7).round(3)
    found = profile(to_text(X, np.sign(X[:, 0] - 7.0001)), scale=scale)
    assert found.scaling.applied == scale
    assert found.distances is not None
    every = np.sort(distances_of(scaled(X)))
    assert found.distances.median == pytest.approx(every[math.ceil(len(every) / 2) - 1])


def test_what_cannot_be_told_is_said() -> None:
    X = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 2.0], [3.0, 1.0]])
    for size in (1e160, 1e-200):  # squares overflow, or vanish
        found = profile(to_text(X * size, np.array([1.0, -1.0, 1.0, -1.0])), scale="none")
        assert found.distances is None
        assert found.row_facts.longest is None
    same = profile(b"1 1:1\n-1 1:1\n", sigma=1.0)
    assert same.distances is None
    assert same.alignments[0].value == 2.0
    assert profile(b"1 1:1\n").unknown[0] == "distances and σ: there is only one row"


def test_values_that_are_not_stored_count_as_zeros() -> None:
    facts = profile(b"1 1:2 2:5 3:5\n-1 1:2 2:6 3:-5\n1 1:2 3:7\n").feature_facts
    assert [(one.index, one.low, one.high) for one in facts.widest] == [(3, -5, 7), (2, 0, 6)]
    assert (facts.low, facts.high, facts.constant) == (-5, 7, 1)
    assert profile(b"1 1:2\n-1 2:1\n").feature_facts.constant == 0


def test_faults_are_counted_by_kind_and_the_first_are_kept() -> None:
    text = b"1 1:1\nx 1:1\n-1 1:1\ny\n1 2:1 1:1\n"
    faults = profile(text).faults
    assert (faults.count, faults.kinds) == (3, {"label": 2, "index-order": 1})
    assert [(one.line, one.column) for one in faults.first] == [(2, 1), (4, 1), (5, 7)]
    assert not faults.stopped
    assert profile(b"<html>\n1 1:1\n").faults.stopped
    assert profile(b"<html>\n1 1:1\n").labels is None


def peak_while_reading(rows: int) -> int:
    """Bytes that Python and NumPy hold at most from the first chunk to the last."""
    lines = (
        f"{i % 2} " + " ".join(f"{j}:{i * j % 97}.25" for j in range(1, 11)) for i in range(1000)
    )
    text = io.BytesIO(("\n".join(lines) + "\n").encode() * (rows // 1000))
    tracemalloc.start()
    peak = 0

    def note(count: int) -> None:
        nonlocal peak
        peak = tracemalloc.get_traced_memory()[1]

    try:
        assert profile_of(Source(text, "stream", closes=False), on_progress=note).rows == rows
    finally:
        tracemalloc.stop()
    return peak


def test_memory_while_reading_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RowsSeen.__init__, "__defaults__", (20_000,))
    assert peak_while_reading(300_000) < peak_while_reading(30_000) + (1 << 20)


def test_the_best_of_the_tried_widths_comes_first_and_is_suggested() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (300, 2))
    y = 2 * (np.floor(4 * X).sum(axis=1) % 2) - 1  # a chequerboard: the median σ sees nothing of it
    found = profile(to_text(X, y))
    assert found.distances is not None
    tried = found.tried
    rates = [one.mistake_rate for one in tried]
    assert len(rates) == 5
    assert rates == sorted(rates)
    assert tried[0].sigma < found.distances.sigma
    assert f"--sigma {short(tried[0].sigma)}" in next_commands(found)[0]
    low, high = next_commands(replace(found, from_pipe=False))[1].split("log:")[1].split(":")[:2]
    assert float(low) <= float(short(tried[0].sigma)) <= float(high)
    assert profile(to_text(X, y)) == found
    few = profile(to_text(X[:150], y[:150]))
    assert few.tried == ()
    several = profile(to_text(X, np.digitize(X[:, 0], [-0.3, 0.3]).astype(float)))
    assert several.tried[0].mistake_rate < 0.2
