"""Apply: recode new data with a recoding that was found before, as a pipeline does every quarter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.anonymize import Release, anonymize
from shoal.core.contracts import Engine
from shoal.core.evaluate import Progress
from shoal.recipe import Recipe


def apply(
    recipe: Recipe | Mapping[str, Any] | str | Path,
    table: Any,
    *,
    output: str | Path | None = None,
    force: bool = False,
    mapping: bool = False,
    engine: str | Engine = "duckdb",
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Recode a table to a recipe's levels, suppress what falls short within the limit, and count it afresh.

    Raises Infeasible where the recoding no longer holds; its `nearest` says what would.
    """
    found = Recipe.load(recipe)
    return anonymize(
        table,
        found.policy,
        output=output,
        force=force,
        node=found.levels,
        mapping=mapping,
        engine=engine,
        memory_limit=memory_limit,
        progress=progress,
    )
