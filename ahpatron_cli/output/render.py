r"""Rendering of tables as terminal or plain text, Markdown, LaTeX (booktabs) and HTML.

All formats share one walk over a page. Each has an `escape` through which every text passes: it
makes control characters visible (`\x1b`) and escapes the special characters of the format.
"""

from __future__ import annotations

import html
import os
import re
import shutil
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple, TextIO

from rich.cells import cell_len

from ahpatron_cli.output.escape import GREEK, ascii_signs, encodable, has_signs, literal
from ahpatron_cli.output.table import BEST, MARKS, Cell, Column, Page, Table

UNLIMITED = 1_000_000
"""Width of a pipe or a file, in columns."""


class Written(NamedTuple):
    """A rendered column: texts of the heading and the cells, alignment and priority."""

    texts: list[str]
    left: bool
    priority: int


class Format:
    """Base class of output formats: renders the parts of a page."""

    bold = "**", "**"
    """Text before and after the value of a cell with the mark `BEST`."""
    shown_marks = "".join(MARKS).replace(BEST, "")
    """Marks written before values; `BEST` is bold type if the format has it."""

    def escape(self, text: str) -> str:
        """Escape the special characters of the format."""
        raise NotImplementedError

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        """Render a table."""
        raise NotImplementedError

    def ending(self, page: Page) -> str:
        """Text below all tables."""
        return ""

    def value(self, text: str, column: Column) -> str:
        """Render the value of a cell in this column."""
        return self.escape(text)

    def page(self, page: Page) -> str:
        """Render a page: its tables, then the text below them."""
        parts = []
        for table in page.tables:
            columns = []
            for column in table.columns:
                if any(cell is not None for cell in column.cells):
                    texts = [self.escape(column.heading)]
                    texts += [self._cell(cell, column) for cell in column.cells]
                    columns.append(Written(texts, column.left, column.priority))
            parts.append(self.table(table, columns))
        return "\n".join(filter(None, [*parts, self.ending(page)]))

    def _cell(self, cell: Cell | str | None, column: Column) -> str:
        """Text of a cell: marks, value and spread."""
        if cell is None:
            return self.escape("–")
        text, spread, marks = Cell(cell) if isinstance(cell, str) else cell
        shown = self.value(text, column)
        shown = shown.join(self.bold) if BEST in marks else shown
        marks = "".join(mark for mark in marks if mark in self.shown_marks)
        after = self.escape(f" ± {spread}") if spread else ""
        return self.escape(f"{marks} " if marks else "") + shown + after

    def legend(self, tables: Sequence[Table]) -> str:
        """Explanation of the marks used in these tables."""
        cells = (cell for table in tables for column in table.columns for cell in column.cells)
        used = {mark for cell in cells if isinstance(cell, Cell) for mark in cell.marks}
        names = {mark: mark if mark in self.shown_marks else "Bold:" for mark in MARKS}
        text = "; ".join(f"{names[mark]} {MARKS[mark]}" for mark in MARKS if mark in used)
        return f"{text}." if text else ""

    def notes(self, table: Table) -> str:
        """Text of the notes and the legend of a table."""
        return self.escape(" ".join(filter(None, [*table.notes, self.legend([table])])))


def _rows(columns: Sequence[Written]) -> list[tuple[str, ...]]:
    """Transpose columns to rows: the headings, then the cells of each row."""
    return list(zip(*(column.texts for column in columns), strict=True))


def _lines(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


# Terminal -----------------------------------------------------------------------------------------

_STYLE = re.compile(r"\x1b\[\d*m")
"""Escape codes for bold type; `literal` removes any others."""


class Terminal(Format):
    """Text with aligned columns; bold type and a limited width only for a terminal."""

    shown_marks = "".join(MARKS)

    def __init__(self, width: int = UNLIMITED, *, bold: bool = False, ascii: bool = False) -> None:
        self.width = width
        self.bold = ("\x1b[1m", "\x1b[0m") if bold else ("", "")
        self._ascii = ascii
        self._hidden: dict[str, None] = {}

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """Settings for a stream (terminal, pipe or file); NO_COLOR also disables bold type."""
        seen = stream.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        seen = (seen or bool(os.environ.get("FORCE_COLOR"))) and not os.environ.get("NO_COLOR")
        width = shutil.get_terminal_size().columns if stream.isatty() else UNLIMITED
        return cls(width, bold=seen, ascii=not has_signs(stream.encoding or "utf-8"))

    def escape(self, text: str) -> str:
        shown = literal(text)
        return ascii_signs(shown) if self._ascii else shown

    def strong(self, text: str) -> str:
        """The text in bold type, if the terminal supports it."""
        return self.escape(text).join(self.bold)

    def folded(self, text: str, first: str = "", rest: str = "  ") -> list[str]:
        """Wrap a text to lines; the first starts with `first`, the others with `rest`."""
        return textwrap.wrap(
            self.escape(text),
            self.width,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def title(self, name: str, about: str) -> list[str]:
        """Lines of a title: a bold name and a text, on separate lines if too long."""
        if not name:
            return self.folded(about)
        if cell_len(literal(name)) + 2 + cell_len(self.escape(about)) <= self.width:
            return [f"{self.strong(name)}: {self.escape(about)}"]
        return [f"{self.strong(name)}:", *self.folded(about, "  ")]

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        shown = list(columns)
        while (wide := sum(_width(one) + 2 for one in shown) - 2) > self.width:
            # hide the last column of the highest priority; never cut cells
            hidden = max(reversed(shown), key=lambda one: one.priority)
            if not hidden.priority:
                break
            shown.remove(hidden)
            self._hidden[hidden.texts[0]] = None
        padded = []
        for column in shown:
            gaps = [" " * (_width(column) - _cells(text)) for text in column.texts]
            pairs = zip(column.texts, gaps, strict=True)
            padded.append([text + gap if column.left else gap + text for text, gap in pairs])
        head, *rows = ["  ".join(row).rstrip() for row in zip(*padded, strict=True)]
        return _lines([*self.title(table.name, table.title), head, self.escape("─") * wide, *rows])

    def ending(self, page: Page) -> str:
        hidden = f"Hidden: terminal too narrow: {', '.join(self._hidden)}" if self._hidden else ""
        notes = dict.fromkeys(note for table in page.tables for note in table.notes)
        first, *items = page.remarks or [""]
        commands = list[str]()
        for why, command in page.commands:
            commands += self.folded(why) + ([f"  {literal(command)}"] if command else [])
        parts = [
            [line for note in notes for line in self.folded(note)],
            [*self.folded(self.legend(page.tables)), *self.folded(hidden)],
            [self.escape(first), *(f"  {self.escape(item)}" for item in items)],
            commands,
        ]
        return "\n".join(_lines(part) for part in parts if any(part))


def _cells(text: str) -> int:
    return cell_len(_STYLE.sub("", text))


def _width(column: Written) -> int:
    return max(map(_cells, column.texts))


def print_to(stream: TextIO, text_for: Callable[[Terminal], str]) -> None:
    """Write a text to a stream in one call, rendered for its terminal, pipe or file."""
    stream.write(encodable(text_for(Terminal.of(stream)), stream.encoding or "utf-8"))
    stream.flush()


# Markdown -----------------------------------------------------------------------------------------


class Markdown(Format):
    """Markdown: pipe tables."""

    def escape(self, text: str) -> str:
        return re.sub(r"([\\`*_{}\[\]<>|&~$#!])", r"\\\1", literal(text))

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        name = f"Data: **{self.escape(table.name)}**, " if table.name else ""
        head, *rows = _rows(columns)
        rule = tuple(":--" if column.left else "--:" for column in columns)
        lines = [f"| {' | '.join(row)} |" for row in [head, rule, *rows]]
        notes = self.notes(table)
        title = f"{name}{self.escape(table.title)}"
        return _lines([title, "", *lines, *(["", notes] if notes else [])])

    def ending(self, page: Page) -> str:
        first, *items = map(self.escape, page.remarks or [""])
        listed = ["", *(f"- {item}" for item in items)] if items else []
        return _lines([first, *listed]) if first else ""


# LaTeX --------------------------------------------------------------------------------------------

_LATEX = {
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "`": r"\textasciigrave{}"},
    # after a line end `\\`, LaTeX reads a bare [ or * as its argument
    **{"[": "{[}", "]": "{]}", "*": "{*}", **{special: f"\\{special}" for special in "&%$#_{}"}},
    **{"|M_T|": "$|M_T|$", "|N_T|": "$|N_T|$", "|M'_T|": "$|M'_T|$", "L_T(f)": "$L_T(f)$"},
    **{"‖f‖": r"$\|f\|$", "ζ̂": r"$\hat\zeta$", "±": r"$\pm$", "→": r"$\to$", "–": "--"},
    **{"≈": r"$\approx$", "•": r"$\bullet$", "▸": r"$\triangleright$", "○": r"$\circ$"},
    **{"†": r"$\dagger$", "‡": r"$\ddagger$"},
    **{"χ²": r"$\chi^2$", "<=": r"$\le$", **{sign: rf"$\{name}$" for sign, name in GREEK.items()}},
}
_LATEX_TOKEN = re.compile(
    r"10\^(?P<power>-?\d+)/√T|(?<![\w.])-(?=[\d.])|"
    + "|".join(map(re.escape, sorted(_LATEX, key=len, reverse=True)))
)
_SYMBOLS = {"budget": "$B$", "epsilon": r"$\varepsilon$", "sigma": r"$\sigma$", "radius": "$U$"}
_LINE = 105
"""Largest readable width of a table in characters, with three between columns."""


class Latex(Format):
    """LaTeX: a labelled `table` environment per table; requires booktabs and graphicx."""

    bold = r"\textbf{", "}"

    def escape(self, text: str) -> str:
        def token(match: re.Match[str]) -> str:
            power = match["power"]
            return rf"$10^{{{power}}}/\sqrt{{T}}$" if power else _LATEX.get(match[0], "$-$")

        return _LATEX_TOKEN.sub(token, literal(text))

    def value(self, text: str, column: Column) -> str:
        shown = self.escape(text)
        if column.heading == "Learner":
            return rf"\textsc{{{shown}}}"
        if column.heading != "Setting":
            return shown
        return re.sub(r"([a-z]+)=", lambda m: f"{_SYMBOLS.get(m[1], m[1])} = ", shown)

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        name = rf"\texttt{{{self.escape(table.name)}}}: " if table.name else ""
        stem = re.sub(r"[^a-z0-9]+", "-", table.name.lower().rpartition("/")[2].split(".")[0])
        parts, room = list[list[Written]](), 0
        for column in columns[1:]:  # a wide table is split, each part with the first column
            room -= _typeset(column) + 3
            if room < 0 or not parts:
                parts.append([columns[0]])
                room = _LINE - _typeset(columns[0]) - _typeset(column) - 3
            parts[-1].append(column)
        notes = self.notes(table)
        lines = [
            r"\begin{table}",
            r"  \centering\small",
            rf"  \caption{{{name}{self.escape(table.title)}}}",
            rf"  \label{{tab:{'-'.join(filter(None, [stem.strip('-'), table.kind]))}}}",
            *(line for part in parts for line in self._tabular(part)),
            *([rf"  \parbox{{\linewidth}}{{\footnotesize {notes}}}"] if notes else []),
            r"\end{table}",
        ]
        return _lines(lines)

    def _tabular(self, columns: Sequence[Written]) -> list[str]:
        head, *rows = (rf"    {' & '.join(row)} \\" for row in _rows(columns))
        return [
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"  \begin{{tabular}}{{{''.join('l' if one.left else 'r' for one in columns)}}}",
            *(r"    \toprule", head, r"    \midrule", *rows, r"    \bottomrule"),
            r"  \end{tabular}}\par\smallskip",
        ]

    def page(self, page: Page) -> str:
        needs = "% needs \\usepackage{booktabs,graphicx}\n" if page.tables else ""
        return needs + super().page(page)

    def ending(self, page: Page) -> str:
        return _lines(f"% {literal(line)}" for line in page.remarks)


def _typeset(column: Written) -> int:
    """Approximate width of a column in characters."""
    return max(len(re.sub(r"\\[a-z]+|[${}\\]", "", text)) for text in column.texts)


# HTML ---------------------------------------------------------------------------------------------


class Html(Format):
    """HTML: a table in a scrolling box, and its notes."""

    bold = "<strong>", "</strong>"

    def escape(self, text: str) -> str:
        return re.sub(r"\|([MN])('|&#x27;)?_T\|", r"|\1\2<sub>T</sub>|", html.escape(literal(text)))

    def value(self, text: str, column: Column) -> str:
        # a proper minus sign in place of a hyphen
        return self.escape(text if column.left else re.sub(r"^-(?=\d)", "−", text))

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        styles = ["" if column.left else ' class="number"' for column in columns]
        head, *rows = _rows(columns)
        heads = [f'<th scope="col"{s}>{text}</th>' for s, text in zip(styles, head, strict=True)]
        lines = []
        for first, *others in rows:
            best = ' class="best"' if "<strong>" in "".join(others) else ""
            cells = [f"<td{s}>{text}</td>" for s, text in zip(styles[1:], others, strict=True)]
            lines.append(f'<tr{best}><th scope="row">{first}</th>{"".join(cells)}</tr>')
        title, notes, body = self.escape(table.title), self.notes(table), "\n".join(lines)
        return f"""\
<div class="scroll" role="region" tabindex="0" aria-label="{title}"><table>
<caption><span>{title}</span></caption>
<thead><tr>{"".join(heads)}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
{f'<p class="notes">{notes}</p>' if notes else ""}"""


FORMATS: Mapping[str, type[Format]] = {"table": Terminal, "markdown": Markdown, "latex": Latex}
"""The values of `--format` that are meant for people."""
