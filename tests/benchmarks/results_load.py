"""How long a results file of 10,000 trials takes to load: processor time, the least of five.

python tests/benchmarks/results_load.py
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from msgspec.structs import replace

import ahpatron_cli
from ahpatron_cli.sweep.results_file import encode_trial

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.trials import stored_trial as trial

TRIALS = 10_000


def main() -> None:
    one = trial(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "results.jsonl"
        names = (f"{number:020x}" for number in range(TRIALS))
        path.write_bytes(b"".join(encode_trial(replace(one, id=n)) for n in names))
        seconds = []
        for _ in range(5):
            started = time.process_time()
            rows = ahpatron_cli.read_results(path)
            seconds.append(time.process_time() - started)
    print(f"{len(rows):,} trials in {min(seconds):.2f} s")


if __name__ == "__main__":
    main()
