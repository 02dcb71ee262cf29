"""The lattice as a chart: a point for each choice of levels, by height, coloured by what it suppresses."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from shoal.web.charts import axis, base, ink
from shoal.web.views import LatticeView, Point

_COLOURS = {  # from none suppressed to all, in light and in dark
    False: ["#0f766e", "#56aea0", "#dccf95", "#dd9a55", "#b14f39"],
    True: ["#2ba597", "#6cc2b4", "#dccf95", "#e0a262", "#d0694f"],
}


def places(view: LatticeView) -> list[tuple[float, float, Point]]:
    """Put the nodes of each height side by side in a few lines, those that suppress least on the left."""
    rows: dict[int, list[Point]] = {}
    for point in view.points:
        rows.setdefault(point.height, []).append(point)
    widest = max(map(len, rows.values()), default=1)
    lines = max(1, min(6, round(math.sqrt(widest / 24))))
    found = []
    for height, row in sorted(rows.items()):
        own = min(lines, len(row))
        length = -(-len(row) // own)
        for place, point in enumerate(row):
            across, down = divmod(place, own)
            y = height + (down - (own - 1) / 2) * 0.8 / lines
            found.append((across - (length - 1) / 2, y, point))
    return found


def lattice(
    view: LatticeView,
    placed: Sequence[tuple[float, float, Point]],
    limit: int,
    answer: Mapping[str, int] | None,
    chosen: Mapping[str, int] | None,
    dark: bool,
) -> dict[str, Any]:
    """Draw the lattice by height, coloured by the share suppressed; what the limit allows stands out."""
    colours = ink(dark)
    widest = max((abs(x) for x, _, _ in placed), default=1.0) + 1
    size = max(4, min(13, round(350 / (2 * widest))))
    rings = [
        _ring("answer", answer, view, placed, colours["text"], size + 9),
        _ring("chosen", chosen, view, placed, colours["second"], size + 15),
    ]
    points = [_point(*one, limit) for one in placed]
    return base(dark) | {
        "grid": {"left": 44, "right": 12, "top": 12, "bottom": 44},
        "xAxis": {"type": "value", "show": False, "min": -widest, "max": widest},
        "yAxis": _heights(sum(view.heights), dark),
        "visualMap": _shares(dark),
        "series": [{"type": "scatter", "symbolSize": size, "data": points, "progressive": 0}, *rings],
        "tooltip": base(dark)["tooltip"] | {":formatter": _tooltip(view.columns)},
    }


def _point(x: float, y: float, point: Point, limit: int) -> dict[str, Any]:
    """Draw a node; what the tooltip tells of it comes along."""
    return {
        "value": [x, y, round(point.share * 100, 3), point.suppressed, point.nodes, *point.node],
        "itemStyle": {"opacity": 1.0 if point.suppressed <= limit else 0.55},
    }


def _heights(top: int, dark: bool) -> dict[str, Any]:
    """Draw the axis of heights, with about eight whole numbers."""
    labels = {
        "color": ink(dark)["text"],
        "fontSize": 11,
        ":formatter": f"v => Number.isInteger(v) && v % {max(1, -(-top // 8))} === 0 ? v : ''",
    }
    return axis(
        dark,
        "height",
        type="value",
        min=-0.5,
        max=top + 0.5,
        interval=0.5,
        nameGap=26,
        splitLine={"show": False},
        axisLine={"show": False},
        axisLabel=labels,
    )


def _shares(dark: bool) -> dict[str, Any]:
    """Colour the points by the share suppressed, with the scale below."""
    return {
        "type": "continuous",
        "min": 0,
        "max": 100,
        "dimension": 2,
        "seriesIndex": 0,
        "orient": "horizontal",
        "left": "center",
        "bottom": 0,
        "itemWidth": 10,
        "itemHeight": 160,
        "text": ["all suppressed", "none"],
        "textStyle": {"color": ink(dark)["text"], "fontSize": 11},
        "inRange": {"color": _COLOURS[dark]},
    }


def _tooltip(columns: Sequence[str]) -> str:
    """Return the script that tells of a node."""
    return (
        f"p => {{ const v = p.value, n = {json.dumps(list(columns))}; "
        "return `${v[3].toLocaleString()} records suppressed (${v[2].toFixed(1)}%)` "
        "+ (v[4] > 1 ? `, much like ${(v[4] - 1).toLocaleString()} others of this height` : '') + '\\n' "
        "+ n.map((c, i) => `${c} ${v[5 + i]}`).join('\\n'); }"
    )


def _ring(
    name: str,
    node: Mapping[str, int] | None,
    view: LatticeView,
    placed: Sequence[tuple[float, float, Point]],
    colour: str,
    size: int,
) -> dict[str, Any]:
    """Draw a ring around a node."""
    levels = tuple(node[column] for column in view.columns) if node else None
    found = [[x, y] for x, y, point in placed if point.node == levels]
    return {
        "type": "scatter",
        "name": name,
        "silent": True,
        "symbolSize": size,
        "data": found,
        "itemStyle": {"color": "transparent", "borderColor": colour, "borderWidth": 2},
        "z": 5,
    }
