"""The pages of the documentation: their commands and programs, and running them.

A block of `sh` is a list of commands, one per line; the plain block after it is what they print,
on standard error or output. A block of `python` is a program; `print(…)  # text` tells what is
printed. `<!-- not run: REASON -->` before a block excuses it; `<!-- exit 65 -->` tells how its last
command ends. All blocks of a page are run in one folder, in order, with the stand-ins of `furnish`
for the reader's own files. Its programs share their names, as if they were typed one by one.
"""

import contextlib
import gzip
import io
import math
import re
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from ahpatron_cli.core.registry import REGISTRY
from support.command import REPOSITORY, Ahpatron, Outcome

PAGES = ["README.md", *sorted(f"docs/{path.name}" for path in (REPOSITORY / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?:<!-- (?P<mark>[^\n]*) -->\n)?^```(?P<kind>\w*)\n(?P<text>.*?)^```$", re.DOTALL | re.M
)

DECIMAL = re.compile(r"(?<![\w.])\d+(?:,\d{3})*\.\d+(?:e[+-]?\d+)?(?!\d|\.\d)")
"""A number with a point and without its sign; no part of a name or of a version."""
MANY_DIGITS = 9
"""Digits after the point from which on a number is shown in full precision."""

INSTALLING = ("python3 -m venv ", ".venv/bin/pip ", ".venv/bin/pytest ")
"""What `.ci/run` does, and tests/test_packaging.py."""


def read(page: str) -> str:
    return (REPOSITORY / page).read_text(encoding="utf-8")


@dataclass(frozen=True)
class Block:
    """Commands, a program or some output of a page."""

    kind: str
    text: str
    mark: str
    line: int

    @property
    def runs(self) -> bool:
        """Whether the page is to be believed at once; a script has a test of its own."""
        excused = self.mark.startswith("not run: ") or self.text.startswith("#!")
        return self.kind in ("sh", "python") and not excused


def blocks(page: str) -> Iterator[tuple[Block, str | None]]:
    """Each block of a page, and the output shown right after it, if any."""
    text = read(page)
    found = list(BLOCK.finditer(text))
    for number, match in enumerate(found):
        block = Block(
            kind=match["kind"],
            text=match["text"],
            mark=match["mark"] or "",
            line=text.count("\n", 0, match.start("kind")) + 1,
        )
        after = found[number + 1] if number + 1 < len(found) else None
        shown = None
        if after and not after["kind"] and not text[match.end() : after.start()].strip():
            shown = after["text"]
        yield block, shown


def furnish(folder: Path) -> None:
    """What pages may name: the sample data, the examples, and stand-ins for files of the reader."""
    (folder / "sample_data").symlink_to(REPOSITORY / "sample_data")
    (folder / "docs").symlink_to(REPOSITORY / "docs")
    rows = (REPOSITORY / "sample_data/rings.svm").read_text().splitlines(keepends=True)
    files = {
        "data.svm": rows[:400],
        "train.svm": rows[:400],
        "monday.svm": rows[:200],
        "tuesday.svm": rows[200:400],
        "a.svm": rows[:200],
        "b.svm": rows[200:400],
        "test.svm": rows[400:600],
    }
    for name, lines in files.items():
        (folder / name).write_text("".join(lines))
    (folder / "new.svm").write_text("".join(row.split(" ", 1)[1] for row in rows[600:800]))
    (folder / "bad.svm").write_text("1 1:1\n-1 2:1\n" * 8 + "-1 3:0.5 2:1.25\n")
    for number in (1, 2):
        day = "".join(rows[200 * number : 200 * number + 200]).encode()
        (folder / f"day{number}.svm.gz").write_bytes(gzip.compress(day))
    shutil.copy(REPOSITORY / "sample_data/payments.csv", folder / "bank.csv")


@contextlib.contextmanager
def session(folder: Path) -> Iterator[Callable[[Block, str], str]]:
    """A function that runs a program of a page, which is in `where`, and returns what it prints.

    Learners that the page registers are known until the end.
    """
    names: dict[str, object] = {}

    def run_program(block: Block, where: str) -> str:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(block.text, where, "exec"), names)
        return printed.getvalue()

    known = dict(REGISTRY._kinds)
    try:
        with contextlib.chdir(folder):
            yield run_program
    finally:
        REGISTRY._kinds = known


def commands(text: str) -> Iterator[str]:
    """The commands of a block, without comments."""
    for line in re.sub(r"\s*\\\n\s*", " ", text).splitlines():
        command = re.sub(r"(^|\s\s)#.*", "", line).strip()
        if command:
            yield command


def run(command: str, folder: Path) -> Outcome:
    """Run a command line of pipes, `&&` and `>`: `ahpatron` in this process, the rest by sh."""
    out = err = ""
    for pipeline in _split(command, "&&"):
        if pipeline.startswith(INSTALLING):
            continue
        stdin = ""
        for stage in _split(pipeline, "|"):
            words, *targets = _split(stage, ">")
            done = _stage(words, stdin, folder)
            err += done.err
            stdin = done.out
            if done.code:
                return Outcome(done.code, out + stdin, err)
            for target in targets:
                (folder / target).write_text(stdin)
                stdin = ""
        out += stdin
    return Outcome(0, out, err)


def _stage(words: str, stdin: str, folder: Path) -> Outcome:
    arguments = shlex.split(words)
    if arguments[0].endswith("ahpatron"):
        given = [name for word in arguments[1:] for name in _expanded(word, folder)]
        ahpatron = Ahpatron(folder)
        run = ahpatron.process if {"-j", "--jobs"} & {*given} else ahpatron
        return run(*given, stdin=stdin.encode())
    options = {"capture_output": True, "text": True, "timeout": 60, "check": False}
    done = subprocess.run(["sh", "-c", words], input=stdin, cwd=folder, **options)
    return Outcome(done.returncode, done.stdout, done.stderr)


def _expanded(word: str, folder: Path) -> list[str]:
    """The files that a word with a star stands for, as a shell has it; any other word itself."""
    if "*" not in word:
        return [word]
    names = sorted(str(path.relative_to(folder)) for path in folder.glob(word))
    return names or [word]


def _split(text: str, mark: str) -> list[str]:
    """Cut at a mark outside of quotes."""
    parts = [""]
    for token in re.findall(r"'[^']*'|\"[^\"]*\"|&&|[|>&]|[^'\"&|>]+", text):
        if token == mark:
            parts.append("")
        else:
            parts[-1] += token
    return [part.strip() for part in parts]


def masked(output: str) -> str:
    """Output without its times and trailing blanks."""
    lines = []
    end = None
    for line in output.strip("\n").splitlines():
        at = re.search(r"\bSeconds\b", line)
        if at:
            end = at.end()
        elif not line.strip():
            end = None
        elif end is not None and "─" not in line:
            line = re.sub(r" *[\d.]+$", " TIME", line[:end]) + line[end:]
        line = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "DATE", line)
        lines.append(re.sub(r"\d+(\.\d+)? s\b", "TIME s", line).rstrip())
    return "\n".join(lines)


def same_output(shown: str, printed: str) -> bool:
    """Whether two outputs are equal up to times and to the rounding of decimals.

    Text and integers must be equal. Decimals may differ by one unit in the last digit, and those
    with many digits, as `repr` writes them, by 1e-6 of their value.
    """
    first = masked(shown)
    second = masked(printed)
    if DECIMAL.sub("N.N", first) != DECIMAL.sub("N.N", second):
        return False
    return all(map(_close, DECIMAL.findall(first), DECIMAL.findall(second)))


def _close(first: str, second: str) -> bool:
    """Whether two decimals differ by no more than rounding explains."""
    a, b = (Decimal(text.replace(",", "")) for text in (first, second))
    if all(len(text.partition(".")[2]) >= MANY_DIGITS for text in (first, second)):
        return math.isclose(a, b, rel_tol=1e-6)
    places = a.as_tuple().exponent
    assert isinstance(places, int)  # no infinity
    return b.as_tuple().exponent == places and abs(a - b) <= Decimal(1).scaleb(places)
