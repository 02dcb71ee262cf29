"""Packed keys that stay in a backend: the combinations of a table that are too many for memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr.types import IntegerValue, Table

from shoal.core.arrays import IntArray
from shoal.core.counts import Field, layout
from shoal.core.far import Store
from shoal.engines.relations import COUNT, OWN, WORD, Site

_CODE, _GROUP, _SIZE, _NUMBER = (OWN + name for name in ("code", "group", "size", "number"))


class KeyTable(Store):
    """A table of the backend with the words of each key, and how many records have it."""

    def __init__(self, site: Site, table: Table, fields: Sequence[Field], sizes: Sequence[int]) -> None:
        """Take a table that the backend keeps."""
        self.site = site
        self.table = table
        self.fields = tuple(fields)
        self.sizes = tuple(sizes)
        self._maps: dict[tuple[int, bytes], Table] = {}
        counted = table.aggregate(
            **{_NUMBER: table.count(), _SIZE: table[COUNT].sum().cast("int64").fill_null(0)}
        )
        found = site.fetch(counted)
        self.combinations, self.records = found[_NUMBER][0].as_py(), found[_SIZE][0].as_py()

    def grouped(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Group by some fields and bring the groups here."""
        return self._fetched(self._groups(maps, kept), layout(self._widths(kept))[-1].word + 1)

    def spread(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Group by some fields and bring the sizes of groups here, in one query."""
        groups = self._groups(maps, kept)
        found = self.site.fetch(groups.group_by(COUNT).aggregate(**{_NUMBER: groups.count()}))
        sizes, numbers = found[COUNT].to_numpy(), found[_NUMBER].to_numpy()
        order = np.argsort(sizes)
        return sizes[order], numbers[order]

    def variety(
        self, maps: Mapping[int, IntArray], kept: Sequence[int], beside: int
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Group by some fields and one more, then without that, then by how many codes it has in a group."""
        fields = layout(self._widths([*kept, beside]))
        groups = self._groups(maps, [*kept, beside])
        last = fields[-1]
        own = groups[f"{WORD}{last.word}"] & ibis.literal((1 << last.shift) - 1, "int64")
        words = {f"{WORD}{word}": groups[f"{WORD}{word}"] for word in range(last.word)} | {f"{WORD}last": own}
        plain = groups.select(**words, **{COUNT: groups[COUNT]})
        each = plain.group_by(list(words)).aggregate(
            **{_SIZE: plain.count(), COUNT: plain[COUNT].sum().cast("int64")}
        )
        found = self.site.fetch(
            each.group_by(_SIZE).aggregate(**{COUNT: each[COUNT].sum().cast("int64"), _NUMBER: each.count()})
        )
        values, records, numbers = (found[name].to_numpy() for name in (_SIZE, COUNT, _NUMBER))
        order = np.argsort(values)
        return values[order], records[order], numbers[order]

    def sample(self, step: int, kept: Sequence[int]) -> tuple[IntArray, IntArray]:
        """Choose keys by their own bits, mixed, so that neighbours are not chosen together."""
        word = self.table[f"{WORD}0"]
        mixed = word ^ (word >> 17) ^ (word >> 31)
        fields = layout(self._widths(kept))
        some = self.table.filter(mixed % step == 0)
        words = self._words(some, kept, fields)
        return self._fetched(some.select(**words, **{COUNT: some[COUNT]}), fields[-1].word + 1)

    def _widths(self, kept: Sequence[int]) -> list[int]:
        return [self.fields[place].mask.bit_length() for place in kept]

    def _fetched(self, table: Table, words: int) -> tuple[IntArray, IntArray]:
        found = self.site.fetch(table)
        keys = np.stack([found[f"{WORD}{word}"].to_numpy() for word in range(words)])
        return keys, found[COUNT].to_numpy()

    def _groups(self, maps: Mapping[int, IntArray], kept: Sequence[int]) -> Table:
        """Map codes by small tables, pack them afresh, group, and add up."""
        fields = layout(self._widths(kept))
        joined: Any = self.table
        shifted: dict[int, IntegerValue] = {}
        shifts: dict[int, int] = {}
        for place, field in zip(kept, fields, strict=True):
            codes = maps.get(place)
            if codes is None or (codes == np.arange(len(codes))).all():
                continue
            if not codes.any():
                shifted[place] = ibis.literal(0, "int64")
                continue
            held = self._map(place, codes)
            joined = joined.inner_join(held, self._code(self.table, place) == held[f"{_CODE}{place}"])
            shifts[place] = field.shift
        wide: Table = joined
        shifted |= {place: wide[f"{_GROUP}{place}"] << by for place, by in shifts.items()}
        keyed = wide.select(**self._words(wide, kept, fields, shifted), **{COUNT: wide[COUNT]})
        words = [name for name in keyed.columns if name != COUNT]
        return keyed.group_by(words).aggregate(**{COUNT: keyed[COUNT].sum().cast("int64")})

    def _map(self, place: int, codes: IntArray) -> Table:
        """Return the table of a map, which is put into the backend once: searches ask for few maps, often."""
        known = (place, codes.tobytes())
        if known not in self._maps:
            own = {f"{_CODE}{place}": np.arange(len(codes)), f"{_GROUP}{place}": codes}
            table = pa.table({name: pa.array(values) for name, values in own.items()})
            self._maps[known] = self.site.hold(table)
        return self._maps[known]

    def _words(
        self,
        table: Table,
        kept: Sequence[int],
        fields: Sequence[Field],
        shifted: Mapping[int, IntegerValue] | None = None,
    ) -> dict[str, IntegerValue]:
        """Add up the codes of some fields, shifted to where they go; neighbours that stay move together."""
        parts: dict[int, list[IntegerValue]] = {field.word: [] for field in fields}
        runs: dict[tuple[int, int, int], int] = {}
        for place, field in zip(kept, fields, strict=True):
            if shifted and place in shifted:
                parts[field.word].append(shifted[place])
                continue
            own = self.fields[place]
            move = (own.word, field.word, field.shift - own.shift)
            runs[move] = runs.get(move, 0) | (own.mask << own.shift)
        for (word, new, by), mask in runs.items():
            held = table[f"{WORD}{word}"] & ibis.literal(mask, "int64")
            parts[new].append(held << by if by > 0 else held >> -by if by < 0 else held)
        return {f"{WORD}{word}": reduce(add, own) for word, own in sorted(parts.items())}

    def _code(self, table: Table, place: int) -> IntegerValue:
        field = self.fields[place]
        return (table[f"{WORD}{field.word}"] >> field.shift) & ibis.literal(field.mask, "int64")
