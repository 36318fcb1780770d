"""`ahpatron learners`: list all learners and kernels, or describe some of them."""

from __future__ import annotations

from typing import Annotated

import typer

from ahpatron_cli.cli.typer_bridge import complete_described
from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.settings import LearnersSettings

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME...]",
        autocompletion=complete_described,
        help="Learners or kernels to describe; FILE.py:CLASS for a learner of your own. "
        "[default: list all]",
    ),
]

EXAMPLES = """
  ahpatron learners ahpatron
  ahpatron learners nogd fogd --bibtex > references.bib
"""


def learners(names: Names = None, *, settings: LearnersSettings) -> ExitCode:
    """List learners and kernels with their parameters, or describe some.

    With the NAME of a learner: the rule, how it deviates from its publication, parameters, values
    worth trying, and the publication.
    """
    from ahpatron_cli.cli.stderr import Stderr
    from ahpatron_cli.core import KERNELS, REGISTRY
    from ahpatron_cli.core.registry import find_learner
    from ahpatron_cli.output import learners_text
    from ahpatron_cli.output.formats import show_document, write
    from ahpatron_cli.setups import choose_learners

    format = settings.document.format
    if settings.references.bibtex and format != "table":
        raise usage(f"--bibtex is a format of its own, and --format asks for {format}")
    words = names or []
    kernels = [KERNELS[name] for name in words if name in KERNELS]
    others = [name for name in words if name not in KERNELS]
    kinds = {name: find_learner(name) for name in choose_learners(others)}
    if settings.references.bibtex:
        if kernels:
            raise usage(f"{kernels[0].name} is a kernel: --bibtex has the publications of learners")
        entries, without = learners_text.bibtex_of((kinds or REGISTRY).values())
        write(lambda _: entries)
        for reference in without:
            Stderr().warn(f"no BibTeX entry is known for this publication: {reference}")
    elif words:
        document = learners_text.described_to_json(kinds, kernels)
        show_document(format, document, learners_text.described_text)
    else:
        show_document(format, learners_text.all_learners_to_json(), learners_text.all_learners_text)
    return ExitCode.OK
