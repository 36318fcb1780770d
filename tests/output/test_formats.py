import csv
import io
import json
import math

import pytest

from ahpatron_cli.output.formats import FORMATS, to_text
from ahpatron_cli.records import Report, to_json
from support.trials import make_report, make_run

ONE_REPORT = """\
{
  "schema": 1,
  "version": "0.1.0",
  "data": {
    "path": "a.svm",
    "rounds": 1000,
    "features": 18,
    "labels": [
      -1,
      1
    ],
    "sha256": "c0ffee"
  },
  "runs": [
    {
      "learner": "ahpatron",
      "params": {
        "budget": 400,
        "epsilon": 0.5
      },
      "seed": 0,
      "repeat": 0,
      "rounds": 1000,
      "mistakes": 112,
      "mistake_rate": 0.112,
      "margin_updates": 50,
      "updates": 162,
      "halvings": 3,
      "zeta": 0.01234,
      "support_size": 314,
      "norm": 1.5,
      "near_ties": 0,
      "seconds": 0.0512,
      "true_positives": null,
      "false_positives": null,
      "true_negatives": null,
      "false_negatives": null,
      "baseline_mistakes": null,
      "this_file": null,
      "restarts": null
    }
  ],
  "summary": [
    {
      "learner": "ahpatron",
      "params": {
        "budget": 400,
        "epsilon": 0.5
      },
      "repeats": 1,
      "mistake_rate_mean": 0.112,
      "mistake_rate_sd": null,
      "margin_updates_mean": 50.0,
      "support_size_mean": 314.0,
      "seconds_mean": 0.0512
    }
  ],
  "load_seconds": 0.25
}
"""

JSONL = (
    '{"data": "a.svm", "learner": "ahpatron", "params": {"budget": 400, "epsilon": 0.5}, '
    '"seed": 0, "repeat": 0, "rounds": 1000, "mistakes": 112, "mistake_rate": 0.112, '
    '"margin_updates": 50, "updates": 162, "halvings": 3, "zeta": 0.01234, "support_size": 314, '
    '"norm": 1.5, "near_ties": 0, "seconds": 0.0512, '
    '"true_positives": null, "false_positives": null, "true_negatives": null, '
    '"false_negatives": null, "baseline_mistakes": null, "this_file": null, '
    '"restarts": null}\n'
    '{"data": "a.svm", "learner": "perceptron", "params": {"sigma": 1.0}, '
    '"seed": 0, "repeat": 0, "rounds": 1000, "mistakes": 140, "mistake_rate": 0.14, '
    '"margin_updates": 0, "updates": 162, "halvings": null, "zeta": null, "support_size": 2325, '
    '"norm": 1.5, "near_ties": 0, "seconds": 0.0512, '
    '"true_positives": null, "false_positives": null, "true_negatives": null, '
    '"false_negatives": null, "baseline_mistakes": null, "this_file": null, '
    '"restarts": null}\n'
)

CSV = """\
data,learner,seed,repeat,rounds,mistakes,mistake_rate,margin_updates,updates,halvings,zeta,\
support_size,norm,near_ties,seconds,true_positives,false_positives,true_negatives,\
false_negatives,baseline_mistakes,restarts,param_budget,param_epsilon,param_sigma
a.svm,ahpatron,0,0,1000,112,0.112,50,162,3,0.01234,314,1.5,0,0.0512,,,,,,,400,0.5,
a.svm,perceptron,0,0,1000,140,0.14,0,162,,,2325,1.5,0,0.0512,,,,,,,,,1.0
"""


def rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_json_of_one_file_is_the_report() -> None:
    assert to_text([make_report()], "json") == ONE_REPORT


def test_json_of_several_files_is_one_array(two_learners: Report) -> None:
    text = to_text([make_report(), two_learners], "json")
    assert json.loads(text) == [to_json(make_report()), to_json(two_learners)]


def test_json_keeps_every_bit_of_a_float() -> None:
    exact = 0.1 + 0.2
    text = to_text([make_report(make_run(norm=exact, zeta=5e-324))], "json")
    read = json.loads(text)["runs"][0]
    assert (read["norm"], read["zeta"]) == (exact, 5e-324)


def test_json_never_holds_nan() -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        to_text([make_report(make_run(norm=math.nan))], "json")


@pytest.mark.parametrize("path", ["\x1b[31m.svm", "caf\udce9.svm", "ł\n.svm", "a\u202eb"])
def test_json_is_plain_ascii_and_reads_back(path: str) -> None:
    text = to_text([make_report(path=path)], "json")
    assert text.isascii()
    assert "\x1b" not in text
    assert json.loads(text)["data"]["path"] == path


def test_jsonl_is_one_line_per_run(two_learners: Report) -> None:
    assert to_text([two_learners], "jsonl") == JSONL


def test_jsonl_of_several_files_names_each() -> None:
    lines = to_text([make_report(path="a.svm"), make_report(path="b.svm")], "jsonl").splitlines()
    assert [json.loads(line)["data"] for line in lines] == ["a.svm", "b.svm"]


def test_csv_has_the_union_of_the_parameters(two_learners: Report) -> None:
    assert to_text([two_learners], "csv") == CSV


def test_csv_quotes_by_rfc_4180() -> None:
    path = 'a,"b".svm'
    text = to_text([make_report(path=path)], "csv")
    assert '"a,""b"".svm",ahpatron' in text
    assert "\r" not in text
    assert rows(text)[0]["data"] == path


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_csv_text_is_never_a_formula(start: str) -> None:
    text = to_text(
        [
            make_report(
                make_run(start + "x", params={"selection": start + "y"}), path=start + "1+1.svm"
            )
        ],
        "csv",
    )
    row = rows(text)[0]
    assert row["data"] == f"'{start}1+1.svm"
    assert row["learner"] == f"'{start}x"
    assert row["param_selection"] == f"'{start}y"


def test_csv_numbers_keep_their_sign() -> None:
    params = {"shift": -1.5, "low": -math.inf, "high": math.inf}
    row = rows(to_text([make_report(make_run(norm=-0.25, params=params))], "csv"))[0]
    assert row["norm"] == "-0.25"
    assert row["param_shift"] == "-1.5"
    assert (row["param_low"], row["param_high"]) == ("-inf", "inf")


def test_csv_shows_control_characters() -> None:
    row = rows(to_text([make_report(path="\x1b[31m\r\n\t=.svm")], "csv"))[0]
    assert row["data"] == r"\x1b[31m\r\n\t=.svm"


def test_every_format_ends_with_one_newline(two_learners: Report) -> None:
    for name in FORMATS:
        text = to_text([two_learners, two_learners], name)
        assert text.endswith("\n")
        assert not text.endswith("\n\n")


def test_an_unknown_format_is_our_fault() -> None:
    with pytest.raises(ValueError, match="no such format: yaml"):
        to_text([make_report()], "yaml")
