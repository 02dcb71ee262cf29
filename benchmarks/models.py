"""How long does it take to prove the optimum with each privacy model, and to measure, on Adult?

Eight quasi-identifiers, 4,320 nodes, occupation as the sensitive column, k = 5 in addition to each model,
limit 5%, non-uniform entropy. Kernels are compiled before. Times are the best of several runs, without
counting. ARX takes 0.9 s for t = 0.2 on the same table, and pycanon more than 30 s for its nine measures.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from setting import adult, machine

from shoal.engines import ENGINES
from shoal.policy.policy import Policy
from shoal.workflow.measure import measured
from shoal.workflow.problem import count, counted, problem_of
from shoal.workflow.search import search
from shoal.workflow.session import session

COLUMNS = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "salary-class")
SENSITIVE = "occupation"
MODELS: tuple[dict[str, dict[str, Any]], ...] = (
    {"distinct-l-diversity": {"l": 3}},
    {"entropy-l-diversity": {"l": 3}},
    {"recursive-cl-diversity": {"c": 3, "l": 3}},
    {"p-sensitive": {"p": 3, "k": 5}},
    {"alpha-k-anonymity": {"alpha": 0.5, "k": 5}},
    {"t-closeness": {"t": 0.2}},
    {"t-closeness": {"t": 0.2, "distance": "ordered"}},
    {"t-closeness": {"t": 0.2, "distance": "hierarchical"}},
    {"basic-beta-likeness": {"beta": 2}},
    {"enhanced-beta-likeness": {"beta": 2}},
    {"delta-disclosure": {"delta": 2}},
    {"delta-disclosure": {"delta": 2, "present_only": True}},
    {"average-risk": {"risk": 0.01}},
    {"sample-uniqueness": {"share": 0.001}},
    {"k-map": {"k": 20, "population": "population.csv"}},
    {"delta-presence": {"maximum": 0.55, "population": "population.csv"}},
)
RUNS = 3

T = TypeVar("T")


def main() -> None:
    """Print the tables of the documentation."""
    root = adult()
    with tempfile.TemporaryDirectory() as folder:
        population = _write_population(root / "adult.csv", Path(folder))
        print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. 30,162 records.\n")
        print("| model, with k = 5 | seconds | nodes evaluated | suppressed | least loss | proven |")
        print("|---|--:|--:|--:|--:|---|")
        _print_row("none", _problem(root, [], population))
        for model in MODELS:
            ((name, options),) = model.items()
            parameters = ", ".join(f"{o} {v}" for o, v in options.items() if o != "population")
            _print_row(f"{name}, {parameters}", _problem(root, [model], population))
    engine = ENGINES.create("duckdb")
    counts, domains = count(session(root / "adult.csv", engine).table, COLUMNS, [SENSITIVE], ())
    seconds, measurement = _best(lambda: measured(COLUMNS, counts, domains))
    print(f"\nMeasuring {measurement.classes:,} classes, all measures, after counting: {seconds:.4f} s.")


def _print_row(name: str, problem: Any) -> None:
    seconds, (_, result) = _best(lambda: search(replace(problem)))  # a copy has no caches of an earlier run
    cells = (
        name, f"{seconds:.3f}", f"{result.work.nodes_evaluated:,}", f"{result.suppressed:,}",
        f"{result.loss:,.1f}", result.proven,
    )  # fmt: skip
    print("| " + " | ".join(cells) + " |")
    sys.stdout.flush()


def _best(run: Callable[[], T]) -> tuple[float, T]:
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        result = run()
        times.append(time.perf_counter() - start)
    return min(times), result


def _problem(root: Path, models: list[dict[str, dict[str, Any]]], population: Path) -> Any:
    columns: dict[str, Any] = {
        name: {
            "role": "quasi-identifier",
            "hierarchy": {"csv": str(root / "hierarchies-arx" / f"{name}.csv")},
        }
        for name in COLUMNS
    }
    tree = {"csv": str(root / "hierarchies-arx" / f"{SENSITIVE}.csv")}
    columns[SENSITIVE] = {"role": "sensitive", "hierarchy": tree}
    columns["hours-per-week"] = {"role": "other"}
    resolved = [
        {n: o | {"population": str(population)} if "population" in o else o}
        for m in models
        for n, o in m.items()
    ]
    policy = Policy.load(
        {"columns": columns, "models": [{"k-anonymity": {"k": 5}}, *resolved], "suppression_limit": "5%"}
    )
    engine = ENGINES.create("duckdb")
    return problem_of(policy, *counted(session(root / "adult.csv", engine).table, policy))


def _write_population(table: Path, folder: Path) -> Path:
    """Write a population with every person of the table, and one more person with the same values."""
    header, *rows = table.read_text(encoding="utf-8").splitlines()
    population = folder / "population.csv"
    population.write_text("\n".join([header, *rows, *rows]) + "\n", encoding="utf-8")
    return population


if __name__ == "__main__":
    main()
