"""Whatever the bytes: only our own errors escape from the reader and from the three loaders."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ahpatron_cli.data.dataset import Preparation
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.models import ModelOptions, SavedRun
from ahpatron_cli.runner import LearnerSpec, Run
from ahpatron_cli.sweep.results_file import (
    decode,
    encode_trial,
    read_results,
)
from ahpatron_cli.sweep.summary import Outcome
from faults.fuzz_reader import made_up
from faults.reading import check
from support.effort import examples
from support.models import MODEL, changed, contents, npy, player_of, rewritten
from support.trials import stored_trial as trial

TOKENS = st.sampled_from(
    [
        *(b"1", b"-1", b"0", b"2:3", b"1:0.5", b"7:1e-3", b" ", b"\n", b"\t", b"\r\n", b"#", b":"),
        *(b".", b"qid:1", b"nan", b"1e400", b"\0", b"\r", b"\xff\xfe", b"\xef\xbb\xbf"),
        *(b"\x1f\x8b", b"_"),
    ]
)


def refusal(call: Callable[[], object]) -> UserError | None:
    """What it was refused with; any other error is a failure."""
    try:
        call()
    except UserError as error:
        return error
    return None


@given(st.lists(TOKENS, max_size=40).map(b"".join))
@examples(300)
@example(b"1 1:2\n-1 1:3")
def test_texts_of_tokens(text: bytes) -> None:
    check(text)


@given(st.binary(max_size=200))
@examples(200)
def test_texts_of_bytes(text: bytes) -> None:
    check(text)


@given(st.integers(0, 2**64))
@examples(400)
def test_texts_of_the_fuzzer(seed: int) -> None:
    check(made_up(random.Random(seed)))


@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1.0, 1.0]),
            st.dictionaries(
                st.integers(0, 9999), st.floats(allow_nan=False, allow_infinity=False), max_size=8
            ),
        ),
        min_size=1,
        max_size=20,
    )
)
@examples(200)
def test_what_is_written_is_read(rows: list[tuple[float, dict[int, float]]]) -> None:
    """Every double, in the shortest spelling that means it."""
    text = "".join(
        " ".join([repr(label), *(f"{i}:{features[i]!r}" for i in sorted(features))]) + "\n"
        for label, features in rows
    )
    found = check(text.encode())
    wanted = [features[i] for _, features in rows for i in sorted(features)]
    assert repr(found.values) == repr(wanted)  # type: ignore[union-attr]  # a Reading


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a JSON value, as paths."""
    inner = (
        tree.items()
        if isinstance(tree, dict)
        else enumerate(tree)
        if isinstance(tree, list)
        else ()
    )
    return [path, *(place for key, value in inner for place in places(value, (*path, key)))]


def put(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the tree with another value at this place; without it, where that is `...`."""
    if not path:
        return value
    copy = tree.copy()
    if len(path) == 1 and value is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


def signed(content: Any) -> bytes:
    """A line whose checksum fits, whatever it says."""
    body = json.dumps(content)
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return f'{body[:-1]}, "check": "{digest}"}}'.encode()


TRIAL = json.loads(encode_trial(trial(1)))
del TRIAL["check"]


@given(st.sampled_from(places(TRIAL)[1:]), JSON | st.just(...))
@examples(400)
def test_lines_of_results_whose_checksum_fits(place: tuple[Any, ...], value: Any) -> None:
    found = decode(signed(put(TRIAL, place, value)))
    if found is None:
        return
    assert isinstance(found, Outcome)
    for number in (found.run.mistake_rate, found.run.seconds) if found.run else ():
        assert np.isfinite(number)


@given(
    st.binary(max_size=300)
    | st.lists(st.sampled_from(places(TRIAL)), max_size=3).map(repr).map(str.encode)
)
@examples(200)
def test_files_of_results(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    refused = refusal(lambda: read_results(str(path)))
    assert refused is None or refused.code is ExitCode.BAD_DATA
    assert path.read_bytes() == content


META, _ = contents(MODEL)


def with_header(header: Any, signed: bool) -> bytes:
    """The model with this in place of its header."""
    if not isinstance(header, dict):
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        return changed(MODEL, {"header.npy": npy(text)})

    def change(old: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
        old.clear()
        old.update(header)

    return rewritten(MODEL, change, signed)


def loads_or_refuses(path: Path, content: bytes) -> None:
    """As a model and as a checkpoint."""
    path.write_bytes(content)
    refused = refusal(lambda: player_of(path))
    if refused is not None and refused.code is not ExitCode.USAGE:  # USAGE: of another learner
        assert refused.code is ExitCode.BAD_DATA
        assert refused.place is not None
    refused = refusal(lambda: checkpoint_of(path))
    assert refused is None or refused.code in (ExitCode.BAD_DATA, ExitCode.USAGE)


def checkpoint_of(path: Path) -> None:
    saved = SavedRun(ModelOptions(checkpoint=str(path)), lambda text: None)
    saved.prepared(Preparation())
    fresh = Run(LearnerSpec("ahpatron", {"budget": 40}, "gaussian", {}), "a.svm", 5, 0, 600)
    saved.restarted(fresh, "a.svm")


@given(st.sampled_from(places(META)), JSON | st.just(...), st.booleans())
@examples(300)
def test_models_with_another_header(
    tmp_path: Path, place: tuple[Any, ...], value: Any, signed: bool
) -> None:
    header = None if not place and value is ... else put(META, place, value)
    loads_or_refuses(tmp_path / "m.npz", with_header(header, signed))


ARRAYS = sorted(META["arrays"])
SHAPES = st.lists(st.integers(0, 50), max_size=3)


@given(
    st.sampled_from(ARRAYS),
    st.sampled_from(["<f8", "<i8", "<i4", "<f4", "|u1", ">f8"]),
    SHAPES,
    st.sampled_from([0.0, 1.0, -1.0, 1e300, np.nan, np.inf, 5e-324]),
    st.booleans(),
)
@examples(300)
def test_models_with_another_array(
    tmp_path: Path, name: str, dtype: str, shape: list[int], value: float, listed: bool
) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        array = np.full(shape, value).astype(dtype)
    content = changed(MODEL, {f"{name}.npy": npy(array)})
    if listed:

        def change(header: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
            arrays[name] = array

        content = rewritten(MODEL, change, signed=True)
    loads_or_refuses(tmp_path / "m.npz", content)


@given(
    st.lists(st.tuples(st.integers(0, len(MODEL) - 1), st.integers(0, 255)), max_size=4),
    st.integers(0, len(MODEL)),
)
@examples(300)
def test_models_with_other_bytes(
    tmp_path: Path, writes: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(MODEL)
    for place, byte in writes:
        content[place] = byte
    loads_or_refuses(tmp_path / "m.npz", bytes(content[: length if len(writes) % 2 else None]))


@pytest.mark.parametrize("field", [12, 16], ids=["size", "offset"])
@pytest.mark.parametrize("value", [0, 1, len(MODEL), 2**31, 2**32 - 1])
def test_a_table_of_contents_elsewhere(tmp_path: Path, field: int, value: int) -> None:
    """Size and offset of the table stand in the last 22 bytes; some lead before the first byte."""
    content = bytearray(MODEL)
    content[-22 + field : -22 + field + 4] = value.to_bytes(4, "little")
    loads_or_refuses(tmp_path / "m.npz", bytes(content))


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)])
def test_archives_of_nothing(tmp_path: Path, content: bytes) -> None:
    loads_or_refuses(tmp_path / "m.npz", content)
