"""Learners and kernels made from names and parameters in Python: for scikit-learn and river."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import FrameType

from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner, find_learner
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.registry import is_path
from ahpatron_cli.runner import Setup

LEARNER_IN_PYTHON = "metron"
KERNEL_IN_PYTHON = "gaussian"
_INTERNAL_PACKAGES = ("ahpatron_cli", "sklearn")
"""Packages whose lines are not those of a caller in warnings."""


def _refuse_auto(kernel: str) -> float:
    """The answer to `sigma="auto"` where there are no rows yet."""
    raise ValueError("sigma='auto' needs rows to choose from: give a number")


def configured(
    learner: str | None,
    kernel: str | None,
    given: Mapping[str, Value | None],
    *,
    select_sigma: Callable[[str], float] = _refuse_auto,
) -> tuple[Learner, Kernel]:
    """Create a learner and a kernel with the given parameters; None selects the default.

    `select_sigma(kernel)` returns the width for `sigma="auto"`.
    """
    name = LEARNER_IN_PYTHON if learner is None else learner
    kernel_name = KERNEL_IN_PYTHON if kernel is None else kernel
    _check_names(name, kernel_name)
    kind = find_learner(name)
    own = kind.specs()
    known = {param: value for param, value in given.items() if value is not None}
    foreign = [param for param in known if param not in own]
    if kernel is not None:
        foreign.append("kernel")
    if learner is None and foreign:
        raise _not_of_default(name, foreign[0])
    _check_known(given, kind, kernel_name)
    of_kernel = KERNELS[kernel_name].specs()
    if kind.own_kernel is not None and foreign:
        unused = " and ".join(sorted(foreign))
        warn_user(f"{kind.name} has a kernel of its own and does not use {unused}")
        of_kernel = {}
    if "sigma" in of_kernel and known.get("sigma") == "auto":
        known["sigma"] = select_sigma(kernel_name)
    legal = own.keys() | of_kernel.keys()
    used = {param: value for param, value in known.items() if param in legal}
    setup = Setup.of(name, kernel_name, used)
    return _built(setup)


def _built(setup: Setup) -> tuple[Learner, Kernel]:
    """The learner and the kernel of a setup; a fault of a parameter is a ValueError."""
    try:
        return setup.build()
    except ParameterError as error:
        raise ValueError(f"{setup.kind.name}: {error}") from None


def _not_of_default(learner: str, param: str) -> ParameterError:
    """The error for a parameter that the default learner does not have."""
    problem = f"{learner}, the default learner, has no parameter {param!r}"
    hint = 'choose another learner, for example learner="ahpatron"'
    return ParameterError(f"{problem}: {hint}", param)


def _check_names(learner: str, kernel: str) -> None:
    """Raise a ValueError if there is no such learner or kernel."""
    is_text = isinstance(learner, str)
    if not is_text or not (learner in REGISTRY or is_path(learner)):
        names = ", ".join(REGISTRY)
        raise ValueError(f"unknown learner {learner!r}: one of {names}")
    if kernel not in KERNELS:
        names = ", ".join(KERNELS)
        raise ValueError(f"unknown kernel {kernel!r}: one of {names}")


def _check_known(given: Iterable[str], kind: type[Learner], kernel: str) -> None:
    """Raise a ValueError if neither the learner nor the kernel has a given parameter."""
    of_kernel = KERNELS[kernel].specs()
    legal = [*kind.specs(), *of_kernel]
    unknown = set(given).difference(legal)
    if unknown:
        raise ValueError(
            f"{kind.name} with the {kernel} kernel has no parameter {min(unknown)!r}: "
            f"one of {', '.join(legal)}"
        )


def warn_user(message: str) -> None:
    """Issue a UserWarning at the line that called this package, directly or by scikit-learn.

    How many calls are between depends on the method: `score` calls `predict`, which calls
    `decision_function`.
    """
    level = 1
    frame: FrameType | None = sys._getframe()
    while frame is not None and _is_internal(frame):
        frame = frame.f_back
        level += 1
    warnings.warn(message, UserWarning, stacklevel=level)


def _is_internal(frame: FrameType) -> bool:
    """Whether a frame runs code of this package or of scikit-learn."""
    module = frame.f_globals.get("__name__", "")
    package, _, _ = module.partition(".")
    return package in _INTERNAL_PACKAGES
