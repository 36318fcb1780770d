"""river interface to the learners; requires `pip install 'ahpatron-cli[river]'`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple, SupportsFloat, TypeAlias

import numpy as np
from river import base

from ahpatron_cli.configured import configured
from ahpatron_cli.core import CsrRows, Player
from ahpatron_cli.core.parameters import Value
from ahpatron_cli.core.rows import Rows
from ahpatron_cli.data.cells import category_name, days
from ahpatron_cli.data.table_statistics import MAX_CATEGORIES
from ahpatron_cli.runner import generator_seed

Features: TypeAlias = dict[Any, Any]
"""An example: the value of each feature by its name."""
Columns: TypeAlias = dict[Hashable, int]
"""The column of each feature in the rows of the engine."""


class Category(NamedTuple):
    """The feature of a category of text."""

    name: Hashable
    """The feature as it is in the examples."""
    category: str | None
    """None: all categories without a feature of their own."""


class _Row(NamedTuple):
    """An example as a row for the engine, and the columns of the features that are new in it."""

    cells: Rows
    new_columns: Columns


class KernelClassifier(base.Classifier):
    """Budgeted online kernel classifier for river, with two or more classes.

    Classes may appear at any time. The first two are learned by one learner, as -1 and +1. From the
    third on, classes are learned one-vs-rest, each by its own learner: the existing learner becomes
    that of the second class, and the others start when the new class appears. Features may appear
    and disappear: a missing feature is 0. Text is a category, which is a feature of its own (up to
    1,000 for each name, then one for all others), unless it is an ISO 8601 date: that is a number
    of days. Scale the features first, for example with
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
        self._columns: Columns = {}
        self._categories: Counter[Hashable] = Counter()
        """Number of categories of each feature."""
        self._labels: list[Hashable] = []
        self._players: list[Player] = []
        """One player for up to two classes, else one per class."""

    @property
    def _multiclass(self) -> bool:
        """That more than two classes are possible, which river asks for."""
        return True

    def learn_one(self, x: Features, y: Hashable, w: float = 1.0) -> None:
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
        labels = self._labels
        if y not in labels:
            labels = [*labels, y]
        players = self._players_of(len(labels))
        own = labels.index(y)
        weights = None
        if w != 1.0:
            weights = [w]
        classes = max(len(labels), 2)
        codes = [-1.0] * classes
        codes[own] = 1.0
        if len(players) == 1:  # that of the second class
            codes = codes[1:]
        _learn_in_all(players, row, codes=codes, weights=weights)
        self._columns.update(row.new_columns)
        for feature in row.new_columns:
            if isinstance(feature, Category):
                self._categories[feature.name] += 1
        self._labels = labels
        self._players = players

    def predict_proba_one(self, x: Features, **kwargs: Any) -> dict[Any, float]:
        """Probability of each label seen so far; of more than two classes, normalised to sum 1."""
        cells = self._row(x).cells
        if len(self._labels) < 2:
            return dict.fromkeys(self._labels, 1.0)
        shares = []
        for player in self._players:
            scores = player.scores(cells)
            probabilities = player.calibration.probabilities(scores)
            shares.append(probabilities[0, 1])
        if len(shares) == 1:
            positive = shares[0]
            shares = [1.0 - positive, positive]
        total = sum(shares) or 1.0
        normalised = [float(share / total) for share in shares]
        return dict(zip(self._labels, normalised, strict=True))

    def predict_one(self, x: Features, **kwargs: Any) -> Any:
        """Predicted label of x: the class with the largest f(x); None before the first example."""
        cells = self._row(x).cells
        labels = self._labels
        if not labels:
            return None
        if len(labels) == 1:
            return labels[0]
        scores = []
        for player in self._players:
            score = player.scores(cells)
            scores.append(score.item())
        if len(scores) > 1:
            largest = int(np.argmax(scores))
            return labels[largest]
        negative, positive = labels
        if scores[0] >= 0:
            return positive
        return negative

    def _players_of(self, classes: int) -> list[Player]:
        """The players for this number of classes: those so far, and new ones for new classes."""
        known = self._players
        if not known:
            return [self._player(1)]
        if classes <= 2 or classes == len(known):
            return known
        if len(known) == 1:
            known = [self._player(0), *known]
        return [*known, self._player(classes - 1)]

    def _player(self, number: int) -> Player:
        """A new player for the class of this number."""
        given: dict[str, Value] = {}
        if self.budget is not None:
            given["budget"] = self.budget
        if self.sigma is not None:
            given["sigma"] = self.sigma
        given.update(self.params or {})
        learner, kernel = configured(self.learner, self.kernel, given)
        seed = generator_seed(self.seed, 0, learner.name)
        return Player(learner, kernel, seed=(*seed, number))

    def _row(self, x: Features) -> _Row:
        """The example as a row; features that were never learned have columns after the others."""
        known = self._columns
        new: Columns = {}
        are_texts = [isinstance(value, str) for value in x.values()]
        if any(are_texts):
            x = dict(self._coded(name, value) for name, value in x.items())
        names = x.keys() - known.keys()
        if names:
            ordered = sorted(names, key=repr)  # independent of the order of the dict
            for column, name in enumerate(ordered, start=len(known)):
                new[name] = column
        values = _numbers(x)
        columns = [new[name] if name in new else known[name] for name in x]
        width = len(known) + len(new)
        if self.sparse:
            return _Row(_sparse_row(columns, values, width), new)
        row = np.zeros((1, max(width, 1)))
        row[0, columns] = values
        return _Row(row, new)

    def _coded(self, name: Hashable, value: object) -> tuple[Hashable, Any]:
        """A feature and its number: text is a date, or 1 in the feature of its category."""
        if not isinstance(value, str):
            return name, value
        date = days(value)
        if date is not None:
            return name, date
        own = Category(name, category_name(value))
        if own in self._columns or self._categories[name] < MAX_CATEGORIES:
            return own, 1.0
        return Category(name, None), 1.0


def _learn_in_all(
    players: Sequence[Player], row: _Row, *, codes: Sequence[float], weights: list[float] | None
) -> None:
    """Have each player learn the row with its code; if one cannot, none of them has learned it."""
    done = []
    try:
        for player, code in zip(players, codes, strict=True):
            player.feed(row.cells, [code], weights)
            done.append(player)
    except BaseException:
        for player in done:
            player.undo_block()
        raise


def _sparse_row(columns: list[int], values: list[float], width: int) -> CsrRows:
    """A row with these values in these columns."""
    order = np.argsort(columns)
    own_columns = np.array(columns, dtype=np.int32)
    own_values = np.array(values, dtype=np.float64)
    return CsrRows(
        indptr=np.array([0, len(order)]),
        columns=own_columns[order],
        values=own_values[order],
        width=width,
    )


def _numbers(x: Features) -> list[float]:
    """The values of an example; a ValueError that names the first one that is not a number."""
    values = list(x.values())
    try:
        are_numbers = math.isfinite(sum(values))  # much faster than to look at each
    except (TypeError, ValueError, OverflowError):
        are_numbers = False
    if are_numbers:
        return values
    return [_number(name, value) for name, value in x.items()]


def _number(name: Hashable, value: SupportsFloat | str | None) -> float:
    """The value of a feature as a number; a ValueError if it is none."""
    if value is None:
        raise ValueError(f"feature {name!r} has no value: leave it out, or impute it")
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"feature {name!r} is not a finite number: {value!r}")
    return number
