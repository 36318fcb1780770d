"""Tables in all formats, compared with the files in golden/; `support/golden.py` writes them."""

import pytest

from support.golden import FOLDER, texts

TEXTS = dict(texts())


@pytest.mark.parametrize("name", TEXTS)
def test_the_text_is_the_golden_one(name: str) -> None:
    assert TEXTS[name] == (FOLDER / name).read_text(encoding="utf-8")
    assert TEXTS[name].endswith("\n")
    assert not TEXTS[name].endswith("\n\n")


def test_there_is_no_other_golden_file() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(TEXTS)
