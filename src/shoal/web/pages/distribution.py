"""The distribution of a node: histograms of class sizes and of sensitive values, linear or logarithmic."""

from __future__ import annotations

from typing import Any

from shoal.web.pages import charts, elements
from shoal.workflow.profile.distribution import Histogram, NodeDistribution


class DistributionCard:
    """How the records of the shown node are distributed over its classes, with k or l and the limit."""

    def __init__(self, dark: bool) -> None:
        self.dark = dark
        self.distribution: NodeDistribution | None = None
        self.number, self.logarithmic = "0", False
        text = "A class is a group of records that look alike. Records by the size of their class."
        with elements.card("How large the classes are", text, data_part="distribution") as self.card:
            with elements.box("line"):
                self.choice = elements.box("")
                elements.checkbox("logarithmic axes", False, self.set_scale)
            self.chart = charts.add_chart(dark, 260)
            self.note = elements.note("")

    def set_scale(self, logarithmic: bool) -> None:
        self.logarithmic = logarithmic
        self.draw()

    def set_histogram(self, number: str) -> None:
        self.number = number
        self.draw()

    def show(self, distribution: NodeDistribution | None) -> None:
        known = self.distribution and [histogram.quantity for histogram in self.distribution.histograms]
        self.distribution = distribution
        self.card.set_visibility(distribution is not None)
        if distribution is None:
            return
        names = [histogram.quantity for histogram in distribution.histograms]
        if names != known:
            self.choice.clear()
            self.number = "0"
            with self.choice:
                if len(names) > 1:
                    options = {str(number): name for number, name in enumerate(names)}
                    elements.select("Count", options, self.number, self.set_histogram)
        self.draw()

    def draw(self) -> None:
        if self.distribution is None:
            return
        histogram, limit = self.distribution.histograms[int(self.number)], self.distribution.limit
        charts.draw(self.chart, histogram_chart(histogram, limit, self.logarithmic, self.dark))
        text = f"{self.distribution.classes:,} classes, {limit:,} records may be suppressed."
        if histogram.suppressed is not None:
            text += f" Below {histogram.model} = {histogram.least:,}: {histogram.suppressed:,} records."
        self.note.set_text(text)


def histogram_chart(histogram: Histogram, limit: int, logarithmic: bool, dark: bool) -> dict[str, Any]:
    """Draw the number of records by value, and cumulatively, with k or l and the limit marked."""
    kind = "log" if logarithmic else "value"
    colour = charts.palette(dark)["second"]
    marks: list[dict[str, Any]] = []
    if histogram.least is not None:
        marks.append({"xAxis": histogram.least, "name": f"{histogram.model} = {histogram.least:,}"})
    if limit or not logarithmic:
        marks.append({"yAxis": limit, "name": "limit"})
    marked = {
        "symbol": "none",
        "silent": True,
        "lineStyle": {"color": colour, "type": "dashed"},
        "label": {"formatter": "{b}", "color": colour},
        "data": marks,
    }
    return {
        "legend": {"data": ["records", "cumulated"], "right": 8},
        "grid": {"left": 60, "right": 44, "top": 30, "bottom": 44},
        "xAxis": {"name": histogram.quantity, "nameGap": 28, "type": kind, "min": 1},
        "yAxis": {"name": "records", "nameGap": 44, "type": kind, "min": 1 if logarithmic else 0},
        "series": [
            {
                "name": "records",
                "type": "bar",
                "barMaxWidth": 12,
                "barMinWidth": 2,
                "data": [[bar.value, bar.records] for bar in histogram.bars],
            },
            {
                "name": "cumulated",
                "type": "line",
                "step": "end",
                "showSymbol": len(histogram.bars) == 1,
                "data": [[bar.value, bar.cumulative] for bar in histogram.bars],
                "markLine": marked,
            },
        ],
        "tooltip": {"trigger": "axis"},
    }
