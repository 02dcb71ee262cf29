"""Options of the charts, for light and dark appearance. The library ECharts draws the charts.

Names and values of the table are drawn as text, never as HTML.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nicegui import ui

from shoal.web.pages import elements
from shoal.web.pages.chart_data import DataTable, label_of, table_of
from shoal.web.workspace.lattice import HeightRow, LatticeView, Point
from shoal.workflow.compare.comparison import ComparisonRow
from shoal.workflow.diagnosis.questions import Suppression
from shoal.workflow.level_names import LevelNames


def palette(dark: bool) -> dict[str, str]:
    """Return the colours of the light or dark appearance."""
    names = ("text", "line", "main", "second", "card")
    light_colours = ("#44525f", "#dfe4e9", "#0d6b6b", "#a85a1a", "#ffffff")
    dark_colours = ("#c3ccd5", "#323d48", "#63c9c1", "#e6a564", "#1a2129")
    return dict(zip(names, dark_colours if dark else light_colours, strict=True))


class Chart(ui.echart):
    """A chart with a name. The user can open a table of its data below it."""

    def __init__(self, dark: bool, height: int, on_click: Callable[[Any], Any] | None) -> None:
        super().__init__({}, on_point_click=on_click, theme=_theme(dark))
        self.style(f"--height: {height}px")
        self._props["role"] = "img"
        with elements.box("chart-data small", "details"):
            elements.tag("summary", "Data of the chart")
            self.data_box = elements.box("")


def add_chart(
    dark: bool, height: int, on_click: Callable[[Any], Any] | None = None, *, stacked: bool = False
) -> Chart:
    """Add an empty chart; `on_click` is called with the clicked point.

    With `stacked`, a narrow window stacks the parts of the chart, and the chart is twice as high.
    """
    return Chart(dark, height, on_click).classes("chart stacked" if stacked else "chart")


def draw(
    chart: Chart, options: Mapping[str, Any], *, label: str = "", table: DataTable | None = None
) -> None:
    """Replace the contents of a chart. `label` and `table` are made from the options unless given."""
    chart.options.clear()
    chart.options.update(options)
    chart._props["aria-label"] = label or label_of(options)
    chart.update()
    chart.data_box.clear()
    content = table or table_of(options)
    if content is not None:
        head, rows = content
        with chart.data_box:
            elements.table(head, rows, range(1, len(head)), classes="fit small")


def _theme(dark: bool) -> dict[str, Any]:
    colours = palette(dark)
    text = {"color": colours["text"], "fontSize": 11}
    axis = {
        "nameLocation": "middle",
        "nameTextStyle": text | {"fontSize": 12},
        "axisLabel": text,
        "axisLine": {"lineStyle": {"color": colours["line"]}},
        "axisTick": {"show": False},
        "splitLine": {"lineStyle": {"color": colours["line"], "opacity": 0.6}},
    }
    return {
        "animation": False,
        "textStyle": {"color": colours["text"], "fontFamily": "system-ui, sans-serif"},
        "color": [colours["main"], colours["second"], "#8a7cc2", "#7a8a99", "#4d8fcc", "#b5698f"],
        "tooltip": {
            "renderMode": "richText",
            "confine": True,
            "backgroundColor": colours["card"],
            "borderColor": colours["line"],
            "textStyle": text | {"fontSize": 12},
        },
        "legend": {"top": 0, "itemWidth": 16, "textStyle": {"color": colours["text"]}},
        "visualMap": {"textStyle": text},
        "valueAxis": axis,
        "categoryAxis": axis,
        "logAxis": axis,
        "bar": {"label": {"color": colours["text"]}},
        "tree": {
            "itemStyle": {"color": colours["main"], "borderColor": colours["main"]},
            "lineStyle": {"color": colours["line"], "width": 1},
            "label": text,
        },
    }


def _line(text: str, colour: str, position: str, **position_options: float) -> dict[str, Any]:
    return {
        "symbol": "none",
        "silent": True,
        "lineStyle": {"color": colour, "type": "dashed"},
        "label": {"formatter": text, "color": colour, "position": position, "rotate": 0},
        "data": [position_options],
    }


def curve(rows: Sequence[Suppression], k: float, dark: bool) -> dict[str, Any]:
    """Draw the share of records that each k suppresses."""
    return {
        "grid": {"left": 56, "right": 20, "top": 24, "bottom": 44},
        "xAxis": {"name": "k", "nameGap": 28, "type": "value", "min": 1, "max": rows[-1].k if rows else 1},
        "yAxis": {"name": "records suppressed (%)", "nameGap": 38, "type": "value", "min": 0, "max": 100},
        "series": [
            {
                "type": "line",
                "step": "end",
                "showSymbol": False,
                "data": [[row.k, round(row.share * 100, 3)] for row in rows],
                "areaStyle": {"opacity": 0.12},
                "markLine": _line(f"k = {k}", palette(dark)["second"], "end", xAxis=k),
            }
        ],
        "tooltip": {
            "trigger": "axis",
            ":formatter": "p => `k ${p[0].value[0]}: ${p[0].value[1].toFixed(1)}% suppressed`",
        },
    }


def by_height(rows: Sequence[HeightRow], limit_share: float, dark: bool) -> dict[str, Any]:
    """Draw the smallest and the mean share of records that nodes of each height suppress."""
    limit = round(limit_share * 100, 3)
    line = {"type": "line", "symbol": "circle", "symbolSize": 5}
    least = [round(row.least_share * 100, 3) for row in rows]
    mean = [round(row.mean_share * 100, 3) for row in rows]
    mark = _line("limit", palette(dark)["text"], "insideStartTop", yAxis=limit)
    return {
        "legend": {"data": ["least", "mean"], "right": 8},
        "grid": {"left": 50, "right": 16, "top": 30, "bottom": 40},
        "xAxis": {
            "name": "steps coarser, all columns together",
            "nameGap": 26,
            "type": "category",
            "data": [row.height for row in rows],
        },
        "yAxis": {"name": "suppressed (%)", "nameGap": 34, "type": "value", "min": 0, "max": 100},
        "series": [
            line | {"name": "least", "data": least, "markLine": mark},
            line | {"name": "mean", "data": mean},
        ],
        "tooltip": {"trigger": "axis"},
    }


def retained(shares: Mapping[str, float], dark: bool) -> dict[str, Any]:
    """Draw the share of each column's information that is retained."""
    names = list(shares)[::-1]
    margin = 16 + min(120, 7 * max(map(len, names), default=0))
    return {
        "grid": {"left": margin, "right": 48, "top": 6, "bottom": 6},
        "xAxis": {"type": "value", "min": 0, "max": 100, "show": False},
        "yAxis": {
            "type": "category",
            "data": names,
            "splitLine": {"show": False},
            "axisLabel": {"width": margin - 12, "overflow": "truncate"},
        },
        "series": [
            {
                "type": "bar",
                "barMaxWidth": 16,
                "data": [round(shares[name] * 100, 1) for name in names],
                "label": {"show": True, "position": "right", "formatter": "{c}%"},
                "showBackground": True,
                "backgroundStyle": {"color": palette(dark)["line"], "opacity": 0.5},
            }
        ],
        "tooltip": {"show": False},
    }


def _place_labels(node: Mapping[str, Any]) -> dict[str, Any]:
    """Move the label "n more" below its point, so that it does not cover labels of the next level."""
    below = {"label": {"position": "bottom"}} if node.get("more") and node["level"] else {}
    children = node.get("children")
    return {**node, **below} | ({"children": [*map(_place_labels, children)]} if children else {})


def tree(root: Mapping[str, Any]) -> dict[str, Any]:
    """Draw a hierarchy from its top."""
    return {
        "series": [
            {
                "type": "tree",
                "data": [_place_labels(root)],
                "left": 40,
                "right": 96,
                "top": 6,
                "bottom": 6,
                "symbol": "circle",
                "symbolSize": 7,
                "label": {"position": "top", "distance": 4, "width": 90, "overflow": "truncate"},
                "leaves": {"label": {"position": "right", "distance": 5}},
                "initialTreeDepth": -1,
                "expandAndCollapse": False,
                "roam": True,
            }
        ],
        "tooltip": {"show": False},
    }


def comparison(rows: Sequence[ComparisonRow], metric: str, dark: bool) -> dict[str, Any]:
    """Draw the loss (relative to the optimum) and the time of each algorithm, side by side."""
    shown = [row for row in rows if row.metric == metric and row.loss is not None][::-1]
    names = [row.algorithm for row in shown]
    loss_name, time_name = "loss (1: the best levels)", "milliseconds"
    bar = {"type": "bar", "barMaxWidth": 18}
    loss_label = {"show": True, "position": "insideRight", "color": palette(dark)["card"]}
    losses = [round(row.relative_loss or 0, 4) for row in shown]
    milliseconds = [max(0.1, round((row.seconds or 0) * 1000, 1)) for row in shown]
    grid, second = {"width": "38%", "top": 34, "bottom": 26}, {"xAxisIndex": 1, "yAxisIndex": 1}
    above, below = {"top": 34, "bottom": "56%"}, {"top": "56%", "bottom": 26}
    narrow = {
        "grid": [{"left": 96, "right": 40, "width": "auto"} | part for part in (above, below)],
        "yAxis": [{"show": True}, {"show": True}],
    }
    return {
        "legend": {"data": [loss_name, time_name], "left": "center"},
        "grid": [grid | {"left": 96}, grid | {"right": 28}],
        "media": [{"query": {"maxWidth": 620}, "option": narrow}],
        "xAxis": [{"type": "value", "gridIndex": 0, "min": 0}, {"type": "log", "gridIndex": 1}],
        "yAxis": [
            {"type": "category", "gridIndex": index, "data": names, "show": index == 0} for index in (0, 1)
        ],
        "series": [
            bar | {"name": loss_name, "data": losses, "label": loss_label},
            bar
            | second
            | {"name": time_name, "data": milliseconds, "label": {"show": True, "position": "right"}},
        ],
        "tooltip": {"show": False},
    }


def before_after(bars: Sequence[tuple[str, int, int]]) -> dict[str, Any]:
    """Draw records by label, before and after side by side."""
    series = [
        {"name": name, "type": "bar", "barMaxWidth": 22, "data": [bar[index] for bar in bars]}
        for index, name in ((1, "before"), (2, "after"))
    ]
    return {
        "legend": {"data": ["before", "after"], "right": 8},
        "grid": {"left": 60, "right": 12, "top": 30, "bottom": 70},
        "xAxis": {
            "type": "category",
            "data": [label for label, _, _ in bars],
            "axisLabel": {"rotate": 35, "width": 90, "overflow": "truncate"},
        },
        "yAxis": {"name": "records", "nameGap": 44, "type": "value", "min": 0},
        "series": series,
        "tooltip": {"trigger": "axis"},
    }


Position = tuple[float, float, Point]  # x, y, node
_COLOURS = {  # from none to all suppressed; light (False) and dark (True)
    False: ["#0f766e", "#56aea0", "#dccf95", "#dd9a55", "#b14f39"],
    True: ["#2ba597", "#6cc2b4", "#dccf95", "#e0a262", "#d0694f"],
}


def lattice_positions(view: LatticeView) -> list[Position]:
    """Arrange the nodes of each height in a few lines. Nodes that suppress fewer records are on the left."""
    rows: dict[int, list[Point]] = {}
    for point in view.points:
        rows.setdefault(point.height, []).append(point)
    widest = max(map(len, rows.values()), default=1)
    lines = max(1, min(6, round(math.sqrt(widest / 24))))
    positions = []
    for height, row in sorted(rows.items()):
        row_lines = min(lines, len(row))
        length = -(-len(row) // row_lines)
        for index, point in enumerate(row):
            across, line = divmod(index, row_lines)
            y = height + (line - (row_lines - 1) / 2) * 0.8 / lines
            positions.append((across - (length - 1) / 2, y, point))
    return positions


def lattice(
    view: LatticeView,
    positions: Sequence[Position],
    limit: int,
    answer: Mapping[str, int] | None,
    chosen: Mapping[str, int] | None,
    names: LevelNames,
    dark: bool,
) -> dict[str, Any]:
    """Draw the lattice by height. The colour is the suppressed share. Nodes above the limit are faint."""
    colours = palette(dark)
    widest = max((abs(x) for x, _, _ in positions), default=1.0) + 1
    size = max(4, min(13, round(350 / (2 * widest))))
    rings = [
        _ring("answer", answer, view, positions, colours["text"], size + 9),
        _ring("chosen", chosen, view, positions, colours["second"], size + 15),
    ]
    points = [_point(*position, limit) for position in positions]
    return {
        "grid": {"left": 44, "right": 12, "top": 12, "bottom": 44},
        "xAxis": {"type": "value", "show": False, "min": -widest, "max": widest},
        "yAxis": _height_axis(sum(view.heights)),
        "visualMap": _share_colours(dark),
        "series": [{"type": "scatter", "symbolSize": size, "data": points, "progressive": 0}, *rings],
        "tooltip": _TOOLTIP | {":formatter": _tooltip(view, names)},
    }


def _point(x: float, y: float, point: Point, limit: int) -> dict[str, Any]:
    # The values after the coordinates are shown in the tooltip.
    return {
        "value": [x, y, round(point.share * 100, 3), point.suppressed, point.nodes, *point.node],
        "itemStyle": {"opacity": 1.0 if point.suppressed <= limit else 0.55},
    }


def _height_axis(top: int) -> dict[str, Any]:
    """Return the axis of heights, with about eight labels."""
    interval = max(1, -(-top // 8))
    return {
        "name": "steps coarser, all columns together",
        "nameGap": 26,
        "type": "value",
        "min": -0.5,
        "max": top + 0.5,
        "interval": 0.5,
        "splitLine": {"show": False},
        "axisLine": {"show": False},
        "axisLabel": {":formatter": f"v => Number.isInteger(v) && v % {interval} === 0 ? v : ''"},
    }


def _share_colours(dark: bool) -> dict[str, Any]:
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
        "inRange": {"color": _COLOURS[dark]},
    }


# A tooltip on the canvas would intercept clicks on the points below it; an HTML tooltip does not.
_TOOLTIP = {"renderMode": "html", "extraCssText": "pointer-events: none; white-space: pre-line"}


def _tooltip(view: LatticeView, names: LevelNames) -> str:
    """Return the script of the tooltip of a node. It adds names of the table as text, never as HTML."""
    words = [
        [names.phrase(column, level) for level in range(height + 1)]
        for column, height in zip(view.columns, view.heights, strict=True)
    ]
    text = json.dumps(words).replace("<", "\\u003c")
    return (
        f"p => {{ const v = p.value, n = {text}, box = document.createElement('div'); "
        "box.textContent = `${v[3].toLocaleString()} records suppressed (${v[2].toFixed(1)}%)` "
        "+ (v[4] > 1 ? `, and ${(v[4] - 1).toLocaleString()} similar choices` : '') + '\\n' "
        "+ n.map((c, i) => c[v[5 + i]]).join('\\n'); return box; }"
    )


def _ring(
    name: str,
    node: Mapping[str, int] | None,
    view: LatticeView,
    positions: Sequence[Position],
    colour: str,
    size: int,
) -> dict[str, Any]:
    levels = tuple(node[column] for column in view.columns) if node else None
    data = [[x, y] for x, y, point in positions if point.node == levels]
    return {
        "type": "scatter",
        "name": name,
        "silent": True,
        "symbolSize": size,
        "data": data,
        "itemStyle": {"color": "transparent", "borderColor": colour, "borderWidth": 2},
        "z": 5,
    }
