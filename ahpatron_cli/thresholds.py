"""Figures of `predict --metrics`: metrics, and the same model at several thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct

from ahpatron_cli import __version__
from ahpatron_cli.core.calibration import Calibration
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.metrics import Ranking, metrics_of, ranked
from ahpatron_cli.records import DOCUMENT_VERSION, Metrics

SHOWN = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""Thresholds that are always shown."""
_MOST_DIGITS = 17
"""Decimals that distinguish any two probabilities that are not tiny."""


class AtThreshold(Struct, frozen=True, kw_only=True):
    """The predictions for labelled rows at a threshold; null for undefined values."""

    threshold: float | None
    """The probability from which +1 is predicted; null: +1 if f(x) >= 0."""
    true_positives: int
    false_positives: int
    true_negatives: int
    false_negatives: int
    mistake_rate: float
    precision: float | None
    """Null if no row is predicted to be positive."""
    recall: float | None
    """Null if no row is positive, like F1 if no row is predicted to be, either."""
    f1: float | None

    @property
    def predicted(self) -> int:
        """Number of rows that are predicted to be positive."""
        return self.true_positives + self.false_positives


class Thresholds(Struct, frozen=True):
    """A model with two classes at several thresholds."""

    default: AtThreshold
    """Without a threshold."""
    shown: tuple[AtThreshold, ...]
    best_f1: AtThreshold | None
    """At the threshold of the largest F1 of all; None if no row is positive."""


class FileFigures(Struct, frozen=True, kw_only=True):
    """What `predict --metrics` finds on a file: an entry of its JSON document."""

    path: str
    rows: int
    rounds: int
    """Rows with a label; all that follows is about them."""
    mistakes: int
    mistake_rate: float | None
    threshold: float | None
    """The threshold of the predictions: that of the command or of the model."""
    labels: tuple[str, ...]
    """Names of the labels, -1 before +1."""
    confusion: tuple[tuple[int, ...], ...]
    """Rows by true and predicted label."""
    metrics: Metrics
    thresholds: tuple[AtThreshold, ...] | None
    """Null for several classes, without labels, and for more than 8 million rows."""
    default: AtThreshold | None
    best_f1: AtThreshold | None


class FiguresDocument(Struct, frozen=True, kw_only=True):
    """The JSON document of `predict --metrics --format json`."""

    schema: int = DOCUMENT_VERSION
    version: str = __version__
    model: str
    files: tuple[FileFigures, ...]


def at_thresholds(ranking: Ranking, link: Calibration) -> Thresholds | None:
    """Predictions at several thresholds; None without rows, or if their scores are not known."""
    known = ranking.of_two_classes()
    if known is None:
        return None
    scores, positive = known
    if not len(scores):
        return None
    steps = ranked(scores, positive)
    positives = int(steps.right[-1])
    totals = _Totals(rows=len(scores), positives=positives)
    at_least_zero = scores >= 0
    positives_at_zero = int(np.count_nonzero(at_least_zero))
    right_at_zero = int(np.count_nonzero(positive & at_least_zero))
    probabilities = link.probabilities(steps.scores)[:, 1]
    # of scores that have the same probability, the lowest counts
    differs_from_next = probabilities[1:] != probabilities[:-1]
    last = np.append(differs_from_next, True)
    table = _Table(
        probabilities=probabilities[last],
        above=steps.above[last],
        right=steps.right[last],
        totals=totals,
    )
    return Thresholds(
        default=totals.at(None, above=positives_at_zero, right=right_at_zero),
        shown=tuple(map(table.at, SHOWN)),
        best_f1=table.best_f1(),
    )


class _Totals(Struct, frozen=True):
    """Numbers of labelled rows."""

    rows: int
    positives: int

    def at(self, threshold: float | None, *, above: int, right: int) -> AtThreshold:
        """The figures if `above` rows are predicted to be positive, `right` of them rightly."""
        missed = self.positives - right
        wrong = above - right
        negatives = self.rows - self.positives
        of_negatives = (negatives - wrong, wrong)
        confusion = (of_negatives, (missed, right))
        quality = metrics_of(confusion)
        return AtThreshold(
            threshold=threshold,
            true_positives=right,
            false_positives=wrong,
            true_negatives=negatives - wrong,
            false_negatives=missed,
            mistake_rate=(wrong + missed) / self.rows,
            precision=quality.precision,
            recall=quality.recall,
            f1=quality.f1,
        )


class _Table:
    """Numbers of rows with at least each of the probabilities, which decrease."""

    def __init__(
        self, probabilities: Floats, above: Integers, right: Integers, totals: _Totals
    ) -> None:
        self._probabilities = probabilities
        self._above = above
        self._right = right
        self._totals = totals

    def at(self, threshold: float) -> AtThreshold:
        """The figures at a threshold."""
        negated = -self._probabilities
        count = int(np.searchsorted(negated, -threshold, "right"))
        above = 0
        right = 0
        if count:
            above = int(self._above[count - 1])
            right = int(self._right[count - 1])
        return self._totals.at(threshold, above=above, right=right)

    def best_f1(self) -> AtThreshold | None:
        """The figures at the threshold of the largest F1; of equal ones the highest."""
        if not self._totals.positives:
            return None
        predicted_or_true = self._above + self._totals.positives
        f1 = 2 * self._right / predicted_or_true
        highest_first = np.argsort(-f1, kind="stable")
        for place in highest_first[:100].tolist():
            threshold = self._threshold(place)
            if threshold is not None:
                return self.at(threshold)
        return None

    def _threshold(self, place: int) -> float | None:
        """A short threshold that this probability reaches and the next lower one does not."""
        own = float(self._probabilities[place])
        lower = 0.0
        if place + 1 < len(self._probabilities):
            lower = float(self._probabilities[place + 1])
        return short_between(lower, own)


def short_between(low: float, high: float) -> float | None:
    """The decimal fraction with the fewest digits in (low, high] and in (0, 1), if there is one."""
    for digits in range(1, _MOST_DIGITS + 1):
        unit = 10**digits
        number = min(int(high * unit), unit - 1)
        found = float(number / unit)
        if low < found <= high and found > 0:
            return found
    if 0 < high < 1:
        return high
    return None


def figures_of(
    *,
    ranking: Ranking,
    link: Calibration,
    confusion: Integers,
    loss: float,
    brier: float,
    **about: Any,
) -> FileFigures:
    """The figures of a file; `loss` and `brier` are sums over its labelled rows."""
    rounds = int(confusion.sum())
    mistakes = rounds - int(confusion.trace())
    counts = tuple(map(tuple, confusion.tolist()))
    thresholds = None
    if len(counts) == 2:
        thresholds = at_thresholds(ranking, link)
    mean_loss = None
    mean_brier = None
    rate = None
    if rounds:
        mean_loss = loss / rounds
        mean_brier = brier / rounds
        rate = mistakes / rounds
    return FileFigures(
        rounds=rounds,
        mistakes=mistakes,
        mistake_rate=rate,
        confusion=counts,
        metrics=metrics_of(counts, ranking, log_loss=mean_loss, brier=mean_brier),
        thresholds=thresholds.shown if thresholds else None,
        default=thresholds.default if thresholds else None,
        best_f1=thresholds.best_f1 if thresholds else None,
        **about,
    )
