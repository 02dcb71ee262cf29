"""Every error that shoal raises on purpose.

    ShoalError
    ├── UsageError          the request is wrong: exit code 2
    │   ├── PolicyError       the policy contradicts itself or the table
    │   ├── DataError         the table cannot be read, is empty or ambiguous
    │   ├── HierarchyError    a hierarchy misses values or is not nested
    │   ├── UnknownName       no plug-in, option or column of that name
    │   ├── CannotHonour      an algorithm cannot do what the policy asks
    │   └── OutputError       the release cannot be written there
    ├── Infeasible          no acceptable recoding: exit code 1, with the nearest miss
    ├── OutOfTime           the seconds ran out before an acceptable node was seen: exit code 1
    └── InternalError       a defect of shoal, never of its user

No message holds a value of the data. Where values would help, they are on the exception's `values`, as its
note in a traceback says, and the CLI prints them only with `--reveal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from unicodedata import combining, normalize


class ShoalError(Exception):
    """The root of all deliberate errors."""

    values: tuple[str, ...] = ()
    listed: str = "Values"
    """What the values are called where they are listed."""

    def __init__(self, message: str = "", values: Sequence[str] = (), listed: str = "Values") -> None:
        """Keep values of the data apart from the message."""
        super().__init__(message)
        self.values, self.listed = tuple(values), listed
        if values:
            self.add_note("What this is about is listed in error.values.")


class UsageError(ShoalError):
    """The request is wrong; the message says what to change."""


class PolicyError(UsageError):
    """The policy contradicts itself or the table."""


class DataError(UsageError):
    """The table cannot be read, is empty or ambiguous."""


class HierarchyError(UsageError):
    """A hierarchy misses values of its column or is not nested."""


class UnknownName(UsageError):
    """No plug-in, option or column has that name."""

    def __init__(self, name: str, kind: str, available: Iterable[str], *, listed: bool = True) -> None:
        """Say what was asked for, what is closest and, in the order given, what there is."""
        names = list(available)
        close = nearest(name, names)
        hint = f" Did you mean {close!r}?" if close is not None else ""
        there = f" Available: {', '.join(names) or 'none'}." if listed else ""
        super().__init__(f"Unknown {kind} {name!r}.{hint}{there}")


class CannotHonour(UsageError):
    """An algorithm cannot do what the policy asks; the message names one that can."""


class OutputError(UsageError):
    """The release cannot be written there."""


class Infeasible(ShoalError):
    """No acceptable recoding exists; `nearest` says what would do."""

    def __init__(self, reason: str, nearest: dict[str, object] | None = None, advice: str = "") -> None:
        """Carry the nearest miss: which limit, which k, which levels would do; advice ends the message."""
        super().__init__(f"{reason} {advice}".rstrip())
        self.nearest = nearest or {}
        self.reason = reason
        self.advice = advice


class OutOfTime(ShoalError):
    """The seconds ran out before an acceptable node was seen."""


class InternalError(ShoalError):
    """A defect of shoal, never of its user."""


class Note(UserWarning):
    """What whoever gave a table should know, though the work goes on; a warning, not an error."""


@contextmanager
def interruptible() -> Iterator[None]:
    """Let Ctrl-C be itself where it strikes inside compiled code, which makes a SystemError of it."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            cause = cause.__cause__ or cause.__context__
        raise


def nearest(name: str, names: Iterable[str], likeness: float = 0.6) -> str | None:
    """Return the name that is most like one, whatever the case, accents and the space around it, if any is.

    >>> nearest("AGE ", ["sex", "age"]), nearest("grosse", ["Größe"]), nearest("age", ["Mueller", "Dresden"])
    ('age', 'Größe', None)
    """
    names = list(names)
    alike = {_plain(own): own for own in names}
    close = get_close_matches(name, names, 1, likeness)
    close = close or [alike[own] for own in get_close_matches(_plain(name), alike, 1, likeness)]
    return close[0] if close else None


def same(name: str, other: str) -> bool:
    """Tell whether two names differ at most in case, accents and the space around them.

    >>> same("GROSSE ", "größe"), same("age", "ages")
    (True, False)
    """
    return _plain(name) == _plain(other)


def meant(name: str, names: Iterable[str]) -> str:
    """Return the name as it is written, where one alone differs by the space around it; else what was given.

    >>> meant("ward", ["age", "ward "]), meant("ward", ["ward", "ward "]), meant("x", ["age"])
    ('ward ', 'ward', 'x')
    """
    names = list(names)
    found = [own for own in names if own.strip() == name.strip()]
    return found[0] if name not in names and len(found) == 1 else name


def _plain(name: str) -> str:
    letters = normalize("NFKD", name.strip().casefold())
    return "".join(letter for letter in letters if not combining(letter))


def so_many(number: int, one: str, more: str = "") -> str:
    """Write a number with the word that goes with it.

    >>> so_many(1, "record"), so_many(1200, "record"), so_many(2, "class"), so_many(2, "entry", "entries")
    ('1 record', '1,200 records', '2 classes', '2 entries')
    """
    more = more or one + ("es" if one.endswith("s") else "s")
    return f"{number:,} {one if number == 1 else more}"
