"""Sources of bytes: a file, a pipe or standard input, decompressed and hashed on the fly.

Compression is recognised by content, not by file name; unsupported formats are refused with a hint.
The raw bytes are hashed while reading. Reads from a pipe return what has arrived.
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
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import IO, TypeAlias, TypeVar

from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data
from ahpatron_cli.signals import StreamEnded, watch

STDIN_NAME = "<stdin>"
MAX_LINE = 16 << 20
LONG_LINE_START = 1 << 16
"""Number of first bytes that are shown of a line that is too long."""
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
CHUNK_BYTES = 1 << 20
"""Bytes read or decompressed at a time; limits the memory that a zip bomb can use."""
PATIENCE = 1.0
"""Seconds after which waiting for the first rows of a pipe notifies the user."""
PACKINGS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
"""Suffixes of compressed files, with the programs that write them."""
HEAD_BYTES = 512
"""Number of first bytes needed to recognise formats and the header of a table."""
XZ_MEMORY = 128 << 20  # twice what `xz -9` needs; a forged header may ask for 4 GiB

FROM_ARRAYS = "write arrays as text with scikit-learn: `dump_svmlight_file(X, y, 'data.svm')`"

_TO_LINES = "import json,sys; [print(json.dumps(row)) for row in json.load(sys.stdin)]"


def json_list_hint(word: str) -> str:
    """How to make JSON lines of a JSON list in a file, whose name is this word of the shell."""
    return f"write one object per line: `python3 -c '{_TO_LINES}' < {word} > rows.jsonl`"


def utf8_hint(text: bytes, path: str, result: str) -> str:
    """How to make UTF-8 of a file with this text; `result` is a name for the new file."""
    encoding = "UTF-16" if b"\0" in text else "WINDOWS-1252"
    command = f"iconv -f {encoding} -t UTF-8 {as_word(path)} > {result}"
    return f"if it is {encoding} text, convert it: `{command}`"


_SPREADSHEETS = (".xlsx", ".xlsm", ".xlsb", ".ods")
_PARTS_OF_SPREADSHEETS = (b"[Content_Types].xml", b"docProps/", b"xl/", b"opendocument.spreadsheet")
"""First entries of the zip archives that spreadsheet programs and libraries write."""
_SPREADSHEET = (
    "a spreadsheet",
    "save it as CSV (UTF-8) in the spreadsheet program, or convert its first sheet: "
    "`libreoffice --headless --convert-to csv FILE`",
)

FOREIGN_FORMATS = {
    b"PK\x03\x04": ("a zip archive", "unpack it: `unzip -p FILE > unpacked`"),
    b"\x28\xb5\x2f\xfd": ("a zstd archive", "unpack it: `zstd -dc FILE > unpacked`"),
    b"\x93NUMPY": ("a NumPy .npy array", FROM_ARRAYS),
    b"\x89HDF\r\n": ("an HDF5 file", FROM_ARRAYS),
    b"\xd0\xcf\x11\xe0": _SPREADSHEET,
    b"%PDF-": (
        "a PDF document",
        "copy its table into a spreadsheet program, and save it there as CSV (UTF-8)",
    ),
}
"""Unsupported formats by their first bytes: name and hint."""


def foreign_format(head: bytes, name: str) -> UserError | None:
    """The error for a file whose first bytes are those of an unsupported format."""
    for magic, (what, hint) in FOREIGN_FORMATS.items():
        if head.startswith(magic):
            is_zip = what == "a zip archive"
            if is_zip and _is_spreadsheet(head, name):
                what, hint = _SPREADSHEET
            hint = hint.replace("FILE", as_word(name))
            return bad_data(f"this is {what}", name, hint=hint)
    return None


def _is_spreadsheet(head: bytes, name: str) -> bool:
    """Whether a zip archive is a spreadsheet, by its name or its first entries."""
    if name.lower().endswith(_SPREADSHEETS):
        return True
    return any(part in head[:HEAD_BYTES] for part in _PARTS_OF_SPREADSHEETS)


class _Gzip:
    """Gzip decompressor with the interface of those in `bz2` and `lzma`; checks the CRC."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=31)
        self.eof = False
        self.needs_input = True
        self.unused_data = b""

    def decompress(self, data: bytes, max_length: int) -> bytes:
        unpacked = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.eof = self._zlib.eof
        self.unused_data = self._zlib.unused_data
        self.needs_input = not self._zlib.unconsumed_tail
        return unpacked


Decompressor: TypeAlias = _Gzip | bz2.BZ2Decompressor | lzma.LZMADecompressor
"""Decompressor of one member of a compressed stream."""
COMPRESSIONS: dict[bytes, tuple[str, Callable[[], Decompressor]]] = {
    b"\x1f\x8b": ("gzip", _Gzip),
    b"BZh": ("bzip2", bz2.BZ2Decompressor),
    b"\xfd7zXZ\0": ("xz", partial(lzma.LZMADecompressor, memlimit=XZ_MEMORY)),
}
_MAGICS = (*COMPRESSIONS, *FOREIGN_FORMATS)
Rows = TypeVar("Rows")


def open_source(path: str) -> Source:
    """Open `path` (`-` is standard input) for reading; the caller closes it (use `with`)."""
    if path == "-":
        if sys.stdin is None:
            raise UserError("standard input is closed", code=ExitCode.NO_INPUT)
        file = getattr(sys.stdin.buffer, "raw", sys.stdin.buffer)  # unbuffered: no waiting
        return Source(file, STDIN_NAME, closes=False)
    try:
        opened = Path(path).open("rb", buffering=0)  # noqa: SIM115 - the Source closes it
    except OSError as error:
        raise cannot_open(path, error) from None
    try:
        return Source(opened, path, closes=True)
    except BaseException:
        opened.close()
        raise


class Source:
    """Decompressed bytes of an input, with the position and hash of its raw bytes."""

    def __init__(self, file: IO[bytes], name: str, *, closes: bool) -> None:
        self.name = name
        self._file = file
        self._closes = closes
        self._hash = hashlib.sha256()
        self._ended = False
        self.position = 0
        """Number of raw bytes read so far."""
        self.size, self._pipe = _size_or_pipe(file)
        self.packing: str | None = None
        """The program that compressed the input: gzip, bzip2 or xz; None for plain data."""
        self._chunks = iter(partial(self._raw, CHUNK_BYTES), b"")
        self._unread = self._head()
        self._refuse_foreign()
        for magic, (packing, new) in COMPRESSIONS.items():
            if self._unread.startswith(magic):
                self.packing = packing
                self._chunks = self._unpacked(magic, packing, new=new, data=self._unread)
                self._unread = b""
                self._unread = self._head()
                self._refuse_foreign()
                break

    def _head(self) -> bytes:
        """The first raw bytes; of a pipe only as many as are needed to recognise the format."""
        head = b""
        while len(head) < HEAD_BYTES and (data := next(self._chunks, b"")):
            head += data
            if self._pipe is not None and not any(magic.startswith(head) for magic in _MAGICS):
                break
        return head

    @property
    def head(self) -> bytes:
        """The first decompressed bytes; only before anything was read."""
        return self._unread[:HEAD_BYTES]

    @property
    def is_stdin(self) -> bool:
        """Whether this is standard input, which cannot be opened a second time."""
        return not self._closes

    @property
    def rereadable(self) -> bool:
        """Whether this is a regular file, which can be opened a second time."""
        return self.size is not None and not self.is_stdin

    @property
    def waits(self) -> bool:
        """Whether reading may block: a pipe, a terminal or a device."""
        return self._pipe is not None

    def ready(self, seconds: float = 0.0) -> bool:
        """Whether data are available within this many seconds."""
        if self._pipe is None or self._unread or self._ended:
            return True
        poll = select.poll()
        poll.register(self._pipe, select.POLLIN)
        return bool(poll.poll(1e3 * seconds))

    def read1(self, size: int) -> bytes:
        """Read up to `size` available bytes, decompressed; b"" only at the end of the input.

        Raises `StreamEnded` if a signal ended the stream and all bytes read were returned.
        """
        parts: list[bytes] = []
        try:
            while size and (not parts or self.ready()):
                data = self._unread or next(self._chunks, b"")
                if not data:
                    break
                parts.append(data[:size])
                self._unread = data[size:]
                size -= len(parts[-1])
        except StreamEnded:
            if not parts:
                raise
        return b"".join(parts)

    def sha256(self) -> str | None:
        """SHA-256 of all raw bytes in hexadecimal.

        Reads the rest of a regular file first; None for a pipe that was not read to its end.
        """
        while self.size is not None and not watch.ended_by and self._raw(CHUNK_BYTES):
            pass
        return self._hash.hexdigest() if self._ended else None

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        if self._closes and isinstance(self._file, io.IOBase):
            self._file.close()

    def _raw(self, size: int) -> bytes:
        """Read up to `size` available raw bytes."""
        if self._ended:
            return b""  # do not ask a terminal for more
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

    def _unpacked(
        self, magic: bytes, packing: str, new: Callable[[], Decompressor], data: bytes
    ) -> Iterator[bytes]:
        """Decompress one or more members; zero bytes between and after them are padding.

        The file objects of `bz2` and `lzma` silently ignore invalid data after a member, so a
        damaged second member would go unnoticed.
        """
        while data:
            if not data.startswith(magic):
                raise self._damaged(f"the {packing} data are followed by something else")
            member = new()
            while not member.eof:
                if not data and member.needs_input and not (data := self._raw(CHUNK_BYTES)):
                    raise self._damaged(f"the {packing} data end too early")
                try:
                    chunk = member.decompress(data, CHUNK_BYTES)
                except (zlib.error, lzma.LZMAError, OSError, ValueError) as error:
                    if "Memory usage limit" in str(error):
                        limit = f"{XZ_MEMORY >> 20} MiB of memory"
                        raise self._damaged(f"unpacking needs more than {limit}") from None
                    raise self._damaged(f"the {packing} data are damaged") from None
                data = b""
                if chunk:
                    yield chunk
            data = member.unused_data.lstrip(b"\0")
            while len(data) < len(magic) and (more := self._raw(CHUNK_BYTES)):
                data = (data + more).lstrip(b"\0")

    def _damaged(self, problem: str) -> UserError:
        return bad_data(problem, self.name, hint="fetch or pack the file again")

    def _refuse_foreign(self) -> None:
        error = foreign_format(self._unread, self.name)
        if error is not None:
            raise error


def first_batches(
    source: Source,
    batches: Iterator[Rows],
    rows: int,
    labelled: Callable[[Rows], int],
    on_wait: Callable[[int], None] | None,
) -> list[Rows]:
    """The first batches, at least one and `rows` labelled rows if possible.

    `labelled` counts those of a batch; `on_wait` is called with their number so far if a pipe does
    not deliver them within `PATIENCE` seconds. Raises `StreamEnded` if a signal ended the stream
    before the first batch.
    """
    held: list[Rows] = []
    count = 0
    deadline = time.monotonic() + PATIENCE
    with suppress(StreamEnded):
        while not held or count < rows:
            if on_wait and source.waits:
                left = deadline - time.monotonic()
                if left < 0 or not source.ready(left):
                    on_wait(count)
            batch = next(batches, None)
            if batch is None:
                break
            held.append(batch)
            count += labelled(batch)
    if not held and watch.ended_by:
        raise StreamEnded
    return held


def changed(path: str) -> UserError:
    """The error for a file that has changed since it was read before."""
    hint = "run the same command again to read the file as it is now"
    return bad_data("the file changed between two readings", path, hint=hint)


def whole_lines(source: Source, chunk_bytes: int) -> Iterator[bytes]:
    """Yield chunks of text that end at a line end; of a pipe, the lines that have arrived.

    Reading stops at a line that is too long; its first part is yielded last.
    """
    carried = b""
    first = True
    while chunk := source.read1(chunk_bytes):
        carried += chunk
        if first and not BYTE_ORDER_MARK.startswith(carried):
            carried = carried.removeprefix(BYTE_ORDER_MARK)
            first = False
        cut = carried.rfind(b"\n", len(carried) - len(chunk)) + 1
        if cut:
            yield carried[:cut]
            carried = carried[cut:]
        elif len(carried) > MAX_LINE:
            break
    if first:
        carried = carried.removeprefix(BYTE_ORDER_MARK)
    if carried:
        yield carried


def sound_lines(
    source: Source, chunk_bytes: int, on_long_line: Callable[[bytes], None]
) -> Iterator[bytes]:
    """As `whole_lines`, without lines that are too long: `on_long_line` gets the start of each.

    No more than `MAX_LINE` and a chunk are held in memory.
    """
    carried = b""
    first = True
    is_skipping = False
    while chunk := source.read1(chunk_bytes):
        if is_skipping:
            end = chunk.find(b"\n") + 1
            if not end:
                continue
            chunk = chunk[end:]
            is_skipping = False
        carried += chunk
        if first and not BYTE_ORDER_MARK.startswith(carried):
            carried = carried.removeprefix(BYTE_ORDER_MARK)
            first = False
        cut = carried.rfind(b"\n", len(carried) - len(chunk)) + 1
        if cut:
            yield from _without_long_line(carried[:cut], on_long_line)
            carried = carried[cut:]
        if len(carried) > MAX_LINE:
            on_long_line(carried[:LONG_LINE_START])
            carried = b""
            is_skipping = True
    if carried:
        yield carried


def _without_long_line(text: bytes, on_long_line: Callable[[bytes], None]) -> Iterator[bytes]:
    """Yield these lines; only the first one can be too long, of which most was read before."""
    end = text.find(b"\n") + 1
    if end - 1 <= MAX_LINE:
        yield text
        return
    on_long_line(text[:LONG_LINE_START])
    if end < len(text):
        yield text[end:]


def _size_or_pipe(file: IO[bytes]) -> tuple[int | None, int | None]:
    """Size of a regular file and file descriptor of a pipe or device; None for the other."""
    try:
        number = file.fileno()
        status = os.fstat(number)
    except (AttributeError, OSError):
        return None, None
    if stat.S_ISREG(status.st_mode):
        return status.st_size, None
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(number, fcntl.F_SETPIPE_SZ, CHUNK_BYTES)  # larger reads are faster
    return None, number


def as_word(path: str) -> str:
    """A path as a word of a shell command in a hint; FILE stands for standard input."""
    return "FILE" if path == STDIN_NAME else shlex.quote(path)


def cannot_open(path: str, error: OSError) -> UserError:
    """The error for a file that cannot be opened, with a hint."""
    problem = f"cannot be opened: {error.strerror or error}"
    hint = None
    if not path:  # for example an unset shell variable
        problem = "the name of the file is empty"
    elif "://" in path:
        problem = "this is a URL, and only files and pipes can be read"
        hint = f"fetch it: `curl -sSL {shlex.quote(path)} | ahpatron run -`"
    elif isinstance(error, FileNotFoundError):
        problem = "no such file"
        hint = similar_name(path)
    elif isinstance(error, IsADirectoryError):
        problem = "this is a directory"
        hint = "name a file inside it"
    elif isinstance(error, PermissionError):
        problem = "you may not read this file"
        hint = f"see `ls -l {shlex.quote(path)}`"
    return UserError(problem, code=ExitCode.NO_INPUT, place=Place(path), hint=hint)


def similar_name(path: str) -> str:
    """Hint that names a similar file in the same folder, or the missing folder."""
    wanted = Path(path)
    try:
        # by the stem: nothing but ".npz" makes c.npz resemble trunc.npz
        names = {entry.stem: entry for entry in wanted.parent.iterdir()}
    except FileNotFoundError:
        return f"there is no folder {wanted.parent} either"
    except OSError:  # a folder that we may not list
        names = {}
    close = difflib.get_close_matches(wanted.stem, names, n=1)
    if not close:
        return "check the spelling"
    return f"did you mean {names[close[0]]}?"
