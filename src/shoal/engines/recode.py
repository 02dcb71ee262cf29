"""Recoding as a relational expression: labels, suppressed records and the order of rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import ibis
import numpy as np
import pyarrow as pa
from ibis.expr.types import IntegerValue, Table

from shoal.core.arrays import IntArray
from shoal.core.counts import Domain, Field, layout
from shoal.core.groups import Labels, Shown
from shoal.core.recoding import Recoding
from shoal.core.regions import Regions
from shoal.engines.relations import CODE, GONE, OWN, ROW, WORD, Site, coded, joined, literal, words_of

_RANK, _LABEL, _PART, _CLASS, _CHANCE = (OWN + name for name in ("r", "l", "part_", "class", "chance"))


def recode(
    site: Site,
    table: Table,
    recoding: Recoding,
    found: Mapping[str, Domain],
    keep: Sequence[str],
    blank: Sequence[str] | None,
) -> Table:
    """Replace values by labels, drop or blank suppressed records, and hide the rows' order."""
    if recoding.regions is not None:
        return _recode_regions(site, table, recoding, recoding.regions, found, keep, blank)
    suppressed = recoding.suppressed
    fields = layout([found[name].bits for name in recoding.columns])
    shown = dict(zip(recoding.columns, map(_shown, recoding.labels, recoding.groups), strict=True))
    ranks = [
        _ranks(labels, groups) * (name in keep)
        for name, labels, groups in zip(recoding.columns, recoding.labels, recoding.groups, strict=True)
    ]
    ranked = _ranked_layout(ranks)
    looked_up = {}
    for place, (name, groups) in enumerate(zip(recoding.columns, recoding.groups, strict=True)):
        # What is the same for every value needs no join: a column at the top is a constant.
        extra = {
            f"{_LABEL}{n}_{place}": values for n, values in enumerate(shown[name].values()) if _varies(values)
        }
        if suppressed is not None and groups.any():
            extra[f"{CODE}{place}"] = pa.array(groups << fields[place].shift)
        if ranks[place].any():
            extra[f"{_RANK}{place}"] = pa.array(ranks[place] << ranked[place].shift)
        if extra:
            looked_up[name] = extra
    wide = joined(site, table, found, looked_up)
    if suppressed is not None:
        wide = _without(site, wide, words_of(wide, CODE, fields), suppressed, marked=blank is not None)
    released: dict[str, Any] = {}
    for name in keep:
        if not shown.get(name):
            released[name] = _as_is(wide, name) if name in recoding.columns else wide[name]
            continue
        place = recoding.columns.index(name)
        for number, (column, values) in enumerate(shown[name].items()):
            label = f"{_LABEL}{number}_{place}"
            released[column] = wide[label] if _varies(values) else literal(values)
    # Sorted by what is public anyway; inside a class, and among blanked records, the order is random.
    order = list(reversed(words_of(wide, _RANK, ranked).values())) if any(map(np.any, ranks)) else []
    if suppressed is not None and blank is not None:
        gone = wide[GONE].notnull()
        released |= {name: gone.ifelse(ibis.null(), released[name]) for name in blank if name in released}
        order = [gone.ifelse(ibis.null(), key) for key in order]
    return wide.order_by([*order, ibis.random()]).select([e.name(name) for name, e in released.items()])


def _recode_regions(
    site: Site,
    table: Table,
    recoding: Recoding,
    regions: Regions,
    found: Mapping[str, Domain],
    keep: Sequence[str],
    blank: Sequence[str] | None,
) -> Table:
    """Look up each row's class by its packed key, and the class's labels; drop or blank the suppressed."""
    there, words = coded(site, table, {name: found[name] for name in recoding.columns})
    keyed = there.mutate(**words)
    if regions.split:  # which of a combination's records go where is left to chance
        keyed = keyed.mutate(**{_CHANCE: ibis.random()})  # a window cannot be ordered by a call
        window = ibis.window(group_by=[keyed[word] for word in words], order_by=keyed[_CHANCE])
        keyed = keyed.mutate(**{ROW: ibis.row_number().over(window)})
    parts = site.hold(_parts(regions, [*words, *([ROW] if regions.split else [])]))
    conditions = [keyed[name.removeprefix(_PART)] == parts[name] for name in parts.columns if name != _CLASS]
    wide = keyed.inner_join(parts, conditions) if blank is None else keyed.left_join(parts, conditions)
    labels = _class_labels(recoding, regions, keep)
    if labels:
        held = site.hold(pa.table({GONE: pa.array(np.arange(len(regions.suppressed))), **labels}))
        wide = wide.left_join(held, wide[_CLASS] == held[GONE])
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
    kind = table[name].type()
    return (table[name] + 0.0).cast(kind) if kind.is_floating() else table[name]


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


def _array(values: Sequence[Shown]) -> pa.Array:
    """Make a column of labels: text, or numbers that are whole where all are."""
    try:
        found = pa.array(values)
    except (pa.ArrowInvalid, OverflowError):  # beyond 64 bits
        found = pa.array([None if value is None else float(value) for value in values], pa.float64())
    return found.cast(pa.float64()) if pa.types.is_null(found.type) else found


def _without(
    site: Site, table: Table, words: Mapping[str, IntegerValue], suppressed: IntArray, *, marked: bool
) -> Table:
    """Leave out (or mark) the rows whose packed groups are suppressed."""
    keyed = table.mutate(**words)
    gone = {f"{GONE}{word}": pa.array(keys) for word, keys in enumerate(suppressed)}
    refused = site.hold(pa.table(gone))
    conditions = [keyed[f"{WORD}{word}"] == refused[f"{GONE}{word}"] for word in range(len(suppressed))]
    if not marked:
        return keyed.anti_join(refused, conditions)
    return keyed.left_join(refused.mutate(**{GONE: ibis.literal(1)}), conditions)
