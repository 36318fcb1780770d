"""The same bytes for any number of processes, hash seed and BLAS threads.

And, where no f(x) was next to 0, the same mistakes for any block size and kind of CPU.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from sklearn.datasets import load_svmlight_file

from ahpatron_cli.core import Gaussian, Player
from support.cases import CASES, Case
from support.command import REPOSITORY, Ahpatron


def untimed(tree: Any) -> Any:
    """A JSON document without its times."""
    if isinstance(tree, dict):
        return {name: untimed(value) for name, value in tree.items() if "seconds" not in name}
    return [untimed(value) for value in tree] if isinstance(tree, list) else tree


def test_runs_in_other_environments(ahpatron: Ahpatron, rings: Path) -> None:
    options = ["-B", 40, "--sigma", 0.3, "--limit", 200, "--repeats", 2, "--json"]
    for learner in ("ahpatron", "rbp", "skegd", "fogd", "metron"):
        options += ["-l", learner]
    found = []
    for jobs, seed, threads in ((1, "0", "1"), (2, "12345", "8")):
        words = ("run", rings, *options, "--jobs", jobs, "--predictions", "p.csv")
        blas = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), threads)
        done = ahpatron.process(*words, PYTHONHASHSEED=seed, **blas)
        assert done.code == 0, done.err
        rows = (ahpatron.folder / "p.csv").read_bytes()
        found.append((untimed(json.loads(done.out)), rows))
    assert found[0] == found[1]


THREADS = """
import atexit, sys
from ahpatron_cli.cli.app import main
from threadpoolctl import threadpool_info
atexit.register(lambda: print({lib["num_threads"] for lib in threadpool_info()}, file=sys.stderr))
main()
"""


def test_one_blas_thread_whatever_the_environment_says(rings: Path) -> None:
    many = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2")
    command = [sys.executable, "-c", THREADS, "run", str(rings), "-B", "4"]
    done = subprocess.run(command, capture_output=True, env={**os.environ, **many}, check=True)
    assert done.stderr == b"{1}\n"


SAMPLES = [("rings", 0.1), ("sparse_text", 0.7)]


@pytest.mark.parametrize(
    "case", {case.name: case for case in reversed(CASES)}.values(), ids=lambda case: case.name
)
@pytest.mark.parametrize(("name", "sigma"), SAMPLES)
def test_counts_on_sample_data_do_not_depend_on_blocks(name: str, sigma: float, case: Case) -> None:
    X, y = load_svmlight_file(str(REPOSITORY / f"sample_data/{name}.svm"))
    rows = X[:200].toarray()
    labels = (y[:200] > 0) * 2.0 - 1.0
    tallies = []
    for block in (1, 7, 64):
        player = Player(case.learner(), Gaussian(sigma=sigma), block=block, horizon=200)
        player.feed(rows, labels)
        tallies.append(player.tally)
    if not any(tally.near_ties for tally in tallies):
        assert len({(tally.mistakes, tally.updates) for tally in tallies}) == 1


@pytest.mark.slow
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the core types are those of x86")
@pytest.mark.parametrize(("name", "sigma"), SAMPLES)
def test_counts_on_sample_data_do_not_depend_on_the_cpu(
    ahpatron: Ahpatron, name: str, sigma: float
) -> None:
    """OpenBLAS has other code for other CPUs, which adds in another order."""
    path = REPOSITORY / f"sample_data/{name}.svm"
    options = ("-l", "all", "-B", 60, "--sigma", sigma, "--limit", 800, "--json")
    mistakes: dict[str, set[int]] = {}
    tied = set()
    cores = ["Prescott", "Nehalem", "Sandybridge", "Haswell"]
    if "avx2" not in Path("/proc/cpuinfo").read_text():
        cores.remove("Haswell")  # its instructions would not run
    for core in cores:
        done = ahpatron.process("run", path, *options, OPENBLAS_CORETYPE=core)
        assert done.code == 0, done.err
        for run in json.loads(done.out)["runs"]:
            mistakes.setdefault(run["learner"], set()).add(run["mistakes"])
            tied |= {run["learner"]} if run["near_ties"] else set()
    assert mistakes.keys() - tied
    assert not {name for name, found in mistakes.items() if len(found) > 1} - tied
