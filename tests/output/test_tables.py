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
from ahpatron_cli.output.table import BEST, Cell, Page, Table
from ahpatron_cli.records import Outcome, ParamValue
from ahpatron_cli.sweep.summary import SweepSummary, summarise_trials
from support.golden import FOLDER, matrix, run_document, swept, texts
from support.terminal import without_style
from support.trials import (
    make_data,
    make_document,
    make_perceptron,
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


PAGES = {"run": run_page([run_document()]), "matrix": summary_page(matrix())}
MAIN = {"Learner", "Mistakes %", "Made", "Bound", "Setting", "Rank", "Term", "Product"}
"""Headings that are shown in any width."""


@pytest.mark.parametrize("width", range(20, 140, 6))
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_a_table_fits_its_terminal_or_has_only_its_main_columns(page: Page, width: int) -> None:
    text = Terminal(width).page(page)
    tables = [block for block in text.split("\n\n") if "──" in block]
    for block in tables:
        rule = next(line for line in block.splitlines() if line.startswith("──"))
        assert len(rule) <= width or {*headings(block)[0]} <= MAIN


@pytest.mark.parametrize("width", range(20, 140, 6))
@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
def test_columns_that_a_narrow_terminal_hides_are_named(page: Page, width: int) -> None:
    text = Terminal(width).page(page)
    shown = [name for names in headings(text) for name in names]
    every = [name for names in headings(Terminal().page(page)) for name in names]
    _, told, hidden = re.sub(r"\s+", " ", text).partition("Hidden: terminal too narrow: ")
    assert bool(told) == (len(shown) < len(every))
    assert all(name in hidden for name in set(every) - set(shown))


def test_columns_without_a_value_are_not_shown() -> None:
    text = to_text([make_document(make_perceptron())], "table")
    assert headings(text) == [["Learner", "Mistakes %", "|M_T|", "|N_T|", "Support", "Seconds"]]


def test_columns_with_a_value_for_one_learner_are_shown() -> None:
    text = to_text([make_document(make_perceptron(), make_run())], "table")
    assert "Halvings" in headings(text)[0]


class FakeTerminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def printed_to(stream: io.TextIOBase, page: Page) -> None:
    print_to(stream, lambda shown: shown.page(page))


@pytest.mark.parametrize(
    ("environment", "bold"),
    [("", True), ("NO_COLOR=1", False), ("TERM=dumb", False), ("NO_COLOR=1 FORCE_COLOR=1", False)],
    ids=["nothing set", "NO_COLOR", "TERM=dumb", "NO_COLOR and FORCE_COLOR"],
)
def test_the_best_is_bold_on_a_terminal_unless_the_environment_forbids_it(
    monkeypatch: pytest.MonkeyPatch, environment: str, bold: bool
) -> None:
    for setting in environment.split():
        monkeypatch.setenv(*setting.split("="))
    terminal = FakeTerminal()
    printed_to(terminal, PAGES["run"])
    assert ("\x1b[1m11.05\x1b[0m" in terminal.getvalue()) == bold
    assert ("\x1b" in terminal.getvalue()) == bold


def test_a_pipe_has_no_width_and_no_bold_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    printed_to(stream, PAGES["run"])
    assert stream.getvalue() == to_text([run_document()], "table")


def test_force_color_gives_a_pipe_bold_type_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    forced = io.StringIO()
    printed_to(forced, PAGES["run"])
    assert "\x1b[1m" in forced.getvalue()
    assert without_style(forced.getvalue()) == to_text([run_document()], "table")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_streams_without_all_signs_get_ascii(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    printed_to(stream, PAGES["matrix"])
    text = raw.getvalue().decode("ascii")
    assert "\\" not in text
    assert "# significantly worse" in text


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_letters_that_a_stream_lacks_are_escaped(encoding: str) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    printed_to(stream, run_page([make_document(path="ł.svm")]))
    assert raw.getvalue().startswith(b"\\u0142.svm: ")


@pytest.mark.parametrize("format", PAPER)
def test_no_run_is_best_without_a_rival(format: str) -> None:
    assert "best" not in to_text([make_document()], format).lower()


@pytest.mark.parametrize("format", PAPER)
def test_no_setting_is_best_without_a_rival(format: str) -> None:
    text = summary_to_text(summarise_trials(small_sweep()[:3]), format)
    assert "best" not in text.replace("vs best", "").lower()


def test_runs_with_equal_totals_are_all_best() -> None:
    runs = [make_run(), make_perceptron(mistakes=112), make_run("avp", mistakes=113)]
    assert to_text([make_document(*runs)], "latex").count("textbf") == 2


def test_settings_with_equal_totals_are_all_best() -> None:
    tied = [*make_trials("avp", [0.1, 0.3]), *make_trials("ahpatron", [0.2, 0.2])]
    assert summary_to_text(summarise_trials(tied), "latex").count(r"\textbf{20.00}") == 2


# What sweeps do not claim -------------------------------------------------------------------------


def ranked(gap: float) -> SweepSummary:
    """Three learners on eight data sets; without a gap, each of them is the best in turn."""
    rates = {"ahpatron": 0.1, "avp": 0.1 + gap, "rbp": 0.1 + 2 * gap}
    trials = []
    for number in range(8):
        for turn, (learner, rate) in enumerate(rates.items()):
            change = 0 if gap else (number + turn) % 3 / 100
            trials += make_trials(learner, [rate + change], make_data(f"{number}.svm"))
    return summarise_trials(trials)


def test_a_significant_friedman_test_is_followed_by_differences_of_ranks() -> None:
    different = summary_to_text(ranked(0.01), "table", only_matrix=True)
    different = " ".join(different.split())
    assert "Iman-Davenport: F = ∞, p < 0.001 over 8 data sets." in different
    groups = "ahpatron, avp; avp, rbp."
    assert f"less than 1.17 apart do not differ significantly: {groups}" in different


def test_without_a_significant_friedman_test_no_difference_of_ranks_is_called_so() -> None:
    alike = summary_to_text(ranked(0.0), "table", only_matrix=True)
    assert "Nemenyi" not in alike
    assert "no significant difference between the learners" in alike
    assert '"groups": []' in summary_to_text(ranked(0.0), "json", only_matrix=True)


def test_the_matrix_shows_what_was_fixed() -> None:
    """In its title if it is the same for all data sets, else in a row; not if it was varied."""
    trials = []
    for name, budget in (("a", 50), ("b", 100)):
        data = make_data(f"{name}.svm")
        for step in (1, 2):
            params: dict[str, ParamValue] = {"sigma": 0.5, "budget": budget, "step": step}
            trials += make_trials("nogd", [0.1 * step], data, **params)
        trials += make_trials("avp", [0.3], data, sigma=0.5)
    summary = summarise_trials(trials)
    lines = summary_to_text(summary, "table", only_matrix=True).splitlines()
    assert lines[0].endswith("; σ = 0.5")
    assert [line.split() for line in lines if line.startswith("B =")] == [["B", "=", "50", "100"]]
    assert "step" not in lines[0]
    fixed = json.loads(summary_to_text(summary, "json"))["matrix"]["fixed"]
    assert fixed == {"sigma": [0.5, 0.5], "budget": [50, 100], "features": [None, None]}


def test_a_note_is_shown_with_its_column_only() -> None:
    page = summary_page(summarise_trials(small_sweep()))
    assert "vs best: mean" in Terminal(120).page(page)
    narrow = Terminal(40).page(page)
    assert "vs best: mean" not in narrow
    assert "Hidden: terminal too narrow" in narrow


@pytest.mark.parametrize(
    "trials",
    [small_sweep(repeats=1), small_sweep(make_data(shuffled=False))],
    ids=["one permutation", "the order of the file"],
)
def test_one_order_of_the_rows_allows_no_verdict(trials: list[Outcome]) -> None:
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


@pytest.fixture(scope="module")
def hostile() -> SweepSummary:
    """A sweep in which all names that come from outside are hostile."""
    data = make_data(f"folder/{HOSTILE}.svm", scale=HOSTILE)
    return summarise_trials(
        [
            make_trial(HOSTILE, 0.1, params={HOSTILE: "=1"}, data=data),
            make_trial(HOSTILE, 0.1, params={HOSTILE: HOSTILE}, data=data),
            make_trial("=cmd()", 0.2, data=data),
            make_trial("avp", None, data=data, error=HOSTILE),
        ]
    )


def hostile_texts(hostile: SweepSummary, format: str) -> list[str]:
    """All texts in this format that show hostile names."""
    report = make_document(make_run(HOSTILE), make_run("x"), path=HOSTILE)
    return [
        summary_to_text(hostile, format),
        summary_to_text(hostile, format, only_matrix=True),
        to_text([report], format),
    ]


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names_send_no_control_characters(hostile: SweepSummary, format: str) -> None:
    for text in hostile_texts(hostile, format):
        assert not set(text) & set("\x1b\u202e\udcff\r")
        text.encode()  # possible


def test_hostile_names_add_no_cells_to_markdown(hostile: SweepSummary) -> None:
    for text in hostile_texts(hostile, "markdown"):
        for part in text.split("\n\n"):
            rows = [line for line in part.splitlines() if line[:1] == "|"]
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1


def test_hostile_names_add_no_cells_to_latex(hostile: SweepSummary) -> None:
    for text in hostile_texts(hostile, "latex"):
        tables = text.split(r"\end{tabular}")[:-1]
        assert tables
        for part in tables:
            rows = [line for line in part.splitlines() if line.endswith(r" \\")]
            assert len({len(re.findall(r"(?<!\\)&", row)) for row in rows}) == 1


def test_hostile_names_are_no_commands_of_latex(hostile: SweepSummary) -> None:
    for text in hostile_texts(hostile, "latex"):
        assert r"\input" not in re.sub(r"(?m)^%.*$", "", text)


def test_hostile_names_add_no_elements_to_html(hostile: SweepSummary) -> None:
    ours = "div|table|caption|span|thead|tr|th|td|tbody|strong|p|sub"
    assert not re.search(f"<(?!/?({ours})[ >])", Html().page(summary_page(hostile)))


@pytest.mark.parametrize("special", list(r"|*_`<>[]\&~$#!{}"))
def test_markdown_escapes_every_special_character(special: str) -> None:
    text = to_text([make_document(make_run(f"x{special}y"), path=f"p{special}q")], "markdown")
    assert rf"**p\{special}q**" in text
    assert rf"| x\{special}y |" in text


# Equal totals -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tied() -> SweepSummary:
    """On two data sets, ahpatron and avp have 183 mistakes in a thousand each, rbp 200."""
    totals = {"ahpatron": [0.253, 0.171, 0.125], "avp": [0.167, 0.033, 0.349], "rbp": [0.2] * 3}
    trials = []
    for name in ("a.svm", "b.svm"):
        for learner, rates in totals.items():
            trials += make_trials(learner, rates, make_data(name))
    return summarise_trials(trials)


def marked_best(table: Table) -> list[bool]:
    """Whether each cell of the first column after the names is marked as the best."""
    column = next(column for column in table.columns if column.cells[0] != "ahpatron")
    return [BEST in cell.marks for cell in column.cells if isinstance(cell, Cell)]


def test_learners_with_equal_totals_are_all_the_best_of_the_matrix(tied: SweepSummary) -> None:
    (table,) = summary_page(tied, only_matrix=True).tables
    assert marked_best(table) == [True, True, False]


def test_learners_with_equal_totals_are_all_the_best_of_their_data(tied: SweepSummary) -> None:
    _, *tables = summary_page(tied).tables
    assert [marked_best(table) for table in tables] == [[True, True, False]] * 2


def test_learners_with_equal_totals_are_all_best_of_data_in_json_lines(tied: SweepSummary) -> None:
    lines = summary_to_text(tied, "jsonl").splitlines()
    best = [json.loads(line)["best_of_data"] for line in lines]
    assert best == [True, True, False] * 2


def test_learners_with_equal_totals_all_have_the_verdict_best_in_json(tied: SweepSummary) -> None:
    document = json.loads(summary_to_text(tied, "json", only_matrix=True))
    assert document["matrix"]["verdict"] == [["best"] * 2, ["best"] * 2, ["n.s."] * 2]


@pytest.mark.parametrize(
    ("format", "sign"),
    [("table", "* 18.30"), ("markdown", "**18.30**"), ("latex", r"\textbf{18.30}")],
    ids=PAPER,
)
def test_learners_with_equal_totals_are_all_marked(
    tied: SweepSummary, format: str, sign: str
) -> None:
    assert summary_to_text(tied, format, only_matrix=True).count(sign) == 4


def test_learners_with_equal_totals_are_all_strong_in_html(tied: SweepSummary) -> None:
    page = summary_page(tied, only_matrix=True)
    assert Html().page(page).count("<strong>") == 4
