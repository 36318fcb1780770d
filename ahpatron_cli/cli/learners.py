"""`ahpatron learners`: list all learners, or describe some of them."""

from __future__ import annotations

from typing import Annotated

import typer

from ahpatron_cli.cli.typer_bridge import complete_learner
from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.settings import LearnersSettings

Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[NAME...]",
        autocompletion=complete_learner,
        help="Learners to describe: names, or FILE.py:CLASS for one of your own. "
        "[default: list all]",
    ),
]

EXAMPLES = """
  ahpatron learners ahpatron
  ahpatron learners nogd fogd --bibtex > references.bib
"""


def learners(names: Names = None, *, settings: LearnersSettings) -> ExitCode:
    """List all learners and kernels with their parameters, or describe some learners.

    With NAME: the rule, how it deviates from its publication, parameters, values worth trying, and
    the publication.
    """
    from ahpatron_cli.core import REGISTRY
    from ahpatron_cli.core.registry import find_learner
    from ahpatron_cli.output import learners_text
    from ahpatron_cli.output.formats import write
    from ahpatron_cli.output.inspect_text import show
    from ahpatron_cli.setups import choose_learners

    format = settings.document.format
    if settings.references.bibtex and format != "table":
        raise usage(f"--bibtex is a format of its own, and --format asks for {format}")
    kinds = [find_learner(name) for name in choose_learners(names or [])]
    if settings.references.bibtex:
        entries = learners_text.bibtex_of(kinds or REGISTRY.values())
        write(lambda _: entries)
    elif kinds:
        document = learners_text.some_learners_to_json(kinds)
        show(format, document, learners_text.some_learners_text)
    else:
        show(format, learners_text.all_learners_to_json(), learners_text.all_learners_text)
    return ExitCode.OK
