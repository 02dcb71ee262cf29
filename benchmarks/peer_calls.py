"""Functions to call and time shoal and other packages; see benchmarks/peers.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setting import adult

from shoal.core.problem import Problem
from shoal.engines import ENGINES
from shoal.policy.policy import Policy
from shoal.workflow.problem import counted, problem_of
from shoal.workflow.session import session

EIGHT = ("sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation")
NINE = (*EIGHT, "salary-class")
EVERY = (*NINE, "hours-per-week")
RUNS = 3
Times = Sequence[Sequence[float]]  # wall and processor seconds of each run


@dataclass(frozen=True)
class Peers:
    """Runs other packages in their own interpreter, each in a separate process."""

    python: str
    bound: float
    versions: dict[str, str]
    folder: Path

    def run(self, name: str, task: dict[str, Any]) -> dict[str, Any]:
        """Return the result of a package, or the reason why there is none."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        (folder / "task.json").write_text(json.dumps(task), encoding="utf-8")
        script = str(Path(__file__).with_name("peer_runs.py"))
        package = name.partition(":")[0]
        try:
            process = subprocess.run(
                [self.python, script, name, str(folder)],
                timeout=self.bound,
                capture_output=True,
                text=True,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return {"missing": f"{package}: no answer within {self.bound:.0f} s"}
        except OSError:
            return {"missing": f"{package}: no interpreter, see --peers"}
        if process.returncode:
            last = process.stderr.strip().splitlines()[-1:] or ["no message"]
            return {"missing": f"{package}: not measured ({last[0]})"}
        answer: dict[str, Any] = json.loads((folder / "answer.json").read_text(encoding="utf-8"))
        self.versions[package] = answer["version"]
        return answer | {"release": folder / "release.csv"}


def policy_for(
    quasi: Sequence[str], share: float, metric: str, *, k: int = 5, l: int = 0, flat: bool = False
) -> dict[str, Any]:
    """Return a policy over some columns of Adult, with ARX's hierarchies or with flat ones."""
    columns: dict[str, Any] = {name: {"role": "other"} for name in EVERY}
    for name in quasi:
        file = str(adult() / "hierarchies-arx" / f"{name}.csv")
        columns.pop(name)
        columns[name] = {"role": "quasi-identifier", "hierarchy": "flat" if flat else {"csv": file}}
    models: list[dict[str, Any]] = [{"k-anonymity": {"k": k}}]
    if l:
        columns["occupation"] = {"role": "sensitive"}
        models.append({"distinct-l-diversity": {"l": l, "column": "occupation"}})
    return {"columns": columns, "models": models, "suppression_limit": share, "metric": metric}


def problem_for(quasi: Sequence[str], share: float, k: int) -> Problem:
    """Count Adult for a search for the least non-uniform entropy."""
    policy = Policy.load(policy_for(quasi, share, "non-uniform-entropy", k=k))
    engine = ENGINES.create("duckdb")
    counts, domains = counted(session(adult() / "adult.csv", engine).table, policy)
    return problem_of(policy, counts, domains)


def timed(call: Callable[[], Any]) -> tuple[Times, Any]:
    """Call several times, and record wall and processor seconds."""
    times = []
    for _ in range(RUNS + 1):
        start = time.perf_counter(), time.process_time()
        result = call()
        times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return times, result


def best(times: Times) -> Sequence[float]:
    """Return the shortest run."""
    return min(times, key=lambda run: run[0])


def time_cells(times: Times) -> str:
    """Format the first call, the shortest run and its processor time as three cells."""
    wall, processor = best(times)
    return f"{seconds(times[0][0])} | {seconds(wall)} | {seconds(processor)}"


def seconds(number: float) -> str:
    """Format seconds with about three digits."""
    return f"{number:.1f}" if number >= 10 else f"{number:.2f}" if number >= 1 else f"{number:.3f}"


def process_seconds(statements: str, *, compiled: bool) -> float:
    """Run statements in a new Python process, and return the seconds of the whole process."""
    with tempfile.TemporaryDirectory() as folder:
        cache = {} if compiled else {"NUMBA_CACHE_DIR": folder}
        start = time.perf_counter()
        subprocess.run([sys.executable, "-c", statements], env={**os.environ, **cache}, check=True)
        return time.perf_counter() - start
