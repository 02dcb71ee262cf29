"""Utility where labels of a column overlap: the oracle spreads every record over what its cells cover."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shoal
import utility_oracle as oracle
from example_counts import examples
from problems import QUASI
from shoal.errors import Infeasible
from shoal.workflow.utility import spread as spreads
from shoal.workflow.utility.associations import cramers_v
from shoal.workflow.utility.covers import ColumnValues, Covers, covers_of
from shoal.workflow.utility.spread import LabelSpread

FEW = settings(deadline=None, max_examples=examples(40), suppress_health_check=list(HealthCheck))
LANDS = {"south": ["it", "es"], "north": ["se", "no", "fi"]}
ORDER: dict[str, list[Any]] = {
    "age": list(range(12)),
    "size": list(range(12)),
    "land": [land for lands in LANDS.values() for land in lands],
}
COLUMNS = {
    "age": {"role": QUASI, "hierarchy": {"intervals": [2, 4]}},
    "size": {"role": QUASI, "hierarchy": {"intervals": [3, 6]}},
    "land": {"role": QUASI, "hierarchy": {"tree": LANDS}},
}
ROWS = st.lists(
    st.tuples(st.integers(0, 11), st.integers(0, 11), st.sampled_from(ORDER["land"])), min_size=8, max_size=40
)
RECODINGS: dict[str, dict[str, Any]] = {
    "contour": {"algorithm": "contour"},
    "refine": {"algorithm": {"contour": {"refine": True}}},
    "cells": {"algorithm": {"contour": {"cells": True}}, "metric": "coverage"},
    "mondrian": {"algorithm": "mondrian", "metric": "coverage"},
}


def cover_of(name: str, label: Any) -> Any:
    """The values that a label covers, as its text says."""
    if label is None or label is pd.NA or label != label:
        return None
    text = str(label)
    parts = text.split(" or ")
    if len(parts) > 1:
        return frozenset().union(*(cover_of(name, part) for part in parts))
    if text == "*":
        return frozenset(ORDER[name])
    if name == "land":
        members = text.strip("{}").split(", ")
        return frozenset(land for member in members for land in LANDS.get(member, [member]))
    match = re.fullmatch(r"\[?(\d+)(?:-(\d+))?\]?", text)
    assert match
    low, high = match.groups()
    return frozenset(range(int(low), int(high or low) + 1))


def table_of(rows: list[tuple[int, int, str]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=list(COLUMNS))


def wish_of(**changes: Any) -> dict[str, Any]:
    return {"columns": COLUMNS, "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": "90%"} | changes


def check(table: pd.DataFrame, release: pd.DataFrame) -> shoal.Utility:
    """Compare every figure with the oracle's."""
    utility = shoal.utility(table, release, wish_of())
    befores = {name: Counter(table[name].tolist()) for name in COLUMNS}
    cells = {
        name: [
            None if cover is None else frozenset(cover & befores[name].keys())
            for cover in (cover_of(name, label) for label in release[name])
        ]
        for name in COLUMNS
    }
    for column in utility.columns:
        check_column(column, befores[column.column], release[column.column], cells[column.column])
    for association in utility.associations:
        check_pair(association, befores, cells)
    if utility.contingency:
        check_contingency(utility.contingency, table, release, befores, cells)
    return utility


def check_column(column: Any, before: Counter[Any], labels: Any, cells: list[Any]) -> None:
    kept = oracle.kept_information(before, cells)
    assert column.kept_information == pytest.approx(kept, abs=1e-9)
    if column.estimated:
        within = [oracle.bits(before[value] for value in cell) for cell in cells if cell is not None]
        bits = max(0.0, oracle.bits(before.values()) - sum(within) / len(within))
        assert column.entropy_after == pytest.approx(bits, abs=1e-9)
    assert column.suppressed_shift == pytest.approx(oracle.shift(before, cells), abs=1e-9)
    covers = {label: cell for label, cell in zip(labels, cells, strict=True) if cell is not None}
    covered = Counter(value for cell in covers.values() for value in cell)
    assert column.estimated is (max(covered.values()) > 1)
    records = Counter(label for label in labels if label in covers)
    parts = oracle.shares_of_labels(before, covers, records)
    assert sum(one.before for one in column.records) + column.rest_before == sum(before.values())
    for label in covers:
        expected = sum(before[value] * held.get(label, 0) for value, held in parts.items())
        (one,) = (one for one in column.records if one.label == str(label))
        assert one.after == records[label]
        assert abs(one.before - expected) < 1 + 1e-6
    if column.estimated and column.mean_before is not None:
        assert (column.mean_after, column.deviation_after) == pytest.approx(oracle.mean(before, cells))
    assert (column.mean_before is None) == (column.mean_after is None)


def check_pair(association: Any, befores: dict[str, Counter[Any]], cells: dict[str, list[Any]]) -> None:
    one, other = association.columns
    pairs = [pair for pair in zip(cells[one], cells[other], strict=True) if None not in pair]
    both = befores[one], befores[other]
    assert association.after == pytest.approx(oracle.cramers_v(both, pairs), abs=1e-6)
    if association.spearman_before is None:
        assert association.spearman_after is None
        return
    group_of = [
        oracle.groups([value for value in ORDER[name] if value in befores[name]], cells[name])
        for name in association.columns
    ]
    expected = (oracle.spearman(both, group_of, pairs) or 0.0) if pairs else 0.0
    assert association.spearman_after == pytest.approx(expected, abs=1e-6)


def check_contingency(
    pair: Any,
    table: pd.DataFrame,
    release: pd.DataFrame,
    befores: dict[str, Any],
    cells: dict[str, list[Any]],
) -> None:
    parts = {}
    for name in pair.columns:
        labelled = zip(release[name], cells[name], strict=True)
        covers = {str(label): cell for label, cell in labelled if cell is not None}
        records = Counter(str(label) for label in release[name] if str(label) in covers)
        parts[name] = oracle.shares_of_labels(befores[name], covers, records)
    one, other = pair.columns
    assert sum(map(sum, pair.before)) == len(table)
    rows = list(zip(release[one].map(str), release[other].map(str), strict=True))
    for row, label in enumerate(pair.rows):
        for column, across in enumerate(pair.across):
            expected = sum(
                parts[one][a].get(label, 0) * parts[other][b].get(across, 0)
                for a, b in zip(table[one], table[other], strict=True)
            )
            assert abs(pair.before[row][column] - expected) < 1 + 1e-6
            assert pair.after[row][column] == rows.count((label, across))


def nulls(value: Any, path: str = "") -> list[str]:
    if isinstance(value, dict):
        return [found for key, part in value.items() for found in nulls(part, f"{path}.{key}")]
    if isinstance(value, list | tuple):
        return [found for part in value for found in nulls(part, path)]
    return [path] if value is None else []


@pytest.mark.parametrize("recoding", RECODINGS)
@given(rows=ROWS)
@FEW
def test_every_figure_of_every_recoding_is_the_oracle_s(recoding: str, rows: list[Any]) -> None:
    table = table_of(rows)
    try:
        release = shoal.anonymize(table, wish_of(**RECODINGS[recoding])).table
    except Infeasible:
        return
    utility = check(table, release.astype("object").where(release.notna(), None))
    means = {".columns.mean_before", ".columns.mean_after", ".columns.deviation_before"}
    means |= {".columns.deviation_after", ".associations.spearman_before", ".associations.spearman_after"}
    assert set(nulls(utility.to_dict())) <= {*means, ".contingency", ".prediction"}


LABELS = {
    "age": st.sampled_from(["*", "0-1", "4-7", "[2-5]", "[1-8]", "0-3 or 8-11", "[0-2] or [6-9]", "3", None]),
    "size": st.sampled_from(["*", "0-2", "3-5", "6-11", "[2-9]", "0-2 or 6-8", "7", None]),
    "land": st.sampled_from(["*", "south", "{it, se}", "it or es", "north or it", "no", None]),
}


@given(ROWS, st.data())
@FEW
def test_any_labels_are_read_and_spread(rows: list[Any], data: st.DataObject) -> None:
    every = [*zip(ORDER["age"], ORDER["size"], ORDER["land"] * 3, strict=False)]
    table = table_of([*every, *rows])
    number = data.draw(st.integers(2, len(table)))
    drawn = {name: data.draw(st.lists(LABELS[name], min_size=number, max_size=number)) for name in COLUMNS}
    drawn = {name: [*labels[:-1], "*"] for name, labels in drawn.items()}  # not every cell is empty
    check(table, pd.DataFrame(drawn))


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=40), st.lists(st.integers(0, 2), min_size=6, max_size=6)
)
@FEW
def test_labels_that_do_not_overlap_keep_their_entropy(values: list[int], label_of: list[int]) -> None:
    before = np.bincount(values, minlength=6)
    codes = np.array(label_of)
    after = np.bincount(codes, before, 3).astype(np.int64)
    spread = LabelSpread(Covers.of_codes(codes, 3), before, after)
    whole = oracle.bits(before)
    assert not spread.overlaps
    assert spread.kept_information() == pytest.approx(oracle.bits(after) / whole if whole else 1)
    assert spread.shift() == 0
    assert spread.expected_before() == pytest.approx(after)
    assert spread.label_codes is not None
    used = before > 0
    assert spread.label_codes[used].tolist() == codes[used].tolist()


def test_many_groups_are_merged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spreads, "MOST_GROUPS", 5)
    values = np.arange(40)
    covers = Covers.of_runs(values, [[(n, n + 3)] for n in range(38)], 0)
    spread = LabelSpread(covers, np.ones(40, np.int64), np.ones(38, np.int64))
    assert len(spread.groups) <= 6
    assert spread.weights.sum(axis=1) == pytest.approx(np.ones(38))


def test_an_association_survives_overlapping_ranges() -> None:
    chance = np.random.default_rng(4)
    age = chance.integers(20, 80, 2000)
    table = pd.DataFrame({"age": age, "size": (age // 10 + chance.integers(0, 2, 2000)), "land": "it"})
    wish = wish_of(algorithm="mondrian", metric="coverage", models=[{"k-anonymity": {"k": 10}}])
    utility = shoal.utility(table, shoal.anonymize(table, wish).table, wish)
    both = next(one for one in utility.associations if set(one.columns) == {"age", "size"})
    assert both.estimated
    assert both.after > 0.5
    assert both.spearman_after is not None
    assert both.spearman_before - 0.1 < both.spearman_after <= 1


@pytest.mark.parametrize(
    ("label", "values"),
    [
        ("[36,4-36,6]", {"36,4", "36,5", "36,6"}),
        ("[36,5-37] or missing", {"36,5", "36,6", "37", None, "k.A."}),
        ("missing", {None}),
        ("k.A.", {"k.A."}),
        ("37", {"37"}),
        ("*", {"36,4", "36,5", "36,6", "37", None, "k.A."}),
        ("[36,4-36,4] or [36,6-37]", {"36,4", "36,6", "37"}),
        ("{36,4; 37}", None),
    ],
)
def test_ranges_with_decimal_commas_and_missing_values_are_read(label: str, values: Any) -> None:
    texts = ("36,4", "36,5", "36,6", "37", None, "k.A.")
    rule = {"intervals": [1], "decimal": ",", "unknown": ["k.A."]}
    column = column_of(texts, rule)
    covers = covers_of(column, [label], np.ones(6, np.int64), np.ones(1, np.int64))
    slots = [slot for low, high in zip(covers.low, covers.high, strict=True) for slot in range(low, high)]
    covered = {texts[covers.order[slot]] for slot in slots}
    assert covered == (set(texts) if values is None else values)
    assert covers.unread == (values is None)


def column_of(texts: Any, rule: Any, *, bounds: bool = False) -> ColumnValues:
    from shoal.core.counts.counts import Domain
    from shoal.policy.policy import Policy

    builder = Policy.load(
        {"columns": {"x": {"role": QUASI, "hierarchy": rule}}, "models": [{"k-anonymity": {"k": 2}}]}
    ).builder("x")
    unknown = frozenset(text for text in texts if text is None or builder.is_unknown(text)) | {"missing"}
    return ColumnValues(texts, unknown, builder.bind(Domain("x", texts, texts)), builder, bounds=bounds)


@pytest.mark.parametrize(
    ("texts", "rule", "label", "values"),
    [
        (("2024-01-03", "2024-01-20", "2024-02-02"), {"dates": ["month", "year"]}, "2024-01", 2),
        (("2024-01-03", "2024-01-20", "2024-02-02"), {"dates": ["month"]}, "[2024-01-20 to 2024-02-02]", 2),
        (("2024-01-03", "2024-01-20", "2024-02-02"), {"dates": ["month"]}, "2024-01 or 2024-02", 3),
        (("1234", "1299", "1300"), {"prefix": [2, 1]}, "12*", 2),
        (("1234", "1299", "1300"), {"prefix": [2, 1]}, "{1234, 1300}", 2),
        (("1234", "1299", "1300"), {"prefix": [2, 1]}, "[1234-1299]", 2),
        (("a", "b", "c", None), "flat", "{a, missing}", 2),
        (("a", "b", "c", None), "flat", "b or missing", 2),
        (("a", "missing", "c", "d"), "flat", "{a, missing}", 2),
        (("a or b", "a", "b", "c"), "flat", "a or b", 1),
        (("a or b", "a", "b", "c"), "flat", "a or b or c", 2),
        (("3", "12", "17"), {"intervals": [10]}, "0-19", 3),
    ],
)
def test_labels_of_every_kind_are_read(texts: Any, rule: Any, label: str, values: int) -> None:
    number = len(texts)
    covers = covers_of(column_of(texts, rule), [label], np.ones(number, np.int64), np.ones(1, np.int64))
    assert covers.unread == 0
    assert int((covers.high - covers.low).sum()) == values


@pytest.mark.parametrize(("label", "values"), [("0 to 9", 1), ("10 to 17", 2), ("from 10", 2), (None, 3)])
def test_bounds_are_read(label: str, values: int) -> None:
    column = column_of(("3", "12", "17"), {"intervals": [10]}, bounds=True)
    covers = covers_of(column, [label], np.ones(3, np.int64), np.ones(1, np.int64))
    assert int((covers.high - covers.low).sum()) == values


def test_effective_groups_are_counted_where_labels_do_not_overlap() -> None:
    a, b, sizes = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1]), np.array([30, 10, 10, 30])
    assert cramers_v(a, b, sizes) == cramers_v(a, b, sizes.astype(float), (2, 2))
