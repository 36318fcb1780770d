"""Running text for a window of any width: folded on a terminal, left as it is in a pipe."""

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping

from rich.console import Console
from rich.text import Text

from ahpatron_cli.output.escape import can_encode, encodable
from ahpatron_cli.output.table import spelled

_UNLIMITED = 1_000_000
"""Columns of a pipe."""


class Page:
    """The room that there is, and the signs that the stream can show."""

    def __init__(self, room: int, signs: Mapping[str, str]) -> None:
        self.room = room
        self._signs = signs

    def ours(self, text: str) -> str:
        """A text of ours, with its signs as this page spells them."""
        return spelled(text, self._signs) if self._signs else text

    def folded(self, text: str, first: str = "", rest: str = "", style: str = "") -> Iterator[Text]:
        """A text of ours in lines, the first of which begins with `first`, others with `rest`."""
        folder = textwrap.TextWrapper(
            self.room,
            initial_indent=first,
            subsequent_indent=rest,
            break_long_words=False,
            break_on_hyphens=False,
        )
        for line in folder.wrap(self.ours(text)):
            yield Text(line, style=style)


def print_folded(
    lines: Callable[[Page], Iterable[Text]], spelling: Mapping[str, str], console: Console
) -> None:
    """Write these lines to the console's stream, in one piece and by us, as `print_page` does.

    `spelling` says how signs are written where the stream lacks any of them.
    """
    room = console.width if console.file.isatty() else _UNLIMITED
    page = Page(room, {} if can_encode("".join(spelling), console.encoding) else spelling)
    with console.capture() as capture:
        for line in lines(page):
            console.print(line, soft_wrap=True)
    console.file.write(encodable(capture.get(), console.encoding))
    console.file.flush()
