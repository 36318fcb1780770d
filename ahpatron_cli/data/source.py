"""Where the bytes of a data file come from: a path, a pipe or standard input, unpacked as a stream.

Compression is recognised by content, because names lie. What is recognised as something else
(a zip archive, a PDF, a NumPy array) is refused by its name: that helps more than a complaint about
a strange byte in line 1. The raw bytes are hashed as they pass, so a run can say exactly what it
played without reading the file twice.
"""

from __future__ import annotations

import bz2
import difflib
import hashlib
import io
import lzma
import os
import shlex
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from ahpatron_cli.errors import ExitCode, Place, Remedy, UserError, bad_data

STDIN_NAME = "<stdin>"
MAX_LINE = 16 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
RAW_BLOCK = 1 << 16
HEAD_BYTES = 512  # enough to recognise every format below; tar keeps its mark at byte 257
XZ_MEMORY = 128 << 20  # twice what `xz -9` needs; a forged header may ask for 4 GiB

LIBSVM = "LIBSVM text"
TEXT_HINT = "a LIBSVM file is text, one example per line: `label index:value index:value ...`"

# first bytes, what they mean, and the command that unpacks it to standard output (if any)
FOREIGN_FORMATS: tuple[tuple[bytes, str, str | None], ...] = (
    (b"\x28\xb5\x2f\xfd", "a zstd archive", "zstd -dc"),
    (b"PK\x03\x04", "a zip archive", "unzip -p"),
    (b"PK\x05\x06", "an empty zip archive", None),
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "7z x -so"),
    (b"\x04\x22\x4d\x18", "an lz4 archive", "lz4 -dc"),
    (b"Rar!\x1a\x07", "a rar archive", "unrar p -inul"),
    (b"\x1f\x9d", "a .Z archive (compress)", "uncompress -c"),
    (b"LZIP", "an lzip archive", "lzip -dc"),
    (b"version https://git-lfs", "a Git LFS pointer whose data were not fetched", None),
    (b"%%MatrixMarket", "a Matrix Market file", None),
    (b"%PDF-", "a PDF document", None),
    (b"\x89HDF\r\n\x1a\n", "an HDF5 file", None),
    (b"\x93NUMPY", "a NumPy .npy array", None),
    (b"MATLAB 5.0 MAT-file", "a MATLAB file", None),
    (b"\x89PNG\r\n\x1a\n", "a PNG image", None),
    (b"\xff\xd8\xff", "a JPEG image", None),
    (b"GIF8", "a GIF image", None),
    (b"SQLite format 3\0", "an SQLite database", None),
    (b"\x7fELF", "an executable program", None),
    *((bytes([0x80, protocol]), "a Python pickle", None) for protocol in (2, 3, 4, 5)),
)


class Bytes(Protocol):
    """Anything that hands out bytes; short answers are allowed, an empty one is the end."""

    def read(self, size: int, /) -> bytes | None:
        """At most `size` bytes."""


class _Gzip:
    """`zlib` behind the interface of `bz2` and `lzma`; checks the CRC at the end of a member."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.eof, self.needs_input, self.unused_data = False, True, b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        unpacked = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.eof, self.unused_data = self._zlib.eof, self._zlib.unused_data
        self.needs_input = not self._zlib.unconsumed_tail
        return unpacked


Decompressor: TypeAlias = _Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor
"""Unpacks one member of a compressed stream."""
COMPRESSIONS: tuple[tuple[bytes, str, Callable[[], Decompressor]], ...] = (
    (b"\x1f\x8b", "gzip", _Gzip),
    (b"BZh", "bzip2", bz2.BZ2Decompressor),
    (b"\xfd7zXZ\0", "xz", partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY)),
)


def open_source(path: str, kind: str = LIBSVM) -> Source:
    """Open `path` (`-` is standard input) for reading; the caller closes it (use `with`).

    `kind` names the text that is expected, for the error if it is a known other format.
    """
    if path == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed", code=ExitCode.NO_INPUT)
        return Source(sys.stdin.buffer, STDIN_NAME, closes=False, kind=kind)
    try:
        file = Path(path).open("rb", buffering=0)  # noqa: SIM115 - the Source closes it
    except OSError as error:
        raise _cannot_open(path, error) from None
    try:
        return Source(file, path, closes=True, kind=kind)
    except BaseException:
        file.close()
        raise


class Source:
    """The unpacked bytes of one input, with the place reached in the raw bytes and their hash."""

    def __init__(self, file: Bytes, name: str, *, closes: bool, kind: str = LIBSVM) -> None:
        self.name, self._kind = name, kind
        self._file, self._closes = file, closes
        self._hash = hashlib.sha256()
        self._ended = False
        self.position = 0
        self.size = _regular_size(file)
        self._unpack: Callable[[int], bytes] = self.raw
        self._unread = self._fill(self.raw, HEAD_BYTES)
        self._refuse_foreign(self._unread, "this is")
        for magic, kind, new in COMPRESSIONS:
            if self._unread.startswith(magic):
                self._unpack = _Unpacker(self, kind, magic, new, self._unread).read
                self._unread = self._fill(self._unpack, HEAD_BYTES)
                self._refuse_foreign(self._unread, f"inside the {kind} data is", kind)
                break

    @property
    def is_stdin(self) -> bool:
        """Reads standard input, which cannot be opened a second time."""
        return not self._closes

    @property
    def rereadable(self) -> bool:
        """Reads a regular file by its name, which can be opened a second time."""
        return self.size is not None and not self.is_stdin

    def read(self, size: int) -> bytes:
        """Exactly `size` unpacked bytes, fewer only at the end, however slowly a pipe delivers."""
        head, self._unread = self._unread[:size], self._unread[size:]
        return head + self._fill(self._unpack, size - len(head))

    def sha256(self) -> str | None:
        """Hash of all raw bytes, as hex digits.

        What was not read of a regular file is read now; of a pipe that was not read to its end
        nothing can be said.
        """
        while self.size is not None and self.raw(RAW_BLOCK):
            pass
        return self._hash.hexdigest() if self._ended else None

    def close(self) -> None:
        """Close the file, unless it is standard input."""
        if self._closes and isinstance(self._file, io.IOBase):
            self._file.close()

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def raw(self, size: int) -> bytes:
        """Raw bytes as they come, at most `size` of them."""
        if self._ended:
            return b""  # a terminal would be asked for more
        try:
            data = self._file.read(size) or b""
        except OSError as error:
            problem = f"reading failed: {error.strerror or error}"
            raise UserError(problem, code=ExitCode.IO_ERROR, place=Place(self.name)) from error
        self._ended = not data
        self.position += len(data)
        self._hash.update(data)
        return data

    @staticmethod
    def _fill(read: Callable[[int], bytes], size: int) -> bytes:
        parts = []
        while size and (data := read(size)):
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def _refuse_foreign(self, head: bytes, verb: str, packed: str = "") -> None:
        found = next((row for row in FOREIGN_FORMATS if head.startswith(row[0])), None)
        for magic, kind, _ in COMPRESSIONS:
            if packed and head.startswith(magic):  # `gzip *` over what was packed already
                found = (magic, f"{kind} data once more", f"{packed} -dc <")
        if head[257:262] == b"ustar":
            found = (b"", "a tar archive", "tar -xOf")
        if found is None:
            return
        _, kind, command = found
        hint: str | Remedy | None = TEXT_HINT if self._kind == LIBSVM else None
        if command is not None and not self.is_stdin:
            unpack = Remedy("unpack it: ", command, shlex.quote(self.name))
            first = f"unpack it first: `{unpack.command} > unpacked`"
            hint = unpack if self._kind == LIBSVM else first
        raise bad_data(f"{verb} {kind}, not {self._kind}", self.name, hint=hint)


class _Unpacker:
    """Unpacks a stream of one or more compressed members, never more than asked for at a time."""

    def __init__(
        self, source: Source, kind: str, magic: bytes, new: Callable[[], Decompressor], head: bytes
    ) -> None:
        self._source, self._kind = source, kind
        self._magic, self._new, self._member = magic, new, new()
        self._rest = head  # raw bytes read beyond the end of the last member

    def read(self, size: int) -> bytes:
        """At least one unpacked byte and at most `size`, or nothing at the end."""
        while True:
            if self._member.eof and not self._next_member():
                return b""
            data, self._rest = self._rest, b""
            if not data and self._member.needs_input:
                data = self._source.raw(RAW_BLOCK)
                if not data:
                    raise self._damaged(f"the {self._kind} data end too early", "it may be cut off")
            if unpacked := self._decompress(data, size):
                return unpacked

    def _next_member(self) -> bool:
        """Go on with the next member; zero bytes between and after members are padding."""
        rest = self._member.unused_data.lstrip(b"\0")
        while len(rest) < len(self._magic) and (data := self._source.raw(RAW_BLOCK)):
            rest = (rest + data).lstrip(b"\0")
        if not rest:
            return False
        if not rest.startswith(self._magic):
            problem = f"the {self._kind} data are followed by something else"
            raise self._damaged(problem, "it may be damaged")
        self._member, self._rest = self._new(), rest
        return True

    def _decompress(self, data: bytes, size: int) -> bytes:
        try:
            return self._member.decompress(data, size)
        except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
            problem, guess = f"the {self._kind} data are damaged", "the download may be broken"
            if isinstance(error, lzma.LZMAError) and "Memory usage limit" in str(error):
                problem = f"unpacking needs more than {XZ_MEMORY >> 20} MiB of memory"
                guess = "its dictionary is too large"
            raise self._damaged(problem, guess) from None

    def _damaged(self, problem: str, guess: str) -> UserError:
        hint = f"fetch or pack the file again: {guess}"
        return bad_data(problem, self._source.name, hint=hint)


def whole_lines(source: Source, block_bytes: int) -> Iterator[bytes]:
    """Pieces of text that end where a line ends.

    A line without end stops the reading: what was read of it comes last.
    """
    carried = source.read(len(BYTE_ORDER_MARK)).removeprefix(BYTE_ORDER_MARK)
    while block := source.read(block_bytes):
        cut = block.rfind(b"\n") + 1
        if cut:
            yield carried + block[:cut]
            carried = block[cut:]
            continue
        carried += block
        if len(carried) > MAX_LINE:
            break
    if carried:
        yield carried


def foreign_encoding(text: bytes) -> str | None:
    """UTF-16 or UTF-32, as iconv spells them; None for everything else, binary bytes too."""
    if text.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "UTF-32"
    if text.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "UTF-16"
    # Every second byte is NUL, no other is: plain letters and digits in UTF-16 without a mark,
    # which iconv would guess wrongly.
    even, odd = text[:64:2], text[1:64:2]
    for encoding, zeros, letters in (("UTF-16LE", odd, even), ("UTF-16BE", even, odd)):
        if len(odd) > 1 and not zeros.strip(b"\0") and 0 not in letters:
            return encoding
    return None


def _regular_size(file: Bytes) -> int | None:
    """Size in bytes of what can be read of a regular file; None for pipes and devices."""
    try:
        status = os.fstat(file.fileno())  # type: ignore[attr-defined]  # AttributeError is caught
    except (AttributeError, OSError):  # not a real file: tests hand in a BytesIO
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _cannot_open(path: str, error: OSError) -> UserError:
    if not path:  # a shell variable that is not set
        problem, hint = "the name of the file is empty", None
    elif isinstance(error, FileNotFoundError):
        problem, hint = "no such file", similar_name(path)
    elif isinstance(error, IsADirectoryError):
        problem, hint = "this is a directory", "name a file inside it"
    elif isinstance(error, PermissionError):
        problem, hint = "you may not read this file", f"see `ls -l {shlex.quote(path)}`"
    else:
        problem, hint = f"cannot be opened: {error.strerror or error}", None
    return UserError(problem, code=ExitCode.NO_INPUT, place=Place(path), hint=hint)


def similar_name(path: str) -> str:
    """Point at a file of nearly this name in the same folder, or at the missing folder."""
    wanted = Path(path)
    try:
        names = [entry.name for entry in wanted.parent.iterdir() if not entry.is_dir()]
    except OSError:
        return f"there is no folder {wanted.parent} either"
    # without suffixes: nothing but ".npz" makes c.npz resemble trunc.npz
    stem = wanted.name.split(".")[0]
    for name in difflib.get_close_matches(wanted.name, names, n=10):
        if difflib.get_close_matches(stem, [name.split(".")[0]]):
            return f"did you mean {wanted.parent / name}?"
    return "check the spelling"
