"""How a study is shown: tables of suppression, of grouping power and of what parts of a profile answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from shoal.display import console, escaped, say


def show_study(study: Any) -> None:
    """Show what a profile tells of its lattice."""
    at = f"{study.model} = {study.least}"
    if study.sensitive:
        at += f" of {study.sensitive}"
    over = f"{study.nodes:,} of {study.lattice_size:,} nodes"
    _suppression(study, f"Suppression by height, {at} ({over})", "height", study.by_height)
    _suppression(study, f"Suppression by {study.model} ({over})", study.model, study.by_strength)
    title = f"Suppression by quasi-identifiers below their top level, {at} ({over})"
    _suppression(study, title, "columns", study.by_columns)
    _grouping(study.grouping)
    if study.agreement:
        _agreement(study)


def _suppression(study: Any, title: str, heading: str, rows: Sequence[Any]) -> None:
    n = study.records
    headings = (heading, "nodes", "least", "share", "mean", "share", "largest", "share")
    lines = [
        (
            str(row.at), f"{row.nodes:,}", f"{row.least:,}", _share(row.least, n), f"{row.mean:,.1f}",
            _share(row.mean, n), f"{row.largest:,}", _share(row.largest, n),
        )
        for row in rows
    ]  # fmt: skip
    _table(title, headings, lines)


def _grouping(powers: Sequence[Any]) -> None:
    headings = ("column", "level", "groups", "average size", "relative importance")
    lines = []
    shown = None
    for power in powers:
        name = "" if power.column == shown else power.column
        shown = power.column
        cells = (f"{power.groups:,}", f"{power.size:,.2f}", f"{power.importance:.3f}")
        lines.append((name, str(power.level), *cells))
    _table("Grouping power of each level, the other columns as they are", headings, lines, left={0})


def _agreement(study: Any) -> None:
    headings = (
        "share", "nodes", "run-time\nnode", "same", "other", "failed", "height\nmean", "height\nmost",
        "suppressed\nmean", "suppressed\nmost",
    )  # fmt: skip
    lines = [
        (
            one.share, f"{one.nodes:,}", "yes" if one.runtime else "no", str(one.same), str(one.other),
            str(one.failed), f"{one.height:.2f}", str(one.most_height), f"{one.suppressed:+,.0f}",
            f"{one.most_suppressed:+,}",
        )
        for one in study.agreement
    ]  # fmt: skip
    title = (
        f"Partial profiles beside this one, over {study.answered:,} requests that have an exact answer here"
    )
    _table(title, headings, lines)
    say(
        "same: the same node; other: another that will do, so much higher and with so many more records "
        "suppressed than here; failed: no answer."
    )


def _share(number: float, records: int) -> str:
    return f"{number / records:.2%}"


def _table(
    title: str, headings: Sequence[str], lines: Iterable[Sequence[str]], left: set[int] | None = None
) -> None:
    from rich import box
    from rich.table import Table

    console().print(f"[italic]{escaped(title)}[/italic]", highlight=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for place, heading in enumerate(headings):
        table.add_column(heading, justify="left" if place in (left or ()) else "right")
    for line in lines:
        table.add_row(*map(escaped, line))
    console().print(table)
