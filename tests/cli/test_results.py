"""Results that travel: filters, files, one row per trial, merged shards, and bad input to each."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

import ahpatron_cli
from support.command import Ahpatron
from support.sweep_command import essence, lines, sweep


@pytest.fixture
def results(ahpatron: Ahpatron, rings: Path, sparse_text: Path) -> Path:
    """Two files, two learners, two budgets, three orders."""
    limited = ("-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "3")
    done = sweep(ahpatron, rings, sparse_text, *limited, "--limit", "100")
    assert done.code == 0
    return ahpatron.folder / "r.jsonl"


def test_the_matrix_and_its_files(ahpatron: Ahpatron, results: Path) -> None:
    shown = ahpatron("inspect", results, "--matrix", "--out", "m.tex")
    assert shown.out.splitlines()[1].split() == ["Learner", "rings", "sparse_text", "Rank"]
    assert r"\begin{tabular}{lrrr}" in (ahpatron.folder / "m.tex").read_text()
    assert ahpatron("inspect", results).out.startswith(shown.out.split("\n\n")[0])


@pytest.mark.parametrize("name", ["rings", "rings.svm, limit=100"])
def test_filters(ahpatron: Ahpatron, results: Path, name: str) -> None:
    document = json.loads(
        ahpatron("inspect", results, "-l", "rbp", "--data", name, "--format", "json").out
    )
    (data,) = document["datasets"]
    assert data["data"]["path"].endswith("rings.svm")
    assert {one["learner"] for one in data["settings"]} == {"rbp"}
    assert document["trials"] == 6


def test_one_row_per_trial(ahpatron: Ahpatron, results: Path) -> None:
    shown = ahpatron("inspect", results, "--trials", "--format", "csv", "--out", "t.json")
    rows = list(csv.DictReader(io.StringIO(shown.out)))
    stored = lines(results)
    assert len(rows) == len(stored) == 24
    by_id = {one["id"]: one for one in stored}
    for row in rows:
        run = by_id[row["id"]]["run"]
        assert isinstance(run, dict)
        assert int(row["mistakes"]) == run["mistakes"]
        assert row["param_budget"] == str(run["params"]["budget"])
        assert row["status"] == "ok"
    flat = ahpatron_cli.read_results(str(results))
    assert json.loads((ahpatron.folder / "t.json").read_text()) == flat
    assert all(
        value is None or isinstance(value, str | int | float)
        for row in flat
        for value in row.values()
    )


def test_metric_and_tuning_of_results(ahpatron: Ahpatron, results: Path) -> None:
    document = ahpatron.json("inspect", results, "--metric", "f1", "--tune-orders", "2")
    assert (document["metric"], document["tune_orders"]) == ("f1", 2)
    for data in document["datasets"]:
        assert {one["repeats"] for one in data["settings"]} == {2}
        assert {one["repeats"] for one in data["best"]} == {1}


def test_shards_are_merged(ahpatron: Ahpatron, rings: Path, results: Path) -> None:
    small = (rings, "-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "2")
    sweep(ahpatron, *small, out="whole.jsonl")
    for part in (1, 2, 3):
        sweep(ahpatron, *small, "--shard", f"{part}/3", out=f"s{part}.jsonl")
    shards = ("s1.jsonl", "s2.jsonl", "s3.jsonl")
    together = ahpatron("inspect", *shards)
    ahpatron.succeed("inspect", *shards, "s2.jsonl", "--merge", "all.jsonl")
    assert essence(ahpatron.folder / "all.jsonl") == essence(ahpatron.folder / "whole.jsonl")
    timeless = ("--format", "markdown", "--matrix")
    tables = {ahpatron("inspect", *which, *timeless).out for which in (("all.jsonl",), shards)}
    assert tables == {ahpatron("inspect", "whole.jsonl", *timeless).out}
    assert together.out == ahpatron("inspect", "all.jsonl").out
    go_on = sweep(ahpatron, *small, out="all.jsonl")
    assert "8 of 8 trials" in go_on.err


def test_steps_and_widths_are_named_by_where_they_come_from(
    ahpatron: Ahpatron, rings: Path
) -> None:
    grid = ("-l", "nogd", "-g", "step=10^[-1:0]/sqrt(T)", "--limit", "90", "--repeats", "2")
    shown = sweep(ahpatron, rings, *grid, "-g", "sigma=auto,2")
    rows = ahpatron_cli.read_results(ahpatron.folder / "r.jsonl")
    (sigma,) = {one["param_sigma"] for one in rows} - {2.0}
    assert f"sigma=auto ({sigma:.3g}), step=10^-1/√T" in shown.out
    assert "sigma=2, step=10^0/√T" in shown.out
    paper = ahpatron("inspect", "r.jsonl", "--format", "latex").out
    assert f"$\\sigma$ = auto ({sigma:.3g}), step = $10^{{-1}}/\\sqrt{{T}}$" in paper
    assert paper.isascii() or "√" not in paper
    assert "step=10^0/sqrt(T)" in ahpatron("inspect", "r.jsonl", PYTHONIOENCODING="ascii").out
    # the same trials with the width typed: no conflict
    sweep(ahpatron, rings, *grid, "-g", f"sigma={sigma},2", out="typed.jsonl")
    assert ahpatron("inspect", "r.jsonl", "typed.jsonl").code == 0


def test_a_trial_that_came_out_in_two_ways_is_not_merged(ahpatron: Ahpatron, results: Path) -> None:

    from msgspec.structs import replace

    from ahpatron_cli.sweep.results_file import encode_trial, read_results

    trial = next(iter(read_results(str(results)).trials.values()))
    assert trial.run is not None
    counts = replace(trial.run.counts, updates=trial.run.counts.updates + 1)
    other = replace(trial, run=replace(trial.run, counts=counts))
    ahpatron.write("other.jsonl", encode_trial(other))
    err = ahpatron.refusal(65, "inspect", results, "other.jsonl", "--merge", "all.jsonl")
    assert f"trial {trial.id}" in err
    assert "all.jsonl" not in ahpatron.files()
    # of one file the later line counts, as ever
    slower = replace(trial, run=replace(trial.run, seconds=9.0))
    ahpatron.write("other.jsonl", encode_trial(slower))
    assert ahpatron("inspect", results, "other.jsonl").code == 0
