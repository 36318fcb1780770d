"""LIBSVM text in its plainest spelling, read with vector operations: exactly, or not at all.

Everything that is not a digit is a mark: line ends, spaces, colons, signs, points. The marks alone
show the structure of the text; the digits before a mark are turned into numbers all at once, and
signs and points put these together.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers

_OF_NUMBERS = b"0123456789+-.eE"
_PLAIN = _OF_NUMBERS + b": \n"
_MARGIN = b"0" * 24  # so that 24 bytes can be taken before any mark
_MOST_DIGITS = 18  # what an int64 can always hold
_POWERS = 10 ** np.arange(_MOST_DIGITS + 1)
_HAS_64_BIT_FLOATS = np.finfo(np.longdouble).nmant == 63  # x86; elsewhere `float()` does the work
_KEEP_LAST = np.array(
    [0x0F0F0F0F0F0F0F0F >> 8 * (8 - n) << 8 * (8 - n) for n in range(9)], dtype="<u8"
)


class _Marked(NamedTuple):
    """A text and its marks."""

    text: bytes
    letters: NDArray[np.uint8]
    """The bytes of the text."""
    at: Integers
    """Where each mark stands."""
    kind: NDArray[np.uint8]
    """Which mark it is."""


def read_plain(text: bytes, max_features: int) -> tuple[Floats, CsrRows] | None:
    """Read lines spelled `label index:value index:value`, with single spaces; None if in doubt."""
    if text.translate(None, _PLAIN):  # before anything large is made of it
        return None
    text = _MARGIN + b"\n" + text
    if b"\n\n" in text:  # a line without a label; a million of them would take 200 MB to find out
        return None
    letters = np.frombuffer(text, dtype=np.uint8)
    at = np.flatnonzero(letters - ord("0") > 9)
    kind = letters[at]
    marked = _Marked(text, letters, at, kind)
    line_end, space, colon = kind == ord("\n"), kind == ord(" "), kind == ord(":")
    if not np.array_equal(space[:-1], colon[1:]):
        return None
    # From here on each line is a label and pairs of ` digits:`, each with a value behind it; only
    # whether anything at all stands in these places, and how labels and values look, is open.
    opens = np.flatnonzero(line_end | colon)[:-1]
    closes = np.flatnonzero(line_end | space)[1:]
    labels = np.flatnonzero(line_end[opens])
    features = np.flatnonzero(colon[opens])
    indptr = np.append(labels - np.arange(len(labels)), len(features))
    indices = _indices(marked, opens[features], indptr)
    if indices is None or indices.max(initial=-1) > max_features:
        return None
    rising = indices[1:] > indices[:-1]
    rising[indptr[(indptr > 0) & (indptr < len(features))] - 1] = True  # not from row to row
    if not rising.all():
        return None
    numbers = _numbers(marked, opens, closes)
    if numbers is None:
        return None
    width = int(indices.max(initial=-1)) + 1
    rows = CsrRows(indptr, indices.astype(np.int32), numbers[features], width)
    return numbers[labels], rows


def _indices(marked: _Marked, colons: Integers, indptr: Integers) -> Integers | None:
    """The number before each of these colons, from the space before it on; None if one is missing.

    Where every line spells the same indices, as in dense data, one line is read and the others are
    compared with it.
    """
    ends = marked.at[colons]
    lengths = ends - marked.at[colons - 1] - 1
    if not len(colons):
        return colons
    if lengths.min() == 0 or lengths.max() > _MOST_DIGITS:
        return None
    rows, first = len(indptr) - 1, int(indptr[1])
    if rows * first == len(colons) and _alike(marked.letters, ends, lengths, first):
        return np.tile(_digits_before(marked.text, ends[:first], lengths[:first]), rows)
    return _digits_before(marked.text, ends, lengths)


def _alike(letters: NDArray[np.uint8], ends: Integers, lengths: Integers, period: int) -> bool:
    """Whether what ends at `ends` repeats itself, letter for letter, after every `period`."""
    spelled = lengths.reshape(-1, period)
    if (spelled != spelled[0]).any():
        return False
    for back in range(1, int(spelled[0].max()) + 1):
        letter = letters[ends - back].reshape(-1, period)
        if ((letter != letter[0]) & (spelled[0] >= back)).any():
            return False
    return True


def _numbers(marked: _Marked, opens: Integers, closes: Integers) -> Floats | None:
    """The decimal number between the marks `opens[i]` and `closes[i]`, for each i.

    `-12.5` is 125 / 10**1 with a sign. Most spellings are such a fraction of whole numbers that
    `_divide` can round as `float()` does; all others `float()` reads itself.
    """
    text, at, kind = marked.text, marked.at, marked.kind
    begins, ends, last = at[opens] + 1, at[closes], at[closes - 1]
    sign = kind[opens + 1]
    minus = sign == ord("-")
    signed = (minus | (sign == ord("+"))) & (at[opens + 1] == begins)
    has_point = kind[closes - 1] == ord(".")
    # the digits behind the last mark, and those between sign and point
    behind = ends - last - 1
    before = (last - begins - signed) * has_point
    simple = closes - opens == has_point + signed.astype(np.int64) + 1
    simple &= behind + before - 1 < _MOST_DIGITS
    simple &= behind + before > 0
    numerator = _digits_before(text, ends, behind)
    power = _POWERS.take(behind * has_point, mode="clip")
    numerator += _whole_parts(marked, last, before) * power
    numbers = _divide(numerator, power, simple)
    np.negative(numbers, out=numbers, where=signed & minus)
    others = np.flatnonzero(~simple)
    if len(others):
        spans = zip(begins[others].tolist(), ends[others].tolist(), strict=True)
        parts = [text[begin:end] for begin, end in spans]
        if b"".join(parts).translate(None, _OF_NUMBERS):
            return None  # `float()` takes underscores, spaces and words, too
        try:
            numbers[others] = [float(part) for part in parts]
        except ValueError:
            return None
        if not np.isfinite(numbers[others]).all():
            return None
    return numbers


def _whole_parts(marked: _Marked, points: Integers, lengths: Integers) -> Integers:
    """What the `lengths` digits before each of `points` write: mostly a single digit, or none."""
    whole: Integers = (marked.letters[points - 1] & 0x0F) * (lengths == 1).astype(np.int64)
    longer = np.flatnonzero(lengths > 1)
    whole[longer] = _digits_before(marked.text, points[longer], lengths[longer])
    return whole


def _divide(numerator: Integers, power: Integers, simple: NDArray[np.bool_]) -> Floats:
    """Correctly rounded quotients; where that is not certain, `simple` is made False.

    Below 2**53 both numbers are exact doubles (10**18 is, too) and one division rounds once.
    Larger ones are divided with 64 bits, and rounding these to 53 is right unless they lie exactly
    half-way between two doubles: then the first rounding may have moved them there.
    """
    quotient: Floats = numerator / power
    wide = np.flatnonzero(simple & (numerator > 2**53))
    if len(wide) and _HAS_64_BIT_FLOATS:
        longer = numerator[wide].astype(np.longdouble) / power[wide].astype(np.longdouble)
        quotient[wide] = longer
        mantissa = longer.view(np.uint64)[::2]
        wide = wide[mantissa & np.uint64(0x7FF) == 0x400]
    simple[wide] = False
    return quotient


def _digits_before(text: bytes, at: Integers, run: Integers) -> Integers:
    """The number written by the `run` digits before each place `at`, if there are 18 at most."""
    numbers = _eight_digits(text, at, run)
    for done in (8, 16):
        more = np.flatnonzero(run > done)
        if len(more):
            numbers[more] += 10**done * _eight_digits(text, at[more] - done, run[more] - done)
    return numbers


def _eight_digits(text: bytes, at: Integers, count: Integers) -> Integers:
    """The number written by the last `count` digits, of 8 at most, before each place `at`.

    The 8 bytes before a place are one 64-bit word. Bytes that are not counted are made zero; then
    neighbours are joined three times: digits to pairs, pairs to fours, fours to eight.
    """
    words = np.ndarray((len(text) - 7,), dtype="<u8", buffer=text, strides=(1,))
    word = words[at - 8]
    word &= _KEEP_LAST.take(count, mode="clip")
    word *= np.uint64(10 * 2**8 + 1)
    word >>= np.uint64(8)
    word &= np.uint64(0x00FF00FF00FF00FF)
    word *= np.uint64(100 * 2**16 + 1)
    word >>= np.uint64(16)
    word &= np.uint64(0x0000FFFF0000FFFF)
    word *= np.uint64(10000 * 2**32 + 1)
    word >>= np.uint64(32)
    return word.view(np.int64)
