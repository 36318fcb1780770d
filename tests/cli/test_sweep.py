"""`ahpatron sweep`, as people and cron use it: real files."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from support.command import Ahpatron
from support.sweep_command import SMALL, TRIALS, essence, lines, sweep


def test_a_sweep_and_what_it_says(ahpatron: Ahpatron, rings: Path) -> None:
    done = sweep(ahpatron, rings, *SMALL)
    assert done.code == 0
    assert done.err == ""
    assert "rings.svm" in done.out
    assert "budget=20" in done.out
    assert "2 permutations" in done.out
    assert ahpatron.files() == {"r.jsonl"}
    results = ahpatron.folder / "r.jsonl"
    header = json.loads(results.read_text().splitlines()[0])
    assert header["kind"] == "ahpatron sweep results"
    assert header["command"].startswith("ahpatron sweep")
    assert {"version", "numpy", "scipy", "blas"} <= set(header)
    found = lines(results)
    assert len(found) == TRIALS
    assert {one["status"] for one in found} == {"ok"}
    assert ahpatron("inspect", results).out == done.out


def test_its_numbers_are_those_of_run(ahpatron: Ahpatron, rings: Path) -> None:
    sweep(
        ahpatron, rings, "-l", "ahpatron", "-l", "rbp", "--repeats", "3", "--seed", "5", "-B", "40"
    )
    report = ahpatron(
        *("run", rings, "-l", "ahpatron", "-l", "rbp", "--repeats", "3", "--seed", "5"),
        *("-B", "40", "--format", "json"),
    )
    done_runs = {(run["learner"], run["repeat"]): run for run in json.loads(report.out)["runs"]}
    found = lines(ahpatron.folder / "r.jsonl")
    assert len(found) == len(done_runs) == 6
    for line in found:
        run = line["run"]
        assert isinstance(run, dict)
        wanted = dict(done_runs[run["learner"], run["repeat"]])
        del wanted["seconds"]
        assert run == wanted


def test_the_same_command_again_runs_nothing(ahpatron: Ahpatron, rings: Path) -> None:
    first = sweep(ahpatron, rings, *SMALL)
    before = (ahpatron.folder / "r.jsonl").read_bytes()
    again = sweep(ahpatron, rings, *SMALL)
    assert again.out == first.out
    assert again.err == f"note: {TRIALS} of {TRIALS} trials are in r.jsonl already\n"
    assert (ahpatron.folder / "r.jsonl").read_bytes() == before


@pytest.mark.parametrize("processes", ["2", pytest.param("5", marks=pytest.mark.slow)])
def test_processes_change_nothing(
    ahpatron: Ahpatron, rings: Path, sparse_text: Path, processes: str
) -> None:
    tables = set()
    for jobs in ("1", processes):  # 1: in the process of the test
        out = f"{jobs}.jsonl"
        done = sweep(ahpatron, rings, sparse_text, *SMALL, "-j", jobs, "--format", "csv", out=out)
        assert done.code == 0
        again = ahpatron("inspect", out, "--format", "csv")
        for text in (done.out, again.out):
            rows = list(csv.DictReader(text.splitlines()))
            tables.add(json.dumps([{**row, "seconds_mean": ""} for row in rows]))
    assert len(tables) == 1
    wanted = essence(ahpatron.folder / "1.jsonl")
    assert len(wanted) == 2 * TRIALS
    assert essence(ahpatron.folder / f"{processes}.jsonl") == wanted


def test_a_configuration(ahpatron: Ahpatron, rings: Path, breast_cancer: Path) -> None:
    (ahpatron.folder / "etc").mkdir()
    ahpatron.write(
        "etc/sweep.toml",
        f"""
        learners = ["ahpatron", "bogd++"]
        repeats = 2
        [grid]
        budget = [20, 40]
        [learner.ahpatron]
        epsilon = "0.5:0.7:0.1"
        [[data]]
        path = "{os.path.relpath(rings, ahpatron.folder / "etc")}"
        grid = {{ sigma = 0.1 }}
        [[data]]
        path = "{breast_cancer}"
        learner."bogd++" = {{ budget = 30 }}
        """,
    )
    done = sweep(ahpatron, "--config", "etc/sweep.toml")
    assert done.code == 0, done.err
    count = Counter((one["run"]["learner"], one["run"]["params"]["sigma"])  # type: ignore[index]  # plain JSON
                    for one in lines(ahpatron.folder / "r.jsonl"))  # fmt: skip
    assert count == {
        ("ahpatron", 0.1): 12,
        ("bogd++", 0.1): 4,
        ("ahpatron", 1.0): 12,
        ("bogd++", 1.0): 2,
    }
    fewer = ("--repeats", "1", "-l", "ahpatron", "-g", "epsilon=0.5", "--shuffle", "--dry-run")
    plan = sweep(ahpatron, "--config", "etc/sweep.toml", *fewer)
    assert plan.out == "4 trials: 4 done, 0 left\n"


def test_a_dry_run_writes_nothing(ahpatron: Ahpatron, rings: Path) -> None:
    done = sweep(ahpatron, rings, *SMALL, "--dry-run")
    counts, time = done.out.splitlines()
    assert counts == "8 trials: 0 done, 8 left"
    assert re.match(r"about \d+\.\d s with --jobs 1", time)
    assert ahpatron("sweep", rings, *SMALL, "--dry-run").out.splitlines()[0] == counts
    assert ahpatron.files() == set()


def test_a_failed_trial_is_kept_and_run_again(ahpatron: Ahpatron, rings: Path) -> None:
    limits = ("-l", "ahpatron", "-l", "projectron", "-g", "max_support=3,2000", "--repeats", "2")
    done = sweep(ahpatron, rings, *limits)
    assert done.code == 3
    assert "max_support=3" in done.out
    assert "2 of 6 trials failed" in done.err
    assert "2 of 6 trials failed" in sweep(ahpatron, rings, *limits, "-q", "--format", "csv").err
    found = lines(ahpatron.folder / "r.jsonl")
    failed = [one for one in found if one["status"] == "failed"]
    assert len(failed) == 4  # tried again by the second command
    assert all("max_support" in str(one["error"]) for one in failed)
    assert len({one["id"] for one in failed}) == 2
    assert len(found) - len(failed) == 4
    again = sweep(ahpatron, rings, *limits)
    assert again.code == 3
    assert "4 of 6 trials" in again.err
    assert len(lines(ahpatron.folder / "r.jsonl")) == 10
    assert ahpatron("inspect", "r.jsonl").code == 0


def test_equal_files_are_run_once(ahpatron: Ahpatron, rings: Path) -> None:
    (ahpatron.folder / "copy.svm").write_bytes(rings.read_bytes())
    done = sweep(ahpatron, rings, "copy.svm", "-B", "20", "--repeats", "2")
    assert done.code == 0
    assert "copy.svm has the same content as" in done.err
    assert len(lines(ahpatron.folder / "r.jsonl")) == 2


def test_a_fifo_cannot_be_swept(ahpatron: Ahpatron) -> None:
    os.mkfifo(ahpatron.folder / "pipe")
    with subprocess.Popen(["sh", "-c", "echo '+1 1:1' > pipe"], cwd=ahpatron.folder):
        done = sweep(ahpatron, "pipe")
    assert done.code == 66
    assert "not from a pipe" in done.err


def test_a_torn_line_is_cut_and_said(ahpatron: Ahpatron, rings: Path) -> None:
    sweep(ahpatron, rings, *SMALL)
    results = ahpatron.folder / "r.jsonl"
    wanted = essence(results)
    os.truncate(results, results.stat().st_size - 10)
    looked = ahpatron("inspect", "r.jsonl")
    assert "torn" in looked.err
    done = sweep(ahpatron, rings, *SMALL)
    assert done.code == 0
    assert "torn" in done.err
    assert "7 of 8 trials" in done.err
    assert essence(results) == wanted


def test_a_damaged_line_is_said_and_run_again(ahpatron: Ahpatron, rings: Path) -> None:
    sweep(ahpatron, rings, *SMALL)
    results = ahpatron.folder / "r.jsonl"
    content = results.read_text().splitlines()
    content[3] = content[3].replace('"mistakes": ', '"mistakes": 1', 1)
    results.write_text("\n".join(content) + "\n")
    done = sweep(ahpatron, rings, *SMALL)
    assert "r.jsonl:4: this line is damaged" in done.err
    assert "7 of 8 trials" in done.err
    assert results.read_text().splitlines()[:9] == content
    assert len(results.read_text().splitlines()) == 10


def test_pictures_and_page(ahpatron: Ahpatron, rings: Path) -> None:
    pictures = ("--plot", "p.svg", "--report", "p.html")
    done = sweep(ahpatron, rings, "-g", "budget=20,40", "--repeats", "2", *pictures)
    assert done.code == 0, done.err
    first = {name: (ahpatron.folder / name).read_bytes() for name in ("p.svg", "p.html")}
    assert b"<svg" in first["p.svg"]
    assert b"ahpatron sweep" in first["p.html"]
    assert ahpatron("inspect", "r.jsonl", *pictures).code == 0
    for name, content in first.items():
        assert (ahpatron.folder / name).read_bytes() == content


HALVING = ("-g", "epsilon=0.1:0.9:0.1", "-g", "sigma=0.1,1", "-B", "20", "--repeats", "2")


def test_halving_ends_like_the_grid_and_goes_on(ahpatron: Ahpatron, breast_cancer: Path) -> None:
    doubled = ahpatron.write("d.svm", breast_cancer.read_bytes() * 3)
    arguments = (doubled, *HALVING, "--scale", "minmax")
    grid = sweep(ahpatron, *arguments, out="grid.jsonl")
    halving = sweep(ahpatron, *arguments, "--search", "halving", out="h.jsonl")
    assert "settings more ran on the first rounds only" in halving.out
    runs = {json.dumps(one["run"]) for one in lines(ahpatron.folder / "grid.jsonl")}
    stored = lines(ahpatron.folder / "h.jsonl")
    full = [one for one in stored if one["data"]["prefix"] is None]  # type: ignore[index]
    assert 0 < len(full) < len(runs)
    assert {json.dumps(one["run"]) for one in full} <= runs
    short = [one["run"] for one in stored if one not in full]
    assert {run["rounds"] for run in short} == {569}  # type: ignore[index]
    assert grid.code == halving.code == 0
    # torn in the middle, it runs the same again
    results = ahpatron.folder / "h.jsonl"
    content = results.read_bytes()
    whole = essence(results)
    results.write_bytes(content[: len(content) // 2])
    again = sweep(ahpatron, *arguments, "--search", "halving", out="h.jsonl")
    assert essence(results) == whole
    assert again.out.split("Best on")[1] == halving.out.split("Best on")[1]
    assert "trials are in h.jsonl already" in again.err


def test_the_prefix_of_an_order_is_what_run_counts_so_far(ahpatron: Ahpatron, rings: Path) -> None:
    sweep(ahpatron, rings, "-g", "epsilon=0.3,0.5,0.7", "--shuffle", "--search", "halving")
    (one,) = [
        line["run"]
        for line in lines(ahpatron.folder / "r.jsonl")
        if line["data"]["prefix"] and line["run"]["params"]["epsilon"] == 0.5  # type: ignore[index]
    ]
    ahpatron("run", rings, "--shuffle", "--epsilon", "0.5", "--curve", "c.csv")
    rounds = one["rounds"]  # type: ignore[index]
    with (ahpatron.folder / "c.csv").open() as stream:
        (at,) = [row for row in csv.DictReader(stream) if int(row["round"]) == rounds]
    assert int(at["mistakes"]) == one["mistakes"]  # type: ignore[index]


@pytest.mark.parametrize("learner", ["ahpatron", "nogd", "pomdr", "bogd++"])
def test_the_command_at_the_end_runs_the_best_again(
    ahpatron: Ahpatron, rings: Path, learner: str
) -> None:
    done = sweep(
        *(ahpatron, rings, "-l", learner, "-l", "rbp", "-g", "budget=10,20", "--sigma", "0.1"),
        *("--limit", "300", "--scale", "standard", "--repeats", "2", "--seed", "3"),
    )
    end = done.out[done.out.index("Best on") :]
    command = end.splitlines()[1].split()
    assert command[:2] == ["ahpatron", "run"]
    assert "--shuffle" in command
    assert "--repeats" not in command
    (done_runs,) = ahpatron.json(*command[1:], "--save", "m.npz")["runs"]
    assert (ahpatron.folder / "m.npz").exists()
    found = ahpatron.json("inspect", "r.jsonl")["datasets"][0]
    (best,) = [one for one in found["best"] if one["best_of_data"]]
    assert done_runs["params"] == best["params"]
    (first,) = [
        one["run"]
        for one in lines(ahpatron.folder / "r.jsonl")
        if one["run"]["params"] == best["params"]  # type: ignore[index]  # plain JSON
        and (one["run"]["learner"], one["run"]["repeat"]) == (best["learner"], 0)  # type: ignore[index]
    ]
    assert first["mistakes"] == done_runs["mistakes"]  # type: ignore[index]
    measured = ahpatron("inspect", "r.jsonl", "--metric", "f1").out
    assert measured[measured.index("Best on") :].splitlines()[1].endswith(" --metrics")


def test_tuning_orders_run_only_the_best_on_the_others(ahpatron: Ahpatron, rings: Path) -> None:
    tuned = ("-g", "budget=10,20,40", "--repeats", "4", "--tune-orders", "2")
    done = sweep(ahpatron, rings, *tuned)
    assert len(lines(ahpatron.folder / "r.jsonl")) == 3 * 2 + 2
    assert "hindsight" not in done.out
    assert sweep(ahpatron, rings, *tuned).out == done.out


def test_a_part_of_a_sweep_recommends_nothing(ahpatron: Ahpatron, rings: Path) -> None:
    grid = (rings, "-g", "budget=10,20,40", "--limit", "100", "--shuffle")
    assert "Best on" in sweep(ahpatron, *grid, out="whole.jsonl").out
    done = sweep(ahpatron, *grid, "--shard", "1/2", out="1.jsonl")
    assert "Best on" not in done.out
    assert "Best on" not in ahpatron("inspect", "1.jsonl").out
    sweep(ahpatron, *grid, "--shard", "2/2", out="2.jsonl")
    assert "Best on" in ahpatron("inspect", "1.jsonl", "2.jsonl").out


def test_every_metric_of_several_classes(ahpatron: Ahpatron) -> None:
    ahpatron.write("three.svm", "1 1:1\n2 1:2\n3 1:3\n" * 40)
    (run,) = ahpatron.json("run", "three.svm", "--metrics")["runs"]
    for metric in ("precision", "recall", "f1", "auc", "kappa"):
        found = sweep(ahpatron, "three.svm", "--metric", metric, "--format", "json")
        (setting,) = json.loads(found.out)["datasets"][0]["settings"]
        assert setting["metric_mean"] == pytest.approx(run["metrics"][metric])
    assert len(lines(ahpatron.folder / "r.jsonl")) == 1  # measured once


def test_settings_are_compared_by_log_loss(ahpatron: Ahpatron, rings: Path) -> None:
    options = ("-g", "budget=10,40", "--limit", 600, "--metric", "log_loss", "--out", "r.jsonl")
    document = ahpatron.json("sweep", rings, *options)
    (data,) = document["datasets"]
    best, other = sorted(data["settings"], key=lambda one: not one["best_of_data"])
    assert 0 < best["metric_mean"] < other["metric_mean"]
    wanted = ahpatron.json(
        "run", rings, "-B", best["params"]["budget"], "--limit", 600, "--metrics"
    )
    assert best["metric_mean"] == wanted["runs"][0]["metrics"]["log_loss"]


def test_an_axis_that_is_not_varied_is_refused_before_anything_is_run(
    ahpatron: Ahpatron, rings: Path
) -> None:
    options = ("-g", "budget=10,40", "--limit", 100, "--out", "r.jsonl", "--plot", "r.svg")
    assert "budget" in ahpatron.refusal(2, "sweep", rings, *options, "--x", "budgte")
    assert "r.jsonl" not in ahpatron.files()
