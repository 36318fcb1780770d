"""Output of `inspect` (data, models) as JSON and as text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import to_builtins

from ahpatron_cli import __version__
from ahpatron_cli.core.learners.metron import Memories
from ahpatron_cli.core.metric_expansion import most_relevant
from ahpatron_cli.core.state import State
from ahpatron_cli.data.labels import show as show_label
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.explanation import ColumnRelevance, StoredExample, column_relevances
from ahpatron_cli.model_file import Header, Model
from ahpatron_cli.number_text import counted, percent, share, short
from ahpatron_cli.output.escape import visible
from ahpatron_cli.output.render import Terminal, in_lines
from ahpatron_cli.output.table import Column, Page, Table
from ahpatron_cli.overview import ColumnOverview
from ahpatron_cli.profile import Profile
from ahpatron_cli.records import (
    DOCUMENT_VERSION,
    Json,
    Number,
    RunRecord,
    plain_params,
    run_to_json,
)
from ahpatron_cli.runner import Run
from ahpatron_cli.sigma import SUGGESTED_LEARNER

T = TypeVar("T")
_MOST_LABELS = 10
_MOST_ALARMS = 10
_MOST_RELEVANT = 20
"""Largest number of columns whose relevance is shown."""
_MOST_COLUMNS = 40
"""Largest number of columns of a table that are shown."""
_WIDEST_NAME = 24
_WIDEST_TEXT = 20
"""Largest widths of names and texts of columns, in characters."""
_NAMES = 20
"""Width of the column with the names of entries, in characters."""


def _section(terminal: Terminal, head: str, entries: Mapping[str, Any] | Iterable[str]) -> str:
    """Text of a section: a heading, then names and values, or items; empty if there are none."""
    lines = list[str]()
    if isinstance(entries, Mapping):
        rest = " " * (_NAMES + 4)
        for name, value in entries.items():
            if value not in (None, (), [], ""):
                shown = terminal.escape(name)
                first = f"  {shown:<{_NAMES}}  "
                lines += terminal.folded(_value(value), first, rest)
    else:
        for item in entries:
            lines += terminal.folded(item, "  - ", "    ")
    if not lines:
        return ""
    return in_lines(["", terminal.strong(head), *lines])


def _value(value: Any) -> str:
    """A value of a document as display text."""
    if isinstance(value, list | tuple):
        return ", ".join(map(_value, value))
    if isinstance(value, int):
        return f"{value:,}"
    return short(value, 5)


def _span(low: float | None, high: float | None) -> str | None:
    """A range of numbers as text; None if it is not known."""
    if low is None or high is None:
        return None
    return f"{short(low, 4)} to {short(high, 4)}"


def _rows_text(rows: int, of: int) -> str:
    """A number of rows and its share of all rows: `30 rows, 10.0 %`."""
    part = share(rows / of)
    return f"{counted(rows, 'row')}, {part}"


# Data ---------------------------------------------------------------------------------------------


def profile_text(profile: Profile, terminal: Terminal) -> str:
    """The profile of a data file as text."""
    columns = counted(profile.features, "feature")
    if profile.columns and not profile.labels:
        columns = counted(profile.features, "column")
    about = f"{counted(profile.rows, 'row')}, {columns}"
    if profile.density is not None:
        about += f", {share(profile.density)} of values stored"
    ranges: Json = {}
    if profile.examined:
        ranges = _ranges(profile)
    title = terminal.title(profile.path, about)
    parts = [
        in_lines(title),
        _section(terminal, "Notes", profile.notes),
        _section(terminal, "Labels", _labels(profile)),
        _columns(profile, terminal),
        _section(terminal, "Rows and features", ranges),
        _section(terminal, "Gaussian kernel", _kernel(profile)),
        _section(terminal, "Mistakes on rows drawn at random", _tried(profile)),
        _section(terminal, "Not computed", profile.unknown),
        _faults(profile, terminal),
        _section(terminal, "Advice", profile.advice),
        _next(profile, terminal),
    ]
    return "".join(parts)


def _columns(profile: Profile, terminal: Terminal) -> str:
    """A table of the columns of a table, those that need a look first if there are many."""
    if not profile.columns:
        return ""
    shown = _columns_to_show(profile)
    title = "Columns"
    count = len(profile.columns)
    if len(shown) < count:
        title += f": {len(shown)} of {count:,}; --json has all"
    notes = []
    rated = [one for one in shown if one.mistake_rate is not None]
    if rated:
        notes.append(
            "Alone %: mistakes of predicting the most frequent label so far among rows with the "
            "same text, or with a number in the same of 64 intervals."
        )
    names = [_cut(one.name, _WIDEST_NAME) for one in shown]
    types = [_column_type(one) for one in shown]
    missing = [_missing(one) for one in shown]
    distinct = [_distinct(one) for one in shown]
    contents = [_content(one) for one in shown]
    alone = [_alone(one) for one in shown]
    columns = [
        Column("Column", names, left=True),
        Column("Type", types, left=True),
        Column("Missing %", missing, 2),
        Column("Distinct", distinct, 3),
        Column("Range or most frequent", contents, 1, left=True),
        Column("Alone %", alone),
    ]
    table = Table(kind="columns", name="", title=title, columns=columns, notes=notes)
    text = terminal.page(Page([table]))
    return f"\n{text.rstrip()}\n"


def _columns_to_show(profile: Profile) -> Sequence[ColumnOverview]:
    """All columns; of many, those that need a look or tell most about the label."""
    columns = profile.columns
    if len(columns) <= _MOST_COLUMNS:
        return columns

    def rank(one: ColumnOverview) -> tuple[bool, float]:
        needs_look = bool(one.constant or one.like_id or one.like or one.other_types)
        is_plain = one.role == "feature" and not needs_look
        if one.mistake_rate is None:
            return is_plain, 1.0
        return is_plain, one.mistake_rate

    chosen = sorted(columns, key=rank)[:_MOST_COLUMNS]
    names = {one.name for one in chosen}
    return [one for one in columns if one.name in names]


def _column_type(one: ColumnOverview) -> str:
    """Type of a column, or what it is besides a feature."""
    if one.role != "feature":
        return one.role
    if one.constant:
        return "constant"
    if one.like_id:
        return "like an id"
    if one.like is not None:
        return f"like {one.like}"
    if one.other_types:
        return "mixed"
    return one.type


def _missing(one: ColumnOverview) -> str | None:
    if not one.missing:
        return None
    return percent(one.missing / one.rows)


def _distinct(one: ColumnOverview) -> str:
    if one.distinct is None:
        return "> 10,000"
    return f"{one.distinct:,}"


def _content(one: ColumnOverview) -> str | None:
    """The range of numbers and dates, or the most frequent text."""
    if one.most_frequent is not None:
        rows = one.most_frequent_rows or 0
        part = share(rows / one.rows)
        text = _cut(one.most_frequent, _WIDEST_TEXT)
        return f"{text} ({part})"
    if isinstance(one.low, str) and isinstance(one.high, str):
        return _dates(one.low, one.high)
    if isinstance(one.low, str) or isinstance(one.high, str):
        return None
    if one.low == one.high and one.low is not None:
        return short(one.low, 4)
    return _span(one.low, one.high)


def _dates(low: str, high: str) -> str:
    """A range of dates, without the seconds of whole minutes."""
    if low == high:
        return low
    shown = [re.sub(r"T(..:..)(:00$)?", r" \1", text) for text in (low, high)]
    return " to ".join(shown)


def _alone(one: ColumnOverview) -> str | None:
    if one.mistake_rate is None:
        return None
    return percent(one.mistake_rate)


def _cut(text: str, most: int) -> str:
    """A text without its end if it is too long."""
    if len(text) <= most:
        return text
    return f"{text[: most - 1]}…"


def _faults(profile: Profile, terminal: Terminal) -> str:
    """Text on the faulty lines of a file; empty if there are none."""
    if not profile.faults:
        return ""
    head = counted(profile.faults, "faulty line")
    without_column = [fault for fault in profile.faulty_lines if fault.column is None]
    if without_column:  # a table, of which a line may have several
        head = counted(profile.faults, "fault")
    shown = len(profile.faulty_lines)
    if profile.faults > shown:
        head += f"; the first {shown} are"
    if profile.stopped:
        head += "; the rest was not read"
    lines = ["", *terminal.folded(head)]
    for fault in profile.faulty_lines:
        place = f"{profile.path}:{fault.line}"
        if fault.column is not None:
            place += f":{fault.column}"
        lines.append(visible(f"{place}: {fault.problem}"))
    return in_lines(lines)


def _next(profile: Profile, terminal: Terminal) -> str:
    """Text on the commands that may come next; empty if there are none."""
    if not profile.next:
        return ""
    head = "Next"
    if profile.path == STDIN_NAME:
        head += ", where FILE stands for the data of standard input"
    commands = [f"  {visible(command)}" for command in profile.next]
    return in_lines(["", terminal.strong(head), *commands])


def _labels(profile: Profile) -> Json:
    """Entries on the labels: rows of each, and the baseline."""
    entries: Json = {}
    for one in profile.labels[:_MOST_LABELS]:
        name = one.name or show_label(one.label)
        entries[name] = _rows_text(one.rows, profile.rows)
    hidden = len(profile.labels) - len(entries)
    if hidden:
        more = "more than "
        if profile.all_labels:
            more = ""
        entries["others"] = f"{more}{hidden:,} labels"
    if profile.unlabelled:
        entries["without a label"] = _rows_text(profile.unlabelled, profile.rows)
    if profile.baseline is not None:
        entries["baseline"] = f"{percent(profile.baseline)} % mistakes: the most frequent label"
    return entries


def _ranges(profile: Profile) -> Json:
    """Entries on duplicate rows and on the ranges of features."""
    first = None
    if profile.examined < profile.rows:
        first = f"the first {profile.examined:,} rows"
    widest = None
    if profile.widest:
        feature, low, high = profile.widest
        widest = f"{feature}: {_span(low, high)}"
    return {
        "statistics of": first,
        "duplicate rows": profile.duplicates,
        "values": _span(profile.low, profile.high),
        "widest feature": widest,
        "constant features": profile.constant or None,
    }


def _kernel(profile: Profile) -> Json:
    """Entries on σ, from distances between rows, and on the alignment A_T."""
    entries = Json()
    if profile.sigma:
        median = f"{short(profile.sigma)}, the median distance"
        if profile.scale != "none":
            median += f", after --scale {profile.scale}"
        entries["median σ"] = median
        entries["useful σ"] = _span(profile.sigma_low, profile.sigma_high)
    for one in profile.alignments:
        text = f"A_T = {short(one.value, 5)}"
        if one.standard_error is not None:
            text += f" ± {short(one.standard_error)}"
        text += f", {short(one.per_round)} of T"
        if not one.exact:
            text += f", estimated from {one.rows:,} rows"
        entries[f"alignment, σ = {short(one.sigma)}"] = text
    return entries


def _tried(profile: Profile) -> Json:
    """Mistake rates of learners on the sample, marked if worse than the majority class."""
    if not profile.tried:
        return {}
    best = profile.tried[0]
    rates = dict[str, float]()
    if profile.tried_metron is not None:
        rates["metron"] = profile.tried_metron
    for one in profile.tried:
        name = f"{SUGGESTED_LEARNER}, σ = {short(one.sigma)}"
        rates[name] = one.mistake_rate
    entries: Json = {"rows": best.rounds}
    for name, rate in rates.items():
        entries[name] = share(rate)
        if rate > best.majority_error:
            entries[name] += " (worse than the majority class)"
    entries["majority class"] = share(best.majority_error)
    return entries


# Models -------------------------------------------------------------------------------------------


def model_document(
    model: Model,
    run: Run,
    *,
    path: str,
    written: str | None,
    examples: Sequence[StoredExample] | None = None,
) -> Json:
    """Description of a model, and of the run that continues it, as JSON."""
    return model_to_json(
        model.header,
        run.result().record,
        most_relevant([loop.f for loop in run.player.loops], 10),
        by_column=column_relevances(run.player, model.header.schema),
        examples=examples,
        path=path,
        written=written,
        last_reset=run.player.last_reset,
        memories=run.memories(),
        live=model.live,
    )


def model_to_json(
    model: Header,
    record: RunRecord,
    relevance: Sequence[tuple[int, float]],
    *,
    by_column: Sequence[ColumnRelevance],
    examples: Sequence[StoredExample] | None,
    path: str,
    written: str | None,
    last_reset: int | None,
    memories: Sequence[Memories],
    live: State | None,
) -> Json:
    """Description of a model as JSON, with the last data file and its checksum.

    `last_reset` is the round after which the model has started from scratch. `memories` has an
    entry for each learner with a tracker: one, or one per class. `live` is what a state of a live
    stream has in addition.
    """
    return {
        "schema": DOCUMENT_VERSION,
        "version": __version__,
        "kind": "model",
        "path": path,
        "written": written,
        "made_by": model.version,
        "data": _data_to_json(model),
        "kernel": model.kernel,
        "params": _params_to_json(model),
        **_counts_to_json(record, live),
        "last_reset": last_reset,
        "rounds_since_reset": None if last_reset is None else record.rounds - last_reset,
        "relevance": _relevance_to_json(model, relevance) or None,
        "memories": _memories_to_json(model, memories) or None,
        "relevance_by_column": to_builtins(by_column) or None,
        "examples": to_builtins(examples),
        "live": _live_to_json(live),
    }


def _params_to_json(model: Header) -> Json:
    """Parameters of kernel and learner; there is always a sigma."""
    params: Json = plain_params({**model.kernel_params, **model.params})
    if not model.kernel:
        return {"sigma": None, **params}
    return params


def _counts_to_json(record: RunRecord, live: State | None) -> Json:
    """What was counted over all files, or by a live stream."""
    run = run_to_json(record)
    if live is not None:
        run["unlabelled"] = live["counts"]["unlabelled"]
    del run["this_file"]
    del run["params"]
    return run


def _live_to_json(live: State | None) -> Json | None:
    """The counts of a live stream as JSON; a producer continues after `lines`."""
    if live is None:
        return None
    counts = dict(live["counts"])
    del counts["class"]
    remembered = live["remembered"]
    return {
        **counts,
        "pending": len(remembered["lengths"]),
        "forgotten": remembered["forgotten"],
    }


def _data_to_json(model: Header) -> Json:
    """The last data file of a model as JSON."""
    return {
        "path": model.data,
        "rounds": model.rounds,
        "checksum": f"{model.digest:08x}",
        "features": model.features,
        "labels": model.labels,
        "scale": model.scale,
        "schema": to_builtins(model.schema),
    }


def _relevance_to_json(model: Header, relevance: Sequence[tuple[int, float]]) -> list[Json]:
    """Relevance of features as JSON, with their names in a table."""
    names = dict[int, str]()
    if model.schema:
        features = model.schema.features
        names = dict(enumerate(features, start=1))
    return [
        {
            "feature": number,
            "name": names.get(number),
            "relevance": value,
        }
        for number, value in relevance
    ]


def _memories_to_json(model: Header, memories: Sequence[Memories]) -> list[Json]:
    """The two memories of each learner as JSON; with one per class, with the label of its class."""
    labels: Sequence[Number | None] = [None] * len(memories)
    if len(memories) > 1:
        labels = model.labels
    names = dict[Number | None, str]()
    if model.schema:
        for name, label in model.schema.labels.items():
            names[label] = name
    return [
        {
            "class": label,
            "name": names.get(label),
            "tracker_weight": one.tracker_weight,
            "leader": "tracker" if one.tracker_leads else "steady",
            "alarms": one.alarms,
            "alarm_rounds": list(one.alarm_rounds),
            "steady_rows": one.steady_rows,
            "tracker_rows": one.tracker_rows,
        }
        for label, one in zip(labels, memories, strict=True)
    ]


def model_text(document: Json, terminal: Terminal) -> str:
    """The description of a model as text."""
    about = "{learner}; written {written} by ahpatron {made_by}".format_map(document)
    params = {"kernel": document["kernel"], **document["params"]}
    counts = Json()
    for name, value in document.items():
        if isinstance(value, int | float) and name != "schema":
            counts[name] = value
    live = document["live"] or {}
    title = terminal.title(document["path"], about)
    parts = [
        in_lines(title),
        _section(terminal, "Data", _data_of_model(document)),
        _section(terminal, "Parameters", params),
        _section(terminal, "Stream", _with_spaces(counts)),
        _section(terminal, "Live stream", _with_spaces(live)),
        _section(terminal, "Two memories", _memories(document)),
        _section(terminal, "Relevance of columns, above the uniform part", _bars(document)),
        _examples(document, terminal),
    ]
    return "".join(parts)


def _with_spaces(entries: Json) -> Json:
    """The entries under names as people write them."""
    spaced = Json()
    for name, value in entries.items():
        spaced[name.replace("_", " ")] = value
    return spaced


def _data_of_model(document: Json) -> Json:
    """Entries on the data of a model; of the schema of a table, labels and columns."""
    data = dict(document["data"])
    schema = data.pop("schema")
    if schema:
        label_names = []
        for name, label in schema["labels"].items():
            label_names.append(f"{name} ({show_label(label)})")
        data["label names"] = label_names
        columns = schema["columns"]
        data["columns"] = ["{name} ({kind})".format_map(one) for one in columns]
    return data


def _memories(document: Json) -> Json:
    """Entries on the two memories of a model; with one learner per class, an entry per class."""
    memories = document["memories"] or []
    if len(memories) == 1:
        return _memory(memories[0])
    entries = Json()
    for one in memories[:_MOST_LABELS]:
        name = one["name"] or show_label(one["class"])
        about = [f"{what} {text}" for what, text in _memory(one).items()]
        entries[f"class {name}"] = "; ".join(about)
    hidden = len(memories) - len(entries)
    if hidden:
        entries["others"] = f"{hidden:,} more classes"
    return entries


def _memory(one: Json) -> dict[str, str]:
    """Entries on the two memories of one learner."""
    leader = "the steady memory leads"
    if one["leader"] == "tracker":
        leader = "the tracker leads"
    alarms = f"{one['alarms']:,}"
    since = "the first round"
    if one["alarms"]:
        shown = one["alarm_rounds"][-_MOST_ALARMS:]
        where = "in rounds"
        if len(shown) == 1:
            where = "in round"
        if one["alarms"] > len(shown):
            where = f"last {where}"
        alarms += f", {where} {_value(shown)}"
        since = "the last alarm"
    return {
        "weight of tracker": f"{one['tracker_weight']:.3f}: {leader}",
        "alarms": alarms,
        "steady memory": f"{counted(one['steady_rows'], 'row')} learned since {since}",
        "tracker": f"{counted(one['tracker_rows'], 'row')} learned since the first round",
    }


def _bars(document: Json) -> Json:
    """Entries on the relevance of columns, with bars."""
    entries = Json()
    columns = document["relevance_by_column"] or ()
    for one in columns[:_MOST_RELEVANT]:
        part = one["above_uniform"]
        bar = "█" * round(40 * part)
        name = _cut(one["column"], _NAMES)
        entries[name] = f"{share(part):>7} {bar}"
    hidden = len(columns) - _MOST_RELEVANT
    if hidden > 0:
        entries["others"] = f"{hidden:,} more columns"
    return entries


def _examples(document: Json, terminal: Terminal) -> str:
    """A table of stored examples, with the most relevant columns first."""
    examples = document["examples"]
    if not examples:
        return ""
    relevances = document["relevance_by_column"] or ()
    names = [one["column"] for one in relevances]
    for one in examples:
        names += one["cells"]
    coefficients = [f"{one['coefficient']:.3f}" for one in examples]
    labels = [one["label"] for one in examples]
    columns = [
        Column("Coefficient", coefficients),
        Column("In favour of", labels, left=True),
    ]
    distinct = list(dict.fromkeys(names))
    for priority, name in enumerate(distinct[:_MOST_RELEVANT], start=1):
        cells = [_cell(one["cells"].get(name)) for one in examples]
        heading = _cut(name, _WIDEST_NAME)
        columns.append(Column(heading, cells, priority))
    title = f"Stored examples with the largest coefficients: {len(examples)}"
    table = Table(kind="examples", name="", title=title, columns=columns)
    text = terminal.page(Page([table]))
    return f"\n{text.rstrip()}\n"


def _cell(value: float | str | None) -> str | None:
    """A cell of a stored example; None if it is missing."""
    if value is None:
        return None
    if isinstance(value, str):
        return _cut(value, _WIDEST_TEXT)
    return short(float(value), 6)
