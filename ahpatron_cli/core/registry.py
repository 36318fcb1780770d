"""Registry of all learners by name, built-in and third-party.

Other distributions declare learners in the entry-point group `ahpatron.learners`. A class in a file
is named as `path/to/file.py:ClassName`. Programs add learners with `register`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ahpatron_cli.core.errors import LearnerLoadError
from ahpatron_cli.core.learners.ahpatron import AVP, Ahpatron, AhpatronPlus
from ahpatron_cli.core.learners.arow import Arow
from ahpatron_cli.core.learners.avp_ogs import AvpOgs
from ahpatron_cli.core.learners.base import Learner
from ahpatron_cli.core.learners.features import FOGD, NOGD, SkeGD
from ahpatron_cli.core.learners.forks import Forks
from ahpatron_cli.core.learners.gradient import BSGD, Bogd, BogdPlusPlus, Norma, Silk
from ahpatron_cli.core.learners.metron import Metron
from ahpatron_cli.core.learners.perceptrons import (
    Alma,
    BpaS,
    BudgetPerceptron,
    Forgetron,
    Perceptron,
    RandomBudgetPerceptron,
    TighterPerceptron,
)
from ahpatron_cli.core.learners.pomdr import POMDR
from ahpatron_cli.core.learners.projections import KRLS, Polk, Projectron, ProjectronPlusPlus

__all__ = [
    "AVP",
    "BSGD",
    "FOGD",
    "KRLS",
    "NOGD",
    "POMDR",
    "REGISTRY",
    "Ahpatron",
    "AhpatronPlus",
    "Alma",
    "Arow",
    "AvpOgs",
    "Bogd",
    "BogdPlusPlus",
    "BpaS",
    "BudgetPerceptron",
    "Forgetron",
    "Forks",
    "Learner",
    "Metron",
    "Norma",
    "Perceptron",
    "Polk",
    "Projectron",
    "ProjectronPlusPlus",
    "RandomBudgetPerceptron",
    "Silk",
    "SkeGD",
    "TighterPerceptron",
    "find_learner",
    "learner_source",
    "register",
]

GROUP = "ahpatron.learners"
GUIDE = "docs/own-learners.md"
Kind: TypeAlias = type[Learner]
K = TypeVar("K", bound=Kind)
BUILT_IN: tuple[Kind, ...] = (
    Ahpatron,
    AhpatronPlus,
    Arow,
    Metron,
    AVP,
    Perceptron,
    Alma,
    Forgetron,
    RandomBudgetPerceptron,
    Projectron,
    ProjectronPlusPlus,
    Bogd,
    BogdPlusPlus,
    FOGD,
    NOGD,
    SkeGD,
    POMDR,
    BudgetPerceptron,
    TighterPerceptron,
    Norma,
    Silk,
    BSGD,
    BpaS,
    KRLS,
    Polk,
    AvpOgs,
    Forks,
)
BUILT_IN_SOURCE = "built-in"
_sources: dict[Kind, str] = dict.fromkeys(BUILT_IN, BUILT_IN_SOURCE)


class Registry(Mapping[str, Kind]):
    """Mapping from names to learner classes: built-in first, then entry points, loaded lazily."""

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}

    @cached_property
    def _points(self) -> dict[str, metadata.EntryPoint]:
        return {point.name: point for point in metadata.entry_points(group=GROUP)}

    def __getitem__(self, name: str) -> Kind:
        if name not in self._kinds:
            self._kinds[name] = _from_entry_point(self._points[name])
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys([*self._kinds, *self._points])
        return iter(names)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._kinds or name in self._points

    def add(self, kind: Kind) -> None:
        """Register a class under its `name`; a ValueError if another class has that name."""
        if kind.name in self and self[kind.name] is not kind:
            raise ValueError(f"there is another learner {kind.name!r} already")
        self._kinds[kind.name] = kind


REGISTRY = Registry(BUILT_IN)


def register(kind: K) -> K:
    """Register a learner class under its `name` in this process; usable as a class decorator."""
    file = _file_of(kind)
    source = _sha256(file) if file else f"{kind.__module__}.{kind.__qualname__}"
    checked = _checked(kind, kind.__module__, source)
    REGISTRY.add(checked)
    return kind


def find_learner(name: str) -> Kind:
    """Learner class by name or by `path/to/file.py:ClassName`; raises KeyError if unknown."""
    if not is_path(name):
        return REGISTRY[name]
    path, _, class_name = name.rpartition(":")
    return _load(name, path, lambda: _from_file(path, class_name))


def is_path(name: str) -> bool:
    """Whether `name` has the form `path/to/file.py:ClassName`."""
    return name.rpartition(":")[0].endswith(".py")


def learner_source(kind: Kind) -> str:
    """Origin of a class: `built-in`, distribution and version, or the SHA-256 of its file."""
    return _sources[kind]


def third_party_files() -> set[str]:
    """Source files of all loaded third-party learners."""
    files = [_file_of(kind) for kind in _sources if kind not in BUILT_IN]
    return {file for file in files if file}


def _file_of(kind: Kind) -> str | None:
    """The source file of a class, if its module has one."""
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None)


def _from_entry_point(point: metadata.EntryPoint) -> Kind:
    """Load the class of an entry point."""
    source = point.value
    if point.dist:
        source = f"{point.dist.name} {point.dist.version}"
    what = f"the learner {point.name!r} of {source}"
    return _load(what, source, lambda: (point.load(), source))


def _from_file(path: str, class_name: str) -> tuple[Any, str]:
    """Load a class and its SHA-256 from a file; the module is cached by the file's content."""
    source = _sha256(path)
    name = f"ahpatron_learner_{source[-16:]}"
    if name not in sys.modules:
        spec: Any = importlib.util.spec_from_file_location(name, path)
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
    return getattr(sys.modules[name], class_name), source


def _sha256(file: str) -> str:
    content = Path(file).read_bytes()
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _load(what: str, place: str, load: Callable[[], tuple[Any, str]]) -> Kind:
    """Load third-party code and check the class; whatever it raises becomes a LearnerLoadError."""
    try:
        kind, source = load()
        return _checked(kind, place, source)
    except LearnerLoadError:
        raise
    except (Exception, SystemExit) as error:  # third-party code may raise anything
        message = f"{what} cannot be loaded: {type(error).__name__}: {error}"
        if isinstance(error, ImportError) and "ahpatron_cli" in str(error):
            message += f"; if it was written for version 0.2, see {GUIDE}"
        raise LearnerLoadError(message, place) from error


def _checked(kind: Any, place: str, source: str) -> Kind:
    """Check that the engine can run a class and record its origin; else a LearnerLoadError."""
    problem = _problem_of(kind)
    if problem:
        shown = getattr(kind, "__name__", repr(kind))
        raise LearnerLoadError(f"{shown} of {place} {problem}", place)
    _sources[kind] = source
    return kind  # type: ignore[no-any-return]  # it was checked


def _problem_of(kind: Any) -> str | None:
    """Why the engine cannot run a class; None if it can."""
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        return "is no subclass of Learner"
    if not (isinstance(getattr(kind, "name", None), str) and hasattr(kind, "title")):
        return "must have a `name` and a `title`"
    if "__dataclass_fields__" not in vars(kind):
        return "must be a dataclass: put @dataclass before it"
    if hasattr(kind, "observe"):
        return f"defines `observe`, which is no longer called; use `next_call`: {GUIDE}"
    has_old_methods = any(hasattr(kind, name) for name in ("wants", "steps", "each_round"))
    if has_old_methods or _parameters_of(kind.update) != ["self", "f", "y", "margin"]:
        return f"is written for version 0.2; it must define update(self, f, y, margin): {GUIDE}"
    return None


def _parameters_of(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters of a function."""
    return list(inspect.signature(function).parameters)
