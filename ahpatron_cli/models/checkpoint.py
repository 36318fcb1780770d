"""`run --save`, `--resume`, `--freeze`, `--checkpoint`: a pass is saved, and continued later."""

from __future__ import annotations

import shlex
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

from ahpatron_cli.atomic import is_device, write_atomically
from ahpatron_cli.core.errors import NumericalError, ParameterError, StateError
from ahpatron_cli.data.dataset import Batch, Dataset, Known, Preparation
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.models.file import Model, damaged, load_model, to_bytes
from ahpatron_cli.runner import Observer, Pass, PassResult, Played, Repetition, Setup, play

MODEL_OPTIONS = (
    *("learner", "budget", "kernel", "sigma", "epsilon", "param"),
    *("scale", "positive", "theorem", "cost"),
)
"""Options that a model has its own answers to."""


@dataclass(frozen=True)
class ModelOptions:
    """The options that read or write models."""

    save: str | None = None
    resume: str | None = None
    freeze: bool = False
    checkpoint: str | None = None
    every: int = 100_000

    def check(self, files: int, learners: int, repeats: int, streamed: bool, traced: bool) -> None:
        """Refuse contradictions, if any is given. `traced`: with --predictions or --curve."""
        for option, path in (("--save", self.save), ("--checkpoint", self.checkpoint)):
            if path and Path(path).suffix != ".npz" and not is_device(Path(path)):
                name = shlex.quote(f"{path}.npz")
                raise usage(f"{option} writes an .npz file, got {path!r}", f"use {option} {name}")
        if self.freeze and not self.resume:
            raise usage("--freeze requires --resume MODEL")
        if self.freeze and (self.save or self.checkpoint):
            raise usage("--freeze learns nothing, so there is nothing to save")
        if files != 1 or learners != 1 or repeats != 1:
            problem = "a model requires one file, one learner and one pass"
            raise usage(problem, "use one DATA, one -l and --repeats 1")
        if self.checkpoint and self.resume:
            raise usage("a checkpoint resumes by itself; leave out --resume")
        if self.checkpoint and not streamed:
            raise usage("--checkpoint requires one pass in file order", "leave out --shuffle")
        if self.checkpoint and traced:
            problem = "--predictions and --curve would lack the rounds before a restart"
            raise usage(problem, "leave them out with --checkpoint")


class SavedPass:
    """The pass that a run continues, if any, and the files that it is saved to."""

    def __init__(self, options: ModelOptions, say: Callable[[str], None]) -> None:
        self._options = options
        self._say = say
        checkpoint = options.checkpoint
        self.restarts = bool(checkpoint and Path(checkpoint).exists())
        """Whether a checkpoint of this command is there, and is continued."""
        self._path = (checkpoint if self.restarts else options.resume) or ""
        self.model = load_model(self._path) if self._path else None
        self._trail = _Trail()
        self._saved_at = self.model.played if self.model else 0

    @property
    def resumes(self) -> bool:
        """Whether the model, not the command line, decides what is played."""
        return self.model is not None and not self.restarts

    @property
    def only_saves(self) -> bool:
        """Whether neither --checkpoint nor --resume is given."""
        return not (self._options.checkpoint or self._options.resume)

    @property
    def checkpointed(self) -> int:
        """The rounds that the checkpoint has; 0 without one."""
        return self._saved_at if self._options.checkpoint else 0

    def setup(self) -> Setup:
        """The model's learner and kernel."""
        model = self.model
        assert model is not None
        return Setup(model.learner, model.params, model.kernel, model.kernel_params)

    def prepared(self, preparation: Preparation) -> tuple[Preparation, Known | None]:
        """What is done to the data, and what the model knows of its stream."""
        model = self.model
        if model is None:
            return preparation, None
        if self.restarts:  # the stream is read again from its first row
            if (preparation.scale, preparation.positive) != (model.scale, model.positive):
                raise self._other_run()
            return preparation, Known(model.labels)
        known = Known(model.labels, model.scaler, model.dense, model.width)
        return replace(preparation, scale=model.scale, positive=model.positive), known

    def make_pass(
        self,
        setup: Setup,
        path: str,
        seed: int,
        horizon: int | None,
        classes: tuple[float, ...] | None = None,
        costs: tuple[float, ...] | None = None,
    ) -> Pass:
        """A pass that can be saved; if there is a model, one that continues it."""
        model, frozen = self.model, self._options.freeze
        fresh = partial(Pass, setup, path, seed, 0, horizon, classes=classes, costs=costs)
        if model is None:
            return fresh()
        params = dict(model.params), dict(model.kernel_params)
        if self.restarts:  # all parameters must be the same, given or not
            saved = model.learner, model.kernel, model.seed, model.costs
            if (setup.learner, setup.kernel, seed, costs) != saved or fresh().params() != params:
                raise self._other_run()
        try:
            made = Pass(
                self.setup(),
                path,
                model.seed,
                0,
                None,
                classes=model.classes,
                costs=model.costs,
                state=model.state,
                same_file=self.restarts,
                frozen=frozen,
            )
        except (StateError, ParameterError, NumericalError) as error:
            raise damaged(str(error), self._path) from None
        if made.params() != params:
            raise damaged("parameters are missing", self._path)
        if not frozen and not self.restarts:
            self._say(_greeting(made))
        return made

    def play(
        self,
        dataset: Dataset,
        setup: Setup,
        repetition: Repetition,
        horizon: int | None,
        observers: Sequence[Observer],
        on_restart: Callable[[Pass], None],
    ) -> list[PassResult]:
        """One pass that continues a model, or is saved."""
        asked = setup, dataset.name, repetition.seed, horizon
        one = self.make_pass(*asked, dataset.classes, dataset.costs(repetition.costs))
        if self.restarts:
            on_restart(one)
        one.measure(repetition)

        def save(_: Played) -> None:
            checkpoint = self._options.checkpoint
            if checkpoint and self._trail.rounds - self._saved_at >= self._options.every:
                self._save(checkpoint, one, dataset)
                self._saved_at = self._trail.rounds

        order = repetition.order(0, dataset.rounds or 0) if repetition.shuffle else None
        batches = dataset.batches(order, 0 if self.restarts else one.rounds)
        results = play(self._left(batches, one), [one], [*observers, save])
        dataset.facts()  # refuses what must not be saved
        self.finish(one, dataset)
        return results

    def _left(self, batches: Iterable[Batch], one: Pass) -> Iterator[Batch]:
        """The rounds left to play; those before a checkpoint must be the same as then."""
        skip = self.model.played if self.model and self.restarts else 0
        for batch in batches:
            count = len(batch.labels)
            before = min(max(skip - self._trail.rounds, 0), count)
            if before:
                self._trail.add(batch.part(slice(0, before)))
                if self.model and self._trail.rounds == skip:
                    if self._trail.digest != self.model.digest:
                        raise self._other_run()
                    self._say(_greeting(one))
            if before < count:
                left = batch.part(slice(before, count))
                self._trail.add(left)
                yield left
        if self._trail.rounds < skip:
            raise self._other_run()

    def finish(self, one: Pass, dataset: Dataset) -> None:
        """Save the pass at its end."""
        model, traits = self.model, dataset.traits
        if model and traits.features > model.features:
            known = f"{model.features:,} features"
            self._say(f"the data have {traits.features:,} features, where the model knew {known}")
        if model and traits.zero_based and model.features < model.width:
            self._say(
                "the data have a feature 0, which the model never saw: if its features count "
                "from 1 and these from 0, every feature is mistaken for another"
            )
        horizon = one.params()[0].get("horizon")
        derived = horizon and "horizon" not in one.setup.learner_params
        if self._options.save and not model and derived:
            self._say(
                f"T = {horizon} is the length of this file; if the stream continues, "
                "set the length of all of it with -p horizon=N"
            )
        for path in (self._options.save, self._options.checkpoint):
            if path:
                self._save(path, one, dataset)

    def _save(self, path: str, one: Pass, dataset: Dataset) -> None:
        params, kernel_params = one.params()
        model = Model(
            learner=one.setup.learner,
            params=params,
            kernel=one.setup.kernel,
            kernel_params=kernel_params,
            seed=one.seed,
            labels=dataset.labels(),
            costs=one.costs,
            positive=dataset.preparation.positive,
            scale=dataset.preparation.scale,
            scaler=dataset.scaler,
            features=max(dataset.traits.features, self.model.features if self.model else 0),
            dense=dataset.dense,
            width=dataset.width,
            played=self._trail.rounds,
            digest=self._trail.digest,
            state=one.state(),
            data=dataset.name,
        )
        write_atomically(path, to_bytes(model))

    def _other_run(self) -> UserError:
        return UserError(
            "this checkpoint belongs to another run: other data, learner, parameters, number of "
            "rounds or seed",
            code=ExitCode.USAGE,
            place=Place(self._path),
            hint="repeat the command that made it, or delete the file to begin anew",
        )


def _greeting(one: Pass) -> str:
    return f"the run continues after {one.rounds:,} rounds with {one.mistakes:,} mistakes"


class _Trail:
    """The number of rounds so far, and checksums that tell them from others."""

    def __init__(self) -> None:
        self.rounds = 0
        self._sums = [0, 0, 0, 0]

    def add(self, batch: Batch) -> None:
        """Continue the checksums: how rounds are cut into batches does not matter."""
        rows = batch.stored
        parts = (batch.labels, np.diff(rows.indptr), rows.columns, rows.values)
        for number, part in enumerate(parts):
            self._sums[number] = zlib.crc32(np.ascontiguousarray(part).data, self._sums[number])
        self.rounds += len(batch.labels)

    @property
    def digest(self) -> int:
        """All checksums in one."""
        return zlib.crc32(repr(self._sums).encode())
