"""`ahpatron predict`: predictions and scores of a saved model, without learning."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.settings import PredictSettings, RowFormat, Tables, options_of
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    from ahpatron_cli.answers import Answers
    from ahpatron_cli.atomic import Output
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.core.rows import Integers
    from ahpatron_cli.data.batch import Batch
    from ahpatron_cli.data.dataset import Dataset
    from ahpatron_cli.data.preparation import Preparation
    from ahpatron_cli.metrics import Ranking
    from ahpatron_cli.model_file import Model
    from ahpatron_cli.output.predictions import PredictionWriter
    from ahpatron_cli.runner import Run
    from ahpatron_cli.thresholds import Figures, FiguresDocument

FIGURES = ("table", "json")
"""Formats of the figures of --metrics, instead of rows."""
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
  ahpatron predict fraud.npz known.csv --metrics --format table
  ahpatron predict fraud.npz new.csv --threshold 0.2 --probability
"""


def predict(model: ModelPath, paths: Paths, *, settings: PredictSettings) -> ExitCode:
    """Predict labels with a saved model, without learning.

    Writes the line (or the --id), the predicted label and the score f(x) of each row.
    Labels are optional: tables may have no label column, and rows of LIBSVM text may start with
    index:value or ?. If there are labels, the mistakes are printed to stderr.
    --metrics also shows the model at several thresholds: on stdout if the rows go to --out or
    --format is table or json, else on stderr.
    """
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.output.predictions import PredictionWriter
    from ahpatron_cli.thresholds import FiguresDocument

    raise_on_signals()
    stderr = Stderr(settings.output.quiet)
    _check(model, paths, settings)
    loaded = _loaded(model, settings)
    ended_by = None
    with _opened(settings) as output:
        writer = None
        if output is not None:
            writer = PredictionWriter(output, _row_format(settings))
        scorer = Scorer(loaded, settings, writer, several=len(paths) > 1, stderr=stderr)
        for path in paths:
            ended_by = scorer.score(path)
            if ended_by:
                break
    if settings.output.metrics:
        _show_figures(FiguresDocument(model=model, files=tuple(scorer.figures)), settings, stderr)
    if ended_by:
        stderr.note(f"ended by {ended_by}; all predictions are written")
        return ExitCode(128 + signal.Signals[ended_by])
    return ExitCode.OK


def _loaded(path: str, settings: PredictSettings) -> Model:
    """The model, which must be one for which these settings make sense."""
    from ahpatron_cli.model_file import load_model
    from ahpatron_cli.runner import check_threshold
    from ahpatron_cli.setups import model_learner, parse_threshold

    threshold = parse_threshold(settings.operating_point.threshold)
    model = load_model(path, model_learner(settings.saved))
    if threshold is not None:
        check_threshold(model.header.classes)
    if settings.tables != Tables() and model.header.schema is None:
        given = [one.flag for name, one in options_of(Tables).items() if name in settings.given]
        shown = ", ".join(given)
        raise usage(f"for tables only: {shown}; the model was trained on LIBSVM text")
    return model


def _opened(settings: PredictSettings) -> AbstractContextManager[Output | None]:
    """The output for rows; None if only figures are shown."""
    from ahpatron_cli.output.predictions import open_output

    prediction = settings.prediction
    if prediction.out is None and prediction.format in FIGURES:
        return nullcontext()
    return open_output(prediction.out)


def _show_figures(document: FiguresDocument, settings: PredictSettings, stderr: Stderr) -> None:
    """Show the figures of all files: on stdout, or on stderr if rows are there."""
    from msgspec import to_builtins

    from ahpatron_cli.output.formats import json_text, page_text, write
    from ahpatron_cli.output.threshold_table import figures_page

    format = settings.prediction.format
    if format == "json":
        write(lambda _: json_text(to_builtins(document)), "json")
        return
    page = figures_page(document.files)
    if not page.tables:
        return
    if settings.prediction.out is None and format not in FIGURES:
        stderr.show("\n" + page_text(page, "table", stderr.terminal()))
    else:
        write(lambda terminal: page_text(page, "table", terminal))


def _check(model: str, paths: list[str], settings: PredictSettings) -> None:
    """Refuse arguments that cannot work, before the model is loaded."""
    from ahpatron_cli.atomic import check_outputs
    from ahpatron_cli.npz import is_archive

    _row_format(settings)
    if settings.prediction.format in FIGURES and not settings.output.metrics:
        shown = settings.prediction.format
        raise usage(f"--format {shown} shows the figures of --metrics", "add --metrics")
    if paths.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    if any(map(is_archive, paths)) and not is_archive(model):
        raise usage("the model comes first: `ahpatron predict MODEL DATA`")
    check_outputs({"--out": settings.prediction.out}, [model, *paths])


def _row_format(settings: PredictSettings) -> str:
    """The format of the predictions, which the suffix of --out decides."""
    from ahpatron_cli.atomic import format_of_suffix

    out = settings.prediction.out
    format = settings.prediction.format
    if out is None:
        return format
    of_file = format_of_suffix(out, "csv" if format in FIGURES else format, _SUFFIXES)
    if "format" in settings.given and format not in FIGURES and of_file != format:
        raise usage(f"--out {out} is {of_file}, and --format asks for {format}")
    return of_file


@dataclass
class Counts:
    """What is counted while a file is scored."""

    confusion: Integers
    """Rows by true and predicted label."""
    ranking: Ranking | None
    """Set if metrics are asked for."""
    rows: int = 0
    loss: float = 0.0
    """The log loss, summed over the rows with labels."""
    brier: float = 0.0
    """The Brier loss, summed over the same rows."""

    def add(self, run: Run, batch: Batch, answers: Answers) -> None:
        """Count the rows of a batch, and the mistakes where there are labels."""
        import numpy as np

        self.rows += len(answers.chosen)
        is_labelled = ~np.isnan(batch.labels)
        labels = batch.labels[is_labelled]
        scores = answers.scores[is_labelled]
        true = labels if scores.ndim > 1 else labels > 0
        np.add.at(self.confusion, (true.astype(np.int64), answers.chosen[is_labelled]), 1)
        if self.ranking is not None:
            self.ranking.add(scores, labels)
            self.loss += run.player.calibration.loss_of(scores, labels)
            self.brier += run.player.calibration.brier_loss(scores, labels)

    @property
    def rounds(self) -> int:
        """Number of rows with labels."""
        return int(self.confusion.sum())

    @property
    def mistakes(self) -> int:
        """Number of wrong predictions."""
        return self.rounds - int(self.confusion.trace())

    def notes(self) -> list[str]:
        """Notes for stderr: mistakes on the rows with labels."""
        if not self.rounds:
            return [f"{counted(self.rows, 'row')} without labels"]
        part = "" if self.rounds == self.rows else f" of {self.rows:,}"
        found = f"{counted(self.mistakes, 'mistake')} in {counted(self.rounds, 'row')}"
        return [f"{found} with labels{part} ({percent(self.mistakes / self.rounds)} %)"]


class Scorer:
    """A model that scores one file after the other."""

    def __init__(
        self,
        model: Model,
        settings: PredictSettings,
        writer: PredictionWriter | None,
        *,
        several: bool,
        stderr: Stderr,
    ) -> None:
        """`several`: there are several files, so that rows and messages name theirs.

        Without a `writer`, no rows are written.
        """
        from ahpatron_cli.output.predictions import label_names
        from ahpatron_cli.setups import parse_threshold

        self._model = model
        self._settings = settings
        self._writer = writer
        self._several = several
        self._stderr = stderr
        self._preparation = _preparation_of(settings)
        self._names = label_names(model.header.labels, model.header.schema)
        self._threshold = parse_threshold(settings.operating_point.threshold)
        if self._threshold is None:
            self._threshold = model.header.threshold
        self.figures: list[Figures] = []
        """The figures of each file with --metrics."""

    def score(self, path: str) -> str | None:
        """Write the scores of one file and print its mistakes; return the signal that ended it."""
        import numpy as np

        from ahpatron_cli.data.opening import stream
        from ahpatron_cli.data.source import open_source
        from ahpatron_cli.metrics import Ranking

        stderr = self._stderr
        to_stdout = self._writer is not None and self._writer.to_stdout
        ranking = Ranking() if self._settings.output.metrics else None
        classes = len(self._names)
        counts = Counts(np.zeros((classes, classes), dtype=np.int64), ranking)

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
                answers = self._answers(run, batch)
                if self._writer is not None:
                    self._write(self._writer, path, dataset, batch=batch, answers=answers)
                counts.add(run, batch, answers)
                mistakes = f"{counts.mistakes:,} mistakes" if counts.rounds else ""
                show(source.position, mistakes)
            ended_by = watch.ended_by
        self._note(path, dataset, run, counts)
        if counts.ranking is not None:
            self.figures.append(self._figures_of(path, run, counts, counts.ranking))
        return ended_by

    def _answers(self, run: Run, batch: Batch) -> Answers:
        """The answers for a batch."""
        from ahpatron_cli.answers import answers

        scores = run.score(batch)
        asked = self._settings.operating_point.probability
        probabilities = None
        if asked or self._threshold is not None:
            probabilities = run.player.calibration.probabilities(scores)
        given = answers(scores, probabilities, self._threshold)
        return given if asked else replace(given, probabilities=None)

    def _figures_of(self, path: str, run: Run, counts: Counts, ranking: Ranking) -> Figures:
        """The figures of a file."""
        from ahpatron_cli.thresholds import figures_of

        return figures_of(
            path=path,
            rows=counts.rows,
            threshold=self._threshold,
            labels=tuple(self._names),
            confusion=counts.confusion,
            ranking=ranking,
            link=run.player.calibration,
            loss=counts.loss,
            brier=counts.brier,
        )

    def _write(
        self,
        writer: PredictionWriter,
        path: str,
        dataset: Dataset,
        *,
        batch: Batch,
        answers: Answers,
    ) -> None:
        """Write the answers for a batch."""
        schema = dataset.encoder.schema
        writer.write_scores(
            batch,
            answers,
            names=self._names,
            id_name=schema.id if schema else None,
            path=path if self._several else None,
        )

    @property
    def _shows_probabilities(self) -> bool:
        """Whether answers or figures depend on probabilities."""
        asked = self._settings.operating_point.probability or self._settings.output.metrics
        return asked or self._threshold is not None

    def _note(self, path: str, dataset: Dataset, run: Run, counts: Counts) -> None:
        """Print the notes and warnings about a file."""
        from ahpatron_cli.runner import UNFITTED

        prefix = f"{path}: " if self._several else ""
        remark = self._model.remark(dataset.info)
        if remark:
            self._stderr.warn(prefix + remark)
        if self._shows_probabilities and not run.player.calibration.is_fitted:
            self._stderr.warn(f"{prefix}{UNFITTED}; the model has learned from fewer")
        for note in (*dataset.info.remarks, *counts.notes()):
            self._stderr.note(prefix + note)


def _preparation_of(settings: PredictSettings) -> Preparation:
    """How data are prepared, besides what the model says."""
    from ahpatron_cli.data.preparation import Preparation
    from ahpatron_cli.data.table_options import TableOptions

    return Preparation(
        data=settings.data,
        may_lack_labels=True,
        may_grow=False,
        table=TableOptions(**vars(settings.tables)),
    )
