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
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import is_path
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, suggestion, usage
from ahpatron_cli.sweep.grid import Choice, Layer, learner_name, own_learner

_TYPES: Mapping[str, tuple[type, str]] = {
    "kernel": (str, "a word"),
    "repeats": (int, "a whole number"),
    "seed": (int, "a whole number"),
    "shuffle": (bool, "true or false"),
    "limit": (int, "a whole number"),
    "scale": (str, "a word"),
    "positive": (float, "a number"),
}
"""Keys that stand for the option of the same name."""
_LEAST = {"repeats": 1, "seed": 0, "limit": 1}
_KEYS = (*_TYPES, "data", "learners", "grid", "learner")
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

        A file is known by its path, or else by its name, with or without .gz, .bz2 or .xz. What is
        remarkable about that is said.
        """
        if not given:
            return self.files, []
        chosen, remarks = [], []
        for path in given:
            same = [file for file in self.files if _real(file.path) == _real(path)]
            alike = same or [file for file in self.files if _bare(file.path) == _bare(path)]
            if len(alike) > 1:
                names = " and ".join(file.path for file in alike)
                raise usage(f"{path} could be {names} of --config", "name it by the same path")
            chosen.append(File(path, alike[0].layer if alike else ()))
            if not alike and any(file.layer for file in self.files):
                remarks.append(f"--config has no settings for {path}: it is played without any")
        return chosen, remarks


def _real(path: str) -> str:
    return os.path.realpath(path)


def _bare(path: str) -> str:
    name = Path(path)
    return name.stem if name.suffix in (".gz", ".bz2", ".xz") else name.name


def read_config(path: str) -> Config:
    """Read a sweep from TOML; every unknown key is refused, with what may have been meant."""
    try:
        with Path(path).open("rb") as stream:
            document = tomllib.load(stream)
    except OSError as error:
        raise UserError(
            f"the configuration cannot be read: {error.strerror}",
            code=ExitCode.NO_INPUT,
            place=Place(path),
            hint=similar_name(path) if isinstance(error, FileNotFoundError) else None,
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise _fault(path, f"this is not TOML: {error}") from None
    return _Reader(path).config(document)


def _fault(path: str, problem: str, hint: str | None = None) -> UserError:
    return UserError(problem, code=ExitCode.USAGE, place=Place(path), hint=hint)


class _Reader:
    """Checks a document key by key."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._own: dict[str, str] = {}
        """The paths of the user's own learners, by name."""

    def config(self, document: Mapping[str, Any]) -> Config:
        self._refuse_unknown("key", document, _KEYS)
        options = {key: self._option(key, document[key]) for key in _TYPES if key in document}
        learners = document.get("learners", [])
        if not isinstance(learners, list):
            raise _fault(self._path, "learners must be a list of names")
        chosen = [self._learner(str(name)) for name in learners]
        self._own = {learner_name(one): one for one in chosen if is_path(one)}
        data = document.get("data", [])
        if not isinstance(data, list):
            raise _fault(self._path, "data must be a list of files")
        files = [self._file(one) for one in data]
        return Config(files, chosen, options, self._layer(document, ""))

    def _option(self, key: str, value: Any) -> Any:
        kind, noun = _TYPES[key]
        right = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
        if not right and not (kind is float and type(value) is int):
            raise _fault(self._path, f"{key} must be {noun}, got {value!r}")
        if value < _LEAST.get(key, value):
            raise _fault(self._path, f"{key} must be at least {_LEAST[key]}, got {value}")
        if kind is float and not math.isfinite(value):
            raise _fault(self._path, f"{key} must be a finite number, got {value}")
        if key == "scale":
            self._refuse_unknown("scale", [value], SCALES)
        if key == "kernel":
            self._refuse_unknown("kernel", [value], KERNELS)
        return float(value) if kind is float else value

    def _learner(self, name: str) -> str:
        """A name in the registry, `all`, or the path of a file beside the configuration."""
        if is_path(name):
            return own_learner(self._beside(name))
        self._refuse_unknown("learner", [name], (*REGISTRY, "all"))
        return name

    def _file(self, entry: Any) -> File:
        if isinstance(entry, str):
            return File(self._beside(entry))
        if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
            raise _fault(self._path, f"an entry of data needs a path, got {entry!r}")
        self._refuse_unknown("key of [[data]]", entry, _DATA_KEYS)
        return File(self._beside(entry["path"]), self._layer(entry, f"{entry['path']}: "))

    def _beside(self, path: str) -> str:
        """Relative to the configuration, so that it does not matter where cron starts."""
        return str(Path(self._path).parent / path)

    def _layer(self, table: Mapping[str, Any], where: str) -> Layer:
        grid, learners = table.get("grid", {}), table.get("learner", {})
        if not isinstance(grid, dict) or not isinstance(learners, dict):
            raise _fault(self._path, f"{where}grid and learner must be tables")
        made = [self._choice(None, name, value, f"{where}grid") for name, value in grid.items()]
        self._refuse_unknown("learner", learners, (*REGISTRY, *self._own))
        for learner, params in learners.items():
            if not isinstance(params, dict):
                raise _fault(self._path, f"{where}learner.{learner} must be a table")
            place = f"{where}learner.{learner}"
            owner = self._own.get(learner, learner)
            made += [self._choice(owner, name, value, place) for name, value in params.items()]
        return made

    def _choice(self, learner: str | None, name: str, value: Any, where: str) -> Choice:
        texts = []
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, bool) or not isinstance(one, int | float | str):
                raise _fault(self._path, f"{where}.{name} must be numbers or words, got {one!r}")
            texts.append(str(one))
        if not texts:
            raise _fault(self._path, f"{where}.{name} has no values")
        return Choice(learner, name, tuple(texts), f"{self._path}: {where}.{name}")

    def _refuse_unknown(self, what: str, names: Iterable[str], legal: Iterable[str]) -> None:
        words = list(legal)
        for name in names:
            if name not in words:
                hint = suggestion(name, words) or f"one of {', '.join(words)}"
                raise _fault(self._path, f"unknown {what} {name!r}", hint)
