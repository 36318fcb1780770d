"""Figures of a live stream while it runs: events of the log, and the file for Prometheus."""

from __future__ import annotations

from msgspec import to_builtins

from ahpatron_cli import __version__
from ahpatron_cli.cli.ending import Ending
from ahpatron_cli.cli.live_saving import Saving
from ahpatron_cli.live.monitor import Monitor
from ahpatron_cli.live.service import Service


class LiveFigures:
    """Tells the monitor what a service counts, when that is due.

    Parameters
    ----------
    monitor : Monitor
    service : Service
    saving : Saving
        Knows when the state was saved.
    every : int
        Number of rounds between two events with figures.
    """

    def __init__(self, monitor: Monitor, service: Service, saving: Saving, *, every: int) -> None:
        self._monitor = monitor
        self._service = service
        self._saving = saving
        self._every = every
        recent = service.run.recent
        self._drifts = len(recent.drifts) if recent else 0
        self._mistakes = 0
        """Drifts and mistakes that the log has taken note of."""
        monitor.learner = service.run.setup.learner

    def log_start(self) -> None:
        """Log that the stream begins, or continues."""
        state = self._saving.state
        self._monitor.event(
            "start",
            version=__version__,
            data=self._service.stream.name,
            state=None if state is None else state.path,
            learner=self._service.run.setup.learner,
            **to_builtins(self._service.figures()),
        )

    def log_changes(self) -> None:
        """Log drifts and resets since the last call."""
        run = self._service.run
        if run.recent is not None:
            for number in run.recent.drifts[self._drifts :]:
                self._monitor.event("drift", round=number, mistake_rate=run.recent.rate)
            self._drifts = len(run.recent.drifts)
        if self._monitor.is_needed and run.mistakes != self._mistakes:
            self._mistakes = run.mistakes
            new = self._service.new_resets()
            if new:
                self._monitor.event("reset", round=run.rounds, resets=new)

    def show_if_due(self) -> None:
        """Show the figures at multiples of their number of rounds."""
        if self._service.run.rounds % self._every == 0:
            self.show()

    def show(self, *, last: bool = False) -> None:
        """Show the figures to those who want to know."""
        if self._monitor.is_needed:
            figures = self._service.figures()
            self._monitor.figures(figures, saved_at=self._saving.saved_at, last=last)

    def log_end(self, ending: Ending) -> None:
        """Show the last figures, and log how the stream ended."""
        self.show(last=True)
        reason = ending.fault.problem if ending.fault else None
        figures = to_builtins(self._service.figures())
        self._monitor.event("ended", ended_by=ending.by, reason=reason, **figures)
