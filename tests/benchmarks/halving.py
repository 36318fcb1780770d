"""What `--search halving` saves against the whole grid, and what it loses in mistakes.

    python tests/benchmarks/halving.py phishing.svm a9a.svm

For each file: the rounds that were spared, and the AMR of the setting chosen by halving beside that
of the best setting of the grid, both over the same orders.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

GRID = ("-g", "sigma=log:0.25:16:7", "-g", "epsilon=0.1:0.9:0.2", "-B", "100", "--repeats", "2")


def best_of(path: str, search: str, folder: Path) -> tuple[float, str, str]:
    """AMR and parameters of the best setting, and what the sweep says was spared."""
    out = folder / f"{Path(path).stem}-{search}.jsonl"
    command = [sys.executable, "-m", "ahpatron_cli", "sweep", path, *GRID, "--search", search]
    command += ["--out", str(out), "--format", "json", "-j", "2"]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    (data,) = json.loads(done.stdout)["datasets"]
    (best,) = (one for one in data["best"] if one["best_of_data"])
    chosen = ", ".join(f"{name}={value:.3g}" for name, value in best["varied"].items())
    spared = re.search(r"[\d.]+ % of the rounds", done.stderr)
    return best["mistake_rate_mean"], chosen, spared[0] if spared else ""


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        for path in sys.argv[1:]:
            rate, chosen, spared = best_of(path, "halving", Path(folder))
            full_rate, full, _ = best_of(path, "grid", Path(folder))
            print(f"{Path(path).name}: {spared} spared; AMR {100 * rate:.2f} % ({chosen})", end="")
            print(f", grid {100 * full_rate:.2f} % ({full})", end="")
            print(f": {100 * (rate - full_rate):.2f} points lost", flush=True)


if __name__ == "__main__":
    main()
