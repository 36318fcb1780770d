"""What the page shows of the past: mistake rates, drifts, answers, latencies; bounded memory."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.answers import NO_ANSWER

if TYPE_CHECKING:
    from ahpatron_cli.live.service import AnsweredRows
    from ahpatron_cli.runner import Run

MOST_POINTS = 400
"""If the curve has more points, every second one is dropped."""
MOST_EVENTS = 50
LAST_ANSWERS = 12
LATENCIES = 2000
SPEED_SECONDS = 10.0
"""Rows a second are counted over so many seconds."""

EventKind: TypeAlias = Literal["drift", "reset"]


class Point(NamedTuple):
    """The mistake rate at a round."""

    round: int
    rate: float


class Event(NamedTuple):
    """A drift or a reset."""

    round: int
    kind: EventKind


class Shown(NamedTuple):
    """An answer as the page lists it; all cells are text."""

    time: str
    key: str
    prediction: str
    score: str
    label: str
    is_mistake: bool


@dataclass(frozen=True)
class Latency:
    """Milliseconds from the arrival of a request to its answer."""

    median: float
    p99: float


class History:
    """The past of a service, as far as the page shows it."""

    def __init__(self) -> None:
        self.since = datetime.now()
        """When the server was started."""
        self.not_saved: str | None = None
        """Why the state could not be saved the last time."""
        self.points: list[Point] = []
        self.events: deque[Event] = deque(maxlen=MOST_EVENTS)
        self.answers: deque[Shown] = deque(maxlen=LAST_ANSWERS)
        self._latencies: deque[float] = deque(maxlen=LATENCIES)
        self._arrivals: deque[tuple[float, int]] = deque(maxlen=LATENCIES)
        self._step = 1
        """A point is kept if so many rounds have passed since the last one."""

    def note_answers(self, run: Run, answers: AnsweredRows, names: Sequence[str]) -> None:
        """Note the recent mistake rate and the last of these answers; `names` are the labels."""
        if run.recent is not None and run.recent.window().rounds == run.recent.size:
            self._note_rate(run.rounds, run.recent.rate)
        now = datetime.now().strftime("%H:%M:%S")
        count = len(answers.lines)
        for number in range(max(0, count - LAST_ANSWERS), count):
            shown = _shown(answers, number, names=names, now=now)
            self.answers.append(shown)

    def _note_rate(self, rounds: int, rate: float) -> None:
        """Note the mistake rate at a round."""
        if self.points and rounds - self.points[-1].round < self._step:
            return
        self.points.append(Point(rounds, rate))
        if len(self.points) > MOST_POINTS:
            self.points = self.points[::2]
            span = self.points[-1].round - self.points[0].round
            self._step = max(1, 2 * span // MOST_POINTS)

    def note_event(self, name: str, fields: Mapping[str, Any]) -> None:
        """Note an event of the log, if the page shows it."""
        if name == "drift":
            self.events.append(Event(fields["round"], "drift"))
        elif name == "reset":
            self.events.append(Event(fields["round"], "reset"))
        elif name == "not saved":
            self.not_saved = str(fields["reason"])
        elif name == "saved":
            self.not_saved = None

    def note_request(self, rows: int, seconds: float) -> None:
        """Note that a request for so many rows was answered."""
        self._latencies.append(1e3 * seconds)
        self._arrivals.append((time.monotonic(), rows))

    @property
    def latency(self) -> Latency | None:
        """Latency of the last requests; None if there were none."""
        if not self._latencies:
            return None
        median, p99 = np.percentile(list(self._latencies), [50, 99])
        return Latency(median=float(median), p99=float(p99))

    @property
    def rows_per_second(self) -> float:
        """Rows answered or learned per second in the last seconds."""
        since = time.monotonic() - SPEED_SECONDS
        rows = sum(count for moment, count in self._arrivals if moment >= since)
        return rows / SPEED_SECONDS


def _shown(answers: AnsweredRows, number: int, *, names: Sequence[str], now: str) -> Shown:
    """One of these answers as the page lists it."""
    guess = int(answers.given.chosen[number])
    is_answer = guess != NO_ANSWER
    label = answers.labels[number]
    scores = answers.given.scores[number]
    true = None
    if not np.isnan(label):
        true = int(label > 0) if scores.ndim == 0 else int(label)
    key = answers.lines[number] if answers.ids is None else answers.ids[number]
    return Shown(
        time=now,
        key=str(key),
        prediction=names[guess] if is_answer else "",
        score=f"{float(np.max(scores)):.3g}" if is_answer else "",
        label="" if true is None else names[true],
        is_mistake=true is not None and true != guess,
    )
