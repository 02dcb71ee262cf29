"""Tables of other programs: Excel, SPSS, SAS and Stata files, where their readers are installed."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from shoal.errors import DataError


def read_foreign(path: Path, ending: str) -> pa.Table:
    """Read a file of another program into an arrow table."""
    needed, read = READERS[ending]
    try:
        library = import_module(needed)
    except ImportError:
        message = f"Reading {ending} files needs {needed}. Install it with: pip install 'shoal[formats]'."
        raise DataError(message) from None
    try:
        return read(library, str(path), ending)
    except DataError:
        raise
    except Exception:
        # Each library has errors of its own, whose texts may quote cells.
        message = f"{str(path)!r} cannot be read as {ending}: it is damaged, or of another program."
        raise DataError(message) from None


def _excel(openpyxl: Any, path: str, _: str) -> pa.Table:
    """Read the first sheet: its first row names the columns."""
    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    try:
        header, *rows = book.worksheets[0].iter_rows(values_only=True)
    except ValueError:
        message = f"{path!r} is empty. Give a table with a line of column names."
        raise DataError(message) from None
    finally:
        book.close()
    kept = [row for row in rows if any(cell is not None for cell in row)]
    names = ["" if name is None else str(name) for name in header]
    columns = [_column([row[place] for row in kept]) for place in range(len(names))]
    return pa.Table.from_arrays(columns, names=names)


def _statistics(pyreadstat: Any, path: str, ending: str) -> pa.Table:
    """Read SPSS, SAS or Stata data; labelled codes stay codes."""
    reader = {
        ".sav": "sav",
        ".zsav": "sav",
        ".por": "por",
        ".sas7bdat": "sas7bdat",
        ".xpt": "xport",
        ".dta": "dta",
    }
    data, _ = getattr(pyreadstat, f"read_{reader[ending]}")(path, output_format="dict")
    return pa.Table.from_arrays([_column(list(values)) for values in data.values()], names=list(data))


def _column(values: list[Any]) -> pa.Array:
    """Make a column; a mixture of types becomes text, and text without letters is missing."""
    cleaned = [None if value == "" or value != value else value for value in values]
    try:
        return pa.array(cleaned)
    except (pa.ArrowInvalid, pa.ArrowTypeError):
        return pa.array([None if value is None else str(value) for value in cleaned])


READERS: dict[str, tuple[str, Callable[[Any, str, str], pa.Table]]] = {
    ".xlsx": ("openpyxl", _excel),
    ".sav": ("pyreadstat", _statistics),
    ".zsav": ("pyreadstat", _statistics),
    ".por": ("pyreadstat", _statistics),
    ".sas7bdat": ("pyreadstat", _statistics),
    ".xpt": ("pyreadstat", _statistics),
    ".dta": ("pyreadstat", _statistics),
}
