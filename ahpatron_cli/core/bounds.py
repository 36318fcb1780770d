"""Mistake bounds of the learners' theorems, evaluated on what a pass counted and a comparator.

A comparator is any f in the space (in the ball of radius U, where a theorem has one): `loss` is its
L_T(f), the sum of hinge losses over the stream, and `norm` its ‖f‖. N is |N_T|.
"""

import math


def perceptron(loss: float, norm: float) -> float:
    """Theorem 1: `|M_T| <= 2·L_T(f) + ‖f‖²`."""
    return 2 * loss + norm**2


def perceptron_root(loss: float, norm: float) -> float:
    """Theorem 2: `|M_T| <= L_T(f) + ‖f‖·√L_T(f) + ‖f‖²`."""
    return loss + norm * math.sqrt(loss) + norm**2


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


def halvings(failures: int, margin_updates: int, budget: int) -> float:
    """Lemma 1: at most `max(2(|M'_T| + |N_T|)/B - 1, 0)` halvings."""
    return max(2 * (failures + margin_updates) / budget - 1, 0.0)


def forgetron(loss: float, norm: float) -> float:
    """Dekel et al. (2008), for `‖f‖ <= √(B+1)/(4·√ln(B+1))`: `|M_T| <= 4·L_T(f) + 2·‖f‖²`."""
    return 4 * loss + 2 * norm**2


def forgetron_radius(budget: int) -> float:
    """The norm up to which the Forgetron's comparators may go."""
    return math.sqrt(budget + 1) / (4 * math.sqrt(math.log(budget + 1)))
