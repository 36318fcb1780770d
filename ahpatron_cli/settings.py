"""Settings: the options of all commands, each declared once.

A group of options is a frozen dataclass, and each of its fields is an option: its type and default,
its names, help, legal values, and what it belongs to. The settings of a command are a few groups,
or parts of them. `cli/typer_bridge.py` makes command lines of them, `sweep/config.py` reads them
from TOML; the rest of the package takes them as objects.

Nothing heavy is imported here: `ahpatron --help` must answer at once.
"""

import dataclasses
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, TypeVar, get_args, get_origin

T = TypeVar("T")

Given: TypeAlias = frozenset[str]
"""Names of the options that the user has given, as opposed to those with their defaults."""
Owner: TypeAlias = Literal["model", "stream", "call"]
"""What an option belongs to.

model: a saved model has its value, so it is refused with --resume.
stream: it decides which rows are learned, how they are written, and their order.
call: it may be different each time. The others must be the same with --checkpoint.
"""
Registered: TypeAlias = Literal["learner", "kernel", "theorem"]

Scale: TypeAlias = Literal["none", "minmax", "standard", "unit"]
Layout: TypeAlias = Literal["auto", "dense", "sparse"]
Missing: TypeAlias = Literal["indicator", "zero", "mean", "refuse"]
DecimalSign: TypeAlias = Literal[".", ","]
SlashFormat: TypeAlias = Literal["DD/MM/YYYY", "MM/DD/YYYY"]
Format: TypeAlias = Literal["table", "json", "jsonl", "csv", "markdown", "latex"]
DocumentFormat: TypeAlias = Literal["table", "json"]
RowFormat: TypeAlias = Literal["csv", "jsonl"]
OnFault: TypeAlias = Literal["stop", "skip"]
PredictionFormat: TypeAlias = Literal["csv", "jsonl", "table", "json"]
SearchName: TypeAlias = Literal["grid", "halving"]
MetricName: TypeAlias = Literal[
    "mistake_rate",
    "balanced_error",
    "precision",
    "recall",
    "f1",
    "kappa",
    "auc",
    "average_precision",
    "log_loss",
    "brier",
]

LARGEST = 10**18
"""Integers of options are below this number, unless an option has a smaller limit."""
RARE = "Rarely needed"
PANELS = (
    "Arguments",
    "Learner",
    "Data",
    "Tables",
    "Order",
    "Guarantees",
    "Models",
    "Live streams",
    "Server",
    "Sweep",
    "Output",
    RARE,
    "Options",
)
"""Headings of the help, in their order."""


@dataclass(frozen=True, eq=False)
class Option:
    """An option: how it is written and described, and what it goes with."""

    name: str
    """Name of its field."""
    type: object
    """Type of its field."""
    default: object
    names: tuple[str, ...]
    """How it is written: `-l`, `--learner`."""
    old_names: tuple[str, ...]
    """Earlier spellings, which work but are not shown."""
    help: str
    metavar: str | None
    panel: str
    """Its heading in the help."""
    usual: bool
    """Whether it is among the few that `-h` shows."""
    belongs_to: Owner
    saved_as: str
    """Its key in saved models, which may be an earlier name."""
    requires: tuple[str, ...]
    """Names of the options without any of which this one has no effect."""
    excludes: tuple[str, ...]
    """Names of the options that contradict this one."""
    at_least: int
    below: int
    """Limits of an integer."""
    counts: bool
    """Whether it is repeated to count up, as in -vv."""
    names_a: Registered | None
    """What the value names, if it is one of the names that the core knows."""

    @property
    def flag(self) -> str:
        """The long name, as in messages: `--max-features`."""
        names = [name for name in self.names if name.startswith("--")]
        long, _, _ = names[0].partition("/")
        return long

    @property
    def _types(self) -> tuple[Any, ...]:
        """Its type, and what that is a union of."""
        return (self.type, *get_args(self.type))

    @property
    def is_flag(self) -> bool:
        """Whether it takes no value."""
        return self.counts or bool in self._types

    @property
    def is_integer(self) -> bool:
        """Whether its value is an integer."""
        return not self.counts and int in self._types

    def fault_of(self, value: int) -> str | None:
        """Why an integer is not a legal value, as the end of a sentence; None if it is one."""
        if value < self.at_least:
            return f"must be at least {self.at_least:,}, got {value}"
        if value >= self.below:
            return f"must be less than {self.below:,}, got {value}"
        return None

    @property
    def takes_text(self) -> bool:
        """Whether its value is any text."""
        return not self.is_repeatable and str in self._types

    @property
    def is_repeatable(self) -> bool:
        """Whether it can be given several times."""
        return get_origin(self.type) is tuple

    @property
    def legal(self) -> tuple[str, ...]:
        """The legal words; empty if any text is legal."""
        return legal_words(self.type)


def legal_words(type: object) -> tuple[str, ...]:
    """The words of a type that is a `Literal`, or None; empty for other types."""
    for one in (type, *get_args(type)):
        if get_origin(one) is Literal:
            return get_args(one)
    return ()


class Group:
    """Base class of groups of options."""

    panel: ClassVar[str]


def option(
    *names: str,
    default: T,
    help: str,
    metavar: str | None = None,
    old: Collection[str] = (),
    panel: str | None = None,
    usual: bool = False,
    belongs_to: Owner,
    saved_as: str | None = None,
    requires: Collection[str] = (),
    excludes: Collection[str] = (),
    at_least: int = 0,
    below: int = LARGEST,
    counts: bool = False,
    names_a: Registered | None = None,
) -> T:
    """A field of a group; see `Option`. `{legal}` in `help` stands for the legal words."""
    declared = Option(
        name="",
        type=None,
        default=default,
        names=names,
        old_names=tuple(old),
        help=help,
        metavar=metavar,
        panel=panel or "",
        usual=usual,
        belongs_to=belongs_to,
        saved_as=saved_as or "",
        requires=tuple(requires),
        excludes=tuple(excludes),
        at_least=at_least,
        below=below,
        counts=counts,
        names_a=names_a,
    )
    made: T = field(default=default, metadata={"option": declared})
    return made


def options_of(group: type[Group]) -> dict[str, Option]:
    """The options of a group, by the names of their fields."""
    found = {}
    for one in dataclasses.fields(group):  # type: ignore[arg-type]  # groups are dataclasses
        declared: Option = one.metadata["option"]
        found[one.name] = dataclasses.replace(
            declared,
            name=one.name,
            type=one.type,
            panel=declared.panel or group.panel,
            saved_as=declared.saved_as or one.name,
            help=declared.help.replace("{legal}", alternatives(legal_words(one.type))),
        )
    return found


def deciding_texts(values: Group, group: type[Group]) -> Iterator[tuple[str, str]]:
    """Options of a group that decide the rounds and differ from their defaults.

    Yields pairs of the name in saved files and the text; one pair for each value of a repeatable
    option.
    """
    for name, one in options_of(group).items():
        value = getattr(values, name)
        if one.belongs_to == "call" or value == one.default:
            continue
        values_of_one = value if one.is_repeatable else [value]
        for each in values_of_one:
            yield one.saved_as, str(each)


def alternatives(words: Collection[str]) -> str:
    """Words as in a sentence: `a, b or c`."""
    *first, last = words or ("",)
    if not first:
        return last
    others = ", ".join(first)
    return f"{others} or {last}"


# Groups -------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Learning(Group):
    """Which learners run, with which parameters."""

    panel = "Learner"

    learner: tuple[str, ...] = option(
        "-l",
        "--learner",
        default=(),
        metavar="NAME",
        names_a="learner",
        belongs_to="model",
        usual=True,
        help="Learner to run; repeat for several, all for every one; FILE.py:CLASS for one of your "
        "own. [default: metron for tables, ahpatron for LIBSVM files]",
    )
    budget: str | None = option(
        "-B",
        "--budget",
        default=None,
        metavar="N",
        belongs_to="model",
        usual=True,
        help="B, the most examples stored; an even number for ahpatron, ahpatron+ and pomdr. "
        "[default: 400]",
    )
    kernel: str = option(
        "--kernel",
        default="gaussian",
        metavar="NAME",
        names_a="kernel",
        belongs_to="model",
        help="Kernel of the learners that have none of their own; `ahpatron learners` lists all.",
    )
    sigma: str | None = option(
        "--sigma",
        default=None,
        metavar="S",
        belongs_to="model",
        usual=True,
        help="σ, width of the kernel, as in exp(-‖u-v‖²/2σ²) of the gaussian; auto: the best of "
        "five widths on the first 1,000 labelled rows (`run --warm-up N` changes this). "
        "[default: 1.0]",
    )
    epsilon: str | None = option(
        "--epsilon",
        default=None,
        metavar="E",
        belongs_to="model",
        help="ε: update if y·f(x) < 1 - ε; between 0 and 1. [default: 0.5; ahpatron+: 0.75]",
    )
    param: tuple[str, ...] = option(
        "-p",
        "--param",
        default=(),
        metavar="NAME=VALUE",
        belongs_to="model",
        usual=True,
        help="Any other parameter, of every chosen learner that has it; LEARNER.NAME=VALUE for "
        "one. `ahpatron learners` lists them.",
    )


@dataclass(frozen=True)
class Guarantees(Group):
    """Theorems and certificates."""

    panel = "Guarantees"

    certify: bool = option(
        "--certify",
        default=False,
        belongs_to="call",
        excludes=("weight", "resume", "checkpoint", "threshold"),
        help="Also show the bound that the learner's theorem guarantees on these data; reads them "
        "again.",
    )
    theorem: str | None = option(
        "--theorem",
        default=None,
        metavar="NAME",
        names_a="theorem",
        belongs_to="model",
        excludes=("weight",),
        help="Set parameters that meet the conditions of a theorem: 1, 2 (perceptron), 3, "
        "corollary-1, corollary-2 (avp), 4, 6 (ahpatron) or forgetron.",
    )


@dataclass(frozen=True)
class Data(Group):
    """How rows are read and prepared before learners see them."""

    panel = "Data"

    demo: bool = option(
        "--demo",
        default=False,
        belongs_to="call",
        help="Run on the sample file that comes with the package.",
    )
    scale: Scale = option(
        "--scale",
        default="none",
        metavar="HOW",
        belongs_to="model",
        usual=True,
        help="none, minmax (features to 0..1), standard (mean 0, deviation 1) or unit (rows to "
        "length 1). minmax and standard are learned from the first 1,000 labelled rows "
        "(`run --warm-up N` changes this).",
    )
    positive: str | None = option(
        "--positive",
        default=None,
        metavar="LABEL",
        belongs_to="model",
        help="Use this label as +1 and every other label as -1.",
    )
    classes: str | None = option(
        "--classes",
        old=["--labels"],
        saved_as="labels",
        default=None,
        metavar="A,B,C",
        belongs_to="model",
        excludes=("positive",),
        help="All labels, for pipes, which cannot be read in advance. Of two, the larger is +1; "
        "more than two are classes.",
    )
    weight: tuple[str, ...] = option(
        "--weight",
        old=["--cost"],
        saved_as="cost",
        default=(),
        metavar="LABEL=W",
        belongs_to="model",
        help="Weight of examples with this label; repeatable; in `sweep`, LABEL=W1,W2 tries "
        "several. [default: 1]",
    )
    limit: int | None = option(
        "--limit",
        default=None,
        metavar="N",
        at_least=1,
        belongs_to="stream",
        help="Take only the first N rows of each file.",
    )
    warm_up: int = option(
        "--warm-up",
        default=1000,
        metavar="N",
        at_least=1,
        belongs_to="model",
        panel=RARE,
        help="Number of labelled rows at the start of each file from which --scale minmax or "
        "standard, --sigma auto and the columns of a table in a pipe are computed before the "
        "first round.",
    )
    layout: Layout = option(
        "--layout",
        default="auto",
        metavar="HOW",
        belongs_to="model",
        panel=RARE,
        help="Store rows dense or sparse; auto: dense if the first 64 rows have at least 10 % "
        "nonzero values and at most 4,096 columns.",
    )
    max_features: int = option(
        "--max-features",
        default=10_000_000,
        belongs_to="call",
        metavar="N",
        at_least=1,
        below=2**31 - 1,
        panel=RARE,
        help="Refuse feature indices above N, and tables with more than N features.",
    )
    allow_new_features: bool = option(
        "--allow-new-features",
        default=False,
        belongs_to="call",
        panel=RARE,
        help="Accept rows with features that the model was not trained on.",
    )


@dataclass(frozen=True)
class Tables(Group):
    """How the columns of a table become labels, ids and features."""

    panel = "Tables"

    label: str | None = option(
        "--label",
        default=None,
        metavar="COLUMN",
        belongs_to="model",
        usual=True,
        help="The column of labels, which every table requires.",
    )
    id: str | None = option(
        "--id",
        default=None,
        metavar="COLUMN",
        belongs_to="stream",
        help="The column that identifies rows; not a feature.",
    )
    drop: tuple[str, ...] = option(
        "--drop",
        default=(),
        metavar="COLUMN",
        belongs_to="model",
        help="Leave out a column (repeatable).",
    )
    category: tuple[str, ...] = option(
        "--category",
        default=(),
        metavar="COLUMN",
        belongs_to="model",
        help="Treat this numeric column as categories, one feature per value (repeatable).",
    )
    missing: Missing = option(
        "--missing",
        default="indicator",
        metavar="HOW",
        belongs_to="model",
        help="Empty cells, NA, null, ? become 0 and an indicator feature (indicator), 0 (zero), "
        "the column's mean (mean), or end the run (refuse).",
    )
    na: tuple[str, ...] = option(
        "--na",
        default=(),
        metavar="TEXT",
        belongs_to="model",
        help="Cells with this text or number are missing, too (repeatable).",
    )
    decimal: DecimalSign | None = option(
        "--decimal",
        default=None,
        metavar="SIGN",
        belongs_to="stream",
        help="The decimal sign of numbers that are written as text, . or ,: the other one "
        "separates thousands. [default: ., without separators]",
    )
    date_format: SlashFormat | None = option(
        "--date-format",
        default=None,
        metavar="FORMAT",
        belongs_to="stream",
        help="How dates with slashes are written, DD/MM/YYYY or MM/DD/YYYY. [default: detected]",
    )

    @property
    def expect_table(self) -> bool:
        """Whether the data must be a table, as --label says, which every table requires."""
        return self.label is not None


@dataclass(frozen=True)
class Order(Group):
    """How often and in which order the rows are run."""

    panel = "Order"

    repeats: int = option(
        "--repeats",
        default=1,
        metavar="R",
        at_least=1,
        belongs_to="stream",
        usual=True,
        help="Number of runs; if R > 1, each on its own random permutation of the rows.",
    )
    shuffle: bool | None = option(
        "--shuffle/--no-shuffle",
        default=None,
        belongs_to="stream",
        help="Permute the rows. [default: only if R > 1]",
    )
    seed: int = option(
        "--seed",
        default=0,
        metavar="S",
        belongs_to="stream",
        help="Seed of all random choices: permutations, learners, samples.",
    )
    jobs: int = option(
        "-j",
        "--jobs",
        default=1,
        belongs_to="call",
        metavar="N",
        at_least=1,
        help="Number of processes; each runs one pass at a time.",
    )

    @property
    def permutes(self) -> bool:
        """Whether the rows are permuted."""
        if self.shuffle is None:
            return self.repeats > 1
        return self.shuffle


@dataclass(frozen=True)
class Models(Group):
    """Models that are saved, continued or written while the run goes on."""

    panel = "Models"

    save: str | None = option(
        "--save",
        default=None,
        belongs_to="call",
        metavar="MODEL",
        usual=True,
        help="Save the learner after the last round to an .npz file.",
    )
    resume: str | None = option(
        "--resume",
        default=None,
        belongs_to="call",
        metavar="MODEL",
        help="Continue learning with a saved model, as if its stream had not ended.",
    )
    checkpoint: str | None = option(
        "--checkpoint",
        default=None,
        belongs_to="call",
        metavar="FILE",
        excludes=("resume", "curve"),
        help="Save the learner to an .npz file at intervals; the same command continues from it.",
    )
    save_every: int | None = option(
        "--save-every",
        old=["--every"],
        default=None,
        belongs_to="call",
        metavar="N",
        at_least=1,
        requires=("checkpoint", "state"),
        help="Number of rounds between two saves; with --state, rounded up to a multiple of 64. "
        "[default: 100,000; with --state 10,048]",
    )


@dataclass(frozen=True)
class Live(Group):
    """What `run -`, or a run on a named pipe, does as a service."""

    panel = "Live streams"

    state: str | None = option(
        "--state",
        default=None,
        belongs_to="call",
        metavar="FILE",
        excludes=("checkpoint", "resume", "curve", "certify"),
        help="State of the service, an .npz file: learner, schema, window and rows that wait "
        "for their labels. Loaded if it exists, saved every --save-every rounds, once a minute, on "
        "signals and at the end.",
    )
    answers: RowFormat | None = option(
        "--answers",
        default=None,
        belongs_to="call",
        metavar="FORMAT",
        help="Answer each line by one line, {legal}: id or line, prediction, score, and what else "
        "is known. [default: none; with --state the format of the input, csv for LIBSVM text]",
    )
    on_fault: OnFault = option(
        "--on-fault",
        default="stop",
        belongs_to="call",
        metavar="HOW",
        help="What to do about a line that cannot be learned: {legal}. stop saves everything and "
        "ends with exit code 65; skip counts it, answers it with an error, and goes on.",
    )
    rejects: str | None = option(
        "--rejects",
        default=None,
        belongs_to="call",
        metavar="FILE.jsonl",
        requires=("on_fault",),
        help="Append each line that is left out, with its place and the reason; `run` leaves lines "
        "out with --on-fault skip only.",
    )
    pending: int = option(
        "--pending",
        default=10_000,
        belongs_to="call",
        metavar="N",
        at_least=1,
        requires=("id", "state"),
        help="Number of rows without a label that are remembered until their label comes; the "
        "oldest are forgotten.",
    )
    log: str | None = option(
        "--log",
        default=None,
        belongs_to="call",
        metavar="FILE.jsonl",
        help="Append events as JSON lines: start, figures, drift, reset, fault, saved, ended; "
        "- for stderr.",
    )
    prometheus: str | None = option(
        "--prometheus",
        default=None,
        belongs_to="call",
        metavar="FILE.prom",
        help="Write the figures in the text format of Prometheus, again and again.",
    )
    max_rate: str | None = option(
        "--max-rate",
        default=None,
        belongs_to="call",
        metavar="R",
        panel="Output",
        help="Exit with code 4 if the mistake rate, with --window that of the last rounds, is "
        "above R at the end; 0.1 is 10 %.",
    )


@dataclass(frozen=True)
class Output(Group):
    """What a run shows and writes."""

    panel = "Output"

    predictions: str | None = option(
        "--predictions",
        default=None,
        belongs_to="call",
        metavar="FILE",
        usual=True,
        help="Write every round's f(x), prediction and label to FILE, .csv or .jsonl; - for stdout "
        "(CSV), and the table to stderr.",
    )
    curve: str | None = option(
        "--curve",
        default=None,
        belongs_to="call",
        metavar="FILE",
        help="Write the learning curve: .csv, .png, .svg or .pdf.",
    )
    metrics: bool = option(
        "--metrics",
        default=False,
        belongs_to="call",
        help="Add precision, recall, F1, balanced error, Cohen's κ, AUC, average precision, log "
        "loss and Brier score; `predict` also shows F1 for several thresholds.",
    )
    window: int | None = option(
        "--window",
        default=None,
        belongs_to="call",
        metavar="N",
        at_least=1,
        below=10_000_001,
        help="Add the mistake rate of the last N rounds, and report when it rises.",
    )
    format: Format = option(
        "--format",
        default="table",
        belongs_to="call",
        metavar="FORMAT",
        usual=True,
        help="What stdout shows: {legal}; --json is --format json.",
    )
    out: str | None = option(
        "--out",
        default=None,
        belongs_to="call",
        metavar="FILE",
        help="Also write the result to a file: .json .jsonl .csv .md .tex .txt.",
    )
    quiet: bool = option(
        "-q",
        "--quiet",
        default=False,
        belongs_to="call",
        help="Only results, warnings and errors: no notes and no progress.",
    )
    verbose: int = option(
        "-v",
        "--verbose",
        default=0,
        belongs_to="call",
        counts=True,
        excludes=("quiet",),
        help="Print more on stderr.",
    )


@dataclass(frozen=True)
class OperatingPoint(Group):
    """Probabilities, and from which probability a row is positive."""

    panel = "Output"

    probability: bool = option(
        "--probability",
        default=False,
        belongs_to="call",
        help="Add the probability of each label to the predictions: columns probability_LABEL; "
        "where labels may still appear, CSV has one column probability, that of the prediction.",
    )
    threshold: str | None = option(
        "--threshold",
        default=None,
        metavar="P",
        belongs_to="stream",
        help="Predict the positive one of two labels if its probability is at least P. "
        "[default: if f(x) >= 0, or as saved with the model]",
    )


@dataclass(frozen=True)
class SweptLearning(Learning):
    """Which learners run, with grids of parameters."""

    param: tuple[str, ...] = option(
        "-p",
        "--param",
        old=["-g", "--grid"],
        default=(),
        metavar="NAME=VALUES",
        belongs_to="model",
        usual=True,
        help="Values to try: 0.5,0.6 or 100:400:100 or log:50:3200:7 or 10^[-3:3]/sqrt(T); of "
        "every chosen learner that has the parameter NAME, LEARNER.NAME=VALUES for one.",
    )


@dataclass(frozen=True)
class ServedLearning(Learning):
    """Which learner runs, with which parameters."""

    learner: tuple[str, ...] = option(
        "-l",
        "--learner",
        default=(),
        metavar="NAME",
        names_a="learner",
        belongs_to="model",
        usual=True,
        help="Learner to run; FILE.py:CLASS for one of your own. [default: metron]",
    )


@dataclass(frozen=True)
class Sweep(Group):
    """How the trials of a sweep are chosen, run and stored."""

    panel = "Sweep"

    results: str | None = option(
        "--out",
        default=None,
        belongs_to="call",
        metavar="FILE.jsonl",
        usual=True,
        help="The results file. Repeating the command continues where it ended.",
    )
    config: str | None = option(
        "--config",
        default=None,
        belongs_to="call",
        metavar="FILE",
        help="Read the sweep from a .toml file; command-line options take precedence.",
    )
    search: SearchName = option(
        "--search",
        default="grid",
        belongs_to="call",
        metavar="HOW",
        help="grid runs all settings; halving runs all on few rounds, and only the best on more.",
    )
    dry_run: bool = option(
        "--dry-run",
        default=False,
        belongs_to="call",
        help="Only count the trials and those left, and estimate their time.",
    )
    shard: str | None = option(
        "--shard",
        default=None,
        belongs_to="call",
        metavar="I/N",
        help="Run only the I-th of N parts, for job arrays; `report --merge` joins the results.",
    )
    scheduler: str | None = option(
        "--scheduler",
        default=None,
        belongs_to="call",
        metavar="ADDRESS",
        excludes=("jobs",),
        panel=RARE,
        help="Run on a Dask cluster, such as tcp://host:8786; its workers read the same paths.",
    )
    wait: int = option(
        "--wait",
        default=120,
        belongs_to="call",
        metavar="SECONDS",
        requires=("scheduler",),
        panel=RARE,
        help="With --scheduler: end the sweep if the cluster has no worker for this long.",
    )
    retries: int = option(
        "--retries",
        default=2,
        belongs_to="call",
        metavar="N",
        panel=RARE,
        help="Repeat a trial whose process died up to N times.",
    )


@dataclass(frozen=True)
class Reporting(Group):
    """How the results of sweeps are compared and shown."""

    panel = "Output"

    best_by: MetricName = option(
        "--best-by",
        old=["--metric"],
        default="mistake_rate",
        belongs_to="call",
        metavar="NAME",
        help="The metric that decides which setting is best: {legal}.",
    )
    tune_repeats: int = option(
        "--tune-repeats",
        old=["--tune-orders"],
        default=0,
        belongs_to="call",
        metavar="K",
        help="Choose settings on the first K permutations; report on the others.",
    )
    matrix: bool = option(
        "--matrix",
        default=False,
        belongs_to="call",
        help="Show only the matrix learners x data sets.",
    )
    trials: bool = option(
        "--trials",
        default=False,
        belongs_to="call",
        excludes=("matrix",),
        help="Show one row per trial, as csv, jsonl or json.",
    )
    html: str | None = option(
        "--html",
        old=["--report"],
        default=None,
        belongs_to="call",
        metavar="FILE",
        usual=True,
        help="Write tables and plots as one self-contained .html page.",
    )
    plot: str | None = option(
        "--plot",
        default=None,
        belongs_to="call",
        metavar="FILE",
        help="Draw mistakes against budget, ε or another parameter, and against time: .png, .svg "
        "or .pdf.",
    )
    x: str | None = option(
        "--x",
        default=None,
        belongs_to="call",
        metavar="NAME",
        help="With --plot or --html: the parameter to draw against.",
    )
    panels: str | None = option(
        "--panels",
        default=None,
        belongs_to="call",
        metavar="NAMES",
        help="With --plot or --html: what to draw, of ranks (critical-difference diagram), "
        "parameter and time, separated by commas; by default all.",
    )


@dataclass(frozen=True)
class Selection(Group):
    """Which results files and trials `report` shows."""

    panel = "Data"

    learner: tuple[str, ...] = option(
        "-l",
        "--learner",
        default=(),
        belongs_to="call",
        metavar="NAME",
        names_a="learner",
        usual=True,
        help="Show only results of this learner; repeat for several.",
    )
    data: tuple[str, ...] = option(
        "--data",
        default=(),
        belongs_to="call",
        metavar="NAME",
        usual=True,
        help="Show only results on this data set; repeat for several.",
    )
    merge: str | None = option(
        "--merge",
        default=None,
        belongs_to="call",
        metavar="FILE.jsonl",
        usual=True,
        help="Merge the results files, such as shards, into one.",
    )


@dataclass(frozen=True)
class Inspection(Group):
    """What `inspect` computes."""

    panel = "Data"

    scale: Scale | None = option(
        "--scale",
        default=None,
        belongs_to="call",
        metavar="HOW",
        usual=True,
        help="Compute distances after this scaling: {legal}. [default: as advised]",
    )
    sigma: str | None = option(
        "--sigma",
        default=None,
        belongs_to="call",
        metavar="S",
        usual=True,
        help="Also compute the kernel alignment A_T of the gaussian kernel of this width.",
    )


@dataclass(frozen=True)
class Explanation(Group):
    """What is shown of a model besides its figures."""

    panel = "Models"

    examples: int | None = option(
        "--examples",
        default=None,
        belongs_to="call",
        metavar="N",
        at_least=1,
        below=10_001,
        help="Show the N stored examples with the largest coefficients, in the columns of the "
        "table.",
    )


@dataclass(frozen=True)
class SavedLearner(Group):
    """The learner of a saved model."""

    panel = "Models"

    learner: str | None = option(
        "-l",
        "--learner",
        default=None,
        belongs_to="call",
        metavar="FILE.py:CLASS",
        names_a="learner",
        help="The model's learner, if it is defined in a file of your own.",
    )


@dataclass(frozen=True)
class Prediction(Group):
    """What `predict` writes."""

    panel = "Output"

    out: str | None = option(
        "--out",
        default=None,
        belongs_to="call",
        metavar="FILE",
        usual=True,
        help="Write to FILE; .csv or .jsonl decides the format. [default: to stdout]",
    )
    format: PredictionFormat = option(
        "--format",
        default="csv",
        belongs_to="call",
        metavar="FORMAT",
        usual=True,
        help="What stdout shows: the rows as csv or jsonl, or only the figures of --metrics as "
        "table or json.",
    )


@dataclass(frozen=True)
class Document(Group):
    """How a description is shown, by `inspect` and `learners`."""

    panel = "Output"

    format: DocumentFormat = option(
        "--format",
        default="table",
        belongs_to="call",
        metavar="FORMAT",
        usual=True,
        help="What stdout shows: {legal}; --json is --format json.",
    )


@dataclass(frozen=True)
class References(Group):
    """The publications of learners."""

    panel = "Output"

    bibtex: bool = option(
        "--bibtex",
        default=False,
        belongs_to="call",
        usual=True,
        help="Show the publications of these learners as BibTeX entries.",
    )


@dataclass(frozen=True)
class Conversion(Group):
    """What `convert` writes."""

    panel = "Output"

    out: str | None = option(
        "--out",
        default=None,
        belongs_to="call",
        metavar="FILE",
        usual=True,
        help="Write LIBSVM text to FILE. [default: to stdout]",
    )


# Settings of commands -----------------------------------------------------------------------------


class Only:
    """Mark of a part of a group: these options."""

    def __init__(self, *names: str) -> None:
        self.names = names


class Without:
    """Mark of a part of a group: all options but these."""

    def __init__(self, *names: str) -> None:
        self.names = names


@dataclass(frozen=True, eq=False)
class Settings:
    """Base class of the settings of a command: fields are groups."""

    given: Given = frozenset()


@dataclass(frozen=True, eq=False)
class Part:
    """A group of which a command takes these options."""

    group: type[Group]
    options: dict[str, Option]


def parts_of(settings: type[Settings]) -> dict[str, Part]:
    """The groups that a command takes, by the names of their fields."""
    return {
        one.name: _part(one.type) for one in dataclasses.fields(settings) if one.name != "given"
    }


def _part(kind: Any) -> Part:
    """The part of a group that its type, which may be annotated, describes."""
    group: type[Group] = kind
    options = {}
    mark = None
    if get_origin(kind) is Annotated:
        group, mark = get_args(kind)
    for name, one in options_of(group).items():
        is_left_out = isinstance(mark, Without) and name in mark.names
        is_chosen = not isinstance(mark, Only) or name in mark.names
        if is_chosen and not is_left_out:
            options[name] = one
    return Part(group, options)


def all_options(settings: type[Settings]) -> dict[str, Option]:
    """All options that a command takes, by the names of their fields."""
    found = {}
    for part in parts_of(settings).values():
        found.update(part.options)
    return found


@dataclass(frozen=True, eq=False)
class RunSettings(Settings):
    """Settings of `run`."""

    learning: Learning = Learning()
    data: Data = Data()
    tables: Tables = Tables()
    order: Order = Order()
    guarantees: Guarantees = Guarantees()
    models: Models = Models()
    output: Output = Output()
    operating_point: OperatingPoint = OperatingPoint()
    live: Live = Live()


@dataclass(frozen=True)
class Server(Group):
    """Where `serve` listens, and to whom it answers."""

    panel = "Server"

    host: str = option(
        "--host",
        default="127.0.0.1",
        belongs_to="call",
        metavar="ADDRESS",
        usual=True,
        help="Address to listen on; any but this machine's own requires a token.",
    )
    port: int = option(
        "--port",
        default=8000,
        belongs_to="call",
        metavar="N",
        usual=True,
        below=65_536,
        help="Port to listen on; 0 for any that is free.",
    )
    token_file: str | None = option(
        "--token-file",
        default=None,
        belongs_to="call",
        metavar="FILE",
        help="File with the token that clients must send as `Authorization: Bearer TOKEN`; "
        "without it the environment variable AHPATRON_TOKEN is used, if there is one.",
    )
    allow_origin: tuple[str, ...] = option(
        "--allow-origin",
        default=(),
        belongs_to="call",
        metavar="ORIGIN",
        help="Let pages of this origin (https://example.org) call the server; repeatable.",
    )


@dataclass(frozen=True, eq=False)
class ServeSettings(Settings):
    """Settings of `serve`."""

    learning: ServedLearning = ServedLearning()
    data: Annotated[Data, Only("positive", "classes", "weight", "scale", "warm_up")] = Data()
    tables: Tables = Tables()
    live: Annotated[Live, Without("answers", "on_fault", "max_rate")] = Live()
    models: Annotated[Models, Only("save_every")] = Models()
    operating_point: OperatingPoint = OperatingPoint()
    server: Server = Server()
    output: Annotated[Output, Only("window", "quiet", "verbose")] = Output()


@dataclass(frozen=True, eq=False)
class SweepSettings(Settings):
    """Settings of `sweep`."""

    learning: SweptLearning = SweptLearning()
    data: Annotated[Data, Without("demo", "classes", "warm_up", "allow_new_features")] = Data()
    tables: Tables = Tables()
    order: Order = Order()
    sweep: Sweep = Sweep()
    reporting: Annotated[Reporting, Without("trials")] = Reporting()
    output: Annotated[Output, Only("format", "quiet", "verbose")] = Output()


@dataclass(frozen=True, eq=False)
class ReportSettings(Settings):
    """Settings of `report`."""

    selection: Selection = Selection()
    reporting: Reporting = Reporting()
    output: Annotated[Output, Only("format", "out", "quiet")] = Output()


@dataclass(frozen=True, eq=False)
class InspectSettings(Settings):
    """Settings of `inspect`."""

    inspection: Inspection = Inspection()
    data: Annotated[Data, Only("positive", "max_features")] = Data()
    tables: Tables = Tables()
    order: Annotated[Order, Only("seed")] = Order()
    saved: SavedLearner = SavedLearner()
    explanation: Explanation = Explanation()
    document: Document = Document()
    output: Annotated[Output, Only("quiet")] = Output()


@dataclass(frozen=True, eq=False)
class PredictSettings(Settings):
    """Settings of `predict`."""

    tables: Annotated[Tables, Only("id", "decimal", "date_format")] = Tables()
    data: Annotated[Data, Only("max_features", "allow_new_features")] = Data()
    saved: SavedLearner = SavedLearner()
    prediction: Prediction = Prediction()
    operating_point: OperatingPoint = OperatingPoint()
    output: Annotated[Output, Only("metrics", "quiet")] = Output()


@dataclass(frozen=True, eq=False)
class ConvertSettings(Settings):
    """Settings of `convert`."""

    tables: Tables = Tables()
    data: Annotated[Data, Only("positive")] = Data()
    conversion: Conversion = Conversion()
    output: Annotated[Output, Only("quiet")] = Output()


@dataclass(frozen=True, eq=False)
class LearnersSettings(Settings):
    """Settings of `learners`."""

    references: References = References()
    document: Document = Document()


def old_names(commands: Iterable[type[Settings]]) -> frozenset[str]:
    """Earlier spellings of the options of these commands, which work but are not shown."""
    found = set[str]()
    for settings in commands:
        for option in all_options(settings).values():
            found.update(option.old_names)
    return frozenset(found)
