"""`ahpatron run`: its JSON, its files, and the same numbers whichever way the rows take."""

import bz2
import gzip
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_svmlight_file

from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.core import KERNELS
from ahpatron_cli.data.libsvm import reader
from ahpatron_cli.output import pictures
from ahpatron_cli.records import Curve
from support.command import Ahpatron
from support.labels import NUMBERS, libsvm, table

DETERMINISTIC = [
    "learner",
    "params",
    "seed",
    "repeat",
    "rounds",
    "mistakes",
    "mistake_rate",
    "margin_updates",
    "updates",
    "halvings",
    "zeta",
    "support_size",
    "norm",
    "near_ties",
]
CLASS_COUNTS = [
    "true_positives",
    "false_positives",
    "true_negatives",
    "false_negatives",
    "baseline_mistakes",
]
SUMMARY = [
    "learner",
    "params",
    "repeats",
    "mistake_rate_mean",
    "mistake_rate_sd",
    "margin_updates_mean",
    "support_size_mean",
    "seconds_mean",
]


def runs(document: dict[str, Any]) -> list[dict[str, Any]]:
    """The runs without their timings."""
    return [
        {name: run[name] for name in [*DETERMINISTIC, *CLASS_COUNTS]} for run in document["runs"]
    ]


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory, rings: Path) -> dict[str, Any]:
    """What `run --json` prints of ahpatron on the sample data."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("document"))
    done = ahpatron("run", rings, "--budget", 100, "--sigma", 0.3, "--json", "-l", "ahpatron")
    assert (done.code, done.err) == (0, "")
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_json_has_the_fields_of_the_contract_in_their_order(document: dict[str, Any]) -> None:
    assert list(document) == ["schema", "version", "data", "runs", "summary", "load_seconds"]
    data = ["path", "rounds", "features", "labels", "sha256", "label_names"]
    assert list(document["data"]) == data
    others = ["seconds", *CLASS_COUNTS, "unlabelled", "ended_by", "this_file", "restarts"]
    assert list(document["runs"][0]) == [*DETERMINISTIC, *others]
    assert list(document["summary"][0]) == SUMMARY


def test_a_single_run_has_no_standard_deviation(document: dict[str, Any]) -> None:
    assert document["summary"][0]["mistake_rate_sd"] is None


def test_json_has_all_parameters_also_those_that_were_not_given(document: dict[str, Any]) -> None:
    assert document["runs"][0]["params"] == {
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


def test_an_infinite_parameter_is_text_in_json(ahpatron: Ahpatron, rings: Path) -> None:
    assert ahpatron.run(rings, "-l", "avp", "--limit", 50)["params"]["radius"] == "inf"


def test_a_stream_and_memory_give_the_same_numbers(ahpatron: Ahpatron, rings: Path) -> None:
    """--no-shuffle with several repeats takes the way through memory."""
    command = ["run", rings, "-l", "all", "-B", 40, "--sigma", 0.3, "--limit", 400]
    stream = ahpatron.json(*command)
    memory = ahpatron.json(*command, "--no-shuffle", "--repeats", 2)
    memory["runs"] = [run for run in memory["runs"] if run["repeat"] == 0]
    assert runs(stream) == runs(memory)
    assert stream["data"] == memory["data"]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_compressed_and_piped_data_are_the_same_stream(
    ahpatron: Ahpatron, rings: Path, pack: Callable[[bytes], bytes]
) -> None:
    packed = pack(rings.read_bytes())
    odd_name = ahpatron.write("data.txt", packed)
    from_file = ahpatron.json("run", odd_name, "-B", 40)
    piped = ahpatron.json("run", "-", "-B", 40, stdin=packed)
    assert runs(ahpatron.json("run", rings, "-B", 40)) == runs(from_file) == runs(piped)
    assert piped["data"]["path"] == "<stdin>"
    assert piped["data"]["sha256"] == from_file["data"]["sha256"]


def test_repeats_are_seeded_paired_and_independent_of_jobs(ahpatron: Ahpatron, rings: Path) -> None:
    command = ["run", rings, "-l", "ahpatron", "-l", "perceptron", "-B", 40, "--sigma", 0.3]
    command += ["--repeats", 3, "--limit", 600]
    once = ahpatron.json(*command, "--seed", 7)
    again = json.loads(ahpatron.process(*command, "--json", "--seed", 7, "--jobs", 2).out)
    other = ahpatron.json(*command, "--seed", 8)
    assert runs(once) == runs(again) != runs(other)
    assert [(run["learner"], run["repeat"]) for run in once["runs"]] == [
        (learner, repeat) for learner in ("ahpatron", "perceptron") for repeat in range(3)
    ]
    assert len({run["mistakes"] for run in once["runs"][:3]}) > 1
    rates = [run["mistake_rate"] for run in once["runs"][:3]]
    seconds = [run["seconds"] for run in once["runs"][:3]]
    found = [once["summary"][0][name] for name in SUMMARY[3:5] + SUMMARY[-1:]]
    assert found == pytest.approx([np.mean(rates), np.std(rates, ddof=1), np.mean(seconds)])


def test_each_repeat_has_random_numbers_of_its_own(ahpatron: Ahpatron, rings: Path) -> None:
    """The rows come in the same order, so that only the generator differs."""
    options = ("-l", "rbp", "-B", 10, "--sigma", 0.1, "--repeats", 4, "--no-shuffle")
    found = ahpatron.json("run", rings, *options, "--limit", 600)["runs"]
    assert len({run["mistakes"] for run in found}) > 1


def test_several_files_give_one_document_also_before_a_faulty_one(
    ahpatron: Ahpatron, rings: Path, breast_cancer: Path
) -> None:
    ahpatron.write("faulty.svm", "1 1:1\n-1 1:x\n")
    files = [rings, breast_cancer, "faulty.svm"]
    outputs = ["--predictions", "p.csv", "--curve", "c.csv", "--out", "r.json"]
    done = ahpatron("run", *files, "-B", 40, "--json", *outputs)
    assert done.code == 65
    assert "faulty.svm:2" in done.err
    names = [Path(one["data"]["path"]).name for one in json.loads(done.out)]
    assert names == ["rings.svm", "breast_cancer.svm"]
    assert ahpatron.files() == {"faulty.svm"}  # of the output files all, or none


@dataclass(frozen=True)
class Files:
    """Records of a run of two learners with --predictions and --curve, and the rows of both files.

    `shuffled` says whether the rows of the data were shuffled.
    """

    shuffled: bool
    records: list[dict[str, Any]]
    predictions: dict[str, list[dict[str, str]]]
    curve: dict[str, list[dict[str, str]]]


def by_learner(rows: list[dict[str, str]]) -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = {}
    for row in rows:
        found.setdefault(row["learner"], []).append(row)
    return found


@pytest.fixture(scope="module", params=[False, True], ids=["in order", "shuffled"])
def files(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, rings: Path
) -> Files:
    ahpatron = Ahpatron(tmp_path_factory.mktemp("files"))
    learners = ["-l", "ahpatron", "-l", "avp", "-B", "40", "--sigma", "0.3"]
    outputs = ["--predictions", "p.csv", "--curve", "c.csv"]
    way = ["--shuffle"] if request.param else []
    records = ahpatron.json("run", rings, *learners, *way, *outputs)["runs"]
    predictions = by_learner(ahpatron.table("p.csv"))
    return Files(request.param, records, predictions, by_learner(ahpatron.table("c.csv")))


def test_predictions_have_a_row_for_each_round_with_its_line_of_the_data(files: Files) -> None:
    for run in files.records:
        mine = files.predictions[run["learner"]]
        numbers = list(range(1, run["rounds"] + 1))
        assert [int(each["round"]) for each in mine] == numbers
        lines = [int(each["line"]) for each in mine]
        assert sorted(lines) == numbers
        assert (lines == numbers) == (not files.shuffled)


def test_a_prediction_is_the_sign_of_the_score_and_a_mistake_another_label(files: Files) -> None:
    for rows in files.predictions.values():
        for each in rows:
            assert each["prediction"] == ("1" if float(each["score"]) >= 0 else "-1")
            assert each["mistake"] == str(int(each["prediction"] != each["label"]))


def test_counts_of_a_record_are_those_of_its_predictions(files: Files) -> None:
    for run in files.records:
        mine = files.predictions[run["learner"]]
        pairs = [(each["prediction"], each["label"]) for each in mine]
        counts = [pairs.count(pair) for pair in (("1", "1"), ("1", "-1"), ("-1", "-1"))]
        assert [run[name] for name in CLASS_COUNTS[:3]] == counts
        assert run["false_positives"] + run["false_negatives"] == run["mistakes"]


def test_a_curve_ends_with_the_mistakes_of_the_run(files: Files) -> None:
    for run in files.records:
        last = files.curve[run["learner"]][-1]
        assert (int(last["round"]), float(last["mistakes"])) == (run["rounds"], run["mistakes"])


def test_the_baseline_of_a_curve_is_the_mean_over_permutations(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: list[Curve] = []
    monkeypatch.setattr(pictures, "write_curve", lambda path, curves: drawn.extend(curves))
    words = ("-B", 20, "--limit", 100, "--repeats", 3, "--curve", "c.csv")
    runs = ahpatron.json("run", rings, *words)["runs"]
    assert len({run["baseline_mistakes"] for run in runs}) > 1
    assert drawn[0].baseline == sum(run["baseline_mistakes"] for run in runs) / 300


def test_a_long_curve_is_thinned_evenly(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.svm", "".join(f"{(-1) ** n} 1:{n % 7}\n" for n in range(9001)))
    for suffix in ("csv", "png"):
        ahpatron.succeed("run", "d.svm", "-B", 4, "--curve", f"c.{suffix}")
    assert (ahpatron.folder / "c.png").read_bytes().startswith(b"\x89PNG")
    rounds = [int(row["round"]) for row in ahpatron.table("c.csv")]
    assert rounds[-1] == 9001  # the end is there
    assert 1000 <= len(rounds) <= 2001
    assert {after - before for before, after in pairwise(rounds[:-1])} == {8}


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_what_lies_beyond_the_limit_is_not_looked_at(ahpatron: Ahpatron, way: list[str]) -> None:
    path = ahpatron.write("data.svm", "# first\n1 1:1\n\n2 1:2\n1 1:3\n3 50:1\nword\n")
    head = ahpatron.write("head.svm", "1 1:1\n2 1:2\n1 1:3\n")
    limited = ahpatron.json("run", path, "--limit", 3, *way)
    data = limited["data"]
    assert (data["rounds"], data["features"], data["labels"]) == (3, 1, [1, 2])
    assert runs(limited) == runs(ahpatron.json("run", head, *way))


def test_a_fault_in_a_worker_is_told_like_any_other(ahpatron: Ahpatron, rings: Path) -> None:
    path = ahpatron.write("data.svm", rings.read_text() + "1 1:1e200 2:1\n")
    done = ahpatron.process("run", path, "-B", 40, "--repeats", 2, "--jobs", 2)
    assert (done.code, done.out) == (65, "")
    assert "data.svm:2001" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_kernel_runs(ahpatron: Ahpatron, breast_cancer: Path, kernel: str) -> None:
    run = ahpatron.run(breast_cancer, "--kernel", kernel, "-B", 40)
    assert run["params"]["kernel"] == kernel
    assert run["mistake_rate"] < 0.35


@pytest.mark.parametrize("way", [[], ["--shuffle"]])
def test_a_learner_that_cannot_run_is_left_out(
    ahpatron: Ahpatron, rings: Path, way: list[str]
) -> None:
    options = ["-p", "bogd.shrinkage=1000", "-p", "bogd.step=1", "--limit", 100, "--json", *way]
    done = ahpatron.succeed("run", rings, "-l", "rbp", "-l", "bogd", *options)
    assert [run["learner"] for run in json.loads(done.out)["runs"]] == ["rbp"]
    assert "bogd" in done.err


def test_default_steps_follow_from_the_length_of_a_file(ahpatron: Ahpatron, rings: Path) -> None:
    def step(*arguments: object, stdin: bytes = b"") -> Any:
        return ahpatron.run(*arguments, "-l", "bogd", stdin=stdin)["params"]["step"]

    assert step(rings) == step(rings, "--shuffle") == 10 / 2000**0.5
    assert step(rings, "--limit", 100) == 1.0
    assert step("-", stdin=rings.read_bytes()) == 0.1
    assert step("-", "-p", "horizon=400", stdin=rings.read_bytes()) == 0.5


@pytest.mark.parametrize(("rows", "warned"), [(11, False), (12, True)])
def test_more_than_ten_near_ties_are_warned_about_once(
    ahpatron: Ahpatron, rows: int, warned: bool
) -> None:
    """Rows so far apart that f(x) = 0 in every round but the first, which does not count."""
    ahpatron.write("d.svm", "".join(f"{(-1) ** n} 1:{1000 * n}\n" for n in range(1, rows + 1)))
    done = ahpatron.succeed("run", "d.svm", "-l", "ahpatron", "-l", "avp", "--json")
    assert json.loads(done.out)["runs"][0]["near_ties"] == rows - 1
    assert done.err.count("|f(x)|") == warned


@pytest.mark.parametrize("way", [(), ("--shuffle",), ("--repeats", 2)])
def test_a_learner_worse_than_the_baseline_is_marked(
    ahpatron: Ahpatron, rings: Path, way: tuple[object, ...]
) -> None:
    rounds = 700  # 2.9 % positives, which the features do not explain
    rows = (f"{1 if i % 35 == 34 else -1} 1:{i * 37 % 101} 2:{i * 53 % 89}" for i in range(rounds))
    ahpatron.write("rare.svm", "\n".join(rows) + "\n")
    words = ("run", "rare.svm", "-l", "perceptron", *way)
    for run in ahpatron.json(*words)["runs"]:
        assert run["true_positives"] + run["false_negatives"] == rounds // 35
        assert 20 <= run["baseline_mistakes"] <= 24
    marks = [line for line in ahpatron(*words).out.splitlines() if line.startswith("perceptron")]
    assert "!" in marks[0]
    assert "!" not in ahpatron("run", rings, "--sigma", 0.3).out


AGREEING = {
    name: "".join(f"{(-1) ** (i * i % 7 // 3)} {row(i)}\n" for i in range(900))
    for name, row in {
        "grows wider": lambda i: f"{1 + i % 40}:{i % 3} {41 + i % (1 + i // 20)}:{i % 5}",
        "dense at first": lambda i: f"1:{i % 3} 2:{i % 5}{f' {100 + i}:1' if i > 99 else ''}",
        "sparse at first": lambda i: f"1:{i % 3}{' 200:1' if i < 99 else f' 2:{i % 5} 3:1'}",
    }.items()
}


@pytest.mark.parametrize(
    ("name", "scale"),
    [
        *(("grows wider", scale) for scale in ("none", "unit", "minmax")),
        ("dense at first", "none"),
        ("sparse at first", "none"),
        ("sparse at first", "minmax"),
    ],
)
def test_stream_memory_sweep_and_estimator_agree(ahpatron: Ahpatron, name: str, scale: str) -> None:
    """The same bits of every prediction and the same records, whichever way the rows take."""
    path = ahpatron.write("data.svm", AGREEING[name])
    common = ["-l", "ahpatron", "-B", 40, "--scale", scale, "--sigma", 2]
    ways = {"stream": [], "memory": ["--no-shuffle", "--repeats", 2]}
    records = []
    predictions = []
    for way, options in ways.items():
        words = ("run", path, *common, "--epsilon", 0.7, *options, "--predictions", f"{way}.csv")
        records.append(runs(ahpatron.json(*words))[0])
        predictions.append(ahpatron.read(f"{way}.csv").splitlines()[:901])
    assert records[0] == records[1]
    assert predictions[0] == predictions[1]
    ahpatron.sweep(path, *common, "--no-shuffle", "-g", "epsilon=0.7")
    assert runs({"runs": [trial["run"] for trial in ahpatron.trials()]}) == records[:1]
    if scale == "none":
        X, y = load_svmlight_file(str(path), zero_based=True)  # columns numbered as in the file
        own = {"budget": 40, "epsilon": 0.7, "sigma": 2.0, "random_state": 0}
        model = OnlineKernelClassifier("ahpatron", **own).fit(X, y)
        scores = [row.split(",")[6] for row in predictions[0][1:]]
        assert [repr(score) for score in model.online_scores_.tolist()] == scores


def test_a_file_that_changes_before_its_pass_is_refused(
    ahpatron: Ahpatron, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels 1 and 2 and the number of rounds are found by a scan; then the file is run."""
    more = "#" * 200_000  # so that the file is not read in one go
    path = ahpatron.write("data.svm", f"1 1:1 {more}\n2 1:2 {more}\n" * 50)
    looked = reader.scan
    scans = []

    def scan(*arguments: Any) -> Any:
        scans.append(arguments)
        found = looked(*arguments)
        path.write_text(f"2 1:1 {more}\n1 1:2 {more}\n" * 50)  # of the same size
        return found

    monkeypatch.setattr(reader, "scan", scan)
    err = ahpatron.refusal(65, "run", path, "-l", "pomdr")
    assert "the file changed" in err
    assert len(scans) == 1  # for labels and rounds together


@pytest.mark.parametrize("kind", NUMBERS)
def test_names_of_labels_do_not_change_the_counts(ahpatron: Ahpatron, kind: str) -> None:
    """As LIBSVM text, in a table and in a pipe; the rows differ in their labels only."""
    labels = NUMBERS[kind]
    names = ",".join(labels)
    ahpatron.write("d.svm", libsvm(labels))
    ahpatron.write("t.csv", table(labels))
    ahpatron.write("plain.svm", libsvm(tuple(map(str, range(len(labels))))))
    expected = ahpatron.run("plain.svm", "-l", "metron")["mistakes"]
    of_table = ("--label", "y", "--id", "name")
    for path, words in (("d.svm", ()), ("t.csv", of_table), ("-", of_table)):
        text = ahpatron.read("t.csv").encode()
        found = ahpatron.json("run", path, "-l", "metron", "--classes", names, *words, stdin=text)
        assert found["runs"][0]["mistakes"] == expected
