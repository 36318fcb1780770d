"""The learners of a command line: names in the registry, or classes in files of the user's own."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from ahpatron_cli.core import REGISTRY
from ahpatron_cli.core.errors import LearnerLoadError
from ahpatron_cli.core.learners import find_learner, is_path
from ahpatron_cli.errors import learner_fault, one_of, usage


def choose_learners(names: Sequence[str]) -> list[str]:
    """The learners asked for, each once, in the order of the command line.

    Those in files are given by absolute paths: `/path/to/file.py:ClassName`.
    """
    chosen: list[str] = []
    for name in names:
        if is_path(name):
            chosen.append(own_learner(name))
        else:
            chosen += REGISTRY if name == "all" else [one_of("learner", name, [*REGISTRY, "all"])]
    chosen = list(dict.fromkeys(chosen))
    shown = [learner_name(learner) for learner in chosen]
    for learner, name in zip(chosen, shown, strict=True):
        if is_path(learner) and (name in REGISTRY or shown.count(name) > 1):
            raise usage(f"{learner}: there is another learner {name!r}", "change its `name`")
    return chosen


def own_learner(name: str) -> str:
    """The absolute path of `path/to/file.py:ClassName`, which is loaded to see that it can be."""
    path, _, class_name = name.rpartition(":")
    file = str(Path(path).absolute())
    try:
        kind = find_learner(f"{file}:{class_name}")
    except LearnerLoadError as error:
        hint = "write the learner as path/to/file.py:ClassName"
        raise learner_fault(error.__cause__ or error, [file]) or usage(str(error), hint) from None
    if not re.fullmatch(r"[\w+-]+", kind.name):
        problem = f"{name}: `name` must consist of letters, digits, +, - and _, got {kind.name!r}"
        raise usage(problem)
    return f"{file}:{class_name}"


def learner_name(learner: str) -> str:
    """What tables call it."""
    return find_learner(learner).name if is_path(learner) else learner
