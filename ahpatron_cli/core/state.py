"""Save and resume: each class names the attributes that it keeps, and nothing else is declared.

A state is a nested dict of numbers, text and arrays. The state of an object notes its class,
because an update may replace the object (the f of NOGD is an expansion first, then linear). Only
classes derived from `Stateful` are ever created from a state, and each checks what it was given.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.errors import StateError

State: TypeAlias = dict[str, Any]
"""Values are bool, int, float, str, None, arrays of float64, int64 or int32, or other states."""


class Stateful:
    """An object with a state: the attributes named in `kept`.

    Attributes that are not kept must have a value in the class, or be set when a block opens.
    """

    kept: ClassVar[tuple[str, ...]] = ()
    state_name: ClassVar[str]
    classes_by_name: ClassVar[dict[str, type[Stateful]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        ours = cls.__module__.startswith("ahpatron_cli.")
        cls.state_name = cls.__name__ if ours else f"{cls.__module__}.{cls.__qualname__}"
        Stateful.classes_by_name[cls.state_name] = cls

    def state_dict(self) -> State:
        """What the object has to remember between two blocks."""
        values = {name: getattr(self, name) for name in self.kept}
        parts = {name.lstrip("_"): self._plain(name, value) for name, value in values.items()}
        return {"class": self.state_name, **parts}

    def load_state_dict(self, state: StateReader) -> None:
        """Take over a state that an object of this class wrote; `check` refuses what is damaged."""
        if not self.kept:
            raise state.refusal("class", "has no state")
        for name in self.kept:
            setattr(self, name, state.value(name.lstrip("_")))
        self.check(state)

    def check(self, state: StateReader) -> None:
        """Raise a `StateError` if the attributes do not fit together."""

    def suits(self, sparse: bool, width: int) -> bool:
        """Whether all examples in here are of the kind of the stream, and at most so wide."""
        parts = (getattr(self, name) for name in self.kept)
        return all(part.suits(sparse, width) for part in parts if isinstance(part, Stateful))

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, Stateful):
            return value.state_dict()
        if isinstance(value, np.generic):  # a number that NumPy computed
            value = value.item()
        if isinstance(value, np.ndarray):
            legal = value.dtype.str in ("<f8", "<i8", "<i4")
        else:
            legal = isinstance(value, bool | int | float | str | None)
        if not legal:
            problem = "is neither a number nor text nor an array of float64, int64 or int32"
            raise StateError(f"{type(self).__name__}.{name} cannot be saved: it {problem}")
        return value


class StateReader:
    """A state that is read: what is missing, unknown or of another type is a `StateError`.

    Parameters
    ----------
    content : mapping
        A state, as `state_dict` returned it.
    context : mapping
        Attributes that all objects in the state share, such as the kernel.
    """

    def __init__(
        self, content: Mapping[str, Any], context: Mapping[str, Any], path: str = ""
    ) -> None:
        self._content, self._context, self._path = dict(content), context, path

    def load(self, target: Stateful) -> None:
        """Let an object take over this state, all of it."""
        name = self._take("class")
        if name != target.state_name:
            raise self.refusal("class", f"must be {target.state_name}")
        target.load_state_dict(self)

    def part(self, name: str, **context: Any) -> StateReader:
        """A state within this one; `context` replaces attributes that its objects share."""
        content = self._take(name)
        if not isinstance(content, Mapping):
            raise self.refusal(name, "must be a group of values")
        return StateReader(content, {**self._context, **context}, f"{self._path}{name}.")

    def value(self, name: str) -> Any:
        """A number, text, None, a finite array that may be changed, or an object."""
        value = self._content.get(name)
        if isinstance(value, Mapping):
            part = self.part(name)
            kind = Stateful.classes_by_name.get(str(part._content.get("class")))
            if kind is None:
                raise self.refusal(name, "is of an unknown class")
            target = kind.__new__(kind)
            vars(target).update(self._context)
            with part:
                part.load(target)
            return target
        if isinstance(value, np.ndarray):
            return self.array(name, (None,) * value.ndim, value.dtype.type)
        value = self._take(name)
        if not isinstance(value, bool | int | float | str | None):
            raise self.refusal(name, "is of an unknown type")
        return value

    def array(
        self, name: str, shape: tuple[int | None, ...], dtype: type[np.generic] = np.float64
    ) -> NDArray[Any]:
        """A finite array of this type and shape (None: any length); a copy in its own order."""
        return self.check_array(name, self._take(name), shape, dtype).copy(order="K")

    def check_array(
        self,
        name: str,
        value: Any,
        shape: tuple[int | None, ...],
        dtype: type[np.generic] = np.float64,
    ) -> NDArray[Any]:
        """`value`, if it is a finite array of this type and shape."""
        if not isinstance(value, np.ndarray) or value.dtype != np.dtype(dtype):
            raise self.refusal(name, f"must be an array of {np.dtype(dtype)}")
        lengths = zip(shape, value.shape, strict=False)
        if len(shape) != value.ndim or any(want not in (None, have) for want, have in lengths):
            raise self.refusal(name, f"has the shape {value.shape}")
        if not np.isfinite(value).all():
            raise self.refusal(name, "has values that are not finite")
        return value

    def integer(self, name: str, at_most: int = 2**60) -> int:
        """An integer from 0 on."""
        return self.check_integer(name, self._take(name), at_most)

    def check_integer(self, name: str, value: Any, at_most: int = 2**60) -> int:
        """`value`, if it is an integer from 0 to `at_most`."""
        if type(value) is not int or not 0 <= value <= at_most:
            raise self.refusal(name, f"must be an integer from 0 to {at_most}")
        return value

    def number(self, name: str) -> float:
        """A finite float."""
        return self.check_number(name, self._take(name))

    def check_number(self, name: str, value: Any, finite: bool = True) -> float:
        """`value`, if it is a float."""
        if type(value) is not float or (finite and not math.isfinite(value)):
            raise self.refusal(name, "must be a number")
        return value

    def __enter__(self) -> StateReader:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Refuse what nobody asked for."""
        if kind is None and self._content:
            raise self.refusal(next(iter(self._content)), "is not known")

    def refusal(self, name: str, problem: str) -> StateError:
        """The error for a value that is not as it must be."""
        return StateError(f"{self._path}{name} {problem}")

    def _take(self, name: str) -> Any:
        try:
            return self._content.pop(name)
        except KeyError:
            raise self.refusal(name, "is missing") from None
