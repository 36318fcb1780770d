"""The default learner, and options that have no effect: refused, or noted."""

import shlex

import pytest

from support.command import REPOSITORY, Ahpatron
from support.labels import EVERY, libsvm, table

OWN = REPOSITORY / "docs" / "examples" / "own_learner.py"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Ahpatron:
    """A folder with a table, LIBSVM text, and a model of each."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("defaults"))
    ahpatron.write("t.csv", table(EVERY["0/1"]))
    ahpatron.write("d.svm", libsvm(EVERY["0/1"]))
    ahpatron.write("comment.svm", "# made by hand\n\n" + libsvm(EVERY["0/1"]))
    ahpatron.write("qid.svm", libsvm(EVERY["0/1"]).replace(" 1:", " qid:3 1:"))
    ahpatron.write("new.svm", "1:0.5 2:1\n2:3\n")
    ahpatron.write("wide.svm", "1 " + " ".join(f"{i}:0.12345678" for i in range(1, 99)) + "\n")
    ahpatron.succeed("run", "t.csv", *TABLE, "--save", "t.npz")
    ahpatron.succeed("run", "d.svm", "--save", "d.npz")
    return ahpatron


TABLE = ("--label", "y", "--id", "name")


def piped(ahpatron: Ahpatron, name: str) -> bytes:
    return (ahpatron.folder / name).read_bytes()


def test_metron_is_the_default_for_tables_and_ahpatron_for_libsvm_text(
    furnished: Ahpatron,
) -> None:
    for path in ("t.csv", "-"):
        found = furnished.run(path, *TABLE, stdin=piped(furnished, "t.csv"))
        assert found["learner"] == "metron"
    for path in ("d.svm", "-"):
        found = furnished.run(path, stdin=piped(furnished, "d.svm"))
        assert found["learner"] == "ahpatron"


def test_a_sweep_has_the_same_defaults(ahpatron: Ahpatron) -> None:
    for name, text, words, learner in (
        ("t.csv", table(EVERY["text"]), TABLE, "metron"),
        ("d.svm", libsvm(EVERY["1/2"]), (), "ahpatron"),
    ):
        ahpatron.write(name, text)
        assert ahpatron.sweep(name, *words, out=f"{name}.jsonl").code == 0
        assert {trial["run"]["learner"] for trial in ahpatron.trials(f"{name}.jsonl")} == {learner}


def test_the_configuration_of_a_sweep_may_name_the_learner(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", table(EVERY["text"]))
    ahpatron.write("c.toml", 'data = ["t.csv"]\nkernel = "laplacian"\n')
    said = ahpatron.refusal(2, "sweep", "--config", "c.toml", *TABLE, "--out", "r.jsonl")
    assert "--kernel: metron" in said
    ahpatron.write("c.toml", 'data = ["t.csv"]\nkernel = "laplacian"\nlearners = ["avp"]\n')
    ahpatron.succeed("sweep", "--config", "c.toml", *TABLE, "--out", "r.jsonl")


@pytest.mark.parametrize(
    "words",
    [
        "--sigma 2",
        "--sigma auto",
        "--kernel linear",
        "--epsilon 0.6",
        "--theorem 4",
        "-p sigma=2",
        "-p epsilon=0.6",
    ],
)
def test_what_the_default_of_tables_does_not_have_is_refused(
    furnished: Ahpatron, words: str
) -> None:
    said = furnished.refusal(2, "run", "t.csv", *TABLE, *words.split())
    assert "metron, the default learner of tables" in said
    assert "-l ahpatron" in said
    furnished.succeed("run", "t.csv", *TABLE, *words.split(), "-l", "ahpatron")
    if words.startswith("-p"):
        words = words.replace("-p", "-g") + ",3" * ("sigma" in words)
    if "theorem" not in words:
        said = furnished.refusal(2, "sweep", "t.csv", *TABLE, *words.split(), "--out", "r.jsonl")
        assert "-l ahpatron" in said


def test_metron_by_name_notes_what_it_does_not_have(furnished: Ahpatron) -> None:
    for option, value in (("--sigma", "2"), ("--kernel", "linear"), ("--epsilon", "0.6")):
        words = ("run", "t.csv", *TABLE, "-l", "metron", option, value)
        assert f"note: {option} has no effect" in furnished.succeed(*words).err


@pytest.mark.parametrize("name", ["d.svm", "comment.svm", "qid.svm", "new.svm", "wide.svm"])
@pytest.mark.parametrize("command", ["run", "sweep", "inspect", "convert"])
@pytest.mark.parametrize(
    "words", ["--label y", "--id a", "--drop a", "--category a", "--missing indicator"]
)
def test_options_of_tables_are_refused_with_libsvm_text(
    furnished: Ahpatron, command: str, name: str, words: str
) -> None:
    more = ("--out", "new.jsonl") if command == "sweep" else ()
    said = furnished.refusal(2, command, name, *words.split(), *more)
    assert f"for tables only: {words.split()[0]}" in said
    if command != "sweep":
        said = furnished.refusal(2, command, "-", *words.split(), stdin=piped(furnished, name))
        assert "<stdin>" in said


def test_options_of_tables_are_refused_when_a_model_of_libsvm_text_goes_on(
    furnished: Ahpatron,
) -> None:
    assert "--id" in furnished.refusal(2, "run", "d.svm", "--resume", "d.npz", "--id", "a")
    assert "--id" in furnished.refusal(2, "predict", "d.npz", "d.svm", "--id", "a")


def test_a_table_and_libsvm_text_need_commands_of_their_own(furnished: Ahpatron) -> None:
    done = furnished("run", "t.csv", "d.svm", *TABLE)
    assert done.code == 2
    assert "d.svm" in done.err
    assert "commands of their own" in done.err


REFUSED = [
    (65, "2 features", "run t.csv --label y --id name --max-features 1"),
    (65, "2 features", "inspect t.csv --label y --id name --max-features 1"),
    (65, "2 features", "sweep t.csv --label y --id name --max-features 1 --out new.jsonl"),
    (65, "2 features", "predict t.npz t.csv --max-features 1"),
    (2, "--allow-new-features", "predict t.npz t.csv --allow-new-features"),
    (2, "--allow-new-features", "run t.csv --resume t.npz --allow-new-features"),
    (2, "--warm-up", "run d.svm --resume d.npz --warm-up 5"),
    (2, "already", "convert d.svm"),
    (2, "--format", "predict d.npz d.svm --out s.csv --format jsonl"),
    (2, "--jobs", "sweep d.svm --out new.jsonl --scheduler tcp://localhost:1 --jobs 2"),
    (2, "--bibtex", "learners arow --bibtex --json"),
    (2, "--quiet", "run d.svm -q -v"),
    (2, "--quiet", "sweep d.svm -q -v --out new.jsonl"),
]
"""Exit code, what the error names, the command."""


@pytest.mark.parametrize(("code", "named", "words"), REFUSED, ids=[one[2] for one in REFUSED])
def test_an_option_without_effect_is_refused(
    furnished: Ahpatron, code: int, named: str, words: str
) -> None:
    assert named in furnished.refusal(code, *shlex.split(words))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--warm-up", "d.svm --warm-up 5"),
        ("--warm-up", "t.csv --label y --id name --warm-up 5"),
        ("--jobs", "d.svm --jobs 2"),
        ("--jobs", "d.svm --jobs 2 --shuffle"),
        ("--jobs", "d.svm --jobs 2 --repeats 2 --predictions p.csv"),
    ],
)
def test_an_option_without_effect_is_noted(ahpatron: Ahpatron, option: str, words: str) -> None:
    ahpatron.write("t.csv", table(EVERY["0/1"]))
    ahpatron.write("d.svm", libsvm(EVERY["0/1"]))
    done = ahpatron.succeed("run", *words.split())
    assert f"note: {option} has no effect" in done.err


@pytest.mark.parametrize(
    "words",
    [
        "run d.svm --warm-up 5 --scale standard",
        "run d.svm --warm-up 50 --sigma auto",
        "run - --label y --id name --warm-up 5",
        "run t.csv --label y --id name --max-features 2",
        "run t.csv --label y --id name --missing zero",
        "inspect t.csv --label y --id name --max-features 2 --missing mean",
        "predict d.npz d.svm --format csv --out s.csv",
    ],
)
def test_an_option_with_an_effect_is_taken(furnished: Ahpatron, words: str) -> None:
    done = furnished.succeed(*words.split(), stdin=piped(furnished, "t.csv"))
    assert "no effect" not in done.err


def test_a_table_whose_header_has_colons_is_still_a_table(ahpatron: Ahpatron) -> None:
    rows = "".join(f"{i},{i % 3},{i % 2}\n" for i in range(40))
    for header in ("at 10:00,at 11:00,y", "1:00 pm,2:00 pm,y", "#a,b,y"):
        ahpatron.write("t.txt", f"{header}\n{rows}")
        assert ahpatron.run("t.txt", "--label", "y")["learner"] == "metron"


def test_an_own_learner_runs_on_a_table_if_it_is_named(ahpatron: Ahpatron) -> None:
    ahpatron.write("t.csv", table(EVERY["text"]))
    own = f"{OWN}:SmallestGoes"
    found = ahpatron.run("t.csv", *TABLE, "-l", own, "--sigma", 2)
    assert found["learner"] == "smallest-goes"
