import io
import re

import pytest
from rich.console import Console

from ahpatron_cli.errors import ExitCode
from ahpatron_cli.output.formats import FORMATS, findings_to_text, write_findings
from ahpatron_cli.output.sweep_table import findings_page
from ahpatron_cli.output.terminal import print_page
from ahpatron_cli.sweep.summary import Findings, find
from support.terminal import without_style
from support.trials import make_data, make_trial, make_trials, sweep

TABLE = """\
a.svm: 1,000 rounds, 18 features; all settings, 3 permutations
Learner     Setting              AMR %  |N_T|  Support  Seconds  Orders
───────────────────────────────────────────────────────────────────────
ahpatron    epsilon=0.5  *10.00 ± 1.00     50  314/400    0.051       3
ahpatron    epsilon=0.6   13.00 ± 1.00     50  314/400    0.051       3
avp         –            *10.10 ± 1.15     50      314    0.051       3
perceptron  –            *14.03 ± 1.05     50      314    0.051       3

a.svm: the best setting of each learner
Learner     Setting             AMR %       vs best  Verdict  |N_T|  Support  Seconds
─────────────────────────────────────────────────────────────────────────────────────
ahpatron    epsilon=0.5  10.00 ± 1.00             –  best        50  314/400    0.051
avp         –            10.10 ± 1.15  +0.10 ± 0.10  n.s.        50      314    0.051
perceptron  –            14.03 ± 1.05  +4.03 ± 0.03  worse       50      314    0.051

AMR: mean ± standard deviation over 3 permutations.
vs best: mean ± standard error of the difference to the best, order by order, in percentage points.
Worse: paired t-test, corrected for the number of learners (Holm), 5 %; n.s.: not significantly \
worse.
The best of several settings (*) was chosen in hindsight on these same orders.

ahpatron: epsilon=0.5 is the smallest of 2 values tried; smaller ones may do better.
"""

MARKDOWN = r"""
Data: **a.svm**, 1,000 rounds, 18 features; the best setting of each learner, 3 permutations

| Learner | Setting | AMR % | vs best | Verdict | \|N_T\| | Support | Seconds |
| :-- | :-- | --: | --: | :-- | --: | --: | --: |
| ahpatron | epsilon=0.5 | **10.00** ± 1.00 | – | best | 50 | 314/400 | 0.051 |
| avp | – | 10.10 ± 1.15 | +0.10 ± 0.10 | n.s. | 50 | 314 | 0.051 |
| perceptron | – | 14.03 ± 1.05 | +4.03 ± 0.03 | worse | 50 | 314 | 0.051 |

AMR: mean ± standard deviation over 3 permutations. vs best: mean ± standard error of """

LATEX = r"""% needs \usepackage{booktabs}
\begin{table}
  \centering\footnotesize\setlength{\tabcolsep}{2pt}
  \caption{\texttt{a.svm}: 1,000 rounds, 18 features; the best setting of each learner, 3 permutations}
  \begin{tabular}{llrrlrrr}
    \toprule
    Learner & Setting & AMR (\%) & vs best & Verdict & $|N_T|$ & Support & Seconds \\
    \midrule
    ahpatron & epsilon=0.5 & \textbf{10.00} $\pm$ 1.00 & -- & best & 50 & 314/400 & 0.051 \\
    avp & -- & 10.10 $\pm$ 1.15 & +0.10 $\pm$ 0.10 & n.s. & 50 & 314 & 0.051 \\
    perceptron & -- & 14.03 $\pm$ 1.05 & +4.03 $\pm$ 0.03 & worse & 50 & 314 & 0.051 \\
    \bottomrule
  \end{tabular}
  \par\smallskip\parbox{\linewidth}{\footnotesize AMR: mean $\pm$ standard deviation over """  # noqa: E501


@pytest.fixture
def findings() -> Findings:
    return find(sweep())


def on_terminal(findings: Findings, terminal: io.StringIO, width: int) -> str:
    print_page(findings_page(findings), Console(file=terminal, width=width))
    return terminal.getvalue()


def test_the_table_shows_all_settings_and_the_best(findings: Findings) -> None:
    assert findings_to_text(findings, "table") == TABLE


def test_80_columns_show_tables_without_what_is_said_elsewhere(
    findings: Findings, terminal: io.StringIO
) -> None:
    text = without_style(on_terminal(findings, terminal, 80))
    every, best = re.sub(" +\n", "\n", text).split("\n\n")[:2]
    assert every == TABLE.split("\n\n")[0]
    assert best.splitlines()[1] == ("Learner     Setting             AMR %       vs best  Verdict")
    assert best.splitlines()[4] == ("avp         –            10.10 ± 1.15  +0.10 ± 0.10  n.s.")
    assert max(map(len, text.splitlines())) <= 80
    assert (
        "Left out for lack of width: |N_T|, Support, Seconds; `--format markdown` shows\n"
        "their values.\n" in text
    )


def test_40_columns_show_it_stacked(findings: Findings, terminal: io.StringIO) -> None:
    text = without_style(on_terminal(findings, terminal, 40))
    assert "ahpatron\n  Setting: epsilon=0.5\n  AMR %: *10.00 ± 1.00\n  |N_T|: 50\n" in text
    assert "avp\n  Setting: –\n  AMR %: 10.10 ± 1.15\n  vs best: +0.10 ± 0.10\n" in text
    assert "  Verdict: n.s.\n" in text
    notes = text.split("\n\n")[-3]
    assert max(map(len, notes.splitlines())) <= 40
    assert "corrected for the\nnumber of learners" in notes  # wrapped between words


def test_the_best_is_bold_on_a_terminal(findings: Findings, terminal: io.StringIO) -> None:
    text = on_terminal(findings, terminal, 80)
    assert text.count("\x1b[1m10.00\x1b[0m") == 2
    assert "\x1b[1m10.10" not in text


def test_a_rate_that_looks_as_good_is_bold_too() -> None:
    tied = find([make_trial("avp", 0.1), make_trial("ahpatron", 0.1000001)])
    assert findings_to_text(tied, "latex").count(r"\textbf{10.00}") == 2


def test_notes_that_hold_for_all_data_sets_are_said_once() -> None:
    both = find([*sweep(), *sweep(make_data("b.svm", sha256="bad"))])
    text = findings_to_text(both, "table")
    assert text.count("a.svm: ") == text.count("b.svm: ") == 2
    assert text.count("AMR: mean ± standard deviation") == 1
    other = find([*sweep(), *sweep(make_data("b.svm", sha256="bad"), repeats=2)])
    assert findings_to_text(other, "table").count("AMR: mean ± standard deviation") == 2


def test_an_ascii_stream_gets_ascii(findings: Findings) -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="ascii")
    print_page(findings_page(findings), Console(file=stream))
    text = raw.getvalue().decode("ascii")
    assert "avp         -            10.10 +- 1.15  +0.10 +- 0.10  n.s." in text
    assert "AMR: mean +- standard deviation over 3 permutations." in text
    assert "\\" not in text


def test_a_paper_gets_one_table_per_data_set(findings: Findings) -> None:
    assert findings_to_text(findings, "markdown").startswith(MARKDOWN.lstrip())
    assert findings_to_text(findings, "latex").startswith(LATEX)
    both = find([*sweep(), *sweep(make_data("b.svm", sha256="bad", labels=(0.0, 1.0)))])
    latex = findings_to_text(both, "latex")
    assert latex.count(r"\begin{table}") == latex.count(r"\end{table}") == 3  # the first: both
    assert r"\texttt{b.svm}: 1,000 rounds, 18 features, labels 0 $\to$ $-$1" in latex
    assert r"(Holm), 5 \%" in latex
    assert "(*)" not in latex


def test_a_paper_about_one_learner_gets_all_its_settings() -> None:
    one = find(sweep()[:6])
    assert "| ahpatron | epsilon=0.5 | \\* **10.00** ± 1.00 |" in findings_to_text(one, "markdown")
    assert "| ahpatron | epsilon=0.6 | 13.00 ± 1.00 |" in findings_to_text(one, "markdown")
    latex = findings_to_text(one, "latex")
    assert r"ahpatron & epsilon=0.5 & {*}\textbf{10.00} $\pm$ 1.00 &" in latex
    assert "vs best" not in latex
    assert "several settings ({*}) was chosen in hindsight" in latex


def test_one_setting_per_learner_is_one_table() -> None:
    text = findings_to_text(find(sweep()[6:]), "table")
    assert text.startswith(
        "a.svm: 1,000 rounds, 18 features; 3 permutations\nLearner            AMR %"
    )
    assert text.count("a.svm") == 1
    assert "Setting" not in text
    assert "*" not in text
    assert "hindsight" not in text


def test_one_table_keeps_all_columns_on_80(terminal: io.StringIO) -> None:
    text = on_terminal(find(sweep()[6:]), terminal, 80)
    assert "Verdict" in text
    assert "Seconds" in text
    assert "Verdict:" not in text


def test_a_single_setting_is_compared_with_nothing(terminal: io.StringIO) -> None:
    lone = find(sweep()[:3])
    text = on_terminal(lone, terminal, 80)
    assert "vs best" not in text
    assert "Verdict" not in text
    assert "\x1b[1m10.00" not in text


def test_a_single_order_allows_no_verdict() -> None:
    text = findings_to_text(find(sweep(repeats=1)), "table")
    assert "18 features; all settings, 1 permutation\n" in text
    assert re.search(r"^avp +– +9.00 +\+0.00  – ", text, re.M)
    assert re.search(r"^ahpatron +epsilon=0.5 +9.00 +–  best ", text, re.M)
    assert "±" not in text
    assert "in percentage points; one order allows no verdict." in text


def test_passes_in_file_order_are_called_so() -> None:
    text = findings_to_text(find(sweep(make_data(shuffled=False))), "table")
    assert "standard deviation over 3 passes in file order." in text
    assert "passes in file order are not a sample of orders and allow no verdict." in text
    assert "standard error" not in text
    assert "Student" not in text
    assert re.search(r"^avp .* \+0.10  – ", text, re.M)


def test_unlike_numbers_of_orders_are_shown(terminal: io.StringIO) -> None:
    text = without_style(on_terminal(find(sweep()[:-2]), terminal, 80))
    assert "all settings, up to 3 permutations" in text
    assert re.search(r"^perceptron .* 1$", text, re.M)
    assert "The best is one of the settings with the most orders." in text


def test_a_setting_that_lacks_orders_may_be_better() -> None:
    partial = find([*make_trials("ahpatron", [0.1, 0.2, 0.3]), *make_trials("avp", [0.09, 0.19])])
    text = findings_to_text(partial, "table")
    assert re.search(r"^avp .* -1.00 ± 0.00  better ", text, re.M)
    assert r"& $-$1.00 $\pm$ 0.00 & better &" in findings_to_text(partial, "latex")


def test_what_was_done_to_the_data_is_said() -> None:
    prepared = find([*sweep(), *sweep(make_data(limit=500, scale="unit"))])
    assert "\na.svm, limit=500, scale=unit: 1,000 rounds" in findings_to_text(prepared, "table")


def test_means_of_counts_are_short() -> None:
    trials = [
        make_trial("avp", 0.1, 0, margin_updates=12345, support_size=99),
        make_trial("avp", 0.1, 1, margin_updates=12346, support_size=98),
    ]
    assert re.search(r" 12346 +98.5 ", findings_to_text(find(trials), "table"))


FAILED = [
    *(make_trial("avp", None, number, error="not enough memory") for number in range(2)),
    make_trial("alma2", None, error="a\x1b[31m.svm:\n[bold]|_%"),
    make_trial("rbp", None),
]


def test_failed_trials_are_counted_by_reason() -> None:
    text = findings_to_text(find([*sweep(), *FAILED]), "table")
    assert (
        "\n\n4 of 16 trials failed:\n"
        "  2 trials: not enough memory\n"
        "  1 trial: a\\x1b[31m.svm:\\n[bold]|_%\n"
        "  1 trial: no reason given\n\nahpatron: epsilon"
    ) in text


def test_failed_trials_in_markup() -> None:
    findings = find([*sweep(), *FAILED])
    assert findings_to_text(findings, "markdown").endswith(
        "\n\n4 of 16 trials failed:\n\n"
        "- 2 trials: not enough memory\n"
        "- 1 trial: a\\\\x1b\\[31m.svm:\\\\n\\[bold\\]\\|\\_%\n"
        "- 1 trial: no reason given\n"
    )
    assert findings_to_text(findings, "latex").endswith(
        "\\end{table}\n% 4 of 16 trials failed:\n"
        "%   2 trials: not enough memory\n"
        "%   1 trial: a\\x1b[31m.svm:\\n[bold]|_%\n"
        "%   1 trial: no reason given\n"
    )


def test_only_the_first_reasons_are_shown() -> None:
    failed = [make_trial("avp", None, number, error=f"reason {number}") for number in range(7)]
    text = findings_to_text(find(failed), "table")
    assert text.startswith("7 of 7 trials failed:\n  1 trial: reason 0\n")
    assert text.endswith("  1 trial: reason 4\n  and 2 other reasons\n")


@pytest.mark.parametrize("format", FORMATS)
def test_nothing_found_is_said_where_people_read(format: str) -> None:
    text = findings_to_text(find([]), format)
    assert ("no trials" in text) == (format in ("table", "markdown", "latex"))


HOSTILE = "\x1b[31m[red]\n|&_\\input{x}\u202e\udcff"


@pytest.fixture
def hostile() -> Findings:
    data = make_data(f"folder/{HOSTILE}.svm", scale=HOSTILE)
    settings = [{HOSTILE: "=1+1"}, {HOSTILE: HOSTILE}]
    return find(
        [
            *(make_trial(HOSTILE, 0.1, params=params, data=data) for params in settings),
            make_trial("=cmd()", 0.2, data=data),
            make_trial("avp", None, data=data, error=HOSTILE),
        ]
    )


@pytest.mark.parametrize("format", FORMATS)
def test_hostile_names_do_nothing(hostile: Findings, format: str) -> None:
    text = findings_to_text(hostile, format)
    assert not set(text) & set("\x1b\u202e\udcff\r")
    text.encode()


def test_hostile_names_break_no_row(hostile: Findings) -> None:
    table = findings_to_text(hostile, "table")
    assert r"\x1b[31m[red]\n|&_\input{x}\u202e\xff" in table
    markdown = [
        line for line in findings_to_text(hostile, "markdown").splitlines() if line[:1] == "|"
    ]
    assert {len(re.findall(r"(?<!\\)\|", line)) for line in markdown} == {9}
    latex = findings_to_text(hostile, "latex")
    assert r"\input" not in re.sub(r"(?m)^%.*$", "", latex)
    assert {
        len(re.findall(r"(?<!\\)&", line)) for line in latex.splitlines() if line[-2:] == r"\\"
    } == {7}


def test_hostile_names_on_a_terminal(hostile: Findings, terminal: io.StringIO) -> None:
    text = on_terminal(hostile, terminal, 300)
    assert set(re.findall(r"\x1b\[([0-9;]*)m", text)) <= {"0", "1"}
    assert "\x1b" not in without_style(text)


@pytest.mark.parametrize("format", FORMATS)
def test_every_format_ends_with_one_newline(format: str) -> None:
    text = findings_to_text(find([*sweep(), *FAILED]), format)
    assert text.endswith("\n")
    assert not text.endswith("\n\n")


@pytest.mark.parametrize("format", FORMATS)
def test_stdout_in_a_pipe_gets_the_text(
    findings: Findings, capsys: pytest.CaptureFixture[str], format: str
) -> None:
    write_findings(findings, format)
    assert capsys.readouterr().out == findings_to_text(findings, format)


def test_the_app_writes_what_a_command_found_and_returns_its_code(
    findings: Findings, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from ahpatron_cli.cli import app

    def command(*_: object, **__: object) -> ExitCode:
        write_findings(findings, "table")
        return ExitCode.FAILED_TRIALS

    monkeypatch.setattr(app, "app", command)
    assert app.run_command(["sweep", "x"]) == ExitCode.FAILED_TRIALS
    assert capsys.readouterr().out == TABLE
