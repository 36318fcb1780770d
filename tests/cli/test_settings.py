"""Options are declared once; earlier spellings work, and are not shown; -h shows the usual ones."""

import re
import shutil
from importlib import import_module
from pathlib import Path

import pytest

from ahpatron_cli.cli.app import COMMANDS, application
from ahpatron_cli.cli.typer_bridge import COMMAND_SETTINGS
from ahpatron_cli.settings import PANELS, Settings, all_options, old_names
from support.command import Ahpatron

application()  # which fills COMMAND_SETTINGS
OLD_AND_NEW = [
    ("run t.csv --label y", "--cost b=3", "--weight b=3"),
    ("run three.svm", "--labels 1,2,3", "--classes 1,2,3"),
    ("run t.csv --label y --checkpoint c.npz", "--every 64", "--save-every 64"),
    ("sweep t.csv --label y -l arow --out r.jsonl", "-g budget=5,10", "-p budget=5,10"),
    ("sweep t.csv --label y -l arow --out r.jsonl", "--grid budget=5,10", "--param budget=5,10"),
    ("report done.jsonl", "--metric mistake_rate", "--best-by mistake_rate"),
    ("report done.jsonl", "--tune-orders 1", "--tune-repeats 1"),
    ("report done.jsonl", "--report r.html", "--html r.html"),
    ("sweep t.csv --label y -l arow --out r.jsonl", "--report r.html", "--html r.html"),
]


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a table, a file with three classes, and the results of a sweep."""
    folder = tmp_path_factory.mktemp("prepared")
    ahpatron = Ahpatron(folder)
    rows = [f"{number % 11},{number % 4},{'ab'[number % 5 == 0]}\n" for number in range(60)]
    ahpatron.write("t.csv", "age,code,y\n" + "".join(rows))
    ahpatron.write("three.svm", "1 1:1\n2 1:2\n3 1:3\n" * 20)
    ahpatron.succeed(
        *["sweep", "t.csv", "--label", "y", "-l", "arow", "--repeats", "3", "--out", "done.jsonl"]
    )
    return folder


@pytest.mark.parametrize(("command", "old", "new"), OLD_AND_NEW)
def test_an_earlier_spelling_gives_what_the_new_one_gives(
    prepared: Path, tmp_path: Path, command: str, old: str, new: str
) -> None:
    answers = []
    for number, option in enumerate((old, new)):
        folder = tmp_path / str(number)
        shutil.copytree(prepared, folder)
        ahpatron = Ahpatron(folder)
        document = ahpatron.json(*command.split(), *option.split())
        answers.append((_without_times(document), sorted(path.name for path in folder.iterdir())))
    assert answers[0] == answers[1]


def _without_times(document: object) -> object:
    if isinstance(document, dict):
        return {
            name: _without_times(value)
            for name, value in document.items()
            if "seconds" not in name and name not in ("command", "date")
        }
    if isinstance(document, list):
        return [_without_times(value) for value in document]
    return document


@pytest.mark.parametrize("command", COMMANDS)
def test_the_list_of_commands_describes_them_as_their_help_does(command: str) -> None:
    function = getattr(import_module(f"ahpatron_cli.cli.{command}"), command)
    assert function.__doc__.splitlines()[0] == COMMANDS[command]


def test_the_list_of_commands_is_whole_in_a_narrow_terminal(ahpatron: Ahpatron) -> None:
    shown = ahpatron.succeed("--help", COLUMNS="60").out
    text = " ".join(shown.split())
    assert [about for about in COMMANDS.values() if about not in text] == []


def test_large_numbers_of_the_help_have_grouped_digits(ahpatron: Ahpatron) -> None:
    shown = ahpatron.succeed("run", "--help").out
    assert "[default: 10,000,000]" in shown
    assert not re.search(r"\d{6}", shown)


def test_every_earlier_spelling_is_tested() -> None:
    tested = {old.split()[0] for _, old, _ in OLD_AND_NEW}
    assert tested == old_names(Settings.__subclasses__())


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_shows_every_option_and_no_earlier_spelling(
    ahpatron: Ahpatron, command: str
) -> None:
    shown = ahpatron.succeed(command, "--help").out
    words = {word.strip(",") for word in shown.split()}
    options = all_options(COMMAND_SETTINGS[command]).values()
    assert {option.flag for option in options} <= words
    old = {name for option in options for name in option.old_names}
    assert not old & {line.split()[0] for line in shown.splitlines() if line.strip()}


@pytest.mark.parametrize("command", COMMANDS)
def test_the_headings_of_the_help_have_one_order(ahpatron: Ahpatron, command: str) -> None:
    lines = ahpatron.succeed(command, "--help").out.splitlines()
    headings = [line.removesuffix(":") for line in lines if line.removesuffix(":") in PANELS]
    assert headings == [panel for panel in PANELS if panel in headings]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_help_has_at_most_ten_options_and_the_examples(
    ahpatron: Ahpatron, command: str
) -> None:
    shown = ahpatron.succeed(command, "-h").out
    options = all_options(COMMAND_SETTINGS[command])
    usual = [option.flag for option in options.values() if option.usual]
    assert 1 <= len(usual) <= 10
    listed = [line for line in shown.splitlines() if line.startswith("  -")]
    assert len(listed) == len(usual)
    assert "Examples:" in shown


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_the_learner_is_the_first_option(ahpatron: Ahpatron, command: str) -> None:
    for flag in ("-h", "--help"):
        lines = ahpatron.succeed(command, flag).out.splitlines()
        first = next(line for line in lines if line.startswith("  -"))
        assert first.strip().startswith("-l, --learner")


@pytest.mark.parametrize(("columns", "widest"), [(60, 60), (80, 80), (100, 100), (300, 120)])
def test_the_help_is_as_wide_as_the_terminal_up_to_120_columns(
    ahpatron: Ahpatron, columns: int, widest: int
) -> None:
    shown = ahpatron.succeed("run", "--help", COLUMNS=str(columns)).out
    options = shown.partition("Examples:")[0]
    assert widest - 20 < max(map(len, options.splitlines())) <= widest
