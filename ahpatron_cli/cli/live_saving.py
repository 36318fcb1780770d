"""What outlives a live stream: its state, now and then, and a model at its end."""

from __future__ import annotations

import copy
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.core.errors import StateError
from ahpatron_cli.data.batch import FileInfo
from ahpatron_cli.errors import UserError, usage
from ahpatron_cli.live.monitor import Monitor
from ahpatron_cli.live.service import Service
from ahpatron_cli.live.state_file import StateFile
from ahpatron_cli.model_file import Model, OptionValue, to_bytes


@dataclass
class Saving:
    """Saves a service to --state and --save, as far as they are given."""

    service: Service
    info: FileInfo
    """Facts about the stream so far."""
    state: StateFile | None = field(kw_only=True)
    save_to: str | None = field(kw_only=True)
    """The path of --save."""
    options: dict[str, OptionValue] = field(kw_only=True)
    """The options that decide the rounds, which are saved too."""
    monitor: Monitor = field(kw_only=True)
    stderr: Stderr = field(kw_only=True)

    def __post_init__(self) -> None:
        self._features_before = 0
        if self.state is not None and self.state.model is not None:
            self._features_before = self.state.model.header.features

    @property
    def is_asked(self) -> bool:
        """Whether anything is saved."""
        return self.state is not None or self.save_to is not None

    @property
    def saved_at(self) -> float | None:
        """When the state was last saved, in seconds since 1970."""
        return None if self.state is None else self.state.saved_at

    def check(self) -> None:
        """Refuse a learner that cannot be saved, before the first round."""
        if self.state is None:
            return
        try:
            self.service.run.player.state_dict()
        except StateError as error:
            raise usage(str(error)) from None

    @property
    def features(self) -> int:
        """Number of features, with those that earlier processes have seen."""
        return max(self.info.features, self._features_before)

    def model(self) -> Model:
        """The model of the service."""
        return self.service.model(self.features, self.options)

    def save_if_due(self) -> None:
        """Save the state at multiples of its number of rounds."""
        if self.state is not None and self.service.run.rounds % self.state.every == 0:
            self.save_state()

    def save_state(self) -> None:
        """Save the state if it is behind; if that fails, say so and go on: it is tried again."""
        if self.state is None:
            return
        try:
            self._save_if_behind(self.state)
        except UserError as error:
            self.note_not_saved(self.state, error)

    def save_last(self) -> UserError | None:
        """Save the state and the model; return why the state could not be saved."""
        failed = None
        if self.state is not None:
            try:
                self._save_if_behind(self.state)
            except UserError as error:
                failed = error
                self.monitor.event("not saved", reason=error.problem)
        if self.save_to is not None:
            write_atomically(self.save_to, to_bytes(self.model()))
        return failed

    def _save_if_behind(self, state: StateFile) -> None:
        progress = (self.service.run.rounds, self.service.counts.lines)
        if state.is_behind(progress):
            self.write(state, self.model(), progress)

    def write(self, state: StateFile, model: Model, progress: tuple[int, int]) -> None:
        """Write the state, of which `progress` has the rounds and the lines, and log it."""
        started = time.perf_counter()
        state.save(model, progress=progress)
        self.note_saved(state, progress, time.perf_counter() - started)

    def note_saved(self, state: StateFile, progress: tuple[int, int], seconds: float) -> None:
        """Log that the state was saved."""
        rounds, lines = progress
        took = round(seconds, 3)
        self.monitor.event("saved", path=state.path, rounds=rounds, lines=lines, seconds=took)

    def note_not_saved(self, state: StateFile, error: UserError) -> None:
        """Say and log that the state could not be saved."""
        text = f"the state is not saved, and saving it is tried again: {error}"
        self.stderr.warn(text, timed=True)
        self.monitor.event("not saved", path=state.path, reason=error.problem)


@contextmanager
def released(lock: threading.Lock) -> Iterator[None]:
    """Context manager: a lock that this thread holds is free."""
    lock.release()
    try:
        yield
    finally:
        lock.acquire()


def _new_writer() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "state")


@dataclass
class SavingBeside(Saving):
    """Saves a copy of the service in a thread of its own, while the service goes on.

    The last time, the service waits. Its thread holds `lock`, which the events of saving need too.
    """

    lock: threading.Lock = field(kw_only=True)
    writer: ThreadPoolExecutor = field(kw_only=True, default_factory=_new_writer)
    """The thread that writes the state."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self._writing: Future[None] | None = None
        self._is_last = False

    def save_last(self) -> UserError | None:
        with released(self.lock):  # the note of an earlier save may wait for the lock
            self.writer.shutdown()
        self._is_last = True
        return super().save_last()

    def write(self, state: StateFile, model: Model, progress: tuple[int, int]) -> None:
        if self._is_last:
            super().write(state, model, progress)
            return
        if self._writing is not None and not self._writing.done():
            return  # it is still behind, and will be asked for again
        started = time.perf_counter()
        # Arrays of the model are those that the learner changes when this thread goes on.
        copied = copy.deepcopy(model)
        written = self.writer.submit(state.save, copied, progress=progress)

        def note() -> None:
            error = written.exception()
            with self.lock:
                if error is None:
                    self.note_saved(state, progress, time.perf_counter() - started)
                elif isinstance(error, UserError):
                    self.note_not_saved(state, error)
                else:
                    self.note_not_saved(state, UserError(repr(error)))

        # As a callback, this thread, which has the lock, would call it if all is written already.
        self.writer.submit(note)
        self._writing = written
