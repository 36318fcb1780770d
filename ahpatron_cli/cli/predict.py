"""`ahpatron predict`: the scores of a model, without learning."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, UserError, one_of, usage
from ahpatron_cli.numbers import counted, percent
from ahpatron_cli.signals import raise_on_signals, watch

if TYPE_CHECKING:
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.models import SavedRun
    from ahpatron_cli.output.predictions import ScoreWriter

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl"}


def predict(
    model: options.Model,
    data: options.PredictData,
    learner: options.PredictLearner = None,
    format: options.PredictFormat = "csv",
    id: options.Id = None,
    metrics: options.PredictMetrics = False,
    out: options.PredictOut = None,
    max_features: options.MaxFeatures = 10_000_000,
    allow_new_features: options.AllowNewFeatures = False,
    quiet: options.Quiet = False,
) -> ExitCode:
    """Predict labels with a saved model, without learning.

    Writes the line (or the --id), the predicted label and the score f(x) of each row.
    Rows may lack labels: they start with index:value, or with ? in place of a label.
    If there are labels, the mistakes are counted on stderr.
    """
    from ahpatron_cli.atomic import check_outputs, format_of_suffix
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.data.labels import show
    from ahpatron_cli.data.npz import is_archive
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.models import ModelOptions, SavedRun, schema_of
    from ahpatron_cli.output.predictions import ScoreWriter, open_output
    from ahpatron_cli.sweep.grid import choose_learners

    raise_on_signals()
    stderr = Stderr(quiet)
    one_of("format", format, _SUFFIXES.values())
    if out:
        format = format_of_suffix(out, format, _SUFFIXES)
    if data.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    check_outputs({"--out": out}, [model, *data])
    own = choose_learners([learner])[0] if learner else None
    try:
        saved = SavedRun(ModelOptions(resume=model, learner=own), stderr.note)
    except UserError as error:
        if any(map(is_archive, data)):
            error.hint = "name the model first: `ahpatron predict MODEL DATA`"
        raise
    preparation = Preparation(
        max_features=max_features,
        may_lack_labels=True,
        allow_new_features=allow_new_features,
        table=TableOptions(id=id),
    )
    several = len(data) > 1
    assert saved.model is not None
    with open_output(out) as output:
        schema, labels = schema_of(saved.model), saved.model.labels
        if id and not schema:
            raise usage("--id names a column, and the model was trained on LIBSVM text")
        shown = [None if label is None else show(label) for label in labels]
        names = schema.label_names(labels) if schema else shown
        writer = ScoreWriter(output, format, names, several=several)
        for path in data:
            found, ended_by = _score(path, saved, preparation, writer, stderr, metrics)
            for note in found:
                stderr.note(f"{path}: {note}" if several else note)
            if ended_by:
                stderr.note(f"ended by {ended_by}; all predictions are written")
                return ExitCode(128 + signal.Signals[ended_by])
    return ExitCode.OK


def _score(
    path: str,
    saved: SavedRun,
    preparation: Preparation,
    writer: ScoreWriter,
    stderr: Stderr,
    metrics: bool,
) -> tuple[list[str], str | None]:
    """Score the rows of one file; notes on those with labels, and the signal that ended it."""
    import numpy as np
    from msgspec.structs import asdict

    from ahpatron_cli.data.dataset import stream
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.metrics import Ranking, metrics_of

    preparation, known = saved.prepared(preparation)
    rows, ranking = 0, Ranking()
    with (
        watch.ending_stream(lambda asked: stderr.show(f"{rows:,} rows") if asked else None),
        open_source(path) as source,
        stderr.progress(source.size, path) as line,
    ):
        run = saved.continued(source.name)  # before the first row is waited for
        dataset = stream(source, preparation, known)
        tally = run.new_tally()
        for batch in dataset.batches():
            scores = run.score(batch)
            schema = dataset.traits.schema
            name = schema.id if schema else None
            writer.write(dataset.name, batch.lines, scores, batch.ids, name)
            rows += len(scores)
            labelled = ~np.isnan(batch.labels)
            tally.count(scores[labelled], batch.labels[labelled])
            if metrics:
                ranking.add(scores[labelled], batch.labels[labelled])
            line.update(source.position, tally.mistakes, tally.rounds)
        saved.finish(run, dataset)
        ended_by = watch.ended_by
    if not tally.rounds:
        return [f"{counted(rows, 'row')} without labels"], ended_by
    part = "" if tally.rounds == rows else f" of {rows:,}"
    found = f"{counted(tally.mistakes, 'mistake')} in {counted(tally.rounds, 'row')}"
    notes = [f"{found} with labels{part} ({percent(tally.mistakes / tally.rounds)} %)"]
    if metrics:
        values = asdict(metrics_of(tally.confusion.tolist(), ranking))
        shown = [f"{name} {value:.4f}" for name, value in values.items() if value is not None]
        notes.append(", ".join(shown))
    return notes, ended_by
