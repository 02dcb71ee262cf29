"""A row of a comparison: what was asked for, what was found and what it cost."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, kw_only=True)
class Row:
    """What one search found and what it cost; figures are None where there is no result."""

    algorithm: str
    k: int | None
    limit: int | float | str  # as it was asked for
    limit_records: int
    metric: str
    loss: float | None = None
    relative_loss: float | None = None  # to the optimum: 1 is optimal
    levels: dict[str, int] | None = None
    suppressed: float | None = None
    candidates: float | None = None
    nodes_evaluated: float | None = None
    nodes_tagged: float | None = None
    nodes_compared: float | None = None
    subset_evaluations: float | None = None
    rows_scanned: float | None = None
    node_score: float | None = None
    seconds: float | None = None
    proven: str | None = None
    runs: int = 0  # searches that the figures are the mean of
    note: str | None = None  # why there is no result, and what would do
    records: int
    lattice_size: int

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain values."""
        return asdict(self)

    @property
    def limit_asked(self) -> tuple[str, str]:
        """The limit with its kind: 1 is a record, 1.0 is all of them."""
        return type(self.limit).__name__, str(self.limit)
