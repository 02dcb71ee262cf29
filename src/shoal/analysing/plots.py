"""The plots of a utility: distributions as bars, associations and the records of a pair as heat maps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.analysing.bars import OTHER, Bar, bars_of, shown
from shoal.analysing.compared import Utility
from shoal.analysing.pairs import Contingency
from shoal.core.arrays import FloatArray
from shoal.plots import save

_COLOURS = {"before": "#D55E00", "after": "#0072B2"}  # Okabe and Ito's
_NUMBERED = 16  # labels across a heat map whose cells still hold their numbers


@dataclass(frozen=True)
class Distributions:
    """The bars of several columns."""

    name: str  # of its files, without ending
    columns: Mapping[str, Sequence[Bar]]


@dataclass(frozen=True)
class Heat:
    """Two tables on one scale, drawn as heat maps."""

    name: str  # of its files, without ending
    title: str
    rows: Sequence[str]
    across: Sequence[str]
    tables: Mapping[str, FloatArray]  # "before" and "after"; nan is left empty
    most: float  # the value of the darkest cell
    written: str  # how a number is written


def save_utility(found: Utility, folder: Path) -> list[Path]:
    """Draw a utility into a folder, as PNG and SVG; what is there under the same names is replaced."""
    return save(utility_plots(found), folder, drawing=draw)


def utility_plots(found: Utility) -> list[Distributions | Heat]:
    """Return what is drawn of a utility."""
    bars = {one.column: bars_of(one) for one in found.columns if one.labels > 1}
    drawn: list[Distributions | Heat] = []
    if any(bars.values()):
        drawn.append(Distributions("distributions", {name: own for name, own in bars.items() if own}))
    if found.associations:
        drawn.append(_associations(found))
    if found.contingency:
        drawn.append(_pair(found.contingency))
    return drawn


def _associations(found: Utility) -> Heat:
    names = found.associated
    tables = {}
    for kind in ("before", "after"):
        tables[kind] = np.full((len(names), len(names)), np.nan)
        for one in found.associations:
            a, b = map(names.index, one.columns)
            tables[kind][a, b] = tables[kind][b, a] = getattr(one, kind)
    return Heat(
        "associations", "How much columns tell of each other, Cramer's V", names, names, tables, 1, ".2f"
    )


def _pair(found: Contingency) -> Heat:
    cells = {"before": found.before, "after": found.after}
    tables = {kind: np.array(own, np.float64) for kind, own in cells.items() if own is not None}
    rows, across = [[*map(shown, labels), OTHER] for labels in (found.rows, found.across)]
    if not any(table[-1].any() for table in tables.values()):
        rows, tables = rows[:-1], {kind: table[:-1] for kind, table in tables.items()}
    if not any(table[:, -1].any() for table in tables.values()):
        across, tables = across[:-1], {kind: table[:, :-1] for kind, table in tables.items()}
    most = max(float(table.max()) for table in tables.values())
    title = "Records by {} and {}".format(*map(_plain, found.columns))
    return Heat("pair", title, rows, across, tables, most, ",.0f")


def draw(plot: Distributions | Heat) -> Any:
    """Return a plot as a figure."""
    return _bars(plot) if isinstance(plot, Distributions) else _heat(plot)


def _bars(plot: Distributions) -> Any:
    from matplotlib.figure import Figure

    across = min(3, len(plot.columns))
    down = -(-len(plot.columns) // across)
    most = max(map(len, plot.columns.values()))
    figure = Figure(figsize=(4.2 * across, (0.9 + 0.22 * most) * down + 0.5), layout="constrained", dpi=100)
    panels = figure.subplots(down, across, squeeze=False).reshape(-1)
    for panel, (name, bars) in zip(panels, plot.columns.items(), strict=False):
        places = np.arange(len(bars))
        for kind, side, by in (("before", 1, -0.2), ("after", 2, 0.2)):
            records = [bar[side] or 0 for bar in bars]
            panel.barh(places + by, records, 0.38, color=_COLOURS[kind], label=kind)
        panel.set_yticks(places, [_plain(bar[0]) for bar in bars], fontsize="small")
        panel.set_ylim(most - 0.5, -0.5)  # bars of all columns are as thick
        panel.set_title(_plain(name), fontsize="medium")
        panel.grid(visible=False, axis="y")
        panel.xaxis.set_major_locator(_few())
    for panel in panels[len(plot.columns) :]:
        panel.remove()
    figure.suptitle("Records by label", fontsize="large")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
    return figure


def _few() -> Any:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(4, integer=True)


def _heat(plot: Heat) -> Any:
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    size = (1.6 + 0.5 * len(plot.across)) * len(plot.tables), 2.0 + 0.32 * len(plot.rows)
    figure = Figure(figsize=(max(5.6, size[0]), size[1]), layout="constrained", dpi=100)
    (panels,) = figure.subplots(1, len(plot.tables), sharey=True, squeeze=False)
    for panel, (kind, table) in zip(panels, plot.tables.items(), strict=True):
        shades = LinearSegmentedColormap.from_list(kind, ["#f5f5f5", _COLOURS[kind]])
        panel.imshow(np.sqrt(table / (plot.most or 1)), cmap=shades, vmin=0, vmax=1.4, aspect="auto")
        panel.set_xticks(range(len(plot.across)), [*map(_plain, plot.across)], rotation=90, fontsize="small")
        panel.set_yticks(range(len(plot.rows)), [*map(_plain, plot.rows)], fontsize="small")
        panel.set_title(kind, fontsize="medium")
        panel.grid(visible=False)
        if len(plot.across) <= _NUMBERED:
            for (row, column), number in np.ndenumerate(table):
                if np.isfinite(number):
                    told = format(number, plot.written)
                    panel.text(column, row, told, ha="center", va="center", fontsize=7)
    figure.suptitle(plot.title, fontsize="large")
    return figure


def _plain(words: str) -> str:
    """Keep a name from being read as mathematics, and cut it short."""
    return shown(words).replace("$", r"\$")
