"""metron with two memories: equality with its reference implementation, long and steady streams.

    python tests/benchmarks/two_memories.py equality STREAMS FILES [--only elec,a9a]
    python tests/benchmarks/two_memories.py table STREAMS FILES
    python tests/benchmarks/two_memories.py long [--rounds 1000000]
    python tests/benchmarks/two_memories.py steady [--streams 200]
    python tests/benchmarks/two_memories.py change

STREAMS holds NAME.csv.xz with the label in the last column, run in order of time. FILES holds
NAME.svm.xz, run in permutation 0. Both are cut after 10,000 rows. B = 400. The engine runs each in
blocks of 1, 7, 64 and 256, saved and resumed in the middle, on dense rows and on sparse ones.
Every prediction must be that of tests/reference; the mistakes after 1,000, 5,000 and all rounds
must be those recorded here (`COUNTS`). One line per data set: the counts, the largest difference
of a score, and what differs, if anything. The exit code is 1 if anything does.

`table` shows the mistakes of metron, metron with tracker=off, arow, ahpatron+ and ahpatron on whole
streams and on 10,000 rows of the files in three orders, and geometric means relative to
tracker=off. The last three have the median distance of the first 1,000 rows as σ.

`long` makes a stream whose plane turns, and flips from time to time, and shows along the way: the
smallest eigenvalue of both covariances over the largest, the weight of the tracker, alarms and peak
memory. The reference implementation starts from the engine's state 20,000 rounds before the end,
and their mistakes are compared. `steady` makes streams of 5,000 rounds that do not change: how
often an alarm is raised, and mistakes with and without a tracker. `change` shows how long a row
that arrives after the last change of the metric waits for its answer, with 54 and 500 columns.
"""

from __future__ import annotations

import argparse
import lzma
import resource
import statistics
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from common import permutation, read, take
from numpy.typing import NDArray

from ahpatron_cli.core import REGISTRY, CsrRows, Gaussian, Metron, Player
from ahpatron_cli.core.rows import Rows, compressed, sliced
from ahpatron_cli.core.two_memories import TwoMemories
from reference.two_memories import TwoMemories as Reference
from reference.two_memories import metron as reference

Array = NDArray[np.float64]
BUDGET = 400
ROWS = 10_000
BLOCKS = (1, 7, 64, 256)
CHECKPOINTS = (1000, 5000)
COUNTS: dict[str, tuple[int, ...]] = {
    "elec": (47, 188, 407),
    "weather": (217, 943, 1868),
    "outdoor": (78, 267),
    "keystroke": (69, 96),
    "usenet2": (233, 360),
    "bananas": (107, 504, 537),
    "segments": (85, 108),
    "riverphishing": (99, 118),
    "sea": (120, 513, 1035),
    "movingsquares": (43, 147, 296),
    "transchess": (4, 455, 730),
    "RBF": (125, 747, 1432),
    "phishing": (72, 269, 454),
    "a9a": (159, 860, 1659),
    "w8a": (31, 122, 196),
    "susy": (241, 1092, 2144),
    "ijcnn1": (56, 168, 254),
    "cod-rna": (61, 209, 366),
}
"""Mistakes after 1,000, 5,000 and all rounds; data sets with fewer than 5,000 rows have two."""
STREAMS = tuple(COUNTS)[:12]
FILES = tuple(COUNTS)[12:]
RIVALS = ("metron", "metron tracker=off", "arow", "ahpatron+", "ahpatron")


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


def stream(folder: Path, name: str, rows: int | None = ROWS) -> Data:
    """The first rows of a stream in order of time."""
    with lzma.open(folder / f"{name}.csv.xz", "rt") as file:
        table = np.loadtxt(file, delimiter=",", skiprows=1, max_rows=rows)
    labels = table[:, -1]
    classes = int(labels.max()) + 1
    if classes == 2:
        labels = np.where(labels > 0, 1.0, -1.0)
    return Data(name, table[:, :-1], labels, classes)


def shuffled_file(folder: Path, name: str, order: int = 0) -> Data:
    """The first rows of a LIBSVM file in a permutation."""
    rows, labels = read(folder / f"{name}.svm.xz")
    first = permutation(len(labels), order)[:ROWS]
    rows = take(rows, first)
    labels = labels[first]
    if isinstance(rows, CsrRows):
        rows = rows.dense()
    return Data(name, rows, labels, 2)


def every(folders: tuple[Path, Path], only: list[str]) -> list[Data]:
    """All data sets of both folders, or those with these names."""
    streams, files = folders
    found = []
    for name in COUNTS:
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
    first = player.feed(sliced(rows, slice(0, middle)), data.labels[:middle])
    state = player.state_dict()
    player = Player(learner, classes=data.classes, block=block).load_state_dict(state)
    rest = player.feed(sliced(rows, slice(middle, len(data.labels))), data.labels[middle:])
    return np.concatenate((first, rest))


def compare(data: Data) -> bool:
    """Run all of them on a data set and print a line; whether all are equal."""
    labels = data.labels.astype(int).tolist()
    classes = 0 if data.classes == 2 else data.classes
    trace = reference(data.rows, labels, budget=BUDGET, tracker="on", classes=classes)
    expected = np.array(trace.scores)
    counts = data.counts(expected)
    problems = []
    if counts != COUNTS[data.name]:
        problems.append(f"recorded {COUNTS[data.name]}")
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


# Mistakes of other learners -----------------------------------------------------------------------


def mistakes_of(rival: str, data: Data, sigma: float) -> int:
    """Mistakes of a learner on a data set."""
    name, _, tracker = rival.partition(" tracker=")
    params = {"tracker": tracker} if tracker else {}
    learner = REGISTRY[name](budget=BUDGET, **params)
    player = Player(learner, Gaussian(sigma=sigma), classes=data.classes)
    player.feed(data.rows, data.labels)
    return int(player.tally.mistakes)


def median_distance(rows: Array) -> float:
    """Median distance of two different rows."""
    squares = np.square(rows).sum(axis=1)
    distances = squares[:, None] + squares - 2.0 * rows @ rows.T
    apart = distances[np.triu_indices(len(rows), 1)]
    return float(np.sqrt(np.median(apart[apart > 0.0])))


def mistakes_on(orders: list[Data]) -> list[int]:
    """Mistakes of each of the rivals on all orders of a data set."""
    found = [0] * len(RIVALS)
    for data in orders:
        sigma = median_distance(data.rows[:1000])
        for number, rival in enumerate(RIVALS):
            found[number] += mistakes_of(rival, data, sigma)
    return found


def table(streams: Path, files: Path) -> int:
    """Print a line per data set, and geometric means relative to tracker=off."""
    print(f"{'mistakes':14} {'rows':>7}" + "".join(f"{rival:>20}" for rival in RIVALS))
    for names in (STREAMS, FILES):
        ratios = []
        for name in names:
            if names is STREAMS:
                orders = [stream(streams, name, rows=None)]
            else:
                orders = [shuffled_file(files, name, order) for order in range(3)]
            found = mistakes_on(orders)
            rows = sum(len(data.labels) for data in orders)
            shown = "".join(f"{mistakes:20,}" for mistakes in found)
            print(f"{name:14} {rows:7,}{shown}", flush=True)
            ratios.append(np.array(found) / found[1])
        means = np.exp(np.log(ratios).mean(axis=0))
        print(f"{'mean':22}" + "".join(f"{mean:20.3f}" for mean in means), flush=True)
    return 0


# A long stream ------------------------------------------------------------------------------------


def turning_plane(rounds: int) -> tuple[Array, Array]:
    """Rows of three features; their plane turns, and its sides change places now and then."""
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(rounds, 3))
    time_ = np.arange(rounds)
    angle = time_ / 20_000
    side = rows[:, 0] * np.cos(angle) + rows[:, 1] * np.sin(angle) + 0.3 * rows[:, 2] ** 2 - 0.3
    labels = np.where(side > 0, 1.0, -1.0)
    labels[(time_ // 70_000) % 2 == 1] *= -1.0
    labels[rng.random(rounds) < 0.05] *= -1.0
    return rows, labels


def twin_of(player: Player, rows: Array, labels: Array, births: list[int]) -> Reference:
    """The reference implementation in the state of a player after its rounds of this stream."""
    done = player.tally.rounds
    f = player.f
    learner = player.learner
    assert isinstance(f, TwoMemories)
    assert isinstance(learner, Metron)
    assert f.examples is not None
    stream = list(zip(rows[done:].tolist(), labels[done:].astype(int).tolist(), strict=True))
    twin = Reference(stream, budget=BUDGET)
    twin.f.points = list(f.examples.coordinates.copy())
    for own, head in zip(twin.heads, f.heads, strict=True):
        head.C.settle()
        own.a = head.a[:, None].copy()
        own.C = head.C.whole()
        own.loss = head.loss
        own.rounds = head.rounds
        own.mistakes = head.mistakes
    f.Q.settle()
    twin.Q = f.Q.whole()
    twin.P = f.metric.weights.copy()
    twin.fresh = f.metric.new_feature_scale
    twin.smooth = f.smooth > 0
    twin.rows = list(rows[:done])
    since = len(births) - np.searchsorted(births, np.arange(done), side="right")
    twin.counts = (0.5**since).tolist()
    twin.f.restarts = [birth - 1 for birth in births]
    twin.handicap = f.tracker.handicap
    twin.t = done
    twin.next = int(learner.next_call) + 1
    twin.gap = twin.next - learner.birth
    twin.seen = done + 1 - learner.birth
    twin.wrong = learner.wrong
    twin.g = learner.page
    return twin


def least_eigenvalue(player: Player, number: int) -> float:
    """The smallest eigenvalue of the covariance of a head, over its largest."""
    head = player.f.heads[number]
    head.C.settle()
    values = np.linalg.eigvalsh(head.C.whole())
    return float(values[0] / values[-1])


def long(rounds: int) -> int:
    """Run the long stream; whether the last 20,000 rounds are those of the reference."""
    rows, labels = turning_plane(rounds)
    player = Player(Metron(budget=BUDGET, tracker="on"))
    start = 0
    births: list[int] = []  # the first round after each alarm
    last = rounds - 20_000
    print("    rounds  steady   tracker  weight  alarms  mistakes  MiB")
    for stop in [*range(100_000, last, 100_000), last]:
        for first in range(start, stop, 50):
            player.feed(rows[first : first + 50], labels[first : first + 50])
            learner = player.learner
            assert isinstance(learner, Metron)
            if learner.restarts > len(births):
                births.append(learner.birth)
        start = stop
        least = [least_eigenvalue(player, number) for number in (0, 1)]
        alarms = player.statistics()["restarts"]
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        shown = f"{least[0]:.1e}  {least[1]:.1e}  {player.f.tracker_weight:.3f}"
        print(
            f"{stop:10,}  {shown}  {alarms:6}  {player.tally.mistakes:8,}  {peak:.0f}", flush=True
        )
    twin = twin_of(player, rows, labels, births)
    before = player.tally.mistakes
    player.feed(rows[last:], labels[last:])
    twin.run()
    counts = player.tally.mistakes - before, twin.f.mistakes
    print(f"mistakes in the last 20,000 rounds: engine {counts[0]:,}, reference {counts[1]:,}")
    return 0 if counts[0] == counts[1] else 1


# Steady streams -----------------------------------------------------------------------------------


def steady_stream(seed: int) -> tuple[Array, Array]:
    """5,000 rounds of one of four concepts that do not change, with up to 20 % label noise."""
    rng = np.random.default_rng([2, seed])
    rows = rng.normal(size=(5000, 5))
    sides = (
        rows[:, 0] + 0.5 * rows[:, 1],
        rows[:, 0] * rows[:, 1],
        np.square(rows[:, :3]).sum(axis=1) - 2.4,
        np.sin(3 * rows[:, 0]) + rows[:, 2],
    )
    labels = np.where(sides[seed % 4] > 0, 1.0, -1.0)
    labels[rng.random(5000) < 0.05 * (seed // 4 % 5)] *= -1.0
    return rows, labels


def steady(streams: int) -> int:
    """Alarms on steady streams, and the mistakes next to those of metron without a tracker."""
    alarms = 0
    ratios = []
    for seed in range(streams):
        rows, labels = steady_stream(seed)
        mistakes = []
        for tracker in ("on", "off"):
            player = Player(Metron(budget=BUDGET, tracker=tracker))
            player.feed(rows, labels)
            mistakes.append(player.tally.mistakes)
            if tracker == "on" and player.statistics()["restarts"]:
                alarms += 1
        ratios.append(mistakes[0] / mistakes[1])
    mean = statistics.geometric_mean(ratios)
    print(
        f"alarms on {alarms} of {streams} streams; mistakes {mean:.3f} times those of tracker=off"
    )
    print(f"worst {max(ratios):.3f}, best {min(ratios):.3f}")
    return 0


# Changes of the metric ----------------------------------------------------------------------------


def change() -> int:
    """How long a row waits after the change of round 4,096, in milliseconds of processor time."""
    for columns in (54, 500):
        rng = np.random.default_rng(3)
        rows = rng.normal(size=(4097, columns))
        side = rows[:, 0] * rows[:, 1] + rows[:, 2] + 0.5 * rng.normal(size=4097)
        labels = np.where(side > 0, 1.0, -1.0)
        player = Player(Metron(budget=BUDGET, tracker="on"))
        player.feed(rows[:4094], labels[:4094])
        spent = []
        for t in range(4094, 4097):
            begun = time.process_time()
            player.feed(rows[t : t + 1], labels[t : t + 1])
            spent.append(1e3 * (time.process_time() - begun))
        shown = ", ".join(f"{one:.2f}" for one in spent)
        print(f"{columns} columns, |S| = {player.size}: rounds 4,095 to 4,097: {shown} ms")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    equality = commands.add_parser("equality")
    equality.add_argument("streams", type=Path)
    equality.add_argument("files", type=Path)
    equality.add_argument("--only", default=[], type=lambda text: text.split(","))
    everything = commands.add_parser("table")
    everything.add_argument("streams", type=Path)
    everything.add_argument("files", type=Path)
    commands.add_parser("long").add_argument("--rounds", type=int, default=1_000_000)
    commands.add_parser("steady").add_argument("--streams", type=int, default=200)
    commands.add_parser("change")
    options = parser.parse_args()
    if options.command == "long":
        return long(options.rounds)
    if options.command == "steady":
        return steady(options.streams)
    if options.command == "change":
        return change()
    if options.command == "table":
        return table(options.streams, options.files)
    data_sets = every((options.streams, options.files), options.only)
    equal = [compare(data) for data in data_sets]
    return 0 if all(equal) else 1


if __name__ == "__main__":
    sys.exit(main())
