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
        name = run.setup.learner
        for number in run.drifts:
            rose = f"{name}: the mistake rate rose; noticed in round {number:,}"
            self._stderr.warn(rose, timed=True)
        share = run.mistakes / max(run.rounds, 1)
        rate = _percent(share)
        self._draw_line(run, rate)
        if run.repeat:
            name += f", repeat {run.repeat}"
        rounds = f"{run.rounds:,} rounds"
        mistakes = f"{run.mistakes:,} mistakes"
        counts = f"{name}: {rounds}, {mistakes} ({rate})"
        self._counts[name] = counts
        milestone = self._milestones.get(name, _FIRST_MILESTONE)
        if run.rounds >= milestone:
            self._stderr.detail(counts)
            self._milestones[name] = _next_milestone(run.rounds)

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
