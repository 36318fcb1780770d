"""Hints for delimited text that fit the command that met it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ahpatron_cli.errors import UserError

Hint = Callable[[str, str, str], str]
"""Of what to do before, the file to convert and the column of its labels, quoted for a shell."""


@contextmanager
def convert_hint(form: Hint) -> Iterator[None]:
    """Replace the hint on delimited text, which plays it with `run`, in errors of the block."""
    try:
        yield
    except UserError as error:
        from ahpatron_cli.data.delimited import CONVERT_STAGE, RUN_STAGE

        before, _, rest = (error.hint or "").partition(CONVERT_STAGE)
        command, stage, _ = rest.partition(RUN_STAGE)
        if stage:
            file, _, label = command.partition(" --label ")
            error.hint = form(before.removesuffix("`"), file, label)
        raise


def sweep_hint(before: str, file: str, label: str) -> str:
    """A sweep reads its data more than once."""
    made = shlex.quote(Path(shlex.split(file)[0]).stem + ".svm")
    command = f"ahpatron convert {file} --label {label} --out {made}"
    return f"{before}`{command}`, where --label names the column of labels; then sweep {made}"


def predict_hint(model: str) -> Hint:
    """Features must get the numbers that the model knows them by."""

    def form(before: str, file: str, label: str) -> str:
        command = (
            f"ahpatron convert {file} --like MAP.json | ahpatron predict {shlex.quote(model)} -"
        )
        return (
            f"{before}`{command}`, where MAP.json is the file that `convert --map MAP.json` wrote "
            "for the data that the model learned from"
        )

    return form
