import errno
import os
import resource
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from ahpatron_cli.atomic import format_of_suffix, open_atomically, write_atomically
from ahpatron_cli.errors import ExitCode, UserError

OLD = "the old content"


def refusal(path: str | Path, content: str = "x") -> UserError:
    with pytest.raises(UserError) as caught:
        write_atomically(path, content)
    error = caught.value
    assert error.place.path == str(path)
    return error


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes_arrive(tmp_path: Path) -> None:
    write_atomically(tmp_path / "a.txt", "ζ\n")
    write_atomically(str(tmp_path / "b.png"), b"\x89PNG")
    assert (tmp_path / "a.txt").read_text(encoding="utf-8") == "ζ\n"
    assert (tmp_path / "b.png").read_bytes() == b"\x89PNG"
    assert names_in(tmp_path) == ["a.txt", "b.png"]


def test_an_old_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text(OLD)
    target.chmod(0o640)
    write_atomically(target, "new")
    assert target.read_text() == "new"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_gets_the_permissions_of_the_umask(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        write_atomically(tmp_path / "a.txt", "new")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "a.txt").stat().st_mode) == 0o640


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text(OLD)
    (tmp_path / "link.txt").symlink_to("real.txt")
    write_atomically(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"


def test_a_missing_folder(tmp_path: Path) -> None:
    error = refusal(tmp_path / "nowhere" / "a.txt")
    assert error.code is ExitCode.CANNOT_CREATE
    assert error.problem == "the output cannot be created: No such file or directory"
    assert error.hint == "the folder does not exist; create it first"
    assert names_in(tmp_path) == []


def test_a_folder_as_the_target(tmp_path: Path) -> None:
    error = refusal(tmp_path)
    assert error.code is ExitCode.CANNOT_CREATE
    assert error.hint == "this is a folder; name a file in it"


def test_a_folder_is_refused_before_any_work_is_done(tmp_path: Path) -> None:
    entered = False
    with pytest.raises(UserError), open_atomically(tmp_path):
        entered = True
    assert not entered


def test_a_disk_too_full_for_a_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "open", no_space)
    assert refusal(tmp_path / "a.txt").code is ExitCode.IO_ERROR


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text(OLD)
    assert refusal(tmp_path / "file" / "a.txt").code is ExitCode.CANNOT_CREATE


def test_a_folder_that_nothing_can_be_written_to() -> None:
    assert refusal("/proc/a.txt").code is ExitCode.CANNOT_CREATE


@pytest.mark.skipif(os.geteuid() == 0, reason="to root nothing is forbidden")
def test_a_write_protected_file(tmp_path: Path) -> None:
    target = tmp_path / "a.txt"
    target.write_text(OLD)
    target.chmod(0o444)
    assert refusal(target).code is ExitCode.CANNOT_CREATE
    assert target.read_text() == OLD


def test_a_full_device() -> None:
    error = refusal("/dev/full")
    assert error.code is ExitCode.IO_ERROR
    assert error.problem == "the output cannot be written: No space left on device"
    assert error.hint == "free some space or choose another disk"


@pytest.mark.parametrize("existing", [True, False])
def test_a_disk_that_fills_up_leaves_nothing_behind(tmp_path: Path, existing: bool) -> None:
    """With a limit on file size, as a full disk: the old file is whole, no temporary file stays."""
    target = tmp_path / "a.txt"
    if existing:
        target.write_text(OLD)
    program = (
        "import sys; from ahpatron_cli.errors import UserError\n"
        "from ahpatron_cli.atomic import write_atomically\n"
        "try: write_atomically(sys.argv[1], 'x' * 100_000)\n"
        "except UserError as error: print(error.code.value, error.problem, '/', error.hint)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, target],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)),
        # coverage would write its own file under the same limit
        env={name: v for name, v in os.environ.items() if not name.startswith("COVERAGE")},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stderr == ""
    assert done.stdout.startswith("74 the output cannot be written: File too large / ")
    assert names_in(tmp_path) == (["a.txt"] if existing else [])
    if existing:
        assert target.read_text() == OLD


@pytest.mark.parametrize("fault", [ValueError, KeyboardInterrupt, OSError])
def test_an_exception_between_two_pieces_leaves_nothing_behind(
    tmp_path: Path, fault: type[BaseException]
) -> None:
    """And is not blamed on the output: it may well be the input that cannot be read."""
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


def test_pieces_are_joined(tmp_path: Path) -> None:
    with open_atomically(tmp_path / "a.txt") as output:
        output.write("one ")
        output.write(b"two")
        assert not (tmp_path / "a.txt").exists()
    assert (tmp_path / "a.txt").read_text() == "one two"


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


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_is_not_replaced_under_the_shells_feet(tmp_path: Path, name: str) -> None:
    """`--out /dev/stdout > file`: what was printed before stays, ours follows."""
    target = tmp_path / "out.txt"
    program = (
        "import sys; from ahpatron_cli.atomic import write_atomically\n"
        "print('before', flush=True); write_atomically(sys.argv[1], 'between\\n'); print('after')"
    )
    with target.open("a") as stream:
        subprocess.run(
            [sys.executable, "-c", program, name], stdout=stream, check=True, timeout=120
        )
    assert target.read_text() == "before\nbetween\nafter\n"


def test_a_closed_pipe_is_left_to_the_app(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(BrokenPipeError):
            write_atomically(f"/dev/fd/{writer}", "x")
    finally:
        os.close(writer)


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("a.json", "json"),
        ("a.jsonl", "jsonl"),
        ("a.csv", "csv"),
        ("a.md", "markdown"),
        ("a.tex", "latex"),
        ("a.txt", "table"),
        ("b/A.B.JSON", "json"),
    ],
)
def test_the_suffix_decides_the_format(path: str, format: str) -> None:
    assert format_of_suffix(path) == format


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("a.xlsx", "files ending in .xlsx cannot be written"),
        ("results", "the file has no suffix"),
        (".json", "the file has no suffix"),
    ],
)
def test_an_unknown_suffix_is_refused_with_the_legal_ones(path: str, problem: str) -> None:
    with pytest.raises(UserError) as caught:
        format_of_suffix(path, device_format="csv")
    assert caught.value.code is ExitCode.USAGE
    assert caught.value.problem == problem
    assert caught.value.hint == (
        "the suffix decides the format; use one of .json .jsonl .csv .md .tex .txt"
    )


def test_a_device_takes_the_format_of_the_screen() -> None:
    assert format_of_suffix("/dev/stdout", device_format="csv") == "csv"
    with pytest.raises(UserError):
        format_of_suffix("/dev/stdout")
