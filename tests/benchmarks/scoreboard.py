"""The scoreboard of faults, measured: `python tests/benchmarks/scoreboard.py [--quick]`

Runs every part of tests/faults, the tests of results files and models, the fuzzer, the kills and
the soak, and prints a row of Markdown for each. It takes about an hour on an idle machine of two
cores; `--quick` takes a fiftieth of the executions, kills and trials.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import REPOSITORY

TESTS = {
    "malformed and hostile files, in 1 GiB of address space": "faults/test_corpus.py",
    "degenerate settings and data": "faults/test_degenerate.py",
    "property tests of the reader and the loaders": "faults/test_properties.py",
    "signals at random moments": "faults/test_signals.py",
    "pipes, devices, terminals, locales, failing calls": "faults/test_surroundings.py",
    "hostile names in every format": "faults/test_names.py",
    "the same bytes in other surroundings": "faults/test_determinism.py",
    "results file: torn, flipped, failing": "sweep cli/test_sweep_faults.py",
    "models and checkpoints": "test_models.py cli/test_models.py",
}


def output(*arguments: str) -> str:
    """What a script or module prints; its end, if it fails."""
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else f"FAILED {(done.stdout + done.stderr)[-2000:]}"


def main() -> None:
    executions, kills, trials = (1_000_000, 20, 10_000)
    if "--quick" in sys.argv:
        executions, kills, trials = (20_000, 2, 1000)
    with tempfile.TemporaryDirectory() as folder:
        pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "slow or not slow")
        parts = {
            name: (*pytest, *(f"tests/{path}" for path in paths.split()))
            for name, paths in TESTS.items()
        }
        fuzzer = ("tests/faults/fuzz_reader.py", "--executions", str(executions))
        parts["fuzzing of the reader"] = (*fuzzer, "--crash", str(Path(folder) / "crash"))
        kill = "tests/benchmarks/sweep_faults.py"
        parts["SIGKILL of parents, workers, Dask"] = (kill, str(kills))
        parts["soak"] = (kill, "--soak", str(trials))
        print("| fault | figures | seconds |\n|---|---|---|", flush=True)
        for name, arguments in parts.items():
            began = time.monotonic()
            lines = [line.strip("= ") for line in output(*arguments).strip().splitlines()]
            shown = lines[-1] if "pytest" in arguments or "fuzz" in name else "; ".join(lines)
            print(f"| {name} | {shown} | {time.monotonic() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
