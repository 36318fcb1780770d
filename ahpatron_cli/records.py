"""Records of runs: immutable structs that are rendered and stored.

Field names are the public interface of `--format json`; they change only with `DOCUMENT_VERSION`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Meta, Struct, field, structs, to_builtins

from ahpatron_cli.settings import Data

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ahpatron_cli.core.certificates import Certificate

DOCUMENT_VERSION = 1

Json: TypeAlias = dict[str, Any]
ParamValue: TypeAlias = int | float | str
Statistic: TypeAlias = int | float | str | None
"""A statistic of a learner of the user's own; None if it is not a number."""
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Number: TypeAlias = int | float
"""A label or weight: an int if it is integral, as it is shown and stored."""
T = TypeVar("T")


class DataRecord(Struct, frozen=True):
    """The data set of a run; `sha256` is the hash of the file, with --limit that of the rows."""

    path: str
    rounds: Count
    features: Count
    labels: tuple[Number | None, ...]
    """The labels encoded as -1 (None: all others) and +1; or those of three or more classes."""
    sha256: str | None
    label_names: tuple[str, ...] | None = None
    """Names of `labels` in a table, in the same order; None for LIBSVM text."""


class TrialData(DataRecord, frozen=True):
    """The data file of a trial, and how it was prepared."""

    limit: Count | None = Data.limit
    scale: str = Data.scale
    positive: Number | None = None
    shuffled: bool = True
    prefix: Count | None = None
    """Number of rounds of each permutation that were run (successive halving); None: all."""
    weights: tuple[tuple[Number | str, Number], ...] = field(default=(), name="costs")
    """Pairs of label and weight of its examples (--weight), by label; others have weight 1."""
    table: tuple[tuple[str, str], ...] = ()
    """Options for the columns of a table, as pairs of name and text."""
    max_features: Count = Data.max_features
    layout: str = Data.layout
    others: tuple[tuple[str, str], ...] = ()
    """Any other option of the data that decides the rounds, as pairs of name and text."""

    @property
    def identity(self) -> tuple[Any, ...]:
        """Key that is equal for trials on the same data set, whatever the file name is."""
        file = self.sha256 or self.path
        return (
            file,
            self.limit,
            self.scale,
            self.positive,
            self.shuffled,
            self.weights,
            tuple(sorted(self.table)),
            *sorted(self.others),
        )

    @property
    def options(self) -> list[tuple[str, str]]:
        """The options that make another data set of a file, as pairs of name and value."""
        weights = []
        for label, weight in self.weights:
            text = f"{label}={weight}"
            weights.append(("cost", text))
        chosen = self._given("limit", "scale", "positive")
        return [*self.table, *chosen, *self.others, *weights]

    @property
    def all_options(self) -> list[tuple[str, str]]:
        """All command-line options that prepare the data, as pairs of name and value."""
        return [*self.options, *self._given("max_features", "layout")]

    def _given(self, *names: str) -> Iterator[tuple[str, str]]:
        """The named fields that differ from their defaults."""
        for one in structs.fields(TrialData):
            value = getattr(self, one.name)
            if one.name in names and value != one.default:
                yield one.name, str(value)


class ThisFile(Struct, frozen=True):
    """Counts of a resumed run on this file only."""

    rounds: Count
    mistakes: Count
    mistake_rate: float


class Metrics(Struct, frozen=True):
    """Metrics of `--metrics`; null if undefined, such as precision without a predicted +1.

    With more than two classes, precision, recall, F1 and AUC (one against the rest) are means over
    the classes (macro averages).
    """

    precision: float | None
    recall: float | None
    f1: float | None
    balanced_error: float | None
    """Mean of the mistake rates of the classes."""
    kappa: float | None
    """Cohen's κ."""
    auc: float | None
    """Area under the ROC curve of f(x) before each update; null after `--resume`, and for more than
    8 million scores."""
    log_loss: float | None = None
    """Mean of -log P(y), with probabilities fitted to earlier rounds; null if not known."""
    average_precision: float | None = None
    """Mean precision over the positive examples, each with all that f ranks at least as high; null
    where AUC is null, except without negative examples, and in results files of earlier versions.
    """
    brier: float | None = None
    """Mean of (P(+1) - [y = +1])², with the same probabilities as the log loss; with more classes
    the sum over the classes."""


class Window(Struct, frozen=True):
    """The mistake rate of the last `rounds` rounds of this run."""

    rounds: Count
    mistake_rate: float


class RunRecord(Struct, frozen=True, kw_only=True):
    """Record of one pass of one learner: the fields of a run in JSON, in order.

    After `--resume`, counts are those of the whole stream since its first round. Fields with a
    default are missing in results files of earlier versions.
    """

    learner: str
    params: Mapping[str, ParamValue]
    seed: Count
    repeat: Count
    rounds: Count
    mistakes: Count
    mistake_rate: float
    margin_updates: Count
    updates: Count
    halvings: Count | None = None
    zeta: float | None
    """ζ of Theorem 6; null for learners without halvings, like `halvings`."""
    support_size: Count | None
    """|S|; with one learner per class the largest, and updates, halvings and restarts are sums."""
    norm: float | None
    near_ties: Count
    seconds: float
    true_positives: Count | None = None
    """Rounds by true and predicted label, if there are two; null for more classes."""
    false_positives: Count | None = None
    true_negatives: Count | None = None
    false_negatives: Count | None = None
    baseline_mistakes: Count | None = None
    """Mistakes of always predicting the most frequent label so far."""
    unlabelled: int = 0
    """Number of rows without a label, which were only predicted."""
    ended_by: str | None = None
    """The signal that ended the stream, such as SIGTERM."""
    this_file: ThisFile | None = None
    """Counts on this file only; only after `--resume`."""
    restarts: Count | None = None
    """Number of resets; null for learners that never reset."""
    metric_changes: Count | None = None
    """Number of changes of metron's metric; null for other learners, like the next field."""
    effective_features: float | None = None
    """Effective number of features: exp of the entropy of their relevances."""
    alarms: Count | None = None
    """Number of alarms of metron's tracker, also counted as restarts; null for other learners, like
    the next field. With one learner per class, a sum."""
    tracker_share: float | None = None
    """Share of the rounds in which the tracker had more than half of the weight; with one learner
    per class, the mean."""
    metrics: Metrics | None = None
    """Only with `--metrics`."""
    threshold: float | None = None
    """The probability from which +1 was predicted; only with `--threshold`."""
    classes: tuple[Number, ...] | None = None
    """Labels of all classes, if there are more than two, or more may appear."""
    by_class: tuple[tuple[Count, ...], ...] | None = field(default=None, name="confusion")
    """Rounds by true class (rows) and predicted class (columns), if there are more than two."""
    window: Window | None = None
    """Recent mistake rate; only with `--window`."""
    weights: tuple[float, ...] | None = field(default=None, name="costs")
    """Weights of examples, in the order of the labels of the data; only with `--weight`."""
    drifts: tuple[int, ...] | None = None
    """Rounds in which a rise of the mistake rate was detected; only with `--window`."""
    faults: Count | None = None
    """Lines of a live stream that were left out; only of a live stream, like the next fields."""
    late_labels: Count | None = None
    """Labels that came after their rows, and were learned."""
    pending: Count | None = None
    """Rows that wait for their labels."""
    forgotten: Count | None = None
    """Rows that were forgotten before their labels came."""
    unmatched: Count | None = None
    """Labels for which no row was waiting."""
    statistics: Mapping[str, Statistic] | None = None
    """Other statistics that a learner of the user's own reports, by name."""

    @property
    def exact_rate(self) -> Fraction:
        """Mistakes per round as an exact fraction."""
        return Fraction(self.mistakes, max(self.rounds, 1))

    @property
    def confusion(self) -> tuple[tuple[int, ...], ...] | None:
        """Confusion matrix of any number of classes, -1 before +1; None if it was not stored."""
        if self.by_class:
            return self.by_class
        cells = tuple(getattr(self, name) for name in CELLS)
        if None in cells:
            return None
        return cells[:2], cells[2:]


CELLS = ("true_negatives", "false_positives", "false_negatives", "true_positives")
"""Fields of the confusion matrix of two classes, row by row."""
OPTIONAL = (
    "metric_changes",
    "effective_features",
    "alarms",
    "tracker_share",
    "metrics",
    "threshold",
    "classes",
    "confusion",
    "window",
    "costs",
    "drifts",
    "faults",
    "late_labels",
    "pending",
    "forgotten",
    "unmatched",
    "statistics",
)
"""Fields of a run that are omitted from JSON if they are null."""


class Edition(NamedTuple):
    """The code that ran a learner; results of different editions are never averaged."""

    source: str | None = None
    """Origin of the learner's class, with its hash or version; None if it is built in."""
    algorithm: int | None = None
    """`ALGORITHM` of the program; None if it is not known."""
    version: str | None = None
    """Version of the program, only if `algorithm` is not known."""

    @property
    def short_source(self) -> str:
        """The origin as text, with six digits of a hash."""
        origin = self.source or "built-in"
        kind, _, digest = origin.partition("sha256:")
        if not digest:
            return kind
        return f"source {digest[:6]}"

    @property
    def program(self) -> str:
        """The algorithms as text."""
        if self.algorithm is None:
            return f"version {self.version or 'not known'}"
        return f"algorithm {self.algorithm}"


class Outcome(Struct, frozen=True):
    """Result of a trial: its record, or the error."""

    id: str
    data: TrialData
    learner: str
    params: Mapping[str, ParamValue]
    seed: Count
    repeat: Count
    run: RunRecord | None
    """Record of the run; None if the trial failed."""
    error: str | None = None
    texts: Mapping[str, str] = {}
    """Texts of parameters that depend on the data, as in the grid: `10^0/√T`, `auto`."""
    wall_seconds: float = 0.0
    """Wall time including reading and permuting; `run.seconds` is learning time only."""
    algorithm: int | None = None
    """`ALGORITHM` of the program that ran it; None if it was not recorded."""
    source: str | None = None
    """Origin of the learner's class, with its hash or version; None if it is built in."""
    version: str | None = None
    """Version of the program that ran it."""
    header: Count = 0
    """Number of its header in the results file; 0: it is not stored."""
    machine: str | None = None
    """Host and processor that ran it; None if it was not recorded, as up to version 1.0."""

    @property
    def edition(self) -> Edition:
        """The code that ran it."""
        version = self.version if self.algorithm is None else None
        return Edition(self.source, self.algorithm, version)

    @property
    def key(self) -> tuple[Any, ...]:
        """Key that is equal for trials of the same setting and edition."""
        return *self.edition, *setting_key(self)


class LearnerMeans(Struct, frozen=True, omit_defaults=True):
    """Summary of a learner over its repeats, with sample standard deviations (n - 1)."""

    learner: str
    params: Mapping[str, ParamValue]
    repeats: int
    mistake_rate_mean: float
    mistake_rate_sd: float | None
    margin_updates_mean: float
    support_size_mean: float | None
    seconds_mean: float
    statistics_mean: Mapping[str, float] | None = None
    """Means of the numbers in `RunRecord.statistics`; only if there are any."""


@dataclass(frozen=True, eq=False)
class Curve:
    """Learning curve of a learner for `--curve`: thinned out, and averaged over repeats."""

    label: str
    rounds: NDArray[np.int64]
    """Rounds t of the points of the curve, from 1, increasing."""
    mistakes: NDArray[np.float64]
    """|M_t|, the mistakes up to and including round t; the mean over repeats."""
    recent_rate: NDArray[np.float64] | None = None
    """Mistake rate of the last rounds; only with `--window`."""
    sd: NDArray[np.float64] | None = None
    """Standard deviation of |M_t| over the repeats."""
    baseline: float | None = None
    """Mistake rate of always predicting the most frequent label so far, after all rounds."""
    about: str = ""
    """Text on the file and the parameters that all learners share."""

    @property
    def mistake_rate(self) -> NDArray[np.float64]:
        """Cumulative mistake rate |M_t|/t at each point."""
        return self.mistakes / self.rounds


@dataclass(frozen=True)
class RunDocument:
    """All runs on one data set, as printed by `ahpatron run DATA`."""

    version: str
    data: DataRecord
    runs: Sequence[RunRecord]
    load_seconds: float
    shuffled: bool = True
    """Whether repeats are random permutations (else file order)."""
    certified: Sequence[Certificate | tuple[str, ...]] | None = None
    """Certificate of each run, or the reasons why it has none; only with `--certify`."""

    def by_learner(self) -> list[list[RunRecord]]:
        """Runs grouped by learner and parameters, in order of first appearance."""
        return grouped(self.runs, setting_key)

    def means(self) -> list[LearnerMeans]:
        """Mean and standard deviation of each learner over its repeats."""
        return [means_of(runs) for runs in self.by_learner()]


class HasParams(Protocol):
    """A record of a learner and its parameters."""

    @property
    def learner(self) -> str:
        """Its name."""

    @property
    def params(self) -> Mapping[str, ParamValue]:
        """Its parameters and those of the kernel, by name."""


def setting_key(record: HasParams) -> tuple[Any, ...]:
    """Key that is equal for runs, outcomes and settings with equal learner and parameters."""
    return record.learner, *sorted(record.params.items())


def grouped(items: Iterable[T], key: Callable[[T], tuple[Any, ...]]) -> list[list[T]]:
    """Items grouped by key, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[T]] = {}
    for item in items:
        group = groups.setdefault(key(item), [])
        group.append(item)
    return list(groups.values())


def mean_sd(values: Sequence[Fraction]) -> tuple[float, float | None]:
    """Mean and sample standard deviation; the latter is None for a single value.

    The mean is rounded once, so equal totals of counts have equal means.
    """
    sd = None
    if len(values) > 1:
        sd = stdev(map(float, values))
    mean = sum(values) / len(values)
    return float(mean), sd


def means_of(runs: Sequence[RunRecord]) -> LearnerMeans:
    """Summarise the repeats of one learner."""
    sizes = [run.support_size for run in runs if run.support_size is not None]
    mean_size = None
    if sizes:
        mean_size = fmean(sizes)
    rates = [run.exact_rate for run in runs]
    mean, sd = mean_sd(rates)
    return LearnerMeans(
        learner=runs[0].learner,
        params=runs[0].params,
        repeats=len(runs),
        mistake_rate_mean=mean,
        mistake_rate_sd=sd,
        margin_updates_mean=fmean(run.margin_updates for run in runs),
        support_size_mean=mean_size,
        seconds_mean=fmean(run.seconds for run in runs),
        statistics_mean=_statistics_mean(runs),
    )


def _statistics_mean(runs: Sequence[RunRecord]) -> dict[str, float] | None:
    """The mean of each statistic that is a number; None if there is none."""
    known: dict[str, list[float]] = {}
    for run in runs:
        statistics = run.statistics or {}
        for name, value in statistics.items():
            if isinstance(value, int | float):
                values = known.setdefault(name, [])
                values.append(value)
    means = {name: fmean(values) for name, values in known.items()}
    return means or None


def to_json(document: RunDocument) -> Json:
    """The document of `--format json`: plain values only."""
    return {
        "schema": DOCUMENT_VERSION,
        "version": document.version,
        "data": to_builtins(document.data),
        "runs": runs_to_json(document),
        "summary": [with_params(line) for line in document.means()],
        "load_seconds": document.load_seconds,
    }


def runs_to_json(document: RunDocument) -> list[Json]:
    """The element `runs` of the JSON document; certificates only with `--certify`."""
    runs = [run_to_json(run) for run in document.runs]
    for run, certified in zip(runs, document.certified or (), strict=False):
        if isinstance(certified, tuple):
            run["certificate"] = None
            run["uncertified"] = list(certified)
        else:
            run["certificate"] = _certificate_to_json(certified)
            run["uncertified"] = []
    return runs


def _certificate_to_json(certificate: Certificate) -> Json:
    """A certificate as JSON; each term also has its product."""
    terms = []
    for term in certificate.terms:
        entry = term._asdict()
        entry["product"] = term.product
        terms.append(entry)
    return {**vars(certificate), "terms": terms}


def run_to_json(run: RunRecord) -> Json:
    """One element of `runs` of the JSON document."""
    return without_nulls(with_params(run))


def without_nulls(run: Json) -> Json:
    """The fields of a run without optional ones that are null."""
    left = Json()
    for name, value in run.items():
        if value is not None or name not in OPTIONAL:
            left[name] = value
    return left


def with_params(record: Struct) -> Json:
    """All fields of a record with JSON values for parameters.

    Kernel and σ are null for a learner with a kernel of its own.
    """
    from ahpatron_cli.core import REGISTRY

    fields: Json = to_builtins(record)
    learner = fields["learner"]
    params: Json = {}
    if learner in REGISTRY:
        kind = REGISTRY[learner]
        if kind.own_kernel:
            params = {"kernel": None, "sigma": None}
    params |= plain_params(fields["params"])
    return fields | {"params": params}


def plain_params(params: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Parameters that JSON can hold: an infinite one becomes the text "inf"."""
    plain = dict(params)
    for name, value in params.items():
        if value in (math.inf, -math.inf):
            plain[name] = str(value)
    return plain
