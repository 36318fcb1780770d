"""Theorems as tests: on random streams and for random comparators, no bound is ever broken."""

import math
from typing import ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import AVP, Ahpatron, Gaussian, Perceptron, play, theorems
from ahpatron_cli.core.learners import Forgetron
from support.effort import examples
from support.streams import Example, make_stream, streams


def comparators(
    stream: Example, sigma: float, radius: float, seed: int
) -> list[tuple[float, float]]:
    """(L_T(f), ‖f‖) of some f with ‖f‖ <= radius: zero, kernel mean, ridge fit, random ones."""
    rng = np.random.default_rng(seed)
    distances = ((stream.X[:, None, :] - stream.X[None, :, :]) ** 2).sum(axis=2)
    K = np.exp(-distances / (2 * sigma**2))
    y = stream.y
    weights = [np.zeros(len(y)), y / len(y), np.linalg.solve(K + 0.3 * np.eye(len(y)), y)]
    weights += [
        rng.normal(size=len(y)) * rng.exponential() * (rng.random(len(y)) < 0.3) for _ in "ab"
    ]
    weights += [np.abs(rng.normal(size=len(y))) * y * rng.exponential() for _ in "ab"]
    found = []
    for w in weights:
        norm = math.sqrt(max(w @ K @ w, 0.0))
        for size in (norm, 2.0, radius):  # as it is, and stretched to other lengths
            stretched = norm > 0 and math.isfinite(size)
            factor = min(size, radius) / norm if stretched else 1.0
            losses = np.maximum(0.0, 1 - y * (K @ w) * factor)
            found.append((float(losses.sum()), norm * factor))
    return [(loss, norm) for loss, norm in found if norm <= radius * (1 + 1e-12)]


@examples(60)
@given(stream=streams(max_rounds=200), seed=st.integers(0, 1000))
def test_perceptron_theorems_1_and_2(stream: Example, seed: int) -> None:
    tally = play(Perceptron(), stream.X, stream.y, Gaussian(sigma=0.8)).tally
    for loss, norm in comparators(stream, 0.8, math.inf, seed):
        assert tally.mistakes <= theorems.perceptron_bound(loss, norm) + 1e-6
        assert tally.mistakes <= theorems.perceptron_root_bound(loss, norm) + 1e-6


@examples(60)
@given(stream=streams(max_rounds=200), seed=st.integers(0, 1000), epsilon=st.floats(0.501, 0.999))
def test_avp_corollary_1(stream: Example, seed: int, epsilon: float) -> None:
    tally = play(AVP(epsilon=epsilon), stream.X, stream.y, Gaussian(sigma=0.8)).tally
    for loss, norm in comparators(stream, 0.8, math.inf, seed):
        bound = theorems.avp_constant_bound(loss, norm, epsilon, tally.margin_updates)
        assert tally.failures <= bound + 1e-6


@examples(60)
@given(
    stream=streams(max_rounds=200),
    seed=st.integers(0, 1000),
    epsilon=st.floats(0.5, 0.99),
    radius=st.floats(0.2, 8),
)
def test_avp_corollary_2(stream: Example, seed: int, epsilon: float, radius: float) -> None:
    """With Δ_T taken from the steps that the learner really made."""
    learner = _RecordingAVP(epsilon=epsilon, radius=radius, schedule="adaptive")
    learner.made.clear()
    tally = play(learner, stream.X, stream.y, Gaussian(sigma=0.8)).tally
    steps = [step for step, margin in learner.made if margin > 0]
    for loss, _ in comparators(stream, 0.8, radius, seed):
        bound = theorems.avp_adaptive_bound(loss, radius, epsilon, sum(steps), len(steps))
        assert tally.failures <= bound + 1e-6


class _RecordingAVP(AVP):
    made: ClassVar[list[tuple[float, float]]] = []

    def step_at(self, margin: float, own: float = 1.0) -> float:
        step = super().step_at(margin, own)
        self.made.append((step, margin))
        return step


@examples(60)
@given(
    stream=st.builds(
        make_stream,
        st.integers(0, 10**6),
        st.integers(100, 500),
        st.integers(1, 4),
        st.floats(0, 0.5),
    ),
    seed=st.integers(0, 1000),
    budget=st.sampled_from([50, 64, 100]),
    share=st.floats(0.05, 1.0),
    between=st.floats(0.01, 0.99),
    selection=st.sampled_from(["magnitude", "greedy"]),
)
def test_ahpatron_theorem_4(
    stream: Example, seed: int, budget: int, share: float, between: float, selection: str
) -> None:
    radius = share * math.sqrt(budget) / 4
    low = 3 * radius / math.sqrt(budget)
    epsilon = low + between * (1 - low)
    learner = Ahpatron(
        budget=budget,
        radius=radius,
        epsilon=epsilon,
        step=math.sqrt(2) * radius / math.sqrt(budget),
        rescale=0.6,
        selection=selection,
    )
    tally = play(learner, stream.X, stream.y, Gaussian(sigma=0.8)).tally
    for loss, norm in comparators(stream, 0.8, radius, seed):
        bound = theorems.ahpatron_bound(loss, norm, budget, radius, epsilon, tally.margin_updates)
        assert tally.failures <= bound + 1e-6


@examples(60)
@given(
    stream=streams(max_rounds=300),
    budget=st.integers(1, 40).map(lambda half: 2 * half),
    epsilon=st.floats(0.01, 0.99),
    selection=st.sampled_from(["magnitude", "greedy"]),
)
def test_lemma_1(stream: Example, budget: int, epsilon: float, selection: str) -> None:
    learner = Ahpatron(budget=budget, epsilon=epsilon, selection=selection)
    player = play(learner, stream.X, stream.y, Gaussian(sigma=0.5))
    tally, halvings = player.tally, player.learner.statistics()["halvings"]
    most = max(2 * (tally.failures + tally.margin_updates) / budget - 1, 0)
    assert halvings <= most
    assert halvings == max(0, math.ceil((tally.updates - budget) / (budget / 2)))


@examples(60)
@given(stream=streams(max_rounds=300), seed=st.integers(0, 1000), budget=st.integers(1, 60))
def test_forgetron(stream: Example, seed: int, budget: int) -> None:
    tally = play(Forgetron(budget=budget), stream.X, stream.y, Gaussian(sigma=0.8)).tally
    for loss, norm in comparators(stream, 0.8, theorems.forgetron_radius(budget), seed):
        assert tally.mistakes <= theorems.forgetron_bound(loss, norm) + 1e-6


def test_the_halving_count_is_exercised() -> None:
    stream = make_stream(seed=1, rounds=400, features=2, noise=0.4)
    found = play(Ahpatron(budget=10), stream.X, stream.y).learner.statistics()
    assert found["halvings"] > 5
    assert 0 < (found["zeta"] or 0) <= 2
