"""Saved models: `run --save`, `--resume`, `--checkpoint`, `predict`, and the estimator's `save`.

A model is an .npz file of plain arrays and a header in JSON; `data.npz` reads it without trust. A
SHA-256 covers all content, and every value is checked. Whatever is wrong is one `UserError`. A
learner in a file of the user's own is never imported because a model names it: the user gives it
again with `-l FILE.py:Class`, and its hash is compared.
"""

from __future__ import annotations

import hashlib
import math
import shlex
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

import msgspec
import numpy as np

from ahpatron_cli import __version__
from ahpatron_cli.atomic import is_device, write_atomically
from ahpatron_cli.core import ALGORITHM, KERNELS, REGISTRY, Learner, Player, learner_source
from ahpatron_cli.core.errors import NumericalError, ParameterError, StateError
from ahpatron_cli.core.learners import GUIDE, find_learner
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import MAX_CLASSES
from ahpatron_cli.data import npz
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Dataset, Preparation, StreamState, Trail
from ahpatron_cli.data.scaling import LEARNED_SCALES, Scaler
from ahpatron_cli.data.schema import Schema
from ahpatron_cli.data.source import FROM_ARRAYS, similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data, usage
from ahpatron_cli.records import ParamValue, plain_params
from ahpatron_cli.runner import (
    BatchResult,
    LearnerSpec,
    Observer,
    Run,
    RunOptions,
    RunResult,
    begin,
    run_batches,
)
from ahpatron_cli.signals import watch

FORMAT = 2
KIND = "ahpatron model"
_HEADER = "header"
_TYPES = ("<f8", "<i8", "<i4")
SCALER = ("largest", "shift", "spread")
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0)]
Width: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=2**31)]
FEW = msgspec.Meta(min_length=2, max_length=MAX_CLASSES)
Positive: TypeAlias = Annotated[float, msgspec.Meta(gt=0)]


class Header(msgspec.Struct, forbid_unknown_fields=True):
    """What a model file says about itself, as JSON."""

    learner: str
    source: str
    """`built-in`, a distribution and its version, or the SHA-256 of the learner's file."""
    params: dict[str, ParamValue]
    kernel: str | None
    """None: the learner has its own."""
    kernel_params: dict[str, ParamValue]
    seed: Count
    labels: Annotated[tuple[float | None, ...], FEW]
    """-1 (None: every label but the other) and +1, or those of all classes."""
    features: Width
    width: Width
    """Columns of rows: one more than `features` if these count from 1."""
    dense: bool
    rounds: Count
    """Rows of the last stream, and a checksum of them: a checkpoint continues after these."""
    digest: Count = 0
    positive: float | None = None
    costs: tuple[Positive, ...] | None = None
    """Weights of examples, in the order of `labels`."""
    scale: Literal["none", "minmax", "standard", "unit"] = "none"
    data: str | None = None
    """The file that it learned from last."""
    schema: Schema | None = None
    """What the columns of a table become, and the names of labels; None: LIBSVM text."""
    state: dict[str, bool | int | float | str | None] = {}
    """Numbers and text of the learner's state, by path; `state.calibration` is the link from
    scores to probabilities."""
    arrays: dict[str, tuple[str, list[int]]] = {}
    """Type and shape of each array."""
    kind: str = KIND
    format: int = FORMAT
    algorithm: int = ALGORITHM
    version: str = __version__
    sha256: str = ""
    """Of the header without this field, and of all arrays."""

    @property
    def classes(self) -> tuple[float, ...] | None:
        """The labels of all classes, if there are more than two."""
        known = tuple(label for label in self.labels if label is not None)
        return known if len(known) > 2 else None


class Model(NamedTuple):
    """A learner in the middle of its stream, with all it takes to continue."""

    header: Header
    state: State
    scaler: Scaler | None = None


# The file -----------------------------------------------------------------------------------------


def model_of(player: Player, scaler: Scaler | None = None, **fields: Any) -> Model:
    """The model of a pass; `fields` of the header are what the pass itself does not have."""
    learner, kernel = player.learner, player.kernel
    header = Header(
        learner=learner.name,
        source=learner_source(type(learner)),
        params=learner.params(),
        kernel=None if learner.own_kernel else kernel.name,
        kernel_params=kernel.params(),
        **fields,
    )
    return Model(header, player.state_dict(), scaler)


def to_bytes(model: Model) -> bytes:
    """The content of a model file; the same model gives the same bytes."""
    flat = dict(_flat({"state": model.state, "scaler": vars(model.scaler) if model.scaler else {}}))
    arrays = {
        path: np.ascontiguousarray(value)
        for path, value in flat.items()
        if isinstance(value, np.ndarray)
    }
    header = msgspec.structs.replace(
        model.header,
        params=plain_params(model.header.params),
        kernel_params=plain_params(model.header.kernel_params),
        state={path: _plain(value) for path, value in flat.items() if path not in arrays},
        arrays={name: (array.dtype.str, list(array.shape)) for name, array in arrays.items()},
    )
    header.sha256 = checksum(header, arrays)
    return archive_of(header, arrays)


def archive_of(header: Header, arrays: Mapping[str, np.ndarray]) -> bytes:
    """An .npz file of a header and arrays."""
    text = np.frombuffer(msgspec.json.encode(header, order="sorted"), dtype=np.uint8)
    return npz.pack({_HEADER: text, **dict(sorted(arrays.items()))})


def checksum(header: Header, arrays: Mapping[str, np.ndarray]) -> str:
    """SHA-256 of all content of a model: the header without its checksum, and the arrays."""
    unsigned = msgspec.structs.replace(header, sha256="")
    digest = hashlib.sha256(msgspec.json.encode(unsigned, order="sorted"))
    for name in sorted(arrays):
        digest.update(np.ascontiguousarray(arrays[name]).data)
    return digest.hexdigest()


def _flat(group: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in group.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{path}{name}.")
        else:
            yield f"{path}{name}", value


def _plain(value: Any) -> Any:
    """A value for JSON, which has no number that is infinite or NaN."""
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: Any) -> Any:
    """What `_plain` wrote."""
    return float(value) if value in ("inf", "-inf", "nan") else value


def load_model(path: str) -> Model:
    """Read a model; a file that is damaged, of another version or no model is a `UserError`."""
    try:
        with npz.opened(path) as archive:
            header = _header(archive, path)
            arrays = _arrays(header, archive)
        if checksum(header, arrays) != header.sha256:
            raise StateError("its checksum does not fit its content")
        return _model(header, arrays)
    except OSError as error:
        problem = f"the model cannot be read: {error.strerror or error}"
        hint = similar_name(path) if isinstance(error, FileNotFoundError) else None
        raise UserError(problem, code=ExitCode.NO_INPUT, place=Place(path), hint=hint) from None
    except StateError as error:
        raise damaged(str(error), path) from None


def damaged(reason: str, path: str) -> UserError:
    """The error for a file that no version of ahpatron can have written."""
    first = reason.partition("\n")[0][:200]
    return bad_data(f"this is not a model of ahpatron, or it is damaged: {first}", path)


def _of_version(version: str, path: str) -> UserError:
    """The error for a model of another version."""
    problem = f"the model was made by version {version}, whose learners count differently"
    hint = "make it again from its data with `ahpatron run DATA … --save MODEL.npz`"
    return bad_data(f"{problem}: it cannot be used here", path, hint=hint)


def _header(archive: zipfile.ZipFile, path: str) -> Header:
    names = archive.namelist()
    if f"{_HEADER}.npy" not in names:
        if "meta.npy" in names:
            raise _of_version("0.2 or earlier", path)
        arrays = ", ".join(name.removesuffix(".npy")[:20] for name in names[:5])
        raise bad_data(f"this is not a model of ahpatron: it has {arrays}", path, hint=FROM_ARRAYS)
    size = archive.getinfo(f"{_HEADER}.npy").file_size
    if size > 1 << 24:
        raise StateError("its header is too large")
    text = npz.read(archive, _HEADER, "|u1", (size - npz.HEAD,)).tobytes()
    written = msgspec.json.decode(text, type=dict[str, Any])
    if written.get("kind") != KIND:
        raise StateError("its header is not one of a model")
    if (written.get("format"), written.get("algorithm")) != (FORMAT, ALGORITHM):
        raise _of_version(str(written.get("version"))[:20], path)
    return msgspec.convert(written, Header)


def _arrays(header: Header, archive: zipfile.ZipFile) -> dict[str, np.ndarray]:
    """The arrays that a header lists, and no others."""
    if set(archive.namelist()) != {f"{name}.npy" for name in (_HEADER, *header.arrays)}:
        raise StateError("its entries are not those it lists")
    for name, (dtype, shape) in header.arrays.items():
        if dtype not in _TYPES or any(length < 0 for length in shape):
            raise StateError(f"{name[:40]} has an unknown type")
    return {name: npz.read(archive, name, *kind) for name, kind in header.arrays.items()}


def _model(header: Header, arrays: Mapping[str, np.ndarray]) -> Model:
    """A model whose header is legal; its state is checked when a pass takes it over."""
    labels, schema = header.labels, header.schema
    if len(labels) == 2:
        legal = labels[1] is not None and labels[0] != labels[1]
    else:
        legal = None not in labels and list(labels) == sorted({*(header.classes or ())})
    if not legal or len(header.costs or labels) != len(labels):
        raise StateError("its labels or their costs cannot be right")
    if header.kernel not in (*KERNELS, None):
        raise StateError("its kernel is unknown")
    if schema and header.width <= len(schema.features):
        raise StateError("its schema has more features than its rows")
    header.params = {name: _number(value) for name, value in header.params.items()}
    content: State = {}
    for path, value in (*header.state.items(), *arrays.items()):
        *groups, name = path.split(".")
        group = content
        for part in groups:
            group = group.setdefault(part, {})
            if not isinstance(group, dict):
                raise StateError(f"{path[:40]} is in a group that is none")
        if name in group:
            raise StateError(f"{path[:40]} is there twice")
        group[name] = value if isinstance(value, np.ndarray) else _number(value)
    scaler, state = None, content.get("state", {})
    with StateReader(content, {}) as reader:
        reader.part("state")
        if header.scale in LEARNED_SCALES:
            with reader.part("scaler") as parts:
                largest, shift, spread = (parts.array(name, "d") for name in SCALER)
            if not len(largest) == len(shift) == len(spread) or min(*largest, *spread, 1) <= 0:
                raise reader.refusal("scaler", "divides by numbers that are not positive")
            scaler = Scaler(largest, shift, spread)
    return Model(header, state, scaler)


def learner_of(header: Header, path: str, given: str | None) -> type[Learner]:
    """The class of a model's learner, which the user gives if no registry has it."""
    if given is None and header.learner not in REGISTRY:
        problem = f"the model was made by the learner {header.learner!r}, which is not installed"
        raise usage(problem, "if it is in a file, give it again: -l FILE.py:Class")
    kind = find_learner(given or header.learner)
    if kind.name != header.learner or learner_source(kind) != header.source:
        problem = f"{kind.name} as it is here is not the learner that made the model"
        raise usage(problem, f"the model was made by {header.learner} ({header.source[:24]})")
    if (header.kernel is None) != (kind.own_kernel is not None):
        raise damaged("its kernel is not that of its learner", path)
    kernel = KERNELS[header.kernel].specs() if header.kernel else header.kernel_params
    complete = {*kind().params()} <= {*header.params} <= {*kind.specs()}
    if not complete or {*header.kernel_params} != {*kernel}:
        raise damaged("its parameters are not those of its learner", path)
    return kind


# Saving and continuing a pass ---------------------------------------------------------------------


@dataclass(frozen=True)
class ModelOptions:
    """The options that read or write models."""

    save: str | None = None
    resume: str | None = None
    checkpoint: str | None = None
    every: int = 100_000
    learner: str | None = None
    """`FILE.py:Class` of the model's learner, if it is in a file."""

    def check(self, files: int, learners: int, repeats: int, streamed: bool, traced: bool) -> None:
        """Refuse contradictions, if any is given. `traced`: with --curve."""
        for option, path in (("--save", self.save), ("--checkpoint", self.checkpoint)):
            if path and Path(path).suffix != ".npz" and not is_device(Path(path)):
                name = shlex.quote(f"{path}.npz")
                raise usage(f"{option} writes an .npz file, got {path!r}", f"use {option} {name}")
        if files != 1 or learners != 1 or repeats != 1:
            problem = "a model requires one file, one learner and one pass"
            raise usage(problem, "use one DATA, one -l and --repeats 1")
        if self.checkpoint and self.resume:
            raise usage("a checkpoint resumes by itself; leave out --resume")
        if self.checkpoint and not streamed:
            raise usage("--checkpoint requires one pass in file order", "leave out --shuffle")
        if self.checkpoint and traced:
            problem = "--curve would not have the rounds before a restart"
            raise usage(problem, "leave it out with --checkpoint")


class SavedRun:
    """The pass that a run continues, if any, and the files that it is saved to."""

    def __init__(self, options: ModelOptions, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        checkpoint = options.checkpoint
        self.restarts = bool(checkpoint and Path(checkpoint).exists())
        """Whether a checkpoint of this command exists, and is continued."""
        self._path = (checkpoint if self.restarts else options.resume) or ""
        self._loaded = load_model(self._path) if self._path else None
        self.model = self._loaded.header if self._loaded else None
        if self.model is not None:
            learner_of(self.model, self._path, options.learner)
        self._trail = Trail()
        self._saved_at = self.model.rounds if self.model else 0

    @property
    def resumes(self) -> bool:
        """Whether the model, not the command line, decides what is run."""
        return self.model is not None and not self.restarts

    @property
    def only_saves(self) -> bool:
        """Whether neither --checkpoint nor --resume is given."""
        return not (self._options.checkpoint or self._options.resume)

    @property
    def checkpointed(self) -> int:
        """The rows that the checkpoint has; 0 without one."""
        return self._saved_at if self._options.checkpoint else 0

    def setup(self) -> LearnerSpec:
        """The model's learner and kernel."""
        model = self.model
        assert model is not None
        own = self._options.learner
        return LearnerSpec(model.learner, model.params, model.kernel, model.kernel_params, own)

    def prepared(self, preparation: Preparation) -> tuple[Preparation, StreamState | None]:
        """What is done to the data, and what is known of the stream from the model."""
        if self._loaded is None:
            return preparation, None
        model, schema = self._loaded.header, self._loaded.header.schema
        if self.restarts:  # the stream is read again from its first row
            given = preparation.scale, preparation.positive, preparation.table.label
            if given != (model.scale, model.positive, schema.label if schema else None):
                raise self._other_run()
            return preparation, StreamState(model.labels, schema=schema)
        known = StreamState(model.labels, self._loaded.scaler, model.dense, model.width, schema)
        return replace(preparation, scale=model.scale, positive=model.positive), known

    def continued(self, path: str) -> Run:
        """A pass over this file that continues the model."""
        assert self._loaded is not None
        model, state, _ = self._loaded
        begun = partial(Run, self.setup(), path, model.seed, 0, None, classes=model.classes)
        try:
            return begun(costs=model.costs, state=state, same_file=self.restarts)
        except (StateError, ParameterError, NumericalError) as error:
            raise damaged(str(error), self._path) from None

    def restarted(self, fresh: Run, path: str) -> Run:
        """A pass that continues the checkpoint, if a fresh pass has the same settings."""
        assert self.model is not None
        params = fresh.player.learner.params(), fresh.player.kernel.params()
        asked = fresh.setup.learner, fresh.setup.kernel, fresh.seed, fresh.costs, *params
        names = ("learner", "kernel", "seed", "costs", "params", "kernel_params")
        if asked != tuple(getattr(self.model, name) for name in names):
            raise self._other_run()
        return self.continued(path)

    def run(
        self,
        dataset: Dataset,
        setup: LearnerSpec,
        repetition: RunOptions,
        horizon: int | None,
        observers: Sequence[Observer],
    ) -> list[RunResult]:
        """Run one pass that continues a model, or is saved."""
        if self.resumes:
            run = self.continued(dataset.name)
            self._say(_greeting(run))
        else:
            run = begin(dataset, setup, repetition, 0, horizon)
        if self.restarts:
            run = self.restarted(run, dataset.name)
        run.measure(repetition)
        try:
            run.player.state_dict()  # refuses what cannot be saved, before the first round
        except StateError as error:
            if self._options.save or self._options.checkpoint:
                raise usage(str(error), f"see {GUIDE}") from None

        def save_if_due(_: BatchResult) -> None:
            if checkpoint and self._trail.rounds - self._saved_at >= self._options.every:
                self._save(checkpoint, run, dataset)
                self._saved_at = self._trail.rounds

        checkpoint = self._options.checkpoint
        order = repetition.order(0, dataset.rounds or 0) if repetition.shuffle else None
        batches = dataset.batches(order, 0 if self.restarts else run.rounds)
        results = run_batches(self._left(batches, run), [run], [*observers, save_if_due])
        dataset.facts()  # refuses what must not be saved
        self.finish(run, dataset)
        return results

    def _left(self, batches: Iterable[Batch], run: Run) -> Iterator[Batch]:
        """The rows left to run; those before a checkpoint must be the same as then."""
        skip = self.model.rounds if self.model and self.restarts else 0
        for batch in batches:
            done = min(max(skip - self._trail.rounds, 0), len(batch.labels))
            if done:
                self._trail.add(batch.part(slice(0, done)))
                if self._trail.rounds == skip:
                    if self.model and self._trail.digest != self.model.digest:
                        raise self._other_run()
                    self._say(_greeting(run))
            if done < len(batch.labels):
                left = batch.part(slice(done, len(batch.labels)))
                self._trail.add(left)
                yield left
        if self._trail.rounds < skip and not watch.ended_by:
            raise self._other_run()

    def finish(self, run: Run, dataset: Dataset) -> None:
        """Save the pass at its end."""
        model, traits = self.model, dataset.traits
        if model and traits.zero_based and model.features < model.width:
            self._say(
                "the data have a feature 0, which the model never saw: if its features count "
                "from 1 and these from 0, every feature is mistaken for another"
            )
        for path in (self._options.save, self._options.checkpoint):
            if path:
                self._save(path, run, dataset)

    def _save(self, path: str, run: Run, dataset: Dataset) -> None:
        model = model_of(
            run.player,
            dataset.scaler,
            seed=run.seed,
            labels=dataset.labels(),
            positive=dataset.preparation.positive,
            costs=run.costs,
            scale=dataset.preparation.scale,
            features=max(dataset.traits.features, self.model.features if self.model else 0),
            dense=dataset.dense,
            width=dataset.width,
            rounds=self._trail.rounds,
            digest=self._trail.digest,
            data=dataset.name,
            schema=dataset.traits.schema,
        )
        write_atomically(path, to_bytes(model))

    def _other_run(self) -> UserError:
        return UserError(
            "this checkpoint belongs to another run: other data, learner, parameters, number of "
            "rounds or seed",
            code=ExitCode.USAGE,
            place=Place(self._path),
            hint="repeat the command that made it, or delete the file to start from scratch",
        )


def _greeting(run: Run) -> str:
    return f"the run continues after {run.rounds:,} rounds with {run.mistakes:,} mistakes"
