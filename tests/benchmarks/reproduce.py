"""Ahpatron on the paper's six data sets with the paper's settings, beside the paper's figures.

    python tests/benchmarks/reproduce.py FOLDER [JOBS [NAME...]]

FOLDER holds NAME.svm.xz. 10 random permutations (seed 0); of ε in 0.5..0.9 the one with the lowest
mean AMR is shown, as in the paper; each with `selection=magnitude` (the paper's) and `greedy`.
"""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from pathlib import Path
from statistics import fmean, stdev

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

from paper import DATASETS, EPSILONS

from ahpatron_cli.data.dataset import Preparation, load  # threads are pinned
from ahpatron_cli.data.source import open_source
from ahpatron_cli.records import RunRecord
from ahpatron_cli.runner import LearnerSpec, RunOptions, run_repeats

PERMUTATIONS = RunOptions(repeats=10, seed=0, shuffle=True)


def main() -> None:
    folder, names = Path(sys.argv[1]), sys.argv[3:]
    jobs = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    print("data set  selection    ε   AMR %          paper   differs   |N_T|   paper  differs  ζ̂")
    for data in DATASETS:
        if names and data.name not in names:
            continue
        with open_source(str(folder / f"{data.name}.svm.xz")) as source:
            loaded = load(source, Preparation())
        for selection in ("magnitude", "greedy"):
            params = {"budget": data.budget, "ridge": data.ridge, "selection": selection}
            setups = [
                LearnerSpec("ahpatron", {**params, "epsilon": e}, "gaussian", {"sigma": data.sigma})
                for e in EPSILONS
            ]
            runs: dict[object, list[RunRecord]] = defaultdict(list)
            for result in run_repeats(loaded, setups, PERMUTATIONS, jobs=jobs):
                runs[result.record.params["epsilon"]].append(result.record)
            best = min(runs, key=lambda e: fmean(run.mistakes for run in runs[e]))
            rates = [100 * run.mistake_rate for run in runs[best]]
            updates = fmean(run.margin_updates for run in runs[best])
            zeta = fmean(run.zeta or 0.0 for run in runs[best])
            print(
                f"{data.name:9} {selection:9} {best:4} {fmean(rates):6.2f} ± {stdev(rates):.2f} "
                f"{data.amr:9.2f} {fmean(rates) - data.amr:+9.2f} {updates:9.0f} "
                f"{data.margin_updates:7} {updates / data.margin_updates - 1:+8.1%} {zeta:.3f}",
                flush=True,
            )
            print(
                "          of which "
                + "; ".join(
                    f"ε {e}: {100 * fmean(run.mistake_rate for run in mine):.2f} %, |N_T| "
                    f"{fmean(run.margin_updates for run in mine):.0f}"
                    for e, mine in runs.items()
                ),
                flush=True,
            )


if __name__ == "__main__":
    main()
