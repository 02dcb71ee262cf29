"""Unchanged columns of a release: rows of the caller's frame are selected by position.

The columns keep the values and types of the input. A position below 0 stands for a missing cell. A type that
cannot hold missing values is replaced by its nullable form, with a note.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from shoal.core.arrays import BoolArray, IntArray
from shoal.core.contracts import ReleaseColumns
from shoal.engines.frames import Frame, library_of
from shoal.engines.relational.relations import POSITION
from shoal.errors import DataError

_EXTENSION = (b"ARROW:extension:name", b"ARROW:extension:metadata")
_FEWER = "Column {!r}: categories that no released record has were removed from its type."


def release_frame(
    source: Frame, recoded: pa.Table, release_columns: ReleaseColumns
) -> tuple[Any, tuple[str, ...]]:
    """Return a release of the same type as a frame, and notes on values and types that had to change.

    `recoded` contains the position of each released row in the source, and the changed columns. It may also
    contain an unchanged column as the database returns it, with null in blanked cells.
    """
    positions = recoded[POSITION].to_numpy()
    taken: dict[str, Any] = {}
    notes: list[str] = []
    build = _BUILDERS[library_of(source.frame) or "pyarrow"]
    for name in release_columns.unchanged:
        rows = positions.copy()
        if name in recoded.column_names:
            counted = recoded[name].combine_chunks()
            null = pc.is_null(counted).to_numpy(zero_copy_only=False)
            if name in release_columns.counted:
                rows = _first_equal(rows, counted)
                rows[null] = -1
            else:
                valid = pc.is_valid(source.arrow[name]).to_numpy()
                rows[null & valid[positions]] = -1
        taken[name] = build.take(source.frame, name, rows, notes)
        if name in release_columns.counted:
            taken[name] = build.without_negative_zero(taken[name])
            notes += _merged_note(source, name, positions, rows)
    columns = {name: taken[name] if name in taken else recoded[name] for name in release_columns.order}
    return build.frame(source.frame, columns, taken), tuple(notes)


def _first_equal(positions: IntArray, counted: pa.Array) -> IntArray:
    """Return, for each row, the first position whose value counts as equal to the row's value."""
    codes = pc.dictionary_encode(counted, null_encoding="encode").indices.to_numpy()
    first = np.full(int(codes.max(initial=-1)) + 1, np.iinfo(np.int64).max)
    np.minimum.at(first, codes, positions)
    return first[codes]


def _merged_note(source: Frame, name: str, positions: IntArray, rows: IntArray) -> list[str]:
    """Return a note if different values of a column count as equal and were replaced by one of them."""
    column = source.arrow[name]
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        return [f"Column {name!r}: NaN counts as missing and is released as missing."]
    values = _distinguishable(source.frame, name)
    if values is None:
        return []
    moved = np.flatnonzero((positions != rows) & (rows >= 0))
    if all(
        values(a) == values(b) for a, b in zip(positions[moved].tolist(), rows[moved].tolist(), strict=True)
    ):
        return []
    return [f"Column {name!r}: different values that count as equal, such as 1 and 1.0, are released as one."]


def _distinguishable(frame: Any, name: str) -> Callable[[int], Any] | None:
    """Return a key function that distinguishes values that may count as equal: objects, zoned times."""
    library = library_of(frame)
    column = frame.iloc[:, _column_index(frame, name)] if library == "pandas" else frame[name]
    if library == "pandas" and column.dtype == object:
        values = column.to_numpy()
        return lambda row: (type(values[row]), repr(values[row]))
    kind = str(column.type if library == "pyarrow" else column.dtype)
    if not kind.startswith(("timestamp[", "datetime64[", "Datetime(")):
        return None
    arrow = column if library == "pyarrow" else pa.chunked_array([pa.array(column)])
    if not arrow.type.tz:
        return None
    instants = arrow.cast(pa.int64()).fill_null(0).to_numpy()
    return lambda row: instants[row]


class _Arrow:
    """Columns of a pyarrow table."""

    @staticmethod
    def take(frame: pa.Table, name: str, rows: IntArray, notes: list[str]) -> pa.ChunkedArray:
        field = frame.schema.field(name)
        column = take_arrow(name, frame[name], rows)
        if not field.nullable and column.null_count:
            notes.append(_nullable(name, f"{field.type} not null", str(field.type)))
        return column

    @staticmethod
    def without_negative_zero(column: pa.ChunkedArray) -> pa.ChunkedArray:
        """Replace -0.0 by 0.0, because both count as equal."""
        if pa.types.is_floating(column.type) and not pa.types.is_float16(column.type):
            return pc.add(column, pa.scalar(0.0, column.type))
        return column

    @staticmethod
    def frame(frame: pa.Table, columns: Mapping[str, Any], taken: Mapping[str, Any]) -> pa.Table:
        fields = []
        for name, column in columns.items():
            field = pa.field(name, column.type)
            if name in taken:
                before = frame.schema.field(name)
                kept = {key: value for key, value in (before.metadata or {}).items() if key in _EXTENSION}
                field = pa.field(name, column.type, before.nullable or bool(column.null_count), kept or None)
            fields.append(field)
        return pa.table(list(columns.values()), pa.schema(fields))


def take_arrow(name: str, column: pa.ChunkedArray, rows: IntArray) -> pa.ChunkedArray:
    """Take rows of a column, null if the position is below 0; a dictionary keeps only used values."""
    kind = column.type
    indices = pa.array(rows, mask=rows < 0)
    if pa.types.is_string_view(kind) or pa.types.is_binary_view(kind):
        wide = pa.large_string() if pa.types.is_string_view(kind) else pa.large_binary()
        return column.cast(wide).take(indices).cast(kind)
    try:
        if pa.types.is_run_end_encoded(kind):
            decoded = pa.chunked_array([pc.run_end_decode(chunk) for chunk in column.chunks], kind.value_type)
            taken = decoded.take(indices).combine_chunks()
            return pa.chunked_array([pc.run_end_encode(taken, run_end_type=kind.run_end_type)])
        taken = column.take(indices)
    except pa.ArrowNotImplementedError:
        raise DataError(
            f"Column {name!r} holds {kind}, from which pyarrow cannot select rows. Cast it to another type."
        ) from None
    return _used_only(taken) if pa.types.is_dictionary(kind) else taken


def _used_only(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Drop dictionary values that no row has, because they may occur in suppressed records only."""
    array = column.unify_dictionaries().combine_chunks()
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    used = np.unique(array.indices.drop_null().to_numpy())
    codes = np.zeros(len(array.dictionary), np.int64)
    codes[used] = np.arange(len(used))
    null = array.indices.is_null().to_numpy(zero_copy_only=False)
    new_codes = codes[array.indices.fill_null(0).to_numpy()] if len(codes) else np.zeros(len(array), np.int64)
    indices = pa.array(new_codes, mask=null).cast(column.type.index_type)
    kept = array.dictionary.take(pa.array(used))
    compact = pa.DictionaryArray.from_arrays(indices, kept, ordered=column.type.ordered)
    return pa.chunked_array([compact])


class _Polars:
    """Columns of a polars frame."""

    @staticmethod
    def take(frame: Any, name: str, rows: IntArray, notes: list[str]) -> Any:
        import polars

        series = frame[name].gather(polars.from_arrow(pa.array(rows, mask=rows < 0)))
        if isinstance(series.dtype, polars.Enum):
            used, all_values = (set(item.unique().drop_nulls()) for item in (series, frame[name]))
            if all_values - used:
                kept = [item for item in series.dtype.categories if item in used]
                notes.append(_FEWER.format(name))
                return series.cast(polars.String).cast(polars.Enum(kept))
        return series

    @staticmethod
    def without_negative_zero(series: Any) -> Any:
        return (series + 0.0).cast(series.dtype) if series.dtype.is_float() else series

    @staticmethod
    def frame(frame: Any, columns: Mapping[str, Any], taken: Mapping[str, Any]) -> Any:
        import polars

        return polars.DataFrame(
            [
                columns[name] if name in taken else polars.Series(name, polars.from_arrow(columns[name]))
                for name in columns
            ]
        )


class _Pandas:
    """Columns of a pandas frame."""

    @staticmethod
    def take(frame: Any, name: str, rows: IntArray, notes: list[str]) -> Any:
        import pandas

        series = frame.iloc[:, _column_index(frame, name)]
        dtype = series.dtype
        taken = _take_pandas(series, rows)
        if isinstance(dtype, pandas.CategoricalDtype):
            codes = series.array.codes
            if not np.isin(codes[codes >= 0], taken.codes).all():
                taken = taken.remove_unused_categories()
                notes.append(_FEWER.format(name))
        elif taken.dtype != dtype:
            notes.append(_nullable(name, str(dtype), str(taken.dtype)))
        return taken

    @staticmethod
    def without_negative_zero(array: Any) -> Any:
        import pandas

        return (array + 0.0).astype(array.dtype) if pandas.api.types.is_float_dtype(array.dtype) else array

    @staticmethod
    def frame(frame: Any, columns: Mapping[str, Any], taken: Mapping[str, Any]) -> Any:
        import pandas

        labels = {str(label): label for label in frame.columns}
        index = pandas.RangeIndex(len(next(iter(columns.values()))))
        series = [
            pandas.Series(column, index, column.dtype)
            if name in taken
            else pandas.Series(_plain_pandas(column))
            for name, column in columns.items()
        ]
        result = pandas.concat(series, axis=1) if series else pandas.DataFrame(index=index)
        result.columns = pandas.Index([labels.get(name, name) for name in columns], tupleize_cols=False)
        return result


def _column_index(frame: Any, name: str) -> int:
    """Return the position of a column; its label need not be a string."""
    return next(index for index, label in enumerate(frame.columns) if str(label) == name)


def _take_pandas(series: Any, rows: IntArray) -> Any:
    """Take rows of a column, missing if the position is below 0, in a type that can hold missing values."""
    import pandas

    kind = series.dtype
    if isinstance(kind, pandas.ArrowDtype):
        column = pa.chunked_array(series.array.__arrow_array__())
        return pandas.arrays.ArrowExtensionArray(take_arrow(series.name, column, rows))
    values = series.to_numpy() if isinstance(kind, np.dtype) else series.array
    blank: BoolArray = rows < 0
    if not blank.any():
        return values.take(rows)
    if isinstance(kind, pandas.SparseDtype) and kind.subtype.kind not in "fcO":
        return _take_pandas(series.sparse.to_dense(), rows)
    if isinstance(kind, np.dtype) and kind.kind in "biu":
        return pandas.array(values, dtype=_NULLABLE[kind.name]).take(rows, allow_fill=True)
    if isinstance(kind, np.dtype) and kind.kind == "O":
        taken = values.take(rows)
        taken[blank] = None
        return taken
    filled = pandas.api.extensions.take(values, rows, allow_fill=True)
    if filled.dtype == kind:
        return filled
    # The type was changed to one that may round, for example for intervals of integers. Objects stay exact.
    return _take_pandas(series.astype(object), rows)


_NULLABLE = {"bool": "boolean"} | {
    f"{sign}int{bits}": f"{sign.upper()}Int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)
}


def _plain_pandas(column: pa.ChunkedArray) -> Any:
    """Convert labels to pandas; whole numbers stay integers if some are missing."""
    import pandas

    if pa.types.is_integer(column.type) and column.null_count:
        return pandas.array(column.to_pylist(), dtype="Int64")
    return column.to_pandas()


def _nullable(name: str, before: str, after: str) -> str:
    return f"Column {name!r}: {before} cannot hold missing values, so it is released as {after}."


_BUILDERS: dict[str, Any] = {"pyarrow": _Arrow, "polars": _Polars, "pandas": _Pandas}
