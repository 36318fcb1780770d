"""`ahpatron inspect`: describe data or a model."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated

import typer

from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.settings import InspectSettings, parts_of
from ahpatron_cli.signals import raise_on_signals

Path = Annotated[
    str,
    typer.Argument(
        metavar="PATH", help="A LIBSVM file, a table, - for standard input, or a model."
    ),
]
OF_DATA = ("inspection", "data", "tables", "order")
OF_MODELS = ("saved", "explanation")
"""Groups of settings that have an effect on one kind of PATH only."""

EXAMPLES = """
  ahpatron inspect bank.csv --label y
  ahpatron inspect bank.csv
  ahpatron inspect model.npz --examples 5
"""


def inspect(path: Path, *, settings: InspectSettings) -> ExitCode:
    """Describe a data file or a model.

    Data: size, labels, ranges, duplicates, which σ and scaling fit, every faulty line; in one pass,
    with bounded memory, however large the file.

    Model: its learner, parameters and active set.
    """
    from ahpatron_cli.npz import is_archive

    raise_on_signals()
    if is_archive(path):
        _check_effect(settings, OF_DATA, "a model")
        return _inspect_model(path, settings)
    _check_effect(settings, OF_MODELS, "data")
    return _inspect_data(path, settings)


def _check_effect(settings: InspectSettings, groups: tuple[str, ...], what: str) -> None:
    """Refuse the options of these groups, which have no effect on `what`."""
    parts = parts_of(InspectSettings)
    for group in groups:
        for name, option in parts[group].options.items():
            if name in settings.given:
                raise usage(f"{option.flag} has no effect on {what}")


def _inspect_data(path: str, settings: InspectSettings) -> ExitCode:
    """Print the profile of a data file."""
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.core import KERNELS
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.grid import parse
    from ahpatron_cli.output.formats import show_document
    from ahpatron_cli.output.inspect_text import profile_text
    from ahpatron_cli.profiling import profile_of
    from ahpatron_cli.setups import parse_label, table_options

    data = settings.data
    sigma = None
    if settings.inspection.sigma is not None:
        spec = KERNELS["gaussian"].specs()["sigma"]
        sigma = float(parse("--sigma", spec, settings.inspection.sigma))
    stderr = Stderr(settings.output.quiet)
    positive = None
    if not settings.tables.expect_table:
        positive = parse_label(data.positive)
    with open_source(path) as source, stderr.progress(source.size, source.name) as show_progress:
        profile = profile_of(
            source,
            data=data,
            positive=positive,
            scale=settings.inspection.scale,
            sigma=sigma,
            seed=settings.order.seed,
            table=table_options(settings.tables, settings.given, positive=data.positive),
            on_progress=lambda rows: show_progress(source.position, f"{rows:,} rows"),
        )
    show_document(settings.document.format, profile, profile_text)
    if profile.faults:
        return ExitCode.BAD_DATA
    return ExitCode.OK


def _inspect_model(path: str, settings: InspectSettings) -> ExitCode:
    """Print the learner, parameters and state of a model, which is read in full."""
    from ahpatron_cli.explanation import stored_examples
    from ahpatron_cli.model_file import load_model
    from ahpatron_cli.output.formats import show_document
    from ahpatron_cli.output.inspect_text import model_document, model_text
    from ahpatron_cli.output.predictions import label_names
    from ahpatron_cli.setups import model_learner

    model = load_model(path, model_learner(settings.saved))
    run = model.run(path)
    moment = datetime.fromtimestamp(model.written, UTC)
    written = moment.isoformat(timespec="seconds")
    examples = None
    if settings.explanation.examples is not None:
        names = label_names(model.header.labels, model.header.schema)
        most = settings.explanation.examples
        examples = stored_examples(model, run.player, names, most=most)
    document = model_document(model, run, path=path, written=written, examples=examples)
    show_document(settings.document.format, document, model_text)
    return ExitCode.OK
