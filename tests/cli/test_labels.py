"""Which labels are played, how they are mapped, and that it is said."""

from __future__ import annotations

import json

import pytest

from support.command import Ahpatron


def data(*labels: object) -> str:
    return "".join(f"{label} 1:{i % 7} 2:{i % 3}\n" for i, label in enumerate(labels))


def mapped(ahpatron: Ahpatron, *labels: object, **kwargs: object) -> tuple[list, str]:
    path = ahpatron.write("data.svm", data(*labels))
    options = [f"--{name}={value}" for name, value in kwargs.items()]
    done = ahpatron.succeed("run", path, "--format", "json", *options)
    return json.loads(done.out)["data"]["labels"], done.err


@pytest.mark.parametrize(
    ("labels", "pair"),
    [
        (("-1", "+1"), [-1, 1]),
        (("0", "1"), [0, 1]),
        (("1", "2"), [1, 2]),
        (("2", "1"), [1, 2]),
        (("3.5", "-7"), [-7, 3.5]),
        (("-1", "0"), [-1, 0]),
    ],
)
def test_two_labels_are_mapped_smaller_to_minus_one(
    ahpatron: Ahpatron, labels: tuple[str, str], pair: list[float]
) -> None:
    found, said = mapped(ahpatron, *labels * 5)
    assert found == pair
    expected = f"note: label {pair[0]} counts as -1, label {pair[1]} as +1\n"
    assert said == ("" if pair == [-1, 1] else expected)


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_positive_plays_one_label_against_the_rest(ahpatron: Ahpatron, way: list[str]) -> None:
    path = ahpatron.write("data.svm", data(1, 2, 3, 2, 1))
    done = ahpatron("run", path, "--positive", "2", "--format", "json", *way)
    assert json.loads(done.out)["data"]["labels"] == [None, 2]
    assert done.err == "note: label 2 counts as +1, every other label as -1\n"
    err = ahpatron.refusal(65, "run", path, "--positive", "7", *way)
    assert "no row has the label 7" in err
    assert "the labels are 1, 2, 3" in err


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_one_class_is_refused_unless_it_is_meant(ahpatron: Ahpatron, way: list[str]) -> None:
    path = ahpatron.write("data.svm", data(1, 1, 1))
    err = ahpatron.refusal(65, "run", path, *way)
    assert "all rows have the same label, 1" in err
    assert "--positive 1" in err
    more = ahpatron.write("more.svm", data(1, 1, 1, -1))
    cut = ahpatron("run", more, "--limit", 3, *way)
    assert "--limit" in cut.err
    assert ahpatron("run", path, "--positive", "1", *way).code == 0


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_one_class_of_an_odd_label(ahpatron: Ahpatron, way: list[str]) -> None:
    path = ahpatron.write("data.svm", data(5, 5, 5))
    assert "all rows have the same label, 5" in ahpatron.refusal(65, "run", path, *way)


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_three_labels_are_three_classes(ahpatron: Ahpatron, way: list[str]) -> None:
    path = ahpatron.write("data.svm", data(0, 1, 2))
    done = ahpatron("run", path, *way)
    assert (done.code, done.err) == (0, "note: 3 classes: 0, 1, 2\n")


def test_a_third_label_late_in_a_file_is_a_class(ahpatron: Ahpatron) -> None:
    text = "-1 1:1\n1 1:2\n" * 20_000 + "2 1:1\n"
    path = ahpatron.write("data.svm", text)
    assert ahpatron.json("run", path, "-B", "10")["data"]["labels"] == [-1, 1, 2]
    ahpatron.succeed("sweep", path, "-B", "10", "--no-shuffle", "--out", "s.jsonl")
    _, trial = (ahpatron.folder / "s.jsonl").read_text().splitlines()
    assert json.loads(trial)["data"]["labels"] == [-1, 1, 2]
    assert len(ahpatron.json("inspect", path)["labels"]) == 3
    piped = ahpatron("run", "-", "-B", "10", stdin=text.encode())
    assert piped.code == 65
    assert "<stdin>:40001" in piped.err
    assert "--labels -1,1,2" in piped.err
    named = ahpatron.json("run", "-", "-B", "10", "--labels", "-1,1,2", stdin=text.encode())
    assert named["data"]["labels"] == [-1, 1, 2]


def test_labels_of_a_pipe(ahpatron: Ahpatron) -> None:
    text = data(1, 2, 1, 2).encode()
    named = ahpatron.json("run", "-", "--labels", "2,1", stdin=text)
    assert named["data"]["labels"] == [1, 2]
    assert "label: 2" in ahpatron("run", "-", "--labels", "1,3", stdin=text).err
    for wrong in ("1", "1,1", "a,b", ""):
        assert "--labels" in ahpatron.refusal(2, "run", "-", "--labels", wrong, stdin=text)
    assert ahpatron("run", "-", "--labels", "1,2", "--positive", "1", stdin=text).code == 2


def test_stdin_needs_no_look_ahead_for_plain_labels(ahpatron: Ahpatron) -> None:
    assert ahpatron("run", "-", stdin=data(0, 1, 0).encode()).code == 0
    # only the first 100,000 rows look like a single class
    late = ("1 1:1\n" * 100_000 + "-1 1:2\n").encode()
    done = ahpatron.succeed("run", "-", "-l", "perceptron", stdin=late)
    assert "labels come sorted" in done.err


def test_stdin_asks_for_positive_where_it_cannot_know(ahpatron: Ahpatron) -> None:
    assert "--positive 2" in ahpatron.refusal(65, "run", "-", stdin=data(1, 2, 1).encode())
    assert ahpatron("run", "-", "--positive", "2", stdin=data(1, 2, 1).encode()).code == 0
    # all in memory: nothing needs to be known beforehand
    assert ahpatron("run", "-", "--shuffle", stdin=data(1, 2, 1).encode()).code == 0


def test_sorted_labels_are_warned_about(ahpatron: Ahpatron) -> None:
    path = ahpatron.write("data.svm", data(*[1] * 20, *[-1] * 20))
    assert "the labels come sorted" in ahpatron("run", path).err
    assert "sorted" not in ahpatron("run", path, "--shuffle").err


@pytest.mark.parametrize("rows", [2, 10, 19])
def test_few_rows_are_sorted_by_chance(ahpatron: Ahpatron, rows: int) -> None:
    half = rows // 2
    path = ahpatron.write("data.svm", data(*[1] * half, *[-1] * (rows - half)))
    done = ahpatron("run", path)
    assert (done.code, done.err) == (0, "")


@pytest.mark.parametrize("label", ["one", "nan", "inf", "1_0", ""])
def test_positive_must_be_a_number(ahpatron: Ahpatron, label: str) -> None:
    assert "--positive" in ahpatron.refusal(2, "run", "x.svm", f"--positive={label}")
