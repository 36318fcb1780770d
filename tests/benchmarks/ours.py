"""Our learners, arow and ahpatron+, beside the paper's: plays, and keeps what came out.

    python tests/benchmarks/ours.py FOLDER RESULTS.jsonl [--only table,others,curve,…]
                                    [--data NAME,NAME] [--permutations N]

FOLDER holds NAME.svm.xz. The same command again plays only what is missing from RESULTS.jsonl;
`python tests/benchmarks/ours_report.py RESULTS.jsonl` makes the tables.

- table: the paper's budgets and σ; arow and ahpatron+ with their one default, ahpatron with ε
  0.5..0.9 and the paper's ridge
- others: the other learners of the paper's table that have a budget, there; step 1, 10, 100 by √T
- curve: budgets 50 to 3000 on three files, three orders, two from 1500 on; ε 0.5, 0.7, 0.9;
  projectron++ keeps what it keeps, one order

The rest plays the first 20,000 rounds of three orders on all files, arow and ahpatron+ beside
ahpatron with ε 0.5, 0.7, 0.9 and constant steps of ½, 1 and 2 times its default:

- flip: from half-way on, labels are their opposites; gradual: more and more of them in the middle
  half; swap: features change places half-way
- noise0.05, noise0.1, noise0.2: so many labels are flipped, and mistakes are counted against those
- sigma0.25, sigma0.5, sigma2, sigma4: σ is that many times the paper's
- sorted: all rows of one label come first

Every setting plays the same orders, those of `ahpatron run --repeats 10 --seed 0`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # threads are pinned
from paper import DATASETS, EPSILONS, FIGURES, Dataset

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed
from ahpatron_cli.data.dataset import Dataset as Loaded
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.runner import RunOptions, generator_seed

OURS = ("arow", "ahpatron+")
BUDGETS = (50, 100, 200, 400, 800, 1500, 3000)
CURVES = ("phishing", "susy", "ijcnn1")
POWERS = (0, 1, 2)
"""Of ten, over √T: the steps of the gradient family."""
SHORT = 20_000
"""Rounds of the experiments that alter the stream."""
ALTERED = (
    *("flip", "gradual", "swap", "sorted"),
    *("noise0.05", "noise0.1", "noise0.2"),
    *("sigma0.25", "sigma0.5", "sigma2", "sigma4"),
)


@dataclass(frozen=True)
class Trial:
    """A setting to play over one order of one file."""

    experiment: str
    data: str
    learner: str
    params: Mapping[str, float | str]
    repeat: int

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return json.dumps(vars(self), sort_keys=True)


def gradients(budget: int, rounds: int) -> Iterator[tuple[str, Mapping[str, float | str]]]:
    """The learners whose step is chosen in hindsight."""
    for learner in ("nogd", "bogd++"):
        for power in POWERS:
            yield learner, {"budget": budget, "step": 10.0**power / math.sqrt(rounds)}


def budgeted(data: Dataset, rounds: int) -> Iterator[tuple[str, Mapping[str, float | str]]]:
    """All learners at the paper's budget of a file."""
    for learner in OURS:
        yield learner, {"budget": data.budget}
    for epsilon in EPSILONS:
        yield "ahpatron", {"budget": data.budget, "epsilon": epsilon, "ridge": data.ridge}
    yield "pomdr", {"budget": data.budget}
    yield from gradients(data.budget, rounds)


def settings(
    experiment: str, data: Dataset, rounds: int
) -> Iterator[tuple[str, Mapping[str, float | str], int]]:
    """Learners, parameters and how many orders at most."""
    every = list(budgeted(data, rounds))
    match experiment:
        case "table":
            yield from ((*one, 10) for one in every if one[0] in (*OURS, "ahpatron"))
        case "others":
            yield from ((*one, 10) for one in every if one[0] not in (*OURS, "ahpatron"))
            features = next(
                one.size for one in FIGURES if (one.dataset, one.learner) == (data.name, "fogd")
            )
            for power in POWERS:
                step = 10.0**power / math.sqrt(rounds)
                yield "fogd", {"budget": data.budget, "features": features, "step": step}, 3
        case "curve" if data.name in CURVES:
            for budget in BUDGETS:
                orders = 3 if budget < 1500 else 2
                yield from ((learner, {"budget": budget}, orders) for learner in OURS)
                for epsilon in EPSILONS[::2]:
                    yield "ahpatron", {"budget": budget, "epsilon": epsilon}, orders
                yield "pomdr", {"budget": budget}, orders
                yield from ((*one, orders) for one in gradients(budget, rounds))
            for tolerance in (0.9, 0.5, 0.1) if data.name != "susy" else (0.9,):
                yield "projectron++", {"tolerance": tolerance, "rule": "full"}, 1
        case _ if experiment in ALTERED:
            yield from ((learner, {"budget": data.budget}, 3) for learner in OURS)
            for epsilon in EPSILONS[::2]:
                for step in (0.125, 0.25, 0.5):
                    rest = {"budget": data.budget, "ridge": data.ridge}
                    yield "ahpatron", {**rest, "epsilon": epsilon, "step": step}, 3


def stream(trial: Trial, loaded: Loaded) -> tuple[Rows, Floats]:
    """The rounds of one order; what an experiment alters depends on the order, not the learner."""
    order = RunOptions(10, 0, shuffle=True).order(trial.repeat, loaded.facts().rounds)
    assert order is not None
    if trial.experiment in ALTERED:
        order = order[:SHORT]
    batches = list(loaded.batches(order))
    labels = np.concatenate([batch.labels for batch in batches])
    parts = CsrRows.concatenate([compressed(batch.rows) for batch in batches])
    rows: Rows = parts if isinstance(batches[0].rows, CsrRows) else parts.dense()
    rounds = len(labels)
    rng = np.random.default_rng([17, trial.repeat])
    now = np.arange(rounds)
    if trial.experiment == "flip":
        labels = np.where(now >= rounds // 2, -labels, labels)
    elif trial.experiment == "gradual":
        share = np.clip((now - rounds / 4) / (rounds / 2), 0, 1)
        labels = np.where(rng.random(rounds) < share, -labels, labels)
    elif trial.experiment.startswith("noise"):
        wrong = rng.random(rounds) < float(trial.experiment.removeprefix("noise"))
        labels = np.where(wrong, -labels, labels)
    elif trial.experiment == "sorted":
        sorted_ = np.argsort(labels, kind="stable")
        rows, labels = (
            (rows.take(sorted_) if isinstance(rows, CsrRows) else rows[sorted_]),
            labels[sorted_],
        )
    elif trial.experiment == "swap":
        dense = rows.dense() if isinstance(rows, CsrRows) else rows
        moved = dense[:, np.random.default_rng([18, trial.repeat]).permutation(dense.shape[1])]
        swapped = np.where((now >= rounds // 2)[:, None], moved, dense)
        rows = compressed(swapped) if isinstance(rows, CsrRows) else swapped
    return rows, labels


def play(trial: Trial, loaded: Loaded, sigma: float) -> dict[str, object]:
    """One line of the results."""
    if trial.experiment.startswith("sigma"):
        sigma *= float(trial.experiment.removeprefix("sigma"))
    rows, labels = stream(trial, loaded)
    learner = REGISTRY[trial.learner](**trial.params)
    seed = generator_seed(0, trial.repeat, trial.learner)
    player = Player(learner, Gaussian(sigma=sigma), seed=seed, horizon=len(labels))
    start = time.process_time()
    player.feed(rows, labels)
    seconds = time.process_time() - start  # of the CPU: other work on the machine has no say
    tally = player.tally
    return vars(trial) | {
        "rounds": tally.rounds,
        "mistakes": tally.mistakes,
        "margin_updates": tally.margin_updates,
        "support_size": player.f.size,
        "seconds": seconds,
        **player.learner.statistics(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default=",".join(("table", "others", "curve", *ALTERED)))
    parser.add_argument("--data", default=",".join(data.name for data in DATASETS))
    parser.add_argument("--permutations", type=int, default=10)
    given = parser.parse_args()
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    names = ("experiment", "data", "learner", "params", "repeat")
    done = {Trial(**{name: json.loads(line)[name] for name in names}).key for line in lines}
    for wanted in given.only.split(","):
        for data in DATASETS:
            if data.name not in given.data.split(","):
                continue
            with open_source(str(given.folder / f"{data.name}.svm.xz")) as source:
                loaded = load(source, Preparation())
            for learner, params, orders in settings(wanted, data, loaded.facts().rounds):
                for repeat in range(min(orders, given.permutations)):
                    trial = Trial(wanted, data.name, learner, params, repeat)
                    if trial.key in done:
                        continue
                    with given.results.open("a") as results:
                        results.write(json.dumps(play(trial, loaded, data.sigma)) + "\n")


if __name__ == "__main__":
    main()
