"""How long does each search take to prove the optimum on Adult, and how much work does it do?

Nine quasi-identifiers, 12,960 nodes, non-uniform entropy. Kernels are compiled before, and times are the best
of several runs. The figures for comparison are those published for ARX's Flash on the same table, hierarchies
and metric.
"""

from __future__ import annotations

import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from setting import adult, machine

from shoal.algorithms import ALGORITHMS
from shoal.engines import ENGINES
from shoal.policy.policy import Policy
from shoal.workflow.problem import problem_of
from shoal.workflow.search import search

COLUMNS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
)  # fmt: skip
KS = (2, 5, 10, 25)
LIMITS = ("0%", "1%", "5%", "10%")
SEARCHES = ("contour", "exhaustive", "ola")  # benchmarks/family.py has all of them
RUNS = 3


def main() -> None:
    """Print the table of the documentation."""
    root = adult()
    engine = ENGINES.create("duckdb")
    counted = engine.count(engine.open(root / "adult.csv"), COLUMNS)
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. 30,162 records, {len(counted[0]):,} combinations.\n")
    print("| k | limit | algorithm | seconds | nodes evaluated | rows scanned | node score | least loss |")
    print("|--:|--:|---|--:|--:|--:|--:|--:|")
    for k in KS:
        for limit in LIMITS:
            problem = problem_of(_policy(root, k, limit), *counted)
            for name in SEARCHES:
                _print_row(k, limit, name, problem)


def _print_row(k: int, limit: str, name: str, problem: Any) -> None:
    seconds = []
    for _ in range(RUNS):
        start = time.perf_counter()
        _, result = search(problem, ALGORITHMS.create(name))
        seconds.append(time.perf_counter() - start)
    work = result.work
    cells = (k, limit, name, f"{min(seconds):.3f}", f"{work.nodes_evaluated:,}", f"{work.rows_scanned:,}")
    print("| " + " | ".join(map(str, (*cells, f"{work.node_score:,.0f}", f"{result.loss:,.1f}"))) + " |")
    sys.stdout.flush()


def _policy(root: Path, k: int, limit: str) -> Policy:
    files = {name: str(root / "hierarchies-arx" / f"{name}.csv") for name in COLUMNS}
    return Policy.load(
        {
            "columns": {
                name: {"role": "quasi-identifier", "hierarchy": {"csv": file}} for name, file in files.items()
            },
            "models": [{"k-anonymity": {"k": k}}],
            "suppression_limit": limit,
        }
    )


if __name__ == "__main__":
    main()
