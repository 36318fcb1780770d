"""JSON, JSON lines and CSV: exact numbers, stable names, harmless text."""

import json
import math

import pytest

from ahpatron_cli import __version__
from ahpatron_cli.output.formats import summary_to_text, to_text
from ahpatron_cli.sweep.summary import summarise_trials
from support.command import rows_of
from support.golden import matrix
from support.trials import make_report, make_run, make_trial, make_trials, small_sweep

SETTING = (
    *("learner", "params", "repeats", "mistake_rate_mean", "mistake_rate_sd"),
    *("margin_updates_mean", "support_size_mean", "seconds_mean", "varied", "metric_mean"),
    *("metric_sd", "best_of_learner", "best_of_data", "difference", "compared"),
    *("finished_permutations", "missing_permutations", "algorithm", "source"),
)
DIFFERENCE = ("mean", "se", "orders", "p_value", "p_holm", "more_than_noise")
DATA = ("limit", "scale", "positive", "shuffled", "max_features", "layout")


def test_json_keeps_every_bit_of_a_float() -> None:
    exact = 0.1 + 0.2
    text = to_text([make_report(make_run(norm=exact, zeta=5e-324))], "json")
    read = json.loads(text)["runs"][0]
    assert (read["norm"], read["zeta"]) == (exact, 5e-324)
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_text([make_report(make_run(norm=math.nan))], "json")


@pytest.mark.parametrize("path", ["\x1b[31m.svm", "caf\udce9.svm", "ł\n.svm", "a\u202eb"])
def test_json_is_plain_ascii_and_reads_back(path: str) -> None:
    text = to_text([make_report(path=path)], "json")
    assert text.isascii()
    assert json.loads(text)["data"]["path"] == path


def test_csv_is_quoted_and_never_a_formula() -> None:
    for path, shown in {'a,"b".svm': 'a,"b".svm', "\x1b\r\n=": r"\x1b\r\n="}.items():
        assert rows_of(to_text([make_report(path=path)], "csv"))[0]["data"] == shown
    for start in "=+-@":
        run = make_run(start + "x", params={"selection": start + "y"})
        row = rows_of(to_text([make_report(run, path=start + "1.svm")], "csv"))[0]
        shown = row["data"], row["learner"], row["param_selection"]
        assert shown == (f"'{start}1.svm", f"'{start}x", f"'{start}y")
    params = {"shift": -1.5, "low": -math.inf, "high": math.inf}
    row = rows_of(to_text([make_report(make_run(norm=-0.25, params=params))], "csv"))[0]
    assert [row[f"param_{name}"] for name in params] == ["-1.5", "-inf", "inf"]
    assert row["norm"] == "-0.25"


def test_the_document_of_a_sweep() -> None:
    params = {"budget": 400, "radius": math.inf}
    failed = make_trial("avp", None, params=params, error="no memory")
    trials = [*make_trials("ahpatron", [0.1, 0.1 + 0.2], **params), *make_trials("avp", [0.5, 0.7])]
    summary = summarise_trials([*trials, failed], [{"version": "0.0.9"}])
    document = json.loads(summary_to_text(summary, "json"))
    (data,) = document.pop("datasets")
    assert document == {
        **{"schema": 1, "version": __version__, "metric": "mistake_rate", "tune_orders": 0},
        **{"matrix": None, "trials": 4, "origins": [{"version": "0.0.9"}]},
        "failed": [
            {
                **{"id": failed.id, "data": "a.svm", "learner": "avp", "seed": 0, "repeat": 0},
                **{"params": {"budget": 400, "radius": "inf"}, "error": "no memory"},
            }
        ],
    }
    assert set(data["data"]) >= {
        "path",
        "rounds",
        "features",
        "labels",
        "sha256",
        "label_names",
        *DATA,
    }
    first, second = data["settings"]
    assert (set(first), set(second["difference"])) == (set(SETTING), set(DIFFERENCE))
    assert first["metric_mean"] == summary.datasets[0].settings[0].mean
    assert first["difference"] is None
    assert (second["best_of_learner"], second["best_of_data"]) == (True, False)
    assert data["best"] == [first | {"verdict": "best"}, second | {"verdict": "worse"}]


def test_lines_of_a_sweep_are_its_settings() -> None:
    summary = summarise_trials(small_sweep())
    lines = [json.loads(line) for line in summary_to_text(summary, "jsonl").splitlines()]
    (data,) = json.loads(summary_to_text(summary, "json"))["datasets"]
    assert [{name: line[name] for name in SETTING} for line in lines] == data["settings"]
    flat = rows_of(summary_to_text(summary, "csv"))
    nested = {"params", "varied", "difference"}
    names = {"data", "sha256", *DATA, *set(SETTING) - nested, "param_budget", "param_epsilon"}
    assert set(flat[0]) == names | {f"difference_{name}" for name in DIFFERENCE}
    assert [row["param_budget"] for row in flat] == ["400", "400", "", ""]
    assert [float(row["metric_mean"]) for row in flat] == [line["metric_mean"] for line in lines]


def test_the_matrix() -> None:
    document = json.loads(summary_to_text(matrix(), "json"))["matrix"]
    assert document["learners"] == ["ahpatron", "avp", "perceptron"]
    assert document["mean"][2] == [pytest.approx(0.14), None, pytest.approx(0.14)]
    assert document["verdict"][1:] == [["worse", "best", "worse"], ["worse", None, "worse"]]
    assert document["mean_ranks"] == [pytest.approx(4 / 3), pytest.approx(5 / 3), None]
    flat = rows_of(summary_to_text(matrix(), "csv", only_matrix=True))
    assert [row["learner"] for row in flat] == document["learners"]
    assert (flat[2]["a"], flat[2]["b"], flat[2]["b verdict"]) == ("0.14", "", "")
    lines = summary_to_text(matrix(), "jsonl", only_matrix=True).splitlines()
    assert [json.loads(line)["a"] for line in lines] == [row[0] for row in document["mean"]]
