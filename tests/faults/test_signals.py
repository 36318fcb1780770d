"""Signals at random moments, from the first import to the last line of output."""

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from support.command import Ahpatron, answers

MOMENTS = 20
SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143)]
RUN = ("-B", "40", "--sigma", "0.1", "--repeats", "8", "-l", "ahpatron", "-l", "rbp")
OUTPUTS = {"--out": "r.json", "--predictions": "p.csv", "--curve": "c.csv"}
SWEEP = ("-g", "budget=20:100:20", "-l", "ahpatron", "-l", "avp", "--repeats", "8", "-j", "2")


@dataclass(frozen=True)
class Interrupted:
    """How a command ended to which a signal was sent."""

    number: signal.Signals
    code: int
    out: str
    err: str
    answered: bool
    """Whether our handlers were in place when the signal was sent."""

    @property
    def too_early(self) -> bool:
        """Whether Python died of the signal, before any of our code."""
        ours = self.answered or "ahpatron_cli/cli" in self.err
        return not ours and self.code in (-self.number, 1)

    @property
    def too_late(self) -> bool:
        """Whether all was done: also if the signal killed Python while it was shutting down."""
        return self.code == 0 or (self.code == -self.number and self.out != "")


def interrupted(
    number: signal.Signals, ahpatron: Ahpatron, seed: int, words: Sequence[object]
) -> Interrupted:
    """Send the signal at a random moment: of two, one while Python starts and imports."""
    with ahpatron.start(*words) as process:
        while seed % 2 and process.poll() is None and not answers(process.pid):
            time.sleep(0.001)
        time.sleep(random.Random(seed).uniform(0, 0.5))
        answered = process.poll() is None and answers(process.pid)
        process.send_signal(number)
        out, err = process.communicate(timeout=300)
    return Interrupted(number, process.returncode, out=out, err=err, answered=answered)


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), SIGNALS)
def test_a_run_leaves_all_of_its_files_or_none(
    ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int
) -> None:
    outputs = [word for pair in OUTPUTS.items() for word in pair]
    for seed in range(MOMENTS):
        ended = interrupted(number, ahpatron, seed, ["run", rings, *RUN, *outputs])
        left = ahpatron.files()
        assert left in (set(), set(OUTPUTS.values()))  # no temporary files either
        if ended.too_late:
            assert left
        elif not ended.too_early:
            assert ended.code == code
            assert "Traceback" not in ended.err
            assert ended.out == "" or ended.out.startswith(str(rings))
        for name in left:
            (ahpatron.folder / name).unlink()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [*SIGNALS, (signal.SIGKILL, -signal.SIGKILL)])
def test_a_results_file_goes_through_all_interruptions_and_is_whole_in_the_end(
    ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int
) -> None:
    """More kills, of parents and of workers, are in tests/benchmarks."""
    ahpatron.sweep(rings, *SWEEP, out="whole.jsonl")
    results = ahpatron.folder / "r.jsonl"
    for seed in range(MOMENTS):
        ended = interrupted(number, ahpatron, seed, ["sweep", rings, *SWEEP, "--out", "r.jsonl"])
        if not ended.too_early:
            # a worker that is being started when its parent is killed may print a traceback
            assert number == signal.SIGKILL or "Traceback" not in ended.err, ended.err
            assert ended.code == code or ended.too_late
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
        while process.poll() is None and not answers(process.pid):
            time.sleep(0.001)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=300)
    assert process.returncode == 0
    assert err == ""
