"""The builder that merges rare values: those with fewer records than a number or a share of the records.

A share is relative to the records that have a value. Nulls and codes for "unknown" do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from itertools import pairwise
from typing import Any, ClassVar

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builder import Builder, Labels, not_nested
from shoal.core.hierarchy.hierarchy import TOP, Hierarchy
from shoal.errors import HierarchyError
from shoal.wording import percent

Threshold = int | Decimal  # number of records, or a share of the records


@dataclass(frozen=True)
class RareValues(Builder):
    """One group of all values that are rarer than a threshold; the threshold rises from level to level."""

    rare: tuple[Threshold, ...] = ()
    """The threshold at each level from 1 up: a share (`1%`) or a number of the records that have a value."""
    label: str = "other"
    """The label of the group; it must differ from all values of the column."""
    kept: tuple[tuple[str, ...], ...] | None = None
    """The values outside the group at each level, as a recipe stores them; by default, they are computed."""

    keyword: ClassVar[str] = "rare"
    needs_counts: ClassVar[bool] = True

    def depth(self) -> int:
        return len(self.rare)

    def labels(self, texts: Sequence[str]) -> list[Labels | None]:
        """Return the labels. Until the records are counted, each value is a group of its own."""
        if self.kept is None:
            return [(text,) * len(self.rare) for text in texts]
        levels = [frozenset(level) for level in self.kept]
        return [tuple(text if text in level else self.label for level in levels) for text in texts]

    def styles(self) -> Sequence[RareValues]:
        """Return two variants, with no value merged and with every value merged, unless `kept` is set."""
        return [self] if self.kept is not None else [self, replace(self, kept=((),) * len(self.rare))]

    def bind(self, domain: Domain, counts: IntArray | None = None) -> Hierarchy:
        counted = self.counted(domain, counts)
        known = domain.texts if self.kept is None else (counted.kept or ((),))[0]
        if self.label in known:
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: a value of the column is written like the label of the group "
                "of rare values. Give the group another 'label'.",
                [self.label],
            )
        return super(RareValues, counted).bind(domain)

    def counted(self, domain: Domain, counts: IntArray | None) -> RareValues:
        """Return the rule with `kept` set: the values that each level does not merge."""
        if not self.label or self.label == TOP:
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: label must not be empty nor {TOP}, got {self.label!r}."
            )
        kept = self.kept
        if kept is None:
            kept = self._frequent_values(domain, counts)
        elif len(kept) != len(self.rare):
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: kept lists {len(kept)} levels, and rare {len(self.rare)}."
            )
        for level, (low, high) in enumerate(pairwise(kept), 2):
            if not set(low) >= set(high):
                reason = "Each threshold must be at least as high as the one before."
                raise not_nested(domain.name, level, reason)
        return replace(self, kept=kept)

    def _frequent_values(self, domain: Domain, counts: IntArray | None) -> tuple[tuple[str, ...], ...]:
        if counts is None:
            raise HierarchyError(
                f"Hierarchy of {domain.name!r}: rare needs the number of records of each value, and there "
                "is no table to count. Give the recipe of a release, which stores its groups, or 'kept'."
            )
        values = [
            (text, number)
            for text, number in zip(domain.texts, counts.tolist(), strict=True)
            if text is not None and not self.is_unknown(text)
        ]
        records = sum(number for _, number in values)
        thresholds = [
            threshold * records if isinstance(threshold, Decimal) else threshold for threshold in self.rare
        ]
        return tuple(tuple(text for text, number in values if number >= level) for level in thresholds)

    def stored(self, domain: Domain, counts: IntArray | None) -> dict[str, Any]:
        return {"kept": [list(level) for level in self.counted(domain, counts).kept or ()]}

    def covers(self, label: str) -> str:
        if label != self.label:
            return super().covers(label)
        first = self.rare[0]
        least = percent(float(first)) if isinstance(first, Decimal) else f"{first:,}"
        return f"rare values, at level 1 those of fewer than {least}{'' if '%' in least else ' records'}"
