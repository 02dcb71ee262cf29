"""Downloads: the files of a release, and CSV made safe for programs that run what begins like a formula."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path

from shoal.release import Release

ENDINGS = (".csv.gz", ".csv", ".tsv", ".parquet", ".arrow", ".feather")  # of tables that are read
_BEGINS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet takes for a formula
_TYPES = {
    ".csv": "text/csv; charset=utf-8",
    ".tsv": "text/tab-separated-values; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".json": "application/json",
    ".yaml": "application/yaml",
}


def files_of(release: Release) -> dict[str, Path]:
    """Return the files of a release by what they are, as far as they are there."""
    if not isinstance(release.output, Path):
        return {}
    recipe, second = release.recipe, release.sensitive_table
    paths = {
        "release": release.output,
        "recipe": recipe,
        "audit": recipe and recipe.parent / "audit.json",
        "policy": release.output.parent / "policy.yaml",
        "codebook": release.codebook,
        "report": release.report,
        "sensitive-table": second if isinstance(second, Path) else None,
    }
    return {name: path for name, path in paths.items() if path is not None and path.is_file()}


def stem(name: str | None) -> str:
    """Return what a release's name begins with: the table's, in plain letters.

    >>> stem("My data.csv.gz"), stem(None)
    ('My_data', 'table')
    """
    found = name or "table"
    for ending in ENDINGS:
        if found.lower().endswith(ending):
            found = found[: -len(ending)]
            break
    return re.sub(r"[^A-Za-z0-9_-]", "_", found)[:60] or "table"


def media_type(path: Path) -> str:
    """Return the type that a download is sent as."""
    return _TYPES.get(path.suffix, "application/octet-stream")


def is_text_table(path: Path) -> bool:
    """Tell whether a file can be made safe for a spreadsheet."""
    return path.suffix in (".csv", ".tsv")


def safe_cell(cell: str) -> str:
    """Put an apostrophe before what a spreadsheet would run.

    >>> safe_cell("=1+1"), safe_cell("20-29"), safe_cell("-5")
    ("'=1+1", '20-29', "'-5")
    """
    return f"'{cell}" if cell.startswith(_BEGINS) else cell


def safe_lines(path: Path) -> Iterator[str]:
    """Read a text table with every cell made safe, header too; a negative number becomes text as well."""
    delimiter = "\t" if path.suffix == ".tsv" else ","
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.reader(file, delimiter=delimiter):
            line = io.StringIO(newline="")
            csv.writer(line, delimiter=delimiter, lineterminator="\n").writerow(map(safe_cell, row))
            yield line.getvalue()
