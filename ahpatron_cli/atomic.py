"""Output files that are either complete or absent.

Content goes to a temporary file in the same folder, which gets the name that the user asked for
when every byte is on the disk. Devices and pipes are written in place.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ahpatron_cli.errors import ExitCode, Place, UserError

FORMATS_BY_SUFFIX = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "table",
}
_HINTS = {
    errno.ENOENT: "the folder does not exist; create it first",
    errno.EISDIR: "this is a folder; name a file in it",
    errno.EACCES: "you may not write here; choose another folder",
    errno.ENOSPC: "free some space or choose another disk",
}
_OPEN_STREAMS = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def format_of_suffix(
    path: str | Path,
    device_format: str | None = None,
    formats: Mapping[str, str] = FORMATS_BY_SUFFIX,
) -> str:
    """The format of a file by its suffix; `device_format` for devices, which have no suffix."""
    suffix = Path(path).suffix
    if format := formats.get(suffix.lower()):
        return format
    if device_format is not None and is_device(Path(path)):
        return device_format
    problem = f"files ending in {suffix} cannot be written" if suffix else "the file has no suffix"
    hint = f"the suffix decides the format; use one of {' '.join(formats)}"
    raise UserError(problem, place=Place(str(path)), hint=hint)


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str]) -> None:
    """Refuse, before a long run, files that cannot be written, are read, or are written twice.

    `outputs` maps options to paths.
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
    """Write a file in one go: afterwards it holds all of `content`, or what it held before."""
    with open_atomically(path) as output:
        output.write(content)


class Output:
    """An open output file, unbuffered: a full disk shows at the write that met it."""

    def __init__(self, descriptor: int, target: Path) -> None:
        self.descriptor = descriptor
        self._target = target

    def write(self, content: str | bytes) -> None:
        """Append text (as UTF-8) or bytes. A failing disk is a `UserError`."""
        rest = memoryview(content.encode() if isinstance(content, str) else content)
        with _blaming(self._target):
            while rest:
                rest = rest[os.write(self.descriptor, rest) :]


@contextmanager
def _opened(path: Path, flags: int, target: Path) -> Iterator[Output]:
    with _blaming(target):
        descriptor = os.open(path, os.O_WRONLY | flags, 0o666)
    try:
        yield Output(descriptor, target)
    finally:
        with _blaming(target):  # network disks may fail only now
            os.close(descriptor)


@contextmanager
def open_at(path: str | Path, size: int) -> Iterator[Output]:
    """Continue a file after its first `size` bytes; what is written stays, whatever happens."""
    with _opened(Path(path), os.O_CREAT, Path(path)) as output:
        with _blaming(Path(path)):
            os.ftruncate(output.descriptor, size)
            os.lseek(output.descriptor, size, os.SEEK_SET)
        yield output


@contextmanager
def open_atomically(path: str | Path, *, trial: bool = False) -> Iterator[Output]:
    """Write a file piece by piece; it gets its name only if the block ends without an exception.

    A `trial` only finds out whether the file could be created.
    """
    target = Path(path)
    if is_device(target):
        with _opened(target, os.O_APPEND | os.O_NOCTTY, target) as output:
            yield output
        return
    real = target.resolve()  # a symbolic link stays, the file behind it is replaced
    mode = None
    with _blaming(target), suppress(FileNotFoundError):
        os.close(os.open(real, os.O_WRONLY))  # fails for folders and write-protected files
        mode = stat.S_IMODE(real.stat().st_mode)
    temporary = real.with_name(f".ahpatron-{secrets.token_hex(8)}.tmp")
    try:  # a signal may come at any moment, and must leave nothing behind
        with _opened(temporary, os.O_CREAT | os.O_EXCL, target) as output:
            yield output
            with _blaming(target):
                if mode is not None:
                    os.fchmod(output.descriptor, mode)
                os.fsync(output.descriptor)
        if not trial:
            with _blaming(target):
                temporary.replace(real)
            sync_folder(real.parent)
    finally:
        with suppress(OSError):  # after a success there is none
            temporary.unlink()


def is_device(path: Path) -> bool:
    """Whether to write to what is there instead of replacing it: a device, a pipe, our own stdout.

    /dev/stdout may lead to a regular file that somebody else has opened.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    named = str(path).startswith(_OPEN_STREAMS)
    return named if stat.S_ISREG(mode) else not stat.S_ISDIR(mode)


@contextmanager
def _blaming(target: Path) -> Iterator[None]:
    """Turn an `OSError` of the block into a fault of this output file."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has seen enough: no error
    except OSError as fault:
        done, code = "created", ExitCode.CANNOT_CREATE
        if fault.errno in DISK_FAULTS:
            done, code = "written", ExitCode.IO_ERROR
        problem = f"the output cannot be {done}: {fault.strerror or fault}"
        hint = _HINTS.get(fault.errno or 0)
        raise UserError(problem, code=code, place=Place(str(target)), hint=hint) from fault


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable; some file systems cannot."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
