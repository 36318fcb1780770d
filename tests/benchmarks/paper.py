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


@dataclass(frozen=True)
class Figure:
    """A cell of the paper's tables: budget (or number of features, or |S| reached), AMR and sd."""

    table: str
    dataset: str
    learner: str
    size: int
    amr: float
    sd: float


FIGURES = (
    Figure("main", "phishing", "projectron++", 571, 7.42, 0.15),
    Figure("main", "phishing", "projectron", 422, 9.52, 0.16),
    Figure("main", "phishing", "fogd", 2000, 7.48, 0.16),
    Figure("main", "phishing", "bogd++", 400, 10.3, 0.2),
    Figure("main", "phishing", "nogd", 400, 8.12, 0.23),
    Figure("main", "phishing", "pomdr", 400, 7.36, 0.16),
    Figure("main", "phishing", "ahpatron", 400, 7.27, 0.13),
    Figure("main", "susy", "projectron++", 4898, 22.05, 0.07),
    Figure("main", "susy", "projectron", 2111, 29.1, 0.17),
    Figure("main", "susy", "fogd", 2000, 26.7, 0.6),
    Figure("main", "susy", "bogd++", 400, 28.3, 0.12),
    Figure("main", "susy", "nogd", 400, 25.49, 0.47),
    Figure("main", "susy", "pomdr", 400, 25.36, 0.25),
    Figure("main", "susy", "ahpatron", 400, 23.66, 0.17),
    Figure("main", "ijcnn1", "projectron++", 1577, 3.01, 0.04),
    Figure("main", "ijcnn1", "projectron", 1136, 4.14, 0.04),
    Figure("main", "ijcnn1", "fogd", 2000, 3.74, 0.23),
    Figure("main", "ijcnn1", "bogd++", 600, 9.21, 0.02),
    Figure("main", "ijcnn1", "nogd", 600, 4.47, 0.06),
    Figure("main", "ijcnn1", "pomdr", 600, 5.76, 0.09),
    Figure("main", "ijcnn1", "ahpatron", 600, 3.72, 0.03),
    Figure("main", "cod-rna", "projectron++", 5100, 10.13, 0.03),
    Figure("main", "cod-rna", "projectron", 2686, 14.43, 0.03),
    Figure("main", "cod-rna", "fogd", 2000, 12.72, 1.05),
    Figure("main", "cod-rna", "bogd++", 600, 14.01, 0.04),
    Figure("main", "cod-rna", "nogd", 600, 15.85, 0.72),
    Figure("main", "cod-rna", "pomdr", 600, 11.76, 0.11),
    Figure("main", "cod-rna", "ahpatron", 600, 12.33, 0.08),
    Figure("main", "w8a", "projectron++", 1279, 2.03, 0.03),
    Figure("main", "w8a", "projectron", 306, 2.9, 0.06),
    Figure("main", "w8a", "fogd", 300, 4.18, 0.23),
    Figure("main", "w8a", "bogd++", 300, 2.76, 0.08),
    Figure("main", "w8a", "nogd", 300, 2.69, 0.04),
    Figure("main", "w8a", "pomdr", 300, 2.59, 0.11),
    Figure("main", "w8a", "ahpatron", 300, 2.23, 0.06),
    Figure("main", "a9a", "projectron++", 152, 16.45, 0.07),
    Figure("main", "a9a", "projectron", 135, 21.13, 0.17),
    Figure("main", "a9a", "fogd", 300, 16.69, 0.11),
    Figure("main", "a9a", "bogd++", 150, 19.91, 0.12),
    Figure("main", "a9a", "nogd", 150, 16.56, 0.15),
    Figure("main", "a9a", "pomdr", 150, 17.09, 0.15),
    Figure("main", "a9a", "ahpatron", 150, 16.42, 0.06),
    Figure("larger-budget", "susy", "ahpatron", 3000, 21.97, 0.11),
    Figure("larger-budget", "ijcnn1", "ahpatron", 1570, 3.14, 0.03),
    Figure("larger-budget", "cod-rna", "ahpatron", 3000, 10.09, 0.03),
    Figure("larger-budget", "w8a", "ahpatron", 500, 1.93, 0.05),
)
