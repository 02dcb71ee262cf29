"""Everything that commands write besides a release is for its owner alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from shoal.cli.app import app
from shoal.sample import bundled

COMMANDS: dict[str, str] = {
    "init": "init admissions.csv --output first.yaml --yes",
    "utility": "utility admissions.csv release.csv --policy policy.yaml --plots plots",
    "risk": "risk admissions.csv --policy policy.yaml --plots plots",
    "diagnose": "diagnose admissions.csv --columns age,sex --plots plots",
    "rows": "diagnose admissions.csv --question rows --k 3 --columns age,sex --rows rows.txt",
    "profile": "profile admissions.csv --policy policy.yaml --output f.profile",
    "compare": "compare admissions.csv --policy policy.yaml --algorithm ola --output rows.csv --plots plots",
}


@pytest.fixture
def open_umask() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_writes_is_closed_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.chdir(tmp_path)
    bundled(tmp_path)
    if "release.csv" in COMMANDS[command]:
        release = "anonymize admissions.csv --policy policy.yaml --output release.csv"
        assert CliRunner().invoke(app, release.split()).exit_code == 0
    before = set(tmp_path.rglob("*"))
    result = CliRunner().invoke(app, COMMANDS[command].split())
    assert result.exit_code == 0, result.stderr
    made = set(tmp_path.rglob("*")) - before
    assert made
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in made}
    assert all(mode in (0o600, 0o700) for mode in modes.values()), modes
