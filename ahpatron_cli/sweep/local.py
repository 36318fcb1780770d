"""Trials in local processes: each plays one trial at a time, and each may die without loss.

What a process was playing when it died is known, so that trial alone is played again, by a new
process; after some attempts its death is its outcome. Processes are spawned, not forked: they
inherit no lock, no open file and no threads. They end when their parent does, however that ends;
so nothing heavy is imported here: a process watches its parent before it loads NumPy.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import TYPE_CHECKING, cast

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.signals import deferred, unreachable_children

if TYPE_CHECKING:
    from ahpatron_cli.sweep.summary import TrialRecord
    from ahpatron_cli.sweep.trial import Task

HEARTBEAT = 0.5
"""Seconds after which a caller hears that nothing is new."""
_SPAWN = multiprocessing.get_context("spawn")


def play_locally(tasks: Sequence[Task], jobs: int, retries: int) -> Iterator[TrialRecord | None]:
    """Trials as they end; None now and then, when none does."""
    queue = deque((task, 0) for task in tasks)
    workers: list[_Worker] = []
    try:
        while queue or any(worker.busy for worker in workers):
            while queue and (idle := _idle(workers, jobs)):
                idle.start(*queue.popleft())
            busy = {worker.connection: worker for worker in workers if worker.busy}
            ready = wait(list(busy), timeout=HEARTBEAT)
            for connection in ready:
                worker = busy[connection]  # type: ignore[index]  # wait returns what it was given
                outcome = worker.outcome()
                if outcome is None:  # it died
                    workers.remove(worker)
                    task, attempt = worker.task, worker.attempt
                    if attempt < retries:
                        queue.appendleft((task, attempt + 1))
                        continue
                    outcome = task.record(None, worker.death())
                yield outcome
            if not ready:
                yield None
    finally:
        for worker in workers:
            worker.end()


def _idle(workers: list[_Worker], jobs: int) -> _Worker | None:
    for worker in workers:
        if not worker.busy:
            return worker
    if len(workers) < jobs:
        try:
            with deferred():  # a process half started would end in a traceback of its own
                workers.append(_Worker())
        except OSError as error:
            if workers:  # those there are have to do
                return None
            raise UserError(
                f"no process can be started: {error.strerror}", code=ExitCode.IO_ERROR
            ) from None
        return workers[-1]
    return None


class _Worker:
    """A process and our end of the pipe to it."""

    task: Task
    attempt: int

    def __init__(self) -> None:
        self.connection, theirs = _SPAWN.Pipe()
        self._process: SpawnProcess = _SPAWN.Process(target=_serve, args=(theirs,), daemon=True)
        with unreachable_children():
            self._process.start()
        theirs.close()  # so that we notice when the process closes it by dying
        self.busy = False

    def start(self, task: Task, attempt: int) -> None:
        self.task, self.attempt, self.busy = task, attempt, True
        with suppress(OSError):  # it died while idle: the answer will say so
            self.connection.send(task)

    def outcome(self) -> TrialRecord | None:
        """The answer to the task; None if the process died over it."""
        try:
            answer = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.busy = False
        return cast("TrialRecord", answer)

    def death(self) -> str:
        """How the process ended."""
        self._process.join()
        code = self._process.exitcode or 0
        if code >= 0:
            return f"the process that played it ended with exit code {code}"
        hint = " (out of memory?)" if code == -signal.SIGKILL else ""
        return f"the process that played it was killed by {signal.Signals(-code).name}{hint}"

    def end(self) -> None:
        self._process.kill()
        self._process.join()
        self.connection.close()


def _serve(connection: Connection) -> None:
    """Play the trials that come through the pipe, until it is closed."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    from ahpatron_cli.sweep.trial import play

    while True:
        try:
            task = connection.recv()
        except EOFError:
            return
        connection.send(play(task))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
