"""Options for the columns of a table, and for its labels."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, get_args

import msgspec

from ahpatron_cli.data.cells import Spelling
from ahpatron_cli.data.schema import Schema, listed
from ahpatron_cli.errors import UserError, bad_data, suggestion, usage
from ahpatron_cli.settings import DecimalSign, Missing, SlashFormat, Tables, deciding_texts

_IN_PYTHON = ("missing", "category", "drop", "na", "decimal", "date_format")
"""Options of tables that DataFrames have, too."""
OptionText: TypeAlias = tuple[str, str]
"""The name of an option and its value as text."""


@dataclass(frozen=True)
class TableOptions(Tables):
    """Command-line options for tables, with those for their labels."""

    positive: str | None = None
    labels: tuple[str, ...] = ()
    """All labels, for pipes, whose later rows are not known when the schema is inferred."""
    given: tuple[str, ...] = ()
    """Options for tables only that the user has given, which LIBSVM text refuses."""

    @property
    def spelling(self) -> Spelling:
        """How the cells of a table without a model are written."""
        return Spelling(
            decimal=self.decimal,
            slash_format=self.date_format,
            na=self.na,
            trained_decimal=self.decimal,
        )

    def spelling_for(self, schema: Schema | None) -> Spelling:
        """How the cells of a file are written, which a model with this schema may read."""
        if schema is None:
            return self.spelling
        return schema.spelling(self.decimal, self.date_format)

    def spelled_as_before(self, options: Mapping[str, object]) -> TableOptions:
        """The same with the decimal sign and the date format of these saved options."""
        decimal = options.get("decimal", self.decimal)
        date_format = options.get("date_format", self.date_format)
        return replace(
            self,
            decimal=msgspec.convert(decimal, DecimalSign | None),
            date_format=msgspec.convert(date_format, SlashFormat | None),
        )

    @property
    def words(self) -> tuple[OptionText, ...]:
        """Options that differ from their defaults."""
        found = list(deciding_texts(self, Tables))
        if self.positive:
            found.append(("positive", self.positive))
        return tuple(found)

    @property
    def names(self) -> set[str]:
        """The columns that the options name."""
        single = [name for name in (self.label, self.id) if name]
        return {*single, *self.drop, *self.category}

    def undivided(self, schema: Schema | None) -> set[str]:
        """The columns of labels and ids, also those of a model: their cells are single values."""
        names = [self.label, self.id]
        if schema is not None:
            names += [schema.label, schema.id]
        return {name for name in names if name}

    def check(self, names: list[str], path: str) -> None:
        """Refuse options that do not fit a table with these columns."""
        if self.label is None:
            last = shlex.quote(names[-1])
            hint = f"the columns are {listed(names)}: often the last, --label {last}"
            raise bad_data("a table requires --label COLUMN", path, line=1, hint=hint)
        single = [name for name in (self.label, self.id) if name]
        named = Counter([*single, *self.drop, *self.category])
        for name, count in named.items():
            if name not in names:
                raise _no_column(name, names, path)
            if count > 1:
                raise usage(f"column {name!r} is named twice by --label, --id, --drop, --category")


def _no_column(name: str, names: list[str], path: str) -> UserError:
    """The error for an option that names a column which the table does not have."""
    problem = f"no column has the name {name!r}"
    hint = suggestion(name, names)
    parts = name.split(",")
    if set(parts) <= set(names):
        hint = "repeat the option for each column"
    elif not hint:
        hint = f"the columns are {listed(names)}"
    return bad_data(problem, path, line=1, hint=hint)


def options_in_python(given: Mapping[str, Any] | None, names: Collection[str]) -> TableOptions:
    """The options for a DataFrame with these columns, given by name; a ValueError for others."""
    known = {} if given is None else dict(given)
    unknown = known.keys() - _IN_PYTHON
    if unknown:
        legal = ", ".join(_IN_PYTHON)
        raise ValueError(f"table has no option {min(unknown)!r}: one of {legal}")
    for option in ("category", "drop", "na"):
        listed = known.get(option, ())
        words = (listed,) if isinstance(listed, str) else tuple(listed)
        known[option] = tuple(str(word).strip() for word in words)
    _check_legal(known, "missing", get_args(Missing))
    _check_legal(known, "decimal", get_args(DecimalSign))
    _check_legal(known, "date_format", get_args(SlashFormat))
    for name in known["category"]:
        if name not in names:
            raise _no_column(name, list(names), "X")
    return TableOptions(**known)


def unknown_drops(options: TableOptions, names: Collection[str]) -> Iterator[str]:
    """Yield a warning for each column to leave out that a DataFrame does not have.

    It may be left out already, so this is no error as in the shell; but it may be misspelled.
    """
    for name in options.drop:
        if name in names:
            continue
        hint = suggestion(name, names)
        question = f" ({hint})" if hint else ""
        yield f"table drops {name!r}, and no column has this name{question}"


def hint_in_python(error: UserError) -> str | None:
    """What to do about a faulty column of a DataFrame; None if nothing is known.

    The hint of the error names options of the command line: these are what `table` can have.
    """
    column = None if error.place is None else error.place.field
    known = error.hint or "--drop "
    if column is None:
        return known if known.startswith("did you mean") else None
    quoted = json.dumps([column], ensure_ascii=False)
    ways = [(f"--decimal {sign} ", f'"decimal": "{sign}"') for sign in get_args(DecimalSign)]
    forms = get_args(SlashFormat)
    ways += [(f"--date-format {form}", f'"date_format": "{form}"') for form in forms]
    ways += [(f"--{name} ", f'"{name}": {quoted}') for name in ("category", "drop")]
    _, option, cell = known.partition("--na ")
    if option:  # in quotes if a shell needs them
        [text] = shlex.split(cell)
        ways.append(("--na ", f'"na": {json.dumps([text], ensure_ascii=False)}'))
    options = [f"table={{{way}}}" for option, way in ways if option in known]
    return f"convert the column, or fit with {' or '.join(options)}" if options else None


def _check_legal(given: Mapping[str, Any], option: str, legal: tuple[str, ...]) -> None:
    """Raise a ValueError if an option does not have one of its legal values."""
    value = given.get(option)
    if value is not None and value not in legal:
        raise ValueError(f"{option} must be one of {', '.join(legal)}, got {value!r}")
