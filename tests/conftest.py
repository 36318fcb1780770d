"""What holds for all tests."""

from __future__ import annotations

import os
from pathlib import Path

for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):  # before NumPy: as the command does
    os.environ[f"{_library}_NUM_THREADS"] = "1"

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
