"""Apply: recode new data with a recoding that was found before, as a pipeline does every quarter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.progress import Progress
from shoal.recipe import Recipe
from shoal.release import Release
from shoal.releasing.run import released
from shoal.releasing.wish import Wish


def apply(
    recipe: Recipe | Mapping[str, Any] | str | Path,
    table: Any,
    *,
    output: str | Path | None = None,
    force: bool = False,
    mapping: bool = False,
    report: bool = False,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Recode a table as a recipe says, suppress what falls short within the limit, and count it afresh.

    A recipe of levels fixes them, and refining or blanking cells is done anew; one of regions fixes these.

    Raises Infeasible where the recoding no longer holds; its `nearest` says what would.
    """
    found = Recipe.load(recipe)
    engine = engine_for(engine, table, memory_limit)
    wish = Wish(found.policy, found.levels, regions=found.regions, mapping=mapping, report=report)
    return released(table, wish, engine, output=output, force=force, progress=progress)
