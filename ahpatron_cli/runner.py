"""From settings to records: builds learners, plays passes, counts and times them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from ahpatron_cli.core import KERNELS, Kernel, Learner, Player, Tally
from ahpatron_cli.core.errors import LimitReachedError, NumericalError, ParameterError
from ahpatron_cli.core.learners import find_learner
from ahpatron_cli.core.learners.base import wrong
from ahpatron_cli.core.rows import Floats, Integers
from ahpatron_cli.core.state import State, Stored
from ahpatron_cli.core.theory.theorems import Outcome, outcome_of
from ahpatron_cli.data.dataset import Loaded, Piece
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.records import ParamValue, RunRecord

CURVE_POINTS = 2000
SUSPICIOUS_TIES = 0.2
SUSPICIOUS_DRIFT = 1e-6


LISTING = "`ahpatron inspect --learners` lists all learners and their parameters"
_SCALE_HINT = (
    "bring the features to a common size with `--scale standard`, or choose a larger `--sigma`"
)
NUMERICAL_HINTS = {
    "norm": "choose another `-p step=` or `-p radius=`",
    "score": _SCALE_HINT,
    "features": _SCALE_HINT,
}
AUTO = "auto"
"""In place of σ: to be chosen from the first rows of each file."""


@dataclass(frozen=True)
class Setup:
    """A learner and a kernel, each with the parameters that were asked for."""

    learner: str
    learner_params: Mapping[str, ParamValue]
    kernel: str
    kernel_params: Mapping[str, ParamValue]
    source: str | None = None
    """`/path/to/file.py:ClassName` of a learner that no registry knows."""

    @property
    def kind(self) -> type[Learner[Any]]:
        """The learner's class."""
        return find_learner(self.source or self.learner)

    @property
    def wants_horizon(self) -> bool:
        """Whether the learner asks for the number of rounds beforehand."""
        return "horizon" in self.kind.specs()

    @property
    def auto_sigma(self) -> bool:
        """Whether σ is still to be chosen."""
        return self.kernel_params.get("sigma") == AUTO

    def with_sigma(self, sigma: float) -> Setup:
        """The same with σ chosen, if it was to be."""
        if not self.auto_sigma:
            return self
        return replace(self, kernel_params={**self.kernel_params, "sigma": sigma})

    def build(self) -> tuple[Learner[Any], Kernel]:
        """Fresh objects for one pass; a ParameterError names what is out of range.

        While σ is still to be chosen, the kernel has its default: enough to check the rest.
        """
        learner = self.kind(**self.learner_params)
        chosen = {name: value for name, value in self.kernel_params.items() if value != AUTO}
        kernel = KERNELS[self.kernel](**chosen)
        return learner, kernel


def check(setup: Setup) -> None:
    """Build it once, to see whether its parameters go together."""
    try:
        setup.build()
    except ParameterError as error:
        raise usage(f"{setup.learner}: {error}", LISTING) from None


def lots(seed: int, repeat: int, learner: str) -> tuple[int, ...]:
    """The seed of what a learner draws in one pass, of which other learners know nothing."""
    return seed, repeat, zlib.crc32(learner.encode())


@dataclass(frozen=True)
class PassResult:
    """One pass: its record, and what only some callers ask for."""

    record: RunRecord
    curve: tuple[Integers, Integers]
    """Rounds, and the mistakes up to each of them; thinned."""
    scores: Floats | None
    """f(x) of every round, where it was asked for."""
    warnings: tuple[str, ...]
    norm_drift: float
    outcome: Outcome
    """What theorems speak of."""


class Pass:
    """One learner on its way through one file."""

    def __init__(
        self,
        setup: Setup,
        path: str,
        seed: int,
        repeat: int,
        horizon: int | None,
        keep_scores: bool = False,
        *,
        state: State | None = None,
        frozen: bool = False,
    ) -> None:
        """`horizon` is the number of rounds, where it is known beforehand.

        With `state`, that of a pass before, this one goes on from it; or, if it is `frozen`, only
        predicts with it.
        """
        assert not setup.auto_sigma, "σ is chosen before the first round"
        self.setup = setup
        self.name = setup.learner
        self.seed = seed
        self.repeat = repeat
        self._path = path
        own = lots(seed, repeat, setup.learner)
        self._player = Player(*setup.build(), seed=own, horizon=horizon)
        if state is not None:
            self._player.restore(Stored(state))
        self._frozen = frozen
        if frozen:
            self._player.tally = Tally()
        self._curve = _CurvePoints(self.rounds, self.mistakes)
        self._kept: list[Floats] | None = [] if keep_scores else None

    @property
    def mistakes(self) -> int:
        """Mistakes so far."""
        return self._player.tally.mistakes

    @property
    def rounds(self) -> int:
        """Rounds so far."""
        return self._player.tally.rounds

    def feed(self, piece: Piece) -> Floats:
        """Play a piece; f(x) of its rounds."""
        try:
            play = self._player.judge if self._frozen else self._player.feed
            scores = play(piece.rows, piece.labels)
        except NumericalError as error:
            played = self._player.tally.rounds + error.row + 1
            raise UserError(
                f"round {played} cannot be computed: {error}",
                code=ExitCode.BAD_DATA,
                place=Place(self._path, int(piece.lines[error.row])),
                hint=NUMERICAL_HINTS[error.kind],
            ) from None
        except LimitReachedError as error:
            raise UserError(
                f"{self.name}: {error}",
                code=ExitCode.BAD_DATA,
                hint="allow more with `-p max_support=N`, or demand less with a larger tolerance",
            ) from None
        self._curve.extend(wrong(scores * piece.labels, piece.labels))
        if self._kept is not None:
            self._kept.append(scores)
        return scores

    def state(self) -> State:
        """What another pass can go on from."""
        return self._player.state()

    def params(self) -> tuple[dict[str, ParamValue], dict[str, ParamValue]]:
        """The parameters in force, of the learner and of the kernel."""
        return self._player.learner.params(), self._player.kernel.params()

    def result(self) -> PassResult:
        """What came out."""
        player, tally = self._player, self._player.tally
        learner = player.learner
        found = {} if self._frozen else learner.statistics()
        record = RunRecord(
            learner=self.name,
            params={"kernel": player.kernel.name, **player.kernel.params(), **learner.params()},
            seed=self.seed,
            repeat=self.repeat,
            rounds=tally.rounds,
            mistakes=tally.mistakes,
            mistake_rate=tally.mistakes / max(tally.rounds, 1),
            margin_updates=tally.margin_updates,
            updates=tally.updates,
            halvings=None if (J := found.get("halvings")) is None else int(J),
            zeta=found.get("zeta"),
            support_size=player.f.size,
            norm=player.f.norm,
            near_ties=tally.near_ties,
            seconds=tally.seconds,
        )
        kept = None if self._kept is None else np.concatenate(self._kept)
        warnings = tuple(self._warnings())
        drift, outcome = player.f.norm_drift, outcome_of(player)
        return PassResult(record, self._curve.points(), kept, warnings, drift, outcome)

    def _warnings(self) -> Iterator[str]:
        player, tally = self._player, self._player.tally
        for warning in player.learner.warnings(player.f):
            yield f"{self.name}: {warning}"
        if tally.near_ties > max(SUSPICIOUS_TIES * tally.rounds, 10):
            share = tally.near_ties / tally.rounds
            yield (
                f"{self.name}: f(x) was 0 or next to it in {share:.0%} of the rounds, so these "
                "predictions say little; often --sigma is too small for the data as they are"
            )
        if player.f.norm_drift > SUSPICIOUS_DRIFT:
            drift = player.f.norm_drift
            yield f"{self.name}: the tracked norm of f was off by {drift:.1e} before a halving"


class _CurvePoints:
    """Mistakes so far at evenly spaced rounds: the spacing doubles when there are too many."""

    def __init__(self, rounds: int, mistakes: int) -> None:
        """After so many rounds and mistakes that are not part of the curve."""
        self._spacing = 1
        self._rounds = rounds
        self._mistakes = mistakes
        self._at: list[int] = []
        self._so_far: list[int] = []

    def extend(self, mistaken: np.ndarray) -> None:
        totals = self._mistakes + np.cumsum(mistaken)
        first = -self._rounds % self._spacing or self._spacing
        self._at.extend(range(self._rounds + first, self._rounds + len(totals) + 1, self._spacing))
        self._so_far.extend(totals[first - 1 :: self._spacing].tolist())
        self._rounds += len(totals)
        self._mistakes = int(totals[-1])
        while len(self._at) > CURVE_POINTS:
            self._spacing *= 2
            self._at, self._so_far = self._at[1::2], self._so_far[1::2]

    def points(self) -> tuple[Integers, Integers]:
        at, so_far = self._at, self._so_far
        if not at or at[-1] != self._rounds:
            at, so_far = [*at, self._rounds], [*so_far, self._mistakes]
        return np.array(at), np.array(so_far)


def play_stream(
    stream: Iterable[Piece], passes: Sequence[Pass], played: Callable[[Pass, Piece, Floats], None]
) -> list[PassResult]:
    """Play all passes side by side over one reading of a file, in file order.

    `played` is told what each pass predicted for each piece; then the piece is forgotten.
    """
    for piece in stream:
        for one in passes:
            played(one, piece, one.feed(piece))
    return [one.result() for one in passes]


@dataclass(frozen=True)
class Repetition:
    """How often a file in memory is played, and in which orders."""

    repeats: int
    seed: int
    shuffle: bool

    def order(self, repeat: int, rounds: int) -> Integers | None:
        """The permutation of this repeat: from seed and repeat alone, the same for all learners."""
        if not self.shuffle:
            return None
        return np.random.default_rng([self.seed, repeat]).permutation(rounds)


def play_loaded(
    loaded: Loaded,
    setups: Sequence[Setup],
    repetition: Repetition,
    path: str,
    *,
    keep_scores: bool = False,
    jobs: int = 1,
    watch: Callable[[int, int], None] = lambda rounds, mistakes: None,
) -> Iterator[PassResult]:
    """Play every setup and repeat over a file in memory; results in that order.

    `watch` is told of rounds just played and their mistakes: piece by piece, or with several
    `jobs` (processes that share the file by memory map) pass by pass.
    """
    tasks = list(product(setups, range(repetition.repeats)))
    if jobs == 1 or len(tasks) == 1:
        for setup, repeat in tasks:
            yield play_one(loaded, setup, repetition, repeat, path, keep_scores, watch)
        return
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=min(jobs, len(tasks)), return_as="generator", max_nbytes="1M")
    for result in parallel(
        delayed(play_one)(loaded, setup, repetition, repeat, path, keep_scores)
        for setup, repeat in tasks
    ):
        watch(result.record.rounds, result.record.mistakes)
        yield result


def play_one(
    loaded: Loaded,
    setup: Setup,
    repetition: Repetition,
    repeat: int,
    path: str,
    keep_scores: bool = False,
    watch: Callable[[int, int], None] = lambda rounds, mistakes: None,
) -> PassResult:
    """One pass over one order of a file in memory."""
    rounds = loaded.facts.rounds
    one = Pass(setup, path, repetition.seed, repeat, rounds, keep_scores)
    for piece in loaded.pieces(repetition.order(repeat, rounds)):
        before = one.mistakes
        one.feed(piece)
        watch(len(piece.labels), one.mistakes - before)
    return one.result()
