"""Where the Adult table is found, and problems made from it; tests skip where it is absent."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import pytest

COLUMNS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass", "occupation",
    "salary-class",
)  # fmt: skip


def folder() -> Path | None:
    """Return the folder of the Adult table, beside the project or named by SHOAL_DATA."""
    beside = Path(__file__).resolve().parents[3] / "shared" / "data"
    for root in (os.environ.get("SHOAL_DATA"), beside):
        if root and (Path(root) / "adult" / "adult.csv").exists():
            return Path(root) / "adult"
    return None


needs_adult = pytest.mark.skipif(folder() is None, reason="the Adult table is not here (set SHOAL_DATA)")


def policy(
    columns: tuple[str, ...] = COLUMNS, hierarchies: str = "hierarchies-arx", **entries: Any
) -> dict[str, Any]:
    """Write a policy over some quasi-identifiers; the other columns are kept as they are."""
    root = folder()
    assert root is not None
    everything = [*COLUMNS, "hours-per-week"]
    written = {
        name: {"role": "quasi-identifier", "hierarchy": {"csv": str(root / hierarchies / f"{name}.csv")}}
        for name in columns
    }
    written |= {name: {"role": "other"} for name in everything if name not in columns}
    return {"columns": written, "models": [{"k-anonymity": {"k": 5}}], **entries}


@cache
def counted(columns: tuple[str, ...], sensitive: tuple[str, ...] = ()) -> Any:
    """Count Adult once per set of columns."""
    from shoal.engines import ENGINES

    engine = ENGINES.create("duckdb")
    root = folder()
    assert root is not None
    return engine.count(engine.open(root / "adult.csv"), columns, sensitive)


def problem(columns: tuple[str, ...] = COLUMNS, hierarchies: str = "hierarchies-arx", **entries: Any) -> Any:
    """Return the problem of a policy over Adult."""
    from shoal.policy.policy import Policy
    from shoal.workflow.problem import problem_of

    loaded = Policy.load(policy(columns, hierarchies, **entries))
    return problem_of(loaded, *counted(columns, loaded.sensitive_needed))
