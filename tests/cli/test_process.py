"""The command as a process: terminals, pipes, signals, start-up."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import time
from pathlib import Path

import pytest

from support.command import COMMAND, Ahpatron, modules_after
from support.terminal import in_terminal, lines_of


def test_a_terminal_gets_a_table_with_the_best_in_bold(rings: Path) -> None:
    text, code = in_terminal("run", rings, "-l", "all", "-B", 40, "--sigma", 0.3, columns=100)
    assert code == 0
    assert "\x1b[1m" in text
    names = ("Learner", "ahpatron", "avp")  # and ahpatron+
    table = [line for line in lines_of(text) if line.startswith(names)]
    assert len(table) == 4
    assert "|M_T|" in table[0]


@pytest.mark.parametrize(
    "columns", [40, *(pytest.param(n, marks=pytest.mark.slow) for n in (60, 80, 200))]
)
def test_no_line_is_wider_than_the_terminal(
    ahpatron: Ahpatron, rings: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahpatron.write("r.svm", rings.read_bytes())
    monkeypatch.chdir(ahpatron.folder)
    text, code = in_terminal("run", "r.svm", "-l", "all", "-B", 40, columns=columns)
    assert code == 0
    body = [line for line in lines_of(text) if not line.startswith("r.svm")]
    assert max(len(line) for line in body) <= columns, text
    for word in ("ahpatron", "avp", "perceptron"):
        assert word in text


def test_progress_shows_the_running_mistake_rate(ahpatron: Ahpatron) -> None:
    path = ahpatron.write("long.svm", "-1 1:1 2:3\n1 1:2 2:2\n-1 1:3 2:1\n" * 40_000)
    text, code = in_terminal("run", path, "-B", 200, columns=120)
    assert code == 0
    assert "% mistakes" in text
    assert "rounds" in text
    quiet, _ = in_terminal("run", path, "-B", 200, "-q", columns=120)
    assert "% mistakes" not in quiet


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(rings: Path, environment: dict[str, str]) -> None:
    text, code = in_terminal("run", rings, "-l", "all", "-B", 40, **environment)
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text)


def test_a_pipe_gets_whole_lines_without_colour(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron("run", rings, "-l", "all", "-B", 40, "--repeats", 2, COLUMNS="30")
    assert "\x1b" not in done.out + done.err
    assert done.err == ""
    heads = [line for line in done.out.splitlines() if line.startswith("Learner")]
    names = heads[0].replace("AMR %", "AMR").split()
    assert names[:7] == ["Learner", "AMR", "|M_T|", "|N_T|", "Support", "Halvings", "ζ̂"]
    assert names[-1] == "Seconds"


def test_an_ascii_table_says_plus_minus_in_ascii(ahpatron: Ahpatron, rings: Path) -> None:
    done = ahpatron.succeed("run", rings, "-B", 40, "--repeats", 2, PYTHONIOENCODING="ascii")
    assert "+-" in done.out


def test_a_closed_pipe_is_quiet(rings: Path) -> None:
    command = " ".join(COMMAND)
    shell = f"{command} run {rings} -l all --repeats 20 -B 4 --limit 20 --format jsonl | head -1"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=120, check=False)
    assert done.stderr == b""
    assert len(done.stdout.splitlines()) == 1


STDOUT_USERS = [
    "run {rings} -B 4 --format json",
    "run {rings} -B 4",
    "run --help",
    "inspect {rings}",
    "inspect --learners",
    "--version",
]
IN_PROCESSES = [
    pytest.param(command, marks=[] if command.endswith(("-B 4", "--help")) else pytest.mark.slow)
    for command in STDOUT_USERS
]


def in_shell(command: str, redirection: str) -> subprocess.CompletedProcess[bytes]:
    line = f"{' '.join(COMMAND)} {command} {redirection}"
    return subprocess.run(["bash", "-c", line], capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("command", IN_PROCESSES)
def test_a_full_disk_is_an_error(rings: Path, command: str) -> None:
    done = in_shell(command.format(rings=rings), "> /dev/full")
    assert done.returncode == 74
    assert done.stderr == b"error: standard output cannot be written: No space left on device\n"


@pytest.mark.parametrize("command", IN_PROCESSES)
def test_a_pipe_that_nobody_reads_is_quiet(rings: Path, command: str) -> None:
    done = in_shell(command.format(rings=rings), "| true; echo ${PIPESTATUS[0]}")
    assert (done.stdout, done.stderr) == (b"0\n", b"")


def test_closed_stdout_is_an_error(rings: Path) -> None:
    done = in_shell(f"run {rings} -B 4", ">&-")
    assert (done.returncode, done.stderr) == (74, b"error: standard output is closed\n")


@pytest.mark.parametrize("command", [*STDOUT_USERS, "run {rings} -B 4 --format markdown"])
def test_an_ascii_locale_is_no_reason_to_fail(
    ahpatron: Ahpatron, rings: Path, command: str
) -> None:
    done = ahpatron(*command.format(rings=rings).split(), PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")


def test_closed_stderr_is_no_reason_to_fail(sparse_text: Path) -> None:
    shell = f"{' '.join(COMMAND)} run {sparse_text} -B 4 --format csv 2>&-"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"data,")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "way", [[], pytest.param(["--repeats", "50", "--jobs", "2"], marks=pytest.mark.slow)]
)
def test_signals(ahpatron: Ahpatron, number: signal.Signals, code: int, way: list[str]) -> None:
    ahpatron.write("long.svm", "-1 1:1 2:3\n1 1:2 2:2\n-1 1:3 2:1\n1 2:5\n" * 100_000)
    with subprocess.Popen(
        [*COMMAND, "run", "long.svm", "-B", "1000", "--predictions", "p.csv", *way],
        cwd=ahpatron.folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        # a shell starts what it runs in the background with SIGINT ignored, and that is inherited
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as child:
        deadline = time.monotonic() + 60
        while len(ahpatron.files()) < 2 and time.monotonic() < deadline:
            time.sleep(0.02)  # until it has begun to write
        child.send_signal(number)
        out, err = child.communicate(timeout=120)
    assert child.returncode == code
    assert out == b""
    assert err == (b"ahpatron: interrupted\n" if code == 130 else b"ahpatron: terminated\n")
    assert ahpatron.files() == {"long.svm"}


def test_help_imports_nothing_heavy(rings: Path) -> None:
    heavy = {"numpy", "scipy", "sklearn", "matplotlib", "joblib", "dask"}
    for arguments in (["--help"], ["run", "--help"], ["--version"]):
        assert not modules_after(*arguments) & heavy


def test_run_imports_neither_scipy_nor_scikit_learn(rings: Path) -> None:
    modules = modules_after("run", rings, "-B", 40, "--format", "json")
    assert "numpy" in modules
    assert not modules & {"sklearn", "matplotlib", "joblib", "dask", "scipy"}


def test_options_are_read_without_pydantic(rings: Path) -> None:
    """Typer's own checks would import it: a third of the time of a small run."""
    options = ("-B", 40, "--repeats", 2, "--no-shuffle", "-l", "rbp", "-p", "budget=30", "-q")
    assert "pydantic" not in modules_after("run", rings, *options)
    assert "pydantic" not in modules_after("inspect", rings, "--seed", 3)


def test_an_exit_code_of_1_is_no_success(ahpatron: Ahpatron) -> None:
    assert ahpatron(_AHPATRON_COMPLETE="nonsense").code == 1


COMMANDS = ("run", "sweep", "inspect")


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help(ahpatron: Ahpatron, command: str) -> None:
    words = [command] if command else []
    done = ahpatron(*words, "--help")
    assert (done.code, done.err) == (0, "")
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert (
        lines[0]
        == {
            "": "Usage: ahpatron [OPTIONS] COMMAND [ARGS]...",
            "run": "Usage: ahpatron run [OPTIONS] DATA...",
            "sweep": "Usage: ahpatron sweep [OPTIONS] [DATA...]",
            "inspect": "Usage: ahpatron inspect [OPTIONS] PATH",
        }[command]
    )
    assert not re.search(r"<\w|None|\[bold|\[/|\x1b|\.\.\.$", "\n".join(lines[1:])), done.out
    assert "-h, --help" in done.out
    if command:
        params = vars(__import__("ahpatron_cli.cli.app", fromlist=["app"]))[command].__annotations__
        assert len(params) > 10
        for name in set(params) - {"context", "return", "data", "path"}:
            assert f"--{name.replace('_', '-')}" in done.out
    bare = ahpatron(*words)
    assert (bare.code, bare.out) == (2, "")
    assert len(bare.err.splitlines()) <= 12
    assert max(map(len, bare.err.splitlines())) <= 80


def test_the_examples_of_the_help_work(ahpatron: Ahpatron, rings: Path) -> None:
    text = "".join(rings.read_text().splitlines(keepends=True)[:60])
    for name in ("data.svm", "data.svm.gz", "more.svm", "a.svm"):
        ahpatron.write(name, text)
    ahpatron.write("b.svm", text + "1 1:0\n")
    ahpatron.write("sweep.toml", 'data = ["a.svm"]\n')
    for command in ("run", "sweep"):
        _, examples = ahpatron(command, "--help").out.split("Examples:\n")
        for line in examples.strip().splitlines():
            piped, _, line = line.rpartition("| ")
            words = shlex.split(line)
            assert words.pop(0) == "ahpatron"
            if "bank.csv" in words:
                ahpatron.write("bank.csv", "id,x,y\n" + "a1,0.5,1\nb2,0.25,0\n" * 30)
            if piped:
                words[words.index("-")] = "data.svm"
            for option in {"-j", "--jobs"}.intersection(words):  # one will do here
                words[words.index(option) + 1] = "1"
            done = ahpatron(*words, "-q")
            assert done.code == 0, (line, done.err)
    assert {"model.npz", "r.jsonl", "r.html"} <= ahpatron.files()


def test_version(ahpatron: Ahpatron) -> None:
    from ahpatron_cli import __version__

    assert ahpatron("--version").out == f"ahpatron {__version__}\n"
