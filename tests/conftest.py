"""What holds for all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

for _library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):  # before NumPy: as the command does
    os.environ[f"{_library}_NUM_THREADS"] = "1"

import pytest

from support import effort
from support.cluster import Cluster
from support.command import REPOSITORY, Ahpatron
from support.terminal import FakeTerminal

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


@pytest.fixture
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("dask")) as started:
        yield started


@pytest.fixture
def terminal() -> FakeTerminal:
    return FakeTerminal()
