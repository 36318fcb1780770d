"""Process pool of `sweep` and `run --jobs`, which survives the death of processes.

Each process is a separate executor with one task at a time, so the task during which it died is
known: only that task is run again, in a new process, and after some attempts `Died` is its
outcome. Processes are spawned, not forked: they inherit no lock, no open file and no threads. They
end when their parent does, however that ends. Nothing heavy is imported here, so that a process
watches its parent before it loads NumPy.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Generic, TypeVar

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.signals import deferred

HEARTBEAT = 0.5
"""Seconds after which `run_all` yields None if no task has finished."""
_SPAWN = multiprocessing.get_context("spawn")

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Died:
    """The outcome of a task whose process died at every attempt."""

    reason: str


def run_all(
    function: Callable[[T], R], tasks: Sequence[T], jobs: int, retries: int
) -> Iterator[tuple[int, R | Died | None]]:
    """Run tasks in `jobs` processes; yield (index, result) as they finish, (0, None) while waiting.

    Exceptions of `function` are raised here.
    """
    queue = deque((number, 0) for number in range(len(tasks)))
    running: dict[Future[R], tuple[_Process[T, R], int, int]] = {}
    idle: list[_Process[T, R]] = []
    try:
        while queue or running:
            while queue and len(running) < jobs:
                try:
                    process = idle.pop() if idle else _Process(function)
                except OSError as error:
                    if running:  # continue with fewer processes
                        break
                    problem = f"no process can be started: {error.strerror}"
                    raise UserError(problem, code=ExitCode.IO_ERROR) from None
                number, attempt = queue.popleft()
                running[process.submit(tasks[number])] = process, number, attempt
            done, _ = wait(running, timeout=HEARTBEAT, return_when=FIRST_COMPLETED)
            for future in done:
                process, number, attempt = running.pop(future)
                try:
                    result: R | Died = future.result()
                    idle.append(process)
                except BrokenProcessPool:
                    result = Died(process.end())
                    if attempt < retries:
                        queue.appendleft((number, attempt + 1))
                        continue
                yield number, result
            if not done:
                yield 0, None
    finally:
        busy = [process for process, _, _ in running.values()]
        for process in idle + busy:
            process.end()


class _Process(Generic[T, R]):
    """A process that runs one task at a time."""

    def __init__(self, function: Callable[[T], R]) -> None:
        self._function = function
        self._executor = ProcessPoolExecutor(
            max_workers=1, mp_context=_SPAWN, initializer=_end_with_parent
        )
        resource_tracker.ensure_running()  # start it now: it unblocks signals
        before = multiprocessing.active_children()
        # The process inherits blocked signals: only the parent handles Ctrl-C and ends it.
        with deferred():
            self._executor.submit(int)
        now = multiprocessing.active_children()
        new = [child for child in now if child not in before]
        self._process = None
        if new:
            self._process = new[0]
        """None if it has ended already."""

    def submit(self, task: T) -> Future[R]:
        try:
            return self._executor.submit(self._function, task)
        except BrokenProcessPool as error:  # it died while idle
            broken: Future[R] = Future()
            broken.set_exception(error)
            return broken

    def end(self) -> str:
        """Kill the process if it is alive; return a text on how it ended."""
        if self._process:
            self._process.kill()
        self._executor.shutdown(cancel_futures=True)
        if self._process is None:
            return "the process that ran it ended at once"
        code = self._process.exitcode or 0
        if code >= 0:
            return f"the process that ran it ended with exit code {code}"
        killer = signal.Signals(-code)
        hint = ""
        if killer == signal.SIGKILL:
            hint = " (out of memory?)"
        return f"the process that ran it was killed by {killer.name}{hint}"


def _end_with_parent() -> None:
    """Make this process end when its parent does; runs first in each process."""
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGHUP})
    parent = multiprocessing.parent_process()
    assert parent is not None

    def watch() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
