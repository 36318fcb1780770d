"""Degenerate settings and data: right against decimal arithmetic of 60 digits, or refused.

Never a number with a NaN behind it. Where kernel values underflow or f(x) cancels, a double cannot
have the sign of f(x): those rounds are counted as near-ties, and at most so many may differ.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import AVP, Ahpatron, Arow, Gaussian, Learner, Player
from ahpatron_cli.core.errors import NumericalError
from reference import precise, second_order, twins
from support.command import Ahpatron as Command
from support.streams import compress, make_stream

STREAM = make_stream(seed=7, rounds=60, features=2)
X = STREAM.X
Setting = tuple[str, np.ndarray, float, dict[str, Any]]
"""Name, rows, σ, parameters of the learner."""


def outlier(value: float) -> np.ndarray:
    rows = X.copy()
    rows[5] = value
    return rows


def varied(name: str, values: tuple[Any, ...]) -> list[Setting]:
    """Other values of one parameter."""
    return [(f"{name} {value!r}", X, 1.0, {name: value}) for value in values]


DATA: list[Setting] = [
    ("plain", X, 1.0, {}),
    *((f"offset {offset:g}", X + offset, 1.0, {}) for offset in (1e8, -1e8, 1e15)),
    ("an offset in one feature", X + np.array([1e8, 0]), 1.0, {}),
    *((f"scale {scale:g}", X * scale, 1.0, {}) for scale in (1e-300, 1e-170, 1e8, 1e150)),
    *(
        (f"scale and σ {scale:g}", X * scale, scale, {})
        for scale in (1e-300, 1e-170, 1e-8, 1e8, 1e150, 1e160, 1e300)
    ),
    *((f"σ {sigma:g}", X, sigma, {}) for sigma in (1e-100, 1e-5, 0.01, 1e3, 1e5, 1e100, 1e308)),
    ("constant rows", X * 0, 1.0, {}),
    ("constant rows far out", X * 0 + 1e8, 1.0, {}),
    ("each row twice, opposite labels", np.repeat(X[:30], 2, axis=0), 1.0, {}),
    ("many duplicates", np.round(X), 1.0, {}),
    ("a single feature", X[:, :1], 1.0, {}),
    ("T = 1", X[:1], 1.0, {}),
    *((f"an outlier at {far:g}", outlier(far), 1.0, {}) for far in (1e3, 1e12, -1e150)),
]
AHPATRON = [
    *varied("ridge", (1e-320, 1e-17, 1e-10, 1.0, 1e10, 1e308)),
    *varied("radius", (1e-150, 1e-5, 1e5, 1e150)),
    *varied("step", (1e-150, 1e-5, 1e5, 1e150)),
    *varied("epsilon", (5e-324, 1e-17, 0.999999, 1 - 1e-16)),
    *varied("budget", (2, 4, 1000)),
    *varied("rescale", (1e-300, 1e-9, 1.0)),
    ("singular K_2 and no ridge to speak of", np.round(X), 1.0, {"ridge": 1e-30}),
]
AROW = [
    *varied("noise", (1e-300, 1e-10, 1.0, 1e10, 1e300)),
    *varied("floor", (1e-5, 1.0, 1e10, 1e300)),
    *varied("tolerance", (1e-4, 0.1, 0.9, 1e10)),
    *varied("alarm", (1e-300, 0.5, 2.0, math.inf)),
    *varied("budget", (1, 2, 1000)),
    ("a small budget and duplicates", np.round(X), 1.0, {"budget": 3}),
]


@pytest.mark.parametrize(
    ("kind", "reference", "setting"),
    [
        *((Ahpatron, twins.ahpatron, setting) for setting in DATA + AHPATRON),
        *((Arow, second_order.arow, setting) for setting in DATA + AROW),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else value.__name__,
)
def test_right_to_the_digits_of_a_double(
    kind: type[Learner], reference: Callable[..., Any], setting: Setting
) -> None:
    name, rows, sigma, params = setting
    labels = [1, -1] * 30 if "opposite labels" in name else STREAM.labels[: len(rows)]
    settings = {"budget": 8, **params}
    wanted, norm = precise.run(reference, rows.tolist(), labels, sigma, **settings)
    size = max(map(abs, wanted.scores)) or 1.0
    decided = wanted.closest > 1e-9  # no threshold was within reach of rounding
    for form in (rows, compress(rows)):
        player = Player(kind(**settings), Gaussian(sigma=sigma))
        scores = player.feed(form, np.array(labels, float))
        assert np.isfinite(scores).all()
        assert math.isfinite(player.f.norm)
        if kind is Ahpatron or decided:
            np.testing.assert_allclose(scores, wanted.scores, rtol=0, atol=2e-9 * size)
            assert player.f.norm == pytest.approx(norm, rel=1e-6)
            assert abs(player.tally.mistakes - wanted.mistakes) <= player.tally.near_ties
        if decided:
            found = player.learner.statistics()
            assert player.tally.updates == wanted.updates
            assert found.get("halvings", 0) == wanted.halvings
            assert found.get("restarts", 0) == len(wanted.restarts)


@pytest.mark.parametrize("form", [np.asarray, compress])
@pytest.mark.parametrize("scale", [1e-7, 1e-8, 3e-9])
@pytest.mark.parametrize("selection", ["magnitude", "greedy", "nearest"])
def test_where_rounding_decides_bounds_are_kept(
    scale: float, selection: str, form: Callable[[np.ndarray], Any]
) -> None:
    """All kernel values are 1 up to the last digit: of ‖f‖ where f cancels, none is right."""
    learner = Ahpatron(budget=8, selection=selection)
    player = Player(learner, Gaussian())
    scores = player.feed(form(X * scale), STREAM.y)
    assert player.learner.statistics()["halvings"] > 0
    assert player.f.size <= 8
    assert player.f.norm <= learner.radius * (1 + 1e-12)
    assert np.abs(scores).max() <= learner.radius * (1 + 1e-6)  # |f(x)| <= ‖f‖, as κ <= 1


@pytest.mark.parametrize("learner", [Ahpatron(budget=50), AVP(radius=4.0)], ids=["ahpatron", "avp"])
def test_the_tracked_norm_is_the_norm(learner: Learner) -> None:
    """To 1e-9 relative on ordinary data, after each block."""
    stream = make_stream(seed=0, rounds=1500, features=3)
    player = Player(type(learner)(**learner.params()), Gaussian(sigma=0.5))
    for begin in range(0, 1500, 64):
        part = slice(begin, begin + 64)
        player.feed(stream.X[part], stream.y[part])
        f: Any = player.f
        gram = f.kernel.between(f.points, f.points)
        exact = math.sqrt(float(f.coefficients @ gram @ f.coefficients))
        assert f.norm == pytest.approx(exact, rel=1e-9)


def test_a_norm_that_drifted_is_reported(ahpatron: Command) -> None:
    """Kernel values next to 1 cancel in the recursion for ‖f‖; each halving notices."""
    rows = zip(STREAM.labels, (X * 1e-8).tolist(), strict=True)
    ahpatron.write("d.svm", "".join(f"{y} 1:{a!r} 2:{b!r}\n" for y, (a, b) in rows))
    done = ahpatron("run", "d.svm", "-B", 8)
    assert done.code == 0
    assert "the tracked norm of f was off by" in done.err


@pytest.mark.parametrize(
    ("rows", "sigma", "params"),
    [
        pytest.param(X * 1e160, 1.0, {}, id="rows of 1e160"),
        *(
            pytest.param(outlier(value), 1.0, {}, id=f"one row with {value}")
            for value in (1e200, math.nan, math.inf)
        ),
        *(pytest.param(X, sigma, {}, id=f"sigma={sigma}") for sigma in (1e-160, 5e-324)),
        *(
            pytest.param(X, 1.0, {"radius": radius}, id=f"radius={radius}")
            for radius in (1e160, 1e308, 1e-160, 1e-320)
        ),
        *(
            pytest.param(X, 1.0, {"step": step}, id=f"step={step}")
            for step in (1e160, 1e308, 1e-160, 5e-324)
        ),
    ],
)
def test_a_round_that_cannot_be_computed_ends_the_run(
    rows: np.ndarray, sigma: float, params: dict[str, Any]
) -> None:
    for form in (rows, compress(rows)):
        player = Player(Ahpatron(**{"budget": 8, **params}), Gaussian(sigma=sigma))
        with pytest.raises(NumericalError) as refusal:
            player.feed(form, STREAM.y)
        assert 0 <= refusal.value.row < 60
