"""Best values that lie at the end of their grid: a value beyond it may be better."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ahpatron_cli.sweep.summary import DatasetSummary, Setting, finite_number

FEWEST_VALUES = 3
"""Of two values, the best is always at an end."""


class GridEnd(NamedTuple):
    """A parameter of a learner whose best value on a data set is the smallest or largest tried."""

    learner: str
    parameter: str
    value: str
    """As written in the grid."""
    data: str
    is_smallest: bool

    def __str__(self) -> str:
        which = "smallest" if self.is_smallest else "largest"
        setting = f"{self.learner}.{self.parameter}={self.value}"
        return f"{setting} on {self.data} (the {which} tried)"


def grid_ends(found: DatasetSummary) -> Iterator[GridEnd]:
    """The real parameters whose best value on a data set is at the end of at least three values.

    Left out are whole numbers, such as budgets, which are rarely tuned; values at the end of what
    is legal; and values that are only one of several equally good ones.
    """
    for best in found.best:
        for name in best.varied:
            end = _end(found, best, name)
            if end is not None:
                yield end


def _end(found: DatasetSummary, best: Setting, name: str) -> GridEnd | None:
    """The end of the grid of a parameter that the best setting has, if it has one."""
    value = best.varied[name]
    if not isinstance(value, float):
        return None
    numbers = {finite_number(params.get(name)) for params in found.tried[best.name]}
    tried = {number for number in numbers if number is not None}
    if len(tried) < FEWEST_VALUES:
        return None
    ends = {min(tried), max(tried)}
    if value not in ends or _is_limit(best, name, value):
        return None
    others = _equally_good_values(found, best, name) - ends
    if others:
        return None
    return GridEnd(
        learner=best.name,
        parameter=name,
        value=best.texts[name],
        data=found.short,
        is_smallest=value == min(tried),
    )


def _is_limit(setting: Setting, name: str, value: float) -> bool:
    """Whether a value is the smallest or the largest legal one."""
    from ahpatron_cli.core import KERNELS, REGISTRY  # lazy: imports NumPy

    kernel = str(setting.params.get("kernel"))
    for kind in (REGISTRY.get(setting.learner), KERNELS.get(kernel)):
        if kind is None:
            continue
        spec = kind.specs().get(name)
        if spec is not None:
            return value in (spec.at_least, spec.at_most)
    return False


def _equally_good_values(found: DatasetSummary, best: Setting, name: str) -> set[object]:
    """The values of a parameter in all settings of the learner that are as good as the best."""
    own = [one for one in found.settings if one.name == best.name and one.compared]
    chosen = [one.exact_mean for one in own if one.key == best.key]
    values: set[object] = {best.params.get(name)}
    for one in own:
        if one.exact_mean in chosen:
            value = one.params.get(name)
            values.add(value)
    return values
