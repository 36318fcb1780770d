"""The recipes of docs/recipes do what they say, where the packages they speak of are installed."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ahpatron_cli
from support.command import REPOSITORY, Ahpatron

RECIPES = REPOSITORY / "docs" / "recipes"
SMALL = ("-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "2", "--limit", "100")


def test_a_job_array(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron.sweep(rings, *SMALL, out="whole.jsonl")
    command = ahpatron.folder / "ahpatron"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ahpatron_cli "$@"\n')
    command.chmod(0o755)
    for task in ("1", "2"):
        subprocess.run(
            ["bash", RECIPES / "slurm.sh", rings, *SMALL],
            cwd=ahpatron.folder,
            env={
                **os.environ,
                "PATH": f"{ahpatron.folder}:{os.environ['PATH']}",
                "SLURM_ARRAY_TASK_ID": task,
                "SLURM_ARRAY_TASK_COUNT": "2",
            },
            capture_output=True,
            timeout=120,
            check=True,
        )
    ahpatron.succeed("inspect", "part-1.jsonl", "part-2.jsonl", "--merge", "results.jsonl")
    assert ahpatron.essence("results.jsonl") == ahpatron.essence("whole.jsonl")


def recipe(name: str) -> dict[str, Any]:
    return runpy.run_path(str(RECIPES / name))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # MLflow's own
def test_mlflow(ahpatron: Ahpatron, rings: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mlflow = pytest.importorskip("mlflow")
    ahpatron.sweep(rings, *SMALL)
    results = ahpatron.folder / "r.jsonl"
    mlflow.set_tracking_uri(f"sqlite:///{ahpatron.folder / 'mlflow.db'}")
    monkeypatch.chdir(ahpatron.folder)
    assert recipe("to_mlflow.py")["log"](str(results), "rings") == 8
    runs = mlflow.search_runs(experiment_names=["rings"])
    trials = {one["id"]: one for one in ahpatron_cli.read_results(results)}
    assert {*runs["tags.trial"]} == {*trials}
    for _, run in runs.iterrows():
        trial = trials[run["tags.trial"]]
        assert run["metrics.mistakes"] == trial["mistakes"]
        assert run["params.budget"] == str(trial["param_budget"])


@pytest.mark.slow
def test_optuna(ahpatron: Ahpatron, rings: Path) -> None:
    pytest.importorskip("optuna")
    tune = recipe("tune_optuna.py")
    study = tune["tune"](str(rings), 3)
    assert len(study.trials) == 3
    assert study.best_value == tune["mistake_rate"](str(rings), **study.best_params)
