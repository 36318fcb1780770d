"""Escaping of untrusted text.

File names, labels and messages may hold escape codes, newlines, undecodable bytes or characters
that reverse the reading direction. Every renderer passes them through `visible`.
"""

import io
import unicodedata
from typing import TextIO

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories to escape: control, format, surrogate, line and paragraph separator."""


def visible(text: str) -> str:
    r"""Escape invisible characters: ESC as `\x1b`, an undecodable byte as `\xff`.

    Backslashes are not doubled, so that ordinary names are shown as typed.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    point = ord(character)
    if 0xDC80 <= point < 0xDD00:  # an undecodable byte (`surrogateescape`)
        return f"\\x{point - 0xDC00:02x}"
    if character in _NAMED:
        return _NAMED[character]
    return character.encode("unicode_escape").decode()


def spreadsheet_text(text: str) -> str:
    """Escape text for a CSV cell, with an apostrophe before what looks like a formula.

    Only for text: numbers may begin with a sign and are written unchanged.
    """
    return without_formula(visible(text))


def without_formula(text: str) -> str:
    """Text with an apostrophe before what a spreadsheet would interpret as a formula."""
    if text.startswith(("=", "+", "-", "@")):
        return f"'{text}"
    return text


_LOWER_CASE = "αβγδεζηθκλμνπρστφχω"
_UPPER_CASE = "ΔΛΣΦΨ"


def _letter_name(sign: str) -> str:
    """Name of a Greek letter in capitals: `SIGMA`, the last word of its Unicode name."""
    return unicodedata.name(sign).split()[-1]


GREEK = {sign: _letter_name(sign).lower() for sign in _LOWER_CASE}
"""Names of the Greek letters."""
_ASCII_SIGNS = {
    "\N{COMBINING CIRCUMFLEX ACCENT}": "",
    "\N{COMBINING TILDE}": "",
    "\N{COMBINING MACRON}": "",
    "±": "+-",
    "–": "-",
    "→": "->",
    "←": "<-",
    "─": "-",
    "⊕": "+",
    "⁻": "^-",
    "¹": "1",
    "³": "^3",
    "ᵀ": "^T",
    "⁴": "^4",
    "⁶": "^6",
    "ℓ": "l",
    "∂": "d",
    "∈": "in",
    "∪": "u",
    "≠": "!=",
    "‖": "||",
    "≈": "~",
    "•": "#",
    "▸": ">",
    "○": "o",
    "†": "?",
    "‡": "x",
    "∞": "inf",
    "⌊": "[",
    "⌋": "]",
    "√": "sqrt",
    "·": "*",
    "²": "^2",
    "₁": "_1",
    "⟨": "<",
    "⟩": ">",
    "½": "1/2",
    "█": "#",
    "…": "...",
}
"""ASCII replacements of signs that are not letters."""
_ASCII = str.maketrans(
    {
        **GREEK,
        **{sign: _letter_name(sign).capitalize() for sign in _UPPER_CASE},
        **_ASCII_SIGNS,
    }
)
"""ASCII replacements of all signs in the package's texts."""
_WORDS = {"√T": "sqrt(T)", "√B": "sqrt(B)", "Nyström": "Nystroem"}


def has_signs(encoding: str) -> bool:
    """Whether an encoding has all signs of the package's texts, such as ±, ζ and ─."""
    signs = "".join(map(chr, _ASCII))
    return signs.encode(encoding, "replace").decode(encoding) == signs


def ascii_signs(text: str) -> str:
    """Replace the signs of the package's texts by ASCII ones: ± by +-, ζ by zeta."""
    for word, plain in _WORDS.items():
        text = text.replace(word, plain)
    return text.translate(_ASCII)


def encodable(text: str, encoding: str) -> str:
    r"""The text in an encoding that may lack signs: ASCII signs, else escapes (`\u0142`)."""
    shown = text if has_signs(encoding) else ascii_signs(text)
    return shown.encode(encoding, "backslashreplace").decode(encoding)


def use_utf8(stream: TextIO) -> None:
    """Write UTF-8 to a stream whatever the locale is, as to a file: for documents and data."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
