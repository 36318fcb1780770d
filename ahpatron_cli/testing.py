"""Checks for learners of your own: properties that every learner must have.

    from ahpatron_cli.testing import check_learner
    check_learner(MyLearner, budget=20)

No test framework is needed: a violated property raises an AssertionError that names it.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.core import Gaussian, Kernel, Learner, Player, mistaken, predicted
from ahpatron_cli.core.engine import BLOCK
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.expansion import Expansion, Hypothesis
from ahpatron_cli.core.learners.base import CALLS, SET_BY_ENGINE
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import CsrRows, Floats, compressed

Row: TypeAlias = list[float]
Count: TypeAlias = int | float | None
"""A count or a statistic; None if it is not defined yet."""
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
        rows = slice(start, stop)
        X = self.X[rows]
        y = self.y[rows]
        weights = self.weights
        if weights is not None:
            weights = weights[rows]
        return self._replace(X=X, y=y, weights=weights)

    @property
    def other_labels(self) -> Floats:
        """Labels that all differ from those of the stream."""
        if self.classes == 2:
            return -self.y
        return (self.y + 1) % self.classes


class FinishedRun(NamedTuple):
    """A run on a stream: the player after it, and f(x) of each round."""

    player: Player
    scores: Floats

    def counts(self) -> dict[str, Count]:
        """Counts of the run and statistics of its learner, by name."""
        player = self.player
        counts = _counts_of(player.tally)
        return counts | player.statistics()

    def check_scores(self, violation: str, expected: Floats, *, exactly: bool = False) -> None:
        """Assert that the scores are as expected; `violation` says what the learner does if not."""
        message = self._said(violation)
        rtol = 1e-7
        atol = 1e-9
        if exactly:
            rtol = 0.0
            atol = 0.0
        np.testing.assert_allclose(
            self.scores,
            expected,
            rtol=rtol,
            atol=atol,
            err_msg=message,
        )

    def check_counts(self, violation: str, expected: Mapping[str, Count]) -> None:
        """Assert that the counts are as expected; `violation` says what the learner does if not."""
        own = self.counts()
        for name, wanted in expected.items():
            found = own[name]
            if not _same_count(found, wanted):
                said = self._said(violation)
                raise AssertionError(f"{said}: {name} is {found}, not {wanted}")

    def _said(self, violation: str) -> str:
        return f"{self.player.learner.name} {violation}"


def _counts_of(tally: object) -> dict[str, Count]:
    """The counts of a tally that `COUNTS` names, by name."""
    counts: dict[str, Count] = {}
    for name in COUNTS:
        if hasattr(tally, name):
            counts[name] = getattr(tally, name)
    return counts


def _same_count(found: Count, wanted: Count) -> bool:
    """Whether two counts are equal up to rounding; None is not defined."""
    if found is None or wanted is None:
        return found is wanted
    return math.isclose(found, wanted, rel_tol=1e-9)


@dataclass(frozen=True)
class Setting:
    """A learner, a stream and a kernel: what a law is checked for."""

    learner: Learner
    stream: Stream
    kernel: Kernel = KERNEL

    def on(self, stream: Stream) -> Setting:
        """The learner and the kernel on another stream."""
        return replace(self, stream=stream)

    def player(self, block: int = BLOCK) -> Player:
        """A new player; T is the length of the stream unless the learner has it."""
        classes = self.stream.classes
        horizon = len(self.stream.y)
        return Player(
            self.learner,
            self.kernel,
            classes=classes,
            horizon=horizon,
            block=block,
        )

    def run(self, block: int = BLOCK) -> FinishedRun:
        """Run the learner on the stream."""
        player = self.player(block)
        scores = _feed(player, self.stream)
        return FinishedRun(player, scores)


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
        setting = Setting(learner, stream)
        _check_laws(setting)
        if reference is not None:
            equals_reference(setting, reference, params)
    for stream in harder_streams():
        for variant in variants(learner, stream):
            setting = Setting(variant, stream)
            _check_laws(setting)


def _check_laws(setting: Setting) -> None:
    """Check all laws; the error names the first one that is broken."""
    for name, law in LAWS.items():
        try:
            law(setting)
        except AssertionError as violation:
            raise AssertionError(f"the law {name} is broken: {violation}") from None


def variants(learner: Learner, stream: Stream) -> Iterator[Learner]:
    """The learner in each way in which it can run on a stream; none if it cannot.

    Several classes are learned on one S and by one learner per class. Only learners with
    `takes_costs` run on weighted examples.
    """
    if stream.weights is not None and not learner.takes_costs:
        return
    spec = learner.specs().get("multiclass")
    ways: tuple[str, ...] = ()
    if spec is not None:
        ways = spec.words
    if stream.classes == 2 or not ways:
        yield learner
        return
    for way in ways:
        params = {**learner.params(), "multiclass": way}
        # a learner may refuse a combination of parameters
        with contextlib.suppress(ParameterError):
            yield type(learner)(**params)


def equals_reference(setting: Setting, reference: Reference, params: Mapping[str, Value]) -> None:
    """Check that scores and counts equal those of the reference implementation."""
    run = setting.run(block=16)
    stream = setting.stream
    rows = stream.X.tolist()
    labels = stream.y.astype(int).tolist()
    trace = reference(rows, labels, _gaussian, **params)
    scores = getattr(trace, "scores", trace)
    violation = "differs from its reference implementation"
    run.check_scores(violation, np.array(scores))
    run.check_counts(violation, _counts_of(trace))


def a_run_can_be_repeated(setting: Setting) -> None:
    """Check that a second run of an equal learner gives the same scores.

    If not, the learner draws random numbers that are not from `self.rng`, or has a state that runs
    share: an attribute of the class, a global variable.
    """
    learner = setting.learner
    kind = type(learner)
    before = _class_attributes(kind)
    with _noting_foreign_numbers() as foreign:
        first = setting.run()
        equal = kind(**learner.params())
        second = replace(setting, learner=equal).run()
    if np.array_equal(first.scores, second.scores, equal_nan=True):
        return
    after = _class_attributes(kind)
    shared = []
    for name, value in after.items():
        if not _is_same(before.get(name), value):
            shared.append(name)
    reasons = []
    if shared:
        reasons.append(f"runs share the class attribute {_quoted(shared)}, which changed")
    if foreign:
        reasons.append("it draws random numbers that are not from self.rng")
    if not reasons:
        reasons.append(
            "it draws random numbers that are not from self.rng, or changes something outside of "
            "itself, such as a global variable"
        )
    why = " and ".join(reasons)
    raise AssertionError(f"{learner.name} gives other scores in a second run: {why}")


def _class_attributes(kind: type) -> dict[str, Any]:
    """Copies of the attributes of a class and its bases that are values, by name."""
    values: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        for name, value in vars(base).items():
            is_special = name.startswith("__")
            is_method = callable(value) or hasattr(value, "__get__")
            if is_special or is_method:
                continue
            with contextlib.suppress(Exception):  # what cannot be copied is not compared
                values[name] = copy.deepcopy(value)
    return values


def _is_same(before: object, after: object) -> bool:
    """Whether a value has not changed; generators are compared by their states."""
    kind = np.random.Generator
    if isinstance(before, kind) and isinstance(after, kind):
        old_state = before.bit_generator.state
        return bool(old_state == after.bit_generator.state)
    if isinstance(before, np.ndarray):
        return isinstance(after, np.ndarray) and np.array_equal(before, after)
    return bool(before == after)


@contextlib.contextmanager
def _noting_foreign_numbers() -> Iterator[list[str]]:
    """Note whether numbers are drawn from the generators of `random` and `numpy.random`.

    The list that it yields then has an entry; also if a generator without a seed is made.
    """
    found: list[str] = []
    make_generator = np.random.default_rng
    python_state = random.getstate()
    numpy_state = repr(np.random.get_state(legacy=False))  # noqa: NPY002 - what must not be used

    def noted(seed: Any = None) -> np.random.Generator:
        if seed is None:
            found.append("default_rng")
        return make_generator(seed)

    np.random.default_rng = noted
    try:
        yield found
    finally:
        np.random.default_rng = make_generator
    if random.getstate() != python_state:
        found.append("random")
    if repr(np.random.get_state(legacy=False)) != numpy_state:  # noqa: NPY002
        found.append("numpy.random")


def _quoted(names: Iterable[str]) -> str:
    """The names in backticks, with commas."""
    quoted = [f"`{name}`" for name in names]
    return ", ".join(quoted)


def block_size_never_matters(setting: Setting) -> None:
    """Check that the results do not depend on the block size."""
    expected = setting.run()
    counts = expected.counts()
    for block in (1, 7, 33, 256):
        violation = f"depends on the block size, {block}"
        if block == 1:
            violation += ": with blocks of one round, it cannot read examples of later rounds"
        run = setting.run(block)
        run.check_scores(violation, expected.scores)
        run.check_counts(violation, counts)


def no_round_sees_a_later_one(setting: Setting) -> None:
    """Check that the prediction of round t depends neither on its label nor on later examples."""
    before = setting.run().scores
    rounds = len(before)
    last = rounds - 1
    checked = {0, rounds // 3, last}
    for t in sorted(checked):
        changed = _changed_from(setting.stream, t)
        run = setting.on(changed).run()
        until = slice(t + 1)
        scores = run.scores[until]
        begun = FinishedRun(run.player, scores)
        violation = f"looks ahead: rounds up to {t} change with later examples"
        begun.check_scores(violation, before[until])


def _changed_from(stream: Stream, t: int) -> Stream:
    """The stream with other labels from round t on, and other rows after it."""
    later = slice(t + 1, None)
    X = stream.X.copy()
    X[later] = 2.5 - X[later]
    y = stream.y.copy()
    other = stream.other_labels
    y[t:] = other[t:]
    return stream._replace(X=X, y=y)


def budget_and_radius_hold(setting: Setting) -> None:
    """Check |S| <= B and ‖f‖ <= U for learners with a budget (`most_kept`) or radius.

    After every round, and after blocks of 8 rounds, within which S is not compacted.
    """
    stream = setting.stream
    rounds = len(stream.y)
    for block in (1, 8):
        player = setting.player(block)
        for t in range(0, rounds, block):
            part = stream.part(t, t + block)
            _feed(player, part)
            for loop in player.loops:
                _check_size(player.learner, loop.f)


def _check_size(learner: Learner, f: Hypothesis) -> None:
    """Assert that f is within the budget and the radius of its learner, if it has them."""
    name = learner.name
    limit = learner.most_kept
    if limit is not None:
        size = f.size or 0
        assert size <= limit, f"{name}: |S| = {size} is above the budget, {limit}"
    radius = getattr(learner, "radius", math.inf)
    radius *= 1 + 1e-9
    norm = max(_norms(f))
    assert norm <= radius, f"{name}: ‖f‖ = {norm} is above the radius, {radius}"


def one_object_runs_on_two_streams(setting: Setting) -> None:
    """Check that a run does not change the learner object: a second run gives the same scores."""
    stream = setting.stream
    learner = setting.learner
    first = setting.run()
    X = 1.5 - stream.X[::-1]
    y = stream.other_labels[::-1]
    other = stream._replace(X=X, y=y)
    setting.on(other).run()
    equal = type(learner)(**learner.params())
    for same in (learner, equal):
        again = replace(setting, learner=same).run()
        again.check_scores("gives other scores after another stream", first.scores, exactly=True)


def pieces_are_one_stream(setting: Setting) -> None:
    """Check that rows fed one by one, or in pieces with save and resume in between, agree.

    Results must be bit-identical if all pieces end at multiples of 64 rounds, else up to rounding.
    """
    expected = setting.run()
    counts = expected.counts()
    rounds = len(setting.stream.y)
    rng = np.random.default_rng(rounds)
    any_lengths = rng.integers(1, 90, size=rounds)
    pieces = {
        "one row": itertools.repeat(1),
        "64 rows": itertools.repeat(64),
        "any number of rows": any_lengths.tolist(),
    }
    for name, lengths in pieces.items():
        violation = f"gives other results on pieces of {name}"
        resumes = name != "one row"
        if resumes:
            violation += f", saved and resumed in between{_unsaved(setting)}"
        run = _run_in_pieces(setting, lengths, resumes=resumes)
        exactly = name == "64 rows"
        run.check_scores(violation, expected.scores, exactly=exactly)
        run.check_counts(violation, counts)


def _unsaved(setting: Setting) -> str:
    """What changes in a run and is not saved, for the message of a violation; "" if nothing."""
    player = setting.player()
    learner = player.learner
    given = learner.params()
    known = {
        *given,
        *learner.state_fields,
        *SET_BY_ENGINE,
        *CALLS,
    }
    begun = copy.deepcopy(vars(learner))
    _feed(player, setting.stream)
    changed = []
    generators = []
    for name, value in vars(player.learner).items():
        if name in known:
            continue
        if isinstance(value, np.random.Generator | random.Random):
            generators.append(name)
            continue
        is_begun = name in begun
        if not is_begun or not _is_same(begun[name], value):
            changed.append(name)
    reached = player.learner.params()
    moved = [name for name in given if not _is_same(given[name], reached[name])]
    text = ""
    if moved:
        text += f" (it changes the parameter {_quoted(moved)})"
    if generators:
        text += f" ({_quoted(generators)} is another random generator than self.rng)"
    if changed:
        text += f" (state_fields does not have {_quoted(changed)})"
    return text


def _run_in_pieces(setting: Setting, lengths: Iterable[int], *, resumes: bool) -> FinishedRun:
    """Run the learner on pieces of so many rows; saved and resumed after each of them if asked."""
    stream = setting.stream
    player = setting.player()
    parts = []
    begin = 0
    for length in lengths:
        if begin >= len(stream.y):
            break
        end = begin + length
        piece = stream.part(begin, end)
        scores = _feed(player, piece)
        parts.append(scores)
        begin = end
        if resumes:
            player = _resumed(player)
    return FinishedRun(player, np.concatenate(parts))


def sparse_is_dense(setting: Setting) -> None:
    """Check that sparse rows give the same results as dense rows.

    Also with zeros that are stored, columns that are always 0, and a column with a large offset.
    """
    stream = setting.stream
    X = stream.X.copy()
    small = np.abs(X) < 0.5
    X[small] = 0.0
    for rows in (X, _with_offset_and_gaps(X)):
        expected = _run_on_rows(setting, rows).scores
        run = _run_on_rows(setting, compressed(rows))
        run.check_scores("gives other scores on sparse rows than on dense ones", expected)
        run = _run_on_rows(setting, _storing_zeros(rows))
        run.check_scores("gives other scores on sparse rows that store zeros", expected)


def _run_on_rows(setting: Setting, rows: Floats | CsrRows) -> FinishedRun:
    """Run the learner on the stream with other rows."""
    stream = setting.stream._replace(X=rows)
    return setting.on(stream).run()


def tracked_norm_is_the_norm(setting: Setting) -> None:
    """Check that ‖f‖ of an expansion is √(aᵀKa), and that `scores` returns what is predicted."""
    player = setting.run().player
    for loop in player.loops:
        f = loop.f
        if isinstance(f, Expansion) and f.points is not None:
            tracked = FinishedRun(player, scores=np.array(f.norm))
            norms = _norms(f)
            norm = math.hypot(*norms)
            tracked.check_scores("tracks another ‖f‖ than √(aᵀKa)", np.array(norm))
    stream = setting.stream
    x = stream.X[0]
    y = stream.y.item(0)
    score = np.array(player.score(x))
    prediction = np.array(player.learn(x, y))
    predicting = FinishedRun(player, prediction)
    predicting.check_scores("predicts another f(x) than `score` returns", score)


def every_mistake_is_an_update(setting: Setting) -> None:
    """Check that `update` is called after each wrong prediction, also where f(x) is a tie.

    Learners whose `update_below` is negative at first are left out.
    """
    stream = setting.stream
    player = setting.player()
    if player.learner.update_below < 0:
        return
    updates = [_rounds_of_updates(loop.learner) for loop in player.loops]
    scores = _feed(player, stream)
    y = stream.y
    for c, rounds in enumerate(updates):
        if stream.classes == 2:
            wrong = mistaken(y, y * scores)
        elif len(updates) == 1:
            wrong = predicted(scores) != y
        else:
            is_class = y == c
            signs = np.where(is_class, 1.0, -1.0)
            margins = signs * scores[:, c]
            wrong = mistaken(signs, margins)
        mistakes = np.flatnonzero(wrong)
        missed = np.setdiff1d(mistakes, rounds)
        if len(missed):
            name = setting.learner.name
            raise AssertionError(f"{name} does not update after the mistake of round {missed[0]}")


Law: TypeAlias = Callable[[Setting], None]
"""A check of one property."""
LAWS: dict[str, Law] = {
    # first those whose violation would break others, too
    "a_run_can_be_repeated": a_run_can_be_repeated,
    "no_round_sees_a_later_one": no_round_sees_a_later_one,
    "block_size_never_matters": block_size_never_matters,
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
    for rounds, features, noise in _SHAPES:
        rng = np.random.default_rng(rounds)
        shape = (rounds, features)
        X = rng.normal(size=shape).round(3)
        first = X[:, 0]
        total = X.sum(axis=1)
        waves = np.sin(2 * first) + 0.5 * total
        errors = rng.normal(size=rounds)
        wave = waves + noise * errors
        is_flipped = rng.random(rounds) < noise
        is_positive = wave >= 0
        y = np.where(is_positive != is_flipped, 1.0, -1.0)
        yield Stream(X, y)


_SHAPES = (
    (1, 1, 0.0),
    (70, 1, 0.4),
    (150, 3, 0.1),
    (260, 2, 0.2),
)
"""Rounds, features and share of flipped labels of the random streams."""


def harder_streams() -> Iterator[Stream]:
    """Random streams of three classes, with weights, and with ties.

    Ties: rows so far apart that κ is 0 and so is f(x) at a new row, each repeated with equal and
    with other labels.
    """
    rng = np.random.default_rng(38)
    rounds = 80
    shape = (rounds, 2)
    X = rng.normal(size=shape).round(3)
    first = X[:, 0]
    second = X[:, 1]
    sine = np.sin(5 * second)
    wave = first + 0.3 * sine
    numbers = np.digitize(wave, [-0.4, 0.4])
    classes = numbers.astype(float)
    signs = np.where(numbers > 0, 1.0, -1.0)
    weights = rng.choice([0.2, 1.0, 3.0], size=rounds)
    distinct = np.arange(1.0, 21.0)
    repeated = np.repeat(distinct, 4)
    places = rng.permutation(repeated)
    far = 1e3 * places[:, None]
    yield Stream(X, classes, classes=3)
    yield Stream(X, signs, weights=weights)
    yield Stream(X, classes, classes=3, weights=weights)
    two_labels = rng.choice([-1.0, 1.0], size=rounds)
    yield Stream(far, two_labels)
    four_labels = rng.integers(4, size=rounds)
    yield Stream(far, four_labels.astype(float), classes=4)


def _with_offset_and_gaps(X: Floats) -> Floats:
    """These rows with a column of zeros before each column, and a column of large offset."""
    rounds, width = X.shape
    doubled = 2 * width
    spaced = np.zeros((rounds, doubled + 1))
    spaced[:, 1::2] = X
    first = X[:, 0]
    angles = first + np.arange(rounds)
    varying = 2e-5 * np.sin(angles)
    spaced[:, -1] = 48.8566 + varying
    return spaced


def _storing_zeros(X: Floats) -> CsrRows:
    """These rows as sparse rows that store every value, also 0."""
    rounds, width = X.shape
    every = np.arange(width, dtype=np.int32)
    columns = np.tile(every, rounds)
    indptr = np.arange(rounds + 1) * width
    return CsrRows(indptr=indptr, columns=columns, values=X.ravel(), width=width)


def _resumed(player: Player) -> Player:
    """A new player of another seed that continues from the saved state of this one."""
    state = copy.deepcopy(player.state_dict())
    learner = player.learner
    new = type(learner)(**learner.params())
    resumed = Player(
        new,
        player.kernel,
        classes=player.classes,
        seed=(99,),
    )
    resumed.load_state_dict(state)
    return resumed


def _rounds_of_updates(learner: Learner) -> list[int]:
    """A list to which the round of each call of `update` is added from now on."""
    rounds: list[int] = []
    update = learner.update

    def noted(f: Hypothesis, y: float | Floats, margin: float) -> bool | None:
        rounds.append(learner.round)
        return update(f, y, margin)

    vars(learner)["update"] = noted
    return rounds


def _feed(player: Player, stream: Stream) -> Floats:
    return player.feed(stream.X, stream.y, stream.weights)


def _norms(f: Hypothesis) -> list[float]:
    """‖f_c‖ of each class, from kernel values; of other hypotheses ‖f‖ as they report it."""
    if not isinstance(f, Expansion) or f.points is None:
        return [f.norm]
    points = f.points
    gram = f.kernel.between(points, points)
    by_class = np.atleast_2d(f.coefficients.T)
    norms = []
    for a in by_class:
        square = float(a @ gram @ a)
        norm = math.sqrt(max(square, 0.0))
        norms.append(norm)
    return norms


def _gaussian(u: Row, v: Row) -> float:
    """κ(u, v) by its definition, for reference implementations."""
    pairs = zip(u, v, strict=True)
    squares = [(a - b) ** 2 for a, b in pairs]
    distance = math.fsum(squares)
    scale = 2 * KERNEL.sigma**2
    return math.exp(-distance / scale)
