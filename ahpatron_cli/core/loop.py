"""The loop over the rounds of a block, for one learner and its f."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.random import default_rng  # slow to import: not while the first row waits

from ahpatron_cli.core.errors import NumericalError
from ahpatron_cli.core.expansion import Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.points import Points
from ahpatron_cli.core.rows import Floats
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import class_margins


class Loop:
    """The loop over the rounds of a block, for one learner and its f.

    `classes` is () for labels -1 and +1, or (k,) for k classes on one S, with labels 0, 1, …. Then
    f has a column per class and y is a direction: +1 for the true class, -1 for the best other
    class, 0 elsewhere. The margin is y·f(x), so an update reads the same in both cases.

    A mistake by a tie, margin 0, is always an update: sign(0) = +1, so f(x) = 0 is wrong for the
    label -1; of several classes with the same f(x), the first is predicted.
    """

    first: int
    """Number of rounds before the current block."""
    weights: list[float] | None
    """Weights of the examples of the current block."""
    updates = 0
    """Number of updates in the current block."""
    margin_updates = 0
    """Number of updates with a margin > 0 in the current block."""

    def __init__(
        self, learner: Learner, kernel: Kernel, classes: tuple[int, ...], seed: Sequence[int]
    ) -> None:
        self.learner = learner
        self.classes = classes
        learner.rng = default_rng(seed)
        for name in ("update_below", "next_call"):  # instance attributes are faster to read
            setattr(learner, name, getattr(learner, name))
        self.f: Any = learner.begin(kernel, classes) if classes else learner.begin(kernel)

    def run(
        self, block: Points, labels: Floats, *, weights: list[float] | None, first: int
    ) -> Floats | list[float]:
        """Run a block that starts at round `first`; return f(x) of each round before its update."""
        self.first = first
        self.weights = weights
        self.updates = 0
        self.margin_updates = 0
        self.learner.weight = 1.0
        self.learner.finish_round(self.f)
        self.f.open(block)
        scores: Floats | list[float]
        if self.classes:
            scores = self._class_rounds(labels)
            total = scores.sum()
        else:
            scores = self._rounds(labels)
            total = sum(scores)
        self.f.close()
        if not math.isfinite(total):
            check_finite(np.array(scores))
        return scores

    def _rounds(self, labels: Floats) -> list[float]:
        """The rounds of a block with labels -1 and +1."""
        learner = self.learner
        f = self.f
        first = self.first
        update = learner.update
        scores = [0.0] * len(labels)
        values = f.values
        rounding = f.rounding
        scale = f.scale
        empty = f.size == 0
        below = learner.update_below
        call = learner.next_call - first
        for t, y in enumerate(labels.tolist()):
            value = values[t]
            if -rounding <= value <= rounding:  # possibly only rounding of a sum that cancels
                value = f.exact_value(t)
            scores[t] = value = value * scale
            margin = y * value
            if margin < below or margin == 0.0 > y or empty or t == call:
                # as in `_update`, inlined: a call would take 2 % of the time
                learner.round = first + t
                f.t = t
                if self.weights is not None:
                    learner.weight = self.weights[t]
                if update(f, y, margin) is not False:
                    self.updates += 1
                    if margin > 0.0:
                        self.margin_updates += 1
                if f.successor is not None:
                    f = self._succeed()
                values = f.values
                rounding = f.rounding
                scale = f.scale
                empty = f.size == 0
                below = learner.update_below
                call = learner.next_call - first
        return scores

    def _class_rounds(self, labels: Floats) -> Floats:
        """The rounds of a block with several classes on one S."""
        learner = self.learner
        f = self.f
        first = self.first
        scores = np.empty((len(labels), *self.classes))
        margins: list[float] = []
        rivals: list[int] = []
        start = 0
        stop = 0
        below = learner.update_below
        call = learner.next_call - first
        empty = f.size == 0
        for t, true in enumerate(labels.astype(np.int64).tolist()):
            if t == stop:  # compute margins of several rounds: valid until the next update
                ahead = 1 if below == math.inf else 8
                start = t
                stop = min(t + ahead, len(labels))
                values = f.class_values(start, stop)
                scores[start:stop] = values
                found_margins, found_rivals = class_margins(values, labels[start:stop])
                margins = found_margins.tolist()
                rivals = found_rivals.tolist()
            margin = margins[t - start]
            rival = rivals[t - start]
            if margin < below or (margin == 0.0 and rival < true) or empty or t == call:
                y = np.zeros(self.classes)
                y[true] = 1.0
                y[rival] = -1.0
                f = self._update(t, y, margin)
                stop = t + 1
                below = learner.update_below
                call = learner.next_call - first
                empty = f.size == 0
        return scores

    def _update(self, t: int, y: Floats, margin: float) -> Any:
        """Have the learner update f in round t of the block; return f, or its successor."""
        learner = self.learner
        f = self.f
        learner.round = self.first + t
        f.t = t
        if self.weights is not None:
            learner.weight = self.weights[t]
        if learner.update(f, y, margin) is not False:
            self.updates += 1
            if margin > 0.0:
                self.margin_updates += 1
        if f.successor is None:
            return f
        return self._succeed()

    def _succeed(self) -> Any:
        """Replace f by its successor and open the rest of the current block on it."""
        before = self.f
        after = before.successor
        if not before.is_interrupted:  # else the update has closed the block itself
            before.close()
        before.successor = None
        self.f = after
        after.open(before.block, before.t + 1)
        return after

    def state_dict(self) -> State:
        """State of the learner, of f and of the random generator, as a nested dict."""
        return {
            "learner": self.learner.state_dict(),
            "f": self.f.state_dict(),
            "random": self.learner.rng.bit_generator.state,
        }

    def load_state_dict(self, state: StateReader, rounds: int) -> None:
        """Restore a state that was saved after `rounds` rounds."""
        self._load_random(state)
        learner = self.learner
        learner.round = rounds
        loaded = state.value("learner", learner)
        f = state.value("f", self.f, learner.successors)
        if loaded is not learner or not isinstance(f, Hypothesis):
            raise state.refusal("f", f"is not a hypothesis of {learner.name}")
        limit = learner.most_kept
        if limit is not None and f.size is not None and f.size > limit:
            raise state.refusal("f", "keeps more examples than the budget")
        self.f = f

    def _load_random(self, state: StateReader) -> None:
        """Restore the state of the random generator."""
        random = state.take("random")
        generator = self.learner.rng.bit_generator
        try:
            numbers = list(random["state"].values())
            numbers.append(random["has_uint32"])
            numbers.append(random["uinteger"])
            if min(numbers) < 0:
                raise ValueError  # older versions of NumPy only warn
            generator.state = random
        except (TypeError, ValueError, KeyError, OverflowError, AttributeError):
            raise state.refusal("random", "is not the state of a random generator") from None


def check_finite(scores: Floats) -> None:
    """Raise a NumericalError for the first row with a score that is not finite."""
    values = scores.reshape(len(scores), -1)
    finite = np.isfinite(values).all(axis=1)
    if not finite.all():
        raise NumericalError("f(x) is not a finite number", int(finite.argmin()))
