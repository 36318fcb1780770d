"""Mistake bounds of the learners' theorems, evaluated on what a pass counted and a comparator.

A comparator is any f in the space (in the ball of radius U, where a theorem has one): `loss` is its
L_T(f), the sum of hinge losses over the stream, and `norm` its ‖f‖. N is |N_T|. Which learner each
one is about, and under which conditions, is in `theorems.py`.
"""

import math


def perceptron(loss: float, norm: float) -> float:
    """Theorem 1: `|M_T| <= 2·L_T(f) + ‖f‖²`."""
    return 2 * loss + norm**2


def perceptron_root(loss: float, norm: float) -> float:
    """Theorem 2: `|M_T| <= L_T(f) + ‖f‖·√L_T(f) + ‖f‖²`."""
    return loss + norm * math.sqrt(loss) + norm**2


def avp_step(loss: float, norm: float, step: float, epsilon: float, margin_updates: int) -> float:
    """Theorem 3 with a constant λ < 2 (λ/2 < ε < 1), solved for |M'_T|.

    The sum of δ_t/(2λ) telescopes to at most ‖f‖²/(2λ), so
    `(1 - λ/2)·|M'_T| <= L_T(f) + ‖f‖²/(2λ) + (λ/2 - ε)·|N_T|`; λ = 1 gives Corollary 1.
    """
    right = loss + norm**2 / (2 * step) + (step / 2 - epsilon) * margin_updates
    return right / (1 - step / 2)


def avp_constant(loss: float, norm: float, epsilon: float, margin_updates: int) -> float:
    """Corollary 1 (λ = 1, U = ∞, 1/2 < ε < 1): `|M'_T| <= 2·L_T(f) + ‖f‖² + (1 - 2ε)·|N_T|`."""
    return 2 * loss + norm**2 + (1 - 2 * epsilon) * margin_updates


def avp_adaptive(loss: float, radius: float, gain: float) -> float:
    """Corollary 2 (`λ_t = U/√(U² + M'_t)`), Δ_T = Σ_{t∈N_T}(λ_t/2 - ε) given as `gain`:

    `|M'_T| <= max(L + 2U² + Δ_T, 0) + 9U² + 3U·√max(L + 2U² + Δ_T, 0)`.
    """
    base = max(loss + 2 * radius**2 + gain, 0.0)
    return base + 9 * radius**2 + 3 * radius * math.sqrt(base)


def ahpatron(
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


def ahpatron_refined(
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


def halvings(failures: int, margin_updates: int, budget: int) -> float:
    """Lemma 1: at most `max(2(|M'_T| + |N_T|)/B - 1, 0)` halvings."""
    return max(2 * (failures + margin_updates) / budget - 1, 0.0)


def forgetron(loss: float, norm: float) -> float:
    """Dekel et al. (2008), for `‖f‖ <= √(B+1)/(4·√ln(B+1))`: `|M_T| <= 4·L_T(f) + 2·‖f‖²`."""
    return 4 * loss + 2 * norm**2


def forgetron_radius(budget: int) -> float:
    """The norm up to which the Forgetron's comparators may go."""
    return math.sqrt(budget + 1) / (4 * math.sqrt(math.log(budget + 1)))
