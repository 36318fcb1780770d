"""What the shell offers after TAB, by the protocol that it really speaks."""

from __future__ import annotations

import pytest

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.output.formats import FORMATS
from support.command import Ahpatron


def offered(ahpatron: Ahpatron, *words: str) -> list[str]:
    """The words that bash is given for the last of these, which may be empty."""
    done = ahpatron(
        _AHPATRON_COMPLETE="complete_bash",
        COMP_WORDS=" ".join(["ahpatron", *words]),
        COMP_CWORD=str(len(words)),
    )
    assert (done.code, done.err) == (0, "")
    return done.out.split()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["run", "x", "-l", ""], [*REGISTRY, "all"]),
        (["run", "x", "--learner", "project"], ["projectron", "projectron++"]),
        (["sweep", "x", "--kernel", ""], list(KERNELS)),
        (["run", "x", "--format", ""], list(FORMATS)),
        (["inspect", "x", "--format", "js"], ["json", "jsonl"]),
        (["run", "x", "--scale", ""], list(SCALES)),
        (["inspect", "x", "--scale", "m"], ["minmax"]),
        (["run", "x", "-p", "sel"], ["selection="]),
        (
            ["run", "x", "-l", "alma2", "-p", ""],
            ["alpha=", "beta=", "gain=", "sigma=", "degree=", "offset="],
        ),
        (["sweep", "-l", "avp", "-g", "sc"], ["schedule="]),
        (["run", "x", "--kernel", "nothing"], []),
        (["run", "x", "--theorem", "c"], ["corollary-1", "corollary-2"]),
        (["sweep", "x", "--search", ""], ["grid", "halving"]),
        (["sweep", "x", "--metric", "b"], ["balanced_error"]),
        (["predict", "m", "x", "--format", ""], ["csv", "jsonl"]),
        (["convert", "x", "--missing", ""], ["indicator", "zero", "mean", "refuse"]),
    ],
    ids=" ".join,
)
def test_bash(ahpatron: Ahpatron, words: list[str], expected: list[str]) -> None:
    assert offered(ahpatron, *words) == expected


def test_zsh_shows_what_words_mean(ahpatron: Ahpatron) -> None:
    done = ahpatron(
        _AHPATRON_COMPLETE="complete_zsh", _TYPER_COMPLETE_ARGS="ahpatron run x -p ridge"
    )
    assert "ridge=" in done.out
    assert REGISTRY["ahpatron"].specs()["ridge"].meaning in done.out
