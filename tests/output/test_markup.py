import re

import pytest

from ahpatron_cli.output.formats import to_text
from ahpatron_cli.output.markup import to_latex
from ahpatron_cli.output.table import Cell, Column, Page, Table
from ahpatron_cli.records import Report
from support.trials import make_perceptron, make_report, make_run

MARKDOWN = r"""Data: **a.svm**, 1,000 rounds, 18 features, labels 0 → -1, 1 → +1

| Learner | AMR % | \|M_T\| | \|N_T\| | Support | Halvings | ζ̂ | Seconds |
| :-- | --: | --: | --: | --: | --: | --: | --: |
| ahpatron | **11.20** | 112 | 50 | 314/400 | 3 | 0.0123 | 0.051 |
| perceptron | 14.00 | 140 | 0 | 2325 | – | – | 0.051 |
"""

MARKDOWN_REPEATED = r"""Data: **a.svm**, 1,000 rounds, 18 features; mean ± sd over 2 permutations

| Learner | AMR % | \|M_T\| | \|N_T\| | Support | Halvings | ζ̂ | Seconds |
| :-- | --: | --: | --: | --: | --: | --: | --: |
| ahpatron | **11.05** ± 1.48 | 110.5 | 50 | 314.5/400 | 3 | 0.0123 | 0.051 |
| perceptron | 14.00 ± 0.00 | 140 | 0 | 2325 | – | – | 0.051 |
"""

LATEX = r"""% needs \usepackage{booktabs}
\begin{table}
  \centering\small\setlength{\tabcolsep}{4pt}
  \caption{\texttt{a.svm}: 1,000 rounds, 18 features, labels 0 $\to$ $-$1, 1 $\to$ +1}
  \begin{tabular}{lrrrrrrr}
    \toprule
    Learner & AMR (\%) & $|M_T|$ & $|N_T|$ & Support & Halvings & $\hat\zeta$ & Seconds \\
    \midrule
    ahpatron & \textbf{11.20} & 112 & 50 & 314/400 & 3 & 0.0123 & 0.051 \\
    perceptron & 14.00 & 140 & 0 & 2325 & -- & -- & 0.051 \\
    \bottomrule
  \end{tabular}
\end{table}
"""


def test_markdown(two_learners: Report) -> None:
    assert to_text([two_learners], "markdown") == MARKDOWN


def test_markdown_of_repeats(repeated: Report) -> None:
    assert to_text([repeated], "markdown") == MARKDOWN_REPEATED


def test_markdown_has_one_table_per_file(two_learners: Report, repeated: Report) -> None:
    both = to_text([two_learners, repeated], "markdown")
    assert both == MARKDOWN + "\n" + MARKDOWN_REPEATED


def test_latex(two_learners: Report) -> None:
    assert to_text([two_learners], "latex") == LATEX


def test_latex_of_repeats(repeated: Report) -> None:
    text = to_text([repeated], "latex")
    assert r"18 features; mean $\pm$ sd over 2 permutations}" in text
    assert r"    ahpatron & \textbf{11.05} $\pm$ 1.48 & 110.5 & 50 & 314.5/400" in text


def test_latex_has_one_table_per_file(two_learners: Report, repeated: Report) -> None:
    text = to_text([two_learners, repeated], "latex")
    assert text.count(r"\begin{table}") == text.count(r"\end{table}") == 2
    assert text.count("booktabs") == 1


def test_nothing_is_bold_where_there_is_nothing_to_compare() -> None:
    assert "**11.20**" not in to_text([make_report()], "markdown")
    assert "textbf" not in to_text([make_report()], "latex")


def test_equal_rates_are_all_best() -> None:
    worse = make_run("avp", mistakes=200, mistake_rate=0.2)
    tied = make_report(make_run(), make_perceptron(mistakes=112, mistake_rate=0.112), worse)
    assert to_text([tied], "latex").count("textbf") == 2


def test_rates_are_compared_as_numbers() -> None:
    runs = (
        make_run(mistakes=100, mistake_rate=0.1),
        make_run("avp", mistakes=95, mistake_rate=0.095),
    )
    text = to_text([make_report(*runs)], "markdown")
    assert "| avp | **9.50** |" in text


def test_a_learner_with_several_settings_says_what_differs() -> None:
    settings = make_report(make_run(), make_run(params={"budget": 400, "epsilon": 0.6}))
    text = to_text([settings], "markdown")
    assert "| ahpatron (epsilon=0.5) |" in text
    assert "| ahpatron (epsilon=0.6) |" in text


def test_latex_escapes_every_special_character() -> None:
    text = to_text([make_report(path="&%$#_{}~^\\")], "latex")
    escaped = (
        r"\texttt{\&\%\$\#\_\{\}\textasciitilde{}\textasciicircum{}\textbackslash{}}: 1,000 rounds"
    )
    assert escaped in text


def test_latex_shows_control_characters() -> None:
    text = to_text([make_report(path="\x1b[31m\n.svm")], "latex")
    assert r"\texttt{\textbackslash{}x1b{[}31m\textbackslash{}n.svm}" in text


def test_latex_cannot_be_made_to_run_a_command() -> None:
    text = to_text(
        [make_report(make_run(r"\input{/etc/passwd}"), path="\\input{x}\n\\end{table}")], "latex"
    )
    assert r"\input" not in text
    assert text.count(r"\end{table}") == 1


@pytest.mark.parametrize("special", list(r"|*_`<>[]\&~$#!{}"))
def test_markdown_escapes_every_special_character(special: str) -> None:
    text = to_text([make_report(make_run(f"x{special}y"), path=f"p{special}q")], "markdown")
    assert rf"**p\{special}q**" in text
    assert rf"| x\{special}y |" in text


def test_markdown_rows_cannot_be_broken() -> None:
    text = to_text([make_report(make_run("a|b\nc\r| d"), path="e\n\n# f")], "markdown")
    *_, row = text.splitlines()
    assert len(re.findall(r"(?<!\\)\|", row)) == 9
    assert r"a\|b\\nc\\r\| d" in row
    assert text.startswith(r"Data: **e\\n\\n\# f**")


@pytest.mark.parametrize(("digits", "size"), [(8, r"\small"), (20, r"\footnotesize")])
def test_wide_latex_tables_are_set_smaller(digits: int, size: str) -> None:
    columns = [Column("Learner", words=True), *([Column("AMR %")] * 4)]
    row = [Cell("ahpatron"), *([Cell("1" * digits, "0.01")] * 4)]
    assert rf"\centering{size}\setlength" in to_latex(Page([Table("", "", columns, [row])]))
