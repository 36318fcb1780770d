"""Saving and restoring objects: each class declares the attributes of its state.

A state is a nested dict of numbers, text and arrays. It includes the class of each object, because
an update may replace objects (the f of NOGD is first an expansion, then linear). Only subclasses
of `Stateful` are ever created from a state.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Final, Self, TypeAlias

import numpy as np

from ahpatron_cli.core.errors import StateError

State: TypeAlias = dict[str, Any]
"""A state: values are bool, int, float, str, None, arrays (float64, int64, int32) or states."""
DTYPES: dict[str, type[np.generic]] = {"#": np.int64, "%": np.int32}
SAVED_DTYPES = ("<f8", "<i8", "<i4")
PLAIN = (bool, int, float, str, type(None))
Form: TypeAlias = type | str
"""The form of an attribute, see `Stateful`."""
NOT_SET: Final = object()
"""In place of the current value of an attribute, in objects that are created from a state."""


class Stateful:
    """Base of objects that can be saved: `state_fields` maps attributes to their forms.

    Forms: `int` is an integer >= 0, `float` a finite number, `"any"` a number that may be NaN or
    infinite, `"fixed"` a number >= 0 that an argument of the constructor set, equal to the current
    one if there is one, a class an object of that class, or None if it is None now. Other strings
    are arrays of float64 ("#" first: int64, "%": int32) whose letters are their dimensions as in
    einsum: equal letters are equal lengths. The size of an object with `is_dimension` has the first
    letter of its attribute, or s for `points`. "..." stands for the current further dimensions. "?"
    at the end allows None if the attribute is None now.
    """

    state_fields: ClassVar[Any] = {}
    kept: ClassVar[Any] = {}
    """The name of `state_fields` up to version 1.0; learners of users may still define it."""
    is_dimension: ClassVar[bool] = False
    """Whether the `size` of these objects is a dimension of arrays that are saved with them."""
    state_name: ClassVar[str]
    classes_by_name: ClassVar[dict[str, type[Stateful]]] = {}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "kept" in vars(cls):
            cls.state_fields = cls.kept
        cls.kept = cls.state_fields
        if cls.__module__.startswith("ahpatron_cli."):
            cls.state_name = cls.__name__
        else:
            cls.state_name = f"{cls.__module__}.{cls.__qualname__}"
        Stateful.classes_by_name[cls.state_name] = cls

    def state_dict(self) -> State:
        """The state of the object between two blocks, as a nested dict."""
        state: State = {"class": self.state_name}
        for name in self.state_fields:
            key = name.lstrip("_")
            state[key] = self._plain(name)
        return state

    def load_state_dict(self, state: StateReader) -> None:
        """Restore a state written by `state_dict`; raises `StateError` if it is damaged."""
        if not self.state_fields:
            raise state.refusal("class", "has no state")
        lengths: dict[str, int] = {}
        for name, form in self.state_fields.items():
            value = self._restored(name, form, state, lengths=lengths)
            setattr(self, name, value)
        self.check(state)

    def _restored(
        self, name: str, form: Form, state: StateReader, *, lengths: dict[str, int]
    ) -> Any:
        """The value of an attribute in a state, once it was checked."""
        key = name.lstrip("_")
        now = getattr(self, name, NOT_SET)
        target = None
        if isinstance(now, Stateful):
            target = now
        kinds: tuple[type, ...] = ()
        if isinstance(form, type):
            kinds = (form,)
        value = state.value(key, target, kinds)
        if not _fits(value, form, now=now, lengths=lengths):
            raise state.refusal(key, "has an invalid value")
        if isinstance(form, type) and getattr(form, "is_dimension", False):
            letter = "s" if name == "points" else name[0]
            lengths[letter] = 0 if value is None else value.size
        return value

    def copy_last_class(self) -> None:
        """Add a class, with a copy of all that the last one has learned. Between two blocks."""
        for name, form in self.state_fields.items():
            value = getattr(self, name)
            if isinstance(value, Stateful):
                value.copy_last_class()
            elif isinstance(form, str) and "..." in form:
                last = value[..., -1:]
                longer = np.concatenate([value, last], axis=-1)
                setattr(self, name, longer)

    def check(self, state: StateReader) -> None:
        """Raise a `StateError` if the restored attributes are inconsistent."""

    def _plain(self, name: str) -> Any:
        """The value of an attribute as a number, text, array or state."""
        value = getattr(self, name)
        if isinstance(value, Stateful):
            return value.state_dict()
        if isinstance(value, np.generic):
            value = value.item()
        if isinstance(value, np.ndarray):
            can_be_saved = value.dtype.str in SAVED_DTYPES
        else:
            can_be_saved = isinstance(value, PLAIN)
        if not can_be_saved:
            kind = type(self).__name__
            problem = "is neither a number nor text nor an array of float64, int64 or int32"
            raise StateError(f"{kind}.{name} cannot be saved: it {problem}")
        return value


def _fits(value: object, form: Form, now: object, lengths: dict[str, int]) -> bool:
    """Whether a value has this form; `lengths` collects the dimensions by letter.

    `now` is the current value, or `NOT_SET` if the object is created from its state.
    """
    if form is int:
        return _is_count(value)
    if form is float:
        return _is_number(value, now=now, finite=True)
    if form == "any":
        return _is_number(value, now=now, finite=False)
    none_fits = value is None and (now is None or now is NOT_SET)
    if isinstance(form, type):
        return isinstance(value, form) or none_fits
    if form.endswith("?") and (value is None or now is None):
        return none_fits
    if form in ("fixed", "fixed?"):
        return _is_fixed(value, now)
    return _is_array(value, form, now=now, lengths=lengths)


def _is_count(value: object) -> bool:
    """Whether a value is an integer >= 0; True and False are none."""
    if type(value) is not int:
        return False
    return 0 <= value < 2**63


def _is_fixed(value: object, now: object) -> bool:
    """Whether a value is a number >= 0 that equals the current one, if there is one."""
    if type(value) is not int and type(value) is not float:
        return False
    if not 0 <= value < math.inf:
        return False
    return now is NOT_SET or value == now


def _is_number(value: object, now: object, finite: bool) -> bool:
    """Whether a value is a float, or an array of floats in its place (one per class)."""
    if isinstance(value, np.ndarray):
        if now is NOT_SET:
            return value.ndim == 1 and bool(value.dtype == np.float64)
        if isinstance(now, np.ndarray):
            same_shape = value.shape == now.shape
            return bool(same_shape and value.dtype == now.dtype)
    if type(value) is not float:
        return False
    return math.isfinite(value) or not finite


def _is_array(value: object, form: str, now: object, lengths: dict[str, int]) -> bool:
    """Whether a value is an array of this form (see `_fits`)."""
    letters = form.strip("#%.?")
    count = len(letters)
    dtype = DTYPES.get(form[0], np.float64)
    if not isinstance(value, np.ndarray) or value.dtype != dtype:
        return False
    if value.ndim < count:
        return False
    for letter, length in zip(letters, value.shape, strict=False):
        expected = lengths.setdefault(letter, length)
        if length != expected:
            return False
    further: tuple[int, ...] = value.shape[count:]
    if not form.endswith("..."):
        return not further
    if now is NOT_SET:
        return True
    if not isinstance(now, np.ndarray):
        return False
    expected = now.shape[count:]
    return bool(further == expected)


class StateReader:
    """Reader of a state; missing and unknown entries raise `StateError`.

    The values of `context`, such as the kernel, become attributes of all objects that are created.
    """

    def __init__(self, content: Mapping[str, Any], context: State, path: str = "") -> None:
        self._content = dict(content)
        self.context = context
        self._path = path

    def part(self, name: str, **context: Any) -> StateReader:
        """Reader of a nested state; `context` overrides attributes that its objects share."""
        content = self.take(name)
        if not isinstance(content, Mapping):
            raise self.refusal(name, "must be a group of values")
        shared = {**self.context, **context}
        path = f"{self._path}{name}."
        return StateReader(content, shared, path=path)

    def value(self, name: str, target: Stateful | None = None, kinds: tuple[type, ...] = ()) -> Any:
        """Read a number, text, None, a finite array, or an object of one of the classes `kinds`.

        If the object has the class of `target`, its state is loaded into `target`.
        """
        content = self._content.get(name)
        if isinstance(content, Mapping):
            return self._object(name, target, kinds)
        value = self.take(name)
        if isinstance(value, np.ndarray):
            finite = np.isfinite(value)
            if not finite.all():
                raise self.refusal(name, "has values that are not finite")
            return np.array(value, order="K")  # a copy, never a memory map
        if not isinstance(value, PLAIN):
            raise self.refusal(name, "is of an unknown type")
        return value

    def _object(self, name: str, target: Stateful | None, kinds: tuple[type, ...]) -> Stateful:
        """Read an object, see `value`."""
        with self.part(name) as part:
            class_name = str(part.take("class"))
            kind = Stateful.classes_by_name.get(class_name)
            if kind is None:
                raise self.refusal(name, "is of another class")
            if target is None or type(target) is not kind:
                if not issubclass(kind, kinds):
                    raise self.refusal(name, "is of another class")
                if inspect.isabstract(kind):
                    raise self.refusal(name, "is of a class without objects")
                target = kind.__new__(kind)
                for shared, value in self.context.items():
                    setattr(target, shared, value)  # not `__dict__`: see `Declared`
            target.load_state_dict(part)
        return target

    def array(self, name: str, form: str) -> Any:
        """Read a finite array of this form (see `Stateful`)."""
        value = self.value(name)
        if not _fits(value, form, now=NOT_SET, lengths={}):
            raise self.refusal(name, "is not an array of the expected form")
        return value

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        """Raise `StateError` if there are entries that were not read."""
        if kind is None and self._content:
            unread = next(iter(self._content))
            raise self.refusal(unread, "is not known")

    def refusal(self, name: str, problem: str) -> StateError:
        """The `StateError` for an invalid entry `name`."""
        return StateError(f"{self._path}{name} {problem}")

    def take(self, name: str) -> Any:
        """Remove and return an entry without checks."""
        if name not in self._content:
            raise self.refusal(name, "is missing")
        return self._content.pop(name)
