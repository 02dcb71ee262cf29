"""The risks of one table, computed from the sizes of its classes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts.counts import Counts, SizeHistogram
from shoal.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from shoal.workflow.risk.suda import Scores, Special
    from shoal.workflow.risk.uniqueness import Estimate


_SMALL = 30  # up to this size, a recursion is used; for larger sizes, a series needs few terms
_TERMS = 400  # maximum number of terms of the series


def chances(sizes: IntArray, share: float) -> FloatArray:
    """Return the expected 1/F for classes of size f in a sample, where F is the size in the population.

    With the sampling share, it is share times the integral from 0 to 1 of u^(f-1) / (share + (1-share) u).

    >>> chances(np.array([1, 2, 5]), 1.0).tolist()
    [1.0, 0.5, 0.2]
    >>> [round(chance, 4) for chance in chances(np.array([1, 2]), 0.1).tolist()]
    [0.2558, 0.0827]
    """
    result = np.empty(len(sizes))
    small = (sizes <= _SMALL) & (share < 0.5)
    if small.any():
        result[small] = _by_recursion(share)[sizes[small] - 1]
    result[~small] = _by_series(sizes[~small].astype(np.float64), share)
    return result


def _by_recursion(share: float) -> FloatArray:
    """Return the chances for small sizes. For a share below half, each step reduces rounding errors."""
    other_share = 1 - share
    result = np.empty(_SMALL)
    part = -np.log(share) / other_share
    for size in range(1, _SMALL + 1):
        result[size - 1] = share * part
        part = (1 / size - share * part) / other_share
    return result


def _by_series(sizes: FloatArray, share: float) -> FloatArray:
    """Sum share * (1-share)^m * B(f, m+1) over m until the terms are negligible."""
    term = share / sizes
    total = term.copy()
    for m in range(_TERMS):
        term = term * ((1 - share) * (m + 1) / (sizes + m + 1))
        total += term
        if not (term > total * 1e-17).any():
            break
    return total


@dataclass(frozen=True)
class Exposure:
    """How many records are in classes of each size.

    >>> found = exposure_of(np.array([1, 1, 3, 5]))
    >>> found.sizes, found.records, found.classes, found.smallest, found.unique, found.below(5)
    ((1, 3, 5), (2, 3, 5), 4, 1, 2, 5)
    >>> found.highest_risk, found.average_risk
    (1.0, 0.4)
    """

    sizes: tuple[int, ...] = ()  # ascending, distinct
    records: tuple[int, ...] = ()  # the number of records in classes of each size

    @property
    def total(self) -> int:
        """The number of records."""
        return sum(self.records)

    @property
    def classes(self) -> int:
        """The number of classes."""
        return sum(records // size for size, records in zip(self.sizes, self.records, strict=True))

    @property
    def smallest(self) -> int:
        """The size of the smallest class, which is the k of the table; 0 if there is none."""
        return self.sizes[0] if self.sizes else 0

    @property
    def unique(self) -> int:
        """The number of unique records: those in classes of one record."""
        return self.records_between(1, 2)

    @property
    def highest_risk(self) -> float:
        """The highest prosecutor risk: 1 / size of the smallest class."""
        return 1 / self.smallest if self.sizes else 0.0

    @property
    def average_risk(self) -> float:
        """The average prosecutor risk over all records."""
        pairs = zip(self.sizes, self.records, strict=True)
        return sum(records / size for size, records in pairs) / self.total if self.sizes else 0.0

    def above(self, threshold: float) -> int:
        """Return the number of records whose prosecutor risk (1 / class size) is above a threshold."""
        pairs = zip(self.sizes, self.records, strict=True)
        return sum(records for size, records in pairs if 1 / size > threshold)

    def below(self, k: int) -> int:
        """Return the number of records in classes of fewer than k."""
        return self.records_between(1, k)

    def records_between(self, low: int, high: int) -> int:
        """Return the number of records in classes of size `low` to `high` - 1."""
        pairs = zip(self.sizes, self.records, strict=True)
        return sum(records for size, records in pairs if low <= size < high)


def exposure_at(counts: Counts) -> Exposure:
    """Count the records of a table by the size of their class."""
    return _exposure(counts.histogram())


def exposure_of(sizes: IntArray, records: IntArray | None = None) -> Exposure:
    """Count the records by the size of their class.

    Pass `records`, the records in each class, if `sizes` also counts records of other classes that match it.
    """
    present = sizes > 0
    return _exposure(SizeHistogram.of(sizes[present], (sizes if records is None else records)[present]))


def _exposure(histogram: SizeHistogram) -> Exposure:
    return Exposure(tuple(histogram.values.tolist()), tuple(histogram.records.tolist()))


@dataclass(frozen=True)
class Intruder:
    """The risks from one kind of intruder. A risk is the probability to assign a record to its person."""

    highest: float  # of the record most at risk
    average: float  # over all records
    above: float  # the share of records whose risk is above the threshold


@dataclass(frozen=True)
class TableRisk:
    """The risks of one table."""

    exposure: Exposure  # the records by the size of their class
    prosecutor: Intruder  # who knows that the person is in the table
    journalist: Intruder  # who knows only that the person is in the population
    journalist_by: str  # how `journalist` was computed: prosecutor (an upper bound), estimate or population
    marketer: float  # expected share of correct matches
    uniques: tuple[Estimate, ...] = ()  # by model: uniques in the population; () if its size is unknown
    special: Special | None = None  # the sets of columns that make records unique; None if not searched
    scored: Scores | None = field(default=None, repr=False, compare=False)  # the records with their scores

    @property
    def records(self) -> int:
        """The number of records in classes."""
        return self.exposure.total

    def scores(self) -> pa.Table:
        """Return the special uniques with their SUDA scores, highest first: values of the data."""
        if self.scored is None:
            raise UsageError("Special uniques were not looked for. Let special_size be above 0, or None.")
        return self.scored.table()

    def to_dict(self) -> dict[str, Any]:
        """Return the risks as plain values."""
        exposure = self.exposure
        return {
            "records": exposure.total,
            "classes": exposure.classes,
            "k": exposure.smallest,
            "unique_records": exposure.unique,
            "sample_uniqueness": exposure.unique / exposure.total if exposure.total else 0.0,
            "prosecutor": asdict(self.prosecutor),
            "journalist": asdict(self.journalist) | {"by": self.journalist_by},
            "marketer": {"average": self.marketer, "expected_records": self.marketer * exposure.total},
            "population_uniqueness": [asdict(estimate) for estimate in self.uniques],
            "class_sizes": [
                {"size": size, "records": records, "classes": records // size}
                for size, records in zip(exposure.sizes, exposure.records, strict=True)
            ],
            "special_uniques": None if self.special is None else self.special.to_dict(),
        }


def table_risk(exposure: Exposure, threshold: float, persons: int | None = None) -> TableRisk:
    """Compute the risks from class sizes and the size of the population."""
    above = exposure.above(threshold) / exposure.total if exposure.total else 0.0
    prosecutor = Intruder(exposure.highest_risk, exposure.average_risk, above)
    if persons is None or not exposure.total:
        return TableRisk(exposure, prosecutor, prosecutor, "prosecutor", exposure.average_risk)
    from shoal.workflow.risk.uniqueness import RULE, estimates

    uniques = estimates(exposure.sizes, exposure.records, persons)
    chance = chances(np.array(exposure.sizes, np.int64), min(exposure.total / persons, 1.0))
    unique_in_both = next(estimate.in_sample for estimate in uniques if estimate.model == RULE)
    if exposure.unique and unique_in_both is not None:  # unique in both: certain to be re-identified
        chance[0] = max(chance[0], unique_in_both / exposure.unique)
    journalist, marketer = against(np.array(exposure.records, np.int64), chance, threshold)
    return TableRisk(exposure, prosecutor, journalist, "estimate", marketer, uniques)


def against(records: IntArray, chance: FloatArray, threshold: float) -> tuple[Intruder, float]:
    """Return the journalist and the marketer risk from the probability of re-identification in each class."""
    total = records.sum()
    average = float((records * chance).sum() / total)
    above = float(records[chance > threshold].sum() / total)
    return Intruder(float(chance.max()), average, above), average
