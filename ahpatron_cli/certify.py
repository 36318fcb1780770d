"""`--certify` and `--theorem`: certificates of runs, and parameters that satisfy a theorem."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from ahpatron_cli.core.certificates import (
    THEOREMS,
    Certificate,
    Comparator,
    Theorem,
    certify,
    comparators,
    radii_of,
    theorems_of,
)
from ahpatron_cli.core.rows import Floats, Rows
from ahpatron_cli.data.dataset import Dataset
from ahpatron_cli.data.opening import stream
from ahpatron_cli.data.source import changed, open_source
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.number_text import assignment
from ahpatron_cli.records import DataRecord
from ahpatron_cli.runner import RunResult, Setup, check

_ALIGNMENT = "5"
"""The paper's theorem on kernel alignment; version 1.0 gave Theorem 6 this number."""


def satisfying(key: str, setups: Sequence[Setup]) -> list[Setup]:
    """The setups, with unset parameters chosen such that the theorem's conditions hold."""
    if key == _ALIGNMENT:
        problem = "Theorem 5 of the paper is about kernel alignment, not about a learner"
        hint = "--theorem 6 is the refined bound of ahpatron, which version 1.0 numbered 5"
        raise usage(problem, hint)
    theorems = {theorem.key: theorem for theorem in THEOREMS}
    theorem = theorems[one_of("theorem", key, theorems)]
    if not any(setup.learner in theorem.learners for setup in setups):
        learner = theorem.learners[0]
        about = f"is about {learner}, which is not among the chosen learners"
        raise usage(f"--theorem {key} {about}", f"add -l {learner}")
    chosen = []
    for setup in setups:
        if setup.learner in theorem.learners:
            setup = _satisfying(theorem, setup)
        chosen.append(setup)
    return chosen


def _satisfying(theorem: Theorem, setup: Setup) -> Setup:
    """The setup with the settings of the theorem; a usage error if the given ones contradict it."""
    given = setup.learner_params
    settings = theorem.settings(given)
    chosen = replace(setup, learner_params={**settings, **given})
    check(chosen)
    learner, _ = chosen.build()
    failing = theorem.failing(learner.params())
    if failing:
        problem = f"--theorem {theorem.key} requires {' and '.join(failing)}"
        raise usage(problem, "change or leave out what contradicts it")
    return chosen


def certified(
    dataset: Dataset,
    data: DataRecord,
    setups: Sequence[Setup],
    results: Sequence[RunResult],
    seed: int,
    asked: str | None = None,
) -> list[Certificate | tuple[str, ...]]:
    """Certificate of each run, or the reasons why it has none.

    `asked` is the value of `--theorem`: runs of its learners get the certificate of this theorem.
    """
    # all learners with theorems use the same kernel; L_T(f) does not depend on the order
    with_kernel = [setup for setup in setups if setup.kernel]
    first = with_kernel[0] if with_kernel else setups[0]
    _, kernel = first.build()
    radii: list[float] = []
    for result in results:
        radii += radii_of(result.record.learner, result.record.params)
    candidates: list[Comparator] = []
    if radii:
        again = partial(_again, dataset, data)
        candidates = comparators(again, data.rounds, kernel, radii=radii, seed=seed)
    found: list[Certificate | tuple[str, ...]] = []
    for result in results:
        certificate = certify(
            learner=result.record.learner,
            params=result.record.params,
            counts=result.counts,
            candidates=candidates,
            asked=asked,
        )
        found.append(certificate or tuple(_reasons(result, asked)))
    return found


def _again(dataset: Dataset, data: DataRecord) -> Iterable[tuple[Rows, Floats]]:
    """Read all examples again, from memory or from the file, which must not have changed."""
    if dataset.in_memory:
        for batch in dataset.batches():
            yield batch.rows, batch.labels
        return
    with open_source(dataset.name) as source:  # as a stream, in bounded memory
        again = stream(source, dataset.preparation)
        for batch in again.batches():
            for labelled, part in batch.runs():
                if labelled:
                    yield part.rows, part.labels
        if again.finish().record.sha256 != data.sha256:
            raise changed(dataset.name)


def _reasons(result: RunResult, asked: str | None) -> Iterable[str]:
    """Yield the conditions of theorems that fail, and the parameters that would satisfy them."""
    learner = result.record.learner
    if not theorems_of(learner):
        yield "no theorem covers it"
    for theorem in theorems_of(learner, asked):
        failing = theorem.failing(result.record.params, result.counts)
        remedy = _remedy(theorem, result)
        conditions = " and ".join(failing)
        yield f"{theorem.title} requires {conditions}{remedy}"


def _remedy(theorem: Theorem, result: RunResult) -> str:
    """What `--theorem` would change, as the end of a sentence; empty if that is not enough."""
    params = result.record.params
    kept = {}
    if "budget" in params:
        kept["budget"] = params["budget"]
    settings = theorem.settings(kept)
    if theorem.failing({**params, **settings}, result.counts):
        return ""
    changes = []
    for name, value in settings.items():
        if params[name] != value:
            changes.append(assignment(name, value))
    shown = ", ".join(changes)
    return f"; --theorem {theorem.key} sets {shown}"
