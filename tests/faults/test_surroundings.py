"""Pipes, full devices, closed streams, terminals and locales; disks that fail; many writers."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import time
from pathlib import Path

import pytest

from ahpatron_cli import atomic as files
from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.models import load_model
from support.command import COMMAND, Ahpatron
from support.models import MODEL
from support.sweep_command import essence
from support.terminal import in_terminal, lines_of

CALLS = [
    "run {rings} -B 4 --limit 100",
    pytest.param("run {rings} -B 4 --limit 100 --format json", marks=pytest.mark.slow),
    pytest.param("sweep {rings} -B 4 --limit 100 --out {folder}/r.jsonl", marks=pytest.mark.slow),
    pytest.param(
        "sweep {rings} -B 4 --limit 100 --out {folder}/r.jsonl -j 2 --repeats 3 --format csv",
        marks=pytest.mark.slow,
    ),
    pytest.param("inspect {rings}", marks=pytest.mark.slow),
]
BAD = "run {folder}/none.svm"


def shell(folder: Path, rings: Path, call: str, more: str) -> subprocess.CompletedProcess[bytes]:
    line = f"{' '.join(COMMAND)} {call.format(rings=rings, folder=folder)} {more}"
    return subprocess.run(["bash", "-c", line], capture_output=True, timeout=120, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_stderr_is_never_the_reason_to_fail(tmp_path: Path, rings: Path, call: str) -> None:
    """Closed, full, or a pipe that nobody reads: stdout and the exit code stay as they are."""
    wanted = shell(tmp_path, rings, call, "2> /dev/null")
    assert wanted.returncode == 0
    for more in ("2>&-", "2> /dev/full", "2> >(true)"):
        (tmp_path / "r.jsonl").unlink(missing_ok=True)
        done = shell(tmp_path, rings, call, more)
        assert done.returncode == 0, more
        assert len(done.stdout) > 0
        assert done.stdout.count(b"\n") == wanted.stdout.count(b"\n")
    for more in ("2>&-", "2> /dev/full"):
        assert shell(tmp_path, rings, BAD, more).returncode == 66


@pytest.mark.slow
@pytest.mark.parametrize("call", CALLS)
def test_stdout_that_is_closed_or_full(tmp_path: Path, rings: Path, call: str) -> None:
    done = shell(tmp_path, rings, call, "| head -1; exit ${PIPESTATUS[0]}")
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert done.stdout.count(b"\n") <= 1
    done = shell(tmp_path, rings, call, "> /dev/full")
    assert done.returncode == 74
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr
    done = shell(tmp_path, rings, call, ">&-")
    assert done.returncode == 74


@pytest.mark.parametrize("call", CALLS)
def test_no_terminal_and_a_plain_locale(tmp_path: Path, rings: Path, call: str) -> None:
    """As in a cron job: no terminal at all, the C locale, hardly any environment."""
    words = call.format(rings=rings, folder=tmp_path).split()
    done = subprocess.run(
        [*COMMAND, *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        env={
            "PATH": os.environ["PATH"],
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "LC_ALL": "C",
            "PYTHONUTF8": "0",
            "PYTHONCOERCECLOCALE": "0",
        },
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("term", ["dumb", "xterm-256color"])
def test_a_narrow_terminal(ahpatron: Ahpatron, term: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ahpatron.write("d.svm", "-1 1:1 2:2\n1 1:3 2:1\n" * 50)
    ahpatron.write("bad.svm", "-1 1:1\n1 x:3\n")
    monkeypatch.chdir(ahpatron.folder)
    for command in ("run d.svm -B 4", "sweep d.svm -B 4 --out r.jsonl", "inspect d.svm"):
        text, code = in_terminal(*command.split(), columns=40, TERM=term)
        assert code == 0
        body = [line for line in lines_of(text) if not line.startswith("d.svm")]
        if term == "dumb":  # as wide as for a pipe: its width cannot be known
            assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text)
        elif not command.startswith("inspect"):
            assert max(len(line) for line in body) <= 40, text
    text, code = in_terminal("run", "bad.svm", columns=40, TERM=term)
    assert code == 65
    assert "bad.svm:2:3" in text


@pytest.mark.slow
def test_four_sweeps_on_one_file(ahpatron: Ahpatron, rings: Path) -> None:
    """One writes, three are told so; again and again, until all trials are there once."""
    options = ("-g", "budget=20:100:20", "--repeats", "10", "--sigma", "0.1")
    command = [*COMMAND, "sweep", str(rings), *options, "--out", "r.jsonl"]
    ahpatron("sweep", rings, *options, "--out", "whole.jsonl")
    started = [
        subprocess.Popen(
            command, cwd=ahpatron.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        for _ in range(4)
    ]
    codes = sorted(process.wait(timeout=120) for process in started)
    assert codes[0] == 0
    assert set(codes[1:]) <= {0, 75}
    found = essence(ahpatron.folder / "r.jsonl")
    assert found == essence(ahpatron.folder / "whole.jsonl")
    assert set(found.values()) == {1}


@pytest.mark.slow
def test_nothing_is_left_when_the_parent_dies(ahpatron: Ahpatron, rings: Path) -> None:
    command = [*COMMAND, "sweep", str(rings), "--repeats", "2000", "-j", "2", "--out", "r.jsonl"]
    with subprocess.Popen(
        command, cwd=ahpatron.folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        results = ahpatron.folder / "r.jsonl"
        while not results.exists() or results.read_bytes().count(b"\n") < 4:
            time.sleep(0.02)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        process.kill()
    assert children
    deadline = time.monotonic() + 2
    while any(Path(f"/proc/{child}/fd/0").exists() for child in children):
        assert time.monotonic() < deadline, "a worker outlived its parent by 2 s"
        time.sleep(0.05)


class FailingCalls:
    """Lets the n-th system call of an atomic write fail, as a disk, a quota or a kill would."""

    NAMES = ("open", "fsync", "fchmod")

    def __init__(self, fails_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls = 0
        self._fails_at = fails_at
        for name in self.NAMES:
            monkeypatch.setattr(files.os, name, self._failing(name, getattr(os, name)))
        monkeypatch.setattr(files.Path, "replace", self._failing("replace", Path.replace))

    def _failing(self, name: str, real: object) -> object:
        def call(*arguments: object, **options: object) -> object:
            self.calls += 1
            if self.calls == self._fails_at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **options)  # type: ignore[operator]

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
    done = subprocess.run(
        ["unshare", "-rm", "bash", "-c", line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if "74" not in done.stdout:
        pytest.skip(f"no file system may be mounted here: {done.stderr[:80]}")
    code, settings = done.stdout.split()
    assert (code, settings) == ("74", "1")  # what was stored before can be read
    assert "No space left on device" in (tmp_path / "err").read_text()
    assert (tmp_path / "out").read_text() == ""
