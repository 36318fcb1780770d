"""What commands say about metron's two memories: inspect, run -v, --window, figures, warnings."""

import random
import re

import numpy as np
import pytest

from support.command import Ahpatron
from support.profiles import to_text

TRACKER = ("-l", "metron", "-B", 30, "-p", "tracker=on")
STEADY_ONLY = ("-l", "metron", "-B", 30, "-p", "tracker=off")
AROW = ("-l", "arow", "-B", 30, "--sigma", 1)
STEADY = 1000
"""The plane begins to turn after this number of rounds."""
TURNED = 4000
"""It stands still again after this number of rounds."""
ROUNDS = 6000


@pytest.fixture
def turned(ahpatron: Ahpatron) -> str:
    """Two features; the labels are those of a plane that turns in the middle of the stream."""
    X = np.random.default_rng(4).normal(size=(ROUNDS, 2))
    angle = np.clip(np.arange(ROUNDS) - STEADY, 0, TURNED - STEADY) / 150
    margins = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    ahpatron.write("turned.svm", to_text(X, np.where(margins > 0, 1, -1)))
    return "turned.svm"


@pytest.fixture
def three(ahpatron: Ahpatron) -> str:
    """Three classes between two parallel planes that turn."""
    X = np.random.default_rng(3).normal(size=(2000, 2))
    angle = np.arange(2000) / 150
    margins = X[:, 0] * np.cos(angle) + X[:, 1] * np.sin(angle)
    ahpatron.write("three.svm", to_text(X, np.digitize(margins, [-0.5, 0.5])))
    return "three.svm"


def saved(ahpatron: Ahpatron, *words: object) -> str:
    ahpatron.succeed("run", *words, "--save", "m.npz")
    return "m.npz"


# inspect ------------------------------------------------------------------------------------------


def test_inspect_reports_weight_alarms_and_rows_of_both_memories(
    ahpatron: Ahpatron, turned: str
) -> None:
    model = ahpatron.json("inspect", saved(ahpatron, turned, *TRACKER))
    (found,) = model["memories"]
    assert found["class"] is found["name"] is None
    assert 0 < found["tracker_weight"] < 0.5
    assert found["leader"] == "steady"
    assert found["alarms"] == len(found["alarm_rounds"]) == model["alarms"] >= 1
    assert found["alarm_rounds"][0] > STEADY
    assert found["alarm_rounds"] == sorted(found["alarm_rounds"])
    assert 0 < found["steady_rows"] <= ROUNDS - found["alarm_rounds"][-1]
    assert 0 < found["tracker_rows"] <= model["updates"]


def test_inspect_says_in_text_since_when_rows_are_counted(ahpatron: Ahpatron, turned: str) -> None:
    model = saved(ahpatron, turned, *TRACKER)
    (found,) = ahpatron.json("inspect", model)["memories"]
    shown = ahpatron.succeed("inspect", model).out
    assert f"weight of tracker     {found['tracker_weight']:.3f}: the steady memory leads" in shown
    assert f"{found['alarms']}, in round" in shown
    assert f"{found['alarm_rounds'][-1]:,}\n" in shown
    assert f"{found['steady_rows']:,} rows learned since the last alarm" in shown
    assert f"{found['tracker_rows']:,} rows learned since the first round" in shown


def test_inspect_reports_a_model_without_alarms(ahpatron: Ahpatron, turned: str) -> None:
    model = saved(ahpatron, turned, *TRACKER, "--limit", 500)
    (found,) = ahpatron.json("inspect", model)["memories"]
    assert (found["alarms"], found["alarm_rounds"]) == (0, [])
    shown = ahpatron.succeed("inspect", model).out
    assert f"{found['steady_rows']:,} rows learned since the first round" in shown


def test_inspect_reports_the_memories_of_each_class_with_one_learner_per_class(
    ahpatron: Ahpatron, three: str
) -> None:
    model = saved(ahpatron, three, *TRACKER, "-p", "multiclass=rest")
    document = ahpatron.json("inspect", model)
    assert [one["class"] for one in document["memories"]] == [0, 1, 2]
    assert sum(one["alarms"] for one in document["memories"]) == document["alarms"]
    shown = ahpatron.succeed("inspect", model).out
    assert len(re.findall("^  class [012] +weight of tracker", shown, re.MULTILINE)) == 3


def test_inspect_names_the_classes_of_a_table(ahpatron: Ahpatron) -> None:
    rng = random.Random(1)
    rows = [f"{rng.random():.3f},{name}\n" for name in ("red", "green", "blue") * 50]
    ahpatron.write("t.csv", "x,colour\n" + "".join(rows))
    model = saved(ahpatron, "t.csv", "--label", "colour", *TRACKER, "-p", "multiclass=rest")
    names = [one["name"] for one in ahpatron.json("inspect", model)["memories"]]
    assert sorted(names) == ["blue", "green", "red"]
    assert "  class green" in ahpatron.succeed("inspect", model).out


def test_classes_on_one_active_set_have_one_pair_of_memories(
    ahpatron: Ahpatron, three: str
) -> None:
    model = ahpatron.json("inspect", saved(ahpatron, three, *TRACKER))
    assert [one["class"] for one in model["memories"]] == [None]


@pytest.mark.parametrize("words", [AROW, STEADY_ONLY])
def test_inspect_has_no_memories_of_a_learner_without_a_tracker(
    ahpatron: Ahpatron, turned: str, words: tuple[object, ...]
) -> None:
    model = saved(ahpatron, turned, *words)
    assert ahpatron.json("inspect", model)["memories"] is None
    assert "Two memories" not in ahpatron.succeed("inspect", model).out


def test_a_resumed_model_keeps_the_rounds_of_its_alarms(ahpatron: Ahpatron, turned: str) -> None:
    whole = ahpatron.json("inspect", saved(ahpatron, turned, *TRACKER))
    rows = ahpatron.read(turned).splitlines(keepends=True)
    ahpatron.write("first.svm", "".join(rows[:2048]))
    ahpatron.write("rest.svm", "".join(rows[2048:]))
    saved(ahpatron, "first.svm", *TRACKER)
    resumed = ahpatron.json("inspect", saved(ahpatron, "rest.svm", "--resume", "m.npz"))
    assert resumed["memories"] == whole["memories"]


# run ----------------------------------------------------------------------------------------------


def test_json_has_the_alarms_and_the_share_of_rounds_in_which_the_tracker_led(
    ahpatron: Ahpatron, turned: str
) -> None:
    run = ahpatron.run(turned, *TRACKER)
    assert run["alarms"] == run["restarts"] >= 1
    assert 0.2 < run["tracker_share"] < 0.9


def test_the_share_is_the_mean_over_classes_with_one_learner_per_class(
    ahpatron: Ahpatron, three: str
) -> None:
    run = ahpatron.run(three, *TRACKER, "-p", "multiclass=rest")
    assert 0 < run["tracker_share"] < 1


@pytest.mark.parametrize("words", [AROW, STEADY_ONLY])
def test_json_has_restarts_and_no_alarms_without_a_tracker(
    ahpatron: Ahpatron, turned: str, words: tuple[object, ...]
) -> None:
    run = ahpatron.run(turned, *words)
    assert run["restarts"] >= 1
    assert not {"alarms", "tracker_share"} & set(run)


def test_the_table_has_alarms_in_place_of_restarts(ahpatron: Ahpatron, turned: str) -> None:
    with_tracker = ahpatron.succeed("run", turned, *TRACKER).out
    assert "Alarms  Tracker %" in with_tracker
    assert "Restarts" not in with_tracker
    without = ahpatron.succeed("run", turned, *STEADY_ONLY).out
    assert "Restarts" in without
    assert "Alarms" not in without


@pytest.mark.parametrize(("option", "start"), [(("-v",), ""), (("--window", 200), "note: ")])
def test_changes_of_the_leader_are_told(
    ahpatron: Ahpatron, turned: str, option: tuple[object, ...], start: str
) -> None:
    told = ahpatron.succeed("run", turned, *TRACKER, *option).err
    changes = re.findall(rf"^{start}metron: the (.*) after round ([\d,]+)$", told, re.MULTILINE)
    leaders = [leader for leader, _ in changes]
    rounds = [int(number.replace(",", "")) for _, number in changes]
    assert leaders == ["tracker leads", "steady memory leads again"]
    assert STEADY < rounds[0] < TURNED < rounds[1]


def test_changes_of_the_leader_are_told_by_a_service(ahpatron: Ahpatron, turned: str) -> None:
    rows = (ahpatron.folder / turned).read_bytes()
    command = ("run", "-", *TRACKER, "--window", 200, "--answers", "csv")
    told = ahpatron.succeed(*command, stdin=rows).err
    assert re.search(r"^note: metron: the tracker leads after round", told, re.MULTILINE)


def test_the_number_of_classes_is_told_in_which_the_tracker_leads(
    ahpatron: Ahpatron, three: str
) -> None:
    told = ahpatron.succeed("run", three, *TRACKER, "-p", "multiclass=rest", "-v").err
    assert re.search(r"metron: the tracker leads in [123] of 3 classes after round", told)


@pytest.mark.parametrize("words", [(*TRACKER,), (*TRACKER, "--window", 200, "-q"), (*AROW, "-v")])
def test_no_leader_is_told_unless_asked_for(
    ahpatron: Ahpatron, turned: str, words: tuple[object, ...]
) -> None:
    assert " leads" not in ahpatron.succeed("run", turned, *words).err


# The warning about resets -------------------------------------------------------------------------


@pytest.mark.parametrize("words", [AROW, STEADY_ONLY])
def test_a_reset_is_warned_of_without_a_tracker(
    ahpatron: Ahpatron, turned: str, words: tuple[object, ...]
) -> None:
    told = ahpatron.succeed("run", turned, *words, "--save", "m.npz", "-q").err
    assert "the learner was reset" in told
    assert "the saved model knows only the last" in told
    assert ahpatron.json("inspect", "m.npz")["last_reset"] > STEADY


def test_an_alarm_is_no_reset_to_warn_of(ahpatron: Ahpatron, turned: str) -> None:
    done = ahpatron.succeed("run", turned, *TRACKER, "--save", "m.npz", "-q")
    assert done.err == ""
    model = ahpatron.json("inspect", "m.npz")
    assert model["alarms"] >= 1
    assert model["last_reset"] is model["rounds_since_reset"] is None
