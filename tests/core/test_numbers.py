"""Degenerate data and settings: right against the slow twin, or refused; never a wrong number."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import AVP, BSGD, REGISTRY, Ahpatron, Gaussian, Norma, Player, play
from ahpatron_cli.core.errors import LimitReachedError, NumericalError, ParameterError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.registry import POMDR, Projectron, ProjectronPlusPlus
from reference import kernels as formulas
from support.cases import PROJECTING, Case
from support.effort import examples
from support.streams import Example, compress, make_stream, streams

DISTORTIONS: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "an offset in some features": lambda X: X + np.array([1e8, 0, -1e5]),
    "an outlier": lambda X: np.where(np.arange(len(X))[:, None] == 3, 1e12, X),
    "two scales": lambda X: np.where(X > 1, 1e7 * X, X),
    "many duplicates": np.round,
    "kernel values that underflow": lambda X: X * 40,
}


@pytest.mark.parametrize("case", [Case("perceptron"), *PROJECTING], ids=str)
@pytest.mark.parametrize("distortion", DISTORTIONS)
def test_learners_equal_their_references_on_unusual_values(case: Case, distortion: str) -> None:
    """Ahpatron, AVP and arow: tests/faults/test_degenerate.py."""
    stream = make_stream(seed=11, rounds=80, features=3)
    X = DISTORTIONS[distortion](stream.X)
    listed = X.tolist()
    trace = case.twin(listed, stream.labels, formulas.tabled(listed, formulas.gaussian(1.0)))
    for rows in (X, compress(X)):
        player = Player(case.learner(), Gaussian())
        scores = player.feed(rows, stream.y)
        np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-8)
        # where f(x) is 0 up to rounding, rounding decides; each run says how often that was
        ties = sum(0 < abs(score) < 1e-9 for score in scores)
        assert abs(player.tally.mistakes - trace.mistakes) <= ties <= player.tally.near_ties


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


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        *((Ahpatron, "budget", value) for value in (7, 0, math.nan, True, "8")),
        (Ahpatron, "epsilon", 1),
        (Ahpatron, "radius", math.inf),
        (Ahpatron, "selection", "best"),
        (Ahpatron, "rescale", "drop"),
        (AVP, "radius", -math.inf),
        (Gaussian, "sigma", 0),
    ],
)
def test_parameters_are_checked(kind: Any, name: str, value: Any) -> None:
    with pytest.raises(ParameterError, match=f"{name} must be") as refusal:
        kind(**{name: value})
    assert refusal.value.name == name


@pytest.mark.parametrize("name", ["perceptron", "rbp", "forgetron", "avp"])
@pytest.mark.parametrize("seed", [1, 5])
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


@pytest.mark.parametrize(("name", "params"), [("nogd", {"rank": 10}), ("fogd", {})])
def test_values_of_features_that_overflow_end_the_run(name: str, params: dict[str, int]) -> None:
    """|f(x)| would be above 2e308, in whatever order its terms are added."""
    stream = make_stream(seed=3, rounds=600, features=2)
    large, larger = (
        Player(REGISTRY[name](budget=10, step=step, **params), horizon=600)
        for step in (1e300, 1e308)
    )
    assert np.abs(large.feed(stream.X, stream.y)).max() > 2e300
    with pytest.raises(NumericalError, match=r"f\(x\) is not a finite number"):
        larger.feed(stream.X, stream.y)


def test_what_a_dropped_example_hid_decides_again() -> None:
    """1 - 1e-20 is 1, so what is left after the 1 is dropped would be 0, and not -1e-20."""
    rows = np.array([[0.0], [9.6], [0.0]])
    labels = np.array([1.0, -1.0, 1.0])
    left = -math.exp(-(9.6**2) / 2)
    f = Expansion(Gaussian())
    f.open(f.kernel.points(rows))
    for t in range(2):
        f.t = t
        f.add(labels.item(f.t))
    f.drop(0)
    assert f.exact_value(2) == pytest.approx(left, rel=1e-9, abs=0.0)
    assert abs(f.values[2]) <= f.rounding  # so that the engine asks `exact_value`
    scores = Player(Norma(budget=1, step=1.0), Gaussian()).feed(rows, labels)
    assert scores[2] == pytest.approx(left * math.sqrt(0.5), rel=1e-3, abs=0.0)


# Projections, horizons ---------------------------------------------------------------------------


@pytest.mark.parametrize("learner", [Projectron, ProjectronPlusPlus])
def test_max_support_ends_the_run_and_says_so(learner: type[Projectron]) -> None:
    stream = make_stream(seed=1, rounds=300, features=4)
    size = play(learner(), stream.X, stream.y).f.size
    assert size > 20
    assert play(learner(max_support=size), stream.X, stream.y).f.size == size
    with pytest.raises(LimitReachedError, match=f"max_support={size - 1}") as refusal:
        play(learner(max_support=size - 1), stream.X, stream.y)
    assert refusal.value.name == "max_support"


def test_rounds_that_change_nothing_are_no_updates() -> None:
    """A margin below 1, far from the span: no step is worth it."""
    X = np.array([[0.0], [1.0], [1.0]])
    player = play(ProjectronPlusPlus(tolerance=0.1), X, np.ones(3))
    assert player.tally.updates == 1
    assert player.tally.margin_updates == 0
    assert play(ProjectronPlusPlus(tolerance=0.1, rule="full"), X, np.ones(3)).tally.updates == 2


def test_pomdr_must_know_the_number_of_rounds() -> None:
    with pytest.raises(ParameterError, match="horizon must be given") as refusal:
        Player(POMDR())
    assert (refusal.value.name, refusal.value.kind) == ("horizon", "missing")
    assert Player(POMDR(), horizon=70).learner.params()["horizon"] == 70
    assert Player(POMDR(horizon=50), horizon=70).learner.params()["horizon"] == 50


# What is proved of learners that the paper cites --------------------------------------------------


@pytest.mark.parametrize("maintenance", ["remove", "project", "merge"])
@examples(15)
@given(stream=streams(), budget=st.integers(1, 12), strength=st.floats(0.01, 1))
def test_bsgd_stays_in_the_ball_of_pegasos(
    maintenance: str, stream: Example, budget: int, strength: float
) -> None:
    """‖f‖ <= 1/λ: steps are 1/(λt), f shrinks by 1 - 1/t, and no maintenance lengthens f."""
    learner = BSGD(budget=budget, regularisation=strength, maintenance=maintenance)
    player = Player(learner, Gaussian(sigma=0.7))
    for row, y in zip(stream.X, stream.y, strict=True):
        player.feed(row[None], np.array([y]))
        if maintenance == "project" or player.f.size <= 1:
            assert player.f.norm <= (1 + 1e-9) / strength
    assert isinstance(player.f, Expansion)
    if maintenance != "project":
        assert np.abs(player.f.coefficients).sum() <= (1 + 1e-9) / strength


@examples(20)
@given(seed=st.integers(0, 1000), times=st.integers(1, 6))
def test_krls_is_least_squares_where_all_rows_join(seed: int, times: int) -> None:
    """With the tolerance near 0: f is the mean of the labels at every row that came repeatedly."""
    rng = np.random.default_rng(seed)
    X = make_stream(seed=seed, rounds=12, features=6).X
    labels = rng.choice([-1.0, 1.0], (times, len(X)))
    player = Player(REGISTRY["krls"](tolerance=1e-6), Gaussian(sigma=0.7))
    player.feed(np.tile(X, (times, 1)), labels.ravel())
    assert player.f.size == len(X)
    np.testing.assert_allclose(player.scores(X), labels.mean(axis=0), atol=1e-6)
