"""Charts: what ECharts draws, in colours that are readable in light and in dark.

Names and values of the table are drawn as text only, never as HTML.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.comparing.row import Row
from shoal.diagnosing.findings import Suppression
from shoal.web.views import HeightRow


def ink(dark: bool) -> dict[str, str]:
    """Return the colours of one appearance."""
    if dark:
        return {
            "text": "#c3ccd5",
            "line": "#323d48",
            "main": "#63c9c1",
            "second": "#e6a564",
            "card": "#1a2129",
        }
    return {"text": "#44525f", "line": "#dfe4e9", "main": "#0d6b6b", "second": "#a85a1a", "card": "#ffffff"}


def base(dark: bool) -> dict[str, Any]:
    """Return what all charts share."""
    colours = ink(dark)
    return {
        "animation": False,
        "textStyle": {"color": colours["text"], "fontFamily": "system-ui, sans-serif"},
        "color": [colours["main"], colours["second"], "#8a7cc2", "#7a8a99", "#4d8fcc", "#b5698f"],
        "tooltip": {
            "renderMode": "richText",
            "confine": True,
            "backgroundColor": colours["card"],
            "borderColor": colours["line"],
            "textStyle": {"color": colours["text"], "fontSize": 12},
        },
    }


def axis(dark: bool, name: str, **more: Any) -> dict[str, Any]:
    """Return an axis with its name."""
    colours = ink(dark)
    return {
        "name": name,
        "nameLocation": "middle",
        "nameGap": 28,
        "nameTextStyle": {"color": colours["text"], "fontSize": 12},
        "axisLabel": {"color": colours["text"], "fontSize": 11},
        "axisLine": {"lineStyle": {"color": colours["line"]}},
        "axisTick": {"show": False},
        "splitLine": {"lineStyle": {"color": colours["line"], "opacity": 0.6}},
    } | more


def _legend(dark: bool, **more: Any) -> dict[str, Any]:
    return {"top": 0, "right": 8, "itemWidth": 16, "textStyle": {"color": ink(dark)["text"]}} | more


def curve(rows: Sequence[Suppression], k: int, dark: bool) -> dict[str, Any]:
    """Draw what each k costs."""
    colours = ink(dark)
    mark = {
        "symbol": "none",
        "silent": True,
        "lineStyle": {"color": colours["second"], "type": "dashed"},
        "label": {"formatter": f"k = {k}", "color": colours["second"], "position": "end", "rotate": 0},
        "data": [{"xAxis": k}],
    }
    return base(dark) | {
        "grid": {"left": 56, "right": 20, "top": 24, "bottom": 44},
        "xAxis": axis(dark, "k", type="value", min=1, max=rows[-1].k if rows else 1),
        "yAxis": axis(dark, "records suppressed (%)", type="value", min=0, max=100, nameGap=38),
        "series": [
            {
                "type": "line",
                "step": "end",
                "showSymbol": False,
                "data": [[row.k, round(row.share * 100, 3)] for row in rows],
                "areaStyle": {"opacity": 0.12},
                "markLine": mark,
            }
        ],
        "tooltip": base(dark)["tooltip"]
        | {
            "trigger": "axis",
            ":formatter": "p => `k ${p[0].value[0]}: ${p[0].value[1].toFixed(1)}% suppressed`",
        },
    }


def by_height(rows: Sequence[HeightRow], limit_share: float, dark: bool) -> dict[str, Any]:
    """Draw the least and the mean that nodes of each height suppress."""
    colours = ink(dark)
    mark = {
        "symbol": "none",
        "silent": True,
        "lineStyle": {"color": colours["text"], "type": "dashed"},
        "label": {"formatter": "limit", "color": colours["text"], "position": "insideStartTop"},
        "data": [{"yAxis": round(limit_share * 100, 3)}],
    }
    return base(dark) | {
        "legend": _legend(dark, data=["least", "mean"]),
        "grid": {"left": 50, "right": 16, "top": 30, "bottom": 40},
        "xAxis": axis(dark, "height", type="category", data=[row.height for row in rows], nameGap=26),
        "yAxis": axis(dark, "suppressed (%)", type="value", min=0, max=100, nameGap=34),
        "series": [
            {
                "name": "least",
                "type": "line",
                "symbol": "circle",
                "symbolSize": 5,
                "data": [round(row.least_share * 100, 3) for row in rows],
                "markLine": mark,
            },
            {
                "name": "mean",
                "type": "line",
                "symbol": "circle",
                "symbolSize": 5,
                "data": [round(row.mean_share * 100, 3) for row in rows],
            },
        ],
        "tooltip": base(dark)["tooltip"] | {"trigger": "axis"},
    }


def loss(columns: Sequence[Mapping[str, Any]], dark: bool) -> dict[str, Any]:
    """Draw what each column loses of what it could lose."""
    rows = list(reversed(columns))
    margin = 16 + min(120, 7 * max((len(row["column"]) for row in rows), default=0))
    labels = {"color": ink(dark)["text"], "fontSize": 11, "width": margin - 12, "overflow": "truncate"}
    return base(dark) | {
        "grid": {"left": margin, "right": 48, "top": 6, "bottom": 6},
        "xAxis": axis(dark, "", type="value", min=0, max=100, show=False),
        "yAxis": axis(
            dark,
            "",
            type="category",
            data=[row["column"] for row in rows],
            splitLine={"show": False},
            axisLabel=labels,
        ),
        "series": [
            {
                "type": "bar",
                "barMaxWidth": 16,
                "data": [round(row["share"] * 100, 1) for row in rows],
                "label": {"show": True, "position": "right", "formatter": "{c}%", "color": ink(dark)["text"]},
                "showBackground": True,
                "backgroundStyle": {"color": ink(dark)["line"], "opacity": 0.5},
            }
        ],
        "tooltip": {"show": False},
    }


def tree(root: Mapping[str, Any], dark: bool) -> dict[str, Any]:
    """Draw a hierarchy from its top."""
    colours = ink(dark)
    return base(dark) | {
        "series": [
            {
                "type": "tree",
                "data": [root],
                "left": 40,
                "right": 96,
                "top": 6,
                "bottom": 6,
                "symbol": "circle",
                "symbolSize": 7,
                "itemStyle": {"color": colours["main"], "borderColor": colours["main"]},
                "lineStyle": {"color": colours["line"], "width": 1},
                "label": {
                    "color": colours["text"],
                    "fontSize": 11,
                    "position": "top",
                    "distance": 4,
                    "width": 90,
                    "overflow": "truncate",
                },
                "leaves": {"label": {"position": "right", "distance": 5}},
                "initialTreeDepth": -1,
                "expandAndCollapse": False,
                "roam": True,
            }
        ],
        "tooltip": {"show": False},
    }


def comparison(rows: Sequence[Row], metric: str, dark: bool) -> dict[str, Any]:
    """Draw loss (relative to the optimum) and time of each algorithm."""
    own = [row for row in rows if row.metric == metric and row.loss is not None][::-1]
    loss = [round(row.relative_loss or 0, 4) for row in own]
    return base(dark) | {
        "legend": _legend(
            dark, data=["loss (1: the best levels)", "milliseconds"], left="center", right="auto"
        ),
        "grid": [
            {"left": 96, "width": "38%", "top": 34, "bottom": 26},
            {"right": 28, "width": "38%", "top": 34, "bottom": 26},
        ],
        "xAxis": [
            axis(dark, "", type="value", gridIndex=0, min=0),
            axis(dark, "", type="log", gridIndex=1),
        ],
        "yAxis": [
            axis(dark, "", type="category", gridIndex=0, data=[row.algorithm for row in own]),
            axis(dark, "", type="category", gridIndex=1, data=[row.algorithm for row in own], show=False),
        ],
        "series": [
            {
                "name": "loss (1: the best levels)",
                "type": "bar",
                "barMaxWidth": 18,
                "data": loss,
                "label": {
                    "show": True,
                    "position": "insideRight",
                    "formatter": "{c}",
                    "color": ink(dark)["card"],
                },
            },
            {
                "name": "milliseconds",
                "type": "bar",
                "barMaxWidth": 18,
                "xAxisIndex": 1,
                "yAxisIndex": 1,
                "data": [max(0.1, round((row.seconds or 0) * 1000, 1)) for row in own],
                "label": {"show": True, "position": "right", "formatter": "{c}", "color": ink(dark)["text"]},
            },
        ],
        "tooltip": {"show": False},
    }
