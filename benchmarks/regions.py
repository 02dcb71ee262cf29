"""What do regions, finer classes and blanked cells keep, and how long do they take?

Adult with eight quasi-identifiers (all columns but salary-class, age as numbers), k = 5, kernels warm, the
search timed with everything from counts to labels; one million generated rows from file to release. The
peers were measured outside this project: the best Mondrian package in Python has classes of 7.9 records
and loses 2.9% in 31 s, the fastest has classes of 8.7 in 0.36 s and takes 14.5 s for a million rows; ARX's
local recoding reaches a coverage loss of 0.084 in 1.2 s. The page docs/regions.md is rewritten.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
from setting import adult, machine, write_page

import shoal
from shoal.core.evaluation import Evaluation
from shoal.core.problem import Problem
from shoal.document.document import Figure, Strip
from shoal.document.figures import save
from shoal.engines import ENGINES
from shoal.metrics import METRICS
from shoal.models import MODELS
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.search import search
from shoal.workflow.session import session

EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
NINE = (*EIGHT, "salary-class")
EVERY = (*NINE, "hours-per-week")
WAYS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("mondrian", {}),
    ("mondrian", {"choose": "loss"}),
    ("mondrian", {"choose": "entropy"}),
    ("mondrian", {"categorical": "hierarchy"}),
    ("mondrian", {"relaxed": True}),
)
KS = (2, 5, 10, 25, 50, 100, 250, 500, 1000)
LINES: dict[str, tuple[str, dict[str, Any]]] = {
    "incognito": ("incognito", {}),
    "mondrian": ("mondrian", {}),
    "mondrian, relaxed": ("mondrian", {"relaxed": True}),
}
MILLION = 1_000_000
RUNS = 3


def main() -> None:
    """Measure, print the tables, and write the page of the documentation with the plot."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rows", type=int, default=MILLION)
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    text = "\n".join(_page(arguments.rows, arguments.docs / "plots"))
    write_page(arguments.docs / "regions.md", text)
    print(text)


def _page(rows: int, plots: Path) -> Iterator[str]:
    yield "# Regions, measured"
    yield ""
    yield "`python benchmarks/regions.py` writes this page and its plot; do not edit it by hand."
    yield ""
    yield (
        "The UCI Adult table (30,162 records), k = 5, the hierarchies of ARX's tests, age as numbers. The "
        "seconds are those of the search, with kernels compiled before, as the best of three runs; counting "
        "is not included. *Coverage* is the [coverage](metrics/coverage.md) loss (NCP), and *class* is the "
        "average class size in records."
    )
    yield ""
    yield f"{datetime.now(UTC):%Y-%m-%d}, {machine()}."
    yield ""
    yield "## mondrian"
    yield ""
    yield (
        "Eight quasi-identifiers. Other tools, measured separately: the best Mondrian package in Python has "
        "classes of 7.9 records and a coverage loss of 2.9% in 31 s; the fastest package has classes of 8.7 "
        "records in 0.36 s."
    )
    yield ""
    yield "| search | class | coverage | DM | seconds |"
    yield "|---|--:|--:|--:|--:|"
    problem = _problem(EIGHT, 0, "coverage")
    for name, options in WAYS:
        yield _line(problem, name, options)
    yield _line(problem, "contour", {})
    yield ""
    yield from _million(rows)
    yield ""
    yield "## refine and cells"
    yield ""
    yield (
        "Nine quasi-identifiers, the best node for coverage at each limit, and the results of `refine` and "
        "`cells` from it. The local recoding of ARX reaches 0.084 in 1.2 s with nothing suppressed, "
        "measured separately."
    )
    yield ""
    yield "| limit | way | coverage | suppressed | cells blanked | class | seconds |"
    yield "|--:|---|--:|--:|--:|--:|--:|"
    for share in (0, 0.05, 1):
        whole = _problem(NINE, share, "coverage")
        for title, finish in (("node", {}), ("refine", {"refine": True}), ("cells", {"cells": True})):
            seconds, result = _best(whole, "contour", finish)
            cells = result.recoding.cells if result.recoding else 0
            yield (
                f"| {share:.0%} | {title} | {result.loss:.4f} | {result.suppressed:,} | {cells:,} | "
                f"{whole.records / result.classes:.1f} | {seconds:.2f} |"
            )
    yield ""
    yield "## DM and class size over k"
    yield ""
    yield (
        "Eight quasi-identifiers, nothing suppressed, as in the Mondrian paper (LeFevre et al. 2006): the "
        "best node by each metric compared with the regions of mondrian."
    )
    yield ""
    yield f"![DM and class size over k]({_over_k(plots)})"


def _line(problem: Problem, name: str, options: dict[str, Any]) -> str:
    seconds, result = _best(problem, name, options)
    text = ", ".join(f"{option}: {value}".lower() for option, value in options.items())
    charged = replace(problem, metric=METRICS.create("discernibility"))
    dm = _search_result(charged, name, options).loss
    size = problem.records / result.classes
    shown = f"{name} ({text})" if text else name
    return f"| {shown} | {size:.2f} | {result.loss:.2%} | {dm:,.0f} | {seconds:.3f} |"


def _million(rows: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "generated.parquet"
        _generate(path, rows)
        columns = {name: {"role": "quasi-identifier", "hierarchy": "flat"} for name in _COLUMNS}
        policy = {"columns": columns, "models": [{"k-anonymity": {"k": 5}}], "algorithm": "mondrian"}
        start = time.perf_counter()
        release = shoal.anonymize(
            path, policy | {"metric": "coverage"}, output=path.with_name("release.parquet")
        )
        seconds = time.perf_counter() - start
    phases = ", ".join(f"{phase} {took:.1f}" for phase, took in release.seconds.items())
    yield (
        f"{rows:,} generated rows ({len(_COLUMNS)} columns of 2 to 100 values, nearly all combinations "
        f"distinct), from a Parquet file to the verified release: {seconds:.1f} s ({phases}); "
        f"{release.evaluation.classes:,} classes. The fastest other tool takes 14.5 s."
    )


_COLUMNS = {
    "sex": 2,
    "age": 100,
    "zip": 100,
    "job": 14,
    "school": 16,
    "race": 5,
    "land": 41,
    "work": 8,
    "hours": 99,
}


def _generate(path: Path, rows: int) -> None:
    random = np.random.default_rng(8)
    data = {
        name: random.binomial(values - 1, random.uniform(0.2, 0.8, rows)) for name, values in _COLUMNS.items()
    }
    pa.parquet.write_table(pa.table(data), path)


def _over_k(plots: Path) -> str:
    panels: list[dict[str, list[tuple[float, float]]]] = [{}, {}]
    for index, metric in enumerate(("discernibility", "class-size")):
        problem = _problem(EIGHT, 0, metric)
        for label, (name, options) in LINES.items():
            line = []
            for across, k in enumerate(KS):
                stricter = replace(problem, models=(MODELS.create("k-anonymity", {"k": k}),))
                line.append((float(across), _search_result(stricter, name, options).loss))
            panels[index][label] = line
    plot = Figure(
        name="regions-over-k",
        title="Adult, eight columns: regions beside the best node",
        headings=[""],
        across="k",
        ticks={float(index): str(k) for index, k in enumerate(KS)},
        strips=[Strip("DM", panels[:1], percent=False), Strip("class size, in k", panels[1:], percent=False)],
        order=list(LINES),
    )
    (path,) = save([plot], plots / "regions", ["png"])
    return f"plots/regions/{path.name}"


def _search_result(problem: Problem, name: str, options: dict[str, Any]) -> Evaluation:
    policy = Policy.load(
        {
            "columns": {"x": {"role": "quasi-identifier", "hierarchy": "flat"}},
            "models": [{"k-anonymity": {"k": 2}}],
            "algorithm": {name: options},
        }
    )
    return search(replace(problem), policy.search_algorithm, **policy.finishing)[1]


def _best(problem: Problem, name: str, options: dict[str, Any]) -> tuple[float, Evaluation]:
    times = []
    for _ in range(RUNS + 1):  # the first run compiles the kernels or loads them
        start = time.perf_counter()
        result = _search_result(problem, name, options)
        times.append(time.perf_counter() - start)
    return min(times[1:]), result


def _problem(quasi: Sequence[str], share: float, metric: str) -> Problem:
    root = adult()
    columns: dict[str, Any] = {name: {"role": "other"} for name in EVERY}
    for name in quasi:
        del columns[name]
        file = str(root / "hierarchies-arx" / f"{name}.csv")
        columns[name] = {"role": "quasi-identifier", "hierarchy": {"csv": file}}
    policy = Policy.load(
        {
            "columns": columns,
            "models": [{"k-anonymity": {"k": 5}}],
            "suppression_limit": float(share),
            "metric": metric,
        }
    )
    engine = ENGINES.create("duckdb")
    counts, domains = counted(session(root / "adult.csv", engine).table, policy)
    return problem_of(policy, counts, domains)


if __name__ == "__main__":
    main()
