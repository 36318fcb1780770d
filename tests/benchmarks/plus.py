"""ahpatron+ beside Ahpatron and the paper's other learners: plays, and keeps what came out.

    python tests/benchmarks/plus.py FOLDER RESULTS.jsonl [--only table,others,curve,drift,noise]
                                    [--data NAME,NAME] [--permutations N]

FOLDER holds NAME.svm.xz. The same command again plays only what is missing from RESULTS.jsonl;
`python tests/benchmarks/plus_report.py RESULTS.jsonl [FIGURE.svg]` makes the tables and the figure.

- table: the paper's budgets and σ; ahpatron+ with its one default, ahpatron with ε 0.5..0.9 and the
  paper's ridge
- others: the other learners of the paper's table that have a budget, there; step 1, 10, 100 by √T
- curve: budgets 50 to 3000 on three files, three orders, two from 1500 on; ε 0.5, 0.7, 0.9;
  projectron++ keeps what it keeps, one order
- drift: in the second half of the rounds, labels are flipped (flip), or features change places
  (swap); five orders
- noise: 10 % of the labels are flipped, and mistakes are counted against those; five orders

Every setting plays the same orders, those of `ahpatron run --repeats 10 --seed 0`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # threads are pinned
from paper import DATASETS, EPSILONS, FIGURES, Dataset

from ahpatron_cli.core.rows import CsrRows
from ahpatron_cli.data.dataset import Batch, Preparation, load
from ahpatron_cli.data.dataset import Dataset as Loaded
from ahpatron_cli.data.source import open_source
from ahpatron_cli.runner import Pass, Repetition, Setup

BUDGETS = (50, 100, 200, 400, 800, 1500, 3000)
CURVES = ("phishing", "susy", "ijcnn1")
DRIFTING = ("phishing", "a9a", "susy")
POWERS = (0, 1, 2)
"""Of ten, over √T: the steps of the gradient family."""
NOISE = 0.1


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
    yield "ahpatron+", {"budget": data.budget}
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
            yield from ((*one, 10) for one in every if one[0].startswith("ahpatron"))
        case "others":
            yield from ((*one, 10) for one in every if not one[0].startswith("ahpatron"))
            features = next(
                one.size for one in FIGURES if (one.dataset, one.learner) == (data.name, "fogd")
            )
            for power in POWERS:
                step = 10.0**power / math.sqrt(rounds)
                yield "fogd", {"budget": data.budget, "features": features, "step": step}, 3
        case "curve" if data.name in CURVES:
            for budget in BUDGETS:
                orders = 3 if budget < 1500 else 2
                yield "ahpatron+", {"budget": budget}, orders
                for epsilon in EPSILONS[::2]:
                    yield "ahpatron", {"budget": budget, "epsilon": epsilon}, orders
                yield "pomdr", {"budget": budget}, orders
                yield from ((*one, orders) for one in gradients(budget, rounds))
            for tolerance in (0.9, 0.5, 0.1) if data.name != "susy" else (0.9,):
                yield "projectron++", {"tolerance": tolerance, "rule": "full"}, 1
        case "flip" | "swap" | "noise" if data.name in DRIFTING:
            yield from ((*one, 5) for one in every)


def altered(experiment: str, loaded: Loaded, repeat: int) -> Iterator[Batch]:
    """The rounds of one order; what an experiment alters depends on the order, not the learner."""
    rounds = loaded.facts().rounds
    order = Repetition(10, 0, shuffle=True).order(repeat, rounds)
    rng = np.random.default_rng([17, repeat])
    wrong = rng.random(rounds) < NOISE
    played = 0
    for piece in loaded.batches(order):
        late = np.arange(played, played + len(piece.labels)) >= rounds // 2
        if experiment == "flip":
            piece = replace(piece, labels=np.where(late, -piece.labels, piece.labels))
        elif experiment == "noise":
            here = wrong[played : played + len(late)]
            piece = replace(piece, labels=np.where(here, -piece.labels, piece.labels))
        elif experiment == "swap":
            assert not isinstance(piece.rows, CsrRows), "only dense files are played so"
            width = piece.rows.shape[1]
            moved = piece.rows[:, np.random.default_rng([18, repeat]).permutation(width)]
            piece = replace(piece, rows=np.where(late[:, None], moved, piece.rows))
        played += len(late)
        yield piece


def play(trial: Trial, loaded: Loaded, sigma: float) -> dict[str, object]:
    """One line of the results."""
    setup = Setup(trial.learner, trial.params, "gaussian", {"sigma": sigma})
    one = Pass(setup, trial.data, 0, trial.repeat, loaded.facts().rounds)
    for piece in altered(trial.experiment, loaded, trial.repeat):
        one.feed(piece)
    run = one.result().record
    return vars(trial) | {
        "rounds": run.rounds,
        "mistakes": run.mistakes,
        "margin_updates": run.margin_updates,
        "halvings": run.halvings,
        "zeta": run.zeta,
        "support_size": run.support_size,
        "seconds": run.seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", default="table,curve,drift,noise,others")
    parser.add_argument("--data", default=",".join(data.name for data in DATASETS))
    parser.add_argument("--permutations", type=int, default=10)
    given = parser.parse_args()
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    names = ("experiment", "data", "learner", "params", "repeat")
    done = {Trial(**{name: json.loads(line)[name] for name in names}).key for line in lines}
    for wanted in given.only.replace("drift", "flip,swap").split(","):
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
