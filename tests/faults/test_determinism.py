"""The same bytes for any number of processes, backend, hash seed, BLAS threads and restart.

And, where no f(x) was next to 0, the same mistakes for any block size and kind of CPU.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.core import Gaussian, Player
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source
from support.cases import CASES, Case
from support.cluster import Cluster
from support.command import COMMAND, REPOSITORY, Ahpatron
from support.sweep_command import essence

SWEEP = ("-g", "budget=20:60:20", "-l", "ahpatron", "-l", "rbp", "-l", "fogd", "--repeats", "3")
ENVIRONMENTS: list[dict[str, str]] = [
    {"PYTHONHASHSEED": "0", "OPENBLAS_NUM_THREADS": "1"},
    {"PYTHONHASHSEED": "1", "OPENBLAS_NUM_THREADS": "2"},
    {"PYTHONHASHSEED": "12345", "OPENBLAS_NUM_THREADS": "8", "OMP_NUM_THREADS": "8"},
]


def untimed(text: str) -> Any:
    report = json.loads(text)
    for run in report["runs"] + report["summary"]:
        for name in ("seconds", "seconds_mean"):
            run.pop(name, None)
    del report["load_seconds"]
    return report


def test_runs_in_other_surroundings(ahpatron: Ahpatron, rings: Path) -> None:
    options = ("-l", "all", "-B", 40, "--sigma", 0.3, "--limit", 300, "--repeats", 2)
    found = [
        ahpatron.process("run", rings, *options, "--format", "json", "--jobs", jobs, **environment)
        for jobs, environment in zip((1, 2, 2), ENVIRONMENTS, strict=True)
    ]
    assert {done.code for done in found} == {0}
    assert untimed(found[0].out) == untimed(found[1].out) == untimed(found[2].out)


def test_predictions_and_models_in_other_surroundings(ahpatron: Ahpatron, rings: Path) -> None:
    contents = []
    for environment in ENVIRONMENTS:
        done = ahpatron.process(
            *("run", rings, "-l", "skegd", "-B", 40, "--sigma", 0.3, "--predictions", "p.csv"),
            **environment,
        )
        assert done.code == 0
        contents.append((ahpatron.folder / "p.csv").read_bytes())
    assert contents[0] == contents[1] == contents[2]


@pytest.mark.slow
def test_sweeps_in_other_surroundings(ahpatron: Ahpatron, rings: Path, cluster: Cluster) -> None:
    """One process, two, a Dask cluster, and two with a kill and a restart in between."""
    ways = [("-j", "1"), ("-j", "2"), ("--scheduler", cluster.address)]
    for number, (way, environment) in enumerate(zip(ways, ENVIRONMENTS, strict=True)):
        out = f"{number}.jsonl"
        done = ahpatron.process("sweep", rings, *SWEEP, *way, "--out", out, **environment)
        assert done.code == 0, done.err
    command = [*COMMAND, "sweep", str(rings), *SWEEP, "-j", "2", "--out", "3.jsonl"]
    killed = ahpatron.folder / "3.jsonl"
    with subprocess.Popen(
        command, cwd=ahpatron.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while process.poll() is None and (
            not killed.exists() or killed.read_bytes().count(b"\n") < 5
        ):
            time.sleep(0.01)
        process.kill()
    goes_on = ahpatron.process("sweep", rings, *SWEEP, "--out", "3.jsonl", **ENVIRONMENTS[1])
    assert goes_on.code == 0
    found = [essence(ahpatron.folder / f"{number}.jsonl") for number in range(4)]
    assert found[0] == found[1] == found[2] == found[3]
    assert set(found[0].values()) == {1}


THREADS = """
import atexit, sys
from ahpatron_cli.cli.app import main
from threadpoolctl import threadpool_info
atexit.register(lambda: print({one["num_threads"] for one in threadpool_info()}, file=sys.stderr))
main()
"""


def test_one_blas_thread_whatever_the_user_says(rings: Path) -> None:
    many = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    done = subprocess.run(
        [sys.executable, "-c", THREADS, "run", str(rings), "-B", "4"],
        env={**os.environ, **many},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert done.stderr == "{1}\n"


SAMPLES = [("rings", 0.1), ("breast_cancer", 5.0), ("sparse_text", 0.7)]
BLOCKS = (1, 7, 64, 256)


def _one_of_each() -> list[Case]:
    """Each learner once, in the first setting that has it."""
    return list({case.name: case for case in reversed(CASES)}.values())


@pytest.mark.parametrize("case", _one_of_each(), ids=str)
@pytest.mark.parametrize(("name", "sigma"), SAMPLES)
def test_block_sizes(name: str, sigma: float, case: Case) -> None:
    scale = "standard" if name == "breast_cancer" else "none"
    with open_source(str(REPOSITORY / "sample_data" / f"{name}.svm")) as source:
        whole = load(source, Preparation(limit=300, scale=scale)).whole()
    tallies = []
    for block in BLOCKS:
        player = Player(case.learner(), Gaussian(sigma=sigma), block=block, horizon=300)
        player.feed(whole.rows, whole.labels)
        tallies.append(player.tally)
    if not any(tally.near_ties for tally in tallies):
        assert len({tally.mistakes for tally in tallies}) == 1
        assert len({tally.updates for tally in tallies}) == 1


CORES = ["Prescott", "Nehalem", "Sandybridge", "Haswell"]


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the core types are those of x86")
@pytest.mark.parametrize(("name", "sigma"), SAMPLES)
def test_core_types(ahpatron: Ahpatron, name: str, sigma: float) -> None:
    """OpenBLAS has other code for other CPUs, which adds in other orders."""
    path = REPOSITORY / "sample_data" / f"{name}.svm"
    scale = "standard" if name == "breast_cancer" else "none"
    options = ("-l", "all", "-B", 60, "--sigma", sigma, "--scale", scale, "--limit", 800)
    mistakes: dict[str, set[int]] = {}
    ties: dict[str, int] = {}
    for core in CORES:
        if core == "Haswell" and "avx2" not in Path("/proc/cpuinfo").read_text():
            continue  # its instructions would not run
        done = ahpatron.process("run", path, *options, "--format", "json", OPENBLAS_CORETYPE=core)
        assert done.code == 0, done.err
        for run in json.loads(done.out)["runs"]:
            mistakes.setdefault(run["learner"], set()).add(run["mistakes"])
            ties[run["learner"]] = ties.get(run["learner"], 0) + run["near_ties"]
    without = [learner for learner in mistakes if not ties[learner]]
    assert without
    assert {learner: mistakes[learner] for learner in without if len(mistakes[learner]) > 1} == {}
