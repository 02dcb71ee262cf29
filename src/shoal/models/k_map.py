"""k-map: every class has at least k records in the population it was drawn from (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.models.settings import at_least_one
from shoal.models.thresholds import within


@dataclass(frozen=True)
class KMap(Model):
    """Refuse classes that fewer than k records of a population fall into."""

    k: int
    """The records that every class must have in the population, 1 or more."""
    population: str
    """The file that the records were drawn from: at least the table's records, in the same columns."""

    monotone: ClassVar[When] = When.ALWAYS
    """Merging classes never lowers their records in the population."""

    def __post_init__(self) -> None:
        """Refuse a k that means nothing."""
        at_least_one(k=self.k)

    @property
    def population_table(self) -> str:
        """The population."""
        return self.population

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes with fewer than k records in the population."""
        short: BoolArray = classes.in_population < self.k
        return short

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the largest k that these classes reach within the limit."""
        worst = within(classes, -classes.in_population.astype(float), limit)
        return None if worst is None else replace(self, k=int(-worst))
