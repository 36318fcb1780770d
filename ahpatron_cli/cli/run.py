"""`ahpatron run`: the command and its options. What it does is in `session.py`."""

import shlex
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import UserError
from ahpatron_cli.signals import deferred, raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.records import Report

_OF_THE_MODEL = (
    *("learner", "budget", "kernel", "sigma", "epsilon", "param"),
    *("scale", "positive", "theorem", "cost"),
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
    max_features: options.MaxFeatures = 10_000_000,
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
) -> None:
    """Play learners over LIBSVM files and count their mistakes.

    Each example is predicted before its label is seen.
    One pass in file order needs little memory, however large the file;
    --shuffle and --repeats hold the file in memory.
    """
    from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.cli.session import Session
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.data.scaling import SCALES
    from ahpatron_cli.errors import one_of, usage
    from ahpatron_cli.output.formats import FORMATS, to_text, write_reports
    from ahpatron_cli.output.predictions import STDOUT, check_predictions_path, open_predictions
    from ahpatron_cli.runner import Repetition
    from ahpatron_cli.sweep.grid import (
        check_costs,
        choose_learners,
        own_kernel_remarks,
        parse_costs,
        parse_label,
        single_setups,
    )

    raise_on_signals()  # after the imports: modules half imported swallow exceptions
    talk = Conversation(quiet=quiet, verbose=verbose)
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
        talk.warn(remark)
    typed_kernel = options.given_by_user(context, "kernel")
    for remark in own_kernel_remarks(chosen, scale, typed_kernel=typed_kernel):
        talk.note(remark)
    permuted = repeats > 1 if shuffle is None else shuffle
    costs = parse_costs(cost or [])
    check_costs(costs, setups)
    if costs and (certify or theorem):
        raise usage("--certify and --theorem require equal costs: leave out --cost")
    repetition = Repetition(
        repeats,
        seed,
        permuted,
        metrics,
        exact_auc=permuted or repeats > 1,
        window=window or 0,
        costs=costs,
    )
    one_of("scale", scale, SCALES)
    label = parse_label(positive)
    preparation = Preparation(limit, scale, label, max_features, warm_up=not permuted)
    saved, traced = None, bool(predictions or curve)
    if save or resume or checkpoint:
        from ahpatron_cli.models import ModelOptions, SavedPass

        models = ModelOptions(save, resume, checkpoint, every, setups[0].source)
        models.check(len(data), len(setups), repeats, not permuted, traced)
        saved = SavedPass(models, talk.note)
    if certify and (resume or checkpoint):
        raise usage("--certify requires the whole stream, from its first round, in one run")
    reports: list[Report] = []

    def write() -> None:
        if to_stdout:
            talk.show(to_text(reports, format))
        else:
            write_reports(reports, format)

    try:
        with ExitStack() as last:
            writer = last.enter_context(open_predictions(predictions))
            session = Session(
                data,
                setups,
                preparation,
                repetition,
                jobs,
                talk,
                writer,
                saved,
                certify=certify,
                traced=traced,
            )
            for path in data:
                reports.append(session.play(path))  # noqa: PERF401 - a fault leaves those before
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
