"""The end of a workspace as its page shows it, without a browser."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Callable
from typing import Any

import pytest

if importlib.util.find_spec("nicegui") is None:
    pytest.skip("the pages need shoal[web]", allow_module_level=True)

from nicegui import Client, core
from nicegui.page import page

from shoal.web.pages import data as step_data
from shoal.web.pages import elements
from shoal.web.pages.header import DeleteButton
from shoal.web.pages.tab import TabState, TabView
from shoal.web.workspace.workspaces import Workspaces

HOUR = 3600.0


def on_a_page(
    monkeypatch: pytest.MonkeyPatch, act: Callable[[TabView, DeleteButton, dict[str, float]], Any]
) -> Any:
    """Do something with the page of a workspace that expires after ten hours."""
    now = {"time": 0.0}
    workspaces = Workspaces(clock=lambda: now["time"], keep_seconds=10 * HOUR)

    async def work() -> Any:
        monkeypatch.setattr(core, "loop", asyncio.get_running_loop())
        client = Client(page("/closing"), request=None)
        with client:
            tab = TabView(workspaces, TabState(workspaces.open()), dark=False)
            tab.show = {"data": step_data.show}
            tab.nav, tab.body, tab.error = elements.box(""), elements.box(""), elements.message("")
            closing = DeleteButton(tab, elements.box(""), elements.box(""))
            tab.refresh()
            result = act(tab, closing, now)
            result = await result if asyncio.iscoroutine(result) else result
        client.delete()
        return result

    try:
        return asyncio.run(work())
    finally:
        workspaces.close()


def texts(tab: TabView) -> str:
    """Return all that the body shows."""
    return " ".join(str(getattr(element, "text", "")) for element in tab.body.descendants())


def test_the_first_page_states_when_a_workspace_is_deleted_and_what_an_upload_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = on_a_page(monkeypatch, lambda tab, *_: texts(tab))
    assert "are deleted after 10 hours without use" in text
    assert "Up to 1 GiB, unpacked 4 GiB, 5,000 columns, and 2,000,000 bytes in a cell" in text


def test_the_page_announces_the_expiry_and_keeps_the_workspace_on_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def act(tab: TabView, closing: DeleteButton, now: dict[str, float]) -> list[Any]:
        seen: list[Any] = []
        for hours in (9.0, 0.75):
            now["time"] += hours * HOUR
            closing.check()
            seen.append((closing.box.visible, closing.text.text))
        closing.use()
        now["time"] += 9 * HOUR
        closing.check()
        seen.append((closing.box.visible, tab.state.workspace in tab.workspaces))
        return seen

    assert on_a_page(monkeypatch, act) == [
        (False, ""),
        (True, "This workspace is deleted in 15 minutes unless it is used."),
        (False, True),
    ]


def test_the_page_of_a_workspace_that_expired_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(tab: TabView, closing: DeleteButton, now: dict[str, float]) -> str:
        now["time"] += 10 * HOUR
        tab.workspaces.expire()
        closing.check()
        return texts(tab)

    text = on_a_page(monkeypatch, act)
    assert "Session closed" in text
    assert "Nobody used it for 10 hours." in text


def test_an_action_on_a_workspace_that_is_gone_shows_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def act(tab: TabView, closing: DeleteButton, now: dict[str, float]) -> str:
        tab.workspaces.delete(tab.state.workspace)
        with pytest.raises(Exception, match="no such workspace") as error:
            _ = tab.workspace
        tab.show_exception(error.value)
        return texts(tab)

    assert "You deleted it, with all its files." in on_a_page(monkeypatch, act)


def test_delete_asks_first_and_then_removes_all_files(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(tab: TabView, closing: DeleteButton, now: dict[str, float]) -> list[Any]:
        closing.ask()
        seen: list[Any] = [closing.text.text, len(list(tab.workspaces.private.iterdir()))]
        await closing.remove()
        return [*seen, len(list(tab.workspaces.private.iterdir())), closing.box.visible]

    assert on_a_page(monkeypatch, act) == [
        "Delete this workspace with its table, results and all files? This cannot be undone.", 1, 0, False,
    ]  # fmt: skip
