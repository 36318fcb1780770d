"""Whatever the bytes: only our own errors escape from the reader and from the two loaders."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.sweep.results_file import decode, encode_trial, read_results
from faults.fuzz_reader import made_up
from faults.reading import check
from support.effort import examples
from support.models import MODEL, changed, contents, npy, player_of, rewritten
from support.trials import stored_trial as trial

TOKENS = (
    *(b"1", b"-1", b"0", b"2:3", b"1:0.5", b"7:1e-3", b" ", b"\n", b"\t", b"\r\n", b"#", b":"),
    *(b".", b"qid:1", b"nan", b"1e400", b"\0", b"\r", b"\xff\xfe", b"\xef\xbb\xbf"),
    *(b"\x1f\x8b", b"_"),
)


def refusal(call: Callable[..., object], *arguments: Any) -> UserError | None:
    """Why a call was refused; any other error is a failure."""
    try:
        call(*arguments)
    except UserError as error:
        return error
    return None


@given(
    st.lists(st.sampled_from(TOKENS), max_size=40).map(b"".join)
    | st.binary(max_size=200)
    | st.integers(0, 2**64).map(lambda seed: made_up(random.Random(seed)))
)
@examples(900)
@example(b"1 1:2\n-1 1:3")
def test_texts_are_read_as_defined_or_refused(text: bytes) -> None:
    check(text)


ROW = st.dictionaries(
    st.integers(0, 9999), st.floats(allow_nan=False, allow_infinity=False), max_size=8
)


@given(st.lists(st.tuples(st.sampled_from([-1.0, 1.0]), ROW), min_size=1, max_size=20))
@examples(200)
def test_what_is_written_is_read(rows: list[tuple[float, dict[int, float]]]) -> None:
    """Every double, in the shortest spelling that means it."""
    text = "".join(
        " ".join([repr(label), *(f"{i}:{row[i]!r}" for i in sorted(row))]) + "\n"
        for label, row in rows
    )
    found = check(text.encode())
    wanted = [row[i] for _, row in rows for i in sorted(row)]
    assert repr(found.values) == repr(wanted)  # type: ignore[union-attr]  # a Reading


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
GONE = st.just(...)


def places(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places in a JSON value, as paths."""
    pairs = tree.items() if isinstance(tree, dict) else ()
    pairs = enumerate(tree) if isinstance(tree, list) else pairs
    return [path, *(place for key, value in pairs for place in places(value, (*path, key)))]


def put(tree: Any, path: tuple[Any, ...], value: Any) -> Any:
    """A copy of the tree with another value at this place; without the place, if that is `...`."""
    if not path:
        return value
    copy = tree.copy()
    if len(path) == 1 and value is ...:
        del copy[path[0]]
    else:
        copy[path[0]] = put(tree[path[0]], path[1:], value)
    return copy


TRIAL = json.loads(encode_trial(trial(1)))
del TRIAL["check"]


@given(st.sampled_from(places(TRIAL)[1:]), JSON | GONE)
@examples(400)
def test_lines_of_results_whose_checksum_fits(place: tuple[Any, ...], value: Any) -> None:
    body = json.dumps(put(TRIAL, place, value))
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    found = decode(f'{body[:-1]}, "check": "{digest}"}}'.encode())
    if found is not None and found.run:
        assert np.isfinite([found.run.counts.mistake_rate, found.run.seconds]).all()


@given(st.binary(max_size=300) | JSON.map(json.dumps).map(str.encode))
@examples(200)
def test_files_of_results(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "r.jsonl"
    path.write_bytes(content)
    refused = refusal(read_results, str(path))
    assert refused is None or refused.code is ExitCode.BAD_DATA
    assert path.read_bytes() == content


META, _ = contents(MODEL)


def loads_or_refuses(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    refused = refusal(player_of, path)
    if refused is not None and refused.code is not ExitCode.USAGE:  # USAGE: another learner
        assert refused.code is ExitCode.BAD_DATA
        assert refused.place is not None


@given(st.sampled_from(places(META)), JSON | GONE, st.booleans())
@examples(300)
def test_models_with_another_header(
    tmp_path: Path, place: tuple[Any, ...], value: Any, signed: bool
) -> None:
    header = None if not place and value is ... else put(META, place, value)
    if isinstance(header, dict):

        def change(old: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
            old.clear()
            old.update(header)

        content = rewritten(MODEL, change, signed)
    else:
        text = np.frombuffer(json.dumps(header).encode(), np.uint8)
        content = changed(MODEL, {"header.npy": npy(text)})
    loads_or_refuses(tmp_path / "m.npz", content)


@given(
    st.sampled_from(sorted(META["arrays"])),
    st.sampled_from(["<f8", "<i8", "<i4", "<f4", "|u1", ">f8"]),
    st.lists(st.integers(0, 50), max_size=3),
    st.sampled_from([0.0, 1.0, -1.0, 1e300, np.nan, np.inf, 5e-324]),
    st.booleans(),
)
@examples(300)
def test_models_with_another_array(
    tmp_path: Path, name: str, dtype: str, shape: list[int], value: float, signed: bool
) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        array = np.full(shape, value).astype(dtype)
    content = changed(MODEL, {f"{name}.npy": npy(array)})
    if signed:
        content = rewritten(MODEL, lambda header, arrays: arrays.update({name: array}), signed=True)
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


def test_archives_with_another_table_of_contents(tmp_path: Path) -> None:
    """Size and offset of the table are in the last 22 bytes; some lead before the first byte."""
    for field in (12, 16):
        for value in (0, 1, len(MODEL), 2**31, 2**32 - 1):
            content = bytearray(MODEL)
            content[-22 + field : -22 + field + 4] = value.to_bytes(4, "little")
            loads_or_refuses(tmp_path / "m.npz", bytes(content))
    for content in (b"", b"PK\x03\x04", b"PK\x05\x06" + bytes(18)):
        loads_or_refuses(tmp_path / "m.npz", content)
