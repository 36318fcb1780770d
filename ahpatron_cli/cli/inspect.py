"""`ahpatron inspect`: describe data or a model."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, one_of, usage
from ahpatron_cli.signals import raise_on_signals

_OF_DATA = (
    *("max_features", "positive", "scale", "sigma", "seed"),
    *("label", "id", "drop", "category", "missing"),
)
"""Options that have no effect if PATH is a model."""


def inspect(
    context: typer.Context,
    path: options.Path,
    max_features: options.MaxFeatures = 10_000_000,
    positive: options.Positive = None,
    label: options.Label = None,
    id: options.Id = None,
    drop: options.Drop = None,
    category: options.Category = None,
    missing: options.Missing = "indicator",
    scale: options.InspectScale = None,
    sigma: options.InspectSigma = None,
    seed: options.Seed = 0,
    format: options.Format = "table",
    learner: options.PredictLearner = None,
    quiet: options.Quiet = False,
) -> ExitCode:
    """Describe a data file or a model.

    Data: size, labels, ranges, duplicates, which σ and scaling fit, every faulty line; in one pass,
    with bounded memory, however large the file.

    Model: its learner, parameters and active set.
    """
    from ahpatron_cli.npz import is_archive

    raise_on_signals()
    model = is_archive(path)
    what = "a model" if model else "data"
    given = options.given_by_user(context)
    for name in _OF_DATA if model else ("learner",):
        if name in given:
            raise usage(f"--{name.replace('_', '-')} has no effect on {what}")
    _check_format(format, what)
    if model:
        _inspect_model(path, format, learner)
        return ExitCode.OK
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.core import KERNELS
    from ahpatron_cli.data.scaling import SCALES
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.output.inspect_text import profile_text, show
    from ahpatron_cli.profile import profile_of
    from ahpatron_cli.sweep.grid import parse, parse_label

    spec = KERNELS["gaussian"].specs()["sigma"]
    width = None if sigma is None else float(parse("--sigma", spec, sigma))
    table = TableOptions.of_command(context.params, given, positive=positive)
    bar = Stderr(quiet=quiet)
    with open_source(path) as source, bar.progress(source.size, source.name) as show_progress:
        profile = profile_of(
            source,
            max_features=max_features,
            positive=None if label else parse_label(positive),
            scale=scale and one_of("scale", scale, SCALES),
            sigma=width,
            seed=seed,
            table=table,
            on_progress=lambda rows: show_progress(source.position, f"{rows:,} rows"),
        )
    show(format, profile, profile_text)
    return ExitCode.BAD_DATA if profile.faults else ExitCode.OK


def _check_format(format: str, what: str) -> None:
    """Refuse formats other than table and json."""
    from ahpatron_cli.output.formats import FORMATS

    if one_of("format", format, FORMATS) not in ("table", "json"):
        hint = "use --format table for people, --format json for programs"
        raise usage(f"{what} cannot be shown as {format}", hint)


def _inspect_model(path: str, format: str, learner: str | None) -> None:
    """Print the learner, parameters and state of a model, which is read in full."""
    from ahpatron_cli.core.metric import most_relevant
    from ahpatron_cli.model_file import load_model
    from ahpatron_cli.output.inspect_text import model_text, model_to_json, show
    from ahpatron_cli.sweep.grid import choose_learners

    model = load_model(path, choose_learners([learner])[0] if learner else None)
    run = model.run(path)
    relevance = most_relevant([loop.f for loop in run.player.loops], 10)
    written = datetime.fromtimestamp(model.written, UTC).isoformat(timespec="seconds")
    document = model_to_json(
        model.header,
        run.result().record,
        relevance,
        path=path,
        written=written,
        last_reset=run.player.last_reset,
    )
    show(format, document, model_text)
