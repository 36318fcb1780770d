"""The river adapter: river's own checks, and the same predictions as the core."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from river import checks

from ahpatron_cli.core import REGISTRY, Gaussian, ParameterError, Player
from ahpatron_cli.core.errors import LimitReachedError
from ahpatron_cli.river import KernelClassifier
from ahpatron_cli.runner import generator_seed
from support.streams import make_stream

STREAM = make_stream(seed=2, rounds=300, features=3)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("learner", "sparse"),
    [
        ("ahpatron", False),
        ("ahpatron", True),
        *((learner, False) for learner in ("arow", "fogd", "metron", "nogd", "rbp")),
    ],
)
def test_the_checks_of_river_pass(learner: str, sparse: bool) -> None:
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
    model = KernelClassifier("arow", budget=40)
    wrong = 0
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
    heavy = KernelClassifier("ahpatron", budget=20)
    light = KernelClassifier("ahpatron", budget=20)
    for x, y in zip(STREAM.X, STREAM.y, strict=True):
        row = dict(enumerate(x))
        heavy.learn_one(row, y, w=3.0)
        light.learn_one(row, y)
    assert heavy.predict_proba_one(row) != light.predict_proba_one(row)
    with pytest.raises(ValueError, match="weigh"):
        KernelClassifier("rbp").learn_one({"a": 1.0}, True, w=2.0)


def test_the_default_learner_is_metron() -> None:
    default = KernelClassifier()
    named = KernelClassifier("metron")
    for x, y in zip(STREAM.X, STREAM.y, strict=True):
        row = dict(enumerate(x))
        assert default.predict_proba_one(row) == named.predict_proba_one(row)
        default.learn_one(row, y)
        named.learn_one(row, y)


@pytest.mark.parametrize(
    "given", [{"sigma": 1.0}, {"kernel": "gaussian"}, {"params": {"epsilon": 0.5}}], ids=str
)
def test_without_a_learner_parameters_of_other_learners_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError, match=r'metron.*learner="ahpatron"'):
        KernelClassifier(**given).learn_one({"a": 1.0}, True)
    KernelClassifier("ahpatron", **given).learn_one({"a": 1.0}, True)


def test_an_explicit_metron_warns_of_a_kernel_that_it_does_not_use() -> None:
    with pytest.warns(UserWarning, match="metron .* does not use sigma$") as caught:
        KernelClassifier("metron", sigma=2.0).learn_one({"a": 1.0}, True)
    assert caught[0].filename == __file__


def test_sigma_cannot_be_chosen_from_rows_that_are_not_there() -> None:
    with pytest.raises(ValueError, match="give a number"):
        KernelClassifier("arow", sigma="auto").learn_one({"a": 1.0}, True)  # type: ignore[arg-type]


# What leaves no trace ---------------------------------------------------------------------------


def trained(learner: str | None = "arow", classes: int = 2, **given: Any) -> KernelClassifier:
    """A classifier after 100 rounds with features u, v, w."""
    model = KernelClassifier(learner, budget=20, **given)
    for t, row in enumerate(STREAM.X[:100]):
        model.learn_one(dict(zip("uvw", row, strict=True)), f"class {t % classes}")
    return model


def same(one: KernelClassifier, other: KernelClassifier) -> bool:
    """Whether two classifiers predict and go on alike, as far as 50 rounds show it."""
    one = copy.deepcopy(one)
    other = copy.deepcopy(other)
    for t, row in enumerate(STREAM.X[100:150]):
        x = {**dict(zip("uvw", row, strict=True)), f"new{t % 5}": 0.5}
        if one.predict_proba_one(x) != other.predict_proba_one(x):
            return False
        one.learn_one(x, f"class {t % 4}")
        other.learn_one(x, f"class {t % 4}")
    return True


@pytest.mark.parametrize("learner", ["ahpatron", "arow", "fogd", "metron"])
@pytest.mark.parametrize("sparse", [False, True])
def test_predictions_leave_no_trace(learner: str, sparse: bool) -> None:
    model = trained(learner, sparse=sparse)
    untouched = trained(learner, sparse=sparse)
    size = len(pickle.dumps(model))
    for t in range(100):
        x = {"v": 0.3, f"unknown {t}": 1.0}
        model.predict_one(x)
        model.predict_proba_one(x)
    assert same(model, untouched)
    assert len(pickle.dumps(model)) < 1.1 * size  # no column for any of the unknown features


@pytest.mark.parametrize("learner", ["ahpatron", "arow", "fogd", "metron"])
@pytest.mark.parametrize("sparse", [False, True])
def test_new_features_count_in_a_prediction_as_they_do_in_learning(
    learner: str, sparse: bool
) -> None:
    model = trained(learner, sparse=sparse)
    (player,) = model._players
    for t, row in enumerate(STREAM.X[100:]):
        x = {"u": row[0], f"new {t}": row[1], f"newer {t}": row[2]}
        label = f"class {int(row[0] > 0)}"
        before = player.tally.mistakes
        wrong = model.predict_one(x) != label
        model.learn_one(x, label)
        assert player.tally.mistakes - before == wrong


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize(
    ("x", "y", "w", "message"),
    [
        ({"u": 1.0, "z": None}, "class 9", 1.0, "feature 'z' has no value"),
        ({"z": float("nan")}, "class 9", 1.0, "feature 'z' is not a finite number"),
        ({"z": [1.0, 2.0]}, "class 9", 1.0, "feature 'z' is not a finite number"),
        ({"z": 2**1024}, "class 9", 1.0, "feature 'z' is not a finite number"),
        ({"z": 1e300}, "class 9", 1.0, "overflows"),
        ({"z": 1.0}, "class 9", -1.0, "w must be a finite weight >= 0"),
        ({"z": 1.0}, "class 9", float("nan"), "w must be a finite weight >= 0"),
        ({"z": 1.0}, None, 1.0, "y must be a label, got None"),
        ({"z": 1.0}, float("nan"), 1.0, "y must be a label, got nan"),
    ],
)
def test_an_example_that_is_refused_leaves_no_trace(
    x: dict[str, Any], y: Any, w: float, message: str, classes: int
) -> None:
    model = trained(classes=classes)
    untouched = trained(classes=classes)
    with pytest.raises((ValueError, ArithmeticError), match=message):
        model.learn_one(x, y, w)
    assert set(model.predict_proba_one({})) == {f"class {c}" for c in range(classes)}
    assert same(model, untouched)


def learned_until_refused(
    model: KernelClassifier, label: str
) -> tuple[Exception | None, KernelClassifier]:
    """The first error of examples with this label, and a copy of the model before it."""
    before = copy.deepcopy(model)
    for row in STREAM.X[15:]:
        before = copy.deepcopy(model)
        try:
            model.learn_one(dict(zip("uvw", row, strict=True)), label)
        except Exception as error:
            return error, before
    return None, before


def test_an_example_that_only_the_second_player_refuses_leaves_no_trace() -> None:
    """With three classes, the player of the second one has the most examples: it is full first."""
    model = KernelClassifier("krls", budget=None, params={"max_support": 20, "tolerance": 1e-3})
    for t, row in enumerate(STREAM.X[:15]):
        model.learn_one(dict(zip("uvw", row, strict=True)), f"class {t % 2}")
    refused, before = learned_until_refused(model, label="class 2")
    assert isinstance(refused, LimitReachedError)
    x = {"u": 0.1, "v": 0.2, "w": 0.3}
    assert model.predict_proba_one(x) == before.predict_proba_one(x)
    assert [player.tally.rounds for player in model._players] == [
        player.tally.rounds for player in before._players
    ]


def test_a_first_example_that_is_refused_leaves_no_trace() -> None:
    model = KernelClassifier()
    with pytest.raises(ArithmeticError):
        model.learn_one({"z": 1e300}, "no")
    assert model.predict_one({"u": 1.0}) is None
    assert model.predict_proba_one({"u": 1.0}) == {}
    assert same(model, KernelClassifier())


def test_weights_that_the_learner_does_not_take_leave_no_trace() -> None:
    model = trained("rbp")
    untouched = trained("rbp")
    with pytest.raises(ValueError, match="weigh"):
        model.learn_one({"z": 1.0}, "class 9", w=2.0)
    assert same(model, untouched)


@pytest.mark.parametrize("learner", ["arow", "rbp"])
def test_an_example_of_weight_0_is_left_out(learner: str) -> None:
    model = trained(learner)
    untouched = trained(learner)
    model.learn_one({"u": 1.0, "z": 1.0}, "class 9", w=0)
    assert same(model, untouched)


def test_values_may_be_booleans_and_any_kind_of_number() -> None:
    model = trained()
    untouched = trained()
    mixed = {"u": True, "v": np.float32(0.5), "w": Fraction(1, 4), "z": 2**70}
    plain = {"u": 1.0, "v": 0.5, "w": 0.25, "z": 2.0**70}
    assert model.predict_proba_one(mixed) == model.predict_proba_one(plain)
    model.learn_one(mixed, "class 1")
    untouched.learn_one(plain, "class 1")
    assert same(model, untouched)


@pytest.mark.parametrize("classes", [1, 2, 3])
def test_copies_go_on_alike_and_clones_begin_again(classes: int) -> None:
    model = trained(None, classes=classes)
    assert same(model, pickle.loads(pickle.dumps(model)))
    assert same(model.clone(), KernelClassifier(budget=20))
    assert model.clone({"budget": 7}).budget == 7


# Sparse rows ------------------------------------------------------------------------------------


def places(rounds: int) -> Iterator[tuple[dict[str, float], str]]:
    """Examples with a large offset, features that are always 0, and zeros that are given or not."""
    rng = np.random.default_rng(5)
    for t in range(rounds):
        north = rng.normal()
        kind = int(rng.integers(8))
        x = {"a zero": 0.0, "latitude": 48.8566 + 2e-5 * north, f"kind {kind}": 1.0, "zero": 0.0}
        if t % 3 == 0:
            x[f"kind {(kind + 1) % 8}"] = 0.0
        yield x, "north" if (north > 0) != (kind % 4 == 0) else "south"


@pytest.mark.parametrize("learner", ["metron", "arow", "ahpatron"])
def test_sparse_examples_are_learned_as_dense_ones(learner: str) -> None:
    dense, sparse = (KernelClassifier(learner, sparse=sparse) for sparse in (False, True))
    for x, y in places(300):
        assert sparse.predict_one(x) == dense.predict_one(x)
        assert sparse.predict_proba_one(x) == pytest.approx(dense.predict_proba_one(x), abs=1e-6)
        dense.learn_one(x, y)
        sparse.learn_one(x, y)


def test_metron_uses_a_feature_with_a_large_offset_in_sparse_examples() -> None:
    model = KernelClassifier("metron", sparse=True)
    wrong = 0
    for x, y in places(600):
        wrong += model.predict_one(x) != y
        model.learn_one(x, y)
    assert wrong < 150


def test_text_is_a_category_with_a_feature_of_its_own() -> None:
    model = KernelClassifier()
    coded = KernelClassifier()
    for t in range(200):
        kind = "abc"[t % 3]
        label = "yes" if kind == "b" else "no"
        x = {"kind": kind, "u": float(t % 7)}
        model.learn_one(x, label)
        coded.learn_one({f"kind={kind}": 1.0, "u": float(t % 7)}, label)
        assert model.predict_one(x) == coded.predict_one({f"kind={kind}": 1.0, "u": float(t % 7)})
    assert model.predict_one({"kind": "b", "u": 3.0}) == "yes"


def test_dates_as_text_are_numbers_of_days() -> None:
    model = KernelClassifier()
    dated = KernelClassifier()
    for t in range(100):
        label = t % 60 > 30
        model.learn_one({"day": f"2024-01-{t % 28 + 1:02}", "t": t % 60}, label)
        dated.learn_one({"day": 19723.0 + t % 28, "t": t % 60}, label)
    x = {"day": "2024-01-05", "t": 45}
    assert model.predict_proba_one(x) == dated.predict_proba_one({**x, "day": 19727.0})


def test_of_too_many_categories_the_later_ones_share_a_feature() -> None:
    model = KernelClassifier("perceptron", budget=None, sparse=True)
    for t in range(1100):
        model.learn_one({"kind": f"k{t}"}, t % 2 == 0)
    assert len(model._columns) == 1001
