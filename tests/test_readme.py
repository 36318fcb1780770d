"""The README is the manual: what it shows is what the tool does."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

from ahpatron_cli.cli.app import app
from ahpatron_cli.core import KERNELS, REGISTRY
from ahpatron_cli.core.theorems import THEOREMS
from ahpatron_cli.errors import ExitCode
from ahpatron_cli.records import DataRecord, Report, RunRecord, to_json
from support.command import REPOSITORY, Ahpatron

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
FIRST_STEPS = README[README.index("## First steps") : README.index("## What the numbers mean")]


def in_repository(arguments: list[str]) -> str:
    ahpatron = Ahpatron(REPOSITORY)
    several = {"-j", "--jobs"}.intersection(arguments)
    done = ahpatron.process(*arguments) if several else ahpatron(*arguments)
    assert done.code == 0, done.err
    return done.out


def without_seconds(table: str) -> list[list[str]]:
    return [line.split()[:-1] for line in table.strip().splitlines()]


def test_the_first_command_prints_what_the_readme_shows() -> None:
    command = re.search(r"<!-- the first command -->\n```sh\n(.*)\n```", README)
    assert command
    arguments = command[1].split(".venv/bin/ahpatron ")[1].split()
    shown = re.search(r"```\n(sample_data/rings.svm: .*?)```", README, re.DOTALL)
    assert shown
    assert without_seconds(in_repository(arguments)) == without_seconds(shown[1])


def test_the_first_comparison_prints_what_the_readme_shows() -> None:
    part = README[README.index("<!-- the first comparison -->") :]
    command = re.search(r"```sh\n\.venv/bin/ahpatron (.*)\n```", part)
    shown = re.search(r"```\n(sample_data/.*?)```", part, re.DOTALL)
    assert command
    assert shown
    assert without_seconds(in_repository(command[1].split())) == without_seconds(shown[1])


def test_the_sweep_prints_what_the_readme_shows(tmp_path: Path) -> None:
    command = re.search(
        r"^ahpatron (sweep sample_data/rings.svm .*)--out rings.jsonl$", README, re.M
    )
    assert command
    shown = re.search(r"```\n(rings.svm: .*?)```", README, re.DOTALL)
    assert shown
    printed = in_repository([*command[1].split(), "--out", str(tmp_path / "rings.jsonl")])
    times = re.compile(r" 0\.\d{3}( +10)?$", re.MULTILINE)
    assert times.sub("", printed) == times.sub("", shown[1])


def test_the_certificates_are_what_the_readme_shows() -> None:
    command = re.search(r"^ahpatron (run .* --certify)$", README, re.M)
    assert command
    section = README[README.index("## Certificates") :]
    shown = re.search(r"```\n(sample_data/rings.svm: .*?)```", section, re.DOTALL)
    assert shown
    times = re.compile(r" 0\.\d{3}$", re.MULTILINE)
    assert times.sub("", in_repository(command[1].split())) == times.sub("", shown[1])


def test_every_theorem_is_in_the_readme() -> None:
    section = README[README.index("## Certificates") : README.index("## Sweeps")]
    for theorem in THEOREMS:
        assert f"`{theorem.key}`" in section
        for learner in (theorem.learner, *theorem.compositions):
            assert f"`{learner}`" in section


def test_inspect_prints_what_the_readme_shows() -> None:
    shown = re.search(
        r"```sh\nahpatron (inspect .*)\n```\n\n```\n(sample_data/rings.svm: .*?)```",
        README,
        re.DOTALL,
    )
    assert shown
    assert in_repository(shown[1].split()) == shown[2]


def test_the_fields_of_a_profile_are_in_the_readme() -> None:
    document = json.loads(in_repository(["inspect", "sample_data/rings.svm", "--format", "json"]))
    section = README[README.index("## Looking at data") : README.index("## Data")]
    for name in document:
        assert f"`{name}`" in section, name


def test_the_cron_example_as_written(tmp_path: Path) -> None:
    script = re.search(r"<!-- the cron example -->\n```sh\n(.*?)```", README, re.DOTALL)
    assert script
    shutil.copytree(REPOSITORY / "sample_data", tmp_path / "sample_data")
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    job = tmp_path / "nightly.sh"
    job.write_text(script[1])
    job.chmod(0o755)
    for _ in range(2):
        done = subprocess.run([job], cwd="/", env={}, capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "nightly.csv").read_text().count("\n") == 11
    assert "</html>" in (tmp_path / "nightly.html").read_text()
    assert (tmp_path / "nightly.jsonl").read_text().count('"status": "ok"') == 50


def test_the_papers_table_is_a_sweep(tmp_path: Path) -> None:
    names = re.findall(r'path = "(.*)"', (REPOSITORY / "sample_data/paper.toml").read_text())
    assert len(names) == 6
    for number, name in enumerate(names):
        (tmp_path / name).write_text(f"+1 1:{number}\n-1 1:2\n" * 50)
    files = [str(tmp_path / name) for name in names]
    config = ["--config", "sample_data/paper.toml", "--out", str(tmp_path / "r.jsonl")]
    every = [
        "-l",
        "ahpatron",
        "-l",
        "pomdr",
        "-l",
        "nogd",
        "-l",
        "bogd++",
        "-l",
        "fogd",
        "-l",
        "projectron",
        "-l",
        "projectron++",
    ]
    settings = 5 + 1 + 3 * 7
    said = in_repository(["sweep", *files, *config, "--dry-run"])
    assert said.startswith(f"{60 * settings:,} trials: {6 * settings} settings on 6 files")
    said = in_repository(["sweep", *files, *config, *every, "--dry-run"])
    assert said.startswith(f"{60 * (settings + 4):,} trials")


def test_links_within_the_readme_lead_somewhere() -> None:
    titles = re.findall(r"^#+ (.*)$", README, re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles}
    links = re.findall(r"\]\(#([^)]*)\)", README)
    assert links
    assert set(links) <= anchors


def test_every_option_is_in_the_readme() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group of commands
    for parameter in [one for name in ("run", "sweep", "inspect") for one in commands[name].params]:
        for option in parameter.opts:
            if option.startswith("-"):
                assert f"`{option}" in README or f" {option}" in README, option


def test_every_learner_kernel_and_parameter_is_in_the_readme() -> None:
    for kind in [*REGISTRY.values(), *KERNELS.values()]:
        assert f"`{kind.name}`" in README
        for name in kind.specs():
            assert f"`{name}`" in README or f"-p {name}=" in README or f"--{name}" in README, name


def test_every_exit_code_is_in_the_readme() -> None:
    section = README[README.index("## Exit codes") :]
    for code in ExitCode:
        assert re.search(rf"\b{int(code)}\b", section), code


def test_the_json_shown_has_the_names_of_the_json_written() -> None:
    run = RunRecord("ahpatron", {}, 0, 0, 1, 0, 0.0, 0, 0, 0, 0.0, 0, 0.0, 0, 0.0)
    document = to_json(Report("", DataRecord("", 0, 0, (-1, 1), ""), [run], 0.0))
    shown = README[README.index('{"schema": 1') :]
    for part in (document, document["data"], document["runs"][0], document["summary"][0]):
        for name in part:
            assert f'"{name}"' in shown, name


def test_the_error_shown_is_the_error_made(ahpatron: Ahpatron) -> None:
    shown = re.search(r"```\n(error: .*?)```", README, re.DOTALL)
    assert shown
    ahpatron.write("bad.svm", "1 1:1\n-1 2:1\n" * 8 + "-1 3:0.5 2:1.25\n")
    done = ahpatron("run", "bad.svm")
    assert (done.code, done.err) == (65, shown[1])


def test_the_learner_that_the_readme_adds_works(monkeypatch: pytest.MonkeyPatch) -> None:
    source = re.search(r"```python\n(@dataclass\nclass Cautious.*?)```", README, re.DOTALL)
    assert source
    names: dict[str, object] = {}
    preamble = (
        "from dataclasses import dataclass\n"
        "from ahpatron_cli.core.learners.base import Learner, wrong\n"
        "from ahpatron_cli.core.parameters import real\n"
    )
    exec(preamble + source[1], names)
    from ahpatron_cli.core import play
    from support.streams import make_stream

    stream = make_stream(seed=0, rounds=200, features=2)
    learner = names["Cautious"]
    player = play(learner(weight=0.25), stream.X, stream.y)  # type: ignore[operator]  # a class made by exec
    assert 0 < player.tally.mistakes < 100
    assert player.tally.updates == player.f.size


def test_the_estimator_prints_what_the_readme_shows(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(REPOSITORY)
    example = re.search(r"```python\n(from sklearn.*?)```", README, re.DOTALL)
    assert example
    exec(example[1], {})
    shown = re.findall(r"^print\(.*\)  # (.*)$", example[1], re.MULTILINE)
    assert len(shown) == 3
    assert capsys.readouterr().out.splitlines() == shown
