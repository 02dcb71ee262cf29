"""Anonymize: from a table and a policy to a proven release."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shoal.choose import AUTO, engine_for
from shoal.core.contracts import Engine
from shoal.core.progress import Progress
from shoal.errors import UsageError
from shoal.policy import Policy
from shoal.profiling.offer import Chosen, adopted
from shoal.release import Release
from shoal.releasing.run import released
from shoal.releasing.task import Task
from shoal.report import report as report_of
from shoal.spreadsheet import Sheet


def anonymize(
    table: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    output: str | Path | None = None,
    force: bool = False,
    node: Chosen = None,
    mapping: bool = False,
    report: bool = False,
    spreadsheet_safe: bool = False,
    delimiter: str | None = None,
    bom: bool = False,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    seconds: float | None = None,
    progress: Progress | None = None,
) -> Release:
    """Find the acceptable recoding of least loss, apply it, count the result afresh and release it.

    Without an output the release's table is of the same kind as the table that came in. `node` fixes
    the levels of the columns it names; the others are searched. It may be an offer of a negotiation, its
    JSON or a file of it: then its k (or l) and its limit stand in for the policy's. `mapping` adds, to the
    private folder, what became of every value; `report` adds a page that tells of the release.
    `spreadsheet_safe` puts an apostrophe before cells of a CSV or TSV that begin like a formula; `delimiter`
    (comma, semicolon, tab, pipe) parts its values, and `bom` lets it begin with a byte order mark.
    """
    if seconds is not None and not seconds > 0:
        message = f"seconds must be above 0, got {seconds}."
        raise UsageError(message)
    policy, levels = adopted(Policy.load(policy), node)
    engine = engine_for(engine, table, memory_limit)
    task = Task(
        policy,
        levels,
        seconds,
        mapping=mapping,
        report=report_of if report else None,
        sheet=Sheet(spreadsheet_safe, delimiter, bom),
    )
    return released(table, task, engine, output=output, force=force, progress=progress)
