"""All arguments and options of the commands, each defined once.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Annotated

import typer

# Shell completion (TAB); imports happen only when it is used.


def _words(*words: str) -> Callable[[str], list[str]]:
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _learners(incomplete: str) -> list[str]:
    from ahpatron_cli.core import REGISTRY

    return _words(*REGISTRY, "all")(incomplete)


def _kernels(incomplete: str) -> list[str]:
    from ahpatron_cli.core import KERNELS

    return _words(*KERNELS)(incomplete)


def given_by_user(context: typer.Context) -> set[str]:
    """Names of the options that were given on the command line."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    return {name for name, source in sources.items() if source and source.name == "COMMANDLINE"}


def flag(name: str) -> str:
    """The option name of a Python parameter: `--max-features` for `max_features`."""
    return f"--{name.replace('_', '-')}"


def _integer(low: int = 0, below: int = 10**18) -> Callable[[str | int], int]:
    """A parser for integers with low <= n < below; cheaper at start than a Typer callback."""

    def parse(text: str | int) -> int:
        try:
            value = int(text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is not an integer.") from None
        if not low <= value < below:
            raise typer.BadParameter(f"{value} is not between {low} and {below - 1}.")
        return value

    return parse


_data = partial(typer.Option, rich_help_panel="Data")
_learning = partial(typer.Option, rich_help_panel="Learning")
_running = partial(typer.Option, rich_help_panel="Running")
_models = partial(typer.Option, rich_help_panel="Models")
_output = partial(typer.Option, rich_help_panel="Output")
_results = partial(typer.Option, rich_help_panel="Results")

# fmt: off
_SCALES = _words("none", "minmax", "standard", "unit")
_FORMATS = _words("table", "json", "jsonl", "csv", "markdown", "latex")
_METRICS = _words(
    "mistake_rate", "balanced_error", "precision", "recall", "f1", "kappa", "auc", "log_loss")
_THEOREMS = _words("1", "2", "3", "corollary-1", "corollary-2", "4", "6", "forgetron")

# Arguments
RunData = Annotated[list[str] | None, typer.Argument(
    metavar="DATA...",
    help="LIBSVM files or tables (.csv, .tsv, also gz, bz2 or xz; .parquet, .arrow, .feather), or "
    "- for standard input.")]
SweepData = Annotated[list[str] | None, typer.Argument(
    metavar="[DATA...]", help="LIBSVM files or tables, as for `run`.")]
Path = Annotated[str, typer.Argument(
    metavar="PATH", help="A LIBSVM file, a table, - for standard input, or a model.")]
Results = Annotated[list[str], typer.Argument(
    metavar="RESULTS...", help="Results files that `sweep --out` wrote.")]
Model = Annotated[str, typer.Argument(metavar="MODEL", help="A model that `run --save` wrote.")]
PredictData = Annotated[list[str], typer.Argument(
    metavar="DATA...",
    help="LIBSVM files or tables like the training data, labels optional, or - for stdin.")]
ConvertData = Annotated[str, typer.Argument(
    metavar="DATA",
    help="A table: .csv or .tsv (also gz, bz2, xz), .parquet, .arrow, .feather; - for stdin.")]
LearnerNames = Annotated[list[str] | None, typer.Argument(
    metavar="[NAME...]", autocompletion=_learners,
    help="Learners to describe: names, or FILE.py:CLASS for one of your own. [default: list all]")]

# Data
Demo = Annotated[bool, _data("--demo", help="Run on the sample file that comes with the package.")]
Repeats = Annotated[int, _data(
    "--repeats", metavar="R", parser=_integer(1),
    help="Number of runs; if R > 1, each on its own random permutation of the rows.")]
Seed = Annotated[int, _data(
    "--seed", metavar="S", parser=_integer(),
    help="Seed of all random choices: permutations, learners, samples.")]
Shuffle = Annotated[bool | None, _data(
    "--shuffle/--no-shuffle", help="Permute the rows. [default: only if R > 1]")]
Limit = Annotated[int | None, _data(
    "--limit", metavar="N", parser=_integer(1), help="Take only the first N rows of each file.")]
Scale = Annotated[str, _data(
    "--scale", metavar="HOW", autocompletion=_SCALES,
    help="none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows to "
    "length 1). minmax and standard are learned from the first 1,000 labelled rows "
    "(`run --warm-up N` changes this).")]
InspectScale = Annotated[str | None, _data(
    "--scale", metavar="HOW", autocompletion=_SCALES,
    help="Compute distances after this scaling: none, minmax, standard or unit. [default: as "
    "advised]")]
Positive = Annotated[str | None, _data(
    "--positive", metavar="LABEL", help="Use this label as +1 and every other label as -1.")]
Labels = Annotated[str | None, _data(
    "--labels", metavar="A,B,C", help="All labels, for pipes, which cannot be read in advance. Of "
    "two, the larger is +1; more than two are classes.")]
WarmUp = Annotated[int, _data(
    "--warm-up", metavar="N", parser=_integer(1),
    help="Number of labelled rows at the start of each file from which --scale minmax or "
    "standard, --sigma auto and the columns of a table in a pipe are computed before the first "
    "round.")]
Layout = Annotated[str, _data(
    "--layout", metavar="HOW", autocompletion=_words("auto", "dense", "sparse"),
    help="Store rows dense or sparse; auto: dense if the first 64 rows have at least 10 % "
    "nonzero values and at most 4,096 columns.")]
AllowNewFeatures = Annotated[bool, _data(
    "--allow-new-features",
    help="Accept rows with features that the model was not trained on.")]
MaxFeatures = Annotated[int, _data(
    "--max-features", metavar="N", parser=_integer(1, 2**31 - 1),
    help="Refuse feature indices above N, and tables with more than N features.")]
InspectSigma = Annotated[str | None, _data(
    "--sigma", metavar="S",
    help="Also compute the kernel alignment A_T of the gaussian kernel of this width.")]
Cost = Annotated[list[str] | None, _data(
    "--cost", metavar="LABEL=W",
    help="Weight of examples with this label; repeatable. [default: 1]")]
Label = Annotated[str | None, _data(
    "--label", metavar="COLUMN", help="Tables: the column of labels.")]
Id = Annotated[str | None, _data(
    "--id", metavar="COLUMN", help="Tables: the column that identifies rows; not a feature.")]
Drop = Annotated[list[str] | None, _data(
    "--drop", metavar="COLUMN", help="Tables: leave out a column (repeatable).")]
Category = Annotated[list[str] | None, _data(
    "--category", metavar="COLUMN",
    help="Tables: treat this numeric column as categories, one feature per value (repeatable).")]
Missing = Annotated[str, _data(
    "--missing", metavar="HOW", autocompletion=_words("indicator", "zero", "mean", "refuse"),
    help="Tables: empty cells, NA, null, ? become 0 and an indicator feature (indicator), 0 "
    "(zero), the column's mean (mean), or end the run (refuse).")]

# Learning
Learner = Annotated[list[str] | None, _learning(
    "-l", "--learner", metavar="NAME", autocompletion=_learners,
    help="Learner to run; repeat for several, all for every one; FILE.py:CLASS for one of your "
    "own. [default: metron for tables, ahpatron for LIBSVM files]")]
Budget = Annotated[str | None, _learning(
    "-B", "--budget", metavar="N",
    help="B, the most examples stored; even for ahpatron, ahpatron+ and pomdr. [default: 400]")]
Kernel = Annotated[str, _learning(
    "--kernel", metavar="NAME", autocompletion=_kernels,
    help="Kernel of the learners that have none of their own; `ahpatron learners` lists all.")]
Sigma = Annotated[str | None, _learning(
    "--sigma", metavar="S",
    help="σ, width of the kernel, such as exp(-‖u-v‖²/2σ²) of the default kernel; auto: "
    "the best of five widths on the first 1,000 labelled rows (`run --warm-up N` changes this). "
    "[default: 1.0]")]
Epsilon = Annotated[str | None, _learning(
    "--epsilon", metavar="E",
    help="ε: update if y·f(x) < 1 - ε; between 0 and 1. [default: 0.5; ahpatron+: 0.75]")]
Param = Annotated[list[str] | None, _learning(
    "-p", "--param", metavar="NAME=VALUE",
    help="Any other parameter, of every chosen learner that has it; LEARNER.NAME=VALUE for one. "
    "`ahpatron learners` lists them.")]
Grid = Annotated[list[str] | None, _learning(
    "-g", "--grid", metavar="NAME=VALUES",
    help="Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T); of every "
    "chosen learner that has NAME, LEARNER.NAME=VALUES for one.")]
Config = Annotated[str | None, _learning(
    "--config", metavar="FILE",
    help="Read the sweep from a .toml file; command-line options take precedence.")]
Certify = Annotated[bool, _learning(
    "--certify",
    help="Also show the bound that the learner's theorem guarantees on these data; reads them "
    "again.")]
Theorem = Annotated[str | None, _learning(
    "--theorem", metavar="NAME", autocompletion=_THEOREMS,
    help="Set parameters that meet the conditions of a theorem: 1, 2 (perceptron), 3, "
    "corollary-1, corollary-2 (avp), 4, 6 (ahpatron) or forgetron.")]

# Running
Jobs = Annotated[int, _running(
    "-j", "--jobs", metavar="N", parser=_integer(1),
    help="Number of processes; each runs one pass at a time.")]
Scheduler = Annotated[str | None, _running(
    "--scheduler", metavar="ADDRESS",
    help="Run on a Dask cluster, such as tcp://host:8786; its workers read the same paths.")]
Wait = Annotated[int, _running(
    "--wait", metavar="SECONDS", parser=_integer(),
    help="With --scheduler: end the sweep if the cluster has no worker for this long.")]
Shard = Annotated[str | None, _running(
    "--shard", metavar="I/N",
    help="Run only the I-th of N parts, for job arrays; `report --merge` joins the results.")]
Retries = Annotated[int, _running(
    "--retries", metavar="N", parser=_integer(),
    help="Repeat a trial whose process died up to N times.")]
DryRun = Annotated[bool, _running(
    "--dry-run", help="Only count the trials and those left, and estimate their time.")]
Search = Annotated[str, _running(
    "--search", metavar="HOW", autocompletion=_words("grid", "halving"),
    help="grid runs all settings; halving runs all on few rounds, and only the best on more.")]

# Models
Save = Annotated[str | None, _models(
    "--save", metavar="MODEL",
    help="Save the learner after the last round to an .npz file.")]
Resume = Annotated[str | None, _models(
    "--resume", metavar="MODEL",
    help="Continue learning with a saved model, as if its stream had not ended.")]
Checkpoint = Annotated[str | None, _models(
    "--checkpoint", metavar="FILE",
    help="Save the learner to an .npz file at intervals; the same command continues from it.")]
Every = Annotated[int, _models(
    "--every", metavar="N", parser=_integer(1), help="Number of rounds between checkpoints.")]

# Output
Predictions = Annotated[str | None, _output(
    "--predictions", metavar="FILE",
    help="Write every round's f(x), prediction and label to a .csv file; - for stdout, and the "
    "table to stderr.")]
Metrics = Annotated[bool, _output(
    "--metrics",
    help="Add precision, recall, F1, balanced error, Cohen's κ, AUC and log loss.")]
Probability = Annotated[bool, _output(
    "--probability", help="Add the probability of each label: columns probability_LABEL.")]
Window = Annotated[int | None, _output(
    "--window", metavar="N", parser=_integer(1, 10_000_001),
    help="Add the mistake rate of the last N rounds, and report when it rises.")]
Curve = Annotated[str | None, _output(
    "--curve", metavar="FILE", help="Write the learning curve: .csv, .png, .svg or .pdf.")]
Plot = Annotated[str | None, _output(
    "--plot", metavar="FILE",
    help="Draw mistakes against budget, ε or another parameter, and against time: .png, .svg or "
    ".pdf.")]
X = Annotated[str | None, _output(
    "--x", metavar="NAME", help="With --plot or --report: the parameter to draw against.")]
Report = Annotated[str | None, _output(
    "--report", metavar="FILE", help="Write tables and plots as one self-contained .html page.")]
Format = Annotated[str, _output(
    "--format", metavar="FORMAT", autocompletion=_FORMATS,
    help="What stdout shows: table, json (also --json), jsonl, csv, markdown or latex.")]
Out = Annotated[str | None, _output(
    "--out", metavar="FILE",
    help="Also write the result to a file: .json .jsonl .csv .md .tex .txt.")]
SweepOut = Annotated[str | None, _output(
    "--out", metavar="FILE.jsonl",
    help="The results file. Repeating the command continues where it ended.")]
Quiet = Annotated[bool, _output(
    "-q", "--quiet", help="Only results, warnings and errors: no notes and no progress.")]
Verbose = Annotated[int, _output("-v", "--verbose", help="Print more on stderr.", count=True)]
PredictFormat = Annotated[str, _output(
    "--format", metavar="FORMAT", autocompletion=_words("csv", "jsonl"),
    help="csv or jsonl, on stdout.")]
PredictOut = Annotated[str | None, _output(
    "--out", metavar="FILE",
    help="Write to FILE; .csv or .jsonl decides the format. [default: to stdout]")]
ConvertOut = Annotated[str | None, _output(
    "--out", metavar="FILE", help="Write LIBSVM text to FILE. [default: to stdout]")]

Bibtex = Annotated[bool, _output(
    "--bibtex", help="Show the publications of these learners as BibTeX entries.")]

# Results
PredictLearner = Annotated[str | None, _results(
    "-l", "--learner", metavar="FILE.py:CLASS", autocompletion=_learners,
    help="The model's learner, if it is defined in a file of your own.")]
InspectLearner = Annotated[list[str] | None, _results(
    "-l", "--learner", metavar="NAME", autocompletion=_learners,
    help="Show only results of this learner; repeat for several.")]
InspectData = Annotated[list[str] | None, _results(
    "--data", metavar="NAME", help="Show only results on this data set; repeat for several.")]
Metric = Annotated[str, _results(
    "--metric", metavar="NAME", autocompletion=_METRICS,
    help="The metric that decides which setting is best: mistake_rate, balanced_error, "
    "precision, recall, f1, kappa, auc or log_loss.")]
TuneOrders = Annotated[int, _results(
    "--tune-orders", metavar="K", parser=_integer(),
    help="Choose settings on the first K permutations; report on the others.")]
Matrix = Annotated[bool, _results("--matrix", help="Show only the matrix learners x data sets.")]
Trials = Annotated[bool, _results(
    "--trials", help="Show one row per trial, as csv, jsonl or json.")]
Merge = Annotated[str | None, _results(
    "--merge", metavar="FILE.jsonl", help="Merge the results files, such as shards, into one.")]
# fmt: on
