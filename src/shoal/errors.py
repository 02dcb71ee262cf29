"""Every error that shoal raises on purpose.

    ShoalError
    ├── UsageError          the request is wrong: exit code 2
    │   ├── PolicyError       the policy contradicts itself or the table
    │   ├── DataError         the table cannot be read, is empty or ambiguous
    │   │   └── EmptyTable      it has no rows
    │   ├── HierarchyError    a hierarchy misses values or is not nested
    │   ├── UnknownName       no plug-in, option or column of that name
    │   ├── CannotHonour      an algorithm cannot do what the policy asks
    │   └── OutputError       the release cannot be written there
    ├── Infeasible          no acceptable recoding: exit code 1, with the nearest miss
    ├── ReleaseRefused      a finding that the policy lists under `fail`: exit code 1, with the findings
    ├── OutOfTime           the time limit was reached before an acceptable node was found: exit code 1
    └── InternalError       a defect of shoal, not a mistake of the user

An error has parts: what is wrong (`text`), which kind of problem it is (`code`), the setting it is about
(`field` or `option`) and what to change (`advice`). `shoal.wording.message` makes the text for Python, the
command line or the studio from these parts. No code looks into that text.

No message contains a value of the data. Values that help are in the exception's `values`, and a note in the
traceback points to them. The CLI prints them only with `--reveal`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType

from shoal.wording import Change, did_you_mean, enumerate_names, message, quote

ANY_CHANGE = "Any one of these changes works:"


class ShoalError(Exception):
    """The root of all deliberate errors."""

    code: str = "error"
    """The kind of problem, for programs."""
    advice_intro: str = ""
    """The text before the advice if the advice is a list."""
    file_names: Mapping[str, str] = MappingProxyType({})
    """The names that replace paths of files in the message."""

    def __init__(
        self,
        text: str = "",
        values: Sequence[str] = (),
        *,
        code: str | None = None,
        field: str | None = None,
        option: str | None = None,
        advice: Iterable[Change] = (),
        values_label: str = "Values",
    ) -> None:
        """Store the parts of the message.

        Args:
            text: what is wrong, without the advice. If an `option` is given, its name is put before it.
            values: values of the data that the error is about.
            code: the kind of problem; by default the `code` of the class.
            field: the entry of a policy, a request or a form that the error is about.
            option: the parameter that is wrong. The message begins with its name.
            advice: the changes that help. Each of them solves the problem by itself.
            values_label: the heading of the list of values.

        """
        super().__init__(text)
        self.text, self.option, self.advice = text, option, tuple(advice)
        self.field = field or option
        self.code = code or type(self).code
        self.values, self.values_label = tuple(values), values_label
        if values:
            self.add_note("The values that this is about are listed in error.values.")

    def __str__(self) -> str:
        """Return the message for Python."""
        return message(self, "python")


class UsageError(ShoalError):
    """The request is wrong; the message says what to change."""

    code = "usage"


class PolicyError(UsageError):
    """The policy contradicts itself or the table."""

    code = "policy"


class DataError(UsageError):
    """The table cannot be read, is empty or ambiguous."""

    code = "data"


class EmptyTable(DataError):
    """The table has no rows."""

    code = "empty-table"

    def __init__(self, role: str = "table") -> None:
        super().__init__(f"The {role} has no rows. Give one that has records.")


class HierarchyError(UsageError):
    """A hierarchy misses values of its column or is not nested."""

    code = "hierarchy"


class UnknownName(UsageError):
    """No plug-in, option or column has that name."""

    code = "unknown-name"

    def __init__(
        self, name: str, kind: str, available: Iterable[str], *, listed: bool = True, field: str | None = None
    ) -> None:
        """Store the unknown name. If `listed`, the message lists the `available` names."""
        names = list(available)
        available_names = f" Available: {enumerate_names(names) or 'none'}." if listed else ""
        super().__init__(
            f"Unknown {kind} {quote(name)}.{did_you_mean(name, names)}{available_names}", field=field
        )


class CannotHonour(UsageError):
    """An algorithm cannot do what the policy asks; the message names one that can."""

    code = "cannot-honour"

    def __init__(self, reason: str, *, algorithm: str | None = None, advice: Iterable[Change] = ()) -> None:
        """Store the reason. If an `algorithm` is given, the message names it before the reason."""
        self.reason = reason if algorithm is None else f"{reason}."
        named = "" if algorithm is None else f"Algorithm {algorithm!r} cannot honour this policy: "
        super().__init__(f"{named}{self.reason}", advice=advice)


class OutputError(UsageError):
    """The release cannot be written there."""

    code = "output"


class Infeasible(ShoalError):
    """No acceptable recoding exists. `nearest` maps names of settings to values that work."""

    code = "infeasible"

    def __init__(
        self,
        reason: str,
        advice: Iterable[Change] = (),
        *,
        heading: str = "",
        advice_intro: str = "",
        code: str | None = None,
    ) -> None:
        """Store the reason and the changes that work. The message is the heading, a colon and the reason."""
        text = f"{heading}: {reason}" if heading else f"{reason[:1].upper()}{reason[1:]}"
        super().__init__(text, advice=advice, code=code)
        self.reason, self.advice_intro = reason, advice_intro

    @property
    def nearest(self) -> dict[str, object]:
        """Values that work, by the name of the setting. It is enough to change one of the settings."""
        return {change.key: change.value for change in self.advice if change.option}


class ReleaseRefused(ShoalError):
    """A release has findings that the policy lists under `fail`. `findings` holds the findings by name."""

    code = "release-refused"

    def __init__(self, text: str, findings: dict[str, list[dict[str, object]]] | None = None) -> None:
        """Store the findings as plain values."""
        super().__init__(text)
        self.findings = findings or {}


class OutOfTime(ShoalError):
    """The time limit was reached before an acceptable node was found."""

    code = "out-of-time"


class InternalError(ShoalError):
    """A defect of shoal, not a mistake of the user."""

    code = "internal"


class Note(UserWarning):
    """A warning: the work continues, but the user should know this."""

    option: str | None = None
    advice_intro = ""
    file_names: Mapping[str, str] = MappingProxyType({})

    def __init__(self, text: str = "", advice: Iterable[Change] = ()) -> None:
        super().__init__(text)
        self.text, self.advice = text, tuple(advice)

    def __str__(self) -> str:
        """Return the message for Python."""
        return message(self, "python")


@dataclass(frozen=True)
class Refusal:
    """Why an algorithm cannot honour a policy. The advice is empty if only another algorithm can."""

    reason: str
    advice: tuple[Change, ...] = ()


def invalid(field: str, rule: str, value: object, error: type[UsageError] = UsageError) -> UsageError:
    """Return the error for a setting whose value breaks a rule.

    >>> str(invalid("k", "at least 1", 0)), invalid("k", "at least 1", 0).field
    ('k must be at least 1, got 0.', 'k')
    """
    return error(f"{field} must be {rule}, got {quote(value)}.", field=field)


@contextmanager
def interruptible() -> Iterator[None]:
    """Raise KeyboardInterrupt if compiled code turned Ctrl-C into a SystemError."""
    try:
        yield
    except SystemError as error:
        cause: BaseException | None = error
        while cause is not None:
            if isinstance(cause, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            cause = cause.__cause__ or cause.__context__
        raise
