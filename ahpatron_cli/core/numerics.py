"""BLAS routines, and all tolerances of the core that keep rounding from deciding.

`import scipy.linalg` and `import scipy.sparse` each take a third of the time of a small run. The
routines that learners call are in extension modules, which load in a few milliseconds; a call takes
a third of the time of the same NumPy operation.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.util
import sys
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
)
from typing import Any

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats


def _extension(name: str, ordinary: str, package: str = "linalg") -> Any:
    """Load SciPy's extension module `name`, or else the public module with the same routines."""
    if ordinary in sys.modules:
        return importlib.import_module(ordinary)
    spec = _extension_spec(name, package)
    if spec is not None and spec.loader is not None:
        with contextlib.suppress(ImportError):
            module = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
            return module
    return importlib.import_module(ordinary)


def _extension_spec(name: str, package: str) -> ModuleSpec | None:
    """Where the extension module `name` of a SciPy package is; None if it is not found."""
    scipy = importlib.util.find_spec("scipy")
    if scipy is None or not scipy.submodule_search_locations:
        return None
    folder = f"{scipy.submodule_search_locations[0]}/{package}"
    finder = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES))
    return finder.find_spec(name)


_blas = _extension("_fblas", "scipy.linalg.blas")
_lapack = _extension("_flapack", "scipy.linalg.lapack")

dasum = _blas.dasum
daxpy = _blas.daxpy
ddot = _blas.ddot
dgemv = _blas.dgemv
dsymm = _blas.dsymm
dsymv = _blas.dsymv
dsyrk = _blas.dsyrk
dtrmm = _blas.dtrmm
dtrsm = _blas.dtrsm
dposv = _lapack.dposv
dpotrf = _lapack.dpotrf
dpotri = _lapack.dpotri
dpotrs = _lapack.dpotrs


def sparse_product(rows: CsrRows, table: Floats, out: Floats | None = None) -> Floats:
    """Product of n x k sparse rows and a dense k x m table; may be written to `out`."""
    if out is None:
        shape = (len(rows), table.shape[1])
        out = np.zeros(shape)
    else:
        out.fill(0.0)
    features, columns = table.shape
    _sparsetools().csr_matvecs(
        len(out),
        features,
        columns,
        rows.indptr.astype(np.int32),
        rows.columns,
        rows.values,
        table.ravel(),
        out.ravel(),
    )
    return out


@functools.cache
def _sparsetools() -> Any:
    return _extension("_sparsetools", "scipy.sparse._sparsetools", "sparse")


EPS = float(np.finfo(np.float64).eps)
TINY = float(np.finfo(np.float64).tiny)  # smaller doubles are denormal
CANCELLED = 1e-12  # a sum below this share of Σ|terms| is rounding error and counts as 0
# Numbers that differ by less than this share of their scale are equal up to rounding; a squared
# distance to the span of S below this is 0 (a duplicate).
SLACK = 1e-10
# Predictions with |f(x)| below this may differ on other hardware. Kernel exponents with a larger
# rounding error are recomputed by subtraction.
NEAR_TIE = 1e-9
NEAR_SPAN = 1e-2  # squared distances to the span below this are refined with K(S,S): few digits
SPAN_ERROR = 2e-13  # of a squared distance to the span, per unit of the largest entry of K^{-1}
DRIFT = 1e-8  # the largest error of K·K^{-1} - I; beyond it K^{-1} is computed from scratch
ORTHOGONAL = 1e-250  # k·C·k up to this is underflow: x is orthogonal to S
# Entries below this are set to 0 before matrix products, which denormals make three times as slow
# (1e-100 already changed update counts). A lazy scale below this is multiplied into the
# coefficients.
FLUSHED = 1e-150
HUGE = 2.0**1020  # limit of ‖x‖²/2, so that the sum of two is finite
FAR = 2.0**480  # limit of coordinates in metron's metric: sums of squares stay below HUGE
LOWEST = -745.2  # exp(x) underflows to 0 below this, and takes 10 to 80 times as long


def cancelled(value: float, terms: float) -> bool:
    """Whether a sum is 0 up to rounding; `terms` is the sum of the absolute values of its terms."""
    return abs(value) <= CANCELLED * terms


def flush(values: Floats, below: float = FLUSHED) -> Floats:
    """Set entries with |value| < below to 0, in place."""
    values[np.abs(values) < below] = 0.0
    return values


def blend(A: Floats, B: Floats, share: float) -> None:
    """`A ← share·A + (1 - share)·B`, in place; both in LAPACK's memory order."""
    if not A.size:  # SciPy refuses empty vectors
        return
    A *= share
    flat_A = A.reshape(-1, order="F")
    flat_B = B.reshape(-1, order="F")
    daxpy(flat_B, flat_A, a=1.0 - share)


def rounding_level(A: Floats) -> float:
    """Size of the rounding errors of the eigenvalues of a positive definite matrix."""
    largest = float(A.diagonal().max(initial=0.0))
    return len(A) * EPS * largest


def under(threshold: float) -> float:
    """`update_below` for the rule y·f(x) < threshold: equality up to rounding does not update."""
    return threshold * (1.0 - SLACK)


def up_to(threshold: float) -> float:
    """`update_below` for the rule y·f(x) <= threshold: equality up to rounding updates."""
    return max(threshold * (1.0 + SLACK), TINY)


HINGE = under(1.0)  # margins from here on have no hinge loss


def first_smallest(values: Floats, scale: float | None = None) -> int:
    """Index of the smallest value; ties up to rounding: the first (the oldest).

    `scale` is the magnitude to which rounding is relative: that of the terms if the values are sums
    that may cancel; by default the smallest value itself.
    """
    smallest = values.item(values.argmin())
    if scale is None:
        scale = abs(smallest)
    equal = values <= smallest + SLACK * scale
    return int(equal.argmax())


def median(values: Floats) -> float:
    """The median of finite numbers; `np.median` would import numpy.ma, as `np.unique` does."""
    ordered = np.sort(values)
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return float(ordered[middle])
    return float(ordered[middle - 1] + ordered[middle]) / 2
