"""`ahpatron inspect`: size, labels, every faulty line; and the list of learners."""

from __future__ import annotations

from pathlib import Path

from ahpatron_cli.core import KERNELS, REGISTRY
from cli.conftest import Ahpatron


def test_a_good_file(ahpatron: Ahpatron, sparse_text: Path) -> None:
    done = ahpatron("inspect", sparse_text)
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert lines[0].startswith(f"{sparse_text}: 1,500 rows, 2,000 features, 1.0% of values stored")
    assert lines[1].startswith("  label      0: ")
    assert lines[2].startswith("  label      1: ")


def test_every_faulty_line_is_listed(ahpatron: Ahpatron) -> None:
    ahpatron.write("bad.svm", "1 1:1\nword 1:1\n-1 2:1 1:1\n-1 1:nan\n1 3:1\n")
    done = ahpatron("inspect", "bad.svm")
    assert done.code == 65
    assert done.out.splitlines()[0].startswith("bad.svm: 2 rows, 3 features")
    places = [line.split(": ")[0] for line in done.out.splitlines() if line.startswith("bad.svm:")]
    assert places[1:] == ["bad.svm:2:1", "bad.svm:3:8", "bad.svm:4:6"]
    assert done.out.splitlines()[-1] == "3 faulty lines"
    few = ahpatron("inspect", "bad.svm", "--max-faults", 1)
    assert few.out.splitlines()[-1] == "3 faulty lines, 1 shown"


def test_one_of_each_is_singular(ahpatron: Ahpatron) -> None:
    ahpatron.write("one.svm", "1 1:1\nx\n")
    out = ahpatron("inspect", "one.svm").out
    assert "1 row, 1 feature" in out
    assert "1 faulty line\n" in out


def test_the_list_of_learners(ahpatron: Ahpatron) -> None:
    done = ahpatron("inspect", "--learners")
    assert done.code == 0
    for kind in [*REGISTRY.values(), *KERNELS.values()]:
        assert f"\n{kind.name}\n" in done.out
        for name, spec in kind.specs().items():
            assert f"    {name:<10} {spec.symbol}" in done.out
            assert spec.meaning in done.out


def test_either_a_path_or_the_learners(ahpatron: Ahpatron) -> None:
    for arguments in (["--learners", "data.svm"], ["--max-faults", "3"]):
        done = ahpatron("inspect", *arguments)
        assert (done.code, done.out) == (2, "")
        assert "give a PATH, or --learners" in done.err
