"""More than two classes, and what is counted: a learner per class, or one active set for all."""

from __future__ import annotations

import math
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, Expansion, Gaussian, Learner, Player, choice
from ahpatron_cli.core.rows import Floats, compressed
from reference import kernels as formulas
from reference import second_order, twins, two_memories

CLASSES = 4
ROUNDS = 300
_rng = np.random.default_rng(8)
X = _rng.uniform(-1, 1, (ROUNDS, 3))
Y = np.digitize(X[:, 0] + 0.3 * np.sin(5 * X[:, 1]), [-0.5, 0.0, 0.4]).astype(float)
Y[_rng.random(ROUNDS) < 0.1] = 2.0
KERNEL = Gaussian(sigma=0.5)

SHARED = ("ahpatron shared", "ahpatron+ shared", "arow shared", "metron shared")


def player(name: str, block: int = 64, **params: Any) -> Player:
    kind = REGISTRY[name.split()[0]]
    given = {"budget": 20, "multiclass": "shared" if name in SHARED else "rest", **params}
    learner = kind(**{name: value for name, value in given.items() if name in kind.specs()})
    options = {"classes": CLASSES, "seed": (3,), "horizon": ROUNDS, "block": block}
    return Player(learner, KERNEL, **options)


@pytest.mark.parametrize("name", ["ahpatron", "rbp", "fogd", "arow", "metron"])
def test_each_class_has_the_binary_learner_of_its_own(name: str) -> None:
    """With identical scores, at any block size; updates are sums, and the largest value decides."""
    for block in (1, 64):
        ours = player(name, block)
        scores = ours.feed(X, Y)
        updates = margin_updates = 0
        for c in range(CLASSES):
            alone = Player(ours.learner, KERNEL, seed=(3, c), horizon=ROUNDS, block=block)
            signs = np.where(c == Y, 1.0, -1.0)
            np.testing.assert_array_equal(scores[:, c], alone.feed(X, signs))
            updates += alone.tally.updates
            margin_updates += alone.tally.margin_updates
        assert (ours.tally.updates, ours.tally.margin_updates) == (updates, margin_updates)
        assert ours.tally.mistakes == np.count_nonzero(scores.argmax(axis=1) != Y)


@pytest.mark.parametrize("classes", [2, CLASSES])
@pytest.mark.parametrize("piece", [1, 37, ROUNDS])
def test_counts_by_class_and_the_baseline(classes: int, piece: int) -> None:
    labels = Y if classes > 2 else np.where(Y > 1, 1.0, -1.0)
    ours = Player(REGISTRY["ahpatron"](budget=20), KERNEL, classes=classes)
    cuts = [slice(start, start + piece) for start in range(0, ROUNDS, piece)]
    scores = np.concatenate([ours.feed(X[cut], labels[cut]) for cut in cuts])
    said = scores.argmax(axis=1) if classes > 2 else scores >= 0
    wanted = np.zeros((classes, classes), int)
    baseline = 0
    seen = [0] * classes
    for y, found in zip(labels.astype(int).clip(min=0), said.astype(int), strict=True):
        wanted[y, found] += 1
        # of equally frequent labels the first, or +1
        baseline += y != (seen.index(max(seen)) if classes > 2 else seen[1] >= seen[0])
        seen[y] += 1
    np.testing.assert_array_equal(ours.tally.confusion, wanted)
    assert ours.tally.baseline_mistakes == baseline
    assert ours.tally.mistakes == ROUNDS - wanted.trace()


def test_the_first_round_of_a_stream_is_no_near_tie() -> None:
    ours = Player(REGISTRY["perceptron"]())
    ours.feed([[0.0]], [-1.0])
    assert ours.tally.near_ties == 0
    ours.feed([[0.0]], [1.0])  # f(x) = -1, and then f = 0
    ours.feed([[0.0]], [1.0])
    assert ours.tally.near_ties == 1


@pytest.mark.parametrize("name", ["ahpatron", "rbp", "fogd", "arow", *SHARED])
def test_no_round_sees_a_later_one_and_sparse_is_dense(name: str) -> None:
    before = player(name).feed(X, Y)
    altered = Y.copy()
    altered[150:] = (Y[150:] + 1) % CLASSES
    np.testing.assert_array_equal(player(name).feed(X, altered)[:151], before[:151])
    thin = np.where(np.abs(X) < 0.5, 0.0, X)
    sparse = player(name).feed(compressed(thin), Y)
    np.testing.assert_allclose(sparse, player(name).feed(thin, Y), rtol=1e-7, atol=1e-9)


FLIPPED = np.where(np.arange(ROUNDS) < 150, Y, (Y + 1) % CLASSES)
DOUBLED = np.repeat(X[:150].round(1), 2, axis=0)


@pytest.mark.parametrize(
    ("rows", "labels"),
    [(X, Y), (X, FLIPPED), (DOUBLED, Y)],
    ids=["one concept", "another concept after 150 rounds", "each row twice"],
)
@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("ahpatron shared", {}),
        ("ahpatron shared", {"rescale": 0.6, "epsilon": 0.9, "radius": 0.7}),
        ("ahpatron+ shared", {}),
        ("ahpatron+ shared", {"budget": 7 * 2, "selection": "magnitude"}),
        ("arow shared", {}),
        ("arow shared", {"budget": 300, "alarm": 3.0}),
        ("metron shared", {}),
        ("metron shared", {"alarm": 6.0}),
        ("metron shared", {"alarm": 6.0, "tracker": "on"}),
    ],
)
def test_shared_learners_equal_their_twins(
    name: str, params: dict[str, Any], rows: Floats, labels: Floats
) -> None:
    """Twins know nothing of blocks, so block sizes do not matter either."""
    own = player(name, **params).learner.params()
    del own["multiclass"]
    own.pop("caution", None)
    rules = {"arow": second_order.arow, "metron": two_memories.metron}
    rule = rules.get(name.split()[0], twins.ahpatron)
    listed = rows.tolist()
    kernel = formulas.tabled(listed, formulas.gaussian(0.5))
    trace = rule(listed, labels.astype(int).tolist(), kernel, classes=CLASSES, **own)
    for block in (1, 7, 64, 256):
        ours = player(name, block, **params)
        np.testing.assert_allclose(ours.feed(rows, labels), trace.scores, rtol=1e-7, atol=1e-8)
        for count in ("mistakes", "updates", "margin_updates"):
            assert getattr(ours.tally, count) == getattr(trace, count), count
        assert ours.statistics().get("halvings", 0) == trace.halvings
        assert ours.statistics().get("restarts", 0) == len(trace.restarts)
        assert ours.f.size == len(trace.points) <= own["budget"]
        assert math.isclose(ours.f.norm, math.hypot(*trace.norms()), rel_tol=1e-6)


def test_many_classes_that_were_never_seen_are_ties() -> None:
    """They are equal up to rounding, in every round of a block, and block sizes do not matter."""
    rng = np.random.default_rng(8)
    labels = rng.integers(0, 301, ROUNDS)
    rows = rng.normal(size=(301, 3))[labels] + 0.1 * rng.normal(size=(ROUNDS, 3))
    counts = []
    for block in (1, 64):
        ours = Player(REGISTRY["arow"](budget=100), Gaussian(sigma=3), classes=301, block=block)
        ours.feed(rows, labels.astype(float))
        tally = ours.tally
        counts.append((tally.updates, tally.margin_updates, tally.confusion.tolist()))
    assert counts[0] == counts[1]
    assert counts[0][0] > 250


@dataclass
class Idle(Learner):
    """Classes on one S, of which it learns one example only."""

    name = title = "idle"
    multiclass: str = choice("", "several classes", "shared")
    update_below = -math.inf

    def update(self, f: Expansion, y: Any, margin: float) -> None:
        if not f.size:
            f.add(y)


def test_scores_that_are_not_counted_yet_need_little_memory() -> None:
    """With many classes, pieces of many rows are counted sooner."""
    classes = 500
    rounds = 1024
    rows = np.ones((rounds, 2))
    labels = np.zeros(rounds)
    ours = Player(Idle(), classes=classes)
    ours.feed(rows, labels)
    tracemalloc.start()
    try:
        for _ in range(16):  # 4 MB of scores each
            ours.feed(rows, labels)
        assert tracemalloc.get_traced_memory()[0] < 40e6
    finally:
        tracemalloc.stop()
    assert ours.tally.rounds == 17 * rounds


@pytest.mark.parametrize("way", ["shared", "rest"])
def test_statistics_that_are_no_counts_are_those_of_one_learner(way: str) -> None:
    """Classes on one S have one learner; with a learner per class, only counts can be summed."""
    ours = player("metron", multiclass=way)
    ours.feed(X, Y)
    found = ours.statistics()
    assert found["metric_changes"] > 0
    if way == "shared":
        assert 1.0 <= found["effective_features"] <= 3.0
    else:
        assert "effective_features" not in found
