"""The profile of a data file as people read it: in sections, at any width."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.console import Console
from rich.text import Text

from ahpatron_cli.data.labels import show
from ahpatron_cli.numbers import counted, share, short
from ahpatron_cli.output.escape import literal
from ahpatron_cli.output.terminal import Window, print_lines
from ahpatron_cli.profile.distances import Alignment, Distances
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

_MOST_LABELS = 10
_WIDE, _NAMES = 60, 14
"""Windows from `_WIDE` columns on have a column of `_NAMES` for names."""
_BAR = 40
_FULL, _TRACE = "█", "▏"
_ASCII = {"σ": "sigma", "κ": "k", "²": "^2", "±": "+-", _FULL: "#", _TRACE: ":"}

_Entry: TypeAlias = tuple[str, str]
"""A name and a text."""


@dataclass(frozen=True)
class _Section:
    head: str
    entries: Sequence[_Entry] = ()
    bars: Sequence[tuple[str, float]] = ()
    """Bins of a histogram and their shares."""
    items: Sequence[str] = ()
    verbatim: Sequence[str] = ()
    """Escaped already, and never folded: to be copied, or searched for."""


def print_profile(profile: Profile, console: Console) -> None:
    """Write it to the console's stream."""
    print_lines(lambda window: _lines(profile, window), _ASCII, console)


def _lines(profile: Profile, window: Window) -> Iterator[Text]:
    yield from window.title(profile.path, _size(profile))
    for note in profile.notes:
        yield from window.folded(note, "  ", "  ")
    for section in _sections(profile):
        yield Text()
        yield from window.folded(section.head, "", "  ", style="bold")
        for name, text in section.entries:
            first, rest = f"  {window.ours(name):<{_NAMES}}  ", " " * (_NAMES + 4)
            if window.width < _WIDE:
                first, rest = f"  {window.ours(name)}: ", "    "
            yield from window.folded(text, first, rest)
        yield from _bars(section.bars, window)
        for item in section.items:
            yield from window.folded(item, "  - ", "    ")
        yield from map(Text, section.verbatim)


def _bars(bars: Sequence[tuple[str, float]], window: Window) -> Iterator[Text]:
    """One line per bin; the longest bar fills the room that there is."""
    width = max((len(name) for name, _ in bars), default=0)
    longest = max((part for _, part in bars), default=0.0)
    full = max(min(_BAR, window.width - width - 12), 5)
    for name, part in bars:
        bar = _FULL * round(full * part / longest) or (_TRACE if part else "")
        yield Text(f"  {name:>{width}}  {window.ours(bar)}{' ' if bar else ''}{share(part)}")


def _size(profile: Profile) -> str:
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
        kernel = list(_kernel(content))
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
        yield _Section("Next", verbatim=[f"  {literal(command)}" for command in commands])


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
        rarer = min(count, rows - count) / rows
        yield "baseline", f"{share(rarer)} mistakes, by always predicting the more frequent label"
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
    yield "never used", _count(facts.never_used)
    yield "constant", _count(facts.constant)
    if facts.widest:
        ranges = (f"{one.index}: {_span(one.low, one.high)}" for one in facts.widest)
        yield "widest", "; ".join(ranges)


def _count(count: int) -> str:
    return f"{count:,}" if count else "none"


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


def _kernel(content: Content) -> Iterator[_Entry]:
    distances = content.distances
    if distances:
        yield "median σ", f"{short(distances.sigma)}, the median distance"
        low, high = short(distances.sigma_low), short(distances.sigma_high)
        why = "at least 5 % of pairs have κ >= 0.05, at least 5 % κ <= 0.95"
        yield "useful σ", f"{low} to {high}: {why}"
    if content.tried:
        rates = ", ".join(f"{short(one.sigma)}: {share(one.mistake_rate)}" for one in content.tried)
        rows = counted(content.tried[0].rounds, "row")
        yield "tried σ", f"{rates} mistakes of ahpatron+ (B = 100) on {rows} drawn at random"
    for alignment in content.alignments:
        yield "alignment A_T", _alignment(alignment)


def _alignment(alignment: Alignment) -> str:
    place = f"at σ = {short(alignment.sigma)}"
    per_round = f"{alignment.per_round:.3f} of T"
    if alignment.exact:
        return f"{alignment.value:,.1f} {place}, {per_round}, exact"
    error = alignment.standard_error
    spread = "" if error is None else f" ± {error:,.1f}"
    drawn = f"estimated from {counted(alignment.rows, 'row')} drawn at random"
    return f"{alignment.value:,.1f}{spread} {place}, {per_round}; {drawn}" + (
        "" if error is None else ", ± standard error"
    )


def _faults(faults: FaultFacts, name: str) -> _Section:
    lines = []
    for fault in faults.first:
        note = f" ({literal(fault.note)})" if fault.note else ""
        lines.append(f"{name}:{fault.line}:{fault.column}: {fault.problem}{note}")
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in faults.kinds.items())
    head = f"{counted(faults.count, 'faulty line')}: {kinds}"
    if faults.count > len(lines):
        head += f"; the first {len(lines):,} shown" if lines else "; none shown"
    if faults.stopped:
        head += "; the rest was not read"
    return _Section(head, verbatim=lines)
