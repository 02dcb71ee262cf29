"""Rows: a file of the numbers of records, closed to others, for what must never be printed."""

from __future__ import annotations

from pathlib import Path

from shoal.core.arrays import IntArray
from shoal.outputs import written_whole


def write_rows_file(path: Path, numbers: IntArray) -> None:
    """Write a number on each line; whole or not at all."""
    with written_whole(path) as file:
        file.writelines(b"%d\n" % number for number in numbers.tolist())
