"""The command as a process: terminals, pipes, full disks, signals, imports, help, completion."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ahpatron_cli import __version__
from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.output.formats import FORMATS
from support.command import COMMAND, Ahpatron, modules_after
from support.terminal import in_terminal, lines_of

SMALL = ("-B", 20, "--limit", 200)


@pytest.mark.parametrize("columns", [40, 100])
def test_a_terminal_gets_a_table_of_its_width_with_the_best_in_bold(
    ahpatron: Ahpatron, rings: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahpatron.write("r.svm", rings.read_bytes())
    monkeypatch.chdir(ahpatron.folder)
    learners = [word for name in ("ahpatron", "avp", "arow") for word in ("-l", name)]
    text, code = in_terminal("run", "r.svm", *learners, *SMALL, columns=columns)
    assert code == 0
    assert "\x1b[1m" in text
    body = [line for line in lines_of(text) if not line.startswith("r.svm")]
    assert max(map(len, body)) <= columns, text
    assert len([line for line in body if line.startswith(("Learner", "a"))]) == 4


def test_progress_shows_the_running_mistake_rate(ahpatron: Ahpatron) -> None:
    path = ahpatron.write("long.svm", "-1 1:1 2:3\n1 1:2 2:2\n-1 1:3 2:1\n" * 20_000)
    text, code = in_terminal("run", path, "-B", 20, columns=120)
    assert code == 0
    assert "% mistakes" in text
    quiet, _ = in_terminal("run", path, "-B", 20, "--limit", 1000, "-q", columns=120)
    assert "% mistakes" not in quiet


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_no_colour_where_none_is_wanted(rings: Path, environment: dict[str, str]) -> None:
    text, code = in_terminal("run", rings, *SMALL, **environment)
    assert code == 0
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", text)


def test_a_pipe_gets_all_columns_without_colour(ahpatron: Ahpatron, rings: Path) -> None:
    words = ("run", rings, "-l", "ahpatron", "-l", "arow", *SMALL, "--repeats", 2)
    done = ahpatron(*words, COLUMNS="30")
    assert "\x1b" not in done.out + done.err
    (head,) = [line for line in done.out.splitlines() if line.startswith("Learner")]
    names = head.replace("AMR %", "AMR").split()
    assert names[:7] == ["Learner", "AMR", "|M_T|", "|N_T|", "Support", "Halvings", "ζ̂"]
    assert names[-1] == "Seconds"
    assert ahpatron.succeed(*words, PYTHONIOENCODING="ascii").out.isascii()


STDOUT_USERS = [
    "run {rings} -B 4",
    "run --help",
    *(
        pytest.param(words, marks=pytest.mark.slow)
        for words in ("run {rings} -B 4 --json", "inspect {rings}", "inspect --learners")
    ),
]


def in_shell(command: str, redirection: str) -> subprocess.CompletedProcess[bytes]:
    line = f"{' '.join(COMMAND)} {command} {redirection}"
    return subprocess.run(["bash", "-c", line], capture_output=True, timeout=120, check=False)


@pytest.mark.parametrize("command", STDOUT_USERS)
def test_stdout_that_is_full_or_that_nobody_reads(
    ahpatron: Ahpatron, rings: Path, command: str
) -> None:
    command = command.format(rings=rings)
    full = in_shell(command, "> /dev/full")
    assert full.returncode == 74
    assert full.stderr == b"error: standard output cannot be written: No space left on device\n"
    unread = in_shell(command, "| true; echo ${PIPESTATUS[0]}")
    assert (unread.stdout, unread.stderr) == (b"0\n", b"")
    done = ahpatron(*command.split(), PYTHONIOENCODING="ascii")
    assert (done.code, done.err) == (0, "")


def test_closed_streams(rings: Path) -> None:
    """Without stdout a run is in vain; without stderr it is not."""
    assert in_shell(f"run {rings} -B 4", ">&-").returncode == 74
    done = in_shell(f"run {rings} -B 4 --format csv", "2>&-")
    assert done.returncode == 0
    assert done.stdout.startswith(b"data,")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "way", [["--shuffle"], pytest.param(["--repeats", "50", "--jobs", "2"], marks=pytest.mark.slow)]
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
        while len(ahpatron.files()) < 2 and child.poll() is None:
            time.sleep(0.02)  # until it has begun to write
        child.send_signal(number)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (code, b"")
    assert b"Traceback" not in err
    assert ahpatron.files() == {"long.svm"}


def worker_answers(parent: int) -> bool:
    """Whether a process of `-j` has come so far that Python's handler of SIGINT stands."""
    for child in Path(f"/proc/{parent}/task/{parent}/children").read_text().split():
        with suppress(FileNotFoundError):
            status = Path(f"/proc/{child}/status").read_text()
            caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
            is_worker = b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
            if is_worker and int(caught.split()[1], 16) & 1 << (signal.SIGINT - 1):
                return True
    return False


def test_no_process_prints_a_traceback_on_ctrl_c(ahpatron: Ahpatron, rings: Path) -> None:
    """A terminal sends SIGINT to all of them, here while those of `-j 2` import NumPy."""
    command = [*COMMAND, "run", str(rings), "--repeats", "40", "-l", "avp", "-j", "2"]
    with subprocess.Popen(
        command,
        cwd=ahpatron.folder,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        while not worker_answers(process.pid) and process.poll() is None:
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err


def test_imports(rings: Path) -> None:
    """Help without NumPy, a run without SciPy; Typer's own checks would import pydantic."""
    later = {"scipy", "sklearn", "matplotlib", "joblib", "dask", "pydantic"}
    for words in ("--help", "run --help", "inspect --help", "--version"):
        assert not modules_after(*words.split()) & {"numpy", *later}
    options = (*SMALL, "--repeats", 2, "--no-shuffle", "-l", "rbp", "-p", "budget=30", "--json")
    modules = modules_after("run", rings, *options[2:])
    assert "numpy" in modules
    assert not modules & later
    assert "pydantic" not in modules_after("inspect", rings, "--seed", 3)


@pytest.mark.parametrize("words", ["", "run", "sweep", "inspect"])
def test_too_few_words_show_how_to_go_on(ahpatron: Ahpatron, words: str) -> None:
    err = ahpatron.refusal(2, *words.split())
    assert "Usage" in err
    assert len(err.splitlines()) <= 12


def test_version(ahpatron: Ahpatron) -> None:
    assert ahpatron("--version").out == f"ahpatron {__version__}\n"


def test_the_examples_of_the_help_work(ahpatron: Ahpatron, rings: Path) -> None:
    text = "".join(rings.read_text().splitlines(keepends=True)[:60])
    for name in ("data.svm", "data.svm.gz", "more.svm", "a.svm"):
        ahpatron.write(name, text)
    ahpatron.write("b.svm", text + "1 1:0\n")
    ahpatron.write("sweep.toml", 'data = ["a.svm"]\n')
    ahpatron.write("bank.csv", "id,x,y\n" + "a1,0.5,1\nb2,0.25,0\n" * 30)
    for command in ("run", "sweep"):
        _, examples = ahpatron(command, "--help").out.split("Examples:\n")
        for line in examples.strip().splitlines():
            piped, _, line = line.rpartition("| ")
            words = shlex.split(line)
            assert words.pop(0) == "ahpatron"
            if piped:
                words[words.index("-")] = "data.svm"
            for option in {"-j", "--jobs"}.intersection(words):  # one will do here
                words[words.index(option) + 1] = "1"
            ahpatron.succeed(*words, "-q")
    assert {"model.npz", "r.jsonl", "r.html"} <= ahpatron.files()


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run x -l ", [*REGISTRY, "all"]),
        ("run x --learner project", ["projectron", "projectron++"]),
        ("sweep x --kernel ", list(KERNELS)),
        ("run x --format ", list(FORMATS)),
        ("inspect x --scale m", ["minmax"]),
        ("run x --theorem c", ["corollary-1", "corollary-2"]),
        ("sweep x --search ", ["grid", "halving"]),
        ("sweep x --metric b", ["balanced_error"]),
        ("predict m x --format ", ["csv", "jsonl"]),
        ("convert x --missing ", ["indicator", "zero", "mean", "refuse"]),
    ],
)
def test_completion_in_bash(ahpatron: Ahpatron, words: str, expected: list[str]) -> None:
    count = str(len(words.split(" ")))
    line = {"COMP_WORDS": f"ahpatron {words}", "COMP_CWORD": count}
    done = ahpatron(_AHPATRON_COMPLETE="complete_bash", **line)
    assert (done.code, done.err, done.out.split()) == (0, "", expected)
