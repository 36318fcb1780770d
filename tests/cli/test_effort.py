"""How much is read and done: no more than the rows need, and no more per column or class."""

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from ahpatron_cli.data.csv_text import CsvReader
from ahpatron_cli.data.schema import Column, Schema
from ahpatron_cli.data.source import CHUNK_BYTES, Source
from support.command import Ahpatron

LINES = 200_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with long files."""
    made = tmp_path_factory.mktemp("effort")
    rows = [f"{i % 2} 1:{i % 97} 2:{i * i % 89} 3:0.{i:07}\n" for i in range(LINES)]
    (made / "long.svm").write_text("".join(rows))
    cells = [f"{i % 97},{i * i % 89},0.{i:07},{'yes' if i % 2 else 'no'}\n" for i in range(LINES)]
    (made / "long.csv").write_text("a,b,c,y\n" + "".join(cells))
    return made


@contextmanager
def counting_bytes(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The sizes of all pieces that are read from data files."""
    sizes: list[int] = []
    read = Source._raw

    def counted(source: Source, size: int) -> bytes:
        piece = read(source, size)
        sizes.append(len(piece))
        return piece

    with monkeypatch.context() as patch:
        patch.setattr(Source, "_raw", counted)
        yield sizes


@pytest.mark.parametrize("way", [[], ["--shuffle"], ["--predictions", "p.csv"]])
@pytest.mark.parametrize("data", [["long.svm"], ["long.csv", "--label", "y"]])
def test_a_limited_run_does_not_read_the_rest_of_the_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, data: list[str], way: list[str]
) -> None:
    ahpatron = Ahpatron(folder)
    size = (folder / data[0]).stat().st_size
    with counting_bytes(monkeypatch) as sizes:
        ahpatron.succeed("run", *data, "-l", "perceptron", "--limit", 10, *way)
    assert sum(sizes) <= 2 * CHUNK_BYTES < size


def test_a_plan_reads_a_file_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ahpatron = Ahpatron(folder)
    words = ("sweep", "long.svm", "-l", "perceptron", "-g", "sigma=1,2", "--out", "r.jsonl")
    with counting_bytes(monkeypatch) as sizes:
        ahpatron.succeed(*words, "--dry-run")
    assert sum(sizes) == (folder / "long.svm").stat().st_size


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_hash_with_a_limit_is_that_of_the_rows(
    ahpatron: Ahpatron, rings: Path, pack: Callable[[bytes], bytes]
) -> None:
    lines = rings.read_bytes().splitlines(keepends=True)

    def hashed(*rows: bytes) -> str:
        ahpatron.write("data.svm", pack(b"".join(rows)))
        words = ("run", "data.svm", "-l", "perceptron", "--limit", 100)
        found = ahpatron.json(*words)["data"]["sha256"]
        assert ahpatron.json(*words, "--shuffle")["data"]["sha256"] == found
        return str(found)

    first = hashed(*lines)
    assert hashed(*lines[:100]) == hashed(b"# a comment\n", *lines[:100]) == first
    assert hashed(lines[1], lines[0], *lines[2:]) != first
    assert hashed(*lines[:99], lines[99].replace(b"1:", b"3:").replace(b" 2:", b" 4:")) != first
    assert hashed(*lines[:99]) != first


def test_a_sweep_with_a_limit_is_resumed_unless_the_rows_change(
    ahpatron: Ahpatron, rings: Path
) -> None:
    lines = rings.read_text().splitlines(keepends=True)
    words = ("sweep", "data.svm", "-l", "perceptron", "--limit", 100, "--out", "r.jsonl")
    for rows, trials in ((lines, 1), (lines[:150], 1), (lines[1:], 2)):
        ahpatron.write("data.svm", "".join(rows))
        ahpatron.succeed(*words)
        assert len(ahpatron.trials()) == trials


class Counted(set[str]):
    """A set that counts how often another set is made of it."""

    made = 0

    def difference(self, *others: Any) -> set[str]:
        self.made += 1
        return super().difference(*others)

    def __sub__(self, other: Any) -> set[str]:
        self.made += 1
        return super().__sub__(other)


def test_the_work_for_a_wide_table_is_done_once_per_chunk() -> None:
    """Linear in the columns: the columns are chosen once, and chunks have as many rows."""
    chunks = {}
    for columns in (512, 4096):
        names = [f"c{i}" for i in range(columns)]
        row = ",".join("1.25" for _ in names) + "\n"
        reader = CsvReader(BytesIO((",".join(names) + "\n" + row * 1000).encode()).read, "d.csv")
        used = Counted(names)
        chunks[columns] = len(list(reader.batches(used, set())))
        assert used.made <= chunks[columns]
    assert chunks[4096] <= chunks[512] + 1


def test_names_of_labels_are_found_without_comparing_all_with_all() -> None:
    compared = 0

    class Code(float):
        def __eq__(self, other: object) -> bool:
            nonlocal compared
            compared += 1
            return float(self) == other

        __hash__ = float.__hash__

    codes = [Code(i) for i in range(300)]
    labels: dict[str, float] = {f"label {i}": code for i, code in enumerate(codes)}
    schema = Schema([Column("a", "number")], "y", labels)
    assert schema.label_names([float(i) for i in range(300)]) == list(labels)
    assert compared <= 4 * len(codes)
