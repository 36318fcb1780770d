"""Six tables: metron from the shell and from DataFrames, beside batch learners of scikit-learn.

    python tests/benchmarks/tables.py

Each learner is trained on the first 70 % of the rows and predicts the last 30 %, unchanged: error,
AUC, average precision (AP) and Brier score. metron makes one pass with its defaults; its mistakes
in that pass are counted by `ahpatron run` on a CSV file and by `fit` on the DataFrame, and must be
equal. Gradient boosting has the columns of text as categories; logistic regression has them as
one feature per category, with standardised numbers and means for missing cells. Dates are days.

`wine`, `cancer` and `digits` are bundled with scikit-learn (shuffled once); `payments` is in
sample_data; `visits` (categories, dates, missing cells) and `rare` (3 % positive) are made here.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from common import AHPATRON, SAMPLES
from sklearn.base import BaseEstimator
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, brier_score_loss, roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from ahpatron_cli import OnlineKernelClassifier

SHARE = 0.7
Table = tuple[str, pd.DataFrame, pd.Series]


def tables() -> Iterator[Table]:
    rng = np.random.default_rng(0)
    for name, bunch, positive in (
        ("wine", load_wine(as_frame=True), lambda y: y == 1),
        ("cancer", load_breast_cancer(as_frame=True), lambda y: y == 1),
        ("digits", load_digits(as_frame=True), lambda y: y >= 5),
    ):
        order = rng.permutation(len(bunch.data))
        rows = bunch.data.iloc[order].reset_index(drop=True)
        yield name, rows, words(positive(bunch.target.to_numpy()[order]))
    payments = pd.read_csv(SAMPLES / "payments.csv")
    yield "payments", payments.drop(columns="fraud"), payments["fraud"]
    yield "visits", *visits(rng, 10_000)
    yield "rare", *rare(rng, 20_000)


def words(positive: np.ndarray) -> pd.Series:
    return pd.Series(np.where(positive, "yes", "no"))


def visits(rng: np.random.Generator, count: int) -> tuple[pd.DataFrame, pd.Series]:
    """Numbers, categories (one with 200), a date, a boolean, and missing cells."""
    city = rng.integers(0, 200, count)
    job = rng.choice(["boss", "clerk", "nurse", "pilot", "retired"], count)
    age = rng.normal(45, 15, count).round()
    since = rng.integers(0, 900, count)
    member = rng.random(count) < 0.4
    liking = rng.normal(0, 1, 200)[city] + (job == "retired") * (age - 45) / 10
    liking += np.cos(since / 58) + member - 0.5 + rng.logistic(0, 0.5, count)
    rows = pd.DataFrame(
        {
            "age": np.where(rng.random(count) < 0.1, np.nan, age),
            "job": np.where(rng.random(count) < 0.05, None, job),
            "city": [f"city {number}" for number in city],
            "since": pd.Timestamp("2024-01-01") + pd.to_timedelta(since, "D"),
            "member": member,
        }
    )
    return rows, words(liking > 0.5)


def rare(rng: np.random.Generator, count: int) -> tuple[pd.DataFrame, pd.Series]:
    """3 % of positive rows, in numbers of different units and a category."""
    amount = rng.lognormal(3, 1, count)
    hour = rng.integers(0, 24, count)
    kind = rng.choice(["chip", "web", "phone"], count)
    risk = np.log(amount) + 2 * (kind == "web") * (hour < 6) + rng.logistic(0, 0.4, count)
    rows = pd.DataFrame({"amount": amount.round(2), "hour": hour, "kind": kind})
    return rows, words(risk > np.quantile(risk, 0.97))


def boosting(rows: pd.DataFrame) -> BaseEstimator:
    is_text = [not pd.api.types.is_numeric_dtype(kind) for kind in rows.dtypes]
    return HistGradientBoostingClassifier(categorical_features=is_text, random_state=0)


def regression(rows: pd.DataFrame) -> BaseEstimator:
    text = [name for name in rows if not pd.api.types.is_numeric_dtype(rows[name])]
    numbers = [name for name in rows if name not in text]
    scaled = make_pipeline(SimpleImputer(), StandardScaler())
    coded = OneHotEncoder(handle_unknown="ignore")
    columns = ColumnTransformer([("numbers", scaled, numbers), ("text", coded, text)])
    return make_pipeline(columns, LogisticRegression(max_iter=1000))


def days_for_dates(rows: pd.DataFrame) -> pd.DataFrame:
    """What the batch learners are given: dates as days, text and booleans as categories."""
    ready = rows.copy()
    for name in rows:
        if pd.api.types.is_datetime64_any_dtype(rows[name]):
            ready[name] = (rows[name] - pd.Timestamp("1970-01-01")).dt.days
        elif not pd.api.types.is_numeric_dtype(rows[name]) or rows[name].dtype == bool:
            ready[name] = rows[name].astype(str).astype("category")
    return ready


def mistakes_of_run(rows: pd.DataFrame, labels: pd.Series) -> int:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "t.csv"
        rows.assign(label=labels).to_csv(path, index=False)
        command = [*AHPATRON, "run", str(path), "--label", "label", "--positive", "yes"]
        command += ["-l", "metron", "--format", "json", "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        mistakes: int = json.loads(done.stdout)["runs"][0]["mistakes"]
        return mistakes


def main() -> None:
    heading = "table       rows  positive  learner     mistakes (run, fit)"
    print(f"{heading} error %    AUC     AP   Brier")
    for name, rows, labels in tables():
        cut = int(SHARE * len(rows))
        model = OnlineKernelClassifier().fit(rows[:cut], labels[:cut])
        counted = mistakes_of_run(rows[:cut], labels[:cut])
        assert counted == model.mistakes_, (name, counted, model.mistakes_)
        ready = days_for_dates(rows)
        others = {"boosting": boosting(ready), "regression": regression(ready)}
        for other in others.values():
            other.fit(ready[:cut], labels[:cut])
        for learner, fitted in {"metron": model, **others}.items():
            own = rows if learner == "metron" else ready
            truth = labels[cut:] == "yes"
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                predicted = fitted.predict(own[cut:])
                share = fitted.predict_proba(own[cut:])[:, 1]
            mistakes = f"{counted:,}, {model.mistakes_:,}" if learner == "metron" else ""
            figures = (
                f"{100 * np.mean((predicted == 'yes') != truth):7.2f}  "
                f"{roc_auc_score(truth, share):.3f}  {average_precision_score(truth, share):.3f}  "
                f"{brier_score_loss(truth, share):.4f}"
            )
            first = f"{name:9} {len(rows):6,}  {100 * np.mean(labels == 'yes'):6.1f} %"
            print(f"{first}  {learner:10} {mistakes:>20} {figures}", flush=True)


if __name__ == "__main__":
    main()
