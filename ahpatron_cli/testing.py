"""Checks for learners of your own: properties that every learner must have.

    from ahpatron_cli.testing import check_learner
    check_learner(MyLearner, budget=20)

No test framework is needed: a violated property raises an AssertionError that names it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core import Gaussian, Kernel, Learner, Player
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import CsrRows, Floats, compressed

Row: TypeAlias = list[float]
Reference: TypeAlias = Callable[..., Any]
"""A reference implementation: a function of rows, labels, κ and the learner's parameters.

It handles one example at a time, as plainly as possible, and returns f(x) of each round, or an
object with these as attribute `scores` and any counts of a `Tally` as further attributes.
"""

KERNEL = Gaussian(sigma=0.7)
COUNTS = ("mistakes", "nonpositive_margins", "updates", "margin_updates")


class Stream(NamedTuple):
    """A stream of examples: rows X and labels y (-1 or +1)."""

    X: Any
    y: Floats


def check_learner(kind: type[Learner], reference: Reference | None = None, **params: Value) -> None:
    """Check all properties in `LAWS` of a learner on a few random streams.

    Parameters
    ----------
    kind : subclass of Learner
    reference : callable, optional
        Reference implementation; scores and counts must be equal up to rounding.
    **params
        Parameters of the learner; a required horizon is set to the length of the stream.

    Examples
    --------
    >>> from ahpatron_cli.core import RandomBudgetPerceptron
    >>> check_learner(RandomBudgetPerceptron, budget=20)
    """
    learner = kind(**params)
    for stream in _streams():
        for law in LAWS.values():
            law(learner, stream, KERNEL)
        if reference is not None:
            equals_reference(learner, stream, reference, params)


def equals_reference(
    learner: Learner, stream: Stream, reference: Reference, params: Mapping[str, Value]
) -> None:
    """Check that scores and counts equal those of the reference implementation."""
    player, scores = _run(learner, stream, KERNEL, block=16)
    trace = reference(stream.X.tolist(), stream.y.astype(int).tolist(), _gaussian, **params)
    counts = {name: getattr(trace, name) for name in COUNTS if hasattr(trace, name)}
    expected = np.array(getattr(trace, "scores", trace))
    _agree("equals its reference implementation", player, scores, expected, counts)


def block_size_never_matters(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that the results do not depend on the block size."""
    player, expected = _run(learner, stream, kernel)
    for block in (1, 7, 33, 256):
        law = f"does not depend on the block size, {block}"
        _agree(law, *_run(learner, stream, kernel, block=block), expected, _counts(player))


def no_round_sees_a_later_one(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that the prediction of round t depends neither on its label nor on later examples."""
    before = _run(learner, stream, kernel)[1]
    for t in sorted({0, len(before) // 3, len(before) - 1}):
        X, y = stream.X.copy(), stream.y.copy()
        X[t + 1 :], y[t:] = 2.5 - X[t + 1 :], -y[t:]
        player, scores = _run(learner, Stream(X, y), kernel)
        _agree(f"sees nothing later in round {t}", player, scores[: t + 1], before[: t + 1])


def budget_and_radius_hold(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check |S| <= B and ‖f‖ <= U after every few rounds, for learners with a budget or radius."""
    player = Player(learner, kernel, horizon=len(stream.y), block=8)
    most = math.inf if player.learner.most_kept is None else player.learner.most_kept
    radius = getattr(player.learner, "radius", math.inf) * (1 + 1e-12)
    for t in range(0, len(stream.y), 8):
        player.feed(stream.X[t : t + 8], stream.y[t : t + 8])
        size, norm = player.f.size or 0, player.f.norm
        assert size <= most, f"{learner.name}: |S| = {size} is above the budget, {most}"
        assert norm <= radius, f"{learner.name}: ‖f‖ = {norm} is above the radius, {radius}"


def one_object_runs_on_two_streams(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that a run does not change the learner object: a second run gives the same scores."""
    first = _run(learner, stream, kernel)[1]
    _run(learner, Stream(1.5 - stream.X[::-1], -stream.y[::-1]), kernel)
    for same in (learner, type(learner)(**learner.params())):
        _agree("has the same scores again", *_run(same, stream, kernel), first, exactly=True)


def pieces_are_one_stream(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that rows fed one by one, or in pieces with save and resume in between, agree.

    Results must be bit-identical if all pieces end at multiples of 64 rounds, else up to rounding.
    """
    whole, expected = _run(learner, stream, kernel)
    rng, rounds = np.random.default_rng(len(stream.y)), len(stream.y)
    for length in (1, 64, None):
        player, scores, begin = Player(learner, kernel, horizon=rounds), [np.empty(0)], 0
        law = f"runs on pieces of {length or 'any number of'} rows"
        law += "" if length == 1 else ", saved and resumed in between"
        while begin < rounds:
            end = begin + (length or int(rng.integers(1, 90)))
            scores.append(player.feed(stream.X[begin:end], stream.y[begin:end]))
            begin = end
            if length != 1:
                state = copy.deepcopy(player.state_dict())
                fresh = type(learner)(**player.learner.params())
                player = Player(fresh, kernel, seed=(99,)).load_state_dict(state)
        _agree(law, player, np.concatenate(scores), expected, _counts(whole), exactly=length == 64)


def sparse_is_dense(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that sparse rows give the same results as dense rows.

    Also with zeros that are stored, columns that are always 0, and a column with a large offset.
    """
    X = np.where(np.abs(stream.X) < 0.5, 0.0, stream.X)
    for rows in (X, _with_offset_and_gaps(X)):
        dense = _run(learner, Stream(rows, stream.y), kernel)[1]
        sparse = _run(learner, Stream(compressed(rows), stream.y), kernel)
        _agree("runs on sparse rows as on dense ones", *sparse, dense)
        stored = _run(learner, Stream(_storing_zeros(rows), stream.y), kernel)
        _agree("runs on sparse rows with stored zeros as on dense ones", *stored, dense)


def tracked_norm_is_the_norm(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that ‖f‖ of an expansion is √(aᵀKa), and that `scores` returns what is predicted."""
    player, _ = _run(learner, stream, kernel)
    f = player.f
    if isinstance(f, Expansion) and f.points is not None:
        gram = f.kernel.between(f.points, f.points)
        exact = math.sqrt(max(float(f.coefficients @ gram @ f.coefficients), 0.0))
        _agree("tracks ‖f‖", player, np.array(f.norm), np.array(exact))
    score = player.score(stream.X[0])
    predicted = player.learn(stream.X[0], float(stream.y[0]))
    _agree("predicts what is read", player, np.array(predicted), np.array(score))


Law: TypeAlias = Callable[[Learner, Stream, Kernel], None]
# fmt: off
LAWS: dict[str, Law] = {law.__name__: law for law in (
    block_size_never_matters, no_round_sees_a_later_one, budget_and_radius_hold,
    one_object_runs_on_two_streams, pieces_are_one_stream, sparse_is_dense,
    tracked_norm_is_the_norm,
)}
# fmt: on
"""All checks by name, except the comparison with a reference implementation."""


def _streams() -> Iterator[Stream]:
    """Random streams: points in a box, labelled by a sine wave, some labels flipped."""
    for rounds, features, noise in ((1, 1, 0.0), (70, 1, 0.4), (150, 3, 0.1), (260, 2, 0.2)):
        rng = np.random.default_rng(rounds)
        X = rng.normal(size=(rounds, features)).round(3)
        wave = np.sin(2 * X[:, 0]) + 0.5 * X.sum(axis=1) + noise * rng.normal(size=rounds)
        flipped = rng.random(rounds) < noise
        yield Stream(X, np.where((wave >= 0) != flipped, 1.0, -1.0))


def _with_offset_and_gaps(X: Floats) -> Floats:
    """These rows with a column of zeros before each column, and a column of large offset."""
    spaced = np.zeros((len(X), 2 * X.shape[1] + 1))
    spaced[:, 1::2] = X
    spaced[:, -1] = 48.8566 + 2e-5 * np.sin(X[:, 0] + np.arange(len(X)))
    return spaced


def _storing_zeros(X: Floats) -> CsrRows:
    """These rows as sparse rows that store every value, also 0."""
    rounds, width = X.shape
    columns = np.tile(np.arange(width, dtype=np.int32), rounds)
    return CsrRows(np.arange(rounds + 1) * width, columns, X.ravel(), width)


def _run(learner: Learner, stream: Stream, kernel: Kernel, **options: Any) -> tuple[Player, Floats]:
    """Run a learner; return the player and its scores. T is the stream length unless given."""
    player = Player(learner, kernel, **{"horizon": len(stream.y), **options})
    return player, player.feed(stream.X, stream.y)


def _counts(player: Player) -> dict[str, Any]:
    return {name: getattr(player.tally, name) for name in COUNTS} | player.statistics()


def _agree(
    law: str,
    player: Player,
    scores: Floats,
    expected: Floats,
    counts: Mapping[str, Any] | None = None,
    exactly: bool = False,
) -> None:
    """Assert that scores, and the counts if given, are as expected; `law` names the property."""
    broken = f"{player.learner.name} {law}: no"
    tolerances = (0.0, 0.0) if exactly else (1e-7, 1e-9)
    np.testing.assert_allclose(scores, expected, *tolerances, err_msg=broken)
    own = _counts(player)
    for name, count in (counts or {}).items():
        same = own[name] == count or math.isclose(own[name], count, rel_tol=1e-9)
        assert same, f"{broken}, {name} is {own[name]}, not {count}"


def _gaussian(u: Row, v: Row) -> float:
    """κ(u, v) by its definition, for reference implementations."""
    distance = math.fsum((a - b) ** 2 for a, b in zip(u, v, strict=True))
    return math.exp(-distance / (2 * KERNEL.sigma**2))
