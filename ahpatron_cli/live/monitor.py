"""Figures while a service runs: a log of events as JSON lines, and a file for Prometheus."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.live.service import ServiceFigures

Listener: TypeAlias = Callable[[str, Mapping[str, Any]], None]
"""What is called with the name of each event and its fields."""
STDERR = "-"
FIGURES_EVERY = 1000
"""Number of rounds between two events with figures, unless --window says otherwise."""
_SECONDS_BETWEEN_FILES = 1.0
"""Seconds between two files for Prometheus, at least, which asks every few seconds."""


def timestamp(seconds: float | None = None) -> str:
    """A moment, or now, in ISO 8601 with the time zone of the machine."""
    moment = datetime.now() if seconds is None else datetime.fromtimestamp(seconds)
    return moment.astimezone().isoformat(timespec="milliseconds")


class AppendedLines:
    """A file to which JSON lines are appended; it may be renamed meanwhile, as logrotate does.

    A `UserError` if it cannot be opened.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            self._descriptor = self._opened()
        except OSError as error:
            problem = f"the output cannot be created: {error.strerror or error}"
            raise UserError(problem, code=ExitCode.CANNOT_CREATE, place=Place(path)) from None

    def _opened(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOCTTY
        return os.open(self.path, flags, 0o666)

    def add(self, document: dict[str, Any]) -> None:
        """Append a line; an OSError if that fails."""
        self._follow()
        line = json.dumps(document, ensure_ascii=False).encode("utf-8", "backslashreplace")
        rest = line + b"\n"
        while rest:
            written = os.write(self._descriptor, rest)
            rest = rest[written:]

    def _follow(self) -> None:
        """Open the file again if its name is no longer that of the open one."""
        try:
            is_same = os.path.samestat(os.stat(self.path), os.fstat(self._descriptor))  # noqa: PTH116
        except FileNotFoundError:
            is_same = False
        if not is_same:
            fresh = self._opened()
            os.close(self._descriptor)
            self._descriptor = fresh

    def close(self) -> None:
        """Close the file."""
        with suppress(OSError):
            os.close(self._descriptor)


class Monitor:
    """What tells others how a service is doing: --log and --prometheus.

    Parameters
    ----------
    log, prometheus : str, optional
        The files; `-` as the log is stderr.
    show : callable
        Writes a line to stderr.
    warn : callable
        Writes a warning to stderr.
    listener : callable, optional
        Is called with the name of each event and its fields.
    """

    def __init__(
        self,
        log: str | None,
        prometheus: str | None,
        *,
        show: Callable[[str], None],
        warn: Callable[[str], None],
        listener: Listener | None = None,
    ) -> None:
        self._listener = listener
        self._show = show if log == STDERR else None
        self._warn = warn
        self._log: AppendedLines | None = None
        if log is not None and log != STDERR:
            self._log = AppendedLines(log)
        self._prometheus = prometheus
        self._next_file = 0.0
        self._failing = set[str]()
        """Files that could not be written the last time."""
        self._last: tuple[float, int] | None = None
        self.learner = ""

    @property
    def is_needed(self) -> bool:
        """Whether anybody wants to know."""
        readers = (self._listener, self._show, self._log, self._prometheus)
        return any(reader is not None for reader in readers)

    def event(self, name: str, **fields: Any) -> None:
        """Log an event; if the log cannot be written, the service goes on with a warning."""
        if self._listener is not None:
            self._listener(name, fields)
        if self._show is None and self._log is None:
            return
        document = {"time": timestamp(), "event": name, **fields}
        if self._show is not None:
            self._show(json.dumps(document, ensure_ascii=False))
        if self._log is None:
            return
        try:
            self._log.add(document)
        except OSError as error:
            self._fail(self._log.path, error.strerror or str(error))
        else:
            self._failing.discard(self._log.path)

    def figures(
        self, figures: ServiceFigures, *, saved_at: float | None, last: bool = False
    ) -> None:
        """Log the figures, and write them for Prometheus unless that was done a moment ago."""
        fields = msgspec.to_builtins(figures)
        self.event("figures", rows_per_second=self._speed(figures), **fields)
        now = time.monotonic()
        if self._prometheus is None or (now < self._next_file and not last):
            return
        self._next_file = now + _SECONDS_BETWEEN_FILES
        text = exposition(figures, self.learner, saved_at=saved_at)
        try:
            write_atomically(self._prometheus, text)
        except UserError as error:
            self._fail(self._prometheus, error.problem)
        else:
            self._failing.discard(self._prometheus)

    def _speed(self, figures: ServiceFigures) -> float | None:
        """Rows per second since the last event with figures."""
        now = time.monotonic()
        rows = figures.rounds + figures.unlabelled
        before = self._last
        self._last = (now, rows)
        if before is None or now <= before[0]:
            return None
        return round((rows - before[1]) / (now - before[0]), 1)

    def _fail(self, path: str, problem: str) -> None:
        if path not in self._failing:
            self._warn(f"{path} cannot be written, and is tried again: {problem}")
        self._failing.add(path)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()


# Prometheus ---------------------------------------------------------------------------------------


class _Metric(NamedTuple):
    """A metric in the text format of Prometheus."""

    name: str
    kind: str
    help: str
    value: float | None


def exposition(figures: ServiceFigures, learner: str, *, saved_at: float | None) -> str:
    """The figures in the text format of Prometheus; those that are not known are left out."""
    label = learner.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
    lines = []
    for metric in _metrics(figures, saved_at):
        if metric.value is None:
            continue
        name = f"ahpatron_{metric.name}"
        lines.append(f"# HELP {name} {metric.help}")
        lines.append(f"# TYPE {name} {metric.kind}")
        lines.append(f'{name}{{learner="{label}"}} {metric.value!r}')
    return "\n".join([*lines, ""])


_COUNTERS = {
    "rounds": "Rows that were learned.",
    "mistakes": "Wrong predictions of these rows.",
    "unlabelled": "Rows that came without a label.",
    "late_labels": "Labels that came after their rows, and were learned.",
    "forgotten": "Rows that were forgotten before their labels came.",
    "unmatched": "Labels for which no row was waiting.",
    "faults": "Lines that were left out.",
    "drifts": "Rises of the mistake rate.",
    "resets": "Resets and alarms of the learner.",
    "lines": "Input lines behind the state.",
}
"""Figures that only grow, with the help text of each."""
_GAUGES = {
    "pending": "Rows that wait for their labels.",
    "mistake_rate": "Share of wrong predictions in all rounds.",
    "window_mistake_rate": "Share of wrong predictions in the last rounds.",
    "support_size": "Examples stored.",
    "saved_timestamp_seconds": "When the state was saved, in seconds since 1970.",
}
"""The others, with the help text of each."""


def _metrics(figures: ServiceFigures, saved_at: float | None) -> Iterator[_Metric]:
    """The metrics in the order of the file; the value of a gauge may be missing."""
    for name, text in _COUNTERS.items():
        value = getattr(figures, name)
        yield _Metric(f"{name}_total", "counter", help=text, value=value)
    recent = figures.window["mistake_rate"] if figures.window else None
    values = {
        "pending": figures.pending,
        "mistake_rate": figures.mistake_rate,
        "window_mistake_rate": recent,
        "support_size": figures.support_size,
        "saved_timestamp_seconds": saved_at,
    }
    for name, text in _GAUGES.items():
        yield _Metric(name, "gauge", help=text, value=values[name])
