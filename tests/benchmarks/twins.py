"""Learners against their reference implementations on random streams with labels 0/1 and offsets.

    python tests/benchmarks/twins.py [--learners avp-ogs,forks] [--streams 60] [--rounds 120]

Every case of tests/support/cases.py of these learners runs on every stream. A stream is a LIBSVM
file, read as the command reads it, whose labels are 0 and 1 and whose features are each shifted by
a number of -50 to 50; the reference gets the rows and ±1. Equal means: the same mistakes, |S| and
updates. The largest difference of a score is printed, too: forks inverts singular values down to
1e-8, which magnifies rounding. Exit code 1 if any stream differs.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import common  # noqa: F401 - one BLAS thread, and the path to support
import numpy as np

from ahpatron_cli.core import Player
from ahpatron_cli.data.opening import load
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import open_source
from reference import kernels as formulas
from support.cases import CASES, KERNEL_PAIRS, Case
from support.streams import Example, make_stream

KERNEL, FORMULA = KERNEL_PAIRS["gaussian"]


def shifted_stream(seed: int, rounds: int) -> Example:
    """A random stream of 1 to 4 features, each shifted."""
    rng = np.random.default_rng([seed, 1])
    features = 1 + seed % 4
    noise = float(rng.uniform(0, 0.5))
    stream = make_stream(seed, rounds, features, noise)
    shifts = rng.integers(-50, 51, features)
    return Example((stream.X + shifts).round(3), stream.y)


def write(path: Path, stream: Example) -> None:
    """Write a stream as LIBSVM text with labels 0 and 1."""
    lines = []
    for row, label in zip(stream.rows, stream.labels, strict=True):
        cells = [f"{column}:{value!r}" for column, value in enumerate(row, start=1)]
        words = ["1" if label > 0 else "0", *cells]
        lines.append(" ".join(words))
    path.write_text("\n".join(lines) + "\n")


@dataclass
class Comparison:
    """What a case of a learner and its reference differ in, over all streams."""

    case: Case
    different: int = 0
    gap: float = 0.0
    """The largest difference of a score."""

    def add(self, stream: Example, path: Path) -> None:
        """Compare the counts and scores on a stream, which is stored at `path`."""
        with open_source(str(path)) as source:
            dataset = load(source, Preparation())
        player = Player(self.case.learner(), KERNEL)
        parts = [player.feed(batch.rows, batch.labels) for batch in dataset.batches()]
        rows = stream.rows
        trace = self.case.twin(rows, stream.labels, formulas.tabled(rows, FORMULA))
        differences = np.abs(np.concatenate(parts) - np.array(trace.scores))
        self.gap = max(self.gap, float(differences.max()))
        counts = (player.tally.mistakes, player.f.size, player.tally.updates)
        expected = (trace.mistakes, len(trace.points), trace.updates)
        if counts != expected:
            self.different += 1
            print(f"{self.case}: {counts}, reference {expected}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--learners", default="avp-ogs,forks")
    parser.add_argument("--streams", type=int, default=60)
    parser.add_argument("--rounds", type=int, default=120)
    given = parser.parse_args()
    learners = given.learners.split(",")
    comparisons = [Comparison(case) for case in CASES if case.name in learners]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stream.svm"
        for seed in range(given.streams):
            stream = shifted_stream(seed, given.rounds)
            write(path, stream)
            for comparison in comparisons:
                comparison.add(stream, path)
    for one in comparisons:
        equal = given.streams - one.different
        print(f"{one.case}: {equal} of {given.streams} equal; scores differ by {one.gap:.0e}")
    sys.exit(any(one.different for one in comparisons))


if __name__ == "__main__":
    main()
