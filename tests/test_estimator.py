"""The scikit-learn estimator: its conventions, and the same results as the command line."""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file, load_svmlight_file
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ahpatron_cli
from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.core import REGISTRY, Arow, ParameterError
from support.command import Ahpatron
from support.streams import make_stream

REPOSITORY = Path(__file__).resolve().parents[1]
FILES = {"rings": 0.1, "breast_cancer": 0.5, "sparse_text": 0.7}
"""The sample data, and the σ to use."""

STREAM = make_stream(seed=2, rounds=400, features=3)
X = STREAM.X
Y = np.where(STREAM.y > 0, "yes", "no")
ELSEWHERE = make_stream(seed=3, rounds=100, features=3).X

every_learner = pytest.mark.parametrize("learner", REGISTRY)


def small(learner: str, **others: Any) -> OnlineKernelClassifier:
    """A classifier that fills its budget soon, and knows how many rounds there will be."""
    own = {"budget": 20, "horizon": 400}
    given = {name: value for name, value in own.items() if name in REGISTRY[learner].specs()}
    return OnlineKernelClassifier(learner, **{"random_state": 0, **given, **others})


def path_of(name: str) -> str:
    return str(REPOSITORY / "sample_data" / f"{name}.svm")


# Conventions ------------------------------------------------------------------------------------


def unlike_batch_learners(estimator: OnlineKernelClassifier) -> dict[str, str]:
    """Checks of scikit-learn that an online learner cannot pass, with the reason."""
    repeated = "a row of weight 2 is one round with a larger step, not two rounds"
    unequal = {f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")}
    failing = dict.fromkeys(unequal, repeated)
    if estimator.learner not in (None, "metron"):
        reason = "one pass over few rows does not reach the limit"
        failing["check_class_weight_classifiers"] = reason
    if not REGISTRY[estimator.learner or "metron"].takes_costs:
        refused = "the learner cannot weigh examples"
        failing |= {f"check_sample_weights_{kind}": refused for kind in ("list", "not_overwritten")}
    return failing


# learners with hypotheses of different kinds; a sketch of rank 4 is too coarse for three classes
@parametrize_with_checks(
    [
        OnlineKernelClassifier(),
        small("ahpatron"),
        small("fogd"),
        small("nogd"),
        small("pomdr"),
        small("skegd", budget=80),
    ],
    expected_failed_checks=unlike_batch_learners,
)
def test_conventions_of_scikit_learn(estimator: Any, check: Callable[[Any], None]) -> None:
    check(estimator)


def test_the_default_learner_is_metron() -> None:
    default = OnlineKernelClassifier(random_state=0)
    assert default.get_params()["learner"] is None
    assert clone(default).fit(X, Y).player_.learner.name == "metron"
    named = OnlineKernelClassifier("metron", random_state=0).fit(X, Y)
    np.testing.assert_array_equal(default.fit(X, Y).online_scores_, named.online_scores_)


def test_the_estimator_is_imported_only_when_asked_for() -> None:
    code = (
        "import sys, ahpatron_cli\n"
        "assert not {'numpy', 'sklearn'} & set(sys.modules)\n"
        "assert ahpatron_cli.OnlineKernelClassifier.__name__ == 'OnlineKernelClassifier'\n"
        "assert 'sklearn' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], timeout=120, check=True)
    with pytest.raises(AttributeError, match="has no attribute 'Nothing'"):
        _ = ahpatron_cli.Nothing


# The same as the command line -------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_fit_counts_what_run_counts(ahpatron: Ahpatron, name: str) -> None:
    X, y = load_svmlight_file(path_of(name))
    rounds = min(len(y), 600)
    sigma = FILES[name]
    options = ("-l", "all", "-B", 60, "--sigma", sigma, "--seed", 3, "--limit", rounds)
    runs = ahpatron.json("run", path_of(name), *options)["runs"]
    assert [run["learner"] for run in runs] == list(REGISTRY)
    for run in runs:
        kind = REGISTRY[run["learner"]]
        model = OnlineKernelClassifier(
            run["learner"],
            budget=60 if "budget" in kind.specs() else None,
            sigma=sigma if kind.own_kernel is None else None,
            random_state=3,
        ).fit(X[:rounds], y[:rounds])
        assert model.mistakes_ == run["mistakes"], run["learner"]
        assert model.mistake_rate_ == run["mistake_rate"]
        assert model.n_updates_ == run["updates"]
        assert model.support_size_ == run["support_size"]


# Weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["ahpatron", "arow", "norma", "nogd"])
def test_weights_of_samples_and_of_classes_are_costs(ahpatron: Ahpatron, learner: str) -> None:
    """The same scores as `--weight`, by any of the three ways; on sparse rows, too."""
    words = ("-l", learner, "-B", 60, "--sigma", FILES["rings"], "--weight", "1=5", "--seed", 7)
    ahpatron.succeed("run", path_of("rings"), *words, "--predictions", "p.csv")
    lines = (ahpatron.folder / "p.csv").read_text().splitlines()[1:]
    scores = [float(line.split(",")[6]) for line in lines]
    rows, labels = load_svmlight_file(path_of("rings"))
    common = {"sigma": FILES["rings"], "budget": 60, "random_state": 7}
    weights = np.where(labels == 1, 5.0, 1.0)
    by_sample = OnlineKernelClassifier(learner, **common).fit(rows, labels, weights)
    np.testing.assert_array_equal(by_sample.online_scores_, scores)
    for share in (5.0, 2.5):  # of the class; the rest is that of the sample
        by_both = OnlineKernelClassifier(learner, **common, class_weight={1.0: share})
        by_both.fit(rows, labels, None if share == 5 else np.where(labels == 1, 2.0, 1.0))
        np.testing.assert_array_equal(by_both.online_scores_, scores)
    in_pieces = OnlineKernelClassifier(learner, **common, horizon=None)
    if learner != "nogd":  # its step depends on the horizon
        for part in (slice(0, 640), slice(640, None)):
            in_pieces.partial_fit(rows[part], labels[part], [-1, 1], weights[part])
        assert in_pieces.mistakes_ == by_sample.mistakes_


def test_balanced_classes_and_rows_of_weight_0() -> None:
    balanced = small("ahpatron", class_weight="balanced").fit(X, Y)
    share = {label: 400 / (2 * np.count_nonzero(label == Y)) for label in ("no", "yes")}
    expected = small("ahpatron", class_weight=share).fit(X, Y)
    np.testing.assert_array_equal(balanced.online_scores_, expected.online_scores_)
    with pytest.raises(ValueError, match="class_weight"):
        small("ahpatron", class_weight="balanced").partial_fit(X, Y, classes=["no", "yes"])
    some = np.arange(400) % 3 > 0
    left = small("ahpatron").fit(X, Y, some.astype(float))
    np.testing.assert_array_equal(
        left.online_scores_, small("ahpatron").fit(X[some], Y[some]).online_scores_
    )


@pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
def test_weights_of_classes_are_finite_and_positive(weight: float) -> None:
    with pytest.raises(ValueError, match="class_weight must have finite weights > 0"):
        small("ahpatron", class_weight={"no": weight}).fit(X, Y)


@pytest.mark.parametrize("labels", [Y, STREAM.X[:, 0].round()])
def test_a_piece_of_rows_of_weight_0_changes_nothing(labels: Any) -> None:
    model = small("ahpatron").fit(X, labels)
    scores = model.decision_function(X)
    model.partial_fit(X[:50], labels[:50], sample_weight=np.zeros(50))
    assert model.player_.tally.rounds == 400
    assert len(model.online_scores_) == 0
    np.testing.assert_array_equal(model.decision_function(X), scores)
    with pytest.raises(ValueError, match="non-zero"):
        small("ahpatron").fit(X, labels, np.zeros(400))


def test_input_that_is_not_checked_gives_the_same_scores() -> None:
    checked, unchecked = (small("ahpatron").fit(X[:100], Y[:100]) for _ in range(2))
    for t in range(100, 160):
        row = slice(t, t + 1)
        checked.partial_fit(X[row], Y[row])
        unchecked.partial_fit(X[row], Y[row], check_input=False)
        assert checked.online_scores_ == unchecked.online_scores_
    for wrong in (X[:1, :1], np.full((1, X.shape[1]), np.nan), X[0]):
        with pytest.raises(ValueError):
            checked.partial_fit(wrong, Y[:1])


# Learning piece by piece ------------------------------------------------------------------------


@pytest.mark.parametrize("shuffle", [False, True])
def test_several_passes_are_those_made_by_hand(shuffle: bool) -> None:
    model = small("nogd", horizon=None, n_passes=3, shuffle=shuffle).fit(X, Y)
    assert model.player_.tally.rounds == model.player_.learner.params()["horizon"] == 1200
    by_hand = small("nogd", horizon=1200)
    for number in range(3):
        order = np.random.default_rng([0, number]).permutation(400) if shuffle else np.arange(400)
        by_hand.partial_fit(X[order], Y[order], classes=["no", "yes"])
    assert by_hand.mistakes_ == model.mistakes_
    np.testing.assert_array_equal(by_hand.online_scores_, model.online_scores_[800:])


@pytest.mark.parametrize("learner", ["rbp", "bogd", "fogd", "skegd"])
def test_all_randomness_comes_from_the_random_state(learner: str) -> None:
    def scores(state: Any) -> list[float]:
        return small(learner, random_state=state).fit(X, Y).online_scores_.tolist()

    assert scores(5) == scores(np.int64(5))
    assert scores(5) != scores(6)
    assert scores(np.random.RandomState(1)) == scores(np.random.RandomState(1))
    generator = np.random.RandomState(1)
    assert scores(generator) != scores(generator)


# Sparse rows ------------------------------------------------------------------------------------


def places(rounds: int = 600) -> tuple[NDArray[Any], NDArray[Any]]:
    """Rows of a latitude with a large offset and of categories, few of which are not 0.

    Column 0 is 0 in all rows, and columns 2, 5, 8, … too: there are gaps.
    """
    rng = np.random.default_rng(5)
    rows = np.zeros((rounds, 60))
    north = rng.normal(size=rounds)
    rows[:, 1] = 48.8566 + 2e-5 * north
    kind = rng.integers(1, 20, size=rounds)
    rows[np.arange(rounds), 3 * kind] = 1.0
    rows[np.arange(rounds), 3 * kind + 1] = rng.normal(size=rounds)
    return rows, np.where((north > 0) ^ (kind % 4 == 0), "north", "south")


def with_stored_zeros(rows: NDArray[Any]) -> sparse.csr_array:
    """Zeros are stored in the first and the last column, and in some other places."""
    stored = rows != 0
    stored[:, [0, -1]] = True
    stored.flat[::97] = True
    owners, columns = stored.nonzero()
    indptr = np.append(0, np.cumsum(stored.sum(axis=1)))
    return sparse.csr_array((rows[owners, columns], columns, indptr), shape=rows.shape)


def unsorted(rows: NDArray[Any]) -> sparse.csr_array:
    """The columns of each row are stored in decreasing order."""
    found = with_stored_zeros(rows)
    for start, stop in itertools.pairwise(found.indptr):
        found.indices[start:stop] = found.indices[start:stop][::-1].copy()
        found.data[start:stop] = found.data[start:stop][::-1].copy()
    return sparse.csr_array((found.data, found.indices, found.indptr), shape=rows.shape)


def with_duplicates(rows: NDArray[Any]) -> sparse.coo_array:
    """Each value is stored twice, as halves."""
    owners, columns = rows.nonzero()
    halves = rows[owners, columns] / 2
    where = (np.append(owners, owners), np.append(columns, columns))
    return sparse.coo_array((np.append(halves, halves), where), shape=rows.shape)


@pytest.mark.parametrize("learner", ["metron", "arow", "ahpatron"])
@pytest.mark.parametrize("form", [sparse.csr_array, with_stored_zeros, unsorted, with_duplicates])
def test_sparse_rows_of_every_form_are_learned_as_dense_ones(learner: str, form: Any) -> None:
    rows, labels = places()
    expected = small(learner).fit(rows, labels)
    given = form(rows)
    kept = given.copy()
    model = small(learner).fit(given, labels)
    assert model.player_.f.points.__class__.__name__ == "SparsePoints"
    np.testing.assert_allclose(model.online_scores_, expected.online_scores_, atol=1e-6)
    assert model.mistakes_ == expected.mistakes_
    assert (kept.data == given.data).all()  # X itself is not changed
    np.testing.assert_allclose(
        model.decision_function(form(rows[:50])), expected.decision_function(rows[:50]), atol=1e-6
    )


def test_metron_uses_a_feature_with_a_large_offset_in_sparse_rows() -> None:
    rows, labels = places()
    assert small("metron", budget=100).fit(sparse.csr_array(rows), labels).mistake_rate_ < 0.25


# Copies and searches ----------------------------------------------------------------------------


@every_learner
@pytest.mark.parametrize(
    "copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))], ids=["copy", "pkl"]
)
def test_a_copy_goes_on_as_one_fit_would(learner: str, copied: Callable[[Any], Any]) -> None:
    whole = small(learner).fit(X, Y)
    model = small(learner).partial_fit(X[:200], Y[:200], classes=["no", "yes"])
    other = copied(model)
    np.testing.assert_array_equal(
        other.decision_function(ELSEWHERE), model.decision_function(ELSEWHERE)
    )
    other.partial_fit(X[200:], Y[200:])
    assert model.player_.tally.rounds == 200
    model.partial_fit(X[200:], Y[200:])
    np.testing.assert_array_equal(other.online_scores_, model.online_scores_)
    assert other.mistakes_ == model.mistakes_ == whole.mistakes_
    np.testing.assert_array_equal(other.predict(ELSEWHERE), whole.predict(ELSEWHERE))


@every_learner
def test_a_matrix_that_stores_zeros_is_fitted_as_dense_rows(learner: str) -> None:
    rows = np.zeros((400, 60))
    rows[:, :3] = X
    columns = np.tile([0, 1, 2, 30, 59], 400)  # two of which are always 0
    values = rows[:, [0, 1, 2, 30, 59]].ravel()
    stored = sparse.csr_matrix((values, columns, np.arange(401) * 5), shape=rows.shape)
    expected = small(learner).fit(rows, Y).decision_function(rows)
    found = small(learner).fit(stored, Y).decision_function(stored)
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)


def test_a_grid_search_over_a_pipeline() -> None:
    own = {"sigma": [0.01, 1.0], "params": [None, {"selection": "greedy", "ridge": 0.01}]}
    grid = {f"onlinekernelclassifier__{name}": values for name, values in own.items()}
    pipeline = make_pipeline(StandardScaler(), OnlineKernelClassifier("ahpatron", budget=20))
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(X, Y)
    assert search.best_params_["onlinekernelclassifier__sigma"] == 1.0
    assert search.best_score_ > 0.6
    assert cross_val_score(search.best_estimator_, X, Y, cv=3).min() > 0.5


# What is refused --------------------------------------------------------------------------------


UNUSABLE: list[tuple[Any, Any]] = [
    (X[:, :2], np.zeros(400)),  # one class
    (X[:, :2], np.arange(400) / 7),  # no classes
    (np.full((400, 2), np.nan), Y),
    (np.eye(400, 2) * 1e300, Y),  # learning fails
    (X[:300], Y),
]


@pytest.mark.parametrize(("rows", "labels"), UNUSABLE, ids=range(len(UNUSABLE)))
def test_a_fit_that_is_refused_leaves_the_estimator_as_it_was(rows: Any, labels: Any) -> None:
    model = small("ahpatron").fit(X, Y)
    scores = model.decision_function(X)
    before = {**vars(model)}
    with pytest.raises(ValueError):
        model.fit(rows, labels)
    assert vars(model) == before
    np.testing.assert_array_equal(model.decision_function(X), scores)
    new = small("ahpatron")
    for learn in (new.fit, lambda X, y: new.partial_fit(X, y, classes=["no", "yes"])):
        with pytest.raises(ValueError):
            learn(rows, labels)
        assert vars(new) == vars(small("ahpatron"))
    assert new.fit(X, Y).mistakes_ == model.mistakes_


WILD = np.tile(X, (12, 1))
WILD[-1, 1] = 1e300  # its square overflows


@pytest.mark.parametrize(
    ("learner", "rows", "labels", "given"),
    [
        ("ahpatron", X[:, :2], Y, {}),
        ("ahpatron", np.full((400, 3), np.nan), Y, {}),
        ("ahpatron", WILD, np.tile(Y, 12), {}),
        ("metron", WILD, np.tile(Y, 12), {"check_input": False}),
        ("metron", WILD[-1:], Y[-1:], {}),
        ("ahpatron", X, Y[:399], {"check_input": False}),
        ("ahpatron", X, Y, {"check_input": False, "sample_weight": np.zeros(400)}),
        ("rbp", X, Y, {"sample_weight": np.full(400, 2.0)}),
        ("ahpatron", X, Y, {"classes": ["no", "perhaps"]}),
    ],
    ids=[
        "a column too few",
        "NaN",
        "the last row overflows",
        "the last row overflows, unchecked",
        "the only row overflows",
        "a label too few",
        "weights of 0",
        "weights for a learner that cannot weigh",
        "other classes",
    ],
)
def test_rows_that_are_refused_leave_the_estimator_as_it_was(
    learner: str, rows: Any, labels: Any, given: dict[str, Any]
) -> None:
    model = small(learner).fit(X, Y)
    before = {**vars(model)}
    scores = model.decision_function(X)
    with pytest.raises(ValueError):
        model.partial_fit(rows, labels, **given)
    assert vars(model) == before
    assert model.player_.tally.rounds == 400
    np.testing.assert_array_equal(model.decision_function(X), scores)


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"params": ["ridge"]}, "params must be a dict"),
    ({"learner": "ahpatrom"}, "unknown learner 'ahpatrom': one of ahpatron, "),
    ({"learner": "ahpatron", "kernel": "rbf"}, "unknown kernel 'rbf': one of gaussian, "),
    ({"learner": "fogd", "kernel": "linear"}, "gaussian kernel only"),
    ({"learner": "ahpatron", "budget": 3}, "ahpatron: budget must be"),
    ({"learner": "avp", "budget": 20}, "has no parameter 'budget'"),
    ({"params": {"rigde": None}}, "has no parameter 'rigde'"),
    ({"budget": 20, "params": {"budget": 30}}, "budget is given twice"),
    ({"n_passes": 0}, "n_passes must be a whole number >= 1"),
    ({"random_state": "dice"}, "'dice' cannot be used to seed"),
    ({"learner": "projectron", "params": {"max_support": 2}}, "larger than max_support=2"),
]


@pytest.mark.parametrize(("given", "message"), REFUSED, ids=[str(given) for given, _ in REFUSED])
def test_faulty_parameters_are_refused_by_fit(given: dict[str, Any], message: str) -> None:
    model = OnlineKernelClassifier(**given)
    with pytest.raises(ValueError, match=re.escape(message)):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


FOREIGN: list[dict[str, Any]] = [
    {"sigma": 1.0},
    {"sigma": "auto"},
    {"kernel": "gaussian"},
    {"epsilon": 0.5},
    {"params": {"sigma": 1.0}},
    {"params": {"ridge": 0.1}},
]
"""Parameters that the default learner does not have."""


@pytest.mark.parametrize("given", FOREIGN, ids=str)
def test_without_a_learner_parameters_of_other_learners_are_refused(given: dict[str, Any]) -> None:
    model = OnlineKernelClassifier(budget=20, **given)  # the constructor only stores
    for learn in (model.fit, lambda X, y: model.partial_fit(X, y, classes=["no", "yes"])):
        with pytest.raises(ParameterError, match=r'metron.*learner="ahpatron"'):
            learn(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    assert clone(model).set_params(learner="ahpatron").fit(X, Y).mistakes_ > 0


@pytest.mark.parametrize(
    ("given", "named"),
    [({"sigma": 2.0}, "sigma"), ({"sigma": "auto", "kernel": "laplacian"}, "kernel and sigma")],
)
def test_an_explicit_metron_warns_of_a_kernel_that_it_does_not_use(
    given: dict[str, Any], named: str
) -> None:
    with pytest.warns(UserWarning, match=f"metron .* does not use {named}$") as caught:
        warned = small("metron", **given).fit(X, Y)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(warned.online_scores_, small("metron").fit(X, Y).online_scores_)
    assert warned.sigma_ is None


def test_labels_that_cannot_be_classes_are_refused() -> None:
    model = small("ahpatron")
    for classes in (np.arange(1001), None, ["no", "perhaps"]):
        with pytest.raises(ValueError, match="classes"):
            model.partial_fit(X, Y, classes=classes)
    for labels, message in ((np.arange(400) / 7, "continuous"), (np.full(400, "no"), "one class")):
        with pytest.raises(ValueError, match=message):
            model.fit(X, labels)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.partial_fit(X[:1], Y[:1], classes=["yes", "no"])
    with pytest.raises(ValueError, match="are not those of before"):
        model.partial_fit(X, Y, classes=["no", "perhaps"])
    with pytest.raises(ValueError, match="labels that are not among the classes"):
        model.partial_fit(X[:1], ["perhaps"])
    assert model.partial_fit(X[1:2], Y[1:2], classes=["no", "yes"]).player_.tally.rounds == 2


MIXED: list[tuple[Any, str]] = [
    ([1, "a"] * 200, "y mixes labels of the types int, str"),
    (np.array([1, "a"] * 200, dtype=object), "y mixes labels of the types int, str"),
    (np.array(["a", None] * 200, dtype=object), "y contains None"),
    (np.array([1, 2] * 200, dtype=object), "Unknown label type: y is an array of objects"),
    (np.array([True, None] * 200, dtype=object), "y contains None"),
    (["a", None] * 200, "y contains None"),
    (pd.Series(["a", pd.NA] * 200, dtype="string"), "y contains NaN or NA"),
    (pd.Series([1, pd.NA] * 200, dtype="Int64"), "y contains NaN or NA"),
    (pd.Series(["a", None] * 200), "y contains NaN or NA"),
    (np.array([1.0, np.nan] * 200), "NaN"),
    (np.array(["a", np.nan] * 200, dtype=object), "NaN"),
]


@pytest.mark.parametrize(("labels", "message"), MIXED, ids=range(len(MIXED)))
def test_labels_that_are_no_classes_are_refused_with_a_sentence(labels: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        small("ahpatron").fit(X, labels)
    fitted = small("ahpatron").fit(X, Y)
    with pytest.raises(ValueError):
        fitted.partial_fit(X, labels)
    assert fitted.player_.tally.rounds == 400


@pytest.mark.parametrize("classes", [[1, "a"], [1.0, np.nan], np.array(["a", None])], ids=str)
def test_classes_that_are_no_labels_are_refused_with_a_sentence(classes: Any) -> None:
    with pytest.raises(ValueError, match=r"mixes labels|NaN|None"):
        small("ahpatron").partial_fit(X, Y, classes=classes)


@pytest.mark.parametrize("make", [list, lambda y: pd.Series(y, index=range(400, 800)), np.str_])
def test_labels_are_taken_by_position_from_lists_and_series(make: Any) -> None:
    labels = [np.str_(label) for label in Y] if make is np.str_ else make(Y)
    model = small("ahpatron").fit(X, labels)
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(model.online_scores_, small("ahpatron").fit(X, Y).online_scores_)


def test_weights_of_classes_whose_labels_are_digits_in_text() -> None:
    digits = np.where(STREAM.y > 0, "7", "3")
    named = small("ahpatron", class_weight={"yes": 5.0}).fit(X, Y)
    model = small("ahpatron", class_weight={"7": 5.0}).fit(X, digits)
    np.testing.assert_array_equal(model.online_scores_, named.online_scores_)
    with pytest.raises(ValueError, match="are not in class_weight"):
        small("ahpatron", class_weight={7: 5.0}).fit(X, digits)


def test_several_classes_are_run_as_the_command_runs_them(ahpatron: Ahpatron) -> None:
    """The same mistakes from dense and sparse rows, in one piece and in several."""
    wanted = np.array(["a", "b", "c", "d"])[np.digitize(X[:, 0], [-0.5, 0.0, 0.5])]
    numbers = np.searchsorted(["a", "b", "c", "d"], wanted)
    dump_svmlight_file(X, numbers, str(ahpatron.folder / "four.svm"), zero_based=False)
    done = ahpatron("run", "four.svm", "--sigma", 0.5, "-B", 20, "--format", "json")
    (record,) = json.loads(done.out)["runs"]
    own = {"budget": 20, "sigma": 0.5, "random_state": 0}
    model = OnlineKernelClassifier("ahpatron", **own).fit(X, wanted)
    assert model.classes_.tolist() == ["a", "b", "c", "d"]
    assert model.mistakes_ == record["mistakes"]
    assert model.player_.tally.confusion.tolist() == record["confusion"]
    scores = model.decision_function(ELSEWHERE)
    assert scores.shape == (100, 4)
    assert (model.predict(ELSEWHERE) == model.classes_[scores.argmax(axis=1)]).all()
    pieces = OnlineKernelClassifier("ahpatron", **own)
    for start in range(0, 400, 64):
        part = slice(start, start + 64)
        pieces.partial_fit(sparse.csr_matrix(X[part]), wanted[part], classes=["a", "b", "c", "d"])
    assert pieces.mistakes_ == record["mistakes"]


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_row_that_cannot_be_computed_is_named(shuffle: bool) -> None:
    wild = X.copy()
    wild[123, 1] = 1e300
    model = small("ahpatron", shuffle=shuffle)
    with pytest.raises(ValueError, match="row 123 of X"):
        model.fit(wild, Y)
    model.fit(X, Y)
    with pytest.raises(ValueError, match="row 8123 of X"):
        model.predict(np.vstack([*[X] * 20, wild]))
    with pytest.raises(ValueError, match="row 123 of X"):
        model.partial_fit(wild, Y)


@pytest.mark.parametrize("call", [60, 250])
def test_an_interrupted_partial_fit_keeps_what_was_learned(
    call: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As Ctrl-C in a notebook: the estimator is that of the rows that are counted."""
    calls: list[int] = []
    update = Arow.update

    def interrupted(self: Arow, f: Any, y: Any, margin: float) -> bool:
        counts = update(self, f, y, margin)
        calls.append(self.round)
        if len(calls) == call:
            raise KeyboardInterrupt
        return counts

    rows = np.tile(X, (5, 1))
    labels = np.tile(Y, 5)
    model = small("arow").partial_fit(X[:100], Y[:100], classes=np.unique(Y))
    expected = small("arow").partial_fit(X[:100], Y[:100], classes=np.unique(Y))
    with monkeypatch.context() as patched:
        patched.setattr(Arow, "update", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(rows, labels)
    done = model.player_.tally.rounds - 100
    assert 0 < done < len(labels)
    expected.partial_fit(rows[:done], labels[:done])
    np.testing.assert_array_equal(model.decision_function(X), expected.decision_function(X))
    for one in (model, expected):
        one.partial_fit(rows[done:], labels[done:])
    assert model.mistakes_ == expected.mistakes_
