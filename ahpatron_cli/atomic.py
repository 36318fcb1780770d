"""Output files that are either complete or not there.

What we write goes to a temporary file in the same folder first; only when every byte is on the
disk does it take the name that the user asked for. Devices and pipes are written directly.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from ahpatron_cli.errors import ExitCode, Place, UserError

_FORMAT_OF = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".md": "markdown",
    ".tex": "latex",
    ".txt": "table",
}

_HINTS = {
    errno.ENOENT: "the folder does not exist; create it first",
    errno.ENOTDIR: "a part of this path is a file, not a folder",
    errno.EISDIR: "this is a folder; name a file in it",
    errno.EACCES: "you may not write here; choose another folder",
    errno.EPERM: "you may not write here; choose another folder",
    errno.EROFS: "this disk is read-only; choose another folder",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.ENOSPC: "free some space or choose another disk",
    errno.EDQUOT: "your disk quota is used up; free some space or choose another disk",
    errno.EFBIG: "the file would grow over the size limit of this system (see `ulimit -f`)",
}

_OPEN_STREAMS = ("/dev/std", "/dev/fd/", "/proc/self/fd/")
DISK_FAULTS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO})


def format_of_suffix(
    path: str | Path,
    device_format: str | None = None,
    formats: Mapping[str, str] = _FORMAT_OF,
) -> str:
    """The format that a file name asks for, of `formats` by suffix.

    A device such as /dev/stdout has no suffix to go by: it gets `device_format` where one is given.
    """
    suffix = Path(path).suffix.lower()
    if suffix in formats:
        return formats[suffix]
    if device_format is not None and is_device(Path(path)):
        return device_format
    suffix = Path(path).suffix
    problem = f"files ending in {suffix} cannot be written" if suffix else "the file has no suffix"
    hint = f"the suffix decides the format; use one of {' '.join(formats)}"
    raise UserError(problem, place=Place(str(path)), hint=hint)


def check_outputs(outputs: Mapping[str, str | None], inputs: Iterable[str]) -> None:
    """Refuse what cannot be written, over what is read, or twice to one file, before a long run.

    `outputs` maps options to paths.
    """
    taken = {os.path.realpath(path): "the data" for path in inputs}  # links are followed
    for option, path in outputs.items():
        if path is None or is_device(Path(path)):
            continue
        other = taken.setdefault(os.path.realpath(path), option)
        if other != option:
            problem = f"{option} and {other} name the same file"
            if other == "the data":
                problem = f"{option} would overwrite the data"
            raise UserError(problem, place=Place(path), hint="choose another file name")
        with open_atomically(path, trial=True):
            pass


def write_atomically(path: str | Path, content: str | bytes) -> None:
    """Write a file in one go: afterwards it holds all of `content`, or is as it was before."""
    with open_atomically(path) as output:
        output.write(content)


class Output:
    """Bytes straight to a descriptor, so that a full disk shows at the write that met it."""

    def __init__(self, descriptor: int, target: Path) -> None:
        self._descriptor = descriptor
        self._target = target

    def write(self, content: str | bytes) -> None:
        """Append a piece, best a large one; text is UTF-8. A failing disk is a `UserError`."""
        rest = memoryview(content.encode() if isinstance(content, str) else content)
        with _blaming(self._target, creating=False):
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]


@contextmanager
def open_at(path: str | Path, size: int) -> Iterator[Output]:
    """Continue a file after its first `size` bytes; what is written stays, whatever happens."""
    target = Path(path)
    with _blaming(target, creating=True):
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT, 0o666)
        os.ftruncate(descriptor, size)
        os.lseek(descriptor, size, os.SEEK_SET)
    try:
        yield Output(descriptor, target)
    finally:
        os.close(descriptor)


@contextmanager
def open_atomically(path: str | Path, *, trial: bool = False) -> Iterator[Output]:
    """Write a file piece by piece; it gets its name only if the block ends without an exception.

    With `trial` it never does: that only finds out whether it could.
    """
    target = Path(path)
    if is_device(target):
        with _blaming(target, creating=True):
            descriptor = os.open(target, os.O_WRONLY | os.O_APPEND | os.O_NOCTTY)
        try:
            yield Output(descriptor, target)
        finally:
            os.close(descriptor)
        return
    with _blaming(target, creating=True):
        real = target.resolve()  # a symbolic link stays, the file behind it is replaced
        if real.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        temporary = real.with_name(f".ahpatron-{secrets.token_hex(8)}.tmp")
        replaced = real.stat() if real.exists() else None
        if replaced and not os.access(real, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    try:  # from here on a signal may come at any moment, and must leave nothing behind
        with _blaming(target, creating=True):
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            yield Output(descriptor, target)
            with _blaming(target, creating=False):
                if replaced:
                    os.fchmod(descriptor, stat.S_IMODE(replaced.st_mode))
                os.fsync(descriptor)
        finally:
            with _blaming(target, creating=False):  # network disks may fail only now
                os.close(descriptor)
        if trial:
            temporary.unlink()
            return
        with _blaming(target, creating=True):
            temporary.replace(real)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(real.parent)


def is_device(path: Path) -> bool:
    """Whether to write to what is there in place of replacing it: a device, a pipe, our own stdout.

    /dev/stdout may well lead to a regular file, but one that somebody has opened for us.
    """
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    if stat.S_ISREG(mode):
        return str(path).startswith(_OPEN_STREAMS)
    return not stat.S_ISDIR(mode)


@contextmanager
def _blaming(target: Path, *, creating: bool) -> Iterator[None]:
    """Tell an `OSError` of the block as a fault of this output file."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader has had enough: no error of this file, the app ends quietly
    except OSError as fault:
        done, code = "written", ExitCode.IO_ERROR
        if creating and fault.errno not in DISK_FAULTS:
            done, code = "created", ExitCode.CANNOT_CREATE
        problem = f"the output cannot be {done}: {fault.strerror or fault}"
        hint = _HINTS.get(fault.errno or 0)
        raise UserError(problem, code=code, place=Place(str(target)), hint=hint) from fault


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Some file systems cannot; the files are safe already."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
