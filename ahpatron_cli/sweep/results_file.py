"""The results file of a sweep: one writer, one durable line per trial, resumable after any fault.

A trial is done when its whole line is on disk. Lines are only appended; an incomplete last line is
removed first, other damaged lines are reported and kept.
Each line is a JSON object that ends with a hash of its own text:

    {"id": ..., "status": "ok", "data": {...}, "run": {...}, "texts": {...}, "timing": {...},
     "error": null, "check": ...}

All but `timing` (and `check`, which covers it) is independent of how and where a trial was run.
`texts` has parameters that depend on the data as they are written in the grid.
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
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import ValidationError, convert, to_builtins
from msgspec.structs import replace

from ahpatron_cli.atomic import sync_folder
from ahpatron_cli.data.source import cannot_open
from ahpatron_cli.errors import ExitCode, Place, UserError, bad_data, usage
from ahpatron_cli.records import Json, RunRecord, plain_params, with_params, without_nulls
from ahpatron_cli.sweep.summary import Outcome

SUFFIX = ".jsonl"
OPENING = b'{"schema": 1, "kind": "ahpatron sweep results"'
"""Start of every header line."""
CHECK_DIGITS = 16

_NOT_STORED = {"seconds", "classes", "confusion", "window", "drifts", "costs"}
"""Fields not stored per trial: labels are stored with the data, confusion may be huge."""
_STORED = [name for name in RunRecord.__struct_encode_fields__ if name not in _NOT_STORED]


def flat_trial(trial: Outcome) -> Json:
    """A trial as one row of a table: plain values, each parameter a column `param_NAME`."""
    data, run = trial.data, _stored(trial)
    own = {name: run.pop(name) for name in ("learner", "seed", "repeat")}
    names = ("sha256", "features", "limit", "scale", "positive", "shuffled", "prefix")
    del run["params"], run["this_file"]
    metrics = run.pop("metrics") or {}
    costs = " ".join(text for name, text in data.options if name == "cost")
    return {
        "id": trial.id,
        "status": "ok" if trial.run else "failed",
        "data": data.path,
        **{name: getattr(data, name) for name in names},
        **own,
        **{f"param_{name}": value for name, value in plain_params(trial.params).items()},
        "seconds": trial.run and trial.run.seconds,
        **run,
        "error": trial.error,
        **({"costs": costs} if costs else {}),
        **metrics,
    }


def encode_header(facts: Mapping[str, Any]) -> bytes:
    """The header line with these facts, as bytes."""
    return _with_check(json.loads(OPENING + b"}") | dict(facts))


def encode_trial(trial: Outcome) -> bytes:
    """The line of a trial in the results file, as bytes."""
    seconds = trial.run and trial.run.seconds
    return _with_check(
        {
            "id": trial.id,
            "status": "ok" if trial.run else "failed",
            "data": to_builtins(trial.data),
            "run": without_nulls(_stored(trial)),
            "texts": trial.texts,
            "timing": {"seconds": seconds, "wall_seconds": trial.wall_seconds},
            "error": trial.error,
        }
    )


def _stored(trial: Outcome) -> Json:
    """The fields of the run that are stored; null if the trial failed."""
    fields = with_params(trial.run or trial)
    return {name: fields.get(name) for name in _STORED}


def _with_check(content: Json) -> bytes:
    # json, not msgspec, which cannot write surrogates in file names
    text = json.dumps(content, allow_nan=False)
    return f'{text[:-1]}, "check": "{_digest(text)}"}}\n'.encode()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:CHECK_DIGITS]


def decode(line: bytes) -> Json | Outcome | None:
    """Decode a line: an `Outcome`, or a dict for a header line; None if it is damaged."""
    try:
        body, _, tail = line.decode("ascii").rpartition(', "check": "')
        if tail != f'{_digest(body + "}")}"}}':
            return None
        content = json.loads(body + "}", parse_constant=_refuse)
        if line.startswith(OPENING):
            return {name: content[name] for name in content if name not in ("schema", "kind")}
        run, timing, data = content["run"], content["timing"], content["data"]
        run["params"] = {  # an infinite parameter was written as text
            name: math.inf if value == "inf" else value
            for name, value in run["params"].items()
            if value is not None  # null: kernel and σ of a learner with its own kernel
        }
        if "auto_sigma" in data and run["params"].get("sigma") == data["auto_sigma"]:  # 0.2.0
            content["texts"] = {"sigma": "auto"}
        ok = content["status"] == "ok"
        content["run"] = run | {"seconds": timing["seconds"]} if ok else None
        return convert({**run, **content, "wall_seconds": timing["wall_seconds"]}, Outcome)
    except (ValidationError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(constant)  # NaN and infinity are not valid JSON


@dataclass
class Contents:
    """Contents of one or several results files."""

    trials: dict[str, Outcome] = field(default_factory=dict)
    """Trials by id; later lines replace earlier ones, but a failure never replaces a result."""
    headers: list[Mapping[str, Any]] = field(default_factory=list)
    damaged: list[int] = field(default_factory=list)
    """Numbers of the damaged lines."""
    torn: int = 0
    """Number of bytes after the last line end."""

    def add(self, trial: Outcome) -> None:
        """Add a trial; a failure does not replace a result."""
        known = self.trials.get(trial.id)
        if known is None or known.run is None or trial.run is not None:
            self.trials[trial.id] = trial

    def encoded(self) -> bytes:
        """The contents as the bytes of a results file."""
        lines = [*map(encode_header, self.headers), *map(encode_trial, self.trials.values())]
        return b"".join(lines)


def looks_like_json(path: str) -> bool:
    """Whether a file starts like JSON, which LIBSVM text never does."""
    with suppress(OSError):  # reported by the reader of data files
        if path != "-" and stat.S_ISREG(Path(path).stat().st_mode):
            with Path(path).open("rb") as stream:
                start = stream.read(1024).removeprefix(codecs.BOM_UTF8).lstrip()
                return start.startswith((b"{", b"["))
    return False


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
    found = Contents(torn=len(content) - content.rfind(b"\n") - 1)
    for number, line in enumerate(content.removeprefix(codecs.BOM_UTF8).split(b"\n")[:-1], 1):
        if not line.strip():
            continue
        item = decode(line)
        if item is None:
            found.damaged.append(number)
        elif isinstance(item, Outcome):
            found.add(item)
        else:
            found.headers.append(item)
    ours = found.headers or found.trials or OPENING.startswith(content[: len(OPENING)])
    return found if ours else None


def merge_results(files: Mapping[str, Contents]) -> Contents:
    """Merge results files (by path), with each trial once.

    A trial with two different results is an error.
    """
    merged = Contents()
    for path, contents in files.items():
        merged.headers += (one for one in contents.headers if one not in merged.headers)
        for trial in contents.trials.values():
            run, known = trial.run, merged.trials.get(trial.id, trial).run
            if run and known and replace(known, seconds=run.seconds) != run:
                who = f"{trial.id} ({trial.learner})"
                problem = f"trial {who} has a different result in another file"
                hint = "`ahpatron report` of each shows the versions; merge those alike only"
                raise bad_data(problem, path, hint=hint)
            merged.add(trial)
    return merged


class ResultsFile:
    """A results file opened and locked for appending; a context manager.

    A failed write leaves an incomplete line, which is removed when the file is opened again.
    """

    def __init__(self, path: str, facts: Mapping[str, Any]) -> None:
        """Open or create the file, lock it and remove an incomplete last line.

        `facts` are written as a header line before the first new trial, unless the last header
        is equal.
        """
        self.path, self._facts = path, facts
        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
            self._descriptor = os.open(path, flags, 0o666)
        except OSError as error:
            problem = f"the results file cannot be created: {error.strerror}"
            raise self._fault(problem, ExitCode.CANNOT_CREATE) from None
        try:
            sync_folder(Path(path).parent)
            # `flock` belongs to the open file, which workers do not inherit
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            with os.fdopen(self._descriptor, "rb", closefd=False) as stream:
                content = stream.read()
            self.contents = self._continued(parse_results(content))
            if self.contents.torn:
                os.ftruncate(self._descriptor, len(content) - self.contents.torn)
        except OSError as error:
            os.close(self._descriptor)
            problem, code = f"the results file cannot be used: {error.strerror}", ExitCode.IO_ERROR
            if isinstance(error, BlockingIOError):
                problem, code = "another sweep is writing to this results file", ExitCode.LOCKED
            raise self._fault(problem, code, "wait for it, or choose another --out") from None
        except BaseException:
            os.close(self._descriptor)
            raise

    def __enter__(self) -> ResultsFile:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)  # also releases the lock

    def add(self, trial: Outcome) -> None:
        """Append a trial and flush it to disk."""
        if self.contents.headers[-1:] != [self._facts]:
            self._append(encode_header(self._facts))
            self.contents.headers.append(self._facts)
        self._append(encode_trial(trial))
        self.contents.add(trial)

    def _continued(self, found: Contents | None) -> Contents:
        """Refuse files that are no results files, or were written by an incompatible version."""
        hint = "choose another name for --out"
        if found is None or not stat.S_ISREG(os.fstat(self._descriptor).st_mode):
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
                rest = rest[os.write(self._descriptor, rest) :]
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

    def _fault(self, problem: str, code: ExitCode, hint: str | None = None) -> UserError:
        return UserError(problem, code=code, place=Place(self.path), hint=hint)


def check_results_path(path: str, option: str = "--out") -> None:
    """Refuse a path without the suffix of a results file."""
    if not path.endswith(SUFFIX):
        stem = path.rpartition(".")[0] or path
        hint = f"for example {option} {shlex.quote(stem + SUFFIX)}"
        raise usage(f"{option} must end in {SUFFIX}, got {path!r}", hint)
