"""Running trials on a Dask cluster.

Workers read the data themselves, from the same path, and check the hash. A trial whose worker died
is repeated, first by Dask and then here; other errors of a worker end the sweep.
"""

from __future__ import annotations

import importlib.util
import logging
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from ahpatron_cli import __version__
from ahpatron_cli.errors import ExitCode, UserError, usage
from ahpatron_cli.pool import HEARTBEAT
from ahpatron_cli.records import Outcome
from ahpatron_cli.sweep.trial import Trial, run_trial

if TYPE_CHECKING:
    from distributed import Client, Future

SCHEDULER_SECONDS = 10
"""Timeout for connecting to the scheduler, in seconds."""
WINDOW = 1000
"""Number of trials submitted to the cluster at a time."""


def check_dask() -> None:
    """Raise a usage error if Dask is not installed."""
    if importlib.util.find_spec("distributed") is None:
        hint = "pip install 'ahpatron-cli[dask]', here and on the workers"
        raise usage("--scheduler needs Dask", hint)


def run_on_cluster(
    trials: Sequence[Trial], scheduler: str, retries: int, wait: float, warn: Callable[[str], None]
) -> Iterator[Outcome | None]:
    """Yield outcomes of trials as they finish, and None while waiting.

    Ends with an error if there is no worker for `wait` seconds.
    """
    from distributed import Client

    # silence Dask's long log of a lost connection: we report it in one line
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=SCHEDULER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        problem = f"no Dask scheduler answers at {scheduler}: {_first_line(error)}"
        hint = "start one with `dask scheduler`, and workers with `dask worker tcp://HOST:8786`"
        raise UserError(problem, code=ExitCode.NO_INPUT, hint=hint) from None
    try:
        with client:
            _wait_for_workers(client, wait, warn, code=ExitCode.NO_INPUT)
            for outcome in _outcomes(client, trials, retries):
                yield outcome
                if outcome is None:
                    _wait_for_workers(client, wait, warn, code=ExitCode.IO_ERROR)
    except (OSError, TimeoutError, CancelledError):
        problem = f"the connection to the scheduler at {scheduler} was lost"
        hint = "all results so far are kept; the same command continues"
        raise UserError(problem, code=ExitCode.IO_ERROR, hint=hint) from None


def _wait_for_workers(
    client: Client, wait: float, warn: Callable[[str], None], code: ExitCode
) -> None:
    if client.nthreads():
        return
    address = client.scheduler.address
    warn(f"the Dask cluster at {address} has no worker; the sweep waits {wait:.0f} s (--wait)")
    try:
        client.wait_for_workers(1, timeout=wait)
    except TimeoutError:
        problem = f"the Dask cluster at {address} had no worker for {wait:.0f} s"
        hint = f"start some with `dask worker {address}`; all results so far are kept"
        raise UserError(problem, code=code, hint=hint) from None


def _outcomes(client: Client, trials: Sequence[Trial], retries: int) -> Iterator[Outcome | None]:
    """Yield outcomes of trials as they finish, and None while waiting."""
    from distributed import KilledWorker

    left = deque(trials)
    deaths = Counter[str]()
    sent: dict[str, tuple[Future, Trial]] = {}
    ended: SimpleQueue[Future] = SimpleQueue()  # filled by a thread of Dask
    while left or sent:
        while left and len(sent) < WINDOW:
            trial = left.popleft()
            future = client.submit(run_pinned, trial, pure=False)
            sent[future.key] = future, trial
            future.add_done_callback(ended.put)
        try:
            future = ended.get(timeout=HEARTBEAT)
        except Empty:
            if client.status != "running":
                raise ConnectionError from None
            yield None
            continue
        _, trial = sent.pop(future.key)
        if future.status != "error":
            yield future.result()  # raises if the scheduler is gone
            continue
        fault = future.exception()
        if not isinstance(fault, KilledWorker):
            hint = f"install ahpatron-cli {__version__} where the workers run"
            raise usage(f"the workers cannot run trials: {_first_line(fault)}", hint)
        deaths[trial.id] += 1
        if deaths[trial.id] <= retries:
            left.append(trial)  # perhaps another trial killed the worker
        else:
            yield trial.outcome(None, f"on the cluster: {_first_line(fault)}")


def run_pinned(trial: Trial) -> Outcome:
    """Run a trial in a Dask worker, with one BLAS thread."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return run_trial(trial)


def _first_line(error: object) -> str:
    """First line of an error's text; the name of its class if there is no text."""
    lines = str(error).splitlines()
    if lines and lines[0]:
        return lines[0]
    return type(error).__name__
