"""A model after 333 rounds of a small stream, and ways to alter its file."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import numpy as np

from ahpatron_cli.core import REGISTRY, Player
from ahpatron_cli.models.file import Model, to_bytes
from support.streams import make_stream

ROUNDS = 600
STREAM = make_stream(3, ROUNDS, 4)


def player(learner: str) -> Player:
    kind = REGISTRY[learner]
    params = {"budget": 40} if "budget" in kind.specs() else {}
    return Player(kind(**params), seed=(5,), horizon=ROUNDS)


def as_model(learner: str, one: Player) -> Model:
    return Model(
        learner=learner,
        params=one.learner.params(),
        kernel="gaussian",
        kernel_params=one.kernel.params(),
        seed=5,
        labels=(-1.0, 1.0),
        positive=None,
        scale="none",
        scaler=None,
        features=4,
        dense=True,
        width=5,
        played=one.tally.rounds,
        digest=0,
        state=one.state(),
    )


def kept() -> bytes:
    one = player("ahpatron")
    one.feed(STREAM.X[:333], STREAM.y[:333])
    return to_bytes(as_model("ahpatron", one))


MODEL = kept()


def player_of(path: Path) -> Player:
    from ahpatron_cli.models.checkpoint import ModelOptions, SavedPass

    saved = SavedPass(ModelOptions(resume=str(path)), lambda text: None)
    return saved.make_pass(saved.setup(), "a.svm", 0, None)  # type: ignore[return-value]  # a Pass


def changed(content: bytes, change: dict[str, bytes | None], pack: int = 0) -> bytes:
    """The archive with entries replaced, added or (None) left out."""
    target = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(target, "w", pack) as new,
    ):
        entries = {name: old.read(name) for name in old.namelist()} | change
        for name, entry in entries.items():
            if entry is not None:
                new.writestr(name, entry)
    return target.getvalue()


def npy(array: np.ndarray, **options: bool) -> bytes:
    """As NumPy writes it, which is as we do."""
    target = io.BytesIO()
    np.lib.format.write_array(target, array, version=(1, 0), **options)
    return target.getvalue()
