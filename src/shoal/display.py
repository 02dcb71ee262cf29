"""What the command line shows: tables that a custodian understands, and JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any


def show_release(release: Any) -> None:
    """Show what became of each column, what was kept, lost and proven."""
    from rich.table import Table

    screen = console()
    table = Table(title="What became of each column", title_justify="left")
    for heading in ("column", "role", "level", "released as"):
        table.add_column(heading)
    for fate in release.fates():
        table.add_row(escaped(fate.column), fate.role, fate.level, escaped(fate.released_as))
    screen.print(table)
    if release.outliers:
        show_outliers(release.outliers)
    result = release.to_dict()
    suppressed = release.suppressed
    lost = f"{release.masked:,} masked" if release.masked else f"{suppressed:,} suppressed"
    blanks = f", {release.cells:,} cells blanked" if release.cells else ""
    share = f"{suppressed / release.records:.1%}"
    rows = {
        "records": f"{release.records - suppressed:,} kept, {lost} ({share}){blanks}",
        "classes": f"{result['classes']:,}, the smallest of {result['smallest_class']} records",
        "loss": f"{release.loss:,.10g} ({result['metric']})",
        "proven": _proven(release, result),
        "verified": _verified(release.verification, release.algorithm),
        "seconds": ", ".join(f"{phase} {seconds:.2f}" for phase, seconds in release.seconds.items()),
        "release": str(release.output),
        "recipe": f"{release.recipe} (private: keep it)",
        "codebook": str(release.codebook),
    }
    if result["lower_bound"] is not None:
        rows["proven"] = _within(release.loss, result["lower_bound"], release.algorithm)
    if release.outliers:
        rows["proven"] = f"no tested combination is shared by fewer than {release.outliers.k} records"
    if release.report is not None:
        rows["report"] = f"{release.report} (private: keep it)"
    if release.sensitive_table is not None:
        rows["second table"] = str(release.sensitive_table)
    show_pairs(rows)


def _proven(release: Any, result: Mapping[str, Any]) -> str:
    """Say what the search proved, and among what."""
    if release.start is None:
        return f"{result['proven']} ({release.algorithm})"
    looked = f"{release.lattice_size:,} nodes ({release.algorithm}, {result['nodes_evaluated']:,} evaluated)"
    if release.levels is None:
        return f"{result['proven']}, finer than the node it began with, chosen among {looked}"
    return f"{result['proven']} among {looked}"


def _within(loss: float, least: float, algorithm: str) -> str:
    """Say how far a loss can be from the least of its kind."""
    if loss <= least:
        return f"least loss among cuts by order ({algorithm})"
    far = f"within {loss / least - 1:.1%} of the least" if least > 0 else "acceptable; the least is not known"
    return f"{far} among cuts by order ({algorithm}, not proven to be the least)"


def _verified(found: Any, algorithm: str) -> str:
    """Say what was counted afresh, and what the release alone does not show."""
    if not found.verified:
        broken = " and ".join(dict.fromkeys(check.model for check in found.models if check.passed is False))
        return f"NO: {'; '.join(found.reasons)}; {algorithm} does not promise {broken}"
    before = list(dict.fromkeys(check.model for check in found.models if check.passed is None))
    judged = f"; {' and '.join(before)} {'was' if len(before) == 1 else 'were'} judged before writing"
    return "yes, counted afresh from what was written" + (judged if before else "")


def show_outliers(outliers: Any, most: int = 15) -> None:
    """Show which columns are rare together, by numbers; never a value."""
    from rich.table import Table

    title = f"Fewer than {outliers.k} records share these, before cells are blanked"
    table = Table(title=title, title_justify="left")
    table.add_column("columns")
    for heading in ("rare combinations", "records"):
        table.add_column(heading, justify="right")
    for one in outliers.found[:most]:
        table.add_row(escaped(", ".join(one.columns)), f"{one.combinations:,}", f"{one.records:,}")
    if outliers.found:
        console().print(table)
    more = len(outliers.found) - most
    rest = f" {more:,} more of them are not shown." if more > 0 else ""
    sets = f"{len(outliers.found):,} of {outliers.tested:,} tested sets of columns have rare combinations"
    line = f"{sets}, in {outliers.records:,} records.{rest}"
    console().print(line, soft_wrap=True, highlight=False)


def show_verification(found: Any) -> None:
    """Show what a fresh count says of a release."""
    rows = {
        "verified": "yes" if found.verified else "NO",
        "records": f"{found.records:,}" + (f", of which {found.masked:,} masked" if found.masked else ""),
        "classes": f"{found.classes:,}, the smallest of {found.smallest_class} records",
    }
    for check in found.models:
        verdict = "passed" if check.passed else f"{check.violating_records:,} records violate it"
        if check.passed is None:
            verdict = "not checkable on the release alone"
        elif not check.passed and not check.violating_records:
            verdict = "violated by the release as a whole"
        told = ", ".join(f"{option} {value}" for option, value in check.options.items())
        rows[f"{check.model} ({told})" if told else check.model] = verdict
    for number, reason in enumerate((*found.reasons, *found.unchecked), 1):
        rows[f"reason {number}"] = reason
    show_pairs(rows)


def show_comparison(rows: Sequence[Any]) -> None:
    """Show what each search found and cost: a table per metric, the best of each limit and k first."""
    for metric in dict.fromkeys(row.metric for row in rows):
        _show_metric(metric, [row for row in rows if row.metric == metric])
    for line in _notes(rows):
        console().print(line, markup=False, highlight=False)


def _notes(rows: Sequence[Any]) -> Iterator[str]:
    """Yield why rows have no result: once for an algorithm, a metric and a limit, as of the first k."""
    there = _grouped(((row.algorithm, row.metric, row.limit_asked), row) for row in rows)
    without = _grouped((_concerned(row), row) for row in rows if row.note)
    alike = _grouped(
        ((algorithm, metric, _few_k(found, there[algorithm, metric, limit]), _short_note(found[0])), limit[1])
        for (algorithm, metric, limit, _), found in without.items()
    )
    lines = _grouped(((*told, tuple(limits)), algorithm) for (algorithm, *told), limits in alike.items())
    for (metric, few, note, limits), algorithms in lines.items():
        yield f"{', '.join(algorithms)} ({metric}, limit {', '.join(limits)}{few}): {note}"


def _concerned(row: Any) -> tuple[Any, ...]:
    return row.algorithm, row.metric, row.limit_asked, row.note.partition(":")[0]


def _short_note(row: Any) -> str:
    """Leave out who refused: the line names it."""
    word, _, text = row.note.partition(": ")
    reason = text.partition(": ")[2] if word == "refused" else ""
    return f"{word}: {reason or text}"


def _few_k(found: Sequence[Any], there: Sequence[Any]) -> str:
    """Name the k that rows are of, unless every row is among them."""
    if len(found) == len(there):
        return ""
    return f", k {found[0].k}" + (f" to {found[-1].k}" if len(found) > 1 else "")


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    found: dict[Any, list[Any]] = {}
    for key, value in pairs:
        found.setdefault(key, []).append(value)
    return found


def _show_metric(metric: str, rows: Sequence[Any]) -> None:
    groups: dict[tuple[Any, Any], list[dict[str, str]]] = {(row.limit_asked, row.k): [] for row in rows}
    for row in sorted(rows, key=_best_first):
        groups[row.limit_asked, row.k].append(_cells(row))
    shared = {"limit": {str(row.limit) for row in rows}, "k": {row.k for row in rows}}
    alone = {name: values.pop() for name, values in shared.items() if len(values) == 1}
    told = [f"{name} {value}" for name, value in alone.items() if value is not None]
    title = ", ".join([metric, *told, f"{rows[0].records:,} records", f"{rows[0].lattice_size:,} nodes"])
    shown = [heading for heading in next(iter(groups.values()))[0] if heading not in alone]
    screen = console()
    endless = screen.options.update(width=10_000)
    table = _comparison_table(title, groups.values(), shown)
    for heading in _LEAST_FIRST:
        if screen.measure(table, options=endless).maximum > screen.width:
            shown = [other for other in shown if other != heading]
            table = _comparison_table(title, groups.values(), shown)
    screen.print(table)


# Headings to leave out on a narrow screen, in this order.
_LEAST_FIRST = (
    "node\nscore", "rows\nread", "subset\ncounts", "nodes\ncompared", "of the\nlattice",
    "records\nsuppressed", "ms", "nodes\nevaluated", "proven",
)  # fmt: skip


def _comparison_table(title: str, groups: Iterable[Sequence[Mapping[str, str]]], shown: Sequence[str]) -> Any:
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False, padding=0)
    for heading in shown:
        left = heading in ("algorithm", "proven")
        table.add_column(heading, justify="left" if left else "right", no_wrap=True)
    for lines in groups:
        for number, line in enumerate(lines):
            told = {"limit": "", "k": ""} if number else {}  # what a group shares is told once
            table.add_row(*[escaped(told.get(heading, line[heading])) for heading in shown])
        table.add_section()
    return table


def _best_first(row: Any) -> tuple[Any, ...]:
    none = float("inf")
    loss = none if row.loss is None else row.loss
    return round(row.relative_loss or none, 9), loss, row.nodes_evaluated or none, row.algorithm


def _cells(row: Any) -> dict[str, str]:
    """Return a row's cells by their headings, in the order in which they are shown."""
    found = row.loss is not None
    share = row.nodes_evaluated / row.lattice_size if found else 0.0
    return {
        "limit": str(row.limit),
        "k": "" if row.k is None else str(row.k),
        "algorithm": row.algorithm,
        "loss /\noptimum": "" if row.relative_loss is None else f"{row.relative_loss:.2%}",
        "records\nsuppressed": _number(row.suppressed),
        "nodes\nevaluated": _number(row.nodes_evaluated),
        "of the\nlattice": f"{share:.1%}" if found else "",
        "nodes\ncompared": _number(row.nodes_compared),
        "subset\ncounts": _number(row.subset_evaluations),
        "rows\nread": _short(row.rows_scanned),
        "node\nscore": _short(row.node_score),
        "ms": f"{row.seconds * 1000:,.1f}" if found else "",
        "proven": row.proven or row.note.partition(":")[0],
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _short(value: float | None) -> str:
    """Write a large number with few digits."""
    if value is None:
        return ""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{sign}"
    return f"{value:.0f}"


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
        padding = " " * (width - len(name))
        line = f"[bold]{escaped(name)}[/bold]{padding}  {escaped(value)}"
        console().print(line, soft_wrap=True, highlight=False)


def escaped(text: str) -> str:
    """Keep brackets of the data from being read as markup."""
    from rich.markup import escape

    return escape(text)


def console(*, stderr: bool = False) -> Any:
    """Return where to print: results to stdout, messages to stderr."""
    from rich.console import Console

    return Console(stderr=stderr, soft_wrap=stderr)


def print_json(data: Any) -> None:
    """Print one JSON value to stdout."""
    sys.stdout.write(json.dumps(data, ensure_ascii=False, default=str) + "\n")
