"""Labels in Python: arrays of class labels, their text in model files, and back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import LabelKind, label_key, number
from ahpatron_cli.data.labels import show

LabelArray: TypeAlias = NDArray[Any]
"""Labels of any type that NumPy can hold."""

NUMBERS = "iuf"
"""Kinds of dtypes of numbers."""
BOOLEANS = ("False", "True")


def check_present(y: object) -> None:
    """Raise a ValueError if a Series lacks labels, with which scikit-learn cannot deal."""
    if hasattr(y, "isna") and np.any(y.isna()):
        raise ValueError("y contains NaN or NA: rows without a label cannot be learned")


def check_labels(labels: LabelArray, given: object) -> None:
    """Raise a ValueError if labels are of several types; `given` is what the user passed.

    NumPy silently converts a list of numbers and text to text.
    """
    are_objects = labels.dtype.kind == "O"
    if isinstance(given, list | tuple):
        values = given
    elif are_objects:
        values = labels.tolist()
    else:
        return
    if any(value is None for value in values):
        raise ValueError("y contains None: rows without a label cannot be learned")
    are_texts = [isinstance(value, str) for value in values]
    if True in are_texts and False in are_texts:
        types = _type_names(values)
        raise ValueError(f"y mixes labels of the types {types}: use one, such as str")
    if are_objects and not any(are_texts):
        problem = f"y is an array of objects of the type {_type_names(values)}"
        raise ValueError(f"Unknown label type: {problem}: convert it, for example by astype(str)")


def _type_names(values: Sequence[Any]) -> str:
    """Names of all types of these values."""
    names = {type(value).__name__ for value in values}
    return ", ".join(sorted(names))


def distinct_labels(labels: ArrayLike) -> LabelArray:
    """The distinct labels in increasing order; a ValueError if they cannot be classes."""
    array = np.asarray(labels)
    check_labels(array, labels)
    distinct = np.unique(array)
    if distinct.dtype.kind in "fcmM":
        is_nan = distinct != distinct
        if is_nan.any():
            raise ValueError("NaN is not a label")
    count = len(distinct)
    if count < 2:
        only = distinct.tolist()[0]
        raise ValueError(f"y has one class only, {only!r}: nothing to learn")
    if count > MAX_CLASSES:
        raise ValueError(f"at most {MAX_CLASSES:,} classes are possible, got {count:,}")
    return distinct


def label_texts(labels: LabelArray) -> list[str]:
    """Text of each label as in a table: 1 rather than 1.0, True, 2024-01-31."""
    if labels.dtype.kind == "M":
        texts: list[str] = np.datetime_as_string(labels, unit="auto").tolist()
        return texts
    text_of: Callable[[Any], str] = str
    if labels.dtype.kind == "f":
        text_of = _float_text
    return [text_of(label) for label in labels.tolist()]


def _float_text(label: float) -> str:
    """Text of a number; also of NaN and infinity, which cannot be whole."""
    if np.isfinite(label):
        return show(label)
    return str(label)


def are_plain_numbers(classes: LabelArray) -> bool:
    """Whether labels are numbers that a model without a schema can hold: floats do not alter them.

    >>> are_plain_numbers(np.array([1, 2])), are_plain_numbers(np.array([2**53, 2**53 + 1]))
    (True, False)
    """
    if classes.dtype.kind not in NUMBERS:
        return False
    numbers = map(float, classes.tolist())
    as_floats = [show(number) for number in numbers]
    return as_floats == label_texts(classes)


def type_name(classes: LabelArray) -> str:
    """Name of the dtype of labels for a model file: `int64`, `str`, `object`, `datetime64[ns]`."""
    if classes.dtype.kind == "U":
        return "str"
    if classes.dtype.kind == "f" and classes.dtype.itemsize > 8:
        return "float64"
    return classes.dtype.name


def kind_of(classes: LabelArray) -> LabelKind:
    """What labels of this dtype are in a table."""
    if classes.dtype.kind == "b":
        return "boolean"
    if classes.dtype.kind == "M":
        return "date"
    if are_plain_numbers(classes):
        return "number"
    return "text"


def labels_from_texts(texts: Sequence[str], dtype: str | None, kind: LabelKind) -> LabelArray:
    """Labels from their texts in a model file; a ValueError if they do not have this dtype.

    Without a dtype the model was made by the command line: labels are numbers or booleans if the
    schema says so, otherwise text.

    >>> labels_from_texts(["3", "7"], "str", "text"), labels_from_texts(["3", "7"], None, "number")
    (array(['3', '7'], dtype='<U1'), array([3, 7]))
    >>> labels_from_texts(["007", "7"], None, "text")
    array(['007', '7'], dtype='<U3')
    """
    if dtype is None:
        return _labels_of_command_line(texts, kind)
    if dtype == "bool":
        return _booleans(texts)
    if "int" in dtype:
        integers = [int(text) for text in texts]
        return np.array(integers, dtype=dtype)
    return np.array(texts, dtype=dtype)


def _booleans(texts: Sequence[str]) -> LabelArray:
    """Booleans from their texts; a ValueError for other texts."""
    numbers = [BOOLEANS.index(text) for text in texts]
    return np.array(numbers, dtype=bool)


def _labels_of_command_line(texts: Sequence[str], kind: LabelKind) -> LabelArray:
    """Labels of a model that was made by the command line, by what its schema says they are."""
    distinct = set(texts)
    if kind == "boolean" and distinct <= set(BOOLEANS):
        return _booleans(texts)
    are_numbers = [number(text) is not None for text in distinct]
    if kind != "number" or not all(are_numbers):
        return np.array(texts)  # also if one stands for all others
    floats = np.array(texts, dtype=np.float64)
    if np.any(floats % 1):
        return floats
    return floats.astype(np.int64)


@dataclass(frozen=True)
class LabelCoding:
    """Codes of the classes for the engine: -1 and +1, or 0, 1, … if there are more than two.

    Attributes
    ----------
    classes : array
        The labels in the order of their codes.
    codes : dict
        Code of each label, or of its text if labels are compared as in tables.
    kind : {"text", "number", "boolean", "date"}, optional
        What the labels of a table are. If given, labels are compared by their text as in tables:
        1, 1.0 and "1" are one label.
    others : bool
        Whether all labels but the second class are encoded as -1 (`--positive`).
    """

    classes: LabelArray
    codes: Mapping[Any, float]
    kind: LabelKind | None = None
    others: bool = False

    @classmethod
    def of(
        cls, classes: LabelArray, *, kind: LabelKind | None = None, others: bool = False
    ) -> LabelCoding:
        """The coding of these classes; dates are always compared as in tables."""
        if classes.dtype.kind == "M":
            kind = "date"
        keys = _keys(classes, kind)
        numbers = np.arange(len(classes), dtype=float)
        if len(classes) == 2:
            numbers = np.array([-1.0, 1.0])
        codes = dict(zip(keys, numbers.tolist(), strict=True))
        return cls(classes=classes, codes=codes, kind=kind, others=others)

    @property
    def stored(self) -> tuple[float, ...]:
        """The classes as the numbers that a model file has: the labels, or else their codes."""
        numbers = self.codes.values()
        if are_plain_numbers(self.classes):
            numbers = self.classes.tolist()
        return tuple(map(float, numbers))

    def encode(self, labels: LabelArray) -> Floats:
        """Code of each label; a ValueError for a label that is not among the classes."""
        keys = _keys(labels, self.kind)
        if self.others:
            found = [self.codes.get(key, -1.0) for key in keys]
            return np.array(found)
        codes = map(self.codes.__getitem__, keys)
        try:
            return np.fromiter(codes, np.float64, len(keys))
        except KeyError as error:
            strange = error.args[0]
            classes = self.classes.tolist()
            problem = f"y has labels that are not among the classes {classes!r}"
            raise ValueError(f"{problem}: {strange!r}") from None

    def numbers(self, encoded: Floats) -> Integers:
        """Index in `classes` of each code."""
        if len(self.classes) == 2:
            return (encoded > 0).astype(np.int64)
        return encoded.astype(np.int64)

    def has_classes(self, classes: ArrayLike) -> bool:
        """Whether these are all classes, in any order."""
        given = _keys(np.asarray(classes), self.kind)
        return set(given) == self.codes.keys()


def _keys(labels: LabelArray, kind: LabelKind | None) -> list[Any]:
    """What labels are compared by: themselves, or their spelling in tables."""
    if kind is None:
        found: list[Any] = labels.tolist()
        return found
    texts = label_texts(labels)
    return [label_key(text, kind) or text for text in texts]
