"""Every option once, for the commands that share it.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Annotated, Any, get_type_hints

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
    from ahpatron_cli.core.certificates import THEOREMS

    for theorem in THEOREMS:
        if theorem.key.startswith(incomplete):
            yield theorem.key, f"about {theorem.learners[0]}"


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
  run.data  DATA...  LIBSVM files (plain, gz, bz2 or xz), or - for standard input.
  sweep.data  [DATA...]  LIBSVM files (plain, gz, bz2 or xz).
  paths  [PATH...]  A LIBSVM file, - for standard input, a model, or results files.
  model  MODEL  A model that `run --save` wrote.
  predict.data  DATA...  LIBSVM files (plain, gz, bz2 or xz) with or without labels, or - for
      standard input.
  convert.data  DATA.csv  Text with a header (plain, gz, bz2, xz), or -.
Data
  repeats  --repeats R  Play R times; if R > 1, each time in a random order of its own.
  seed  --seed S  Seed of the random orders and of the learners' random generators.
  inspect.seed  --seed S  Seed of the sample of rows between which distances are computed.
  shuffle  --shuffle/--no-shuffle  Permute the rows. [default: only if R > 1]
  limit  --limit N  Take only the first N rows of each file.
  scale  --scale HOW  none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows
      to length 1). minmax and standard are learned from the first 1,000 rows of a pass in file
      order, from all rows with --shuffle or --repeats.
  inspect.scale  --scale HOW  Compute distances after this scaling: none, minmax, standard or unit.
      [default: as advised]
  positive  --positive LABEL  Play this label as +1 and every other label as -1.
  max_features  --max-features N  Refuse feature indices above N.
  max_faults  --max-faults N  Show at most N faulty lines.
  cache  --cache  Keep decoded files in the cache folder, and read them from there.
  inspect.sigma  --sigma S  Also compute the kernel alignment A_T of the gaussian kernel of this
      width.
  cost  --cost LABEL=W  Let examples of this label weigh W; repeatable. [default: 1]
  label  --label COLUMN  The column that holds the labels.
  convert.positive  --positive VALUE  Write this label as +1 and every other as -1.
  drop  --drop COLUMN  Leave out a column (repeatable).
  words  --words COLUMN  Treat a column of numbers as words (repeatable).
  missing  --missing HOW  Empty cells, NA, ? and words that --like lacks: zero writes them as 0,
      refuse stops at the first.
  like  --like MAP.json  Number columns, words and labels as in a file that --map wrote. The
      column of labels may be absent.
Learning
  learner  -l --learner NAME  A learner to play; repeat for several, all for every one;
      FILE.py:CLASS for one of your own. [default: ahpatron]
  learners  --learners  List all learners, kernels and their parameters.
  budget  -B --budget N  B, the largest size of the active set; even. [default: 400]
  kernel  --kernel NAME  gaussian, laplacian, polynomial or linear (the last two normalised).
  sigma  --sigma S  σ, width of the gaussian exp(-‖u-v‖²/2σ²) or laplacian exp(-‖u-v‖₁/σ) kernel;
      auto: the median distance between the first 1,000 rows. [default: 1.0]
  epsilon  --epsilon E  ε: update if y·f(x) < 1 - ε; between 0 and 1. [default: 0.5; ahpatron+:
      0.75]
  param  -p --param NAME=VALUE  Any other parameter, of every chosen learner that has it;
      LEARNER.NAME=VALUE for one. `ahpatron inspect --learners` lists them.
  grid  -g --grid NAME=VALUES  Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or
      10^[-3:3]/sqrt(T); of every chosen learner that has NAME, LEARNER.NAME=VALUES for one.
  config  --config FILE  Read the sweep from a .toml file; command-line options take precedence.
  certify  --certify  Also show the bound that the learner's theorem guarantees on these data;
      reads them again.
  theorem  --theorem NAME  Set parameters that meet the conditions of a theorem: 1, 2
      (perceptron), 3, corollary-1, corollary-2 (avp), 4, 5 (ahpatron) or forgetron.
Running
  jobs  -j --jobs N  Processes for repeats and learners; one pass in file order needs only one.
  sweep.jobs  -j --jobs N  Processes; each plays one trial at a time.
  scheduler  --scheduler ADDRESS  Play on a Dask cluster, such as tcp://host:8786; its workers read
      the same paths.
  wait  --wait SECONDS  With --scheduler: end the sweep if the cluster has no worker for this long.
  shard  --shard I/N  Play only the I-th of N parts, for job arrays; `inspect --merge` joins the
      results.
  retries  --retries N  Play a trial whose process died up to N more times.
  dry_run  --dry-run  Only print how many trials there are, and how many are left.
  search  --search HOW  grid plays all settings; halving plays them on the first rounds, and the
      best on more.
Models
  save  --save MODEL  Save the learner, as it is after the last round, in an .npz file.
  resume  --resume MODEL  Continue with a saved learner, as if its stream had never ended.
  freeze  --freeze  With --resume: only predict, learn nothing.
  checkpoint  --checkpoint FILE  Save the learner in an .npz file at intervals; the same command
      continues from it.
  every  --every N  Rounds from one checkpoint to the next.
Output
  predictions  --predictions FILE  Write every round's f(x), prediction and label to a .csv file; -
      for stdout, and the table to stderr.
  metrics  --metrics  Add precision, recall, F1, balanced error, Cohen's κ and AUC.
  mcnemar  --mcnemar  Compare each learner with the best round by round (McNemar).
  window  --window N  Add the mistake rate of the last N rounds, and report when it rises.
  fading  --fading A  Add the mistake rate in which each round counts A times what the next
      one counts.
  curve  --curve FILE  Write the learning curve: .csv, .png, .svg or .pdf.
  plot  --plot FILE  Draw mistakes against budget, ε or another parameter, and against time:
      .png, .svg or .pdf.
  x  --x NAME  With --plot or --report: the parameter to draw against.
  report  --report FILE  Write tables and plots as one self-contained .html page.
  format  --format FORMAT  What stdout shows: table, json, jsonl, csv, markdown or latex.
  out  --out FILE  Also write the result to a file: .json .jsonl .csv .md .tex .txt.
  sweep.out  --out FILE.jsonl  The results file. The same command again continues where it ended.
  quiet  -q --quiet  Only results and errors.
  verbose  -v --verbose  Print more on stderr.
  predict.format  --format FORMAT  csv or jsonl, on stdout.
  predict.out  --out FILE  Write to FILE; .csv or .jsonl decides the format. [default: to stdout]
  map_file  --map FILE.json  Write which column and word each index stands for, in place of the
      comment lines.
  convert.out  --out FILE  Write LIBSVM text to FILE. [default: to stdout]
Results
  predict.learner  -l --learner FILE.py:CLASS  The model's learner, if it is in a file.
  inspect.learner  -l --learner NAME  Show only results of this learner; repeat for several.
  inspect.data  --data NAME  Show only results on this data set; repeat for several.
  metric  --metric NAME  The metric that decides which setting is best: mistake_rate,
      balanced_error, precision, recall, f1, kappa or auc.
  tune_orders  --tune-orders K  Choose settings on the first K orders; report on the others.
  matrix  --matrix  Show only the matrix learners x data sets.
  trials  --trials  Show one row per trial, as csv, jsonl or json.
  merge  --merge FILE.jsonl  Write all given results files, such as shards, as one.
"""
"""Flags with metavar and help of each parameter of a command, by panels of the help.

What differs for one command has its name before that of the parameter.
"""
_COMPLETIONS = {
    "learner": _learners,
    "kernel": _names("core", "KERNELS"),
    "param": _parameters,
    "grid": _parameters,
    "theorem": _theorems,
    "scale": _names("data.scaling", "SCALES"),
    "missing": _words("refuse", "zero"),
    "format": _names("output.formats", "FORMATS"),
    "predict.format": _words("csv", "jsonl"),
    "metric": _names("sweep.summary", "METRICS"),
    "search": _names("sweep.summary", "SEARCHES"),
}
_HUGE = 10**18
_BOUNDS = {
    **dict.fromkeys(("repeats", "limit", "jobs", "every"), (1, _HUGE)),
    "max_features": (1, 2**31 - 1),
    "window": (1, 10_000_001),
}
"""Whole numbers are at least the first, 0 unless given, and below the second."""


def _entries() -> Iterator[tuple[str, tuple[str, str, str]]]:
    """The table: panel, flags and help by name."""
    panel = ""
    for entry in re.split(r"\n(?! {6})", _TEXTS.strip()):
        if not entry.startswith(" "):
            panel = entry
            continue
        name, flags, help = re.sub(r"\n +", " ", entry).strip().split("  ", 2)
        yield name, (panel, flags, help)


_ENTRIES = dict(_entries())


readers: dict[str, Callable[[Any], Any]] = {}
"""What makes a value out of words, by COMMAND.PARAMETER; if there is none, Typer does."""


def _as_it_is(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value


def declare(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give the parameters of a command their flags, help, parser and completion."""
    for name, kind in get_type_hints(command).items():
        if name in ("context", "return"):
            continue
        own = f"{command.__name__}.{name}"
        panel, names, help = _ENTRIES.get(own) or _ENTRIES[name]
        if kind not in (float, float | None):
            readers[own] = _as_it_is
        if panel == "Arguments":
            declared = typer.Argument(metavar=names, help=help)
        else:
            more: dict[str, Any] = {"autocompletion": _COMPLETIONS.get(own, _COMPLETIONS.get(name))}
            if name == "verbose":
                more["count"] = True
            elif kind in (int, int | None):
                more["parser"] = readers[own] = _whole(*_BOUNDS.get(name, (0, _HUGE)))
            *flags, last = names.split()
            metavar = None if last.startswith("-") else last  # a flag has none
            flags += [last] if metavar is None else []
            more |= {"help": help, "metavar": metavar, "rich_help_panel": panel}
            declared = typer.Option(*flags, **more)
        command.__annotations__[name] = Annotated[kind, declared]
    return command
