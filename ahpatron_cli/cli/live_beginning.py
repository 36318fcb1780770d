"""What a live stream begins with: a state that agrees with the options, a model, or nothing."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ahpatron_cli.cli.run_job import RunJob
from ahpatron_cli.cli.session import no_learner
from ahpatron_cli.core.errors import ParameterError, StateError
from ahpatron_cli.core.registry import find_learner
from ahpatron_cli.data.dataset import StreamedRows
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.live.service import Service
from ahpatron_cli.live.state_file import StateFile
from ahpatron_cli.model_file import Model, OptionValue, damaged, load_model
from ahpatron_cli.runner import Run, begin, with_sigma
from ahpatron_cli.settings import all_options, alternatives

if TYPE_CHECKING:
    from ahpatron_cli.settings import RunSettings


_SPELLING = ("decimal", "date_format")
"""Options, as they are saved, that say how the rows of a stream are written."""


@dataclass(frozen=True)
class Beginning:
    """What a live stream begins with."""

    options: dict[str, OptionValue]
    """The options that decide the rounds; a state keeps them."""
    state: StateFile | None
    """The file of --state."""
    model: Model | None
    """What the stream goes on from: the state, or the model of --resume."""

    @property
    def continues_state(self) -> bool:
        """Whether the stream goes on from its state."""
        return self.state is not None and self.state.model is not None

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the model that is continued; a state takes new features as they come."""
        if self.model is None:
            return None
        encoder = self.model.encoder
        if self.continues_state:
            return replace(encoder, refuses_new_features=False)
        return encoder

    def first_run(self, job: RunJob, dataset: StreamedRows, note: Callable[[str], None]) -> Run:
        """The learner: that of the model that is continued, or a new one."""
        if self.model is not None:
            run = self.model.run(dataset.name, job.options, same_file=self.continues_state)
            run.appearing = dataset.encoder.labels.appearing
            return run
        (setup,) = with_sigma(job.setups, dataset, note)
        try:
            return begin(dataset, setup, job.options, repeat=0, horizon=None)
        except ParameterError as error:
            raise no_learner([error]) from None

    def restore(self, service: Service) -> None:
        """Give a service what the model has beside its learner, such as rows that wait."""
        if self.model is None or self.model.live is None:
            return
        try:
            service.restore(self.model.live)
        except StateError as error:
            raise damaged(str(error), self.model.path) from None


def beginning_of(
    job: RunJob, settings: RunSettings, options: dict[str, OptionValue], opened: ExitStack
) -> Beginning:
    """What a live stream begins with: a state, which is locked, a model, or nothing.

    A state must agree with the options that are given.
    """
    if len(job.setups) > 1:
        raise usage("a live stream with these options requires one learner", "use one -l")
    path = settings.live.state
    source = job.setups[0].source
    if path is None:
        resume = settings.models.resume
        model = None if resume is None else load_model(resume, source)
        return Beginning(options, state=None, model=model)
    state = StateFile(path, source, settings.models.save_every)
    opened.enter_context(state)
    if state.model is None:
        return Beginning(options, state=state, model=None)
    _check_options(state.model, settings, options)
    said = {name: value for name, value in options.items() if name in _SPELLING}
    known = state.model.header.options
    known = {name: value for name, value in known.items() if name not in _SPELLING}
    known = {**known, **said, **_spelled_by(state.model)}
    added = _added_id(state.model, settings)
    if added is not None:
        known = {**known, "id": added}
    return Beginning(known, state=state, model=state.model)


def _spelled_by(model: Model) -> dict[str, OptionValue]:
    """What a state says of how the rows of its stream are written.

    A model that was made from a file says nothing of a stream that begins with it.
    """
    if model.live is None:
        return {}
    known = model.header.options
    return {name: known[name] for name in _SPELLING if name in known}


def _added_id(model: Model, settings: RunSettings) -> str | None:
    """The column of --id for a model of a table that has none; else None."""
    schema = model.header.schema
    if schema is None or schema.id is not None:
        return None
    return settings.tables.id


def continued(job: RunJob, beginning: Beginning) -> RunJob:
    """The job of a live stream, with what the model that it goes on from has decided."""
    model = beginning.model
    if model is None:
        return job
    if not beginning.continues_state:
        return replace(job, setups=[model.setup])
    table = job.preparation.table.spelled_as_before(_spelled_by(model))
    preparation = replace(job.preparation, table=table)
    return replace(job, setups=[model.setup], preparation=preparation)


def _check_options(model: Model, settings: RunSettings, options: dict[str, OptionValue]) -> None:
    """Refuse options that are given and differ from those with which the state was made."""
    header = model.header
    known = {**header.params, **header.kernel_params}
    adds_id = _added_id(model, settings) is not None
    changed = []
    kept = []
    for name, option in all_options(type(settings)).items():
        if name not in settings.given or option.belongs_to == "call":
            continue
        if option.saved_as in _SPELLING and option.saved_as not in _spelled_by(model):
            continue
        now = options.get(option.saved_as)
        before = header.options.get(option.saved_as)
        if name == "learner":
            now = [find_learner(learner).name for learner in settings.learning.learner]
            before = [header.learner]
        is_default = before is None and str(now) == str(known.get(name))
        is_new_id = name == "id" and adds_id  # that it is no feature is checked later
        if now != before and not is_default and not is_new_id:
            changed.append(option.flag)
            if isinstance(before, str):
                kept.append(f"{option.flag} {shlex.quote(before)}")
    if changed:
        values = f", {' '.join(kept)}" if kept else ""
        raise UserError(
            f"the state was made with other values of {alternatives(changed)}",
            code=ExitCode.USAGE,
            place=Place(model.path),
            hint=f"leave them out to go on with those of the state{values}; or begin another state",
        )
