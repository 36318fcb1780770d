"""Files are on the disk before anybody relies on them, and checkpoints come when they should."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.command import Ahpatron

pytestmark = pytest.mark.skipif(
    not Path("/proc/self/fd").exists(), reason="names of descriptors: Linux only"
)


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of files that were made durable (`fsync`) or got their name (`replace`)."""
    found: list[str] = []
    fsync = os.fsync

    def noting_fsync(descriptor: int) -> None:
        place = Path(f"/proc/self/fd/{descriptor}").readlink()
        found.append(f"fsync {'folder' if place.is_dir() else place.suffix}")
        fsync(descriptor)

    def noting(rename: Callable[..., None]) -> Callable[..., None]:
        def moved(source: Any, target: Any, **options: Any) -> None:
            found.append(f"replace {Path(target).name}")
            rename(source, target, **options)

        return moved

    monkeypatch.setattr(os, "fsync", noting_fsync)
    monkeypatch.setattr(os, "rename", noting(os.rename))
    monkeypatch.setattr(os, "replace", noting(os.replace))
    return found


def test_a_file_is_durable_before_it_gets_its_name(
    ahpatron: Ahpatron, rings: Path, events: list[str]
) -> None:
    ahpatron.succeed("run", rings, "--limit", 100, "--save", "m.npz")
    at = events.index("replace m.npz")
    assert "fsync .tmp" in events[:at]
    assert "fsync folder" in events[at:]


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
