"""Laws that every registered learner obeys. A learner added to the registry gets them for free."""

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from ahpatron_cli.core import REGISTRY, Expansion, Kernel, Learner, Player, choice, integer, real
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.points import DensePoints
from ahpatron_cli.testing import (
    LAWS,
    Setting,
    Stream,
    check_learner,
    equals_reference,
    harder_streams,
    variants,
)
from reference import kernels as formulas
from support.cases import CASES, KERNEL_PAIRS, TWINS, Case
from support.effort import examples
from support.streams import Example, make_stream, streams

ONE_OF_EACH = {(case.name, "tracker" in case.params): case for case in CASES}
"""The last case of each learner, which has most parameters; of metron with and without tracker."""

every_case = pytest.mark.parametrize("case", CASES, ids=str)


def test_every_learner_has_a_twin_and_a_case() -> None:
    assert set(TWINS) == set(REGISTRY) == {case.name for case in CASES}


@every_case
@examples(25)
@given(stream=streams())
def test_engine_equals_reference(case: Case, stream: Example) -> None:
    kernel, formula = KERNEL_PAIRS["gaussian"]
    player = Player(case.learner(), kernel, block=16)
    scores = player.feed(stream.X, stream.y)
    rows = stream.rows
    trace = case.twin(rows, stream.labels, formulas.tabled(rows, formula))
    np.testing.assert_allclose(scores, trace.scores, rtol=1e-7, atol=1e-9)
    tally = player.tally
    assert tally.mistakes == trace.mistakes
    assert tally.nonpositive_margins == trace.nonpositive_margins
    assert tally.updates == trace.updates
    assert tally.margin_updates == trace.margin_updates
    assert player.f.size in (None, len(trace.points))
    if isinstance(player.f, Expansion):
        np.testing.assert_allclose(player.f.coefficients, trace.coefficients, rtol=1e-7, atol=1e-9)
    assert player.f.norm == pytest.approx(trace.norms()[0], rel=1e-7, abs=1e-9)
    found = player.learner.statistics()
    assert found.get("halvings", trace.halvings) == trace.halvings
    assert found.get("restarts", len(trace.restarts)) == len(trace.restarts)
    if found.get("zeta") is not None:
        U = player.learner.params()["radius"]
        zeta = sum(trace.gaps) / (U * trace.halvings)
        assert found["zeta"] == pytest.approx(zeta, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("case", {case.name: case for case in CASES}.values(), ids=str)
@pytest.mark.parametrize("kernel_name", [name for name in KERNEL_PAIRS if name != "gaussian"])
def test_engine_equals_twin_with_every_kernel(case: Case, kernel_name: str) -> None:
    kernel, formula = KERNEL_PAIRS[kernel_name]
    if case.only_gaussian:
        with pytest.raises(ParameterError, match="gaussian kernel only"):
            Player(case.learner(), kernel)
        return
    stream = make_stream(seed=5, rounds=70, features=3)
    stream.X[17] = 0.0  # κ(0, 0) = 0 for the linear kernel
    rows = stream.rows
    trace = case.twin(rows, stream.labels, formulas.tabled(rows, formula))
    scores = Player(case.learner(), kernel).feed(stream.X, stream.y)
    # Few features and a linear kernel give tiny f(x); what matters is that predictions agree.
    np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-7)


def law_test(law: str) -> Callable[..., None]:
    """A test that a law holds for all learners.

    Each law has a function of its own: Hypothesis derives the settings of each case from those of
    the case before, and a thousand cases of one function exceed the limit of recursion.
    """

    @every_case
    @examples(6)
    @given(stream=streams(max_rounds=150))
    def test(case: Case, stream: Example) -> None:
        LAWS[law](Setting(case.learner(), Stream(stream.X, stream.y)))

    return test


for _law in LAWS:
    globals()[f"test_law_{_law}"] = law_test(_law)


def one_of_each_or_slow() -> list[Any]:
    """All cases; of each learner, all but one are left to the slow part."""
    marked = []
    for case in CASES:
        marks = () if case in ONE_OF_EACH.values() else pytest.mark.slow
        marked.append(pytest.param(case, marks=marks, id=str(case)))
    return marked


@pytest.mark.parametrize("case", one_of_each_or_slow())
@pytest.mark.parametrize("law", LAWS)
def test_law_with_classes_weights_and_ties(case: Case, law: str) -> None:
    for stream in harder_streams():
        for learner in variants(case.learner(), stream):
            LAWS[law](Setting(learner, stream))


# Laws that are broken -----------------------------------------------------------------------------


FAULTS = (
    "unseeded",
    "global numbers",
    "own generator",
    "class attribute",
    "global variable",
    "undeclared",
    "moving parameter",
    "peeking",
    "peeking at the next",
    "by block",
    "lenient",
    "wrong norm",
    "dense",
    "late drops",
)
CALLED = [0]
"""A global variable that a faulty learner changes."""


@dataclass
class Faulty(Learner):
    """A Perceptron that takes every margin below 1/2, and a fault that breaks a law."""

    name = title = "faulty"
    budget: int = integer("B", "most examples kept: not observed", default=1000)
    radius: float = real("U", "radius: not observed", default=1e9)
    fault: str = choice("", "what is wrong", "none", *FAULTS)
    update_below = 0.5
    seen = [0]  # noqa: RUF012  # a count of the class, not of the pass

    def begin(self, kernel: Kernel, classes: tuple[int, ...] = ()) -> Expansion:
        if self.fault == "own generator":
            self._own = np.random.default_rng(3)
        if self.fault == "late drops":
            self.update_below = math.inf
        return Expansion(kernel, classes)

    def update(self, f: Expansion, y: float, margin: float) -> None:
        match self.fault:
            case "unseeded":
                y *= np.random.default_rng().random()
            case "global numbers":
                y *= random.random()
            case "own generator":
                y *= self._own.random()
            case "class attribute":
                self.seen[0] += 1
                y /= 1 + self.seen[0]
            case "global variable":
                CALLED[0] += 1
                y /= 1 + CALLED[0]
            case "undeclared":  # and therefore not saved
                self._seen = getattr(self, "_seen", 0) + 1
                y /= 1 + self._seen
            case "lenient":
                self.update_below = -0.5
            case "moving parameter":
                self.radius *= 0.99
                y *= self.radius / 1e9
            case "peeking at the next" if f.t + 1 < f.m:
                y *= 1 + f.K[f.t + 1, f.n + f.t]
            case "peeking":  # at the examples of rounds to come
                y *= 1 + f.K[-1].sum()
            case "by block":
                y /= 1 + f.t
            case "dense":
                y *= 1 + isinstance(f.block, DensePoints)
        f.add(y)
        if self.fault == "wrong norm":
            f.square = f.square + 1.0
        if self.fault == "late drops" and self.round % 8 == 7:
            while f.size > self.budget:
                f.drop(f.oldest)


@pytest.mark.parametrize(
    ("params", "law", "said"),
    [
        ({"budget": 3}, "budget_and_radius_hold", "is above the budget, 3"),
        ({"budget": 3, "fault": "late drops"}, "budget_and_radius_hold", "above the budget, 3"),
        ({"radius": 0.5}, "budget_and_radius_hold", "is above the radius"),
        ({"fault": "unseeded"}, "a_run_can_be_repeated", "not from self.rng"),
        ({"fault": "global numbers"}, "a_run_can_be_repeated", "not from self.rng"),
        ({"fault": "own generator"}, "pieces_are_one_stream", "`_own` is another random generator"),
        ({"fault": "class attribute"}, "a_run_can_be_repeated", "share the class attribute `seen`"),
        ({"fault": "global variable"}, "a_run_can_be_repeated", "such as a global variable"),
        ({"fault": "undeclared"}, "pieces_are_one_stream", "state_fields does not have `_seen`"),
        ({"fault": "moving parameter"}, "pieces_are_one_stream", "changes the parameter `radius`"),
        ({"fault": "peeking at the next"}, "block_size_never_matters", "cannot read examples of"),
        ({"fault": "peeking"}, "no_round_sees_a_later_one", "looks ahead: rounds up to"),
        ({"fault": "by block"}, "block_size_never_matters", "depends on the block size, 1"),
        ({"fault": "lenient"}, "every_mistake_is_an_update", "not update after the mistake"),
        ({"fault": "wrong norm"}, "tracked_norm_is_the_norm", "tracks another ‖f‖"),
        ({"fault": "dense"}, "sparse_is_dense", "on sparse rows than on dense"),
    ],
    ids=str,
)
def test_a_law_that_is_broken_is_named(params: dict[str, Any], law: str, said: str) -> None:
    with pytest.raises(AssertionError, match=f"(?s)the law {law} is broken: .*{said}"):
        check_learner(Faulty, **params)


def test_a_learner_without_faults_breaks_no_law() -> None:
    check_learner(Faulty)


def test_a_learner_that_differs_from_its_reference_is_told() -> None:
    with pytest.raises(AssertionError, match="differs from its reference"):
        check_learner(Faulty, lambda X, *_, **params: [0.0] * len(X))


def test_numbers_that_the_tests_themselves_draw_are_not_changed() -> None:
    make_generator = np.random.default_rng
    check_learner(Faulty)
    assert np.random.default_rng is make_generator


def test_counts_are_compared_with_the_twin() -> None:
    stream = make_stream(seed=2, rounds=40, features=2)
    case = Case("perceptron")
    trace = case.twin(stream.rows, stream.labels, formulas.gaussian(0.7))
    trace.updates += 1
    setting = Setting(case.learner(), Stream(stream.X, stream.y))
    with pytest.raises(AssertionError, match="updates"):
        equals_reference(setting, lambda *_: trace, {})
