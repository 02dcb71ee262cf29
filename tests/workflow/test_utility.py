"""Utility: what an analyst loses, as plain Python measures it, and told without letting values out."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
import utility_oracle
from example_counts import examples
from problems import QUASI, policy_of_people
from shoal.cli.app import app
from shoal.core.counts import remote as far
from shoal.core.counts.counts import Domain
from shoal.engines.duckdb.engine import DuckDb
from shoal.engines.relational import relations
from shoal.errors import DataError, PolicyError, UnknownName, UsageError
from shoal.policy.policy import Policy
from shoal.workflow.utility import associations, classifier
from shoal.workflow.utility.associations import cramers_v, crossed, spearman
from shoal.workflow.utility.classifier import NEEDED
from shoal.workflow.utility.columns import bars_of, entropy
from shoal.workflow.utility.labels import middles, placed, with_point

MARK = "zzq"  # begins every value of a column that is generalized
LANDS = {"south": [f"{MARK}-it", f"{MARK}-es"], "north": [f"{MARK}-se", f"{MARK}-no"]}
UP = {land: group for group, lands in LANDS.items() for land in lands}


def people(number: int = 400, seed: int = 5) -> pd.DataFrame:
    chance = np.random.default_rng(seed)
    lands = chance.choice(list(UP), number, p=[0.4, 0.3, 0.2, 0.1])
    south = pd.Series(lands).map(UP) == "south"
    return pd.DataFrame(
        {
            "name": [f"person {i}" for i in range(number)],
            "age": chance.integers(20, 60, number),
            "land": lands,
            "sex": chance.choice(["f", "m"], number),
            "ill": np.where(chance.random(number) < np.where(south, 0.9, 0.2), "flu", "gout"),
            "stay": chance.integers(1, 9, number),
        }
    )


def policy(**changes: Any) -> dict[str, Any]:
    return policy_of_people(LANDS, "stay", **changes)


CALM = settings(deadline=None, max_examples=examples(60), suppress_health_check=[HealthCheck.too_slow])
NODE = {"age": 2, "land": 1, "sex": 0}


def column(found: shoal.Utility, name: str) -> Any:
    return next(one for one in found.columns if one.column == name)


# Formulas


def naive_v(pairs: list[tuple[int, int]]) -> float:
    """Cramer's V with Bergsma's correction, by expected counts and over all cells."""
    n = len(pairs)
    rows, columns, cells = Counter(a for a, _ in pairs), Counter(b for _, b in pairs), Counter(pairs)
    chi = 0.0
    for a in rows:
        for b in columns:
            expected = rows[a] * columns[b] / n
            chi += (cells[a, b] - expected) ** 2 / expected
    r, c = len(rows), len(columns)
    phi = max(0.0, chi / n - (r - 1) * (c - 1) / (n - 1))
    most = min(r - (r - 1) ** 2 / (n - 1), c - (c - 1) ** 2 / (n - 1)) - 1
    return min(1.0, math.sqrt(phi / most)) if most > 1e-12 else 0.0


def arrays(pairs: list[tuple[int, int]]) -> tuple[Any, Any, Any]:
    """Count pairs; some twice over, as combinations of more columns come."""
    counted = Counter((a, b, place % 2) for place, (a, b) in enumerate(pairs))
    return tuple(
        np.array(part, np.int64)
        for part in ([a for a, _, _ in counted], [b for _, b, _ in counted], list(counted.values()))
    )  # type: ignore[return-value]


PAIRS = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=60)


@given(PAIRS)
@CALM
def test_cramers_v_is_what_expected_counts_say(pairs: list[tuple[int, int]]) -> None:
    found = cramers_v(*arrays(pairs))
    assert found == pytest.approx(naive_v(pairs), abs=1e-6)
    assert found == cramers_v(*arrays([(b, a) for a, b in pairs]))
    assert 0 <= found <= 1


@given(st.lists(st.integers(0, 4), min_size=4, max_size=40).filter(lambda own: 1 < len(set(own)) < len(own)))
@CALM
def test_a_column_tells_all_of_itself_and_of_what_it_is_renamed_to(codes: list[int]) -> None:
    assert cramers_v(*arrays([(code, 9 - code) for code in codes])) == 1


@given(
    st.lists(st.integers(1, 5), min_size=1, max_size=5), st.lists(st.integers(1, 5), min_size=1, max_size=5)
)
@CALM
def test_independent_columns_tell_nothing_of_each_other(rows: list[int], columns: list[int]) -> None:
    pairs = [
        (a, b) for a, many in enumerate(rows) for b, more in enumerate(columns) for _ in range(many * more)
    ]
    assert cramers_v(*arrays(pairs)) == 0


def test_a_column_of_names_tells_nothing() -> None:
    assert cramers_v(np.arange(50), np.arange(50) % 2, np.ones(50, np.int64)) == 0
    assert cramers_v(np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)) == 0


@given(PAIRS)
@CALM
def test_pairs_are_added_up_alike_one_by_one_and_sorted(pairs: list[tuple[int, int]]) -> None:
    expected = Counter(pairs)
    for most in (1 << 22, 0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(associations, "_MOST_CELLS", most)
            a, b, records = crossed(*arrays(pairs))
        assert dict(zip(zip(a.tolist(), b.tolist(), strict=True), records.tolist(), strict=True)) == expected


@given(st.lists(st.integers(0, 6), min_size=1))
@CALM
def test_entropy_is_what_its_sum_says(one: list[int]) -> None:
    shares = [many / len(one) for many in Counter(one).values()]
    assert entropy(np.bincount(one, minlength=7)) == pytest.approx(sum(-p * math.log2(p) for p in shares))


@given(PAIRS)
@CALM
def test_spearman_is_the_correlation_of_ranks(pairs: list[tuple[int, int]]) -> None:
    x, y = [7.0, 3.0, 5.0, 5.0, 1.0, 9.0], [2.0, 8.0, 8.0, 1.0, 0.0]  # some positions are alike
    first, second = pd.Series([x[a] for a, _ in pairs]).rank(), pd.Series([y[b] for _, b in pairs]).rank()
    found = spearman(*arrays(pairs), np.array(x), np.array(y))
    if first.nunique() == 1 or second.nunique() == 1:
        assert found is None
    else:
        assert found == pytest.approx(float(np.corrcoef(first, second)[0, 1]), abs=1e-9)


# Columns


def test_a_release_that_is_its_input_loses_nothing() -> None:
    table = people()
    found = shoal.utility(table, table.drop(columns="name").sample(frac=1, random_state=1), policy())
    assert (found.records_before, found.records_after) == (400, 400)
    assert [one.column for one in found.columns] == ["age", "land", "sex", "ill", "stay"]
    for one in found.columns:
        assert (one.kept_information, one.suppressed_shift) == (1, 0)
        assert one.values == one.labels == table[one.column].nunique()
        assert one.entropy_after == pytest.approx(one.entropy_before)
        assert one.mean_after == one.mean_before
        assert one.deviation_after == one.deviation_before
        assert all(label.before == label.after for label in one.records)
        assert one.rest_before == one.rest_after == 0
    assert all(one.change == 0 and not one.estimated for one in found.associations)
    assert found.contingency
    assert found.contingency.before == found.contingency.after


def test_columns_are_what_plain_counts_say() -> None:
    table = people()
    wish = policy(models=[{"k-anonymity": {"k": 15}}], suppression_limit="60%")
    release = shoal.anonymize(table, wish, node=NODE)
    assert release.suppressed
    found = shoal.utility(table, release.table, wish)
    after = release.table
    before = table.assign(
        age=table["age"].map(lambda a: f"{a // 10 * 10}-{a // 10 * 10 + 9}"), land=table["land"].map(UP)
    )
    for one in found.columns:
        held = Counter(before[one.column].astype(str)), Counter(after[one.column].astype(str))
        told = {label.label: (label.before, label.after) for label in one.records}
        assert told == {label: (held[0][label], held[1][label]) for label in held[1]}
        assert one.values == table[one.column].nunique()
        assert one.labels == len(held[1])
        shift = (
            sum(abs(held[0][label] / 400 - held[1][label] / len(after)) for label in held[0] | held[1]) / 2
        )
        assert one.suppressed_shift == pytest.approx(shift)
        bits = [sum(-n / own.total() * math.log2(n / own.total()) for n in own.values()) for own in held]
        whole = Counter(table[one.column])
        input_bits = sum(-n / 400 * math.log2(n / 400) for n in whole.values())
        assert one.entropy_before == pytest.approx(input_bits)
        assert one.entropy_after == pytest.approx(bits[1])
        covers = dict(zip(before[one.column].astype(str), [set()] * 400, strict=True))
        for label, value in zip(before[one.column].astype(str), table[one.column], strict=True):
            covers[label] = covers[label] | {value}
        released = [covers[label] for label in after[one.column].astype(str)]
        assert one.kept_information == pytest.approx(utility_oracle.kept_information(whole, released))
        assert not one.estimated
    ages = after["age"].map(lambda band: sum(map(int, band.split("-"))) / 2)
    age = column(found, "age")
    assert (age.mean_before, age.deviation_before) == pytest.approx(
        (table["age"].mean(), table["age"].std(ddof=0))
    )
    assert (age.mean_after, age.deviation_after) == pytest.approx((ages.mean(), ages.std(ddof=0)))
    assert column(found, "land").mean_before is None
    for one in found.associations:
        for table_, side in ((table, one.before), (after, one.after)):
            codes = [pd.factorize(table_[name])[0].tolist() for name in one.columns]
            assert side == pytest.approx(naive_v(list(zip(*codes, strict=True))), abs=1e-9)


@pytest.mark.parametrize("algorithm", ["mondrian", {"contour": {"refine": True}}, "contour"])
def test_no_column_gains_information(algorithm: Any) -> None:
    frame = people(300, 8)
    asked = policy(algorithm=algorithm, suppression_limit="40%")
    utility = shoal.utility(frame, shoal.anonymize(frame, asked).table, asked)
    for one in utility.columns:
        assert one.entropy_after <= one.entropy_before
        assert 0 <= one.kept_information <= 1


def test_a_mean_of_open_ended_bands_is_no_exact_mean() -> None:
    frame = pd.DataFrame({"age": [40] * 6 + [95] * 3 + [99] * 3})
    bands = {"intervals": [10], "top_coding": 90}
    asked = {"columns": {"age": {"role": "quasi-identifier", "hierarchy": bands, "min_level": 1}}}
    asked |= {"models": [{"k-anonymity": {"k": 3}}], "suppression_limit": 0}
    age = shoal.utility(frame, shoal.anonymize(frame, asked).table, asked).columns[0]
    assert (age.mean_after_estimated, age.open_ended_records) == (True, 6)
    assert age.mean_after is not None
    assert age.mean_before is not None
    assert age.mean_after < age.mean_before
    whole = shoal.utility(frame, frame, asked).columns[0]
    assert (whole.mean_after_estimated, whole.open_ended_records) == (False, 0)


def test_suppression_shifts_a_distribution() -> None:
    table = pd.DataFrame({"sex": ["f"] * 6 + ["m"] * 4})
    wish = {"columns": {"sex": {"role": QUASI, "hierarchy": "flat"}}, "models": [{"k-anonymity": {"k": 5}}]}
    (one,) = shoal.utility(table, table.iloc[:8], wish).columns
    assert one.suppressed_shift == pytest.approx(abs(0.6 - 0.75))
    assert one.kept_information == 0.8  # two of ten records are gone
    (gone,) = shoal.utility(table, table.iloc[:6], wish).columns
    assert gone.suppressed_shift == pytest.approx(0.4)
    assert (gone.rest_before, gone.rest_after, gone.labels) == (4, 0, 1)
    assert bars_of(gone) == [("f", 6, 6), ("(not released)", 4, 0)]


FAMILIES: dict[str, dict[str, Any]] = {
    "node": {},
    "mask": {"suppressed": "mask", "suppression_limit": "30%"},
    "cells": {"algorithm": {"contour": {"cells": True}}, "metric": "coverage"},
    "bounds": {
        "columns": policy()["columns"]
        | {"age": {"role": QUASI, "hierarchy": {"intervals": [5, 10, 40]}, "release_as": "bounds"}}
    },
    "cut": {"algorithm": "greedy-cuts", "metric": "discernibility"},
}


@pytest.mark.parametrize("family", FAMILIES)
def test_labels_of_every_uniform_recoding_are_found_in_the_input(family: str) -> None:
    table = people()
    table.loc[:2, "land"] = None
    release = shoal.anonymize(table, policy(**FAMILIES[family]))
    found = shoal.utility(table, release.table, policy(**FAMILIES[family]))
    age = column(found, "age")
    assert not age.estimated
    assert all(label.before >= label.after > 0 for label in age.records)
    assert sum(label.before for label in age.records) + age.rest_before == 400
    blanks = release.table["age"].isna().sum() if family != "bounds" else 0
    assert sum(label.after for label in age.records) == len(release.table) - blanks
    assert None not in {label.label for label in age.records}


def test_missing_values_are_a_label_and_blanks_are_none() -> None:
    table = pd.DataFrame({"sex": ["f", "m", None] * 4})
    wish = {"columns": {"sex": {"role": QUASI, "hierarchy": "flat"}}, "models": [{"k-anonymity": {"k": 2}}]}
    (kept,) = shoal.utility(table, table, wish).columns
    assert [(one.label, one.before, one.after) for one in kept.records] == [
        ("f", 4, 4),
        ("m", 4, 4),
        (None, 4, 4),
    ]
    full = table.dropna()
    (blanked,) = shoal.utility(full, pd.DataFrame({"sex": ["f", "f", None]}), wish).columns
    assert [(one.label, one.before, one.after) for one in blanked.records] == [("f", 4, 2)]
    assert blanked.rest_before == 4


def test_numbers_that_are_written_otherwise_are_the_same() -> None:
    assert placed(["45", "7"], np.array([2, 1]), ["45.0"], np.array([2]), None).tolist() == [0, -1]  # type: ignore[union-attr]
    assert placed(["a", "b"], np.array([2, 1]), ["b"], np.array([2]), None) is None  # more than there were
    bands = placed(
        ["1", "5", "9", None], np.ones(4, np.int64), ["1-4", "5-9", None], np.ones(3, np.int64), None
    )
    assert bands is not None
    assert bands.tolist() == [0, 1, 1, 2]


def test_a_value_with_two_labels_above_it_is_not_placed() -> None:
    rule = Policy.load(policy()).builder("land").bind(Domain("land", list(UP), tuple(UP)))
    one, *_ = UP
    after = np.array([2, 4])
    assert placed(list(UP), np.full(4, 5), [one, "south"], after, rule) is None
    alone = placed(list(UP), np.full(4, 5), ["north", "south"], after, rule)
    assert alone is not None
    assert alone.tolist() == [1, 1, 0, 0]


@pytest.mark.parametrize(
    "values", [[3], [*range(61)], [n for n in range(30) for _ in range(1 + 400 // (n + 1))]]
)
def test_bars_hold_every_record_once(values: list[int]) -> None:
    texts = pd.Series([str(value) for value in values])
    table = pd.DataFrame({"x": texts, "y": [f"word {text}" for text in texts]})
    columns = {name: {"role": "other"} for name in table}
    wish = {
        "columns": columns | {"q": {"role": QUASI, "hierarchy": "flat"}},
        "models": [{"k-anonymity": {"k": 1}}],
    }
    found = shoal.utility(table, table.iloc[::2], wish)
    for one in found.columns:
        bars = bars_of(one)
        assert len(bars) <= 13
        assert bars or (one.column == "y" and len(values) == 61)  # words alike rare say nothing
        if bars:
            assert sum(bar[1] or 0 for bar in bars) == len(table)
            assert sum(bar[2] for bar in bars) == found.records_after


# Codes for unknown


def weighed(code: str, missing: bool, decimal: str = ".") -> tuple[pd.DataFrame, dict[str, Any]]:
    """Weights with a code for unknown, and missing ones; the heavier the older."""
    chance = np.random.default_rng(3)
    weights = np.arange(60, 120).repeat(10) + 0.5 * (decimal == ",")
    texts = [f"{weight:g}".replace(".", decimal) for weight in weights]
    ages = weights.astype(int) - 40 + chance.integers(0, 3, len(weights))
    more = [code] * 61 + [None] * (40 if missing else 0)
    table = pd.DataFrame(
        {
            "weight": pd.Series([*texts, *more], dtype="object"),
            "age": [*ages.tolist(), *[20] * len(more)],
            "ill": ["flu", "gout"] * (len(texts) // 2) + ["flu"] * len(more),
        }
    )
    rule = {"intervals": [5, 10], "unknown": [code]} | ({"decimal": ","} if decimal == "," else {})
    columns = {
        "weight": {"role": QUASI, "hierarchy": rule},
        "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}},
        "ill": {"role": "sensitive"},
    }
    return table, {"columns": columns, "models": [{"k-anonymity": {"k": 2}}], "suppression_limit": "20%"}


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize(("code", "decimal"), [("999", "."), ("k.A.", "."), ("999", ","), ("k.A.", ",")])
def test_codes_for_unknown_are_no_numbers(code: str, decimal: str, missing: bool) -> None:
    table, wish = weighed(code, missing, decimal)
    known = table[table["weight"].notna() & (table["weight"] != code)]
    numbers = known["weight"].str.replace(",", ".").astype(float)
    release = shoal.anonymize(table, wish, node={"weight": 1, "age": 2}).table
    assert (release["weight"] == code).sum() == 61
    for after in (table, release):
        found = shoal.utility(table, after, wish)
        weight = column(found, "weight")
        assert (weight.mean_before, weight.deviation_before) == pytest.approx(
            (numbers.mean(), numbers.std(ddof=0))
        )
        assert weight.mean_after == pytest.approx(numbers.mean(), abs=1)
        told = {one.label: (one.before, one.after) for one in weight.records if one.unknown}
        assert told[code] == (61, 61)
        assert len(told) == 1 + missing
        last = [one.unknown for one in weight.records]
        assert last == sorted(last)  # after all numbers
        bars = bars_of(weight)
        assert (f"{code} (unknown)", 61, 61) in bars
        assert not [bar for bar in bars if code in bar[0] and "\u2026" in bar[0]]
        if missing:
            assert bars[-1] in (("missing", 40, 40), ("(missing)", 40, 40))
        assert sum(bar[1] or 0 for bar in bars) == len(table)
        # Codes would have the highest weights of the youngest.
        both = next(one for one in found.associations if one.columns == ("weight", "age"))
        ranks = numbers.corr(known["age"], method="spearman")
        assert both.spearman_before == pytest.approx(ranks)
        assert both.spearman_after is not None
        assert both.spearman_after > 0.9


def test_codes_for_unknown_of_other_columns_can_be_named_too() -> None:
    table, wish = weighed("999", True)
    columns = wish["columns"] | {"weight": {"role": "other", "hierarchy": {"flat": None, "unknown": ["999"]}}}
    weight = column(shoal.utility(table, table, wish | {"columns": columns}), "weight")
    assert weight.mean_before == weight.mean_after == pytest.approx(89.5)
    plain = wish["columns"] | {"weight": {"role": "other"}}
    weight = column(shoal.utility(table, table, wish | {"columns": plain}), "weight")
    assert weight.mean_before > 150  # nobody said that 999 is none
    assert bars_of(weight)[-1] == ("(missing)", 40, 40)


def test_a_code_does_not_fall_into_an_open_band() -> None:
    texts, before = ["80", "95", "999", None], np.full(4, 5)
    labels, after = ["80-89", "90+", "999", None], np.full(4, 5)
    found = placed(texts, before, labels, after, None, {None, "999"})
    assert found is not None
    assert found.tolist() == [0, 1, 2, 3]
    gone = placed(texts, before, ["80-89", "90+"], np.full(2, 5), None, {None, "999"})
    assert gone is not None
    assert gone.tolist() == [0, 1, -1, -1]


def test_spearman_leaves_out_what_has_no_position() -> None:
    codes, sizes = np.array([0, 1, 2, 3]), np.array([4, 2, 1, 9])
    x = np.array([1.0, 2.0, 3.0, np.nan])
    assert spearman(codes, codes, sizes, x, -x) == -1
    assert spearman(codes, codes, sizes, np.full(4, np.nan), x) is None


def test_a_tree_finds_what_is_unknown_after_all_numbers() -> None:
    codes, order = np.array([2, 0, 1]), np.array([1.0, np.nan, 0.0])
    placed_ = classifier._placed(codes, order, np.zeros(3, np.int64), np.ones(3, np.bool_), 1)
    assert placed_.tolist() == [0, 1, 3]


def test_a_label_that_is_no_number_counts_as_the_mean_of_what_it_covers() -> None:
    table = people()
    found = shoal.utility(table, shoal.anonymize(table, policy(), node=NODE | {"age": 4}).table, policy())
    age = column(found, "age")
    assert age.mean_after == pytest.approx(table["age"].mean())
    assert (age.deviation_after, age.mean_after_estimated) == (0, True)
    assert (age.kept_information, age.suppressed_shift, age.estimated) == (0, 0, False)
    assert found.notes == ()
    both = next(one for one in found.associations if one.columns == ("age", "stay"))
    assert both.spearman_before is not None
    assert (both.after, both.spearman_after) == (0, 0)


def test_what_is_estimated_is_explained() -> None:
    table, wish = people(), policy(algorithm="mondrian", metric="coverage")
    found = shoal.utility(table, shoal.anonymize(table, wish).table, wish)
    estimated = [one.column for one in found.columns if one.estimated]
    assert estimated == ["age", "land"]
    assert any(note.startswith("Labels of age, land overlap: ") for note in found.notes)
    assert [one.estimated for one in found.associations] == [
        not {"age", "land"}.isdisjoint(one.columns) for one in found.associations
    ]
    numbers = table.assign(age=["unknown"] * 390 + ["20"] * 10)
    wish["columns"]["age"] = {"role": QUASI, "hierarchy": {"intervals": [5], "unknown": ["unknown"]}}
    found = shoal.utility(numbers, numbers[:390], wish)
    assert column(found, "age").mean_after is None
    assert "There is no mean after of age: no number is left in the release." in found.notes


def test_a_label_that_cannot_be_read_covers_everything() -> None:
    table = people()
    release = table.assign(land=["somewhere"] * 200 + ["elsewhere"] * 200)
    found = shoal.utility(table, release, policy())
    land = column(found, "land")
    assert (land.kept_information, land.suppressed_shift, land.estimated) == (0, 0, True)
    assert "2 labels of land could not be read and count as covering every value." in found.notes


# Pairs


def test_the_table_of_a_pair_is_what_plain_counts_say() -> None:
    table = people()
    release = shoal.anonymize(table, policy(), node=NODE)
    found = shoal.utility(table, release.table, policy(), pair=("ill", "land")).contingency
    assert found
    assert (found.columns, found.rows, found.across) == (("ill", "land"), ("flu", "gout"), ("north", "south"))
    before = pd.crosstab(table["ill"], table["land"].map(UP)).to_numpy().tolist()
    after = pd.crosstab(release.table["ill"], release.table["land"]).to_numpy().tolist()
    for cells, expected in ((found.before, before), (found.after, after)):
        assert cells is not None
        assert [list(row[:-1]) for row in cells[:-1]] == expected
        assert not any(cells[-1])
        assert not any(row[-1] for row in cells)


def test_the_pair_that_tells_most_is_taken_and_many_labels_are_put_together() -> None:
    table = people()
    release = shoal.anonymize(table, policy(), node=NODE)
    found = shoal.utility(table, release.table, policy())
    assert found.contingency
    strongest = max(found.associations, key=lambda one: one.before)
    assert set(found.contingency.columns) == set(strongest.columns) == {"land", "ill"}
    wide = shoal.utility(table, table, policy(), pair=("age", "sex")).contingency
    assert wide
    assert len(wide.rows) == 24
    assert wide.before
    assert sum(map(sum, wide.before)) == 400
    assert sum(wide.before[-1]) > 0


def test_the_order_of_rows_changes_nothing() -> None:
    table = people()
    release = shoal.anonymize(table, policy(), node=NODE).table
    shuffled = table.sample(frac=1, random_state=3), release.sample(frac=1, random_state=4)
    assert shoal.utility(*shuffled, policy()) == shoal.utility(table, release, policy())


def test_what_stays_in_an_engine_is_compared_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    table = people()
    wish = policy(**FAMILIES["bounds"])
    release = shoal.anonymize(table, wish, node=NODE).table
    expected = shoal.utility(table, release, wish)
    assert expected.associated == ("age", "land", "sex", "ill", "stay")
    for module in (relations, far):
        monkeypatch.setattr(module, "fits", lambda combinations, words, limit: combinations <= 250)
    engine = DuckDb()
    assert engine.count(engine.open(table), list(table))[0].remote
    assert shoal.utility(table, release, wish) == expected


# What cannot be compared


def test_what_is_wrong_is_said_without_values() -> None:
    table = people()
    release = table.drop(columns="name")
    with pytest.raises(UnknownName, match=r"Unknown column of the pair 'lamd'\. Did you mean 'land'"):
        shoal.utility(table, release, policy(), pair=("age", "lamd"))
    with pytest.raises(UsageError, match="A pair is two different columns"):
        shoal.utility(table, release, policy(), pair=("age", "age"))
    with pytest.raises(UsageError, match="A pair is two different columns"):
        shoal.utility(table, release, policy(), pair=("age",))
    with pytest.raises(UsageError, match="The target 'age' is a quasi-identifier"):
        shoal.utility(table, release, policy(), target="age")
    with pytest.raises(UnknownName, match="Unknown target 'name'"):
        shoal.utility(table, release, policy(), target="name")
    with pytest.raises(PolicyError, match="no column of the policy in common"):
        shoal.utility(table, pd.DataFrame({"other": [1]}), policy())
    with pytest.raises(DataError, match="The release has no rows"):
        shoal.utility(table, release.iloc[:0], policy())


def test_a_column_of_lists_is_left_out() -> None:
    table = pa.table({"sex": ["f", "m"] * 5, "visits": [[1, 2]] * 10})
    columns = {"sex": {"role": QUASI, "hierarchy": "flat"}, "visits": {"role": "other"}}
    found = shoal.utility(table, table, {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]})
    assert [one.column for one in found.columns] == ["sex"]
    assert found.notes == (
        "Only quasi-identifiers are compared: some other column does not hold single values.",
    )


def test_the_first_thirty_columns_are_compared_and_fifteen_associated() -> None:
    table = pd.DataFrame({f"c{n}": [str(i % 2) for i in range(8)] for n in range(34)})
    columns = {name: {"role": "other"} for name in table} | {"q": {"role": QUASI, "hierarchy": "flat"}}
    wish = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}
    found = shoal.utility(table, table, wish, pair=("c0", "c33"))
    assert [one.column for one in found.columns] == [*(f"c{n}" for n in range(30)), "c33"]
    assert found.notes == ("3 of 34 columns are not compared.",)
    assert len(found.associated) == 15
    assert len(found.associations) == 105
    assert {one.before for one in found.associations} == {1}


# The classifier


def test_a_tree_finds_what_is_there_to_find_and_says_it_again() -> None:
    pytest.importorskip("sklearn")
    table = people(2000)
    table["ill"] = table["land"].map(UP)
    wish = policy(label="ill")
    release = shoal.anonymize(table, wish, node=NODE).table
    found = shoal.utility(table, release, wish).prediction
    assert found
    assert (found.target, found.features) == ("ill", ("age", "land", "sex"))
    assert found.before.accuracy == found.after.accuracy == 1
    assert found.before.majority == pytest.approx((table["ill"] == "south").mean())
    gone = shoal.anonymize(table, wish, node=NODE | {"land": 2}).table
    worse = shoal.utility(table, gone, wish, target="ill").prediction
    assert worse
    assert worse.before == found.before
    assert abs(worse.after.accuracy - worse.after.majority) < 0.05
    again = shoal.utility(table.sample(frac=1, random_state=8), gone.sample(frac=1, random_state=9), wish)
    assert again.prediction == worse


def test_a_tree_tells_several_values_apart() -> None:
    pytest.importorskip("sklearn")
    table = people(2000)
    table["ill"] = "ill " + table["land"]
    found = shoal.utility(table, table, policy(), target="ill").prediction
    assert found
    assert (found.before.classes, found.before.accuracy) == (4, 1)


def test_many_records_are_drawn_from(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn")
    monkeypatch.setattr(classifier, "MOST_RECORDS", 300)
    table = people(2000)
    found = shoal.utility(table, table, policy(), target="ill").prediction
    assert found
    assert found.before.records == 300
    assert found.before == found.after
    assert abs(found.before.majority - (table["ill"].value_counts().max() / 2000)) < 0.1


@given(st.lists(st.integers(0, 3), min_size=5, max_size=80))
@CALM
def test_every_part_has_its_share_of_every_answer(answers: list[int]) -> None:
    folds = classifier.stratified(np.array(answers))
    sizes = np.bincount(folds, minlength=classifier.FOLDS)
    assert sizes.max() - sizes.min() <= 1
    for answer in set(answers):
        held = np.bincount(folds[np.array(answers) == answer], minlength=classifier.FOLDS)
        assert held.max() - held.min() <= 1


def test_without_scikit_learn_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(import_module("shoal.workflow.utility.utility"), "available", lambda: False)
    monkeypatch.setattr(classifier, "available", lambda: False)
    table = people()
    with pytest.raises(UsageError, match=re.escape("pip install 'shoal[ml]'")):
        shoal.utility(table, table, policy(), target="ill")
    found = shoal.utility(table, table, policy(label="ill"))
    assert found.prediction is None
    assert found.notes == (NEEDED,)


def test_a_target_that_cannot_be_predicted_is_refused_or_noted() -> None:
    pytest.importorskip("sklearn")
    table = people().assign(ill="flu")
    with pytest.raises(DataError, match="'ill' has one value: there is nothing to predict"):
        shoal.utility(table, table, policy(), target="ill")
    assert "one value" in shoal.utility(table, table, policy(label="ill")).notes[0]
    table = people().assign(ill=[f"ill {n % 150}" for n in range(400)])
    with pytest.raises(DataError, match="'ill' has 150 values, which are too many"):
        shoal.utility(table, table, policy(), target="ill")


# The command


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    people().to_csv(tmp_path / "data.csv", index=False)
    (tmp_path / "policy.yaml").write_text(yaml.safe_dump(policy(), sort_keys=False))
    shoal.anonymize(tmp_path / "data.csv", policy(), node=NODE, output=tmp_path / "release.csv")
    return tmp_path


def call(desk: Path, *more: object) -> Any:
    given_ = [
        "utility",
        desk / "data.csv",
        "--release",
        desk / "release.csv",
        "--policy",
        desk / "policy.yaml",
    ]
    done = CliRunner(env={"COLUMNS": "120"}).invoke(app, [str(one) for one in (*given_, *more)])
    assert done.exception is None or isinstance(done.exception, SystemExit), repr(done.exception)
    return done


def test_the_command_prints_what_the_function_returns(desk: Path) -> None:
    done = call(desk, "--json", "--pair", "ill, sex")
    found = shoal.utility(desk / "data.csv", desk / "release.csv", desk / "policy.yaml", pair=("ill", "sex"))
    assert json.loads(done.stdout) == json.loads(json.dumps(found.to_dict()))
    assert {"change", "before", "after"} <= set(json.loads(done.stdout)["associations"][0])
    assert MARK not in done.stdout


def test_the_command_says_how_open_bands_count_where_there_are_some(tmp_path: Path) -> None:
    data, release = tmp_path / "t.csv", tmp_path / "r.csv"
    data.write_text("age,size\n" + "".join(f"{n},{n}\n" for n in range(70, 110)), encoding="utf-8")
    columns = {
        name: {"role": "quasi-identifier", "hierarchy": {"intervals": [10], **own}}
        for name, own in (("age", {"top_coding": 90}), ("size", {}))
    }
    told = {"columns": columns, "models": [{"k-anonymity": {"k": 2}}]}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(told), encoding="utf-8")
    shoal.anonymize(data, told, node={"age": 1, "size": 1}, output=release)
    words = ["utility", str(data), str(release), "--policy", str(tmp_path / "p.yaml")]
    said = CliRunner().invoke(app, words).stdout
    assert "Open-ended bands count as their one end, so the mean may lie beyond what is shown: age (" in said


def test_the_command_shows_columns_pairs_and_draws(desk: Path) -> None:
    done = call(desk, "--plots", desk / "plots")
    assert done.exit_code == 0
    assert "What is left of each column" in done.stdout
    assert "land and ill" in done.stdout
    assert "400 before" in done.stdout
    names = {"associations", "distributions", "pair"}
    assert {path.name for path in (desk / "plots").iterdir()} == {
        f"{n}.{e}" for n in names for e in ("png", "svg")
    }


def test_the_command_shows_the_pair_that_is_asked_for(desk: Path) -> None:
    assert "Records by" not in call(desk).stdout
    done = call(desk, "--pair", "land,sex")
    told = shoal.utility(
        desk / "data.csv", desk / "release.csv", desk / "policy.yaml", pair=("land", "sex")
    ).contingency
    assert told
    assert told.before
    assert "Records by land and sex" in done.stdout
    cells = re.findall(r"(north|south) +(f|m) +(\d+) +(\d+)", done.stdout)
    expected = {
        (land, sex, told.before[a][b], told.after[a][b])
        for a, land in enumerate(told.rows)
        for b, sex in enumerate(told.across)
    }
    assert {(land, sex, int(before), int(after)) for land, sex, before, after in cells} == expected
    assert MARK not in done.stdout
    assert "other labels" not in done.stdout
    many = call(desk, "--pair", "stay,age").stdout
    cells = re.findall(r"(\d) +(\d\d-\d\d) +(\d+) +(\d+)", many)
    assert len(cells) == 15
    left = int(re.findall(r"(\d+) of the records after have other labels, which are not listed", many)[0])
    assert left + sum(int(cell[3]) for cell in cells) == len(pd.read_csv(desk / "release.csv"))


def test_the_command_refuses_what_is_not_there(desk: Path) -> None:
    done = call(desk, "--pair", "age", "--json")
    assert done.exit_code == 2
    assert json.loads(done.stdout)["error"] == "UsageError"
    assert call(desk, "--target", "land").exit_code == 2


# The report


@pytest.mark.parametrize("family", ["node", "bounds", "cut", "mondrian"])
def test_the_report_tells_it_and_lets_no_value_out(family: str, tmp_path: Path) -> None:
    changes = FAMILIES.get(family, {"algorithm": "mondrian", "metric": "coverage"})
    output = tmp_path / "release.csv"
    release = shoal.anonymize(people(), policy(label="ill", **changes), output=output, report=True)
    assert release.report
    html = release.report.read_text(encoding="utf-8")
    assert release.utility
    assert "<h2>What the analyst loses</h2>" in html
    assert "<caption>Cramer's V after</caption>" in html.replace("&#x27;", "'")
    assert ("right in <strong>" in html) is (release.utility.prediction is not None)
    out = output.read_text()
    assert not {word for word in re.findall(rf"{MARK}-[a-z]+", html) if word not in out}
    shown = {int(words) for words in re.findall(r"<bdi>(\d\d)</bdi>", html)}
    assert shown <= {int(words) for words in re.findall(r"\b\d\d\b", out)}
    assert re.sub(r"Written .*? UTC", "", shoal.report(release)) == re.sub(r"Written .*? UTC", "", html)


def test_numbers_in_heat_maps_are_readable_in_light_and_dark() -> None:
    style = (Path(shoal.__file__).parent / "data" / "report.css").read_text(encoding="utf-8")
    blocks = re.findall(r":root\s*\{([^}]*)\}", style)
    shades = [int(part) / 100 for part in re.findall(r"\.heat \.s\d+ .*?var\(--heat\) (\d+)%", style)]
    assert shades == sorted(shades)
    assert len(shades) == 10
    for block in blocks:
        colours = {name: np.array([int(rgb[at : at + 2], 16) for at in (0, 2, 4)]) / 255
                   for name, rgb in re.findall(r"--(\w+): #([0-9a-f]{6});", block)}  # fmt: skip
        for heat in ("before", "after"):
            for share in shades:
                paper = luminance(share * colours[heat] + (1 - share) * colours["paper"])
                low, high = sorted((paper, luminance(colours["ink"])))
                assert (high + 0.05) / (low + 0.05) >= 4.5


def luminance(colour: Any) -> float:
    linear = np.where(colour <= 0.04045, colour / 12.92, ((colour + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def test_a_report_of_a_release_in_memory_takes_a_utility() -> None:
    table = people()
    release = shoal.anonymize(table, policy(), node=NODE)
    assert release.utility is None
    assert "What the analyst loses" not in shoal.report(release)
    html = shoal.report(release, shoal.utility(table, release.table, policy()))
    assert "What the analyst loses" in html
    assert MARK not in html.partition("What the analyst loses")[2]


def test_a_run_without_a_report_measures_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr(import_module("shoal.workflow.report.report"), "compared", never)
    release = shoal.anonymize(people(), policy(), output=tmp_path / "release.csv")
    assert (release.utility, release.report) == (None, None)


def test_a_report_says_that_the_classifier_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(classifier, "available", lambda: False)
    release = shoal.anonymize(people(), policy(label="ill"), output=tmp_path / "release.csv", report=True)
    assert release.report
    assert NEEDED.partition(":")[0] in release.report.read_text(encoding="utf-8")


def test_a_release_does_not_fail_because_of_its_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: object, **__: object) -> None:
        message = "classes do not fit"
        raise DataError(message)

    monkeypatch.setattr(import_module("shoal.workflow.utility.utility"), "associations_of", never)
    release = shoal.anonymize(people(), policy(), output=tmp_path / "release.csv", report=True)
    assert release.report
    assert release.utility is None
    assert "What was lost" in release.report.read_text(encoding="utf-8")


# Ranges with a decimal comma, as regions of such a column have.

STYLES = ["[{}-{}]", "[{} to {}]", "{}-{}", "{} to {}", "[{}, {})", "({}; {}]", "{}..{}", "{}\u2013{}"]
ENDS = ["<{}", "<= {}", "{}+", ">{}", "from {}", "up to {}", "{}"]
NUMBERS = st.decimals(-5000, 5000, places=1).map(abs)


@given(
    st.lists(
        st.tuples(st.sampled_from([*STYLES, *ENDS]), NUMBERS, NUMBERS).filter(lambda d: d[1] != d[2]),
        min_size=1,
        max_size=6,
    )
)
def test_ranges_with_a_comma_are_read_as_those_with_a_point(drawn: list[Any]) -> None:
    points = [style.format(*sorted(ends)) for style, *ends in drawn]
    commas = [style.format(*(str(end).replace(".", ",") for end in sorted(ends))) for style, *ends in drawn]
    one, other = middles(points), middles(commas)
    assert one is not None
    np.testing.assert_array_equal(one, np.array(other))
    assert list(with_point(commas)) == points


def test_commas_that_may_part_thousands_are_told_by_what_stands_beside_them() -> None:
    assert middles(["[1,234-2,345]", "3,456"]) is None
    np.testing.assert_array_equal(middles(["[1,234-2,344]"], beside=["1,234", "0,5"]), [1.789])
    assert middles(["[1,234-2,344]"], beside=["1,234", "0.5"]) is None
    assert list(with_point(["[45,50)", "45,50,60", "1,234,567", "36,6 kg"])) == [
        "[45,50)", "45,50,60", "1,234,567", "36,6 kg",
    ]  # fmt: skip
    assert list(with_point(["36,6", "[36.5, 37)"])) == ["36.6", "[36.5, 37)"]


@pytest.mark.parametrize("lowest", [36.0, -2.0])
def test_a_release_of_ranges_with_a_comma_loses_nothing(lowest: float, tmp_path: Path) -> None:
    found = {}
    for decimal in (".", ","):
        texts = [f"{lowest + n % 37 / 10:.1f}".replace(".", decimal) for n in range(240)]
        table = pd.DataFrame({"t": texts, "sex": ["f", "m"] * 120}, dtype="string")
        columns = {
            "t": {"role": "quasi-identifier", "hierarchy": {"intervals": [1], "decimal": decimal}},
            "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        }
        models = [{"k-anonymity": {"k": 7}}]
        wish = {"columns": columns, "models": models, "algorithm": "mondrian", "metric": "coverage"}
        data, output = tmp_path / f"data{decimal}.csv", tmp_path / f"release{decimal}.csv"
        table.to_csv(data, index=False)
        release = shoal.anonymize(data, wish, output=output)
        labels = set(pd.read_csv(output, dtype="string")["t"])
        assert any("-" in label or " to " in label for label in labels)
        assert all(decimal in label for label in labels)
        assert shoal.verify(output, wish).verified
        column = next(one for one in shoal.utility(data, output, wish).columns if one.column == "t")
        assert column.mean_after is not None
        figures = (
            column.mean_after,
            column.deviation_after,
            column.kept_information,
            column.suppressed_shift,
        )
        ways = ({}, {"policy": wish}, {"recipe": release.recipe})
        attacks = [shoal.attack(output, data, ["t", "sex"], **told) for told in ways]
        assert all(one.matched == 240 and one.smallest >= 7 and one.notes == () for one in attacks)
        found[decimal] = figures, [one.to_dict() for one in attacks]
    assert found["."] == found[","]
