"""`ahpatron inspect`: what data are like, every faulty line; and the list of learners."""

import gzip
import json
import random
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.core import KERNELS, REGISTRY
from support.command import REPOSITORY, Ahpatron
from support.terminal import in_terminal, lines_of

ASCII = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "LANG": "C"}


def inspected(ahpatron: Ahpatron, *arguments: object, **options: Any) -> Any:
    """The document of a call that goes well; numbers that JSON does not know are refused."""
    done = ahpatron("inspect", *arguments, "--format", "json", **options)
    assert (done.code, done.err) == (0, "")
    return json.loads(done.out, parse_constant=pytest.fail)


@pytest.fixture(scope="module")
def cancer(
    tmp_path_factory: pytest.TempPathFactory, breast_cancer: Path
) -> tuple[dict[str, Any], str]:
    """What `inspect --sigma 0.5` says of breast_cancer.svm, as JSON and as text."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("inspected"))
    document = inspected(ahpatron, breast_cancer, "--sigma", "0.5")
    text = ahpatron.succeed("inspect", breast_cancer, "--sigma", "0.5").out
    return document, text


def test_rows_features_and_labels_are_counted(cancer: tuple[dict[str, Any], str]) -> None:
    document, _ = cancer
    assert (document["rows"], document["features"]) == (569, 30)
    labels = [(one["label"], one["rows"], one["name"]) for one in document["labels"]]
    assert labels == [(-1, 212, None), (1, 357, None)]


def test_a_file_without_faults_has_none(cancer: tuple[dict[str, Any], str]) -> None:
    document, _ = cancer
    assert (document["faults"], document["faulty_lines"]) == (0, [])


def test_the_alignment_is_given_at_the_median_distance_and_at_the_sigma_asked_for(
    cancer: tuple[dict[str, Any], str],
) -> None:
    document, _ = cancer
    median, asked = document["alignments"]
    assert median["sigma"] == document["sigma"]
    assert (asked["sigma"], asked["exact"], asked["standard_error"]) == (0.5, True, None)


def test_a_file_that_needs_no_scaling_is_run_as_it_is(cancer: tuple[dict[str, Any], str]) -> None:
    document, _ = cancer
    assert document["advised_scale"] == "none"
    assert document["next"][0].startswith("ahpatron run ")
    assert "--scale" not in document["next"][0]


def test_the_text_begins_with_the_size_of_the_file_and_has_no_colours_in_a_pipe(
    cancer: tuple[dict[str, Any], str], breast_cancer: Path
) -> None:
    _, text = cancer
    assert text.startswith(f"{breast_cancer}: 569 rows, 30 features, 99.4 % of values stored")
    assert "\x1b" not in text


def test_the_baseline_is_that_of_a_run(ahpatron: Ahpatron, rings: Path) -> None:
    iris = REPOSITORY / "sample_data/iris.csv"
    for words in ([rings, "--positive", "-1"], [iris, "--label", "species"]):
        run = ahpatron.run(*words, "-l", "perceptron")
        baseline = inspected(ahpatron, *words)["baseline"]
        assert baseline == run["baseline_mistakes"] / run["rounds"]


def test_what_is_suggested_works(ahpatron: Ahpatron, rings: Path) -> None:
    path = ahpatron.write("two rings.svm", rings.read_bytes())
    sorted_rows = sorted(path.read_text().splitlines(), key=lambda line: line.split()[0])
    ahpatron.write("sorted.svm", "\n".join(sorted_rows[900:1100]).replace("2:", "7:1e5 8:") + "\n")
    for name in ("two rings.svm", "sorted.svm"):
        for command in inspected(ahpatron, name)["next"]:
            program, *words = shlex.split(command)
            assert program == "ahpatron"
            done = ahpatron(*words, "-q")
            assert (done.code, done.err) == (0, "")
    assert "--shuffle" in inspected(ahpatron, "sorted.svm")["next"][0]


def test_a_sparse_table_with_categories_is_not_scaled_to_length_1(ahpatron: Ahpatron) -> None:
    rows = [
        f"{i % 97},{i % 40},{2020 + i % 5}-03-{1 + i % 28:02},{'ab'[i % 2]}" for i in range(400)
    ]
    ahpatron.write("d.csv", "\n".join(("size,who,when,y", *rows)) + "\n")
    words = ("inspect", "d.csv", "--label", "y", "--category", "who")
    assert ahpatron.json(*words)["advised_scale"] == "minmax"


def test_a_column_of_ids_is_not_called_a_faulty_line(ahpatron: Ahpatron) -> None:
    rows = "".join(f"T-{i},{i % 3},{'ab'[i % 2]}\n" for i in range(60))
    ahpatron.write("d.csv", f"ticket,size,y\n{rows}")
    done = ahpatron("inspect", "d.csv", "--label", "y")
    assert done.code == 65
    assert "--drop ticket" in done.out
    assert "faulty line" not in done.out


def test_every_faulty_line_is_listed(ahpatron: Ahpatron) -> None:
    ahpatron.write("bad.svm", "1 1:1\nword 1:1\n-1 2:1 1:1\n-1 1:nan\n1 3:1\n")
    done = ahpatron("inspect", "bad.svm")
    assert done.code == 65
    assert done.out.splitlines()[0].startswith("bad.svm: 2 rows, 3 features")
    places = [line.split(": ")[0] for line in done.out.splitlines() if line.startswith("bad.svm:")]
    assert places[1:] == ["bad.svm:2:1", "bad.svm:3:8", "bad.svm:4:6"]
    ahpatron.write("many.svm", "1 1:1\n" + "x\n" * 21)
    assert ahpatron("inspect", "many.svm").out.count("\nmany.svm:") == 20
    document = json.loads(ahpatron("inspect", "bad.svm", "--format", "json").out)
    assert document["faults"] == 3
    assert document["next"] == []


def test_missing_cells_that_are_refused_are_counted_as_faults(ahpatron: Ahpatron) -> None:
    ahpatron.write("gaps.csv", "a,b,y\n1,2,0\n,3,1\n2,4,1\n3,,0\n")
    words = ("gaps.csv", "--label", "y", "--missing", "refuse", "--format", "json")
    done = ahpatron("inspect", *words)
    assert done.code == 65
    assert [one["line"] for one in json.loads(done.out)["faulty_lines"]] == [3, 5]


@pytest.mark.parametrize("piped", [False, True])
def test_every_fault_of_a_table_is_counted(ahpatron: Ahpatron, piped: bool) -> None:
    sound = "".join(f"{i},2020-01-0{i % 9 + 1},x{i % 3},{i % 2}\n" for i in range(60))
    faulty = "x,2020-13-01,5,1\n1,2\n\ny,,x1,0\n7,2020-01-01,x2,1,9\n8,2020-01-01,2020-01-01,0\n"
    ahpatron.write("sound.csv", "a,d,c,y\n" + sound)
    text = "a,d,c,y\n" + sound + faulty + sound
    ahpatron.write("bad.csv", text)
    words = ["-" if piped else "bad.csv", "--label", "y", "--format", "json"]
    done = ahpatron("inspect", *words, stdin=text.encode())
    assert done.code == 65
    found = json.loads(done.out)
    assert (found["rows"], found["faults"], found["stopped"]) == (120, 7, False)
    lines = [(one["line"], one["problem"].partition(" has ")[0]) for one in found["faulty_lines"]]
    assert sorted(lines) == [
        (62, "column 'a'"),
        (62, "column 'c'"),
        (62, "column 'd'"),
        (63, "this row"),
        (65, "column 'a'"),
        (66, "this row"),
        (67, "column 'c'"),
    ]
    plain = inspected(ahpatron, "sound.csv", "--label", "y")
    for name in ("low", "high", "widest", "advised_scale"):
        assert found[name] == plain[name]
    printed = ahpatron("inspect", "bad.csv", "--label", "y").out
    assert "\n7 faults\n" in printed
    assert "\nbad.csv:65: column 'a'" in printed
    assert "--category a" in " ".join(printed.split())


@pytest.mark.parametrize("first", ["1", ""])
def test_a_piped_column_may_turn_from_numbers_or_gaps_to_text(
    ahpatron: Ahpatron, first: str
) -> None:
    """Its first cells arrive before it is known to have text."""
    before = f"{'x' * 1000},{first},0\n" * 400  # more bytes than are read at a time
    after = ",red,1\n" * 500 + ",blue,0\n" * 500
    text = "padding,a,y\n" + before + after
    words = ("-", "--label", "y", "--drop", "padding", "--format", "json")
    done = ahpatron("inspect", *words, stdin=text.encode())
    found = json.loads(done.out)
    faults = 400 if first else 0
    assert (found["rows"], found["faults"]) == (1400 - faults, faults)


def test_a_table_is_described_up_to_a_fault_that_ends_it(ahpatron: Ahpatron) -> None:
    rows = "".join(f"{i},{i % 2}\n" for i in range(60_000))
    ahpatron.write("cut.csv", "a,y\n" + rows + 'x,1\n"7,1\n')
    done = ahpatron("inspect", "cut.csv", "--label", "y", "--format", "json")
    found = json.loads(done.out)
    assert (done.code, found["stopped"]) == (65, True)
    assert "quote" in found["faulty_lines"][-1]["problem"]
    assert found["rows"] > 0


def test_a_column_that_cannot_be_used_is_a_fault(ahpatron: Ahpatron) -> None:
    rows = "".join(f"name{i},{i},{i % 2}\n" for i in range(60))
    ahpatron.write("names.csv", "name,a,y\n" + rows)
    done = ahpatron("inspect", "names.csv", "--label", "y", "--format", "json")
    found = json.loads(done.out)
    assert (done.code, found["faults"], found["rows"], found["features"]) == (65, 1, 60, 1)
    assert "--drop name" in found["faulty_lines"][0]["hint"]


def test_the_metrics_of_a_rare_label_are_advised(ahpatron: Ahpatron) -> None:
    rare = "".join(f"{1 if i % 30 == 0 else -1} 1:{i % 7} 2:{i * i % 11}\n" for i in range(600))
    ahpatron.write("rare.svm", rare)
    (advice,) = [one for one in inspected(ahpatron, "rare.svm")["advice"] if "label 1" in one]
    assert "--metrics" in advice
    assert "--weight" not in advice  # labels by chance: no weight helps


@pytest.mark.parametrize("rare", [1, -1])
def test_a_cost_is_advised_only_if_it_raises_f1(ahpatron: Ahpatron, rare: int) -> None:
    draw = random.Random(0)
    rows = []
    for _ in range(2000):
        is_rare = draw.random() < 0.06
        shift = 1.3 * is_rare
        label = rare if is_rare else -rare
        rows.append(f"{label} 1:{draw.gauss(shift, 1):.3f} 2:{draw.gauss(shift, 1):.3f}\n")
    ahpatron.write("rare.svm", "".join(rows))
    document = inspected(ahpatron, "rare.svm")
    (advice,) = [one for one in document["advice"] if f"label {rare}" in one]
    options = [word.strip(",;") for word in advice.split() if word.startswith(("--", f"{rare}="))]
    costs = options[-2:]
    assert costs[0] == "--weight"
    command = shlex.split(document["next"][0])[1:]
    ways: list[list[str]] = [["--positive", str(rare)], ["--positive", str(rare), *costs]]
    plain, weighed = (
        ahpatron.json(*command, "--metrics", *way)["runs"][0]["metrics"]["f1"] for way in ways
    )
    assert weighed > plain


def test_rows_without_a_label_are_counted_and_not_taken_for_a_class(ahpatron: Ahpatron) -> None:
    rows = "".join(f"{(-1) ** i} 1:{i % 17} 2:{i % 5}\n" for i in range(300))
    ahpatron.write("whole.svm", rows)
    ahpatron.write("some.svm", "? 1:0 2:0\n1:1 2:1\n" + rows)
    ahpatron.write(
        "whole.csv", "a,b,y\n" + "".join(f"{i % 17},{i % 5},{i % 2}\n" for i in range(300))
    )
    ahpatron.write("some.csv", ahpatron.read("whole.csv") + "0,0,NA\n1,1,\n")
    for some, words in (("some.svm", ()), ("some.csv", ("--label", "y"))):
        found = inspected(ahpatron, some, *words)
        whole = inspected(ahpatron, some.replace("some", "whole"), *words)
        assert (found["rows"], found["unlabelled"]) == (302, 2)
        for name in ("labels", "label_problem", "baseline", "contradictory", "tried_metron"):
            assert found[name] == whole[name]
    ahpatron.write("none.svm", "? 1:1\n? 1:2\n")
    assert "no row has a label" in inspected(ahpatron, "none.svm")["label_problem"]
    ahpatron.write("one.csv", "a,y\n1,1\n2,NA\n3,1\n")
    problem = inspected(ahpatron, "one.csv", "--label", "y")["label_problem"]
    assert "all rows with a label" in problem


@pytest.mark.parametrize(
    "text",
    [
        "1 1:1\n",
        "1\n",
        "1 1:1\n-1 1:1\n1 1:1\n",
        "1 1:1e160 2:-1e160\n-1 1:2e160\n1 2:5\n",
        "1 1:1e160\n-1 1:1e-160\n1 1:5\n-1 1:6\n1 1:8\n",
        "1 1:5e-324\n-1 1:1e-323\n",
        "1e300 1:1\n-1e300 1:2\n",
        "0 0:1\n1 0:2\n",
        "".join(f"{i} 1:{i}\n" for i in range(2000)),
    ],
    ids=lambda text: repr(text[:24]),
)
def test_odd_files_are_described_without_warnings(ahpatron: Ahpatron, text: str) -> None:
    ahpatron.write("odd.svm", text)
    done = ahpatron("inspect", "odd.svm", "--sigma", "1")
    assert (done.code, done.err) == (0, "")
    assert not re.search(r"\bnan\b|\binf\b", done.out)
    assert max(map(len, done.out.splitlines())) < 150
    document = inspected(ahpatron, "odd.svm", "--sigma", "1")
    missing = document["sigma"] is None or not document["alignments"]
    assert missing == bool(document["unknown"])


def test_a_pipe_is_described_like_its_file(ahpatron: Ahpatron, rings: Path) -> None:
    plain = inspected(ahpatron, rings)
    piped = inspected(ahpatron, "-", stdin=gzip.compress(rings.read_bytes()))
    assert (piped["path"], piped["from_pipe"]) == ("<stdin>", True)
    assert piped["next"] == [plain["next"][0].replace(str(rings), "FILE")]
    for name in ("labels", "sigma", "alignments", "widest", "duplicates"):
        assert piped[name] == plain[name]


@pytest.mark.parametrize(("columns", "locale"), [(40, {}), (80, ASCII)], ids=["40", "ascii"])
def test_profiles_fit_the_terminal(
    ahpatron: Ahpatron,
    breast_cancer: Path,
    columns: int,
    locale: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(ahpatron.folder)
    ahpatron.write("b.svm", breast_cancer.read_bytes())
    for words in (["inspect", "b.svm"], ["learners"]):
        text, code = in_terminal(*words, columns=columns, **locale)
        assert code == 0
        assert "\x1b[1m" in text
        assert text.isascii() == bool(locale)
        folded = [line for line in lines_of(text) if not line.startswith("  ahpatron ")]
        assert max(map(len, folded)) <= columns


def test_inspect_learners_is_an_earlier_name_of_the_command_learners(ahpatron: Ahpatron) -> None:
    assert ahpatron.succeed("inspect", "--learners").out == ahpatron.succeed("learners").out
    assert inspected(ahpatron, "--learners") == ahpatron.json("learners")


@pytest.mark.parametrize(("part", "registry"), [("learners", REGISTRY), ("kernels", KERNELS)])
def test_the_list_has_all_learners_and_kernels_with_their_parameters(
    ahpatron: Ahpatron, part: str, registry: Any
) -> None:
    out = ahpatron.succeed("learners").out
    document = ahpatron.json("learners")
    assert [one["name"] for one in document[part]] == list(registry)
    for one, kind in zip(document[part], registry.values(), strict=True):
        specs = kind.specs()
        assert [parameter["name"] for parameter in one["parameters"]] == list(specs)
        assert f"\n{kind.name}\n" in out
        for name, spec in specs.items():
            assert re.search(rf"    {name} +{re.escape(spec.symbol)} ", out)


def test_an_infinite_default_is_text_in_json(ahpatron: Ahpatron) -> None:
    learners = ahpatron.json("learners")["learners"]
    avp = next(one for one in learners if one["name"] == "avp")
    radius = avp["parameters"][1]
    assert (radius["name"], radius["symbol"], radius["default"]) == ("radius", "U", "inf")


def test_the_widest_feature_of_a_table_has_its_name(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", "a,b,y\n1,90,no\n2,5,yes\n1,7,no\n2,8,yes\n")
    assert inspected(ahpatron, "t.csv", "--label", "y")["widest"] == ["b", 5.0, 90.0]
