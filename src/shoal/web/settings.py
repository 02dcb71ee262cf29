"""What else a policy says of a quasi-identifier: its lowest and highest level, its weight, and its form."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import anyio.to_thread
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.errors import ShoalError
from shoal.web import look
from shoal.web.refusals import Refused
from shoal.web.room import Room

_ENTRIES = {  # label, example, what it does
    "min_level": ("Lowest level", "0", "Generalized at least so far"),
    "max_level": ("Highest level", "no limit", "Generalized at most so far"),
    "weight": ("Weight", "1", "How much its loss counts, beside the others"),
}
_FORMS = {"": "text", "bounds": "two columns of bounds"}


class Settings:
    """A quiet part below a hierarchy; each entry is taken as it is typed, or refused beside it."""

    def __init__(self, room: Room, column: str, changed: Callable[[], Any]) -> None:
        self.room, self.column, self.changed = room, column, changed
        self.places: dict[str, tuple[Element, TextElement]] = {}
        self.waiting: dict[str, str] = {}  # what was typed and is not taken
        now = room.desk.settings(column)
        with look.box("", "details"):
            told = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in now.items())
            look.tag("summary", f"More: {told}" if told else "More: levels, weight, form")
            with look.box("split halves", style="gap: 8px; padding-top: 8px"):
                for name, (label, example, about) in _ENTRIES.items():
                    self.places[name] = look.entry(
                        label,
                        now.get(name, ""),
                        partial(self.typed, name),
                        inputmode="numeric",
                        placeholder=example,
                        title=about,
                    )
                with look.box("field"):
                    form = look.choice(
                        "Released as", _FORMS, now.get("release_as", ""), partial(self.typed, "release_as")
                    )
                    self.places["release_as"] = form, look.no_fault()

    async def typed(self, name: str, text: str) -> None:
        """Take a setting, or say beside its field why not; nothing typed is the usual."""
        self.waiting[name] = text.strip()
        taken = False
        for one in sorted(self.waiting, key=lambda other: other != name):  # those refused may do now
            taken = await self.take(one, self.waiting[one]) or taken
        if taken:
            self.changed()

    async def take(self, name: str, text: str) -> bool:
        """Take one setting, or say why not; tell which."""
        desk, (field, wrong) = self.room.desk, self.places[name]
        try:
            value = _read(name, text)
            await anyio.to_thread.run_sync(partial(desk.choose_settings, self.column, **{name: value}))
        except ShoalError as error:
            look.fault(wrong, str(error), field)
            return False
        look.fault(wrong, None, field)
        if self.waiting.get(name) == text:
            del self.waiting[name]
        return True


def _read(name: str, text: str) -> Any:
    """Read what is typed as the policy's entry."""
    if not text or name == "release_as":
        return text or None
    try:
        found = float(text) if name == "weight" else look.whole(text)
    except ValueError:
        found = None
    if found is None or (name == "weight" and not 0 < found <= 1e6):
        told = "a number above 0, such as 2" if name == "weight" else "a level, such as 1"
        message = f"{_ENTRIES[name][0]}: {told}, or nothing."
        raise Refused(message, name)
    return found
