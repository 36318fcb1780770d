"""The river adapter: river's own checks, and the same predictions as the core."""

from __future__ import annotations

import numpy as np
import pytest
from river import checks

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.river import KernelClassifier
from ahpatron_cli.runner import generator_seed
from support.streams import make_stream

STREAM = make_stream(seed=2, rounds=300, features=3)


@pytest.mark.parametrize(
    ("learner", "sparse"),
    [
        ("ahpatron", False),
        *(
            pytest.param(learner, learner == "ahpatron", marks=pytest.mark.slow)
            for learner in ("ahpatron", "arow", "fogd", "metron", "nogd", "rbp")  # of every kind
        ),
    ],
)
def test_checks_of_river(learner: str, sparse: bool) -> None:
    params = {"horizon": 1000} if "horizon" in REGISTRY[learner].specs() else {}
    checks.check_estimator(KernelClassifier(learner, budget=20, sparse=sparse, params=params))


@pytest.mark.parametrize("learner", ["ahpatron", "arow", "fogd"])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_learned_as_in_the_core(learner: str, sparse: bool) -> None:
    seed = (*generator_seed(0, 0, learner), 1)
    player = Player(REGISTRY[learner](budget=20), Gaussian(1.0), seed=seed)
    model = KernelClassifier(learner, budget=20, sparse=sparse)
    labels = np.where(STREAM.y > 0, "b", "a")  # the first label of the stream is -1
    signs = np.where(labels == labels[0], -1.0, 1.0)
    other = {"a": "b", "b": "a"}[labels[0]]
    for t, row in enumerate(STREAM.X):
        x = dict(zip("uvw", row, strict=True))
        if t > 20:
            score = player.score(row)
            assert model.predict_one(x) == (other if score >= 0 else labels[0])
            assert sum(model.predict_proba_one(x).values()) == pytest.approx(1.0)
        model.learn_one(x, labels[t])
        player.learn(row, signs[t])


@pytest.mark.parametrize("learner", ["ahpatron", "metron", "fogd"])
def test_features_that_are_always_0_change_nothing_in_sparse_rows(learner: str) -> None:
    plain, padded = (KernelClassifier(learner, budget=20, sparse=True) for _ in range(2))
    for row, label in zip(STREAM.X, STREAM.y, strict=True):
        x = dict(zip("uvw", row, strict=True))
        more = {**x, "x": 0.0, "y": 0.0}
        assert padded.predict_proba_one(more) == pytest.approx(plain.predict_proba_one(x))
        plain.learn_one(x, label)
        padded.learn_one(more, label)


def test_features_and_labels_may_appear_at_any_time() -> None:
    rng = np.random.default_rng(0)
    model, wrong = KernelClassifier("arow", budget=40), 0
    assert model.predict_one({"a": 1.0}) is None
    assert model.predict_proba_one({}) == {}
    for t in range(600):
        label = int(rng.integers(2 if t < 200 else 4))
        x = {f"f{label}": rng.normal(3.0, 0.5), "noise": rng.normal(), f"rare{t % 7}": 0.1}
        wrong += model.predict_one(x) != label and t > 300
        model.learn_one(x, label)
    assert wrong < 15
    assert set(model.predict_proba_one(x)) == {0, 1, 2, 3}


def test_weights_are_those_of_learners_with_costs() -> None:
    heavy, light = KernelClassifier(budget=20), KernelClassifier(budget=20)
    for x, y in zip(STREAM.X, STREAM.y, strict=True):
        row = dict(enumerate(x))
        heavy.learn_one(row, y, w=3.0)
        light.learn_one(row, y)
    assert heavy.predict_proba_one(row) != light.predict_proba_one(row)
    with pytest.raises(ValueError, match="weigh"):
        KernelClassifier("rbp").learn_one({"a": 1.0}, True, w=2.0)
