"""Errors of the core."""

from __future__ import annotations

from typing import Literal


class CoreError(Exception):
    """An error whose first argument is its message; all arguments survive pickling."""

    def __str__(self) -> str:
        return str(self.args[0])


class ParameterError(CoreError, ValueError):
    """A parameter that is out of range or missing; `name` is the parameter's."""

    def __init__(
        self, message: str, name: str, kind: Literal["range", "missing", "kernel"] = "range"
    ) -> None:
        super().__init__(message, name, kind)
        self.name, self.kind = name, kind


class NumericalError(CoreError, ArithmeticError):
    """A value that cannot be computed; `row` counts from 0 within the rows that were passed."""

    def __init__(self, message: str, row: int) -> None:
        super().__init__(message, row)
        self.row = row

    def shifted(self, rows: int) -> NumericalError:
        """The same error, `rows` rows later in a longer piece."""
        return type(self)(str(self), self.row + rows)


class LimitReachedError(CoreError, RuntimeError):
    """The active set would outgrow a limit; `name` is the parameter's."""

    def __init__(self, message: str, name: str) -> None:
        super().__init__(message, name)
        self.name = name


class LearnerLoadError(CoreError, ImportError):
    """A third-party learner that cannot be loaded; `source` is its file or distribution."""

    def __init__(self, message: str, source: str) -> None:
        super().__init__(message, source)
        self.source = source


class StateError(CoreError, ValueError):
    """A saved state that is damaged, or of another learner."""
