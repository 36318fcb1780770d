"""Output files: complete or absent, whatever happens."""

import os
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ahpatron_cli.atomic import (
    check_outputs,
    open_atomically,
    temporary_folder,
    write_atomically,
)
from ahpatron_cli.errors import ExitCode, UserError

OLD = "the old content"


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("existing", [True, False])
def test_a_new_file_has_the_permissions_of_the_old_one_or_of_the_umask(
    tmp_path: Path, existing: bool
) -> None:
    """Those of the file that is replaced, or those of the umask."""
    target = tmp_path / "a.txt"
    if existing:
        target.write_text(OLD)
        target.chmod(0o640)
    before = os.umask(0o022 if existing else 0o027)
    try:
        write_atomically(target, "new")
    finally:
        os.umask(before)
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text(OLD)
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_atomically(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("nowhere/a.txt", ExitCode.CANNOT_CREATE),
        (".", ExitCode.CANNOT_CREATE),
        ("file/a.txt", ExitCode.CANNOT_CREATE),
        ("/proc/a.txt", ExitCode.CANNOT_CREATE),
        ("/dev/full", ExitCode.IO_ERROR),
    ],
)
def test_what_cannot_be_written_is_refused(tmp_path: Path, path: str, code: ExitCode) -> None:
    (tmp_path / "file").write_text(OLD)
    with pytest.raises(UserError) as caught:
        write_atomically(tmp_path / path, "x")
    assert caught.value.code is code
    assert caught.value.place
    assert caught.value.place.path == str(tmp_path / path)
    assert names_in(tmp_path) == ["file"]
    if code is ExitCode.CANNOT_CREATE:
        with pytest.raises(UserError):
            check_outputs({"--out": str(tmp_path / path)}, [])


def test_what_is_refused_before_a_run(tmp_path: Path) -> None:
    data = str(tmp_path / "data.svm")
    out = str(tmp_path / "r.csv")
    Path(data).symlink_to("real.svm")
    for outputs in ({"--out": str(tmp_path / "real.svm")}, {"--out": out, "--curve": out}):
        with pytest.raises(UserError):
            check_outputs(outputs, [data])
    check_outputs({"--out": out, "--curve": None}, [data])
    assert names_in(tmp_path) == ["data.svm"]


@pytest.mark.parametrize("existing", [True, False])
def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path, existing: bool) -> None:
    """With a limit on file size, as a full disk: the old file is whole, no temporary file stays."""
    target = tmp_path / "a.txt"
    if existing:
        target.write_text(OLD)
    program = (
        "import resource, sys; from ahpatron_cli.errors import UserError\n"
        "from ahpatron_cli.atomic import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))\n"
        "try: write_atomically(sys.argv[1], 'x' * 100_000)\n"
        "except UserError as error: assert error.code == 74\n"
        "else: raise AssertionError\n"
    )
    # coverage would write its own file under the same limit
    environment = {name: v for name, v in os.environ.items() if not name.startswith("COVERAGE")}
    subprocess.run([sys.executable, "-c", program, target], check=True, env=environment)
    assert names_in(tmp_path) == (["a.txt"] if existing else [])
    assert not existing or target.read_text() == OLD


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt])
def test_an_exception_between_two_pieces_leaves_nothing_behind(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    target = tmp_path / "a.txt"
    target.write_text(OLD)

    def write_half() -> None:
        with open_atomically(target) as output:
            output.write("half of ")
            raise fault("mine")

    with pytest.raises(fault, match=r"^mine$"):
        write_half()
    assert target.read_text() == OLD
    assert names_in(tmp_path) == ["a.txt"]


@pytest.mark.parametrize("target", ["a.txt", "/dev/null"])
def test_a_fault_of_another_file_is_not_a_fault_of_the_output(tmp_path: Path, target: str) -> None:
    """Whoever writes a file reads others, which may be damaged or gone."""

    def copy() -> None:
        with open_atomically(tmp_path / target) as output:
            output.write((tmp_path / "none.txt").read_text())

    with pytest.raises(FileNotFoundError, match=r"none\.txt"):
        copy()
    assert names_in(tmp_path) == []


def test_every_byte_is_on_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "a.txt"
    synced = []
    fsync = os.fsync

    def noted(descriptor: int) -> None:
        synced.append((os.fstat(descriptor).st_size, target.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted)
    write_atomically(target, "x" * 100_000)
    assert synced[0] == (100_000, False)
    assert len(synced) == 2  # the folder, too


def test_a_fifo_is_written_and_stays_a_fifo(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    read = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()))
    reader.start()
    write_atomically(fifo, "through the pipe")
    reader.join(timeout=120)
    assert read == ["through the pipe"]
    assert fifo.is_fifo()


WRITER = """
import sys
from ahpatron_cli.atomic import open_atomically
with open_atomically(sys.argv[1]) as output:
    output.write("half of ")
    print("begun", flush=True)
    sys.stdin.read()
"""


def temporary_in(folder: Path) -> list[Path]:
    return list(folder.glob(".ahpatron-*.tmp"))


def test_what_a_killed_process_left_is_removed_and_that_of_a_running_one_is_not(
    tmp_path: Path,
) -> None:
    """By the next process that writes to the folder, at once."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    write = [sys.executable, "-c", WRITER, str(tmp_path / "a.txt")]
    with subprocess.Popen(write, **pipes) as running:
        assert running.stdout.readline() == "begun\n"
        (alive,) = temporary_in(tmp_path)
        with subprocess.Popen(write, **pipes) as killed:
            assert killed.stdout.readline() == "begun\n"
            killed.kill()
        assert len(temporary_in(tmp_path)) == 2
        write_atomically(tmp_path / "b.txt", "new")
        assert temporary_in(tmp_path) == [alive]
        running.communicate()
    assert names_in(tmp_path) == ["a.txt", "b.txt"]


@pytest.mark.parametrize("days", [6, 8])
@pytest.mark.parametrize("name", ["0123456789abcdef", "0badcafe0bad-1-0123456789abcdef"])
def test_what_another_machine_or_version_1_0_left_is_removed_after_a_week(
    tmp_path: Path, name: str, days: int
) -> None:
    """Whether their processes are alive cannot be seen from here."""
    left = tmp_path / f".ahpatron-{name}.tmp"
    left.write_text("half of ")
    then = time.time() - days * 24 * 3600
    os.utime(left, (then, then))
    write_atomically(tmp_path / "a.txt", "new")
    assert left.exists() == (days < 7)


HOLDER = """
from ahpatron_cli.atomic import temporary_folder
with temporary_folder() as folder:
    (folder / "data").write_text("rows")
    print(folder, flush=True)
    input()
"""


def test_folders_of_killed_processes_are_removed_and_those_of_running_ones_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the next process that makes a temporary folder."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    hold = [sys.executable, "-c", HOLDER]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(hold, **pipes, env=environment) as running:
        alive = Path(running.stdout.readline().strip())
        with subprocess.Popen(hold, **pipes, env=environment) as killed:
            left = Path(killed.stdout.readline().strip())
            killed.kill()
        assert sorted(tmp_path.iterdir()) == sorted([alive, left])
        with temporary_folder() as own:
            assert sorted(tmp_path.iterdir()) == sorted([alive, own])
        assert (alive / "data").read_text() == "rows"
        running.communicate("\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["ahpatron-0badcafe0bad-1-abcdefgh", "ahpatron-of-mine", "link"])
def test_other_folders_and_links_are_not_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """Not even a link with the name of a folder that a killed process left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = tmp_path / name
    kept.mkdir()
    with temporary_folder() as folder:
        machine = folder.name.split("-")[1]
    nobody = 2**22 + 1  # larger than the number of any process
    link = tmp_path / f"ahpatron-{machine}-{nobody}-abcdefgh"
    link.symlink_to(kept)
    with temporary_folder():
        pass
    assert kept.is_dir()
    assert link.is_symlink()
