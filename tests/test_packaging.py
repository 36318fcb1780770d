"""What a distribution holds, and what it says of itself."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest

from ahpatron_cli import __version__
from ahpatron_cli.core.references import PUBLICATIONS
from support.command import REPOSITORY

PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())


def test_the_citation_is_of_this_version() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    assert re.search(r"^version: (.*)$", citation, re.MULTILINE)[1] == __version__  # type: ignore[index]  # there is one


def test_the_changelog_begins_with_this_version_and_its_date() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    released = re.search(r"^date-released: (.*)$", citation, re.MULTILINE)
    assert released is not None
    versions = re.findall(r"^## \[(.*)\](.*)$", (REPOSITORY / "CHANGELOG.md").read_text(), re.M)
    released_ones = [one for one in versions if one[0] != "Unreleased"]
    assert released_ones[0] == (__version__, f" - {released[1]}")


def test_the_citation_has_the_publication_of_ahpatron() -> None:
    citation = (REPOSITORY / "CITATION.cff").read_text()
    _, _, preferred = citation.partition("preferred-citation:")
    paper = PUBLICATIONS["liao2024"]
    start, _, end = paper.pages.partition("-")
    assert f'title: "{paper.title}"' in preferred
    for name, value in (
        ("collection-title", paper.venue),
        ("year", paper.year),
        ("volume", paper.volume),
        ("issue", paper.number),
        ("start", start),
        ("end", end),
        ("doi", paper.doi),
    ):
        assert f"\n  {name}: {value}\n" in preferred
    for author in paper.authors:
        given, _, family = author.rpartition(" ")
        assert f"family-names: {family}\n      given-names: {given}\n" in preferred


def test_what_the_build_names_is_there() -> None:
    build = PROJECT["tool"]["hatch"]["build"]["targets"]
    for name in (*build["sdist"]["include"], *build["wheel"]["shared-data"]):
        assert (REPOSITORY / name.lstrip("/")).exists(), name


@pytest.mark.slow
def test_the_wheel_holds_the_package_and_the_man_page_only(tmp_path: Path) -> None:
    """Needs hatchling, which pip fetches."""
    pytest.importorskip("pip")
    command = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", tmp_path, REPOSITORY]
    subprocess.run(command, check=True, timeout=300)
    (wheel,) = tmp_path.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    modules = {
        str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("ahpatron_cli/**/*.py")
    }
    assert modules <= set(names)
    others = {name for name in names if not name.startswith("ahpatron_cli/")}
    about = f"ahpatron_cli-{__version__}"
    files = ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")
    man_page = f"{about}.data/data/share/man/man1/ahpatron.1"
    assert others == {man_page, *(f"{about}.dist-info/{name}" for name in files)}


def test_links_of_the_long_description_are_absolute() -> None:
    text = (REPOSITORY / "README.md").read_text()
    hook = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    for substitution in hook["substitutions"]:
        text = re.sub(substitution["pattern"], substitution["replacement"], text)
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    files = [link.partition("/main/")[2].partition("#")[0] for link in links if "/main/" in link]
    assert [name for name in files if not (REPOSITORY / name).exists()] == []


def test_every_page_is_in_the_navigation_of_the_site() -> None:
    navigation = (REPOSITORY / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = set(re.findall(r": (\S+\.md)$", navigation, re.MULTILINE))
    pages = {path.name for path in (REPOSITORY / "docs").glob("*.md")}
    assert named == pages | {"index.md"}


def test_the_workflow_tests_every_python_that_is_named() -> None:
    matrix = re.search(
        r"python: \[(.*)\]", (REPOSITORY / ".github/workflows/tests.yml").read_text()
    )
    named = re.findall(r"Python :: (3\.\d+)", " ".join(PROJECT["project"]["classifiers"]))
    assert matrix is not None
    assert re.findall(r"3\.\d+", matrix[1]) == named
    assert PROJECT["project"]["requires-python"] == f">={named[0]}"
