"""Labels that come later than their rows, by id, on a live stream and in Python."""

import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from ahpatron_cli import Pending
from ahpatron_cli.core import Player
from ahpatron_cli.core.registry import find_learner
from support.command import Ahpatron, rows_of

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
    answered: dict[str, float] = {}
    mistakes = []
    for key, features, label in lines:
        if features is not None:
            rows[key] = np.array([0.0, *features])
            answered[key] = player.score(rows[key])
        if label:
            y = 1 if label == "fraud" else -1
            mistakes.append(int((1 if answered[key] >= 0 else -1) != y))
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
        waiting = ahpatron.json("inspect", "s.npz")["live"]["pending"]
        assert waiting > 0 or start + 640 >= len(lines)
    found, wanted = (json.loads(ahpatron.read(name))["runs"][0] for name in ("r.json", "w.json"))
    names = ("rounds", "mistakes", "late_labels", "unlabelled", "pending", "baseline_mistakes")
    assert [found[name] for name in names] == [wanted[name] for name in names]


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
    ahpatron.succeed(*TABLE, *options, stdin=content)
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
