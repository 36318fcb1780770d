"""Closed and full streams, no terminal, disks that fail, many writers, a parent that dies."""

import errno
import os
import re
import shlex
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.model_file import load_model
from support.command import COMMAND, Ahpatron, workers
from support.models import MODEL

CALLS = [
    "run {rings} -B 4 --limit 100 --format json",
    "run --help",
    *(
        pytest.param(call, marks=pytest.mark.slow)
        for call in (
            "run {rings} -B 4 --limit 100",
            "sweep {rings} -B 4 --limit 100 --out r.jsonl",
            "sweep {rings} -B 4 --limit 100 --out r.jsonl -j 2 --repeats 3 --format csv",
            "inspect {rings}",
            "inspect --learners",
        )
    ),
]


@pytest.mark.parametrize("call", CALLS)
def test_streams_that_are_closed_or_full(ahpatron: Ahpatron, rings: Path, call: str) -> None:
    """Stderr is never the reason to fail, a pipe that nobody reads neither; a full disk is."""
    for redirection, code in (
        *((more, 0) for more in ("2>&-", "2> /dev/full", "2> >(true)", "| head -1", "| true")),
        *((more, 74) for more in ("> /dev/full", ">&-")),
    ):
        (ahpatron.folder / "r.jsonl").unlink(missing_ok=True)
        done = ahpatron.shell(
            f"ahpatron {call.format(rings=rings)} {redirection}; exit ${{PIPESTATUS[0]}}"
        )
        assert done.code == code, redirection
        assert bool(done.out) == (code == 0 and redirection != "| true")
        assert done.err.startswith("error: standard output" if code else "")
        assert "Traceback" not in done.err


PLAIN = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}


def as_under_cron(folder: Path, call: str) -> subprocess.CompletedProcess[bytes]:
    """No terminal at all, the C locale, hardly any environment."""
    return subprocess.run(
        [*COMMAND, *shlex.split(call)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        start_new_session=True,
        cwd=folder,
        env={name: os.environ.get(name, "") for name in ("PATH", "PYTHONPATH")} | PLAIN,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("call", "code"),
    [
        ("run {rings} -B 4 --limit 100 --certify --repeats 2", 0),
        ("run {rings} -B 4 --limit 100 --predictions -", 0),  # the table is on stderr
        ("sweep {rings} -g budget=4,8 --limit 100 --repeats 2 --out r.jsonl", 0),
        ("inspect {rings}", 0),
        ("learners", 0),
        ("run", 2),
        ("run {rings} --theorem 4 -p radius=90", 2),  # the message has √ and ε
    ],
)
def test_no_terminal_and_a_plain_locale(tmp_path: Path, rings: Path, call: str, code: int) -> None:
    """What people read has ASCII signs, and neither escapes nor colours."""
    done = as_under_cron(tmp_path, call.format(rings=rings))
    assert done.returncode == code, done.stderr
    for text in (done.stdout, done.stderr):
        assert text.isascii()
        assert b"\x1b" not in text
        assert b"\\" not in text


UMLAUTS = "x,ort,y\n" + "1,Köln,jä\n2,Bonn,nö\n3,Köln,nö\n" * 5


@pytest.mark.parametrize(
    "call",
    [
        "run u.csv --label y --id ort --predictions - -q",
        "run u.csv --label y --metrics --format markdown -q",
        "run u.csv --label y --format csv -q",
        "run u.csv --label y --positive jä --drop ort --format csv -q",
    ],
)
def test_data_and_documents_do_not_depend_on_the_locale(tmp_path: Path, call: str) -> None:
    """A label in a CSV file is the same under cron and at a desk."""
    (tmp_path / "u.csv").write_text(UMLAUTS, encoding="utf-8")
    done = as_under_cron(tmp_path, call)
    assert done.returncode == 0, done.stderr
    times = re.compile(rb"\d\.\d{3,}")  # seconds, among others
    usual = subprocess.run(
        [*COMMAND, *shlex.split(call)],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=120,
        check=True,
    )
    assert times.sub(b"", done.stdout) == times.sub(b"", usual.stdout)
    if "--format csv" not in call:
        assert "jä".encode() in done.stdout


QUIET = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)


@pytest.mark.slow
def test_four_sweeps_on_one_file(ahpatron: Ahpatron, rings: Path) -> None:
    """One writes, three are told so; again and again, until all trials are there once."""
    options = ("-g", "budget=20:100:20", "--repeats", "10", "--sigma", "0.1")
    words = ("sweep", rings, *options, "--out")
    ahpatron(*words, "whole.jsonl")
    started = [ahpatron.start(*words, "r.jsonl", **QUIET) for _ in range(4)]
    codes = sorted(process.wait(timeout=120) for process in started)
    assert codes[0] == 0
    assert set(codes[1:]) <= {0, 75}
    found = ahpatron.essence()
    assert found == ahpatron.essence("whole.jsonl")
    assert set(found.values()) == {1}


@pytest.mark.slow
def test_nothing_is_left_when_the_parent_dies(ahpatron: Ahpatron, rings: Path) -> None:
    words = ("sweep", rings, "--repeats", "2000", "-j", "2", "--out", "r.jsonl")
    results = ahpatron.folder / "r.jsonl"
    with ahpatron.start(*words, **QUIET) as process:
        while not results.exists() or results.read_bytes().count(b"\n") < 4:
            assert process.poll() is None
            time.sleep(0.02)
        children = workers(process.pid)
        process.kill()
    assert children
    deadline = time.monotonic() + 120  # a busy machine is no fault
    while any(Path(f"/proc/{child}/fd/0").exists() for child in children):
        assert time.monotonic() < deadline, "a worker outlives its parent"
        time.sleep(0.05)


def test_a_model_is_the_old_or_the_new_one_whatever_call_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The n-th system call of an atomic write fails, as a disk, a quota or a kill would."""
    path = tmp_path / "m.npz"
    calls = 0
    fails_at = 0

    def failing(real: Callable[..., object]) -> Callable[..., object]:
        def call(*arguments: object, **options: object) -> object:
            nonlocal calls
            calls += 1
            if calls == fails_at:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return real(*arguments, **options)

        return call

    while fails_at <= calls:
        fails_at = fails_at + 1
        calls = 0
        code = None
        path.write_bytes(b"old")
        with monkeypatch.context() as patch:
            for name in ("open", "fsync", "fchmod"):
                patch.setattr(os, name, failing(getattr(os, name)))
            patch.setattr(Path, "replace", failing(Path.replace))
            try:
                write_atomically(path, MODEL)
            except UserError as error:
                code = error.code
        assert code in (None, ExitCode.IO_ERROR, ExitCode.CANNOT_CREATE)
        assert path.read_bytes() == (MODEL if code is None else b"old"), fails_at
        assert [one.name for one in tmp_path.iterdir()] == ["m.npz"], fails_at
    assert fails_at > 4
    assert load_model(str(path)).header.rounds == 333
