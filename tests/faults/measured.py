"""Run a command in a small address space, and tell how it went: code, CPU seconds, peak memory.

A process of its own, and a small one: Linux counts what the process was before `exec` into the
peak of the process after it, and pytest is large. Started as

    python -I -S measured.py MEGABYTES REPORT COMMAND...
"""

import json
import os
import resource
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

LIMIT = 1024
"""MiB of address space."""


@dataclass(frozen=True)
class Measured:
    """How a command went."""

    code: int
    out: bytes
    err: str
    cpu: float
    megabytes: float


def measured(
    command: list[str], folder: Path, *, limit: int | None = LIMIT, **options: Any
) -> Measured:
    """Run it in this folder, with at most `limit` MiB of address space."""
    report_end, written_end = os.pipe()
    small = [sys.executable, "-I", "-S", __file__, str(limit or 0), str(written_end)]
    try:
        done = subprocess.run(
            [*small, *command],
            cwd=folder,
            capture_output=True,
            pass_fds=(written_end,),
            timeout=3600 if limit is None else 300,
            check=False,
            **options,
        )
    finally:
        os.close(written_end)
    with os.fdopen(report_end) as report:
        told = json.loads(report.read())
    return Measured(
        told["code"], done.stdout, done.stderr.decode(errors="replace"), told["cpu"], told["peak"]
    )


def _main() -> None:
    limit = int(sys.argv[1]) << 20
    report = int(sys.argv[2])
    if limit:
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    os.set_inheritable(report, False)
    child = os.fork()
    if not child:
        os.execv(sys.argv[3], sys.argv[3:])
    _, status, usage = os.wait4(child, 0)
    told = {
        "code": os.waitstatus_to_exitcode(status),
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak": usage.ru_maxrss / 1024,
    }
    os.write(report, json.dumps(told).encode())


if __name__ == "__main__":
    _main()
