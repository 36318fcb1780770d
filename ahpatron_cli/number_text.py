"""Formatting of numbers for people; json, jsonl and csv have exact values."""

from __future__ import annotations


def percent(rate: float) -> str:
    """A rate or its spread in percent, without the percent sign: `11.20`."""
    return f"{100 * rate:.2f}"


def int_if_integral(value: float) -> float:
    """A number as an int if it is integral, so that a label is shown as 1, not as 1.0."""
    if value == int(value) and abs(value) < 1e16:
        return int(value)
    return value


def p_value(value: float) -> str:
    """A p-value as text: `0.032`, `< 0.001`."""
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3f}"


def share(part: float) -> str:
    """A fraction in percent: `34.5 %`."""
    return f"{100 * part:.1f} %"


def mean_count(value: float) -> str:
    """A count or a mean of counts: `581`, `581.3`, `12346`; tenths only below 1,000."""
    if value == int(value) or value >= 1000:
        return f"{value:.0f}"
    return f"{value:.1f}"


def seconds(value: float) -> str:
    """A time in seconds, without the unit: `0.051`."""
    return f"{value:.3f}"


def short(value: float | str, digits: int = 3) -> str:
    """A float with `digits` significant digits (`0.312`, `1.5e+160`); ints and words unchanged."""
    if isinstance(value, float):
        return f"{value:.{digits}g}"
    return str(value)


def assignment(name: str, value: float | str) -> str:
    """Text of a parameter: `epsilon=0.5`. Six digits distinguish 10^k/√T and fit into a table."""
    return f"{name}={short(value, 6)}"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 round`, `1,000 rounds`."""
    if number == 1:
        return f"{number:,} {noun}"
    return f"{number:,} {noun}s"


def orders(number: int, shuffled: bool) -> str:
    """Text of what a mean is taken over: `10 permutations`, `2 passes in file order`."""
    if shuffled:
        return counted(number, "permutation")
    if number == 1:
        return f"{number:,} pass in file order"
    return f"{number:,} passes in file order"
