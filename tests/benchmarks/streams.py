"""Peak memory and throughput of streams: short beside long, file beside pipe, beside a shuffle.

    python tests/benchmarks/streams.py [ROWS] [SHORT]

Makes ROWS rows (3 million by default) of 18 features, and the first SHORT (100,000) of them; plays
each with `ahpatron run` in file order, from the file and from a pipe, and prints the peak resident
memory, how many times that of the short stream it is, and the microseconds of processor time per
row in the first and in the last tenth of the rounds. Then the short file is shuffled, alone and by
two processes: what holding it costs beside its rows as float32 and float64.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import made

WIDTH = 18
RUN = [sys.executable, "-m", "ahpatron_cli", "run", "--format", "csv", "-q", "-B", "100"]
TICK = os.sysconf("SC_CLK_TCK")


def processor_seconds(process: int) -> float:
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def tree(process: int) -> list[int]:
    """A process and all its descendants."""
    found = [process]
    for own in found:
        for task in Path(f"/proc/{own}/task").glob("*/children"):
            found += map(int, task.read_text().split())
    return found


def proportional(process: int) -> int:
    """Bytes of a process, with its share of what it shares with others."""
    text = Path(f"/proc/{process}/smaps_rollup").read_text()
    return 1024 * int(text.split("Pss:")[1].split()[0])


class Fed:
    """A pipe, filled from a file, that notes how much has been taken out and when."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.marks: list[tuple[float, float]] = []
        """Share of the bytes that was taken, and the reader's processor time then."""

    def feed(self, process: subprocess.Popen[bytes]) -> None:
        size, done = self._path.stat().st_size, 0
        assert process.stdin is not None
        with self._path.open("rb") as stream, process.stdin:
            while block := stream.read(1 << 16):
                process.stdin.write(block)
                done += len(block)
                self.marks.append((done / size, processor_seconds(process.pid)))

    def cost(self, low: float, high: float) -> float:
        inside = [(share, spent) for share, spent in self.marks if low <= share <= high]
        return (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])


def peak(command: list[str], source: Path | None = None) -> tuple[int, Fed | None]:
    """Peak resident bytes of a command, its standard input fed from `source`."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    fed = None
    if source is not None:
        fed = Fed(source)
        fed.feed(process)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0, command
    return usage.ru_maxrss * 1024, fed


def peak_of_all(command: list[str]) -> int:
    """The largest sum over all processes of a command, shared pages counted once."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    largest = 0

    def watch() -> None:
        nonlocal largest
        while process.returncode is None:
            with suppress(OSError, IndexError):  # one of them has just ended
                largest = max(largest, sum(proportional(one) for one in tree(process.pid)))
            time.sleep(0.02)

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert process.wait() == 0
    watcher.join()
    return largest


def main() -> None:
    rows, short = (
        int(number) for number in (*sys.argv[1:], *("3000000", "100000")[len(sys.argv) - 1 :])
    )
    with tempfile.TemporaryDirectory() as name:
        files = {count: Path(name) / f"{count}.svm" for count in (short, rows)}
        for count, path in files.items():
            made.write(path, made.dense_lines(WIDTH), rows=count)
        first: dict[str, int] = {}
        for how in ("file", "pipe"):
            for count, path in files.items():
                if how == "file":
                    memory, fed = peak([*RUN, str(path)])
                else:
                    memory, fed = peak([*RUN, "-"], path)
                shown = f"{how}, {count:9,} rows: {memory / 2**20:6.1f} MiB"
                shown += f", {memory / first.setdefault(how, memory):.2f} x the short one"
                if fed is not None:
                    scale = 1e6 / count
                    shown += f"; first tenth {scale * fed.cost(0.02, 0.1):.2f} µs a row"
                    shown += f", last {scale * fed.cost(0.9, 1.0):.2f}"
                print(shown, flush=True)
        single = short * (WIDTH + 1) * 4 / 2**20
        print(f"{short:,} rows are {single:.1f} MiB as float32, {2 * single:.1f} as float64")
        path = str(files[short])
        for options in (["--shuffle"], ["--repeats", "4"], ["--repeats", "4", "-j", "2"]):
            total = peak_of_all([*RUN, path, *options])
            print(f"run {' '.join(options)}: {total / 2**20:.1f} MiB in all processes", flush=True)
        sweep = [*RUN[:3], "sweep", "--format", "csv", "-q", "-B", "100", path]
        for jobs in ("1", "2"):
            out = str(Path(name) / f"{jobs}.jsonl")
            total = peak_of_all([*sweep, "--repeats", "4", "-j", jobs, "--out", out])
            print(f"sweep -j {jobs}: {total / 2**20:.1f} MiB in all processes", flush=True)


if __name__ == "__main__":
    main()
