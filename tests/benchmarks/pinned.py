"""Counts of all learners on made streams: recorded once, compared after a change.

    python tests/benchmarks/pinned.py write          # record the counts in pinned.json
    python tests/benchmarks/pinned.py compare [-v]   # print the cases that differ from it

`compare` ends with the exit code 1 if any case differs; with -v, it also prints those that are
equal, with the seconds that they took. The package is the one that Python finds: set PYTHONPATH to
compare another checkout. Where `near_ties` is large, other rounding may give other counts; the most
sensitive case is krls on duplicates.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # after the threads are pinned
from numpy.typing import NDArray

from ahpatron_cli.core import KERNELS, REGISTRY, Player
from ahpatron_cli.core.errors import CoreError, ParameterError
from ahpatron_cli.core.rows import CsrRows

RECORDED = Path(__file__).with_suffix(".json")
ROUNDS = 1500
BUDGETS = (30, 100)
VARIANTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("bsgd", {"maintenance": "merge"}),
    ("bsgd", {"maintenance": "project"}),
    ("projectron", {"budget": 30}),
    ("projectron", {"budget": 100}),
    ("projectron++", {"budget": 30}),
    ("projectron++", {"budget": 100}),
    ("projectron++", {"rule": "full"}),
    ("avp", {"schedule": "adaptive", "radius": 5.0}),
    ("budget-perceptron", {"threshold": 0.3}),
    ("ahpatron", {"selection": "greedy"}),
    ("ahpatron", {"selection": "nearest"}),
    ("ahpatron", {"rescale": 0.6}),
    ("arow", {"caution": 1.0}),
    ("arow", {"alarm": 3.0}),
    ("metron", {"tracker": "off"}),
)
CLASS_COSTS = ("ahpatron", "arow", "norma")
"""Learners whose plain settings are also run with costs of three classes."""


@dataclass(frozen=True)
class Stream:
    """Rows and labels, and how they are run: the kernel, the number of classes and their costs."""

    name: str
    rows: NDArray[np.float64] | CsrRows
    labels: NDArray[np.float64]
    kernel: str = "gaussian"
    sigma: float = 1.5
    classes: int = 2
    costs: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Case:
    """A learner with its parameters on a stream."""

    learner: str
    params: dict[str, Any]
    stream: Stream

    def __str__(self) -> str:
        words = [self.learner, *(f"{name}={value}" for name, value in self.params.items())]
        return f"{' '.join(words)} | {self.stream.name} | {self.stream.kernel}"


def run_case(case: Case) -> dict[str, Any] | None:
    """The counts of a case; None if the learner refuses the kernel, or a shared active set."""
    stream = case.stream
    costs = case.stream.costs
    width = {"sigma": stream.sigma} if stream.kernel in ("gaussian", "laplacian") else {}
    try:
        learner = REGISTRY[case.learner](**case.params)
        kernel = KERNELS[stream.kernel](**width)
        rounds = len(stream.labels)
        player = Player(learner, kernel, classes=stream.classes, seed=(0,), horizon=rounds)
    except ParameterError:
        if stream.kernel == "gaussian" and stream.classes == 2:  # every learner accepts that
            raise
        return None
    weights = None
    if costs is not None:
        weights = np.array(costs)[np.unique(stream.labels, return_inverse=True)[1]]
    try:
        player.feed(stream.rows, stream.labels, weights)
    except CoreError as error:
        return {"error": str(error)}
    tally = player.tally
    found = player.statistics()
    return {
        **{name: getattr(tally, name) for name in ("mistakes", "margin_updates", "updates")},
        "support": player.size,
        "failures": tally.nonpositive_margins,
        "near_ties": tally.near_ties,
        **{name: found[name] for name in ("halvings", "restarts") if name in found},
    }


def clusters(seed: int, classes: int, noise: float = 0.05) -> tuple[Any, Any]:
    """Rows of 6 features around 3 centres for each class, some with another's number."""
    rng = np.random.default_rng(seed)
    centres = 2 * rng.normal(size=(3 * classes, 6))
    centre = rng.integers(3 * classes, size=ROUNDS)
    rows = centres[centre] + rng.normal(size=(ROUNDS, 6))
    noisy = rng.random(ROUNDS) < noise
    return rows, np.where(noisy, rng.integers(classes, size=ROUNDS), centre % classes)


def streams() -> Iterator[Stream]:
    """The streams with two classes, and two with three; labels are ±1, or numbers of classes."""
    rows, number = clusters(seed=1, classes=2)
    dense = Stream("dense", rows, 2.0 * number - 1)
    yield dense
    yield replace(dense, name="costs 1,5", costs=(1.0, 5.0))
    for kernel, sigma in (("laplacian", 6.0), ("polynomial", 1.0), ("linear", 1.0)):
        short = {"rows": rows[:600], "labels": dense.labels[:600]}
        yield replace(dense, kernel=kernel, sigma=sigma, **short)
    rng = np.random.default_rng(2)
    positive = rng.random(ROUNDS) < 0.5
    often = rng.dirichlet(np.full(400, 0.3), size=2)  # which words each class has
    chance = np.minimum(6 * (often[positive.astype(int)] + often.mean(axis=0)), 0.9)
    owners, columns = np.nonzero(rng.random((ROUNDS, 400)) < chance)
    indptr = np.searchsorted(owners, np.arange(ROUNDS + 1))
    sparse = CsrRows(indptr, columns.astype(np.int32), np.ones(len(columns)), 400)
    yield Stream("sparse", sparse, np.where(positive, 1.0, -1.0), sigma=3.0)
    rng = np.random.default_rng(3)
    drawn = rng.normal(size=(25, 4))[rng.integers(25, size=ROUNDS)]
    yield Stream("duplicates", drawn, rng.choice((-1.0, 1.0), size=ROUNDS), sigma=0.7)
    rows, number = clusters(seed=4, classes=2, noise=0.02)
    half = np.where(np.arange(ROUNDS) < ROUNDS // 2, 1.0, -1.0)
    yield Stream("flip", rows, half * (2.0 * number - 1))
    rows, number = clusters(seed=5, classes=3)
    classes = Stream("three classes", rows, number.astype(np.float64), classes=3)
    yield classes
    yield replace(classes, name="three classes, costs 1,5,2", costs=(1.0, 5.0, 2.0))


def settings() -> Iterator[tuple[str, dict[str, Any]]]:
    """All learners with default parameters, and the variants; with the budgets, where they vary."""
    for name, params in (*((name, {}) for name in REGISTRY), *VARIANTS):
        budget = REGISTRY[name].specs().get("budget")
        if budget is None or budget.optional:
            yield name, params
        else:
            yield from ((name, {"budget": number, **params}) for number in BUDGETS)


def cases() -> Iterator[Case]:
    """Every setting on every stream that it accepts."""
    for stream in streams():
        for name, params in settings():
            kind = REGISTRY[name]
            plain = not params.keys() - {"budget"}
            if stream.costs and not kind.takes_costs:
                continue
            if stream.costs and stream.classes > 2 and not (plain and name in CLASS_COSTS):
                continue
            forms: Sequence[dict[str, Any]] = [{}]
            if stream.classes > 2 and "multiclass" in kind.specs():
                forms = [{"multiclass": "rest"}, {"multiclass": "shared"}]
            yield from (Case(name, {**params, **form}, stream) for form in forms)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("action", choices=("write", "compare"))
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    wanted = json.loads(RECORDED.read_text()) if options.action == "compare" else {}
    made: dict[str, Any] = {}
    for case in cases():
        start = time.process_time()
        counts = run_case(case)
        if counts is None:
            continue
        made[str(case)] = counts
        if options.verbose and counts == wanted.get(str(case), counts):
            print(f"{case}: {json.dumps(counts)} in {time.process_time() - start:.2f} s")
    if options.action == "write":
        lines = (f"{json.dumps(key)}: {json.dumps(made[key])}" for key in sorted(made))
        RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"{len(made)} cases recorded")
        return 0
    names = sorted(made.keys() | wanted.keys())
    different = [name for name in names if made.get(name) != wanted.get(name)]
    for name in different:
        print(f"{name}\n    recorded {wanted.get(name)}\n    now      {made.get(name)}")
    print(f"{len(names) - len(different)} of {len(names)} cases equal")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())
