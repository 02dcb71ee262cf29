"""Books: what a search costs, counted the same way whatever the search, independent of the machine."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass
class Books:
    """What was read and made so far."""

    rows_scanned: int = 0  # combinations read
    subset_evaluations: int = 0  # counts over fewer columns
    score: float = 0.0  # columns generalized times combinations read, plus n log2 n of the n made

    def read(self, combinations: int, columns: int) -> None:
        """Note that some columns of so many combinations were generalized."""
        self.rows_scanned += combinations
        self.score += combinations * columns

    def made(self, combinations: int) -> None:
        """Note how many combinations an evaluated node has."""
        self.score += combinations * math.log2(combinations) if combinations else 0.0
