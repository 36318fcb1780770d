"""Commands in hints: they do what the hint says, on the files that were refused."""

import gzip
import json
import re
import zipfile
from pathlib import Path

import pytest

from support.command import Ahpatron

ROWS = [{"a": i % 7, "b b": i * i % 5, "y": "yes" if i % 3 else "no"} for i in range(60)]
LINES = [f"{row['a']},{row['b b']},{row['y']}" for row in ROWS]
BODY = "\n".join(LINES) + "\n"
ARFF = "@relation r\n@attribute a numeric\n@attribute b numeric\n@attribute y {yes,no}\n@data\n"
SVM = "".join(f"{(-1) ** i} 1:{i % 7} 2:{i % 5}\n" for i in range(60))

HINTS = [
    ("d.json", json.dumps(ROWS), "rows.jsonl"),
    ("twice.csv", "a,a,y\n" + BODY, "named.csv"),
    ("twice.tsv", "a b\ta b\ty\n" + BODY.replace(",", "\t"), "named.csv"),
    ("two lines.csv", '"a\nb","a\nb",y\n' + BODY, "named.csv"),
    ("unnamed.csv", ",,\n" + BODY, "named.csv"),
    ("headless.csv", BODY.replace(",", ".5,", 1), "named.csv"),
    ("utf16.csv", ("a,b,y\n" + BODY).encode("utf-16"), "utf8.csv"),
    ("latin.csv", ("ä,b,y\n" + BODY).encode("latin-1"), "utf8.csv"),
    ("mac.csv", ("a,b,y\n" + BODY).replace("\n", "\r"), "fixed.csv"),
]
"""Name and content of a table that is refused, and the file that the command makes."""


@pytest.mark.parametrize(("name", "content", "made"), HINTS, ids=[name for name, *_ in HINTS])
def test_a_refused_table_is_read_after_the_command_of_the_hint(
    ahpatron: Ahpatron, name: str, content: str | bytes, made: str
) -> None:
    ahpatron.write(name, content)
    command = command_in(ahpatron.refusal(65, "run", name, "--label", "y"))
    assert ahpatron.shell(command).code == 0
    label = "y"
    if made.endswith(".csv"):
        header = (ahpatron.folder / made).read_text().splitlines()[0]
        label = re.split(r"[,\t]", header)[-1]
    found = ahpatron.json("run", made, "--label", label)
    assert found["data"]["rounds"] == len(ROWS)


@pytest.mark.parametrize("content", ["", "\n", "\na,b,y\n" + BODY])
def test_a_table_without_a_first_line_gets_no_command(ahpatron: Ahpatron, content: str) -> None:
    ahpatron.write("d.csv", content)
    message = ahpatron.refusal(65, "run", "d.csv", "--label", "y")
    assert "hint: the file is empty, or its first line is blank" in message
    assert "named.csv" not in message


def test_a_refused_file_without_label_option_is_read_after_the_command(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.arff", ARFF + BODY)
    command = command_in(ahpatron.refusal(65, "run", "d.arff"))
    assert ahpatron.shell(command).code == 0
    found = ahpatron.json("run", "data.csv", "--label", "y")
    assert found["data"]["rounds"] == len(ROWS)


def test_refused_libsvm_text_is_read_after_the_command(ahpatron: Ahpatron) -> None:
    for name, content in (
        ("mac.svm", SVM.replace("\n", "\r").encode()),
        ("utf16.svm", SVM.encode("utf-16")),
    ):
        ahpatron.write(name, content)
        assert ahpatron.shell(command_in(ahpatron.refusal(65, "run", name))).code == 0
        assert ahpatron.json("run", "fixed.svm")["data"]["rounds"] == 60


def test_no_command_names_standard_input_as_a_file(ahpatron: Ahpatron) -> None:
    for _, content, _ in HINTS:
        data = content.encode() if isinstance(content, str) else content
        assert "<stdin>" not in command_in(
            ahpatron.refusal(65, "run", "-", "--label", "y", stdin=data)
        )


def test_a_file_with_one_label_is_run_as_the_hint_says(ahpatron: Ahpatron) -> None:
    for name, content, words in (
        ("one.svm", "-1 1:1\n-1 1:2\n", []),
        ("one.csv", "a,y\n1,7\n2,7\n", ["--label", "y"]),
    ):
        ahpatron.write(name, content)
        option, label = command_in(ahpatron.refusal(65, "run", name, *words)).split()
        for way in ([], ["--shuffle"]):
            found = ahpatron.run(name, *words, option, label, *way)
            assert found["rounds"] == 2


def test_a_spreadsheet_is_called_one(ahpatron: Ahpatron) -> None:
    for name in ("book.xlsx", "book.ods"):
        ahpatron.write(name, b"PK\x03\x04" + bytes(600))
        error = ahpatron.refusal(65, "run", name, "--label", "y")
        assert "spreadsheet" in error
        assert "CSV" in error
        assert "unzip" not in error


def test_a_spreadsheet_with_another_name_is_called_one_by_every_command(ahpatron: Ahpatron) -> None:
    with zipfile.ZipFile(ahpatron.folder / "book.csv", "w") as book:
        book.writestr("[Content_Types].xml", "<Types/>")
    for words in (("run",), ("inspect",), ("predict", "book.csv")):
        error = ahpatron.refusal(65, *words, "book.csv")
        assert "spreadsheet" in error
        assert "CSV" in error


def test_a_pdf_and_a_web_page_are_called_so(ahpatron: Ahpatron) -> None:
    for name, content, kind in (
        ("d.pdf", "%PDF-1.4\n", "PDF"),
        ("d.csv", "<!DOCTYPE html>\n<html></html>\n", "HTML"),
    ):
        ahpatron.write(name, content)
        error = ahpatron.refusal(65, "run", name, "--label", "y")
        assert kind in error


def test_rows_without_a_header_are_told_so_by_predict(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "a,b,y\n" + BODY)
    ahpatron.succeed("run", "d.csv", "--label", "y", "--save", "m.npz")
    ahpatron.write("rows.csv", "one,2,no\n3,4,yes\n")
    error = ahpatron.refusal(65, "predict", "m.npz", "rows.csv")
    assert "the first line must name the columns" in error


def test_data_are_not_called_no_data(ahpatron: Ahpatron, rings: Path) -> None:
    error = ahpatron.refusal(65, "report", rings)
    assert "nor LIBSVM" not in error
    command = re.findall("`(ahpatron inspect .+?)`", error)
    assert len(command) == 1
    ahpatron.succeed(*command[0].split()[1:])


def test_the_list_of_commands_fits_into_80_columns(ahpatron: Ahpatron) -> None:
    lines = ahpatron.refusal(2).splitlines()
    assert any("learners" in line for line in lines)
    assert max(map(len, lines)) <= 80


def test_what_was_typed_is_named(ahpatron: Ahpatron) -> None:
    assert "'foo'" in ahpatron.refusal(2, "help", "foo")
    assert "sweep?" in ahpatron.refusal(2, "help", "swep")
    assert "--version?" in ahpatron.refusal(2, "version")
    ahpatron.write("d.csv", "a,b,y\n" + BODY)
    error = ahpatron.refusal(2, "convert", "d.csv", "--label", "y", "--json")
    assert "--json" in error
    assert "--format" not in error
    error = ahpatron.refusal(2, "convert", "d.csv", "--label", "y", "--format", "json")
    assert "--format" in error


def test_a_packed_table_is_told_from_its_content(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv.gz", gzip.compress(json.dumps(ROWS).encode()))
    assert "JSON" in ahpatron.refusal(65, "run", "d.csv.gz", "--label", "y")


def command_in(error: str) -> str:
    """The command of a hint."""
    (command,) = re.findall("`(.+)`", error.partition("hint:")[2], re.DOTALL)
    return str(command)
