"""What a pass has to remember, as plain values: nested dicts of numbers, words and arrays.

Every object with a state declares it once, in `exchange`: each value by name, kind and shape. The
same declaration writes the state and reads it back, where what is missing, of another kind or left
over is refused.
"""

from __future__ import annotations

import dataclasses
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.errors import StateError

T = TypeVar("T")
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
    """A state that is read back; without content, one that is written.

    To write, each value is passed along: it is noted, and returned as it is.
    """

    def __init__(self, content: Mapping[str, Any] | None = None, path: str = "") -> None:
        self.writes = content is None
        self.content: State = dict(content or {})
        self._path = path

    def integer(self, name: str, value: int = 0, *, at_most: int = LARGEST) -> int:
        """A whole number from 0 on."""
        if self.writes:
            return self.note(name, value)
        value = self._take(name)
        if type(value) is not int or not 0 <= value <= at_most:
            raise self.refuse(name, f"must be a whole number from 0 to {at_most}")
        return value

    def number(
        self, name: str, value: float = 0.0, *, infinite: bool = False, unknown: bool = False
    ) -> float:
        """A finite number; where that is legal an infinite one, or NaN, which is kept as None."""
        if self.writes:
            self.note(name, None if unknown and math.isnan(value) else value)
            return value
        value = self._take(name)
        if unknown and value is None:
            return math.nan
        if type(value) is not float or math.isnan(value) or (math.isinf(value) and not infinite):
            raise self.refuse(name, "must be a number")
        return value

    def flag(self, name: str) -> bool:
        """True or false."""
        value = self._take(name)
        if not isinstance(value, bool):
            raise self.refuse(name, "must be true or false")
        return value

    def word(self, name: str, legal: Sequence[str], value: str = "") -> str:
        """One of these words."""
        if self.writes:
            return self.note(name, value)
        value = self._take(name)
        if value not in legal:
            raise self.refuse(name, f"must be one of {', '.join(legal)}")
        return value

    def array(
        self,
        name: str,
        shape: Sequence[int | None],
        value: NDArray[Any] | None = None,
        dtype: type[np.generic] = np.float64,
    ) -> NDArray[Any]:
        """An array of this type and shape (None: any length), all finite; ours to change."""
        if self.writes:
            assert value is not None
            return self.note(name, value)
        value = self._take(name)
        if not isinstance(value, np.ndarray) or value.dtype != np.dtype(dtype):
            raise self.refuse(name, f"must be an array of {np.dtype(dtype)}")
        fits = len(shape) == value.ndim and all(
            want is None or want == have for want, have in zip(shape, value.shape, strict=True)
        )
        if not fits:
            raise self.refuse(name, f"has the shape {value.shape}")
        if not np.isfinite(value).all():
            raise self.refuse(name, "has values that are not finite")
        return np.array(value, order="C")

    def part(self, name: str, of: Saved) -> None:
        """The state of an object within this one."""
        if self.writes:
            self.note(name, of.state())
        else:
            child = self.child(name)
            of.exchange(child)
            child.finish()

    def generator(self, name: str, rng: np.random.Generator) -> None:
        """All that the next draws of a random generator depend on."""
        if self.writes:
            self.note(name, generator_state(rng))
            return
        stored = self.child(name)
        rng.bit_generator.state = {
            "bit_generator": "PCG64",
            "state": {part: stored.integer(part, at_most=2**128 - 1) for part in ("state", "inc")},
            "has_uint32": stored.integer("has", at_most=1),
            "uinteger": stored.integer("half", at_most=2**32 - 1),
        }
        stored.finish()

    def child(self, name: str) -> Stored:
        """A state within this one, to read."""
        return Stored(self.mapping(name), f"{self._path}{name}.")

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A group of values that the caller checks."""
        value = self._take(name)
        if not isinstance(value, Mapping):
            raise self.refuse(name, "must be a group of values")
        return value

    def is_none(self, name: str) -> bool:
        """Whether there is none; then that was the answer, else ask for the value."""
        if name in self.content and self.content[name] is None:
            del self.content[name]
            return True
        return False

    def none(self, name: str) -> None:
        """Nothing: there is no such value for this object."""
        if self.writes:
            self.note(name, None)
        elif not self.is_none(name):
            raise self.refuse(name, "does not belong to this learner")

    def finish(self) -> None:
        """Refuse what nobody asked for."""
        if self.content:
            raise self.refuse(next(iter(self.content)), "is not known")

    def refuse(self, name: str, problem: str) -> StateError:
        """The error for a value that is not as it must be."""
        return StateError(f"{self._path}{name} {problem}")

    def note(self, name: str, value: T) -> T:
        """Write a value."""
        self.content[name] = value
        return value

    def _take(self, name: str) -> Any:
        try:
            return self.content.pop(name)
        except KeyError:
            raise self.refuse(name, "is missing") from None


def generator_state(rng: np.random.Generator) -> State:
    """All that the next draws of a random generator depend on."""
    bits: Any = rng.bit_generator.state
    return {**bits["state"], "has": bits["has_uint32"], "half": bits["uinteger"]}


class Saved:
    """An object with a state."""

    @abstractmethod
    def exchange(self, stored: Stored) -> None:
        """Write all values, or go on from those that another object of this kind wrote."""

    def state(self) -> State:
        """What the object has to remember."""
        written = Stored()
        self.exchange(written)
        return written.content
