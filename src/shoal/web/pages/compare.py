"""Step 4, compare: several algorithms on the table, by chosen metrics."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from shoal.metrics import METRICS
from shoal.policy.policy import named
from shoal.web.pages import charts, elements
from shoal.web.pages.scenarios import ScenariosCard
from shoal.web.pages.tab import JobForm, TabView, next_button
from shoal.workflow.catalogue import algorithm_sentence, catalogue
from shoal.workflow.compare.comparison import Comparison, ComparisonRow
from shoal.workflow.level_names import LevelNames

_DEFAULTS = ("all-minimal", "contour", "datafly", "incognito", "ola", "samarati")
_NONE = "\u2013"
_RIGHT = (1, 2, 4, 5)
_HEAD = ("Algorithm", "Relative loss", "Suppressed", "Result", "Choices counted", "Time", "Proven")


class CompareView:
    """The choice of algorithms on the left, their results on the right."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        self.metric = tab.workspace.draft.policy().metric
        metric = named(self.metric)[0]
        defaults = {"algorithms": list(_DEFAULTS), "metrics": [metric], "seconds": "20"}
        self.form = JobForm(tab, "comparison", defaults)
        with elements.box("split dials-split"):
            with elements.box("card", "section"):
                with elements.box("line spread", style="flex-wrap: nowrap"):
                    elements.tag("h2", "Algorithms", "nowrap")
                    elements.button("Run the comparison", self.start, "primary nowrap")
                self.error = elements.error_line()
                self.form.add_job_view()
                self._checkboxes("algorithms")
                elements.tag("h3", "Metric")
                self._checkboxes("metrics")
                self.form.text("seconds", "Seconds for each, at most", 180)
            with elements.box("stack"):
                with elements.box("line", style="justify-content: flex-end"):
                    next_button(tab)
                result = tab.workspace.comparison.result
                if result is not None:
                    self.show_result(result)
                else:
                    elements.empty_card("Choose algorithms and compare: loss, levels, time.")
                self.scenarios = ScenariosCard(tab)

    def _checkboxes(self, kind: str) -> None:
        with elements.box("checks" if kind == "metrics" else "tight"):
            for name, summary in catalogue()[kind].items():
                description = algorithm_sentence(name) if kind == "algorithms" else summary
                chosen = name in self.form.values[kind]
                if kind == "metrics" and name != named(self.metric)[0] and METRICS.needs_options(name):
                    continue  # the metric needs options, which only the policy can set
                with elements.box(""):
                    elements.checkbox(name, chosen, partial(self.choose, kind, name), description)
                    if kind == "algorithms":
                        elements.tag("p", description, "muted small indented")

    def choose(self, kind: str, name: str, on: bool) -> None:
        others = [other for other in self.form.values[kind] if other != name]
        self.form.values[kind] = [*others, name] if on else others

    def start(self) -> None:
        chosen = {kind: list(self.form.values[kind]) for kind in ("algorithms", "metrics")}
        missing = None if all(chosen.values()) else "Choose at least one algorithm and one metric."
        written = named(self.metric)[0]
        chosen["metrics"] = [self.metric if name == written else name for name in chosen["metrics"]]
        elements.set_error(self.error, missing)
        if not missing:
            self.form.start(None, **chosen, seconds=elements.parse_value(self.form.values["seconds"]))

    def show_result(self, comparison: Comparison) -> None:
        for metric in dict.fromkeys(row.metric for row in comparison.rows):
            rows = [row for row in comparison.rows if row.metric == metric]
            with elements.card(f"Metric: {metric}"):
                result_count = sum(row.loss is not None for row in rows)
                if result_count:
                    chart = charts.add_chart(self.tab.dark, 70 + 26 * result_count, stacked=True)
                    charts.draw(chart, charts.comparison(rows, metric, self.tab.dark))
                names = self.tab.workspace.table.level_names
                self.show_rows(rows, names)
                for row in rows:
                    if row.note:
                        elements.note(f"{row.algorithm}: {row.note}")

    def show_rows(self, rows: list[ComparisonRow], names: LevelNames) -> None:
        """Show the results as a table, with buttons on each row that has a result."""
        table_rows: list[tuple[dict[str, str], Sequence[elements.CellContent]]] = []
        for row in rows:
            buttons: elements.CellContent = "" if row.loss is None else partial(self._row_buttons, row)
            table_rows.append(({"data_row": row.algorithm}, (*_cells(row, names), buttons)))
        with elements.box("scroll"):
            elements.drawn_table((*_HEAD, "Use"), table_rows, _RIGHT)

    def _row_buttons(self, row: ComparisonRow) -> None:
        label = f"{row.algorithm} by {row.metric}"
        use, pin = partial(self.use, row), partial(self.pin, row)
        with elements.box("line", style="flex-wrap: nowrap; gap: 6px"):
            elements.button("Use this", use, "small nowrap", aria_label=f"Use this: {label}")
            elements.button("Pin", pin, "small", aria_label=f"Pin {label}")

    async def use(self, row: ComparisonRow) -> None:
        """Copy the algorithm, metric and limits of a row to the policy."""
        await self.scenarios.restore(lambda: self.tab.workspace.scenarios.use_row(row))

    async def pin(self, row: ComparisonRow) -> None:
        await self.scenarios.attempt(lambda: self.tab.workspace.scenarios.pin_row(row))


def _cells(row: ComparisonRow, names: LevelNames) -> tuple[str, ...]:
    return (
        row.algorithm,
        _number(row.relative_loss, ".3f"),
        _number(row.suppressed),
        names.describe(row.levels, unchanged=False) if row.levels else _NONE,
        _number(row.nodes_evaluated),
        _NONE if row.seconds is None else f"{row.seconds * 1000:,.0f}\u00a0ms",
        row.proven or "",
    )


def _number(value: float | None, form: str = ",.0f") -> str:
    return _NONE if value is None else f"{value:{form}}"
