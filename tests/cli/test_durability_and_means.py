"""What a user relies on and does not see: files are durable, repeats differ, means are means."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from support.command import Ahpatron
from support.sweep_command import lines


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were made durable (`fsync`) or got their name (`replace`)."""
    found: list[str] = []
    fsync, rename = os.fsync, os.rename

    def noting_fsync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.append(f"fsync {'folder' if place.is_dir() else place.suffix}")
        fsync(descriptor)

    def noting(name: Callable[..., None]) -> Callable[..., None]:
        def moved(source: Any, target: Any, **options: Any) -> None:
            found.append(f"replace {Path(target).name}")
            name(source, target, **options)

        return moved

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "rename", noting(rename))
    monkeypatch.setattr(os, "replace", noting(os.replace))
    return found


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of descriptors: Linux only")
def test_a_file_is_durable_before_it_gets_its_name(
    ahpatron: Ahpatron, rings: Path, events: list[str]
) -> None:
    ahpatron.succeed("run", rings, "--limit", 100, "--save", "m.npz")
    at = events.index("replace m.npz")
    assert "fsync .tmp" in events[:at]
    assert "fsync folder" in events[at:]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="names of descriptors: Linux only")
def test_each_trial_is_durable_when_it_is_stored(
    ahpatron: Ahpatron, rings: Path, events: list[str]
) -> None:
    ahpatron.succeed("sweep", rings, "--limit", 50, "-B", 4, "--repeats", 6, "--out", "r.jsonl")
    assert events.count("fsync .jsonl") >= 6


def test_checkpoints_are_written_every_so_many_rounds(
    ahpatron: Ahpatron, rings: Path, events: list[str]
) -> None:
    """And at the end; not after each batch that a pipe brings."""
    options = ("--checkpoint", "c.npz", "--every", 10_000, "-B", 10)
    ahpatron.succeed("run", "-", *options, stdin=10 * rings.read_bytes())
    assert 2 <= events.count("replace c.npz") <= 3


def test_each_repeat_has_random_numbers_of_its_own(ahpatron: Ahpatron, rings: Path) -> None:
    """The rows come in the same order, so that only the generator differs."""
    options = ("-l", "rbp", "-B", 10, "--sigma", 0.1, "--repeats", 4, "--no-shuffle")
    runs = ahpatron.json("run", rings, *options)["runs"]
    assert len({run["mistakes"] for run in runs}) > 1


def test_times_of_repeats_are_averaged(ahpatron: Ahpatron, rings: Path) -> None:
    report = ahpatron.json("run", rings, "--limit", 300, "--repeats", 5)
    wanted = fmean(run["seconds"] for run in report["runs"])
    assert report["summary"][0]["seconds_mean"] == pytest.approx(wanted)
    found = ahpatron.json("sweep", rings, "--limit", 300, "--repeats", 5, "--out", "r.jsonl")
    stored: Any = lines(ahpatron.folder / "r.jsonl")
    wanted = fmean(trial["timing"]["seconds"] for trial in stored)
    (best,) = found["datasets"][0]["best"]
    assert best["seconds_mean"] == pytest.approx(wanted)


def test_the_best_command_runs_the_first_permutation(ahpatron: Ahpatron, rings: Path) -> None:
    grid = ("-g", "sigma=0.05,0.2", "-B", 20, "--limit", 400, "--repeats", 3)
    printed = ahpatron.succeed("sweep", rings, *grid, "--out", "r.jsonl").out
    _, _, command = printed.partition("Best on ")
    words = shlex.split(next(line for line in command.splitlines() if "ahpatron run" in line))
    (run,) = ahpatron.json(*words[1:])["runs"]
    stored: Any = lines(ahpatron.folder / "r.jsonl")
    first = [trial["run"] for trial in stored if trial["run"]["repeat"] == 0]
    same = [other for other in first if other["params"]["sigma"] == run["params"]["sigma"]]
    assert [other["mistakes"] for other in same] == [run["mistakes"]]


@pytest.mark.parametrize(("rows", "warned"), [(11, False), (12, True)])
def test_ten_near_ties_are_no_reason_to_warn(ahpatron: Ahpatron, rows: int, warned: bool) -> None:
    """Rows so far apart that f(x) = 0 in every round but the first, which does not count."""
    ahpatron.write("d.svm", "".join(f"{(-1) ** n} 1:{1000 * n}\n" for n in range(1, rows + 1)))
    done = ahpatron.succeed("run", "d.svm", "--json")
    assert json.loads(done.out)["runs"][0]["near_ties"] == rows - 1
    assert ("|f(x)|" in done.err) == warned


def test_a_long_curve_is_thinned_evenly(ahpatron: Ahpatron) -> None:
    rows = "".join(f"{(-1) ** n} 1:{n % 7}\n" for n in range(9001))
    ahpatron.write("d.svm", rows)
    ahpatron.succeed("run", "d.svm", "-B", 4, "--curve", "c.csv")
    table = [line.split(",") for line in (ahpatron.folder / "c.csv").read_text().split()]
    column = next(n for n, name in enumerate(table[0]) if "round" in name.lower())
    rounds = [int(line[column]) for line in table[1:]]
    assert rounds[-1] == 9001  # the end is there
    assert 1000 <= len(rounds) <= 2001
    assert {after - before for before, after in pairwise(rounds[:-1])} == {8}
