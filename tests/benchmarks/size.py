"""Size of a checkout: lines, constants and hypotheses of the core, functions behind one example.

    python tests/benchmarks/size.py [FOLDER] [-v]

FOLDER is the root of a checkout, by default this one. With -v, the names of the constants (and
their values), hypotheses and functions are listed.

- Lines are all lines of `.py` files, comments and blank lines included.
- A constant is a name in capital letters that a module of the core assigns a number or numbers.
- A hypothesis is a class of the core with the methods `open` (which takes a block) and `close`, its
  own or inherited within the core; abstract ones are left out.
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
from collections.abc import Iterable, Sequence
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
CONSTANT = re.compile(r"_?[A-Z][A-Z0-9_]*")
NUMERIC = {"math", "np", "float", "int", "tuple", "range", "min", "max"}
"""Names that an expression of numbers may use, beside constants and its own variables."""
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
print(json.dumps([root, sorted(called), sorted(fed)]))
"""


def lines(path: Path) -> tuple[int, int]:
    """Lines and number of the Python files of a folder, or of one file."""
    files = list(path.rglob("*.py")) if path.is_dir() else [path] * (path.suffix == ".py")
    return sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files), len(files)


def constants(tree: ast.Module, known: set[str]) -> dict[str, str]:
    """The numeric constants of a module with their values; `known` are those of other modules."""
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None:
            name = ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)
            if CONSTANT.fullmatch(name) and is_numeric(node.value, known | set(found)):
                found[name] = ast.unparse(node.value)
    return found


def is_numeric(value: ast.expr, known: set[str]) -> bool:
    """Whether an expression has numbers, functions of numbers and constants, and nothing else."""
    nodes = list(ast.walk(value))
    names = [node for node in nodes if isinstance(node, ast.Name)]
    bound = {node.id for node in names if isinstance(node.ctx, ast.Store)}
    literals = {type(node.value) for node in nodes if isinstance(node, ast.Constant)}
    collections = any(isinstance(node, ast.Dict | ast.Set | ast.List) for node in nodes)
    unknown = {node.id for node in names} - NUMERIC - known - bound
    return not (unknown or collections or literals - {int, float})


def hypotheses(trees: Iterable[ast.Module]) -> list[str]:
    """The classes that can open a block and close it, and are not abstract."""
    nodes = (node for tree in trees for node in tree.body if isinstance(node, ast.ClassDef))
    classes = {node.name: node for node in nodes}

    def method(kind: ast.ClassDef, name: str) -> ast.FunctionDef | None:
        for node in kind.body:
            if isinstance(node, ast.FunctionDef) and node.name == name:
                return node
        bases = (classes.get(ast.unparse(base).partition("[")[0]) for base in kind.bases)
        return next(filter(None, (method(base, name) for base in bases if base)), None)

    def has(kind: ast.ClassDef, name: str, arguments: int) -> bool:
        found = method(kind, name)  # abstract methods are decorated
        return found is not None and len(found.args.args) >= arguments and not found.decorator_list

    return sorted(name for name, k in classes.items() if has(k, "open", 2) and has(k, "close", 1))


def functions(root: Path) -> tuple[list[str], list[str]]:
    """Functions that a run calls, as "file: name": all, and those of the core below `feed`."""
    rows = (REPOSITORY / "sample_data/rings.svm").read_text().splitlines(keepends=True)[:200]
    environment = {**os.environ, "PYTHONPATH": str(root), "OPENBLAS_NUM_THREADS": "1"}
    words = ("run", "rings.svm", "--budget", "100", "--format", "json")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rings.svm").write_text("".join(rows))
        command = [sys.executable, "-c", TRACE, *words]
        printed = subprocess.check_output(command, env=environment, cwd=folder)
    package, called, fed = json.loads(printed)
    assert Path(package) == root / "ahpatron_cli", f"the package of {package} was traced"
    return called, fed


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", nargs="?", type=Path, default=REPOSITORY)
    parser.add_argument("-v", "--verbose", action="store_true")
    options = parser.parse_args()
    package = (root := options.folder.resolve()) / "ahpatron_cli"

    def show(what: str, found: Sequence[str]) -> None:
        print(f"{what:38} {len(found):6}")
        if options.verbose:
            print("".join(f"    {line}\n" for line in found), end="")

    print(f"{'':38} {'lines':>6} {'modules':>8}")
    parts = sorted(package.iterdir(), key=lambda path: (path.suffix == ".py", path.name))
    for path in [package, *parts, root / "tests", root / "tests/benchmarks"]:
        total, files = lines(path)
        if files:
            print(f"{path.relative_to(root)!s:38} {total:6} {files:8}")
    core = {path.relative_to(package): path for path in sorted((package / "core").rglob("*.py"))}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in core.items()}
    known = {name for tree in trees.values() for name in constants(tree, set())}
    found = {name: constants(tree, known) for name, tree in trees.items()}
    values = [f"{name}: {c} = {found[name][c]}" for name in found for c in found[name]]
    show("numeric constants of the core", values)
    show("hypotheses", hypotheses(trees.values()))
    called, fed = functions(root)
    for what, places in (("called by run", called), ("of the core called by feed", fed)):
        show(f"functions {what}", places)
        print(f"{'  in files':38} {len({place.partition(':')[0] for place in places}):6}")


if __name__ == "__main__":
    main()
