"""Where tables come from: a sheet of a workbook, chosen once and saved with the project."""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("openpyxl", reason="workbooks need shoal[formats]")
from shoal.engines.frames import WorkbookSheet
from shoal.errors import ShoalError
from shoal.web.workspace.files import needs_choice
from shoal.web.workspace.workspaces import Workspaces

DATA = WorkbookSheet("Data", 3)


@pytest.fixture
def study(tmp_path: Path) -> Path:
    """A workbook whose table is on its second sheet, below a title."""
    book = importlib.import_module("openpyxl").Workbook()
    book.active.append(["about this study"])
    table = book.create_sheet("Data")
    for row in (["Study 7"], [], ["age", "town"], *([20 + n % 40, "abc"[n % 3]] for n in range(90))):
        table.append(row)
    path = tmp_path / "tables" / "study.xlsx"
    path.parent.mkdir()
    book.save(path)
    return path


@pytest.fixture
def studio(study: Path, tmp_path: Path) -> Iterator[Workspaces]:
    created = Workspaces(
        folder=study.parent, projects=tmp_path / "projects", upload_limit=1 << 20, unpacked_limit=1 << 20
    )
    yield created
    created.close()


def uploaded(studio: Workspaces, name: str, content: bytes) -> Path:
    with studio.receive_upload(name, "study.xlsx") as upload:
        upload.write(content)
    return upload.path


def test_a_sheet_of_an_upload_is_opened_and_only_that_is_kept(studio: Workspaces, study: Path) -> None:
    name = studio.open("anna")
    path = uploaded(studio, name, study.read_bytes())
    sheets = studio.sheets(name, path, "study.xlsx")
    assert needs_choice(sheets)
    assert sheets[1] == DATA
    studio.open_table(name, path, "study.xlsx", sheet=DATA)
    workspace = studio.get(name)
    assert (workspace.table.name, workspace.table.records) == ("study.xlsx", 90)
    assert workspace.table.loaded.names == ("age", "town")
    files = list(workspace.folder.glob("upload-*"))
    assert files == [workspace.table.path]
    assert files[0].stat().st_mode & 0o077 == 0
    release = workspace.release.run()
    assert release.verification.verified
    studio.open_sample(name)
    studio.open_table(name, uploaded(studio, name, study.read_bytes()), "study.xlsx", sheet=DATA)
    assert len(list(workspace.folder.glob("upload-*"))) == 1


def test_the_sheet_is_saved_with_the_project(studio: Workspaces, study: Path) -> None:
    name = studio.open("anna")
    studio.open_table(name, studio.data_folder.resolve("study.xlsx"), "study.xlsx", sheet=DATA)
    workspace = studio.get(name)
    workspace.table.choose_role("town", "sensitive")
    project = studio.saving.save(name).id
    other = studio.open("anna")
    studio.saving.open(other, project)
    again = studio.get(other).table
    assert again.roles["town"] == "sensitive"
    assert again.source == workspace.table.source
    assert again.source.sheet == DATA
    assert study.exists()

    third = studio.open("anna")  # a project of an upload waits for the same sheet
    studio.open_table(third, uploaded(studio, third, study.read_bytes()), "study.xlsx", sheet=DATA)
    project = studio.saving.save(third).id
    fourth = studio.open("anna")
    studio.saving.open(fourth, project)
    assert studio.saving.awaited_sheet(fourth) == DATA
    studio.open_table(fourth, uploaded(studio, fourth, study.read_bytes()), "study.xlsx")
    assert studio.get(fourth).table.records == 90
    assert studio.saving.link(fourth).pending is None


@pytest.mark.parametrize(
    ("sheet", "message"),
    [
        (WorkbookSheet("../Data", 3), "no sheet of that name"),
        (WorkbookSheet("Data", 0), "from 1 to 10,000"),
        (WorkbookSheet("Data", 10**9), "from 1 to 10,000"),
        (WorkbookSheet("Data", 500), "is empty"),
        (WorkbookSheet("Data", 2), "has no name"),
    ],
)
def test_a_wrong_sheet_is_rejected_and_leaves_no_file(
    studio: Workspaces, study: Path, sheet: WorkbookSheet, message: str
) -> None:
    name = studio.open("anna")
    with pytest.raises(ShoalError, match=message):
        studio.open_table(name, uploaded(studio, name, study.read_bytes()), "study.xlsx", sheet=sheet)
    assert not list(studio.get(name).folder.glob("upload-*"))
    assert studio.get(name).table.inspection is None


def test_a_workbook_is_not_unpacked_beyond_the_limit_to_list_its_sheets(
    studio: Workspaces, tmp_path: Path
) -> None:
    bomb = tmp_path / "bomb.xlsx"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/sharedStrings.xml", " " * 20_000_000)
    name = studio.open("anna")
    for content, message in ((bomb.read_bytes(), "unpacks to more than"), (b"SECRET", "study.xlsx")):
        path = uploaded(studio, name, content)
        with pytest.raises(ShoalError, match=message) as caught:
            studio.sheets(name, path, "study.xlsx")
        assert "SECRET" not in str(caught.value)
        path.unlink()
