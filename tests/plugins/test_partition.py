"""Partitions equal those of a naive recursion over lists, region by region, in the same order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.algorithms.mondrian import cuts as partition_cuts
from shoal.algorithms.mondrian import rounds as module
from shoal.algorithms.mondrian import tables as partition_tally
from shoal.algorithms.mondrian.partition import Axis, Partition, partition
from shoal.core.arrays import BoolArray
from shoal.core.counts.counts import Counts, SensitiveCounts, layout
from shoal.core.counts.in_memory import InMemoryCounts

CHOICES = ("width", "entropy", "loss")
Record = tuple[int, tuple[int, ...], int]  # combination, its places, its records
Region = list[Record]


@dataclass
class Column:
    """One column, as the oracle reads it."""

    places: list[int]  # of each code
    positions: list[float]
    levels: list[list[int]] = field(default_factory=list)  # group of each place

    def axis(self) -> Axis:
        levels = tuple(np.array(level) for level in self.levels)
        return Axis(np.array(self.places), np.array(self.positions, float), levels)


@dataclass
class Table:
    """Combinations of codes, each with its records' sensitive codes."""

    columns: list[Column]
    rows: list[tuple[int, ...]]
    sensitive: list[list[int]]

    def counts(self) -> Counts:
        widths = [max(1, (len(column.positions) - 1).bit_length()) for column in self.columns]
        fields = layout(widths)
        keys = np.zeros((fields[-1].word + 1, len(self.rows)), np.int64)
        for place, at in enumerate(fields):
            keys[at.word] |= np.array([row[place] for row in self.rows]) << at.shift
        sizes = np.array([len(codes) for codes in self.sensitive])
        entries = sorted(
            Counter((r << 2) | c for r, codes in enumerate(self.sensitive) for c in codes).items()
        )
        found = np.array(entries).reshape(-1, 2).T
        return InMemoryCounts(
            fields, keys, sizes, {"s": SensitiveCounts(found[0].copy(), found[1].copy(), 2)}
        )

    def axes(self) -> list[Axis]:
        return [column.axis() for column in self.columns]

    def region(self) -> Region:
        """The whole table, in the order of values."""
        whole = [
            (number, tuple(c.places[code] for c, code in zip(self.columns, row, strict=True)), len(codes))
            for number, (row, codes) in enumerate(zip(self.rows, self.sensitive, strict=True))
        ]
        return sorted(whole, key=lambda record: record[1])

    def diverse(self, l: int) -> Callable[[Region], bool]:
        return lambda region: len({code for row, _, _ in region for code in self.sensitive[row]}) >= l


# The oracle.


def records(region: Region) -> int:
    return sum(count for _, _, count in region)


def common(column: Column, places: set[int]) -> tuple[int, int]:
    """The lowest level at which places share a group, and how many places that group has."""
    for level, groups in enumerate(column.levels):
        if len({groups[place] for place in places}) == 1:
            return level, groups.count(groups[min(places)])
    return len(column.levels), len(column.positions)


def span(column: Column, places: set[int]) -> int:
    return common(column, places)[1] - 1 if column.levels else max(places) - min(places)


def covered(column: Column, region: Region, j: int) -> Fraction:
    return Fraction(span(column, {p[j] for _, p, _ in region}), max(1, len(column.positions) - 1))


def gain(column: Column, region: Region, parts: list[Region], j: int) -> Fraction:
    lost = sum(records(part) * covered(column, part, j) for part in parts)
    return records(region) * covered(column, region, j) - lost


def allowable(column: Column, region: Region, j: int, least: int) -> list[list[Region]]:
    """Every way in which a column may be cut, the lower first."""
    places = sorted({p[j] for _, p, _ in region})
    if column.levels:
        level = common(column, set(places))[0] - 1
        if level < 0:
            return []
        groups = list(dict.fromkeys(column.levels[level][place] for place in places))
        ways = [[[r for r in region if column.levels[level][r[1][j]] == group] for group in groups]]
    else:
        ways = [
            [[r for r in region if r[1][j] <= cut], [r for r in region if r[1][j] > cut]]
            for cut in places[:-1]
        ]
    return [way for way in ways if all(records(part) >= least for part in way)]


def halves(region: Region, j: int) -> list[Region]:
    """Half of the records on the left; the ones alike go there in the order of all their values."""
    left: Region = []
    right: Region = []
    need = records(region) // 2
    for row, places, count in sorted(region, key=lambda record: (record[1][j], record[1])):
        taken = min(need, count)
        need -= taken
        if taken:
            left.append((row, places, taken))
        if count > taken:
            right.append((row, places, count - taken))
    return [left, right]


def proposals(
    columns: list[Column], region: Region, least: int, choose: str, relaxed: bool
) -> list[tuple[tuple, list[Region]]]:
    """Every cut that may be made, with what it is ranked by."""
    total, found = records(region), []
    if total < 2 * least:
        return []
    for j, column in enumerate(columns):
        tally: Counter[int] = Counter()
        for _, p, count in region:
            tally[p[j]] += count
        if relaxed and not column.levels:
            ways = [halves(region, j)] if len(tally) > 1 else []
        else:
            ways = allowable(column, region, j, least)
        if not ways:
            continue
        far = [abs(2 * records(way[0]) - total) for way in ways]
        if choose == "width":
            first, last = column.positions[0], column.positions[-1]
            width = (column.positions[max(tally)] - column.positions[min(tally)]) / ((last - first) or 1)
            worth = [float(covered(column, region, j)) if column.levels else width] * len(ways)
        elif choose == "entropy":
            worth = [-sum(round(count * math.log2(count) * 2**20) for count in tally.values())] * len(ways)
        else:
            worth = [gain(column, region, way, j) for way in ways]
        for at, way in enumerate(ways):
            found.append(((-worth[at], len(tally), j, far[at], at), way))
    return sorted(found, key=lambda proposal: proposal[0])


def oracle(
    columns: list[Column],
    region: Region,
    least: int,
    choose: str,
    relaxed: bool = False,
    passes: Callable[[Region], bool] = lambda region: True,
) -> Iterator[Region]:
    for _, parts in proposals(columns, region, least, choose, relaxed):
        if all(passes(part) for part in parts):
            for part in parts:
                yield from oracle(columns, part, least, choose, relaxed, passes)
            return
    yield region


# What is compared.


def listed(parts: Partition) -> list[dict[int, int]]:
    """Regions in their order: combination -> records."""
    found: list[dict[int, int]] = [{} for _ in range(int(parts.regions.max()) + 1)]
    for row, size, region in zip(
        parts.rows.tolist(), parts.sizes.tolist(), parts.regions.tolist(), strict=True
    ):
        assert row not in found[region]
        found[region][row] = size
    return found


def expected(regions: Iterator[Region]) -> list[dict[int, int]]:
    return [{row: count for row, _, count in region} for region in regions]


def diverse_enough(l: int) -> Callable[[Counts], BoolArray]:
    def accepts(counts: Counts) -> BoolArray:
        entries = counts.sensitive["s"]
        distinct = np.bincount(entries.rows, minlength=len(counts))
        assert np.array_equal(np.bincount(entries.rows, entries.counts, len(counts)), counts.sizes)
        assert len(counts.keys) == 1
        assert len(set(counts.keys[0].tolist())) == len(counts)
        return distinct >= l

    return accepts


@st.composite
def columns(draw: st.DrawFn, orders_only: bool = False) -> Column:
    count = draw(st.sampled_from([1, 2, 2, 3, 4, 5, 8, 300]))
    places = draw(st.permutations(range(count))) if count < 300 else list(range(count))[::-1]
    steps = draw(st.lists(st.sampled_from([1, 1, 2, 0.1]), min_size=7, max_size=7))
    positions = [0.0]
    for at in range(count - 1):
        positions.append(positions[-1] + steps[at % 7])
    levels: list[list[int]] = []
    if not orders_only and draw(st.booleans()):
        groups = list(range(count))
        if draw(st.integers(0, 3)):
            levels.append(groups)
        for _ in range(draw(st.integers(0 if levels else 1, 3))):
            joins = draw(st.lists(st.booleans(), min_size=7, max_size=7))
            merged, number = [], 0
            for place, group in enumerate(groups):
                if place and group != groups[place - 1]:
                    number += not joins[group % 7]
                merged.append(number)
            groups = merged
            levels.append([7 * group % 307 for group in groups])  # a group's number means nothing
        if draw(st.booleans()):
            levels.append([0] * count)
    return Column(list(places), positions, levels)


@st.composite
def tables(draw: st.DrawFn, orders_only: bool = False) -> Table:
    chosen = draw(st.lists(columns(orders_only), min_size=1, max_size=4))
    row = st.tuples(*(st.integers(0, len(column.positions) - 1) for column in chosen))
    rows = draw(st.lists(row, min_size=1, max_size=40, unique=True))
    codes = st.lists(st.integers(0, 3), min_size=1, max_size=4)
    sensitive = draw(st.lists(codes, min_size=len(rows), max_size=len(rows)))
    return Table(chosen, rows, sensitive)


def random_table(seed: int, rows: int = 400) -> Table:
    """Columns of two to very many values, by order and by hierarchy."""
    random = np.random.default_rng(seed)
    chosen = []
    for count in (2, 7, 40, 5000):
        tens = [[place // 10**level for place in range(count)] for level in range(len(str(count)) + 1)]
        positions = np.cumsum(random.integers(1, 4, count)).astype(float).tolist()
        chosen.append(
            Column(random.permutation(count).tolist(), positions, tens if random.random() < 0.3 else [])
        )
    codes = np.unique([random.integers(0, len(c.positions), rows) for c in chosen], axis=1).T
    sizes = random.integers(1, 5, len(codes))
    return Table(
        chosen, [tuple(row) for row in codes.tolist()], [random.integers(0, 4, s).tolist() for s in sizes]
    )


@pytest.fixture(params=[1, 5000])
def threads(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once as many tasks as there can be, once as few."""
    monkeypatch.setattr(module, "_ROWS_PER_TASK", request.param)


@pytest.mark.parametrize("choose", CHOICES)
@settings(max_examples=examples(150), deadline=None)
@given(table=tables(), least=st.integers(1, 5))
def test_regions_equal_those_of_the_oracle(choose: str, table: Table, least: int) -> None:
    counts = table.counts()
    least = min(least, counts.records)
    found = partition(counts, table.axes(), None, least, choose=choose, relaxed=False)
    assert listed(found) == expected(oracle(table.columns, table.region(), least, choose))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("relaxed", [False, True])
@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("seed", range(4))
def test_larger_tables_equal_the_oracle(choose: str, seed: int, relaxed: bool) -> None:
    """Enough rows for every way of counting values, and for threads."""
    table = random_table(seed)
    found = partition(table.counts(), table.axes(), None, 3, choose=choose, relaxed=relaxed)
    assert listed(found) == expected(oracle(table.columns, table.region(), 3, choose, relaxed))


@pytest.mark.parametrize("choose", CHOICES)
@settings(max_examples=examples(100), deadline=None)
@given(table=tables(), least=st.integers(1, 5))
def test_relaxed_regions_equal_those_of_the_oracle(choose: str, table: Table, least: int) -> None:
    counts = table.counts()
    least = min(least, counts.records)
    found = partition(counts, table.axes(), None, least, choose=choose, relaxed=True)
    assert listed(found) == expected(oracle(table.columns, table.region(), least, choose, relaxed=True))


@settings(max_examples=examples(100), deadline=None)
@given(table=tables(), least=st.integers(1, 5))
def test_every_region_is_large_enough_and_no_allowable_cut_is_left(table: Table, least: int) -> None:
    counts = table.counts()
    least = min(least, counts.records)
    for choose in CHOICES:
        found = listed(partition(counts, table.axes(), None, least, choose=choose, relaxed=False))
        assert sorted(row for region in found for row in region) == list(range(len(counts)))
        whole = table.region()
        for held in found:
            region = [record for record in whole if record[0] in held]
            assert records(region) == sum(held.values()) >= least
            assert not any(allowable(column, region, j, least) for j, column in enumerate(table.columns))


@settings(max_examples=examples(100), deadline=None)
@given(table=tables(orders_only=True), least=st.integers(1, 5))
def test_relaxed_regions_are_small_or_all_alike(table: Table, least: int) -> None:
    counts = table.counts()
    least = min(least, counts.records)
    for choose in CHOICES:
        found = partition(counts, table.axes(), None, least, choose=choose, relaxed=True)
        for region in listed(found):
            assert sum(region.values()) >= least
            assert sum(region.values()) < 2 * least or len(region) == 1
        assert found.sizes.min() > 0
        assert np.array_equal(np.bincount(found.rows, found.sizes), counts.sizes)


@pytest.mark.parametrize("choose", CHOICES)
@settings(max_examples=examples(100), deadline=None)
@given(table=tables(), least=st.integers(1, 4), l=st.integers(1, 4))
def test_a_cut_is_taken_only_if_all_its_parts_pass(choose: str, table: Table, least: int, l: int) -> None:
    counts = table.counts()
    least = min(least, counts.records)
    found = partition(counts, table.axes(), diverse_enough(l), least, choose=choose, relaxed=False)
    passes = table.diverse(l)
    assert listed(found) == expected(oracle(table.columns, table.region(), least, choose, passes=passes))


@settings(max_examples=examples(100), deadline=None)
@given(table=tables(), least=st.integers(1, 4), l=st.integers(1, 4))
def test_no_cut_is_left_whose_parts_pass(table: Table, least: int, l: int) -> None:
    counts, passes = table.counts(), table.diverse(l)
    least = min(least, counts.records)
    for choose in CHOICES:
        found = partition(counts, table.axes(), diverse_enough(l), least, choose=choose, relaxed=False)
        for held in listed(found):
            region = [record for record in table.region() if record[0] in held]
            for j, column in enumerate(table.columns):
                assert not any(all(map(passes, way)) for way in allowable(column, region, j, least))


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("choose", CHOICES)
@pytest.mark.parametrize("l", [2, 3, 4])
def test_larger_tables_are_judged_as_the_oracle_does(choose: str, l: int) -> None:
    table = random_table(l)
    found = partition(table.counts(), table.axes(), diverse_enough(l), 3, choose=choose, relaxed=False)
    passes = table.diverse(l)
    assert listed(found) == expected(oracle(table.columns, table.region(), 3, choose, passes=passes))


@settings(max_examples=examples(100), deadline=None)
@given(table=tables(), least=st.integers(1, 5), relaxed=st.booleans(), data=st.data())
def test_the_order_of_combinations_does_not_matter(
    table: Table, least: int, relaxed: bool, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(table.rows))))
    turned = Table(table.columns, [table.rows[at] for at in order], [table.sensitive[at] for at in order])
    least = min(least, table.counts().records)
    for choose in CHOICES:
        one = listed(partition(table.counts(), table.axes(), None, least, choose=choose, relaxed=relaxed))
        other = listed(partition(turned.counts(), table.axes(), None, least, choose=choose, relaxed=relaxed))
        assert one == [{order[row]: size for row, size in region.items()} for region in other]


def test_the_published_example_of_mondrian() -> None:
    """The table of LeFevre, DeWitt, Ramakrishnan 2006: age, sex, zip code; k=2."""
    people = [(25, "M", 53711), (25, "F", 53712), (26, "M", 53711)]
    people += [(27, "M", 53710), (27, "F", 53712), (28, "M", 53711)]
    chosen, codes = [], []
    for values in zip(*people, strict=True):
        distinct = sorted(set(values))
        numbers = [float(v) if isinstance(v, int) else place for place, v in enumerate(distinct)]
        chosen.append(Column(list(range(len(distinct))), numbers))
        codes.append([distinct.index(value) for value in values])
    table = Table(chosen, list(zip(*codes, strict=True)), [[0]] * len(people))
    found = partition(table.counts(), table.axes(), None, 2, choose="width", relaxed=False)
    regions = {frozenset(row + 1 for row in region) for region in listed(found)}
    assert regions == {frozenset({1, 3}), frozenset({2, 5}), frozenset({4, 6})}


def test_a_median_value_goes_to_both_sides() -> None:
    counts = InMemoryCounts(layout([1]), np.array([[0, 1]]), np.array([2, 6]), {})
    axis = Axis(np.arange(2), np.arange(2.0))
    found = partition(counts, [axis], None, 2, choose="width", relaxed=True)
    assert listed(found) == [{0: 2}, {1: 2}, {1: 4}]


def test_a_hierarchy_is_cut_into_all_groups_of_the_next_level() -> None:
    counts = InMemoryCounts(layout([3]), np.arange(6).reshape(1, -1), np.full(6, 2), {})
    levels = (np.arange(6), np.array([0, 0, 1, 1, 2, 2]), np.zeros(6, np.int64))
    axis = Axis(np.arange(6), np.arange(6.0), levels)
    for least, regions in ((5, 1), (4, 3), (3, 3), (2, 6)):
        found = partition(counts, [axis], None, least, choose="width", relaxed=False)
        assert found.regions.max() + 1 == regions


def test_a_round_is_checked_before_it_begins() -> None:
    table = random_table(1, 50)
    rounds = []
    partition(
        table.counts(), table.axes(), None, 3, choose="width", relaxed=False, check=lambda: rounds.append(1)
    )
    assert 3 < len(rounds) < 20

    def stop() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        partition(table.counts(), table.axes(), None, 3, choose="width", relaxed=False, check=stop)


def test_too_few_records_are_refused() -> None:
    table = random_table(1, 2)
    counts = table.counts()
    least = counts.records + 1
    with pytest.raises(ValueError, match=f"^{least - 1} records cannot make a region of at least {least}.$"):
        partition(counts, table.axes(), None, least, choose="width", relaxed=False)


def test_a_relaxed_partition_is_not_judged() -> None:
    table = random_table(1, 20)
    with pytest.raises(ValueError, match="Only the sizes of the regions of a relaxed partition"):
        partition(table.counts(), table.axes(), diverse_enough(2), 3, choose="width", relaxed=True)


@pytest.mark.parametrize("greatest", [1, 30, 255, 256, 5_000, 70_000, 2**24, 2**31 - 1])
@pytest.mark.parametrize("rows", [1, 5, 32, 33, 500])
def test_places_are_tallied_whichever_way(rows: int, greatest: int) -> None:
    """Counted in cells, inserted one by one, or sorted."""
    random = np.random.default_rng(rows)
    places = random.integers(0, greatest, rows, endpoint=True).astype(np.int32)
    places = np.concatenate((places, places[: rows // 2]))
    sizes = random.integers(1, 5, len(places))
    space = partition_tally.WorkingSpace(
        *np.empty((3, 1), np.int64), np.empty(1), np.zeros(4 * len(places), np.int64),
        *np.empty((2, len(places)), np.int64), np.empty(256, np.int64),
        *np.empty((2, len(places)), np.int64), np.empty(1, np.int32),
    )  # fmt: skip
    found = partition_tally.tally(places, sizes, int(places.min()), int(places.max()), space)
    values, inverse = np.unique(places, return_inverse=True)
    assert space.values[:found].tolist() == values.tolist()
    assert space.records[:found].tolist() == np.bincount(inverse, sizes).tolist()
    assert not space.cells.any()


def test_costs_looked_up_are_the_costs_worked_out() -> None:
    costs = module._costs()
    for count in (1, 2, 3, 5, 100, 4095):
        assert costs[count] == partition_cuts.cost(count) == round(count * math.log2(count) * 2**20)
