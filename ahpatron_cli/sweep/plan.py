"""Planning of a sweep: from a job to a list of trials."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import learner_source
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.data.dataset import content_hash, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.runner import params_of, with_sigma
from ahpatron_cli.sweep import grid
from ahpatron_cli.sweep.config import Job
from ahpatron_cli.sweep.summary import MISTAKE_RATE, Setting, TrialData
from ahpatron_cli.sweep.trial import Trial


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
    options, done = job.options, grid.preparation(job.options)
    costs = grid.parse_costs(options)
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
        dataset.costs(costs)  # refuses unknown labels
        facts = dataset.facts()
        setups = list(job.setups(path, facts.rounds))
        notes = list(facts.notes)
        specs = with_sigma([spec for spec, _ in setups], dataset, notes.append)
        for text in notes:
            note(f"{Path(path).name}: {text}")
        if facts.sorted_labels and not options["shuffle"]:
            warn(f"{Path(path).name}: the rows are sorted by label; --shuffle permutes them")
        mapped = folder / str(number)
        try:
            mapped.mkdir()
            dataset.save(mapped)
        except OSError:  # disk full: the processes parse the file themselves
            shutil.rmtree(mapped, ignore_errors=True)
        data = TrialData(
            *(path, facts.rounds, facts.features, facts.labels, sha256),
            *(done.limit, done.scale, done.positive, options["shuffle"]),
            costs=tuple(sorted(costs.items())),
            table=done.table.words,
        )
        where = str(Path(path).absolute()), done
        first = [
            Trial(
                *(data, spec, options["seed"], 0, params_of(*spec.build()), *where, texts),
                *(learner_source(spec.kind), metrics, str(mapped)),
            )
            for spec, (_, texts) in zip(specs, setups, strict=True)
        ]
        # permutation by permutation, so that results of an interrupted sweep are comparable
        for repeat, one in product(range(options["repeats"]), first):
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
