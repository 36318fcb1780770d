"""Atomic writing of output files: a file is either complete or absent.

Content is written to a temporary file in the same folder, which is renamed when every byte is on
disk. Devices and pipes are written in place. A process that is killed leaves its temporary file
behind; the next one that writes to the folder removes it. The same goes for temporary folders.
"""

from __future__ import annotations

import errno
import hashlib
import io
import os
import platform
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from ahpatron_cli.errors import ExitCode, Place, UserError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

Output: TypeAlias = IO[Any]
FORMATS_BY_SUFFIX = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "table",
}
_PREFIX = ".ahpatron-"
_SUFFIX = ".tmp"
_FOLDER = re.compile(r"ahpatron-(?P<machine>[0-9a-f]{12})-(?P<process>[0-9]+)-\w+")
"""Names of temporary folders."""
_OLD_SECONDS = 7 * 24 * 3600
"""Age at which a temporary file of another machine, or of version 1.0, is taken as left over."""
DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def format_of_suffix(
    path: str | Path,
    device_format: str | None = None,
    formats: Mapping[str, str] = FORMATS_BY_SUFFIX,
) -> str:
    """Format of a file by its suffix; `device_format` is that of devices, which have none."""
    file = Path(path)
    format = formats.get(file.suffix.lower())
    if format is None and is_device(file):
        format = device_format
    if format is None:
        suffixes = " or ".join(formats)
        hint = f"the suffix decides the format; use {suffixes}"
        raise UserError("the suffix of the file is unknown", place=Place(str(path)), hint=hint)
    return format


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str]) -> None:
    """Refuse output files that cannot be written, are also inputs, or are given twice.

    `outputs` maps options to paths. Called before a long run.
    """
    taken = {os.path.realpath(path): "the data" for path in inputs}  # links are followed
    for option, path in outputs.items():
        if path is None or is_device(Path(path)):
            continue
        other = taken.setdefault(os.path.realpath(path), option)
        if other != option:
            problem = f"{option} would overwrite {other}"
            raise UserError(problem, place=Place(path), hint="choose another file name")
        with open_atomically(path, trial=True):
            pass


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file atomically: on failure, the previous content is kept."""
    mode = "w" if isinstance(content, str) else "wb"
    with open_atomically(path, mode) as output:
        output.write(content)


@contextmanager
def open_atomically(path: str | Path, mode: str = "w", *, trial: bool = False) -> Iterator[Output]:
    """Context manager: a file that gets its name only if the block ends without an exception.

    With `trial`, only check whether the file could be created.
    """
    target = Path(path)
    if is_device(target):
        with _opened(target, target, flags=os.O_APPEND | os.O_NOCTTY, mode=mode) as output:
            yield output
        return
    real = target.resolve()  # follow a symbolic link, and replace its target
    _remove_leftovers(real.parent)
    temporary = real.parent / _temporary_name()
    try:  # a signal may arrive at any time and must not leave a temporary file
        with _opened(temporary, target, flags=os.O_CREAT | os.O_EXCL, mode=mode) as output:
            with _faults_of(target):
                if real.exists():
                    os.close(os.open(real, os.O_WRONLY))  # fails for folders and protected files
                    permissions = stat.S_IMODE(real.stat().st_mode)
                    os.fchmod(output.fileno(), permissions)
            yield output
            output.flush()
            with _faults_of(target):
                os.fsync(output.fileno())
                if not trial:
                    temporary.replace(real)
                    sync_folder(real.parent)
    finally:
        try:
            _remove(temporary)
        finally:  # a signal may have interrupted the first attempt
            _remove(temporary)


def _temporary_name() -> str:
    """A new name that says which process writes the file: its machine and its number."""
    number = secrets.token_hex(8)
    return f"{_PREFIX}{_machine()}-{os.getpid()}-{number}{_SUFFIX}"


@cache
def _machine() -> str:
    """Text that is equal only for processes whose numbers refer to the same running processes.

    Folders may be shared by computers (NFS) and by containers, each with its own numbers.
    """
    facts = [platform.node()]
    with suppress(OSError):  # there is no /proc
        facts.append(Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii"))
        namespace = Path("/proc/self/ns/pid").readlink()
        facts.append(str(namespace))
    text = "\n".join(facts)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


@cache  # once in a process
def _remove_leftovers(folder: Path) -> None:
    """Remove temporary files in a folder whose writers were killed."""
    with suppress(OSError):  # the folder may not exist or not be readable
        for path in folder.glob(f"{_PREFIX}*{_SUFFIX}"):
            if _is_left_over(path):
                _remove(path)


def _is_left_over(path: Path) -> bool:
    """Whether the writer of a temporary file is gone; elsewhere, whether the file is old."""
    own_name = path.name.removeprefix(_PREFIX)
    machine, _, rest = own_name.partition("-")
    number, _, _ = rest.partition("-")
    if machine == _machine() and number.isdecimal():
        return not _is_running(int(number))
    try:
        age = time.time() - path.stat().st_mtime
        return age > _OLD_SECONDS
    except OSError:  # it was renamed or removed meanwhile
        return False


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """Context manager: a folder that is removed at the end, and those that killed processes left.

    A killed process cannot remove its folder.
    """
    _remove_folders_left_over(Path(gettempdir()))
    prefix = f"ahpatron-{_machine()}-{os.getpid()}-"
    with TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        yield Path(folder)


def _remove_folders_left_over(parent: Path) -> None:
    """Remove our temporary folders whose processes are gone.

    Folders of another user, machine or container stay, and so do links: only here do the names say
    whether the process is still running.
    """
    with suppress(OSError):
        for path in parent.iterdir():
            name = _FOLDER.fullmatch(path.name)
            if name is None or name["machine"] != _machine():
                continue
            if _is_own_folder(path) and not _is_running(int(name["process"])):
                shutil.rmtree(path, ignore_errors=True)


def _is_own_folder(path: Path) -> bool:
    """Whether a path is a folder of this user, and no link to one."""
    try:
        status = path.lstat()
    except OSError:  # another process has removed it
        return False
    is_folder = stat.S_ISDIR(status.st_mode)
    return is_folder and status.st_uid == os.geteuid()


def _is_running(process: int) -> bool:
    """Whether there is a process with this number."""
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass  # it belongs to another user
    return True


def _remove(path: Path) -> None:
    with suppress(OSError):  # it does not exist after a success
        path.unlink()


@contextmanager
def open_at(path: str | Path, size: int) -> Iterator[Output]:
    """Context manager: append to a text file after its first `size` bytes, not atomically."""
    target = Path(path)
    with _opened(target, target, flags=os.O_CREAT | os.O_APPEND, mode="a") as output:
        with _faults_of(target):
            os.ftruncate(output.fileno(), size)
        yield output


@contextmanager
def _opened(path: Path, target: Path, *, flags: int, mode: str) -> Iterator[Output]:
    """Context manager: an open file; its own faults, and no others, name `target`."""
    with _faults_of(target):
        descriptor = os.open(path, os.O_WRONLY | flags, 0o666)
    with io.BufferedWriter(_OutputFile(descriptor, target)) as buffered:
        if "b" in mode:
            yield buffered
        else:
            with io.TextIOWrapper(buffered, encoding="utf-8", newline="") as text:
                yield text


class _OutputFile(io.FileIO):
    """Unbuffered output file whose faults are `UserError`s that name `target`.

    They arise while the caller writes, among errors of other files that it reads.
    """

    def __init__(self, descriptor: int, target: Path) -> None:
        super().__init__(descriptor, "w")
        self._target = target

    def write(self, data: ReadableBuffer, /) -> int:
        with _faults_of(self._target):
            return super().write(data)

    def close(self) -> None:
        with _faults_of(self._target):
            super().close()


@contextmanager
def _faults_of(target: Path) -> Iterator[None]:
    """Context manager: an `OSError` becomes a `UserError` that names the output file `target`."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has closed the pipe: not an error
    except OSError as fault:
        full = fault.errno in DISK_FAULTS
        raise UserError(
            f"the output cannot be written: {fault.strerror or fault}",
            code=ExitCode.IO_ERROR if full else ExitCode.CANNOT_CREATE,
            place=Place(str(target)),
        ) from fault


def is_device(path: Path) -> bool:
    """Whether a path is a device, a pipe or our own stdout, which is written in place.

    /dev/stdout may refer to a regular file that another process has opened.
    """
    mode = _mode(path)
    if mode is None:
        return False
    if stat.S_ISREG(mode):
        return str(path).startswith(("/dev/std", "/dev/fd/", "/proc/self/fd/"))
    return not stat.S_ISDIR(mode)


def exists(path: str | Path) -> bool:
    """Whether there is such a file; False if its name is too long, or its folder is closed to us.

    `Path.exists` raises an `OSError` then.
    """
    return _mode(Path(path)) is not None


def is_file(path: str | Path) -> bool:
    """Whether there is such a file, and it is a regular one."""
    mode = _mode(Path(path))
    return mode is not None and stat.S_ISREG(mode)


def _mode(path: Path) -> int | None:
    """Type and permissions of a file; None if it cannot be found."""
    try:
        return path.stat().st_mode
    except OSError:
        return None


def sync_folder(folder: Path) -> None:
    """Flush the entries of a folder to disk, if the file system supports it."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
