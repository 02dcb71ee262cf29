"""An engine for another Ibis backend is one small file and one line in the registry."""

from __future__ import annotations

import importlib
import textwrap
from collections import Counter
from pathlib import Path

import ibis
import pyarrow as pa
import pytest

import shoal
from shoal.engines import ENGINES
from shoal.errors import DataError, UsageError

FILE = '''
"""SQLite, as an engine."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import ibis

from shoal.engines.ibis.engine import IbisEngine


@dataclass(frozen=True)
class Sqlite(IbisEngine):
    """Works in an SQLite database."""

    database: str = "people.db"
    """The file of the database."""

    @cached_property
    def connection(self) -> Any:
        return ibis.sqlite.connect(self.database)
'''
LINE = {"sqlite": "sqlite_engine:Sqlite"}
POLICY = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "ward": {"role": "other"},
    },
    "models": [{"k-anonymity": {"k": 4}}],
    "suppression_limit": "5%",
}


def people() -> pa.Table:
    ages = [20 + 7 * row % 40 for row in range(120)]
    return pa.table({"age": ages, "sex": ["f", "m", "m"] * 40, "ward": [f"w{row % 5}" for row in range(120)]})


@pytest.fixture
def sqlite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Add the engine, and return a database with the table `people`."""
    (tmp_path / "sqlite_engine.py").write_text(textwrap.dedent(FILE))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(vars(ENGINES), "_locations", {**ENGINES._locations, **LINE})
    importlib.invalidate_caches()
    database = tmp_path / "people.db"
    connection = ibis.sqlite.connect(database)
    connection.create_table("people", people())
    connection.disconnect()
    return database


@pytest.mark.filterwarnings("ignore:.*infer_string")  # of what Ibis asks pandas for
def test_a_new_engine_counts_and_recodes_a_table_by_its_name(sqlite: Path) -> None:
    engine = ENGINES.create("sqlite", {"database": str(sqlite)})
    table = engine.open("people")
    counts, domains = engine.count(table, ["age", "sex"])
    assert counts.records == 120
    assert domains["sex"].texts == ("f", "m")
    expected = shoal.anonymize(people(), POLICY)
    release = shoal.anonymize(table, POLICY)
    assert release.levels == expected.levels
    rows = Counter(map(str, release.table.to_pyarrow().to_pylist()))
    assert rows == Counter(map(str, expected.table.to_pylist()))


@pytest.mark.filterwarnings("ignore:.*infer_string")
def test_a_new_engine_is_chosen_by_its_name(sqlite: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sqlite.parent)
    expected = shoal.anonymize(people(), POLICY)
    release = shoal.anonymize("people", POLICY, engine="sqlite")
    assert release.levels == expected.levels
    assert Counter(map(str, release.table.to_pylist())) == Counter(map(str, expected.table.to_pylist()))


@pytest.mark.filterwarnings("ignore:.*infer_string")
def test_an_error_of_a_new_engine_names_its_backend(sqlite: Path) -> None:
    engine = ENGINES.create("sqlite", {"database": str(sqlite)})
    with pytest.raises(DataError, match="The Ibis backend 'sqlite' refused a query"):
        engine.open("nobody")
    with pytest.raises(UsageError, match="cannot be written from the Ibis backend 'sqlite'"):
        engine.target("release.csv")
