"""The sample data set of the package, used by `ahpatron run --demo` and in examples."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ahpatron_cli.core.rows import Floats

SAMPLE = "rings.svm"


def sample_path() -> Path:
    """Path of a small LIBSVM file: 2,000 points of two noisy rings, one within the other."""
    installed = Path(__file__).with_name(SAMPLE)
    # in a wheel it is inside the package; in a checkout, in sample_data
    return installed if installed.exists() else Path(__file__).parents[1] / "sample_data" / SAMPLE


def load_sample() -> tuple[Floats, Floats]:
    """Load the sample data set as arrays.

    Returns
    -------
    X : array of shape (2000, 2)
    y : array of shape (2000,)
        -1 and +1.

    Examples
    --------
    >>> from ahpatron_cli import OnlineKernelClassifier
    >>> from ahpatron_cli.datasets import load_sample
    >>> X, y = load_sample()
    >>> OnlineKernelClassifier("metron", budget=100).fit(X, y).mistake_rate_ < 0.1
    True
    """
    from sklearn.datasets import load_svmlight_file

    rows, labels = load_svmlight_file(str(sample_path()))
    return rows.toarray(), labels
