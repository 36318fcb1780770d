"""From what was typed and what a configuration says to setups, and to the trials of a sweep."""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.learners import find_learner, learner_source
from ahpatron_cli.core.parameters import Declared
from ahpatron_cli.core.rows import Rows
from ahpatron_cli.data.cache import content_hash, default_folder
from ahpatron_cli.data.dataset import WARM_UP, Preparation, load
from ahpatron_cli.data.geometry import median_sigma
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import STDIN_NAME, open_source
from ahpatron_cli.errors import ExitCode, Place, UserError, one_of, suggestion, usage
from ahpatron_cli.records import DataRecord, ParamValue, whole
from ahpatron_cli.runner import LISTING, Setup
from ahpatron_cli.sweep.config import Config, File, read_config
from ahpatron_cli.sweep.grid import (
    Choice,
    Layer,
    choose_learners,
    expand,
    learner_name,
    size_of,
)
from ahpatron_cli.sweep.summary import MISTAKE_RATE, Setting, TrialData
from ahpatron_cli.sweep.trial import Task, Trial, all_params

MOST_TRIALS = 1_000_000
MIN_COST = 1e-6


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
    layer: Layer
    """Choices for all files; those for one file take precedence."""
    typed: Layer
    """Choices on the command line, which take precedence over both."""
    remarks: Sequence[str] = ()
    costs: Mapping[float, float] = field(default_factory=dict)
    """Of examples, by label; others have the cost 1."""

    def tasks(
        self, note: Callable[[str], None], warn: Callable[[str], None], *, metrics: bool = False
    ) -> list[Task]:
        """Every trial once, file by file; files of equal content give equal trials.

        With `metrics`, trials are to measure them.
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
                loaded = load(source, self.preparation, folder=default_folder(), sha256=sha256)
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
                sigma, remark = suggested_sigma(auto, file.path, loaded.first_rows())
                setups = [setup.with_sigma(sigma) for setup in setups]
                note(f"{name}: {remark}")
            record = DataRecord(file.path, facts.rounds, facts.features, facts.labels, sha256)
            done, path = self.preparation, str(Path(file.path).absolute())
            prepared = done.limit, done.scale, done.positive, self.shuffled
            costs = tuple(sorted(self.costs.items()))
            data = TrialData(record, *prepared, auto_sigma=sigma, costs=costs)
            whole = [(setup, all_params(setup), learner_source(setup.kind)) for setup in setups]
            # order by order, so that a sweep cut short is comparable
            for repeat in range(self.repeats):
                for setup, params, source_of in whole:
                    trial = Trial(data, setup, self.seed, repeat, params, source_of)
                    task = Task(trial.id, trial, path, done, metrics)
                    tasks.setdefault(task.id, task)
        return list(tasks.values())

    def check_size(self) -> None:
        """Refuse a sweep that nobody can have meant, before it is written out."""
        trials = self.repeats * sum(
            size_of(learner, self.kernel, self._layers(file))
            for file in self.files
            for learner in self.learners
        )
        if trials > MOST_TRIALS:
            raise usage(f"{trials:,} trials; at most {MOST_TRIALS:,}", "try fewer values at once")

    def _layers(self, file: File) -> list[Layer]:
        return [self.layer, file.layer, self.typed]

    def setups(self, file: File, rounds: int) -> list[Setup]:
        """Every learner and setting for a file of so many rounds."""
        return [
            setup
            for learner in self.learners
            for setup in expand(learner, self.kernel, self._layers(file), rounds)
        ]


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
    costs: Mapping[float, float],
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
    learners = choose_learners(learners or config.learners or ["ahpatron"])
    kernel = one_of("kernel", options["kernel"], KERNELS)
    for layer in (config.layer, *(file.layer for file in config.files)):
        check_names(layer, list(REGISTRY), kernel, every=True)  # also of learners not played now
    typed_choices, more = typed_layer(named, words, learners, kernel)
    positive = options["positive"]
    repeats, shuffle = options["repeats"], options["shuffle"]
    shuffled = repeats > 1 if shuffle is None else shuffle
    preparation = Preparation(
        options["limit"],
        one_of("scale", options["scale"], SCALES),
        parse_label(positive) if isinstance(positive, str) else positive,
        max_features,
        warm_up=not shuffled,
    )
    plan = Plan(
        files=files,
        learners=learners,
        kernel=kernel,
        preparation=preparation,
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
        setups = plan.setups(file, rounds=1000)  # any number shows whether the values are legal
        check_costs(costs, setups)
    return plan


def single_setups(
    learners: Sequence[str], kernel: str, params: Sequence[str], named: Mapping[str, str | None]
) -> tuple[list[Setup], list[str]]:
    """One setup for each learner, as `run` plays them, and remarks on what has no effect.

    `params` are the words after -p; `named` are options such as --budget, None where not given.
    """
    layer, remarks = typed_layer(named, {"-p": params}, learners, one_of("kernel", kernel, KERNELS))
    setups = []
    for learner in learners:
        found = list(expand(learner, kernel, [layer], rounds=None))
        if len(found) > 1:
            hint = "`ahpatron sweep DATA -g NAME=V1,V2 --out FILE.jsonl` tries several"
            raise usage(
                f"{learner_name(learner)} is given {len(found)} settings, and `run` plays one", hint
            )
        setups += found
    return setups, remarks


def typed_layer(
    named: Mapping[str, str | None],
    words: Mapping[str, Sequence[str]],
    learners: Sequence[str],
    kernel: str,
) -> tuple[list[Choice], list[str]]:
    """What the command line chooses, each parameter once, and remarks on what has no effect.

    `words` are those after each flag, such as -p.
    """
    made, remarks = [], []
    for name, text in named.items():
        if text is None:
            continue
        if _owners(name, learners) or name in KERNELS[kernel].specs():
            made.append(Choice(None, name, (text,), f"--{name}"))
        else:
            of_kernels = any(name in kind.specs() for kind in KERNELS.values())
            owner = (
                f"the {kernel} kernel" if of_kernels else " and ".join(map(learner_name, learners))
            )
            remarks.append(f"--{name} has no effect: {owner} has no such parameter")
    for flag, given in words.items():
        typed = [_choice(flag, word, learners) for word in given]
        check_names(typed, learners, kernel)
        made += typed
    seen: dict[tuple[str | None, str], Choice] = {}
    for choice in made:
        before = seen.setdefault((choice.learner, choice.name), choice)
        if before is choice:
            continue
        hint = f"leave out {before.shown} or {choice.shown}"
        if before.shown == choice.shown:
            hint = f"leave out one {choice.shown}"
        if "-g" in words:
            owner = f"{learner_name(choice.learner)}." if choice.learner else ""
            hint = f"give all its values at once: -g {owner}{choice.name}=V1,V2"
        raise usage(f"{choice.name} is given twice", hint)
    return made, remarks


def _choice(flag: str, word: str, learners: Sequence[str]) -> Choice:
    """The choice that `LEARNER.NAME=VALUES` or `NAME=VALUES` spells."""
    left, equals, text = word.partition("=")
    if not equals or not left or not text:
        single = flag == "-p"
        example = "-p ridge=0.01" if single else "-g epsilon=0.5,0.6,0.7"
        form = "NAME=VALUE" if single else "NAME=VALUES"
        raise usage(f"{flag} takes {form}, got {word!r}", f"use for example {example}")
    learner, dot, name = left.rpartition(".")
    if not dot:
        return Choice(None, left, (text,), f"{flag} {left}")
    chosen = {learner_name(one): one for one in learners}
    if learner not in chosen:
        one_of("learner", learner, REGISTRY)
        problem = f"{flag} {left}: {learner} is not among the chosen learners"
        raise usage(problem, f"add -l {learner}")
    return Choice(chosen[learner], name, (text,), f"{flag} {left}")


def check_names(layer: Layer, learners: Sequence[str], kernel: str, *, every: bool = False) -> None:
    """Refuse a parameter that nothing in this sweep has; with `every`, no learner at all."""
    for choice in layer:
        among = [choice.learner] if choice.learner else learners
        kernels = {} if choice.learner else KERNELS[kernel].specs()
        if _owners(choice.name, among) or choice.name in kernels:
            continue
        legal = [*(name for one in among for name in find_learner(one).specs()), *kernels]
        hint = suggestion(choice.name, legal) or LISTING
        if every and not choice.learner:
            raise usage(f"{choice.shown}: no learner or kernel has this parameter", hint)
        others = _owners(choice.name, REGISTRY)
        others += [f"the {one} kernel" for one in KERNELS if choice.name in KERNELS[one].specs()]
        has = f"; {' and '.join(others)} would have it" if others else ""
        raise usage(
            f"{' and '.join(map(learner_name, among))} has no parameter {choice.name!r}{has}", hint
        )


def _owners(name: str, learners: Iterable[str]) -> list[str]:
    """Those of the learners that have a parameter of this name."""
    return [learner for learner in learners if name in find_learner(learner).specs()]


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
    words += ["--limit", str(data.limit)] if data.limit is not None else []
    words += ["--scale", data.scale] if data.scale != "none" else []
    words += ["--positive", str(whole(data.positive))] if data.positive is not None else []
    for word in data.cost_words:
        words += ["--cost", word]
    seeds, repeats = (set(part) for part in zip(*setting.values, strict=True))
    words += ["--repeats", str(max(repeats) + 1)] if max(repeats) else []
    words += ["--seed", str(min(seeds))] if min(seeds) else []
    if data.shuffled != (max(repeats) > 0):
        words.append("--shuffle" if data.shuffled else "--no-shuffle")
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


def suggested_sigma(setup: Setup, path: str, rows: Rows) -> tuple[float, str]:
    """The σ that the first of these rows suggest (--sigma auto), and a note on it."""
    found = median_sigma(rows, setup.kernel)
    if isinstance(found, str):
        raise UserError(
            f"--sigma auto cannot choose: {found}",
            code=ExitCode.BAD_DATA,
            place=Place(path),
            hint="give a number: --sigma S",
        )
    note = f"σ = {found:g}, the median distance between the first {WARM_UP:,} rows (--sigma auto)"
    return found, note


def parse_label(text: str | None) -> float | None:
    """The label after --positive."""
    if text is None:
        return None
    label = _finite(text)
    if label is None:
        raise usage(f"--positive takes a label, which is a number, got {text!r}")
    return label


def parse_costs(words: Sequence[str]) -> dict[float, float]:
    """The costs of examples by label, from words LABEL=W."""
    costs: dict[float, float] = {}
    for word in words:
        left, _, right = word.partition("=")
        label, cost = _finite(left), _finite(right)
        if label is None or cost is None or not MIN_COST <= cost <= 1 / MIN_COST:
            problem = (
                f"--cost requires LABEL=W, W from {MIN_COST:g} to {1 / MIN_COST:g}, got {word!r}"
            )
            raise usage(problem, "for example --cost 1=5")
        if label in costs:
            raise usage(f"--cost {left} is given twice")
        costs[label] = cost
    return costs


def check_costs(costs: Mapping[float, float], setups: Iterable[Setup]) -> None:
    """Refuse costs for a learner that cannot weigh examples."""
    unable = [setup.learner for setup in setups if not setup.kind.takes_costs]
    if costs and unable:
        able = [name for name, kind in REGISTRY.items() if kind.takes_costs]
        hint = f"use one of these: {', '.join(able)}"
        raise usage(f"--cost: {unable[0]} cannot weigh examples", hint)


def _finite(text: str) -> float | None:
    """The finite number that a text spells, if any."""
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def share(tasks: Sequence[Task], part: int, parts: int) -> list[Task]:
    """The part-th (from 0) of N parts: dealt in order of id, which mixes quick and slow trials."""
    chosen = {task.id for task in sorted(tasks, key=lambda task: task.id)[part::parts]}
    return [task for task in tasks if task.id in chosen]
