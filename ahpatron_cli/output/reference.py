"""All learners and kernels with their parameters: the reference that `inspect --learners` shows."""

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from rich.console import Console
from rich.text import Text

from ahpatron_cli import __version__
from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner
from ahpatron_cli.core.parameters import Spec
from ahpatron_cli.output.terminal import Window, print_lines
from ahpatron_cli.records import SCHEMA, Json, ParamValue, plain

_ASCII = {
    **{"α": "alpha", "β": "beta", "γ": "gamma", "ε": "epsilon", "η": "eta", "κ": "k"},
    **{
        "δ": "delta",
        "ν": "nu",
        "ρ": "rho",
        "λ": "lambda",
        "σ": "sigma",
        "τ": "tau",
        "√": "sqrt",
        "·": "*",
        "²": "^2",
        "₁": "_1",
    },
    **{"‖": "||", "⟨": "<", "⟩": ">"},
}


def print_reference(console: Console) -> None:
    """Every learner and kernel, from their declarations."""
    print_lines(_lines, _ASCII, console)


def reference_to_json() -> Json:
    """The same as a document."""
    return {
        "schema": SCHEMA,
        "version": __version__,
        "learners": [_to_json(kind) for kind in REGISTRY.values()],
        "kernels": [_to_json(kind) for kind in KERNELS.values()],
    }


def _lines(window: Window) -> Iterator[Text]:
    yield from window.folded("Learners (-l NAME, -p PARAMETER=VALUE)", style="bold")
    for learner in REGISTRY.values():
        yield from _describe(window, learner)
    yield Text()
    yield from window.folded("Kernels (--kernel NAME)", style="bold")
    for kernel in KERNELS.values():
        yield from _describe(window, kernel)


def _describe(window: Window, kind: type[Learner[Any]] | type[Kernel]) -> Iterator[Text]:
    yield Text()
    yield Text(kind.name, style="bold")
    yield from window.folded(_title(kind), "  ", "  ")
    for name, spec in kind.specs().items():
        first = f"    {name:<11} {window.ours(spec.symbol):<4} "
        yield from window.folded(spec.meaning, first, " " * 16)
        default = spec.formula or _default(kind, name)
        legal = f"{spec.legal()}; default {'none' if default is None else default}"
        yield from window.folded(legal, " " * 16, " " * 16)


def _title(kind: type[Learner[Any]] | type[Kernel]) -> str:
    if issubclass(kind, Learner):
        return kind.title
    return (kind.__doc__ or "").splitlines()[0].replace("`", "")


def _default(kind: type[Learner[Any]] | type[Kernel], name: str) -> ParamValue | None:
    values: dict[str, Any] = {field.name: field.default for field in fields(kind)}
    return None if values[name] is None else plain(values[name])


def _to_json(kind: type[Learner[Any]] | type[Kernel]) -> Json:
    parameters = [_parameter(kind, name, spec) for name, spec in kind.specs().items()]
    return {"name": kind.name, "title": _title(kind), "parameters": parameters}


def _parameter(kind: type[Learner[Any]] | type[Kernel], name: str, spec: Spec) -> Json:
    return {
        "name": name,
        "symbol": spec.symbol,
        "meaning": spec.meaning,
        "type": spec.kind.__name__,
        "legal": spec.legal(),
        "over": spec.over,
        "at_least": spec.at_least,
        "under": spec.under,
        "at_most": spec.at_most,
        "even": spec.even,
        "words": [*spec.words, *(["inf"] if spec.infinite else [])],
        "default": _default(kind, name),
        "default_formula": spec.formula,
    }
