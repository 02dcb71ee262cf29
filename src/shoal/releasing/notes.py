"""Notes: what a release lets through as it is, and its custodian should look at again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from shoal.assessing.nearly_unique import NEARLY_UNIQUE, nearly_unique
from shoal.core.classes import own_name
from shoal.core.contracts import Engine
from shoal.core.counts import Counts
from shoal.core.schema import AS_IS
from shoal.errors import DataError
from shoal.policy import Policy
from shoal.sensitive_table import separated


def release_notes(policy: Policy, engine: Engine, table: Any, counts: Counts) -> tuple[str, ...]:
    """Say which columns of an open table are released as they are and can identify by themselves.

    What the search needs is counted already; of other columns the engine counts the values that occur once.
    """
    apart = separated(policy)  # is released in groups: no record has a value of its own
    names = [name for name, role in policy.roles.roles.items() if role in AS_IS and name != apart]
    alone = {
        name: int((np.bincount(entries.codes, entries.counts) == 1).sum())
        for name, entries in counts.sensitive.items()
        if own_name(name)
    }
    with suppress(DataError):  # no release fails because of a note
        alone |= engine.lone_values(table, [name for name in names if name not in alone])
    return tuple(
        f"{name!r} is released as it is: {NEARLY_UNIQUE}."
        for name in names
        if nearly_unique(alone.get(name, 0), counts.records)
    )
