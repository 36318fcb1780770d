"""The public names and their signatures: those of api.txt, and listed in docs/python.md.

After a change that is meant: `python tests/test_api.py` writes api.txt again.
"""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ahpatron_cli
import ahpatron_cli.core
from ahpatron_cli.core import Expansion, Kernel, Learner

GOLDEN = Path(__file__).with_name("api.txt")
DOCS = Path(__file__).parents[1] / "docs"
PUBLIC = {
    "ahpatron_cli": ahpatron_cli.__all__,
    "ahpatron_cli.core": ahpatron_cli.core.__all__,
    "ahpatron_cli.datasets": ["load_sample", "sample_path"],
    "ahpatron_cli.river": ["KernelClassifier"],
    "ahpatron_cli.testing": ["check_learner"],
}


def signature(function: Any) -> str:
    """Parameters and defaults; without types, whose text depends on the version of Python."""
    if isinstance(function, type) and not inspect.isfunction(function.__init__):
        return "(*args)" if issubclass(function, Exception) else "()"
    found = inspect.signature(function)
    plain = [
        one.replace(annotation=one.empty)
        if isinstance(one.default, int | float | str | tuple | None) or one.default is one.empty
        else one.replace(annotation=one.empty, default=...)
        for one in found.parameters.values()
        if one.name != "self"
    ]
    return str(found.replace(parameters=plain, return_annotation=found.empty))


def members(kind: type) -> Iterator[str]:
    """Methods and properties; of Learner and Expansion those that their page names."""
    if issubclass(kind, Learner | Expansion | Kernel) and kind not in (Learner, Expansion):
        return
    page = (DOCS / "own-learners.md").read_text() if issubclass(kind, Learner | Expansion) else None
    found: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("ahpatron_cli"):
            found |= {name: value for name, value in vars(base).items() if name[0] != "_"}
    for name, value in sorted(found.items()):
        if page is not None and not re.search(rf"\b{name}\b", page):
            continue
        if isinstance(value, property):
            yield name
        elif inspect.isfunction(value) or isinstance(value, classmethod | staticmethod):
            yield f"{name}{signature(getattr(kind, name))}"


def described() -> Iterator[str]:
    for module, names in PUBLIC.items():
        for name in sorted(names):
            value = getattr(importlib.import_module(module), name)
            if not callable(value):
                yield f"{module}.{name}"
                continue
            yield f"{module}.{name}{signature(value)}"
            if inspect.isclass(value):
                yield from (f"    .{member}" for member in members(value))


def test_the_public_api_is_that_of_the_golden_file() -> None:
    assert list(described()) == GOLDEN.read_text().splitlines()


def test_every_public_name_is_listed() -> None:
    section = (DOCS / "python.md").read_text().partition("## Public names")[2].partition("\n## ")[0]
    listed = set(re.findall(r"`(\w+)`", section))
    for module, names in PUBLIC.items():
        assert set(names) <= listed, module


if __name__ == "__main__":
    GOLDEN.write_text("".join(f"{line}\n" for line in described()))
