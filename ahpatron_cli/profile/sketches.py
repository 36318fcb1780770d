"""Bounded sketches of a stream of rows: what `ahpatron inspect` remembers of a file, and no more.

- `Columns`: smallest and largest value and count of each column, of the first 2^20 columns;
  24 bytes a column.
- `Fingerprints`: hash, label and line of each row, of the first 2 million rows; 24 bytes a row.
- `Sample`: rows drawn at random, at most 4,000 rows and 2^20 values; 12 bytes a value.

So the memory needed does not depend on the length of the file.

Rows are compared by 64-bit hashes: among 2 million rows any two that differ collide with
probability 1e-7.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats, Integers, row_sums
from ahpatron_cli.data.geometry import row_hashes

MOST_COLUMNS = 1 << 20
MOST_FINGERPRINTS = 2_000_000
MOST_SAMPLED = 4000
MOST_SAMPLED_VALUES = 1 << 20


class Columns:
    """Extremes and count of every column, zeros that are not stored included."""

    def __init__(self, limit: int = MOST_COLUMNS) -> None:
        self._limit = limit
        self._rows = 0
        self._low = np.zeros(0)
        self._high = np.zeros(0)
        self._count = np.zeros(0, dtype=np.int64)

    def add(self, rows: CsrRows) -> None:
        """Take in the next rows."""
        self._rows += len(rows)
        columns, values = rows.columns, rows.values
        taken = values != 0
        if rows.width > self._limit:
            taken &= columns < self._limit
        if not taken.all():
            columns, values = columns[taken], values[taken]
        self._grow(min(rows.width, self._limit))
        np.minimum.at(self._low, columns, values)
        np.maximum.at(self._high, columns, values)
        np.add.at(self._count, columns, 1)

    def _grow(self, width: int) -> None:
        """Room doubles when it runs out, up to the limit."""
        have = len(self._low)
        if width <= have:
            return
        more = min(max(width, 2 * have), self._limit) - have
        self._low = np.concatenate((self._low, np.full(more, np.inf)))
        self._high = np.concatenate((self._high, np.full(more, -np.inf)))
        self._count = np.concatenate((self._count, np.zeros(more, np.int64)))

    def result(self, first: int, stop: int) -> ColumnResult:
        """What is known of the columns `first` to `stop`, as far as they were looked at."""
        stop = min(stop, self._limit)
        self._grow(stop)
        part = slice(first, max(stop, first))
        count = self._count[part]
        sparse = count < self._rows  # such a column has a zero somewhere
        low = np.where(sparse, np.minimum(self._low[part], 0.0), self._low[part])
        high = np.where(sparse, np.maximum(self._high[part], 0.0), self._high[part])
        return ColumnResult(first, low, high, count)


@dataclass(frozen=True, eq=False)
class ColumnResult:
    """Columns from `first` on: extremes, and how many values are not 0."""

    first: int
    low: Floats
    high: Floats
    count: Integers

    def spreads(self) -> Floats:
        """`high - low`, infinite where that does not fit into a double."""
        with np.errstate(over="ignore"):
            return self.high - self.low


class Lengths:
    """The shortest and the longest row that is not empty."""

    def __init__(self) -> None:
        self.empty = 0
        self.shortest = math.inf
        self.longest = 0.0

    def add(self, rows: CsrRows) -> None:
        """Euclidean lengths, in units of 2^e so that no square overflows or underflows."""
        exponents = np.frexp(rows.values)[1]
        exponent = int(exponents.max(initial=-2000))
        values = np.ldexp(rows.values, -exponent)
        used = row_sums(rows, (rows.values != 0).astype(np.float64)) > 0
        with np.errstate(over="ignore"):
            lengths = np.ldexp(np.sqrt(row_sums(rows, values * values)[used]), exponent)
        self.empty += len(rows) - len(lengths)
        self.shortest = min(self.shortest, float(lengths.min(initial=math.inf)))
        self.longest = max(self.longest, float(lengths.max(initial=0.0)))


class Fingerprints:
    """A hash of every row with its label and line: finds rows that appear again."""

    def __init__(self, limit: int = MOST_FINGERPRINTS) -> None:
        self._limit = limit
        self.count = 0
        self._hashes = np.empty(limit, dtype=np.uint64)  # pages are taken only when written to
        self._labels = np.empty(limit)
        self._lines = np.empty(limit, dtype=np.int64)

    def add(self, rows: CsrRows, labels: Floats, lines: Integers) -> None:
        """Remember the next rows, while there is room."""
        taken = min(len(rows), self._limit - self.count)
        if not taken:
            return
        part = slice(self.count, self.count + taken)
        self._hashes[part] = row_hashes(rows.slice(0, taken))
        self._labels[part] = labels[:taken]
        self._lines[part] = lines[:taken]
        self.count += taken

    def result(self) -> tuple[int, tuple[int, int] | None, int, tuple[int, int] | None]:
        """How many rows equal an earlier one, and how many another one of another label.

        With a pair of lines each, as an example.
        """
        labels, lines = self._labels[: self.count], self._lines[: self.count]
        order = np.lexsort((labels, self._hashes[: self.count]))
        hashes, labels, lines = self._hashes[order], labels[order], lines[order]
        same = hashes[1:] == hashes[:-1]
        starts = np.flatnonzero(np.concatenate(([True], ~same)))[: self.count]
        if not same.any():
            return 0, None, 0, None
        differs = same & (labels[1:] != labels[:-1])
        mixed = np.add.reduceat(np.append(False, differs).astype(np.int64), starts) > 0
        sizes = np.diff(np.append(starts, self.count))
        return (
            int(np.count_nonzero(same)),
            _earliest(lines, np.flatnonzero(same)),
            int(sizes[mixed].sum()),
            _earliest(lines, np.flatnonzero(differs)),
        )


def _earliest(lines: Integers, places: Integers) -> tuple[int, int] | None:
    """Of the neighbours at these places and the next ones, the pair that is complete first."""
    if not len(places):
        return None
    pairs = np.sort(np.stack((lines[places], lines[places + 1])), axis=0)
    first, second = pairs[:, np.argmin(pairs[1])].tolist()
    return first, second


class Sample:
    """Rows drawn at random without replacement, in one pass and repeatably.

    Every row gets a random number; those with the smallest ones stay. So any number of rows from
    the beginning of `rows` is a random sample, too, and a sample that holds too many values is
    simply cut.
    """

    def __init__(
        self, seed: int, most_rows: int = MOST_SAMPLED, most_values: int = MOST_SAMPLED_VALUES
    ) -> None:
        self._random = np.random.default_rng(seed)
        self._most_rows = most_rows
        self._most_values = most_values
        self._drawn = np.zeros(0)
        self.labels: Floats = np.zeros(0)
        self.rows: CsrRows | None = None

    def add(self, rows: CsrRows, labels: Floats) -> None:
        """Let the next rows take part."""
        drawn = self._random.random(len(rows))
        full = len(self._drawn) >= self._most_rows
        candidates = np.flatnonzero(drawn < self._drawn[-1]) if full else np.arange(len(rows))
        best = np.argsort(drawn[candidates], kind="stable")[: self._most_rows]
        candidates = candidates[best]
        if not len(candidates):
            return
        new = rows.take(candidates)
        joined = new if self.rows is None else CsrRows.concatenate([self.rows, new])
        all_drawn = np.concatenate((self._drawn, drawn[candidates]))
        order = np.argsort(all_drawn, kind="stable")[: self._most_rows]
        lengths = np.diff(joined.indptr)[order]
        if lengths.sum() > self._most_values:
            fitting = int(np.searchsorted(np.cumsum(lengths), self._most_values, side="right"))
            self._most_rows = max(fitting, 1)
            order = order[: self._most_rows]
        self.rows = joined.take(order)
        self.labels = np.concatenate((self.labels, labels[candidates]))[order]
        self._drawn = all_drawn[order]
