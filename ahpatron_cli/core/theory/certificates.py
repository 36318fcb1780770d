"""Certificates: what a learner's theorems guarantee on the very stream that it played."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ahpatron_cli.core.theory.comparators import Comparator
from ahpatron_cli.core.theory.theorems import Known, Outcome, Params, Theorem, theorems_of


class BrokenTheoremError(AssertionError):
    """A learner made more mistakes than its theorem allows: the learner or the bound is wrong."""


@dataclass(frozen=True)
class Certificate:
    """`count` is at most `bound`, by this theorem with this comparator."""

    theorem: Theorem
    count: int
    bound: float
    trivial: int
    """What the count could not exceed anyway."""
    comparator: Comparator

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing that was not clear without it."""
        return self.bound >= self.trivial


def certify(
    learner: str, params: Params, outcome: Outcome, comparators: Sequence[Comparator]
) -> Certificate | None:
    """The tightest bound of all theorems that apply; None where none does.

    Each theorem that applies is checked: a broken one raises a `BrokenTheoremError`.
    """
    applying = [one for one in theorems_of(learner) if not one.failing(params, outcome)]
    found = [_tightest(theorem, params, outcome, comparators) for theorem in applying]
    # of those that are equal but for rounding, as special cases are, the first
    return min(found, key=lambda one: round(one.bound, 6), default=None)


def _tightest(
    theorem: Theorem, params: Params, outcome: Outcome, comparators: Sequence[Comparator]
) -> Certificate:
    known = Known(params, outcome)
    radius = theorem.radius(known)
    bound, comparator = min(
        (
            (theorem.bound(known, one.loss, one.norm), one)
            for one in comparators
            if one.norm <= radius
        ),
        key=lambda pair: pair[0],
    )
    bound += 1e-9 * (outcome.rounds + abs(bound))  # the rounding of the formula itself
    count = outcome.mistakes if theorem.counts == "mistakes" else outcome.failures
    if not count <= bound:
        raise BrokenTheoremError(
            f"{theorem.title} is broken: {theorem.learner} has {count} {theorem.counts}, "
            f"the bound is {bound!r}; {comparator}, {outcome}, parameters {dict(params)}"
        )
    return Certificate(theorem, count, bound, theorem.trivial(outcome), comparator)
