"""Files that are not written as the training data: their numbers are right, or refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from support.command import Ahpatron, rows_of

VALUES = [1.125, 1125.0, -2.5, *(i / 8 - 25 for i in range(400))]
TABLE = pd.DataFrame({"x": VALUES, "y": ["yes" if x > 0 else "no" for x in VALUES]})
COMMAS = TABLE.assign(x=[f"{x}".replace(".", ",") for x in VALUES])

Write = Callable[[Path], object]
PLAIN: dict[str, Write] = {
    "point.csv": lambda path: TABLE.to_csv(path, index=False, sep=";"),
    "quoted.csv": lambda path: TABLE.to_csv(path, index=False, quoting=1),
    "texts.jsonl": lambda path: TABLE.astype({"x": str}).to_json(
        path, orient="records", lines=True
    ),
}
"""Files in which numbers are text with decimal points."""
CLEAR: dict[str, Write] = {
    "comma.csv": lambda path: COMMAS.to_csv(path, index=False, sep=";"),
    "quoted_comma.csv": lambda path: COMMAS.to_csv(path, index=False),
    "commas.jsonl": lambda path: COMMAS.to_json(path, orient="records", lines=True),
    "commas.parquet": lambda path: COMMAS.to_parquet(path),
    "t.parquet": lambda path: TABLE.to_parquet(path),
    "t.feather": lambda path: TABLE.to_feather(path),
    "t.jsonl": lambda path: TABLE.to_json(path, orient="records", lines=True),
}
"""Files whose numbers are the same with a decimal comma, or have no spelling."""


@pytest.fixture(scope="module")
def german(tmp_path_factory: pytest.TempPathFactory) -> Ahpatron:
    """A folder with all files, and a model g.npz of the one with decimal commas."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("german"))
    for name, write in {**PLAIN, **CLEAR}.items():
        write(ahpatron.folder / name)
    options = ("--label", "y", "--decimal", ",", "-l", "arow", "--sigma", 9)
    ahpatron.succeed("run", "comma.csv", *options, "--save", "g.npz")
    return ahpatron


def scores(ahpatron: Ahpatron, *words: str) -> list[float]:
    return [float(row["score"]) for row in rows_of(ahpatron.succeed("predict", *words).out)]


@pytest.mark.parametrize("name", CLEAR)
def test_a_model_of_decimal_commas_reads_every_clear_file(german: Ahpatron, name: str) -> None:
    assert scores(german, "g.npz", name) == pytest.approx(scores(german, "g.npz", "comma.csv"))


@pytest.mark.parametrize("name", PLAIN)
def test_a_model_of_decimal_commas_refuses_numbers_that_could_be_two(
    german: Ahpatron, name: str
) -> None:
    shown = german.refusal(65, "predict", "g.npz", name)
    assert "'1.125', which could be two numbers" in shown
    assert "--decimal . reads 1.125" in shown


@pytest.mark.parametrize("name", PLAIN)
def test_the_option_says_that_a_file_has_decimal_points(german: Ahpatron, name: str) -> None:
    found = scores(german, "g.npz", name, "--decimal", ".")
    assert found == pytest.approx(scores(german, "g.npz", "comma.csv"))


def test_a_model_of_decimal_points_refuses_decimal_commas_unless_the_option_says_them(
    german: Ahpatron,
) -> None:
    options = ("--label", "y", "-l", "arow", "--sigma", 9)
    german.succeed("run", "point.csv", *options, "--save", "p.npz")
    assert "--decimal , reads 1.125" in german.refusal(65, "predict", "p.npz", "comma.csv")
    found = scores(german, "p.npz", "comma.csv", "--decimal", ",")
    assert found == pytest.approx(scores(german, "p.npz", "t.parquet"))


def test_a_model_is_continued_with_a_file_of_another_spelling(german: Ahpatron) -> None:
    assert "--decimal" in german.refusal(65, "run", "point.csv", "--resume", "g.npz")
    resumed = german.json("run", "point.csv", "--resume", "g.npz", "--decimal", ".")
    alike = german.json("run", "comma.csv", "--resume", "g.npz", "--decimal", ",")
    assert resumed["runs"][0]["mistakes"] == alike["runs"][0]["mistakes"]


def test_a_state_keeps_how_its_stream_is_written(german: Ahpatron) -> None:
    options = ("--label", "y", "-l", "arow", "--sigma", 9)
    lines = (german.folder / "comma.csv").read_bytes()
    answers = []
    for state, said in (("silent.npz", ()), ("said.npz", ("--decimal", ","))):
        german.succeed("run", "-", "--state", state, *options, "--decimal", ",", stdin=lines)
        thousands = b"x;y\n1.125;yes\n"
        answers.append(german.succeed("run", "-", "--state", state, *said, stdin=thousands).out)
    [answer] = rows_of(answers[0])
    assert [answer] == rows_of(answers[1])
    assert not answer.get("error")


POINT = b"x;y\n1.125;yes\n"
"""A stream that is not written as the training data of g.npz."""


@pytest.fixture
def begun(german: Ahpatron) -> Ahpatron:
    """The folder with a state s.npz that is the model of the file with decimal commas."""
    (german.folder / "s.npz").write_bytes((german.folder / "g.npz").read_bytes())
    return german


@pytest.mark.parametrize(
    "words",
    [("--state", "s.npz"), ("--resume", "g.npz", "--answers", "csv")],
    ids=lambda one: one[0],
)
def test_a_stream_that_begins_with_the_model_of_a_file_may_be_written_otherwise(
    begun: Ahpatron, words: tuple[str, ...]
) -> None:
    done = begun("run", "-", *words, stdin=POINT)
    assert done.code == 65
    assert "'1.125', which could be two numbers" in done.err
    [answer] = rows_of(begun.succeed("run", "-", *words, "--decimal", ".", stdin=POINT).out)
    expected = scores(begun, "g.npz", "comma.csv")[0]
    assert float(answer["score"]) == pytest.approx(expected)


def test_a_state_keeps_what_was_said_of_the_first_stream_of_a_model(begun: Ahpatron) -> None:
    begun.succeed("run", "-", "--state", "s.npz", "--decimal", ".", stdin=POINT)
    [answer] = rows_of(begun.succeed("run", "-", "--state", "s.npz", stdin=POINT).out)
    assert not answer["error"]
    said = ("--state", "s.npz", "--decimal", ",")
    assert "other values of --decimal" in begun.refusal(2, "run", "-", *said, stdin=POINT)


def test_a_state_that_does_not_say_how_its_stream_is_written_may_be_told(german: Ahpatron) -> None:
    german.succeed("run", "-", "--state", "t.npz", "--label", "y", stdin=POINT)
    comma = b"x;y\n1,125;yes\n"
    shown = german("run", "-", "--state", "t.npz", stdin=comma).err
    assert "--decimal , reads 1.125" in shown
    german.succeed("run", "-", "--state", "t.npz", "--decimal", ",", stdin=comma)


def test_the_options_of_tables_are_refused_for_a_model_of_libsvm_text(german: Ahpatron) -> None:
    german.write("a.svm", "+1 1:1\n-1 1:2\n" * 20)
    german.succeed("run", "a.svm", "--save", "a.npz")
    shown = german.refusal(2, "predict", "a.npz", "a.svm", "--decimal", ",")
    assert "for tables only: --decimal" in shown
