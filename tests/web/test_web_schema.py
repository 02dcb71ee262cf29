"""The studio's API under its own OpenAPI: whatever is sent, the answer is no accident of ours."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("schemathesis", reason="schemathesis is not installed")
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from shoal.web.app import build
from shoal.web.workspace.workspaces import Workspaces
from studio import Custodian, Running, running

EXAMPLES = 8
COLUMNS = ("age", "town")
CHANGING = (
    "/table", "/upload", "/policy", "/preset", "/role", "/settings", "/column-settings", "/hierarchy",
    "/hierarchy-file", "/hierarchy-files", "/answers", "/advice",
)  # fmt: skip


def _schema() -> dict[str, object]:
    workspaces = Workspaces()
    try:
        return dict(build(workspaces).openapi())
    finally:
        workspaces.close()


with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    SCHEMA = schemathesis.openapi.from_dict(_schema())
    OPERATIONS = {found.ok().label: found.ok() for found in SCHEMA.get_all_operations()}


@pytest.fixture(scope="module")
def studio() -> Iterator[Running]:
    with running() as found:
        yield found


def _at_work(studio: Running) -> Iterator[Custodian]:
    """Return one at a workspace on which everything has been done, so that requests go deep."""
    with studio.client() as client:
        found = Custodian(client)
        rows = "\n".join(f"{20 + n % 7},{'AB'[n % 2]},{'xyz'[n % 3]}" for n in range(60))
        answer = client.post(found.url("upload"), content=f"age,town,ill\n{rows}\n".encode())
        assert found.ended(answer.json())["status"] == "done"
        found.put("role", column="ill", role="sensitive")
        found.work("diagnosis")
        found.work("risk")
        found.work("profile")
        found.post("negotiation", k=2)
        found.work("release")
        found.work("advice", seconds=1)
        yield found


@pytest.fixture(scope="module")
def custodian(studio: Running) -> Iterator[Custodian]:
    yield from _at_work(studio)


@pytest.fixture
def fresh(studio: Running) -> Iterator[Custodian]:
    """Return another, whose plan may be changed."""
    yield from _at_work(studio)


def _at_home(body: object) -> object:
    """Let a request name columns that the table has."""
    if not isinstance(body, dict):
        return body
    found = dict(body)
    if isinstance(found.get("column"), str):
        found["column"] = COLUMNS[len(found["column"]) % 2]
    if isinstance(found.get("sensitive"), str):
        found["sensitive"] = "ill"
    if isinstance(found.get("columns"), list):
        found["columns"] = list(COLUMNS[: len(found["columns"]) % 3])
    for entry in ("known", "keep"):
        if isinstance(found.get(entry), list):
            found[entry] = list(COLUMNS[: len(found[entry]) % 3])
    for entry in ("node", "max_level"):
        if isinstance(found.get(entry), dict):
            found[entry] = dict(zip(COLUMNS, [*found[entry].values(), 0, 1], strict=False))
    return found


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "label", [label for label in OPERATIONS if label != "DELETE /api/workspaces/{workspace_id}"]
)
def test_no_request_that_the_schema_allows_breaks_the_studio(
    label: str, custodian: Custodian, request: pytest.FixtureRequest
) -> None:
    if label.endswith(CHANGING):
        custodian = request.getfixturevalue("fresh")
    operation = OPERATIONS[label]
    modes = [schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(st.one_of(*[operation.as_strategy(generation_mode=mode) for mode in modes]), st.booleans())
    def breaks(case: Any, knows_columns: bool) -> None:
        parameters = case.path_parameters
        if parameters and "workspace_id" in parameters:
            parameters["workspace_id"] = custodian.workspace
        if knows_columns:
            case.body = _at_home(case.body)
        answer = case.call(
            base_url=str(custodian.http.base_url),
            headers={"authorization": custodian.http.headers["authorization"]},
        )
        assert answer.status_code < 500, (case.method, case.path, case.body, answer.content)
        if answer.content == b"Invalid HTTP request received.":  # by the server, before the studio
            return
        if answer.status_code == 202:
            job = custodian.ended(answer.json())
            assert "went wrong" not in (job["error"] or ""), (case.path, case.body, job)
        if answer.status_code >= 400:
            assert {"error", "field"} <= answer.json().keys()

    breaks()


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b"\xff", b'{"k": NaN}', b"[" * 100_000])
def test_a_body_that_is_no_json_is_refused(body: bytes, custodian: Custodian) -> None:
    for path in ("negotiation", "take", "hierarchy-preview", "release"):
        kind = {"content-type": "application/json"}
        answer = custodian.http.post(custodian.url(path), content=body, headers=kind)
        assert 400 <= answer.status_code < 500, (path, answer.text)
        assert answer.json()["error"]
