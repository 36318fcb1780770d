"""One service per part of a stream: mistakes and rows a second of 1, 2, 4 and 8 parts.

    python tests/benchmarks/partitions.py FOLDER_OF_STREAMS FOLDER_OF_DATA [--rows N]

`docs/recipes/partitions.py` splits elec by its half hour of the day (`x3`), and SUSY by the number
of the row, as it has no key. Rows a second are those of all parts together, with the start of the
processes, by the clock.
"""

from __future__ import annotations

import argparse
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from ahpatron_cli.model_file import load_model

RECIPE = Path(__file__).resolve().parents[2] / "docs/recipes/partitions.py"
PARTS = (1, 2, 4, 8)
FEATURES_OF_SUSY = 18


def elec(folder: Path) -> list[str]:
    """Header and rows of elec."""
    with lzma.open(folder / "elec.csv.xz", "rt") as file:
        return file.readlines()


def susy(folder: Path) -> list[str]:
    """Header and rows of SUSY as a table, with the number of the row."""
    names = [f"x{number}" for number in range(1, FEATURES_OF_SUSY + 1)]
    lines = [",".join(["row", *names, "label"]) + "\n"]
    with lzma.open(folder / "susy.svm.xz", "rt") as file:
        for number, line in enumerate(file):
            label, *pairs = line.split()
            cells = dict(pair.split(":") for pair in pairs)
            values = [cells.get(str(place), "0") for place in range(1, len(names) + 1)]
            lines.append(",".join([str(number), *values, label]) + "\n")
    return lines


def measure(lines: list[str], column: str, parts: int, options: list[str]) -> None:
    """Print what the services of all parts did together."""
    with tempfile.TemporaryDirectory() as folder:
        program = [sys.executable, "-m", "ahpatron_cli", "run", "-", "--label", "label", "-q"]
        outputs = ["--state", "part-{part}.npz", "--predictions", "part-{part}.csv"]
        command = [sys.executable, RECIPE, column, str(parts), *program, *outputs, *options]
        rows = Path(folder) / "rows.csv"
        rows.write_text("".join(lines))
        begun = time.perf_counter()
        with rows.open() as file:
            subprocess.run(command, cwd=folder, stdin=file, check=True, stdout=subprocess.DEVNULL)
        seconds = time.perf_counter() - begun
        confusion = np.zeros((2, 2), dtype=int)
        for part in range(parts):
            model = load_model(str(Path(folder) / f"part-{part}.npz"))
            confusion += model.state["tally"]["confusion"]
    rounds = int(confusion.sum())
    assert rounds == len(lines) - 1
    mistakes = rounds - int(np.trace(confusion))
    shown = f"{100 * mistakes / rounds:7.2f} %{rounds / seconds:9,.0f} rows a second"
    print(f"{parts:3} parts{mistakes:8,} mistakes{shown}", flush=True)


def main() -> None:
    """Measure both streams."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("streams", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--rows", type=int, help="the first rows only")
    given = parser.parse_args()
    os.environ["OPENBLAS_NUM_THREADS"] = "1"
    end = given.rows + 1 if given.rows else None
    streams = {
        "elec": (elec(given.streams), "x3", []),
        "SUSY": (susy(given.data), "row", ["--id", "row"]),
    }
    for name, (lines, column, options) in streams.items():
        print(f"{name}, {len(lines[:end]) - 1:,} rows, {os.cpu_count()} processors")
        for parts in PARTS:
            measure(lines[:end], column, parts, options)


if __name__ == "__main__":
    main()
