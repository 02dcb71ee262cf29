"""Columns of many values are guessed from arrays, with the results of the definitions value by value."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import shoal
from example_counts import examples
from shoal.columns import duplicates, natural
from shoal.columns.evidence import number_records, unknown_codes
from shoal.columns.guesses import guess_column
from shoal.core.counts.in_memory import InMemoryCounts
from shoal.core.hierarchy import builder
from shoal.core.hierarchy.builder import decimal_of, number_of, plain_numbers
from shoal.engines import ENGINES
from shoal.workflow import first_policy
from shoal.workflow.first_policy import outlook
from shoal.workflow.inspect import guess_columns_of
from shoal.workflow.policy_request import PolicyRequest
from shoal.workflow.session import session

NUMBERS = st.one_of(
    st.integers(-120, 120).map(str),
    st.sampled_from(
        ["99", "999", "9999", "-1", "1.0", "01", "1.50", "1e3", "+4", "12345678901234567890", "1,5"]
    ),
    st.decimals(-1000, 1000, places=2).map(str),
    st.sampled_from(["", "unknown", "U", "n/a", "x", "٣", "1\n", " 2"]),
)


def _both(function: Callable[..., object], *args: object) -> tuple[object, object]:
    results = []
    for many in (1, 1 << 40):
        with patch.object(builder, "_MIN_ARRAY_TEXTS", many):
            results.append(function(*args))
    return results[0], results[1]


@settings(max_examples=examples(300), deadline=None)
@given(texts=st.lists(NUMBERS, min_size=1, max_size=12, unique=True))
@example(texts=["0", "99"])
@example(texts=["99", "5", "5.0", "5.00", "40"])
def test_numbers_read_as_an_array_are_judged_as_one_by_one(texts: list[str]) -> None:
    for function in (decimal_of, unknown_codes):
        by_array, one_by_one = _both(function, texts)
        assert by_array == one_by_one
    with patch.object(builder, "_MIN_ARRAY_TEXTS", 1):
        numbers = plain_numbers(texts)
    if numbers is not None:
        exact = [number_of(text) for text in texts]
        assert numbers.tolist() == [float(number) for number in exact if number is not None]


@settings(max_examples=examples(100), deadline=None)
@given(
    numbers=st.lists(st.integers(0, 300), min_size=1, max_size=30, unique=True), records=st.integers(1, 40)
)
def test_whole_numbers_are_recognized_with_and_without_a_point(numbers: list[int], records: int) -> None:
    texts = list(map(str, numbers))
    assert number_records(texts, records) == number_records([f"{text}.0" for text in texts], records)


@pytest.mark.parametrize("draw", ["even", "skewed"])
def test_bands_of_very_many_numbers_are_those_of_evenly_spaced_ones(draw: str) -> None:
    random = np.random.default_rng(3)
    values = (
        np.arange(60_000) if draw == "even" else np.unique((random.random(60_000) ** 4 * 1e7).astype(int))
    )
    texts = list(map(str, values.tolist()))
    with patch.object(natural, "_MOST_NUMBERS", 1 << 40):
        expected = natural.number_hierarchy(texts, [1] * len(texts), ".")
    thinned = natural.number_hierarchy(texts, [1] * len(texts), ".")
    assert expected is not None
    assert thinned is not None
    assert list(thinned) == list(expected)
    if draw == "even":
        assert thinned == expected


def test_a_guess_without_a_hierarchy_is_the_same_otherwise() -> None:
    table = pa.table({"cost": [f"{n}.5" for n in range(50)], "day": ["2024-05-01", "2024-06-02"] * 25})
    with session(table) as s:
        for name in table.column_names:
            counts, domains = s.count([name])
            assert isinstance(counts, InMemoryCounts)
            full, bare = (
                guess_column(name, counts, domains[name], with_hierarchy=wanted) for wanted in (True, False)
            )
            assert full.hierarchy is not None
            assert bare.hierarchy is None
            assert (bare.kind, bare.role, bare.column_kind, bare.identifier) == (
                full.kind, full.role, full.column_kind, full.identifier,
            )  # fmt: skip


def test_a_sample_of_the_rows_is_always_the_same_and_has_all_columns() -> None:
    table = pa.table({"a": list(range(10_000)), "b": [str(n % 7) for n in range(10_000)]})
    engine = ENGINES.create("duckdb")
    try:
        opened = engine.open(table)
        samples = [engine.fetch(engine.sample(opened, 10)) for _ in range(2)]
    finally:
        engine.close()
    assert samples[0].column_names == ["a", "b"]
    assert 700 < len(samples[0]) < 1300
    assert sorted(samples[0]["a"].to_pylist()) == sorted(samples[1]["a"].to_pylist())
    assert set(samples[0]["a"].to_pylist()) < set(range(10_000))


def test_the_outlook_says_that_a_large_table_was_sampled() -> None:
    table = pa.table({"age": [n % 60 for n in range(3000)], "x": [n % 5 for n in range(3000)]})
    sentence = "The table is large: a sample of its rows is searched, and the shares are estimates."
    for most, sampled in ((1000, True), (3000, False)):
        with patch.object(first_policy, "_MOST_ROWS", most), session(table) as s:
            columns, wish = guess_columns_of(s), PolicyRequest(None, None, 5)
            first = first_policy.first_policy(s, wish, columns=columns)
            looked = outlook(s, first, columns, wish)
        assert looked.sampled is sampled
        assert (sentence in looked.sentences) is sampled
        assert looked.retained is not None


def test_risk_finds_identifiers_among_many_values() -> None:
    table = pa.table({"id": list(range(2000)), "age": [n % 60 for n in range(2000)]})
    assert list(shoal.risk(table, columns=["age"]).identifiers) == ["id"]


@settings(max_examples=examples(40), deadline=None)
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 4), min_size=2, max_size=60), st.integers(1, 3))
def test_a_sample_rules_out_no_duplicate_of_the_table(rows: list[tuple[int, ...]], step: int) -> None:
    names = ["a", "b", "c", "d"]
    table = pa.table(dict(zip(names, map(list, zip(*rows, strict=True)), strict=True)))
    sample = table.take(list(range(0, len(rows), step)))
    with session(table) as s, session(sample) as part, patch.object(duplicates, "_EVIDENCE", 1.0):
        pairs = duplicates.dependencies(s.count(names)[0], names)
        guesses = guess_columns_of(s).guesses
        sizes = [duplicates.ColumnSizes(guess.values, guess.agreement(len(rows))) for guess in guesses]
        possible = duplicates.possible_dependencies(part.count(names)[0], sizes, len(rows))
    assert {name for pair in pairs for name in (pair.finer, pair.coarser)} <= {names[at] for at in possible}


def test_a_large_table_has_the_same_duplicates_as_a_small_one() -> None:
    code = np.arange(600) % 40
    table = pa.table({"code": [f"c{n:02}" for n in code], "word": code // 4, "other": np.arange(600) % 7})
    with session(table) as s:
        whole = first_policy.first_policy(s, PolicyRequest()).duplicates
    with patch.object(first_policy, "_MOST_ROWS", 200), session(table) as s:
        assert first_policy.first_policy(s, PolicyRequest()).duplicates == whole
    assert [(pair.finer, pair.coarser) for pair in whole] == [("code", "word")]


@pytest.mark.parametrize("text", ["{}", "{}.5", "person {}", "\u00e4{}"])
def test_many_values_are_guessed_without_pandas(text: str, tmp_path: Path) -> None:
    data = tmp_path / "table.csv"
    data.write_text("\n".join(["value,sex", *[f"{text.format(n)},f" for n in range(5000)]]), encoding="utf-8")
    code = f"import shoal, sys; shoal.init({str(data)!r}); print('pandas' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
