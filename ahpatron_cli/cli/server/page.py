"""The page of the server: everything is drawn here, so that it also works without JavaScript.

All text from outside passes through `_text`; the rest is markup.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from html import escape
from pathlib import Path
from typing import NamedTuple

from ahpatron_cli.cli.server.history import Event, Latency, Point, Shown
from ahpatron_cli.output.escape import visible

WIDTH = 1000
HEIGHT = 200
"""Units of the picture of the curve, which is stretched to its box."""
_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.25, 0.5, 1.0)
"""Largest mistake rates that the picture of the curve can show."""
MOST_COLUMNS = 10
"""Number of relevant columns on the page."""
MOST_CLASSES = 20
"""Number of labels on the page: the most frequent ones."""
_TIME = "%Y-%m-%d %H:%M:%S"
"""How moments are written, in the time zone of the server."""


class ClassFigures(NamedTuple):
    """How well a class is predicted."""

    name: str
    rows: int
    precision: float | None
    recall: float | None


class Relevance(NamedTuple):
    """The share of a column in the distances that the learner computes."""

    column: str
    share: float


@dataclass(frozen=True)
class View:
    """What the page shows."""

    learner: str
    since: datetime
    """When the server was started."""
    state: str | None
    """The file of the state."""
    saved: datetime | None
    """When the state was saved last."""
    warnings: Sequence[str]
    window: int
    window_rounds: int
    """Rounds in the window so far."""
    window_rate: float | None
    rounds: int
    mistake_rate: float | None
    rows_per_second: float
    latency: Latency | None
    pending: int | None
    """Rows that wait for their labels; None if labels cannot come later."""
    points: Sequence[Point]
    events: Sequence[Event]
    classes: Sequence[ClassFigures]
    relevances: Sequence[Relevance]
    answers: Sequence[Shown]
    key: str
    """What identifies a row in the answers: the name of the id column, or `line`."""
    details: Sequence[tuple[str, str]]
    """All other figures, with their names."""


def to_html(view: View) -> str:
    """The page as HTML text."""
    return _page(f"ahpatron: {view.learner}", "\n".join(_now(view)))


def before_first_row() -> str:
    """The page of a server that no row has come to."""
    return _page("ahpatron", "<h1>ahpatron</h1><p>The learner begins with the first row.</p>")


def _page(title: str, now: str) -> str:
    return _resource("page.html").format(
        title=_text(title),
        style=_resource("page.css"),
        script=_resource("page.js"),
        now=now,
    )


def policy() -> str:
    """Content security policy: this style sheet, this script, and the server itself."""
    style = _digest(_resource("page.css"))
    script = _digest(_resource("page.js"))
    return (
        f"default-src 'none'; style-src 'sha256-{style}'; script-src 'sha256-{script}'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


@cache
def _resource(name: str) -> str:
    """Text of a file beside this module."""
    return Path(__file__).with_name(name).read_text("utf-8")


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _text(text: str) -> str:
    """Untrusted text as HTML."""
    return escape(visible(text))


def _percent(share: float | None, digits: int = 2) -> str:
    return "–" if share is None else f"{100 * share:.{digits}f} %"


def _now(view: View) -> Iterator[str]:
    """The parts of the page, from top to bottom."""
    yield f"<h1>ahpatron: {_text(view.learner)}</h1>"
    state = f"state in {view.state}" if view.state else "no --state: nothing is saved"
    if view.saved:
        state += f", saved last {view.saved:{_TIME}}"
    yield f'<p class="notes">Running since {view.since:{_TIME}}; {_text(state)}</p>'
    for warning in view.warnings:
        yield f'<p class="warning">{_text(warning)}</p>'
    yield _tiles(view)
    yield from _curve(view)
    yield '<div class="columns">'
    yield _classes(view.classes)
    yield _relevances(view.relevances)
    yield "</div>"
    yield _answers(view)
    yield _details(view.details)


# Tiles --------------------------------------------------------------------------------------------


def _tiles(view: View) -> str:
    """The most important figures."""
    latency = "–"
    if view.latency is not None:
        most = f"<small>99 %: {view.latency.p99:.1f} ms</small>"
        latency = f"{view.latency.median:.1f} ms {most}"
    tiles = [
        (f"Mistakes, last {view.window_rounds:,}", _percent(view.window_rate)),
        ("Mistakes, all rounds", _percent(view.mistake_rate)),
        ("Rounds", f"{view.rounds:,}"),
        ("Rows a second", f"{view.rows_per_second:,.1f}"),
        ("Latency, median", latency),
    ]
    if view.pending is not None:
        tiles.append(("Waiting for labels", f"{view.pending:,}"))
    items = [f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in tiles]
    return f'<dl class="tiles">{"".join(items)}</dl>'


# The curve ----------------------------------------------------------------------------------------


def _curve(view: View) -> Iterator[str]:
    """The mistake rate of the window over the rounds, with drifts and resets."""
    yield f"<h2>Mistake rate of the last {view.window:,} rounds</h2>"
    if len(view.points) < 2:
        yield '<p class="notes">The curve begins when enough rows with labels have come.</p>'
        return
    yield _picture(view.points, view.events)
    keys = [_key("rate", "mistake rate")]
    kinds = {event.kind for event in view.events}
    if "drift" in kinds:
        keys.append(_key("drift", "drift: the mistake rate rises"))
    if "reset" in kinds:
        keys.append(_key("reset", "reset or alarm of the learner"))
    yield f'<p class="key">{"".join(keys)}</p>'


def _key(kind: str, text: str) -> str:
    line = f'<svg viewBox="0 0 28 10" aria-hidden="true"><path class="{kind}" d="M0 5H28"/></svg>'
    return f"<span>{line}{text}</span>"


def _picture(points: Sequence[Point], events: Sequence[Event]) -> str:
    """The curve as SVG that fills its box, between its labels."""
    first = points[0].round
    last = points[-1].round
    highest = max(point.rate for point in points)
    top = next(step for step in _STEPS if highest <= step)

    def x(rounds: int) -> float:
        return WIDTH * (rounds - first) / max(last - first, 1)

    parts = [f'<path class="grid" d="M0 {height}H{WIDTH}"/>' for height in (0, HEIGHT / 2, HEIGHT)]
    for event in events:
        if first <= event.round <= last:
            title = f"<title>{event.kind} at round {event.round:,}</title>"
            path = f"M{x(event.round):.1f} 0V{HEIGHT}"
            parts.append(f'<path class="{event.kind}" d="{path}">{title}</path>')
    places = [f"{x(point.round):.1f},{HEIGHT * (1 - point.rate / top):.1f}" for point in points]
    parts.append(f'<polyline class="rate" points="{" ".join(places)}"/>')
    now = _percent(points[-1].rate)
    about = f"Mistake rate from round {first:,} to {last:,}; now {now}"
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none"'
    drawn = f'<svg {box} role="img" aria-label="{about}">{"".join(parts)}</svg>'
    rates = "".join(f"<span>{100 * share * top:g} %</span>" for share in (1.0, 0.5, 0.0))
    rounds = f"<span>round {first:,}</span><span>{last:,}</span>"
    return (
        f'<div class="chart"><div class="rates">{rates}</div>{drawn}'
        f'<div class="rounds">{rounds}</div></div>'
    )


# Tables -------------------------------------------------------------------------------------------


def _table(heads: Sequence[str], rows: Sequence[str]) -> str:
    """A table that scrolls sideways if it is too wide; a head that ends with `#` is of numbers."""
    cells = []
    for head in heads:
        is_number = head.endswith("#")
        kind = ' class="number"' if is_number else ""
        cells.append(f'<th scope="col"{kind}>{_text(head.removesuffix("#"))}</th>')
    return (
        f'<div class="scroll" tabindex="0"><table><thead><tr>{"".join(cells)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _classes(classes: Sequence[ClassFigures]) -> str:
    """Precision and recall of each class."""
    rows = [
        f'<tr><th scope="row">{_text(one.name)}</th><td class="number">{one.rows:,}</td>'
        f'<td class="number">{_percent(one.precision, 1)}</td>'
        f'<td class="number">{_percent(one.recall, 1)}</td></tr>'
        for one in classes[:MOST_CLASSES]
    ]
    if not rows:
        return "<section></section>"
    table = _table(["label", "rows#", "precision#", "recall#"], rows)
    first = _first_of("most frequent", shown=len(rows), total=len(classes))
    return f"<section><h2>Labels</h2>{first}{table}</section>"


def _relevances(relevances: Sequence[Relevance]) -> str:
    """The columns that decide the distances."""
    rows = []
    largest = max((one.share for one in relevances), default=1.0) or 1.0
    for one in relevances[:MOST_COLUMNS]:
        bar = _bar(one.share / largest)
        rows.append(
            f'<tr><th scope="row">{_text(one.column)}</th>'
            f'<td class="number">{_percent(one.share, 1)}</td><td class="bar">{bar}</td></tr>'
        )
    if not rows:
        return "<section></section>"
    table = _table(["column", "relevance#", ""], rows)
    first = _first_of("most relevant", shown=len(rows), total=len(relevances))
    return f"<section><h2>Relevant columns</h2>{first}{table}</section>"


def _first_of(order: str, *, shown: int, total: int) -> str:
    """A note that a table does not show everything."""
    return f'<p class="notes">The {shown} {order} of {total:,}</p>' if shown < total else ""


def _bar(share: float) -> str:
    """A bar as a picture: the security policy forbids styles of elements."""
    width = max(round(100 * share, 1), 0.5)
    return (
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<path d="M0 4H{width}"/></svg>'
    )


def _answers(view: View) -> str:
    """The last answers, the newest first."""
    rows = []
    for answer in reversed(view.answers):
        mark = ' class="wrong" title="a mistake"' if answer.is_mistake else ""
        sign = " ✗" if answer.is_mistake else ""
        rows.append(
            f'<tr><td>{_text(answer.time)}</td><th scope="row">{_text(answer.key)}</th>'
            f"<td{mark}>{_text(answer.prediction)}{sign}</td>"
            f'<td class="number">{_text(answer.score)}</td><td>{_text(answer.label)}</td></tr>'
        )
    if not rows:
        return '<h2>Last answers</h2><p class="notes">No row has come yet.</p>'
    table = _table(["time", view.key, "prediction", "score#", "label"], rows)
    return f"<h2>Last answers</h2>{table}"


def _details(details: Sequence[tuple[str, str]]) -> str:
    """All other figures."""
    rows = [
        f'<tr><th scope="row">{_text(name)}</th><td class="number">{_text(value)}</td></tr>'
        for name, value in details
    ]
    table = _table(["figure", "value#"], rows)
    return f"<details><summary>All figures</summary>{table}</details>"
