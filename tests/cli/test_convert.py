"""`ahpatron convert`, and the commands that hints give for delimited text."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from support.command import COMMAND, Ahpatron

BANK = "age,job,balance,y\n" + "".join(
    f"{20 + i % 37},{('clerk', 'boss', 'nurse')[i % 3]},{(i * 7919) % 1000 / 8},"
    f"{'yes' if i % 37 > 12 else 'no'}\n"
    for i in range(300)
)


def mistakes(text: str) -> int:
    return json.loads(text)["runs"][0]["mistakes"]


@pytest.mark.parametrize("way", ["pipe", "file"])
def test_what_is_converted_is_played(ahpatron: Ahpatron, way: str) -> None:
    ahpatron.write("bank.csv", BANK)
    options = ("--sigma", "auto", "--scale", "standard", "--format", "json", "-B", 20)
    written = ahpatron.succeed("convert", "bank.csv", "--label", "y")
    assert written.err == (
        "note: labels no → -1, yes → +1\nnote: columns of words, and how many words each: job (3)\n"
    )
    assert written.out.splitlines()[:3] == [
        "# labels: -1=no +1=yes",
        "# features: 1=age 2=job=boss 3=job=clerk 4=job=nurse 5=balance",
        "-1 1:20 3:1",
    ]
    if way == "pipe":
        played = ahpatron("run", "-", *options, stdin=written.out.encode())
    else:
        filed = ahpatron("convert", "bank.csv", "--label", "y", "--out", "bank.svm", "-q")
        assert (filed.code, filed.out, filed.err) == (0, "", "")
        assert (ahpatron.folder / "bank.svm").read_text() == written.out
        played = ahpatron("run", "bank.svm", *options)
    assert played.code == 0, played.err
    run = json.loads(played.out)
    assert (run["data"]["rounds"], run["data"]["features"]) == (300, 5)
    assert 0 < mistakes(played.out) < 100


def test_a_pipe_and_a_file_give_the_same_run(ahpatron: Ahpatron) -> None:
    ahpatron.write("bank.csv", BANK)
    options = ("--sigma", "auto", "--scale", "standard", "--format", "json", "-B", 20)
    text = ahpatron("convert", "bank.csv", "--label", "y", "--out", "bank.svm")
    assert text.out == ""
    from_file = ahpatron("run", "bank.svm", *options)
    from_pipe = ahpatron("run", "-", *options, stdin=(ahpatron.folder / "bank.svm").read_bytes())
    assert mistakes(from_file.out) == mistakes(from_pipe.out)


def test_numbers_from_standard_input_give_the_same_text(ahpatron: Ahpatron) -> None:
    text = "a,b,y\n" + "".join(f"{i},{-i},{i % 2}\n" for i in range(500))
    ahpatron.write("d.csv", text)
    filed = ahpatron("convert", "d.csv", "--label", "y")
    piped = ahpatron("convert", "-", "--label", "y", stdin=text.encode())
    assert filed.code == piped.code == 0
    assert filed.out == piped.out


def test_the_mapping_goes_to_a_file_in_place_of_comments(ahpatron: Ahpatron) -> None:
    ahpatron.write("bank.csv", BANK)
    done = ahpatron.succeed(
        "convert", "bank.csv", "--label", "y", "--drop", "balance", "--map", "m.json"
    )
    assert "#" not in done.out
    assert json.loads((ahpatron.folder / "m.json").read_text()) == {
        "label": "y",
        "labels": {"no": "-1", "yes": "+1"},
        "features": [
            {"index": 1, "column": "age"},
            {"index": 2, "column": "job", "word": "boss"},
            {"index": 3, "column": "job", "word": "clerk"},
            {"index": 4, "column": "job", "word": "nurse"},
        ],
    }


def test_new_text_is_converted_like_the_text_a_model_learned_from(ahpatron: Ahpatron) -> None:
    ahpatron.write("bank.csv", BANK)
    text = ahpatron("convert", "bank.csv", "--label", "y", "--map", "m.json").out
    options = ("--sigma", "auto", "--scale", "standard", "--save", "model.npz")
    assert ahpatron("run", "-", *options, stdin=text.encode()).code == 0
    again = ahpatron("convert", "-", "--like", "m.json", stdin=BANK.encode())
    no_label = ahpatron("convert", "-", "--like", "m.json", "--label", "", stdin=BANK.encode())
    assert no_label == again
    assert (again.code, again.err) == (0, "")
    comment, _, rows = again.out.partition("\n")
    assert comment.startswith("#")
    assert rows == text
    # other columns, another order of columns and of words, and no labels
    header, *rows = [line.split(",") for line in BANK.splitlines()[:50]]
    order = [header.index(name) for name in ("balance", "job", "age")]
    new = [["id", *(row[i] for i in order)] for row in [header, *rows[::-1]]]
    ahpatron.write("new.csv", "".join(",".join(row) + "\n" for row in new))
    like = ahpatron("convert", "new.csv", "--like", "m.json")
    assert (like.code, like.err) == (0, "note: columns that m.json lacks are left out: id\n")
    expected = [line.split(" ", 1)[1] for line in text.splitlines()[:49]]
    assert like.out.splitlines()[1:] == [f"? {line}" for line in expected[::-1]]
    scored = ahpatron("predict", "model.npz", "-", stdin=like.out.encode())
    known = ahpatron("predict", "model.npz", "-", stdin=again.out.encode())
    assert scored.code == known.code == 0
    first = [line.split(",") for line in known.out.splitlines()[1:50]]
    found = [line.split(",") for line in scored.out.splitlines()[1:]]
    assert [row[1:] for row in found] == [row[1:] for row in first[::-1]]
    assert found[0][0] == "2"  # the line of the CSV


def test_what_a_mapping_lacks_is_refused_or_zero(ahpatron: Ahpatron) -> None:
    ahpatron.write("bank.csv", BANK)
    mapped = ("--label", "y", "--positive", "yes", "--map", "m.json", "--out", "b.svm")
    assert ahpatron("convert", "bank.csv", *mapped).code == 0
    new = b"y,job,age,balance\nperhaps,pilot,1,0\n?,boss,0,0\nyes,,2,0\n"
    refused = ahpatron("convert", "-", "--like", "m.json", stdin=new)
    assert refused.code == 65
    assert "column 'job' holds 'pilot', which is not in m.json\n  --> <stdin>:2" in refused.err
    zero = ahpatron("convert", "-", "--like", "m.json", "--missing", "zero", stdin=new)
    assert zero.err == "note: words that m.json lacks are written as 0: job=pilot\n"
    assert zero.out.splitlines()[1:] == ["-1 1:1", "? 2:1", "+1 1:2"]
    for text, problem in [
        (b"age,job\n1,boss\n", "no column has the name 'balance'"),
        (b"age,job,balance\n1,boss,x\n", "column 'balance' holds numbers in m.json, and here 'x'"),
    ]:
        assert problem in ahpatron("convert", "-", "--like", "m.json", stdin=text).err
    assert ahpatron("convert", "bank.csv", "--label", "y", "--map", "n.json").code == 0
    strange = ahpatron("convert", "-", "--like", "n.json", "--missing", "zero", stdin=new)
    assert "the label 'perhaps' is not in n.json\n  --> <stdin>:2" in strange.err
    assert "its labels are no, yes" in strange.err


@pytest.mark.parametrize(
    "change",
    [
        ("labels", 5),
        ("labels", {"a": "x"}),
        ("label", 1),
        ("features", []),
        ("features", [{"index": 1, "column": 7}]),
        ("features", [{"index": 2, "column": "a"}]),
        ("features", [{"word": 1}]),
        ("features", [{"index": 1, "column": "a"}, {"index": 2, "column": "a", "word": "b"}]),
    ],
)
def test_a_broken_mapping_is_refused(ahpatron: Ahpatron, change: tuple[str, object]) -> None:
    good = {"label": "y", "labels": None, "features": [{"index": 1, "column": "a"}]}
    ahpatron.write("m.json", json.dumps(good))
    for text, written in (b"y\ta\n1\t2\n", "1 1:2"), (b"a\n2\n", "? 1:2"):
        done = ahpatron("convert", "-", "--like", "m.json", stdin=text)
        assert (done.code, done.out.splitlines()[1:]) == (0, [written])
    ahpatron.write("m.json", json.dumps({**good, change[0]: change[1]}))
    err = ahpatron.refusal(65, "convert", "-", "--like", "m.json", stdin=b"a,y\n1,1\n")
    assert "this is not a mapping" in err


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (("bank.csv",), 2, "missing option '--label'"),
        (("bank.csv", "--label", "y", "--missing", "mean"), 2, "unknown word after --missing"),
        (("bank.csv", "--label", "y", "--drop", "y"), 2, "--drop y names the column of the labels"),
        (("bank.csv", "--label", "y", "--words", "y"), 2, "--words y names the column of the"),
        (
            ("bank.csv", "--label", "y", "--words", "age", "--drop", "age"),
            2,
            "--drop and --words both name age",
        ),
        (("bank.csv", "--label", "y", "--out", "bank.csv"), 2, "--out would overwrite the data"),
        (("bank.csv", "--label", "y", "--out", "no/b.svm"), 73, "the output cannot be created"),
        (("bank.csv", "--label", "y", "--out", "/dev/full"), 74, "the output cannot be written"),
        (("bank.csv", "--label", "y", "--out", "b.svm.gz"), 2, "| gzip > b.svm.gz`"),
        (("bank.csv", "--like", "bank.csv"), 65, "this is not a mapping"),
        (("bank.csv", "--like", "-"), 2, "--like requires a file"),
        (("bank.csv", "--like", "m.json", "--drop", "age"), 2, "--drop has no effect with --like"),
        (("none.csv", "--label", "y"), 66, "no such file"),
        ((".", "--label", "y"), 66, "this is a directory"),
        (("bank.csv", "--label", "Job title"), 65, "no column has the name 'Job title'"),
        (("bank.csv", "--label", "balanse"), 65, "no column has the name 'balanse'"),
        (("bank.csv", "--label", "y", "--positive", "Yes"), 65, "no row has the label 'Yes'"),
    ],
)
def test_refusal(ahpatron: Ahpatron, options: tuple[str, ...], code: int, problem: str) -> None:
    ahpatron.write("bank.csv", BANK)
    err = ahpatron.refusal(code, "convert", *options)
    assert err.startswith("error: ") or "\nerror: " in err
    assert problem in err
    assert ahpatron.files() == {"bank.csv"}


def test_a_single_label_has_no_others(ahpatron: Ahpatron) -> None:
    ahpatron.write("one.csv", "a,y\n1,x\n2,x\n")
    done = ahpatron("convert", "one.csv", "--label", "y")
    assert (done.code, done.err) == (0, "note: labels x → 0\n")
    assert "→ -1" in ahpatron("convert", "one.csv", "--label", "y", "--positive", "x").err


def test_a_fault_late_in_a_pipe_leaves_no_file(ahpatron: Ahpatron) -> None:
    text = "a,y\n" + "1,1\n2,0\n" * 5000 + "oops,1\n"
    err = ahpatron.refusal(
        65, "convert", "-", "--label", "y", "--out", "d.svm", stdin=text.encode()
    )
    assert "<stdin>:10002" in err
    assert "give a file" in err
    assert ahpatron.files() == set()


def hinted(hint: str) -> str:
    found = re.search(r"`(ahpatron convert .*?)`", hint)
    assert found, hint
    return found[1]


def command_of(hint: str) -> str:
    return hinted(hint).replace("ahpatron", f"{sys.executable} -m ahpatron_cli")


# name, content, what the error calls it
DELIMITED = [
    ("bank.csv", BANK, "CSV"),
    ("semi.csv", BANK.replace(",", ";"), "CSV with semicolons"),
    ("bank.tsv", BANK.replace(",", "\t"), "tab-separated text"),
    ("bars.txt", BANK.replace(",", "|"), "text separated by |"),
    ("a b.csv", BANK.replace("age,job", "customer's age,job title"), "CSV"),
    ("spaces.csv", BANK.replace(",y\n", ",the label\n", 1), "CSV"),
    ("colons.csv", BANK.replace("age,", "age: years,", 1), "CSV"),
    ("quoted.csv", BANK.replace("age,job", '"age, in years",job', 1), "CSV"),
    ("letters.csv", BANK.replace("age", "größe", 1), "CSV"),
    ("class.csv", "Class,age\n" + "1,3\n2,4\n" * 20, "CSV"),
]


@pytest.mark.parametrize(("name", "content", "kind"), DELIMITED, ids=[c[0] for c in DELIMITED])
def test_the_hint_for_delimited_text_is_a_command_that_works(
    ahpatron: Ahpatron, name: str, content: str, kind: str
) -> None:
    ahpatron.write(name, content)
    for command in ("run", "inspect"):
        refused = ahpatron(command, name)
        assert refused.code == 65
        assert f"this is {kind}, not LIBSVM text" in refused.out + refused.err
    assert refused.out.startswith(f"{name}: no rows could be read\n")
    assert f"  - {ahpatron('run', name).err.split('hint: ')[1]}" in refused.out
    convert, play = hinted(ahpatron("run", name).err).split(" | ahpatron ")
    converted = ahpatron.succeed(*shlex.split(convert)[1:])
    done = ahpatron.succeed(*shlex.split(play), stdin=converted.out.encode())
    assert re.search(r"^ahpatron +\d", done.out, re.MULTILINE)


def test_the_hint_for_delimited_text_fits_the_command(ahpatron: Ahpatron) -> None:
    ahpatron.write("a b.csv", BANK)
    err = ahpatron.refusal(65, "sweep", "a b.csv", "--out", "r.jsonl")
    assert err.endswith("; then sweep 'a b.svm'\n")
    assert ahpatron(*shlex.split(hinted(err))[1:]).code == 0
    assert ahpatron("convert", "a b.csv", "--label", "y", "--map", "MAP.json", "-q").code == 0
    assert ahpatron("run", "a b.svm", "--save", "m 1.npz").code == 0
    refused = ahpatron("predict", "m 1.npz", "a b.csv")
    assert (refused.code, refused.out) == (65, "")
    convert, predict = hinted(refused.err).split(" | ahpatron ")
    converted = ahpatron(*shlex.split(convert)[1:])
    done = ahpatron.succeed(*shlex.split(predict), stdin=converted.out.encode())
    assert len(done.out.splitlines()) == 301


def test_the_hints_for_archives_and_arff_fit_the_command(ahpatron: Ahpatron) -> None:
    rows = "1 1:1\n-1 1:2\n" * 20
    ahpatron.write("d.svm", rows)
    assert ahpatron("run", "d.svm", "--save", "m.npz").code == 0
    with zipfile.ZipFile(ahpatron.folder / "a b.zip", "w") as archive:
        archive.writestr("d.svm", rows)
    ahpatron.write("d.arff", "@relation d\n")
    for name, tool in (("a b.zip", "unzip -p 'a b.zip'"), ("d.arff", "ahpatron convert data.csv")):
        hints = {
            command: ahpatron(*words).err.split("hint: ")[1]
            for command, words in {
                "run": ("run", name),
                "sweep": ("sweep", name, "--out", "r.jsonl"),
                "predict": ("predict", "m.npz", name),
            }.items()
        }
        assert all(tool in hint for hint in hints.values())
        assert "| ahpatron run -" in hints["run"]
        assert hints["sweep"].endswith("; then sweep 'a b.svm'\n" if "b" in name else "d.svm\n")
        assert "| ahpatron predict m.npz -`" in hints["predict"]
        assert not any("ahpatron run" in hints[name] for name in ("sweep", "predict"))


@pytest.mark.parametrize(("name", "content", "kind"), DELIMITED[4:5] + DELIMITED[7:8])
def test_the_hint_for_delimited_text_works_in_a_shell(
    ahpatron: Ahpatron, name: str, content: str, kind: str
) -> None:
    ahpatron.write(name, content)
    done = shell(command_of(ahpatron("run", name).err), ahpatron.folder)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^ahpatron +\d", done.stdout, re.MULTILINE)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_hint_for_rows_without_names_works(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "5.1,0.5,1\n" + "4,1.5,0\n" * 9)
    refused = ahpatron("run", "d.csv")
    naming = re.search(r"`(\(echo .*?)`", refused.err)
    assert naming
    assert shell(naming[1], ahpatron.folder).returncode == 0
    done = shell(command_of(refused.err), ahpatron.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<stdin>: 10 rounds, 2 features")


def test_the_hint_for_arff_works(ahpatron: Ahpatron) -> None:
    arff = "% made\n@RELATION d\n@attribute a numeric\n@attribute class {x,y}\n\n@DATA\n% c\n"
    ahpatron.write("d.arff", arff + "1,x\n2,y\n\n" * 5)
    refused = ahpatron("run", "d.arff")
    assert "this is an ARFF file, not LIBSVM text" in refused.err
    making = re.search(r"`(awk .*?)`", refused.err)
    assert making
    assert shell(making[1], ahpatron.folder).returncode == 0
    done = shell(command_of(refused.err).replace("COLUMN", "class"), ahpatron.folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("<stdin>: 10 rounds, 1 feature;")


def test_a_closed_pipe_ends_quietly_and_a_full_disk_does_not(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "a,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(100_000)))
    command = " ".join(COMMAND) + " convert d.csv --label y"
    closed = shell(f"{command} | head -n 1", ahpatron.folder)
    assert (closed.returncode, closed.stdout, closed.stderr) == (0, "# features: 1=a\n", "")
    full = shell(f"{command} > /dev/full", ahpatron.folder)
    assert full.returncode == 74
    assert "standard output cannot be written" in full.stderr
