"""Refusals: errors that know beside which field they belong, and accidents told without their text."""

from __future__ import annotations

import traceback
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.errors import ShoalError, UsageError


class Refused(UsageError):
    """A wish that cannot be granted; `field` says where it was made."""

    def __init__(self, message: str, field: str | None = None) -> None:
        """Keep the field's name beside the message."""
        super().__init__(message)
        self.field = field


class NotReady(Refused):
    """A step that lacks what an earlier one gives."""


class TooLarge(Refused):
    """An upload beyond the limit."""


class Unknown(Refused):
    """No desk, job or file of that name."""


def field_of(error: BaseException) -> str | None:
    """Return the field that an error belongs to, if that is known."""
    found = getattr(error, "field", None)
    return found if isinstance(found, str) else None


def surprise(error: BaseException) -> str:
    """Say that something unforeseen happened, without its text, which may quote a value.

    >>> surprise(KeyError("Anna"))
    'Something went wrong inside shoal (KeyError). Please report this.'
    """
    return f"Something went wrong inside shoal ({type(error).__name__}). Please report this."


def kind_and_place(error: BaseException) -> str:
    """Say for the log which kind of accident happened, and in which line, without its text too."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} at {Path(last.filename).name}:{last.lineno}"


@contextmanager
def beside(field: str) -> Iterator[None]:
    """Let errors of a block belong to a field, unless they know a better one."""
    try:
        yield
    except ShoalError as error:
        if field_of(error) is None:
            error.field = field  # type: ignore[attr-defined]
        raise


@contextmanager
def beside_the_first_named(fields: Iterable[str]) -> Iterator[None]:
    """Let an error belong to the field that its text begins with, as 'k must be at least 1'."""
    try:
        yield
    except ShoalError as error:
        first = str(error).replace(",", " ").replace(":", " ").split(" ", 1)[0]
        if field_of(error) is None and first in set(fields):
            error.field = first  # type: ignore[attr-defined]
        raise
