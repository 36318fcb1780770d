"""Whatever the bytes: only our own errors escape from the reader and from the two loaders."""

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
from faults.reading import check, made_up
from support.effort import examples
from support.models import MODEL, changed, contents, npy, player_of, rewritten
from support.trials import stored_trial as trial


def refusal(call: Callable[..., object], *arguments: Any) -> UserError | None:
    """Why a call was refused; any other error is a failure."""
    try:
        call(*arguments)
    except UserError as error:
        return error
    return None


@given(st.binary(max_size=200) | st.integers(0, 2**64).map(lambda n: made_up(random.Random(n))))
@examples(900)
@example(b"1 1:2\n-1 1:3")
@example(b"\r ")
def test_texts_are_read_as_defined_or_refused(text: bytes) -> None:
    check(text)


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
        assert np.isfinite([found.run.mistake_rate, found.run.seconds]).all()


@given(st.binary(max_size=300) | JSON.map(json.dumps).map(str.encode))
@examples(200)
def test_any_bytes_are_results_or_refused(tmp_path: Path, content: bytes) -> None:
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


WRITES = st.tuples(  # the table of contents, in the last bytes, leads to all the others
    st.integers(0, len(MODEL) - 1) | st.integers(len(MODEL) - 64, len(MODEL) - 1),
    st.integers(0, 255),
)


@given(st.lists(WRITES, max_size=4), st.integers(0, len(MODEL)))
@examples(300)
@example([(len(MODEL) - n, 255) for n in (3, 4, 5, 6)], 0)
@example([(len(MODEL) - n, 255) for n in (7, 8, 9, 10)], 0)
def test_models_with_other_bytes(
    tmp_path: Path, writes: list[tuple[int, int]], length: int
) -> None:
    content = bytearray(MODEL)
    for place, byte in writes:
        content[place] = byte
    loads_or_refuses(tmp_path / "m.npz", bytes(content[: length if len(writes) % 2 else None]))
