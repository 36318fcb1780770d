"""All learners by name: those of this package, and those of others.

To add one here: write its class in a file of its own, and a line below. Other distributions name
theirs in the entry-point group `ahpatron.learners`; a class in a file is found by
`path/to/file.py:ClassName`; a program registers its own with `register`.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

from ahpatron_cli.core.errors import LearnerLoadError
from ahpatron_cli.core.learners.ahpatron import Ahpatron as Ahpatron
from ahpatron_cli.core.learners.ahpatron_plus import AhpatronPlus as AhpatronPlus
from ahpatron_cli.core.learners.alma2 import Alma as Alma
from ahpatron_cli.core.learners.arow import Arow as Arow
from ahpatron_cli.core.learners.avp import AVP as AVP
from ahpatron_cli.core.learners.base import Learner as Learner
from ahpatron_cli.core.learners.bogd import Bogd as Bogd
from ahpatron_cli.core.learners.bogd_plus_plus import BogdPlusPlus as BogdPlusPlus
from ahpatron_cli.core.learners.bpa_s import BpaS as BpaS
from ahpatron_cli.core.learners.bsgd import BSGD as BSGD
from ahpatron_cli.core.learners.budget_perceptron import BudgetPerceptron as BudgetPerceptron
from ahpatron_cli.core.learners.fogd import FOGD as FOGD
from ahpatron_cli.core.learners.forgetron import Forgetron as Forgetron
from ahpatron_cli.core.learners.krls import KRLS as KRLS
from ahpatron_cli.core.learners.nogd import NOGD as NOGD
from ahpatron_cli.core.learners.norma import Norma as Norma
from ahpatron_cli.core.learners.perceptron import Perceptron as Perceptron
from ahpatron_cli.core.learners.polk import Polk as Polk
from ahpatron_cli.core.learners.pomdr import POMDR as POMDR
from ahpatron_cli.core.learners.projectron import Projectron as Projectron
from ahpatron_cli.core.learners.projectron_plus_plus import ProjectronPlusPlus as ProjectronPlusPlus
from ahpatron_cli.core.learners.rbp import RandomBudgetPerceptron as RandomBudgetPerceptron
from ahpatron_cli.core.learners.silk import Silk as Silk
from ahpatron_cli.core.learners.skegd import SkeGD as SkeGD
from ahpatron_cli.core.learners.tighter_perceptron import TighterPerceptron as TighterPerceptron

GROUP = "ahpatron.learners"
_FILE_MODULE = "ahpatron_learner_"
"""How the modules that are loaded by path are called; the hash of their content follows."""
BUILT_IN: tuple[type[Learner[Any]], ...] = (
    Ahpatron,
    AhpatronPlus,
    Arow,
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
)

Kind: TypeAlias = type[Learner[Any]]
K = TypeVar("K", bound=Kind)


class Registry(Mapping[str, Kind]):
    """Learners by name, those of this package first.

    Entry points are looked up when a name is not known, or all names are asked for; what they point
    to is imported when it is asked for itself. Names of this package take precedence.
    """

    def __init__(self, kinds: tuple[Kind, ...]) -> None:
        self._kinds = {kind.name: kind for kind in kinds}
        self._points: dict[str, metadata.EntryPoint] | None = None

    def __getitem__(self, name: str) -> Kind:
        if name not in self._kinds:
            self._kinds[name] = _load_point(self._entry_points()[name])
        return self._kinds[name]

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._kinds, *self._entry_points()]))

    def __len__(self) -> int:
        return len(list(iter(self)))

    def __contains__(self, name: object) -> bool:
        return name in self._kinds or name in self._entry_points()

    def add(self, kind: Kind) -> None:
        """Register a class under its name, which nobody else has."""
        if kind.name in self and self[kind.name] is not kind:
            raise ValueError(f"there is another learner {kind.name!r} already")
        self._kinds[kind.name] = kind

    def loaded(self) -> list[Kind]:
        """Those that were asked for so far."""
        return list(self._kinds.values())

    def _entry_points(self) -> dict[str, metadata.EntryPoint]:
        if self._points is None:
            self._points = {point.name: point for point in metadata.entry_points(group=GROUP)}
        return self._points


REGISTRY = Registry(BUILT_IN)


def register(kind: K) -> K:
    """Make a learner known by its name in this process; also as a decorator of its class."""
    REGISTRY.add(_checked(kind, kind.__module__))
    return kind


def find_learner(name: str) -> Kind:
    """The learner of this name, or of this `path/to/file.py:ClassName`; else a KeyError."""
    if not is_path(name):
        return REGISTRY[name]
    path, _, class_name = name.rpartition(":")
    return _load_file(path, class_name)


def is_path(name: str) -> bool:
    """Whether this is `path/to/file.py:ClassName` and not a name in the registry."""
    return name.rpartition(":")[0].endswith(".py")


def learner_source(kind: Kind) -> str:
    """Where a class comes from, so that a change of it is noticed.

    `built-in`, the distribution and its version, or the SHA-256 of the file that it is in.
    """
    if kind in BUILT_IN:
        return "built-in"
    for point in metadata.entry_points(group=GROUP):
        if point.dist and f"{kind.__module__}:{kind.__qualname__}" == point.value:
            return f"{point.dist.name} {point.dist.version}"
    file = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if file is None:
        return f"{kind.__module__}.{kind.__qualname__}"
    return f"sha256:{hashlib.sha256(Path(file).read_bytes()).hexdigest()}"


def files_of_others() -> set[str]:
    """The files of the learners that were loaded and are not of this package."""
    names = {kind.__module__ for kind in REGISTRY.loaded() if kind not in BUILT_IN}
    names |= {name for name in sys.modules if name.startswith(_FILE_MODULE)}
    files = (getattr(sys.modules.get(name), "__file__", None) for name in names)
    return {file for file in files if file}


@contextmanager
def _loading(what: str, source: str) -> Iterator[None]:
    """Tell whatever the code of others raises as a fault of theirs."""
    try:
        yield
    except LearnerLoadError:
        raise
    except Exception as error:  # the code of others may raise anything
        message = f"{what} cannot be loaded: {type(error).__name__}: {error}"
        raise LearnerLoadError(message, source) from error


def _load_point(point: metadata.EntryPoint) -> Kind:
    source = f"{point.dist.name} {point.dist.version}" if point.dist else point.value
    with _loading(f"the learner {point.name!r} of {source}", source):
        return _checked(point.load(), source)


def _load_file(path: str, class_name: str) -> Kind:
    """The class, from a module that is imported once for each content of the file."""
    with _loading(f"{path}:{class_name}", path):
        content = Path(path).read_bytes()
        module_name = f"{_FILE_MODULE}{hashlib.sha256(content).hexdigest()[:16]}"
        module = sys.modules.get(module_name)
        if module is None:
            spec = importlib.util.spec_from_file_location(module_name, path)
            assert spec is not None
            assert spec.loader is not None
            module = sys.modules[module_name] = importlib.util.module_from_spec(spec)
            try:
                spec.loader.exec_module(module)
            except BaseException:
                del sys.modules[module_name]
                raise
        return _checked(getattr(module, class_name), path)


def _checked(kind: Any, source: str) -> Kind:
    """A class that the engine can play; else an error that says what it lacks."""
    problem = None
    if not (isinstance(kind, type) and issubclass(kind, Learner)):
        problem = "is no subclass of Learner"
    elif not (isinstance(getattr(kind, "name", None), str) and hasattr(kind, "title")):
        problem = "must have a `name` and a `title`"
    elif "__dataclass_fields__" not in vars(kind):
        problem = "must be a dataclass: put @dataclass before it"
    if problem:
        shown = getattr(kind, "__name__", repr(kind))
        raise LearnerLoadError(f"{shown} of {source} {problem}", source)
    return kind  # type: ignore[no-any-return]  # it was checked
