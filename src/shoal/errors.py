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

No message holds a value of the data. Where values would help, they are on the exception's `values`
and the CLI prints them only with `--reveal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches


class ShoalError(Exception):
    """The root of all deliberate errors."""

    values: tuple[str, ...] = ()


class UsageError(ShoalError):
    """The request is wrong; the message says what to change."""


class PolicyError(UsageError):
    """The policy contradicts itself or the table."""


class DataError(UsageError):
    """The table cannot be read, is empty or ambiguous."""


class HierarchyError(UsageError):
    """A hierarchy misses values of its column or is not nested."""

    def __init__(self, message: str, values: Sequence[str] = ()) -> None:
        """Keep the offending values apart from the message."""
        super().__init__(message)
        self.values = tuple(values)


class UnknownName(UsageError):
    """No plug-in, option or column has that name."""

    def __init__(self, name: str, kind: str, available: Iterable[str], *, in_order: bool = False) -> None:
        """Say what was asked for, what is closest and what there is, sorted unless it has an order."""
        names = list(available) if in_order else sorted(available)
        close = nearest(name, names)
        hint = f" Did you mean {close!r}?" if close is not None else ""
        super().__init__(f"Unknown {kind} {name!r}.{hint} Available: {', '.join(names) or 'none'}.")


class CannotHonour(UsageError):
    """An algorithm cannot do what the policy asks; the message names one that can."""


class OutputError(UsageError):
    """The release cannot be written there."""


class Infeasible(ShoalError):
    """No acceptable recoding exists; `nearest` says what would do."""

    def __init__(self, message: str, nearest: dict[str, object] | None = None) -> None:
        """Carry the nearest miss: which limit, which k, which levels would do."""
        super().__init__(message)
        self.nearest = nearest or {}


class OutOfTime(ShoalError):
    """The seconds ran out before an acceptable node was seen."""


class InternalError(ShoalError):
    """A defect of shoal, never of its user."""


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


def nearest(name: str, names: Iterable[str]) -> str | None:
    """Return the name that is most like one, whatever the case and the space around it; none where none is.

    >>> nearest("AGE ", ["sex", "age"]), nearest("age", ["Mueller", "Dresden"])
    ('age', None)
    """
    names = list(names)
    alike = {own.strip().lower(): own for own in names}
    close = get_close_matches(name, names, n=1)
    close = close or [alike[own] for own in get_close_matches(name.strip().lower(), alike, n=1)]
    return close[0] if close else None


def has_any(asked: Iterable[str], available: Iterable[str]) -> bool:
    """Tell whether a table has one of these columns, or one whose name is like it.

    >>> has_any(["agee", "x"], ["age", "sex"]), has_any(["age"], ["Mueller", "Dresden"])
    (True, False)
    """
    there = list(available)
    return any(nearest(str(name), there) is not None for name in asked)


def no_such_columns(what: str = "these columns", where: str = "table") -> str:
    """Ask for a header; what the table has is not shown, for its first line may be a record."""
    return f"The {where} has none of {what}. Does it begin with a line of column names?"
