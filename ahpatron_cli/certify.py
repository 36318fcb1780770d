"""`--certify` and `--theorem`: certificates of runs, and parameters that satisfy a theorem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ahpatron_cli.core.certificates import (
    THEOREMS,
    Certificate,
    certify,
    comparators,
    radii_of,
    theorems_of,
)
from ahpatron_cli.core.rows import Floats, Rows
from ahpatron_cli.data.dataset import Dataset, DataSummary, stream
from ahpatron_cli.data.source import changed, open_source
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.numbers import assignment
from ahpatron_cli.runner import LearnerSpec, RunResult, check

_ALIGNMENT = "5"
"""The paper's theorem on kernel alignment; version 1.0 gave Theorem 6 this number."""


def meet(key: str, setups: Sequence[LearnerSpec]) -> list[LearnerSpec]:
    """The setups, with unset parameters chosen such that the theorem's conditions hold."""
    theorems = {theorem.key: theorem for theorem in THEOREMS}
    if key == _ALIGNMENT:
        problem = "Theorem 5 of the paper is about kernel alignment, not about a learner"
        hint = "--theorem 6 is the refined bound of ahpatron, which version 1.0 numbered 5"
        raise usage(problem, hint)
    theorem = theorems[one_of("theorem", key, theorems)]
    if not any(setup.learner in theorem.learners for setup in setups):
        learner = theorem.learners[0]
        about = f"is about {learner}, which is not among the chosen learners"
        raise usage(f"--theorem {key} {about}", f"add -l {learner}")
    chosen = list(setups)
    for number, setup in enumerate(setups):
        if setup.learner in theorem.learners:
            given = setup.learner_params
            met = replace(setup, learner_params={**theorem.settings(given), **given})
            check(met)
            if failing := theorem.failing(met.build()[0].params()):
                problem = f"--theorem {theorem.key} requires {' and '.join(failing)}"
                raise usage(problem, "change or leave out what contradicts it")
            chosen[number] = met
    return chosen


def certified(
    dataset: Dataset,
    facts: DataSummary,
    setups: Sequence[LearnerSpec],
    results: Sequence[RunResult],
    seed: int,
    asked: str | None = None,
) -> list[Certificate | tuple[str, ...]]:
    """Certificate of each run, or the reasons why it has none.

    `asked` is the value of `--theorem`: runs of its learners get the certificate of this theorem.
    """
    # all learners with theorems use the same kernel; L_T(f) does not depend on the order
    kernel = next((setup for setup in setups if setup.kernel), setups[0]).build()[1]
    runs = [one.record for one in results]
    radii = [radius for run in runs for radius in radii_of(run.learner, run.params)]
    again = partial(_again, dataset, facts)
    found = comparators(again, facts.rounds, kernel, radii, seed) if radii else []
    return [
        certify(one.record.learner, one.record.params, one.counts, found, asked=asked)
        or tuple(_reasons(one, asked))
        for one in results
    ]


def _again(dataset: Dataset, facts: DataSummary) -> Iterable[tuple[Rows, Floats]]:
    """Read all examples again, from memory or from the file, which must not have changed."""
    if dataset.in_memory:
        yield from ((batch.rows, batch.labels) for batch in dataset.batches())
        return
    with open_source(dataset.name) as source:  # as a stream, in bounded memory
        again = stream(source, dataset.preparation)
        for batch in again.batches():
            yield from ((part.rows, part.labels) for labelled, part in batch.runs() if labelled)
        if again.facts().sha256 != facts.sha256:
            raise changed(dataset.name)


def _reasons(result: RunResult, asked: str | None) -> Iterable[str]:
    """Yield the conditions of theorems that fail, and the parameters that would satisfy them."""
    learner, params = result.record.learner, result.record.params
    if not theorems_of(learner):
        yield "no theorem covers it"
    for theorem in theorems_of(learner, asked):
        failing = theorem.failing(params, result.counts)
        settings = theorem.settings({"budget": params["budget"]} if "budget" in params else {})
        met = not theorem.failing({**params, **settings}, result.counts)
        changes = [
            assignment(name, value) for name, value in settings.items() if params[name] != value
        ]
        remedy = f"; --theorem {theorem.key} sets {', '.join(changes)}" if met else ""
        yield f"{theorem.title} requires {' and '.join(failing)}{remedy}"
