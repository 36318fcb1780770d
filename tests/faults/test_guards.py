"""Every guard of the package has a test that fails without it; `guards.md` names them."""

from __future__ import annotations

import re

import pytest

from support.command import REPOSITORY

LIST = (REPOSITORY / "tests" / "faults" / "guards.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| (\d+) \| .* \| (\S+\.py) \| caught \| `(\S+)::(\w+)", LIST, re.MULTILINE)


def test_the_list_is_as_long_as_it_was() -> None:
    assert len(ROWS) >= 38


@pytest.mark.parametrize(("number", "source", "path", "function"), ROWS)
def test_file_and_test_of_a_guard_exist(number: str, source: str, path: str, function: str) -> None:
    assert (REPOSITORY / source).is_file()
    assert f"\ndef {function}(" in (REPOSITORY / path).read_text(encoding="utf-8")
