"""Tests under the rounding of other CPUs: `python tests/benchmarks/every_cpu.py tests/core …`.

OpenBLAS is told which CPU to take this one for, and NumPy which instructions to leave alone: each
adds in another order, and has an `exp` of its own. Settings that this CPU cannot run are left out.

    python tests/benchmarks/every_cpu.py --only Prescott --only no-X86_V3 tests/core tests/faults

One line per setting: its name, the cores that NumPy's and SciPy's OpenBLAS took, what pytest said.
The exit code is 1 where a setting failed. Arguments that are not ours go to pytest.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import time

import numpy as np

CORES = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
# A core that this CPU lacks dies here, of an illegal instruction.
PROBE = """
import numpy as np, scipy.linalg, threadpoolctl
A = np.random.default_rng(0).normal(size=(200, 200))
scipy.linalg.solve(A @ A.T + np.eye(200), A, assume_a="pos")
np.exp(-A * A).sum()
print("/".join(sorted({lib["architecture"] for lib in threadpoolctl.threadpool_info()
                       if "architecture" in lib})))
"""


def settings() -> dict[str, dict[str, str]]:
    """Environments, by name: none of ours, a core each, and NumPy without what it dispatches to."""
    features: dict[str, list[str]] = np.show_config(mode="dicts")["SIMD Extensions"]  # type: ignore[call-overload]
    found = features.get("found", [])  # what this CPU has above the baseline
    wide = [name for name in found if "AVX512" in name or name == "X86_V4"]
    levels = {}
    if wide:
        levels["no-X86_V4"] = wide
    if found:
        levels["no-X86_V3"] = found
    return {
        "own": {},
        **{core: {"OPENBLAS_CORETYPE": core} for core in CORES},
        **{name: {"NPY_DISABLE_CPU_FEATURES": " ".join(gone)} for name, gone in levels.items()},
    }


def cores_under(environment: dict[str, str]) -> str | None:
    """The cores that OpenBLAS takes; None where this CPU cannot run them."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode == -signal.SIGILL:
        return None
    if done.returncode:  # an environment without NumPy, say: no setting was tested
        sys.exit(f"the probe failed:\n{done.stderr}")
    return done.stdout.strip()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--only", action="append", metavar="SETTING", help="may be repeated")
    ours, for_pytest = parser.parse_known_args()
    known = settings()
    unknown = set(ours.only or ()) - set(known)
    if unknown:
        parser.error(f"no such setting here: {', '.join(sorted(unknown))}; {', '.join(known)}")
    failed = False
    for name in ours.only or known:
        environment = {**os.environ, **known[name]}
        cores = cores_under(environment)
        if cores is None:
            print(f"{name:12} {'-':12} not on this CPU", flush=True)
            continue
        began = time.monotonic()
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *for_pytest]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        lines = done.stdout.splitlines() or [done.stderr]
        took = time.monotonic() - began
        print(f"{name:12} {cores:12} {lines[-1].strip('= ')} [{took:.0f} s]", flush=True)
        for line in lines:
            if line.startswith(("FAILED", "ERROR")):
                print(f"    {line}", flush=True)
        failed |= done.returncode != 0
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
