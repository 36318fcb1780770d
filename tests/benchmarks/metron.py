"""metron, arow and ahpatron+ compared with the paper's learners: runs and tables.

    python tests/benchmarks/metron.py run FOLDER RESULTS.jsonl [--only table,budget,…]
                        [--data NAME,NAME] [--learners NAME,NAME] [--permutations N]
    python tests/benchmarks/metron.py report RESULTS.jsonl [--base LEARNER]

FOLDER holds NAME.svm.xz. `run` continues with what is missing from RESULTS.jsonl, permutation by
permutation, so it can be stopped and given parts of the work.

- table: whole files, the paper's budgets; metron; arow with the paper's σ and with 1/4 to 4 times
  the median distance between the first 1,000 rows; ahpatron+; ahpatron with ε 0.5 to 0.9; pomdr;
  nogd, bogd++ and fogd with steps 1, 10, 100 by √T
- curve: B = 50 to 3000 on whole files of phishing, SUSY, ijcnn1; three permutations, two from 1500
  on; docs/make_pictures.py draws it
- budget: metron and arow with B = 50 to 1500 on the same files
- flip: from half-way on, labels are their opposites; gradual: more and more of them in the middle
  half; swap: features change places half-way; sorted: all rows of one label come first;
  noise0.05, noise0.1, noise0.2: so many labels are flipped, and mistakes are counted against those
- sigma0.25 to sigma4: σ is that many times the paper's
- units: columns as they are, standardised, times powers of two, and times 10^U(-6, 6)

All but `table` and `curve` have 20,000 rounds and at most three permutations. Rows of the report
with several settings show the best mean, chosen in hindsight on these permutations; behind it is
the paired difference to the base with its standard error. Times are processor times of the run.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import numpy as np
from common import DATASETS, EPSILONS, NAMES, Dataset, one_pass, permutation, read, take
from paper import FIGURES
from scipy.spatial.distance import pdist

from ahpatron_cli.core import CsrRows
from ahpatron_cli.core.rows import compressed, sliced

FACTORS = (0.25, 0.5, 1.0, 2.0, 4.0)
STREAMS = ("flip", "gradual", "swap", "sorted", "noise0.05", "noise0.1", "noise0.2")
SIGMAS = ("sigma0.25", "sigma0.5", "sigma2", "sigma4")
EXPERIMENTS = ("table", "curve", "budget", *STREAMS, *SIGMAS, "units")
UNITS = ("raw", "standardised", "powers of two", "rescaled")
CURVES = ("phishing", "susy", "ijcnn1")
SHORT = 20_000
"""Rounds of all experiments but `table` and `curve`."""
Setting = tuple[str, Mapping[str, float | str]]


def gradients(rounds: int, same: Mapping[str, float | str], features: int) -> Iterator[Setting]:
    """The learners whose step is chosen in hindsight."""
    for step in (10.0**power / math.sqrt(rounds) for power in range(3)):
        yield "nogd", {**same, "step": step}
        yield "bogd++", {**same, "step": step}
        if features:
            yield "fogd", {**same, "step": step, "features": features}


def settings(experiment: str, data: Dataset, rounds: int) -> Iterator[Setting]:
    """Learners and parameters; `sigma` is a number, or a multiple of the median as text."""
    B, sigma = data.budget, data.sigma
    if experiment in SIGMAS:
        sigma *= float(experiment.removeprefix("sigma"))
    same: dict[str, float | str] = {"budget": B, "sigma": sigma}
    match experiment:
        case "table":
            yield from (("metron", {"budget": B}), ("arow", same), ("ahpatron+", same))
            yield from (("arow", {"budget": B, "sigma": f"{factor}"}) for factor in FACTORS)
            for epsilon in EPSILONS:
                yield "ahpatron", {**same, "epsilon": epsilon, "ridge": data.ridge}
            yield "pomdr", same
            yield from gradients(rounds, same, FIGURES[data.name]["fogd"].size)
        case "curve" if data.name in CURVES:
            for budget in (50, 100, 200, 400, 800, 1500, 3000):
                same["budget"] = budget
                yield from (("metron", {"budget": budget}), ("arow", {**same}))
                yield from (("ahpatron+", {**same}), ("pomdr", {**same}))
                yield from (("ahpatron", {**same, "epsilon": e}) for e in EPSILONS[::2])
                yield from gradients(rounds, {**same}, 0)
            for tolerance in (0.9, 0.5, 0.1) if data.name != "susy" else (0.9,):
                rule = {"tolerance": tolerance, "rule": "full", "sigma": sigma}
                yield "projectron++", rule
        case "budget" if data.name in CURVES:
            for budget in (50, 100, 200, 400, 800, 1500):
                yield "metron", {"budget": budget}
                yield "arow", {**same, "budget": budget}
        case "units":
            for units in UNITS:
                yield "metron", {"budget": B, "units": units}
                yield "arow", {"budget": B, "sigma": "1.0", "units": units}
        case _ if experiment in (*STREAMS, *SIGMAS):
            yield from (("metron", {"budget": B}), ("arow", same), ("ahpatron+", same))
            for epsilon in EPSILONS[::2]:
                for step in (0.125, 0.25, 0.5):
                    rest = {**same, "ridge": data.ridge, "epsilon": epsilon, "step": step}
                    yield "ahpatron", rest


def permutations(experiment: str, learner: str, params: Mapping[str, float | str]) -> int:
    """How many at most."""
    if experiment == "curve":
        return 1 if learner == "projectron++" else 3 if int(params["budget"]) < 1500 else 2
    return 10 if experiment == "table" else 3


def altered(experiment: str, rows: Any, labels: Any, repeat: int) -> tuple[Any, Any]:
    """The stream of an experiment; it depends on the permutation, not on the learner."""
    rounds, now = len(labels), np.arange(len(labels))
    draws = np.random.default_rng([17, repeat]).random(rounds)
    if experiment == "flip":
        labels = np.where(now >= rounds // 2, -labels, labels)
    elif experiment == "gradual":
        share = np.clip((now - rounds / 4) / (rounds / 2), 0, 1)
        labels = np.where(draws < share, -labels, labels)
    elif experiment.startswith("noise"):
        labels = np.where(draws < float(experiment.removeprefix("noise")), -labels, labels)
    elif experiment == "sorted":
        order = np.argsort(labels, kind="stable")
        rows, labels = take(rows, order), labels[order]
    elif experiment == "swap":
        dense = rows.dense() if isinstance(rows, CsrRows) else rows
        moved = dense[:, np.random.default_rng([18, repeat]).permutation(dense.shape[1])]
        swapped = np.where((now >= rounds // 2)[:, None], moved, dense)
        rows = compressed(swapped) if isinstance(rows, CsrRows) else swapped
    return rows, labels


def in_units(rows: Any, units: str, repeat: int) -> Any:
    """The rows with every column in other units."""
    if units == "raw":
        return rows
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    rng = np.random.default_rng([19, repeat])
    if units == "standardised":
        spread = dense.std(axis=0)
        return (dense - dense.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    factors = 2.0 ** rng.integers(-20, 21, dense.shape[1]).astype(float)
    if units == "rescaled":
        factors = 10.0 ** rng.uniform(-6, 6, dense.shape[1])
    return compressed(dense * factors) if isinstance(rows, CsrRows) else dense * factors


def median_distance(rows: Any) -> float:
    """The median distance between two of the first 1,000 rows that differ, to 4 digits."""
    first = sliced(rows, slice(0, 1000))
    distances = pdist(first.dense() if isinstance(first, CsrRows) else first)
    return float(f"{np.quantile(distances[distances > 0], 0.5, method='inverted_cdf'):.4g}")


def run_trial(trial: dict[str, Any], X: Any, y: Any) -> dict[str, Any]:
    """One line of the results."""
    experiment, repeat, params = trial["experiment"], trial["repeat"], dict(trial["params"])
    order = permutation(len(y), repeat)
    if experiment not in ("table", "curve"):
        order = order[:SHORT]
    rows, labels = altered(experiment, take(X, order), y[order], repeat)
    rows = in_units(rows, str(params.pop("units", "raw")), repeat)
    sigma = params.pop("sigma", 1.0)
    if isinstance(sigma, str):
        sigma = float(sigma) * median_distance(rows)
    player, spent = one_pass(trial["learner"], params, sigma, rows, labels, repeat=repeat)
    counts = {"rounds": len(labels), "mistakes": player.tally.mistakes, "seconds": spent}
    return trial | counts | {"support_size": player.size} | player.learner.statistics()


def run(given: argparse.Namespace) -> None:
    """Run what is missing."""
    names = ("experiment", "data", "learner", "params", "repeat")
    lines = given.results.read_text().splitlines() if given.results.exists() else []
    done = {json.dumps([json.loads(line)[name] for name in names]) for line in lines}
    for data in [data for data in DATASETS if data.name in given.data.split(",")]:
        X, y = read(given.folder / f"{data.name}.svm.xz")
        for repeat in range(given.permutations):
            for experiment in given.only.split(","):
                for learner, params in settings(experiment, data, len(y)):
                    if given.learners and learner not in given.learners.split(","):
                        continue
                    values = (experiment, data.name, learner, params, repeat)
                    most = permutations(experiment, learner, params)
                    if repeat < most and json.dumps(values) not in done:
                        line = json.dumps(run_trial(dict(zip(names, values, strict=True)), X, y))
                        with given.results.open("a") as results:
                            results.write(f"{line}\n")


# Report -------------------------------------------------------------------------------------------

Rates = dict[int, float]
"""AMR in percent by permutation."""


def row_of(experiment: str, learner: str, params: Mapping[str, Any]) -> str:
    """The row of the report that a setting belongs to; settings of a row compete."""
    if "units" in params:
        return f"{learner}, {params['units']}"
    if experiment in ("budget", "curve") and "budget" in params:
        return f"{learner}, B = {params['budget']}"
    if isinstance(params.get("sigma"), str):
        return "arow, best of 5 σ"
    return {"arow": "arow, paper's σ"}.get(learner, learner)


def best(group: Mapping[str, Rates]) -> Rates:
    """The setting with the lowest mean."""
    return min(group.values(), key=lambda rates: fmean(rates.values()))


def cell(rates: Rates, base: Rates | None) -> str:
    """The mean, its deviation, and the paired difference to the base."""
    text = f"{fmean(rates.values()):.2f}"
    if len(rates) > 1:
        text += f" ± {stdev(rates.values()):.2f}"
    pairs = [rates[repeat] - base[repeat] for repeat in rates.keys() & base] if base else []
    if base is rates or not pairs:
        return text
    error = f" ± {stdev(pairs) / math.sqrt(len(pairs)):.2f}" if len(pairs) > 1 else ""
    return f"{text} ({fmean(pairs):+.2f}{error})"


def print_table(title: str, rows: Mapping[str, Mapping[str, str]]) -> None:
    names = [data.name for data in DATASETS]
    print(f"\n## {title}\n\n| | {' | '.join(names)} |\n{'|---' * (len(names) + 1)}|")
    for row, cells in rows.items():
        print(f"| {row} |", " | ".join(cells.get(name, "") for name in names), "|")


def report(path: Path, base: str) -> None:
    """Tables in Markdown on standard output."""
    found: dict[str, Any] = {}
    times: dict[str, dict[str, float]] = defaultdict(dict)
    for trial in map(json.loads, path.read_text().splitlines()):
        params, experiment, name = trial["params"], trial["experiment"], trial["data"]
        rows = [row_of(experiment, trial["learner"], params)]
        if rows[0] == "arow, best of 5 σ" and float(params["sigma"]) == 1:
            rows.append("arow, σ auto")
        for row in rows:
            cells = found.setdefault(experiment, {}).setdefault(row, {})
            rates = cells.setdefault(name, {}).setdefault(json.dumps(params), {})
            rates[trial["repeat"]] = 100 * trial["mistakes"] / trial["rounds"]
        if experiment == "table":
            spent = 1e6 * trial["seconds"] / trial["rounds"]
            times[rows[0]][name] = min(spent, times[rows[0]].get(name, math.inf))
    for experiment, table in found.items():
        shown = {}
        for row, cells in table.items():
            rest = row.partition(", ")[2]
            same = f"{base}, {rest}" if f"{base}, {rest}" in table else base
            bases = table.get(same, table.get(f"{base}, paper's σ", {}))
            shown[row] = {
                name: cell(best(group), best(bases[name]) if name in bases else None)
                for name, group in cells.items()
            }
        print_table(f"{experiment}: AMR % (difference to {base})", shown)
    print_table(
        "µs per round", {r: {n: f"{t:.1f}" for n, t in c.items()} for r, c in times.items()}
    )


def main() -> None:
    parser = argparse.ArgumentParser()
    commands = parser.add_subparsers(dest="command", required=True)
    runs = commands.add_parser("run")
    runs.add_argument("folder", type=Path)
    runs.add_argument("results", type=Path)
    runs.add_argument("--only", default=",".join(EXPERIMENTS))
    runs.add_argument("--data", default=NAMES)
    runs.add_argument("--learners", default="", help="all unless given")
    runs.add_argument("--permutations", type=int, default=10)
    reports = commands.add_parser("report")
    reports.add_argument("results", type=Path)
    reports.add_argument("--base", default="metron")
    given = parser.parse_args()
    if given.command == "run":
        run(given)
    else:
        report(given.results, given.base)


if __name__ == "__main__":
    main()
