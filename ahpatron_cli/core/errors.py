"""Exceptions raised by the core."""

from __future__ import annotations

from typing import Any, Literal


class CoreError(Exception):
    """Base of all errors of the core; the message is the first argument, and pickling works."""

    def __str__(self) -> str:
        return str(self.args[0])


class ParameterError(CoreError, ValueError):
    """A parameter is out of range or missing; `name` is its name."""

    def __init__(
        self, message: str, name: str, kind: Literal["range", "missing", "kernel"] = "range"
    ) -> None:
        super().__init__(message, name, kind)
        self.name = name
        self.kind = kind


class NumericalError(CoreError, ArithmeticError):
    """A value cannot be computed; `row` is the index (from 0) within the rows passed."""

    learned: Any = None
    """f(x) of the first of these rows, which were learned before the error."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row

    def shifted(self, rows: int) -> NumericalError:
        """The same error with `rows` added to its row index."""
        return type(self)(str(self), self.row + rows)


class LimitReachedError(CoreError, RuntimeError):
    """The active set would exceed a limit; `name` is the name of the parameter."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message, name)
        self.name = name


class ColumnError(CoreError, ValueError):
    """A learner drops the example of a column that is not in S."""


class LearnerLoadError(CoreError, ImportError):
    """A third-party learner cannot be loaded; `source` is its file or distribution."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message, source)
        self.source = source


class NoClassError(LearnerLoadError):
    """A file has no class of that name, or none is named; `known` are the learners in it."""

    def __init__(self, message: str, source: str, known: tuple[str, ...]) -> None:
        super().__init__(message, source)
        self.args = (message, source, known)
        self.known = known


class StateError(CoreError, ValueError):
    """A saved state is damaged or belongs to another learner."""
