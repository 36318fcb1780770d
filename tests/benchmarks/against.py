"""Learning time of this checkout next to another one's, in one run.

    python tests/benchmarks/against.py OTHER_CHECKOUT DATA_FOLDER [--rows 20000] [--repeats 5]
        [--learners ahpatron,arow,shared] [--data phishing,a9a] [--slow-rows 3000]
        [--row-by-row] [--budget 100]

DATA_FOLDER holds the paper's data sets (NAME.svm.xz). Each is run with the paper's σ and budget, in
one permutation, cut after `--rows` rows (`--slow-rows` for krls and projectron++), in one piece or,
with `--row-by-row`, by `Player.learn`. `shared` is ahpatron and arow with one active set for three
classes, on a made stream.

Two processes, one for each checkout, run each pass in turn; short passes more often than
`--repeats`. The ratio is the least processor time of this checkout over that of the other: below 1,
this one is faster. `counts` says whether mistakes, updates, margin updates and |S| are equal. With
other work on the machine, ratios are good to some percent.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from common import DATASETS, NAMES, REPOSITORY, Dataset, seconds, shuffled

LEARNERS = "ahpatron,ahpatron+,arow,nogd,fogd,rbp,bogd,bogd++,projectron++,krls,shared"
SLOW = ("projectron++", "krls")
MADE = Dataset("made", 1.5, 100)
LEAST = 0.5
MOST = 4
"""Short passes are repeated until they took so many seconds, up to so many times as often."""
Answer = dict[str, Any]


class Passes:
    """What a worker does with the package of its checkout: load a stream and time passes."""

    def load(self, folder: str, name: str, rows: int) -> None:
        """The first rows of a data set in its permutation, or a made stream of three classes."""
        self.classes = 2
        self.is_dense = True
        if name != MADE.name:
            self.rows, self.labels = shuffled(Path(folder), name, rows)
            self.is_dense = isinstance(self.rows, np.ndarray)
            return
        rng = np.random.default_rng(0)
        centre = rng.integers(9, size=5000)
        centres = 2 * rng.normal(size=(9, 6))
        self.rows = centres[centre] + rng.normal(size=(5000, 6))
        self.labels = (centre % 3).astype(np.float64)
        self.classes = 3

    def run(
        self, rows: int, learner: str, params: Answer, sigma: float, row_by_row: bool
    ) -> Answer:
        """A pass with those of the parameters that the learner has: time per row, and counts."""
        from ahpatron_cli.core import REGISTRY, Gaussian

        try:
            from ahpatron_cli.core.rows import sliced
        except ImportError:
            from ahpatron_cli.core.rows import rows_of as sliced  # up to version 1.0
        try:
            from ahpatron_cli.core.multiclass import make_player  # of versions before 1.0
        except ImportError:
            from ahpatron_cli.core import Player as make_player  # noqa: N813 - the name of both

        rows = min(rows, len(self.labels))
        known = {name for name, spec in REGISTRY[learner].specs().items() if not spec.optional}
        made = REGISTRY[learner](**{name: params[name] for name in known & params.keys()})
        others: Answer = {"classes": self.classes, "seed": (0,), "horizon": rows}
        player = make_player(made, Gaussian(sigma=sigma), **others)
        piece = sliced(self.rows, slice(0, rows))
        labels = self.labels[:rows]
        if row_by_row:
            single = [piece[i] if self.is_dense else piece.slice(i, i + 1) for i in range(rows)]
            examples = list(zip(single, labels.tolist(), strict=True))

            def learn() -> None:
                for row, label in examples:
                    player.learn(row, label)
        else:

            def learn() -> None:
                player.feed(piece, labels)

        spent = seconds(learn)
        tally = player.tally
        size = getattr(player, "size", player.f.size)
        counts = [tally.mistakes, tally.updates, tally.margin_updates, size]
        return {"seconds": spent, "time": 1e6 * spent / rows, "counts": counts}


def work() -> None:
    """Answer requests, one per line, until there are no more."""
    import ahpatron_cli

    passes = Passes()
    print(json.dumps(str(Path(ahpatron_cli.__file__).parents[1])), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(getattr(passes, request.pop("do"))(**request)), flush=True)


class Worker:
    """A process that runs the package of one checkout."""

    def __init__(self, checkout: Path) -> None:
        command = [sys.executable, __file__, "--worker"]
        environment = {**os.environ, "PYTHONPATH": str(checkout)}
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)
        found = self._answer()
        if Path(found) != checkout:
            sys.exit(f"there is no package in {checkout}: that of {found} was imported")

    def ask(self, do: str, **request: Any) -> Any:
        """What the worker answers to a request."""
        print(json.dumps({"do": do, **request}), file=self.process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> Any:
        line = self.process.stdout.readline()  # type: ignore[union-attr]  # it is a pipe
        if not line:
            sys.exit("a worker has ended; its message is above")
        return json.loads(line)


def requests(data: Dataset, options: argparse.Namespace) -> Iterator[tuple[str, dict[str, Any]]]:
    """What both workers are asked for on a data set, by the name that is printed."""
    params: dict[str, Any] = {"budget": options.budget or data.budget, "ridge": data.ridge}
    if data is MADE:
        params["multiclass"] = "shared"
    for learner in ("ahpatron", "arow") if data is MADE else options.learners:
        setting = {
            "learner": learner,
            "params": params,
            "sigma": data.sigma,
            "row_by_row": options.row_by_row,
        }
        rows = options.slow_rows if learner in SLOW else options.rows
        yield f"{'shared-' * (data is MADE)}{learner}", {"do": "run", "rows": rows, **setting}


def compare(old: Worker, new: Worker, request: Answer, repeats: int) -> tuple[float, str]:
    """The ratio of the least times, and a line that says it."""
    answers: list[tuple[Answer, Answer]] = []
    while len(answers) < repeats or (
        len(answers) < MOST * repeats and sum(answer["seconds"] for answer, _ in answers) < LEAST
    ):
        answers.append((old.ask(**request), new.ask(**request)))
    before, after = (min(answer["time"] for answer in side) for side in zip(*answers, strict=True))
    counts = [answer["counts"] for answer in answers[0]]
    verdict = "equal" if counts[0] == counts[1] else f"DIFFER: {counts[0]} {counts[1]}"
    return after / before, f"{after / before:7.3f} {before:8.2f} {after:8.2f}  {verdict}"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("other", type=Path)
    parser.add_argument("folder", type=Path)
    for name, default in (("--rows", 20_000), ("--slow-rows", 3000), ("--repeats", 5)):
        parser.add_argument(name, type=int, default=default)
    parser.add_argument("--budget", type=int)
    parser.add_argument("--row-by-row", action="store_true")
    parser.add_argument("--learners", default=LEARNERS, type=lambda text: text.split(","))
    parser.add_argument("--data", default=NAMES, type=lambda text: text.split(","))
    options = parser.parse_args()
    chosen = [data for data in DATASETS if data.name in options.data]
    if "shared" in options.learners:
        options.learners.remove("shared")
        chosen = [*chosen, MADE] if options.learners else [MADE]
    old = Worker(options.other.resolve())
    new = Worker(REPOSITORY)
    print(f"{'learner':26} {'data set':9} {'new/old':>7} {'old µs':>8} {'new µs':>8}  counts")
    ratios: dict[str, list[float]] = {}
    for data in chosen:
        for worker in (old, new):
            worker.ask("load", folder=str(options.folder), name=data.name, rows=options.rows)
        for name, request in requests(data, options):
            ratio, line = compare(old, new, request, options.repeats)
            ratios.setdefault(name, []).append(ratio)
            print(f"{name:26} {data.name:9} {line}", flush=True)
    print("geometric means")
    ratios["all"] = [ratio for found in ratios.values() for ratio in found]
    for name, found in ratios.items():
        print(f"{name:36} {statistics.geometric_mean(found):7.3f}")


if __name__ == "__main__":
    work() if sys.argv[1:] == ["--worker"] else main()
