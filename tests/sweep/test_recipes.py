"""The job array of docs/recipes; the other recipes need packages that are not installed here."""

import os
import subprocess
import sys
from pathlib import Path

from support.command import REPOSITORY, Ahpatron

RECIPES = REPOSITORY / "docs" / "recipes"
SMALL = ("-l", "ahpatron", "-l", "rbp", "-g", "budget=10,20", "--repeats", "2", "--limit", "100")


def test_parts_of_a_job_array_give_the_whole_sweep(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron.sweep(rings, *SMALL, out="whole.jsonl")
    command = ahpatron.folder / "ahpatron"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m ahpatron_cli "$@"\n')
    command.chmod(0o755)
    path = {"PATH": f"{ahpatron.folder}:{os.environ['PATH']}"}
    for task in ("1", "2"):
        subprocess.run(
            ["bash", RECIPES / "slurm.sh", rings, *SMALL],
            cwd=ahpatron.folder,
            env=os.environ | path | {"SLURM_ARRAY_TASK_ID": task, "SLURM_ARRAY_TASK_COUNT": "2"},
            capture_output=True,
            timeout=120,
            check=True,
        )
    ahpatron.succeed("inspect", "part-1.jsonl", "part-2.jsonl", "--merge", "results.jsonl")
    assert ahpatron.essence("results.jsonl") == ahpatron.essence("whole.jsonl")
