"""README and docs/: every command and every program is run, and prints what is shown."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from ahpatron_cli.cli.app import COMMANDS
from ahpatron_cli.core import ALGORITHM
from ahpatron_cli.core.registry import BUILT_IN
from ahpatron_cli.errors import ExitCode
from ahpatron_cli.records import to_json
from ahpatron_cli.settings import Settings, old_names
from ahpatron_cli.sweep.results_file import ResultsFile
from support.command import REPOSITORY, Ahpatron
from support.documents import (
    PAGES,
    Block,
    blocks,
    commands,
    furnish,
    read,
    run,
    same_output,
    session,
)
from support.trials import make_document


@pytest.fixture(scope="module")
def reference() -> ModuleType:
    return loaded("docs/make_reference.py")


def loaded(script: str) -> ModuleType:
    path = REPOSITORY / script
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # where dataclasses look
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_shows_is_what_happens(page: str, tmp_path: Path) -> None:
    furnish(tmp_path)
    with session(tmp_path) as run_program:
        for block, shown in blocks(page):
            where = f"{page}:{block.line}"
            if not block.runs:
                continue
            if block.kind == "python":
                printing = re.findall(r"^print\(.*\)  # (.*)$", block.text, re.MULTILINE)
                assert same_output("\n".join(printing), run_program(block, where)), where
            else:
                check_commands(block, shown, where=where, folder=tmp_path)


def check_commands(block: Block, shown: str | None, *, where: str, folder: Path) -> None:
    """Run the commands of a block and compare what they print with what is shown after it."""
    out = ""
    err = ""
    *others, last = commands(block.text)
    for command in (*others, last):
        done = run(command, folder)
        expected = block.mark if command is last and block.mark.startswith("exit") else "exit 0"
        assert f"exit {done.code}" == expected, f"{where}: {done.err}"
        out += done.out
        err += done.err
    if shown is not None:
        assert any(same_output(shown, printed) for printed in (out, err, err + out)), (
            f"{where} shows\n{shown}\nprinted was\n{err}{out}"
        )


def test_outputs_are_made_with_programs_that_share_their_names_as_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = "docs/dataframes.md"
    make_outputs = loaded("docs/make_outputs.py")
    monkeypatch.setattr(make_outputs, "REPOSITORY", tmp_path)
    folder = tmp_path / "docs"
    folder.mkdir()
    make_outputs.refresh(page, folder)
    assert (tmp_path / page).read_text(encoding="utf-8") == read(page)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("43.06 ± 5.21", "43.06 ± 5.20", True),
        ("1.5e-10", "1.6e-10", True),
        ("1,-0.8315457487729289", "1,-0.83154574877293", True),
        ("Mistakes %  Seconds\n 7.20  0.051\n", "Mistakes %  Seconds\n 7.20  12.500\n", True),
        ("arow  7.20  1,121", "arow  7.20  1,122", False),
        ("arow  7.20", "arow  7.20\nwarning: near ties", False),
        ("43.06 ± 5.21", "43.06 ± 5.19", False),
        ("7.20", "-7.20", False),
        ("1.5e-10", "1.5e-11", False),
        ("version 0.2.0", "version 0.3.0", False),
        ("1,-0.8315457487729289", "1,-0.8315487487729289", False),
        ("ζ̂  Seconds\n0.2976    0.051\n", "ζ̂  Seconds\n0.2979    0.051\n", False),
    ],
)
def test_outputs_are_compared_up_to_rounding_and_times(
    shown: str, printed: str, same: bool
) -> None:
    assert same_output(shown, printed) == same


def test_blocks_that_are_not_run_say_why() -> None:
    """And there are few."""
    excused = [
        f"{page}:{block.line}: {block.mark}"
        for page in PAGES
        for block, _ in blocks(page)
        if block.mark.startswith("not run: ")
    ]
    assert len(excused) < 15, excused


@pytest.mark.parametrize("page", PAGES)
def test_tables_are_those_of_the_declarations(page: str, reference: ModuleType) -> None:
    """If not: `python docs/make_reference.py`."""
    assert reference.with_tables(read(page)) == read(page)
    assert reference.man_page() == reference.MAN_PAGE.read_text(encoding="utf-8")


def test_the_benchmark_has_the_mistakes_of_metron_on_the_streams_of_river(
    tmp_path: Path, reference: ModuleType
) -> None:
    """The other streams are not here. A changed count: measure again, see docs/benchmark.md."""
    pytest.importorskip("river")
    field = loaded("tests/benchmarks/field.py")
    errors = reference.BENCHMARK["models"]["metron"]["errors"]
    for stream in field.streams(None):
        path = stream.write_to(tmp_path)
        mistakes = field.mistakes_of_ours("metron", path)
        rows = reference.BENCHMARK["rows"][stream.name]
        assert 100 * mistakes / rows == pytest.approx(errors[stream.name], abs=0.3), stream.name


def test_the_benchmark_names_the_version_of_river(reference: ModuleType) -> None:
    assert f"river {reference.BENCHMARK['river']}," in read("docs/benchmark.md")
    assert f"version {reference.BENCHMARK['river']};" in read("README.md")


def test_the_readme_has_the_best_figures_of_river(reference: ModuleType) -> None:
    """Published or measured: on ImageSegments, a forest of today is better than those of 2023."""
    (row,) = [line for line in read("README.md").splitlines() if "models of river on each" in line]
    rates = [float(rate) for rate in re.findall(r"\d+\.\d", row)]
    river = set(reference.BENCHMARK["published by river"]) - {"no change"}
    for stream, rate in zip(reference.BENCHMARK["kinds"]["river"], rates, strict=True):
        for name in river & set(reference.BENCHMARK["models"]):
            assert rate <= reference.BENCHMARK["models"][name]["errors"][stream]


def test_every_command_and_declaration_has_its_table(reference: ModuleType) -> None:
    made = {found[1] for page in PAGES for found in reference.MADE.findall(read(page))}
    wanted = {f"options {name}" for name in reference.commands()}
    wanted |= {f"benchmark {name}" for name in reference.BENCHMARK["kinds"]}
    wanted |= {
        f"benchmark {name}" for name in ("models", "rows", "summary", "losses", "published", "MOA")
    }
    assert made == wanted | {
        *("learners", "kernels", "exit codes", "names of the core", "publications")
    }
    assert set(reference.EXIT_CODES) == set(ExitCode)


def test_the_learners_shown_are_the_examples() -> None:
    shown = [block.text for block, _ in blocks("docs/own-learners.md") if block.kind == "python"]
    for name in ("own_learner", "shifting"):
        source = read(f"docs/examples/{name}.py")
        assert any(source.endswith(text) for text in shown), name


def test_the_fields_of_a_profile_are_described(tmp_path: Path) -> None:
    done = Ahpatron(REPOSITORY)("inspect", "sample_data/rings.svm", "--format", "json")
    for name in json.loads(done.out):
        assert f"`{name}`" in read("docs/inspect.md"), name


def test_the_json_shown_has_the_names_of_the_json_written() -> None:
    document = to_json(make_document())
    shown = read("docs/output.md")
    for part in (document, document["data"], document["runs"][0], document["summary"][0]):
        for name in part:
            assert f'"{name}"' in shown, name


def test_the_cron_example_as_written(tmp_path: Path) -> None:
    script = next(
        block.text for block, _ in blocks("docs/sweeps.md") if block.text.startswith("#!")
    )
    shutil.copytree(REPOSITORY / "sample_data", tmp_path / "sample_data")
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parents[1])
    job = tmp_path / "nightly.sh"
    job.write_text(script)
    job.chmod(0o755)
    for _ in range(2):
        done = subprocess.run([job], cwd="/", env={}, capture_output=True, timeout=120, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert (tmp_path / "nightly.csv").read_text().count("\n") == 11
    assert "</html>" in (tmp_path / "nightly.html").read_text()
    assert (tmp_path / "nightly.jsonl").read_text().count('"status": "ok"') == 50
    before = (tmp_path / "nightly.csv").read_bytes()
    with ResultsFile(str(tmp_path / "nightly.jsonl"), {"algorithm": ALGORITHM}):  # still running
        done = subprocess.run([job], cwd="/", env={}, capture_output=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (75, b"")
    assert (tmp_path / "nightly.csv").read_bytes() == before


def test_the_papers_table_is_a_sweep(tmp_path: Path) -> None:
    names = re.findall(r'path = "(.*)"', (REPOSITORY / "sample_data/paper.toml").read_text())
    assert len(names) == 6
    for number, name in enumerate(names):
        (tmp_path / name).write_text(f"+1 1:{number}\n-1 1:2\n" * 50)
    config = ["--config", "sample_data/paper.toml", "--out", tmp_path / "r.jsonl", "--dry-run"]
    printed = Ahpatron(REPOSITORY)("sweep", *(tmp_path / name for name in names), *config).out
    settings = 5 + 1 + 3 * 7 + 2  # of ahpatron, pomdr, three with a step, two with a tolerance
    others = 3 * 2  # another tolerance on three of the files
    assert printed.startswith(f"{10 * (6 * settings + others):,} trials")


FIGURE = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?=[ |%)\u2013]|, |$)")
"""A number that stands alone, with a blank, a comma, a percent sign or a bar after it."""


COMMAND_OF_A_BENCHMARK = re.compile(r"python tests/benchmarks/(\w+\.py)((?: [a-z]+\b)?)")
"""The name of a script and, if there is one, its first word, such as `start`."""


def links() -> list[tuple[str, str]]:
    return [
        (page, target)
        for page in PAGES
        for target in re.findall(r"\]\(([^)\s]+)\)|src(?:set)?=\"([^\"]+)\"", read(page))
        for target in target
        if target and not target.startswith("http")
    ]


def test_links_lead_somewhere() -> None:
    assert len(links()) > 30
    for page, target in links():
        path, _, anchor = target.partition("#")
        file = (REPOSITORY / page).parent / path if path else REPOSITORY / page
        assert file.exists(), f"{page}: {target}"
        if anchor:
            titles = re.findall(r"^#+ (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)
            anchors = [re.sub(r"[^\w\- ]", "", title).lower().replace(" ", "-") for title in titles]
            assert anchor in anchors, f"{page}: {target}"


@pytest.mark.parametrize("page", PAGES)
def test_lists_are_the_same_on_the_site_as_in_the_repository(page: str) -> None:
    """Python-Markdown nests items at four blanks, and joins bullets to a numbered list above."""
    text = re.sub(r"^```.*?^```", "", read(page), flags=re.MULTILINE | re.DOTALL)
    assert not re.findall(r"^ {1,3}(?:-|\d+\.) .*", text, re.MULTILINE)
    assert not re.findall(r"^\d+\. .*\n(?: .*\n|\n)*- .*", text, re.MULTILINE)


def test_figures_of_the_readme_are_those_of_the_pages_it_links() -> None:
    """One place per figure: those of a bullet or a recipe are in a page that it links."""
    text = read("README.md")
    table = text.partition("## Comparison with other tools")[2].partition("## More")[0]
    trust = text.partition("## Why trust it?")[2].partition("## Comparison")[0]
    seen = 0
    bullets = [line for line in text.splitlines() if line.startswith(("- **", "**"))]
    for claim in (table, trust, *bullets):
        pages = {target.partition("#")[0] for target in re.findall(r"\]\((docs/[^)]+)\)", claim)}
        there = {figure for page in pages for figure in FIGURE.findall(read(page))}
        missing = set(FIGURE.findall(claim)) - there
        assert not missing, f"{missing} in none of {pages}"
        seen += len(FIGURE.findall(claim))
    assert seen > 15


def test_the_readme_counts_the_learners() -> None:
    assert re.findall(r"All (\d+) learners", read("README.md")) == [str(len(BUILT_IN))]


def test_the_readme_is_short() -> None:
    assert len(read("README.md").splitlines()) <= 200


@pytest.mark.parametrize("picture", sorted((REPOSITORY / "docs/pictures").glob("*.svg")))
def test_pictures_are_small_and_used(picture: Path) -> None:
    assert picture.stat().st_size < 60_000
    targets = {Path(target).name for _, target in links()}
    assert picture.name in targets


def test_benchmarks_that_pages_name_are_explained_by_their_scripts() -> None:
    named = {found for page in PAGES for found in re.findall(COMMAND_OF_A_BENCHMARK, read(page))}
    assert len(named) > 8
    for script, word in named:
        source = read(f"tests/benchmarks/{script}")
        assert f"python tests/benchmarks/{script}{word}" in source, f"{script}{word}"


def named_modules() -> set[str]:
    """Names of the modules in docs/architecture.md, without their folders."""
    return {Path(name).name for name in re.findall(r"`([\w/]+\.py)`", read("docs/architecture.md"))}


def test_the_architecture_names_modules_that_exist() -> None:
    existing = {path.name for path in (REPOSITORY / "ahpatron_cli").rglob("*.py")}
    assert named_modules() <= existing


def test_the_architecture_names_every_module() -> None:
    package = REPOSITORY / "ahpatron_cli"
    described_as_folders = ("output", "learners")
    expected = set()
    for path in package.rglob("*.py"):
        is_command = path.parent.name == "cli" and path.stem in COMMANDS
        if path.parent.name not in described_as_folders and not is_command:
            expected.add(path.name)
    expected -= {"__init__.py", "__main__.py"}
    assert expected - named_modules() == set()


def test_running_lists_every_old_name_of_an_option() -> None:
    _, _, section = read("docs/running.md").partition("## Old and new names")
    listed = set()
    for line in section.splitlines():
        old = line.split("|")[1] if line.startswith("| `") else ""
        listed.update(re.findall(r"(?<!\S)`?(--?[a-z-]+)", old))
    assert listed == old_names(Settings.__subclasses__())
