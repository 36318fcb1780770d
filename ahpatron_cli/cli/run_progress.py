"""Messages while a file is run: progress, counts, rises of the mistake rate."""

from __future__ import annotations

from collections.abc import Callable

from ahpatron_cli.cli.stderr import Stderr, now
from ahpatron_cli.data.source import Source
from ahpatron_cli.runner import Run

_FIRST_MILESTONE = 1000
"""Number of rounds after which -v prints the counts for the first time; it doubles each time."""


class RunProgress:
    """The messages of all passes over one file."""

    def __init__(self, stderr: Stderr) -> None:
        self._stderr = stderr
        self._draw: Callable[..., None] | None = None
        self._source: Source | None = None
        self._counts: dict[str, str] = {}
        """The latest counts of each pass, as text."""
        self._milestones: dict[str, int] = {}
        """Number of rounds after which the counts of a pass are printed next."""

    def begin(self, draw: Callable[..., None], source: Source | None) -> None:
        """Start to draw the progress line: of a source that is read, or else of passes."""
        self._draw = draw
        self._source = source

    def show(self, run: Run, *_: object) -> None:
        """Print messages after a batch; an `Observer` of a run."""
        learner = run.setup.learner
        for number in run.drifts:
            rose = f"{learner}: the mistake rate rose; noticed in round {number:,}"
            self._stderr.warn(rose, timed=True)
        rate = f"{100 * run.mistakes / max(run.rounds, 1):.2f} %"
        self._draw_line(run, rate)
        name = f"{learner}, repeat {run.repeat}" if run.repeat else learner
        counts = f"{name}: {run.rounds:,} rounds, {run.mistakes:,} mistakes ({rate})"
        self._counts[name] = counts
        if run.rounds >= self._milestones.get(name, _FIRST_MILESTONE):
            self._stderr.detail(counts)
            doublings = (run.rounds // _FIRST_MILESTONE).bit_length()
            self._milestones[name] = _FIRST_MILESTONE << doublings

    def _draw_line(self, run: Run, rate: str) -> None:
        if self._draw is None:
            return
        done = max(len(self._counts) - 1, 0)
        if self._source:
            done = self._source.position
        recent = f", now {100 * run.recent.rate:.2f} %" if run.recent else ""
        self._draw(done, f"{run.rounds:,} rounds", f"{rate} mistakes{recent}")

    def show_passes(self, done: int, text: str) -> None:
        """Draw how many passes in other processes have ended."""
        if self._draw:
            self._draw(done, text)

    def print_counts(self, asked: bool) -> None:
        """Print the latest counts: on SIGUSR1 (`asked`), or with -v once a minute."""
        show: Callable[[str], None] = self._stderr.answer if asked else self._stderr.detail
        for text in self._counts.values() or ["no rows so far"]:
            show(f"{now()} {text}")
