"""Step 1, data: the role of each column, the hierarchies, and the protection."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import anyio.to_thread

from shoal.web.pages import address, elements
from shoal.web.pages.columns import ColumnRows
from shoal.web.pages.forms import ProtectionCard
from shoal.web.pages.hierarchy import HierarchyEditor, HierarchyUpload
from shoal.web.pages.known_keep import KnownKeepCard
from shoal.web.pages.project import pending_card, start_from_card
from shoal.web.pages.rows import rows_card
from shoal.web.pages.start import TableChoice
from shoal.web.pages.tab import TabView, next_button
from shoal.web.workspace.draft import presets
from shoal.wording import plural

_MAX_NOTES = 6  # further notes are collapsed


def show(tab: TabView) -> None:
    """Show the step."""
    if tab.workspace.table.inspection is not None:
        DataView(tab)
    else:
        TableChoice(tab)


class DataView:
    """The columns of the table, with the hierarchy editor beside them."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        with elements.box("line spread"):
            with elements.box("tight"):
                elements.tag("h2", "What is each column?")
                text = "Identifiers are removed, quasi-identifiers generalized, sensitive columns protected."
                elements.note(text)
            with elements.box("line", style="align-items: flex-end"):
                self._presets()
                with elements.box("tight"):
                    HierarchyUpload(tab, tab.refresh)
                elements.button("Other table", self.choose_other_table)
                next_button(tab, "primary")
        pending_card(tab)
        start_from_card(tab)
        for note in tab.workspace.table.loaded.read_notes:
            elements.message(note, "warn")
        KnownKeepCard(tab)
        with elements.box("split data-split"):
            with elements.box("card", style="padding: 6px 4px"), elements.box("scroll"):
                self.rows = ColumnRows(tab, self.choose_role, self.choose_column, self.choose_roles)
            with elements.box("stack"):
                self.missing = elements.message("", "warn")
                self.notes = elements.box("stack", data_part="notes")
                self.side = elements.box("card", "section", data_part="editor")
        self.protection = elements.box("", data_part="protection")
        self.protected_roles: dict[str, str] = {}  # the roles for which the forms are shown
        if tab.workspace.table.remote is None:
            rows_card(tab, "The table itself, record by record", ["table"])
        self.show_notes()
        self.show_editor()
        self.show_protection()

    def _presets(self) -> None:
        rules = presets()
        title = "Replaces the roles, hierarchies and models below. " + " ".join(
            f"{rule.name}: {rule.about}" for rule in rules
        )
        with elements.box("", style="width: 210px", title=title, data_part="rule"):
            options = {"": "none"} | {rule.name: rule.name for rule in rules}
            value = self.tab.workspace.draft.preset or ""
            self.preset = elements.select("Follow a published rule", options, value, self.follow_preset)
            self.preset_error = elements.error_line()

    async def follow_preset(self, preset: str) -> None:
        """Replace the policy with the preset for a published rule."""
        follow = self.tab.workspace.draft.follow_preset
        await self.tab.change(self.preset_error.set_text, follow, preset or None)

    def choose_other_table(self) -> None:
        self.tab.go(address.START)

    def show_notes(self) -> None:
        draft = self.tab.workspace.draft
        missing = draft.missing()
        self.missing.set_text(missing or "")
        self.missing.set_visibility(bool(missing))
        notes = draft.notes()
        self.notes.clear()
        self.notes.set_visibility(bool(notes))
        with self.notes:
            for note in notes[:_MAX_NOTES]:
                elements.message(note)
            if hidden := notes[_MAX_NOTES:]:
                with elements.details(plural(len(hidden), "more note"), body="stack"):
                    for note in hidden:
                        elements.message(note)

    async def choose_role(self, column: str, role: str, on_chosen: Callable[[], None] | None = None) -> None:
        """Change a role, and call `on_chosen` before its effects are shown.

        Hierarchies may be large, so they are checked in a thread.
        """
        async with self.tab.changing:
            workspace = self.tab.workspace
            if role == "quasi-identifier":
                await anyio.to_thread.run_sync(workspace.table.check_hierarchy, column)
            workspace.table.choose_role(column, role)
            if on_chosen is not None:
                on_chosen()
            await anyio.to_thread.run_sync(workspace.prepare)
            edited = self.tab.state.column
            if role == "quasi-identifier":
                self.tab.state.column = column
            self.refresh()
            if edited != self.tab.state.column or edited not in workspace.table.quasi_identifiers:
                self.show_editor()

    async def choose_roles(self, columns: Sequence[str], role: str) -> None:
        async with self.tab.changing:
            workspace = self.tab.workspace
            await anyio.to_thread.run_sync(workspace.table.choose_roles, columns, role)
            await anyio.to_thread.run_sync(workspace.prepare)
            self.refresh()
            self.show_editor()

    def choose_column(self, column: str) -> None:
        """Edit the hierarchy of a column."""
        self.tab.state.column = column
        self.rows.update()
        self.show_editor()
        self.side.client.run_javascript(f"studio.showEditor({self.side.id})")

    def show_row(self) -> None:
        """Show the row of the column whose hierarchy is edited, and focus its button."""
        row = self.rows.rows.get(self.tab.state.column or "")
        if row is not None:
            self.side.client.run_javascript(f"studio.showRow({row.element.id})")

    def show_protection(self) -> None:
        """Redraw the forms for models and limits if roles changed. Without a quasi-identifier, show none."""
        roles = dict(self.tab.workspace.table.roles)
        if roles == self.protected_roles:
            return
        self.protected_roles = roles
        self.protection.clear()
        if self.tab.workspace.table.quasi_identifiers:
            with self.protection:
                ProtectionCard(self.tab, self.settings_changed)

    def settings_changed(self) -> None:
        """Show the effects of a change in the forms, without redrawing the forms."""
        if self.side.is_deleted:  # another step is shown meanwhile
            self.tab.refresh()
            return
        self.show_notes()
        self.tab.refresh_nav()

    def refresh(self) -> None:
        """Show the effects of a change to a column."""
        if self.side.is_deleted:  # another step is shown meanwhile
            self.tab.refresh()
            return
        self.show_protection()
        preset = self.tab.workspace.draft.preset or ""
        if elements.value_of(self.preset) != preset:
            elements.set_value(self.preset, preset)
        self.show_notes()
        self.rows.update()
        self.tab.refresh_nav()

    def show_editor(self) -> None:
        if self.side.is_deleted:
            return
        names = self.tab.workspace.table.quasi_identifiers
        if self.tab.state.column not in names:
            self.tab.state.column = names[0] if names else None
            self.rows.update()
        self.side.clear()
        with self.side:
            if self.tab.state.column is None:
                elements.tag("p", "Hierarchies are for quasi-identifiers; there is none yet.", "muted")
            else:
                HierarchyEditor(self.tab, self.tab.state.column, self.refresh)
                elements.button("Back to the columns", self.show_row, "small back")
