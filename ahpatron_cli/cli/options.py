"""Every option once, as an annotated alias, for the commands that share it.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

from __future__ import annotations

import re
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


def _words(*words: str) -> Callable[[str], list[str]]:
    """Just these words."""
    return lambda incomplete: [word for word in words if word.startswith(incomplete)]


def _theorems(incomplete: str) -> Iterator[Offer]:
    """Names for --theorem."""
    from ahpatron_cli.core.theorems import THEOREMS

    for theorem in THEOREMS:
        if theorem.key.startswith(incomplete):
            yield theorem.key, f"about {theorem.learner}"


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


_TEXTS = """
Arguments
  DataFiles  DATA...  LIBSVM files (plain, gz, bz2 or xz), or - for standard input.
  SweptFiles  [DATA...]  LIBSVM files (plain, gz, bz2 or xz).
  InspectedPaths  [PATH...]  A LIBSVM file, - for standard input, a model, or results files.
  ModelFile  MODEL  A model that `run --save` wrote.
  PredictedFiles  DATA...  LIBSVM files (plain, gz, bz2 or xz) with or without labels, or - for
      standard input.
  DelimitedFile  DATA.csv  Text with a header (plain, gz, bz2, xz), or -.
Data
  Repeats  --repeats R  Play R times; if R > 1, each time in a random order of its own.
  Seed  --seed S  Seed of the random orders and of the learners' random generators.
  SampleSeed  --seed S  Seed of the sample of rows between which distances are computed.
  Shuffle  --shuffle/--no-shuffle  Permute the rows. [default: only if R > 1]
  Limit  --limit N  Take only the first N rows of each file.
  Scale  --scale HOW  none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows
      to length 1). minmax and standard are learned from the first 1,000 rows of a pass in file
      order, from all rows with --shuffle or --repeats.
  InspectedScale  --scale HOW  Compute distances after this scaling: none, minmax, standard or unit.
      [default: as advised]
  Positive  --positive LABEL  Play this label as +1 and every other label as -1.
  MaxFeatures  --max-features N  Refuse feature indices above N.
  MaxFaults  --max-faults N  Show at most N faulty lines.
  Cache  --cache  Keep decoded files in the cache folder, and read them from there.
  AlignmentSigma  --sigma S  Also compute the kernel alignment A_T of the gaussian kernel of this
      width.
  Costs  --cost LABEL=W  Let examples of this label weigh W; repeatable. [default: 1]
  LabelColumn  --label COLUMN  The column that holds the labels.
  PositiveValue  --positive VALUE  Write this label as +1 and every other as -1.
  DroppedColumns  --drop COLUMN  Leave out a column (repeatable).
  WordColumns  --words COLUMN  Treat a column of numbers as words (repeatable).
  Missing  --missing HOW  Empty cells, NA, ? and words that --like lacks: zero writes them as 0,
      refuse stops at the first.
  LikeFile  --like MAP.json  Number columns, words and labels as in a file that --map wrote. The
      column of labels may be absent.
Learning
  Learners  -l --learner NAME  A learner to play; repeat for several, all for every one;
      FILE.py:CLASS for one of your own. [default: ahpatron]
  AllLearners  --learners  List all learners, kernels and their parameters.
  Budget  -B --budget N  B, the largest size of the active set; even. [default: 400]
  KernelName  --kernel NAME  gaussian, laplacian, polynomial or linear (the last two normalised).
  Sigma  --sigma S  σ, width of the gaussian exp(-‖u-v‖²/2σ²) or laplacian exp(-‖u-v‖₁/σ) kernel;
      auto: the median distance between the first 1,000 rows. [default: 1.0]
  Epsilon  --epsilon E  ε: update if y·f(x) < 1 - ε; between 0 and 1. [default: 0.5; ahpatron+:
      0.75]
  Params  -p --param NAME=VALUE  Any other parameter, of every chosen learner that has it;
      LEARNER.NAME=VALUE for one. `ahpatron inspect --learners` lists them.
  Grid  -g --grid NAME=VALUES  Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or
      10^[-3:3]/sqrt(T); of every chosen learner that has NAME, LEARNER.NAME=VALUES for one.
  ConfigFile  --config FILE  Read the sweep from a .toml file; command-line options take precedence.
  Certify  --certify  Also show the bound that the learner's theorem guarantees on these data;
      reads them again.
  TheoremName  --theorem NAME  Set parameters that meet the conditions of a theorem: 1, 2
      (perceptron), 3, corollary-1, corollary-2 (avp), 4, 5 (ahpatron) or forgetron.
Running
  Jobs  -j --jobs N  Processes for repeats and learners; one pass in file order needs only one.
  SweepJobs  -j --jobs N  Processes; each plays one trial at a time.
  Scheduler  --scheduler ADDRESS  Play on a Dask cluster, such as tcp://host:8786; its workers read
      the same paths.
  Wait  --wait SECONDS  With --scheduler: end the sweep if the cluster has no worker for this long.
  Shard  --shard I/N  Play only the I-th of N parts, for job arrays; `inspect --merge` joins the
      results.
  Retries  --retries N  Play a trial whose process died up to N more times.
  DryRun  --dry-run  Only print how many trials there are, and how many are left.
  SearchName  --search HOW  grid plays all settings; halving plays them on the first rounds, and the
      best on more.
Models
  Save  --save MODEL  Save the learner, as it is after the last round, in an .npz file.
  Resume  --resume MODEL  Continue with a saved learner, as if its stream had never ended.
  Freeze  --freeze  With --resume: only predict, learn nothing.
  Checkpoint  --checkpoint FILE  Save the learner in an .npz file at intervals; the same command
      continues from it.
  Every  --every N  Rounds from one checkpoint to the next.
Output
  Predictions  --predictions FILE  Write every round's f(x), prediction and label to a .csv file; -
      for stdout, and the table to stderr.
  MetricsFlag  --metrics  Add precision, recall, F1, balanced error, Cohen's κ and AUC.
  McNemarFlag  --mcnemar  Compare each learner with the best round by round (McNemar).
  WindowSize  --window N  Add the mistake rate of the last N rounds, and report when it rises.
  FadingFactor  --fading A  Add the mistake rate in which each round counts A times what the next
      one counts.
  CurveFile  --curve FILE  Write the learning curve: .csv, .png, .svg or .pdf.
  PlotFile  --plot FILE  Draw mistakes against budget, ε or another parameter, and against time:
      .png, .svg or .pdf.
  PlotAxis  --x NAME  With --plot or --report: the parameter to draw against.
  ReportFile  --report FILE  Write tables and plots as one self-contained .html page.
  Format  --format FORMAT  What stdout shows: table, json, jsonl, csv, markdown or latex.
  Out  --out FILE  Also write the result to a file: .json .jsonl .csv .md .tex .txt.
  Results  --out FILE.jsonl  The results file. The same command again continues where it ended.
  Quiet  -q --quiet  Only results and errors.
  Verbose  -v --verbose  Print more on stderr.
  ScoreFormat  --format FORMAT  csv or jsonl, on stdout.
  ScoreFile  --out FILE  Write to FILE; .csv or .jsonl decides the format. [default: to stdout]
  MapFile  --map FILE.json  Write which column and word each index stands for, in place of the
      comment lines.
  LibsvmFile  --out FILE  Write LIBSVM text to FILE. [default: to stdout]
Results
  ShownLearners  -l --learner NAME  Show only results of this learner; repeat for several.
  ShownData  --data NAME  Show only results on this data set; repeat for several.
  MetricName  --metric NAME  The metric that decides which setting is best: mistake_rate,
      balanced_error, precision, recall, f1, kappa or auc.
  TuneOrders  --tune-orders K  Choose settings on the first K orders; report on the others.
  OnlyMatrix  --matrix  Show only the matrix learners x data sets.
  EveryTrial  --trials  Show one row per trial, as csv, jsonl or json.
  MergedFile  --merge FILE.jsonl  Write all given results files, such as shards, as one.
"""
"""By panels of the help: the name of each option here, its flags with its metavar, and its help."""


def _entries() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The table: panel, flags and help of each option by its name."""
    panel = ""
    for entry in re.split(r"\n(?! {6})", _TEXTS.strip()):
        if not entry.startswith(" "):
            panel = entry
            continue
        name, flags, help = re.sub(r"\n +", " ", entry).strip().split("  ", 2)
        yield name, (panel, flags, help)


_ENTRIES = dict(_entries())


def _option(name: str, **more: Any) -> Any:
    """An option; without a metavar it is a flag. For its help see `app.py`."""
    panel, names, help = _ENTRIES[name]
    *flags, last = names.split()
    metavar = None if last.startswith("-") else last
    flags += [last] if metavar is None else []
    return typer.Option(*flags, help=help, metavar=metavar, rich_help_panel=panel, **more)


def _number(name: str, low: int = 0, below: int = 10**18) -> Any:
    """An option that takes a whole number."""
    return _option(name, parser=_whole(low, below))


def _argument(name: str) -> Any:
    _, metavar, help = _ENTRIES[name]
    return typer.Argument(metavar=metavar, help=help)


DataFiles = Annotated[list[str], _argument("DataFiles")]
SweptFiles = Annotated[list[str] | None, _argument("SweptFiles")]
InspectedPaths = Annotated[list[str] | None, _argument("InspectedPaths")]
Repeats = Annotated[int, _number("Repeats", low=1)]
Seed = Annotated[int, _number("Seed")]
SampleSeed = Annotated[int, _number("SampleSeed")]
Shuffle = Annotated[bool | None, _option("Shuffle")]
Limit = Annotated[int | None, _number("Limit", low=1)]
Scale = Annotated[str, _option("Scale", autocompletion=_names("data.scaling", "SCALES"))]
InspectedScale = Annotated[
    str | None, _option("InspectedScale", autocompletion=_names("data.scaling", "SCALES"))
]
Positive = Annotated[str | None, _option("Positive")]
MaxFeatures = Annotated[int, _number("MaxFeatures", low=1, below=2**31 - 1)]
MaxFaults = Annotated[int, _number("MaxFaults")]
Cache = Annotated[bool, _option("Cache")]
Learners = Annotated[list[str] | None, _option("Learners", autocompletion=_learners)]
AllLearners = Annotated[bool, _option("AllLearners")]
Budget = Annotated[str | None, _option("Budget")]
KernelName = Annotated[str, _option("KernelName", autocompletion=_names("core", "KERNELS"))]
Sigma = Annotated[str | None, _option("Sigma")]
AlignmentSigma = Annotated[str | None, _option("AlignmentSigma")]
Epsilon = Annotated[str | None, _option("Epsilon")]
Params = Annotated[list[str] | None, _option("Params", autocompletion=_parameters)]
Grid = Annotated[list[str] | None, _option("Grid", autocompletion=_parameters)]
ConfigFile = Annotated[str | None, _option("ConfigFile")]
Certify = Annotated[bool, _option("Certify")]
TheoremName = Annotated[str | None, _option("TheoremName", autocompletion=_theorems)]
Jobs = Annotated[int, _number("Jobs", low=1)]
SweepJobs = Annotated[int, _number("SweepJobs", low=1)]
Scheduler = Annotated[str | None, _option("Scheduler")]
Wait = Annotated[int, _number("Wait")]
Shard = Annotated[str | None, _option("Shard")]
Retries = Annotated[int, _number("Retries")]
DryRun = Annotated[bool, _option("DryRun")]
Save = Annotated[str | None, _option("Save")]
Resume = Annotated[str | None, _option("Resume")]
Freeze = Annotated[bool, _option("Freeze")]
Checkpoint = Annotated[str | None, _option("Checkpoint")]
Every = Annotated[int, _number("Every", low=1)]
Costs = Annotated[list[str] | None, _option("Costs")]
Predictions = Annotated[str | None, _option("Predictions")]
MetricsFlag = Annotated[bool, _option("MetricsFlag")]
McNemarFlag = Annotated[bool, _option("McNemarFlag")]
WindowSize = Annotated[int | None, _number("WindowSize", low=1, below=10_000_001)]
FadingFactor = Annotated[float | None, _option("FadingFactor")]
CurveFile = Annotated[str | None, _option("CurveFile")]
PlotFile = Annotated[str | None, _option("PlotFile")]
PlotAxis = Annotated[str | None, _option("PlotAxis")]
ReportFile = Annotated[str | None, _option("ReportFile")]
Format = Annotated[str, _option("Format", autocompletion=_names("output.formats", "FORMATS"))]
Out = Annotated[str | None, _option("Out")]
Results = Annotated[str | None, _option("Results")]
Quiet = Annotated[bool, _option("Quiet")]
Verbose = Annotated[int, _option("Verbose", count=True)]
ShownLearners = Annotated[list[str] | None, _option("ShownLearners", autocompletion=_learners)]
ShownData = Annotated[list[str] | None, _option("ShownData")]
MetricName = Annotated[
    str, _option("MetricName", autocompletion=_names("sweep.summary", "METRICS"))
]
TuneOrders = Annotated[int, _number("TuneOrders")]
SearchName = Annotated[
    str, _option("SearchName", autocompletion=_names("sweep.summary", "SEARCHES"))
]
OnlyMatrix = Annotated[bool, _option("OnlyMatrix")]
EveryTrial = Annotated[bool, _option("EveryTrial")]
MergedFile = Annotated[str | None, _option("MergedFile")]
ModelFile = Annotated[str, _argument("ModelFile")]
PredictedFiles = Annotated[list[str], _argument("PredictedFiles")]
ScoreFormat = Annotated[str, _option("ScoreFormat", autocompletion=_words("csv", "jsonl"))]
ScoreFile = Annotated[str | None, _option("ScoreFile")]
DelimitedFile = Annotated[str, _argument("DelimitedFile")]
LabelColumn = Annotated[str | None, _option("LabelColumn")]
PositiveValue = Annotated[str | None, _option("PositiveValue")]
DroppedColumns = Annotated[list[str] | None, _option("DroppedColumns")]
WordColumns = Annotated[list[str] | None, _option("WordColumns")]
Missing = Annotated[str, _option("Missing", autocompletion=_words("refuse", "zero"))]
LikeFile = Annotated[str | None, _option("LikeFile")]
MapFile = Annotated[str | None, _option("MapFile")]
LibsvmFile = Annotated[str | None, _option("LibsvmFile")]
