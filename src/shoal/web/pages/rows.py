"""The table and its release in a grid, which loads only the visible rows."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import anyio.to_thread
from nicegui import ui

from shoal.core.rows import RowRequest
from shoal.errors import ShoalError
from shoal.web.pages import elements
from shoal.web.pages.tab import TabView
from shoal.web.workspace.rows import Which
from shoal.wording import message

_PAGE = 100  # rows per request


class RowsGrid:
    """A grid of the table or the release. Rows in classes of fewer than k records are marked."""

    def __init__(self, tab: TabView, which: Which, columns: Sequence[str]) -> None:
        self.tab, self.which, self.columns = tab, which, columns
        self.below, self.k = False, tab.workspace.rows.least
        k = self.k
        title = "the table" if which == "table" else "the release"
        with elements.box("tight", data_grid=which):
            text = f"Only records in classes of fewer than {k:,}"
            elements.checkbox(text, False, self.set_below)
            label = f"Rows of {title}; in classes of fewer than {k:,} records they are marked"
            with elements.box("", role="region", aria_label=label):
                self.grid = ui.aggrid(self.options(), theme="quartz").classes("rows")

    def options(self) -> dict[str, Any]:
        """Return the options of the grid."""
        filters = {"filterOptions": ["contains"], "maxNumConditions": 1, "debounceMs": 300}
        data = [
            {"headerName": name, "field": f"c{number}", "filterParams": filters}
            for number, name in enumerate(self.columns)
        ]
        fixed = {"sortable": False, "filter": False, "pinned": "left", "width": 74, "minWidth": 60}
        url = f"/api/workspaces/{self.tab.state.workspace}/rows"
        below = self.k if self.below else 0
        source = f"studio.rows(...{json.dumps([url, list(self.columns), self.which, below])})"
        return {
            "columnDefs": [
                fixed | {"headerName": "Row", "field": "number"},
                fixed | {"headerName": "Alike", "field": "alike", "headerTooltip": "records in its class"},
                *data,
            ],
            "defaultColDef": {
                "filter": "agTextColumnFilter",
                "floatingFilter": True,
                "minWidth": 110,
                "width": 140,
                "suppressHeaderMenuButton": True,
            },
            "rowModelType": "infinite",
            "cacheBlockSize": _PAGE,
            "maxBlocksInCache": 20,
            "rowHeight": 30,
            ":datasource": source,
            ":getRowClass": f"(row) => row.data && row.data.alike < {self.k:d} ? 'exposed' : ''",
        }

    def set_below(self, on: bool) -> None:
        """Show only rows in small classes, or all rows."""
        self.below = on
        self.grid.options.update(self.options())
        self.grid.update()


def rows_card(tab: TabView, title: str, tables: Sequence[Which]) -> None:
    """Add tables side by side, with each record in the same row. They are read when the card is opened."""
    with elements.box("card", "details", data_part="rows") as card:
        elements.tag("summary", title)
        body = elements.box("split halves" if len(tables) > 1 else "", style="padding-top: 12px")

    is_open = False

    async def open_grids(_: Any) -> None:
        nonlocal is_open
        if is_open:
            return
        is_open = True
        rows, first = tab.workspace.rows, RowRequest(count=1)
        for which in tables:
            with body, elements.box("tight") as part:
                elements.tag("h3", "The release" if which == "release" else "The table")
            try:
                page = await anyio.to_thread.run_sync(rows.page, which, first)
            except ShoalError as error:
                with part:
                    elements.message(message(error, "web"), "bad")
                continue
            with part:
                RowsGrid(tab, which, page.columns)

    card.on("toggle", open_grids, args=[])
