"""Conversions between NumPy and Arrow that do not make pyarrow import pandas, which is slow."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.core.arrays import BoolArray

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


def flags_of(values: BoolArray) -> pa.Array:
    """Return an array of booleans as a column."""
    bits = pa.py_buffer(np.packbits(values, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, bits])


def texts_of_list(values: Sequence[str | None]) -> pa.Array:
    """Convert texts to a column."""
    if "pandas" in sys.modules:
        return pa.array(values, pa.string())
    validity, texts = None, values
    if None in values:
        bits = np.packbits([value is not None for value in values], bitorder="little")
        validity, texts = pa.py_buffer(bits.tobytes()), ["" if value is None else value for value in values]
    joined = "".join(texts)  # type: ignore[arg-type]
    data = joined.encode()
    if len(data) >= 1 << 31:
        return pa.array(values, pa.string())
    # An ASCII character is one byte, so the lengths of ASCII texts are known without encoding each.
    lengths = map(len, texts if joined.isascii() else [text.encode() for text in texts])  # type: ignore
    ends = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(lengths, np.int64, len(texts)), out=ends[1:])
    return pa.Array.from_buffers(
        pa.string(), len(texts), [validity, pa.py_buffer(ends.astype(np.int32)), pa.py_buffer(data)]
    )
