"""The results file of a sweep: one writer, one durable line per trial, resumable after any fault.

A trial is done when its whole line is on disk. Lines are only appended; an incomplete last line is
removed first, other damaged lines are reported and kept.
Each line is a JSON object that ends with a hash of its own text:

    {"id": ..., "status": "ok", "data": {...}, "run": {...}, "texts": {...}, "algorithm": ...,
     "source": null, "header": 1, "timing": {...}, "error": null, "check": ...}

All but `header`, `timing` (and `check`, which covers them) is independent of how and where a trial
was run. `texts` has parameters that depend on the data as they are written in the grid. `source` is
the origin of a learner that is not built in, with its hash or version; `header` is the number of
the header of the sweep that ran the trial.
"""

from __future__ import annotations

import codecs
import fcntl
import hashlib
import json
import math
import os
import shlex
import stat
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from ahpatron_cli.atomic import is_device, is_file, sync_folder
from ahpatron_cli.data.source import cannot_open
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data, usage
from ahpatron_cli.records import Json, Outcome, RunRecord, plain_params, with_params, without_nulls

Facts: TypeAlias = Mapping[str, Any]
"""The environment and the command of a sweep, which a header line has."""

SUFFIX = ".jsonl"
OPENING = b'{"schema": 1, "kind": "ahpatron sweep results"'
"""Start of every header line."""
CHECK_DIGITS = 16

_NOT_STORED = {"seconds", "classes", "confusion", "window", "drifts", "costs"}
"""Fields not stored per trial: labels are stored with the data, confusion may be huge."""
_STORED = [name for name in RunRecord.__struct_encode_fields__ if name not in _NOT_STORED]


def flat_trial(trial: Outcome) -> Json:
    """A trial as one row of a table: plain values, each parameter a column `param_NAME`."""
    data = trial.data
    run = _stored(trial)
    metrics = run["metrics"] or {}
    row: Json = {"id": trial.id, "status": _status(trial), "data": data.path}
    for name in ("sha256", "features", "limit", "scale", "positive", "shuffled", "prefix"):
        row[name] = getattr(data, name)
    first = ("learner", "seed", "repeat")
    for name in first:
        row[name] = run[name]
    for name, value in plain_params(trial.params).items():
        row[f"param_{name}"] = value
    row["seconds"] = trial.run.seconds if trial.run else None
    for name, value in run.items():
        if name not in (*first, "metrics", "params", "statistics", "this_file"):
            row[name] = value
    row["error"] = trial.error
    weights = [text for name, text in data.options if name == "cost"]
    if weights:
        row["costs"] = " ".join(weights)
    row |= metrics
    row["label_names"] = data.label_names and json.dumps(data.label_names)
    for name in ("algorithm", "source", "version", "header", "machine"):
        row[name] = getattr(trial, name)
    for name, statistic in (run["statistics"] or {}).items():
        row[f"statistic_{name}"] = statistic
    return row


def _status(trial: Outcome) -> str:
    return "ok" if trial.run else "failed"


def encode_header(facts: Facts) -> bytes:
    """The header line with these facts, as bytes."""
    opening: Json = json.loads(OPENING + b"}")
    return _with_check(opening | dict(facts))


def encode_trial(trial: Outcome) -> bytes:
    """The line of a trial in the results file, as bytes."""
    seconds = trial.run.seconds if trial.run else None
    content = {
        "id": trial.id,
        "status": _status(trial),
        "data": to_builtins(trial.data),
        "run": without_nulls(_stored(trial)),
        "texts": trial.texts,
        "algorithm": trial.algorithm,
        "source": trial.source,
        "header": trial.header,
        "timing": {
            "seconds": seconds,
            "wall_seconds": trial.wall_seconds,
            "machine": trial.machine,
        },
        "error": trial.error,
    }
    return _with_check(content)


def _stored(trial: Outcome) -> Json:
    """The fields of the run that are stored; null if the trial failed."""
    fields = with_params(trial.run or trial)
    return {name: fields.get(name) for name in _STORED}


def _with_check(content: Json) -> bytes:
    """A line with this content and its hash."""
    # json, not msgspec, which cannot write surrogates in file names
    text = json.dumps(content, allow_nan=False)
    body = text.removesuffix("}")
    return f'{body}, "check": "{_digest(text)}"}}\n'.encode()


def _digest(text: str) -> str:
    """First digits of the hash of a text."""
    digest = hashlib.sha256(text.encode())
    return digest.hexdigest()[:CHECK_DIGITS]


def decode(line: bytes) -> Json | Outcome | None:
    """Decode a line: an `Outcome`, or a dict for a header line; None if it is damaged."""
    try:
        text = _checked(line.decode("ascii"))
        if text is None:
            return None
        content: Json = json.loads(text, parse_constant=_refuse)
        if line.startswith(OPENING):
            del content["schema"]
            del content["kind"]
            return content
        return _outcome(content)
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _checked(line: str) -> str | None:
    """The text of a line without its hash; None if that is not the hash of the text."""
    body, _, tail = line.rpartition(', "check": "')
    text = body + "}"
    if tail != _digest(text) + '"}':
        return None
    return text


def _outcome(content: Json) -> Outcome:
    """The trial of a line; raises an error if fields are missing or have other types."""
    run = content["run"]
    timing = content["timing"]
    data = content["data"]
    params = _stored_params(run["params"])
    if "auto_sigma" in data and params.get("sigma") == data["auto_sigma"]:  # version 0.2.0
        content["texts"] = {"sigma": "auto"}
    run["params"] = params
    content["run"] = None
    if content["status"] == "ok":
        content["run"] = run | {"seconds": timing["seconds"]}
    fields = {
        **run,
        **content,
        "wall_seconds": timing["wall_seconds"],
        "machine": timing.get("machine"),
    }
    return convert(fields, Outcome)


def _stored_params(stored: Json) -> Json:
    """The parameters of a line: without null, the kernel and σ of a learner with its own kernel."""
    params = {}
    for name, value in stored.items():
        if value == "inf":  # JSON has no infinity
            params[name] = math.inf
        elif value is not None:
            params[name] = value
    return params


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and infinity are not valid JSON


@dataclass
class Contents:
    """Contents of one or several results files."""

    trials: dict[str, Outcome] = field(default_factory=dict)
    """Trials by id; later lines replace earlier ones, but a failure never replaces a result."""
    headers: list[Facts] = field(default_factory=list)
    """Header lines, each with its `number`, to which the trials refer."""
    damaged: list[int] = field(default_factory=list)
    """Numbers of the damaged lines."""
    torn: int = 0
    """Number of bytes after the last line end."""

    def add(self, trial: Outcome) -> None:
        """Add a trial; a failure does not replace a result."""
        known = self.trials.get(trial.id)
        if known is None or known.run is None or trial.run is not None:
            self.trials[trial.id] = trial

    def add_header(self, facts: Facts) -> int:
        """Add a header with these facts, unless it is there; return its number."""
        for header in self.headers:
            if _facts(header) == _facts(facts):
                return int(header["number"])
        numbers = [header["number"] for header in self.headers]
        number = max(numbers, default=0) + 1
        self.headers.append({**_facts(facts), "number": number})
        return int(number)

    def encoded(self) -> bytes:
        """The contents as the bytes of a results file."""
        lines = [encode_header(header) for header in self.headers]
        lines += [encode_trial(trial) for trial in self.trials.values()]
        return b"".join(lines)


def _facts(header: Facts) -> dict[str, Any]:
    """A header without its number."""
    return {name: fact for name, fact in header.items() if name != "number"}


def looks_like_json(path: str) -> bool:
    """Whether a file starts like JSON, which LIBSVM text never does."""
    return _start_of(path).startswith((b"{", b"["))


def looks_like_results(path: str) -> bool:
    """Whether a file starts like results of a sweep, in contrast to JSON lines with data."""
    return _start_of(path).startswith(OPENING)


def _start_of(path: str) -> bytes:
    """The first bytes of a file, without a byte order mark and spaces; empty if there is none."""
    if path == "-":
        return b""
    try:
        if not is_file(path):
            return b""
        with Path(path).open("rb") as stream:
            start = stream.read(1024)
    except OSError:  # reported by the reader of data files
        return b""
    return start.removeprefix(codecs.BOM_UTF8).lstrip()


def read_results(path: str) -> Contents:
    """Read a results file, also while another process is writing to it."""
    try:
        found = parse_results(Path(path).read_bytes())
    except OSError as error:
        raise cannot_open(path, error) from None
    if found is None:
        problem = "this is not a results file of `ahpatron sweep`"
        hint = "`ahpatron sweep DATA --out FILE.jsonl` makes one"
        if not looks_like_json(path):
            hint += f"; `ahpatron inspect {shlex.quote(path)}` describes data or a model"
        raise bad_data(problem, path, hint=hint)
    return found


def parse_results(content: bytes) -> Contents | None:
    """Parse a results file; None if it is another kind of file.

    A results file is empty, has at least one valid line, or is an incomplete header line.
    """
    last_end = content.rfind(b"\n")
    found = Contents(torn=len(content) - last_end - 1)
    undated = _Undated()
    versions: dict[int, Any] = {}
    lines = content.removeprefix(codecs.BOM_UTF8).split(b"\n")
    for number, line in enumerate(lines[:-1], start=1):
        if not line.strip():
            continue
        item = decode(line)
        if item is None:
            found.damaged.append(number)
        elif isinstance(item, Outcome):
            if item.header > 0 or item.algorithm is not None:
                found.add(replace(item, version=versions.get(item.header)))
            else:
                found.add(undated.dated(item))
        else:
            if not isinstance(item.get("number"), int):
                item["number"] = len(versions) + 1
            versions[item["number"]] = item.get("version")
            found.headers.append(item)
            undated.add_header(item)
    is_start = OPENING.startswith(content[: len(OPENING)])
    if found.headers or found.trials or is_start:
        return found
    return None


class _Undated:
    """Finds the edition of trials that were stored without it, as version 1.0 did.

    Algorithm and version are those of the headers right before them. The source of a learner of the
    user's own was not stored: a trial that gives another result than an earlier one shows that the
    source has changed since then.
    """

    def __init__(self) -> None:
        from ahpatron_cli.core.registry import BUILT_IN  # lazy: imports NumPy

        self._built_in = set(BUILT_IN)
        self._headers: list[Facts] = []
        self._begun = False
        """Whether a trial has followed the headers."""
        self._seen: dict[tuple[Any, ...], Outcome] = {}
        self._changes: Counter[str] = Counter()
        """Number of changes of each learner."""

    def add_header(self, header: Facts) -> None:
        """Note a header; of several in a row, which `report --merge` wrote, each may be meant."""
        if self._begun:
            self._headers.clear()
            self._begun = False
        self._headers.append(header)

    def dated(self, trial: Outcome) -> Outcome:
        """The trial with its edition."""
        self._begun = True
        learner = trial.learner
        same = (trial.data.identity, trial.data.prefix, trial.key, trial.seed, trial.repeat)
        before = self._seen.get((*same, self._changes[learner]))
        if before is not None and before.id != trial.id and _differ(before, trial):
            self._changes[learner] += 1
        changes = self._changes[learner]
        self._seen[*same, changes] = trial
        source = None
        if changes:
            source = f"not recorded, change {changes}"
        elif learner not in self._built_in:
            source = "not recorded"
        number = 0
        if self._headers:
            number = self._headers[-1]["number"]
        return replace(
            trial,
            algorithm=self._only("algorithm"),
            version=self._only("version"),
            header=number,
            source=source,
        )

    def _only(self, name: str) -> Any:
        """The fact of the headers; None if they differ."""
        facts = {header.get(name) for header in self._headers}
        if len(facts) != 1:
            return None
        return facts.pop()


def _differ(one: Outcome, other: Outcome) -> bool:
    """Whether two finished trials have different results, apart from their times."""
    if one.run is None or other.run is None:
        return False
    return replace(one.run, seconds=other.run.seconds) != other.run


def merge_results(files: Mapping[str, Contents]) -> Contents:
    """Merge results files (by path), with each trial once.

    A trial with two different results is an error.
    """
    merged = Contents()
    for path, contents in files.items():
        numbers = {header["number"]: merged.add_header(header) for header in contents.headers}
        for trial in contents.trials.values():
            known = merged.trials.get(trial.id)
            if known is not None and _differ(known, trial):
                name = f"trial {trial.id} ({trial.learner})"
                problem = f"{name} has a different result in another file"
                hint = "`ahpatron report` of each shows the versions; merge those alike only"
                raise bad_data(problem, path, hint=hint)
            number = numbers.get(trial.header, 0)
            merged.add(replace(trial, header=number))
    return merged


class ResultsFile:
    """A results file opened and locked for appending; a context manager.

    A failed write leaves an incomplete line, which is removed when the file is opened again.
    """

    def __init__(self, path: str, facts: Facts) -> None:
        """Open or create the file, lock it and remove an incomplete last line.

        `facts` are written as a header line before the first new trial, unless there is an equal
        one.
        """
        self.path = path
        self._facts = facts
        try:
            check_regular(path)  # opening a device or a pipe may have effects
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            problem = f"the results file cannot be created: {error.strerror}"
            raise self._fault(problem, ExitCode.CANNOT_CREATE) from None
        try:
            self.contents = self._locked_contents()
        except OSError as error:
            os.close(self._descriptor)
            raise self._unusable(error) from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def _locked_contents(self) -> Contents:
        """Lock the file, read it and remove an incomplete last line."""
        sync_folder(Path(self.path).parent)
        # `flock` belongs to the open file, which workers do not inherit
        fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        with os.fdopen(self._descriptor, "rb", closefd=False) as stream:
            content = stream.read()
        contents = self._continued(parse_results(content))
        if contents.torn:
            complete = len(content) - contents.torn
            os.ftruncate(self._descriptor, complete)
        return contents

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)  # also releases the lock

    def add(self, trial: Outcome) -> None:
        """Append a trial and flush it to disk."""
        count = len(self.contents.headers)
        number = self.contents.add_header(self._facts)
        for header in self.contents.headers[count:]:
            self._append(encode_header(header))
        stored = replace(trial, header=number)
        self._append(encode_trial(stored))
        self.contents.add(stored)

    def _continued(self, found: Contents | None) -> Contents:
        """Refuse files that are no results files, or were written by an incompatible version."""
        hint = "choose another name for --out"
        if found is None:
            problem = "this is not a results file of `ahpatron sweep`; nothing was changed"
            raise self._fault(problem, ExitCode.CANNOT_CREATE, hint)
        for header in found.headers:
            if header.get("algorithm") != self._facts.get("algorithm"):
                problem = f"this version cannot continue results of {header.get('version')}"
                hint += f"; `ahpatron report {shlex.quote(self.path)}` shows them"
                raise self._fault(problem, ExitCode.CANNOT_CREATE, hint)
        return found

    def _append(self, line: bytes) -> None:
        try:
            rest = memoryview(line)
            while rest:
                written = os.write(self._descriptor, rest)
                rest = rest[written:]
            os.fsync(self._descriptor)
        except OSError as error:
            problem = f"the results cannot be written: {error.strerror}"
            hint = "every result before this one is kept; make room, and the same command continues"
            raise self._fault(problem, ExitCode.IO_ERROR, hint) from None
        # check that the file was not deleted or replaced, which would lose the results
        with suppress(OSError):
            if os.path.samestat(Path(self.path).stat(), os.fstat(self._descriptor)):
                return
        problem = "the results file was deleted or replaced while the sweep was writing to it"
        hint = "what was in it is lost; the same command begins a new one"
        raise self._fault(problem, ExitCode.IO_ERROR, hint)

    def _unusable(self, error: OSError) -> UserError:
        """The error of a file that could be opened, but not locked, read or cut."""
        if isinstance(error, BlockingIOError):
            problem = "another sweep is writing to this results file"
            hint = "wait for it, or choose another --out"
            return self._fault(problem, ExitCode.LOCKED, hint)
        problem = f"the results file cannot be used: {error.strerror}"
        return self._fault(problem, ExitCode.IO_ERROR, "choose another --out")

    def _fault(self, problem: str, code: ExitCode, hint: str | None = None) -> UserError:
        """An error that names this file."""
        return UserError(problem, code=code, place=Place(self.path), hint=hint)


def check_regular(path: str, option: str = "--out") -> None:
    """Refuse a folder, a pipe or a device, to which results cannot be appended and read again."""
    with suppress(OSError):  # it does not exist, or is reported when it is opened
        if not stat.S_ISREG(Path(path).stat().st_mode):
            problem = "a results file must be a regular file, not a pipe, a device or a folder"
            hint = f"choose another name for {option}"
            code = ExitCode.CANNOT_CREATE
            raise UserError(problem, code=code, place=Place(path), hint=hint)


def check_results_path(path: str, option: str = "--out") -> None:
    """Refuse a path without the suffix of a results file, and one that is no regular file."""
    if path.endswith(SUFFIX):
        check_regular(path, option)
        return
    stem = path.rpartition(".")[0] or path
    if is_device(Path(path)):
        stem = "results"
    example = shlex.quote(stem + SUFFIX)
    raise usage(f"{option} must end in {SUFFIX}, got {path!r}", f"for example {option} {example}")
