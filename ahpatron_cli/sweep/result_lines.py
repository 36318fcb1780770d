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
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ahpatron_cli.records import DataRecord, Json, RunRecord, plain, whole
from ahpatron_cli.sweep.summary import TrialData, TrialRecord

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
    return _checked({"schema": SCHEMA, "kind": KIND, **facts})


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
    return _checked(line)


_RUN_FIELDS = tuple(one.name for one in fields(RunRecord) if one.name != "seconds")


def _run_json(trial: TrialRecord) -> Json:
    """The fields of `runs[]` without seconds; of a failed trial only what was asked for."""
    source = trial if trial.run is None else trial.run
    run = {name: getattr(source, name, None) for name in _RUN_FIELDS}
    return {**run, "params": {name: plain(value) for name, value in source.params.items()}}


def _checked(content: Json) -> bytes:
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
    data, run, timing = content["data"], content["run"], content["timing"]
    negative, positive = data["labels"]
    record = DataRecord(
        _text(data["path"]),
        _count(data["rounds"]),
        _count(data["features"]),
        (None if negative is None else _number(negative), _number(positive)),
        _text(data["sha256"]),
    )
    trial_data = TrialData(
        record,
        None if data["limit"] is None else _count(data["limit"]),
        _text(data["scale"]),
        None if data["positive"] is None else _number(data["positive"]),
        data["shuffled"] is True,
    )
    params = {_text(name): _param(value) for name, value in run["params"].items()}
    learner, seed, repeat = _text(run["learner"]), _count(run["seed"]), _count(run["repeat"])
    played = None
    if content["status"] == "ok":
        played = RunRecord(
            learner=learner,
            params=params,
            seed=seed,
            repeat=repeat,
            rounds=_count(run["rounds"]),
            mistakes=_count(run["mistakes"]),
            mistake_rate=_number(run["mistake_rate"]),
            margin_updates=_count(run["margin_updates"]),
            updates=_count(run["updates"]),
            halvings=None if run["halvings"] is None else _count(run["halvings"]),
            zeta=None if run["zeta"] is None else _number(run["zeta"]),
            support_size=None if run["support_size"] is None else _count(run["support_size"]),
            norm=None if run["norm"] is None else _number(run["norm"]),
            near_ties=_count(run["near_ties"]),
            seconds=_number(timing["seconds"]),
        )
    error = None if content["error"] is None else _text(content["error"])
    identity = _text(content["id"])
    return TrialRecord(identity, trial_data, learner, params, seed, repeat, played, error)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise TypeError
    return float(value)


def _param(value: Any) -> int | float | str:
    """`plain` wrote an infinite value as text."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise TypeError
    return float(value) if value == "inf" else value
