"""Errors that name a field of the request. Messages for unexpected errors never quote a value."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import ShoalError, UsageError


class Refused(UsageError):
    """A request was rejected. `field` is the field of the request that caused the error."""

    def __init__(self, message: str, field: str | None = None) -> None:
        super().__init__(message, field=field)


class NotReady(Refused):
    """A step needs the result of an earlier step, which has not run."""


class TooLarge(Refused):
    """An upload exceeds the limit."""


class Unknown(Refused):
    """There is no workspace, job or file of that name."""


def no_workspace() -> Unknown:
    """Return the error for a workspace that does not exist, or belongs to another user."""
    return Unknown("There is no such workspace. It may have been closed; open another.", "workspace")


def unexpected_message(error: BaseException) -> str:
    """Describe an unexpected error without its text, which may quote a value.

    >>> unexpected_message(KeyError("Anna"))
    'Something went wrong inside shoal (KeyError). Please report this.'
    """
    return f"Something went wrong inside shoal ({type(error).__name__}). Please report this."


def type_and_line(error: BaseException) -> str:
    """Describe an unexpected error for the log: its type and line, without its text."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


@contextmanager
def error_field(field: str) -> Iterator[None]:
    """Set the field of errors that the block raises. A Refused that already has a field keeps it."""
    try:
        yield
    except ShoalError as error:
        if error.field is None or not isinstance(error, Refused):
            error.field = field
        raise
