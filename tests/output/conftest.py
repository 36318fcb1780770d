"""Small reports with round numbers, from which every expected text can be worked out by hand."""

import pytest

from ahpatron_cli.records import Report
from support.trials import make_perceptron, make_report, make_run


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture
def two_learners() -> Report:
    """One pass of two learners over a file with labels 0 and 1."""
    return make_report(make_run(), make_perceptron(), labels=(0.0, 1.0))


@pytest.fixture
def repeated() -> Report:
    """Two permutations of two learners: rates 10 and 12 percent, and 14 percent twice."""
    return make_report(
        make_run(mistakes=100, mistake_rate=0.10),
        make_run(mistakes=121, mistake_rate=0.121, repeat=1, support_size=315),
        make_perceptron(),
        make_perceptron(repeat=1),
    )
