"""A live stream as a service: state, answers, faults, figures, and how it ends."""

import json
import math
import os
import re
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ahpatron_cli.live.monitor
from ahpatron_cli.live.monitor import Monitor
from ahpatron_cli.live.service import ServiceFigures
from support.command import Ahpatron, Outcome, objects_of, rows_of
from support.states import numbers

ENDINGS = [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)]
STATE = ("run", "-", "--state", "s.npz")
LIMIT = 300.0
"""Seconds after which a service that hangs is killed, and its test fails."""


@pytest.fixture(scope="module")
def lines(rings: Path) -> list[bytes]:
    return rings.read_bytes().splitlines(keepends=True)


@contextmanager
def started(ahpatron: Ahpatron, *arguments: object, **options: Any) -> Iterator[Any]:
    """A service; if it hangs, it is killed and the test fails."""
    with ahpatron.start(*arguments, text=False, **options) as process:
        guard = threading.Timer(LIMIT, process.kill)
        guard.start()
        try:
            yield process
        finally:
            guard.cancel()
            process.kill()


def ask(process: Any, line: bytes, answers: int = 1) -> list[str]:
    """Send a line, and read so many lines: a service that keeps an answer back hangs here."""
    process.stdin.write(line)
    process.stdin.flush()
    return [process.stdout.readline().decode().rstrip("\n") for _ in range(answers)]


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until it holds."""
    end = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < end, "it has not happened"
        time.sleep(0.01)


def fed(ahpatron: Ahpatron, rows: Sequence[bytes], *arguments: object) -> Outcome:
    """A service whose stdin is a file: what is read together does not depend on the machine."""
    path = ahpatron.write("rows", b"".join(rows))
    with path.open("rb") as file, started(ahpatron, *arguments, stdin=file) as service:
        out, err = service.communicate(timeout=300)
    return Outcome(service.returncode, out.decode(), err.decode())


def live(ahpatron: Ahpatron, name: str = "s.npz") -> dict[str, Any]:
    """What `inspect` says about the stream behind a state."""
    found: dict[str, Any] = ahpatron.json("inspect", name)["live"]
    return found


def events(ahpatron: Ahpatron, name: str = "l.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in ahpatron.read(name).splitlines()]


# Answers ------------------------------------------------------------------------------------------


def test_every_line_has_one_answer_at_once(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    with started(ahpatron, "run", "-", "--answers", "csv", "--on-fault", "skip") as service:
        header, first = ask(service, lines[0], 2)
        assert header == "line,prediction,score,label,mistake,error"
        assert first.startswith("1,1,0.0,")
        assert ask(service, b"? 1:0.5\n")[0].endswith(",,,")
        assert "finite decimal number" in ask(service, b"1 1:abc\n")[0]
        assert ask(service, lines[1])[0].startswith("4,")
        service.stdin.close()
        assert service.wait(300) == 0


def test_answers_are_json_lines_if_asked_for(ahpatron: Ahpatron) -> None:
    rows = b"1 1:1\n? 1:1\n1 1:x\n0 1:-1\n"
    done = ahpatron("run", "-", "--answers", "jsonl", "--on-fault", "skip", stdin=rows)
    first, second, third, fourth = map(json.loads, done.out.splitlines())
    assert first == {"line": 1, "prediction": 1, "score": 0.0, "label": 1, "mistake": 0}
    assert second.keys() == {"line", "prediction", "score"}
    assert third.keys() == {"line", "error"}
    assert (fourth["line"], fourth["label"]) == (4, 0)


@pytest.mark.parametrize("name", ["a.csv", "a.jsonl"])
def test_answers_in_a_file_are_continued_with_the_state(ahpatron: Ahpatron, name: str) -> None:
    """The suffix decides the format."""
    for rows in (b"1 1:1\n-1 1:2\n", b"1 1:3\n"):
        ahpatron.succeed(*STATE, "--predictions", name, stdin=rows)
    written = ahpatron.read(name).splitlines()
    assert len(written) == 3 + (name == "a.csv")
    assert written[-1].startswith('{"line": 1' if name == "a.jsonl" else "1,")


def test_a_pipe_without_these_options_prints_its_table(ahpatron: Ahpatron) -> None:
    done = ahpatron.succeed("run", "-", stdin=b"1 1:1\n-1 1:-1\n")
    assert "Mistakes %" in done.out


# State --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("learner", ["metron", "ahpatron"])
def test_a_service_in_three_lives_is_one_service(
    ahpatron: Ahpatron, lines: list[bytes], learner: str
) -> None:
    """The cuts are at multiples of 64 rounds: window, drifts, metrics and model have equal bits."""
    options = ("-l", learner, "--window", 50, "--metrics")
    whole = fed(ahpatron, lines, "run", "-", "--state", "w.npz", "--out", "w.json", *options)
    answers = []
    for start, stop in ((0, 640), (640, 1280), (1280, 2000)):
        done = fed(ahpatron, lines[start:stop], *STATE, "--out", "r.json", *options)
        answers += done.out.splitlines()[1:]
    assert numbers(ahpatron.folder / "s.npz") == numbers(ahpatron.folder / "w.npz")
    found, wanted = (json.loads(ahpatron.read(name))["runs"][0] for name in ("r.json", "w.json"))
    for record in (found, wanted):
        del record["seconds"]
    assert found == wanted
    scores = [line.split(",")[1:] for line in whole.out.splitlines()[1:]]
    assert [line.split(",")[1:] for line in answers] == scores


def test_the_same_command_starts_a_service_again(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    learner = ("-l", "ahpatron", "-B", 100, "--sigma", 0.5, "-p", "epsilon=0.6", "--seed", 3)
    ahpatron.succeed(*STATE, *learner, stdin=b"".join(lines[:100]))
    ahpatron.succeed(*STATE, *learner, stdin=b"".join(lines[100:200]))
    assert live(ahpatron)["lines"] == 200


OTHER_VALUES = [
    ("--budget", 50),
    ("--sigma", 1),
    ("--learner", "metron"),
    ("--epsilon", 0.7),
    ("--scale", "unit"),
    ("--seed", 4),
]


@pytest.mark.parametrize("other", OTHER_VALUES)
def test_a_service_refuses_to_go_on_with_other_options(
    ahpatron: Ahpatron, lines: list[bytes], other: tuple[str, object]
) -> None:
    learner = ("-l", "ahpatron", "-B", 100, "--sigma", 0.5, "-p", "epsilon=0.6", "--seed", 3)
    ahpatron.succeed(*STATE, *learner, stdin=lines[0])
    assert other[0] in ahpatron.refusal(2, *STATE, *other, stdin=lines[1])


def test_two_services_cannot_have_one_state(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    with started(ahpatron, *STATE) as service:
        ask(service, lines[0], 2)
        assert "another process" in ahpatron.refusal(75, *STATE, stdin=lines[1])
        service.stdin.close()
        assert service.wait(300) == 0
    ahpatron.succeed(*STATE, stdin=lines[1])
    assert live(ahpatron)["lines"] == 2


@pytest.mark.parametrize(("number", "code"), ENDINGS)
def test_a_signal_saves_all_that_was_learned(
    ahpatron: Ahpatron, lines: list[bytes], number: int, code: int
) -> None:
    with started(ahpatron, *STATE, "--out", "r.json", "--log", "l.jsonl") as service:
        ask(service, b"".join(lines[:70]), 71)
        service.send_signal(number)
        assert service.wait(300) == code
    assert live(ahpatron)["lines"] == 70
    name = signal.Signals(number).name
    assert json.loads(ahpatron.read("r.json"))["runs"][0]["ended_by"] == name
    assert events(ahpatron)[-1]["ended_by"] == name


def test_a_reader_that_goes_away_ends_the_service_after_saving(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    with started(ahpatron, *STATE) as service:
        ask(service, lines[0], 2)
        service.stdout.close()
        for line in lines[1:3]:
            service.stdin.write(line)
            service.stdin.flush()
        assert service.wait(300) == 141
    assert live(ahpatron)["lines"] in (2, 3)


def test_a_state_is_saved_at_multiples_of_64_rounds(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    rows = b"".join(lines[:400])
    ahpatron.succeed(*STATE, "--save-every", 100, "--log", "l.jsonl", stdin=rows)
    saved = [event["rounds"] for event in events(ahpatron) if event["event"] == "saved"]
    assert saved == [128, 256, 384, 400]


def test_what_was_learned_is_saved_once_a_minute(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    """A minute takes 50 ms here; the service waits for more rows when its state is read."""
    ahpatron.write("sitecustomize.py", "from ahpatron_cli import signals; signals.HEARTBEAT = 0.05")
    paths = [str(ahpatron.folder), os.environ.get("PYTHONPATH", "")]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with started(ahpatron, *STATE, "--log", "l.jsonl", env=surroundings) as service:
        ask(service, lines[0], 2)  # the header, and the answer
        wait_for(lambda: "s.npz" in ahpatron.files())
        ask(service, lines[1])
        wait_for(lambda: live(ahpatron)["lines"] == 2)
        service.stdin.close()
        assert service.wait(300) == 0
    assert [event["event"] for event in events(ahpatron)].count("figures") > 2


def test_counts_that_are_asked_for_do_not_save_the_state(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    with started(ahpatron, *STATE) as service:
        ask(service, lines[0], 2)
        service.send_signal(signal.SIGUSR1)
        while b": 1 rounds, " not in service.stderr.readline():
            pass
        ask(service, lines[1])  # it waits again, and has done whatever the signal asks for
        assert "s.npz" not in ahpatron.files()
        service.stdin.close()
        assert service.wait(300) == 0
    assert live(ahpatron)["lines"] == 2


def _small_files() -> None:
    """No file may grow beyond 2,000 bytes: a disk that is full."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, resource.RLIM_INFINITY))


def test_a_full_disk_fails_the_service_only_at_its_end(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    """The state of before is whole, and saving it is tried again in between."""
    ahpatron.succeed(*STATE, "-l", "ahpatron", stdin=b"".join(lines[:64]))
    before = (ahpatron.folder / "s.npz").read_bytes()
    command = (*STATE, "--save-every", 64)
    with started(ahpatron, *command, preexec_fn=_small_files) as service:
        out, err = service.communicate(b"".join(lines[64:300]), timeout=300)
        assert service.returncode == 74
    assert err.decode().count("the state is not saved") == 3
    assert len(out.splitlines()) == 1 + 236
    assert (ahpatron.folder / "s.npz").read_bytes() == before


@pytest.mark.parametrize("other", ["-1", "0"])
def test_a_state_that_has_seen_one_label_only_can_go_on(ahpatron: Ahpatron, other: str) -> None:
    """Label 1 may be of the pair -1/+1 or 0/1: the state must not decide it."""
    ahpatron.succeed(*STATE, stdin=b"1 1:1\n1 1:2\n")
    ahpatron.succeed(*STATE, "--out", "r.json", stdin=f"{other} 1:1\n1 1:3\n".encode())
    found = json.loads(ahpatron.read("r.json"))
    assert found["data"]["labels"] == [int(other), 1]
    assert found["runs"][0]["rounds"] == 4


@pytest.mark.parametrize("words", ["-B 60", "-l arow", "--sigma 2", "--weight 1=2", "--window 50"])
def test_a_state_refuses_options_that_it_was_made_without(
    ahpatron: Ahpatron, lines: list[bytes], words: str
) -> None:
    """An option of the call, such as --window, may be given at any time."""
    ahpatron.succeed(*STATE, stdin=b"".join(lines[:100]))
    done = ahpatron(*STATE, *words.split(), stdin=b"".join(lines[100:200]))
    is_of_the_call = words.startswith("--window")
    assert (done.code == 0) == is_of_the_call
    assert ("other values of" in done.err) != is_of_the_call


@pytest.mark.parametrize("option", ["resume", "checkpoint", "curve", "certify"])
def test_a_state_excludes_other_ways_to_go_on(ahpatron: Ahpatron, option: str) -> None:
    value = [] if option == "certify" else ["m.npz"]
    assert "--state" in ahpatron.refusal(2, *STATE, f"--{option}", *value)


def test_a_checkpoint_of_a_pipe_is_refused_with_the_way_out(ahpatron: Ahpatron) -> None:
    assert "--state" in ahpatron.refusal(2, "run", "-", "--checkpoint", "c.npz", stdin=b"1 1:1\n")


@pytest.mark.parametrize("option", ["--state s.npz", "--answers csv", "--log l.jsonl"])
def test_options_of_a_service_are_for_pipes(ahpatron: Ahpatron, rings: Path, option: str) -> None:
    assert "cat FILE" in ahpatron.refusal(2, "run", rings, *option.split())


@pytest.mark.parametrize("cut", [0.3, 0.6, 0.9])
def test_a_damaged_state_is_refused(ahpatron: Ahpatron, lines: list[bytes], cut: float) -> None:
    ahpatron.succeed(*STATE, stdin=b"".join(lines[:64]))
    path = ahpatron.folder / "s.npz"
    content = path.read_bytes()
    path.write_bytes(content[: int(cut * len(content))])
    ahpatron.refusal(65, *STATE, stdin=lines[0])


# Faults -------------------------------------------------------------------------------------------


def test_a_faulty_line_ends_the_service_after_all_before_it_were_learned(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    rows = b"".join([*lines[:100], b"1 1:abc\n", *lines[100:200]])
    done = ahpatron(*STATE, "--out", "r.json", stdin=rows)
    assert done.code == 65
    assert "<stdin>:101" in done.err
    assert len(done.out.splitlines()) == 101
    assert json.loads(ahpatron.read("r.json"))["runs"][0]["ended_by"] == "fault"
    assert live(ahpatron)["lines"] == 100


def test_faulty_lines_are_left_out_and_kept(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    """Every good line is learned, and every bad one is answered, counted, said and kept."""
    bad = [b"1 1:abc\n", b"one 1:1\n", b"2 1:1\n", b"1 2:1 1:1\n", b"\xff\xfe\n"]
    rows = list(lines[:200])
    for number, line in enumerate(bad):
        rows.insert(30 * number + 20, line)
    options = ("--on-fault", "skip", "--rejects", "x.jsonl", "--out", "r.json")
    done = ahpatron.succeed(*STATE, *options, stdin=b"".join(rows))
    clean = ahpatron.succeed(
        "run", "-", "--state", "c.npz", "--out", "c.json", stdin=b"".join(lines[:200])
    )
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    wanted = json.loads(ahpatron.read("c.json"))["runs"][0]
    assert (record.pop("faults"), wanted.pop("faults")) == (5, 0)
    assert record["mistakes"] == wanted["mistakes"]
    assert done.err.count("left out") == 5
    answers = rows_of(done.out)
    places = [20, 50, 80, 110, 140]
    assert [int(row["line"]) for row in answers] == list(range(1, 206))
    assert [int(row["line"]) - 1 for row in answers if row["error"]] == places
    good = [row["prediction"] for row in answers if not row["error"]]
    assert good == [row["prediction"] for row in rows_of(clean.out)]
    rejects = [json.loads(line) for line in ahpatron.read("x.jsonl").splitlines()]
    assert [reject["line"] - 1 for reject in rejects] == places
    assert [reject["raw"] for reject in rejects[:4]] == [line.decode().strip() for line in bad[:4]]
    assert live(ahpatron)["lines"] == 205


@pytest.mark.parametrize("labels", ["01", "abc"])
def test_only_the_row_that_cannot_be_computed_is_left_out(ahpatron: Ahpatron, labels: str) -> None:
    """Its block is learned again up to this row, also if classes appear in it."""
    sound = [
        json.dumps({"x": round(math.sin(number), 3), "y": labels[number % len(labels)]}).encode()
        for number in range(200)
    ]
    faulty = json.dumps({"x": 1e300, "y": labels[0]}).encode()
    places = (2, 100, 101, 203)
    mixed = list(sound)
    for place in places:
        mixed.insert(place - 1, faulty)
    options = ("run", "-", "--label", "y", "--answers", "jsonl", "--on-fault", "skip")
    expected = objects_of(ahpatron.succeed(*options, stdin=b"\n".join(sound)).out)
    found = objects_of(ahpatron.succeed(*options, stdin=b"\n".join(mixed)).out)
    assert [row["line"] for row in found if "error" in row] == list(places)
    answered = [row for row in found if "error" not in row]
    assert [row["prediction"] for row in answered] == [row["prediction"] for row in expected]


def test_a_faulty_line_is_answered_before_another_line_comes(ahpatron: Ahpatron) -> None:
    with started(ahpatron, "run", "-", "--answers", "csv", "--on-fault", "skip") as service:
        ask(service, b"1 1:1\n", 2)
        assert ask(service, b"1 1:abc\n")[0].startswith("2,,,,,")
        assert ask(service, b"-1 1:1\n")[0].startswith("3,")


FAULTY_FIRST_LINES = [
    (("--label", "y"), b'{"a": ["x"]}\n', 1, b'{"a": 1, "y": 1}\n'),
    (("--label", "y", "--probability"), b'{"a": ["x"]}\n', 1, b'{"a": 1, "y": 1}\n'),
    (("--label", "y"), b"a,y\n1,1,1\n", 2, b"2,0\n"),
    ((), b"1 1:abc\n", 2, b"1 1:1\n"),
]


@pytest.mark.parametrize(("options", "faulty", "answers", "sound"), FAULTY_FIRST_LINES)
def test_a_faulty_line_before_the_first_row_is_answered_at_once(
    ahpatron: Ahpatron, options: tuple[str, ...], faulty: bytes, answers: int, sound: bytes
) -> None:
    with started(ahpatron, *STATE, *options, "--on-fault", "skip") as service:
        assert ask(service, faulty, answers)[-1]
        assert ask(service, sound)[0]
        service.stdin.close()
        assert service.wait(LIMIT) == 0
    counts = live(ahpatron)
    assert (counts["lines"], counts["faults"]) == (2, 1)


def test_a_faulty_line_that_has_to_wait_for_labels_is_answered_in_its_order(
    ahpatron: Ahpatron,
) -> None:
    """The columns of the probabilities are those of the labels."""
    options = ("--label", "y", "--classes", "no,yes", "--probability", "--on-fault", "skip")
    done = ahpatron.succeed(*STATE, *options, stdin=b"a,y\n1,no,1\n1,no\n2,yes\n")
    rows = rows_of(done.out)
    assert [row["line"] for row in rows] == ["2", "3", "4"]
    assert [bool(row["error"]) for row in rows] == [True, False, False]
    assert "probability_no" in rows[0]


def test_a_line_that_is_left_out_is_said_with_the_time_of_day(ahpatron: Ahpatron) -> None:
    done = ahpatron.succeed("run", "-", "--on-fault", "skip", stdin=b"1 1:1\n1 1:abc\n-1 1:2\n")
    pattern = r"^warning: \d{4}-\d\d-\d\d \d\d:\d\d:\d\d left out: <stdin>:2"
    assert re.search(pattern, done.err, re.MULTILINE)


def test_few_of_many_faults_are_said_even_when_quiet(ahpatron: Ahpatron) -> None:
    rows = b"1 1:1\n-1 1:2\n" + b"1 1:abc\n" * 1000
    done = ahpatron.succeed("run", "-", "--answers", "csv", "--on-fault", "skip", "-q", stdin=rows)
    assert done.err.count("left out") == 12
    assert len(done.out.splitlines()) == 1003


# Figures ------------------------------------------------------------------------------------------


def test_figures_are_logged_at_multiples_of_the_window(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    rows = b"".join(lines[:250])
    ahpatron.succeed("run", "-", "--log", "l.jsonl", "--window", 100, stdin=rows)
    found = events(ahpatron)
    assert [event["event"] for event in found][0::4] == ["start", "ended"]
    rounds = [event["rounds"] for event in found if event["event"] == "figures"]
    assert rounds == [100, 200, 250]
    assert found[1]["window"]["rounds"] == 100
    assert found[1]["time"][-6] in "+-"


def test_drifts_are_logged(ahpatron: Ahpatron) -> None:
    """The same labels 400 times, then labels that say nothing about the features."""
    rows = b"1 1:1\n-1 1:-1\n" * 200 + b"-1 1:1\n1 1:1\n1 1:-1\n-1 1:-1\n" * 100
    command = ("run", "-", "-l", "perceptron", "--log", "-", "--window", 50)
    logged = ahpatron.succeed(*command, stdin=rows)
    assert '"event": "drift"' in logged.err


def test_the_speed_in_the_log_is_that_since_the_figures_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logged: list[str] = []
    monitor = Monitor("-", None, show=logged.append, warn=pytest.fail)
    none = dict.fromkeys(ServiceFigures.__struct_fields__[:12], 0)
    for moment, learned, answered in ((10.0, 100, 0), (12.0, 150, 20)):
        clock = SimpleNamespace(monotonic=lambda moment=moment: moment)
        monkeypatch.setattr(ahpatron_cli.live.monitor, "time", clock)
        figures = ServiceFigures(**{**none, "rounds": learned, "unlabelled": answered})
        monitor.figures(figures, saved_at=None)
    assert [json.loads(line)["rows_per_second"] for line in logged] == [None, 35.0]


def test_each_reset_is_logged_once(ahpatron: Ahpatron) -> None:
    """The labels change their sides after 400 rows; in the last rows, mistakes go on."""
    rows = b"1 1:1\n-1 1:-1\n" * 200 + b"-1 1:1\n1 1:-1\n" * 100 + b"1 1:1\n-1 1:1\n" * 5
    ahpatron.succeed("run", "-", "-l", "arow", "--log", "l.jsonl", "--out", "r.json", stdin=rows)
    logged = [event["resets"] for event in events(ahpatron) if event["event"] == "reset"]
    record = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert record["restarts"] > 0
    assert sum(logged) == record["restarts"]


def test_figures_for_prometheus_are_in_its_text_format(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    ahpatron.succeed(*STATE, "--prometheus", "f.prom", stdin=b"".join(lines[:300]))
    found = {}
    for line in ahpatron.read("f.prom").splitlines():
        if not line.startswith("#"):
            name, value = line.rsplit(" ", 1)
            found[name] = float(value)
    assert found['ahpatron_rounds_total{learner="ahpatron"}'] == 300
    assert found['ahpatron_lines_total{learner="ahpatron"}'] == 300


def test_a_log_that_cannot_be_created_is_refused(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    assert ahpatron(*STATE, "--log", "none/l.jsonl", stdin=lines[0]).code == 73


def test_the_log_follows_its_name(ahpatron: Ahpatron, lines: list[bytes]) -> None:
    """As logrotate needs it: the file is renamed, and a new one is begun."""
    with started(ahpatron, *STATE, "--log", "l.jsonl", "--window", 1) as service:
        ask(service, lines[0], 2)
        wait_for(lambda: len(events(ahpatron)) == 2)
        (ahpatron.folder / "l.jsonl").rename(ahpatron.folder / "old.jsonl")
        ask(service, lines[1])
        service.stdin.close()
        assert service.wait(300) == 0
    assert [event["event"] for event in events(ahpatron, "old.jsonl")] == ["start", "figures"]
    assert events(ahpatron)[-1]["event"] == "ended"


@pytest.mark.parametrize("data", ["-", "data.svm"])
def test_a_mistake_rate_that_is_too_high_has_an_exit_code(
    ahpatron: Ahpatron, lines: list[bytes], data: str
) -> None:
    rows = b"".join(lines[:200])
    ahpatron.write("data.svm", rows)
    assert ahpatron("run", data, "--max-rate", 0.01, stdin=rows).code == 4
    assert ahpatron("run", data, "--max-rate", 0.9, stdin=rows).code == 0
    assert "0 to 1" in ahpatron.refusal(2, "run", data, "--max-rate", 5, stdin=rows)


def test_a_mistake_rate_of_just_the_limit_is_not_too_high(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    rows = b"".join(lines[:200])
    (run,) = ahpatron.json("run", "-", stdin=rows)["runs"]
    assert run["mistakes"] > 0
    rate = run["mistakes"] / 200
    assert ahpatron("run", "-", "--max-rate", rate, stdin=rows).code == 0
    assert ahpatron("run", "-", "--max-rate", rate - 0.001, stdin=rows).code == 4


def test_a_faulty_row_of_a_plain_pipe_ends_it_with_everything_before_it(
    ahpatron: Ahpatron, rings: Path
) -> None:
    lines = rings.read_bytes().splitlines(keepends=True)[:50]
    command = ("run", "-", "--save", "m.npz", "--format", "json")
    outcome = ahpatron.process(*command, stdin=b"".join([*lines, b"bad\n", *lines]))
    run = json.loads(outcome.out)["runs"][0]
    assert outcome.code == 65
    assert ":51:" in outcome.err
    assert (run["rounds"], run["ended_by"]) == (50, "fault")
    assert ahpatron.json("inspect", "m.npz")["rounds"] == 50


def test_a_faulty_first_row_is_refused_without_any_output(ahpatron: Ahpatron) -> None:
    outcome = ahpatron.process("run", "-", "--save", "m.npz", stdin=b"bad\n1 1:2\n")
    assert (outcome.code, outcome.out) == (65, "")
    assert "m.npz" not in ahpatron.files()


# As in a plain pipe -------------------------------------------------------------------------------


def test_a_service_draws_the_learning_curve_of_a_plain_pipe(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    rows = b"".join(lines[:200])
    ahpatron.succeed("run", "-", "--curve", "plain.csv", stdin=rows)
    ahpatron.succeed("run", "-", "--curve", "live.csv", "--answers", "csv", stdin=rows)
    assert ahpatron.read("live.csv") == ahpatron.read("plain.csv")
    assert ahpatron.read("live.csv").count("\n") > 2


# Streams without rows -----------------------------------------------------------------------------

SOUND_AND_FAULTY = [
    ((), b"1 1:1\n-1 1:2\n", b"1 1:abc\n? 1:abc\n"),
    (("--label", "y"), b"a,y\n1,1\n2,0\n", b"a,y\n1,2,3\n1,\xff\n"),
    (("--label", "y"), b'{"a": 1, "y": 1}\n{"a": 2, "y": 0}\n', b'{"a": 1\n{"a": ["x"]}\n'),
]


@pytest.mark.parametrize(("options", "sound", "faulty"), SOUND_AND_FAULTY)
def test_a_stream_of_faulty_lines_is_left_out_of_a_state(
    ahpatron: Ahpatron, options: tuple[str, ...], sound: bytes, faulty: bytes
) -> None:
    command = (*STATE, *options, "--on-fault", "skip", "--rejects", "x.jsonl")
    ahpatron.succeed(*command, stdin=sound)
    done = ahpatron.succeed(*command, "--answers", "jsonl", stdin=faulty)
    assert ["error" in json.loads(line) for line in done.out.splitlines()] == [True, True]
    assert ahpatron.read("x.jsonl").count("\n") == 2
    counts = live(ahpatron)
    assert (counts["lines"], counts["faults"]) == (4, 2)


@pytest.mark.parametrize(("options", "sound", "faulty"), SOUND_AND_FAULTY)
def test_a_new_service_of_faulty_lines_has_no_rows(
    ahpatron: Ahpatron, options: tuple[str, ...], sound: bytes, faulty: bytes
) -> None:
    command = (*STATE, *options, "--on-fault", "skip", "--rejects", "x.jsonl")
    done = ahpatron(*command, "--answers", "jsonl", stdin=faulty)
    assert done.code == 65
    assert "there are no rows" in done.err
    assert ["error" in json.loads(line) for line in done.out.splitlines()] == [True, True]
    assert ahpatron.read("x.jsonl").count("\n") == 2


@pytest.mark.parametrize("nothing", [b"", b"a,y\n"])
def test_a_stream_without_rows_keeps_a_state(ahpatron: Ahpatron, nothing: bytes) -> None:
    command = (*STATE, "--label", "y")
    ahpatron.succeed(*command, stdin=b"a,y\n1,dog\n2,cat\n")
    before = numbers(ahpatron.folder / "s.npz")
    ahpatron.succeed(*command, stdin=nothing)
    assert numbers(ahpatron.folder / "s.npz") == before
    assert live(ahpatron)["lines"] == 2


def test_an_empty_stream_keeps_a_state_of_libsvm_text(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    ahpatron.succeed(*STATE, stdin=b"".join(lines[:5]))
    done = ahpatron.succeed(*STATE, stdin=b"")
    assert live(ahpatron)["lines"] == 5
    assert "5 rounds, 2 features" in done.err


@pytest.mark.parametrize("skip", [(), ("--on-fault", "skip")])
def test_a_state_refuses_a_header_of_other_columns(
    ahpatron: Ahpatron, skip: tuple[str, ...]
) -> None:
    """Otherwise each row would be one of missing cells, and add columns to the state."""
    command = (*STATE, "--label", "y", *skip)
    ahpatron.succeed(*command, stdin=b"a,y\n1,dog\n2,cat\n")
    before = numbers(ahpatron.folder / "s.npz")
    done = ahpatron(*command, stdin=b"b,c\n1,dog\n2,cat\n")
    assert (done.code, done.out) == (65, "")
    assert "the header has none of the columns a, y" in done.err
    assert numbers(ahpatron.folder / "s.npz") == before


def test_a_table_of_labels_alone_needs_no_other_columns(ahpatron: Ahpatron) -> None:
    command = (*STATE, "--label", "y", "--id", "i", "--classes", "no,yes")
    ahpatron.succeed(*command, stdin=b"i,a,y\n1,3,no\n2,4,\n")
    ahpatron.succeed(*command, stdin=b"i,y\n2,yes\n")
    assert live(ahpatron)["late_labels"] == 1


@pytest.mark.parametrize("nothing", [b"", b"a,y\n"])
def test_a_new_state_requires_rows(ahpatron: Ahpatron, nothing: bytes) -> None:
    outcome = ahpatron(*STATE, "--label", "y", stdin=nothing)
    assert outcome.code == 65
    assert "there are no rows" in outcome.err
    assert "s.npz" not in ahpatron.files()


@pytest.mark.parametrize("first", [b"[]", b"[1, 2]", b'["a"]', b'[{"y": 1}]', b"["])
@pytest.mark.parametrize("options", [(), ("--label", "y"), ("--label", "y", "--answers", "csv")])
def test_a_json_list_is_refused_with_a_way_to_make_lines(
    ahpatron: Ahpatron, first: bytes, options: tuple[str, ...]
) -> None:
    outcome = ahpatron("run", "-", *options, stdin=first + b"\n")
    assert outcome.code == 65
    assert "JSON list, not JSON lines" in outcome.err
    assert "json.dumps(row)" in outcome.err


def test_a_model_is_continued_with_the_answers_of_a_service(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    ahpatron.write("first.svm", b"".join(lines[:64]))
    ahpatron.succeed("run", "first.svm", "--sigma", 0.1, "--save", "m.npz")
    options = ("--resume", "m.npz", "--out", "r.json")
    rest = b"".join(lines[64:200])
    done = ahpatron.succeed("run", "-", *options, "--answers", "csv", stdin=rest)
    found = json.loads(ahpatron.read("r.json"))["runs"][0]
    ahpatron.succeed("run", "-", *options, stdin=rest)
    wanted = json.loads(ahpatron.read("r.json"))["runs"][0]
    assert len(rows_of(done.out)) == 136
    for name in ("rounds", "mistakes", "support_size"):
        assert found[name] == wanted[name]


def test_a_row_with_new_features_does_not_fit_a_model_that_is_continued(
    ahpatron: Ahpatron, lines: list[bytes]
) -> None:
    ahpatron.write("first.svm", b"".join(lines[:64]))
    ahpatron.succeed("run", "first.svm", "--sigma", 0.1, "--save", "m.npz")
    command = ("run", "-", "--resume", "m.npz", "--answers", "csv")
    outcome = ahpatron(*command, stdin=b"1 9:1\n")
    assert outcome.code == 65
    assert "9" in outcome.err
    ahpatron.succeed(*command, "--allow-new-features", stdin=b"1 9:1\n")
