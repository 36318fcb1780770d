"""Feature scaling before the first round (`--scale`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats, Rows, unit_rows

LEARNED_SCALES = ("minmax", "standard")
"""Scales that are fitted to rows before learning."""
SCALES = ("none", *LEARNED_SCALES, "unit")


@dataclass(frozen=True, eq=False)
class Scaler:
    """Scaling of each feature by `minmax` (to [0, 1]) or `standard` (mean 0, deviation 1).

    A value is divided by `largest`, so that no square or difference can overflow; then `shift` is
    subtracted and the result divided by `spread`. A constant feature is only shifted. Sparse rows
    are not shifted, so that zeros stay zeros; Gaussian and Laplacian kernels do not depend on
    shifts. Features that did not occur when the scaler was fitted are not changed.
    """

    largest: Floats
    shift: Floats
    spread: Floats

    @classmethod
    def fitted(cls, rows: Rows, how: str) -> Scaler:
        """Fit a scaler to these rows; `how` is "minmax" or "standard"."""
        ranges = how == "minmax"
        if isinstance(rows, CsrRows):
            largest = np.zeros(rows.width)
            np.maximum.at(largest, rows.columns, np.abs(rows.values))
            largest = np.where(largest > 0, largest, 1.0)
            level = replace(rows, values=rows.values / largest[rows.columns])
            spread = _sparse_ranges(level) if ranges else _sparse_deviations(level)
            return cls(largest, np.zeros(rows.width), _nonzero(spread))
        largest = np.abs(rows).max(axis=0)
        largest = np.where(largest > 0, largest, 1.0)
        dense: Floats = rows / largest
        shift = dense.min(axis=0) if ranges else dense.mean(axis=0)
        dense -= shift
        return cls(largest, shift, _nonzero(dense.max(axis=0) if ranges else dense.std(axis=0)))

    def __call__(self, rows: Rows) -> Rows:
        """Return the scaled rows."""
        if isinstance(rows, CsrRows):
            known = np.minimum(rows.columns, len(self.largest))  # unknown ones share a column
            values = rows.values / np.append(self.largest, 1.0)[known]
            values /= np.append(self.spread, 1.0)[known]
            return replace(rows, values=values)
        width = min(rows.shape[1], len(self.largest))
        dense: Floats = rows.astype(np.float64)
        dense[:, :width] /= self.largest[:width]
        dense[:, :width] -= self.shift[:width]
        dense[:, :width] /= self.spread[:width]
        return dense


def scaled(rows: Rows, how: str) -> Rows:
    """Rows scaled by any of `SCALES`, fitted to these rows themselves."""
    if how == "none":
        return rows
    return unit_rows(rows) if how == "unit" else Scaler.fitted(rows, how)(rows)


def _nonzero(spread: Floats) -> Floats:
    """The spread to divide by; 1 for features that are constant up to rounding."""
    return np.where(spread > 1e-12, spread, 1.0)


def _sparse_ranges(rows: CsrRows) -> Floats:
    # values that are not stored are 0; a feature that is stored in every row has no zeros
    zero = np.bincount(rows.columns, minlength=rows.width) < len(rows)
    low, high = np.where(zero, 0.0, np.inf), np.where(zero, 0.0, -np.inf)
    np.minimum.at(low, rows.columns, rows.values)
    np.maximum.at(high, rows.columns, rows.values)
    return high - low


def _sparse_deviations(rows: CsrRows) -> Floats:
    count = len(rows)
    means = np.bincount(rows.columns, weights=rows.values, minlength=rows.width) / count
    stored = np.bincount(rows.columns, minlength=rows.width)
    squares = (rows.values - means[rows.columns]) ** 2
    total = np.bincount(rows.columns, weights=squares, minlength=rows.width)
    return np.sqrt((total + (count - stored) * means**2) / count)
