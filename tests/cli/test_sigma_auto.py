"""`--sigma auto` and `--scale` on files, pipes, models and sweeps."""

from pathlib import Path

import pytest

from support.command import Ahpatron

BUDGET = ("-B", "60")


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian"])
def test_the_width_chosen_is_recorded_and_given_it_is_the_same_run(
    ahpatron: Ahpatron, rings: Path, kernel: str
) -> None:
    options = ("--kernel", kernel, *BUDGET)
    run = ahpatron.run(rings, "--sigma", "auto", *options)
    sigma = run["params"]["sigma"]
    assert f"{sigma:g}" in ahpatron("run", rings, "--sigma", "auto", *options).err
    assert ahpatron.run(rings, "--sigma", sigma, *options) == run
    text = rings.read_bytes()
    assert ahpatron.run("-", "-p", "sigma=auto", *options, stdin=text) == run
    shuffled = ahpatron.run(rings, "--sigma", "auto", "--shuffle", *options)
    assert shuffled["params"]["sigma"] == sigma


def test_a_sweep_takes_auto_as_a_value(ahpatron: Ahpatron, rings: Path) -> None:
    sigma = ahpatron.run(rings, "--sigma", "auto", *BUDGET)["params"]["sigma"]
    grid = ("-g", f"sigma=auto,0.1,{sigma}", "-B", "40", "--repeats", "2", "--out", "r.jsonl")
    (data,) = ahpatron.json("sweep", rings, *grid)["datasets"]
    assert [one["params"]["sigma"] for one in data["settings"]] == [0.1, sigma]
    ahpatron.write(
        "sweep.toml", f'data = ["{rings}"]\nrepeats = 2\n[grid]\nsigma = "auto"\nbudget = 40\n'
    )
    again = ahpatron("sweep", "--config", "sweep.toml", "--out", "r.jsonl", "--dry-run")
    assert "2 done, 0 left" in again.out


@pytest.mark.parametrize("scale", ["minmax", "standard"])
def test_streams_are_scaled_by_their_first_rows(
    ahpatron: Ahpatron, rings: Path, scale: str
) -> None:
    """A pipe is run like the file; cut at a multiple of 64, the rounds before it are the same."""
    lines = rings.read_bytes().splitlines(keepends=True)
    options = ("--scale", scale, *BUDGET)
    rows = []
    found = []
    for part in (lines, lines[:1472]):
        run = ahpatron.run("-", *options, "--predictions", "p.csv", stdin=b"".join(part))
        rows.append(ahpatron.read("p.csv").splitlines())
        found.append(run)
    assert rows[0][:1473] == rows[1]
    from_file = ahpatron.run(rings, *options)
    assert from_file == found[0]
    sweep = ("sweep", rings, "--no-shuffle", *options, "--out", "r.jsonl")
    (setting,) = ahpatron.json(*sweep)["datasets"][0]["settings"]
    assert setting["mistake_rate_mean"] == from_file["mistake_rate"]
