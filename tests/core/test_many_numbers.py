"""Many numbers are put into bands together: as each of them would be alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any
from unittest.mock import patch

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from example_counts import examples
from shoal.core.counts.counts import Domain
from shoal.core.hierarchy.numbers import Banded, Cuts, Intervals
from shoal.errors import HierarchyError

POINTS = st.integers(-60, 60).map(Decimal) | st.decimals(-60, 60, places=2)
WIDTHS = st.sampled_from(["0.05", "0.1", "1", "2.5", "5", "7", "1e-20", "1e18"]).map(Decimal)
PLAIN = st.integers(-61, 61).map(str) | st.from_regex(r"\A-?[0-9]{1,3}(\.[0-9]{1,3})?\Z")
TEXTS = st.one_of(
    PLAIN, PLAIN, PLAIN, st.sampled_from(["-0", "99.0", "999999999999999.99", "1e3", " 5", "x"])
)


@st.composite
def rules(draw: st.DrawFn) -> Banded:
    shared: dict[str, Any] = {
        "fractions": draw(st.sampled_from([None, None, True, False])),
        "unknown": draw(st.sampled_from([(), (), ("99",)])),
        "uncovered": draw(st.sampled_from([None, "other"])),
    }
    points = sorted(set(draw(st.lists(POINTS, min_size=1, max_size=6))))
    if draw(st.booleans()):
        return Cuts(cuts=(tuple(points), tuple(points[::2])), **shared)
    width, times = draw(WIDTHS), draw(st.sampled_from([1, 2, 3, Decimal("1.5")]))
    return Intervals(
        intervals=(width, width * times),
        origin=draw(POINTS),
        bottom_coding=draw(st.none() | POINTS),
        top_coding=draw(st.none() | POINTS),
        split=draw(st.sampled_from([(), ((points[0],),)])),
        **shared,
    )


def outcome(make: Callable[[], Any]) -> Any:
    try:
        return make()
    except (HierarchyError, ArithmeticError) as error:
        return type(error), str(error)


def results(rule: Banded, texts: Sequence[str], many: int) -> tuple[Any, ...]:
    domain = Domain("number", pa.array(texts), tuple(texts))
    with patch("shoal.core.hierarchy.builder._MIN_ARRAY_TEXTS", many):
        hierarchy = outcome(lambda: rule.bind(domain))
        if not isinstance(hierarchy, tuple):
            groups = [hierarchy.groups(level).tolist() for level in range(hierarchy.height + 1)]
            where = None if hierarchy.positions is None else list(map(repr, hierarchy.positions.tolist()))
            hierarchy = hierarchy.labels, groups, hierarchy.bounds, where
        return outcome(lambda: rule.with_fixed_style(texts)), outcome(lambda: rule.labels(texts)), hierarchy


@settings(max_examples=examples(2000), deadline=None)
@given(
    rules(), st.lists(TEXTS, min_size=1, max_size=40, unique=True) | st.lists(PLAIN, min_size=9, unique=True)
)
def test_many_numbers_get_the_labels_groups_and_errors_of_each(rule: Banded, texts: list[str]) -> None:
    ends = [f"{point:f}" for point in rule.points() if len(f"{point:f}") < 10]
    texts = list(dict.fromkeys([*texts, *ends]))
    assert results(rule, texts, 1) == results(rule, texts, 10**9)


def test_many_numbers_are_not_put_into_bands_one_by_one() -> None:
    rule = Intervals(intervals=(Decimal(100), Decimal(200)))
    texts = [f"{number / 10}" for number in range(20_000)]
    with patch.object(Intervals, "bands", autospec=True, side_effect=Intervals.bands) as bands:
        assert len(set(rule.labels(texts))) == bands.call_count == 20
