"""Run one package in its own interpreter: `python peer_runs.py TASK FOLDER`; see benchmarks/peers.py.

The folder contains task.json (columns, k, paths of files). The result is written to answer.json in the
folder, and a release to release.csv. This module does not import shoal. Only the calls of the package are
timed, with the table and the hierarchies in memory.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd

ENOUGH = 30.0  # seconds; a slower call is not repeated
RUNS = 3


def main() -> None:
    """Run one task and write its result."""
    name, folder = sys.argv[1], Path(sys.argv[2])
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    answer = TASKS[name](task, folder)
    answer["version"] = version(name.partition(":")[0])
    (folder / "answer.json").write_text(json.dumps(answer), encoding="utf-8")


def _timed(call: Callable[[], Any]) -> tuple[list[tuple[float, float]], Any]:
    """Call up to three times, fewer if it is slow, and record wall and processor seconds."""
    times: list[tuple[float, float]] = []
    while len(times) < RUNS and sum(wall for wall, _ in times) < ENOUGH:
        with contextlib.redirect_stdout(io.StringIO()):
            start = time.perf_counter(), time.process_time()
            result = call()
            times.append((time.perf_counter() - start[0], time.process_time() - start[1]))
    return times, result


def pycanon(task: dict[str, Any], _: Path) -> dict[str, Any]:
    """Measure a table by pycanon's report of all its measures."""
    base = import_module("pycanon.report.base")
    anonymity = import_module("pycanon.anonymity")
    table = pd.read_csv(task["table"])
    times, report = _timed(lambda: base.get_report_values(table, task["columns"], [task["sensitive"]]))
    k, (alpha, _), l, entropy, (c, _), beta, enhanced, delta, t = report
    ordered = anonymity.t_closeness(table, task["columns"], [task["number"]]) if "number" in task else None
    values = {"k": k, "alpha": alpha, "distinct_l": l, "entropy_l": entropy, "recursive_c": c, "t_equal": t}
    values |= {"basic_beta": beta, "enhanced_beta": enhanced, "delta": delta, "t_ordered": ordered}
    return {"times": times, "values": {name: _number(value) for name, value in values.items()}}


def anjana(task: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Generalize with anjana, which also returns the levels of its result."""
    anonymity = import_module("anjana.anonymity")
    levels = import_module("anjana.anonymity.utils.utils")
    table = pd.read_csv(task["table"])
    hierarchies = {
        name: dict(pd.read_csv(file, sep=";", header=None)) for name, file in task["hierarchies"].items()
    }
    columns = list(hierarchies)
    times, release = _timed(
        lambda: anonymity.k_anonymity(table, [], columns, task["k"], task["percent"], hierarchies)
    )
    release.to_csv(folder / "release.csv", index=False)
    return {
        "times": times,
        "node": [int(level) for level in levels.get_transformation(release, columns, hierarchies)],
        "added": [name for name in release if name not in table],
    }


def anonypy(task: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Partition with anonypy."""
    package = import_module("anonypy")
    table = _categories(task)
    preserver = package.Preserver(table, task["columns"], task["sensitive"])
    if "t" in task:
        times, rows = _timed(lambda: preserver.anonymize_t_closeness(k=task["k"], p=task["t"]))
    else:
        times, rows = _timed(lambda: preserver.anonymize_k_anonymity(k=task["k"]))
    release = pd.DataFrame(rows)
    for name in task["columns"]:
        release[name] = [cell[0] for cell in release[name]]  # every cell is a list with one label
    return _counted(release, times, folder)


def anonypyx(task: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Partition with anonypyx."""
    package = import_module("anonypyx")
    table = _categories(task)
    options = {"t": task["t"]} if "t" in task else {}
    anonymiser = package.Anonymiser(
        table,
        k=task["k"],
        algorithm="Mondrian",
        feature_columns=task["columns"],
        sensitive_column=task["sensitive"],
        generalisation_strategy="human-readable",
        **options,
    )
    times, release = _timed(anonymiser.anonymise)
    return _counted(release, times, folder)


def mistakes(package: str) -> Callable[[dict[str, Any], Path], dict[str, Any]]:
    """Return the task that makes typical mistakes and records the messages of a package."""

    def make(task: dict[str, Any], _: Path) -> dict[str, Any]:
        table = pd.DataFrame(task["rows"])
        return {"said": {name: _message(call) for name, call in CALLS[package](table, task).items()}}

    return make


def _pycanon_calls(table: Any, task: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    k = import_module("pycanon.anonymity").k_anonymity
    return {"name": lambda: k(table, task["misspelt"])}


def _anjana_calls(table: Any, task: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    anonymize = import_module("anjana.anonymity").k_anonymity
    listed = {name: dict(pd.DataFrame(rows)) for name, rows in task["hierarchies"].items()}
    incomplete = {**listed, "age": dict(pd.DataFrame(task["hierarchies"]["age"][1:]).reset_index(drop=True))}
    columns = list(listed)
    return {
        "name": lambda: anonymize(table, [], list(task["misspelt"]), 2, 0, listed),
        "value": lambda: anonymize(table, [], list(columns), 2, 0, incomplete),
        "k": lambda: anonymize(table, [], list(columns), 100, 0, listed),
    }


def _anonypy_calls(table: Any, task: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    preserver = import_module("anonypy").Preserver
    return {
        "name": lambda: preserver(table, task["misspelt"], "illness").anonymize_k_anonymity(k=2),
        "k": lambda: preserver(table, ["age"], "illness").anonymize_k_anonymity(k=100),
    }


def _anonypyx_calls(table: Any, task: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    anonymiser = import_module("anonypyx").Anonymiser
    return {
        "name": lambda: anonymiser(table, k=2, feature_columns=task["misspelt"]).anonymise(),
        "k": lambda: anonymiser(table, k=100, feature_columns=["age"]).anonymise(),
    }


def _message(call: Callable[[], Any]) -> str:
    """Return what a call raised, printed or returned."""
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            result = call()
    except Exception as error:
        text = " ".join(str(error).split())
        return f"{type(error).__name__}: {text}"
    shown = f"prints `{printed.getvalue().strip()}`, " if printed.getvalue().strip() else ""
    return f"no error; {shown}returns {len(result)} rows"


def _categories(task: dict[str, Any]) -> Any:
    """Read a table as the documentation recommends: columns that are not numbers are categories."""
    table = pd.read_csv(task["table"], nrows=task.get("rows"))
    for name in (*task["columns"], task["sensitive"]):
        if not pd.api.types.is_numeric_dtype(table[name]):
            table[name] = table[name].astype("category")
    return table


def _counted(release: Any, times: list[tuple[float, float]], folder: Path) -> dict[str, Any]:
    """Write a release with one row per record instead of a count."""
    rows = release.loc[release.index.repeat(release["count"].astype(int))].drop(columns="count")
    rows.to_csv(folder / "release.csv", index=False)
    return {"times": times}


def _number(value: Any) -> float | None:
    return None if value is None or value != value else float(value)


CALLS = {
    "pycanon": _pycanon_calls,
    "anjana": _anjana_calls,
    "anonypy": _anonypy_calls,
    "anonypyx": _anonypyx_calls,
}
TASKS: dict[str, Callable[[dict[str, Any], Path], dict[str, Any]]] = {
    "pycanon": pycanon,
    "anjana": anjana,
    "anonypy": anonypy,
    "anonypyx": anonypyx,
    **{f"{name}:mistakes": mistakes(name) for name in CALLS},
}


if __name__ == "__main__":
    main()
