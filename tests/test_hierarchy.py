"""Hierarchies and their builders."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.core.builders import Csv, parse
from shoal.core.counts import Domain
from shoal.core.hierarchy import Hierarchy
from shoal.errors import HierarchyError, UnknownName


def bind(spec: object, *texts: str | None) -> Hierarchy:
    return parse("c", spec).bind(Domain("c", texts, texts))


def climb(hierarchy: Hierarchy, code: int) -> list[str]:
    return [hierarchy.labels[level][hierarchy.groups(level)[code]] for level in range(hierarchy.height + 1)]


def test_intervals_make_bands_that_end_in_one_group() -> None:
    hierarchy = bind({"intervals": [5, 10, 20]}, "0", "4", "5", "19", "20")
    assert climb(hierarchy, 1) == ["4", "0-4", "0-9", "0-19", "*"]
    assert climb(hierarchy, 3) == ["19", "15-19", "10-19", "0-19", "*"]
    assert climb(hierarchy, 4) == ["20", "20-24", "20-29", "20-39", "*"]


def test_intervals_take_an_origin_and_negative_numbers() -> None:
    hierarchy = bind({"intervals": [5], "origin": 17}, "17", "21", "22", "-3")
    assert [climb(hierarchy, c)[1] for c in range(4)] == ["17-21", "17-21", "22-26", "-3-1"]


def test_intervals_code_the_bottom_and_the_top() -> None:
    hierarchy = bind(
        {"intervals": [10, 20], "bottom_coding": 18, "top_coding": 90}, "3", "18", "19", "89", "90", "104"
    )
    assert [climb(hierarchy, c)[1] for c in range(6)] == ["<18", "18-19", "18-19", "80-89", "90+", "90+"]
    assert [climb(hierarchy, c)[2] for c in range(6)] == ["<18", "18-19", "18-19", "80-89", "90+", "90+"]


def test_intervals_of_fractions_say_which_end_belongs() -> None:
    hierarchy = bind({"intervals": ["0.5", "1.5"]}, "0.2", "0.5", "1.4")
    assert [climb(hierarchy, c)[1] for c in range(3)] == ["[0, 0.5)", "[0.5, 1)", "[1, 1.5)"]


def test_a_width_of_one_is_the_number_itself() -> None:
    assert climb(bind({"intervals": [1, 2]}, "7"), 0) == ["7", "7", "6-7", "*"]


def test_prefixes_keep_the_beginning() -> None:
    hierarchy = bind({"prefix": [3, 1]}, "02138", "02139", "9")
    assert climb(hierarchy, 0) == ["02138", "021*", "0*", "*"]
    assert climb(hierarchy, 2) == ["9", "9*", "9*", "*"]


def test_a_short_branch_of_a_tree_climbs_later() -> None:
    tree = {"been married": ["married", "widow"], "never": ["single"], "?": None}
    hierarchy = bind({"tree": {"any": tree}}, "widow", "?")
    assert climb(hierarchy, 0) == ["widow", "been married", "any", "*"]
    assert climb(hierarchy, 1) == ["?", "?", "any", "*"]


def test_flat_has_two_levels_and_top_can_be_left_out() -> None:
    assert climb(bind("flat", "a"), 0) == ["a", "*"]
    assert climb(bind({"prefix": [1], "top": False}, "ab"), 0) == ["ab", "a*"]


def test_nulls_and_unknown_codes_join_only_at_the_top() -> None:
    hierarchy = bind({"intervals": [10, 20], "unknown": [99]}, "3", "99", None)
    assert climb(hierarchy, 1) == ["99", "99", "99", "*"]
    assert climb(hierarchy, 2) == ["missing", "missing", "missing", "*"]
    assert len(hierarchy.labels[2]) == 3


def test_a_csv_is_taken_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text(
        "\ufeffa;vowel;letter\nb;consonant;letter\nc;consonant;letter\n", encoding="utf-8"
    )
    builder = Csv(csv="h.csv").read(tmp_path, "c")
    hierarchy = builder.bind(Domain("c", ("a", "b", None), ("a", "b", None)))
    assert climb(hierarchy, 1) == ["b", "consonant", "letter"]
    assert climb(hierarchy, 2) == ["missing", "missing", "letter"]
    assert hierarchy.size == 4  # a, b, c are listed; the null is a value of its own
    assert hierarchy.leaves[1].tolist() == [1, 2, 1]


def test_a_csv_has_its_own_rule_for_nulls(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("1,low,*\n,unknown,*\n", encoding="utf-8")
    hierarchy = Csv(csv="h.csv").read(tmp_path, "c").bind(Domain("c", (1, None), ("1", None)))
    assert climb(hierarchy, 1) == ["missing", "unknown", "*"]


@pytest.mark.parametrize(
    ("spec", "texts", "message"),
    [
        ({"intervals": [5, 12]}, ["1"], "level 2 splits a group of level 1.*12 is not one of 5"),
        ({"prefix": [1, 2]}, ["ab"], "level 2 splits a group of level 1"),
        ({"intervals": [5]}, ["x", "y"], "2 values are not a number.*--reveal"),
        ({"intervals": [5]}, ["nan"], "1 value is not a number"),
        ({"tree": {"g": ["a"]}}, ["a", "b"], "1 value is not covered"),
        ({"intervals": [0]}, ["1"], "numbers above 0"),
        ({"prefix": [1.5]}, ["1"], "whole numbers"),
        ({"intervals": []}, ["1"], "at least one entry"),
        ({"intervals": [5], "origin": "x"}, ["1"], "origin must be a number"),
        ({"flat": None, "top": "no"}, ["1"], "true or false"),
        (["flat"], ["1"], "expected a builder"),
    ],
)
def test_a_wrong_hierarchy_says_what_is_wrong(spec: object, texts: list[str], message: str) -> None:
    with pytest.raises(HierarchyError, match=message) as caught:
        bind(spec, *texts)
    assert "'c'" in str(caught.value)


def test_values_are_on_the_exception_and_not_in_its_text() -> None:
    with pytest.raises(HierarchyError) as caught:
        bind({"intervals": [5]}, "SECRET")
    assert caught.value.values == ("SECRET",)
    assert "SECRET" not in str(caught.value)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ("a;g;*\nb;g;x\n", "level 2 splits a group of level 1"),
        ("a;g\nb\n", "line 2 has 1 levels, line 1 has 2"),
        ("a;g\na;h\n", "line 2 repeats a value with other groups"),
        ("", "is empty"),
    ],
)
def test_a_wrong_csv_says_what_is_wrong(tmp_path: Path, rows: str, message: str) -> None:
    (tmp_path / "h.csv").write_text(rows, encoding="utf-8")
    with pytest.raises(HierarchyError, match=message):
        Csv(csv="h.csv").read(tmp_path, "c").bind(Domain("c", ("a",), ("a",)))


def test_values_of_the_data_may_not_be_split_either(tmp_path: Path) -> None:
    (tmp_path / "h.csv").write_text("a;g;x\nb;g;y\n", encoding="utf-8")
    with pytest.raises(HierarchyError, match="level 2 splits a group of level 1") as caught:
        Csv(csv="h.csv").read(tmp_path, "c").bind(Domain("c", ("a", "b"), ("a", "b")))
    assert caught.value.values == ("g",)


def test_an_unknown_builder_or_option_is_named() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'intervals'"):
        parse("c", {"interval": [5]})
    with pytest.raises(UnknownName, match="Did you mean 'origin'"):
        parse("c", {"intervals": [5], "orign": 3})


NUMBERS = st.integers(-200, 200).map(str)
TEXTS = st.text("abc*01", min_size=1, max_size=5)


@st.composite
def specs(draw: st.DrawFn) -> tuple[dict[str, object], st.SearchStrategy[str]]:
    common = {"top": draw(st.booleans())}
    kind = draw(st.sampled_from(["intervals", "prefix", "flat"]))
    if kind == "intervals":
        widths = [draw(st.integers(1, 5))]
        for _ in range(draw(st.integers(0, 2))):
            widths.append(widths[-1] * draw(st.integers(1, 4)))
        coding = {"bottom_coding": draw(st.integers(-100, 0)), "top_coding": draw(st.integers(0, 100))}
        extra = coding if draw(st.booleans()) else {}
        return {"intervals": widths, "origin": draw(st.integers(-9, 9)), **extra, **common}, NUMBERS
    if kind == "prefix":
        lengths = sorted(draw(st.lists(st.integers(1, 6), min_size=1, max_size=3)), reverse=True)
        return {"prefix": lengths, **common}, TEXTS
    return {"flat": None, **common}, TEXTS


@settings(max_examples=200, deadline=None)
@given(specs(), st.data())
def test_every_bound_hierarchy_is_nested(spec: tuple, data: st.DataObject) -> None:
    rule, values = spec
    texts = data.draw(st.lists(values | st.none(), min_size=1, max_size=12, unique=True))
    hierarchy = bind(rule, *texts)
    for level in range(1, hierarchy.height + 1):
        below, here = hierarchy.groups(level - 1), hierarchy.groups(level)
        for group in np.unique(below):
            assert len(set(here[below == group].tolist())) == 1
        assert hierarchy.leaves[level].sum() == hierarchy.size
    assert not rule["top"] or hierarchy.labels[-1] == ("*",)


@settings(max_examples=200, deadline=None)
@given(st.decimals(-1000, 1000, places=2), st.sampled_from(["0.1", "0.25", "5", "7.5"]))
def test_a_number_lies_in_its_band(number: Decimal, width: str) -> None:
    label = climb(bind({"intervals": [width], "origin": "0.05"}, str(number)), 0)[1]
    if label.startswith("["):
        low, high = (Decimal(part) for part in label.strip("[)").split(", "))
        assert low <= number < high
        assert high - low == Decimal(width)
