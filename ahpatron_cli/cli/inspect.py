"""`ahpatron inspect`: look at data, a model, the results of a sweep, or the list of learners."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, bad_data, one_of, usage
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.cli.sweep_session import FindingsOutput
    from ahpatron_cli.sweep.summary import Criterion

_TABLE = ("label", "id", "drop", "category", "missing")
_DATA = ("max_features", "positive", "scale", "sigma", "seed", "format", *_TABLE)
_RESULTS = (
    *("format", "plot", "report", "out", "learner", "data", "metric", "tune_orders"),
    *("matrix", "trials", "merge", "x"),
)


def inspect(
    context: typer.Context,
    paths: options.Paths = None,
    learners: options.Learners = False,
    max_features: options.MaxFeatures = 10_000_000,
    positive: options.Positive = None,
    label: options.Label = None,
    id: options.Id = None,
    drop: options.Drop = None,
    category: options.Category = None,
    missing: options.Missing = "indicator",
    scale: options.InspectScale = None,
    sigma: options.InspectSigma = None,
    seed: options.InspectSeed = 0,
    format: options.Format = "table",
    plot: options.Plot = None,
    report: options.Report = None,
    x: options.X = None,
    out: options.Out = None,
    learner: options.InspectLearner = None,
    data: options.InspectData = None,
    metric: options.Metric = "mistake_rate",
    tune_orders: options.TuneOrders = 0,
    matrix: options.Matrix = False,
    trials: options.Trials = False,
    merge: options.Merge = None,
    quiet: options.Quiet = False,
) -> ExitCode:
    """Look at data, a model, the results of a sweep, or the list of learners.

    Data: size, labels, ranges, duplicates, distances, which σ and scaling fit, every faulty line;
    in one pass, with little memory, however large the file.

    Model: what it is, its parameters, its active set.

    Results: the tables and pictures again, without running anything; several files together.
    """
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.data.npz import is_archive
    from ahpatron_cli.output.formats import FORMATS, write_inspected
    from ahpatron_cli.sweep.results_file import looks_like_json

    raise_on_signals()
    if learners == bool(paths):
        raise usage("give a PATH, or --learners", "for example `ahpatron inspect data.svm`")
    one_of("format", format, FORMATS)
    talk = Conversation(quiet=quiet)
    if not paths:
        _refuse_others(context, "the list of learners", ("format",), format)
        from ahpatron_cli.output.inspect_text import print_reference, reference_to_json

        write_inspected(format, print_reference, reference_to_json)
        return ExitCode.OK
    path = paths[0]
    if looks_like_json(path):
        _refuse_others(context, "a results file", _RESULTS)
        from ahpatron_cli.cli.sweep_session import FindingsOutput, criterion_of

        output = FindingsOutput(format, plot, report, out, matrix, trials, x)
        criterion = criterion_of(metric, tune_orders)
        _inspect_results(paths, output, criterion, learner or [], data or [], merge, talk)
        return ExitCode.OK
    if len(paths) > 1:
        raise usage("only results files can be shown together", "give one PATH")
    if is_archive(path):
        _refuse_others(context, "a model", ("format", "learner"), format)
        from ahpatron_cli.sweep.grid import choose_learners

        _inspect_model(path, format, choose_learners(learner)[0] if learner else None)
        return ExitCode.OK
    _refuse_others(context, "data", _DATA, format)
    from ahpatron_cli.core import KERNELS
    from ahpatron_cli.data.scaling import SCALES
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.output.inspect_text import print_profile, profile_to_json
    from ahpatron_cli.profile.profiler import Profiler
    from ahpatron_cli.sweep.grid import parse, parse_label

    width = None
    if sigma is not None:
        width = float(parse("--sigma", KERNELS["gaussian"].specs()["sigma"], sigma))
    if scale is not None:
        one_of("scale", scale, SCALES)
    table = TableOptions(label, id, tuple(drop or ()), tuple(category or ()), missing, positive)
    with open_source(path) as source, talk.progress(source.size, source.name) as line:
        profiler = Profiler(
            source,
            max_features=max_features,
            positive=None if label else parse_label(positive),
            table=table,
            scale=scale,
            sigma=width,
            seed=seed,
        )
        profile = profiler.run(lambda rows: line.show(source.position, f"{rows:,} rows", ""))
    write_inspected(format, partial(print_profile, profile), partial(profile_to_json, profile))
    return ExitCode.BAD_DATA if profile.faults.count else ExitCode.OK


def _refuse_others(
    context: typer.Context, what: str, legal: tuple[str, ...], format: str = "table"
) -> None:
    """Refuse options that would have no effect, and formats that only results have."""
    for name in (*_DATA, *_RESULTS):
        if name not in legal and options.given_by_user(context, name):
            hint = f"options for {what}: {', '.join(map(_flag, legal))}"
            raise usage(f"{_flag(name)} has no effect on {what}", hint)
    if format not in ("table", "json"):
        hint = "use --format table for people, --format json for programs"
        raise usage(f"{what} cannot be shown as {format}", hint)


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _inspect_model(path: str, format: str, learner: str | None) -> None:
    """The learner, its parameters and its state; the file is read in full."""
    from ahpatron_cli.models import ModelOptions, SavedPass
    from ahpatron_cli.output.formats import write_inspected
    from ahpatron_cli.output.inspect_text import model_to_json, print_model

    saved = SavedPass(ModelOptions(resume=path, learner=learner), lambda text: None)
    model = saved.model
    assert model is not None
    run = saved.continued(path)
    written = datetime.fromtimestamp(Path(path).stat().st_mtime, UTC).isoformat(timespec="seconds")
    shown = model, run.result().record, run.relevance(), path, written
    write_inspected(format, partial(print_model, *shown), partial(model_to_json, *shown))


def _inspect_results(
    paths: list[str],
    output: FindingsOutput,
    criterion: Criterion,
    learners: list[str],
    data: list[str],
    merge: str | None,
    talk: Conversation,
) -> None:
    """Everything that results files say, without running anything."""
    from ahpatron_cli.atomic import check_outputs, write_atomically
    from ahpatron_cli.cli.sweep_session import warn_of_damaged_lines
    from ahpatron_cli.sweep.results_file import (
        check_results_path,
        looks_like_json,
        merge_results,
        read_results,
    )
    from ahpatron_cli.sweep.summary import choose_trials, find

    output.check(paths)
    for path in paths:
        if Path(path).is_file() and Path(path).stat().st_size and not looks_like_json(path):
            raise usage(f"{path} is not a results file: only these are shown together")
    if merge:
        check_results_path(merge, "--merge")
        if Path(merge).exists():
            raise usage(f"{merge} exists already", "name a new file: --merge FILE.jsonl")
        check_outputs({"--merge": merge}, paths)
    each = [read_results(path) for path in paths]
    for path, contents in zip(paths, each, strict=True):
        torn = "is torn: a sweep is still writing, or was killed"
        warn_of_damaged_lines(talk, path, contents, torn)
    contents = each[0]
    if len(paths) > 1 or merge:
        content, contents = merge_results(paths)
        if merge:
            write_atomically(merge, content)
    trials = choose_trials(list(contents.trials.values()), learners, data)
    findings = find(trials, contents.headers, criterion)
    if not findings.trials and not findings.failed:
        raise bad_data("no trial was finished yet", paths[0])
    output.write(findings, trials, talk)
