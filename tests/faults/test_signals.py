"""Signals at random moments, from the first import to the last line of output."""

import random
import signal
import time
from pathlib import Path

import pytest

from support.command import Ahpatron, Outcome, answers

MOMENTS = 20
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
RUN = ("-B", "40", "--sigma", "0.1", "--repeats", "8", "-l", "ahpatron", "-l", "rbp")
OUTPUTS = {"--out": "r.json", "--predictions": "p.csv", "--curve": "c.csv"}
SWEEP = ("-g", "budget=20:100:20", "-l", "ahpatron", "-l", "avp", "--repeats", "8", "-j", "2")


def interrupted(
    number: signal.Signals, ahpatron: Ahpatron, seed: int, *arguments: object
) -> tuple[Outcome, bool]:
    """Send the signal at a random moment: of two, one while Python starts and imports.

    Also whether that was too early: Python died of the signal, before any of our code.
    """
    with ahpatron.start(*arguments) as process:
        while seed % 2 and not answers(process.pid) and process.poll() is None:
            time.sleep(0.001)
        time.sleep(random.Random(seed).uniform(0, 0.5))
        answered = answers(process.pid)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    ours = answered or "ahpatron_cli/cli" in err
    too_early = not ours and process.returncode in (-number, 1)
    return Outcome(process.returncode, out, err), too_early


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_run(ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int) -> None:
    outputs = [word for pair in OUTPUTS.items() for word in pair]
    for seed in range(MOMENTS):
        ended, too_early = interrupted(number, ahpatron, seed, "run", rings, *RUN, *outputs)
        left = ahpatron.files()
        assert left in (set(), set(OUTPUTS.values()))  # all, or nothing; no temporary files
        if ended.code == 0:  # it was done already
            assert left
        elif not too_early:
            assert ended.code == code
            assert "Traceback" not in ended.err
            assert ended.out == "" or ended.out.startswith(str(rings))
        for name in left:
            (ahpatron.folder / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [*SIGNALS, (signal.SIGKILL, -signal.SIGKILL)])
def test_sweep(ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int) -> None:
    """One results file goes through all interruptions, and is whole in the end.

    More kills, of parents and of workers, are in tests/benchmarks.
    """
    ahpatron.sweep(rings, *SWEEP, out="whole.jsonl")
    results = ahpatron.folder / "r.jsonl"
    for seed in range(MOMENTS):
        words = ("sweep", rings, *SWEEP, "--out", "r.jsonl")
        ended, too_early = interrupted(number, ahpatron, seed, *words)
        if not too_early:
            # a worker that is being started when its parent is killed may print a traceback
            assert number == signal.SIGKILL or "Traceback" not in ended.err, ended.err
            assert ended.code in (code, 0)
            # the whole table, or nothing; a signal may come after its last line
            assert ended.out.endswith("--shuffle\n") or (ended.code, ended.out) == (code, "")
        if results.exists() and number != signal.SIGKILL:  # which may tear the last line
            assert results.read_bytes().endswith(b"\n") or not results.read_bytes()
    assert ahpatron.sweep(rings, *SWEEP).code == 0
    found = ahpatron.essence()
    assert found == ahpatron.essence("whole.jsonl")
    assert set(found.values()) == {1}


def test_an_ignored_sigint_stays_ignored(ahpatron: Ahpatron, rings: Path) -> None:
    """As under nohup, or in the background of a shell script."""
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)}
    with ahpatron.start("run", rings, *RUN, **ignored) as process:
        while not answers(process.pid) and process.poll() is None:
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (0, "")
