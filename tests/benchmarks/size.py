"""Size of a checkout: lines, numeric constants of the core, functions behind one example.

    python tests/benchmarks/size.py [FOLDER] [-v]

FOLDER is the root of a checkout, by default this one. With -v, constants and functions are listed.

- Lines are all lines of `.py` files, comments and blank lines included.
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


def lines(path: Path) -> tuple[int, int]:
    """Lines and number of the Python files of a folder, or of one file."""
    files = list(path.rglob("*.py")) if path.is_dir() else [path]
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files), len(files)


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
    print(f"{'':38} {'lines':>6} {'modules':>8}")
    parts = [path for path in sorted(package.iterdir()) if path.is_dir() or path.suffix == ".py"]
    for path in [package, *parts, root / "tests", root / "tests/benchmarks"]:
        total, files = lines(path)
        if files:
            print(f"{path.relative_to(root)!s:38} {total:6} {files:8}")
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
