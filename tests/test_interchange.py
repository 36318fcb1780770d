"""Models move between the command line and Python, and DataFrames are tables."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline

from ahpatron_cli import OnlineKernelClassifier
from support.command import Ahpatron
from support.models import rewritten

SAMPLES = Path(__file__).parents[1] / "sample_data"
IRIS, PAYMENTS = (pd.read_csv(SAMPLES / name) for name in ("iris.csv", "payments.csv"))


def predicted(ahpatron: Ahpatron, model: str, data: Any) -> pd.DataFrame:
    out = ahpatron.succeed("predict", model, data, "--probability").out
    return pd.read_csv(io.StringIO(out))


def assert_predicts(model: OnlineKernelClassifier, X: Any, found: pd.DataFrame) -> None:
    """The same bits from Python and from the command line."""
    scores = model.decision_function(X)
    names = ["score"] if scores.ndim == 1 else [f"score_{name}" for name in model.classes_]
    # equal up to rounding: some BLAS builds round rows by where they stand in memory
    np.testing.assert_allclose(found[names].to_numpy().squeeze(), scores, rtol=0, atol=1e-9)
    assert found["prediction"].tolist() == model.predict(X).tolist()
    shares = found[[f"probability_{name}" for name in model.classes_]]
    np.testing.assert_allclose(shares, model.predict_proba(X), rtol=0, atol=1e-9)


@pytest.mark.parametrize("scale", ["none", "standard", "unit"])
@pytest.mark.parametrize("learner", ["ahpatron", "arow", "metron", "fogd", "rbp"])
def test_from_the_shell_to_a_notebook_and_back(
    ahpatron: Ahpatron, rings: Path, learner: str, scale: str
) -> None:
    lines = rings.read_text().splitlines(keepends=True)
    for name, part in (("a", slice(704)), ("b", slice(704, 1408)), ("c", slice(1408, 2000))):
        ahpatron.write(f"{name}.svm", "".join(lines[part]))
    sigma = [] if learner == "metron" else ["--sigma", 0.3]
    options = ("-l", learner, *sigma, "-B", 40, "--scale", scale, "--weight", "1=2")
    options = options if learner != "rbp" else options[:-2]
    ahpatron.succeed("run", "a.svm", *options, "--save", "a.npz")
    model = OnlineKernelClassifier.load(ahpatron.folder / "a.npz")
    b, c = (load_svmlight_file(str(ahpatron.folder / f"{name}.svm")) for name in "bc")
    model.partial_fit(b[0].toarray(), b[1]).save(ahpatron.folder / "b.npz")
    ahpatron.succeed("run", "b.svm", "--resume", "a.npz", "--save", "whole.npz")
    found = predicted(ahpatron, "b.npz", "c.svm")
    assert found.equals(predicted(ahpatron, "whole.npz", "c.svm"))
    assert_predicts(model, c[0], found)
    done = ahpatron.json("run", "c.svm", "--resume", "b.npz")
    assert done["runs"][0]["mistakes"] == model.partial_fit(*c).mistakes_


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
def test_the_model_of_a_table_reads_data_frames(ahpatron: Ahpatron, frame: Any) -> None:
    """With the columns of the table: categories and missing cells as in training."""
    table = PAYMENTS.assign(day=pd.date_range("2024-01-01", periods=3000, freq="h"))
    table.loc[5:9, "amount"] = np.nan
    table.loc[7:8, "country"] = None
    table.to_csv(ahpatron.folder / "t.csv", index=False)
    options = ("--label", "fraud", "--scale", "standard", "-l", "arow", "-B", 40)
    ahpatron.succeed("run", "t.csv", *options, "--save", "t.npz")
    model = OnlineKernelClassifier.load(ahpatron.folder / "t.npz")
    assert model.classes_.tolist() == ["no", "yes"]
    assert "country" in model.feature_names_in_
    assert model.schema_ is not None
    assert "country=DE" in model.schema_.features
    assert_predicts(model, frame(table), predicted(ahpatron, "t.npz", "t.csv"))
    model.partial_fit(frame(table), PAYMENTS["fraud"]).save(ahpatron.folder / "u.npz")
    assert_predicts(model, frame(table), predicted(ahpatron, "u.npz", "t.csv"))
    with pytest.raises(ValueError, match="amount"):
        model.predict(frame(table.assign(amount="much")))


N = 200
NOISE = np.random.default_rng(0).normal(size=N)
DAYS = pd.date_range("2024-01-01", periods=N)
FEW_SECONDS = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(N) * 7 % 3000, unit="ms")
KINDS = np.array(["u", "v"], dtype=object)[np.arange(N) % 2]
TABLES = {
    "only dates": pd.DataFrame({"day": DAYS}),
    "milliseconds": pd.DataFrame({"at": FEW_SECONDS}),
    "numbers and dates": pd.DataFrame({"x": NOISE, "day": DAYS}),
    "zones": pd.DataFrame({"at": FEW_SECONDS.tz_localize("Europe/Berlin")}),
    "missing numbers": pd.DataFrame({"x": np.where(NOISE > 1, np.nan, NOISE)}),
    "missing dates": pd.DataFrame({"day": DAYS.where(NOISE < 1)}),
    "missing text": pd.DataFrame({"kind": np.where(NOISE > 1, None, KINDS), "x": NOISE}),
    "booleans": pd.DataFrame({"flag": NOISE > 0, "x": NOISE}),
    "missing booleans": pd.DataFrame({"flag": pd.array(NOISE > 0, "boolean"), "x": NOISE}),
    "categories": pd.DataFrame({"kind": pd.Categorical(KINDS), "x": NOISE}),
    "numbers": pd.DataFrame({"x": NOISE, "z": NOISE[::-1]}),
}
TABLES["missing booleans"].loc[3:9, "flag"] = pd.NA


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
@pytest.mark.parametrize("missing", ["indicator", "mean", "zero"])
@pytest.mark.parametrize("name", TABLES)
def test_a_data_frame_has_the_predictions_of_its_csv_file(
    ahpatron: Ahpatron, name: str, missing: str, frame: Any
) -> None:
    X = TABLES[name]
    table = X.assign(y=np.where(np.arange(N) // 20 % 2, "yes", "no"))
    table.to_csv(ahpatron.folder / "t.csv", index=False)
    options = ("--label", "y", "--missing", missing, "-l", "arow", "--sigma", 3)
    ahpatron.succeed("run", "t.csv", *options, "--save", "t.npz")
    model = OnlineKernelClassifier.load(ahpatron.folder / "t.npz")
    expected = predicted(ahpatron, "t.npz", "t.csv")
    assert_predicts(model, frame(X), expected)
    assert_predicts(model, frame(table[table.columns[::-1]]), expected)  # with the label
    accuracy = (expected["prediction"] == table["y"]).mean()
    assert model.score(frame(X), table["y"]) == pytest.approx(accuracy)
    model.partial_fit(frame(X), table["y"]).save(ahpatron.folder / "u.npz")
    ahpatron.succeed("run", "t.csv", "--resume", "t.npz", "--save", "v.npz")
    again = predicted(ahpatron, "v.npz", "t.csv")
    assert_predicts(OnlineKernelClassifier.load(ahpatron.folder / "u.npz"), frame(X), again)


@pytest.fixture
def payments(ahpatron: Ahpatron) -> OnlineKernelClassifier:
    options = ("--label", "fraud", "-l", "metron", "--limit", 640)
    ahpatron.succeed("run", SAMPLES / "payments.csv", *options, "--save", "p.npz")
    return OnlineKernelClassifier.load(ahpatron.folder / "p.npz")


def test_a_missing_column_is_named_as_in_the_table(payments: OnlineKernelClassifier) -> None:
    with pytest.raises(ValueError, match=r"^columns are missing: country$"):
        payments.predict(PAYMENTS.drop(columns="country"))


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_cells_missing_only_in_new_data_cause_a_warning(
    payments: OnlineKernelClassifier, missing: Any
) -> None:
    new = PAYMENTS.head(3).astype({"country": object})
    new.loc[1, "country"] = missing
    with pytest.warns(UserWarning, match=r"shares of its categories: country \(1\)"):
        found = payments.decision_function(new)
    np.testing.assert_allclose(found[[0, 2]], payments.decision_function(PAYMENTS.head(3))[[0, 2]])


def test_new_categories_cause_a_warning(payments: OnlineKernelClassifier) -> None:
    with pytest.warns(UserWarning, match=r"new categories of country \(3\)"):
        payments.predict(PAYMENTS.head(3).assign(country="Atlantis"))


@pytest.mark.parametrize(
    "call",
    [
        lambda model, X, y: model.predict(X),
        lambda model, X, y: model.predict_proba(X),
        lambda model, X, y: model.decision_function(X),
        lambda model, X, y: model.score(X, y),
        lambda model, X, y: model.partial_fit(X, y),
    ],
    ids=["predict", "predict_proba", "decision_function", "score", "partial_fit"],
)
@pytest.mark.parametrize("country", ["Atlantis", None])
def test_a_warning_points_to_the_line_of_the_caller(
    payments: OnlineKernelClassifier, call: Any, country: str | None
) -> None:
    new = PAYMENTS.head(3).astype({"country": object})
    new["country"] = country
    with pytest.warns(UserWarning, match="training, taken as") as caught:
        call(payments, new, PAYMENTS["fraud"].head(3))
    line = call.__code__.co_firstlineno
    assert [(one.filename, one.lineno) for one in caught] == [(__file__, line)]


def test_a_cell_of_another_type_is_named_with_its_row(payments: OnlineKernelClassifier) -> None:
    new = PAYMENTS.head(3).astype({"amount": object})
    new.loc[2, "amount"] = "much"
    with pytest.raises(ValueError, match=r"^row 2 of X: column 'amount' has number values.*'much'"):
        payments.predict(new)


def test_infinite_numbers_are_refused(payments: OnlineKernelClassifier) -> None:
    with pytest.raises(ValueError, match="'amount' has values that are not finite"):
        payments.predict(PAYMENTS.head(3).assign(amount=np.inf))


def test_columns_of_other_types_are_refused(payments: OnlineKernelClassifier) -> None:
    with pytest.raises(ValueError, match="'amount' has the type timedelta64"):
        payments.predict(PAYMENTS.head(3).assign(amount=pd.Timedelta(1, "s")))
    with pytest.raises(ValueError, match="'amount' occurs twice"):
        payments.predict(pd.concat([PAYMENTS, PAYMENTS[["amount"]]], axis=1))


def test_an_array_is_refused_by_the_model_of_a_table_with_text(
    payments: OnlineKernelClassifier,
) -> None:
    with pytest.raises(ValueError, match="a DataFrame or a list of dicts with the columns amount"):
        payments.predict(np.zeros((1, payments.n_features_in_)))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.from_pandas])
def test_the_columns_of_a_data_frame_are_those_of_a_table(ahpatron: Ahpatron, frame: Any) -> None:
    X = frame(IRIS.drop(columns="species"))
    model = OnlineKernelClassifier("arow", budget=40, random_state=0).fit(X, IRIS["species"])
    assert model.feature_names_in_.tolist() == list(X.columns)
    model.save(ahpatron.folder / "iris.npz")
    assert_predicts(model, X, predicted(ahpatron, "iris.npz", SAMPLES / "iris.csv"))
    again = OnlineKernelClassifier.load(ahpatron.folder / "iris.npz")
    np.testing.assert_allclose(again.decision_function(X), model.decision_function(X), atol=1e-9)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(X[list(X.columns)[::-1]])


LABELS: list[Any] = [
    np.array([0, 1]),
    np.array([1, 2], np.int8),
    np.array([7, 9], np.uint64),
    np.array([2**53, 2**53 + 1]),
    np.array([2.0, 7.0]),
    np.array([1.0, 2.0], np.float32),
    np.array([False, True]),
    np.array(["3", "7"]),
    np.array(["3", "7"], object),
    np.array(["007", "7"]),
    np.array(["False", "True"]),
    np.array(["1", "1.0", "a"]),
    np.array([3, 4, 9]),
    np.array(["2024-01-31", "2024-02-01"], "datetime64[ns]"),
]
"""Labels of every dtype, in increasing order."""


def labelled(labels: NDArray[Any]) -> NDArray[Any]:
    """A label for each flower of IRIS."""
    return labels[IRIS["species"].factorize()[0] % len(labels)]


def rows_for(model: OnlineKernelClassifier) -> Any:
    """The flowers, with the names of columns if the model has them."""
    names = getattr(model, "feature_names_in_", None)
    rows = IRIS.drop(columns="species").to_numpy()
    return rows if names is None else pd.DataFrame(rows, columns=names)


@pytest.mark.parametrize("labels", LABELS, ids=repr)
def test_labels_keep_their_type_through_save_and_load(tmp_path: Path, labels: NDArray[Any]) -> None:
    y = labelled(labels)
    first = labels.tolist()[0]
    model = OnlineKernelClassifier("ahpatron", budget=20, class_weight={first: 2.0})
    model.fit(rows_for(model), y)
    assert model.predict(rows_for(model)).dtype == y.dtype
    model.save(tmp_path / "m.npz")
    again = OnlineKernelClassifier.load(tmp_path / "m.npz")
    assert again.classes_.dtype == model.classes_.dtype
    assert again.classes_.tolist() == labels.tolist()
    assert again.class_weight == {**dict.fromkeys(labels.tolist(), 1.0), first: 2.0}
    np.testing.assert_array_equal(again.predict(rows_for(again)), model.predict(rows_for(model)))
    again.save(tmp_path / "n.npz")
    assert (tmp_path / "n.npz").read_bytes() == (tmp_path / "m.npz").read_bytes()


@pytest.mark.parametrize("labels", LABELS, ids=repr)
def test_a_loaded_model_goes_on_with_the_same_labels(tmp_path: Path, labels: NDArray[Any]) -> None:
    y = labelled(labels)
    model = OnlineKernelClassifier("ahpatron", budget=20)
    model.fit(rows_for(model), y).save(tmp_path / "m.npz")
    again = OnlineKernelClassifier.load(tmp_path / "m.npz")
    again.partial_fit(rows_for(again), y, classes=labels[::-1])
    assert again.mistakes_ == model.partial_fit(rows_for(model), y).mistakes_
    with pytest.raises(ValueError, match="not among the classes"):
        again.partial_fit(rows_for(again)[:1], ["another"])


@pytest.mark.parametrize(
    ("labels", "texts"),
    [
        (np.array([1.0, 2.0]), ["1", "2"]),
        (np.array(["007", "7"]), ["007", "7"]),
        (np.array([False, True]), ["False", "True"]),
        (np.array([2**53, 2**53 + 1]), ["9007199254740992", "9007199254740993"]),
        (np.array(["2024-01-31", "2024-02-01"], "datetime64[ns]"), ["2024-01-31", "2024-02-01"]),
    ],
    ids=["floats", "text", "truth values", "large integers", "dates"],
)
def test_predict_shows_the_labels_of_python_as_text(
    ahpatron: Ahpatron, labels: NDArray[Any], texts: list[str]
) -> None:
    y = labelled(labels)
    model = OnlineKernelClassifier("arow", budget=20).fit(IRIS.drop(columns="species"), y)
    model.save(ahpatron.folder / "m.npz")
    out = ahpatron.succeed("predict", "m.npz", SAMPLES / "iris.csv").out
    found = [line.split(",")[1] for line in out.splitlines()[1:]]
    assert found == [texts[int(label == labels[1])] for label in model.predict(rows_for(model))]


TABLE_LABELS: list[tuple[list[str], Any]] = [
    (["1", "2"], np.array([1, 2])),
    (["0.5", "2"], np.array([0.5, 2.0])),
    (["False", "True"], np.array([False, True])),
    (["no", "yes"], np.array(["no", "yes"])),
    (["1", "2", "x"], np.array(["1", "2", "x"])),
    (["1.0", "2.0"], np.array([1, 2])),
    (["-1", "+1"], np.array([-1, 1])),
    (["007", "012"], np.array(["007", "012"])),
    (["false", "TRUE"], np.array([False, True])),
]
"""Labels in a table, and as they are in Python."""


def trained(ahpatron: Ahpatron, texts: list[str], *options: Any) -> OnlineKernelClassifier:
    """A model that `run` made from a table with these labels."""
    table = IRIS.assign(species=labelled(np.array(texts)))
    table.to_csv(ahpatron.folder / "t.csv", index=False)
    ahpatron.succeed(
        "run", "t.csv", "--label", "species", "-l", "arow", *options, "--save", "t.npz"
    )
    return OnlineKernelClassifier.load(ahpatron.folder / "t.npz")


@pytest.mark.parametrize(("texts", "labels"), TABLE_LABELS, ids=str)
def test_labels_of_a_table_are_text_or_plain_numbers(
    ahpatron: Ahpatron, texts: list[str], labels: NDArray[Any]
) -> None:
    model = trained(ahpatron, texts)
    assert sorted(model.classes_.tolist()) == labels.tolist()
    assert model.classes_.dtype == labels.dtype


@pytest.mark.parametrize(("texts", "labels"), TABLE_LABELS, ids=str)
def test_labels_of_a_table_compare_by_text(
    ahpatron: Ahpatron, texts: list[str], labels: NDArray[Any]
) -> None:
    typed = trained(ahpatron, texts)
    typed.partial_fit(rows_for(typed), labelled(labels))
    as_text = OnlineKernelClassifier.load(ahpatron.folder / "t.npz")
    as_text.partial_fit(rows_for(as_text), labelled(np.array(texts)), classes=texts)
    np.testing.assert_array_equal(typed.online_scores_, as_text.online_scores_)
    assert typed.mistakes_ == as_text.mistakes_


def test_a_model_of_one_label_against_all_others_learns_from_all_others(
    ahpatron: Ahpatron,
) -> None:
    model = trained(ahpatron, ["a", "b", "c"], "--positive", "b")
    assert model.classes_.tolist() == ["other", "b"]
    model.partial_fit(rows_for(model), labelled(np.array(["a", "b", "c"])))
    done = ahpatron.json("run", "t.csv", "--resume", "t.npz")
    assert model.mistakes_ == done["runs"][0]["mistakes"]


def test_rows_of_every_kind_give_the_same_mistakes(tmp_path: Path) -> None:
    X = IRIS.drop(columns="species").to_numpy().astype(np.float32)
    y = IRIS["species"]
    double = X.astype(np.float64)
    expected = OnlineKernelClassifier("arow", budget=40).fit(double, y)
    np.save(tmp_path / "x.npy", double)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    for rows in (X, mapped, sparse.csr_array(X), pd.DataFrame(X), pl.DataFrame(X, [*"abcd"])):
        model = OnlineKernelClassifier("arow", budget=40).fit(rows, y)
        assert model.mistakes_ == expected.mistakes_
        shares = expected.predict_proba(double)
        np.testing.assert_allclose(model.predict_proba(rows), shares, atol=1e-9)


def test_an_estimator_draws_itself_in_a_notebook() -> None:
    from matplotlib import pyplot

    X = IRIS.drop(columns="species")
    y = IRIS["species"]
    model = OnlineKernelClassifier("arow", budget=40).fit(X, y)
    assert "arow" in model._repr_html_()
    figure, axes = pyplot.subplots()
    assert model.plot_learning_curve_(axes) is axes
    ((rounds, rates),) = [line.get_data() for line in axes.lines]
    assert rounds[-1] == 150
    assert rates[-1] == pytest.approx(100 * model.mistake_rate_)
    pyplot.close(figure)


@pytest.mark.parametrize("label_type", ["int8", "bool", "datetime64[s]", "datetime64[x]", "V8"])
def test_labels_that_do_not_have_their_type_are_a_damaged_model(
    tmp_path: Path, label_type: str
) -> None:
    def change(header: dict[str, Any], arrays: dict[str, Any]) -> None:
        header["label_type"] = label_type

    model = OnlineKernelClassifier("ahpatron", budget=20)
    model.fit(rows_for(model), IRIS["species"]).save(tmp_path / "m.npz")
    forged = rewritten((tmp_path / "m.npz").read_bytes(), change, signed=True)
    (tmp_path / "m.npz").write_bytes(forged)
    with pytest.raises(ValueError, match="not a model of ahpatron, or it is damaged"):
        OnlineKernelClassifier.load(tmp_path / "m.npz")


# Fitting tables -----------------------------------------------------------------------------------

FORMS: dict[str, Any] = {
    "pandas": lambda rows: rows,
    "polars": pl.from_pandas,
    "dicts": lambda rows: rows.to_dict("records"),
}


@pytest.fixture
def census() -> tuple[pd.DataFrame, pd.Series]:
    """Rows with numbers, text, dates, booleans and missing cells, and their labels."""
    rng = np.random.default_rng(0)
    age = rng.integers(18, 80, 400).astype(float)
    job = rng.choice(["boss", "clerk", "cook"], 400)
    rows = pd.DataFrame(
        {
            "age": np.where(rng.random(400) < 0.1, np.nan, age),
            "job": np.where(rng.random(400) < 0.1, None, job),
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(rng.integers(0, 900, 400), "D"),
            "remote": rng.random(400) < 0.5,
        }
    )
    rich = (age > 50) == (job == "boss")
    return rows, pd.Series(np.where(rich, "yes", "no"), name="rich")


@pytest.mark.parametrize("form", FORMS)
def test_fit_learns_a_table_as_run_does(
    ahpatron: Ahpatron, census: tuple[pd.DataFrame, pd.Series], form: str
) -> None:
    rows, rich = census
    rows.assign(rich=rich).to_csv(ahpatron.folder / "t.csv", index=False)
    options = ("--label", "rich", "--positive", "yes", "--save", "t.npz")
    counted = ahpatron.json("run", "t.csv", *options)["runs"][0]
    model = OnlineKernelClassifier().fit(FORMS[form](rows), rich)
    assert (model.mistakes_, model.n_updates_) == (counted["mistakes"], counted["updates"])
    loaded = OnlineKernelClassifier.load(ahpatron.folder / "t.npz")
    assert model.schema_ is not None
    assert loaded.schema_ is not None
    assert model.schema_.features == loaded.schema_.features
    model.save(ahpatron.folder / "m.npz")
    assert_predicts(model, FORMS[form](rows), predicted(ahpatron, "m.npz", "t.csv"))


@pytest.mark.parametrize("form", FORMS)
def test_rows_may_be_predicted_one_at_a_time(
    census: tuple[pd.DataFrame, pd.Series], form: str
) -> None:
    rows, rich = census
    model = OnlineKernelClassifier().fit(FORMS[form](rows), rich)
    expected = model.decision_function(rows)
    for i in range(5):
        found = model.decision_function(rows.iloc[i].to_dict())
        np.testing.assert_allclose(found, expected[i : i + 1], atol=1e-9)


def test_a_key_that_a_dict_does_not_have_is_a_missing_cell(
    census: tuple[pd.DataFrame, pd.Series],
) -> None:
    model = OnlineKernelClassifier().fit(*census)
    row = {"since": "2025-01-01", "remote": True}
    expected = model.decision_function({**row, "age": None, "job": None})
    assert model.decision_function(row).tolist() == expected.tolist()
    with pytest.raises(ValueError, match="columns are missing: age, job, since, remote"):
        model.predict({"weight": 5})


def test_partial_fit_goes_on_with_the_columns_of_its_first_call(
    census: tuple[pd.DataFrame, pd.Series],
) -> None:
    rows, rich = census
    whole = OnlineKernelClassifier().fit(rows, rich)
    model = OnlineKernelClassifier()
    for start in range(0, 400, 64):
        part = slice(start, start + 64)
        model.partial_fit(rows[part], rich[part], classes=["no", "yes"])
    assert model.mistakes_ == whole.mistakes_
    with pytest.warns(UserWarning, match=r"new categories of job \(1\)"):
        model.partial_fit(rows[:1].assign(job="pilot"), rich[:1])


def test_a_grid_search_over_a_pipeline_takes_tables(
    census: tuple[pd.DataFrame, pd.Series],
) -> None:
    rows, rich = census
    grid = {"model__budget": [20, 50], "model__table": [None, {"missing": "mean"}]}
    pipeline = Pipeline([("columns", "passthrough"), ("model", OnlineKernelClassifier())])
    search = GridSearchCV(pipeline, grid, cv=3).fit(rows, rich)
    assert search.best_score_ > 0.6
    assert search.predict(rows).tolist() == search.best_estimator_.predict(rows).tolist()


def test_options_of_tables_are_those_of_the_command_line(
    ahpatron: Ahpatron, census: tuple[pd.DataFrame, pd.Series]
) -> None:
    rows, rich = census
    rows = rows.assign(age=rows["age"].fillna(30).astype(int) // 20)
    rows.assign(rich=rich).to_csv(ahpatron.folder / "t.csv", index=False)
    words = ("--missing", "mean", "--category", "age", "--drop", "since")
    ahpatron.succeed("run", "t.csv", "--label", "rich", *words, "--save", "t.npz")
    table = {"missing": "mean", "category": ["age"], "drop": ["since"]}
    model = OnlineKernelClassifier(table=table).fit(rows, rich)
    loaded = OnlineKernelClassifier.load(ahpatron.folder / "t.npz")
    assert loaded.table == table
    assert model.schema_ is not None
    assert loaded.schema_ is not None
    assert model.schema_.columns == loaded.schema_.columns
    again = clone(loaded).fit(rows, rich)
    assert again.schema_.columns == model.schema_.columns


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"gaps": "mean"}, "table has no option 'gaps': one of missing, category, drop"),
        ({"missing": "median"}, "missing must be one of"),
        ({"category": ["jobs"]}, "no column has the name 'jobs'"),
    ],
)
def test_faulty_options_of_tables_are_refused(
    census: tuple[pd.DataFrame, pd.Series], table: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        OnlineKernelClassifier(table=table).fit(*census)


def test_a_clone_says_what_it_does_not_keep(ahpatron: Ahpatron) -> None:
    options = ("--label", "fraud", "--scale", "standard", "-l", "arow")
    ahpatron.succeed("run", SAMPLES / "payments.csv", *options, "--save", "p.npz")
    loaded = OnlineKernelClassifier.load(ahpatron.folder / "p.npz")
    with pytest.warns(UserWarning, match="clone do not keep --scale standard"):
        clone(loaded)
    with pytest.warns(UserWarning, match="clone do not keep --scale standard"):
        loaded.fit(PAYMENTS.drop(columns="fraud"), PAYMENTS["fraud"])


def test_a_clone_leaves_out_the_ids_of_a_model_of_the_shell(ahpatron: Ahpatron) -> None:
    rows = PAYMENTS.assign(number=[f"P{i}" for i in range(len(PAYMENTS))])
    rows.to_csv(ahpatron.folder / "t.csv", index=False)
    options = ("--label", "fraud", "--positive", "yes", "--id", "number")
    counted = ahpatron.run("t.csv", *options, "--save", "t.npz")
    loaded = OnlineKernelClassifier.load(ahpatron.folder / "t.npz")
    with pytest.warns(UserWarning, match="positive"):
        again = clone(loaded)
    again.fit(rows.drop(columns="fraud"), rows["fraud"])
    assert again.mistakes_ == counted["mistakes"]


def test_misspelt_columns_of_the_options_are_named(
    census: tuple[pd.DataFrame, pd.Series],
) -> None:
    with pytest.raises(ValueError, match="no column has the name 'Job': did you mean job"):
        OnlineKernelClassifier(table={"category": ["Job"]}).fit(*census)
    with pytest.warns(UserWarning, match="drops 'since_'.*did you mean since"):
        OnlineKernelClassifier(table={"drop": ["since_"]}).fit(*census)


def test_text_in_columns_without_names_is_refused_with_what_names_them() -> None:
    rows = pd.DataFrame([["a", 1], ["b", 2]] * 30)
    with pytest.raises(ValueError, match=r"X\.columns = X\.columns\.astype\(str\)"):
        OnlineKernelClassifier().fit(rows, [0, 1] * 30)
    rows.columns = rows.columns.astype(str)
    OnlineKernelClassifier().fit(rows, [0, 1] * 30)
    OnlineKernelClassifier().fit([{0: "a", 1: 1}, {0: "b", 1: 2}] * 30, [0, 1] * 30)


def test_nested_dicts_and_lists_have_columns_of_their_own() -> None:
    rows = [{"at": {"x": i, "y": [i % 2, -i]}, "kind": "ab"[i % 2]} for i in range(20)]
    model = OnlineKernelClassifier().fit(rows, [i % 2 for i in range(20)])
    assert model.feature_names_in_.tolist() == ["at.x", "at.y.0", "at.y.1", "kind"]
    assert model.schema_ is not None
    assert model.schema_.features == ["at.x", "at.y.0", "at.y.1", "kind=a", "kind=b"]


@pytest.mark.parametrize(
    ("cells", "ways"),
    [
        ([f"text {i}" for i in range(60)], ['table={"drop": ["my column"]}']),
        ([f"{i},5" for i in range(60)], ['table={"decimal": ","}', 'table={"drop":']),
        ([*range(59), "n.a."], ['table={"na": ["n.a."]}', 'table={"drop":']),
        ([*range(59), "don't"], ['table={"na": ["don\'t"]}']),
        (["1/2/2023"] * 60, ['"date_format": "DD/MM/YYYY"', '"date_format": "MM/DD/YYYY"']),
        ([1 + 2j] * 60, ['table={"drop": ["my column"]}']),
        ([[1]] * 59 + [2], ['table={"drop": ["my column"]}']),
    ],
    ids=["text", "decimal commas", "marker", "quote", "dates", "complex", "lists"],
)
def test_the_error_of_a_column_names_options_with_which_fit_takes_it(
    cells: list[Any], ways: list[str]
) -> None:
    rows = pd.DataFrame({"n": range(60), "my column": cells})
    labels = [0, 1] * 30
    with pytest.raises(ValueError, match="column 'my column'") as refused:
        OnlineKernelClassifier().fit(rows, labels)
    said = str(refused.value)
    assert all(way in said for way in ways)
    for option in re.findall(r"table=(\{.*?\})", said):
        OnlineKernelClassifier(table=json.loads(option)).fit(rows, labels)


@pytest.mark.parametrize(
    "rows",
    [[["a", 1], ["b", 2]] * 30, np.array([["a", 1], ["b", 2]] * 30, dtype=object)],
    ids=["lists", "array"],
)
def test_text_in_an_array_is_refused_with_what_takes_text(rows: Any) -> None:
    labels = [0, 1] * 30
    with pytest.raises(ValueError, match=r"float: .*'a'.* text in a DataFrame or a list of dicts"):
        OnlineKernelClassifier().fit(rows, labels)
    OnlineKernelClassifier().fit(pd.DataFrame(rows, columns=["x", "y"]), labels)
    numbers = OnlineKernelClassifier().fit(np.ones((60, 2)), labels)
    with pytest.raises(ValueError, match="numbers only, as in fit"):
        numbers.predict(rows)


def test_truth_values_beside_numbers_are_text_of_their_own() -> None:
    rows = pd.DataFrame({"mixed": [True, 1, "a", False, 0, "a"] * 10})
    model = OnlineKernelClassifier(table={"category": ["mixed"]}).fit(rows, [0, 1] * 30)
    assert model.schema_ is not None
    assert model.schema_.columns[0].categories == ["0", "1", "False", "True", "a"]
