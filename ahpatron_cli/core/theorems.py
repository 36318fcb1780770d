"""Mistake bounds, which learner each is about and under which conditions, and certificates.

A bound is evaluated on what a pass counted and a comparator: any f in the space (in the ball of
radius U, where a theorem has one), with `loss` its L_T(f), the sum of hinge losses over the stream,
and `norm` its ‖f‖. N is |N_T|.

A theorem is data: the learner, the conditions on its parameters, the ball that comparators must be
in, the bound, and what it counts. |M_T| are the mistakes (sign(0) = +1), |M'_T|
the rounds with y·f(x) <= 0. Every mistake has y·f(x) <= 0, so a bound on |M'_T| is one on |M_T|
too. The converse fails: a Perceptron that predicts +1 from f(x) = 0 and is right learns nothing
from it, and its bound says nothing of how often that happens. All kernels have κ(x, x) <= 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from inspect import signature
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

from ahpatron_cli.core.comparators import Comparator
from ahpatron_cli.core.learners import REGISTRY, Ahpatron
from ahpatron_cli.core.parameters import Value


def perceptron_bound(loss: float, norm: float) -> float:
    """Theorem 1: `|M_T| <= 2·L_T(f) + ‖f‖²`."""
    return 2 * loss + norm**2


def perceptron_root_bound(loss: float, norm: float) -> float:
    """Theorem 2: `|M_T| <= L_T(f) + ‖f‖·√L_T(f) + ‖f‖²`."""
    return loss + norm * math.sqrt(loss) + norm**2


def avp_step_bound(
    loss: float, norm: float, step: float, epsilon: float, margin_updates: int
) -> float:
    """Theorem 3 with a constant λ < 2 (λ/2 < ε < 1), solved for |M'_T|.

    The sum of δ_t/(2λ) telescopes to at most ‖f‖²/(2λ), so
    `(1 - λ/2)·|M'_T| <= L_T(f) + ‖f‖²/(2λ) + (λ/2 - ε)·|N_T|`; λ = 1 gives Corollary 1.
    """
    right = loss + norm**2 / (2 * step) + (step / 2 - epsilon) * margin_updates
    return right / (1 - step / 2)


def avp_constant_bound(loss: float, norm: float, epsilon: float, margin_updates: int) -> float:
    """Corollary 1 (λ = 1, U = ∞, 1/2 < ε < 1): `|M'_T| <= 2·L_T(f) + ‖f‖² + (1 - 2ε)·|N_T|`."""
    return 2 * loss + norm**2 + (1 - 2 * epsilon) * margin_updates


def avp_adaptive_bound(
    loss: float, radius: float, epsilon: float, margin_steps: float, margin_updates: int
) -> float:
    """Corollary 2 (`λ_t = U/√(U² + M'_t)`), with Δ_T = Σ_{t∈N_T}(λ_t/2 - ε):

    `|M'_T| <= max(L + 2U² + Δ_T, 0) + 9U² + 3U·√max(L + 2U² + Δ_T, 0)`.
    """
    gain = margin_steps / 2 - epsilon * margin_updates
    base = max(loss + 2 * radius**2 + gain, 0.0)
    return base + 9 * radius**2 + 3 * radius * math.sqrt(base)


def ahpatron_bound(
    loss: float, norm: float, budget: int, radius: float, epsilon: float, margin_updates: int
) -> float:
    """Theorem 4 (c_t = 0.6, λ = √2·U/√B, B >= 50, U <= √B/4, 3U/√B < ε < 1):

    `|M'_T| <= L + max(12U/√B·L + Δ̄, 0.9U/√B·L + √B/(2U)·‖f‖² + Δ_)`.
    """
    ratio = radius / math.sqrt(budget)
    upper = (3 * ratio - epsilon) / (1 - 3 * ratio) * margin_updates
    lower = (ratio / math.sqrt(2) - epsilon) / (1 - ratio / math.sqrt(2)) * margin_updates
    return loss + max(12 * ratio * loss + upper, 0.9 * ratio * loss + norm**2 / (2 * ratio) + lower)


def refined_share(budget: int, radius: float, zeta: float) -> float:
    """`a = (1/4 + 9ζ/2)·U/√B`, which Theorem 5 wants below ε."""
    return (1 / 4 + 9 / 2 * zeta) * radius / math.sqrt(budget)


def ahpatron_refined_bound(
    loss: float,
    norm: float,
    budget: int,
    radius: float,
    epsilon: float,
    margin_updates: int,
    zeta: float,
) -> float:
    """Theorem 5 (c_t = ‖f_t‖/U, λ = U/(2√B), B >= 16, a < ε < 1) with the γ that suits it best.

    With `a = (1/4 + 9ζ/2)·U/√B`, `U <= (1-γ)√B/(1/4 + 9ζ/2)` is `γ <= 1 - a`, and the theorem says
    `|M'_T| <= L + (a/γ)·L + ((1-2ζ)/γ)·‖f‖²·√B/U + (a - ε)/(1 - a)·|N_T|`.

    γ is a parameter of the analysis alone. γ = 1 - a is the smallest bound where ζ <= 1/2. Where
    ζ > 1/2 it is the only one that the proof gives: it divides `(1-2ζ)·‖f‖²` by 1 - a, and putting
    γ there makes a negative term more negative. At γ = 1 - a statement and proof agree. Without
    halvings the proof's other case is this formula at ζ = 0, and not at any ζ.
    """
    share = refined_share(budget, radius, zeta)
    gamma = 1 - share
    spread = (1 - 2 * zeta) * norm**2 * math.sqrt(budget) / radius
    return loss + share / gamma * loss + spread / gamma + (share - epsilon) / gamma * margin_updates


def forgetron_bound(loss: float, norm: float) -> float:
    """Dekel et al. (2008), for `‖f‖ <= √(B+1)/(4·√ln(B+1))`: `|M_T| <= 4·L_T(f) + 2·‖f‖²`."""
    return 4 * loss + 2 * norm**2


def forgetron_radius(budget: int) -> float:
    """The norm up to which the Forgetron's comparators may go."""
    return math.sqrt(budget + 1) / (4 * math.sqrt(math.log(budget + 1)))


Params: TypeAlias = Mapping[str, Value]
Counts: TypeAlias = Mapping[str, Any]
"""What a pass counted, by name: its tally, and the statistics of its learner."""

ZETA_ROUNDING = 1e-6
"""What the measured ζ may have lost: it is a root of a difference of squared norms."""


def _known(params: Params, counts: Counts) -> dict[str, Any]:
    """A learner's parameters and what its pass counted, by name, to calculate with.

    ζ is such that `Σ ‖f_t - f̄_t‖ <= ζ·U·J`, rounding included; 0 where nothing was halved.
    """
    numbers = {name: math.inf if value == "inf" else value for name, value in params.items()}
    zeta = counts["zeta"] + ZETA_ROUNDING if counts.get("halvings") else 0.0
    return {**counts, **numbers, "zeta": zeta}


@cache
def _names(formula: Callable[..., Any]) -> tuple[str, ...]:
    """What a formula speaks of: the names of its parameters."""
    return tuple(signature(formula).parameters)


def _value(formula: Callable[..., Any], known: Mapping[str, Any]) -> Any:
    return formula(*(known[name] for name in _names(formula)))


@dataclass(frozen=True)
class Theorem:
    """A mistake bound of one learner."""

    key: str
    """What `--theorem` calls it."""
    title: str
    learner: str
    bound: Callable[..., float]
    """A formula of L_T(f) `loss`, ‖f‖ `norm`, and whatever is known: parameters and counts."""
    counts: Literal["mistakes", "failures"] = "failures"
    """What is bounded: |M_T| or |M'_T|."""
    conditions: Mapping[str, Callable[..., bool]] = field(default_factory=dict)
    """Conditions by their text; the arguments of a function are the parameters that it is about."""
    radius: Callable[..., float] = lambda: math.inf
    """Comparators must not be longer than this, by parameters."""
    settings: Callable[[Params], Params] = lambda given: {}
    """Parameters that meet the conditions, chosen to go with those that are given."""
    compositions: tuple[str, ...] = ()
    """Learners that are this one with other defaults: the theorem is about them too."""

    def about(self, learner: str) -> bool:
        """Whether it is a theorem about this learner, given the right parameters."""
        return learner == self.learner or learner in self.compositions

    def failing(self, params: Params, counts: Counts = MappingProxyType({})) -> list[str]:
        """The conditions that fail, with the values that fail them: `λ < 2 (here λ = 3)`.

        Before a pass, these are the ones that no outcome could mend.
        """
        known, specs = _known(params, counts), REGISTRY[self.learner].specs()

        def shown(name: str) -> str:
            value, symbol = known[name], "ζ" if name == "zeta" else specs[name].symbol
            return f"{symbol} = {value if isinstance(value, str) else format(value, '.6g')}"

        return [
            f"{text} (here {', '.join(map(shown, _names(holds)))})"
            for text, holds in self.conditions.items()
            if not _value(holds, known)
        ]


# The theorems: 1 to 5 with their corollaries, and the Forgetron's --------------------------------


def _near(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=1e-9)


def _ratio(radius: float, budget: int) -> float:
    """U/√B."""
    return radius / math.sqrt(budget)


def _radius(radius: float) -> float:
    """U."""
    return radius


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
    Theorem("1", "Theorem 1", "perceptron", perceptron_bound, "mistakes"),
    Theorem("2", "Theorem 2", "perceptron", perceptron_root_bound, "mistakes"),
    Theorem(
        "corollary-1",
        "Corollary 1",
        "avp",
        avp_constant_bound,
        conditions={
            "a constant λ_t": lambda schedule: schedule == "constant",
            "λ = 1": lambda step: _near(step, 1.0),
            "U = ∞": lambda radius: math.isinf(radius),
            "1/2 < ε < 1": lambda epsilon: 1 / 2 < epsilon < 1,
        },
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
        avp_adaptive_bound,
        conditions={
            "an adaptive λ_t": lambda schedule: schedule == "adaptive",
            "λ = 1": lambda step: _near(step, 1.0),
            "U < ∞": lambda radius: math.isfinite(radius),
            # λ_1 is the largest: y·f(x) <= 0 in the first round, where f = 0
            "U/(2√(U² + 1)) < ε < 1": lambda radius, epsilon: (
                radius / math.hypot(radius, 1.0) / 2 < epsilon < 1
            ),
        },
        radius=_radius,
        settings=lambda given: {"radius": 5.0, "step": 1.0, "schedule": "adaptive"},
    ),
    Theorem(
        "3",
        "Theorem 3",
        "avp",
        avp_step_bound,
        conditions={
            "a constant λ_t": lambda schedule: schedule == "constant",
            "λ < 2": lambda step: step < 2,
            "λ/2 < ε < 1": lambda step, epsilon: step / 2 < epsilon < 1,
        },
        radius=_radius,
        settings=_avp_any_step,
    ),
    Theorem(
        "4",
        "Theorem 4",
        "ahpatron",
        ahpatron_bound,
        conditions={
            "c_t = 0.6": lambda rescale: rescale != "keep" and _near(rescale, 0.6),
            "a constant λ_t": lambda schedule: schedule == "constant",
            "half of S to stay": lambda selection: selection != "nearest",
            "λ = √2·U/√B": lambda step, radius, budget: _near(
                step, math.sqrt(2) * _ratio(radius, budget)
            ),
            "B >= 50": lambda budget: budget >= 50,
            "U <= √B/4": lambda radius, budget: _ratio(radius, budget) <= 1 / 4,
            "3U/√B < ε < 1": lambda radius, budget, epsilon: (
                3 * _ratio(radius, budget) < epsilon < 1
            ),
        },
        radius=_radius,
        settings=_ahpatron(math.sqrt(2), 0.6),
        compositions=("ahpatron+",),
    ),
    Theorem(
        "5",
        "Theorem 5",
        "ahpatron",
        ahpatron_refined_bound,
        conditions={
            "c_t = ‖f_t‖/U": lambda rescale: rescale == "keep",
            "a constant λ_t": lambda schedule: schedule == "constant",
            "half of S to stay": lambda selection: selection != "nearest",
            "λ = U/(2√B)": lambda step, radius, budget: _near(step, _ratio(radius, budget) / 2),
            "B >= 16": lambda budget: budget >= 16,
            "(1/4 + 9ζ/2)·U/√B < ε < 1": lambda zeta, radius, budget, epsilon: (
                refined_share(budget, radius, zeta) < epsilon < 1
            ),
        },
        radius=_radius,
        settings=_ahpatron(1 / 2, "keep"),
        compositions=("ahpatron+",),
    ),
    Theorem(
        "forgetron",
        "Dekel et al. 2008",
        "forgetron",
        forgetron_bound,
        "mistakes",
        conditions={"B >= 84": lambda budget: budget >= 84},
        radius=forgetron_radius,
    ),
)


def theorems_of(learner: str) -> list[Theorem]:
    """All theorems about a learner."""
    return [theorem for theorem in THEOREMS if theorem.about(learner)]


def radii_of(learner: str, params: Params) -> list[float]:
    """The balls that the learner's theorems have: comparators of these lengths are wanted."""
    known = _known(params, {})
    return [_value(theorem.radius, known) for theorem in theorems_of(learner)]


class BrokenTheoremError(AssertionError):
    """A learner made more mistakes than its theorem allows: the learner or the bound is wrong."""


@dataclass(frozen=True)
class Certificate:
    """`count` is at most `bound`: what a theorem guarantees of this very run."""

    theorem: str
    counts: str
    """What is counted: mistakes (|M_T|), or failures (|M'_T|, rounds with y·f(x) <= 0)."""
    count: int
    bound: float
    trivial: int
    """What the count cannot exceed anyway: T, or T - |N_T|, as no round of M'_T is in N_T."""
    vacuous: bool
    """Whether the bound is not below that."""
    comparator: str
    loss: float
    """L_T(f) of the comparator f, and its norm."""
    norm: float


def certify(
    learner: str, params: Params, counts: Counts, comparators: Sequence[Comparator]
) -> Certificate | None:
    """The tightest bound of all theorems that apply; None where none does.

    Each theorem that applies is checked: a broken one raises a `BrokenTheoremError`.
    """
    applying = [one for one in theorems_of(learner) if not one.failing(params, counts)]
    found = [_tightest(theorem, params, counts, comparators) for theorem in applying]
    # of those that are equal but for rounding, as special cases are, the first
    return min(found, key=lambda one: round(one.bound, 6), default=None)


def _tightest(
    theorem: Theorem, params: Params, counts: Counts, comparators: Sequence[Comparator]
) -> Certificate:
    known = _known(params, counts)
    radius = _value(theorem.radius, known)
    bound, best = min(
        (
            (_value(theorem.bound, {**known, "loss": one.loss, "norm": one.norm}), one)
            for one in comparators
            if one.norm <= radius
        ),
        key=lambda pair: pair[0],
    )
    bound += 1e-9 * (counts["rounds"] + abs(bound))  # the rounding of the formula itself
    count = counts[theorem.counts]
    if not count <= bound:
        raise BrokenTheoremError(
            f"{theorem.title} is broken: {theorem.learner} has {count} {theorem.counts}, "
            f"the bound is {bound!r}; {best}, {dict(counts)}, parameters {dict(params)}"
        )
    trivial = counts["rounds"]
    if theorem.counts == "failures":
        trivial -= counts["margin_updates"]
    which = theorem.title, theorem.counts
    vacuous = bound >= trivial
    return Certificate(*which, count, bound, trivial, vacuous, best.name, best.loss, best.norm)
