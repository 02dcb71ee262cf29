"""For the report: what it tells of a release that the release itself does not need."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import TYPE_CHECKING, Any, TypedDict

from shoal.analysing.compared import Utility, compared
from shoal.assessing.special import SPECIAL_SIZE, Special, special_uniques
from shoal.core.contracts import Engine
from shoal.core.progress import Progress
from shoal.errors import DataError
from shoal.policies.population import persons_of
from shoal.policy import Policy

if TYPE_CHECKING:
    from shoal.releasing.searched import Searched

Phase = Callable[[str], AbstractContextManager[None]]


class Figures(TypedDict, total=False):
    """What the analyst loses, and what made records of the input unique; None where it is not known."""

    utility: Utility | None
    special: Special | None


def check_population(policy: Policy, records: int) -> None:
    """Refuse a population that is smaller than the table, before the work."""
    _ = persons_of(policy, records)


def figures(
    engine: Engine, policy: Policy, found: Searched, released: Any, phase: Phase, progress: Progress
) -> Figures:
    """Work out what the report tells beside the release; no release fails because of it."""
    utility, special = None, None
    with phase("compare"), suppress(DataError):
        opened = engine.open(released)
        utility = compared(engine, found.table, opened, policy, progress=progress, lenient=True)
    counts = found.problem.counts
    if counts.held:
        with phase("uniques"):
            columns = policy.roles.quasi_identifiers
            special = special_uniques(counts, columns, SPECIAL_SIZE, progress=progress)
    return Figures(utility=utility, special=special)
