"""Text from outside, made harmless.

File names, labels and messages may hold escape codes, newlines, undecodable bytes or characters
that turn the reading direction round. Every renderer passes them through `literal`, so that what
is shown is what is there and nothing else happens.
"""

import unicodedata

_NAMED = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Control, format (bidi overrides, zero-width), surrogate, line and paragraph separator."""
_UNDECODABLE = range(0xDC80, 0xDD00)
"""Where Python's `surrogateescape` puts the bytes 0x80 to 0xff of a name that is not UTF-8."""

_FORMULA_STARTS = ("=", "+", "-", "@")


def literal(text: str) -> str:
    r"""Show what cannot be seen: ESC as `\x1b`, a stray byte `\xff`, a bidi override `\u202e`.

    Backslashes stay single, so that ordinary names are shown as the user typed them.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_visible(character) for character in text)


def _visible(character: str) -> str:
    if unicodedata.category(character) not in _INVISIBLE:
        return character
    if character in _NAMED:
        return _NAMED[character]
    point = ord(character)
    if point in _UNDECODABLE:
        return f"\\x{point - 0xDC00:02x}"
    if point < 0x100:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def spreadsheet_text(text: str) -> str:
    """A text for a CSV cell: literal, and with an apostrophe where it would be run as a formula.

    Only for text. Numbers may well begin with a sign and go into their cells as they are.
    """
    shown = literal(text)
    return "'" + shown if shown.startswith(_FORMULA_STARTS) else shown


def encodable(text: str, encoding: str) -> str:
    r"""The text with every character that `encoding` lacks written out (`\u0142`)."""
    return text.encode(encoding, "backslashreplace").decode(encoding)


def can_encode(text: str, encoding: str) -> bool:
    """Whether a stream of this encoding can show the text as it is."""
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True
