"""`ahpatron sweep` when things go wrong: signals, kills, full disks, lost files and clusters."""

import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ahpatron_cli.sweep.results_file import read_results
from support.cluster import Cluster
from support.command import DEADLY, REPOSITORY, SMALL, Ahpatron, workers


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("dask")) as started:
        yield started


MANY = ("-g", "budget=20:200:20", "-l", "ahpatron", "-l", "avp", "--repeats", "10")


def started(ahpatron: Ahpatron, *arguments: object, until: int) -> subprocess.Popen[str]:
    """A sweep in a process of its own, which has stored so many trials."""
    process = ahpatron.start("sweep", *arguments, "--out", "r.jsonl")
    results = ahpatron.folder / "r.jsonl"
    while not results.exists() or results.read_bytes().count(b"\n") <= until:
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)
    return process


EIGHT = ("-l", "deadly.py:Deadly", "-g", "budget=10:80:10", "--limit", "100", "--shuffle")


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), pytest.param(signal.SIGINT, 130, marks=pytest.mark.slow)],
)
def test_a_signal_leaves_a_file_that_the_same_command_continues(
    ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int
) -> None:
    """One of eight trials never ends, and is not waited for."""
    ahpatron.write("deadly.py", DEADLY.replace("KILL", "os.read(os.pipe()[0], 1)"))
    process = started(ahpatron, rings, *EIGHT, "-j", "2", until=5)
    processes = workers(process.pid)
    assert processes
    process.send_signal(number)
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (code, "")
    assert "the same command continues" in err
    assert "Traceback" not in err
    assert not any(Path(f"/proc/{worker}").exists() for worker in processes)
    assert ahpatron.read("r.jsonl").endswith("\n")
    done = len(ahpatron.trials())
    assert 4 <= done < 8  # the last that we saw may have been undone: it was not durable yet
    ahpatron.write("died", "")  # the estimate may run any trial that is left: now all of them end
    assert f"{done} done" in ahpatron.sweep(rings, *EIGHT, "--dry-run").out


@pytest.mark.slow
def test_a_file_that_is_deleted_while_it_is_written_to(ahpatron: Ahpatron, rings: Path) -> None:
    process = started(ahpatron, rings, *MANY, until=2)
    (ahpatron.folder / "r.jsonl").unlink()
    out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (74, "")
    assert "r.jsonl" in err


def test_a_full_disk_keeps_what_is_there(ahpatron: Ahpatron, rings: Path) -> None:
    words = f"sweep {rings} {' '.join(SMALL)} --out r.jsonl"
    done = ahpatron.shell(f"ulimit -f 4; trap '' XFSZ; ahpatron {words}")
    assert (done.code, done.out) == (74, "")
    assert 0 < len(read_results(str(ahpatron.folder / "r.jsonl")).trials) < 8
    assert ahpatron.sweep(rings, *SMALL).code == 0
    found = ahpatron.trials()
    assert len(found) == len({trial["id"] for trial in found}) == 8


@pytest.mark.slow
def test_a_cluster_gives_the_same_bytes_also_if_a_worker_is_killed(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    ahpatron.sweep(rings, *MANY, out="local.jsonl")
    process = started(ahpatron, rings, *MANY, "--scheduler", cluster.address, until=10)
    cluster.workers[0].kill()
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert ahpatron.essence() == ahpatron.essence("local.jsonl")


@pytest.mark.slow
def test_a_lost_scheduler_leaves_a_file_that_resumes(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    process = started(ahpatron, rings, *MANY, "--scheduler", cluster.address, until=5)
    cluster.processes[0].kill()
    out, err = process.communicate(timeout=90)
    assert (process.returncode, out) == (74, "")
    assert "the same command continues" in err
    assert "Traceback" not in err
    done = len(ahpatron.trials())
    assert 0 < done < 110
    assert f"{done} of 110 trials" in ahpatron.sweep(rings, *MANY).err
    assert len(ahpatron.trials()) == 110


@pytest.mark.slow
def test_a_cluster_that_cannot_work_is_refused_with_the_reason(
    ahpatron: Ahpatron, rings: Path, cluster: Cluster
) -> None:
    """No scheduler, no workers, workers with another version of the package."""
    words = ("sweep", rings, *MANY, "--out", "r.jsonl", "--scheduler")
    assert "tcp://127.0.0.1:1" in ahpatron.refusal(66, *words, "tcp://127.0.0.1:1")
    copy = ahpatron.folder / "other" / "ahpatron_cli"
    shutil.copytree(REPOSITORY / "ahpatron_cli", copy)
    with (copy / "__init__.py").open("a") as module:
        module.write("__version__ = '0.0.1'\n")
    done = ahpatron.process(*words, cluster.address, PYTHONPATH=str(copy.parent))
    assert done.code == 2
    assert "0.0.1" in done.err
    for worker in cluster.workers:
        worker.kill()
        worker.wait()
    err = ahpatron.refusal(66, *words, cluster.address, "--wait", "1")
    assert f"`dask worker {cluster.address}`" in err


@pytest.mark.slow
def test_a_trial_that_kills_its_worker_fails_alone(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES", "0")
    ahpatron.write("deadly.py", DEADLY.replace("KILL", "os.kill(os.getpid(), 9)"))
    (ahpatron.folder / "dask").mkdir()
    with Cluster(ahpatron.folder / "dask") as cluster:
        options = ("--scheduler", cluster.address, "--retries", "0", "--wait", "20")
        done = ahpatron.process("sweep", rings, *EIGHT, "--out", "r.jsonl", *options)
    assert done.code == 3, done.err
    found = ahpatron.trials()
    assert len({trial["id"] for trial in found}) == len(found) == 8
    failed = [trial["run"]["params"]["budget"] for trial in found if trial["status"] == "failed"]
    assert 20 in failed
    assert len(failed) < 4  # at most those that waited on the same worker
