"""Write what the documentation takes from declarations: tables of options, learners and kernels,
the public names of the core, and the man page.

    python docs/make_reference.py

Each table or list stands between `<!-- made: NAME -->` and `<!-- end -->` in a page; the man page
is docs/ahpatron.1. The tables of docs/benchmark.md are those of docs/benchmark.json, which
tests/benchmarks/field.py writes. `tests/test_docs.py` fails if one of them is not what this
script writes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

import typer.main

from ahpatron_cli import __version__, core
from ahpatron_cli.cli.app import application
from ahpatron_cli.cli.help import describe
from ahpatron_cli.core import KERNELS
from ahpatron_cli.core.references import PUBLICATIONS
from ahpatron_cli.core.registry import BUILT_IN, REGISTRY
from ahpatron_cli.errors import ExitCode
from ahpatron_cli.output.learners_text import all_learners_to_json

LEARNERS = [REGISTRY[name] for name in BUILT_IN]
FOLDER = Path(__file__).parent
MAN_PAGE = FOLDER / "ahpatron.1"
MADE = re.compile(r"(<!-- made: ([\w ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)

EXIT_CODES = {
    ExitCode.OK: "done; also if the reader of a pipe closed it and there is no other output",
    ExitCode.BUG: "a bug of ours, with a traceback and the version: please report it. Also: "
    "not enough memory, and faults in a learner of your own",
    ExitCode.USAGE: "wrong options",
    ExitCode.FAILED_TRIALS: "a sweep ended with failed trials; the others are in the results file",
    ExitCode.RATE_TOO_HIGH: "the mistake rate is above `--max-rate`",
    ExitCode.BAD_DATA: "bad data",
    ExitCode.NO_INPUT: "input cannot be opened",
    ExitCode.CANNOT_CREATE: "output cannot be created",
    ExitCode.IO_ERROR: "I/O error, such as a full disk",
    ExitCode.LOCKED: "the results file or the state is in use by another process",
    ExitCode.HUNG_UP: "hung up (SIGHUP)",
    ExitCode.INTERRUPTED: "interrupted (Ctrl-C)",
    ExitCode.BROKEN_PIPE: "the reader of `--predictions` closed the pipe; everything learned is "
    "saved, and the other outputs are written",
    ExitCode.TERMINATED: "terminated (SIGTERM)",
}

Row = tuple[str, ...]

BENCHMARK = json.loads((FOLDER / "benchmark.json").read_text(encoding="utf-8"))
"""What tests/benchmarks/field.py has measured."""
ELSEWHERE = {"elec": "Elec2 (elec)"}
"""Names of streams that are known by another name, too."""


def commands() -> dict[str, Any]:
    """The commands by name, as click has them."""
    group: Any = typer.main.get_command(application())
    return dict(group.commands)


def markdown(head: Row, rows: list[Row]) -> str:
    """A table; bars within cells are escaped."""
    lines = [head, ("---",) * len(head), *rows]
    cells = ([cell.replace("|", "\\|") for cell in line] for line in lines)
    return "".join(f"| {' | '.join(line)} |\n" for line in cells)


def options_table(name: str) -> str:
    """All options of one command."""
    rows: list[Row] = []
    for heading, names, text in describe(commands()[name].params):
        meaning, _, default = text.removesuffix("]").partition(" [default: ")
        rows.append((heading, f"`{names}`", meaning, default))
    return markdown(("group", "option", "meaning", "default"), rows)


def parameters_table(kinds: list[Any]) -> str:
    """All parameters of learners or kernels; those of the first column are declared below them."""
    rows: list[Row] = []
    named = {kind.name for kind in kinds}
    document = all_learners_to_json()
    for one in (*document["learners"], *document["kernels"]):
        if one["name"] not in named:
            continue
        shown = f"`{one['name']}`"
        for spec in one["parameters"]:
            default = spec["default_formula"] or spec["default"]
            default = "none" if default is None else str(default)
            rows.append(
                (
                    shown,
                    f"`{spec['name']}`",
                    spec["symbol"],
                    spec["meaning"],
                    spec["legal"],
                    default,
                )
            )
            shown = ""
        if not one["parameters"]:
            rows.append((shown, "", "", "no parameters", "", ""))
    return markdown(("name", "parameter", "symbol", "meaning", "legal values", "default"), rows)


def exit_codes_table() -> str:
    """The exit codes."""
    return markdown(("code", "meaning"), [(str(int(code)), EXIT_CODES[code]) for code in ExitCode])


def core_names() -> str:
    """The public names of the core: learners by themselves."""
    learners = {kind.__name__ for kind in LEARNERS}
    exported = sorted(core.__all__, key=str.lower)
    of_learners = [f"`{name}`" for name in exported if name in learners]
    others = [f"`{name}`" for name in exported if name not in learners]
    return (
        f"- `ahpatron_cli.core`: {', '.join(others)}\n"
        f"- `ahpatron_cli.core`, the learners: {', '.join(of_learners)}\n"
    )


def publications() -> str:
    """The publications of all learners, each with the learners that it is about."""
    learners: dict[str, list[str]] = {}
    for kind in LEARNERS:
        for key in kind.references:
            learners.setdefault(key, []).append(f"`{kind.name}`")
    lines = [f"- {', '.join(learners[key])}: {PUBLICATIONS[key].text}\n" for key in learners]
    return "".join(lines)


def errors_table(errors: dict[str, dict[str, float]], streams: list[str]) -> str:
    """Mistakes in per cent, a row per model; the fewest on each stream are bold."""
    least = {
        stream: min(own[stream] for own in errors.values() if stream in own) for stream in streams
    }
    rows = []
    for model, own in errors.items():
        if not own.keys() & set(streams):
            continue
        cells = [f"{own[stream]:.1f}" if stream in own else "–" for stream in streams]
        bold = [
            f"**{cell}**" if own.get(stream) == least[stream] else cell
            for stream, cell in zip(streams, cells, strict=True)
        ]
        rows.append((model_name(model), *bold))
    return markdown(("model", *(ELSEWHERE.get(name, name) for name in streams)), rows)


def model_name(model: str) -> str:
    """A learner of ours as code, a model of river in words."""
    learner, comma, rest = model.partition(",")
    ours = learner in ("metron", "arow", "ahpatron+")
    return f"`{learner}`{comma}{rest}" if ours else model


def measured_errors() -> dict[str, dict[str, float]]:
    """Mistakes in per cent of each model, and on each stream."""
    return {model: one["errors"] for model, one in BENCHMARK["models"].items()}


def published_errors() -> dict[str, dict[str, float]]:
    """The figures of river's benchmark, below those of metron."""
    return {"metron": measured_errors()["metron"], **BENCHMARK["published by river"]}


def moas_errors() -> dict[str, dict[str, float]]:
    """The figures of MOA, below those of metron."""
    found = {"metron": measured_errors()["metron"]}
    for number, model in enumerate(BENCHMARK["MOA"]["models"]):
        cells = {name: own[number] for name, own in BENCHMARK["MOA"]["errors"].items()}
        found[model] = {name: cell for name, cell in cells.items() if cell is not None}
    return found


def models_table() -> str:
    """How metron compares with each model over all streams, and what the model takes."""
    rows = []
    for model, one in BENCHMARK["models"].items():
        streams = one["on streams"]
        rows.append(
            (
                model_name(model),
                f"{streams['ratio']:.2f}" if streams["all"] else "–",
                f"{streams['fewer']} / {streams['as many']} / {streams['more']}",
                f"{one['on files']['ratio']:.2f}" if one["on files"]["all"] else "–",
                f"{one['time']:g}",
                str(one["megabytes"]),
            )
        )
    head = ("model", "streams: mistakes of `metron` / its", "fewer / as many / more")
    return markdown((*head, "files: mistakes of `metron` / its", "time", "memory, MB"), rows)


def summary_table() -> str:
    """metron on river's own streams, beside the better of the figures published and measured."""
    streams = BENCHMARK["kinds"]["river"]
    measured = measured_errors()
    models = set(BENCHMARK["published by river"]) - {"no change"}

    def lowest(stream: str, names: Collection[str]) -> float:
        sources = (BENCHMARK["published by river"], measured)
        found = [source.get(name, {}).get(stream) for source in sources for name in names]
        return min(rate for rate in found if rate is not None)

    errors = {
        "metron": measured["metron"],
        f"the best of {len(models)} models of river on each stream": {
            stream: lowest(stream, models) for stream in streams
        },
        "adaptive random forest of river": {
            stream: lowest(stream, ["adaptive random forest"]) for stream in streams
        },
        "adaptive random forest of MOA": moas_errors()["ARF"],
    }
    return errors_table(errors, streams)


def losses_table() -> str:
    """The streams on which another model makes fewer mistakes than metron."""
    metron = measured_errors()["metron"]
    sources = {
        "": {name: own for name, own in measured_errors().items() if "metron" not in name},
        " (published by river)": BENCHMARK["published by river"],
        " (MOA)": {name: own for name, own in moas_errors().items() if name != "metron"},
    }
    rows = []
    for stream, rate in metron.items():
        better = [
            (own[stream], f"{model_name(name)}{source} {own[stream]:.1f}")
            for source, models in sources.items()
            for name, own in models.items()
            if own.get(stream, rate) < rate
        ]
        if better:
            text = ", ".join(shown for _, shown in sorted(better))
            rows.append((ELSEWHERE.get(stream, stream), f"{rate:.1f}", text))
    return markdown(("stream", "`metron`", "fewer mistakes"), rows)


def rows_table() -> str:
    """The streams and files with their sizes."""
    rows = []
    for kind, names in BENCHMARK["kinds"].items():
        for name in names:
            size = f"{BENCHMARK['rows'][name]:,}"
            rows.append((kind, ELSEWHERE.get(name, name), size, str(BENCHMARK["classes"][name])))
    return markdown(("kind", "name", "rows", "classes"), rows)


def benchmark_table(name: str) -> str:
    """A table of docs/benchmark.md."""
    if name == "models":
        return models_table()
    if name == "rows":
        return rows_table()
    if name == "summary":
        return summary_table()
    if name == "losses":
        return losses_table()
    if name == "published":
        return errors_table(published_errors(), BENCHMARK["kinds"]["river"])
    if name == "MOA":
        return errors_table(moas_errors(), list(BENCHMARK["MOA"]["errors"]))
    return errors_table(measured_errors(), BENCHMARK["kinds"][name])


def table(name: str) -> str:
    """The table or list of this name."""
    if name.startswith("benchmark "):
        return benchmark_table(name.removeprefix("benchmark "))
    if name == "names of the core":
        return core_names()
    if name == "publications":
        return publications()
    if name.startswith("options "):
        return options_table(name.removeprefix("options "))
    if name == "exit codes":
        return exit_codes_table()
    return parameters_table({"learners": LEARNERS, "kernels": list(KERNELS.values())}[name])


def with_tables(page: str) -> str:
    """A page with its tables as the declarations have them now."""
    return MADE.sub(lambda found: found[1] + table(found[2]) + found[4], page)


def roff(text: str) -> str:
    """Text that troff prints as it is."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"^([.'])", r"\\&\1", escaped, flags=re.MULTILINE)


def man_page() -> str:
    """The manual in the language of man(7)."""
    group: Any = typer.main.get_command(application())
    lines = [
        f'.TH AHPATRON 1 "" "ahpatron {__version__}" "User Commands"',
        ".SH NAME",
        "ahpatron \\- run budgeted online kernel learners on files and streams and count mistakes",
        ".SH SYNOPSIS",
    ]
    for name, command in group.commands.items():
        arguments = " ".join(
            param.metavar for param in command.params if param.param_type_name == "argument"
        )
        lines += [f".B ahpatron {name}", roff(f"[OPTIONS] {arguments}"), ".br"]
    lines += [".SH DESCRIPTION", roff(group.help)]
    for name, command in group.commands.items():
        lines += [f".SH AHPATRON {name.upper()}"]
        for paragraph in re.split(r"\n\s*\n", command.help):
            lines += [".PP", roff(" ".join(paragraph.split()))]
        last = ""
        for heading, names, text in describe(command.params):
            if heading != last:
                lines += [f".SS {heading}"]
                last = heading
            lines += [".TP", f".B {roff(names)}", roff(text)]
        if command.epilog:
            examples = [line.strip() for line in command.epilog.splitlines()[2:]]
            lines += [".SS Examples", ".nf", *map(roff, examples), ".fi"]
    lines += [".SH EXIT STATUS"]
    for code in ExitCode:
        lines += [".TP", f".B {int(code)}", roff(EXIT_CODES[code])]
    lines += [
        ".SH SEE ALSO",
        "\\fBahpatron learners\\fP lists all learners, kernels and parameters.",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Update all tables and the man page."""
    for path in (FOLDER.parent / "README.md", *sorted(FOLDER.glob("*.md"))):
        page = path.read_text(encoding="utf-8")
        path.write_text(with_tables(page), encoding="utf-8")
    MAN_PAGE.write_text(man_page(), encoding="utf-8")


if __name__ == "__main__":
    main()
