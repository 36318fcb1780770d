"""How labels become -1 and +1, or classes, in files and in pipes."""

import json

import pytest

from support.command import Ahpatron, Outcome, wait_until_read
from support.labels import EVERY, NUMBERS, TEXTS, drawn, table


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
    assert "--classes -1,1,2" in piped
    named = ahpatron.json("run", "-", "-B", "10", "--classes", "-1,1,2", stdin=text.encode())
    assert named["data"]["labels"] == [-1, 1, 2]


def test_labels_of_a_pipe(ahpatron: Ahpatron) -> None:
    """-1/+1 and 0/1 are taken as they come; others must be named, unless all rows are held."""
    ahpatron.succeed("run", "-", stdin=data(0, 1, 0).encode())
    text = data(1, 2, 1, 2).encode()
    assert "--positive 2" in ahpatron.refusal(65, "run", "-", stdin=text)
    for way in (["--classes", "2,1"], ["--shuffle"]):
        assert ahpatron.json("run", "-", *way, stdin=text)["data"]["labels"] == [1, 2]
    ahpatron.succeed("run", "-", "--positive", 2, stdin=text)
    assert "2" in ahpatron.refusal(65, "run", "-", "--classes", "1,3", stdin=text)


@pytest.mark.parametrize(("rows", "warned"), [(19, False), (40, True)])
def test_sorted_labels_are_warned_about(ahpatron: Ahpatron, rows: int, warned: bool) -> None:
    """Few rows may be sorted by chance."""
    ahpatron.write("d.svm", data(*[1] * (rows // 2), *[-1] * (rows - rows // 2)))
    assert ("--shuffle" in ahpatron.succeed("run", "d.svm").err) == warned
    assert "--shuffle" not in ahpatron.succeed("run", "d.svm", "--shuffle").err
    ahpatron.write("one.svm", data(*[1] * rows))
    assert "--shuffle" not in ahpatron.succeed("run", "one.svm", "--positive", 1).err


WAYS = ["file", "shuffled file", "pipe", "table", "shuffled table", "table in a pipe"]
KINDS_AND_WAYS = [(kind, way) for way in WAYS for kind in (EVERY if "table" in way else NUMBERS)]


def run_way(ahpatron: Ahpatron, way: str, labels: tuple[str, ...], *options: object) -> Outcome:
    """Run on 370 rows with these labels; the first 70 all have the last one."""
    rows = drawn(labels[-1:], 70) + drawn(labels, 300)
    text = "".join(f"{label} 1:{a} 2:{b}\n" for label, a, b in rows)
    words = ["-l", "metron", *options, "--json"]
    if "table" in way:
        text = "y,a,b\n" + "".join(f"{label},{a},{b}\n" for label, a, b in rows)
        words += ["--label", "y"]
    plain = labels in (EVERY["-1/+1"], EVERY["0/1"])
    if (way == "pipe" and not plain) or (way == "table in a pipe" and len(labels) > 2):
        words += ["--classes", ",".join(labels)]
    words += ["--shuffle"] if "shuffled" in way else []
    path = "-" if "pipe" in way else ahpatron.write("t.csv" if "table" in way else "d.svm", text)
    return ahpatron("run", path, *words, stdin=text.encode())


@pytest.mark.parametrize(("kind", "way"), KINDS_AND_WAYS)
def test_a_cost_is_that_of_its_label(ahpatron: Ahpatron, kind: str, way: str) -> None:
    labels = EVERY[kind]
    for label in labels:
        done = run_way(ahpatron, way, labels, "--weight", f"{label}=5")
        assert done.code == 0, done.err
        (run,) = json.loads(done.out)["runs"]
        assert run["costs"] == [5 if one == label else 1 for one in labels]
        assert run["rounds"] == 370


@pytest.mark.parametrize(("kind", "way"), KINDS_AND_WAYS)
def test_a_cost_of_a_label_that_no_row_has_is_refused(
    ahpatron: Ahpatron, kind: str, way: str
) -> None:
    strange = "0" if kind == "-1/+1" else "-1"
    done = run_way(ahpatron, way, EVERY[kind], "--weight", f"{strange}=5")
    assert done.out == ""
    assert f"--weight names the label {strange}" in done.err
    assert done.code == 2 or (way == "pipe" and done.code == 65)  # if the rows came late


def test_a_cost_decides_what_the_first_rows_of_a_pipe_leave_open(ahpatron: Ahpatron) -> None:
    """Label 1 may be of the pair -1/+1 or 0/1; the cost is applied from the first row on."""
    for cost, code in (("0=5", 0), ("-1=5", 65)):
        with ahpatron.start("run", "-", "--weight", cost, "--json") as process:
            assert process.stdin
            process.stdin.write(data(1, 1))
            process.stdin.flush()
            wait_until_read(process)
            out, err = process.communicate(data(0, 1, 0), timeout=60)
        assert process.returncode == code
        if code == 0:
            assert json.loads(out)["runs"][0]["costs"] == [5, 1]
            assert json.loads(out)["data"]["labels"] == [0, 1]
        else:
            assert "unexpected label: 0" in err
            assert "--weight names the label -1" in err


@pytest.mark.parametrize("way", ["", "--shuffle"])
def test_a_cost_beside_positive(ahpatron: Ahpatron, way: str) -> None:
    """The other label has a name only if it is the only one."""
    ahpatron.write("two.svm", data(*[1, 2] * 9))
    ahpatron.write("three.svm", data(*[1, 2, 3] * 9))
    words = ("--positive", "2", *way.split(), "--weight")
    assert ahpatron.run("two.svm", *words, "1=5")["costs"] == [5, 1]
    assert ahpatron.run("three.svm", *words, "2=5")["costs"] == [1, 5]
    assert "label 1" in ahpatron.refusal(2, "run", "three.svm", *words, "1=5")


def test_classes_of_a_table_in_a_pipe_must_be_named(ahpatron: Ahpatron) -> None:
    text = table(EVERY["text classes"])
    ahpatron.write("t.csv", text)
    words = ("--label", "y", "--id", "name", "-l", "metron")
    said = ahpatron.refusal(65, "run", "-", *words, stdin=text.encode())
    assert "3 classes in the first rows" in said
    assert "--classes setosa,versicolor,virginica" in said
    named = ("--classes", "virginica,setosa,versicolor", "--save", "m.npz")
    piped = ahpatron.json("run", "-", *words, *named, stdin=text.encode())
    whole = ahpatron.json("run", "t.csv", *words)
    assert piped["runs"][0]["confusion"] == whole["runs"][0]["confusion"]
    said = ahpatron.succeed("predict", "m.npz", "t.csv", "--format", "jsonl").out
    assert {json.loads(line)["prediction"] for line in said.splitlines()} == {
        *TEXTS["text classes"]
    }


@pytest.mark.parametrize("named", [True, False])
def test_a_class_that_comes_late_in_a_pipe_must_be_named(ahpatron: Ahpatron, named: bool) -> None:
    """The schema is made of the first 50 rows, which have two classes."""
    words = ["run", "-", "--label", "y", "-l", "metron", "--warm-up", 50, "--out", "r.json"]
    words += ["--classes", "a,b,c"] if named else []
    with ahpatron.start(*words, "--predictions", "-") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("y,x\n" + "".join(f"{'ab'[i % 2]},{i % 2}\n" for i in range(60)))
        process.stdin.flush()
        for _ in range(61):
            process.stdout.readline()
        _, err = process.communicate("".join(f"c,{i % 3}\n" for i in range(30)), timeout=60)
    assert process.returncode == (0 if named else 65)
    if named:
        (run,) = json.loads(ahpatron.read("r.json"))["runs"]
        assert [sum(row) for row in run["confusion"]] == [30, 30, 30]
    else:
        assert "'c' is unknown" in err
        assert "--classes" in err


@pytest.mark.parametrize("kind", ["-1/+1", "0/1"])
def test_the_rare_label_of_a_table_may_come_late_in_a_pipe(ahpatron: Ahpatron, kind: str) -> None:
    """As in LIBSVM text: the first 50 rows, of which the schema is made, have the other label."""
    frequent, rare = EVERY[kind]
    words = ("run", "-", "--label", "y", "--warm-up", 50, "--out", "r.json", "--save", "m.npz")
    with ahpatron.start(*words, "--weight", f"{rare}=5", "--predictions", "-") as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("y,x\n" + "".join(f"{frequent},{i % 2}\n" for i in range(60)))
        process.stdin.flush()
        for _ in range(61):
            process.stdout.readline()
        out, err = process.communicate(f"{rare},7\n" * 20, timeout=60)
    assert process.returncode == 0, err
    assert out.splitlines()[-1].split(",")[-2] == rare
    document = json.loads(ahpatron.read("r.json"))
    assert document["data"]["labels"] == [int(frequent), int(rare)]
    assert document["runs"][0]["costs"] == [1, 5]


@pytest.mark.parametrize("path", ["t.csv", "-"])
def test_labels_names_all_labels_of_a_table(ahpatron: Ahpatron, path: str) -> None:
    text = table(EVERY["text classes"]).encode()
    ahpatron.write("t.csv", text)
    words = ("run", path, "--label", "y", "--id", "name", "--classes")
    assert "unexpected label" in ahpatron.refusal(65, *words, "setosa,virginica", stdin=text)
    for wrong in ("setosa", "setosa,setosa", "setosa,,virginica"):
        assert "--classes" in ahpatron.refusal(2, *words, wrong, stdin=text)
