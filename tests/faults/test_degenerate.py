"""Degenerate settings and data: right against decimal arithmetic of 60 digits, or refused.

Never a number with a NaN behind it. Where kernel values underflow or f(x) cancels, a double cannot
know the sign of f(x): those rounds are counted as near-ties, and at most so many may differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import AVP, Ahpatron, Arow, Gaussian, Learner, Player
from ahpatron_cli.core.errors import NumericalError
from reference import precise
from support.command import Ahpatron as Command
from support.streams import compress, make_stream

STREAM = make_stream(seed=7, rounds=60, features=2)
X = STREAM.X


def _outlier(value: float) -> np.ndarray:
    rows = X.copy()
    rows[5] = value
    return rows


# name, rows, σ, parameters of Ahpatron
PLAYED: list[tuple[str, np.ndarray, float, dict[str, Any]]] = [
    ("plain", X, 1.0, {}),
    *((f"offset {offset:g}", X + offset, 1.0, {}) for offset in (1e8, -1e8, 1e15)),
    ("an offset in one feature", X + np.array([1e8, 0]), 1.0, {}),
    *((f"scale {scale:g}", X * scale, 1.0, {}) for scale in (1e-300, 1e-170, 1e8, 1e150)),
    *(
        (f"scale and σ {scale:g}", X * scale, scale, {})
        for scale in (1e-300, 1e-170, 1e-8, 1e8, 1e150, 1e160, 1e300)
    ),
    *((f"σ {sigma:g}", X, sigma, {}) for sigma in (1e-100, 1e-5, 0.01, 1e3, 1e5, 1e100, 1e308)),
    *((f"η {eta:g}", X, 1.0, {"ridge": eta}) for eta in (1e-320, 1e-17, 1e-10, 1.0, 1e10, 1e308)),
    *((f"U {U:g}", X, 1.0, {"radius": U}) for U in (1e-150, 1e-5, 1e5, 1e150)),
    *((f"λ {step:g}", X, 1.0, {"step": step}) for step in (1e-150, 1e-5, 1e5, 1e150)),
    *((f"ε {eps!r}", X, 1.0, {"epsilon": eps}) for eps in (5e-324, 1e-17, 0.999999, 1 - 1e-16)),
    *((f"B {budget}", X, 1.0, {"budget": budget}) for budget in (2, 4, 1000)),
    *((f"c_t {c:g}", X, 1.0, {"rescale": c}) for c in (1e-300, 1e-9, 1.0)),
    ("constant rows", X * 0, 1.0, {}),
    ("constant rows far out", X * 0 + 1e8, 1.0, {}),
    ("each row twice, opposite labels", np.repeat(X[:30], 2, axis=0), 1.0, {}),
    ("many duplicates", np.round(X), 1.0, {}),
    ("a single feature", X[:, :1], 1.0, {}),
    ("T = 1", X[:1], 1.0, {}),
    ("T = 2", X[:2], 1.0, {"budget": 2}),
    *((f"an outlier at {far:g}", _outlier(far), 1.0, {}) for far in (1e3, 1e12, -1e150)),
    ("singular K_2 and no ridge to speak of", np.round(X), 1.0, {"ridge": 1e-30}),
]
ALTERNATING = "each row twice, opposite labels"


def test_there_are_as_many_as_promised() -> None:
    assert len(PLAYED) + len(REFUSED_ROUNDS) + len(REFUSED_OPTIONS) >= 40
    assert len(PLAYED) >= 40


@pytest.mark.parametrize(("name", "rows", "sigma", "params"), PLAYED, ids=lambda v: str(v)[:40])
def test_right_to_the_digits_of_a_double(
    name: str, rows: np.ndarray, sigma: float, params: dict[str, Any]
) -> None:
    labels = [1, -1] * 30 if name == ALTERNATING else STREAM.labels[: len(rows)]
    settings = {"budget": 8, **params}
    wanted = precise.ahpatron(rows.tolist(), labels, sigma, **settings)
    size = max(map(abs, wanted.scores)) or 1.0
    for form in (rows, compress(rows)):
        player = Player(Ahpatron(**settings), Gaussian(sigma=sigma))
        scores = player.feed(form, np.array(labels, float))
        assert np.isfinite(scores).all()
        assert math.isfinite(player.f.norm)
        np.testing.assert_allclose(scores, wanted.scores, rtol=0, atol=2e-9 * size)
        assert player.f.norm == pytest.approx(wanted.norm, rel=1e-7)
        ties = player.tally.near_ties
        assert abs(player.tally.mistakes - wanted.mistakes) <= ties
        if wanted.closest > 1e-9:  # no threshold was within reach of rounding
            assert player.tally.updates == wanted.updates
            assert player.learner.statistics()["halvings"] == wanted.halvings


AROW: list[tuple[str, np.ndarray, float, dict[str, Any]]] = [
    *(setting for setting in PLAYED if not setting[3]),
    *((f"η {eta:g}", X, 1.0, {"noise": eta}) for eta in (1e-300, 1e-10, 1.0, 1e10, 1e300)),
    *((f"r_0 {r:g}", X, 1.0, {"floor": r}) for r in (1e-5, 1.0, 1e10, 1e300)),
    *((f"δ_0 {delta:g}", X, 1.0, {"tolerance": delta}) for delta in (1e-4, 0.1, 0.9, 1e10)),
    *((f"g_0 {alarm:g}", X, 1.0, {"alarm": alarm}) for alarm in (1e-300, 0.5, 2.0, math.inf)),
    *((f"B {budget}", X, 1.0, {"budget": budget}) for budget in (1, 2, 1000)),
    ("a small budget and duplicates", np.round(X), 1.0, {"budget": 3}),
]


@pytest.mark.parametrize(("name", "rows", "sigma", "params"), AROW, ids=lambda v: str(v)[:40])
def test_arow_to_the_digits_of_a_double(
    name: str, rows: np.ndarray, sigma: float, params: dict[str, Any]
) -> None:
    labels = [1, -1] * 30 if name == ALTERNATING else STREAM.labels[: len(rows)]
    settings = {"budget": 8, **params}
    wanted = precise.arow(rows.tolist(), labels, sigma, **settings)
    size = max(map(abs, wanted.scores)) or 1.0
    for form in (rows, compress(rows)):
        player = Player(Arow(**settings), Gaussian(sigma=sigma))
        scores = player.feed(form, np.array(labels, float))
        assert np.isfinite(scores).all()
        assert math.isfinite(player.f.norm)
        if wanted.closest > 1e-9:  # nothing was left to rounding
            np.testing.assert_allclose(scores, wanted.scores, rtol=0, atol=2e-9 * size)
            assert player.f.norm == pytest.approx(wanted.norm, rel=1e-6)
            assert player.tally.mistakes == wanted.mistakes
            assert player.tally.updates == wanted.updates
            assert player.learner.statistics()["restarts"] == wanted.halvings


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("scale", [1e-7, 1e-8, 3e-9])
@pytest.mark.parametrize("selection", ["magnitude", "greedy", "nearest"])
def test_where_rounding_decides_bounds_are_kept(scale: float, selection: str, form: str) -> None:
    """All kernel values are 1 but for the last digit: of ‖f‖ where f cancels, none is right."""
    rows = X * scale
    learner = Ahpatron(budget=8, selection=selection)
    player = Player(learner, Gaussian())
    scores = player.feed(compress(rows) if form == "sparse" else rows, STREAM.y)
    assert player.learner.statistics()["halvings"] > 0
    assert player.f.size is not None
    assert player.f.size <= 8
    assert player.f.norm <= learner.radius * (1 + 1e-12)
    assert np.abs(scores).max() <= learner.radius * (1 + 1e-6)  # |f(x)| <= ‖f‖, as κ <= 1


@pytest.mark.parametrize("rows", [X, X + 1e8, np.round(X)], ids=["plain", "far out", "duplicates"])
def test_avp_to_the_digits_of_a_double(rows: np.ndarray) -> None:
    wanted = precise.ahpatron(rows.tolist(), STREAM.labels, 1.0, radius=3.0)
    player = Player(AVP(radius=3.0), Gaussian())
    scores = player.feed(rows, STREAM.y)
    np.testing.assert_allclose(scores, wanted.scores, rtol=0, atol=1e-12)
    assert player.tally.mistakes == wanted.mistakes


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("learner", [Ahpatron(budget=50), AVP(radius=4.0)], ids=["ahpatron", "avp"])
def test_the_tracked_norm_is_the_norm(learner: Learner, seed: int) -> None:
    """To 1e-9 relative on ordinary data, after each block and at each halving."""
    stream = make_stream(seed=seed, rounds=3000, features=3)
    player = Player(type(learner)(**learner.params()), Gaussian(sigma=0.5))
    for begin in range(0, 3000, 64):
        part = slice(begin, begin + 64)
        player.feed(stream.X[part], stream.y[part])
        f = player.f
        gram = f.kernel.between(f.points, f.points)  # type: ignore[attr-defined]  # an Expansion
        exact = math.sqrt(float(f.coefficients @ gram @ f.coefficients))  # type: ignore[attr-defined]
        assert f.norm == pytest.approx(exact, rel=1e-9)


def test_a_norm_that_drifted_is_told(ahpatron: Command) -> None:
    """Kernel values next to 1 cancel in the recursion for ‖f‖; each halving notices."""
    rows = zip(STREAM.labels, (X * 1e-8).tolist(), strict=True)
    text = "".join(f"{y} 1:{a!r} 2:{b!r}\n" for y, (a, b) in rows)
    ahpatron.write("d.svm", text)
    done = ahpatron("run", "d.svm", "-B", 8)
    assert done.code == 0
    assert "the tracked norm of f was off by" in done.err


# what is played, and what is said of the round that cannot be
REFUSED_ROUNDS: list[tuple[str, Callable[[], tuple[np.ndarray, float, dict[str, Any]]], str]] = [
    ("values of 1e160", lambda: (X * 1e160, 1.0, {}), "overflows a double"),
    ("one value of 1e200", lambda: (_outlier(1e200), 1.0, {}), "overflows a double"),
    ("σ 1e-160", lambda: (X, 1e-160, {}), "overflows a double"),
    ("σ 5e-324", lambda: (X, 5e-324, {}), "overflows a double"),
    ("U 1e160", lambda: (X, 1.0, {"radius": 1e160}), "overflows a double"),
    ("U 1e308", lambda: (X, 1.0, {"radius": 1e308}), "overflows a double"),
    ("λ 1e160", lambda: (X, 1.0, {"step": 1e160}), "overflows a double"),
    ("λ 1e308", lambda: (X, 1.0, {"step": 1e308}), "overflows a double"),
    ("U 1e-160", lambda: (X, 1.0, {"radius": 1e-160}), "too small for a double"),
    ("U 1e-320", lambda: (X, 1.0, {"radius": 1e-320}), "too small for a double"),
    ("λ 1e-160", lambda: (X, 1.0, {"step": 1e-160}), "too small for a double"),
    ("λ 5e-324", lambda: (X, 1.0, {"step": 5e-324}), "too small for a double"),
    ("a NaN", lambda: (_outlier(math.nan), 1.0, {}), "not a number"),
    ("an infinity", lambda: (_outlier(math.inf), 1.0, {}), "overflows|not a number"),
]


@pytest.mark.parametrize(("name", "make", "said"), REFUSED_ROUNDS, ids=lambda v: str(v)[:20])
def test_a_round_that_cannot_be_computed_ends_the_run(
    name: str, make: Callable[[], tuple[np.ndarray, float, dict[str, Any]]], said: str
) -> None:
    rows, sigma, params = make()
    for form in (rows, compress(rows)):
        player = Player(Ahpatron(**{"budget": 8, **params}), Gaussian(sigma=sigma))
        with pytest.raises(NumericalError, match=said) as refusal:
            player.feed(form, STREAM.y)
        assert 0 <= refusal.value.row < 60


# options that tests/cli/test_refusals.py does not have
REFUSED_OPTIONS = [
    (("-l", "rbp", "-B", "0"), "--budget must be a whole number >= 1, got 0"),
    (("-l", "nogd", "-B", "10", "-p", "rank=11"), "rank"),
    (("-l", "fogd", "-p", "features=0"), "features must be a whole number >= 1, got 0"),
    (("-l", "pomdr", "-p", "memory=0"), "memory must be a whole number >= 1, got 0"),
    (("-l", "alma2", "-p", "alpha=0"), "alpha must be a number > 0 and <= 1, got 0.0"),
    (("-l", "projectron", "-p", "tolerance=nan"), "tolerance must be a number"),
    (
        ("--kernel", "polynomial", "-p", "degree=0"),
        "degree must be a whole number >= 1 and <= 100",
    ),
    (("--kernel", "polynomial", "-p", "offset=-1"), "offset must be a number"),
    (("--sigma", "1e400"), "--sigma must be a number > 0, got inf"),
    (("--sigma", "1e-400"), "--sigma must be a number > 0, got 0.0"),
    (("-p", "ridge=1e400"), "ridge must be a number > 0, got inf"),
    (("-p", "step=0"), "step must be a number > 0, got 0.0"),
    (("-p", "rescale=0"), "rescale must be a number > 0 and <= 1 or keep, got 0.0"),
    (("--epsilon", "0.99999999999999999"), "--epsilon must be a number > 0 and < 1, got 1.0"),
]


@pytest.mark.parametrize(("options", "said"), REFUSED_OPTIONS, ids=lambda value: str(value)[:40])
def test_options_are_refused_with_their_range(
    ahpatron: Command, rings: Path, options: tuple[str, ...], said: str
) -> None:
    done = ahpatron("run", rings, *options)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_a_refused_round_is_told_with_its_line(ahpatron: Command) -> None:
    ahpatron.write("d.svm", "1 1:1\n-1 1:2\n")
    done = ahpatron("run", "d.svm", "-p", "step=1e-200", "--out", "r.json")
    assert (done.code, done.out) == (65, "")
    assert "round 1 cannot be computed: ‖f‖² is too small for a double" in done.err
    assert "d.svm:1" in done.err
    assert "-p step=" in done.err
    assert ahpatron.files() == {"d.svm"}
