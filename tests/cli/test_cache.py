"""`run --cache`: the same results from kept rows, in file order and shuffled."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.command import Ahpatron


def told(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    del document["load_seconds"]
    for row in (*document["runs"], *document["summary"]):
        row.pop("seconds", None)
        row.pop("seconds_mean", None)
    return document


def arrays(model: Path) -> dict[str, bytes]:
    """All arrays of a model; its header has the time of learning."""
    with np.load(model) as parts:
        return {name: parts[name].tobytes() for name in parts.files if name != "header"}


@pytest.mark.parametrize("order", [[], ["--shuffle"], ["--repeats", 2]])
@pytest.mark.parametrize("scale", ["none", "unit", "minmax"])
def test_results_are_the_same_with_and_without(
    ahpatron: Ahpatron, rings: Path, tmp_path: Path, order: list[object], scale: str
) -> None:
    home = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    options = ["-B", 20, "--scale", scale, "--limit", 500, "--format", "json", *order]
    scores = [tmp_path / f"{number}.csv" for number in range(3)]
    outcomes = [
        ahpatron("run", rings, *options, *cache, "--predictions", path, **home)
        for cache, path in zip(([], ["--cache"], ["--cache"]), scores, strict=True)
    ]
    assert [one.code for one in outcomes] == [0, 0, 0]
    assert told(outcomes[0].out) == told(outcomes[1].out) == told(outcomes[2].out)
    assert scores[0].read_bytes() == scores[1].read_bytes() == scores[2].read_bytes()
    assert len(list((tmp_path / "home" / "ahpatron").iterdir())) == 1


def test_a_kept_model_is_the_same(ahpatron: Ahpatron, rings: Path, tmp_path: Path) -> None:
    home = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    for name, cache in (("a", []), ("b", ["--cache"]), ("c", ["--cache"])):
        for order in ([], ["--shuffle", "--scale", "standard"]):
            model = tmp_path / f"{name}{len(order)}.npz"
            ahpatron.succeed("run", rings, "-B", 20, *cache, *order, "--save", model, **home)
    for kind in (0, 3):
        a, b, c = (arrays(tmp_path / f"{name}{kind}.npz") for name in "abc")
        assert a == b == c


def test_standard_input_is_not_kept(ahpatron: Ahpatron, rings: Path, tmp_path: Path) -> None:
    home = {"XDG_CACHE_HOME": str(tmp_path / "home")}
    ahpatron.succeed("run", "-", "--cache", stdin=rings.read_bytes(), **home)
    assert not (tmp_path / "home").exists()


def test_without_the_option_nothing_is_kept(
    ahpatron: Ahpatron, rings: Path, tmp_path: Path
) -> None:
    ahpatron("run", rings, "--shuffle", XDG_CACHE_HOME=str(tmp_path / "home"))
    assert not (tmp_path / "home").exists()
