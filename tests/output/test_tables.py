"""Tables: as in the files of golden/, their widths, bold type, hostile names, honest claims."""

import io
import json
import re
from dataclasses import replace

import pytest

from ahpatron_cli.output.formats import FORMATS, summary_to_text, to_text
from ahpatron_cli.output.render import Html, Terminal, print_to
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.sweep_table import summary_page
from ahpatron_cli.output.table import BEST, Cell, Page
from ahpatron_cli.sweep.summary import SweepSummary, summarise_trials
from support.golden import FOLDER, matrix, run_report, swept, texts
from support.terminal import without_style
from support.trials import (
    make_data,
    make_perceptron,
    make_report,
    make_run,
    make_trial,
    make_trials,
    small_sweep,
)

TEXTS = dict(texts())
PAPER = ("table", "markdown", "latex")
HOSTILE = "\x1b[31m[red]\n|&_\\input{x}\u202e\udcff"


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_the_golden_one(name: str) -> None:
    assert TEXTS[name] == (FOLDER / name).read_text(encoding="utf-8")
    assert TEXTS[name].endswith("\n")
    assert not TEXTS[name].endswith("\n\n")


def test_there_is_no_other_golden_file() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(TEXTS)


def headings(text: str, first: str = "Learner") -> list[list[str]]:
    """The headings of each table."""
    lines = [line for line in without_style(text).splitlines() if line.startswith(first)]
    return [re.split(r" {2,}", line) for line in lines]


@pytest.mark.parametrize("width", range(20, 140, 6))
@pytest.mark.parametrize("page", [run_page([run_report()]), summary_page(matrix())])
def test_a_table_fits_its_terminal_or_has_only_its_main_columns(page: Page, width: int) -> None:
    text = Terminal(width).page(page)
    wide = Terminal().page(page)
    shown = [name for names in headings(text) for name in names]
    every = [name for names in headings(wide) for name in names]
    _, told, hidden = re.sub(r"\s+", " ", text).partition("Hidden: terminal too narrow: ")
    assert bool(told) == (len(shown) < len(every))
    assert all(name in hidden for name in set(every) - set(shown))
    tables = [block for block in text.split("\n\n") if "──" in block]
    for block in tables:
        rule = next(line for line in block.splitlines() if line.startswith("──"))
        main = {"Learner", "AMR %", "Made", "Bound", "Setting", "Rank"}
        assert len(rule) <= width or {*headings(block)[0]} <= main


def test_columns_without_a_value_are_not_shown() -> None:
    text = to_text([make_report(make_perceptron())], "table")
    assert headings(text) == [["Learner", "AMR %", "|M_T|", "|N_T|", "Support", "Seconds"]]
    assert "Halvings" in to_text([make_report(make_perceptron(), make_run())], "markdown")


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("environment", ["", "NO_COLOR=1", "TERM=dumb", "NO_COLOR=1 FORCE_COLOR=1"])
def test_bold_type_on_a_terminal(monkeypatch: pytest.MonkeyPatch, environment: str) -> None:
    for setting in environment.split():
        monkeypatch.setenv(*setting.split("="))
    terminal = FakeTerminal()
    print_to(terminal, lambda shown: shown.page(run_page([run_report()])))
    bold = environment == ""
    assert ("\x1b[1m11.05\x1b[0m" in terminal.getvalue()) == bold
    assert ("\x1b" in terminal.getvalue()) == bold


def test_a_pipe_has_no_width_and_no_bold_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    print_to(stream, lambda shown: shown.page(run_page([run_report()])))
    assert stream.getvalue() == to_text([run_report()], "table")
    monkeypatch.setenv("FORCE_COLOR", "1")
    forced = io.StringIO()
    print_to(forced, lambda shown: shown.page(run_page([run_report()])))
    assert without_style(forced.getvalue()) == stream.getvalue() != forced.getvalue()


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_streams_without_all_signs_get_ascii(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    print_to(stream, lambda shown: shown.page(summary_page(matrix())))
    text = raw.getvalue().decode("ascii")
    assert "\\" not in text
    assert "# significantly worse" in text
    named = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    print_to(named, lambda shown: shown.page(run_page([make_report(path="ł.svm")])))
    assert named.buffer.getvalue().startswith(b"\\u0142.svm: ")  # type: ignore[attr-defined]


def test_nothing_is_best_without_a_rival() -> None:
    for format in PAPER:
        text = to_text([make_report()], format) + summary_to_text(
            summarise_trials(small_sweep()[:3]), format
        )
        assert "best" not in text.replace("vs best", "").lower()


def test_equal_totals_are_all_best() -> None:
    runs = make_run(), make_perceptron(mistakes=112), make_run("avp", mistakes=113)
    assert to_text([make_report(*runs)], "latex").count("textbf") == 2
    tied = [*make_trials("avp", [0.1, 0.3]), *make_trials("ahpatron", [0.2, 0.2])]
    assert summary_to_text(summarise_trials(tied), "latex").count(r"\textbf{20.00}") == 2


# What sweeps do not claim -------------------------------------------------------------------------


def ranked(gap: float) -> SweepSummary:
    rates = {"ahpatron": 0.1, "avp": 0.1 + gap, "rbp": 0.1 + 2 * gap}
    return summarise_trials(
        [
            one
            for number in range(8)
            for turn, (learner, rate) in enumerate(rates.items())
            for one in make_trials(
                learner,
                [rate + (0 if gap else (number + turn) % 3 / 100)],
                make_data(f"{number}.svm"),
            )
        ]
    )


def test_without_a_significant_friedman_test_no_difference_of_ranks_is_called_so() -> None:
    different = summary_to_text(ranked(0.01), "table", only_matrix=True)
    assert "(Nemenyi, 5 %)" in different
    alike = summary_to_text(ranked(0.0), "table", only_matrix=True)
    assert "Nemenyi" not in alike
    assert "no significant difference between the learners" in alike
    assert '"groups": []' in summary_to_text(ranked(0.0), "json", only_matrix=True)


def test_one_permutation_or_file_order_allows_no_verdict() -> None:
    for trials in (small_sweep(repeats=1), small_sweep(make_data(shuffled=False))):
        text = summary_to_text(summarise_trials(trials), "table")
        assert "no verdict" in text
        assert not re.search(r"  (n\.s\.|worse)  ", text)


def test_a_shard_recommends_nothing() -> None:
    part = summary_page(replace(swept(), part="part 3 of 3")).commands
    assert [command for _, command in part] == [""]
    assert "part 3 of 3" in part[0][0]


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_found_is_reported_where_people_read(format: str) -> None:
    assert ("no trials" in summary_to_text(summarise_trials([]), format)) == (format in PAPER)


# Names from outside -------------------------------------------------------------------------------


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names_do_nothing(format: str) -> None:
    data = make_data(f"folder/{HOSTILE}.svm", scale=HOSTILE)
    hostile = summarise_trials(
        [
            *(make_trial(HOSTILE, 0.1, params={HOSTILE: p}, data=data) for p in ("=1", HOSTILE)),
            make_trial("=cmd()", 0.2, data=data),
            make_trial("avp", None, data=data, error=HOSTILE),
        ]
    )
    for text in (
        *(summary_to_text(hostile, format, only_matrix=only) for only in (False, True)),
        to_text([make_report(make_run(HOSTILE), make_run("x"), path=HOSTILE)], format),
    ):
        assert not set(text) & set("\x1b\u202e\udcff\r")
        text.encode()
        if format == "markdown":
            for part in text.split("\n\n"):
                rows = [line for line in part.splitlines() if line[:1] == "|"]
                assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1
        for part in text.split(r"\end{tabular}")[:-1]:
            rows = [line for line in part.splitlines() if line.endswith(r" \\")]
            assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1
        if format == "latex":
            assert r"\input" not in re.sub(r"(?m)^%.*$", "", text)
    assert not re.search(
        "<(?!/?(div|table|caption|span|thead|tr|th|td|tbody|strong|p|sub)[ >])",
        Html().page(summary_page(hostile)),
    )


@pytest.mark.parametrize("special", list(r"|*_`<>[]\&~$#!{}"))
def test_markdown_escapes_every_special_character(special: str) -> None:
    text = to_text([make_report(make_run(f"x{special}y"), path=f"p{special}q")], "markdown")
    assert rf"**p\{special}q**" in text
    assert rf"| x\{special}y |" in text


@pytest.mark.parametrize("format", [*FORMATS, "html"])
def test_learners_with_equal_totals_are_all_the_best(format: str) -> None:
    """In the matrix and in the table of the learners; ahpatron and avp have 183 mistakes each."""
    totals = {"ahpatron": [0.253, 0.171, 0.125], "avp": [0.167, 0.033, 0.349], "rbp": [0.2] * 3}
    data = [make_data(f"{name}.svm") for name in "ab"]
    summary = summarise_trials(
        [trial for one in data for name in totals for trial in make_trials(name, totals[name], one)]
    )
    page = {only: summary_page(summary, only_matrix=only) for only in (True, False)}
    tables = [page[True].tables[0], *page[False].tables[1:]]
    assert len(tables) == 3
    for table in tables:
        texts = next(column.cells for column in table.columns if column.cells[0] != "ahpatron")
        assert [BEST in cell.marks for cell in texts if isinstance(cell, Cell)] == [
            True,
            True,
            False,
        ]
    if format == "html":
        assert Html().page(page[True]).count("<strong>") == 4
    elif format in ("json", "jsonl", "csv"):
        lines = summary_to_text(summary, "jsonl").splitlines()
        best = [json.loads(line)["best_of_data"] for line in lines]
        assert best == [True, True, False] * 2
        document = json.loads(summary_to_text(summary, "json", only_matrix=True))
        assert document["matrix"]["verdict"] == [["best"] * 2, ["best"] * 2, ["n.s."] * 2]
    else:
        sign = {"table": "* 18.30", "markdown": "**18.30**", "latex": r"\textbf{18.30}"}[format]
        assert summary_to_text(summary, format, only_matrix=True).count(sign) == 4
