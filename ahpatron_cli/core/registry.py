"""Registry of all learners by name, built-in and third-party.

Other distributions declare learners in the entry-point group `ahpatron.learners`. A class in a file
is named as `path/to/file.py:ClassName`. Programs add learners with `register`.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from ahpatron_cli.core.errors import LearnerLoadError, NoClassError
from ahpatron_cli.core.learners.base import Learner

if TYPE_CHECKING:  # they are imported when they are asked for
    from importlib import metadata

    from ahpatron_cli.core.learners.ahpatron import AVP, Ahpatron, AhpatronPlus
    from ahpatron_cli.core.learners.arow import Arow
    from ahpatron_cli.core.learners.avp_ogs import AvpOgs
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
BUILT_IN = {
    "ahpatron": "ahpatron:Ahpatron",
    "ahpatron+": "ahpatron:AhpatronPlus",
    "arow": "arow:Arow",
    "metron": "metron:Metron",
    "avp": "ahpatron:AVP",
    "perceptron": "perceptrons:Perceptron",
    "alma2": "perceptrons:Alma",
    "forgetron": "perceptrons:Forgetron",
    "rbp": "perceptrons:RandomBudgetPerceptron",
    "projectron": "projections:Projectron",
    "projectron++": "projections:ProjectronPlusPlus",
    "bogd": "gradient:Bogd",
    "bogd++": "gradient:BogdPlusPlus",
    "fogd": "features:FOGD",
    "nogd": "features:NOGD",
    "skegd": "features:SkeGD",
    "pomdr": "pomdr:POMDR",
    "budget-perceptron": "perceptrons:BudgetPerceptron",
    "tighter-perceptron": "perceptrons:TighterPerceptron",
    "norma": "gradient:Norma",
    "silk": "gradient:Silk",
    "bsgd": "gradient:BSGD",
    "bpa-s": "perceptrons:BpaS",
    "krls": "projections:KRLS",
    "polk": "projections:Polk",
    "avp-ogs": "avp_ogs:AvpOgs",
    "forks": "forks:Forks",
}
"""The built-in learners by name: module and class, imported when they are asked for.

Importing all of them would take a tenth of the start of `ahpatron run`.
"""
BUILT_IN_SOURCE = "built-in"
_LEARNERS = f"{__package__}.learners"
_sources: dict[Kind, str] = {}
"""Origins of learners that are not built in."""


class Registry(Mapping[str, Kind]):
    """Mapping from names to learner classes: built-in first, then entry points, loaded lazily."""

    def __init__(self, built_in: Mapping[str, str]) -> None:
        self._built_in = built_in
        self._kinds: dict[str, Kind] = {}

    @cached_property
    def _points(self) -> dict[str, metadata.EntryPoint]:
        from importlib import metadata  # lazy: slow to import

        points = metadata.entry_points(group=GROUP)
        return {point.name: point for point in points}

    def __getitem__(self, name: str) -> Kind:
        kind = self._kinds.get(name)
        if kind is None:
            if name in self._built_in:
                kind = _built_in(self._built_in[name])
            else:
                kind = _from_entry_point(self._points[name])
            self._kinds[name] = kind
        return kind

    def __iter__(self) -> Iterator[str]:
        names = dict.fromkeys([*self._built_in, *self._kinds, *self._points])
        return iter(names)

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        if name in self._built_in or name in self._kinds:
            return True
        return name in self._points

    def add(self, kind: Kind) -> None:
        """Register a class under its `name`; a ValueError if another class has that name."""
        if kind.name in self and self[kind.name] is not kind:
            raise ValueError(f"there is another learner {kind.name!r} already")
        self._kinds[kind.name] = kind


REGISTRY = Registry(BUILT_IN)


def register(kind: K) -> K:
    """Register a learner class under its `name` in this process; usable as a class decorator."""
    file = _file_of(kind)
    source = f"{kind.__module__}.{kind.__qualname__}"
    if file:
        source = _sha256(file)
    checked = _checked(kind, kind.__module__, source)
    REGISTRY.add(checked)
    return kind


def find_learner(name: str) -> Kind:
    """Learner class by name or by `path/to/file.py:ClassName`; raises KeyError if unknown."""
    if not is_path(name):
        return REGISTRY[name]
    path, class_name = path_and_class(name)
    return _load(name, path, lambda: _from_file(path, class_name))


def is_path(name: str) -> bool:
    """Whether `name` has the form `path/to/file.py:ClassName`, or is a file without a class."""
    path, _ = path_and_class(name)
    return path.endswith(".py")


def path_and_class(name: str) -> tuple[str, str]:
    """The two parts of `path/to/file.py:ClassName`; no class of `path/to/file.py`."""
    if name.endswith(".py"):
        return name, ""
    path, _, class_name = name.rpartition(":")
    return path, class_name


def learner_source(kind: Kind) -> str:
    """Origin of a class: `built-in`, distribution and version, or the SHA-256 of its file."""
    if kind.__module__.rpartition(".")[0] == _LEARNERS:
        return BUILT_IN_SOURCE
    return _sources[kind]


def third_party_files() -> set[str]:
    """Source files of all loaded third-party learners."""
    files = map(_file_of, _sources)
    return {file for file in files if file}


def _file_of(kind: Kind) -> str | None:
    """The source file of a class, if its module has one."""
    module = sys.modules.get(kind.__module__)
    return getattr(module, "__file__", None)


def _built_in(value: str) -> Kind:
    """A built-in class, of `module:Class`."""
    module, _, class_name = value.partition(":")
    imported = importlib.import_module(f"{_LEARNERS}.{module}")
    kind: Kind = getattr(imported, class_name)
    return kind


if not TYPE_CHECKING:  # type checkers have the imports above

    def __getattr__(name: str) -> Kind:
        """A built-in class by its name, as in `from ahpatron_cli.core import Arow`."""
        for value in BUILT_IN.values():
            if value.endswith(f":{name}"):
                return _built_in(value)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
    classes = vars(sys.modules[name])
    if class_name not in classes:
        known = [own for own, value in classes.items() if _is_learner_of(value, name)]
        problem = f"has no class {class_name!r}" if class_name else "needs the name of a class"
        found = f"the learners in it are: {', '.join(known)}" if known else "no learner is in it"
        raise NoClassError(f"{path} {problem}; {found}", path, tuple(known))
    return classes[class_name], source


def _is_learner_of(value: object, module: str) -> bool:
    """Whether this is a learner that is defined in a module."""
    return isinstance(value, type) and issubclass(value, Learner) and value.__module__ == module


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
        reason = f"{type(error).__name__}: {error}"
        message = f"{what} cannot be loaded: {reason}"
        if isinstance(error, ImportError) and "ahpatron_cli" in str(error):
            message += f"; if it was written for version 0.2, see {GUIDE}"
        raise LearnerLoadError(message, place) from error


def _checked(kind: object, place: str, source: str) -> Kind:
    """Check that the engine can run a class and record its origin; else a LearnerLoadError."""
    problem = _problem_of(kind)
    if problem or not isinstance(kind, type):
        shown = getattr(kind, "__name__", repr(kind))
        raise LearnerLoadError(f"{shown} of {place} {problem}", place)
    _sources[kind] = source
    return kind


def _problem_of(kind: object) -> str | None:
    """Why the engine cannot run a class; None if it can."""
    if not isinstance(kind, type) or not issubclass(kind, Learner):
        return "is no subclass of Learner"
    name = getattr(kind, "name", None)
    if not isinstance(name, str) or not hasattr(kind, "title"):
        return 'must have a `name` and a `title`, such as name = "mine" and title = "My learner"'
    if "__dataclass_fields__" not in vars(kind):
        return "must be a dataclass: put @dataclass before it"
    if hasattr(kind, "observe"):
        return f"defines `observe`, which is no longer called; use `next_call`: {GUIDE}"
    old_methods = [name for name in ("wants", "steps", "each_round") if hasattr(kind, name)]
    parameters = _parameters_of(kind.update)
    if old_methods or parameters != ["self", "f", "y", "margin"]:
        return f"is written for version 0.2; it must define update(self, f, y, margin): {GUIDE}"
    return None


def _parameters_of(function: Callable[..., Any]) -> list[str]:
    """Names of the parameters of a function."""
    return list(inspect.signature(function).parameters)
