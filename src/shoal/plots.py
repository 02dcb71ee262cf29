"""Plots: panels of lines, or bars, drawn without a screen and saved as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from textwrap import fill
from typing import Any

from shoal.core.figure import blank, check_matplotlib
from shoal.outputs import cannot
from shoal.plot_lines import COLOURS, Line, drawn_lines

FORMATS = ("png", "svg")
_TICKS = 8
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.hashsalt": "shoal",  # the same plot is the same file
}


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
    notes: Sequence[str] = ()  # of the panels: what is not in them, and why
    bars: bool = False  # one panel of one point per name: the strips stand side by side


def prepare(folder: Path) -> None:
    """Make sure that plots can be drawn and have a folder to go to, before the work begins."""
    check_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot(folder, error) from None


def save(
    plots: Sequence[Any],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    drawing: Callable[[Any], Any] | None = None,  # how plots of another kind are drawn
) -> list[Path]:
    """Draw plots into a folder; those of the same name are replaced."""
    prepare(folder)
    from matplotlib import rc_context

    paths = []
    with rc_context(_STYLE):
        for plot in plots:
            figure = (drawing or draw)(plot)
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


def together(plots: Sequence[Plot]) -> Any:
    """Return one figure that holds plots one below the other, for a notebook to show."""
    sizes = [_size(plot) for plot in plots]
    heights = [height for _, height in sizes]

    def onto(figure: Any) -> None:
        parts = figure.subfigures(len(plots), 1, height_ratios=heights, squeeze=False)
        for plot, (part,) in zip(plots, parts, strict=True):
            draw(plot, part)

    return styled(max(width for width, _ in sizes), sum(heights), onto)


def styled(width: float, height: float, drawing: Callable[[Any], None]) -> Any:
    """Return a figure of so many inches, drawn in the style of all plots."""
    figure = blank(width, height)
    from matplotlib import rc_context

    with rc_context(_STYLE):
        drawing(figure)
        figure.draw_without_rendering()  # ticks are made when first drawn
    return figure


def draw(plot: Plot, figure: Any = None) -> Any:
    """Return a plot as a figure: a new one, or the part of one that is given."""
    size = _size(plot)
    figure = figure or blank(*size)
    if plot.bars:
        return _bars(plot, figure)
    across, down = len(plot.headings), len(plot.strips)
    notes = plot.notes or [""] * across
    grid = figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
    lines: dict[str, Any] = {}
    for strip, panels in zip(plot.strips, grid, strict=True):
        for panel, named, note in zip(panels, strip.panels, notes, strict=True):
            lines |= drawn_lines(panel, named, plot.order, plot.drawn)
            if not named:
                _note(panel, note or "no figures here", 0.5)
        _scale(panels[0], [up for named in strip.panels for line in named.values() for _, up in line], strip)
        panels[0].set_ylabel(strip.label)
    for panel, heading, note, named in zip(grid[0], plot.headings, notes, plot.strips[0].panels, strict=True):
        above = _note(panel, note, 1.02) if named and note else 0
        panel.set_title(heading, fontsize="medium", pad=6 + 9 * above)
    for panel in grid[-1]:
        panel.set_xlabel(plot.across)
        _places(panel, plot.ticks)
    figure.suptitle(plot.title, fontsize="large")
    names = [name for name in plot.order if name in lines]
    wide = max(map(len, names), default=1) * 0.07 + 0.6  # inches of one entry
    columns = max(1, min(len(names), int(size[0] / wide)))
    figure.legend([lines[n] for n in names], names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _size(plot: Plot) -> tuple[float, float]:
    """Return the inches that a plot takes across and down."""
    if not plot.bars:
        return max(5.6, 1.0 + 2.6 * len(plot.headings)), 1.1 + 2.1 * len(plot.strips)
    names = _barred(plot)
    across = 0.6 + 0.08 * max(map(len, names)) + 2.4 * len(plot.strips)
    return max(5.6, across), 1.3 + 0.26 * len(names)


def _barred(plot: Plot) -> list[str]:
    """Return the names that have a bar."""
    return [name for name in plot.order if any(name in strip.panels[0] for strip in plot.strips)]


def _places(panel: Any, ticks: dict[float, str]) -> None:
    """Write at most so many places across as there is room for."""
    from matplotlib.ticker import NullLocator

    if 0 < min(ticks) * 10 < max(ticks):
        panel.set_xscale("log")
    few = list(ticks)[:: -(-len(ticks) // _TICKS)]
    panel.set_xticks(few, [ticks[place] for place in few])
    panel.xaxis.set_minor_locator(NullLocator())


def _note(panel: Any, text: str, height: float) -> int:
    """Write into the middle of a panel, or above it; return the lines that it takes."""
    told = "\n".join(fill(line, 44) for line in text.splitlines())
    style = {"fontsize": 7, "color": "#595959", "ha": "center", "va": "bottom" if height > 1 else "center"}
    panel.text(0.5, height, told, transform=panel.transAxes, **style)
    return len(told.splitlines())


def _bars(plot: Plot, figure: Any) -> Any:
    """Draw a plot of one point per name as bars, whose ends tell their values."""
    from matplotlib.ticker import MaxNLocator

    panels = [strip.panels[0] for strip in plot.strips]
    names = _barred(plot)
    (grid,) = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    both = zip(plot.strips, panels, strict=True)  # shares that stand side by side have one scale
    shares = [line[0][1] for strip, panel in both if strip.percent for line in panel.values()]
    for axes, strip, panel in zip(grid, plot.strips, panels, strict=True):
        values = {names.index(name): line[0][1] for name, line in panel.items()}
        colours = [COLOURS[plot.order.index(names[place]) % len(COLOURS)] for place in values]
        drawn = axes.barh(list(values), list(values.values()), color=colours, height=0.7)
        told = [f"{up * 100:.4g}%" if strip.percent else _number(up) for up in values.values()]
        axes.bar_label(drawn, told, padding=3, fontsize="small")
        axes.set_xlim(0, (max(shares if strip.percent else values.values()) or 1) * 1.3)
        axes.set_xlabel(strip.label.replace("\n", " "))
        axes.xaxis.set_major_formatter(_percent if strip.percent else _plain)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if strip.percent:
            axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 1])
        axes.grid(visible=False, axis="y")
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    note = plot.notes[0] if plot.notes else ""
    figure.suptitle("\n".join(filter(None, [plot.title, plot.headings[0], note])))
    return figure


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


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def _plain(value: float, _: object) -> str:
    return f"{value:g}"
