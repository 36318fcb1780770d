"""`run --save`, `--resume`, `--freeze`, `--checkpoint`: a learner is kept, and goes on later."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from ahpatron_cli.atomic import write_atomically
from ahpatron_cli.core.rows import CsrRows, rows_of
from ahpatron_cli.data.dataset import Known, Loaded, Piece, Preparation, Stream
from ahpatron_cli.data.scaling import Scaler
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.models.file import Model, load_model, to_bytes
from ahpatron_cli.runner import Pass, Setup

MODEL_OPTIONS = (
    *("learner", "budget", "kernel", "sigma", "epsilon", "param"),
    *("scale", "positive", "theorem"),
)
"""Options that a model has its own answers to."""


@dataclass(frozen=True)
class Keeping:
    """What was asked for."""

    save: str | None = None
    resume: str | None = None
    freeze: bool = False
    checkpoint: str | None = None
    every: int = 100_000

    @property
    def wanted(self) -> bool:
        """Whether anything was."""
        return bool(self.save or self.resume or self.freeze or self.checkpoint)

    def check(self, files: int, learners: int, repeats: int, streamed: bool, traced: bool) -> None:
        """Refuse what does not go together. `traced`: --predictions or --curve is given."""
        if self.freeze and not self.resume:
            raise usage("--freeze needs --resume MODEL: what is to be frozen?")
        if self.freeze and (self.save or self.checkpoint):
            raise usage("--freeze learns nothing, so there is nothing to save")
        if self.wanted and (files != 1 or learners != 1 or repeats != 1):
            problem = "a model is one learner's on its way through one file"
            raise usage(problem, "use one DATA, one -l and --repeats 1")
        if self.checkpoint and self.resume:
            raise usage("a checkpoint resumes by itself; leave out --resume")
        if self.checkpoint and not streamed:
            problem = "checkpoints are for one pass in file order"
            raise usage(problem, "without --shuffle")
        if self.checkpoint and traced:
            problem = "--predictions and --curve would lack the rounds before a restart"
            raise usage(problem, "leave them out with --checkpoint")


class Keeper:
    """Makes passes that can be kept, and keeps them."""

    def __init__(self, keeping: Keeping, say: Callable[[str], None]) -> None:
        self._keeping = keeping
        self._say = say
        checkpoint = keeping.checkpoint
        self._going_on = bool(checkpoint and Path(checkpoint).exists())
        path = checkpoint if self._going_on else keeping.resume
        self._path = path or ""
        self.model: Model | None = load_model(path) if path else None
        self._trail = _Trail()
        self._greeting = ""
        self._preparation = Preparation()
        self._last_kept = self.model.played if self.model else 0

    @property
    def resumes(self) -> bool:
        """Whether the model, not the command line, says what is played."""
        return self.model is not None and not self._going_on

    def setup(self) -> Setup:
        """The model's learner and kernel."""
        assert self.model is not None
        model = self.model
        return Setup(model.learner, model.params, model.kernel, model.kernel_params)

    def _same_as(self, fresh: Pass) -> bool:
        """Whether a checkpoint is of the run that is asked for: all parameters, given or not."""
        model, setup = self._found(), fresh.setup
        asked = (setup.learner, setup.kernel, fresh.seed, *fresh.params())
        return asked == (
            model.learner,
            model.kernel,
            model.seed,
            dict(model.params),
            dict(model.kernel_params),
        )

    def prepare(self, preparation: Preparation) -> Preparation:
        """The same with what the model knows of its stream."""
        self._preparation = self._prepared(preparation)
        return self._preparation

    def _prepared(self, preparation: Preparation) -> Preparation:
        model = self.model
        if model is None:
            return preparation
        if self._going_on:  # the stream is read again from its first row
            if (preparation.scale, preparation.positive) != (model.scale, model.positive):
                raise self._other_run()
            return replace(preparation, known=Known(model.labels, None, None, 0))
        opened = model.state.get("open_labels")
        rounds = len(opened) if isinstance(opened, np.ndarray) else 0
        known = Known(model.labels, model.scaler, model.dense, model.width, rounds)
        return replace(preparation, scale=model.scale, positive=model.positive, known=known)

    def make_pass(self, setup: Setup, path: str, seed: int, horizon: int | None) -> Pass:
        """A pass that can be kept; one that goes on, where there is a model."""
        model, frozen = self.model, self._keeping.freeze
        self._horizon = "horizon" in setup.learner_params
        if model is None:
            return Pass(setup, path, seed, 0, horizon)
        if self._going_on and not self._same_as(Pass(setup, path, seed, 0, horizon)):
            raise self._other_run()
        try:
            made = Pass(
                self.setup(),
                path,
                model.seed,
                0,
                None,
                state=model.state,
                frozen=frozen,
            )
        except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError) as error:
            raise UserError(
                f"the model is damaged: {error}", code=ExitCode.BAD_DATA, place=Place(self._path)
            ) from None
        if made.params() != (dict(model.params), dict(model.kernel_params)):
            raise UserError(
                "the model is damaged: parameters are missing",
                code=ExitCode.BAD_DATA,
                place=Place(self._path),
            )
        self._greeting = f"goes on after {made.rounds:,} rounds with {made.mistakes:,} mistakes"
        if not frozen and not self._going_on:
            self._say(self._greeting)
        return made

    def pieces(self, stream: Iterable[Piece]) -> Iterator[Piece]:
        """The rounds that are left to play; those before a checkpoint must be the same as then."""
        skip = self.model.played if self.model and self._going_on else 0
        for piece in stream:
            before = min(max(skip - self._trail.rounds, 0), len(piece.labels))
            if before:
                self._trail.add(_part(piece, slice(0, before)))
                if self._trail.rounds == skip:
                    if self._trail.digest != self._found().digest:
                        raise self._other_run()
                    self._say(self._greeting)
            if before < len(piece.labels):
                left = _part(piece, slice(before, len(piece.labels)))
                self._trail.add(left)
                yield left
        if self._trail.rounds < skip:
            raise self._other_run()

    def passed(self, one: Pass, stream: Stream) -> None:
        """A piece was played: keep a checkpoint, if it is time."""
        checkpoint = self._keeping.checkpoint
        if checkpoint and self._trail.rounds - self._last_kept >= self._keeping.every:
            self._keep(checkpoint, one, _stream_form(stream), stream.scaler)
            self._last_kept = self._trail.rounds

    def finish(self, one: Pass, found: Stream | Loaded) -> None:
        """Keep the model at the end."""
        form = _stream_form(found) if isinstance(found, Stream) else _loaded_form(found)
        if self.model and form.features > self.model.features:
            known = f"{self.model.features:,} features"
            self._say(f"the data have {form.features:,} features, where the model knew {known}")
        if self.model and form.zero_based and self.model.features < self.model.width:
            self._say(
                "the data have a feature 0, which the model never saw; if its features are counted "
                "from 1 and these from 0, every feature was taken for another"
            )
        params = one.params()[0]
        if self._keeping.save and self.model is None and "horizon" in params and not self._horizon:
            self._say(
                f"T = {params['horizon']} is the length of this file; if the stream goes on, "
                "-p horizon=N says how long all of it is"
            )
        for path in (self._keeping.save, self._keeping.checkpoint):
            if path:
                self._keep(path, one, form, found.scaler)

    def _keep(self, path: str, one: Pass, form: _Form, scaler: Scaler | None) -> None:
        params, kernel_params = one.params()
        model = Model(
            learner=one.setup.learner,
            params=params,
            kernel=one.setup.kernel,
            kernel_params=kernel_params,
            seed=one.seed,
            labels=form.labels,
            positive=self._preparation.positive,
            scale=self._preparation.scale,
            scaler=scaler,
            features=max(form.features, self.model.features if self.model else 0),
            dense=form.dense,
            width=form.width,
            played=self._trail.rounds,
            digest=self._trail.digest,
            state=one.state(),
        )
        write_atomically(path, to_bytes(model))

    def _found(self) -> Model:
        assert self.model is not None
        return self.model

    def _other_run(self) -> UserError:
        return UserError(
            "this checkpoint is of another run: other data, learner, parameters, number of rounds "
            "or seed",
            code=ExitCode.USAGE,
            place=Place(self._path),
            hint="repeat the command that made it, or delete the file to begin anew",
        )


@dataclass(frozen=True)
class _Form:
    """How the rows of a stream were computed, and what it is known to hold."""

    dense: bool
    width: int
    features: int
    labels: tuple[float | None, float]
    zero_based: bool


def _stream_form(stream: Stream) -> _Form:
    dense, labels = bool(stream.dense), stream.labels()
    return _Form(dense, stream.width, stream.features, labels, stream.zero_based)


def _loaded_form(loaded: Loaded) -> _Form:
    rows, facts = loaded.held.rows, loaded.facts
    dense = not isinstance(rows, CsrRows)
    width = rows.width if isinstance(rows, CsrRows) else rows.shape[1]
    return _Form(dense, width, facts.features, facts.labels, facts.zero_based)


class _Trail:
    """How many rounds went by, and checksums by which they can be told from others."""

    def __init__(self) -> None:
        self.rounds = 0
        self._sums = [0, 0, 0, 0]

    def add(self, piece: Piece) -> None:
        """Checksums run over all pieces: where these were cut does not matter."""
        rows = piece.stored
        assert rows is not None
        parts = (piece.labels, np.diff(rows.indptr), rows.columns, rows.values)
        for number, part in enumerate(parts):
            self._sums[number] = zlib.crc32(np.ascontiguousarray(part).data, self._sums[number])
        self.rounds += len(piece.labels)

    @property
    def digest(self) -> int:
        """All checksums in one."""
        return zlib.crc32(repr(self._sums).encode())


def _part(piece: Piece, part: slice) -> Piece:
    stored = None if piece.stored is None else piece.stored.slice(part.start, part.stop)
    return Piece(rows_of(piece.rows, part), piece.labels[part], piece.lines[part], stored)
