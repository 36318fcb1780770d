"""How labels become -1 and +1, or classes, in files and in pipes."""

import pytest

from support.command import Ahpatron


def data(*labels: object) -> str:
    return "".join(f"{label} 1:{i % 7} 2:{i % 3}\n" for i, label in enumerate(labels))


@pytest.mark.parametrize(
    ("labels", "pair"),
    [("-1 +1", [-1, 1]), ("0 1", [0, 1]), ("2 1", [1, 2]), ("3.5 -7", [-7, 3.5])],
)
def test_the_smaller_of_two_labels_is_minus_one(
    ahpatron: Ahpatron, labels: str, pair: list[float]
) -> None:
    ahpatron.write("d.svm", data(*labels.split() * 5))
    assert ahpatron.json("run", "d.svm")["data"]["labels"] == pair
    assert ("note: label" in ahpatron("run", "d.svm").err) == (pair != [-1, 1])


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_positive_is_one_label_against_the_rest(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("d.svm", data(1, 2, 3, 2, 1))
    found = ahpatron.json("run", "d.svm", "--positive", "2", *way)
    assert found["data"]["labels"] == [None, 2]
    assert "confusion" not in found["runs"][0]
    assert ahpatron.run("d.svm", *way)["classes"] == [1, 2, 3]
    ahpatron.write("one.svm", data(1, 1, 1, -1))
    assert "--limit" in ahpatron.refusal(65, "run", "one.svm", "--limit", 3, *way)
    ahpatron.succeed("run", "one.svm", "--limit", 3, "--positive", "1", *way)


def test_a_third_label_late_in_a_file_is_a_class(ahpatron: Ahpatron) -> None:
    text = "-1 1:1\n1 1:2\n" * 20_000 + "2 1:1\n"
    path = ahpatron.write("data.svm", text)
    started_again = ahpatron.json("run", path, "-B", "10")
    scanned = ahpatron.json("run", path, "-B", "10", "--predictions", "p.csv")
    assert started_again["data"]["labels"] == scanned["data"]["labels"] == [-1, 1, 2]
    assert started_again["runs"][0]["confusion"] == scanned["runs"][0]["confusion"]
    sweep = ("sweep", path, "-B", "10", "--no-shuffle", "--out", "s.jsonl")
    (found,) = ahpatron.json(*sweep)["datasets"]
    assert found["data"]["labels"] == [-1, 1, 2]
    assert len(ahpatron.json("inspect", path)["labels"]) == 3
    piped = ahpatron.refusal(65, "run", "-", "-B", "10", stdin=text.encode())
    assert "<stdin>:40001" in piped
    assert "--labels -1,1,2" in piped
    named = ahpatron.json("run", "-", "-B", "10", "--labels", "-1,1,2", stdin=text.encode())
    assert named["data"]["labels"] == [-1, 1, 2]


def test_labels_of_a_pipe(ahpatron: Ahpatron) -> None:
    """-1/+1 and 0/1 are taken as they come; others must be named, unless all rows are held."""
    ahpatron.succeed("run", "-", stdin=data(0, 1, 0).encode())
    text = data(1, 2, 1, 2).encode()
    assert "--positive 2" in ahpatron.refusal(65, "run", "-", stdin=text)
    for way in (["--labels", "2,1"], ["--shuffle"]):
        assert ahpatron.json("run", "-", *way, stdin=text)["data"]["labels"] == [1, 2]
    ahpatron.succeed("run", "-", "--positive", 2, stdin=text)
    assert "2" in ahpatron.refusal(65, "run", "-", "--labels", "1,3", stdin=text)


@pytest.mark.parametrize(("rows", "warned"), [(19, False), (40, True)])
def test_sorted_labels_are_warned_about(ahpatron: Ahpatron, rows: int, warned: bool) -> None:
    """Few rows may be sorted by chance."""
    ahpatron.write("d.svm", data(*[1] * (rows // 2), *[-1] * (rows - rows // 2)))
    assert ("--shuffle" in ahpatron.succeed("run", "d.svm").err) == warned
    assert "--shuffle" not in ahpatron.succeed("run", "d.svm", "--shuffle").err
    ahpatron.write("one.svm", data(*[1] * rows))
    assert "--shuffle" not in ahpatron.succeed("run", "one.svm", "--positive", 1).err
