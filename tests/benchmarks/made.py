"""Data files that benchmarks make: random, seeded, written quickly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

BATCH = 2000


def dense_lines(width: int, seed: int = 0) -> Iterator[bytes]:
    """Batches of rows of `width` features with 8 significant digits, as in SUSY; two classes."""
    rng = np.random.default_rng(seed)
    pattern = "%+d" + "".join(f" {column}:%.8g" for column in range(1, width + 1)) + "\n"
    while True:
        X = rng.standard_normal((BATCH, width))
        y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.standard_normal(BATCH) > 0, 1, -1)
        rows = zip(y.tolist(), X.tolist(), strict=True)
        yield "".join([pattern % (label, *row) for label, row in rows]).encode()


def sparse_lines(
    width: int, per_row: int, seed: int = 0, popularity: float = 0.0
) -> Iterator[bytes]:
    """Batches of rows of `per_row` values with 6 digits in `width` columns; two classes.

    With `popularity` p > 0 a column is drawn with weight rank^-p, as words of a text are; a row
    then holds at most `per_row` different ones.
    """
    rng = np.random.default_rng(seed)
    limits = np.cumsum(np.arange(1.0, width + 1) ** -popularity)
    limits /= limits[-1]
    while True:
        drawn = np.searchsorted(limits, rng.random((BATCH, per_row)))
        values = rng.random((BATCH, per_row))
        lines = []
        for columns, row in zip(drawn, values, strict=True):
            own = np.unique(np.minimum(columns, width - 1))
            label = "+1" if own.sum() % 2 else "-1"
            pairs = zip((own + 1).tolist(), row.tolist(), strict=False)
            lines.append(label + "".join([f" {column}:{value:.6g}" for column, value in pairs]))
        yield ("\n".join(lines) + "\n").encode()


def write(
    path: Path, batches: Iterator[bytes], *, size: int | None = None, rows: int | None = None
) -> int:
    """Write batches until the file has `size` bytes, or exactly `rows` rows; its size in bytes."""
    written, left = 0, rows
    with path.open("wb") as stream:
        for batch in batches:
            if left is not None and left < BATCH:
                batch = b"".join(batch.splitlines(keepends=True)[:left])
            stream.write(batch)
            written += len(batch)
            left = None if left is None else left - BATCH
            if (size is not None and written >= size) or (left is not None and left <= 0):
                return written
    raise AssertionError("batches never end")
