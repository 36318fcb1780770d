"""Trials: one learner with one setting on one permutation of one file."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import time
import traceback
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ahpatron_cli import __version__
from ahpatron_cli.core import ALGORITHM
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.registry import BUILT_IN_SOURCE, learner_source, third_party_files
from ahpatron_cli.data.dataset import RowsInMemory
from ahpatron_cli.data.dataset import mapped as mapped_dataset
from ahpatron_cli.data.labels import show
from ahpatron_cli.data.opening import load
from ahpatron_cli.data.preparation import Preparation
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError, learner_fault
from ahpatron_cli.pool import Died, run_all
from ahpatron_cli.records import Number, Outcome, ParamValue, RunRecord, TrialData, plain_params
from ahpatron_cli.runner import RunOptions, Setup, run_repeat

WEIGHT = "weight."
"""Start of the name of a parameter that is the weight of a label."""


class Trial(Struct, frozen=True, dict=True):
    """A trial to run; plain values only, so that it can be sent to any worker."""

    data: TrialData
    setup: Setup
    seed: int
    repeat: int
    params: Mapping[str, ParamValue]
    """All parameters with defaults, except those that are derived from T."""
    path: str
    """Absolute path of the data file."""
    preparation: Preparation
    source: str = BUILT_IN_SOURCE
    """Origin of the learner's class, with its version or hash."""
    metrics: bool = False
    """Whether to compute metrics that need scores, such as AUC."""
    mapped: str | None = None
    """Local folder with the parsed file, if any."""
    version: str = __version__
    weights: tuple[tuple[Number | str, float], ...] = ()
    """Weights of labels that the sweep varies; they are among the parameters, too."""

    @property
    def learner(self) -> str:
        """The learner's name."""
        return self.setup.learner

    @cached_property
    def id(self) -> str:
        """Hash of everything that determines the outcome, without time, host and file name."""
        decides = {
            "algorithm": ALGORITHM,
            "data": [*self.data.identity, self.preparation.learned, self.data.prefix],
            "learner": [self.setup.learner, self.source, plain_params(self.params)],
            "order": [self.seed, self.repeat],
        }
        text = json.dumps(decides, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def on_prefix(self, rounds: int) -> Trial:
        """The same trial on the first `rounds` rounds; T remains the number of all rounds."""
        return replace(self, data=replace(self.data, prefix=rounds))

    def stored(self, outcome: Outcome) -> Outcome:
        """An outcome of this trial from a results file, with what the file may not know.

        The data file may have been renamed, and version 1.0 did not store the source. As the id is
        a hash of the source, it is that of this trial.
        """
        known = self.outcome(None, None)
        return replace(outcome, data=known.data, algorithm=known.algorithm, source=known.source)

    def outcome(self, run: RunRecord | None, error: str | None, wall: float = 0.0) -> Outcome:
        """The `Outcome` of this trial, with its record or its error."""
        return Outcome(
            id=self.id,
            data=self.data,
            learner=self.setup.learner,
            params=run.params if run else self.params,
            seed=self.seed,
            repeat=self.repeat,
            run=run,
            error=error,
            texts=self.setup.texts,
            wall_seconds=wall,
            algorithm=ALGORITHM,
            source=None if self.source == BUILT_IN_SOURCE else self.source,
            version=self.version,
            machine=machine_name(),
        )


def weight_params(weights: Iterable[tuple[Number | str, float]]) -> dict[str, ParamValue]:
    """Weights of labels as parameters of a setting: `weight.yes`."""
    found: dict[str, ParamValue] = {}
    for label, weight in weights:
        name = label if isinstance(label, str) else show(label)
        found[WEIGHT + name] = weight
    return found


def run_trials(trials: Sequence[Trial], jobs: int, retries: int) -> Iterator[Outcome | None]:
    """Run trials in `jobs` processes; yield outcomes as they finish, and None while waiting."""
    for number, outcome in run_all(run_trial, trials, jobs=jobs, retries=retries):
        if isinstance(outcome, Died):
            outcome = trials[number].outcome(None, outcome.reason)
        yield outcome


def run_trial(trial: Trial) -> Outcome:
    """Run a trial and return its outcome; errors of the trial become part of the outcome.

    Raises `UserError` only if this process, such as a cluster worker, has another version of the
    package or of the learner, so that no trial can be run here.
    """
    if trial.version != __version__:
        raise UserError(f"the worker has ahpatron {__version__}, this is {trial.version}")
    started = time.perf_counter()
    run = None
    error = None
    try:
        run = _record(trial)
    except UserError as refusal:
        error = f"{refusal.place}: {refusal.problem}" if refusal.place else refusal.problem
    except ParameterError as refusal:
        error = str(refusal)
    except MemoryError:
        error = "not enough memory"
    except (Exception, SystemExit) as bug:  # a bug in one trial must not end the sweep
        error = _text_of(bug)
    return trial.outcome(run, error, time.perf_counter() - started)


def _record(trial: Trial) -> RunRecord:
    """Run a trial and return its record."""
    if learner_source(trial.setup.kind) != trial.source:
        problem = f"the learner {trial.setup.learner} is not that of the sweep: {trial.source}"
        raise UserError(problem)
    data = trial.data
    dataset = _dataset(
        path=trial.path,
        sha256=data.sha256,
        preparation=trial.preparation,
        mapped=trial.mapped,
    )
    options = RunOptions(
        repeats=trial.repeat + 1,
        seed=trial.seed,
        shuffle=data.shuffled,
        metrics=trial.metrics,
        weights=dict((*data.weights, *trial.weights)),
        prefix=data.prefix,
    )
    record = run_repeat(dataset, trial.setup, options, repeat=trial.repeat).record
    return replace(record, params={**record.params, **weight_params(trial.weights)})


def _text_of(bug: BaseException) -> str:
    """Text on an exception that nobody expected: who raised it, and where."""
    where = traceback.extract_tb(bug.__traceback__)[-1]
    place = f"{Path(where.filename).name}:{where.lineno}"
    text = f"bug in ahpatron {__version__}: {bug!r} at {place}"
    fault = learner_fault(bug, third_party_files())
    if fault:
        text = f"{fault.place}: {fault.problem}"
    return text


@lru_cache(maxsize=2)  # trials come file by file
def _dataset(
    path: str, sha256: str | None, preparation: Preparation, mapped: str | None
) -> RowsInMemory:
    if mapped and Path(mapped).is_dir():
        return mapped_dataset(path, Path(mapped))
    with open_source(path) as source:  # on another machine of a cluster
        return load(source, preparation, sha256=sha256)


def environment() -> dict[str, Any]:
    """Facts that may affect results or times besides the trial: versions, BLAS, machine."""
    import numpy as np
    import scipy
    from threadpoolctl import threadpool_info

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    cores = {pool.get("architecture", "?") for pool in pools}
    return {
        "version": __version__,
        "algorithm": ALGORITHM,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": f"{blas['name']} {blas['version']}",
        "blas_core": ", ".join(sorted(cores)),
        "machine": platform.machine(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "host": platform.node(),
        "os": platform.platform(),
    }


@lru_cache(maxsize=1)
def machine_name() -> str:
    """Host and processor of this process, as times depend on them."""
    return f"{platform.node()} ({_processor()})"


def _processor() -> str:
    """Name of the processor, or at least its type."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()
