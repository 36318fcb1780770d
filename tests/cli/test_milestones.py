"""`run -v`: mistakes so far at 1,000, 2,000, 4,000, … rounds."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import pytest

from support.command import Ahpatron


@pytest.mark.parametrize("way", [(), ("--shuffle",)])
def test_mistakes_so_far_are_printed(ahpatron: Ahpatron, rings: Path, way: tuple[str, ...]) -> None:
    content = rings.read_text()
    ahpatron.write("d.svm", content * 4 + content[: content.index("\n") + 1])  # 8,001 rounds
    done = ahpatron("run", "d.svm", "-v", "-B", 20, "--predictions", "p.csv", *way)
    with (ahpatron.folder / "p.csv").open() as file:
        mistaken = [int(row["mistake"]) for row in csv.DictReader(file)]
    made = {t: sum(mistaken[:t]) for t in (1000, 2000, 4000, 8000)}
    wanted = [
        f"ahpatron: {t:,} rounds, {count:,} mistakes ({100 * count / t:.2f} %)"
        for t, count in made.items()
    ]
    assert re.findall(r"^ahpatron: .* rounds, .*$", done.err, re.MULTILINE) == wanted
    quiet = ahpatron("run", "d.svm", "-B", 20, *way)
    assert "rounds," not in quiet.err
