"""Base class of all learners, and parameters that several of them share."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, Unpack, cast

from ahpatron_cli.core.errors import LimitReachedError, ParameterError
from ahpatron_cli.core.expansion import Expansion, Hypothesis
from ahpatron_cli.core.kernels import Kernel
from ahpatron_cli.core.parameters import Declared, SpecFields, choice, integer, real
from ahpatron_cli.core.state import State, Stateful, StateReader

if TYPE_CHECKING:
    import numpy as np

Classes: TypeAlias = tuple[int, ...]
"""() for one f, (k,) if k classes share one S."""
REST = "rest"
SHARED = "shared"
SET_BY_ENGINE = ("round", "weight", "rng")
TUPLES = ("state_fields", "reports", "references", "grid", "successors")
"""Attributes of a class that are tuples of texts or classes."""
CALLS = ("update_below", "next_call")
"""Attributes that say when `update` is called; saved with every learner."""


@dataclass
class Learner(Declared, Stateful):
    """Base class of online learners: dataclasses that define `name`, `title` and `update`.

    Parameters are declared with `integer`, `real` and `choice`. Counters of a run are attributes of
    the class without annotation, set to their initial values; those named in `state_fields` are
    saved with a model. The engine works on a copy, so one object can run on any number of streams.
    While S is empty, `update` is called in every round, so the first example joins whatever its
    label is.

    Attributes
    ----------
    update_below : float
        `update` is called in rounds with y·f(x) < update_below: 0 for mistakes, `HINGE` for a
        positive hinge loss, inf for every round. `begin` and `update` may change it.
    next_call : int or inf
        Number of a round (from 0) in which `update` is called whatever the margin is.
    round : int
        Number of rounds before the current one, set by the engine.
    weight : float
        Weight of the current example, set by the engine; 1 unless `takes_costs`.
    rng : numpy.random.Generator
        Random generator, set by the engine; the only source of randomness to use.

    Examples
    --------
    >>> @dataclass
    ... class Mine(Learner):
    ...     name = "mine"
    ...     title = "a Perceptron"
    ...
    ...     def update(self, f, y, margin):
    ...         f.add(y)
    >>> from ahpatron_cli.core import play
    >>> play(Mine(), [[0.0], [1.0]], [-1, 1]).f.size
    2
    """

    name: ClassVar[str]
    title: ClassVar[str]
    """One-line description for tables, with the publication."""
    references: ClassVar[tuple[str, ...]] = ()
    """Publications, the most important first: keys of `core/references.py`, or any text."""
    grid: ClassVar[tuple[str, ...]] = ()
    """Values of parameters that are worth trying, as `sweep -p` takes them."""
    takes_costs: ClassVar[bool] = False
    """Whether the learner supports weighted examples."""
    reports: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that `statistics` reports."""
    successors: ClassVar[tuple[type[Hypothesis], ...]] = ()
    """Other classes of hypotheses that may replace f during a run (`f.successor`)."""
    own_kernel: ClassVar[Kernel | None] = None
    """The learner's own kernel; None if it works with any kernel."""
    dense = False
    """Whether f requires dense rows; sparse rows of at most 4,096 features are converted."""
    update_below = 0.0
    next_call = math.inf
    round = 0
    weight = 1.0
    rng = cast("np.random.Generator", None)

    def __init_subclass__(cls, **options: Any) -> None:
        for name in SET_BY_ENGINE:
            if name in vars(cls):
                what = f"{cls.__name__} must not have a parameter or attribute `{name}`"
                raise TypeError(f"{what}: the engine sets it in each round")
        for name in TUPLES:
            value = vars(cls).get(name)
            if isinstance(value, str):  # ("one") without a comma is a text, not a tuple
                raise TypeError(f"{cls.__name__}.{name} must be a tuple: ({value!r},)")
        super().__init_subclass__(**options)

    def resolved(self, horizon: int | None) -> Self:
        """A copy for one run; parameters that depend on T are set if T (`horizon`) is known."""
        return dataclasses.replace(self)

    def begin(self, kernel: Kernel, classes: Classes = ()) -> Hypothesis:
        """Create the initial hypothesis f = 0."""
        return Expansion(kernel, classes)

    def update(self, f: Any, y: Any, margin: float) -> bool | None:
        """Update f by the current example x.

        y is -1 or +1; with k classes on one S an array of shape (k,): +1 for the true class, -1 for
        the best other class, 0 elsewhere. `margin` is y·f(x) before the update. Return False if the
        round does not count as an update.
        """
        raise NotImplementedError

    def finish_round(self, f: Any) -> None:
        """Do what `update` has put off in the last round of a block; nothing by default.

        Called between two blocks, before f is used again: by then the answer of the round is out.
        """

    @property
    def most_kept(self) -> int | None:
        """Upper limit of |S|; None if there is no limit."""
        limits = []
        for name in ("budget", "max_support"):
            limit = getattr(self, name, None)
            if limit is not None:
                limits.append(limit)
        return min(limits, default=None)

    @property
    def last_reset(self) -> int | None:
        """The round, from 1, in which f last started from scratch; None if it never did."""
        return None

    def statistics(self) -> dict[str, int | float | None]:
        """Statistics of the run in addition to the tally, by name; None if not defined yet."""
        return {name: getattr(self, name) for name in self.reports}

    def warnings(self, f: Any) -> list[str]:
        """Warnings about numerical problems or resets during the run, one text each."""
        return []

    def state_dict(self) -> State:
        state = super().state_dict()
        state["update_below"] = float(self.update_below)
        state["next_call"] = self.next_call
        return state

    def load_state_dict(self, state: StateReader) -> None:
        self._load_calls(state)
        for name in self.state_fields:
            if name in CALLS:
                continue
            key = name.lstrip("_")
            value = state.value(key)
            kind = type(getattr(self, name))
            kinds = (int, float) if kind is float else (kind,)
            negative = type(value) is int and value < 0
            if type(value) not in kinds or negative:
                raise state.refusal(key, "has an invalid value")
            setattr(self, name, value)
        self.check(state)

    def _load_calls(self, state: StateReader) -> None:
        """Restore when `update` is called: updates may change that."""
        update_below = state.value("update_below")
        next_call = state.value("next_call")
        if type(update_below) is not float or math.isnan(update_below):
            raise state.refusal("update_below", "has an invalid value")
        if next_call != math.inf and (type(next_call) is not int or next_call < 0):
            raise state.refusal("next_call", "has an invalid value")
        self.update_below = update_below
        self.next_call = next_call


def budget_parameter(
    meaning: str = "most examples kept", *, at_least: int = 1, even: bool = False
) -> Any:
    """Declare the parameter `budget` (B)."""
    return integer("B", meaning, default=400, at_least=at_least, even=even)


def multiclass_parameter(*words: str) -> Any:
    """Declare how more than two classes are learned; the first word is the default."""
    meaning = "more than two classes: one-vs-rest learners, or one shared S"
    return choice("", meaning, *words)


def max_support_parameter() -> Any:
    """Declare `max_support`, the size of S at which the run ends with an error."""
    return integer("|S|", "end the run before S is larger than this", at_least=1, optional=True)


def check_support(size: int, limit: int | None) -> None:
    """Raise LimitReachedError if adding an example would make |S| larger than `max_support`."""
    if limit is not None and size > limit:
        message = f"one more example would make S larger than max_support={limit}"
        raise LimitReachedError(message, "max_support")


def step_parameter() -> Any:
    """Declare the parameter `step` (η)."""
    formula = "10/√T, or 0.1 if T is unknown"
    return real("η", "step size", over=0, optional=True, formula=formula)


def horizon_parameter(meaning: str = "number of rounds, for defaults that depend on it") -> Any:
    """Declare the parameter `horizon` (T)."""
    formula = "length of the stream, if known"
    return integer("T", meaning, at_least=1, optional=True, formula=formula)


def required_rounds(T: int | None, learner: str, *, instead: str = "") -> int:
    """T if it is known, else ParameterError; `instead` is a parameter that would do as well."""
    if not T:
        given = f"{instead} or horizon" if instead else "horizon"
        message = f"{given} must be given: {learner} needs the number of rounds beforehand"
        raise ParameterError(message, "horizon", "missing")
    return T


def shrinkage_parameter(default: float | None = None, **options: Unpack[SpecFields]) -> Any:
    """Declare the parameter `shrinkage` (λ)."""
    options["at_least"] = 0
    return real("λ", "strength of the regulariser λ‖f‖²/2", default, **options)


def check_shrinkage(step: float, shrinkage: float) -> None:
    """Raise ParameterError if λ >= 1/η, for which shrinking would flip the sign of f."""
    if step * shrinkage >= 1:
        message = f"shrinkage must be a number below 1/step = {1 / step:g}, got {shrinkage}"
        raise ParameterError(message, "shrinkage")


class GradientLearner(Learner):
    """Base of learners with a step η and a horizon T, both set when a run begins."""

    step: float | None
    horizon: int | None

    def resolved(self, horizon: int | None) -> Self:
        T = self.horizon or horizon
        step = self.step
        if step is None:
            step = 10.0 / math.sqrt(T) if T else 0.1
        return dataclasses.replace(self, horizon=T, step=step)  # type: ignore[call-arg]  # declared
