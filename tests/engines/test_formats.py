"""Tables of other programs."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pandas
import polars
import pyarrow as pa
import pyreadstat
import pytest

import shoal
from shoal.engines import ENGINES
from shoal.engines.frames import WorkbookSheet, list_sheets, read_sheet
from shoal.errors import DataError, PolicyError

POLICY = {
    "columns": {
        "age": {"role": "quasi-identifier", "hierarchy": {"intervals": [10]}},
        "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
        "seen": {"role": "quasi-identifier", "hierarchy": {"dates": ["month", "year"]}},
    },
    "models": [{"k-anonymity": {"k": 2}}],
}


def frame() -> pandas.DataFrame:
    seen = pandas.to_datetime(["2024-01-05", "2024-01-06", "2024-02-05", "2024-02-06"])
    return pandas.DataFrame({"age": [31, 32, 33, None], "sex": ["f", "f", "", ""], "seen": seen})


def write(path: Path) -> None:
    if path.suffix == ".xlsx":
        frame().to_excel(path, index=False)
    else:
        writer = {".sav": "sav", ".zsav": "sav", ".dta": "dta", ".xpt": "xport", ".por": "por"}[path.suffix]
        getattr(pyreadstat, f"write_{writer}")(frame(), str(path))


@pytest.mark.parametrize("ending", [".xlsx", ".sav", ".zsav", ".dta", ".xpt", ".por"])
def test_a_file_of_another_program_is_read(tmp_path: Path, ending: str) -> None:
    data = tmp_path / f"data{ending}"
    write(data)
    columns = {name.upper() if ending == ".por" else name: entry for name, entry in POLICY["columns"].items()}
    release = shoal.anonymize(data, {**POLICY, "columns": columns}, output=tmp_path / "out.csv")
    assert release.records == 4
    assert list(release.levels.values()) == [2, 0, 1]  # the missing age joins the others at the top


def workbook_of(path: Path) -> Path:
    """Write a workbook: notes, an empty sheet, and a table below two lines of title."""
    openpyxl = pytest.importorskip("openpyxl", reason="workbooks need shoal[formats]")
    book = openpyxl.Workbook()
    book.active.title = "Notes"
    book.active.append(["about this study"])
    book.create_sheet("Empty")
    table = book.create_sheet("Data")
    for row in (["Study 7"], [], ["age", "sex"], [31, "f"], [32, None], [], [33, "m"]):
        table.append(row)
    book.save(path)
    return path


def test_a_sheet_of_a_workbook_is_read_from_its_header_on(tmp_path: Path) -> None:
    path = workbook_of(tmp_path / "study.xlsx")
    sheets = list_sheets(path)
    assert sheets == [WorkbookSheet("Notes", 1), WorkbookSheet("Data", 3)]
    assert read_sheet(path, sheets[1]).to_pydict() == {"age": [31, 32, 33], "sex": ["f", None, "m"]}
    with pytest.raises(DataError, match="no sheet of that name"):
        read_sheet(path, WorkbookSheet("Other"))
    with pytest.raises(DataError, match="is empty"):
        read_sheet(path, WorkbookSheet("Data", 99))


@pytest.mark.parametrize("ending", [".xlsx", ".sav", ".sas7bdat", ".dta"])
def test_a_file_that_is_none_is_refused(tmp_path: Path, ending: str) -> None:
    data = tmp_path / f"data{ending}"
    data.write_text("SECRET", encoding="utf-8")
    with pytest.raises(DataError, match=f"cannot be read as {ending}") as caught:
        shoal.anonymize(data, POLICY)
    assert "SECRET" not in str(caught.value)


def test_a_reader_that_is_not_installed_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "pyreadstat", None)
    data = tmp_path / "data.sav"
    data.write_text("x", encoding="utf-8")
    with pytest.raises(DataError, match=r"pip install 'shoal\[formats\]'"):
        shoal.anonymize(data, POLICY)


def test_what_an_engine_reads_is_known_for_a_table(tmp_path: Path) -> None:
    endings = {ending for name in ENGINES for ending in ENGINES.load(name).formats}
    assert len(endings) > 3
    for ending in endings:
        path = tmp_path / f"policy{ending}"
        path.write_bytes(b"")
        with pytest.raises(PolicyError, match=r"has the ending of a table, not of a policy"):
            shoal.Policy.load(path)


def test_other_formats_can_be_read_but_not_written(tmp_path: Path) -> None:
    with pytest.raises(
        DataError, match=r"Cannot write 'out.sav': .sav files can only be read. Use one of .csv"
    ):
        shoal.anonymize(frame(), POLICY, output=tmp_path / "out.sav")


BERLIN = [datetime(2024, 7, 2, 0, 0, tzinfo=ZoneInfo("Europe/Berlin"))] * 2 + [
    datetime(2024, 12, 2, 23, 30, tzinfo=ZoneInfo("Europe/Berlin"))
] * 2


@pytest.mark.parametrize("role", ["quasi-identifier", "other"])
@pytest.mark.parametrize("kind", ["arrow", "polars", "pandas", "pandas with arrow"])
def test_a_time_with_a_zone_stays_the_same_moment(role: str, kind: str) -> None:
    table = pa.table({"at": pa.array(BERLIN, pa.timestamp("us", "Europe/Berlin")), "sex": ["f"] * 4})
    frame = {
        "arrow": lambda: table,
        "polars": lambda: polars.from_arrow(table),
        "pandas": table.to_pandas,
        "pandas with arrow": lambda: table.to_pandas(types_mapper=pandas.ArrowDtype),
    }[kind]()
    column = {"role": role, "hierarchy": {"dates": ["year"]}} if role != "other" else {"role": role}
    policy = {
        "columns": {"at": column, "sex": {"role": "quasi-identifier", "hierarchy": "flat"}},
        "models": [{"k-anonymity": {"k": 2}}],
    }
    levels = {"sex": 0} | ({"at": 0} if role != "other" else {})
    released = shoal.anonymize(frame, policy, node=levels).table
    values = released["at"].to_list() if kind != "arrow" else released["at"].to_pylist()
    assert sorted(values) == sorted(BERLIN)
    assert (released["at"].type if kind == "arrow" else released["at"].dtype) == (
        table["at"].type if kind == "arrow" else frame["at"].dtype
    )
