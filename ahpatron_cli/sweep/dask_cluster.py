"""Trials on a Dask cluster: the same trials, played by whatever workers there are.

Workers read the data themselves, from the same path, and check its hash. Dask plays a trial again
when its worker dies.
"""

from __future__ import annotations

import importlib.util
import logging
import secrets
from collections.abc import Iterator, Sequence
from concurrent.futures import CancelledError
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from ahpatron_cli import __version__
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.sweep.local import HEARTBEAT
from ahpatron_cli.sweep.trial import Outcome, Task, play

if TYPE_CHECKING:
    from distributed import Client, Future

PATIENCE = 10
"""Seconds to wait for the scheduler to answer."""


def check_dask() -> None:
    """Refuse `--scheduler` where Dask is not installed, before anything else is done."""
    if importlib.util.find_spec("distributed") is None:
        raise UserError(
            "--scheduler needs Dask",
            code=ExitCode.USAGE,
            hint="pip install 'ahpatron-cli[dask]', here and on the workers",
        )


def play_on_cluster(
    tasks: Sequence[Task], scheduler: str, retries: int
) -> Iterator[Outcome | None]:
    """Outcomes as they arrive; None now and then, when there is none."""
    from distributed import Client

    # what it logs about a lost connection is a page long; we say it in a line
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    try:
        client = Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError, ImportError) as error:
        raise UserError(
            f"no Dask scheduler answers at {scheduler}: {_first_line(error)}",
            code=ExitCode.NO_INPUT,
            hint="start one with `dask scheduler`, and workers with `dask worker tcp://HOST:8786`",
        ) from None
    try:
        with client:
            _check_versions(client)
            yield from _outcomes(client, tasks, retries)
    except (OSError, TimeoutError, CancelledError):
        raise UserError(
            f"the connection to the scheduler at {scheduler} was lost",
            code=ExitCode.IO_ERROR,
            hint="all results so far are kept; the same command goes on",
        ) from None


def _outcomes(client: Client, tasks: Sequence[Task], retries: int) -> Iterator[Outcome | None]:
    run = secrets.token_hex(4)  # a key of our own: no other client may release our results
    ended: SimpleQueue[Future] = SimpleQueue()  # filled by a thread of Dask's
    waiting = {}
    for task in tasks:
        key = f"{task.id}-{run}"
        future = client.submit(play_pinned, task, key=key, retries=retries, pure=False)
        future.add_done_callback(ended.put)
        waiting[key] = future, task
    while waiting:
        try:
            future = ended.get(timeout=HEARTBEAT)
        except Empty:
            if client.status != "running":
                raise ConnectionError from None
            yield None
        else:
            if future.key in waiting:
                yield _outcome(*waiting.pop(future.key))


def play_pinned(task: Task) -> Outcome:
    """Play a trial in a worker that somebody else has started: with one BLAS thread too."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1, user_api="blas"):
        return play(task)


def _outcome(future: Future, task: Task) -> Outcome:
    if future.status == "error":
        return Outcome(task.id, None, f"on the cluster: {_first_line(future.exception())}", 0.0)
    answer = future.result()  # raises where the scheduler went away
    assert isinstance(answer, Outcome)
    return answer


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
