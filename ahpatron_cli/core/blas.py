"""The routines of BLAS and LAPACK that learners call, without the rest of `scipy.linalg`.

`import scipy.linalg` takes a third of the time of a small run. These routines live in two extension
modules of it, which load in a few milliseconds; where they cannot be loaded alone, as on systems
that find libraries in another way, the ordinary import serves. A call takes a third of the time of
the same operation by NumPy.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import sys
from typing import Any


def _extension(name: str, ordinary: str) -> Any:
    """The extension module `scipy.linalg.NAME`; or the module that has the same names."""
    scipy = None if ordinary in sys.modules else importlib.util.find_spec("scipy")
    if scipy is not None and scipy.submodule_search_locations:
        loader = (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES)
        folder = f"{scipy.submodule_search_locations[0]}/linalg"
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
dspmv, dspr = _blas.dspmv, _blas.dspr
dposv, dpotrf, dpotri = _lapack.dposv, _lapack.dpotrf, _lapack.dpotri
