"""`ahpatron run`: the command and checks of its options; the work is done in `session.py`."""

from __future__ import annotations

import shlex
from contextlib import ExitStack
from typing import TYPE_CHECKING, Annotated

import typer

from ahpatron_cli.errors import ExitCode, UserError, bad_data, usage
from ahpatron_cli.settings import RunSettings, all_options
from ahpatron_cli.signals import deferred, raise_on_signals

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ahpatron_cli.checkpoints import SavedRun
    from ahpatron_cli.cli.run_job import RunJob
    from ahpatron_cli.cli.session import FileSession
    from ahpatron_cli.cli.stderr import Stderr

Paths = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="DATA...",
        help="LIBSVM files or tables (.csv, .tsv, .jsonl, also gz, bz2 or xz; .parquet, .arrow, "
        ".feather), or - for standard input.",
    ),
]

EXAMPLES = """
  ahpatron run --demo -l metron
  ahpatron run data.svm -l arow -l ahpatron+ --sigma auto --scale minmax
  ahpatron run data.svm.gz -l all --budget 200 --repeats 10 --jobs 4
  ahpatron run bank.csv --label y --drop id -l metron --save model.npz
  zcat data.svm.gz | ahpatron run - --scale unit --predictions -
"""

_OF_LIVE = ("state", "answers", "on_fault", "rejects", "pending", "log", "prometheus")
"""Options that make a run on a pipe a service."""


def run(paths: Paths = None, *, settings: RunSettings) -> ExitCode:
    """Run learners on LIBSVM files or tables and count their mistakes.

    Each row is predicted before its label is seen, as soon as it has arrived;
    rows without a label (? or none) are predicted only.
    One pass in file order needs little memory, however large the file;
    --shuffle and --repeats hold the file in memory.
    """
    from ahpatron_cli.cli.run_job import decisive, job_of, setups_of
    from ahpatron_cli.cli.run_output import check_output
    from ahpatron_cli.cli.stderr import Stderr

    raise_on_signals()  # after the imports, during which exceptions may be swallowed
    stderr = Stderr(settings.output.quiet, settings.output.verbose)
    _check_resumed(settings)
    notes: list[str] = []
    setups = setups_of(settings, notes.append)
    job = job_of(settings, setups, _files(paths, settings))
    _check_live(settings, job.paths)
    if _is_live(job.paths) and _wants_service(settings):
        from ahpatron_cli.cli.live import run_live

        for note in notes:
            stderr.note(note)
        return run_live(job, settings, options=decisive(settings), stderr=stderr)
    check_output(settings, job.paths)
    saved = _saved_run(job, settings, stderr)
    for note in [*notes, *_without_effect(job, settings)]:
        stderr.note(note)
    session = _play(job, saved, settings=settings, stderr=stderr)
    max_rate = settings.live.max_rate
    return session.ending.exit_code(session.documents, max_rate=max_rate, stderr=stderr)


def _is_live(paths: Sequence[str]) -> bool:
    """Whether the only input is a live stream: standard input, a pipe or a device."""
    return len(paths) == 1 and not _is_regular(paths[0])


def _is_regular(path: str) -> bool:
    """Whether a path is a file, which can be read again; or is absent, which is reported later."""
    from ahpatron_cli.atomic import exists, is_file

    return path != "-" and (is_file(path) or not exists(path))


def _wants_service(settings: RunSettings) -> bool:
    """Whether options ask for what only a service does."""
    asked = settings.given.intersection(_OF_LIVE)
    return bool(asked) or settings.tables.id is not None


def _check_live(settings: RunSettings, paths: Sequence[str]) -> None:
    """Refuse options of live streams for files, and what a service cannot do."""
    options = all_options(type(settings))
    asked = [options[name].flag for name in _OF_LIVE if name in settings.given]
    if asked and not _is_live(paths):
        hint = "send the file through a pipe: `cat FILE | ahpatron run - …`"
        if asked == ["--state"]:
            hint += "; for a file, --checkpoint continues a run that was interrupted"
        raise usage(f"{asked[0]} is for live streams: -, or one named pipe", hint)
    if settings.models.checkpoint and not all(map(_is_regular, paths)):
        problem = "--checkpoint reads the rows again, which a pipe does not have"
        raise usage(problem, "--state FILE saves a live stream, whose next rows are new rows")
    if settings.live.rejects and settings.live.on_fault != "skip":
        raise usage("--rejects requires --on-fault skip")
    if asked and settings.order.permutes:
        raise usage(f"{asked[0]} requires one pass in the order of the rows")


def _check_resumed(settings: RunSettings) -> None:
    """Refuse options with --resume that the model has values for."""
    model = settings.models.resume
    if model is None:
        return
    learners = settings.learning.learner
    own_learner = len(learners) == 1 and ".py:" in learners[0]  # the model's own file
    for name, option in all_options(RunSettings).items():
        is_own = own_learner and name == "learner"
        if option.belongs_to == "model" and name in settings.given and not is_own:
            hint = f"the model has its own: see `ahpatron inspect {shlex.quote(model)}`"
            raise usage(f"{option.flag} cannot be combined with --resume", hint)
    if "seed" in settings.given and not settings.order.shuffle:
        raise usage("--seed with --resume requires --shuffle: the model has its own seed")


def _files(given: list[str] | None, settings: RunSettings) -> list[str]:
    """Paths of the files to run on; refuses models and pipes that would be read twice."""
    paths = list(given or [])
    if settings.data.demo:
        from ahpatron_cli.datasets import sample_path

        paths.append(str(sample_path()))
    if not paths:
        raise usage("no data: name a file, - for standard input, or --demo")
    if paths.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    for path in paths:
        _check_no_archive(path)
    if settings.guarantees.certify:
        for path in paths:
            _check_rereadable(path)
    return paths


def _check_no_archive(path: str) -> None:
    """Refuse a model, or an archive of arrays, as data."""
    from ahpatron_cli.data.source import FROM_ARRAYS
    from ahpatron_cli.npz import entries, is_archive

    if not path.endswith(".npz") or not is_archive(path):
        return
    if {"header.npy", "meta.npy"} & {*entries(path)}:
        raise usage(f"{path} is a model, not data", f"--resume {path} continues with it")
    raise bad_data("this is an archive of NumPy arrays", path, hint=FROM_ARRAYS)


def _check_rereadable(path: str) -> None:
    """Refuse --certify for a pipe."""
    from ahpatron_cli.atomic import exists, is_file

    if path == "-" or (exists(path) and not is_file(path)):
        shown = "standard input" if path == "-" else path
        problem = f"--certify reads the data again, and {shown} can be read only once"
        raise usage(problem, "write it to a file first")


def _saved_run(job: RunJob, settings: RunSettings, stderr: Stderr) -> SavedRun | None:
    """The model that the run continues or is saved to; None if there is none."""
    models = settings.models
    if not (models.save or models.resume or models.checkpoint):
        return None
    from ahpatron_cli.checkpoints import CHECKPOINT_EVERY, SavedRun
    from ahpatron_cli.cli.run_job import decisive

    if not len(job.paths) == len(job.setups) == job.options.repeats == 1:
        problem = "a model requires one file, one learner and one pass"
        raise usage(problem, "use one DATA, one -l and --repeats 1")
    if models.checkpoint and job.options.shuffle:
        raise usage("--checkpoint requires one pass in file order", "leave out --shuffle")
    return SavedRun(
        stderr.note,
        stderr.warn,
        save=models.save,
        resume=models.resume,
        checkpoint=models.checkpoint,
        every=models.save_every or CHECKPOINT_EVERY,
        learner=job.setups[0].source,
        options=decisive(settings),
    )


def _without_effect(job: RunJob, settings: RunSettings) -> Iterator[str]:
    """Notes about options that have no effect."""
    passes = len(job.setups) * job.options.repeats
    writes_rows = settings.output.predictions is not None
    if job.options.jobs > 1 and (writes_rows or not job.options.in_memory or passes == 1):
        yield "--jobs has no effect: there is only one pass, or its rows are written"
    if "warm_up" in settings.given and not _warms_up(job):
        yield "--warm-up has no effect without --scale minmax or standard, or --sigma auto"
    if settings.operating_point.probability and not writes_rows:
        yield "--probability has no effect without --predictions: it adds columns to the rows"


def _warms_up(job: RunJob) -> bool:
    """Whether anything is computed from the first rows before the first round."""
    from ahpatron_cli.atomic import is_file

    if job.preparation.learns_scale:
        return True
    if any(setup.auto_sigma for setup in job.setups):
        return True
    if not job.preparation.table.expect_table:
        return False
    return not all(is_file(path) for path in job.paths)  # the schema of a pipe


def _play(
    job: RunJob, saved: SavedRun | None, settings: RunSettings, stderr: Stderr
) -> FileSession:
    """Run on all files, write the output files, and print the table."""
    from ahpatron_cli.cli.run_output import export, print_documents
    from ahpatron_cli.cli.session import FileSession
    from ahpatron_cli.output.predictions import open_predictions

    output = settings.output
    models = settings.models
    checkpointed = saved.checkpointed if saved and models.checkpoint else None
    with ExitStack() as opened:
        writer = opened.enter_context(open_predictions(output.predictions, checkpointed))
        session = FileSession(
            job=job,
            stderr=stderr,
            saved=saved,
            predictions=writer,
            keeps_results=bool(models.save or models.checkpoint or output.out or output.curve),
        )
        try:
            session.run()
        except UserError:
            if session.documents:  # show the results of the files before the faulty one
                print_documents(output, session.documents, stderr)
            raise
        with deferred():  # signals wait, so that all output files are written or none
            opened.close()
            export(output, session.documents, session.curves)
    print_documents(output, session.documents, stderr)
    return session
