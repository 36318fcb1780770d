"""`ahpatron run`: the command and its options. What it does is in `session.py`."""

import shlex
import signal
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.signals import deferred, raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.records import Report

_OF_THE_MODEL = (
    *("learner", "budget", "kernel", "sigma", "epsilon", "param"),
    *("scale", "positive", "theorem", "cost", "labels", "layout"),
    *("label", "drop", "category", "missing"),
)
"""Options whose values a model brings along."""


def run(
    context: typer.Context,
    data: options.RunData,
    learner: options.Learner = None,
    budget: options.Budget = None,
    kernel: options.Kernel = "gaussian",
    sigma: options.Sigma = None,
    epsilon: options.Epsilon = None,
    param: options.Param = None,
    theorem: options.Theorem = None,
    certify: options.Certify = False,
    jobs: options.Jobs = 1,
    repeats: options.Repeats = 1,
    seed: options.Seed = 0,
    shuffle: options.Shuffle = None,
    limit: options.Limit = None,
    scale: options.Scale = "none",
    positive: options.Positive = None,
    cost: options.Cost = None,
    labels: options.Labels = None,
    label: options.Label = None,
    id: options.Id = None,
    drop: options.Drop = None,
    category: options.Category = None,
    missing: options.Missing = "indicator",
    max_features: options.MaxFeatures = 10_000_000,
    warm_up: options.WarmUp = 1000,
    layout: options.Layout = "auto",
    allow_new_features: options.AllowNewFeatures = False,
    save: options.Save = None,
    resume: options.Resume = None,
    checkpoint: options.Checkpoint = None,
    every: options.Every = 100_000,
    predictions: options.Predictions = None,
    curve: options.Curve = None,
    metrics: options.Metrics = False,
    window: options.Window = None,
    format: options.Format = "table",
    out: options.Out = None,
    quiet: options.Quiet = False,
    verbose: options.Verbose = 0,
) -> ExitCode:
    """Run learners on LIBSVM files or tables and count their mistakes.

    Each row is predicted before its label is seen, as soon as it has arrived;
    rows without a label (? or none) are predicted only.
    One pass in file order needs little memory, however large the file;
    --shuffle and --repeats hold the file in memory.
    """
    from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
    from ahpatron_cli.cli.console import Stderr
    from ahpatron_cli.cli.session import Session
    from ahpatron_cli.data.dataset import LAYOUTS, Preparation
    from ahpatron_cli.data.scaling import SCALES
    from ahpatron_cli.data.tables import TableOptions
    from ahpatron_cli.errors import one_of, usage
    from ahpatron_cli.output.formats import FORMATS, to_text, write_reports
    from ahpatron_cli.output.predictions import STDOUT, check_predictions_path, open_predictions
    from ahpatron_cli.runner import RunOptions
    from ahpatron_cli.sweep.grid import (
        check_costs,
        choose_learners,
        own_kernel_remarks,
        parse_costs,
        parse_label,
        parse_labels,
        single_setups,
    )

    raise_on_signals()  # after the imports: modules half imported swallow exceptions
    stderr = Stderr(quiet=quiet, verbose=verbose)
    one_of("format", format, FORMATS)
    out_format = format_of_suffix(out, format) if out else None
    if curve:
        from ahpatron_cli.output.pictures import picture_format, write_curve

        picture_format(curve, "csv")
    if predictions:
        check_predictions_path(predictions)
    to_stdout = predictions == STDOUT
    if to_stdout and options.given_by_user(context, "format"):
        problem = f"--predictions - and --format {format} cannot share standard output"
        raise usage(problem, "write the results to a file: --out FILE")
    written = None if to_stdout else predictions
    outputs = {"--out": out, "--curve": curve, "--predictions": written}
    check_outputs({**outputs, "--save": save, "--checkpoint": checkpoint}, data)
    if options.given_by_user(context, "every") and not checkpoint:
        raise usage("--every requires --checkpoint FILE")
    if allow_new_features and not resume:
        raise usage("--allow-new-features requires --resume MODEL")
    if resume and options.given_by_user(context, "seed") and not shuffle:
        raise usage("--seed with --resume requires --shuffle: the model has its own seed")
    if resume:
        from ahpatron_cli.core.learners import is_path

        own = len(learner or []) == 1 and is_path((learner or [""])[0])
        fixed = [name for name in _OF_THE_MODEL if not (own and name == "learner")]
        if known := [name for name in fixed if options.given_by_user(context, name)]:
            problem = f"--{known[0]} cannot be combined with --resume: the model has its own"
            raise usage(problem, f"`ahpatron inspect {shlex.quote(resume)}` shows it")
    chosen = choose_learners(learner or ["ahpatron"])
    setups, remarks = single_setups(
        chosen,
        kernel,
        param or [],
        {"budget": budget, "sigma": sigma, "epsilon": epsilon},
    )
    if theorem:
        from ahpatron_cli.certify import meet

        setups = meet(theorem, setups)
    for remark in remarks:
        stderr.warn(remark)
    for remark in own_kernel_remarks(
        chosen, scale, typed_kernel=options.given_by_user(context, "kernel")
    ):
        stderr.note(remark)
    permuted = repeats > 1 if shuffle is None else shuffle
    is_table = label is not None
    costs = parse_costs(cost or [], named=is_table)
    check_costs(costs, setups)
    if costs and (certify or theorem):
        raise usage("--certify and --theorem require equal costs: leave out --cost")
    repetition = RunOptions(
        repeats,
        seed,
        permuted,
        metrics,
        exact_auc=permuted or repeats > 1,
        window=window or 0,
        costs=costs,
    )
    one_of("scale", scale, SCALES)
    if labels is not None and positive is not None:
        raise usage("--labels and --positive cannot be combined", "give one of them")
    table = TableOptions(
        *(label, id, tuple(drop or ()), tuple(category or ()), missing, positive),
        labels=tuple(labels.split(",")) if labels else (),
    )
    preparation = Preparation(
        limit,
        scale,
        None if is_table else parse_label(positive),
        max_features,
        warm_up,
        None if is_table else parse_labels(labels),
        table=table,
        layout=one_of("layout", layout, LAYOUTS),
        allow_new_features=allow_new_features,
    )
    saved = None
    if save or resume or checkpoint:
        from ahpatron_cli.models import ModelOptions, SavedRun

        models = ModelOptions(save, resume, checkpoint, every, setups[0].source)
        models.check(len(data), len(setups), repeats, not permuted, bool(curve))
        saved = SavedRun(models, stderr.note)
    if certify and (resume or checkpoint):
        raise usage("--certify requires the whole stream, from its first round, in one run")
    reports: list[Report] = []

    def write() -> None:
        if to_stdout:
            stderr.show(to_text(reports, format))
        else:
            write_reports(reports, format)

    try:
        with ExitStack() as last:
            rounds = saved.checkpointed if saved and checkpoint else None
            writer = last.enter_context(open_predictions(predictions, rounds))
            session = Session(
                data,
                setups,
                preparation,
                repetition,
                jobs,
                stderr,
                writer,
                saved,
                certify=certify,
                traced=bool(curve),
            )
            for path in data:
                reports.append(session.play(path))
                if session.ended_by:
                    break
            with deferred():  # all output files, or none
                last.close()
                if curve:
                    write_curve(curve, session.curves)
                if out and out_format:
                    write_atomically(out, to_text(reports, out_format))
    except UserError:
        if 0 < len(reports) < len(data):  # show the files before the faulty one
            write()
            sys.stdout.flush()
        raise
    write()
    if session.ended_by is None:
        return ExitCode.OK
    rows = sum(run.rounds + run.unlabelled for run in reports[-1].runs[:1])
    stderr.note(f"ended by {session.ended_by} after {rows:,} rows; all results are written")
    return ExitCode(128 + signal.Signals[session.ended_by])
