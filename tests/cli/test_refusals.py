"""Wrong options and degenerate numbers: the named exit code, the legal range, nothing on stdout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Ahpatron

USAGE = {
    "--budget": ["0", "1", "401", "-4", "4_0", "many", "4.5", "1" + "0" * 400],
    "--epsilon": ["0", "1", "nan"],
    "--sigma": ["0", "-1", "nan", "inf", "1_0"],
    "ridge": ["-p ridge=0", "-p ridge=inf", "-p ridge", "-p ridge=1 -p ridge=2"],
    "radius": ["-p radius=0", "-p radius=inf", "-l avp -p schedule=adaptive"],
    "step": ["-p step=-1"],
    "rescale": ["-p rescale=1.5"],
    "degree": ["-p degree=2", "--kernel linear -p degree=2"],
    "budget": ["--budget 10 -p budget=20"],
    "avp": ["-p avp.step=2"],
    "--repeats": ["0", "ten"],
    "--limit": ["0"],
    "--seed": ["-1", "9" * 30],
    "--jobs": ["0"],
    "--max-features": ["3000000000"],
    ".json .jsonl .csv .md .tex .txt": ["--out result.xlsx", "--out result"],
    ".csv .png .svg": ["--curve curve.gif"],
    ".csv": ["--predictions p.txt", "--predictions scores"],
    "--curve would overwrite --out": ["--out a.csv --curve ./a.csv"],
    "did you mean greedy?": ["-p selection=gredy"],
    "did you mean ridge?": ["-p rigde=1"],
    "did you mean step?": ["-p ahpatron.stepp=2"],
    "did you mean ahpatron?": ["-l ahpatorn"],
    "did you mean gaussian?": ["--kernel gausian", "--kernel rbf"],
    "did you mean standard?": ["--scale stdandard"],
    "did you mean json?": ["--format jsn"],
    "did you mean --budget?": ["--budgte 4"],
    "did you mean auto?": ["--sigma atuo"],
    "unknown option --zzz": ["--zzz"],
    "--every requires --checkpoint": ["--every 5"],
    "--labels cannot be combined with --positive": ["--labels 1,2 --positive 1"],
}
"""What the error names, and words that are refused; a bare value is that of the option named."""


@pytest.mark.parametrize(
    ("named", "words"),
    [(named, words) for named, refused in USAGE.items() for words in refused],
    ids=lambda value: str(value)[:40],
)
def test_wrong_options(ahpatron: Ahpatron, rings: Path, named: str, words: str) -> None:
    given = words.split() if words.startswith("-") and not words[1].isdigit() else [named, words]
    err = ahpatron.refusal(2, "run", rings, *given)
    assert err.startswith("error: ")
    assert named in err
    assert ahpatron.files() == set()


def test_data_are_never_overwritten(ahpatron: Ahpatron, rings: Path) -> None:
    data = ahpatron.write("data.csv", rings.read_bytes())
    (ahpatron.folder / "link.csv").symlink_to(data)
    for option in ("--out", "--curve", "--predictions"):
        for name in ("data.csv", "./data.csv", "link.csv", data):
            err = ahpatron.refusal(2, "run", "data.csv", "-B", 10, option, name)
            assert f"{option} would overwrite the data" in err
    assert data.read_bytes() == rings.read_bytes()


def test_a_file_in_place_of_a_command(ahpatron: Ahpatron, rings: Path) -> None:
    assert f"did you mean `ahpatron run {rings} -B 10`?" in ahpatron.refusal(2, rings, "-B", 10)


def test_unknown_commands(ahpatron: Ahpatron) -> None:
    assert "did you mean sweep?" in ahpatron.refusal(2, "swep", "data.svm")


def test_options_without_effect_are_said(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron.succeed("run", rings, "-l", "perceptron", "-B", "10")
    assert "--budget has no effect" in done.err
    done = ahpatron.succeed("run", rings, "--kernel", "linear", "--sigma", "2")
    assert "--sigma has no effect" in done.err


INPUTS = {
    "missing.svm": (66, None),
    "empty.svm": (65, b""),
    "comments.svm": (65, b"# nothing\n\n# here\n"),
    "word.svm": (65, b"good 1:1\n"),
    "order.svm": (65, b"1 3:1 2:1\n"),
    "nan.svm": (65, b"1 1:nan\n"),
    "csv.svm": (65, b"1,0.5,0.25\n"),
    "bomb.svm": (65, b"1 2000000000:1\n"),
    "utf16.svm": (65, "1 1:1\n".encode("utf-16")),
    "cut.svm.gz": (65, b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x33T\x30"),
}


@pytest.mark.parametrize("name", INPUTS)
@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_bad_input(ahpatron: Ahpatron, name: str, way: list[str]) -> None:
    code, content = INPUTS[name]
    if content is not None:
        ahpatron.write(name, content)
    err = ahpatron.refusal(code, "run", name, "--out", "r.json", "--predictions", "p.csv", *way)
    assert name in err
    assert ahpatron.files() == ({name} if content is not None else set())


def test_a_fault_in_the_last_line_leaves_nothing_behind(ahpatron: Ahpatron) -> None:
    ahpatron.write("data.svm", "-1 1:1\n1 1:2\n" * 50_000 + "1 1:x\n")
    err = ahpatron.refusal(
        65, "run", "data.svm", "-B", "10", "--predictions", "p.csv", "--curve", "c.csv"
    )
    assert "data.svm:100001:5" in err
    assert ahpatron.files() == {"data.svm"}


def test_output_that_cannot_be_created(ahpatron: Ahpatron, rings: Path) -> None:
    for option in ("--out", "--predictions", "--curve"):
        err = ahpatron.refusal(73, "run", rings, "-B", "10", option, "no/such/folder/file.csv")
        assert "no/such/folder/file.csv" in err


@pytest.mark.parametrize("scale", [1e160, 1e300])
def test_values_whose_squares_overflow_are_refused_with_their_line(
    ahpatron: Ahpatron, scale: float
) -> None:
    ahpatron.write("data.svm", f"-1 1:1\n1 1:2\n-1 1:{scale!r}\n1 1:3\n")
    err = ahpatron.refusal(65, "run", "data.svm")
    assert "data.svm:3" in err
    assert "overflows" in err
    assert "--scale" in err


def test_scaling_brings_any_size_into_reach(ahpatron: Ahpatron) -> None:
    """Where squares overflow, the hint names --scale; so that must not overflow either."""
    rows = [(1, 2e155, 0.3), (-1, -1e155, 0.2), (1, 1.5e155, 0.9), (-1, -3e155, 0.1)] * 40
    ahpatron.write("data.svm", "".join(f"{y} 1:{a!r} 2:{b!r}\n" for y, a, b in rows))
    for scale in ("standard", "minmax", "unit"):
        done = ahpatron("run", "data.svm", "--scale", scale, "--format", "json")
        assert (done.code, done.err) == (0, "")
        assert json.loads(done.out)["runs"][0]["mistake_rate"] < 0.05


def test_rows_without_features(ahpatron: Ahpatron) -> None:
    ahpatron.write("data.svm", "1\n-1\n1\n")
    for way in ([], ["--shuffle"]):
        assert ahpatron.json("run", "data.svm", *way)["data"]["features"] == 0


def test_standard_input_twice_is_refused(ahpatron: Ahpatron) -> None:
    done = ahpatron("run", "-", "-", stdin=b"1 1:1\n-1 1:2\n")
    assert (done.code, done.out) == (2, "")


def test_a_limit_on_the_support_is_kept(ahpatron: Ahpatron, rings: Path) -> None:
    err = ahpatron.refusal(
        65, "run", rings, "-l", "projectron", "-p", "max_support=5", "--sigma", "0.1"
    )
    assert "max_support=5" in err
