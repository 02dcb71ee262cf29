"""Project files from strangers: sizes, depth, paths, and everything that is no project."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.errors import ShoalError
from shoal.web.errors import Refused, TooLarge
from shoal.web.workspace import project_archive, project_file
from shoal.web.workspace.project_file import read_project
from shoal.web.workspace.workspaces import Workspaces

TABLE = b"age,town\n" + b"".join(f"{20 + n % 40},{'abc'[n % 3]}\n".encode() for n in range(90))
TOWNS = b"a,north,*\nb,north,*\nc,south,*\n"


@pytest.fixture
def studio() -> Iterator[Workspaces]:
    created = Workspaces(upload_limit=100_000)
    yield created
    created.close()


def with_table(studio: Workspaces) -> str:
    name = studio.open("anna")
    with studio.receive_upload(name, "people.csv") as upload:
        upload.write(TABLE)
    studio.open_table(name, upload.path, upload.name)
    return name


@pytest.fixture
def project(studio: Workspaces) -> dict[str, Any]:
    """A harmless project, as plain values."""
    name = with_table(studio)
    table = studio.get(name).table
    table.choose_roles(["age", "town"], "quasi-identifier")
    table.upload_hierarchy("town", TOWNS, "towns.csv")
    studio.get(name).draft.change(suppression_limit=5)
    saved: dict[str, Any] = json.loads(studio.saving.project(name).to_json())
    studio.delete(name)
    return saved


def archive(content: bytes, *others: tuple[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as made:
        made.writestr("project.json", content)
        for name, data in others:
            made.writestr(name, data)
    return buffer.getvalue()


def received(studio: Workspaces, name: str, content: bytes) -> None:
    with studio.saving.receive_file(name, "people.shoal") as upload:
        upload.write(content)
    studio.saving.open_file(name, upload.path)


def opened(studio: Workspaces, content: bytes) -> str:
    """Open a file in a workspace with the table."""
    name = with_table(studio)
    received(studio, name, content)
    return name


def as_json(project: Any) -> bytes:
    return json.dumps(project).encode()


def test_a_harmless_project_is_opened(studio: Workspaces, project: dict[str, Any]) -> None:
    name = opened(studio, archive(as_json(project)))
    assert studio.get(name).draft.settings()["suppression_limit"] == 5
    assert studio.get(name).table.decisions.hierarchy_files["town"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"[" * 100_000,
        b'{"format": "shoal project 1"}',
        b"NaN",
        b"1e999",
    ],
)
def test_what_is_no_project_is_refused(studio: Workspaces, content: bytes) -> None:
    for sent in (content, archive(content)):
        with pytest.raises(Refused, match="damaged"):
            opened(studio, sent)


def damage(path: tuple[Any, ...], value: Any) -> Callable[[dict[str, Any]], None]:
    def change(project: dict[str, Any]) -> None:
        part: Any = project
        for step in path[:-1]:
            part = part[step]
        part[path[-1]] = value

    return change


LAST = -1
DAMAGES = {
    "an unknown entry": damage(("code",), "import os"),
    "an unknown setting": damage(("states", 0, "settings", "population"), "/etc/passwd"),
    "an unknown entry of a column": damage(("states", 0, "columns", "age", "file"), "/etc/passwd"),
    "an unknown role": damage(("states", 0, "columns", "age", "role"), "root"),
    "a level that is no number": damage(("states", 0, "columns", "age", "max_level"), "9" * 9),
    "a negative level": damage(("states", 0, "columns", "age", "min_level"), -1),
    "a weight without end": damage(("states", 0, "columns", "age", "weight"), 1e300),
    "too many states": damage(("states",), [{}] * 10_000),
    "no state": damage(("states",), []),
    "a position outside": damage(("position",), 49),
    "a negative position": damage(("position",), -1),
    "a missing file": damage(("files",), {}),
    "a column that the table lacks": damage(("states", 0, "columns", "x"), {"role": "other"}),
    "a very long name": damage(("name",), "n" * 100_000),
    "a very long text": damage(("states", 0, "label"), "n" * 100_000),
    "rows that are no rows": damage(("files",), {"a": [1, 2]}),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_project_is_refused_and_the_workspace_stays(
    studio: Workspaces, project: dict[str, Any], what: str
) -> None:
    name = with_table(studio)
    before = studio.get(name).draft.snapshot()
    DAMAGES[what](project)
    with pytest.raises(Refused, match="damaged"):
        received(studio, name, archive(as_json(project)))
    assert studio.get(name).draft.snapshot() == before


PATHS = ["/etc/passwd", "../secret.csv", "..", "C:\\secret.csv", "s\0.csv"]


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("role", ["quasi-identifier", "sensitive", "other"])
def test_a_hierarchy_file_is_never_a_path(
    studio: Workspaces, project: dict[str, Any], path: str, role: str
) -> None:
    name = with_table(studio)
    before = studio.get(name).draft.snapshot()
    state = project["states"][0]
    state["columns"]["age"] |= {"hierarchy": {"csv": path}, "role": role}
    state["chosen"] = ["age"]
    with pytest.raises(Refused, match="lacks the hierarchy file"):
        received(studio, name, archive(as_json(project)))
    digest = next(iter(project["files"]))
    state["hierarchy_files"]["age"] = digest
    with pytest.raises(Refused, match="lacks the hierarchy file"):
        received(studio, name, archive(as_json(project)))
    assert studio.get(name).draft.snapshot() == before


def test_a_population_of_the_server_is_not_named_by_a_project(
    studio: Workspaces, project: dict[str, Any], tmp_path: Path
) -> None:
    population = tmp_path / "population.csv"
    population.write_bytes(TABLE)
    project["states"][project["position"]]["settings"]["models"] = [
        {"k-map": {"k": 2, "population": str(population)}}
    ]
    with pytest.raises(ShoalError, match="can only be named in the policy"):
        opened(studio, archive(as_json(project)))


@pytest.mark.parametrize("path", ["/etc/passwd", "../people.csv", "link.csv", "a/../../people.csv"])
def test_a_table_of_the_server_is_only_opened_below_the_folder(
    project: dict[str, Any], path: str, tmp_path: Path
) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (tmp_path / "people.csv").write_bytes(TABLE)
    (folder / "link.csv").symlink_to(tmp_path / "people.csv")
    project["table"] |= {"source": "folder", "path": path}
    studio = Workspaces(folder=folder)
    try:
        name = studio.open("anna")
        received(studio, name, archive(as_json(project)))
        assert studio.get(name).table.inspection is None
    finally:
        studio.close()


def test_a_name_of_a_table_is_no_path(studio: Workspaces, project: dict[str, Any]) -> None:
    project["table"]["name"] = "../../etc/\0cron.d/people.csv"
    name = studio.open("anna")
    received(studio, name, archive(as_json(project), ("table.csv", TABLE)))
    workspace = studio.get(name)
    assert workspace.table.path is not None
    assert workspace.table.path.parent == workspace.folder
    assert workspace.table.name == "people.csv"


@pytest.mark.parametrize(
    "entry",
    ["../table.csv", "/tmp/table.csv", "other.csv", "table.exe", "table", "project.json/../x.csv"],
)
def test_other_entries_of_an_archive_are_refused(
    studio: Workspaces, project: dict[str, Any], entry: str
) -> None:
    with pytest.raises(Refused):
        opened(studio, archive(as_json(project), (entry, TABLE)))
    with pytest.raises(Refused):
        opened(studio, archive(as_json(project), ("table.csv", TABLE), ("table.tsv", TABLE)))


def test_an_archive_that_unpacks_to_much_more_is_stopped(
    studio: Workspaces, project: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = studio.open("anna")
    with pytest.raises(TooLarge):
        received(studio, name, archive(as_json(project), ("table.csv", b"age,town\n" + b"1,a\n" * 50_000)))
    monkeypatch.setattr(project_archive, "MAX_BYTES", 10_000)
    monkeypatch.setattr(project_file, "MAX_BYTES", 10_000)
    with pytest.raises(TooLarge, match="10,000 bytes"):
        received(studio, name, archive(b" " * 50_000 + as_json(project)))
    assert not list(studio.get(name).folder.iterdir())


def test_an_archive_that_lies_about_its_sizes_or_is_encrypted_is_refused(
    studio: Workspaces, project: dict[str, Any]
) -> None:
    good = archive(as_json(project))
    lies = good.replace(struct.pack("<I", len(as_json(project))), struct.pack("<I", 7))
    encrypted = bytearray(good)
    encrypted[good.index(b"PK\x01\x02") + 8] |= 1
    other_method = archive(as_json(project), method=zipfile.ZIP_BZIP2)
    for sent in (lies, bytes(encrypted), other_method, good[:-30], good[: len(good) // 2]):
        with pytest.raises(Refused, match="damaged"):
            opened(studio, sent)


def test_a_node_that_the_lattice_lacks_is_left_out(studio: Workspaces, project: dict[str, Any]) -> None:
    for node in ({"age": 999, "town": 0}, {"age": 1}, {"age": 1, "town": 1, "x": 0}):
        project["states"][project["position"]]["node"] = node
        name = opened(studio, archive(as_json(project)))
        assert studio.get(name).negotiation.node is None


def test_an_earlier_state_that_cannot_be_used_is_left_out(
    studio: Workspaces, project: dict[str, Any]
) -> None:
    project["states"][1]["settings"] |= {"metric": {"no-such-metric": {}}}
    name = studio.open("anna")
    received(studio, name, archive(as_json(project), ("table.csv", TABLE)))
    assert len(studio.get(name).history.states) == len(project["states"]) - 1
    project["states"][project["position"]]["settings"] |= {"metric": {"no-such-metric": {}}}
    with pytest.raises(Refused, match="cannot be used"):
        opened(studio, archive(as_json(project)))


def test_texts_of_a_project_hold_no_invalid_letters(project: dict[str, Any]) -> None:
    text = json.dumps(project).replace('"people"', '"\\ud800"')
    with pytest.raises(Refused):
        read_project(text.encode())


def files_of(studio: Workspaces) -> tuple[Any, Any]:
    workspace = studio.get(with_table(studio))
    workspace.table.choose_roles(["age", "town"], "quasi-identifier")
    return workspace, workspace.draft.snapshot()


AGES = b"".join(f"{age},{age // 10}0s,*\n".encode() for age in range(20, 60))


def test_many_hierarchy_files_are_matched_by_name_and_are_one_change(studio: Workspaces) -> None:
    workspace, _ = files_of(studio)
    taken = workspace.table.upload_hierarchies([("TOWN.csv", TOWNS), ("x/../people_hierarchy_age.CSV", AGES)])
    assert taken == ["town", "age"]
    assert workspace.table.columns["age"]["hierarchy"] == {"csv": "people_hierarchy_age.CSV"}
    assert not workspace.draft.missing()
    workspace.history.undo()
    assert "csv" not in workspace.table.columns["town"]["hierarchy"]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([("town.csv", TOWNS), ("city.csv", TOWNS)], "No column has the name of 'city.csv'"),
        ([("town.csv", TOWNS), ("TOWN.txt", TOWNS)], "Two files are for the column 'town'"),
        ([("town.csv", TOWNS), ("age.csv", b"20,x,*\n")], "Hierarchy of 'age'"),
        ([("town.csv", TOWNS), ("age.csv", b"\0\xff\xfe")], "Hierarchy of 'age'"),
        ([("town.csv", TOWNS), ("../../etc/passwd", b"x")], "No column has the name of"),
        ([("town.csv", TOWNS), ("\0", b"x")], "No column has the name of"),
        ([("town.csv", TOWNS), ("", b"x")], "No column has the name of"),
        ([("town.csv", TOWNS), ("age.csv", bytes(20_000_000))], "larger than 20,000,000 bytes together"),
        ([("town.csv", TOWNS)] * 301, "Choose 1 to 300 files"),
        ([], "Choose 1 to 300 files"),
    ],
)
def test_of_many_hierarchy_files_all_are_taken_or_none(
    studio: Workspaces, files: list[tuple[str, bytes]], message: str
) -> None:
    workspace, before = files_of(studio)
    with pytest.raises(ShoalError, match=message) as caught:
        workspace.table.upload_hierarchies(files)
    assert caught.value.field in ("file", "files")
    assert "20s" not in str(caught.value)  # no value of the data
    assert workspace.draft.snapshot() == before
    assert not list(workspace.folder.glob("hierarchy-*"))
