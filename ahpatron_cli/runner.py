"""Running learners on data sets: setups, passes over batches, and their records."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ahpatron_cli.answers import NO_ANSWER, Answers, Following, answers
from ahpatron_cli.atomic import temporary_folder
from ahpatron_cli.core import KERNELS, Kernel, Learner, Player
from ahpatron_cli.core.calibration import WINDOW
from ahpatron_cli.core.engine import padded
from ahpatron_cli.core.errors import LimitReachedError, NumericalError, ParameterError
from ahpatron_cli.core.registry import find_learner, is_path
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import State, StateReader
from ahpatron_cli.core.tally import Tally, has_answer
from ahpatron_cli.data.batch import Batch
from ahpatron_cli.data.dataset import Dataset, RowsInMemory, mapped
from ahpatron_cli.data.label_codes import AppearingLabels
from ahpatron_cli.errors import ExitCode, UserError, bad_data, usage
from ahpatron_cli.learning_curve import LearningCurve
from ahpatron_cli.metrics import Ranking, Recent, RecentMistakes, metrics_of
from ahpatron_cli.number_text import counted
from ahpatron_cli.records import CELLS, Metrics, ParamValue, RunRecord, Statistic, ThisFile

if TYPE_CHECKING:
    from ahpatron_cli.core.learners.metron import Memories

SUSPICIOUS_TIES = 0.2
RETRIES = 2
"""Number of times a pass is repeated if its process dies."""

UNFITTED = f"probabilities are not fitted: that takes {WINDOW} rounds with a label"

LISTING = "`ahpatron learners` lists all learners and their parameters"
NUMERICAL_HINT = "try `--scale standard`, a larger `--sigma`, or another step"
OWN_KERNEL_HINT = "try `--scale standard`"
"""The hint for learners with a kernel of their own, which have no σ."""
AUTO = "auto"
"""Value of σ that means: select it from the first rows of each file."""
_COUNTED = ("halvings", "restarts", "alarms", "metric_changes")
"""Statistics that are numbers of changes, each a field of a record."""
_WITH_FIELD = {*_COUNTED, "zeta", "effective_features", "tracker_led", "margin_steps"}
"""Statistics that have a field of a record, or that only certificates need."""


Confusion: TypeAlias = tuple[tuple[int, ...], ...]
"""Rounds by true label (rows) and predicted label (columns)."""


@dataclass(frozen=True)
class Setup:
    """Names of a learner and a kernel, each with the given parameters."""

    learner: str
    learner_params: Mapping[str, ParamValue]
    kernel: str | None
    """Name of the kernel; None if the learner has its own."""
    kernel_params: Mapping[str, ParamValue]
    source: str | None = None
    """`/path/to/file.py:ClassName` if the learner is defined in a file."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts of parameters that depend on the data, as in the grid: `10^0/√T`, `auto`."""

    @classmethod
    def of(
        cls,
        learner: str,
        kernel: str | None,
        params: Mapping[str, ParamValue],
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> Setup:
        """The setup of a learner, given by name or path, with parameters of it and the kernel."""
        kind = find_learner(learner)
        own = kind.specs()
        learner_params = {}
        kernel_params = {}
        for name, value in params.items():
            if name in own:
                learner_params[name] = value
            else:
                kernel_params[name] = value
        if kind.own_kernel:
            kernel = None
        source = None
        if is_path(learner):
            source = learner
        return cls(
            learner=kind.name,
            learner_params=learner_params,
            kernel=kernel,
            kernel_params=kernel_params,
            source=source,
            texts=texts,
        )

    @property
    def kind(self) -> type[Learner]:
        """The learner's class."""
        return find_learner(self.source or self.learner)

    @property
    def auto_sigma(self) -> bool:
        """Whether σ is "auto" and still has to be selected."""
        return self.kernel_params.get("sigma") == AUTO

    def with_sigma(self, sigma: float) -> Setup:
        """The same setup with this σ, if σ is "auto"."""
        if not self.auto_sigma:
            return self
        params = {**self.kernel_params, "sigma": sigma}
        return replace(self, kernel_params=params)

    def build(self) -> tuple[Learner, Kernel]:
        """Create learner and kernel; raises ParameterError for illegal values.

        If σ is still "auto", the kernel has its default width.
        """
        learner = self.kind(**self.learner_params)
        if self.kernel is None:
            assert learner.own_kernel is not None
            return learner, learner.own_kernel
        chosen = dict(self.kernel_params)
        if self.auto_sigma:
            del chosen["sigma"]
        kernel = KERNELS[self.kernel]
        return learner, kernel(**chosen)


def params_of(learner: Learner, kernel: Kernel) -> dict[str, ParamValue]:
    """All parameters by name, those of the kernel first (none if it is the learner's own)."""
    if learner.own_kernel:
        return learner.params()
    return {"kernel": kernel.name, **kernel.params(), **learner.params()}


def check(setup: Setup) -> None:
    """Raise a usage error for parameters that contradict each other."""
    try:
        setup.build()
    except ParameterError as error:
        raise usage(f"{setup.learner}: {error}", LISTING) from None


def with_sigma(
    setups: Sequence[Setup], dataset: Dataset, note: Callable[[str], None]
) -> list[Setup]:
    """The setups with `--sigma auto` replaced by the σ selected from the first rows."""
    kernels = [setup.kernel for setup in setups if setup.auto_sigma]
    if not kernels:
        return list(setups)
    from ahpatron_cli.sigma import MOST_TRIED_ROWS, auto_sigma

    kernel = kernels[0]  # all learners have the same
    assert kernel is not None
    rows, labels = dataset.warm_up()
    sigma = auto_sigma(rows, labels, kernel)
    if isinstance(sigma, str):
        problem = f"--sigma auto cannot choose: {sigma}"
        raise bad_data(problem, dataset.name, hint="give a number: --sigma S")
    tried = min(len(labels), MOST_TRIED_ROWS)
    note(f"σ = {sigma:g}, the best of several widths on the first {tried:,} rows (--sigma auto)")
    return [setup.with_sigma(sigma) for setup in setups]


def generator_seed(seed: int, repeat: int, learner: str) -> tuple[int, ...]:
    """Seed of the random generator of a learner in one pass; different for each learner."""
    number = zlib.crc32(learner.encode())
    return seed, repeat, number


@dataclass(frozen=True)
class RunOptions:
    """Options of a run: repeats, permutations, and what is measured."""

    repeats: int = 1
    seed: int = 0
    shuffle: bool = False
    metrics: bool = False
    """Whether to compute metrics for each pass."""
    window: int = 0
    """Number of last rounds for the recent mistake rate; 0: not computed."""
    weights: Mapping[float | str, float] = field(default_factory=dict)
    """Weights of examples by label (--weight); other labels have weight 1."""
    probability: bool = False
    """Whether answers have probabilities."""
    threshold: float | None = None
    """The probability from which +1 is predicted; None: +1 if f(x) >= 0."""
    prefix: int | None = None
    """Number of rounds of each permutation to run; None: all."""
    curve: bool = False
    """Whether to record the learning curve."""
    certify: bool = False
    """Whether to compute certificates."""
    theorem: str | None = None
    """The theorem to certify (--theorem); None: that with the smallest bound."""
    jobs: int = 1
    """Number of processes."""

    @property
    def in_memory(self) -> bool:
        """Whether the data must be in memory, because rows are permuted or read repeatedly."""
        return self.repeats > 1 or self.shuffle

    def order(self, repeat: int, rounds: int) -> Integers | None:
        """Permutation of this repeat; depends on seed and repeat only. None for file order."""
        if self.shuffle:
            generator = np.random.default_rng([self.seed, repeat])
            order = generator.permutation(rounds)
            return order[: self.prefix]
        if self.prefix is None:
            return None
        return np.arange(min(rounds, self.prefix))


@dataclass(frozen=True)
class RunResult:
    """Result of one pass: its record, curve, warnings and counts."""

    record: RunRecord
    curve: Floats
    """Array with three rows: rounds, mistakes up to each, recent mistake rate or NaN."""
    seconds: float
    """Learning time of this pass; the record also includes earlier files (--resume)."""
    warnings: tuple[str, ...]
    counts: Mapping[str, Any]
    """Tally and statistics of the learner by name, for certificates."""


class Answered(NamedTuple):
    """The answers for the first rows of some, and the error of the row after them, if any."""

    given: Answers
    error: UserError | None


def _of_first_class(given: Answers) -> Answers:
    """Answers with -1 or +1, given while +1 was the only label, as answers with classes.

    That label is the first class; -1, which stood for all others, is no answer.
    """
    is_first = given.chosen == 1
    chosen = np.where(is_first, 0, NO_ANSWER)
    scores = np.where(is_first, given.scores, np.nan)
    return Answers(scores[:, None], chosen)


class Run:
    """One pass of a learner over one file."""

    def __init__(
        self,
        setup: Setup,
        path: str,
        options: RunOptions,
        repeat: int = 0,
        horizon: int | None = None,
        *,
        classes: tuple[float, ...] | None = None,
        weights: tuple[float, ...] | None = None,
        state: State | None = None,
        confusion: Confusion | None = None,
        same_file: bool = False,
        appearing: AppearingLabels | None = None,
    ) -> None:
        """`horizon` is the number of rounds, if it is known in advance.

        `classes` are the labels of all classes, if there are more than two; `weights` are those of
        examples in the order of the labels. `appearing` are the labels of a stream in which classes
        may appear. With `state`, an earlier pass is continued, with its `confusion` if that had a
        threshold; `same_file` means on the same file, from a checkpoint. AUC is then not available:
        the scores of earlier rounds are not saved.
        """
        assert not setup.auto_sigma, "σ is chosen before the first round"
        self.setup = setup
        self.path = path
        self.options = options
        self.repeat = repeat
        self._fixed_classes = classes
        self.appearing = appearing
        self._horizon = horizon
        self.weights = weights
        self.player = self._new_player(horizon)
        if state is not None:
            self.player.load_state_dict(state)
        self._resumed = state is not None and not same_file
        self._begin_answering(confusion)
        self._before = replace(self.tally)
        self._begin_measuring()

    def _begin_answering(self, confusion: Confusion | None) -> None:
        """Begin what the options ask for besides scores: probabilities, a threshold."""
        options = self.options
        self._following: Following | None = None
        self._decided: Integers | None = None
        """The confusion matrix of the predictions by a threshold."""
        if options.threshold is not None:
            check_threshold(self._classes)
            self._decided = self.player.tally.confusion
            if confusion is not None:
                self._decided = np.array(confusion, dtype=np.int64)
        if options.probability or options.threshold is not None:
            self._following = Following(self.player.calibration)

    def _begin_measuring(self) -> None:
        """Begin what the options ask for: recent mistake rate, curve, ranking."""
        options = self.options
        self.drifts: list[int] = []
        """Rounds of the last batch in which a rise of the mistake rate was detected."""
        self.recent: RecentMistakes | None = None
        self._curve: LearningCurve | None = None
        self.ranking: Ranking | None = None
        if options.window:
            self.recent = RecentMistakes(self.rounds, options.window)
        if options.curve:
            self._curve = LearningCurve(self.rounds, self.mistakes)
        if options.metrics and not self.rounds:
            self.ranking = Ranking()

    def _new_player(self, horizon: int | None) -> Player:
        """Learner, kernel and counts before the first round."""
        setup = self.setup
        learner, kernel = setup.build()
        growing = self._classes is not None and self.appearing is not None
        classes = 2
        if self._classes:
            classes = len(self._classes)
        if growing and not self._fixed_classes:
            classes = 1
        seed = generator_seed(self.options.seed, self.repeat, setup.learner)
        player = Player(
            learner, kernel, classes=classes, seed=seed, horizon=horizon, growing=growing
        )
        if self.weights is not None and not player.learner.takes_costs:
            raise ParameterError(f"{setup.learner} cannot weigh examples", "costs")
        return player

    @property
    def tally(self) -> Tally:
        """Counts over all rounds so far; with a threshold, the predictions are those by it."""
        tally = self.player.tally
        if self._decided is None:
            return tally
        return replace(tally, confusion=self._decided)

    @property
    def confusion(self) -> Confusion | None:
        """Rounds by true and predicted label, to continue from; None without a threshold."""
        if self._decided is None:
            return None
        (first, second) = self._decided.tolist()
        return tuple(first), tuple(second)

    @property
    def _classes(self) -> tuple[float, ...] | None:
        """Labels of all classes so far, if there are more than two or they may appear."""
        if self.appearing is None:
            return self._fixed_classes
        if not self.appearing.are_classes:
            return None
        return tuple(self.appearing.labels)

    def follow_classes(self) -> None:
        """Learn classes from now on, if the labels so far could be a pair and are none.

        All rounds so far had the same label, which is class 0: there is nothing to keep but counts.
        """
        if self._classes is None or self.player.growing or self.appearing is None:
            return
        if self.weights is not None or self.options.threshold is not None:
            problem = "a third label, and --weight and --threshold need to know all labels"
            raise bad_data(problem, self.path, hint="name them: --classes A,B,C")
        before = self.player
        self.player = self._new_player(self._horizon)
        if before.tally.rounds:
            self.player.begin_after(before)

    @property
    def mistakes(self) -> int:
        """Number of mistakes so far."""
        return self.tally.mistakes

    @property
    def rounds(self) -> int:
        """Number of rounds so far."""
        return self.player.tally.rounds

    def memories(self) -> list[Memories]:
        """What the two memories have done so far, with an entry for each learner of a class.

        Empty if the learner has no tracker. A change of the metric that is due is made first.
        """
        from ahpatron_cli.core.learners.metron import Metron  # lazy: takes long to import
        from ahpatron_cli.core.two_memories import TwoMemories

        found = []
        for loop in self.player.loops:
            learner = loop.learner
            f = loop.f
            if isinstance(learner, Metron) and isinstance(f, TwoMemories):
                found.append(learner.memories(f))
        return found

    def feed(self, batch: Batch) -> Answers:
        """Predict and learn from a batch; rows without a label are predicted only.

        Returns the answer for each row before its update.
        """
        self.follow_classes()
        parts = []
        for has_labels, part in batch.runs():
            learn_or_score = self._learn if has_labels else self.score
            parts.append(learn_or_score(part))
        scores = parts[0]
        if len(parts) > 1:
            if scores.ndim > 1:
                classes = self.player.classes
                parts = [padded(part, classes) for part in parts]
            scores = np.concatenate(parts)
        given = self._answers(scores, batch.labels)
        labelled = ~np.isnan(batch.labels)
        labels = batch.labels[labelled]
        guesses = given.chosen[labelled]
        self._measure(scores[labelled], guesses, labels)
        return given

    def _answers(self, scores: Floats, labels: Floats) -> Answers:
        """The answers for the next rows of the stream, whose labels (NaN: none) come after them."""
        probabilities = None
        if self._following is not None:
            probabilities = self._following.probabilities(scores, labels)
        return answers(scores, probabilities, self.options.threshold)

    def _measure(self, scores: Floats, guesses: Integers, labels: Floats) -> None:
        """Update the measurements of the options with new rounds."""
        true = labels
        if scores.ndim == 1:
            true = np.maximum(labels, 0.0)  # -1 and +1 are the columns 0 and 1
        numbers = true.astype(np.int64)
        wrong = guesses != numbers
        if self._decided is not None:
            answered = guesses != NO_ANSWER
            codes = 2 * numbers + guesses
            cells = np.bincount(codes[answered], minlength=4)
            self._decided = self._decided + cells.reshape(2, 2)
        rates = None
        self.drifts = []
        if self.recent and len(labels):
            before = len(self.recent.drifts)
            rates = self.recent.extend(wrong)
            self.drifts = self.recent.drifts[before:]
        if self._curve and len(labels):
            self._curve.extend(wrong, rates)
        if self.ranking is not None:
            answered = has_answer(scores)
            self.ranking.add(scores[answered], labels[answered])

    def learn(self, batch: Batch, given: Answers | None = None) -> Answered:
        """Learn from rows with labels until one cannot be learned, and measure the rounds.

        If the labels came late, `given` are the answers that were given: these are counted.
        """
        self.follow_classes()
        if given is not None and self.player.growing and given.scores.ndim == 1:
            given = _of_first_class(given)
        answered = None
        if given is not None:
            answered = given.scores
        scores, error = self._learned(batch, answered)
        labels = batch.labels[: len(scores)]
        if given is None:
            given = self._answers(scores, labels)
        else:
            given = given.first(len(scores))
            if scores.ndim > 1:  # a class may have appeared
                classes = scores.shape[1]
                given = replace(given, scores=padded(given.scores, classes))
            self._answers(given.scores, labels)  # the link for probabilities learns from them
        self._measure(given.scores, given.chosen, labels)
        return Answered(given, error)

    def answer(self, batch: Batch) -> Answered:
        """Predict rows of a live stream without labels until f cannot be computed for one.

        Before anything was learned there is no answer, also if the labels were declared.
        """
        error = None
        try:
            scores = self.player.scores(batch.rows)
        except NumericalError as fault:
            error = self._not_computed("f(x)", batch, fault)
            before = batch.part(slice(0, fault.row))
            scores = self.player.scores(before.rows)
        if not self.rounds:
            scores = np.full_like(scores, np.nan)
        labels = np.full(len(scores), np.nan)
        return Answered(self._answers(scores, labels), error)

    def _learn(self, batch: Batch) -> Floats:
        """Learn from rows with labels; return f(x) of each before its update."""
        scores, error = self._learned(batch, None)
        if error is not None:
            raise error
        return scores

    def _learned(self, batch: Batch, answered: Floats | None) -> tuple[Floats, UserError | None]:
        """Learn from rows with labels until one cannot be learned; their scores, and the error."""
        self.follow_classes()
        if answered is None and self._is_before_first_class():
            return self._learned_first(batch)
        first = self.rounds + 1
        labels = batch.labels
        try:
            scores = self.player.feed(
                batch.rows, labels, self._weights_of(labels), answered=answered
            )
        except NumericalError as error:
            number = first + error.row
            fault = self._not_computed(f"round {number}", batch, error)
            left = slice(len(error.learned), error.row)
            if left.start == left.stop:
                return error.learned, fault
            # A block is learned as a whole or not at all: its rows before this one come again.
            given = None
            if answered is not None:
                given = answered[left]
            scores, earlier = self._learned(batch.part(left), given)
            learned = np.concatenate([error.learned, scores])
            return learned, earlier or fault
        except LimitReachedError as error:
            problem = f"{self.setup.learner}: {error}"
            hint = "allow more with `-p max_support=N`, or demand less with a larger tolerance"
            raise UserError(problem, code=ExitCode.BAD_DATA, hint=hint) from None
        return scores, None

    def _weights_of(self, labels: Floats) -> Floats | None:
        """Weight of each row by its label; None if there are no weights."""
        if self.weights is None:
            return None
        numbers = labels
        if not self._classes:
            numbers = np.maximum(labels, 0.0)  # -1 and +1 are the classes 0 and 1
        by_label = np.array(self.weights)
        weights: Floats = by_label[numbers.astype(int)]
        return weights

    def _is_before_first_class(self) -> bool:
        """Whether no class is known, so that round 1 has no answer.

        A first label of 1 could still be of a pair: sign(0) = +1 is predicted, also if rows are
        learned so late that further labels have shown it to be a class.
        """
        if self.appearing is None or self.rounds or not self.player.growing:
            return False
        return self.appearing.labels[0] != 1.0

    def _learned_first(self, batch: Batch) -> tuple[Floats, UserError | None]:
        """As `_learned`, of the first rows of a stream of classes: no label was known for row 1."""
        nothing = np.full((1, 1), np.nan)
        first = batch.part(slice(0, 1))
        _, error = self._learned(first, nothing)
        if error is not None:
            return nothing[:0], error
        if len(batch.labels) == 1:
            return nothing, None
        others = slice(1, len(batch.labels))
        rest = batch.part(others)
        scores, error = self._learned(rest, None)
        classes = scores.shape[1]
        no_answer = padded(nothing, classes)
        return np.concatenate([no_answer, scores]), error

    def score(self, batch: Batch) -> Floats:
        """Values of the current f at the rows of a batch, without learning or counting."""
        try:
            scores = self.player.scores(batch.rows)
        except NumericalError as error:
            raise self._not_computed("f(x)", batch, error) from None
        return self._as_known(scores)

    def _as_known(self, scores: Floats) -> Floats:
        """These scores of the current f; NaN, which is no answer, as long as no label is known."""
        if self.appearing is not None and not self.rounds:
            return np.full_like(scores, np.nan)
        return scores

    def restore_recent(self, state: StateReader) -> None:
        """Restore the recent mistake rate and the test for drifts, if the window is the same."""
        saved = RecentMistakes(0, 1)
        state.value("recent", saved)
        if self.recent is not None and saved.size == self.options.window:
            self.recent = saved

    def restore_ranking(self, state: StateReader) -> None:
        """Restore the scores for the AUC, if it is still asked for."""
        saved = Ranking()
        state.value("ranking", saved)
        if self.options.metrics:
            self.ranking = saved

    def _not_computed(self, what: str, batch: Batch, error: NumericalError) -> UserError:
        """The error of a row for which `what` cannot be computed."""
        problem = f"{what} cannot be computed: {error}"
        hint = OWN_KERNEL_HINT if self.player.learner.own_kernel else NUMERICAL_HINT
        line = int(batch.lines[error.row])
        return bad_data(problem, self.path, line=line, hint=hint)

    def result(self) -> RunResult:
        """Record, curve and warnings of the pass so far."""
        player = self.player
        tally = player.tally
        statistics: dict[str, Any] = player.statistics()
        learner = self.setup.learner
        curve = np.empty((3, 0))
        if self._curve:
            curve = self._curve.points()
        return RunResult(
            record=self._record(statistics),
            curve=curve,
            seconds=tally.seconds - self._before.seconds,
            warnings=tuple(f"{learner}: {warning}" for warning in self._warnings()),
            counts={**tally.counts(), **statistics},
        )

    def _warnings(self) -> Iterator[str]:
        """What the user should know of the figures of this pass."""
        yield from self.player.warnings()
        options = self.options
        shows_probabilities = options.probability or options.metrics or options.threshold
        if shows_probabilities and not self.player.calibration.is_fitted:
            yield f"{UNFITTED}; this run has {counted(self.tally.rounds, 'round')}"

    def _record(self, statistics: Mapping[str, Any]) -> RunRecord:
        """The record of the pass so far, with these statistics of the learner."""
        player = self.player
        tally = self.tally
        recent = Recent()
        if self.recent is not None:
            recent = self.recent.facts()
        return RunRecord(
            learner=self.setup.learner,
            params=params_of(player.learner, player.kernel),
            seed=self.options.seed,
            repeat=self.repeat,
            rounds=tally.rounds,
            mistakes=tally.mistakes,
            mistake_rate=tally.mistakes / max(tally.rounds, 1),
            margin_updates=tally.margin_updates,
            updates=tally.updates,
            near_ties=tally.near_ties,
            baseline_mistakes=tally.baseline_mistakes,
            **_changes(statistics),
            **self._confusion(),
            zeta=statistics.get("zeta"),
            support_size=player.size,
            norm=player.norm,
            seconds=tally.seconds,
            this_file=self._this_file(),
            effective_features=statistics.get("effective_features"),
            tracker_share=self._tracker_share(statistics),
            metrics=self._metrics(),
            statistics=_other_statistics(statistics),
            threshold=self.options.threshold,
            weights=self.weights,
            **recent,
        )

    def _tracker_share(self, statistics: Mapping[str, Any]) -> float | None:
        """Share of the rounds in which the tracker led, the mean over the learners of all classes.

        None if there is no tracker.
        """
        led = statistics.get("tracker_led")
        if led is None:
            return None
        rounds = self.rounds * len(self.player.loops)
        return int(led) / max(rounds, 1)

    def _confusion(self) -> dict[str, Any]:
        """Fields of the record with the confusion matrix."""
        confusion = self.tally.confusion.tolist()
        if self._classes:
            by_class = tuple(map(tuple, confusion))
            # labels of rows that were read, and not learned yet, are not counted
            return {"classes": self._classes[: len(confusion)], "by_class": by_class}
        cells = chain(*confusion)
        return dict(zip(CELLS, cells, strict=True))

    def _this_file(self) -> ThisFile | None:
        """Counts on this file only; None unless an earlier file came before it."""
        if not self._resumed:
            return None
        tally = self.tally
        before = self._before
        rounds = tally.rounds - before.rounds
        mistakes = tally.mistakes - before.mistakes
        rate = mistakes / max(rounds, 1)
        return ThisFile(rounds, mistakes, rate)

    def _metrics(self) -> Metrics | None:
        """All metrics; None without `--metrics`."""
        if not self.options.metrics:
            return None
        tally = self.tally
        calibration = self.player.calibration
        return metrics_of(
            tally.confusion.tolist(),
            self.ranking,
            log_loss=calibration.log_loss(tally.rounds),
            brier=calibration.brier_score(tally.rounds),
        )


def _other_statistics(statistics: Mapping[str, Any]) -> dict[str, Statistic] | None:
    """Statistics without a field of their own; None if there are none."""
    found = {}
    for name, value in statistics.items():
        if name not in _WITH_FIELD:
            found[name] = _plain(value)
    return found or None


def _plain(value: object) -> Statistic:
    """A value of a learner of the user's own as JSON can hold it; None for NaN."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, int):
        return value
    if not isinstance(value, float):
        return str(value)
    if math.isnan(value):
        return None
    if math.isinf(value):
        return str(value)
    return value


def _changes(statistics: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of a record with numbers of changes, as far as the learner counts them."""
    found = {}
    for name in _COUNTED:
        number = statistics.get(name)
        if number is not None:
            found[name] = int(number)  # third-party learners may have other types
    return found


Observer: TypeAlias = Callable[[Run, Batch, Answers], None]
"""A function that is called after each batch with the run, the batch and the answers of `feed`."""


def check_threshold(classes: Sequence[float] | None) -> None:
    """Refuse --threshold for more than two classes."""
    if classes:
        problem = f"--threshold requires two classes, and there are {len(classes)}"
        raise usage(problem, "--positive LABEL learns one of them against the others")


def near_tie_warning(records: Iterable[RunRecord]) -> list[str]:
    """A warning that names learners whose f(x) is near 0 too often; empty if there are none."""
    affected: list[str] = []
    share = 0.0
    for run in records:
        limit = max(SUSPICIOUS_TIES * run.rounds, 10)
        if run.near_ties > limit:
            affected.append(run.learner)
            percentage = 100 * run.near_ties / run.rounds
            share = max(share, percentage)
    if not affected:
        return []
    learners = ", ".join(dict.fromkeys(affected))
    return [
        f"{learners}: |f(x)| < 1e-9 in {share:.0f} % of rounds: "
        "these predictions are essentially arbitrary; "
        "try `-l metron`, `--sigma auto --scale minmax`, or see `ahpatron inspect FILE`"
    ]


def run_batches(
    batches: Iterable[Batch], runs: Sequence[Run], observers: Sequence[Observer] = ()
) -> list[RunResult]:
    """Feed each batch of a stream to all runs in turn; return their results."""
    for batch in batches:
        for run in runs:
            given = run.feed(batch)
            for observer in observers:
                observer(run, batch, given)
    return [run.result() for run in runs]


def begin(
    dataset: Dataset, setup: Setup, options: RunOptions, repeat: int, horizon: int | None
) -> Run:
    """Create a `Run` over a file, from its first round."""
    weights = dataset.weights(options.weights)
    return Run(
        setup,
        path=dataset.name,
        options=options,
        repeat=repeat,
        horizon=horizon,
        classes=dataset.encoder.classes,
        appearing=dataset.encoder.labels.appearing,
        weights=weights,
    )


def run_pass(dataset: RowsInMemory, run: Run, observers: Sequence[Observer] = ()) -> RunResult:
    """Run all rounds of a pass over a file in memory, in the order of its repeat."""
    rounds = dataset.count_rounds()
    order = run.options.order(run.repeat, rounds)
    batches = dataset.batches(order)
    (result,) = run_batches(batches, [run], observers)
    return result


def run_repeat(
    dataset: RowsInMemory,
    setup: Setup,
    options: RunOptions,
    repeat: int,
    observers: Sequence[Observer] = (),
) -> RunResult:
    """Run one pass over one permutation of a file in memory, from its first round."""
    rounds = dataset.count_rounds()
    run = begin(dataset, setup, options, repeat=repeat, horizon=rounds)
    return run_pass(dataset, run, observers)


def run_parallel(
    dataset: RowsInMemory,
    tasks: Sequence[tuple[Setup, int]],
    options: RunOptions,
    show: Callable[[int, str], None],
) -> list[RunResult]:
    """Run setups and repeats on a file in memory, in processes that share it.

    `show` is called with the number of finished passes and a text that shows it.
    """
    from ahpatron_cli.pool import Died, run_all  # lazy: slow to import

    results: dict[int, RunResult] = {}
    with temporary_folder() as folder:
        dataset.save(folder)
        work = partial(_run_mapped, name=dataset.name, folder=folder, options=options)
        for number, outcome in run_all(work, tasks, jobs=options.jobs, retries=RETRIES):
            if isinstance(outcome, Died):
                setup, _ = tasks[number]
                problem = f"{setup.learner}: {outcome.reason}"
                raise UserError(problem, code=ExitCode.FAILED_TRIALS, hint="use fewer --jobs")
            if outcome is not None:
                results[number] = outcome
            done = len(results)
            show(done, f"{done} of {len(tasks)} passes")
    return [results[number] for number in range(len(tasks))]


def _run_mapped(
    task: tuple[Setup, int], *, name: str, folder: Path, options: RunOptions
) -> RunResult:
    """Run one pass, a setup and a repeat, over a file stored in a folder by `RowsInMemory.save`."""
    setup, repeat = task
    dataset = mapped(name, folder)
    return run_repeat(dataset, setup, options, repeat=repeat)
