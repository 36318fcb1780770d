"""Feature scaling before the first round (`--scale`)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats, Rows, unit_rows

LEARNED_SCALES = ("minmax", "standard")
"""Scales that are fitted to rows before learning."""


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
        if isinstance(rows, CsrRows):
            return cls._fitted_to_sparse(rows, how)
        largest = np.abs(rows).max(axis=0)
        largest = np.where(largest > 0, largest, 1.0)
        level: Floats = rows / largest
        if how == "minmax":
            shift = level.min(axis=0)
            level -= shift
            spread = level.max(axis=0)
        else:
            shift = level.mean(axis=0)
            level -= shift
            spread = level.std(axis=0)
        return cls(largest, shift, _nonzero(spread))

    @classmethod
    def _fitted_to_sparse(cls, rows: CsrRows, how: str) -> Scaler:
        largest = np.zeros(rows.width)
        np.maximum.at(largest, rows.columns, np.abs(rows.values))
        largest = np.where(largest > 0, largest, 1.0)
        level = replace(rows, values=rows.values / largest[rows.columns])
        spread_of = _sparse_ranges if how == "minmax" else _sparse_deviations
        spread = spread_of(level)
        return cls(largest, np.zeros(rows.width), _nonzero(spread))

    def __call__(self, rows: Rows) -> Rows:
        """Return the scaled rows."""
        if isinstance(rows, CsrRows):
            known = np.minimum(rows.columns, len(self.largest))  # unknown ones share a column
            largest = np.append(self.largest, 1.0)
            spread = np.append(self.spread, 1.0)
            values = rows.values / largest[known]
            values /= spread[known]
            return replace(rows, values=values)
        width = min(rows.shape[1], len(self.largest))
        dense: Floats = rows.astype(np.float64)
        dense[:, :width] /= self.largest[:width]
        dense[:, :width] -= self.shift[:width]
        dense[:, :width] /= self.spread[:width]
        return dense


def scaled(rows: Rows, how: str) -> Rows:
    """Rows scaled in one of these ways, fitted to these rows themselves."""
    if how == "none":
        return rows
    if how == "unit":
        return unit_rows(rows)
    scaler = Scaler.fitted(rows, how)
    return scaler(rows)


def _nonzero(spread: Floats) -> Floats:
    """The spread to divide by; 1 for features that are constant up to rounding."""
    return np.where(spread > 1e-12, spread, 1.0)


def _sparse_ranges(rows: CsrRows) -> Floats:
    # values that are not stored are 0; a feature that is stored in every row has no zeros
    stored = np.bincount(rows.columns, minlength=rows.width)
    has_zeros = stored < len(rows)
    low = np.where(has_zeros, 0.0, np.inf)
    high = np.where(has_zeros, 0.0, -np.inf)
    np.minimum.at(low, rows.columns, rows.values)
    np.maximum.at(high, rows.columns, rows.values)
    return high - low


def _sparse_deviations(rows: CsrRows) -> Floats:
    count = len(rows)
    sums = np.bincount(rows.columns, weights=rows.values, minlength=rows.width)
    means = sums / count
    stored = np.bincount(rows.columns, minlength=rows.width)
    squares = (rows.values - means[rows.columns]) ** 2
    of_stored = np.bincount(rows.columns, weights=squares, minlength=rows.width)
    of_zeros = (count - stored) * means**2
    return np.sqrt((of_stored + of_zeros) / count)
