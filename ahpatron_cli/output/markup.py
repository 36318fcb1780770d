r"""Tables for papers and notes: LaTeX (booktabs) and Markdown.

Names are escaped twice: first control characters are made visible (`\x1b`), then every character
that the target language gives a meaning to.
"""

import re
from collections.abc import Sequence

from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.table import Cell, Page, Sheet, spelled

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
    "*": "{*}",
    "%": r"\%",
}


def to_markdown(page: Page) -> str:
    """One table per sheet."""
    parts = [_markdown_table(sheet) for sheet in page.sheets]
    if page.remark:
        items = "".join(f"- {_markdown(item)}\n" for item in page.items)
        parts.append(f"{_markdown(page.remark)}\n" + (f"\n{items}" if items else ""))
    return "\n".join(parts)


def _markdown_table(sheet: Sheet) -> str:
    rows = [
        [spelled(column.head, _MARKDOWN_SIGNS) for column in sheet.columns],
        [":--" if column.words else "--:" for column in sheet.columns],
        *([_markdown_cell(cell) for cell in row] for row in sheet.rows),
    ]
    paragraphs = [
        f"Data: **{_markdown(sheet.name)}**, {spelled(sheet.about, _MARKDOWN_SIGNS)}\n",
        "".join(f"| {' | '.join(row)} |\n" for row in rows),
    ]
    if sheet.notes:
        paragraphs.append(spelled(" ".join(sheet.notes), _MARKDOWN_SIGNS) + "\n")
    return "\n".join(paragraphs)


def _markdown_cell(cell: Cell | None) -> str:
    if cell is None:
        return "–"
    text = _markdown(cell.text)
    shown = f"**{text}**" if cell.bold else text
    return (r"\* " if cell.mark else "") + shown + (f" ± {cell.spread}" if cell.spread else "")


def to_latex(page: Page) -> str:
    """One `table` per sheet for the booktabs package; remarks are comments, not for the paper."""
    parts = ["% needs \\usepackage{booktabs}\n"] if page.sheets else []
    parts.append("\n".join(_latex_table(sheet) for sheet in page.sheets))
    if page.remark:
        lines = [page.remark, *(f"  {literal(item)}" for item in page.items)]
        parts += [f"% {line}\n" for line in lines]
    return "".join(parts)


def _latex_table(sheet: Sheet) -> str:
    caption = rf"\texttt{{{_latex(sheet.name)}}}: {spelled(sheet.about, _LATEX_SIGNS)}"
    notes = spelled(" ".join(sheet.notes), _LATEX_SIGNS)
    return "\n".join(
        [
            r"\begin{table}",
            r"  \centering",
            rf"  \caption{{{caption}}}",
            rf"  \begin{{tabular}}{{{''.join('rl'[column.words] for column in sheet.columns)}}}",
            r"    \toprule",
            _latex_row([spelled(column.head, _LATEX_SIGNS) for column in sheet.columns]),
            r"    \midrule",
            *(_latex_row([_latex_cell(cell) for cell in row]) for row in sheet.rows),
            r"    \bottomrule",
            r"  \end{tabular}",
            *(
                [rf"  \par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes}}}"]
                if notes
                else []
            ),
            r"\end{table}",
            "",
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
    return mark + shown + (rf" $\pm$ {cell.spread}" if cell.spread else "")


def _markdown(text: str) -> str:
    return _MARKDOWN_SPECIAL.sub(r"\\\1", literal(text))


def _latex(text: str) -> str:
    return "".join(_LATEX_ESCAPES.get(character, character) for character in literal(text))
