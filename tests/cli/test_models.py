"""`run --save`, `--resume` and `--checkpoint`."""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import subprocess
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.core import REGISTRY
from support.command import COMMAND, Ahpatron

ROUNDING = {"rel": 1e-7, "abs": 1e-9}


def scores(*paths: Path) -> tuple[list[tuple[str, str]], list[float]]:
    """Round and prediction of each row, and the scores; of several files in order."""
    rows: list[dict[str, str]] = []
    for path in paths:
        with path.open() as stream:
            rows.extend(csv.DictReader(stream))
    chosen = [(row["round"], row["prediction"]) for row in rows]
    return chosen, [float(row["score"]) for row in rows]


def cut(ahpatron: Ahpatron, path: Path, at: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    ahpatron.write("a.svm", b"".join(lines[:at]))
    ahpatron.write("b.svm", b"".join(lines[at:]))


def record(text: str) -> dict[str, object]:
    run = json.loads(text)["runs"][0]
    del run["seconds"], run["this_file"]
    assert isinstance(run, dict)
    return run


def assert_equal(ahpatron: Ahpatron, parts: str, whole: str, cut: int) -> None:
    """Two parts, whose scores are in 1.csv and 2.csv, and the whole, whose are in whole.csv.

    They have the same bits if the cut is at a multiple of 64 rounds, else the same numbers.
    """
    folder = ahpatron.folder
    found = scores(folder / "1.csv", folder / "2.csv")
    wanted = scores(folder / "whole.csv")
    if cut % 64 == 0:
        assert (found, record(parts)) == (wanted, record(whole))
    else:
        assert found[0] == wanted[0]
        assert found[1] == pytest.approx(wanted[1], **ROUNDING)
        assert_close(record(parts), record(whole))


def assert_close(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal records, up to rounding of the numbers that are not counts."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        expected = pytest.approx(value, **ROUNDING) if isinstance(value, float) else value
        assert found[name] == expected, name


@pytest.mark.parametrize("at", [1088, 1111])
@pytest.mark.parametrize("learner", REGISTRY)
def test_two_parts_are_one_run(ahpatron: Ahpatron, rings: Path, learner: str, at: int) -> None:
    cut(ahpatron, rings, at)
    options = ["-l", learner, "--sigma", "0.1", "--format", "json", "--seed", "3"]
    options += ["-B", "60"] if "budget" in REGISTRY[learner].specs() else []
    options += ["-p", "horizon=2000"] if "horizon" in REGISTRY[learner].specs() else []
    whole = ahpatron("run", rings, *options, "--predictions", "whole.csv", "--save", "whole.npz")
    first = ahpatron("run", "a.svm", *options, "--predictions", "1.csv", "--save", "m.npz")
    assert first.code == whole.code == 0
    second = ahpatron.succeed(
        *("run", "b.svm", "--resume", "m.npz", "--save", "m.npz", "--format", "json"),
        *("--predictions", "2.csv"),
    )
    assert f"continues after {at:,} rounds" in second.err
    assert_equal(ahpatron, second.out, whole.out, at)
    parts = [json.loads(one.out)["runs"][0] for one in (whole, first, second)]
    assert parts[0]["this_file"] is parts[1]["this_file"] is None
    mistakes = parts[0]["mistakes"] - parts[1]["mistakes"]
    assert parts[2]["this_file"] == {
        "rounds": 2000 - at,
        "mistakes": mistakes,
        "mistake_rate": mistakes / (2000 - at),
    }
    shown = [ahpatron.json("inspect", name) for name in ("whole.npz", "m.npz")]
    for document in shown:
        assert document["learner"] == learner
        for name in ("path", "written", "seconds", "data"):  # data: of the last file
            del document[name]
    assert_close(shown[1], shown[0])


def test_parts_of_a_sparse_file_and_a_pipe(ahpatron: Ahpatron, sparse_text: Path) -> None:
    cut(ahpatron, sparse_text, 701)
    whole = ahpatron("run", sparse_text, "--sigma", "0.7", "--format", "json")
    ahpatron("run", "a.svm", "--sigma", "0.7", "--save", "m.npz")
    rest = (ahpatron.folder / "b.svm").read_bytes()
    second = ahpatron("run", "-", "--resume", "m.npz", "--format", "json", stdin=rest)
    assert_close(record(second.out), record(whole.out))
    assert json.loads(second.out)["data"]["labels"] == [0, 1]


def features(count: int, wide: int, rows: int) -> str:
    lines = []
    for row in range(rows):
        label = "+1" if row * row % 7 < 3 else "-1"
        values = " ".join(f"{j}:{(row * (j + 3) % 11) / 10}" for j in range(1, count + 1))
        lines.append(f"{label} {values}{f' {wide}:0.5' if wide else ''}\n")
    return "".join(lines)


@pytest.mark.parametrize("learner", ["ahpatron", "nogd", "rbp"])
@pytest.mark.parametrize(("wide", "at"), [(9, 70), (9, 128), (5000, 128), (300_000, 192)])
def test_rows_to_come_leave_no_trace(ahpatron: Ahpatron, learner: str, wide: int, at: int) -> None:
    """New features come from row 193 on, in the chunk of bytes that the first rows are in, too."""
    whole = ahpatron.write("whole.svm", features(5, 0, 192) + features(5, wide, 108))
    cut(ahpatron, whole, at)
    options = ["-l", learner, "-B", "20", "--format", "json"]
    options += ["-p", "horizon=300"] if learner == "nogd" else []
    options += ["--layout", "sparse"] if wide > 4096 else []
    one = ahpatron("run", whole, *options, "--predictions", "whole.csv")
    ahpatron("run", "a.svm", *options, "--predictions", "1.csv", "--save", "m.npz")
    more = ("--resume", "m.npz", "--format", "json", "--predictions", "2.csv")
    refused = ahpatron.refusal(65, "run", "b.svm", *more)
    assert f"b.svm:{max(192 - at, 0) + 1}" in refused
    assert f" {wide}" in refused
    two = ahpatron("run", "b.svm", *more, "--allow-new-features")
    assert two.code == one.code == 0
    assert_equal(ahpatron, two.out, one.out, at)


def test_a_wide_row_does_not_widen_those_before_it(ahpatron: Ahpatron) -> None:
    ahpatron.write("wide.svm", features(5, 0, 128) + "+1 1:0.5 9000000:1\n")
    limited = ["bash", "-c", 'ulimit -v 3000000; exec "$@"', "bash", *COMMAND]
    done = subprocess.run(
        [*limited, "run", "wide.svm", "-B", "40", "--layout", "sparse"],
        cwd=ahpatron.folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    refused = ahpatron.refusal(65, "run", "wide.svm")
    assert "wide.svm:129" in refused
    assert "--layout sparse" in refused


def test_a_part_with_one_label_only(ahpatron: Ahpatron) -> None:
    ahpatron.write("a.svm", "1 1:1\n2 1:2\n" * 20)
    ahpatron.write("b.svm", "1 1:1\n" * 5)
    ahpatron("run", "a.svm", "--save", "m.npz")
    done = ahpatron.succeed("run", "b.svm", "--resume", "m.npz")
    assert "label 1 counts as -1" in done.err
    ahpatron.write("c.svm", "1 1:1\n3 1:1\n")
    assert "c.svm:2" in ahpatron.refusal(65, "run", "c.svm", "--resume", "m.npz")


def test_scaling_is_the_models(ahpatron: Ahpatron, breast_cancer: Path) -> None:
    for scale in ("minmax", "standard", "unit"):
        ahpatron("run", breast_cancer, "--scale", scale, "--shuffle", "--save", "m.npz")
        said = ahpatron.succeed("predict", "m.npz", breast_cancer).err
        assert int(said.split()[1]) < 0.2 * 569
        part = ahpatron.write("one.svm", breast_cancer.read_bytes().splitlines(keepends=True)[0])
        assert ahpatron("predict", "m.npz", part).code == 0
    ahpatron("run", breast_cancer, "--scale", "minmax", "--save", "m.npz")
    ahpatron.write("wide.svm", "+1 1:1 31:1\n-1 1:1\n")
    assert "wide.svm:1" in ahpatron.refusal(65, "run", "wide.svm", "--resume", "m.npz")
    more = "--resume", "m.npz", "--allow-new-features"
    assert ahpatron.succeed("run", "wide.svm", *more).err.count("note: ") == 1


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_features_counted_from_0_after_features_counted_from_1(
    ahpatron: Ahpatron, way: list[str]
) -> None:
    """A file alone cannot tell; that the model's files had no feature 0 is worth a word."""
    ahpatron.write("one.svm", "+1 1:1 2:2\n-1 1:3\n")
    ahpatron.write("zero.svm", "+1 0:1 1:2\n-1 0:3\n")
    ahpatron("run", "one.svm", "--save", "one.npz")
    ahpatron("run", "zero.svm", "--save", "zero.npz")
    said = "the data have a feature 0, which the model never saw"
    assert said in ahpatron("run", "zero.svm", "--resume", "one.npz", *way).err
    assert said not in ahpatron("run", "one.svm", "--resume", "one.npz", *way).err
    assert said not in ahpatron("run", "zero.svm", "--resume", "zero.npz", *way).err


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (("--resume", "m.npz", "-B", "40"), 2, "--budget cannot be combined with --resume"),
        (("--resume", "m.npz", "--sigma", "1"), 2, "--sigma cannot be combined with --resume"),
        (("--resume", "m.npz", "--sigma", "1"), 2, "`ahpatron inspect m.npz`"),
        (("--resume", "m.npz", "--scale", "unit"), 2, "--scale cannot be combined with --resume"),
        (("--resume", "none.npz"), 66, "none.npz"),
        (("--resume", "none.npz"), 66, "check the spelling"),
        (("--resume", "mm.npz"), 66, "did you mean m.npz?"),
        (("--save", "x"), 2, ".npz"),
        (("--checkpoint", "x.txt"), 2, ".npz"),
        (("--resume", "DATA"), 65, "not a model"),
        (("--save", "none/m.npz"), 73, "none/m.npz"),
        (("--save", "n.npz", "--repeats", "2"), 2, "one learner"),
        (("--save", "n.npz", "-l", "avp", "-l", "rbp"), 2, "one learner"),
        (("--checkpoint", "c.npz", "--resume", "m.npz"), 2, "--resume"),
        (("--checkpoint", "c.npz", "--shuffle"), 2, "in file order"),
        (("--checkpoint", "c.npz", "--curve", "c.csv"), 2, "--curve"),
        (("--checkpoint", "c.npz", "--every", "0"), 2, "--every"),
        (("--every", "5"), 2, "--every requires --checkpoint"),
        (("--resume", "m.npz", "--seed", "3"), 2, "--seed with --resume requires --shuffle"),
        (("--resume", "m.npz", "--theorem", "5"), 2, "--theorem cannot be combined with --resume"),
        (("--resume", "m.npz", "--certify"), 2, "--certify cannot be combined with --resume"),
    ],
)
def test_refusals(
    ahpatron: Ahpatron, rings: Path, arguments: tuple[str, ...], code: int, said: str
) -> None:
    ahpatron("run", rings, "--limit", "100", "--save", "m.npz")
    words = [str(rings) if word == "DATA" else word for word in arguments]
    assert said in ahpatron.refusal(code, "run", rings, *words)
    assert ahpatron.files() == {"m.npz"}


def test_two_files_are_two_models(ahpatron: Ahpatron, rings: Path) -> None:
    assert "one DATA" in ahpatron.refusal(2, "run", rings, rings, "--save", "m.npz")


def test_a_full_disk_leaves_the_old_model(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron("run", rings, "-B", "20", "--sigma", "0.1", "--save", "m.npz")
    before = (ahpatron.folder / "m.npz").read_bytes()
    limited = ["bash", "-c", 'ulimit -f 8; trap "" XFSZ; exec "$@"', "bash", *COMMAND]
    done = subprocess.run(
        [*limited, "run", str(rings), "-B", "400", "--save", "m.npz"],
        cwd=ahpatron.folder,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 74
    assert done.stdout == b""
    assert ahpatron.files() == {"m.npz"}
    assert (ahpatron.folder / "m.npz").read_bytes() == before


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_checkpoint(ahpatron: Ahpatron, rings: Path) -> None:
    long = gzip.compress(rings.read_bytes() * 60, 1)
    ahpatron.write("long.svm.gz", long)
    options = ["run", "long.svm.gz", "-l", "rbp", "-B", "400", "--format", "json"]
    whole = ahpatron(*options)
    checkpoint = ahpatron.folder / "c.npz"
    kills = 0
    for _ in range(20):
        process = subprocess.Popen(
            [*COMMAND, *options, "--checkpoint", "c.npz", "--every", "9000"],
            cwd=ahpatron.folder,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        before = checkpoint.read_bytes() if checkpoint.exists() else b""
        while process.poll() is None and (
            not checkpoint.exists() or checkpoint.read_bytes() == before
        ):
            time.sleep(0.01)
        if process.poll() is not None:
            break
        process.kill()
        process.communicate()
        kills += 1
    out, err = process.communicate()
    assert process.returncode == 0
    assert kills > 2
    assert b"continues after" in err
    assert record(out.decode()) == record(whole.out)
    again = ahpatron(*options, "--checkpoint", "c.npz")
    assert record(again.out) == record(whole.out)
    ahpatron.write("long.svm.gz", gzip.compress(b"+1 1:9\n" + rings.read_bytes() * 60, 1))
    assert "belongs to another run" in ahpatron.refusal(2, *options, "--checkpoint", "c.npz")


def test_a_checkpoint_of_other_settings_is_refused(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron("run", rings, "-B", "40", "--checkpoint", "c.npz")
    for changed in (("-B", "60"), ("-l", "rbp"), ("--seed", "1"), ("--sigma", "2"), ()):
        given = ("-B", "40", *changed) if changed else ()  # left out is another setting, too
        err = ahpatron.refusal(2, "run", rings, *given, "--checkpoint", "c.npz")
        assert "belongs to another run" in err


def test_a_file_that_grew_goes_on(ahpatron: Ahpatron) -> None:
    whole = features(5, 0, 150) + features(5, 9, 100)
    for at in (100, 140, 150, 200):
        ahpatron.write("g.svm", "".join(whole.splitlines(keepends=True)[:at]))
        (ahpatron.folder / "c.npz").unlink(missing_ok=True)
        options = ("run", "g.svm", "-B", "40", "--checkpoint", "c.npz", "--format", "json")
        assert ahpatron(*options).code == 0
        ahpatron.write("g.svm", whole)
        grown = ahpatron.succeed(*options)
        assert f"continues after {at} rounds" in grown.err
        one = ahpatron("run", "g.svm", *options[2:4], *options[6:])
        assert_close(record(grown.out), record(one.out))


def test_values_that_moved_to_another_row_are_other_data(ahpatron: Ahpatron) -> None:
    rows = ["+1 1:1 2:1 3:1\n", "-1 10:1 11:1 12:1\n"] * 40
    ahpatron.write("s.svm", "".join(rows) + "+1 900:1\n")
    ahpatron("run", "s.svm", "--checkpoint", "c.npz")
    ahpatron.write(
        "s.svm", "+1 1:1\n-1 2:1 3:1 10:1 11:1 12:1\n" + "".join(rows[2:]) + "+1 900:1\n"
    )
    assert "continues" not in ahpatron.refusal(2, "run", "s.svm", "--checkpoint", "c.npz")


def test_a_model_is_not_data(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron("run", rings, "--save", "m.npz")
    assert "--resume m.npz continues with it" in ahpatron("run", "m.npz").err
    assert ahpatron("inspect", "m.npz", "--format", "csv").code == 2
    os.mkfifo(ahpatron.folder / "fifo")
    assert "not a regular file" in ahpatron.refusal(65, "run", rings, "--resume", "fifo")


def test_a_checkpoint_goes_on_in_the_same_file(ahpatron: Ahpatron, rings: Path) -> None:
    command = ["run", rings, "-B", "40", "--checkpoint", "c.npz", "--format", "json"]
    first, again = ahpatron(*command), ahpatron(*command)
    assert first.code == again.code == 0
    assert "continues after 2,000 rounds" in again.err
    assert json.loads(again.out)["runs"][0]["this_file"] is None  # all rounds are of this file
    assert json.loads(again.out)["load_seconds"] > 0


def test_a_model_as_json(ahpatron: Ahpatron, rings: Path) -> None:
    run = ahpatron.json("run", rings, "--save", "m.npz")["runs"][0]
    document = ahpatron.json("inspect", "m.npz")
    for name in ("learner", "rounds", "mistakes", "support_size", "seed"):
        assert document[name] == run[name]
    assert document["params"].items() <= run["params"].items()
    assert document["data"]["rounds"] == run["rounds"]
    assert document["data"]["path"] == str(rings)
    assert f"  {rings}\n" in ahpatron("inspect", "m.npz").out
    assert document["data"]["labels"] == [-1, 1]
    assert re.fullmatch(r"[0-9a-f]{8}", document["data"]["checksum"])
    written = datetime.fromisoformat(document["written"])
    assert abs(written.timestamp() - (ahpatron.folder / "m.npz").stat().st_mtime) <= 1
    assert document["written"] in ahpatron("inspect", "m.npz").out
