"""A studio as the command starts it, and Debian's Chromium to look at it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import shoal

_SOURCE = str(Path(shoal.__file__).resolve().parents[1])
CHROMIUM = "/usr/bin/chromium"
_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]


@contextmanager
def studio(*options: str, log: Path | None = None) -> Iterator[Callable[[], str]]:
    """Run `shoal studio` while the block lasts; yield what waits for the address that it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    environment["PYTHONPATH"] = os.pathsep.join([_SOURCE, environment.get("PYTHONPATH", "")])
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
                process.wait(15)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(5)


def _address(process: subprocess.Popen[bytes], told: Path) -> str:
    for _ in range(600):
        found = re.search(r"http://\S+", told.read_text(encoding="utf-8"))
        if found:
            return found.group()
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
        break
    message = f"shoal studio did not start: {told.read_text(encoding='utf-8')}"
    raise RuntimeError(message)


@contextmanager
def chromium() -> Iterator[Any]:
    """Drive Chromium, with a profile of its own; yield its context."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=CHROMIUM, args=_FLAGS)
        try:
            yield browser
        finally:
            browser.close()
