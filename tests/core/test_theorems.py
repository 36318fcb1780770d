"""Theorems as tests: on random streams and for random comparators, no bound is ever broken."""

import math
from typing import Any, ClassVar

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import AVP, Ahpatron, Forgetron, Gaussian, Perceptron, play
from ahpatron_cli.core.certificates import THEOREMS, Comparator
from support.effort import examples
from support.streams import Example, make_stream, streams

BY_KEY = {theorem.key: theorem for theorem in THEOREMS}


def assert_bounded(count: int, key: str, candidates: list[Comparator], **run: Any) -> None:
    for f in candidates:
        assert count <= BY_KEY[key].bound(f, **run) + 1e-6


def comparators(stream: Example, sigma: float, radius: float, seed: int) -> list[Comparator]:
    """Some f with ‖f‖ <= radius: zero, kernel mean, ridge fit, random ones."""
    rng = np.random.default_rng(seed)
    distances = ((stream.X[:, None, :] - stream.X[None, :, :]) ** 2).sum(axis=2)
    K = np.exp(-distances / (2 * sigma**2))
    y = stream.y
    weights = [np.zeros(len(y)), y / len(y), np.linalg.solve(K + 0.3 * np.eye(len(y)), y)]
    weights += [
        rng.normal(size=len(y)) * rng.exponential() * (rng.random(len(y)) < 0.3) for _ in "ab"
    ]
    weights += [np.abs(rng.normal(size=len(y))) * y * rng.exponential() for _ in "ab"]
    candidates = []
    for w in weights:
        norm = math.sqrt(max(w @ K @ w, 0.0))
        for size in (norm, 2.0, radius):  # as it is, and stretched to other lengths
            stretched = norm > 0 and math.isfinite(size)
            factor = min(size, radius) / norm if stretched else 1.0
            losses = np.maximum(0.0, 1 - y * (K @ w) * factor)
            candidates.append(Comparator("f", float(losses.sum()), norm * factor))
    return [f for f in candidates if f.norm <= radius * (1 + 1e-12)]


@examples(60)
@given(stream=streams(max_rounds=200), seed=st.integers(0, 1000))
def test_perceptron_theorems_1_and_2(stream: Example, seed: int) -> None:
    tally = play(Perceptron(), stream.X, stream.y, Gaussian(sigma=0.8)).tally
    candidates = comparators(stream, 0.8, math.inf, seed)
    assert_bounded(tally.mistakes, "1", candidates)
    assert_bounded(tally.mistakes, "2", candidates)


@examples(60)
@given(stream=streams(max_rounds=200), seed=st.integers(0, 1000), epsilon=st.floats(0.501, 0.999))
def test_avp_corollary_1(stream: Example, seed: int, epsilon: float) -> None:
    tally = play(AVP(epsilon=epsilon), stream.X, stream.y, Gaussian(sigma=0.8)).tally
    run = {"step": 1.0, "epsilon": epsilon, "margin_updates": tally.margin_updates}
    candidates = comparators(stream, 0.8, math.inf, seed)
    assert_bounded(tally.nonpositive_margins, "corollary-1", candidates, **run)


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
    run = {"radius": radius, "epsilon": epsilon}
    run |= {"margin_steps": sum(steps), "margin_updates": len(steps)}
    candidates = comparators(stream, 0.8, radius, seed)
    assert_bounded(tally.nonpositive_margins, "corollary-2", candidates, **run)


class _RecordingAVP(AVP):
    made: ClassVar[list[tuple[float, float]]] = []

    def step_at(self, margin: float) -> float:
        step = super().step_at(margin)
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
    run = {"budget": budget, "radius": radius, "epsilon": epsilon}
    run |= {"margin_updates": tally.margin_updates}
    assert_bounded(tally.nonpositive_margins, "4", comparators(stream, 0.8, radius, seed), **run)


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
    most = max(2 * (tally.nonpositive_margins + tally.margin_updates) / budget - 1, 0)
    assert halvings <= most
    assert halvings == max(0, math.ceil((tally.updates - budget) / (budget / 2)))


@examples(60)
@given(stream=streams(max_rounds=300), seed=st.integers(0, 1000), budget=st.integers(1, 60))
def test_forgetron(stream: Example, seed: int, budget: int) -> None:
    tally = play(Forgetron(budget=budget), stream.X, stream.y, Gaussian(sigma=0.8)).tally
    radius = BY_KEY["forgetron"].radius(budget=budget)
    assert_bounded(tally.mistakes, "forgetron", comparators(stream, 0.8, radius, seed))


def test_the_halving_count_is_exercised() -> None:
    stream = make_stream(seed=1, rounds=400, features=2, noise=0.4)
    statistics = play(Ahpatron(budget=10), stream.X, stream.y).learner.statistics()
    assert statistics["halvings"] > 5
    assert 0 < (statistics["zeta"] or 0) <= 2
