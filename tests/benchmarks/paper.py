"""The paper's settings of its six data sets, and its figures for Ahpatron."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dataset:
    """A data set as the paper played it, and what came out there."""

    name: str
    sigma: float
    budget: int
    ridge: float
    amr: float
    """Average mistake rate of Ahpatron in percent, ε best of 0.5..0.9."""
    margin_updates: int
    """|N_T| of Ahpatron."""


DATASETS = (
    Dataset("phishing", 1, 400, 0.0005, 7.27, 1429),
    Dataset("a9a", 2, 150, 0.0005, 16.42, 9234),
    Dataset("w8a", 2, 300, 0.01, 2.23, 1525),
    Dataset("susy", 1, 400, 0.0005, 23.66, 23045),
    Dataset("ijcnn1", 1, 600, 0.0005, 3.72, 5204),
    Dataset("cod-rna", 1, 600, 0.0005, 12.33, 129497),
)
EPSILONS = (0.5, 0.6, 0.7, 0.8, 0.9)
