"""`ahpatron predict`: predictions and scores of a saved model, without learning."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, one_of, usage
from ahpatron_cli.number_text import counted, percent
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    from ahpatron_cli.core.tally import Tally
    from ahpatron_cli.metrics import Ranking

ROWS = 1 << 12
"""Largest number of rows that are scored and written at once."""
_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl"}


def predict(
    context: typer.Context,
    model: options.Model,
    data: options.PredictData,
    learner: options.PredictLearner = None,
    format: options.PredictFormat = "csv",
    id: options.Id = None,
    probability: options.Probability = False,
    metrics: options.Metrics = False,
    out: options.PredictOut = None,
    max_features: options.MaxFeatures = 10_000_000,
    allow_new_features: options.AllowNewFeatures = False,
    quiet: options.Quiet = False,
) -> ExitCode:
    """Predict labels with a saved model, without learning.

    Writes the line (or the --id), the predicted label and the score f(x) of each row.
    Labels are optional: tables may have no label column, and rows of LIBSVM text may start with
    index:value or ?. If there are labels, the mistakes are printed to stderr.
    """
    import numpy as np

    from ahpatron_cli.atomic import check_outputs, format_of_suffix
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.core.tally import Tally
    from ahpatron_cli.data.dataset import Preparation, stream
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.metrics import Ranking
    from ahpatron_cli.model_file import load_model
    from ahpatron_cli.npz import is_archive
    from ahpatron_cli.output.predictions import PredictionWriter, label_names, open_output
    from ahpatron_cli.sweep.grid import choose_learners

    raise_on_signals()
    stderr = Stderr(quiet)
    one_of("format", format, _SUFFIXES.values())
    if out:
        of_file = format_of_suffix(out, format, _SUFFIXES)
        if "format" in options.given_by_user(context) and of_file != format:
            raise usage(f"--out {out} is {of_file}, and --format asks for {format}")
        format = of_file
    if data.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    if any(map(is_archive, data)) and not is_archive(model):
        raise usage("the model comes first: `ahpatron predict MODEL DATA`")
    check_outputs({"--out": out}, [model, *data])
    loaded = load_model(model, choose_learners([learner])[0] if learner else None)
    schema = loaded.header.schema
    if id and not schema:
        raise usage("--id names a column, and the model was trained on LIBSVM text")
    preparation, known = loaded.prepared(
        Preparation(
            max_features=max_features,
            may_lack_labels=True,
            allow_new_features=allow_new_features,
            table=TableOptions(id=id),
        )
    )
    names = label_names(loaded.header.labels, schema)

    def score(path: str) -> str | None:
        """Write the scores of one file and print its mistakes; return the signal that ended it."""
        rows, loss, ranking = 0, 0.0, Ranking() if metrics else None

        def figures(asked: bool) -> None:
            (stderr.answer if asked else stderr.detail)(f"{rows:,} rows")

        with (
            watch.ending_stream(figures),
            open_source(path) as source,
            stderr.progress(source.size, path, beside_rows=out is None) as show,
        ):
            run = loaded.run(source.name)  # load before waiting for the first row
            dataset, tally = stream(source, preparation, known), Tally.of(run.player.classes)
            for batch in dataset.batches(rows=ROWS):
                scores = run.score(batch)
                shares = run.player.calibration.probabilities(scores) if probability else None
                key = dataset.traits.schema.id if schema else None
                of_file = path if len(data) > 1 else None
                writer.write_scores(batch, scores, names, shares, key, of_file)
                rows += len(scores)
                labelled = ~np.isnan(batch.labels)
                tally.count(scores[labelled], batch.labels[labelled])
                if ranking is not None:
                    ranking.add(scores[labelled], batch.labels[labelled])
                    loss += run.player.calibration.loss_of(scores[labelled], batch.labels[labelled])
                show(source.position, f"{tally.mistakes:,} mistakes" if tally.rounds else "")
            ended_by = watch.ended_by
        prefix = f"{path}: " if len(data) > 1 else ""
        if remark := loaded.remark(dataset):
            stderr.warn(prefix + remark)
        for note in (*dataset.traits.remarks, *_notes(rows, tally, ranking, loss)):
            stderr.note(prefix + note)
        return ended_by

    with open_output(out) as output:
        writer = PredictionWriter(output, format)
        for path in data:
            if ended_by := score(path):
                stderr.note(f"ended by {ended_by}; all predictions are written")
                return ExitCode(128 + signal.Signals[ended_by])
    return ExitCode.OK


def _notes(rows: int, tally: Tally, ranking: Ranking | None, loss: float) -> list[str]:
    """Notes for stderr: mistakes and metrics on the rows with labels; `loss` is the log loss."""
    from msgspec.structs import asdict

    from ahpatron_cli.metrics import metrics_of

    if not tally.rounds:
        return [f"{counted(rows, 'row')} without labels"]
    part = "" if tally.rounds == rows else f" of {rows:,}"
    found = f"{counted(tally.mistakes, 'mistake')} in {counted(tally.rounds, 'row')}"
    notes = [f"{found} with labels{part} ({percent(tally.mistakes / tally.rounds)} %)"]
    if ranking is not None:
        values = asdict(metrics_of(tally.confusion.tolist(), ranking, loss / tally.rounds))
        shown = [f"{name} {value:.4f}" for name, value in values.items() if value is not None]
        notes.append(", ".join(shown))
    return notes
