"""The trials of a sweep: which there are, and which of them are played."""

from __future__ import annotations

import math
import shlex
import shutil
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import learner_source
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.data.dataset import LAYOUTS, Dataset, Preparation, content_hash, load
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import STDIN_NAME, open_source
from ahpatron_cli.data.tables import TableOptions
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, usage
from ahpatron_cli.numbers import counted
from ahpatron_cli.records import DataRecord, ParamValue, grouped
from ahpatron_cli.runner import Setup, suggested_sigma
from ahpatron_cli.sweep import grid, summary
from ahpatron_cli.sweep.config import Config, File, read_config
from ahpatron_cli.sweep.summary import Criterion, Setting, TrialData, TrialRecord
from ahpatron_cli.sweep.trial import Task, all_params

MOST_TRIALS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """What a sweep is to play, before any file was read."""

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
    costs: Mapping[float | str, float] = field(default_factory=dict)
    """Of examples, by label; others have the cost 1."""

    def tasks(
        self,
        note: Callable[[str], None],
        warn: Callable[[str], None],
        folder: Path | None = None,
        *,
        metrics: bool = False,
    ) -> list[Task]:
        """Every trial once, file by file; files of equal content give equal trials.

        The parsed files are kept in `folder`, for the processes that run the trials.
        """
        tasks: dict[str, Task] = {}
        seen: dict[str, str] = {}
        for file in self.files:
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
                loaded = load(source, self.preparation, sha256=sha256)
            loaded.costs(self.costs)  # refuses labels that it does not have
            facts = loaded.facts()
            for remark in facts.notes:
                note(f"{name}: {remark}")
            if facts.sorted_labels and not self.shuffled:
                warn(f"{name}: the labels come sorted; --shuffle plays a random order")
            setups = self.setups(file, facts.rounds)
            auto = next((setup for setup in setups if setup.auto_sigma), None)
            sigma = None
            if auto:
                sigma, remark = suggested_sigma(auto, file.path, *loaded.warm_up())
                setups = [setup.with_sigma(sigma) for setup in setups]
                note(f"{name}: {remark}")
            done = self.preparation
            data = TrialData(
                DataRecord(file.path, facts.rounds, facts.features, facts.labels, sha256),
                done.limit,
                done.scale,
                done.positive,
                self.shuffled,
                auto_sigma=sigma,
                costs=tuple(sorted(self.costs.items())),
                table=done.table.words,
            )
            where = str(Path(file.path).absolute()), done
            mapped = None if folder is None else _kept(loaded, folder / str(len(seen)))
            whole = [(setup, all_params(setup), learner_source(setup.kind)) for setup in setups]
            # order by order, so that a sweep cut short is comparable
            for repeat in range(self.repeats):
                for setup, params, kind in whole:
                    task = Task(
                        *(data, setup, self.seed, repeat, params, *where, kind, metrics, mapped)
                    )
                    tasks.setdefault(task.id, task)
        return list(tasks.values())

    def check_size(self) -> None:
        """Refuse a sweep that nobody can have meant, before it is written out."""
        trials = self.repeats * sum(
            grid.size_of(learner, self.kernel, self._layers(file))
            for file in self.files
            for learner in self.learners
        )
        if trials > MOST_TRIALS:
            raise usage(f"{trials:,} trials; at most {MOST_TRIALS:,}", "try fewer values at once")

    def _layers(self, file: File) -> list[grid.Layer]:
        return [self.layer, file.layer, self.typed]

    def setups(self, file: File, rounds: int) -> list[Setup]:
        """Every learner and setting for a file of so many rounds."""
        return [
            setup
            for learner in self.learners
            for setup in grid.expand(learner, self.kernel, self._layers(file), rounds)
        ]


def _kept(dataset: Dataset, folder: Path) -> str | None:
    """Keep a parsed file in a new folder; None if the disk is full: then processes parse it."""
    try:
        folder.mkdir(exist_ok=True)
        dataset.save(folder)
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    return str(folder)


def make_plan(
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
) -> Plan:
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
    for layer in (config.layer, *(file.layer for file in config.files)):
        # also of learners not played now
        grid.check_names(layer, list(REGISTRY), kernel, every=True)
    typed_choices, more = grid.typed_layer(named, words, learners, kernel)
    positive = options["positive"]
    repeats, shuffle = options["repeats"], options["shuffle"]
    shuffled = repeats > 1 if shuffle is None else shuffle
    if table.label is not None:  # labels of tables have names
        name = None if positive is None else str(positive)
        table, positive = msgspec.structs.replace(table, positive=name), None
    preparation = Preparation(
        options["limit"],
        one_of("scale", options["scale"], SCALES),
        grid.parse_label(positive) if isinstance(positive, str) else positive,
        max_features,
        layout=one_of("layout", layout, LAYOUTS),
        table=table,
    )
    plan = Plan(
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
    plan.check_size()
    for file in files:
        grid.check_costs(costs, plan.setups(file, grid.ANY_ROUNDS))
    return plan


def run_command(data: TrialData, setting: Setting) -> str | None:
    """The `ahpatron run` that plays a setting of a sweep again; None for a learner in a file."""
    params = dict(setting.params)
    kernel = str(params.pop("kernel", ""))
    if setting.learner not in REGISTRY or kernel not in KERNELS:
        return None
    words = ["ahpatron", "run", data.record.path, "-l", setting.learner]
    words += ["--kernel", kernel] if kernel != "gaussian" else []
    if params.get("horizon") == data.record.rounds:
        del params["horizon"]  # `run` finds it, too
    for kind in (KERNELS[kernel], REGISTRY[setting.learner]):
        for name, value in _chosen_params(kind, params).items():
            words += [f"--{name}", str(value)] if name in _NAMED else ["-p", f"{name}={value}"]
    for name, text in data.options:
        words += [f"--{name}", text]
    seeds, repeats = (set(part) for part in zip(*setting.values, strict=True))
    words += ["--repeats", str(max(repeats) + 1)] if max(repeats) else []
    words += ["--seed", str(min(seeds))] if min(seeds) else []
    if data.shuffled != (max(repeats) > 0):
        words.append("--shuffle" if data.shuffled else "--no-shuffle")
    words += ["--metrics"] if setting.metric is not summary.MISTAKE_RATE else []
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


def share(tasks: Sequence[Task], part: int, parts: int) -> list[Task]:
    """The part-th (from 0) of N parts: dealt in order of id, which mixes quick and slow trials."""
    chosen = {task.id for task in sorted(tasks, key=lambda task: task.id)[part::parts]}
    return [task for task in tasks if task.id in chosen]


# Which trials of a grid are played ---------------------------------------------------------------

KEPT = 3
"""One of so many settings is kept, and plays so many times as many rounds."""
FEWEST_ROUNDS = 500
"""Of the shortest prefix: fewer say little."""


def rungs(settings: int, rounds: int) -> Iterator[tuple[int, int]]:
    """Rounds of each prefix, and how many settings are kept after it; none for few settings."""
    by_settings = round(math.log(max(settings, 1), KEPT), 9)
    by_rounds = round(math.log(max(rounds / FEWEST_ROUNDS, 1), KEPT), 9)
    for left in range(int(min(by_settings, by_rounds)), 0, -1):
        settings = math.ceil(settings / KEPT)
        yield math.ceil(rounds / KEPT**left), settings


@dataclass(frozen=True)
class Search:
    """A grid, and how the best of its settings are sought.

    Successive halving plays all settings of a learner on the first rounds of each order, keeps the
    best third, plays these on three times as many rounds, and so on; the last few are played in
    full. With tuning orders only the best setting is played on the other orders. What comes next
    follows from the results alone, so the same command goes on after anything.
    """

    tasks: Sequence[Task]
    """The whole grid on all orders."""
    criterion: Criterion
    halving: bool = False
    staged: bool = True
    """Whether settings that lost on the tuning orders are spared the others."""

    def needed(self, known: Mapping[str, TrialRecord]) -> list[Task]:
        """The trials that these results ask for, with those that are among them already."""
        if not self.halving and not (self.staged and self.criterion.tune_orders):
            return list(self.tasks)
        return [task for group in self.groups() for task in self._needed(group, known)]

    def groups(self) -> list[list[list[Task]]]:
        """The orders of each setting, for each learner on each data set."""
        groups = grouped(self.tasks, lambda task: (*task.data.identity, task.setup.learner))
        return [grouped(some, lambda task: tuple(sorted(task.params.items()))) for some in groups]

    def unhalved(self) -> list[str]:
        """For each learner and data set that halving plays in full: their sizes, in words.

        One setting of a learner among others that are halved is not worth a word.
        """
        found, some = [], False
        for group in self.groups() if self.halving else ():
            trial = group[0][0]
            rounds = trial.data.record.rounds
            if list(rungs(len(group), rounds)):
                some = True
                continue
            sizes = f"{counted(len(group), 'setting')}, {counted(rounds, 'round')}"
            text = f"{trial.setup.learner} on {trial.data.record.path} ({sizes})"
            found.append((len(group), text))
        return [text for settings, text in found if settings > 1 or not some]

    def _needed(
        self, settings: Sequence[list[Task]], known: Mapping[str, TrialRecord]
    ) -> Iterator[Task]:
        """Those of one learner on one data set; `settings` are the orders of each."""
        tune = self.criterion.tune_orders

        def played(stage: Sequence[Sequence[Task]]) -> bool:
            return all(task.id in known for task in chain(*stage))

        def best_first(stage: Sequence[Sequence[Task]]) -> list[int]:
            """Settings that failed on some orders come later, those that failed on all last."""
            done = [[known[task.id] for task in some if known[task.id].run] for some in stage]
            ranks = [summary.rank(some, self.criterion.metric) for some in done]
            return sorted(range(len(stage)), key=ranks.__getitem__)

        left = [[task for task in some if not tune or task.repeat < tune] for some in settings]
        orders = list(settings)
        rounds = settings[0][0].data.record.rounds
        for prefix, kept in rungs(len(settings), rounds) if self.halving else ():
            stage = [[task.on_prefix(prefix) for task in some] for some in left]
            yield from chain(*stage)
            if not played(stage):
                return
            best = sorted(best_first(stage)[:kept])
            left, orders = [left[number] for number in best], [orders[number] for number in best]
        yield from chain(*left)
        if tune and played(left):
            yield from (task for task in orders[best_first(left)[0]] if task.repeat >= tune)


def spared(search: Search, known: Mapping[str, TrialRecord]) -> float:
    """The share of the rounds of the whole grid that were played neither now nor earlier."""
    total = sum(_rounds(task) for task in search.tasks)
    played = {task.id: task for task in search.tasks if task.id in known}
    played |= {task.id: task for task in search.needed(known)}
    return 1 - sum(map(_rounds, played.values())) / total


def _rounds(task: Task) -> int:
    data = task.data
    return data.prefix or data.record.rounds
