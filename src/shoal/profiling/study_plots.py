"""What the plots of a study show: suppression by height, strength and columns, and grouping power."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from shoal.plots import Plot, Strip

if TYPE_CHECKING:
    from shoal.study import Power, Study, Suppression

_LINES = ("largest", "mean", "least")


def study_plots(study: Study) -> list[Plot]:
    """Return the plots of a study."""
    at = f"{study.model} = {study.least}"
    plots = [
        _suppression(study, study.by_height, "height", f"Suppression by height, {at}", "height"),
        _suppression(
            study, study.by_strength, study.model, f"Suppression by {study.model}, all nodes", study.model
        ),
        _suppression(
            study, study.by_columns, "columns", f"Suppression by number of columns, {at}",
            "quasi-identifiers below their top level",
        ),
    ]  # fmt: skip
    return [*plots, _grouping(study.grouping)]


def _suppression(study: Study, rows: Sequence[Suppression], name: str, title: str, across: str) -> Plot:
    lines = {line: [(row.at, getattr(row, line) / study.records) for row in rows] for line in _LINES}
    ticks = {float(row.at): str(row.at) for row in rows}
    strip = Strip("records suppressed", [lines], percent=True)
    return Plot(f"suppression-by-{name}", title, [""], across, ticks, [strip], _LINES)


def _grouping(powers: Sequence[Power]) -> Plot:
    columns = list(dict.fromkeys(power.column for power in powers))

    def strip(label: str, value: Callable[[Power], float]) -> Strip:
        lines = {
            column: [(power.level, value(power)) for power in powers if power.column == column]
            for column in columns
        }
        return Strip(label, [lines], percent=False)

    levels = sorted({power.level for power in powers})
    return Plot(
        name="grouping-power",
        title="Grouping power of each level",
        headings=[""],
        across="level",
        ticks={float(level): str(level) for level in levels},
        strips=[
            strip("average group size", lambda power: power.size),
            strip("relative importance", lambda power: power.importance),
        ],
        order=columns,
    )
