"""The results file of a sweep: one writer, durable line by line, resumable after anything.

A trial counts as done when its whole line is on the disk. Lines are only ever appended; a last
line without its end is cut before that, lines that are damaged otherwise are reported and stay.
Each line is a JSON object that carries the hash of its own text:

    {"id": ..., "status": "ok", "data": {...}, "run": {...}, "timing": {...}, "error": null,
     "check": ...}

A flipped byte that leaves valid JSON behind is found by `check`. All but `timing` (and the `check`
that covers it) is the same however and wherever a trial was played.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import math
import os
import shlex
import stat
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields, is_dataclass, replace
from functools import lru_cache
from pathlib import Path
from types import NoneType, TracebackType
from typing import Any, TypeAlias, cast, get_args, get_origin, get_type_hints

from ahpatron_cli.atomic import sync_folder
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.records import Json, ParamValue, RunRecord, data_to_json, plain
from ahpatron_cli.sweep.summary import TrialData, TrialRecord

SUFFIX = ".jsonl"
KIND = "ahpatron sweep results"
SCHEMA = 1
OPENING = f'{{"schema": {SCHEMA}, "kind": "{KIND}"'.encode()
"""How every header line begins."""
CHECK_DIGITS = 16
_FIXED = ("schema", "kind")


class DamagedLineError(ValueError):
    """A line that is not as it was written; the text says why."""


@dataclass(frozen=True)
class Header:
    """Versions, BLAS and command of the sweep that wrote the lines after it."""

    facts: Mapping[str, Any]


@dataclass(frozen=True)
class Timing:
    """What is never the same twice."""

    seconds: float | None
    """Learning only."""
    wall_seconds: float


_NO_TIME = Timing(None, 0.0)


def flat_trial(trial: TrialRecord) -> Json:
    """A trial as one row of a table: plain values, each parameter a column `param_NAME`."""
    data, record = trial.data, trial.data.record
    run: Json = dict.fromkeys(_FLAT_FIELDS) if trial.run is None else dict(vars(trial.run))
    metrics = run.get("metrics")
    row = {
        "id": trial.id,
        "status": "failed" if trial.run is None else "ok",
        "data": record.path,
        "sha256": record.sha256,
        "features": record.features,
        "limit": data.limit,
        "scale": data.scale,
        "positive": data.positive,
        "shuffled": data.shuffled,
        "prefix": data.prefix,
        "learner": trial.learner,
        "seed": trial.seed,
        "repeat": trial.repeat,
        **{f"param_{name}": plain(value) for name, value in trial.params.items()},
        **{name: run[name] for name in _FLAT_FIELDS},
        "error": trial.error,
    }
    if data.costs:
        row["costs"] = " ".join(data.cost_words)
    return row if metrics is None else row | vars(metrics)


def encode_header(facts: Mapping[str, Any]) -> bytes:
    """A header line."""
    return _with_check({"schema": SCHEMA, "kind": KIND, **facts})


def encode_trial(trial: TrialRecord, timing: Timing) -> bytes:
    """A trial's line."""
    data = trial.data
    line = {
        "id": trial.id,
        "status": "failed" if trial.run is None else "ok",
        "data": {
            **data_to_json(data.record),
            "limit": data.limit,
            "scale": data.scale,
            "positive": data.positive,
            "shuffled": data.shuffled,
            **({} if data.prefix is None else {"prefix": data.prefix}),
            **({} if data.auto_sigma is None else {"auto_sigma": data.auto_sigma}),
            **({"costs": data.costs} if data.costs else {}),
        },
        "run": _run_json(trial),
        "timing": vars(timing),
        "error": trial.error,
    }
    return _with_check(line)


_NOT_STORED = ("seconds", "metrics", "classes", "confusion", "window", "fading", "drifts", "costs")
"""The labels of the classes are with the data; a confusion matrix may have a million entries."""
_FLAT_FIELDS = tuple(
    one.name
    for one in fields(RunRecord)
    if one.name not in ("learner", "params", "seed", "repeat", "this_file", *_NOT_STORED[1:])
)
_RUN_FIELDS = tuple(one.name for one in fields(RunRecord) if one.name not in _NOT_STORED)


def _run_json(trial: TrialRecord) -> Json:
    """The fields of `runs[]` without seconds; of a failed trial only what was asked for."""
    source = trial if trial.run is None else trial.run
    run = {name: getattr(source, name, None) for name in _RUN_FIELDS}
    run["params"] = {name: plain(value) for name, value in source.params.items()}
    if trial.run is not None and trial.run.metrics is not None:
        run["metrics"] = dict(vars(trial.run.metrics))
    return run


def _with_check(content: Json) -> bytes:
    text = json.dumps(content, allow_nan=False, ensure_ascii=True)
    return f'{text[:-1]}, "check": "{_digest(text)}"}}\n'.encode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK_DIGITS]


def decode(line: bytes) -> Header | TrialRecord:
    """Read a line (without its end) back; DamagedLineError if it is not as it was written."""
    try:
        text = line.decode("ascii")
        body, _, tail = text.rpartition(', "check": "')
        if tail != f'{_digest(body + "}")}"}}':
            raise DamagedLineError("its checksum does not match")
        content = json.loads(body + "}")
        return _header(content) if line.startswith(OPENING) else _trial(content)
    except DamagedLineError:
        raise
    except RecursionError:
        raise DamagedLineError("nested too deeply") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedLineError(f"not a line of a sweep ({type(error).__name__})") from None


def _header(content: Json) -> Header:
    return Header({name: value for name, value in content.items() if name not in _FIXED})


def _trial(content: Json) -> TrialRecord:
    """A trial whose parts all have the right types; a failed one has only what was asked for."""
    run = None
    if content["status"] == "ok":
        run = _check_of(RunRecord)({**content["run"], "seconds": content["timing"]["seconds"]})
    asked = run or _check_of(_Asked)(content["run"])
    error = _check_of(str | None)(content["error"])
    identity = _check_of(str)(content["id"])
    data = _data(json.dumps(content["data"]))  # of which a file has few
    who = asked.learner, asked.params, asked.seed, asked.repeat
    return TrialRecord(identity, data, *who, run, error)


@dataclass(frozen=True)
class _Asked:
    """What a failed trial was to play."""

    learner: str
    params: Mapping[str, ParamValue]
    seed: int
    repeat: int


@lru_cache
def _data(text: str) -> TrialData:
    content = json.loads(text)
    return cast(TrialData, _check_of(TrialData)({**content, "record": content}))


Check: TypeAlias = Callable[[Any], Any]


@lru_cache
def _check_of(kind: Any) -> Check:
    """What makes a value of this type of plain values; TypeError or KeyError if they do not fit.

    Fields that have a default may be absent: older versions did not write them.
    Whole numbers are counts, and numbers are finite; but `plain` wrote an infinite parameter as
    text. Types are looked up once, for a results file has many lines.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        return _record_check(cast(type, kind))
    if kind == ParamValue:
        return _checked_param
    if NoneType in parts:
        inner = _check_of(parts[0])
        return lambda value: None if value is None else inner(value)
    if origin is Mapping:
        inner = _check_of(parts[1])
        return lambda value: {name: inner(one) for name, one in value.items()}
    if origin is tuple and Ellipsis in parts:
        inner = _check_of(parts[0])
        return lambda value: tuple(map(inner, value))
    if origin is tuple:
        every = [_check_of(part) for part in parts]
        return lambda value: tuple(check(one) for check, one in zip(every, value, strict=True))
    return {int: _checked_count, float: _checked_number}.get(kind) or _exactly(kind)


def _record_check(kind: type) -> Check:
    hints = get_type_hints(kind)
    needed = [
        (one.name, _check_of(hints[one.name])) for one in fields(kind) if one.default is MISSING
    ]
    others = [
        (one.name, _check_of(hints[one.name])) for one in fields(kind) if one.default is not MISSING
    ]

    def check(value: Any) -> Any:
        given = {name: check(value[name]) for name, check in needed}
        given |= {name: check(value[name]) for name, check in others if name in value}
        return kind(**given)

    return check


def _checked_param(value: Any) -> ParamValue:
    if type(value) not in (int, float, str):
        raise TypeError
    return math.inf if value == "inf" else cast(ParamValue, value)


def _checked_count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _checked_number(value: Any) -> float:
    if type(value) is int:
        value = float(value)
    if type(value) is not float or not math.isfinite(value):
        raise TypeError
    return value


def _exactly(kind: type) -> Check:
    def check(value: Any) -> Any:
        if type(value) is not kind:
            raise TypeError
        return value

    return check


_BUSY = (errno.EAGAIN, errno.EACCES)


@dataclass
class Contents:
    """What a results file holds."""

    trials: dict[str, TrialRecord] = field(default_factory=dict)
    """By id. One that was played is never replaced by a failure; else the later line counts."""
    headers: list[Mapping[str, Any]] = field(default_factory=list)
    damaged: list[tuple[int, str]] = field(default_factory=list)
    """Number of each damaged line, and what is wrong with it."""
    torn: int = 0
    """Bytes after the last line end."""

    def add(self, trial: TrialRecord) -> None:
        """Take a trial in."""
        known = self.trials.get(trial.id)
        if known is None or known.run is None or trial.run is not None:
            self.trials[trial.id] = trial

    def latest(self) -> list[TrialRecord]:
        """Each setting and order once: older versions of the algorithms may have played it, too."""
        found = {}
        for trial in self.trials.values():
            params = tuple(sorted(trial.params.items()))
            data = *trial.data.identity, trial.data.prefix
            key = data, trial.learner, params, trial.seed, trial.repeat
            found[key] = trial
        return list(found.values())


def looks_like_json(path: str) -> bool:
    """Whether to read this as results: no line of a LIBSVM file begins with a bracket."""
    with suppress(OSError):  # the reader of data files says what is wrong
        if path != "-" and stat.S_ISREG(Path(path).stat().st_mode):
            with Path(path).open("rb") as stream:
                return stream.read(1) in (b"{", b"[")
    return False


def read_results(path: str) -> Contents:
    """Read a results file without changing it; another process may be writing to it."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror}", ExitCode.NO_INPUT) from None
    found = parse_results(content)
    if found is None:
        raise UserError(
            "this is neither a results file of `ahpatron sweep`, nor a model, nor LIBSVM data",
            code=ExitCode.BAD_DATA,
            place=Place(path),
            hint="`ahpatron sweep DATA --out FILE.jsonl` makes a results file",
        )
    return found


def parse_results(content: bytes) -> Contents | None:
    """What the bytes of a results file hold; None if it is somebody else's file.

    It is ours if it is empty, if any line is ours, or if it is a header line cut short.
    """
    found = Contents()
    head = content[: len(OPENING)]
    lines = content.split(b"\n")
    found.torn = len(lines.pop())
    for number, line in enumerate(lines, 1):
        try:
            item = decode(line)
        except DamagedLineError as damage:
            found.damaged.append((number, str(damage)))
            continue
        if isinstance(item, Header):
            found.headers.append(item.facts)
        else:
            found.add(item)
    ours = not content or found.headers or found.trials
    return found if ours or head == OPENING[: len(head)] else None


def merge_results(paths: Sequence[str]) -> tuple[bytes, Contents]:
    """The lines of several results files as one, and what they hold; each trial once.

    Refused: files of one name but of unlike content, and a trial that came out in two ways.
    """
    merged = Contents()
    lines: dict[str, bytes] = {}
    headers: dict[bytes, Mapping[str, Any]] = {}
    hashes: dict[str, tuple[str | None, str]] = {}
    outcomes: dict[str, tuple[bytes, str]] = {}
    for path in paths:
        contents = read_results(path)
        merged.damaged += contents.damaged
        for line in Path(path).read_bytes().split(b"\n")[:-1]:
            try:
                item = decode(line)
            except DamagedLineError:
                continue
            if isinstance(item, Header):
                headers[line] = item.facts
                continue
            record = item.data.record
            sha256, where = hashes.setdefault(record.path, (record.sha256, path))
            if sha256 != record.sha256:
                problem = f"{record.path} has another content in {where}"
                raise _conflict(path, problem, "merge results of the same data only")
            if item.run is not None:
                played = replace(item.data, auto_sigma=None), replace(item.run, seconds=0.0)
                essence = encode_trial(replace(item, data=played[0], run=played[1]), _NO_TIME)
                known, where = outcomes.setdefault(item.id, (essence, path))
                if known != essence:
                    problem = f"trial {item.id} ({item.learner}) has a different result in {where}"
                    hint = "`ahpatron inspect` of each shows the versions; merge those alike only"
                    raise _conflict(path, problem, hint)
            merged.add(item)
            if merged.trials[item.id] is item:
                lines[item.id] = line
    merged.headers = list(headers.values())
    return b"".join(line + b"\n" for line in (*headers, *lines.values())), merged


def _conflict(path: str, problem: str, hint: str) -> UserError:
    return UserError(problem, code=ExitCode.BAD_DATA, place=Place(path), hint=hint)


class ResultsFile:
    """An open results file, ours alone; use with `with`."""

    def __init__(self, path: str, facts: Mapping[str, Any]) -> None:
        """Open or create it, lock it, and bring it into a state that can be appended to.

        `facts` go into a header line: at the top, and again before a trial that is added where the
        last header says otherwise.
        """
        self._path = path
        self._descriptor = _open(path)
        try:
            _lock(path, self._descriptor)
            content = self._read()
            found = parse_results(content)
            if found is None:  # never cut or append to somebody else's file
                raise UserError(
                    "this is not a results file of `ahpatron sweep`; nothing was changed",
                    code=ExitCode.CANNOT_CREATE,
                    place=Place(path),
                    hint="choose another name for --out",
                )
            self.contents = found
            self._end = len(content) - self.contents.torn
            if self.contents.torn:
                self._truncate()
            self._facts = facts
            if not self.contents.headers:
                self._write_header()
        except BaseException:
            os.close(self._descriptor)
            raise

    def add(self, trial: TrialRecord, timing: Timing) -> None:
        """Make a trial durable; a write that fails is undone."""
        if self.contents.headers[-1] != self._facts:
            self._write_header()
        self._append(encode_trial(trial, timing))
        self.contents.add(trial)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        os.close(self._descriptor)  # which also unlocks it

    def _write_header(self) -> None:
        self._append(encode_header(self._facts))
        self.contents.headers.append(self._facts)

    def _check_name(self) -> None:
        """Somebody may have deleted or replaced the file: then nobody would find the results."""
        try:
            found = os.path.samestat(Path(self._path).stat(), os.fstat(self._descriptor))
        except OSError:
            found = False
        if not found:
            raise UserError(
                "the results file was deleted or replaced while the sweep was writing to it",
                code=ExitCode.IO_ERROR,
                place=Place(self._path),
                hint="what was in it is lost; the same command begins a new one",
            )

    def _read(self) -> bytes:
        size = os.fstat(self._descriptor).st_size
        return b"".join(iter(lambda: os.read(self._descriptor, max(size, 1)), b""))

    def _append(self, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.pwrite(self._descriptor, rest, self._end + len(line) - len(rest)) :]
            os.fsync(self._descriptor)
        except OSError as error:
            self._undo()
            problem = f"the results cannot be written: {error.strerror}"
            hint = "every result before this one is kept; make room, and the same command continues"
            raise UserError(
                problem, code=ExitCode.IO_ERROR, place=Place(self._path), hint=hint
            ) from None
        except BaseException:  # a signal: the line may be half written
            self._undo()
            raise
        self._end += len(line)
        self._check_name()

    def _undo(self) -> None:
        """Cut what was written of a line; if even that fails, the next start does it."""
        with suppress(OSError):
            self._truncate()

    def _truncate(self) -> None:
        os.ftruncate(self._descriptor, self._end)
        os.fsync(self._descriptor)


def check_results_path(path: str, option: str = "--out") -> None:
    """Refuse what cannot hold results, before anything is read or played."""
    target = Path(path)
    if target.suffix != SUFFIX and not target.is_dir():
        raise usage(
            f"{option} must end in {SUFFIX}, got {path!r}",
            f"use {option} {shlex.quote(str(target.with_suffix(SUFFIX)))}; "
            "`ahpatron inspect FILE.jsonl --format csv` shows the results in other formats",
        )
    if target.exists() and not target.is_file():
        kind = "a folder" if target.is_dir() else "not a regular file"
        problem = f"results are kept in a file, and this is {kind}"
        raise _fault(path, problem, ExitCode.CANNOT_CREATE)
    if not target.absolute().parent.is_dir():
        problem = "the results file cannot be created: No such file or directory"
        raise _fault(path, problem, ExitCode.CANNOT_CREATE)


def _open(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        problem = f"the results file cannot be created: {error.strerror}"
        raise _fault(path, problem, ExitCode.CANNOT_CREATE) from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _fault(path, "results are kept in a regular file", ExitCode.CANNOT_CREATE)
    sync_folder(Path(path).parent)
    return descriptor


def _lock(path: str, descriptor: int) -> None:
    """`flock`: it goes with the open file, whose descriptor no worker inherits."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in _BUSY:
            raise _fault(path, f"cannot be locked: {error.strerror}", ExitCode.IO_ERROR) from None
        raise UserError(
            "another sweep is writing to this results file",
            code=ExitCode.LOCKED,
            place=Place(path),
            hint="wait for it, or give this one a file of its own; "
            "`ahpatron inspect A.jsonl B.jsonl --merge C.jsonl` puts them together later",
        ) from None


def _fault(path: str, problem: str, code: ExitCode) -> UserError:
    return UserError(problem, code=code, place=Place(path))
