"""Models on disk: an uncompressed .npz of plain arrays, and one JSON text. No pickle, ever.

Reading trusts nothing: sizes are those of the file and are checked before anything is read, every
name, type and shape must be the one expected, every number finite. Whatever is wrong is one
`UserError`, and nothing of the file was run or kept.
"""

from __future__ import annotations

import errno
import io
import json
import math
import stat
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from ahpatron_cli import __version__
from ahpatron_cli.core import ALGORITHM, KERNELS, REGISTRY
from ahpatron_cli.core.classwise import MAX_CLASSES
from ahpatron_cli.core.errors import StateError
from ahpatron_cli.core.state import State, Stored
from ahpatron_cli.data.scaling import LEARNED_SCALES, SCALES, Scaler
from ahpatron_cli.data.source import similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data
from ahpatron_cli.records import ParamValue, plain_params

FORMAT = 1
KIND = "ahpatron model"
MOST_ENTRIES = 64 * MAX_CLASSES
MOST_TEXT = 1 << 24
MOST_DIGITS = 60
_META = "meta"
_HEAD = 128
"""Bytes of the head of an array."""
_TYPES = ("<f8", "<i8", "<i4")


@dataclass(frozen=True, eq=False)
class Model:
    """A learner in the middle of its stream, with all it takes to go on."""

    learner: str
    params: Mapping[str, ParamValue]
    """All of them, resolved."""
    kernel: str
    kernel_params: Mapping[str, ParamValue]
    seed: int
    labels: tuple[float | None, ...]
    positive: float | None
    """What --positive said."""
    scale: str
    scaler: Scaler | None
    features: int
    dense: bool
    width: int
    played: int
    """Rounds of the stream so far, and a checksum of them: a checkpoint goes on after these."""
    digest: int
    state: State
    version: str = __version__
    costs: tuple[float, ...] | None = None
    """Of examples, in the order of `labels`."""
    data: str | None = None
    """The file that it learned from last; None in what earlier versions wrote."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """The labels of all classes, if there are more than two."""
        known = tuple(label for label in self.labels if label is not None)
        return known if len(known) > 2 else None


def to_bytes(model: Model) -> bytes:
    """The file: the same model gives the same bytes."""
    flat = dict(_flat(model.state, "state"))
    arrays = {path: value for path, value in flat.items() if isinstance(value, np.ndarray)}
    scalars = {path: _spelled(value) for path, value in flat.items() if path not in arrays}
    meta = {**vars(model), "format": FORMAT, "kind": KIND, "algorithm": ALGORITHM, "state": scalars}
    if (scaler := meta.pop("scaler")) is not None:
        arrays |= {f"scaler.{name}": value for name, value in vars(scaler).items()}
    for name in ("params", "kernel_params"):
        meta[name] = plain_params(meta[name])
    meta["arrays"] = {name: [one.dtype.str, list(one.shape)] for name, one in arrays.items()}
    text = np.frombuffer(json.dumps(meta, allow_nan=False).encode(), dtype=np.uint8)
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name, array in {_META: text, **arrays}.items():
            entry = _head(array.dtype.str, array.shape) + array.tobytes()
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), entry)
    return target.getvalue()


def _head(dtype: str, shape: tuple[int, ...]) -> bytes:
    """The head of an .npy file, as NumPy reads it; ours are compared with it, not parsed."""
    words = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}"
    return b"\x93NUMPY\x01\x00\x76\x00" + words.ljust(_HEAD - 11).encode() + b"\n"


def _flat(state: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    for name, value in state.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{path}.{name}")
        else:
            yield f"{path}.{name}", value


def _spelled(value: Any) -> Any:
    """JSON has no infinity, and other readers of it no whole numbers of 128 bits."""
    if value is None or isinstance(value, bool | str | Mapping):  # of mappings, only empty ones
        return value
    return {"int": str(value)} if isinstance(value, int) else {"float": float(value).hex()}


def looks_like_model(path: str) -> bool:
    """Whether this is a regular file, and an archive as models are."""
    try:
        if path == "-" or not stat.S_ISREG(Path(path).stat().st_mode):
            return False
        with Path(path).open("rb") as stream:
            return stream.read(4) == b"PK\x03\x04"
    except OSError:
        return False


def load_model(path: str) -> Model:
    """Read a model; anything but a whole and sound one is refused."""
    try:
        meta, arrays = _contents(path)
        return _model(meta, arrays, path)
    except OSError as error:
        problem = f"the model cannot be read: {error.strerror or error}"
        hint = similar_name(path) if isinstance(error, FileNotFoundError) else None
        raise UserError(problem, code=ExitCode.NO_INPUT, place=Place(path), hint=hint) from None
    except StateError as error:
        raise damaged(str(error), path) from None


def damaged(reason: str, path: str) -> UserError:
    """The error for a file that no version of ahpatron can have written like this."""
    first = reason.splitlines()[0] if reason else "no reason is known"
    return bad_data(f"this is not a model of ahpatron, or it is damaged: {first[:200]}", path)


def _contents(path: str) -> tuple[Any, dict[str, np.ndarray]]:
    """The description of a model and its arrays, as the archive has them."""
    found = Path(path).stat()
    if not stat.S_ISREG(found.st_mode):
        _refuse("it is not a regular file")
    try:
        with zipfile.ZipFile(path) as archive:
            _check_archive(archive.infolist(), found.st_size)
            if f"{_META}.npy" not in archive.namelist():
                _refuse(f"{_META} is missing")
            size = archive.getinfo(f"{_META}.npy").file_size
            if size > MOST_TEXT:
                _refuse(f"{_META} is too large")
            meta = json.loads(_read(archive, _META, "|u1", (size - _HEAD,)).tobytes())
            return meta, _arrays(meta, archive)
    except (
        *(zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OverflowError),
        *(json.JSONDecodeError, UnicodeDecodeError, RecursionError),
    ) as error:  # all that zipfile and json say of bytes that are none of theirs
        raise StateError(str(error) or type(error).__name__) from None
    except OSError as error:
        if error.errno != errno.EINVAL:
            raise
        raise StateError("it points to a place before its first byte") from None


def _check_archive(infos: Sequence[zipfile.ZipInfo], size: int) -> None:
    """Nothing packed, nothing twice, nothing larger than the file it is in."""
    if len({info.filename for info in infos}) < len(infos) or len(infos) > MOST_ENTRIES:
        _refuse("too many entries, or one twice")
    for info in infos:
        if info.compress_type != zipfile.ZIP_STORED or info.flag_bits & 0x1:
            _refuse(f"{info.filename[:40]} is packed or encrypted")
        if info.file_size != info.compress_size:
            _refuse(f"{info.filename[:40]} has two sizes")
    if sum(info.file_size for info in infos) > size:
        _refuse("its entries are larger than the file")


def _read(archive: zipfile.ZipFile, name: str, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """One array, after its head was found to say what is expected and to fit the entry."""
    info = archive.getinfo(f"{name}.npy")
    if info.file_size != _HEAD + math.prod(shape) * np.dtype(dtype).itemsize:
        _refuse(f"{name} has not the size that it should have")
    content = archive.read(info)  # which checks its checksum
    if not content.startswith(_head(dtype, shape)):
        _refuse(f"{name} is not an array of the expected type and shape")
    return np.frombuffer(content, dtype=dtype, offset=_HEAD).reshape(shape)


def _arrays(meta: Any, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """The arrays that a description lists."""
    listed = meta.get("arrays") if isinstance(meta, dict) else None
    if not isinstance(listed, dict):
        _refuse("its description is not one of a model")
    if set(archive.namelist()) != {f"{name}.npy" for name in (_META, *listed)}:
        _refuse("its entries are not those it lists")
    arrays = {}
    for name, kind in listed.items():
        match kind:
            case [str(dtype), [*shape]] if dtype in _TYPES and all(
                type(size) is int and size >= 0 for size in shape
            ):
                arrays[name] = _read(archive, name, dtype, tuple(shape))
            case _:
                _refuse(f"{name[:40]} has an unknown type")
    return arrays


def _model(meta: dict[str, Any], arrays: Mapping[str, np.ndarray], file: str) -> Model:
    if meta.get("kind") != KIND or meta.get("format") != FORMAT:
        _refuse("its description is not one of a model")
    version = str(meta.get("version"))[:40]
    if meta.get("algorithm") != ALGORITHM:
        problem = f"the model was made by version {version[:20]}, whose learners may count "
        hint = "learn it again from its data, or use that version"
        raise bad_data(problem + "otherwise: it cannot go on here", file, hint=hint)
    given = Stored({**meta, "scaler": {n[7:]: a for n, a in arrays.items() if n[:7] == "scaler."}})
    state: State = {}
    for path, value in given.mapping("state").items():
        _put(state, path, _meant(value))
    for path, array in arrays.items():
        if path.startswith("state."):
            _put(state, path, array)
    if not isinstance(state.get("state"), dict):
        _refuse("its state is not one")
    labels = _numbers(meta.get("labels"), "labels")
    increasing = len(labels) == 2 or (np.diff(np.array(labels)) > 0).all()
    if not 2 <= len(labels) <= MAX_CLASSES or labels[0] == labels[1] or not increasing:
        _refuse("its labels are not labels")
    costs = None
    if meta.get("costs") is not None:
        costs = tuple(cost or 0.0 for cost in _numbers(meta["costs"], "costs"))
        if len(costs) != len(labels) or min(costs) <= 0:
            _refuse("its costs are not costs")
    scale = given.word("scale", SCALES)
    learner = given.word("learner", list(REGISTRY))
    kernel = given.word("kernel", list(KERNELS))
    (positive,) = _numbers([meta.get("positive")], "labels")
    return Model(
        learner=learner,
        params=_params(REGISTRY[learner].specs(), given.mapping("params")),
        kernel=kernel,
        kernel_params=_params(KERNELS[kernel].specs(), given.mapping("kernel_params")),
        seed=given.integer("seed"),
        labels=labels,
        positive=positive,
        scale=scale,
        scaler=_scaler(given.child("scaler")) if scale in LEARNED_SCALES else None,
        features=given.integer("features", at_most=2**31),
        dense=given.flag("dense"),
        width=given.integer("width", at_most=2**31),
        played=given.integer("played"),
        digest=given.integer("digest", at_most=2**32),
        state=state["state"],
        version=version,
        costs=costs,
        data=meta.get("data") and str(meta["data"]),
    )


def _scaler(stored: Stored) -> Scaler:
    largest = stored.array("largest", (None,))
    shift, spread = (stored.array(name, largest.shape) for name in ("shift", "spread"))
    stored.finish()
    if not ((largest > 0).all() and (spread > 0).all()):
        _refuse("its scaling is not one")
    return Scaler(largest, shift, spread)


def _params(specs: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, ParamValue]:
    """Checked when the learner is built; `plain_params` wrote infinity as text."""
    if set(given) - set(specs):
        _refuse("it has parameters that its learner lacks")
    for value in given.values():
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            _refuse("its parameters are not numbers or words")
    return {name: math.inf if value == "inf" else value for name, value in given.items()}


def _put(state: State, path: str, value: Any) -> None:
    *groups, name = path.split(".")
    for group in groups:
        state = state.setdefault(group, {})
        if not isinstance(state, dict):
            _refuse(f"{path[:40]} is in a group that is none")
    if name in state:
        _refuse(f"{path[:40]} is there twice")
    state[name] = value


def _meant(value: Any) -> Any:
    """What `_spelled` wrote."""
    match value:
        case {"int": str(text)} | {"float": str(text)} if (
            len(value) == 1 and len(text) <= MOST_DIGITS
        ):
            try:
                return int(text) if "int" in value else float.fromhex(text)
            except (ValueError, OverflowError):
                _refuse(f"{text} is not a number")
        case dict() | list() if value:
            _refuse("a number is not spelled as numbers are")
    return value


def _numbers(given: Any, what: str) -> tuple[float | None, ...]:
    """Finite numbers; None is legal in the first of at most two places."""
    listed = given if isinstance(given, list) else [{}]
    for place, value in enumerate(listed):
        if value is None and place == 0 and len(listed) <= 2:
            continue
        if type(value) not in (int, float) or not abs(value) <= sys.float_info.max:
            _refuse(f"its {what} are not {what}")
    return tuple(None if value is None else float(value) for value in listed)


def _refuse(reason: str) -> NoReturn:
    raise StateError(reason)
