"""metron and arow: units, costs, resets, and a covariance that stays one."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.core import Arow, CsrRows, Gaussian, Learner, Metron, Player, play
from ahpatron_cli.core.errors import StateError
from ahpatron_cli.core.kernels import Matern
from ahpatron_cli.core.learners.metron import Memories
from ahpatron_cli.core.metric import Metric
from ahpatron_cli.core.metric_expansion import MetricExpansion
from ahpatron_cli.core.rows import sliced
from ahpatron_cli.core.second_order import SecondOrder
from ahpatron_cli.core.two_memories import TwoMemories
from reference import kernels as formulas
from reference.second_order import arow
from reference.trace import Trace
from reference.two_memories import metron
from support.effort import examples
from support.streams import compress, full, make_stream

RNG = np.random.default_rng(4)
UNITS = 10.0 ** np.array([-3, 0, 2, 4])
ROWS = RNG.normal(size=(600, 4)) * UNITS + 3 * UNITS * RNG.normal(size=4)
_wave = (ROWS - ROWS.mean(axis=0)) / UNITS
LABELS = np.where(np.sin(2 * _wave[:, 0]) + 0.5 * _wave[:, 2] > 0, 1.0, -1.0)
FLIPPED = np.where(np.arange(600) < 300, LABELS, -LABELS)
# two columns as before, one that never varies, and rare ones of 0 and a unit that start late
_rare = (RNG.random((600, 12)) < 0.15) & (np.arange(600)[:, None] >= 37 * np.arange(12))
LATE = np.column_stack((ROWS[:, :2], np.full(600, 7.0), _rare * np.geomspace(1e-3, 1e3, 12)))


def expansion(player: Player) -> MetricExpansion:
    assert isinstance(player.f, MetricExpansion)
    return player.f


@pytest.mark.parametrize("rows", [ROWS, LATE], ids=["always", "late"])
@pytest.mark.parametrize("sparse", [False, True])
def test_units_of_features_do_not_matter(sparse: bool, rows: np.ndarray) -> None:
    def run(units: np.ndarray) -> tuple[np.ndarray, Player]:
        player = Player(Metron(budget=50))
        scaled = rows * units
        return player.feed(compress(scaled) if sparse else scaled, FLIPPED), player

    width = rows.shape[1]
    expected, player = run(np.ones(width))
    scores, other = run(2.0 ** RNG.integers(-60, 61, width))
    np.testing.assert_array_equal(scores, expected)
    assert other.statistics() == player.statistics()
    scores, _ = run(10.0 ** RNG.uniform(-6, 6, width))
    np.testing.assert_allclose(scores, expected, rtol=1e-6, atol=1e-6)


def test_features_that_start_late_have_the_unit_of_their_first_value() -> None:
    labels = FLIPPED.astype(int).tolist()
    expected = metron(LATE[:450].tolist(), labels[:450], budget=30).scores
    for rows in (LATE, compress(LATE)):
        for block in (1, 7, 64):
            player = Player(Metron(budget=30), block=block)
            first = player.feed(sliced(rows, slice(0, 400)), FLIPPED[:400])
            player = Player(Metron(budget=30), block=block).load_state_dict(player.state_dict())
            rest = player.feed(sliced(rows, slice(400, 450)), FLIPPED[400:450])
            scores = np.concatenate((first, rest))
            np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_features_not_seen_in_training_are_scored_in_units_of_themselves(sparse: bool) -> None:
    player = Player(Metron(budget=30))
    training = np.column_stack((LATE, np.zeros(600)))
    player.feed(compress(training) if sparse else training, LABELS)
    weights = expansion(player).metric.weights.copy()
    rows = np.repeat(np.column_stack((training[:1], [[0.0]])), 5, axis=0)
    rows[1:3, -2] = (1e-6, 1e6)
    rows[3:, -1] = (-3.0, -3e5)
    scores = player.scores(compress(rows) if sparse else rows)
    np.testing.assert_allclose(scores[1::2], scores[2::2], rtol=1e-9)  # whatever the unit is
    assert (np.abs(scores[1:] - scores[0]) > 1e-6).all()
    np.testing.assert_array_equal(expansion(player).metric.weights, weights)


@pytest.mark.parametrize("offset", [0.0, 1e7])
def test_costs_divide_the_noise_and_offsets_cost_no_digits(offset: float) -> None:
    rows = ROWS[:200] + offset * UNITS
    labels = LABELS[:200]
    weights = np.where(labels > 0, 2.5, 0.5)
    given = rows.tolist(), labels.astype(int).tolist()
    expected = metron(*given, budget=30, weights=weights.tolist()).scores
    scores = Player(Metron(budget=30)).feed(rows, labels, weights)
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-5 if offset else 1e-9)


def test_relevant_features_are_found() -> None:
    player = Player(Metron(budget=50, tracker="off"))
    player.feed(ROWS, LABELS)
    relevance = expansion(player).metric.relevance
    assert relevance.sum() == pytest.approx(1)
    assert set(np.argsort(relevance)[-2:].tolist()) == {0, 2}
    statistics = player.statistics()
    assert statistics["metric_changes"] == 9  # after rounds 2, 4, …, 512
    entropy = -(relevance * np.log(relevance)).sum()
    assert statistics["effective_features"] == pytest.approx(np.exp(entropy))


# Dense and sparse rows, offsets, stored zeros, units ----------------------------------------------

NEVER = np.zeros((600, 1))
CATEGORIES = np.eye(20)[RNG.integers(20, size=600)] * np.geomspace(1e-3, 1e3, 20)


def storing_zeros(X: np.ndarray) -> CsrRows:
    """Sparse rows that store every value, also 0."""
    columns = np.tile(np.arange(X.shape[1], dtype=np.int32), len(X))
    return CsrRows(np.arange(len(X) + 1) * X.shape[1], columns, X.ravel(), X.shape[1])


def with_gaps(rows: CsrRows) -> CsrRows:
    """The same rows, in columns that are not consecutive."""
    return replace(rows, columns=3 * rows.columns + 2, width=3 * rows.width + 2)


def run(rows: np.ndarray | CsrRows, labels: np.ndarray = LABELS) -> tuple[np.ndarray, Metric]:
    """Scores of a pass of metron, and its metric."""
    player = Player(Metron(budget=50))
    scores = player.feed(rows, labels)
    return scores, expansion(player).metric


@pytest.mark.parametrize("change", [lambda rows: rows, with_gaps], ids=["consecutive", "gaps"])
def test_stored_zeros_are_zeros(change: Callable[[CsrRows], CsrRows]) -> None:
    never_last = np.column_stack((LATE[:, :3], NEVER, LATE[:, 3:], NEVER))
    expected, metric = run(never_last)
    scores, sparse = run(change(storing_zeros(never_last)))
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-9)
    relevance = metric.relevance[metric.count > 0]
    np.testing.assert_allclose(sparse.relevance, relevance, rtol=1e-6)


@pytest.mark.parametrize(
    ("offset", "spread"),
    [(48.8566, 2e-5), (-1.7e9, 1.0), (1.7e18, 1e9), (2.0**-530, 2.0**-545), (1e150, 1e147)],
)
def test_an_offset_is_the_same_in_sparse_and_dense_rows(offset: float, spread: float) -> None:
    column = offset + spread * RNG.normal(size=600)
    labels = np.where((column > offset) != (CATEGORIES[:, 3] > 0), 1.0, -1.0)
    rows = np.column_stack((CATEGORIES, column))
    expected, metric = run(rows, labels)
    scores, sparse = run(compress(rows), labels)
    np.testing.assert_allclose(scores, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(sparse.weights, metric.weights, rtol=1e-9)
    assert np.count_nonzero(np.sign(expected[300:]) != labels[300:]) < 30
    twin = metron(rows[:150].tolist(), labels[:150].astype(int).tolist(), budget=50).scores
    np.testing.assert_allclose(expected[:150], twin, rtol=1e-6, atol=1e-7)


def test_rows_that_lack_a_column_with_an_offset_are_as_far_away_as_dense_ones() -> None:
    column = 48.8566 + 2e-5 * RNG.normal(size=600)
    column[5::37] = 0.0
    column[520:] = 0.0  # after the last change of the metric, too
    rows = np.column_stack((ROWS[:, :2], column, CATEGORIES))
    expected, _ = run(rows)
    for sparse in (compress(rows), storing_zeros(rows), with_gaps(compress(rows))):
        np.testing.assert_allclose(run(sparse)[0], expected, rtol=1e-7, atol=1e-9)


def spread_of(values: list[float]) -> float:
    """The root of a feature's spread, by its definition, in exact arithmetic."""
    exact = [Fraction(value) for value in values]
    share = Fraction(sum(value != 0 for value in values), len(values))
    spread = statistics.pvariance(exact) / share
    _, exponent = math.frexp(max(map(abs, values)))
    return math.ldexp(math.sqrt(spread / Fraction(4) ** exponent), exponent)


@examples(60)
@given(
    offset=st.floats(1, 10).map(lambda size: 10.0**size),
    unit=st.integers(-250, 130).map(lambda exponent: 10.0**exponent),
    zeros=st.sampled_from([0.0, 0.01, 0.5, 0.98]),
    seed=st.integers(0, 2**32 - 1),
)
def test_weights_are_inverse_to_the_root_of_the_spread(
    offset: float, unit: float, zeros: float, seed: int
) -> None:
    """Of features with an offset, with zeros, with both and with neither."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(100, 4)) * unit
    rows[:, :2] += offset * unit
    rows[:, 1:3] *= rng.random((100, 2)) >= zeros
    rows[-1] = 0.3 * unit  # no feature is always 0
    expected = np.array([spread_of(column) for column in rows.T.tolist()])
    for points in (Matern().points(rows), Matern().points(compress(rows))):
        metric = Metric()
        for start in range(0, 100, 32):
            block = points.slice(start, min(start + 32, 100))
            metric.weigh_new_features(block)
            metric.add(block)
        metric.adopt(metric.proposed(100, None, 1))
        products = metric.weights * expected
        np.testing.assert_allclose(products, products[0], rtol=1e-9)


@pytest.mark.parametrize("make", [np.asarray, compress], ids=["dense", "sparse"])
def test_a_feature_varies_unless_it_is_constant_up_to_rounding(
    make: Callable[[np.ndarray], np.ndarray | CsrRows],
) -> None:
    rounded = np.where(np.arange(600) % 2, 0.1 + 0.2, 0.3)
    once = np.where(np.arange(600) == 100, 0.0, 1e-9)
    clock = 1.7e9 + np.arange(600) // 2 * 0.01
    constant = np.full(600, -4.0)
    rows = np.column_stack((ROWS[:, 0], rounded, once, clock, constant))
    _, metric = run(make(rows))
    assert (metric.relevance > 0).tolist() == [True, False, True, True, False]


@pytest.mark.parametrize("make", [np.asarray, compress], ids=["dense", "sparse"])
def test_a_first_value_far_below_the_later_ones_stops_nothing(
    make: Callable[[np.ndarray], np.ndarray | CsrRows],
) -> None:
    """As in a column of p-values, from the first row on or from a later one."""
    rows = np.column_stack((ROWS[:, :2], RNG.random((600, 2))))
    rows[0, 2] = 1e-200
    rows[:70, 3] = 0.0
    rows[70, 3] = 3e-300
    labels = np.where(rows[:, 2] > 0.5, 1.0, -1.0)
    twin = metron(rows[:150].tolist(), labels[:150].astype(int).tolist(), budget=50).scores
    scores, metric = run(make(rows), labels)
    np.testing.assert_allclose(scores[:150], twin, rtol=1e-6, atol=1e-7)
    assert np.argmax(metric.relevance) == 2
    assert np.count_nonzero(np.sign(scores[300:]) != labels[300:]) < 30


@pytest.mark.parametrize("exponent", [-900, -540, 480])
@pytest.mark.parametrize("make", [np.asarray, compress], ids=["dense", "sparse"])
def test_a_column_times_a_power_of_two_gives_the_same_scores(
    make: Callable[[np.ndarray], np.ndarray | CsrRows], exponent: int
) -> None:
    rows = LATE.copy()
    rows[:, :4] *= 2.0**exponent
    np.testing.assert_array_equal(run(make(rows), FLIPPED)[0], run(make(LATE), FLIPPED)[0])


# arow, too ---------------------------------------------------------------------------------------

X = np.random.default_rng(3).normal(size=(600, 2))
TURNED = np.where((X[:, 0] * X[:, 1] > 0) == (np.arange(600) // 200 != 1), 1.0, -1.0)


@pytest.mark.parametrize(
    ("learner", "reference", "params"),
    [(Arow, arow, {}), (Metron, metron, {"tracker": "off"})],
)
def test_a_reset_is_counted_and_named_and_no_block_shows(
    learner: type[Arow], reference: Callable[..., Trace], params: dict[str, str]
) -> None:
    kernel = formulas.gaussian(0.7)
    trace = reference(X.tolist(), TURNED.astype(int).tolist(), kernel, budget=20, **params)
    assert len(trace.restarts) == 2
    for block in (1, 7, 64, 256):
        for rows in (X, compress(X)):
            player = Player(learner(budget=20, **params), Gaussian(sigma=0.7), block=block)
            scores = player.feed(rows, TURNED)
            np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-8)
            assert player.statistics()["restarts"] == len(trace.restarts)
            assert player.tally.mistakes == trace.mistakes
            assert player.tally.updates == trace.updates
            (warning,) = player.warnings()
            assert f"in round {trace.restarts[-1] + 1}" in warning


def test_a_covariance_that_lost_its_digits_is_repaired() -> None:
    stream = make_stream(seed=5, rounds=320, features=3)  # whole blocks
    player = Player(Arow(budget=30), Gaussian())
    player.feed(stream.X, stream.y)
    f = player.f
    assert isinstance(f, SecondOrder)
    f.head.C.settle()
    f.head.C.A[0, 0] = -1.0  # as if rounding had done it
    f.head.repair()
    assert np.linalg.eigvalsh(full(f.head.C)).min() > 0
    scores = player.feed(stream.X, stream.y)
    assert np.isfinite(scores).all()


# Two memories -------------------------------------------------------------------------------------


def test_with_a_tracker_an_alarm_halves_s_and_is_no_reset_of_the_model() -> None:
    player = Player(Metron(budget=20))
    player.feed(X[:200], TURNED[:200])
    assert player.size == 20
    while not player.statistics()["restarts"]:
        t = player.tally.rounds
        player.feed(X[t : t + 1], TURNED[t : t + 1])
    assert player.size == 10
    assert player.last_reset is None
    assert not player.warnings()


@pytest.mark.parametrize("block", [1, 7, 64, 256])
def test_two_memories_equal_their_twin_through_alarms_forgetting_and_weights(block: int) -> None:
    weights = np.where(TURNED > 0, 2.5, 0.5)
    given = X.tolist(), TURNED.astype(int).tolist()
    trace = metron(*given, budget=20, weights=weights.tolist())
    assert trace.restarts
    for rows in (X, compress(X)):
        player = Player(Metron(budget=20), block=block)
        scores = player.feed(rows, TURNED, weights)
        np.testing.assert_allclose(scores, trace.scores, rtol=1e-6, atol=1e-8)
        assert player.statistics()["restarts"] == len(trace.restarts)
        assert player.tally.mistakes == trace.mistakes
        assert player.tally.updates == trace.updates


@pytest.mark.parametrize("tracker", ["off", "on"])
def test_a_change_of_the_metric_waits_until_the_answer_of_its_round_is_out(tracker: str) -> None:
    player = Player(Metron(budget=20, tracker=tracker))
    player.feed(X[:32], TURNED[:32])
    learner = player._loops[0].learner
    assert isinstance(learner, Metron)
    assert learner.metric_changes == 4  # after rounds 2, 4, 8, 16
    assert player.statistics()["metric_changes"] == 5  # whoever looks sees that of round 32


@pytest.mark.parametrize("tracker", ["off", "on"])
def test_frozen_predictions_use_the_metric_that_is_due(tracker: str) -> None:
    at_the_end = Player(Metron(budget=20, tracker=tracker))
    at_the_end.feed(X[:64], TURNED[:64])
    expected = Player(Metron(budget=20, tracker=tracker), block=128)
    next_scores = expected.feed(X[:65], TURNED[:65])[64:]
    np.testing.assert_allclose(at_the_end.scores(X[64:65]), next_scores, rtol=1e-9)


@pytest.mark.parametrize("tracker", ["off", "on"])
def test_a_model_saved_before_a_change_that_is_due_continues_as_if_it_was_not(tracker: str) -> None:
    whole = Player(Metron(budget=20, tracker=tracker)).feed(X, TURNED)
    player = Player(Metron(budget=20, tracker=tracker))
    player.feed(X[:256], TURNED[:256])
    again = Player(Metron(budget=20, tracker=tracker)).load_state_dict(player.state_dict())
    np.testing.assert_array_equal(again.feed(X[256:], TURNED[256:]), whole[256:])


def test_the_weight_of_the_tracker_is_less_before_the_first_alarm_than_after_it() -> None:
    player = Player(Metron(budget=20))
    player.feed(X[:1], TURNED[:1])
    f = two_memories(player)
    assert f.tracker_weight == pytest.approx(1 / (1 + math.exp(2)))
    player.feed(X[1:], TURNED[1:])
    assert player.statistics()["restarts"]
    behind = f.tracker.mistakes + 2 - f.head.mistakes
    assert f.tracker_weight == pytest.approx(1 / (1 + math.exp(behind / 2)))


def test_a_metric_that_would_hardly_change_stays() -> None:
    rows = np.random.default_rng(9).normal(size=(1024, 2))
    labels = np.where(rows.sum(axis=1) > 0, 1.0, -1.0)  # both columns matter alike
    player = Player(Metron(budget=20))
    player.feed(rows[:1023], labels[:1023])
    weights = expansion(player).metric.weights.copy()
    changes = player.statistics()["metric_changes"]
    player.feed(rows[1023:], labels[1023:])
    assert player.statistics()["metric_changes"] == changes
    np.testing.assert_array_equal(expansion(player).metric.weights, weights)


def test_rows_from_before_an_alarm_count_half_in_the_spread() -> None:
    metric = Metric()
    for rows in (np.array([[1.0], [3.0]]), np.array([[5.0]])):
        metric.halve()
        points = Matern().points(rows)
        metric.weigh_new_features(points)
        metric.add(points)
    assert metric.rounds == 2.0
    mean = (0.5 * 1 + 0.5 * 3 + 5) / 2
    square = (0.5 * 1 + 0.5 * 9 + 25) / 2
    (weight,) = metric.proposed(3, None, 1).weights
    assert weight == pytest.approx(1 / math.sqrt(square - mean**2))


def turning_plane(rounds: int) -> tuple[np.ndarray, np.ndarray]:
    """A stream whose plane turns all the time."""
    rows = np.random.default_rng(8).normal(size=(rounds, 3))
    angle = np.arange(rounds) / 500.0
    labels = np.where(rows[:, 0] * np.cos(angle) + rows[:, 1] * np.sin(angle) > 0, 1.0, -1.0)
    return rows, labels


def turning(rounds: int) -> Player:
    """metron with a tracker after a stream whose plane turns all the time."""
    rows, labels = turning_plane(rounds)
    player = Player(Metron(budget=40))
    player.feed(rows, labels)
    return player


def test_the_tracker_leads_where_the_concept_keeps_turning() -> None:
    assert two_memories(turning(rounds=3000)).tracker_weight > 0.9


def test_covariances_of_both_heads_stay_positive_definite() -> None:
    for head in two_memories(turning(rounds=6000)).heads:
        head.C.settle()
        assert np.linalg.eigvalsh(full(head.C)).min() > 0


def two_memories(player: Player) -> TwoMemories:
    assert isinstance(player.f, TwoMemories)
    return player.f


def reported(player: Player) -> Memories:
    learner = player.learner
    assert isinstance(learner, Metron)
    return learner.memories(two_memories(player))


def turning_row_by_row() -> Iterator[tuple[Player, Memories, Memories]]:
    """metron with a tracker on a turning plane; its memories before and after each row."""
    rows, labels = turning_plane(2000)
    player = Player(Metron(budget=40, tracker="on"))
    before = reported(player)
    for t in range(len(rows)):
        player.feed(rows[t : t + 1], labels[t : t + 1])
        after = reported(player)
        yield player, before, after
        before = after


@pytest.mark.parametrize("block", [1, 64])
def test_alarms_are_reported_with_their_rounds_also_by_a_restored_model(block: int) -> None:
    trace = metron(X.tolist(), TURNED.astype(int).tolist(), budget=20, tracker="on")
    player = Player(Metron(budget=20, tracker="on"), block=block)
    player.feed(X, TURNED)
    again = Player(Metron(budget=20, tracker="on")).load_state_dict(player.state_dict())
    assert trace.restarts
    for one in (player, again):
        assert reported(one).alarm_rounds == tuple(t + 1 for t in trace.restarts)
        assert reported(one).alarms == one.statistics()["alarms"] == len(trace.restarts)


def test_the_rounds_of_the_last_hundred_alarms_are_kept() -> None:
    rng = np.random.default_rng(5)
    labels = np.where(rng.random(6000) < 0.5, 1.0, -1.0)
    player = Player(Metron(budget=4, tracker="on", alarm=1.0))
    player.feed(rng.normal(size=(6000, 1)), labels)
    found = reported(player)
    assert found.alarms > len(found.alarm_rounds) == 100
    assert found.alarm_rounds == tuple(sorted(set(found.alarm_rounds)))
    assert found.alarm_rounds[-1] <= 6000


def test_every_update_is_a_row_that_at_least_one_memory_has_learned_from() -> None:
    updates = 0
    for player, before, after in turning_row_by_row():
        steady = after.steady_rows > before.steady_rows
        updates += steady or after.tracker_rows > before.tracker_rows
        assert player.tally.updates == updates


def test_an_alarm_sets_the_rows_of_the_steady_memory_to_0_and_not_those_of_the_tracker() -> None:
    alarms = 0
    for _, before, after in turning_row_by_row():
        assert after.tracker_rows >= before.tracker_rows
        if after.alarms > before.alarms:
            alarms += 1
            assert before.steady_rows > 0
            assert after.steady_rows == 0
    assert alarms


def test_rounds_are_counted_in_which_the_tracker_led_the_prediction() -> None:
    led = 0
    for player, before, _ in turning_row_by_row():
        led += before.tracker_leads
        assert player.statistics()["tracker_led"] == led
    assert 0 < led < player.tally.rounds


@pytest.mark.parametrize("rounds", [[], [0], [601], [5, 4], [1.0]])
def test_rounds_of_alarms_that_cannot_be_are_refused(rounds: list[float]) -> None:
    player = Player(Metron(budget=20, tracker="on"))
    player.feed(X, TURNED)
    state = player.state_dict()
    state["loops"]["0"]["learner"]["alarm_rounds"] = np.array(rounds)
    with pytest.raises(StateError, match="alarm_rounds"):
        Player(Metron(budget=20, tracker="on")).load_state_dict(state)


@pytest.mark.parametrize("learner", [Arow(budget=20), Metron(budget=20, tracker="off")])
def test_without_a_tracker_there_are_no_alarms_but_a_warning_of_the_reset(learner: Learner) -> None:
    player = Player(learner, Gaussian(sigma=0.7))
    player.feed(X, TURNED)
    found = player.statistics()
    assert found["restarts"]
    assert "alarms" not in found
    assert player.last_reset
    assert player.warnings()


@pytest.mark.parametrize("method", ["add", "drop", "shrink", "cap", "project"])
@pytest.mark.parametrize("kind", [Arow, Metron])
def test_coefficients_are_not_changed_without_their_covariance(
    kind: type[Arow], method: str
) -> None:
    f = play(kind(budget=10), [[0.0], [1.0], [0.1], [0.9]], [-1, 1, -1, 1]).f
    with pytest.raises(TypeError, match=f"`{method}` would not change the covariance"):
        getattr(f, method)(1)
