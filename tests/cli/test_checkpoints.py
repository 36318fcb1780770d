"""`run --checkpoint`: a signal at any time loses nothing, and another run is refused."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import typer.main

from ahpatron_cli import checkpoints
from ahpatron_cli.cli.app import application
from ahpatron_cli.settings import Owner, RunSettings, Settings, SweepSettings, all_options
from support.command import Ahpatron
from support.labels import EVERY, table

ENDINGS = pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)],
    ids=["SIGTERM", "SIGINT", "SIGHUP"],
)
COUNTS = ("rounds", "mistakes", "updates", "support_size")


def counts(record: dict[str, Any]) -> list[Any]:
    return [record[name] for name in COUNTS]


@ENDINGS
@pytest.mark.parametrize("kind", EVERY)
def test_a_signal_while_rows_are_read_again_leaves_the_checkpoint(
    ahpatron: Ahpatron,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    number: signal.Signals,
    code: int,
) -> None:
    """The rows before the checkpoint are three batches; the signal comes after the first."""
    whole = table(EVERY[kind], 5000)
    ahpatron.write("t.csv", whole)
    words = ("run", "t.csv", "--label", "y", "--id", "name", "-l", "ahpatron", "-B", 20)
    uninterrupted = ahpatron.json(*words)["runs"][0]
    ahpatron.write("t.csv", "".join(whole.splitlines(keepends=True)[:3001]))
    ahpatron.succeed(*words, "--checkpoint", "c.npz")
    checkpoint = ahpatron.folder / "c.npz"
    before = checkpoint.read_bytes()
    ahpatron.write("t.csv", whole)
    replayed = checkpoints.RowChecksum.add

    def then_signal(checksum: checkpoints.RowChecksum, batch: Any) -> None:
        replayed(checksum, batch)
        os.kill(os.getpid(), number)
        monkeypatch.undo()

    monkeypatch.setattr(checkpoints.RowChecksum, "add", then_signal)
    ended = ahpatron(*words, "--checkpoint", "c.npz", "--out", "r.json")
    assert (ended.code, ended.out) == (code, "")
    assert "c.npz" in ended.err
    assert checkpoint.read_bytes() == before
    assert ahpatron.files() == {"t.csv", "c.npz"}
    (last,) = ahpatron.json(*words, "--checkpoint", "c.npz")["runs"]
    assert counts(last) == counts(uninterrupted)


CHANGED = {
    "learner": "-l rbp",
    "budget": "-B 60",
    "kernel": "--kernel laplacian",
    "sigma": "--sigma 2",
    "epsilon": "--epsilon 0.6",
    "param": "-p radius=3",
    "theorem": "--theorem 4",
    "scale": "--scale standard",
    "positive": "--positive no",
    "weight": "--weight yes=5",
    "classes": "--classes no,yes,maybe",
    "label": "--label other",
    "drop": "--drop b",
    "category": "--category kind",
    "na": "--na none",
    "id": "--id name",
    "limit": "--limit 100",
    "threshold": "--threshold 0.3",
}
"""Options that must not change: another value than that of the checkpoint.

Whole numbers, flags and options with a few legal words need no entry: see `other_value`.
"""


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Ahpatron:
    """A folder with a table, a checkpoint c.npz and a model m.npz of a run on it."""
    ahpatron = Ahpatron(tmp_path_factory.mktemp("begun"))
    lines = table(EVERY["text"]).splitlines()
    rows = [f"{line},{number % 3},{'pq'[number % 2]}" for number, line in enumerate(lines[1:])]
    rows[5] = rows[5].replace(rows[5].split(",")[1], "", 1)  # a missing cell
    ahpatron.write("t.csv", "\n".join([f"{lines[0]},kind,other", *rows, ""]))
    for where in ("--checkpoint c.npz", "--save m.npz"):
        ahpatron.succeed(*BEGUN, *where.split())
    return ahpatron


BEGUN = ("run", "t.csv", "--label", "y", "--drop", "name", "--drop", "other", "-l", "ahpatron")


def option_names(command: str) -> set[str]:
    commands: Any = typer.main.get_command(application())
    return {param.name for param in commands.commands[command].params}


def belonging_to(*owners: Owner, settings: type[Settings] = RunSettings) -> list[str]:
    options = all_options(settings)
    return sorted(name for name, option in options.items() if option.belongs_to in owners)


def test_every_option_of_run_says_what_it_belongs_to() -> None:
    owners = {name: option.belongs_to for name, option in all_options(RunSettings).items()}
    assert {*owners.values()} == {"model", "stream", "call"}
    assert {*owners, "paths", "usual_help"} == option_names("run")


@pytest.mark.parametrize("name", belonging_to("model", "stream"))
def test_a_checkpoint_refuses_every_option_that_changed(begun: Ahpatron, name: str) -> None:
    before = (begun.folder / "c.npz").read_bytes()
    words = [*changed(name), "--checkpoint", "c.npz"]
    said = begun.refusal(2, *words)
    assert ("one pass" if name in ("repeats", "shuffle") else "another run") in said
    assert (begun.folder / "c.npz").read_bytes() == before


def changed(name: str) -> list[str]:
    """The words of `BEGUN` with another value of this option."""
    words = [*BEGUN]
    if name == "learner":
        words.remove("-l")
        words.remove("ahpatron")
    if name == "label":
        words.remove("--label")
        words.remove("y")
        words[words.index("other")] = "y"  # which is no feature
    if name == "id":
        words.remove("--drop")
        words.remove("name")
    return [*words, *other_value(name)]


def other_value(name: str) -> list[str]:
    """The words that give an option another value than that of the checkpoint."""
    if name in CHANGED:
        return CHANGED[name].split()
    option = all_options(RunSettings)[name]
    if option.is_flag:
        return [option.flag]
    if option.legal:
        return [option.flag, next(word for word in option.legal if word != option.default)]
    assert option.is_integer, f"CHANGED needs a value of {option.flag}"
    assert isinstance(option.default, int)
    return [option.flag, str(option.default + 1)]


SAME_COUNTS = {"id", "layout"}
"""Options that must be the same with a checkpoint, but do not change the counts of a trial."""


@pytest.mark.parametrize(
    "name", sorted({*belonging_to("model", "stream", settings=SweepSettings)} - SAME_COUNTS)
)
def test_a_sweep_takes_no_trial_with_another_value_of_an_option(begun: Ahpatron, name: str) -> None:
    _, *words = BEGUN
    begun.succeed("sweep", *words, "--out", "r.jsonl")
    _, *other_words = changed(name)
    planned = begun.succeed("sweep", *other_words, "--out", "r.jsonl", "--dry-run")
    assert " 0 done" in planned.out


def test_a_checkpoint_continues_if_no_option_changed(begun: Ahpatron) -> None:
    done = begun.succeed(*BEGUN, "--checkpoint", "c.npz")
    assert "continues after 150 rounds" in done.err


@pytest.mark.parametrize("name", belonging_to("model"))
def test_a_model_refuses_every_option_whose_value_it_has(begun: Ahpatron, name: str) -> None:
    said = begun.refusal(2, "run", "t.csv", "--resume", "m.npz", *other_value(name))
    flag = all_options(RunSettings)[name].flag
    assert f"{flag} cannot be combined with --resume" in said


@pytest.mark.parametrize("words", ["-B 400", "--sigma 1.0", "-p budget=400", "--epsilon 0.50"])
def test_a_checkpoint_continues_if_a_default_is_written_out(begun: Ahpatron, words: str) -> None:
    done = begun.succeed(*BEGUN, "--checkpoint", "c.npz", *words.split())
    assert "continues after 150 rounds" in done.err


def test_a_checkpoint_names_the_parameter_that_changed(begun: Ahpatron) -> None:
    said = begun.refusal(2, *BEGUN, "--checkpoint", "c.npz", "-B", 60)
    assert "other values of --budget" in said


def test_the_order_of_repeated_options_does_not_matter(begun: Ahpatron) -> None:
    words = ("run", "t.csv", "--drop", "other", "--drop", "name", "-l", "ahpatron", "--label", "y")
    assert "continues after" in begun.succeed(*words, "--checkpoint", "c.npz").err


def test_what_belongs_to_the_call_may_change(begun: Ahpatron, tmp_path: Path) -> None:
    moved = tmp_path / "moved.csv"
    moved.write_bytes((begun.folder / "t.csv").read_bytes())
    words = ("run", moved, *BEGUN[2:], "--checkpoint", "c.npz", "--metrics", "--window", 50)
    assert "continues after 150 rounds" in begun.succeed(*words, "--save-every", 7, "-v").err


def test_rows_of_predictions_are_written_once_if_a_run_is_killed(ahpatron: Ahpatron) -> None:
    """Killed after a checkpoint: the same command writes the rows that are missing, no others."""
    rows = 30_000
    lines = [f"{(-1) ** number} 1:{number % 7}" for number in range(rows)]
    ahpatron.write("rows.svm", "\n".join([*lines, ""]))
    command = ("run", "rows.svm", "--checkpoint", "c.npz", "--save-every", 64)
    command += ("--predictions", "p.csv")
    with ahpatron.start(*command) as process:
        while process.poll() is None and not (ahpatron.folder / "c.npz").exists():
            time.sleep(0.01)
        process.kill()
    ahpatron.succeed(*command)
    numbers = [line.split(",")[4] for line in ahpatron.read("p.csv").splitlines()[1:]]
    assert numbers == [str(number) for number in range(1, rows + 1)]
