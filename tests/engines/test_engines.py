"""One suite over all engines: whatever counts and recodes, the same rows are released."""

from __future__ import annotations

import datetime
import math
import re
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from servers import needs_postgres, needs_spark, postgres, spark
from shoal.columns.identifiers import WITHIN
from shoal.core.contracts import ColumnScan, Engine, KeyGroups
from shoal.errors import DataError, PolicyError, UsageError
from shoal.workflow.release.spreadsheet import FORMULA
from shoal.workflow.session import choose_engine

pytestmark = [
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.xdist_group("servers"),
]

QUASI = "quasi-identifier"
ODD = 'odd "name"; drop table x'
ROWS = 600


def people() -> pa.Table:
    draw = np.random.default_rng(11)

    def some(values: list[Any], rare: float = 0.05) -> list[Any]:
        rates = np.full(len(values), (1 - rare) / (len(values) - 1))
        rates[-1] = rare
        return [values[place] for place in draw.choice(len(values), ROWS, p=rates)]

    days = [datetime.date(1950, 1, 1) + datetime.timedelta(days=400 * n) for n in range(12)]
    return pa.table(
        {
            "Name": pa.array([f"person {n}" for n in range(ROWS)]),
            "age": pa.array(some([*range(20, 60, 4), None]), pa.int32()),
            "größe": pa.array(some([1.5, 1.75, 2.0, -0.0, None]), pa.float64()),
            "zip": pa.array(some(["01067", "01069", "20095", "it's; --", "", None])),
            "born": pa.array(some([*days, None]), pa.date32()),
            "member": pa.array(some([True, False, None]), pa.bool_()),
            ODD: pa.array(some([Decimal("1.10"), Decimal("2.00"), None]), pa.decimal128(6, 2)),
            "illness": pa.array(some(["flu", "asthma", "none", None])),
            "note": pa.array([f"n{n}" for n in range(ROWS)]),
        }
    )


POLICY: dict[str, Any] = {
    "columns": {
        "Name": {"role": "identifier"},
        "age": {"role": QUASI, "hierarchy": {"intervals": [8, 16]}},
        "größe": {"role": QUASI, "hierarchy": "flat"},
        "zip": {"role": QUASI, "hierarchy": {"prefix": [2]}},
        "born": {"role": QUASI, "hierarchy": {"dates": ["year", "decade"]}},
        "member": {"role": QUASI, "hierarchy": "flat"},
        ODD: {"role": QUASI, "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
        "note": {"role": "other"},
    },
    "models": [{"k-anonymity": {"k": 4}}],
    "suppression_limit": "10%",
}
WISHES: dict[str, dict[str, Any]] = {
    "plain": {},
    "masked": {"suppressed": "mask"},
    "l-diversity": {"models": [{"k-anonymity": {"k": 3}}, {"distinct-l-diversity": {"l": 2}}]},
    "regions": {"algorithm": "mondrian"},
    "cells": {"algorithm": {"contour": {"cells": True}}},
}


@dataclass
class Place:
    """A table in an engine, and how to release and read there."""

    source: Any
    output: Any
    options: dict[str, Any]
    rows: Callable[[shoal.Release], list[tuple[Any, ...]]]
    leftovers: Callable[[], list[str]] = field(default=lambda: [])


def shown(value: Any) -> str:
    """Write a value so that it is the same from every engine."""
    if value is None or (isinstance(value, float) and math.isnan(value)) or value is pd.NaT:
        return ""
    if isinstance(value, float | Decimal) and value == int(value):
        return str(int(value))
    return str(value.normalize() if isinstance(value, Decimal) else value)


def rows_of(table: pa.Table) -> list[tuple[str, ...]]:
    return [tuple(shown(value) for value in row.values()) for row in table.to_pylist()]


def in_files(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir() if ".tmp" in path.name]


def duckdb_place(folder: Path) -> Place:
    pq.write_table(people(), folder / "people.parquet")
    output = folder / "release.parquet"
    return Place(
        folder / "people.parquet",
        output,
        {},
        lambda _: rows_of(pq.read_table(output)),
        lambda: in_files(folder),
    )


def frame_place(folder: Path) -> Place:
    return Place(
        people().to_pandas(types_mapper=pd.ArrowDtype),
        None,
        {},
        lambda release: rows_of(pa.Table.from_pandas(release.table, preserve_index=False)),
    )


def spark_place(folder: Path) -> Place:
    from shoal.engines.spark.engine import Spark

    pq.write_table(people(), folder / "people.parquet")
    output = folder / "release.parquet"
    engine = Spark.in_session(spark())

    def left() -> list[str]:
        views = [table.name for table in spark().catalog.listTables() if table.name.startswith("shoal_")]
        return [*views, *in_files(folder)]

    return Place(
        folder / "people.parquet", output, {"engine": engine}, lambda _: rows_of(pq.read_table(output)), left
    )


def spark_frame_place(folder: Path) -> Place:
    return Place(
        spark().createDataFrame(people()),
        None,
        {},
        lambda release: rows_of(release.table.toArrow()),
    )


def postgres_place(folder: Path) -> Place:
    from psycopg import sql

    server = postgres().connection
    server.execute('DROP SCHEMA IF EXISTS "Odd; Schema" CASCADE; CREATE SCHEMA "Odd; Schema"')
    table = people()
    kinds = {"age": "smallint", "größe": "real", "born": "date", "member": "boolean", ODD: "numeric(6,2)"}
    columns = sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.SQL(kinds.get(name, "text")))
        for name in table.column_names
    )
    name = sql.Identifier("Odd; Schema", 'peo"ple')
    server.execute(sql.SQL("CREATE TABLE {} ({})").format(name, columns))
    with server.cursor().copy(sql.SQL("COPY {} FROM STDIN").format(name)) as copy:
        for row in table.to_pylist():
            copy.write_row(tuple(row.values()))

    def rows(release: shoal.Release) -> list[tuple[Any, ...]]:
        found = server.execute(sql.SQL("SELECT * FROM {}").format(sql.Identifier("Odd; Schema", "Release 1")))
        return [tuple(shown(value) for value in row) for row in found]

    def left() -> list[str]:
        found = server.execute("SELECT relname FROM pg_class WHERE relname LIKE 'shoal%'").fetchall()
        return [*[row[0] for row in found], *in_files(Path())]

    return Place('"Odd; Schema"."peo""ple"', '"Odd; Schema"."Release 1"', {"engine": "postgres"}, rows, left)


PLACES = [
    pytest.param(duckdb_place, id="duckdb"),
    pytest.param(frame_place, id="frame"),
    pytest.param(spark_place, id="spark", marks=needs_spark),
    pytest.param(spark_frame_place, id="spark frame", marks=needs_spark),
    pytest.param(postgres_place, id="postgres", marks=needs_postgres),
]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in; a server of its own where PostgreSQL is wanted."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def _server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "postgres" in request.node.name:
        for name, value in postgres().environment.items():
            monkeypatch.setenv(name, value)


@pytest.fixture(scope="module")
def expected() -> dict[str, Counter[tuple[str, ...]]]:
    """What the embedded engine makes of a table in memory, which other tests hold to its oracle."""
    return {
        name: Counter(rows_of(shoal.anonymize(people(), POLICY | wish).table))
        for name, wish in WISHES.items()
    }


@pytest.mark.parametrize(
    ("place", "wish"),
    [
        pytest.param(*place.values, wish, id=f"{place.id} {wish}", marks=place.marks)
        for place in PLACES
        for wish in WISHES
        if place.id != "spark frame" or wish in ("plain", "masked")
    ],
)
def test_every_engine_releases_the_same_rows(
    place: Callable[[Path], Place], wish: str, here: Path, expected: dict[str, Counter[tuple[str, ...]]]
) -> None:
    own = place(here)
    release = shoal.anonymize(own.source, POLICY | WISHES[wish], output=own.output, **own.options)
    assert release.verification.verified
    assert [note.split(" ")[0] for note in release.notes] == ["'note'"]
    assert Counter(own.rows(release)) == expected[wish]
    assert own.leftovers() == []


@pytest.mark.parametrize("place", [place for place in PLACES if "spark" not in place.id])
def test_columns_are_counted_each_as_by_itself(place: Callable[[Path], Place], here: Path) -> None:
    source = place(here)
    engine = choose_engine(source.options.get("engine", "auto"), source.source)
    table = engine.open(source.source)
    names = engine.columns(table)
    for name, (counts, domain) in zip(names, engine.count_each(table, names), strict=True):
        alone, domains = engine.count(table, [name])
        assert (domain.name, domain.texts) == (name, domains[name].texts)
        assert (counts.keys.tolist(), counts.sizes.tolist()) == (alone.keys.tolist(), alone.sizes.tolist())
        assert counts.fields == alone.fields
    engine.close()


LOOKS = [
    *("a.b@example.org", "x a@b.co y", "+49 170 1234567", "(555) 123-4567", "123-45-6789", "0123-4567-89"),
    *("Tel. 0151 12345678", "le 06 12 34 56 78.", "DE89 3704 0044 0532 0130 00", "am 12.03.2024, 120/80"),
    *("rufe +49 (0)151 12345678 an", "Tél. 0612345678", "x (555) 123-4567, 123-45-6789", "0830-0900 120 mg"),
    *("=1", "\tq", "-5", "-5-3", "@x", "-1e-05", "a\nb", "+1 (555) 123-4567", "06 12 34 56 78", "", None),
    *("-5%+cmd", "-1e5+cmd", "-5%", "+1e5"),
]


@pytest.mark.parametrize("most", [-1, ROWS], ids=["database", "memory"])
@pytest.mark.parametrize("place", [place for place in PLACES if "frame" not in place.id])
def test_every_engine_finds_the_same_in_texts(
    place: Callable[[Path], Place], here: Path, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.engines.relational.few_rows.FEW_ROWS", most)
    own = place(here)
    engine = choose_engine(own.options.get("engine", "auto"), own.source)
    patterns = (*WITHIN.values(), FORMULA)
    texts = pa.table({"text": pa.array([*LOOKS, *LOOKS]), "number": range(len(LOOKS) * 2)})
    with closing(engine):
        found = engine.scan_columns(engine.open(texts), ["text", "number"], patterns)
    naive = [sum(bool(text and re.search(pattern, text)) for text in LOOKS) for pattern in patterns]
    found = {name: replace(scan, distinct=None) for name, scan in found.items()}
    assert found == {"text": ColumnScan(0, tuple(naive)), "number": ColumnScan(len(LOOKS) * 2, (0, 0, 0))}
    assert naive == [2, 10, 8]


@pytest.mark.parametrize("place", [place for place in PLACES if "frame" not in place.id])
def test_every_engine_counts_the_rows_that_hold_nothing(place: Callable[[Path], Place], here: Path) -> None:
    own = place(here)
    engine = choose_engine(own.options.get("engine", "auto"), own.source)
    rows = pa.table({"a": ["x", None, "", " ", None], "b": pa.array([None, None, None, 1, None], pa.int64())})
    with closing(engine):
        assert engine.empty(engine.open(rows)) == 3
        assert engine.empty(engine.open(rows.slice(0, 1))) == 0


@pytest.mark.parametrize("place", [place for place in PLACES if "frame" not in place.id])
def test_every_engine_groups_by_keys_alike(place: Callable[[Path], Place], here: Path) -> None:
    own = place(here)
    engine = choose_engine(own.options.get("engine", "auto"), own.source)
    table = people().append_column("key", pa.array([None if n < 3 else n // 4 for n in range(ROWS)]))
    table = table.append_column("same", pa.array([str(n // 8) if n % 5 else None for n in range(ROWS)]))
    keys, columns = ["key", "age", "zip"], ["age", "größe", "zip", "born", "member", ODD, "same"]
    with closing(engine):
        found = engine.key_groups(engine.open(table), keys, columns)
    rows = table.to_pylist()
    for key in keys:
        groups: dict[Any, list[dict[str, Any]]] = {}
        for row in rows:
            if row[key] is not None:
                groups.setdefault(row[key], []).append(row)
        repeated = [group for group in groups.values() if len(group) > 1]
        assert (found[key].groups, found[key].repeated) == (len(groups), len(repeated))
        sizes = list(map(len, groups.values()))
        assert (found[key].rows, found[key].smallest, found[key].largest) == (
            sum(sizes), min(sizes), max(sizes),
        )  # fmt: skip
        for name in columns:
            if name != key:
                values = [{row[name] for row in group} - {None} for group in repeated]
                assert found[key].constant[name] == sum(len(own) < 2 for own in values), (key, name)
    assert found["key"].constant["same"] == 149


@pytest.mark.parametrize("most", [-1, ROWS], ids=["database", "memory"])
def test_the_groups_of_a_key_are_those_of_counts(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.engines.relational.few_rows.FEW_ROWS", most)
    engine = choose_engine("auto", people())
    with closing(engine):
        table = engine.open(people())
        keys, columns = ["zip", "age"], ["age", "größe", "zip", "member", "illness"]
        assert Engine.key_groups(engine, table, keys, columns) == engine.key_groups(table, keys, columns)
        nobody = engine.open(people().slice(0, 0))
        assert engine.key_groups(nobody, ["zip"], ["age"]) == {"zip": KeyGroups(0, 0, 0, 0, 0, 0, {})}


@pytest.mark.parametrize("most", [-1, ROWS], ids=["database", "memory"])
def test_kinds_of_columns_are_counted_as_by_themselves(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """What SQL holds as one type may be several here, and a value that is no number is no null."""
    frame = pd.DataFrame(
        {
            "a": pd.Categorical(["u", "v", "u"]),
            "b": pd.Categorical(["w", None, "w"]),
            "c": [1.5, np.nan, 2],
            "d": pd.to_datetime(["2020-01-01", None, "2020-01-01"]),
            "e": pd.Series([1, None, 3], dtype="Int16"),
            "f": [None, None, None],
            "g": [0.0, -0.0, 1.0],
            "h": [True, None, True],
        }
    )
    monkeypatch.setattr("shoal.engines.relational.few_rows.FEW_ROWS", most)
    engine = choose_engine("auto", frame)
    table = engine.open(frame)
    for name, (counts, domain) in zip(frame, engine.count_each(table, list(frame)), strict=True):
        alone, domains = engine.count(table, [name])
        assert domain.texts == domains[name].texts
        assert counts.sizes.tolist() == alone.sizes.tolist()


def test_more_columns_than_a_query_takes_are_counted_in_their_order() -> None:
    table = pa.table({f"c{n}": [n, n % 3, 7] if n % 2 else [f"x{n}", "y", None] for n in range(37)})
    engine = choose_engine("auto", table)
    opened = engine.open(table)
    names = engine.columns(opened)
    found = [(domain.name, domain.texts) for _, domain in engine.count_each(opened, names)]
    assert found == [(name, engine.count(opened, [name])[1][name].texts) for name in names]


def test_a_table_that_changes_between_columns_is_refused() -> None:
    import ibis

    connection = ibis.duckdb.connect()
    connection.raw_sql(
        "CREATE VIEW v AS SELECT i AS a, CAST(i AS VARCHAR) AS b FROM range(40000) t(i) WHERE random() < 0.5"
    )
    engine = choose_engine("auto", connection.table("v"))
    table = engine.open(connection.table("v"))
    with pytest.raises(DataError, match="changed while it was counted"):
        list(engine.count_each(table, ["a", "b"]))


def test_a_column_of_a_kind_that_cannot_be_read_is_told_without_its_values(tmp_path: Path) -> None:
    import duckdb

    path = tmp_path / "t.parquet"
    duckdb.sql(f"COPY (SELECT 1 AS a, INTERVAL 37 DAY AS b) TO '{path}'")
    with pytest.raises(DataError) as caught:
        shoal.diagnose(path).suggest()
    assert "37" not in str(caught.value)


def test_a_text_file_is_read_once_for_all_its_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from shoal.engines.relational import columns as each
    from shoal.engines.relational import few_rows
    from shoal.workflow.inspect import inspect

    asked: list[str] = []
    query = each.query
    monkeypatch.setattr(few_rows, "FEW_ROWS", 0)
    monkeypatch.setattr(each, "query", lambda *given: asked.append(query(*given)) or asked[-1])
    (tmp_path / "x.csv").write_text("a,b,c\n1,x,\n2,x,\n2,y,\n")
    found = inspect(tmp_path / "x.csv")
    assert len(asked) == 1
    assert (found.records, [one.distinct for one in found.columns]) == (3, [2, 2, 0])


def test_a_memory_limit_holds_for_a_table_of_a_connection() -> None:
    import ibis

    table = ibis.duckdb.connect().create_table("people", people())
    assert choose_engine("auto", table, "3GB").memory == 3_000_000_000
    with pytest.raises(PolicyError, match="memory_limit must be a size"):
        choose_engine("auto", table, "much")


def test_a_master_is_for_spark_alone() -> None:
    for name in ("auto", "duckdb"):
        with pytest.raises(UsageError, match="spark_master is for the engine 'spark'"):
            choose_engine(name, people(), spark_master="local[1]")
