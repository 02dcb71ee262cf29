"""Editors of a hierarchy: drag values into groups, or move limits of bands on a histogram of the column.

The keyboard can do the same: select values and choose "Move to", or press the arrow keys on a limit.
"""

from __future__ import annotations

import html
import json
from collections.abc import Awaitable, Callable
from decimal import Decimal
from functools import partial
from typing import Any

from nicegui import ui
from nicegui.element import Element

from shoal.errors import ShoalError
from shoal.web.pages import elements
from shoal.web.pages.tab import TabView
from shoal.web.workspace import hierarchy_edit as edit
from shoal.workflow.inspect import Preview

OnSpec = Callable[[Any], Awaitable[None]]

_MOVE = "Move the selected to"
_NEW = "new"
_MAX_SHOWN = 12  # maximum number of limits whose numbers fit on a track


class HierarchyGroups:
    """The part of the hierarchy editor in which groups or limits are edited by hand."""

    def __init__(self, tab: TabView, column: str, on_spec: OnSpec) -> None:
        self.tab, self.column, self.on_spec = tab, column, on_spec
        self.state: dict[str, Any] = tab.state.fields.setdefault(f"groups of {column}", {"open": False})
        with elements.box("", "details", data_part="groups", open=self.state["open"]) as details:
            elements.tag("summary", "Edit the groups by hand")
            self.box = elements.box("tight", style="gap: 8px; padding-top: 8px")
        details.on("toggle", self._toggled, js_handler="(event) => emit(event.currentTarget.open)")

    def _toggled(self, event: Any) -> None:
        self.state["open"] = bool(event.args)

    def draw(self, preview: Preview, spec: Any) -> None:
        """Show the groups of the column's current hierarchy."""
        self.box.clear()
        inspection = self.tab.workspace.table.loaded
        kind = next(guess.kind for guess in inspection.columns if guess.column == self.column)
        hierarchy = preview.hierarchy
        with self.box:
            if kind == "number" and hierarchy.positions is not None and preview.builder in _NUMBERS:
                BandEditor(self, preview, spec)
            elif len(hierarchy.labels[0]) > edit.MAX_VALUES:
                elements.note(
                    f"The column has {len(hierarchy.labels[0]):,} values, too many to drag: upload a CSV."
                )
            else:
                GroupEditor(self, edit.grouping_of(hierarchy))
        if label := self.state.pop("focus", None):
            selector = json.dumps(f'[aria-label="{label}"]')
            self.box.client.run_javascript(f"studio.focusIn({self.box.id}, {selector})")

    async def set_spec(self, spec: Any) -> None:
        """Apply the edited hierarchy, and draw the editor again."""
        await self.on_spec(spec)


_NUMBERS = ("flat", "intervals", "cuts")


class GroupEditor:
    """The groups of one level, with their items."""

    def __init__(self, parent: HierarchyGroups, grouping: edit.ValueGrouping) -> None:
        self.parent, self.grouping = parent, grouping
        self.selected: list[int] = []
        self.level = min(parent.state.get("level", 1), len(grouping.levels))
        self._levels()
        self._toolbar()
        board = ui.html(self._board(), sanitize=False).classes("board")
        board.on("dragstart", js_handler="(event) => studio.dragItems(event)")
        board.on("dragover", js_handler="(event) => studio.overGroup(event)")
        board.on("drop", self._dropped, js_handler="(event) => studio.dropItems(event, emit)")
        board.on("change", self._changed, js_handler="(event) => studio.changeGroups(event, emit)")
        self.error = elements.error_line()

    def _levels(self) -> None:
        count = len(self.grouping.levels)
        below = ["values", *(f"groups of level {n}" for n in _upto(count - 1))]
        names = {str(n): f"level {n}, of {below[n - 1]}" for n in _upto(count)}
        with elements.box("line", style="align-items: flex-end"):
            with elements.box("grow", style="min-width: 170px"):
                elements.select("Groups", names, str(self.level), self._choose_level)
            elements.button("Add a level", partial(self._set, edit.add_level), "small")
            if count > 1:
                remove = partial(self._set, edit.remove_level, self.level)
                elements.button("Remove this level", remove, "small")

    async def _choose_level(self, level: str) -> None:
        self.parent.state["level"] = int(level)
        await self.parent.set_spec(None)

    def _toolbar(self) -> None:
        labels = self.grouping.levels[self.level - 1].labels
        targets = {"": "choose a group", _NEW: "a new group"}
        targets |= {str(n): label for n, label in enumerate(labels)}
        with elements.box("line", style="align-items: flex-end"):
            with elements.box("grow", style="min-width: 170px"):
                elements.select(_MOVE, targets, "", self._move_selected)
            elements.button("Merge groups of the selected", self._merge, "small")
            elements.button("Split group of the selected", self._split, "small")

    def _board(self) -> str:
        items = self.grouping.items(self.level)
        parts = [f'<div class="group drop" data-group="{_NEW}">Drop here for a new group</div>']
        for number, (label, members) in enumerate(self.grouping.groups(self.level)):
            name = html.escape(label)
            chips = "".join(
                f'<label class="choice" draggable="true" data-item="{item}"><input type="checkbox" '
                f'value="{item}"><span>{html.escape(items[item])}</span></label>'
                for item in members
            )
            parts.append(
                f'<div class="group" role="group" aria-label="{name}" data-group="{number}">'
                f'<input class="in" value="{name}" data-name="{number}" aria-label="Name of {name}">'
                f'<div class="choices">{chips}</div></div>'
            )
        return "".join(parts)

    async def _set(self, change: Callable[..., edit.ValueGrouping], *arguments: Any) -> None:
        """Change the grouping and apply its hierarchy, or show the error."""
        try:
            grouping = change(self.grouping, *arguments)
        except ShoalError as error:
            elements.set_error(self.error, str(error))
            return
        self.parent.state["level"] = len(grouping.levels) if change is edit.add_level else self.level
        await self.parent.set_spec(grouping.spec())

    async def _changed(self, event: Any) -> None:
        kind, first, text = event.args
        if kind == "select":
            self.selected = _numbers(first)
        else:
            await self._set(edit.rename, self.level, *_numbers(first), str(text))

    async def _dropped(self, event: Any) -> None:
        items, group = event.args
        await self._move(_numbers(items), str(group))

    async def _move_selected(self, group: str) -> None:
        if group:
            self.parent.state["focus"] = _MOVE
            await self._move(self.selected, group)

    async def _move(self, items: list[int], group: str) -> None:
        label = edit.free_label(self.grouping, self.level)
        await self._set(edit.move, self.level, items, None if group == _NEW else _numbers(group)[0], label)

    def _selected_groups(self) -> list[int]:
        parents = self.grouping.levels[self.level - 1].parents
        return list(dict.fromkeys(parents[item] for item in self.selected if item < len(parents)))

    async def _merge(self) -> None:
        await self._set(edit.merge, self.level, self._selected_groups())

    async def _split(self) -> None:
        groups = self._selected_groups()
        if len(groups) != 1:
            elements.set_error(self.error, "Select values of one group.")
            return
        await self._set(edit.split, self.level, groups[0])


class BandEditor:
    """The limits of bands on a histogram of the column, with a track for each level."""

    def __init__(self, parent: HierarchyGroups, preview: Preview, spec: Any) -> None:
        self.parent, self.spec = parent, spec
        hierarchy, inspection = preview.hierarchy, parent.tab.workspace.table.loaded
        assert hierarchy.positions is not None
        self.positions = hierarchy.positions
        self.limits = edit.limits_of(hierarchy)
        counts = inspection.value_counts[parent.column]
        self.heights, self.low, self.high = edit.histogram(self.positions, counts)
        self.number = ""
        elements.note("Drag a limit, or move it with the arrow keys; Delete removes it.")
        with elements.box("bands"):
            ui.html(self._histogram(), sanitize=False).classes("histogram")
            for level in _upto(len(self.limits)):
                self._track(level)
        self._limit_form()
        self.error = elements.error_line()

    def _histogram(self) -> str:
        most = max(self.heights, default=0) or 1
        bars = "".join(f'<i style="height: {100 * height / most:.1f}%"></i>' for height in self.heights)
        text = f"Histogram from {self.low:g} to {self.high:g}, at most {most:,} records in a bar"
        return f'<div role="img" aria-label="{text}">{bars}</div>'

    def _track(self, level: int) -> Element:
        handles = "".join(
            f'<button type="button" role="slider" data-limit="{limit}" '
            f'style="left: {self._share(limit):.2f}%" aria-label="Limit {limit} of level {level}" '
            f'aria-valuenow="{limit}" '
            f'aria-valuemin="{self.low:g}" aria-valuemax="{self.high:g}" title="{limit}">{limit}</button>'
            for limit in self.limits[level - 1]
            if self.low <= limit <= self.high
        )
        track = ui.html(f'<span>level {level}</span><div class="track">{handles}</div>', sanitize=False)
        track.classes("band" if len(self.limits[level - 1]) <= _MAX_SHOWN else "band dense")
        track._props["data-level"] = level
        moved = partial(self._moved, level)
        track.on("pointerdown", moved, js_handler="(event) => studio.pullLimit(event, emit)")
        track.on("keydown", moved, js_handler="(event) => studio.moveLimit(event, emit)")
        return track

    def _share(self, limit: Decimal) -> float:
        return 100 * (float(limit) - self.low) / (self.high - self.low)

    def _limit_form(self) -> None:
        def set_number(text: str) -> None:
            self.number = text

        with elements.box("line", style="align-items: flex-end"):
            if self.limits:
                with elements.box("", style="width: 120px"):
                    elements.text_field("New limit", "", set_number, inputmode="decimal")
                for level in _upto(len(self.limits)):
                    elements.button(f"Add to level {level}", partial(self._add, level), "small")
            elements.button("Add a level", self._add_level, "small")

    async def _moved(self, level: int, event: Any) -> None:
        kind, text, value = event.args
        old = next((limit for limit in self.limits[level - 1] if str(limit) == text), None)
        if old is None:
            return
        if kind == "remove":
            await self._set(edit.remove_limit(self.limits, level, old))
            return
        step = 1.0 if old == int(old) and self._is_whole() else (self.high - self.low) / 100
        number = float(old) + value * step if kind == "step" else self.low + value * (self.high - self.low)
        new = edit.rounded(min(max(number, self.low), self.high), self.positions)
        self.parent.state["focus"] = f"Limit {new} of level {level}"
        await self._set(edit.move_limit(self.limits, old, new))

    def _is_whole(self) -> bool:
        return edit.rounded(0.5, self.positions) == int(edit.rounded(0.5, self.positions))

    async def _add(self, level: int) -> None:
        number = elements.parse_value(self.number)
        if not isinstance(number, int | float):
            elements.set_error(self.error, "A limit is a number, such as 18 or 2.5.")
            return
        await self._set(edit.add_limit(self.limits, level, Decimal(str(number))))

    async def _add_level(self) -> None:
        await self._set(edit.add_limit_level(self.limits, self.positions))

    async def _set(self, limits: edit.BandLimits) -> None:
        spec = edit.cuts_spec(limits, self.spec) if limits else "flat"
        await self.parent.set_spec(spec)


def _upto(count: int) -> range:
    return range(1, count + 1)


def _numbers(text: Any) -> list[int]:
    """Parse the item numbers that the browser sends. Other text is ignored.

    >>> _numbers("3,1,x"), _numbers("")
    ([3, 1], [])
    """
    numbers = (elements.parse_whole(part) for part in str(text).split(","))
    return [number for number in numbers if number is not None]
