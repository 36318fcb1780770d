"""Running the real command in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[2]
COMMAND = [sys.executable, "-m", "ahpatron_cli"]


@dataclass(frozen=True)
class Outcome:
    code: int
    out: str
    err: str


class Ahpatron:
    """Calls `ahpatron` with these arguments, in an empty folder of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(
        self, *arguments: object, stdin: bytes | None = None, **environment: str
    ) -> Outcome:
        done = subprocess.run(
            [*COMMAND, *map(str, arguments)],
            input=stdin if stdin is not None else b"",
            capture_output=True,
            cwd=self.folder,
            env={**os.environ, "PYTHONWARNINGS": "error", **environment},
            timeout=60,
            check=False,
        )
        return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def files(self) -> set[str]:
        return {path.name for path in self.folder.iterdir()}


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
