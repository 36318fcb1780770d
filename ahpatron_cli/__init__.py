"""Budgeted online kernel learning on LIBSVM files and tables: Python API and command line."""

from __future__ import annotations

from os import PathLike
from typing import TYPE_CHECKING, Any

from ahpatron_cli.pending import Pending

if TYPE_CHECKING:
    from ahpatron_cli.estimator import OnlineKernelClassifier

__all__ = ["OnlineKernelClassifier", "Pending", "__version__", "read_results"]

__version__ = "1.1.0"


def read_results(path: str | PathLike[str]) -> list[dict[str, Any]]:
    """Read the trials of a results file of `ahpatron sweep` as a list of flat dicts.

    `pandas.DataFrame(ahpatron_cli.read_results("results.jsonl"))` makes a table of them. Parameters
    are keys `param_NAME`; for a failed trial, counts are None and `error` is the reason.
    """
    from ahpatron_cli.sweep.results_file import flat_trial
    from ahpatron_cli.sweep.results_file import read_results as read

    trials = read(str(path)).trials
    return [flat_trial(trial) for trial in trials.values()]


def __getattr__(name: str) -> type[OnlineKernelClassifier]:
    """Import the estimator lazily: the command line does not need scikit-learn."""
    if name != "OnlineKernelClassifier":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ahpatron_cli.estimator import OnlineKernelClassifier

    return OnlineKernelClassifier
