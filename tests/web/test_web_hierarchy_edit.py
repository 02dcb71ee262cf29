"""Editing a hierarchy: whatever is changed, the result is nested and holds every value once."""

from __future__ import annotations

from contextlib import suppress
from decimal import Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.builders import parse
from shoal.core.hierarchy.hierarchy import Hierarchy
from shoal.errors import ShoalError
from shoal.web.workspace import hierarchy_edit as edit

TREE = {"tree": {"north": {"coast": ["a", "b"], "hills": ["c"]}, "south": {"plain": ["d", "e"]}}}


def bound(spec: Any, values: tuple[str | None, ...] = ("a", "b", "c", "d", "e")) -> Hierarchy:
    domain = Domain("town", values, values)
    return parse("town", spec).bind(domain, np.ones(len(values), np.int64))


def groups(grouping: edit.ValueGrouping, level: int) -> dict[str, set[str]]:
    items = grouping.items(level)
    return {label: {items[n] for n in members} for label, members in grouping.groups(level)}


def test_the_groups_of_a_hierarchy_are_written_back_as_they_are() -> None:
    grouping = edit.grouping_of(bound(TREE))
    assert grouping.spec() == TREE
    assert groups(grouping, 2) == {"north": {"coast", "hills"}, "south": {"plain"}}
    flat = edit.grouping_of(bound("flat"))
    assert groups(flat, 1) == {value: {value} for value in "abcde"}


def test_what_is_missing_stays_by_itself() -> None:
    grouping = edit.grouping_of(bound(TREE, ("a", "b", "c", "d", "e", None)))
    assert grouping.values == ("a", "b", "c", "d", "e")


def test_values_are_moved_and_an_empty_group_goes() -> None:
    grouping = edit.grouping_of(bound(TREE))
    moved = edit.move(grouping, 1, [2], 0)  # c to the coast: the hills are empty
    assert groups(moved, 1) == {"coast": {"a", "b", "c"}, "plain": {"d", "e"}}
    new = edit.move(moved, 1, [3, 0], None, "both")
    assert groups(new, 1) == {"coast": {"b", "c"}, "plain": {"e"}, "both": {"a", "d"}}
    assert groups(new, 2)["north"] == {"coast"}
    assert groups(new, 2)["south"] == {"plain", "both"}  # where the first of them was


def test_groups_are_renamed_merged_and_split() -> None:
    grouping = edit.grouping_of(bound(TREE))
    assert groups(edit.rename(grouping, 1, 0, "sea"), 1)["sea"] == {"a", "b"}
    merged = edit.merge(grouping, 1, [0, 2])
    assert groups(merged, 1) == {"coast": {"a", "b", "d", "e"}, "hills": {"c"}}
    assert groups(merged, 2) == {"north": {"coast", "hills"}}
    assert groups(edit.split(grouping, 1, 0), 1) == {
        "a": {"a"},
        "b": {"b"},
        "hills": {"c"},
        "plain": {"d", "e"},
    }
    for wrong in ("", "*", "hills", " "):
        with pytest.raises(ShoalError) as caught:
            edit.rename(grouping, 1, 0, wrong)
        assert caught.value.field == "label"
    with pytest.raises(ShoalError):
        edit.merge(grouping, 1, [1])
    with pytest.raises(ShoalError):
        edit.move(grouping, 1, [99], 0)


def test_levels_are_added_and_removed() -> None:
    grouping = edit.grouping_of(bound(TREE))
    taller = edit.add_level(grouping)
    assert groups(taller, 3) == {"north": {"north"}, "south": {"south"}}
    assert groups(edit.remove_level(grouping, 1), 1) == {"north": {"a", "b", "c"}, "south": {"d", "e"}}
    assert groups(edit.remove_level(grouping, 2), 1) == groups(grouping, 1)
    with pytest.raises(ShoalError):
        edit.remove_level(edit.remove_level(grouping, 1), 1)


CHANGES = st.lists(
    st.tuples(
        st.sampled_from(["move", "new", "rename", "merge", "split", "add", "remove"]),
        st.integers(0, 9),
        st.integers(0, 9),
        st.text("xyz", min_size=1, max_size=2),
    ),
    max_size=12,
)


def changed(grouping: edit.ValueGrouping, kind: str, one: int, two: int, label: str) -> edit.ValueGrouping:
    level = 1 + one % len(grouping.levels)
    items, count = len(grouping.items(level)), len(grouping.levels[level - 1].labels)
    if kind == "move":
        return edit.move(grouping, level, [two % items], one % count)
    if kind == "new":
        return edit.move(grouping, level, sorted({one % items, two % items}), None, label)
    if kind == "rename":
        return edit.rename(grouping, level, two % count, label)
    if kind == "merge":
        return edit.merge(grouping, level, [one % count, two % count])
    if kind == "split":
        return edit.split(grouping, level, two % count)
    return edit.add_level(grouping) if kind == "add" else edit.remove_level(grouping, level)


@given(CHANGES)
def test_any_changes_leave_a_nested_hierarchy_of_all_values(changes: list[tuple[str, int, int, str]]) -> None:
    grouping = edit.grouping_of(bound(TREE))
    for change in changes:
        with suppress(ShoalError):  # it says why not, and changes nothing
            grouping = changed(grouping, *change)
        made = bound(grouping.spec())  # raises if it is not nested, or lacks a value
        assert made.labels[0] == ("a", "b", "c", "d", "e")
        assert made.height == len(grouping.levels) + 1


AGES = tuple(str(age) for age in range(15, 95))


def test_limits_start_from_any_builder_of_numbers() -> None:
    limits = edit.limits_of(bound({"intervals": [5, 10, 20], "top_coding": 90}, AGES))
    assert len(limits) == 3
    spec = edit.cuts_spec(limits, {"intervals": [5, 10, 20]})
    before = bound({"intervals": [5, 10, 20], "top_coding": 90}, AGES)
    after = bound(spec, AGES)
    for level in (1, 2, 3):
        assert np.array_equal(before.groups(level), after.groups(level))
    cuts = {"cuts": [[20, 40, 60], [40]]}
    assert edit.cuts_spec(edit.limits_of(bound(cuts, AGES)), cuts) == cuts
    assert edit.limits_of(bound("flat", AGES)) == ()


def test_limits_are_moved_added_and_removed_and_stay_nested() -> None:
    limits = tuple(tuple(map(Decimal, level)) for level in ((20, 40, 60), (40,)))
    assert edit.move_limit(limits, Decimal(40), Decimal(45)) == ((20, 45, 60), (45,))
    assert edit.add_limit(limits, 2, Decimal(70)) == ((20, 40, 60, 70), (40, 70))
    assert edit.remove_limit(limits, 1, Decimal(40)) == ((20, 60),)
    assert edit.remove_limit(limits, 2, Decimal(40)) == ((20, 40, 60),)
    assert edit.add_limit_level(limits[:1], np.array([1.0])) == limits


@given(
    st.lists(
        st.tuples(st.sampled_from(["move", "add", "remove"]), st.integers(0, 9), st.integers(10, 99)),
        max_size=12,
    )
)
def test_any_limits_make_a_nested_hierarchy(changes: list[tuple[str, int, int]]) -> None:
    limits = tuple(tuple(map(Decimal, level)) for level in ((20, 40, 60, 80), (40, 60), (60,)))
    for kind, one, number in changes:
        if not limits:
            break
        level = 1 + one % len(limits)
        old = limits[level - 1][number % len(limits[level - 1])]
        if kind == "move":
            limits = edit.move_limit(limits, old, Decimal(number))
        elif kind == "add":
            limits = edit.add_limit(limits, level, Decimal(number))
        else:
            limits = edit.remove_limit(limits, level, old)
        if limits:
            assert bound(edit.cuts_spec(limits, None), AGES).height == len(limits) + 1


def test_a_histogram_counts_every_record_once() -> None:
    positions = np.array([1.0, 2.0, 5.0, np.nan])
    heights, low, high = edit.histogram(positions, np.array([3, 2, 1, 9]))
    assert (heights, low, high) == ([3, 2, 0, 0, 1], 1.0, 6.0)
    heights, _, _ = edit.histogram(np.array([0.5, 0.7]), np.array([3, 4]))
    assert sum(heights) == 7
