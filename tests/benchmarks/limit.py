"""The least that Ahpatron's arithmetic can cost in NumPy: no learning, only what it must compute.

`observed` plays a stream and notes how many kernel values were computed, block by block, and how
often the active set was halved. `bare_pass` computes as many values, one block after the other, by
one product and one `exp`, and as many Cholesky factorisations of B/2 x B/2.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf
from scipy.sparse import csr_matrix

from ahpatron_cli.core import BLOCK, Ahpatron, Gaussian, Learner, Player, expansion
from ahpatron_cli.core.learners import ahpatron as halving
from ahpatron_cli.core.rows import CsrRows, Rows

Floats = NDArray[np.float64]
LOWEST = -700.0
"""`exp` below this is many times slower, and 0 for all that matters."""
PARTS = ("kernel", "rounds", "halving", "settling")


@dataclass
class Work:
    """What a pass had to compute, and what it came to."""

    left: list[int] = field(default_factory=list)
    """|S| when each block was opened."""
    halvings: int = 0
    mistakes: int = 0
    margin_updates: int = 0
    seconds: float = 0.0
    """CPU time of the whole pass."""
    parts: dict[str, float] = field(default_factory=dict)
    """CPU time by part."""


def learning(learner: Learner[Any], rows: Rows, labels: Floats, sigma: float) -> Work:
    """A pass, timed as a whole and undisturbed."""
    player = Player(learner, Gaussian(sigma=sigma), horizon=len(labels))
    start = time.process_time()
    player.feed(rows, labels)
    spent = time.process_time() - start
    return Work([], 0, player.tally.mistakes, player.tally.margin_updates, spent)


def observed(settings: dict[str, Any], rows: Rows, labels: Floats, sigma: float) -> Work:
    """A pass with a stopwatch around each part; the watches cost something, too."""
    work, spent = Work(), dict.fromkeys(PARTS, 0.0)

    def watched(function: Any, part: str, within: str | None = None) -> Any:
        def timed(*args: Any) -> Any:
            start = time.process_time()
            result = function(*args)
            took = time.process_time() - start
            spent[part] += took
            if within:
                spent[within] -= took
            return result

        return timed

    original = (
        Gaussian.between,
        Gaussian.points,
        halving.project_onto,
        expansion.Expansion.close,
    )
    try:
        Gaussian.between = watched(original[0], "kernel")  # type: ignore[method-assign]  # a watch
        Gaussian.points = watched(original[1], "kernel")  # type: ignore[method-assign]  # a watch
        halving.project_onto = watched(original[2], "halving")
        expansion.Expansion.close = watched(  # type: ignore[method-assign]  # a watch
            original[3], "settling"
        )
        learner = Ahpatron(**settings)
        player = Player(learner, Gaussian(sigma=sigma), horizon=len(labels))
        opened = player.f.open

        def noted(block: Any, signs: Floats) -> None:
            work.left.append(player.f.size or 0)
            opened(block, signs)

        player.f.open = noted  # type: ignore[method-assign]  # to count
        start = time.process_time()
        player.feed(rows, labels)
        work.seconds = time.process_time() - start
    finally:
        Gaussian.between, Gaussian.points = original[:2]  # type: ignore[method-assign]  # undone
        halving.project_onto = original[2]
        expansion.Expansion.close = original[3]  # type: ignore[method-assign]  # undone
    work.halvings = int(player.learner.statistics()["halvings"] or 0)
    work.mistakes, work.margin_updates = player.tally.mistakes, player.tally.margin_updates
    spent["rounds"] = work.seconds - sum(spent.values())
    work.parts = spent
    return work


def bare_pass(work: Work, rows: Rows, sigma: float, budget: int) -> float:
    """CPU time of as many kernel values and factorisations, by the quickest way that we know."""
    values = _quickest(rows, sigma)
    spd = np.eye(budget // 2) + 0.01
    start = time.process_time()
    for number, size in enumerate(work.left):
        values(size + BLOCK, number * BLOCK)  # κ(S, X) and the block's own Gram matrix
    for _ in range(work.halvings):
        dpotrf(spd, lower=1)
    return time.process_time() - start


def _quickest(rows: Rows, sigma: float) -> Any:
    """A function that computes κ between the first rows and a block."""
    dense = rows.dense() if isinstance(rows, CsrRows) else rows
    scaled = (dense - dense[0]) / sigma
    norms = -0.5 * np.einsum("ij,ij->i", scaled, scaled)
    ones = np.ones(len(scaled))
    left = np.column_stack([scaled, norms, ones])
    right = np.column_stack([scaled, ones, norms])
    if len(right) % BLOCK:
        right = np.concatenate([right, np.repeat(right[-1:], BLOCK - len(right) % BLOCK, axis=0)])
    products = [lambda count, first: left[:count] @ right[first : first + BLOCK].T]
    if isinstance(rows, CsrRows):
        matrix = csr_matrix(left)
        blocks = [np.ascontiguousarray(right[i : i + BLOCK].T) for i in range(0, len(right), BLOCK)]
        products.append(lambda count, first: matrix[:count] @ blocks[first // BLOCK])
    exps = [_clipped, _spared] if -4 * norms.min() > -LOWEST else [lambda out: np.exp(out, out=out)]
    ways = [
        lambda count, first, product=product, exp=exp: exp(product(count, first))
        for product in products
        for exp in exps
    ]
    return min(ways, key=lambda way: _cost(way, len(rows)))


def _clipped(exponents: Floats) -> Floats:
    np.maximum(exponents, LOWEST, out=exponents)
    return np.exp(exponents, out=exponents)


def _spared(exponents: Floats) -> Floats:
    flat = exponents.reshape(-1)
    near = np.flatnonzero(flat > LOWEST)
    values = np.exp(flat[near])
    flat.fill(0.0)
    flat[near] = values
    return exponents


def _cost(way: Any, rows: int) -> float:
    start = time.process_time()
    for number in range(min(30, rows // BLOCK)):
        way(min(300, rows), number * BLOCK)
    return time.process_time() - start
