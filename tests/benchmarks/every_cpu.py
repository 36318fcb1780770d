"""Tests under the rounding of other CPUs: `python tests/benchmarks/every_cpu.py tests/core …`.

    python tests/benchmarks/every_cpu.py --only Prescott --only no-X86_V3 tests/core tests/faults

OpenBLAS is told which CPU to assume, and NumPy which instructions not to use: each adds in another
order and has another `exp`. Settings that this CPU cannot run are left out. One line per setting:
its name and pytest's summary. The exit code is 1 if a setting failed. Arguments other than --only
go to pytest.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys

import numpy as np

CORES = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
# A core that this CPU does not have ends here, with an illegal instruction.
PROBE = """
import numpy as np, scipy.linalg
A = np.random.default_rng(0).normal(size=(200, 200))
scipy.linalg.solve(A @ A.T + np.eye(200), A, assume_a="pos")
np.exp(-A * A).sum()
"""


def settings() -> dict[str, dict[str, str]]:
    """Environments by name: this CPU, a core each, and NumPy without what it dispatches to."""
    features: dict[str, list[str]] = np.show_config(mode="dicts")["SIMD Extensions"]  # type: ignore[call-overload]
    found = features.get("found", [])  # what this CPU has above the baseline
    wide = [name for name in found if "AVX512" in name or name == "X86_V4"]
    without = {"no-X86_V4": wide, "no-X86_V3": found}
    return {
        "own": {},
        **{core: {"OPENBLAS_CORETYPE": core} for core in CORES},
        **{name: {"NPY_DISABLE_CPU_FEATURES": " ".join(f)} for name, f in without.items() if f},
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    known = settings()
    parser.add_argument("--only", action="append", choices=known, help="may be repeated")
    ours, for_pytest = parser.parse_known_args()
    failed = False
    for name in ours.only or known:
        environment = {**os.environ, **known[name]}
        probe = subprocess.run([sys.executable, "-c", PROBE], env=environment, check=False)
        if probe.returncode == -signal.SIGILL:
            print(f"{name:12} not on this CPU", flush=True)
            continue
        if probe.returncode:  # an environment without NumPy, say: nothing was tested
            return 1
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *for_pytest]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines() or [done.stderr]
        print(f"{name:12} {lines[-1].strip('= ')}", flush=True)
        for line in lines:
            if line.startswith(("FAILED", "ERROR")):
                print(f"    {line}", flush=True)
        failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
