"""Figures of a utility: distributions of columns, and heat maps, before and after side by side."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.arrays import FloatArray
from shoal.document.document import Name
from shoal.document.figures import save
from shoal.workflow.utility.associations import Contingency
from shoal.workflow.utility.columns import OTHER, BarCounts, bars_of, shown
from shoal.workflow.utility.utility import Utility

COLOURS = {"before": "#D55E00", "after": "#0072B2"}  # Okabe and Ito's
ESTIMATED = " Where labels overlap, their records are spread over the values that they cover: an estimate."
_WIDEST = 60  # maximum number of characters of a row of numbers


@dataclass(frozen=True)
class Distributions:
    """The bars of each column that can be drawn."""

    columns: Mapping[str, Sequence[BarCounts]]
    name: str = "distributions"  # file name without extension


@dataclass(frozen=True)
class HeatMap:
    """Two tables with the same colour scale."""

    name: str  # file name without extension
    title: tuple[str, ...]
    quantity: str  # what a cell shows
    rows: Sequence[str]
    across: Sequence[str]
    tables: Mapping[str, FloatArray]  # "before" and "after", (rows, across); nan is left empty
    largest: float  # the value of the darkest cell
    number_format: str
    note: str

    def shades(self, kind: str) -> FloatArray:
        """Return the darkness of each cell, from 0 to 1; a square root makes small values visible."""
        shades: FloatArray = np.sqrt(self.tables[kind] / (self.largest or 1))
        return shades

    def text(self, value: float) -> str:
        """Format the number of a cell; an empty cell has no text."""
        return "" if math.isnan(value) else format(value, self.number_format)

    @property
    def numbered(self) -> bool:
        """Whether the numbers of a row are short enough to be shown in the cells."""
        longest = max((len(self.text(v)) for table in self.tables.values() for v in table.flat), default=0)
        return len(self.across) * longest <= _WIDEST


def save_utility(result: Utility, folder: Path) -> list[Path]:
    """Draw a utility into a folder, as PNG and SVG; files of the same names are replaced."""
    distributions = distributions_of(result)
    drawn = [distributions] if distributions.columns else []
    return save([*drawn, *heat_maps(result)], folder, drawing=_draw)


def distributions_of(result: Utility) -> Distributions:
    """Return the bars of the columns that have several labels and can be drawn."""
    bars = {column.column: bars_of(column) for column in result.columns if column.labels > 1}
    return Distributions({name: column_bars for name, column_bars in bars.items() if column_bars})


def heat_maps(result: Utility) -> list[HeatMap]:
    """Return the heat maps of the associations and of the pair, if they were measured."""
    associations = [_associations(result)] if result.associations else []
    return [*associations, *([_pair(result.contingency)] if result.contingency else [])]


def _associations(result: Utility) -> HeatMap:
    names = result.associated
    tables = {kind: np.full((len(names) - 1, len(names) - 1), np.nan) for kind in COLOURS}
    for association in result.associations:
        column, row = map(names.index, association.columns)
        for kind, table in tables.items():
            table[row - 1, column] = getattr(association, kind)
    return HeatMap(
        name="associations",
        title=("How strongly columns are associated",),
        quantity="Cramer's V",
        rows=names[1:],
        across=names[:-1],
        tables=tables,
        largest=1,
        number_format=".2f",
        note="Cramer's V, corrected for bias, is 0 where two columns are independent and 1 where each "
        "determines the other; before by values, after by labels."
        + (ESTIMATED if any(association.estimated for association in result.associations) else ""),
    )


def _pair(contingency: Contingency) -> HeatMap:
    cells = {"before": contingency.before, "after": contingency.after}
    tables = {kind: np.array(counts, np.float64) for kind, counts in cells.items()}
    columns, labels = list(contingency.columns), [contingency.rows, contingency.across]
    if len(contingency.across) > len(contingency.rows):  # prefer a long table to a wide one
        tables = {kind: table.T for kind, table in tables.items()}
        columns.reverse()
        labels.reverse()
    rows, across = [[*map(shown, of_column), OTHER] for of_column in labels]
    if not any(table[-1].any() for table in tables.values()):
        rows, tables = rows[:-1], {kind: table[:-1] for kind, table in tables.items()}
    if not any(table[:, -1].any() for table in tables.values()):
        across, tables = across[:-1], {kind: table[:, :-1] for kind, table in tables.items()}
    note = "The stronger its colour, the more records a cell has."
    if contingency.estimated:
        note += " Labels overlap: records before are an estimate, spread over the labels that cover them."
    return HeatMap(
        name="pair",
        title=("Records by ", Name(columns[0]), " and ", Name(columns[1])),
        quantity="Records",
        rows=rows,
        across=across,
        tables=tables,
        largest=max(float(table.max()) for table in tables.values()),
        number_format=",.0f",
        note=note,
    )


def _draw(figure: Distributions | HeatMap) -> Any:
    return _draw_bars(figure) if isinstance(figure, Distributions) else _draw_heat_map(figure)


def _draw_bars(distributions: Distributions) -> Any:
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    columns = distributions.columns
    across = min(3, len(columns))
    down = -(-len(columns) // across)
    most = max(map(len, columns.values()))
    figure = Figure(figsize=(4.2 * across, (0.9 + 0.22 * most) * down + 0.5), layout="constrained", dpi=100)
    panels = figure.subplots(down, across, squeeze=False).reshape(-1)
    for panel, (name, bars) in zip(panels, columns.items(), strict=False):
        positions = np.arange(len(bars))
        for kind, side, by in (("before", 1, -0.2), ("after", 2, 0.2)):
            records = [bar[side] for bar in bars]
            panel.barh(positions + by, records, 0.38, color=COLOURS[kind], label=kind)
        panel.set_yticks(positions, [_label(bar[0]) for bar in bars], fontsize="small")
        panel.set_ylim(most - 0.5, -0.5)  # bars of all columns are equally thick
        panel.set_title(_label(name), fontsize="medium")
        panel.grid(visible=False, axis="y")
        panel.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    for panel in panels[len(columns) :]:
        panel.remove()
    figure.suptitle("Records by label", fontsize="large")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _draw_heat_map(heat: HeatMap) -> Any:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    size = (1.6 + 0.5 * len(heat.across)) * len(heat.tables), 2.0 + 0.32 * len(heat.rows)
    figure = Figure(figsize=(max(5.6, size[0]), size[1]), layout="constrained", dpi=100)
    (panels,) = figure.subplots(1, len(heat.tables), sharey=True, squeeze=False)
    for panel, (kind, table) in zip(panels, heat.tables.items(), strict=True):
        colours = LinearSegmentedColormap.from_list(kind, ["#f5f5f5", COLOURS[kind]])
        panel.imshow(heat.shades(kind), cmap=colours, vmin=0, vmax=1.4, aspect="auto")
        panel.set_xticks(range(len(heat.across)), [*map(_label, heat.across)], rotation=90, fontsize="small")
        panel.set_yticks(range(len(heat.rows)), [*map(_label, heat.rows)], fontsize="small")
        panel.set_title(f"{heat.quantity} {kind}", fontsize="medium")
        panel.grid(visible=False)
        if heat.numbered:
            for (row, column), value in np.ndenumerate(table):
                panel.text(column, row, heat.text(value), ha="center", va="center", fontsize=7)
    title = [_label(part) if isinstance(part, Name) else part for part in heat.title]
    figure.suptitle("".join(title), fontsize="large")
    return figure


def _label(words: str) -> str:
    """Shorten a name, and escape it so that matplotlib does not read it as mathematics."""
    return shown(words).replace("$", r"\$")
