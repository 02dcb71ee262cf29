"""delta-presence: nobody of a population is too surely in the table, or not in it (Nergiz et al. 2007)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from shoal.core.arrays import BoolArray, FloatArray
from shoal.core.classes import Classes
from shoal.core.contracts import Model, When
from shoal.errors import PolicyError
from shoal.models.thresholds import CLOSE, rounded_up, within


@dataclass(frozen=True)
class DeltaPresence(Model):
    """Refuse classes whose share of the population's class is outside the bounds."""

    maximum: float
    """The greatest share of a class of the population that may be in the table, from 0 to 1."""
    population: str
    """The file that the records were drawn from: at least the table's records, in the same columns."""
    minimum: float = 0.0
    """The least such share, from 0 to 1."""

    monotone: ClassVar[When] = When.WITHOUT_SUPPRESSION
    """A merged class has a share between those of its parts."""

    def __post_init__(self) -> None:
        """Refuse bounds that mean nothing."""
        if not 0 <= self.minimum <= self.maximum <= 1:
            message = f"Bounds must be 0 <= minimum <= maximum <= 1, got {self.minimum} and {self.maximum}."
            raise PolicyError(message)

    @property
    def population_table(self) -> str:
        """The population."""
        return self.population

    def violations(self, classes: Classes) -> BoolArray:
        """Mark the classes that tell too surely who is in the table, or who is not."""
        presence = classes.sizes / classes.in_population
        inside: BoolArray = (presence <= self.maximum + CLOSE) & (presence >= self.minimum - CLOSE)
        return ~inside

    def holds(self, classes: Classes, suppressed: BoolArray) -> bool:
        """Tell whether nobody is surely absent, where a least presence is asked for."""
        if self.minimum <= 0:
            return True
        return bool(not suppressed.any() and classes.in_population.sum() == classes.population_records)

    def unavoidable(self, classes: Classes) -> FloatArray:
        """Bound what fails below: s - maximum p records are too many, and each that fails takes one of p."""
        cap = self.maximum + CLOSE
        if cap >= 1:
            return np.zeros(len(classes))
        over: FloatArray = np.maximum(classes.sizes - cap * classes.in_population, 0) / (1 - cap)
        return np.minimum(over, classes.sizes)

    def nearest(self, classes: Classes, limit: int) -> Self | None:
        """Return the smallest greatest presence that these classes reach."""
        maximum = within(classes, classes.sizes / classes.in_population, limit)
        if maximum is None or not self.minimum <= rounded_up(maximum) < 1:
            return None
        return replace(self, maximum=rounded_up(maximum))
