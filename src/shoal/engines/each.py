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


def lone_of(table: str, names: Sequence[str], ask: Ask) -> dict[str, int]:
    """Count the values of columns of any types that occur once, by one query."""
    if not names:
        return {}
    place, sets = _sets(names)
    alone = f"SELECT {place} AS {_PLACE}\nFROM ({table}) GROUP BY GROUPING SETS ({sets}) HAVING COUNT(*) = 1"
    found = ask(f"SELECT {_PLACE}, COUNT(*) AS {COUNT} FROM ({alone}) GROUP BY {_PLACE}")
    seen = dict(zip(found[_PLACE].to_pylist(), found[COUNT].to_pylist(), strict=True))
    return {name: seen.get(number, 0) for number, name in enumerate(names)}


def query(table: str, names: Sequence[str]) -> str:
    """Write a query each of whose rows is a value of one column, which its place tells.

    >>> print(query("SELECT 1 AS a, 2 AS b", ["a", "b"]).replace(OWN, ""))
    SELECT CASE WHEN GROUPING("a") = 0 THEN 0 WHEN GROUPING("b") = 0 THEN 1 END AS place,
    COALESCE("a", "b") AS value, COUNT(*) AS n
    FROM (SELECT 1 AS a, 2 AS b) GROUP BY GROUPING SETS (("a"), ("b"))
    """
    place, sets = _sets(names)
    values = ", ".join(quoted((name,), '"') for name in names)
    return (
        f"SELECT {place} AS {_PLACE},\n"
        f"COALESCE({values}) AS {_VALUE}, COUNT(*) AS {COUNT}\n"
        f"FROM ({table}) GROUP BY GROUPING SETS ({sets})"
    )


def _sets(names: Sequence[str]) -> tuple[str, str]:
    """Write which column a row is of, and the sets of one column each by which to group."""
    columns = [quoted((name,), '"') for name in names]
    places = " ".join(f"WHEN GROUPING({column}) = 0 THEN {place}" for place, column in enumerate(columns))
    return f"CASE {places} END", ", ".join(f"({column})" for column in columns)
