"""Trials in processes of their own: outcomes for all of them, whatever happens to a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from ahpatron_cli.core import Kernel, Learner
from ahpatron_cli.data.dataset import Preparation, content_hash, load
from ahpatron_cli.data.source import open_source
from ahpatron_cli.errors import UserError
from ahpatron_cli.runner import LearnerSpec, params_of
from ahpatron_cli.sweep.summary import Outcome, TrialData
from ahpatron_cli.sweep.trial import Trial, run_trial, run_trials

RINGS = Path(__file__).resolve().parents[2] / "sample_data" / "rings.svm"


def tasks(count: int, learner: str = "ahpatron", **params: float) -> list[Trial]:
    sha256 = content_hash(str(RINGS))
    assert sha256 is not None
    with open_source(str(RINGS)) as source:
        facts = load(source, Preparation()).facts()
    data = TrialData("rings", facts.rounds, facts.features, facts.labels, sha256)
    made = []
    for repeat in range(count):
        setup = LearnerSpec(learner, params, "gaussian", {"sigma": 0.1})
        what = data, setup, 0, repeat, params_of(*setup.build())
        made.append(Trial(*what, str(RINGS), Preparation()))
    return made


def outcomes(found: Iterator[Outcome | None]) -> dict[str, Outcome]:
    return {one.id: one for one in found if one is not None}


def essence(found: dict[str, Outcome]) -> dict[str, object]:
    return {key: one.run and replace(one.run, seconds=0.0) for key, one in found.items()}


def test_any_number_of_processes_gives_the_same() -> None:
    chosen = tasks(5)
    here = {task.id: run_trial(task) for task in chosen}
    assert all(one.run is not None for one in here.values())
    for jobs in (1, 3):
        assert essence(outcomes(run_trials(chosen, jobs, 0))) == essence(here)


def test_ctrl_c_does_not_reach_the_first_process_either() -> None:
    """In a fresh process: what multiprocessing starts beside the first one lifts the mask."""
    script = (
        "from pathlib import Path; from ahpatron_cli.pool import _Process; one = _Process(int);"
        "print(Path(f'/proc/{one._process.pid}/status').read_text()); one.end()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    blocked = next(line for line in done.stdout.splitlines() if line.startswith("SigBlk:"))
    assert int(blocked.split()[1], 16) & 1 << (signal.SIGINT - 1)


def test_the_identity_of_a_trial() -> None:
    one, other = tasks(2)
    assert one.id != other.id
    renamed = replace(one.data, path="x")
    assert replace(one, data=renamed).id == one.id  # a name decides nothing
    spelt_out = LearnerSpec("ahpatron", {"epsilon": 0.5}, "gaussian", {"sigma": 0.1})
    assert params_of(*spelt_out.build()) == one.params  # nor does a default said aloud
    for changed in (
        replace(one, seed=1),
        replace(one, data=replace(one.data, limit=10)),
        replace(one, data=replace(one.data, scale="unit")),
        replace(one, data=replace(one.data, shuffled=False)),
        replace(one, setup=LearnerSpec("avp", {}, "gaussian", {"sigma": 0.1})),
        replace(one, params={**one.params, "sigma": 0.2}),
    ):
        assert changed.id != one.id


def test_a_worker_of_another_version_runs_nothing() -> None:
    (task,) = tasks(1)
    with pytest.raises(UserError, match=r"0\.0\.1"):
        run_trial(replace(task, version="0.0.1"))
    other = run_trial(replace(task, source="sha256:0"))
    assert "sha256:0" in (other.error or "")


def test_a_bug_in_one_trial_is_its_outcome() -> None:
    (task,) = tasks(1)
    broken = replace(task, setup=LearnerSpec("nobody", {}, "gaussian", {}))
    found = run_trial(broken)
    assert found.error is not None
    assert "bug in ahpatron" in found.error
    assert "KeyError" in found.error


class Deadly(LearnerSpec):
    """Kills the process that runs it, as running out of memory would."""

    def build(self) -> None:  # type: ignore[override]  # it does not return
        os.kill(os.getpid(), signal.SIGKILL)


class Leaving(LearnerSpec):
    def build(self) -> None:  # type: ignore[override]  # it does not return
        os._exit(7)


class DeadlyOnce(LearnerSpec):
    """Kills the first process that runs it."""

    def build(self) -> tuple[Learner, Kernel]:
        mark = Path(str(self.kernel_params["mark"]))
        if not mark.exists():
            mark.write_text("")
            os.kill(os.getpid(), signal.SIGKILL)
        return LearnerSpec("ahpatron", {}, "gaussian", {"sigma": 0.1}).build()


@pytest.mark.parametrize(
    ("kind", "said", "retries"),
    [
        (Deadly, "killed by SIGKILL", 2),
        (Leaving, "exit code 7", 0),
        pytest.param(Deadly, "killed by SIGKILL", 0, marks=pytest.mark.slow),
        pytest.param(Leaving, "exit code 7", 2, marks=pytest.mark.slow),
    ],
)
def test_a_trial_that_kills_its_process_fails_alone(
    kind: type[LearnerSpec], said: str, retries: int
) -> None:
    chosen = tasks(4)
    deadly = kind("ahpatron", {}, "gaussian", {})
    chosen[1] = replace(chosen[1], setup=deadly)
    found = outcomes(run_trials(chosen, 2, retries))
    assert len(found) == 4
    assert said in (found[chosen[1].id].error or "")
    assert all(found[chosen[number].id].run is not None for number in (0, 2, 3))


def test_a_trial_whose_process_died_is_run_again(tmp_path: Path) -> None:
    chosen = tasks(3)
    mark = {"mark": str(tmp_path / "mark")}
    once = DeadlyOnce("ahpatron", {}, "gaussian", mark)
    chosen[0] = replace(chosen[0], setup=once)
    found = outcomes(run_trials(chosen, 2, retries=1))
    assert all(one.run is not None for one in found.values())


def test_stopping_early_leaves_no_process() -> None:
    running = run_trials(tasks(50), 2, 0)
    while next(running) is None:
        pass
    own = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    before = _workers(own)
    assert before
    running.close()  # type: ignore[attr-defined]  # a generator
    time.sleep(0.1)
    assert not _workers(own) & before


def _workers(listing: Path) -> set[str]:
    found = set()
    for child in listing.read_text().split():
        command = Path(f"/proc/{child}/cmdline")
        if command.exists() and b"spawn_main" in command.read_bytes():
            found.add(child)
    return found
