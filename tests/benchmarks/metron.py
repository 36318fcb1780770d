"""metron compared with arow and the others: runs, tables, and the picture of docs/metron.md.

    python tests/benchmarks/metron.py run FOLDER RESULTS.jsonl [--only table,budget,…]
                        [--data NAME,NAME] [--learners NAME,NAME] [--permutations N]
    python tests/benchmarks/metron.py report RESULTS.jsonl [PICTURE.svg]

FOLDER holds NAME.svm.xz. `run` continues with what is missing from RESULTS.jsonl, permutation by
permutation, so it can be stopped and given parts of the work.

- table: whole files, the paper's budgets; metron; arow with the paper's σ and with 1/4 to 4 times
  the median distance between the first 1,000 rows (`--sigma auto` is 1); ahpatron+; ahpatron with
  ε 0.5 to 0.9; pomdr; nogd and fogd with steps 1, 10, 100 by √T
- budget: B = 50 to 1500; phishing, SUSY, ijcnn1
- flip, gradual, swap, noise0.1: the altered streams of ours.py
- units: columns as they are, standardised, times powers of two, and times 10^U(-6, 6)

All but `table` have 20,000 rounds and at most three permutations. `best` in the report is chosen in
hindsight, by the mean over the permutations. Times are CPU times per round of the same run.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np  # threads are pinned
from ours import SHORT, Trial, stream
from paper import DATASETS, EPSILONS, FIGURES, Dataset

from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed, rows_of
from ahpatron_cli.data.dataset import Preparation, load
from ahpatron_cli.data.geometry import median_sigma
from ahpatron_cli.data.source import open_source
from ahpatron_cli.runner import generator_seed

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
ALTERED = ("flip", "gradual", "swap", "noise0.1")
UNITS = ("raw", "standardised", "powers of two", "rescaled")
EXPERIMENTS = ("table", "budget", *ALTERED, "units")
WANTED = dict(zip((d.name for d in DATASETS), (4.70, 15.65, 1.50, 20.70, 1.25, 3.40), strict=True))
"""The AMR over ten permutations that metron must not exceed."""
Setting = tuple[str, Mapping[str, float | str]]


def settings(experiment: str, data: Dataset, rounds: int) -> Iterator[Setting]:
    """Learners and parameters; `sigma` is a number, or a multiple of the median as text."""
    B = data.budget
    own: Setting = ("metron", {"budget": B})
    paper: Setting = ("arow", {"budget": B, "sigma": data.sigma})
    match experiment:
        case "table":
            yield from (own, paper)
            yield from (("arow", {"budget": B, "sigma": f"{factor}"}) for factor in FACTORS)
            same: dict[str, float | str] = {"budget": B, "sigma": data.sigma}
            yield "ahpatron+", same
            for epsilon in EPSILONS:
                yield "ahpatron", {**same, "epsilon": epsilon, "ridge": data.ridge}
            yield "pomdr", same
            size = {one.learner: one.size for one in FIGURES if one.dataset == data.name}["fogd"]
            for power in range(3):
                step = 10.0**power / math.sqrt(rounds)
                yield "nogd", {**same, "step": step}
                yield "fogd", {**same, "step": step, "features": size}
        case "budget" if data.name in ("phishing", "susy", "ijcnn1"):
            for budget in (50, 100, 200, 400, 800, 1500):
                for learner, params in (own, paper):
                    yield learner, {**params, "budget": budget}
        case "units":
            for units in UNITS:
                yield "metron", {"budget": B, "units": units}
                yield "arow", {"budget": B, "sigma": "1.0", "units": units}
        case _ if experiment in ALTERED:
            yield from (own, paper, ("ahpatron+", {"budget": B, "sigma": data.sigma}))


def in_units(rows: Rows, units: str, repeat: int) -> Rows:
    """The rows with every column in other units."""
    if units == "raw":
        return rows
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    rng = np.random.default_rng([19, repeat])
    if units == "standardised":
        spread = dense.std(axis=0)
        changed = (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
        return np.asarray(changed)
    powers = rng.integers(-20, 21, dense.shape[1]).astype(float)
    factors: Floats = 2.0**powers
    if units == "rescaled":
        factors = 10.0 ** rng.uniform(-6, 6, dense.shape[1])
    return compressed(dense * factors) if isinstance(rows, CsrRows) else dense * factors


def play(trial: Trial, loaded: Any) -> dict[str, object]:
    """One line of the results."""
    rows, labels = stream(trial, loaded)
    if trial.experiment not in ("table", *ALTERED):
        rows, labels = rows_of(rows, slice(0, SHORT)), labels[:SHORT]
    params = dict(trial.params)
    rows = in_units(rows, str(params.pop("units", "raw")), trial.repeat)
    sigma = params.pop("sigma", 1.0)
    if isinstance(sigma, str):
        median = median_sigma(rows_of(rows, slice(0, min(1000, len(labels)))), "gaussian")
        assert not isinstance(median, str), median
        sigma = float(sigma) * median
    learner = REGISTRY[trial.learner](**params)
    seed = generator_seed(0, trial.repeat, trial.learner)
    player = Player(learner, Gaussian(sigma=sigma), seed=seed, horizon=len(labels))
    start = time.process_time()
    player.feed(rows, labels)
    seconds = time.process_time() - start
    counts = {"rounds": len(labels), "mistakes": player.tally.mistakes, "seconds": seconds}
    return vars(trial) | counts | player.learner.statistics()


def run(given: argparse.Namespace) -> None:
    """Run what is missing."""
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    names = ("experiment", "data", "learner", "params", "repeat")
    done = {Trial(**{name: json.loads(line)[name] for name in names}).key for line in lines}
    for data in DATASETS:
        if data.name not in given.data.split(","):
            continue
        with open_source(str(given.folder / f"{data.name}.svm.xz")) as source:
            loaded = load(source, Preparation())
        for repeat in range(given.permutations):
            for experiment in given.only.split(","):
                if experiment != "table" and repeat >= 3:
                    continue
                for learner, params in settings(experiment, data, loaded.facts().rounds):
                    trial = Trial(experiment, data.name, learner, params, repeat)
                    wanted = not given.learners or learner in given.learners.split(",")
                    if wanted and trial.key not in done:
                        with given.results.open("a") as results:
                            results.write(json.dumps(play(trial, loaded)) + "\n")


# Report -------------------------------------------------------------------------------------------

Rates = dict[int, float]
"""AMR in percent by permutation."""


def named(learner: str, params: Mapping[str, Any]) -> str:
    """The row of the report that a setting belongs to; settings of a row compete."""
    if learner == "arow" and isinstance(params.get("sigma"), str) and "units" not in params:
        return "arow, best of 5 σ"
    name = {"arow": "arow, paper's σ"}.get(learner, learner)
    for what in ("units",):
        name = f"{learner}, {params[what]}" if what in params else name
    return name


def best(group: Mapping[str, Rates]) -> Rates:
    """The setting with the lowest mean."""
    return min(group.values(), key=lambda rates: fmean(rates.values()))


def difference(rates: Rates, base: Rates) -> str:
    """Paired difference and its standard error."""
    pairs = [rates[repeat] - base[repeat] for repeat in rates.keys() & base.keys()]
    if not pairs:
        return ""
    error = f" ± {stdev(pairs) / math.sqrt(len(pairs)):.2f}" if len(pairs) > 1 else ""
    return f" ({fmean(pairs):+.2f}{error})"


def report(path: Path, picture: Path | None) -> None:
    """Tables in Markdown on standard output."""
    trials = [json.loads(line) for line in path.read_text().splitlines()]
    found: dict[str, dict[str, dict[str, dict[str, Rates]]]] = {}
    times: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in trials:
        params, experiment = one["params"], one["experiment"]
        rows = [named(one["learner"], params)]
        if rows[0] == "arow, best of 5 σ" and float(params["sigma"]) == 1:
            rows.append("arow, σ auto")
        if experiment == "budget":
            rows = [f"{one['learner']}, B = {params['budget']}"]
        for row in rows:
            by_row = found.setdefault(experiment, {}).setdefault(row, {})
            rates = by_row.setdefault(one["data"], {}).setdefault(json.dumps(params), {})
            rates[one["repeat"]] = 100 * one["mistakes"] / one["rounds"]
        if experiment == "table":
            times[rows[0], one["data"]].append(1e6 * one["seconds"] / one["rounds"])
    names = [data.name for data in DATASETS]
    for experiment, table in found.items():
        print(f"\n## {experiment}\n\n| AMR % (difference to metron) |", " | ".join(names), "|")
        print("|---" * (len(names) + 1) + "|")
        for row, cells in table.items():
            budget = row.partition(", B = ")[2]
            base = table.get(f"metron, B = {budget}" if budget else "metron", {})
            base = base or table.get(row.replace("arow", "metron"), {})
            shown = []
            for name in names:
                text = ""
                if name in cells:
                    rates = best(cells[name])
                    text = f"{fmean(rates.values()):.2f}"
                    if not row.startswith("metron") and name in base:
                        text += difference(rates, best(base[name]))
                shown.append(text)
            print(f"| {row} |", " | ".join(shown), "|")
    own = found.get("table", {}).get("metron", {})
    for name, rates in own.items():
        rate = fmean(best(rates).values())
        verdict = "ok" if rate <= WANTED[name] else "TOO HIGH"
        print(f"\n{name}: {rate:.3f}, at most {WANTED[name]:.2f}: {verdict}", end="")
    print("\n\n## µs per round\n\n| |", " | ".join(names), "|")
    print("|---" * (len(names) + 1) + "|")
    for row in dict.fromkeys(row for row, _ in times):
        cells = [f"{min(times[row, n]):.1f}" if times.get((row, n)) else "" for n in names]
        print(f"| {row} |", " | ".join(cells), "|")
    if picture:
        draw(found, picture)


def _ratio(rates: Rates, base: Rates) -> float:
    """Mistakes compared with those of the base, on the permutations that both have."""
    both = rates.keys() & base.keys()
    return sum(rates[repeat] for repeat in both) / sum(base[repeat] for repeat in both)


def draw(found: Mapping[str, Any], picture: Path) -> None:
    """AMR of each learner as a multiple of metron's, and AMR against the budget."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    plt.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "metron", "font.size": 10})
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    table = found["table"]
    colours = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#999999")
    names = [data.name for data in DATASETS if data.name in table["metron"]]
    shown = ["arow, paper's σ", "arow, σ auto", "arow, best of 5 σ", "ahpatron+", "ahpatron"]
    for row, colour, marker in zip(shown, colours, "osD^v", strict=False):
        if row in table:
            cells = {name: table[row][name] for name in names if name in table[row]}
            ratios = [_ratio(best(cell), best(table["metron"][n])) for n, cell in cells.items()]
            left.plot(ratios, list(cells), marker, color=colour, label=row, alpha=0.9)
    left.axvline(1, color="black", linewidth=1)
    left.set_xscale("log")
    left.set_xticks([0.9, 1, 1.5, 2, 3, 4], ["0.9", "1", "1.5", "2", "3", "4"])
    left.minorticks_off()
    left.invert_yaxis()
    left.set_xlabel("mistakes, as a multiple of metron's")
    left.legend(fontsize=8)
    budgets = found.get("budget", {})
    for name, colour in zip(("phishing", "susy", "ijcnn1"), colours, strict=False):
        for learner, style in (("metron", "-"), ("arow", "--")):
            points = sorted(
                (int(row.rpartition(" ")[2]), fmean(best(cells[name]).values()))
                for row, cells in budgets.items()
                if row.startswith(f"{learner},") and name in cells
            )
            if points:
                label = f"{name}, {learner}"
                right.plot(*zip(*points, strict=True), style, color=colour, label=label)
    if budgets:
        right.set_xscale("log")
        right.set_yscale("log")
        right.set_xticks([50, 100, 200, 400, 800, 1500], ["50", "100", "200", "400", "800", "1500"])
        right.set_yticks([2, 3, 5, 10, 20, 30], ["2", "3", "5", "10", "20", "30"])
        right.minorticks_off()
        right.legend(fontsize=8)
    right.set_xlabel("budget B (20,000 rounds)")
    right.set_ylabel("AMR %")
    figure.savefig(picture, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("folder", type=Path)
    runs.add_argument("results", type=Path)
    runs.add_argument("--only", default=",".join(EXPERIMENTS))
    runs.add_argument("--data", default=",".join(data.name for data in DATASETS))
    runs.add_argument("--learners", default="", help="all unless given")
    runs.add_argument("--permutations", type=int, default=10)
    reports = commands.add_parser("report")
    reports.add_argument("results", type=Path)
    reports.add_argument("picture", type=Path, nargs="?")
    given = parser.parse_args()
    if given.command == "run":
        run(given)
    else:
        report(given.results, given.picture)


if __name__ == "__main__":
    main()
