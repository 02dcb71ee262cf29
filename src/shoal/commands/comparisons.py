"""How a comparison is shown: a table per metric, the best first, and why rows have no result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from shoal.display import console, escaped
from shoal.errors import so_many


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
    title = ", ".join(
        [metric, *told, so_many(rows[0].records, "record"), so_many(rows[0].lattice_size, "node")]
    )
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
