"""The routines of BLAS and LAPACK that learners call, and the product of sparse rows.

`import scipy.linalg` and `import scipy.sparse` take a third of the time of a small run each. These
routines live in extension modules of theirs, which load in a few milliseconds; where they cannot be
loaded alone, as on systems that find libraries in another way, the ordinary import serves. A call
takes a third of the time of the same operation by NumPy.
"""

from __future__ import annotations

import functools
import importlib
import importlib.machinery
import importlib.util
import sys
from typing import Any

import numpy as np

from ahpatron_cli.core.rows import CsrRows, Floats


def _extension(name: str, ordinary: str, package: str = "linalg") -> Any:
    """The extension module NAME of this package of SciPy; or the one that has the same names."""
    scipy = None if ordinary in sys.modules else importlib.util.find_spec("scipy")
    if scipy is not None and scipy.submodule_search_locations:
        loader = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        folder = f"{scipy.submodule_search_locations[0]}/{package}"
        spec = importlib.machinery.FileFinder(folder, loader).find_spec(name)
        if spec is not None and spec.loader is not None:
            try:
                module = importlib.util.module_from_spec(spec)
                spec.loader.exec_module(module)
            except ImportError:
                pass
            else:
                return module
    return importlib.import_module(ordinary)


_blas = _extension("_fblas", "scipy.linalg.blas")
_lapack = _extension("_flapack", "scipy.linalg.lapack")

dasum, daxpy, ddot = _blas.dasum, _blas.daxpy, _blas.ddot
dgemv, dsymm, dsymv, dsyrk, dtrsm = _blas.dgemv, _blas.dsymm, _blas.dsymv, _blas.dsyrk, _blas.dtrsm
dspmv, dspr, dsyr = _blas.dspmv, _blas.dspr, _blas.dsyr
dposv, dpotrf, dpotri = _lapack.dposv, _lapack.dpotrf, _lapack.dpotri


@functools.cache
def _sparse_product() -> Any:
    """SciPy's routine behind the product of a `csr_matrix` and an array; None: there is none."""
    try:
        module = _extension("_sparsetools", "scipy.sparse._sparsetools", "sparse")
    except ImportError:
        return None
    return getattr(module, "csr_matvecs", None)


def sparse_product(rows: CsrRows, table: Floats, out: Floats | None = None) -> Floats:
    """Compressed rows times a table that has a row for each of their columns.

    `out` is a place for the product, which need not be taken.
    """
    indptr, columns = rows.indptr.astype(np.int32), rows.columns
    product = _sparse_product()
    if product is None:
        from scipy.sparse import csr_matrix

        matrix = csr_matrix((rows.values, columns, indptr), shape=(len(rows), len(table)))
        return np.asarray(matrix @ table)
    if out is None:
        out = np.zeros((len(rows), table.shape[1]))
    else:
        out.fill(0.0)
    product(len(out), *table.shape, indptr, columns, rows.values, table.ravel(), out.ravel())
    return out
