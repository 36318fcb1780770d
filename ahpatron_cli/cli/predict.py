"""`ahpatron predict`: predictions and scores of a saved model; the work is in `scoring.py`."""

from __future__ import annotations

import signal
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Annotated

import typer

from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.settings import PredictSettings, RowFormat, Tables, options_of
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.atomic import Output
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.model_file import Model
    from ahpatron_cli.thresholds import FiguresDocument

FIGURES = ("table", "json")
"""Formats of the figures of --metrics, instead of rows."""
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
    from ahpatron_cli.cli.scoring import Scorer
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
