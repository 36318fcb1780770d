"""Laws that every learner obeys, for whoever writes one.

    from ahpatron_cli.testing import check_learner
    check_learner(MyLearner, budget=20)

Nothing here needs a test framework: a law that is broken raises an AssertionError that names it.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ahpatron_cli.core import Gaussian, Kernel, Learner, Player
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import Floats, compressed
from ahpatron_cli.core.state import Stored

Row: TypeAlias = list[float]
Twin: TypeAlias = Callable[..., Any]
"""From rows, labels, κ and the learner's parameters to f(x) of each round.

The same learner once more, one example at a time, as plainly as possible. It returns the scores, or
an object that has them as `scores`, and any of the counts of a `Tally` beside.
"""

RELATIVE, ABSOLUTE = 1e-7, 1e-9
"""How near scores must be that are computed in two ways."""
SIGMA = 0.7
COUNTS = ("mistakes", "failures", "updates", "margin_updates")


@dataclass(frozen=True)
class Stream:
    """Examples and their labels."""

    X: Floats
    y: Floats


def check_learner(kind: type[Learner[Any]], twin: Twin | None = None, **params: Value) -> None:
    """Check a learner, with these parameters, against all laws on a few random streams.

    With `twin`, also against it. T, where the learner asks for it, is the length of the stream.
    """
    learner = kind(**params)
    for stream in _streams():
        for law in LAWS.values():
            law(learner, stream, Gaussian(sigma=SIGMA))
        if twin is not None:
            equals_twin(learner, stream, twin, params)


def equals_twin(
    learner: Learner[Any], stream: Stream, twin: Twin, params: Mapping[str, Value]
) -> None:
    """The engine computes what the twin computes, and counts what it counts."""
    player, scores = _played(learner, stream, Gaussian(sigma=SIGMA), block=16)
    rows, labels = stream.X.tolist(), [int(label) for label in stream.y]
    trace = twin(rows, labels, _gaussian, **params)
    _agree("equals its twin", learner, scores, np.array(getattr(trace, "scores", trace)))
    for name in COUNTS:
        ours = getattr(player.tally, name)
        theirs = getattr(trace, name, ours)
        assert ours == theirs, f"{learner.name}: {name} {ours}, its twin {theirs}"


def block_size_never_matters(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """Blocks only save time."""
    expected = _played(learner, stream, kernel)[1]
    for block in (1, 7, 33, 256):
        found = _played(learner, stream, kernel, block=block)[1]
        _agree(f"does not depend on the block size, {block}", learner, found, expected)


def no_round_sees_a_later_one(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """Altering round t, label or features, changes nothing that was predicted before it."""
    before = _played(learner, stream, kernel)[1]
    for t in sorted({0, len(before) // 3, len(before) - 1}):
        X, y = stream.X.copy(), stream.y.copy()
        y[t] = -y[t]
        flipped = _played(learner, Stream(X, y), kernel)[1]
        _agree(f"sees no label before round {t}", learner, flipped[: t + 1], before[: t + 1])
        X[t:] = 2.5 - X[t:]
        altered = _played(learner, Stream(X, y), kernel)[1]
        _agree(f"sees no example before round {t}", learner, altered[:t], before[:t])


def budget_and_radius_hold(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """|S| <= B and ‖f‖ <= U after every few rounds, if the learner has a budget and a radius."""
    player = Player(learner, kernel, horizon=len(stream.y), block=8)
    most = math.inf if player.learner.most_kept is None else player.learner.most_kept
    radius = getattr(player.learner, "radius", math.inf) * (1 + 1e-12)
    for t in range(0, len(stream.y), 8):
        player.feed(stream.X[t : t + 8], stream.y[t : t + 8])
        size, norm = player.f.size or 0, player.f.norm
        assert size <= most, f"{learner.name}: |S| = {size} is above the budget, {most}"
        assert norm <= radius, f"{learner.name}: ‖f‖ = {norm} is above the radius, {radius}"


def same_seed_same_bytes(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """What is drawn at random comes from the seed alone."""
    first, second = (_played(learner, stream, kernel, seed=5)[1] for _ in range(2))
    _identical("gives the same bytes from the same seed", learner, second, first)


def one_object_plays_two_streams(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """A learner is a configuration: a pass leaves nothing behind in it."""
    params = learner.params()
    before = copy.deepcopy(vars(learner))
    first = _played(learner, stream, kernel)[1]
    other = Stream(1.5 - stream.X[::-1], -stream.y[::-1])
    _played(learner, other, kernel)
    again = _played(learner, stream, kernel)[1]
    _identical("plays the same stream again with the same scores", learner, again, first)
    fresh = _played(type(learner)(**params), stream, kernel)[1]
    _identical("is made by its params()", learner, fresh, first)
    changed = [name for name, value in vars(learner).items() if not _same(value, before.get(name))]
    assert not changed, f"{learner.name}: a pass changed {', '.join(changed)} of the learner itself"


def pieces_are_one_stream(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """Pieces of any length give the same bits as the whole."""
    expected = _played(learner, stream, kernel)[1]
    player = Player(learner, kernel, horizon=len(stream.y))
    rng, scores, begin = np.random.default_rng(len(stream.y)), [np.empty(0)], 0
    while begin < len(stream.y):
        end = begin + int(rng.integers(1, 90))
        scores.append(player.feed(stream.X[begin:end], stream.y[begin:end]))
        begin = end
    _identical("plays pieces as one stream", learner, np.concatenate(scores), expected)


def resumed_is_uninterrupted(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """A pass that is kept and taken up again goes on bit by bit, with the same counts."""
    whole, expected = _played(learner, stream, kernel)
    for cut in sorted({1, len(stream.y) // 2, len(stream.y)}):
        begun = Stream(stream.X[:cut], stream.y[:cut])
        first, scores = _played(learner, begun, kernel, whole=whole)
        state = copy.deepcopy(first.state())
        second = Player(type(learner)(**first.learner.params()), kernel, seed=(99,))
        second.restore(Stored(state))
        rest = second.feed(stream.X[cut:], stream.y[cut:])
        _identical(f"goes on after round {cut}", learner, np.append(scores, rest), expected)
        for name in COUNTS:
            ours, wanted = getattr(second.tally, name), getattr(whole.tally, name)
            said = f"{learner.name} goes on after round {cut}: no, {name} {ours}, not {wanted}"
            assert ours == wanted, said
        found, known = second.learner.statistics(), whole.learner.statistics()
        assert found == known, f"{learner.name} goes on after round {cut}: no, {found}, not {known}"


def sparse_is_dense(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """Rows without their zeros are the same rows."""
    X = np.where(np.abs(stream.X) < 0.5, 0.0, stream.X)
    dense = _played(learner, Stream(X, stream.y), kernel)[1]
    sparse = Player(learner, kernel, horizon=len(stream.y)).feed(compressed(X), stream.y)
    _agree("plays sparse rows as dense ones", learner, sparse, dense)


def tracked_norm_is_the_norm(learner: Learner[Any], stream: Stream, kernel: Kernel) -> None:
    """‖f‖ of an expansion is √(aᵀKa), and what f is at a row is what it would predict there."""
    player, _ = _played(learner, stream, kernel)
    f = player.f
    if isinstance(f, Expansion) and f.points is not None:
        gram = kernel.between(f.points, f.points)
        exact = math.sqrt(max(float(f.coefficients @ gram @ f.coefficients), 0.0))
        assert math.isclose(f.norm, exact, rel_tol=1e-9, abs_tol=1e-9), f"{f.norm} is not {exact}"
        assert f.norm_drift < 1e-9, f"{learner.name}: the tracked norm was off by {f.norm_drift}"
    read = player.scores(stream.X[:1])
    _agree("predicts what is read", learner, player.feed(stream.X[:1], stream.y[:1]), read)


Law: TypeAlias = Callable[[Learner[Any], Stream, Kernel], None]
LAWS: dict[str, Law] = {
    law.__name__: law
    for law in (
        block_size_never_matters,
        no_round_sees_a_later_one,
        budget_and_radius_hold,
        same_seed_same_bytes,
        one_object_plays_two_streams,
        pieces_are_one_stream,
        resumed_is_uninterrupted,
        sparse_is_dense,
        tracked_norm_is_the_norm,
    )
}
"""All laws by name; that of the twin needs a twin."""


def _streams() -> Iterator[Stream]:
    """Points in a box, labelled by a wave through it, some labels flipped."""
    for rounds, features, noise in ((1, 1, 0.0), (70, 1, 0.4), (150, 3, 0.1), (260, 2, 0.2)):
        rng = np.random.default_rng(rounds)
        X = rng.normal(size=(rounds, features)).round(3)
        wave = np.sin(2 * X[:, 0]) + 0.5 * X.sum(axis=1) + noise * rng.normal(size=rounds)
        flipped = rng.random(rounds) < noise
        yield Stream(X, np.where((wave >= 0) != flipped, 1.0, -1.0))


def _played(
    learner: Learner[Any],
    stream: Stream,
    kernel: Kernel,
    *,
    block: int = 64,
    seed: int = 0,
    whole: Player | None = None,
) -> tuple[Player, Floats]:
    """A pass and its scores; where it is the beginning of a `whole` one, T is that one's."""
    horizon = len(stream.y) if whole is None else whole.tally.rounds
    player = Player(learner, kernel, seed=(seed,), horizon=horizon, block=block)
    return player, player.feed(stream.X, stream.y)


def _agree(law: str, learner: Learner[Any], found: Floats, expected: Floats) -> None:
    said = f"{learner.name} {law}: no"
    np.testing.assert_allclose(found, expected, RELATIVE, ABSOLUTE, err_msg=said)


def _identical(law: str, learner: Learner[Any], found: Floats, expected: Floats) -> None:
    np.testing.assert_array_equal(found, expected, err_msg=f"{learner.name} {law}: no")


def _same(left: Any, right: Any) -> bool:
    return left is right or bool(np.all(left == right))


def _gaussian(u: Row, v: Row) -> float:
    """κ(u, v) by its definition, for twins."""
    distance = math.fsum((a - b) ** 2 for a, b in zip(u, v, strict=True))
    return math.exp(-distance / (2 * SIGMA * SIGMA))
