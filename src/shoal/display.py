"""What the command line shows: tables that a custodian understands, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def show_release(release: Any) -> None:
    """Show what became of each column, what was kept, lost and proven."""
    from rich.table import Table

    screen = console()
    examples = release.examples()
    table = Table(title="What became of each column", title_justify="left")
    for heading in ("column", "role", "level", "released as"):
        table.add_column(heading)
    for name, column in release.policy.columns.items():
        if name in release.levels:
            hierarchy = next(h for h in release.hierarchies if h.name == name)
            level = f"{release.levels[name]} of {hierarchy.height}"
            table.add_row(escaped(name), column.role.value, level, escaped(examples[name]))
        else:
            fate = "removed" if column.role.value == "identifier" else "as is"
            table.add_row(escaped(name), column.role.value, "", fate)
    screen.print(table)
    result = release.to_dict()
    suppressed = release.suppressed
    fate = f"{release.masked:,} masked" if release.masked else f"{suppressed:,} suppressed"
    rows = {
        "records": f"{release.records - suppressed:,} kept, {fate} ({suppressed / release.records:.1%})",
        "classes": f"{result['classes']:,}, the smallest of {result['smallest_class']} records",
        "loss": f"{release.loss:,.10g} ({result['metric']})",
        "proven": f"{result['proven']} among {release.lattice_size:,} nodes ({release.algorithm}, "
        f"{result['nodes_evaluated']:,} evaluated)",
        "verified": "yes, counted afresh from what was written",
        "seconds": ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in release.seconds.items()),
        "release": str(release.output),
        "recipe": f"{release.recipe} (private: keep it)",
        "codebook": str(release.codebook),
    }
    show_pairs(rows)


def show_verification(found: Any) -> None:
    """Show what a fresh count says of a release."""
    rows = {
        "verified": "yes" if found.verified else "NO",
        "records": f"{found.records:,}" + (f", of which {found.masked:,} masked" if found.masked else ""),
        "classes": f"{found.classes:,}, the smallest of {found.smallest_class} records",
    }
    for check in found.models:
        verdict = "passed" if check.passed else f"{check.violating_records:,} records violate it"
        rows[check.model] = verdict
    for number, reason in enumerate(found.reasons, 1):
        rows[f"reason {number}"] = reason
    show_pairs(rows)


def show_rows(title: str, path: Path) -> None:
    """Show a few records of a text table, a column each."""
    import csv

    from rich.table import Table

    with open(path, encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    table = Table(title=title, title_justify="left", show_header=False)
    few = rows[:: max(1, len(rows) // 3)][:3]
    for name, *cells in zip(header, *few, strict=True):
        table.add_row(f"[bold]{escaped(name)}[/bold]", *map(escaped, cells))
    console().print(table)


def show_pairs(rows: Mapping[str, str]) -> None:
    """Print names and values, a line each however long, so that paths can be copied."""
    width = max(map(len, rows))
    for name, value in rows.items():
        console().print(f"[bold]{name:<{width}}[/bold]  {escaped(value)}", soft_wrap=True, highlight=False)


def escaped(text: str) -> str:
    """Keep brackets of the data from being read as markup."""
    from rich.markup import escape

    return escape(text)


def console(*, stderr: bool = False) -> Any:
    """Return where to print: results to stdout, messages to stderr."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=stderr)


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object to stdout."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
