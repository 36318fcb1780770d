"""What `ahpatron inspect` finds out, and how it is put."""

from __future__ import annotations

import math
import sys
from dataclasses import fields

from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner
from ahpatron_cli.data.labels import show
from ahpatron_cli.data.source import open_source
from ahpatron_cli.data.strict import Fault
from ahpatron_cli.data.svm_format import SvmReader
from ahpatron_cli.errors import ExitCode
from ahpatron_cli.render.safe import literal


def describe_learners() -> None:
    """Print every learner and kernel with its parameters, from their declarations."""
    out = sys.stdout.write
    out("Learners (-l NAME, -p PARAMETER=VALUE)\n")
    for learner in REGISTRY.values():
        _describe(learner, learner.title)
    out("\nKernels (--kernel NAME)\n")
    for kernel in KERNELS.values():
        _describe(kernel, (kernel.__doc__ or "").splitlines()[0].replace("`", ""))


def _describe(kind: type[Learner] | type[Kernel], title: str) -> None:
    out = sys.stdout.write
    out(f"\n{kind.name}\n  {title}\n")
    defaults = {field.name: field.default for field in fields(kind)}
    for name, spec in kind.specs().items():
        default = spec.formula or _shown_default(defaults[name])
        out(f"    {name:<10} {spec.symbol:<4} {spec.meaning}\n")
        out(f"               {spec.legal()}; default {default}\n")


def _shown_default(value: object) -> str:
    return "inf" if value == math.inf else str(value)


def describe_data(path: str, max_faults: int, max_features: int) -> int:
    """Print size, labels and faulty lines of a file in one pass; the exit code says if any."""
    labels: dict[float, int] = {}
    found: list[tuple[int, Fault]] = []

    def on_fault(line: int, fault: Fault) -> bool:
        if len(found) < max_faults:
            found.append((line, fault))
        return True

    with open_source(path) as source:
        reader = SvmReader(source, max_features=max_features, on_fault=on_fault)
        for chunk in reader:
            for label in chunk.labels.tolist():
                labels[label] = labels.get(label, 0) + 1
        name = literal(source.name)
    rows, faults = reader.rows_read, reader.counts["faults"]
    features = max(reader.max_index + reader.zero_based, 0)
    out = sys.stdout.write
    out(f"{name}: {rows:,} rows, {features:,} features")
    if rows and features:
        out(f", {reader.counts['values'] / rows / features:.1%} of values stored")
    out("\n")
    for label, count in sorted(labels.items())[:20]:
        out(f"  label {show(label):>6}: {count:,} rows ({count / rows:.1%})\n")
    for line, fault in found:
        out(f"{name}:{line}:{fault.column}: {fault.problem}")
        out(f" ({literal(fault.note)})\n" if fault.note else "\n")
    if faults:
        out(
            f"{faults:,} faulty lines"
            + (f", {len(found)} shown\n" if faults > len(found) else "\n")
        )
    return ExitCode.BAD_DATA if faults else ExitCode.OK
