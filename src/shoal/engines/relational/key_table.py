"""Packed keys that stay in a backend, for tables with too many combinations for memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add, or_
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.core.arrays import IntArray
from shoal.core.arrow import column_of, numbers_of
from shoal.core.counts.counts import Field, layout
from shoal.core.counts.remote import Store
from shoal.engines.relational.relations import (
    COUNT,
    INTERNAL,
    WORD,
    Backend,
    BackendTable,
    IntegerValue,
    table_changed,
)

_CODE, _GROUP, _SIZE, _NUMBER = (INTERNAL + name for name in ("code", "group", "size", "number"))


class KeyTable(Store):
    """A table of the backend with the words of each key and its number of records."""

    def __init__(
        self, backend: Backend, table: BackendTable, fields: Sequence[Field], sizes: Sequence[int]
    ) -> None:
        self.backend = backend
        self.table = table
        self.fields = tuple(fields)
        self.sizes = tuple(sizes)
        self._maps: dict[tuple[int, bytes], BackendTable] = {}
        nulls = reduce(or_, [table[name].isnull() for name in table.columns if name != COUNT])
        size = table[COUNT].sum().cast("int64").fill_null(0)
        counted = table.aggregate(**{_NUMBER: table.count(), _SIZE: size, _CODE: nulls.any()})
        (totals,) = backend.fetch(counted).to_pylist()
        if totals[_CODE]:
            raise table_changed()
        self.combinations, self.records = totals[_NUMBER], totals[_SIZE]

    def grouped(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        return self._fetched(self._groups(maps, kept), layout(self._widths(kept))[-1].word + 1)

    def size_counts(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        groups = self._groups(maps, kept)
        fetched = self.backend.fetch(groups.group_by(COUNT).aggregate(**{_NUMBER: groups.count()}))
        sizes, numbers = numbers_of(fetched[COUNT]), numbers_of(fetched[_NUMBER])
        order = np.argsort(sizes)
        return sizes[order], numbers[order]

    def distinct_counts(
        self, maps: Mapping[int, IntArray], kept: Sequence[int], beside: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Group by `kept` and `beside`, then by `kept`, then by how many codes of `beside` a group has."""
        fields = layout(self._widths([*kept, beside]))
        groups = self._groups(maps, [*kept, beside])
        last = fields[-1]
        last_word = groups[f"{WORD}{last.word}"] & self._bits((1 << last.shift) - 1)
        words = {f"{WORD}{word}": groups[f"{WORD}{word}"] for word in range(last.word)} | {
            f"{WORD}last": last_word
        }
        plain = groups.select(**words, **{COUNT: groups[COUNT]})
        each = plain.group_by(list(words)).aggregate(
            **{_SIZE: plain.count(), COUNT: plain[COUNT].sum().cast("int64")}
        )
        fetched = self.backend.fetch(
            each.group_by(_SIZE).aggregate(**{COUNT: each[COUNT].sum().cast("int64"), _NUMBER: each.count()})
        )
        values, records, numbers = (numbers_of(fetched[name]) for name in (_SIZE, COUNT, _NUMBER))
        order = np.argsort(values)
        return values[order], records[order], numbers[order]

    def sample(self, step: int, kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Choose keys by a hash of their bits, so that neighbours are not chosen together."""
        word = self.table[f"{WORD}0"]
        mixed = word ^ (word >> 17) ^ (word >> 31)
        fields = layout(self._widths(kept))
        some = self.table.filter(mixed % step == 0)
        words = self._words(some, kept, fields)
        return self._fetched(some.select(**words, **{COUNT: some[COUNT]}), fields[-1].word + 1)

    def _widths(self, kept: Sequence[int]) -> list[int]:
        return [self.fields[number].mask.bit_length() for number in kept]

    def _fetched(self, table: BackendTable, words: int) -> tuple[IntArray, IntArray]:
        fetched = self.backend.fetch(table)
        keys = np.stack([numbers_of(fetched[f"{WORD}{word}"]) for word in range(words)])
        return keys, numbers_of(fetched[COUNT])

    def _groups(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> BackendTable:
        """Map codes by joins with small tables, pack them again, group, and sum the counts."""
        fields = layout(self._widths(kept))
        joined: Any = self.table
        shifted: dict[int, IntegerValue] = {}
        shifts: dict[int, int] = {}
        for number, field in zip(kept, fields, strict=True):
            codes = maps.get(number)
            if codes is None or (codes == np.arange(len(codes))).all():
                continue
            if not codes.any():
                shifted[number] = self._bits(0)
                continue
            mapping = self._map(number, codes)
            joined = joined.inner_join(mapping, self._code(self.table, number) == mapping[f"{_CODE}{number}"])
            shifts[number] = field.shift
        wide: BackendTable = joined
        shifted |= {number: wide[f"{_GROUP}{number}"] << by for number, by in shifts.items()}
        keyed = wide.select(**self._words(wide, kept, fields, shifted), **{COUNT: wide[COUNT]})
        words = [name for name in keyed.columns if name != COUNT]
        return keyed.group_by(words).aggregate(**{COUNT: keyed[COUNT].sum().cast("int64")})

    def _map(self, number: int, codes: IntArray) -> BackendTable:
        """Return the table of a map, uploaded once: searches use few different maps, but often."""
        known = (number, codes.tobytes())
        if known not in self._maps:
            columns = {f"{_CODE}{number}": np.arange(len(codes)), f"{_GROUP}{number}": codes}
            table = pa.table({name: column_of(values) for name, values in columns.items()})
            self._maps[known] = self.backend.upload(table)
        return self._maps[known]

    def _words(
        self,
        table: BackendTable,
        kept: Sequence[int],
        fields: Sequence[Field],
        shifted: Mapping[int, IntegerValue] | None = None,
    ) -> dict[str, IntegerValue]:
        """Shift codes to the fields of new words; fields that move equally far are shifted together."""
        parts: dict[int, list[IntegerValue]] = {field.word: [] for field in fields}
        runs: dict[tuple[int, int, int], int] = {}
        for number, field in zip(kept, fields, strict=True):
            if shifted and number in shifted:
                parts[field.word].append(shifted[number])
                continue
            source = self.fields[number]
            move = (source.word, field.word, field.shift - source.shift)
            runs[move] = runs.get(move, 0) | (source.mask << source.shift)
        for (word, new, by), mask in runs.items():
            bits = table[f"{WORD}{word}"] & self._bits(mask)
            parts[new].append(bits << by if by > 0 else bits >> -by if by < 0 else bits)
        return {f"{WORD}{word}": reduce(add, source) for word, source in sorted(parts.items())}

    def _code(self, table: BackendTable, number: int) -> IntegerValue:
        field = self.fields[number]
        return (table[f"{WORD}{field.word}"] >> field.shift) & self._bits(field.mask)

    def _bits(self, number: int) -> IntegerValue:
        return self.backend.expressions.literal(number, "int64")
