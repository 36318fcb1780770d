"""Certificates: upper bounds on the mistakes of one run, from theorems about its learner.

A theorem bounds a count of rounds for every comparator f, i.e. every fixed hypothesis.
`comparators` computes hypotheses with small hinge loss and norm, `THEOREMS` lists the bounds with
their conditions, and `certify` returns the smallest bound that applies to a run.

|M_T|    number of mistakes, with sign(0) = +1
|M'_T|   number of rounds with y·f(x) <= 0
|N_T|    number of margin updates, i.e. updates in rounds with y·f(x) > 0
L_T(f)   sum of the hinge losses of f over the T rounds of the stream

Every mistake is in M'_T, so a bound on |M'_T| also bounds |M_T|. The converse is false: a
Perceptron does not update if it correctly predicts +1 from f(x) = 0, however often this happens.
All theorems require κ(x, x) <= 1, as is the case for every kernel of this package.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil, hypot, inf, isclose, log, log2, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from ahpatron_cli.core.conversion import Conversion
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.ahpatron import Ahpatron
from ahpatron_cli.core.numerics import EPS, NEAR_TIE, daxpy
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats, Rows

Params: TypeAlias = Mapping[str, int | float | str]
Counts: TypeAlias = Mapping[str, Any]
"""Counts of a run by name: its tally and the statistics of its learner."""
Pieces: TypeAlias = Callable[[], Iterable[tuple[Rows, Floats]]]
"""A function that reads the stream from the start: yields rows and labels piece by piece."""

SAMPLE = 2000
"""Number of examples to which hypotheses are fitted."""
SVM_COSTS = tuple(2.0**power for power in range(-10, 3))
"""Values of C relative to the whole stream: C = 1 minimises 2·L_T(f) + ‖f‖²."""


@dataclass(frozen=True)
class Comparator:
    """A hypothesis f, with upper bounds on L_T(f) and ‖f‖."""

    name: str
    loss: float
    norm: float


def comparators(
    pieces: Pieces, rounds: int, kernel: Kernel, radii: Iterable[float] = (), seed: int = 0
) -> list[Comparator]:
    """Compute comparators: f = 0, then several directions, each rescaled to a grid of norms.

    Directions are the kernel mean `Σ y_i κ(x_i,·)` and support vector machines, fitted to a sample
    of the stream; L_T(f) is over all rounds. The grid of norms includes `radii`.

    Rounding must not make a bound too small. If the error of a kernel value is at most δ, that of
    f(x) is at most δ·Σ|a_i| and that of ‖f‖² at most δ·(Σ|a_i|)²; both are added.
    """
    to_points = Conversion(kernel).convert
    sample, labels = _draw_sample(pieces, rounds=rounds, seed=seed, to_points=to_points)
    gram = kernel.between(sample, sample)
    gram = (gram + gram.T) / 2
    costs = [C * rounds / len(labels) for C in SVM_COSTS]  # the sample represents the stream
    machines = svm_path(gram, labels, costs, seed)
    weights = np.array([labels, *machines])
    names = [f"mean of {len(labels)}"]
    names += [f"SVM, C = {C:.3g}" for C in SVM_COSTS]
    error = 1e-12 + min(NEAR_TIE, 8 * EPS * sample.largest)  # δ
    masses = np.abs(weights).sum(axis=1)  # Σ|a_i|
    squares = ((weights @ gram) * weights).sum(axis=1)  # ‖f‖²
    lengths = np.sqrt(np.maximum(squares, 0) + error * masses**2)
    lengths[lengths == 0] = inf  # such a direction is that of f = 0
    directions = weights / lengths[:, None]
    norms = _grid_of_norms(rounds, radii)
    losses = rounds * (error * masses / lengths)[:, None] * norms
    for points, signs in _blocks(pieces, to_points):
        margins = directions @ kernel.between(sample, points) * signs
        hinge = np.maximum(0.0, 1.0 - margins[:, None] * norms[:, None])
        losses += hinge.sum(axis=2)
    candidates = [Comparator("0", loss=float(rounds), norm=0.0)]
    for name, of_direction in zip(names, losses.tolist(), strict=True):
        pairs = zip(of_direction, norms.tolist(), strict=True)
        candidates += [Comparator(name, loss=loss, norm=norm) for loss, norm in pairs]
    return candidates


def _grid_of_norms(rounds: int, radii: Iterable[float]) -> Floats:
    """Norms of comparators: 16 an octave, and `radii`."""
    largest = max(sqrt(2 * rounds), 2.0)  # beyond, ‖f‖² alone exceeds 2T, the bound at f = 0
    count = 1 + ceil(16 * log2(largest * 64))
    grid = np.geomspace(1 / 64, largest, count)
    within = [radius for radius in radii if radius <= largest]
    return np.union1d(grid, within)


def _blocks(pieces: Pieces, to_points: Callable[[Rows], Points]) -> Iterator[tuple[Points, Floats]]:
    """The stream in blocks of at most 256 rounds: points and labels."""
    for rows, signs in pieces():
        points = to_points(rows)
        for start in range(0, len(signs), 256):
            stop = min(start + 256, len(signs))
            yield points.slice(start, stop), signs[start:stop]


def _draw_sample(
    pieces: Pieces, *, rounds: int, seed: int, to_points: Callable[[Rows], Points]
) -> tuple[Points, Floats]:
    """Draw a random sample of the stream: points and labels."""
    rng = np.random.default_rng([seed, rounds])
    size = min(rounds, SAMPLE)
    chosen = np.sort(rng.choice(rounds, size, replace=False))
    parts: list[Points] = []
    labels: list[Floats] = []
    for rows, signs in pieces():
        in_piece = (chosen >= 0) & (chosen < len(signs))
        here = chosen[in_piece]
        parts.append(to_points(rows).subset(here))
        labels.append(signs[here])
        chosen -= len(signs)
    sample = parts[0].widened(parts[-1].width)
    for part in parts[1:]:
        sample.extend(part.widened(sample.width))
    return sample, np.concatenate(labels)


def svm_path(gram: Floats, labels: Floats, costs: Sequence[float], seed: int) -> Iterator[Floats]:
    """For each cost C, the coefficients that minimise `‖f‖²/2 + C·Σ max(0, 1 - y_i·f(x_i))`.

    Dual coordinate ascent: with a_i = α_i·y_i and 0 <= α_i <= C, each step maximises over one α_i,
    which becomes `α_i + (1 - y_i·f(x_i))/κ(x_i, x_i)`, clipped. An epoch skips the α_i that would
    hardly change. The costs must increase: each solution is the starting point for the next.
    """
    rng = np.random.default_rng(seed)
    rows = list(gram)
    signs = labels.tolist()
    diagonal = gram.diagonal()
    diagonal = np.where(diagonal > 0, diagonal, np.inf)  # κ(x, x) = 0: α stays 0
    alphas = np.zeros(len(signs))
    values = np.zeros(len(signs))
    for cost in costs:
        for _ in range(30):
            gains = (1.0 - labels * values) / diagonal
            changes = np.clip(alphas + gains, 0.0, cost) - alphas
            active = np.flatnonzero(np.abs(changes) > 0.01 * cost)
            if not len(active):
                break
            for i in rng.permutation(active).tolist():
                sign = signs[i]
                before = alphas.item(i)
                gain = (1.0 - sign * values.item(i)) / diagonal.item(i)
                after = min(max(before + gain, 0.0), cost)
                alphas[i] = after
                daxpy(rows[i], values, a=(after - before) * sign)
        yield alphas * labels


@dataclass(frozen=True)
class Theorem:
    """A mistake bound; its functions take the parameters and counts of a run by name."""

    key: str
    """The value of `--theorem`."""
    title: str
    learners: tuple[str, ...]
    """The learner of the theorem, then learners that are the same with other defaults."""
    bound: Callable[..., float]
    """The bound for a comparator, which is the first argument."""
    counts: Literal["mistakes", "failures"] = "failures"
    """The count that is bounded, as in `Certificate`."""
    conditions: Callable[..., Iterable[tuple[str, bool]]] = lambda **_: ()
    """For each condition its text, and whether it holds."""
    radius: Callable[..., float] = lambda radius=inf, **_: radius
    """The largest norm of a comparator: U, if the learner has this parameter."""
    settings: Callable[[Params], Params] = lambda given: {}
    """Parameters that meet the conditions together with the given ones."""

    def failing(self, params: Params, counts: Counts | None = None) -> list[str]:
        """The conditions that fail; without counts, those that fail whatever happens in the run."""
        conditions = self.conditions(**_quantities(params, counts or {}))
        return [text for text, holds in conditions if not holds]


def _quantities(params: Params, counts: Counts) -> dict[str, Any]:
    """Parameters and counts of a run, and ζ with `Σ ‖f_t - f̄_t‖ <= ζ·U·J` over J halvings."""
    numbers = {name: inf if value == "inf" else value for name, value in params.items()}
    zeta = 0.0
    if counts.get("halvings"):
        zeta = counts["zeta"] + 1e-6  # more than rounding errors
    return {**counts, **numbers, "zeta": zeta}


def _theorem_1(f: Comparator, **_: Any) -> float:
    """Theorem 1: `2·L_T(f) + ‖f‖²`."""
    return 2 * f.loss + f.norm**2


def _theorem_2(f: Comparator, **_: Any) -> float:
    """Theorem 2: `L_T(f) + ‖f‖·√L_T(f) + ‖f‖²`."""
    return f.loss + f.norm * sqrt(f.loss) + f.norm**2


def _theorem_3(f: Comparator, step: float, epsilon: float, margin_updates: int, **_: Any) -> float:
    """`(L_T(f) + ‖f‖²/(2λ) + (λ/2 - ε)·|N_T|)/(1 - λ/2)`: Theorem 3, solved for |M'_T|.

    The sum of δ_t/(2λ) telescopes to at most ‖f‖²/(2λ). Corollary 1 is the case λ = 1.
    """
    right = f.loss + f.norm**2 / (2 * step) + (step / 2 - epsilon) * margin_updates
    return right / (1 - step / 2)


def _corollary_2(
    f: Comparator, radius: float, epsilon: float, margin_steps: float, margin_updates: int, **_: Any
) -> float:
    """Corollary 2: `A + 9U² + 3U·√A`, `A = max(L_T(f) + 2U² + Σ_{t∈N_T}(λ_t/2 - ε), 0)`."""
    margins = margin_steps / 2 - epsilon * margin_updates
    base = max(f.loss + 2 * radius**2 + margins, 0.0)  # A
    return base + 9 * radius**2 + 3 * radius * sqrt(base)


def _theorem_4(
    f: Comparator, budget: int, radius: float, epsilon: float, margin_updates: int, **_: Any
) -> float:
    """Theorem 4: `L + max(12·U/√B·L + Δ̄, 0.9·U/√B·L + √B/(2U)·‖f‖² + Δ_)`, L = L_T(f)."""
    ratio = radius / sqrt(budget)
    upper = (3 * ratio - epsilon) / (1 - 3 * ratio) * margin_updates
    lower = (ratio / sqrt(2) - epsilon) / (1 - ratio / sqrt(2)) * margin_updates
    spread = f.norm**2 / (2 * ratio)
    first = 12 * ratio * f.loss + upper
    second = 0.9 * ratio * f.loss + spread + lower
    return f.loss + max(first, second)


def _share(budget: int, radius: float, zeta: float) -> float:
    """`a = (1/4 + 9ζ/2)·U/√B` of Theorem 6."""
    return (1 / 4 + 9 / 2 * zeta) * radius / sqrt(budget)


def _theorem_6(
    f: Comparator, budget: int, radius: float, epsilon: float, margin_updates: int, **run: Any
) -> float:
    """`L + (a/γ)·L + ((1-2ζ)/γ)·‖f‖²·√B/U + (a - ε)/(1 - a)·|N_T|` at γ = 1 - a, L = L_T(f).

    γ is a parameter of the analysis only, and the theorem allows every γ <= 1 - a. If ζ <= 1/2,
    γ = 1 - a gives the smallest bound. If ζ > 1/2, no other γ is proven: the proof divides the
    negative `(1-2ζ)·‖f‖²` by 1 - a, and a smaller divisor would give less. If nothing was halved,
    the bound is proven for ζ = 0 only.
    """
    zeta: float = run["zeta"]
    a = _share(budget, radius, zeta)
    gamma = 1 - a
    spread = (1 - 2 * zeta) * f.norm**2 * sqrt(budget) / radius
    margins = (a - epsilon) / gamma * margin_updates
    return f.loss + a / gamma * f.loss + spread / gamma + margins


def _forgetron_bound(f: Comparator, **_: Any) -> float:
    """`4·L_T(f) + 2·‖f‖²`."""
    return 4 * f.loss + 2 * f.norm**2


def _forgetron_radius(budget: int, **_: Any) -> float:
    """`√(B+1) / (4·√ln(B+1))`."""
    return sqrt(budget + 1) / (4 * sqrt(log(budget + 1)))


def _ahpatron_settings(given: Params, step: float, rescale: float | str) -> Params:
    """Default settings: `U = √B/4`, `ε = 0.9` (or the U that a given ε allows), `λ = step·U/√B`."""
    root = sqrt(float(given.get("budget", Ahpatron.budget)))
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


def _avp_settings(given: Params) -> Params:
    """Default settings: λ = 1/4, for which bounds are often smallest, and ε >= (λ/2 + 1)/2."""
    step = float(given.get("step", 1 / 4))
    epsilon = max(0.75, 0.5 + step / 4)
    return {"step": step, "epsilon": epsilon, "schedule": "constant"}


_near = partial(isclose, rel_tol=1e-9)

THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        key="1",
        title="Theorem 1",
        learners=("perceptron",),
        bound=_theorem_1,
        counts="mistakes",
    ),
    Theorem(
        key="2",
        title="Theorem 2",
        learners=("perceptron",),
        bound=_theorem_2,
        counts="mistakes",
    ),
    Theorem(
        key="corollary-1",
        title="Corollary 1",
        learners=("avp",),
        bound=_theorem_3,
        conditions=lambda schedule, step, radius, epsilon, **_: (
            ("a constant λ_t", schedule == "constant"),
            ("λ = 1", _near(step, 1.0)),
            ("U = ∞", radius == inf),
            ("1/2 < ε < 1", 1 / 2 < epsilon < 1),
        ),
        settings=lambda _: {"epsilon": 0.75, "radius": inf, "step": 1.0, "schedule": "constant"},
    ),
    Theorem(
        key="corollary-2",
        title="Corollary 2",
        learners=("avp",),
        bound=_corollary_2,
        conditions=lambda schedule, step, radius, epsilon, **_: (
            ("an adaptive λ_t", schedule == "adaptive"),
            ("λ = 1", _near(step, 1.0)),
            ("U < ∞", radius < inf),
            # λ_t = U/√(U² + |M'_t|) is largest in the first round, where f = 0 and |M'_t| = 1
            ("U/(2√(U² + 1)) < ε < 1", radius / hypot(radius, 1) / 2 < epsilon < 1),
        ),
        settings=lambda _: {"radius": 5.0, "step": 1.0, "schedule": "adaptive"},
    ),
    Theorem(
        key="3",
        title="Theorem 3",
        learners=("avp",),
        bound=_theorem_3,
        conditions=lambda schedule, step, epsilon, **_: (
            ("a constant λ_t", schedule == "constant"),
            ("λ < 2", step < 2),
            ("λ/2 < ε < 1", step / 2 < epsilon < 1),
        ),
        settings=_avp_settings,
    ),
    Theorem(
        key="4",
        title="Theorem 4",
        learners=("ahpatron", "ahpatron+"),
        bound=_theorem_4,
        conditions=lambda rescale, schedule, selection, step, radius, budget, epsilon, **_: (
            ("c_t = 0.6", rescale != "keep" and _near(rescale, 0.6)),
            ("a constant λ_t", schedule == "constant"),
            ("half of S to stay", selection != "nearest"),
            ("λ = √2·U/√B", _near(step, sqrt(2) * (radius / sqrt(budget)))),
            ("B >= 50", budget >= 50),
            ("U <= √B/4", radius / sqrt(budget) <= 1 / 4),
            ("3U/√B < ε < 1", 3 * (radius / sqrt(budget)) < epsilon < 1),
        ),
        settings=lambda given: _ahpatron_settings(given, step=sqrt(2), rescale=0.6),
    ),
    Theorem(
        key="6",
        title="Theorem 6",
        learners=("ahpatron", "ahpatron+"),
        bound=_theorem_6,
        conditions=lambda rescale, schedule, selection, step, radius, budget, epsilon, zeta, **_: (
            ("c_t = ‖f_t‖/U", rescale == "keep"),
            ("a constant λ_t", schedule == "constant"),
            ("half of S to stay", selection != "nearest"),
            ("λ = U/(2√B)", _near(step, radius / sqrt(budget) / 2)),
            ("B >= 16", budget >= 16),
            ("(1/4 + 9ζ/2)·U/√B < ε < 1", _share(budget, radius, zeta) < epsilon < 1),
        ),
        settings=lambda given: _ahpatron_settings(given, step=1 / 2, rescale="keep"),
    ),
    Theorem(
        key="forgetron",
        title="Dekel et al. 2008",
        learners=("forgetron",),
        bound=_forgetron_bound,
        counts="mistakes",
        conditions=lambda budget, **_: [("B >= 84", budget >= 84)],
        radius=_forgetron_radius,
    ),
)


def theorems_of(learner: str, asked: str | None = None) -> list[Theorem]:
    """All theorems about a learner; only the `asked` one, given by its key, if it is among them."""
    about = [theorem for theorem in THEOREMS if learner in theorem.learners]
    chosen = [theorem for theorem in about if theorem.key == asked]
    return chosen or about


def radii_of(learner: str, params: Params) -> list[float]:
    """The largest norm of a comparator in each theorem about a learner."""
    quantities = _quantities(params, {})
    return [theorem.radius(**quantities) for theorem in theorems_of(learner)]


class BrokenTheoremError(AssertionError):
    """A count exceeds the bound of a theorem: the learner or the bound has a bug."""


@dataclass(frozen=True)
class Certificate:
    """The guarantee of a theorem for one run: `count` is at most `bound`."""

    theorem: str
    counts: str
    """The count that is bounded: "mistakes" (|M_T|) or "failures" (|M'_T|)."""
    count: int
    bound: float
    trivial: int
    """The largest possible count: T, or T - |N_T| for |M'_T|, as M'_T and N_T are disjoint."""
    vacuous: bool
    """Whether the bound is at least the trivial one."""
    comparator: str
    loss: float
    norm: float


def certify(
    learner: str,
    params: Params,
    counts: Counts,
    candidates: Sequence[Comparator],
    *,
    asked: str | None = None,
) -> Certificate | None:
    """The certificate with the smallest bound, or None if no theorem applies.

    With the key of a theorem as `asked`, the certificate of this theorem, if it is about the
    learner. All theorems that apply are checked: a `BrokenTheoremError` is raised if any bound is
    exceeded.
    """
    certificates: dict[str, Certificate] = {}
    for theorem in theorems_of(learner):
        if not theorem.failing(params, counts):
            certificates[theorem.key] = _certificate(
                theorem, params=params, counts=counts, candidates=candidates
            )
    shown = {theorem.key for theorem in theorems_of(learner, asked)}
    applying = [certificate for key, certificate in certificates.items() if key in shown]
    # a special case equals the general theorem up to rounding: the first of them is returned
    return min(applying, key=lambda certificate: round(certificate.bound, 6), default=None)


def _certificate(
    theorem: Theorem, *, params: Params, counts: Counts, candidates: Sequence[Comparator]
) -> Certificate:
    """The guarantee of a theorem whose conditions hold, for the comparator with the least bound."""
    run = _quantities(params, counts)
    radius = theorem.radius(**run)
    in_ball = [f for f in candidates if f.norm <= radius]
    bounds = [theorem.bound(f, **run) for f in in_ball]
    bound = min(bounds)
    f = in_ball[bounds.index(bound)]
    bound += 1e-9 * (counts["rounds"] + abs(bound))  # more than rounding errors
    if theorem.counts == "failures":
        count = counts["nonpositive_margins"]
        trivial = counts["rounds"] - counts["margin_updates"]
    else:
        count = counts["mistakes"]
        trivial = counts["rounds"]
    if not count <= bound:
        raise BrokenTheoremError(
            f"{theorem.title} is broken: {theorem.learners[0]} has {count} {theorem.counts}, "
            f"the bound is {bound!r}; {f}, {dict(counts)}, parameters {dict(params)}"
        )
    return Certificate(
        theorem=theorem.title,
        counts=theorem.counts,
        count=count,
        bound=bound,
        trivial=trivial,
        vacuous=bound >= trivial,
        comparator=f.name,
        loss=f.loss,
        norm=f.norm,
    )
