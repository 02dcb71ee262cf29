"""Recoding as a relational expression: labels, suppressed records and the order of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from shoal.core.arrays import IntArray
from shoal.core.arrow import column_of, texts_of_list
from shoal.core.counts.counts import Domain, Field, layout
from shoal.core.recoding.groups import CellValue, ReleasedLabels
from shoal.core.recoding.recoding import Recoding, Regions
from shoal.engines.relational.relations import (
    CODE,
    GONE,
    INTERNAL,
    POSITION,
    ROW,
    WORD,
    Backend,
    BackendTable,
    IntegerValue,
    coded,
    joined,
    literal,
    without_nan,
    words_of,
)

_RANK, _LABEL, _PART, CLASS, _CHANCE = (INTERNAL + name for name in ("r", "l", "part_", "class", "chance"))
# A table with its joins, the expressions of the released columns, and the sort keys.
RecodedTable = tuple[BackendTable, dict[str, Any], list[Any]]


@dataclass(frozen=True)
class TableRecoding:
    """A recoding of the rows of a table in its backend.

    Suppressed records are dropped if `blank` is None, else kept without values in the columns of `blank`.
    """

    backend: Backend
    source: BackendTable
    recoding: Recoding
    domains: Mapping[str, Domain]
    blank: Sequence[str] | None

    @property
    def expressions(self) -> Any:
        return self.backend.expressions

    @cached_property
    def table(self) -> BackendTable:
        """The table, with nulls for NaN in the columns of the recoding."""
        return without_nan(self.backend, self.source, self.recoding.columns)

    @cached_property
    def fields(self) -> tuple[Field, ...]:
        """The field of each column's codes in a packed key."""
        return layout([self.domains[name].bits for name in self.recoding.columns])

    def recode(self, keep: Sequence[str]) -> BackendTable:
        """Replace values by labels, drop or blank suppressed records, and hide the original order of rows.

        If rows are numbered, columns that do not change in kept rows are left out, because they are later
        taken from the frame.
        """
        if POSITION in self.table.columns:
            changed = {*self.recoding.columns, *(self.blank or ())}
            keep = [name for name in keep if name in changed] + [POSITION]
        regions = self.recoding.regions
        wide, released, order = self._levels(keep) if regions is None else self._regions(regions, keep)
        gone = self.masked(wide)
        if gone is not None:
            blanked = (name for name in self.blank or () if name in released)
            released |= {name: gone.ifelse(self.expressions.null(), released[name]) for name in blanked}
            order = [gone.ifelse(self.expressions.null(), key) for key in order]
        return wide.order_by([*order, self.expressions.random()]).select(
            [e.name(name) for name, e in released.items()]
        )

    def masked(self, wide: BackendTable) -> Any:
        """Return an expression that marks suppressed rows; None if none are kept."""
        if self.blank is None:
            return None
        if self.recoding.regions is not None:
            return wide[CLASS].isnull()
        return wide[GONE].notnull() if GONE in wide.columns else None

    def _levels(self, keep: Sequence[str]) -> RecodedTable:
        """Look up each label by value; rows are sorted by released values, in random order inside a class."""
        recoding = self.recoding
        shown = dict(zip(recoding.columns, map(_shown, recoding.labels, recoding.groups), strict=True))
        ranks = [
            _ranks(labels, groups) * (name in keep)
            for name, labels, groups in zip(recoding.columns, recoding.labels, recoding.groups, strict=True)
        ]
        ranked = _ranked_layout(ranks)
        wide = joined(self.backend, self.table, self.domains, self._looked_up(shown, ranks, ranked))
        if recoding.suppressed is not None:
            wide = self.without(wide, words_of(self.backend, wide, CODE, self.fields), recoding.suppressed)
        released: dict[str, Any] = {}
        for name in keep:
            if not shown.get(name):
                released[name] = _as_is(wide, name) if name in recoding.columns else wide[name]
                continue
            position = recoding.columns.index(name)
            for number, (column, values) in enumerate(shown[name].items()):
                label = f"{_LABEL}{number}_{position}"
                released[column] = wide[label] if _varies(values) else literal(self.backend, values)
        order = (
            list(reversed(words_of(self.backend, wide, _RANK, ranked).values()))
            if any(map(np.any, ranks))
            else []
        )
        return wide, released, order

    def _looked_up(
        self, shown: Mapping[str, Mapping[str, pa.Array]], ranks: Sequence[IntArray], ranked: Sequence[Field]
    ) -> dict[str, dict[str, pa.Array]]:
        """Return the columns to join by value: labels, codes of suppressed classes, and ranks."""
        looked_up = {}
        for position, (name, groups) in enumerate(
            zip(self.recoding.columns, self.recoding.groups, strict=True)
        ):
            # A label that is the same for every value needs no join: at the top level, a column is constant.
            extra = {
                f"{_LABEL}{number}_{position}": values
                for number, values in enumerate(shown[name].values())
                if _varies(values)
            }
            if self.recoding.suppressed is not None and groups.any():
                extra[f"{CODE}{position}"] = column_of(groups << self.fields[position].shift)
            if ranks[position].any():
                extra[f"{_RANK}{position}"] = column_of(ranks[position] << ranked[position].shift)
            if extra:
                looked_up[name] = extra
        return looked_up

    def _regions(self, regions: Regions, keep: Sequence[str]) -> RecodedTable:
        """Look up each row's class by its packed key, and then the labels of the class."""
        columns = self.recoding.columns
        wide, words = coded(self.backend, self.table, {name: self.domains[name] for name in columns})
        wide = self.with_classes(wide.mutate(**words), list(words), regions)
        labels = _class_labels(self.recoding, regions, keep)
        wide = self.with_class_values(wide, labels, regions)
        released: dict[str, Any] = {}
        for name in keep:
            if name not in columns:
                released[name] = wide[name]
                continue
            position = columns.index(name)
            for number, column in enumerate(self.recoding.labels[position] or ()):
                released[column] = wide[f"{_LABEL}{number}_{position}"]
            if self.recoding.labels[position] is None:
                flag, kept = f"{_LABEL}{position}", _as_is(wide, name)
                released[name] = wide[flag].ifelse(self.expressions.null(), kept) if flag in labels else kept
        return wide, released, [wide[CLASS]]

    def with_classes(self, keyed: BackendTable, words: Sequence[str], regions: Regions) -> BackendTable:
        """Join each row's class by its packed key; masked rows have none."""
        if regions.split:  # the records of a combination are assigned at random
            keyed = keyed.mutate(
                **{_CHANCE: self.expressions.random()}
            )  # a window cannot be ordered by a function call
            window = self.expressions.window(
                group_by=[keyed[word] for word in words], order_by=keyed[_CHANCE]
            )
            keyed = keyed.mutate(**{ROW: self.expressions.row_number().over(window)})
        parts = self.backend.upload(_parts(regions, [*words, *([ROW] if regions.split else [])]))
        same = [keyed[name.removeprefix(_PART)] == parts[name] for name in parts.columns if name != CLASS]
        return keyed.inner_join(parts, same) if self.blank is None else keyed.left_join(parts, same)

    def with_class_values(
        self, wide: BackendTable, values: Mapping[str, pa.Array], regions: Regions
    ) -> BackendTable:
        """Join the values of each class to its rows."""
        if not values:
            return wide
        classes = column_of(np.arange(len(regions.suppressed)))
        uploaded = self.backend.upload(pa.table({GONE: classes, **values}))
        return wide.left_join(uploaded, wide[CLASS] == uploaded[GONE])

    def without(
        self, table: BackendTable, words: Mapping[str, IntegerValue], suppressed: IntArray
    ) -> BackendTable:
        """Remove the rows whose packed groups are suppressed, or mark them if they are kept."""
        keyed = table.mutate(**words)
        gone = {f"{GONE}{word}": column_of(keys) for word, keys in enumerate(suppressed)}
        refused = self.backend.upload(pa.table(gone))
        same = [keyed[f"{WORD}{word}"] == refused[f"{GONE}{word}"] for word in range(len(suppressed))]
        if self.blank is None:
            return keyed.anti_join(refused, same)
        return keyed.left_join(refused.mutate(**{GONE: self.expressions.literal(1)}), same)


def _parts(regions: Regions, names: Sequence[str]) -> pa.Table:
    """Return the packed key and class of every kept part; if regions split keys, one row per record."""
    kept = np.flatnonzero(~regions.suppressed[regions.classes])
    sizes = regions.sizes[kept]
    if regions.split:
        positions = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        positions += np.repeat(regions.before[kept], sizes)
        kept = np.repeat(kept, sizes)
    arrays = [*regions.keys[:, regions.rows[kept]], *([positions] if regions.split else [])]
    columns = {f"{_PART}{name}": column_of(values) for name, values in zip(names, arrays, strict=True)}
    return pa.table(columns | {CLASS: column_of(regions.classes[kept])})


def _class_labels(recoding: Recoding, regions: Regions, keep: Sequence[str]) -> dict[str, pa.Array]:
    """Return each class's values of the released columns; for unchanged columns, whether they are blank."""
    arrays = {}
    columns = zip(recoding.columns, recoding.labels, recoding.column_groups, regions.groups, strict=True)
    for position, (name, labels, groups, codes) in enumerate(columns):
        if name in keep and labels is not None:
            for number, values in enumerate(labels.values()):
                arrays[f"{_LABEL}{number}_{position}"] = _array(values).take(column_of(codes))
        elif name in keep and groups.blank is not None:
            arrays[f"{_LABEL}{position}"] = pa.array(codes == groups.blank)
    return arrays


def _as_is(table: BackendTable, name: str) -> Any:
    """Return an unchanged quasi-identifier; -0.0 becomes 0.0, because both count as equal."""
    kind = table[name].type()
    return (table[name] + 0.0).cast(kind) if kind.is_floating() else table[name]


def _shown(labels: ReleasedLabels | None, groups: IntArray) -> dict[str, pa.Array]:
    """Return the cells of each released column per value; an empty dict if the column stays unchanged."""
    codes = column_of(groups)
    return {column: _array(values).take(codes) for column, values in (labels or {}).items()}


def _ranks(labels: ReleasedLabels | None, groups: IntArray) -> IntArray:
    """Return each value's rank in the order of the released values; nulls are last."""
    if labels is None:
        return np.arange(len(groups))  # a domain is sorted
    released = list(zip(*labels.values(), strict=True))  # per group
    order = sorted(set(released), key=lambda ends: [(end is None, end) for end in ends])
    rank = {ends: position for position, ends in enumerate(order)}
    return np.array([rank[ends] for ends in released])[groups]


def _ranked_layout(ranks: Sequence[IntArray]) -> tuple[Field, ...]:
    """Lay out ranks so that the first column has the highest bits; a constant column takes none."""
    return layout([int(rank.max()).bit_length() for rank in reversed(ranks)])[::-1]


def _varies(values: pa.Array) -> bool:
    return len(values.unique()) > 1


def _array(values: Sequence[CellValue]) -> pa.Array:
    """Return labels as an Arrow column: as text or as numbers, integers if all are whole."""
    try:
        texts = [value for value in values if isinstance(value, str)]
        array = texts_of_list(texts) if len(texts) == len(values) else pa.array(values)
    except (pa.ArrowInvalid, OverflowError):  # beyond 64 bits
        array = pa.array([None if value is None else float(value) for value in values], pa.float64())
    return array.cast(pa.float64()) if pa.types.is_null(array.type) else array
