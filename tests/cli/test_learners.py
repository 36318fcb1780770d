"""`ahpatron learners NAME`: rule, parameters, grid and publications of learners."""

from __future__ import annotations

from pathlib import Path

import pytest

from ahpatron_cli.core import REGISTRY
from ahpatron_cli.core.references import PUBLICATIONS
from support.command import Ahpatron
from support.terminal import in_terminal, lines_of

OWN = '''
from dataclasses import dataclass
from ahpatron_cli.core import Learner, integer

@dataclass
class Mine(Learner):
    """Adds every mistake.

    Deviations
    ----------
    None at all.
    """

    name = "mine"
    title = "a Perceptron"
    references = ("A. Author. A title. 2026.", "gentile2001")
    grid = ("budget=10,20",)
    budget: int = integer("B", "not observed", default=10)

    def update(self, f, y, margin):
        f.add(y)
'''


def test_one_learner_is_shown_with_rule_parameters_grid_and_publication(
    ahpatron: Ahpatron,
) -> None:
    out = ahpatron.succeed("learners", "bogd++").out
    headings = [line for line in out.splitlines() if line and not line.startswith(" ")]
    assert headings == [
        "bogd++: BOGD that prefers to drop small coefficients (Zhao et al. 2012)",
        "Rule",
        "Deviations from the publication",
        "Parameters (-p NAME=VALUE)",
        "Values worth trying",
        "Publications",
    ]
    assert PUBLICATIONS["zhao2012"].title in out
    assert ">>>" not in out


def test_formulas_keep_their_lines(ahpatron: Ahpatron) -> None:
    out = ahpatron.succeed("learners", "krls").out
    assert "      δ² > ν:   a ← a - (e/δ²)·d,  add x with e/δ²,   P ← [P 0; 0 1]\n" in out


@pytest.mark.parametrize("columns", [60, 80])
def test_long_formulas_are_folded_to_the_terminal(columns: int) -> None:
    text, _ = in_terminal("learners", "metron", columns=columns)
    assert max(map(len, lines_of(text))) <= columns


def test_json_has_all_that_the_text_shows(ahpatron: Ahpatron) -> None:
    (norma,) = ahpatron.json("learners", "norma")["learners"]
    assert norma["rule"].startswith("Gradient descent on hinge loss and regulariser")
    assert norma["deviations"].startswith("The publication drops examples after a fixed number")
    assert norma["grid"] == ["step=log:0.1:100:4"]
    assert [one["key"] for one in norma["references"]] == ["kivinen2004"]
    listed = ahpatron.json("learners")["learners"]
    assert next(one for one in listed if one["name"] == "norma")["grid"] == norma["grid"]


@pytest.mark.parametrize("name", [name for name, kind in REGISTRY.items() if kind.grid])
def test_a_sweep_accepts_the_values_worth_trying(
    ahpatron: Ahpatron, rings: Path, name: str
) -> None:
    grid = [word for values in REGISTRY[name].grid for word in ("-g", values)]
    ahpatron.succeed("sweep", rings, "-l", name, *grid, "--dry-run", "--limit", "20")


def test_bibtex_has_each_publication_once_and_is_ascii(ahpatron: Ahpatron) -> None:
    out = ahpatron.succeed("learners", "--bibtex").out
    used = {key for kind in REGISTRY.values() for key in kind.references}
    assert used <= set(PUBLICATIONS)
    assert out.isascii()
    for key in used:
        assert out.count(f"{{{key},") == 1
    assert out.count("{") == out.count("}")
    assert ahpatron.succeed("learners", "nogd", "fogd", "--bibtex").out.count("@") == 1


def test_an_own_learner_is_shown_with_publications_that_it_names_itself(
    ahpatron: Ahpatron, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    out = ahpatron.succeed("learners", f"{file}:Mine").out
    assert "A. Author. A title. 2026." in out
    assert PUBLICATIONS["gentile2001"].title in out
    assert "None at all." in out
    found = ahpatron.succeed("learners", f"{file}:Mine", "--bibtex")
    assert "@article{gentile2001," in found.out
    assert "A. Author. A title. 2026." in found.err


def test_the_sweep_shown_for_an_own_learner_names_its_file(
    ahpatron: Ahpatron, rings: Path, tmp_path: Path
) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    (described,) = ahpatron.json("learners", f"{file}:Mine")["learners"]
    assert described["given"] == f"{file}:Mine"
    options = [word for values in described["grid"] for word in ("-p", values)]
    ahpatron.succeed("sweep", rings, "-l", described["given"], *options, "--dry-run")


def test_no_bibtex_entry_of_proceedings_has_both_volume_and_number() -> None:
    """The usual styles of BibTeX print one of them and warn."""
    for key, publication in PUBLICATIONS.items():
        entry = publication.bibtex(key)
        if entry.startswith("@inproceedings"):
            assert "volume =" not in entry or "number =" not in entry


def test_a_kernel_is_shown_with_its_formula_and_parameters(ahpatron: Ahpatron) -> None:
    shown = ahpatron.succeed("learners", "laplacian").out
    assert "exp(-‖u - v‖₁ / σ)" in shown
    assert "--kernel laplacian" in shown
    described = ahpatron.json("learners", "laplacian", "arow")
    assert [one["name"] for one in described["kernels"]] == ["laplacian"]
    assert [one["name"] for one in described["learners"]] == ["arow"]


def test_a_kernel_has_no_publications(ahpatron: Ahpatron) -> None:
    assert "is a kernel" in ahpatron.refusal(2, "learners", "laplacian", "--bibtex")


def test_an_unknown_name_is_refused_with_a_suggestion(ahpatron: Ahpatron) -> None:
    assert "projectron" in ahpatron.refusal(2, "learners", "projektron")
