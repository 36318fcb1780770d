"""Streams that are live: rows are answered as they arrive, and signals end a run well."""

import csv
import gzip
import json
import os
import re
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.command import Ahpatron

ENDINGS = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]


def lines_of(path: Path) -> list[str]:
    return path.read_text().splitlines(keepends=True)


class Live:
    """`ahpatron` at the other end of a two-way pipe."""

    def __init__(self, process: Any) -> None:
        self.process = process

    def ask(self, content: str | bytes, lines: int = 1) -> list[str]:
        """Send some rows, and read so many lines: a reader that keeps rows back hangs here."""
        self.process.stdin.write(content if isinstance(content, bytes) else content.encode())
        self.process.stdin.flush()
        return [self.process.stdout.readline().decode() for _ in range(lines)]

    def message(self) -> str:
        """The next line on stderr."""
        return str(self.process.stderr.readline().decode())

    def end(self) -> tuple[int, str, str]:
        """Close the pipe: exit code, and the rest of both streams."""
        out, err = self.process.communicate(timeout=300)
        return self.process.returncode, out.decode(), err.decode()


@contextmanager
def live(ahpatron: Ahpatron, *arguments: object, **options: Any) -> Iterator[Live]:
    with ahpatron.start(*arguments, text=False, **options) as process:
        guard = threading.Timer(120, process.kill)  # a row that is kept back fails, not hangs
        guard.start()
        try:
            yield Live(process)
        finally:
            guard.cancel()
            process.kill()


def test_every_row_is_answered_before_the_next_is_sent(ahpatron: Ahpatron, rings: Path) -> None:
    lines = lines_of(rings)[:200]
    with live(ahpatron, "run", "-", "--sigma", 0.1, "--predictions", "-") as run:
        answers = run.ask(lines[0], 2)[1:]
        for line in lines[1:]:
            answers += run.ask(line)
        half = lines[0][:9]
        rest = lines[0][9:]
        run.ask(half, 0)
        assert [answer.split(",")[3] for answer in answers] == [str(t) for t in range(1, 201)]
        answers += run.ask(rest)
        assert run.end()[0] == 0
    ahpatron.write("d.svm", "".join([*lines, lines[0]]))
    ahpatron.succeed("run", "d.svm", "--sigma", 0.1, "--predictions", "p.csv")
    whole = ahpatron.read("p.csv").splitlines()[1:]
    for live_row, row in zip(csv.reader(answers), csv.reader(whole), strict=True):
        assert live_row[3:6] + live_row[7:] == row[3:6] + row[7:]
        assert float(live_row[6]) == pytest.approx(float(row[6]), abs=1e-8)


@pytest.mark.parametrize("packed", [False, True])
def test_predict_answers_at_once(ahpatron: Ahpatron, rings: Path, packed: bool) -> None:
    """Packed: each row is a gzip member of its own."""
    ahpatron.succeed("run", rings, "--sigma", 0.1, "--save", "m.npz")
    wanted = ahpatron.succeed("predict", "m.npz", rings).out.splitlines(keepends=True)
    with live(ahpatron, "predict", "m.npz", "-") as scored:
        for number, line in enumerate(lines_of(rings)[:50], 1):
            content = gzip.compress(line.encode()) if packed else line
            found = scored.ask(content, 2 if number == 1 else 1)
            assert found[:-1] in ([], wanted[:1])
            answer, expected = csv.reader([found[-1], wanted[number]])
            assert answer[:2] == expected[:2]
            assert float(answer[2]) == pytest.approx(float(expected[2]), abs=1e-8)
        if packed:
            assert scored.end()[0] == 0
        else:
            scored.process.send_signal(signal.SIGTERM)
            assert scored.end()[:2] == (143, "")


CUSTOMERS = "y,plan,age\n" + "yes,basic,20\nno,plus,50\nno,plus,60\n" * 40


@pytest.mark.parametrize("words", ["run - --resume m.npz --predictions -", "predict m.npz -"])
def test_rows_of_a_table_are_answered_at_once(ahpatron: Ahpatron, words: str) -> None:
    ahpatron.write("t.csv", CUSTOMERS)
    ahpatron.succeed("run", "t.csv", "--label", "y", "--save", "m.npz")
    header, *lines = CUSTOMERS.splitlines(keepends=True)
    with live(ahpatron, *words.split()) as run:
        assert "prediction" in run.ask(header + lines[0], 2)[0]
        for line in lines[1:5]:
            assert re.search(r",(yes|no),", *run.ask(line))
        assert run.end()[0] == 0


def test_asked_now_and_told_later(ahpatron: Ahpatron) -> None:
    with live(ahpatron, "run", "-", "--predictions", "-", "--out", "r.json") as run:
        run.ask("1 1:1\n", 2)
        for question in ("? 1:1.1\n", "1:1.1\n"):
            cells = run.ask(question)[0].strip().split(",")
            assert (cells[3], cells[5], cells[7], cells[8]) == ("", "", "1", "")
        assert run.ask("-1 1:1.1\n")[0].split(",")[3] == "2"
        code, out, err = run.end()
    assert (code, out) == (0, "")
    assert "2 rows without a label" in err
    (record,) = json.loads(ahpatron.read("r.json"))["runs"]
    assert (record["rounds"], record["unlabelled"], record["ended_by"]) == (2, 2, None)


def test_unlabelled_rows_change_nothing_else(ahpatron: Ahpatron, rings: Path) -> None:
    lines = lines_of(rings)[:500]
    asked = [text for line in lines for text in ("? " + line.split(" ", 1)[1], line)]
    ahpatron.write("plain.svm", "".join(lines))
    ahpatron.write("asked.svm", "".join(asked))
    options = ("--sigma", 0.1, "-B", 50, "--window", 100, "--predictions")
    plain = ahpatron.run("plain.svm", *options, "a.csv")
    mixed = ahpatron.run("asked.svm", *options, "b.csv")
    assert (mixed["unlabelled"], plain["unlabelled"]) == (500, 0)
    for name in ("mistakes", "rounds", "updates", "window", "margin_updates", "support_size"):
        assert mixed[name] == plain[name]
    found = ahpatron.table("b.csv")
    for question, told in zip(found[::2], found[1::2], strict=True):
        assert question["prediction"] == told["prediction"]
        assert float(question["score"]) == pytest.approx(float(told["score"]), abs=1e-8)
    limited = ahpatron.run("asked.svm", "--limit", 31)
    assert (limited["rounds"], limited["unlabelled"]) == (15, 16)
    ahpatron.succeed("run", "plain.svm", "--sigma", 0.1, "--save", "m.npz")
    ahpatron.write("only.svm", "? 1:1\n")
    assert ahpatron.run("only.svm", "--resume", "m.npz")["unlabelled"] == 1
    ahpatron.refusal(65, "run", "only.svm")


@pytest.mark.parametrize(("number", "code"), ENDINGS)
def test_a_signal_ends_the_stream(
    ahpatron: Ahpatron, rings: Path, number: signal.Signals, code: int
) -> None:
    outputs = ("--save", "m.npz", "--out", "r.json", "--curve", "c.csv")
    options = ("--sigma", 0.1, "--predictions", "-", *outputs)
    lines = lines_of(rings)
    with live(ahpatron, "run", "-", *options) as run:
        run.ask("".join(lines[:100]), 101)
        run.process.send_signal(number)
        assert run.end()[0] == code
    (record,) = json.loads(ahpatron.read("r.json"))["runs"]
    assert (record["rounds"], record["ended_by"]) == (100, number.name)
    assert "c.csv" in ahpatron.files()
    ahpatron.write("rest.svm", "".join(lines[100:]))
    resumed = ahpatron.run("rest.svm", "--resume", "m.npz")
    whole = ahpatron.run(rings, "--sigma", 0.1)
    assert (resumed["rounds"], resumed["mistakes"]) == (whole["rounds"], whole["mistakes"])


def test_a_signal_ends_a_file(ahpatron: Ahpatron, rings: Path) -> None:
    ahpatron.write("long.svm", rings.read_bytes() * 200)
    outputs = ("--save", "m.npz", "--predictions", "p.csv", "--out", "r.json")
    with live(ahpatron, "run", "long.svm", "--sigma", 0.1, *outputs, "-v") as run:
        run.message()  # the figures after 1,000 rounds
        run.process.send_signal(signal.SIGTERM)
        assert run.end()[0] == 143
    record = json.loads(ahpatron.read("r.json"))
    rounds = ahpatron.read("p.csv").count("\n") - 1
    assert record["runs"][0]["rounds"] == record["data"]["rounds"] == rounds < 400_000
    assert "m.npz" in ahpatron.files()


def test_signals_that_end_nothing(ahpatron: Ahpatron, rings: Path) -> None:
    """A SIGHUP that is ignored, as under nohup, and SIGUSR1, which is answered also with -q."""
    words = ("run", "-", "--sigma", 0.1, "--predictions", "-", "--quiet")
    ignored = {"preexec_fn": lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)}
    with live(ahpatron, *words, **ignored) as run:
        run.ask("".join(lines_of(rings)[:30]), 31)
        run.process.send_signal(signal.SIGHUP)
        run.process.send_signal(signal.SIGUSR1)
        assert "ahpatron: 30 rounds, " in run.message()
        assert run.ask(lines_of(rings)[30])[0].split(",")[3] == "31"
        assert run.end()[0] == 0


def test_a_drift_is_reported_while_the_stream_goes_on(ahpatron: Ahpatron, rings: Path) -> None:
    lines = lines_of(rings)[:600]
    flipped = [("-" if line[0] != "-" else "") + line.lstrip("+-") for line in lines]
    options = ("--sigma", 0.1, "--window", 50, "--predictions", "-")
    with live(ahpatron, "run", "-", *options) as run:
        run.ask("".join(lines), 601)
        run.ask("".join(flipped), 600)
        said = run.message()
        assert re.match(r"warning: \d{4}-\d\d-\d\d .* round \d+", said)
        run.ask("? 1:0.5 2:0.5\n")  # a row without a label does not repeat the warning
        code, _, rest = run.end()
        assert code == 0
        assert "rose" not in rest


def test_a_warm_up_is_announced(ahpatron: Ahpatron, rings: Path) -> None:
    options = ("--scale", "standard", "--predictions", "-", "--warm-up", 20)
    lines = lines_of(rings)
    with live(ahpatron, "run", "-", *options) as run:
        run.ask("".join(lines[:19]), 0)
        assert "waiting for the first rows" in run.message()
        answers = run.ask(lines[19], 21)
        assert answers[-1].split(",")[3] == "20"
        answers += run.ask(lines[20])
        assert run.end()[0] == 0
    ahpatron.write("d.svm", "".join(lines[:21]))
    ahpatron.succeed("run", "d.svm", *options[:2], "--warm-up", 20, "--predictions", "p.csv")
    whole = ahpatron.read("p.csv").splitlines()
    assert [line.split(",")[7] for line in answers] == [line.split(",")[7] for line in whole]


def test_a_signal_during_the_warm_up_loses_no_row(ahpatron: Ahpatron, rings: Path) -> None:
    with live(ahpatron, "run", "-", "--scale", "standard", "--predictions", "-") as run:
        run.ask("".join(lines_of(rings)[:30]), 0)
        assert "waiting for the first rows" in run.message()
        run.process.send_signal(signal.SIGTERM)
        code, out, _ = run.end()
        assert (code, len(out.splitlines())) == (143, 31)


@pytest.mark.parametrize("words", ["run pipe", "predict m.npz pipe"])
def test_a_named_pipe_is_opened_once(ahpatron: Ahpatron, rings: Path, words: str) -> None:
    """Its writer ends when its reader closes it, and what it has written is lost."""
    ahpatron.succeed("run", rings, "--sigma", 0.3, "--save", "m.npz")
    os.mkfifo(ahpatron.folder / "pipe")
    done = ahpatron.shell(f"cat {rings} > pipe & ahpatron {words}")
    assert done.code == 0
    assert "2,000" in done.out + done.err


@pytest.mark.parametrize(
    "lines",
    [
        ["x,c,y\n1,a,0\n", "2,b,1\n", ",,1\n", "3,c,\n"],
        ['{"x": 1, "y": 0}\n', '{"y": 1}\n', '{"x": 1, "z": {"a": [1, 2]}}\n'],
        ["a,y\n1,dog\n", "2,cat\n", "3,cow\n"],
    ],
    ids=["CSV", "JSON", "classes"],
)
def test_each_row_of_a_live_table_is_answered_at_once(ahpatron: Ahpatron, lines: list[str]) -> None:
    with live(ahpatron, "run", "-", "--label", "y", "--predictions", "-") as run:
        for number, line in enumerate(lines):
            assert len(run.ask(line, 2 if number == 0 else 1)) == (2 if number == 0 else 1)
        code, _, message = run.end()
        assert code == 0, message


def test_a_table_on_a_steady_pipe_waits_for_its_scale_and_reports_it(ahpatron: Ahpatron) -> None:
    words = ["run", "-", "--label", "y", "--predictions", "-", "--scale", "standard"]
    with live(ahpatron, *words) as run:
        for line in ("x,y\n", *(f"{i},{i % 2}\n" for i in range(6))):
            run.ask(line, 0)
            time.sleep(0.25)
        assert "waiting for the first rows" in run.message()
        code, out, _ = run.end()
        assert (code, len(out.splitlines())) == (0, 7)
