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

import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import is_path
from ahpatron_cli.core.parameters import Spec
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.sweep.grid import Choice, Layer, learner_name, own_learner

_WORDS = {"kernel": KERNELS, "scale": SCALES}
_NUMBERS = {
    "repeats": Spec(int, "R", "orders", at_least=1),
    "seed": Spec(int, "", "of the orders", at_least=0),
    "limit": Spec(int, "", "rows of each file", at_least=1),
    "positive": Spec(float, "", "the label of +1"),
}
_OPTIONS = (*_WORDS, *_NUMBERS, "shuffle")
"""Keys that stand for the option of the same name."""
_KEYS = (*_OPTIONS, "data", "learners", "grid", "learner")
_DATA_KEYS = ("path", "grid", "learner")


@dataclass(frozen=True)
class File:
    """A data file of the sweep, and the choices that hold for it alone."""

    path: str
    layer: Layer = ()


@dataclass(frozen=True)
class Config:
    """What the file says; command-line options take precedence."""

    files: list[File] = field(default_factory=list)
    learners: list[str] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    layer: Layer = ()

    def choose_files(self, given: Sequence[str]) -> tuple[list[File], list[str]]:
        """The files on the command line, with the choices made for them here; or our own.

        A file is known by its path, or else by its name, with or without .gz, .bz2 or .xz. Also
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
                remarks.append(f"--config has no settings for {path}: it is played without any")
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
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        place = Place(path)
        raise UserError(f"this is not TOML: {error}", code=ExitCode.USAGE, place=place) from None
    except UserError as fault:
        fault.place = fault.place or Place(path)
        raise


def _config(document: Mapping[str, Any], path: str) -> Config:
    folder = Path(path).parent  # so that it does not matter where cron starts
    for key in document:
        one_of("key", key, _KEYS)
    learners = []
    for name in map(str, _list(document, "learners", "names")):
        if is_path(name):
            learners.append(own_learner(str(folder / name)))
        else:
            learners.append(one_of("learner", name, (*REGISTRY, "all")))
    own = {learner_name(one): one for one in learners if is_path(one)}
    files = []
    for entry in _list(document, "data", "files"):
        one = {"path": entry} if isinstance(entry, str) else entry
        if not isinstance(one, dict) or not isinstance(one.get("path"), str):
            raise usage(f"an entry of data needs a path, got {entry!r}")
        for key in one:
            one_of("key of [[data]]", key, _DATA_KEYS)
        layer = _layer(one, path, f"{one['path']}: ", own)
        files.append(File(str(folder / one["path"]), layer))
    options = {key: _option(key, document[key]) for key in _OPTIONS if key in document}
    return Config(files, learners, options, _layer(document, path, "", own))


def _list(document: Mapping[str, Any], key: str, of: str) -> list[Any]:
    found = document.get(key, [])
    if not isinstance(found, list):
        raise usage(f"{key} must be a list of {of}")
    return found


def _option(key: str, value: Any) -> Any:
    if key in _WORDS:
        return one_of(key, str(value), _WORDS[key])
    if key == "shuffle":
        if isinstance(value, bool):
            return value
        raise usage(f"shuffle must be true or false, got {value!r}")
    try:
        return _NUMBERS[key].check(value if isinstance(value, int | float) else str(value))
    except ValueError as error:
        raise usage(f"{key} {error}") from None


def _layer(table: Mapping[str, Any], path: str, where: str, own: Mapping[str, str]) -> Layer:
    """The choices of a table; `own` are the paths of the user's own learners, by name."""
    grid, learners = table.get("grid", {}), table.get("learner", {})
    if not isinstance(grid, dict) or not isinstance(learners, dict):
        raise usage(f"{where}grid and learner must be tables")
    owners: list[tuple[str | None, str, Any]] = [(None, f"{where}grid", grid)]
    for name, params in learners.items():
        one_of("learner", name, (*REGISTRY, *own))
        owners.append((own.get(name, name), f"{where}learner.{name}", params))
    made = []
    for owner, place, params in owners:
        if not isinstance(params, dict):
            raise usage(f"{place} must be a table")
        for name, value in params.items():
            texts = value if isinstance(value, list) else [value]
            for one in texts:
                if isinstance(one, bool) or not isinstance(one, int | float | str):
                    raise usage(f"{place}.{name} must be numbers or words, got {one!r}")
            if not texts:
                raise usage(f"{place}.{name} has no values")
            made.append(Choice(owner, name, tuple(map(str, texts)), f"{path}: {place}.{name}"))
    return made
