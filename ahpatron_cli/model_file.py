"""The file of a saved model: written by `run --save`, `--checkpoint` and the estimator's `save`.

A model is an .npz file of plain arrays and a JSON header, read safely by `npz.py`. A SHA-256
covers all content and every value is checked; any fault raises `UserError`. A learner in a file of
the user is never imported just because a model names it: the user must give it again with
`-l FILE.py:Class`, and its hash is compared.
"""

from __future__ import annotations

import hashlib
import math
import zipfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import numpy as np

from ahpatron_cli import __version__, npz
from ahpatron_cli.core import ALGORITHM, KERNELS, REGISTRY, Learner, Player, learner_source
from ahpatron_cli.core.errors import NumericalError, ParameterError, StateError
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.core.registry import find_learner
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data.batch import FileInfo
from ahpatron_cli.data.cells import label_key
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.label_codes import UNDECIDED, AppearingLabels, LabelCodes
from ahpatron_cli.data.layout import DENSE_WIDTH
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.source import FROM_ARRAYS, HEAD_BYTES, foreign_format, similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data, usage
from ahpatron_cli.records import Number, ParamValue, plain_params
from ahpatron_cli.runner import (
    Run,
    RunOptions,
    Setup,
)
from ahpatron_cli.settings import Data, Scale

FORMAT = 2
KIND = "ahpatron model"
_HEADER = "header"
_LARGEST_HEADER = 1 << 24
"""Largest size of the header in bytes."""
_TYPES = ("<f8", "<i8", "<i4")
_NOT_FINITE = ("inf", "-inf", "nan")
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Width: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
FEW = msgspec.Meta(min_length=1, max_length=MAX_CLASSES)
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]
Share: TypeAlias = Annotated[float, msgspec.Meta(gt=0, lt=1)]
_LABEL_TYPES = r"bool|u?int(8|16|32|64)|float(16|32|64)|str|object|datetime64\[\w+\]"
LabelType: TypeAlias = Annotated[str, msgspec.Meta(pattern=rf"^({_LABEL_TYPES})$")]
OptionValue: TypeAlias = bool | int | float | str | list[str]


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """Header of a model file, stored as JSON."""

    learner: str
    source: str
    """`built-in`, a distribution and its version, or the SHA-256 of the learner's file."""
    params: dict[str, ParamValue]
    kernel: str | None
    """Name of the kernel; None if the learner has its own."""
    kernel_params: dict[str, ParamValue]
    seed: Count
    labels: Annotated[tuple[Number | None, ...], FEW]
    """Labels encoded as -1 (None: all others) and +1; or those of three or more classes."""
    features: Width
    width: Width
    """Number of columns: `features` + 1 if feature indices start at 1."""
    dense: bool
    rounds: Count
    """Rounds of the last stream; `digest` is their checksum. Checkpoints continue after them."""
    digest: Count = 0
    positive: Number | None = None
    grows: bool = False
    """Whether the labels are classes that were added as they appeared, in this order."""
    weights: tuple[Positive, ...] | None = msgspec.field(default=None, name="costs")
    """Weights of examples (--weight), in the order of `labels`."""
    threshold: Share | None = None
    """The probability from which +1 was predicted (--threshold)."""
    confusion: tuple[tuple[Count, Count], tuple[Count, Count]] | None = None
    """Rounds by true and predicted label, if there is a threshold: `state.tally` has sign(f)."""
    label_type: LabelType | None = None
    """NumPy dtype of the labels in Python; None if the model was made by the command line."""
    scale: Scale = Data.scale
    data: str | None = None
    """The last file that the model was trained on."""
    schema: Schema | None = None
    """Schema of the table with names of labels; None for LIBSVM text."""
    options: dict[str, OptionValue] = {}
    """Options of `run` that decide the rounds, as given; a checkpoint continues with the same."""
    state: dict[str, bool | int | float | str | None] = {}
    """Numbers and texts of the learner's state by dotted path; `state.calibration` is the link
    from scores to probabilities."""
    arrays: dict[str, tuple[str, list[int]]] = {}
    """Dtype and shape of each array."""
    kind: str = KIND
    format: int = FORMAT
    algorithm: int = ALGORITHM
    version: str = __version__
    sha256: str = ""
    """Checksum of the header without this field, and of all arrays."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """Labels of all classes, if there are more than two; else None."""
        known = [label for label in self.labels if label is not None]
        if len(known) <= 2 and not self.grows:
            return None
        return tuple(known)


@dataclass(frozen=True)
class Model:
    """A saved learner with everything needed to continue its stream."""

    header: Header
    state: State
    scaler: Scaler | None = None
    path: str = ""
    """Path of the model file."""
    written: float = 0.0
    """When the file was written, in seconds since 1970; 0 if the model is not from a file."""
    learner: str | None = None
    """`FILE.py:Class` of the learner, if it is defined in a file."""
    live: State | None = None
    """What belongs to the stream of a service (--state): counts, window, rows without a label."""

    @property
    def setup(self) -> Setup:
        """Learner and kernel of the model, with their parameters."""
        return Setup(
            learner=self.header.learner,
            learner_params=self.header.params,
            kernel=self.header.kernel,
            kernel_params=self.header.kernel_params,
            source=self.learner,
        )

    @property
    def encoder(self) -> Encoder:
        """The encoder for data that continue this model."""
        header = self.header
        return Encoder(
            labels=LabelCodes(
                "model",
                labels=header.labels,
                positive=header.positive,
                appearing=self._appearing(),
            ),
            dense=header.dense,
            width=header.width,
            scale=header.scale,
            scaler=self.scaler,
            schema=header.schema,
            refuses_new_features=True,
        )

    def _appearing(self) -> AppearingLabels | None:
        """The labels that have appeared, if others may; None if all were known before."""
        header = self.header
        if header.grows:
            labels = list(header.classes or ())
            return AppearingLabels(labels, are_classes=True)
        if header.labels != UNDECIDED or header.positive is not None:
            return None
        return AppearingLabels([1.0] if header.rounds else [])

    def run(self, data: str, options: RunOptions | None = None, *, same_file: bool = False) -> Run:
        """A `Run` that continues the model on this data; `same_file`: it was trained on it."""
        options = options or RunOptions()
        options = replace(options, seed=self.header.seed)
        if options.threshold is None:
            options = replace(options, threshold=self.header.threshold)
        try:
            return Run(
                self.setup,
                path=data,
                options=options,
                classes=self.header.classes,
                appearing=self._appearing() if self.header.grows else None,
                weights=self.header.weights,
                state=self.state,
                confusion=self.header.confusion,
                same_file=same_file,
            )
        except (StateError, ParameterError, NumericalError) as error:
            raise damaged(str(error), self.path) from None

    def remark(self, info: FileInfo) -> str | None:
        """A warning if feature indices of the data seem to start at 0, of the model at 1."""
        counts_from_0 = self.header.features >= self.header.width
        if counts_from_0 or not info.zero_based:
            return None
        return (
            "the data have a feature 0, which the model never saw: if its features count "
            "from 1 and these from 0, every feature is mistaken for another"
        )


# The file -----------------------------------------------------------------------------------------


def model_of(
    player: Player, scaler: Scaler | None = None, live: State | None = None, **fields: Any
) -> Model:
    """Create the model of a player; `fields` are further fields of the header."""
    learner = player.learner
    kernel = player.kernel
    kernel_name = None
    if not learner.own_kernel:
        kernel_name = kernel.name
    header = Header(
        learner=learner.name,
        source=learner_source(type(learner)),
        params=learner.params(),
        kernel=kernel_name,
        kernel_params=kernel.params(),
        **fields,
    )
    state = player.state_dict()
    return Model(header, state, scaler, live=live)


def to_bytes(model: Model) -> bytes:
    """Bytes of a model file; deterministic."""
    groups: dict[str, Mapping[str, Any]] = {
        "state": model.state,
        "scaler": {},
        "live": model.live or {},
    }
    if model.scaler is not None:
        groups["scaler"] = vars(model.scaler)
    arrays: dict[str, np.ndarray] = {}
    plain_values: dict[str, Any] = {}
    for path, value in _flat(groups):
        if isinstance(value, np.ndarray):
            arrays[path] = np.ascontiguousarray(value)
        else:
            plain_values[path] = _plain(value)
    header = msgspec.structs.replace(
        model.header,
        params=plain_params(model.header.params),
        kernel_params=plain_params(model.header.kernel_params),
        state=plain_values,
        arrays={path: _described(array) for path, array in arrays.items()},
    )
    return archive_of(header, arrays)


def _described(array: np.ndarray) -> tuple[str, list[int]]:
    """Dtype and shape of an array, as in the header."""
    shape = list(array.shape)
    return array.dtype.str, shape


def archive_of(header: Header, arrays: Mapping[str, np.ndarray]) -> bytes:
    """Bytes of an .npz file with a header and arrays; sets the checksum."""
    own_checksum = checksum(header, arrays)
    signed = msgspec.structs.replace(header, sha256=own_checksum)
    text = msgspec.json.encode(signed, order="sorted")
    header_bytes = np.frombuffer(text, dtype=np.uint8)
    packed: dict[str, np.ndarray] = {_HEADER: header_bytes}
    for name in sorted(arrays):
        packed[name] = arrays[name]
    return npz.pack(packed)


def checksum(header: Header, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of all content of a model: the header without its checksum, and the arrays."""
    unsigned = msgspec.structs.replace(header, sha256="")
    text = msgspec.json.encode(unsigned, order="sorted")
    digest = hashlib.sha256(text)
    for name in sorted(arrays):
        values = np.ascontiguousarray(arrays[name])
        digest.update(values.data)
    return digest.hexdigest()


def _flat(group: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the values of nested groups with their dotted paths."""
    for name, value in group.items():
        path = f"{prefix}{name}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}.")
        else:
            yield path, value


def _plain(value: object) -> object:
    """A value for JSON: infinity and NaN become text; an apostrophe marks the same texts."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if _looks_like_no_number(value):
        return f"'{value}"
    return value


def _number(value: object) -> Any:
    """Inverse of `_plain`."""
    if not isinstance(value, str):
        return value
    if value in _NOT_FINITE:
        return float(value)
    if _looks_like_no_number(value):
        return value[1:]
    return value


def _looks_like_no_number(value: object) -> bool:
    """Whether a value is the text of infinity or NaN, with any number of apostrophes before."""
    if not isinstance(value, str):
        return False
    return value.lstrip("'") in _NOT_FINITE


def load_model(path: str, learner: str | None = None) -> Model:
    """Read a model file; raises `UserError` if it is damaged, incompatible or not a model.

    `learner` is `FILE.py:Class` of the model's learner, if it is defined in a file. The learner's
    state is checked later, when a run is continued.
    """
    try:
        return _load(path, learner)
    except OSError as error:
        problem = f"the model cannot be read: {error.strerror or error}"
        hint = None
        if isinstance(error, FileNotFoundError):
            hint = similar_name(path)
        place = Place(path)
        raise UserError(problem, code=ExitCode.NO_INPUT, place=place, hint=hint) from None
    except StateError as error:
        raise damaged(str(error), path) from None


def _load(path: str, learner: str | None) -> Model:
    """Read a model file; a `StateError` if it is damaged, an `OSError` if it cannot be read."""
    with npz.opened(path) as archive:
        header = _header(archive, path)
        arrays = _arrays(header, archive)
        written = npz.time_written(archive)
    if checksum(header, arrays) != header.sha256:
        raise StateError("its checksum does not fit its content")
    _check_header(header)
    kind = _learner_of(header, learner)
    header.params = _complete(kind, header.params)
    if header.kernel:
        kernel = KERNELS[header.kernel]
        header.kernel_params = _complete(kernel, header.kernel_params)
    values = chain(header.state.items(), arrays.items())
    content = _nested(values)
    scaler = None
    with StateReader(content, {}) as reader:
        reader.part("state")
        if "live" in content:
            reader.part("live")
        if header.scale in LEARNED_SCALES:
            scaler = _scaler(reader)
    _check_width(header, content["state"])
    return Model(
        header=header,
        state=content["state"],
        scaler=scaler,
        path=path,
        written=written,
        learner=learner,
        live=content.get("live"),
    )


def damaged(reason: str, path: str) -> UserError:
    """The error for a model file that is damaged or was not written by ahpatron."""
    first_line, _, _ = reason.partition("\n")
    problem = f"this is not a model of ahpatron, or it is damaged: {first_line[:200]}"
    return bad_data(problem, path, hint="`ahpatron run DATA --save MODEL.npz` writes a model")


def _header(archive: zipfile.ZipFile, path: str) -> Header:
    """The header of a model file, if it was written by a version that counts as this one."""
    written = _fields(archive, path)
    if written.get("kind") != KIND:
        raise StateError("its header is not that of a model")
    is_same_format = written.get("format") == FORMAT
    if not is_same_format or written.get("algorithm") != ALGORITHM:
        version = str(written.get("version"))
        made_by = f"the model was made by version {version[:20]}"
        problem = f"{made_by}, whose learners count differently"
        hint = "make it again from its data with `ahpatron run DATA … --save MODEL.npz`"
        raise bad_data(f"{problem}: it cannot be used here", path, hint=hint)
    return msgspec.convert(written, Header)


def _no_model(names: Sequence[str], path: str) -> UserError:
    """The error for a zip archive of other entries: arrays, a spreadsheet or any files."""
    holds_arrays = any(name.endswith(".npy") for name in names)
    if not holds_arrays:
        with Path(path).open("rb") as file:
            head = file.read(HEAD_BYTES)
        error = foreign_format(head, path)
        if error is not None:
            return error
    return bad_data("this is not a model of ahpatron", path, hint=FROM_ARRAYS)


def _fields(archive: zipfile.ZipFile, path: str) -> dict[str, Any]:
    """The fields of the header of a model file, as they are written there."""
    names = archive.namelist()
    if "meta.npy" in names:
        return {"kind": KIND, "version": "0.2 or earlier"}
    if f"{_HEADER}.npy" not in names:
        raise _no_model(names, path)
    size = archive.getinfo(f"{_HEADER}.npy").file_size
    if size > _LARGEST_HEADER:
        raise StateError("its header is too large")
    length = size - npz.HEAD
    text = npz.read(archive, _HEADER, dtype="|u1", shape=(length,))
    found: dict[str, Any] = msgspec.json.decode(text.tobytes(), type=dict[str, Any])
    return found


def _arrays(header: Header, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """Read the arrays listed in the header; `StateError` if the archive has others."""
    names = [_HEADER, *header.arrays]
    listed = {f"{name}.npy" for name in names}
    if set(archive.namelist()) != listed:
        raise StateError("its entries differ from those listed in its header")
    for name, (dtype, shape) in header.arrays.items():
        shortest = min(shape, default=0)
        if dtype not in _TYPES or shortest < 0:
            raise StateError(f"{name[:40]} has an unknown type")
    found = {}
    for name, (dtype, shape) in header.arrays.items():
        found[name] = npz.read(archive, name, dtype=dtype, shape=shape)
    return found


def _check_header(header: Header) -> None:
    """Check the consistency of header fields beyond their types."""
    labels = header.labels
    distinct = set(labels)
    if header.grows:
        legal = None not in labels and len(distinct) == len(labels)
    elif len(labels) == 2:
        negative, positive = labels
        legal = positive is not None and negative != positive
    else:
        known = [label for label in distinct if label is not None]
        in_order = tuple(sorted(known))
        legal = len(labels) > 2 and labels == in_order
    if header.weights and len(header.weights) != len(labels):
        legal = False
    if not legal:
        raise StateError("its labels or their costs cannot be right")
    if header.schema is not None:
        _check_schema(header.schema, header.width)


def _check_schema(schema: Schema, width: int) -> None:
    """Check the consistency of a schema, for rows with `width` columns."""
    if width <= len(schema.features):
        raise StateError("its schema has more features than its rows")
    for column in schema.columns:
        if column.shares:
            belongs = len(column.shares) == column.width
            if not column.categories or not belongs:
                raise StateError("its schema has shares of other categories")
    for label in schema.labels:
        if label_key(label, schema.label_kind) is None:
            raise StateError(f"its schema has labels that are no {schema.label_kind}")


def _check_width(header: Header, state: State) -> None:
    """Refuse dense rows that are wider than those the model was trained on: they need memory."""
    widest = DENSE_WIDTH
    centre = state.get("centre")
    if isinstance(centre, np.ndarray):
        widest = max(widest, centre.size)
    widest += 1  # column 0
    if header.dense and header.width > widest:
        raise StateError("its rows are wider than its examples")


def _learner_of(header: Header, given: str | None) -> type[Learner]:
    """The class of the model's learner, which must be available and unchanged."""
    if given is None and header.learner not in REGISTRY:
        problem = f"the model was made by the learner {header.learner!r}, which is not installed"
        raise usage(problem, "if it is in a file, give it again: -l FILE.py:Class")
    kind = find_learner(given or header.learner)
    is_same = kind.name == header.learner and learner_source(kind) == header.source
    if not is_same:
        problem = f"the {kind.name} installed here is not the learner that made the model"
        source = header.source[:24]
        raise usage(problem, f"the model was made by {header.learner} ({source})")
    kernels: Collection[str | None] = (None,)
    if kind.own_kernel is None:
        kernels = KERNELS
    if header.kernel not in kernels:
        raise StateError("its kernel is not one of its learner")
    return kind


def _complete(kind: type[Declared], params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """All parameters of a model; those that are newer than the model have their defaults."""
    specs = kind.specs()
    given = {}
    for name, value in params.items():
        if name not in specs:
            raise StateError("its parameters are not those of its learner")
        is_word = value in specs[name].words
        given[name] = value if is_word else _number(value)
    try:
        return kind(**given).params()
    except ParameterError as error:
        raise StateError(str(error)) from None


def _nested(values: Iterable[tuple[str, Any]]) -> State:
    """Nested dict of values from their dotted paths."""
    content: State = {}
    for path, value in values:
        *groups, name = path.split(".")
        group = content
        for part in groups:
            group = group.setdefault(part, {})
            if not isinstance(group, dict):
                raise StateError(f"{path[:40]} is inside an entry that is not a group")
        if name in group:
            raise StateError(f"{path[:40]} occurs twice")
        if not isinstance(value, np.ndarray):
            value = _number(value)
        group[name] = value
    return content


def _scaler(content: StateReader) -> Scaler:
    """The scaler of a model; a `StateError` if it would divide by 0."""
    with content.part("scaler") as parts:
        largest = parts.array("largest", "d")
        shift = parts.array("shift", "d")
        spread = parts.array("spread", "d")
    count = len(largest)
    same_length = count == len(shift) == len(spread)
    smallest = min(*largest, *spread, 1)
    if not same_length or smallest <= 0:
        raise content.refusal("scaler", "divides by numbers that are not positive")
    return Scaler(largest, shift, spread)
