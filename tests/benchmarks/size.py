"""Size of a checkout: lines, how densely they are packed, constants, functions of one example.

    python tests/benchmarks/size.py [FOLDER] [-v]

FOLDER is the root of a checkout, by default this one. With -v, there is a row for each module, and
constants and functions are listed.

- Lines are all lines of `.py` files, comments and blank lines included.
- Nodes per line are the nodes of the syntax tree for each line of code: blank lines, comments and
  docstrings do not count as lines.
- Tuple assignments assign a tuple to a tuple, such as `a, b = 1, 2`.
- Positional calls pass more than three arguments by position.
- Long functions have more than 40 lines, from `def` to the last line.
- Any counts parameters that are annotated as `Any`.
- A constant is a name in capital letters that a module of the core assigns a number or numbers.
- Functions are those of the package that `ahpatron run` calls on 200 rows of rings.svm. Modules
  have been imported before; comprehensions and lambdas do not count.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
NUMERIC = {"math", "np", "float", "int", "tuple", "range", "min", "max"}
"""Names that an expression of numbers may use, apart from constants and its own variables."""
TRACE = """
import contextlib, json, os, sys
import ahpatron_cli
from ahpatron_cli.cli.app import run_command
root = os.path.dirname(ahpatron_cli.__file__)
called, fed, feeding = set(), set(), 0
def trace(frame, event, argument):
    global feeding
    code = frame.f_code
    if code.co_qualname == "Player.feed":
        feeding += {"call": 1, "return": -1}.get(event, 0)
    if event == "call" and code.co_filename.startswith(root) and code.co_name[0] != "<":
        place = f"{os.path.relpath(code.co_filename, root)}: {code.co_qualname}"
        called.add(place)
        fed.update([place] if feeding and place.startswith("core") else [])
with open(os.devnull, "w") as sink, contextlib.redirect_stdout(sink):
    run_command(sys.argv[1:])  # imports what it needs
    sys.setprofile(trace)
    assert run_command(sys.argv[1:]) == 0
    sys.setprofile(None)
print(json.dumps([sorted(called), sorted(fed)]))
"""


@dataclass
class Size:
    """Counts of one module, or of several added up."""

    modules: int = 0
    lines: int = 0
    code: int = 0
    """Lines without blank lines, comments and docstrings."""
    nodes: int = 0
    tuple_assignments: int = 0
    positional_calls: int = 0
    long_functions: int = 0
    any_annotations: int = 0

    def __add__(self, other: Size) -> Size:
        return Size(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))

    def row(self, name: str) -> str:
        """A row of the table, below `HEADING`."""
        density = self.nodes / max(self.code, 1)
        counts = (
            f"{self.modules:8} {self.lines:6} {self.code:6} {density:10.2f}"
            f" {self.tuple_assignments:7} {self.positional_calls:11}"
        )
        return f"{name:38} {counts} {self.long_functions:5} {self.any_annotations:5}"


HEADING = (
    f"{'':38} {'modules':>8} {'lines':>6} {'code':>6} {'nodes/line':>10}"
    f" {'tuples':>7} {'positional':>11} {'long':>5} {'Any':>5}"
)


def size_of_module(text: str) -> Size:
    """Counts of one module."""
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    lines = text.splitlines()
    documented: set[int] = set()
    for node in nodes:
        if (docstring := docstring_of(node)) is not None:
            documented |= set(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    code = [
        line
        for number, line in enumerate(lines, start=1)
        if line.strip() and not line.strip().startswith("#") and number not in documented
    ]
    functions = [one for one in nodes if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    annotations = [annotation for one in functions for annotation in annotations_of(one)]
    return Size(
        modules=1,
        lines=len(lines),
        code=len(code),
        nodes=len(nodes),
        tuple_assignments=sum(map(assigns_tuple, nodes)),
        positional_calls=sum(isinstance(one, ast.Call) and len(one.args) > 3 for one in nodes),
        long_functions=sum((one.end_lineno or 0) - one.lineno >= 40 for one in functions),
        any_annotations=annotations.count("Any"),
    )


def docstring_of(node: ast.AST) -> ast.Expr | None:
    """The statement that is the docstring of a module, class or function."""
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or not node.body:
        return None
    first = node.body[0]
    is_text = (
        isinstance(first, ast.Expr)
        and isinstance(first.value, ast.Constant)
        and isinstance(first.value.value, str)
    )
    return first if is_text else None


def assigns_tuple(node: ast.AST) -> bool:
    """Whether a statement assigns a tuple to a tuple."""
    return (
        isinstance(node, ast.Assign)
        and isinstance(node.targets[0], ast.Tuple)
        and isinstance(node.value, ast.Tuple)
    )


def annotations_of(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Annotations of all parameters, except `*args` and `**kwargs`."""
    arguments = function.args
    parameters = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return [ast.unparse(one.annotation) for one in parameters if one.annotation is not None]


def size_of(path: Path) -> Size:
    """Counts of a module, or of all modules of a folder."""
    files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
    return sum((size_of_module(file.read_text(encoding="utf-8")) for file in files), Size())


def constants(tree: ast.Module) -> Iterator[str]:
    """The constants of a module that are made of numbers, functions of numbers and constants."""
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            parts = list(ast.walk(node.value))
            variables = [part for part in parts if isinstance(part, ast.Name)]
            own = {part.id for part in variables if isinstance(part.ctx, ast.Store)}
            names = {part.id for part in variables} - NUMERIC - own
            kinds = {type(part.value) for part in parts if isinstance(part, ast.Constant)}
            numeric = kinds <= {int, float} and all(map(CONSTANT.fullmatch, names))
            if CONSTANT.fullmatch(name) and numeric and (kinds or names):
                yield f"{name} = {ast.unparse(node.value)}"


def functions(root: Path) -> tuple[list[str], list[str]]:
    """Functions that a run calls, as "file: name": all, and those of the core below `feed`."""
    rows = (REPOSITORY / "sample_data/rings.svm").read_text().splitlines(keepends=True)[:200]
    environment = {**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"}
    words = ("run", "rings.svm", "--budget", "100", "--format", "json")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rings.svm").write_text("".join(rows))
        command = [sys.executable, "-c", TRACE, *words]
        called, fed = json.loads(subprocess.check_output(command, env=environment, cwd=folder))
    return called, fed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    package = (root := options.folder.resolve()) / "ahpatron_cli"
    print(HEADING)
    parts = [path for path in sorted(package.iterdir()) if path.is_dir() or path.suffix == ".py"]
    if options.verbose:
        parts = sorted(package.rglob("*.py"))
    for path in [package, *parts, root / "tests", root / "tests/benchmarks"]:
        size = size_of(path)
        if size.modules:
            print(size.row(str(path.relative_to(root))))
    found = [
        f"{path.relative_to(package)}: {constant}"
        for path in sorted((package / "core").rglob("*.py"))
        for constant in constants(ast.parse(path.read_text(encoding="utf-8")))
    ]
    called, fed = functions(root)
    for what, names in (
        ("numeric constants of the core", found),
        ("functions called by run", called),
        ("functions of the core called by feed", fed),
    ):
        print(f"{what:38} {len(names):6}")
        if options.verbose:
            print("".join(f"    {name}\n" for name in names), end="")


if __name__ == "__main__":
    main()
