"""The hierarchy editor: a builder and its parameters, tried on the column's own values as one types."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import anyio.to_thread
from nicegui import background_tasks, ui

from shoal.catalogue import catalogue
from shoal.errors import ShoalError
from shoal.web import charts, look
from shoal.web.room import Room
from shoal.web.settings import Settings
from shoal.web.spec_fields import FIELDS, NAMES, in_a_line, kind_of, spec_of, texts_of
from shoal.web.trials import Trial

_BRANCHES = {0: 12, 1: 12, 2: 5, 3: 3}  # of each group that the drawing shows, by height


class Editor:
    """One column's hierarchy."""

    def __init__(self, room: Room, column: str, changed: Callable[[], Any]) -> None:
        self.room, self.column, self.changed = room, column, changed
        row = next(row for row in room.desk.columns() if row.column == column)
        self.spec: Any = row.hierarchy
        self.kind = kind_of(self.spec)
        self.fields: dict[str, str] = texts_of(self.kind, self.spec)
        self.file = self.fields.get("csv", "")
        self.asked = 0
        with look.box("line spread"):
            look.tag("h2", f"Hierarchy of {column}")
            upload = ui.upload(on_upload=self.upload, auto_upload=True, max_file_size=20_000_000)
            pick = look.tag("button", "Upload a CSV", "btn small", type="button")
            pick.on("click", js_handler=look.picking(upload))
            self.uploader = upload
        kinds = {name: text for name, text in NAMES.items() if name != "csv" or self.kind == "csv"}
        look.choice("Builder", kinds, self.kind, self.choose)
        if note := room.desk.hierarchy_note(column):
            look.told(note, "warn")
        self.place = look.box("tight", style="gap: 8px")
        self.wrong = look.told("", "bad")
        self.wrong.set_visibility(False)
        Settings(room, column, changed)
        self.outcome = look.box("stack", style="gap: 10px")
        self.inputs: list[Any] = []
        self.draw_fields()
        background_tasks.create(self.begin(), name="hierarchy")

    async def begin(self) -> None:
        """Show how values climb the hierarchy that is chosen; a large column takes a while."""
        trial, root = await anyio.to_thread.run_sync(self.tried, self.spec)
        if not self.asked and not self.outcome.is_deleted:
            self.draw(trial, root)

    def tried(self, spec: Any) -> tuple[Trial, dict[str, Any]]:
        """Try a hierarchy and make its tree, off the event loop."""
        trial = self.room.desk.preview(self.column, spec)
        found = trial.preview
        return trial, {} if found is None else found.tree(_BRANCHES.get(found.height, 2))

    def choose(self, kind: str) -> Any:
        """Take another builder; its fields begin with an example."""
        self.kind = kind
        if kind == "yaml":
            self.fields = {"yaml": in_a_line(self.spec)}
        elif kind == "csv":
            self.fields = {"csv": self.file}
        else:
            first = FIELDS.get(kind, ())[: 2 if kind == "order" else 1]
            self.fields = {name: example for name, _, example in first}
        self.draw_fields()
        return self.attempt()

    def draw_fields(self) -> None:
        """Show the builder's parameters."""
        self.place.clear()
        self.inputs = []
        fields = (("yaml", "Hierarchy", ""),) if self.kind == "yaml" else FIELDS.get(self.kind, ())
        with self.place:
            about = catalogue()["builders"].get(self.kind)
            if about:
                look.tag("p", about, "muted small")
            with look.box("split halves", style="gap: 8px"):
                for name, label, example in fields:
                    area = name in ("tree", "yaml", "order")
                    wide = {"style": "grid-column: 1 / 3"} if area or name in ("cuts", "times") else {}
                    with look.box("", **wide):
                        made, _ = look.entry(
                            label,
                            self.fields.get(name, ""),
                            partial(self.typed, name),
                            area=area,
                            placeholder=example,
                            rows=3,
                        )
                    self.inputs.append(made)

    def typed(self, name: str, text: str) -> Any:
        """Take what is typed and try it."""
        self.fields[name] = text
        return self.attempt()

    async def attempt(self) -> None:
        """Try the hierarchy; one that fits is chosen at once, another leaves the old one."""
        self.asked += 1
        mine = self.asked
        try:
            spec = spec_of(self.kind, self.fields)
        except ValueError as error:
            self.refuse(str(error))
            return
        trial, root = await anyio.to_thread.run_sync(self.tried, spec)
        if mine != self.asked:
            return
        if trial.preview is not None and spec != self.spec:
            try:
                await anyio.to_thread.run_sync(self.take, spec)
            except ShoalError as error:
                self.refuse(str(error))
                return
            self.spec = spec
            self.changed()
        self.draw(trial, root)

    def take(self, spec: Any) -> None:
        """Choose a hierarchy and try it, off the event loop."""
        self.room.desk.choose_hierarchy(self.column, spec)
        self.room.desk.fit()

    async def upload(self, event: Any) -> None:
        """Take a hierarchy's file."""
        content = await event.file.read()
        self.uploader.reset()
        try:
            desk = self.room.desk
            await anyio.to_thread.run_sync(desk.upload_hierarchy, self.column, content, event.file.name)
            await anyio.to_thread.run_sync(desk.fit)
        except ShoalError as error:
            self.refuse(str(error), tuple(getattr(error, "values", ()))[:20])
            return
        self.changed()
        self.room.refresh()

    def refuse(self, text: str, values: tuple[str, ...] = ()) -> None:
        """Show why it does not fit, where it was typed."""
        shown = ", ".join(map(repr, values[:8]))
        kept = " The hierarchy chosen before stays."
        self.wrong.set_text(text + (f" Values: {shown}." if shown else "") + kept)
        self.wrong.set_visibility(True)
        for made in self.inputs[:1]:
            made._props["aria-invalid"] = "true"
            made.update()

    def draw(self, trial: Trial, root: Mapping[str, Any]) -> None:
        """Show how values climb, or why they cannot."""
        if trial.preview is None:
            self.refuse(trial.problem or "", trial.values)
            return
        self.wrong.set_visibility(False)
        for made in self.inputs[:1]:
            made._props["aria-invalid"] = "false"
            made.update()
        found = trial.preview
        self.outcome.clear()
        with self.outcome:
            head = [f"Level\u00a0{level} ({groups:,})" for level, groups in enumerate(found.groups)]
            look.table(head, found.examples, classes="fit small")
            leaves = _leaves(root)
            ui.echart(charts.tree(root, self.room.dark)).style(f"height: {max(110, 15 * leaves + 16)}px")


def _leaves(root: Mapping[str, Any]) -> int:
    children = root.get("children", ())
    return sum(map(_leaves, children)) if children else 1
