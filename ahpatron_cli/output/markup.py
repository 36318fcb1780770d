r"""Tables for notes, papers and pages: Markdown, LaTeX (booktabs) and HTML.

Names are escaped twice: first control characters are made visible (`\x1b`), then every character
that the target language gives a meaning to.
"""

import html
import math
import re
from collections.abc import Sequence

from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.table import NO_SIGN, Cell, Column, Page, Table, spelled

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|&~$#!])")

_NEGATIVE = re.compile(r"^-(?=\d)")
"""The sign of a number, which a hyphen is too short for."""

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

_LATEX_STEP = re.compile(r"10\\textasciicircum\{\}(-?\d+)/√T")
"""A step such as 10^-1/√T, escaped."""

_LATEX_COLUMNS = 5
"""Columns of numbers with their spread that fit side by side on a page of a paper."""

_LATEX_WIDTH = 80
"""Characters across, with two between columns, that fit a page of a paper in \\small."""

_MARKDOWN_SIGNS = {"|": r"\|", "*": r"\*", "−": "-"}
_LATEX_SIGNS = {
    "AMR %": r"AMR (\%)",
    "|M_T|": "$|M_T|$",
    "|N_T|": "$|N_T|$",
    "|M'_T|": "$|M'_T|$",
    "L_T(f)": "$L_T(f)$",
    "‖f‖": r"$\|f\|$",
    "ζ̂": r"$\hat\zeta$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "−": "$-$",
    "≈": r"$\approx$",
    "•": r"$\bullet$",
    "χ²": r"$\chi^2$",
    "*": "{*}",
    "%": r"\%",
}
_HTML_SIGNS = {
    "|M_T|": "|M<sub>T</sub>|",
    "|N_T|": "|N<sub>T</sub>|",
}


def to_markdown(page: Page) -> str:
    """One table per table."""
    parts = [_markdown_table(table) for table in page.tables]
    if page.remark:
        items = "".join(f"- {_markdown(item)}\n" for item in page.items)
        parts.append(f"{_markdown(page.remark)}\n" + (f"\n{items}" if items else ""))
    return "\n".join(parts)


def _markdown_table(table: Table) -> str:
    rows = [
        [
            _markdown(column.head) if column.outside else spelled(column.head, _MARKDOWN_SIGNS)
            for column in table.columns
        ],
        [":--" if column.words else "--:" for column in table.columns],
        *([_markdown_cell(cell) for cell in row] for row in table.rows),
    ]
    name = f"Data: **{_markdown(table.name)}**, " if table.name else ""
    paragraphs = [
        f"{name}{spelled(table.about, _MARKDOWN_SIGNS)}\n",
        "".join(f"| {' | '.join(row)} |\n" for row in rows),
    ]
    if table.notes:
        paragraphs.append(spelled(" ".join(table.notes), _MARKDOWN_SIGNS) + "\n")
    return "\n".join(paragraphs)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    text = _markdown(cell.text)
    shown = f"**{text}**" if cell.bold else text
    sign = f" {cell.sign}".rstrip()
    spread = f" ± {cell.spread}" if cell.spread else ""
    return (r"\* " if cell.mark else "") + shown + spread + sign


def to_latex(page: Page) -> str:
    """One `table` per table for the booktabs package; remarks are comments, not for the paper."""
    parts = ["% needs \\usepackage{booktabs}\n"] if page.tables else []
    parts.append("\n".join(_latex_table(table) for table in page.tables))
    if page.remark:
        lines = [page.remark, *(f"  {literal(item)}" for item in page.items)]
        parts += [f"% {line}\n" for line in lines]
    return "".join(parts)


def _latex_table(table: Table) -> str:
    name = rf"\texttt{{{_latex(table.name)}}}: " if table.name else ""
    notes = spelled(" ".join(table.notes), _LATEX_SIGNS)
    size = r"\small\setlength{\tabcolsep}{4pt}"
    if not table.alike and _characters(table) > _LATEX_WIDTH:
        size = r"\footnotesize\setlength{\tabcolsep}{2pt}"
    parts = [table]
    if table.alike:
        columns = len(table.columns) - 1
        count = math.ceil(columns / math.ceil(columns / _LATEX_COLUMNS))
        parts = [table.part(start, count) for start in range(0, columns, count)]
    return "\n".join(
        [
            r"\begin{table}",
            rf"  \centering{size}",
            rf"  \caption{{{name}{spelled(table.about, _LATEX_SIGNS)}}}",
            "\n  \\par\\smallskip\n".join(map(_latex_tabular, parts)),
            *(
                [rf"  \par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes}}}"]
                if notes
                else []
            ),
            r"\end{table}",
            "",
        ]
    )


def _characters(table: Table) -> int:
    """The width of a table: of the longest cells, and of two blanks between columns."""
    heads = [len(column.head) for column in table.columns]
    widths = zip(heads, *(map(_length, row) for row in table.rows), strict=True)
    return sum(max(some) + 2 for some in widths)


def _length(cell: Cell | None) -> int:
    return 0 if cell is None else len(cell.text) + (len(cell.spread) + 3 if cell.spread else 0)


def _latex_tabular(table: Table) -> str:
    heads = [
        _latex(column.head) if column.outside else spelled(column.head, _LATEX_SIGNS)
        for column in table.columns
    ]
    return "\n".join(
        [
            rf"  \begin{{tabular}}{{{''.join('rl'[column.words] for column in table.columns)}}}",
            r"    \toprule",
            _latex_row(heads),
            r"    \midrule",
            *(_latex_row([_latex_cell(cell) for cell in row]) for row in table.rows),
            r"    \bottomrule",
            r"  \end{tabular}",
        ]
    )


def _latex_row(row: Sequence[str]) -> str:
    return "    " + " & ".join(row) + r" \\"


def _latex_cell(cell: Cell | None) -> str:
    if cell is None:
        return "--"
    text = _NEGATIVE.sub("$-$", _latex(cell.text))
    shown = rf"\textbf{{{text}}}" if cell.bold else text
    mark = "{*}" if cell.mark else ""
    sign = spelled(cell.sign, _LATEX_SIGNS).replace(NO_SIGN, r"\phantom{$\bullet$}")
    return mark + shown + (rf" $\pm$ {cell.spread}" if cell.spread else "") + sign


def html_table(table: Table) -> str:
    """A table in a box that scrolls; rows with something bold are shaded, notes are left out."""
    caption = html_ours(table.about)
    heads = "".join(
        f'<th scope="col"{_html_class(column)}>'
        f"{html_text(column.head) if column.outside else html_ours(column.head)}</th>"
        for column in table.columns
    )
    body = []
    for row in table.rows:
        head, *others = map(_html_cell, row)
        data = "".join(
            f"<td{_html_class(column)}>{cell}</td>"
            for column, cell in zip(table.columns[1:], others, strict=True)
        )
        best = ' class="best"' if any(cell and cell.bold for cell in row) else ""
        body.append(f'<tr{best}><th scope="row">{head}</th>{data}</tr>\n')
    return f"""\
<div class="scroll" role="region" tabindex="0" aria-label="{caption}"><table>
<caption><span>{caption}</span></caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{"".join(body)}</tbody>
</table></div>"""


def _html_class(column: Column) -> str:
    kind = "wide" if column.long else "" if column.words else "number"
    return f' class="{kind}"' if kind else ""


def _html_cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    text = _NEGATIVE.sub("−", html_text(cell.text))
    shown = f"<strong>{text}</strong>" if cell.bold else text
    sign = f' <span class="sign">{cell.sign}</span>' if cell.sign else ""
    return ("*" if cell.mark else "") + shown + (f" ± {cell.spread}" if cell.spread else "") + sign


def html_ours(text: str) -> str:
    """A text of ours."""
    return spelled(html.escape(text), _HTML_SIGNS)


def html_text(value: object) -> str:
    """Anything from outside."""
    return html.escape(literal(str(value)))


def _markdown(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\1", literal(text))


def _latex(text: str) -> str:
    escaped = "".join(_LATEX_ESCAPES.get(character, character) for character in literal(text))
    return _LATEX_STEP.sub(r"$10^{\1}/\\sqrt{T}$", escaped)
