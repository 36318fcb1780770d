"""Conversion of the rows of a stream to points: dense or sparse, and the centre of dense points."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.points import NARROW, Points
from ahpatron_cli.core.rows import CsrRows, Floats, Rows, compressed


class Conversion:
    """Converts rows to points of a kernel, in the same way for all pieces of a stream.

    The first piece decides whether the points are dense or sparse, and its first row is the centre
    of dense points. New columns may turn up in later pieces.

    Parameters
    ----------
    kernel : Kernel
    dense : bool, default=False
        Whether sparse rows are made dense, too.

    Attributes
    ----------
    sparse : bool or None
        Whether points are sparse; None before the first piece.
    centre : array of shape (width,) or None
        What is subtracted from dense rows if the kernel is `centred`; else zeros, as wide as the
        widest row so far. None before the first piece and in sparse streams.

    Examples
    --------
    >>> from ahpatron_cli.core import Gaussian
    >>> conversion = Conversion(Gaussian())
    >>> conversion.convert(np.array([[5.0, 1.0], [6.0, 1.0]])).coordinates.tolist()
    [[0.0, 0.0], [1.0, 0.0]]
    >>> conversion.sparse
    False
    """

    def __init__(self, kernel: Kernel, *, dense: bool = False) -> None:
        self._kernel = kernel
        self._dense = dense
        self.sparse: bool | None = None
        self.centre: Floats | None = None

    def copy(self) -> Conversion:
        """A conversion that has seen the same pieces; rows that it converts do not change this."""
        other = Conversion(self._kernel, dense=self._dense)
        other.sparse = self.sparse
        other.centre = self.centre
        return other

    def forget(self) -> None:
        """Let the next piece be the first one."""
        self.sparse = None
        self.centre = None

    def convert(self, rows: Rows) -> Points:
        """Points of these rows; a NumericalError if one cannot be represented."""
        if self.sparse is None:
            is_sparse = isinstance(rows, CsrRows)
            self.sparse = is_sparse and not self._dense
        if self.sparse:
            return self._kernel.points(compressed(rows))
        if isinstance(rows, CsrRows):
            rows = _dense(rows)
        if self.centre is None:
            self.centre = self._centre_of(rows)
        width = rows.shape[1]
        missing = width - len(self.centre)
        if missing > 0:
            after = (0, missing)
            self.centre = np.pad(self.centre, after)
        elif missing < 0:
            after = (0, -missing)
            rows = np.pad(rows, ((0, 0), after))
        if not self._kernel.centred:
            return self._kernel.points(rows)
        return self._kernel.points(rows, self.centre)

    def _centre_of(self, rows: Floats) -> Floats:
        """The centre of a stream that begins with these rows.

        Shifting all rows does not change κ and saves digits. Only the first row decides.
        """
        self._kernel.points(rows[:1])  # if its square overflows, the second row is not to blame
        if self._kernel.centred:
            first = rows[0].astype(np.float64)
            centre = np.nan_to_num(first)
            return np.asarray(centre)
        width = rows.shape[1]
        return np.zeros(width)

    def is_consistent(self, *, begun: bool) -> bool:
        """Whether a stream is dense or sparse once it has begun, and has a centre if dense."""
        is_dense = self.sparse is False
        has_centre = isinstance(self.centre, np.ndarray)
        if is_dense != has_centre:
            return False
        if begun:
            return type(self.sparse) is bool
        return self.sparse is None


def _dense(rows: CsrRows) -> Floats:
    """Sparse rows as a dense array; a NumericalError if they have too many features."""
    is_beyond = rows.columns >= NARROW
    wide = rows.owners[is_beyond]
    if len(wide):
        limit = f"dense streams have at most {NARROW:,} features"
        raise NumericalError(f"{limit}, got {rows.width:,}", wide.item(0))
    width = min(rows.width, NARROW)
    narrow = replace(rows, width=width)
    return narrow.dense()
