"""Wide tables on a page: they are drawn a few rows at a time, and a change draws one row."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest

if importlib.util.find_spec("nicegui") is None:
    pytest.skip("the pages need shoal[web]", allow_module_level=True)

from nicegui import Client, background_tasks, core
from nicegui.element import Element
from nicegui.page import page

from shoal.web.pages import data as step_data
from shoal.web.pages import elements
from shoal.web.pages.columns import ROWS_PER_PAGE, ROWS_PER_TURN, ColumnRows
from shoal.web.pages.data import DataView
from shoal.web.pages.hierarchy import HierarchyEditor
from shoal.web.pages.tab import TabState, TabView
from shoal.web.workspace.workspaces import Workspaces

COLUMNS = 300
MOST_IN_A_TURN = 700  # elements


@pytest.fixture(scope="module")
def workspaces(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Workspaces, str]]:
    path = tmp_path_factory.mktemp("wide") / "wide.csv"
    rows = (",".join(str((row * 7 + n) % 5) for n in range(COLUMNS)) for row in range(20))
    path.write_text(",".join(f"c{n}" for n in range(COLUMNS)) + "\n" + "\n".join(rows) + "\n")
    created = Workspaces(data=path)
    name = created.open()
    created.open_given_table(name)
    workspace = created.get(name)
    for column in workspace.table.loaded.names:
        workspace.table.choose_role(column, "quasi-identifier")
    workspace.prepare()
    yield created, name
    created.close()


class Turns:
    """Counts the elements that are created in each turn of the event loop."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.created = 0
        self.counts: list[int] = []
        create = Element.__init__

        def counted(element: Element, *given: Any, **options: Any) -> None:
            self.created += 1
            create(element, *given, **options)

        patch.setattr(Element, "__init__", counted)

    async def watch(self) -> None:
        while True:
            before = self.created
            await asyncio.sleep(0)
            if self.created > before:
                self.counts.append(self.created - before)

    async def of(self, act: Any) -> list[int]:
        """Do something and wait until all is drawn; return how many elements each turn created."""
        self.counts.clear()
        result = act()
        if asyncio.iscoroutine(result):
            await result
        while any(task.get_name() in ("rows", "hierarchy") for task in background_tasks.running_tasks):
            await asyncio.sleep(0.01)
        await asyncio.sleep(0)
        return list(self.counts)


def test_a_wide_table_is_drawn_in_many_turns_and_a_change_draws_its_row(
    workspaces: tuple[Workspaces, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    tables: list[DataView] = []
    create = DataView.__init__

    def kept(table: DataView, tab: TabView) -> None:
        tables.append(table)
        create(table, tab)

    monkeypatch.setattr(DataView, "__init__", kept)
    counts: dict[str, list[int]] = {}
    shown: list[str] = []

    async def work() -> None:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        turns, client = Turns(monkeypatch), Client(page("/wide"), request=None)
        watching = asyncio.create_task(turns.watch())
        await asyncio.sleep(0)
        with client:
            tab = TabView(workspaces[0], TabState(workspaces[1], step="data"), dark=False)
            tab.show = {"data": step_data.show}
            tab.nav, tab.body, tab.error = elements.box(""), elements.box(""), elements.message("")
            counts["open"] = await turns.of(tab.refresh)
            table = tables[-1]
            counts["role"] = await turns.of(lambda: table.choose_role("c7", "sensitive"))
            counts["column"] = await turns.of(lambda: table.choose_column("c9"))
            counts["twice"] = await turns.of(lambda: (tab.refresh(), tab.refresh()))
            body = tables[-1].rows.body
            shown.extend(str(row._props["data-column"]) for row in body.default_slot.children)
            assert sum(1 for row in body.default_slot.children if "on" in row._classes) == 1
        watching.cancel()
        client.delete()

    asyncio.run(work())
    assert shown == [f"c{n}" for n in range(ROWS_PER_PAGE)]
    assert sum(counts["open"]) < ROWS_PER_PAGE + MOST_IN_A_TURN  # one element for each row
    assert max(counts["open"]) <= MOST_IN_A_TURN
    assert len(counts["open"]) >= ROWS_PER_PAGE // ROWS_PER_TURN - 1
    assert sum(counts["role"]) < MOST_IN_A_TURN
    assert sum(counts["column"]) < MOST_IN_A_TURN
    assert max(counts["twice"]) <= 2 * MOST_IN_A_TURN  # two requests in one turn, and neither draws it all


def test_more_columns_than_a_page_shows_are_leafed_through(
    workspaces: tuple[Workspaces, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.web.pages.columns.ROWS_PER_PAGE", 120)

    async def work() -> list[list[str]]:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        turns, client = Turns(monkeypatch), Client(page("/wide"), request=None)
        seen = []
        with client:
            tab = TabView(workspaces[0], TabState(workspaces[1], step="data"), dark=False)
            rows = ColumnRows(tab, lambda *_: None, lambda *_: None, lambda *_: None)
            for step in (0, 120, 120, 120, -120):
                await turns.of(lambda step=step: rows.turn(step))
                names = [str(row._props["data-column"]) for row in rows.body.default_slot.children]
                seen.append([names[0], names[-1], rows.range_text.text])
        client.delete()
        return seen

    assert asyncio.run(work()) == [
        ["c0", "c119", "Columns 1 to 120 of 300"],
        ["c120", "c239", "Columns 121 to 240 of 300"],
        ["c240", "c299", "Columns 241 to 300 of 300"],
        ["c240", "c299", "Columns 241 to 300 of 300"],
        ["c120", "c239", "Columns 121 to 240 of 300"],
    ]


def test_the_file_of_a_hierarchy_is_refused_before_it_is_read() -> None:
    class File:
        name = "large.csv"

        def size(self) -> int:
            return 20_000_001

        async def read(self) -> bytes:
            pytest.fail("it was read")

    class Uploader:
        def reset(self) -> None:
            pass

    class Event:
        file = File()

    texts: list[str] = []
    editor = HierarchyEditor.__new__(HierarchyEditor)
    editor.upload = Uploader()  # type: ignore[assignment]
    editor.show_error = lambda text, values=(): texts.append(text)  # type: ignore[method-assign]
    asyncio.run(editor.receive(Event()))
    assert texts == ["The file is larger than 20,000,000 bytes, which is the limit."]
