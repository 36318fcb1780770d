"""A trial: one learner, one setting, one permutation of one file; its identity, and its run."""

from __future__ import annotations

import hashlib
import json
import platform
import time
import traceback
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ahpatron_cli import __version__
from ahpatron_cli.core import ALGORITHM
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.learners import learner_source, third_party_files
from ahpatron_cli.data.dataset import Dataset, Preparation, load
from ahpatron_cli.data.dataset import mapped as mapped_dataset
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError, learner_fault
from ahpatron_cli.pool import Died, run_all
from ahpatron_cli.records import ParamValue, RunRecord, plain_params
from ahpatron_cli.runner import LearnerSpec, RunOptions, run_repeat
from ahpatron_cli.sweep.summary import Outcome, TrialData


class Trial(Struct, frozen=True, dict=True):
    """A trial to be run; plain values only, so that it travels to any worker."""

    data: TrialData
    setup: LearnerSpec
    seed: int
    repeat: int
    params: Mapping[str, ParamValue]
    """All parameters of the setup with defaults; those that follow from T are fixed by the data."""
    path: str
    """Where the worker finds the file; absolute."""
    preparation: Preparation
    texts: Mapping[str, str] = {}
    """How the grid spells parameters that depend on the data: `10^0/√T`, `auto`."""
    source: str = "built-in"
    """Where the learner's class comes from, with its version or hash."""
    metrics: bool = False
    """Whether to measure what the counts alone do not determine."""
    mapped: str | None = None
    """A folder of this machine in which the sweep keeps the parsed file."""
    version: str = __version__

    @property
    def learner(self) -> str:
        """The learner's name."""
        return self.setup.learner

    @cached_property
    def id(self) -> str:
        """A hash of all that decides the outcome: the identity. No time, no host, no file name."""
        decides = {
            "algorithm": ALGORITHM,
            "data": [*self.data.identity, self.preparation.learned, self.data.prefix],
            "learner": [self.setup.learner, self.source, plain_params(self.params)],
            "order": [self.seed, self.repeat],
        }
        text = json.dumps(decides, sort_keys=True, allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:20]

    def on_prefix(self, rounds: int) -> Trial:
        """The same on the first rounds only; steps that depend on T are those of all rounds."""
        return replace(self, data=replace(self.data, prefix=rounds))

    def outcome(self, run: RunRecord | None, error: str | None, wall: float = 0.0) -> Outcome:
        """The record of this trial, or the reason why there is none."""
        params = run.params if run else self.params
        who = self.setup.learner, params, self.seed, self.repeat
        return Outcome(self.id, self.data, *who, run, error, self.texts, wall)


def run_trials(trials: Sequence[Trial], jobs: int, retries: int) -> Iterator[Outcome | None]:
    """Outcomes of trials as they end, from so many processes; None now and then."""
    for number, outcome in run_all(run_trial, trials, jobs, retries):
        if isinstance(outcome, Died):
            outcome = trials[number].outcome(None, outcome.reason)
        yield outcome


def run_trial(trial: Trial) -> Outcome:
    """Run a trial. Whatever goes wrong in it is its outcome.

    Raised is only a `UserError` where this process has another version of the package or of the
    learner, as a worker of a cluster may: then no trial can be run here.
    """
    if trial.version != __version__:
        raise UserError(f"the worker has ahpatron {__version__}, this is {trial.version}")
    started = time.perf_counter()
    run, error, data = None, None, trial.data
    try:
        if learner_source(trial.setup.kind) != trial.source:
            problem = f"the learner {trial.setup.learner} is not that of the sweep: {trial.source}"
            raise UserError(problem)
        dataset = _dataset(trial.path, data.record.sha256, trial.preparation, trial.mapped)
        options = RunOptions(
            *(trial.repeat + 1, trial.seed, data.shuffled, trial.metrics),
            costs=dict(data.costs),
            prefix=data.prefix,
        )
        run = run_repeat(dataset, trial.setup, options, trial.repeat).record
    except UserError as refusal:
        error = f"{refusal.place}: {refusal.problem}" if refusal.place else refusal.problem
    except ParameterError as refusal:
        error = str(refusal)
    except MemoryError:
        error = "not enough memory"
    except Exception as bug:  # one trial's bug must not take the other results with it
        where = traceback.extract_tb(bug.__traceback__)[-1]
        error = (
            f"bug in ahpatron {__version__}: {bug!r} at {Path(where.filename).name}:{where.lineno}"
        )
        if fault := learner_fault(bug, third_party_files()):
            error = f"{fault.place}: {fault.problem}"
    return trial.outcome(run, error, time.perf_counter() - started)


@lru_cache(maxsize=2)  # trials come file by file
def _dataset(
    path: str, sha256: str | None, preparation: Preparation, mapped: str | None
) -> Dataset:
    if mapped and Path(mapped).is_dir():
        return mapped_dataset(path, preparation, Path(mapped))
    with open_source(path) as source:  # on another machine of a cluster
        return load(source, preparation, sha256=sha256)


def environment() -> dict[str, Any]:
    """What results may depend on besides the trial itself: versions, BLAS, kind of machine."""
    import numpy as np
    import scipy
    from threadpoolctl import threadpool_info

    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    pools = [pool for pool in threadpool_info() if pool["user_api"] == "blas"]
    return {
        "version": __version__,
        "algorithm": ALGORITHM,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "blas": f"{blas['name']} {blas['version']}",
        "blas_core": ", ".join(sorted({pool.get("architecture", "?") for pool in pools})),
        "machine": platform.machine(),
    }
