"""Output of `inspect` (data, models) as JSON and as text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import to_builtins

from ahpatron_cli import __version__
from ahpatron_cli.data.geometry import SUGGESTED_LEARNER
from ahpatron_cli.data.labels import show as show_label
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.models import Header
from ahpatron_cli.numbers import counted, percent, share, short
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.formats import json_text, write
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.profile import Profile
from ahpatron_cli.records import SCHEMA, Json, RunRecord, plain_params, run_to_json

T = TypeVar("T")
_MOST_LABELS = 10
_NAMES = 20
"""Width of the column with the names of entries, in characters."""


def show(format: str, document: T, text: Callable[[T, Terminal], str]) -> None:
    """Write a document to stdout as JSON, or as text made by `text`."""
    as_json = format == "json" and json_text(to_builtins(document))
    write(lambda terminal: as_json or text(document, terminal))


def _section(terminal: Terminal, head: str, entries: Mapping[str, Any] | Iterable[str]) -> str:
    """Text of a section: a heading, then names and values, or items; empty if there are none."""
    lines = list[str]()
    if isinstance(entries, Mapping):
        for name, value in entries.items():
            if value not in (None, (), [], ""):
                first = f"  {terminal.escape(name):<{_NAMES}}  "
                lines += terminal.folded(_value(value), first, " " * (_NAMES + 4))
    else:
        lines += [line for item in entries for line in terminal.folded(item, "  - ", "    ")]
    return "".join(f"{line}\n" for line in ["", terminal.strong(head), *lines]) if lines else ""


def _value(value: Any) -> str:
    """A value of a document as display text."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    return f"{value:,}" if isinstance(value, int) else short(value, 5)


def _span(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{short(low, 4)} to {short(high, 4)}"


# Data ---------------------------------------------------------------------------------------------


def print_profile(profile: Profile, terminal: Terminal) -> str:
    """The profile of a data file as text."""
    about = f"{counted(profile.rows, 'row')}, {counted(profile.features, 'feature')}"
    if profile.density is not None:
        about += f", {share(profile.density)} of values stored"
    parts = [
        *(f"{line}\n" for line in terminal.title(profile.path, about)),
        _section(terminal, "Notes", profile.notes),
        _section(terminal, "Labels", _labels(profile)),
        _section(terminal, "Rows and features", _ranges(profile)),
        _section(terminal, "Gaussian kernel", _kernel(profile)),
        _section(terminal, "Mistakes on rows drawn at random", _tried(profile)),
        _section(terminal, "Not computed", profile.unknown),
    ]
    if profile.faults:
        shown = len(profile.faulty_lines)
        is_table = any(fault.column is None for fault in profile.faulty_lines)
        head = counted(profile.faults, "fault" if is_table else "faulty line")
        head += f"; the first {shown} are" * (profile.faults > shown)
        head += "; the rest was not read" * profile.stopped
        parts += ["\n", *(f"{line}\n" for line in terminal.folded(head))]
        for fault in profile.faulty_lines:
            column = "" if fault.column is None else f":{fault.column}"
            place = f"{profile.path}:{fault.line}{column}"
            parts.append(f"{literal(f'{place}: {fault.problem}')}\n")
    parts.append(_section(terminal, "Advice", profile.advice))
    if profile.next:
        stands = ", where FILE stands for the data of standard input"
        parts.append(f"\n{terminal.strong(f'Next{stands * (profile.path == STDIN_NAME)}')}\n")
        parts += [f"  {literal(command)}\n" for command in profile.next]
    return "".join(parts)


def _labels(profile: Profile) -> Json:
    entries: Json = {
        one.name
        or show_label(one.label): f"{counted(one.rows, 'row')}, {share(one.rows / profile.rows)}"
        for one in profile.labels[:_MOST_LABELS]
    }
    if hidden := len(profile.labels) - len(entries):
        entries["others"] = f"{'' if profile.all_labels else 'more than '}{hidden:,} labels"
    if profile.unlabelled:
        part = share(profile.unlabelled / profile.rows)
        entries["without a label"] = f"{counted(profile.unlabelled, 'row')}, {part}"
    if profile.baseline is not None:
        entries["baseline"] = f"{percent(profile.baseline)} % mistakes: the most frequent label"
    return entries


def _ranges(profile: Profile) -> Json:
    feature, *ends = profile.widest or (0, None, None)
    first = f"the first {profile.examined:,} rows" if profile.examined < profile.rows else None
    return {
        "statistics of": first,
        "duplicate rows": profile.duplicates,
        "values": _span(profile.low, profile.high),
        "widest feature": f"{feature}: {_span(*ends)}" if profile.widest else None,
        "constant features": profile.constant or None,
    }


def _kernel(profile: Profile) -> Json:
    """Entries on σ, from distances between rows, and on the alignment A_T."""
    entries = Json()
    if profile.sigma:
        after = "" if profile.scale == "none" else f", after --scale {profile.scale}"
        entries["median σ"] = f"{short(profile.sigma)}, the median distance{after}"
        entries["useful σ"] = _span(profile.sigma_low, profile.sigma_high)
    for one in profile.alignments:
        error = f" ± {short(one.standard_error)}" if one.standard_error is not None else ""
        kind = "" if one.exact else f", estimated from {one.rows:,} rows"
        text = f"A_T = {short(one.value, 5)}{error}, {short(one.per_round)} of T{kind}"
        entries[f"alignment, σ = {short(one.sigma)}"] = text
    return entries


def _tried(profile: Profile) -> Json:
    """Mistake rates of learners on the sample, marked if worse than the majority class."""
    if not profile.tried:
        return {}
    best = profile.tried[0]
    rates = {"metron": profile.tried_metron} | {
        f"{SUGGESTED_LEARNER}, σ = {short(one.sigma)}": one.mistake_rate for one in profile.tried
    }
    entries = {
        name: share(rate) + " (worse than the majority class)" * (rate > best.majority_error)
        for name, rate in rates.items()
        if rate is not None
    }
    return {"rows": best.rounds, **entries, "majority class": share(best.majority_error)}


# Models -------------------------------------------------------------------------------------------


def model_to_json(
    model: Header,
    record: RunRecord,
    relevance: Sequence[tuple[int, float]],
    *,
    path: str,
    written: str,
    last_reset: int | None,
) -> Json:
    """Description of a model as JSON, with the last data file and its checksum.

    `last_reset` is the round after which the model has started from scratch.
    """
    run = run_to_json(record)
    del run["this_file"], run["params"]
    params = plain_params({**model.kernel_params, **model.params})
    names = dict(enumerate(model.schema.features, 1)) if model.schema else {}
    return {
        "schema": SCHEMA,
        "version": __version__,
        "kind": "model",
        "path": path,
        "written": written,
        "made_by": model.version,
        "data": {
            "path": model.data,
            "rounds": model.rounds,
            "checksum": f"{model.digest:08x}",
            "features": model.features,
            "labels": model.labels,
            "scale": model.scale,
            "schema": to_builtins(model.schema),
        },
        "kernel": model.kernel,
        "params": params if model.kernel else {"sigma": None, **params},
        **run,
        "last_reset": last_reset,
        "rounds_since_reset": None if last_reset is None else record.rounds - last_reset,
        "relevance": [
            {"feature": number, "name": names.get(number), "relevance": value}
            for number, value in relevance
        ]
        or None,
    }


def print_model(document: Json, terminal: Terminal) -> str:
    """The description of a model as text."""
    about = "{learner}; written {written} by ahpatron {made_by}".format_map(document)
    data = dict(document["data"])
    if schema := data.pop("schema"):
        data["label names"] = [
            f"{name} ({show_label(label)})" for name, label in schema["labels"].items()
        ]
        data["columns"] = ["{name} ({kind})".format_map(one) for one in schema["columns"]]
    counts = {
        name.replace("_", " "): value
        for name, value in document.items()
        if isinstance(value, int | float) and name != "schema"
    }
    relevance = {
        one["name"] or str(one["feature"]): (
            f"{share(one['relevance']):>6} {'█' * round(40 * one['relevance'])}"
        )
        for one in document["relevance"] or ()
    }
    return "".join(
        [
            *(f"{line}\n" for line in terminal.title(document["path"], about)),
            _section(terminal, "Data", data),
            _section(terminal, "Parameters", {"kernel": document["kernel"], **document["params"]}),
            _section(terminal, "Stream", counts),
            _section(terminal, "Features of the largest relevance", relevance),
        ]
    )
