"""Checks for learners of your own: properties that every learner must have.

    from ahpatron_cli.testing import check_learner
    check_learner(MyLearner, budget=20)

No test framework is needed: a violated property raises an AssertionError that names it.
"""

from __future__ import annotations

import contextlib
import copy
import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core import Gaussian, Kernel, Learner, Player, mistaken, predicted
from ahpatron_cli.core.errors import ParameterError
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
    """A stream of examples: rows X and labels y (-1 or +1; with more classes 0, 1, …)."""

    X: Any
    y: Floats
    classes: int = 2
    weights: Floats | None = None

    def part(self, start: int, stop: int) -> Stream:
        """The rows `start` to `stop`."""
        weights = None if self.weights is None else self.weights[start:stop]
        return self._replace(X=self.X[start:stop], y=self.y[start:stop], weights=weights)

    @property
    def other_labels(self) -> Floats:
        """Labels that all differ from those of the stream."""
        return -self.y if self.classes == 2 else (self.y + 1) % self.classes


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
            equals_reference(learner, stream, reference=reference, params=params)
    for stream in harder_streams():
        for variant in variants(learner, stream):
            for law in LAWS.values():
                law(variant, stream, KERNEL)


def variants(learner: Learner, stream: Stream) -> Iterator[Learner]:
    """The learner in each way in which it can run on a stream; none if it cannot.

    Several classes are learned on one S and by one learner per class. Only learners with
    `takes_costs` run on weighted examples.
    """
    if stream.weights is not None and not learner.takes_costs:
        return
    spec = learner.specs().get("multiclass")
    if stream.classes == 2 or spec is None or not spec.words:
        yield learner
        return
    for way in spec.words:
        params = {**learner.params(), "multiclass": way}
        # a learner may refuse a combination of parameters
        with contextlib.suppress(ParameterError):
            yield type(learner)(**params)


def equals_reference(
    learner: Learner, stream: Stream, reference: Reference, params: Mapping[str, Value]
) -> None:
    """Check that scores and counts equal those of the reference implementation."""
    player, scores = _run(learner, stream, KERNEL, block=16)
    rows = stream.X.tolist()
    labels = stream.y.astype(int).tolist()
    trace = reference(rows, labels, _gaussian, **params)
    expected = np.array(getattr(trace, "scores", trace))
    counts = {name: getattr(trace, name) for name in COUNTS if hasattr(trace, name)}
    law = "equals its reference implementation"
    _agree(law, player, scores, expected=expected, counts=counts)


def block_size_never_matters(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that the results do not depend on the block size."""
    player, expected = _run(learner, stream, kernel)
    counts = _counts(player)
    for block in (1, 7, 33, 256):
        law = f"does not depend on the block size, {block}"
        player, scores = _run(learner, stream, kernel, block=block)
        _agree(law, player, scores, expected=expected, counts=counts)


def no_round_sees_a_later_one(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that the prediction of round t depends neither on its label nor on later examples."""
    _, before = _run(learner, stream, kernel)
    for t in sorted({0, len(before) // 3, len(before) - 1}):
        X = stream.X.copy()
        X[t + 1 :] = 2.5 - X[t + 1 :]
        y = stream.y.copy()
        y[t:] = stream.other_labels[t:]
        changed = stream._replace(X=X, y=y)
        player, scores = _run(learner, changed, kernel)
        law = f"sees nothing later in round {t}"
        _agree(law, player, scores[: t + 1], expected=before[: t + 1])


def budget_and_radius_hold(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check |S| <= B and ‖f‖ <= U after every few rounds, for learners with a budget or radius."""
    player = Player(learner, kernel, classes=stream.classes, horizon=len(stream.y), block=8)
    most = player.learner.most_kept
    radius = getattr(player.learner, "radius", math.inf) * (1 + 1e-9)
    for t in range(0, len(stream.y), 8):
        _feed(player, stream.part(t, t + 8))
        for loop in player.loops:
            f = loop.f
            if most is not None:
                size = f.size or 0
                assert size <= most, f"{learner.name}: |S| = {size} is above the budget, {most}"
            norm = max(_norms(f))
            assert norm <= radius, f"{learner.name}: ‖f‖ = {norm} is above the radius, {radius}"


def one_object_runs_on_two_streams(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that a run does not change the learner object: a second run gives the same scores."""
    _, first = _run(learner, stream, kernel)
    other = stream._replace(X=1.5 - stream.X[::-1], y=stream.other_labels[::-1])
    _run(learner, other, kernel)
    for same in (learner, type(learner)(**learner.params())):
        player, scores = _run(same, stream, kernel)
        _agree("has the same scores again", player, scores, expected=first, exactly=True)


def pieces_are_one_stream(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that rows fed one by one, or in pieces with save and resume in between, agree.

    Results must be bit-identical if all pieces end at multiples of 64 rounds, else up to rounding.
    """
    whole, expected = _run(learner, stream, kernel)
    counts = _counts(whole)
    rounds = len(stream.y)
    rng = np.random.default_rng(rounds)
    for length in (1, 64, None):
        law = f"runs on pieces of {length or 'any number of'} rows"
        if length != 1:
            law += ", saved and resumed in between"
        player = Player(learner, kernel, classes=stream.classes, horizon=rounds)
        parts = []
        begin = 0
        while begin < rounds:
            end = begin + (length or int(rng.integers(1, 90)))
            parts.append(_feed(player, stream.part(begin, end)))
            begin = end
            if length != 1:
                player = _resumed(player, learner, kernel=kernel, classes=stream.classes)
        scores = np.concatenate(parts)
        exactly = length == 64
        _agree(law, player, scores, expected=expected, counts=counts, exactly=exactly)


def sparse_is_dense(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that sparse rows give the same results as dense rows.

    Also with zeros that are stored, columns that are always 0, and a column with a large offset.
    """
    X = np.where(np.abs(stream.X) < 0.5, 0.0, stream.X)
    for rows in (X, _with_offset_and_gaps(X)):
        _, dense = _run(learner, stream._replace(X=rows), kernel)
        player, scores = _run(learner, stream._replace(X=compressed(rows)), kernel)
        _agree("runs on sparse rows as on dense ones", player, scores, expected=dense)
        player, scores = _run(learner, stream._replace(X=_storing_zeros(rows)), kernel)
        law = "runs on sparse rows with stored zeros as on dense ones"
        _agree(law, player, scores, expected=dense)


def tracked_norm_is_the_norm(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that ‖f‖ of an expansion is √(aᵀKa), and that `scores` returns what is predicted."""
    player, _ = _run(learner, stream, kernel)
    for loop in player.loops:
        f = loop.f
        if isinstance(f, Expansion) and f.points is not None:
            norm = math.hypot(*_norms(f))
            _agree("tracks ‖f‖", player, np.array(f.norm), expected=np.array(norm))
    score = player.score(stream.X[0])
    predicted = player.learn(stream.X[0], float(stream.y[0]))
    _agree("predicts what is read", player, np.array(predicted), expected=np.array(score))


def every_mistake_is_an_update(learner: Learner, stream: Stream, kernel: Kernel) -> None:
    """Check that `update` is called after each wrong prediction, also where f(x) is a tie.

    Learners whose `update_below` is negative at first are left out.
    """
    player = Player(learner, kernel, classes=stream.classes, horizon=len(stream.y))
    if player.learner.update_below < 0:
        return
    called = [_calls(loop.learner) for loop in player.loops]
    scores = _feed(player, stream)
    for c, rounds in enumerate(called):
        if stream.classes == 2:
            wrong = mistaken(stream.y, stream.y * scores)
        elif len(called) == 1:
            wrong = predicted(scores) != stream.y
        else:
            signs = np.where(stream.y == c, 1.0, -1.0)
            wrong = mistaken(signs, signs * scores[:, c])
        missed = np.setdiff1d(np.flatnonzero(wrong), rounds)
        assert not len(missed), f"{learner.name} updates after the mistake of round {missed[0]}: no"


Law: TypeAlias = Callable[[Learner, Stream, Kernel], None]
LAWS: dict[str, Law] = {
    "block_size_never_matters": block_size_never_matters,
    "no_round_sees_a_later_one": no_round_sees_a_later_one,
    "budget_and_radius_hold": budget_and_radius_hold,
    "one_object_runs_on_two_streams": one_object_runs_on_two_streams,
    "pieces_are_one_stream": pieces_are_one_stream,
    "sparse_is_dense": sparse_is_dense,
    "tracked_norm_is_the_norm": tracked_norm_is_the_norm,
    "every_mistake_is_an_update": every_mistake_is_an_update,
}
"""All checks by name, except the comparison with a reference implementation."""


def _streams() -> Iterator[Stream]:
    """Random streams: points in a box, labelled by a sine wave, some labels flipped."""
    for rounds, features, noise in ((1, 1, 0.0), (70, 1, 0.4), (150, 3, 0.1), (260, 2, 0.2)):
        rng = np.random.default_rng(rounds)
        X = rng.normal(size=(rounds, features)).round(3)
        wave = np.sin(2 * X[:, 0]) + 0.5 * X.sum(axis=1)
        wave += noise * rng.normal(size=rounds)
        flipped = rng.random(rounds) < noise
        positive = (wave >= 0) != flipped
        yield Stream(X, np.where(positive, 1.0, -1.0))


def harder_streams() -> Iterator[Stream]:
    """Random streams of three classes, with weights, and with ties.

    Ties: rows so far apart that κ is 0 and so is f(x) at a new row, each repeated with equal and
    with other labels.
    """
    rng = np.random.default_rng(38)
    rounds = 80
    X = rng.normal(size=(rounds, 2)).round(3)
    wave = X[:, 0] + 0.3 * np.sin(5 * X[:, 1])
    classes = np.digitize(wave, [-0.4, 0.4]).astype(float)
    signs = np.where(classes > 0, 1.0, -1.0)
    weights = rng.choice([0.2, 1.0, 3.0], size=rounds)
    places = np.repeat(np.arange(1.0, 21.0), 4)
    far = 1e3 * rng.permutation(places)[:, None]
    yield Stream(X, classes, classes=3)
    yield Stream(X, signs, weights=weights)
    yield Stream(X, classes, classes=3, weights=weights)
    two_labels = rng.choice([-1.0, 1.0], size=rounds)
    yield Stream(far, two_labels)
    four_labels = rng.integers(4, size=rounds).astype(float)
    yield Stream(far, four_labels, classes=4)


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
    indptr = np.arange(rounds + 1) * width
    return CsrRows(indptr=indptr, columns=columns, values=X.ravel(), width=width)


def _run(learner: Learner, stream: Stream, kernel: Kernel, **options: Any) -> tuple[Player, Floats]:
    """Run a learner; return the player and its scores. T is the stream length unless given."""
    given = {"horizon": len(stream.y), "classes": stream.classes, **options}
    player = Player(learner, kernel, **given)
    scores = _feed(player, stream)
    return player, scores


def _resumed(player: Player, learner: Learner, *, kernel: Kernel, classes: int) -> Player:
    """A new player of another seed that continues from the saved state of this one."""
    state = copy.deepcopy(player.state_dict())
    fresh = type(learner)(**player.learner.params())
    resumed = Player(fresh, kernel, classes=classes, seed=(99,))
    resumed.load_state_dict(state)
    return resumed


def _calls(learner: Learner) -> list[int]:
    """A list to which the round of each call of `update` is added from now on."""
    rounds: list[int] = []
    update = learner.update

    def noted(f: Any, y: Any, margin: float) -> bool | None:
        rounds.append(learner.round)
        return update(f, y, margin)

    vars(learner)["update"] = noted
    return rounds


def _feed(player: Player, stream: Stream) -> Floats:
    return player.feed(stream.X, stream.y, stream.weights)


def _norms(f: Any) -> list[float]:
    """‖f_c‖ of each class, from kernel values; of other hypotheses ‖f‖ as they report it."""
    if not isinstance(f, Expansion) or f.points is None:
        return [f.norm]
    gram = f.kernel.between(f.points, f.points)
    columns = f.coefficients.T if f.coefficients.ndim > 1 else [f.coefficients]
    squares = [float(a @ gram @ a) for a in columns]
    return [math.sqrt(max(square, 0.0)) for square in squares]


def _counts(player: Player) -> dict[str, Any]:
    counts = {name: getattr(player.tally, name) for name in COUNTS}
    return counts | player.statistics()


def _agree(
    law: str,
    player: Player,
    scores: Floats,
    *,
    expected: Floats,
    counts: Mapping[str, Any] | None = None,
    exactly: bool = False,
) -> None:
    """Assert that scores, and the counts if given, are as expected; `law` names the property."""
    broken = f"{player.learner.name} {law}: no"
    rtol = 0.0 if exactly else 1e-7
    atol = 0.0 if exactly else 1e-9
    np.testing.assert_allclose(scores, expected, rtol=rtol, atol=atol, err_msg=broken)
    if counts is None:
        return
    own = _counts(player)
    for name, count in counts.items():
        same = own[name] == count or math.isclose(own[name], count, rel_tol=1e-9)
        assert same, f"{broken}, {name} is {own[name]}, not {count}"


def _gaussian(u: Row, v: Row) -> float:
    """κ(u, v) by its definition, for reference implementations."""
    distance = math.fsum((a - b) ** 2 for a, b in zip(u, v, strict=True))
    return math.exp(-distance / (2 * KERNEL.sigma**2))
