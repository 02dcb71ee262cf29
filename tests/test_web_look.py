"""The studio's pages without a browser: colours that can be read, and what a page does at an odd moment."""

from __future__ import annotations

import asyncio
import re
import time
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the studio needs shoal[web]")
from shoal.errors import PolicyError
from shoal.web import look, step_negotiate
from shoal.web.charts import ink
from shoal.web.room import Room
from shoal.web.style import CSS

TEXT = {
    "ink": ("bg", "card", "soft", "bad-soft", "warn-soft", "good-soft"),
    "muted": ("bg", "card", "soft"),
    "accent": ("bg", "card", "soft"),
    "on-accent": ("accent",),
    "bad": ("bg", "card", "bad-soft"),
    "good": ("bg", "card", "good-soft"),
    "warn": ("bg", "card", "warn-soft"),
}


def _light(colour: str) -> float:
    digits = colour[1:] if len(colour) > 4 else "".join(2 * one for one in colour[1:])
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    linear = [one / 12.92 if one <= 0.03928 else ((one + 0.055) / 1.055) ** 2.4 for one in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def _contrast(one: str, other: str) -> float:
    low, high = sorted((_light(one), _light(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_can_be_told_apart(dark: bool) -> None:
    """WCAG 2.2: 4.5 for text, 3 for the edges of fields."""
    rule = CSS.partition("body.body--dark" if dark else ":root")[2].partition("}")[0]
    colours = dict(re.findall(r"--([\w-]+):\s*(#\w+)", rule))
    for front, backs in TEXT.items():
        for back in backs:
            assert _contrast(colours[front], colours[back]) >= 4.5, f"{front} on {back}"
    for back in ("bg", "card"):
        assert _contrast(colours["edge"], colours[back]) >= 3, f"edge on {back}"
    drawn = ink(dark)
    assert drawn["card"].replace("#ffffff", "#fff") == colours["card"]
    for name in ("text", "main", "second"):
        assert _contrast(drawn[name], colours["card"]) >= 4.5, f"{name} of a chart"


def test_what_the_dials_said_before_an_offer_was_taken_is_not_drawn_over_it() -> None:
    drawn: list[Any] = []

    class Slow(step_negotiate._Negotiate):
        def __init__(self) -> None:
            desk = SimpleNamespace(take=lambda _: time.sleep(0.1) or {"age": 1}, tabulated=None)
            said: dict[str, Any] = {}
            dials = SimpleNamespace(said=said, move=lambda _, __, node: said.update(node=node))
            self.asked, self.dials = 0, dials  # type: ignore[assignment]
            self.room: Any = SimpleNamespace(desk=desk, refresh_nav=lambda: None)
            self.outlook: Any = SimpleNamespace(draw=self.draw)

        async def draw(self, *what: Any) -> None:
            drawn.append(what)

        def ask(self, *, draw: bool = True) -> Any:
            return "an answer to the dials"

    async def quickly() -> dict[str, Any]:
        desk = Slow()
        moved = asyncio.create_task(desk.changed())
        offer: Any = SimpleNamespace(least=5, limit=3)
        await desk.take(offer)
        await moved
        return desk.dials.said

    assert asyncio.run(quickly())["node"] == {"age": 1}
    assert drawn == []


def test_a_surprise_is_told_without_its_text() -> None:
    told: list[str] = []
    place = SimpleNamespace(set_text=told.append, set_visibility=lambda _: None)
    Room.surprised(SimpleNamespace(accident=place), KeyError("Anna, 1971"))  # type: ignore[arg-type]
    Room.surprised(SimpleNamespace(accident=place), PolicyError("k is too small."))  # type: ignore[arg-type]
    assert told[0].startswith("Something went wrong inside shoal (KeyError).")
    assert "Anna" not in told[0]
    assert told[1].startswith("k is too small.")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), (" ", None), ("2.5", 2.5), ("abc", 0), ("-1", 0), ("nan", 0), ("1e9", 0)],
)
def test_a_bound_on_time_is_read_or_refused(text: str, seconds: float | None) -> None:
    assert look.seconds(text) == seconds
