"""The results file: durable, resumable, never wrong."""

import errno
import hashlib
import json
import math
import os
import random
import re
import subprocess
import sys
from contextlib import suppress
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from ahpatron_cli.core import ALGORITHM
from ahpatron_cli.errors import ExitCode, UserError
from ahpatron_cli.records import Outcome
from ahpatron_cli.sweep.results_file import (
    OPENING,
    ResultsFile,
    decode,
    encode_header,
    encode_trial,
    looks_like_json,
    merge_results,
    parse_results,
    read_results,
)
from ahpatron_cli.sweep.summary import METRICS, Criterion, summarise_trials
from support.trials import make_trials
from support.trials import stored_trial as trial

FACTS = {"version": "1", "command": "ahpatron sweep"}


def filled(path: Path, count: int = 3) -> bytes:
    with ResultsFile(str(path), FACTS) as results:
        for number in range(count):
            results.add(trial(number))
    return path.read_bytes()


def signed(content: object) -> bytes:
    """A line whose checksum fits, whatever it says."""
    body = json.dumps(content)
    digest = hashlib.sha256(body.encode()).hexdigest()[:16]
    return f'{body[:-1]}, "check": "{digest}"}}'.encode()


def test_any_flipped_bit_and_any_part_of_a_line_is_noticed() -> None:
    rng = random.Random(1)
    line = encode_trial(trial(1))[:-1]
    for _ in range(1000):
        damaged = bytearray(line)
        damaged[rng.randrange(len(line))] ^= 1 << rng.randrange(8)
        assert decode(bytes(damaged)) is None
    assert not any(decode(line[:cut]) for cut in range(len(line)))


@pytest.mark.parametrize(
    ("part", "field", "value"),
    [
        *(("", *pair) for pair in (("id", 3), ("data", None), ("data", []), ("run", {}))),
        *(("", *pair) for pair in (("run", {"params": 3}), ("timing", None), ("error", 3))),
        *product(
            ["run"], ("rounds", "mistakes", "near_ties", "seed"), (None, "x", -1, 1.5, True, [], {})
        ),
        *product(["run"], ["norm"], ("x", True, [], math.nan, math.inf)),
    ],
)
def test_a_line_of_the_wrong_shape_is_damaged_though_its_check_fits(
    part: str, field: str, value: object
) -> None:
    content = json.loads(encode_trial(trial(1)))
    del content["check"]
    assert decode(signed(content)) == replace(trial(1), version=None)  # the header has it
    (content[part] if part else content)[field] = value
    assert decode(signed(content)) is None


def test_deep_nesting_is_damage() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    digest = hashlib.sha256(f'{{"id": {deep}}}'.encode()).hexdigest()[:16]
    assert decode(f'{{"id": {deep}, "check": "{digest}"}}'.encode()) is None


def test_what_was_added_is_there_again(tmp_path: Path) -> None:
    path = tmp_path / "r.jsonl"
    content = filled(path)
    assert content.count(b"\n") == 4
    with ResultsFile(str(path), FACTS) as results:
        assert list(results.contents.trials.values()) == [trial(0), trial(1), trial(2)]
        assert results.contents.headers == [{**FACTS, "number": 1}]
    assert path.read_bytes() == content  # the same header is not written twice
    with ResultsFile(str(path), {**FACTS, "version": "2"}) as results:
        results.add(trial(7))
    found = read_results(str(path))
    assert ([header["version"] for header in found.headers], len(found.trials)) == (["1", "2"], 4)


def test_truncated_anywhere_it_keeps_every_whole_line_and_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)  # thousands of lines are written
    path = tmp_path / "r.jsonl"
    content = filled(path)
    ends = [place + 1 for place, byte in enumerate(content) if byte == 0x0A]
    near = {end + by for end in ends for by in (-2, -1, 0, 1)}  # and every seventh byte
    for cut in sorted(near & {*range(len(content) + 1)} | {*range(0, len(content), 7)}):
        path.write_bytes(content[:cut])
        whole = sum(end <= cut for end in ends)
        torn = cut - max((end for end in ends if end <= cut), default=0)
        with ResultsFile(str(path), FACTS) as results:
            assert len(results.contents.trials) == max(whole - 1, 0)
            assert results.contents.torn == torn
            for number in range(3):
                if f"{number:020x}" not in results.contents.trials:
                    results.add(trial(number))
        assert path.read_bytes() == content


def test_a_failure_never_replaces_a_result(tmp_path: Path) -> None:
    path = str(tmp_path / "r.jsonl")
    with ResultsFile(path, FACTS) as results:
        results.add(trial(1, error="no memory"))
        results.add(trial(1))
        results.add(trial(1, error="no memory"))
        results.add(trial(2, error="first"))
        results.add(trial(2, error="second"))
    found = read_results(path).trials
    assert found[trial(1).id].run is not None
    assert found[trial(2).id].error == "second"


@pytest.mark.parametrize(
    "content",
    [b"hello\n", b"hello", b"+1 1:2\n", b'{"a": 1}\n', b"\n", b"\x00" * 100, OPENING[::-1]],
)
def test_somebody_elses_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.txt"
    path.write_bytes(content)
    with pytest.raises(UserError, match="nothing was changed") as refusal:
        ResultsFile(str(path), FACTS)
    assert (refusal.value.code, path.read_bytes()) == (ExitCode.CANNOT_CREATE, content)


@pytest.mark.parametrize("length", range(len(OPENING) + 1))
def test_a_torn_header_is_ours(length: int) -> None:
    assert parse_results(OPENING[:length]) is not None
    assert parse_results(OPENING[:length] + b"x") is None or length == len(OPENING)


HOLD = """
import sys
from ahpatron_cli.sweep.results_file import ResultsFile
with ResultsFile(sys.argv[1], {"version": "1"}):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_nothing_is_waited_for_if_the_file_cannot_be_read() -> None:
    with pytest.raises(UserError, match="cannot be used") as refusal:
        ResultsFile("/proc/self/mem", FACTS)  # opens, and refuses to be read
    assert refusal.value.code == ExitCode.IO_ERROR
    assert "wait" not in str(refusal.value.hint)


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    path = str(tmp_path / "r.jsonl")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HOLD, path], **pipes) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(UserError, match="another sweep") as refusal:
            ResultsFile(path, FACTS)
        assert refusal.value.code == ExitCode.LOCKED
        assert "wait" in str(refusal.value.hint)
        assert read_results(path).trials == {}  # looking is allowed
        holder.communicate()
    with ResultsFile(path, FACTS):
        pass


def test_a_fault_at_the_nth_call_loses_only_the_line_it_hit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writes are short, and the n-th call of `write` or `fsync` fails, a write after half of it."""
    path = tmp_path / "r.jsonl"
    content = filled(path)
    write = os.write
    fsync = os.fsync
    calls = 0
    fails_at = 0

    def due() -> bool:
        nonlocal calls
        calls += 1
        return calls == fails_at

    def failing_write(descriptor: int, rest: memoryview) -> int:
        if due():
            write(descriptor, rest[: len(rest) // 2])
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, rest[: max(len(rest) // 2, 1)])

    def failing_fsync(descriptor: int) -> None:
        if due():
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        fsync(descriptor)

    while fails_at <= calls:
        fails_at = fails_at + 1
        calls = 0
        path.unlink()
        with monkeypatch.context() as patch:
            patch.setattr(os, "write", failing_write)
            patch.setattr(os, "fsync", failing_fsync)
            with suppress(UserError):
                filled(path)
        with ResultsFile(str(path), FACTS) as results:
            for number in range(len(results.contents.trials), 3):
                results.add(trial(number))
        assert path.read_bytes() == content
    assert fails_at > 30


def test_a_line_is_on_the_disk_before_its_trial_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[str] = []
    write = os.write
    fsync = os.fsync
    with ResultsFile(str(tmp_path / "r.jsonl"), FACTS) as results:
        results.add(trial(0))
        monkeypatch.setattr(os, "write", lambda *args: calls.append("write") or write(*args))
        monkeypatch.setattr(os, "fsync", lambda *args: calls.append("sync") or fsync(*args))
        results.add(trial(1))
        results.add(trial(2))
    assert calls == ["write", "sync"] * 2


@pytest.mark.parametrize("before", [b"\n", b"\r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf\n \n"])
def test_a_blank_line_or_a_byte_order_mark_comes_first(tmp_path: Path, before: bytes) -> None:
    path = tmp_path / "r.jsonl"
    content = before + filled(path)
    path.write_bytes(content)
    assert looks_like_json(str(path))
    with ResultsFile(str(path), FACTS) as results:
        assert (len(results.contents.trials), results.contents.damaged) == (3, [])
        results.add(trial(3))
    assert path.read_bytes().startswith(content)
    assert len(read_results(str(path)).trials) == 4


OLD = Path(__file__).with_name("results-0.2.0.jsonl")


def test_results_of_0_2_0_are_read() -> None:
    contents = read_results(str(OLD))
    assert [header["version"] for header in contents.headers] == ["0.2.0"]
    assert (len(contents.trials), contents.damaged, contents.torn) == (16, [], 0)
    (data,) = summarise_trials(list(contents.trials.values()), contents.headers).datasets
    assert [(one.learner, one.label, one.mean) for one in data.settings[:3]] == [
        ("projectron", "sigma=0.5", 0.3725),
        ("projectron", "sigma=auto (0.919)", 0.4225),
        ("nogd", "sigma=0.5, step=0.0707107", 0.3525),
    ]
    assert (data.winner.learner, data.winner.mean) == ("nogd", 0.32)


def test_results_are_read_as_1_0_wrote_them() -> None:
    written = Path(__file__).with_name("results-1.0.jsonl")
    contents = read_results(str(written))
    assert [header["version"] for header in contents.headers] == ["1.0.0"]
    lines = [json.loads(line)["run"] for line in written.read_bytes().splitlines()[1:]]
    for line, again in zip(lines, contents.encoded().splitlines()[1:], strict=True):
        line["metrics"] |= {"average_precision": None, "brier": None}  # are newer
        assert json.loads(again)["run"] == line
    (data,) = summarise_trials(
        list(contents.trials.values()), contents.headers, Criterion(METRICS["auc"])
    ).datasets
    assert (data.winner.learner, data.winner.means.repeats) == ("ahpatron", 2)
    run = next(iter(contents.trials.values())).run
    assert run is not None
    assert (run.rounds, sum(map(sum, run.confusion or ()))) == (200, 200)


@pytest.mark.parametrize("version", ["0.2.0", "1.0"])
def test_results_of_an_older_version_are_not_continued(tmp_path: Path, version: str) -> None:
    written = OLD.with_name(f"results-{version}.jsonl").read_bytes()
    path = tmp_path / "old.jsonl"
    path.write_bytes(written)
    with pytest.raises(UserError, match=re.escape(version)) as refusal:
        ResultsFile(str(path), {**FACTS, "algorithm": ALGORITHM})
    assert refusal.value.code == ExitCode.CANNOT_CREATE
    assert "ahpatron report" in refusal.value.hint
    assert path.read_bytes() == written


def without_edition(line: bytes) -> bytes:
    """A line as version 1.0 wrote it."""
    content = json.loads(line)
    for name in ("check", *(("algorithm", "source", "header") if "id" in content else ())):
        del content[name]
    return signed(content) + b"\n"


def as_1_0_wrote(*parts: tuple[dict[str, Any], list[Outcome]]) -> bytes:
    """Headers, each with the trials after it."""
    lines = []
    for facts, trials in parts:
        lines += [encode_header(facts), *map(encode_trial, trials)]
    return b"".join(map(without_edition, lines))


def test_trials_of_1_0_have_the_edition_of_the_header_before_them() -> None:
    parts = (
        ({"version": "1.0.0", "algorithm": 7}, [trial(0), trial(1)]),
        ({"version": "1.1.0", "algorithm": 8}, [trial(2)]),
    )
    contents = parse_results(as_1_0_wrote(*parts))
    assert contents is not None
    found = [(one.header, one.algorithm, one.version) for one in contents.trials.values()]
    assert found == [(1, 7, "1.0.0"), (1, 7, "1.0.0"), (2, 8, "1.1.0")]
    assert {one.source for one in contents.trials.values()} == {None}  # ahpatron is built in


def test_a_learner_of_ones_own_that_was_changed_is_noticed_in_results_of_1_0() -> None:
    """Its source was not stored; another result on the same permutation gives it away."""
    before = make_trials("mine", [0.10, 0.11, 0.12])
    after = [replace(one, id=f"{one.id} new") for one in make_trials("mine", [0.20, 0.21])]
    facts = {"version": "1.0.0", "algorithm": 7}
    contents = parse_results(as_1_0_wrote((facts, [*before, *after])))
    assert contents is not None
    assert [one.source for one in contents.trials.values()] == [
        *["not recorded"] * 3,
        *["not recorded, change 1"] * 2,
    ]
    (data,) = summarise_trials(list(contents.trials.values()), contents.headers).datasets
    assert [one.mean for one in data.best] == pytest.approx([0.105, 0.205])


def test_merged_results_refer_to_the_headers_of_the_merged_file() -> None:
    first, second = (
        parse_results(as_1_0_wrote(({**FACTS, "algorithm": number}, [trial(number)])))
        for number in (7, 8)
    )
    assert first is not None
    assert second is not None
    merged = parse_results(merge_results({"a": first, "b": second, "c": first}).encoded())
    assert merged is not None
    assert [header["number"] for header in merged.headers] == [1, 2]
    for one in merged.trials.values():
        assert merged.headers[one.header - 1]["algorithm"] == one.algorithm


def test_results_of_different_algorithms_are_reported_apart() -> None:
    """Those of 0.2.0 have another number than the first ones of this format."""
    files = {
        name: read_results(str(OLD.with_name(name))) for name in (OLD.name, "results-1.0.jsonl")
    }
    merged = merge_results(files)
    (data,) = summarise_trials(list(merged.trials.values()), merged.headers).datasets
    names = [one.name for one in data.best]
    assert names == ["ahpatron", "projectron", "nogd (algorithm 6)", "nogd (algorithm 7)"]
