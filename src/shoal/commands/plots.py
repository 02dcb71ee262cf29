"""What the commands that draw share: the folder is made before the work begins, and told at the end."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from shoal.display import print_json, show_pairs
from shoal.errors import so_many


def prepare_plots(folder: Path | None) -> None:
    """Make sure, where plots are asked for, that they can be drawn and have a folder to go to."""
    if folder:
        from shoal.plots import prepare

        prepare(folder)


def where_drawn(folder: Path | None, files: Sequence[Path]) -> str:
    """Say where plots are, and how many files."""
    return f"{folder} ({so_many(len(files), 'file')})"


def print_drawn(
    found: Any, show: Callable[[Any], None], folder: Path | None, files: Sequence[Path], *, as_json: bool
) -> None:
    """Print a result as JSON, or show it and where its plots are."""
    if as_json:
        print_json(found.to_dict())
        return
    show(found)
    if files:
        show_pairs({"plots": where_drawn(folder, files)})
