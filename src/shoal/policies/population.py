"""The population that a table is drawn from, as a policy or a person tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.core.uniqueness import population_of
from shoal.policies.shares import share_of

if TYPE_CHECKING:
    from shoal.policy import Policy


def persons_of(
    policy: Policy | None, records: int, size: int | None = None, share: float | str | None = None
) -> int | None:
    """Return how many persons the population of a table has: as given, else as the policy says."""
    if size is None and share is None and policy is not None:
        size, share = policy.population_size, policy.sampling_share
    if size is None and share is None:
        return None
    part = None if share is None else share_of(share, "sampling_share")
    return population_of(records, size, part)
