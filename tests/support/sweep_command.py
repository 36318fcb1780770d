"""Small sweeps from the command line, and what their results files hold."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

from support.command import Ahpatron, Outcome

SMALL = ("-g", "budget=20,40", "-l", "ahpatron", "-l", "rbp", "--repeats", "2")
TRIALS = 8


def lines(path: Path) -> list[dict[str, Any]]:
    """The trials of a results file, as they stand."""
    return [one for one in map(json.loads, path.read_text().splitlines()) if "id" in one]


def essence(path: Path) -> Counter[str]:
    """All of the trials that is not a time."""
    kept = [
        {key: one[key] for key in ("id", "status", "data", "run", "error")} for one in lines(path)
    ]
    return Counter(json.dumps(one) for one in kept)


def sweep(ahpatron: Ahpatron, *arguments: object, out: str = "r.jsonl") -> Outcome:
    """In this process, or with several jobs in others."""
    several = "-j" in arguments and arguments[arguments.index("-j") + 1] != "1"
    call = ahpatron.process if several else ahpatron
    return call("sweep", *arguments, "--out", out)
