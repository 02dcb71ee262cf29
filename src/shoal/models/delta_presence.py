"""delta-presence: no presence or absence of a person becomes too certain (Nergiz et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError
from shoal.models.thresholds import TOLERANCE, least_bound, rounded_up


@dataclass(frozen=True)
class DeltaPresence(Model):
    """Refuse classes whose share of the population's records in the same class is outside the bounds."""

    maximum: float
    """The greatest share of a class's population records that may be in the table, from 0 to 1."""
    population: str = field(metadata={"kind": "file"})
    """The file of the population: all records of the table and usually more, in the same columns."""
    minimum: float = 0.0
    """The least share of a class's population records that must be in the table, from 0 to 1."""

    plain_summary: ClassVar[str] = "Nobody can be sure whether a person of the population is in the table."
    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has a share between those of its parts."""

    def __post_init__(self) -> None:
        if not 0 <= self.minimum <= self.maximum <= 1:
            raise PolicyError(
                f"Bounds must be 0 <= minimum <= maximum <= 1, got {self.minimum} and {self.maximum}."
            )

    @property
    def population_table(self) -> str:
        return self.population

    def violations(self, classes: Classes) -> BoolArray:
        presence = classes.sizes / classes.in_population
        inside: BoolArray = (presence <= self.maximum + TOLERANCE) & (presence >= self.minimum - TOLERANCE)
        return ~inside

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """With a minimum, refuse releases that show that a person of the population is not in the table."""
        if self.minimum <= 0:
            return True
        return bool(not suppressed.any() and classes.in_population.sum() == classes.population_records)

    def unavoidable(self, classes: Classes) -> FloatArray:
        """Return a lower bound on the failing records.

        A class with s records in the table and p in the population has s - maximum * p records too many.
        Suppressing a record lowers s and p by one.
        """
        cap = self.maximum + TOLERANCE
        if cap >= 1:
            return np.zeros(len(classes))
        records: FloatArray = np.maximum(classes.sizes - cap * classes.in_population, 0) / (1 - cap)
        return np.minimum(records, classes.sizes)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        maximum = least_bound(classes, classes.sizes / classes.in_population, limit)
        if maximum is None or not self.minimum <= rounded_up(maximum) < 1:
            return None
        return replace(self, maximum=rounded_up(maximum))
