"""Processor time of starting up, next to that of the imports that cannot be avoided, in one run.

    python tests/benchmarks/startup.py [TIMES]

`ahpatron --help` next to `import typer, rich.table`; `ahpatron run` on 1,000 rows of 18 features
next to `import numpy, scipy.linalg, typer, rich.table`. User plus system time, commands taking
turns, medians over TIMES (21 by default) with the range.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from common import AHPATRON, alternate, dense_lines, process, write

IMPORTS = ("import typer, rich.table", "import numpy, scipy.linalg, typer, rich.table")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "short.svm"
        write(path, dense_lines(18), rows=1000)
        commands = {
            IMPORTS[0]: [sys.executable, "-c", IMPORTS[0]],
            "ahpatron --help": [*AHPATRON, "--help"],
            IMPORTS[1]: [sys.executable, "-c", IMPORTS[1]],
            "ahpatron run, 1,000 rows": [*AHPATRON, "run", "--limit", "1000", str(path)],
        }
        ways = {
            name: lambda command=command: process(command)[0] for name, command in commands.items()
        }
        spent = alternate(ways, int(sys.argv[1]) if len(sys.argv) > 1 else 21)
    for name, times in spent.items():
        middle = statistics.median(times)
        print(
            f"{name:46} {1e3 * middle:6.0f} ms  ({1e3 * min(times):.0f} to {1e3 * max(times):.0f})"
        )
    bare_help, our_help, bare_run, our_run = map(statistics.median, spent.values())
    print(f"help: {our_help / bare_help:.2f} x the imports (at most 1.5)")
    print(f"run:  {our_run / bare_run:.2f} x the imports (at most 2.0)")


if __name__ == "__main__":
    main()
