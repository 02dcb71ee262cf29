"""Error messages of shoal and other packages for typical mistakes; printed by benchmarks/peers.py."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
from peer_calls import Peers

import shoal
from shoal.errors import ShoalError


def mistakes(peers: Peers) -> Iterator[str]:
    """Make three mistakes with every package, and print the messages."""
    ages = [[30, "30-31", "*"], [31, "30-31", "*"], [32, "32-33", "*"], [33, "32-33", "*"]]
    rows = {"age": [30, 31, 32, 33], "sex": ["M", "F", "M", "F"], "illness": ["a", "b", "a", "b"]}
    task = {"rows": rows, "misspelt": ["agee"], "hierarchies": {"age": ages, "sex": [["M", "*"], ["F", "*"]]}}
    answers = {
        name: peers.run(f"{name}:mistakes", task) for name in ("pycanon", "anjana", "anonypy", "anonypyx")
    }
    answers["shoal"] = {"said": _own_mistakes(peers.folder, rows, ages)}
    yield "## What they say of a mistake"
    yield ""
    yield "Four records, three mistakes; what is raised, printed or returned (anonypy has a row for each"
    yield "class and sensitive value: here one class of four records)."
    yield ""
    yield "| | a column that the table lacks | a value that the hierarchy lacks | k = 100 of 4 records |"
    yield "|---|---|---|---|"
    for name, answer in answers.items():
        if "missing" in answer:
            yield f"| {answer['missing']} | | | |"
            continue
        cells = [answer["said"].get(key, "-").replace("|", "/") for key in ("name", "value", "k")]
        yield f"| {name} | " + " | ".join(cells) + " |"


def _own_mistakes(folder: Path, rows: dict[str, Any], ages: list[list[Any]]) -> dict[str, str]:
    table = pd.DataFrame(rows)
    for name, listed in (("ages.csv", ages), ("fewer.csv", ages[1:])):
        lines = [";".join(map(str, line)) for line in listed]
        (folder / name).write_text("\n".join(lines), encoding="utf-8")

    def generalization(column: str, file: str, k: int) -> Callable[[], Any]:
        columns = {
            column: {"role": "quasi-identifier", "hierarchy": {"csv": str(folder / file)}},
            "sex": {"role": "quasi-identifier", "hierarchy": "flat"},
            "illness": {"role": "other"},
        }
        return lambda: shoal.anonymize(table, {"columns": columns, "models": [{"k-anonymity": {"k": k}}]})

    calls = {"name": generalization("agee", "ages.csv", 2), "value": generalization("age", "fewer.csv", 2)}
    calls["k"] = generalization("age", "ages.csv", 100)
    messages = {}
    for name, call in calls.items():
        try:
            call()
        except ShoalError as error:
            messages[name] = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return messages
