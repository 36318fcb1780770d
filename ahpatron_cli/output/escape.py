"""Text from outside, made harmless.

File names, labels and messages may hold escape codes, newlines, undecodable bytes or characters
that turn the reading direction round. Every renderer passes them through `literal`.
"""

import unicodedata

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (bidi overrides, zero-width), surrogate, line and paragraph separator."""


def literal(text: str) -> str:
    r"""Show what cannot be seen: ESC as `\x1b`, a stray byte `\xff`, a bidi override `\u202e`.

    Backslashes stay single, so that ordinary names are shown as the user typed them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(_visible, text))


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    point = ord(character)
    if 0xDC80 <= point < 0xDD00:  # a byte of a name that is not UTF-8, by `surrogateescape`
        return f"\\x{point - 0xDC00:02x}"
    return _NAMED.get(character) or character.encode("unicode_escape").decode()


def spreadsheet_text(text: str) -> str:
    """A text for a CSV cell: literal, and with an apostrophe where it would be run as a formula.

    Only for text. Numbers may well begin with a sign and go into their cells as they are.
    """
    shown = literal(text)
    return f"'{shown}" if shown.startswith(("=", "+", "-", "@")) else shown


def encodable(text: str, encoding: str) -> str:
    r"""The text with every character that `encoding` does not have written out (`\u0142`)."""
    return text.encode(encoding, "backslashreplace").decode(encoding)
