"""river interface to the learners; requires `pip install 'ahpatron-cli[river]'`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from river import base

from ahpatron_cli.core import CsrRows, Player
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import Rows
from ahpatron_cli.estimator import configured
from ahpatron_cli.runner import generator_seed


class _Row(NamedTuple):
    """An example as a row for the engine, and the columns of the features that are new in it."""

    cells: Rows
    new_columns: dict[Any, int]


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
        """Learn from one example x with label y and weight w (if the learner supports weights).

        An example of weight 0 is left out. An example that is refused leaves no trace.
        """
        if y is None or y != y:
            raise ValueError(f"y must be a label, got {y!r}")
        if not 0.0 <= w < math.inf:
            raise ValueError(f"w must be a finite weight >= 0, got {w!r}")
        row = self._row(x)
        if w == 0.0:
            return
        labels = self._labels if y in self._labels else [*self._labels, y]
        players = self._players_of(len(labels))
        own = labels.index(y)
        weights = None if w == 1.0 else [w]
        for number, player in enumerate(players, 1 if len(players) == 1 else 0):
            player.feed(row.cells, [1.0 if number == own else -1.0], weights)
        self._columns.update(row.new_columns)
        self._labels = labels
        self._players = players

    def predict_proba_one(self, x: dict[Any, Any], **kwargs: Any) -> dict[Any, float]:
        """Probability of each label seen so far; of more than two classes, normalised to sum 1."""
        cells = self._row(x).cells
        if len(self._labels) < 2:
            return dict.fromkeys(self._labels, 1.0)
        shares = [p.calibration.probabilities(p.scores(cells))[0, 1] for p in self._players]
        shares = [1.0 - shares[0], shares[0]] if len(shares) == 1 else shares
        total = sum(shares) or 1.0
        return {
            label: float(share / total) for label, share in zip(self._labels, shares, strict=True)
        }

    def predict_one(self, x: dict[Any, Any], **kwargs: Any) -> Any:
        """Predicted label of x: the class with the largest f(x); None before the first example."""
        cells = self._row(x).cells
        if len(self._labels) < 2:
            return self._labels[0] if self._labels else None
        scores = [player.scores(cells).item() for player in self._players]
        if len(scores) == 1:
            return self._labels[scores[0] >= 0]
        return self._labels[int(np.argmax(scores))]

    def _players_of(self, classes: int) -> list[Player]:
        """The players for this number of classes: those so far, and new ones for new classes."""
        known = self._players
        if not known:
            return [self._player(1)]
        if classes <= 2 or classes == len(known):
            return known
        first = [self._player(0)] if len(known) == 1 else []
        return [*first, *known, self._player(classes - 1)]

    def _player(self, number: int) -> Player:
        named = {"budget": self.budget, "sigma": self.sigma}
        given = {name: value for name, value in named.items() if value is not None}
        learner, kernel = configured(self.learner, self.kernel, {**given, **(self.params or {})})
        seed = (*generator_seed(self.seed, 0, learner.name), number)
        return Player(learner, kernel, seed=seed)

    def _row(self, x: Mapping[Any, Any]) -> _Row:
        """The example as a row; features that were never learned have columns after the others."""
        known = self._columns
        new: dict[Any, int] = {}
        if names := x.keys() - known.keys():
            ordered = sorted(names, key=repr)  # independent of the order of the dict
            new = {name: len(known) + i for i, name in enumerate(ordered)}
        values = _numbers(x)
        numbers = [new[name] if name in new else known[name] for name in x]
        width = len(known) + len(new)
        if not self.sparse:
            row = np.zeros((1, max(width, 1)))
            row[0, numbers] = values
            return _Row(row, new)
        order = np.argsort(numbers)
        columns = np.array(numbers, dtype=np.int32)[order]
        ordered_values = np.array(values, dtype=np.float64)[order]
        indptr = np.array([0, len(order)])
        return _Row(CsrRows(indptr, columns, ordered_values, width=width), new)


def _numbers(x: Mapping[Any, Any]) -> list[Any]:
    """The values of an example; a ValueError that names the first one that is not a number."""
    values = list(x.values())
    try:
        are_numbers = math.isfinite(sum(values))  # much faster than to look at each
    except (TypeError, ValueError, OverflowError):
        are_numbers = False
    return values if are_numbers else [_number(name, value) for name, value in x.items()]


def _number(name: Any, value: Any) -> float:
    if value is None:
        raise ValueError(f"feature {name!r} has no value: leave it out, or impute it")
    if isinstance(value, str):
        hint = "encode it, for example with preprocessing.OneHotEncoder"
        raise ValueError(f"feature {name!r} is text, {value!r}: {hint}")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"feature {name!r} is not a finite number: {value!r}")
    return number
