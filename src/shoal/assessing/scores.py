"""SUDA scores record by record, as a table for the custodian alone: it holds values of the data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from shoal.assessing.special import Special
from shoal.core.arrays import FloatArray, IntArray
from shoal.core.counts import Counts, Domain

if TYPE_CHECKING:
    import pyarrow as pa

NAMES = ("minimal_uniques", "suda", "dis_suda")  # of the columns that tell the scores


@dataclass(frozen=True, eq=False)
class Scores:
    """The special uniques of a table with their scores; all arrays are of one record each, worst first."""

    texts: Mapping[str, tuple[str | None, ...]] = field(repr=False)  # of each column, its values by code
    codes: Mapping[str, IntArray] = field(repr=False)
    numbers: IntArray  # of minimal sample uniques
    suda: FloatArray
    dis_suda: FloatArray

    def table(self) -> pa.Table:
        """Write a row for each record: what makes it a combination of its own, and its scores."""
        import pyarrow as pa

        columns = {
            name: pa.DictionaryArray.from_arrays(codes, pa.array(self.texts[name], pa.string())).cast(
                pa.string()
            )
            for name, codes in self.codes.items()
        }
        for name, own in zip(NAMES, (self.numbers, self.suda, self.dis_suda), strict=True):
            columns[_free(name, columns)] = pa.array(own)
        return pa.table(columns)


def scores_of(
    special: Special, counts: Counts, columns: Sequence[str], domains: Mapping[str, Domain]
) -> Scores:
    """Take the records that have a minimal sample unique; each of them is a combination of its own."""
    found = special.found
    some = np.flatnonzero(found.msus)
    codes = [counts.codes(place)[some] for place in range(len(columns))]
    order = np.lexsort((*codes[::-1], -found.msus[some], -found.scores[some]))
    kept = some[order]
    return Scores(
        texts={name: domains[name].texts for name in columns},
        codes={name: own[order] for name, own in zip(columns, codes, strict=True)},
        numbers=found.msus[kept],
        suda=found.scores[kept],
        dis_suda=special.dis[kept],
    )


def _free(name: str, taken: Mapping[str, object]) -> str:
    """Return a name that no column has.

    >>> _free("suda", {"suda": 1})
    'suda_'
    """
    while name in taken:
        name += "_"
    return name
