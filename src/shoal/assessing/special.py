"""Special uniques: which sets of columns single records out, and how much each column has part in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.core.counts import Counts
from shoal.core.progress import Progress, quiet
from shoal.core.suda import MOST_SPREAD, Suda, suda
from shoal.core.warm import to_find_uniques

SPECIAL_SIZE = 3  # columns of the largest sets that are looked at, where nobody says it
FRACTION = 0.01  # of the population that is in the table, for DIS-SUDA, where nobody says it


@dataclass(frozen=True)
class Special:
    """What makes records unique: the minimal sets of columns that do."""

    size: int  # the largest sets that were looked at
    records: int  # that have such a set
    share: float  # of all records
    by_size: tuple[int, ...]  # minimal sample uniques of 1, 2, ... columns
    sets: tuple[tuple[tuple[str, ...], int], ...]  # with the records that each makes unique, most first
    contribution: dict[str, float]  # of each column to the scores
    highest_score: float
    mean_score: float  # over all records
    highest_dis: float  # 0 where there are more columns than it is defined for
    mean_dis: float
    found: Suda = field(repr=False, compare=False)  # the scores of every combination
    dis: FloatArray = field(repr=False, compare=False)  # (combinations,): their DIS-SUDA scores

    def to_dict(self) -> dict[str, Any]:
        """Return what was found as plain values."""
        return {
            "size": self.size,
            "records": self.records,
            "share": self.share,
            "by_size": list(self.by_size),
            "sets": [{"columns": list(columns), "records": records} for columns, records in self.sets],
            "contribution": self.contribution,
            "scores": {
                "highest": self.highest_score,
                "mean": self.mean_score,
                "highest_dis": self.highest_dis,
                "mean_dis": self.mean_dis,
            },
        }


def special_uniques(
    counts: Counts,
    columns: Sequence[str],
    size: int | None = None,
    *,
    fraction: float | None = None,
    progress: Progress | None = None,
) -> Special:
    """Find the minimal sample uniques of at most so many columns, and score them."""
    tell = progress or quiet
    for compile_one in to_find_uniques():
        tell("compile", 0, None)
        compile_one()
    tell("special uniques", 0, None)
    found = suda(counts, size if size is None else min(size, len(columns)), progress=progress)
    defined = found.columns <= MOST_SPREAD
    dis = found.dis_scores(fraction or FRACTION) if defined else np.zeros(len(found.scores))
    sets = sorted(found.by_set.items(), key=lambda pair: (-pair[1], len(pair[0]), pair[0]))
    total = found.records or 1
    return Special(
        size=found.most,
        records=found.at_risk,
        share=found.at_risk / total,
        by_size=tuple(found.sizes[1:].tolist()),
        sets=tuple((tuple(columns[place] for place in places), records) for places, records in sets),
        contribution=dict(zip(columns, found.column_contribution.tolist(), strict=True)),
        highest_score=float(found.scores.max(initial=0.0)),
        mean_score=float(found.scores.sum() / total),
        highest_dis=float(dis.max(initial=0.0)),
        mean_dis=float(dis.sum() / total),
        found=found,
        dis=dis,
    )
