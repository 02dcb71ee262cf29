"""Names of columns that somebody gives, held against those of a table.

Where a file has no line of column names, its first record is taken for one. So what a table has is shown only
where it has half the columns that were asked for, and no name that is a number or a date. Else at most the
one name is shown that was all but typed, and only where it, or two others, are words that columns are often
named by. Or it was typed but for case, accents and spaces. Else a message asks for a header, and what the
table has is among the error's values.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from shoal.errors import DataError, PolicyError, UnknownName, UsageError, nearest, same, so_many
from shoal.identifiers.names import is_usual

_ALL_BUT_TYPED = 0.8  # how like it a name must be


def check_asked(
    names: object,
    available: Sequence[str],
    *,
    kind: str = "column",
    where: str = "table",
    beside: object = (),
) -> list[str]:
    """Return names of columns that a table has, each once; a single text is one name.

    What was asked for beside them tells, too, whether the table has a header.

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
        message = f"columns must be names, such as ['age', 'sex'], got {names!r}."
        raise UsageError(message)
    chosen = _listed(names)
    if not chosen:
        message = "No columns are named. Name those that somebody could know of a person, as age, sex, zip."
        raise UsageError(message)
    if any(name == "" and name not in available for name in chosen):
        message = f"A {kind} has an empty name. Is there a comma too many?"
        raise UsageError(message)
    for place, name in enumerate(chosen):
        if name not in available:
            raise _unknown(str(name), [*chosen, *_listed(beside)], available, kind, where)
        if name in chosen[:place]:
            message = f"The {kind} {name!r} is named twice. Name it once."
            raise UsageError(message)
    return chosen


def _unknown(name: str, asked: Sequence[str], available: Sequence[str], kind: str, where: str) -> UsageError:
    """Say that a table has no such column, and as much of what it has as is safe to show."""
    if seems_a_record(available):
        return UsageError(no_such_columns(f"no column {name!r}", where), available, listed="Columns")
    if has_half(asked, available):
        return UnknownName(name, kind, available)
    close = nearest(name, available, _ALL_BUT_TYPED)
    if close is not None and (same(name, close) or is_usual(close) or sum(map(is_usual, available)) > 1):
        return UnknownName(name, kind, [close], listed=False)
    return UsageError(no_such_columns(_named(asked), where), available, listed="Columns")


def has_half(asked: Collection[str], available: Collection[str]) -> bool:
    """Tell whether a table has half the columns that were asked for; else its first line may be a record.

    >>> has_half(["age", "sexx"], ["age", "sex"]), has_half(["age", "sex"], ["Mueller", "Dresden"])
    (True, False)
    """
    return 2 * sum(name in available for name in asked) >= len(asked)


def seems_a_record(columns: Iterable[str]) -> bool:
    """Tell whether names of columns are numbers or dates, so that the first line of a file may be a record.

    >>> seems_a_record(["age", "zip 5"]), seems_a_record(["Mueller", "05.03.1961"])
    (False, True)
    """
    return any(re.fullmatch(r"[\d.,:/ -]*\d[\d.,:/ -]*", name) for name in columns)


def check_header(columns: Iterable[str]) -> None:
    """Refuse a table whose first line is a record; its values are not shown."""
    if seems_a_record(columns):
        message = (
            "The first line holds numbers or dates, so it seems to be a record. Add a line of column names."
        )
        raise DataError(message)


def _listed(names: object) -> list[str]:
    if isinstance(names, str):
        return [names]
    return list(names) if isinstance(names, Iterable) else []


def _named(asked: Sequence[str]) -> str:
    if len(asked) == 1:
        return f"no column {asked[0]!r}, nor one like it"
    return f"none of the columns {', '.join(map(repr, asked))}, nor one like them"


def check_released(
    columns: Sequence[str], known: Collection[str], needed: Sequence[str], hint: str = ""
) -> None:
    """Refuse a release that has columns which its policy does not know, or lacks some that it needs.

    Strange columns are counted, not named: a record may begin with the name of a column. They are among the
    error's values.
    """
    strange = [name for name in columns if name not in known]
    if strange and len(strange) == len(columns):
        raise PolicyError(no_such_columns(where="release"))
    if strange:
        found = so_many(len(strange), "column")
        message = f"The release has {found} that the policy does not name.{hint}"
        raise PolicyError(message, strange, listed="Columns")
    absent = [name for name in needed if name not in columns]
    if absent:
        message = f"The release lacks columns of the policy: {', '.join(map(repr, absent))}.{hint}"
        raise PolicyError(message)


def check_not_swapped(
    identifiers: Iterable[str], release: Collection[str], other: Collection[str], what: str = "table"
) -> None:
    """Refuse a release that has identifiers of its policy which the other table lacks.

    >>> check_not_swapped(["name"], ["name", "age"], ["age"])  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    shoal.errors.UsageError: The release has identifiers of the policy, which the table lacks: 'name'. Are ...
    """
    left = [name for name in identifiers if name in release and name not in other]
    if left:
        message = (
            f"The release has identifiers of the policy, which the {what} lacks: "
            f"{', '.join(map(repr, left))}. Are the release and the {what} swapped?"
        )
        raise UsageError(message)


def no_such_columns(what: str = "none of the policy's columns", where: str = "table") -> str:
    """Ask for a header; what the table has is not shown, for its first line may be a record."""
    return f"The {where} has {what}. Does it begin with a line of column names?"
