"""Planning of a sweep: from the command line and a configuration to a list of trials."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import learner_source
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.data.dataset import Preparation, content_hash, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.runner import LearnerSpec, params_of, with_sigma
from ahpatron_cli.sweep import grid
from ahpatron_cli.sweep.config import Config, read_config
from ahpatron_cli.sweep.summary import MISTAKE_RATE, Setting, TrialData
from ahpatron_cli.sweep.trial import Trial

MOST_TRIALS = 1_000_000
ANY_ROUNDS = 1000
"""Placeholder for T when only the legality of values is checked."""


class Job(Struct, frozen=True):
    """Specification of a sweep, before any file is read."""

    files: Mapping[str, grid.Layer]
    """Paths of the data files, with parameter values for this file only."""
    learners: Sequence[str]
    kernel: str
    preparation: Preparation
    repeats: int
    seed: int
    shuffled: bool
    layer: grid.Layer
    """Parameter values for all files."""
    typed: grid.Layer
    """Parameter values given on the command line, which override all others."""
    costs: Mapping[float | str, float]
    """Weights of examples by label (--cost); other labels have weight 1."""

    def setups(self, path: str, rounds: int) -> Iterator[tuple[LearnerSpec, Mapping[str, str]]]:
        """All settings of all learners for a file with `rounds` rounds, as returned by `expand`."""
        layers = [self.layer, self.files[path], self.typed]
        for learner in self.learners:
            yield from grid.expand(learner, self.kernel, layers, rounds)


def make_job(
    options: Mapping[str, Any], given: Collection[str], warn: Callable[[str], None]
) -> Job:
    """Combine command line and configuration file to a `Job`; a usage error if they are invalid.

    `options` are the values of all options of `sweep`; the configuration sets those that are not
    `given` on the command line.
    """
    config = read_config(options["config"]) if options["config"] else Config()
    unset = {name: value for name, value in config.options.items() if name not in given}
    options = {**options, **unset}
    files = config.choose_files(options["data"] or ())
    if not files or "-" in (options["data"] or ()):
        raise usage("a sweep requires data files", "name some, or list them in --config FILE")
    meant = grid.choose_learners(config.learners)
    learners = grid.choose_learners(options["learner"] or ()) or meant or ["ahpatron"]
    kernel = one_of("kernel", options["kernel"], KERNELS)
    for layer in (config.layer, *config.files.values()):
        # includes learners that -l leaves out
        grid.check_names(layer, [*REGISTRY, *meant], kernel)
        for choice in layer:
            if choice.learner and choice.learner not in {*learners, *meant}:
                name = grid.learner_name(choice.learner)
                problem = f"{choice.shown}: {name} is not among the learners of this sweep"
                raise usage(problem, f"add {name} to `learners`, or leave out [learner.{name}]")
    repeats, shuffle = options["repeats"], options["shuffle"]
    job = Job(
        files,
        learners,
        kernel,
        grid.preparation(options),
        repeats,
        options["seed"],
        repeats > 1 if shuffle is None else shuffle,
        config.layer,
        grid.typed_layer(options, given, learners, kernel, warn),
        grid.parse_costs(options),
    )
    count = 0
    for path in files:  # check that all values are legal
        setups = [setup for setup, _ in job.setups(path, ANY_ROUNDS)]
        grid.check_costs(job.costs, setups)
        count += repeats * len(setups)
    if count > MOST_TRIALS:
        raise usage(f"{count:,} trials; at most {MOST_TRIALS:,}", "try fewer values at once")
    return job


def plan(
    job: Job,
    folder: Path,
    note: Callable[[str], None],
    warn: Callable[[str], None],
    *,
    metrics: bool = False,
) -> list[Trial]:
    """All trials of a job without duplicates, file by file; equal contents give equal trials.

    The parsed files are stored in `folder` for the worker processes.
    """
    trials: dict[str, Trial] = {}
    seen: dict[str, str] = {}
    done, costs = job.preparation, tuple(sorted(job.costs.items()))
    for number, path in enumerate(job.files):
        sha256 = content_hash(path)
        if sha256 is None:
            problem = "a sweep reads its data more than once, so not from a pipe"
            hint, place = "save it to a file first", Place(path)
            raise UserError(problem, code=ExitCode.NO_INPUT, place=place, hint=hint)
        twin = seen.setdefault(sha256, path)
        if twin != path:
            note(f"{path} has the same content as {twin}")
        with open_source(path) as source:
            dataset = load(source, done, sha256=sha256)
        dataset.costs(job.costs)  # refuses unknown labels
        facts = dataset.facts()
        setups = list(job.setups(path, facts.rounds))
        notes = list(facts.notes)
        specs = with_sigma([spec for spec, _ in setups], dataset, notes.append)
        for text in notes:
            note(f"{Path(path).name}: {text}")
        if facts.sorted_labels and not job.shuffled:
            warn(f"{Path(path).name}: the rows are sorted by label; --shuffle permutes them")
        mapped = folder / str(number)
        try:
            mapped.mkdir()
            dataset.save(mapped)
        except OSError:  # disk full: the processes parse the file themselves
            shutil.rmtree(mapped, ignore_errors=True)
        data = TrialData(
            *(path, facts.rounds, facts.features, facts.labels, sha256),
            *(done.limit, done.scale, done.positive, job.shuffled),
            costs=costs,
            table=done.table.words,
        )
        where = str(Path(path).absolute()), done
        first = [
            Trial(
                *(data, spec, job.seed, 0, params_of(*spec.build()), *where, texts),
                *(learner_source(spec.kind), metrics, str(mapped)),
            )
            for spec, (_, texts) in zip(specs, setups, strict=True)
        ]
        # permutation by permutation, so that results of an interrupted sweep are comparable
        for repeat, one in product(range(job.repeats), first):
            trial = replace(one, repeat=repeat)
            trials.setdefault(trial.id, trial)
    return list(trials.values())


def run_command(data: TrialData, setting: Setting) -> str | None:
    """The `ahpatron run` command that repeats a setting on its first permutation (`--save FILE` can
    be added); None for a learner in a file."""
    params, kind = dict(setting.params), REGISTRY.get(setting.learner)
    kernel = str(params.pop("kernel", ""))
    if kind is None or (kind.own_kernel is None and kernel not in KERNELS):
        return None
    if params.get("horizon") == data.rounds:
        del params["horizon"]  # `run` computes it itself
    words = ["ahpatron", "run", data.path, "-l", setting.learner]
    words += ["--kernel", kernel] if kernel not in ("gaussian", "") else []
    kinds: list[type[Declared]] = [KERNELS[kernel], kind] if kernel in KERNELS else [kind]
    for one in kinds:
        chosen: dict[str, Any] = {}  # parameters that differ from their defaults
        for name in one.specs():
            if name in params and one(**chosen).params().get(name) != params[name]:
                chosen[name] = params[name]
        for name, value in chosen.items():
            named = name in ("budget", "sigma", "epsilon")
            words += [f"--{name}", str(value)] if named else ["-p", f"{name}={value}"]
    for name, text in data.options:
        words += [f"--{name}", text]
    seed = min(seed for seed, _ in setting.values)
    words += ["--seed", str(seed)] if seed else []
    words += ["--shuffle"] if data.shuffled else []
    words += ["--metrics"] if setting.metric is not MISTAKE_RATE else []
    return shlex.join(words)
