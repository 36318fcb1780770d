"""The few pieces of HTML that a report is made of: escaped text, tables, lists of facts."""

import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahpatron_cli.output.escape import literal


@dataclass(frozen=True)
class Column:
    """A column of a table: its head (HTML), and how its cells are set."""

    head: str
    kind: str = ""
    """`number` or `wide`, the classes of the style sheet."""


def table(
    caption: str, columns: Sequence[Column], rows: Iterable[tuple[Sequence[str], bool]]
) -> str:
    """Rows of escaped cells, some of them marked as best; the first cell heads its row."""
    heads = "".join(f'<th scope="col"{_class(each.kind)}>{each.head}</th>' for each in columns)
    body = []
    for cells, best in rows:
        head, *others = cells
        data = "".join(
            f"<td{_class(column.kind)}>{cell}</td>"
            for column, cell in zip(columns[1:], others, strict=True)
        )
        body.append(f'<tr{_class("best" if best else "")}><th scope="row">{head}</th>{data}</tr>')
    lines = "\n".join(body)
    return f"""\
<div class="scroll" role="region" tabindex="0" aria-label="{text(caption)}"><table>
<caption><span>{text(caption)}</span></caption>
<thead><tr>{heads}</tr></thead>
<tbody>
{lines}
</tbody>
</table></div>"""


def _class(name: str) -> str:
    return f' class="{name}"' if name else ""


def definitions(facts: Mapping[str, Any]) -> str:
    """Facts and their names, both still to be escaped."""
    items = "".join(f"<dt>{text(name)}</dt><dd>{text(fact)}</dd>" for name, fact in facts.items())
    return f'<dl class="facts">{items}</dl>'


def text(value: object) -> str:
    """Anything from outside: invisible characters shown, then HTML's own escaped."""
    return html.escape(literal(str(value)))
