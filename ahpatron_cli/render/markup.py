r"""The summary table for papers and notes: LaTeX (booktabs) and Markdown.

Names are escaped twice: first control characters are made visible (`\x1b`), then every character
that the target language gives a meaning to.
"""

import re
from collections.abc import Sequence

from ahpatron_cli.records import Report
from ahpatron_cli.render.lines import Line, facts, repeats, summary_lines
from ahpatron_cli.render.safe import literal

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|&~$#!])")

_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",  # after a line end `\\`, a bare [ or * would be read as its argument
    "]": "{]}",
    "*": "{*}",
    **{character: "\\" + character for character in "&%$#_{}"},
}

_MARKDOWN_HEADS = (
    "Learner",
    "AMR %",
    r"\|M_T\|",
    r"\|N_T\|",
    "Support",
    "Halvings",
    "ζ̂",
    "Seconds",
)
_LATEX_HEADS = (
    "Learner",
    r"AMR (\%)",
    "$|M_T|$",
    "$|N_T|$",
    "Support",
    "Halvings",
    r"$\hat\zeta$",
    "Seconds",
)


def to_markdown(reports: Sequence[Report]) -> str:
    """One table per data file, the best mistake rate in bold."""
    return "\n".join(_markdown_table(report) for report in reports)


def _markdown_table(report: Report) -> str:
    title = f"Data: **{_markdown(report.data.path)}**, {facts(report.data, arrow='→')}"
    if repeats(report):
        title += f"; mean ± sd over {repeats(report)}"
    rows = [_MARKDOWN_HEADS, (":--", *["--:"] * (len(_MARKDOWN_HEADS) - 1))]
    for line in summary_lines(report):
        rate = f"**{line.rate}**" if line.best else line.rate
        spread = f" ± {line.spread}" if line.spread else ""
        rows.append((_markdown(line.learner), rate + spread, *_cells_or(line, "–")))
    table = "".join(f"| {' | '.join(row)} |\n" for row in rows)
    return f"{title}\n\n{table}"


def to_latex(reports: Sequence[Report]) -> str:
    """One `table` per data file for the booktabs package, the best mistake rate in bold."""
    tables = "\n".join(_latex_table(report) for report in reports)
    return "% needs \\usepackage{booktabs}\n" + tables


def _latex_table(report: Report) -> str:
    size = facts(report.data, arrow=r"$\to$", minus="$-$")
    caption = rf"\texttt{{{_latex(report.data.path)}}}: {size}"
    if repeats(report):
        caption += rf"; mean $\pm$ sd over {repeats(report)}"
    rows = []
    for line in summary_lines(report):
        rate = rf"\textbf{{{line.rate}}}" if line.best else line.rate
        spread = rf" $\pm$ {line.spread}" if line.spread else ""
        rows.append((_latex(line.learner), rate + spread, *_cells_or(line, "--")))
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \begin{{tabular}}{{l{'r' * (len(_LATEX_HEADS) - 1)}}}",
            r"    \toprule",
            _latex_row(_LATEX_HEADS),
            r"    \midrule",
            *map(_latex_row, rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _latex_row(row: Sequence[str]) -> str:
    return "    " + " & ".join(row) + r" \\"


def _cells_or(line: Line, missing: str) -> list[str]:
    return [missing if cell is None else cell for cell in line.after_rate()]


def _markdown(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\1", literal(text))


def _latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in literal(text))
