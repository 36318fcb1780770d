"""Advice on a data file, by its profile: what to do about it, and which commands may come next."""

from __future__ import annotations

import shlex

from ahpatron_cli.data.labels import PLAIN_PAIRS, show
from ahpatron_cli.data.schema import listed
from ahpatron_cli.data.source import STDIN_NAME
from ahpatron_cli.data.table_options import TableOptions
from ahpatron_cli.number_text import counted, share, short
from ahpatron_cli.overview import ColumnOverview
from ahpatron_cli.profile import LabelCount, Profile, rare_label
from ahpatron_cli.settings import Data
from ahpatron_cli.sigma import SUGGESTED_LEARNER, best_sigma, is_best

MOST_HINTS = 3
"""Largest number of different hints on the faults of a table."""
GIVES_AWAY = 0.1
"""Mistakes of a rule on one column, relative to the baseline, below which it is suspicious."""
WORTHWHILE = 0.02
"""Smallest gain of F1 for which a weight is advised."""
GRID_MARGIN = 2.0
"""How far the suggested grid reaches beyond the useful widths: its best should not be an end."""


def advice_on(profile: Profile) -> list[str]:
    """Advice on preparing the data for a run."""
    items = advice_on_faults(profile)
    if not profile.rows:
        return items
    if profile.label_problem:
        items.append(profile.label_problem)
    if profile.grouped:
        items.append("use --shuffle: the rows are grouped by label, online learners need a mix")
    if profile.unlabelled:
        items.append(
            f"{counted(profile.unlabelled, 'row')} without a label: `ahpatron run` predicts "
            "such rows and does not learn from them; --shuffle and sweeps refuse them"
        )
    rare = rare_label(profile.labels)
    if rare is not None and profile.positive is not None:
        items.append(_advice_on_rare(rare, profile))
    items += advice_on_columns(profile)
    if profile.contradictory:
        rows = counted(profile.contradictory, "row")
        verb = "contradict"
        if profile.contradictory == 1:
            verb = "contradicts"
        items.append(f"{rows} {verb} others: no learner gets all of them right")
    if profile.advised_scale != "none":
        scale = f"use --scale {profile.advised_scale}"
        items.append(f"{scale}: {profile.reason}; metron needs none")
    elif profile.sigma:
        items.append(f"no scaling is needed: {profile.reason}")
    return items


def advice_on_faults(profile: Profile) -> list[str]:
    """Advice on faulty lines, with their hints."""
    items: list[str] = []
    if profile.stopped:
        items.append("the file cannot be read beyond the last fault")
        last = profile.faulty_lines[-1:]
        items += [one.hint for one in last if one.hint]
    elif profile.faults:
        of_table = [one for one in profile.faulty_lines if one.column is None]
        if of_table:  # which may be those of a column, not of a line
            items.append("`ahpatron run` stops at the first fault")
        else:
            items.append("correct the faulty lines: `ahpatron run` stops at the first of them")
        hints = {one.hint: None for one in of_table if one.hint}
        items += list(hints)[:MOST_HINTS]
    return items


def advice_on_columns(profile: Profile) -> list[str]:
    """Advice on columns that give the label away, or help nothing."""
    items: list[str] = []
    used = [column for column in profile.columns if column.role == "feature"]
    for column in used:
        if gives_away(column, profile.baseline):
            rate = share(column.mistake_rate or 0.0)
            items.append(
                f"{column.name} alone predicts the label with {rate} mistakes: if it is not known "
                f"before the label, --drop {shlex.quote(column.name)}"
            )
    constant = [column for column in used if column.constant or column.type == "empty"]
    same = [column.name for column in constant]
    if same:
        items.append(f"columns with one value or none do not help: {listed(same)}")
    ids = [column.name for column in used if column.like_id]
    if ids:
        items.append(f"columns that look like an id, use --id or --drop: {listed(ids)}")
    return items


def gives_away(column: ColumnOverview, baseline: float | None) -> bool:
    """Whether a column alone predicts the label with less than a tenth of the usual mistakes."""
    if column.mistake_rate is None or not baseline:
        return False
    return column.mistake_rate < GIVES_AWAY * baseline


def _advice_on_rare(rare: LabelCount, profile: Profile) -> str:
    """Advice for data with a rare label: how to see its figures, and a weight if one helps."""
    name = rare.name or show(rare.label)
    labelled = profile.rows - profile.unlabelled
    part = rare.rows / labelled
    options = "--metrics"
    if rare.label != profile.positive:
        options = f"--positive {name} --metrics"
    text = (
        f"only {share(part)} of the rows have the label {name}: use {options}, which shows "
        "its precision, recall and F1"
    )
    if not profile.tried_weights:
        return text
    plain, *weighed = profile.tried_weights
    best = max(weighed, key=lambda one: one.f1)
    by_guessing = 2 * part / (1 + part)  # F1 of predicting the rare label for every row
    to_beat = max(plain.f1, by_guessing)
    is_better = best.f1 >= to_beat + WORTHWHILE
    if is_better and profile.confirmed_weight:
        before = share(plain.f1)
        after = share(best.f1)
        weight = short(best.weight)
        text += f"; with --weight {name}={weight} F1 rises from {before} to {after}"
        text += " on rows drawn at random"
    return text


def next_commands(profile: Profile, table: TableOptions) -> list[str]:
    """Suggested next commands; none if the file is not suitable for learning."""
    low = profile.sigma_low
    high = profile.sigma_high
    if profile.faults or profile.label_problem:
        return []
    if not profile.sigma or not low or not high:
        return []
    words = _words_of_data(profile, table)
    scale: list[str] = []
    if profile.scale and profile.scale != "none":
        scale = ["--scale", profile.scale]
    sigma = best_sigma(profile.sigma, profile.tried)
    run = ["run", *words]
    if is_best(profile.tried_metron, profile.tried):
        run += ["-l", "metron"]  # fewest mistakes on most data, without scaling
    else:
        run += [*scale, "-l", SUGGESTED_LEARNER, "--sigma", short(sigma)]
    needs_labels = profile.from_pipe and profile.positive is None
    if profile.grouped or needs_labels:
        run.append("--shuffle")
    commands = [run]
    if not profile.from_pipe:
        lowest = min(low, sigma) / GRID_MARGIN
        highest = max(high, sigma) * GRID_MARGIN
        grid = f"sigma=log:{short(lowest)}:{short(highest)}:9"
        sweep = ["sweep", *words, *scale]
        sweep += ["-l", "ahpatron+"]  # it is faster, which matters in a sweep
        sweep += ["-p", grid, "--repeats", "5", "--out", "sigma.jsonl"]
        commands.append(sweep)
    lines = []
    for command in commands:
        line = shlex.join(["ahpatron", *command])
        lines.append(line)
    return lines


def _words_of_data(profile: Profile, table: TableOptions) -> list[str]:
    """The words of a command that name the data and how to read them."""
    words = [profile.path]
    if profile.path == STDIN_NAME:
        words = ["FILE"]
    for name, text in table.words:
        words += [f"--{name}", text]
    if profile.positive is not None:
        pair = (profile.negative, profile.positive)
        plain = pair in PLAIN_PAIRS or table.words
        against_all = profile.negative is None
        if against_all or (profile.from_pipe and not plain):
            words += ["--positive", show(profile.positive)]
    if profile.features > Data.max_features:
        words += ["--max-features", str(profile.features)]
    return words
