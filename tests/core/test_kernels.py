"""Kernels, and what they declare."""

from __future__ import annotations

import numpy as np
import pytest

from ahpatron_cli.core import KERNELS
from support.cases import KERNEL_PAIRS

ROWS = np.random.default_rng(4).normal(size=(6, 3))


def test_every_kernel_has_a_formula_to_compare_it_with() -> None:
    assert set(KERNEL_PAIRS) == set(KERNELS)


@pytest.mark.parametrize("name", KERNEL_PAIRS)
def test_kernel_values_of_rows_with_large_offsets_are_those_of_the_formula(name: str) -> None:
    kernel, formula = KERNEL_PAIRS[name]
    rng = np.random.default_rng(5)
    near = rng.normal(size=(15, 3)) * 40.0
    rows = np.concatenate([near, near + 1e8])
    points = kernel.points(rows)
    expected = [[formula(u, v) for v in rows.tolist()] for u in rows.tolist()]
    assert kernel.between(points, points) == pytest.approx(np.array(expected))


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_declares_a_distance_if_it_depends_on_differences_only(name: str) -> None:
    kernel, _ = KERNEL_PAIRS[name]
    here = kernel.points(ROWS)
    shifted = kernel.points(ROWS + 1.0)
    is_invariant = np.allclose(kernel.between(here, here), kernel.between(shifted, shifted))
    assert is_invariant == (kernel.distance is not None)


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_with_a_width_declares_the_distance_it_is_chosen_by(name: str) -> None:
    if "sigma" in KERNELS[name].specs():
        assert KERNELS[name].distance is not None
