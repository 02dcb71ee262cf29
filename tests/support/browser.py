"""A studio as the command starts it, and Debian's Chromium to look at it."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import shoal

_SOURCE = str(Path(shoal.__file__).resolve().parents[1])
CHROMIUM = "/usr/bin/chromium"
SLOW = 240_000  # milliseconds that a page may take on a busy machine
_ABSENT = [name for name in ("nicegui", "playwright") if importlib.util.find_spec(name) is None]
_ABSENT += [] if Path(CHROMIUM).exists() else [CHROMIUM]
BROWSER_MARKS = [  # of a module whose tests need a browser
    pytest.mark.skipif(bool(_ABSENT), reason=f"a browser test needs {', '.join(_ABSENT)}"),
    pytest.mark.xdist_group("servers"),
]
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def studio(
    *options: str, log: Path | None = None, password: str | None = None
) -> Iterator[Callable[[], str]]:
    """Run `shoal studio` while the block lasts; yield what waits for the address that it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join([_SOURCE, environment.get("PYTHONPATH", "")])
    environment |= {} if password is None else {"SHOAL_STUDIO_PASSWORD": password}
    command = [sys.executable, "-m", "shoal", "studio", "--no-browser", *options]
    with tempfile.TemporaryDirectory() as home:
        told = log or Path(home) / "log"
        with open(told, "wb") as out:
            process = subprocess.Popen(command, stdout=out, stderr=out, env=environment, cwd=home)
        try:
            yield lambda: _address(process, told)
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(120)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(60)


def _address(process: subprocess.Popen[bytes], told: Path) -> str:
    for _ in range(3000):
        found = re.search(r"https?://\S+", told.read_text(encoding="utf-8"))
        if found:
            return found.group()
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    message = f"shoal studio did not start: {told.read_text(encoding='utf-8')}"
    raise RuntimeError(message)


def new_page(browser: Any, **options: Any) -> Any:
    """Open a page of a profile of its own, which waits long enough on a busy machine."""
    context = browser.new_context(**options)
    context.set_default_timeout(SLOW)
    return context.new_page()


@contextmanager
def chromium(*flags: str) -> Iterator[Any]:
    """Drive Chromium, with a profile of its own; yield its context."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=[*_FLAGS, *flags])
        try:
            yield browser
        finally:
            browser.close()


@dataclass(frozen=True)
class SignedIn:
    """A studio, and a browser that has signed in there."""

    browser: Any
    address: str
    state: Any  # cookies

    @contextmanager
    def tab(self) -> Iterator[Any]:
        """Open a tab at the first page; an error in its scripts fails the test."""
        size = {"width": 1280, "height": 800}
        page = new_page(self.browser, storage_state=self.state, base_url=self.address, viewport=size)
        errors: list[str] = []
        page.context.on("weberror", lambda error: errors.append(str(error.error)))
        page.goto("/")
        page.get_by_role("button", name="Open the sample").wait_for()
        try:
            yield page
        finally:
            page.context.close()
        assert not errors


@contextmanager
def signed_in(browser: Any, *options: str, log: Path | None = None) -> Iterator[SignedIn]:
    """Run a studio, and sign in with the address that it prints."""
    with studio("--max-workspaces", "64", *options, log=log) as started:
        address = started()
        page = new_page(browser)
        page.goto(address)
        page.get_by_role("button", name="Open the sample").wait_for()
        state = page.context.storage_state()
        page.context.close()
        yield SignedIn(browser, address.split("?")[0], state)


def open_sample(page: Any) -> None:
    """Open the sample from the first page."""
    page.get_by_role("button", name="Open the sample").click()
    page.get_by_role("heading", name="Hierarchy of age").wait_for()


def expect(actual: Any) -> Any:
    """Return assertions about a locator or a page, which wait long enough on a busy machine."""
    from playwright.sync_api import expect as assertions

    assertions.set_options(timeout=SLOW)
    return assertions(actual)


def go(page: Any, step: str) -> None:
    """Show a step; then its address and its title are shown, too."""
    page.locator("nav button", has_text=step).click()
    page.locator("nav button[aria-current=step]", has_text=step).wait_for()
    expect(page).to_have_title(f"{step} \u2013 shoal studio")


def press(page: Any, name: str) -> None:
    """Click a button of the step that is shown."""
    page.locator(".main").get_by_role("button", name=name, exact=True).click()


def upload(page: Any, path: Path, button: str = "Upload a file") -> None:
    """Choose a file to upload."""
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name=button).click()
    chooser.value.set_files(path)


def choose_role(page: Any, column: str, role: str) -> None:
    """Choose the role of a column by its segment."""
    page.get_by_role("radiogroup", name=f"Role of {column}", exact=True).get_by_label(
        role, exact=True
    ).check()


def expect_role(page: Any, column: str, role: str) -> None:
    """Wait until the page shows a role for a column."""
    group = page.get_by_role("radiogroup", name=f"Role of {column}", exact=True)
    expect(group.locator("input:checked")).to_have_value(role)


def role_of(page: Any, column: str) -> str:
    """Return the role that the page shows for a column; it may be about to change."""
    group = page.get_by_role("radiogroup", name=f"Role of {column}", exact=True)
    return str(group.locator("input:checked").input_value())


def settled(page: Any) -> None:
    """Wait until Negotiate shows an answer that the search for the release has confirmed, with its charts."""
    page.locator("[data-part=answer]").get_by_text("% of the information is retained.").wait_for()
