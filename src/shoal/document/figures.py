"""Figures: panels of lines, or bars, drawn without a screen and saved as PNG and SVG."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from textwrap import fill
from typing import Any

from shoal.document.document import Figure, Line, Strip
from shoal.errors import UsageError
from shoal.files.outputs import cannot_write, check_kind, written_whole


def check_matplotlib() -> None:
    """Raise UsageError if matplotlib is not installed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("Plots need matplotlib: pip install 'shoal[plots]'.") from None


def empty_figure(width: float, height: float) -> Any:
    """Return an empty matplotlib figure of this size in inches, which a notebook shows as PNG."""
    check_matplotlib()
    return _figure_class()(figsize=(width, height), layout="constrained", dpi=100)


@cache
def _figure_class() -> Any:
    from matplotlib.figure import Figure as MatplotlibFigure

    class NotebookFigure(MatplotlibFigure):
        def _repr_png_(self) -> bytes:
            png = BytesIO()
            self.savefig(png, format="png")
            return png.getvalue()

    return NotebookFigure


# The colours of Okabe and Ito, which colour-blind readers can distinguish. Yellow is left out, because it is
# too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
_MARKERS = "os^Dv<>PXhd*"
_DASHES = (
    (0, None),
    (0, (5, 1.5)),
    (0, (1, 1)),
    (0, (5, 1.5, 1, 1.5)),
)  # lines 1 to 8 have the first style, lines 9 to 16 the second, and so on
_DASH = 1.6  # length of a dash where lines coincide, in line widths

# Overrides of the default style, a line with markers.
_STYLES: dict[str, dict[str, Any]] = {
    "line": {},
    "dots": {"linewidth": 0, "markersize": 3.5, "alpha": 0.6, "color": "#7F7F7F"},
    "steps": {"marker": "", "drawstyle": "steps-pre", "linewidth": 1.8},
    "steps-post": {"marker": "", "drawstyle": "steps-post", "linewidth": 1.8},
}


def _draw_lines(
    panel: Any, named: Mapping[str, Line], order: Sequence[str], kinds: Mapping[str, str]
) -> dict[str, Any]:
    """Draw the lines of a panel; return the legend entry of each."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    sharers = _sharers({n: named[n] for n in order if n in named and kinds.get(n, "line") == "line"})
    legend = {}
    for name in sorted(named, key=order.index):
        points, style = named[name], _style(order, name, kinds.get(name, "line"))
        if kinds.get(name, "line") == "line":
            segments = list(pairwise(points))
            dashes = [_dashes(sharers[_rounded(part)], name, style["linestyle"]) for part in segments]
            segment_style = {"colors": style["color"], "linewidths": style["linewidth"], "linestyles": dashes}
            panel.add_collection(LineCollection(segments, **segment_style))
            panel.plot(*zip(*points, strict=True), **style | {"linestyle": "none"})
        else:
            panel.plot(*zip(*points, strict=True), **style)
        legend[name] = Line2D([], [], **style)
    return legend


def _style(order: Sequence[str], name: str, kind: str) -> dict[str, Any]:
    index = order.index(name)
    return {
        "color": COLOURS[index % len(COLOURS)],
        "marker": _MARKERS[index % len(_MARKERS)],
        "markersize": 8
        - 4.5 * index / max(len(order), 8),  # earlier markers are larger, so they stay visible
        "markerfacecolor": "none",
        "linewidth": 1.6,
        "linestyle": _DASHES[index // len(COLOURS) % len(_DASHES)],
    } | _STYLES[kind]


def _rounded(segment: tuple[Any, Any]) -> object:
    """Round the ends of a segment: segments that coincide in the figure get the same key."""
    return tuple((x, f"{y:.3g}") for x, y in segment)


def _sharers(lines: Mapping[str, Line]) -> dict[object, list[str]]:
    """Return, for each segment between two points, the names of the lines that contain it."""
    sharers: dict[object, list[str]] = {}
    for name, points in lines.items():
        for segment in pairwise(points):
            sharers.setdefault(_rounded(segment), []).append(name)
    return sharers


def _dashes(sharers: Sequence[str], name: str, default: Any) -> Any:
    """Return the dashes of a segment. Lines that coincide are drawn in alternating dashes."""
    count, index = len(sharers), sharers.index(name)
    return default if count == 1 else (_DASH * (count - index), (_DASH, _DASH * (count - 1)))


FORMATS = ("png", "svg")
_TICKS = 8
_STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "svg.hashsalt": "shoal",  # makes SVG output deterministic
}


def check_folder(folder: Path) -> None:
    """Check that figures can be drawn and their folder can be created. Folders created here are removed."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        prepare(folder)
    finally:
        for path in missing:
            with suppress(OSError):
                path.rmdir()


def prepare(folder: Path) -> None:
    """Check that figures can be drawn, and create their folder."""
    check_matplotlib()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None


def save(
    plots: Sequence[Any],
    folder: Path,
    formats: Sequence[str] = FORMATS,
    drawing: Callable[[Any], Any] | None = None,  # draws plots that are no Figure
) -> list[Path]:
    """Draw plots into files of a folder, and replace files of the same names."""
    prepare(folder)
    from matplotlib import rc_context

    paths = []
    with rc_context(_STYLE):
        for plot in plots:
            figure = (drawing or draw)(plot)
            for extension in formats:
                path = folder / f"{plot.name}.{extension}"
                check_kind(path)
                with written_whole(path) as file:  # only the owner may read it: labels may be values
                    file.write(_rendered(figure, extension))
                paths.append(path)
    return paths


def _rendered(figure: Any, extension: str) -> bytes:
    """Return the content of a figure's file. A PNG is reduced to 256 colours to make it small."""
    content = BytesIO()
    if extension == "svg":
        figure.savefig(content, format="svg", metadata={"Date": None})
        return content.getvalue()
    from PIL import Image  # a dependency of matplotlib

    figure.savefig(content, format="png")
    reduced = Image.open(content).convert("RGB").quantize(dither=Image.Dither.NONE)
    small = BytesIO()
    reduced.save(small, format="png", optimize=True)
    return small.getvalue()


def draw_all(plots: Sequence[Figure]) -> Any:
    """Draw plots into one figure, one below the other, for a notebook."""
    sizes = [_size(plot) for plot in plots]
    heights = [height for _, height in sizes]

    def onto(figure: Any) -> None:
        parts = figure.subfigures(len(plots), 1, height_ratios=heights, squeeze=False)
        for plot, (part,) in zip(plots, parts, strict=True):
            draw(plot, part)

    return styled(max(width for width, _ in sizes), sum(heights), onto)


def styled(width: float, height: float, drawing: Callable[[Any], None]) -> Any:
    """Return a figure of this size in inches; `drawing` draws into it in the style of all plots."""
    figure = empty_figure(width, height)
    from matplotlib import rc_context

    with rc_context(_STYLE):
        drawing(figure)
        figure.draw_without_rendering()  # ticks are created at the first draw
    return figure


def draw(plot: Figure, figure: Any = None) -> Any:
    """Draw a plot into a new figure, or into the given (sub)figure."""
    size = _size(plot)
    figure = figure or empty_figure(*size)
    if plot.bars:
        return _bars(plot, figure)
    across, down = len(plot.headings), len(plot.strips)
    notes = plot.notes or [""] * across
    grid = figure.subplots(down, across, sharex=True, sharey="row", squeeze=False)
    lines: dict[str, Any] = {}
    for strip, panels in zip(plot.strips, grid, strict=True):
        for panel, named, note in zip(panels, strip.panels, notes, strict=True):
            lines |= _draw_lines(panel, named, plot.order, plot.drawn)
            if not named:
                _note(panel, note or "no figures here", 0.5)
        values = [y for named in strip.panels for line in named.values() for _, y in line]
        _scale(panels[0], values, strip, plot.scale)
        panels[0].set_ylabel(strip.label)
    for panel, heading, note, named in zip(grid[0], plot.headings, notes, plot.strips[0].panels, strict=True):
        above = _note(panel, note, 1.02) if named and note else 0
        panel.set_title(heading, fontsize="medium", pad=6 + 9 * above)
    for panel in grid[-1]:
        panel.set_xlabel(plot.across)
        _set_ticks(panel, plot.ticks, plot.scale)
    figure.suptitle(plot.title, fontsize="large")
    names = [name for name in plot.order if name in lines]
    wide = max(map(len, names), default=1) * 0.07 + 0.6  # width of one entry in inches
    columns = max(1, min(len(names), int(size[0] / wide)))
    figure.legend([lines[n] for n in names], names, loc="outside lower center", ncols=columns, frameon=False)
    return figure


def _size(plot: Figure) -> tuple[float, float]:
    if not plot.bars:
        return max(5.6, 1.0 + 2.6 * len(plot.headings)), 1.1 + 2.1 * len(plot.strips)
    names = _bar_names(plot)
    across = 0.6 + 0.08 * max(map(len, names)) + 2.4 * len(plot.strips)
    return max(5.6, across), 1.3 + 0.26 * len(names)


def _bar_names(plot: Figure) -> list[str]:
    return [name for name in plot.order if any(name in strip.panels[0] for strip in plot.strips)]


def _set_ticks(panel: Any, ticks: dict[float, str], scale: str) -> None:
    from matplotlib.ticker import NullLocator

    if scale == "log" or (scale == "auto" and 0 < min(ticks) * 10 < max(ticks)):
        panel.set_xscale("log")
    selected = list(ticks)[:: -(-len(ticks) // _TICKS)]
    panel.set_xticks(selected, [ticks[position] for position in selected])
    panel.xaxis.set_minor_locator(NullLocator())


def _note(panel: Any, text: str, height: float) -> int:
    """Write text into a panel (height below 1) or above it, and return the number of lines."""
    wrapped = "\n".join(fill(line, 44) for line in text.splitlines())
    style = {"fontsize": 7, "color": "#595959", "ha": "center", "va": "bottom" if height > 1 else "center"}
    panel.text(0.5, height, wrapped, transform=panel.transAxes, **style)
    return len(wrapped.splitlines())


def _bars(plot: Figure, figure: Any) -> Any:
    from matplotlib.ticker import MaxNLocator

    panels = [strip.panels[0] for strip in plot.strips]
    names = _bar_names(plot)
    (grid,) = figure.subplots(1, len(panels), sharey=True, squeeze=False)
    both = zip(plot.strips, panels, strict=True)  # all panels of shares get the same scale
    shares = [line[0][1] for strip, panel in both if strip.percent for line in panel.values()]
    for axes, strip, panel in zip(grid, plot.strips, panels, strict=True):
        values = {names.index(name): line[0][1] for name, line in panel.items()}
        colours = [COLOURS[plot.order.index(names[row]) % len(COLOURS)] for row in values]
        bars = axes.barh(list(values), list(values.values()), color=colours, height=0.7)
        labels = [f"{value * 100:.4g}%" if strip.percent else _number(value) for value in values.values()]
        axes.bar_label(bars, labels, padding=3, fontsize="small")
        axes.set_xlim(0, (max(shares if strip.percent else values.values()) or 1) * 1.3)
        axes.set_xlabel(strip.label.replace("\n", " "))
        axes.xaxis.set_major_formatter(_percent if strip.percent else _general_format)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        if strip.percent:
            axes.set_xticks([tick for tick in axes.get_xticks() if 0 <= tick <= 1])
        axes.grid(visible=False, axis="y")
    grid[0].set_yticks(range(len(names)), names)
    grid[0].invert_yaxis()
    note = plot.notes[0] if plot.notes else ""
    figure.suptitle("\n".join(filter(None, [plot.title, plot.headings[0], note])))
    return figure


def _scale(panel: Any, values: Sequence[float], strip: Strip, scale: str) -> None:
    """Set the vertical scale of a strip; "auto" is logarithmic where values span more than a decade."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    least, most = min(values), max(values)
    if scale == "log" or (scale == "auto" and 0 < least * 10 < most):
        panel.set_yscale("log")
        steps = (1, 2, 5) if most < 100 * least else (1,)
        panel.yaxis.set_major_locator(LogLocator(subs=steps))
        panel.yaxis.set_minor_formatter(NullFormatter())
    elif not strip.percent and all(float(value).is_integer() for value in values):
        panel.yaxis.set_major_locator(MaxNLocator(integer=True))
    panel.yaxis.set_major_formatter(FuncFormatter(_percent if strip.percent else _general_format))


def _percent(value: float, _: object) -> str:
    return f"{value * 100:g}%"


def _number(value: float) -> str:
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:.3g}"


def _general_format(value: float, _: object) -> str:
    return f"{value:g}"
