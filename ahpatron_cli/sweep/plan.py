"""A sweep before it is run: from the command line and a configuration to a list of trials."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import learner_source
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.data.dataset import LAYOUTS, Dataset, Preparation, content_hash, load
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import STDIN_NAME, open_source
from ahpatron_cli.data.tables import TableOptions
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.records import DataRecord, ParamValue
from ahpatron_cli.runner import LearnerSpec, suggested_sigma
from ahpatron_cli.sweep import grid
from ahpatron_cli.sweep.config import Config, File, read_config
from ahpatron_cli.sweep.summary import MISTAKE_RATE, Setting, TrialData
from ahpatron_cli.sweep.trial import Trial, all_params

MOST_TRIALS = 1_000_000


class Job(Struct, frozen=True):
    """A sweep that is asked for, before any file was read."""

    files: Sequence[File]
    learners: Sequence[str]
    kernel: str
    preparation: Preparation
    repeats: int
    seed: int
    shuffled: bool
    layer: grid.Layer
    """Choices for all files; those for one file take precedence."""
    typed: grid.Layer
    """Choices on the command line, which take precedence over both."""
    remarks: Sequence[str] = ()
    costs: Mapping[float | str, float] = {}
    """Of examples, by label; others have the cost 1."""

    def layers(self, file: File) -> list[grid.Layer]:
        """All choices for a file, the weakest first."""
        return [self.layer, file.layer, self.typed]

    def setups(self, file: File, rounds: int) -> Iterator[tuple[LearnerSpec, grid.Texts]]:
        """Every learner and setting for a file of so many rounds."""
        for learner in self.learners:
            yield from grid.expand(learner, self.kernel, self.layers(file), rounds)


def plan(
    job: Job,
    note: Callable[[str], None],
    warn: Callable[[str], None],
    folder: Path | None = None,
    *,
    metrics: bool = False,
) -> list[Trial]:
    """Every trial of a job once, file by file; files of equal content give equal trials.

    The parsed files are kept in `folder`, for the processes that run the trials.
    """
    trials: dict[str, Trial] = {}
    seen: dict[str, str] = {}
    for file in job.files:
        name = Path(file.path).name
        sha256 = content_hash(file.path)
        if sha256 is None:
            raise UserError(
                "a sweep reads its data more than once, so not from a pipe",
                code=ExitCode.NO_INPUT,
                place=Place(file.path),
                hint="save it to a file first",
            )
        twin = seen.setdefault(sha256, file.path)
        if twin != file.path:
            note(f"{file.path} has the same content as {twin}")
        with open_source(file.path) as source:
            loaded = load(source, job.preparation, sha256=sha256)
        loaded.costs(job.costs)  # refuses labels that it does not have
        facts = loaded.facts()
        for remark in facts.notes:
            note(f"{name}: {remark}")
        if facts.sorted_labels and not job.shuffled:
            warn(f"{name}: the labels come sorted; --shuffle takes a random order")
        setups = list(job.setups(file, facts.rounds))
        if auto := next((setup for setup, _ in setups if setup.auto_sigma), None):
            sigma, remark = suggested_sigma(auto, file.path, *loaded.warm_up())
            setups = [(setup.with_sigma(sigma), texts) for setup, texts in setups]
            note(f"{name}: {remark}")
        done = job.preparation
        record = DataRecord(file.path, facts.rounds, facts.features, facts.labels, sha256)
        costs = tuple(sorted(job.costs.items()))
        where = done.limit, done.scale, done.positive, job.shuffled
        data = TrialData(record, *where, costs=costs, table=done.table.words)
        path = str(Path(file.path).absolute())
        mapped = None if folder is None else _kept(loaded, folder / str(len(seen)))
        whole = [(*one, all_params(one[0]), learner_source(one[0].kind)) for one in setups]
        # order by order, so that a sweep cut short is comparable
        for repeat in range(job.repeats):
            for setup, texts, params, kind in whole:
                who = data, setup, job.seed, repeat, params, path, done, texts, kind
                trial = Trial(*who, metrics, mapped)
                trials.setdefault(trial.id, trial)
    return list(trials.values())


def _kept(dataset: Dataset, folder: Path) -> str | None:
    """Keep a parsed file in a new folder; None if the disk is full: then processes parse it."""
    try:
        folder.mkdir(exist_ok=True)
        dataset.save(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return str(folder)


def make_job(
    data: Sequence[str],
    learners: Sequence[str],
    words: Mapping[str, Sequence[str]],
    named: Mapping[str, str | None],
    config_file: str | None,
    options: Mapping[str, Any],
    *,
    typed: Collection[str],
    max_features: int,
    layout: str,
    costs: Mapping[float | str, float],
    table: TableOptions,
) -> Job:
    """Put command line and configuration together; refuse whatever is wrong with them.

    `words` are those after -p and -g; `named` are --budget and the like, which take grids, too.
    Of `options`, a configuration decides those that were not `typed`.
    """
    config = read_config(config_file) if config_file else Config()
    options = {
        name: config.options.get(name, value) if name not in typed else value
        for name, value in options.items()
    }
    files, remarks = config.choose_files(data)
    if not files:
        raise usage("no data files", "name some, or list them in --config FILE")
    if any(file.path in ("-", STDIN_NAME) for file in files):
        hint = "save it to a file first"
        raise usage("a sweep reads its data more than once, so not from standard input", hint)
    learners = grid.choose_learners(learners or config.learners or ["ahpatron"])
    kernel = one_of("kernel", options["kernel"], KERNELS)
    meant = {*learners, *(grid.choose_learners(config.learners))}
    for layer in (config.layer, *(file.layer for file in config.files)):
        # also of learners left out now by -l
        grid.check_names(layer, [*REGISTRY, *meant - set(REGISTRY)], kernel)
        for choice in layer:
            if choice.learner and choice.learner not in meant:
                name = grid.learner_name(choice.learner)
                problem = f"{choice.shown}: {name} is not among the learners of this sweep"
                raise usage(problem, f"add {name} to `learners`, or leave out [learner.{name}]")
    typed_choices, more = grid.typed_layer(named, words, learners, kernel)
    more += grid.own_kernel_remarks(learners, options["scale"], typed_kernel="kernel" in typed)
    positive = options["positive"]
    repeats, shuffle = options["repeats"], options["shuffle"]
    shuffled = repeats > 1 if shuffle is None else shuffle
    if table.label is not None:  # labels of tables have names
        text = None if positive is None else str(positive)
        table, positive = replace(table, positive=text), None
    preparation = Preparation(
        options["limit"],
        one_of("scale", options["scale"], SCALES),
        grid.parse_label(positive) if isinstance(positive, str) else positive,
        max_features,
        layout=one_of("layout", layout, LAYOUTS),
        table=table,
    )
    job = Job(
        files,
        learners,
        kernel,
        preparation,
        repeats=repeats,
        seed=options["seed"],
        shuffled=shuffled,
        layer=config.layer,
        typed=typed_choices,
        remarks=[*remarks, *more],
        costs=costs,
    )
    size = repeats * sum(
        grid.size_of(learner, kernel, job.layers(file)) for file in files for learner in learners
    )
    if size > MOST_TRIALS:  # before it is written out
        raise usage(f"{size:,} trials; at most {MOST_TRIALS:,}", "try fewer values at once")
    for file in files:
        grid.check_costs(costs, (setup for setup, _ in job.setups(file, grid.ANY_ROUNDS)))
    return job


def run_command(data: TrialData, setting: Setting) -> str | None:
    """The `ahpatron run` that repeats a setting on its first order, to which `--save FILE` can be
    added; None for a learner in a file."""
    params = dict(setting.params)
    kernel, kind = str(params.pop("kernel", "")), REGISTRY.get(setting.learner)
    if kind is None or (grid.uses_kernel(kind) and kernel not in KERNELS):
        return None
    kinds: list[type[Declared]] = [KERNELS[kernel], kind] if grid.uses_kernel(kind) else [kind]
    words = ["ahpatron", "run", data.record.path, "-l", setting.learner]
    words += ["--kernel", kernel] if kernel not in ("gaussian", "") else []
    if params.get("horizon") == data.record.rounds:
        del params["horizon"]  # `run` finds it, too
    for one in kinds:
        for name, value in _chosen_params(one, params).items():
            words += [f"--{name}", str(value)] if name in _NAMED else ["-p", f"{name}={value}"]
    for name, text in data.options:
        words += [f"--{name}", text]
    seed = min(seed for seed, _ in setting.values)
    words += ["--seed", str(seed)] if seed else []
    words += ["--shuffle"] if data.shuffled else []
    words += ["--metrics"] if setting.metric is not MISTAKE_RATE else []
    return shlex.join(words)


_NAMED = ("budget", "sigma", "epsilon")
"""Parameters with an option of their own."""


def _chosen_params(kind: type[Declared], params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Those that are neither a default nor follow from the others."""
    chosen: dict[str, ParamValue] = {}
    for name in kind.specs():
        if name in params and kind(**chosen).params().get(name) != params[name]:
            chosen[name] = params[name]
    return chosen


def share(trials: Sequence[Trial], part: int, parts: int) -> list[Trial]:
    """The part-th (from 0) of N parts: dealt in order of id, which mixes quick and slow trials."""
    chosen = {trial.id for trial in sorted(trials, key=lambda trial: trial.id)[part::parts]}
    return [trial for trial in trials if trial.id in chosen]
