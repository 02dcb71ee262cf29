"""Tables in databases: chosen by the users who may, released from where they are, and no address is shown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from servers import needs_postgres, postgres
from shoal.errors import UsageError
from shoal.web.errors import NotReady, Refused
from shoal.web.server.sessions import Keys
from shoal.web.server.users import Users, add_user
from shoal.web.workspace.sources import Sources, release_table
from shoal.web.workspace.workspaces import Workspaces
from studio import Custodian, Running, running

pytestmark = pytest.mark.filterwarnings("ignore:The .future.infer_string")  # of pandas, in Ibis
SECRET = "hunter2"
PASSWORD = "correct horse battery"
ROWS = [(20 + n % 40, "abc"[n % 3]) for n in range(240)]
CREATE = "CREATE TABLE people (age INTEGER, ward TEXT)"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / f"{SECRET}.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute(CREATE)
        connection.executemany("INSERT INTO people VALUES (?, ?)", ROWS)
    return path


def file_of_sources(folder: Path, text: str, mode: int = 0o600) -> Path:
    path = folder / "sources.yaml"
    path.write_text(text)
    path.chmod(mode)
    return path


@pytest.fixture
def sources(tmp_path: Path, database: Path) -> Path:
    return file_of_sources(
        tmp_path,
        f"patients: {{address: 'duckdb://{database}', table: people, users: [anna]}}\n"
        f"wards: {{address: 'duckdb://{database}', table: people}}\n"
        f"broken: {{address: 'postgres://me:{SECRET}@127.0.0.1:1/x', table: people, users: [anna]}}\n",
    )


@pytest.fixture
def studio(tmp_path: Path, sources: Path) -> Iterator[Running]:
    names = tmp_path / "users.txt"
    for name in ("anna", "bert"):
        add_user(names, name, PASSWORD)
    with running(keys=Keys(users=Users(names)), sources=sources, projects=tmp_path / "projects") as started:
        yield started


def signed_in(studio: Running, user: str) -> Custodian:
    with studio.anyone() as client:
        answer = client.post("/api/session", json={"user": user, "password": PASSWORD})
    return Custodian(studio.anyone(headers={"authorization": f"Bearer {answer.json()['bearer']}"}))


def test_a_source_is_listed_and_opened_only_by_users_who_may(studio: Running) -> None:
    anna, bert = signed_in(studio, "anna"), signed_in(studio, "bert")
    assert [one["name"] for one in anna.http.get("/api/sources").json()] == ["patients", "wards", "broken"]
    assert [one["name"] for one in bert.http.get("/api/sources").json()] == ["wards"]
    anna.work("table", source="database", name="patients")
    assert anna.state()["records"] == 240
    forbidden = bert.post("table", 422, source="database", name="patients")
    unknown = bert.post("table", 422, source="database", name="nothing")
    assert forbidden == unknown
    bert.work("table", source="database", name="wards")
    for path in ("people", f"duckdb://{SECRET}.db", '"wards"', "../wards"):
        assert bert.post("table", 422, source="database", name=path)["error"] == unknown["error"]


def test_nothing_that_a_user_sees_contains_the_address(studio: Running, tmp_path: Path) -> None:
    anna = signed_in(studio, "anna")
    seen = [anna.http.get("/api/sources").text]
    job = anna.work("table", status="failed", source="database", name="broken")
    seen.append(str(job))
    anna.work("table", source="database", name="patients")
    anna.work("profile")
    anna.work("release")
    seen += [str(anna.state()), str(anna.get("release")), str(anna.get("policy")), str(anna.get("project"))]
    seen += [anna.http.get(anna.url(f"files/{name}")).text for name in anna.get("release")["files"]]
    seen.append(anna.http.get(anna.url("project-file")).content.decode("latin-1"))
    anna.put("project", name="wards")
    assert len(seen) > 8
    assert not [text for text in seen if SECRET in text]
    for path in (tmp_path / "projects").rglob("*"):
        assert path.is_dir() or SECRET.encode() not in path.read_bytes()


def test_rows_are_not_copied_into_a_project(studio: Running) -> None:
    anna = signed_in(studio, "anna")
    anna.work("table", source="database", name="patients")
    assert "stay in its database" in anna.put("project", 409, keep_table=True)["error"]
    answer = anna.http.get(anna.url("project-file"), params={"table": True})
    assert answer.status_code == 409
    assert "stay in its database" in answer.text


def test_a_project_opens_its_source_again_but_not_for_another_user(studio: Running) -> None:
    anna = signed_in(studio, "anna")
    anna.work("table", source="database", name="patients")
    content = anna.http.get(anna.url("project-file")).content
    again, bert = Custodian(anna.http), signed_in(studio, "bert")
    for person, records in ((again, 240), (bert, None)):
        job = person.http.post(
            person.url("project-file"), content=content, headers={"x-file-name": "project.shoal"}
        ).json()
        assert person.ended(job)["status"] == "done"
        assert person.state()["records"] == records
    assert bert.get("project")["waits_for_table"] == "patients"


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        ("a: {address: 'x://SECRET', table: t}", 0o644, "chmod 600"),
        ("a: {address: 'x://SECRET'}", 0o600, "its table is not valid"),
        ("a: {address: 'x://SECRET', table: t, user: [b]}", 0o600, "its user is not valid"),
        ("a: 'x://SECRET'", 0o600, "its entry is not valid"),
        ("a: {address: 'x://SECRET', table: [}", 0o600, "is not valid YAML"),
        ("", 0o600, "has no source"),
    ],
)
def test_a_wrong_file_of_sources_is_refused_without_its_content(
    tmp_path: Path, text: str, mode: int, message: str
) -> None:
    path = file_of_sources(tmp_path, text.replace("SECRET", SECRET), mode)
    with pytest.raises(UsageError, match=message) as caught:
        Sources.read(path)
    assert SECRET not in str(caught.value)


def test_users_of_a_source_need_the_users_file(tmp_path: Path, sources: Path) -> None:
    studio = Workspaces(sources=sources)
    try:
        name = studio.open()
        with pytest.raises(Refused, match="no such source"):
            studio.open_source(name, "patients")
        studio.open_source(name, "wards")
        workspace = studio.get(name)
        workspace.table.choose_roles(["age", "ward"], "quasi-identifier")
        workspace.release.run("parquet")
        assert workspace.release.file("release").suffix == ".parquet"
        workspace.measurement.run()
        workspace.utility.run()
        workspace.risk.run()
        with pytest.raises(NotReady, match="are files"):
            release_table(workspace.table.remote, "people_release")
    finally:
        studio.close()


@needs_postgres
@pytest.mark.xdist_group("servers")
def test_a_release_is_written_to_postgres_in_the_given_schema(tmp_path: Path) -> None:
    server = postgres()
    with server.connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS shared CASCADE")
        cursor.execute("CREATE SCHEMA shared")
        cursor.execute("DROP TABLE IF EXISTS people")
        cursor.execute(CREATE)
        cursor.executemany("INSERT INTO people VALUES (%s, %s)", ROWS)
    address = f"postgres://shoal:{SECRET}@/postgres?host={server.folder}&port=5432"
    path = file_of_sources(
        tmp_path, f"patients: {{address: '{address}', table: public.people, releases: shared}}\n"
    )
    with running(sources=path) as started:
        anna = Custodian(started.client())
        anna.work("table", source="database", name="patients")
        refused = anna.post("release", 422, form="database", table='x"; DROP TABLE people; --')
        assert refused["field"] == "table"
        anna.work("release", form="database", table="people_release")
        files = anna.get("release")["files"]
        assert "release" not in files
        assert {"codebook", "recipe", "audit", "report", "certificate", "policy"} <= set(files)
        anna.work("measurement")
        anna.work("utility")
        anna.work("risk")
        again = anna.ended(anna.post("release", 202, form="database", table="people_release"))
        assert again["status"] == "failed"  # a table is never replaced
        anna.work("release", form="csv")
        assert "release" in anna.get("release")["files"]
        seen: list[Any] = [anna.http.get(anna.url(f"files/{name}")).text for name in files]
        assert not [text for text in seen if SECRET in text]
    (rows,) = server.connection.execute("SELECT count(*) FROM shared.people_release").fetchone()
    assert 200 < rows <= 240


@pytest.mark.xdist_group("servers")
def test_a_person_opens_a_source_and_releases_it(sources: Path) -> None:
    pytest.importorskip("playwright", reason="pages are tried with playwright")
    import browser

    if not Path(browser.CHROMIUM).exists():
        pytest.skip("pages are tried in Chromium")
    with browser.studio("--sources", str(sources)) as address, browser.chromium() as chromium:
        page = browser.new_page(chromium)
        page.goto(address())
        card = page.locator("[data-part=sources]")
        card.get_by_text("The rows stay there").wait_for()
        assert "5,000 columns" in card.inner_text()
        assert card.locator("option").all_inner_texts() == ["wards"]  # the others are anna's
        card.get_by_role("button", name="Open the source").click()
        page.get_by_role("radiogroup", name="Role of ward").wait_for()
        assert browser.role_of(page, "ward") == "quasi-identifier"
        page.locator(".step", has_text="Release").click()
        page.get_by_role("button", name="Write the release").click()
        page.locator("[data-file=release]").wait_for()
        with page.expect_download() as coming:
            page.locator("[data-file=release]").click()
        assert coming.value.suggested_filename == "wards-release.csv"
        assert SECRET not in page.content()
