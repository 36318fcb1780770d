"""Kept models: every learner goes on bit by bit, whatever the cut; what is damaged is refused."""

from __future__ import annotations

import io
import json
import random
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ahpatron_cli.core import REGISTRY, Player
from ahpatron_cli.core.rows import CsrRows, Rows, rows_of
from ahpatron_cli.core.state import Stored
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.models.file import load_model, looks_like_model, to_bytes
from support.models import ROUNDS, STREAM, as_model, changed, npy, player, player_of
from support.streams import compress


def gone_on(path: Path, learner: str, one: Player) -> Player:
    """Through a real file, and into a fresh player."""
    path.write_bytes(to_bytes(as_model(learner, one)))
    model = load_model(str(path))
    other = Player(REGISTRY[model.learner](**model.params), seed=(99,), horizon=None)
    stored = Stored(model.state)
    other.restore(stored)
    return other


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("learner", REGISTRY)
def test_a_pass_cut_anywhere_goes_on_bit_by_bit(tmp_path: Path, learner: str, form: str) -> None:
    rows: Rows = STREAM.X if form == "dense" else compress(STREAM.X)
    whole = player(learner)
    wanted = whole.feed(rows, STREAM.y)
    for cut in random.Random(learner).sample(range(1, ROUNDS), 5):
        first = player(learner)
        scores = [first.feed(rows_of(rows, slice(0, cut)), STREAM.y[:cut])]
        second = gone_on(tmp_path / "m.npz", learner, first)
        scores.append(second.feed(rows_of(rows, slice(cut, ROUNDS)), STREAM.y[cut:]))
        assert np.concatenate(scores).tobytes() == wanted.tobytes(), cut
        assert second.f.norm == whole.f.norm
        assert second.learner.statistics() == whole.learner.statistics()
        for name, count in vars(whole.tally).items():
            if name != "seconds":
                assert getattr(second.tally, name) == count


@pytest.mark.parametrize("learner", REGISTRY)
def test_small_pieces_are_one_stream(learner: str) -> None:
    wanted = player(learner).feed(STREAM.X, STREAM.y)
    small = player(learner)
    rng, scores, begin = random.Random(1), [], 0
    while begin < ROUNDS:
        end = min(begin + rng.randrange(1, 50), ROUNDS)
        scores.append(small.feed(STREAM.X[begin:end], STREAM.y[begin:end]))
        begin = end
    assert np.concatenate(scores).tobytes() == wanted.tobytes()


def test_the_same_model_has_the_same_bytes() -> None:
    contents = []
    for _ in range(2):
        one = player("skegd")
        one.feed(STREAM.X, STREAM.y)
        one.tally.seconds = 0.0
        contents.append(to_bytes(as_model("skegd", one)))
    assert contents[0] == contents[1]


@pytest.fixture(scope="module")
def content() -> bytes:
    one = player("ahpatron")
    one.feed(STREAM.X[:333], STREAM.y[:333])
    return to_bytes(as_model("ahpatron", one))


def refusal(path: Path, content: bytes) -> UserError:
    path.write_bytes(content)
    with pytest.raises(UserError) as refused:
        player_of(path)
    assert refused.value.code == ExitCode.BAD_DATA
    return refused.value


def described(content: bytes, **change: object) -> bytes:
    """With other words in its description."""
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        text = np.load(io.BytesIO(old.read("meta.npy"))).tobytes()
    meta = json.loads(text)
    for name, value in change.items():
        group, _, key = name.partition("__")
        if key:
            meta[group][key.replace("_DOT_", ".")] = value
        else:
            meta[group] = value
    return changed(content, {"meta.npy": npy(np.frombuffer(json.dumps(meta).encode(), np.uint8))})


def relisted(content: bytes, name: str, array: np.ndarray) -> bytes:
    """With another array, as the description says, too."""
    listed = described(
        content, **{f"arrays__{name.replace('.', '_DOT_')}": [array.dtype.str, [*array.shape]]}
    )
    return changed(listed, {f"{name}.npy": npy(array)})


def reheaded(content: bytes, name: str, old: bytes, new: bytes) -> bytes:
    """The same numbers, said to be something else."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return changed(content, {name: archive.read(name).replace(old, new, 1)})


class Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return Path.touch, (Path("/tmp/ahpatron-was-here"),)  # type: ignore[return-value]  # hostile


HUGE = b"\x93NUMPY\x01\x00" + struct.pack("<H", 118)
HUGE += b"{'descr': '<f8', 'fortran_order': False, 'shape': (4000000000,), }".ljust(117) + b"\n"


HOSTILE = {
    "empty": lambda c: b"",
    "not an archive": lambda c: b"+1 1:2\n" * 100,
    "cut in half": lambda c: c[: len(c) // 2],
    "cut by one byte": lambda c: c[:-1],
    "no description": lambda c: changed(c, {"meta.npy": None}),
    "a pickle for a description": lambda c: changed(
        c, {"meta.npy": npy(np.array([Bomb()], dtype=object), allow_pickle=True)}
    ),
    "a pickle for coefficients": lambda c: changed(
        c, {"state.f.coefficients.npy": npy(np.array([Bomb()], dtype=object), allow_pickle=True)}
    ),
    "an entry too many": lambda c: changed(c, {"more.npy": npy(np.zeros(1))}),
    "an entry too few": lambda c: changed(c, {"state.f.gram.npy": None}),
    "packed entries": lambda c: changed(c, {}, zipfile.ZIP_DEFLATED),
    "a bomb": lambda c: changed(c, {"state.f.gram.npy": bytes(10**8)}, zipfile.ZIP_DEFLATED),
    "32 GB in a head": lambda c: changed(c, {"state.f.coefficients.npy": HUGE + bytes(8)}),
    "another shape": lambda c: changed(c, {"state.f.coefficients.npy": npy(np.zeros(3))}),
    "another type": lambda c: changed(
        c, {"state.f.coefficients.npy": npy(np.zeros(40, dtype=np.float32))}
    ),
    "a head of another type": lambda c: reheaded(c, "state.f.coefficients.npy", b"<f8", b"<i8"),
    "column by column": lambda c: changed(
        c, {"state.f.gram.npy": npy(np.asfortranarray(np.ones((3, 3))))}
    ),
    "a NaN": lambda c: nan_in(c, "state.f.coefficients.npy"),
    "an infinity": lambda c: nan_in(c, "state.f.points.rows.npy", np.inf),
    "another kind": lambda c: described(c, kind="a model"),
    "a format to come": lambda c: described(c, format=2),
    "an unknown learner": lambda c: described(c, learner="ahpatronic"),
    "another learner": lambda c: described(c, learner="perceptron", params={}),
    "an unknown parameter": lambda c: described(c, params__more=1),
    "a budget below |S|": lambda c: described(c, params__budget=2),
    "a budget of words": lambda c: described(c, params__budget="many"),
    "a budget of nothing": lambda c: described(c, params__budget=[]),
    "no state": lambda c: described(c, state={}),
    "a number for a state": lambda c: described(c, state={"state": 3}),
    "a word for a state": lambda c: described(c, state={"state": "x"}),
    "a missing parameter": lambda c: described(c, kernel_params={}),
    "a huge parameter": lambda c: described(c, params__epsilon=10**400),
    "equal labels": lambda c: described(c, labels=[1, 1]),
    "more mistakes than rounds": lambda c: described(
        c, state__state_DOT_tally_DOT_mistakes={"int": "100000"}
    ),
    "fewer coefficients than examples": lambda c: relisted(c, "state.f.coefficients", np.zeros(3)),
    "a Gram matrix of another size": lambda c: relisted(c, "state.f.gram", np.ones((3, 3))),
    "whole coefficients": lambda c: relisted(
        c, "state.f.coefficients", np.zeros(40, dtype=np.int64)
    ),
    "rows that are no examples": lambda c: relisted(c, "state.f.points.rows", np.zeros((30, 7))),
    "rows without columns": lambda c: relisted(c, "state.f.points.rows", np.zeros((30, 1))),
    "labels of 2": lambda c: relisted(c, "state.open_labels", np.full(13, 2.0)),
    "a block too long": lambda c: relisted(c, "state.open_labels", np.ones(500)),
    "more state": lambda c: described(c, state__state_DOT_f_DOT_more=None),
    "a state in two places": lambda c: described(c, state__state_DOT_f="x"),
    "labels of words": lambda c: described(c, labels=["a", "b"]),
    "three labels": lambda c: described(c, labels=[1, 2, 3]),
    "a huge number": lambda c: described(c, state__state_DOT_tally_DOT_rounds={"int": "9" * 50}),
    "a long number": lambda c: described(c, state__state_DOT_tally_DOT_rounds={"int": "9" * 9999}),
    "a word for a number": lambda c: described(c, state__state_DOT_tally_DOT_rounds="many"),
    "a scale without its numbers": lambda c: described(c, scale="minmax"),
    "other versions": lambda c: described(c, algorithm=0),
    "deep nesting": lambda c: changed(
        c, {"meta.npy": npy(np.frombuffer(b"[" * 100_000, dtype=np.uint8))}
    ),
}


def nan_in(content: bytes, name: str, value: float = np.nan) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as old:
        array = np.load(io.BytesIO(old.read(name)))
    array.reshape(-1)[0] = value
    return changed(content, {name: npy(array)})


@pytest.mark.parametrize("kind", HOSTILE)
def test_damaged_and_hostile_files_are_refused(tmp_path: Path, content: bytes, kind: str) -> None:
    error = refusal(tmp_path / "m.npz", HOSTILE[kind](content))
    assert str(tmp_path / "m.npz") in str(error.place)
    assert not Path("/tmp/ahpatron-was-here").exists()


def test_the_model_itself_is_not_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    assert looks_like_model(str(path))
    assert player_of(path).rounds == 333  # type: ignore[attr-defined]  # of a Pass
    for same in (changed(content, {}), described(content)):
        path.write_bytes(same)
        assert player_of(path).rounds == 333  # type: ignore[attr-defined]  # of a Pass


def test_flipped_bytes_never_give_another_model(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)
    wanted = to_bytes(load_model(str(path)))
    rng = random.Random(4)
    refused = 0
    for _ in range(300):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        try:
            model = load_model(str(path))
        except UserError:
            refused += 1
        else:  # a byte that means nothing, such as a date
            assert to_bytes(model) == wanted
    assert refused > 250


@pytest.mark.parametrize("kind", ["a bomb", "32 GB in a head", "deep nesting", "a long number"])
def test_refusing_takes_little_memory(tmp_path: Path, content: bytes, kind: str) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(HOSTILE[kind](content))
    tracemalloc.start()
    try:
        with pytest.raises(UserError):
            load_model(str(path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 50e6


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        load_model(str(tmp_path / "none.npz"))
    assert refused.value.code == ExitCode.NO_INPUT
    assert not looks_like_model(str(tmp_path / "none.npz"))


def test_rows_that_come_sparse_after_dense_go_on_too(tmp_path: Path) -> None:
    sparse = compress(STREAM.X)
    assert isinstance(sparse, CsrRows)
    for learner in ("ahpatron", "fogd", "skegd", "pomdr"):
        whole = player(learner)
        wanted = [whole.feed(STREAM.X[:320], STREAM.y[:320])]
        wanted.append(whole.feed(rows_of(sparse, slice(320, ROUNDS)), STREAM.y[320:]))
        first = player(learner)
        scores = [first.feed(STREAM.X[:320], STREAM.y[:320])]
        scores.append(first.feed(rows_of(sparse, slice(320, 400)), STREAM.y[320:400]))
        second = gone_on(tmp_path / "m.npz", learner, first)
        scores.append(second.feed(rows_of(sparse, slice(400, ROUNDS)), STREAM.y[400:]))
        assert np.concatenate(scores).tobytes() == np.concatenate(wanted).tobytes()


@pytest.mark.parametrize("bug", [TypeError, AttributeError, KeyError, IndexError])
def test_a_bug_of_ours_is_not_called_damage(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch, bug: type[Exception]
) -> None:
    path = tmp_path / "m.npz"
    path.write_bytes(content)

    def broken(*_: object) -> None:
        raise bug("a bug")

    monkeypatch.setattr(Player, "restore", broken)
    with pytest.raises(bug, match="a bug"):
        player_of(path)
