"""Plots: panels of lines, drawn without a screen and saved as PNG and SVG."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any

from shoal.errors import UsageError
from shoal.publish import cannot

FORMATS = ("png", "svg")
# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is too pale on white.
_COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
_MARKERS = "os^Dv<>PXhd*"
_TICKS = 8
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.hashsalt": "shoal",  # the same plot is the same file
}

# How a line is drawn: what stands in for the style of a line with markers.
_DRAWN: dict[str, dict[str, Any]] = {
    "line": {},
    "dots": {"linewidth": 0, "markersize": 3.5, "alpha": 0.6, "color": "#7F7F7F"},
    "steps": {"marker": "", "drawstyle": "steps-pre", "linewidth": 1.8},
}

Line = Sequence[tuple[float, float]]  # points from left to right


@dataclass(frozen=True)
class Strip:
    """Panels side by side that share what goes up."""

    label: str
    panels: Sequence[Mapping[str, Line]]  # lines by name
    percent: bool


@dataclass(frozen=True)
class Plot:
    """Strips one below the other that share what goes across."""

    name: str  # of its files, without ending
    title: str
    headings: Sequence[str]  # of the panels
    across: str
    ticks: dict[float, str]  # what to write at places across
    strips: Sequence[Strip]
    order: Sequence[str]  # of line names: a name keeps its colour and marker from plot to plot
    drawn: Mapping[str, str] = field(default_factory=dict)  # of lines that are "dots" or "steps" instead


def prepare(folder: Path) -> None:
    """Make sure that plots can be drawn and have a folder to go to, before the work begins."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        message = "Plots need matplotlib: pip install 'shoal[plots]'."
        raise UsageError(message) from None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot(folder, error) from None


def save(plots: Sequence[Plot], folder: Path, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Draw plots into a folder; those of the same name are replaced."""
    prepare(folder)
    from matplotlib import rc_context

    paths = []
    with rc_context(_STYLE):
        for plot in plots:
            figure = draw(plot)
            for ending in formats:
                path = folder / f"{plot.name}.{ending}"
                try:
                    _save(figure, path)
                except OSError as error:
                    raise cannot(path, error) from None
                paths.append(path)
    return paths


def _save(figure: Any, path: Path) -> None:
    """Write a figure; a PNG gets few colours, which makes it small."""
    if path.suffix == ".svg":
        figure.savefig(path, metadata={"Date": None})
        return
    from PIL import Image  # which matplotlib brings along

    drawn = BytesIO()
    figure.savefig(drawn, format="png")
    few = Image.open(drawn).convert("RGB").quantize(dither=Image.Dither.NONE)
    few.save(path, optimize=True)


def draw(plot: Plot) -> Any:
    """Return a plot as a figure."""
    from matplotlib.figure import Figure

    across, down = len(plot.headings), len(plot.strips)
    size = (max(5.6, 1.0 + 2.6 * across), 1.1 + 2.1 * down)
    figure = Figure(figsize=size, layout="constrained", dpi=100)
    grid = figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
    lines: dict[str, Any] = {}
    for strip, panels in zip(plot.strips, grid, strict=True):
        for panel, named in zip(panels, strip.panels, strict=True):
            for name in sorted(named, key=plot.order.index):
                lines[name] = _line(panel, named[name], plot.order.index(name), plot.drawn.get(name, "line"))
        _scale(panels[0], [up for named in strip.panels for line in named.values() for _, up in line], strip)
        panels[0].set_ylabel(strip.label)
    for panel, heading in zip(grid[0], plot.headings, strict=True):
        panel.set_title(heading, fontsize="medium")
    for panel in grid[-1]:
        panel.set_xlabel(plot.across)
        _places(panel, plot.ticks)
    figure.suptitle(plot.title, fontsize="large")
    names = [name for name in plot.order if name in lines]
    wide = max(map(len, names), default=1) * 0.07 + 0.6  # inches of one entry
    columns = max(1, min(len(names), int(size[0] / wide)))
    figure.legend([lines[n] for n in names], names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _places(panel: Any, ticks: dict[float, str]) -> None:
    """Write at most so many places across as there is room for."""
    from matplotlib.ticker import NullLocator

    if 0 < min(ticks) * 10 < max(ticks):
        panel.set_xscale("log")
    few = list(ticks)[:: -(-len(ticks) // _TICKS)]
    panel.set_xticks(few, [ticks[place] for place in few])
    panel.xaxis.set_minor_locator(NullLocator())


def _line(panel: Any, points: Line, place: int, drawn: str) -> Any:
    """Draw a line; each is thinner than the one below it, so that lines which coincide can all be seen."""
    style: dict[str, Any] = {
        "color": _COLOURS[place % len(_COLOURS)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": max(3.5, 7.5 - 0.6 * place),
        "markerfacecolor": "none",
        "linewidth": max(0.8, 2.8 - 0.35 * place),
    }
    style |= _DRAWN[drawn]
    (line,) = panel.plot([at for at, _ in points], [up for _, up in points], **style)
    return line


def _scale(panel: Any, values: Sequence[float], strip: Strip) -> None:
    """Give the panels of a strip their scale: by factors where values span more than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    least, most = min(values), max(values)
    if 0 < least * 10 < most:
        panel.set_yscale("log")
        steps = (1, 2, 5) if most < 100 * least else (1,)
        panel.yaxis.set_major_locator(LogLocator(subs=steps))
        panel.yaxis.set_minor_formatter(NullFormatter())
    elif not strip.percent and all(float(value).is_integer() for value in values):
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.yaxis.set_major_formatter(FuncFormatter(_percent if strip.percent else _plain))


def _percent(value: float, _: object) -> str:
    return f"{value * 100:g}%"


def _plain(value: float, _: object) -> str:
    return f"{value:g}"
