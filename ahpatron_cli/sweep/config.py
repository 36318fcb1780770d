"""The job of a sweep: its command line and configuration file (`--config sweep.toml`).

For example:

data = ["a.svm", "b.svm"]          # relative to this file
learners = ["ahpatron", "bogd++"]
repeats = 10                       # an option, as on the command line

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

import dataclasses
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, NamedTuple, TypeAlias

import msgspec
from msgspec import DecodeError, Meta, Struct, ValidationError, toml

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.registry import is_path
from ahpatron_cli.data.source import PACKINGS, similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.grid import Choice, Layer, expand
from ahpatron_cli.runner import Setup
from ahpatron_cli.settings import Option, SweepSettings, parts_of
from ahpatron_cli.setups import (
    check_names,
    check_weights,
    choose_learners,
    default_learner,
    learner_name,
    own_learner,
    parse_weight_grid,
    typed_layer,
)

MOST_TRIALS = 1_000_000
ANY_ROUNDS = 1000
"""Placeholder for T when only the legality of values is checked."""

_Value: TypeAlias = int | float | str
_Values: TypeAlias = Annotated[list[_Value], Meta(min_length=1)]
_Params: TypeAlias = dict[str, _Value | _Values]


class Grids(Struct, frozen=True, forbid_unknown_fields=True):
    """The tables [grid] (all learners) and [learner.NAME] (one learner)."""

    grid: _Params = {}
    learner: dict[str, _Params] = {}


class Entry(Grids, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry [[data]]: a file with its own grids."""

    path: str


class Document(Grids, frozen=True, forbid_unknown_fields=True):
    """The content of a configuration file, without options."""

    data: list[str | Entry] = []
    learners: list[str] = []


@dataclass(frozen=True)
class Config:
    """What a configuration file says."""

    files: Mapping[str, Layer] = dataclasses.field(default_factory=dict)
    """Paths of the data files, with parameter values for this file only."""
    learners: Sequence[str] = ()
    settings: SweepSettings = SweepSettings()  # noqa: RUF009 - it cannot change
    """Options of `sweep`; `given` names those that the file has."""
    layer: Layer = ()
    """Parameter values for all files."""

    def choose_files(self, given: Sequence[str]) -> Mapping[str, Layer]:
        """The files given on the command line, with their settings from here; else all files.

        A file is matched by its path, else by its name, with or without .gz, .bz2 or .xz.
        """
        by_path = _grouped(self.files, _resolved)
        by_name = _grouped(self.files, _bare)
        chosen: dict[str, Layer] = {}
        for path in given:
            alike = by_path.get(_resolved(path), [])
            if not alike:
                alike = by_name.get(_bare(path), [])
            if len(alike) > 1:
                names = " and ".join(alike)
                problem = f"{path} could be {names} of --config"
                raise usage(problem, "name it by the same path")
            chosen[path] = ()
            for one in alike:
                chosen[path] = self.files[one]
        return chosen or self.files


@dataclass(frozen=True)
class SweepJob:
    """Specification of a sweep, before any data file is read."""

    files: Mapping[str, Layer]
    """Paths of the data files, with parameter values for this file only."""
    learners: Sequence[str]
    settings: SweepSettings
    """Options of the command line and of the configuration."""
    layer: Layer
    """Parameter values for all files."""
    typed: Layer
    """Parameter values given on the command line, which override all others."""

    def setups(self, path: str, rounds: int) -> Iterator[Setup]:
        """All settings of all learners for a file with `rounds` rounds."""
        layers = [self.layer, self.files[path], self.typed]
        kernel = self.settings.learning.kernel
        for learner in self.learners:
            yield from expand(learner, kernel, layers, rounds=rounds)


# Reading a configuration --------------------------------------------------------------------------


def _grouped(paths: Iterable[str], key: Callable[[str], str]) -> dict[str, list[str]]:
    """The paths with each key."""
    groups: dict[str, list[str]] = {}
    for path in paths:
        alike = groups.setdefault(key(path), [])
        alike.append(path)
    return groups


def _resolved(path: str) -> str:
    """An absolute path without symbolic links."""
    return str(Path(path).resolve())


def _bare(path: str) -> str:
    """The name of a file, without .gz, .bz2 or .xz."""
    name = Path(path)
    if name.suffix in PACKINGS:
        return name.stem
    return name.name


class _Key(NamedTuple):
    """What a key of a configuration file sets."""

    group: str
    """The field of `SweepSettings` that has the option."""
    option: Option


def _keys() -> dict[str, _Key]:
    """The options that a configuration may set, by key.

    Parameters of learners are in [grid]; results and outputs belong to the command line.
    """
    parts = parts_of(SweepSettings)
    kernel = parts["learning"].options["kernel"]
    found = {"kernel": _Key("learning", kernel)}
    for group in ("data", "tables", "order"):
        options = parts[group].options
        for name, option in options.items():
            meant = _Key(group, option)
            found[name] = meant
            for old in option.old_names:
                key = old.lstrip("-").replace("-", "_")
                found[key] = meant
    return found


def read_config(path: str) -> Config:
    """Read a sweep from a TOML file; unknown keys are refused."""
    try:
        text = Path(path).read_bytes()
        content: dict[str, object] = toml.decode(text)
        options = {}
        for key in _keys():
            if key in content:
                options[key] = content.pop(key)
        document = msgspec.convert(content, Document)
        return _config(path, document, _settings(options))
    except UserError as fault:
        fault.place = fault.place or Place(path)
        raise
    except OSError as error:
        problem = f"the configuration cannot be read: {error.strerror}"
        hint = similar_name(path) if isinstance(error, FileNotFoundError) else None
        place = Place(path)
        raise UserError(problem, code=ExitCode.NO_INPUT, place=place, hint=hint) from None
    except ValidationError as error:
        raise _illegal(path, str(error)) from None
    except (DecodeError, UnicodeDecodeError) as error:
        raise UserError(f"this is not TOML: {error}", place=Place(path)) from None


def _illegal(path: str, message: str) -> UserError:
    """The error for a document that msgspec refuses with this message."""
    problem, _, where = message.partition(" - at `$.")
    hint = None
    if "unknown field" in problem:
        keys = [*Document.__struct_fields__, *_keys()]
        listed = ", ".join(keys)
        hint = f"the keys are {listed}; of [[data]] also path"
    if where:
        place = where.rstrip("`")
        problem = f"{place}: {problem}"
    return UserError(problem, place=Place(path), hint=hint)


def _config(path: str, document: Document, settings: SweepSettings) -> Config:
    """The configuration of a document; paths in it are relative to its folder."""
    folder = Path(path).parent
    learners = []
    own = {}
    for name in document.learners:
        learner = name
        if is_path(name):
            place = str(folder / name)
            learner = own_learner(place)
            own[learner_name(learner)] = learner
        learners.append(learner)
    files = {}
    for one in document.data:
        entry = Entry(path=one) if isinstance(one, str) else one
        file = str(folder / entry.path)
        where = f"{path}: {entry.path}: "
        files[file] = _layer(entry, where, own)
    layer = _layer(document, f"{path}: ", own)
    return Config(files=files, learners=learners, settings=settings, layer=layer)


def _layer(grids: Grids, where: str, own: Mapping[str, str]) -> Layer:
    """Parameter values from the grids; `own` maps names of the user's learners to paths."""
    choices = _choices(grids.grid, None, f"{where}grid")
    known = (*REGISTRY, *own)
    for name, params in grids.learner.items():
        one_of("learner", name, known)
        learner = own.get(name, name)
        table = f"{where}learner.{name}"
        choices += _choices(params, learner, table)
    return choices


def _choices(params: _Params, learner: str | None, table: str) -> list[Choice]:
    """The parameter values of a table, of one learner or of all."""
    choices = []
    for name, value in params.items():
        values = value if isinstance(value, list) else [value]
        choice = Choice(
            learner=learner,
            name=name,
            texts=tuple(map(str, values)),
            shown=f"{table}.{name}",
        )
        choices.append(choice)
    return choices


def _settings(content: Mapping[str, object]) -> SweepSettings:
    """The options of a configuration."""
    settings = SweepSettings()
    keys = _keys()
    for key, value in content.items():
        group, option = keys[key]
        change = {option.name: _checked(key, option, value)}
        before = getattr(settings, group)
        changed = dataclasses.replace(before, **change)
        given = settings.given | {option.name}
        groups = {group: changed}
        settings = dataclasses.replace(settings, given=given, **groups)
    return settings


def _checked(key: str, option: Option, value: object) -> object:
    """A value of a configuration as its group has it; a usage error if it is illegal."""
    if option.legal and isinstance(value, str):
        one_of(key, value, option.legal)
    is_boolean = isinstance(value, bool)
    if option.takes_text and isinstance(value, int | float) and not is_boolean:
        if not math.isfinite(value):
            raise usage(f"{key} takes a finite number, got {value}")
        return str(value)
    try:
        checked = msgspec.convert(value, option.type)
    except ValidationError as error:
        raise usage(f"{key}: {error}") from None
    fault = option.fault_of(checked) if option.is_integer else None
    if fault is not None:
        raise usage(f"{key} {fault}")
    return checked


# The job ------------------------------------------------------------------------------------------


def make_job(
    paths: Sequence[str], settings: SweepSettings, note: Callable[[str], None]
) -> SweepJob:
    """The job of a command line and its configuration file; a usage error if it is invalid."""
    config = Config()
    if settings.sweep.config:
        config = read_config(settings.sweep.config)
    merged = _merged(settings, config.settings)
    files = config.choose_files(paths)
    if not files or "-" in files:
        raise usage("a sweep requires data files", "name some, or list them in --config FILE")
    one_of("kernel", merged.learning.kernel, KERNELS)
    meant = choose_learners(config.learners)
    learners = choose_learners(merged.learning.learner) or meant
    if not learners:
        learners = [default_learner(merged.learning, merged.tables, merged.given)]
    _check_layers(config, learners, meant, kernel=merged.learning.kernel)
    job = SweepJob(
        files=files,
        learners=learners,
        settings=merged,
        layer=config.layer,
        typed=typed_layer(merged.learning, settings.given, learners, note=note, several=True),
    )
    _check_trials(job)
    return job


def _merged(typed: SweepSettings, config: SweepSettings) -> SweepSettings:
    """The settings of the command line, with those of the configuration that it does not give."""
    merged = dataclasses.replace(typed, given=typed.given | config.given)
    taken = config.given - typed.given
    for group, part in parts_of(SweepSettings).items():
        configured = getattr(config, group)
        values = {}
        for name in part.options:
            if name in taken:
                values[name] = getattr(configured, name)
        own = getattr(typed, group)
        changed = dataclasses.replace(own, **values)
        merged = dataclasses.replace(merged, **{group: changed})
    return merged


def _check_layers(
    config: Config, learners: Sequence[str], meant: Sequence[str], *, kernel: str
) -> None:
    """Refuse unknown parameters in a configuration, also of learners that -l leaves out."""
    known = [*REGISTRY, *meant]
    of_sweep = {*learners, *meant}
    for layer in (config.layer, *config.files.values()):
        check_names(layer, known, kernel)
        for choice in layer:
            learner = choice.learner
            if learner is None or learner in of_sweep:
                continue
            name = learner_name(learner)
            problem = f"{choice.shown}: {name} is not among the learners of this sweep"
            hint = f"add {name} to `learners`, or leave out [learner.{name}]"
            raise usage(problem, hint)


def _check_trials(job: SweepJob) -> None:
    """Check that all values are legal, and that there are not too many."""
    settings = job.settings
    weights = parse_weight_grid(settings.data, settings.tables)
    combinations = math.prod(map(len, weights.values()))
    each = settings.order.repeats * combinations
    count = 0
    for path in job.files:
        setups = list(job.setups(path, ANY_ROUNDS))
        check_weights(weights, setups)
        count += each * len(setups)
    if count > MOST_TRIALS:
        problem = f"{count:,} trials; at most {MOST_TRIALS:,}"
        raise usage(problem, "try fewer values at once")
