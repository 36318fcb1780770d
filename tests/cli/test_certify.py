"""`--certify` and `--theorem`."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli import certify
from ahpatron_cli.core import certificates
from support.command import Ahpatron

SIGMAS = {"rings": "0.1", "breast_cancer": "1", "sparse_text": "1"}
CASES = [
    ["-l", "perceptron", "-l", "forgetron", "-l", "ahpatron", "--theorem", "4"],
    ["-l", "avp", "-l", "ahpatron", "-l", "ahpatron+", "--theorem", "6"],
    ["-l", "avp", "--theorem", "corollary-1"],
    ["-l", "avp", "--theorem", "corollary-2"],
]
MISTAKES = {"Theorem 1", "Theorem 2", "Dekel et al. 2008"}
"""What these bound; the others bound the rounds with a margin of at most 0."""
FIELDS = ["theorem", "counts", "count", "bound", "trivial", "vacuous", "comparator", "loss", "norm"]


@pytest.mark.parametrize("sample", SIGMAS)
@pytest.mark.parametrize("options", CASES, ids=lambda options: options[-1])
def test_the_sample_files(
    ahpatron: Ahpatron, request: pytest.FixtureRequest, sample: str, options: list[str]
) -> None:
    path = request.getfixturevalue(sample)
    words = (path, "--sigma", SIGMAS[sample], *options, "-B", "100", "--limit", "800")
    runs = ahpatron.json("run", *words, "--certify")["runs"]
    asked = options[-1].replace("corollary-", "Corollary ")
    names = [run["certificate"]["theorem"] for run in runs if run["certificate"]]
    assert names[-1] == (asked if "Corollary" in asked else f"Theorem {asked}")
    for run in runs:
        certificate = run["certificate"]
        if certificate is None:
            assert (run["learner"], options[-1]) == ("avp", "6")  # whose ε is 1/2 by default
            assert len(run["uncertified"]) == 3
            continue
        assert list(certificate) == FIELDS
        assert run["uncertified"] == []
        counts = "mistakes" if certificate["theorem"] in MISTAKES else "failures"
        assert certificate["counts"] == counts
        count, bound = certificate["count"], certificate["bound"]
        assert run["mistakes"] <= count <= run["mistakes"] + 1 <= bound
        assert certificate["vacuous"] == (bound >= certificate["trivial"])
    plain = ahpatron.json("run", *words)["runs"]
    assert set(runs[0]) - set(plain[0]) == {"certificate", "uncertified"}
    assert [run["mistakes"] for run in plain] == [run["mistakes"] for run in runs]


def test_repeats_have_a_certificate_each(ahpatron: Ahpatron, rings: Path) -> None:
    options = ["-l", "perceptron", "--sigma", "0.1", "--repeats", "3", "--certify"]
    runs = ahpatron.json("run", rings, *options)["runs"]
    assert [run["certificate"]["count"] for run in runs] == [run["mistakes"] for run in runs]
    assert len({run["certificate"]["bound"] for run in runs}) == 1  # no order has another L_T(f)
    parted = ahpatron.process("run", rings, *options, "--jobs", "2", "--format", "json")
    assert json.loads(parted.out)["runs"][2]["certificate"] == runs[2]["certificate"]


@pytest.mark.parametrize("scale", ["none", "unit", "minmax"])
def test_streamed_or_in_memory_the_bound_is_the_same(
    ahpatron: Ahpatron, breast_cancer: Path, scale: str
) -> None:
    options = [breast_cancer, "-l", "perceptron", "--certify", "--scale", scale, "--limit", "500"]
    streamed, loaded = (ahpatron.run(*options, *way)["certificate"] for way in ((), ("--shuffle",)))
    assert streamed["bound"] == pytest.approx(loaded["bound"])
    assert streamed["trivial"] == 500


@pytest.mark.parametrize(
    ("learner", "key", "title"),
    [
        ("perceptron", "1", "Theorem 1"),
        ("perceptron", "2", "Theorem 2"),
        ("avp", "3", "Theorem 3"),
        ("avp", "corollary-1", "Corollary 1"),
        ("avp", "corollary-2", "Corollary 2"),
        ("ahpatron", "4", "Theorem 4"),
        ("ahpatron", "6", "Theorem 6"),
        ("forgetron", "forgetron", "Dekel et al. 2008"),
    ],
)
def test_the_certificate_is_that_of_the_theorem_asked_for(
    ahpatron: Ahpatron, rings: Path, learner: str, key: str, title: str
) -> None:
    """Also where another theorem has a smaller bound, or is the same one with other words."""
    rows = "2000" if key == "1" else "500"  # where Theorem 2, or 1, has the smaller bound
    words = ("-l", learner, "--theorem", key, "-l", "rbp", "--certify", "--limit", rows)
    more = ("-p", "step=1") if key == "3" else ()  # the step of Corollary 1
    asked, other = ahpatron.json("run", rings, "--sigma", "0.1", *words, *more)["runs"]
    assert asked["certificate"]["theorem"] == title
    assert other["uncertified"] == ["no theorem covers it"]


def test_a_theorem_asked_for_that_fails_is_the_only_reason(ahpatron: Ahpatron) -> None:
    """ζ is known only after the run: far clusters take turns, and B is small."""
    rows = [f"{1 if turn // 16 % 2 else -1} 1:{3 * (turn // 16 % 7)}" for turn in range(640)]
    path = ahpatron.write("turns.svm", "\n".join(rows) + "\n")
    words = ("-B", "16", "--epsilon", "0.2", "-p", "radius=2", "--theorem", "6", "--certify")
    run = ahpatron.run(path, *words)
    assert run["certificate"] is None
    assert len(run["uncertified"]) == 1
    assert run["uncertified"][0].startswith("Theorem 6 requires (1/4 + 9ζ/2)·U/√B < ε < 1")


def test_theorem_5_is_refused_because_it_is_about_kernel_alignment(
    ahpatron: Ahpatron, rings: Path
) -> None:
    told = ahpatron.refusal(2, "run", rings, "--theorem", "5")
    assert "Theorem 5 of the paper is about kernel alignment" in told
    assert "--theorem 6 is the refined bound of ahpatron" in told


def test_a_theorem_sets_what_was_not_given(ahpatron: Ahpatron, rings: Path) -> None:
    options = ["--theorem", "4", "--epsilon", "0.5", "-B", "100", "-l", "ahpatron", "-l", "rbp"]
    first, second = ahpatron.json("run", rings, *options)["runs"]
    found = [first["params"][name] for name in ("epsilon", "radius", "rescale")]
    assert found == [0.5, pytest.approx(1.5), 0.6]
    assert second["learner"] == "rbp"


def test_a_broken_bound_ends_with_exit_code_1(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The formula of Theorem 1 forgets the norm, and half of the loss."""
    broken = dataclasses.replace(certificates.THEOREMS[0], bound=lambda f, run: f.loss / 2)
    monkeypatch.setattr(certificates, "theorems_of", lambda *_: [broken])
    words = ("run", rings, "-l", "perceptron", "--sigma", "0.1", "--certify")
    done = ahpatron(*words)
    assert (done.code, done.out) == (1, "")
    assert "Theorem 1 is broken" in done.err


def test_a_file_that_changes_between_its_readings(
    ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ahpatron.write("growing.svm", rings.read_bytes())
    draw = certify.comparators

    def later(*arguments: Any, **options: Any) -> Any:
        with path.open("a") as file:
            file.write("1 1:1\n")
        return draw(*arguments, **options)

    monkeypatch.setattr(certify, "comparators", later)
    assert "the file changed" in ahpatron.refusal(65, "run", path, "--certify")
