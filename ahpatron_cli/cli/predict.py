"""`ahpatron predict`: the scores of a model, without learning."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from ahpatron_cli.errors import Remedy, UserError, one_of, usage
from ahpatron_cli.numbers import counted
from ahpatron_cli.signals import raise_on_signals

if TYPE_CHECKING:
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.models import SavedPass
    from ahpatron_cli.output.predictions import ScoreWriter

_SUFFIXES = {".csv": "csv", ".jsonl": "jsonl"}


def predict(
    model: str,
    data: list[str],
    learner: str | None = None,
    format: str = "csv",
    out: str | None = None,
    max_features: int = 10_000_000,
    quiet: bool = False,
) -> None:
    """Predict labels with a saved model, without learning.

    Writes the line, the predicted label and the score f(x) of each row.
    Rows may lack labels: they start with index:value, or with ? in place of a label.
    If there are labels, the mistakes are counted on stderr.
    """
    from ahpatron_cli.atomic import check_outputs, format_of_suffix
    from ahpatron_cli.cli.console import Conversation
    from ahpatron_cli.data.dataset import Preparation
    from ahpatron_cli.data.npz import is_archive
    from ahpatron_cli.models import ModelOptions, SavedPass
    from ahpatron_cli.output.predictions import ScoreWriter, open_output
    from ahpatron_cli.sweep.grid import choose_learners

    raise_on_signals()
    talk = Conversation(quiet)
    one_of("format", format, _SUFFIXES.values())
    if out:
        format = format_of_suffix(out, format, _SUFFIXES)
    if data.count("-") > 1:
        raise usage("standard input (-) can be read only once")
    check_outputs({"--out": out}, [model, *data])
    own = choose_learners([learner])[0] if learner else None
    try:
        saved = SavedPass(ModelOptions(resume=model, freeze=True, learner=own), talk.note)
    except UserError as error:
        if any(map(is_archive, data)):
            error.hint = "name the model first: `ahpatron predict MODEL DATA`"
        raise
    preparation = Preparation(max_features=max_features, may_lack_labels=True)
    several = len(data) > 1
    assert saved.model is not None
    with open_output(out) as output:
        writer = ScoreWriter(output, format, saved.model.labels, several=several)
        for path in data:
            try:
                said = _score(path, saved, preparation, writer, talk)
            except UserError as error:
                if error.remedy:
                    error.hint = _hint(error.remedy, model)
                raise
            talk.note(f"{path}: {said}" if several else said)


def _hint(remedy: Remedy, model: str) -> str:
    """How to score a file of another format: features must get the numbers that the model knows."""
    predict = f"ahpatron predict {shlex.quote(model)} -"
    if remedy.label is None:
        return f"{remedy.before}`{remedy.command} | {predict}`"
    command = f"{remedy.tool} {remedy.file} --like MAP.json | {predict}"
    return (
        f"{remedy.before}`{command}`, where MAP.json is the file that `convert --map MAP.json` "
        "wrote for the data that the model learned from"
    )


def _score(
    path: str, saved: SavedPass, preparation: Preparation, writer: ScoreWriter, talk: Conversation
) -> str:
    """Score the rows of one file; what to say of them."""
    import numpy as np

    from ahpatron_cli.data.dataset import stream
    from ahpatron_cli.data.source import open_source
    from ahpatron_cli.runner import mistakes_of

    preparation, known = saved.prepared(preparation)
    rows = labelled = mistakes = 0
    with open_source(path) as source, talk.progress(source.size, path) as line:
        dataset = stream(source, preparation, known)
        frozen = saved.continued(dataset.name)
        for batch in dataset.batches():
            scores = frozen.score(batch)
            writer.write(dataset.name, batch.lines, scores)
            has_label = ~np.isnan(batch.labels)
            rows += len(scores)
            labelled += int(np.count_nonzero(has_label))
            mistaken = mistakes_of(scores[has_label], batch.labels[has_label])
            mistakes += int(np.count_nonzero(mistaken))
            line.update(source.position, mistakes, labelled)
        saved.finish(frozen, dataset)
    if not labelled:
        return f"{counted(rows, 'row')} without labels"
    some = "" if labelled == rows else f" of {rows:,}"
    rate = 100 * mistakes / labelled
    found = f"{counted(mistakes, 'mistake')} in {counted(labelled, 'row')}"
    return f"{found} with labels{some} ({rate:.2f} %)"
