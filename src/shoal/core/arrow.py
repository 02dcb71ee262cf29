"""Conversions between NumPy and Arrow that do not make pyarrow import pandas, which is slow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

_TYPES = {pa.int64(): np.int64, pa.uint64(): np.uint64, pa.int32(): np.int32, pa.float64(): np.float64}


def numbers_of(column: pa.Array | pa.ChunkedArray) -> Any:
    """Convert a column of numbers to an array."""
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    kind = _TYPES.get(array.type)
    if kind is not None and not len(array):
        return np.empty(0, kind)
    if kind is None or array.null_count:
        return array.to_numpy(zero_copy_only=False)
    return np.frombuffer(array.buffers()[1], kind, len(array), array.offset * np.dtype(kind).itemsize)


def column_of(values: Any) -> pa.Array:
    """Convert an array of whole numbers to a column."""
    values = np.ascontiguousarray(values, np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def texts_of_list(values: Sequence[str | None]) -> pa.Array:
    """Convert texts to a column."""
    if "pandas" in sys.modules:
        return pa.array(values, pa.string())
    encoded = [b"" if value is None else value.encode() for value in values]
    ends = np.zeros(len(encoded) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, encoded), np.int64, len(encoded)), out=ends[1:])
    validity = None
    if None in values:
        bits = np.packbits([value is not None for value in values], bitorder="little")
        validity = pa.py_buffer(bits.tobytes())
    if ends[-1] >= 1 << 31:
        return pa.array(values, pa.string())
    buffers = [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(b"".join(encoded))]
    return pa.Array.from_buffers(pa.string(), len(encoded), buffers)
