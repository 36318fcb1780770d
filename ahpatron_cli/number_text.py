"""Formatting of numbers for people; json, jsonl and csv have exact values."""

from __future__ import annotations


def percent(rate: float) -> str:
    """A rate or its spread in percent, without the percent sign: `11.20`."""
    percents = 100 * rate
    return f"{percents:.2f}"


def int_if_integral(value: float) -> float:
    """A number as an int if it is integral, so that a label is shown as 1, not as 1.0."""
    whole = int(value)
    is_exact = abs(value) < 1e16
    if is_exact and whole == value:
        return whole
    return value


def p_value(value: float) -> str:
    """A p-value as text: `0.032`, `< 0.001`."""
    if value < 0.001:
        return "< 0.001"
    return f"{value:.3f}"


def share(part: float) -> str:
    """A fraction in percent: `34.5 %`."""
    percents = 100 * part
    return f"{percents:.1f} %"


def mean_count(value: float) -> str:
    """A count or a mean of counts: `581`, `581.3`, `12346`; tenths only below 1,000."""
    is_whole = value == int(value)
    if is_whole or value >= 1000:
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
    shown = short(value, digits=6)
    return f"{name}={shown}"


def counted(number: int, noun: str) -> str:
    """A number with its noun: `1 round`, `1,000 rounds`."""
    shown = f"{number:,}"
    if number == 1:
        return f"{shown} {noun}"
    return f"{shown} {noun}s"


def orders(number: int, shuffled: bool) -> str:
    """Text of what a mean is taken over: `10 permutations`, `2 passes in file order`."""
    if shuffled:
        return counted(number, "permutation")
    shown = f"{number:,}"
    if number == 1:
        return f"{shown} pass in file order"
    return f"{shown} passes in file order"
