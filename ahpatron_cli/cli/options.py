"""Every option once, as an annotated alias, for the commands that share it.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from ahpatron_cli.cli import completion

DATA = "Data"
LEARNING = "Learning"
RUNNING = "Running"
MODELS = "Models"
OUTPUT = "Output"


def typed(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line, and is not just a default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _whole(low: int = 0, below: int = 10**18) -> Callable[[str | int], int]:
    """A parser of whole numbers as people write them: no underscores, no spaces.

    Parsers and not callbacks: Typer looks into the signature of every callback whenever it starts.
    """

    def parse(text: str | int) -> int:
        if isinstance(text, int):  # a default
            return text
        sign, digits = (text[:1], text[1:]) if text[:1] in ("+", "-") else ("", text)
        if not (digits.isascii() and digits.isdigit()):
            raise typer.BadParameter(f"{text!r} is not a whole number.")
        if len(digits) > 18:
            raise typer.BadParameter(f"{text} is too large.")
        value = int(sign + digits)
        if value < low:
            raise typer.BadParameter(f"{value} is too small: at least {low}.")
        if value >= below:
            raise typer.BadParameter(f"{value} is too large: below {below}.")
        return value

    return parse


_positive = _whole(low=1)
_not_negative = _whole()


def _option(panel: str, *names: str, help: str, metavar: str | None = None, **more: Any) -> Any:
    """An option; without a metavar it is a flag. The help of all has one form: see `app.py`."""
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=panel, **more)


# Data

DataFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...", help="LIBSVM files (plain, gz, bz2 or xz), or - for standard input."
    ),
]
SweptFiles = Annotated[
    list[str] | None,
    typer.Argument(metavar="[DATA...]", help="LIBSVM files (plain, gz, bz2 or xz)."),
]
InspectedPath = Annotated[
    str | None,
    typer.Argument(
        metavar="[PATH]", help="A LIBSVM file, - for standard input, a model, or a results file."
    ),
]
Repeats = Annotated[
    int,
    _option(
        DATA,
        "--repeats",
        metavar="R",
        parser=_positive,
        help="Play R times; if R > 1, each time in a random order of its own.",
    ),
]
Seed = Annotated[
    int,
    _option(
        DATA,
        "--seed",
        metavar="S",
        parser=_not_negative,
        help="Seed of the random orders and of the learners' random generators.",
    ),
]
SampleSeed = Annotated[
    int,
    _option(
        DATA,
        "--seed",
        metavar="S",
        parser=_not_negative,
        help="Seed of the sample of rows between which distances are computed.",
    ),
]
Shuffle = Annotated[
    bool | None,
    _option(DATA, "--shuffle/--no-shuffle", help="Permute the rows. [default: only if R > 1]"),
]
Limit = Annotated[
    int | None,
    _option(
        DATA,
        "--limit",
        metavar="N",
        parser=_positive,
        help="Take only the first N rows of each file.",
    ),
]
Scale = Annotated[
    str,
    _option(
        DATA,
        "--scale",
        metavar="HOW",
        autocompletion=completion.scales,
        help="none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows to "
        "length 1). minmax and standard are learned from the first 1,000 rows of a pass in file "
        "order, from all rows with --shuffle or --repeats.",
    ),
]
InspectedScale = Annotated[
    str | None,
    _option(
        DATA,
        "--scale",
        metavar="HOW",
        autocompletion=completion.scales,
        help="Compute distances after this scaling: none, minmax, standard or unit. "
        "[default: as advised]",
    ),
]
Positive = Annotated[
    str | None,
    _option(
        DATA,
        "--positive",
        metavar="LABEL",
        help="Play this label as +1 and every other label as -1.",
    ),
]
MaxFeatures = Annotated[
    int,
    _option(
        DATA,
        "--max-features",
        metavar="N",
        parser=_whole(low=1, below=2**31 - 1),
        help="Refuse feature indices above N.",
    ),
]
MaxFaults = Annotated[
    int,
    _option(
        DATA, "--max-faults", metavar="N", parser=_not_negative, help="Show at most N faulty lines."
    ),
]
Cache = Annotated[
    bool,
    _option(
        DATA,
        "--cache",
        help="Keep the decoded files in the user's cache folder, and read them from there.",
    ),
]

# Learning

Learners = Annotated[
    list[str] | None,
    _option(
        LEARNING,
        "-l",
        "--learner",
        metavar="NAME",
        autocompletion=completion.learners,
        help="A learner to play; repeat for several, all for every one; "
        "FILE.py:CLASS for one of your own. [default: ahpatron]",
    ),
]
AllLearners = Annotated[
    bool, _option(LEARNING, "--learners", help="List all learners, kernels and their parameters.")
]
Budget = Annotated[
    str | None,
    _option(
        LEARNING,
        "-B",
        "--budget",
        metavar="N",
        help="B, the largest size of the active set; even. [default: 400]",
    ),
]
KernelName = Annotated[
    str,
    _option(
        LEARNING,
        "--kernel",
        metavar="NAME",
        autocompletion=completion.kernels,
        help="gaussian, laplacian, polynomial or linear (the last two normalised).",
    ),
]
Sigma = Annotated[
    str | None,
    _option(
        LEARNING,
        "--sigma",
        metavar="S",
        help="σ, width of the gaussian exp(-‖u-v‖²/2σ²) or laplacian exp(-‖u-v‖₁/σ) kernel; "
        "auto: the median distance between the first 1,000 rows. [default: 1.0]",
    ),
]
AlignmentSigma = Annotated[
    str | None,
    _option(
        DATA,
        "--sigma",
        metavar="S",
        help="Also compute the kernel alignment A_T of the gaussian kernel of this width.",
    ),
]
Epsilon = Annotated[
    str | None,
    _option(
        LEARNING,
        "--epsilon",
        metavar="E",
        help="ε: update where y·f(x) < 1 - ε; between 0 and 1. [default: 0.5; ahpatron+: 0.75]",
    ),
]
Params = Annotated[
    list[str] | None,
    _option(
        LEARNING,
        "-p",
        "--param",
        metavar="NAME=VALUE",
        autocompletion=completion.parameters,
        help="Any other parameter, of every chosen learner that has it; LEARNER.NAME=VALUE for "
        "one. `ahpatron inspect --learners` lists them.",
    ),
]
Grid = Annotated[
    list[str] | None,
    _option(
        LEARNING,
        "-g",
        "--grid",
        metavar="NAME=VALUES",
        autocompletion=completion.parameters,
        help="Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T); of "
        "every chosen learner that has NAME, LEARNER.NAME=VALUES for one.",
    ),
]
ConfigFile = Annotated[
    str | None,
    _option(
        LEARNING,
        "--config",
        metavar="FILE",
        help="Read the sweep from a .toml file; command-line options take precedence.",
    ),
]
Certify = Annotated[
    bool,
    _option(
        LEARNING,
        "--certify",
        help="Also show the bound that the learner's theorem guarantees on these very data; reads "
        "them again.",
    ),
]
TheoremName = Annotated[
    str | None,
    _option(
        LEARNING,
        "--theorem",
        metavar="NAME",
        help="Set parameters that meet the conditions of a theorem: 1, 2 (perceptron), 3, "
        "corollary-1, corollary-2 (avp), 4, 5 (ahpatron) or forgetron.",
    ),
]

# Running

Jobs = Annotated[
    int,
    _option(
        RUNNING,
        "-j",
        "--jobs",
        metavar="N",
        parser=_positive,
        help="Processes for repeats and learners; one pass in file order needs only one.",
    ),
]
SweepJobs = Annotated[
    int,
    _option(
        RUNNING,
        "-j",
        "--jobs",
        metavar="N",
        parser=_positive,
        help="Processes; each plays one trial at a time.",
    ),
]
Scheduler = Annotated[
    str | None,
    _option(
        RUNNING,
        "--scheduler",
        metavar="ADDRESS",
        help="Play on a Dask cluster, such as tcp://host:8786; its workers read the same paths.",
    ),
]
Wait = Annotated[
    int,
    _option(
        RUNNING,
        "--wait",
        metavar="SECONDS",
        parser=_not_negative,
        help="With --scheduler: end the sweep if the cluster has no worker for so long.",
    ),
]
Shard = Annotated[
    str | None,
    _option(
        RUNNING,
        "--shard",
        metavar="I/N",
        help="Play only the I-th of N parts, for job arrays; `cat` merges the results files.",
    ),
]
Retries = Annotated[
    int,
    _option(
        RUNNING,
        "--retries",
        metavar="N",
        parser=_not_negative,
        help="Play a trial whose process died up to N more times.",
    ),
]
DryRun = Annotated[
    bool,
    _option(
        RUNNING, "--dry-run", help="Only print how many trials there are, and how many are left."
    ),
]

# Models

Save = Annotated[
    str | None,
    _option(
        MODELS,
        "--save",
        metavar="MODEL",
        help="Save the learner, as it is after the last round, in an .npz file.",
    ),
]
Resume = Annotated[
    str | None,
    _option(
        MODELS,
        "--resume",
        metavar="MODEL",
        help="Continue with a saved learner, as if its stream had never ended.",
    ),
]
Freeze = Annotated[
    bool, _option(MODELS, "--freeze", help="With --resume: only predict, learn nothing.")
]
Checkpoint = Annotated[
    str | None,
    _option(
        MODELS,
        "--checkpoint",
        metavar="FILE",
        help="Save the learner in an .npz file now and then; the same command continues from it.",
    ),
]
Every = Annotated[
    int,
    _option(
        MODELS,
        "--every",
        metavar="N",
        parser=_positive,
        help="Rounds from one checkpoint to the next.",
    ),
]

# Output

Predictions = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--predictions",
        metavar="FILE",
        help="Write every round's f(x), prediction and label to a .csv file; - for stdout, and the "
        "table to stderr.",
    ),
]
MetricsFlag = Annotated[
    bool,
    _option(
        OUTPUT,
        "--metrics",
        help="Add precision, recall, F1, balanced error, Cohen's κ and AUC.",
    ),
]
CurveFile = Annotated[
    str | None,
    _option(
        OUTPUT, "--curve", metavar="FILE", help="Write the learning curve: .csv, .png or .svg."
    ),
]
PlotFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--plot",
        metavar="FILE",
        help="Draw mistakes against budget, ε or another parameter, and against time: .png, .svg "
        "or .pdf.",
    ),
]
ReportFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--report",
        metavar="FILE",
        help="Write tables and plots as one self-contained .html page.",
    ),
]
Format = Annotated[
    str,
    _option(
        OUTPUT,
        "--format",
        metavar="FORMAT",
        autocompletion=completion.formats,
        help="What stdout shows: table, json, jsonl, csv, markdown or latex.",
    ),
]
Out = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--out",
        metavar="FILE",
        help="Also write the result to a file: .json .jsonl .csv .md .tex .txt.",
    ),
]
Results = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--out",
        metavar="FILE.jsonl",
        help="The results file. The same command again continues where it ended.",
    ),
]
Quiet = Annotated[bool, _option(OUTPUT, "-q", "--quiet", help="Only results and errors.")]
Verbose = Annotated[
    int, _option(OUTPUT, "-v", "--verbose", count=True, help="Print more on stderr.")
]

# predict

ModelFile = Annotated[str, typer.Argument(metavar="MODEL", help="A model that `run --save` wrote.")]
PredictedFiles = Annotated[
    list[str],
    typer.Argument(
        metavar="DATA...",
        help="LIBSVM files (plain, gz, bz2 or xz) with or without labels, or - for standard input.",
    ),
]
ScoreFormat = Annotated[
    str, _option(OUTPUT, "--format", metavar="FORMAT", help="csv or jsonl, on stdout.")
]
ScoreFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--out",
        metavar="FILE",
        help="Write to FILE; .csv or .jsonl decides the format. [default: to stdout]",
    ),
]

# convert

DelimitedFile = Annotated[
    str, typer.Argument(metavar="DATA.csv", help="Text with a header (plain, gz, bz2, xz), or -.")
]
LabelColumn = Annotated[
    str, _option(DATA, "--label", metavar="COLUMN", help="The column that holds the labels.")
]
PositiveValue = Annotated[
    str | None,
    _option(
        DATA, "--positive", metavar="VALUE", help="Write this label as +1 and every other as -1."
    ),
]
DroppedColumns = Annotated[
    list[str] | None,
    _option(DATA, "--drop", metavar="COLUMN", help="Leave out a column (repeatable)."),
]
WordColumns = Annotated[
    list[str] | None,
    _option(
        DATA,
        "--words",
        metavar="COLUMN",
        help="Take a column as words although it holds numbers (repeatable).",
    ),
]
Missing = Annotated[
    str,
    _option(
        DATA,
        "--missing",
        metavar="HOW",
        help="Empty cells, NA and ?: zero writes them as 0, refuse stops at the first.",
    ),
]
MapFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--map",
        metavar="FILE.json",
        help="Write which column and word each index stands for, in place of the comment lines.",
    ),
]
LibsvmFile = Annotated[
    str | None,
    _option(
        OUTPUT, "--out", metavar="FILE", help="Write LIBSVM text to FILE. [default: to stdout]"
    ),
]
