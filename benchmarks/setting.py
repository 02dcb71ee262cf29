"""The setting of the benchmarks: the folder of the Adult table, and a description of the machine."""

from __future__ import annotations

import os
import platform
import textwrap
from pathlib import Path


def adult() -> Path:
    """Return the folder of the Adult table, or exit with a message that says what is missing."""
    default_folder = Path(__file__).resolve().parents[2] / "shared" / "data"
    for folder in (os.environ.get("SHOAL_DATA"), default_folder):
        if folder and (Path(folder) / "adult" / "adult.csv").exists():
            return Path(folder) / "adult"
    message = "The Adult table is not here. Set SHOAL_DATA to the folder that holds adult/adult.csv."
    raise SystemExit(message)


def machine() -> str:
    """Describe the machine."""
    return f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}"


def write_page(page: Path, text: str) -> None:
    """Write a page of the documentation, with prose in lines of at most 120 characters."""
    lines = [line for long in text.splitlines() for line in _wrapped(long)]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")


def _wrapped(line: str) -> list[str]:
    if len(line) <= 120 or line.startswith("|"):
        return [line]
    indent = "  " if line.startswith("- ") else ""
    return textwrap.wrap(line, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
