"""One call of `ahpatron run`: file after file is played, and what happened is told on the way."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ahpatron_cli import __version__
from ahpatron_cli.cli.console import Conversation
from ahpatron_cli.cli.parameters import settle_sigma
from ahpatron_cli.core.errors import ParameterError
from ahpatron_cli.core.rows import Floats, Rows
from ahpatron_cli.data.dataset import Facts, Loaded, Piece, Preparation, Stream, load
from ahpatron_cli.data.libsvm.scan import scan
from ahpatron_cli.data.sigma import first_rows
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.errors import usage
from ahpatron_cli.output.predictions import PredictionWriter
from ahpatron_cli.records import CertifiedRecord, Curve, DataRecord, Report
from ahpatron_cli.runner import Pass, PassResult, Repetition, Setup, play_loaded, play_stream

if TYPE_CHECKING:
    from ahpatron_cli.certify import Certifier
    from ahpatron_cli.data.libsvm.reader import SvmReader
    from ahpatron_cli.models.checkpoint import Keeper


class Session:
    """The settings that all files of a call share."""

    def __init__(
        self,
        setups: Sequence[Setup],
        preparation: Preparation,
        repetition: Repetition,
        jobs: int,
        talk: Conversation,
        predictions: PredictionWriter | None,
        keeper: Keeper | None = None,
        certifier: Certifier | None = None,
        cache: Path | None = None,
    ) -> None:
        """Decoded files are kept in the folder `cache`, if there is one."""
        self._keeper = keeper
        self._setups = [keeper.setup()] if keeper and keeper.resumes else setups
        self._preparation = keeper.prepare(preparation) if keeper else preparation
        self._repetition = repetition
        self._jobs = jobs
        self._talk = talk
        self._predictions = predictions
        self._certifier = certifier
        self._cache = cache
        self._several_files = self._full_names = False
        self._load_seconds = 0.0
        self._playing: Sequence[Setup] = self._setups
        """The setups for the file that is being played: its σ is in them."""
        self.curves: list[Curve] = []
        """The learning curve of each learner on each file played so far."""

    def check(self, paths: Sequence[str]) -> None:
        """Refuse what cannot be played, before anything is."""
        if paths.count("-") > 1:
            raise usage("standard input (-) can be read only once")
        for path in paths:
            if path.endswith(".npz"):
                from ahpatron_cli.models.file import looks_like_model

                if looks_like_model(path):
                    raise usage(f"{path} is a model, not data", f"--resume {path} goes on with it")
        if self._certifier:
            self._certifier.check(paths)
        names = [Path(path).name for path in paths]
        self._several_files = len(paths) > 1
        self._full_names = len(set(names)) < len(names)

    def play(self, path: str) -> Report:
        """Play all learners and repeats over one file."""
        started = time.perf_counter()
        with ExitStack() as opened:
            source = opened.enter_context(open_source(path))
            path = source.name
            if self._fits_a_stream():
                source, reader = self._kept_rows(source, opened)
                facts, results = self._play_stream(source, reader)
                learning = sum(result.record.seconds for result in results)
                self._load_seconds = max(time.perf_counter() - started - learning, 0.0)
            else:
                facts, results = self._play_loaded(source)
        self._remember_curves(path, results)
        self._tell(path, facts, results)
        return Report(
            version=__version__,
            data=DataRecord(path, facts.rounds, facts.features, facts.labels, facts.sha256),
            runs=[result.record for result in results],
            load_seconds=self._load_seconds,
            shuffled=self._repetition.shuffle,
            notes=facts.notes,
            certified=self._certified(path, facts, results),
        )

    def _certified(
        self, path: str, facts: Facts, results: Sequence[PassResult]
    ) -> list[CertifiedRecord] | None:
        if self._certifier is None:
            return None
        kernel = self._playing[0].build()[1]  # the same for all
        streamed = self._fits_a_stream()
        return self._certifier.certified(path, facts, results, kernel, streamed=streamed)

    def _fits_a_stream(self) -> bool:
        """One pass in file order needs no row twice."""
        return self._repetition.repeats == 1 and not self._repetition.shuffle

    def _choose_sigma(self, path: str, rows: Rows) -> None:
        """Put the σ that these first rows suggest where it was left to them, and say it."""
        prefix = f"{_short(path)}: " if self._several_files else ""
        self._playing, said = settle_sigma(self._setups, path, rows)
        self._talk.note(prefix + said)

    def _play_stream(
        self, source: Source, reader: SvmReader | None
    ) -> tuple[Facts, list[PassResult]]:
        path = source.name
        stream = Stream(source, self._preparation, reader)
        pieces: Iterable[Piece] = stream
        self._playing = self._setups
        if any(setup.auto_sigma for setup in self._setups):
            rows, pieces = first_rows(stream)
            self._choose_sigma(path, rows)
        seed, keeper = self._repetition.seed, self._keeper
        horizon = None if keeper and keeper.resumes else self._horizon(source)
        setups = self._setups if keeper and keeper.resumes else self._playable(path, horizon)
        passes = [
            keeper.make_pass(setup, path, seed, horizon)
            if keeper
            else Pass(setup, path, seed, 0, horizon)
            for setup in setups
        ]
        rounds = 0
        with self._talk.progress(source.size, _short(path)) as line:

            def played(one: Pass, piece: Piece, scores: Floats) -> None:
                nonlocal rounds
                if self._predictions:
                    first = one.rounds - len(scores) + 1
                    self._predictions.write(path, one.name, 0, first, piece, scores)
                if keeper:
                    keeper.passed(one, stream)
                if one is passes[-1]:
                    rounds += len(scores)
                    line.update(source.position, passes[0].mistakes, rounds)

            left = keeper.pieces(pieces) if keeper else pieces
            results = play_stream(left, passes, played)
        facts = stream.facts()
        if keeper:
            keeper.finish(passes[0], stream)
        return facts, results

    def _playable(self, path: str, horizon: int | None) -> list[Setup]:
        """The setups that can play this stream; what the others lack is said."""
        playable = []
        for setup in self._playing:
            try:
                Pass(setup, path, self._repetition.seed, 0, horizon)
            except ParameterError as error:
                if len(self._setups) == 1:
                    hint = f"give `-p {error.name}=N`" if error.kind == "missing" else None
                    raise usage(str(error), hint) from None
                self._talk.warn(f"{error}; left out: {setup.learner}")
            else:
                playable.append(setup)
        if not playable:
            raise usage("none of the chosen learners can play this stream")
        return playable

    def _horizon(self, source: Source) -> int | None:
        """The number of rounds, where a learner asks for it and the file can be read twice."""
        asked = any(setup.wants_horizon for setup in self._setups)
        if not asked or source.size is None or source.is_stdin:
            return None
        return scan(source.name, self._preparation.limit).rows

    def _play_loaded(self, source: Source) -> tuple[Facts, list[PassResult]]:
        path = source.name
        started = time.perf_counter()
        loaded = self._load(source)
        self._load_seconds = time.perf_counter() - started
        self._playing = self._setups
        if any(setup.auto_sigma for setup in self._setups):
            self._choose_sigma(path, loaded.first_rows())
        if self._keeper:
            return loaded.facts, [self._play_kept(loaded, path, self._keeper)]
        setups = self._playable(path, loaded.facts.rounds)
        rounds = mistakes = 0
        total = loaded.facts.rounds * len(setups) * self._repetition.repeats
        results = []
        with self._talk.progress(total, _short(path)) as line:

            def watch(more_rounds: int, more_mistakes: int) -> None:
                nonlocal rounds, mistakes
                rounds, mistakes = rounds + more_rounds, mistakes + more_mistakes
                line.update(rounds, mistakes, rounds)

            for result in play_loaded(
                loaded,
                setups,
                self._repetition,
                path,
                keep_scores=self._predictions is not None,
                jobs=self._jobs,
                watch=watch,
            ):
                if self._predictions and result.scores is not None:
                    record, first = result.record, 1
                    order = self._repetition.order(record.repeat, loaded.facts.rounds)
                    for piece in loaded.pieces(order):
                        scores = result.scores[first - 1 : first - 1 + len(piece.labels)]
                        name, repeat = record.learner, record.repeat
                        self._predictions.write(path, name, repeat, first, piece, scores)
                        first += len(scores)
                results.append(result)
        return loaded.facts, results

    def _cached(self, source: Source) -> bool:
        """Only a file that can be read again is looked for in the cache."""
        return self._cache is not None and source.size is not None and not source.is_stdin

    def _kept_rows(self, source: Source, opened: ExitStack) -> tuple[Source, SvmReader | None]:
        """With --cache, a reader that takes the rows from there, or puts them there."""
        if self._cache is None or not self._cached(source):
            return source, None
        from ahpatron_cli.data.row_cache import RecordingReader, kept_reader

        most = (self._preparation.max_features, self._preparation.limit)
        found = kept_reader(source, self._cache, *most)
        if found is not None:
            return source, found
        source = opened.enter_context(open_source(source.name))  # the other was read for its hash
        return source, RecordingReader(source, self._cache, *most)

    def _load(self, source: Source) -> Loaded:
        """The whole file; a model wants what the cache does not have, the scaling."""
        sha256 = source.sha256() if self._cached(source) and not self._keeper else None
        if sha256 is None:
            return load(source, self._preparation)
        from ahpatron_cli.data.cache import decoded

        return decoded(source.name, sha256, self._preparation, self._cache)

    def _play_kept(self, loaded: Loaded, path: str, keeper: Keeper) -> PassResult:
        """One pass over a file in memory that can be kept, or goes on."""
        rounds = loaded.facts.rounds
        horizon = None if keeper.model else rounds
        (setup,) = self._setups if keeper.model else self._playable(path, horizon)
        one = keeper.make_pass(setup, path, self._repetition.seed, horizon)
        before = one.rounds
        with self._talk.progress(rounds, _short(path)) as line:
            for piece in loaded.pieces(self._repetition.order(0, rounds)):
                scores = one.feed(piece)
                if self._predictions:
                    first = one.rounds - len(scores) + 1
                    self._predictions.write(path, one.name, 0, first, piece, scores)
                line.update(one.rounds - before, one.mistakes, one.rounds)
        keeper.finish(one, loaded)
        return one.result()

    def _remember_curves(self, path: str, results: Sequence[PassResult]) -> None:
        """The mean over repeats: all repeats of a file have the same rounds."""
        for learner in dict.fromkeys(result.record.learner for result in results):
            mine = [result for result in results if result.record.learner == learner]
            shown = path if self._full_names else _short(path)
            label = f"{shown}: {learner}" if self._several_files else learner
            mistakes = np.mean([result.curve[1] for result in mine], axis=0)
            self.curves.append(Curve(label, mine[0].curve[0], mistakes))

    def _tell(self, path: str, facts: Facts, results: Sequence[PassResult]) -> None:
        prefix = f"{_short(path)}: " if self._several_files else ""
        for note in facts.notes:
            self._talk.note(prefix + note)
        if facts.sorted_labels and not self._repetition.shuffle:
            self._talk.warn(f"{prefix}the labels come sorted; --shuffle plays a random order")
        for warning in dict.fromkeys(text for result in results for text in result.warnings):
            self._talk.warn(prefix + warning)
        drift = max(result.norm_drift for result in results)
        self._talk.detail(f"{prefix}sha256 {facts.sha256}; largest drift of ‖f‖ {drift:.1e}")


def _short(path: str) -> str:
    return Path(path).name
