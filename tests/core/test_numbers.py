"""Degenerate data and settings: right against the slow twin, or refused; never a wrong number."""

import math
import tracemalloc

import numpy as np
import pytest

from ahpatron_cli.core import (
    AVP,
    REGISTRY,
    Ahpatron,
    Gaussian,
    Laplacian,
    Linear,
    Norma,
    Perceptron,
    Player,
    play,
)
from ahpatron_cli.core.errors import NumericalError, ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.rows import CsrRows, unit_rows
from reference import kernels as formulas
from support.cases import PROJECTING, Case
from support.streams import Example, compress, make_stream

CASES = [Case("ahpatron", {"budget": 8}), Case("avp", {"radius": 3.0}), Case("perceptron")]


def agrees(case: Case, stream: Example, sigma: float = 1.0) -> None:
    """Engine, dense and compressed, and twin make the same predictions."""
    listed = stream.rows
    formula = formulas.tabled(listed, formulas.gaussian(sigma))
    trace = case.twin(listed, stream.labels, formula)
    for rows in (stream.X, compress(stream.X)):
        player = Player(case.learner(), Gaussian(sigma=sigma))
        scores = player.feed(rows, stream.y)
        np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-8)
        # where f(x) is 0 up to rounding, rounding decides; each run says how often that was
        ties = sum(0 < abs(score) < 1e-9 for score in scores)
        assert abs(player.tally.mistakes - trace.mistakes) <= ties <= player.tally.near_ties


@pytest.mark.parametrize("case", [*CASES, *PROJECTING], ids=str)
@pytest.mark.parametrize(
    "distort",
    [
        pytest.param(lambda X: X + 1e8, id="an offset of 1e8 in all features"),
        pytest.param(lambda X: X + np.array([1e8, 0, -1e5]), id="an offset in some features"),
        pytest.param(lambda X: np.where(np.arange(len(X))[:, None] == 3, 1e12, X), id="an outlier"),
        pytest.param(lambda X: np.where(X > 1, 1e7 * X, X), id="two scales"),
        pytest.param(lambda X: np.round(X), id="many duplicates"),
        pytest.param(lambda X: X[:, :1], id="a single feature"),
        pytest.param(lambda X: X * 40, id="kernel values that underflow"),
    ],
)
def test_unusual_values(case: Case, distort: object) -> None:
    stream = make_stream(seed=11, rounds=100, features=3)
    agrees(case, Example(distort(stream.X), stream.y))  # type: ignore[operator]


@pytest.mark.parametrize("case", CASES[1:], ids=str)
def test_values_whose_squares_are_zero(case: Case) -> None:
    """κ is 1 everywhere."""
    stream = make_stream(seed=11, rounds=100, features=3)
    agrees(case, Example(stream.X * 1e-170, stream.y))


@pytest.mark.parametrize("sparse", [False, True])
def test_halvings_where_kappa_is_one_everywhere(sparse: bool) -> None:
    """f is often 0 when it is halved, and what it is rescaled to is rounding: bounds are kept."""
    stream = make_stream(seed=11, rounds=100, features=3)
    rows = compress(stream.X * 1e-170) if sparse else stream.X * 1e-170
    learner = Ahpatron(budget=8)
    player = Player(learner)
    scores = player.feed(rows, stream.y)
    assert player.learner.statistics()["halvings"] > 0
    assert player.f.size is not None
    assert player.f.size <= 8
    assert player.f.norm <= learner.radius * (1 + 1e-12)
    assert np.abs(scores).max() <= learner.radius * (1 + 1e-9)  # |f(x)| <= ‖f‖, as κ <= 1


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_stream_of_one(case: Case) -> None:
    agrees(case, make_stream(seed=1, rounds=1, features=2))


@pytest.mark.parametrize("selection", ["magnitude", "greedy"])
@pytest.mark.parametrize("rescale", ["keep", 0.6])
def test_rows_that_are_all_equal(selection: str, rescale: float | str) -> None:
    """K is a matrix of ones, and where labels alternate the projection is zero: no division."""
    y = np.where(np.arange(200) % 2 == 0, 1.0, -1.0)
    learner = Ahpatron(budget=8, selection=selection, rescale=rescale)
    player = play(learner, np.zeros((200, 3)), y)
    assert math.isfinite(player.f.norm)
    assert player.f.norm <= learner.radius * (1 + 1e-12)
    assert player.tally.mistakes <= 200
    assert player.learner.statistics()["halvings"] > 0
    assert "not rescaled" in " ".join(player.learner.warnings(player.f))


@pytest.mark.parametrize("ridge", [1e-300, 1e-17, 1e-12, 1e3])
def test_ridges_lost_in_rounding_and_huge_ones(ridge: float) -> None:
    stream = make_stream(seed=3, rounds=300, features=1)
    X = np.round(stream.X, 1)  # duplicates: K_2 is singular
    for selection in ("magnitude", "greedy"):
        player = play(Ahpatron(budget=20, ridge=ridge, selection=selection), X, stream.y)
        assert player.tally.mistakes < 150


@pytest.mark.parametrize("value", [1e155, 1e160, 1e300, -1e308])
@pytest.mark.parametrize("sparse", [False, True])
def test_squares_that_overflow_are_refused_with_their_row(value: float, sparse: bool) -> None:
    X = make_stream(seed=3, rounds=200, features=2).X
    X[150, 1] = value
    rows = compress(X) if sparse else X
    with pytest.raises(NumericalError, match="overflows") as refusal:
        play(Perceptron(), rows, np.ones(200), Gaussian())
    assert refusal.value.row == 150


def test_unit_rows() -> None:
    X = np.array([[3.0, 4.0], [0.0, 0.0], [3e-200, 4e-200], [3e200, 4e200]])
    expected = np.array([[0.6, 0.8], [0.0, 0.0], [0.6, 0.8], [0.6, 0.8]])
    dense, sparse = unit_rows(X), unit_rows(compress(X))
    assert isinstance(sparse, CsrRows)
    np.testing.assert_allclose(dense, expected)
    np.testing.assert_allclose(sparse.dense(), expected)


def wide_stream(seed: int, rounds: int, width: int, stored: int) -> tuple[CsrRows, np.ndarray]:
    rng = np.random.default_rng(seed)
    columns = np.sort(
        np.array([rng.choice(width, stored, replace=False) for _ in range(rounds)]), axis=1
    )
    columns[:, :3] = [1, 5, 9]  # something in common, so that there is something to learn
    columns.sort(axis=1)
    values = rng.normal(size=columns.shape)
    indptr = np.arange(0, rounds * stored + 1, stored)
    y = np.where(values[:, 0] + values[:, 1] > 0, 1.0, -1.0)
    return CsrRows(indptr, columns.astype(np.int32).ravel(), values.ravel(), width), y


@pytest.mark.parametrize("kernel", [Gaussian(sigma=3), Laplacian(sigma=9), Linear()])
def test_wide_rows_equal_their_dense_selves(kernel: Gaussian) -> None:
    rows, y = wide_stream(0, 150, 5000, 20)
    wide = Player(Ahpatron(budget=20), kernel).feed(rows, y)
    dense = Player(Ahpatron(budget=20), kernel).feed(rows.dense(), y)
    np.testing.assert_allclose(wide, dense, rtol=1e-7, atol=1e-9)


def test_wide_rows_never_become_dense() -> None:
    rows, y = wide_stream(0, 500, 1_000_000, 20)
    tracemalloc.start()
    play(Ahpatron(budget=100), rows, y, Gaussian(sigma=3))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 60e6  # 100 dense rows alone would be 800 MB


def test_a_stream_that_grows_wider() -> None:
    """Later pieces may bring features that earlier ones did not have; they were zero until then."""
    stream = make_stream(seed=8, rounds=256, features=6)
    X = stream.X.copy()
    X[:64, 2:] = 0.0
    X[64:128, 4:] = 0.0
    whole = Player(Ahpatron(budget=20)).feed(X, stream.y)
    player = Player(Ahpatron(budget=20))
    parts = [X[:64, :2], X[64:128, :4], X[128:192], compress(X[192:])]
    scores = [player.feed(p, stream.y[64 * i : 64 * i + 64]) for i, p in enumerate(parts)]
    np.testing.assert_allclose(np.concatenate(scores), whole, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Ahpatron(budget=7), "budget must be an even whole number >= 2, got 7"),
        (lambda: Ahpatron(budget=0), "budget must be an even whole number >= 2, got 0"),
        (lambda: Ahpatron(budget=math.nan), "budget must be an even whole number >= 2, got nan"),  # type: ignore[arg-type]
        (lambda: Ahpatron(budget=True), "budget must be an even whole number >= 2, got True"),
        (lambda: Ahpatron(epsilon=1), "epsilon must be a number > 0 and < 1, got 1"),
        (lambda: Ahpatron(radius=math.inf), "radius must be a number > 0, got inf"),
        (lambda: Ahpatron(selection="best"), "selection must be one of magnitude, greedy"),
        (lambda: Ahpatron(rescale="drop"), "rescale must be a number > 0 and <= 1 or keep"),
        (lambda: AVP(schedule="adaptive"), "radius must be a finite number > 0"),
        (lambda: AVP(radius=-math.inf), "radius must be a number > 0 or inf, got -inf"),
        (lambda: Gaussian(sigma=0), "sigma must be a number > 0, got 0"),
    ],
)
def test_parameters_are_checked(make: object, said: str) -> None:
    with pytest.raises(ParameterError) as refusal:
        make()  # type: ignore[operator]
    assert said in str(refusal.value)


@pytest.mark.parametrize("tiny", [{"radius": 1e-200}, {"radius": 1e-160}, {"step": 1e-320}])
def test_squares_that_lose_digits_are_refused(tiny: dict[str, float]) -> None:
    """‖f‖² was 0, and f with it: every prediction was a tie, and none was said to be wrong."""
    stream = make_stream(seed=3, rounds=100, features=2)
    for learner in (AVP(**tiny), Ahpatron(budget=8, **tiny)):
        with pytest.raises(NumericalError, match="for a double"):
            play(learner, stream.X, stream.y)


@pytest.mark.parametrize("name", ["perceptron", "rbp", "forgetron", "avp"])
@pytest.mark.parametrize("seed", [1, 5, 6])
def test_exact_ties_are_decided_by_the_sign_of_zero(name: str, seed: int) -> None:
    """Duplicate rows and equal coefficients: f(x) is often 0, and rounding must not show."""
    stream = make_stream(seed=seed, rounds=300, features=2)
    tied = Example(np.round(stream.X), stream.y)
    case = Case(name, {"budget": 50} if name in ("rbp", "forgetron") else {})
    listed = tied.rows
    trace = case.twin(listed, tied.labels, formulas.tabled(listed, formulas.gaussian(0.3)))
    if name == "perceptron":
        assert sum(score == 0 for score in trace.scores[1:]) > 0
    for block in (1, 7, 64, 256):
        player = Player(case.learner(), Gaussian(sigma=0.3), block=block)
        scores = player.feed(tied.X, tied.y)
        np.testing.assert_allclose(scores, trace.scores, rtol=1e-7, atol=1e-9)
        assert player.tally.mistakes == trace.mistakes


@pytest.mark.parametrize("kernel", [Gaussian(sigma=3), Laplacian(sigma=9)])
def test_stored_zeros_are_zeros(kernel: Gaussian) -> None:
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 30)) < 0.2, rng.normal(size=(120, 30)), 0.0)
    X[5] = 1e9  # far away: doubtful exponents, computed by subtraction
    X[7] = 1e9 + X[8]
    y = np.where(X[:, 0] + X[:, 1] >= 0, 1.0, -1.0)
    sparse = compress(X)
    extra = np.sort(np.array([rng.choice(30, 30, replace=False) for _ in range(120)]), axis=1)
    stored = CsrRows(
        np.arange(0, 120 * 30 + 1, 30),
        extra.astype(np.int32).ravel(),
        np.take_along_axis(X, extra, axis=1).ravel(),
        30,
    )
    scores = [Player(Ahpatron(budget=20), kernel).feed(rows, y) for rows in (X, sparse, stored)]
    np.testing.assert_allclose(scores[1], scores[0], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(scores[2], scores[0], rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(("name", "params"), [("nogd", {"rank": 10}), ("fogd", {})])
def test_values_of_features_that_overflow_end_the_run(name: str, params: dict[str, int]) -> None:
    """|f(x)| would be above 2e308, in whatever order its terms are added."""
    assert np.abs(_scores(name, params, 1e300)).max() > 2e300
    with pytest.raises(NumericalError, match=r"f\(x\) is not a finite number"):
        _scores(name, params, 1e308)


def _scores(name: str, params: dict[str, int], step: float) -> np.ndarray:
    stream = make_stream(seed=3, rounds=600, features=2)
    player = Player(REGISTRY[name](budget=10, step=step, **params), horizon=600)
    return player.feed(stream.X, stream.y)


def test_f_that_is_not_finite_ends_the_run() -> None:
    stream = make_stream(seed=3, rounds=100, features=2)
    with pytest.raises(NumericalError, match="for a double"):
        play(AVP(step=1e308), np.round(stream.X), stream.y)


def test_what_a_dropped_example_hid_decides_again() -> None:
    """1 - 1e-20 is 1, so what is left after the 1 is dropped would be 0, and not -1e-20."""
    rows, labels = np.array([[0.0], [9.6], [0.0]]), np.array([1.0, -1.0, 1.0])
    left = -math.exp(-(9.6**2) / 2)
    f = Expansion(Gaussian())
    f.open(f.kernel.points(rows))
    for t in range(2):
        f.t = t
        f.add(labels.item(f.t))
    f.drop(0)
    assert f.careful(2) == pytest.approx(left, rel=1e-9)
    assert abs(f.values[2]) <= f.noise  # so that the engine asks `careful`
    scores = Player(Norma(budget=1, step=1.0), Gaussian()).feed(rows, labels)
    assert scores[2] == pytest.approx(left * math.sqrt(0.5), rel=1e-3)
