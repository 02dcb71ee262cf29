"""The pinned scenarios side by side: the level of each column in words, and a button to use each."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from shoal.errors import ShoalError
from shoal.web.pages import elements
from shoal.web.pages.tab import TabView, run_in_thread
from shoal.web.server.shared_pages import SHARED
from shoal.web.workspace.scenarios import Scenario, shared_page
from shoal.wording import percent

_NONE = "\u2013"
_FIGURES = ("Retained", "Suppressed", "Smallest class", "Classes")


class ScenariosCard:
    """The card of the pinned scenarios. It is hidden if there are none."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        text = "What you pinned, side by side. 'Use this' restores its settings, and can be undone."
        self.card = elements.card("Scenarios", text, data_part="scenarios")
        with self.card:
            self.error = elements.error_line()
            self.body = elements.box("scroll")
            with elements.box("line"):
                elements.button("Make a read-only link", self.share, "small")
                elements.button("Revoke all links", self.revoke, "small")
            self.link = elements.box("tight", role="status")
        self.draw()

    def draw(self) -> None:
        pinned = self.tab.workspace.scenarios.pinned
        self.body.clear()
        elements.set_error(self.error, None)
        self.card.set_visibility(bool(pinned))
        columns = list(dict.fromkeys(name for pin in pinned for name in pin.columns))
        head = ("Scenario", "Protection", *_FIGURES, *columns)
        with self.body:
            rows = [({"data_scenario": pin.number}, self._cells(pin, columns)) for pin in pinned]
            elements.drawn_table(head, rows, range(2, 2 + len(_FIGURES)))

    def _cells(self, scenario: Scenario, columns: list[str]) -> list[elements.CellContent]:
        figures = scenario.figures
        counts = (figures.suppressed, figures.smallest_class, figures.classes)
        texts = [_NONE if figures.retained is None else percent(figures.retained)]
        texts += [_NONE if count is None else f"{count:,}" for count in counts]
        levels = [scenario.columns.get(name, _NONE) for name in columns]
        return [partial(self._name, scenario), scenario.protection, *texts, *levels]

    def _name(self, scenario: Scenario) -> None:
        label = f"scenario {scenario.number}"
        with elements.box("tight"):
            elements.tag("b", f"{scenario.number}. {scenario.name}")
            with elements.box("line", style="flex-wrap: nowrap; gap: 6px"):
                use, remove = partial(self.use, scenario.number), partial(self.remove, scenario.number)
                elements.button("Use this", use, "small", aria_label=f"Use this: {label}")
                elements.button("Remove", remove, "small", aria_label=f"Remove {label}")

    def share(self) -> None:
        """Show the address of a page that another party can open without signing in."""
        tab = self.tab
        try:
            page = shared_page(tab.workspace.scenarios.pinned)
            token = tab.workspaces.shared_pages.share(tab.state.workspace, page)
        except ShoalError as error:
            self.show_error(str(error))
            return
        self.link.clear()
        with self.link:
            link = {"href": f"{SHARED}{token}", "target": "_blank", "rel": "noreferrer noopener"}
            elements.tag("a", "The read-only page: copy the address of this link", **link)
            text = (
                "Anyone who has the address can read these scenarios, for seven days or until the workspace"
            )
            elements.note(f"{text} is closed: words and shares, no values, and no counts below k.")

    def revoke(self) -> None:
        self.tab.workspaces.shared_pages.revoke(self.tab.state.workspace)
        self.link.clear()
        with self.link:
            elements.note("All read-only links of this workspace are revoked.")

    async def attempt(self, function: Callable[[], object]) -> bool:
        """Call a function in a thread, then draw or show its error. Return whether it succeeded."""
        succeeded = await run_in_thread(self.show_error, function)
        if succeeded:
            self.draw()
        return succeeded

    def show_error(self, text: str) -> None:
        self.card.set_visibility(True)
        elements.set_error(self.error, text)

    async def use(self, number: int) -> None:
        await self.restore(partial(self.tab.workspace.scenarios.use, number))

    async def restore(self, function: Callable[[], None]) -> None:
        """Call a function that restores settings. If it succeeds, show the step again."""
        await self.tab.change(self.show_error, function)

    async def remove(self, number: int) -> None:
        await self.attempt(partial(self.tab.workspace.scenarios.remove, number))
