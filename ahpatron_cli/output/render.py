r"""The formats of tables: a terminal or plain text, Markdown, LaTeX (booktabs) and HTML.

Names from outside are escaped twice: first control characters are made visible (`\x1b`), then
every character that the target language gives a meaning to.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TextIO

from rich.cells import cell_len

from ahpatron_cli.output.escape import can_encode, encodable, literal
from ahpatron_cli.output.table import MARKS, Column, Format, Page, Table, Written, render, spelled

UNLIMITED = 1_000_000
"""Columns of a pipe or a file."""

_ASCII = {
    **{"±": "+-", "ζ̂": "zeta", "–": "-", "→": "->", "─": "-", "−": "-", "‖": "||", "≈": "~"},
    **{"•": "#", "▸": ">", "○": "o", "χ²": "chi2", "√T": "sqrt(T)", "√": "sqrt", "·": "*"},
    **{"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "epsilon", "η": "eta"},
    **{"κ": "k", "λ": "lambda", "ν": "nu", "ρ": "rho", "σ": "sigma", "τ": "tau"},
    **{"⟨": "<", "⟩": ">", "█": "#", "▏": ":", "²": "^2", "₁": "_1"},
}
"""All signs that our texts may have; earlier ones of equal start win."""

_STYLE = re.compile(r"\x1b\[\d*m")
"""Ours: `literal` leaves none in a text from outside."""
_NO_BREAK = "\N{NO-BREAK SPACE}"
_CLOSE = re.compile(r" (?=[%→])|(?<=→) ")
"""Blanks at which no line breaks: `5 %`, `0 → -1`."""


class Terminal(Format):
    """Aligned columns. A terminal has bold type and a width; a pipe or a file has neither."""

    shown_marks = "".join(MARKS)

    def __init__(self, width: int = UNLIMITED, *, bold: bool = False, ascii: bool = False) -> None:
        self.width = width
        self.bold = ("\x1b[1m", "\x1b[0m") if bold else ("", "")
        self.signs = _ASCII if ascii else Format.signs
        self._hidden: dict[str, None] = {}

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """The terminal, pipe or file behind a stream; NO_COLOR leaves no bold type either."""
        seen = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        seen = (seen or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")
        width = shutil.get_terminal_size().columns if stream.isatty() else UNLIMITED
        encoding = getattr(stream, "encoding", None) or "utf-8"
        return cls(width, bold=seen, ascii=not can_encode("".join(_ASCII), encoding))

    def value(self, text: str, column: Column) -> str:
        return literal(text).replace("√T", self.ours("√T"))

    def padding(self, marks: str) -> str:
        return " " * len(marks)

    def folded(self, text: str, first: str = "", rest: str = "") -> Iterator[str]:
        """A text of ours in lines, the first of which begins with `first`, others with `rest`."""
        folder = textwrap.TextWrapper(
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in folder.wrap(self.ours(_CLOSE.sub(_NO_BREAK, text))):
            yield line.replace(_NO_BREAK, " ")

    def title(self, name: str, about: str) -> Iterator[str]:
        """A name from outside, in bold, and a text of ours; on lines of their own if need be."""
        shown = literal(name)
        if not name:
            yield from self.folded(about)
        elif cell_len(shown) + 2 + cell_len(self.ours(about)) <= self.width:
            yield f"{self.best(shown)}: {self.ours(about)}"
        else:
            yield f"{self.best(shown)}:"
            yield from self.folded(about, "  ", "  ")

    def table(self, table: Table, columns: Sequence[Written], last: bool) -> str:
        shown = self._fitting(columns)
        lines = [line.rstrip() for line in _aligned(shown)]
        if lines:
            lines.insert(1, self.ours("─") * sum(map(_width, shown), 2 * len(shown) - 2))
        notes = [line for note in table.notes for line in self.folded(note)] if last else []
        above = list(self.title(table.name, table.title))
        return "".join(f"{line}\n" for line in [*above, *lines, *(["", *notes] if notes else [])])

    def _fitting(self, columns: Sequence[Written]) -> list[Written]:
        """Those that the width has room for; of equal priority the last is hidden first."""
        shown = list(columns)
        while sum(_width(one) + 2 for one in shown) - 2 > self.width:
            hidden = max(reversed(shown), key=lambda one: one[0].priority)
            if not hidden[0].priority:
                break  # rather run on into the next line than cut
            shown.remove(hidden)
            self._hidden[hidden[1][0]] = None
        return shown

    def ending(self, page: Page) -> str:
        legend = self.legend(page.tables)
        hidden = f"Hidden: terminal too narrow: {', '.join(self._hidden)}" if self._hidden else ""
        parts = [
            [line for text in (legend, hidden) if text for line in self.folded(text, rest="  ")],
            [page.remark, *(f"  {literal(item)}" for item in page.items)] if page.remark else [],
            [line for pair in page.commands for line in self._command(*pair)],
        ]
        return "\n".join("".join(f"{line}\n" for line in part) for part in parts if part)

    def _command(self, why: str, command: str) -> Iterator[str]:
        yield from self.folded(literal(why), rest="  ")
        if command:
            yield f"  {literal(command)}"


def print_to(stream: TextIO, text_for: Callable[[Terminal], str]) -> None:
    """Write a text to a stream in one piece, as its terminal, pipe or file can show it."""
    text = text_for(Terminal.of(stream))
    stream.write(encodable(text, getattr(stream, "encoding", None) or "utf-8"))
    stream.flush()


def _width(column: Written) -> int:
    return max(cell_len(_STYLE.sub("", text)) for text in column[1])


def _aligned(columns: Sequence[Written]) -> Iterator[str]:
    padded = []
    for written in columns:
        width, (column, texts) = _width(written), written
        blanks = [" " * (width - cell_len(_STYLE.sub("", text))) for text in texts]
        pairs = zip(texts, blanks, strict=True)
        padded.append([text + gap if column.left else gap + text for text, gap in pairs])
    return map("  ".join, zip(*padded, strict=True))


def _rows(columns: Sequence[Written]) -> list[tuple[str, ...]]:
    """The headings, then the cells of each row."""
    return list(zip(*(texts for _, texts in columns), strict=True))


# Markdown -----------------------------------------------------------------------------------------

_MARKDOWN_SPECIAL = re.compile(r"([\\`*_{}\[\]<>|&~$#!])")
_MARKDOWN_SIGNS = {"|": r"\|", "*": r"\*", "−": "-"}


class Markdown(Format):
    """Pipe tables."""

    signs = _MARKDOWN_SIGNS

    def outside(self, text: str) -> str:
        return _MARKDOWN_SPECIAL.sub(r"\\\1", literal(text))

    def table(self, table: Table, columns: Sequence[Written], last: bool) -> str:
        name = f"Data: **{self.outside(table.name)}**, " if table.name else ""
        head, *rows = _rows(columns)
        rule = tuple(":--" if column.left else "--:" for column, _ in columns)
        lines = "".join(f"| {' | '.join(row)} |\n" for row in [head, rule, *rows])
        notes = self.ours(" ".join([*table.notes, self.legend([table])])).strip()
        title = f"{name}{self.ours(table.title)}"
        return "\n".join([f"{title}\n", lines, *([f"{notes}\n"] if notes else [])])

    def ending(self, page: Page) -> str:
        items = "".join(f"- {self.outside(item)}\n" for item in page.items)
        return "\n".join(filter(None, [page.remark and f"{self.outside(page.remark)}\n", items]))


# LaTeX --------------------------------------------------------------------------------------------

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
_LATEX_SIGNS = {
    **{"AMR %": r"AMR (\%)", "|M_T|": "$|M_T|$", "|N_T|": "$|N_T|$", "|M'_T|": "$|M'_T|$"},
    **{"L_T(f)": "$L_T(f)$", "‖f‖": r"$\|f\|$", "ζ̂": r"$\hat\zeta$", "±": r"$\pm$"},
    **{"→": r"$\to$", "−": "$-$", "–": "--", "≈": r"$\approx$", "•": r"$\bullet$"},
    **{"▸": r"$\triangleright$", "○": r"$\circ$", "χ²": r"$\chi^2$", "%": r"\%"},
}
_GREEK = {"α": "alpha", "β": "beta", "γ": "gamma", "δ": "delta", "ε": "varepsilon", "η": "eta"}
_GREEK |= {"λ": "lambda", "ν": "nu", "ρ": "rho", "σ": "sigma", "τ": "tau"}
_LATEX_STEP = re.compile(r"10\\textasciicircum\{\}(-?\d+)/√T")
"""A step such as 10^-1/√T, escaped."""
_ASSIGNMENT = re.compile(r"([a-z_]+)=")
_SMALL, _WIDEST = 80, 100
"""Characters across, with two between columns, that fit a page in \\small and \\footnotesize."""


@cache
def _symbols() -> dict[str, str]:
    """The symbols of the parameters that have the same one in all learners, in LaTeX."""
    from ahpatron_cli.core import KERNELS, REGISTRY

    found: dict[str, set[str]] = {}
    for kind in (*REGISTRY.values(), *KERNELS.values()):
        for name, spec in kind.specs().items():
            found.setdefault(name, set()).add(spec.symbol)
    signs = {letter: f"\\{name} " for letter, name in _GREEK.items()}
    one = {name: symbols.pop() for name, symbols in found.items() if len(symbols) == 1}
    return {name: spelled(symbol, signs).strip() for name, symbol in one.items() if symbol}


class Latex(Format):
    """One `table` with a label per table, for the booktabs package."""

    signs = _LATEX_SIGNS
    bold = r"\textbf{", "}"

    def outside(self, text: str) -> str:
        escaped = "".join(_LATEX_ESCAPES.get(character, character) for character in literal(text))
        return _LATEX_STEP.sub(r"$10^{\1}/\\sqrt{T}$", escaped)

    def value(self, text: str, column: Column) -> str:
        shown = self.signs.get(text) or _NEGATIVE.sub("$-$", self.outside(text))
        if column.key == "learner":
            return rf"\textsc{{{shown}}}"
        if column.key != "setting":
            return shown
        names = _symbols()
        return _ASSIGNMENT.sub(lambda m: f"${names[m[1]]}$ = " if m[1] in names else m[0], shown)

    def padding(self, marks: str) -> str:
        return rf"\phantom{{{self.ours(marks)}}}" if marks else ""

    def table(self, table: Table, columns: Sequence[Written], last: bool) -> str:
        name = rf"\texttt{{{self.outside(table.name)}}}: " if table.name else ""
        notes = self.ours(" ".join([*table.notes, self.legend([table])])).strip()
        widths = [_characters(table, column) for column, _ in columns]
        size = r"\small\setlength{\tabcolsep}{4pt}"
        if sum(widths) > _SMALL:
            size = r"\footnotesize\setlength{\tabcolsep}{2pt}"
        parts: list[list[Written]] = [[]]  # too wide for a page: the other columns go below
        room = _WIDEST
        for column, width in zip(columns, widths, strict=True):
            if width > room and len(parts[-1]) > 1:
                parts.append([columns[0]])
                room = _WIDEST - widths[0]
            parts[-1].append(column)
            room -= width
        stem = re.sub(r"[^a-z0-9]+", "-", table.name.lower().rpartition("/")[2].split(".")[0])
        lines = [
            r"\begin{table}",
            rf"  \centering{size}",
            rf"  \caption{{{name}{self.ours(table.title)}}}",
            rf"  \label{{tab:{'-'.join(filter(None, [stem.strip('-'), table.kind]))}}}",
            "\n  \\par\\smallskip\n".join(map(_tabular, parts)),
            rf"  \par\smallskip\parbox{{\linewidth}}{{\footnotesize {notes}}}" if notes else "",
            r"\end{table}",
        ]
        return "".join(f"{line}\n" for line in lines if line)

    def ending(self, page: Page) -> str:
        items = [page.remark, *(f"  {literal(item)}" for item in page.items)]
        return "".join(f"% {item}\n" for item in items) if page.remark else ""


def _characters(table: Table, column: Column) -> int:
    """The width of a column's longest cell and of two blanks after it."""
    cells = [cell for row in table.rows if (cell := row.get(column.key))]
    texts = [cell.text + (f" ± {cell.spread}" if cell.spread else "") for cell in cells]
    return max(map(len, [column.heading, *texts])) + 2


def _tabular(columns: Sequence[Written]) -> str:
    heading, *lines = ("    " + " & ".join(row) + r" \\" for row in _rows(columns))
    kinds = "".join("l" if column.left else "r" for column, _ in columns)
    lines = [rf"  \begin{{tabular}}{{{kinds}}}", r"    \toprule", heading, r"    \midrule", *lines]
    return "\n".join([*lines, r"    \bottomrule", r"  \end{tabular}"])


# HTML ---------------------------------------------------------------------------------------------


class Html(Format):
    """A table in a box that scrolls, and its notes."""

    bold = "<strong>", "</strong>"

    def outside(self, text: str) -> str:
        return html.escape(literal(text))

    def ours(self, text: str) -> str:
        return re.sub(r"\|([MN]'?)_T\|", r"|\1<sub>T</sub>|", html.escape(text))

    def value(self, text: str, column: Column) -> str:
        return _NEGATIVE.sub("−", self.outside(text))

    def padding(self, marks: str) -> str:
        return f'<span class="gap">{self.ours(marks)}</span>' if marks else ""

    def table(self, table: Table, columns: Sequence[Written], last: bool) -> str:
        styles = ["" if column.left else ' class="number"' for column, _ in columns]
        head, *rows = _rows(columns)
        heads = [f'<th scope="col"{s}>{text}</th>' for s, text in zip(styles, head, strict=True)]
        lines = []
        for first, *others in rows:
            best = ' class="best"' if "<strong>" in "".join(others) else ""
            cells = [f"<td{s}>{text}</td>" for s, text in zip(styles[1:], others, strict=True)]
            lines.append(f'<tr{best}><th scope="row">{first}</th>{"".join(cells)}</tr>')
        title, about = (
            self.ours(table.title),
            [*(table.notes if last else ()), self.legend([table])],
        )
        body = "\n".join(lines)
        notes = f'<p class="notes">{self.ours(" ".join(about))}</p>' if any(about) else ""
        return f"""\
<div class="scroll" role="region" tabindex="0" aria-label="{title}"><table>
<caption><span>{title}</span></caption>
<thead><tr>{"".join(heads)}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
{notes}"""


def page_text(page: Page, format: str) -> str:
    """A page as `table` (plain text, unlimited width), `markdown` or `latex`."""
    made = {"table": Terminal, "markdown": Markdown, "latex": Latex}[format]()
    needs = "% needs \\usepackage{booktabs}\n" if format == "latex" and page.tables else ""
    return needs + render(page, made)
