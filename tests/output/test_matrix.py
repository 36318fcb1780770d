"""Learners x data sets, in every format, with every gap and mark."""

from __future__ import annotations

import csv
import io
import json
import re

import pytest
from rich.console import Console

from ahpatron_cli.output.formats import findings_to_text
from ahpatron_cli.output.html_report import to_html
from ahpatron_cli.output.sweep_table import findings_page
from ahpatron_cli.output.terminal import print_page
from ahpatron_cli.sweep.summary import METRICS, Criterion, Findings, TrialRecord, find
from support.trials import make_data, make_trial, make_trials

A, B, C = (make_data(f"d/{name}.svm.gz", sha256=name) for name in "abc")


def trials() -> list[TrialRecord]:
    return [
        *make_trials("ahpatron", [0.09, 0.10, 0.11], A),
        *make_trials("ahpatron", [0.0900, 0.0910, 0.0920], B),
        *make_trials("ahpatron", [0.09, 0.10, 0.11], C),
        *make_trials("avp", [0.110, 0.120, 0.131], A),
        *make_trials("avp", [0.0910, 0.0900, 0.0890], B),
        *make_trials("avp", [0.12, 0.13, 0.14], C),
        *make_trials("perceptron", [0.13, 0.14, 0.15], A),
        *make_trials("perceptron", [0.13, 0.14, 0.15], C),
    ]


@pytest.fixture
def findings() -> Findings:
    return find(trials())


def matrix(text: str) -> list[list[str]]:
    """The cells of the first table."""
    lines = text.split("\n\n")[0].splitlines()[1:]
    return [re.split(r" {2,}", line.strip()) for line in lines if "──" not in line]


def test_the_matrix_comes_first(findings: Findings) -> None:
    text = findings_to_text(findings, "table")
    assert matrix(text) == [
        ["Learner", "a", "b", "c", "Rank"],
        ["ahpatron", "*10.00 ± 1.00", "9.10 ± 0.10≈", "*10.00 ± 1.00", "1.33"],
        ["avp", "12.03 ± 1.05•", "*9.00 ± 0.10", "13.00 ± 1.00•", "1.67"],
        ["perceptron", "14.00 ± 1.00•", "–", "14.00 ± 1.00•", "–"],
    ]
    assert "Rank: mean rank over the data sets of the learners that were played on all" in text
    assert "• significantly worse than the best, ≈ not significantly worse: paired t-test" in text
    assert "(*) the best of its column" in text
    only = findings_to_text(findings, "table", only_matrix=True)
    assert text.startswith(only.split("\n\n")[0])
    assert "d/a.svm" not in only


def test_numbers_line_up(findings: Findings) -> None:
    head, _, first, second, _ = findings_to_text(findings, "table").splitlines()[1:6]
    assert first.index("±") == second.index("±")
    assert head.index("Rank") == first.index("1.33")


def test_40_columns_show_it_in_blocks(findings: Findings, terminal: io.StringIO) -> None:
    print_page(findings_page(findings, only_matrix=True), Console(file=terminal, width=40))
    text = re.sub(r"\x1b\[[0-9;]*m", "", terminal.getvalue())
    assert max(map(len, text.splitlines())) <= 40
    heads = [line.split() for line in text.splitlines() if line.startswith("Learner")]
    assert heads == [["Learner", "a"], ["Learner", "b"], ["Learner", "c", "Rank"]]
    assert text.count("perceptron") == 3


def test_latex_and_markdown_show_the_best_in_bold_alone(findings: Findings) -> None:
    latex = findings_to_text(findings, "latex", only_matrix=True)
    assert r"\begin{tabular}{lrrrr}" in latex
    assert (
        r"ahpatron & \textbf{10.00} $\pm$ 1.00\phantom{$\bullet$} & 9.10 $\pm$ 0.10$\approx$"
        in latex
    )
    assert r"avp & 12.03 $\pm$ 1.05$\bullet$ & \textbf{9.00}" in latex
    markdown = findings_to_text(findings, "markdown", only_matrix=True)
    assert "| perceptron | 14.00 ± 1.00 • | – | 14.00 ± 1.00 • | – |" in markdown
    assert "Bold: the best of its column." in markdown
    assert not set("*") & set(latex)
    assert latex.isascii()


def test_many_data_sets_are_parted_evenly_in_latex() -> None:
    many = [
        one
        for number in range(11)
        for name in ("avp", "ahpatron")
        for one in make_trials(name, [0.1, 0.2], make_data(f"{number}.svm", sha256=f"{number}"))
    ]
    latex = findings_to_text(find(many), "latex", only_matrix=True)
    # 11 data sets and the rank
    assert re.findall(r"tabular}{(l[r]*)}", latex) == ["lrrrr"] * 3


def test_json_and_csv(findings: Findings) -> None:
    document = json.loads(findings_to_text(findings, "json"))["matrix"]
    assert document["learners"] == ["ahpatron", "avp", "perceptron"]
    assert document["mean"][2] == [pytest.approx(0.14), None, pytest.approx(0.14)]
    assert document["verdict"] == [
        ["best", "n.s.", "best"],
        ["worse", "best", "worse"],
        ["worse", None, "worse"],
    ]
    assert document["mean_ranks"] == [pytest.approx(4 / 3), pytest.approx(5 / 3), None]
    text = findings_to_text(findings, "csv", only_matrix=True)
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["learner"] for row in rows] == document["learners"]
    assert (rows[2]["a"], rows[2]["b"], rows[2]["b verdict"]) == ("0.14", "", "")
    lines = findings_to_text(findings, "jsonl", only_matrix=True).splitlines()
    assert [json.loads(line)["a"] for line in lines] == [row[0] for row in document["mean"]]


def test_it_is_at_the_top_of_the_page(findings: Findings) -> None:
    page = to_html(findings)
    assert page.index("14.00 ± 1.00") < page.index("<main>")
    assert "≈" in page


def test_verdicts_are_corrected_for_the_number_of_learners() -> None:
    # gaps 1, 2, 3, 4.4 of a hundred: p = 0.03 on its own, and 0.06 of two
    best, gaps = [0.1, 0.1, 0.1, 0.1], [0.01, 0.02, 0.03, 0.044]
    rival = [rate + gap for rate, gap in zip(best, gaps, strict=True)]
    alone = find([*make_trials("avp", best), *make_trials("rbp", rival)])
    (data,) = alone.datasets
    assert [data.verdict(one) for one in data.best] == ["best", "worse"]
    both = find(
        [*make_trials("avp", best), *make_trials("rbp", rival), *make_trials("fogd", rival)]
    )
    (data,) = both.datasets
    assert [data.verdict(one) for one in data.best] == ["best", "n.s.", "n.s."]
    first, second = (one.difference for one in data.best[1:])
    assert first is not None
    assert second is not None
    assert first.p_holm == pytest.approx(2 * (first.p_value or 0))


def test_a_metric_that_is_better_when_larger() -> None:
    def one(learner: str, repeat: int, hits: int) -> TrialRecord:
        counts = {"true_positives": hits, "false_negatives": 100 - hits}
        counts |= {"false_positives": 10, "true_negatives": 890}
        return make_trial(learner, 0.1, repeat, **counts)

    played = [
        one(*which) for which in (("avp", 0, 50), ("avp", 1, 52), ("rbp", 0, 80), ("rbp", 1, 82))
    ]
    found = find(played, criterion=Criterion(METRICS["recall"]))
    (data,) = found.datasets
    assert data.winner.learner == "rbp"
    assert [round(setting.mean, 2) for setting in data.best] == [0.51, 0.81]
    assert [data.verdict(setting) for setting in data.best] == ["worse", "best"]
    text = findings_to_text(found, "table")
    assert re.search(r"Recall % +AMR % +vs best", text)
    assert re.search(r"81.00 ± 1.41 +10.00 ± 0.00", text)
    kappa = findings_to_text(find(played, criterion=Criterion(METRICS["kappa"])), "table")
    assert re.search(r"rbp +0\.8\d\d\d ± 0\.0\d\d\d ", kappa)


def test_settings_chosen_on_other_orders() -> None:
    played = [
        *make_trials("avp", [0.10, 0.10, 0.30, 0.32], epsilon=0.5),  # best where it is chosen
        *make_trials("avp", [0.20, 0.20, 0.20, 0.22], epsilon=0.6),
        *make_trials("rbp", [0.15, 0.15, 0.25, 0.25]),
    ]
    hindsight = findings_to_text(find(played), "table")
    assert "hindsight" in hindsight
    tuned = find(played, criterion=Criterion(tune_orders=2))
    (data,) = tuned.datasets
    assert [(one.learner, one.label, round(one.mean, 3)) for one in data.best] == [
        ("avp", "epsilon=0.5", 0.31),
        ("rbp", "", 0.25),
    ]
    assert data.winner.learner == "rbp"
    assert [one.summary.repeats for one in data.settings] == [2, 2, 2]
    text = findings_to_text(tuned, "table")
    assert "hindsight" not in text
    assert "was chosen on 2 orders, and the best are shown on others" in text
    assert "was chosen on 2 orders that do not count here" in findings_to_text(tuned, "markdown")
    for rows in (
        [json.loads(line) for line in findings_to_text(tuned, "jsonl").splitlines()],
        list(csv.DictReader(io.StringIO(findings_to_text(tuned, "csv")))),
    ):
        shown = [(row["learner"], int(row["repeats"]), float(row["metric_mean"])) for row in rows]
        assert shown == [("avp", 2, data.best[0].mean), ("rbp", 2, 0.25)]
        assert [json.loads(str(row["best_of_data"]).lower()) for row in rows] == [False, True]
    (document,) = json.loads(findings_to_text(tuned, "json"))["datasets"]
    assert [one["best_of_data"] for one in document["settings"]] == [False, False, True]
    assert [one["best_of_data"] for one in document["best"]] == [False, True]
    alone = find(played[:8], criterion=Criterion(tune_orders=1))
    markdown = findings_to_text(alone, "markdown")
    assert "24.00 ± 12.17" in markdown
    assert "was chosen on 1 order that does not count here" in markdown


def test_short_names_drop_what_all_have_in_common() -> None:
    def data(name: str, **changes: object) -> list[TrialRecord]:
        return make_trials("avp", [0.1], make_data(name, sha256=f"{name}{changes}", **changes))

    def heads(*trials: list[TrialRecord]) -> list[str]:
        return [found.short for found in find([one for some in trials for one in some]).datasets]

    assert heads(data("a.svm.xz", limit=9), data("b.txt", limit=9)) == ["a", "b"]
    assert heads(data("a.svm", limit=9), data("a.svm", limit=8)) == ["a, limit=9", "a, limit=8"]
    assert heads(data("a.svm"), data("a.txt")) == ["a.svm", "a.txt"]
    assert heads(data(".svm"), data("x/.svm")) == [".svm", "x/.svm"]


def test_hostile_names_of_data_do_nothing() -> None:
    name = "\x1b[31m[red]\n|&_\\input{x}\u202e"
    data = [make_data(f"{name}{number}", sha256=f"{number}") for number in range(2)]
    found = find([one for some in data for one in make_trials("avp", [0.1], some)])
    for format in ("table", "markdown", "latex", "csv", "json", "jsonl"):
        text = findings_to_text(found, format, only_matrix=True)
        assert not set(text) & set("\x1b\u202e\r")
        assert not re.search(r"(?<!textbackslash\{\})(?<!\\)\\input\{x", text) or format != "latex"
