"""`ahpatron run`: the command and checks of its options; the work is done in `session.py`."""

import shlex
import signal
from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import typer

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, UserError, bad_data, usage
from ahpatron_cli.signals import deferred, raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.session import Session
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.records import Report
    from ahpatron_cli.runner import Setup

OF_THE_MODEL = frozenset(
    {
        *("learner", "budget", "kernel", "sigma", "epsilon", "param", "theorem"),
        *("scale", "positive", "cost", "labels", "layout", "warm_up"),
        *("label", "drop", "category", "missing"),
    }
)
"""Options whose values a model has: refused with --resume, the same with --checkpoint."""
OF_THE_STREAM = frozenset({"repeats", "seed", "shuffle", "limit", "id"})
"""Options that decide which rows are learned, and how: the same with --checkpoint."""
OF_THE_CALL = frozenset(
    {
        *("data", "demo", "save", "resume", "checkpoint", "every"),
        *("certify", "jobs", "max_features", "allow_new_features", "metrics", "window"),
        *("predictions", "curve", "format", "out", "quiet", "verbose"),
    }
)
"""Options that may be different each time; the rows of DATA are compared with a checkpoint."""
_REQUIRED = {"every": "checkpoint", "allow_new_features": "resume"}
_EXCLUSIVE = (
    *(("labels", "positive"), ("certify", "cost"), ("theorem", "cost"), ("quiet", "verbose")),
    *(("certify", "resume"), ("certify", "checkpoint")),
    *(("checkpoint", "resume"), ("checkpoint", "curve")),
)


def run(
    context: typer.Context,
    data: options.RunData = None,
    demo: options.Demo = False,
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
    from ahpatron_cli.cli.session import RunOutput, Session
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.output.predictions import open_predictions
    from ahpatron_cli.runner import RunOptions
    from ahpatron_cli.sweep import grid

    raise_on_signals()  # after the imports, during which exceptions may be swallowed
    stderr = Stderr(quiet, verbose)
    given = options.given_by_user(context)
    _check_combinations(given, learner or [], resume, shuffle)

    notes: list[str] = []
    specs = grid.single_setups(context.params, given, notes.append)
    if theorem:
        from ahpatron_cli.certify import satisfying

        specs = satisfying(theorem, specs)
    permuted = repeats > 1 if shuffle is None else shuffle
    run_options = RunOptions(
        *(repeats, seed, permuted, metrics),
        window=window or 0,
        costs=grid.parse_costs(context.params),
        curve=curve is not None,
        certify=certify,
        theorem=theorem,
        jobs=jobs,
    )
    preparation = grid.preparation(context.params, given)
    paths = _data(data, demo=demo, certify=certify)
    output = RunOutput(format, out, curve, predictions)

    grid.check_costs(run_options.costs, specs)
    if predictions == "-" and "format" in given:
        problem = f"--predictions - and --format {format} cannot share standard output"
        raise usage(problem, "write the results to a file: --out FILE")
    output.check(paths, {"--save": save, "--checkpoint": checkpoint})
    saved = None
    if save or resume or checkpoint:
        from ahpatron_cli.checkpoints import SavedRun

        if not len(paths) == len(specs) == repeats == 1:
            problem = "a model requires one file, one learner and one pass"
            raise usage(problem, "use one DATA, one -l and --repeats 1")
        if checkpoint and permuted:
            raise usage("--checkpoint requires one pass in file order", "leave out --shuffle")
        saved = SavedRun(
            stderr.note,
            stderr.warn,
            save=save,
            resume=resume,
            checkpoint=checkpoint,
            every=every,
            learner=specs[0].source,
            options=_deciding(context.params),
        )
    if jobs > 1 and (predictions or not run_options.in_memory or len(specs) * repeats == 1):
        notes.append("--jobs has no effect: there is only one pass, or its rows are written")
    if "warm_up" in given and not _warms_up(paths, specs, preparation):
        notes.append("--warm-up has no effect without --scale minmax or standard, or --sigma auto")
    for note in notes:
        stderr.note(note)

    reports: list[Report] = []
    with ExitStack() as opened:
        checkpointed = saved.checkpointed if saved and checkpoint else None
        writer = opened.enter_context(open_predictions(predictions, checkpointed))
        session = Session(
            paths,
            specs,
            preparation,
            run_options,
            stderr,
            saved=saved,
            predictions=writer,
            keeps_results=bool(save or checkpoint or out or curve),
        )
        try:
            for path in paths:
                reports.append(session.run(path))
                if session.ended_by:
                    break
        except UserError:
            if reports:  # show the results of the files before the faulty one
                output.show(reports, stderr)
            raise
        with deferred():  # signals wait, so that all output files are written or none
            opened.close()
            output.export(reports, session.curves)
    output.show(reports, stderr)
    return _exit_code(session, reports[-1], stderr)


def _warms_up(paths: "list[str]", specs: "list[Setup]", preparation: "Preparation") -> bool:
    """Whether anything is computed from the first rows before the first round."""
    from ahpatron_cli.atomic import is_file
    from ahpatron_cli.data.scaling import LEARNED_SCALES

    is_table = preparation.table.label is not None
    return (
        preparation.scale in LEARNED_SCALES
        or any(spec.auto_sigma for spec in specs)
        or (is_table and not all(is_file(path) for path in paths))  # its schema
    )


def _exit_code(session: "Session", last: "Report", stderr: "Stderr") -> ExitCode:
    """The exit code, with a note if the run did not end by itself."""
    if session.reader_left:
        stderr.note("the reader of the predictions closed the pipe; all other results are written")
        return ExitCode.BROKEN_PIPE
    if session.ended_by is None:
        return ExitCode.OK
    rows = last.runs[0].rounds + last.runs[0].unlabelled
    stderr.note(f"ended by {session.ended_by} after {rows:,} rows; all results are written")
    return ExitCode(128 + signal.Signals[session.ended_by])


def _check_combinations(
    given: set[str], learners: list[str], resume: str | None, shuffle: bool | None
) -> None:
    """Refuse combinations of options that contradict each other or have no effect."""
    for name, required in _REQUIRED.items():
        if name in given and required not in given:
            raise usage(f"{options.flag(name)} requires {options.flag(required)}")
    for name, other in _EXCLUSIVE:
        if {name, other} <= given:
            raise usage(f"{options.flag(name)} cannot be combined with {options.flag(other)}")
    if resume is None:
        return
    own_learner = len(learners) == 1 and ".py:" in learners[0]  # the model's own file
    for name in sorted(OF_THE_MODEL & given):
        if not (own_learner and name == "learner"):
            hint = f"the model has its own: see `ahpatron inspect {shlex.quote(resume)}`"
            raise usage(f"{options.flag(name)} cannot be combined with --resume", hint)
    if "seed" in given and not shuffle:
        raise usage("--seed with --resume requires --shuffle: the model has its own seed")


def _deciding(values: Mapping[str, Any]) -> dict[str, Any]:
    """Values of the options that decide the rounds of a run, without those that are not set.

    The learner is left out: a model has its name and the hash of its file.
    """
    names = sorted((OF_THE_MODEL | OF_THE_STREAM) - {"learner"})
    chosen = {name: values[name] for name in names if values[name]}
    return {
        name: sorted(value) if isinstance(value, list | tuple) else value
        for name, value in chosen.items()
    }


def _data(data: list[str] | None, *, demo: bool, certify: bool) -> list[str]:
    """Paths of the files to run on; refuses models and pipes that would be read twice."""
    from ahpatron_cli.atomic import exists, is_file
    from ahpatron_cli.data.source import FROM_ARRAYS
    from ahpatron_cli.npz import entries, is_archive

    if demo:
        from ahpatron_cli.datasets import sample_path

        data = [*(data or []), str(sample_path())]
    if not data:
        raise usage("no data: name a file, - for standard input, or --demo")
    if data.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    for path in filter(is_archive, [word for word in data if word.endswith(".npz")]):
        if {"header.npy", "meta.npy"} & {*entries(path)}:
            raise usage(f"{path} is a model, not data", f"--resume {path} continues with it")
        raise bad_data("this is an archive of NumPy arrays", path, hint=FROM_ARRAYS)
    for path in data if certify else ():
        if path == "-" or (exists(path) and not is_file(path)):
            shown = "standard input" if path == "-" else path
            problem = f"--certify reads the data again, and {shown} can be read only once"
            raise usage(problem, "write it to a file first")
    return data
