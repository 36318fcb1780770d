"""Output of `learners`: all learners and kernels, or some learners in detail, and BibTeX."""

from __future__ import annotations

import inspect
import re
import shlex
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from ahpatron_cli import __version__
from ahpatron_cli.core import KERNELS, REGISTRY, Kernel, Learner
from ahpatron_cli.core.references import PUBLICATIONS
from ahpatron_cli.output.render import Terminal, in_lines
from ahpatron_cli.records import DOCUMENT_VERSION, Json, plain_params

_PARAMETERS = "Parameters (-p NAME=VALUE)"
_DEVIATIONS = "Deviations\n----------\n"
_EXAMPLES = "Examples\n--------\n"
_AFTER_NAME = re.compile(r" +\S.{,12}? {2,}")
"""What is before the text of a line of a rule: its number, or the name of the step."""


def all_learners_to_json() -> Json:
    """All learners and kernels with their parameters, as JSON."""
    return {
        "schema": DOCUMENT_VERSION,
        "version": __version__,
        "learners": [_learner_to_json(kind) for kind in REGISTRY.values()],
        "kernels": [_kernel_to_json(kind) for kind in KERNELS.values()],
    }


def described_to_json(kinds: Mapping[str, type[Learner]], kernels: Iterable[type[Kernel]]) -> Json:
    """Some learners in detail, with their rules, and some kernels, as JSON.

    `kinds` has the learners by what `-l` takes: a name, or FILE.py:CLASS.
    """
    details = [
        {
            **_learner_to_json(kind),
            "given": given,
            "rule": rule_of(kind),
            "deviations": deviations_of(kind),
        }
        for given, kind in kinds.items()
    ]
    return {
        "schema": DOCUMENT_VERSION,
        "version": __version__,
        "learners": details,
        "kernels": [_kernel_to_json(kind) for kind in kernels],
    }


def _kernel_to_json(kind: type[Kernel]) -> Json:
    title = _first_line(kind).replace("`", "")
    return _kind_to_json(kind, title=title)


def _learner_to_json(kind: type[Learner]) -> Json:
    return {
        **_kind_to_json(kind, title=kind.title),
        "grid": list(kind.grid),
        "references": [_reference_to_json(reference) for reference in kind.references],
    }


def _reference_to_json(reference: str) -> Json:
    """Key and text of a publication; the key is null if it has no entry in `PUBLICATIONS`."""
    known = PUBLICATIONS.get(reference)
    if known is None:
        return {"key": None, "text": reference}
    return {"key": reference, "text": known.text}


def _kind_to_json(kind: type[Learner] | type[Kernel], title: str) -> Json:
    """Name, title and parameters of a learner or kernel."""
    defaults: dict[str, Any] = {}
    for field in fields(kind):
        defaults[field.name] = field.default
    shown_defaults = plain_params(defaults)
    parameters = []
    for name, spec in kind.specs().items():
        words = [*spec.words]
        if spec.infinite:
            words.append("inf")
        parameter: Json = {
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
            "words": words,
            "default": shown_defaults[name],
            "default_formula": spec.formula,
        }
        parameters.append(parameter)
    return {"name": kind.name, "title": title, "parameters": parameters}


def _first_line(kind: type[Learner] | type[Kernel]) -> str:
    return (kind.__doc__ or "").splitlines()[0]


def rule_of(kind: type[Learner]) -> str:
    """The docstring of a learner without its deviations and examples."""
    text = _without_examples(kind)
    rule, _, _ = text.partition(_DEVIATIONS)
    return rule.strip()


def deviations_of(kind: type[Learner]) -> str:
    """How a learner deviates from its publication; empty if the docstring names nothing."""
    text = _without_examples(kind)
    _, _, deviations = text.partition(_DEVIATIONS)
    return deviations.strip()


def _without_examples(kind: type[Learner]) -> str:
    """The docstring of a learner up to its examples; empty if it has none."""
    text = kind.__doc__
    # @dataclass writes the signature for a class without a docstring
    if text is None or text.startswith(f"{kind.__name__}("):
        return ""
    without_examples, _, _ = inspect.cleandoc(text).partition(_EXAMPLES)
    return without_examples


def bibtex_of(kinds: Iterable[type[Learner]]) -> tuple[str, list[str]]:
    """BibTeX entries of all publications of these learners, each once, and those without one."""
    entries = []
    others = []
    references: list[str] = []
    for kind in kinds:
        references += kind.references
    for key in dict.fromkeys(references):
        if key in PUBLICATIONS:
            publication = PUBLICATIONS[key]
            entries.append(publication.bibtex(key))
        else:
            others.append(key)
    text = "\n\n".join(entries)
    if text:
        text += "\n"
    return text, others


def all_learners_text(document: Json, terminal: Terminal) -> str:
    """All learners and kernels with their parameters, as text."""
    lines = [
        *_kinds("Learners (-l NAME, -p PARAMETER=VALUE)", document["learners"], terminal),
        "",
        *_kinds("Kernels (--kernel NAME)", document["kernels"], terminal),
        "",
        *terminal.folded("`ahpatron learners NAME` describes a learner or kernel."),
    ]
    return in_lines(lines)


def _kinds(head: str, kinds: Iterable[Json], terminal: Terminal) -> list[str]:
    """Lines on learners or kernels: names, titles and parameters."""
    lines = [terminal.strong(head)]
    for kind in kinds:
        lines.append("")
        lines.append(terminal.strong(kind["name"]))
        lines += terminal.folded(_about(kind), "  ", "  ")
        lines += _parameters(kind, terminal, indent=4)
    return lines


def described_text(document: Json, terminal: Terminal) -> str:
    """Some learners and kernels in detail, as text."""
    described = [_learner_lines(kind, terminal) for kind in document["learners"]]
    described += [_kernel_lines(kind, terminal) for kind in document["kernels"]]
    return "\n".join(map(in_lines, described))


def _learner_lines(kind: Json, terminal: Terminal) -> list[str]:
    """Lines on a learner: rule, deviations, parameters, grid and publications."""
    rule = _paragraphs(kind["rule"], terminal)
    deviations = _paragraphs(kind["deviations"], terminal)
    references = list[str]()
    for one in kind["references"]:
        references += terminal.folded(one["text"], "  ", "    ")
    parameters = _parameters(kind, terminal, indent=2)
    return [
        *terminal.title(kind["name"], _about(kind)),
        *_section("Rule", rule, terminal),
        *_section("Deviations from the publication", deviations, terminal),
        *_section(_PARAMETERS, parameters, terminal),
        *_section("Values worth trying", _sweep(kind), terminal),
        *_section("Publications", references, terminal),
    ]


def _about(kind: Json) -> str:
    """The title of a learner or kernel without its name, which stands before it."""
    title: str = kind["title"]
    name, _, rest = title.partition(": ")
    if rest and name.lower() == kind["name"]:
        return rest
    return title


def _kernel_lines(kind: Json, terminal: Terminal) -> list[str]:
    """Lines on a kernel: formula, parameters, and how it is chosen."""
    name = kind["name"]
    choice = terminal.folded(f"ahpatron run DATA --kernel {name}", "  ", "    ")
    parameters = _parameters(kind, terminal, indent=2)
    return [
        *terminal.title(name, kind["title"]),
        *_section(_PARAMETERS, parameters, terminal),
        *_section("Use", choice, terminal),
    ]


def _section(head: str, lines: list[str], terminal: Terminal) -> list[str]:
    """A heading above lines; nothing if there are none."""
    if not lines:
        return []
    return ["", terminal.strong(head), *lines]


def _parameters(kind: Json, terminal: Terminal, *, indent: int) -> list[str]:
    """Lines on the parameters of a learner or kernel."""
    lines = []
    for one in kind["parameters"]:
        meaning = one["meaning"]
        legal = one["legal"]
        default = one["default_formula"] or one["default"]
        if default is None:
            default = "none"
        text = f"{meaning} ({legal}; default {default})"
        name = one["name"]
        symbol = terminal.escape(one["symbol"])
        first = f"{name:<14} {symbol:<4} "
        rest = " " * (indent + 16)
        first = " " * indent + first
        lines += terminal.folded(text, first, rest)
    return lines


def _paragraphs(text: str, terminal: Terminal) -> list[str]:
    """Lines of a text: paragraphs are folded, indented lines (formulas) only if too long."""
    lines = list[str]()
    for paragraph in text.split("\n\n"):
        if not paragraph:
            continue
        if lines:
            lines.append("")
        if paragraph.startswith(" "):
            for line in paragraph.splitlines():
                lines += _formula(line, terminal)
        else:
            words = paragraph.split()
            lines += terminal.folded(" ".join(words), "  ", "  ")
    return lines


def _formula(line: str, terminal: Terminal) -> list[str]:
    """An indented line; what does not fit into the terminal is indented as its text is."""
    indent = len(line) - len(line.lstrip())
    text = _AFTER_NAME.match(line)
    if text is not None:
        indent = text.end()
    else:
        indent += 2
    return terminal.folded(f"  {line}", rest=" " * (indent + 2))


def _sweep(kind: Json) -> list[str]:
    """The command that tries the grid of a learner."""
    if not kind["grid"]:
        return []
    grid = [f"-p '{one}'" for one in kind["grid"]]
    options = " ".join(grid)
    learner = shlex.quote(kind["given"])
    command = f"ahpatron sweep DATA -l {learner} {options} --out results.jsonl"
    return textwrap.wrap(
        command,
        width=96,
        initial_indent="  ",
        subsequent_indent="    ",
        break_long_words=False,
        break_on_hyphens=False,
    )
