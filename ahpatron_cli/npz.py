"""Uncompressed .npz archives of arrays, with a reader that is safe for untrusted files.

Sizes of all entries are checked against the file before memory is allocated, and headers of arrays
are compared with the expected bytes, not parsed: no pickle is ever read.
"""

from __future__ import annotations

import errno
import io
import math
import os
import stat
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO

import msgspec
import numpy as np

from ahpatron_cli.atomic import is_file
from ahpatron_cli.core.errors import StateError

_FAULTS = (
    zipfile.BadZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    OverflowError,
    msgspec.MsgspecError,
    UnicodeDecodeError,
    RecursionError,
)
"""All that zipfile and msgspec raise for bytes that they did not write."""
HEAD = 128
"""Size of the header of an .npy file in bytes."""
MOST_ENTRIES = 64_000


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Bytes of an archive of these arrays, in this order; deterministic."""
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            head = _head(array.dtype.str, array.shape)
            archive.writestr(info, head + array.tobytes())
    return target.getvalue()


def _head(dtype: str, shape: Sequence[int]) -> bytes:
    """The header of an .npy file for this dtype and shape."""
    start = b"\x93NUMPY\x01\x00\x76\x00"
    words = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {tuple(shape)}, }}"
    padded = words.ljust(HEAD - len(start) - 1).encode()
    return start + padded + b"\n"


def is_archive(path: str) -> bool:
    """Whether this is a regular file that starts like a zip archive."""
    # a named pipe must not be opened to look at it: its writer would lose its reader
    if path == "-" or not is_file(path):
        return False
    try:
        with _open(path) as stream:
            return _is_regular(stream) and stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def _open(path: str) -> BinaryIO:
    """Open a file for reading; a pipe without a writer does not block."""
    nonblocking = getattr(os, "O_NONBLOCK", 0)
    return open(path, "rb", opener=lambda name, flags: os.open(name, flags | nonblocking))


def _is_regular(stream: BinaryIO) -> bool:
    return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def entries(path: str) -> list[str]:
    """Names of the entries of an archive; empty if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.namelist()
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError):
        return []


@contextmanager
def opened(path: str) -> Iterator[zipfile.ZipFile]:
    """Open an archive for reading; any fault in its bytes raises `StateError`.

    Another process may replace the file at any time: all is read from the file that was opened.
    """
    try:
        with _open(path) as stream:
            if not _is_regular(stream):
                raise StateError("it is not a regular file")
            with zipfile.ZipFile(stream) as archive:
                size = os.fstat(stream.fileno()).st_size
                _check_sizes(archive.infolist(), size)
                yield archive
    except _FAULTS as error:
        raise StateError(str(error) or type(error).__name__) from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise StateError("it has an offset before its first byte") from None


def time_written(archive: zipfile.ZipFile) -> float:
    """When the file of an opened archive was written, in seconds since 1970."""
    assert archive.fp is not None
    return os.fstat(archive.fp.fileno()).st_mtime


def _check_sizes(infos: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Refuse entries that are compressed, duplicated or larger than the file."""
    names = {info.filename for info in infos}
    if len(names) < len(infos) or len(infos) > MOST_ENTRIES:
        raise StateError("it has too many entries, or duplicates")
    for info in infos:
        is_packed = info.compress_type != zipfile.ZIP_STORED
        is_encrypted = bool(info.flag_bits & 0x1)
        if is_packed or is_encrypted or info.file_size != info.compress_size:
            raise StateError(f"{info.filename[:40]} is packed or encrypted, or has two sizes")
    total = sum(info.file_size for info in infos)
    if total > size:
        raise StateError("its entries are larger than the file")


def read(archive: zipfile.ZipFile, name: str, dtype: str, shape: Sequence[int]) -> np.ndarray:
    """Read an array; `StateError` if its size or header is not as expected."""
    info = archive.getinfo(f"{name}.npy")
    expected = HEAD + math.prod(shape) * np.dtype(dtype).itemsize
    if info.file_size != expected:
        raise StateError(f"{name} does not have the expected size")
    content = archive.read(info)
    if not content.startswith(_head(dtype, shape)):
        raise StateError(f"{name} is not an array of the expected type and shape")
    values = np.frombuffer(content, dtype=dtype, offset=HEAD)
    return values.reshape(shape)
