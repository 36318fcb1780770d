"""How labels become -1 and +1, or classes, in files and in pipes."""

import json

import pytest

from ahpatron_cli.data.libsvm.reader import CHUNK_BYTES
from support.command import Ahpatron, Outcome, wait_until_read
from support.labels import EVERY, NUMBERS, TEXTS, drawn, table


def data(*labels: object) -> str:
    return "".join(f"{label} 1:{i % 7} 2:{i % 3}\n" for i, label in enumerate(labels))


PAIRS = pytest.mark.parametrize(
    ("labels", "pair"),
    [("-1 +1", [-1, 1]), ("0 1", [0, 1]), ("2 1", [1, 2]), ("3.5 -7", [-7, 3.5])],
    ids=["-1 and +1", "0 and 1", "2 and 1", "3.5 and -7"],
)
IN_ORDER_OR_NOT = pytest.mark.parametrize("way", [[], ["--shuffle"]], ids=["in order", "shuffled"])


@PAIRS
def test_the_smaller_of_two_labels_is_minus_one(
    ahpatron: Ahpatron, labels: str, pair: list[float]
) -> None:
    ahpatron.write("d.svm", data(*labels.split() * 5))
    assert ahpatron.json("run", "d.svm")["data"]["labels"] == pair


@PAIRS
def test_labels_other_than_minus_one_and_one_are_noted(
    ahpatron: Ahpatron, labels: str, pair: list[float]
) -> None:
    ahpatron.write("d.svm", data(*labels.split() * 5))
    assert ("note: label" in ahpatron("run", "d.svm").err) == (pair != [-1, 1])


@IN_ORDER_OR_NOT
def test_three_labels_are_classes(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("d.svm", data(1, 2, 3, 2, 1))
    assert ahpatron.run("d.svm", *way)["classes"] == [1, 2, 3]


@IN_ORDER_OR_NOT
def test_positive_is_one_label_against_the_rest(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("d.svm", data(1, 2, 3, 2, 1))
    found = ahpatron.json("run", "d.svm", "--positive", "2", *way)
    assert found["data"]["labels"] == [None, 2]
    assert "confusion" not in found["runs"][0]


@IN_ORDER_OR_NOT
def test_rows_of_one_label_are_refused(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("one.svm", data(1, 1, 1, -1))
    assert "--limit" in ahpatron.refusal(65, "run", "one.svm", "--limit", 3, *way)


@IN_ORDER_OR_NOT
def test_rows_of_one_label_are_learned_if_it_is_named(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("one.svm", data(1, 1, 1, -1))
    ahpatron.succeed("run", "one.svm", "--limit", 3, "--positive", "1", *way)


# A label that comes late --------------------------------------------------------------------------

OTHERS = " ".join(f"{column}:1" for column in range(2, 17))
LATE = f"-1 1:1 {OTHERS}\n1 1:2 {OTHERS}\n" * 8_000 + "2 1:1\n"
"""A third label in the last of 16,001 rows, of more than the megabyte that is read at once."""
assert len(LATE) > CHUNK_BYTES


@pytest.fixture
def late(ahpatron: Ahpatron) -> Ahpatron:
    ahpatron.write("late.svm", LATE)
    return ahpatron


def test_a_third_label_late_in_a_file_starts_the_run_again(late: Ahpatron) -> None:
    done = late.succeed("run", "late.svm", "-B", "10", "--json")
    assert "starts again" in done.err
    assert json.loads(done.out)["data"]["labels"] == [-1, 1, 2]


def test_a_third_label_late_in_a_file_is_found_before_rows_are_written(late: Ahpatron) -> None:
    done = late.succeed("run", "late.svm", "-B", "10", "--predictions", "p.csv", "--json")
    assert "starts again" not in done.err
    found = json.loads(done.out)
    assert found["data"]["labels"] == [-1, 1, 2]
    assert found["runs"][0]["confusion"] == late.run("late.svm", "-B", "10")["confusion"]


def test_a_third_label_late_in_a_file_is_found_by_a_sweep(late: Ahpatron) -> None:
    sweep = ("sweep", "late.svm", "-B", "10", "--no-shuffle", "--out", "s.jsonl")
    (found,) = late.json(*sweep)["datasets"]
    assert found["data"]["labels"] == [-1, 1, 2]


def test_a_third_label_late_in_a_file_is_found_by_inspect(late: Ahpatron) -> None:
    assert len(late.json("inspect", "late.svm")["labels"]) == 3


def test_a_third_label_late_in_a_pipe_is_refused(ahpatron: Ahpatron) -> None:
    done = ahpatron.process("run", "-", "-B", "10", stdin=LATE.encode())
    assert done.code == 65
    assert "<stdin>:16001" in done.err
    assert "--classes -1,1,2" in done.err


def test_a_third_label_late_in_a_pipe_can_be_named(ahpatron: Ahpatron) -> None:
    words = ("run", "-", "-B", "10", "--classes", "-1,1,2")
    assert ahpatron.json(*words, stdin=LATE.encode())["data"]["labels"] == [-1, 1, 2]


# Pipes --------------------------------------------------------------------------------------------

ONE_AND_TWO = data(1, 2, 1, 2).encode()


@pytest.mark.parametrize("labels", [(0, 1, 0), (-1, 1, -1)], ids=["0 and 1", "-1 and +1"])
def test_usual_labels_of_a_pipe_are_taken_as_they_come(
    ahpatron: Ahpatron, labels: tuple[int, ...]
) -> None:
    found = ahpatron.json("run", "-", stdin=data(*labels).encode())
    assert found["data"]["labels"] == sorted({*labels})


def test_other_labels_of_a_pipe_are_classes(ahpatron: Ahpatron) -> None:
    found = ahpatron.json("run", "-", stdin=ONE_AND_TWO)
    assert found["data"]["labels"] == [1, 2]
    assert found["runs"][0]["classes"] == [1, 2]


@pytest.mark.parametrize("way", ["--classes 2,1", "--shuffle"])
def test_other_labels_of_a_pipe_must_be_named_unless_all_rows_are_held(
    ahpatron: Ahpatron, way: str
) -> None:
    found = ahpatron.json("run", "-", *way.split(), stdin=ONE_AND_TWO)
    assert found["data"]["labels"] == [1, 2]


def test_the_positive_label_of_a_pipe_can_be_named(ahpatron: Ahpatron) -> None:
    found = ahpatron.json("run", "-", "--positive", 1, stdin=ONE_AND_TWO)
    assert found["data"]["labels"] == [2, 1]


def test_a_label_that_was_not_named_is_refused(ahpatron: Ahpatron) -> None:
    done = ahpatron.process("run", "-", "--classes", "1,3", stdin=ONE_AND_TWO)
    assert done.code == 65
    assert "label: 2" in done.err


# Order --------------------------------------------------------------------------------------------


def sorted_rows(count: int) -> str:
    half = count // 2
    return data(*[1] * half, *[-1] * (count - half))


@pytest.mark.parametrize(("rows", "warned"), [(19, False), (40, True)], ids=["few", "many"])
def test_sorted_labels_are_warned_about_unless_rows_are_few(
    ahpatron: Ahpatron, rows: int, warned: bool
) -> None:
    """Few rows may be sorted by chance."""
    ahpatron.write("d.svm", sorted_rows(rows))
    assert ("--shuffle" in ahpatron.succeed("run", "d.svm").err) == warned


def test_sorted_labels_are_no_reason_to_warn_if_rows_are_shuffled(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.svm", sorted_rows(40))
    assert "--shuffle" not in ahpatron.succeed("run", "d.svm", "--shuffle").err


def test_rows_of_one_label_are_not_called_sorted(ahpatron: Ahpatron) -> None:
    ahpatron.write("one.svm", data(*[1] * 40))
    assert "--shuffle" not in ahpatron.succeed("run", "one.svm", "--positive", 1).err


# Costs --------------------------------------------------------------------------------------------

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
    if "pipe" in way and not plain:
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


def run_on_late_zeros(ahpatron: Ahpatron, cost: str) -> Outcome:
    """Rows with label 1 arrive, then others with 0; 1 may be of the pair -1/+1 or 0/1."""
    with ahpatron.start("run", "-", "--weight", cost, "--json") as process:
        assert process.stdin
        process.stdin.write(data(1, 1))
        process.stdin.flush()
        wait_until_read(process)
        out, err = process.communicate(data(0, 1, 0), timeout=300)
    return Outcome(process.returncode, out, err)


def test_a_cost_decides_what_the_first_rows_of_a_pipe_leave_open(ahpatron: Ahpatron) -> None:
    """It is applied from the first row on."""
    done = run_on_late_zeros(ahpatron, "0=5")
    assert done.code == 0, done.err
    document = json.loads(done.out)
    assert document["data"]["labels"] == [0, 1]
    assert document["runs"][0]["costs"] == [5, 1]


def test_a_label_that_the_costs_of_a_pipe_rule_out_is_refused(ahpatron: Ahpatron) -> None:
    done = run_on_late_zeros(ahpatron, "-1=5")
    assert done.code == 65
    assert "unexpected label: 0" in done.err
    assert "--weight names the label -1" in done.err


@IN_ORDER_OR_NOT
def test_the_other_of_two_labels_can_have_a_cost_beside_positive(
    ahpatron: Ahpatron, way: list[str]
) -> None:
    ahpatron.write("two.svm", data(*[1, 2] * 9))
    found = ahpatron.run("two.svm", "--positive", "2", *way, "--weight", "1=5")
    assert found["costs"] == [5, 1]


@IN_ORDER_OR_NOT
def test_the_positive_of_three_labels_can_have_a_cost(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("three.svm", data(*[1, 2, 3] * 9))
    found = ahpatron.run("three.svm", "--positive", "2", *way, "--weight", "2=5")
    assert found["costs"] == [1, 5]


@IN_ORDER_OR_NOT
def test_one_of_two_labels_in_the_rest_cannot_have_a_cost(
    ahpatron: Ahpatron, way: list[str]
) -> None:
    ahpatron.write("three.svm", data(*[1, 2, 3] * 9))
    words = ("three.svm", "--positive", "2", *way, "--weight", "1=5")
    assert "label 1" in ahpatron.refusal(2, "run", *words)


# Tables in pipes ----------------------------------------------------------------------------------

CLASSES = table(EVERY["text classes"])
OF_CLASSES = ("--label", "y", "--id", "name", "-l", "metron")


def test_classes_of_a_table_in_a_pipe_are_added_as_they_appear(ahpatron: Ahpatron) -> None:
    found = ahpatron.json("run", "-", *OF_CLASSES, stdin=CLASSES.encode())
    names = found["data"]["label_names"]
    assert sorted(names) == ["setosa", "versicolor", "virginica"]
    rows = [line.split(",")[-1] for line in CLASSES.splitlines()[1:]]
    assert names == list(dict.fromkeys(rows))


def test_a_weight_of_a_label_that_is_text_requires_the_labels_of_a_pipe(ahpatron: Ahpatron) -> None:
    words = ("run", "-", *OF_CLASSES, "--weight", "setosa=2", "-l", "metron")
    assert "--classes" in ahpatron.refusal(2, *words, stdin=CLASSES.encode())


NAMED = ("--classes", "virginica,setosa,versicolor")


def test_classes_of_a_table_in_a_pipe_are_learned_as_in_a_file(ahpatron: Ahpatron) -> None:
    """The order in which they are named does not matter."""
    ahpatron.write("t.csv", CLASSES)
    piped = ahpatron.run("-", *OF_CLASSES, *NAMED, stdin=CLASSES.encode())
    assert piped["confusion"] == ahpatron.run("t.csv", *OF_CLASSES)["confusion"]


def test_a_model_of_a_table_in_a_pipe_predicts_the_names_of_classes(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", CLASSES)
    words = ("run", "-", *OF_CLASSES, *NAMED, "--save", "m.npz")
    ahpatron.succeed(*words, stdin=CLASSES.encode())
    lines = ahpatron.succeed("predict", "m.npz", "t.csv", "--format", "jsonl").out.splitlines()
    found = {json.loads(line)["prediction"] for line in lines}
    assert found == {*TEXTS["text classes"]}


def run_in_two_parts(
    ahpatron: Ahpatron, first: list[str], second: list[str], *options: object
) -> Outcome:
    """A table in a pipe: rows come once the first ones, of which the schema is made, are answered.

    Predictions are on standard output, the document in r.json.
    """
    words = ("run", "-", "--label", "y", "--warm-up", 50, "--out", "r.json", "--predictions", "-")
    with ahpatron.start(*words, *options) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write("".join(["y,x\n", *first]))
        process.stdin.flush()
        for _ in range(len(first) + 1):
            process.stdout.readline()
        out, err = process.communicate("".join(second), timeout=300)
    return Outcome(process.returncode, out, err)


TWO_CLASSES = [f"{'ab'[i % 2]},{i % 2}\n" for i in range(60)]
THIRD_CLASS = [f"c,{i % 3}\n" for i in range(30)]


def test_a_class_that_comes_late_in_a_pipe_is_learned_if_it_was_named(ahpatron: Ahpatron) -> None:
    options = ("-l", "metron", "--classes", "a,b,c")
    done = run_in_two_parts(ahpatron, TWO_CLASSES, THIRD_CLASS, *options)
    assert done.code == 0, done.err
    (run,) = json.loads(ahpatron.read("r.json"))["runs"]
    assert [sum(row) for row in run["confusion"]] == [30, 30, 30]


def test_a_class_that_comes_late_in_a_pipe_is_refused_if_it_was_not_named(
    ahpatron: Ahpatron,
) -> None:
    done = run_in_two_parts(ahpatron, TWO_CLASSES, THIRD_CLASS, "-l", "metron")
    assert done.code == 65
    assert "'c' is unknown" in done.err
    assert "--classes" in done.err


@pytest.mark.parametrize("kind", ["-1/+1", "0/1"])
def test_the_rare_label_of_a_table_may_come_late_in_a_pipe(ahpatron: Ahpatron, kind: str) -> None:
    """As in LIBSVM text: the first rows, of which the schema is made, have the other label."""
    frequent, rare = EVERY[kind]
    first = [f"{frequent},{i % 2}\n" for i in range(60)]
    done = run_in_two_parts(ahpatron, first, [f"{rare},7\n"] * 20, "--weight", f"{rare}=5")
    assert done.code == 0, done.err
    assert done.out.splitlines()[-1].split(",")[-2] == rare
    document = json.loads(ahpatron.read("r.json"))
    assert document["data"]["labels"] == [int(frequent), int(rare)]
    assert document["runs"][0]["costs"] == [1, 5]


@pytest.mark.parametrize("path", ["t.csv", "-"], ids=["file", "pipe"])
def test_a_label_of_a_table_that_was_not_named_is_refused(ahpatron: Ahpatron, path: str) -> None:
    ahpatron.write("t.csv", CLASSES)
    words = ("run", path, *OF_CLASSES, "--classes", "setosa,virginica")
    done = ahpatron(*words, stdin=CLASSES.encode())
    assert done.code == 65
    assert "versicolor" in done.err


@pytest.mark.parametrize("wrong", ["setosa", "setosa,setosa", "setosa,,virginica"])
@pytest.mark.parametrize("path", ["t.csv", "-"], ids=["file", "pipe"])
def test_labels_must_be_named_once_each(ahpatron: Ahpatron, path: str, wrong: str) -> None:
    ahpatron.write("t.csv", CLASSES)
    words = ("run", path, *OF_CLASSES, "--classes", wrong)
    assert "--classes" in ahpatron.refusal(2, *words, stdin=CLASSES.encode())


def test_a_pair_of_named_labels_counts_in_a_file_as_on_a_pipe(ahpatron: Ahpatron) -> None:
    """The later one is +1, also where it is the more frequent."""
    rows = [f"{(-1) ** (i % 3)}.{i % 7},{'yes' if i % 3 else 'no'}\n" for i in range(60)]
    table = "".join(["a,y\n", *rows])
    path = ahpatron.write("rows.csv", table)
    options = ("--label", "y", "--classes", "no,yes")
    file = ahpatron.json("run", path, *options)["runs"][0]
    warm = ahpatron.json("run", "-", *options, "--scale", "minmax", stdin=table.encode())["runs"][0]
    pipe = ahpatron.json("run", "-", *options, stdin=table.encode())["runs"][0]
    names = ("mistakes", "true_positives", "false_positives", "support_size")
    assert [file[name] for name in names] == [pipe[name] for name in names]
    for run in (file, pipe, warm):
        assert run["true_positives"] + run["false_negatives"] == 40
