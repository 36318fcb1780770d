"""BLAS routines, and every tolerance of the core: where rounding must not decide.

`import scipy.linalg` and `import scipy.sparse` each take a third of the time of a small run. The
routines that learners call live in extension modules, which load in a few milliseconds, and a call
takes a third of the time of the same operation by NumPy.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import sys
from typing import Any

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats


def _extension(name: str, ordinary: str, package: str = "linalg") -> Any:
    """SciPy's extension module of this name, or the ordinary module that has the same routines."""
    scipy = None if ordinary in sys.modules else importlib.util.find_spec("scipy")
    if scipy is not None and scipy.submodule_search_locations:
        loader = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        folder = f"{scipy.submodule_search_locations[0]}/{package}"
        spec = importlib.machinery.FileFinder(folder, loader).find_spec(name)
        if spec is not None and spec.loader is not None:
            with contextlib.suppress(ImportError):
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
                return module
    return importlib.import_module(ordinary)


_blas = _extension("_fblas", "scipy.linalg.blas")
_lapack = _extension("_flapack", "scipy.linalg.lapack")

dasum, daxpy, ddot, dgemv = _blas.dasum, _blas.daxpy, _blas.ddot, _blas.dgemv
dsymm, dsymv, dsyrk, dtrmm = _blas.dsymm, _blas.dsymv, _blas.dsyrk, _blas.dtrmm
dtrsm, dposv, dpotrf, dpotri = _blas.dtrsm, _lapack.dposv, _lapack.dpotrf, _lapack.dpotri
dpotrs = _lapack.dpotrs


def sparse_product(rows: CsrRows, table: Floats, out: Floats | None = None) -> Floats:
    """Product of n x k compressed rows and a k x m table; perhaps in `out`."""
    if out is None:
        out = np.zeros((len(rows), table.shape[1]))
    else:
        out.fill(0.0)
    arrays = rows.indptr.astype(np.int32), rows.columns, rows.values, table.ravel(), out.ravel()
    _sparsetools().csr_matvecs(len(out), *table.shape, *arrays)
    return out


@functools.cache
def _sparsetools() -> Any:
    return _extension("_sparsetools", "scipy.sparse._sparsetools", "sparse")


EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # doubles below this have fewer digits
CANCELLED = 1e-12  # a sum this small compared with the sizes of its terms is rounding: 0
# Numbers that differ by this share of their scale are equal up to rounding. So a squared distance
# to the span of S below this is 0: a duplicate is in the span.
SLACK = 1e-10
# Predictions with |f(x)| below this may differ on other hardware. So an exponent of a kernel with a
# larger rounding error is computed by subtraction.
NEAR_TIE = 1e-9
NEAR_SPAN = 1e-2  # squared distances to the span below this are refined with K(S,S): few digits
SPAN_ERROR = 2e-13  # of a squared distance to the span, per unit of the largest entry of K^{-1}
DRIFT = 1e-8  # the largest error of K·K^{-1} - I; beyond it K^{-1} is computed from scratch
ORTHOGONAL = 1e-250  # k·C·k up to this is 0 up to underflow: x is orthogonal to S
# Entries below this become 0 before products of matrices: denormal numbers would slow them down
# three times. (1e-100 already changed update counts.) And a lazy scale below this is multiplied
# into the coefficients.
FLUSHED = 1e-150
HUGE = 2.0**1020  # half squared lengths from here on are refused: sums of two must be finite
LOWEST = -745.2  # `exp` of anything below is 0, and takes 10 to 80 times as long


def cancelled(value: float, terms: float) -> bool:
    """Whether a sum is 0 up to the rounding of its terms; `terms` is the sum of their sizes."""
    return abs(value) <= CANCELLED * terms


def flush(values: Floats, below: float = FLUSHED) -> Floats:
    """Set entries of smaller size to 0, in place."""
    values[np.abs(values) < below] = 0.0
    return values


def under(threshold: float) -> float:
    """`update_below` of the rule `y·f(x) < threshold`: margins on the threshold do not update."""
    return threshold * (1.0 - SLACK)


def up_to(threshold: float) -> float:
    """`update_below` of the rule `y·f(x) <= threshold`: margins on the threshold update."""
    return max(threshold * (1.0 + SLACK), TINY)


HINGE = under(1.0)  # margins from here on have no hinge loss


def first_smallest(values: Floats, scale: float | None = None) -> int:
    """Index of the smallest value; of those equal up to rounding, the first (the oldest).

    `scale` is the size of the terms that the values are sums of: a sum that cancels keeps the
    rounding of its terms. By default the smallest value is its own scale.
    """
    smallest = values.item(values.argmin())
    slack = SLACK * (abs(smallest) if scale is None else scale)
    return int((values <= smallest + slack).argmax())
