"""BLAS and LAPACK without the rest of scipy.linalg, and with it."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack

from ahpatron_cli.core import blas


def test_the_routines_are_those_of_scipy() -> None:
    x, K = np.arange(1.0, 4.0), np.eye(3) + 0.5
    assert blas.ddot(x, x) == scipy.linalg.blas.ddot(x, x) == 14.0
    ours, theirs = blas.dposv(K, x)[1], scipy.linalg.lapack.dposv(K, x)[1]
    np.testing.assert_array_equal(ours, theirs)


def test_the_ordinary_import_serves_where_the_extension_cannot_be_loaded_alone() -> None:
    assert blas._extension("_no_such_extension", "scipy.linalg.blas") is scipy.linalg.blas
    assert blas._extension("_fblas", "scipy.linalg.blas") is scipy.linalg.blas  # it is there


def test_both_ways_of_loading_live_in_one_process() -> None:
    code = (
        "from ahpatron_cli.core import blas; import numpy, scipy.linalg, sys;"
        "x = numpy.arange(4.0); y = scipy.linalg.blas.daxpy(x, x.copy());"
        "print(blas._blas is scipy.linalg.blas, blas.ddot(x, y), scipy.linalg.norm(x) ** 2)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    alone, *sums = done.stdout.split()
    assert alone == "False"
    assert [round(float(one), 9) for one in sums] == [28.0, 14.0]
