"""What a desk shows: plain values for a page or an answer."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shoal.findings import Sets
from shoal.inspection import Preview


@dataclass(frozen=True)
class ColumnRow:
    """One line of the column table."""

    column: str
    kind: str
    distinct: int
    missing: int
    unique_share: float
    suggested_role: str
    reason: str
    role: str
    hierarchy: Any  # as a policy writes it; None for a column that is no quasi-identifier
    height: int | None  # the hierarchy's highest level, where it fits
    problem: str | None  # why it does not fit
    identifier: dict[str, str] | None = None  # which of the 18 identifiers of Safe Harbor it looks like

    def to_dict(self) -> dict[str, Any]:
        """Return the line as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class Trial:
    """A hierarchy tried on a column's values: how they climb, or why they cannot."""

    preview: Preview | None
    problem: str | None = None
    values: tuple[str, ...] = ()  # those that do not fit: the custodian's own, for their screen alone


@dataclass(frozen=True)
class Step:
    """One of the five steps: whether it can be used, or what is missing, in words."""

    name: str
    usable: bool
    done: bool
    missing: str | None = None


@dataclass(frozen=True)
class Exposed:
    """How exposed the records are as they are."""

    records: int
    classes: int
    k: int  # or l, where a sensitive column was named
    unique: int
    highest: float  # of being found, for the most exposed record
    average: float


@dataclass(frozen=True)
class Findings:
    """What a diagnosis found first."""

    measure: str  # k or l
    columns: tuple[str, ...]
    k: int  # asked about
    limit: int
    suppressed: int  # records in classes below it
    risk: Exposed
    unsafe: Sets
    safe: Sets

    def to_dict(self) -> dict[str, Any]:
        """Return the findings as plain values."""
        return asdict(self)
