"""Labels in Python: arrays of class labels, their text in model files, and back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.cells import LabelKind, label_key, number
from ahpatron_cli.data.labels import show

NUMBERS = "iuf"
"""Kinds of dtypes of numbers."""
BOOLEANS = ("False", "True")


def check_present(y: Any) -> None:
    """Raise a ValueError if a Series lacks labels, with which scikit-learn cannot deal."""
    if hasattr(y, "isna") and np.any(y.isna()):
        raise ValueError("y contains NaN or NA: rows without a label cannot be learned")


def check_labels(labels: NDArray[Any], given: Any) -> None:
    """Raise a ValueError if labels are of several types; `given` is what the user passed.

    NumPy converts a list of numbers and text to text without a word.
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
    if any(are_texts) and not all(are_texts):
        types = _type_names(values)
        raise ValueError(f"y mixes labels of the types {types}: use one, such as str")
    if are_objects and not any(are_texts):
        problem = f"y is an array of objects of the type {_type_names(values)}"
        raise ValueError(f"Unknown label type: {problem}: convert it, for example by astype(str)")


def _type_names(values: Sequence[Any]) -> str:
    """Names of all types of these values."""
    names = {type(value).__name__ for value in values}
    return ", ".join(sorted(names))


def distinct_labels(labels: Any) -> NDArray[Any]:
    """The distinct labels in increasing order; a ValueError if they cannot be classes."""
    array = np.asarray(labels)
    check_labels(array, labels)
    distinct = np.unique(array)
    if distinct.dtype.kind in "fcmM" and (distinct != distinct).any():
        raise ValueError("NaN is not a label")
    if len(distinct) < 2:
        raise ValueError(f"y has one class only, {distinct.tolist()[0]!r}: nothing to learn")
    if len(distinct) > MAX_CLASSES:
        raise ValueError(f"at most {MAX_CLASSES:,} classes are possible, got {len(distinct):,}")
    return distinct


def label_texts(labels: NDArray[Any]) -> list[str]:
    """Text of each label as in a table: 1 rather than 1.0, True, 2024-01-31."""
    if labels.dtype.kind == "M":
        texts: list[str] = np.datetime_as_string(labels, unit="auto").tolist()
        return texts
    if labels.dtype.kind == "f":
        return [_float_text(label) for label in labels.tolist()]
    return [str(label) for label in labels.tolist()]


def _float_text(label: float) -> str:
    """Text of a number; also of NaN and infinity, which cannot be whole."""
    return show(label) if np.isfinite(label) else str(label)


def are_plain_numbers(classes: NDArray[Any]) -> bool:
    """Whether labels are numbers that a model without a schema can hold: floats do not alter them.

    >>> are_plain_numbers(np.array([1, 2])), are_plain_numbers(np.array([2**53, 2**53 + 1]))
    (True, False)
    """
    if classes.dtype.kind not in NUMBERS:
        return False
    as_floats = [show(float(label)) for label in classes.tolist()]
    return as_floats == label_texts(classes)


def type_name(classes: NDArray[Any]) -> str:
    """Name of the dtype of labels for a model file: `int64`, `str`, `object`, `datetime64[ns]`."""
    if classes.dtype.kind == "U":
        return "str"
    if classes.dtype.kind == "f" and classes.dtype.itemsize > 8:
        return "float64"
    return classes.dtype.name


def kind_of(classes: NDArray[Any]) -> LabelKind:
    """What labels of this dtype are in a table."""
    if classes.dtype.kind == "b":
        return "boolean"
    if classes.dtype.kind == "M":
        return "date"
    if are_plain_numbers(classes):
        return "number"
    return "text"


def labels_from_texts(texts: Sequence[str], dtype: str | None, kind: LabelKind) -> NDArray[Any]:
    """Labels from their texts in a model file; a ValueError if they do not have this dtype.

    Without a dtype the model was made by the command line: labels are numbers or booleans if the
    schema says so, otherwise text.

    >>> labels_from_texts(["3", "7"], "str", "text"), labels_from_texts(["3", "7"], None, "number")
    (array(['3', '7'], dtype='<U1'), array([3, 7]))
    >>> labels_from_texts(["007", "7"], None, "text")
    array(['007', '7'], dtype='<U3')
    """
    are_booleans = kind == "boolean" and all(text in BOOLEANS for text in texts)
    if dtype == "bool" or (dtype is None and are_booleans):
        return np.array([BOOLEANS.index(text) for text in texts], dtype=bool)
    if dtype is not None and "int" in dtype:
        return np.array([int(text) for text in texts], dtype=dtype)
    if dtype is not None:
        return np.array(texts, dtype=dtype)
    if kind != "number" or any(number(text) is None for text in texts):
        return np.array(texts)  # also if one stands for all others
    floats = np.array(texts, dtype=np.float64)
    are_integers = (floats % 1 == 0).all()
    return floats.astype(np.int64) if are_integers else floats


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

    classes: NDArray[Any]
    codes: Mapping[Any, float]
    kind: LabelKind | None = None
    others: bool = False

    @classmethod
    def of(
        cls, classes: NDArray[Any], *, kind: LabelKind | None = None, others: bool = False
    ) -> LabelCoding:
        """The coding of these classes; dates are always compared as in tables."""
        if classes.dtype.kind == "M":
            kind = "date"
        keys = _keys(classes, kind)
        numbers: Sequence[float] | Floats = [-1.0, 1.0]
        if len(classes) != 2:
            numbers = np.arange(len(classes), dtype=float)
        codes = dict(zip(keys, numbers, strict=True))
        return cls(classes=classes, codes=codes, kind=kind, others=others)

    @property
    def stored(self) -> tuple[float, ...]:
        """The classes as the numbers that a model file has: the labels, or else their codes."""
        numbers = self.codes.values()
        if are_plain_numbers(self.classes):
            numbers = self.classes.tolist()
        return tuple(map(float, numbers))

    def encode(self, labels: NDArray[Any]) -> Floats:
        """Code of each label; a ValueError for a label that is not among the classes."""
        keys = _keys(labels, self.kind)
        if self.others:
            return np.array([self.codes.get(key, -1.0) for key in keys])
        try:
            return np.fromiter(map(self.codes.__getitem__, keys), np.float64, len(keys))
        except KeyError as error:
            problem = f"y has labels that are not among the classes {self.classes.tolist()!r}"
            raise ValueError(f"{problem}: {error.args[0]!r}") from None

    def numbers(self, encoded: Floats) -> Integers:
        """Index in `classes` of each code."""
        if len(self.classes) == 2:
            return (encoded > 0).astype(np.int64)
        return encoded.astype(np.int64)

    def has_classes(self, classes: Any) -> bool:
        """Whether these are all classes, in any order."""
        given = _keys(np.asarray(classes), self.kind)
        return set(given) == self.codes.keys()


def _keys(labels: NDArray[Any], kind: LabelKind | None) -> list[Any]:
    """What labels are compared by: themselves, or their spelling in tables."""
    if kind is None:
        found: list[Any] = labels.tolist()
        return found
    texts = label_texts(labels)
    return [label_key(text, kind) or text for text in texts]
