"""The same rules in decimal arithmetic of 60 digits: rounding plays no part.

For where doubles lose digits: offsets, tiny and huge values, radii, ridges. Doubles go in exactly;
what comes out is rounded once. What the rules say about rounding stays: f(x) whose terms cancel to
12 digits is 0, a margin that misses 1 - ε by 1e-10 of it has reached it, and coefficients that are
equal to ten digits of the largest are equal when half of them is chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, localcontext
from typing import Any

from reference import kernels
from reference.trace import Trace

PRECISION = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


def run(
    rule: Callable[..., Trace],
    X: Sequence[Sequence[float]],
    Y: Sequence[int],
    sigma: float,
    **params: Any,
) -> tuple[Trace, float]:
    """What a reference implementation does in decimal arithmetic, and ‖f‖."""
    with localcontext(PRECISION):
        width = 2 * Decimal(sigma) ** 2
        rows = [[Decimal(value) for value in row] for row in X]

        def gaussian(u: Sequence[Decimal], v: Sequence[Decimal]) -> Decimal:
            squares = ((a - b) ** 2 for a, b in zip(u, v, strict=True))
            return (-sum(squares, Decimal(0)) / width).exp()

        kernel = kernels.tabled(rows, gaussian)
        trace = rule(rows, Y, kernel, number=Decimal, **params)
        trace.scores = [float(score) for score in trace.scores]
        return trace, float(trace.norms()[0])
