"""The work of `predict`: a model scores one file after the other."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ahpatron_cli.answers import Answers, answers
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.core.rows import Integers
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Dataset
from ahpatron_cli.data.opening import stream
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import open_source
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.metrics import Ranking
from ahpatron_cli.model_file import Model
from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.output.predictions import PredictionWriter, label_names
from ahpatron_cli.runner import UNFITTED, Run
from ahpatron_cli.settings import PredictSettings
from ahpatron_cli.setups import parse_threshold
from ahpatron_cli.signals import watch
from ahpatron_cli.thresholds import FileFigures, figures_of

ROWS = 1 << 12
"""Largest number of rows that are scored and written at once."""


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
        self.figures: list[FileFigures] = []
        """The figures of each file with --metrics."""

    def score(self, path: str) -> str | None:
        """Write the scores of one file and print its mistakes; return the signal that ended it."""
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
        self._note(path, dataset, run=run, counts=counts)
        if counts.ranking is not None:
            self.figures.append(self._figures_of(path, run, counts=counts, ranking=counts.ranking))
        return ended_by

    def _answers(self, run: Run, batch: Batch) -> Answers:
        """The answers for a batch."""
        scores = run.score(batch)
        asked = self._settings.operating_point.probability
        probabilities = None
        if asked or self._threshold is not None:
            probabilities = run.player.calibration.probabilities(scores)
        given = answers(scores, probabilities, self._threshold)
        return given if asked else replace(given, probabilities=None)

    def _figures_of(self, path: str, run: Run, counts: Counts, ranking: Ranking) -> FileFigures:
        """The figures of a file."""
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
    return Preparation(
        data=settings.data,
        may_lack_labels=True,
        may_grow=False,
        table=TableOptions(**vars(settings.tables)),
    )
