"""A block that fails or is interrupted: its rounds are undone, and the stream can go on."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, Gaussian, Learner, Perceptron, Player
from ahpatron_cli.core.errors import NumericalError, StateError
from ahpatron_cli.core.expansion import Expansion
from ahpatron_cli.core.rows import compressed
from support.streams import make_stream

ROUNDS = 300
STREAM = make_stream(seed=4, rounds=ROUNDS, features=3)
CLASSES = (STREAM.y > 0) + (STREAM.X[:, 0] > 0.5).astype(float)  # 0, 1 and 2
GIVEN: dict[str, dict[str, Any]] = {
    "pomdr": {"horizon": ROUNDS},
    "skegd": {"horizon": ROUNDS, "budget": 40},
    "nogd": {"budget": 40},
    "arow": {"budget": 40, "alarm": 2.0},
    "metron": {"budget": 40, "alarm": 2.0},
}


def interrupted(name: str, at_call: int, **params: Any) -> tuple[Learner, Learner]:
    """A learner, and one that raises KeyboardInterrupt at the end of one of its updates."""
    kind = REGISTRY[name]
    calls: list[int] = []

    def update(self: Learner, f: Any, y: Any, margin: float) -> bool | None:
        counts: bool | None = kind.update(self, f, y, margin)
        calls.append(self.round)
        if len(calls) == at_call:
            raise KeyboardInterrupt
        return counts

    given = GIVEN.get(name, {"budget": 20} if "budget" in kind.specs() else {}) | params
    twin = dataclasses.dataclass(type("Interrupted", (kind,), {"update": update}))
    return kind(**given), twin(**given)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize(
    ("name", "params", "classes"),
    [
        *((name, {}, 2) for name in REGISTRY),
        *((name, {"multiclass": "shared"}, 3) for name in ("ahpatron", "arow", "metron")),
        *((name, {"multiclass": "rest"}, 3) for name in ("ahpatron", "arow", "metron")),
        ("rbp", {}, 3),
    ],
)
def test_a_stream_goes_on_after_an_interruption_as_if_there_had_been_none(
    name: str, params: dict[str, Any], classes: int, form: str
) -> None:
    """All scores and counts are those of an uninterrupted pass, bit for bit."""
    rows: Any = STREAM.X if form == "dense" else compressed(STREAM.X)
    labels = STREAM.y if classes == 2 else CLASSES
    for at_call in (1, 40, 61):
        plain, broken = interrupted(name, at_call, **params)
        options: dict[str, Any] = {"classes": classes, "horizon": ROUNDS}
        whole = Player(plain, Gaussian(sigma=0.7), **options)
        expected = whole.feed(rows, labels)
        player = Player(broken, Gaussian(sigma=0.7), **options)
        with pytest.raises(KeyboardInterrupt):
            player.feed(rows, labels)
        done = player.tally.rounds
        assert done % 64 == 0
        left = STREAM.X[done:] if form == "dense" else compressed(STREAM.X[done:])
        np.testing.assert_array_equal(player.feed(left, labels[done:]), expected[done:])
        assert dataclasses.asdict(player.tally) | {"seconds": 0, "confusion": 0} == (
            dataclasses.asdict(whole.tally) | {"seconds": 0, "confusion": 0}
        )
        np.testing.assert_array_equal(player.tally.confusion, whole.tally.confusion)
        assert player.statistics() == whole.statistics()


@pytest.mark.parametrize("piece", [1, 64, 100])
def test_blocks_since_the_last_copy_of_the_state_are_learned_again(piece: int) -> None:
    plain, broken = interrupted("arow", 140)
    expected = Player(plain).feed(STREAM.X, STREAM.y)
    player = Player(broken)
    scores = []
    start = 0
    while start < ROUNDS:
        part = slice(start, start + piece)
        try:
            scores.append(player.feed(STREAM.X[part], STREAM.y[part]))
            start += piece
        except KeyboardInterrupt:
            done = player.tally.rounds
            scores.append(expected[start:done])
            start = done
    np.testing.assert_allclose(np.concatenate(scores), expected, rtol=1e-9, atol=1e-12)


def test_a_saved_state_after_an_interruption_can_be_loaded() -> None:
    plain, broken = interrupted("arow", 90)
    player = Player(broken)
    with pytest.raises(KeyboardInterrupt):
        player.feed(STREAM.X, STREAM.y)
    done = player.tally.rounds
    assert 0 < done < ROUNDS
    state = player.state_dict()
    again = Player(broken).load_state_dict(state)
    whole = Player(plain)
    whole.feed(STREAM.X[:done], STREAM.y[:done])
    np.testing.assert_array_equal(again.scores(STREAM.X), whole.scores(STREAM.X))
    assert (again.learner.next_seen, again.learner.wrong) == (  # type: ignore[attr-defined]
        whole.learner.next_seen,  # type: ignore[attr-defined]
        whole.learner.wrong,  # type: ignore[attr-defined]
    )


@contextmanager
def sigint_after(seconds: float) -> Iterator[None]:
    """A real SIGINT, which Python turns into KeyboardInterrupt wherever the main thread is."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, before)


def feed_for_ever(player: Player, labels: np.ndarray) -> None:
    while True:
        player.feed(STREAM.X, labels)


@pytest.mark.parametrize(("name", "classes"), [("ahpatron", 2), ("arow", 2), ("rbp", 3)])
def test_a_signal_at_any_moment_leaves_the_state_of_the_rounds_that_are_counted(
    name: str, classes: int
) -> None:
    labels = STREAM.y if classes == 2 else CLASSES
    learner = REGISTRY[name](budget=40)
    for seconds in (0.01, 0.02, 0.03, 0.05, 0.08):
        player = Player(learner, Gaussian(sigma=0.7), classes=classes)
        with pytest.raises(KeyboardInterrupt), sigint_after(seconds):
            feed_for_ever(player, labels)
        whole = Player(learner, Gaussian(sigma=0.7), classes=classes)
        passes, rest = divmod(player.tally.rounds, ROUNDS)
        for _ in range(passes):
            whole.feed(STREAM.X, labels)
        whole.feed(STREAM.X[:rest], labels[:rest])
        np.testing.assert_array_equal(player.scores(STREAM.X), whole.scores(STREAM.X))
        assert player.tally.counts() | {"confusion": 0, "seconds": 0} == (
            whole.tally.counts() | {"confusion": 0, "seconds": 0}
        )
        loaded = Player(learner, Gaussian(sigma=0.7), classes=classes)
        loaded.load_state_dict(player.state_dict())


def test_a_row_that_makes_f_overflow_changes_nothing() -> None:
    """It can be left out, and the stream goes on as if it had never been there."""
    learner = REGISTRY["ahpatron"](budget=20)
    weights = np.ones(ROUNDS)
    weights[100] = 1e300  # ‖f‖² overflows after x was added to S
    labels = STREAM.y.copy()
    labels[100] = -np.sign(Player(learner).feed(STREAM.X, labels)[100])  # a mistake: an update
    player = Player(learner)
    with pytest.raises(NumericalError) as refused:
        player.feed(STREAM.X, labels, weights)
    assert refused.value.row == 100
    done = player.tally.rounds
    assert done == 64
    player.feed(STREAM.X[done:100], labels[done:100])
    player.feed(STREAM.X[101:], labels[101:])
    others = np.arange(ROUNDS) != 100
    whole = Player(learner)
    whole.feed(STREAM.X[others], labels[others])
    np.testing.assert_allclose(player.scores(STREAM.X), whole.scores(STREAM.X), rtol=1e-9)
    assert player.tally.mistakes == whole.tally.mistakes


def test_a_first_row_that_fails_decides_nothing() -> None:
    """Neither the layout of the stream nor its centre; and the empty state can be loaded."""
    _, broken = interrupted("ahpatron", 1)
    player = Player(broken)
    with pytest.raises(KeyboardInterrupt):
        player.learn([1e6, 1e6, 1e6], 1.0)
    Player(broken).load_state_dict(player.state_dict())
    scores = player.feed(compressed(STREAM.X), STREAM.y)
    expected = Player(REGISTRY["ahpatron"](budget=20)).feed(compressed(STREAM.X), STREAM.y)
    np.testing.assert_array_equal(scores, expected)


def test_a_learner_that_cannot_be_saved_stops_after_an_error_inside_a_block() -> None:
    @dataclasses.dataclass
    class Unsaved(Perceptron):
        state_fields = ("notes",)
        notes: ClassVar[Any] = [1, 2]  # neither a number nor text nor an array

        def update(self, f: Expansion, y: float, margin: float) -> None:
            f.add(y)
            if self.round > 100:
                raise ZeroDivisionError

    player = Player(Unsaved())
    with pytest.raises(ZeroDivisionError):
        player.feed(STREAM.X, STREAM.y)
    assert not player.is_intact
    for forbidden in (
        lambda: player.feed(STREAM.X, STREAM.y),
        lambda: player.scores(STREAM.X),
        lambda: player.tally,
        player.state_dict,
    ):
        with pytest.raises(StateError, match="could not be undone"):
            forbidden()


def test_the_journal_of_a_long_stream_is_bounded() -> None:
    player = Player(REGISTRY["ahpatron"](budget=20))
    for _ in range(10):
        player.feed(np.zeros((2**13, 3)), np.ones(2**13))
        journal = player._journal
        assert journal is not None
        assert sum(block.points.size for block in journal.blocks) <= journal.max_rounds
