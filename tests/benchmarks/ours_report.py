"""The tables and the figure of what ours.py played.

    python tests/benchmarks/ours_report.py RESULTS.jsonl [FIGURE.svg]

AMR is in percent, mean ± standard deviation over the orders. Behind it is the difference to
arow in points, order by order, ± its standard error. `best` means: of the values played, the
one with the lowest mean, chosen in hindsight on these same orders.
"""

from __future__ import annotations

import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any

from paper import DATASETS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OURS = "arow"
WANTED = {
    **{"phishing": 4.75, "a9a": 15.65, "w8a": 1.85},
    **{"susy": 22.95, "ijcnn1": 1.35, "cod-rna": 10.75},
}
"""The AMR that arow must not exceed."""
TITLES = {
    "table": "the paper's budgets and σ",
    "flip": "labels flipped from half-way on",
    "gradual": "more and more labels flipped in the middle half",
    "swap": "features change places half-way",
    "sorted": "all rows of one label first",
    "noise0.05": "5 % of the labels flipped",
    "noise0.1": "10 % of the labels flipped",
    "noise0.2": "20 % of the labels flipped",
    "sigma0.25": "σ a quarter of the paper's",
    "sigma0.5": "σ half of the paper's",
    "sigma2": "σ twice the paper's",
    "sigma4": "σ four times the paper's",
}


@dataclass(frozen=True)
class Row:
    """One learner in one setting, on one file, in one experiment."""

    learner: str
    setting: str
    rates: Mapping[int, float]
    """AMR by order."""
    support: float | None
    seconds: float

    @property
    def mean(self) -> float:
        return fmean(self.rates.values())

    def text(self, ours: Row) -> str:
        """`7.25 ± 0.14 (+0.02 ± 0.03)`."""
        rates = list(self.rates.values())
        spread = f" ± {stdev(rates):.2f}" if len(rates) > 1 else ""
        difference, error = self.beside(ours)
        paired = "" if self is ours else f" ({difference:+.2f} ± {error:.2f})"
        return f"{self.mean:.2f}{spread}{paired}"

    def beside(self, ours: Row) -> tuple[float, float]:
        """The mean difference over the orders that both played, and its standard error."""
        both = [self.rates[order] - ours.rates[order] for order in self.rates.keys() & ours.rates]
        error = stdev(both) / math.sqrt(len(both)) if len(both) > 1 else math.nan
        return (fmean(both) if both else math.nan), error


def read(lines: Iterable[str]) -> dict[tuple[str, str, int | None], list[Row]]:
    """Rows by experiment, file and budget (of curves only)."""
    trials: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for line in lines:
        one = json.loads(line)
        experiment = "table" if one["experiment"] == "others" else one["experiment"]
        budget = one["params"].get("budget") if experiment == "curve" else None
        rest = {n: v for n, v in one["params"].items() if n in ("epsilon", "step", "tolerance")}
        setting = ", ".join(f"{name}={value:.3g}" for name, value in rest.items())
        trials[experiment, one["data"], budget, one["learner"], setting].append(one)
    rows = defaultdict(list)
    for (experiment, data, budget, learner, setting), runs in trials.items():
        rates = {run["repeat"]: 100 * run["mistakes"] / run["rounds"] for run in runs}
        kept = [run["support_size"] for run in runs if run["support_size"] is not None]
        rows[experiment, data, budget].append(
            Row(
                learner,
                setting,
                rates,
                fmean(kept) if kept else None,
                fmean(run["seconds"] for run in runs),
            )
        )
    return rows


def best(rows: Iterable[Row]) -> dict[str, Row]:
    """The best setting of each learner, among those with the most orders."""
    chosen: dict[str, Row] = {}
    for row in sorted(rows, key=lambda one: (-len(one.rates), one.mean)):
        chosen.setdefault(row.learner, row)
    return chosen


def tables(rows: Mapping[tuple[str, str, int | None], list[Row]]) -> Iterable[str]:
    names = [data.name for data in DATASETS]
    for experiment, title in TITLES.items():
        played = {n: rows.get((experiment, n, None), []) for n in names}
        here = [n for n, mine in played.items() if any(row.learner == OURS for row in mine)]
        if not here:
            continue
        yield f"\n{title}\n"
        yield "| | " + " | ".join(here) + " |"
        yield "|---" * (len(here) + 1) + "|"
        cells: dict[str, dict[str, str]] = defaultdict(dict)
        for name in here:
            mine = played[name]
            chosen = best(mine)
            ours = chosen[OURS]
            for learner, row in chosen.items():
                cells[learner if learner in (OURS, "ahpatron+") else f"{learner}, best"][name] = (
                    row.text(ours)
                )
            for row in mine:
                if row.learner == "ahpatron" and row.setting == "epsilon=0.5":
                    cells["ahpatron, ε = 0.5"][name] = row.text(ours)
        for learner, line in cells.items():
            yield f"| {learner} | " + " | ".join(line.get(name, "–") for name in here) + " |"
        if experiment == "table":
            limits = (f"{name} {WANTED[name]}" for name in here)
            yield f"arow is to be at most: {', '.join(limits)}"
    for name in names:
        budgets = sorted(b for e, d, b in rows if e == "curve" and d == name and b)
        if budgets:
            yield f"\n{name}: AMR by budget\n"
            learners = list(
                dict.fromkeys(r.learner for b in budgets for r in rows["curve", name, b])
            )
            yield "| | " + " | ".join(map(str, budgets)) + " |"
            yield "|---" * (len(budgets) + 1) + "|"
            for learner in learners:
                found = [best(rows["curve", name, b]).get(learner) for b in budgets]
                shown = (f"{row.mean:.2f}" if row else "–" for row in found)
                yield f"| {learner} | " + " | ".join(shown) + " |"
            for row in rows.get(("curve", name, None), []):
                yield f"{row.learner}, {row.setting}: {row.mean:.2f} with {row.support:.0f} kept"


def draw(rows: Mapping[tuple[str, str, int | None], list[Row]], target: Path) -> None:
    """Curves of AMR against B, and differences to arow on every file."""
    from matplotlib.figure import Figure

    from ahpatron_cli.output.plots.drawing import pens, picture, rule

    names = [data.name for data in DATASETS]
    ours = [d for (e, d, b), mine in rows.items() if e == "curve" and b and OURS in best(mine)]
    curves = [name for name in names if ours.count(name) > 1]
    learners = [OURS, "ahpatron+", "ahpatron", "pomdr", "nogd", "bogd++", "fogd", "projectron++"]
    looks = dict(zip(learners, pens(len(learners)), strict=True))

    def curve(axes: Axes, name: str) -> None:
        budgets = sorted(b for e, d, b in rows if e == "curve" and d == name and b)
        for learner in learners:
            found = {b: best(rows["curve", name, b]).get(learner) for b in budgets}
            points = [(b, row.mean) for b, row in found.items() if row]
            look = looks[learner]
            wide = 2.4 if learner in (OURS, "ahpatron+") else 1.2
            if points:
                axes.plot(*zip(*points, strict=True), color=look.colour, linewidth=wide, marker=".")
        for row in rows.get(("curve", name, None), []):
            axes.plot([row.support], [row.mean], "x", color=looks[row.learner].colour)
        lowest = min(row.mean for b in budgets for row in best(rows["curve", name, b]).values())
        axes.set_ylim(0.95 * lowest, 2 * lowest)  # what is worse by far is not worth the room
        axes.set_xscale("log")
        axes.set_xlim(40, 5000)
        axes.set_xticks([50, 200, 800, 3000], ["50", "200", "800", "3000"])
        axes.minorticks_off()
        axes.set_title(name, fontsize=10)
        axes.set_xlabel("budget B (projectron++: examples kept)", fontsize=8)
        rule(axes)

    def differences(axes: Axes) -> None:
        for place, name in enumerate(names):
            chosen = best(rows.get(("table", name, None), []))
            if OURS not in chosen:
                continue
            ours = chosen[OURS]
            for number, learner in enumerate(learners[1:]):
                if learner in chosen:
                    difference, error = chosen[learner].beside(ours)
                    axes.errorbar(
                        [place + 0.1 * (number - 2)],
                        [100 * difference / ours.mean],
                        yerr=[200 * error / ours.mean],
                        fmt="o",
                        markersize=4,
                        color=looks[learner].colour,
                    )
        axes.axhline(0, color=looks[OURS].colour, linewidth=2.4)
        axes.set_yscale("symlog", linthresh=10)
        axes.set_yticks([0, 5, 10, 50, 200], ["0", "+5", "+10", "+50", "+200"])
        axes.set_xticks(range(len(names)), names)
        axes.set_xlim(-0.5, len(names) - 0.5)
        axes.set_ylabel("more mistakes than arow, %", fontsize=8)
        axes.set_title(
            "the paper's budgets, each learner's best setting; bars are ± 2 se", fontsize=10
        )
        rule(axes)

    def whole() -> Figure:
        figure = Figure(figsize=(10, 6.4), layout="constrained")
        grid = figure.add_gridspec(2, max(len(curves), 1))
        for number, name in enumerate(curves):
            axes = figure.add_subplot(grid[0, number])
            curve(axes, name)
            if number == 0:
                axes.set_ylabel("AMR %", fontsize=8)
        differences(figure.add_subplot(grid[1, :]))
        handles = [
            figure.axes[0].plot([], [], color=looks[name].colour, label=name, linewidth=2)[0]
            for name in learners
        ]
        figure.legend(handles=handles, loc="outside lower center", ncols=len(learners), fontsize=8)
        return figure

    target.write_bytes(picture(whole, target.suffix.lstrip(".")))


def main() -> None:
    rows = read(Path(sys.argv[1]).read_text().splitlines())
    print("\n".join(tables(rows)))
    if len(sys.argv) > 2:
        draw(rows, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
