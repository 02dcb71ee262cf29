"""The measures of a risk assessment: one list of them, written as rows of words for each kind of reader."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING

from shoal.assessing.table import Intruder, TableRisk

if TYPE_CHECKING:
    from shoal.risk import Risk

_BY = {
    "prosecutor": "at most, as prosecutor",
    "estimate": "estimated",
    "population": "counted in the population",
}


class Unit(Enum):
    """What the values of a measure are."""

    NUMBER = auto()
    RECORDS = auto()  # of all records of the table
    UNIQUES = auto()  # of its unique records
    CHANCE = auto()
    SHARE = auto()  # of all records


@dataclass(frozen=True)
class Measure:
    """One measure, before and, where there is a release, after."""

    name: str
    about: str  # the classes, an intruder or the population
    unit: Unit
    values: tuple[float | None, ...]  # one for each table; None: not known


Write = Callable[[Unit, float | None, int], str]  # a value, given the records of its table


def risk_rows(found: Risk) -> list[tuple[str, ...]]:
    """Write every measure as a row of words: what it is, before, and after where there is a release."""
    return rows_of(found, measures(found), _in_figures)


def rows_of(found: Risk, told: Iterable[Measure], write: Write) -> list[tuple[str, ...]]:
    """Write some measures as rows of words."""
    totals = [table.records for table in found.tables]
    return [
        (one.name, *[write(one.unit, value, total) for value, total in zip(one.values, totals, strict=True)])
        for one in told
    ]


def measures(found: Risk, below: int | None = None) -> Iterator[Measure]:
    """List all measures; with `below`, records in classes below it stand for those above the threshold."""

    def tell(name: str, about: str, unit: Unit, value: Callable[[TableRisk], float | None]) -> Measure:
        return Measure(name, about, unit, tuple(map(value, found.tables)))

    def risks(name: str, note: str, own: Callable[[TableRisk], Intruder]) -> Iterator[Measure]:
        yield tell(f"{name} risk, highest{note}", name, Unit.CHANCE, lambda table: own(table).highest)
        yield tell(f"{name} risk, average", name, Unit.CHANCE, lambda table: own(table).average)
        if below is None:
            above = f"records above {found.threshold:.4g}"
            yield tell(above, name, Unit.SHARE, lambda table: own(table).above)

    yield tell("records", "classes", Unit.NUMBER, lambda table: table.records)
    yield tell("classes", "classes", Unit.NUMBER, lambda table: table.exposure.classes)
    yield tell("smallest class (k)", "classes", Unit.NUMBER, lambda table: table.exposure.smallest)
    yield tell("unique records", "classes", Unit.RECORDS, lambda table: table.exposure.unique)
    if below is not None and below > 1:
        small = f"records in classes below {below:,}"
        yield tell(small, "classes", Unit.RECORDS, lambda table: table.exposure.below(below))
    yield from risks("prosecutor", "", lambda table: table.prosecutor)
    by = f" ({_BY[found.before.journalist_by]})"
    yield from risks("journalist", by, lambda table: table.journalist)
    told = "marketer risk: records rightly told"
    yield tell(told, "marketer", Unit.RECORDS, lambda table: table.marketer * table.records)
    for place, estimate in enumerate(found.before.uniques):
        own = tuple(table.uniques[place].in_sample for table in found.tables)
        told = f"unique in the population, by {estimate.model}"
        yield Measure(told, "population", Unit.UNIQUES, own)
    if found.before.special is not None:
        yield tell("special uniques", "special uniques", Unit.RECORDS, _special)


def _special(table: TableRisk) -> float | None:
    return None if table.special is None else table.special.records


def _in_figures(unit: Unit, value: float | None, total: int) -> str:
    """Write a value for one who reads numbers: chances from 0 to 1."""
    if value is None:
        return "no solution" if unit is Unit.UNIQUES else "not looked for"
    if unit is Unit.CHANCE:
        return f"{value:.4f}"
    if unit is Unit.SHARE:
        return f"{value:.2%}"
    share = value / total if total else 0.0
    more = {Unit.RECORDS: f" ({share:.2%})", Unit.UNIQUES: " of these"}
    return f"{round(value):,}{more.get(unit, '')}"
