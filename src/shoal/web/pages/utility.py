"""The loss of utility: distributions, class sizes and two-way tables, before and after a release."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import anyio.to_thread
from nicegui import background_tasks

from shoal.document.document import without_markup
from shoal.errors import ShoalError
from shoal.web.pages import charts, elements
from shoal.web.pages.tab import JobForm, JobView, TabView
from shoal.wording import percent, plural
from shoal.workflow.profile.offer import Request
from shoal.workflow.release.release import Release
from shoal.workflow.risk.exposure import Exposure
from shoal.workflow.utility.associations import contingency_table
from shoal.workflow.utility.columns import BarCounts, ColumnUtility, bars_of, columns_table
from shoal.workflow.utility.unwritten import UnwrittenUtility

_SIZES = (1, 2, 5, 10, 20, 50, 100, 1_000)  # the smallest class size of each bar
_CLASSES = "class sizes"


def class_size_bars(before: Exposure, after: Exposure) -> list[BarCounts]:
    """Count the records before and after by the size of their class."""
    bars: list[BarCounts] = []
    for number, low in enumerate(_SIZES):
        high = _SIZES[number + 1] if number + 1 < len(_SIZES) else max(before.total, after.total) + 1
        name = str(low) if high == low + 1 else f"{low:,}\u2013{high - 1:,}"
        name = name if number + 1 < len(_SIZES) else f"{low:,} and more"
        bars.append(
            (name, before.records_between(low, max(high, low)), after.records_between(low, max(high, low)))
        )
    while bars and not any(bars[-1][1:]):
        bars.pop()
    return bars


class BeforeAfterChart:
    """The class sizes, or the values of one column, before and after, as a chart and as a table."""

    def __init__(self, tab: TabView, names: Sequence[str], values: dict[str, str]) -> None:
        self.values = values
        self.bars: Callable[[str], list[BarCounts]] = lambda _: []
        options = {_CLASSES: "records by the size of their class"}
        options |= {name: f"values of {name}" for name in names}
        if values["shown"] not in options:
            values["shown"] = _CLASSES
        elements.select("Before and after", options, values["shown"], self.choose)
        self.chart = charts.add_chart(tab.dark, 320)
        with elements.details("The same as a table"):
            self.table = elements.box("tight")

    def choose(self, name: str) -> None:
        """Draw class sizes, or a column."""
        self.values["shown"] = name
        self.draw()

    def show(self, columns: Sequence[ColumnUtility], before: Exposure, after: Exposure) -> None:
        """Show a comparison."""
        by_name = {column.column: column for column in columns}
        self.bars = lambda name: (
            class_size_bars(before, after) if name == _CLASSES else bars_of(by_name[name])
        )
        self.draw()

    def draw(self) -> None:
        """Draw the chosen values as a chart, and list them in the table."""
        bars = self.bars(self.values["shown"])
        self.chart.set_visibility(bool(bars))
        charts.draw(self.chart, charts.before_after(bars))
        self.table.clear()
        with self.table:
            rows = [(label, f"{before:,}", f"{after:,}") for label, before, after in bars]
            if rows:
                elements.table(("", "before", "after"), rows, right=(1, 2), classes="small")
            else:
                elements.note("There are too many values to draw.")


def pair_selects(
    names: Sequence[str], values: dict[str, str], on_choose: Callable[[], object] = lambda: None
) -> None:
    """Add the choice of the columns of a two-way table."""
    for which, default in (("first", names[0]), ("second", names[1])):
        if values[which] not in names:
            values[which] = default

    def choose(which: str, name: str) -> object:
        values[which] = name
        return on_choose()

    for which, label in (("first", "Two-way table of"), ("second", "and")):
        with elements.box("", style="width: 170px"):
            elements.select(label, names, values[which], partial(choose, which))


class UtilityCard:
    """The loss for analysts, with a chart of one column and the table of a pair of columns."""

    def __init__(self, tab: TabView, release: Release) -> None:
        result = tab.workspace.utility.result
        self.form = JobForm(tab, "utility", {"shown": _CLASSES, "first": "", "second": ""})
        self.values = self.form.values
        description = "What is kept of the columns, of their distributions and of the relations between them."
        with elements.card("What an analyst loses", description, data_part="utility"):
            self.form.add_job_view()
            if result is None:
                elements.button("Compare the table with its release", self.form.start)
                return
            names = [column.column for column in result.columns]
            with elements.box("split halves"):
                with elements.box("tight"):
                    chart = BeforeAfterChart(tab, names, self.values)
                    chart.show(result.columns, release.exposure, release.exposure_after)
                with elements.box("tight"):
                    self._pair_form(names)
                    elements.show_document(result.document(pair=True))

    def _pair_form(self, names: Sequence[str]) -> None:
        if len(names) < 2:
            return

        def start() -> None:
            self.form.start(pair=[self.values["first"], self.values["second"]])

        with elements.box("line", style="align-items: flex-end"):
            pair_selects(names, self.values)
            elements.button("Count the two columns", start)


class LiveUtilityCard:
    """Distributions, class sizes and a two-way table for the shown node or for a local recoding."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        self.request: Request | None = None
        self.node: Mapping[str, int] | None = None
        names = tab.workspace.table.quasi_identifiers
        self.values = tab.state.fields.setdefault(
            "live utility", {"open": False, "shown": _CLASSES, "first": "", "second": ""}
        )
        self.is_local = bool(tab.workspace.draft.policy().local)
        title = "What an analyst would lose"
        with (
            elements.box("card", "section", data_part="live-utility") as self.card,
            elements.details(title, is_open=self.values["open"]) as part,
        ):
            part.on("toggle", self.toggle, js_handler="(event) => emit(event.target.open)")
            elements.note("The records before and after recoding with this choice. Nothing is released yet.")
            elements.checkbox("With local recoding, class by class", self.is_local, self.set_local)
            self.job_view = JobView(tab, "local", lambda _: self.draw_later(), self.end_search)
            self.message = elements.message("", "")
            with elements.box("split halves"):
                with elements.box("tight"):
                    self.chart = BeforeAfterChart(tab, names, self.values)
                with elements.box("tight"):
                    if len(names) > 1:
                        with elements.box("line", style="align-items: flex-end"):
                            pair_selects(names, self.values, self.draw)
                    self.tables = elements.box("tight scroll")

    async def toggle(self, event: Any) -> None:
        """Compare when a user opens the card. A collapsed card computes nothing while dials move."""
        self.values["open"] = event.args is True
        await self.draw()

    async def set_local(self, on: bool) -> None:
        """Show a local recoding, or the node."""
        self.is_local = on
        await self.draw()

    def show(self, node: Mapping[str, int] | None, request: Request) -> None:
        """If the card is open, show a node under a request, or the local recoding of the request."""
        self.node, self.request = node, request
        self.draw_later()

    def draw_later(self) -> None:
        """Draw in the background, so that the answer and the charts come first."""
        background_tasks.create(self.draw(), name="live utility")

    def end_search(self, _: object) -> bool:
        """Remove the message about the running search. An error of the search is shown below."""
        self.message.set_text("")
        return False

    async def draw(self) -> None:
        """Compare in a thread. Show the result, unless the dials have moved in the meantime."""
        node, request, local = self.node, self.request, self.is_local
        if request is None or not self.values["open"] or self.card.is_deleted:
            return
        live = self.tab.workspace.live_utility
        if len(self.tab.workspace.table.quasi_identifiers) > 1:
            live.pair = self.values["first"], self.values["second"]
        is_searched = live.local is not None and live.local.request == request
        if local and not is_searched:
            self.message.set_text("Searching the labels of each class\u2026")
            self.job_view.start(lambda progress: live.search_local(request, progress))
            return
        try:
            if local:
                result = await anyio.to_thread.run_sync(live.of_local, request)
            else:
                result = None if node is None else await anyio.to_thread.run_sync(live.of_node, node, request)
        except ShoalError as error:
            self.message.set_text(str(error))
            return
        if result is None or self.card.is_deleted or (node, request, local) != self._current_choice():
            return
        self.show_result(result)

    def _current_choice(self) -> tuple[Mapping[str, int] | None, Request | None, bool]:
        return self.node, self.request, self.is_local

    def show_result(self, result: UnwrittenUtility) -> None:
        """Show a comparison."""
        local = self.tab.workspace.live_utility.local
        before, after = result.exposure.total, result.exposure_after.total
        text = f"{after:,} of {plural(before, 'record')} are kept."
        if self.is_local and local is not None:
            text += f" Local recoding retains {percent(local.preview.retained)} of the information."
        self.message.set_text(text)
        self.chart.show(result.columns, result.exposure, result.exposure_after)
        self.tables.clear()
        tables = [columns_table(result.columns)]
        if result.contingency is not None:
            tables.append(contingency_table(result.contingency))
        with self.tables:
            for table in tables:
                elements.tag("h3", without_markup(table.title))
                elements.document_table(table)
