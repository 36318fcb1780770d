"""`--sigma auto` and `--scale` on streams,."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.command import Ahpatron, Outcome


def only_run(done: Outcome) -> dict[str, Any]:
    assert done.code == 0, done.err
    (run,) = json.loads(done.out)["runs"]
    del run["seconds"]
    return dict(run)


JSON = ("--format", "json", "-B", "60")


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_what_is_chosen_is_said_recorded_and_typed_gives_the_same(
    ahpatron: Ahpatron, rings: Path, kernel: str
) -> None:
    done = ahpatron("run", rings, "--sigma", "auto", "--kernel", kernel, *JSON)
    run = only_run(done)
    sigma = run["params"]["sigma"]
    said = f"note: σ = {sigma:g}, the best of several widths on the first 1,000 rows (--sigma auto)"
    assert said in done.err
    typed = ahpatron("run", rings, "--sigma", sigma, "--kernel", kernel, *JSON)
    assert only_run(typed) == run
    assert "auto" not in typed.err
    piped = ahpatron(
        "run", "-", "-p", "sigma=auto", "--kernel", kernel, *JSON, stdin=rings.read_bytes()
    )
    assert only_run(piped) == run
    shuffled = only_run(
        ahpatron("run", rings, "--sigma", "auto", "--kernel", kernel, "--shuffle", *JSON)
    )
    assert shuffled["params"]["sigma"] == sigma


def test_a_model_goes_on_with_the_number(ahpatron: Ahpatron, rings: Path) -> None:
    lines = rings.read_bytes().splitlines(keepends=True)
    whole = only_run(ahpatron("run", rings, "--sigma", "auto", *JSON))
    ahpatron.write("a.svm", b"".join(lines[:1088]))
    ahpatron.write("b.svm", b"".join(lines[1088:]))
    ahpatron("run", "a.svm", "--sigma", "auto", *JSON, "--save", "m.npz")
    done = ahpatron("run", "b.svm", "--resume", "m.npz", "--format", "json")
    assert only_run(done) | {"this_file": None} == whole
    assert "--sigma auto" not in done.err
    done = ahpatron("run", "b.svm", "--resume", "m.npz", "--sigma", "auto")
    assert done.code == 2


def test_a_checkpoint_goes_on_with_scale_and_sigma(ahpatron: Ahpatron, breast_cancer: Path) -> None:
    lines = breast_cancer.read_bytes().splitlines(keepends=True)
    options = ("--sigma", "auto", "--scale", "standard", *JSON)
    kept = (*options, "--checkpoint", "c.npz", "--every", "64")
    ahpatron.write("a.svm", b"".join(3 * lines))
    whole = only_run(ahpatron("run", "a.svm", *options))
    ahpatron.write("a.svm", b"".join(2 * lines))
    only_run(ahpatron("run", "a.svm", *kept))
    ahpatron.write("a.svm", b"".join(3 * lines))
    done = ahpatron("run", "a.svm", *kept)
    resumed = only_run(done)
    for name in ("norm", "zeta"):  # 1,138 is no multiple of 64
        assert resumed.pop(name) == pytest.approx(whole.pop(name))
    assert resumed == whole
    assert "continues after 1,138 rounds" in done.err


def test_several_files_have_a_sigma_each_and_certificates_know_it(
    ahpatron: Ahpatron, rings: Path, breast_cancer: Path
) -> None:
    options = ("--format", "json", "--sigma", "auto", "--certify", "-l", "perceptron")
    done = ahpatron.succeed("run", rings, breast_cancer, *options)
    for report in json.loads(done.out):
        (run,) = report["runs"]
        path, sigma = report["data"]["path"], run["params"]["sigma"]
        assert f"note: {Path(path).name}: σ = {sigma:g}" in done.err
        typed = json.loads(ahpatron("run", path, *options[:2], "--sigma", sigma, *options[4:]).out)
        assert run["certificate"] == typed["runs"][0]["certificate"]


def test_a_sweep_takes_it_as_a_value_like_others(ahpatron: Ahpatron, rings: Path) -> None:
    sigma = only_run(ahpatron("run", rings, "--sigma", "auto", *JSON))["params"]["sigma"]
    grid = ("-g", f"sigma=auto,0.1,{sigma}", "-B", "40", "--repeats", "2", "--out", "r.jsonl")
    done = ahpatron.succeed("sweep", rings, *grid, "--format", "json")
    assert f"rings.svm: σ = {sigma:g}" in done.err
    (data,) = json.loads(done.out)["datasets"]
    assert [one["params"]["sigma"] for one in data["settings"]] == [0.1, sigma]
    again = ahpatron("sweep", rings, *grid, "--dry-run")
    assert "4 done, 0 left" in again.out
    config = f'data = ["{rings}"]\nrepeats = 2\n[grid]\nsigma = "auto"\nbudget = 40\n'
    ahpatron.write("sweep.toml", config)
    again = ahpatron("sweep", "--config", "sweep.toml", "--out", "r.jsonl", "--dry-run")
    assert "2 done, 0 left" in again.out


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (("--sigma", "auto"), 65, "--sigma auto cannot choose: all rows of the sample are equal"),
        (("--sigma", "automatic"), 2, "--sigma must be a number > 0, got 'automatic'"),
        (("-p", "degree=auto", "--kernel", "polynomial"), 2, "degree must be"),
        (("--budget", "auto"), 2, "--budget must be"),
    ],
)
def test_refusals(ahpatron: Ahpatron, options: tuple[str, ...], code: int, problem: str) -> None:
    ahpatron.write("a.svm", "+1 1:1\n-1 1:1\n")
    assert problem in ahpatron.refusal(code, "run", "a.svm", *options)


def test_without_a_sigma_it_has_no_effect_and_that_is_said(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron.succeed("run", rings, "--sigma", "auto", "--kernel", "linear")
    assert "--sigma has no effect" in done.err


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_streams_are_scaled_by_their_first_rows(
    ahpatron: Ahpatron, rings: Path, scale: str
) -> None:
    """A pipe is run like the file; cut at a multiple of 64, the rounds before it are the same."""
    lines = rings.read_bytes().splitlines(keepends=True)
    for name, part in (("whole", lines), ("part", lines[:1472])):
        options = ("--scale", scale, "--predictions", f"{name}.csv", *JSON)
        ahpatron("run", "-", *options, stdin=b"".join(part))
    played = (ahpatron.folder / "whole.csv").read_text().splitlines()
    assert played[:1473] == (ahpatron.folder / "part.csv").read_text().splitlines()
    from_file = only_run(ahpatron("run", rings, "--scale", scale, *JSON))
    piped = only_run(ahpatron("run", "-", "--scale", scale, *JSON, stdin=rings.read_bytes()))
    assert from_file == piped
    sweep = ("sweep", rings, "-B", "60", "--no-shuffle", "--scale", scale, "--out", "r.jsonl")
    swept = ahpatron.json(*sweep)
    (setting,) = swept["datasets"][0]["settings"]
    assert setting["mistake_rate_mean"] == from_file["mistake_rate"]
