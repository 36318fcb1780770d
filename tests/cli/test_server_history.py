"""The past of a server, as far as its page shows it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np

from ahpatron_cli.answers import Answers
from ahpatron_cli.cli.server.history import MOST_POINTS, History
from ahpatron_cli.live.service import AnsweredRows

NOBODY = AnsweredRows(
    lines=np.empty(0, dtype=np.int64),
    ids=None,
    labels=np.empty(0),
    given=Answers(np.empty(0), np.empty(0, dtype=np.int64)),
)


def after(rounds: int) -> Any:
    """What the history looks at in a run whose window is full."""
    window = SimpleNamespace(rounds=10)
    recent = SimpleNamespace(window=lambda: window, size=10, rate=0.25)
    return cast(Any, SimpleNamespace(rounds=rounds, recent=recent))


def test_the_curve_has_each_round_until_there_are_too_many_and_then_every_second() -> None:
    history = History()
    for rounds in range(1, MOST_POINTS + 1):
        history.note_answers(after(rounds), NOBODY, [])
    assert [point.round for point in history.points] == list(range(1, MOST_POINTS + 1))
    for rounds in range(MOST_POINTS + 1, MOST_POINTS + 6):
        history.note_answers(after(rounds), NOBODY, [])
    assert [point.round for point in history.points] == list(range(1, MOST_POINTS + 6, 2))
