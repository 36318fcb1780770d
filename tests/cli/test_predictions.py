"""The rows that `run --predictions` and `predict` write: ids, labels, and CSV that is safe."""

import json
from contextlib import suppress
from pathlib import Path

import pandas as pd
import pytest

from support.command import Ahpatron, rows_of
from support.labels import EVERY, drawn, table

ODD_IDS = [
    "=HYPERLINK(1)",
    "line\nbreak",
    'a "quoted", one',
    "+plus",
    "@at",
    "-dash",
    "-12.5",
    "+7",
]
SAFE_IDS = ["'=HYPERLINK(1)", "line\nbreak", 'a "quoted", one', "'+plus", "'@at", "'-dash"]
SAFE_IDS += ["-12.5", "+7"]
"""As a spreadsheet or pandas reads them: text that looks like a formula has an apostrophe."""


def odd_table() -> str:
    frame = pd.DataFrame({"name": ODD_IDS, "x": range(len(ODD_IDS))})
    frame["y"] = ["=yes" if i % 2 else "no\nno" for i in frame["x"]]
    return str(frame.to_csv(index=False))


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("order", ["--no-shuffle", "--shuffle"])
def test_each_row_of_a_run_has_its_id_and_its_label(
    ahpatron: Ahpatron, kind: str, order: str
) -> None:
    ahpatron.write("t.csv", table(EVERY[kind]))
    words = ("--label", "y", "--id", "name", order, "--predictions", "p.csv")
    ahpatron.succeed("run", "t.csv", "-l", "ahpatron", *words)
    found = {row["name"]: row for row in ahpatron.table("p.csv")}
    labels = {f"row {number}": label for number, (label, _, _) in enumerate(drawn(EVERY[kind]))}
    assert {name: row["label"] for name, row in found.items()} == labels
    assert {row["prediction"] for row in found.values()} == set(EVERY[kind])


@pytest.mark.parametrize("order", ["--no-shuffle", "--shuffle"])
def test_cells_of_csv_are_quoted_and_no_formula(ahpatron: Ahpatron, order: str) -> None:
    ahpatron.write("t.csv", odd_table())
    words = ("--label", "y", "--id", "name", "--save", "m.npz", "--predictions", "p.csv", order)
    ahpatron.succeed("run", "t.csv", "-l", "ahpatron", *words)
    ahpatron.succeed("predict", "m.npz", "t.csv", "--out", "s.csv")
    for name in ("p.csv", "s.csv"):
        found = pd.read_csv(ahpatron.folder / name, dtype=str)
        assert sorted(found["name"]) == sorted(SAFE_IDS)
        assert set(found["prediction"]) <= {"'=yes", "no\nno"}
        assert [row["name"] for row in ahpatron.table(name)] == list(found["name"])
    assert set(pd.read_csv(ahpatron.folder / "p.csv")["label"]) == {"'=yes", "no\nno"}


def test_the_header_of_csv_is_quoted_and_no_formula(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", odd_table().replace("name", '"=1,\n2"', 1))
    words = ("--label", "y", "--id", "=1,\n2", "--save", "m.npz")
    ahpatron.succeed("run", "t.csv", "-l", "ahpatron", *words)
    out = ahpatron.succeed("predict", "m.npz", "t.csv").out
    assert list(rows_of(out)[0]) == ["'=1,\n2", "prediction", "score"]
    assert [row["'=1,\n2"] for row in rows_of(out)] == SAFE_IDS


def test_json_has_ids_and_labels_unchanged(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", odd_table())
    words = ("--label", "y", "--id", "name", "--save", "m.npz")
    ahpatron.succeed("run", "t.csv", "-l", "ahpatron", *words)
    lines = ahpatron.succeed("predict", "m.npz", "t.csv", "--format", "jsonl").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert [row["name"] for row in found] == ODD_IDS
    assert {row["prediction"] for row in found} <= {"=yes", "no\nno"}


@pytest.mark.parametrize("kind", EVERY)
def test_a_run_writes_the_same_rows_as_json_lines_and_as_csv(ahpatron: Ahpatron, kind: str) -> None:
    ahpatron.write("t.csv", table(EVERY[kind]) + "new,1,2,\n")
    words = ("run", "t.csv", "-l", "ahpatron", "--label", "y", "--id", "name", "--probability")
    ahpatron.succeed(*words, "--predictions", "p.csv")
    ahpatron.succeed(*words, "--predictions", "p.jsonl")
    lines = ahpatron.read("p.jsonl").replace("null", '""').splitlines()
    rows = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
    assert rows == ahpatron.table("p.csv")


@pytest.mark.parametrize("file", ["p.csv", "p.jsonl"])
def test_a_line_break_in_an_id_does_not_move_a_checkpoint(ahpatron: Ahpatron, file: str) -> None:
    rows = "".join(f'"row\n{number}",{number % 7},{number % 2}\n' for number in range(400))
    words = ("run", "t.csv", "-l", "ahpatron", "--label", "y", "--id", "name")
    words += ("--checkpoint", "c.npz", "--predictions", file)
    ahpatron.write("t.csv", "name,x,y\n" + rows)
    ahpatron.succeed(*words)
    whole = ahpatron.read(file)
    ahpatron.succeed(*words)
    assert ahpatron.read(file) == whole
    assert whole.count("row") == 400


def without_a_reader(ahpatron: Ahpatron, lines: list[str], *options: object) -> tuple[int, str]:
    """Send rows, read the answers to the first hundred, close the pipe; exit code and messages."""
    with ahpatron.start("run", "-", "--sigma", 0.1, "--predictions", "-", *options) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        process.stdin.write("".join(lines[:100]))
        process.stdin.flush()
        for _ in range(101):
            process.stdout.readline()
        process.stdout.close()
        with suppress(BrokenPipeError):  # it does not read on
            process.stdin.write("".join(lines[100:200]))
            process.stdin.close()
        said = process.stderr.read()
        return process.wait(timeout=300), said


@pytest.mark.parametrize("option", ["--save"])
def test_a_reader_that_goes_away_loses_nothing_that_was_learned(
    ahpatron: Ahpatron, rings: Path, option: str
) -> None:
    lines = rings.read_text().splitlines(keepends=True)[:400]
    code, said = without_a_reader(ahpatron, lines, option, "h.npz")
    assert code == 141
    assert "the reader of the predictions closed the pipe" in said
    learned = ahpatron.json("inspect", "h.npz")["rounds"]
    assert 100 < learned <= 200
    ahpatron.write("rest.svm", "".join(lines[learned:]))
    ahpatron.write("whole.svm", "".join(lines))
    resumed = ahpatron.run("rest.svm", "--resume", "h.npz")
    whole = ahpatron.run("whole.svm", "--sigma", 0.1)
    assert (resumed["rounds"], resumed["mistakes"]) == (400, whole["mistakes"])


def test_a_reader_that_goes_away_loses_no_other_output(ahpatron: Ahpatron, rings: Path) -> None:
    lines = rings.read_text().splitlines(keepends=True)
    code, _ = without_a_reader(ahpatron, lines, "--out", "r.json", "--curve", "c.csv")
    assert code == 141
    (record,) = json.loads(ahpatron.read("r.json"))["runs"]
    assert record["ended_by"] == "SIGPIPE"
    assert int(ahpatron.table("c.csv")[-1]["round"]) == record["rounds"]


def test_a_reader_that_goes_away_is_no_error_if_nothing_is_kept(
    ahpatron: Ahpatron, rings: Path
) -> None:
    lines = rings.read_text().splitlines(keepends=True)
    assert without_a_reader(ahpatron, lines) == (0, "")
    assert ahpatron.files() == set()


def test_a_permuted_pass_is_finished_without_its_reader(ahpatron: Ahpatron, rings: Path) -> None:
    """Its rows are in memory: the model is that of the whole pass."""
    words = f"ahpatron run {rings} --shuffle --predictions - --save m.npz"
    done = ahpatron.shell(f"{words} | head -1; echo ${{PIPESTATUS[0]}}")
    assert done.out.splitlines()[1] == "141"
    assert ahpatron.json("inspect", "m.npz")["rounds"] == 2000
