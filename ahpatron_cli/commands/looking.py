"""What `ahpatron inspect` finds out, and how it is put."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields

from ahpatron_cli.commands.shown import Said
from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner
from ahpatron_cli.data.labels import show
from ahpatron_cli.data.source import open_source
from ahpatron_cli.data.strict import Fault
from ahpatron_cli.data.svm_format import SvmReader
from ahpatron_cli.errors import ExitCode
from ahpatron_cli.render.safe import literal
from ahpatron_cli.render.wording import counted


def describe_learners() -> str:
    """Every learner and kernel with its parameters, from their declarations."""
    lines = ["Learners (-l NAME, -p PARAMETER=VALUE)"]
    for learner in REGISTRY.values():
        lines += _describe(learner, learner.title)
    lines += ["", "Kernels (--kernel NAME)"]
    for kernel in KERNELS.values():
        lines += _describe(kernel, (kernel.__doc__ or "").splitlines()[0].replace("`", ""))
    return "\n".join(lines) + "\n"


def _describe(kind: type[Learner] | type[Kernel], title: str) -> Iterator[str]:
    yield from ("", kind.name, f"  {title}")
    defaults = {field.name: field.default for field in fields(kind)}
    for name, spec in kind.specs().items():
        default = "inf" if defaults[name] == math.inf else defaults[name]
        yield f"    {name:<10} {spec.symbol:<4} {spec.meaning}"
        yield f"               {spec.legal()}; default {spec.formula or default}"


def describe_data(path: str, max_faults: int, max_features: int) -> Said:
    """Size, labels and faulty lines of a file, found in one pass; the exit code says if any."""
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
    title = f"{name}: {counted(rows, 'row')}, {counted(features, 'feature')}"
    if rows and features:
        title += f", {reader.counts['values'] / rows / features:.1%} of values stored"
    lines = [title]
    for label, count in sorted(labels.items())[:20]:
        lines.append(f"  label {show(label):>6}: {counted(count, 'row')} ({count / rows:.1%})")
    for line, fault in found:
        note = f" ({literal(fault.note)})" if fault.note else ""
        lines.append(f"{name}:{line}:{fault.column}: {fault.problem}{note}")
    if faults:
        hidden = f", {len(found)} shown" if faults > len(found) else ""
        lines.append(counted(faults, "faulty line") + hidden)
    code = ExitCode.BAD_DATA if faults else ExitCode.OK
    return Said("\n".join(lines) + "\n", code)
