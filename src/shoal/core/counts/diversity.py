"""Diversity: the largest l for which a class is l-diverse, as a whole number of steps.

There are three kinds (Machanavajjhala et al. 2007): distinct, entropy, and recursive (c,l)-diversity for a
fixed c. One number per class is enough to test every l.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np

from shoal.core.arrays import IntArray
from shoal.errors import UnknownName, UsageError, invalid

DiversityKind = Literal["distinct", "entropy", "recursive"]
KINDS: tuple[DiversityKind, ...] = ("distinct", "entropy", "recursive")
MODEL_NAMES = {
    "distinct": "distinct-l-diversity",
    "entropy": "entropy-l-diversity",
    "recursive": "recursive-cl-diversity",
}


def kind_prefix(kind: str, c: float | None = None) -> str:
    """Return the words that precede "l" for a kind of l-diversity.

    >>> kind_prefix("distinct"), kind_prefix("entropy"), kind_prefix("recursive", 3)
    ('', 'entropy ', 'recursive (c = 3) ')
    """
    if kind == "distinct":
        return ""
    return f"{kind} (c = {c:g}) " if c else f"{kind} "


@dataclass(frozen=True)
class Diversity:
    """A kind of l-diversity; `steps` is the number of steps into which an l of 1 is divided."""

    kind: DiversityKind = "distinct"
    c: float = 0.0  # of recursive (c,l)-diversity
    steps: int = 1

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UnknownName(str(self.kind), "diversity", KINDS, field="diversity")
        if self.kind == "recursive" and not _is_above_zero(self.c):
            raise invalid("c", "a number above 0", self.c)
        if self.kind != "recursive" and self.c:
            raise UsageError("c is for recursive diversity. Leave it out, or ask for recursive.", field="c")

    @property
    def monotone(self) -> bool:
        """Whether merging classes never lowers l, so that l is monotone with suppression, too."""
        return self.kind == "distinct"

    @property
    def model(self) -> str:
        """The privacy model."""
        return MODEL_NAMES[self.kind]

    @property
    def least(self) -> int:
        """The smallest measure of a class: an l of 1, or 0 if a class may satisfy no l."""
        return 0 if self.kind == "recursive" else self.steps

    def measures(self, rows: IntArray, counts: IntArray, sizes: IntArray) -> IntArray:
        """Return the l of each class; entry i is a sensitive value, `counts[i]` times in class `rows[i]`."""
        from shoal.core.counts.kernels import measure_diversity

        measures = np.bincount(rows, minlength=len(sizes))
        measure_diversity(rows, counts, sizes, measures, KINDS.index(self.kind), float(self.c), self.steps)
        return measures

    def in_steps(self, l: object) -> int:
        """Check an l and return it in steps."""
        if not isinstance(l, int | float | np.integer | np.floating) or isinstance(l, bool):
            raise UsageError(f"l must be a number of at least 1, got {l!r}.", field="l")
        if not 1 <= l < math.inf:
            raise UsageError(f"l must be at least 1, got {l}.", field="l")
        steps = round(l * self.steps) if self.steps > 1 else int(l)
        if abs(steps - l * self.steps) > 1e-9 * steps:
            unit = "a whole number" if self.steps == 1 else f"a multiple of {1 / self.steps:g}"
            raise UsageError(f"l must be {unit}, got {l}.", field="l")
        return steps

    def value(self, steps: int) -> int | float:
        """Return the l of a number of steps."""
        return steps if self.steps == 1 else steps / self.steps


DISTINCT = Diversity()


@dataclass(frozen=True)
class Measure:
    """A kind of l-diversity of one sensitive column."""

    column: str
    diversity: Diversity = DISTINCT

    @property
    def label(self) -> str:
        """The text for this measure in a list of measures."""
        kind = self.diversity.kind
        prefix = {"distinct": "l", "entropy": "entropy l", "recursive": f"recursive ({self.diversity.c:g},l)"}
        return f"{prefix[kind]} of {self.column}"


def _is_above_zero(number: object) -> bool:
    return isinstance(number, int | float) and not isinstance(number, bool) and 0 < number < math.inf
