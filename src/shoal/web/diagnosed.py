"""What a diagnosis finds first, for the page of that step."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from shoal.diagnosing.findings import Sets


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
