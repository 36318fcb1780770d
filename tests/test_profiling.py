"""The profile of a file, against plain NumPy on the whole matrix; and the advice that follows."""

from __future__ import annotations

import io
import math
import tracemalloc

import numpy as np
import pytest
from msgspec.structs import replace
from numpy.typing import NDArray

from ahpatron_cli import profiling as module
from ahpatron_cli.data.scaling import scaled
from ahpatron_cli.data.source import Source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.number_text import short
from ahpatron_cli.output.inspect_text import profile_text
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.profiling import profile_of
from support.profiles import Matrix, alignment_of, distances_of, profile, to_text


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


def test_statistics_are_those_of_the_matrix(matrix: Matrix, labels: Matrix) -> None:
    found = profile(to_text(matrix, labels))
    low = matrix.min(axis=0)
    high = matrix.max(axis=0)
    assert (found.rows, found.examined, found.features) == (60, 60, 12)
    assert found.density == np.count_nonzero(matrix) / matrix.size
    assert (found.low, found.high) == (low.min(), high.max())
    assert found.constant == 2
    at = int(np.argmax(high - low))
    assert found.widest == (at + 1, low[at], high[at])
    same = (matrix[:, None, :] == matrix[None, :, :]).all(axis=2)
    earliest = same.argmax(axis=0)
    assert found.duplicates == np.count_nonzero(earliest < np.arange(60)) >= 2
    assert found.contradictory == np.count_nonzero(labels != labels[earliest]) >= 1


def test_stored_zeros_change_nothing(matrix: Matrix, labels: Matrix) -> None:
    plain = to_text(matrix, labels)
    lines = []
    for row, label in zip(matrix.tolist(), labels.tolist(), strict=True):
        pairs = (f"{j}:{value!r}" for j, value in enumerate(row, 1))
        lines.append(" ".join([f"{label:g}", *pairs]))
    stored = ("\n".join(lines) + "\n").encode()
    expected, found = (profile(text) for text in (plain, stored))
    assert replace(found, sha256=expected.sha256) == expected


def test_the_median_sigma_is_the_median_of_the_distances(matrix: Matrix, labels: Matrix) -> None:
    found = profile(to_text(matrix, labels), scale="none")
    every = distances_of(matrix)
    apart = np.sort(every[every > 0])
    assert found.sigma == pytest.approx(apart[math.ceil(len(apart) / 2) - 1])


def test_useful_widths_have_pairs_near_and_far(matrix: Matrix, labels: Matrix) -> None:
    found = profile(to_text(matrix, labels), scale="none")
    every = distances_of(matrix)
    apart = every[every > 0]
    assert found.sigma_low
    assert found.sigma_high

    def shares(sigma: float) -> tuple[float, float]:
        kappa = np.exp(-(apart**2) / (2 * sigma**2))
        return float(np.mean(kappa >= 0.05 - 1e-9)), float(np.mean(kappa <= 0.95 + 1e-9))

    for sigma in np.geomspace(found.sigma_low, found.sigma_high, 9):
        assert min(shares(sigma)) >= 0.05
    assert shares(0.97 * found.sigma_low)[0] < 0.05
    assert shares(1.03 * found.sigma_high)[1] < 0.05


@pytest.mark.parametrize("sigma", [0.05, 0.8, 3.0, 100.0])
def test_the_alignment_is_the_papers(matrix: Matrix, labels: Matrix, sigma: float) -> None:
    found = profile(to_text(matrix, labels), scale="none", sigma=sigma).alignments[1]
    assert found.value == pytest.approx(alignment_of(matrix, labels, sigma), rel=1e-9)
    assert (found.exact, found.standard_error, found.rows) == (True, None, 60)
    assert found.per_round == found.value / 60


def test_long_files_are_estimated_from_rows_drawn_at_random(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 2)).round(3)
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    monkeypatch.setattr(module, "MOST_SAMPLED", 100)
    first = profile(to_text(X, y), seed=1)
    (found,) = first.alignments
    assert not found.exact
    assert found.standard_error
    truth = alignment_of(X, y, found.sigma)
    assert abs(found.value - truth) < 4 * found.standard_error
    assert profile(to_text(X, y), seed=1) == first
    assert profile(to_text(X, y), seed=2).sigma != first.sigma


def test_statistics_are_those_of_the_first_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 300)
    rng = np.random.default_rng(2)
    X = rng.random((500, 2))
    y = np.where(rng.random(500) < 0.5, 1.0, 2.0)
    text = to_text(X, y)
    whole = profile(text)
    first = profile(to_text(X[:100], y[:100]))
    assert (whole.rows, whole.examined, first.examined) == (500, 100, 100)
    for name in ("low", "high", "widest", "duplicates", "sigma", "baseline", "tried"):
        assert getattr(whole, name) == getattr(first, name)
    assert [one.rows for one in whole.labels] == [np.sum(y == 1), np.sum(y == 2)]


@pytest.mark.parametrize("scale", ["minmax", "standard", "unit", "none"])
def test_distances_are_those_after_scaling(scale: str) -> None:
    X = (np.random.default_rng(4).normal(size=(50, 4)) * [1, 10, 100, 1000] + 7).round(3)
    found = profile(to_text(X, np.sign(X[:, 0] - 7.0001)), scale=scale)
    assert found.scale == scale
    every = np.sort(distances_of(scaled(X, scale)))
    assert found.sigma == pytest.approx(every[math.ceil(len(every) / 2) - 1])


def test_memory_does_not_grow_with_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 100_000)
    lines = [
        f"{i % 2} " + " ".join(f"{j}:{i * j % 97}.25" for j in range(1, 11)) for i in range(99)
    ]

    def peak(rows: int) -> int:
        text = io.BytesIO(("\n".join(lines) + "\n").encode() * (rows // 99))
        tracemalloc.start()
        try:
            assert profile_of(Source(text, "stream", closes=False)).examined == 100_000 // 11
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert peak(99_000) < peak(29_700) + (1 << 20)  # of text, 6 MB more


def test_the_best_of_the_tried_widths_comes_first_and_is_suggested() -> None:
    rng = np.random.default_rng(5)
    X = rng.uniform(-1, 1, (300, 2))
    y = 2 * (np.floor(4 * X).sum(axis=1) % 2) - 1  # a chequerboard: the median σ sees nothing of it
    found = profile(to_text(X, y))
    rates = [one.mistake_rate for one in found.tried]
    assert len(rates) == 5
    assert rates == sorted(rates)
    assert found.sigma
    assert found.tried[0].sigma < found.sigma
    assert f"--sigma {short(found.tried[0].sigma)}" in found.next[0]
    assert profile(to_text(X[:150], y[:150])).tried == ()
    several = profile(to_text(X, np.digitize(X[:, 0], [-0.3, 0.3]).astype(float)))
    assert several.tried[0].mistake_rate < 0.2


def test_which_scaling_is_advised() -> None:
    rng = np.random.default_rng(6)
    y = np.where(rng.random(200) < 0.5, 1.0, -1.0)
    X = rng.random((200, 6))
    sparse = np.where(rng.random((200, 60)) < 0.05, 30 * rng.random((200, 60)), 0.0)
    unit = rng.normal(size=(200, 3))
    for rows, scale in (
        (X, "none"),
        (255 * X, "none"),
        (X * [1, 1, 1, 50, 1, 1000], "minmax"),
        (sparse * np.geomspace(1, 1000, 60), "unit"),
        (np.hstack((unit / np.linalg.norm(unit, axis=1)[:, None], 0 * unit)), "none"),
    ):
        assert profile(to_text(rows, y)).advised_scale == scale


def test_the_larger_of_two_labels_is_positive() -> None:
    two = profile(b"2 1:1\n4 1:2\n2 1:3\n")
    assert (two.negative, two.positive) == (2, 4)
    assert [(one.label, one.rows) for one in two.labels] == [(2, 2), (4, 1)]


@pytest.mark.parametrize(
    ("data", "grouped"),
    [(b"2 1:1\n4 1:2\n2 1:3\n", False), (b"2 1:1\n2 1:2\n4 1:3\n", True)],
)
def test_rows_that_are_grouped_by_label_are_noticed(data: bytes, grouped: bool) -> None:
    assert profile(data).grouped == grouped


def test_of_three_labels_none_is_positive_unless_one_is_chosen() -> None:
    three = profile(b"1 1:1\n2 1:2\n3 1:3\n2 1:4\n")
    assert (three.positive, three.label_problem, three.alignments) == (None, None, ())
    assert "--positive" in three.unknown[-1]


def test_a_chosen_label_is_positive_against_all_others() -> None:
    chosen = profile(b"1 1:1\n2 1:2\n3 1:3\n2 1:4\n", positive=2.0)
    assert (chosen.negative, chosen.positive) == (None, 2)
    assert chosen.alignments


def test_a_chosen_label_that_no_row_has_is_named() -> None:
    assert "no row has the label 9" in str(profile(b"1 1:1\n", positive=9.0).label_problem)


def test_of_very_many_labels_the_first_thousand_are_counted() -> None:
    many = profile("".join(f"{i} 1:{i}\n" for i in range(3000)).encode())
    assert (len(many.labels), many.all_labels, many.grouped) == (1000, False, False)


def test_the_command_to_continue_with() -> None:
    assert profile(b"1 1:1\n-1 1:2\n1 1:3\n").next == ("ahpatron run data.svm -l metron",)
    other = profile(b"2 1:1 2:900\n4 1:2 2:1\n4 1:3 2:5000\n")
    assert other.next == ("ahpatron run data.svm --positive 4 -l metron --shuffle",)
    assert profile(b"1 1:1\nx\n-1 1:2\n").next == ()
    assert profile(b"1 1:1\n1 1:2\n").next == ()


def test_the_columns_of_a_table_fit_into_a_terminal() -> None:
    rows = "".join(
        f"2025-03-01 {8 + i // 60:02}:{i % 60:02}:00,,{'ab'[i % 2]}\n" for i in range(90)
    )
    text = f"the moment of its creation,size of it,y\n{rows}".encode()
    source = Source(io.BytesIO(text), "data.csv", closes=True)
    found = profile_of(source, table=TableOptions(label="y"))
    assert max(map(len, profile_text(found, Terminal(80)).splitlines())) <= 80
    assert max(map(len, profile_text(found, Terminal(60)).splitlines())) <= 60
    assert "2025-03-01 08:00 to 2025-03-01 09:29" in profile_text(found, Terminal())
