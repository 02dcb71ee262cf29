"""How close to the least loss are searches over cuts, and how long do they take?

Adult with nine quasi-identifiers, the values in the order of ARX's hierarchies, DM, and no suppression limit,
as in the paper of k-optimize (Bayardo and Agrawal 2005); age in decades, and in single years. Writes
docs/cuts.md from `SECTIONS`.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pyarrow.csv
from setting import adult, machine, write_page

from shoal.algorithms import ALGORITHMS
from shoal.core.evaluation import Evaluation
from shoal.core.problem import Problem
from shoal.engines import ENGINES
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.search import search
from shoal.workflow.session import session

NINE = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
)  # fmt: skip
KS = (5, 10, 25, 50, 100)


def main() -> None:
    """Measure, print the tables, and write the page of the documentation."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60, help="for each search of k-optimize")
    parser.add_argument("--docs", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    lines = []
    for line in _page(arguments.seconds):
        print(line, flush=True)
        lines.append(line)
    write_page(arguments.docs / "cuts.md", "\n".join(lines))


def _page(seconds: float) -> Iterator[str]:
    yield "# Cuts, measured"
    yield ""
    yield "`python benchmarks/cuts.py` writes this page; do not edit it by hand."
    yield ""
    yield f"{datetime.now(UTC):%Y-%m-%d}, {machine()}."
    for section in SECTIONS:
        yield ""
        yield from section(seconds)


def _k_optimize(seconds: float) -> Iterator[str]:
    yield "## k-optimize"
    yield ""
    yield (
        "The UCI Adult table (30,162 records), nine quasi-identifiers, [DM](metrics/discernibility.md), "
        f"without a limit on suppressed records. [k-optimize](algorithms/k-optimize.md) had {seconds:g} "
        "seconds of processor time for each k. *Bound*: no set of cuts costs less. *Gap*: the cost is above "
        "the least cost by at most this much; 0 means that the least cost was found and proven. *Nodes*: the "
        "number of evaluated nodes of the search tree. The other columns are the cost of "
        "[greedy-cuts](algorithms/greedy-cuts.md) and of the best node of the same hierarchies. The kernels "
        "were compiled before; counting is not included."
    )
    for title, years in (("Age in decades", 10), ("Age in single years", 1)):
        problems = [_problem(k, years) for k in KS]
        _warm(problems[-1])
        yield ""
        yield f"{title}: {_cuts(problems[0])} cuts, {len(problems[0].counts):,} combinations."
        yield ""
        yield "| k | cost | suppressed | bound | gap | seconds | nodes | greedy-cuts | seconds | best node |"
        yield "|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
        for k, problem in zip(KS, problems, strict=True):
            cpu, result = _timed(problem, "k-optimize", seconds)
            greedy_cpu, greedy = _timed(problem, "greedy-cuts", None)
            _, node = _timed(problem, "contour", None)
            bound = result.lower_bound or 0.0
            gap = f"{result.loss / bound - 1:.1%}" if result.loss > bound else "0"
            yield (
                f"| {k} | {result.loss:,.0f} | {result.suppressed} | {bound:,.0f} | {gap} | {cpu:.1f} | "
                f"{result.work.nodes_compared:,} | {greedy.loss:,.0f} | {greedy_cpu:.2f} | {node.loss:,.0f} |"
            )


SECTIONS: tuple[Callable[[float], Iterator[str]], ...] = (_k_optimize,)


def _cuts(problem: Problem) -> int:
    return sum(len(counts) - 1 for counts in problem.value_counts)


def _warm(problem: Problem) -> None:
    """Compile the kernels, or load them from the cache."""
    _timed(problem, "k-optimize", 1.0)


def _timed(problem: Problem, name: str, seconds: float | None) -> tuple[float, Evaluation]:
    """Search; time limits and results are in processor time, so that other processes have no influence."""
    start = time.process_time()
    with patch.object(time, "monotonic", time.process_time):
        _, result = search(problem, ALGORITHMS.create(name), seconds=seconds)
    return time.process_time() - start, result


def _problem(k: int, years: int) -> Problem:
    """Return Adult with age in bands of `years`; each band counts as one value."""
    root = adult()
    table = pa.csv.read_csv(root / "adult.csv")
    position = table.column_names.index("age")
    ages = [age // years * years for age in table["age"].to_pylist()]
    table = table.set_column(position, "age", pa.array(ages))
    columns: dict[str, Any] = {"hours-per-week": {"role": "other"}}
    for name in NINE:
        file = str(root / "hierarchies-arx" / f"{name}.csv")
        hierarchy: Any = {"intervals": [20, 40]} if name == "age" else {"csv": file}
        columns[name] = {"role": "quasi-identifier", "hierarchy": hierarchy}
    policy = Policy.load(
        {
            "columns": columns,
            "models": [{"k-anonymity": {"k": k}}],
            "suppression_limit": "100%",
            "metric": "discernibility",
        }
    )
    engine = ENGINES.create("duckdb")
    return problem_of(policy, *counted(session(table, engine).table, policy))


if __name__ == "__main__":
    main()
