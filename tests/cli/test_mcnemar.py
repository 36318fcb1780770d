"""`run --mcnemar`: learners of one run, compared round by round."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from scipy.stats import binomtest

from support.command import Ahpatron

LEARNERS = ("-l", "ahpatron", "-l", "rbp", "-l", "perceptron")


def wrong_rounds(path: Path) -> dict[str, set[str]]:
    with path.open() as stream:
        rows = list(csv.DictReader(stream))
    names = dict.fromkeys(row["learner"] for row in rows)
    return {
        name: {
            row["round"]
            for row in rows
            if row["learner"] == name and row["prediction"] != row["label"]
        }
        for name in names
    }


@pytest.mark.parametrize("how", [(), ("--shuffle",)])
def test_the_counts_are_those_of_the_predictions(
    ahpatron: Ahpatron, rings: Path, how: tuple[str, ...]
) -> None:
    arguments = ("run", rings, *LEARNERS, "-B", "20", "--mcnemar", *how)
    report = ahpatron.json(*arguments, "--predictions", "p.csv")
    wrong = wrong_rounds(ahpatron.folder / "p.csv")
    assert {run["learner"]: run["mistakes"] for run in report["runs"]} == {
        name: len(rounds) for name, rounds in wrong.items()
    }
    best = min(report["runs"], key=lambda run: run["mistakes"])["learner"]
    assert [one["learner"] for one in report["mcnemar"]] == [name for name in wrong if name != best]
    for one in report["mcnemar"]:
        mine, its = wrong[one["learner"]], wrong[best]
        assert one["other"] == best
        assert (one["only_learner"], one["only_other"]) == (len(mine - its), len(its - mine))
        differing = len(mine ^ its)
        assert one["p_value"] == pytest.approx(binomtest(len(its - mine), differing).pvalue)
        assert one["p_holm"] >= one["p_value"]
    assert "McNemar's exact test" in ahpatron(*arguments).out


def test_processes_change_nothing(ahpatron: Ahpatron, rings: Path) -> None:
    arguments = ("run", rings, *LEARNERS, "--shuffle", "--mcnemar", "--format", "json")
    alone, together = (
        json.loads(ahpatron.process(*arguments, "-j", jobs).out)["mcnemar"] for jobs in ("1", "2")
    )
    assert alone == together


def test_without_the_option_there_is_none(ahpatron: Ahpatron, rings: Path) -> None:
    assert "mcnemar" not in ahpatron.json("run", rings, *LEARNERS)


@pytest.mark.parametrize("arguments", [("--repeats", "2", *LEARNERS), (), ("-l", "rbp")])
def test_refused(ahpatron: Ahpatron, rings: Path, arguments: tuple[str, ...]) -> None:
    err = ahpatron.refusal(2, "run", rings, "--mcnemar", *arguments)
    assert "--mcnemar compares several learners on one order" in err
    assert "ahpatron sweep" in err
