"""k-map: every class has at least k records in the population it was drawn from (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.models.thresholds import at_least_one, least_bound


@dataclass(frozen=True)
class KMap(Model):
    """Refuse classes that have fewer than k records in the population."""

    k: int
    """The number of population records that every class must have, 1 or more."""
    population: str = field(metadata={"kind": "file"})
    """The file of the population: all records of the table and usually more, in the same columns."""

    plain_summary: ClassVar[str] = "Each record looks like at least k persons of the population."
    monotone: ClassVar[When] = When.ALWAYS
    """Merging classes never lowers their number of population records."""

    def __post_init__(self) -> None:
        at_least_one(k=self.k)

    @property
    def population_table(self) -> str:
        return self.population

    def violations(self, classes: Classes) -> BoolArray:
        violations: BoolArray = classes.in_population < self.k
        return violations

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        worst = least_bound(classes, -classes.in_population.astype(float), limit)
        return None if worst is None else replace(self, k=int(-worst))
