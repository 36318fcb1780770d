"""Made-up sweeps that look like real ones, folded into findings."""

import math
import random
from collections.abc import Mapping, Sequence
from typing import Any

from ahpatron_cli.records import ParamValue
from ahpatron_cli.sweep.summary import Outcome, SweepSummary, TrialData, summarise_trials
from support.trials import make_run

BUDGETS = (50, 100, 200, 400, 800)
FIVE = ("ahpatron", "pomdr", "nogd", "bogd++", "perceptron")
FOURTEEN = (
    *FIVE,
    *("avp", "alma2", "forgetron", "rbp", "projectron", "projectron++", "bogd", "fogd", "skegd"),
)
WITHOUT_BUDGET = frozenset({"perceptron", "avp", "alma2", "projectron", "projectron++"})
WITH_EPSILON = frozenset({"ahpatron", "avp"})
ORIGIN = {"version": "0.2.0", "numpy": "2.1.0", "blas": "openblas", "command": "ahpatron sweep a"}


def trial(
    learner: str = "ahpatron",
    params: dict[str, ParamValue] | None = None,
    *,
    path: str = "a.svm",
    repeat: int = 0,
    rate: float = 0.1,
    seconds: float = 0.5,
    error: str | None = None,
    texts: Mapping[str, str] | None = None,
    **data: Any,
) -> Outcome:
    """One trial of 30,000 rounds; with `error` a failed one."""
    params = {"kernel": "gaussian", "sigma": 1.0} | (params or {})
    rounds = 30_000
    mistakes = round(rate * rounds)
    run = make_run(
        learner,
        params=params,
        repeat=repeat,
        rounds=rounds,
        mistakes=mistakes,
        margin_updates=2 * mistakes,
        support_size=int(params.get("budget", mistakes)),
        seconds=seconds,
    )
    return Outcome(
        f"{path} {learner} {params} {repeat}",
        TrialData(path, rounds, 123, (-1, 1), path.encode().hex(), **data),
        learner,
        params,
        seed=0,
        repeat=repeat,
        run=None if error else run,
        error=error,
        texts=texts or {},
    )


def sweep(
    learners: Sequence[str] = FIVE,
    budgets: Sequence[int] = BUDGETS,
    epsilons: Sequence[float] = (0.5,),
    *,
    paths: Sequence[str] = ("a9a.svm",),
    repeats: int = 3,
    failed: Sequence[Outcome] = (),
) -> SweepSummary:
    """Larger budgets are better and slower; radius follows from the budget, as for ahpatron."""
    rng = random.Random(7)
    trials = []
    for path in paths:
        for number, learner in enumerate(learners):
            for budget in [None] if learner in WITHOUT_BUDGET else budgets:
                for epsilon in epsilons if learner in WITH_EPSILON else [None]:
                    params: dict[str, ParamValue] = {}
                    rate = 0.05 + 0.006 * number
                    if budget is not None:
                        params |= {"budget": budget, "radius": math.sqrt(budget) / 2}
                        rate += 0.35 / math.sqrt(budget)
                    if epsilon is not None:
                        params["epsilon"] = epsilon
                        rate += 0.1 * (epsilon - 0.5) ** 2
                    seconds = (1 + 0.3 * number) * (0.02 + 0.0025 * (budget or 900))
                    trials += [
                        trial(
                            learner,
                            params,
                            path=path,
                            repeat=repeat,
                            rate=rate + rng.gauss(0, 0.0015),
                            seconds=seconds * rng.uniform(0.9, 1.1),
                        )
                        for repeat in range(repeats)
                    ]
    return summarise_trials([*trials, *failed], [ORIGIN])
