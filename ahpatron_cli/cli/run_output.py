"""Outputs of `run`: the table on stdout, files, and learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ahpatron_cli.atomic import check_outputs, format_of_suffix, write_atomically
from ahpatron_cli.cli.stderr import Stderr
from ahpatron_cli.data.cells import number
from ahpatron_cli.errors import ExitCode, usage
from ahpatron_cli.output.formats import to_text, write
from ahpatron_cli.output.predictions import STDOUT, predictions_format
from ahpatron_cli.records import Curve, RunDocument, grouped
from ahpatron_cli.runner import RunResult
from ahpatron_cli.settings import Output, RunSettings


def check_output(settings: RunSettings, inputs: Sequence[str]) -> None:
    """Check all output paths before a long run; a UserError if one cannot be written."""
    output = settings.output
    if output.predictions == STDOUT and "format" in settings.given:
        problem = f"--predictions - and --format {output.format} cannot share standard output"
        raise usage(problem, "write the results to a file: --out FILE")
    if output.out:
        format_of_suffix(output.out, output.format)
    highest_rate(settings.live.max_rate)
    if output.curve:
        from ahpatron_cli.output.pictures import picture_format

        picture_format(output.curve, "csv")
    if output.predictions:
        predictions_format(output.predictions)
    predictions = output.predictions
    if predictions == STDOUT:
        predictions = None
    files = {
        "--out": output.out,
        "--curve": output.curve,
        "--predictions": predictions,
        "--save": settings.models.save,
        "--checkpoint": settings.models.checkpoint,
        "--prometheus": settings.live.prometheus,
        "--state": settings.live.state,
    }
    check_outputs(files, inputs)


def print_documents(output: Output, documents: Sequence[RunDocument], stderr: Stderr) -> None:
    """Print the documents on stdout, or on stderr if stdout is used for the predictions."""
    if output.predictions == STDOUT:
        text = to_text(documents, output.format, stderr.terminal())
        stderr.show(text)
    else:
        write(lambda terminal: to_text(documents, output.format, terminal), output.format)


def export(output: Output, documents: Sequence[RunDocument], curves: Sequence[Curve]) -> None:
    """Write the files of --out and --curve."""
    if output.curve:
        from ahpatron_cli.output.pictures import write_curve

        write_curve(output.curve, curves)
    if output.out:
        format = format_of_suffix(output.out, output.format)
        write_atomically(output.out, to_text(documents, format))


def highest_rate(text: str | None) -> float | None:
    """Parse the value of --max-rate: a share from 0 to 1."""
    if text is None:
        return None
    value = number(text)
    if value is None or not 0 <= value <= 1:
        raise usage(f"--max-rate takes a number from 0 to 1, got {text!r}", "0.1 is 10 %")
    return value


def rate_code(documents: Sequence[RunDocument], limit: str | None, stderr: Stderr) -> ExitCode:
    """The exit code by --max-rate, with a warning about each rate that is too high."""
    highest = highest_rate(limit)
    code = ExitCode.OK
    if highest is None:
        return code
    for document in documents:
        for run in document.runs:
            rate = run.mistake_rate
            of = "all rounds"
            if run.window:
                rate = run.window.mistake_rate
                of = f"the last {run.window.rounds:,} rounds"
            if rate > highest:
                stderr.warn(f"{run.learner}: {rate:.2%} mistakes in {of}, above --max-rate {limit}")
                code = ExitCode.RATE_TOO_HIGH
    return code


def curves_of(
    path: str, results: Sequence[RunResult], *, names_path: bool, windowed: bool
) -> list[Curve]:
    """The learning curve of each learner on a file, with the recent mistake rate if `windowed`.

    `names_path`: labels name the file, because there are several.
    """
    name = Path(path).name
    curves = []
    for group in grouped(results, lambda result: (result.record.learner,)):
        learner = group[0].record.learner
        label = learner
        if names_path:
            label = f"{path}: {learner}"
        curve = _mean_curve(label, group, about=name, windowed=windowed)
        curves.append(curve)
    return curves


def _mean_curve(label: str, repeats: Sequence[RunResult], *, about: str, windowed: bool) -> Curve:
    """Mean and standard deviation over the repeats of a learner."""
    first = repeats[0].record
    curves = [result.curve for result in repeats]
    stacked = np.stack(curves, axis=-1)
    rounds, mistakes, recent = stacked
    recent_rate = None
    if windowed:
        recent_rate = recent.mean(axis=1)
    deviation = None
    if len(repeats) > 1:
        deviation = mistakes.std(axis=1, ddof=1)
    by_repeat = [one.record.baseline_mistakes or 0 for one in repeats]
    baseline_mistakes = sum(by_repeat)
    all_rounds = len(repeats) * first.rounds
    return Curve(
        label=label,
        rounds=rounds[:, 0].astype(np.int64),
        mistakes=mistakes.mean(axis=1),
        recent_rate=recent_rate,
        sd=deviation,
        baseline=baseline_mistakes / max(all_rounds, 1),
        about=about,
    )
