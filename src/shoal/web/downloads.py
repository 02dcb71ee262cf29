"""Downloads: the files of a release, their names and types."""

from __future__ import annotations

import re
from pathlib import Path

from shoal.inspection import table_endings
from shoal.release import Release

_KINDS = {".xlsx": "Excel", ".sav": "SPSS", ".sas7bdat": "SAS", ".dta": "Stata"}
UPLOADED = table_endings()  # of tables that can be uploaded
ENDINGS = tuple(one for one in UPLOADED if one != ".txt")  # offered from a folder
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


def kinds() -> str:
    """Name the kinds of files that can be read here."""
    found = ["CSV", "TSV", "text", "Parquet", "Arrow", *(_KINDS[one] for one in UPLOADED if one in _KINDS)]
    return f"{', '.join(found[:-1])} or {found[-1]}"


def stem(name: str | None) -> str:
    """Return what a release's name begins with: the table's, in plain letters.

    >>> stem("My data.csv.gz"), stem(None)
    ('My_data', 'table')
    """
    found = name or "table"
    for ending in UPLOADED:
        if found.lower().endswith(ending):
            found = found[: -len(ending)]
            break
    return re.sub(r"[^A-Za-z0-9_-]", "_", found)[:60] or "table"


def media_type(path: Path) -> str:
    """Return the type that a download is sent as."""
    return _TYPES.get(path.suffix, "application/octet-stream")
