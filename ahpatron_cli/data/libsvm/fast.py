"""Vectorised parser for plain LIBSVM text: it returns the exact result, or None.

Every byte that is not a digit is a mark: line ends, spaces, colons, signs, points. The positions of
the marks give the structure of the text; the digits before all marks are converted to integers at
once, and combined to numbers according to signs and points.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers

Bytes: TypeAlias = NDArray[np.uint8]
Flags: TypeAlias = NDArray[np.bool_]

_OF_NUMBERS = b"0123456789+-.eE"
_MARKS = b"+-.eE: \n"
MARGIN = b"0" * 24 + b"\n"  # padding, so that 24 bytes can be read before any mark
_MOST_DIGITS = 18  # digits that always fit an int64
_POWERS = 10 ** np.arange(_MOST_DIGITS + 1)
_EXACT = 2**53  # integers up to this one are exact as doubles
_HAS_64_BIT_FLOATS = np.finfo(np.longdouble).nmant == 63  # x86; elsewhere `float()` does the work
_ALL_DIGITS = 0x0F0F0F0F0F0F0F0F
_UNUSED_BITS = range(64, -1, -8)
_MASKS = [_ALL_DIGITS >> bits << bits for bits in _UNUSED_BITS]
_KEEP_LAST = np.array(_MASKS, dtype="<u8")
"""Masks that keep the last n of eight digits, for n from 0 to 8."""


def keep_freed_memory() -> None:
    """Make the C library keep up to 60 MB of freed memory for the next chunk.

    By default glibc returns memory to the system each time, and page faults then take a third of
    the reading time. Allocating and freeing one large block raises glibc's threshold, without
    touching a page. With other C libraries this has no effect.
    """
    np.empty(31 << 20, dtype=np.uint8)


class Places(NamedTuple):
    """Where numbers are in a text, at text[begins:ends]."""

    begins: Integers
    ends: Integers
    marks: Integers
    """Number of marks inside each number."""
    last: Integers
    """Position of the last of these, or of the mark before the number."""
    has_point: Flags
    """Whether the last mark is a point."""


class _Structure(NamedTuple):
    """The labels and values in plain text, which are numbers."""

    has_index: Flags
    """Whether a number is a value, with an index before it, or a label."""
    lengths: Integers
    """Number of digits of each index; -1 before a label."""
    places: Places


def read_plain(text: bytes, max_features: int) -> tuple[Floats, CsrRows] | None:
    """Parse lines `label index:value index:value` with single spaces; None if in doubt."""
    text = MARGIN + text
    letters = np.frombuffer(text, dtype=np.uint8)
    found = _structure(letters)
    if found is None:
        return None
    has_index = found.has_index
    places = found.places
    indices = _digits_before(text, places.begins - 1, found.lengths)[has_index]
    largest = int(indices.max(initial=-1))
    if largest > max_features:
        return None
    labels = np.flatnonzero(~has_index)
    starts = labels - np.arange(len(labels))
    indptr = np.append(starts, len(indices))
    if not _rises_in_rows(indices, indptr):
        return None
    numbers, others = decimals(text, letters, places)
    if len(others):
        begins = places.begins[others]
        ends = places.ends[others]
        read = _by_float(text, begins, ends)
        if read is None:
            return None
        numbers[others] = read
    columns = indices.astype(np.int32)
    values = numbers[has_index]
    rows = CsrRows(indptr, columns, values, width=largest + 1)
    return numbers[labels], rows


def _structure(letters: Bytes) -> _Structure | None:
    """The structure of the text; None if it is not plain."""
    at = np.flatnonzero(letters - ord("0") > 9)
    kind = letters[at]
    if kind.tobytes().translate(None, _MARKS):
        return None
    space = kind == ord(" ")
    if not np.array_equal(space[:-1], kind[1:] == ord(":")):
        return None
    # From here on each line is a label and pairs of ` digits:` and a value. It remains to check
    # that none of them is empty, and that labels and values are numbers. A number ends at a space
    # or line end. It begins at the colon after the last space, which has an index before it, or at
    # the last line end: then it is a label, and its index is -1 long.
    gaps = np.flatnonzero(kind <= ord(" "))
    before = gaps[:-1]
    closes = gaps[1:]
    has_index = space[before]
    opens = before + has_index
    at_gaps = at[gaps]
    begins = at[opens] + 1
    ends = at_gaps[1:]
    lengths = begins - at_gaps[:-1] - 2
    longest = lengths.max(initial=0)
    if longest > _MOST_DIGITS or not lengths.all():
        return None
    is_empty = begins == ends  # as in a blank line
    if is_empty.any():
        return None
    last = closes - 1
    places = Places(
        begins=begins,
        ends=ends,
        marks=last - opens,
        last=at[last],
        has_point=kind[last] == ord("."),
    )
    return _Structure(has_index, lengths, places)


def _rises_in_rows(indices: Integers, indptr: Integers) -> bool:
    """Whether indices increase in each row; `indptr` has the bounds of the rows."""
    rises = indices[1:] > indices[:-1]
    is_inside = (indptr > 0) & (indptr < len(indices))
    starts = indptr[is_inside]
    rises[starts - 1] = True  # from row to row they need not
    return bool(rises.all())


def _by_float(text: bytes, begins: Integers, ends: Integers) -> Floats | None:
    """Numbers at text[begins:ends] as `float()` reads them; None if one is no finite number."""
    spans = zip(begins.tolist(), ends.tolist(), strict=True)
    parts = [text[begin:end] for begin, end in spans]
    joined = b"".join(parts)
    if joined.translate(None, _OF_NUMBERS):
        return None  # `float()` also accepts underscores, spaces and words
    try:
        read = [float(part) for part in parts]
    except ValueError:
        return None
    numbers = np.array(read)
    if np.isfinite(numbers).all():
        return numbers
    return None


def decimals(text: bytes, letters: Bytes, places: Places) -> tuple[Floats, Integers]:
    """Parse the decimal numbers at these places; also returns which are left to `float()`.

    `letters` are the bytes of the text. `-12.5` is -(125 / 10**1). Most numbers are such a fraction
    of integers, which `_divide` rounds like `float()`; all others, or what is no number at all, are
    left to the caller.
    """
    begins, ends, marks, last, has_point = places
    first = letters[begins]
    minus = first == ord("-")
    signed = minus | (first == ord("+"))
    digits = ends - begins - marks
    simple = marks == has_point.view(np.int8) + signed.view(np.int8)
    simple &= (digits - 1).view(np.uint64) < _MOST_DIGITS  # at least one
    behind = ends - last - 1  # digits behind the last mark
    numerator = _digits_before(text, ends, behind)
    power = _POWERS[:1]
    if has_point.any():
        power = _POWERS.take(behind * has_point, mode="clip")
        numerator += _whole_parts(text, last, digits - behind) * power
    numbers = _divide(numerator, power, simple)
    sign_bits = minus.astype(np.uint64) << np.uint64(63)
    bits = numbers.view(np.uint64)
    bits ^= sign_bits
    return numbers, np.flatnonzero(~simple)


def _whole_parts(text: bytes, points: Integers, lengths: Integers) -> Integers:
    """Integers written by the `lengths` digits before each point; usually one digit or none."""
    whole = _short_numbers(text, points, lengths, longest=1)
    longer = np.flatnonzero(lengths > 1)
    if len(longer):
        at = points[longer]
        run = lengths[longer]
        whole[longer] = _digits_before(text, at, run)
    return whole


def _divide(numerator: Integers, power: Integers, simple: Flags) -> Floats:
    """Correctly rounded quotients; sets `simple` to False where rounding is not certain.

    Below 2**53 both numbers are exact doubles (10**18 is, too) and one division rounds once.
    Larger ones are divided with 64 bits, and rounding these to 53 is right unless they lie exactly
    half-way between two doubles: then the first rounding may have moved them there.
    """
    quotient: Floats = numerator.astype(np.float64) / power.astype(np.float64)
    largest = numerator.max(initial=0)
    if largest <= _EXACT:
        return quotient
    is_wide = numerator > _EXACT
    wide = np.flatnonzero(simple & is_wide)
    power = np.broadcast_to(power, numerator.shape)
    if len(wide) and _HAS_64_BIT_FLOATS:
        wide_dividend = numerator[wide].astype(np.longdouble)
        wide_power = power[wide].astype(np.longdouble)
        longer = wide_dividend / wide_power
        quotient[wide] = longer
        mantissa = longer.view(np.uint64)[::2]
        left_over = mantissa & np.uint64(0x7FF)
        wide = wide[left_over == 0x400]
    simple[wide] = False
    return quotient


def _digits_before(text: bytes, at: Integers, run: Integers) -> Integers:
    """Integers written by the `run` (at most 18) digits before each position `at`."""
    longest = run.max(initial=0)
    if longest <= 2:  # twice as fast as by 64-bit words
        return _short_numbers(text, at, run, longest=int(longest))
    numbers = _eight_digits(text, at, run)
    for done in (8, 16):
        if longest > done:
            more = np.flatnonzero(run > done)
            before = at[more] - done
            left = run[more] - done
            higher = _eight_digits(text, before, left)
            numbers[more] += 10**done * higher
    return numbers


def _short_numbers(text: bytes, at: Integers, run: Integers, longest: int) -> Integers:
    """Integers written by the `run` digits before `at`; `longest` is at most 2."""
    letters = np.frombuffer(text, dtype=np.uint8)
    ones = letters[at - 1] & 0x0F
    short = ones * (run > 0)
    if longest == 2:
        tens = letters[at - 2] & 0x0F
        tens *= run > 1
        short += tens * np.uint8(10)
    return short.astype(np.int64)


def _eight_digits(text: bytes, at: Integers, count: Integers) -> Integers:
    """Integers written by the `count` (at most 8) digits before each position `at`.

    The 8 bytes before a position are read as a 64-bit word and unused bytes are cleared; then
    neighbours are combined three times: digits to pairs, pairs to fours, fours to eights.
    """
    starts = len(text) - 7
    words = np.ndarray((starts,), dtype="<u8", buffer=text, strides=(1,))
    word = words[at - 8]
    word &= _KEEP_LAST.take(count, mode="clip")
    _combine(word.view("<u2"), 10)
    _combine(word.view("<u4"), 100)
    _combine(word.view("<u8"), 10_000)
    return word.view(np.int64)


def _combine(pairs: NDArray[np.unsignedinteger[Any]], unit: int) -> None:
    """Set pairs to their values, in place: the low half is worth `unit` times the high half."""
    to_integer = pairs.dtype.type
    half = 4 * pairs.itemsize  # its number of bits
    factor = unit * 2**half + 1
    pairs *= to_integer(factor)
    pairs >>= to_integer(half)
