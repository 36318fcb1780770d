"""river interface to the learners; requires `pip install 'ahpatron-cli[river]'`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from river import base

from ahpatron_cli.core import CsrRows, Player
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import Rows
from ahpatron_cli.estimator import configured
from ahpatron_cli.runner import generator_seed


class KernelClassifier(base.Classifier):
    """Budgeted online kernel classifier for river, with two or more classes.

    Classes may appear at any time. The first two are learned by one learner, as -1 and +1. From the
    third on, classes are learned one-vs-rest, each by its own learner: the existing learner becomes
    that of the second class, and the others start when the new class appears. Features may appear
    and disappear: a missing feature is 0. Scale the features first, for example with
    `preprocessing.StandardScaler`, unless the learner is metron.

    Parameters
    ----------
    learner : str or None
        Name as in `ahpatron learners`, or of a registered class of your own, or `FILE.py:Class`.
        None selects metron; parameters that it does not have are then refused.
    kernel : str or None
        Name as in `ahpatron learners`; None selects the Gaussian kernel.
    budget : int
        Largest number of support examples; None for learners without a budget.
    sigma : float or None
        Width of the kernel; None selects the default.
    params : dict or None
        Other parameters of the learner and the kernel, by name.
    sparse : bool
        Whether to store rows sparsely, for rows with few of very many features (bags of words).
    seed : int
        Seed of the learner's random generator.

    Examples
    --------
    >>> from river import datasets, evaluate, metrics, preprocessing
    >>> from ahpatron_cli.river import KernelClassifier
    >>> model = preprocessing.StandardScaler() | KernelClassifier("arow", sigma=2.0)
    >>> evaluate.progressive_val_score(datasets.Phishing(), model, metrics.Accuracy())
    Accuracy: 89.03%
    """

    def __init__(
        self,
        learner: str | None = None,
        *,
        kernel: str | None = None,
        budget: int | None = 100,
        sigma: float | None = None,
        params: Mapping[str, Value] | None = None,
        sparse: bool = False,
        seed: int = 0,
    ) -> None:
        self.learner = learner
        self.kernel = kernel
        self.budget = budget
        self.sigma = sigma
        self.params = params
        self.sparse = sparse
        self.seed = seed
        self._columns: dict[Any, int] = {}
        self._labels: list[Any] = []
        self._players: list[Player] = []
        """One player for up to two classes, else one per class."""

    @property
    def _multiclass(self) -> bool:
        return True

    def learn_one(self, x: dict[Any, Any], y: Any, w: float = 1.0) -> None:
        """Learn from one example x with label y and weight w (if the learner supports weights)."""
        if y not in self._labels:
            self._labels.append(y)
            if len(self._labels) == 1:
                self._players = [self._player(1)]
            elif len(self._labels) > 2:
                first = [self._player(0)] if len(self._labels) == 3 else []
                self._players = [*first, *self._players, self._player(len(self._labels) - 1)]
        row, own = self._row(x), self._labels.index(y)
        weights = None if w == 1.0 else [w]
        for number, player in enumerate(self._players, 1 if len(self._players) == 1 else 0):
            player.feed(row, [1.0 if number == own else -1.0], weights)

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probability of each label seen so far; of more than two classes, normalised to sum 1."""
        if len(self._labels) < 2:
            return dict.fromkeys(self._labels, 1.0)
        row = self._row(x)
        shares = [p.calibration.probabilities(p.scores(row))[0, 1] for p in self._players]
        shares = [1.0 - shares[0], shares[0]] if len(shares) == 1 else shares
        total = sum(shares) or 1.0
        return {
            label: float(share / total) for label, share in zip(self._labels, shares, strict=True)
        }

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predicted label of x: the class with the largest f(x); None before the first example."""
        if len(self._labels) < 2:
            return self._labels[0] if self._labels else None
        row = self._row(x)
        scores = [player.scores(row).item() for player in self._players]
        if len(scores) == 1:
            return self._labels[scores[0] >= 0]
        return self._labels[int(np.argmax(scores))]

    def _player(self, number: int) -> Player:
        named = {"budget": self.budget, "sigma": self.sigma}
        given = {name: value for name, value in named.items() if value is not None}
        learner, kernel = configured(self.learner, self.kernel, {**given, **(self.params or {})})
        seed = (*generator_seed(self.seed, 0, learner.name), number)
        return Player(learner, kernel, seed=seed)

    def _row(self, x: Mapping[Any, float]) -> Rows:
        columns = self._columns
        if new := x.keys() - columns.keys():
            for name in sorted(new, key=repr):  # independent of the order of the dict
                columns[name] = len(columns)
        numbers = [columns[name] for name in x]
        if not self.sparse:
            row = np.zeros((1, max(len(columns), 1)))
            row[0, numbers] = list(x.values())
            return row
        order = np.argsort(numbers)
        cells = np.array(numbers, np.int32)[order], np.array(list(x.values()), np.float64)[order]
        return CsrRows(np.array([0, len(order)]), *cells, width=len(columns))
