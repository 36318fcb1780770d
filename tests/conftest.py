"""What holds for all tests."""

from __future__ import annotations

import dataclasses
import os
import signal
from pathlib import Path

for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):  # before NumPy: as the command does
    os.environ[f"{_library}_NUM_THREADS"] = "1"

# The command leaves signals ignored that are (`nohup`, jobs in the background of a script), and its
# processes inherit that from here: the tests must not depend on how they are started.
for _signal, _handler in (
    (signal.SIGINT, signal.default_int_handler),
    (signal.SIGHUP, signal.SIG_DFL),
    (signal.SIGTERM, signal.SIG_DFL),
):
    if signal.getsignal(_signal) is signal.SIG_IGN:
        signal.signal(_signal, _handler)

import pytest

from support import effort
from support.command import REPOSITORY, Ahpatron

effort.choose_profile()


def pytest_make_parametrize_id(val: object) -> str | None:
    """Show lists, dicts and dataclasses in the ids of tests, which pytest would only number."""
    if dataclasses.is_dataclass(val) and not isinstance(val, type):
        return _shortened(str(val))
    if not isinstance(val, list | tuple | dict) or not _is_plain(val):
        return None
    if not val:
        return "none"
    if all(isinstance(word, str) for word in val) and not isinstance(val, dict):
        return _shortened(" ".join(val))
    return _shortened(str(val))


def _is_plain(value: object) -> bool:
    """Whether the text of a value is the same in every process, as pytest-xdist requires."""
    if isinstance(value, dict):
        return _is_plain([*value.keys(), *value.values()])
    if isinstance(value, list | tuple):
        return all(map(_is_plain, value))
    return isinstance(value, str | int | float | bytes | None)


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."


@pytest.fixture
def ahpatron(tmp_path: Path) -> Ahpatron:
    return Ahpatron(tmp_path)


@pytest.fixture(scope="session")
def rings() -> Path:
    return REPOSITORY / "sample_data" / "rings.svm"


@pytest.fixture(scope="session")
def sparse_text() -> Path:
    return REPOSITORY / "sample_data" / "sparse_text.svm"


@pytest.fixture(scope="session")
def breast_cancer() -> Path:
    return REPOSITORY / "sample_data" / "breast_cancer.svm"
