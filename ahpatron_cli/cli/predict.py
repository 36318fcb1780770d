"""`ahpatron predict`: predictions and scores of a saved model, without learning."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.settings import PredictSettings, RowFormat
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.core.rows import Floats
    from ahpatron_cli.core.tally import Tally
    from ahpatron_cli.data.batch import Batch
    from ahpatron_cli.data.dataset import Dataset, Preparation
    from ahpatron_cli.metrics import Ranking
    from ahpatron_cli.model_file import Model
    from ahpatron_cli.output.predictions import PredictionWriter
    from ahpatron_cli.runner import Run

ROWS = 1 << 12
"""Largest number of rows that are scored and written at once."""
_SUFFIXES: dict[str, RowFormat] = {".csv": "csv", ".jsonl": "jsonl"}

ModelPath = Annotated[str, typer.Argument(metavar="MODEL", help="A model that `run --save` wrote.")]
Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="LIBSVM files or tables like the training data, labels optional, or - for stdin.",
    ),
]

EXAMPLES = """
  ahpatron predict model.npz test.svm --out scores.csv
  zcat new.svm.gz | ahpatron predict model.npz - --format jsonl
  ahpatron predict churn.npz new.csv --id customer --out scores.csv
"""


def predict(model: ModelPath, paths: Paths, *, settings: PredictSettings) -> ExitCode:
    """Predict labels with a saved model, without learning.

    Writes the line (or the --id), the predicted label and the score f(x) of each row.
    Labels are optional: tables may have no label column, and rows of LIBSVM text may start with
    index:value or ?. If there are labels, the mistakes are printed to stderr.
    """
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.model_file import load_model
    from ahpatron_cli.output.predictions import PredictionWriter, open_output
    from ahpatron_cli.setups import model_learner

    raise_on_signals()
    stderr = Stderr(settings.output.quiet)
    _check(model, paths, settings)
    loaded = load_model(model, model_learner(settings.saved))
    if settings.tables.id and loaded.header.schema is None:
        raise usage("--id names a column, and the model was trained on LIBSVM text")
    with open_output(settings.prediction.out) as output:
        writer = PredictionWriter(output, _format(settings))
        scorer = Scorer(loaded, settings, writer, several=len(paths) > 1, stderr=stderr)
        for path in paths:
            ended_by = scorer.score(path)
            if ended_by:
                stderr.note(f"ended by {ended_by}; all predictions are written")
                return ExitCode(128 + signal.Signals[ended_by])
    return ExitCode.OK


def _check(model: str, paths: list[str], settings: PredictSettings) -> None:
    """Refuse arguments that cannot work, before the model is loaded."""
    from ahpatron_cli.atomic import check_outputs
    from ahpatron_cli.npz import is_archive

    _format(settings)
    if paths.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    if any(map(is_archive, paths)) and not is_archive(model):
        raise usage("the model comes first: `ahpatron predict MODEL DATA`")
    check_outputs({"--out": settings.prediction.out}, [model, *paths])


def _format(settings: PredictSettings) -> str:
    """The format of the predictions, which the suffix of --out decides."""
    from ahpatron_cli.atomic import format_of_suffix

    out = settings.prediction.out
    format = settings.prediction.format
    if out is None:
        return format
    of_file = format_of_suffix(out, format, _SUFFIXES)
    if "format" in settings.given and of_file != format:
        raise usage(f"--out {out} is {of_file}, and --format asks for {format}")
    return of_file


@dataclass
class Counts:
    """What is counted while a file is scored."""

    tally: Tally
    ranking: Ranking | None
    """Set if metrics are asked for."""
    rows: int = 0
    loss: float = 0.0
    """The log loss, summed over the rows with labels."""

    def add(self, run: Run, batch: Batch, scores: Floats) -> None:
        """Count the rows of a batch, and the mistakes where there are labels."""
        import numpy as np

        self.rows += len(scores)
        is_labelled = ~np.isnan(batch.labels)
        labels = batch.labels[is_labelled]
        labelled_scores = scores[is_labelled]
        self.tally.count(labelled_scores, labels)
        if self.ranking is not None:
            self.ranking.add(labelled_scores, labels)
            self.loss += run.player.calibration.loss_of(labelled_scores, labels)

    def notes(self) -> list[str]:
        """Notes for stderr: mistakes and metrics on the rows with labels."""
        from msgspec.structs import asdict

        from ahpatron_cli.metrics import metrics_of

        tally = self.tally
        if not tally.rounds:
            return [f"{counted(self.rows, 'row')} without labels"]
        part = "" if tally.rounds == self.rows else f" of {self.rows:,}"
        found = f"{counted(tally.mistakes, 'mistake')} in {counted(tally.rounds, 'row')}"
        notes = [f"{found} with labels{part} ({percent(tally.mistakes / tally.rounds)} %)"]
        if self.ranking is not None:
            log_loss = self.loss / tally.rounds
            values = asdict(metrics_of(tally.confusion.tolist(), self.ranking, log_loss))
            shown = [f"{name} {value:.4f}" for name, value in values.items() if value is not None]
            notes.append(", ".join(shown))
        return notes


class Scorer:
    """A model that scores one file after the other."""

    def __init__(
        self,
        model: Model,
        settings: PredictSettings,
        writer: PredictionWriter,
        *,
        several: bool,
        stderr: Stderr,
    ) -> None:
        """`several`: there are several files, so that rows and messages name theirs."""
        from ahpatron_cli.output.predictions import label_names

        self._model = model
        self._settings = settings
        self._writer = writer
        self._several = several
        self._stderr = stderr
        self._preparation = _preparation_of(settings)
        self._names = label_names(model.header.labels, model.header.schema)

    def score(self, path: str) -> str | None:
        """Write the scores of one file and print its mistakes; return the signal that ended it."""
        from ahpatron_cli.core.tally import Tally
        from ahpatron_cli.data.dataset import stream
        from ahpatron_cli.data.source import open_source
        from ahpatron_cli.metrics import Ranking

        stderr = self._stderr
        to_stdout = self._settings.prediction.out is None
        ranking = Ranking() if self._settings.output.metrics else None
        counts = Counts(Tally.of(len(self._names)), ranking)

        def print_rows(asked: bool) -> None:
            show = stderr.answer if asked else stderr.detail
            show(f"{counts.rows:,} rows")

        with (
            watch.ending_stream(print_rows),
            open_source(path) as source,
            stderr.progress(source.size, path, beside_rows=to_stdout) as show,
        ):
            run = self._model.run(source.name)  # load before waiting for the first row
            dataset = stream(source, self._preparation, self._model.encoder)
            for batch in dataset.batches(rows=ROWS):
                scores = run.score(batch)
                self._write(path, dataset, run, batch=batch, scores=scores)
                counts.add(run, batch, scores)
                mistakes = f"{counts.tally.mistakes:,} mistakes" if counts.tally.rounds else ""
                show(source.position, mistakes)
            ended_by = watch.ended_by
        self._note(path, dataset, counts)
        return ended_by

    def _write(
        self, path: str, dataset: Dataset, run: Run, *, batch: Batch, scores: Floats
    ) -> None:
        """Write the scores of a batch."""
        shares = None
        if self._settings.prediction.probability:
            shares = run.player.calibration.probabilities(scores)
        schema = dataset.encoder.schema
        self._writer.write_scores(
            batch,
            scores,
            names=self._names,
            probabilities=shares,
            id_name=schema.id if schema else None,
            path=path if self._several else None,
        )

    def _note(self, path: str, dataset: Dataset, counts: Counts) -> None:
        """Print the notes and warnings about a file."""
        prefix = f"{path}: " if self._several else ""
        remark = self._model.remark(dataset.info)
        if remark:
            self._stderr.warn(prefix + remark)
        for note in (*dataset.info.remarks, *counts.notes()):
            self._stderr.note(prefix + note)


def _preparation_of(settings: PredictSettings) -> Preparation:
    """How data are prepared, besides what the model says."""
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.data.table_options import TableOptions

    return Preparation(
        data=settings.data,
        may_lack_labels=True,
        table=TableOptions(id=settings.tables.id),
    )
