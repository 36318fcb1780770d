"""Lines of a results file: what is written is read back, and nothing else is taken for it."""

from __future__ import annotations

import hashlib
import json
import math
import random
from itertools import product

import pytest
from msgspec.structs import replace

from ahpatron_cli.sweep.results_file import (
    OPENING,
    DamagedLineError,
    decode,
    encode_header,
    encode_trial,
)
from support.trials import stored_trial as trial


def test_a_trial_is_read_back() -> None:
    plain = trial(3)
    auto = replace(plain, texts={"sigma": "auto", "step": "10^0/√T"})
    for one in (plain, auto, trial(4, radius=math.inf), trial(5, error="no\nmemory \x1b[0m")):
        line = encode_trial(one)
        assert line.endswith(b"}\n")
        assert line.count(b"\n") == 1
        assert line.isascii()
        assert decode(line[:-1]) == one


def test_the_contract() -> None:
    line = json.loads(encode_trial(trial(3)))
    assert list(line) == ["id", "status", "data", "run", "timing", "error", "check"]
    assert line["status"] == "ok"
    assert line["error"] is None
    assert line["timing"] == {"seconds": 0.25, "wall_seconds": 0.5}
    assert "seconds" not in line["run"]
    assert line["run"]["zeta"] == 0.1 + 0.2
    assert line["data"]["labels"] == [None, 2.5]
    failed = json.loads(encode_trial(trial(3, error="why")))
    assert failed["status"] == "failed"
    assert failed["error"] == "why"
    assert failed["run"]["mistakes"] is None
    assert failed["run"]["params"]["budget"] == 400


def test_a_line_of_an_older_version_is_read() -> None:
    content = json.loads(encode_trial(trial(3)))
    del content["check"], content["run"]["this_file"]
    assert decode(signed(json.dumps(content))) == trial(3)


def test_a_header_is_read_back() -> None:
    line = encode_header({"version": "1", "numpy": "2"})
    assert line.startswith(OPENING)
    assert decode(line[:-1]) == {"version": "1", "numpy": "2"}


def test_any_flipped_bit_is_noticed() -> None:
    rng = random.Random(1)
    line = encode_trial(trial(1))[:-1]
    for _ in range(1000):
        damaged = bytearray(line)
        damaged[rng.randrange(len(line))] ^= 1 << rng.randrange(8)
        with pytest.raises(DamagedLineError):
            decode(bytes(damaged))


@pytest.mark.parametrize("cut", range(0, 600, 7))
def test_any_part_of_a_line_is_no_line(cut: int) -> None:
    line = encode_trial(trial(1))[:-1]
    with pytest.raises(DamagedLineError):
        decode(line[:cut])


def signed(body: str) -> bytes:
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return f'{body[:-1]}, "check": "{digest}"}}'.encode()


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("id", 3),
        ("data", None),
        ("data", []),
        ("run", {"params": 3}),
        ("run", {}),
        ("timing", None),
        ("error", 3),
    ],
)
def test_a_line_of_the_wrong_shape_is_refused_though_its_check_fits(
    part: str, value: object
) -> None:
    content = json.loads(encode_trial(trial(1)))
    del content["check"]
    assert decode(signed(json.dumps(content))) == trial(1)
    with pytest.raises(DamagedLineError):
        decode(signed(json.dumps({**content, part: value})))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *product(("rounds", "mistakes", "near_ties", "seed"), (None, "x", -1, 1.5, True, [], {})),
        *product(("mistake_rate",), (None, "x", True, [], math.nan, math.inf)),
    ],
)
def test_numbers_of_the_wrong_kind_are_refused(field: str, value: object) -> None:
    content = json.loads(encode_trial(trial(1)))
    del content["check"]
    content["run"][field] = value
    with pytest.raises(DamagedLineError):
        decode(signed(json.dumps(content)))


def test_deep_nesting_is_refused() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(DamagedLineError):
        decode(signed('{"id": ' + deep + "}"))
