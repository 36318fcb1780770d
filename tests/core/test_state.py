"""State: each kind of attribute is saved and restored; what does not fit is refused by name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np
import pytest

from ahpatron_cli.core import StateError
from ahpatron_cli.core.state import Stateful, StateReader

FORMS: dict[str, Any] = {
    "count": int,
    "level": float,
    "best": "any",
    "capacity": "fixed",
    "table": "ij",
    "sums": "j",
    "rounds": "#i",
    "columns": "%i",
    "_hidden": float,
}
"""A form of each kind. Letters are dimensions: `table` has as many rows as `rounds`."""


class Plain(Stateful):
    """An object with an attribute of each kind."""

    state_fields: ClassVar[Any] = FORMS

    def __init__(self) -> None:
        self.count = 3
        self.level = -0.5
        self.best = math.inf
        self.capacity = 8
        self.table = np.arange(6.0).reshape(2, 3)
        self.sums = np.array([1.0, 2.0, 3.0])
        self.rounds = np.array([4, 2**40])
        self.columns = np.array([7, 9], dtype=np.int32)
        self._hidden = 0.1


def reader(state: dict[str, Any], **context: Any) -> StateReader:
    return StateReader(state, context)


def loaded(state: dict[str, Any]) -> Plain:
    """An object that was made as usual and then restored from this state."""
    with reader({"it": state}) as content:
        again: Plain = content.value("it", Plain(), kinds=(Plain,))
    return again


# Saving -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name.lstrip("_") for name in FORMS])
def test_an_attribute_of_each_kind_is_restored(name: str) -> None:
    saved = Plain().state_dict()
    np.testing.assert_array_equal(loaded(saved).state_dict()[name], saved[name])


def test_the_state_has_the_name_of_the_class() -> None:
    class_name = Plain().state_dict()["class"]
    assert Stateful.classes_by_name[class_name] is Plain


def test_classes_of_others_are_named_with_their_module() -> None:
    assert Plain.state_name == f"{Plain.__module__}.Plain"


def test_underscores_before_names_are_not_saved() -> None:
    assert "hidden" in Plain().state_dict()


def test_what_is_restored_shares_no_memory_with_the_state() -> None:
    saved = Plain().state_dict()
    again = loaded(saved)
    saved["table"][0, 0] = 77.0
    assert again.table[0, 0] == 0.0


def test_numbers_of_numpy_are_saved_as_those_of_python() -> None:
    one = Plain()
    one.level = np.float64(0.25)
    assert type(one.state_dict()["level"]) is float


@pytest.mark.parametrize(
    "value",
    [[1.0], {"a": 1}, np.ones((2, 3), np.float32), 1j],
    ids=["list", "dict", "float32", "complex"],
)
def test_what_cannot_be_saved_is_named(value: Any) -> None:
    one = Plain()
    one.table = value
    with pytest.raises(StateError, match=r"Plain\.table cannot be saved"):
        one.state_dict()


# Refusals -----------------------------------------------------------------------------------------

WRONG: dict[str, tuple[str, Any]] = {
    "a negative count": ("count", -1),
    "a count with a fraction": ("count", 1.0),
    "a count that is a truth value": ("count", True),
    "a count that no int64 holds": ("count", 2**63),
    "text in place of a count": ("count", "3"),
    "a number that is not finite": ("level", math.nan),
    "an integer in place of a float": ("level", 1),
    "None in place of a number": ("level", None),
    "an array in place of a number": ("level", np.ones(2)),
    "text where any number will do": ("best", "inf"),
    "another capacity": ("capacity", 9),
    "a capacity without end": ("capacity", math.inf),
    "a list in place of an array": ("table", [[0.0]]),
    "an array with NaN": ("table", np.full((2, 3), math.nan)),
    "an array of other numbers": ("table", np.ones((2, 3), dtype=np.int64)),
    "an array with a dimension too few": ("table", np.ones(2)),
    "an array with a dimension too many": ("table", np.ones((2, 3, 1))),
    "rows that are not as many as elsewhere": ("table", np.ones((4, 3))),
    "columns that are not as many as elsewhere": ("sums", np.ones(2)),
    "integers of the wrong size": ("rounds", np.array([1, 2], dtype=np.int32)),
    "integers of another wrong size": ("columns", np.array([1, 2])),
}
"""What is wrong, the attribute, and its value in the state."""


@pytest.mark.parametrize("wrong", WRONG)
def test_a_value_that_does_not_fit_is_refused(wrong: str) -> None:
    name, value = WRONG[wrong]
    with pytest.raises(StateError):
        loaded({**Plain().state_dict(), name: value})


def test_a_refusal_names_the_way_to_the_entry() -> None:
    with pytest.raises(StateError, match=r"^it\.count has an invalid value$"):
        loaded({**Plain().state_dict(), "count": -1})


@pytest.mark.parametrize("name", ["class", "count", "table"])
def test_a_missing_entry_is_refused(name: str) -> None:
    state = Plain().state_dict()
    del state[name]
    with pytest.raises(StateError, match=rf"^it\.{name} is missing$"):
        loaded(state)


def test_an_entry_that_nobody_reads_is_refused() -> None:
    with pytest.raises(StateError, match=r"^it\.surplus is not known$"):
        loaded({**Plain().state_dict(), "surplus": 1})


def test_an_error_inside_is_not_hidden_by_entries_that_were_not_read() -> None:
    with pytest.raises(ZeroDivisionError), reader({"unread": 1}):
        raise ZeroDivisionError


# Arrays and None ----------------------------------------------------------------------------------


class Optional(Stateful):
    """An attribute that may be None, and one with further dimensions."""

    state_fields: ClassVar[Any] = {"weights": "i?", "by_class": "i..."}

    def __init__(self, weights: Any, by_class: Any) -> None:
        self.weights = weights
        self.by_class = by_class


def load_into(target: Stateful, state: dict[str, Any]) -> None:
    with reader({"it": state}) as content:
        content.value("it", target)


def test_none_is_restored_where_the_attribute_is_none() -> None:
    saved = Optional(None, np.ones(4)).state_dict()
    target = Optional(None, np.zeros(4))
    load_into(target, saved)
    assert target.weights is None


@pytest.mark.parametrize(
    ("saved", "now"),
    [(None, np.ones(4)), (np.ones(4), None)],
    ids=["None for an array", "an array for None"],
)
def test_an_attribute_does_not_become_none_nor_cease_to_be_it(saved: Any, now: Any) -> None:
    state = Optional(saved, np.ones(4)).state_dict()
    with pytest.raises(StateError, match=r"it\.weights has an invalid value"):
        load_into(Optional(now, np.zeros(4)), state)


def test_further_dimensions_must_be_those_of_now() -> None:
    three_classes = Optional(None, np.ones((4, 3))).state_dict()
    load_into(Optional(None, np.zeros((4, 3))), three_classes)
    with pytest.raises(StateError, match=r"it\.by_class has an invalid value"):
        load_into(Optional(None, np.zeros((4, 2))), three_classes)


# Objects ------------------------------------------------------------------------------------------


class Base(Stateful, ABC):
    """What `Owner` may have."""

    kernel: Any

    @abstractmethod
    def value(self) -> float: ...


class First(Base):
    state_fields: ClassVar[Any] = {"count": int}

    def __init__(self, count: int) -> None:
        self.count = count

    def value(self) -> float:
        return float(self.count)


class Second(First):
    """What an update may put in the place of `First`."""


class Owner(Stateful):
    state_fields: ClassVar[Any] = {"part": Base}

    def __init__(self, part: Any) -> None:
        self.part = part


class Stateless(Stateful):
    """Has nothing to save."""


def test_an_object_of_the_same_class_is_restored_in_place() -> None:
    part = First(1)
    owner = Owner(part)
    load_into(owner, Owner(First(5)).state_dict())
    assert owner.part is part
    assert part.count == 5


def test_an_object_that_was_replaced_has_the_class_of_the_state() -> None:
    owner = Owner(First(1))
    load_into(owner, Owner(Second(5)).state_dict())
    assert type(owner.part) is Second
    assert owner.part.count == 5


def test_an_object_that_is_created_knows_the_context() -> None:
    state = {"it": Owner(Second(5)).state_dict()}
    owner = reader(state, kernel="the kernel").value("it", kinds=(Owner,))
    assert owner.part.kernel == "the kernel"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (Plain.state_name, "is of another class"),
        ("pathlib.Path", "is of another class"),
        (Base.state_name, "is of a class without objects"),
    ],
    ids=["a class of another kind", "a class without a state", "an abstract class"],
)
def test_only_objects_of_the_declared_class_are_created(name: str, said: str) -> None:
    state = Owner(First(1)).state_dict()
    state["part"]["class"] = name
    with pytest.raises(StateError, match=rf"^it\.part {said}$"):
        load_into(Owner(None), state)


def test_an_object_cannot_be_restored_from_a_number() -> None:
    with pytest.raises(StateError, match=r"^it\.part has an invalid value$"):
        load_into(Owner(First(1)), {**Owner(First(1)).state_dict(), "part": 4})


def test_a_group_cannot_be_read_from_a_number() -> None:
    with pytest.raises(StateError, match=r"^part must be a group of values$"):
        reader({"part": 4}).part("part")


def test_an_object_without_a_state_is_not_restored() -> None:
    with pytest.raises(StateError, match=r"^it\.class has no state$"):
        load_into(Stateless(), Stateless().state_dict())
