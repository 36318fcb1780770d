"""Runs that continue a model or checkpoint, or are saved: --resume, --checkpoint, --save."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from ahpatron_cli.atomic import exists, format_of_suffix, write_atomically
from ahpatron_cli.core.errors import StateError
from ahpatron_cli.core.registry import GUIDE
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Dataset
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.hashes import RowChecksum
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.model_file import Model, OptionValue, load_model, model_of, to_bytes
from ahpatron_cli.runner import Observer, Run, RunOptions, RunResult, run_batches
from ahpatron_cli.signals import StreamEnded, watch

PARAMETERS = {"budget", "sigma", "epsilon", "param"}
"""Options that set parameters, which are compared by value: `-B 400` is also the default."""
CHECKPOINT_EVERY = 100_000
"""Number of rounds between two checkpoints, unless --save-every says otherwise."""


class SavedRun:
    """A run that continues a model or checkpoint, or is saved: --resume, --checkpoint, --save.

    Attributes
    ----------
    model : Model, optional
        The model of --resume, which determines learner and preparation.
    checkpointed : int
        Number of rows up to the existing checkpoint; 0 if there is none.
    """

    def __init__(
        self,
        note: Callable[[str], None],
        warn: Callable[[str], None],
        *,
        save: str | None,
        resume: str | None,
        checkpoint: str | None,
        every: int,
        learner: str | None,
        options: Mapping[str, OptionValue],
    ) -> None:
        """`note` prints notes, `warn` warnings, also with --quiet.

        `learner` is `FILE.py:Class` of the model's learner, if it is defined in a file. `options`
        are those of `run` that decide the rounds, as given by the user.
        """
        for path in filter(None, (save, checkpoint)):
            format_of_suffix(path, "npz", {".npz": "npz"})
        self._note = note
        self._warn = warn
        self._save_to = save
        self._checkpoint = checkpoint
        self._every = every
        self._options = dict(options)
        self.model: Model | None = None
        if resume:
            self.model = load_model(resume, learner)
        self._restart: Model | None = None
        self.checkpointed = 0
        if checkpoint and exists(checkpoint):
            self._restart = load_model(checkpoint, learner)
            self._check_options(self._restart.header.options)
            self.checkpointed = self._restart.header.rounds
        self._checksum = RowChecksum()
        self._saved_at = self.checkpointed

    @property
    def encoder(self) -> Encoder | None:
        """The encoder of the model or checkpoint that is continued; None if there is none."""
        if self.model:
            return self.model.encoder
        if self._restart is None:
            return None
        # the file is read again from its start: its rows are as wide as they were then
        return replace(self._restart.encoder, width=0, refuses_new_features=False)

    def run(
        self,
        dataset: Dataset,
        run: Run,
        options: RunOptions,
        observers: Sequence[Observer],
    ) -> list[RunResult]:
        """Run on the data set, with checkpoints; save the model at the end.

        `run` has begun, or continues the model; of `options`, those on the order count.
        """
        if self.model:
            self._note_start(run)
        if self._restart:
            run = self._restarted(self._restart, run, dataset.name)
        paths = [path for path in (self._save_to, self._checkpoint) if path]
        if paths:
            self._check_savable(run)

        def save_if_due(*_: object) -> None:
            rounds = self._checksum.rounds
            if self._checkpoint and rounds - self._saved_at >= self._every:
                self._save(self._checkpoint, run, dataset)
                self._saved_at = rounds

        order = None
        if options.shuffle:
            order = options.order(0, dataset.count_rounds() or 0)
        start = run.rounds
        if self._restart:
            start = 0
        batches = self._left(dataset.batches(order, start), run)
        results = run_batches(batches, [run], [*observers, save_if_due])
        dataset.finish()  # raises an error for invalid data, before saving
        if self._save_to:
            self._warn_of_reset(run)
        self._warn_of_indices(dataset)
        for path in paths:
            self._save(path, run, dataset)
        return results

    @staticmethod
    def _check_savable(run: Run) -> None:
        """Refuse a learner that cannot be saved, before the first round."""
        try:
            run.player.state_dict()
        except StateError as error:
            raise usage(str(error), f"see {GUIDE}") from None

    def _restarted(self, checkpoint: Model, fresh: Run, path: str) -> Run:
        """The run of the checkpoint; an error if its learner differs from that of a new run.

        Options are the same, but the number of rounds may have changed, which some learners use.
        """
        header = checkpoint.header
        player = fresh.player
        same_learner = (
            fresh.setup.learner == header.learner
            and player.learner.params() == header.params
            and player.kernel.params() == header.kernel_params
        )
        if not same_learner:
            changed = self._changed(checkpoint.header.options) & PARAMETERS
            if changed:
                raise self._other_run(_other_values(changed))
            raise self._other_run()
        return checkpoint.run(path, fresh.options, same_file=True)

    def _left(self, batches: Iterable[Batch], run: Run) -> Iterator[Batch]:
        """Yield the rows after the checkpoint; an error if earlier rows have changed.

        If a signal ends the stream before, `StreamEnded` is raised: nothing was learned, and
        a state with the position of the replay must not be saved.
        """
        for batch in batches:
            count = len(batch.labels)
            to_skip = max(self.checkpointed - self._checksum.rounds, 0)
            done = min(to_skip, count)
            if done:
                replayed = batch.part(slice(0, done))
                self._checksum.add(replayed)
                if self._restart and self._checksum.rounds == self.checkpointed:
                    if self._checksum.digest != self._restart.header.digest:
                        raise self._other_run()
                    self._note_start(run)
            if done < count:
                left = batch.part(slice(done, count))
                self._checksum.add(left)
                yield left
        if self._checksum.rounds < self.checkpointed:
            if watch.ended_by is None:
                raise self._other_run()
            self._note(f"the rows before {self._checkpoint} were still being read: it is unchanged")
            raise StreamEnded

    def _save(self, path: str, run: Run, dataset: Dataset) -> None:
        """Write a model with the present state of the run."""
        features = dataset.info.features
        before = self.model or self._restart
        if before:
            features = max(features, before.header.features)
        encoder = dataset.encoder
        model = model_of(
            run.player,
            encoder.scaler,
            seed=run.options.seed,
            labels=dataset.labels(),
            positive=encoder.labels.positive,
            grows=encoder.labels.appearing is not None and encoder.classes is not None,
            weights=run.weights,
            threshold=run.options.threshold,
            confusion=run.confusion,
            scale=encoder.scale,
            features=features,
            dense=encoder.dense,
            width=dataset.width,
            rounds=self._checksum.rounds,
            digest=self._checksum.digest,
            data=dataset.name,
            schema=encoder.schema,
            options=self._options,
        )
        write_atomically(path, to_bytes(model))

    def _warn_of_indices(self, dataset: Dataset) -> None:
        """Warn if the features of the data seem to have other indices than those of the model."""
        if self.model is None:
            return
        remark = self.model.remark(dataset.info)
        if remark:
            self._warn(remark)

    def _warn_of_reset(self, run: Run) -> None:
        """Warn that the model has forgotten rows."""
        reset = run.player.last_reset
        if reset is None:
            return
        left = run.rounds - reset
        known = f"{left:,} of {run.rounds:,} rows"
        text = f"the saved model knows only the last {known}: it was reset in round {reset:,}"
        if "alarm" in run.player.learner.specs():
            text += "; with `-p alarm=inf` it never is"
        self._warn(text)

    def _note_start(self, run: Run) -> None:
        """Print where the run continues."""
        rounds = f"{run.rounds:,} rounds"
        mistakes = f"{run.mistakes:,} mistakes"
        self._note(f"the run continues after {rounds} with {mistakes}")

    def _check_options(self, before: Mapping[str, OptionValue]) -> None:
        """Refuse a checkpoint of a run with other options, except parameters of the learner."""
        changed = self._changed(before) - PARAMETERS
        if changed:
            raise self._other_run(_other_values(changed))

    def _changed(self, before: Mapping[str, OptionValue]) -> set[str]:
        """Names of the options that have other values than before."""
        names = {*before, *self._options}
        return {name for name in names if before.get(name) != self._options.get(name)}

    def _other_run(self, how: str = "other data, learner or number of rounds") -> UserError:
        """The error for a checkpoint that this run cannot continue."""
        return UserError(
            f"this checkpoint belongs to another run: {how}",
            code=ExitCode.USAGE,
            place=Place(self._checkpoint or ""),
            hint="repeat the command that made it, or delete the file to start from scratch",
        )


def _other_values(names: Collection[str]) -> str:
    """What is different if these options have other values."""
    words = [name.replace("_", "-") for name in sorted(names)]
    flags = [f"--{word}" for word in words]
    return f"other values of {', '.join(flags)}"
