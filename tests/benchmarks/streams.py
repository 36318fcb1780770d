"""Latency and throughput of live streams: LIBSVM text, CSV and JSON lines on a pipe.

    python tests/benchmarks/streams.py latency [--rows N]
    python tests/benchmarks/streams.py throughput [--against CHECKOUT] [--rows N]

Latency is the time from writing a line to reading its answer, at 20 and 500 rows a second, with
metron and B = 400. Throughput is the processor time of a run on a pipe that is always full; with
`--against`, that of another checkout beside it (its environment is in `.venv`), alternating, the
least of five, of which the first compiles the modules.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

FORMS = ("svm", "csv", "jsonl")
COLUMNS = 10


def lines_of(form: str, rows: int) -> list[bytes]:
    """A header, if the format has one, and rows with ten numbers and a category."""
    rng = np.random.default_rng(1)
    values = np.round(rng.normal(size=(rows, COLUMNS)), 4)
    labels = np.where(values[:, 0] * values[:, 1] + 0.3 * rng.normal(size=rows) > 0, 1, -1)
    colours = rng.choice(["red", "green", "blue"], rows)
    names = [f"x{i}" for i in range(COLUMNS)]
    lines = []
    if form == "csv":
        lines.append(",".join([*names, "colour", "y"]))
    for row, colour, label in zip(values.tolist(), colours.tolist(), labels.tolist(), strict=True):
        if form == "svm":
            lines.append(" ".join([str(label), *(f"{i}:{x}" for i, x in enumerate(row, 1))]))
        elif form == "csv":
            lines.append(",".join([*map(str, row), colour, str(label)]))
        else:
            cells = dict(zip(names, row, strict=True))
            lines.append(json.dumps({**cells, "colour": colour, "y": label}))
    return [f"{line}\n".encode() for line in lines]


def command(program: str, form: str, *words: str) -> list[str]:
    """`ahpatron run -` for this format."""
    label = [] if form == "svm" else ["--label", "y"]
    return [program, "run", "-", *label, "-q", *words]


def latencies(program: str, form: str, rate: float, rows: int) -> list[float]:
    """Seconds from each line to its answer."""
    words = ("-l", "metron", "-B", "400", "--predictions", "-")
    process = subprocess.Popen(
        command(program, form, *words), stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
    )
    assert process.stdin is not None
    assert process.stdout is not None
    lines = lines_of(form, rows)
    if form == "csv":
        process.stdin.write(lines.pop(0))
    answers = os.fdopen(os.dup(process.stdout.fileno()), "rb")
    found = []
    due = time.monotonic()
    for number, line in enumerate(lines):
        time.sleep(max(due - time.monotonic(), 0.0))
        due += 1.0 / rate
        begun = time.perf_counter()
        process.stdin.write(line)
        if number == 0:
            answers.readline()  # the header of the answers
        answers.readline()
        found.append(time.perf_counter() - begun)
    process.stdin.close()
    process.wait()
    return found


def show_latency(program: str, rows: int) -> None:
    """Print milliseconds: median, 99 % and worst after 60 rows, and the worst of the first ones."""
    print(f"{'format':8}{'rows/s':>8}{'median':>10}{'99 %':>10}{'worst':>10}{'rows 2-60':>12}")
    for form in FORMS:
        for rate in (20.0, 500.0):
            count = max(int(min(rows, rows * rate / 500)), 200)
            times = 1e3 * np.array(latencies(program, form, rate, count))
            late = times[60:]
            figures = (np.median(late), np.quantile(late, 0.99), late.max(), times[1:60].max())
            shown = "".join(f"{one:10.2f}" for one in figures)
            print(f"{form:8}{rate:8.0f}{shown}")


def environment(folder: Path) -> dict[str, str]:
    """Variables with which modules are compiled once, as those of an installed package are."""
    chosen = {"OPENBLAS_NUM_THREADS": "1", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    others = {name: os.environ[name] for name in os.environ if name != "PYTHONDONTWRITEBYTECODE"}
    return {**others, **chosen}


def processor_seconds(program: str, form: str, path: Path, *words: str) -> float:
    """Processor time of a run on a full pipe."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE) as cat:
        subprocess.run(
            command(program, form, *words),
            stdin=cat.stdout,
            stdout=subprocess.DEVNULL,
            check=True,
            env=environment(path.parent),
        )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def show_throughput(program: str, other: str | None, rows: int, folder: Path) -> None:
    """Print processor seconds of both programs."""
    for form in FORMS:
        path = folder / f"rows.{form}"
        path.write_bytes(b"".join(lines_of(form, rows)))
    for words in (("-l", "ahpatron"), ("-l", "metron", "-p", "tracker=off")):
        for form in FORMS:
            mine = []
            theirs = []
            for _ in range(5):
                mine.append(processor_seconds(program, form, path_of(folder, form), *words))
                if other and form != "jsonl":
                    old = [word for word in words if word not in ("-p", "tracker=off")]
                    theirs.append(processor_seconds(other, form, path_of(folder, form), *old))
            ratio = f"{min(mine) / min(theirs):6.3f}" if theirs else ""
            print(f"{' '.join(words):28}{form:8}{min(mine):8.2f} s {ratio}")
    text = path_of(folder, "jsonl").read_bytes().splitlines()
    begun = time.process_time()
    for line in text:
        json.loads(line)
    print(f"json.loads of all lines {time.process_time() - begun:.2f} s")
    print(f"reading JSON lines      {seconds_to_read(path_of(folder, 'jsonl')):.2f} s")


def path_of(folder: Path, form: str) -> Path:
    """The file of a format."""
    return folder / f"rows.{form}"


def seconds_to_read(path: Path) -> float:
    """Processor time of reading JSON lines as rows of a learner."""
    from ahpatron_cli.data.live_tables import LiveTableReader
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.data.table_options import TableOptions

    with open_source(str(path)) as source:
        begun = time.process_time()
        for _ in LiveTableReader(source, TableOptions(label="y")):
            pass
        return time.process_time() - begun


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["latency", "throughput"])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--against")
    parser.add_argument("--folder", type=Path, default=Path("/tmp"))
    given = parser.parse_args()
    program = str(Path(sys.executable).with_name("ahpatron"))
    if given.what == "latency":
        show_latency(program, given.rows)
        return
    other = str(Path(given.against) / ".venv/bin/ahpatron") if given.against else None
    show_throughput(program, other, given.rows, given.folder)


if __name__ == "__main__":
    main()
