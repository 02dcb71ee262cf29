"""Projects: what is saved, who sees it, and what comes back after a restart or from a file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.web.errors import NotReady, Refused, Unknown
from shoal.web.workspace.workspaces import Workspaces

TABLE = b"age,town,ill\n" + b"".join(
    f"{20 + n % 40},{'abc'[n % 3]},{'xy'[n % 2]}\n".encode() for n in range(300)
)
TOWNS = b"a,north,*\nb,north,*\nc,south,*\n"
Open = Callable[..., Workspaces]


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Open]:
    """Start studios on one folder of projects, one after the other."""
    started: list[Workspaces] = []

    def start(**options: object) -> Workspaces:
        for earlier in started:
            earlier.close()
        given = {"projects": tmp_path / "projects"} | options
        started.append(Workspaces(**given))  # type: ignore[arg-type]
        return started[-1]

    yield start
    started[-1].close()


def uploaded(studio: Workspaces, owner: str = "anna", table: bytes = TABLE, file: str = "people.csv") -> str:
    name = studio.open(owner)
    upload_into(studio, name, table, file)
    return name


def upload_into(studio: Workspaces, name: str, table: bytes = TABLE, file: str = "people.csv") -> None:
    with studio.receive_upload(name, file) as upload:
        upload.write(table)
    studio.open_table(name, upload.path, upload.name)


def worked(studio: Workspaces, name: str) -> None:
    """Change roles, an uploaded hierarchy, settings and the node."""
    workspace = studio.get(name)
    workspace.table.choose_roles(["age", "town"], "quasi-identifier")
    workspace.table.choose_role("ill", "sensitive")
    workspace.table.choose_hierarchy("age", {"intervals": [10, 20]})
    workspace.table.upload_hierarchy("town", TOWNS, "towns.csv")
    workspace.draft.change(suppression_limit="20%", models=[{"k-anonymity": {"k": 3}}])
    workspace.negotiation.tabulate()
    workspace.negotiation.choose_node({"age": 2, "town": 1})


def settings(studio: Workspaces, name: str) -> object:
    workspace = studio.get(name)
    return workspace.draft.to_yaml(), workspace.negotiation.node, workspace.history.answer


def test_a_project_is_saved_by_itself_and_opened_after_a_restart(studio: Open) -> None:
    first = studio()
    name = uploaded(first)
    assert first.saving.required_store.all("anna") == []  # nothing was changed yet
    worked(first, name)
    first.saving.autosave.flush()
    before = settings(first, name)
    second = studio()
    (saved,) = second.saving.required_store.all("anna")
    assert (saved.name, saved.table, saved.records) == ("people", "people.csv", 300)
    assert not saved.keeps_table
    other = second.open("anna")
    second.saving.open(other, saved.id)
    assert second.get(other).table.inspection is None  # the data was not asked to be kept
    link = second.saving.link(other)
    assert link.pending is not None
    upload_into(second, other)
    assert settings(second, other) == before
    assert second.saving.link(other).id == saved.id
    second.get(other).history.undo()
    assert second.get(other).negotiation.node is None


def test_a_table_is_kept_on_request_and_forgotten_again(studio: Open) -> None:
    first = studio()
    name = uploaded(first)
    worked(first, name)
    assert first.saving.keep_table(name, keep=True).keeps_table
    before = settings(first, name)
    second = studio()
    (saved,) = second.saving.required_store.all("anna")
    other = second.open("anna")
    second.saving.open(other, saved.id)
    assert settings(second, other) == before
    assert second.get(other).table.name == "people.csv"
    with pytest.raises(NotReady, match="open from this copy"):
        second.saving.keep_table(other, keep=False)
    third = studio()
    again = uploaded(third)
    third.get(again).table.choose_role("ill", "other")
    assert third.saving.keep_table(again, keep=True).keeps_table
    assert not third.saving.keep_table(again, keep=False).keeps_table
    files = list(third.saving.required_store.folder.rglob("table.csv"))
    assert len(files) == 1  # of the first project


def test_the_sample_and_tables_of_the_folder_are_opened_without_a_copy(studio: Open, tmp_path: Path) -> None:
    folder = tmp_path / "tables"
    folder.mkdir()
    (folder / "people.csv").write_bytes(TABLE)
    first = studio(folder=folder)
    names = [first.open("anna"), first.open("anna")]
    first.open_sample(names[0])
    first.open_table(names[1], folder / "people.csv", "people.csv")
    first.get(names[0]).table.choose_role("sex", "other")
    first.get(names[1]).table.choose_role("ill", "other")
    first.saving.autosave.flush()
    second = studio(folder=folder)
    for saved in second.saving.required_store.all("anna"):
        other = second.open("anna")
        second.saving.open(other, saved.id)
        assert second.get(other).history.answer.undo in ("role of sex", "role of ill")


def test_projects_are_private_to_their_owner(studio: Open) -> None:
    one = studio()
    name = uploaded(one)
    worked(one, name)
    saved = one.saving.save(name)
    store = one.saving.required_store
    assert store.all("ben") == []
    for act in (
        lambda: one.saving.open(one.open("ben"), saved.id),
        lambda: one.saving.delete("ben", saved.id),
        lambda: store.load("ben", saved.id),
        lambda: store.load("anna", "../" + saved.id),
        lambda: store.load("anna", ""),
    ):
        with pytest.raises(Unknown, match="There is no such project"):
            act()
    assert one.saving.workspace_of("ben", saved.id) is None
    assert one.saving.workspace_of("anna", saved.id) == name
    for path in (store.folder, *store.folder.rglob("*")):
        assert path.stat().st_mode & 0o077 == 0
        assert "anna" not in path.name


def test_a_project_outlives_its_workspace_and_is_deleted_at_once(studio: Open) -> None:
    one = studio(keep_seconds=3600.0, clock=lambda: now[0]) if (now := [0.0]) else None
    assert one is not None
    name = uploaded(one)
    worked(one, name)
    saved = one.saving.save(name)
    now[0] = 4000.0
    one.expire()
    assert name not in one
    other = one.open("anna")
    one.saving.open(other, saved.id)
    upload_into(one, other)
    one.saving.delete("anna", saved.id)
    assert other not in one
    assert list(one.saving.required_store.folder.rglob("*.json")) == []


def test_the_wrong_table_does_not_touch_the_project(studio: Open) -> None:
    one = studio()
    name = uploaded(one)
    worked(one, name)
    saved = one.saving.save(name)
    before = one.saving.required_store.load("anna", saved.id)
    other = one.open("anna")
    one.saving.open(other, saved.id)
    upload_into(one, other, b"age,place\n1,b\n2,c\n")
    assert "other columns" in one.saving.link(other).problem
    one.get(other).table.choose_role("age", "other")
    one.saving.autosave.flush()
    assert one.saving.required_store.load("anna", saved.id) == before
    upload_into(one, other)
    assert settings(one, other) == settings(one, name)


def test_a_new_table_starts_from_last_time_and_this_can_be_undone(studio: Open) -> None:
    one = studio()
    name = uploaded(one)
    assert one.saving.earlier(name) is None
    worked(one, name)
    saved = one.saving.save(name)
    later = uploaded(one, table=TABLE + b"33,a,x\n", file="people-2.csv")
    earlier = one.saving.earlier(later)
    assert earlier is not None
    assert earlier.id == saved.id
    suggested = one.get(later).draft.settings()
    one.saving.start_from(later, saved.id)
    assert settings(one, later)[:2] == settings(one, name)[:2]  # type: ignore[index]
    one.get(later).history.undo()
    assert one.get(later).draft.settings() == suggested
    assert one.saving.earlier(uploaded(one, table=b"age,x\n1,2\n2,3\n")) is None


@pytest.mark.parametrize("with_table", [False, True])
def test_a_project_goes_through_one_file(studio: Open, with_table: bool) -> None:
    one = studio(projects=None)
    name = uploaded(one)
    worked(one, name)
    assert one.saving.unsaved(name)
    path = one.saving.write_file(name, with_table=with_table)
    assert not one.saving.unsaved(name)
    content = path.read_bytes()
    path.unlink()
    assert (b"table.csv" in content) == with_table
    other = one.open("ben")
    with one.saving.receive_file(other, "people.shoal") as upload:
        upload.write(content)
    one.saving.open_file(other, upload.path)
    if not with_table:
        assert one.get(other).table.inspection is None
        upload_into(one, other)
    assert settings(one, other) == settings(one, name)
    assert one.get(other).table.name == "people.csv"
    assert not [file.name for file in one.get(other).folder.iterdir() if file.suffix == ".shoal"]


def test_a_file_is_applied_to_the_open_table_as_one_change(studio: Open) -> None:
    one = studio(projects=None)
    name = uploaded(one)
    worked(one, name)
    path = one.saving.write_file(name, with_table=False)
    other = uploaded(one)
    one.saving.open_file(other, path)
    assert settings(one, other)[:2] == settings(one, name)[:2]  # type: ignore[index]
    assert len(one.get(other).history.answer.labels) == 1
    assert one.get(name).table.inspection is not None


def test_without_a_folder_nothing_is_saved_on_the_server(studio: Open) -> None:
    one = studio(projects=None)
    name = uploaded(one)
    with pytest.raises(NotReady, match="--projects"):
        one.saving.save(name)
    assert one.saving.earlier(name) is None
    with pytest.raises(Refused, match=r"ends in \.shoal"):
        one.saving.receive_file(name, "people.zip")
