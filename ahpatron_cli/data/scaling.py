"""Features brought to comparable size before the first round: `--scale`."""

from __future__ import annotations

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats, Rows, unit_rows

SCALES = ("none", "minmax", "standard", "unit")

__all__ = ["SCALES", "scaled", "unit_rows"]


def scaled(rows: Rows, scale: str) -> Rows:
    """Rows after `minmax` (to [0, 1]), `standard` (mean 0, deviation 1) or `unit` (length 1).

    Ranges, means and deviations are those of all rows; a constant feature is only shifted.
    Sparse rows are divided but not shifted, so that zeros stay zeros: the Gaussian and the
    Laplacian kernel do not see the difference.
    """
    if scale == "none":
        return rows
    if scale == "unit":
        return unit_rows(rows)
    # Features are first divided by their largest value: no square or difference can overflow.
    if isinstance(rows, CsrRows):
        largest = np.zeros(rows.width)
        np.maximum.at(largest, rows.columns, np.abs(rows.values))
        values = rows.values / np.where(largest > 0, largest, 1.0)[rows.columns]
        level = CsrRows(rows.indptr, rows.columns, values, rows.width)
        spread = _sparse_ranges(level) if scale == "minmax" else _sparse_deviations(level)
        return CsrRows(
            rows.indptr, rows.columns, values / _nonzero(spread)[rows.columns], rows.width
        )
    largest = np.abs(rows).max(axis=0)
    dense: Floats = rows / np.where(largest > 0, largest, 1.0)
    dense -= dense.min(axis=0) if scale == "minmax" else dense.mean(axis=0)
    dense /= _nonzero(dense.max(axis=0) if scale == "minmax" else dense.std(axis=0))
    return dense


def _nonzero(spread: Floats) -> Floats:
    """The spread to divide by; 1 for a feature that is constant but for rounding."""
    return np.where(spread > 1e-12, spread, 1.0)


def _sparse_ranges(rows: CsrRows) -> Floats:
    low, high = np.zeros(rows.width), np.zeros(rows.width)  # values not stored are zeros
    np.minimum.at(low, rows.columns, rows.values)
    np.maximum.at(high, rows.columns, rows.values)
    everywhere = np.bincount(rows.columns, minlength=rows.width) == len(rows)
    if everywhere.any():  # no zero in this feature: its range is that of what is stored
        low[everywhere], high[everywhere] = np.inf, -np.inf
        stored = everywhere[rows.columns]
        np.minimum.at(low, rows.columns[stored], rows.values[stored])
        np.maximum.at(high, rows.columns[stored], rows.values[stored])
    return high - low


def _sparse_deviations(rows: CsrRows) -> Floats:
    count = len(rows)
    means = np.bincount(rows.columns, weights=rows.values, minlength=rows.width) / count
    stored = np.bincount(rows.columns, minlength=rows.width)
    squares = (rows.values - means[rows.columns]) ** 2
    total = np.bincount(rows.columns, weights=squares, minlength=rows.width)
    deviations: Floats = np.sqrt((total + (count - stored) * means**2) / count)
    return deviations
