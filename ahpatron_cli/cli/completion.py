"""What the shell offers after TAB: names from the registries, imported only when asked for."""

from __future__ import annotations

from collections.abc import Iterator

import typer

Offer = tuple[str, str]
"""A word, and what it means."""


def learners(incomplete: str) -> Iterator[Offer]:
    """Names for -l."""
    from ahpatron_cli.core import REGISTRY

    titles = {name: kind.title for name, kind in REGISTRY.items()} | {"all": "every learner"}
    return (offer for offer in titles.items() if offer[0].startswith(incomplete))


def kernels(incomplete: str) -> list[str]:
    """Names for --kernel."""
    from ahpatron_cli.core import KERNELS

    return [name for name in KERNELS if name.startswith(incomplete)]


def formats(incomplete: str) -> list[str]:
    """Names for --format."""
    from ahpatron_cli.output.formats import FORMATS

    return [name for name in FORMATS if name.startswith(incomplete)]


def scales(incomplete: str) -> list[str]:
    """Names for --scale."""
    from ahpatron_cli.data.scaling import SCALES

    return [name for name in SCALES if name.startswith(incomplete)]


def parameters(context: typer.Context, incomplete: str) -> Iterator[Offer]:
    """`NAME=` for -p and -g: of the learners and the kernel chosen so far; else of all.

    After `LEARNER.` only those of that learner.
    """
    from ahpatron_cli.core import KERNELS, REGISTRY

    owner, dot, _ = incomplete.rpartition(".")
    if dot:
        specs = REGISTRY[owner].specs() if owner in REGISTRY else {}
    else:
        chosen = [name for name in context.params.get("learner") or () if name in REGISTRY]
        kernel = context.params.get("kernel")
        kinds = [REGISTRY[name] for name in chosen or REGISTRY]
        specs = {name: spec for kind in kinds for name, spec in kind.specs().items()}
        specs |= KERNELS[kernel].specs() if kernel in KERNELS else {}
    for name, spec in specs.items():
        word = f"{owner}{dot}{name}="
        if word.startswith(incomplete):
            yield word, spec.meaning
