"""The diagnosis: every question beside the naive oracle, the published example, and what is refused."""

from __future__ import annotations

import csv
import json
import stat
from collections import Counter, defaultdict
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import shoal
from adult import COLUMNS, folder, needs_adult
from cpu_time import fastest
from example_counts import examples
from problems import counts_of
from shoal.cli.app import app
from shoal.core.contracts import Engine
from shoal.core.counts import subsets
from shoal.core.counts.counts import Domain, layout
from shoal.core.counts.in_memory import from_joint
from shoal.core.counts.subsets import Source, TimeLimit
from shoal.errors import DataError, OutputError, PolicyError, UnknownName, UsageError
from shoal.policy.limits import limit_in_records
from shoal.workflow.diagnosis.diagnose import diagnosis_plots
from shoal.workflow.diagnosis.questions import QUESTIONS, Suppression

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

PUBLISHED = [
    ("1", "A", "1", "a", "*"),
    ("1", "A", "1", "a", "*"),
    ("2", "A", "1", "b", "*"),
    ("2", "B", "1", "b", "+"),
    ("2", "B", "1", "a", "+"),
    ("3", "B", "1", "a", "+"),
    ("3", "A", "2", "b", "*"),
    ("3", "A", "2", "b", "*"),
    ("3", "A", "2", "a", "*"),
    ("3", "B", "2", "a", "+"),
    ("3", "B", "2", "b", "+"),
    ("3", "B", "2", "b", "+"),
]
SECRET = "SECRETVAL7"


def table_of(rows: Any, names: Any) -> pa.Table:
    return pa.table({name: [row[place] for row in rows] for place, name in enumerate(names)})


def published() -> pa.Table:
    return table_of(PUBLISHED, "VWXYZ")


# The oracle: plain dicts, the definitions as they are written.


def classes(rows, columns):
    found = defaultdict(list)
    for position, row in enumerate(rows):
        found[tuple(row[c] for c in columns)].append(position)
    return found


def measures(rows, columns, sensitive):
    """Return (measure, positions) of every class: its records, or its distinct sensitive values."""
    found = classes(rows, columns).values()
    return [(len({sensitive[p] for p in own}) if sensitive else len(own), own) for own in found]


def below(rows, columns, sensitive, k):
    return sorted(p for measure, own in measures(rows, columns, sensitive) if measure < k for p in own)


def k_of(rows, columns, sensitive, limit):
    """The largest k for which a class remains and the records in smaller ones number at most the limit."""
    found = measures(rows, columns, sensitive)
    return max(
        k
        for k in range(1, len(rows) + 1)
        if sum(len(own) for measure, own in found if measure < k) <= limit
        and any(measure >= k for measure, _ in found)
    )


def every(columns, most=None):
    return [s for size in range(1, (most or columns) + 1) for s in combinations(range(columns), size)]


def most_suppressed(rows, columns, sensitive, k):
    """The largest limit that leaves k at most this, or None."""
    allowed = [limit for limit in range(len(rows) + 1) if k_of(rows, columns, sensitive, limit) <= k]
    return max(allowed, default=None)


class Lists(Engine):
    """An engine whose tables are lists of rows, with names."""

    formats = ()

    def open(self, source):
        return source

    def columns(self, table):
        return tuple(table[0])

    def count(self, table, columns, sensitive=()):
        names, rows = table
        places = [names.index(name) for name in columns]
        if not rows:
            bits = [1] * len(places)
            empty = np.zeros((layout(bits)[-1].word + 1, 0), np.int64)
            return from_joint(bits, {}, empty, np.zeros(0, np.int64)), {}
        counts, values = counts_of([tuple(row[place] for place in places) for row in rows])
        texts = [tuple(map(str, own)) for own in values]
        domains = {n: Domain(n, v, t) for n, v, t in zip(columns, values, texts, strict=True)}
        return counts, domains

    def recode(self, *_, **__):
        raise NotImplementedError

    target = write = materialize = recode


def diagnosed(rows, sensitive=None, **options):
    """Diagnose lists of rows whose columns are c0, c1, ..."""
    names = [f"c{place}" for place in range(len(rows[0]))]
    if sensitive:
        rows = [(*row, value) for row, value in zip(rows, sensitive, strict=True)]
        return shoal.diagnose(([*names, "s"], rows), sensitive="s", engine=Lists(), **options)
    return shoal.diagnose((names, rows), engine=Lists(), **options)


def named(columns):
    return tuple(f"c{column}" for column in columns)


@st.composite
def tables(draw, most_columns=4):
    columns = draw(st.integers(1, most_columns))
    values = [draw(st.integers(1, 4)) for _ in range(columns)]
    cells = [st.integers(0, size - 1) for size in values]
    rows = draw(st.lists(st.tuples(*cells), min_size=1, max_size=20))
    sensitive = [draw(st.integers(0, 3)) for _ in rows] if draw(st.booleans()) else None
    return rows, sensitive


@st.composite
def cases(draw):
    rows, sensitive = draw(tables())
    columns = sorted(draw(st.sets(st.integers(0, len(rows[0]) - 1), min_size=1)))
    return rows, sensitive, tuple(columns), draw(st.integers(1, 6)), draw(st.integers(0, len(rows)))


# Every question beside the oracle


@settings(max_examples=examples(150), deadline=None)
@given(cases())
def test_questions_about_one_set_equal_the_oracle(case):
    rows, sensitive, columns, k, limit = case
    found = diagnosed(rows, sensitive)
    names = named(columns)
    reached = k_of(rows, columns, sensitive, limit)
    assert found.anonymity(names, limit) == reached
    assert found.is_anonymous(k, names, limit) == (reached >= k)
    assert found.is_anonymous(k, names, limit, at_most=True) == (reached <= k)
    gone = len(below(rows, columns, sensitive, k))
    told = found.suppression(k, names)
    assert (told.suppressed, told.remaining) == (gone, len(rows) - gone)
    assert found.rows_to_suppress(k, names) == gone
    most = found.suppression(k, names, at_most=True)
    assert (most and most.suppressed) == most_suppressed(rows, columns, sensitive, k)
    by_k = found.suppression_by_k(names, 7)
    ks = range(1, min(7, len(rows)) + 1)
    assert [one.suppressed for one in by_k] == [len(below(rows, columns, sensitive, v)) for v in ks]
    steps = found.suppression_by_k(names)
    assert {one.k for one in steps} == {measure for measure, _ in measures(rows, columns, sensitive)}
    assert all(one.suppressed == len(below(rows, columns, sensitive, one.k)) for one in steps)


@settings(max_examples=examples(150), deadline=None)
@given(cases(), st.integers(1, 4))
def test_tables_over_all_sets_equal_the_oracle(case, max_size):
    rows, sensitive, _, k, limit = case
    found = diagnosed(rows, sensitive)
    sets = every(len(rows[0]), min(max_size, len(rows[0])))
    table = found.anonymity_of_sets(limit, max_size)
    assert table == {named(s): k_of(rows, s, sensitive, limit) for s in sets}
    assert table.complete
    assert table.counts <= len(sets)
    costs = found.suppression_of_sets(k, max_size)
    assert {s: one.suppressed for s, one in costs.items()} == {
        named(s): len(below(rows, s, sensitive, k)) for s in sets
    }
    mosts = found.suppression_of_sets(k, max_size, at_most=True)
    assert {s: one and one.suppressed for s, one in mosts.items()} == {
        named(s): most_suppressed(rows, s, sensitive, k) for s in sets
    }
    by_k = found.suppression_of_sets_by_k(6, max_size)
    ks = range(1, min(6, len(rows)) + 1)
    assert by_k == {named(s): tuple(len(below(rows, s, sensitive, v)) for v in ks) for s in sets}
    assert list(by_k) == [named(s) for s in sets]  # the smallest first
    assert (costs.counts, costs.complete, by_k.counts, by_k.complete) == (len(sets), True, len(sets), True)


@settings(max_examples=examples(150), deadline=None)
@given(cases())
def test_largest_and_unsafe_sets_equal_the_oracle(case):
    rows, sensitive, _, k, limit = case
    found = diagnosed(rows, sensitive)
    sets = every(len(rows[0]))
    ks = {s: k_of(rows, s, sensitive, limit) for s in sets}

    def border(safe_k):
        safe = [s for s in sets if ks[s] >= safe_k]
        unsafe = [s for s in sets if ks[s] < safe_k]
        maximal = [s for s in safe if not any(set(s) < set(other) for other in safe)]
        minimal = [s for s in unsafe if not any(set(other) < set(s) for other in unsafe)]
        return {named(s) for s in maximal}, {named(s) for s in minimal}

    maximal, minimal = border(k)
    safe = found.largest_sets(k, limit)
    assert {one.columns for one in safe.findings} == maximal
    assert set(safe.sets) == {s for s in maximal if len(s) == max(map(len, maximal))}
    unsafe = found.unsafe_sets(k, limit)
    assert {one.columns for one in unsafe.findings} == minimal
    for one in (*safe.findings, *unsafe.findings):
        columns = tuple(int(name[1:]) for name in one.columns)
        assert (one.k, one.suppressed) == (ks[columns], len(below(rows, columns, sensitive, k)))
    smallest = found.largest_sets(k, limit, at_most=True)
    minimal = border(k + 1)[1]
    assert {one.columns for one in smallest.findings} == minimal
    assert set(smallest.sets) == {s for s in minimal if len(s) == min(map(len, minimal))}
    assert safe.complete
    assert unsafe.complete


@settings(max_examples=examples(15), deadline=None)
@given(cases())
def test_the_database_gives_the_same_answers(case):
    rows, sensitive, columns, k, limit = case
    plain = diagnosed(rows, sensitive)
    names = [f"c{place}" for place in range(len(rows[0]))]
    table = table_of(rows, names)
    if sensitive:
        table = table.append_column("s", pa.array(sensitive))
    found = shoal.diagnose(table, sensitive="s" if sensitive else None)
    assert (found.records, found.combinations) == (len(rows), len(classes(rows, range(len(names)))))
    for question, wishes in (
        (5, {"k": k, "suppression_limit": limit, "columns": named(columns)}),
        (7, {"k": k, "suppression_limit": limit}),
        (8, {"suppression_limit": limit}),
        (12, {"most": 5}),
        ("unsafe", {"k": k}),
    ):
        assert found.ask(question, **wishes) == plain.ask(question, **wishes)


# The published example


def test_the_published_example():
    found = shoal.diagnose(published())
    table = found.anonymity_of_sets()
    assert [table[(name,)] for name in "VWXYZ"] == [2, 6, 6, 6, 6]
    assert [table[tuple(pair)] for pair in ("WX", "WY", "WZ", "XY", "XZ", "YZ")] == [3, 3, 6, 2, 3, 3]
    largest = found.largest_sets(3)
    assert largest.sets == (("W", "X", "Z"), ("W", "Y", "Z"))
    assert (largest.counts, found.number_of_sets()) == (13, 31)
    assert [one.columns for one in found.unsafe_sets(3).findings] == [("V",), ("X", "Y")]


# Lemmas


@settings(max_examples=examples(100), deadline=None)
@given(tables(), st.data())
def test_a_supersets_k_is_never_larger(table, data):
    rows, sensitive = table
    limit = data.draw(st.integers(0, len(rows)))
    found = diagnosed(rows, sensitive).anonymity_of_sets(limit)
    for columns, k in found.items():
        for size in range(1, len(columns)):
            assert all(found[lower] >= k for lower in combinations(columns, size))


@settings(max_examples=examples(50), deadline=None)
@given(tables(), st.data())
def test_the_order_of_the_rows_changes_nothing(table, data):
    rows, sensitive = table
    order = data.draw(st.permutations(range(len(rows))))
    limit = data.draw(st.integers(0, len(rows)))
    moved = diagnosed([rows[i] for i in order], sensitive and [sensitive[i] for i in order])
    found = diagnosed(rows, sensitive)
    assert moved.ask(8, suppression_limit=limit) == found.ask(8, suppression_limit=limit)
    assert moved.ask(7, k=2, suppression_limit=limit) == found.ask(7, k=2, suppression_limit=limit)
    assert moved.ask(12, most=4) == found.ask(12, most=4)


@given(st.integers(1, 10**9), st.data())
def test_a_share_allows_exactly_the_records_it_stands_for(records, data):
    suppressed = data.draw(st.integers(0, records))
    share = Suppression.of(2, suppressed, records).share
    assert limit_in_records(share, records) == suppressed


# Counting


@st.composite
def wide_counts(draw):
    """Counts of a few columns that need up to three words, with the plain rows."""
    rows = draw(st.integers(1, 40))
    widths = draw(st.lists(st.sampled_from([1, 2, 5, 30, 40]), min_size=1, max_size=6))
    cells = [[draw(st.integers(0, min((1 << bits) - 1, 5))) for bits in widths] for _ in range(rows)]
    tops = [draw(st.booleans()) for _ in widths]
    lines = [
        tuple(
            (1 << bits) - 1 - cell if top else cell for cell, bits, top in zip(row, widths, tops, strict=True)
        )
        for row in cells
    ]
    fields = layout(widths)
    keys = np.zeros((fields[-1].word + 1, rows), np.int64)
    for place, field in enumerate(fields):
        keys[field.word] |= np.array([line[place] for line in lines], np.int64) << field.shift
    sizes = np.array(draw(st.lists(st.integers(1, 9), min_size=rows, max_size=rows)))
    columns = draw(st.permutations(range(len(widths))))[: draw(st.integers(1, len(widths)))]
    return widths, lines, keys, sizes, columns


@settings(max_examples=examples(200), deadline=None)
@given(wide_counts())
def test_a_projection_equals_its_plain_twin(given_):
    widths, lines, keys, sizes, columns = given_
    projected = from_joint(widths, {}, keys, sizes).project(columns)
    expected: Counter = Counter()
    for line, size in zip(lines, sizes.tolist(), strict=True):
        expected[tuple(line[column] for column in columns)] += size
    codes = [projected.codes(place).tolist() for place in range(len(columns))]
    assert dict(zip(zip(*codes, strict=True), projected.sizes.tolist(), strict=True)) == expected
    assert len(projected) == len(expected)


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_sensitive_values_follow_a_projection(case):
    rows, _, columns, _, _ = case
    sensitive = [sum(row) % 3 for row in rows]
    counts, values = counts_of(rows, {"s": sensitive})
    projected = counts.project(columns)
    entries = projected.sensitive["s"]
    found = Counter()
    for row, code, size in zip(entries.rows, entries.codes, entries.counts, strict=True):
        class_ = tuple(values[c][projected.codes(p)[row]] for p, c in enumerate(columns))
        found[class_, sorted(set(sensitive))[code]] += int(size)
    assert found == Counter(
        (tuple(row[c] for c in columns), s) for row, s in zip(rows, sensitive, strict=True)
    )


def test_cells_and_hashing_give_the_same_counts():
    random = np.random.default_rng(3)
    codes = random.integers(0, 8, (5000, 6))
    rows = [tuple(row) for row in codes.tolist()]
    counts, _ = counts_of(rows)
    for columns in ((0,), (1, 4), (0, 2, 3, 5), (0, 1, 2, 3, 4)):
        projected = counts.project(columns)
        expected = Counter(tuple(row[c] for c in columns) for row in rows)
        keys = zip(*[projected.codes(p).tolist() for p in range(len(columns))], strict=True)
        assert dict(zip(keys, projected.sizes.tolist(), strict=True)) == expected


class Watched(Source):
    """A source that notes from what each set is made."""

    made: list = []  # noqa: RUF012 - emptied by each test

    def onto(self, columns):
        Watched.made.append((self.columns, columns))
        return super().onto(columns)


def watched(rows, sensitive=None):
    Watched.made = []
    source = diagnosed(rows, sensitive).source
    return Watched(source.counts, source.columns, source.sensitive)


@settings(max_examples=examples(60), deadline=None)
@given(cases())
def test_a_set_of_which_a_subset_failed_is_never_counted(case):
    rows, sensitive, _, k, limit = case
    source = watched(rows, sensitive)
    found = subsets.search(source, lambda curve: curve.reached(limit), lambda v: v >= k, TimeLimit())
    counted = [*found.safe, *found.unsafe]
    assert found.counts == len(counted)
    if len(found.safe) == 1 and len(next(iter(found.safe))) == len(rows[0]):
        return  # all columns together are safe: nothing else was counted
    for columns in counted:
        for size in range(1, len(columns)):
            assert all(lower in found.safe for lower in combinations(columns, size))


@settings(max_examples=examples(60), deadline=None)
@given(tables(5), st.data())
def test_each_set_of_a_table_is_made_once_from_one_of_a_column_more(table, data):
    rows, sensitive = table
    most = data.draw(st.integers(1, len(rows[0])))
    source = watched(rows, sensitive)
    found, complete = subsets.every_set(source, lambda curve: curve.records, TimeLimit(), max_size=most)
    assert complete
    assert sorted(own for _, own in Watched.made) == sorted(every(len(rows[0]), most))
    for above, own in Watched.made:
        assert len(own) == most or len(above) == len(own) + 1
    assert set(found.values()) == {len(rows)}


def test_all_cores_give_the_same_answers(monkeypatch):
    random = np.random.default_rng(5)
    rows = [tuple(row) for row in random.integers(0, [2, 3, 4, 5, 6], (400, 5)).tolist()]
    asked = [(7, {"k": 3, "suppression_limit": 20}), (12, {"most": 9}), (8, {"suppression_limit": 9})]
    for sensitive in (None, [sum(row) % 4 for row in rows]):
        alone = [diagnosed(rows, sensitive).ask(question, **wishes) for question, wishes in asked]
        monkeypatch.setattr(subsets, "_MANY", 0)
        monkeypatch.setattr(subsets, "CORES", 3)
        together = [diagnosed(rows, sensitive).ask(question, **wishes) for question, wishes in asked]
        monkeypatch.undo()
        assert alone == together


def test_tables_prune_at_one():
    random = np.random.default_rng(8)
    rows = [tuple(row) for row in random.integers(0, 6, (60, 6)).tolist()]
    found = diagnosed(rows).anonymity_of_sets()
    assert found.counts < len(found) == 63
    assert found == {named(s): k_of(rows, s, None, 0) for s in every(6)}


def test_what_was_pruned_is_not_built():
    random = np.random.default_rng(8)
    rows = [tuple(row) for row in random.integers(0, 50, (40, 20)).tolist()]
    found = diagnosed(rows).anonymity_of_sets()
    assert len(found) == 2**20 - 1
    assert len(found.table.counted) == found.counts < 1000
    assert found[named(range(20))] == 1
    assert next(iter(found)) == ("c0",)
    for wrong in ((), ("c1", "c0"), ("c0", "c0"), ("x",), "c0"):
        assert wrong not in found
    assert named(range(3)) not in diagnosed(rows).anonymity_of_sets(0, 2)


def test_most_is_at_most_the_records():
    found = diagnosed([(1,), (1,), (2,)])
    assert [one.suppressed for one in found.suppression_by_k(most=10**12)] == [0, 1, 3]
    assert found.suppression_of_sets_by_k(10**12) == {("c0",): (0, 1, 3)}
    assert found.ask(12, most=10**12).options["most"] == 3


def test_all_columns_safe_together_need_no_search():
    found = diagnosed([(1,) * 40] * 3).largest_sets(3)
    assert (found.sets, found.counts) == ((tuple(f"c{c}" for c in range(40)),), 1)


# Forty columns


def forty(rows=60):
    random = np.random.default_rng(11)
    return [tuple(row) for row in random.integers(0, [2, 5] * 20, (rows, 40)).tolist()]


def test_forty_columns_go_as_far_as_pruning_carries():
    rows = forty()
    found = shoal.diagnose(table_of(rows, [f"c{c}" for c in range(40)]))
    assert len(found.source.counts.keys) > 1  # more than one word
    unsafe = found.unsafe_sets(10)
    assert unsafe.complete
    pairs = [s for s in every(40, 2) if k_of(rows, s, None, 0) < 10]
    singles = {s for s in pairs if len(s) == 1}
    minimal = {s for s in pairs if len(s) == 1 or not any((c,) in singles for c in s)}
    assert {one.columns for one in unsafe.findings if len(one.columns) <= 2} == {named(s) for s in minimal}
    largest = found.largest_sets(10)
    assert largest.counts < 12_000
    assert all(one.k >= 10 for one in largest.findings)


def test_forty_columns_are_tabulated_up_to_a_size():
    rows = forty(30)
    found = diagnosed(rows)
    with pytest.raises(UsageError, match=r"40 columns have 1,099,511,627,775 sets.*820 sets of at most 2"):
        found.anonymity_of_sets()
    with pytest.raises(UsageError, match="10,700 of at most 3"):
        found.suppression_of_sets_by_k(5)
    with pytest.raises(
        UsageError, match=r"have 4,598,478 sets of at most 6 columns. Give a smaller max_size"
    ):
        found.anonymity_of_sets(0, 6)
    table = found.suppression_of_sets(4, 2)
    assert len(table) == 820
    assert table[("c3", "c38")].suppressed == len(below(rows, (3, 38), None, 4))
    assert found.anonymity_of_sets(0, 2) == {named(s): k_of(rows, s, None, 0) for s in every(40, 2)}


# Stopping


def interrupting(after):
    seen = []

    def tell(phase, *_):
        if phase.startswith("sets"):
            seen.append(phase)
            if len(seen) == after:
                raise KeyboardInterrupt

    return tell


@pytest.mark.parametrize("after", [1, 7, 50])
def test_ctrl_c_ends_with_what_was_found_so_far(after):
    rows = forty()
    whole = diagnosed(rows).unsafe_sets(10)
    found = diagnosed(rows, progress=interrupting(after)).unsafe_sets(10)
    assert (found.counts, found.complete) == (after, False)
    assert set(found.findings) <= set(whole.findings)
    safe = diagnosed(rows, progress=interrupting(after)).largest_sets(10)
    assert not safe.complete
    assert all(one.k >= 10 for one in safe.findings)
    table = diagnosed(rows, progress=interrupting(after)).suppression_of_sets(5, 2)
    assert (table.counts, table.complete, len(table)) == (after, False, after)


def test_seconds_end_with_what_was_found_so_far(monkeypatch):
    clock = iter(range(100_000))
    monkeypatch.setattr("time.monotonic", lambda: next(clock))
    found = diagnosed(forty())
    for answer in (
        found.unsafe_sets(10, seconds=20),
        found.anonymity_of_sets(0, 3, seconds=20),
        found.suppression_of_sets_by_k(4, 3, seconds=20),
    ):
        assert not answer.complete
        assert 0 < answer.counts < 1000


# Rows


def write(path, table):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(table, path, row_group_size=20_000)
    else:
        pyarrow.csv.write_csv(table, path)


@pytest.mark.parametrize("kind", ["csv", "parquet", "frame"])
def test_rows_are_numbered_in_the_order_of_a_large_table(tmp_path, kind):
    """DuckDB scans in parallel; the numbers are those of the file all the same."""
    number = 400_000
    random = np.random.default_rng(2)
    place = random.permutation(number)[:500]
    group = np.arange(number) % 1000
    group[place] = np.arange(500) + 5000  # each once
    table = pa.table({"group": [f"g{value}" for value in group.tolist()], "same": [SECRET] * number})
    source = table
    if kind != "frame":
        source = tmp_path / f"data.{kind}"
        write(source, table)
    file = tmp_path / "rows.txt"
    assert shoal.diagnose(source).write_rows(file, 2, ["group"]) == 500
    assert [int(line) for line in file.read_text().splitlines()] == sorted((place + 1).tolist())


@settings(max_examples=examples(10), deadline=None)
@given(case=cases())
def test_rows_to_go_are_those_of_the_oracle(tmp_path_factory, case):
    rows, sensitive, columns, k, _ = case
    table = table_of(rows, [f"c{place}" for place in range(len(rows[0]))])
    if sensitive:
        table = table.append_column("s", pa.array(sensitive))
    file = tmp_path_factory.mktemp("rows") / "rows.txt"
    found = shoal.diagnose(table, sensitive="s" if sensitive else None)
    gone = below(rows, columns, sensitive, k)
    assert found.write_rows(file, k, named(columns)) == len(gone) == found.rows_to_suppress(k, named(columns))
    assert [int(line) - 1 for line in file.read_text().splitlines()] == gone


def test_missing_values_are_a_value_of_their_own(tmp_path):
    found = shoal.diagnose(pa.table({"a": ["x", None, "x", None, "y"], "b": [1, 1, 1, 1, None]}))
    assert found.anonymity(["a"], 1) == 2
    assert found.write_rows(tmp_path / "rows.txt", 2) == 1
    assert (tmp_path / "rows.txt").read_text() == "5\n"


def test_the_rows_file_is_closed_and_never_replaces_another(tmp_path):
    data, file = tmp_path / "data.csv", tmp_path / "rows.txt"
    write(data, published())
    found = shoal.diagnose(data)
    assert found.write_rows(file, 2) == 6
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    with pytest.raises(OutputError, match=r"exists\. Use force=True"):
        found.write_rows(file, 2)
    file.chmod(0o644)
    found.write_rows(file, 1, force=True)
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("", 0o600)
    with pytest.raises(OutputError, match="is the input and would be replaced"):
        found.write_rows(data, 2, force=True)
    with pytest.raises(OutputError, match="Create it first"):
        found.write_rows(tmp_path / "no" / "rows.txt", 2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["data.csv", "rows.txt"]


def test_rows_of_a_table_that_changed_are_refused(tmp_path):
    data = tmp_path / "data.csv"
    write(data, published())
    found = shoal.diagnose(data)
    write(data, published().slice(3))
    with pytest.raises(DataError, match="changed while it was diagnosed"):
        found.write_rows(tmp_path / "rows.txt", 2)
    assert not (tmp_path / "rows.txt").exists()


def test_what_has_no_order_has_no_row_numbers(tmp_path):
    import ibis

    with pytest.raises(UsageError, match="engine cannot return the position of a row"):
        diagnosed([(1,), (2,)]).write_rows(tmp_path / "rows.txt", 2)
    connection = ibis.duckdb.connect()
    table = connection.create_table("t", published())
    with pytest.raises(UsageError, match="A table of a database has no order"):
        shoal.diagnose(table).write_rows(tmp_path / "rows.txt", 2)


# Suggestions


def test_columns_are_measured_and_given_a_role():
    rows = [(f"p{i}", i % 4, "f" if i % 3 else "m") for i in range(40)]
    table = table_of(rows, ["name", "ward", "sex"]).append_column("illness", pa.array(["a", "b"] * 20))
    suggestion = shoal.diagnose(table, ["name", "sex"], sensitive="illness").suggest()
    by_name = {guess.column: guess for guess in suggestion.columns}
    assert [guess.column for guess in suggestion.columns] == ["name", "ward", "sex", "illness"]
    for place, name in enumerate(["name", "ward", "sex"]):
        values = [row[place] for row in rows]
        pairs = list(combinations(values, 2))
        assert by_name[name].separation == pytest.approx(sum(a != b for a, b in pairs) / len(pairs))
        assert by_name[name].distinct_share == len(set(values)) / 40
        assert by_name[name].unique_share == sum(values.count(v) == 1 for v in values) / 40
    assert by_name["name"].role.value == "identifier"
    assert by_name["illness"].role.value == "sensitive"
    assert shoal.Policy.load(_yaml(suggestion.policy)).roles.identifiers == ("name",)
    assert SECRET not in suggestion.policy


def _yaml(text):
    import yaml

    return yaml.safe_load(text)


def test_a_single_record_separates_nothing():
    assert shoal.diagnose(pa.table({"a": ["x"]})).guess("a").separation == 0


# Any table


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow", "ibis", "csv", "parquet"])
def test_any_table_can_be_diagnosed(tmp_path, kind):
    import ibis
    import polars

    table = published()
    paths = {ending: tmp_path / f"data.{ending}" for ending in ("csv", "parquet")}
    given_ = {
        "pandas": lambda: table.to_pandas(),
        "polars": lambda: polars.from_arrow(table),
        "arrow": lambda: table,
        "ibis": lambda: ibis.memtable(table),
    }.get(kind, lambda: write(paths[kind], table) or paths[kind])()
    found = shoal.diagnose(given_)
    assert found.largest_sets(3).sets == (("W", "X", "Z"), ("W", "Y", "Z"))
    assert found.suggest().columns[0].distinct == 3


# What is refused, and in which words


@pytest.mark.parametrize(
    ("options", "kind", "says"),
    [
        ({"columns": ["V", "Wx"]}, UnknownName, "Unknown column 'Wx'"),
        ({"columns": ["V", "V"]}, UsageError, "The column 'V' is named twice. Name it once."),
        ({"columns": []}, UsageError, "No columns are named. Name those that somebody could know"),
        ({"columns": 5}, UsageError, "columns must be names, such as ['age', 'sex'], got 5."),
        ({"sensitive": "Q"}, UsageError, "The table has no column 'Q', nor one like it."),
        (
            {"columns": ["V"], "sensitive": "Ww"},
            UnknownName,
            "Unknown sensitive column 'Ww'. Did you mean 'W'?",
        ),
        (
            {"columns": ["V", "W"], "sensitive": "W"},
            UsageError,
            "Column 'W' is the sensitive one and cannot be among the columns.",
        ),
    ],
)
def test_wrong_columns_are_refused(tmp_path, options, kind, says):
    with pytest.raises(kind) as caught:
        shoal.diagnose(published(), **options)
    assert says in str(caught.value)
    write(tmp_path / "data.parquet", published())
    with pytest.raises(UsageError):
        shoal.diagnose(tmp_path / "data.parquet", **options)


@pytest.mark.parametrize(
    ("question", "wishes", "says"),
    [
        (1, {"k": 0}, "k must be at least 1, got 0."),
        (3, {"k": 2.5}, "k must be a whole number, got 2.5."),
        (9, {"k": True}, "k must be a whole number, got True."),
        (1, {"k": 2, "columns": ["V", "vv"]}, "Unknown column 'vv'"),
        (2, {"columns": ["V", "W", "V"]}, "named twice"),
        (11, {"columns": []}, "No columns are named"),
        (5, {"k": 2, "suppression_limit": "101%"}, "must not be above 100%"),
        (6, {"suppression_limit": -0.1}, "must not be below 0"),
        (7, {"k": 2, "suppression_limit": 13}, "must not be above the table's 12 records"),
        (8, {"suppression_limit": "many"}, "a share such as 5% or 0.05"),
        (4, {"max_size": 0}, "max_size must be at least 1, got 0."),
        ("unsafe", {"k": 2, "max_size": -1}, "max_size must be at least 1, got -1."),
        (12, {"most": 0}, "most must be at least 1, got 0."),
        (3, {"k": 2, "seconds": 0}, "seconds must be a number above 0, got 0."),
        (3, {"k": 2, "seconds": "x"}, "seconds must be a number above 0, got 'x'."),
        (2, {"columns": 5}, "columns must be names, such as ['age', 'sex'], got 5."),
        (3, {}, "Question 3 lacks a setting. Give k."),
        (6, {}, "Question 6 lacks a setting. Give suppression_limit."),
        (2, {"most": 4}, "Question 2 does not take all of these settings. Leave out most."),
        ("unsave", {"k": 2}, "Unknown question 'unsave'. Did you mean 'unsafe'?"),
        (13, {}, "Unknown question '13'"),
        ("x", {}, "Available: overview, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, unsafe, rows, suggest."),
    ],
)
def test_wrong_wishes_are_refused(question, wishes, says):
    with pytest.raises(UsageError) as caught:
        shoal.diagnose(published()).ask(question, **wishes)
    assert says in str(caught.value)


def test_methods_refuse_what_the_questions_refuse():
    found = shoal.diagnose(published(), sensitive="V")
    with pytest.raises(UsageError, match="l must be at least 1, got 0"):
        found.largest_sets(0)
    with pytest.raises(UsageError, match="l must be a whole number"):
        found.unsafe_sets("3", at_most=True)
    with pytest.raises(UsageError, match="max_size must be at least 1"):
        found.suppression_of_sets(2, 0)
    with pytest.raises(UsageError, match="most must be at least 1"):
        found.suppression_by_k(most=0)
    with pytest.raises(PolicyError, match="above the table's 12 records"):
        found.anonymity(suppression_limit=13)


def test_a_single_text_is_one_column():
    assert shoal.diagnose(published(), "V").columns == ("V",)
    assert shoal.diagnose(published()).anonymity("V") == 2
    assert shoal.diagnose(published()).ask(2, columns="V").columns == ["V"]


def test_columns_are_read_once():
    found = shoal.diagnose(published(), (name for name in "VWX"))
    answer = found.ask(1, k=2, columns=(name for name in "XV"))
    assert (answer.columns, answer.options["columns"]) == (["X", "V"], ["X", "V"])
    assert answer.details["reached"] == found.anonymity(["V", "X"])


def test_a_function_chooses_columns():
    assert shoal.diagnose(published(), lambda names: names[:2]).columns == ("V", "W")


def test_numbers_may_be_numpys():
    found = shoal.diagnose(published())
    assert found.ask(3, k=np.int64(3)) == found.ask(3, k=3)
    assert json.dumps(found.ask(9, k=np.int32(3)).to_dict())
    assert type(found.suppression(np.int64(2)).k) is int


def test_at_most_has_its_own_words():
    found = shoal.diagnose(published(), sensitive="Z")
    for question, asked in QUESTIONS.items():
        assert bool(asked.at_most_template) == ("at_most" in asked.takes)
        if asked.at_most_template:
            limit = 1 if "suppression_limit" in asked.needs else None
            told = found.ask(question, k=2, suppression_limit=limit, at_most=True)
            assert "l at most this" in told.text
            assert "at most" not in found.ask(question, k=2, suppression_limit=limit).text


def test_an_empty_table_is_refused():
    with pytest.raises(DataError, match="The table has no rows"):
        shoal.diagnose(published().slice(0, 0))
    with pytest.raises(UsageError, match="no column but the sensitive one"):
        shoal.diagnose(pa.table({"a": [1]}), sensitive="a")


@pytest.mark.parametrize("kind", ["pandas", "arrow", "polars"])
def test_a_table_without_columns_is_refused(kind):
    import pandas
    import polars

    empty = {"pandas": pandas.DataFrame, "arrow": lambda: pa.table({}), "polars": polars.DataFrame}[kind]()
    with pytest.raises(DataError, match=r"The table has no columns\. Give one that has some\."):
        shoal.diagnose(empty)


def test_a_series_is_no_table():
    import pandas
    import polars

    for series in (pandas.Series([1, 2], name="a"), polars.Series("a", [1, 2])):
        with pytest.raises(DataError, match=r"Cannot read a table from Series. Give a path, or a pandas"):
            shoal.diagnose(series)


def test_a_first_record_of_words_is_not_shown(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"{SECRET},Smith\n{SECRET}x,Jones\n")
    for asked in ({"columns": ["age"]}, {"columns": "age"}, {"sensitive": "age"}):
        with pytest.raises(UsageError, match="Does it begin with a line of column names") as caught:
            shoal.diagnose(path, **asked)
        assert SECRET not in str(caught.value)
        assert "Smith" not in str(caught.value)


def test_a_file_that_begins_with_a_record_is_refused(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text(f"39,{SECRET}\n50,{SECRET}x\n")
    with pytest.raises(DataError, match="Add a line of column names") as caught:
        shoal.diagnose(path)
    assert SECRET not in str(caught.value)


# The command line


class Workspace:
    """A folder with the published table, whose text cells are recognizable."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.data = home / "data.csv"
        with self.data.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(["VWXYZ", *[[f"{SECRET}{cell}" for cell in row] for row in PUBLISHED]])

    def call(self, *arguments: object) -> Any:
        result = CliRunner(env={"COLUMNS": "100"}).invoke(
            app, ["diagnose", *map(str, (self.data, *arguments))]
        )
        assert result.exception is None or isinstance(result.exception, SystemExit), repr(result.exception)
        assert SECRET not in result.output
        return result

    def told(self, *arguments: object) -> dict[str, Any]:
        result = self.call(*arguments, "--json")
        assert result.exit_code == 0, result.output
        found: dict[str, Any] = json.loads(result.stdout)
        return found


@pytest.fixture
def desk(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path)


WISHES = {
    "overview": (),
    "1": ("--k", 3, "--columns", "W,X"),
    "2": ("--columns", "W"),
    "3": ("--k", 3),
    "4": ("--max-size", 2),
    "5": ("--k", 3, "--suppression-limit", "50%"),
    "6": ("--suppression-limit", 2),
    "7": ("--k", 3, "--suppression-limit", 0.2),
    "8": ("--suppression-limit", "20%"),
    "9": ("--k", 2, "--columns", "V,W"),
    "10": ("--k", 2),
    "11": ("--columns", "V"),
    "12": ("--most", 3, "--max-size", 1),
    "unsafe": ("--k", 3),
    "rows": ("--k", 2),
    "suggest": (),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_every_question_is_answered_as_json_and_as_text(desk: Workspace, question: str) -> None:
    asked = () if question == "overview" else ("--question", question)
    told = desk.told(*asked, *WISHES[question])
    assert told.keys() >= {"question", "answer", "counts", "complete", "records", "columns"}
    assert str(told["question"]) == question
    assert told["complete"] is True
    shown = desk.call(*asked, *WISHES[question])
    assert shown.exit_code == 0
    assert len(shown.stdout.splitlines()) > 1


def test_answers_as_json(desk: Workspace) -> None:
    assert desk.told("--question", 1, *WISHES["1"])["answer"] is True
    assert desk.told("--question", 5, *WISHES["5"])["answer"] is False
    assert desk.told("--question", 2, *WISHES["2"])["answer"] == 6
    largest = desk.told("--question", 3, "--k", 3)
    assert largest["answer"][:2] == [["W", "X", "Z"], ["W", "Y", "Z"]]
    assert largest["answer"] == [one["columns"] for one in largest["maximal"]]
    assert (largest["counts"], largest["k"]) == (13, 3)
    sets = {tuple(one["columns"]): one["k"] for one in desk.told("--question", 4)["answer"]}
    assert (len(sets), sets[("X", "Y")]) == (31, 2)
    assert desk.told("--question", 9, *WISHES["9"])["answer"] == {
        "suppressed": 1,
        "share": 0.0834,
        "remaining": 11,
    }
    assert desk.told("--question", 11, *WISHES["11"])["answer"][1] == {
        "k": 3,
        "suppressed": 2,
        "share": 0.1667,
        "remaining": 10,
    }
    by_k = desk.told("--question", 12, *WISHES["12"])["answer"]
    assert by_k[0] == {"columns": ["V"], "suppressed": [0, 0, 2]}
    assert desk.told("--question", "unsafe", "--k", 3)["answer"] == [["V"], ["X", "Y"]]
    assert desk.told("--question", 3, "--k", 3, "--at-most")["answer"] == [["V"]]
    seventh = desk.told("--question", 7, *WISHES["7"])
    assert (seventh["suppression_limit"], seventh["limit"]) == ("0.2", 2)


def test_questions_3_and_7_answer_with_every_maximal_set_the_largest_first(desk: Workspace) -> None:
    for options in (("--question", 3), ("--question", 7, "--suppression-limit", 2)):
        answer = desk.told(*options, "--k", 3)["answer"]
        values = desk.told("--question", 8, "--suppression-limit", 2 if 7 in options else 0)["answer"]
        safe = [set(one["columns"]) for one in values if one["k"] >= 3]
        maximal = [one for one in safe if not any(one < other for other in safe)]
        assert sorted(map(sorted, answer)) == sorted(map(sorted, maximal))
        assert list(map(len, answer)) == sorted(map(len, answer), reverse=True)
    assert set(map(len, answer)) == {1, 3}  # of question 7


def test_help_explains_each_question() -> None:
    shown = CliRunner(env={"COLUMNS": "300"}).invoke(app, ["diagnose", "--help"])
    lines = [line.strip() for line in shown.output.splitlines()]
    for name, question in QUESTIONS.items():
        if name == "overview":
            continue
        line = next(line for line in lines if line.startswith(f"{name}: "))
        for option in ("k", "suppression_limit", "most"):
            assert (option in question.needs) == (
                f"--{option.replace('_', '-')}" in line.partition("Needs")[2]
            )


def test_a_limit_turns_question_3_into_question_7(desk: Workspace) -> None:
    third = desk.told("--question", 3, "--k", 3, "--suppression-limit", 2)
    seventh = desk.told("--question", 7, "--k", 3, "--suppression-limit", 2)
    assert third["answer"] == seventh["answer"]
    assert third["maximal"] == seventh["maximal"]


def test_l_takes_the_place_of_k(desk: Workspace) -> None:
    told = desk.told("--question", 8, "--sensitive", "V", "--suppression-limit", 1)
    assert (told["measure"], told["sensitive"]) == ("l", "V")
    assert told["text"] == "Which l does every set have after suppression?"
    rows = [row[1:] for row in PUBLISHED]
    sensitive = [row[0] for row in PUBLISHED]
    assert {tuple(one["columns"]): one["l"] for one in told["answer"]} == {
        tuple("WXYZ"[c] for c in s): k_of(rows, s, sensitive, 1) for s in every(4)
    }
    shown = desk.call("--question", 1, "--k", 2, "--sensitive", "V").stdout
    assert "fewer than 2 values of V" in shown


def test_columns_with_a_comma_are_quoted(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('"a,b",c\n1,2\n1,2\n')
    result = CliRunner().invoke(
        app, ["diagnose", str(path), "--question", "2", "--columns", '"a,b", c', "--json"]
    )
    assert json.loads(result.stdout)["columns"] == ["a,b", "c"]


def test_columns_are_read_as_they_are_named(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    path.write_text('"a,b"," c ",d\n1,2,3\n1,2,3\n')

    def call(*names: str) -> Any:
        asked = [part for name in names for part in ("--columns", name)]
        return CliRunner().invoke(app, ["diagnose", str(path), "--question", "2", *asked, "--json"])

    for names in (("a,b", " c ", "d"), ('"a,b"," c ",d',), ("a,b", '" c ", d ')):
        assert json.loads(call(*names).stdout)["columns"] == ["a,b", " c ", "d"]
    for wrong in ('"d', '"d"x', 'd\n"'):
        refused = call("d", wrong)
        assert refused.exit_code == 2
        assert "cannot be read" in json.loads(refused.stdout)["message"]


def test_long_tables_are_cut_with_a_word(desk: Workspace) -> None:
    assert "and 16 more; --json has all." in desk.call("--question", 4).stdout
    assert "13 of 31 sets were counted." in desk.call("--question", 3, "--k", 3).stdout


def test_rows_go_to_a_file_and_are_not_printed(desk: Workspace) -> None:
    file = desk.home / "rows.txt"
    told = desk.told("--k", 2, "--rows", file)
    assert (told["question"], told["answer"], told["rows"]) == ("rows", 6, str(file))
    assert file.read_text().split() == ["3", "4", "5", "6", "9", "10"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    refused = desk.call("--k", 2, "--rows", file)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "Use --force" in refused.stderr
    assert desk.call("--k", 2, "--rows", file, "--force").exit_code == 0
    assert desk.call("--k", 2, "--rows", desk.data, "--force").exit_code == 2
    wrong = desk.call("--question", 3, "--k", 2, "--rows", file)
    assert (wrong.exit_code, "--rows goes with --question rows" in wrong.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--columns", "V,Q"), "Unknown column 'Q'"),
        (("--columns", "V,V"), "named twice"),
        (("--columns", ""), "No columns are named"),
        (("--question", "3"), "Question 3 lacks a setting. Give --k."),
        (("--question", "3", "--k", "0"), "k must be at least 1, got 0."),
        (("--question", "6", "--suppression-limit", "1.5"), "must not be above 100%"),
        (("--question", "6", "--suppression-limit", "99"), "above the table's 12 records"),
        (("--max-size", "2"), "Question overview does not take all of these settings. Leave out --max-size."),
        (("--sensitive", "V", "--columns", "V"), "is the sensitive one"),
    ],
)
def test_the_command_line_refuses(desk: Workspace, arguments: tuple[str, ...], says: str) -> None:
    refused = desk.call(*arguments)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert says in refused.stderr
    told = json.loads(desk.call(*arguments, "--json").stdout)
    assert says in told["message"]


def test_wide_tables_ask_for_a_size(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    write(path, table_of(forty(20), [f"c{c}" for c in range(40)]))
    refused = CliRunner().invoke(app, ["diagnose", str(path), "--question", "4"])
    assert refused.exit_code == 2
    assert "Give a --max-size:" in refused.stderr
    result = CliRunner().invoke(app, ["diagnose", str(path), "--question", "4", "--max-size", "2", "--json"])
    assert len(json.loads(result.stdout)["answer"]) == 820


def write_wide(path: Path, columns: int, rows: int = 60) -> None:
    """Write a table with a column of many values, one of nulls, and many of few values."""
    rng = np.random.default_rng(1)
    cells = rng.integers(0, 4, (rows, columns)).astype(str)
    cells[:, 0] = [f"v{row}" for row in range(rows)]
    cells[cells == "3"] = ""
    lines = [",".join(f"c{column}" for column in range(columns)), *map(",".join, cells)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@pytest.mark.parametrize("few", [32, 1], ids=["by expressions", "by joins in parts"])
def test_a_wide_table_is_counted_as_a_narrow_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int
) -> None:
    path = tmp_path / "wide.csv"
    write_wide(path, 50)
    usual = shoal.diagnose(path)  # by one join for each column, as any number did before
    monkeypatch.setattr("shoal.engines.duckdb.engine.DuckDb.most_joins", 3)
    monkeypatch.setattr("shoal.engines.relational.relations._MOST_CASES", few)
    wide = shoal.diagnose(path)
    assert [wide.domains[name].texts for name in wide.columns] == [
        usual.domains[name].texts for name in usual.columns
    ]
    assert np.array_equal(wide.source.counts.in_memory().keys, usual.source.counts.in_memory().keys)
    assert np.array_equal(wide.source.counts.in_memory().sizes, usual.source.counts.in_memory().sizes)
    for found in (usual, wide):
        found.write_rows(tmp_path / "rows", 3, ["c1", "c2", "c3", "c4", "c5"], force=True)
        assert found.anonymity(["c1", "c2"]) == usual.anonymity(["c1", "c2"])
    assert len((tmp_path / "rows").read_text().splitlines()) == usual.rows_to_suppress(
        3, ["c1", "c2", "c3", "c4", "c5"]
    )


def test_300_columns_are_counted_and_what_is_omitted_is_named(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    write_wide(path, 300)
    found = shoal.diagnose(path)
    answer = found.ask("overview", k=5, seconds=1e-6)
    assert answer.complete is False
    assert answer.omitted == (
        "some of the sets of 1 column, and all larger ones",
        "what 299 of 300 columns look like",
    )
    assert answer.to_dict()["omitted"] == list(answer.omitted)
    table = found.ask(10, k=5, max_size=2, seconds=1e-6)
    assert table.omitted == (f"{45150 - table.counts:,} of 45,150 sets",)
    with pytest.raises(UsageError, match=r"300 columns have more than 10\^90 sets"):
        found.ask(10, k=5)


def test_a_table_that_cannot_be_counted_in_time_is_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "wide.csv"
    write_wide(path, 40)
    monkeypatch.setattr("shoal.cli.diagnose._COUNT_SECONDS", 1e-6)
    monkeypatch.setattr("shoal.engines.duckdb.engine.DuckDb.count", endless)
    result = CliRunner().invoke(app, ["diagnose", str(path), "--seconds", "1e-6", "--json"])
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["error"] == "OutOfTime"
    assert "could not be counted in 1e-06 seconds" in told["message"]


def endless(engine: Any, table: Any, columns: Any, sensitive: Any = ()) -> Any:
    """Run a query that takes hours."""
    with engine.translate_errors():
        many = "range(10000000)"
        engine.connection.sql(f"SELECT sum(a.range * b.range) FROM {many} a, {many} b").fetchall()


def test_a_search_holds_no_more_sets_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(forty(20), [f"c{c}" for c in range(40)])
    monkeypatch.setattr(subsets, "_MOST_OF_SIZE", 50)
    found = shoal.diagnose(table).unsafe_sets(2)
    assert (found.complete, found.full_size, found.counts) == (False, 1, 90)
    monkeypatch.setattr(subsets, "_MOST_HELD", 10)
    assert shoal.diagnose(table).unsafe_sets(2).counts == 10


def test_ctrl_c_shows_what_was_found(desk: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def over(_: TimeLimit) -> bool:
        calls.append(1)
        if len(calls) == 4:
            raise KeyboardInterrupt
        return False

    monkeypatch.setattr(TimeLimit, "over", over)
    monkeypatch.setattr("shoal.cli.diagnose.stopping", lambda: len(calls) >= 4)  # as after a signal
    result = desk.call("--question", "unsafe", "--k", 3, "--json")
    assert result.exit_code == 130
    told = json.loads(result.stdout)
    assert (told["answer"], told["counts"], told["complete"]) == ([["V"]], 4, False)


@pytest.fixture
def counted_at_any_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a busy machine count the table, however few the seconds for its sets."""
    monkeypatch.setattr("shoal.cli.diagnose._COUNT_SECONDS", 600.0)


@pytest.mark.usefixtures("counted_at_any_rate")
def test_seconds_are_told_as_not_complete(desk: Workspace) -> None:
    told = desk.told("--question", "unsafe", "--k", 3, "--seconds", "0.000001")
    assert told["complete"] is False
    assert "found so far" in desk.call("--question", "unsafe", "--k", 3, "--seconds", "0.000001").stdout


@pytest.mark.usefixtures("counted_at_any_rate")
@pytest.mark.parametrize("options", [("--max-size", 1), ("--seconds", 1e-6), ("--max-size", 2)])
def test_what_was_not_looked_at_is_not_called_safe(tmp_path: Path, options: tuple[object, ...]) -> None:
    path = tmp_path / "data.csv"
    write(path, table_of([(c >> 2 & 1, c >> 1 & 1, c & 1) for c in range(8)], "abc"))  # only abc breaks 2
    asked = [str(part) for part in ("diagnose", path, "--question", "unsafe", "--k", 2, *options)]
    shown = CliRunner(env={"COLUMNS": "200"}).invoke(app, asked).stdout
    assert "There is no set" not in shown
    where = (
        "None found so far" if "--seconds" in options else f"None among sets of at most {options[1]} column"
    )
    assert where in shown
    assert "All columns together are unsafe: their k is 1." in shown
    told = json.loads(CliRunner().invoke(app, [*asked, "--json"]).stdout)
    assert (told["answer"], told["whole"]) == ([], 1)


@pytest.mark.usefixtures("counted_at_any_rate")
def test_a_stopped_overview_does_not_say_that_all_is_well(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    write(path, table_of([(c >> 2 & 1, c >> 1 & 1, c & 1) for c in range(8)], "abc"))
    shown = CliRunner().invoke(app, ["diagnose", str(path), "--k", "2", "--seconds", "1e-6"]).stdout
    assert "No set of columns breaks" not in shown
    assert "None found so far that breaks k 2; all columns together do." in shown
    safe = CliRunner().invoke(app, ["diagnose", str(path), "--k", "1"]).stdout
    assert "No set of columns breaks k 1." in safe
    bounded = ["diagnose", str(path), "--question", "unsafe", "--k", "1", "--max-size", "1"]
    assert "There is no set of columns whose k is below 1." in CliRunner().invoke(app, bounded).stdout


@pytest.mark.usefixtures("counted_at_any_rate")
def test_the_overview_tells_no_seconds_that_nobody_gave(desk: Workspace) -> None:
    assert "seconds" not in desk.told()
    assert desk.told("--seconds", 9)["seconds"] == 9


def test_the_limit_of_question_9_reads_back(tmp_path: Path) -> None:
    path = tmp_path / "data.csv"
    records = 300_007
    for alone in (1, 17, 12_347):
        values = [f"v{c}" for c in range(alone)] + ["same"] * (records - alone)
        write(path, pa.table({"a": values}))
        shown = CliRunner().invoke(app, ["diagnose", str(path), "--question", "9", "--k", "2"]).stdout
        limit = next(line.split()[1].rstrip(",") for line in shown.splitlines() if "as a share" in line)
        assert "e" not in limit
        assert limit_in_records(limit, records) == alone


def test_question_11_says_up_to_which_k(desk: Workspace) -> None:
    assert "k up to" in desk.call("--question", 11, "--columns", "V").stdout
    assert "k up to" not in desk.call("--question", 11, "--columns", "V", "--most", 99).stdout


def test_plots_say_which_sets_they_show() -> None:
    found = diagnosed(forty())
    plots, missing = diagnosis_plots(found, max_size=2)
    assert missing == "sets of at most 2 columns"
    assert all(missing in plot.title for plot in plots[1:])
    assert missing in plots[2].order[0]
    stopped = diagnosed(forty(), progress=interrupting(7))
    plots, missing = diagnosis_plots(stopped, max_size=2)
    assert missing == "sets of at most 2 columns, stopped: 7 of 820 sets"
    assert missing in plots[2].title
    assert diagnosis_plots(diagnosed([(1, 2), (1, 3)]))[1] == ""


def test_plots_of_no_set_show_the_curve_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    found = diagnosed(forty())
    target = "shoal.workflow.diagnosis.diagnosis.search"
    monkeypatch.setattr(target, lambda source, judge, *_, **__: subsets.Search(1))
    plots, missing = diagnosis_plots(found, max_size=2)
    assert [plot.name for plot in plots] == ["suppression"]
    assert "stopped: 0 of 820 sets" in missing


def test_the_curve_is_drawn_in_steps() -> None:
    (curve, *_), _ = diagnosis_plots(diagnosed([(1,), (1,), (2,), (2,), (2,)]))
    assert list(curve.strips[0].panels[0]["c0"]) == [(1, 0), (2, 0), (3, 0.4)]
    assert curve.drawn == {"c0": "steps"}


def test_bounded_plots_are_told_on_stderr(desk: Workspace) -> None:
    told = desk.call("--plots", desk.home / "plots", "--max-size", 2)
    assert "Plots: sets of at most 2 columns." in told.stderr
    assert "Plots:" not in desk.call("--plots", desk.home / "plots").stderr


@pytest.mark.parametrize(
    "options", [(), ("--sensitive", "V"), ("--suppression-limit", "20%", "--max-size", 2)]
)
def test_plots_are_drawn(desk: Workspace, options: tuple[object, ...]) -> None:
    folder = desk.home / "plots"
    assert desk.call("--plots", folder, *options).exit_code == 0
    names = {path.name for path in folder.iterdir()}
    drawn = ["suppression", "sets", "frontier", *([] if "--max-size" in options else ["counts"])]
    assert names == {f"{n}.{e}" for n in drawn for e in ("png", "svg")}
    assert all(path.stat().st_size > 1000 for path in folder.iterdir())


# Speed, where the Adult table is


@needs_adult
def test_question_12_of_adult_takes_a_moment() -> None:

    root = folder()
    assert root is not None
    columns = COLUMNS[:-1]
    found = shoal.diagnose(root / "adult.csv", columns)
    found.suppression_of_sets_by_k(50)
    best = fastest(lambda: found.suppression_of_sets_by_k(50), times=3)
    assert len(found.suppression_of_sets_by_k(50)) == 255
    assert best < 1


@needs_adult
def test_the_study_of_adult_is_met() -> None:
    """What a published study suppresses of Adult as it is."""
    root = folder()
    assert root is not None
    found = shoal.diagnose(root / "adult.csv", ["age", "race", "workclass", "occupation"])
    three = ["age", "race", "workclass"]
    assert [found.rows_to_suppress(k, three) for k in (3, 10, 25)] == [554, 1921, 4578]
    assert found.rows_to_suppress(3) == 3297
