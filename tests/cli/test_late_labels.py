"""Labels that come later than their rows, by id, on a live stream and in Python."""

import json
import random
import shlex
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ahpatron_cli import Pending
from ahpatron_cli.answers import NO_ANSWER
from ahpatron_cli.core import Player
from ahpatron_cli.core.errors import StateError
from ahpatron_cli.core.registry import find_learner
from ahpatron_cli.core.state import StateReader
from ahpatron_cli.live.remembered import Remembered, RememberedRow
from support.command import Ahpatron, objects_of, rows_of

TABLE = ("run", "-", "--label", "y", "--id", "key", "--answers", "jsonl")


def payments(count: int, latest: int, seed: int = 0) -> Iterator[tuple[str, list[float], str, int]]:
    """Key, features, label and the number of rows after which the label comes; 0: with its row."""
    draw = random.Random(seed)
    for number in range(count):
        features = [draw.gauss(0, 1), draw.gauss(0, 1) * 5]
        is_fraud = features[0] + 0.2 * features[1] + draw.gauss(0, 0.3) > 0.4
        later = draw.randrange(latest + 1)
        yield f"p{number}", features, "fraud" if is_fraud else "good", later


def lines_of(count: int, latest: int) -> list[tuple[str, list[float] | None, str]]:
    """The lines of a stream in the order in which they come: key, features, label."""
    due: dict[int, list[tuple[str, None, str]]] = {}
    lines: list[tuple[str, list[float] | None, str]] = []
    for now, (key, features, label, later) in enumerate(payments(count, latest)):
        lines.append((key, features, "" if later else label))
        if later:
            due.setdefault(now + later, []).append((key, None, label))
        lines += due.pop(now, [])
    for left in sorted(due):
        lines += due[left]
    return lines


def csv_of(lines: list[tuple[str, list[float] | None, str]]) -> bytes:
    text = ["key,a,b,y"]
    for key, features, label in lines:
        a, b = map(repr, features) if features else ("", "")
        text.append(f"{key},{a},{b},{label}")
    return "\n".join([*text, ""]).encode()


def reference(lines: list[tuple[str, list[float] | None, str]], learner: str) -> list[int]:
    """Whether each round was a mistake, with everything held in lists."""
    player = Player(find_learner(learner)(), seed=(0, 0, 0))
    rows: dict[str, np.ndarray] = {}
    answered: dict[str, float | None] = {}
    mistakes = []
    for key, features, label in lines:
        if features is not None:
            rows[key] = np.array([0.0, *features])
            answered[key] = player.score(rows[key])
            if not label and not player.tally.rounds:  # nothing was learned: no answer
                answered[key] = None
        if label:
            y = 1 if label == "fraud" else -1
            score = answered[key]
            mistakes.append(int(score is None or (1 if score >= 0 else -1) != y))
            player.learn(rows[key], y)
    return mistakes


@pytest.mark.parametrize("learner", ["metron", "ahpatron"])
@pytest.mark.parametrize(
    "latest",
    [0, 1, 40, pytest.param(5000, marks=pytest.mark.slow)],
)
def test_late_labels_count_as_in_a_reference_with_lists(
    ahpatron: Ahpatron, learner: str, latest: int
) -> None:
    """The label "fraud" is the rarer, so it is +1."""
    lines = lines_of(12_000 if latest == 5000 else 1500, latest)
    options = ("-l", learner, "--positive", "fraud", "--window", 100, "--out", "r.json")
    done = ahpatron.succeed(*TABLE, *options, stdin=csv_of(lines))
    mistakes = reference(lines, learner)
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert record["rounds"] == len(mistakes)
    assert record["mistakes"] == sum(mistakes)
    assert record["window"] == {"rounds": 100, "mistake_rate": sum(mistakes[-100:]) / 100}
    assert record["late_labels"] == sum(features is None for _, features, _ in lines)
    assert (record["pending"], record["forgotten"], record["unmatched"]) == (0, 0, 0)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["key"] for answer in answers] == [key for key, _, _ in lines]
    given = [answer["mistake"] for answer in answers if "mistake" in answer]
    assert given == mistakes
    first = {}
    for answer in answers:
        known = first.setdefault(answer["key"], answer)
        assert (answer["prediction"], answer["score"]) == (known["prediction"], known["score"])


def test_rows_that_wait_are_part_of_the_state(ahpatron: Ahpatron) -> None:
    lines = lines_of(1500, 300)
    options = ("--positive", "fraud", "-l", "ahpatron")
    ahpatron.succeed(*TABLE, *options, "--out", "w.json", stdin=csv_of(lines))
    for start in range(0, len(lines), 640):
        rows = csv_of(lines[start : start + 640])
        ahpatron.succeed(*TABLE, *options, "--state", "s.npz", "--out", "r.json", stdin=rows)
        shown = ahpatron.json("inspect", "s.npz")
        assert shown["live"]["pending"] > 0 or start + 640 >= len(lines)
        assert shown["unlabelled"] == shown["live"]["unlabelled"] > 0
    found, wanted = (json.loads(ahpatron.read(name))["runs"][0] for name in ("r.json", "w.json"))
    names = ("rounds", "mistakes", "late_labels", "unlabelled", "pending", "baseline_mistakes")
    assert [found[name] for name in names] == [wanted[name] for name in names]


def test_a_model_of_a_file_without_ids_begins_a_state_with_late_labels(ahpatron: Ahpatron) -> None:
    """The file had no ids; those of the stream belong to the state from then on."""
    lines = lines_of(300, 20)
    rows = [f"{a!r},{b!r},{label}\n" for _, (a, b), label, _ in payments(300, 0, seed=3)]
    ahpatron.write("old.csv", "".join(["a,b,y\n", *rows]))
    ahpatron.succeed("run", "old.csv", "--label", "y", "-l", "ahpatron", "--save", "s.npz")
    options = ("--state", "s.npz", "--out", "r.json")
    for start in (0, 300):
        piece = lines[start : start + 300]
        done = ahpatron.succeed(*TABLE, *options, stdin=csv_of(piece))
        assert [json.loads(line)["key"] for line in done.out.splitlines()] == [
            key for key, _, _ in piece
        ]
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert record["rounds"] == 300 + sum(bool(label) for _, _, label in lines[:600])
    done = ahpatron("run", "-", "--id", "other", "--state", "s.npz", stdin=b"other,a,b,y\n1,2,3,\n")
    assert (done.code, "the state was made with other values of --id" in done.err) == (2, True)


@pytest.mark.parametrize("beginning", ["--state", "--resume"])
@pytest.mark.parametrize(
    ("column", "said"),
    [("a", "'a' is a feature of the model"), ("y", "'y' is the label of the model")],
)
def test_what_the_model_uses_cannot_identify_rows(
    ahpatron: Ahpatron, beginning: str, column: str, said: str
) -> None:
    ahpatron.write("old.csv", csv_of([(key, x, y) for key, x, y, _ in payments(300, 0)]))
    ahpatron.succeed("run", "old.csv", "--label", "y", "--drop", "key", "--save", "s.npz")
    rows = csv_of(lines_of(10, 0))
    done = ahpatron("run", "-", "--id", column, beginning, "s.npz", "--answers", "csv", stdin=rows)
    assert (done.code, done.out) == (2, "")
    assert f"--id: column {said}, and cannot identify rows" in done.err


def test_classes_of_json_lines_may_appear_with_late_labels(ahpatron: Ahpatron) -> None:
    """In four lives as in one; each line is an object, and a label comes 30 rows later."""
    draw = random.Random(1)
    lines = []
    labels = []
    for number in range(400):
        label = draw.choice("abc" if number > 50 else "ab")
        labels.append(label)
        x = ["abc".index(label) * 2 + draw.gauss(0, 1), draw.gauss(0, 1)]
        lines.append({"key": f"r{number}", "x": x, "k": draw.choice(["u", "v", None])})
        if number >= 30:
            lines.append({"key": f"r{number - 30}", "y": labels[number - 30]})
    rows = [json.dumps(line) + "\n" for line in lines]
    command = TABLE[:-2]
    whole = ("--state", "w.npz", "--out", "w.json")
    ahpatron.succeed(*command, *whole, stdin="".join(rows).encode())
    for start in range(0, len(rows), 200):
        part = "".join(rows[start : start + 200]).encode()
        ahpatron.succeed(*command, "--state", "s.npz", "--out", "r.json", stdin=part)
    found, wanted = (json.loads(ahpatron.read(name))["runs"][0] for name in ("r.json", "w.json"))
    names = ("rounds", "mistakes", "late_labels", "pending", "confusion", "support_size")
    assert [found[name] for name in names] == [wanted[name] for name in names]
    assert wanted["pending"] == 30


HEAD = "key,a,y\n" + "".join(f"k{i},{i % 7},{'yes' if i % 7 > 3 else 'no'}\n" for i in range(30))


@pytest.mark.parametrize(
    ("lines", "fault", "unmatched"),
    [
        ("x,,yes\n", "no row with the id 'x'", 1),
        ("k3,,yes\n", "no row with the id 'k3'", 1),
        ("a,1,\na,,yes\na,,yes\n", "no row with the id 'a'", 1),
        ("a,1,\na,2,\n", "already waiting", 0),
        ("a,1,\na,2,yes\n", "already waiting", 0),
        (",,yes\n", "no row with the id ''", 1),
    ],
)
def test_lines_that_do_not_belong_to_a_row_are_faults(
    ahpatron: Ahpatron, lines: str, fault: str, unmatched: int
) -> None:
    content = (HEAD + lines).encode()
    stopped = ahpatron(*TABLE, stdin=content)
    assert stopped.code == 65
    assert fault in stopped.err
    last = content.count(b"\n")
    assert f"<stdin>:{last}" in stopped.err
    ahpatron.succeed(*TABLE, "--on-fault", "skip", "--out", "r.json", stdin=content)
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert (record["faults"], record["unmatched"]) == (1, unmatched)


def test_a_line_with_an_id_alone_is_a_row_that_waits_for_its_label(ahpatron: Ahpatron) -> None:
    content = (HEAD + "x,,\nx,,yes\n").encode()
    done = ahpatron.succeed(*TABLE, "--out", "r.json", stdin=content)
    answered, learned = objects_of(done.out)[-2:]
    assert answered["prediction"] == learned["prediction"]
    assert ("label" in answered, learned["label"]) == (False, "yes")
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert (record["late_labels"], record["unlabelled"], record["pending"]) == (1, 1, 0)


def test_a_label_without_a_row_and_without_ids_is_a_fault(ahpatron: Ahpatron) -> None:
    """It is never a row of missing cells."""
    content = b"a,b,y\n" + b"1,2,yes\n3,1,no\n" * 20 + b",,yes\n"
    done = ahpatron("run", "-", "--label", "y", "--answers", "csv", stdin=content)
    assert done.code == 65
    assert "--id" in done.err


def test_the_oldest_rows_are_forgotten(ahpatron: Ahpatron) -> None:
    rows = "".join(f"q{i},{i % 7},\n" for i in range(8))
    content = (HEAD + rows + "q2,,no\nq3,,no\nq7,,yes\n").encode()
    options = ("--pending", 5, "--on-fault", "skip", "--out", "r.json")
    done = ahpatron.succeed(*TABLE, *options, "--quiet", stdin=content)
    assert "forgotten before their labels came: 3 rows" in done.err
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    names = ("late_labels", "pending", "forgotten", "unmatched")
    assert [record[name] for name in names] == [2, 3, 3, 1]


def test_probabilities_are_those_of_the_rounds_before(ahpatron: Ahpatron) -> None:
    lines = lines_of(600, 0)
    options = ("--positive", "fraud", "--probability", "-l", "metron")
    done = ahpatron.succeed(*TABLE[:-1], "csv", *options, stdin=csv_of(lines))
    rows = rows_of(done.out)
    given = [
        [float(cell) for name, cell in row.items() if name.startswith("probability_")]
        for row in rows
    ]
    assert [sum(both) for both in given] == pytest.approx([1.0] * 600)
    assert given[0] == pytest.approx([0.5, 0.5])


def test_certificates_are_not_for_late_labels(ahpatron: Ahpatron) -> None:
    ahpatron.refusal(2, *TABLE, "--certify", stdin=HEAD.encode())


# In Python ----------------------------------------------------------------------------------------


def test_pending_rows_are_taken_once_and_the_oldest_is_forgotten() -> None:
    pending: Pending[Any] = Pending(limit=2)
    for key in ("a", "b", "c"):
        pending.add(key, key.upper())
    assert (len(pending), pending.forgotten, "a" in pending) == (2, 1, False)
    assert pending.take("b") == "B"
    for key in ("a", "b"):
        with pytest.raises(KeyError):
            pending.take(key)
    with pytest.raises(KeyError):
        pending.add("c", None)
    with pytest.raises(ValueError, match="at least 1"):
        Pending(limit=0)


def test_a_label_alone_is_a_fault_of_a_service_without_ids(ahpatron: Ahpatron) -> None:
    rows = b"a,y\n1,0\n,1\n2,1\n3,0\n"
    outcome = ahpatron.process("run", "-", "--label", "y", "--answers", "csv", stdin=rows)
    assert outcome.code == 65
    assert ":3" in outcome.err
    assert "--id" in outcome.err


def test_a_row_of_missing_cells_counts_in_a_plain_pipe_as_in_a_file(ahpatron: Ahpatron) -> None:
    rows = b"a,y\n1,0\n,1\n2,1\n,0\n3,0\n,1\n"
    (ahpatron.folder / "rows.csv").write_bytes(rows)
    command = ("--label", "y", "-l", "perceptron", "--format", "json")
    counted = ("rounds", "mistakes", "updates", "support_size")
    piped = json.loads(ahpatron.process("run", "-", *command, stdin=rows).out)["runs"][0]
    read = json.loads(ahpatron.process("run", "rows.csv", *command).out)["runs"][0]
    assert [piped[name] for name in counted] == [read[name] for name in counted]


def test_rows_without_the_key_of_the_id_are_answered(ahpatron: Ahpatron) -> None:
    """Objects of JSON lines may lack it; a label alone then belongs to no row."""
    lines = [{"a": 1, "y": "0"}, {"a": 2}, {"a": 3, "y": "1"}, {"y": "1"}]
    text = "".join(f"{json.dumps(line)}\n" for line in lines).encode()
    found = objects_of(ahpatron.succeed(*TABLE, "--on-fault", "skip", stdin=text).out)
    assert [row["key"] for row in found] == ["", "", "", ""]
    assert ["error" in row for row in found] == [False, False, False, True]


# Before any label is known ------------------------------------------------------------------------


def test_rows_before_the_first_label_have_no_answer_and_count_as_mistakes(
    ahpatron: Ahpatron,
) -> None:
    rows = b"key,a,y\n1,1,\n2,2,\n3,3,\n1,,dog\n2,,cat\n3,,dog\n4,1,\n4,,dog\n"
    done = ahpatron.succeed(*TABLE, "--out", "r.json", stdin=rows)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["prediction"] for answer in answers[:6]] == [None] * 6
    assert [answer["score"] for answer in answers[:6]] == [None] * 6
    assert [answer["mistake"] for answer in answers[3:6]] == [1, 1, 1]
    assert answers[6]["prediction"] is not None
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert record["rounds"] == 4
    assert record["mistakes"] == sum(answer.get("mistake", 0) for answer in answers)
    assert sum(map(sum, record["confusion"])) == 1


@pytest.mark.parametrize("learner", ["metron", "perceptron"])
@pytest.mark.parametrize("labels", ["dog,cat", "dog,cat,cow"])
def test_rows_before_the_first_label_have_no_answer_also_if_labels_are_declared(
    ahpatron: Ahpatron, labels: str, learner: str
) -> None:
    rows = b"key,a,y\n1,1,\n2,2,\n1,,dog\n2,,cat\n4,1,\n4,,dog\n"
    options = ("--classes", labels, "-l", learner, "--probability", "--out", "r.json")
    done = ahpatron.succeed(*TABLE, *options, stdin=rows)
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["prediction"] for answer in answers[:4]] == [None] * 4
    assert [answer["score"] for answer in answers[:4]] == [None] * 4
    assert [answer["mistake"] for answer in answers[2:4]] == [1, 1]
    assert answers[4]["prediction"] is not None
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert record["rounds"] == 3
    assert record["mistakes"] == sum(answer.get("mistake", 0) for answer in answers)


@pytest.mark.parametrize("source", ["cat rows.jsonl |", "<rows.jsonl"])
def test_rows_answered_while_one_label_was_known_count_that_answer(
    ahpatron: Ahpatron, source: str
) -> None:
    """With the label 1 alone it may be a pair; with 3, both are classes."""
    lines = [
        {"key": "a", "x": 1, "y": 1},
        {"key": "b", "x": 1},
        {"key": "c", "x": 2},
        {"key": "d", "x": 3, "y": 3},
        {"key": "b", "y": 1},
        {"key": "c", "y": 3},
    ]
    ahpatron.write("rows.jsonl", "".join(json.dumps(line) + "\n" for line in lines))
    words = shlex.join([*TABLE, "-l", "perceptron", "--out", "r.json"])
    done = ahpatron.shell(f"{source} ahpatron {words}")
    answers = [json.loads(line) for line in done.out.splitlines()]
    assert [answer["prediction"] for answer in answers] == [1, 1, 1, 1, 1, 1]
    assert [answer.get("mistake") for answer in answers] == [0, None, None, 1, 0, 1]
    assert json.loads(ahpatron.read("r.json"))["runs"][0]["confusion"] == [[2, 0], [2, 0]]


def test_a_state_before_the_first_label_goes_on_with_any_labels(ahpatron: Ahpatron) -> None:
    rows = b"key,a,y\n1,1,\n2,2,\n"
    labels = b"key,a,y\n1,,dog\n2,,cat\n3,1,cow\n"
    whole = rows + labels.removeprefix(b"key,a,y\n")
    ahpatron.succeed(*TABLE, "--state", "w.npz", "--out", "w.json", stdin=whole)
    ahpatron.succeed(*TABLE, "--state", "s.npz", stdin=rows)
    ahpatron.succeed(*TABLE, "--state", "s.npz", "--out", "r.json", stdin=labels)
    found, wanted = (json.loads(ahpatron.read(name))["runs"][0] for name in ("r.json", "w.json"))
    for name in ("rounds", "mistakes", "confusion", "classes", "late_labels", "baseline_mistakes"):
        assert found[name] == wanted[name]


def test_the_first_row_of_classes_that_appear_has_no_answer(ahpatron: Ahpatron) -> None:
    rows = b"a,y\n1,dog\n2,cat\n3,dog\n"
    answered = rows_of(
        ahpatron.succeed("run", "-", "--label", "y", "--answers", "csv", stdin=rows).out
    )
    assert [row["prediction"] for row in answered[:2]] == ["", "dog"]
    assert [row["mistake"] for row in answered[:2]] == ["1", "1"]
    plain = rows_of(
        ahpatron.succeed("run", "-", "--label", "y", "--predictions", "-", stdin=rows).out
    )
    for name in ("prediction", "score", "mistake"):
        assert [row[name] for row in plain] == [row[name] for row in answered]


def test_a_pair_of_labels_is_answered_as_in_a_file(ahpatron: Ahpatron) -> None:
    rows = b"a,y\n1,1\n2,0\n3,1\n"
    ahpatron.write("t.csv", rows)
    ahpatron.succeed("run", "t.csv", "--label", "y", "--predictions", "p.csv")
    piped = ahpatron.succeed("run", "-", "--label", "y", "--answers", "csv", stdin=rows)
    wanted = ahpatron.table("p.csv")
    for name in ("prediction", "mistake"):
        assert [row[name] for row in rows_of(piped.out)] == [row[name] for row in wanted]


def test_a_stream_of_one_class_so_far_has_a_report(ahpatron: Ahpatron) -> None:
    done = ahpatron.succeed("run", "-", "--label", "y", "--answers", "csv", stdin=b"a,y\n1,dog\n")
    assert "1 class" in done.err


# Probabilities of labels that appear --------------------------------------------------------------

APPEARING = b"a,y\n1,dog\n2,cat\n3,cow\n3,\n"


@pytest.mark.parametrize("output", ["--answers csv", "--predictions -"])
def test_csv_has_the_probability_of_the_prediction_if_labels_may_appear(
    ahpatron: Ahpatron, output: str
) -> None:
    command = ("run", "-", "--label", "y", "--probability", *output.split())
    rows = rows_of(ahpatron.succeed(*command, stdin=APPEARING).out)
    full = ahpatron.succeed(*command[:-2], "--answers", "jsonl", stdin=APPEARING)
    for row, line in zip(rows[1:], full.out.splitlines()[1:], strict=True):
        answer = json.loads(line)
        name = f"probability_{answer['prediction']}"
        assert float(row["probability"]) == answer[name]
    assert {f"probability_{name}" for name in ("dog", "cat", "cow")} <= set(answer)


def test_csv_has_the_probability_of_each_declared_label(ahpatron: Ahpatron) -> None:
    command = ("run", "-", "--label", "y", "--probability", "--answers", "csv")
    done = ahpatron.succeed(*command, "--classes", "dog,cat,cow", stdin=APPEARING)
    for row in rows_of(done.out):
        shares = [float(row[f"probability_{name}"]) for name in ("dog", "cat", "cow")]
        assert sum(shares) == pytest.approx(1.0)


def test_a_file_of_answers_keeps_its_columns(ahpatron: Ahpatron) -> None:
    """The second process knows both labels from the state, the first one did not."""
    command = ("run", "-", "--label", "y", "--state", "s.npz", "--probability")
    for rows in (b"a,y\n1,1\n2,0\n", b"a,y\n3,1\n4,0\n"):
        ahpatron.succeed(*command, "--predictions", "p.csv", stdin=rows)
    assert [len(row["probability"]) > 2 for row in ahpatron.table("p.csv")] == [True] * 4


# Rows in a state ----------------------------------------------------------------------------------


def remembered() -> Remembered:
    """Two rows that wait for their labels; the second one had no answer."""
    rows = Remembered(5)
    places = np.array([1, 4], dtype=np.int32)
    for key, scores, chosen in (("a", [0.5, -1.0, 0.25], 0), ("b", [np.nan], NO_ANSWER)):
        row = RememberedRow(places, np.array([2.0, 3.0]), np.array(scores), chosen)
        rows.add(key, row)
    return rows


def test_rows_that_wait_come_back_from_a_state() -> None:
    found = Remembered(5)
    with StateReader({"rows": remembered().state_dict()}, {}) as reader:
        reader.value("rows", found)
    first = found.take("a")
    second = found.take("b")
    assert first is not None
    assert second is not None
    assert (first.columns.tolist(), first.values.tolist()) == ([1, 4], [2.0, 3.0])
    assert (first.scores.tolist(), first.chosen) == ([0.5, -1.0, 0.25], 0)
    assert np.isnan(second.scores).all()
    assert second.chosen == NO_ANSWER


def test_a_class_that_appeared_later_has_the_smallest_score() -> None:
    row = remembered().take("a")
    assert row is not None
    found = Remembered.answers([row], classes=4)
    assert found.scores.tolist() == [[0.5, -1.0, 0.25, -1.0]]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("chosen", np.array([0, 3])),
        ("chosen", np.array([0, -2])),
        ("lengths", np.array([2, 3])),
        ("lengths", np.array([5, -1])),
        ("columns", np.array([1, 4, -1, 4], dtype=np.int32)),
        ("values", np.ones(3)),
        ("scores", np.ones((1, 3))),
        ("ids", np.frombuffer(b'["a","a"]   ', dtype=np.int32)),
        ("ids", np.frombuffer(b"[1, 2]  ", dtype=np.int32)),
        ("ids", np.frombuffer(b"none", dtype=np.int32)),
        ("forgotten", -1),
    ],
)
def test_a_damaged_state_of_rows_that_wait_is_refused(name: str, value: Any) -> None:
    state = remembered().state_dict()
    state[name] = value
    with pytest.raises(StateError, match="wait for labels"):
        StateReader({"rows": state}, {}).value("rows", Remembered(5))


def test_a_row_with_a_faulty_value_is_answered_with_its_id(ahpatron: Ahpatron) -> None:
    text = b'{"key": "k", "a": 1, "y": "u"}\n{"key": "f", "a": "x"}\n{"key": "g", "a": 2}\n'
    answers = objects_of(ahpatron.succeed(*TABLE, "--on-fault", "skip", stdin=text).out)
    assert [one["key"] for one in answers] == ["k", "f", "g"]
    assert "error" in answers[1]


def test_a_misspelt_option_of_a_state_is_refused_with_that_of_the_state(ahpatron: Ahpatron) -> None:
    words = ("run", "-", "--id", "key", "--state", "s.npz")
    ahpatron.succeed(*words, "--label", "the label", stdin=b'{"key": "k", "a": 1}\n')
    message = ahpatron.refusal(2, *words, "--label", "the labels", stdin=b'{"key": "l", "a": 1}\n')
    assert "--label 'the label'" in message


def test_a_stream_that_ends_before_the_first_label_names_no_labels(ahpatron: Ahpatron) -> None:
    words = ("run", "-", "--label", "y", "--id", "key", "--state", "s.npz")
    done = ahpatron.succeed(*words, stdin=b'{"key": "k", "a": 1}\n')
    assert "+1" not in done.err
    assert "1 row without a label" in done.err


def test_json_lines_are_answered_as_json_lines_after_a_warm_up_too(ahpatron: Ahpatron) -> None:
    text = "".join(f'{{"key": "{i}", "a": {i % 7}, "y": "{"uv"[i % 2]}"}}\n' for i in range(40))
    words = ("run", "-", "--label", "y", "--id", "key", "--state", "s.npz", "--warm-up", 10)
    answers = objects_of(ahpatron.succeed(*words, stdin=text.encode()).out)
    assert [one["key"] for one in answers] == [str(i) for i in range(40)]


def test_a_recorded_stream_that_is_run_as_a_file_is_noted(ahpatron: Ahpatron) -> None:
    lines = [("k", "1", ""), ("k", "", "u"), ("l", "2", ""), ("l", "", "v"), ("m", "3", "u")]
    text = "key,a,y\n" + "".join(f"{','.join(line)}\n" for line in lines)
    ahpatron.write("d.csv", text)
    done = ahpatron.succeed("run", "d.csv", "--label", "y", "--id", "key")
    assert "2 rows with an id, a label and no other cell" in done.err
    noted = ahpatron.succeed("run", "-", "--label", "y", "--id", "key", stdin=text.encode())
    assert "no other cell" not in noted.err
