"""When rows are stored as dense arrays, and when sparse."""

from __future__ import annotations

LAYOUTS = ("auto", "dense", "sparse")
"""Values of --layout."""
DENSE_WIDTH = 4096
"""Largest number of columns of dense rows."""
DENSE_SHARE = 0.1
"""Smallest share of stored values for which dense rows are faster."""


def is_dense(rows: int, width: int, stored: int) -> bool:
    """Whether this many rows and columns with `stored` values are learned as dense rows."""
    return width <= DENSE_WIDTH and is_filled(rows, width, stored)


def is_filled(rows: int, width: int, stored: int) -> bool:
    """Whether enough values are stored for dense rows, whatever the width."""
    return stored >= DENSE_SHARE * rows * width
