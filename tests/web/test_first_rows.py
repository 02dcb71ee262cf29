"""The first rows of a release in each of its formats."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("fastapi", reason="the studio needs shoal[web]")
from shoal.core.rows import RowRequest
from shoal.web.workspace.release import FORMATS
from shoal.web.workspace.workspace import Workspace
from shoal.workflow.inspect import RowBrowser


@pytest.mark.parametrize("form", FORMATS)
def test_the_first_rows_are_those_of_the_file(tmp_path: Path, form: str) -> None:
    workspace = Workspace(tmp_path)
    workspace.open_sample()
    workspace.release.run(form)
    page = workspace.rows.page("release", RowRequest(count=5))
    workspace.close()
    assert page.columns[:3] == ("age", "sex", "postcode")
    assert len(page.rows) == 5
    assert page.rows[0].values[0] == "0-19"


def test_a_long_value_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "long.csv"
    path.write_text(f"a\n{'x' * 5_000}\n")
    browser = RowBrowser(path)
    (row,) = browser.page(RowRequest()).rows
    browser.close()
    assert row.values[0] is not None
    assert len(row.values[0]) < 1_000
