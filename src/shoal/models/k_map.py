"""k-map: every class has at least k records in the population it was drawn from (Sweeney 2002)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from shoal.core.arrays import BoolArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError
from shoal.models.thresholds import within


@dataclass(frozen=True)
class KMap(Model):
    """Refuse classes that fewer than k records of a population fall into."""

    k: int
    population: str  # a table that holds at least the sample's records, in the same columns

    monotone: ClassVar[When] = When.ALWAYS

    def __post_init__(self) -> None:
        """Refuse a k that means nothing."""
        if self.k < 1:
            message = f"k must be at least 1, got {self.k}."
            raise PolicyError(message)

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
