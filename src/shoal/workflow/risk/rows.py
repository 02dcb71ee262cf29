"""The measures of a risk assessment as rows, and its figures."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from enum import Enum, auto
from functools import partial
from typing import TYPE_CHECKING

from shoal.document.document import Figure, Strip, round_ticks
from shoal.wording import percent
from shoal.workflow.risk.exposure import Intruder, TableRisk
from shoal.workflow.risk.suda import Special

if TYPE_CHECKING:
    from shoal.workflow.risk.risk import Risk


_BY = {
    "prosecutor": "at most, as prosecutor",
    "estimate": "estimated",
    "population": "counted in the population",
}


class Unit(Enum):
    """The unit of a measure."""

    NUMBER = auto()
    RECORDS = auto()  # of all records of the table
    SHARE = auto()  # from 0 to 1


RiskValue = Callable[[TableRisk], float | None]  # None: unknown
RiskMeasure = tuple[str, Unit, RiskValue]


def risk_rows(risk: Risk, k: int | None = None) -> list[tuple[str, ...]]:
    """Return every measure as a row of text: its name, its value before, and after if there is a release.

    With `k`, one row counts the records in smaller classes, instead of the records above the risk threshold.
    """
    return [
        (name, *[_text(unit, value(table), table.records) for table in risk.tables])
        for name, unit, value in _measures(risk, k)
    ]


def _measures(risk: Risk, k: int | None) -> Iterator[RiskMeasure]:
    yield "records", Unit.NUMBER, lambda table: table.records
    yield "classes", Unit.NUMBER, lambda table: table.exposure.classes
    yield "smallest class (k)", Unit.NUMBER, lambda table: table.exposure.smallest
    yield "unique records", Unit.RECORDS, lambda table: table.exposure.unique
    if k is not None and k > 1:
        yield f"records in classes below {k:,}", Unit.RECORDS, lambda table: table.exposure.below(k)
    threshold = None if k is not None else risk.threshold
    yield from _intruder_measures("prosecutor", "", threshold, lambda table: table.prosecutor)
    if k is None or risk.population is not None:
        by = f" ({_BY[risk.before.journalist_by]})"
        yield from _intruder_measures("journalist", by, threshold, lambda table: table.journalist)
    marketer = "marketer risk: expected correct matches"
    yield marketer, Unit.RECORDS, lambda table: table.marketer * table.records
    for index, estimate in enumerate(risk.before.uniques):
        name = f"unique in the population, by {estimate.model}"
        yield name, Unit.RECORDS, partial(_uniques, index)
    if risk.before.special is not None:
        yield "special uniques", Unit.RECORDS, _special_records


def _uniques(index: int, table: TableRisk) -> float | None:
    return table.uniques[index].in_sample


def _special_records(table: TableRisk) -> float | None:
    return None if table.special is None else table.special.records


def _intruder_measures(
    name: str, note: str, threshold: float | None, intruder: Callable[[TableRisk], Intruder]
) -> Iterator[RiskMeasure]:
    yield f"{name} risk, highest{note}", Unit.SHARE, lambda table: intruder(table).highest
    yield f"{name} risk, average", Unit.SHARE, lambda table: intruder(table).average
    if threshold is not None:
        yield f"records above {percent(threshold)}", Unit.SHARE, lambda table: intruder(table).above


def _text(unit: Unit, value: float | None, total: int) -> str:
    if value is None:
        return "no estimate"
    if unit is Unit.SHARE:
        return percent(value)
    number = f"{round(value):,}"
    return number if unit is Unit.NUMBER else f"{number} ({percent(value / total if total else 0.0)})"


_SETS = 12  # maximum number of sets of columns to plot: those with the most records


def risk_plots(risk: Risk) -> list[Figure]:
    """Return the plots of the risks before and, if there is a release, after."""
    tables = {"before": risk.before} | ({"after": risk.after} if risk.after else {})
    plots = [_sizes(tables), _risks(risk, tables)]
    special = risk.before.special
    if special is not None and special.sets:
        plots.append(_special_plot(special))
    return plots


def _sizes(tables: Mapping[str, TableRisk]) -> Figure:
    all_sizes = sorted({1, *[size for table in tables.values() for size in table.exposure.sizes]})
    lines = {
        name: [(float(size), table.exposure.below(size + 1) / table.records) for size in all_sizes]
        for name, table in tables.items()
    }
    strip = Strip("records in classes\nof at most this size", [lines], percent=True)
    ticks = round_ticks(all_sizes[-1], 99)
    steps = dict.fromkeys(lines, "steps")
    title = "How many records look alike"
    return Figure("class-sizes", title, [""], "records in the class", ticks, [strip], list(lines), steps)


def _risks(risk: Risk, tables: Mapping[str, TableRisk]) -> Figure:
    bars = {f"risk {name}": _risk_shares(table, risk.threshold) for name, table in tables.items()}
    return _bars("risk", "How likely a record is found", "", bars, shares=True)


def _bars(
    name: str, title: str, heading: str, strips: Mapping[str, Mapping[str, float]], *, shares: bool
) -> Figure:
    drawn = [
        Strip(label, [{bar: [(0.0, up)] for bar, up in bars.items()}], percent=shares)
        for label, bars in strips.items()
    ]
    order = list(next(iter(strips.values())))
    return Figure(name, title, [heading], "", {}, drawn, order, bars=True)


def _risk_shares(table: TableRisk, threshold: float) -> dict[str, float]:
    return {
        "prosecutor, highest": table.prosecutor.highest,
        "prosecutor, average": table.prosecutor.average,
        f"prosecutor, records above {threshold:.4g}": table.prosecutor.above,
        "journalist, highest": table.journalist.highest,
        "journalist, average": table.journalist.average,
        f"journalist, records above {threshold:.4g}": table.journalist.above,
        "marketer": table.marketer,
    }


def _special_plot(special: Special) -> Figure:
    sets = {", ".join(columns): float(records) for columns, records in special.sets[:_SETS]}
    heading = "sets of columns none of which can be left out"
    return _bars("special-uniques", "What makes records unique", heading, {"records": sets}, shares=False)
