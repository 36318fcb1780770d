"""Trials on a Dask cluster: the same trials, run by whatever workers there are.

Workers read the data themselves, from the same path, and check its hash. Trials are sent in bundles
of about half a second, two bundles for each thread of the cluster at a time. Dask runs a bundle
again when its worker dies; if that does not help, its trials are sent one by one.
"""

from __future__ import annotations

import importlib.util
import logging
import secrets
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ahpatron_cli import __version__
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.pool import HEARTBEAT
from ahpatron_cli.sweep.summary import Outcome
from ahpatron_cli.sweep.trial import Trial, run_trial

if TYPE_CHECKING:
    from distributed import Client, Future

SCHEDULER_SECONDS = 10
"""How long the scheduler may take to answer."""
WARNING_SECONDS = 10
"""How long there may be no worker before that is printed."""
BUNDLE_SECONDS = 0.5
MOST_TRIALS = 100
"""In a bundle."""
LEAST_WINDOW = 4
"""Bundles that are sent before any worker has joined."""


def check_dask() -> None:
    """Refuse `--scheduler` where Dask is not installed, before anything else is done."""
    if importlib.util.find_spec("distributed") is None:
        raise UserError(
            "--scheduler needs Dask",
            code=ExitCode.USAGE,
            hint="pip install 'ahpatron-cli[dask]', here and on the workers",
        )


def play_on_cluster(
    trials: Sequence[Trial], scheduler: str, retries: int, wait: float, warn: Callable[[str], None]
) -> Iterator[Outcome | None]:
    """Trials as they end; None now and then, when none does.

    The sweep ends when there was no worker for `wait` seconds.
    """
    from distributed import Client

    # what it logs about a lost connection is a page long; ours is a line
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        raise UserError(
            f"no Dask scheduler answers at {scheduler}: {_first_line(error)}",
            code=ExitCode.NO_INPUT,
            hint="start one with `dask scheduler`, and workers with `dask worker tcp://HOST:8786`",
        ) from None
    try:
        with client:
            _check_versions(client)
            workers = _Workers(client, scheduler, wait, warn)
            yield from _Submission(client, workers, trials, retries).outcomes()
    except (OSError, TimeoutError, CancelledError):
        raise UserError(
            f"the connection to the scheduler at {scheduler} was lost",
            code=ExitCode.IO_ERROR,
            hint="all results so far are kept; the same command continues",
        ) from None


class _Workers:
    """The threads of a cluster's workers, and how long there have been none."""

    def __init__(
        self, client: Client, scheduler: str, wait: float, warn: Callable[[str], None]
    ) -> None:
        self._client, self._scheduler = client, scheduler
        self._wait, self._warn = wait, warn
        self._seen = time.monotonic()
        self._ever = self._warned = False
        self.threads = 0
        self.count()

    def count(self) -> None:
        """Ask the scheduler; warn of no workers, and at last give up."""
        self.threads = sum(self._client.nthreads().values())
        now = time.monotonic()
        if self.threads:
            self._seen, self._ever, self._warned = now, True, False
            return
        absent = now - self._seen
        if absent >= self._wait:
            raise UserError(
                f"the Dask cluster at {self._scheduler} had no worker for {absent:.0f} s",
                code=ExitCode.IO_ERROR if self._ever else ExitCode.NO_INPUT,
                hint=f"start some with `dask worker {self._scheduler}`; `--wait SECONDS` waits "
                "longer; all results so far are kept",
            )
        if absent >= WARNING_SECONDS and not self._warned:
            self._warned = True
            self._warn(
                f"the Dask cluster at {self._scheduler} has no worker; the sweep waits for one "
                f"until {self._wait:.0f} s have passed (--wait)"
            )


class _Submission:
    """Trials on their way: those still to be sent, and the bundles that the cluster has."""

    def __init__(
        self, client: Client, workers: _Workers, trials: Sequence[Trial], retries: int
    ) -> None:
        self._client, self._workers, self._retries = client, workers, retries
        # in the keys of our own results, so that no other client may release them
        self._run = secrets.token_hex(4)
        self._left = deque(trials)
        self._alone: deque[Trial] = deque()
        """Trials of a bundle that failed as a whole."""
        self._sent: dict[str, tuple[Future, list[Trial]]] = {}
        self._ended: SimpleQueue[Future] = SimpleQueue()  # filled by a thread of Dask's
        self._trial_seconds = BUNDLE_SECONDS

    def outcomes(self) -> Iterator[Outcome | None]:
        """Trials as they end; None now and then."""
        while self._left or self._alone or self._sent:
            self._fill_window()
            try:
                future = self._ended.get(timeout=HEARTBEAT)
            except Empty:
                if self._client.status != "running":
                    raise ConnectionError from None
                self._workers.count()
                yield None
                continue
            if future.key not in self._sent:
                continue
            _, trials = self._sent.pop(future.key)
            if future.status == "error" and len(trials) > 1:
                self._alone.extend(trials)
            elif future.status == "error":
                problem = f"on the cluster: {_first_line(future.exception())}"
                yield trials[0].outcome(None, problem)
            else:
                found: list[Outcome] = future.result()  # raises where the scheduler went away
                self._trial_seconds = sum(one.wall_seconds for one in found) / len(found)
                yield from found

    def _fill_window(self) -> None:
        window = max(2 * self._workers.threads, LEAST_WINDOW)
        while (self._left or self._alone) and len(self._sent) < window:
            if self._alone:
                self._submit([self._alone.popleft()])
                continue
            fair = len(self._left) // window + 1  # so that all workers have something to do
            quick = int(BUNDLE_SECONDS / max(self._trial_seconds, 1e-6))
            size = max(min(quick, fair, MOST_TRIALS), 1)
            self._submit([self._left.popleft() for _ in range(min(size, len(self._left)))])

    def _submit(self, trials: list[Trial]) -> None:
        key = f"{trials[0].id}-{len(trials)}-{self._run}"
        future = self._client.submit(run_pinned, trials, key=key, retries=self._retries, pure=False)
        self._sent[key] = future, trials
        future.add_done_callback(self._ended.put)


def run_pinned(trials: Sequence[Trial]) -> list[Outcome]:
    """Run trials in a worker that somebody else has started: with one BLAS thread too."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return [run_trial(trial) for trial in trials]


def _check_versions(client: Client) -> None:
    """All workers present must have this version of us; later ones are checked trial by trial."""
    try:
        versions: dict[str, Any] = client.run(_version)
    except Exception as error:  # whatever the workers raise, most likely ModuleNotFoundError
        raise UserError(
            f"the workers cannot run ahpatron: {_first_line(error)}",
            code=ExitCode.USAGE,
            hint=f"install ahpatron-cli {__version__} where they run",
        ) from None
    others = sorted({version for version in versions.values() if version != __version__})
    if others:
        raise UserError(
            f"workers have ahpatron {', '.join(others)}, this is {__version__}",
            code=ExitCode.USAGE,
            hint="install the same version everywhere",
        )


def _version() -> str:
    return __version__


def _first_line(error: object) -> str:
    return next(iter(str(error).splitlines()), "") or type(error).__name__
