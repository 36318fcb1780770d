"""`--config sweep.toml`: a whole sweep in one file.

data = ["a.svm", "b.svm"]          # relative to this file
learners = ["ahpatron", "bogd++"]
repeats = 10

[grid]                             # of every learner that has the parameter
budget = [100, 200, 400]

[learner.ahpatron]                 # of one learner
epsilon = "0.5:0.9:0.1"

[[data]]                           # in place of the list above: a file with its own grids
path = "a.svm"
grid = { sigma = 2 }
learner.fogd = { features = 300 }
"""

from __future__ import annotations

import math
import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import Meta, Struct, ValidationError, convert

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import is_path
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.sweep.grid import Choice, Layer, learner_name, own_learner

_Value: TypeAlias = int | float | str
_VALUES: Any = _Value | Annotated[list[_Value], Meta(min_length=1)]
_Params: TypeAlias = dict[str, Any]


class Grids(Struct, frozen=True):
    """The grids of all learners and of single ones."""

    grid: _Params = {}
    learner: dict[str, _Params] = {}


class Entry(Grids, frozen=True, kw_only=True):
    """An entry [[data]]."""

    path: str


class Document(Grids, frozen=True):
    """The file; of keys that are options, None stands for those that it does not set."""

    data: list[str | Entry] = []
    learners: list[str] = []
    kernel: str | None = None
    scale: str | None = None
    repeats: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0)] | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    positive: float | None = None
    shuffle: bool | None = None


OPTIONS = ("kernel", "scale", "repeats", "seed", "limit", "positive", "shuffle")


class File(Struct, frozen=True):
    """A data file of the sweep, and the choices that hold for it alone."""

    path: str
    layer: Layer = ()


class Config(Struct, frozen=True):
    """A configuration; command-line options take precedence."""

    files: Sequence[File] = ()
    learners: Sequence[str] = ()
    options: Mapping[str, Any] = {}
    layer: Layer = ()

    def choose_files(self, given: Sequence[str]) -> tuple[Sequence[File], list[str]]:
        """The files on the command line, with the choices made for them here; or our own.

        A file is found by its path, or else by its name, with or without .gz, .bz2 or .xz. Also
        remarks on files without choices.
        """
        if not given:
            return self.files, []
        chosen, remarks = [], []
        for path in given:
            real = os.path.realpath(path)
            same = [file for file in self.files if os.path.realpath(file.path) == real]
            alike = same or [file for file in self.files if _bare(file.path) == _bare(path)]
            if len(alike) > 1:
                names = " and ".join(file.path for file in alike)
                raise usage(f"{path} could be {names} of --config", "name it by the same path")
            chosen.append(File(path, alike[0].layer if alike else ()))
            if not alike and any(file.layer for file in self.files):
                remarks.append(f"--config has no settings for {path}: it is run without any")
        return chosen, remarks


def _bare(path: str) -> str:
    name = Path(path)
    return name.stem if name.suffix in (".gz", ".bz2", ".xz") else name.name


def read_config(path: str) -> Config:
    """Read a sweep from TOML; every unknown key is refused, with what may have been meant."""
    try:
        with Path(path).open("rb") as stream:
            return _config(tomllib.load(stream), path)
    except OSError as error:
        raise UserError(
            f"the configuration cannot be read: {error.strerror}",
            code=ExitCode.NO_INPUT,
            place=Place(path),
            hint=similar_name(path) if isinstance(error, FileNotFoundError) else None,
        ) from None
    except ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        for theirs, ours in {"`array`": "a list", "`object`": "a table", " | null": ""}.items():
            problem = problem.replace(theirs, ours)
        raise UserError(f"{where.rstrip('`')}: {problem}", place=Place(path)) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UserError(f"this is not TOML: {error}", place=Place(path)) from None
    except UserError as fault:
        fault.place = fault.place or Place(path)
        raise


def _config(content: Mapping[str, Any], path: str) -> Config:
    folder = Path(path).parent  # so that it does not matter where cron starts
    for key in content:
        one_of("key", key, Document.__struct_fields__)
    entries = content.get("data", [])
    for entry in entries if isinstance(entries, list) else ():
        for key in entry if isinstance(entry, dict) else ():
            one_of("key of [[data]]", key, Entry.__struct_fields__)
    document = convert(content, Document)
    options = {name: value for name in OPTIONS if (value := getattr(document, name)) is not None}
    for name, legal in {"kernel": KERNELS, "scale": SCALES}.items():
        one_of(name, options.get(name, next(iter(legal))), legal)
    if not math.isfinite(options.get("positive", 0)):
        raise usage("positive must be a finite number")
    learners = [
        own_learner(str(folder / name)) if is_path(name) else
        one_of("learner", name, (*REGISTRY, "all")) for name in document.learners
    ]  # fmt: skip
    own = {learner_name(one): one for one in learners if is_path(one)}
    files = [
        File(str(folder / one.path), _layer(one, f"{path}: {one.path}: ", own))
        for one in (Entry(path=one) if isinstance(one, str) else one for one in document.data)
    ]
    return Config(files, learners, options, _layer(document, f"{path}: ", own))


def _layer(grids: Grids, where: str, own: Mapping[str, str]) -> Layer:
    """The choices of a table; `own` are the paths of the user's own learners, by name."""
    owners: list[tuple[str | None, str, _Params]] = [(None, "grid", grids.grid)]
    for name, params in grids.learner.items():
        one_of("learner", name, (*REGISTRY, *own))
        owners.append((own.get(name, name), f"learner.{name}", params))
    layer = []
    for owner, place, params in owners:
        for name, value in params.items():
            shown = f"{where}{place}.{name}"
            try:
                values = convert(value, _VALUES)
            except ValidationError:
                raise usage(f"{shown} must be a number, a word, or a list of these") from None
            texts = tuple(map(str, values if isinstance(values, list) else [values]))
            layer.append(Choice(owner, name, texts, shown))
    return layer
