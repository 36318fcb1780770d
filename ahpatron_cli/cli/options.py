"""Every option once, as an annotated alias, for the commands that share it.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any

import typer

# What the shell offers after TAB: names from the registries, imported only when asked for

Offer = tuple[str, str]
"""A word, and what it means."""


def _learners(incomplete: str) -> Iterator[Offer]:
    """Names for -l."""
    from ahpatron_cli.core import REGISTRY

    titles = {name: kind.title for name, kind in REGISTRY.items()} | {"all": "every learner"}
    return (offer for offer in titles.items() if offer[0].startswith(incomplete))


def _names(module: str, table: str) -> Callable[[str], list[str]]:
    """All names in a table of a module of ours."""

    def offer(incomplete: str) -> list[str]:
        names = getattr(import_module(f"ahpatron_cli.{module}"), table)
        return [name for name in names if name.startswith(incomplete)]

    return offer


def _parameters(context: typer.Context, incomplete: str) -> Iterator[Offer]:
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


DATA = "Data"
LEARNING = "Learning"
RUNNING = "Running"
MODELS = "Models"
OUTPUT = "Output"
RESULTS = "Results"


def typed(context: typer.Context, name: str) -> bool:
    """Whether an option was given on the command line, and is not just a default."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _whole(low: int, below: int) -> Callable[[str | int], int]:
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


def _option(panel: str, names: str, help: str, **more: Any) -> Any:
    """An option by its names and metavar; without one it is a flag. For its help see `app.py`."""
    *flags, last = names.split()
    metavar = None if last.startswith("-") else last
    flags += [last] if metavar is None else []
    return typer.Option(*flags, help=help, metavar=metavar, rich_help_panel=panel, **more)


def _number(panel: str, names: str, help: str, low: int = 0, below: int = 10**18) -> Any:
    """An option that takes a whole number."""
    return _option(panel, names, help, parser=_whole(low, below))


def _argument(metavar: str, help: str) -> Any:
    return typer.Argument(metavar=metavar, help=help)


# Data

DataFiles = Annotated[
    list[str], _argument("DATA...", "LIBSVM files (plain, gz, bz2 or xz), or - for standard input.")
]
SweptFiles = Annotated[
    list[str] | None, _argument("[DATA...]", "LIBSVM files (plain, gz, bz2 or xz).")
]
InspectedPaths = Annotated[
    list[str] | None,
    _argument("[PATH...]", "A LIBSVM file, - for standard input, a model, or results files."),
]
Repeats = Annotated[
    int,
    _number(
        DATA,
        "--repeats R",
        "Play R times; if R > 1, each time in a random order of its own.",
        low=1,
    ),
]
Seed = Annotated[
    int,
    _number(DATA, "--seed S", "Seed of the random orders and of the learners' random generators."),
]
SampleSeed = Annotated[
    int,
    _number(DATA, "--seed S", "Seed of the sample of rows between which distances are computed."),
]
Shuffle = Annotated[
    bool | None,
    _option(DATA, "--shuffle/--no-shuffle", "Permute the rows. [default: only if R > 1]"),
]
Limit = Annotated[
    int | None, _number(DATA, "--limit N", "Take only the first N rows of each file.", low=1)
]
Scale = Annotated[
    str,
    _option(
        DATA,
        "--scale HOW",
        "none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows to "
        "length 1). minmax and standard are learned from the first 1,000 rows of a pass in file"
        " order, from all rows with --shuffle or --repeats.",
        autocompletion=_names("data.scaling", "SCALES"),
    ),
]
InspectedScale = Annotated[
    str | None,
    _option(
        DATA,
        "--scale HOW",
        "Compute distances after this scaling: none, minmax, standard or unit. [default: as "
        "advised]",
        autocompletion=_names("data.scaling", "SCALES"),
    ),
]
Positive = Annotated[
    str | None,
    _option(DATA, "--positive LABEL", "Play this label as +1 and every other label as -1."),
]
MaxFeatures = Annotated[
    int,
    _number(DATA, "--max-features N", "Refuse feature indices above N.", low=1, below=2**31 - 1),
]
MaxFaults = Annotated[int, _number(DATA, "--max-faults N", "Show at most N faulty lines.")]
Cache = Annotated[
    bool,
    _option(
        DATA,
        "--cache",
        "Keep the decoded files in the user's cache folder, and read them from there.",
    ),
]

# Learning

Learners = Annotated[
    list[str] | None,
    _option(
        LEARNING,
        "-l --learner NAME",
        "A learner to play; repeat for several, all for every one; FILE.py:CLASS for one of "
        "your own. [default: ahpatron]",
        autocompletion=_learners,
    ),
]
AllLearners = Annotated[
    bool, _option(LEARNING, "--learners", "List all learners, kernels and their parameters.")
]
Budget = Annotated[
    str | None,
    _option(
        LEARNING, "-B --budget N", "B, the largest size of the active set; even. [default: 400]"
    ),
]
KernelName = Annotated[
    str,
    _option(
        LEARNING,
        "--kernel NAME",
        "gaussian, laplacian, polynomial or linear (the last two normalised).",
        autocompletion=_names("core", "KERNELS"),
    ),
]
Sigma = Annotated[
    str | None,
    _option(
        LEARNING,
        "--sigma S",
        "σ, width of the gaussian exp(-‖u-v‖²/2σ²) or laplacian exp(-‖u-v‖₁/σ) kernel; auto: "
        "the median distance between the first 1,000 rows. [default: 1.0]",
    ),
]
AlignmentSigma = Annotated[
    str | None,
    _option(
        DATA,
        "--sigma S",
        "Also compute the kernel alignment A_T of the gaussian kernel of this width.",
    ),
]
Epsilon = Annotated[
    str | None,
    _option(
        LEARNING,
        "--epsilon E",
        "ε: update where y·f(x) < 1 - ε; between 0 and 1. [default: 0.5; ahpatron+: 0.75]",
    ),
]
Params = Annotated[
    list[str] | None,
    _option(
        LEARNING,
        "-p --param NAME=VALUE",
        "Any other parameter, of every chosen learner that has it; LEARNER.NAME=VALUE for one. "
        "`ahpatron inspect --learners` lists them.",
        autocompletion=_parameters,
    ),
]
Grid = Annotated[
    list[str] | None,
    _option(
        LEARNING,
        "-g --grid NAME=VALUES",
        "Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T); of every "
        "chosen learner that has NAME, LEARNER.NAME=VALUES for one.",
        autocompletion=_parameters,
    ),
]
ConfigFile = Annotated[
    str | None,
    _option(
        LEARNING,
        "--config FILE",
        "Read the sweep from a .toml file; command-line options take precedence.",
    ),
]
Certify = Annotated[
    bool,
    _option(
        LEARNING,
        "--certify",
        "Also show the bound that the learner's theorem guarantees on these very data; reads "
        "them again.",
    ),
]
TheoremName = Annotated[
    str | None,
    _option(
        LEARNING,
        "--theorem NAME",
        "Set parameters that meet the conditions of a theorem: 1, 2 (perceptron), 3, "
        "corollary-1, corollary-2 (avp), 4, 5 (ahpatron) or forgetron.",
    ),
]

# Running

Jobs = Annotated[
    int,
    _number(
        RUNNING,
        "-j --jobs N",
        "Processes for repeats and learners; one pass in file order needs only one.",
        low=1,
    ),
]
SweepJobs = Annotated[
    int, _number(RUNNING, "-j --jobs N", "Processes; each plays one trial at a time.", low=1)
]
Scheduler = Annotated[
    str | None,
    _option(
        RUNNING,
        "--scheduler ADDRESS",
        "Play on a Dask cluster, such as tcp://host:8786; its workers read the same paths.",
    ),
]
Wait = Annotated[
    int,
    _number(
        RUNNING,
        "--wait SECONDS",
        "With --scheduler: end the sweep if the cluster has no worker for so long.",
    ),
]
Shard = Annotated[
    str | None,
    _option(
        RUNNING,
        "--shard I/N",
        "Play only the I-th of N parts, for job arrays; `inspect --merge` joins the results.",
    ),
]
Retries = Annotated[
    int, _number(RUNNING, "--retries N", "Play a trial whose process died up to N more times.")
]
DryRun = Annotated[
    bool,
    _option(RUNNING, "--dry-run", "Only print how many trials there are, and how many are left."),
]

# Models

Save = Annotated[
    str | None,
    _option(
        MODELS, "--save MODEL", "Save the learner, as it is after the last round, in an .npz file."
    ),
]
Resume = Annotated[
    str | None,
    _option(
        MODELS, "--resume MODEL", "Continue with a saved learner, as if its stream had never ended."
    ),
]
Freeze = Annotated[bool, _option(MODELS, "--freeze", "With --resume: only predict, learn nothing.")]
Checkpoint = Annotated[
    str | None,
    _option(
        MODELS,
        "--checkpoint FILE",
        "Save the learner in an .npz file now and then; the same command continues from it.",
    ),
]
Every = Annotated[
    int, _number(MODELS, "--every N", "Rounds from one checkpoint to the next.", low=1)
]

Costs = Annotated[
    list[str] | None,
    _option(
        DATA,
        "--cost LABEL=W",
        "Let examples of this label weigh W; repeatable. [default: 1]",
    ),
]

# Output

Predictions = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--predictions FILE",
        "Write every round's f(x), prediction and label to a .csv file; - for stdout, and the "
        "table to stderr.",
    ),
]
MetricsFlag = Annotated[
    bool,
    _option(OUTPUT, "--metrics", "Add precision, recall, F1, balanced error, Cohen's κ and AUC."),
]
McNemarFlag = Annotated[
    bool,
    _option(OUTPUT, "--mcnemar", "Compare each learner with the best round by round (McNemar)."),
]
WindowSize = Annotated[
    int | None,
    _number(
        OUTPUT,
        "--window N",
        "Add the mistake rate of the last N rounds, and mark where it rises.",
        low=1,
        below=10_000_001,
    ),
]
FadingFactor = Annotated[
    float | None,
    _option(
        OUTPUT,
        "--fading A",
        "Add the mistake rate in which each round counts A times what the next one counts.",
    ),
]
CurveFile = Annotated[
    str | None,
    _option(OUTPUT, "--curve FILE", "Write the learning curve: .csv, .png, .svg or .pdf."),
]
PlotFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--plot FILE",
        "Draw mistakes against budget, ε or another parameter, and against time: .png, .svg or "
        ".pdf.",
    ),
]
PlotAxis = Annotated[
    str | None,
    _option(OUTPUT, "--x NAME", "With --plot or --report: the parameter to draw against."),
]
ReportFile = Annotated[
    str | None,
    _option(OUTPUT, "--report FILE", "Write tables and plots as one self-contained .html page."),
]
Format = Annotated[
    str,
    _option(
        OUTPUT,
        "--format FORMAT",
        "What stdout shows: table, json, jsonl, csv, markdown or latex.",
        autocompletion=_names("output.formats", "FORMATS"),
    ),
]
Out = Annotated[
    str | None,
    _option(
        OUTPUT, "--out FILE", "Also write the result to a file: .json .jsonl .csv .md .tex .txt."
    ),
]
Results = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--out FILE.jsonl",
        "The results file. The same command again continues where it ended.",
    ),
]
Quiet = Annotated[bool, _option(OUTPUT, "-q --quiet", "Only results and errors.")]
Verbose = Annotated[int, _option(OUTPUT, "-v --verbose", "Print more on stderr.", count=True)]

# Results of sweeps

ShownLearners = Annotated[
    list[str] | None,
    _option(
        RESULTS,
        "-l --learner NAME",
        "Of results show only this learner; repeat for several.",
        autocompletion=_learners,
    ),
]
ShownData = Annotated[
    list[str] | None,
    _option(RESULTS, "--data NAME", "Of results show only this data set; repeat for several."),
]
MetricName = Annotated[
    str,
    _option(
        RESULTS,
        "--metric NAME",
        "What the best is best in: mistake_rate, balanced_error, precision, recall, f1, kappa or "
        "auc.",
        autocompletion=_names("sweep.summary", "METRICS"),
    ),
]
TuneOrders = Annotated[
    int,
    _number(
        RESULTS, "--tune-orders K", "Choose settings on the first K orders; report on the others."
    ),
]
SearchName = Annotated[
    str,
    _option(
        RUNNING,
        "--search HOW",
        "grid plays all settings; halving plays them on the first rounds, and the best on more.",
    ),
]
OnlyMatrix = Annotated[
    bool, _option(RESULTS, "--matrix", "Show only the matrix learners x data sets.")
]
EveryTrial = Annotated[
    bool, _option(RESULTS, "--trials", "Show one row per trial, as csv, jsonl or json.")
]
MergedFile = Annotated[
    str | None,
    _option(RESULTS, "--merge FILE.jsonl", "Write all given results files as one: shards, say."),
]

# predict

ModelFile = Annotated[str, _argument("MODEL", "A model that `run --save` wrote.")]
PredictedFiles = Annotated[
    list[str],
    _argument(
        "DATA...",
        "LIBSVM files (plain, gz, bz2 or xz) with or without labels, or - for standard input.",
    ),
]
ScoreFormat = Annotated[str, _option(OUTPUT, "--format FORMAT", "csv or jsonl, on stdout.")]
ScoreFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--out FILE",
        "Write to FILE; .csv or .jsonl decides the format. [default: to stdout]",
    ),
]

# convert

DelimitedFile = Annotated[
    str, _argument("DATA.csv", "Text with a header (plain, gz, bz2, xz), or -.")
]
LabelColumn = Annotated[str, _option(DATA, "--label COLUMN", "The column that holds the labels.")]
PositiveValue = Annotated[
    str | None, _option(DATA, "--positive VALUE", "Write this label as +1 and every other as -1.")
]
DroppedColumns = Annotated[
    list[str] | None, _option(DATA, "--drop COLUMN", "Leave out a column (repeatable).")
]
WordColumns = Annotated[
    list[str] | None,
    _option(
        DATA, "--words COLUMN", "Take a column as words although it holds numbers (repeatable)."
    ),
]
Missing = Annotated[
    str,
    _option(
        DATA,
        "--missing HOW",
        "Empty cells, NA and ?: zero writes them as 0, refuse stops at the first.",
    ),
]
MapFile = Annotated[
    str | None,
    _option(
        OUTPUT,
        "--map FILE.json",
        "Write which column and word each index stands for, in place of the comment lines.",
    ),
]
LibsvmFile = Annotated[
    str | None, _option(OUTPUT, "--out FILE", "Write LIBSVM text to FILE. [default: to stdout]")
]
