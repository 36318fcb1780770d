"""What `inspect` shows of data, a model and the list of learners: in sections, and as JSON."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, fields
from typing import Any, NamedTuple, TypeAlias

import msgspec

from ahpatron_cli import __version__
from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner
from ahpatron_cli.data.geometry import SUGGESTED_LEARNER, Alignment, Distances
from ahpatron_cli.data.labels import describe, show
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.models import Header
from ahpatron_cli.numbers import counted, percent, share, short
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.profile.profile import (
    Content,
    FaultFacts,
    FeatureFacts,
    LabelFacts,
    Profile,
    RowFacts,
    advice,
    next_commands,
)
from ahpatron_cli.records import (
    SCHEMA,
    Json,
    RunRecord,
    plain,
    plain_params,
    run_to_json,
    whole,
)

_MOST_LABELS = 10
_WIDE, _NAMES = 60, 14
"""Windows from `_WIDE` columns on have a column of `_NAMES` for names."""
_BAR = 40
_LIMITS = ("over", "at_least", "under", "at_most", "even")
_Kind: TypeAlias = type[Learner] | type[Kernel]
_Entry: TypeAlias = tuple[str, str]
"""A name and a text."""


class _Section(NamedTuple):
    head: str
    entries: Iterable[_Entry] = ()
    bars: Sequence[tuple[str, float]] = ()
    """Bins of a histogram and their shares."""
    items: Sequence[str] = ()
    verbatim: Sequence[str] = ()
    """Escaped already, and never folded: to be copied, or searched for."""


def print_profile(profile: Profile, terminal: Terminal) -> str:
    """What a data file is like."""
    return _text(profile.path, _size(profile), profile.notes, _sections(profile), terminal)


def print_model(
    model: Header,
    record: RunRecord,
    relevance: Sequence[tuple[int, float]],
    path: str,
    written: str,
    terminal: Terminal,
) -> str:
    """What a model is."""
    schema = model.schema
    file = f"; last learned from {literal(model.data)}" if model.data else ""
    made = f"written {written} by ahpatron {literal(model.version)}"
    kernel = f", {model.kernel} kernel" if model.kernel else ""
    about = f"{model.learner}{kernel}{file}; {made}"
    kept = "no examples"
    if record.support_size is not None:
        kept = counted(record.support_size, "example")
        if model.classes and model.params.get("multiclass") != "shared":
            kept += " per class, at most"
    mistakes = f"{record.mistakes:,} mistakes ({percent(record.mistake_rate)} %)"
    learned = [
        ("rounds", f"{record.rounds:,}, with {mistakes}"),
        ("features", f"{model.features:,}, computed {'densely' if model.dense else 'sparsely'}"),
        ("labels", _names(schema, model) or describe(model.labels) or "-1 and 1"),
        ("scaling", model.scale),
        ("seed", str(model.seed)),
        ("active set", f"{kept}, ‖f‖ = {record.norm:.6g}"),
    ]
    if schema:
        kinds = [f"{one.name} ({one.kind}: {len(one.features)})" for one in schema.columns]
        learned.insert(1, ("columns", listed(kinds, 40)))
    params = plain_params({**model.params, **model.kernel_params})
    shown = [(name, str(value)) for name, value in params.items()]
    sections = [_Section("Stream", learned), _Section("Parameters", shown)]
    if relevance:
        features = f"{record.effective_features or 0:.1f} effective features"
        head = f"Features with the largest relevance, of {features}"
        named = dict(enumerate(schema.features, 1)) if schema else {}
        bars = [(literal(named.get(number, str(number))), value) for number, value in relevance]
        sections.append(_Section(head, bars=bars))
    return _text(path, about, (), sections, terminal)


def _names(schema: Schema | None, model: Header) -> str | None:
    """The names of the labels of a table, each with the number that stands for it."""
    if schema is None:
        return None
    named = zip(schema.label_names(model.labels), model.labels, strict=True)
    return listed(f"{name or 'other'} ({show(value or 0.0)})" for name, value in named)


def _text(
    path: str, about: str, notes: Iterable[str], sections: Iterable[_Section], terminal: Terminal
) -> str:
    lines = [*terminal.title(path, about)]
    lines += [line for note in notes for line in terminal.folded(note, "  ", "  ")]
    lines += [line for section in sections for line in _section_lines(section, terminal)]
    return "".join(f"{line.rstrip()}\n" for line in lines)


def _section_lines(section: _Section, terminal: Terminal) -> Iterator[str]:
    yield ""
    yield from map(terminal.best, terminal.folded(section.head, "", "  "))
    for name, text in section.entries:
        first, rest = f"  {terminal.ours(name):<{_NAMES}}  ", " " * (_NAMES + 4)
        if terminal.width < _WIDE:
            first, rest = f"  {terminal.ours(name)}: ", "    "
        yield from terminal.folded(text, first, rest)
    width = max((len(name) for name, _ in section.bars), default=0)
    longest = max((part for _, part in section.bars), default=0.0)
    full = max(min(_BAR, terminal.width - width - 12), 5)  # the longest bar fills the room
    for name, part in section.bars:
        bar = "█" * round(full * part / longest) or ("▏" if part else "")
        yield f"  {name:>{width}}  {terminal.ours(bar)}{' ' if bar else ''}{share(part)}"
    for item in section.items:
        yield from terminal.folded(item, "  - ", "    ")
    yield from section.verbatim


def _size(profile: Profile) -> str:
    if not profile.rows and profile.faults.stopped:
        return "no rows could be read"
    text = f"{counted(profile.rows, 'row')}, {counted(profile.features, 'feature')}"
    if profile.density is not None:
        text += f", {share(profile.density)} of values stored"
    return text


def _sections(profile: Profile) -> Iterator[_Section]:
    content = profile.content
    if content:
        yield _Section("Labels", list(_labels(content.labels, profile.rows)))
        yield _Section("Rows", list(_rows(content.row_facts, profile.rows)))
        if content.feature_facts.examined:
            yield _Section("Features", list(_features(content.feature_facts, profile.features)))
        if content.distances:
            yield _distances(content, content.distances, profile.rows)
        kernel = list(_kernel(content, profile.rows))
        if kernel:
            yield _Section("Gaussian kernel, κ = exp(-d²/(2σ²))", kernel)
        if content.unknown:
            yield _Section("Not computed", items=content.unknown)
    if profile.faults.count:
        yield _faults(profile.faults, literal(profile.path))
    items = advice(profile)
    if items:
        yield _Section("Advice", items=items)
    commands = next_commands(profile)
    if commands:
        stdin = profile.path == STDIN_NAME
        head = "Next, where FILE stands for the data of standard input" if stdin else "Next"
        yield _Section(head, verbatim=[f"  {literal(command)}" for command in commands])


def _labels(labels: LabelFacts, rows: int) -> Iterator[_Entry]:
    for label, count in labels.counts[:_MOST_LABELS]:
        sign = ""
        if labels.positive is not None:
            sign = ", played as +1" if label == labels.positive else ", played as -1"
        yield show(label), f"{counted(count, 'row')}, {share(count / rows)}{sign}"
    hidden = len(labels.counts) - _MOST_LABELS
    if hidden > 0:
        yield "others", f"{'' if labels.complete else 'more than '}{hidden:,} more labels"
    if labels.positive is not None:
        count = dict(labels.counts).get(labels.positive, 0)
        rarer = share(min(count, rows - count) / rows)
        yield "majority class", f"error {rarer}, by always predicting the more frequent label"
    elif not labels.problem:
        yield "played", f"as {len(labels.counts):,} classes"
    if len(labels.counts) > 1:
        yield "order", "grouped by label" if labels.grouped else "mixed"


def _rows(facts: RowFacts, rows: int) -> Iterator[_Entry]:
    if facts.shortest is not None and facts.longest is not None:
        yield "length", _span(facts.shortest, facts.longest)
    if facts.empty:
        yield "empty", f"{facts.empty:,}: no value but 0"
    of = "" if facts.compared == rows else f" (of the first {facts.compared:,})"
    yield "duplicates", _some(facts.duplicates, facts.duplicate_lines) + of
    yield "contradictory", _some(facts.contradictory, facts.contradictory_lines) + of


def _some(count: int, lines: tuple[int, int] | None) -> str:
    return f"{count:,}, such as lines {lines[0]} and {lines[1]}" if lines else "none"


def _features(facts: FeatureFacts, features: int) -> Iterator[_Entry]:
    if facts.low is None or facts.high is None:
        return
    if facts.examined < features:
        yield "examined", f"the first {facts.examined:,} features only"
    yield "values", _span(facts.low, facts.high)
    yield "within 0..1", f"{facts.within_0_1:,}"
    yield "within -1..1", f"{facts.within_1_1:,}"
    yield "never used", f"{facts.never_used:,}" if facts.never_used else "none"
    yield "constant", f"{facts.constant:,}" if facts.constant else "none"
    if facts.widest:
        ranges = (f"{one.index}: {_span(one.low, one.high)}" for one in facts.widest)
        yield "widest", "; ".join(ranges)


def _span(low: float, high: float) -> str:
    return f"{short(low, 4)} to {short(high, 4)}"


def _distances(content: Content, distances: Distances, rows: int) -> _Section:
    whose = "all rows" if distances.rows == rows else f"{distances.rows:,} rows drawn at random"
    scale = content.scaling.applied
    after = f", after --scale {scale}" if scale != "none" else ""
    edges, counts = distances.histogram_edges, distances.histogram_counts
    width = max(len(short(edge)) for edge in edges)
    bars = [
        (f"{short(low):>{width}} to {short(high):>{width}}", count / distances.pairs)
        for low, high, count in zip(edges, edges[1:], counts, strict=False)
    ]
    if distances.zero_pairs:
        bars.insert(0, ("0", distances.zero_pairs / distances.pairs))
    head = f"Distances between {whose}, {counted(distances.pairs, 'pair')}{after}"
    return _Section(head, bars=bars)


def _kernel(content: Content, rows: int) -> Iterator[_Entry]:
    distances = content.distances
    if distances:
        yield "median σ", f"{short(distances.sigma)}, the median distance"
        low, high = short(distances.sigma_low), short(distances.sigma_high)
        why = "at least 5 % of pairs have κ >= 0.05, at least 5 % κ <= 0.95"
        yield "useful σ", f"{low} to {high}: {why}"
    if content.tried:
        rates = ", ".join(
            f"{short(one.sigma)}: {share(one.mistake_rate)}"
            + (" (worse than the majority class)" if one.mistake_rate > one.majority_error else "")
            for one in content.tried
        )
        tried = content.tried[0].rounds
        on = f"{counted(tried, 'row')} drawn at random"
        on = "all rows in a random order" if tried == rows else on
        majority = f"majority-class error {share(content.tried[0].majority_error)}"
        yield "tried σ", f"{rates} mistakes of {SUGGESTED_LEARNER} on {on}; {majority}"
        if content.tried_metron is not None:
            yield "without σ", f"{share(content.tried_metron)} mistakes of metron on these rows"
    for alignment in content.alignments:
        yield "alignment A_T", _alignment(alignment)


def _alignment(alignment: Alignment) -> str:
    where = f"at σ = {short(alignment.sigma)}, {alignment.per_round:.3f} of T"
    if alignment.exact:
        return f"{alignment.value:,.1f} {where}, exact"
    drawn = f"estimated from {counted(alignment.rows, 'row')} drawn at random"
    if alignment.standard_error is None:
        return f"{alignment.value:,.1f} {where}; {drawn}"
    spread = f"± {alignment.standard_error:,.1f}"
    return f"{alignment.value:,.1f} {spread} {where}; {drawn}, ± standard error"


def _faults(faults: FaultFacts, name: str) -> _Section:
    lines = [
        f"{name}:{fault.line}:{fault.column}: {fault.problem}"
        + (f" ({literal(fault.note)})" if fault.note else "")
        for fault in faults.first
    ]
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in faults.kinds.items())
    head = f"{counted(faults.count, 'faulty line')}: {kinds}"
    if faults.count > len(lines):
        head += f"; the first {len(lines):,} shown" if lines else "; none shown"
    if faults.stopped:
        head += "; the rest was not read"
    return _Section(head, verbatim=lines)


def print_reference(terminal: Terminal) -> str:
    """Every learner and kernel, from their declarations."""
    lines = [terminal.best("Learners (-l NAME, -p PARAMETER=VALUE)")]
    lines += [line for learner in REGISTRY.values() for line in _describe(terminal, learner)]
    lines += ["", terminal.best("Kernels (--kernel NAME)")]
    lines += [line for kernel in KERNELS.values() for line in _describe(terminal, kernel)]
    return "".join(f"{line}\n" for line in lines)


def reference_to_json() -> Json:
    """All learners, kernels and their parameters as a document."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "learners": [_kind_to_json(kind) for kind in REGISTRY.values()],
        "kernels": [_kind_to_json(kind) for kind in KERNELS.values()],
    }


def _describe(terminal: Terminal, kind: _Kind) -> Iterator[str]:
    yield ""
    yield terminal.best(kind.name)
    yield from terminal.folded(_title(kind), "  ", "  ")
    for name, spec in kind.specs().items():
        first = f"    {name:<11} {terminal.ours(spec.symbol):<4} "
        yield from terminal.folded(spec.meaning, first, " " * 16)
        default = spec.formula or _default(kind, name)
        legal = f"{spec.legal()}; default {'none' if default is None else default}"
        yield from terminal.folded(legal, " " * 16, " " * 16)


def _title(kind: _Kind) -> str:
    if issubclass(kind, Learner):
        return kind.title
    return (kind.__doc__ or "").splitlines()[0].replace("`", "")


def _default(kind: _Kind, name: str) -> Any:
    values: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    return plain(values[name])


def _kind_to_json(kind: _Kind) -> Json:
    parameters = [
        {
            "name": name,
            "symbol": spec.symbol,
            "meaning": spec.meaning,
            "type": spec.kind.__name__,
            "legal": spec.legal(),
            **{limit: getattr(spec, limit) for limit in _LIMITS},
            "words": [*spec.words, *(["inf"] if spec.infinite else [])],
            "default": _default(kind, name),
            "default_formula": spec.formula,
        }
        for name, spec in kind.specs().items()
    ]
    return {"name": kind.name, "title": _title(kind), "parameters": parameters}


def profile_to_json(profile: Profile) -> Json:
    """Plain values only; null for what is not known."""
    document = asdict(profile)
    content = document.pop("content") or dict.fromkeys(one.name for one in fields(Content))
    labels = content["labels"]
    if labels:
        counts = labels["counts"]
        labels["counts"] = [{"label": whole(label), "rows": rows} for label, rows in counts]
        for name in ("negative", "positive"):
            labels[name] = None if labels[name] is None else whole(labels[name])
    follows = {"advice": advice(profile), "next": next_commands(profile)}
    return {"schema": SCHEMA, "version": __version__, **document, **content, **follows}


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
        "params": ({} if model.kernel else {"sigma": None})
        | plain_params({**model.kernel_params, **model.params}),
        **run,
        "relevance": [{"feature": number, "relevance": value} for number, value in relevance]
        or None,
    }
