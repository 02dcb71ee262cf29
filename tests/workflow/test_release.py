"""A release: what is in it, what is not, what lies beside it, and what a failure leaves (nothing)."""

from __future__ import annotations

import csv
import errno
import gzip
import json
import os
import stat
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import shoal
from shoal.core.targets import Target
from shoal.engines.duckdb.engine import DuckDb
from shoal.errors import DataError, Infeasible, InternalError, OutputError, PolicyError, UsageError

# Ibis calls an old name of DuckDB's.
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

QUASI = "quasi-identifier"
COLUMNS: dict[str, Any] = {
    "name": {"role": "identifier"},
    "age": {"role": QUASI, "hierarchy": {"intervals": [5, 10]}},
    "zip": {"role": QUASI, "hierarchy": {"prefix": [2, 1]}},
    "illness": {"role": "sensitive"},
    "place": {"role": "other"},
}

RELEASED = {"release.csv.codebook.csv", "release.csv", "release.csv.private"}


def policy(columns: Mapping[str, Any] = COLUMNS, k: int = 2, **entries: Any) -> dict[str, Any]:
    return {"columns": dict(columns), "models": [{"k-anonymity": {"k": k}}]} | entries


def people(number: int = 60) -> dict[str, list[Any]]:
    """Two ages and three zips with leading zeros, in an order that tells who is where."""
    return {
        "name": [f"person {i}" for i in range(number)],
        "age": [20 + i % 2 for i in range(number)],
        "zip": [f"00{i % 3}" for i in range(number)],
        "illness": [f"illness {i % 4}" for i in range(number)],
        "place": list(range(number)),
    }


def write_csv(path: Path, table: Mapping[str, Sequence[Any]], delimiter: str = ",") -> Path:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "wt", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table)
        writer.writerows(zip(*table.values(), strict=True))
    return path


def read_csv(path: Path, delimiter: str = ",") -> list[dict[str, str]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file, delimiter=delimiter))


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "people.csv", people())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


# What is in the release


def test_identifiers_are_gone(data: Path, home: Path) -> None:
    shoal.anonymize(data, policy(), output=home / "release.csv")
    text = (home / "release.csv").read_text()
    assert text.splitlines()[0] == "age,zip,illness,place"
    assert "person" not in text


def test_rows_are_sorted_by_the_quasi_identifiers(data: Path, home: Path) -> None:
    shoal.anonymize(data, policy(), output=home / "release.csv")
    keys = [(row["age"], row["zip"]) for row in read_csv(home / "release.csv")]
    assert len(keys) == 60
    assert len(set(keys)) > 1
    assert keys == sorted(keys)


def test_the_order_inside_a_class_differs_between_runs(data: Path, home: Path) -> None:
    orders = []
    for name in ("one.csv", "two.csv"):
        shoal.anonymize(data, policy(), node={"age": 0, "zip": 3}, output=home / name)
        orders.append([int(row["place"]) for row in read_csv(home / name) if row["age"] == "20"])
    one, two = orders
    assert len(one) == 30
    assert sorted(one) == sorted(two) == list(range(0, 60, 2))
    assert one != sorted(one)
    assert one != two


def test_the_order_inside_a_class_is_random_in_memory_too() -> None:
    table = pa.table(people())
    orders = [
        shoal.anonymize(table, policy(), node={"age": 3, "zip": 3}).table["place"].to_pylist()
        for _ in range(2)
    ]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(60))
    assert orders[0] != orders[1] != list(range(60)) != orders[0]


def test_labels_replace_values(data: Path, home: Path) -> None:
    shoal.anonymize(data, policy(), node={"age": 1, "zip": 2}, output=home / "release.csv")
    rows = read_csv(home / "release.csv")
    assert {(row["age"], row["zip"]) for row in rows} == {("20-24", "0*")}


def test_columns_beside_the_quasi_identifiers_are_as_they_were(data: Path, home: Path) -> None:
    shoal.anonymize(data, policy(), node={"age": 3, "zip": 3}, output=home / "release.csv")
    found = {int(row["place"]): row["illness"] for row in read_csv(home / "release.csv")}
    assert found == {i: f"illness {i % 4}" for i in range(60)}


def test_leading_zeros_survive_as_is(data: Path, home: Path) -> None:
    release = shoal.anonymize(data, policy(), node={"zip": 0}, output=home / "release.csv")
    assert release.levels["zip"] == 0
    assert Counter(row["zip"] for row in read_csv(home / "release.csv")) == {"000": 20, "001": 20, "002": 20}


def test_text_that_looks_like_numbers_or_dates_survives_as_is(tmp_path: Path, home: Path) -> None:
    values = [
        "1e5",
        "0x10",
        "1.50",
        "2024-01-01",
        "true",
        "NULL",
        "NA",
        "+7",
        " padded ",
        "1,000",
        'a "b"',
        "#9",
    ]
    table = {"a": values * 2, "b": values * 2}
    named = {"a": {"role": QUASI, "hierarchy": "flat"}, "b": {"role": "other"}}
    path = write_csv(tmp_path / "odd.csv", table)
    shoal.anonymize(path, policy(named), output=home / "release.csv")
    rows = read_csv(home / "release.csv")
    assert Counter(row["a"] for row in rows) == dict.fromkeys(values, 2)
    assert all(row["a"] == row["b"] for row in rows)


def test_what_need_not_be_generalized_stays_as_is(tmp_path: Path) -> None:
    table = pa.table({"a": ["same"] * 4})
    release = shoal.anonymize(table, policy({"a": {"role": QUASI, "hierarchy": "flat"}}))
    assert release.levels == {"a": 0}  # both levels lose nothing: the lower one wins
    assert release.table["a"].to_pylist() == ["same"] * 4


def test_fixed_levels_are_kept(data: Path) -> None:
    assert shoal.anonymize(data, policy(), node={"age": 2}).levels["age"] == 2


# What lies beside it


def test_the_recipe_is_private(data: Path, home: Path) -> None:
    release = shoal.anonymize(data, policy(), output=home / "release.csv")
    private = home / "release.csv.private"
    assert release.recipe == private / "recipe.json"
    assert {path.name for path in home.iterdir()} == {
        "release.csv.codebook.csv",
        "release.csv",
        "release.csv.private",
    }
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    files = list(private.iterdir())
    assert {file.name for file in files} == {"recipe.json", "audit.json"}
    for file in files:
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_the_recipe_tells_levels_policy_and_fingerprints(data: Path, home: Path) -> None:
    release = shoal.anonymize(data, policy(), output=home / "release.csv")
    recipe = json.loads((home / "release.csv.private" / "recipe.json").read_text())
    assert recipe["levels"] == release.levels
    assert shoal.Recipe.load(recipe).policy.roles == shoal.Policy.load(policy()).roles
    assert recipe["records"] == 60
    assert recipe["fingerprints"].keys() == {"key", "input"}
    assert recipe["shoal"]


def test_the_recipe_holds_no_identifier(data: Path, home: Path) -> None:
    shoal.anonymize(data, policy(), output=home / "release.csv")
    for file in (home / "release.csv.private").iterdir():
        assert "person" not in file.read_text()


def test_the_audit_tells_what_was_done_and_proven(data: Path, home: Path) -> None:
    release = shoal.anonymize(data, policy(), output=home / "release.csv")
    audit = json.loads((home / "release.csv.private" / "audit.json").read_text())
    assert audit["result"]["levels"] == release.levels
    assert audit["result"]["proven"] == "least loss"
    assert audit["verification"]["verified"] is True
    assert audit["when"]


def test_fingerprints_are_keyed(data: Path, home: Path) -> None:
    found = []
    for name in ("one.csv", "two.csv"):
        release = shoal.anonymize(data, policy(), output=home / name)
        assert release.recipe is not None
        found.append(json.loads(release.recipe.read_text())["fingerprints"])
    assert found[0]["key"] != found[1]["key"]
    assert found[0]["input"] != found[1]["input"]


def test_the_input_is_untouched(data: Path, home: Path) -> None:
    before = data.read_bytes()
    shoal.anonymize(data, policy(), output=home / "release.csv")
    assert data.read_bytes() == before


def test_a_frame_that_came_in_is_untouched() -> None:
    frame = pd.DataFrame(people())
    before = frame.copy(deep=True)
    shoal.anonymize(frame, policy(), node={"age": 1})
    pd.testing.assert_frame_equal(frame, before)


# What a failure leaves


def fail_verification(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = import_module("shoal.workflow.verify").judge

    def fails(*arguments: Any, **options: Any) -> shoal.Verification:
        return replace(judge(*arguments, **options), verified=False, reasons=("planted",))

    # `shoal.anonymize` is the function; its module is asked for by name.
    monkeypatch.setattr(import_module("shoal.workflow.release.anonymize"), "judge", fails)


def fail_write(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    real = DuckDb.write

    def fails(self: DuckDb, table: Any, path: Path) -> None:
        real(self, table, path)
        raise error

    monkeypatch.setattr(DuckDb, "write", fails)


def test_a_release_that_fails_its_fresh_count_is_never_put_in_place(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_verification(monkeypatch)
    with pytest.raises(InternalError, match="failed its check and was not written: planted"):
        shoal.anonymize(data, policy(), output=home / "release.csv")
    assert not any(home.iterdir())


def test_a_table_that_fails_its_fresh_count_is_never_returned(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_verification(monkeypatch)
    with pytest.raises(InternalError, match="planted"):
        shoal.anonymize(data, policy())


def test_a_release_with_too_few_records_is_never_put_in_place(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DuckDb.write
    monkeypatch.setattr(DuckDb, "write", lambda self, table, path: real(self, table.limit(50), path))
    with pytest.raises(InternalError):
        shoal.anonymize(data, policy(), node={"age": 3, "zip": 3}, output=home / "release.csv")
    assert not any(home.iterdir())


ACCIDENTS = [RuntimeError("planted"), OutputError("planted"), KeyboardInterrupt("planted")]


@pytest.mark.parametrize("error", ACCIDENTS, ids=lambda error: type(error).__name__)
def test_an_accident_while_writing_leaves_nothing(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    fail_write(monkeypatch, error)
    with pytest.raises(type(error), match="planted"):
        shoal.anonymize(data, policy(), output=home / "release.csv")
    assert not any(home.iterdir())


def fail_sync(monkeypatch: pytest.MonkeyPatch, number: int, error: BaseException) -> None:
    """Fail when the nth file is brought to the disk: the recipe, the audit, the release."""
    calls = iter(range(1, 100))
    real = os.fsync

    def fails(descriptor: int) -> None:
        if next(calls) == number:
            raise error
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fails)


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_interrupt_while_putting_in_place_leaves_nothing(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    fail_sync(monkeypatch, number, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        shoal.anonymize(data, policy(), output=home / "release.csv")
    assert not any(home.iterdir())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_a_full_disk_while_putting_in_place_is_told_and_leaves_nothing(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    fail_sync(monkeypatch, number, OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))
    with pytest.raises(OutputError, match=r"[Nn]o space"):
        shoal.anonymize(data, policy(), output=home / "release.csv")
    assert not any(home.iterdir())


@pytest.mark.parametrize("number", [1, 2, 3])
def test_an_interrupt_while_replacing_leaves_the_old_release_whole(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    shoal.anonymize(data, policy(), output=home / "release.csv")
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    fail_sync(monkeypatch, number, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        shoal.anonymize(data, policy(), output=home / "release.csv", force=True)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_an_output_that_appears_meanwhile_is_not_replaced(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DuckDb.write

    def write(self: DuckDb, table: Any, path: Path) -> None:
        real(self, table, path)
        (home / "release.csv").write_text("mine\n")

    monkeypatch.setattr(DuckDb, "write", write)
    with pytest.raises(OutputError, match="appeared while this ran"):
        shoal.anonymize(data, policy(), output=home / "release.csv")
    assert [path.name for path in home.iterdir()] == ["release.csv"]
    assert (home / "release.csv").read_text() == "mine\n"


def test_a_private_folder_that_appears_meanwhile_is_not_replaced(
    data: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = DuckDb.write
    private = home / "release.csv.private"

    def write(self: DuckDb, table: Any, path: Path) -> None:
        real(self, table, path)
        private.mkdir()
        (private / "mine").write_text("mine\n")

    monkeypatch.setattr(DuckDb, "write", write)
    with pytest.raises(OutputError, match="appeared while this ran"):
        shoal.anonymize(data, policy(), output=home / "release.csv")
    assert [path.name for path in home.iterdir()] == ["release.csv.private"]
    assert [path.name for path in private.iterdir()] == ["mine"]


def test_an_infeasible_policy_leaves_nothing(data: Path, home: Path) -> None:
    with pytest.raises(Infeasible):
        shoal.anonymize(data, policy(k=61), output=home / "release.csv")
    assert not any(home.iterdir())


# Suppressed records


def with_strangers(number: int) -> dict[str, list[Any]]:
    """Sixty people, and some whom nobody resembles."""
    table = people()
    for i in range(number):
        for name, value in zip(table, (f"person {60 + i}", 70 + i, "999", "illness x", 60 + i), strict=True):
            table[name].append(value)
    return table


def masked(tmp_path: Path, home: Path, strangers: int, k: int) -> tuple[shoal.Release, list[dict[str, str]]]:
    path = write_csv(tmp_path / "strangers.csv", with_strangers(strangers))
    wish = policy(k=k, suppression_limit=strangers, suppressed="mask")
    release = shoal.anonymize(path, wish, node={"age": 0, "zip": 0}, output=home / "release.csv")
    return release, read_csv(home / "release.csv")


def test_suppressed_records_are_dropped(tmp_path: Path, home: Path) -> None:
    path = write_csv(tmp_path / "strangers.csv", with_strangers(3))
    wish = policy(k=5, suppression_limit=3)
    release = shoal.anonymize(path, wish, node={"age": 0, "zip": 0}, output=home / "release.csv")
    rows = read_csv(home / "release.csv")
    assert (release.records, release.suppressed, release.masked) == (63, 3, 0)
    assert sorted(int(row["place"]) for row in rows) == list(range(60))


def test_masked_records_are_kept_and_blanked_where_they_are_enough(tmp_path: Path, home: Path) -> None:
    release, rows = masked(tmp_path, home, strangers=6, k=5)
    assert (release.records, release.suppressed, release.masked) == (66, 6, 6)
    assert len(rows) == 66
    strangers = [row for row in rows if int(row["place"]) >= 60]
    assert len(strangers) == 6
    for row in strangers:
        assert (row["age"], row["zip"], row["illness"]) == ("", "", "")
    for row in rows:
        if int(row["place"]) < 60:
            assert row["age"]
            assert row["zip"]
            assert row["illness"]
    assert "999" not in (home / "release.csv").read_text()


def test_masked_records_count_neither_as_a_class_nor_as_a_violation(tmp_path: Path, home: Path) -> None:
    release, _ = masked(tmp_path, home, strangers=6, k=5)
    found = release.verification
    assert (found.verified, found.classes, found.smallest_class, found.masked) == (True, 6, 10, 6)


def test_too_few_masked_records_are_dropped(tmp_path: Path, home: Path) -> None:
    release, rows = masked(tmp_path, home, strangers=4, k=5)
    assert (release.suppressed, release.masked) == (4, 0)
    assert sorted(int(row["place"]) for row in rows) == list(range(60))


def test_masking_nobody_changes_nothing(tmp_path: Path, home: Path) -> None:
    release, rows = masked(tmp_path, home, strangers=0, k=5)
    assert (release.suppressed, release.masked) == (0, 0)
    assert len(rows) == 60


def test_masking_keeps_the_types_of_a_frame() -> None:
    frame = pd.DataFrame(with_strangers(6))
    wish = policy(k=5, suppression_limit=6, suppressed="mask")
    found = shoal.anonymize(frame, wish, node={"age": 0, "zip": 0}).table
    assert found["age"].isna().sum() == found["zip"].isna().sum() == found["illness"].isna().sum() == 6
    assert set(found["age"].dropna()) == {20, 21}


# Files


def write_as(path: Path, table: Mapping[str, Sequence[Any]]) -> Path:
    arrow = pa.table(dict(table))
    if path.name.endswith(".parquet"):
        pyarrow.parquet.write_table(arrow, path)
    elif path.suffix in (".arrow", ".feather"):
        pyarrow.feather.write_feather(arrow, str(path))
    else:
        write_csv(path, table, "\t" if path.suffix == ".tsv" else ",")
    return path


def read_as(path: Path) -> list[dict[str, Any]]:
    if path.name.endswith(".parquet"):
        return list(pyarrow.parquet.read_table(path).to_pylist())
    if path.suffix in (".arrow", ".feather"):
        return list(pyarrow.feather.read_table(str(path)).to_pylist())
    return list(read_csv(path, "\t" if path.suffix == ".tsv" else ","))


FORMATS = (".csv", ".tsv", ".csv.gz", ".parquet", ".arrow", ".feather")


@pytest.mark.parametrize("ending", FORMATS)
def test_every_format_is_read_and_written(tmp_path: Path, home: Path, ending: str) -> None:
    source = write_as(tmp_path / f"people{ending}", people())
    output = home / f"release{ending}"
    release = shoal.anonymize(source, policy(), node={"age": 1, "zip": 0}, output=output)
    rows = read_as(output)
    assert Counter((row["age"], row["zip"]) for row in rows) == {("20-24", f"00{i}"): 20 for i in range(3)}
    assert sorted(int(row["place"]) for row in rows) == list(range(60))
    assert list(rows[0]) == ["age", "zip", "illness", "place"]
    assert release.verification == shoal.verify(output, policy())


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
def test_the_delimiter_of_a_csv_is_found(tmp_path: Path, delimiter: str) -> None:
    table = {name: [f"{value},5;7" for value in values] for name, values in people().items()}
    source = write_csv(tmp_path / "people.csv", table, delimiter)
    wish = policy(COLUMNS | {"age": {"role": QUASI, "hierarchy": "flat"}})
    release = shoal.anonymize(source, wish, node={"age": 0, "zip": 0})
    assert release.records == 60
    assert set(release.table["age"].to_pylist()) == {"20,5;7", "21,5;7"}


@pytest.mark.parametrize("mark", [";", "|", " ", ":"])
def test_a_csv_of_one_column_is_read_whole(tmp_path: Path, mark: str) -> None:
    source = write_csv(tmp_path / "one.csv", {"a": [f"x{mark}y", f"x{mark}y", f"z{mark}w", f"z{mark}w"]})
    release = shoal.anonymize(source, policy({"a": {"role": QUASI, "hierarchy": "flat"}}))
    assert release.table["a"].to_pylist() == [f"x{mark}y", f"x{mark}y", f"z{mark}w", f"z{mark}w"]


@pytest.mark.parametrize("ending", [".parquet", ".arrow", ".csv"])
def test_a_release_may_be_of_another_format(tmp_path: Path, home: Path, ending: str) -> None:
    source = write_as(tmp_path / ("people.csv" if ending != ".csv" else "people.parquet"), people())
    shoal.anonymize(source, policy(), node={"age": 0, "zip": 0}, output=home / f"release{ending}")
    rows = read_as(home / f"release{ending}")
    assert {str(row["age"]) for row in rows} == {"20", "21"}
    assert {row["zip"] for row in rows} == {"000", "001", "002"}


@pytest.mark.parametrize("ending", [".parquet", ".arrow"])
def test_types_are_kept_as_is(tmp_path: Path, home: Path, ending: str) -> None:
    source = write_as(tmp_path / f"people{ending}", people())
    shoal.anonymize(source, policy(), node={"age": 0, "zip": 0}, output=home / f"release{ending}")
    row = read_as(home / f"release{ending}")[0]
    assert isinstance(row["age"], int)
    assert isinstance(row["place"], int)


def test_a_release_of_a_path_without_output_is_a_table(data: Path) -> None:
    release = shoal.anonymize(str(data), policy())
    assert isinstance(release.table, pa.Table)
    assert release.output is None
    assert release.recipe is None


# Frames


FRAMES: dict[str, tuple[Callable[[Any], Any], type, Callable[[Any], dict[str, list[Any]]]]] = {
    "pandas": (pd.DataFrame, pd.DataFrame, lambda frame: frame.to_dict("list")),
    "polars": (pl.DataFrame, pl.DataFrame, lambda frame: frame.to_dict(as_series=False)),
    "pyarrow": (pa.table, pa.Table, lambda frame: frame.to_pydict()),
}


@pytest.mark.parametrize("kind", FRAMES)
def test_a_frame_comes_back_as_the_same_kind(kind: str) -> None:
    make, expected, plain = FRAMES[kind]
    found = shoal.anonymize(make(people()), policy(), node={"age": 1, "zip": 0}).table
    assert type(found) is expected
    rows = plain(found)
    assert list(rows) == ["age", "zip", "illness", "place"]
    assert set(rows["age"]) == {"20-24"}
    assert Counter(rows["zip"]) == {"000": 20, "001": 20, "002": 20}
    assert sorted(rows["place"]) == list(range(60))


@pytest.mark.parametrize("kind", FRAMES)
def test_types_of_a_frame_are_kept_as_is(kind: str) -> None:
    make, _, plain = FRAMES[kind]
    frame = make(people())
    found = shoal.anonymize(frame, policy(), node={"age": 0, "zip": 0}).table
    for name in ("age", "zip", "illness", "place"):
        before, after = (
            table.schema.field(name).type if kind == "pyarrow" else table[name].dtype
            for table in (frame, found)
        )
        assert before == after, name
    rows = plain(found)
    assert set(rows["age"]) == {20, 21}


def test_other_types_of_a_pandas_frame_are_kept_as_is() -> None:
    frame = pd.DataFrame(
        {
            "small": pd.array([1, 2] * 4, dtype="int8"),
            "real": [0.5, 1.5] * 4,
            "flag": [True, False] * 4,
            "day": pd.to_datetime(["2024-01-01", "2024-01-02"] * 4),
            "kind": pd.Categorical(["a", "b"] * 4),
        }
    )
    named = {name: {"role": QUASI, "hierarchy": "flat"} for name in frame.columns}
    found = shoal.anonymize(frame, policy(named, k=4)).table
    assert len(found) == 8
    for name in frame.columns:
        assert sorted(found[name]) == sorted(frame[name]), name
    for name in ("small", "real", "flag"):
        assert found[name].dtype == frame[name].dtype, name
    assert found["day"].dtype.kind == "M"


def test_the_index_of_a_pandas_frame_is_not_data() -> None:
    frame = pd.DataFrame(people())
    frame.index = pd.Index([7, 7, 3] * 20, name="secret")
    frame = frame.sample(frac=1, random_state=5)
    found = shoal.anonymize(frame, policy(), node={"age": 1, "zip": 0}).table
    assert list(found.columns) == ["age", "zip", "illness", "place"]
    assert list(found.index) == list(range(60))
    assert sorted(found["place"]) == list(range(60))
    for _, row in found.iterrows():
        assert row["zip"] == f"00{row['place'] % 3}"
        assert row["illness"] == f"illness {row['place'] % 4}"


def test_two_columns_of_one_name_in_a_frame_are_refused() -> None:
    frame = pd.DataFrame([[1, 2], [1, 2]], columns=["a", "a"])
    with pytest.raises(DataError, match="Columns 1 and 2 have the same name"):
        shoal.anonymize(frame, policy({"a": {"role": QUASI, "hierarchy": "flat"}}))


def test_what_is_no_table_is_refused() -> None:
    with pytest.raises(DataError, match="Cannot read a table from list"):
        shoal.anonymize([1, 2, 3], policy())


def test_an_empty_frame_is_refused() -> None:
    with pytest.raises(DataError, match="no rows"):
        shoal.anonymize(pl.DataFrame(people(0)), policy())


# Nulls


def holes() -> dict[str, list[Any]]:
    """Ages and zips of which some are missing, one at a time and both at once."""
    table = people()
    for i in range(0, 60, 4):
        table["age"][i] = None
    for i in range(0, 60, 10):
        table["zip"][i] = None
    return table


def count(rows: Sequence[Mapping[str, Any]], names: Sequence[str] = ("age", "zip")) -> Counter[Any]:
    return Counter(tuple(row[name] for name in names) for row in rows)


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
@pytest.mark.parametrize("node", [{}, {"age": 0, "zip": 1}, {"age": 1}, {"age": 3, "zip": 3}], ids=str)
def test_no_record_with_a_null_vanishes(
    tmp_path: Path, home: Path, ending: str, node: dict[str, int]
) -> None:
    source = write_as(tmp_path / f"holes{ending}", holes())
    output = home / f"release{ending}"
    release = shoal.anonymize(source, policy(k=3, suppression_limit="20%"), node=node, output=output)
    rows = read_as(output)
    places = [int(row["place"]) for row in rows]
    assert len(rows) == 60 - release.suppressed
    assert len(set(places)) == len(places)
    sizes = count(rows)
    assert min(sizes.values()) == release.verification.smallest_class >= 3
    assert len(sizes) == release.verification.classes


def test_nulls_are_a_value_of_their_own(tmp_path: Path, home: Path) -> None:
    table = {"a": ["x", "x", "x", None, None, None, "y", "y"], "place": list(range(8))}
    named = {"a": {"role": QUASI, "hierarchy": "flat"}, "place": {"role": "other"}}
    source = write_as(tmp_path / "holes.parquet", table)
    wish = policy(named, k=3, suppression_limit=2)
    release = shoal.anonymize(source, wish, node={"a": 0}, output=home / "release.parquet")
    rows = read_as(home / "release.parquet")
    assert count(rows, ["a"]) == {("x",): 3, (None,): 3}
    assert release.suppressed == 2


def test_not_a_number_is_a_null_like_any_other() -> None:
    frame = pd.DataFrame({"a": [1.5, 1.5, float("nan"), None, 2.5, 2.5], "place": range(6)})
    named = {"a": {"role": QUASI, "hierarchy": "flat"}, "place": {"role": "other"}}
    found = shoal.anonymize(frame, policy(named), node={"a": 0}).table
    assert sorted(found["place"]) == list(range(6))
    assert found["a"].isna().sum() == 2


def test_not_a_number_beside_a_null_does_not_overstate_k() -> None:
    table = pa.table({"a": pa.array([float("nan"), float("nan"), None, None, 1.0, 1.0, 1.0, 1.0])})
    release = shoal.anonymize(table, policy({"a": {"role": QUASI, "hierarchy": "flat"}}, k=4))
    assert len(release.table) == 8
    shown = Counter(map(repr, release.table["a"].to_pylist()))
    assert min(shown.values()) >= 4


def test_a_text_like_the_label_of_nulls_does_not_overstate_k(tmp_path: Path, home: Path) -> None:
    table = {"a": ["missing", "missing", None, None], "place": list(range(4))}
    named = {"a": {"role": QUASI, "hierarchy": "flat"}, "place": {"role": "other"}}
    source = write_as(tmp_path / "holes.parquet", table)
    release = shoal.anonymize(source, policy(named, k=4), output=home / "release.csv")
    sizes = count(read_csv(home / "release.csv"), ["a"])
    assert sum(sizes.values()) == 4
    assert min(sizes.values()) >= 4
    assert release.verification.smallest_class == 4


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_empty_text_beside_a_null_does_not_overstate_k(tmp_path: Path, home: Path, ending: str) -> None:
    table = {"a": ["", "", "", None, None, None], "place": list(range(6))}
    named = {"a": {"role": QUASI, "hierarchy": "flat"}, "place": {"role": "other"}}
    source = write_as(tmp_path / "holes.parquet", table)
    output = home / f"release{ending}"
    release = shoal.anonymize(source, policy(named, k=3), node={"a": 0}, output=output)
    sizes = count(read_as(output), ["a"])
    assert sum(sizes.values()) == 6
    assert min(sizes.values()) >= 3
    assert release.verification == shoal.verify(output, policy(named, k=3))


# Verification


def test_verify_passes_a_table_with_large_classes() -> None:
    table = people()
    del table["name"]
    found = shoal.verify(pa.table(table), policy(k=10))
    assert (found.verified, found.records, found.classes, found.smallest_class) == (True, 60, 6, 10)
    assert found.reasons == ()


def test_verify_fails_a_class_that_is_too_small() -> None:
    table = with_strangers(1)
    del table["name"]
    found = shoal.verify(pl.DataFrame(table), policy(k=5))
    assert found.verified is False
    assert found.smallest_class == 1
    (reason,) = found.reasons
    assert "k-anonymity: 1 record in 1 class" in reason
    (check,) = found.models
    assert (check.model, check.passed, check.violating_classes, check.violating_records) == (
        "k-anonymity",
        False,
        1,
        1,
    )


def test_verify_fails_a_class_without_diverse_sensitive_values() -> None:
    table = people()
    del table["name"]
    table["illness"] = ["flu"] * 60
    found = shoal.verify(pa.table(table), policy(models=[{"distinct-l-diversity": {"l": 2}}]))
    assert found.verified is False
    assert "distinct-l-diversity" in found.reasons[0]


def test_verify_fails_a_table_that_still_has_an_identifier() -> None:
    found = shoal.verify(pd.DataFrame(people()), policy())
    assert found.verified is False
    assert found.reasons == ("identifier 'name' is in the release",)


def test_verify_fails_too_few_masked_records() -> None:
    table = people()
    del table["name"]
    for i in range(3):
        table["age"][i] = table["zip"][i] = table["illness"][i] = None
    found = shoal.verify(pa.table(table), policy(k=5, suppressed="mask"))
    assert found.verified is False
    assert found.masked == 3
    assert "3 masked records are fewer than 5" in found.reasons


def test_verify_takes_nulls_for_a_class_unless_records_are_masked() -> None:
    table = people()
    del table["name"]
    for i in range(3):
        table["age"][i] = table["zip"][i] = None
    found = shoal.verify(pa.table(table), policy(k=5))
    assert found.verified is False
    assert found.smallest_class == 3


def test_verify_fails_masked_records_that_still_tell_the_sensitive_value() -> None:
    table = people()
    del table["name"]
    for i in range(0, 60, 6):
        table["age"][i] = table["zip"][i] = None
        table["illness"][i] = "flu"
    wish = policy(models=[{"k-anonymity": {"k": 5}}, {"distinct-l-diversity": {"l": 2}}], suppressed="mask")
    found = shoal.verify(pa.table(table), wish)
    assert found.verified is False


def test_verify_refuses_unknown_columns() -> None:
    table = people() | {"extra": [1] * 60}
    del table["name"]
    with pytest.raises(PolicyError, match="The release has 1 column that the policy does not name") as caught:
        shoal.verify(pa.table(table), policy())
    assert caught.value.values == ("extra",)


def test_verify_refuses_a_release_that_lacks_a_quasi_identifier() -> None:
    table = people()
    del table["name"], table["zip"]
    with pytest.raises(PolicyError, match="lacks columns of the policy: 'zip'"):
        shoal.verify(pa.table(table), policy())


def test_verify_refuses_an_empty_release() -> None:
    with pytest.raises(DataError, match="no rows"):
        shoal.verify(pa.table(people(0)), policy())


# Names of columns


ODD = ("select", "a b", "ü", 'quote"d', "group")


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_odd_names_of_columns_work_end_to_end(tmp_path: Path, home: Path, ending: str) -> None:
    table = {name: [f"{'xyz'[i % 3]}{place}" for i in range(12)] for place, name in enumerate(ODD)}
    table["select"][0] = "stranger"
    table["where"] = [f"person {i}" for i in range(12)]
    roles = {name: {"role": QUASI, "hierarchy": {"prefix": [1]}} for name in ODD}
    named = roles | {"group": {"role": "sensitive"}, "where": {"role": "identifier"}}
    wish = policy(
        named,
        models=[{"k-anonymity": {"k": 3}}, {"distinct-l-diversity": {"l": 1}}],
        suppression_limit=1,
    )
    source = write_as(tmp_path / f"odd{ending}", table)
    output = home / f"release{ending}"
    node = dict.fromkeys(ODD[:3], 0) | {'quote"d': 1}
    release = shoal.anonymize(source, wish, node=node, output=output)
    assert release.suppressed == 1
    rows = read_as(output)
    assert list(rows[0]) == list(ODD)
    assert Counter(row['quote"d'] for row in rows) == {"x*": 3, "y*": 4, "z*": 4}
    assert shoal.verify(output, wish).verified


def release_with(name: str) -> list[tuple[Any, ...]]:
    table = pa.table({"a": ["x", "x", "y", "y"], name: ["1", "1", "2", "2"], "place": [0, 1, 2, 3]})
    quasi = {"role": QUASI, "hierarchy": {"prefix": [1]}}
    wish = policy({"a": quasi, name: quasi, "place": {"role": "other"}})
    found = shoal.anonymize(table, wish, node={"a": 0, name: 1}).table
    return sorted(zip(*(found[column].to_pylist() for column in found.column_names), strict=True))


EXPECTED = [("x", "1*", 0), ("x", "1*", 1), ("y", "2*", 2), ("y", "2*", 3)]


@pytest.mark.parametrize("name", ["n", "count", "1", "%", "{}", "[b]", "a.b", "''", " "])
def test_any_name_of_a_column_is_taken(name: str) -> None:
    assert release_with(name) == EXPECTED


@pytest.mark.parametrize("name", ["__shoal_n", "__shoal_c0", "__shoal_v0", "__shoal_l1", "__shoal_w0"])
def test_a_name_of_ours_is_taken_or_refused_by_name(name: str) -> None:
    try:
        assert release_with(name) == EXPECTED
    except UsageError as error:
        assert name in str(error)  # noqa: PT017 - either is right


def test_no_two_tables_share_a_private_folder() -> None:
    names = ["x y", "x_y", "x%20y", '"x y"', "`x y`", "x.y", '"x.y"', "x/y", "größe", "x''y", "X y"]
    assert len({Target(name, "table").path for name in names}) == len(names)
    assert Target('clinic."people"', "table").path == Target("clinic.people", "table").path
    assert all(str(Target(name, "table").path.parent) == "." for name in names)


BIRTHS = {"role": QUASI, "min_level": 1, "hierarchy": {"dates": ["year", "decade"], "format": "%d.%m.%Y"}}


def births(*years: int) -> list[str]:
    return [f"0{day}.0{month}.{year}" for day, year in enumerate(years, 1) for month in (1, 2)]


def labels_in_codebook(home: Path, column: str) -> tuple[str, ...]:
    with open(home / "release.csv.codebook.csv", encoding="utf-8", newline="") as file:
        return tuple(row["label"] for row in csv.DictReader(file) if row["column"] == column)


def test_labels_are_in_the_order_of_their_column(home: Path) -> None:
    costs = [cost for cost in (900, 15, 300, 7) for _ in range(2)]
    cost = {"role": QUASI, "min_level": 1, "hierarchy": {"cuts": [[10, 100, 500]]}}
    table = pa.table({"born": [*births(1993, 1938, 2005, 1947), None, None], "cost": [*costs, None, None]})
    release = shoal.anonymize(table, policy({"born": BIRTHS, "cost": cost}), output=home / "release.csv")
    wanted = {
        "born": ("1938", "1947", "1993", "2005", "missing"),
        "cost": ("<10", "10-99", "100-499", "500+", "missing"),
    }
    assert release.labels == wanted
    assert release.examples()["born"] == "1938, 1947, 1993, ..."
    assert {name: labels_in_codebook(home, name) for name in wanted} == wanted


def test_refined_labels_are_in_order_level_by_level(home: Path) -> None:
    table = pa.table(
        {"born": [*births(1993, 1938, 1947), "04.01.1975", "04.01.1971", "05.01.1921", "05.01.1925"]}
    )
    refined = policy({"born": BIRTHS}, algorithm={"auto": {"refine": True}})
    release = shoal.anonymize(table, refined, output=home / "release.csv")
    wanted = ("1938", "1947", "1993", "1920s", "1970s")
    assert (release.labels["born"], labels_in_codebook(home, "born")) == (wanted, wanted)
