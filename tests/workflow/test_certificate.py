"""The certificate of a release: what was guaranteed, proven and lost, without values of the data."""

from __future__ import annotations

import csv
import hashlib
import html
import re
from pathlib import Path

import pytest

import shoal
from shoal.sample import bundled
from shoal.workflow.report.certificate import certificate


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    home = tmp_path_factory.mktemp("certificate")
    data, policy = bundled(home)
    shoal.anonymize(data, policy, output=home / "release.csv", report=True)
    return data, home / "release.csv", home / "release.csv.private" / "certificate.html"


def words_of(page: str) -> str:
    body = page[page.index("<body") :]
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", body)).split())


def test_a_certificate_names_the_file_and_says_what_holds(written: tuple[Path, Path, Path]) -> None:
    _, release, path = written
    text = words_of(path.read_text(encoding="utf-8"))
    assert hashlib.sha256(release.read_bytes()).hexdigest() in text
    for part in (
        "Verified: every model holds",
        "Every record looks like at least 4 others in the quasi-identifiers.",
        "contour guarantees that every model holds",
        "161 records of 5,000 (3.2%) were suppressed",
        "82.5% of the information",
        "discharged identifier removed",
        "Ethics board",
    ):
        assert part in text


def test_a_certificate_holds_no_value_of_the_data(written: tuple[Path, Path, Path]) -> None:
    data, release, path = written
    text = words_of(path.read_text(encoding="utf-8"))
    values: set[str] = set()
    for table in (data, release):
        with table.open(encoding="utf-8", newline="") as file:
            values |= {value for row in csv.DictReader(file) for value in row.values() if value}
    long = [value for value in values if not value.isdigit() and len(value) > 2]
    found = {value for value in long if re.search(rf"\b{re.escape(value)}\b", text)}
    assert not found - {"other"}  # also the name of a role


def test_a_certificate_loads_nothing_and_runs_nothing(written: tuple[Path, Path, Path]) -> None:
    page = written[2].read_text(encoding="utf-8")
    assert "default-src 'none'" in html.unescape(page)
    assert not re.search(r"<script|<img|<link|https?://", page)


def test_options_of_models_that_are_no_numbers_are_left_out(tmp_path: Path) -> None:
    data, policy = bundled(tmp_path)
    release = shoal.anonymize(data, policy)
    checks = tuple(
        type(check)(**{**vars(check), "options": {**check.options, "secret": ["Rosa Khan"]}})
        for check in release.verification.models
    )
    verification = type(release.verification)(**{**vars(release.verification), "models": checks})
    assert "Rosa" not in certificate(type(release)(**{**vars(release), "verification": verification}))


def test_without_a_report_there_is_no_certificate(tmp_path: Path) -> None:
    data, policy = bundled(tmp_path)
    shoal.anonymize(data, policy, output=tmp_path / "release.csv")
    assert not (tmp_path / "release.csv.private" / "certificate.html").exists()
