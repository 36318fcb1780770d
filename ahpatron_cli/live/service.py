"""The learner behind a live stream: it answers rows, learns their labels now or later, and counts.

`run -` and `serve` both stand on it. It knows neither files nor pipes, and it is used by one thread
at a time: whoever shares it between threads holds a lock while it learns.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from ahpatron_cli.answers import Answers
from ahpatron_cli.core import BLOCK
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import State, Stateful, StateReader
from ahpatron_cli.data.batch import Batch, runs_of
from ahpatron_cli.data.encoder import Encoder
from ahpatron_cli.data.labels import Labels
from ahpatron_cli.errors import UserError, bad_data
from ahpatron_cli.live.remembered import Remembered, RememberedRow
from ahpatron_cli.model_file import Model, OptionValue, model_of
from ahpatron_cli.records import RunRecord
from ahpatron_cli.runner import Answered, Run

Kind: TypeAlias = Literal["labelled", "unlabelled", "label only"]
_LARGEST = math.sqrt(sys.float_info.max)
"""The square of a larger value overflows a double."""


class Stream(Protocol):
    """What a service must know of the stream whose rows it is given."""

    name: str
    encoder: Encoder
    width: int

    def labels(self) -> Labels:
        """Labels in the order of their codes, as far as they were seen."""


@dataclass(frozen=True, eq=False)
class AnsweredRows:
    """Rows that were answered, in the order in which they arrived."""

    lines: Integers
    ids: NDArray[np.object_] | None
    labels: Floats
    """Codes of the labels; NaN for rows without one."""
    given: Answers
    """The answers; for a label that came late, the one that its row was given."""


class Refusal(NamedTuple):
    """A row that was not answered, or a label that was not learned."""

    line: int
    id: str | None
    error: UserError
    is_unmatched: bool = False
    """Whether it is a label for which no row was waiting."""
    is_waiting: bool = False
    """Whether it is a row whose id is already waiting for a label."""
    raw: bytes | None = None
    """The line as it came, if it is known."""


class Counts(Stateful):
    """What a service counts beside its learner."""

    state_fields: ClassVar[Any] = {
        "lines": int,
        "unlabelled": int,
        "late_labels": int,
        "unmatched": int,
        "faults": int,
        "resets": int,
    }

    def __init__(self) -> None:
        self.lines = 0
        """Input lines behind the state, without those of headers."""
        self.unlabelled = 0
        """Rows that came without a label."""
        self.late_labels = 0
        """Labels that came later than their rows, and were learned."""
        self.unmatched = 0
        """Labels for which no row was waiting."""
        self.faults = 0
        """Lines that were neither answered nor learned."""
        self.resets = 0
        """Resets and alarms of the learner that were reported."""


class ServiceFigures(msgspec.Struct, frozen=True, omit_defaults=True):
    """The figures of a service at one moment; fields are named as in the records of runs."""

    rounds: int
    mistakes: int
    mistake_rate: float
    unlabelled: int
    faults: int
    late_labels: int
    pending: int
    forgotten: int
    unmatched: int
    resets: int
    lines: int
    support_size: int | None
    window: dict[str, float] | None = None
    drifts: int | None = None

    @property
    def recent_rate(self) -> float:
        """The mistake rate of the window, if there is one; else of all rounds."""
        if self.window is None:
            return self.mistake_rate
        return self.window["mistake_rate"]


class Service:
    """A learner that lives with its stream.

    Parameters
    ----------
    run : Run
        The learner with its counts, window and metrics.
    stream : Stream
        Labels, encoder and width of the rows.
    pending : int
        Number of rows without a label that are remembered by id.
    every : sequence of int, default=()
        Rounds at whose multiples batches are cut: there, `answers` has learned no row beyond.
    """

    def __init__(
        self,
        run: Run,
        stream: Stream,
        *,
        pending: int,
        every: Sequence[int] = (),
    ) -> None:
        self.run = run
        self.stream = stream
        self.counts = Counts()
        self.remembered = Remembered(pending)
        self._every = tuple(every)

    # Answers --------------------------------------------------------------------------------------

    def answers(self, batch: Batch) -> Iterator[AnsweredRows | Refusal]:
        """Answer the rows of a batch in their order, and learn those with a label.

        After each answer that is yielded, its rows were learned and no others.
        """
        for kind, part in _parts(batch):
            play = self._late
            if kind == "labelled":
                play = self._labelled
            elif kind == "unlabelled":
                play = self._unlabelled
            left = part
            while len(left.labels):
                done = 0
                for found in play(left):
                    if isinstance(found, Refusal):
                        done += 1
                    else:
                        done += len(found.labels)
                    yield found
                left = left.part(slice(done, len(left.labels)))

    def leave_out(self, refusal: Refusal) -> None:
        """Count a line that is left out; the stream goes on with the next one."""
        self.counts.faults += 1
        self.counts.unmatched += refusal.is_unmatched

    def _labelled(self, batch: Batch) -> Iterator[AnsweredRows | Refusal]:
        """Predict and learn the first rows of a batch of rows with labels."""
        part = batch.part(slice(0, self._rounds_left()))
        sound, refusal = self._before_pending(part)
        if not sound:
            yield from _known(refusal)
            return
        part = part.part(slice(0, sound))
        yield from self._results(part, self.run.learn(part))

    def _unlabelled(self, batch: Batch) -> Iterator[AnsweredRows | Refusal]:
        """Predict the first rows of a batch of rows without labels, and remember them by id."""
        sound, refusal = self._before_pending(batch)
        if not sound:
            yield from _known(refusal)
            return
        part = batch.part(slice(0, sound))
        answered = self.run.answer(part)
        self.counts.unlabelled += len(answered.given.chosen)
        self._remember(part, answered.given)
        yield from self._results(part, answered)

    def _late(self, batch: Batch) -> Iterator[AnsweredRows | Refusal]:
        """Learn the first labels of a batch of labels without rows."""
        part = batch.part(slice(0, self._rounds_left()))
        taken: list[RememberedRow] = []
        refusal = None
        for number in range(len(part.labels)):
            row = self.remembered.take(_id(part, number))
            if row is None:
                refusal = _refusal(part, number, self._unmatched(part, number))
                refusal = refusal._replace(is_unmatched=True)
                break
            taken.append(row)
        while taken:
            left = part.part(slice(0, len(taken)))
            done = 0
            for found in self._learn_late(left, taken):
                done += 1 if isinstance(found, Refusal) else len(found.labels)
                yield found
            taken = taken[done:]
            part = part.part(slice(done, len(part.labels)))
        yield from _known(refusal)

    def _learn_late(
        self, part: Batch, taken: Sequence[RememberedRow]
    ) -> Iterator[AnsweredRows | Refusal]:
        """Learn the first of these remembered rows, whose labels are those of a batch."""
        encoder = self.stream.encoder
        late = Batch(
            rows=self.remembered.rows(taken, width=self.stream.width, dense=encoder.dense),
            labels=part.labels,
            lines=part.lines,
            ids=part.ids,
        )
        player = self.run.player
        has_classes = player.growing or player.classes > 2
        given = self.remembered.answers(taken, classes=player.classes if has_classes else None)
        answered = self.run.learn(late, given)
        self.counts.late_labels += len(answered.given.chosen)
        yield from self._results(late, answered)

    def _results(self, part: Batch, answered: Answered) -> Iterator[AnsweredRows | Refusal]:
        """The rows of a batch that were answered, and the refusal of the row after them."""
        count = len(answered.given.chosen)
        if count:
            done = part.part(slice(0, count))
            yield AnsweredRows(
                lines=done.lines,
                ids=done.ids,
                labels=done.labels,
                given=answered.given,
            )
        error = answered.error
        if error is not None:
            if error.place is not None:
                error.place = replace(error.place, field=self._too_large(part, count))
            yield _refusal(part, count, error)

    def _too_large(self, batch: Batch, number: int) -> str | None:
        """The column of a row whose value has no finite square; None if there is none."""
        schema = self.stream.encoder.schema
        row = batch.stored.take(np.array([number]))
        sizes = np.abs(row.values)
        if schema is None or not np.any(sizes > _LARGEST):
            return None
        feature = int(row.columns[sizes.argmax()])
        for column, places in schema.columns_with_places():
            if feature in places:
                return column.name
        return None

    def _rounds_left(self) -> int:
        """Rounds up to the next at which batches are cut."""
        rounds = self.run.rounds
        left = [every - rounds % every for every in self._every]
        return min(left, default=np.iinfo(np.int64).max)

    # Late labels ----------------------------------------------------------------------------------

    def _before_pending(self, batch: Batch) -> tuple[int, Refusal | None]:
        """Number of rows before the first one whose id is pending, and the refusal of that one."""
        count = len(batch.labels)
        if batch.ids is None:
            return count, None
        new = set[str]()
        for number, key in enumerate(batch.ids.tolist()):
            if key and (key in self.remembered or key in new):
                problem = f"the row with the id {key!r} is already waiting for its label"
                hint = "give each row an id of its own, and send its label without other cells"
                error = self._bad_id(batch, number, problem=problem, hint=hint)
                refusal = _refusal(batch, number, error)
                return number, refusal._replace(is_waiting=True)
            if np.isnan(batch.labels[number]):
                new.add(key)
        return count, None

    def _remember(self, batch: Batch, given: Answers) -> None:
        """Remember the first rows, which were given these answers, if they have an id."""
        if batch.ids is None:
            return
        rows = batch.stored
        chosen = given.chosen.tolist()
        for number, key in enumerate(batch.ids[: len(chosen)].tolist()):
            if key:
                own = rows.take(np.array([number]))
                scores = np.array(given.scores[number], ndmin=1)
                row = RememberedRow(
                    columns=own.columns,
                    values=own.values,
                    scores=scores,
                    chosen=chosen[number],
                )
                self.remembered.add(key, row)

    def _unmatched(self, batch: Batch, number: int) -> UserError:
        """The error for a label for which no row is waiting."""
        key = _id(batch, number)
        problem = f"no row with the id {key!r} is waiting for a label"
        hint = (
            "it never came, has had its label, or was forgotten; "
            f"the last {self.remembered.limit:,} rows are remembered (--pending N)"
        )
        return self._bad_id(batch, number, problem=problem, hint=hint)

    def _bad_id(self, batch: Batch, number: int, problem: str, hint: str) -> UserError:
        """The error of a row whose id does not fit the rows that wait."""
        schema = self.stream.encoder.schema
        field = None if schema is None else schema.id
        line = int(batch.lines[number])
        return bad_data(problem, self.run.path, line, hint=hint, field=field)

    # Figures --------------------------------------------------------------------------------------

    def figures(self) -> ServiceFigures:
        """All figures up to now."""
        run = self.run
        counts = self.counts
        window = None
        drifts = None
        if run.recent is not None:
            window = msgspec.to_builtins(run.recent.window())
            drifts = len(run.recent.drifts)
        return ServiceFigures(
            rounds=run.rounds,
            mistakes=run.mistakes,
            mistake_rate=run.mistakes / max(run.rounds, 1),
            unlabelled=counts.unlabelled,
            faults=counts.faults,
            late_labels=counts.late_labels,
            pending=len(self.remembered),
            forgotten=self.remembered.forgotten,
            unmatched=counts.unmatched,
            resets=counts.resets,
            lines=counts.lines,
            support_size=run.player.size,
            window=window,
            drifts=drifts,
        )

    def record(self, ended_by: str | None) -> RunRecord:
        """The record of the learner, with what the service counts."""
        return msgspec.structs.replace(
            self.run.result().record,
            unlabelled=self.counts.unlabelled,
            faults=self.counts.faults,
            late_labels=self.counts.late_labels,
            pending=len(self.remembered),
            forgotten=self.remembered.forgotten,
            unmatched=self.counts.unmatched,
            ended_by=ended_by,
        )

    def new_resets(self) -> int:
        """Number of resets and alarms of the learner since this was last asked."""
        statistics = self.run.player.statistics()
        resets = int(statistics.get("alarms") or statistics.get("restarts") or 0)
        new = resets - self.counts.resets
        self.counts.resets = resets
        return max(new, 0)

    def labels(self) -> Labels:
        """Labels in the order of their codes; without classes of rows that were not learned yet."""
        labels = self.stream.labels()
        if self.run.player.growing:
            return labels[: self.run.player.classes]
        return labels

    # State ----------------------------------------------------------------------------------------

    def model(self, features: int, options: dict[str, OptionValue]) -> Model:
        """The learner and all that belongs to its stream, as a model to be written to a file."""
        run = self.run
        run.follow_classes()
        encoder = self.stream.encoder
        live: State = {
            "counts": self.counts.state_dict(),
            "remembered": self.remembered.state_dict(),
        }
        if run.recent is not None:
            live["recent"] = run.recent.state_dict()
        if run.ranking is not None:
            live["ranking"] = run.ranking.state_dict()
        return model_of(
            run.player,
            encoder.scaler,
            live=live,
            seed=run.options.seed,
            labels=self.labels(),
            positive=encoder.labels.positive,
            grows=encoder.labels.appearing is not None and encoder.classes is not None,
            weights=run.weights,
            scale=encoder.scale,
            features=features,
            dense=encoder.dense,
            width=self.stream.width,
            rounds=run.rounds,
            data=self.stream.name,
            schema=encoder.schema,
            options=options,
            threshold=run.options.threshold,
            confusion=run.confusion,
        )

    def restore(self, live: State) -> None:
        """Restore what `model` has saved; a `StateError` if it is damaged."""
        with StateReader(live, {}) as reader:
            reader.value("counts", self.counts)
            reader.value("remembered", self.remembered)
            if "recent" in live:
                self.run.restore_recent(reader)
            if "ranking" in live:
                self.run.restore_ranking(reader)


def _parts(batch: Batch) -> Iterator[tuple[Kind, Batch]]:
    """Split a batch into runs of rows with labels, of rows without, and of labels without rows."""
    kinds = np.isnan(batch.labels).astype(np.int8)
    if batch.label_only is not None:
        kinds[batch.label_only] = 2
    names: tuple[Kind, ...] = ("labelled", "unlabelled", "label only")
    whole = slice(0, len(kinds))
    for run in runs_of(kinds):
        part = batch if run == whole else batch.part(run)
        yield names[kinds[run.start]], part


def _id(batch: Batch, number: int) -> str | None:
    """The id of a row; None if it has none."""
    if batch.ids is None:
        return None
    return str(batch.ids[number])


def _refusal(batch: Batch, number: int, error: UserError) -> Refusal:
    return Refusal(int(batch.lines[number]), _id(batch, number), error)


def _known(refusal: Refusal | None) -> Iterator[Refusal]:
    if refusal is not None:
        yield refusal


def rounded_up(rounds: int) -> int:
    """The next multiple of the rounds of a block, where a state has the bits of a whole pass."""
    blocks = -(-rounds // BLOCK)
    return blocks * BLOCK
