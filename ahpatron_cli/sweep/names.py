"""Names of data sets and of learners in the tables of a sweep: short, and distinct."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import NamedTuple, TypeAlias

from ahpatron_cli.records import Edition, Outcome, TrialData

EditionNames: TypeAlias = Mapping[tuple[str, Edition], str]
"""Name in tables of each learner and edition."""
_SUFFIXES = re.compile(r"(?<=[^/])(\.(svm|libsvm|svmlight|txt|dat|csv|tsv|gz|bz2|xz))+$")
"""Suffixes of file names that short names leave out."""


def edition_names(trials: Iterable[Outcome]) -> EditionNames:
    """Name in tables of each learner and edition: with what distinguishes the editions, if any."""
    editions: dict[str, dict[Edition, None]] = {}
    for trial in trials:
        of_learner = editions.setdefault(trial.learner, {})
        of_learner[trial.edition] = None
    names = {}
    for learner, known in editions.items():
        sources = {edition.source for edition in known}
        programs = {edition.program for edition in known}
        for edition in known:
            parts = []
            if len(sources) > 1:
                parts.append(edition.short_source)
            if len(programs) > 1:
                parts.append(edition.program)
            name = learner
            if parts:
                name += f" ({', '.join(parts)})"
            names[learner, edition] = name
    return names


class DatasetName(NamedTuple):
    """The two names of a data set in tables."""

    long: str
    """File and preparation."""
    short: str
    """File only, if that is unique."""


def dataset_names(files: Sequence[TrialData]) -> list[DatasetName]:
    """The names of these data sets."""
    paths = [data.path for data in files]
    bases = [PurePath(path).name for path in paths]
    if len(set(bases)) < len(set(paths)):
        bases = paths
    names = list(map(_with_options, bases, files))
    if len(set(names)) < len(names):  # same name, but other content or order
        names = list(map(_with_content, names, files))
    stems = [_SUFFIXES.sub("", base) for base in bases]
    found = []
    for name, stem in zip(names, stems, strict=True):
        short_name = name
        if stems.count(stem) == 1:
            short_name = stem
        both = DatasetName(name, short_name)
        found.append(both)
    return found


def _with_options(base: str, data: TrialData) -> str:
    """Name of a data set: its file, and the options that prepare it."""
    parts = [base]
    for option, text in data.options:
        sign = " " if "=" in text else "="
        name = option.replace("_", "-")
        parts.append(f"{name}{sign}{text}")
    return ", ".join(parts)


def _with_content(name: str, data: TrialData) -> str:
    """Name of a data set with its hash, and whether it was shuffled."""
    sha256 = data.sha256 or ""
    digits = sha256[:6]
    if data.shuffled:
        return f"{name} ({digits}, shuffled)"
    return f"{name} ({digits})"
