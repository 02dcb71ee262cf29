"""Comparisons of searches: their rows, tables, plots and output files."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from shoal.document.document import Code, Document, Figure, HasDocument, PlainValues, Strip, Table
from shoal.errors import OutputError, UsageError
from shoal.files.outputs import check_file, written_whole
from shoal.wording import percent, plural


@dataclass(frozen=True, kw_only=True)
class ComparisonRow(PlainValues):
    """The result and the cost of one search; numbers are None if there is no result."""

    algorithm: str
    k: int | None
    limit: int | float | str  # as given
    limit_records: int
    metric: str
    loss: float | None = None
    relative_loss: float | None = None  # a multiple of the optimum: 1 is optimal
    retained: float | None = None  # share of the information that is left; suppressed records retain nothing
    losses: dict[str, float] | None = None  # of the result, by every metric that applies
    levels: dict[str, int] | None = None
    suppressed: float | None = None
    candidates: float | None = None
    candidate_nodes: list[dict[str, Any]] | None = None  # the best candidates, if requested
    nodes_evaluated: float | None = None
    loss_evaluations: float | None = None
    nodes_tagged: float | None = None
    nodes_compared: float | None = None
    subset_evaluations: float | None = None
    column_counts: float | None = None
    candidate_graph: dict[str, int] | None = None  # of incognito: the number of its nodes and edges
    rows_scanned: float | None = None
    node_score: float | None = None
    seconds: float | None = None
    proven: str | None = None
    runs: int = 0  # number of searches that are averaged
    search_space: list[dict[str, int]] | None = None  # of incognito, by the number of columns
    outcome: str | None = None  # refused, infeasible or out of time; None after a complete search
    reason: str | None = None  # why, and what works; does not name the algorithm
    note: str | None = None  # the outcome and the whole message
    records: int
    lattice_size: int

    @property
    def limit_asked(self) -> tuple[str, str]:
        """The limit with its type: 1 is one record, 1.0 is all records."""
        return type(self.limit).__name__, str(self.limit)


# Columns whose cells are written as JSON in a CSV file.
_MAPPINGS = ("levels", "losses", "candidate_nodes", "candidate_graph", "search_space")

RowValue = Callable[[ComparisonRow], float | None]


def comparison_plots(rows: Sequence[ComparisonRow]) -> list[Figure]:
    """Return the plots of a comparison; notes name the searches without a result."""
    order = list(dict.fromkeys(row.algorithm for row in rows))
    plots = []
    for metric in dict.fromkeys(row.metric for row in rows):
        of_metric = [row for row in rows if row.metric == metric]
        with_result = [row for row in of_metric if row.loss is not None]
        layout = _Layout.of(of_metric)
        prefix = re.sub(r"[^a-z0-9]+", "-", metric.lower())
        for name, title, quantities in _quantities(with_result):
            strips = [
                layout.strip(with_result, *quantity, percent=name != "seconds") for quantity in quantities
            ]
            strips = [strip for strip in strips if any(strip.panels)]
            if strips:
                labels = (
                    f"{prefix}-{name}",
                    f"{title}: {metric}",
                    layout.headings,
                    layout.across,
                    layout.ticks,
                )
                notes = layout.notes(of_metric)
                plots.append(Figure(*labels, strips, order, notes=notes, bars=layout.single))
    return plots + _search_spaces(rows)


def _search_spaces(rows: Sequence[ComparisonRow]) -> list[Figure]:
    """Draw how incognito narrows its search, for its first row of each k and limit."""
    plots: dict[str, Figure] = {}
    for row in rows:
        if row.search_space:
            k = "" if row.k is None else f"k = {row.k:,}, "
            parts = ["search-space", row.algorithm, *([] if row.k is None else [f"k{row.k}"]), str(row.limit)]
            name = re.sub(r"[^a-z0-9]+", "-", "-".join(parts).lower()).strip("-")
            allowed = f"at most {plural(row.limit_records, 'record')} suppressed"
            title = f"Search space of {row.algorithm}: {k}{allowed}"
            plots.setdefault(name, _search_space(name, title, row.search_space))
    return list(plots.values())


_SPACE = {"all nodes": "nodes", "candidates": "candidates", "counted": "counted"}


def _search_space(name: str, title: str, space: Sequence[Mapping[str, int]]) -> Figure:
    """Draw the number of nodes by size of the sets; the scale is logarithmic if needed."""
    lines = {
        label: [(float(of_size["columns"]), float(of_size[key])) for of_size in space if of_size[key]]
        for label, key in _SPACE.items()
    }
    panel = {label: points for label, points in lines.items() if points}
    ticks = {float(of_size["columns"]): str(of_size["columns"]) for of_size in space}
    strips = [Strip("nodes", [panel], percent=False)]
    return Figure(name, title, [""], "columns in a set", ticks, strips, list(panel))


def loss_and_time(rows: Sequence[ComparisonRow]) -> list[Figure]:
    """Return one plot per metric with the loss and the time of each search."""
    plots: list[Figure] = []
    for plot in comparison_plots(rows):
        if plot.name.endswith("-loss"):
            plots.append(replace(plot, title=plot.title.replace("Information lost", "Loss and time")))
        elif plot.name.endswith("-seconds"):
            metric = plot.name.removesuffix("-seconds")
            if plots and plots[-1].name == f"{metric}-loss":
                plots[-1] = replace(plots[-1], strips=[*plots[-1].strips, *plot.strips])
            else:  # no optimum is known
                plots.append(plot)
    return plots


def _quantities(rows: Sequence[ComparisonRow]) -> Iterator[tuple[str, str, list[tuple[str, RowValue]]]]:
    """Yield each quantity's name and title and, for each of its strips, a label and the value of a row."""
    ola = {(row.limit_asked, row.k): row for row in rows if row.algorithm == "ola"}

    def of_lattice(name: str) -> RowValue:
        return lambda row: _ratio(getattr(row, name), row.lattice_size)

    def of_ola(name: str) -> RowValue:
        return lambda row: _ratio(getattr(row, name), getattr(ola.get((row.limit_asked, row.k)), name, None))

    yield "loss", "Information lost", [("loss\n(optimum = 100%)", lambda row: row.relative_loss)]
    parts = [("nodes evaluated", of_lattice("nodes_evaluated")), ("candidates", of_lattice("candidates"))]
    yield ("nodes", "Nodes of the lattice", [(f"{label}\n(lattice = 100%)", value) for label, value in parts])
    if ola:
        cost = [("node score", of_ola("node_score")), ("nodes compared", of_ola("nodes_compared"))]
        yield "cost", "Work relative to ola", [(f"{label}\n(ola = 100%)", value) for label, value in cost]
    yield "seconds", "Time of a search", [("seconds", lambda row: row.seconds)]


def _ratio(part: float | None, whole: float | None) -> float | None:
    return None if part is None or not whole else part / whole


@dataclass(frozen=True)
class _Layout:
    """The axes of a plot: k on the x axis and a panel per limit; with a single k, limits on the x axis."""

    limits: list[tuple[str, str]]  # type and value of each limit
    ks: list[int | None]  # the k that have a result
    single: bool  # there is one limit and one k

    @classmethod
    def of(cls, rows: Sequence[ComparisonRow]) -> _Layout:
        limits = dict.fromkeys(row.limit_asked for row in sorted(rows, key=lambda row: row.limit_records))
        with_result = [row for row in rows if row.loss is not None]
        ks = sorted({row.k for row in with_result}, key=lambda k: k or 0)
        keys = {(row.limit_asked, row.k) for row in with_result}
        return cls([limit for limit, _ in keys] if len(keys) == 1 else list(limits), ks, len(keys) == 1)

    @property
    def by_k(self) -> bool:
        return len(self.ks) > 1

    @property
    def headings(self) -> list[str]:
        if self.by_k:
            return [f"limit {limit}" for _, limit in self.limits]
        limit = f"limit {self.limits[0][1]}" if self.single else ""
        return [", ".join(filter(None, ["" if k is None else f"k = {k}", limit])) for k in self.ks]

    @property
    def across(self) -> str:
        return "k" if self.by_k else "suppression limit"

    @property
    def ticks(self) -> dict[float, str]:
        if self.by_k:
            return {float(k or 0): str(k) for k in self.ks}
        return {float(index): limit for index, (_, limit) in enumerate(self.limits)}

    def panel(self, row: ComparisonRow) -> int:
        return self.limits.index(row.limit_asked) if self.by_k else 0

    def strip(self, rows: Sequence[ComparisonRow], label: str, value: RowValue, *, percent: bool) -> Strip:
        """Sort rows into panels and lines."""
        panels: list[dict[str, list[tuple[float, float]]]] = [{} for _ in self.headings]
        for row in sorted(rows, key=lambda row: (row.limit_records, row.k or 0)):
            y = value(row)
            x = (row.k or 0) if self.by_k else self.limits.index(row.limit_asked)
            if y is not None:
                panels[self.panel(row)].setdefault(row.algorithm, []).append((x, y))
        return Strip(label, panels, percent)

    def notes(self, rows: Sequence[ComparisonRow]) -> list[str]:
        """Return, for each panel, the searches without a result, and why."""
        missing: list[dict[str, list[ComparisonRow]]] = [{} for _ in self.headings]
        for row in rows:
            if row.limit_asked in self.limits and row.k in self.ks:
                missing[self.panel(row)].setdefault(row.algorithm, []).append(row)
        return [_note(searches) for searches in missing]


def _note(searches: Mapping[str, Sequence[ComparisonRow]]) -> str:
    """Name the searches without a result, grouped by the reason."""
    names: dict[str, list[str]] = {}
    for name, rows in searches.items():
        if all(row.outcome for row in rows):
            names.setdefault(str(rows[0].outcome), []).append(name)
    return "\n".join(
        f"{'all' if len(searches_without) == len(searches) > 1 else ', '.join(searches_without)} {why} here"
        for why, searches_without in names.items()
    )


ENDINGS = (".csv", ".json")


@dataclass(frozen=True)
class Comparison(HasDocument):
    """A row for every metric, limit, k and algorithm, in that order."""

    rows: tuple[ComparisonRow, ...]

    def to_dicts(self) -> list[dict[str, Any]]:
        """Return the rows as plain values."""
        return [row.to_dict() for row in self.rows]

    def to_json(self) -> str:
        """Write the rows as JSON, one row per line."""
        return "[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in self.to_dicts()) + "\n]\n"

    def to_csv(self) -> str:
        """Write the rows as CSV; None is an empty cell, and mappings such as levels are written as JSON."""
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, [field.name for field in fields(ComparisonRow)], lineterminator="\n")
        writer.writeheader()
        for row in self.to_dicts():
            written = {name: row[name] and json.dumps(row[name], ensure_ascii=False) for name in _MAPPINGS}
            writer.writerow(row | written)
        return text.getvalue()

    def write(self, path: str | Path, *, force: bool = False) -> None:
        """Write the rows to a CSV or JSON file, by extension; only its owner can read it."""
        path = Path(path)
        check_output(path, force=force)
        text = self.to_csv() if path.suffix == ".csv" else self.to_json()
        with written_whole(path) as file:
            file.write(text.encode())

    def plot(self) -> Any:
        """Draw the loss and the time of each search, for each metric, with matplotlib."""
        from shoal.document.figures import draw_all

        plots = loss_and_time(self.rows)
        if not plots:
            raise UsageError(
                "No search of this comparison has a result to draw. The notes of its rows say why."
            )
        return draw_all(plots)

    def document(self) -> Document:
        """Describe the results and costs: a table for each metric, with the best search first."""
        metrics = dict.fromkeys(row.metric for row in self.rows)
        tables = [
            _metric_table(metric, [row for row in self.rows if row.metric == metric]) for metric in metrics
        ]
        return Document(
            title=f"Comparison of {plural(len(self.rows), 'search', 'searches')}",
            tables=tables,
            notes=list(_reasons(self.rows)),
            hints=[("Loss and time: ", Code("plot()"), "; all figures: ", Code("to_csv()"), ".")],
            figures=comparison_plots(self.rows),
        )


def _reasons(rows: Sequence[ComparisonRow]) -> Iterator[str]:
    """Yield each reason why rows have no result once, with its text for the smallest k."""
    all_searches = _grouped(((row.algorithm, row.metric, row.limit_asked), row) for row in rows)
    without = _grouped(
        ((row.algorithm, row.metric, row.limit_asked, row.outcome), row) for row in rows if row.outcome
    )
    limits_of = _grouped(
        (
            (
                name,
                metric,
                _ks(failed, all_searches[name, metric, limit]),
                f"{failed[0].outcome}: {failed[0].reason}",
            ),
            limit[1],
        )
        for (name, metric, limit, _), failed in without.items()
    )
    lines = _grouped(((*key, tuple(limits)), name) for (name, *key), limits in limits_of.items())
    for (metric, ks, note, limits), algorithms in lines.items():
        yield f"{', '.join(algorithms)} ({metric}, limit {', '.join(limits)}{ks}): {note}"


def _ks(failed: Sequence[ComparisonRow], all_searches: Sequence[ComparisonRow]) -> str:
    """Name the k of the rows without a result; "" if no row has a result."""
    if len(failed) == len(all_searches):
        return ""
    return f", k {failed[0].k}" + (f" to {failed[-1].k}" if len(failed) > 1 else "")


def _grouped(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, list[Any]]:
    groups: dict[Any, list[Any]] = {}
    for key, value in pairs:
        groups.setdefault(key, []).append(value)
    return groups


# Columns to leave out on a narrow screen, in this order.
_OPTIONAL = (
    "node\nscore", "rows\nread", "subset\ncounts", "nodes\ncompared", "of the\nlattice",
    "records\nsuppressed", "ms", "nodes\nevaluated", "proven",
)  # fmt: skip


def _metric_table(metric: str, rows: Sequence[ComparisonRow]) -> Table:
    shared: dict[str, set[Any]] = {"limit": {str(row.limit) for row in rows}, "k": {row.k for row in rows}}
    common = {name: values.pop() for name, values in shared.items() if len(values) == 1}
    settings = [f"{name} {value}" for name, value in common.items() if value is not None]
    size = plural(rows[0].records, "record"), plural(rows[0].lattice_size, "node")
    headers = [header for header in _cells(rows[0]) if header not in common]
    lines = []
    for group in _grouped(((row.limit_asked, row.k), row) for row in rows).values():
        for number, row in enumerate(sorted(group, key=_best_first)):
            cells = _cells(row) | (
                {"limit": "", "k": ""} if number else {}
            )  # a group's limit and k are shown once
            lines.append([cells[header] for header in headers])
    return Table(
        ", ".join([metric, *settings, *size]),
        headers,
        lines,
        left=[headers.index("algorithm"), headers.index("proven")],
        optional=[headers.index(header) for header in _OPTIONAL],
    )


def _best_first(row: ComparisonRow) -> tuple[Any, ...]:
    last = float("inf")
    loss = last if row.loss is None else row.loss
    return round(row.relative_loss or last, 9), loss, row.nodes_evaluated or last, row.algorithm


def _cells(row: ComparisonRow) -> dict[str, str]:
    return {
        "limit": str(row.limit),
        "k": "" if row.k is None else str(row.k),
        "algorithm": row.algorithm,
        "loss /\noptimum": "" if row.relative_loss is None else f"{row.relative_loss:.2%}",
        "retained": "" if row.retained is None else percent(row.retained),
        "records\nsuppressed": _number(row.suppressed),
        "nodes\nevaluated": _number(row.nodes_evaluated),
        "of the\nlattice": f"{row.nodes_evaluated / row.lattice_size:.1%}" if row.nodes_evaluated else "",
        "nodes\ncompared": _number(row.nodes_compared),
        "subset\ncounts": _number(row.subset_evaluations),
        "rows\nread": _abbreviated(row.rows_scanned),
        "node\nscore": _abbreviated(row.node_score),
        "ms": "" if row.seconds is None else f"{row.seconds * 1000:,.1f}",
        "proven": row.proven or str(row.outcome),
    }


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.0f}"


def _abbreviated(value: float | None) -> str:
    if value is None:
        return ""
    for size, sign in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.1f}{sign}"
    return f"{value:.0f}"


class Stopped(KeyboardInterrupt):
    """Raised by Ctrl-C during a comparison; has the finished rows."""

    def __init__(self, finished: Comparison, total: int) -> None:
        super().__init__(f"{len(finished.rows):,} of {total:,} rows are finished.")
        self.finished = finished
        self.total = total


def check_output(
    path: Path, *, force: bool, table: Any = None, inputs: Mapping[Path, str] | None = None
) -> None:
    """Raise if a comparison cannot be written to a file, or would overwrite a file without permission."""
    if path.suffix not in ENDINGS:
        raise OutputError(f"A comparison is written as {' or '.join(ENDINGS)}, got {path.name!r}.")
    check_file(path, force=force, table=table, inputs=inputs)
