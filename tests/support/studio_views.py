"""A walk through every view of the studio, for screenshots and for checks that hold on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from browser import go, settled

PASSWORD = "a password for the walk"
VIEWS = (
    "sign-in", "start", "data", "hierarchy", "diagnose", "negotiate", "suggestions", "compare", "release",
    "project",
)  # fmt: skip


def walk(page: Any, address: str) -> Iterator[str]:
    """Show each view of the sample in turn, settled; yield its name."""
    press = lambda name: page.locator(".main").get_by_role("button", name=name, exact=True).click()  # noqa: E731
    page.goto(address.split("?")[0])  # without the token, which would sign in
    page.get_by_label("Password").wait_for()
    yield "sign-in"
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    page.get_by_role("button", name="Open the sample").wait_for()
    yield "start"
    page.get_by_role("button", name="Open the sample").click()
    page.get_by_role("heading", name="Hierarchy of age").wait_for()
    yield "data"
    page.get_by_role("button", name="Hierarchy of postcode").click()
    page.get_by_role("heading", name="Hierarchy of postcode").wait_for()
    yield "hierarchy"
    go(page, "Diagnose")
    page.get_by_role("heading", name="Smallest unsafe sets").wait_for()
    press("Assess")
    page.get_by_text("prosecutor risk, highest").wait_for()
    yield "diagnose"
    go(page, "Negotiate")
    page.locator("[data-answer=exact]").wait_for()
    settled(page)
    yield "negotiate"
    page.get_by_label("Suppressed, at most", exact=True).fill("0.5%")
    page.locator("[data-answer=none]").wait_for()
    yield "suggestions"
    press("Reset to the policy")
    page.locator("[data-answer=exact]").wait_for()
    press("Take this")
    page.get_by_text("taken for the release").wait_for()
    go(page, "Compare")
    press("Run the comparison")
    page.get_by_role("heading", name="Metric: coverage").wait_for()
    yield "compare"
    go(page, "Release")
    press("Write the release")
    page.get_by_text("Verified: every model holds").wait_for()
    yield "release"
    page.get_by_role("button", name="Project", exact=True).click()
    page.get_by_role("heading", name="As one file").wait_for()
    yield "project"
