"""`ahpatron convert`: tables to LIBSVM text."""

from __future__ import annotations

import subprocess
from io import BytesIO
from pathlib import Path
from tempfile import NamedTemporaryFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ahpatron_cli.cli.convert import libsvm_text
from ahpatron_cli.data.libsvm.grammar import parse_line
from ahpatron_cli.data.source import Source, open_source
from ahpatron_cli.data.tables import TableOptions, TableReader
from support.command import COMMAND, Ahpatron

BANK = "age,job,balance,y\n" + "".join(
    f"{20 + i % 37},{('clerk', 'boss', 'nurse')[i % 3]},{(i * 7919) % 1000 / 8},"
    f"{'yes' if i % 37 > 12 else 'no'}\n"
    for i in range(300)
)


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = ["bash", "-o", "pipefail", "-c", command]
    return subprocess.run(
        words, cwd=folder, capture_output=True, text=True, timeout=120, check=False
    )


def test_a_table_becomes_libsvm_text(ahpatron: Ahpatron) -> None:
    ahpatron.write("bank.csv", BANK)
    written = ahpatron.succeed("convert", "bank.csv", "--label", "y")
    assert written.out.splitlines()[:4] == [
        "# labels: -1=yes +1=no",
        "# features: 1=age 2=job=boss 3=job=clerk 4=job=nurse 5=balance",
        "+1 1:20 3:1".replace("+", ""),
        "1 1:21 2:1 5:114.875",
    ]
    assert "note: " in written.err
    filed = ahpatron("convert", "bank.csv", "--label", "y", "--out", "bank.svm", "-q")
    assert (filed.code, filed.out, filed.err) == (0, "", "")
    assert (ahpatron.folder / "bank.svm").read_text() == written.out
    piped = ahpatron.succeed("convert", "-", "--label", "y", stdin=BANK.encode())
    assert piped.out == written.out.replace(".0\n", "\n")  # numbers of a file are copied
    run = ahpatron.json("run", "bank.svm", "--scale", "standard", "-B", 20)
    assert (run["data"]["rounds"], run["data"]["features"]) == (300, 5)


def test_options(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "id,m,a,b,y\nk1,1,,5,x\nk2,2,7,5,?\nk3,1,8,5,z\n")
    options = ("--id", "id", "--category", "m", "--drop", "b", "--missing", "mean")
    done = ahpatron.succeed("convert", "d.csv", "--label", "y", *options, "--positive", "x")
    assert done.out.splitlines()[2:] == ["1 1:1 3:7.5", "? 2:1 3:7", "-1 1:1 3:8"]


@given(
    st.lists(
        st.tuples(
            st.sampled_from([-1.0, 1.0, 0.0, 7.0, np.nan]),
            st.lists(
                st.floats(allow_nan=False, allow_infinity=False) | st.just(0.0),
                min_size=3,
                max_size=3,
            ),
        ),
        min_size=1,
    ),
)
def test_numbers_are_read_back_exactly(content: list[tuple[float, list[float]]]) -> None:
    content += [(-1.0, [1.0, 2.0, 3.0]), (1.0, [1.0, 2.0, 3.0])]
    lines = [",".join(map(repr, [*row, label])) for label, row in content]
    text = "\n".join(["a,b,c,y", *lines, ""]).encode()
    with NamedTemporaryFile(suffix=".csv") as file:
        Path(file.name).write_bytes(text)
        # cells of a file are checked in a first pass and copied in a second, those of a pipe read
        for source in (open_source(file.name), Source(BytesIO(text), "d.csv", closes=True)):
            with source:
                reader = TableReader(source, TableOptions(label="y"))
                parts = reader.cells(as_text=bool(reader.numeric))
                written = "".join(libsvm_text(reader, cells, "d.csv") for cells in parts)
            for line, (label, row) in zip(written.splitlines(), content, strict=True):
                found = parse_line(line.encode(), 100, may_lack_label=True)
                assert found is not None
                assert found.label == pytest.approx(label, rel=0, nan_ok=True)
                assert dict(zip(found.indices, found.values, strict=True)) == {
                    i: value for i, value in enumerate(row, 1) if value
                }


def test_a_fault_late_in_a_pipe_leaves_no_file(ahpatron: Ahpatron) -> None:
    text = "a,y\n" + "1,1\n2,0\n" * 300_000 + "oops,1\n"
    command = ("convert", "-", "--label", "y", "--out", "d.svm")
    assert "<stdin>:600002" in ahpatron.refusal(65, *command, stdin=text.encode())
    assert ahpatron.files() == set()


def test_a_closed_pipe_ends_quietly_and_a_full_disk_does_not(ahpatron: Ahpatron) -> None:
    ahpatron.write("d.csv", "a,y\n" + "".join(f"{i}.5,{i % 2}\n" for i in range(100_000)))
    command = " ".join(COMMAND) + " convert d.csv --label y"
    closed = shell(f"{command} | head -n 1", ahpatron.folder)
    assert (closed.returncode, closed.stderr) == (0, "")
    full = shell(f"{command} > /dev/full", ahpatron.folder)
    assert full.returncode == 74
