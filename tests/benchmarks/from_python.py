"""The learners as Python programs use them: one row at a time, and probabilities.

    python tests/benchmarks/from_python.py rows DATA_FOLDER [--rows 10000] [--learners …]
    python tests/benchmarks/from_python.py probabilities DATA_FOLDER [--rows 20000]

`rows`: µs of processor time per row, and mistakes, of predicting and learning each row: by
`Player.learn`, `partial_fit` (which predicts what it learns) and the river adapter (`predict_one`,
then `learn_one`), at B = 100, next to river's RBFSampler(100) + LogisticRegression and
scikit-learn's SGDClassifier. All take turns after every 500 rows, so that other work on the machine
meets all of them.

`probabilities`: the first half of the rows is learned, the second predicted; log loss and expected
calibration error (15 bins) next to CalibratedClassifierCV (3 folds, sigmoid) of the same learner.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from common import DATASETS, shuffled
from sklearn.calibration import CalibratedClassifierCV
from sklearn.linear_model import SGDClassifier
from sklearn.metrics import log_loss

from ahpatron_cli import OnlineKernelClassifier
from ahpatron_cli.core import REGISTRY, Gaussian, Player
from ahpatron_cli.core.rows import CsrRows

SIGMA = {data.name: data.sigma for data in DATASETS}
BINS = 15
Step = Callable[[Any, float], bool]
"""Predicts a row, learns it, and returns whether the prediction was wrong."""


def load(folder: Path, name: str, rows: int) -> tuple[Any, Any]:
    found, labels = shuffled(folder, name, rows)
    return (found.dense() if isinstance(found, CsrRows) else found), labels


def ways(learner: str, sigma: float) -> dict[str, Step]:
    kind = REGISTRY[learner]
    own = None if kind.own_kernel else sigma
    player = Player(kind(budget=100), Gaussian(sigma), horizon=10_000)
    estimator = OnlineKernelClassifier(learner, budget=100, sigma=own)

    def learn(row: Any, y: float) -> bool:
        return bool((player.learn(row, y) >= 0) != (y > 0))

    def fit(row: Any, y: float) -> bool:
        estimator.partial_fit(row[None], [y], classes=[-1.0, 1.0])
        return bool((estimator.online_scores_[0] >= 0) != (y > 0))

    from ahpatron_cli.river import KernelClassifier

    return {
        "Player": learn,
        "partial_fit": fit,
        "river": river(KernelClassifier(learner, sigma=own)),
    }


def river(model: Any) -> Step:
    def step(row: Any, y: float) -> bool:
        x = row if isinstance(row, dict) else dict(enumerate(row.tolist()))
        wrong = model.predict_one(x) != (y > 0)
        model.learn_one(x, y > 0)
        return bool(wrong)

    return step


def others(sigma: float) -> dict[str, Step]:
    from river import feature_extraction, linear_model

    sgd = SGDClassifier(loss="log_loss", random_state=0)
    sampler = feature_extraction.RBFSampler(gamma=1 / (2 * sigma**2), n_components=100, seed=0)

    def fit(row: Any, y: float) -> bool:
        wrong = not hasattr(sgd, "coef_") or sgd.predict(row[None])[0] != y
        sgd.partial_fit(row[None], [y], classes=[-1.0, 1.0])
        return bool(wrong)

    return {
        "river RBFSampler + LogisticRegression": river(sampler | linear_model.LogisticRegression()),
        "SGDClassifier.partial_fit": fit,
    }


def row_by_row(folder: Path, rows: int, learners: list[str]) -> None:
    for name in ("phishing", "ijcnn1"):
        X, y = load(folder, name, rows)
        steps = others(SIGMA[name])
        for learner in learners:
            steps |= {f"{learner}, {way}": step for way, step in ways(learner, SIGMA[name]).items()}
        seconds = dict.fromkeys(steps, 0.0)
        mistakes = dict.fromkeys(steps, 0)
        for start in range(0, len(y), 500):
            for way, step in steps.items():
                begun = time.process_time()
                for t in range(start, min(start + 500, len(y))):
                    mistakes[way] += step(X[t], y[t])
                seconds[way] += time.process_time() - begun
        print(f"{name}, {len(y):,} rows, σ = {SIGMA[name]:g}")
        for way in steps:
            print(f"{way:40} {1e6 * seconds[way] / len(y):8.0f} µs {mistakes[way]:6} mistakes")


def calibration_error(y: np.ndarray, p: np.ndarray) -> float:
    """Mean of |share of positives - mean p| over bins of p, weighted by their rows."""
    bins = np.minimum((p * BINS).astype(int), BINS - 1)
    gaps = np.abs(np.bincount(bins, y > 0, BINS) - np.bincount(bins, p, BINS))
    return float(gaps.sum() / len(y))


def probabilities(folder: Path, rows: int, learners: list[str]) -> None:
    print(f"{'':24} {'log loss':>9} {'ECE %':>6}   CalibratedClassifierCV")
    for data in DATASETS:
        X, y = load(folder, data.name, rows)
        half = len(y) // 2
        for learner in learners:
            sigma = None if REGISTRY[learner].own_kernel else data.sigma
            ours = OnlineKernelClassifier(learner, budget=100, sigma=sigma, random_state=0)
            platt = CalibratedClassifierCV(ours, cv=3)
            figures = []
            for model in (ours, platt):
                p = model.fit(X[:half], y[:half]).predict_proba(X[half:])[:, 1]
                figures += [log_loss(y[half:], p), 100 * calibration_error(y[half:], p)]
            loss, error, other, other_error = figures
            name = f"{data.name}, {learner}"
            print(f"{name:24} {loss:9.4f} {error:6.2f} {other:9.4f} {other_error:6.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["rows", "probabilities"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int)
    parser.add_argument("--learners")
    given = parser.parse_args()
    if given.what == "rows":
        learners = given.learners or "ahpatron,ahpatron+,arow,metron,nogd,rbp"
        row_by_row(given.folder, given.rows or 10_000, learners.split(","))
    else:
        learners = given.learners or "ahpatron,arow,metron"
        probabilities(given.folder, given.rows or 20_000, learners.split(","))


if __name__ == "__main__":
    main()
