"""BLAS and LAPACK without the rest of SciPy, and ties that rounding must not decide."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import scipy.linalg.blas
import scipy.linalg.lapack
import scipy.sparse

from ahpatron_cli.core import numerics as blas
from ahpatron_cli.core.rows import rows_from


def test_sparse_rows_are_multiplied_as_scipy_does() -> None:
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random(40, 30, 0.2, "csr", random_state=rng)
    table = rng.standard_normal((50, 7))[:30]
    product = blas.sparse_product(rows_from(matrix), table)
    np.testing.assert_array_equal(product, matrix @ table)


def test_sparse_rows_need_no_scipy_sparse() -> None:
    code = (
        "import sys; from ahpatron_cli.core import Ahpatron, play;"
        "from ahpatron_cli.core.rows import compressed; import numpy;"
        "play(Ahpatron(budget=4), compressed(numpy.eye(9)), [1.0, -1.0, 1.0] * 3);"
        "print('scipy.sparse' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_first_of_equal_values_is_the_smallest() -> None:
    assert blas.first_smallest(np.array([2.0, 1.0 + 1e-12, 1.0])) == 1
    assert blas.first_smallest(np.array([2.0, 1.0 + 1e-9, 1.0])) == 2


def test_ties_are_measured_by_the_terms_before_cancellation() -> None:
    values = np.array([1e-12, 0.0])  # sums of terms of size 1
    assert blas.first_smallest(values, scale=1.0) == 0
    assert blas.first_smallest(values) == 1
