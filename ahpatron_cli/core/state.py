"""What a pass has to remember, as plain values: nested dicts of numbers, words and arrays.

Every object with a state writes it with `state()` and takes it back from a `Stored`, which is asked
for each value by name, kind and shape: what is missing, of another kind or left over is refused.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.errors import StateError

State: TypeAlias = dict[str, Any]
"""Values are int, float, str, bool, None, arrays of float64, int64 or int32, or other states."""

LARGEST = 2**128


def pass_state(initial: int | float | Callable[[], Any], reported: str | None = None) -> Any:
    """Declare what a learner's pass counts or sums up: an attribute of a dataclass.

    It is no parameter, begins anew with every pass, is saved and goes on with it. With `reported`,
    its meaning in a few words, it is one of the learner's statistics.
    """
    factory = initial if callable(initial) else lambda: initial
    return dataclasses.field(
        init=False,
        repr=False,
        compare=False,
        default_factory=factory,
        metadata={"pass_state": True, "reported": reported},
    )


class Stored:
    """A state that is read back."""

    def __init__(self, content: Mapping[str, Any], path: str = "") -> None:
        self._content = dict(content)
        self._path = path

    def integer(self, name: str, *, at_least: int = 0, at_most: int = LARGEST) -> int:
        """A whole number in these bounds."""
        value = self._take(name)
        if type(value) is not int or not at_least <= value <= at_most:
            raise self._fault(name, f"must be a whole number from {at_least} to {at_most}")
        return value

    def number(self, name: str, *, infinite: bool = False) -> float:
        """A finite number, or an infinite one where that is legal."""
        value = self._take(name)
        if type(value) is not float or math.isnan(value) or (math.isinf(value) and not infinite):
            raise self._fault(name, "must be a number")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self._fault(name, "must be true or false")
        return value

    def word(self, name: str, legal: Sequence[str]) -> str:
        """One of these words."""
        value = self._take(name)
        if value not in legal:
            raise self._fault(name, f"must be one of {', '.join(legal)}")
        return str(value)

    def array(
        self, name: str, shape: Sequence[int | None], dtype: type[np.generic] = np.float64
    ) -> NDArray[Any]:
        """An array of this type and shape (None: any length), all finite; ours to change."""
        value = self._take(name)
        if not isinstance(value, np.ndarray) or value.dtype != np.dtype(dtype):
            raise self._fault(name, f"must be an array of {np.dtype(dtype)}")
        fits = len(shape) == value.ndim and all(
            want is None or want == have for want, have in zip(shape, value.shape, strict=True)
        )
        if not fits:
            raise self._fault(name, f"has the shape {value.shape}")
        if not np.isfinite(value).all():
            raise self._fault(name, "has values that are not finite")
        return np.array(value, order="C")

    def child(self, name: str) -> Stored:
        """A state within this one."""
        return Stored(self.mapping(name), f"{self._path}{name}.")

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A group of values that the caller checks."""
        value = self._take(name)
        if not isinstance(value, Mapping):
            raise self._fault(name, "must be a group of values")
        return value

    def is_none(self, name: str) -> bool:
        """Whether there is none; then that was the answer, else ask for the value."""
        if name in self._content and self._content[name] is None:
            del self._content[name]
            return True
        return False

    def finish(self) -> None:
        """Refuse what nobody asked for."""
        if self._content:
            raise self._fault(next(iter(self._content)), "is not known")

    def refuse(self, name: str, problem: str) -> StateError:
        """The error for a value that does not fit the others."""
        return self._fault(name, problem)

    def _take(self, name: str) -> Any:
        try:
            return self._content.pop(name)
        except KeyError:
            raise self._fault(name, "is missing") from None

    def _fault(self, name: str, problem: str) -> StateError:
        return StateError(f"{self._path}{name} {problem}")
