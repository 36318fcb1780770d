"""Which theorem is about which learner, under which conditions.

A theorem is data: the learner, the conditions on its parameters, the ball that comparators must be
in, the formula (in `bounds.py`), and what it counts. |M_T| are the mistakes (sign(0) = +1), |M'_T|
the rounds with y·f(x) <= 0. Every mistake has y·f(x) <= 0, so a bound on |M'_T| is one on |M_T|
too. The converse fails: a Perceptron that predicts +1 from f(x) = 0 and is right learns nothing
from it, and its bound says nothing of how often that happens. All kernels have κ(x, x) <= 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ahpatron_cli.core.engine import Player
from ahpatron_cli.core.learners import REGISTRY, Ahpatron
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.theory import bounds
from ahpatron_cli.core.theory.comparators import Comparator

Params: TypeAlias = Mapping[str, Value]

ZETA_ROUNDING = 1e-6
"""What the measured ζ may have lost: it is a root of a difference of squared norms."""


@dataclass(frozen=True)
class Outcome:
    """What a pass counted, as far as theorems speak of it."""

    rounds: int = 0
    mistakes: int = 0
    failures: int = 0
    margin_updates: int = 0
    halvings: int = 0
    zeta: float = 0.0
    """Measured ζ; 0 where nothing was halved."""
    margin_steps: float = 0.0
    """The sum of λ_t over N_T."""


def outcome_of(player: Player) -> Outcome:
    """The outcome of a pass that has been played."""
    tally, found = player.tally, player.learner.statistics()
    return Outcome(
        rounds=tally.rounds,
        mistakes=tally.mistakes,
        failures=tally.failures,
        margin_updates=tally.margin_updates,
        halvings=int(found.get("halvings") or 0),
        zeta=found.get("zeta") or 0.0,
        margin_steps=found.get("margin_steps") or 0.0,
    )


class Known:
    """A learner's parameters by name and what its pass counted, as numbers to calculate with."""

    def __init__(self, params: Params, outcome: Outcome) -> None:
        self.params = params
        self.outcome = outcome

    def __getitem__(self, name: str) -> float:
        return self.zeta if name == "zeta" else float(self.params[name])

    @property
    def zeta(self) -> float:
        """ζ such that `Σ ‖f_t - f̄_t‖ <= ζ·U·J`, rounding included."""
        return self.outcome.zeta + ZETA_ROUNDING if self.outcome.halvings else 0.0

    @property
    def ratio(self) -> float:
        """U/√B."""
        return self["radius"] / math.sqrt(self["budget"])

    @property
    def first_step(self) -> float:
        """λ_1 of Corollary 2, the largest: y·f(x) <= 0 in the first round, where f = 0."""
        return self["radius"] / math.hypot(self["radius"], 1.0)


@dataclass(frozen=True)
class Condition:
    """What a theorem wants; `names` are the parameters that it speaks of."""

    text: str
    names: tuple[str, ...]
    holds: Callable[[Known], bool]

    def complaint(self, learner: str, known: Known) -> str:
        """The condition, and the values that fail it: `λ < 2 (here λ = 3)`."""
        specs = REGISTRY[learner].specs()
        shown = []
        for name in self.names:
            value = known.zeta if name == "zeta" else known.params[name]
            symbol = "ζ" if name == "zeta" else specs[name].symbol
            shown.append(f"{symbol} = {value if isinstance(value, str) else format(value, '.6g')}")
        return f"{self.text} (here {', '.join(shown)})"


@dataclass(frozen=True)
class Theorem:
    """A mistake bound of one learner."""

    key: str
    """What `--theorem` calls it."""
    title: str
    learner: str
    counts: Literal["mistakes", "failures"]
    """What is bounded: |M_T| or |M'_T|."""
    bound: Callable[[Known, float, float], float]
    """From what is known, L_T(f) and ‖f‖."""
    conditions: tuple[Condition, ...] = ()
    radius: Callable[[Known], float] = lambda known: math.inf
    """Comparators must not be longer than this."""
    settings: Callable[[Params], Params] = lambda given: {}
    """Parameters that meet the conditions, chosen to go with those that are given."""
    compositions: tuple[str, ...] = ()
    """Learners that are this one with other defaults: the theorem is about them too."""

    def about(self, learner: str) -> bool:
        """Whether it is a theorem about this learner, given the right parameters."""
        return learner == self.learner or learner in self.compositions

    def failing(self, params: Params, outcome: Outcome | None = None) -> list[str]:
        """The conditions that fail; before a pass, those that no outcome could mend."""
        known = Known(params, outcome or Outcome())
        return [
            condition.complaint(self.learner, known)
            for condition in self.conditions
            if not condition.holds(known)
        ]

    def trivial(self, outcome: Outcome) -> int:
        """What the count cannot exceed anyway: no round of M'_T is in N_T."""
        spent = outcome.margin_updates if self.counts == "failures" else 0
        return outcome.rounds - spent


# The theorems: 1 to 5 with their corollaries, and the Forgetron's --------------------------------


def _near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9)


_CONSTANT = Condition(
    "a constant λ_t", ("schedule",), lambda known: known.params["schedule"] == "constant"
)

_HALVES = Condition(
    "half of S to stay", ("selection",), lambda known: known.params["selection"] != "nearest"
)


def _avp_any_step(given: Params) -> Params:
    """λ = 1/4, whose bounds are often the smallest; ε above the middle of λ/2 and 1."""
    step = float(given.get("step", 1 / 4))
    return {"step": step, "epsilon": max(0.75, 0.5 + step / 4), "schedule": "constant"}


def _ahpatron(step: float, rescale: Value) -> Callable[[Params], Params]:
    """`U = √B/4` and `ε = 0.9`, or what a given ε allows; `λ = step·U/√B`."""

    def settings(given: Params) -> Params:
        root = math.sqrt(float(given.get("budget", Ahpatron.budget)))
        epsilon = float(given.get("epsilon", 0.9))
        radius = float(given.get("radius", root * min(1 / 4, 0.3 * epsilon)))
        return {
            "epsilon": epsilon,
            "radius": radius,
            "step": step * radius / root,
            "schedule": "constant",
            "selection": "magnitude",
            "rescale": rescale,
        }

    return settings


THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        "1",
        "Theorem 1",
        "perceptron",
        "mistakes",
        lambda _, loss, norm: bounds.perceptron(loss, norm),
    ),
    Theorem(
        "2",
        "Theorem 2",
        "perceptron",
        "mistakes",
        lambda _, loss, norm: bounds.perceptron_root(loss, norm),
    ),
    Theorem(
        "corollary-1",
        "Corollary 1",
        "avp",
        "failures",
        lambda known, loss, norm: bounds.avp_constant(
            loss, norm, known["epsilon"], known.outcome.margin_updates
        ),
        (
            _CONSTANT,
            Condition("λ = 1", ("step",), lambda known: _near(known["step"], 1.0)),
            Condition("U = ∞", ("radius",), lambda known: math.isinf(known["radius"])),
            Condition("1/2 < ε < 1", ("epsilon",), lambda known: 1 / 2 < known["epsilon"] < 1),
        ),
        settings=lambda given: {
            "epsilon": 0.75,
            "radius": math.inf,
            "step": 1.0,
            "schedule": "constant",
        },
    ),
    Theorem(
        "corollary-2",
        "Corollary 2",
        "avp",
        "failures",
        lambda known, loss, _: bounds.avp_adaptive(
            loss,
            known["radius"],
            known.outcome.margin_steps / 2 - known["epsilon"] * known.outcome.margin_updates,
        ),
        (
            Condition(
                "an adaptive λ_t",
                ("schedule",),
                lambda known: known.params["schedule"] == "adaptive",
            ),
            Condition("λ = 1", ("step",), lambda known: _near(known["step"], 1.0)),
            Condition("U < ∞", ("radius",), lambda known: math.isfinite(known["radius"])),
            Condition(
                "U/(2√(U² + 1)) < ε < 1",
                ("radius", "epsilon"),
                lambda known: known.first_step / 2 < known["epsilon"] < 1,
            ),
        ),
        radius=lambda known: known["radius"],
        settings=lambda given: {"radius": 5.0, "step": 1.0, "schedule": "adaptive"},
    ),
    Theorem(
        "3",
        "Theorem 3",
        "avp",
        "failures",
        lambda known, loss, norm: bounds.avp_step(
            loss, norm, known["step"], known["epsilon"], known.outcome.margin_updates
        ),
        (
            _CONSTANT,
            Condition("λ < 2", ("step",), lambda known: known["step"] < 2),
            Condition(
                "λ/2 < ε < 1",
                ("step", "epsilon"),
                lambda known: known["step"] / 2 < known["epsilon"] < 1,
            ),
        ),
        radius=lambda known: known["radius"],
        settings=_avp_any_step,
    ),
    Theorem(
        "4",
        "Theorem 4",
        "ahpatron",
        "failures",
        lambda known, loss, norm: bounds.ahpatron(
            loss,
            norm,
            int(known["budget"]),
            known["radius"],
            known["epsilon"],
            known.outcome.margin_updates,
        ),
        (
            Condition(
                "c_t = 0.6",
                ("rescale",),
                lambda known: known.params["rescale"] != "keep" and _near(known["rescale"], 0.6),
            ),
            _CONSTANT,
            _HALVES,
            Condition(
                "λ = √2·U/√B",
                ("step", "radius", "budget"),
                lambda known: _near(known["step"], math.sqrt(2) * known.ratio),
            ),
            Condition("B >= 50", ("budget",), lambda known: known["budget"] >= 50),
            Condition("U <= √B/4", ("radius", "budget"), lambda known: known.ratio <= 1 / 4),
            Condition(
                "3U/√B < ε < 1",
                ("radius", "budget", "epsilon"),
                lambda known: 3 * known.ratio < known["epsilon"] < 1,
            ),
        ),
        radius=lambda known: known["radius"],
        settings=_ahpatron(math.sqrt(2), 0.6),
        compositions=("ahpatron+",),
    ),
    Theorem(
        "5",
        "Theorem 5",
        "ahpatron",
        "failures",
        lambda known, loss, norm: bounds.ahpatron_refined(
            loss,
            norm,
            int(known["budget"]),
            known["radius"],
            known["epsilon"],
            known.outcome.margin_updates,
            known.zeta,
        ),
        (
            Condition(
                "c_t = ‖f_t‖/U", ("rescale",), lambda known: known.params["rescale"] == "keep"
            ),
            _CONSTANT,
            _HALVES,
            Condition(
                "λ = U/(2√B)",
                ("step", "radius", "budget"),
                lambda known: _near(known["step"], known.ratio / 2),
            ),
            Condition("B >= 16", ("budget",), lambda known: known["budget"] >= 16),
            Condition(
                "(1/4 + 9ζ/2)·U/√B < ε < 1",
                ("zeta", "radius", "budget", "epsilon"),
                lambda known: (
                    bounds.refined_share(int(known["budget"]), known["radius"], known.zeta)
                    < known["epsilon"]
                    < 1
                ),
            ),
        ),
        radius=lambda known: known["radius"],
        settings=_ahpatron(1 / 2, "keep"),
        compositions=("ahpatron+",),
    ),
    Theorem(
        "forgetron",
        "Dekel et al. 2008",
        "forgetron",
        "mistakes",
        lambda _, loss, norm: bounds.forgetron(loss, norm),
        (Condition("B >= 84", ("budget",), lambda known: known["budget"] >= 84),),
        radius=lambda known: bounds.forgetron_radius(int(known["budget"])),
    ),
)


def theorems_of(learner: str) -> list[Theorem]:
    """All theorems about a learner."""
    return [theorem for theorem in THEOREMS if theorem.about(learner)]


def radii_of(learner: str, params: Params) -> list[float]:
    """The balls that the learner's theorems have: comparators of these lengths are wanted."""
    known = Known(params, Outcome())
    return [theorem.radius(known) for theorem in theorems_of(learner)]


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
