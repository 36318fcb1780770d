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
    assert done.out.startswith("8 trials: 0 done, 8 left\n")


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


# Saved models -------------------------------------------------------------------------------------


def parts(own: Ahpatron, rings: Path, at: int) -> None:
    lines = rings.read_bytes().splitlines(keepends=True)
    own.write("a.svm", b"".join(lines[:at]))
    own.write("b.svm", b"".join(lines[at:]))


@pytest.mark.parametrize("at", [1088, 1111])
def test_a_saved_learner_continues(own: Ahpatron, rings: Path, at: int) -> None:
    parts(own, rings, at)
    options = ("-l", LEARNER, "-B", 20)
    whole = own.json("run", rings, *options)["runs"][0]
    own.succeed("run", "a.svm", *options, "--save", "m.npz")
    done = own.json("run", "b.svm", "--resume", "m.npz", "-l", LEARNER, "--save", "m.npz")
    run = done["runs"][0]
    assert run["learner"] == "smallest-goes"
    for name in ("rounds", "mistakes", "updates", "margin_updates", "support_size"):
        assert run[name] == whole[name]
    assert run["norm"] == (whole["norm"] if at % 64 == 0 else pytest.approx(whole["norm"]))
    shown = own.json("inspect", "m.npz", "-l", LEARNER)
    assert (shown["learner"], shown["rounds"]) == ("smallest-goes", 2000)
    predicted = own.succeed("predict", "m.npz", "b.svm", "-l", LEARNER).out
    assert len(predicted.splitlines()) == 1 + 2000 - at


def test_a_saved_learner_may_move_to_another_file(own: Ahpatron, rings: Path) -> None:
    own.succeed("run", rings, "-l", LEARNER, "--limit", 100, "--save", "m.npz")
    own.write("moved.py", OWN)
    own.succeed("run", rings, "--resume", "m.npz", "-l", "moved.py:SmallestGoes")


def test_a_checkpoint_of_a_learner_in_a_file(own: Ahpatron, rings: Path) -> None:
    command = ("run", rings, "-l", LEARNER, "-B", 20, "--checkpoint", "c.npz", "--format", "json")
    first, again = own.succeed(*command), own.succeed(*command)
    assert "continues after 2,000 rounds" in again.err
    runs = [json.loads(done.out)["runs"][0] for done in (first, again)]
    assert runs[0]["mistakes"] == runs[1]["mistakes"]
    own.write("mine/own.py", OWN + "# another\n")
    assert "-->" not in own.refusal(2, *command)


OTHER = OWN.replace("SmallestGoes", "Other").replace('"smallest-goes"', '"other"')
USES = [
    ("run", "DATA", "--resume", "m.npz"),
    ("predict", "m.npz", "DATA"),
    ("inspect", "m.npz"),
]


@pytest.mark.parametrize("use", USES, ids=" ".join)
def test_models_of_other_learners_are_refused(
    own: Ahpatron, rings: Path, use: tuple[str, ...]
) -> None:
    """Without -l, with another class, and if the file has changed; nothing is imported from it."""
    own.succeed("run", rings, "-l", LEARNER, "--limit", 100, "--save", "m.npz")
    words = [str(rings) if word == "DATA" else word for word in use]
    assert "hint: " in own.refusal(2, *words)
    own.write("other.py", OTHER)
    own.write("twin.py", OWN + OTHER)
    for learner in (
        "other.py:Other",
        "twin.py:SmallestGoes",
        "twin.py:Other",
        "mine/own.py:X",
        "none.py:X",
    ):
        assert "hint: " in own.refusal(2, *words, "-l", learner), learner
    own.write("mine/own.py", OWN + "from pathlib import Path\nPath('imported').touch()\n")
    assert "hint: " in own.refusal(2, *words)
    assert not (own.folder / "imported").exists()
    assert "hint: " in own.refusal(2, *words, "-l", LEARNER)


@pytest.mark.parametrize("value", ["[]", "{}", "{'a': 1}", "object()", "(1, 2)", "b'x'"])
def test_what_cannot_be_saved_is_refused_before_the_first_round(
    own: Ahpatron, rings: Path, value: str
) -> None:
    own.write("mine/own.py", OWN.replace("    dropped = 0\n", f"    dropped = {value}\n"))
    err = own.refusal(2, "run", rings, "-l", LEARNER, "-B", 20, "--save", "m.npz")
    assert "SmallestGoes.dropped" in err
    assert "docs/own-learners.md" in err
    assert not (own.folder / "m.npz").exists()


@pytest.mark.parametrize("value", ["True", "0.5", "'text'", "None", "__import__('numpy').ones(3)"])
def test_what_can_be_saved(own: Ahpatron, rings: Path, value: str) -> None:
    content = OWN.replace("    dropped = 0\n", f"    dropped = {value}\n")
    content = content.replace('reports = ("dropped",)', "reports = ()")
    own.write("mine/own.py", content.replace("self.dropped += 1", "pass"))
    own.succeed("run", rings, "-l", LEARNER, "-B", 20, "--save", "m.npz")
    own.succeed("run", rings, "-l", LEARNER, "--resume", "m.npz")


STATEFUL = (
    OWN.replace(
        "class SmallestGoes",
        '''class Counted(Expansion):
    """An expansion with a number of its own."""

    kept = {**Expansion.kept, "joined": int}
    joined = 0

    def add(self, c, radius=None):
        super().add(c, radius)
        self.joined += 1


@dataclass
class SmallestGoes''',
    ).replace("@dataclass\nclass Counted", "class Counted")
    + '''
    def begin(self, kernel, classes=()):
        """The empty f."""
        return Counted(kernel, classes)

    def warnings(self, f):
        """How many examples joined."""
        return [f"{f.joined} joined"]
'''
)


def test_a_hypothesis_of_ones_own_is_saved_too(own: Ahpatron, rings: Path) -> None:
    parts(own, rings, 1088)
    for extra in ("", "# another content of the file, with a class of the same name\n"):
        own.write("mine/own.py", STATEFUL + extra)
        whole = own.succeed("run", rings, "-l", LEARNER, "-B", 20)
        own.succeed("run", "a.svm", "-l", LEARNER, "-B", 20, "--save", "m.npz")
        done = own.succeed("run", "b.svm", "-l", LEARNER, "--resume", "m.npz")
        assert "joined" in whole.err
        assert whole.err in done.err


# Learners of earlier versions ---------------------------------------------------------------------

OUTDATED = {
    "wants": OWN + "\n    def wants(self, f, margin, y):\n        return margin < 1\n",
    "steps": OWN + "\n    steps = True\n",
    "each_round": OWN + "\n    def each_round(self, f):\n        pass\n",
    "update": OWN.replace(
        "update(self, f: Expansion, y: float, margin: float)",
        "update(self, f: Expansion, margin: float, y: float)",
    ),
    "imports": OWN.replace("import HINGE,", "import HINGE, Margin,"),
}


@pytest.mark.parametrize("command", ["run", "sweep"])
@pytest.mark.parametrize("kind", OUTDATED)
def test_a_learner_for_an_earlier_version_is_refused(
    own: Ahpatron, rings: Path, kind: str, command: str
) -> None:
    assert OUTDATED[kind] != OWN
    own.write("mine/own.py", OUTDATED[kind])
    out = ("--out", "r.jsonl") if command == "sweep" else ()
    done = own(command, rings, "-l", LEARNER, *out)
    assert (done.code, done.out) == (2, "")
    assert "docs/own-learners.md" in done.err


DEADLY = """
import os
from dataclasses import dataclass
from pathlib import Path
from ahpatron_cli.core.learners.perceptrons import Perceptron

@dataclass
class Deadly(Perceptron):
    name = "deadly"

    def update(self, f, y, margin):
        MARK
        return super().update(f, y, margin)
"""


@pytest.mark.parametrize("once", [False, True])
def test_a_process_that_dies_is_tried_again_and_reported(
    ahpatron: Ahpatron, rings: Path, once: bool
) -> None:
    """In `run --jobs` as in a sweep."""
    again = 'mark = Path("died"); died = mark.exists(); mark.touch(); died or os._exit(7)'
    ahpatron.write("d.py", DEADLY.replace("MARK", again if once else "os._exit(7)"))
    options = ("-l", "d.py:Deadly", "--repeats", 2, "--limit", 50, "-j", 2)
    done = ahpatron.process("run", rings, *options, "--format", "json")
    assert "Traceback" not in done.err
    if once:
        assert done.code == 0, done.err
        assert [run["repeat"] for run in json.loads(done.out)["runs"]] == [0, 1]
        return
    assert (done.code, done.out) == (3, "")
    assert "exit code 7" in done.err
    swept = ahpatron.process("sweep", rings, *options, "--retries", 0, "--out", "r.jsonl")
    assert swept.code == 3
    assert {one["status"] for one in lines_of(ahpatron.folder / "r.jsonl")} == {"failed"}
