"""What does each search find, and at what cost? All searches on Adult, k = 2 to 15.

Two sets of hierarchies, three limits, three metrics. Published claims about OLA and similar searches are
compared with the results. Writes docs/family.md and its plots. With `--journals`, a stopped run can be
resumed.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from math import exp, fsum, log
from pathlib import Path
from statistics import fmean
from typing import Any

from setting import adult, machine, write_page

import shoal
from shoal.document.figures import save
from shoal.workflow.compare.comparison import ComparisonRow, comparison_plots

KS = tuple(range(2, 16))
LIMITS = ("1%", "5%", "10%")
METRICS = ("precision", "discernibility-star", "non-uniform-entropy")
ALGORITHMS: tuple[Any, ...] = (
    "ola", "contour", "exhaustive", "samarati", "all-minimal", "incognito",
    {"incognito": {"variant": "super-roots"}}, {"incognito": {"variant": "cube"}},
    {"datafly": {"ties": "random"}},
)  # fmt: skip
INCOGNITO = "incognito"
DATAFLY = "datafly:ties=random"
SETS = {
    "hierarchies-arx": (
        "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
        "salary-class",
    ),
    "hierarchies-study": (
        "age", "education", "marital-status", "occupation", "race", "sex", "workclass",
    ),
}  # fmt: skip
COLUMNS = (*SETS["hierarchies-arx"], "hours-per-week")
PLOTS = ("loss", "nodes", "cost")  # plots for one metric of each set
PLOTTED = "non-uniform-entropy"

Rows = Sequence[ComparisonRow]


def main() -> None:
    """Compare, print the tables, and write the page of the documentation with its plots."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--journals", type=Path, help="a folder in which finished rows are kept")
    parser.add_argument("--k", type=int, nargs="+", default=KS)
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        journals = arguments.journals or Path(temporary)
        journals.mkdir(parents=True, exist_ok=True)
        comparisons = {
            name: _compared(name, columns, arguments.k, journals) for name, columns in SETS.items()
        }
    text = "\n".join(_page(comparisons, arguments.docs / "plots"))
    write_page(arguments.docs / "family.md", text)
    print(text)


def _compared(name: str, columns: Sequence[str], ks: Sequence[int], journals: Path) -> Rows:
    root = adult()
    written: dict[str, Any] = {column: {"role": "other"} for column in COLUMNS}
    for column in columns:
        del written[column]  # so that quasi-identifiers stand in the set's order
        file = str(root / name / f"{column}.csv")
        written[column] = {"role": "quasi-identifier", "hierarchy": {"csv": file}}
    return shoal.compare(
        root / "adult.csv",
        {"columns": written, "models": [{"k-anonymity": {"k": 2}}]},
        algorithms=ALGORITHMS,
        k=ks,
        suppression_limits=LIMITS,
        metrics=METRICS,
        journal=journals / f"{name}.part",
        progress=_print_progress,
    ).rows


def _print_progress(phase: str, finished: int, total: int | None) -> None:
    if sys.stderr.isatty():
        print(f"\r{phase} {finished} of {total}   ", end="", file=sys.stderr)


def _page(comparisons: dict[str, Rows], plots: Path) -> Iterator[str]:
    """Yield the lines of the page."""
    ks = sorted({row.k for rows in comparisons.values() for row in rows if row.k})
    yield "# The family of searches"
    yield ""
    yield "`python benchmarks/family.py` writes this page and its plots; do not edit it by hand."
    yield ""
    yield (
        f"The UCI Adult table, k-anonymity, k = {ks[0]} to {ks[-1]}, suppression limits {', '.join(LIMITS)}, "
        "with two sets of hierarchies: those of ARX's tests (nine columns) and those of a published study "
        "(seven). The kernels were compiled before, the table was counted once, and the time is that of the "
        "search alone. Every figure is from [`shoal compare`](compare.md); `datafly:ties=random` is the "
        "mean of 100 runs."
    )
    yield ""
    yield f"{datetime.now(UTC):%Y-%m-%d}, {machine()}."
    yield ""
    yield "## What was published, measured here"
    yield ""
    yield from _shapes(comparisons)
    yield ""
    yield "## contour beside ola"
    yield ""
    yield from _contour(comparisons)
    for name, rows in comparisons.items():
        yield ""
        yield f"## {name}: {rows[0].lattice_size:,} nodes"
        for title, path in _plotted(name, rows, plots):
            yield ""
            yield f"![{title}]({path})"
        for metric in METRICS:
            yield ""
            yield f"### {metric}, {name}"
            yield ""
            yield from _summary([row for row in rows if row.metric == metric])


def _plotted(name: str, rows: Rows, folder: Path) -> Iterator[tuple[str, str]]:
    """Draw a selection of plots; yield the title and the path of each."""
    chosen = [row for row in rows if row.metric == PLOTTED and ":variant" not in row.algorithm]
    for plot in comparison_plots(chosen):
        if plot.name.removeprefix(f"{PLOTTED}-") in PLOTS:
            (path,) = save([plot], folder / name, ["png"])
            yield plot.title, f"plots/{name}/{path.name}"


def _summary(rows: Rows) -> Iterator[str]:
    """Yield the means over k for each limit and algorithm."""
    yield (
        "| limit | algorithm | loss, optimum = 100% | at the optimum | evaluated, of the lattice "
        "| compared, ola = 1 | node score, ola = 1 | seconds |"
    )
    yield "|--:|---|--:|--:|--:|--:|--:|--:|"
    for limit in LIMITS:
        for algorithm in dict.fromkeys(row.algorithm for row in rows):
            selected = [row for row in rows if (row.limit, row.algorithm) == (limit, algorithm)]
            solved = [row for row in selected if row.loss is not None]
            if not solved:
                yield f"| {limit} | `{algorithm}` | {selected[0].note} | | | | | |"
                continue
            cells = (
                f"{fmean(_relative(solved)):.1%}",
                f"{_share(solved, lambda row: row.relative_loss == 1.0):.0%} of k",
                f"{fmean((row.nodes_evaluated or 0) / row.lattice_size for row in solved):.1%}",
                f"{_geometric(_ratios(rows, 'nodes_compared', solved, 'ola')):.3g}",
                f"{_geometric(_ratios(rows, 'node_score', solved, 'ola')):.3g}",
                f"{_geometric(row.seconds or 0 for row in solved):.4f}",
            )
            yield f"| {limit} | `{algorithm}` | {' | '.join(cells)} |"
    yield ""
    yield "Averages over k: the mean for shares, the geometric mean for ratios and seconds."


def _contour(comparisons: dict[str, Rows]) -> Iterator[str]:
    """Yield how many times more nodes ola evaluates, and how much longer it takes, over the whole grid."""
    yield "The figure of ola divided by that of contour, as the geometric mean over all k and limits:"
    yield ""
    yield "| hierarchies | metric | nodes evaluated | node score | seconds |"
    yield "|---|---|--:|--:|--:|"
    grid: list[tuple[str, str, Rows]] = [
        (name, metric, [row for row in rows if row.metric == metric])
        for name, rows in comparisons.items()
        for metric in METRICS
    ]
    grid.append(("all", "all", [row for rows in comparisons.values() for row in rows]))
    for name, metric, rows in grid:
        ola = [row for row in rows if row.algorithm == "ola" and row.loss is not None]
        cells = [
            f"{_geometric(_ratios(rows, figure, ola, 'contour')):.1f}"
            for figure in ("nodes_evaluated", "node_score", "seconds")
        ]
        yield f"| {name} | {metric} | {' | '.join(cells)} |"


@dataclass(frozen=True)
class Shape:
    """A published claim, and the function that measures it."""

    claim: str
    answer: Callable[[Rows], str]


def _shapes(comparisons: dict[str, Rows]) -> Iterator[str]:
    yield "| claim | " + " | ".join(comparisons) + " |"
    yield "|---|" + "---|" * len(comparisons)
    for shape in SHAPES:
        yield f"| {shape.claim} | " + " | ".join(shape.answer(rows) for rows in comparisons.values()) + " |"


def _of(rows: Rows, algorithm: str) -> list[ComparisonRow]:
    return [row for row in rows if row.algorithm == algorithm and row.loss is not None]


def _under_half(rows: Rows) -> str:
    shares = [(row.nodes_evaluated or 0) / row.lattice_size for row in _of(rows, "ola")]
    count = sum(share < 0.5 for share in shares)
    return f"{_of_all(count, len(shares))}; {min(shares):.1%} to {max(shares):.1%}, mean {fmean(shares):.1%}"


def _fewer_than_incognito(rows: Rows) -> str:
    ratios = list(_ratios(rows, "nodes_evaluated", _of(rows, INCOGNITO), "ola"))
    every = [_counts(row) / _counts(other) for row, other in _pairs(rows, _of(rows, INCOGNITO), "ola")]
    return (
        f"nodes of the lattice: {_of_all(sum(r > 1 for r in ratios), len(ratios))}, "
        f"incognito {_geometric(ratios):.2f} times ola's; "
        f"with counts over fewer columns: {_of_all(sum(r > 1 for r in every), len(every))}, "
        f"{_geometric(every):.2f} times"
    )


def _counts(row: ComparisonRow) -> float:
    return (row.nodes_evaluated or 0) + (row.subset_evaluations or 0)


def _compares(rows: Rows) -> str:
    ratios = list(_ratios(rows, "nodes_compared", _of(rows, INCOGNITO), "ola"))
    return f"{_geometric(ratios):.1f} times; {min(ratios):.1f} to {max(ratios):.1f}"


def _means(rows: Rows) -> str:
    texts = []
    for metric in METRICS:
        of_metric = [row for row in rows if row.metric == metric]
        means = [fmean(_relative(_of(of_metric, name))) for name in ("samarati", DATAFLY)]
        texts.append(f"{metric}: {means[0]:.1%} and {means[1]:.1%}")
    return "; ".join(texts)


def _optimal(rows: Rows) -> str:
    texts = []
    for metric in METRICS:
        of_metric = [row for row in rows if row.metric == metric]
        shares = [
            _share(_of(of_metric, name), lambda row: row.relative_loss == 1.0)
            for name in ("samarati", DATAFLY)
        ]
        texts.append(f"{metric}: {shares[0]:.0%} and {shares[1]:.0%}")
    return "; ".join(texts)


SHAPES = (
    Shape("ola evaluates less than half of the lattice", _under_half),
    Shape("ola evaluates fewer nodes than incognito", _fewer_than_incognito),
    Shape("incognito compares many times more nodes than ola", _compares),
    Shape("loss relative to the optimum, mean over k and limits: samarati and datafly", _means),
    Shape("share of k and limits for which the optimum is reached: samarati and datafly", _optimal),
)


def _of_all(number: int, of: int) -> str:
    word = "yes" if number == of else "no" if not number else "in part"
    return f"{word} ({number} of {of})"


def _relative(rows: Iterable[ComparisonRow]) -> list[float]:
    return [row.relative_loss for row in rows if row.relative_loss is not None]


def _share(rows: Rows, holds: Callable[[ComparisonRow], bool]) -> float:
    return sum(map(holds, rows)) / len(rows)


def _pairs(rows: Rows, chosen: Rows, algorithm: str) -> Iterator[tuple[ComparisonRow, ComparisonRow]]:
    """Yield pairs of a selected row and the algorithm's row with the same metric, limit and k."""
    others = {(row.metric, row.limit, row.k, row.lattice_size): row for row in _of(rows, algorithm)}
    for row in chosen:
        other = others.get((row.metric, row.limit, row.k, row.lattice_size))
        if other is not None:
            yield row, other


def _ratios(rows: Rows, figure: str, chosen: Rows, algorithm: str) -> Iterator[float]:
    """Yield the ratio of a figure of the selected rows to that of the algorithm's rows."""
    for row, other in _pairs(rows, chosen, algorithm):
        if getattr(other, figure):
            yield getattr(row, figure) / getattr(other, figure)


def _geometric(values: Iterable[float]) -> float:
    """Return the geometric mean of the positive values; nan if there are none."""
    logs = [log(value) for value in values if value > 0]
    return exp(fsum(logs) / len(logs)) if logs else float("nan")


if __name__ == "__main__":
    main()
