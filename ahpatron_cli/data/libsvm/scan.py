"""A first look through a file: how many rows, which labels; no feature is read."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

from ahpatron_cli.data.libsvm.grammar import finite_number
from ahpatron_cli.data.libsvm.reader import CHUNK_BYTES
from ahpatron_cli.data.source import open_source, whole_lines

_FIRST_TOKEN = re.compile(rb"^[ \t]*([^\s#]+)", re.MULTILINE)


@dataclass
class Scan:
    """What a first look at a file found: its number of rows, and how often each label appears."""

    rows: int = 0
    labels: dict[float, int] = field(default_factory=dict)
    more_labels: bool = False
    """There are more different labels than `max_labels`; the others are not in `labels`."""
    sha256: str | None = None
    """Hash of all bytes, by which a later reading can tell whether the file changed."""
    size: int | None = None
    """In bytes."""


def scan(path: str, max_rows: int | None = None, max_labels: int = 1000) -> Scan:
    """Count rows and labels, of the first `max_rows` rows, without reading the features.

    Faulty labels are passed over, and a line without end stops the scan: the reader meets the
    same fault and reports it.
    """
    found = Scan()
    with open_source(path) as source:
        for _, text in whole_lines(source, CHUNK_BYTES):
            tokens = _FIRST_TOKEN.findall(text)
            if max_rows is not None:
                del tokens[max_rows - found.rows :]
            for token, count in Counter(tokens).items():
                found.rows += count
                label = finite_number(token)
                if label is None:
                    continue
                if label in found.labels or len(found.labels) < max_labels:
                    found.labels[label] = found.labels.get(label, 0) + count
                else:
                    found.more_labels = True
            if found.rows == max_rows:
                break
        found.sha256, found.size = source.sha256(), source.size
    return found
