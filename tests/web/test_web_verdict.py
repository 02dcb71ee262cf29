"""A release that is not verified is not handed out."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
pytest.importorskip("nicegui", reason="the pages need shoal[web]")
from shoal.web.errors import NotReady
from shoal.web.pages import start
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.statements import guarantee_statement
from studio import Custodian, running


def test_a_release_that_is_not_verified_cannot_be_downloaded(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path)
    workspace.open_sample()
    workspace.draft.change(algorithm="mu-argus", same_level=[], models=[{"k-anonymity": {"k": 5}}])
    assert not workspace.release.run().verification.verified
    assert "not verified: " in (workspace.release.withheld or "")
    assert "release" not in workspace.release.files()
    assert "report" in workspace.release.files()
    for name in ("release", "sensitive-table"):
        with pytest.raises(NotReady, match="not verified: "):
            workspace.release.file(name)
    workspace.draft.change(algorithm="auto")
    workspace.release.run()
    assert workspace.release.withheld is None
    assert workspace.release.file("release").is_file()


def test_the_api_refuses_a_release_that_is_not_verified() -> None:
    with running() as studio, studio.client() as http:
        custodian = Custodian(http)
        custodian.work("table", source="sample")
        custodian.put("settings", algorithm="mu-argus", same_level=[], models=[{"k-anonymity": {"k": 5}}])
        custodian.work("release")
        released = custodian.get("release")
        assert released["verified"] is False
        assert "release" not in released["files"]
        answer = http.get(custodian.url("files/release"))
        assert answer.status_code == 409
        assert "not verified" in answer.json()["error"]
        assert http.get(custodian.url("files/report")).status_code == 200


@pytest.mark.parametrize(
    ("name", "holds", "not_promised"),
    [
        ("mu-argus", "none of the models", "only known from counting"),
        ("anatomy", "for each group", "does not hide who is in the data"),
        ("datafly", "every model holds", "does not guarantee that nothing else loses less"),
        ("mondrian", "every model holds", "does not guarantee that nothing else loses less"),
        ("contour", "every model holds", "unless time runs out"),
    ],
)
def test_each_algorithm_says_what_it_does_not_guarantee(name: str, holds: str, not_promised: str) -> None:
    sentence = guarantee_statement(name)
    assert holds in sentence
    assert not_promised in sentence


def test_the_records_of_the_first_page_are_those_of_the_sample(tmp_path: Path) -> None:
    def records(path: Path) -> list[dict[str, str]]:
        with path.open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    workspace = Workspace(tmp_path)
    workspace.open_sample()
    assert workspace.table.path is not None
    names = ("name", "age", "sex", "postcode", "admitted", "diagnosis")
    sample = [tuple(row[name] for name in names) for row in records(workspace.table.path)]
    assert set(start.BEFORE) <= set(sample)
    workspace.release.run()
    released = [tuple(row[name] for name in names[1:]) for row in records(workspace.release.file("release"))]
    assert {row[1:] for row in start.AFTER} <= set(released)
    assert len({row[1:5] for row in start.AFTER}) == 1  # they look alike
