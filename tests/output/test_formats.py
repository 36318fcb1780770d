"""JSON, JSON lines and CSV: exact numbers, stable names, harmless text."""

import json
import math
from typing import Any

import pytest

from ahpatron_cli import __version__
from ahpatron_cli.output.formats import summary_to_text, to_text
from ahpatron_cli.records import RunRecord
from ahpatron_cli.sweep.summary import SweepSummary, summarise_trials
from support.command import rows_of
from support.golden import matrix
from support.trials import make_document, make_run, make_trial, make_trials, small_sweep

SETTING = {
    "learner",
    "params",
    "repeats",
    "mistake_rate_mean",
    "mistake_rate_sd",
    "margin_updates_mean",
    "support_size_mean",
    "seconds_mean",
    "varied",
    "metric_mean",
    "metric_sd",
    "best_of_learner",
    "best_of_data",
    "difference",
    "compared",
    "finished_permutations",
    "missing_permutations",
    "algorithm",
    "source",
    "machines",
}
DIFFERENCE = {"mean", "se", "orders", "p_value", "p_holm", "more_than_noise"}
DATA = {"limit", "scale", "positive", "shuffled", "max_features", "layout"}


# A run --------------------------------------------------------------------------------------------


def test_json_keeps_every_bit_of_a_float() -> None:
    exact = 0.1 + 0.2
    text = to_text([make_document(make_run(norm=exact, zeta=5e-324))], "json")
    read = json.loads(text)["runs"][0]
    assert read["norm"] == exact
    assert read["zeta"] == 5e-324


def test_nan_is_not_written_as_json() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_text([make_document(make_run(norm=math.nan))], "json")


@pytest.mark.parametrize(
    "path",
    ["\x1b[31m.svm", "caf\udce9.svm", "ł\n.svm", "a\u202eb"],
    ids=["an escape sequence", "a byte that is no UTF-8", "a line break", "a change of direction"],
)
def test_json_is_plain_ascii_and_reads_back(path: str) -> None:
    text = to_text([make_document(path=path)], "json")
    assert text.isascii()
    assert json.loads(text)["data"]["path"] == path


def csv_row(*runs: RunRecord, path: str = "a.svm") -> dict[str, str]:
    """The first row that a CSV reader finds."""
    return rows_of(to_text([make_document(*runs, path=path)], "csv"))[0]


@pytest.mark.parametrize(
    ("path", "shown"),
    [('a,"b".svm', 'a,"b".svm'), ("\x1b\r\n=", r"\x1b\r\n=")],
    ids=["comma and quotes", "control characters"],
)
def test_names_in_csv_are_quoted(path: str, shown: str) -> None:
    assert csv_row(path=path)["data"] == shown


@pytest.mark.parametrize("start", "=+-@")
def test_no_text_in_csv_is_a_formula(start: str) -> None:
    run = make_run(start + "x", params={"selection": start + "y"})
    row = csv_row(run, path=start + "1.svm")
    assert row["data"] == f"'{start}1.svm"
    assert row["learner"] == f"'{start}x"
    assert row["param_selection"] == f"'{start}y"


def test_negative_and_infinite_numbers_in_csv_are_numbers() -> None:
    params = {"shift": -1.5, "low": -math.inf, "high": math.inf}
    row = csv_row(make_run(norm=-0.25, params=params))
    assert [row[f"param_{name}"] for name in params] == ["-1.5", "-inf", "inf"]
    assert row["norm"] == "-0.25"


# A sweep ------------------------------------------------------------------------------------------

INFINITE = {"budget": 400, "radius": math.inf}
FAILED = make_trial("avp", None, params=INFINITE, error="no memory")


@pytest.fixture
def summary() -> SweepSummary:
    """Two learners with one setting each, and a trial that failed."""
    first = make_trials("ahpatron", [0.1, 0.1 + 0.2], **INFINITE)
    second = make_trials("avp", [0.5, 0.7])
    return summarise_trials([*first, *second, FAILED], [{"version": "0.0.9"}])


@pytest.fixture
def document(summary: SweepSummary) -> dict[str, Any]:
    return dict(json.loads(summary_to_text(summary, "json")))


def test_the_document_of_a_sweep_has_these_fields(document: dict[str, Any]) -> None:
    del document["datasets"]
    del document["failed"]
    assert document == {
        "schema": 1,
        "version": __version__,
        "metric": "mistake_rate",
        "tune_orders": 0,
        "matrix": None,
        "trials": 4,
        "origins": [{"version": "0.0.9"}],
    }


def test_failed_trials_are_in_the_document_with_their_error(document: dict[str, Any]) -> None:
    assert document["failed"] == [
        {
            "id": FAILED.id,
            "data": "a.svm",
            "learner": "avp",
            "seed": 0,
            "repeat": 0,
            "params": {"budget": 400, "radius": "inf"},
            "error": "no memory",
        }
    ]


def test_the_document_describes_the_data(document: dict[str, Any]) -> None:
    (data,) = document["datasets"]
    named = {"path", "rounds", "features", "labels", "sha256", "label_names"}
    assert set(data["data"]) >= named | DATA


def test_each_setting_of_the_document_has_these_fields(document: dict[str, Any]) -> None:
    first, second = document["datasets"][0]["settings"]
    assert set(first) == SETTING
    assert set(second["difference"]) == DIFFERENCE


def test_means_in_the_document_have_all_digits(
    summary: SweepSummary, document: dict[str, Any]
) -> None:
    first, _ = document["datasets"][0]["settings"]
    assert first["metric_mean"] == summary.datasets[0].settings[0].mean


def test_the_best_setting_has_no_difference_to_the_best(document: dict[str, Any]) -> None:
    first, _ = document["datasets"][0]["settings"]
    assert first["difference"] is None


def test_the_only_setting_of_a_learner_is_its_best(document: dict[str, Any]) -> None:
    _, second = document["datasets"][0]["settings"]
    assert second["best_of_learner"] is True
    assert second["best_of_data"] is False


def test_best_settings_are_those_of_the_list_with_a_verdict(document: dict[str, Any]) -> None:
    (data,) = document["datasets"]
    first, second = data["settings"]
    assert data["best"] == [first | {"verdict": "best"}, second | {"verdict": "worse"}]


def test_json_lines_of_a_sweep_are_its_settings() -> None:
    summary = summarise_trials(small_sweep())
    lines = [json.loads(line) for line in summary_to_text(summary, "jsonl").splitlines()]
    (data,) = json.loads(summary_to_text(summary, "json"))["datasets"]
    assert [{name: line[name] for name in SETTING} for line in lines] == data["settings"]


def test_csv_of_a_sweep_has_a_column_per_field_and_parameter() -> None:
    rows = rows_of(summary_to_text(summarise_trials(small_sweep()), "csv"))
    flat = SETTING - {"params", "varied", "difference"}
    parameters = {"param_budget", "param_epsilon"}
    differences = {f"difference_{name}" for name in DIFFERENCE}
    assert set(rows[0]) == {"data", "sha256"} | DATA | flat | parameters | differences


def test_csv_of_a_sweep_leaves_parameters_empty_that_a_learner_lacks() -> None:
    rows = rows_of(summary_to_text(summarise_trials(small_sweep()), "csv"))
    assert [row["param_budget"] for row in rows] == ["400", "400", "", ""]


def test_csv_of_a_sweep_has_all_digits() -> None:
    summary = summarise_trials(small_sweep())
    lines = [json.loads(line) for line in summary_to_text(summary, "jsonl").splitlines()]
    rows = rows_of(summary_to_text(summary, "csv"))
    assert [float(row["metric_mean"]) for row in rows] == [line["metric_mean"] for line in lines]


# A matrix -----------------------------------------------------------------------------------------


def test_the_matrix_in_json_has_means_verdicts_and_ranks() -> None:
    """The third learner was not run on the second data set, and so has no rank."""
    found = json.loads(summary_to_text(matrix(), "json"))["matrix"]
    assert found["learners"] == ["ahpatron", "avp", "perceptron"]
    assert found["mean"][2] == [pytest.approx(0.14), None, pytest.approx(0.14)]
    assert found["verdict"][1:] == [["worse", "best", "worse"], ["worse", None, "worse"]]
    assert found["mean_ranks"] == [pytest.approx(4 / 3), pytest.approx(5 / 3), None]


def test_the_matrix_in_csv_has_a_row_per_learner_and_empty_cells() -> None:
    rows = rows_of(summary_to_text(matrix(), "csv", only_matrix=True))
    assert [row["learner"] for row in rows] == ["ahpatron", "avp", "perceptron"]
    assert rows[2]["a"] == "0.14"
    assert rows[2]["b"] == ""
    assert rows[2]["b verdict"] == ""


def test_the_matrix_in_json_lines_has_the_means_of_the_document() -> None:
    found = json.loads(summary_to_text(matrix(), "json"))["matrix"]
    lines = summary_to_text(matrix(), "jsonl", only_matrix=True).splitlines()
    assert [json.loads(line)["a"] for line in lines] == [row[0] for row in found["mean"]]
