"""What holds for all tests."""

from __future__ import annotations

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
