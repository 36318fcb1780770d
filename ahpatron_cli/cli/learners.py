"""`ahpatron learners`: list all learners, or describe some of them."""

from ahpatron_cli.cli import options
from ahpatron_cli.errors import ExitCode, one_of, usage


def learners(
    names: options.LearnerNames = None,
    bibtex: options.Bibtex = False,
    format: options.Format = "table",
) -> ExitCode:
    """List all learners and kernels with their parameters, or describe some learners.

    With NAME: the rule, how it deviates from its publication, parameters, values worth trying, and
    the publication.
    """
    from ahpatron_cli.core import REGISTRY
    from ahpatron_cli.core.registry import find_learner
    from ahpatron_cli.output import learners_text
    from ahpatron_cli.output.formats import FORMATS, write
    from ahpatron_cli.output.inspect_text import show
    from ahpatron_cli.sweep.grid import choose_learners

    if one_of("format", format, FORMATS) not in ("table", "json"):
        hint = "use --format table for people, --format json for programs"
        raise usage(f"learners cannot be shown as {format}", hint)
    if bibtex and format != "table":
        raise usage(f"--bibtex is a format of its own, and --format asks for {format}")
    kinds = [find_learner(name) for name in choose_learners(names or [])]
    if bibtex:
        entries = learners_text.bibtex_of(kinds or REGISTRY.values())
        write(lambda _: entries)
    elif kinds:
        document = learners_text.some_learners_to_json(kinds)
        show(format, document, learners_text.some_learners_text)
    else:
        show(format, learners_text.all_learners_to_json(), learners_text.all_learners_text)
    return ExitCode.OK
