"""Step 1, data: a table, the role of each column, and the hierarchies."""

from __future__ import annotations

import anyio.to_thread

from shoal.errors import ShoalError, so_many
from shoal.reporting.words import percent
from shoal.web import look
from shoal.web.answers import ColumnAnswer, IdentifierAnswer
from shoal.web.columns import ROLES
from shoal.web.editor import Editor
from shoal.web.plan import published
from shoal.web.room import Room
from shoal.web.source import choose_table

_NOTES = 6  # that are shown at once; the others open below


def show(room: Room) -> None:
    """Show the step."""
    opened = room.desk.inspection is not None
    if opened and not room.seat.said.get("other table"):
        _Table(room)
    else:
        choose_table(room, opened=opened)


def _mark(found: IdentifierAnswer) -> None:
    """Mark a column that looks like one of the 18 identifiers, with the reason where one points at it."""
    told = f"HIPAA ({found.letter}) {found.title}: {found.reason}"
    look.tag("span", f"HIPAA {found.letter}", "chip mark", title=told, aria_label=told, role="note")


class _Table:
    """The column table with the hierarchy editor beside it."""

    def __init__(self, room: Room) -> None:
        self.room = room
        with look.box("line spread"):
            with look.box("tight"):
                look.tag("h2", "What is each column?")
                look.tag(
                    "p",
                    "Identifiers are removed, quasi-identifiers generalized, sensitive columns protected.",
                    "muted small",
                )
            with look.box("line", style="align-items: flex-end"):
                self.rules()
                look.button("Other table", self.other)
                look.button("Diagnose \u2192", lambda: room.go("diagnose"), "primary")
        for note in room.desk.opened.read_notes:
            look.told(note, "warn")
        with look.box("split data-split"):
            with look.box("card", style="padding: 6px 4px"):
                self.place = look.box("scroll")
            with look.box("stack"):
                self.missing = look.told("", "warn")
                self.notes = look.box("stack", data_part="notes")
                self.side = look.box(
                    "card",
                    "section",
                    style="position: sticky; top: 70px; max-height: calc(100vh - 84px); overflow: auto",
                )
        self.rows()
        self.edit()

    def rules(self) -> None:
        """Offer the published rules; the one that is followed is shown until something is changed."""
        rules = published()
        about = "In place of the roles, hierarchies and models below. " + " ".join(
            f"{rule.name}: {rule.about}" for rule in rules
        )
        with look.box("", style="width: 210px", title=about, data_part="rule"):
            options = {"": "none"} | {rule.name: rule.name for rule in rules}
            now = self.room.desk.preset or ""
            self.rule = look.choice("Follow a published rule", options, now, self.follow)
            self.unruly = look.no_fault()

    async def follow(self, preset: str) -> None:
        """Let a published rule make the policy anew, or say why it cannot."""
        try:
            await anyio.to_thread.run_sync(self.room.desk.follow, preset or None)
        except ShoalError as error:
            look.fault(self.unruly, str(error))
            return
        self.room.seat.dials.clear()
        self.room.refresh()

    def other(self) -> None:
        """Go back to choosing a table."""
        self.room.seat.said["other table"] = True
        self.room.refresh()

    def rows(self) -> None:
        """Show the columns."""
        desk = self.room.desk
        missing = desk.missing()
        self.missing.set_text(missing or "")
        self.missing.set_visibility(bool(missing))
        notes = desk.notes()
        self.notes.clear()
        self.notes.set_visibility(bool(notes))
        with self.notes:
            for note in notes[:_NOTES]:
                look.told(note)
            if rest := notes[_NOTES:]:
                with look.box("", "details"):
                    look.tag("summary", so_many(len(rest), "more note"))
                    with look.box("stack", style="padding-top: 12px"):
                        for note in rest:
                            look.told(note)
        self.place.clear()
        with self.place, look.box("t", "table"):
            with look.box("", "thead"), look.box("", "tr"):
                for name, classes in (
                    ("Column", ""), ("Distinct", "r"), ("Missing", "r"), ("Unique", "r"),
                    ("Suggested", ""), ("Role", ""), ("Hierarchy", ""),
                ):  # fmt: skip
                    look.tag("th", name, classes, scope="col")
            with look.box("", "tbody"):
                for row in desk.columns():
                    self.row(row)

    def row(self, row: ColumnAnswer) -> None:
        """Show one column."""
        with look.box("on" if row.column == self.room.seat.column else "", "tr", data_column=row.column):
            with look.box("", "td"):
                look.tag("div", row.column, "name", title=row.column)
                with look.box("nowrap small"):
                    look.tag("span", row.kind, "muted")
                    if row.identifier:
                        _mark(row.identifier)
            look.tag("td", f"{row.distinct:,}", "r")
            look.tag("td", f"{row.missing:,}" if row.missing else "\u2013", "r")
            look.tag("td", percent(row.unique_share), "r")
            with look.box("small reason", "td", title=f"{row.suggested_role}: {row.reason}"):
                look.tag("div", row.suggested_role)
                look.tag("div", row.reason, "muted")
            with look.box("", "td", style="width: 158px; min-width: 158px"):
                look.choice(
                    f"Role of {row.column}",
                    ROLES,
                    row.role,
                    lambda role: self.choose(row.column, role),
                    shown=False,
                )
            with look.box("nowrap", "td"):
                if row.role == "quasi-identifier":
                    about = "does not fit" if row.problem else so_many((row.height or 0) + 1, "level")
                    chosen = "chosen" if row.column == self.room.seat.column else ""
                    look.button(
                        about,
                        lambda: self.choose_column(row.column),
                        f"small {'bad' if row.problem else ''} {chosen}",
                        aria_label=f"Hierarchy of {row.column}: {about}",
                    )

    async def choose(self, column: str, role: str) -> None:
        """Give a column its role; its hierarchy, which may be large, is tried off the event loop."""
        if role == "quasi-identifier":
            await anyio.to_thread.run_sync(self.room.desk.fit, column)
        self.room.desk.choose_role(column, role)
        if role == "quasi-identifier":
            self.room.seat.column = column
        self.changed()
        self.edit()

    def choose_column(self, column: str) -> None:
        """Edit a column's hierarchy."""
        self.room.seat.column = column
        self.rows()
        self.edit()

    def changed(self) -> None:
        """Show what a change changes."""
        if self.rule._props["value"] != (self.room.desk.preset or ""):
            look.put(self.rule, self.room.desk.preset or "")
        self.rows()
        self.room.refresh_nav()

    def edit(self) -> None:
        """Show the editor of the column chosen."""
        names = self.room.desk.quasi_identifiers
        if self.room.seat.column not in names:
            self.room.seat.column = names[0] if names else None
            self.rows()
        self.side.clear()
        with self.side:
            if self.room.seat.column is None:
                look.tag("p", "Hierarchies are for quasi-identifiers; there is none yet.", "muted")
            else:
                Editor(self.room, self.room.seat.column, self.changed)
