"""Utility: what an analyst loses: columns, associations, one pair and a classifier, before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.analysing.compared import Utility, compared
from shoal.choose import AUTO, engine_for
from shoal.column_names import check_not_swapped
from shoal.core.contracts import Engine
from shoal.core.progress import Progress
from shoal.policy import Policy


def utility(
    table: Any,
    release: Any,
    policy: Policy | Mapping[str, Any] | str | Path,
    *,
    target: str | None = None,
    pair: Sequence[str] | None = None,
    engine: str | Engine = AUTO,
    memory_limit: str | None = None,
    progress: Progress | None = None,
) -> Utility:
    """Compare a table with its release: what an analyst loses.

    `target` is the column that a classifier predicts from the quasi-identifiers, the policy's label without
    it; `pair` the columns whose table of records is made, those that tell most of each other without it.
    """
    policy = Policy.load(policy)
    engine = engine_for(engine, table, memory_limit)
    opened = engine.open(table), engine.open(release)
    check_not_swapped(policy.roles.identifiers, engine.columns(opened[1]), engine.columns(opened[0]))
    return compared(engine, *opened, policy, target=target, pair=pair, progress=progress)
