"""Where the bytes of a data file come from: a path, a pipe or standard input, unpacked as a stream.

Compression is recognised by content, because names lie. What is recognised as something else
(a zip archive, a PDF, a NumPy array) is refused by its name: that helps more than a complaint about
a strange byte in line 1. The raw bytes are hashed as they pass, so a run can say exactly what it
read without reading the file twice. A pipe gives what has arrived, and never waits for more.
"""

from __future__ import annotations

import bz2
import difflib
import hashlib
import io
import lzma
import os
import select
import shlex
import stat
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data
from ahpatron_cli.signals import StreamEnded, watch

STDIN_NAME = "<stdin>"
MAX_LINE = 16 << 20
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
RAW_BLOCK = 1 << 16
HEAD_BYTES = 512  # enough to recognise every format below; tar keeps its mark at byte 257
XZ_MEMORY = 128 << 20  # twice what `xz -9` needs; a forged header may ask for 4 GiB

LIBSVM = "LIBSVM text"
FROM_ARRAYS = "write arrays as text with scikit-learn: `dump_svmlight_file(X, y, 'data.svm')`"
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


_MAGICS = (*(row[0] for row in FOREIGN_FORMATS), *(row[0] for row in COMPRESSIONS))


def open_source(path: str, kind: str = LIBSVM) -> Source:
    """Open `path` (`-` is standard input) for reading; the caller closes it (use `with`).

    `kind` names the text that is expected, for the error if it is a known other format.
    """
    if path == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed", code=ExitCode.NO_INPUT)
        file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)  # a buffer would wait to be full
        return Source(file, STDIN_NAME, closes=False, kind=kind)
    try:
        opened = Path(path).open("rb", buffering=0)  # noqa: SIM115 - the Source closes it
    except OSError as error:
        raise _cannot_open(path, error) from None
    try:
        return Source(opened, path, closes=True, kind=kind)
    except BaseException:
        opened.close()
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
        self._pipe = _descriptor(file) if self.size is None else None
        self._unpacker: _Unpacker | None = None
        self._unread = self._head(self.raw)
        self._refuse_foreign(self._unread, "this is")
        for magic, kind, new in COMPRESSIONS:
            if self._unread.startswith(magic):
                self._unpacker = _Unpacker(self, kind, magic, new, self._unread)
                self._unread = self._head(self._unpacker.read)
                self._refuse_foreign(self._unread, f"inside the {kind} data is", kind)
                break

    def _head(self, read: Callable[[int], bytes]) -> bytes:
        """The first bytes: of a pipe only as many as show that no known format begins so."""
        head = b""
        while len(head) < HEAD_BYTES and (data := read(HEAD_BYTES - len(head))):
            head += data
            if self._pipe is not None and not any(magic.startswith(head) for magic in _MAGICS):
                break
        return head

    @property
    def head(self) -> bytes:
        """The first bytes, unpacked, as long as nothing was read."""
        return self._unread

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
        parts = []
        while size and (data := self._some(size)):
            parts.append(data)
            size -= len(data)
        return b"".join(parts)

    def read1(self, size: int) -> bytes:
        """At most `size` unpacked bytes: at least one, and all that have arrived; none at the end.

        A signal that ends the stream raises `StreamEnded`, after all that was read.
        """
        parts: list[bytes] = []
        try:
            while size and (not parts or self.ready) and (data := self._some(size)):
                parts.append(data)
                size -= len(data)
        except StreamEnded:
            if not parts:
                raise
        return b"".join(parts)

    def _some(self, size: int) -> bytes:
        if self._unread:
            data, self._unread = self._unread[:size], self._unread[size:]
            return data
        return self._unpacker.read(size) if self._unpacker else self.raw(size)

    @property
    def waits(self) -> bool:
        """Whether rows may arrive slowly: a pipe, a terminal, a device."""
        return self._pipe is not None

    @property
    def ready(self) -> bool:
        """Whether reading would not wait."""
        return self.ready_within(0.0)

    def ready_within(self, seconds: float) -> bool:
        """Whether reading would not wait after so many seconds."""
        if self._pipe is None or self._unread or self._ended:
            return True
        if self._unpacker is not None and self._unpacker.ready:
            return True
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        return bool(poll.poll(1e3 * seconds))

    def sha256(self) -> str | None:
        """Hash of all raw bytes, as hex digits.

        What was not read of a regular file is read now; of a pipe that was not read to its end
        nothing can be said.
        """
        while self.size is not None and not watch.ended_by and self.raw(RAW_BLOCK):
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
        if self._pipe is None:
            watch.look()
        else:
            watch.wait_for(self._pipe)
        try:
            data = self._file.read(size) or b""
        except OSError as error:
            problem = f"reading failed: {error.strerror or error}"
            raise UserError(problem, code=ExitCode.IO_ERROR, place=Place(self.name)) from error
        self._ended = not data
        self.position += len(data)
        self._hash.update(data)
        return data

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
        hint = TEXT_HINT if self._kind == LIBSVM else None
        if kind == "a NumPy .npy array":
            hint = FROM_ARRAYS
        if command is not None and not self.is_stdin:
            hint = f"unpack it: `{command} {shlex.quote(self.name)} > unpacked`"
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

    @property
    def ready(self) -> bool:
        """Whether something can be unpacked without reading."""
        return bool(self._rest) or not (self._member.eof or self._member.needs_input)

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
    """Pieces of text that end where a line ends: of a pipe the lines that have arrived.

    A line without end stops the reading: what was read of it comes last.
    """
    carried, first = b"", True
    while block := source.read1(block_bytes):
        carried += block
        if first and (not BYTE_ORDER_MARK.startswith(carried)):
            carried, first = carried.removeprefix(BYTE_ORDER_MARK), False
        cut = carried.rfind(b"\n", len(carried) - len(block)) + 1
        if cut:
            yield carried[:cut]
            carried = carried[cut:]
        elif len(carried) > MAX_LINE:
            break
    if carried.removeprefix(BYTE_ORDER_MARK):
        yield carried.removeprefix(BYTE_ORDER_MARK)


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


def _descriptor(file: Bytes) -> int | None:
    """The descriptor of a pipe, which holds as much as it may; None if there is none (BytesIO)."""
    try:
        number: int = file.fileno()  # type: ignore[attr-defined]  # AttributeError is caught
    except (AttributeError, OSError):
        return None
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, 1 << 20)  # larger pieces cost less
    return number


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
    elif "://" in path:
        problem = "this is a URL, and only files and pipes can be read"
        hint = f"fetch it: `curl -sSL {shlex.quote(path)} | ahpatron run -`"
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
