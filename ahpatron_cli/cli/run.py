"""`ahpatron run`: the command and its options. What it does is in `session.py`."""

import shlex
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

import typer

from ahpatron_cli.cli.options import typed
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
    data: list[str],
    learner: list[str] | None = None,
    budget: str | None = None,
    kernel: str = "gaussian",
    sigma: str | None = None,
    epsilon: str | None = None,
    param: list[str] | None = None,
    theorem: str | None = None,
    certify: bool = False,
    jobs: int = 1,
    repeats: int = 1,
    seed: int = 0,
    shuffle: bool | None = None,
    limit: int | None = None,
    scale: str = "none",
    positive: str | None = None,
    cost: list[str] | None = None,
    max_features: int = 10_000_000,
    cache: bool = False,
    save: str | None = None,
    resume: str | None = None,
    freeze: bool = False,
    checkpoint: str | None = None,
    every: int = 100_000,
    predictions: str | None = None,
    curve: str | None = None,
    metrics: bool = False,
    mcnemar: bool = False,
    window: int | None = None,
    fading: float | None = None,
    format: str = "table",
    out: str | None = None,
    quiet: bool = False,
    verbose: int = 0,
) -> None:
    """Play learners over LIBSVM files and count their mistakes.

    Each example is predicted before its label is seen.
    One pass in file order needs little memory, however large the file;
    --shuffle and --repeats hold the file in memory.
    """
    from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.cli.session import Session
    from ahpatron_cli.data.cache import default_folder
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
    if to_stdout and typed(context, "format"):
        problem = f"--predictions - and --format {format} cannot share standard output"
        raise usage(problem, "write the results to a file: --out FILE")
    written = None if to_stdout else predictions
    outputs = {"--out": out, "--curve": curve, "--predictions": written}
    check_outputs({**outputs, "--save": save, "--checkpoint": checkpoint}, data)
    if typed(context, "every") and not checkpoint:
        raise usage("--every requires --checkpoint FILE")
    if resume and typed(context, "seed") and not shuffle:
        raise usage("--seed with --resume requires --shuffle: the model has its own seed")
    if resume:
        from ahpatron_cli.core.learners import is_path

        own = len(learner or []) == 1 and is_path((learner or [""])[0])
        fixed = [name for name in _OF_THE_MODEL if not (own and name == "learner")]
        if known := [name for name in fixed if typed(context, name)]:
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
    for remark in own_kernel_remarks(chosen, scale, typed_kernel=typed(context, "kernel")):
        talk.note(remark)
    permuted = repeats > 1 if shuffle is None else shuffle
    costs = parse_costs(cost or [])
    check_costs(costs, setups)
    if costs and (certify or theorem):
        raise usage("--certify and --theorem require equal costs: leave out --cost")
    if window and fading is not None:
        raise usage("--window and --fading cannot be combined", "give one of them")
    if fading is not None and not 0 < fading < 1:
        raise usage(f"--fading must be a number > 0 and < 1, got {fading:g}")
    repetition = Repetition(
        repeats,
        seed,
        permuted,
        metrics,
        exact_auc=permuted or repeats > 1,
        window=window or 0,
        fading=fading or 0.0,
        costs=costs,
    )
    one_of("scale", scale, SCALES)
    label = parse_label(positive)
    preparation = Preparation(limit, scale, label, max_features, warm_up=not permuted)
    saved, traced = None, bool(predictions or curve)
    if save or resume or freeze or checkpoint:
        from ahpatron_cli.models import ModelOptions, SavedPass

        models = ModelOptions(save, resume, freeze, checkpoint, every, setups[0].source)
        models.check(len(data), len(setups), repeats, not permuted, traced)
        saved = SavedPass(models, talk.note)
    if certify and (resume or checkpoint):
        raise usage("--certify requires the whole stream, from its first round, in one run")
    if mcnemar and (repeats > 1 or len(setups) < 2):
        problem = "--mcnemar compares several learners on one order"
        raise usage(problem, "use several -l; for several orders use `ahpatron sweep`")
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
                default_folder() if cache else None,
                certify=certify,
                mcnemar=mcnemar,
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
