"""Running the real command in a real process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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


def modules_after(*arguments: object) -> set[str]:
    """The top-level modules that a call imports."""
    code = (
        "import sys\n"
        "from ahpatron_cli.cli.app import run_command\n"
        f"run_command({[str(argument) for argument in arguments]!r})\n"
        "print('\\n'.join(sorted({name.split('.')[0] for name in sys.modules})), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    return set(done.stderr.split())
