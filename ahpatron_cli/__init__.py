"""Budgeted online kernel learning over LIBSVM files: learners, engine and command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahpatron_cli.estimator import OnlineKernelClassifier

__all__ = ["OnlineKernelClassifier", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> type[OnlineKernelClassifier]:
    """The estimator when somebody asks for it: the command line does without scikit-learn."""
    if name != "OnlineKernelClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ahpatron_cli.estimator import OnlineKernelClassifier

    return OnlineKernelClassifier
