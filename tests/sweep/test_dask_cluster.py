"""What is sent to a Dask cluster, and when; a client that plays nothing stands in for Dask's."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import pytest
from msgspec.structs import replace

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.sweep import dask_cluster
from ahpatron_cli.sweep.summary import Outcome
from ahpatron_cli.sweep.trial import Trial
from support.trials import make_trial

ADDRESS = "tcp://host:8786"


class Future:
    def __init__(self, key: str, tasks: Sequence[Trial], seconds: float, fatal: set[str]) -> None:
        self.key = key
        self.tasks = tasks
        self.status = "error" if fatal & {task.id for task in tasks} else "finished"
        self._seconds = seconds

    def result(self) -> list[Outcome]:
        return [task.outcome(None, "not played", self._seconds) for task in self.tasks]

    def exception(self) -> Exception:
        return RuntimeError("killed")

    def add_done_callback(self, done: Callable[[Future], None]) -> None:
        done(self)


class Client:
    """Plays whatever it is sent at once; every trial takes so many seconds, it says."""

    status = "running"

    def __init__(self, threads: int, seconds: float, fatal: set[str] | None = None) -> None:
        self.threads = threads
        self.seconds = seconds
        self.fatal = fatal or set()
        self.bundles: list[int] = []

    def nthreads(self) -> dict[str, int]:
        return {"worker": self.threads} if self.threads else {}

    def submit(self, play: object, tasks: Sequence[Trial], *, key: str, **_: object) -> Future:
        self.bundles.append(len(tasks))
        return Future(key, tasks, self.seconds, self.fatal)


@dataclass(frozen=True)
class Unplayable:
    id: str

    def outcome(self, run: None, error: str, wall_seconds: float = 0.0) -> Outcome:
        return replace(make_trial("a", None, error=error), id=self.id, wall_seconds=wall_seconds)


def tasks(count: int) -> list[Trial]:
    """No trials: nothing is played."""
    return [cast("Trial", Unplayable(f"{number}")) for number in range(count)]


def played(client: Any, count: int) -> tuple[list[str], int]:
    """The ids in the order of their outcomes, and the most trials that were sent ahead of them."""
    workers = dask_cluster._Workers(client, ADDRESS, 60, pytest.fail)
    found, ahead = [], 0
    for outcome in dask_cluster._Submission(client, workers, tasks(count), 0).outcomes():
        assert outcome is not None
        found.append(outcome.id)
        ahead = max(ahead, sum(client.bundles) - len(found))
    return found, ahead


def test_many_short_trials_are_bundled_and_sent_in_windows() -> None:
    client = Client(threads=4, seconds=0.005)
    found, ahead = played(client, 20_000)
    assert sorted(map(int, found)) == list(range(20_000))
    assert max(client.bundles) == dask_cluster.MOST_TRIALS
    assert len(client.bundles) < 600
    assert client.bundles[0] == 1  # nobody knows yet how long they take
    assert client.bundles[-1] < 10  # at the end all workers have something to do
    assert ahead <= 2 * 4 * dask_cluster.MOST_TRIALS


def test_long_trials_are_sent_one_by_one() -> None:
    client = Client(threads=4, seconds=3)
    found, ahead = played(client, 100)
    assert found == [task.id for task in tasks(100)]
    assert client.bundles == [1] * 100
    assert ahead <= 8


def test_a_trial_that_kills_its_worker_takes_no_other_with_it() -> None:
    client = Client(threads=2, seconds=0.005, fatal={"500"})
    workers: Any = dask_cluster._Workers(client, ADDRESS, 60, pytest.fail)  # type: ignore[arg-type]
    submission: Any = dask_cluster._Submission(client, workers, tasks(1000), 0)  # type: ignore[arg-type]
    errors = {outcome.id: outcome.error for outcome in submission.outcomes() if outcome}
    assert len(errors) == 1000
    killed = [name for name, error in errors.items() if error == "on the cluster: killed"]
    assert killed == ["500"]
    assert max(client.bundles) > 1


@pytest.mark.parametrize("left", [False, True])
def test_no_workers(left: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])
    warnings: list[str] = []
    client: Any = Client(threads=2 if left else 0, seconds=1)
    workers = dask_cluster._Workers(client, ADDRESS, 120, warnings.append)
    client.threads = 0
    for clock[0] in (5.0, 9.9):
        workers.count()
    assert warnings == []
    for clock[0] in (10.0, 20.0, 119.0):
        workers.count()
    (warning,) = warnings
    assert warning == (
        f"the Dask cluster at {ADDRESS} has no worker; the sweep waits for one until 120 s have "
        "passed (--wait)"
    )
    clock[0] = 120.0
    with pytest.raises(UserError, match="had no worker for 120 s") as refusal:
        workers.count()
    assert refusal.value.code == (ExitCode.IO_ERROR if left else ExitCode.NO_INPUT)
    client.threads = 1
    workers.count()
    client.threads, clock[0] = 0, 239.0
    workers.count()  # the time starts anew
    assert len(warnings) == 2
