"""Bounded sketches of a stream of rows: what `ahpatron inspect` remembers of a file.

- `Columns`: smallest and largest value and count of each of the first 2^20 columns.
- `RowsSeen`: hash, label and line of each of the first 2 million rows.
- `Sample`: rows drawn at random, at most 4,000 rows and 2^20 values.

So the memory needed does not depend on the length of the file. Rows are compared by 64-bit hashes:
among 2 million rows any two that differ collide with probability 1e-7.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, row_sums
from ahpatron_cli.data.geometry import row_hashes
from ahpatron_cli.profile.profile import RowFacts

MOST_COLUMNS = 1 << 20
MOST_FINGERPRINTS = 2_000_000
MOST_SAMPLED = 4000
MOST_SAMPLED_VALUES = 1 << 20


class Columns:
    """Extremes of every column, zeros that are not stored included, and its values other than 0."""

    def __init__(self, limit: int = MOST_COLUMNS) -> None:
        self._limit, self._rows = limit, 0
        self._low, self._high = np.zeros(0), np.zeros(0)
        self._count = np.zeros(0, dtype=np.int64)

    def add(self, rows: CsrRows) -> None:
        """Take in the next rows."""
        self._rows += len(rows)
        taken = (rows.values != 0) & (rows.columns < self._limit)
        columns, values = rows.columns[taken], rows.values[taken]
        self._grow(min(rows.width, self._limit))
        np.minimum.at(self._low, columns, values)
        np.maximum.at(self._high, columns, values)
        np.add.at(self._count, columns, 1)

    def _grow(self, width: int) -> None:
        """Room doubles when it runs out, up to the limit."""
        have = len(self._low)
        if width > have:
            more = 0, min(max(width, 2 * have), self._limit) - have
            self._low = np.pad(self._low, more, constant_values=np.inf)
            self._high = np.pad(self._high, more, constant_values=-np.inf)
            self._count = np.pad(self._count, more)

    def result(self, first: int, stop: int) -> tuple[Floats, Floats, Integers]:
        """Smallest and largest values and counts of the columns `first` to `stop`, if looked at."""
        stop = max(min(stop, self._limit), first)
        self._grow(stop)
        part = slice(first, stop)
        sparse = self._count[part] < self._rows  # such a column has a zero somewhere
        low = np.where(sparse, np.minimum(self._low[part], 0.0), self._low[part])
        high = np.where(sparse, np.maximum(self._high[part], 0.0), self._high[part])
        return low, high, self._count[part]


class RowsSeen:
    """Lengths of rows, and a hash of each with its label and line, which finds those seen again."""

    def __init__(self, limit: int = MOST_FINGERPRINTS) -> None:
        self._left = limit
        self._parts: list[tuple[NDArray[Any], ...]] = []
        self._empty, self._shortest, self._longest = 0, math.inf, 0.0

    def add(self, rows: CsrRows, labels: NDArray[Any], lines: Integers) -> None:
        """Take in the next rows, and remember them while there is room."""
        lengths = _lengths(rows)
        self._empty += len(rows) - len(lengths)
        self._shortest = min(self._shortest, float(lengths.min(initial=math.inf)))
        self._longest = max(self._longest, float(lengths.max(initial=0.0)))
        if taken := min(len(rows), self._left):
            hashes = row_hashes(rows.slice(0, taken))
            self._parts.append((hashes, labels[:taken].copy(), lines[:taken].copy()))
            self._left -= taken

    def labels(self) -> Floats:
        """Those of the rows remembered, in order."""
        return np.concatenate([part[1] for part in self._parts])

    def facts(self) -> RowFacts:
        """Lengths, and how many rows equal an earlier one, or one of another label."""
        hashes, labels, lines = (np.concatenate(one) for one in zip(*self._parts, strict=True))
        order = np.lexsort((labels, hashes))
        hashes, labels, lines = hashes[order], labels[order], lines[order]
        same = hashes[1:] == hashes[:-1]
        differs = same & (labels[1:] != labels[:-1])
        starts = np.flatnonzero(np.append(True, ~same))
        mixed = np.add.reduceat(np.append(False, differs).astype(np.int64), starts) > 0
        return RowFacts(
            empty=self._empty,
            shortest=self._shortest if math.isfinite(self._shortest) else None,
            longest=self._longest if 0 < self._longest < math.inf else None,
            compared=len(lines),
            duplicates=int(np.count_nonzero(same)),
            duplicate_lines=_earliest(lines, np.flatnonzero(same)),
            contradictory=int(np.diff(starts, append=len(lines))[mixed].sum()),
            contradictory_lines=_earliest(lines, np.flatnonzero(differs)),
        )


def _lengths(rows: CsrRows) -> Floats:
    """Euclidean lengths of rows that are not empty.

    They are computed in units of 2^e, so that no square overflows or underflows.
    """
    exponent = int(np.frexp(rows.values)[1].max(initial=-2000))
    values = np.ldexp(rows.values, -exponent)
    used = row_sums(rows, (rows.values != 0).astype(np.float64)) > 0
    with np.errstate(over="ignore"):
        return np.ldexp(np.sqrt(row_sums(rows, values * values)[used]), exponent)


def _earliest(lines: Integers, places: Integers) -> tuple[int, int] | None:
    """Of the neighbours at these places and the next ones, the pair that is complete first."""
    if not len(places):
        return None
    pairs = np.sort(np.stack((lines[places], lines[places + 1])), axis=0)
    first, second = pairs[:, np.argmin(pairs[1])].tolist()
    return first, second


class Sample:
    """Rows drawn at random without replacement, in one pass and repeatably.

    Every row gets a random number; those with the smallest ones stay, in this order. So the first
    rows of a sample are a sample, too, and one that holds too many values is simply cut.
    """

    def __init__(
        self, seed: int, most_rows: int = MOST_SAMPLED, most_values: int = MOST_SAMPLED_VALUES
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._most_rows, self._most_values = most_rows, most_values
        self._drawn = np.zeros(0)
        self.labels: Floats = np.zeros(0)
        self.rows = CsrRows(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0), 0)

    def add(self, rows: CsrRows, labels: Floats) -> None:
        """Let the next rows take part."""
        drawn = self._random.random(len(rows))
        highest = self._drawn[-1] if len(self._drawn) >= self._most_rows else 1.0
        candidates = np.flatnonzero(drawn < highest)
        joined = CsrRows.concatenate([self.rows, rows.take(candidates)])
        drawn = np.append(self._drawn, drawn[candidates])
        order = np.argsort(drawn, kind="stable")[: self._most_rows]
        values = np.cumsum(np.diff(joined.indptr)[order])
        fitting = max(int(np.searchsorted(values, self._most_values, side="right")), 1)
        if fitting < len(order):
            self._most_rows, order = fitting, order[:fitting]
        self.rows, self._drawn = joined.take(order), drawn[order]
        self.labels = np.append(self.labels, labels[candidates])[order]
