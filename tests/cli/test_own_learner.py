"""`-l path/to/file.py:ClassName`: a learner of the user's own, its models and its faults."""

import hashlib
import json
from pathlib import Path
from statistics import fmean

import pytest

from ahpatron_cli import read_results
from ahpatron_cli.core import ALGORITHM
from support.command import DEADLY, REPOSITORY, Ahpatron

OWN = (REPOSITORY / "docs" / "examples" / "own_learner.py").read_text()
LEARNER = "mine/own.py:SmallestGoes"


@pytest.fixture
def own(ahpatron: Ahpatron) -> Ahpatron:
    (ahpatron.folder / "mine").mkdir()
    ahpatron.write("mine/own.py", OWN)
    return ahpatron


def test_a_learner_in_a_file_is_run_beside_a_built_in_one(own: Ahpatron, rings: Path) -> None:
    words = ("run", rings, "-l", LEARNER, "-l", "rbp", "-B", 20)
    mine, rbp = own.json(*words, "-p", "smallest-goes.aggressiveness=0.1")["runs"]
    assert (mine["learner"], mine["support_size"]) == ("smallest-goes", 20)
    assert mine["params"]["budget"] == rbp["params"]["budget"] == 20
    assert mine["params"]["aggressiveness"] == 0.1


SWEPT = ("-l", LEARNER, "-l", "rbp", "-g", "budget=10,20", "--repeats", 2, "--limit", 200)


def test_a_sweep_in_two_processes_has_the_results_of_one(own: Ahpatron, rings: Path) -> None:
    done = own.process("sweep", rings, *SWEPT, "-j", 2, "--out", "two.jsonl")
    assert (done.code, done.err) == (0, "")
    own.succeed("sweep", rings, *SWEPT, "--out", "one.jsonl")
    assert own.essence("one.jsonl") == own.essence("two.jsonl")


def test_a_configuration_continues_a_sweep_of_an_own_learner(own: Ahpatron, rings: Path) -> None:
    own.succeed("sweep", rings, *SWEPT, "--out", "one.jsonl")
    config = f"""
        data = ["{rings}"]
        learners = ["own.py:SmallestGoes", "rbp"]
        limit = 200
        repeats = 2
        [grid]
        budget = [10, 20]
        [learner.smallest-goes]
        aggressiveness = [0.1, 1, 10]
        """
    own.write("mine/sweep.toml", config)
    done = own("sweep", "--config", "mine/sweep.toml", "--out", "one.jsonl", "--dry-run")
    assert done.out.startswith("16 trials: 8 done, 8 left\n")


REPORTING = OWN.replace(
    'reports = ("dropped",)', 'reports = ("dropped", "word", "unknown", "endless")'
).replace(
    "    dropped = 0\n",
    """    dropped = 0
    word = "up"
    unknown = float("nan")
    endless = float("inf")
""",
)


def test_what_a_learner_reports_is_in_json_results_and_tables(own: Ahpatron, rings: Path) -> None:
    """Values that JSON does not have are null or words, and columns have means of numbers."""
    own.write("mine/own.py", REPORTING)
    words = (rings, "-l", LEARNER, "-l", "rbp", "-B", 20, "--limit", 300, "--repeats", 2)
    mine, again, rbp, _ = own.json("run", *words)["runs"]
    dropped = mine["statistics"]["dropped"]
    assert dropped > 0
    assert mine["statistics"] == {
        "dropped": dropped,
        "word": "up",
        "unknown": None,
        "endless": "inf",
    }
    assert "statistics" not in rbp
    own.succeed("sweep", *words, "--out", "r.jsonl")
    stored = [trial["run"] for trial in own.trials()]
    statistics = [run.get("statistics") for run in stored if run["learner"] == "smallest-goes"]
    assert statistics == [mine["statistics"], again["statistics"]]
    (row, *_) = [one for one in read_results(own.folder / "r.jsonl") if one["learner"] != "rbp"]
    assert row["statistic_dropped"] == dropped
    mean = fmean([dropped, again["statistics"]["dropped"]])
    for command in (("run", *words), ("report", "r.jsonl")):
        lines = own.succeed(*command).out.splitlines()
        (head,) = [line for line in lines if line.startswith("Learner")]
        (line,) = [line for line in lines if line.startswith("smallest-goes")]
        place = head.split()[::-1].index("dropped")  # from the right
        assert float(line.split()[::-1][place]) == pytest.approx(mean, rel=1e-3)


CHANGED = OWN.replace("self.aggressiveness", "0.1 * self.aggressiveness")


def test_a_learner_without_a_name_is_told_what_to_add(own: Ahpatron, rings: Path) -> None:
    own.write("mine/own.py", OWN.replace('name = "smallest-goes"', ""))
    assert 'name = "mine"' in own.refusal(2, "run", rings, "-l", LEARNER)


def test_a_learner_that_was_changed_between_two_sweeps_is_two_learners(
    own: Ahpatron, rings: Path
) -> None:
    """Name and parameters are the same, and the second sweep has fewer permutations."""
    words = (rings, "-l", LEARNER, "-l", "rbp", "-B", 20, "--limit", 300)
    own.succeed("sweep", *words, "--repeats", 4, "--out", "r.jsonl")
    assert OWN != CHANGED
    own.write("mine/own.py", CHANGED)
    again = own.succeed("sweep", *words, "--repeats", 3, "--out", "r.jsonl", "--format", "json")
    assert "4 trials of another version of smallest-goes" in again.err
    done = own.succeed("report", "r.jsonl", "--format", "json")
    assert "smallest-goes was run in several versions" in done.err
    reported = json.loads(done.out)["datasets"][0]["settings"]
    digests = [hashlib.sha256(text.encode()).hexdigest() for text in (OWN, CHANGED)]
    mine = {one["source"]: one for one in reported if one["learner"] == "smallest-goes"}
    assert set(mine) == {f"sha256:{digest}" for digest in digests}
    runs = [trial["run"] for trial in own.trials() if trial["source"] == f"sha256:{digests[1]}"]
    swept = json.loads(again.out)["datasets"][0]["settings"]
    (now,) = [one for one in swept if one["learner"] == "smallest-goes"]
    mean = fmean(run["mistake_rate"] for run in runs)
    assert mine[now["source"]]["mistake_rate_mean"] == now["mistake_rate_mean"]
    assert now["mistake_rate_mean"] == pytest.approx(mean)
    table = own.succeed("report", "r.jsonl").out
    assert all(f"smallest-goes (source {digest[:6]})" in table for digest in digests)
    assert "smallest-goes: results of 2 versions are shown apart." in table


def test_each_trial_has_its_source_algorithm_and_header(own: Ahpatron, rings: Path) -> None:
    words = (rings, "-l", LEARNER, "-l", "rbp", "-B", 20, "--limit", 100)
    own.succeed("sweep", *words, "--out", "r.jsonl")
    own.succeed("sweep", *words, "--repeats", 2, "--out", "r.jsonl")
    digest = hashlib.sha256(OWN.encode()).hexdigest()
    found = {(trial["source"], trial["algorithm"], trial["header"]) for trial in own.trials()}
    sources = (f"sha256:{digest}", None)
    assert found == {(source, ALGORITHM, header) for source in sources for header in (1, 2)}
    headers = [line for line in map(json.loads, own.read("r.jsonl").splitlines()) if "kind" in line]
    assert [header["number"] for header in headers] == [1, 2]


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
    own.succeed("sweep", rings, "-l", LEARNER, "-B", 20, "--limit", 100, "--out", "r.jsonl")
    (trial,) = own.trials()
    assert trial["run"]["halvings"] == 3
    own.succeed("report", "r.jsonl")


def test_another_content_of_the_file_is_another_trial(own: Ahpatron, rings: Path) -> None:
    sweep = ("sweep", rings, "-B", 10, "--limit", 100, "--out", "r.jsonl", "-l")
    own.succeed(*sweep, LEARNER)
    own.write("moved.py", OWN)
    assert "1 of 1 trials" in own(*sweep, "moved.py:SmallestGoes").err  # its place does not matter
    own.write("mine/own.py", OWN.replace("1.0 - margin", "0.5 - margin"))
    own.succeed(*sweep, LEARNER)
    first, second = own.trials()
    assert first["id"] != second["id"]
    assert first["run"] != second["run"]


FAULTS = {
    "        1 / (f.size - 7)": OWN.replace(
        "        if f.size", "        1 / (f.size - 7)\n        if f.size"
    ),
    "raise KeyError('at the end')": OWN + "\nraise KeyError('at the end')\n",
    "def (:": OWN + "\ndef (:\n",
    "raise SystemExit(0)": OWN + "\nraise SystemExit(0)\n",
    "        raise SystemExit(f.size)": OWN.replace(
        "        if f.size", "        raise SystemExit(f.size)\n        if f.size"
    ),
}


@pytest.mark.parametrize("line", FAULTS, ids=["update", "import", "syntax", "exit", "late exit"])
def test_a_learner_that_raises_is_no_bug_of_ours(own: Ahpatron, rings: Path, line: str) -> None:
    path = own.write("mine/own.py", FAULTS[line])
    place = f"{path}:{1 + FAULTS[line].splitlines().index(line)}"
    done = own("run", rings, "-l", LEARNER)
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[1] == f"  --> {place}"
    assert f'  File "{path}"' in done.err
    assert "ahpatron_cli" not in done.err  # the traceback begins in the user's file
    if "size" in line:
        assert own("sweep", rings, "-l", LEARNER, "-l", "rbp", "--out", "r.jsonl").code == 3
        (failed,) = [one for one in own.trials() if one["status"] == "failed"]
        assert failed["error"].startswith(f"{place}: ")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("mine/own.py:SmalestGo", "own.py has no class 'SmalestGo'; the learners in it are: "),
        ("mine/own.py:Other", "own.py has no class 'Other'; the learners in it are: "),
        ("mine/own.py", "own.py needs the name of a class; the learners in it are: "),
    ],
    ids=["misspelt", "wrong", "none"],
)
@pytest.mark.parametrize("command", ["run", "sweep"])
def test_a_class_that_is_not_in_the_file_is_refused_with_one_that_is(
    own: Ahpatron, rings: Path, command: str, given: str, said: str
) -> None:
    more = ("--out", "r.jsonl") if command == "sweep" else ()
    done = own(command, rings, "-l", given, *more)
    assert (done.code, done.out) == (2, "")
    assert f"{said}SmallestGoes\n" in done.err
    assert "ahpatron_learner" not in done.err
    (hint,) = [line for line in done.err.splitlines() if line.startswith("hint:")]
    assert hint == f"hint: try -l {LEARNER}"
    assert own(command, rings, *hint.split()[2:], *more).code == 0


def test_a_file_of_learners_that_does_not_exist_is_named(own: Ahpatron, rings: Path) -> None:
    done = own("run", rings, "-l", "mine/none.py:X")
    assert (done.code, "mine/none.py: no such file" in done.err) == (2, True)


def test_a_learner_that_drops_what_is_not_in_s_is_refused_at_its_line(
    own: Ahpatron, rings: Path
) -> None:
    path = own.write("mine/own.py", OWN.replace("f.drop(f.smallest)", "f.drop(10**6)"))
    done = own("run", rings, "-l", LEARNER, "-B", 20)
    number = 1 + path.read_text().splitlines().index("            f.drop(10**6)")
    said = "error: the learner raised ColumnError: drop(1000000): column 1000000 is not in S"
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(said)
    assert done.err.splitlines()[1] == f"  --> {path}:{number}"


@pytest.mark.parametrize("once", [False, True])
@pytest.mark.parametrize(
    ("kill", "reason"),
    [("os._exit(7)", "exit code 7"), ("os.kill(os.getpid(), 9)", "killed by SIGKILL")],
)
def test_a_process_that_dies_is_tried_again_and_reported(
    ahpatron: Ahpatron, rings: Path, kill: str, reason: str, once: bool
) -> None:
    mark = "Path('died').touch()\n            " if once else ""
    ahpatron.write("d.py", DEADLY.replace("KILL", mark + kill))
    options = ("-l", "d.py:Deadly", "--limit", 50, "-j", 2, "--format", "json")
    done = ahpatron.process("run", rings, "-B", 20, "--repeats", 2, *options)
    swept = ahpatron.sweep(rings, "-g", "budget=10,20,30", "--retries", 1, *options)
    assert "Traceback" not in done.err + swept.err
    assert (done.code, swept.code) == ((0, 0) if once else (3, 3)), swept.err
    failed = [one for one in ahpatron.trials() if one["status"] == "failed"]
    if once:
        assert [run["repeat"] for run in json.loads(done.out)["runs"]] == [0, 1]
        assert failed == []
    else:
        assert done.out == ""
        assert reason in done.err
        ((params, error),) = [(one["run"]["params"], one["error"]) for one in failed]
        assert params["budget"] == 20
        assert reason in error
    assert len(ahpatron.trials()) == 3


# Saved models -------------------------------------------------------------------------------------

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


@pytest.mark.parametrize("content", [OWN, STATEFUL], ids=["plain", "a hypothesis of its own"])
def test_a_saved_learner_continues(own: Ahpatron, rings: Path, content: str) -> None:
    own.write("mine/own.py", content)
    lines = rings.read_text().splitlines(keepends=True)
    own.write("a.svm", "".join(lines[:1088]))
    own.write("b.svm", "".join(lines[1088:]))
    learner = ("-l", LEARNER, "-B", 20)
    whole = own.succeed("run", rings, *learner, "--json")
    own.succeed("run", "a.svm", *learner, "--save", "m.npz")
    done = own.succeed("run", "b.svm", "--resume", "m.npz", *learner[:2], "--json")
    assert whole.err in done.err  # so many joined
    run, wanted = (json.loads(one.out)["runs"][0] for one in (done, whole))
    for name in ("learner", "rounds", "mistakes", "updates", "support_size", "norm"):
        assert run[name] == wanted[name]
    shown = own.json("inspect", "m.npz", "-l", LEARNER)
    assert (shown["learner"], shown["rounds"]) == ("smallest-goes", 1088)
    own.write("moved.py", content)
    predicted = own.succeed("predict", "m.npz", "b.svm", "-l", "moved.py:SmallestGoes").out
    assert len(predicted.splitlines()) == 1 + 2000 - 1088
    checkpoint = (rings, *learner, "--checkpoint", "c.npz")
    assert own.run(*checkpoint) == own.run(*checkpoint)
    own.write("mine/own.py", content + "# another\n")
    own.refusal(2, "run", *checkpoint)


def test_a_parameter_without_a_default_is_saved_with_a_model(own: Ahpatron, rings: Path) -> None:
    required = OWN.replace("default=1.0, over=0)", "over=0)")
    assert required != OWN
    own.write("mine/own.py", required)
    learner = ("-l", LEARNER)
    own.succeed("run", rings, *learner, "-p", "aggressiveness=0.5", "--save", "m.npz")
    assert len(own.succeed("predict", "m.npz", rings, *learner).out.splitlines()) == 2001
    assert own.json("inspect", "m.npz", *learner)["params"]["aggressiveness"] == 0.5
    own.succeed("run", rings, "--resume", "m.npz", *learner)


@pytest.mark.parametrize("name", ["round", "rng", "weight"])
def test_a_parameter_that_the_engine_would_overwrite_is_refused(
    own: Ahpatron, rings: Path, name: str
) -> None:
    own.write("mine/own.py", OWN.replace("aggressiveness: float", f"{name}: float"))
    said = own.refusal(1, "run", rings, "-l", LEARNER)
    assert f"must not have a parameter or attribute `{name}`" in said


@pytest.mark.parametrize("name", ["state_fields", "reports", "references", "grid"])
def test_a_text_where_a_tuple_belongs_is_refused(own: Ahpatron, rings: Path, name: str) -> None:
    """`references = ("key")`, without a comma, would be a tuple of letters."""
    own.write("mine/own.py", OWN + f'    {name} = ("dropped")\n')
    said = own.refusal(1, "run", rings, "-l", LEARNER)
    assert f"{name} must be a tuple: ('dropped',)" in said


def test_an_unknown_parameter_of_an_own_learner_is_answered_with_those_it_has(
    own: Ahpatron, rings: Path
) -> None:
    said = own.refusal(2, "run", rings, "-l", LEARNER, "-p", "C=1")
    assert "budget, aggressiveness" in said


OTHER = OWN.replace("SmallestGoes", "Other").replace('"smallest-goes"', '"other"')


@pytest.mark.parametrize("use", ["run DATA --resume m.npz", "predict m.npz DATA", "inspect m.npz"])
def test_models_of_other_learners_are_refused(own: Ahpatron, rings: Path, use: str) -> None:
    """Without -l, with another class, and if the file has changed; nothing is imported from it."""
    own.succeed("run", rings, "-l", LEARNER, "--limit", 100, "--save", "m.npz")
    words = use.replace("DATA", str(rings)).split()
    own.write("other.py", OTHER)
    own.write("twin.py", OWN + OTHER)
    for learner in ("other.py:Other", "twin.py:SmallestGoes", "mine/own.py:X", "none.py:X"):
        assert "hint: " in own.refusal(2, *words, "-l", learner), learner
    own.write("mine/own.py", OWN + "from pathlib import Path\nPath('imported').touch()\n")
    assert "hint: " in own.refusal(2, *words)
    assert not (own.folder / "imported").exists()
    assert "hint: " in own.refusal(2, *words, "-l", LEARNER)


@pytest.mark.parametrize("value", ["[]", "{'a': 1}", "object()", "(1, 2)", "b'x'"])
def test_what_cannot_be_saved_is_refused_before_the_first_round(
    own: Ahpatron, rings: Path, value: str
) -> None:
    own.write("mine/own.py", OWN.replace("    dropped = 0\n", f"    dropped = {value}\n"))
    err = own.refusal(2, "run", rings, "-l", LEARNER, "-B", 20, "--save", "m.npz")
    assert "SmallestGoes.dropped" in err
    assert "docs/own-learners.md" in err
    assert "m.npz" not in own.files()


@pytest.mark.parametrize("value", ["True", "0.5", "'text'", "None", "__import__('numpy').ones(3)"])
def test_an_attribute_of_this_type_can_be_saved(own: Ahpatron, rings: Path, value: str) -> None:
    content = OWN.replace("    dropped = 0\n", f"    dropped = {value}\n")
    content = content.replace('reports = ("dropped",)', "reports = ()")
    own.write("mine/own.py", content.replace("self.dropped += 1", "pass"))
    own.succeed("run", rings, "-l", LEARNER, "--limit", 100, "--save", "m.npz")
    own.succeed("run", rings, "-l", LEARNER, "--resume", "m.npz")


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


@pytest.mark.parametrize("kind", OUTDATED)
def test_a_learner_for_an_earlier_version_is_refused(own: Ahpatron, rings: Path, kind: str) -> None:
    assert OUTDATED[kind] != OWN
    own.write("mine/own.py", OUTDATED[kind])
    for words in (("run", rings), ("sweep", rings, "--out", "r.jsonl")):
        assert "docs/own-learners.md" in own.refusal(2, *words, "-l", LEARNER)
