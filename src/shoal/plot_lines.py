"""Lines of a plot: each has a colour and a marker of its own, and where lines coincide they take turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

# Okabe and Ito's colours, which colour-blind readers can tell apart; yellow is too pale on white.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#E69F00", "#56B4E9", "#7F7F7F")
_MARKERS = "os^Dv<>PXhd*"
_DASHES = ((0, None), (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1.5, 1, 1.5)))  # for every eight lines another
_DASH = 1.6  # widths of a line, after which lines that coincide take turns

# How a line is drawn: what stands in for the style of a line with markers.
_DRAWN: dict[str, dict[str, Any]] = {
    "line": {},
    "dots": {"linewidth": 0, "markersize": 3.5, "alpha": 0.6, "color": "#7F7F7F"},
    "steps": {"marker": "", "drawstyle": "steps-pre", "linewidth": 1.8},
}

Line = Sequence[tuple[float, float]]  # points from left to right


def drawn_lines(
    panel: Any, named: Mapping[str, Line], order: Sequence[str], drawn: Mapping[str, str]
) -> dict[str, Any]:
    """Draw the lines of a panel, and return what the legend shows of each."""
    from matplotlib.collections import LineCollection
    from matplotlib.lines import Line2D

    sharers = _sharers({n: named[n] for n in order if n in named and drawn.get(n, "line") == "line"})
    shown = {}
    for name in sorted(named, key=order.index):
        points, style = named[name], _style(order, name, drawn.get(name, "line"))
        if drawn.get(name, "line") == "line":
            pieces = list(pairwise(points))
            dashes = [_turn(sharers[_rounded(piece)], name, style["linestyle"]) for piece in pieces]
            panel.add_collection(
                LineCollection(
                    pieces, colors=style["color"], linewidths=style["linewidth"], linestyles=dashes
                )
            )
            panel.plot(*zip(*points, strict=True), **style | {"linestyle": "none"})
        else:
            panel.plot(*zip(*points, strict=True), **style)
        shown[name] = Line2D([], [], **style)
    return shown


def _style(order: Sequence[str], name: str, drawn: str) -> dict[str, Any]:
    place, number = order.index(name), len(order)
    return {
        "color": COLOURS[place % len(COLOURS)],
        "marker": _MARKERS[place % len(_MARKERS)],
        "markersize": 8 - 4.5 * place / max(number, 8),  # smaller than those below, which stay visible
        "markerfacecolor": "none",
        "linewidth": 1.6,
        "linestyle": _DASHES[place // len(COLOURS) % len(_DASHES)],
    } | _DRAWN[drawn]


def _rounded(piece: tuple[Any, Any]) -> object:
    """Return a piece of a line as the eye tells it from others."""
    return tuple((at, f"{up:.3g}") for at, up in piece)


def _sharers(lines: Mapping[str, Line]) -> dict[object, list[str]]:
    """Return, for each piece between two points, the lines that run along it."""
    found: dict[object, list[str]] = {}
    for name, points in lines.items():
        for piece in pairwise(points):
            found.setdefault(_rounded(piece), []).append(name)
    return found


def _turn(sharers: Sequence[str], name: str, alone: Any) -> Any:
    """Return the dashes of a line along a piece: where lines coincide they take turns."""
    number, place = len(sharers), sharers.index(name)
    return alone if number == 1 else (_DASH * (number - place), (_DASH, _DASH * (number - 1)))
