"""The scoreboard of faults, measured: `python tests/benchmarks/scoreboard.py [--quick]`

Plays every part of tests/faults, the tests of the results file, the fuzzer, the kills and the soak,
one after the other, and prints a row of Markdown for each. The whole takes about an hour on an idle
machine of two cores; `--quick` takes a fiftieth of the executions, kills and trials.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]


def corpus() -> str:
    """Files, and the largest CPU time and memory of a refusal."""
    from faults.corpus import refusals
    from faults.measured import measured
    from faults.packed import packed

    cases = [*refusals(), *packed()]
    refused = 0
    worst = {False: 0.0, True: 0.0}
    peak = 0.0
    with tempfile.TemporaryDirectory() as name:
        for case in cases:
            path = Path(name) / "d.svm"
            path.write_bytes(case.content)
            command = [sys.executable, "-m", "ahpatron_cli", "run", "d.svm", *case.options]
            done = measured(command, Path(name), env={"PYTHONPATH": str(ROOT)})
            refused += done.code == 65 and not done.out and f"d.svm{case.place}" in done.err
            worst[case.bomb] = max(worst[case.bomb], done.cpu)
            peak = max(peak, done.megabytes)
    return (
        f"{refused} of {len(cases)} refused with their place; at most {worst[False]:.1f} s of CPU "
        f"(bombs {worst[True]:.1f}), {peak:.0f} MB"
    )


def tests(*paths: str) -> Callable[[], str]:
    """How many of these tests pass."""

    def run() -> str:
        said = output("-m", "pytest", "-q", "-p", "no:cacheprovider", *paths)
        return said.strip().splitlines()[-1].strip("= ")

    return run


def output(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.stdout if done.returncode == 0 else f"FAILED\n{done.stdout[-2000:]}\nFAILED"


def fuzzing(executions: int) -> str:
    with tempfile.TemporaryDirectory() as name:
        crash = str(Path(name) / "crash")
        script = "tests/faults/fuzz_reader.py"
        said = output(script, "--executions", str(executions), "--crash", crash)
    found = re.findall(r"^(?:Done .*|.*none failed)$", said, re.MULTILINE)
    return found[-1] if found else "FAILED"


def last_lines(*arguments: str) -> str:
    return "; ".join(line.strip() for line in output(*arguments).strip().splitlines())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    kills, trials = ("2", "1000") if quick else ("20", "10000")
    parts: list[tuple[str, Callable[[], str]]] = [
        ("malformed and hostile files, in 1 GiB of address space", corpus),
        ("the same as tests, with oddities that are read", tests("tests/faults/test_corpus.py")),
        ("degenerate settings and data", tests("tests/faults/test_degenerate.py")),
        ("property tests of the reader and the loaders", tests("tests/faults/test_properties.py")),
        ("fuzzing of the reader", lambda: fuzzing(20_000 if quick else 1_000_000)),
        ("signals at random moments", tests("tests/faults/test_signals.py")),
        (
            "pipes, devices, terminals, locales, failing calls",
            tests("tests/faults/test_surroundings.py"),
        ),
        ("hostile names in every format", tests("tests/faults/test_names.py")),
        ("the same bytes in other surroundings", tests("tests/faults/test_determinism.py")),
        (
            "results file: torn, flipped, failing",
            tests("tests/sweep", "tests/cli/test_sweep_faults.py"),
        ),
        ("models and checkpoints", tests("tests/test_models.py", "tests/cli/test_models.py")),
        (
            "SIGKILL of parents, workers, Dask",
            lambda: last_lines("tests/benchmarks/sweep_faults.py", kills),
        ),
        ("soak", lambda: last_lines("tests/benchmarks/soak.py", trials)),
    ]
    print("| fault | figures | seconds |\n|---|---|---|", flush=True)
    for name, play in parts:
        began = time.monotonic()
        figures = play()
        print(f"| {name} | {figures} | {time.monotonic() - began:.0f} |", flush=True)


if __name__ == "__main__":
    main()
