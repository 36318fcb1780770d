"""What every command refuses: the exit code, what is named, nothing on stdout, no file changed."""

import os
import shlex
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from support.command import REPOSITORY, Ahpatron

OWN = (REPOSITORY / "docs" / "examples" / "own_learner.py").read_text()
GRID = "-l ahpatron -l rbp -p budget=10,20 --repeats 3 --limit 60"


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory, rings: Path, sparse_text: Path) -> Ahpatron:
    """A folder with data, good and bad, a model, results and learners in files."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("refusals"))
    rows = rings.read_text().splitlines(keepends=True)
    files: dict[str, str | bytes] = {
        "data.svm": "".join(rows[:300]),
        "sparse.svm": sparse_text.read_bytes(),
        "data.csv": "a,b\n1,2\n",
        "bank.csv": "age,balance,y\n" + "30,5,yes\n40,6,no\n" * 20,
        "empty.svm": "# nothing\n",
        "same.svm": "+1 1:1\n-1 1:1\n",
        "bad.svm": "+1 1:1\n-1 1:x\n",
        "bad.jsonl": "+1 1:1\n-1 1:x\n",
        "word.svm": "? 1:2\nx 1:2\n",
        "third.svm": "1 1:0.2\n7 1:0.2\n",
        "huge.svm": "1:1e308 2:-1e308\n",
        "far.svm": "-1 1:1\n1 1:2\n-1 1:1e160\n1 1:3\n",
        "late.svm": "-1 1:1\n1 1:2\n" * 5_000 + "1 1:x\n",
        "three.svm": "1 1:1\n2 1:2\n3 1:3\n" * 9,
        "real.svm": "".join(f"{i}.5 1:{i}\n" for i in range(40)),
        "notes.json": '{"a": 1}\n',
        "list.json": '[{"schema": 1}]\n',
        "other.toml": 'data = ["data.svm"]\nlearners = ["avp"]\n[learner.rbp]\nbudget = 10\n',
        "own.py": OWN,
        "copy.py": OWN + "# another\n",
        "avp.py": OWN.replace('"smallest-goes"', '"avp"'),
        "odd.py": OWN.replace('"smallest-goes"', r'"a\x1b[31mb"'),
    }
    for name, content in files.items():
        ahpatron.write(name, content)
    ahpatron.succeed("run", "data.svm", "--limit", 100, "--save", "m.npz")
    ahpatron.succeed("sweep", "data.svm", "sparse.svm", *GRID.split(), "--out", "r.jsonl")
    model = (ahpatron.folder / "m.npz").read_bytes()
    middle = len(model) // 2
    ahpatron.write("cut.npz", model[:middle])
    flipped = model[:middle] + bytes([model[middle] ^ 0xFF]) + model[middle + 1 :]
    ahpatron.write("flipped.npz", flipped)
    np.savez(ahpatron.folder / "x.npz", X=np.eye(3))
    np.save(ahpatron.folder / "x.npy", np.eye(3))
    os.mkfifo(ahpatron.folder / "pipe")
    (ahpatron.folder / "link.svg").symlink_to("new.jsonl")
    (ahpatron.folder / "link.csv").symlink_to("bank.csv")
    return ahpatron


Refusal = tuple[int, str, str]
"""The exit code, what the error names, and the command."""
LONG = "x" * 300
"""A name that no file can have."""

OPTIONS = {
    "--budget": "0 1 401 -4 4_0 many 4.5 auto " + "1" * 400,
    "--epsilon": "0 1 nan 0.99999999999999999",
    "--sigma": "0 -1 nan inf 1_0 1e400 1e-400 automatic",
    "--repeats": "0 ten",
    "--limit": "0",
    "--seed": "-1 " + "9" * 30,
    "--jobs": "0",
    "--max-features": "3000000000",
    "--positive": "one nan inf 1_0",
    "--classes": "1 1,1 a,b",
    "--weight": "1 1=0 1=nan one=2 7=2",
    "--save-every": "5",
    "-p": "ridge=0 ridge=inf ridge radius=inf step=-1 step=0 rescale=1.5 rescale=0 degree=2",
}
"""Options of `run`, and values that they refuse."""

RUN = [
    ("ridge", "-p ridge=1 -p ridge=2"),
    ("radius", "-l avp -p schedule=adaptive"),
    ("at least 1, got 0", "--repeats 0"),
    ("less than 2,147,483,647", "--max-features 3000000000"),
    ("degree", "--kernel linear -p degree=2"),
    ("degree", "--kernel polynomial -p degree=0"),
    ("degree", "--kernel polynomial -p degree=auto"),
    ("offset", "--kernel polynomial -p offset=-1"),
    ("--budget", "-l rbp -B 0"),
    ("rank", "-l nogd -B 10 -p rank=11"),
    ("features", "-l fogd -p features=0"),
    ("memory", "-l pomdr -p memory=0"),
    ("alpha", "-l alma2 -p alpha=0"),
    ("tolerance", "-l projectron -p tolerance=nan"),
    ("shrinkage", "-l bogd -p shrinkage=1000 -p step=1"),
    ("budget", "--budget 10 -p budget=20"),
    ("avp", "-p avp.step=2"),
    (".json", "--out result.xlsx"),
    (".json", "--out result"),
    (".svg", "--curve curve.gif"),
    (".csv", "--predictions p.txt"),
    (".csv", "--predictions p.parquet"),
    ("--out FILE", "--predictions - --format json"),
    ("--curve would overwrite --out", "--out a.csv --curve ./a.csv"),
    ("greedy", "-p selection=gredy"),
    ("did you mean ridge?", "-p rigde=1"),
    ("did you mean ahpatron?", "-l ahpatorn"),
    ("did you mean gaussian?", "--kernel rbf"),
    ("did you mean json?", "--format jsn"),
    ("did you mean --budget?", "--budgte 4"),
    ("--zzz", "--zzz"),
    ("--positive", "--classes 1,2 --positive 1"),
    ("1.0", "--weight 1=2 --weight 1.0=3"),
    ("forgetron", "--weight 1=2 -l forgetron"),
    ("--weight", "--weight 1=2 --certify"),
    ("U <=", "--theorem 4 -p radius=9"),
    ("c_t = 0.6", "--theorem 4 -p rescale=keep"),
    ("perceptron", "--theorem 2"),
    ("did you mean corollary-1?", "--theorem corolary-1 -l avp"),
    *((option, f"--resume m.npz {option} 1") for option in ("--budget", "--sigma", "--seed")),
    ("--scale", "--resume m.npz --scale unit"),
    ("--sigma", "--resume m.npz --sigma auto"),
    ("--weight", "--resume m.npz --weight 1=2"),
    ("--learner", "--resume m.npz -l ahpatron"),
    ("--theorem", "--resume m.npz --theorem 6"),
    ("--certify", "--resume m.npz --certify"),
    (".npz", "--save x"),
    (".npz", "--checkpoint x.txt"),
    ("--repeats", "--save n.npz --repeats 2"),
    ("-l", "--save n.npz -l avp -l rbp"),
    ("DATA", "sparse.svm --save n.npz"),
    ("--resume", "--checkpoint c.npz --resume m.npz"),
    ("--checkpoint", "--checkpoint c.npz --shuffle"),
    ("--curve", "--checkpoint c.npz --curve c.csv"),
    ("--save-every", "--checkpoint c.npz --save-every 0"),
    ("none.py: no such file", "-l none.py:X"),
    ("Nobody", "-l own.py:Nobody"),
    ("Learner", "-l own.py:HINGE"),
    ("own.py needs the name of a class", "-l own.py"),
    ("smallest-goes", "-l own.py:SmallestGoes -l copy.py:SmallestGoes"),
    ("'avp'", "-l avp.py:SmallestGoes"),
    (r"a\x1b[31mb", "-l odd.py:SmallestGoes"),
    ("ridge", "-l own.py:SmallestGoes -p smallest-goes.ridge=1"),
    ("sweep", "-l own.py:SmallestGoes -p budget=10,20"),
    ("smallest-goes", "--resume m.npz -l own.py:SmallestGoes"),
]
"""Exit code 2: what the error names, and what stands behind `run data.svm`."""

SWEEP = [
    ("-p epsilon", "-p epsilon=2"),
    ("budget", "-p budget=20 -B 20"),
    *(("--shard", f"--shard {shard}") for shard in ("0/3", "4/3", "3")),
    ("--scheduler", "--wait 9"),
    (".svg", "--plot a.jpg"),
    ("--plot", "--plot link.svg"),
    (".html", "--report a.pdf"),
    ("--jobs", "--jobs 0"),
    ("halvng", "--search halvng"),
    ("--shard", "--search halving --shard 1/2"),
    ("--tune-repeats", "--repeats 2 --tune-repeats 1 --shard 1/2"),
    ("--tune-repeats", "--repeats 2 --tune-repeats 2"),
    ("budget", "-p budget=10,40 --plot r.svg --x budgte"),
    ("1,000,000", "-p sigma=10^[-300:-1] -p budget=2:10000:2"),
    ("1,000,000", "--repeats 9000000"),
    ("sigma", "-l metron -p sigma=1,2"),
    ("label 7", "--weight 7=2"),
    ("forgetron", "--weight 1=2 -l forgetron"),
]
"""Exit code 2: what the error names, and what stands behind `sweep data.svm --out new.jsonl`."""

REPORT = [
    ("did you mean data?", "--data dat"),
    ("ahpatron, rbp", "-l avp"),
    ("did you mean f1?", "--best-by F1"),
    ("auc", "--best-by auc"),
    ("--repeats", "--tune-repeats 3"),
    ("--tune-repeats", "--tune-repeats -1"),
    ("--format csv", "--trials"),
    ("--matrix", "--trials --matrix --format csv"),
    ("markdown", "--trials --format csv --out x.md"),
    (".tex", "--out x.pdf"),
    ("--out", "--out r.jsonl"),
    ("--merge x.jsonl", "--merge x.csv"),
    ("r.jsonl", "--merge r.jsonl"),
    ("--plot", "--x budget"),
    ("budget", "--x epsilon --plot x.svg"),
    ("--scale", "--scale unit"),
]
"""Exit code 2: what the error names, and what stands behind `report r.jsonl`."""

OTHERS: list[Refusal] = [
    (2, "did you mean sweep?", "swep data.svm"),
    (2, "ahpatron run data.svm -B 10", "data.svm -B 10"),
    (2, "-", "run - -"),
    (2, "--certify", "run - --certify"),
    (2, "--certify", "run pipe --certify"),
    (2, "--certify", "run three.svm --certify"),
    *(
        (2, f"{option} would overwrite the data", f"run bank.csv --label y {option} {name}")
        for option in ("--out", "--curve", "--predictions")
        for name in ("./bank.csv", "link.csv")
    ),
    *((73, "no/f.csv", f"run data.svm {to} no/f.csv") for to in ("--out", "--curve")),
    (73, "no/m.npz", "run data.svm --save no/m.npz"),
    (66, "none.svm", "run none.svm"),
    (2, "give `-p horizon=N`", "run - -l pomdr -l skegd"),
    *(
        (code, "name too long", words.replace("LONG", LONG))
        for code, words in (
            (66, "run LONG.svm"),
            (66, "run LONG.svm --certify"),
            (66, "run LONG.csv --label y --warm-up 10"),
            (66, "inspect LONG.svm"),
            (66, "predict m.npz LONG.svm"),
            (66, "predict LONG.npz data.svm"),
            (66, "run data.svm --resume LONG.npz"),
            (73, "run data.svm --checkpoint LONG.npz"),
            (73, "run data.svm --out LONG.csv"),
            (73, "report r.jsonl --merge LONG.jsonl"),
            (73, "sweep data.svm --out LONG.jsonl"),
        )
    ),
    (2, "unknown command", LONG),
    (66, "curl -sSL https://example.org/a9a", "run https://example.org/a9a"),
    (66, "none.npz", "run data.svm --resume none.npz"),
    (66, "did you mean m.npz?", "run data.svm --resume mm.npz"),
    (65, "data.svm", "run data.svm --resume data.svm"),
    (65, "pipe", "run data.svm --resume pipe"),
    (2, "--resume m.npz", "run m.npz"),
    (65, "dump_svmlight_file", "run x.npz"),
    (65, "dump_svmlight_file", "inspect x.npz"),
    (65, "dump_svmlight_file", "run x.npy"),
    *(
        (65, place, f"run {name} --out n.json --predictions n.csv --curve c.csv {way}")
        for place, name in (
            ("data.csv", "data.csv"),
            ("late.svm:10001:5", "late.svm"),
            ("--scale", "far.svm"),
            ("regression", "real.svm"),
        )
        for way in ("", "--shuffle")
    ),
    (65, "far.svm:3", "run far.svm"),
    (65, "data.svm:1", "run data.svm -p step=1e-200 --out n.json"),
    (65, "no row has the label 7", "run three.svm --positive 7"),
    (65, "same.svm", "run same.svm --sigma auto"),
    (65, "max_support=5", "run data.svm -l projectron -p max_support=5 --sigma 0.1"),
    (65, "--label y", "run bank.csv"),
    (2, "no, yes", "run bank.csv --label y --weight maybe=2"),
    (66, "none.svm", "predict m.npz none.svm"),
    (66, "none.npz", "predict none.npz data.svm"),
    (2, "MODEL DATA", "predict data.svm m.npz"),
    *((65, f"{name}.npz", f"predict {name}.npz data.svm") for name in ("cut", "flipped", "x")),
    *((65, f"{name}.svm:2", f"predict m.npz {name}.svm") for name in ("word", "third")),
    *((65, name, f"predict m.npz {name}") for name in ("empty.svm", "huge.svm", "data.csv")),
    (2, "-", "predict m.npz - -"),
    (2, "--metrics", "predict m.npz data.svm --format json"),
    (2, "--id", "predict m.npz data.svm --id a"),
    (2, ".csv", "predict m.npz data.svm --out s.txt"),
    (73, "no/s.csv", "predict m.npz data.svm --out no/s.csv"),
    (74, "/dev/full", "predict m.npz data.svm --out /dev/full"),
    (2, "--out", "sweep data.svm"),
    (2, "data", "sweep --out new.jsonl"),
    (2, "data", "sweep - --out new.jsonl"),
    (2, "--out", "sweep data.svm --out ."),
    (2, "--out s.jsonl", "sweep data.svm --out s.csv"),
    (2, "learner.rbp", "sweep --config other.toml --out new.jsonl"),
    (2, "bad.jsonl", "sweep bad.jsonl --out ./bad.jsonl"),
    (65, "data.svm:1", "sweep data.svm --out new.jsonl --max-features 1"),
    (65, "bad.svm:2", "sweep bad.svm --out new.jsonl"),
    (66, "none.svm", "sweep none.svm --out new.jsonl"),
    (66, "none.toml", "sweep data.svm --out new.jsonl --config none.toml"),
    (73, "none/r.jsonl", "sweep data.svm --out none/r.jsonl"),
    (73, "bad.jsonl", "sweep data.svm --out bad.jsonl"),
    (73, "no/x.jsonl", "report r.jsonl --merge no/x.jsonl"),
    (66, "missing.jsonl", "report r.jsonl missing.jsonl"),
    (65, "notes.json", "report r.jsonl notes.json"),
    (65, "data.svm", "report r.jsonl data.svm"),
    (65, "list.json", "inspect list.json"),
    *((2, "json", f"inspect {what} --format csv") for what in ("data.svm", "m.npz", "--learners")),
    (2, "--plot", "inspect data.svm --plot x.svg"),
    (2, "--learner", "inspect data.svm -l arow"),
    *((2, option, f"inspect m.npz {option} 1") for option in ("--sigma", "--seed")),
    *((2, "--sigma", f"inspect data.svm --sigma {sigma}") for sigma in ("0", "nan")),
    (2, "minmix", "inspect data.svm --scale minmix"),
    (2, "data.svm", "learners data.svm"),
    (65, "--label y", "convert bank.csv"),
    (65, "balance", "convert bank.csv --label balanse"),
    (65, "yes", "convert bank.csv --label y --positive Yes"),
    (2, "mean", "convert bank.csv --label y --missing men"),
    (2, "--out", "convert bank.csv --label y --out bank.csv"),
    (2, "gzip", "convert bank.csv --label y --out b.svm.gz"),
    (73, "no/b.svm", "convert bank.csv --label y --out no/b.svm"),
    (74, "/dev/full", "convert bank.csv --label y --out /dev/full"),
    (66, "none.csv", "convert none.csv --label y"),
]
"""Whatever else is refused."""


def of_options() -> Iterator[Refusal]:
    """Each value that an option of `run` refuses; of `-p NAME=VALUE`, NAME is named."""
    for option, values in OPTIONS.items():
        for value in values.split():
            if option == "-p":
                yield 2, value.partition("=")[0], f"run data.svm -p {value}"
            else:
                yield 2, option, f"run data.svm {option}={value}"


REFUSED: list[Refusal] = [
    *of_options(),
    *((2, named, f"run data.svm {words}") for named, words in RUN),
    *((2, named, f"sweep data.svm --out new.jsonl {words}") for named, words in SWEEP),
    *((2, named, f"report r.jsonl {words}") for named, words in REPORT),
    *OTHERS,
]


@pytest.mark.parametrize(
    ("code", "named", "words"), REFUSED, ids=[words[:60] for _, _, words in REFUSED]
)
def test_a_refusal_names_its_reason_and_changes_no_file(
    furnished: Ahpatron, code: int, named: str, words: str
) -> None:
    before = contents(furnished)
    err = furnished.refusal(code, *shlex.split(words), stdin=b"1 1:1\n-1 1:2\n")
    assert err.startswith("error: ")
    assert named in err
    assert contents(furnished) == before


def contents(ahpatron: Ahpatron) -> dict[str, float]:
    return {path.name: path.lstat().st_mtime_ns for path in ahpatron.folder.iterdir()}


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--budget", "-l perceptron -B 10"),
        ("--sigma", "--kernel linear --sigma 2"),
        ("--sigma", "--kernel linear --sigma auto"),
    ],
    ids=["a budget of a learner without", "a width of a kernel without", "the same, chosen"],
)
def test_an_option_without_effect_is_noted(
    ahpatron: Ahpatron, rings: Path, option: str, words: str
) -> None:
    done = ahpatron.succeed("run", rings, "--limit", 100, *words.split())
    assert f"{option} has no effect" in done.err


@pytest.mark.parametrize("scale", ["standard", "minmax", "unit"])
def test_scaling_brings_any_size_into_reach(ahpatron: Ahpatron, scale: str) -> None:
    """Where squares overflow, the hint names --scale; so that must not overflow either."""
    rows = "1 1:2e155 2:0.3\n-1 1:-1e155 2:0.2\n1 1:1.5e155 2:0.9\n-1 1:-3e155 2:0.1\n"
    ahpatron.write("data.svm", rows * 40)
    assert ahpatron.run("data.svm", "--scale", scale)["mistake_rate"] < 0.05


@pytest.mark.parametrize("way", [[], ["--shuffle"]], ids=["in order", "shuffled"])
def test_rows_without_features_are_no_reason_to_refuse(ahpatron: Ahpatron, way: list[str]) -> None:
    ahpatron.write("data.svm", "1\n-1\n1\n")
    assert ahpatron.json("run", "data.svm", *way)["data"]["features"] == 0
