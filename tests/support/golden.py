"""Every table in every format, to be compared with the files in tests/output/golden.

    PYTHONPATH=tests python -m support.golden --write

writes them from scratch. Look at `git diff` before you commit.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from msgspec import structs

from ahpatron_cli.core.certificates import Certificate, Term
from ahpatron_cli.output.formats import FORMATS, summary_to_text, to_text
from ahpatron_cli.output.render import Terminal
from ahpatron_cli.output.run_table import run_page
from ahpatron_cli.output.sweep_table import summary_page
from ahpatron_cli.records import Metrics, RunDocument, ThisFile
from ahpatron_cli.sweep.summary import SweepSummary, summarise_trials
from support.trials import (
    make_data,
    make_document,
    make_perceptron,
    make_run,
    make_trial,
    small_sweep,
)
from support.trials import make_trials as trials

FOLDER = Path(__file__).resolve().parents[1] / "output/golden"
SUFFIXES = {"table": "txt", "markdown": "md", "latex": "tex"}
CERTIFICATE = Certificate(
    theorem="Theorem 6",
    counts="failures",
    count=113,
    bound=241.0000001,
    trivial=950,
    vacuous=False,
    comparator="SVM, C = 0.5",
    loss=99.94,
    norm=2.346,
    formula="L_T(f)/(1 - a) + (1 - 2·ζ)·√B/((1 - a)·U)·‖f‖² + Δ_T",
    quantities={"B": 400, "ζ": 0.125, "|N_T|": 50},
    terms=(
        Term("L_T(f)", factor=1.5, value=99.94),
        Term("‖f‖²", factor=20, value=5.503716),
        Term("|N_T|", factor=-0.3796864, value=50),
        Term("rounding", factor=1e-9, value=1241.0),
    ),
)


def run_document() -> RunDocument:
    """Two permutations of three learners, one worse than the baseline; bounds, one vacuous."""
    runs = (
        make_run(mistakes=100, mistake_rate=0.10, baseline_mistakes=130),
        make_run(mistakes=121, mistake_rate=0.121, repeat=1, baseline_mistakes=130),
        *(make_perceptron(repeat=repeat, baseline_mistakes=130) for repeat in (0, 1)),
        *(make_perceptron(learner="=avp", repeat=n, baseline_mistakes=150) for n in (0, 1)),
    )
    vacuous = replace(CERTIFICATE, bound=950.0, vacuous=True, counts="mistakes")
    none = ("no theorem covers it",)
    certified = [CERTIFICATE, CERTIFICATE, CERTIFICATE, vacuous, none, none]
    return replace(make_document(*runs, labels=(0, 1)), certified=certified)


def resumed() -> RunDocument:
    """One pass of a learner that never halves, continued on a second file."""
    part = ThisFile(1000, 50, 0.05)
    changes = {"rounds": 3000, "mistakes": 200, "mistake_rate": 2 / 30, "this_file": part}
    return make_document(make_perceptron(**changes))


def classes() -> RunDocument:
    """Three classes, with metrics."""
    metrics = Metrics(None, None, None, 0.25, 0.625, None, None)
    confusion = ((300, 20, 12), (20, 300, 20), (20, 20, 288))
    run = make_run(metrics=metrics, classes=(1, 2, 3.5), confusion=confusion)
    document = make_document(run)
    return replace(document, data=structs.replace(document.data, labels=(1, 2, 3.5)))


def swept() -> SweepSummary:
    """Two learners with one setting, one with two, and failed trials."""
    hostile = "a\x1b[31m.svm:\n[bold]|_%"
    failed = [make_trial("avp", None, n, error="not enough memory") for n in range(3, 5)]
    return summarise_trials([*small_sweep(), *failed, make_trial("alma2", None, error=hostile)])


def matrix() -> SweepSummary:
    """Three learners on three data sets; one of them was not run on all."""
    a, b, c = (make_data(f"d/{name}.svm.gz") for name in "abc")
    return summarise_trials(
        [
            *trials("ahpatron", [0.09, 0.10, 0.11], a),
            *trials("ahpatron", [0.0900, 0.0910, 0.0920], b),
            *trials("ahpatron", [0.09, 0.10, 0.11], c),
            *trials("avp", [0.110, 0.120, 0.133], a),
            *trials("avp", [0.0910, 0.0900, 0.0890], b),
            *trials("avp", [0.12, 0.13, 0.14], c),
            *trials("perceptron", [0.13, 0.14, 0.15], a),
            *trials("perceptron", [0.13, 0.14, 0.15], c),
        ]
    )


def texts() -> Iterator[tuple[str, str]]:
    """The name and the content of each golden file."""
    shown: dict[str, Callable[[str], str]] = {
        "run": lambda format: to_text([run_document()], format),
        "sweep": lambda format: summary_to_text(swept(), format),
        "matrix": lambda format: summary_to_text(matrix(), format, only_matrix=True),
    }
    for name, text in shown.items():
        # means, spreads and p-values in full precision are not the same on all machines
        for format in FORMATS if name == "run" else SUFFIXES:
            yield f"{name}.{SUFFIXES.get(format, format)}", text(format)
    yield "classes.md", to_text([classes()], "markdown")
    yield "resumed.txt", to_text([resumed()], "table")
    yield "run_60_columns.txt", Terminal(60, ascii=True).page(run_page([run_document()]))
    yield "sweep_60_columns.txt", Terminal(60, bold=True).page(summary_page(swept()))


if __name__ == "__main__" and "--write" in sys.argv:
    FOLDER.mkdir(exist_ok=True)
    for file, content in texts():
        (FOLDER / file).write_text(content, encoding="utf-8")
