"""`ahpatron sweep --scheduler`: a real Dask cluster on loopback, started as a user would."""

from __future__ import annotations

import shutil
import subprocess
import time
from pathlib import Path

import pytest

from support.cluster import Cluster
from support.command import COMMAND, REPOSITORY, Ahpatron
from support.sweep_command import essence, lines

pytestmark = pytest.mark.slow

GRID = ("-g", "budget=20:200:20", "-l", "ahpatron", "-l", "rbp", "--repeats", "5")
TRIALS = 100


def test_the_same_bytes_also_if_a_worker_is_killed(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    ahpatron.succeed("sweep", rings, *GRID, "--out", "local.jsonl", "--format", "csv")
    out = ahpatron.folder / "dask.jsonl"
    command = [*COMMAND, "sweep", str(rings), *GRID, "--out", str(out), "--format", "csv"]
    process = subprocess.Popen(
        [*command, "--scheduler", cluster.address],
        cwd=ahpatron.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and (not out.exists() or out.read_bytes().count(b"\n") < 10):
        time.sleep(0.01)
    assert out.read_bytes().count(b"\n") <= TRIALS
    cluster.workers[0].kill()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0, said.decode()
    assert len(lines(out)) == TRIALS
    assert essence(out) == essence(ahpatron.folder / "local.jsonl")


def test_a_lost_scheduler_leaves_a_file_that_resumes(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    out = ahpatron.folder / "r.jsonl"
    process = subprocess.Popen(
        [*COMMAND, "sweep", str(rings), *GRID, "--out", str(out), "--scheduler", cluster.address],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    while process.poll() is None and (not out.exists() or out.read_bytes().count(b"\n") < 5):
        time.sleep(0.01)
    cluster.processes[0].kill()
    shown, said = process.communicate(timeout=90)
    assert process.returncode == 74, said.decode()
    assert shown == b""
    assert b"the connection to the scheduler" in said
    assert b"the same command continues" in said
    assert b"Traceback" not in said
    done = len(lines(out))
    assert 0 < done < TRIALS
    again = ahpatron.succeed("sweep", rings, *GRID, "--out", out)
    assert f"{done} of {TRIALS} trials" in again.err
    assert len(lines(out)) == TRIALS


def test_a_cluster_without_workers_ends_the_sweep(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    address = cluster.address
    for worker in cluster.workers:
        worker.kill()
        worker.wait()
    err = ahpatron.refusal(
        66, "sweep", rings, "--out", "r.jsonl", "--scheduler", address, "--wait", "1"
    )
    assert f"the Dask cluster at {address} had no worker for " in err
    assert f"hint: start some with `dask worker {address}`" in err


OLD = "__version__ = '0.0.1'\n"


def test_workers_of_another_version_are_refused(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    """Ours is made to differ: a copy of the package that calls itself otherwise."""
    copy = ahpatron.folder / "other" / "ahpatron_cli"
    shutil.copytree(REPOSITORY / "ahpatron_cli", copy)
    text = (copy / "__init__.py").read_text()
    (copy / "__init__.py").write_text(text + OLD)
    done = ahpatron.process(
        *("sweep", rings, *GRID, "--out", "r.jsonl", "--scheduler", cluster.address),
        PYTHONPATH=str(copy.parent),
    )
    assert done.code == 2
    assert "this is 0.0.1" in done.err


DEADLY = """
import os
import signal
from dataclasses import dataclass

from ahpatron_cli.core.learners import RandomBudgetPerceptron


@dataclass
class Deadly(RandomBudgetPerceptron):
    name = "deadly"

    def update(self, f, y, margin):
        if self.budget == 40:
            os.kill(os.getpid(), signal.SIGKILL)
        super().update(f, y, margin)
"""


@pytest.fixture
def _no_second_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")


@pytest.mark.usefixtures("_no_second_attempt")
def test_a_trial_that_kills_its_worker_fails_alone(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    ahpatron.write("deadly.py", DEADLY)
    grid = ("-l", "deadly.py:Deadly", "-g", "budget=10:80:10", "--limit", "100", "--shuffle")
    done = ahpatron.process(
        *("sweep", rings, *grid, "--out", "r.jsonl", "--scheduler", cluster.address),
        *("--retries", "0", "--wait", "20"),
    )
    assert done.code == 3, done.err
    found = lines(ahpatron.folder / "r.jsonl")
    assert len({one["id"] for one in found}) == len(found) == 8
    failed = [one["run"]["params"]["budget"] for one in found if one["status"] == "failed"]  # type: ignore[index]
    assert 40 in failed
    assert len(failed) < 4  # at most those that waited on the same worker
