"""What the page shows of a stream and of its past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from ahpatron_cli.cli.server.page import ClassFigures, Relevance, View
from ahpatron_cli.explanation import column_relevances
from ahpatron_cli.metrics import qualities

if TYPE_CHECKING:
    from ahpatron_cli.cli.live_stream import LiveStream
    from ahpatron_cli.cli.server.history import History
    from ahpatron_cli.core.engine import Player
    from ahpatron_cli.core.rows import Integers
    from ahpatron_cli.data.schema import Schema
    from ahpatron_cli.live.service import ServiceFigures


def view_of(stream: LiveStream, history: History) -> View:
    """What the page shows of a stream, whose past is `history`."""
    service = stream.service
    run = service.run
    figures = service.figures()
    warnings = list(run.player.warnings())
    if history.not_saved:
        warnings.append(f"the state could not be saved: {history.not_saved}")
    schema = stream.dataset.encoder.schema
    state = stream.saving.state
    saved_at = stream.saving.saved_at
    return View(
        learner=run.setup.learner,
        since=history.since,
        state=None if state is None else state.path,
        saved=None if saved_at is None else datetime.fromtimestamp(saved_at),
        warnings=warnings,
        window=0 if run.recent is None else run.recent.size,
        window_rounds=0 if run.recent is None else run.recent.window().rounds,
        window_rate=figures.recent_rate if run.rounds else None,
        rounds=run.rounds,
        mistake_rate=figures.mistake_rate if run.rounds else None,
        rows_per_second=history.rows_per_second,
        latency=history.latency,
        pending=figures.pending if schema is not None and schema.id else None,
        points=history.points,
        events=history.events,
        classes=_classes(run.player.tally.confusion, stream.names()),
        relevances=_relevances(run.player, schema),
        answers=history.answers,
        key=(schema.id if schema else None) or "line",
        details=list(_details(figures)),
    )


def _details(figures: ServiceFigures) -> Iterator[tuple[str, str]]:
    """Names and values of figures that are numbers."""
    for name in figures.__struct_fields__:
        value = getattr(figures, name)
        if isinstance(value, int | float):
            text = f"{value:,}" if isinstance(value, int) else f"{value:.4f}"
            yield name.replace("_", " "), text


def _relevances(player: Player, schema: Schema | None) -> list[Relevance]:
    """The columns, the most relevant first."""
    found = [Relevance(one.column, one.relevance) for one in column_relevances(player, schema)]
    found.sort(key=lambda one: -one.share)
    return found


def _classes(confusion: Integers, names: Sequence[str]) -> list[ClassFigures]:
    """Precision and recall of the labels, the most frequent first; rows of `confusion` are true
    labels."""
    counts = confusion.tolist()
    found = []
    for name, row, quality in zip(names, counts, qualities(counts), strict=False):
        figures = ClassFigures(
            name,
            rows=sum(row),
            precision=quality.precision,
            recall=quality.recall,
        )
        found.append(figures)
    found.sort(key=lambda one: -one.rows)
    return found
