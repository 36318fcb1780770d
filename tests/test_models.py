"""Saved models: every learner continues as if nothing had happened; what is damaged is refused."""

from __future__ import annotations

import copy
import random
import struct
import subprocess
import sys
import tracemalloc
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ahpatron_cli.core import KERNELS, REGISTRY, Learner, Player, choice, integer, registry
from ahpatron_cli.core.rows import Rows, sliced
from ahpatron_cli.core.state import Stateful, StateReader
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.model_file import load_model, to_bytes
from ahpatron_cli.npz import is_archive
from support.models import (
    MODEL,
    ROUNDS,
    STREAM,
    as_model,
    batch,
    changed,
    class_labels,
    contents,
    npy,
    player,
    player_of,
    rewritten,
    saved,
)
from support.streams import compress

ROUNDING = {"rtol": 1e-7, "atol": 1e-9}
NEARLY_SINGULAR = {"krls, near the span": {"rtol": 1e-3, "atol": 1e-4}}
"""K(S,S) has so large a condition number there that rounding grows to this."""
VARIANTS: dict[str, dict[str, Any]] = {
    "ahpatron, 3 classes on one S": {"learner": "ahpatron", "classes": 3, "multiclass": "shared"},
    "ahpatron, 3 classes": {"learner": "ahpatron", "classes": 3},
    "arow, 3 classes on one S": {"learner": "arow", "classes": 3},
    "metron, 3 classes on one S": {"learner": "metron", "classes": 3},
    "metron, 3 classes": {"learner": "metron", "classes": 3, "multiclass": "rest"},
    "metron, S is not full": {"learner": "metron", "budget": 400},
    "skegd, 3 classes": {"learner": "skegd", "classes": 3},
    "bsgd, project": {"learner": "bsgd", "maintenance": "project"},
    "bsgd, merge": {"learner": "bsgd", "maintenance": "merge"},
    "krls, near the span": {"learner": "krls", "tolerance": 9e-5},
    "projectron, near the span": {"learner": "projectron", "tolerance": 1e-3},
    "arow, S is not full": {"learner": "arow", "budget": 400},
    "pomdr, S is not full": {"learner": "pomdr", "budget": 1000},
    "nogd before its switch": {"learner": "nogd", "budget": 400},
    "skegd before its switch": {"learner": "skegd", "budget": 400},
    "ahpatron, polynomial": {"learner": "ahpatron", "kernel": KERNELS["polynomial"]()},
    "arow, linear": {"learner": "arow", "kernel": KERNELS["linear"]()},
    "arow, cautious": {"learner": "arow", "caution": 0.5},
}
EVERY = {name: {"learner": name} for name in REGISTRY} | VARIANTS


# A pass that is cut -------------------------------------------------------------------------------


def resumed(path: Path, one: Player) -> Player:
    """The player that continues from the file of `one`."""
    labels = (-1.0, 1.0) if one.classes == 2 else tuple(map(float, range(one.classes)))
    path.write_bytes(to_bytes(as_model(one, labels)))
    return player_of(path).player


def counts(one: Player) -> list[float]:
    found = {**vars(one.tally), **one.statistics(), "seconds": None}
    return [number for value in found.values() if value is not None for number in np.ravel(value)]


@pytest.mark.parametrize(
    ("case", "form"),
    [*((case, "dense") for case in EVERY), *((case, "sparse") for case in REGISTRY)],
)
def test_a_pass_that_is_cut_continues(tmp_path: Path, case: str, form: str) -> None:
    """With the same bits after a multiple of 64 rounds, elsewhere up to rounding."""
    rows: Rows = STREAM.X if form == "dense" else compress(STREAM.X)
    whole = player(**EVERY[case])
    labels = STREAM.y if whole.classes == 2 else class_labels(whole.classes)
    wanted = whole.feed(rows, labels)
    rng = random.Random(case)
    for cut in (64 * rng.randrange(1, ROUNDS // 64), rng.randrange(1, ROUNDS)):
        first = player(**EVERY[case])
        scores = [first.feed(sliced(rows, slice(0, cut)), labels[:cut])]
        second = resumed(tmp_path / "m.npz", first)
        scores.append(second.feed(sliced(rows, slice(cut, ROUNDS)), labels[cut:]))
        if cut % 64 == 0:
            assert np.concatenate(scores).tobytes() == wanted.tobytes(), cut
            assert second.f.norm == whole.f.norm
            assert counts(second) == counts(whole)
        else:
            close = NEARLY_SINGULAR.get(case, ROUNDING)
            np.testing.assert_allclose(np.concatenate(scores), wanted, **close)
            np.testing.assert_allclose(second.f.norm, whole.f.norm, **close)
            np.testing.assert_allclose(counts(second), counts(whole), **ROUNDING)


@pytest.mark.parametrize("case", EVERY)
def test_a_successor_has_all_that_its_constructor_set(case: str) -> None:
    """An f that is created from its state, as if an update had replaced f, continues like f."""
    labels = STREAM.y if EVERY[case].get("classes", 2) == 2 else class_labels(3)
    whole = player(**EVERY[case])
    again = player(**EVERY[case])
    for one in (whole, again):
        one.feed(STREAM.X[:192], labels[:192])
    for loop in again.loops:
        state = {"f": copy.deepcopy(loop.f.state_dict())}
        context = {"kernel": again.kernel, "rng": loop.learner.rng}
        loop.f = StateReader(state, context).value("f", kinds=(type(loop.f),))
    expected = whole.feed(STREAM.X[192:], labels[192:])
    np.testing.assert_array_equal(again.feed(STREAM.X[192:], labels[192:]), expected)


# Hostile files ------------------------------------------------------------------------------------


def refusal(path: Path, content: bytes) -> UserError:
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        player_of(path)
    assert refused.value.code == ExitCode.BAD_DATA
    assert refused.value.place is not None
    assert refused.value.place.path == str(path)
    return refused.value


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("/tmp/ahpatron-was-here"),)  # type: ignore[return-value]  # hostile


PICKLE = npy(np.array([Bomb()], dtype=object), allow_pickle=True)
HUGE = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
HUGE += b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,), }".ljust(117) + b"\n"
F = "state.loops.0.f."


def reheaded(content: bytes, name: str, old: bytes, new: bytes) -> bytes:
    """The same numbers with another head."""
    header = npy(contents(content)[1][name])
    assert old in header
    return changed(content, {f"{name}.npy": header.replace(old, new, 1)})


ARCHIVES: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda c: b"",
    "not an archive": lambda c: b"+1 1:2\n" * 100,
    "cut in half": lambda c: c[: len(c) // 2],
    "cut by one byte": lambda c: c[:-1],
    "an archive of nothing": lambda c: b"PK\x05\x06" + bytes(18),
    "no header": lambda c: changed(c, {"header.npy": None}),
    "a pickle for a header": lambda c: changed(c, {"header.npy": PICKLE}),
    "a pickle for coefficients": lambda c: changed(c, {f"{F}a.npy": PICKLE}),
    "a header without a head": lambda c: changed(c, {"header.npy": b"{}"}),
    "a header that is no object": lambda c: changed(c, {"header.npy": npy(text_array(b"[1, 2]"))}),
    "a header that is no JSON": lambda c: changed(c, {"header.npy": npy(text_array(b"{'kind'}"))}),
    "a header that is no UTF-8": lambda c: changed(
        c, {"header.npy": npy(text_array(b'{"kind":"\xff\xfe"}'))}
    ),
    "an entry too many": lambda c: changed(c, {"more.npy": npy(np.zeros(1))}),
    "an entry too few": lambda c: changed(c, {f"{F}gram.npy": None}),
    "packed entries": lambda c: changed(c, {}, zipfile.ZIP_DEFLATED),
    "a bomb": lambda c: changed(c, {f"{F}gram.npy": bytes(10**8)}, zipfile.ZIP_DEFLATED),
    "32 GB in a head": lambda c: changed(c, {f"{F}a.npy": HUGE + bytes(8)}),
    "another shape": lambda c: changed(c, {f"{F}a.npy": npy(np.zeros(3))}),
    "another type": lambda c: changed(c, {f"{F}a.npy": npy(np.zeros(40, dtype=np.float32))}),
    "a head of another type": lambda c: reheaded(c, f"{F}a", b"<f8", b"<i8"),
    "a head of another order": lambda c: reheaded(c, f"{F}gram", b"False", b"True "),
    "column by column": lambda c: changed(
        c, {f"{F}gram.npy": npy(np.asfortranarray(np.ones((3, 3))))}
    ),
    "a number and an array of one name": lambda c: rewritten(
        c, lambda header, arrays: header["state"].update({f"{F}a": 1.0}), signed=True
    ),
    "a long number": lambda c: with_changes(c, {f"{TALLY}rounds": int("9" * 4000)}),
    "deep nesting": lambda c: changed(c, {"header.npy": npy(text_array(b"[" * 100_000))}),
    "deep nesting in a header": lambda c: changed(
        c, {"header.npy": npy(text_array(b'{"kind":' + b"[" * 100_000))}
    ),
}


def text_array(text: bytes) -> np.ndarray:
    return np.frombuffer(text, dtype=np.uint8)


def with_changes(content: bytes, changes: dict[str, Any], signed: bool = True) -> bytes:
    """The model with other values.

    Places are fields of the header ("params.budget" is in a field), numbers or arrays of the state,
    or the whole state. `...` removes a value; a function is applied to the array that is there.
    """

    def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        for place, value in changes.items():
            field, _, key = place.partition(".")
            if place == "state":
                header["state"] = value
                arrays.clear()
            elif field != "state":
                (header[field] if key else header)[key or field] = value
            elif callable(value):
                arrays[place] = value(arrays[place].copy())
            else:
                header["state"].pop(place, None)
                arrays.pop(place, None)
                if isinstance(value, np.ndarray):
                    arrays[place] = value
                elif value is not ...:
                    header["state"][place] = value

    return rewritten(content, change, signed)


def first(value: float) -> Callable[[np.ndarray], np.ndarray]:
    """Another first number in an array."""

    def change(array: np.ndarray) -> np.ndarray:
        array.reshape(-1)[0] = value
        return array

    return change


TALLY = "state.tally."
RANDOM = "state.loops.0.random.state."
COLUMNS = [{"name": str(i), "kind": "number"} for i in range(99)]
OTHER_VALUES: dict[str, tuple[Any, ...]] = {
    "kind": ("a model",),
    "format": (3,),
    "algorithm": (0,),
    "kernel": ("cubic",),
    "kernel_params.sigma": (-1.0, "wide"),
    "kernel_params.more": (1,),
    "params.more": (1,),
    "params.budget": (2, "many", []),  # |S| is 40
    "params.epsilon": (10**400, "inf"),
    "more": (1,),
    "labels": (
        [1.0, 1.0],
        ["a", "b"],
        [1.0],
        [],
        [1.0, None],
        [1.0, 2.0, 3.0],
        [3.0, 2.0, 1.0],
        [*map(float, range(100_000))],
    ),
    "costs": ([1.0, 1.0, 1.0], [1.0, 0.0]),
    "scale": ("minmax", "log"),  # without its numbers; unknown
    "schema": (
        {"columns": ["a"]},
        {"columns": COLUMNS, "label": "y", "labels": {"a": -1.0, "b": 1.0}},
        {"columns": COLUMNS[:1], "label": "y", "labels": {"a": -1.0}, "label_kind": "number"},
        {"columns": COLUMNS[:1], "label": "y", "labels": {"1": -1.0}, "label_kind": "boolean"},
        {"columns": COLUMNS[:1], "label": "y", "labels": {"a": -1.0}, "label_kind": "words"},
        {"columns": [{**COLUMNS[0], "shares": [1.0]}], "label": "y", "labels": {}},
    ),
    "seed": (-1,),
    "rounds": (-1,),
    "features": (2**40,),
    "width": ("wide",),
    "state": ({}, {"state": 3}, {"state": "x"}, {"": 3}),
    f"{TALLY}mistakes": (100_000,),  # no entry: they follow from the confusion matrix
    f"{TALLY}near_ties": (-1, 1.0),
    f"{TALLY}rounds": (int("9" * 50), "many", [1]),
    f"{RANDOM}state": ("x", -1),
    f"{RANDOM}inc": (2**128, ...),
    "state.loops.0.f": ("x",),
    "state.loops.0.learner.class": ("AhpatronPlus",),
    "state.loops.0.learner.update_below": ("nan", 1, ...),
    "state.loops.0.learner.next_call": (-1, 2.5, "nan"),
    "state.centre": (np.zeros(2), None),
    "state.sparse": (1, None),
    f"{F}more": (None, np.zeros(3)),
    f"{F}square.more": (1.0,),
    f"{F}class": (
        "Nothing",
        "Path",
        3,
        ...,
        "DensePoints",
        "FourierFeatures",
        "Linear",
        "SupportExpansion",
        "Hypothesis",
        "Perceptron",
    ),
    f"{F}a": (
        first(np.nan),
        np.zeros(3),
        np.zeros((40, 3)),
        np.zeros(40, dtype=np.int64),
        1.0,
    ),
    f"{F}gram": (np.ones((3, 3)), None),
    f"{F}points.class": ("Expansion", "Points", "SparsePoints"),
    f"{F}points.rows": (first(np.inf), np.zeros((30, 7)), np.zeros((30, 1)), np.ones(30)),
    f"{F}points.largest": (-1.0,),  # no entry: it follows from the rows
}
POMDR = {"learner": "pomdr"}
FOGD = {"learner": "fogd"}
KRLS = {"learner": "krls"}
SPARSE = {"learner": "rbp", "sparse": True}
CLASSES = {"learner": "rbp", "classes": 3}
SHARED = {"learner": "ahpatron", "classes": 3, "multiclass": "shared"}
OTHERS: list[tuple[dict[str, Any], dict[str, Any]]] = [
    *(({}, {place: value}) for place, values in OTHER_VALUES.items() for value in values),
    ({}, {"algorithm": 0, "version": ["x"] * 1000}),
    ({}, {"learner": "perceptron", "params": {}}),
    ({}, {"learner": "rbp", "params": {"budget": 40}}),
    (POMDR, {f"{F}memory": 3, "params.memory": 3}),  # more rounds are kept
    (POMDR, {f"{F}memory": 20}),
    (POMDR, {f"{F}labels": np.ones(3)}),
    (POMDR, {f"{F}recent.rows": np.zeros((0, 6))}),
    (POMDR, {f"{F}recent.class": "Symmetric", f"{F}labels": np.zeros(0)}),
    (FOGD, {f"{F}features.class": "Features", f"{F}features.count": ..., f"{F}features.seed": ...}),
    (FOGD, {f"{F}features": 3}),
    (FOGD, {f"{F}features.count": 2**40}),
    ({"learner": "skegd"}, {f"{F}features.class": "KernelFeatures"}),
    (SHARED, {f"{F}a": np.zeros((40, 2))}),
    ({"learner": "arow", "classes": 3}, {f"{TALLY}confusion": np.zeros((2, 2), dtype=np.int64)}),
    ({"learner": "arow"}, {f"{F}head.C.A": np.eye(3), f"{F}head.C.V": np.zeros((0, 3))}),
    ({"learner": "metron"}, {f"{F}tracker.C.A": np.eye(3), f"{F}tracker.C.V": np.zeros((0, 3))}),
    *(
        (CLASSES, {"labels": labels})
        for labels in ([0.0, 1.0], [0.0, 1.0, 2.0, 3.0], [2.0, 1.0, 0.0])
    ),
    (SPARSE, {f"{F}points.indptr": first(1)}),
    *((SPARSE, {f"{F}points.columns": first(column)}) for column in (100, -1, 3)),
    (SPARSE, {f"{F}points.width": -1}),
    (SPARSE, {"state.sparse": 0, "state.centre": np.zeros(4)}),
    *(({"learner": "metron"}, {f"{F}metric.columns": first(column)}) for column in (-1, 1)),
    (KRLS, {f"{F}P.A": np.zeros((3, 2))}),
    (KRLS, {f"{F}P.class": "Expansion"}),
]


@pytest.mark.parametrize("kind", ARCHIVES)
def test_damaged_archives_are_refused_in_little_memory(tmp_path: Path, kind: str) -> None:
    content = ARCHIVES[kind](MODEL)
    tracemalloc.start()
    try:
        refusal(tmp_path / "m.npz", content)
        assert tracemalloc.get_traced_memory()[1] < 50e6
    finally:
        tracemalloc.stop()
    assert not Path("/tmp/ahpatron-was-here").exists()


def changed_to(change: dict[str, Any]) -> str:
    """The place and the value of a change, as the name of its test."""
    return " ".join(f"{place} {value!r:.30}" for place, value in change.items())


@pytest.mark.parametrize(("case", "changes"), OTHERS, ids=changed_to)
def test_models_with_other_content_are_refused(
    tmp_path: Path, case: dict[str, Any], changes: dict[str, Any]
) -> None:
    for signed in (False, True):
        refusal(tmp_path / "m.npz", with_changes(saved(**case), changes, signed))


def test_the_model_itself_is_not_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    same = (changed(MODEL, {}), *(with_changes(MODEL, {}, signed) for signed in (False, True)))
    for content in (MODEL, *same):
        path.write_bytes(content)
        assert is_archive(str(path))
        assert player_of(path).rounds == 333
    path.write_bytes(with_changes(MODEL, {"data": "b.svm"}))
    assert load_model(str(path)).header.data == "b.svm"


@pytest.mark.parametrize("learner", ["nobody", "none.py:Nobody", "../../evil.py:Learner"])
def test_a_learner_that_is_not_here_is_an_error_of_usage(tmp_path: Path, learner: str) -> None:
    """Whatever a model names, nothing is imported."""
    path = tmp_path / "m.npz"
    path.write_bytes(with_changes(MODEL, {"learner": learner}))
    with pytest.raises(UserError) as refused:
        player_of(path)
    assert refused.value.code == ExitCode.USAGE
    assert "-l" in str(refused.value.hint)


def test_a_model_of_an_earlier_version_is_refused_with_a_remedy(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    meta = npy(text_array(b'{"kind": "ahpatron model", "format": 1}'))
    older = changed(MODEL, {"header.npy": None, "meta.npy": meta})
    of_1_0 = Path(__file__).with_name("model-1.0.npz").read_bytes()
    newer = with_changes(MODEL, {"format": 3, "version": "9.0"})
    for content in (older, of_1_0, newer):
        assert "--save" in str(refusal(path, content).hint)
    assert "1.0.0" in refusal(path, of_1_0).problem
    assert "9.0" in refusal(path, newer).problem


def test_flipped_bits_never_give_another_model(tmp_path: Path) -> None:
    path = tmp_path / "m.npz"
    rng = random.Random(4)
    refused = 0
    for _ in range(300):
        flipped = bytearray(MODEL)
        flipped[rng.randrange(len(MODEL))] ^= 1 << rng.randrange(8)
        path.write_bytes(flipped)
        try:
            model = load_model(str(path))
        except UserError:
            refused += 1
        else:  # a byte without meaning, such as a date
            assert to_bytes(model) == MODEL
    assert refused > 250


# Mutations ----------------------------------------------------------------------------------------

WRONG_NUMBERS: tuple[Any, ...] = (
    "x",
    -1,
    -1.0,
    None,
    0,
    "nan",
    1e308,
    "",
    0.0,
    2**60,
    -(2**40),
    -1e308,
    "inf",
    1e-300,
    ...,
)


def wrong_arrays(array: np.ndarray) -> Iterator[Any]:
    """Arrays of another shape or type, with values that are not finite or much too large, …"""
    other = np.int64 if array.dtype == np.float64 else np.float64
    yield from (array[:-1], array[..., None], array.ravel()[:-1], np.zeros_like(array[:0]))
    yield from (np.concatenate((array, array[-1:])), np.zeros(array.shape, other))
    yield from (np.zeros(array.shape, np.int32), np.zeros_like(array), None, 1.0, "x", ...)
    if array.dtype == np.float64 and array.size:
        for value in (np.nan, 1e300, -np.inf, -1e300):
            wrong = array.copy()
            wrong.reshape(-1)[-1] = value
            yield wrong


def mutations(content: bytes) -> Iterator[tuple[str, Any]]:
    """Paths in the state, and something that is wrong, or at least another one, in each place."""
    header, arrays = contents(content)
    for path, value in header["state"].items():
        wrong = (*Stateful.classes_by_name, 3) if path.endswith(".class") else WRONG_NUMBERS
        yield from ((path, one) for one in wrong if one != value)
    for path, array in arrays.items():
        yield from ((path, one) for one in wrong_arrays(array))


def survives(path: Path, content: bytes, case: dict[str, Any]) -> str | None:
    """The error with which a model fails; None if it is refused, or continues for 100 rounds."""
    path.write_bytes(content)
    try:
        one = player_of(path)
        classes = case.get("classes", 2)
        sparse = case.get("sparse", False)
        one.score(batch(0, 10, classes, sparse))
        one.feed(batch(333, 433, classes, sparse))
        one.result()
        one.player.state_dict()
    except UserError as error:
        return None if error.code == ExitCode.BAD_DATA else f"exit code {error.code}"
    except (ArithmeticError, RuntimeWarning):
        return None  # a matrix that only a theorem could refuse; f is not finite, and that is said
    except Exception as error:  # what this test is about
        return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(
    ("case", "share"),
    [
        *((case, 10) for case in ("arow", "fogd", "pomdr", "metron", "bsgd, merge")),
        ("skegd, 3 classes", 30),
        *(pytest.param(case, 1, marks=pytest.mark.slow) for case in EVERY),
    ],
)
def test_a_wrong_value_is_refused_or_does_no_harm(tmp_path: Path, case: str, share: int) -> None:
    """In any place, or every so many of them; not what only a theorem could refuse."""
    path = tmp_path / "m.npz"
    found = []
    content = saved(**EVERY[case])
    assert survives(path, content, EVERY[case]) is None
    for place, value in [*mutations(content)][::share]:
        problem = survives(path, with_changes(content, {place: value}), EVERY[case])
        if problem:
            shown = value.shape if isinstance(value, np.ndarray) else value
            found.append(f"{place} = {shown!r}: {problem}")
    assert found == []


@pytest.mark.parametrize("part", ["params", "kernel_params"])
def test_a_parameter_that_is_newer_than_a_model_has_its_default(tmp_path: Path, part: str) -> None:
    """Here `ridge` and σ: a model of a version without them is complete."""
    name = {"params": "ridge", "kernel_params": "sigma"}[part]

    def older(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        del header[part][name]

    path = tmp_path / "m.npz"
    path.write_bytes(MODEL)
    whole = player_of(path)
    path.write_bytes(rewritten(MODEL, older, signed=True))
    again = player_of(path)
    assert (
        getattr(load_model(str(path)).header, part)[name] == {"ridge": 0.0005, "sigma": 1.0}[name]
    )
    assert again.player.learner.params() == whole.player.learner.params()
    expected = whole.feed(batch(333, 600)).scores
    np.testing.assert_array_equal(again.feed(batch(333, 600)).scores, expected)


def test_dense_rows_of_a_model_are_as_wide_as_it_was_trained(tmp_path: Path) -> None:
    """A width that needs more memory than the file itself is not believed."""

    def wider(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        header["width"] = header["features"] = 2**31

    said = refusal(tmp_path / "m.npz", rewritten(MODEL, wider, signed=True))
    assert "wider" in said.problem


@dataclass
class Worded(Learner):
    """A learner with words that look like numbers, and updates at changing margins."""

    name = title = "worded"
    centre: str = choice("", "how rows are centred", "mean", "nan", "inf", "'nan")
    required: int = integer("n", "a parameter without a default", at_least=1)
    kept = ("note",)
    note = ""
    update_below = 1.0

    def update(self, f: Any, y: float, margin: float) -> None:
        f.add(y)
        self.note = self.centre
        self.update_below *= 0.9
        self.next_call = self.round + 3


@pytest.mark.parametrize("word", ["mean", "nan", "inf", "'nan"])
def test_words_required_parameters_and_thresholds_of_own_learners_are_saved(
    tmp_path: Path, word: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The resumed pass has them all, and makes the same predictions."""
    monkeypatch.setitem(REGISTRY._kinds, "worded", Worded)  # type: ignore[attr-defined]
    monkeypatch.setitem(registry._sources, Worded, "test")
    learner = Worded(centre=word, required=3)
    whole = Player(learner, KERNELS["gaussian"]())
    expected = whole.feed(STREAM.X, STREAM.y)
    first = Player(learner, KERNELS["gaussian"]())
    first.feed(STREAM.X[:128], STREAM.y[:128])
    second = resumed(tmp_path / "m.npz", first)
    assert second.learner.params() == {"centre": word, "required": 3}
    assert second.learner.note == word  # type: ignore[attr-defined]
    np.testing.assert_array_equal(second.feed(STREAM.X[128:], STREAM.y[128:]), expected[128:])
    assert second.learner.update_below == whole.learner.update_below


REPLACING = """
import os, sys
path, *files = sys.argv[1:]
while True:
    for file in files:
        os.link(file, path + ".new")
        os.replace(path + ".new", path)
"""


def test_a_model_can_be_loaded_while_it_is_replaced(tmp_path: Path) -> None:
    """Each time it is one of the two: sizes and content are read from one opened file."""
    path = tmp_path / "m.npz"
    files = [tmp_path / "small.npz", tmp_path / "large.npz"]
    files[0].write_bytes(saved(rounds=40))
    files[1].write_bytes(saved(rounds=333, budget=200))
    path.write_bytes(files[0].read_bytes())
    with subprocess.Popen([sys.executable, "-c", REPLACING, path, *files]) as writer:
        try:
            rounds = {load_model(str(path)).header.rounds for _ in range(500)}
        finally:
            writer.kill()
    assert rounds == {40, 333}
