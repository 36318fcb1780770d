"""Classes that appear while a stream is learned: each gets a copy of a spare function."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import Ahpatron, Arow, Gaussian, Perceptron, Player
from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.learners.metron import Metron
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.tally import Tally

LEARNERS = [
    Arow(budget=12),
    Arow(budget=12, multiclass="rest"),
    Metron(budget=12),
    Metron(budget=12, multiclass="rest"),
    Metron(budget=12, tracker="off"),
    Ahpatron(budget=12),
    Perceptron(),
]


def stream_of(classes: int, rows: int = 150) -> tuple[Floats, Floats]:
    """Rows in clusters, one per class; the classes are numbered as they appear."""
    rng = np.random.default_rng(5)
    drawn = np.minimum(rng.integers(0, classes, rows), 1 + np.arange(rows) // 20)
    order = list(dict.fromkeys(drawn.tolist()))
    labels = np.array([order.index(one) for one in drawn.tolist()], dtype=float)
    centres = rng.normal(size=(classes, 3))
    return centres[labels.astype(int)] + rng.normal(size=(rows, 3)), labels


def chosen(scores: Floats) -> list[int]:
    return scores.argmax(axis=1).tolist()


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_rows_in_pieces_and_alone_have_the_same_scores(learner: Learner) -> None:
    rows, labels = stream_of(6)
    whole = Player(learner, classes=1, growing=True)
    alone = Player(learner, classes=1, growing=True)
    scores = whole.feed(rows, labels)
    for row, label, expected in zip(rows, labels, scores, strict=True):
        found = alone.learn(row, label)
        assert found == pytest.approx(expected[: len(found)], abs=1e-9)
    assert (whole.tally.confusion == alone.tally.confusion).all()
    assert whole.classes == 6
    assert whole.tally.rounds == 150


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_classes_behind_rows_that_looked_like_a_pair_are_learned_row_by_row(
    learner: Learner,
) -> None:
    rows, labels = stream_of(6)
    second = int(np.argmax(labels == 1))
    looked_like_a_pair = Player(learner)
    looked_like_a_pair.feed(rows[:second], -np.ones(second))
    whole = Player(learner, classes=1, growing=True)
    alone = Player(learner, classes=1, growing=True)
    for player in (whole, alone):
        player.begin_after(looked_like_a_pair)
    scores = whole.feed(rows[second:], labels[second:])
    for row, label, expected in zip(rows[second:], labels[second:], scores, strict=True):
        found = alone.learn(row, label)
        assert found == pytest.approx(expected[: len(found)], abs=1e-9)
    assert (whole.tally.confusion == alone.tally.confusion).all()


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_class_is_not_predicted_before_its_first_row_is_known(learner: Learner) -> None:
    rows, labels = stream_of(6)
    scores = Player(learner, classes=1, growing=True).feed(rows, labels)
    for label in range(1, 6):
        first = int(np.argmax(labels == label))
        assert chosen(scores[: first + 1]).count(label) == 0


@pytest.mark.parametrize("kind", [Perceptron, Ahpatron, Arow, Metron])
def test_one_learner_per_class_has_the_f_of_declared_classes(kind: type[Any]) -> None:
    learner = kind() if kind is Perceptron else kind(budget=12)
    if hasattr(learner, "multiclass"):
        learner = kind(budget=12, multiclass="rest")
    rows, labels = stream_of(6)
    declared = Player(learner, classes=6).feed(rows, labels)
    growing = Player(learner, classes=1, growing=True).feed(rows, labels)
    for t in range(len(labels)):
        known = int(labels[:t].max(initial=0)) + 1
        assert growing[t, :known] == pytest.approx(declared[t, :known], abs=1e-9)


@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_a_grown_player_goes_on_from_its_state(learner: Learner) -> None:
    rows, labels = stream_of(6)
    whole = Player(learner, classes=1, growing=True)
    first = Player(learner, classes=1, growing=True)
    expected = whole.feed(rows, labels)[64:]
    first.feed(rows[:64], labels[:64])
    second = Player(learner, classes=first.classes, growing=True)
    second.load_state_dict(copy.deepcopy(first.state_dict()))
    assert (second.feed(rows[64:], labels[64:]) == expected).all()


def test_a_new_class_gets_what_the_spare_function_has_learned() -> None:
    """The reference has two classes and a spare one, and copies the spare one by hand."""
    rows, labels = stream_of(3, rows=60)
    first = int(np.argmax(labels == 2))
    reference = Player(Arow(budget=12), classes=3)
    reference.feed(rows[:first], labels[:first])
    reference.f.copy_last_class()
    reference.loops[0].classes = (4,)
    expected = reference.f.at(reference.conversion.convert(rows[first:]))
    player = Player(Arow(budget=12), classes=2, growing=True)
    player.feed(rows[:first], labels[:first])
    assert player.scores(rows[first:]) == pytest.approx(expected[:, :2])
    learned = player.feed(rows[first : first + 1], labels[first : first + 1])
    assert learned[0, :2] == pytest.approx(expected[0, :2])
    assert expected[:, 2] == pytest.approx(expected[:, 3])


def test_classes_appear_in_the_order_of_their_numbers() -> None:
    player = Player(Perceptron(), Gaussian(), classes=1, growing=True)
    player.learn([0.0], 0)
    with pytest.raises(ValueError, match="1 is next"):
        player.learn([1.0], 2)
    assert player.learn([1.0], 1).shape == (2,)


# Rounds without an answer -------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [2, 3])
def test_a_round_without_an_answer_is_a_mistake_in_no_cell(classes: int) -> None:
    scores = np.array([np.nan, 1.0, np.nan])
    labels = np.array([1.0, 1.0, -1.0])
    if classes > 2:
        scores = np.stack([scores, scores - 2.0, scores - 3.0], axis=1)
        labels = np.array([2.0, 0.0, 1.0])
    tally = Tally.of(classes)
    tally.count(scores, labels)
    assert (tally.rounds, tally.mistakes, tally.baseline_mistakes) == (3, 2, 2)
    assert tally.confusion.sum() == tally.confusion.trace() == 1


def test_rounds_without_an_answer_leave_the_link_for_probabilities_as_it_is() -> None:
    rng = np.random.default_rng(1)
    scores = rng.normal(size=400)
    labels = np.where(scores + rng.normal(size=400) > 0, 1.0, -1.0)
    known = Calibration(2)
    known.follow(scores, labels)
    gaps = np.arange(0, 400, 7)
    mixed = Calibration(2)
    shares = mixed.follow(np.insert(scores, gaps, np.nan), np.insert(labels, gaps, 1.0))
    assert mixed.weights.tolist() == known.weights.tolist()
    assert np.isnan(shares[:, 0]).sum() == len(gaps)


def test_rows_that_came_without_an_answer_are_learned() -> None:
    rows, labels = stream_of(3)
    answered = Player(Arow(budget=12), classes=3)
    silent = Player(Arow(budget=12), classes=3)
    answered.feed(rows, labels)
    silent.feed(rows, labels, answered=np.full((len(rows), 3), np.nan))
    assert (silent.scores(rows) == answered.scores(rows)).all()
    assert silent.tally.mistakes == len(rows)
