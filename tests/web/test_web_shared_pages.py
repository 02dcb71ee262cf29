"""Read-only links: who can open them, what else they open, and what their page says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.web.errors import NotReady, Refused
from shoal.web.server.sessions import LIMIT
from shoal.web.server.shared_pages import SHARED_SECONDS, SharedPages
from shoal.web.workspace.scenarios import ScenarioFigures, shared_page
from shoal.web.workspace.workspace import Workspace
from studio import Custodian, Running, running


@pytest.fixture
def studio() -> Iterator[Running]:
    with running() as started:
        yield started


@pytest.fixture
def custodian(studio: Running) -> Iterator[Custodian]:
    with studio.client() as client:
        made = Custodian(client)
        made.work("table", source="sample")
        made.work("profile")
        made.post("negotiation", k=7)
        workspace = studio.workspaces.get(made.workspace)
        workspace.scenarios.pin_offer(workspace.negotiation.offer("exact"))
        yield made


def link(custodian: Custodian) -> str:
    answer = custodian.http.post(custodian.url("shared"))
    assert answer.status_code == 201
    return str(answer.json()["path"])


def test_a_link_is_read_without_a_session_and_is_not_cached(studio: Running, custodian: Custodian) -> None:
    path = link(custodian)
    with studio.anyone() as other:
        answer = other.get(path)
    assert answer.status_code == 200
    assert "k-anonymity (k = 7)" in answer.text
    assert answer.headers["cache-control"] == "no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["content-security-policy"].startswith("default-src 'none'")
    assert "set-cookie" not in answer.headers
    assert "<script" not in answer.text


def test_the_token_of_a_link_opens_nothing_else(studio: Running, custodian: Custodian) -> None:
    path = link(custodian)
    token = path.rpartition("/")[2]
    with studio.anyone(headers={"authorization": f"Bearer {token}"}) as other:
        for address in (
            "/",
            "/negotiate",
            "/api/session",
            "/api/projects",
            custodian.url(),
            f"/?token={token}",
        ):
            assert other.get(address).status_code == 401, address
        assert other.post(custodian.url("shared")).status_code == 401
        assert other.post("/api/session", json={"token": token}).status_code == 401
        for method in ("POST", "PUT", "DELETE", "PATCH"):
            assert other.request(method, path).status_code == 405
        for ending in ("/", "/x", "/../../api/session", "?a=/../api"):
            answer = other.get(path + ending)
            assert answer.status_code in ((200,) if "?" in ending else (401, 404))


def test_wrong_links_are_refused_and_limited_without_blocking_sign_in(
    studio: Running, custodian: Custodian
) -> None:
    path = link(custodian)
    with studio.anyone() as other:
        codes = [other.get(f"/shared/{'x' * 43}").status_code for _ in range(LIMIT + 1)]
        assert codes == [404] * LIMIT + [429]
        assert other.get(path).status_code == 429
        assert other.post("/api/session", json={"token": "wrong"}).status_code == 401
        assert studio.workspaces.shared_pages.find("") is None


def test_a_link_ends_when_it_is_revoked_or_its_workspace_is_deleted(
    studio: Running, custodian: Custodian
) -> None:
    first, second = link(custodian), link(custodian)
    with studio.anyone() as other:
        assert other.get(second).status_code == 200
        assert custodian.http.delete(custodian.url("shared")).status_code == 204
        assert [other.get(path).status_code for path in (first, second)] == [404, 404]
        third = link(custodian)
        custodian.http.delete(custodian.url())
        assert other.get(third).status_code == 404


def test_revoking_leaves_the_links_of_other_workspaces(studio: Running, custodian: Custodian) -> None:
    path = link(custodian)
    with studio.client() as client:
        other = Custodian(client)
        assert other.http.post(other.url("shared")).status_code == 409  # it has no scenario of its own
        assert other.http.delete(other.url("shared")).status_code == 204
    with studio.anyone() as anyone:
        assert anyone.get(path).status_code == 200


def test_a_link_expires_and_their_number_is_limited() -> None:
    now = [0.0]
    pages = SharedPages({"a", "b"}.__contains__, clock=lambda: now[0])
    token = pages.share("a", "page")
    now[0] = SHARED_SECONDS - 1
    assert pages.find(token) == "page"
    now[0] = SHARED_SECONDS
    assert pages.find(token) is None
    for _ in range(20):
        pages.share("a", "page")
    with pytest.raises(Refused, match="At most 20"):
        pages.share("a", "page")
    assert pages.find(pages.share("b", "other")) == "other"


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    opened = Workspace(Path(tmp_path_factory.mktemp("shared")))
    opened.open_sample()
    opened.negotiation.tabulate()
    for k in (3, 7):
        opened.scenarios.pin_offer(opened.negotiation.negotiate(k=k).exact)
    opened.preview.run()
    opened.scenarios.pin_preview()
    return opened


def test_no_value_of_the_table_and_no_file_is_on_the_page(workspace: Workspace) -> None:
    page = shared_page(workspace.scenarios.pinned)
    words = set(re.findall(r"[^\W\d][\w-]{2,}", re.sub(r"<style>.*?</style>|<[^>]*>", " ", page).lower()))
    lines = workspace.table.path.read_text().splitlines()
    values = {cell.lower() for line in lines[1:] for cell in line.split(",") if not cell.isdigit()}
    assert len(values) > 100
    assert not words & values
    assert not any(value in page.lower() for value in values if len(value) > 7)
    for hidden in (workspace.table.name, str(workspace.folder), ".csv", "level "):
        assert hidden not in page


def test_no_count_below_k_is_on_the_page(workspace: Workspace) -> None:
    (one, *_) = workspace.scenarios.pinned
    for count in range(30):
        figures = ScenarioFigures(5000, count, 0.5, count, count)
        page = shared_page([replace(one, figures=figures, k=11, terms="")])
        cells = re.findall(r"<td>([^<]*)</td>", page)
        assert cells[3:6] == [f"{count}" if count >= 11 else "fewer than 11"] * 3


def test_markup_of_a_project_is_text_and_a_page_needs_a_scenario(workspace: Workspace) -> None:
    (one, *_) = workspace.scenarios.pinned
    page = shared_page([replace(one, terms="<script>x</script>", columns={"<b>": "<i>"})])
    assert "<script" not in page
    assert "<b>" not in page
    with pytest.raises(NotReady):
        shared_page([])
