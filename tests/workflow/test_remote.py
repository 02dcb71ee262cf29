"""A table in a database is released to a file, or in PostgreSQL to a new table; its rows stay there."""

from __future__ import annotations

import csv
import sqlite3
from pathlib import Path
from typing import Any

import duckdb
import pytest

import shoal
from servers import needs_postgres, postgres
from shoal.errors import DataError
from shoal.files.limits import Limits, limited
from shoal.workflow.inspect import inspect
from shoal.workflow.session import RemoteTable

pytestmark = pytest.mark.filterwarnings("ignore:The .future.infer_string")  # of pandas, in Ibis

SECRET = "hunter2-in-the-address"
ROWS = [(20 + n % 40, "abc"[n % 3], f"note {n}") for n in range(240)]
POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10, 20]}},
        "ward": {"role": "quasi-identifier", "hierarchy": "flat"},
        "note": {"role": "identifier"},
    },
    "models": [{"k-anonymity": {"k": 5}}],
    "suppression_limit": "5%",
}
CREATE = "CREATE TABLE people (age INTEGER, ward TEXT, note TEXT)"
INSERT = "INSERT INTO people VALUES ({0}, {0}, {0})"


def in_duckdb(folder: Path) -> RemoteTable:
    with duckdb.connect(str(folder / "clinic.db")) as connection:
        connection.execute(CREATE)
        connection.executemany(INSERT.format("?"), ROWS)
    return RemoteTable("patients", "people", f"duckdb://{folder / 'clinic.db'}")


def in_sqlite(folder: Path) -> RemoteTable:
    connection = sqlite3.connect(folder / "clinic.sqlite")
    connection.execute(CREATE)
    connection.executemany(INSERT.format("?"), ROWS)
    connection.commit()
    connection.close()
    return RemoteTable("patients", "people", f"sqlite://{folder / 'clinic.sqlite'}")


def in_postgres(folder: Path) -> RemoteTable:
    server = postgres()
    with server.connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS people, people_release")
        cursor.execute(CREATE)
        cursor.executemany(INSERT.format("%s"), ROWS)
    address = f"postgres://shoal:{SECRET}@/postgres?host={server.folder}&port=5432"
    return RemoteTable("patients", "people", address, "public", folder)


@pytest.fixture(
    params=[
        in_duckdb,
        in_sqlite,
        pytest.param(in_postgres, marks=[needs_postgres, pytest.mark.xdist_group("servers")]),
    ]
)
def people(request: pytest.FixtureRequest, tmp_path: Path) -> RemoteTable:
    if request.param is in_sqlite:
        pytest.importorskip("ibis.backends.sqlite", reason="needs ibis-framework[sqlite]")
    remote: RemoteTable = request.param(tmp_path)
    return remote


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_a_release_is_written_to_a_file_and_verified_there(
    people: RemoteTable, form: str, tmp_path: Path
) -> None:
    output = tmp_path / f"release.{form}"
    release = shoal.anonymize(people, POLICY, output=output, report=True)
    assert release.verification.verified
    assert shoal.verify(output, POLICY, recipe=release.recipe).verified
    with duckdb.connect() as connection:
        (count,) = connection.execute(f"SELECT count(*) FROM '{output}'").fetchall()[0]
    assert count == 240 - release.suppressed
    for path in tmp_path.rglob("*"):
        if path.is_file() and "clinic" not in path.name:
            assert SECRET.encode() not in path.read_bytes(), path


def test_the_same_release_as_from_a_file(people: RemoteTable, tmp_path: Path) -> None:
    table = tmp_path / "people.csv"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("age", "ward", "note"), *ROWS])
    ours = shoal.anonymize(people, POLICY, output=tmp_path / "a.csv")
    theirs = shoal.anonymize(table, POLICY, output=tmp_path / "b.csv")
    assert (ours.levels, ours.suppressed) == (theirs.levels, theirs.suppressed)
    lines = [sorted((tmp_path / name).read_text().splitlines()) for name in ("a.csv", "b.csv")]
    assert lines[0] == lines[1]


def test_counts_come_from_the_database(people: RemoteTable) -> None:
    inspection = inspect(people)
    assert (inspection.records, inspection.names) == (240, ("age", "ward", "note"))
    assert shoal.profile(people, POLICY).records == 240
    assert shoal.diagnose(people, ["age", "ward"]).records == 240


def test_too_many_columns_are_refused(people: RemoteTable) -> None:
    with limited(Limits(columns=2)), pytest.raises(DataError, match="3 columns, and the limit is 2"):
        inspect(people)


@needs_postgres
@pytest.mark.xdist_group("servers")
def test_a_release_in_postgres_is_a_new_table_beside_private_files(tmp_path: Path) -> None:
    people = in_postgres(tmp_path)
    release = shoal.anonymize(people, POLICY, output="people_release", report=True)
    assert release.verification.verified
    assert release.recipe is not None
    assert release.recipe.parent == tmp_path / "people_release.private"
    (rows,) = postgres().connection.execute("SELECT count(*) FROM people_release").fetchone()
    assert rows == 240 - release.suppressed


@pytest.mark.parametrize(
    "address",
    [
        pytest.param(f"postgres://shoal:{SECRET}@127.0.0.1:1/db", marks=needs_postgres),
        f"mysql://shoal:{SECRET}@127.0.0.1:1/db",
        f"duckdb:///no/such/folder/{SECRET}.db",
        f"no-such-backend://{SECRET}",
    ],
)
def test_no_error_shows_the_address(address: str) -> None:
    remote = RemoteTable("patients", "people", address)
    with pytest.raises(DataError) as caught:
        inspect(remote)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    assert SECRET not in f"{caught.value} {caught.value!r} {remote}"
