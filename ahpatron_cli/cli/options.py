"""Every option once, as an annotated alias, for the commands that share it.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

from typing import Annotated

import typer

from ahpatron_cli.cli import completion


def whole_number(text: str | int) -> int:
    """A whole number as people write it: no underscores, no spaces. Defaults pass as they are."""
    if isinstance(text, int):
        return text
    sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
    if not (digits.isascii() and digits.isdigit()):
        raise typer.BadParameter(f"{text!r} is not a whole number.")
    if len(digits) > 18:
        raise typer.BadParameter(f"{text} is too large.")
    return int(sign + digits)


# Parsers and not callbacks: Typer looks into the signature of every callback whenever it starts.


def at_least(low: int, text: str | int) -> int:
    """A whole number that is not below `low`."""
    value = whole_number(text)
    if value < low:
        raise typer.BadParameter(f"{value} is too small: at least {low}.")
    return value


def _index_limit(text: str | int) -> int:
    value = at_least(1, text)
    if value >= 2**31 - 1:
        raise typer.BadParameter(f"{value} is too large: below {2**31 - 1}.")
    return value


def positive(text: str | int) -> int:
    """A whole number above zero."""
    return at_least(1, text)


def not_negative(text: str | int) -> int:
    """A whole number that is not below zero."""
    return at_least(0, text)


DATA = "Data"
LEARNING = "Learning"
OUTPUT = "Output"
KEEPING = "Keeping"


def typed(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line, and is not just a default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA",
        help="LIBSVM files (plain, gz, bz2 or xz), or - for standard input.",
        show_default=False,
    ),
]
Learners = Annotated[
    list[str] | None,
    typer.Option(
        "-l",
        "--learner",
        metavar="NAME",
        autocompletion=completion.learners,
        help="A learner to play; repeat for several, [bold]all[/] for every one. "
        "[dim]\\[default: ahpatron][/]",
        rich_help_panel=LEARNING,
    ),
]
Budget = Annotated[
    str | None,
    typer.Option(
        "-B",
        "--budget",
        metavar="N",
        help="B, the most examples kept; even. [dim]\\[default: 400][/]",
        rich_help_panel=LEARNING,
    ),
]
KernelName = Annotated[
    str,
    typer.Option(
        "--kernel",
        metavar="NAME",
        autocompletion=completion.kernels,
        help="gaussian, laplacian, polynomial or linear (the last two normalised).",
        rich_help_panel=LEARNING,
    ),
]
Sigma = Annotated[
    str | None,
    typer.Option(
        "--sigma",
        metavar="S",
        help="σ, width of the gaussian exp(-‖u-v‖²/2σ²) or laplacian exp(-‖u-v‖₁/σ) kernel; "
        "[bold]auto[/]: the median distance between the first 1,000 rows. [dim]\\[default: 1.0][/]",
        rich_help_panel=LEARNING,
    ),
]
Epsilon = Annotated[
    str | None,
    typer.Option(
        "--epsilon",
        metavar="E",
        help="ε: update where y·f(x) < 1 - ε; between 0 and 1. "
        "[dim]\\[default: 0.5; ahpatron+: 0.75][/]",
        rich_help_panel=LEARNING,
    ),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "-p",
        "--param",
        metavar="NAME=VALUE",
        autocompletion=completion.parameters,
        help="Any other parameter, of every chosen learner that has it; LEARNER.NAME=VALUE for "
        "one. `ahpatron inspect --learners` lists them.",
        rich_help_panel=LEARNING,
    ),
]
Certify = Annotated[
    bool,
    typer.Option(
        "--certify",
        help="Also show the bound that the learner's theorem guarantees on these very data; reads "
        "them again.",
        rich_help_panel=LEARNING,
    ),
]
TheoremName = Annotated[
    str | None,
    typer.Option(
        "--theorem",
        metavar="NAME",
        help="Set parameters that meet the conditions of a theorem: 1, 2 (perceptron), 3, "
        "corollary-1, corollary-2 (avp), 4, 5 (ahpatron) or forgetron.",
        rich_help_panel=LEARNING,
    ),
]
Repeats = Annotated[
    int,
    typer.Option(
        "--repeats",
        metavar="R",
        parser=positive,
        help="Play R times; with R > 1 each time in a random order of its own.",
        rich_help_panel=DATA,
    ),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="S",
        parser=not_negative,
        help="Seed of the random orders and of learners that draw lots.",
        rich_help_panel=DATA,
    ),
]
Shuffle = Annotated[
    bool | None,
    typer.Option(
        "--shuffle/--no-shuffle",
        help="Permute the rows. [dim]\\[default: only if R > 1][/]",
        show_default=False,
        rich_help_panel=DATA,
    ),
]
Limit = Annotated[
    int | None,
    typer.Option(
        "--limit",
        metavar="N",
        parser=positive,
        help="Take only the first N rows of each file.",
        rich_help_panel=DATA,
    ),
]
Scale = Annotated[
    str,
    typer.Option(
        "--scale",
        metavar="HOW",
        autocompletion=completion.scales,
        help="none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows to "
        "length 1). The middle two are learned from the first 1,000 rows of a pass in file order, "
        "from all rows with --shuffle or --repeats.",
        rich_help_panel=DATA,
    ),
]
LookedAtScale = Annotated[
    str | None,
    typer.Option(
        "--scale",
        metavar="HOW",
        autocompletion=completion.scales,
        help="Look at distances after this scaling: none, minmax, standard or unit. "
        "[dim]\\[default: as advised][/]",
        rich_help_panel=DATA,
    ),
]
AlignmentSigma = Annotated[
    str | None,
    typer.Option(
        "--sigma",
        metavar="S",
        help="Also compute the kernel alignment A_T of the gaussian kernel of this width.",
        rich_help_panel=DATA,
    ),
]
SampleSeed = Annotated[
    int,
    typer.Option(
        "--seed",
        metavar="S",
        parser=not_negative,
        help="Seed of the sample of rows whose distances are looked at.",
        rich_help_panel=DATA,
    ),
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive",
        metavar="LABEL",
        help="Play this label as +1 and every other as -1.",
        rich_help_panel=DATA,
    ),
]
MaxFeatures = Annotated[
    int,
    typer.Option(
        "--max-features",
        metavar="N",
        parser=_index_limit,
        help="Refuse feature indices above N.",
        rich_help_panel=DATA,
    ),
]
Cache = Annotated[
    bool,
    typer.Option(
        "--cache",
        help="Keep the decoded files in the user's cache folder, and read them from there.",
        rich_help_panel=DATA,
    ),
]
Save = Annotated[
    str | None,
    typer.Option(
        "--save",
        metavar="MODEL",
        help="Keep the learner, as it is after the last round, in an .npz file.",
        rich_help_panel=KEEPING,
    ),
]
Resume = Annotated[
    str | None,
    typer.Option(
        "--resume",
        metavar="MODEL",
        help="Go on with a kept learner, as if its stream had never ended.",
        rich_help_panel=KEEPING,
    ),
]
Freeze = Annotated[
    bool,
    typer.Option(
        "--freeze",
        help="With --resume: only predict with it, learn nothing.",
        rich_help_panel=KEEPING,
    ),
]
Checkpoint = Annotated[
    str | None,
    typer.Option(
        "--checkpoint",
        metavar="FILE",
        help="Keep the learner in an .npz file now and then; the same command goes on from there.",
        rich_help_panel=KEEPING,
    ),
]
Every = Annotated[
    int,
    typer.Option(
        "--every",
        metavar="N",
        parser=positive,
        help="Rounds from one checkpoint to the next.",
        rich_help_panel=KEEPING,
    ),
]
Predictions = Annotated[
    str | None,
    typer.Option(
        "--predictions",
        metavar="FILE",
        help="Write every round's f(x), prediction and label to a .csv file.",
        rich_help_panel=OUTPUT,
    ),
]
CurveFile = Annotated[
    str | None,
    typer.Option(
        "--curve",
        metavar="FILE",
        help="Write the learning curve: .csv, .png or .svg.",
        rich_help_panel=OUTPUT,
    ),
]
Format = Annotated[
    str,
    typer.Option(
        "--format",
        metavar="FORMAT",
        autocompletion=completion.formats,
        help="What stdout shows: table, json, jsonl, csv, markdown or latex.",
        rich_help_panel=OUTPUT,
    ),
]
Out = Annotated[
    str | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="Also write the result to a file: .json .jsonl .csv .md .tex .txt.",
        rich_help_panel=OUTPUT,
    ),
]
Jobs = Annotated[
    int,
    typer.Option(
        "-j",
        "--jobs",
        metavar="N",
        parser=positive,
        help="Processes for repeats and learners; one pass in file order needs only one.",
        rich_help_panel=LEARNING,
    ),
]
Quiet = Annotated[
    bool,
    typer.Option("-q", "--quiet", help="Only results and errors.", rich_help_panel=OUTPUT),
]
Verbose = Annotated[
    int,
    typer.Option("-v", "--verbose", count=True, help="Say more on stderr.", rich_help_panel=OUTPUT),
]
