"""The risks of one table, as the sizes of its classes tell them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.assessing.exposure import Exposure
from shoal.assessing.scores import Scores
from shoal.assessing.special import Special
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.chances import chances
from shoal.core.uniqueness import RULE, UNIQUENESS_MODELS, Estimate, estimate
from shoal.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Intruder:
    """What an intruder may hope for: each risk is the chance that a record is rightly told whose it is."""

    highest: float  # of the record most at risk
    average: float  # over all records
    above: float  # the share of records whose risk is above the threshold


@dataclass(frozen=True)
class TableRisk:
    """The risks of one table."""

    exposure: Exposure  # the records by the size of their class
    prosecutor: Intruder  # knows that the person is in the table
    journalist: Intruder  # knows that the person is in the population
    journalist_by: str  # prosecutor (a bound), estimate or population
    marketer: float  # expects to tell this share of all records rightly
    uniques: tuple[Estimate, ...] = ()  # in the population, by each model; none where its size is not known
    special: Special | None = None  # what makes records unique; None where it was not looked for
    scored: Scores | None = field(default=None, repr=False, compare=False)  # the special uniques themselves

    @property
    def records(self) -> int:
        """All records in classes."""
        return self.exposure.total

    def scores(self) -> pa.Table:
        """Return the special uniques with their SUDA scores, worst first; it holds values of the data."""
        if self.scored is None:
            message = "Special uniques were not looked for. Let special_size be above 0, or None."
            raise UsageError(message)
        return self.scored.table()

    def to_dict(self) -> dict[str, Any]:
        """Return the risks as plain values."""
        found = self.exposure
        return {
            "records": found.total,
            "classes": found.classes,
            "k": found.smallest,
            "unique_records": found.unique,
            "sample_uniqueness": found.unique / found.total if found.total else 0.0,
            "prosecutor": asdict(self.prosecutor),
            "journalist": asdict(self.journalist) | {"by": self.journalist_by},
            "marketer": {"average": self.marketer, "expected_records": self.marketer * found.total},
            "population_uniqueness": [asdict(one) for one in self.uniques],
            "class_sizes": [
                {"size": size, "records": records, "classes": records // size}
                for size, records in zip(found.sizes, found.records, strict=True)
            ],
            "special_uniques": None if self.special is None else self.special.to_dict(),
        }


def table_risk(found: Exposure, threshold: float, persons: int | None = None) -> TableRisk:
    """Work out the risks that the sizes of classes tell, given how many persons the population has."""
    above = found.above(threshold) / found.total if found.total else 0.0
    prosecutor = Intruder(found.highest_risk, found.average_risk, above)
    if persons is None or not found.total:
        return TableRisk(found, prosecutor, prosecutor, "prosecutor", found.average_risk)
    uniques = _uniques(found, persons)
    chance = chances(np.array(found.sizes, np.int64), min(found.total / persons, 1.0))
    alone = next(one.in_sample for one in uniques if one.model == RULE)
    if found.unique and alone is not None:  # who is unique there too is found for certain
        chance[0] = max(chance[0], alone / found.unique)
    journalist, marketer = against(np.array(found.records, np.int64), chance, threshold)
    return TableRisk(found, prosecutor, journalist, "estimate", marketer, uniques)


def against(records: IntArray, chance: FloatArray, threshold: float) -> tuple[Intruder, float]:
    """Return the journalist's and the marketer's risk, given the chance of records in each class."""
    total = records.sum()
    average = float((records * chance).sum() / total)
    above = float(records[chance > threshold].sum() / total)
    return Intruder(float(chance.max()), average, above), average


def _uniques(found: Exposure, persons: int) -> tuple[Estimate, ...]:
    sizes = np.array(found.sizes, np.int64)
    classes = np.array(found.records, np.int64) // np.maximum(sizes, 1)
    return tuple(estimate(sizes, classes, persons, model) for model in UNIQUENESS_MODELS)
