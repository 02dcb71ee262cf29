"""Check column names that a user gives against those of a table, without showing values of the data.

If a file has no header, its first record is read as column names, which messages must not show. A table's
columns are therefore shown only if it has at least half of the requested columns, and no column name is a
number or a date. Otherwise at most one name is suggested, and only if it is a close match. In addition, it
must differ from the requested name only in case, accents and spaces, or be a common column name, or the table
must have two common column names. If no name is suggested, the message asks for a header; the columns of the
table are among the error's values, which are shown only on request.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from shoal.columns.names import is_usual
from shoal.errors import DataError, PolicyError, UnknownName, UsageError, invalid
from shoal.wording import nearest, plural, same

_ALL_BUT_TYPED = 0.8  # how similar a name must be to be suggested


def check_asked(
    names: object,
    available: Sequence[str],
    *,
    kind: str = "column",
    where: str = "table",
    beside: object = (),
) -> list[str]:
    """Check that a table has the named columns, each once, and return them; a single string is one name.

    A label of a pandas frame that is not a string, such as 0, is the name '0'. `beside` has other
    requested names, which help to decide whether the table has a header.

    >>> check_asked("age", ["age", "sex"])
    ['age']
    >>> check_asked(["age", "sexx"], ["age", "sex"])
    Traceback (most recent call last):
    shoal.errors.UnknownName: Unknown column 'sexx'. Did you mean 'sex'? Available: age, sex.
    >>> check_asked(["age"], ["Mueller", "Dresden"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    shoal.errors.UsageError: The table has no column 'age', nor one like it. Does it begin with a line of ...
    """
    if not isinstance(names, Iterable):
        raise invalid("columns", "names, such as ['age', 'sex']", names)
    chosen = _listed(names)
    if not chosen:
        raise UsageError(
            "No columns are named. Name those that somebody could know of a person, such as age, sex, zip."
        )
    if any(name == "" and name not in available for name in chosen):
        raise UsageError(f"A {kind} has an empty name. Is there a comma too many?")
    for index, name in enumerate(chosen):
        if name not in available:
            raise _unknown(str(name), [*chosen, *_listed(beside)], available, kind, where)
        if name in chosen[:index]:
            raise UsageError(f"The {kind} {name!r} is named twice. Name it once.")
    return chosen


def _unknown(
    name: str, requested: Sequence[str], available: Sequence[str], kind: str, where: str
) -> UsageError:
    """Return the error for a column that a table lacks; it shows only columns that are safe to show."""
    if seems_a_record(available):
        return UsageError(no_such_columns(f"no column {name!r}", where), available, values_label="Columns")
    if has_half(requested, available):
        return UnknownName(name, kind, available)
    close = nearest(name, available, _ALL_BUT_TYPED)
    if close is not None and (same(name, close) or is_usual(close) or sum(map(is_usual, available)) > 1):
        return UnknownName(name, kind, [close], listed=False)
    return UsageError(no_such_columns(_named(requested), where), available, values_label="Columns")


def has_half(requested: Collection[str], available: Collection[str]) -> bool:
    """Return whether a table has half of the requested columns; if not, its header may be a record.

    >>> has_half(["age", "sexx"], ["age", "sex"]), has_half(["age", "sex"], ["Mueller", "Dresden"])
    (True, False)
    """
    return 2 * sum(name in available for name in requested) >= len(requested)


def seems_a_record(columns: Iterable[str]) -> bool:
    """Return whether names of columns are numbers or dates, so that the first line of a file may be a record.

    >>> seems_a_record(["age", "zip 5"]), seems_a_record(["Mueller", "05.03.1961"])
    (False, True)
    """
    return any(re.fullmatch(r"[\d.,:/ -]*\d[\d.,:/ -]*", name) for name in columns)


def check_header(columns: Iterable[str]) -> None:
    """Refuse a table whose first line is a record; its values are not shown."""
    if seems_a_record(columns):
        raise DataError(
            "The first line holds numbers or dates, so it seems to be a record. Add a line of column names."
        )


def _listed(names: object) -> list[str]:
    if isinstance(names, str):
        return [names]
    return list(map(str, names)) if isinstance(names, Iterable) else []


def _named(requested: Sequence[str]) -> str:
    if len(requested) == 1:
        return f"no column {requested[0]!r}, nor one like it"
    return f"none of the columns {', '.join(map(repr, requested))}, nor one like them"


def check_released(
    columns: Sequence[str], known: Collection[str], needed: Sequence[str], hint: str = ""
) -> None:
    """Refuse a release that has columns unknown to its policy, or lacks columns that the policy needs.

    Unknown columns are counted, not named, because the first line may be a record. They are among the error's
    values.
    """
    unexpected = [name for name in columns if name not in known]
    if unexpected and len(unexpected) == len(columns):
        raise PolicyError(no_such_columns(where="release"))
    if unexpected:
        columns_text = plural(len(unexpected), "column")
        raise PolicyError(
            f"The release has {columns_text} that the policy does not name.{hint}",
            unexpected,
            values_label="Columns",
        )
    missing = [name for name in needed if name not in columns]
    if missing:
        names = ", ".join(map(repr, missing))
        raise PolicyError(
            f"The release lacks columns of the policy: {names}.{hint or ' Give the policy of this release.'}"
        )


def check_not_swapped(
    identifiers: Iterable[str], release: Collection[str], other: Collection[str], what: str = "table"
) -> None:
    """Refuse a release that has identifiers of its policy which the other table lacks: they may be swapped.

    >>> check_not_swapped(["name"], ["name", "age"], ["age"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    shoal.errors.UsageError: The release has identifiers of the policy, which the table lacks: 'name'. Are ...
    """
    left = [name for name in identifiers if name in release and name not in other]
    if left:
        raise UsageError(
            f"The release has identifiers of the policy, which the {what} lacks: "
            f"{', '.join(map(repr, left))}. Are the release and the {what} swapped?"
        )


def check_record_numbers(released: int, records: int) -> None:
    """Refuse a release that has more records than its table: they may be swapped.

    >>> check_record_numbers(7, 5)
    Traceback (most recent call last):
    shoal.errors.UsageError: The release has 7 records, and the table 5. Are they swapped?
    """
    if released > records:
        raise UsageError(
            f"The release has {released:,} records, and the table {records:,}. Are they swapped?"
        )


def no_such_columns(what: str = "none of the policy's columns", where: str = "table") -> str:
    """Return a message that asks for a header; the columns are not shown, because they may be a record."""
    return f"The {where} has {what}. Does it begin with a line of column names?"
