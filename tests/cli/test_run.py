"""`ahpatron run` as a person or a script calls it: real processes, real files."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.core import Ahpatron as AhpatronLearner
from ahpatron_cli.core import Gaussian, play
from ahpatron_cli.data import dataset
from support.command import Ahpatron

DETERMINISTIC = [
    *("learner", "params", "seed", "repeat", "rounds", "mistakes", "mistake_rate"),
    *("margin_updates", "updates", "halvings", "zeta", "support_size", "norm", "near_ties"),
]
CLASS_COUNTS = [
    *("true_positives", "false_positives", "true_negatives", "false_negatives"),
    "baseline_mistakes",
]
SUMMARY = [
    *("learner", "params", "repeats", "mistake_rate_mean", "mistake_rate_sd"),
    *("margin_updates_mean", "support_size_mean", "seconds_mean"),
]


def runs(document: dict) -> list[dict]:
    """The runs without their timings."""
    names = [*DETERMINISTIC, *CLASS_COUNTS]
    return [{name: run[name] for name in names} for run in document["runs"]]


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_json_follows_the_contract(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron("run", rings, "--budget", 100, "--sigma", 0.3, "--format", "json")
    assert (done.code, done.err) == (0, "")
    document = json.loads(done.out)
    assert list(document) == ["schema", "version", "data", "runs", "summary", "load_seconds"]
    assert list(document["data"]) == ["path", "rounds", "features", "labels", "sha256"]
    others = ["seconds", *CLASS_COUNTS, "unlabelled", "ended_by", "this_file", "restarts"]
    assert list(document["runs"][0]) == [*DETERMINISTIC, *others]
    assert list(document["summary"][0]) == SUMMARY
    assert document["data"]["labels"] == [-1, 1]
    assert document["summary"][0]["mistake_rate_sd"] is None
    run = document["runs"][0]
    assert run["params"] == {
        "kernel": "gaussian",
        "sigma": 0.3,
        "budget": 100,
        "epsilon": 0.5,
        "radius": 5.0,
        "step": 0.25,
        "schedule": "constant",
        "ridge": 0.0005,
        "selection": "magnitude",
        "rescale": "keep",
        "multiclass": "rest",
    }


def test_the_command_counts_what_the_core_counts(ahpatron: Ahpatron, rings: Path) -> None:
    data = np.array(
        [
            line.replace("1:", "").replace("2:", "").split()
            for line in rings.read_text().splitlines()
        ],
        dtype=float,
    )
    player = play(AhpatronLearner(budget=50), data[:, 1:], data[:, 0], Gaussian(sigma=0.3))
    run = ahpatron.json("run", rings, "-B", 50, "--sigma", 0.3)["runs"][0]
    assert run["mistakes"] == player.tally.mistakes > 0
    assert run["margin_updates"] == player.tally.margin_updates > 0
    assert run["halvings"] == player.learner.statistics()["halvings"] > 0


def test_a_stream_and_memory_give_the_same_numbers(ahpatron: Ahpatron, rings: Path) -> None:
    """--no-shuffle with a scale that changes nothing takes the way through memory."""
    arguments = ["run", rings, "-l", "all", "-B", 40, "--sigma", 0.3, "--format", "json"]
    stream = json.loads(ahpatron(*arguments).out)
    memory = json.loads(ahpatron(*arguments, "--no-shuffle", "--repeats", 2).out)
    memory["runs"] = [run for run in memory["runs"] if run["repeat"] == 0]
    assert runs(stream) == runs(memory)
    assert stream["data"] == memory["data"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed_and_piped_data_are_the_same_stream(
    ahpatron: Ahpatron, rings: Path, pack: object
) -> None:
    plain = ahpatron.json("run", rings, "-B", 40)
    packed = pack(rings.read_bytes())  # type: ignore[operator]
    odd_name = ahpatron.write("data.txt", packed)
    from_file = ahpatron.json("run", odd_name, "-B", 40)
    piped = ahpatron.json("run", "-", "-B", 40, stdin=packed)
    assert runs(plain) == runs(from_file) == runs(piped)
    assert piped["data"]["path"] == "<stdin>"
    assert piped["data"]["sha256"] == from_file["data"]["sha256"]


def test_repeats_are_seeded_paired_and_independent_of_jobs(ahpatron: Ahpatron, rings: Path) -> None:
    arguments = ["run", rings, "-l", "ahpatron", "-l", "perceptron", "-B", 40, "--sigma", 0.3]
    arguments += ["--repeats", 3, "--format", "json"]
    once = json.loads(ahpatron(*arguments, "--seed", 7).out)
    again = json.loads(ahpatron.process(*arguments, "--seed", 7, "--jobs", 2).out)
    other = json.loads(ahpatron(*arguments, "--seed", 8).out)
    assert runs(once) == runs(again) != runs(other)
    assert [(run["learner"], run["repeat"]) for run in once["runs"]] == [
        (learner, repeat) for learner in ("ahpatron", "perceptron") for repeat in range(3)
    ]
    assert len({run["mistakes"] for run in once["runs"][:3]}) > 1
    rates = [run["mistake_rate"] for run in once["runs"][:3]]
    assert once["summary"][0]["mistake_rate_mean"] == pytest.approx(np.mean(rates))
    assert once["summary"][0]["mistake_rate_sd"] == pytest.approx(np.std(rates, ddof=1))


@pytest.mark.parametrize("threads", ["1", "8"])
def test_a_users_blas_threads_change_nothing(ahpatron: Ahpatron, rings: Path, threads: str) -> None:
    assert runs(
        ahpatron.json("run", rings, "-B", 40, OPENBLAS_NUM_THREADS=threads, PYTHONHASHSEED="5")
    ) == runs(ahpatron.json("run", rings, "-B", 40))


def test_several_files_give_one_document(
    ahpatron: Ahpatron, rings: Path, breast_cancer: Path
) -> None:
    documents = ahpatron.json("run", rings, breast_cancer, "-B", 40)
    assert [Path(each["data"]["path"]).name for each in documents] == [
        "rings.svm",
        "breast_cancer.svm",
    ]
    table = ahpatron("run", rings, breast_cancer, "-B", 40).out
    assert "rings.svm" in table
    assert "breast_cancer.svm" in table


def test_predictions_and_curve_agree_with_the_counts(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron(
        *["run", rings, "-l", "ahpatron", "-l", "avp", "-B", 40, "--sigma", 0.3, "--shuffle"],
        *["--predictions", "p.csv", "--curve", "c.csv", "--format", "json"],
    )
    document = json.loads(done.out)
    rounds = table(ahpatron.folder / "p.csv")
    curve = table(ahpatron.folder / "c.csv")
    for run in document["runs"]:
        mine = [each for each in rounds if each["learner"] == run["learner"]]
        assert [int(each["round"]) for each in mine] == list(range(1, run["rounds"] + 1))
        assert sorted(int(each["line"]) for each in mine) == list(range(1, run["rounds"] + 1))
        assert sum(int(each["mistake"]) for each in mine) == run["mistakes"]
        for each in mine:
            assert each["prediction"] == ("1" if float(each["score"]) >= 0 else "-1")
            assert each["mistake"] == str(int(each["prediction"] != each["label"]))
        last = [each for each in curve if each["learner"] == run["learner"]][-1]
        assert (int(last["round"]), float(last["mistakes"])) == (run["rounds"], run["mistakes"])


def test_predictions_of_a_stream_are_those_of_memory(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron("run", rings, "-B", 40, "--predictions", "stream.csv")
    ahpatron("run", rings, "-B", 40, "--predictions", "memory.csv", "--no-shuffle", "--repeats", 2)
    stream = (ahpatron.folder / "stream.csv").read_text()
    memory = (ahpatron.folder / "memory.csv").read_text()
    assert memory.startswith(stream)


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_curve_pictures(ahpatron: Ahpatron, rings: Path, suffix: str) -> None:
    ahpatron.succeed("run", rings, "-l", "all", "-B", 40, "--curve", f"c.{suffix}", "-q")
    start = {"png": b"\x89PNG", "svg": b"<?xml"}[suffix]
    assert (ahpatron.folder / f"c.{suffix}").read_bytes().startswith(start)


def test_out_writes_a_second_format(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron("run", rings, "-B", 40, "--out", "r.json", "--format", "csv")
    assert done.out.startswith("data,learner,")
    assert json.loads((ahpatron.folder / "r.json").read_text())["schema"] == 1


def test_every_format_is_written(ahpatron: Ahpatron, rings: Path) -> None:
    starts = {
        "json": "{",
        "jsonl": '{"data"',
        "csv": "data,",
        "markdown": "",
        "latex": "",
        "table": str(rings),
    }
    for format_, start in starts.items():
        done = ahpatron.succeed("run", rings, "-B", 40, "--format", format_)
        assert done.out.startswith(start)
        assert "ahpatron" in done.out


def test_csv_has_a_line_per_run(ahpatron: Ahpatron, rings: Path) -> None:
    learners = ["-l", "ahpatron", "-l", "avp", "-l", "perceptron"]
    done = ahpatron("run", rings, *learners, "--repeats", 2, "-B", 40, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 6
    assert {row["param_budget"] for row in rows} == {"40", ""}


def test_limit_takes_the_first_rows(ahpatron: Ahpatron, rings: Path) -> None:
    head = ahpatron.write("head.svm", "".join(rings.read_text().splitlines(True)[:100]))
    limited = ahpatron.json("run", rings, "-B", 40, "--limit", 100)
    short = ahpatron.json("run", head, "-B", 40)
    assert runs(limited) == runs(short)
    assert limited["data"]["rounds"] == 100
    assert limited["data"]["sha256"] != short["data"]["sha256"]  # of the whole file


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_what_lies_beyond_the_limit_is_not_looked_at(ahpatron: Ahpatron, way: list[str]) -> None:
    text = "# first\n1 1:1\n\n2 1:2\n1 1:3\n3 50:1\nword\n"
    path = ahpatron.write("data.svm", text)
    found = ahpatron.json("run", path, "--limit", 3, *way)["data"]
    assert (found["rounds"], found["features"], found["labels"]) == (3, 1, [1, 2])


def test_jobs_with_a_single_pass(ahpatron: Ahpatron, rings: Path) -> None:
    one = ahpatron("run", rings, "-B", 40, "--format", "json")
    two = ahpatron.process("run", rings, "-B", 40, "--format", "json", "--jobs", 2)
    assert runs(json.loads(one.out)) == runs(json.loads(two.out))


def test_a_fault_in_a_worker_is_told_like_any_other(ahpatron: Ahpatron, rings: Path) -> None:
    path = ahpatron.write("data.svm", rings.read_text() + "1 1:1e200 2:1\n")
    one = ahpatron("run", path, "-B", 40, "--repeats", 2)
    two = ahpatron.process("run", path, "-B", 40, "--repeats", 2, "--jobs", 2)
    assert one.code == two.code == 65
    assert "data.svm:2001" in two.err
    assert "overflows" in two.err


def test_scales(ahpatron: Ahpatron) -> None:
    """Features of wildly different size: σ = 1 sees nothing until they are scaled."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2)) * [1000.0, 0.001] + [5000.0, 0.0]
    y = np.where((X[:, 0] > 5000) == (X[:, 1] > 0), 1, -1)
    lines = [f"{label} 1:{a!r} 2:{b!r}\n" for label, (a, b) in zip(y, X.tolist(), strict=True)]
    path = ahpatron.write("wild.svm", "".join(lines))

    def rate(scale: str) -> float:
        return ahpatron.json("run", path, "--scale", scale, "--sigma", 0.5)["runs"][0][
            "mistake_rate"
        ]

    assert rate("standard") < 0.25 < rate("none")
    assert rate("minmax") != rate("none")


def test_sparse_data_with_labels_0_and_1(ahpatron: Ahpatron, sparse_text: Path) -> None:
    done = ahpatron("run", sparse_text, "-B", 40, "--sigma", 2, "--format", "json")
    assert json.loads(done.out)["data"]["labels"] == [0, 1]
    assert done.err == "note: label 0 counts as -1, label 1 as +1\n"
    assert ahpatron("run", sparse_text, "-B", 40, "-q", "--format", "json").err == ""


def test_verbose_says_more(ahpatron: Ahpatron, rings: Path) -> None:
    assert "sha256" in ahpatron("run", rings, "-B", 40, "-v").err


def test_infinite_radius_is_json(ahpatron: Ahpatron, rings: Path) -> None:
    assert ahpatron.json("run", rings, "-l", "avp")["runs"][0]["params"]["radius"] == "inf"


@pytest.mark.parametrize("kernel", ["gaussian", "laplacian", "polynomial", "linear"])
def test_every_kernel_runs(ahpatron: Ahpatron, breast_cancer: Path, kernel: str) -> None:
    assert (
        ahpatron.json("run", breast_cancer, "--kernel", kernel, "-B", 40)["runs"][0]["mistake_rate"]
        < 0.35
    )


def test_a_learner_that_cannot_play_is_left_out_and_said(ahpatron: Ahpatron, rings: Path) -> None:
    options = ["-p", "bogd.shrinkage=1000", "-p", "bogd.step=1", "--format", "json"]
    for way in ([], ["--shuffle"]):
        done = ahpatron.succeed("run", rings, "-l", "rbp", "-l", "bogd", *options, *way)
        assert [run["learner"] for run in json.loads(done.out)["runs"]] == ["rbp"]
        assert "left out: bogd" in done.err
        err = ahpatron.refusal(2, "run", rings, "-l", "bogd", *options, *way)
        assert "shrinkage must be a number below 1/step" in err


def test_default_steps_know_the_length_of_a_file_but_not_of_a_pipe(
    ahpatron: Ahpatron, rings: Path
) -> None:
    def step(*arguments: object, stdin: bytes | None = None) -> float:
        return ahpatron.json("run", *arguments, "-l", "bogd", stdin=stdin)["runs"][0]["params"][
            "step"
        ]

    assert step(rings) == step(rings, "--shuffle") == 10 / 2000**0.5
    assert step(rings, "--limit", 100) == 1.0
    assert step("-", stdin=rings.read_bytes()) == 0.1
    assert step("-", "-p", "horizon=400", stdin=rings.read_bytes()) == 0.5


def test_what_is_done_before_a_faulty_file_is_shown(
    ahpatron: Ahpatron, rings: Path, breast_cancer: Path
) -> None:
    ahpatron.write("faulty.svm", "1 1:1\n-1 1:x\n")
    files = [rings, breast_cancer, "faulty.svm"]
    outputs = ["--predictions", "p.csv", "--curve", "c.csv", "--out", "r.json"]
    done = ahpatron("run", *files, "-B", 40, "--format", "json", *outputs)
    assert done.code == 65
    assert "faulty.svm:2" in done.err
    names = [Path(one["data"]["path"]).name for one in json.loads(done.out)]
    assert names == ["rings.svm", "breast_cancer.svm"]
    assert ahpatron.files() == {"faulty.svm"}  # of the output files all, or none
    first = ahpatron("run", "faulty.svm", rings)
    assert (first.code, first.out) == (65, "")


def test_predictions_are_written_as_csv_only(ahpatron: Ahpatron, rings: Path) -> None:
    for name in ("p.parquet", "p.json"):
        err = ahpatron.refusal(2, "run", rings, "--predictions", name)
        assert err.rstrip().endswith("use one of .csv")


def test_scores_next_to_0_are_warned_about_once(ahpatron: Ahpatron) -> None:
    lines = "".join(f"{(-1) ** i} 1:{i * 1000}\n" for i in range(100))
    path = ahpatron.write("data.svm", lines)
    done = ahpatron.succeed("run", path, "-l", "all", "--sigma", "0.001")
    warnings = [line for line in done.err.splitlines() if "|f(x)| < 1e-9" in line]
    assert len(warnings) == 1
    assert "ahpatron, ahpatron+, " in warnings[0]
    assert "these predictions are essentially arbitrary" in warnings[0]
    assert "`--sigma auto --scale minmax`" in warnings[0]
    assert "`ahpatron inspect FILE`" in warnings[0]
    helped = ahpatron("run", path, "-l", "all", "--sigma", "auto", "--scale", "minmax")
    assert "1e-9" not in helped.err


AGREEING = {
    "grows wider": "".join(
        f"{(-1) ** (i * i % 7 // 3)} {1 + i % 40}:{i % 3} {41 + i % (1 + i // 20)}:{i % 5}\n"
        for i in range(900)
    ),
    "dense at first": "".join(
        f"{(-1) ** (i * i % 7 // 3)} 1:{i % 3} 2:{i % 5}{f' {100 + i}:1' if i > 99 else ''}\n"
        for i in range(900)
    ),
    "sparse at first": "".join(
        f"{(-1) ** (i * i % 7 // 3)} 1:{i % 3}{' 200:1' if i < 99 else f' 2:{i % 5} 3:1'}\n"
        for i in range(900)
    ),
}


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        *(("grows wider", scale) for scale in ("none", "unit", "minmax")),
        *(("dense at first", "none"), ("dense at first", "unit")),
        *(("sparse at first", "none"), ("sparse at first", "minmax")),
    ],
)
def test_stream_memory_sweep_and_estimator_agree(ahpatron: Ahpatron, name: str, scale: str) -> None:
    """The same bits of every prediction and the same records, whichever way the rows take."""
    path = ahpatron.write("data.svm", AGREEING[name])
    common = ["-l", "ahpatron", "-B", 40, "--scale", scale, "--format", "json"]
    common += ["--sigma", 2, "-p", "epsilon=0.7"]
    ways = {
        "stream": [],
        "memory": ["--no-shuffle", "--repeats", 2],
        "processes": ["--no-shuffle", "--repeats", 2, "--jobs", 2],
    }
    if (name, scale) != ("grows wider", "none"):
        del ways["processes"]
    records, predictions = [], []
    for way, options in ways.items():
        call = ahpatron.process if "--jobs" in options else ahpatron
        done = call("run", path, *common, *options, "--predictions", f"{way}.csv")
        assert done.code == 0, done.err
        records.append(runs(json.loads(done.out))[0])
        lines = (ahpatron.folder / f"{way}.csv").read_text().splitlines()
        predictions.append(lines[:901])
    assert all(record == records[0] for record in records)
    assert all(lines == predictions[0] for lines in predictions)
    common.remove("-p"), common.remove("epsilon=0.7")
    ahpatron.succeed(
        *("sweep", path, *common, "--no-shuffle", "-g", "epsilon=0.7", "--out", "s.jsonl")
    )
    trial = json.loads((ahpatron.folder / "s.jsonl").read_text().splitlines()[1])["run"]
    assert {key: trial[key] for key in [*DETERMINISTIC, *CLASS_COUNTS]} == records[0]
    if scale == "none":
        X, y = load_svmlight_file(str(path), zero_based=True)  # columns numbered as in the file
        model = OnlineKernelClassifier(budget=40, epsilon=0.7, sigma=2.0, random_state=0).fit(X, y)
        scores = [row.split(",")[6] for row in predictions[0][1:]]
        assert [repr(score) for score in model.online_scores_.tolist()] == scores


@pytest.mark.parametrize("learner", ["pomdr", "ahpatron"])
def test_a_file_that_changes_before_its_pass_is_refused(
    ahpatron: Ahpatron, monkeypatch: pytest.MonkeyPatch, learner: str
) -> None:
    """Labels 1 and 2, or the number of rounds, are found by a scan; then the file is run."""
    more = "#" * 200_000  # so that the file is not read in one go
    path = ahpatron.write("data.svm", f"1 1:1 {more}\n2 1:2 {more}\n" * 50)
    looked = dataset.scan
    scans = []

    def scan(*arguments: Any) -> Any:
        scans.append(arguments)
        found = looked(*arguments)
        path.write_text(f"2 1:1 {more}\n1 1:2 {more}\n" * 50)  # of the same size
        return found

    monkeypatch.setattr(dataset, "scan", scan)
    err = ahpatron.refusal(65, "run", path, "-l", learner)
    assert "the file changed between two readings" in err
    assert len(scans) == 1  # for labels and rounds together
