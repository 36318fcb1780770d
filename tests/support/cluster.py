"""A Dask cluster on loopback, started as a user would."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Self


class Cluster:
    """A scheduler and two workers, which end with the `with` block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = folder / "scheduler.json"
        self.processes: list[subprocess.Popen[bytes]] = []
        self._start("scheduler", "--host", "127.0.0.1", "--port", "0")
        self.workers = [self.add_worker(), self.add_worker()]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.processes:
            process.kill()
            process.wait()

    @property
    def address(self) -> str:
        return str(json.loads(self._file.read_text())["address"])

    def add_worker(self) -> subprocess.Popen[bytes]:
        while not self._file.exists():
            assert self.processes[0].poll() is None, (self._folder / "log").read_text()
            time.sleep(0.05)
        return self._start("worker", "--nthreads", "1", "--no-nanny")

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        options = ("--no-dashboard", "--scheduler-file", str(self._file))
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *words, *options],
                cwd=self._folder,
                stdout=log,
                stderr=log,
            )
        self.processes.append(process)
        return process
