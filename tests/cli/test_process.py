"""The command as a process: terminals, signals, imports, help, completion."""

import os
import re
import shlex
import signal
import time
from contextlib import suppress
from pathlib import Path

import pytest

from ahpatron_cli import __version__
from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.output.formats import FORMATS
from support.command import Ahpatron, answers, modules_after, workers
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
    plain, _ = in_terminal("run", "r.svm", *learners, *SMALL, "--no-color", columns=columns)
    assert not re.search(r"\x1b\[[0-9;]*m", plain)


def test_progress_shows_the_running_mistake_rate(ahpatron: Ahpatron) -> None:
    path = ahpatron.write("long.svm", "-1 1:1 2:3\n1 1:2 2:2\n-1 1:3 2:1\n" * 20_000)
    text, code = in_terminal("run", path, "-B", 20, columns=120)
    assert code == 0
    assert "% mistakes" in text
    quiet, _ = in_terminal("run", path, "-B", 20, "--limit", 1000, "-q", columns=120)
    assert "% mistakes" not in quiet


def test_progress_shows_how_many_passes_of_other_processes_have_ended(ahpatron: Ahpatron) -> None:
    path = ahpatron.write("r.svm", "-1 1:1 2:3\n1 1:2 2:2\n" * 50)
    text, code = in_terminal("run", path, "-B", 20, "--repeats", 4, "--jobs", 2, columns=120)
    assert code == 0
    assert re.search(r"\d of 4 passes", text)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
@pytest.mark.parametrize(
    "way", [["--shuffle"], pytest.param(["--repeats", "50", "--jobs", "2"], marks=pytest.mark.slow)]
)
def test_a_signal_leaves_no_unfinished_file(
    ahpatron: Ahpatron, number: signal.Signals, code: int, way: list[str]
) -> None:
    ahpatron.write("long.svm", "-1 1:1 2:3\n1 1:2 2:2\n-1 1:3 2:1\n1 2:5\n" * 100_000)
    words = ("run", "long.svm", "-B", "1000", "--predictions", "p.csv", *way)
    with ahpatron.start(*words) as child:
        while len(ahpatron.files()) < 2 and child.poll() is None:
            time.sleep(0.02)  # until it has begun to write
        child.send_signal(number)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out) == (code, "")
    assert "Traceback" not in err
    assert ahpatron.files() == {"long.svm"}


def test_no_process_prints_a_traceback_on_ctrl_c(ahpatron: Ahpatron, rings: Path) -> None:
    """A terminal sends SIGINT to all of them, here while those of `-j 2` import NumPy."""
    words = ("run", rings, "--repeats", "400", "-l", "avp", "-j", "2")
    with ahpatron.start(*words, start_new_session=True) as process:
        while process.poll() is None:
            with suppress(FileNotFoundError):
                if any(answers(worker, signal.SIGINT) for worker in workers(process.pid)):
                    break
            time.sleep(0.001)
        os.killpg(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "Traceback" not in err


LATER = {"scipy", "sklearn", "matplotlib", "joblib", "dask", "pydantic"}
"""Modules that take long to import."""


@pytest.mark.parametrize("words", ["--help", "run --help", "inspect --help", "--version"])
def test_help_imports_no_numpy(words: str) -> None:
    assert not modules_after(*words.split()) & {"numpy", *LATER}


def test_a_run_imports_numpy_only(rings: Path) -> None:
    options = ("--limit", 200, "--repeats", 2, "--no-shuffle", "-l", "rbp", "-p", "budget=30")
    modules = modules_after("run", rings, *options, "--json")
    assert "numpy" in modules
    assert not modules & LATER


def test_inspect_does_not_import_pydantic(rings: Path) -> None:
    """Typer's own checks of values would."""
    assert "pydantic" not in modules_after("inspect", rings, "--seed", 3)


@pytest.mark.parametrize("words", ["", "run", "sweep", "inspect"])
def test_too_few_words_show_how_to_go_on(ahpatron: Ahpatron, words: str) -> None:
    err = ahpatron.refusal(2, *words.split())
    assert "Usage" in err
    assert len(err.splitlines()) <= 12
    if not words:
        assert ahpatron("--version").out == ahpatron("-V").out == f"ahpatron {__version__}\n"


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
        ("sweep x --kernel ", list(KERNELS)),
        ("run x --format ", list(FORMATS)),
        ("run x --theorem c", ["corollary-1", "corollary-2"]),
        ("sweep x --best-by b", ["balanced_error", "brier"]),
        ("convert x --missing ", ["indicator", "zero", "mean", "refuse"]),
    ],
)
def test_bash_completes_commands_and_values(
    ahpatron: Ahpatron, words: str, expected: list[str]
) -> None:
    count = str(len(words.split(" ")))
    line = {"COMP_WORDS": f"ahpatron {words}", "COMP_CWORD": count}
    done = ahpatron(_AHPATRON_COMPLETE="complete_bash", **line)
    assert (done.code, done.err, done.out.split()) == (0, "", expected)
