"""PostgreSQL's binary copies of whole numbers: read and written as arrays, without a loop over rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_SIGNATURE = b"PGCOPY\n\xff\r\n\0" + bytes(8)  # no flags, no extension


def _row_type(columns: Sequence[str]) -> np.dtype[Any]:
    """Describe a row of a binary copy of 64-bit numbers: their number, then each with its length."""
    numbers = [(f"length{place}", ">i4") for place in range(len(columns))]
    values = [(f"value{place}", ">i8") for place in range(len(columns))]
    return np.dtype(
        [("columns", ">i2"), *[field for pair in zip(numbers, values, strict=True) for field in pair]]
    )


def packed(table: pa.Table) -> bytes:
    """Write whole numbers as a binary copy."""
    rows = np.empty(len(table), _row_type(table.column_names))
    rows["columns"] = table.num_columns
    for place, column in enumerate(table.columns):
        rows[f"length{place}"] = 8
        rows[f"value{place}"] = column.to_numpy()
    return _SIGNATURE + rows.tobytes() + b"\xff\xff"


def unpacked(held: bytes, columns: Sequence[str]) -> pa.Table | None:
    """Read whole numbers from a binary copy; a null makes a row shorter and cannot be read so."""
    kind = _row_type(columns)
    body = len(held) - len(_SIGNATURE) - 2
    whole = body % kind.itemsize == 0
    rows = np.frombuffer(held, kind, body // kind.itemsize, len(_SIGNATURE)) if whole else np.empty(0, kind)
    if not whole or any((rows[f"length{place}"] != 8).any() for place in range(len(columns))):
        return None
    return pa.table({name: rows[f"value{place}"].astype(np.int64) for place, name in enumerate(columns)})
