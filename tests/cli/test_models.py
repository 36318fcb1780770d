"""`run --save`, `--resume` and `--checkpoint`."""

import gzip
import json
import os
import random
import re
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.core import REGISTRY
from support.command import Ahpatron
from support.labels import EVERY, table

ROUNDING = {"rel": 1e-7, "abs": 1e-9}


def cut(ahpatron: Ahpatron, path: Path, at: int) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    ahpatron.write("a.svm", b"".join(lines[:at]))
    ahpatron.write("b.svm", b"".join(lines[at:]))


def record(document: Any) -> dict[str, Any]:
    (run,) = document["runs"]
    return {name: run[name] for name in run if name not in ("seconds", "this_file")}


def assert_equal(ahpatron: Ahpatron, parts: Any, whole: Any, at: int) -> None:
    """Two parts, whose scores are in 1.csv and 2.csv, and the whole, whose are in whole.csv.

    They have the same bits if the cut is at a multiple of 64 rounds, else the same numbers.
    """
    rows = ahpatron.table("1.csv") + ahpatron.table("2.csv"), ahpatron.table("whole.csv")
    chosen = [[(row["round"], row["prediction"]) for row in one] for one in rows]
    found, wanted = ([float(row["score"]) for row in one] for one in rows)
    assert chosen[0] == chosen[1]
    if at % 64 == 0:
        assert (found, record(parts)) == (wanted, record(whole))
    else:
        assert found == pytest.approx(wanted, **ROUNDING)
        assert_close(record(parts), record(whole))


def assert_close(found: dict[str, Any], wanted: dict[str, Any]) -> None:
    """Equal records, up to rounding of the numbers that are not counts."""
    assert found.keys() == wanted.keys()
    for name, value in wanted.items():
        expected = pytest.approx(value, **ROUNDING) if isinstance(value, float) else value
        assert found[name] == expected, name


WAYS = {
    **{name: f"-l {name} --sigma 0.1" for name in REGISTRY},
    "costs": "--sigma 0.3 --weight 1=3",
    "classes": "-l ahpatron+ -p multiclass=shared --sigma 0.3",
    "one learner per class": "--sigma 0.3",
    "scale and sigma": "--scale standard --sigma auto --warm-up 500",
}


@pytest.mark.parametrize("at", [576, 599])
@pytest.mark.parametrize("way", WAYS)
def test_two_parts_are_one_run(ahpatron: Ahpatron, rings: Path, way: str, at: int) -> None:
    lines = rings.read_bytes().splitlines(keepends=True)[:1000]
    if "class" in way:
        lines = [b"%d%s" % (n % 3, line[line.index(b" ") :]) for n, line in enumerate(lines)]
    rows = ahpatron.write("d.svm", b"".join(lines))
    cut(ahpatron, rows, at)
    options = [*WAYS[way].split(), "--seed", "3"]
    specs = REGISTRY[way if way in REGISTRY else "ahpatron"].specs()
    options += ["-B", "60"] if "budget" in specs else []
    options += ["-p", "horizon=1000"] if "horizon" in specs else []
    whole = ahpatron.json("run", rows, *options, "--predictions", "whole.csv", "--save", "w.npz")
    first = ahpatron.json("run", "a.svm", *options, "--predictions", "1.csv", "--save", "m.npz")
    more = ("--resume", "m.npz", "--save", "m.npz", "--predictions", "2.csv")
    second = ahpatron.json("run", "b.svm", *more)
    assert_equal(ahpatron, second, whole, at)
    parts = [one["runs"][0] for one in (whole, first, second)]
    assert parts[0]["this_file"] is parts[1]["this_file"] is None
    mistakes = parts[0]["mistakes"] - parts[1]["mistakes"]
    assert [*parts[2]["this_file"].values()] == [1000 - at, mistakes, mistakes / (1000 - at)]
    shown = [ahpatron.json("inspect", name) for name in ("w.npz", "m.npz")]
    for document in shown:
        for name in ("path", "written", "seconds", "data"):  # data: of the last file
            del document[name]
    assert_close(shown[1], shown[0])


def test_the_second_part_of_a_sparse_file_may_come_from_a_pipe(
    ahpatron: Ahpatron, sparse_text: Path
) -> None:
    cut(ahpatron, sparse_text, 701)
    whole = ahpatron.json("run", sparse_text, "--sigma", "0.7")
    ahpatron("run", "a.svm", "--sigma", "0.7", "--save", "m.npz")
    rest = (ahpatron.folder / "b.svm").read_bytes()
    second = ahpatron.json("run", "-", "--resume", "m.npz", stdin=rest)
    assert_close(record(second), record(whole))
    assert second["data"]["labels"] == [0, 1]


def features(wide: int, rows: int) -> str:
    lines = []
    for row in range(rows):
        label = "+1" if row * row % 7 < 3 else "-1"
        values = " ".join(f"{j}:{(row * (j + 3) % 11) / 10}" for j in range(1, 6))
        lines.append(f"{label} {values}{f' {wide}:0.5' if wide else ''}\n")
    return "".join(lines)


@pytest.mark.parametrize("learner", ["ahpatron", "nogd", "rbp"])
@pytest.mark.parametrize(("wide", "at"), [(9, 70), (9, 128), (5000, 128), (300_000, 192)])
def test_rows_to_come_leave_no_trace(ahpatron: Ahpatron, learner: str, wide: int, at: int) -> None:
    """New features come from row 193 on, in the chunk of bytes that the first rows are in, too."""
    whole = ahpatron.write("whole.svm", features(0, 192) + features(wide, 108))
    cut(ahpatron, whole, at)
    options = ["-l", learner, "-B", "20"]
    options += ["-p", "horizon=300"] if learner == "nogd" else []
    options += ["--layout", "sparse"] if wide > 4096 else []
    one = ahpatron.json("run", whole, *options, "--predictions", "whole.csv")
    ahpatron.succeed("run", "a.svm", *options, "--predictions", "1.csv", "--save", "m.npz")
    more = ("--resume", "m.npz", "--predictions", "2.csv")
    refused = ahpatron.refusal(65, "run", "b.svm", *more)
    assert f"b.svm:{max(192 - at, 0) + 1}" in refused
    assert f" {wide}" in refused
    two = ahpatron.json("run", "b.svm", *more, "--allow-new-features")
    assert_equal(ahpatron, two, one, at)


def test_a_wide_row_does_not_widen_those_before_it(ahpatron: Ahpatron) -> None:
    ahpatron.write("wide.svm", features(0, 128) + "+1 1:0.5 9000000:1\n")
    words = "run wide.svm -B 40 --layout sparse"
    done = ahpatron.shell(f"ulimit -v 3000000; ahpatron {words}")
    assert done.code == 0, done.err
    refused = ahpatron.refusal(65, "run", "wide.svm")
    assert "wide.svm:129" in refused
    assert "--layout sparse" in refused


def test_a_part_with_one_label_has_the_labels_of_the_model(ahpatron: Ahpatron) -> None:
    ahpatron.write("a.svm", "1 1:1\n2 1:2\n" * 20)
    ahpatron.write("b.svm", "1 1:1\n" * 5)
    ahpatron.succeed("run", "a.svm", "--save", "m.npz")
    assert ahpatron.json("run", "b.svm", "--resume", "m.npz")["data"]["labels"] == [1, 2]


def test_a_part_with_an_unknown_label_is_refused_at_its_line(ahpatron: Ahpatron) -> None:
    ahpatron.write("a.svm", "1 1:1\n2 1:2\n" * 20)
    ahpatron.write("c.svm", "1 1:1\n3 1:1\n")
    ahpatron.succeed("run", "a.svm", "--save", "m.npz")
    assert "c.svm:2" in ahpatron.refusal(65, "run", "c.svm", "--resume", "m.npz")


@pytest.mark.parametrize("scale", ["minmax", "standard", "unit"])
def test_scaling_is_the_models(ahpatron: Ahpatron, breast_cancer: Path, scale: str) -> None:
    ahpatron.succeed("run", breast_cancer, "--scale", scale, "--shuffle", "--save", "m.npz")
    lines = breast_cancer.read_text().splitlines(keepends=True)
    rows = ahpatron.succeed("predict", "m.npz", breast_cancer).out.splitlines()[1:]
    wrong = sum(
        float(row.split(",")[1]) != float(line.split()[0])
        for row, line in zip(rows, lines, strict=True)
    )
    assert wrong < 0.2 * 569
    ahpatron.write("one.svm", lines[0])
    alone = ahpatron.succeed("predict", "m.npz", "one.svm").out.splitlines()[1]
    assert float(alone.split(",")[2]) == pytest.approx(float(rows[0].split(",")[2]))
    ahpatron.write("wide.svm", "+1 1:1 31:1\n-1 1:1\n")
    assert "wide.svm:1" in ahpatron.refusal(65, "run", "wide.svm", "--resume", "m.npz")
    ahpatron.succeed("run", "wide.svm", "--resume", "m.npz", "--allow-new-features")


def test_features_counted_from_0_cause_a_warning_if_those_of_the_model_are_not(
    ahpatron: Ahpatron,
) -> None:
    """A file alone cannot tell; that the model's files had no feature 0 is worth a warning."""
    ahpatron.write("one.svm", "+1 1:1 2:2\n-1 1:3\n")
    ahpatron.write("zero.svm", "+1 0:1 1:2\n-1 0:3\n")
    for name in ("one", "zero"):
        ahpatron.succeed("run", f"{name}.svm", "--save", f"{name}.npz")
    for model, data, noted in (("one", "zero", True), ("one", "one", False)):
        for words in (f"run {data}.svm --resume {model}.npz", f"predict {model}.npz {data}.svm"):
            done = ahpatron.succeed(*words.split(), "--quiet")
            assert ("warning: the data have a feature 0" in done.err) == noted


def test_a_full_disk_leaves_the_old_model(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron("run", rings, "-B", "20", "--sigma", "0.1", "--save", "m.npz")
    before = (ahpatron.folder / "m.npz").read_bytes()
    words = f"run {rings} -B 400 --save m.npz"
    done = ahpatron.shell(f"ulimit -f 8; trap '' XFSZ; ahpatron {words}")
    assert (done.code, done.out) == (74, "")
    assert ahpatron.files() == {"m.npz"}
    assert (ahpatron.folder / "m.npz").read_bytes() == before


@pytest.mark.slow
def test_a_killed_run_goes_on_from_its_checkpoint(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron.write("long.svm.gz", gzip.compress(rings.read_bytes() * 60, 1))
    options = ["run", "long.svm.gz", "-l", "rbp", "-B", "400", "--format", "json"]
    whole = ahpatron.json(*options)
    checkpoint = ahpatron.folder / "c.npz"
    kills = 0
    for _ in range(20):
        before = checkpoint.read_bytes() if checkpoint.exists() else b""
        process = ahpatron.start(*options, "--checkpoint", "c.npz", "--save-every", "9000")
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
    assert "continues after" in err
    assert record(json.loads(out)) == record(whole)
    ahpatron.write("long.svm.gz", gzip.compress(b"+1 1:9\n" + rings.read_bytes() * 60, 1))
    ahpatron.refusal(2, *options, "--checkpoint", "c.npz")


def test_a_checkpoint_of_other_settings_or_data_is_refused(ahpatron: Ahpatron) -> None:
    rows = ["+1 1:1 2:1 3:1\n", "-1 10:1 11:1 12:1\n"] * 40
    ahpatron.write("s.svm", "".join(rows))
    words = ("run", "s.svm", "--checkpoint", "c.npz")
    first, again = (ahpatron.json(*words, "-B", "40") for _ in range(2))
    assert record(again) == record(first)
    assert again["runs"][0]["this_file"] is None  # all rounds are of this file
    for changed in ("-B 60", "-B 40 -l rbp", "-B 40 --seed 1", "-B 40 --weight 1=4", ""):
        assert "another run" in ahpatron.refusal(2, *words, *changed.split())
    # the same values, in other rows
    ahpatron.write("s.svm", "+1 1:1\n-1 2:1 3:1 10:1 11:1 12:1\n" + "".join(rows[2:]))
    assert "another run" in ahpatron.refusal(2, *words, "-B", "40")


def test_checkpoints_are_written_every_so_many_rounds(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And at the end; not after each batch that a pipe brings."""
    written = []
    for name in ("rename", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *paths, r=real: (written.append(paths), r(*paths)))
    options = ("--state", "c.npz", "--save-every", 10_000, "-B", 10)
    ahpatron.succeed("run", "-", *options, stdin=10 * rings.read_bytes())
    assert 2 <= len(written) <= 3


@pytest.mark.parametrize("at", [100, 150, 200])
@pytest.mark.parametrize("options", ["-B 40", "-B 40 --scale standard --sigma auto --warm-up 90"])
def test_a_file_that_grew_goes_on(ahpatron: Ahpatron, at: int, options: str) -> None:
    whole = features(0, 150) + features(9, 100)
    ahpatron.write("g.svm", "".join(whole.splitlines(keepends=True)[:at]))
    words = ("run", "g.svm", *options.split())
    ahpatron.succeed(*words, "--checkpoint", "c.npz")
    ahpatron.write("g.svm", whole)
    grown = ahpatron.succeed(*words, "--checkpoint", "c.npz", "--json")
    assert f"continues after {at} rounds" in grown.err
    assert_close(record(json.loads(grown.out)), record(ahpatron.json(*words)))


def test_inspect_shows_a_model_as_json(ahpatron: Ahpatron, rings: Path) -> None:
    run = ahpatron.run(rings, "--save", "m.npz")
    document = ahpatron.json("inspect", "m.npz")
    for name in ("learner", "rounds", "mistakes", "support_size", "seed"):
        assert document[name] == run[name]
    assert document["params"].items() <= run["params"].items()
    data = document["data"]
    assert (data["rounds"], data["path"], data["labels"]) == (run["rounds"], str(rings), [-1, 1])
    assert re.fullmatch(r"[0-9a-f]{8}", data["checksum"])
    written = datetime.fromisoformat(document["written"])
    assert abs(written.timestamp() - (ahpatron.folder / "m.npz").stat().st_mtime) <= 60
    assert document["written"] in ahpatron("inspect", "m.npz").out


TURNED = 1000
"""The row from which the labels of `turning` are the opposite."""


@pytest.fixture(scope="module")
def turning() -> list[str]:
    """Lines of a concept that turns into its opposite."""
    rng = random.Random(4)
    lines = []
    for t in range(1500):
        a = rng.gauss(0, 1)
        b = rng.gauss(0, 1)
        label = 1 if (a + b > 0) != (t >= TURNED) else -1
        lines.append(f"{label} 1:{a:.4f} 2:{b:.4f}\n")
    return lines


resetting = pytest.mark.parametrize("learner", ["arow", "metron -p tracker=off"])


@resetting
def test_saving_a_model_that_was_reset_warns_of_the_rows_it_forgot_even_with_quiet(
    ahpatron: Ahpatron, turning: list[str], learner: str
) -> None:
    ahpatron.write("a.svm", "".join(turning))
    words = ("run", "a.svm", "-l", *learner.split(), "--quiet")
    done = ahpatron.succeed(*words, "--save", "m.npz")
    reset = ahpatron.json("inspect", "m.npz")["last_reset"]
    assert TURNED < reset < 1500
    assert f"knows only the last {1500 - reset} of 1,500 rows" in done.err
    assert f"reset in round {reset:,}" in done.err
    assert "knows only" not in ahpatron.succeed(*words).err  # nothing was saved


@resetting
def test_inspect_says_when_a_model_was_reset(
    ahpatron: Ahpatron, turning: list[str], learner: str
) -> None:
    ahpatron.write("a.svm", "".join(turning))
    ahpatron.succeed("run", "a.svm", "-l", *learner.split(), "--save", "m.npz", "--quiet")
    shown = ahpatron.json("inspect", "m.npz")
    reset = shown["last_reset"]
    assert shown["rounds_since_reset"] == 1500 - reset
    assert f"last reset            {reset:,}" in ahpatron.succeed("inspect", "m.npz").out


@resetting
def test_a_model_that_was_never_reset_is_saved_without_a_warning(
    ahpatron: Ahpatron, turning: list[str], learner: str
) -> None:
    ahpatron.write("steady.svm", "".join(turning[:TURNED]))
    words = ("run", "steady.svm", "-l", *learner.split(), "--save", "m.npz", "--quiet")
    assert ahpatron.succeed(*words).err == ""
    assert ahpatron.json("inspect", "m.npz")["last_reset"] is None


@pytest.mark.parametrize("kind", EVERY)
def test_labels_of_every_kind_go_on(ahpatron: Ahpatron, kind: str) -> None:
    """The second part has rows of all labels but one, and rows without a label."""
    labels = EVERY[kind]
    whole = table(labels, 600).splitlines(keepends=True)
    first = whole[:385]
    second = [line for line in whole[385:] if line[:-1].split(",")[3] != labels[0]]
    ahpatron.write("a.csv", "".join(first))
    ahpatron.write("b.csv", whole[0] + "row x,0.5,0.5,?\n" + "".join(second))
    ahpatron.write("whole.csv", "".join(first + second))
    options = ("--label", "y", "--id", "name", "-l", "ahpatron", "-B", 40)
    words = ("--positive", labels[-1]) if len(labels) == 2 else ()  # not the rarer of a part
    ahpatron.succeed("run", "a.csv", *options, *words, "--save", "m.npz")
    more = ("--resume", "m.npz", "--save", "m.npz", "--predictions", "p.csv")
    resumed = ahpatron.json("run", "b.csv", *more)
    expected = ahpatron.json("run", "whole.csv", *options, *words, "--predictions", "w.csv")
    assert (resumed["runs"][0]["unlabelled"], expected["runs"][0]["unlabelled"]) == (1, 0)
    for name in ("rounds", "mistakes", "updates", "support_size"):
        assert resumed["runs"][0][name] == expected["runs"][0][name]
    found = [(row["label"], row["prediction"]) for row in ahpatron.table("p.csv")[1:]]
    assert found == [(row["label"], row["prediction"]) for row in ahpatron.table("w.csv")[384:]]
    assert {label for label, _ in found} == {*labels[1:]}
    schema = ahpatron.json("inspect", "m.npz")["data"]["schema"]
    assert {*schema["labels"]} == {*labels}
