"""What `inspect` shows of data, a model and the list of learners, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

import msgspec
from msgspec import to_builtins

from ahpatron_cli import __version__
from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner
from ahpatron_cli.data.geometry import SUGGESTED_LEARNER
from ahpatron_cli.data.labels import show
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.models import Header
from ahpatron_cli.numbers import counted, percent, share, short
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.profile.profile import (
    FeatureFacts,
    LabelFacts,
    Profile,
    RowFacts,
    advice,
    next_commands,
)
from ahpatron_cli.records import (
    RUN_FIELDS,
    SCHEMA,
    Json,
    RunRecord,
    plain,
    plain_params,
    run_to_json,
    whole,
)

_MOST_LABELS = 10
_NAMES = 20
"""Columns for the names of entries."""


def _section(terminal: Terminal, head: str, entries: Mapping[str, Any] | Iterable[str]) -> str:
    """A heading, and below it names and values, or items; nothing where there are none."""
    lines = list[str]()
    if isinstance(entries, Mapping):
        for name, value in entries.items():
            if value not in (None, (), [], {}, ""):
                first = f"  {terminal.escape(name.replace('_', ' ')):<{_NAMES}}  "
                lines += terminal.folded(_value(value), first, " " * (_NAMES + 4))
    else:
        lines += [line for item in entries for line in terminal.folded(item, "  - ", "    ")]
    return "".join(f"{line}\n" for line in ["", terminal.strong(head), *lines]) if lines else ""


def _value(value: Any) -> str:
    """A value of a document as people read it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        known = {name: one for name, one in value.items() if one is not None}
        return ", ".join(f"{name.replace('_', ' ')} {_value(one)}" for name, one in known.items())
    if isinstance(value, list | tuple):
        return ("; " if any(isinstance(one, dict) for one in value) else ", ").join(
            map(_value, value)
        )
    if isinstance(value, int):
        return f"{value:,}" if abs(value) < 1e15 else short(float(value))
    return short(value, 5)


# Data ---------------------------------------------------------------------------------------------


def print_profile(profile: Profile, terminal: Terminal) -> str:
    """What a data file is like."""
    document, faults = profile_to_json(profile), profile.faults
    about = f"{counted(profile.rows, 'row')}, {counted(profile.features, 'feature')}"
    if profile.density is not None:
        about += f", {share(profile.density)} of values stored"
    parts = ["".join(f"{line}\n" for line in terminal.title(profile.path, about))]
    parts.append(_section(terminal, "Notes", profile.notes))
    if profile.labels:
        parts.append(_section(terminal, "Labels", _labels(profile.labels, profile.rows)))
    if profile.row_facts:
        parts.append(_section(terminal, "Rows", _rows(profile.row_facts, profile.rows)))
    if profile.feature_facts:
        features = _features(profile.feature_facts, profile.features)
        parts.append(_section(terminal, "Features", features))
    parts.append(_section(terminal, "Gaussian kernel", _kernel(profile)))
    parts.append(_section(terminal, _tried_head(profile), _tried(profile)))
    parts.append(_section(terminal, "Not computed", profile.unknown))
    if faults.count:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in faults.kinds.items())
        head = f"{counted(faults.count, 'faulty line')}: {kinds}"
        head += f"; the first {len(faults.first):,} shown" * (faults.count > len(faults.first))
        head += "; the rest was not read" * faults.stopped
        parts += ["\n", *(f"{line}\n" for line in terminal.folded(head))]
        for one in faults.first:
            note = f" ({one.note})" if one.note else ""
            place = f"{profile.path}:{one.line}:{one.column}"
            parts.append(f"{literal(f'{place}: {one.problem}{note}')}\n")
    parts.append(_section(terminal, "Advice", document["advice"]))
    if document["next"]:
        stands = ", where FILE stands for the data of standard input"
        parts.append(f"\n{terminal.strong(f'Next{stands * (profile.path == STDIN_NAME)}')}\n")
        parts += [f"  {literal(command)}\n" for command in document["next"]]
    return "".join(parts)


def _labels(labels: LabelFacts, rows: int) -> Json:
    entries: Json = {
        one.name or show(one.label): f"{counted(one.rows, 'row')}, {share(one.rows / rows)}"
        for one in labels.counts[:_MOST_LABELS]
    }
    if hidden := len(labels.counts) - len(entries):
        entries["others"] = f"{'' if labels.complete else 'more than '}{hidden:,} labels"
    if labels.positive is None and not labels.problem:
        entries["classes"] = f"{len(labels.counts):,}"
    if labels.baseline is not None:
        entries["baseline"] = f"{percent(labels.baseline)} % mistakes: the most frequent label"
    if len(labels.counts) > 1:
        entries["order"] = "grouped by label" if labels.grouped else "mixed"
    return entries


def _rows(facts: RowFacts, rows: int) -> Json:
    first = "" if facts.compared == rows else f" (of the first {facts.compared:,} rows)"

    def some(count: int, lines: tuple[int, int] | None) -> str:
        return (f"{count:,}, such as lines {lines[0]} and {lines[1]}" if lines else "none") + first

    return {
        "length": _span(facts.shortest, facts.longest),
        "empty": f"{facts.empty:,}" if facts.empty else None,
        "duplicates": some(facts.duplicates, facts.duplicate_lines),
        "contradictory": some(facts.contradictory, facts.contradictory_lines),
    }


def _features(facts: FeatureFacts, features: int) -> Json:
    widest = (f"{one.index}: {_span(one.low, one.high)}" for one in facts.widest)
    return {
        "examined": f"the first {facts.examined:,}" if facts.examined < features else None,
        "values": _span(facts.low, facts.high),
        "within 0 to 1": f"{facts.within_0_1:,}",
        "within -1 to 1": f"{facts.within_1_1:,}",
        "never used": f"{facts.never_used:,}" if facts.never_used else "none",
        "constant": f"{facts.constant:,}" if facts.constant else "none",
        "widest": "; ".join(widest),
    }


def _span(low: float | None, high: float | None) -> str | None:
    return None if low is None or high is None else f"{short(low, 4)} to {short(high, 4)}"


def _kernel(profile: Profile) -> Json:
    """Distances, the σ that suit them, and the alignment A_T."""
    entries, found = Json(), profile.distances
    if found and profile.scaling:
        of = "all rows" if found.rows == profile.rows else f"{found.rows:,} rows drawn at random"
        scale = profile.scaling.applied
        after = "" if scale == "none" else f", after --scale {scale}"
        entries["distances"] = f"{_span(found.smallest, found.largest)}, of {of}{after}"
        entries["median σ"] = f"{short(found.sigma)}, the median distance"
        useful = f"{short(found.sigma_low)} to {short(found.sigma_high)}"
        why = "5 % of the pairs or more have κ >= 0.05, and 5 % or more κ <= 0.95"
        entries["useful σ"] = f"{useful}: {why}"
    for one in profile.alignments:
        error = f" ± {short(one.standard_error)}" if one.standard_error is not None else ""
        kind = "" if one.exact else f", estimated from {one.rows:,} rows"
        text = f"A_T = {short(one.value, 5)}{error}, {short(one.per_round)} of T{kind}"
        entries[f"alignment, σ = {short(one.sigma)}"] = text
    return entries


def _tried_head(profile: Profile) -> str:
    rounds = profile.tried[0].rounds if profile.tried else 0
    which = "all rows, shuffled" if rounds == profile.rows else f"{rounds:,} rows drawn at random"
    return f"Mistakes on {which}"


def _tried(profile: Profile) -> Json:
    """Mistakes of learners on the sample, with a remark where they lose to the majority class."""
    if not profile.tried:
        return {}
    rates = {
        f"{SUGGESTED_LEARNER}, σ = {short(one.sigma)}": one.mistake_rate for one in profile.tried
    }
    majority = profile.tried[0].majority_error
    if profile.tried_metron is not None:
        rates = {"metron": profile.tried_metron, **rates}
    entries = {
        name: share(rate) + " (worse than the majority class)" * (rate > majority)
        for name, rate in rates.items()
    }
    return {**entries, "majority class": share(majority)}


def profile_to_json(profile: Profile) -> Json:
    """Plain values only; null for what is not known."""
    document: Json = to_builtins(profile)
    if labels := document["labels"]:
        for part in (labels, *labels["counts"]):
            for name in {"label", "negative", "positive"} & {*part}:
                part[name] = None if part[name] is None else whole(part[name])
    follows = {"advice": advice(profile), "next": next_commands(profile)}
    return {"schema": SCHEMA, "version": __version__, **document, **follows}


# Models -------------------------------------------------------------------------------------------


def print_model(
    model: Header,
    record: RunRecord,
    relevance: Sequence[tuple[int, float]],
    path: str,
    written: str,
    terminal: Terminal,
) -> str:
    """What a model is."""
    document = model_to_json(model, record, relevance, path, written)
    about = f"{model.learner}; written {written} by ahpatron {model.version}"
    schema, data = model.schema, document["data"] | {"kernel": model.kernel, "schema": None}
    names = dict(enumerate(schema.features, 1)) if schema else {}
    if schema:
        named = zip(schema.label_names(model.labels), model.labels, strict=True)
        data["labels"] = [f"{name or 'other'} ({show(label or 0.0)})" for name, label in named]
        data["columns"] = [
            f"{one.name} ({one.kind}: {len(one.features)})" for one in schema.columns
        ]
    counts = {
        name: value
        for name, value in document.items()
        if name in RUN_FIELDS and name not in ("learner", "params", "confusion")
    }
    return "".join(
        [
            *(f"{line}\n" for line in terminal.title(path, about)),
            _section(terminal, "Data", data),
            _section(terminal, "Parameters", document["params"]),
            _section(terminal, "Stream", counts),
            _section(
                terminal,
                f"Largest relevance, of {record.effective_features or 0:.1f} effective features",
                {
                    names.get(number, str(number)): f"{share(value):>6} {'█' * round(40 * value)}"
                    for number, value in relevance
                },
            ),
        ]
    )


def model_to_json(
    model: Header,
    record: RunRecord,
    relevance: Sequence[tuple[int, float]],
    path: str,
    written: str,
) -> Json:
    """What a model is; of its data, the file that it learned from last and a checksum of that."""
    run = run_to_json(record)
    del run["this_file"], run["params"]
    params = plain_params({**model.kernel_params, **model.params})
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
            "labels": [None if label is None else whole(label) for label in model.labels],
            "scale": model.scale,
            "schema": msgspec.to_builtins(model.schema),
        },
        "kernel": model.kernel,
        "params": params if model.kernel else {"sigma": None, **params},
        **run,
        "relevance": [{"feature": number, "relevance": value} for number, value in relevance]
        or None,
    }


# Learners -----------------------------------------------------------------------------------------


def print_reference(terminal: Terminal) -> str:
    """Every learner and kernel, from their declarations."""
    document, parts = reference_to_json(), []
    for head, kinds in (
        ("Learners (-l NAME, -p PARAMETER=VALUE)", document["learners"]),
        ("Kernels (--kernel NAME)", document["kernels"]),
    ):
        parts.append(f"\n{terminal.strong(head)}\n")
        for kind in kinds:
            parts.append(f"\n{terminal.strong(kind['name'])}\n")
            parts += [f"{line}\n" for line in terminal.folded(kind["title"], "  ", "  ")]
            for one in kind["parameters"]:
                default = one["default_formula"] or one["default"]
                legal = f"{one['legal']}; default {'none' if default is None else default}"
                first = f"    {one['name']:<14} {terminal.escape(one['symbol']):<4} "
                text = terminal.folded(f"{one['meaning']}: {legal}", first, " " * 20)
                parts += [f"{line}\n" for line in text]
    return "".join(parts)[1:]


def reference_to_json() -> Json:
    """All learners, kernels and their parameters as a document."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "learners": [_kind_to_json(kind, kind.title) for kind in REGISTRY.values()],
        "kernels": [
            _kind_to_json(kind, (kind.__doc__ or "").splitlines()[0].replace("`", ""))
            for kind in KERNELS.values()
        ],
    }


def _kind_to_json(kind: type[Learner] | type[Kernel], title: str) -> Json:
    defaults: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    limits = ("over", "at_least", "under", "at_most", "even")
    parameters = [
        {
            "name": name,
            "symbol": spec.symbol,
            "meaning": spec.meaning,
            "type": spec.kind.__name__,
            "legal": spec.legal(),
            **{limit: getattr(spec, limit) for limit in limits},
            "words": [*spec.words, *(["inf"] if spec.infinite else [])],
            "default": plain(defaults[name]),
            "default_formula": spec.formula,
        }
        for name, spec in kind.specs().items()
    ]
    return {"name": kind.name, "title": title, "parameters": parameters}
