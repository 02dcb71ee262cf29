"""The studio's pages without a browser: colours that can be read, and what a page does at an odd moment."""

from __future__ import annotations

import asyncio
import re
import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("nicegui", reason="the studio needs shoal[web]")
from shoal.errors import PolicyError
from shoal.web import api
from shoal.web.actions import action
from shoal.web.pages import elements
from shoal.web.pages import negotiate as step_negotiate
from shoal.web.pages.charts import palette
from shoal.web.pages.studio import stylesheet
from shoal.web.pages.tab import TabView

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
    rule = stylesheet().partition("body.body--dark" if dark else ":root")[2].partition("}")[0]
    colours = dict(re.findall(r"--([\w-]+):\s*(#\w+)", rule))
    for front, backs in TEXT.items():
        for back in backs:
            assert _contrast(colours[front], colours[back]) >= 4.5, f"{front} on {back}"
    for back in ("bg", "card"):
        assert _contrast(colours["edge"], colours[back]) >= 3, f"edge on {back}"
    drawn = palette(dark)
    assert drawn["card"].replace("#ffffff", "#fff") == colours["card"]
    for name in ("text", "main", "second"):
        assert _contrast(drawn[name], colours["card"]) >= 4.5, f"{name} of a chart"


def test_what_the_dials_said_before_an_offer_was_taken_is_not_drawn_over_it() -> None:
    drawn: list[Any] = []
    asked = threading.Event()  # the dials, while the offer is being taken

    class Slow(step_negotiate.NegotiateView):
        def __init__(self) -> None:
            negotiation = SimpleNamespace(take=self.take_slowly, tabulated=None)
            workspace = SimpleNamespace(negotiation=negotiation, preview=SimpleNamespace(result=True))
            values: dict[str, Any] = {}
            move_to = lambda _, __, node: values.update(node=node)  # noqa: E731
            card = SimpleNamespace(is_deleted=False)
            dials = SimpleNamespace(values=values, move_to=move_to, card=card)
            self.moves, self.dials = 0, dials  # type: ignore[assignment]
            self.tab: Any = SimpleNamespace(
                workspace=workspace, refresh_nav=lambda: None, changing=asyncio.Lock()
            )
            self.charts: Any = SimpleNamespace(draw=self.draw)

        @staticmethod
        def take_slowly(_: Any) -> dict[str, int]:
            assert asked.wait(300)
            return {"age": 1}

        async def draw(self, *what: Any) -> None:
            drawn.append(what)

        def ask(self, *, draw: bool = True) -> Any:
            asked.set()
            return "an answer to the dials"

    async def quickly() -> dict[str, Any]:
        view = Slow()
        moved = asyncio.create_task(view.on_move())
        offer: Any = SimpleNamespace(least=5, limit=3)
        await view.take(offer)
        await moved
        return view.dials.values

    assert asyncio.run(quickly())["node"] == {"age": 1}
    assert drawn == []


def test_a_surprise_is_told_without_its_text() -> None:
    told: list[str] = []
    place = SimpleNamespace(set_text=told.append, set_visibility=lambda _: None)
    tab: Any = SimpleNamespace(error=place, is_closed=False)
    TabView.show_exception(tab, KeyError("Anna, 1971"))
    TabView.show_exception(tab, PolicyError("k is too small."))
    assert told[0].startswith("Something went wrong inside shoal (KeyError).")
    assert "Anna" not in told[0]
    assert told[1].startswith("k is too small.")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", None), (" ", None), ("2.5", 2.5), ("abc", 0), ("-1", 0), ("nan", 0), ("1e9", 0)],
)
def test_a_limit_on_time_is_parsed_or_rejected(text: str, seconds: float | None) -> None:
    value = elements.parse_value(text)
    errors = action.form_errors(api.tabulate, seconds=value)
    assert (0 if errors else value) == seconds
    assert set(errors) <= {"seconds"}
