"""The words and cells that the sheets of a run and of a sweep have in common."""

from ahpatron_cli.output.table import Cell
from ahpatron_cli.records import DataRecord, SummaryRecord, plain, whole


def facts(data: DataRecord) -> str:
    """Size of the stream, and which label counts as what where that is not obvious."""
    parts = [counted(data.rounds, "round"), counted(data.features, "feature")]
    negative, positive = data.labels
    if (negative, positive) != (-1, 1):
        others = "others" if negative is None else whole(negative)
        parts.append(f"labels {others} → -1, {whole(positive)} → +1")
    return ", ".join(parts).replace("-", "−")


def orders(count: int, shuffled: bool) -> str:
    """What a mean is taken over: `10 permutations`."""
    one, many = ("permutation", "permutations") if shuffled else ("pass", "passes")
    return f"{count:,} {one if count == 1 else many}{'' if shuffled else ' in file order'}"


def counted(number: int, noun: str) -> str:
    """`1 round`, `1,000 rounds`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def percent(rate: float) -> str:
    """A rate or its spread in percent, without the sign."""
    return f"{100 * rate:.2f}"


def optional_percent(rate: float | None) -> str | None:
    """The same for a spread, which a single value does not have."""
    return None if rate is None else percent(rate)


def number(value: float, *, coarse: bool = False) -> str:
    """A count, or the mean of counts: 581, 581.3; coarse ones have tenths only below 100."""
    whole_number = value == int(value) or (coarse and value >= 100)
    return f"{value:.0f}" if whole_number else f"{value:.1f}"


def rate_cell(line: SummaryRecord, lowest: str | None, *, mark: bool = False) -> Cell:
    """The average mistake rate; bold where it is, as shown, the lowest."""
    rate = percent(line.mistake_rate_mean)
    return Cell(rate, optional_percent(line.mistake_rate_sd), bold=rate == lowest, mark=mark)


def support_cell(line: SummaryRecord, *, coarse: bool = False) -> Cell | None:
    """Examples kept, and out of how many where there is a budget: 314/400."""
    if line.support_size_mean is None:
        return None
    kept, budget = number(line.support_size_mean, coarse=coarse), line.params.get("budget")
    return Cell(kept if budget is None else f"{kept}/{plain(budget)}")


def seconds_cell(line: SummaryRecord) -> Cell:
    """Mean time of a pass."""
    return Cell(f"{line.seconds_mean:.3f}")
