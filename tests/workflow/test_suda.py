"""Special uniques: the search against a naive one over all sets of columns, and published examples."""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adult
from example_counts import examples
from shoal.core.counts.counts import Counts, layout
from shoal.core.counts.in_memory import from_joint
from shoal.errors import UsageError
from shoal.workflow.risk.suda import Suda, suda, weights

Rows = list[tuple[Any, ...]]

# Residence, gender, education, labour status: Benschop, Machingauta and Welch (2019), "Statistical disclosure
# control: a practice guide", table 4.5.
GUIDE: Rows = [
    ("urban", "female", "secondary incomplete", "employed"),
    ("urban", "female", "secondary incomplete", "employed"),
    ("urban", "female", "primary incomplete", "non-LF"),
    ("urban", "male", "secondary complete", "employed"),
    ("rural", "female", "secondary complete", "unemployed"),
    ("urban", "male", "secondary complete", "employed"),
    ("urban", "female", "primary complete", "non-LF"),
    ("urban", "male", "post-secondary", "unemployed"),
    ("urban", "female", "secondary incomplete", "non-LF"),
    ("urban", "female", "secondary incomplete", "non-LF"),
]


def counted(rows: Rows, *, wide: bool = False) -> tuple[Counts, dict[tuple[Any, ...], int]]:
    """Count rows, and tell where each combination went; wide: in as many words as there are columns."""
    width = len(rows[0])
    domains = [sorted({row[c] for row in rows}, key=lambda v: (v is None, str(v))) for c in range(width)]
    codes = [tuple(domains[c].index(value) for c, value in enumerate(row)) for row in rows]
    bits = [40 if wide else max(1, (len(domain) - 1).bit_length()) for domain in domains]
    fields = layout(bits)
    number = Counter(codes)
    keys = np.zeros((fields[-1].word + 1, len(number)), np.int64)
    for at, combination in enumerate(number):
        for field, code in zip(fields, combination, strict=True):
            keys[field.word, at] |= code << field.shift
    counts = from_joint(bits, {}, keys, np.array(list(number.values())))
    own = zip(*[counts.codes(c).tolist() for c in range(width)], strict=True)
    place = {combination: at for at, combination in enumerate(own)}
    return counts, {row: place[code] for row, code in zip(rows, codes, strict=True)}


def oracle(rows: Rows, most: int) -> list[list[tuple[int, ...]]]:
    """Find the minimal sets of every row by looking at every set of columns."""
    width = len(rows[0])
    found: list[list[tuple[int, ...]]] = [[] for _ in rows]
    for size in range(1, most + 1):
        for columns in combinations(range(width), size):
            number = Counter(tuple(row[c] for c in columns) for row in rows)
            for at, row in enumerate(rows):
                unique = number[tuple(row[c] for c in columns)] == 1
                if unique and not any(set(own) <= set(columns) for own in found[at]):
                    found[at].append(columns)
    return found


def score(size: int, columns: int, most: int) -> int:
    """Multiply what the definition says, factor by factor."""
    product = 1
    for i in range(size, most + 1):
        product *= columns - i if i < columns else 1
    return product


def searched(rows: Rows, most: int | None = None, **options: Any) -> tuple[Suda, list[float]]:
    """Search, and return the score of every row beside what was found."""
    counts, place = counted(rows)
    found = suda(counts, most, **options)
    return found, [float(found.scores[place[row]]) for row in rows]


@st.composite
def tables(draw: st.DrawFn) -> Rows:
    """Draw a table with nulls, rows that occur several times and columns of few or many values."""
    width = draw(st.integers(1, 6))
    values = [st.sampled_from([None, *range(draw(st.integers(1, 12)))]) for _ in range(width)]
    rows = draw(st.lists(st.tuples(*values), min_size=1, max_size=22))
    return rows + draw(st.lists(st.sampled_from(rows), max_size=8))


@settings(max_examples=examples(400), deadline=None)
@given(tables(), st.integers(1, 7) | st.none(), st.booleans())
def test_the_search_finds_what_the_oracle_finds(rows: Rows, most: int | None, wide: bool) -> None:
    width = len(rows[0])
    bound = min(most or width, width)
    expected = oracle(rows, bound)
    counts, place = counted(rows, wide=wide)
    found = suda(counts, most)
    every = [columns for own in expected for columns in own]
    assert found.by_set == Counter(every)
    assert list(found.by_set) == sorted(set(every), key=lambda columns: (len(columns), columns))
    assert found.sizes.tolist() == [sum(len(c) == size for c in every) for size in range(bound + 1)]
    assert found.at_risk == sum(bool(own) for own in expected)
    assert (found.records, found.columns, found.most) == (len(rows), width, bound)
    for row, own in zip(rows, expected, strict=True):
        assert found.msus[place[row]] == len(own)
        assert found.scores[place[row]] == sum(score(len(columns), width, bound) for columns in own)
    scores = Counter[int]()
    for columns in every:
        scores.update(dict.fromkeys(columns, score(len(columns), width, bound)))
    total = sum(score(len(columns), width, bound) for columns in every)
    assert found.column_contribution == pytest.approx([scores[c] / (total or 1) for c in range(width)])


@settings(max_examples=examples(60), deadline=None)
@given(tables(), st.randoms())
def test_the_order_of_rows_and_columns_changes_nothing(rows: Rows, random: Any) -> None:
    found, scores = searched(rows)
    by_row = dict(zip(rows, scores, strict=True))
    shuffled = random.sample(rows, len(rows))
    again, others = searched(shuffled)
    assert again.by_set == found.by_set
    assert again.column_contribution.tolist() == found.column_contribution.tolist()
    assert [by_row[row] for row in shuffled] == others
    turned, backwards = searched([row[::-1] for row in rows])
    last = len(rows[0]) - 1
    assert {tuple(last - c for c in own[::-1]): n for own, n in turned.by_set.items()} == found.by_set
    assert backwards == scores


@pytest.mark.parametrize("seed", range(3))
def test_rows_with_many_sets_keep_them_all(seed: int) -> None:
    random = np.random.default_rng(seed)
    rows: Rows = [tuple(row) for row in random.integers(0, 2, (24, 9)).tolist()]
    found, _ = searched(rows)
    expected = oracle(rows, 9)
    assert found.by_set == Counter(columns for own in expected for columns in own)
    assert found.msus.max() == max(map(len, expected)) > 14


def test_the_practice_guide_scores_its_example_so() -> None:
    found, scores = searched(GUIDE, 3)
    assert scores == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert found.by_set == {(0,): 1, (2,): 3, (0, 3): 1, (1, 2): 1, (1, 3): 2, (2, 3): 1}
    assert (found.unique, found.paired, found.at_risk) == (4, 6, 4)
    assert searched(GUIDE)[1] == scores  # with four columns a bound of three is none


def test_the_practice_guide_spreads_the_risk_so() -> None:
    """Its last column comes from the other scores that sdcMicro knows."""
    counts, place = counted(GUIDE)
    found = suda(counts, form="ihsn")
    spread = found.dis_scores(0.01)
    assert [round(float(spread[place[row]]), 4) for row in GUIDE] == [
        0, 0, 0.0051, 0, 0.0107, 0, 0.0051, 0.0088, 0, 0,
    ]  # fmt: skip


def test_arx_spreads_the_risk_so() -> None:
    """The same table and a record like no other in any column, as in the tests of ARX's SUDA2 library."""
    rows: Rows = [("island", "other", "none", "retired"), *GUIDE]
    counts, place = counted(rows)
    found = suda(counts, form="ihsn")
    assert [found.scores[place[row]] for row in rows] == [7, 0, 0, 1.75, 0, 3.25, 0, 1.75, 2.75, 0, 0]
    spread = [float(found.dis_scores()[place[row]]) for row in rows]
    published = [0.028038903, 0, 0, 0.005435918, 0, 0.011357785, 0, 0.005435918, 0.009313862, 0, 0]
    assert spread == pytest.approx(published, rel=1e-6)  # reckoned there with short numbers


def test_sdcmicro_tells_the_contributions_so() -> None:
    found, scores = searched([(2, 0, 0), (1, 3, 6), (1, 0, 0)])
    assert found.column_contribution.tolist() == [0.5, 0.375, 0.375]
    assert scores == [2, 4, 2]


def test_an_example_by_hand() -> None:
    """The fourth is alone in its town, the first needs all three columns, the others age and sex."""
    rows: Rows = [(30, "X", "m"), (40, "X", "f"), (30, "X", "f"), (30, "Y", "m"), (40, "X", "m")]
    found, scores = searched(rows)
    assert found.by_set == {(1,): 1, (0, 2): 3, (0, 1, 2): 1}
    assert scores == [1, 1, 1, 2, 1]
    assert searched(rows, 1)[1] == [0, 0, 0, 2, 0]


def test_equal_columns_never_share_a_set() -> None:
    rows: Rows = [(n % 7, n % 7, n % 5, 0) for n in range(35)]
    found, _ = searched(rows)
    assert found.by_set == {(0, 2): 35, (1, 2): 35}


def test_one_column() -> None:
    found, scores = searched([("a",), ("b",), ("b",), (None,)])
    assert found.by_set == {(0,): 2}
    assert scores == [1, 0, 0, 1]
    assert found.column_contribution.tolist() == [1]


def test_one_record_is_unique_in_every_column() -> None:
    found, scores = searched([("a", 1, None)])
    assert found.by_set == {(0,): 1, (1,): 1, (2,): 1}
    assert scores == [6]


@pytest.mark.parametrize("rows", [[("a", 1)] * 5, [("a", 1), ("a", 1), ("b", 2), ("b", 2)]])
def test_no_unique_record_no_risk(rows: Rows) -> None:
    found, scores = searched(rows)
    assert (found.at_risk, found.by_set, found.sizes.tolist()) == (0, {}, [0, 0, 0])
    assert scores == [0] * len(rows)
    assert found.column_contribution.tolist() == [0, 0]
    assert found.dis_scores().tolist() == [0] * len(found.scores)


def test_a_column_of_all_different_values_leaves_the_others_out_of_it() -> None:
    found, _ = searched([(n, n % 3, n % 2) for n in range(12)])
    assert found.by_set == {(0,): 12}
    assert found.dis_scores().tolist() == [1] * 12  # no pair: a match is right


def test_the_risk_grows_with_the_fraction_and_keeps_its_mean() -> None:
    """The odds are spread so that their harmonic mean stays that of the whole table."""
    found, _ = searched(GUIDE)
    low, high = found.dis_scores(0.01), found.dis_scores(0.5)
    some = found.scores > 0
    assert (low[some] < high[some]).all()
    assert found.dis_scores(1)[some].tolist() == [1] * 4
    assert found.dis(0.5) == 4 / (4 + 6)
    for fraction, spread in ((0.01, low), (0.5, high)):
        assert np.mean(1 / spread[some]) == pytest.approx(1 / found.dis(fraction))


@pytest.mark.parametrize("columns", [1, 2, 5, 12])
def test_the_forms_of_the_score(columns: int) -> None:
    for most in range(1, columns + 1):
        elliot, arx = weights(columns, most), weights(columns, most, "arx")
        assert elliot[1:].tolist() == [score(size, columns, most) for size in range(1, most + 1)]
        assert elliot[1:] / arx[1:] == pytest.approx(np.full(most, elliot[1] / arx[1]))
        assert arx[-1] == 1
    full = [math.factorial(columns - size) for size in range(1, columns + 1)]
    assert weights(columns, columns)[1:].tolist() == full == weights(columns, columns, "arx")[1:].tolist()


def test_what_cannot_be_asked_is_refused() -> None:
    counts, _ = counted(GUIDE)
    with pytest.raises(UsageError, match="most must be at least 1, got 0"):
        suda(counts, 0)
    with pytest.raises(UsageError, match="form must be one of elliot, arx, ihsn"):
        suda(counts, form="other")  # type: ignore[arg-type]
    wide, _ = counted([tuple(range(64)), tuple(range(64))])
    with pytest.raises(UsageError, match="1 to 63 columns, got 64"):
        suda(wide)
    many, _ = counted([tuple(range(28)), tuple(range(28))])
    with pytest.raises(UsageError, match="28 columns have 268,435,455 sets of at most 28 columns"):
        suda(many)
    with pytest.raises(UsageError, match="at most 27 columns, got 28"):
        suda(many, 2).dis_scores()
    for fraction in (0, -1, 1.5, math.nan):
        with pytest.raises(UsageError, match="fraction must be above 0"):
            suda(counts).dis(fraction)


def test_the_widest_table_uses_every_bit() -> None:
    random = np.random.default_rng(5)
    rows: Rows = [tuple(row) for row in random.integers(0, 4, (30, 63)).tolist()]
    found, _ = searched(rows, 2)
    assert found.by_set == Counter(columns for own in oracle(rows, 2) for columns in own)
    assert any(62 in columns for columns in found.by_set)


def test_progress_ends_with_everything_done() -> None:
    told: list[tuple[str, int, int | None]] = []
    searched(GUIDE, progress=lambda *step: told.append(step))
    assert told[-1] == ("sets", 6, 6)
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


@settings(max_examples=examples(60), deadline=None)
@given(tables(), st.integers(1, 40))
def test_a_search_in_parts_finds_the_same(rows: Rows, room: int) -> None:
    counts, _ = counted(rows)
    whole = suda(counts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("shoal.workflow.risk.suda._BYTES", room)
        told: list[tuple[str, int, int | None]] = []
        parts = suda(counts, progress=lambda *step: told.append(step))
    assert parts.by_set == whole.by_set
    assert parts.scores.tolist() == whole.scores.tolist()
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)


@adult.needs_adult
def test_adult() -> None:
    """Every unique record has an MSU where all sizes are looked for, and no other has."""
    counts, _ = adult.counted(adult.COLUMNS)
    found = suda(counts)
    assert (found.records, found.unique) == (30162, 15512)
    assert ((found.msus > 0) == (counts.sizes == 1)).all()
    alone = [int((counts.project(columns).sizes == 1).sum()) for columns in ([1], [4], [5])]
    assert [found.by_set.get((column,), 0) for column in (1, 4, 5)] == alone
    assert suda(counts, 3).sizes.tolist() == found.sizes[:4].tolist()
