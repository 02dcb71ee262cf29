"""The rows of a hierarchy file as Arrow columns, which are read and bound level by level."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from shoal.core.arrays import IntArray
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.hierarchy import MAX_LEVELS, TOP, Hierarchy
from shoal.files.text import declared_delimiter

if TYPE_CHECKING:
    import pyarrow as pa

_BOM = codecs.BOM_UTF8
_QUOTED = '^"[^"]*"$'

Row = tuple[str, ...]


class Rows(Sequence[Row]):
    """Rows of equal length: a value and its labels from level 1 up. Tuples are created on demand."""

    def __init__(self, columns: Sequence[pa.Array]) -> None:
        self.columns = columns

    @cached_property
    def _tuples(self) -> tuple[Row, ...]:
        return tuple(zip(*(column.to_pylist() for column in self.columns), strict=True))

    @cached_property
    def levels(self) -> Sequence[tuple[IntArray, pa.Array]]:
        """The group of each row at each level from 1 up, and the labels of the groups."""
        from shoal.core.arrow import numbers_of

        encoded = [column.dictionary_encode() for column in self.columns[1:]]
        return [(numbers_of(level.indices).astype(np.int64), level.dictionary) for level in encoded]

    @cached_property
    def distinct(self) -> bool:
        """Whether no value appears twice."""
        return len(self.columns[0].unique()) == len(self)

    def __len__(self) -> int:
        return len(self.columns[0])

    @overload
    def __getitem__(self, index: int) -> Row: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Row]: ...
    def __getitem__(self, index: int | slice) -> Row | Sequence[Row]:
        return self._tuples[index]

    def __iter__(self) -> Iterator[Row]:
        return iter(self._tuples)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Rows | tuple) and self._tuples == tuple(other)

    def __hash__(self) -> int:
        return hash(self._tuples)


def rows_of(rows: Sequence[Row]) -> Rows | None:
    """Return rows as columns; None if they differ in length or Arrow cannot store a text."""
    from shoal.core.arrow import texts_of_list

    if isinstance(rows, Rows):
        return rows
    if not rows or not rows[0] or len(set(map(len, rows))) > 1:
        return None
    try:
        return Rows([texts_of_list(column) for column in zip(*rows, strict=True)])
    except UnicodeEncodeError:  # a lone surrogate
        return None


def parse_rows(data: bytes) -> Rows | None:
    """Parse a CSV file with one row per value; return None for unusual files, such as with inner quotes."""
    import pyarrow as pa
    from pyarrow.csv import ConvertOptions, ParseOptions, ReadOptions, read_csv

    start = len(_BOM) if data.startswith(_BOM) else 0
    if b"\0" in data or data.count(b"\r") != data.count(b"\r\n"):
        return None
    line, end = _line(data, start)
    declared = declared_delimiter(line)
    if declared:
        start = end
        line, end = _line(data, start)
    delimiter = declared or (";" if ";" in re.sub(r'"[^"]*"', "", line) else ",")
    width = line.count(delimiter) + 1
    if width > MAX_LEVELS + 1 or data.startswith(_BOM, start):
        return None
    names = [str(number) for number in range(width)]
    try:
        table = read_csv(
            pa.py_buffer(data).slice(start),
            ReadOptions(column_names=names),
            ParseOptions(delimiter=delimiter, quote_char=False, double_quote=False),
            ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False),
        )
        columns = [_unquoted(column.combine_chunks()) for column in table.columns]
    except pa.ArrowException:  # not UTF-8, or rows of different lengths
        return None
    rows = Rows([column for column in columns if column is not None])
    return rows if len(rows.columns) == width and len(rows) and rows.distinct else None


def _line(data: bytes, start: int) -> tuple[str, int]:
    """Return the line that begins at byte `start`, and the position of the next line."""
    end = data.find(b"\n", start) + 1 or len(data)
    return data[start:end].decode("utf-8", "replace"), end


def _unquoted(column: Any) -> Any | None:
    """Remove the quotes around values; None if quotes occur elsewhere, or a value is too long for `csv`."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if isinstance(column, pa.ChunkedArray):  # too many bytes for one array
        return None
    if (pc.max(pc.binary_length(column)).as_py() or 0) > csv.field_size_limit():
        return None
    with_quotes = pc.sum(pc.match_substring(column, '"')).as_py()
    if not with_quotes:
        return column
    if pc.sum(pc.match_substring_regex(column, _QUOTED)).as_py() != with_quotes:
        return None
    return pc.replace_substring_regex(column, '^"([^"]*)"$', r"\1")


def bind_rows(domain: Domain, rows: Sequence[Row], *, top: bool) -> Hierarchy | None:
    """Build a hierarchy from the rows of a file; return None unless it is nested and lists every value once.

    Groups are numbered in the order of the column's values, like in `nest`. A group covers all values that
    the file lists under its label.
    """
    import pyarrow.compute as pc

    from shoal.core.arrow import column_of, numbers_of, texts_of_list

    listed = rows_of(rows)
    if listed is None or not len(domain) or domain.codes is not None or not listed.distinct:
        return None
    values = listed.columns[0]
    try:
        positions = pc.index_in(texts_of_list(domain.texts), value_set=values)
    except UnicodeEncodeError:
        return None
    if positions.null_count or pc.min(pc.binary_length(values)).as_py() == 0:
        return None
    row_of_value = numbers_of(positions)
    if np.bincount(row_of_value).max() > 1:
        return None
    levels = [*listed.levels, *[(np.zeros(len(listed), np.int64), texts_of_list([TOP]))] * top]
    rows_below, groups_below = np.arange(len(listed)), np.arange(len(domain))
    steps: list[IntArray] = []
    labels: list[tuple[str, ...]] = [tuple(text or "" for text in domain.texts)]
    leaves: list[IntArray] = [np.ones(len(domain), np.int64)]
    for groups, names in levels:
        if _function(rows_below, groups) is None:
            return None
        ranked = column_of(groups[row_of_value]).dictionary_encode()
        ranks, first = numbers_of(ranked.indices).astype(np.int64), numbers_of(ranked.dictionary)
        step = _function(groups_below, ranks)
        if step is None:
            return None
        steps.append(step)
        labels.append(tuple(names.take(ranked.dictionary).to_pylist()))
        leaves.append(np.bincount(groups)[first].astype(np.int64))
        rows_below, groups_below = groups, ranks
    return Hierarchy(domain.name, tuple(steps), tuple(labels), tuple(leaves), len(listed))


def _function(below: IntArray, above: IntArray) -> IntArray | None:
    """Return, for each group of the lower level, its group one level up; None if a group is split."""
    step = np.empty(int(below.max(initial=-1)) + 1, np.int64)
    step[below] = above
    return step if np.array_equal(step[below], above) else None
