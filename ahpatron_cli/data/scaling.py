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
        sizes = np.abs(rows)
        largest = _or_one(sizes.max(axis=0))
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
        columns = rows.columns
        sizes = np.abs(rows.values)
        largest = np.zeros(rows.width)
        np.maximum.at(largest, columns, sizes)
        largest = _or_one(largest)
        of_values = largest[columns]
        level = replace(rows, values=rows.values / of_values)
        spread_of = _SPARSE_SPREADS[how]
        spread = spread_of(level)
        shift = np.zeros(rows.width)
        return cls(largest, shift, _nonzero(spread))

    def __call__(self, rows: Rows) -> Rows:
        """Return the scaled rows."""
        if isinstance(rows, CsrRows):
            return self._scaled_sparse(rows)
        scaled: Floats = rows.astype(np.float64)
        _, columns = rows.shape
        width = min(columns, len(self.largest))
        largest = self.largest[:width]
        shift = self.shift[:width]
        spread = self.spread[:width]
        known = scaled[:, :width]
        known /= largest
        known -= shift
        known /= spread
        return scaled

    def _scaled_sparse(self, rows: CsrRows) -> CsrRows:
        width = len(self.largest)
        known = np.minimum(rows.columns, width)  # unknown ones share a column
        largest = np.append(self.largest, 1.0)
        spread = np.append(self.spread, 1.0)
        values = rows.values / largest[known]
        values /= spread[known]
        return replace(rows, values=values)


def scaled(rows: Rows, how: str) -> Rows:
    """Rows scaled in one of these ways, fitted to these rows themselves."""
    if how == "none":
        return rows
    if how == "unit":
        return unit_rows(rows)
    scaler = Scaler.fitted(rows, how)
    return scaler(rows)


def _or_one(largest: Floats) -> Floats:
    """The largest values to divide by; 1 for features that are always 0."""
    return np.where(largest > 0, largest, 1.0)


def _nonzero(spread: Floats) -> Floats:
    """The spread to divide by; 1 for features that are constant up to rounding."""
    return np.where(spread > 1e-12, spread, 1.0)


def _sparse_ranges(rows: CsrRows) -> Floats:
    # values that are not stored are 0; a feature that is stored in every row has no zeros
    columns = rows.columns
    values = rows.values
    stored = np.bincount(columns, minlength=rows.width)
    count = len(rows)
    has_zeros = stored < count
    low = np.where(has_zeros, 0.0, np.inf)
    high = np.where(has_zeros, 0.0, -np.inf)
    np.minimum.at(low, columns, values)
    np.maximum.at(high, columns, values)
    return high - low


def _sparse_deviations(rows: CsrRows) -> Floats:
    count = len(rows)
    columns = rows.columns
    width = rows.width
    values = rows.values
    sums = np.bincount(columns, weights=values, minlength=width)
    means = sums / count
    deviations = values - means[columns]
    squares = deviations**2
    of_stored = np.bincount(columns, weights=squares, minlength=width)
    stored = np.bincount(columns, minlength=width)
    zeros = count - stored
    of_zeros = zeros * means**2
    variances = (of_stored + of_zeros) / count
    return np.sqrt(variances)


_SPARSE_SPREADS = {
    "minmax": _sparse_ranges,
    "standard": _sparse_deviations,
}
