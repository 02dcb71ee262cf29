"""Apply: recode new data with a recoding that was found before, as a pipeline does every quarter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.anonymize import Wish, released
from shoal.core.contracts import Engine
from shoal.core.evaluate import Progress
from shoal.engines import ENGINES
from shoal.recipe import Recipe
from shoal.release import Release


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
    """Recode a table as a recipe says, suppress what falls short within the limit, and count it afresh.

    A recipe of levels fixes them, and refining or blanking cells is done anew; one of regions fixes these.

    Raises Infeasible where the recoding no longer holds; its `nearest` says what would.
    """
    found = Recipe.load(recipe)
    if isinstance(engine, str):
        engine = ENGINES.create(engine, {"memory_limit": memory_limit} if memory_limit else {})
    wish = Wish(found.policy, found.levels, regions=found.regions)
    return released(table, wish, engine, output=output, force=force, mapping=mapping, progress=progress)
