"""The job of a sweep: its command line and configuration file (`--config sweep.toml`).

For example:

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

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from msgspec import DecodeError, Meta, Struct, ValidationError, toml

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.registry import is_path
from ahpatron_cli.data.source import similar_name
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.runner import Setup
from ahpatron_cli.sweep import grid
from ahpatron_cli.sweep.grid import Choice, Layer, learner_name, own_learner

MOST_TRIALS = 1_000_000
ANY_ROUNDS = 1000
"""Placeholder for T when only the legality of values is checked."""

_Value: TypeAlias = int | float | str
_Params: TypeAlias = dict[str, _Value | Annotated[list[_Value], Meta(min_length=1)]]


class Grids(Struct, frozen=True, forbid_unknown_fields=True):
    """The tables [grid] (all learners) and [learner.NAME] (one learner)."""

    grid: _Params = {}
    learner: dict[str, _Params] = {}


class Entry(Grids, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An entry [[data]]: a file with its own grids."""

    path: str


class Document(Grids, frozen=True, forbid_unknown_fields=True):
    """The content of a configuration file; options that it does not set are None."""

    data: list[str | Entry] = []
    learners: list[str] = []
    kernel: str | None = None
    scale: str | None = None
    repeats: Annotated[int, Meta(ge=1)] | None = None
    seed: Annotated[int, Meta(ge=0)] | None = None
    limit: Annotated[int, Meta(ge=1)] | None = None
    positive: Annotated[float, Meta(ge=-1e300, le=1e300)] | None = None
    shuffle: bool | None = None


OPTIONS = ("kernel", "scale", "repeats", "seed", "limit", "positive", "shuffle")


class Job(Struct, frozen=True):
    """Specification of a sweep, before any data file is read."""

    files: Mapping[str, Layer] = {}
    """Paths of the data files, with parameter values for this file only."""
    learners: Sequence[str] = ()
    options: Mapping[str, Any] = {}
    """Values of options, by name."""
    given: Collection[str] = ()
    """Names of the options that were given on the command line or in the configuration."""
    layer: Layer = ()
    """Parameter values for all files."""
    typed: Layer = ()
    """Parameter values given on the command line, which override all others."""

    def setups(self, path: str, rounds: int) -> Iterator[Setup]:
        """All settings of all learners for a file with `rounds` rounds."""
        layers = [self.layer, self.files[path], self.typed]
        for learner in self.learners:
            yield from grid.expand(learner, self.options["kernel"], layers, rounds)

    def choose_files(self, given: Sequence[str]) -> Mapping[str, Layer]:
        """The files given on the command line, with their settings from here; else all files.

        A file is matched by its path, else by its name, with or without .gz, .bz2 or .xz.
        """
        by_path: dict[Path, list[str]] = {}
        by_name: dict[str, list[str]] = {}
        for one in self.files:
            by_path.setdefault(Path(one).resolve(), []).append(one)
            by_name.setdefault(_bare(one), []).append(one)
        chosen: dict[str, Layer] = {}
        for path in given:
            alike = by_path.get(Path(path).resolve()) or by_name.get(_bare(path), [])
            if len(alike) > 1:
                names = " and ".join(alike)
                raise usage(f"{path} could be {names} of --config", "name it by the same path")
            chosen[path] = self.files[alike[0]] if alike else ()
        return chosen or self.files


def _bare(path: str) -> str:
    name = Path(path)
    return name.stem if name.suffix in (".gz", ".bz2", ".xz") else name.name


def read_config(path: str) -> Job:
    """Read a sweep from a TOML file; unknown keys are refused."""
    code, hint, folder = ExitCode.USAGE, None, Path(path).parent  # not the current folder
    try:
        document = toml.decode(Path(path).read_bytes(), type=Document)
        learners = [
            own_learner(str(folder / name)) if is_path(name) else name for name in document.learners
        ]
        own = {learner_name(one): one for one in learners if is_path(one)}
        entries = (Entry(path=one) if isinstance(one, str) else one for one in document.data)
        files = {
            str(folder / one.path): _layer(one, f"{path}: {one.path}: ", own) for one in entries
        }
        options = {name: getattr(document, name) for name in OPTIONS}
        given = {name: value for name, value in options.items() if value is not None}
        layer = _layer(document, f"{path}: ", own)
        return Job(files, learners, options=given, given=[*given], layer=layer)
    except UserError as fault:
        fault.place = fault.place or Place(path)
        raise
    except OSError as error:
        problem, code = f"the configuration cannot be read: {error.strerror}", ExitCode.NO_INPUT
        hint = similar_name(path) if isinstance(error, FileNotFoundError) else None
    except ValidationError as error:
        problem, _, where = str(error).partition(" - at `$.")
        if "unknown field" in problem:
            hint = f"the keys are {', '.join(Document.__struct_fields__)}; of [[data]] also path"
        problem = f"{where.rstrip('`')}: {problem}" if where else problem
    except (DecodeError, UnicodeDecodeError) as error:
        problem = f"this is not TOML: {error}"
    raise UserError(problem, code=code, place=Place(path), hint=hint)


def _layer(grids: Grids, where: str, own: Mapping[str, str]) -> Layer:
    """Parameter values from the grids; `own` maps names of the user's learners to paths."""
    tables: list[tuple[str | None, str, _Params]] = [(None, "grid", grids.grid)]
    for name, params in grids.learner.items():
        one_of("learner", name, (*REGISTRY, *own))
        tables.append((own.get(name, name), f"learner.{name}", params))
    return [
        Choice(owner, name, tuple(map(str, value if isinstance(value, list) else [value])),
               f"{where}{table}.{name}")
        for owner, table, params in tables
        for name, value in params.items()
    ]  # fmt: skip


def make_job(
    options: Mapping[str, Any], given: Collection[str], note: Callable[[str], None]
) -> Job:
    """Combine command line and configuration file to a `Job`; a usage error if they are invalid.

    `options` are the values of all options of `sweep`; the configuration sets those that are not
    `given` on the command line.
    """
    config = read_config(options["config"]) if options["config"] else Job()
    unset = {name: value for name, value in config.options.items() if name not in given}
    options = {**options, **unset}
    if options["shuffle"] is None:
        options["shuffle"] = options["repeats"] > 1
    files = config.choose_files(options["data"] or ())
    if not files or "-" in files:
        raise usage("a sweep requires data files", "name some, or list them in --config FILE")
    meant = grid.choose_learners(config.learners)
    set_by_user = {*given, *config.given}
    learners = grid.choose_learners(options["learner"] or ()) or meant
    learners = learners or [grid.default_learner(options, set_by_user)]
    kernel = one_of("kernel", options["kernel"], KERNELS)
    for layer in (config.layer, *config.files.values()):
        # includes learners that -l leaves out
        grid.check_names(layer, [*REGISTRY, *meant], kernel)
        for choice in layer:
            if choice.learner and choice.learner not in {*learners, *meant}:
                name = learner_name(choice.learner)
                problem = f"{choice.shown}: {name} is not among the learners of this sweep"
                raise usage(problem, f"add {name} to `learners`, or leave out [learner.{name}]")
    typed = grid.typed_layer(options, given, learners, kernel, note)
    job = Job(files, learners, options, set_by_user, config.layer, typed)
    count = 0
    for path in files:  # check that all values are legal
        setups = list(job.setups(path, ANY_ROUNDS))
        grid.check_costs(grid.parse_costs(options), setups)
        count += options["repeats"] * len(setups)
    if count > MOST_TRIALS:
        raise usage(f"{count:,} trials; at most {MOST_TRIALS:,}", "try fewer values at once")
    return job
