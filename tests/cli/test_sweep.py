"""`ahpatron sweep` and `report`: trials, what they resume, what the tables recommend, shards."""

import json
import os
import platform
import shlex
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from msgspec.structs import replace

import ahpatron_cli
from ahpatron_cli.errors import UserError
from ahpatron_cli.settings import SweepSettings, parts_of
from ahpatron_cli.sweep import config
from ahpatron_cli.sweep.results_file import encode_trial, read_results
from support.command import SMALL, Ahpatron, Outcome, rows_of


def best_command(printed: str) -> list[str]:
    """The words behind `ahpatron` of the first command that is recommended."""
    _, _, end = printed.partition("Best on")
    return shlex.split(next(line for line in end.splitlines() if "ahpatron run" in line))[1:]


# Trials -------------------------------------------------------------------------------------------

SIX = ("-l", "ahpatron", "-l", "rbp", "--repeats", "3", "--seed", "5", "-B", "40")


@dataclass(frozen=True)
class Swept:
    """A folder with the results file r.jsonl of six trials, and what the sweep printed."""

    ahpatron: Ahpatron
    first: Outcome


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory, rings: Path) -> Swept:
    ahpatron = Ahpatron(tmp_path_factory.mktemp("swept"))
    return Swept(ahpatron, ahpatron.sweep(rings, *SIX))


def test_a_sweep_writes_one_file_and_says_nothing_on_stderr(swept: Swept) -> None:
    assert swept.first.code == 0
    assert swept.first.err == ""
    assert swept.ahpatron.files() == {"r.jsonl"}


def test_a_results_file_says_what_made_it(swept: Swept) -> None:
    header = json.loads(swept.ahpatron.read("r.jsonl").splitlines()[0])
    assert header["kind"] == "ahpatron sweep results"
    assert {"version", "numpy", "scipy", "blas", "command"} <= set(header)
    assert datetime.fromisoformat(header["date"]).tzinfo is not None
    assert header["host"] == platform.node()
    assert all(header[name] for name in ("os", "processor", "cores"))


def test_a_trial_names_its_header_and_its_machine(swept: Swept) -> None:
    for trial in swept.ahpatron.trials():
        assert trial["header"] == 1
        assert platform.node() in trial["timing"]["machine"]


def test_trials_are_those_of_run(swept: Swept, rings: Path) -> None:
    wanted = {}
    for run in swept.ahpatron.json("run", rings, *SIX)["runs"]:
        del run["seconds"]
        wanted[run["learner"], run["repeat"]] = run
    trials = swept.ahpatron.trials()
    assert {trial["status"] for trial in trials} == {"ok"}
    found = {(trial["run"]["learner"], trial["run"]["repeat"]): trial["run"] for trial in trials}
    assert found == wanted


def test_trials_are_run_once(swept: Swept, rings: Path) -> None:
    before = swept.ahpatron.read("r.jsonl")
    again = swept.ahpatron.sweep(rings, *SIX)
    assert again.out == swept.first.out
    assert "6 of 6 trials" in again.err
    assert swept.ahpatron.read("r.jsonl") == before


def test_a_report_shows_what_the_sweep_did(swept: Swept) -> None:
    assert swept.ahpatron("report", "r.jsonl").out == swept.first.out


def test_seconds_are_the_mean_of_all_permutations(swept: Swept) -> None:
    settings = swept.ahpatron.json("report", "r.jsonl")["datasets"][0]["best"]
    (found,) = [one["seconds_mean"] for one in settings if one["learner"] == "rbp"]
    trials = [trial for trial in swept.ahpatron.trials() if trial["run"]["learner"] == "rbp"]
    assert found == pytest.approx(fmean(trial["timing"]["seconds"] for trial in trials))


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


@pytest.fixture(scope="module")
def configured(
    tmp_path_factory: pytest.TempPathFactory, rings: Path, breast_cancer: Path
) -> Ahpatron:
    """A folder with a configuration and the results of its sweep."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("configured"))
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
    return ahpatron


def test_a_configuration_has_grids_of_all_of_a_learner_and_of_a_file(configured: Ahpatron) -> None:
    """2 budgets times 3 epsilons times 2 permutations of ahpatron on each file; bogd++ fewer."""
    count = Counter(
        (trial["run"]["learner"], trial["run"]["params"]["sigma"]) for trial in configured.trials()
    )
    assert count == {
        ("ahpatron", 0.1): 12,
        ("ahpatron", 1.0): 12,
        ("bogd++", 0.1): 4,
        ("bogd++", 1.0): 2,
    }


def test_options_go_before_the_configuration(configured: Ahpatron) -> None:
    fewer = ("--repeats", "1", "-l", "ahpatron", "-g", "epsilon=0.5", "--shuffle", "--dry-run")
    plan = configured.sweep("--config", "etc/sweep.toml", *fewer)
    assert plan.out == "4 trials: 4 done, 0 left\n"


def test_a_dry_run_counts_trials_and_writes_nothing(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron.sweep(rings, *SMALL, "--dry-run")
    assert done.out.splitlines()[0] == "8 trials: 0 done, 8 left"
    assert ahpatron.files() == set()


def test_no_more_trials_than_the_limit_are_planned(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "MOST_TRIALS", 8)
    assert ahpatron.sweep(rings, *SMALL, "--dry-run").out.startswith("8 trials: 0 done, 8 left")
    refused = ahpatron.sweep(rings, *SMALL, "--dry-run", "--repeats", 3)
    assert refused.code == 2
    assert "12 trials; at most 8" in refused.err


def test_the_weights_of_all_labels_multiply_the_trials(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "MOST_TRIALS", 8)
    weights = ("--weight=1=1,2,3", "--weight=-1=1,2,3")
    refused = ahpatron.sweep(rings, "-l", "ahpatron", *weights, "--repeats", 1, "--dry-run")
    assert refused.code == 2
    assert "9 trials; at most 8" in refused.err


def test_a_named_pipe_is_no_data_of_a_sweep(ahpatron: Ahpatron) -> None:
    """It could not be read twice."""
    os.mkfifo(ahpatron.folder / "pipe")
    writer = threading.Thread(target=(ahpatron.folder / "pipe").write_text, args=("+1 1:1\n",))
    writer.start()
    assert ahpatron.sweep("pipe").code == 66
    writer.join()


def test_two_files_of_the_same_content_are_run_once(ahpatron: Ahpatron, rings: Path) -> None:
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
    results = ahpatron.folder / "r.jsonl"
    wanted = ahpatron.essence()
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


PICTURES = ("--plot", "p.svg", "--html", "p.html")


@pytest.fixture(scope="module")
def pictured(tmp_path_factory: pytest.TempPathFactory, rings: Path) -> Ahpatron:
    """A folder with results, a picture and a page."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("pictured"))
    grid = ("-g", "budget=20,40", "--repeats", "2", "--limit", "100")
    assert ahpatron.sweep(rings, *grid, *PICTURES).code == 0
    return ahpatron


def test_a_sweep_writes_a_picture_and_a_page(pictured: Ahpatron) -> None:
    assert "<svg" in pictured.read("p.svg")
    assert "<html" in pictured.read("p.html")


def test_panels_that_a_sweep_cannot_have_are_refused_before_a_trial_is_run(
    ahpatron: Ahpatron, rings: Path
) -> None:
    command = ("sweep", rings, "-l", "rbp", "--out", "r.jsonl", "--plot", "p.svg")
    assert "no such panel" in ahpatron.refusal(2, *command, "--panels", "ranks")
    assert "no such panel" in ahpatron.refusal(2, *command, "--panels", "parameter")
    assert not (ahpatron.folder / "r.jsonl").exists()


def test_a_report_writes_the_same_picture_and_page(pictured: Ahpatron) -> None:
    first = {name: (pictured.folder / name).read_bytes() for name in ("p.svg", "p.html")}
    pictured.succeed("report", "r.jsonl", *PICTURES)
    for name, content in first.items():
        assert (pictured.folder / name).read_bytes() == content


# Search by halving --------------------------------------------------------------------------------

TEN = ["-g", "epsilon=0.1:0.9:0.2", "-g", "sigma=0.1,1"]
"""A grid of ten settings."""
GRID = ["d.svm", *TEN, "-B", "20", "--repeats", "2", "--scale", "minmax"]
HALVING = [*GRID, "--search", "halving"]


@pytest.fixture(scope="module")
def halved(tmp_path_factory: pytest.TempPathFactory, breast_cancer: Path) -> Swept:
    """A folder with data, and the results of a search by halving."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("halved"))
    ahpatron.write("d.svm", breast_cancer.read_bytes() * 3)
    return Swept(ahpatron, ahpatron.sweep(*HALVING))


def test_whole_trials_of_halving_are_some_of_the_grid(halved: Swept) -> None:
    halved.ahpatron.sweep(*GRID, out="grid.jsonl")
    grid = {json.dumps(trial["run"]) for trial in halved.ahpatron.trials("grid.jsonl")}
    whole = [one["run"] for one in halved.ahpatron.trials() if one["data"]["prefix"] is None]
    assert {json.dumps(run) for run in whole} < grid


def test_the_other_trials_of_halving_have_a_third_of_the_rounds(halved: Swept) -> None:
    prefixes = [one["run"] for one in halved.ahpatron.trials() if one["data"]["prefix"]]
    assert {run["rounds"] for run in prefixes} == {569}


def test_halving_that_was_interrupted_goes_on_to_the_same_end(halved: Swept) -> None:
    results = halved.ahpatron.folder / "r.jsonl"
    whole = halved.ahpatron.essence()
    os.truncate(results, results.stat().st_size // 2)
    again = halved.ahpatron.sweep(*HALVING)
    assert halved.ahpatron.essence() == whole
    assert best_command(again.out) == best_command(halved.first.out)


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


# The command that is recommended ------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["ahpatron", "nogd", "pomdr"])
def test_the_best_command_runs_the_first_permutation(
    ahpatron: Ahpatron, rings: Path, learner: str
) -> None:
    grid = ("-l", learner, "-l", "rbp", "-g", "budget=10,20", "--sigma", "0.1", "--limit", "300")
    options = ("--scale", "standard", "--repeats", "2", "--seed", "3")
    command = best_command(ahpatron.sweep(rings, *grid, *options).out)
    assert "--shuffle" in command
    run = ahpatron.run(*command[1:], "--save", "m.npz")
    settings = ahpatron.json("report", "r.jsonl")["datasets"][0]["best"]
    (best,) = [one for one in settings if one["best_of_data"]]
    assert run["learner"] == best["learner"]
    assert run["params"] == best["params"]
    wanted = {name: run[name] for name in ("learner", "params", "repeat", "mistakes")}
    assert any(trial["run"].items() >= wanted.items() for trial in ahpatron.trials())


def test_the_best_command_by_another_metric_measures_it(results: Path, ahpatron: Ahpatron) -> None:
    measured = ahpatron("report", results, "--best-by", "f1").out
    assert best_command(measured)[-1] == "--metrics"


def _line(number: int) -> str:
    city = "Bonn" if number % 3 else ""
    day = f"{number % 9 + 1:02}/03/2024"
    price = f'"{number % 7},5"' if number % 8 else "unknown"
    return f"r{number},{city},{number % 11},{number % 4},{day},{price},{'ab'[number % 5 == 0]}\n"


TABLE = "id,city,age,code,day,price,y\n" + "".join(map(_line, range(60)))
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
    "na": ("--na", "unknown"),
    "decimal": ("--decimal", ","),
    "date_format": ("--date-format", "DD/MM/YYYY"),
    "max_features": ("--max-features", "20"),
    "layout": ("--layout", "sparse"),
    "seed": ("--seed", "7"),
    "shuffle": ("--shuffle",),
}
"""A value for each option on data that `sweep` and `run` share."""


def test_no_option_on_the_data_is_forgotten_here() -> None:
    declared = set[str]()
    for name, part in parts_of(SweepSettings).items():
        if name in ("data", "tables", "order"):
            declared |= {*part.options}
    assert declared - {"repeats", "jobs"} == set(DATA_OPTIONS)


@pytest.fixture(scope="module")
def with_options(tmp_path_factory: pytest.TempPathFactory) -> Swept:
    """A sweep on a table with every option on the data."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("options"))
    ahpatron.write("t.csv", TABLE)
    given = [word for words in DATA_OPTIONS.values() for word in words]
    done = ahpatron.sweep("t.csv", "-l", "arow", "-g", "budget=5,10", "--sigma", "2", *given)
    assert done.code == 0, done.err
    return Swept(ahpatron, done)


@pytest.mark.parametrize("name", DATA_OPTIONS)
def test_the_command_that_sweep_recommends_has_every_option_on_the_data(
    with_options: Swept, name: str
) -> None:
    assert set(DATA_OPTIONS[name]) <= set(best_command(with_options.first.out))


def test_report_recommends_the_command_that_sweep_did(with_options: Swept) -> None:
    reported = with_options.ahpatron.succeed("report", "r.jsonl").out
    assert best_command(reported) == best_command(with_options.first.out)


def test_the_recommended_command_makes_the_mistakes_of_the_table(with_options: Swept) -> None:
    ahpatron = with_options.ahpatron
    run = ahpatron.run(*best_command(with_options.first.out)[1:])
    (best,) = ahpatron.json("report", "r.jsonl")["datasets"][0]["best"]
    assert run["mistake_rate"] == best["mistake_rate_mean"]


# Metrics ------------------------------------------------------------------------------------------

METRICS = ("precision", "recall", "f1", "auc", "kappa", "log_loss")


@pytest.fixture(scope="module")
def three_classes(tmp_path_factory: pytest.TempPathFactory) -> Ahpatron:
    """A folder with data of three classes and a sweep over two budgets."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("classes"))
    ahpatron.write("three.svm", "1 1:1\n2 1:2\n3 1:3\n1 1:2.5\n" * 40)
    measured = ("--best-by", "precision")  # and by all others then
    assert ahpatron.sweep("three.svm", "-g", "budget=4,40", *measured).code == 0
    return ahpatron


def settings_by(ahpatron: Ahpatron, metric: str) -> list[dict[str, Any]]:
    document = ahpatron.json("report", "r.jsonl", "--best-by", metric)
    return list(document["datasets"][0]["settings"])


@pytest.mark.parametrize("metric", METRICS)
def test_a_metric_of_a_setting_is_that_of_run(three_classes: Ahpatron, metric: str) -> None:
    for one in settings_by(three_classes, metric):
        budget = one["params"]["budget"]
        run = three_classes.run("three.svm", "-B", budget, "--metrics")
        assert one["metric_mean"] == pytest.approx(run["metrics"][metric])


@pytest.mark.parametrize("metric", METRICS)
def test_settings_are_compared_by_any_metric(three_classes: Ahpatron, metric: str) -> None:
    settings = settings_by(three_classes, metric)
    means = [one["metric_mean"] for one in settings]
    (best,) = [one["metric_mean"] for one in settings if one["best_of_data"]]
    assert best == (min(means) if metric == "log_loss" else max(means))


def test_another_metric_runs_no_trial_again(three_classes: Ahpatron) -> None:
    done = three_classes.sweep("three.svm", "-g", "budget=4,40", "--best-by", "f1")
    assert "2 of 2 trials" in done.err
    assert len(three_classes.trials()) == 2


# Views of results ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory, rings: Path, sparse_text: Path) -> Path:
    """Two files, two learners, two budgets, three permutations."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("results"))
    limited = ("-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "3")
    assert ahpatron.sweep(rings, sparse_text, *limited, "--limit", "100").code == 0
    return ahpatron.folder / "r.jsonl"


def test_the_matrix_has_a_column_per_file(ahpatron: Ahpatron, results: Path) -> None:
    shown = ahpatron.succeed("report", results, "--matrix")
    assert shown.out.splitlines()[1].split() == ["Learner", "rings", "sparse_text", "Rank"]


def test_the_matrix_is_exported_to_latex(ahpatron: Ahpatron, results: Path) -> None:
    ahpatron.succeed("report", results, "--matrix", "--out", "m.tex")
    assert r"\begin{tabular}" in ahpatron.read("m.tex")


@pytest.mark.parametrize("name", ["rings", "rings.svm, limit=100"])
def test_a_report_can_be_on_one_file_and_one_learner(
    ahpatron: Ahpatron, results: Path, name: str
) -> None:
    document = ahpatron.json("report", results, "-l", "rbp", "--data", name)
    (data,) = document["datasets"]
    assert data["data"]["path"].endswith("rings.svm")
    assert {one["learner"] for one in data["settings"]} == {"rbp"}
    assert document["trials"] == 6


def test_settings_can_be_chosen_on_some_permutations_and_reported_on_others(
    ahpatron: Ahpatron, results: Path
) -> None:
    document = ahpatron.json("inspect", results, "--best-by", "f1", "--tune-repeats", "2")
    assert document["metric"] == "f1"
    assert document["tune_orders"] == 2
    for data in document["datasets"]:
        assert {one["repeats"] for one in data["settings"]} == {2}
        assert {one["repeats"] for one in data["best"]} == {1}


def test_trials_can_be_shown_one_per_row(ahpatron: Ahpatron, results: Path) -> None:
    shown = ahpatron.succeed("report", results, "--trials", "--format", "csv")
    rows = rows_of(shown.out)
    stored = Ahpatron(results.parent).trials()
    by_id = {trial["id"]: trial["run"] for trial in stored}
    assert {row["id"] for row in rows} == set(by_id)
    for row in rows:
        assert int(row["mistakes"]) == by_id[row["id"]]["mistakes"]
        assert row["param_budget"] == str(by_id[row["id"]]["params"]["budget"])


def test_python_reads_the_trials_that_report_exports(ahpatron: Ahpatron, results: Path) -> None:
    ahpatron.succeed("report", results, "--trials", "--format", "csv", "--out", "t.json")
    assert ahpatron_cli.read_results(str(results)) == json.loads(ahpatron.read("t.json"))


def test_trials_in_python_are_flat(results: Path) -> None:
    values = [value for row in ahpatron_cli.read_results(str(results)) for value in row.values()]
    assert all(value is None or isinstance(value, str | int | float) for value in values)


def test_a_file_that_has_no_results_is_refused_in_python(ahpatron: Ahpatron) -> None:
    path = ahpatron.write("t.json", "[]\n")
    with pytest.raises(UserError):
        ahpatron_cli.read_results(str(path))


# Lost trials --------------------------------------------------------------------------------------


def without(ahpatron: Ahpatron, path: Path, lost: Callable[[dict[str, Any]], bool]) -> Path:
    """The results file without the trials whose run is `lost`."""
    lines = []
    for line in path.read_text().splitlines(keepends=True):
        run = json.loads(line).get("run")
        if run is None or not lost(run):
            lines.append(line)
    return ahpatron.write("less.jsonl", "".join(lines))


@pytest.fixture(scope="module")
def ten(tmp_path_factory: pytest.TempPathFactory, rings: Path) -> Path:
    """Two settings of one learner, one of another, ten permutations; budget 40 is the best."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("ten"))
    learners = ("-l", "ahpatron", "-l", "rbp", "-g", "ahpatron.budget=20,40", "-p", "rbp.budget=20")
    limited = ("--limit", "200", "--sigma", "0.25", "--repeats", "10")
    assert ahpatron.sweep(rings, *learners, *limited).code == 0
    return ahpatron.folder / "r.jsonl"


@pytest.fixture
def less(ahpatron: Ahpatron, ten: Path) -> Path:
    """The same without the fourth permutation of the best setting."""
    return without(ahpatron, ten, lambda run: is_best(run) and run["repeat"] == 3)


def is_best(run: dict[str, Any]) -> bool:
    return bool(run["learner"] == "ahpatron" and run["params"]["budget"] == 40)


@pytest.mark.parametrize("lost", [False, True], ids=["all trials", "one lost"])
def test_a_lost_trial_does_not_make_another_setting_the_best(
    ahpatron: Ahpatron, ten: Path, less: Path, lost: bool
) -> None:
    document = ahpatron.json("report", less if lost else ten)["datasets"][0]
    (best,) = [one for one in document["best"] if one["best_of_data"]]
    assert is_best(best)


def test_missing_permutations_are_counted(ahpatron: Ahpatron, ten: Path, less: Path) -> None:
    whole = ahpatron.json("report", ten)["datasets"][0]["settings"]
    part = ahpatron.json("report", less)["datasets"][0]["settings"]
    assert [one["missing_permutations"] for one in whole] == [0, 0, 0]
    assert [one["missing_permutations"] for one in part] == [0, 1, 0]


def test_settings_are_compared_on_the_permutations_that_all_have(
    ahpatron: Ahpatron, less: Path
) -> None:
    best = ahpatron.json("report", less)["datasets"][0]["best"]
    assert [one["finished_permutations"] for one in best] == [9, 10]
    assert [one["repeats"] for one in best] == [9, 9]


@pytest.mark.parametrize("view", [(), ("--matrix",)], ids=["settings", "matrix"])
@pytest.mark.parametrize(
    ("format", "mark"),
    [("table", "†"), ("markdown", "†"), ("latex", r"$\dagger$")],
    ids=["table", "markdown", "latex"],
)
def test_a_setting_with_a_lost_trial_is_marked_with_a_footnote(
    ahpatron: Ahpatron, ten: Path, less: Path, format: str, mark: str, view: tuple[str, ...]
) -> None:
    shown = ahpatron.succeed("report", less, "--format", format, *view).out
    assert mark in shown
    assert "lacks permutations that others have" in shown
    assert mark not in ahpatron.succeed("report", ten, "--format", format, *view).out


def test_csv_counts_missing_permutations_of_a_setting(ahpatron: Ahpatron, less: Path) -> None:
    for row in rows_of(ahpatron.succeed("report", less, "--format", "csv").out):
        missing = 1 if row["best_of_data"] == "true" else 0
        assert row["missing_permutations"] == str(missing)


def test_csv_counts_missing_permutations_in_the_matrix(ahpatron: Ahpatron, less: Path) -> None:
    shown = ahpatron.succeed("report", less, "--matrix", "--format", "csv").out
    first, _ = rows_of(shown)
    assert first["rings missing permutations"] == "1"
    assert first["rings compared"] == "true"


def test_the_page_has_a_footnote_on_missing_permutations(ahpatron: Ahpatron, less: Path) -> None:
    ahpatron.succeed("report", less, "--html", "page.html", "-q")
    assert "† lacks permutations that others have" in ahpatron.read("page.html")


def test_lost_trials_are_told_with_quiet_too(ahpatron: Ahpatron, ten: Path) -> None:
    """JSON lines and CSV have no footnotes."""
    few = without(ahpatron, ten, lambda run: run["learner"] == "rbp" and run["repeat"] > 0)
    done = ahpatron.succeed("report", few, "-q", "--format", "csv")
    assert "1 of 3 settings without all permutations" in done.err
    assert "except 1 with too few" in done.err
    assert [row["compared"] for row in rows_of(done.out)] == ["true", "true", "false"]


def test_a_learner_without_permutations_to_report_on_is_told(ahpatron: Ahpatron, ten: Path) -> None:
    few = without(ahpatron, ten, lambda run: run["learner"] == "rbp" and run["repeat"] > 2)
    done = ahpatron.succeed("report", few, "--tune-repeats", "5", "-q")
    assert "rings: no other permutation is there of rbp." in done.out
    assert "left out, with only the 5 permutations to choose on: rbp" in done.err


# Shards and merging -------------------------------------------------------------------------------

SHARDED = [*SMALL, "--limit", "100"]


@pytest.fixture(scope="module")
def shards(tmp_path_factory: pytest.TempPathFactory, rings: Path) -> Ahpatron:
    """A folder with whole.jsonl, its two shards s1.jsonl and s2.jsonl, and all.jsonl of both."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("shards"))
    ahpatron.sweep(rings, *SHARDED, out="whole.jsonl")
    for part in (1, 2):
        done = ahpatron.sweep(rings, *SHARDED, "--shard", f"{part}/2", out=f"s{part}.jsonl")
        assert "Best on" not in done.out
    ahpatron.succeed("report", "s1.jsonl", "s2.jsonl", "s1.jsonl", "--merge", "all.jsonl")
    return ahpatron


def test_a_shard_alone_recommends_nothing(shards: Ahpatron) -> None:
    assert "Best on" in shards("report", "whole.jsonl").out
    assert "Best on" not in shards("report", "s1.jsonl").out


def test_shards_together_recommend_a_command(shards: Ahpatron) -> None:
    assert "Best on" in shards("report", "s1.jsonl", "s2.jsonl").out


def test_merged_shards_have_every_trial_once(shards: Ahpatron) -> None:
    assert shards.essence("all.jsonl") == shards.essence("whole.jsonl")


def test_merged_shards_are_reported_as_the_shards_are(shards: Ahpatron) -> None:
    together = shards("report", "s1.jsonl", "s2.jsonl").out
    assert shards("report", "all.jsonl").out == together


def test_merged_shards_leave_nothing_to_run(shards: Ahpatron, rings: Path) -> None:
    assert "8 of 8 trials" in shards.sweep(rings, *SHARDED, out="all.jsonl").err


def merged_with_changed_trial(ahpatron: Ahpatron, results: Path, **change: Any) -> int:
    """The exit code of merging results with the first of their trials, changed."""
    trial = next(iter(read_results(str(results)).trials.values()))
    assert trial.run is not None
    changed: Any = replace(trial.run, **change)
    ahpatron.write("other.jsonl", encode_trial(replace(trial, run=changed)))
    return ahpatron("report", results, "other.jsonl", "--merge", "all.jsonl").code


def test_a_trial_with_two_outcomes_is_not_merged(ahpatron: Ahpatron, results: Path) -> None:
    assert merged_with_changed_trial(ahpatron, results, updates=12345) == 65
    assert "all.jsonl" not in ahpatron.files()


def test_a_trial_with_two_times_is_merged(ahpatron: Ahpatron, results: Path) -> None:
    assert merged_with_changed_trial(ahpatron, results, seconds=9.0) == 0
    assert "all.jsonl" in ahpatron.files()


ZEROS = ("-B", "20", "--scale", "minmax", "--limit", "300")


def test_a_kernel_of_zeros_is_warned_about(ahpatron: Ahpatron, rings: Path) -> None:
    assert "arbitrary" in ahpatron.sweep(rings, *ZEROS, "--sigma", "0.00001").err


def test_a_kernel_of_zeros_beside_a_better_one_is_no_reason_to_warn(
    ahpatron: Ahpatron, rings: Path
) -> None:
    assert "arbitrary" not in ahpatron.sweep(rings, *ZEROS, "-g", "sigma=0.00001,0.1").err


def test_the_legend_of_several_data_sets_explains_plus_minus_once(
    ahpatron: Ahpatron, rings: Path
) -> None:
    ahpatron.write("other.svm", "".join(rings.read_text().splitlines(keepends=True)[-300:]))
    words = ("-l", "rbp", "-l", "perceptron", "-B", 20, "--limit", 200, "--repeats", 2)
    done = ahpatron.succeed("sweep", rings, "other.svm", *words, "--shuffle", "--out", "r.jsonl")
    assert done.out.lower().count("mean ± standard deviation") == 1
