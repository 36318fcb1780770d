"""Closed and full streams, no terminal, disks that fail, many writers, a parent that dies."""

from __future__ import annotations

import errno
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ahpatron_cli import atomic as files
from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.models import load_model
from support.command import COMMAND, Ahpatron
from support.models import MODEL
from support.sweep_command import essence

CALLS = [
    "run {rings} -B 4 --limit 100 --format json",
    "sweep {rings} -B 4 --limit 100 --out {folder}/r.jsonl",
    "sweep {rings} -B 4 --limit 100 --out {folder}/r.jsonl -j 2 --repeats 3 --format csv",
    "inspect {rings}",
]


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_streams_that_are_closed_or_full(tmp_path: Path, rings: Path, call: str) -> None:
    """Stderr is never the reason to fail, a pipe that nobody reads neither; a full disk is."""
    for redirection, code in (
        *((more, 0) for more in ("2>&-", "2> /dev/full", "2> >(true)", "| head -1")),
        *((more, 74) for more in ("> /dev/full", ">&-")),
    ):
        (tmp_path / "r.jsonl").unlink(missing_ok=True)
        words = call.format(rings=rings, folder=tmp_path)
        line = f"{' '.join(COMMAND)} {words} {redirection}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", line], capture_output=True, timeout=120, check=False)
        assert done.returncode == code, redirection
        assert bool(done.stdout) == (code == 0)
        assert b"Traceback" not in done.stderr


@pytest.mark.parametrize("call", ["run {rings} -B 4 --limit 100"])
def test_no_terminal_and_a_plain_locale(tmp_path: Path, rings: Path, call: str) -> None:
    """As in a cron job: no terminal at all, the C locale, hardly any environment."""
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run(
        [*COMMAND, *call.format(rings=rings, folder=tmp_path).split()],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        env={name: os.environ.get(name, "") for name in ("PATH", "PYTHONPATH")} | plain,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.slow
def test_four_sweeps_on_one_file(ahpatron: Ahpatron, rings: Path) -> None:
    """One writes, three are told so; again and again, until all trials are there once."""
    options = ("-g", "budget=20:100:20", "--repeats", "10", "--sigma", "0.1")
    command = [*COMMAND, "sweep", str(rings), *options, "--out", "r.jsonl"]
    ahpatron("sweep", rings, *options, "--out", "whole.jsonl")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    started = [subprocess.Popen(command, cwd=ahpatron.folder, **quiet) for _ in range(4)]
    codes = sorted(process.wait(timeout=120) for process in started)
    assert codes[0] == 0
    assert set(codes[1:]) <= {0, 75}
    found = essence(ahpatron.folder / "r.jsonl")
    assert found == essence(ahpatron.folder / "whole.jsonl")
    assert set(found.values()) == {1}


@pytest.mark.slow
def test_nothing_is_left_when_the_parent_dies(ahpatron: Ahpatron, rings: Path) -> None:
    command = [*COMMAND, "sweep", str(rings), "--repeats", "2000", "-j", "2", "--out", "r.jsonl"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, cwd=ahpatron.folder, **quiet) as process:
        results = ahpatron.folder / "r.jsonl"
        while not results.exists() or results.read_bytes().count(b"\n") < 4:
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
    assert children
    while any(Path(f"/proc/{child}/fd/0").exists() for child in children):
        time.sleep(0.05)  # for ever, if a worker outlives its parent


class FailingCalls:
    """Lets the n-th system call of an atomic write fail, as a disk, a quota or a kill would."""

    def __init__(self, fails_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self._fails_at = fails_at
        for name in ("open", "fsync", "fchmod"):
            monkeypatch.setattr(files.os, name, self._failing(getattr(os, name)))
        monkeypatch.setattr(files.Path, "replace", self._failing(Path.replace))

    def _failing(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            self.calls += 1
            if self.calls == self._fails_at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **options)

        return call


def test_a_model_is_the_old_or_the_new_one_whatever_call_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.npz"
    faults = 0
    for fails_at in range(1, 100):
        path.write_bytes(b"old")
        with monkeypatch.context() as patch:
            calls = FailingCalls(fails_at, patch)
            try:
                write_atomically(path, MODEL)
                code = None
            except UserError as error:
                code = error.code
        if calls.calls < fails_at:
            break
        faults += 1
        assert code in (None, ExitCode.IO_ERROR, ExitCode.CANNOT_CREATE)
        assert path.read_bytes() == (MODEL if code is None else b"old"), fails_at
        assert [one.name for one in tmp_path.iterdir()] == ["m.npz"], fails_at
    assert faults >= 4
    assert load_model(str(path)).header.rounds == 333


@pytest.mark.slow
def test_a_small_disk(tmp_path: Path, rings: Path) -> None:
    """A real full disk, where one may be mounted; elsewhere `ulimit -f` stands for it."""
    line = (
        "mount -t tmpfs -o size=64k none disk && cd disk && "
        f"{' '.join(COMMAND)} sweep {rings} -B 20 --repeats 400 --out r.jsonl > ../out 2> ../err; "
        f"echo $?; {' '.join(COMMAND)} report r.jsonl -q --format jsonl | wc -l; cd ..; umount disk"
    )
    (tmp_path / "disk").mkdir()
    words = ["unshare", "-rm", "bash", "-c", line]
    options = {"capture_output": True, "text": True, "timeout": 120, "check": False}
    done = subprocess.run(words, cwd=tmp_path, **options)
    if "74" not in done.stdout:
        pytest.skip(f"no file system may be mounted here: {done.stderr[:80]}")
    assert done.stdout.split() == ["74", "1"]  # what was stored before can be read
    assert "No space left on device" in (tmp_path / "err").read_text()
    assert (tmp_path / "out").read_text() == ""
