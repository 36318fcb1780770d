"""`-l path/to/file.py:ClassName`: a learner of the user's own in run and sweep, and its faults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.command import REPOSITORY, Ahpatron
from support.sweep_command import essence
from support.sweep_command import lines as lines_of

OWN = (REPOSITORY / "docs" / "examples" / "own_learner.py").read_text()
LEARNER = "mine/own.py:SmallestGoes"


@pytest.fixture
def own(ahpatron: Ahpatron) -> Ahpatron:
    (ahpatron.folder / "mine").mkdir()
    ahpatron.write("mine/own.py", OWN)
    return ahpatron


def test_run(own: Ahpatron, rings: Path) -> None:
    done = own("run", rings, "-l", LEARNER, "-l", "rbp", "-B", 20, "--format", "json")
    assert (done.code, done.err) == (0, "")
    mine, rbp = json.loads(done.out)["runs"]
    assert mine["learner"] == "smallest-goes"
    assert mine["params"]["budget"] == rbp["params"]["budget"] == 20
    assert mine["support_size"] == 20
    one = own(
        *("run", rings, "-l", LEARNER, "-p", "smallest-goes.aggressiveness=0.1"),
        *("--limit", 100, "--format", "json"),
    )
    assert json.loads(one.out)["runs"][0]["params"]["aggressiveness"] == 0.1


@pytest.mark.slow
def test_processes(own: Ahpatron, rings: Path) -> None:
    table = ("--repeats", 2, "-B", 20, "--format", "json")
    runs = [
        json.loads(own.process("run", rings, "-l", LEARNER, *table, "-j", jobs).out)["runs"]
        for jobs in (1, 2)
    ]
    for run in (*runs[0], *runs[1]):
        del run["seconds"]
    assert runs[0] == runs[1]


def test_a_sweep_with_two_processes(own: Ahpatron, rings: Path) -> None:
    grid = ("-l", LEARNER, "-l", "rbp", "-g", "budget=10,20", "--repeats", 2)
    done = own.process("sweep", rings, *grid, "-j", 2, "--out", "two.jsonl")
    assert (done.code, done.err) == (0, "")
    assert "smallest-goes" in done.out
    one = own("sweep", rings, *grid, "--out", "one.jsonl")
    assert one.code == 0
    assert essence(own.folder / "one.jsonl") == essence(own.folder / "two.jsonl")
    assert len(lines_of(own.folder / "one.jsonl")) == 8


@pytest.mark.parametrize("number", ["numpy.int64(3)", "3.0"])
def test_counts_of_any_kind_of_number_can_be_read_back(
    own: Ahpatron, rings: Path, number: str
) -> None:
    """`statistics` of one's own may count with NumPy: a sweep still writes what it can read."""
    statistics = f"""
    def statistics(self):
        import numpy
        return {{"halvings": {number}}}
"""
    own.write("mine/own.py", OWN + statistics)
    sweep = own("sweep", rings, "-l", LEARNER, "-B", 20, "--limit", 100, "--out", "r.jsonl")
    assert (sweep.code, sweep.err) == (0, "")
    (run,) = (line["run"] for line in lines_of(own.folder / "r.jsonl"))
    assert isinstance(run, dict)
    assert run["halvings"] == 3
    assert own("inspect", "r.jsonl").code == 0


def test_another_content_of_the_file_is_another_trial(own: Ahpatron, rings: Path) -> None:
    sweep = ("sweep", rings, "-B", 10, "--limit", 100, "--out", "r.jsonl", "-l")
    assert own(*sweep, LEARNER).code == 0
    (own.folder / "moved").mkdir()
    own.write("moved/renamed.py", OWN)
    again = own(*sweep, "moved/renamed.py:SmallestGoes")
    assert (
        again.err == "note: 1 of 1 trials are in r.jsonl already\n"
    )  # where it is does not matter
    own.write("mine/own.py", OWN.replace("1.0 - margin", "0.5 - margin"))
    changed = own(*sweep, LEARNER)
    assert (changed.code, changed.err) == (0, "")
    first, second = lines_of(own.folder / "r.jsonl")
    assert first["id"] != second["id"]
    assert first["run"] != second["run"]


def test_a_configuration(own: Ahpatron, rings: Path) -> None:
    own.write(
        "mine/sweep.toml",
        f"""
        data = ["{rings}"]
        learners = ["own.py:SmallestGoes", "rbp"]
        limit = 100
        [grid]
        budget = [10, 20]
        [learner.smallest-goes]
        aggressiveness = [0.1, 1, 10]
        """,
    )
    done = own("sweep", "--config", "mine/sweep.toml", "--out", "r.jsonl", "--dry-run")
    assert done.out == "8 trials: 8 settings on 1 file, 1 order; 0 done, 8 left\n", done.err


FAULTS = {
    "update": OWN.replace("        if f.size", "        1 / (f.size - 7)\n        if f.size"),
    "import": OWN + "\nraise KeyError('at the end')\n",
    "syntax": OWN + "\ndef (:\n",
}
RAISED = {
    "update": "ZeroDivisionError: ",
    "import": "KeyError: 'at the end'",
    "syntax": "SyntaxError: ",
}


@pytest.mark.parametrize("kind", list(FAULTS))
def test_a_learner_that_raises_is_no_bug_of_ours(own: Ahpatron, rings: Path, kind: str) -> None:
    path = own.write("mine/own.py", FAULTS[kind])
    number = 1 + next(
        place
        for place, line in enumerate(FAULTS[kind].splitlines())
        if line.lstrip().startswith(("1 / (", "raise Key", "def (:"))
    )
    done = own("run", rings, "-l", LEARNER)
    assert (done.code, done.out) == (1, "")
    lines = done.err.splitlines()
    assert lines[0].startswith(f"error: the learner raised {RAISED[kind]}")
    assert lines[1] == f"  --> {path}:{number}"
    assert lines[3].startswith(f'  File "{path}", line {number}')  # the traceback begins there
    assert "bug in ahpatron" not in done.err
    assert "ahpatron_cli" not in done.err
    if kind == "update":
        swept = own("sweep", rings, "-l", LEARNER, "-l", "rbp", "--out", "r.jsonl")
        assert swept.code == 3
        assert f"1 of 2 trials failed; the first, smallest-goes on {rings}: " in swept.err
        trials = lines_of(own.folder / "r.jsonl")
        errors = [trial["error"] for trial in trials if trial["status"] == "failed"]
        assert errors == [f"{path}:{number}: {lines[0].removeprefix('error: ')}"]


@pytest.mark.slow
def test_a_learner_that_raises_in_another_process(own: Ahpatron, rings: Path) -> None:
    path = own.write("mine/own.py", FAULTS["update"])
    done = own.process("run", rings, "-l", LEARNER, "--repeats", 2, "-j", 2)
    assert (done.code, done.out) == (1, "")
    assert f"  --> {path}:" in done.err
    assert "bug in ahpatron" not in done.err


@pytest.mark.parametrize(
    ("learners", "said"),
    [
        (["none.py:X"], "none.py:X cannot be loaded"),
        (["mine/own.py:Nobody"], "has no attribute 'Nobody'"),
        (["mine/own.py:Margin"], "Learner"),
        (["mine/own.py"], "unknown learner 'mine/own.py'"),
        ([LEARNER, "copy.py:SmallestGoes"], "there is another learner 'smallest-goes'"),
        (["avp.py:SmallestGoes"], "there is another learner 'avp'"),
        (["odd.py:SmallestGoes"], "must consist of letters, digits, +, - and _, got 'a\\x1b[31mb'"),
        ([LEARNER, "-p", "smallest-goes.ridge=1"], "smallest-goes has no parameter 'ridge'"),
        ([LEARNER, "-p", "budget=10,20"], "smallest-goes is given 2 settings"),
        ([LEARNER, "--save", "m.npz"], "require a learner that is installed"),
    ],
)
def test_refusals(own: Ahpatron, rings: Path, learners: list[str], said: str) -> None:
    for name, replacement in (("avp", "avp"), ("odd", r"a\x1b[31mb")):
        own.write(f"{name}.py", OWN.replace('"smallest-goes"', f'"{replacement}"'))
    own.write("copy.py", OWN + "# another\n")
    names, options = [one for one in learners if ".py" in one], learners[1:]
    words = [word for name in names for word in ("-l", name)]
    done = own("run", rings, *words, *(word for word in options if word not in names))
    assert (done.code, done.out) == (2, "")
    assert said in done.err
