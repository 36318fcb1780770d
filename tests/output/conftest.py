"""Small records with round numbers, from which every expected text can be worked out by hand."""

from collections.abc import Callable
from typing import Any

import pytest

from ahpatron_cli.records import DataRecord, Report, RunRecord


def make_run(learner: str = "ahpatron", **changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "learner": learner,
        "params": {"budget": 400, "epsilon": 0.5},
        "seed": 0,
        "repeat": 0,
        "rounds": 1000,
        "mistakes": 112,
        "mistake_rate": 0.112,
        "margin_updates": 50,
        "updates": 162,
        "halvings": 3,
        "zeta": 0.01234,
        "support_size": 314,
        "norm": 1.5,
        "near_ties": 0,
        "seconds": 0.0512,
    }
    return RunRecord(**(fields | changes))


def make_perceptron(**changes: Any) -> RunRecord:
    fields: dict[str, Any] = {
        "params": {"sigma": 1.0},
        "halvings": None,
        "zeta": None,
        "support_size": 2325,
        "mistakes": 140,
        "mistake_rate": 0.14,
        "margin_updates": 0,
    }
    return make_run("perceptron", **(fields | changes))


def make_report(
    *runs: RunRecord, path: str = "a.svm", labels: tuple[float, float] = (-1.0, 1.0)
) -> Report:
    data = DataRecord(path, rounds=1000, features=18, labels=labels, sha256="c0ffee")
    return Report("0.1.0", data, runs or (make_run(),), load_seconds=0.25)


@pytest.fixture
def run() -> Callable[..., RunRecord]:
    return make_run


@pytest.fixture
def perceptron() -> Callable[..., RunRecord]:
    return make_perceptron


@pytest.fixture
def report() -> Callable[..., Report]:
    return make_report


@pytest.fixture
def two_learners() -> Report:
    """One pass of two learners over a file with labels 0 and 1."""
    return make_report(make_run(), make_perceptron(), labels=(0.0, 1.0))


@pytest.fixture
def repeated() -> Report:
    """Two permutations of two learners: rates 10 and 12 percent, and 14 percent twice."""
    return make_report(
        make_run(mistakes=100, mistake_rate=0.10),
        make_run(mistakes=121, mistake_rate=0.12, repeat=1, support_size=315),
        make_perceptron(),
        make_perceptron(repeat=1),
    )
