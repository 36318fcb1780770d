"""The results file of a sweep: one writer, durable line by line, resumable after any fault.

A trial counts as done when its whole line is on the disk. Lines are only ever appended; a last
line without its end is cut before that, lines that are damaged otherwise are reported and stay.
Each line is a JSON object that ends with the hash of its own text:

    {"id": ..., "status": "ok", "data": {...}, "run": {...}, "timing": {...}, "error": null,
     "check": ...}

A flipped byte that leaves valid JSON behind is found by `check`. All but `timing` (and the `check`
that covers it) is the same however and wherever a trial was run. `texts`, where present, has the
parameters that depend on the data as the grid spells them.
"""

from __future__ import annotations

import codecs
import errno
import fcntl
import hashlib
import json
import math
import os
import shlex
import stat
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert
from msgspec.structs import asdict, replace

from ahpatron_cli.atomic import sync_folder
from ahpatron_cli.errors import ExitCode, Place, UserError, usage
from ahpatron_cli.records import Json, RunRecord, data_to_json, plain_params, run_to_json
from ahpatron_cli.sweep.summary import Outcome, TrialData

SUFFIX = ".jsonl"
KIND = "ahpatron sweep results"
SCHEMA = 1
OPENING = f'{{"schema": {SCHEMA}, "kind": "{KIND}"'.encode()
"""How every header line begins."""
CHECK_DIGITS = 16

_PREPARATION = ("limit", "scale", "positive", "shuffled")
_NOT_STORED = ("seconds", "classes", "confusion", "window", "drifts", "costs")
"""The labels of the classes are with the data; a confusion matrix may have a million entries."""
_STORED = [name for name in RunRecord.__struct_fields__ if name not in _NOT_STORED]
_NOT_FLAT = ("learner", "params", "seed", "repeat", "this_file", "metrics", *_NOT_STORED[1:])
_FLAT = [name for name in RunRecord.__struct_fields__ if name not in _NOT_FLAT]


class DamagedLineError(Exception):
    """A line that is not as it was written; the text says why."""


def flat_trial(trial: Outcome) -> Json:
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
        **{name: getattr(trial.run, name, None) for name in _FLAT},
        "error": trial.error,
    }
    if data.costs:
        row["costs"] = " ".join(data.cost_words)
    return row | asdict(trial.run.metrics) if trial.run and trial.run.metrics else row


def encode_header(facts: Mapping[str, Any]) -> bytes:
    """A header line."""
    return _with_check({"schema": SCHEMA, "kind": KIND, **facts})


def encode_trial(trial: Outcome) -> bytes:
    """A trial's line; only `timing` is never the same twice."""
    data, run = trial.data, trial.run
    optional = {
        "prefix": data.prefix,
        "costs": data.costs or None,
        "table": data.table or None,
    }
    stored = run_to_json(run) if run else dict.fromkeys(_STORED) | {
        **{name: getattr(trial, name) for name in ("learner", "seed", "repeat")},
        "params": plain_params(trial.params),
    }  # fmt: skip
    return _with_check(
        {
            "id": trial.id,
            "status": "ok" if run else "failed",
            "data": {
                **data_to_json(data.record),
                **{name: getattr(data, name) for name in _PREPARATION},
                **{name: value for name, value in optional.items() if value is not None},
            },
            "run": {name: stored[name] for name in _STORED if name in stored},
            **({"texts": trial.texts} if trial.texts else {}),
            "timing": {"seconds": run and run.seconds, "wall_seconds": trial.wall_seconds},
            "error": trial.error,
        }
    )


def _with_check(content: Json) -> bytes:
    # ASCII, with any file name: msgspec writes no surrogates
    text = json.dumps(content, allow_nan=False)
    return f'{text[:-1]}, "check": "{_digest(text)}"}}\n'.encode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK_DIGITS]


def decode(line: bytes) -> Json | Outcome:
    """A line (without its end) as a trial or, of a header line, its facts.

    DamagedLineError if it is not as it was written.
    """
    try:
        body, _, tail = line.decode("ascii").rpartition(', "check": "')
        if tail != f'{_digest(body + "}")}"}}':
            raise DamagedLineError("its checksum does not match")
        content = json.loads(body + "}", parse_constant=_refuse)
        if line.startswith(OPENING):
            return {name: content[name] for name in content if name not in ("schema", "kind")}
        return _outcome(content)
    except RecursionError:
        raise DamagedLineError("nested too deeply") from None
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DamagedLineError(f"not a line of a sweep ({type(error).__name__})") from None


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and infinities, which are no JSON


def _outcome(content: Json) -> Outcome:
    asked, timing, data = content["run"], content["timing"], content["data"]
    params = {  # `plain` wrote an infinite parameter as text
        name: math.inf if value == "inf" else value
        for name, value in asked["params"].items()
        if value is not None  # kernel and σ of a learner with a kernel of its own
    }
    run = asked | {"params": params, "seconds": timing["seconds"]}
    if "auto_sigma" in data and params.get("sigma") == data["auto_sigma"]:  # 0.2.0 wrote it
        content["texts"] = {"sigma": "auto"}
    parts = {
        "data": _data(json.dumps(data)),  # of which a file has few
        "run": run if content["status"] == "ok" else None,
        "wall_seconds": timing["wall_seconds"],
    }
    return convert(run | content | parts, Outcome)


@lru_cache
def _data(text: str) -> TrialData:
    content = json.loads(text)
    return convert(content | {"record": content}, TrialData)


@dataclass
class Contents:
    """The contents of a results file."""

    trials: dict[str, Outcome] = field(default_factory=dict)
    """By id. A result is never replaced by a failure; else the later line counts."""
    headers: list[Mapping[str, Any]] = field(default_factory=list)
    damaged: list[tuple[int, str]] = field(default_factory=list)
    """Number of each damaged line, and what is wrong with it."""
    torn: int = 0
    """Bytes after the last line end."""

    def add(self, trial: Outcome) -> None:
        """Add a trial."""
        known = self.trials.get(trial.id)
        if known is None or known.run is None or trial.run is not None:
            self.trials[trial.id] = trial


def looks_like_json(path: str) -> bool:
    """Whether to read this as results: no line of a LIBSVM file begins with a bracket."""
    with suppress(OSError):  # the reader of data files says what is wrong
        if path != "-" and stat.S_ISREG(Path(path).stat().st_mode):
            with Path(path).open("rb") as stream:
                start = stream.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()
                return start.startswith((b"{", b"["))
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
    """The contents of a results file; None if it is another kind of file.

    It is ours if it is empty, if any line is ours, or if it is a header line cut short.
    """
    found = Contents(torn=len(content) - content.rfind(b"\n") - 1)
    for number, _, item in _lines(content):
        if isinstance(item, Outcome):
            found.add(item)
        elif isinstance(item, DamagedLineError):
            found.damaged.append((number, str(item)))
        else:
            found.headers.append(item)
    ours = found.headers or found.trials or OPENING.startswith(content[: len(OPENING)])
    return found if ours else None


def _lines(content: bytes) -> Iterator[tuple[int, bytes, Json | Outcome | DamagedLineError]]:
    """Number, bytes and meaning of each whole line that is not blank."""
    for number, line in enumerate(content.removeprefix(codecs.BOM_UTF8).split(b"\n")[:-1], 1):
        if not line.strip():
            continue
        try:
            yield number, line, decode(line)
        except DamagedLineError as damage:
            yield number, line, damage


def merge_results(paths: Sequence[str]) -> tuple[bytes, Contents]:
    """The lines of several results files, all read before, as one file, and its contents.

    Each trial is there once. Refused: files of one name but of unlike content, and a trial with two
    different results.
    """
    merged = Contents()
    lines: dict[str, bytes] = {}
    headers: dict[bytes, Mapping[str, Any]] = {}
    hashes: dict[str, tuple[str | None, str]] = {}
    outcomes: dict[str, tuple[RunRecord, str]] = {}
    for path in paths:
        for _, line, item in _lines(Path(path).read_bytes()):
            if isinstance(item, dict):
                headers[line] = item
            if not isinstance(item, Outcome):
                continue
            record = item.data.record
            sha256, where = hashes.setdefault(record.path, (record.sha256, path))
            if sha256 != record.sha256:
                problem = f"{record.path} has another content in {where}"
                hint = "merge results of the same data only"
                raise _fault(path, problem, ExitCode.BAD_DATA, hint)
            if item.run is not None:
                run = replace(item.run, seconds=0.0)
                known, where = outcomes.setdefault(item.id, (run, path))
                if known != run:
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
            _refuse_others(path, found.headers, facts)
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

    def add(self, trial: Outcome) -> None:
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
    """Refuse what cannot hold results, before anything is read or run."""
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


def _refuse_others(
    path: str, headers: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]
) -> None:
    """Refuse to continue results of other versions of the algorithms: all trials differ."""
    for header in headers:
        if header.get("algorithm") != facts.get("algorithm"):
            version = header.get("version")
            problem = f"these are results of ahpatron {version}, which this version cannot continue"
            stem = Path(path).with_suffix("")
            names = (f"{stem}-{number}{SUFFIX}" for number in range(2, 1000))
            new = next((name for name in names if not Path(name).exists()), f"NEW{SUFFIX}")
            hint = f"choose a new name: --out {shlex.quote(new)}; "
            hint += f"`ahpatron inspect {shlex.quote(path)}` shows the old results"
            raise _fault(path, problem, ExitCode.CANNOT_CREATE, hint)


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
