"""The results file of a sweep: one writer, durable line by line, resumable after anything.

A trial counts as done when its whole line is on the disk. Lines are only ever appended; a last
line without its end is cut before that, lines that are damaged otherwise are reported and stay.
Each line is a JSON object that ends with the hash of its own text:

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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, cast

from ahpatron_cli.atomic import sync_folder
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.records import (
    DataRecord,
    Json,
    Metrics,
    RunRecord,
    ThisFile,
    data_to_json,
    plain_params,
    run_to_json,
    setting_key,
)
from ahpatron_cli.sweep.summary import TrialData, TrialRecord

SUFFIX = ".jsonl"
KIND = "ahpatron sweep results"
SCHEMA = 1
OPENING = f'{{"schema": {SCHEMA}, "kind": "{KIND}"'.encode()
"""How every header line begins."""
CHECK_DIGITS = 16


class DamagedLineError(Exception):
    """A line that is not as it was written; the text says why."""


def flat_trial(trial: TrialRecord) -> Json:
    """A trial as one row of a table: plain values, each parameter a column `param_NAME`."""
    data, record = trial.data, trial.data.record
    row = {
        "id": trial.id,
        "status": "failed" if trial.run is None else "ok",
        "data": record.path,
        "sha256": record.sha256,
        "features": record.features,
        **{name: getattr(data, name) for name in (*_PREPARATION, "prefix")},
        "learner": trial.learner,
        "seed": trial.seed,
        "repeat": trial.repeat,
        **{f"param_{name}": value for name, value in plain_params(trial.params).items()},
        **{name: getattr(trial.run, name, None) for name in _FLAT_FIELDS},
        "error": trial.error,
    }
    if data.costs:
        row["costs"] = " ".join(data.cost_words)
    return row | vars(trial.run.metrics) if trial.run and trial.run.metrics else row


def encode_header(facts: Mapping[str, Any]) -> bytes:
    """A header line."""
    return _with_check({"schema": SCHEMA, "kind": KIND, **facts})


def encode_trial(trial: TrialRecord) -> bytes:
    """A trial's line; only `timing` is never the same twice."""
    data = trial.data
    optional = {
        "prefix": data.prefix,
        "auto_sigma": data.auto_sigma,
        "costs": data.costs or None,
        "table": data.table or None,
    }
    line = {
        "id": trial.id,
        "status": "failed" if trial.run is None else "ok",
        "data": {
            **data_to_json(data.record),
            **{name: getattr(data, name) for name in _PREPARATION},
            **{name: value for name, value in optional.items() if value is not None},
        },
        "run": _run_json(trial),
        "timing": {
            "seconds": trial.run and trial.run.seconds,
            "wall_seconds": trial.wall_seconds,
        },
        "error": trial.error,
    }
    return _with_check(line)


_PREPARATION = ("limit", "scale", "positive", "shuffled")
_STORED = tuple(
    one.name
    for one in fields(RunRecord)
    if one.name not in ("seconds", "classes", "confusion", "window", "drifts", "costs")
)
"""The labels of the classes are with the data; a confusion matrix may have a million entries."""
_ELSEWHERE = {"learner", "params", "seed", "repeat", "this_file", "metrics"}
_FLAT_FIELDS = tuple(
    one.name for one in fields(RunRecord) if one.name in {*_STORED, "seconds"} - _ELSEWHERE
)


def _run_json(trial: TrialRecord) -> Json:
    """The fields of `runs[]` without seconds; of a failed trial only what was asked for."""
    if trial.run is None:
        run = {name: getattr(trial, name, None) for name in _STORED if name != "metrics"}
        return run | {"params": plain_params(trial.params)}
    run = run_to_json(trial.run)
    return {name: run[name] for name in _STORED if name in run}


def _with_check(content: Json) -> bytes:
    text = json.dumps(content, allow_nan=False, ensure_ascii=True)
    return f'{text[:-1]}, "check": "{_digest(text)}"}}\n'.encode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK_DIGITS]


def decode(line: bytes) -> Json | TrialRecord:
    """A line (without its end) as a trial or, of a header line, its facts.

    DamagedLineError if it is not as it was written.
    """
    try:
        text = line.decode("ascii")
        body, _, tail = text.rpartition(', "check": "')
        if tail != f'{_digest(body + "}")}"}}':
            raise DamagedLineError("its checksum does not match")
        content = json.loads(body + "}")
        if line.startswith(OPENING):
            return {name: content[name] for name in content if name not in ("schema", "kind")}
        return _trial(content)
    except RecursionError:
        raise DamagedLineError("nested too deeply") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedLineError(f"not a line of a sweep ({type(error).__name__})") from None


def _trial(content: Json) -> TrialRecord:
    """A trial whose parts all have the right types; a failed one has only what was asked for."""
    run, asked = None, content["run"]
    if content["status"] == "ok":
        run = _record(RunRecord, asked | {"seconds": content["timing"]["seconds"]})
    data = _data(json.dumps(content["data"]))  # of which a file has few
    parts = {"id": content["id"], "data": data, "run": run, "error": content["error"]}
    return cast(TrialRecord, _record(TrialRecord, asked | parts))


@lru_cache
def _data(text: str) -> TrialData:
    content = json.loads(text)
    return cast(TrialData, _record(TrialData, content | {"record": content}))


def _record(kind: type, content: Json) -> Any:
    """A record of plain values; TypeError or KeyError if they do not fit.

    Fields that have a default may be absent: older versions did not write them.
    """
    checks = _checks(kind)
    given = {name: check(content[name]) for name, check in checks.items() if name in content}
    return kind(**given)


@lru_cache
def _checks(kind: type) -> dict[str, Callable[[Any], Any]]:
    """What makes of a plain value that of a field, for each that results files have."""
    return {one.name: _check(one.type) for one in fields(kind) if _bare(one.type) in _CHECKS}


def _check(annotation: Any) -> Callable[[Any], Any]:
    check = _CHECKS[_bare(annotation)]
    if _bare(annotation) == annotation:
        return check
    return lambda value: None if value is None else check(value)


def _bare(annotation: Any) -> str:
    return str(annotation).removesuffix(" | None")


def _exactly(*kinds: type) -> Callable[[Any], Any]:
    def check(value: Any) -> Any:
        if type(value) not in kinds:
            raise TypeError
        return value

    return check


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError
    return float(value)


_word = _exactly(int, float, str)
_CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "str": _exactly(str),
    "bool": _exactly(bool),
    "int": _count,
    "float": _number,
    # `plain` wrote an infinite parameter as text
    "Mapping[str, ParamValue]": lambda values: {
        name: math.inf if value == "inf" else _word(value)
        for name, value in values.items()
        if value is not None
    },
    "tuple[float | None, ...]": lambda values: tuple(map(_check("float | None"), values)),
    "tuple[tuple[float | str, float], ...]": lambda pairs: tuple(
        (label if type(label) is str else _number(label), _number(cost)) for label, cost in pairs
    ),
    "tuple[tuple[str, str], ...]": lambda pairs: tuple(
        (_exactly(str)(name), _exactly(str)(text)) for name, text in pairs
    ),
    "DataRecord": partial(_record, DataRecord),
    "ThisFile": partial(_record, ThisFile),
    "Metrics": partial(_record, Metrics),
    "TrialData": _exactly(TrialData),
    "RunRecord": _exactly(RunRecord),
}
"""By the declared type of a field; whole numbers are counts, and numbers are finite."""


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
            data = *trial.data.identity, trial.data.prefix
            found[data, setting_key(trial), trial.seed, trial.repeat] = trial
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
        found = parse_results(Path(path).read_bytes())
    except OSError as error:
        raise _fault(path, f"cannot be read: {error.strerror}", ExitCode.NO_INPUT) from None
    if found is None:
        problem = "this is neither a results file of `ahpatron sweep`, nor a model, nor LIBSVM data"
        hint = "`ahpatron sweep DATA --out FILE.jsonl` makes a results file"
        raise _fault(path, problem, ExitCode.BAD_DATA, hint)
    return found


def parse_results(content: bytes) -> Contents | None:
    """What the bytes of a results file hold; None if it is somebody else's file.

    It is ours if it is empty, if any line is ours, or if it is a header line cut short.
    """
    found = Contents(torn=len(content) - content.rfind(b"\n") - 1)
    for number, (_, item) in enumerate(_lines(content), 1):
        if isinstance(item, TrialRecord):
            found.add(item)
        elif isinstance(item, DamagedLineError):
            found.damaged.append((number, str(item)))
        else:
            found.headers.append(item)
    ours = found.headers or found.trials or OPENING.startswith(content[: len(OPENING)])
    return found if ours else None


def _lines(content: bytes) -> Iterator[tuple[bytes, Json | TrialRecord | DamagedLineError]]:
    """The whole lines of a results file, and what each says."""
    for line in content.split(b"\n")[:-1]:
        try:
            yield line, decode(line)
        except DamagedLineError as damage:
            yield line, damage


def merge_results(paths: Sequence[str]) -> tuple[bytes, Contents]:
    """The lines of several results files, all read before, as one, and what they hold.

    Each trial is there once. Refused: files of one name but of unlike content, and a trial that
    came out in two ways.
    """
    merged = Contents()
    lines: dict[str, bytes] = {}
    headers: dict[bytes, Mapping[str, Any]] = {}
    hashes: dict[str, tuple[str | None, str]] = {}
    outcomes: dict[str, tuple[bytes, str]] = {}
    for path in paths:
        for line, item in _lines(Path(path).read_bytes()):
            if isinstance(item, DamagedLineError):
                continue
            if not isinstance(item, TrialRecord):
                headers[line] = item
                continue
            record = item.data.record
            sha256, where = hashes.setdefault(record.path, (record.sha256, path))
            if sha256 != record.sha256:
                problem = f"{record.path} has another content in {where}"
                hint = "merge results of the same data only"
                raise _fault(path, problem, ExitCode.BAD_DATA, hint)
            if item.run is not None:
                data, run = replace(item.data, auto_sigma=None), replace(item.run, seconds=0.0)
                essence = encode_trial(replace(item, data=data, run=run, wall_seconds=0.0))
                known, where = outcomes.setdefault(item.id, (essence, path))
                if known != essence:
                    problem = f"trial {item.id} ({item.learner}) has a different result in {where}"
                    hint = "`ahpatron inspect` of each shows the versions; merge those alike only"
                    raise _fault(path, problem, ExitCode.BAD_DATA, hint)
            merged.add(item)
            if merged.trials[item.id] is item:
                lines[item.id] = line
    merged.headers = list(headers.values())
    return b"".join(line + b"\n" for line in (*headers, *lines.values())), merged


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
            with os.fdopen(self._descriptor, "rb", closefd=False) as stream:
                content = stream.read()
            found = parse_results(content)
            if found is None:  # never cut or append to somebody else's file
                problem = "this is not a results file of `ahpatron sweep`; nothing was changed"
                hint = "choose another name for --out"
                raise _fault(path, problem, ExitCode.CANNOT_CREATE, hint)
            self.contents = found
            self._end = len(content) - found.torn
            if found.torn:
                self._truncate()
            self._facts = facts
            if not self.contents.headers:
                self._write_header()
        except BaseException:
            os.close(self._descriptor)
            raise

    def add(self, trial: TrialRecord) -> None:
        """Make a trial durable; a write that fails is undone."""
        if self.contents.headers[-1] != self._facts:
            self._write_header()
        self._append(encode_trial(trial))
        self.contents.add(trial)

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
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
            problem = "the results file was deleted or replaced while the sweep was writing to it"
            hint = "what was in it is lost; the same command begins a new one"
            raise _fault(self._path, problem, ExitCode.IO_ERROR, hint)

    def _append(self, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                rest = rest[os.pwrite(self._descriptor, rest, self._end + len(line) - len(rest)) :]
            os.fsync(self._descriptor)
        except BaseException as error:  # also a signal: the line may be half written
            with suppress(OSError):  # if even that fails, the next start does it
                self._truncate()
            if not isinstance(error, OSError):
                raise
            problem = f"the results cannot be written: {error.strerror}"
            hint = "every result before this one is kept; make room, and the same command continues"
            raise _fault(self._path, problem, ExitCode.IO_ERROR, hint) from None
        self._end += len(line)
        self._check_name()

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
        if error.errno not in (errno.EAGAIN, errno.EACCES):
            raise _fault(path, f"cannot be locked: {error.strerror}", ExitCode.IO_ERROR) from None
        hint = "wait for it, or give this one a file of its own; "
        hint += "`ahpatron inspect A.jsonl B.jsonl --merge C.jsonl` puts them together later"
        problem = "another sweep is writing to this results file"
        raise _fault(path, problem, ExitCode.LOCKED, hint) from None


def _fault(path: str, problem: str, code: ExitCode, hint: str | None = None) -> UserError:
    return UserError(problem, code=code, place=Place(path), hint=hint)
