"""Processor time of starting up, beside that of the imports nobody can do without, in one run.

    python tests/benchmarks/startup.py [TIMES]

`ahpatron --help` beside `import typer, rich.table`; `ahpatron run` on 1,000 rows of 18 features
beside `import numpy, scipy.linalg, typer, rich.table`. User plus system time, commands taking
turns, medians over TIMES (21 by default) with the spread; one BLAS thread.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import made

HELP_LIMIT, RUN_LIMIT = 1.5, 2.0


def processor_seconds(command: list[str]) -> float:
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 21
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
    ahpatron = [sys.executable, "-m", "ahpatron_cli"]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "short.svm"
        made.write(path, made.dense_lines(18), rows=1000)
        commands = {
            "import typer, rich.table": [sys.executable, "-c", "import typer, rich.table"],
            "ahpatron --help": [*ahpatron, "--help"],
            "import numpy, scipy.linalg, typer, rich.table": [
                sys.executable,
                "-c",
                "import numpy, scipy.linalg, typer, rich.table",
            ],
            "ahpatron run, 1,000 rows": [*ahpatron, "run", str(path)],
        }
        spent: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(times):
            for name, command in commands.items():
                spent[name].append(processor_seconds(command))
    middle = {name: statistics.median(seconds) for name, seconds in spent.items()}
    for name, seconds in spent.items():
        low, high = 1e3 * min(seconds), 1e3 * max(seconds)
        print(f"{name:<46} {1e3 * middle[name]:6.0f} ms  ({low:.0f} to {high:.0f})")
    bare_help, our_help, bare_run, our_run = middle.values()
    print(f"help: {our_help / bare_help:.2f} x the imports (wanted: {HELP_LIMIT})")
    print(f"run:  {our_run / bare_run:.2f} x the imports (wanted: {RUN_LIMIT})")


if __name__ == "__main__":
    main()
