"""What the plots of a risk assessment show: class sizes, the risks, and what makes records unique."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from shoal.assessing.special import Special
from shoal.assessing.table import TableRisk
from shoal.plots import Plot, Strip

if TYPE_CHECKING:
    from shoal.risk import Risk

_SETS = 12  # of columns, those of most records


def risk_plots(found: Risk) -> list[Plot]:
    """Return the plots of the risks before and, where there is a release, after."""
    tables = {"before": found.before} | ({"after": found.after} if found.after else {})
    plots = [_sizes(tables), _risks(found, tables)]
    special = found.before.special
    if special is not None and special.sets:
        plots.append(_special(special))
    return plots


def _sizes(tables: dict[str, TableRisk]) -> Plot:
    """Draw the share of records in classes of at most each size."""
    every = sorted({1, *[size for one in tables.values() for size in one.exposure.sizes]})
    lines = {
        name: [(float(size), one.exposure.below(size + 1) / one.records) for size in every]
        for name, one in tables.items()
    }
    strip = Strip("records in classes\nof at most this size", [lines], percent=True)
    return Plot(
        name="class-sizes",
        title="How many records look alike",
        headings=[""],
        across="records in the class",
        ticks={float(size): f"{size:,}" for size in _ticks(tables.values())},
        strips=[strip],
        order=list(lines),
        drawn=dict.fromkeys(lines, "steps"),
    )


def _ticks(tables: Iterable[TableRisk]) -> list[int]:
    """Return 1, 2, 5, 10 and so on up to the largest class."""
    largest = max(one.exposure.sizes[-1] for one in tables)
    steps = [one * 10**power for power in range(len(str(largest))) for one in (1, 2, 5)]
    return [step for step in steps if step <= largest]


def _risks(found: Risk, tables: dict[str, TableRisk]) -> Plot:
    """Draw each risk as a bar, before beside after."""
    measures = {name: _measures(one, found.threshold) for name, one in tables.items()}
    strips = [
        Strip(f"risk {name}", [{measure: [(0.0, up)] for measure, up in own.items()}], percent=True)
        for name, own in measures.items()
    ]
    return Plot(
        name="risk",
        title="How likely a record is found",
        headings=[""],
        across="",
        ticks={},
        strips=strips,
        order=list(measures["before"]),
        bars=True,
    )


def _measures(one: TableRisk, threshold: float) -> dict[str, float]:
    return {
        "prosecutor, highest": one.prosecutor.highest,
        "prosecutor, average": one.prosecutor.average,
        f"prosecutor, records above {threshold:.4g}": one.prosecutor.above,
        "journalist, highest": one.journalist.highest,
        "journalist, average": one.journalist.average,
        f"journalist, records above {threshold:.4g}": one.journalist.above,
        "marketer": one.marketer,
    }


def _special(special: Special) -> Plot:
    """Draw the sets of columns that make most records unique."""
    sets = {", ".join(columns): [(0.0, float(records))] for columns, records in special.sets[:_SETS]}
    return Plot(
        name="special-uniques",
        title="What makes records unique",
        headings=["sets of columns none of which can be left out"],
        across="",
        ticks={},
        strips=[Strip("records", [sets], percent=False)],
        order=list(sets),
        bars=True,
    )
