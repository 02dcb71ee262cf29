"""A recipe that is applied and a release that is checked may come from strangers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.web.workspace import uploads
from studio import Custodian, Running, running


@pytest.fixture(scope="module")
def served() -> Iterator[Running]:
    with running() as studio:
        yield studio


@pytest.fixture
def custodian(served: Running) -> Iterator[Custodian]:
    with served.client() as http:
        made = Custodian(http)
        made.work("table", source="sample")
        yield made


@pytest.fixture(scope="module")
def recipe(served: Running) -> dict[str, Any]:
    with served.client() as http:
        made = Custodian(http)
        made.work("table", source="sample")
        made.work("release")
        return dict(http.get(made.url("files/recipe")).json())


def sent(custodian: Custodian, path: str, content: bytes, **headers: str) -> dict[str, Any]:
    answer = custodian.http.post(custodian.url(path), content=content, headers=headers)
    assert answer.status_code == 202, answer.text
    return custodian.ended(answer.json())


def leftovers(served: Running, custodian: Custodian) -> list[Path]:
    return list(served.workspaces.get(custodian.workspace).folder.glob("upload-*"))


def test_a_recipe_makes_the_same_release(
    custodian: Custodian, recipe: dict[str, Any], served: Running
) -> None:
    assert sent(custodian, "recipe", json.dumps(recipe).encode())["status"] == "done"
    released = custodian.get("release")
    assert released["verified"] is True
    assert released["levels"] == recipe["levels"]
    assert custodian.http.get(custodian.url("files/release")).status_code == 200
    assert served.workspaces.get(custodian.workspace).release.is_applied
    assert leftovers(served, custodian) == []
    custodian.put("settings", suppression_limit=300)  # it is the release until the settings change
    custodian.get("release", 409)


def changed(part: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe.update({part: value})


def column(name: str, **entry: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe["policy"]["columns"][name].update(entry)


def models(*written: Any) -> Callable[[dict[str, Any]], None]:
    return lambda recipe: recipe["policy"].update(models=list(written))


DAMAGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "another version": changed("recipe", 99),
    "a policy by its path": changed("policy", "/etc/passwd"),
    "a hierarchy by its path": column("sex", hierarchy={"csv": "/etc/passwd"}),
    "a population by its path": models({"k-map": {"k": 5, "population": "/etc/passwd"}}),
    "levels that are no numbers": changed("levels", {"age": "9" * 9}),
    "regions of nothing": changed("regions", {"columns": {}, "classes": [[10**12]]}),
    "an unknown algorithm": lambda recipe: recipe["policy"].update(algorithm="__import__"),
    "another table": lambda recipe: recipe["policy"]["columns"].update(more={"role": "other"}),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_recipe_that_is_wrong_is_refused(
    custodian: Custodian, recipe: dict[str, Any], served: Running, what: str
) -> None:
    damaged = json.loads(json.dumps(recipe))
    DAMAGES[what](damaged)
    job = sent(custodian, "recipe", json.dumps(damaged).encode())
    assert job["status"] == "failed"
    assert "Something went wrong inside" not in job["error"]
    assert str(served.workspaces.get(custodian.workspace).folder) not in job["error"]
    assert "passwd" not in job["error"]
    assert leftovers(served, custodian) == []
    custodian.get("release", 409)


@pytest.mark.parametrize("content", [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b"NaN", b'{"recipe": 1}'])
def test_what_is_no_recipe_is_refused(custodian: Custodian, served: Running, content: bytes) -> None:
    job = sent(custodian, "recipe", content)
    assert job["status"] == "failed"
    assert "Something went wrong inside" not in job["error"]
    assert "upload-" not in job["error"]
    assert leftovers(served, custodian) == []


def test_a_recipe_that_is_too_large_is_refused(
    custodian: Custodian, served: Running, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(uploads, "MAX_RECIPE_BYTES", 1000)
    answer = custodian.http.post(custodian.url("recipe"), content=b"[" + b" " * 2000 + b"]")
    assert answer.status_code == 413
    assert leftovers(served, custodian) == []


def test_a_release_is_checked_and_not_kept(custodian: Custodian, served: Running) -> None:
    custodian.work("release")
    release = custodian.http.get(custodian.url("files/release")).content
    assert sent(custodian, "check", release, **{"x-file-name": "release.csv"})["status"] == "done"
    assert custodian.get("check")["verified"] is True
    table = served.workspaces.get(custodian.workspace).table.path
    assert table is not None
    assert sent(custodian, "check", table.read_bytes(), **{"x-file-name": "raw.csv"})["status"] == "done"
    checked = custodian.get("check")
    assert checked["verified"] is False
    assert any("identifier 'name'" in reason for reason in checked["reasons"])
    assert leftovers(served, custodian) == []


@pytest.mark.parametrize(("name", "status"), [("release.exe", 422), ("../../release", 422)])
def test_only_tables_are_checked(custodian: Custodian, name: str, status: int) -> None:
    answer = custodian.http.post(custodian.url("check"), content=b"a\n1\n", headers={"x-file-name": name})
    assert answer.status_code == status


def test_a_broken_release_is_refused_without_its_path(custodian: Custodian, served: Running) -> None:
    job = sent(custodian, "check", b"a,a\n1,2\n", **{"x-file-name": "broken.csv"})
    assert job["status"] == "failed"
    assert "upload-" not in job["error"]
    assert leftovers(served, custodian) == []


@pytest.mark.parametrize("path", ["recipe", "check"])
def test_uploads_need_a_session_and_an_own_workspace(
    custodian: Custodian, served: Running, path: str
) -> None:
    with served.anyone() as anyone:
        assert anyone.post(custodian.url(path), content=b"{}").status_code == 401
    assert custodian.http.post(f"/api/workspaces/of-somebody-else/{path}", content=b"{}").status_code == 404
