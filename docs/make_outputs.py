"""Run the commands of README and docs/ and write what they print into the block after them.

    python docs/make_outputs.py [PAGE...]

`tests/test_docs.py` runs them too and compares. Look at `git diff` before you commit.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

for library in ("OPENBLAS", "OMP", "MKL", "VECLIB", "BLIS"):  # before NumPy: as the command does
    os.environ[f"{library}_NUM_THREADS"] = "1"

REPOSITORY = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(REPOSITORY / "tests"))

from support.documents import (  # noqa: E402
    PAGES,
    blocks,
    commands,
    furnish,
    read,
    run,
    same_output,
    session,
)


def refresh(page: str, folder: Path) -> None:
    """Update a page whose outputs have changed."""
    furnish(folder)
    text = read(page)
    with session(folder) as run_program:
        for block, shown in blocks(page):
            where = f"{page}:{block.line}"
            if block.runs and block.kind == "python":  # later commands may read what it writes
                run_program(block, where)
            if not block.runs or block.kind != "sh":
                continue
            done = [run(command, folder) for command in commands(block.text)]
            out = "".join(one.out for one in done)
            err = "".join(one.err for one in done)
            if shown is None:
                continue
            if not shown or not any(same_output(shown, said) for said in (out, err, err + out)):
                printed = err + out if block.mark == "with notes" else out or err
                before = f"{block.text}```\n\n```\n"
                text = text.replace(f"{before}{shown}", f"{before}{printed}")
                print(f"{where} has changed")
    (REPOSITORY / page).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for name in sys.argv[1:] or PAGES:
        with tempfile.TemporaryDirectory() as made:
            refresh(name, Path(made))
