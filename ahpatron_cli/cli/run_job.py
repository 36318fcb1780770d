"""What a run does, made of its settings: learners, preparation of data, options of passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.runner import RunOptions, Setup
from ahpatron_cli.settings import RunSettings, parts_of
from ahpatron_cli.setups import (
    check_weights,
    parse_threshold,
    parse_weights,
    preparation_of,
    resumed_setup,
    single_setups,
)

if TYPE_CHECKING:
    from ahpatron_cli.model_file import OptionValue


@dataclass(frozen=True)
class RunJob:
    """What `run` does: these learners on these files."""

    paths: Sequence[str]
    setups: Sequence[Setup]
    preparation: Preparation
    options: RunOptions

    @property
    def stream_preparation(self) -> Preparation:
        """How the rows of a stream are prepared; the first ones are waited for if σ needs them."""
        waits = any(setup.auto_sigma for setup in self.setups)
        return replace(
            self.preparation,
            may_lack_labels=True,
            requires_rows=waits or self.preparation.requires_rows,
        )


def job_of(settings: RunSettings, setups: Sequence[Setup], paths: Sequence[str]) -> RunJob:
    """The job that runs these learners on these files."""
    return RunJob(
        paths=paths,
        setups=setups,
        preparation=preparation_of(settings.data, settings.tables, settings.given),
        options=_run_options(settings, setups),
    )


def setups_of(settings: RunSettings, note: Callable[[str], None]) -> list[Setup]:
    """The learners to run with their parameters."""
    if settings.models.resume:
        return [resumed_setup(settings.learning)]
    setups = single_setups(settings.learning, settings.tables, settings.given, note=note)
    theorem = settings.guarantees.theorem
    if theorem is None:
        return setups
    from ahpatron_cli.certify import satisfying

    return satisfying(theorem, setups)


def _run_options(settings: RunSettings, setups: Sequence[Setup]) -> RunOptions:
    """The options of the passes."""
    weights = parse_weights(settings.data, settings.tables)
    check_weights(weights, setups)
    return RunOptions(
        repeats=settings.order.repeats,
        seed=settings.order.seed,
        shuffle=settings.order.permutes,
        jobs=settings.order.jobs,
        metrics=settings.output.metrics,
        window=settings.output.window or 0,
        curve=settings.output.curve is not None,
        weights=weights,
        probability=settings.operating_point.probability,
        threshold=parse_threshold(settings.operating_point.threshold),
        certify=settings.guarantees.certify,
        theorem=settings.guarantees.theorem,
    )


def decisive(settings: RunSettings) -> dict[str, OptionValue]:
    """Values of the options that decide the rounds of a run, without those that are not set.

    The learner is left out: a model has its name and the hash of its file.
    """
    found: dict[str, OptionValue] = {}
    for group, part in parts_of(RunSettings).items():
        for name, option in part.options.items():
            value = getattr(getattr(settings, group), name)
            if option.belongs_to != "call" and name != "learner" and value:
                found[option.saved_as] = sorted(value) if option.is_repeatable else value
    return found
