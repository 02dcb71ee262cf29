"""Apply: recode new data with a recoding that was found before, as a pipeline does every quarter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.progress import Progress
from shoal.errors import HierarchyError, Infeasible
from shoal.recipe import Recipe
from shoal.release import Release
from shoal.releasing.run import released
from shoal.releasing.task import Task
from shoal.report import report as report_of
from shoal.spreadsheet import Sheet


def apply(
    recipe: Recipe | Mapping[str, Any] | str | Path,
    table: Any,
    *,
    output: str | Path | None = None,
    force: bool = False,
    mapping: bool = False,
    report: bool = False,
    spreadsheet_safe: bool = False,
    delimiter: str | None = None,
    bom: bool = False,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Release:
    """Recode a table as a recipe says, suppress what falls short within the limit, and count it afresh.

    A recipe of levels fixes them, and refining or blanking cells is done anew; one of regions fixes these.
    `mapping`, `report`, `spreadsheet_safe`, `delimiter` and `bom` are as in `anonymize`.

    Raises Infeasible where the recoding no longer holds; its `nearest` says what would.
    """
    found = Recipe.load(recipe)
    engine = engine_for(engine, table, memory_limit)
    task = Task(
        found.policy,
        found.levels,
        regions=found.regions,
        mapping=mapping,
        report=report_of if report else None,
        sheet=Sheet(spreadsheet_safe, delimiter, bom),
    )
    try:
        return released(table, task, engine, output=output, force=force, progress=progress)
    except Infeasible as error:
        if not error.advice:
            raise
        raise _no_longer(error) from None
    except HierarchyError as error:
        message = f"{error} A recipe fixes its hierarchies: mend this table, or anonymize it anew."
        raise HierarchyError(message, error.values) from None


def _no_longer(error: Infeasible) -> Infeasible:
    """Say what can be done with a recipe, whose levels, models and limit stay as they are."""
    reason = error.reason.removeprefix("No acceptable recoding: ")
    reason = f"The recipe no longer holds: {reason[:1].lower()}{reason[1:]}"
    advice = (
        "A recipe fixes levels, models and limit: anonymize this table anew, with its policy or one that "
        "asks for less."
    )
    if error.nearest:  # its levels are not bounded by max_level, but by what they are
        told = error.advice.replace("max_level raised: ", "a higher level: ")
        advice += f" Nearest to the recipe, {told[:1].lower()}{told[1:]}"
    return Infeasible(reason, error.nearest, advice)
