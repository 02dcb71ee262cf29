"""Counting and recoding as relational expressions: the code that every Ibis engine shares.

Rows stay in the engine. Out come the distinct values of each column and (packed key, count); in go
dimension tables: value -> code, value -> label, and the keys of suppressed classes. Codes arrive in the
dimension tables already shifted to their fields, so a packed key is a sum; grouping and sorting by one
integer is several times as fast as by the columns it stands for, and needs less memory.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from ibis.expr.types import IntegerValue, Table

from shoal.core.arrays import IntArray
from shoal.core.counts import Counts, Domain, Field, from_joint, layout
from shoal.core.groups import Labels, Shown
from shoal.core.recoding import Recoding
from shoal.core.regions import Regions
from shoal.errors import DataError

OWN = "__shoal_"  # begins the names of our own columns; a table must not have such
_COUNT, _WORD, _VALUE, _NULL, _CODE, _RANK, _LABEL, _GONE, _ROW, _PART, _CLASS, _CHANCE = (
    OWN + name for name in ("n", "w", "v", "null", "c", "r", "l", "gone", "row", "part_", "class", "chance")
)


def domains(table: Table, columns: Sequence[str]) -> dict[str, Domain]:
    """Return each column's distinct values, in an order that the rows' order does not touch."""
    wanted = {f"{_VALUE}{place}": table[name].collect(distinct=True) for place, name in enumerate(columns)}
    wanted |= {f"{_NULL}{place}": table[name].isnull().any() for place, name in enumerate(columns)}
    seen = table.aggregate(**wanted).to_pyarrow()  # one query: a text file is parsed once for all columns
    found = {}
    for place, name in enumerate(columns):
        values = seen[f"{_VALUE}{place}"].combine_chunks().flatten()
        if seen[f"{_NULL}{place}"][0].as_py():
            values = pa.concat_arrays([values, pa.nulls(1, values.type)])
        try:
            values = values.take(pc.sort_indices(values))
        except pa.ArrowNotImplementedError:
            message = f"Column {name!r} holds {values.type}; a column to count must hold single values."
            raise DataError(message) from None
        found[name] = Domain(name, values, tuple(map(text_of, _plain(values))))
    return found


def _plain(values: pa.Array) -> Sequence[object]:
    """Return Python values; a short float keeps its few digits."""
    if pa.types.is_float32(values.type):
        return [None if value is None else float(str(np.float32(value))) for value in values.to_pylist()]
    if pa.types.is_timestamp(values.type) and values.type.tz:
        values = pc.strftime(values, format="%Y-%m-%d %H:%M:%S%z")
    return values.to_pylist()


def text_of(value: object) -> str | None:
    """Write a value the way hierarchies name it: 45.0 as 45, true as true, a date as 2025-01-31.

    >>> text_of(45.0), text_of(True), text_of("007"), text_of(float("nan"))
    ('45', 'true', '007', None)
    """
    if value is None:
        return None
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if np.isnan(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    if isinstance(value, Decimal):
        return str(int(value)) if value == value.to_integral_value() else str(value.normalize())
    return str(value)


def count(table: Table, columns: Sequence[str], sensitive: Sequence[str]) -> tuple[Counts, dict[str, Domain]]:
    """Group by the columns in the engine, on packed integer keys."""
    found = domains(table, [*columns, *sensitive])
    coded, words = _coded(table, found)
    keyed = coded.select(**words)
    grouped = keyed.group_by(list(words)).aggregate(**{_COUNT: keyed.count()})
    # The canonical order is made here, by all threads; the core's own sort then finds it done.
    packed = grouped.order_by(list(reversed(words))).to_pyarrow()
    if any(packed[name].null_count for name in words):
        message = "The table changed while it was counted. Give one that stays as it is."
        raise DataError(message)
    keys = np.stack([packed[name].to_numpy() for name in words])
    sizes = packed[_COUNT].to_numpy()
    counts = from_joint(
        [found[name].bits for name in columns], {name: found[name].bits for name in sensitive}, keys, sizes
    )
    return counts, found


def positions(
    table: Table, columns: Sequence[str], domains: Mapping[str, Domain], keys: IntArray
) -> IntArray:
    """Find rows by their packed key; they are numbered as they are scanned, before any join."""
    numbered = table.select(*columns, **{_ROW: ibis.row_number()})
    coded, words = _coded(numbered, {name: domains[name] for name in columns})
    wanted = ibis.memtable(pa.table({f"{_GONE}{word}": pa.array(own) for word, own in enumerate(keys)}))
    keyed = coded.mutate(**words)
    conditions = [keyed[name] == wanted[f"{_GONE}{word}"] for word, name in enumerate(words)]
    found = keyed.semi_join(wanted, conditions).select(_ROW).order_by(_ROW).to_pyarrow()
    places: IntArray = found[_ROW].to_numpy()
    return places


def _coded(table: Table, found: Mapping[str, Domain]) -> tuple[Table, dict[str, IntegerValue]]:
    """Join the columns' codes, shifted to their fields, and add them up to words."""
    fields = layout([domain.bits for domain in found.values()])
    dimensions = {
        name: _dimension(domain, place, {_CODE: pa.array(np.arange(len(domain)) << field.shift)})
        for place, ((name, domain), field) in enumerate(zip(found.items(), fields, strict=True))
        if len(domain) > 1
    }
    coded = _join(table, dimensions)
    return coded, _words(coded, _CODE, fields)


def recode(
    table: Table,
    recoding: Recoding,
    found: Mapping[str, Domain],
    keep: Sequence[str],
    blank: Sequence[str] | None,
) -> Table:
    """Replace values by labels, drop or blank suppressed records, and hide the rows' order."""
    if recoding.regions is not None:
        return _recode_regions(table, recoding, recoding.regions, found, keep, blank)
    suppressed = recoding.suppressed
    fields = layout([found[name].bits for name in recoding.columns])
    shown = dict(zip(recoding.columns, map(_shown, recoding.labels, recoding.groups), strict=True))
    ranks = [
        _ranks(labels, groups) * (name in keep)
        for name, labels, groups in zip(recoding.columns, recoding.labels, recoding.groups, strict=True)
    ]
    ranked = _ranked_layout(ranks)
    dimensions = {}
    for place, (name, groups) in enumerate(zip(recoding.columns, recoding.groups, strict=True)):
        # What is the same for every value needs no join: a column at the top is a constant.
        extra = {f"{_LABEL}{n}_": values for n, values in enumerate(shown[name].values()) if _varies(values)}
        if suppressed is not None and groups.any():
            extra[_CODE] = pa.array(groups << fields[place].shift)
        if ranks[place].any():
            extra[_RANK] = pa.array(ranks[place] << ranked[place].shift)
        if extra:
            dimensions[name] = _dimension(found[name], place, extra)
    wide = _join(table, dimensions)
    if suppressed is not None:
        wide = _without(wide, _words(wide, _CODE, fields), suppressed, marked=blank is not None)
    released: dict[str, Any] = {}
    for name in keep:
        if not shown.get(name):
            released[name] = _as_is(wide, name) if name in recoding.columns else wide[name]
            continue
        place = recoding.columns.index(name)
        for number, (column, values) in enumerate(shown[name].items()):
            label = f"{_LABEL}{number}_{place}"
            released[column] = wide[label] if _varies(values) else _constant(values)
    # Sorted by what is public anyway; inside a class, and among blanked records, the order is random.
    order = list(reversed(_words(wide, _RANK, ranked).values())) if any(map(np.any, ranks)) else []
    if suppressed is not None and blank is not None:
        gone = wide[_GONE].notnull()
        released |= {name: gone.ifelse(ibis.null(), released[name]) for name in blank if name in released}
        order = [gone.ifelse(ibis.null(), key) for key in order]
    return wide.order_by([*order, ibis.random()]).select([e.name(name) for name, e in released.items()])


def _recode_regions(
    table: Table,
    recoding: Recoding,
    regions: Regions,
    found: Mapping[str, Domain],
    keep: Sequence[str],
    blank: Sequence[str] | None,
) -> Table:
    """Look up each row's class by its packed key, and the class's labels; drop or blank the suppressed."""
    coded, words = _coded(table, {name: found[name] for name in recoding.columns})
    keyed = coded.mutate(**words)
    if regions.split:  # which of a combination's records go where is left to chance
        keyed = keyed.mutate(**{_CHANCE: ibis.random()})  # a window cannot be ordered by a call
        window = ibis.window(group_by=[keyed[word] for word in words], order_by=keyed[_CHANCE])
        keyed = keyed.mutate(**{_ROW: ibis.row_number().over(window)})
    parts = ibis.memtable(_parts(regions, [*words, *([_ROW] if regions.split else [])]))
    conditions = [keyed[name.removeprefix(_PART)] == parts[name] for name in parts.columns if name != _CLASS]
    wide = keyed.inner_join(parts, conditions) if blank is None else keyed.left_join(parts, conditions)
    labels = _class_labels(recoding, regions, keep)
    if labels:
        held = ibis.memtable(pa.table({_GONE: pa.array(np.arange(len(regions.suppressed))), **labels}))
        wide = wide.left_join(held, wide[_CLASS] == held[_GONE])
    released: dict[str, Any] = {}
    for name in keep:
        if name not in recoding.columns:
            released[name] = wide[name]
            continue
        place = recoding.columns.index(name)
        for number, column in enumerate(recoding.labels[place] or ()):
            released[column] = wide[f"{_LABEL}{number}_{place}"]
        if recoding.labels[place] is None:
            flag = f"{_LABEL}{place}"
            kept = _as_is(wide, name)
            released[name] = wide[flag].ifelse(ibis.null(), kept) if flag in labels else kept
    if blank is not None:
        gone = wide[_CLASS].isnull()
        released |= {name: gone.ifelse(ibis.null(), released[name]) for name in blank if name in released}
    return wide.order_by([_CLASS, ibis.random()]).select([e.name(name) for name, e in released.items()])


def _parts(regions: Regions, names: Sequence[str]) -> pa.Table:
    """Return the packed key of every part that is kept, with its class; of a split one, record by record."""
    kept = np.flatnonzero(~regions.suppressed[regions.classes])
    sizes = regions.sizes[kept]
    if regions.split:
        places = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        places += np.repeat(regions.before[kept], sizes)
        kept = np.repeat(kept, sizes)
    held = [*regions.keys[:, regions.rows[kept]], *([places] if regions.split else [])]
    columns = {f"{_PART}{name}": pa.array(values) for name, values in zip(names, held, strict=True)}
    return pa.table(columns | {_CLASS: pa.array(regions.classes[kept])})


def _class_labels(recoding: Recoding, regions: Regions, keep: Sequence[str]) -> dict[str, pa.Array]:
    """Return what each class holds in each released column, and where a cell that stays as is is blanked."""
    found = {}
    columns = zip(recoding.columns, recoding.labels, recoding.about, regions.groups, strict=True)
    for place, (name, labels, about, codes) in enumerate(columns):
        if name in keep and labels is not None:
            for number, values in enumerate(labels.values()):
                found[f"{_LABEL}{number}_{place}"] = _array(values).take(pa.array(codes))
        elif name in keep and about.blank is not None:
            found[f"{_LABEL}{place}"] = pa.array(codes == about.blank)
    return found


def _as_is(table: Table, name: str) -> Any:
    """Return a quasi-identifier as it is; -0.0 counts as 0.0, so that it is released as such."""
    return table[name] + 0.0 if table[name].type().is_floating() else table[name]


def _shown(labels: Labels | None, groups: IntArray) -> dict[str, pa.Array]:
    """Return what each released column holds for each value; nothing where the column stays as is."""
    places = pa.array(groups)
    return {column: _array(values).take(places) for column, values in (labels or {}).items()}


def _ranks(labels: Labels | None, groups: IntArray) -> IntArray:
    """Return each value's place in the order of what is released for it; nulls are last."""
    if labels is None:
        return np.arange(len(groups))  # a domain is in order
    held = list(zip(*labels.values(), strict=True))  # per group
    order = sorted(set(held), key=lambda ends: [(end is None, end) for end in ends])
    rank = {ends: place for place, ends in enumerate(order)}
    return np.array([rank[ends] for ends in held])[groups]


def _ranked_layout(ranks: Sequence[IntArray]) -> tuple[Field, ...]:
    """Lay ranks out so that the first column weighs most; one that does not vary takes no room."""
    return layout([int(rank.max()).bit_length() for rank in reversed(ranks)])[::-1]


def _varies(values: pa.Array) -> bool:
    return len(values.unique()) > 1


def _constant(values: pa.Array) -> Any:
    return ibis.literal(values[0].as_py(), ibis.dtype(values.type))


def _array(values: Sequence[Shown]) -> pa.Array:
    """Make a column of labels: text, or numbers that are whole where all are."""
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, OverflowError):  # beyond 64 bits
        found = pa.array([None if value is None else float(value) for value in values], pa.float64())
    return found.cast(pa.float64()) if pa.types.is_null(found.type) else found


def _dimension(domain: Domain, place: int, extra: Mapping[str, pa.Array]) -> Table:
    held = len(domain.values)  # codes behind these are of values that the table does not have
    columns = {f"{_VALUE}{place}": domain.values, **{f"{n}{place}": a[:held] for n, a in extra.items()}}
    return ibis.memtable(pa.table(columns))


def _join(table: Table, dimensions: Mapping[str, Table]) -> Table:
    """Join the dimension tables of some columns; nulls match nulls."""
    joined = table  # one chain: a subquery for each column would nest too deep
    for name, dimension in dimensions.items():
        value = next(column for column in dimension.columns if column.startswith(_VALUE))
        joined = joined.left_join(dimension, table[name].identical_to(dimension[value]))
    return joined


def _words(table: Table, codes: str, fields: Sequence[Field]) -> dict[str, IntegerValue]:
    """Add the columns' shifted codes up to words; a column without codes has none but 0."""
    parts: dict[int, list[Any]] = {field.word: [] for field in fields}
    for place, field in enumerate(fields):
        if f"{codes}{place}" in table.columns:
            parts[field.word].append(table[f"{codes}{place}"])
    zero = ibis.literal(0, "int64")
    return {f"{_WORD}{word}": reduce(add, parts[word]) if parts[word] else zero for word in sorted(parts)}


def _without(table: Table, words: Mapping[str, IntegerValue], suppressed: IntArray, *, marked: bool) -> Table:
    """Leave out (or mark) the rows whose packed groups are suppressed."""
    keyed = table.mutate(**words)
    gone = {f"{_GONE}{word}": pa.array(keys) for word, keys in enumerate(suppressed)}
    refused = ibis.memtable(pa.table(gone))
    conditions = [keyed[f"{_WORD}{word}"] == refused[f"{_GONE}{word}"] for word in range(len(suppressed))]
    if not marked:
        return keyed.anti_join(refused, conditions)
    return keyed.left_join(refused.mutate(**{_GONE: ibis.literal(1)}), conditions)
