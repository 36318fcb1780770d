"""The summary table as plain strings: one line per learner, before any output format.

The terminal table, Markdown and LaTeX differ only in how they set these strings.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from ahpatron_cli.records import DataRecord, Report, RunRecord, mean_sd, plain, whole


@dataclass(frozen=True)
class Line:
    """What is shown of one learner. None stands for a value that this learner does not have."""

    learner: str
    rate: str
    """Average mistake rate in percent, the mean over repeats."""
    spread: str | None
    """Its standard deviation over repeats."""
    mistakes: str
    margin_updates: str
    support: str | None
    halvings: str | None
    zeta: str | None
    seconds: str
    best: bool = False
    """The lowest rate of the data set, as shown; never set where there is nothing to compare."""

    def after_rate(self) -> tuple[str | None, ...]:
        """The cells to the right of the mistake rate."""
        return (
            self.mistakes,
            self.margin_updates,
            self.support,
            self.halvings,
            self.zeta,
            self.seconds,
        )


def summary_lines(report: Report) -> list[Line]:
    """One line per learner and setting, in the order in which they were asked for."""
    groups = report.by_learner()
    names = _names(groups)
    lines = [_line(name, runs) for name, runs in zip(names, groups, strict=True)]
    if len(lines) < 2:
        return lines
    lowest = min((line.rate for line in lines), key=float)
    return [replace(line, best=line.rate == lowest) for line in lines]


def repeats(report: Report) -> str | None:
    """What the lines of this report are averages of: `10 permutations`; None for a single pass."""
    count = max((len(runs) for runs in report.by_learner()), default=0)
    if count < 2:
        return None
    return f"{count} {'permutations' if report.shuffled else 'passes in file order'}"


def facts(data: DataRecord, *, arrow: str, minus: str = "-") -> str:
    """Size of the stream, and which label counts as what where that is not obvious."""
    parts = [_count(data.rounds, "round"), _count(data.features, "feature")]
    negative, positive = data.labels
    if (negative, positive) != (-1, 1):
        others = "others" if negative is None else whole(negative)
        parts.append(f"labels {others} {arrow} -1, {whole(positive)} {arrow} +1")
    return ", ".join(parts).replace("-", minus)


def _line(name: str, runs: Sequence[RunRecord]) -> Line:
    rate, spread = mean_sd([run.mistake_rate for run in runs])
    support = _mean([run.support_size for run in runs])
    budget = runs[0].budget
    return Line(
        learner=name,
        rate=f"{100 * rate:.2f}",
        spread=None if spread is None else f"{100 * spread:.2f}",
        mistakes=_number(fmean(run.mistakes for run in runs)),
        margin_updates=_number(fmean(run.margin_updates for run in runs)),
        support=None
        if support is None
        else _number(support) + (f"/{budget}" if budget is not None else ""),
        halvings=_optional(_mean([run.halvings for run in runs])),
        zeta=_optional(_mean([run.zeta for run in runs]), decimals=4),
        seconds=f"{fmean(run.seconds for run in runs):.3f}",
    )


def _names(groups: Sequence[Sequence[RunRecord]]) -> list[str]:
    """Learner names; where one was played with several settings, what differs follows."""
    names = []
    for runs in groups:
        first = runs[0]
        rivals = [other[0].params for other in groups if other[0].learner == first.learner]
        differing = [
            f"{name}={plain(value)}"
            for name, value in first.params.items()
            if any(params.get(name) != value for params in rivals)
        ]
        names.append(f"{first.learner} ({', '.join(differing)})" if differing else first.learner)
    return names


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _optional(value: float | None, decimals: int | None = None) -> str | None:
    if value is None:
        return None
    return _number(value) if decimals is None else f"{value:.{decimals}f}"


def _number(value: float) -> str:
    """A count, or the mean of counts: 581, 581.3."""
    return f"{value:.0f}" if value == int(value) else f"{value:.1f}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
