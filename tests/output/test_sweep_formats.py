"""What a sweep found, as scripts and spreadsheets read it."""

import csv
import io
import json
import math

import pytest

from ahpatron_cli import __version__
from ahpatron_cli.output.formats import findings_to_text
from ahpatron_cli.sweep.summary import Findings, find
from support.trials import make_data, make_trial, make_trials, sweep

CSV_COLUMNS = (
    "data,sha256,limit,scale,positive,shuffled,learner,repeats,mistake_rate_mean,"
    "mistake_rate_sd,margin_updates_mean,support_size_mean,seconds_mean,metric_mean,metric_sd,"
    "best_of_learner,best_of_data,difference_mean,difference_se,difference_orders,"
    "difference_p_value,difference_p_holm,difference_more_than_noise,param_budget,param_epsilon"
)


@pytest.fixture
def findings() -> Findings:
    return find(sweep())


def rows(findings: Findings) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(findings_to_text(findings, "csv"))))


def test_json_is_one_document() -> None:
    params = {"budget": 400, "radius": math.inf}
    failed = make_trial("avp", None, params=params, error="no memory")
    trials = [
        *make_trials("ahpatron", [0.1, 0.1 + 0.2], **params),
        *make_trials("avp", [0.5, 0.75]),
        failed,
    ]
    findings = find(trials, [{"version": "0.0.9"}])
    document = json.loads(findings_to_text(findings, "json"))
    settings = document["datasets"][0].pop("settings")
    best = document["datasets"][0].pop("best")
    assert document == {
        "schema": 1,
        "version": __version__,
        "metric": "mistake_rate",
        "tune_orders": 0,
        "matrix": None,
        "trials": 4,
        "failed": [
            {
                "id": failed.id,
                "data": "a.svm",
                "learner": "avp",
                "params": {"budget": 400, "radius": "inf"},
                "seed": 0,
                "repeat": 0,
                "error": "no memory",
            }
        ],
        "datasets": [
            {
                "data": {
                    "path": "a.svm",
                    "rounds": 1000,
                    "features": 18,
                    "labels": [-1, 1],
                    "sha256": "c0ffee",
                    "limit": None,
                    "scale": "none",
                    "positive": None,
                    "shuffled": True,
                }
            }
        ],
        "origins": [{"version": "0.0.9"}],
    }
    first, second = settings
    summary = findings.datasets[0].settings[0].summary
    assert first == {
        "learner": "ahpatron",
        "params": {"budget": 400, "radius": "inf"},
        "varied": {},
        "repeats": 2,
        "mistake_rate_mean": summary.mistake_rate_mean,
        "mistake_rate_sd": summary.mistake_rate_sd,
        "margin_updates_mean": 50.0,
        "support_size_mean": 314.0,
        "seconds_mean": 0.0512,
        "metric_mean": summary.mistake_rate_mean,
        "metric_sd": summary.mistake_rate_sd,
        "best_of_learner": True,
        "best_of_data": True,
        "difference": None,
    }
    difference = findings.datasets[0].settings[1].difference
    assert difference is not None
    assert second["difference"] == vars(difference)
    assert (second["best_of_learner"], second["best_of_data"]) == (True, False)
    assert best == [first | {"verdict": "best"}, second | {"verdict": "worse"}]


def test_infinite_parameters_are_shown_everywhere() -> None:
    findings = find(
        [make_trial("avp", 0.1 + number, params={"radius": radius})
         for number, radius in enumerate((math.inf, 2.0))]
    )  # fmt: skip
    assert "radius=inf" in findings_to_text(findings, "table")
    assert "radius=inf" in findings_to_text(findings, "latex")
    assert rows(findings)[1]["param_radius"] == "inf"
    _, line = findings_to_text(findings, "jsonl").splitlines()
    assert json.loads(line)["varied"] == {"radius": "inf"}


def test_jsonl_is_one_line_per_setting(findings: Findings) -> None:
    lines = [json.loads(line) for line in findings_to_text(findings, "jsonl").splitlines()]
    document = json.loads(findings_to_text(findings, "json"))
    data = {"data": "a.svm", "sha256": "c0ffee", "limit": None, "scale": "none"}
    data |= {"positive": None, "shuffled": True}
    assert lines == [data | setting for setting in document["datasets"][0]["settings"]]


def test_csv_is_one_line_per_setting(findings: Findings) -> None:
    first, _, avp, perceptron = rows(findings)
    assert list(first) == CSV_COLUMNS.split(",")
    assert (first["difference_mean"], first["difference_se"]) == ("", "")
    assert (first["param_budget"], first["param_epsilon"]) == ("400", "0.5")
    assert (avp["param_budget"], avp["best_of_learner"], avp["best_of_data"]) == (
        "",
        "true",
        "false",
    )
    gap = findings.datasets[0].settings[2].difference
    assert gap is not None
    assert float(avp["difference_mean"]) == gap.mean
    assert avp["difference_more_than_noise"] == "false"
    assert perceptron["difference_more_than_noise"] == "true"


def test_csv_text_is_never_a_formula() -> None:
    (row,) = rows(find([make_trial("=cmd()", 0.1, params={"\x1b": "@x"})]))
    assert (row["learner"], row["param_\\x1b"]) == ("'=cmd()", "'@x")


def test_labels_are_shown_as_the_file_means_them() -> None:
    data = make_data(labels=(None, 2.0), positive=2.0, limit=10)
    document = json.loads(findings_to_text(find([make_trial("avp", 0.1, data=data)]), "json"))
    shown = document["datasets"][0]["data"]
    assert (shown["labels"], shown["limit"]) == ([None, 2], 10)
    assert json.dumps(shown["positive"]) == "2"
