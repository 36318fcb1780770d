"""Models of small streams, and ways to change their files."""

import io
import json
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Player
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.model_file import Header, Model, archive_of, load_model, model_of, to_bytes
from ahpatron_cli.runner import Run
from support.streams import compress, make_stream

ROUNDS = 600
STREAM = make_stream(3, ROUNDS, 4)


def player(learner: str, kernel: Kernel | None = None, classes: int = 2, **params: Any) -> Player:
    """A fresh pass with a small budget."""
    kind = REGISTRY[learner]
    given = {"budget": 40, **params} if "budget" in kind.specs() else params
    kernel = KERNELS["gaussian"]() if kernel is None else kernel
    return Player(kind(**given), kernel, classes=classes, seed=(5,), horizon=ROUNDS)


def as_model(one: Player, labels: tuple[float, ...] = (-1.0, 1.0)) -> Model:
    """What `run --save` would write of this pass."""
    width = {"features": 4, "width": 5, "dense": True}
    return model_of(one, seed=5, labels=labels, rounds=one.tally.rounds, data="a.svm", **width)


def saved(
    learner: str = "ahpatron", rounds: int = 333, *, sparse: bool = False, **params: Any
) -> bytes:
    """The model of a learner after some rounds of the stream, perhaps of several `classes`."""
    one = player(learner, **params)
    labels: tuple[float, ...] = (-1.0, 1.0)
    y = STREAM.y[:rounds]
    if one.classes > 2:
        labels = tuple(float(c) for c in range(one.classes))
        y = class_labels(len(labels))[:rounds]
    X = STREAM.X[:rounds]
    one.feed(compress(X) if sparse else X, y)
    one.tally.seconds = 0.0
    return to_bytes(as_model(one, labels))


def class_labels(classes: int) -> np.ndarray:
    """Labels 0, 1, … of the stream."""
    return np.digitize(STREAM.X[:, 0], np.linspace(-0.7, 0.7, classes - 1)).astype(float)


MODEL = saved()


def player_of(path: Path) -> Run:
    """The pass that `run --resume` continues."""
    return load_model(str(path)).run("a.svm")


def batch(start: int, stop: int, classes: int = 2, sparse: bool = False) -> Batch:
    """Rounds of the stream as a pass reads them."""
    X = STREAM.X[start:stop]
    labels = STREAM.y if classes == 2 else class_labels(classes)
    rows = compress(X)
    lines = np.arange(start, stop)
    return Batch(rows if sparse else X, labels[start:stop], lines)


def changed(content: bytes, change: Mapping[str, bytes | None], pack: int = 0) -> bytes:
    """The archive with entries replaced, added or (None) left out."""
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w", pack) as new:
        entries = {name: old.read(name) for name in old.namelist()} | dict(change)
        for name, entry in entries.items():
            if entry is not None:
                new.writestr(name, entry)
    return target.getvalue()


def npy(array: np.ndarray, **options: bool) -> bytes:
    """As NumPy writes it, which is as we do."""
    target = io.BytesIO()
    np.lib.format.write_array(target, array, version=(1, 0), **options)
    return target.getvalue()


Contents = tuple[dict[str, Any], dict[str, np.ndarray]]
"""The header as it is in JSON, and the arrays by name."""


def contents(content: bytes) -> Contents:
    """The header and the arrays of a model."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        entries = {name: np.load(io.BytesIO(archive.read(name))) for name in archive.namelist()}
    header = json.loads(entries.pop("header.npy").tobytes())
    return header, {name.removesuffix(".npy"): array for name, array in entries.items()}


def rewritten(
    content: bytes, change: Callable[[dict[str, Any], dict[str, np.ndarray]], None], signed: bool
) -> bytes:
    """The model with another header or other arrays; the header lists the arrays as they are.

    Its checksum is the right one if it is `signed`, as far as the header is legal at all.
    """
    header, arrays = contents(content)
    change(header, arrays)
    if isinstance(header.get("arrays"), dict):
        header["arrays"] = {name: [one.dtype.str, list(one.shape)] for name, one in arrays.items()}
    if signed:
        try:
            legal = msgspec.convert(header, Header)
        except msgspec.ValidationError:
            pass
        else:
            return archive_of(legal, arrays)
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    return changed(
        content,
        {
            **{f"{name}.npy": None for name in contents(content)[1]},
            **{f"{name}.npy": npy(array) for name, array in arrays.items()},
            "header.npy": npy(text),
        },
    )
