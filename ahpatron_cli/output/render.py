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

from ahpatron_cli.output.escape import GREEK, ascii_signs, encodable, has_signs, visible
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
            columns = [column for column in table.columns if _has_values(column)]
            written = [self._written(column) for column in columns]
            parts.append(self.table(table, written))
        parts.append(self.ending(page))
        return "\n".join(filter(None, parts))

    def _written(self, column: Column) -> Written:
        """Render the texts of a column."""
        texts = [self.escape(column.heading)]
        for cell in column.cells:
            text = self._cell(cell, column)
            texts.append(text)
        return Written(texts, column.left, column.priority)

    def _cell(self, cell: Cell | str | None, column: Column) -> str:
        """Text of a cell: marks, value and spread."""
        if cell is None:
            return self.escape("–")
        if isinstance(cell, str):
            cell = Cell(cell)
        shown = self.value(cell.text, column)
        if BEST in cell.marks:
            shown = shown.join(self.bold)
        shown_marks = [mark for mark in cell.marks if mark in self.shown_marks]
        marks = "".join(shown_marks)
        if marks:
            shown = self.escape(f"{marks} ") + shown
        if cell.spread:
            shown += self.escape(f" ± {cell.spread}")
        return shown

    def legend(self, tables: Sequence[Table]) -> str:
        """Explanation of the marks used in these tables."""
        used = _marks_of(tables)
        items = list[str]()
        for mark, meaning in MARKS.items():
            if mark in used:
                name = mark if mark in self.shown_marks else "Bold:"
                items.append(f"{name} {meaning}")
        if not items:
            return ""
        return "; ".join(items) + "."

    def notes(self, table: Table) -> str:
        """Text of the notes and the legend of a table."""
        headings = [column.heading for column in table.columns if _has_values(column)]
        sentences = table.notes_with(headings)
        legend = self.legend([table])
        text = " ".join(filter(None, [*sentences, legend]))
        return self.escape(text)


def _rows(columns: Sequence[Written]) -> list[tuple[str, ...]]:
    """Transpose columns to rows: the headings, then the cells of each row."""
    texts = [column.texts for column in columns]
    return list(zip(*texts, strict=True))


def _has_values(column: Column) -> bool:
    """Whether a column has a value in any row."""
    return any(cell is not None for cell in column.cells)


def _marks_of(tables: Sequence[Table]) -> set[str]:
    """The marks of all cells of these tables."""
    marks: set[str] = set()
    for table in tables:
        for column in table.columns:
            for cell in column.cells:
                if isinstance(cell, Cell):
                    marks.update(cell.marks)
    return marks


def in_lines(lines: Iterable[str]) -> str:
    """A text of these lines, each with its end."""
    return "".join(f"{line}\n" for line in lines)


# Terminal -----------------------------------------------------------------------------------------

_STYLE = re.compile(r"\x1b\[\d*m")
"""Escape codes for bold type; `visible` removes any others."""


class Terminal(Format):
    """Text with aligned columns; bold type and a limited width only for a terminal."""

    shown_marks = "".join(MARKS)

    def __init__(self, width: int = UNLIMITED, *, bold: bool = False, ascii: bool = False) -> None:
        self.width = width
        self.bold = ("\x1b[1m", "\x1b[0m") if bold else ("", "")
        self._ascii = ascii
        self._hidden: dict[str, None] = {}
        self._notes: dict[str, None] = {}
        """The notes of all tables, each once."""

    @classmethod
    def of(cls, stream: TextIO) -> Terminal:
        """Settings for a stream (terminal, pipe or file); NO_COLOR also disables bold type."""
        width = UNLIMITED
        bold = False
        if stream.isatty():
            width = shutil.get_terminal_size().columns
            bold = os.environ.get("TERM", "dumb") != "dumb"
        if os.environ.get("FORCE_COLOR"):
            bold = True
        if os.environ.get("NO_COLOR"):
            bold = False
        lacks_signs = not has_signs(stream.encoding or "utf-8")
        return cls(width, bold=bold, ascii=lacks_signs)

    def escape(self, text: str) -> str:
        shown = visible(text)
        if self._ascii:
            return ascii_signs(shown)
        return shown

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
        strong = self.strong(name)
        text = self.escape(about)
        separator = 2  # `: `
        width = cell_len(visible(name)) + separator + cell_len(text)
        if width <= self.width:
            return [f"{strong}: {text}"]
        return [f"{strong}:", *self.folded(about, "  ")]

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        shown = self._fitting(columns)
        left = {column.texts[0] for column in shown}
        headings = [one.heading for one in table.columns if self.escape(one.heading) in left]
        for note in table.notes_with(headings):
            self._notes[note] = None
        padded = [_padded(column) for column in shown]
        cells_of_lines = zip(*padded, strict=True)
        lines = ["  ".join(cells).rstrip() for cells in cells_of_lines]
        head, *rows = lines
        rule = self.escape("─") * _table_width(shown)
        title = self.title(table.name, table.title)
        return in_lines([*title, head, rule, *rows])

    def _fitting(self, columns: Sequence[Written]) -> list[Written]:
        """The columns that fit into the width; those that do not are noted as hidden."""
        shown = list(columns)
        while _table_width(shown) > self.width:
            # hide the last column of the highest priority; never cut cells
            hidden = max(reversed(shown), key=lambda one: one.priority)
            if not hidden.priority:
                break
            shown.remove(hidden)
            heading = hidden.texts[0]
            self._hidden[heading] = None
        return shown

    def ending(self, page: Page) -> str:
        legend = self.folded(self.legend(page.tables))
        if self._hidden:
            hidden = ", ".join(self._hidden)
            legend += self.folded(f"Hidden: terminal too narrow: {hidden}")
        remarks = list[str]()
        if page.remarks:
            first, *items = map(self.escape, page.remarks)
            remarks.append(first)
            remarks += [f"  {item}" for item in items]
        commands = list[str]()
        for why, command in page.commands:
            commands += self.folded(why)
            if command:
                commands.append(f"  {visible(command)}")
        notes = list[str]()
        for note in self._notes:
            notes += self.folded(note)
        parts = [notes, legend, remarks, commands]
        shown = [in_lines(part) for part in parts if any(part)]
        return "\n".join(shown)


def _cells(text: str) -> int:
    """Width of a text in columns of the terminal."""
    return cell_len(_STYLE.sub("", text))


def _width(column: Written) -> int:
    return max(map(_cells, column.texts))


def _table_width(columns: Sequence[Written]) -> int:
    """Width of a table, with two spaces between columns."""
    widths = [_width(column) + 2 for column in columns]
    return sum(widths) - 2


def _padded(column: Written) -> list[str]:
    """Texts of a column, aligned to the same width."""
    width = _width(column)
    padded = []
    for text in column.texts:
        gap = " " * (width - _cells(text))
        if column.left:
            padded.append(text + gap)
        else:
            padded.append(gap + text)
    return padded


def print_to(stream: TextIO, text_for: Callable[[Terminal], str]) -> None:
    """Write a text to a stream in one call, rendered for its terminal, pipe or file."""
    text = text_for(Terminal.of(stream))
    stream.write(encodable(text, stream.encoding or "utf-8"))
    stream.flush()


# Markdown -----------------------------------------------------------------------------------------


class Markdown(Format):
    """Markdown: pipe tables."""

    def escape(self, text: str) -> str:
        return re.sub(r"([\\`*_{}\[\]<>|&~$#!])", r"\\\1", visible(text))

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        title = self.escape(table.title)
        if table.name:
            name = self.escape(table.name)
            title = f"Data: **{name}**, {title}"
        head, *rows = _rows(columns)
        rule = tuple(":--" if column.left else "--:" for column in columns)
        lines = [title, ""]
        for row in (head, rule, *rows):
            cells = " | ".join(row)
            lines.append(f"| {cells} |")
        notes = self.notes(table)
        if notes:
            lines += ["", notes]
        return in_lines(lines)

    def ending(self, page: Page) -> str:
        if not page.remarks:
            return ""
        first, *items = map(self.escape, page.remarks)
        lines = [first]
        if items:
            lines.append("")
            lines += [f"- {item}" for item in items]
        return in_lines(lines)


# LaTeX --------------------------------------------------------------------------------------------

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    # after a line end `\\`, LaTeX reads a bare [ or * as its argument
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "|M_T|": "$|M_T|$",
    "|N_T|": "$|N_T|$",
    "|M'_T|": "$|M'_T|$",
    "L_T(f)": "$L_T(f)$",
    "‖f‖": r"$\|f\|$",
    "√L_T(f)": r"$\sqrt{L_T(f)}$",
    "√A": r"$\sqrt{A}$",
    "√B": r"$\sqrt{B}$",
    "√(2·B)": r"$\sqrt{2B}$",
    "λ_t": r"$\lambda_t$",
    "Δ_T": r"$\Delta_T$",
    "Δ": r"$\Delta$",
    "Σ": r"$\Sigma$",
    "·": r"$\cdot$",
    "²": "$^2$",
    "ζ̂": r"$\hat\zeta$",
    "±": r"$\pm$",
    "→": r"$\to$",
    "–": "--",
    "≈": r"$\approx$",
    "•": r"$\bullet$",
    "▸": r"$\triangleright$",
    "○": r"$\circ$",
    "†": r"$\dagger$",
    "‡": r"$\ddagger$",
    "χ²": r"$\chi^2$",
    "<=": r"$\le$",
    **{sign: rf"$\{name}$" for sign, name in GREEK.items()},
}
"""LaTeX of special characters, signs and terms."""
_LONGEST_FIRST = sorted(_LATEX, key=len, reverse=True)
_LATEX_TOKEN = re.compile(
    r"10\^(?P<power>-?\d+)/√T|(?<![\w.])-(?=[\d.])|" + "|".join(map(re.escape, _LONGEST_FIRST))
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
            if power:
                return rf"$10^{{{power}}}/\sqrt{{T}}$"
            return _LATEX.get(match[0], "$-$")

        return _LATEX_TOKEN.sub(token, visible(text))

    def value(self, text: str, column: Column) -> str:
        shown = self.escape(text)
        if shown and column.heading == "Learner":
            return rf"\textsc{{{shown}}}"
        if column.heading != "Setting":
            return shown
        return re.sub(r"([a-z]+)=", _parameter_symbol, shown)

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        caption = self.escape(table.title)
        if table.name:
            caption = rf"\texttt{{{self.escape(table.name)}}}: {caption}"
        lines = [
            r"\begin{table}",
            r"  \centering\small",
            rf"  \caption{{{caption}}}",
            rf"  \label{{tab:{_label_of(table)}}}",
        ]
        for part in _split(columns):
            lines += self._tabular(part)
        notes = self.notes(table)
        if notes:
            lines.append(rf"  \parbox{{\linewidth}}{{\footnotesize {notes}}}")
        lines.append(r"\end{table}")
        return in_lines(lines)

    def _tabular(self, columns: Sequence[Written]) -> list[str]:
        lines = []
        for row in _rows(columns):
            cells = " & ".join(row)
            lines.append(rf"    {cells} \\")
        head, *rows = lines
        sides = ["l" if column.left else "r" for column in columns]
        alignment = "".join(sides)
        return [
            r"  \resizebox{\ifdim\width>\linewidth\linewidth\else\width\fi}{!}{%",
            rf"  \begin{{tabular}}{{{alignment}}}",
            r"    \toprule",
            head,
            r"    \midrule",
            *rows,
            r"    \bottomrule",
            r"  \end{tabular}}\par\smallskip",
        ]

    def page(self, page: Page) -> str:
        text = super().page(page)
        if page.tables:
            return "% needs \\usepackage{booktabs,graphicx}\n" + text
        return text

    def ending(self, page: Page) -> str:
        return in_lines(f"% {visible(line)}" for line in page.remarks)


def _parameter_symbol(match: re.Match[str]) -> str:
    """Symbol of a parameter and an equals sign, in place of `name=`."""
    name = match[1]
    symbol = _SYMBOLS.get(name, name)
    return f"{symbol} = "


def _label_of(table: Table) -> str:
    """Name of a table in references: file name without suffixes, and the kind of table."""
    _, _, file = table.name.lower().rpartition("/")
    stem, _, _ = file.partition(".")
    stem = re.sub(r"[^a-z0-9]+", "-", stem).strip("-")
    return "-".join(filter(None, [stem, table.kind]))


def _split(columns: Sequence[Written]) -> list[list[Written]]:
    """Parts of a wide table, each with the first column."""
    parts = list[list[Written]]()
    room = 0
    for column in columns[1:]:
        width = _typeset(column) + 3
        room -= width
        if room < 0 or not parts:
            first = columns[0]
            parts.append([first])
            room = _LINE - _typeset(first) - width
        parts[-1].append(column)
    return parts


def _typeset(column: Written) -> int:
    """Approximate width of a column in characters."""
    texts = [re.sub(r"\\[a-z]+|[${}\\]", "", text) for text in column.texts]
    return max(map(len, texts))


# HTML ---------------------------------------------------------------------------------------------


class Html(Format):
    """HTML: a table in a scrolling box, and its notes."""

    bold = "<strong>", "</strong>"

    def escape(self, text: str) -> str:
        escaped = html.escape(visible(text))
        return re.sub(r"\|([MN])('|&#x27;)?_T\|", r"|\1\2<sub>T</sub>|", escaped)

    def value(self, text: str, column: Column) -> str:
        if not column.left:
            text = re.sub(r"^-(?=\d)", "−", text)  # a proper minus sign in place of a hyphen
        return self.escape(text)

    def table(self, table: Table, columns: Sequence[Written]) -> str:
        styles = ["" if column.left else ' class="number"' for column in columns]
        texts, *rows = _rows(columns)
        heads = ""
        for style, text in zip(styles, texts, strict=True):
            heads += f'<th scope="col"{style}>{text}</th>'
        lines = [_html_row(row, styles) for row in rows]
        body = "\n".join(lines)
        title = self.escape(table.title)
        notes = self.notes(table)
        if notes:
            notes = f'<p class="notes">{notes}</p>'
        return f"""\
<div class="scroll" role="region" tabindex="0" aria-label="{title}"><table>
<caption><span>{title}</span></caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{body}
</tbody>
</table></div>
{notes}"""


def _html_row(row: Sequence[str], styles: Sequence[str]) -> str:
    """HTML of a row of a table; the row of the best learner has a class."""
    first, *others = row
    cells = ""
    for style, text in zip(styles[1:], others, strict=True):
        cells += f"<td{style}>{text}</td>"
    best = ""
    if any("<strong>" in text for text in others):
        best = ' class="best"'
    return f'<tr{best}><th scope="row">{first}</th>{cells}</tr>'


FORMATS: Mapping[str, type[Format]] = {
    "table": Terminal,
    "markdown": Markdown,
    "latex": Latex,
}
"""The values of `--format` that are meant for people."""
