"""The state of a service: one file, one writer, replaced as a whole."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import AbstractContextManager
from types import TracebackType

from ahpatron_cli.atomic import exists, format_of_suffix, write_atomically
from ahpatron_cli.errors import ExitCode, Place, UserError
from ahpatron_cli.live.service import rounded_up
from ahpatron_cli.model_file import Model, load_model, to_bytes

SAVE_EVERY = 10_048
"""Number of rounds between two saves, unless --save-every says otherwise."""


class StateFile(AbstractContextManager["StateFile"]):
    """The file in which a service lives (--state), locked as long as this is open.

    The lock is on a file beside it, because saving replaces the file itself.

    Attributes
    ----------
    model : Model, optional
        The state that was found; None if the service is new.
    every : int
        Number of rounds between two saves, a multiple of 64: there, a state has the same bits as
        the learner of an uninterrupted run.
    """

    def __init__(self, path: str, learner: str | None, every: int | None) -> None:
        """`learner` is `FILE.py:Class` of the learner, if it is defined in a file."""
        format_of_suffix(path, "npz", {".npz": "npz"})
        self.path = path
        self.every = rounded_up(every or SAVE_EVERY)
        self.saved_at: float | None = None
        """When the state was last saved, in seconds since 1970."""
        self.failures = 0
        """Number of saves that failed."""
        self._saved: tuple[int, int] | None = None
        self._lock = _locked(path)
        try:
            self.model: Model | None = None
            if exists(path):
                self.model = load_model(path, learner)
                self.saved_at = self.model.written
        except BaseException:
            self.close()
            raise

    def save(self, model: Model, *, progress: tuple[int, int]) -> None:
        """Write a state; `progress` is what it has counted, as in `is_behind`.

        If this fails, the file stays as it was.
        """
        try:
            write_atomically(self.path, to_bytes(model))
        except UserError:
            self.failures += 1
            raise
        self.saved_at = time.time()
        self._saved = progress

    def is_behind(self, progress: tuple[int, int]) -> bool:
        """Whether anything was learned or answered since the last save."""
        return progress != self._saved

    def close(self) -> None:
        """Release the lock."""
        os.close(self._lock)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def _locked(path: str) -> int:
    """The descriptor of the lock of a state; a UserError if another process holds it."""
    place = Place(path)
    try:
        descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError as error:
        problem = f"the lock of the state cannot be created: {error.strerror or error}"
        raise UserError(problem, code=ExitCode.CANNOT_CREATE, place=place) from None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        problem = "another process is using this state"
        hint = "one process at a time may learn into a state; give each its own"
        raise UserError(problem, code=ExitCode.LOCKED, place=place, hint=hint) from None
    return descriptor
