"""The compiled loops of a partition: regions that are contiguous rows, looked at and divided round by round.

Each kernel works on a stretch of regions, so that threads can share a round. Loaded only when something is
partitioned.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from shoal.core.arrays import FloatArray, IntArray
from shoal.core.compilation import compiled

PlaceArray = NDArray[np.int32]

WIDTH, ENTROPY, LOSS = 0, 1, 2
FINAL, KEPT = 0, 1  # in how many parts a region goes that is not cut: none, or itself
_SPARSE = 4  # cells for each row, above which values are sorted rather than counted
_FEW = 32  # rows that are sorted by insertion


class Tables(NamedTuple):
    """How columns may be cut, as the kernels read it; what differs in length lies end to end."""

    values: IntArray  # (columns,): how many places there are
    scales: FloatArray  # (columns,): the width of the whole column
    starts: IntArray  # (columns,): where its positions begin
    positions: FloatArray
    heights: IntArray  # (columns,): levels of its hierarchy, the last with one group; 0: cut by order
    roots: IntArray  # (columns,): where its groups begin, place by place, level by level
    groups: PlaceArray  # numbered in the order of places within a level
    covers: PlaceArray  # how many places that group has


class Space(NamedTuple):
    """Working space of one thread."""

    lows: IntArray  # (columns,): the least place in the region
    highs: IntArray  # (columns,): and the greatest
    refused: IntArray  # (columns,): the last cut that was refused, or -1
    tiers: FloatArray  # (columns,): the greater are tried first, those alike together; below 0: not any more
    cells: IntArray  # zeros, left as found
    keys: IntArray  # with the next two, what `_sort` needs
    other: IntArray
    digits: IntArray
    values: IntArray  # what `_tally` finds: the places that occur, ascending
    records: IntArray  # and their records
    lookup: PlaceArray  # the child of each place that occurs


class Cut(NamedTuple):
    """A cut of one column: what it is worth, and where it lies."""

    parts: int  # 0 when none is allowable
    score: float  # greater is better
    at: int  # the last place on the left; of a hierarchy the level
    need: int  # how many records of that place go left where they may go to both sides, else all


@compiled
def propose(
    start: int,  # the regions to look at
    stop: int,
    places: PlaceArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,): rows
    records: IntArray,  # (regions,)
    refused: NDArray[np.int64],  # (regions, columns): the last cut refused, or -1; (0, columns): none can be
    tables: Tables,
    costs: FloatArray,  # c log c of small counts
    least: int,
    choose: int,
    relaxed: bool,
    columns: IntArray,  # (regions,), written: the column to cut
    ats: IntArray,  # (regions,), written: where
    parts: IntArray,  # (regions,), written: into how many
    children: PlaceArray,  # (rows,), written: in which of them a row goes
    splits: IntArray,  # (regions, 2), written: the row that goes to both sides or -1, its records on the left
) -> None:
    """Choose each region's column and cut."""
    space = _space(_longest(begins, start, stop), places.shape[0], tables)
    for region in range(start, stop):
        columns[region] = -1
        parts[region] = FINAL
        splits[region, 0] = -1
        if records[region] < 2 * least:
            continue
        begin = begins[region]
        end = begins[region + 1]
        for column in range(places.shape[0]):
            low, high = _extent(places[column, begin:end])
            space.lows[column] = low
            space.highs[column] = high
            space.tiers[column] = -1.0
            space.refused[column] = refused[region, column] if refused.shape[0] > 0 else -1
            if space.refused[column] >= 0 and tables.heights[column] > 0:
                continue  # a hierarchy has one cut
            if _varies(tables, column, low, high):
                space.tiers[column] = _width(tables, column, low, high) if choose == WIDTH else 0.0
        column, cut = _best(
            places, sizes, begin, end, records[region], tables, costs, least, choose, relaxed, space
        )
        if column < 0:
            continue
        columns[region] = column
        ats[region] = cut.at
        parts[region] = cut.parts
        _assign(tables, column, cut, places[column, begin:end], sizes[begin:end], space, children[begin:end])
        if relaxed and tables.heights[column] == 0:
            _share(places[column], sizes, begin, end, cut, children, splits[region])


@compiled
def _space(longest: int, columns: int, tables: Tables) -> Space:
    """Make room for the longest region."""
    widest = 0
    for column in range(columns):
        widest = max(widest, tables.values[column])
    return Space(
        np.empty(columns, np.int64),
        np.empty(columns, np.int64),
        np.empty(columns, np.int64),
        np.empty(columns, np.float64),
        np.zeros(min(_SPARSE * longest, widest), np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(256, np.int64),
        np.empty(longest, np.int64),
        np.empty(longest, np.int64),
        np.empty(widest, np.int32),
    )


@compiled
def _best(
    places: PlaceArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    begin: int,  # the region's rows
    end: int,
    total: int,  # and records
    tables: Tables,
    costs: FloatArray,
    least: int,
    choose: int,
    relaxed: bool,
    space: Space,
) -> tuple[int, Cut]:
    """Return the column to cut, or -1, and its cut."""
    best = Cut(0, 0.0, 0, 0)
    chosen = -1
    fewest = 0
    while chosen < 0:
        tier = -1.0
        for column in range(places.shape[0]):
            tier = max(tier, space.tiers[column])
        if tier < 0:
            break
        for column in range(places.shape[0]):
            if space.tiers[column] != tier:
                continue
            space.tiers[column] = -1.0
            distinct = _tally(
                places[column, begin:end], sizes[begin:end], space.lows[column], space.highs[column], space
            )
            cut = _cut(tables, column, space, distinct, total, costs, least, choose, relaxed)
            if cut.parts == 0:
                continue
            if chosen < 0 or cut.score > best.score or (cut.score == best.score and distinct < fewest):
                best = cut
                chosen = column
                fewest = distinct
    return chosen, best


@compiled
def _assign(
    tables: Tables,
    column: int,
    cut: Cut,
    places: PlaceArray,
    sizes: IntArray,
    space: Space,
    children: PlaceArray,  # written
) -> None:
    """Tell each row of a region the child it goes to."""
    if tables.heights[column] == 0:
        for row in range(places.shape[0]):
            children[row] = places[row] > cut.at
        return
    distinct = _tally(places, sizes, space.lows[column], space.highs[column], space)
    groups = _level(tables, column, cut.at)
    child = 0
    for at in range(distinct):
        if at > 0 and groups[space.values[at]] != groups[space.values[at - 1]]:
            child += 1
        space.lookup[space.values[at]] = child
    for row in range(places.shape[0]):
        children[row] = space.lookup[places[row]]


@compiled
def _longest(begins: IntArray, start: int, stop: int) -> int:
    """Return the rows of the longest region."""
    longest = 0
    for region in range(start, stop):
        longest = max(longest, begins[region + 1] - begins[region])
    return longest


@compiled
def _extent(places: PlaceArray) -> tuple[int, int]:
    """Return the least and the greatest place."""
    low = places[0]
    high = places[0]
    for row in range(1, places.shape[0]):
        low = min(low, places[row])
        high = max(high, places[row])
    return np.int64(low), np.int64(high)  # type: ignore[return-value]


@compiled
def _level(tables: Tables, column: int, level: int) -> PlaceArray:
    """Return the groups of one level."""
    begin = tables.roots[column] + level * tables.values[column]
    return tables.groups[begin : begin + tables.values[column]]


@compiled
def _common(tables: Tables, column: int, low: int, high: int) -> int:
    """Return the lowest level at which places share a group; what lies between then shares it too."""
    level = 0
    at = tables.roots[column]
    while tables.groups[at + low] != tables.groups[at + high]:
        level += 1
        at += tables.values[column]
    return level


@compiled
def _varies(tables: Tables, column: int, low: int, high: int) -> bool:
    """Tell whether a column could be cut, were there records enough."""
    if low == high or tables.heights[column] == 0:
        return bool(low < high)
    return bool(_common(tables, column, low, high) > 0)


@compiled
def _span(tables: Tables, column: int, low: int, high: int) -> int:
    """Return the places that a part covers, minus one."""
    if tables.heights[column] == 0:
        return high - low
    at = tables.roots[column] + _common(tables, column, low, high) * tables.values[column]
    return int(tables.covers[at + low]) - 1


@compiled
def _width(tables: Tables, column: int, low: int, high: int) -> float:
    """Return the share of the whole column's width that a part has."""
    if tables.heights[column] > 0:
        return float(_span(tables, column, low, high) / (tables.values[column] - 1))
    start = tables.starts[column]
    return float((tables.positions[start + high] - tables.positions[start + low]) / tables.scales[column])


@compiled
def _tally(places: PlaceArray, sizes: IntArray, low: int, high: int, space: Space) -> int:
    """Write the places that occur, ascending, and the records of each; return how many."""
    rows = places.shape[0]
    values = space.values
    records = space.records
    if high - low < _SPARSE * rows:
        return int(_tally_cells(places, sizes, low, high, space.cells, values, records))
    found = 0
    if rows <= _FEW:
        for row in range(rows):
            place = np.int64(places[row])
            at = found
            while at > 0 and values[at - 1] > place:
                at -= 1
            if at > 0 and values[at - 1] == place:
                records[at - 1] += sizes[row]
                continue
            for later in range(found, at, -1):
                values[later] = values[later - 1]
                records[later] = records[later - 1]
            values[at] = place
            records[at] = sizes[row]
            found += 1
        return found
    keys = space.keys[:rows]
    for row in range(rows):
        keys[row] = ((np.int64(places[row]) - low) << 32) | row
    for key in _sort(keys, space.other[:rows], space.digits, high - low):
        place = low + (key >> 32)
        if found == 0 or values[found - 1] != place:
            values[found] = place
            records[found] = 0
            found += 1
        records[found - 1] += sizes[key & 0xFFFFFFFF]
    return found


@compiled
def _sort(keys: IntArray, other: IntArray, digits: IntArray, greatest: int) -> IntArray:
    """Sort keys by what lies above their lower half, byte by byte; return which array holds them."""
    shift = 32
    while greatest > 0:
        for digit in range(256):
            digits[digit] = 0
        for key in keys:
            digits[(key >> shift) & 255] += 1
        begin = 0
        for digit in range(256):
            count = digits[digit]
            digits[digit] = begin
            begin += count
        for key in keys:
            digit = (key >> shift) & 255
            other[digits[digit]] = key
            digits[digit] += 1
        keys, other = other, keys
        shift += 8
        greatest >>= 8
    return keys


@compiled
def _tally_cells(
    places: PlaceArray,
    sizes: IntArray,
    low: int,
    high: int,
    cells: IntArray,
    values: IntArray,
    records: IntArray,
) -> int:
    """Do so with a cell for every place between the least and the greatest."""
    for row in range(places.shape[0]):
        cells[places[row] - low] += sizes[row]
    found = 0
    for cell in range(high - low + 1):
        if cells[cell] > 0:
            values[found] = low + cell
            records[found] = cells[cell]
            cells[cell] = 0
            found += 1
    return found


@compiled
def _cut(
    tables: Tables,
    column: int,
    space: Space,
    distinct: int,
    total: int,
    costs: FloatArray,
    least: int,
    choose: int,
    relaxed: bool,
) -> Cut:
    """Return the cut of one column whose values were tallied."""
    values = space.values[:distinct]
    records = space.records[:distinct]
    if tables.heights[column] > 0:
        cut = _cut_by_level(tables, column, values, records, total, least)
    elif relaxed:
        cut = _cut_in_two(values, records, total)
    else:
        cut = _cut_by_order(values, records, total, least, choose, space.refused[column])
    if cut.parts == 0 or choose == WIDTH:
        return Cut(cut.parts, 0.0, cut.at, cut.need)
    if choose == LOSS:
        return Cut(cut.parts, cut.score / (tables.values[column] - 1), cut.at, cut.need)
    score = 0.0  # of the entropy what differs between columns; whole numbers, whose order does not matter
    for count in records:
        score -= costs[count] if count < costs.shape[0] else cost(count)
    return Cut(cut.parts, score, cut.at, cut.need)


@compiled
def cost(count: int) -> float:
    """Return count log2 count in 2^-20 bits, so that columns of equal entropy tie."""
    return float(np.rint(count * np.log2(count) * 1048576.0))


@compiled
def _cut_by_order(
    values: IntArray, records: IntArray, total: int, least: int, choose: int, refused: int
) -> Cut:
    """Take the allowable cut nearest to the median; or, of those that gain most, the nearest.

    Where a cut was refused, the next best: those before it were refused too.
    """
    gain, distance, at = _worth(values, records, total, choose, refused) if refused >= 0 else (-1, 0, -1)
    last = values.shape[0] - 1
    found = Cut(0, 0.0, 0, 0)
    nearest = 0
    left = 0
    for here in range(last):
        left += records[here]
        if total - left < least:
            break
        if left < least:
            continue
        own = _gain(values, here, left, total) if choose == LOSS else 0
        away = abs(2 * left - total)
        tried = own > gain or (own == gain and (away < distance or (away == distance and here <= at)))
        if refused >= 0 and tried:
            continue
        if found.parts == 0 or own > found.score or (own == found.score and away < nearest):
            found = Cut(2, float(own), values[here], 0)
            nearest = away
    return found


@compiled
def _gain(values: IntArray, at: int, left: int, total: int) -> int:
    """Return what a cut behind a value spares, in records times places."""
    last = values.shape[0] - 1
    whole = total * (values[last] - values[0])
    return int(whole - left * (values[at] - values[0]) - (total - left) * (values[last] - values[at + 1]))


@compiled
def _worth(values: IntArray, records: IntArray, total: int, choose: int, place: int) -> tuple[int, int, int]:
    """Return what the cut behind a place spares, how far it is from the median, and where it is."""
    left = 0
    at = 0
    while values[at] <= place:
        left += records[at]
        at += 1
    gain = _gain(values, at - 1, left, total) if choose == LOSS else 0
    return gain, abs(2 * left - total), at - 1


@compiled
def _cut_in_two(values: IntArray, records: IntArray, total: int) -> Cut:
    """Send half of the records to the left, of the median value as many as are needed."""
    need = total // 2
    at = 0
    while records[at] < need:
        need -= records[at]
        at += 1
    first = values[0]
    last = values[-1]
    right = values[at] if need < records[at] else values[at + 1]
    half = total // 2
    gain = total * (last - first) - half * (values[at] - first) - (total - half) * (last - right)
    return Cut(2, float(gain), values[at], need)


@compiled
def _cut_by_level(
    tables: Tables, column: int, values: IntArray, records: IntArray, total: int, least: int
) -> Cut:
    """Take the groups one level below the one at which all share a group."""
    last = values.shape[0] - 1
    level = _common(tables, column, values[0], values[last]) - 1
    groups = _level(tables, column, level)
    gain = total * _span(tables, column, values[0], values[last])
    parts = 0
    first = 0
    inside = 0
    for at in range(last + 1):
        inside += records[at]
        if at == last or groups[values[at]] != groups[values[at + 1]]:
            if inside < least:
                return Cut(0, 0.0, 0, 0)
            gain -= inside * _span(tables, column, values[first], values[at])
            parts += 1
            first = at + 1
            inside = 0
    return Cut(parts, float(gain), level, 0)


@compiled
def _share(
    places: PlaceArray,
    sizes: IntArray,
    begin: int,
    end: int,
    cut: Cut,
    children: PlaceArray,
    split: IntArray,
) -> None:
    """Send as many records of the median value to the left as are needed, the first rows first."""
    need = cut.need
    for row in range(begin, end):
        if places[row] != cut.at:
            continue
        if need == 0:
            children[row] = 1
        elif sizes[row] <= need:
            need -= sizes[row]
        else:
            split[0] = row
            split[1] = need
            need = 0


@compiled
def measure(
    start: int,  # the regions to look at
    stop: int,
    sizes: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,)
    parts: IntArray,  # (regions,)
    firsts: IntArray,  # (regions,): the first of a region's children
    children: PlaceArray,  # (rows,)
    splits: IntArray,  # (regions, 2)
    child_rows: IntArray,  # (children,), zeros: how many rows a child gets
    child_records: IntArray,  # (children,), zeros: and how many records
) -> None:
    """Count what each child gets."""
    for region in range(start, stop):
        if parts[region] == FINAL:
            continue
        first = firsts[region]
        begin = begins[region]
        end = begins[region + 1]
        if parts[region] == KEPT:
            child_rows[first] = end - begin
            for row in range(begin, end):
                child_records[first] += sizes[row]
            continue
        for row in range(begin, end):
            child = first + children[row]
            child_rows[child] += 1
            child_records[child] += sizes[row]
        if splits[region, 0] >= 0:  # counted on the left so far
            more = sizes[splits[region, 0]] - splits[region, 1]
            child_rows[first + 1] += 1
            child_records[first] -= more
            child_records[first + 1] += more


@compiled
def divide(
    start: int,  # the regions to divide
    stop: int,
    places: PlaceArray,  # (columns, rows)
    sizes: IntArray,  # (rows,)
    rows: IntArray,  # (rows,)
    begins: IntArray,  # (regions + 1,)
    parts: IntArray,  # (regions,)
    firsts: IntArray,  # (regions,): the first of a region's children
    children: PlaceArray,  # (rows,)
    splits: IntArray,  # (regions, 2)
    child_begins: IntArray,  # (children + 1,)
    final_begins: IntArray,  # (regions,): where a final region goes
    new_places: PlaceArray,  # written: these as above
    new_sizes: IntArray,
    new_rows: IntArray,
    final_sizes: IntArray,  # written: the rows of final regions
    final_rows: IntArray,
) -> None:
    """Move rows to the children they go to, in the same order, and those of final regions out of the way."""
    longest = _longest(begins, start, stop)
    sources = np.empty(longest + 1, np.uint32)  # without a sign, an index is not looked at twice
    cursors = np.empty(longest + 1, np.int64)
    for region in range(start, stop):
        begin = begins[region]
        end = begins[region + 1]
        if parts[region] == FINAL:
            to = final_begins[region]
            for row in range(end - begin):
                final_sizes[to + row] = sizes[begin + row]
                final_rows[to + row] = rows[begin + row]
            continue
        first = firsts[region]
        to = child_begins[first]
        split = splits[region, 0]
        left = 0
        right = 0
        if parts[region] == KEPT:
            for row in range(end - begin):
                sources[row] = row
        else:
            for child in range(parts[region]):
                cursors[child] = child_begins[first + child] - to
            for row in range(begin, end):
                if row == split:
                    left = cursors[0]
                    right = cursors[1]
                    sources[right] = row - begin
                    cursors[1] += 1
                child = children[row]
                sources[cursors[child]] = row - begin
                cursors[child] += 1
        count = child_begins[first + parts[region]] - to
        for column in range(places.shape[0]):
            source = places[column, begin:end]
            target = new_places[column, to : to + count]
            for row in range(count):
                target[row] = source[sources[row]]
        for row in range(count):
            new_sizes[to + row] = sizes[begin + sources[row]]
            new_rows[to + row] = rows[begin + sources[row]]
        if split >= 0:
            new_sizes[to + left] = splits[region, 1]
            new_sizes[to + right] = sizes[split] - splits[region, 1]
