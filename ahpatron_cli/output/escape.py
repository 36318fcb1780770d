"""Escaping of untrusted text.

File names, labels and messages may hold escape codes, newlines, undecodable bytes or characters
that reverse the reading direction. Every renderer passes them through `literal`.
"""

import unicodedata

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories to escape: control, format, surrogate, line and paragraph separator."""


def literal(text: str) -> str:
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
    return _NAMED.get(character) or character.encode("unicode_escape").decode()


def spreadsheet_text(text: str) -> str:
    """Escape text for a CSV cell, with an apostrophe before what looks like a formula.

    Only for text: numbers may begin with a sign and are written unchanged.
    """
    return without_formula(literal(text))


def without_formula(text: str) -> str:
    """Text with an apostrophe before what a spreadsheet would interpret as a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def encodable(text: str, encoding: str) -> str:
    r"""Replace characters that `encoding` does not support by escapes (`\u0142`)."""
    return text.encode(encoding, "backslashreplace").decode(encoding)
