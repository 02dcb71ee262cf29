"""Counting and recoding where a table is larger than one batch, and keys larger than one word."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import shoal
from shoal.engines import ENGINES

pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ROWS = 300_000  # several row groups of what is written
QUASI = "quasi-identifier"
POLICY: dict[str, Any] = {
    "columns": {
        "age": {"role": QUASI, "hierarchy": {"intervals": [10]}},
        "sex": {"role": QUASI, "hierarchy": "flat"},
        "town": {"role": QUASI, "hierarchy": {"prefix": [1]}},
        "illness": {"role": "sensitive"},
        "place": {"role": "other"},
    },
    "models": [{"k-anonymity": {"k": 5}}],
    "suppression_limit": "10%",
}
NODE = {"age": 1, "sex": 0, "town": 1}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    draw = np.random.default_rng(3)
    town = np.array(["ab", "ba", "bb", "ca", None], object)
    sex = np.array(["m", "f", None], object)
    town_code = draw.choice(5, ROWS, p=[0.4, 0.3, 0.2, 0.0999, 0.0001])
    age = draw.integers(0, 100, ROWS)
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    columns = {
        "age": age,
        "sex": sex[draw.choice(3, ROWS, p=[0.5, 0.49, 0.01])],
        "town": town[town_code],
        "illness": draw.choice(["flu", "asthma"], ROWS),
        "place": np.arange(ROWS),
    }
    pq.write_table(pa.table(columns), path)
    return path


def rows_of(path: Path, *names: str) -> list[tuple[Any, ...]]:
    table = pq.read_table(path)
    return list(zip(*(table[name].to_pylist() for name in names), strict=True))


def null_last(row: tuple[Any, ...]) -> list[tuple[bool, Any]]:
    return [(value is None, value) for value in row]


def test_counts_are_those_of_a_plain_count(large: Path) -> None:
    engine = ENGINES.create("duckdb")
    names = ("age", "sex", "town")
    counts, domains = engine.count(engine.open(large), names)
    values = [domains[name].values.to_pylist() for name in names]
    combinations = zip(*(counts.codes(column).tolist() for column in range(3)), strict=True)
    found = {
        tuple(values[column][code] for column, code in enumerate(codes)): size
        for codes, size in zip(combinations, counts.sizes.tolist(), strict=True)
    }
    assert found == Counter(rows_of(large, *names))


def test_a_large_release_is_sorted_by_the_quasi_identifiers(large: Path, tmp_path: Path) -> None:
    release = shoal.anonymize(large, POLICY, node=NODE, output=tmp_path / "release.parquet")
    assert release.suppressed > 0
    rows = rows_of(tmp_path / "release.parquet", "age", "sex", "town")
    assert len(rows) == ROWS - release.suppressed
    assert len(set(rows)) > 20
    assert rows == sorted(rows, key=null_last)


def test_the_order_of_places_tells_nothing_inside_a_class(large: Path, tmp_path: Path) -> None:
    shoal.anonymize(large, POLICY, node=NODE, output=tmp_path / "release.parquet")
    rows = rows_of(tmp_path / "release.parquet", "age", "sex", "town", "place")
    largest = Counter(row[:3] for row in rows).most_common(1)[0][0]
    places = np.array([row[3] for row in rows if row[:3] == largest])
    assert abs(np.corrcoef(np.arange(len(places)), places)[0, 1]) < 0.1


def test_the_order_of_masked_records_tells_nothing_of_their_classes(large: Path, tmp_path: Path) -> None:
    wish = POLICY | {"suppressed": "mask", "models": [{"k-anonymity": {"k": 80}}]}
    node = {"age": 0, "sex": 0, "town": 1}
    release = shoal.anonymize(large, wish, node=node, output=tmp_path / "release.parquet")
    assert release.masked > 2000
    source = pq.read_table(large)
    age = np.array(source["age"].to_pylist())
    rows = rows_of(tmp_path / "release.parquet", "age", "sex", "town", "place")
    masked = np.array([row[3] for row in rows if row[:3] == (None, None, None)])
    assert len(masked) == release.masked
    assert abs(np.corrcoef(np.arange(len(masked)), age[masked])[0, 1]) < 0.1
    assert abs(np.corrcoef(np.arange(len(masked)), masked)[0, 1]) < 0.1


def test_keys_of_several_words_sort_by_the_first_column_first(tmp_path: Path) -> None:
    draw = np.random.default_rng(5)
    names = [f"c{i}" for i in range(10)]
    size = 2000  # 10 columns of 11 bits: two words
    wide = {name: draw.permutation(np.repeat(np.arange(1500), 2))[:size] for name in names}
    twice = {name: np.tile(column, 2) for name, column in wide.items()}
    wish = {
        "columns": {name: {"role": QUASI, "hierarchy": "flat"} for name in names},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    pq.write_table(pa.table(twice), tmp_path / "wide.parquet")
    output = tmp_path / "release.parquet"
    release = shoal.anonymize(tmp_path / "wide.parquet", wish, node=dict.fromkeys(names, 0), output=output)
    rows = rows_of(output, *names)
    assert release.verification.classes == size
    assert rows == sorted(rows)


def test_labels_that_do_not_vary_need_no_values(large: Path) -> None:
    table = pq.read_table(large)
    release = shoal.anonymize(table, POLICY, node={"age": 2, "sex": 1, "town": 2})
    assert {name: set(release.table[name].to_pylist()) for name in NODE} == {name: {"*"} for name in NODE}
    assert release.table["place"].to_pylist() != list(range(ROWS))


def test_what_does_not_fit_in_memory_spills_to_a_private_folder_that_goes(
    large: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    engine = ENGINES.create("duckdb", {"memory_limit": "100MB"})
    shoal.anonymize(large, POLICY, node=NODE, output=tmp_path / "release.parquet", engine=engine)
    (folder,) = tmp_path.glob("shoal-*")
    assert os.stat(folder).st_mode & 0o077 == 0
    del engine
    assert not folder.exists()
