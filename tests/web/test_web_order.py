"""Changes on a page are made one after another, in the order of the user's actions."""

from __future__ import annotations

import asyncio
import importlib.util
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

if importlib.util.find_spec("nicegui") is None:
    pytest.skip("the pages need shoal[web]", allow_module_level=True)

from nicegui import Client, core
from nicegui.page import page

from shoal.web.pages import elements
from shoal.web.pages.answer import LevelSelects
from shoal.web.pages.data import DataView
from shoal.web.pages.forms import ModelsForm, SameLevelForm
from shoal.web.pages.tab import TabState, TabView
from shoal.web.workspace.draft import PolicyDraft
from shoal.web.workspace.table import WorkspaceTable
from shoal.web.workspace.workspaces import Workspaces

FIRST, SECOND = {"k-anonymity": {"k": 7}}, {"distinct-l-diversity": {"l": 3}}


@pytest.fixture
def workspaces() -> Iterator[Workspaces]:
    created = Workspaces()
    yield created
    created.close()


def on_a_page(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch, act: Callable[[TabView], Awaitable[Any]]
) -> None:
    """Do something with the page of a workspace in which the sample is open."""
    name = workspaces.open()
    workspaces.get(name).open_sample()

    async def work() -> None:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        client = Client(page("/order"), request=None)
        with client:
            tab = TabView(workspaces, TabState(name, step="data"), dark=False)
            tab.nav, tab.body, tab.error = elements.box(""), elements.box(""), elements.message("")
            tab.show = {"data": DataView}
            await act(tab)
        client.delete()

    asyncio.run(work())


class Gate:
    """Keeps the first call of a function that is made in another thread until both changes have begun."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, owner: type, name: str) -> None:
        self.open = threading.Event()
        self.passed = threading.Lock()
        original = getattr(owner, name)

        def kept(*given: Any, **options: Any) -> Any:
            in_another_thread = threading.current_thread() is not threading.main_thread()
            if in_another_thread and self.passed.acquire(blocking=False):
                assert self.open.wait(60)
            return original(*given, **options)

        monkeypatch.setattr(owner, name, kept)

    async def both(self, *changes: Awaitable[Any]) -> None:
        """Begin changes in their order, then let the first one go on."""
        tasks = [asyncio.ensure_future(change) for change in changes]
        for _ in range(50):
            await asyncio.sleep(0.001)
        self.open.set()
        await asyncio.gather(*tasks)


def test_the_last_role_wins_though_the_check_for_the_first_is_slow(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(tab: TabView) -> None:
        view = DataView(tab)
        gate = Gate(monkeypatch, WorkspaceTable, "check_hierarchy")
        await gate.both(
            view.choose_role("insurance", "quasi-identifier"), view.choose_role("insurance", "other")
        )
        assert tab.workspace.table.roles["insurance"] == "other"

    on_a_page(workspaces, monkeypatch, act)


def test_two_models_changed_without_a_pause_are_both_changed(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(tab: TabView) -> None:
        form = ModelsForm(tab, lambda: None)
        first, second = form.keys
        gate = Gate(monkeypatch, PolicyDraft, "change")
        await gate.both(form.replace(first, FIRST, print), form.replace(second, SECOND, print))
        assert form.models == [FIRST, SECOND]
        await asyncio.gather(form.remove(first), form.remove(second))
        assert form.models == [SECOND]  # the last one stays
        assert "A policy needs at least one model" in form.error.text

    on_a_page(workspaces, monkeypatch, act)


def test_two_groups_of_columns_are_separated_without_a_pause(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(tab: TabView) -> None:
        for name in ("ethnicity", "marital_status"):
            tab.workspace.table.choose_role(name, "quasi-identifier")
            tab.workspace.table.choose_hierarchy(name, "flat")
        tab.workspace.table.choose_hierarchy("sex", "flat")
        tab.workspace.table.choose_hierarchy("postcode", "flat")
        groups = [["ethnicity", "marital_status"], ["sex", "postcode"]]
        tab.workspace.draft.change(same_level=groups)
        form = SameLevelForm(tab, lambda: None)
        gate = Gate(monkeypatch, PolicyDraft, "change")
        await gate.both(*(form.remove(group) for group in form.groups))
        assert form.groups == []

    on_a_page(workspaces, monkeypatch, act)


def test_a_step_that_is_shown_before_a_change_is_made_is_drawn_again(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(tab: TabView) -> None:
        drawn: list[str] = []
        views: list[DataView] = []
        tab.show = {
            "data": lambda tab: views.append(DataView(tab)),
            "release": lambda tab: drawn.append(tab.workspace.table.roles["sex"]),
        }
        tab.refresh()

        async def leave() -> None:
            tab.go("release")

        gate = Gate(monkeypatch, type(tab.workspace), "prepare")
        await gate.both(views[0].choose_role("sex", "other"), leave())
        assert drawn[-1] == "other"
        assert len(drawn) == 2

    on_a_page(workspaces, monkeypatch, act)


def test_a_node_that_is_drawn_again_keeps_the_levels_that_were_chosen(
    workspaces: Workspaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(tab: TabView) -> None:
        tab.workspace.negotiation.tabulate()
        selects = LevelSelects(tab, lambda _: None)
        node = dict.fromkeys(selects.selects, 1)

        def choose(name: str, level: str) -> None:
            selects.selects[name]._props[".value"] = level
            selects._changed(name, level)

        choose("sex", "0")  # before anything is drawn
        selects.set_node(node)
        assert elements.value_of(selects.selects["sex"]) == "0"
        assert elements.value_of(selects.selects["age"]) == "1"
        selects.set_node(node)
        assert elements.value_of(selects.selects["sex"]) == "0"
        selects.set_node(node | {"age": 2})  # another answer
        assert elements.value_of(selects.selects["sex"]) == "1"
        assert elements.value_of(selects.selects["age"]) == "2"

    on_a_page(workspaces, monkeypatch, act)
