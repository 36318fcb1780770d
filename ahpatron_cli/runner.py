"""From settings to records: builds learners, plays passes, counts and times them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.core import KERNELS, Kernel, Learner, Player
from ahpatron_cli.core.errors import LimitReachedError, NumericalError, ParameterError
from ahpatron_cli.core.learners import find_learner
from ahpatron_cli.core.numerics import NEAR_TIE
from ahpatron_cli.core.rows import Floats, Integers, Rows
from ahpatron_cli.core.state import State
from ahpatron_cli.core.tally import Tally, mistaken, predicted
from ahpatron_cli.data.compact import CompactRows
from ahpatron_cli.data.dataset import Batch, Dataset, Preparation
from ahpatron_cli.errors import ExitCode, UserError, bad_data, usage
from ahpatron_cli.metrics import Ranking, RecentMistakes, metrics_of
from ahpatron_cli.pool import Died, run_all
from ahpatron_cli.records import ParamValue, RunRecord, ThisFile

CURVE_POINTS = 2000
SUSPICIOUS_TIES = 0.2
MOST_RELEVANT = 10
"""Features that `inspect` lists of a model with a metric."""
RETRIES = 2
"""How often a pass is run again after its process died."""

LISTING = "`ahpatron learners` lists all learners and their parameters"
SCALE_HINT = (
    "bring the features to a common size with `--scale standard`, or choose a larger `--sigma`"
)
NUMERICAL_HINTS = {
    "norm": "choose another `-p step=` or `-p radius=`",
    "width": "such rows can be used if the first rows are sparse; bsgd: `-p maintenance=remove`",
}
AUTO = "auto"
"""In place of σ: to be chosen from the first rows of each file."""


@dataclass(frozen=True)
class LearnerSpec:
    """A learner and a kernel, each with the parameters that were asked for."""

    learner: str
    learner_params: Mapping[str, ParamValue]
    kernel: str | None
    """None: the learner has its own."""
    kernel_params: Mapping[str, ParamValue]
    source: str | None = None
    """`/path/to/file.py:ClassName` of a learner that no registry knows."""

    @property
    def kind(self) -> type[Learner]:
        """The learner's class."""
        return find_learner(self.source or self.learner)

    @property
    def auto_sigma(self) -> bool:
        """Whether σ is still to be chosen."""
        return self.kernel_params.get("sigma") == AUTO

    def with_sigma(self, sigma: float) -> LearnerSpec:
        """The same with σ chosen, if it was to be."""
        if not self.auto_sigma:
            return self
        return replace(self, kernel_params={**self.kernel_params, "sigma": sigma})

    def build(self) -> tuple[Learner, Kernel]:
        """Fresh objects for one pass; a ParameterError names what is out of range.

        While σ is still to be chosen, the kernel has its default: enough to check the rest.
        """
        learner = self.kind(**self.learner_params)
        if self.kernel is None:
            assert learner.own_kernel is not None
            return learner, learner.own_kernel
        chosen = {name: value for name, value in self.kernel_params.items() if value != AUTO}
        return learner, KERNELS[self.kernel](**chosen)


def params_of(learner: Learner, kernel: Kernel) -> dict[str, ParamValue]:
    """All parameters by name, those of the kernel first, unless it is the learner's own."""
    chosen = {} if learner.own_kernel else {"kernel": kernel.name, **kernel.params()}
    return chosen | learner.params()


def check(setup: LearnerSpec) -> None:
    """Build it once, to see whether its parameters go together."""
    try:
        setup.build()
    except ParameterError as error:
        raise usage(f"{setup.learner}: {error}", LISTING) from None


def suggested_sigma(setup: LearnerSpec, path: str, rows: Rows, labels: Floats) -> tuple[float, str]:
    """The σ that these rows suggest (--sigma auto), and a note on it."""
    from ahpatron_cli.data.geometry import MOST_TRIED_ROWS, auto_sigma

    assert setup.kernel is not None
    found = auto_sigma(rows, labels, setup.kernel)
    if isinstance(found, str):
        problem = f"--sigma auto cannot choose: {found}"
        raise bad_data(problem, path, hint="give a number: --sigma S")
    rounds = f"{min(len(labels), MOST_TRIED_ROWS):,} rows"
    return found, f"σ = {found:g}, the best of several widths on the first {rounds} (--sigma auto)"


def _count(statistic: float | None) -> int | None:
    """A count as JSON has it, though a learner of one's own may report it as another number."""
    return None if statistic is None else int(statistic)


def generator_seed(seed: int, repeat: int, learner: str) -> tuple[int, ...]:
    """The seed of a learner's random generator in one pass; each learner has its own."""
    return seed, repeat, zlib.crc32(learner.encode())


@dataclass(frozen=True)
class BatchResult:
    """Rounds that one pass has just played: what observers are told."""

    learner: str
    repeat: int
    first: int
    """The number of the first of them, from 1."""
    labels: Floats
    """-1 and +1, or numbers of classes; NaN for rows without a label, which are no rounds."""
    lines: Integers
    scores: Floats
    """f(x) of each row, as it was when it was predicted; a column per class if there are more
    than two."""
    mistaken: NDArray[np.bool_]
    """Of each round."""
    classes: tuple[float, ...] | None = None
    """The labels of all classes, if there are more than two."""
    recent_rate: float | None = None
    """The mistake rate of the last rounds, if it is asked for."""
    drifts: tuple[int, ...] = ()
    """Those of the rounds in which the mistake rate was found to have risen."""
    ids: NDArray[np.object_] | None = None
    """What identifies each row, if a column of a table does."""


def mistakes_of(scores: Floats, labels: Floats) -> NDArray[np.bool_]:
    """Which rounds were mistakes; labels as in `BatchResult`."""
    if scores.ndim > 1:
        return np.asarray(predicted(scores) != labels)
    return np.asarray(mistaken(labels, scores * labels))


Observer: TypeAlias = Callable[[BatchResult], None]
"""Told of every batch that a pass has played: progress, predictions, checkpoints."""


@dataclass(frozen=True)
class RunResult:
    """One pass: its record, and what only some callers ask for."""

    record: RunRecord
    curve: tuple[Integers, Integers, Floats | None]
    """Rounds, the mistakes up to each of them, and the recent rate if asked for; thinned."""
    seconds: float
    """Learning time of this pass alone; that of the record includes earlier files."""
    warnings: tuple[str, ...]
    counts: Mapping[str, Any]
    """The tally and the statistics of the learner, which theorems speak of."""


class Run:
    """One learner on its way through one file."""

    def __init__(
        self,
        setup: LearnerSpec,
        path: str,
        seed: int,
        repeat: int,
        horizon: int | None,
        *,
        classes: tuple[float, ...] | None = None,
        costs: tuple[float, ...] | None = None,
        state: State | None = None,
        same_file: bool = False,
    ) -> None:
        """`horizon` is the number of rounds, if it is known beforehand.

        `classes` are the labels of all classes, if there are more than two; `costs` those of
        examples, in the order of the labels.

        With `state`, that of an earlier pass, this one continues it, perhaps in the `same_file`.
        """
        assert not setup.auto_sigma, "σ is chosen before the first round"
        self.setup = setup
        self.seed = seed
        self.repeat = repeat
        self._path = path
        self._classes = classes
        self._player = Player(
            *setup.build(),
            classes=len(classes or (-1, 1)),
            seed=generator_seed(seed, repeat, setup.learner),
            horizon=horizon,
        )
        self.costs = costs
        if costs is not None and not self._player.learner.takes_costs:
            raise ParameterError(f"{setup.learner} cannot weigh examples", "costs")
        if state is not None:
            self._player.load_state_dict(state)
        self._resumed = state is not None and not same_file
        self._before = replace(self._player.tally)
        self._curve = _CurvePoints(self.rounds, self.mistakes)
        self._recent: RecentMistakes | None = None
        self._measured = False
        self._ranking: Ranking | None = None

    @property
    def mistakes(self) -> int:
        """Mistakes so far."""
        return self._player.tally.mistakes

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return self._player.tally.rounds

    def measure(self, repetition: RunOptions) -> None:
        """Compute from here on what is asked for beyond the mistakes: metrics, the recent rate.

        The scores of rounds before a model was saved are not known, so AUC is not either.
        """
        if repetition.window:
            self._recent = RecentMistakes(self.rounds, repetition.window)
        self._measured = repetition.metrics
        if self._measured and not self._before.rounds:
            self._ranking = Ranking(None) if repetition.exact_auc else Ranking()

    def feed(self, batch: Batch) -> BatchResult:
        """Predict and learn from a batch; rows without a label are predicted only."""
        first = self.rounds + 1
        parts = [
            self._learn(part) if labelled else self.score(part) for labelled, part in batch.runs()
        ]
        scores = parts[0] if len(parts) == 1 else np.concatenate(parts)
        labelled = ~np.isnan(batch.labels)
        mistaken = mistakes_of(scores[labelled], batch.labels[labelled])
        recent = self._recent
        if len(mistaken):
            self._curve.extend(mistaken, recent.extend(mistaken) if recent else None)
        if self._ranking is not None:
            self._ranking.add(scores[labelled], batch.labels[labelled])
        return BatchResult(
            self.setup.learner,
            self.repeat,
            first,
            batch.labels,
            batch.lines,
            scores,
            mistaken,
            self._classes,
            recent.rate if recent else None,
            tuple(one for one in recent.drifts if one >= first) if recent else (),
            batch.ids,
        )

    def _learn(self, batch: Batch) -> Floats:
        """f(x) of rows with labels, learned and counted."""
        first = self.rounds + 1
        try:
            return self._feed(batch)
        except NumericalError as error:
            raise self._not_computed(f"round {first + error.row}", batch, error) from None
        except LimitReachedError as error:
            problem = f"{self.setup.learner}: {error}"
            hint = "allow more with `-p max_support=N`, or demand less with a larger tolerance"
            raise UserError(problem, code=ExitCode.BAD_DATA, hint=hint) from None

    def _feed(self, batch: Batch) -> Floats:
        player, labels = self._player, batch.labels
        if self.costs is None:
            return player.feed(batch.rows, labels)
        numbers = labels.astype(int) if self._classes else (labels > 0).astype(int)
        return player.feed(batch.rows, labels, np.array(self.costs)[numbers])

    def new_tally(self) -> Tally:
        """Counts of no rounds, for what is only scored."""
        return Tally.of(self._player.classes)

    def score(self, batch: Batch) -> Floats:
        """f, as it is now, at the rows of a batch: nothing is learned and nothing is counted."""
        try:
            return self._player.scores(batch.rows)
        except NumericalError as error:
            raise self._not_computed("f(x)", batch, error) from None

    def probabilities(self, scores: Floats) -> Floats:
        """Probability of each label for rows with these f(x), of shape (n, number of labels)."""
        return self._player.calibration.probabilities(scores)

    def _not_computed(self, what: str, batch: Batch, error: NumericalError) -> UserError:
        problem, line = f"{what} cannot be computed: {error}", int(batch.lines[error.row])
        return bad_data(problem, self._path, line, NUMERICAL_HINTS.get(error.kind, SCALE_HINT))

    def state(self) -> State:
        """What another pass can continue from."""
        return self._player.state_dict()

    def params(self) -> tuple[dict[str, ParamValue], dict[str, ParamValue]]:
        """The parameters in force, of the learner and of the kernel."""
        return self._player.learner.params(), self._player.kernel.params()

    def relevance(self) -> list[tuple[int, float]]:
        """The features with the largest relevance, if the learner has a metric; the mean of all
        metrics with one learner per class."""
        from ahpatron_cli.core.learners.metron import most_relevant

        return most_relevant([loop.f for loop in self._player.loops], MOST_RELEVANT)

    def result(self) -> RunResult:
        """What came out."""
        player, tally, before = self._player, self._player.tally, self._before
        found: dict[str, Any] = player.statistics()
        confusion = tuple(map(tuple, tally.confusion.tolist()))
        by_class: dict[str, Any] = {"classes": self._classes, "confusion": confusion}
        if self._classes is None:
            names = "true_negatives", "false_positives", "false_negatives", "true_positives"
            by_class = dict(zip(names, chain(*confusion), strict=True))
        this_file = None
        if self._resumed:
            rounds, mistakes = tally.rounds - before.rounds, tally.mistakes - before.mistakes
            this_file = ThisFile(rounds, mistakes, mistakes / max(rounds, 1))
        record = RunRecord(
            learner=self.setup.learner,
            params=params_of(player.learner, player.kernel),
            seed=self.seed,
            repeat=self.repeat,
            rounds=tally.rounds,
            mistakes=tally.mistakes,
            mistake_rate=tally.mistakes / max(tally.rounds, 1),
            margin_updates=tally.margin_updates,
            updates=tally.updates,
            halvings=_count(found.get("halvings")),
            restarts=_count(found.get("restarts")),
            metric_changes=_count(found.get("metric_changes")),
            effective_features=found.get("effective_features"),
            zeta=found.get("zeta"),
            support_size=player.size,
            norm=player.norm,
            near_ties=tally.near_ties,
            seconds=tally.seconds,
            **by_class,
            baseline_mistakes=tally.baseline_mistakes,
            this_file=this_file,
            metrics=metrics_of(confusion, self._ranking, player.calibration.log_loss(tally.rounds))
            if self._measured
            else None,
            **(self._recent.facts() if self._recent else {}),
            costs=self.costs,
        )
        return RunResult(
            record,
            self._curve.points(),
            tally.seconds - before.seconds,
            tuple(f"{self.setup.learner}: {warning}" for warning in player.warnings()),
            {**tally.counts(), **found},
        )


MOST_NAMES = 5
"""Settings that one warning names."""


def near_tie_warning(
    records: Iterable[RunRecord],
    name: Callable[[RunRecord], str] = lambda record: record.learner,
    remedy: str = "`-l metron`, `--sigma auto --scale minmax`, or see `ahpatron inspect FILE`",
) -> str | None:
    """One warning for all learners, or whatever `name` calls them, with f(x) near 0 too often."""
    shares: dict[str, float] = {}
    what = "|f(x)|"
    for record in records:
        if record.classes is not None:
            what = "the difference of the two largest f(x)"
        if record.near_ties > max(SUSPICIOUS_TIES * record.rounds, 10):
            who, share = name(record), record.near_ties / record.rounds
            shares[who] = max(share, shares.get(who, 0.0))
    if not shares:
        return None
    low, high = (f"{100 * extreme(shares.values()):.0f}" for extreme in (min, max))
    limit = f"{NEAR_TIE:g}".replace("e-0", "e-")
    span = low if low == high else f"{low} to {high}"
    names = list(shares)[:MOST_NAMES]
    names += [f"{len(shares) - MOST_NAMES} more"] if len(shares) > MOST_NAMES else []
    return (
        f"{', '.join(names)}: {what} < {limit} in {span} % of rounds: these predictions are "
        f"essentially arbitrary; try {remedy}"
    )


class _CurvePoints:
    """Mistakes so far at evenly spaced rounds: the spacing doubles when there are too many."""

    def __init__(self, rounds: int, mistakes: int) -> None:
        """After so many rounds and mistakes that are not part of the curve."""
        self._spacing = 1
        self._points: list[tuple[int, int, float | None]] = []
        """Rounds, mistakes, and the recent rate if it is asked for."""
        self._last: tuple[int, int, float | None] = (rounds, mistakes, None)

    def extend(self, mistaken: NDArray[np.bool_], rates: Floats | None = None) -> None:
        rounds, mistakes, _ = self._last
        totals = mistakes + np.cumsum(mistaken)
        recent = [None] * len(totals) if rates is None else rates.tolist()
        first = -rounds % self._spacing or self._spacing
        chosen = slice(first - 1, None, self._spacing)
        at = range(rounds + first, rounds + len(totals) + 1, self._spacing)
        self._points += zip(at, totals[chosen].tolist(), recent[chosen], strict=True)
        self._last = rounds + len(totals), int(totals[-1]), recent[-1]
        while len(self._points) > CURVE_POINTS:
            self._spacing *= 2
            self._points = self._points[1::2]

    def points(self) -> tuple[Integers, Integers, Floats | None]:
        points = self._points
        if not points or points[-1][0] != self._last[0]:
            points = [*points, self._last]
        at, mistakes, recent = (np.array(column) for column in zip(*points, strict=True))
        return at, mistakes, None if self._last[2] is None else recent


def play(
    batches: Iterable[Batch], passes: Sequence[Run], observers: Sequence[Observer] = ()
) -> list[RunResult]:
    """The play loop: all passes side by side over one stream of batches."""
    for batch in batches:
        for one in passes:
            played = one.feed(batch)
            for observer in observers:
                observer(played)
    return [one.result() for one in passes]


@dataclass(frozen=True)
class RunOptions:
    """How often a file is played, in which orders, and what is measured."""

    repeats: int
    seed: int
    shuffle: bool
    metrics: bool = False
    """Whether metrics are computed for each pass."""
    exact_auc: bool = True
    """Whether AUC is computed without error, in memory that grows with the rounds."""
    window: int = 0
    """Compute the mistake rate of so many last rounds of each pass, unless 0."""
    costs: Mapping[float | str, float] = field(default_factory=dict)
    """Of examples, by label; others have the cost 1."""
    prefix: int | None = None
    """Play only so many rounds of each order."""

    def order(self, repeat: int, rounds: int) -> Integers | None:
        """The permutation of this repeat: from seed and repeat alone, the same for all learners."""
        if not self.shuffle:
            return None if self.prefix is None else np.arange(rounds)[: self.prefix]
        return np.random.default_rng([self.seed, repeat]).permutation(rounds)[: self.prefix]


def begin(
    dataset: Dataset, setup: LearnerSpec, repetition: RunOptions, repeat: int, horizon: int | None
) -> Run:
    """A pass over a file from its first round."""
    costs, classes = dataset.costs(repetition.costs), dataset.classes
    one = Run(setup, dataset.name, repetition.seed, repeat, horizon, classes=classes, costs=costs)
    one.measure(repetition)
    return one


def play_repeat(
    dataset: Dataset,
    setup: LearnerSpec,
    repetition: RunOptions,
    repeat: int,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """One pass over one order of a file in memory."""
    rounds = dataset.rounds
    assert rounds is not None
    one = begin(dataset, setup, repetition, repeat, rounds)
    return play(dataset.batches(repetition.order(repeat, rounds)), [one], observers)[0]


def play_repeats(
    dataset: Dataset,
    setups: Sequence[LearnerSpec],
    repetition: RunOptions,
    jobs: int = 1,
    observers: Sequence[Observer] = (),
) -> Iterator[RunResult]:
    """Run every setup and repeat on a file in memory; results in that order.

    With several `jobs`, processes that share the file by memory map, observers are told of a pass
    when it is over.
    """
    tasks = list(product(setups, range(repetition.repeats)))
    if jobs == 1 or len(tasks) == 1:
        for setup, repeat in tasks:
            yield play_repeat(dataset, setup, repetition, repeat, observers)
        return
    with TemporaryDirectory(prefix="ahpatron-", ignore_cleanup_errors=True) as folder:
        dataset.save(Path(folder))
        shared = _SharedFile(dataset.name, dataset.preparation, folder, repetition)
        done: dict[int, tuple[RunResult, list[BatchResult]]] = {}
        due = 0
        for ended in run_all(shared.play, tasks, jobs, RETRIES):
            if ended is None:
                continue
            number, result = ended
            if isinstance(result, Died):
                setup, repeat = tasks[number]
                problem = f"{setup.learner}, repeat {repeat}: {result.reason}"
                raise UserError(problem, code=ExitCode.FAILED_TRIALS, hint="use fewer --jobs")
            done[number] = result
            while due in done:
                one, parts = done.pop(due)
                for observer, played in product(observers, parts):
                    observer(played)
                yield one
                due += 1


@dataclass(frozen=True)
class _SharedFile:
    """A parsed file in a folder that processes map, and how it is run."""

    name: str
    preparation: Preparation
    folder: str
    repetition: RunOptions

    def play(self, task: tuple[LearnerSpec, int]) -> tuple[RunResult, list[BatchResult]]:
        """One pass, and what observers are to be told of it."""
        dataset = Dataset(self.name, self.preparation, CompactRows.mapped(Path(self.folder)))
        parts: list[BatchResult] = []
        return play_repeat(dataset, task[0], self.repetition, task[1], [parts.append]), parts
