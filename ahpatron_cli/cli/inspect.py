"""`ahpatron inspect`: look at data or a model. `ahpatron learners`: list all learners."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, one_of, usage
from ahpatron_cli.signals import raise_on_signals

_OF_DATA = (
    *("max_features", "positive", "scale", "sigma", "seed"),
    *("label", "id", "drop", "category", "missing"),
)
"""Options without effect on a model."""


def learners(format: options.Format = "table") -> ExitCode:
    """List all learners and kernels with their parameters."""
    from ahpatron_cli.output.formats import write_inspected
    from ahpatron_cli.output.inspect_text import print_reference, reference_to_json

    _check_format(format, "the list of learners")
    write_inspected(format, print_reference, reference_to_json)
    return ExitCode.OK


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
    """Look at data or at a model.

    Data: size, labels, ranges, duplicates, distances, which σ and scaling fit, every faulty line;
    in one pass, with little memory, however large the file.

    Model: what it is, its parameters, its active set.
    """
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.npz import is_archive
    from ahpatron_cli.output.formats import write_inspected

    raise_on_signals()
    stderr = Stderr(quiet=quiet)
    if is_archive(path):
        _refuse(context, "a model", _OF_DATA)
        _check_format(format, "a model")
        from ahpatron_cli.sweep.grid import choose_learners

        _inspect_model(path, format, choose_learners([learner])[0] if learner else None)
        return ExitCode.OK
    _refuse(context, "data", ("learner",))
    _check_format(format, "data")
    from ahpatron_cli.core import KERNELS
    from ahpatron_cli.data.scaling import SCALES
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.output.inspect_text import print_profile, profile_to_json
    from ahpatron_cli.profile.profiler import profile_of
    from ahpatron_cli.sweep.grid import parse, parse_label

    width = None
    if sigma is not None:
        width = float(parse("--sigma", KERNELS["gaussian"].specs()["sigma"], sigma))
    if scale is not None:
        one_of("scale", scale, SCALES)
    table = TableOptions(label, id, tuple(drop or ()), tuple(category or ()), missing, positive)
    with open_source(path) as source, stderr.progress(source.size, source.name) as line:
        profile = profile_of(
            source,
            max_features=max_features,
            positive=None if label else parse_label(positive),
            scale=scale,
            sigma=width,
            seed=seed,
            table=table,
            on_progress=lambda rows: line.show(source.position, f"{rows:,} rows", ""),
        )
    write_inspected(format, partial(print_profile, profile), partial(profile_to_json, profile))
    return ExitCode.BAD_DATA if profile.faults.count else ExitCode.OK


def _refuse(context: typer.Context, what: str, names: tuple[str, ...]) -> None:
    """Refuse options that would have no effect."""
    for name in names:
        if options.given_by_user(context, name):
            raise usage(f"--{name.replace('_', '-')} has no effect on {what}")


def _check_format(format: str, what: str) -> None:
    """Refuse formats that only runs and results have."""
    from ahpatron_cli.output.formats import FORMATS

    if one_of("format", format, FORMATS) not in ("table", "json"):
        hint = "use --format table for people, --format json for programs"
        raise usage(f"{what} cannot be shown as {format}", hint)


def _inspect_model(path: str, format: str, learner: str | None) -> None:
    """The learner, its parameters and its state; the file is read in full."""
    from ahpatron_cli.core.learners.metron import most_relevant
    from ahpatron_cli.models import load_model
    from ahpatron_cli.output.formats import write_inspected
    from ahpatron_cli.output.inspect_text import model_to_json, print_model

    model = load_model(path, learner)
    run = model.run(path)
    written = datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).isoformat(timespec="seconds")
    shown = (
        model.header,
        run.result().record,
        most_relevant([loop.f for loop in run.player.loops], 10),
        path,
        written,
    )
    write_inspected(format, partial(print_model, *shown), partial(model_to_json, *shown))
