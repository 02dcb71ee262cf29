"""The values of many columns, each counted by itself, by few readings of the table.

A text file is parsed anew by every query. Grouping sets let one query count several columns of a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.counts import Counts, Domain, layout
from shoal.core.held import HeldCounts
from shoal.engines.names import quoted
from shoal.engines.relations import COUNT, OWN, changed, domain_of

_PLACE, _VALUE = OWN + "place", OWN + "value"
_MOST = 8  # columns of a query, whose values are held until their turn comes
Ask = Callable[[str], pa.Table]


def count_each(table: str, kinds: Mapping[str, Any], ask: Ask) -> Iterator[tuple[Counts, Domain]]:
    """Count the values of every column of a table in SQL; Ibis's types tell which columns are alike."""
    alike: dict[Any, list[str]] = {}
    for name, kind in kinds.items():
        alike.setdefault(kind.copy(nullable=True), []).append(name)
    found: dict[str, pa.Table] = {}
    records: int | None = None
    for name, kind in kinds.items():
        if name not in found:
            waiting = alike[kind.copy(nullable=True)]
            names, waiting[:_MOST] = waiting[:_MOST], []
            counted = ask(query(table, names))
            places = counted[_PLACE]
            found |= {own: counted.filter(pc.equal(places, place)) for place, own in enumerate(names)}
        seen = found.pop(name)  # texts take more room than what they are made from: one column at a time
        domain, order = domain_of(name, seen[_VALUE].combine_chunks().cast(kind.to_pyarrow()))
        sizes = seen[COUNT].to_numpy()[order]
        if records not in (None, total := int(sizes.sum())):
            raise changed()
        records = total
        yield HeldCounts(layout([domain.bits]), np.arange(len(sizes))[np.newaxis], sizes, {}), domain


def query(table: str, names: Sequence[str]) -> str:
    """Write a query each of whose rows is a value of one column, which its place tells.

    >>> print(query("SELECT 1 AS a, 2 AS b", ["a", "b"]).replace(OWN, ""))
    SELECT CASE WHEN GROUPING("a") = 0 THEN 0 WHEN GROUPING("b") = 0 THEN 1 END AS place,
    COALESCE("a", "b") AS value, COUNT(*) AS n
    FROM (SELECT 1 AS a, 2 AS b) GROUP BY GROUPING SETS (("a"), ("b"))
    """
    columns = [quoted((name,), '"') for name in names]
    places = " ".join(f"WHEN GROUPING({column}) = 0 THEN {place}" for place, column in enumerate(columns))
    sets = ", ".join(f"({column})" for column in columns)
    return (
        f"SELECT CASE {places} END AS {_PLACE},\n"
        f"COALESCE({', '.join(columns)}) AS {_VALUE}, COUNT(*) AS {COUNT}\n"
        f"FROM ({table}) GROUP BY GROUPING SETS ({sets})"
    )
