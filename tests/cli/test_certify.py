"""`--certify` and `--theorem`."""

import dataclasses
import json
import math
from collections.abc import Callable
from math import sqrt
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
FIELDS = [
    *("theorem", "counts", "count", "bound", "trivial", "vacuous", "comparator", "loss", "norm"),
    *("formula", "quantities", "terms"),
]


def delta(a: float, q: dict[str, float]) -> float:
    """Δ of Theorem 4 and Δ_T of Theorem 6."""
    return (a - q["ε"]) / (1 - a) * q["|N_T|"]


def corollary_2(L: float, f: float, q: dict[str, float]) -> float:
    U = q["U"]
    A = max(L + 2 * U**2 + q["Σλ_t"] / 2 - q["ε"] * q["|N_T|"], 0)
    return A + 9 * U**2 + 3 * U * sqrt(A)


def theorem_3(L: float, f: float, q: dict[str, float]) -> float:
    step = q["λ"]
    margins = (step / 2 - q["ε"]) * q["|N_T|"]
    return (L + f**2 / (2 * step) + margins) / (1 - step / 2)


def theorem_4(L: float, f: float, q: dict[str, float]) -> float:
    r = q["U"] / sqrt(q["B"])
    first = 12 * r * L + delta(3 * r, q)
    second = 0.9 * r * L + f**2 / (2 * r) + delta(r / sqrt(2), q)
    return L + max(first, second)


def theorem_6(L: float, f: float, q: dict[str, float]) -> float:
    r = q["U"] / sqrt(q["B"])
    a = (1 / 4 + 9 * q["ζ"] / 2) * r
    return L + a / (1 - a) * L + (1 - 2 * q["ζ"]) / (1 - a) * f**2 / r + delta(a, q)


BOUNDS: dict[str, Callable[[float, float, dict[str, float]], float]] = {
    "Theorem 1": lambda L, f, q: 2 * L + f**2,
    "Theorem 2": lambda L, f, q: L + f * sqrt(L) + f**2,
    "Theorem 3": theorem_3,
    "Theorem 4": theorem_4,
    "Theorem 6": theorem_6,
    "Corollary 1": lambda L, f, q: 2 * L + f**2 + (1 - 2 * q["ε"]) * q["|N_T|"],
    "Corollary 2": corollary_2,
    "Dekel et al. 2008": lambda L, f, q: 4 * L + 2 * f**2,
}
"""The paper's bounds, of L_T(f), ‖f‖ and the quantities in a certificate."""
RUNS = {
    "Theorem 1": ["-l", "perceptron", "--theorem", "1"],
    "Theorem 2": ["-l", "perceptron", "--theorem", "2"],
    "Theorem 3": ["-l", "avp", "--theorem", "3"],
    "Corollary 1": ["-l", "avp", "--theorem", "corollary-1"],
    "Corollary 2": ["-l", "avp", "--theorem", "corollary-2"],
    "Theorem 4": ["-l", "ahpatron", "--theorem", "4"],
    "Theorem 6": ["-l", "ahpatron+", "--theorem", "6"],
    "Dekel et al. 2008": ["-l", "forgetron"],
}
"""Options of a run with a certificate by each theorem."""


@dataclasses.dataclass(frozen=True)
class Certified:
    """The runs of a command with --certify, and the same command without it."""

    asked: str
    runs: list[dict[str, Any]]
    plain: list[dict[str, Any]]

    @property
    def certificates(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """Each run that has a certificate, with it."""
        return [(run, run["certificate"]) for run in self.runs if run["certificate"]]


@pytest.fixture(
    scope="module",
    params=[(sample, options) for sample in SIGMAS for options in CASES],
    ids=lambda param: f"{param[0]} {param[1][-1]}",
)
def certified(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Certified:
    """On a sample file, whose name is that of a fixture."""
    sample, options = request.param
    ahpatron = Ahpatron(tmp_path_factory.mktemp("certified"))
    path = request.getfixturevalue(sample)
    words = (path, "--sigma", SIGMAS[sample], *options, "-B", "100", "--limit", "800")
    runs = ahpatron.json("run", *words, "--certify")["runs"]
    return Certified(options[-1], runs, ahpatron.json("run", *words)["runs"])


def test_the_last_run_is_certified_by_the_theorem_asked_for(certified: Certified) -> None:
    *_, (_, last) = certified.certificates
    asked = certified.asked.replace("corollary-", "Corollary ")
    assert last["theorem"] == (asked if "Corollary" in asked else f"Theorem {asked}")


def test_mistakes_on_the_sample_files_are_within_their_bounds(certified: Certified) -> None:
    for run, certificate in certified.certificates:
        count = certificate["count"]
        bound = certificate["bound"]
        assert run["mistakes"] <= count <= run["mistakes"] + 1 <= bound
        assert certificate["vacuous"] == (bound >= certificate["trivial"])


def test_a_certificate_says_what_its_theorem_counts(certified: Certified) -> None:
    for run, certificate in certified.certificates:
        assert list(certificate) == FIELDS
        assert run["uncertified"] == []
        counts = "mistakes" if certificate["theorem"] in MISTAKES else "failures"
        assert certificate["counts"] == counts


def test_a_run_without_a_certificate_says_which_conditions_fail(certified: Certified) -> None:
    """Of these, avp by Theorem 6: its ε is 1/2 by default."""
    for run in certified.runs:
        if run["certificate"] is None:
            assert (run["learner"], certified.asked) == ("avp", "6")
            assert len(run["uncertified"]) == 3


def test_certify_changes_nothing_but_adds_certificates(certified: Certified) -> None:
    added = set(certified.runs[0]) - set(certified.plain[0])
    assert added == {"certificate", "uncertified"}
    mistakes = [run["mistakes"] for run in certified.runs]
    assert mistakes == [run["mistakes"] for run in certified.plain]


@pytest.mark.parametrize("theorem", RUNS)
def test_a_bound_can_be_computed_again_from_the_fields_of_its_certificate(
    ahpatron: Ahpatron, rings: Path, theorem: str
) -> None:
    """By the paper's formula, and as a sum of its terms."""
    run = ahpatron.run(rings, "--sigma", "0.1", *RUNS[theorem], "-B", "100", "--certify")
    found = run["certificate"]
    again = BOUNDS[theorem](found["loss"], found["norm"], found["quantities"])
    assert found["theorem"] == theorem
    assert found["bound"] == pytest.approx(again, rel=1e-6)
    assert sum(term["product"] for term in found["terms"]) == found["bound"]
    for term in found["terms"]:
        assert term["product"] == term["factor"] * term["value"]


@pytest.mark.parametrize(
    ("theorem", "learners"),
    [("3", ["perceptron", "avp", "forgetron"]), ("6", ["ahpatron", "ahpatron+", "perceptron"])],
)
def test_a_bound_can_be_computed_again_from_the_printed_terms(
    ahpatron: Ahpatron, rings: Path, theorem: str, learners: list[str]
) -> None:
    options = [word for learner in learners for word in ("-l", learner)]
    words = ("run", rings, "--sigma", "0.1", *options, "--theorem", theorem, "--certify")
    text = ahpatron(*words).out
    runs = ahpatron.json(*words)["runs"]
    bounds = [run["certificate"]["bound"] for run in runs]
    _, _, table = text.partition("terms of the bounds\n")
    lines = table.partition("\n\n")[0].splitlines()[2:]
    sums: list[float] = []
    products: list[float] = []
    for line in lines:
        if "sum" in line:
            sums.append(math.fsum(products))
            products.clear()
        else:
            *_, factor, value, _ = line.split()
            products.append(float(factor) * float(value))
    assert sums == pytest.approx(bounds, rel=1e-4)


def test_repeats_have_a_certificate_each(ahpatron: Ahpatron, rings: Path) -> None:
    options = ["-l", "perceptron", "--sigma", "0.1", "--repeats", "3", "--certify"]
    options += ["--limit", "500"]
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
    broken = dataclasses.replace(
        certificates.THEOREMS[0],
        terms=lambda f, run: (certificates.Term("L_T(f)", 1 / 2, f.loss),),
    )
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
