"""Every engine releases what the default engine releases of a frame."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from plugin_examples import example
from servers import postgres, why_no_postgres, why_no_spark
from shoal.engines import ENGINES

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*infer_string"),
    pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning"),
    pytest.mark.xdist_group("servers"),
]

POLICY: dict[str, Any] = {
    "columns": {
        "name": {"role": "identifier"},
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [5, 20]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "illness": {"role": "sensitive"},
        "ward": {"role": "other"},
    },
    "models": [{"k-anonymity": {"k": 4}}, {"distinct-l-diversity": {"l": 2}}],
    "suppression_limit": "10%",
}


def people() -> pa.Table:
    return pa.table(
        {
            "name": [f"person {row}" for row in range(120)],
            "age": [20 + 7 * row % 40 for row in range(119)] + [90],
            "sex": ["f", "m", "m", None] * 30,
            "illness": ["flu", "asthma", "none", "none", "flu"] * 24,
            "ward": [f'it\'s "{row % 5}"; --' for row in range(120)],
        }
    )


def in_postgres(table: pa.Table, folder: Path) -> str:
    os.environ.update(postgres().environment)
    connection = postgres().connection
    connection.execute("drop table if exists contract_people")
    connection.execute("create table contract_people (name text, age int, sex text, illness text, ward text)")
    with connection.cursor() as cursor:
        cursor.executemany(
            "insert into contract_people values (%s, %s, %s, %s, %s)",
            [tuple(row.values()) for row in table.to_pylist()],
        )
    return "contract_people"


def in_a_file(table: pa.Table, folder: Path) -> str:
    pq.write_table(table, folder / "people.parquet")
    return str(folder / "people.parquet")


PREPARE: dict[str, Callable[[pa.Table, Path], str]] = {
    "duckdb": in_a_file, "postgres": in_postgres, "spark": in_a_file
}  # fmt: skip
ABSENT = {"postgres": why_no_postgres(), "spark": why_no_spark()}


@pytest.mark.parametrize("name", list(ENGINES))
def test_every_engine_releases_the_same_rows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if ABSENT.get(name) or (name in ABSENT and os.environ.get("SHOAL_CHECK")):
        pytest.skip(ABSENT[name] or "starts a server: make test")
    for variable in ("PGHOST", "PGUSER", "PGDATABASE", "PGPORT"):
        monkeypatch.delenv(variable, raising=False)  # restored after the test
    monkeypatch.chdir(tmp_path)
    prepare = PREPARE.get(name) or example(name).prepare  # type: ignore[union-attr]
    expected = shoal.anonymize(people(), POLICY)
    release = shoal.anonymize(prepare(people(), tmp_path), POLICY, engine=name)
    assert release.levels == expected.levels
    assert release.suppressed == expected.suppressed
    rows = [Counter(map(str, found.table.to_pylist())) for found in (release, expected)]
    assert rows[0] == rows[1]
    assert rows[0]
