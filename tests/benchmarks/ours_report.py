"""The tables of what ours.py played; `docs/make_pictures.py budget RESULTS.jsonl` draws it.

    python tests/benchmarks/ours_report.py RESULTS.jsonl

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
    pass

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


def compact(rows: Mapping[tuple[str, str, int | None], list[Row]]) -> Iterable[str]:
    """A line per experiment: arow's AMR, and how much better (-) or worse (+) than the best other.

    The others are ahpatron+ and ahpatron with its best setting in hindsight; ± standard errors.
    """
    names = [data.name for data in DATASETS]
    yield "\n| | " + " | ".join(names) + " |"
    yield "|---" * (len(names) + 1) + "|"
    for experiment, title in TITLES.items():
        cells = []
        for name in names:
            chosen = best(rows.get((experiment, name, None), []))
            if OURS in chosen:
                others = [chosen[one] for one in ("ahpatron+", "ahpatron") if one in chosen]
                rival = min(others, key=lambda row: row.mean)
                difference, error = chosen[OURS].beside(rival)
                cells.append(f"{chosen[OURS].mean:.2f} ({difference:+.2f} ± {error:.2f})")
        if len(cells) == len(names):
            yield f"| {title} | " + " | ".join(cells) + " |"


def main() -> None:
    rows = read(Path(sys.argv[1]).read_text().splitlines())
    print("\n".join([*tables(rows), *compact(rows)]))


if __name__ == "__main__":
    main()
