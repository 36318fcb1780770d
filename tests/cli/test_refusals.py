"""Wrong options and degenerate numbers: the named exit code, the legal range, nothing on stdout."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import Ahpatron

USAGE = [
    (["-B", "0"], "--budget must be an even whole number >= 2, got 0"),
    (["-B", "1"], "--budget must be an even whole number >= 2, got 1"),
    (["-B", "401"], "try 400 or 402"),
    (["-B", "-4"], "--budget must be an even whole number >= 2, got -4"),
    (["-B", "4_0"], "--budget must be an even whole number >= 2, got '4_0'"),
    (["-B", "many"], "--budget must be an even whole number >= 2, got 'many'"),
    (["-B", "4.5"], "--budget must be an even whole number >= 2, got '4.5'"),
    (["--epsilon", "0"], "--epsilon must be a number > 0 and < 1, got 0.0"),
    (["--epsilon", "1"], "--epsilon must be a number > 0 and < 1, got 1.0"),
    (["--epsilon", "nan"], "--epsilon must be a number > 0 and < 1, got nan"),
    (["--sigma", "0"], "--sigma must be a number > 0, got 0.0"),
    (["--sigma", "-1"], "--sigma must be a number > 0, got -1.0"),
    (["--sigma", "nan"], "--sigma must be a number > 0, got nan"),
    (["--sigma", "inf"], "--sigma must be a number > 0, got inf"),
    (["--sigma", "1_0"], "--sigma must be a number > 0, got '1_0'"),
    (["-p", "ridge=0"], "ridge must be a number > 0, got 0.0"),
    (["-p", "ridge=inf"], "ridge must be a number > 0, got inf"),
    (["-p", "radius=0"], "radius must be a number > 0, got 0.0"),
    (["-p", "radius=inf"], "radius must be a number > 0, got inf"),
    (["-p", "step=-1"], "step must be a number > 0, got -1.0"),
    (["-p", "rescale=1.5"], "rescale must be a number > 0 and <= 1 or keep, got 1.5"),
    (["-p", "selection=gredy"], "did you mean greedy?"),
    (["-p", "rigde=1"], "did you mean ridge?"),
    (["-p", "ridge"], "-p takes NAME=VALUE, got 'ridge'"),
    (["-p", "degree=2"], "the polynomial kernel would have it"),
    (["-p", "avp.step=2"], "avp is not among the chosen learners"),
    (["-p", "ahpatron.stepp=2"], "did you mean step?"),
    (["-l", "ahpatorn"], "did you mean ahpatron?"),
    (["-l", "avp", "-p", "schedule=adaptive"], "radius must be a finite number > 0"),
    (["--kernel", "gausian"], "did you mean gaussian?"),
    (["--scale", "stdandard"], "did you mean standard?"),
    (["--format", "jsn"], "did you mean json?"),
    (["--repeats", "0"], "0 is too small: at least 1"),
    (["--repeats", "1_0"], "'1_0' is not a whole number"),
    (["--limit", "0"], "0 is too small: at least 1"),
    (["--seed", "-1"], "-1 is too small: at least 0"),
    (["--jobs", "0"], "0 is too small: at least 1"),
    (["--out", "result.xlsx"], ".json .jsonl .csv .md .tex .txt"),
    (["--curve", "curve.gif"], ".csv .png .svg"),
    (["--budgte", "4"], "--budget"),
    (["--sigma", "atuo"], "did you mean auto?"),
    (["--kernel", "rbf"], "did you mean gaussian?"),
    (["--budget", "10", "-p", "budget=20"], "hint: leave out --budget or -p budget\n"),
    (["-p", "ridge=1", "-p", "ridge=2"], "ridge is given twice\nhint: leave out one -p ridge\n"),
    (["--seed", "9" * 30], "is too large"),
    (["-B", "1" + "0" * 400], "--budget must be an even whole number >= 2"),
    (["--max-features", "3000000000"], "is too large"),
    (["--predictions", "p.txt"], "use one of .csv"),
    (["--predictions", "scores"], "suffix"),
    (["--out", "a.csv", "--curve", "./a.csv"], "--curve would overwrite --out"),
    (["--kernel", "linear", "-p", "degree=2"], "has no parameter 'degree'"),
]


@pytest.mark.parametrize(("options", "said"), USAGE, ids=lambda value: str(value)[:40])
def test_wrong_options(ahpatron: Ahpatron, rings: Path, options: list[str], said: str) -> None:
    err = ahpatron.refusal(2, "run", rings, *options)
    assert err.startswith("error: ")
    assert said in err
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


@pytest.mark.parametrize("command", [[], ["run"], ["inspect"]])
def test_a_bare_command_shows_its_help(ahpatron: Ahpatron, command: list[str]) -> None:
    done = ahpatron(*command)
    assert done.code == 2
    assert "Usage" in done.out + done.err
    assert "error:" not in done.err


def test_no_command_and_unknown_commands(ahpatron: Ahpatron) -> None:
    assert "run" in ahpatron().out + ahpatron().err
    assert "run" in ahpatron.refusal(2, "runn", "data.svm")


def test_options_without_effect_are_said(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron.succeed("run", rings, "-l", "perceptron", "-B", "10")
    assert "--budget has no effect: perceptron has no such parameter" in done.err
    done = ahpatron("run", rings, "--kernel", "linear", "--sigma", "2")
    assert "--sigma has no effect: the linear kernel has no such parameter" in done.err


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


def test_a_kernel_that_sees_nothing_is_warned_about(ahpatron: Ahpatron) -> None:
    lines = "".join(f"{(-1) ** i} 1:{i * 1000}\n" for i in range(100))
    ahpatron.write("data.svm", lines)
    done = ahpatron.succeed("run", "data.svm", "--sigma", "0.001")
    assert "|f(x)| < 1e-9 in 99 % of rounds: these predictions are" in done.err


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


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("run", "a.svm", "--bugdet", "9"),
            "unknown option --bugdet\nhint: did you mean --bu",
        ),
        (("swep", "a.svm"), "unknown command 'swep'\nhint: did you mean sweep?"),
        (("run", "a.svm", "--zzz"), "unknown option --zzz\nhint: `ahpatron run --help` shows"),
    ],
)
def test_slips_of_the_finger(ahpatron: Ahpatron, words: tuple[str, ...], message: str) -> None:
    assert ahpatron.refusal(2, *words).startswith(f"error: {message}")
