"""How long does ARX take to find the optimum that shoal proves, with the same files and settings?

ARX is not part of this project. `python benchmarks/arx.py --arx CLASSPATH` takes the path of its jar, or of
its classes and the jars that it needs, separated as Java separates them. A Java file of this project calls
ARX.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from setting import adult, machine

from shoal.algorithms import ALGORITHMS
from shoal.engines import ENGINES
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.search import search
from shoal.workflow.session import OpenTable

NINE = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
)  # fmt: skip
DRIVER = Path(__file__).with_name("ArxSearch.java")
K, T, RUNS = 5, 0.2, 5
HOW = (
    "Give the class path of ARX: --arx libarx.jar. Its jar is on arx.deidentifier.org; with several jars, "
    f"separate them by {os.pathsep!r}. Java 11 or later is needed."
)


@dataclass(frozen=True)
class Task:
    """A search that both programs can run."""

    metric: str
    limit: float
    sensitive: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return tuple(name for name in NINE if name != self.sensitive)

    @property
    def label(self) -> str:
        """The description in the table."""
        model = f", t-closeness {T}" if self.sensitive else ""
        return f"{len(self.columns)} columns, k = {K}{model}, {self.metric}, {self.limit:.0%}"


TASKS = (
    *(Task("non-uniform-entropy", limit) for limit in (0.0, 0.01, 0.05, 0.1)),
    Task("discernibility", 0.05),
    Task("non-uniform-entropy", 0.05, "occupation"),
)


def main() -> None:
    """Print one table, ready for the documentation."""
    parser = argparse.ArgumentParser(description="ARX beside shoal, on Adult.")
    parser.add_argument("--arx", metavar="CLASSPATH", help="the jar of ARX, or a class path with it")
    class_path = parser.parse_args().arx
    check(class_path)
    root = adult()
    print(f"{datetime.now(UTC):%Y-%m-%d}, {machine()}. Adult, the best of {RUNS} runs, milliseconds.\n")
    print("| task | ARX | shoal: search | ratio | shoal: read, count, search | ratio | same optimum |")
    print("|---|--:|--:|--:|--:|--:|---|")
    for task in TASKS:
        arx_time, node = of_arx(class_path, root, task)
        search_time, total_time, levels = of_shoal(root, task)
        times = f"{arx_time:,.0f} | {search_time:,.1f} | {arx_time / search_time:,.1f}"
        same = "yes" if node == levels else "no"
        print(f"| {task.label} | {times} | {total_time:,.0f} | {arx_time / total_time:,.1f} | {same} |")
        sys.stdout.flush()


def check(class_path: str | None) -> None:
    """Exit with a message if ARX or Java is missing."""
    if not class_path:
        raise SystemExit(HOW)
    missing = [part for part in class_path.split(os.pathsep) if not Path(part.removesuffix("*")).exists()]
    if missing:
        raise SystemExit(f"There is no {missing[0]}. {HOW}")
    if shutil.which("java") is None:
        raise SystemExit(f"There is no java. {HOW}")


def of_arx(class_path: str, root: Path, task: Task) -> tuple[float, tuple[int, ...]]:
    """Return ARX's shortest time in milliseconds, including its preparation of the data, and the optimum."""
    command = [
        "java", "-cp", class_path, str(DRIVER), str(root / "adult.csv"), ",", str(root / "hierarchies-arx"),
        ",".join(task.columns), task.metric, str(task.limit), str(K), task.sensitive, str(T), str(RUNS),
    ]  # fmt: skip
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    if process.returncode:
        raise SystemExit(f"ARX failed:\n{process.stderr[-2000:]}{HOW}")
    lines = [line.split(" ") for line in process.stdout.splitlines() if "," in line]
    return min(float(line[0]) for line in lines), tuple(map(int, lines[-1][1].split(",")))


def of_shoal(root: Path, task: Task) -> tuple[float, float, tuple[int, ...]]:
    """Return the shortest time of the search, the time including reading and counting, and the optimum."""
    columns: dict[str, dict[str, object]] = {
        name: {
            "role": "quasi-identifier",
            "hierarchy": {"csv": str(root / "hierarchies-arx" / f"{name}.csv")},
        }
        for name in task.columns
    }
    models: list[dict[str, object]] = [{"k-anonymity": {"k": K}}]
    if task.sensitive:
        columns[task.sensitive] = {"role": "sensitive"}
        models.append({"t-closeness": {"t": T}})
    columns["hours-per-week"] = {"role": "other"}
    columns |= {name: {"role": "other"} for name in NINE if name not in columns}
    limit = f"{task.limit:.0%}"
    policy = Policy.load(
        {"columns": columns, "models": models, "suppression_limit": limit, "metric": task.metric}
    )
    searches, totals = [], []
    levels: tuple[int, ...] = ()
    for _ in range(RUNS + 1):  # the first run compiles
        start = time.perf_counter()
        engine = ENGINES.create("duckdb")
        try:
            counts, domains = counted(OpenTable(engine, engine.open(root / "adult.csv")), policy)
            problem = problem_of(policy, counts, domains)
            search_start = time.perf_counter()
            _, result = search(problem, ALGORITHMS.create("contour"))
            end = time.perf_counter()
        finally:
            engine.close()
        searches.append(1000 * (end - search_start))
        totals.append(1000 * (end - start))
        levels = tuple(result.node or ())
    return min(searches[1:]), min(totals[1:]), levels


if __name__ == "__main__":
    main()
