"""Certificates: upper bounds on the mistakes of one run, from theorems about its learner.

A theorem bounds a count of rounds for every comparator f, i.e. every fixed hypothesis.
`comparators` computes hypotheses with small hinge loss and norm, `THEOREMS` lists the bounds with
their conditions, and `certify` returns the smallest bound that applies to a run. A bound is a sum
of terms, each a factor times a quantity, so that a reader can compute it again.

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
from dataclasses import dataclass, fields
from functools import partial
from math import ceil, hypot, inf, isclose, log, log2, sqrt
from typing import Any, Literal, NamedTuple, TypeAlias

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
ToPoints: TypeAlias = Callable[[Rows], Points]

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
    gram = gram + gram.T
    gram /= 2
    drawn = len(labels)
    costs = [C * rounds / drawn for C in SVM_COSTS]  # the sample represents the stream
    machines = svm_path(gram, labels, costs, seed=seed)
    weights = np.array([labels, *machines])
    rounding = 8 * EPS * sample.largest
    error = 1e-12 + min(NEAR_TIE, rounding)  # δ
    directions = _directions(weights, gram, error)
    norms = _grid_of_norms(rounds, radii)
    errors = rounds * directions.errors
    losses = np.multiply.outer(errors, norms)
    for points, signs in _blocks(pieces, to_points):
        K = kernel.between(sample, points)
        values = directions.coefficients @ K
        margins = values * signs
        columns = norms[:, None]
        scaled = margins[:, None] * columns
        hinge = np.maximum(0.0, 1.0 - scaled)
        losses += hinge.sum(axis=2)
    names = [f"mean of {len(labels)}"]
    names += [f"SVM, C = {C:.3g}" for C in SVM_COSTS]
    zero = Comparator("0", loss=float(rounds), norm=0.0)
    return [zero, *_rescaled(names, losses, norms)]


def _rescaled(names: Sequence[str], losses: Floats, norms: Floats) -> Iterator[Comparator]:
    """Each direction at each norm; `losses` has a row for each direction."""
    for name, of_direction in zip(names, losses.tolist(), strict=True):
        for loss, norm in zip(of_direction, norms.tolist(), strict=True):
            yield Comparator(name, loss=loss, norm=norm)


class _Directions(NamedTuple):
    """Hypotheses of norm 1, or slightly below."""

    coefficients: Floats
    """A row for each hypothesis, a column for each example of the sample."""
    errors: Floats
    """Upper bound on the rounding error of f(x), for each hypothesis."""


def _directions(weights: Floats, gram: Floats, error: float) -> _Directions:
    """The hypotheses with these coefficients, scaled to norm 1; `error` is δ of `comparators`."""
    sizes = np.abs(weights)
    masses = sizes.sum(axis=1)  # Σ|a_i|
    products = (weights @ gram) * weights
    squares = np.maximum(products.sum(axis=1), 0)  # ‖f‖²
    raised = squares + error * masses**2
    lengths = np.sqrt(raised)
    lengths[lengths == 0] = inf  # such a direction is that of f = 0
    errors = error * masses / lengths
    return _Directions(weights / lengths[:, None], errors)


def _grid_of_norms(rounds: int, radii: Iterable[float]) -> Floats:
    """Norms of comparators: 16 an octave, and `radii`."""
    largest = max(sqrt(2 * rounds), 2.0)  # beyond, ‖f‖² alone exceeds 2T, the bound at f = 0
    octaves = log2(largest * 64)
    steps = ceil(16 * octaves)
    grid = np.geomspace(1 / 64, largest, 1 + steps)
    within = [radius for radius in radii if radius <= largest]
    return np.union1d(grid, within)


def _blocks(pieces: Pieces, to_points: ToPoints) -> Iterator[tuple[Points, Floats]]:
    """The stream in blocks of at most 256 rounds: points and labels."""
    for rows, signs in pieces():
        points = to_points(rows)
        rounds = len(signs)
        for start in range(0, rounds, 256):
            stop = min(start + 256, rounds)
            block = points.slice(start, stop)
            yield block, signs[start:stop]


def _draw_sample(
    pieces: Pieces, *, rounds: int, seed: int, to_points: ToPoints
) -> tuple[Points, Floats]:
    """Draw a random sample of the stream: points and labels."""
    rng = np.random.default_rng([seed, rounds])
    size = min(rounds, SAMPLE)
    chosen = rng.choice(rounds, size, replace=False)
    chosen.sort()
    parts: list[Points] = []
    labels: list[Floats] = []
    for rows, signs in pieces():
        is_begun = chosen >= 0
        in_piece = is_begun & (chosen < len(signs))
        here = chosen[in_piece]
        points = to_points(rows)
        parts.append(points.subset(here))
        labels.append(signs[here])
        chosen -= len(signs)
    width = parts[-1].width
    sample = parts[0].widened(width)
    for part in parts[1:]:
        widened = part.widened(width)
        sample.extend(widened)
    return sample, np.concatenate(labels)


def svm_path(
    gram: Floats, labels: Floats, costs: Sequence[float], *, seed: int
) -> Iterator[Floats]:
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
            losses = 1.0 - labels * values
            gains = losses / diagonal
            clipped = np.clip(alphas + gains, 0.0, cost)
            changes = np.abs(clipped - alphas)
            least = 0.01 * cost
            active = np.flatnonzero(changes > least)
            if not len(active):
                break
            for i in rng.permutation(active).tolist():
                sign = signs[i]
                before = alphas.item(i)
                loss = 1.0 - sign * values.item(i)
                gain = loss / diagonal.item(i)
                raised = max(before + gain, 0.0)
                after = min(raised, cost)
                alphas[i] = after
                change = (after - before) * sign
                daxpy(rows[i], values, a=change)
        yield alphas * labels


_near = partial(isclose, rel_tol=1e-9)


@dataclass(frozen=True, kw_only=True)
class RunFacts:
    """What theorems need to know of a run; what its learner does not have keeps its default."""

    budget: int = 0
    """B."""
    epsilon: float = 0.0
    """ε."""
    radius: float = inf
    """U."""
    step: float = 0.0
    """λ."""
    schedule: str = ""
    selection: str = ""
    rescale: float | str = ""
    margin_updates: int = 0
    """|N_T|."""
    margin_steps: float = 0.0
    """Σ λ_t over N_T."""
    zeta: float = 0.0
    """ζ with `Σ ‖f_t - f̄_t‖ <= ζ·U·J` over J halvings."""

    @property
    def quantities(self) -> dict[str, float]:
        """The quantities in the formulas of theorems, by symbol."""
        return {
            "B": self.budget,
            "U": self.radius,
            "λ": self.step,
            "ε": self.epsilon,
            "ζ": self.zeta,
            "|N_T|": self.margin_updates,
            "Σλ_t": self.margin_steps,
        }

    @property
    def ratio(self) -> float:
        """U/√B."""
        return self.radius / sqrt(self.budget)

    @property
    def share(self) -> float:
        """`a = (1/4 + 9ζ/2)·U/√B` of Theorem 6."""
        factor = 1 / 4 + 9 / 2 * self.zeta
        return factor * self.radius / sqrt(self.budget)


def _run_of(params: Params, counts: Counts) -> RunFacts:
    """The run with these parameters and counts; without counts, before its first round."""
    found = {**counts, **params}
    if found.get("radius") == "inf":
        found["radius"] = inf
    found["zeta"] = 0.0
    if counts.get("halvings"):
        found["zeta"] = counts["zeta"] + 1e-6  # more than rounding errors
    known = {}
    for field in fields(RunFacts):
        if field.name in found:
            known[field.name] = found[field.name]
    return RunFacts(**known)


class Term(NamedTuple):
    """A term of a bound: a factor times a quantity."""

    symbol: str
    """The quantity, as in the formula of the theorem."""
    factor: float
    value: float

    @property
    def product(self) -> float:
        """The term itself."""
        return self.factor * self.value


Terms: TypeAlias = tuple[Term, ...]


def _sum(terms: Iterable[Term]) -> float:
    """The bound that these terms add up to."""
    return sum(term.product for term in terms)


def _loss(f: Comparator, factor: float) -> Term:
    return Term("L_T(f)", factor, f.loss)


def _square(f: Comparator, factor: float) -> Term:
    return Term("‖f‖²", factor, f.norm**2)


def _margins(run: RunFacts, factor: float) -> Term:
    """Δ_T, if it is a multiple of |N_T|."""
    return Term("|N_T|", factor, run.margin_updates)


Conditions: TypeAlias = dict[str, bool]
"""The text of each condition, and whether it holds."""


def _no_conditions(run: RunFacts) -> Conditions:
    return {}


def _radius(run: RunFacts) -> float:
    """U: the learner keeps f in this ball, so the theorem holds for comparators in it."""
    return run.radius


def _no_settings(given: Params) -> Params:
    return {}


@dataclass(frozen=True)
class Theorem:
    """A mistake bound, with the conditions under which it holds."""

    key: str
    """The value of `--theorem`."""
    title: str
    learners: tuple[str, ...]
    """The learner of the theorem, then learners that are the same with other defaults."""
    formula: str
    """The bound as text."""
    terms: Callable[[Comparator, RunFacts], Terms]
    """The terms of the bound for a comparator."""
    uses: tuple[str, ...] = ()
    """Symbols of the other quantities in the formula, as in `RunFacts.quantities`."""
    counts: Literal["mistakes", "failures"] = "failures"
    """The count that is bounded, as in `Certificate`."""
    conditions: Callable[[RunFacts], Conditions] = _no_conditions
    radius: Callable[[RunFacts], float] = _radius
    """The largest norm of a comparator."""
    settings: Callable[[Params], Params] = _no_settings
    """Parameters that meet the conditions together with the given ones."""

    def bound(self, f: Comparator, run: RunFacts) -> float:
        """The bound for a comparator."""
        return _sum(self.terms(f, run))

    def failing(self, params: Params, counts: Counts | None = None) -> list[str]:
        """The conditions that fail; without counts, those that fail whatever happens in the run."""
        run = _run_of(params, counts or {})
        conditions = self.conditions(run)
        return [text for text, holds in conditions.items() if not holds]


def _theorem_1(f: Comparator, run: RunFacts) -> Terms:
    return _loss(f, 2), _square(f, 1)


def _theorem_2(f: Comparator, run: RunFacts) -> Terms:
    root = sqrt(f.loss)
    mixed = Term("‖f‖·√L_T(f)", 1, f.norm * root)
    return _loss(f, 1), mixed, _square(f, 1)


def _theorem_3(f: Comparator, run: RunFacts) -> Terms:
    """Theorem 3, solved for |M'_T|.

    The sum of δ_t/(2λ) telescopes to at most ‖f‖²/(2λ). Corollary 1 is the case λ = 1.
    """
    step = run.step
    divisor = 1 - step / 2
    square = 1 / (2 * step * divisor)
    margins = (step / 2 - run.epsilon) / divisor
    return (
        _loss(f, 1 / divisor),
        _square(f, square),
        _margins(run, margins),
    )


def _corollary_1_conditions(run: RunFacts) -> Conditions:
    return {
        "a constant λ_t": run.schedule == "constant",
        "λ = 1": _near(run.step, 1.0),
        "U = ∞": run.radius == inf,
        "1/2 < ε < 1": 1 / 2 < run.epsilon < 1,
    }


def _theorem_3_conditions(run: RunFacts) -> Conditions:
    return {
        "a constant λ_t": run.schedule == "constant",
        "λ < 2": run.step < 2,
        "λ/2 < ε < 1": run.step / 2 < run.epsilon < 1,
    }


def _corollary_2(f: Comparator, run: RunFacts) -> Terms:
    """Corollary 2: the parts of A are terms of their own, as far as A is positive."""
    U = run.radius
    square = U**2
    parts = (
        _loss(f, 1),
        Term("U²", 2, square),
        Term("Σλ_t", 1 / 2, run.margin_steps),
        _margins(run, -run.epsilon),
    )
    A = _sum(parts)
    rest = Term("U²", 9, square)
    if A <= 0:
        return (rest,)
    root = Term("√A", 3 * U, sqrt(A))
    return *parts, rest, root


def _corollary_2_conditions(run: RunFacts) -> Conditions:
    # λ_t = U/√(U² + |M'_t|) is largest in the first round, where f = 0 and |M'_t| = 1
    largest_step = run.radius / hypot(run.radius, 1)
    return {
        "an adaptive λ_t": run.schedule == "adaptive",
        "λ = 1": _near(run.step, 1.0),
        "U < ∞": run.radius < inf,
        "U/(2√(U² + 1)) < ε < 1": largest_step / 2 < run.epsilon < 1,
    }


def _theorem_4(f: Comparator, run: RunFacts) -> Terms:
    """Theorem 4: the terms of the larger of the two sums."""
    ratio = run.ratio
    first = (
        _loss(f, 1 + 12 * ratio),
        _margins(run, _per_margin_update(3 * ratio, run)),
    )
    second = (
        _loss(f, 1 + 0.9 * ratio),
        _square(f, 1 / (2 * ratio)),
        _margins(run, _per_margin_update(ratio / sqrt(2), run)),
    )
    return max(first, second, key=_sum)


def _per_margin_update(a: float, run: RunFacts) -> float:
    """`(a - ε)/(1 - a)`, the factor of |N_T| in Δ_T; negative if ε > a."""
    return (a - run.epsilon) / (1 - a)


def _theorem_4_conditions(run: RunFacts) -> Conditions:
    rescale = run.rescale
    return {
        "c_t = 0.6": not isinstance(rescale, str) and _near(rescale, 0.6),
        "a constant λ_t": run.schedule == "constant",
        "half of S to stay": run.selection != "nearest",
        "λ = √2·U/√B": _near(run.step, sqrt(2) * run.ratio),
        "B >= 50": run.budget >= 50,
        "U <= √B/4": run.ratio <= 1 / 4,
        "3U/√B < ε < 1": 3 * run.ratio < run.epsilon < 1,
    }


def _theorem_6(f: Comparator, run: RunFacts) -> Terms:
    """Theorem 6 at γ = 1 - a.

    γ is a parameter of the analysis only, and the theorem allows every γ <= 1 - a. If ζ <= 1/2,
    γ = 1 - a gives the smallest bound. If ζ > 1/2, no other γ is proven: the proof divides the
    negative `(1-2ζ)·‖f‖²` by 1 - a, and a smaller divisor would give less. If nothing was halved,
    the bound is proven for ζ = 0 only.
    """
    a = run.share
    divisor = run.ratio * (1 - a)
    square = (1 - 2 * run.zeta) / divisor
    return (
        _loss(f, 1 / (1 - a)),
        _square(f, square),
        _margins(run, _per_margin_update(a, run)),
    )


def _theorem_6_conditions(run: RunFacts) -> Conditions:
    return {
        "c_t = ‖f_t‖/U": run.rescale == "keep",
        "a constant λ_t": run.schedule == "constant",
        "half of S to stay": run.selection != "nearest",
        "λ = U/(2√B)": _near(run.step, run.ratio / 2),
        "B >= 16": run.budget >= 16,
        "(1/4 + 9ζ/2)·U/√B < ε < 1": run.share < run.epsilon < 1,
    }


def _forgetron_terms(f: Comparator, run: RunFacts) -> Terms:
    return _loss(f, 4), _square(f, 2)


def _forgetron_conditions(run: RunFacts) -> Conditions:
    return {"B >= 84": run.budget >= 84}


def _forgetron_radius(run: RunFacts) -> float:
    """`√(B+1) / (4·√ln(B+1))`."""
    size = run.budget + 1
    divisor = 4 * sqrt(log(size))
    return sqrt(size) / divisor


def _ahpatron_settings(given: Params, step: float, rescale: float | str) -> Params:
    """Default settings: `U = √B/4`, `ε = 0.9` (or the U that a given ε allows), `λ = step·U/√B`."""
    budget = float(given.get("budget", Ahpatron.budget))
    epsilon = float(given.get("epsilon", 0.9))
    root = sqrt(budget)
    share = min(1 / 4, 0.3 * epsilon)
    largest = root * share
    radius = float(given.get("radius", largest))
    return {
        "epsilon": epsilon,
        "radius": radius,
        "step": step * radius / root,
        "schedule": "constant",
        "selection": "magnitude",
        "rescale": rescale,
    }


def _theorem_4_settings(given: Params) -> Params:
    return _ahpatron_settings(given, step=sqrt(2), rescale=0.6)


def _theorem_6_settings(given: Params) -> Params:
    return _ahpatron_settings(given, step=1 / 2, rescale="keep")


def _corollary_1_settings(given: Params) -> Params:
    return {"epsilon": 0.75, "radius": inf, "step": 1.0, "schedule": "constant"}


def _corollary_2_settings(given: Params) -> Params:
    return {"radius": 5.0, "step": 1.0, "schedule": "adaptive"}


def _theorem_3_settings(given: Params) -> Params:
    """Default settings: λ = 1/4, for which bounds are often smallest, and ε >= (λ/2 + 1)/2."""
    step = float(given.get("step", 1 / 4))
    epsilon = max(0.75, 0.5 + step / 4)
    return {"step": step, "epsilon": epsilon, "schedule": "constant"}


THEOREMS: tuple[Theorem, ...] = (
    Theorem(
        key="1",
        title="Theorem 1",
        learners=("perceptron",),
        formula="2·L_T(f) + ‖f‖²",
        terms=_theorem_1,
        counts="mistakes",
    ),
    Theorem(
        key="2",
        title="Theorem 2",
        learners=("perceptron",),
        formula="L_T(f) + ‖f‖·√L_T(f) + ‖f‖²",
        terms=_theorem_2,
        counts="mistakes",
    ),
    Theorem(
        key="corollary-1",
        title="Corollary 1",
        learners=("avp",),
        formula="2·L_T(f) + ‖f‖² + Δ_T, Δ_T = (1 - 2·ε)·|N_T|",
        terms=_theorem_3,
        uses=("ε", "|N_T|"),
        conditions=_corollary_1_conditions,
        settings=_corollary_1_settings,
    ),
    Theorem(
        key="corollary-2",
        title="Corollary 2",
        learners=("avp",),
        formula="A + 9·U² + 3·U·√A, A = max(L_T(f) + 2·U² + Δ_T, 0), Δ_T = Σλ_t/2 - ε·|N_T|",
        terms=_corollary_2,
        uses=("U", "ε", "|N_T|", "Σλ_t"),
        conditions=_corollary_2_conditions,
        settings=_corollary_2_settings,
    ),
    Theorem(
        key="3",
        title="Theorem 3",
        learners=("avp",),
        formula="(L_T(f) + ‖f‖²/(2·λ))/(1 - λ/2) + Δ_T, Δ_T = (λ/2 - ε)/(1 - λ/2)·|N_T|",
        terms=_theorem_3,
        uses=("λ", "ε", "|N_T|"),
        conditions=_theorem_3_conditions,
        settings=_theorem_3_settings,
    ),
    Theorem(
        key="4",
        title="Theorem 4",
        learners=("ahpatron", "ahpatron+"),
        formula="L_T(f) + max(12·U/√B·L_T(f) + Δ(3·U/√B), 0.9·U/√B·L_T(f) + √B/(2·U)·‖f‖² + "
        "Δ(U/√(2·B))), Δ(a) = (a - ε)/(1 - a)·|N_T|",
        terms=_theorem_4,
        uses=("B", "U", "ε", "|N_T|"),
        conditions=_theorem_4_conditions,
        settings=_theorem_4_settings,
    ),
    Theorem(
        key="6",
        title="Theorem 6",
        learners=("ahpatron", "ahpatron+"),
        formula="L_T(f)/(1 - a) + (1 - 2·ζ)·√B/((1 - a)·U)·‖f‖² + Δ_T, Δ_T = (a - ε)/(1 - "
        "a)·|N_T|, a = (1/4 + 9·ζ/2)·U/√B",
        terms=_theorem_6,
        uses=("B", "U", "ε", "ζ", "|N_T|"),
        conditions=_theorem_6_conditions,
        settings=_theorem_6_settings,
    ),
    Theorem(
        key="forgetron",
        title="Dekel et al. 2008",
        learners=("forgetron",),
        formula="4·L_T(f) + 2·‖f‖²",
        terms=_forgetron_terms,
        counts="mistakes",
        conditions=_forgetron_conditions,
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
    run = _run_of(params, {})
    return [theorem.radius(run) for theorem in theorems_of(learner)]


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
    formula: str
    """The bound as text."""
    quantities: Mapping[str, float]
    """The other quantities in the formula, by symbol."""
    terms: Terms
    """The terms that add up to `bound`; the last one allows for rounding errors."""


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
    shown = [theorem.key for theorem in theorems_of(learner, asked)]
    applying = [certificates[key] for key in shown if key in certificates]
    # a special case equals the general theorem up to rounding: the first of them is returned
    return min(applying, key=_rounded_bound, default=None)


def _rounded_bound(certificate: Certificate) -> float:
    return round(certificate.bound, 6)


def _certificate(
    theorem: Theorem, *, params: Params, counts: Counts, candidates: Sequence[Comparator]
) -> Certificate:
    """The guarantee of a theorem whose conditions hold, for the comparator with the least bound."""
    run = _run_of(params, counts)
    radius = theorem.radius(run)
    in_ball = [f for f in candidates if f.norm <= radius]
    bounds = [theorem.bound(f, run) for f in in_ball]
    bound = min(bounds)
    best = bounds.index(bound)
    f = in_ball[best]
    rounds = counts["rounds"]
    rounding = Term("rounding", 1e-9, rounds + abs(bound))  # more than the errors
    terms = (*theorem.terms(f, run), rounding)
    bound = _sum(terms)
    if theorem.counts == "failures":
        count = counts["nonpositive_margins"]
        trivial = rounds - counts["margin_updates"]
    else:
        count = counts["mistakes"]
        trivial = rounds
    if not count <= bound:
        learner = theorem.learners[0]
        what = f"{learner} has {count} {theorem.counts}, the bound is {bound!r}"
        where = f"{f}, {dict(counts)}, parameters {dict(params)}"
        raise BrokenTheoremError(f"{theorem.title} is broken: {what}; {where}")
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
        formula=theorem.formula,
        quantities={symbol: run.quantities[symbol] for symbol in theorem.uses},
        terms=terms,
    )
