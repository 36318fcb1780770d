"""`ahpatron sweep` and `report`: trials, what they resume, what the tables recommend, shards."""

import json
import os
import shlex
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace

import ahpatron_cli
from ahpatron_cli.errors import UserError
from ahpatron_cli.settings import SweepSettings, parts_of
from ahpatron_cli.sweep.results_file import encode_trial, read_results
from support.command import SMALL, Ahpatron, rows_of


def best_command(printed: str) -> list[str]:
    """The words behind `ahpatron` of the first command that is recommended."""
    _, _, end = printed.partition("Best on")
    return shlex.split(next(line for line in end.splitlines() if "ahpatron run" in line))[1:]


def test_trials_are_those_of_run_and_are_run_once(ahpatron: Ahpatron, rings: Path) -> None:
    words = ("-l", "ahpatron", "-l", "rbp", "--repeats", "3", "--seed", "5", "-B", "40")
    first = ahpatron.sweep(rings, *words)
    assert (first.code, first.err) == (0, "")
    assert ahpatron.files() == {"r.jsonl"}
    results = ahpatron.folder / "r.jsonl"
    header = json.loads(results.read_text().splitlines()[0])
    assert header["kind"] == "ahpatron sweep results"
    assert {"version", "numpy", "scipy", "blas", "command"} <= set(header)
    wanted = {
        (run["learner"], run["repeat"]): {name: run[name] for name in run if name != "seconds"}
        for run in ahpatron.json("run", rings, *words)["runs"]
    }
    trials = ahpatron.trials()
    assert {trial["status"] for trial in trials} == {"ok"}
    found = {(trial["run"]["learner"], trial["run"]["repeat"]): trial["run"] for trial in trials}
    assert found == wanted
    before = results.read_bytes()
    again = ahpatron.sweep(rings, *words)
    assert again.out == first.out == ahpatron("report", results).out
    assert "6 of 6 trials" in again.err
    assert results.read_bytes() == before
    best = {one["learner"]: one for one in ahpatron.json("report", results)["datasets"][0]["best"]}
    seconds = [trial["timing"]["seconds"] for trial in trials if trial["run"]["learner"] == "rbp"]
    assert best["rbp"]["seconds_mean"] == pytest.approx(fmean(seconds))


@pytest.mark.parametrize("processes", ["2", pytest.param("5", marks=pytest.mark.slow)])
def test_processes_change_nothing(
    ahpatron: Ahpatron, rings: Path, sparse_text: Path, processes: str
) -> None:
    for jobs in ("1", processes):  # 1: in the process of the test
        words = (rings, sparse_text, *SMALL, "-j", jobs, "--limit", "300")
        assert ahpatron.sweep(*words, out=f"{jobs}.jsonl").code == 0
    wanted = ahpatron.essence("1.jsonl")
    assert len(wanted) == 16
    assert ahpatron.essence(f"{processes}.jsonl") == wanted


def test_a_configuration(ahpatron: Ahpatron, rings: Path, breast_cancer: Path) -> None:
    (ahpatron.folder / "etc").mkdir()
    ahpatron.write(
        "etc/sweep.toml",
        f"""
        learners = ["ahpatron", "bogd++"]
        repeats = 2
        limit = 100
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
    done = ahpatron.sweep("--config", "etc/sweep.toml")
    assert done.code == 0, done.err
    count = Counter(
        (trial["run"]["learner"], trial["run"]["params"]["sigma"]) for trial in ahpatron.trials()
    )
    rest = {("bogd++", 0.1): 4, ("bogd++", 1.0): 2}
    assert count == {("ahpatron", 0.1): 12, ("ahpatron", 1.0): 12, **rest}
    fewer = ("--repeats", "1", "-l", "ahpatron", "-g", "epsilon=0.5", "--shuffle", "--dry-run")
    plan = ahpatron.sweep("--config", "etc/sweep.toml", *fewer)
    assert plan.out == "4 trials: 4 done, 0 left\n"


def test_what_is_not_run(ahpatron: Ahpatron, rings: Path) -> None:
    """A dry run, a fifo, a file of the same content."""
    done = ahpatron.sweep(rings, *SMALL, "--dry-run")
    assert done.out.splitlines()[0] == "8 trials: 0 done, 8 left"
    assert ahpatron.files() == set()
    os.mkfifo(ahpatron.folder / "pipe")
    writer = threading.Thread(target=(ahpatron.folder / "pipe").write_text, args=("+1 1:1\n",))
    writer.start()
    assert ahpatron.sweep("pipe").code == 66
    writer.join()
    ahpatron.write("copy.svm", rings.read_bytes())
    done = ahpatron.sweep(rings, "copy.svm", "-B", "20", "--limit", "100")
    assert done.code == 0
    assert "copy.svm" in done.err
    assert len(ahpatron.trials()) == 1


@pytest.mark.parametrize("kind", ["pipe", "device", "folder"])
def test_results_are_written_to_a_regular_file_only(
    ahpatron: Ahpatron, rings: Path, kind: str
) -> None:
    """Said before the data are read: a pipe would never answer."""
    path = ahpatron.folder / "r.jsonl"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    for more in ((), ("--dry-run",)):
        told = ahpatron.refusal(73, "sweep", "no such data", "--out", path, *more)
        assert "must be a regular file" in told


def test_a_device_is_no_name_for_results(ahpatron: Ahpatron, rings: Path) -> None:
    for name in ("/dev/null", "/dev/stdout"):
        assert "--out results.jsonl" in ahpatron.refusal(2, "sweep", rings, "--out", name)


def test_a_failed_trial_is_kept_and_run_again(ahpatron: Ahpatron, rings: Path) -> None:
    limits = ("-l", "ahpatron", "-l", "projectron", "-g", "max_support=3,2000", "--repeats", "2")
    for attempt in (1, 2):
        done = ahpatron.sweep(rings, *limits, "--limit", "300", *(["-q"] * (attempt - 1)))
        assert done.code == 3
        assert "2 of 6 trials failed" in done.err
        found = ahpatron.trials()
        failed = [trial for trial in found if trial["status"] == "failed"]
        assert len(failed) == 2 * attempt
        assert all("max_support" in str(trial["error"]) for trial in failed)
        assert len({trial["id"] for trial in failed}) == 2
        assert len(found) - len(failed) == 4
    assert ahpatron("report", "r.jsonl").code == 0


@pytest.mark.parametrize("fault", ["torn", "damaged"])
def test_a_torn_or_damaged_line_is_run_again(ahpatron: Ahpatron, rings: Path, fault: str) -> None:
    words = (rings, *SMALL, "--limit", "100")
    ahpatron.sweep(*words)
    results, wanted = ahpatron.folder / "r.jsonl", ahpatron.essence()
    if fault == "torn":
        os.truncate(results, results.stat().st_size - 10)
    else:
        results.write_text(results.read_text().replace('"mistakes": ', '"mistakes": 1', 1))
    assert fault in ahpatron("report", "r.jsonl", "-q").err
    done = ahpatron.sweep(*words)
    assert done.code == 0
    assert fault in done.err
    assert "7 of 8 trials" in done.err
    assert ahpatron.essence() == wanted or fault == "damaged"
    assert ahpatron.essence() >= wanted


def test_pictures_and_page(ahpatron: Ahpatron, rings: Path) -> None:
    pictures = ("--plot", "p.svg", "--report", "p.html")
    grid = ("-g", "budget=20,40", "--repeats", "2", "--limit", "100")
    assert ahpatron.sweep(rings, *grid, *pictures).code == 0
    first = {name: (ahpatron.folder / name).read_bytes() for name in ("p.svg", "p.html")}
    assert b"<svg" in first["p.svg"]
    assert b"<html" in first["p.html"]
    assert ahpatron("report", "r.jsonl", *pictures).code == 0
    for name, content in first.items():
        assert (ahpatron.folder / name).read_bytes() == content


def test_halving_ends_like_the_grid_and_goes_on(ahpatron: Ahpatron, breast_cancer: Path) -> None:
    tripled = ahpatron.write("d.svm", breast_cancer.read_bytes() * 3)
    grid = ("-g", "epsilon=0.1:0.9:0.2", "-g", "sigma=0.1,1", "-B", "20", "--repeats", "2")
    arguments = (tripled, *grid, "--scale", "minmax")
    ahpatron.sweep(*arguments, out="grid.jsonl")
    halving = ahpatron.sweep(*arguments, "--search", "halving", out="h.jsonl")
    runs = {json.dumps(trial["run"]) for trial in ahpatron.trials("grid.jsonl")}
    trials = ahpatron.trials("h.jsonl")
    assert {json.dumps(one["run"]) for one in trials if one["data"]["prefix"] is None} < runs
    assert {one["run"]["rounds"] for one in trials if one["data"]["prefix"]} == {569}
    # torn in the middle, it runs the same again
    results, whole = ahpatron.folder / "h.jsonl", ahpatron.essence("h.jsonl")
    os.truncate(results, results.stat().st_size // 2)
    again = ahpatron.sweep(*arguments, "--search", "halving", out="h.jsonl")
    assert ahpatron.essence("h.jsonl") == whole
    assert best_command(again.out) == best_command(halving.out)


def test_the_prefix_of_an_order_is_what_run_counts_so_far(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron.sweep(rings, "-g", "epsilon=0.3,0.5,0.7", "--shuffle", "--search", "halving")
    (run,) = [
        trial["run"]
        for trial in ahpatron.trials()
        if trial["data"]["prefix"] and trial["run"]["params"]["epsilon"] == 0.5
    ]
    ahpatron("run", rings, "--shuffle", "--epsilon", "0.5", "--curve", "c.csv")
    (at,) = [row for row in ahpatron.table("c.csv") if int(row["round"]) == run["rounds"]]
    assert int(at["mistakes"]) == run["mistakes"]


@pytest.mark.parametrize("learner", ["ahpatron", "nogd", "pomdr"])
def test_the_best_command_runs_the_first_permutation(
    ahpatron: Ahpatron, rings: Path, learner: str
) -> None:
    grid = ("-l", learner, "-l", "rbp", "-g", "budget=10,20", "--sigma", "0.1", "--limit", "300")
    options = ("--scale", "standard", "--repeats", "2", "--seed", "3")
    command = best_command(ahpatron.sweep(rings, *grid, *options).out)
    assert "--shuffle" in command
    run = ahpatron.run(*command[1:], "--save", "m.npz")
    (best,) = [
        one
        for one in ahpatron.json("report", "r.jsonl")["datasets"][0]["best"]
        if one["best_of_data"]
    ]
    assert (run["learner"], run["params"]) == (best["learner"], best["params"])
    wanted = {name: run[name] for name in ("learner", "params", "repeat", "mistakes")}
    assert any(trial["run"].items() >= wanted.items() for trial in ahpatron.trials())
    measured = ahpatron("report", "r.jsonl", "--metric", "f1").out
    assert best_command(measured)[-1] == "--metrics"


TABLE = "id,city,age,code,y\n" + "".join(
    f"r{number},{'Bonn' if number % 3 else ''},{number % 11},{number % 4},{'ab'[number % 5 == 0]}\n"
    for number in range(60)
)
DATA_OPTIONS: dict[str, tuple[str, ...]] = {
    "limit": ("--limit", "50"),
    "scale": ("--scale", "minmax"),
    "positive": ("--positive", "a"),
    "weight": ("--weight", "b=3"),
    "label": ("--label", "y"),
    "id": ("--id", "id"),
    "drop": ("--drop", "city"),
    "category": ("--category", "code"),
    "missing": ("--missing", "zero"),
    "max_features": ("--max-features", "20"),
    "layout": ("--layout", "sparse"),
    "seed": ("--seed", "7"),
    "shuffle": ("--shuffle",),
}
"""A value for each option on data that `sweep` and `run` share."""


def test_the_recommended_command_has_every_option_on_the_data(ahpatron: Ahpatron) -> None:
    """Made from the list of options, so that a new one cannot be forgotten."""
    declared = set[str]()
    for name, part in parts_of(SweepSettings).items():
        if name in ("data", "tables", "order"):
            declared |= {*part.options}
    assert declared - {"repeats", "jobs"} == set(DATA_OPTIONS)
    ahpatron.write("t.csv", TABLE)
    given = [word for words in DATA_OPTIONS.values() for word in words]
    done = ahpatron.sweep("t.csv", "-l", "arow", "-g", "budget=5,10", "--sigma", "2", *given)
    assert done.code == 0, done.err
    for printed in (done.out, ahpatron.succeed("report", "r.jsonl").out):
        command = best_command(printed)
        for words in DATA_OPTIONS.values():
            assert set(words) <= set(command)
        run = ahpatron.run(*command[1:])
        (best,) = ahpatron.json("report", "r.jsonl")["datasets"][0]["best"]
        assert run["mistake_rate"] == best["mistake_rate_mean"]


def test_settings_are_compared_by_any_metric(ahpatron: Ahpatron) -> None:
    ahpatron.write("three.svm", "1 1:1\n2 1:2\n3 1:3\n1 1:2.5\n" * 40)
    wanted = {
        budget: ahpatron.run("three.svm", "-B", budget, "--metrics")["metrics"]
        for budget in (4, 40)
    }
    for metric in ("precision", "recall", "f1", "auc", "kappa", "log_loss"):
        words = ("-g", "budget=4,40", "--metric", metric, "--format", "json")
        settings = json.loads(ahpatron.sweep("three.svm", *words).out)["datasets"][0]["settings"]
        found = {one["params"]["budget"]: one["metric_mean"] for one in settings}
        assert found == {n: pytest.approx(values[metric]) for n, values in wanted.items()}
        (best,) = [one["metric_mean"] for one in settings if one["best_of_data"]]
        assert best == (min if metric == "log_loss" else max)(found.values())
    assert len(ahpatron.trials()) == 2  # each is measured once


@pytest.fixture
def results(ahpatron: Ahpatron, rings: Path, sparse_text: Path) -> Path:
    """Two files, two learners, two budgets, three permutations."""
    limited = ("-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "3")
    assert ahpatron.sweep(rings, sparse_text, *limited, "--limit", "100").code == 0
    return ahpatron.folder / "r.jsonl"


def test_parts_of_results(ahpatron: Ahpatron, results: Path) -> None:
    """The matrix, one data set, other metrics, one row per trial."""
    shown = ahpatron("report", results, "--matrix", "--out", "m.tex")
    assert shown.out.splitlines()[1].split() == ["Learner", "rings", "sparse_text", "Rank"]
    assert r"\begin{tabular}" in (ahpatron.folder / "m.tex").read_text()
    for name in ("rings", "rings.svm, limit=100"):
        document = ahpatron.json("report", results, "-l", "rbp", "--data", name)
        (data,) = document["datasets"]
        assert data["data"]["path"].endswith("rings.svm")
        assert {one["learner"] for one in data["settings"]} == {"rbp"}
        assert document["trials"] == 6
    document = ahpatron.json("inspect", results, "--metric", "f1", "--tune-orders", "2")
    assert (document["metric"], document["tune_orders"]) == ("f1", 2)
    for data in document["datasets"]:
        assert {one["repeats"] for one in data["settings"]} == {2}
        assert {one["repeats"] for one in data["best"]} == {1}
    shown = ahpatron("report", results, "--trials", "--format", "csv", "--out", "t.json")
    rows = rows_of(shown.out)
    by_id = {trial["id"]: trial["run"] for trial in ahpatron.trials()}
    assert {row["id"] for row in rows} == set(by_id)
    for row in rows:
        assert int(row["mistakes"]) == by_id[row["id"]]["mistakes"]
        assert row["param_budget"] == str(by_id[row["id"]]["params"]["budget"])
    flat = ahpatron_cli.read_results(str(results))
    assert json.loads(ahpatron.read("t.json")) == flat
    values = [value for row in flat for value in row.values()]
    assert all(value is None or isinstance(value, str | int | float) for value in values)
    with pytest.raises(UserError):
        ahpatron_cli.read_results(str(ahpatron.folder / "t.json"))


def without(path: Path, *lost: Callable[[dict[str, Any]], bool]) -> Path:
    """The results file without the trials of which one of these is true."""
    kept = path.with_name("less.jsonl")
    lines = path.read_bytes().splitlines(keepends=True)
    gone = [any(one(json.loads(line).get("run", {})) for one in lost) for line in lines]
    kept.write_bytes(b"".join(line for line, away in zip(lines, gone, strict=True) if not away))
    return kept


@pytest.fixture
def ten(ahpatron: Ahpatron, rings: Path) -> Path:
    """Two settings of one learner, one of another, ten permutations; budget 40 is the best."""
    learners = ("-l", "ahpatron", "-l", "rbp", "-g", "ahpatron.budget=20,40", "-p", "rbp.budget=20")
    limited = ("--limit", "200", "--sigma", "0.25", "--repeats", "10")
    assert ahpatron.sweep(rings, *learners, *limited).code == 0
    return ahpatron.folder / "r.jsonl"


def is_best(run: dict[str, Any]) -> bool:
    return bool(run) and (run["learner"], run["params"]["budget"]) == ("ahpatron", 40)


def test_a_lost_trial_of_the_best_setting_is_marked_in_every_format(
    ahpatron: Ahpatron, ten: Path
) -> None:
    """It stays the best, on the permutations that all settings have."""
    less = without(ten, lambda run: is_best(run) and run["repeat"] == 3)
    whole, part = (ahpatron.json("report", path)["datasets"][0] for path in (ten, less))
    for document in (whole, part):
        (best,) = [one for one in document["best"] if one["best_of_data"]]
        assert (best["learner"], best["params"]["budget"]) == ("ahpatron", 40)
    assert [one["missing_permutations"] for one in whole["settings"]] == [0, 0, 0]
    assert [one["missing_permutations"] for one in part["settings"]] == [0, 1, 0]
    assert [one["finished_permutations"] for one in part["best"]] == [9, 10]
    assert [one["repeats"] for one in part["best"]] == [9, 9]
    for format, mark in {"table": "†", "markdown": "†", "latex": r"$\dagger$"}.items():
        for view in ((), ("--matrix",)):
            done = ahpatron.succeed("report", less, "--format", format, *view)
            assert mark in done.out
            assert "lacks permutations that others have" in done.out
            assert mark not in ahpatron.succeed("report", ten, "--format", format, *view).out
    for row in rows_of(ahpatron.succeed("report", less, "--format", "csv").out):
        assert row["missing_permutations"] == str(int(row["best_of_data"] == "true"))
    (matrix, _) = rows_of(ahpatron.succeed("report", less, "--matrix", "--format", "csv").out)
    assert (matrix["rings missing permutations"], matrix["rings compared"]) == ("1", "true")
    ahpatron.succeed("report", less, "--report", "page.html", "-q")
    assert "† lacks permutations that others have" in ahpatron.read("page.html")


def test_lost_trials_are_told_with_quiet_too(ahpatron: Ahpatron, ten: Path) -> None:
    """JSON lines and CSV have no footnotes."""
    less = without(ten, lambda run: bool(run) and run["learner"] == "rbp" and run["repeat"] > 0)
    done = ahpatron.succeed("report", less, "-q", "--format", "csv")
    assert "1 of 3 settings without all permutations" in done.err
    assert "except 1 with too few" in done.err
    assert [row["compared"] for row in rows_of(done.out)] == ["true", "true", "false"]


def test_a_learner_without_permutations_to_report_on_is_told(ahpatron: Ahpatron, ten: Path) -> None:
    less = without(ten, lambda run: bool(run) and run["learner"] == "rbp" and run["repeat"] > 2)
    done = ahpatron.succeed("report", less, "--tune-orders", "5", "-q")
    assert "rings: no other permutation is there of rbp." in done.out
    assert "left out, with only the 5 permutations to choose on: rbp" in done.err


def test_shards_are_merged(ahpatron: Ahpatron, rings: Path) -> None:
    grid = (rings, "-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "2")
    grid += ("--limit", "100")
    assert "Best on" in ahpatron.sweep(*grid, out="whole.jsonl").out
    shards = [f"s{part}.jsonl" for part in (1, 2)]
    for part, name in enumerate(shards, 1):
        assert "Best on" not in ahpatron.sweep(*grid, "--shard", f"{part}/2", out=name).out
        assert "Best on" not in ahpatron("report", name).out
    together = ahpatron("report", *shards).out
    assert "Best on" in together
    ahpatron.succeed("report", *shards, shards[0], "--merge", "all.jsonl")
    assert ahpatron("report", "all.jsonl").out == together
    assert ahpatron.essence("all.jsonl") == ahpatron.essence("whole.jsonl")
    assert "8 of 8 trials" in ahpatron.sweep(*grid, out="all.jsonl").err


def test_a_trial_with_two_outcomes_is_not_merged(ahpatron: Ahpatron, results: Path) -> None:
    trial = next(iter(read_results(str(results)).trials.values()))
    assert trial.run is not None
    for change, code in (({"updates": trial.run.updates + 1}, 65), ({"seconds": 9.0}, 0)):
        other: Any = replace(trial, run=replace(trial.run, **change))
        ahpatron.write("other.jsonl", encode_trial(other))
        done = ahpatron("report", results, "other.jsonl", "--merge", "all.jsonl")
        assert done.code == code
        assert ("all.jsonl" in ahpatron.files()) == (code == 0)


def test_a_kernel_of_zeros_is_warned_about(ahpatron: Ahpatron, rings: Path) -> None:
    data = ("-B", "20", "--scale", "minmax", "--limit", "300")
    assert "arbitrary" in ahpatron.sweep(rings, *data, "--sigma", "0.00001").err
    assert "arbitrary" not in ahpatron.sweep(rings, *data, "-g", "sigma=0.00001,0.1").err
