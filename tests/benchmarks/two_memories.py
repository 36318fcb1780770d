"""metron with two memories: equality with its reference implementation and with the prototype.

    python tests/benchmarks/two_memories.py equality STREAMS FILES [--only elec,a9a]

STREAMS holds NAME.csv.xz with the label in the last column, run in order of time up to row 20,000.
FILES holds NAME.svm.xz, run in permutation 0 up to row 10,000. B = 400. The engine runs each in
blocks of 1, 7, 64 and 256, saved and resumed in the middle, on dense rows and on sparse ones.
Every prediction must be that of tests/reference; the mistakes after 1,000, 5,000 and all rounds
must be those of the prototype in plain NumPy, from which the rule was developed (`PROTOTYPE`). One
line per data set: the counts, the largest difference of a score, and what differs, if anything.
The exit code is 1 if anything does.
"""

from __future__ import annotations

import argparse
import lzma
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import shuffled
from numpy.typing import NDArray

from ahpatron_cli.core import CsrRows, Metron, Player
from ahpatron_cli.core.rows import Rows, compressed, rows_of
from reference.two_memories import metron as reference

Array = NDArray[np.float64]
BUDGET = 400
BLOCKS = (1, 7, 64, 256)
CHECKPOINTS = (1000, 5000)
PROTOTYPE: dict[str, tuple[int, ...]] = {
    "elec": (46, 185, 907),
    "weather": (214, 949, 3352),
    "outdoor": (74, 263),
    "keystroke": (70, 97),
    "usenet2": (225, 356),
    "bananas": (109, 506, 538),
    "segments": (84, 109),
    "riverphishing": (98, 117),
    "sea": (122, 513, 2089),
    "movingsquares": (42, 176, 853),
    "transchess": (4, 458, 1103),
    "RBF": (129, 756, 1420),
    "phishing": (77, 283, 476),
    "a9a": (163, 862, 1650),
    "w8a": (31, 114, 188),
    "susy": (240, 1097, 2144),
    "ijcnn1": (54, 162, 257),
    "cod-rna": (63, 209, 375),
}
"""Mistakes after 1,000, 5,000 and all rounds; data sets with fewer than 5,000 rows have two."""


@dataclass(frozen=True)
class Data:
    """A stream: dense rows, and labels -1 and +1, or 0, 1, … if there are more classes."""

    name: str
    rows: Array
    labels: Array
    classes: int

    def mistakes(self, scores: Array) -> Array:
        """1 for each round whose prediction is wrong, else 0."""
        if self.classes == 2:
            predictions = np.where(scores >= 0, 1.0, -1.0)
        else:
            slack = 1e-12 * np.abs(scores).max(axis=1)
            best = scores.max(axis=1) - slack
            predictions = (scores >= best[:, None]).argmax(axis=1).astype(np.float64)
        return (predictions != self.labels).astype(np.float64)

    def counts(self, scores: Array) -> tuple[int, ...]:
        """Mistakes after 1,000, 5,000 and all rounds."""
        wrong = self.mistakes(scores)
        stops = [stop for stop in CHECKPOINTS if stop < len(wrong)]
        return tuple(int(wrong[:stop].sum()) for stop in [*stops, len(wrong)])


def stream(folder: Path, name: str) -> Data:
    """The first 20,000 rows of a stream in order of time."""
    with lzma.open(folder / f"{name}.csv.xz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, max_rows=20_000)
    labels = table[:, -1]
    classes = int(labels.max()) + 1
    if classes == 2:
        labels = np.where(labels > 0, 1.0, -1.0)
    return Data(name, table[:, :-1], labels, classes)


def shuffled_file(folder: Path, name: str) -> Data:
    """The first 10,000 rows of a LIBSVM file in permutation 0."""
    rows, labels = shuffled(folder, name, 10_000)
    if isinstance(rows, CsrRows):
        rows = rows.dense()
    return Data(name, rows, labels, 2)


def every(folders: tuple[Path, Path], only: list[str]) -> list[Data]:
    """All data sets of both folders, or those with these names."""
    streams, files = folders
    found = []
    for name in PROTOTYPE:
        if only and name not in only:
            continue
        is_stream = (streams / f"{name}.csv.xz").exists()
        found.append(stream(streams, name) if is_stream else shuffled_file(files, name))
    return found


def engine(data: Data, rows: Rows, block: int) -> Array:
    """Scores of the engine, which is saved and resumed in the middle."""
    middle = len(data.labels) // 2 + 3  # within a block
    learner = Metron(budget=BUDGET, tracker="on")
    player = Player(learner, classes=data.classes, block=block)
    first = player.feed(rows_of(rows, slice(0, middle)), data.labels[:middle])
    state = player.state_dict()
    player = Player(learner, classes=data.classes, block=block).load_state_dict(state)
    rest = player.feed(rows_of(rows, slice(middle, len(data.labels))), data.labels[middle:])
    return np.concatenate((first, rest))


def compare(data: Data) -> bool:
    """Run all of them on a data set and print a line; whether all are equal."""
    labels = data.labels.astype(int).tolist()
    classes = 0 if data.classes == 2 else data.classes
    trace = reference(data.rows, labels, budget=BUDGET, tracker="on", classes=classes)
    expected = np.array(trace.scores)
    counts = data.counts(expected)
    problems = []
    if counts != PROTOTYPE[data.name]:
        problems.append(f"prototype {PROTOTYPE[data.name]}")
    largest = 0.0
    for form, rows in (("dense", data.rows), ("sparse", compressed(data.rows))):
        for block in BLOCKS:
            scores = engine(data, rows, block)
            largest = max(largest, float(np.abs(scores - expected).max()))
            differ = np.flatnonzero(data.mistakes(scores) != data.mistakes(expected))
            if len(differ):
                where = f"first in round {differ[0] + 1}"
                problems.append(f"{form} {block}: {len(differ)} predictions, {where}")
    size = f"{len(labels):6,} rows, {len(trace.restarts)} alarms"
    verdict = "; ".join(problems) or "equal"
    print(f"{data.name:14} {size} {counts!s:20} {largest:.0e}  {verdict}", flush=True)
    return not problems


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    equality = commands.add_parser("equality")
    equality.add_argument("streams", type=Path)
    equality.add_argument("files", type=Path)
    equality.add_argument("--only", default=[], type=lambda text: text.split(","))
    options = parser.parse_args()
    data_sets = every((options.streams, options.files), options.only)
    equal = [compare(data) for data in data_sets]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
