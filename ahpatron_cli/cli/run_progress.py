"""Messages while a file is run: progress, counts, rises of the mistake rate."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ahpatron_cli.cli.stderr import Stderr, now
from ahpatron_cli.data.source import Source
from ahpatron_cli.runner import Run

_FIRST_MILESTONE = 1000
"""Number of rounds after which -v prints the counts for the first time; it doubles each time."""
_BETWEEN_LEADERS = 500
"""Number of rounds between two messages on the leading memory, at least: w may stay around 1/2."""


@dataclass(frozen=True)
class _Leaders:
    """Which memories lead."""

    trackers: int
    """Number of learners whose tracker leads: of one, or of one per class."""
    round: int
    """When this was said; 0: it is the beginning, when no tracker leads."""


def _leader_text(trackers: int, learners: int) -> str:
    """Text on the leading memory; with one learner per class, on the number of trackers."""
    if learners > 1:
        return f"the tracker leads in {trackers:,} of {learners:,} classes"
    if trackers:
        return "the tracker leads"
    return "the steady memory leads again"


def _name(run: Run) -> str:
    """Name of a pass in messages."""
    learner = run.setup.learner
    if not run.repeat:
        return learner
    return f"{learner}, repeat {run.repeat}"


class RunProgress:
    """The messages of all passes over one file."""

    def __init__(self, stderr: Stderr) -> None:
        self._stderr = stderr
        self._draw: Callable[..., None] | None = None
        self._source: Source | None = None
        self._waits = False
        self._counts: dict[str, str] = {}
        """The latest counts of each pass, as text."""
        self._milestones: dict[str, int] = {}
        """Number of rounds after which the counts of a pass are printed next."""
        self._leaders: dict[str, _Leaders] = {}
        """The leading memories of each pass, as last seen in a message."""

    @contextmanager
    def shown(
        self, source: Source, *, passes: int | None = None, beside_rows: bool
    ) -> Iterator[None]:
        """Context manager: draw the progress line of a source that is read, or of passes in memory.

        `beside_rows`: rows are written to stdout meanwhile.
        """
        total = source.size if passes is None else passes
        name = Path(source.name).name
        with self._stderr.progress(total, name, beside_rows=beside_rows) as draw:
            self._draw = draw
            self._source = source if passes is None else None
            yield

    def note_terminal(self, path: str) -> None:
        """Print that rows are read, if they have to be typed."""
        if path == "-" and sys.stdin is not None and sys.stdin.isatty():
            self._stderr.note("reading standard input; Ctrl-D ends it")

    def note_waiting(self, needed: int, rows: int) -> None:
        """Print, once, that the first `needed` rows are waited for, of which `rows` have come."""
        if not self._waits:
            self._stderr.note(
                f"waiting for the first rows, {needed:,} with labels, which "
                f"--missing mean, --scale and --sigma auto require: {rows:,} have arrived "
                "(a smaller --warm-up N requires fewer)"
            )
        self._waits = True

    def show(self, run: Run, *_: object) -> None:
        """Print messages after a batch; an `Observer` of a run."""
        name = run.setup.learner
        for number in run.drifts:
            rose = f"{name}: the mistake rate rose; noticed in round {number:,}"
            self._stderr.warn(rose, timed=True)
        share = run.mistakes / max(run.rounds, 1)
        rate = _percent(share)
        self._draw_line(run, rate)
        name = _name(run)
        rounds = f"{run.rounds:,} rounds"
        mistakes = f"{run.mistakes:,} mistakes"
        counts = f"{name}: {rounds}, {mistakes} ({rate})"
        self._counts[name] = counts
        milestone = self._milestones.get(name, _FIRST_MILESTONE)
        if run.rounds >= milestone:
            self._stderr.detail(counts)
            self._milestones[name] = _next_milestone(run.rounds)

    def show_leader(self, run: Run, *_: object) -> None:
        """Print that the tracker leads, or no longer does; an `Observer` of a run.

        With --window a note, else a detail. To be called when the answers of the batch are out,
        because a change of the metric may be due.
        """
        if run.recent is None and not self._stderr.is_verbose:
            return
        name = _name(run)
        before = self._leaders.get(name, _Leaders(trackers=0, round=0))
        if before.round and run.rounds < before.round + _BETWEEN_LEADERS:
            return
        memories = run.memories()
        trackers = sum(one.tracker_leads for one in memories)
        if trackers == before.trackers:
            return
        self._leaders[name] = _Leaders(trackers, run.rounds)
        leader = _leader_text(trackers, len(memories))
        text = f"{name}: {leader} after round {run.rounds:,}"
        if run.recent is None:
            self._stderr.detail(text)
        else:
            self._stderr.note(text)

    def _draw_line(self, run: Run, rate: str) -> None:
        if self._draw is None:
            return
        done = max(len(self._counts) - 1, 0)
        if self._source:
            done = self._source.position
        rounds = f"{run.rounds:,} rounds"
        mistakes = f"{rate} mistakes"
        if run.recent:
            mistakes += f", now {_percent(run.recent.rate)}"
        self._draw(done, rounds, mistakes)

    def show_passes(self, done: int, text: str) -> None:
        """Draw how many passes in other processes have ended."""
        if self._draw:
            self._draw(done, text)

    def print_counts(self, asked: bool) -> None:
        """Print the latest counts: on SIGUSR1 (`asked`), or with -v once a minute."""
        texts = list(self._counts.values())
        if not texts:
            texts.append("no rows so far")
        for text in texts:
            timed = f"{now()} {text}"
            if asked:
                self._stderr.answer(timed)
            else:
                self._stderr.detail(timed)


def _percent(share: float) -> str:
    """A rate as text: `12.50 %`."""
    return f"{100 * share:.2f} %"


def _next_milestone(rounds: int) -> int:
    """The first milestone after this number of rounds."""
    milestone = _FIRST_MILESTONE
    while milestone <= rounds:
        milestone *= 2
    return milestone
