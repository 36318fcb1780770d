"""Compare what the commands of two checkouts print, as parsed JSON without times.

    python tests/benchmarks/same_json.py PYTHON [PYTHON]

PYTHON is the interpreter of an environment with the package, by default that of this script for the
second one. Options have their earlier spellings, which all versions know. Fields that only the
second checkout has are allowed; every other difference is shown, and makes the exit code 1.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RINGS = Path(__file__).resolve().parents[2] / "sample_data" / "rings.svm"
TIMES = ("seconds", "version", "command", "written", "sha256", "algorithm")
"""Fields whose names have one of these words differ between calls or versions on purpose."""

COMMANDS = """
run rings.svm --json
run rings.svm -l all -B 40 --limit 500 --json
run rings.svm -l ahpatron --sigma auto --scale minmax --json
run rings.svm -l metron --limit 900 --metrics --window 100 --json
run rings.svm -l arow -l rbp -B 30 --repeats 3 --seed 5 --json
run rings.svm -l rbp -B 30 --repeats 2 --jobs 2 --format csv
run rings.svm --theorem 4 --certify --limit 400 --json
run rings.svm --cost 1=5 -l arow --json
run rings.svm --kernel laplacian --sigma 0.5 --epsilon 0.6 -p radius=3 --format jsonl
run three.svm -B 20 --json
run three.svm --positive 2 --json
run three.svm --labels 1,2,3 --metrics --json
run t.csv --label y --id name --json
run t.csv --label y --id name --drop code --missing zero -l ahpatron --json
run t.csv --label y --id name --category code --positive no --cost no=3 -l arow --json
run classes.csv --label y -l metron --json
run rings.svm t.svm -l rbp --json
run rings.svm -l ahpatron --save m.npz --predictions p.csv --json
run t.csv --label y --id name --save t.npz --json
run t.csv --resume t.npz --json
run rings.svm --checkpoint c.npz --every 256 --json
run rings.svm --checkpoint c.npz --every 256 --json
predict m.npz rings.svm --format jsonl --probability
predict t.npz t.csv --id name --format jsonl --metrics
inspect rings.svm --sigma 1 --json
inspect t.csv --label y --id name --json
inspect m.npz --json
inspect t.npz --json
convert t.csv --label y --id name
learners --json
learners ahpatron metron --json
sweep rings.svm -l ahpatron -l rbp -g budget=20,40 --repeats 3 --limit 300 --out r.jsonl --json
sweep t.csv --label y --id name -l arow -g budget=10,20 --cost no=2 --repeats 2 --out s.jsonl --json
sweep three.svm -l rbp -g budget=8:16:4 --search halving --metric f1 --out h.jsonl --json
sweep --config sweep.toml --out c.jsonl --json
report r.jsonl --json
report r.jsonl --trials --json
report r.jsonl --tune-orders 1 --metric mistake_rate --json
report r.jsonl s.jsonl --matrix --json
run rings.svm --scale minmix --json
run rings.svm --labels 1 --json
inspect missing.svm --json
"""
CONFIG = """
data = ["rings.svm", "t.svm"]
learners = ["ahpatron", "rbp"]
repeats = 2
scale = "minmax"
limit = 200
[grid]
budget = [10, 20]
[learner.ahpatron]
epsilon = 0.6
"""


def prepare(folder: Path) -> None:
    """Write the data that the commands read."""
    shutil.copy(RINGS, folder / "rings.svm")
    rows = []
    for number in range(200):
        label = "yes" if number % 7 % 3 else "no"
        age = "" if number % 13 == 0 else number * 37 % 101
        rows.append(f"r{number},{age},{number % 4},{'uvw'[number % 3]},{label}")
    (folder / "t.csv").write_text("\n".join(["name,age,code,town,y", *rows, ""]))
    kinds = []
    for number in range(150):
        u = number * 29 % 17
        kinds.append(f"{u},{number % 5},{'abc'[u % 3]}")
    (folder / "classes.csv").write_text("\n".join(["u,v,y", *kinds, ""]))
    (folder / "three.svm").write_text("1 1:1\n2 1:2\n3 1:3\n1 1:2.5 2:1\n" * 40)
    (folder / "t.svm").write_text("0 1:1 2:3\n1 1:2\n1 1:3 3:1\n0 2:0.5\n" * 60)
    (folder / "sweep.toml").write_text(CONFIG)


def answers(python: str, folder: Path) -> Iterator[tuple[int, Any]]:
    """Exit code and output of each command, which are run in turn."""
    prepare(folder)
    for line in COMMANDS.strip().splitlines():
        command = [python, "-m", "ahpatron_cli", *line.split()]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        yield done.returncode, parsed(done.stdout, lines="jsonl" in line)


def parsed(text: str, *, lines: bool) -> Any:
    """JSON, a list of JSON lines, or else text."""
    try:
        if lines and "--json" not in text:
            return [json.loads(line) for line in text.splitlines()]
    except ValueError:
        pass
    try:
        return json.loads(text)
    except ValueError:
        return text


def differences(first: Any, second: Any, where: str = "") -> Iterator[str]:
    """Where two documents differ, apart from times and from fields that the second one adds."""
    if isinstance(first, dict) and isinstance(second, dict):
        for name, value in first.items():
            if any(word in name for word in TIMES):
                continue
            if name not in second:
                yield f"{where}.{name}: missing"
            else:
                yield from differences(value, second[name], f"{where}.{name}")
    elif isinstance(first, list) and isinstance(second, list) and len(first) == len(second):
        for number, (one, other) in enumerate(zip(first, second, strict=True)):
            yield from differences(one, other, f"{where}[{number}]")
    elif isinstance(first, str) and isinstance(second, str):
        if without_seconds(first) != without_seconds(second):
            yield f"{where}: {first[:60]!r} became {second[:60]!r}"
    elif first != second:
        yield f"{where}: {str(first)[:60]} became {str(second)[:60]}"


def without_seconds(text: str) -> list[str]:
    """The lines of a text; of CSV with a column `seconds`, without columns of times."""
    lines = text.splitlines()
    names = lines[0].split(",") if lines else []
    if "seconds" not in names:
        return lines
    kept = [i for i, name in enumerate(names) if not any(word in name for word in TIMES)]
    return [",".join(line.split(",")[i] for i in kept) for line in lines]


def main(first: str, second: str = sys.executable) -> int:
    """Compare all commands; the exit code."""
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        before = list(answers(first, Path(one)))
        after = list(answers(second, Path(other)))
    count = 0
    for line, old, new in zip(COMMANDS.strip().splitlines(), before, after, strict=True):
        found = list(differences([*old], [*new]))
        count += bool(found)
        print("differs" if found else "same   ", f"exit {new[0]:2}", line)
        for text in found[:8]:
            print("        ", text)
    print(f"{len(before) - count} of {len(before)} commands print the same")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
