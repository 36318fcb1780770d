"""From what was typed and what a configuration says to the trials of a sweep."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ahpatron_cli.cli.config import Config, File, read_config
from ahpatron_cli.cli.grid import Choice, Layer, check_names, choices, expand, size_of
from ahpatron_cli.cli.parameters import choose_learners, parse_label
from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.data.dataset import Facts, Preparation
from ahpatron_cli.data.scaling import SCALES
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.errors import one_of, usage
from ahpatron_cli.records import DataRecord
from ahpatron_cli.runner import Setup
from ahpatron_cli.sweep.summary import TrialData
from ahpatron_cli.sweep.trial import Trial, all_params

MOST_TRIALS = 1_000_000


@dataclass(frozen=True)
class Asked:
    """The command line."""

    data: Sequence[str]
    learners: Sequence[str]
    grid: Sequence[str]
    params: Sequence[str]
    named: Mapping[str, str | None]
    """--budget and the like; they take grids too."""
    config: str | None
    options: Mapping[str, Any]
    """Options that a configuration may also set, with their defaults."""
    typed: set[str]
    """Those of them that were given."""
    max_features: int


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
    layers: Sequence[Layer]
    """Choices for all files; later ones go before earlier ones."""
    typed: Layer
    """Choices on the command line; they go before those of a file, too."""
    remarks: Sequence[str] = ()

    def trials(self, file: File, facts: Facts, setups: Sequence[Setup]) -> Iterator[Trial]:
        """All trials on one file: order by order, so that a sweep cut short is comparable."""
        record = DataRecord(file.path, facts.rounds, facts.features, facts.labels, facts.sha256)
        done = self.preparation
        data = TrialData(record, done.limit, done.scale, done.positive, self.shuffled)
        whole = [(setup, all_params(setup)) for setup in setups]
        for repeat in range(self.repeats):
            for setup, params in whole:
                yield Trial(data, setup, self.seed, repeat, params)

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
        return [*self.layers, file.layer, self.typed]

    def setups(self, file: File, rounds: int) -> list[Setup]:
        """Every learner and setting for a file of so many rounds."""
        return [
            setup
            for learner in self.learners
            for setup in expand(learner, self.kernel, self._layers(file), rounds)
        ]


def make_plan(asked: Asked) -> Plan:
    """Put command line and configuration together; whatever is wrong with them is said now."""
    config = read_config(asked.config) if asked.config else Config()
    options = {
        name: config.options.get(name, value) if name not in asked.typed else value
        for name, value in asked.options.items()
    }
    files, remarks = config.choose_files(asked.data)
    if not files:
        raise usage("no data files", "name some, or list them in --config FILE")
    if any(file.path in ("-", STDIN_NAME) for file in files):
        hint = "save it to a file first"
        raise usage("a sweep reads its data more than once, so not from standard input", hint)
    learners = choose_learners(asked.learners or config.learners or ["ahpatron"])
    kernel = one_of("kernel", options["kernel"], KERNELS)
    for layer in (config.layer, *(file.layer for file in config.files)):
        check_names(layer, list(REGISTRY), kernel, every=True)  # also of learners not played now
    typed, more = _typed_choices(asked, learners, kernel)
    positive = options["positive"]
    repeats, shuffle = options["repeats"], options["shuffle"]
    shuffled = repeats > 1 if shuffle is None else shuffle
    preparation = Preparation(
        options["limit"],
        one_of("scale", options["scale"], SCALES),
        parse_label(positive) if isinstance(positive, str) else positive,
        asked.max_features,
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
        layers=[config.layer],
        typed=typed,
        remarks=[*remarks, *more],
    )
    plan.check_size()
    for file in files:
        plan.setups(file, rounds=1000)  # any number will do to see whether the values are legal
    return plan


def _typed_choices(
    asked: Asked, learners: Sequence[str], kernel: str
) -> tuple[Layer, Sequence[str]]:
    grid = choices("-g", asked.grid, learners)
    params = choices("-p", asked.params, learners)
    check_names([*grid, *params], learners, kernel)
    named, remarks = [], []
    for name, text in asked.named.items():
        if text is None:
            continue
        choice = Choice(None, name, (text,), f"--{name}")
        has = any(name in REGISTRY[learner].specs() for learner in learners)
        if has or name in KERNELS[kernel].specs():
            named.append(choice)
        else:
            remarks.append(f"--{name} has no effect: no learner or kernel here has it")
    made = [*named, *params, *grid]
    seen = {(choice.learner, choice.name) for choice in made}
    if len(seen) < len(made):
        raise usage("a parameter is given twice", "put all its values into one -g NAME=V1,V2")
    return made, remarks
