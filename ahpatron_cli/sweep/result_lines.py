"""The lines of a results file: one JSON object each, which carries the hash of its own text.

    {"id": ..., "status": "ok", "data": {...}, "run": {...}, "timing": {...}, "error": null,
     "check": ...}

A flipped byte that leaves valid JSON behind is found by `check`. All but `timing` (and the `check`
that covers it) is the same however and wherever a trial was played.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import lru_cache
from types import NoneType
from typing import Any, cast, get_args, get_origin, get_type_hints

from ahpatron_cli.records import Json, ParamValue, RunRecord, plain, whole
from ahpatron_cli.sweep.summary import TrialRecord

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


def encode_header(facts: Mapping[str, Any]) -> bytes:
    """A header line."""
    return _with_check({"schema": SCHEMA, "kind": KIND, **facts})


def encode_trial(trial: TrialRecord, timing: Timing) -> bytes:
    """A trial's line."""
    data, record = trial.data, trial.data.record
    line = {
        "id": trial.id,
        "status": "failed" if trial.run is None else "ok",
        "data": {
            "path": record.path,
            "rounds": record.rounds,
            "features": record.features,
            "labels": [label if label is None else whole(label) for label in record.labels],
            "sha256": record.sha256,
            "limit": data.limit,
            "scale": data.scale,
            "positive": data.positive,
            "shuffled": data.shuffled,
        },
        "run": _run_json(trial),
        "timing": vars(timing),
        "error": trial.error,
    }
    return _with_check(line)


_NOT_STORED = ("seconds", "metrics")
_RUN_FIELDS = tuple(one.name for one in fields(RunRecord) if one.name not in _NOT_STORED)


def _run_json(trial: TrialRecord) -> Json:
    """The fields of `runs[]` without seconds; of a failed trial only what was asked for."""
    source = trial if trial.run is None else trial.run
    run = {name: getattr(source, name, None) for name in _RUN_FIELDS}
    return {**run, "params": {name: plain(value) for name, value in source.params.items()}}


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
            raise DamagedLineError("its checksum does not fit")
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
    data = {**content["data"], "record": content["data"]}
    run = {**content["run"], "seconds": content["timing"]["seconds"]}
    trial = {**content, **content["run"], "data": data, "run": None}
    if content["status"] == "ok":
        trial["run"] = run
    return cast(TrialRecord, _checked_value(TrialRecord, trial))


_hints: Callable[[Any], dict[str, Any]] = lru_cache(get_type_hints)


def _checked_value(kind: Any, value: Any) -> Any:
    """A record of this type, made of plain values; TypeError or KeyError where they do not fit.

    Fields that have a default may be absent: older versions did not write them.
    Whole numbers are counts, and numbers are finite; but `plain` wrote an infinite parameter as
    text.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if is_dataclass(kind):
        hints = _hints(kind)
        given = {one.name for one in fields(kind) if one.default is MISSING or one.name in value}
        return kind(**{name: _checked_value(hints[name], value[name]) for name in given})  # type: ignore[operator]  # a class
    if kind == ParamValue:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise TypeError
        return float(value) if value == "inf" else value
    if NoneType in parts:
        return None if value is None else _checked_value(parts[0], value)
    if origin is Mapping:
        return {name: _checked_value(parts[1], one) for name, one in value.items()}
    if origin is tuple:
        return tuple(_checked_value(part, one) for part, one in zip(parts, value, strict=True))
    if kind is float and type(value) is int:
        value = float(value)
    if type(value) is not kind or (kind is float and not math.isfinite(value)):
        raise TypeError
    if kind is int and value < 0:
        raise TypeError
    return value
