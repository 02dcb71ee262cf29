"""The order in which the nodes of a profile are counted: all of them, or the best first."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import islice

import numpy as np

from shoal.core.lattice import Lattice
from shoal.core.tabulate import Tabulation
from shoal.errors import UsageError
from shoal.profiling.grouping import Grouping, best_first, ranked, share_of

LARGEST_RANKED = 20_000_000  # nodes; those of a larger lattice are found one by one, the best first
_BEST_FIRST = 256  # nodes counted between two looks at the clock, when time is limited


def slices(
    tabulation: Tabulation,
    grouping: Grouping,
    share: float | str | None,
    seconds: float | None,
    score: str,
) -> Iterator[tuple[int, int]]:
    """Count the nodes that are wanted, the best first where not all are; tell how many of how many."""
    lattice = tabulation.lattice
    size = {} if seconds is None else {"size": _BEST_FIRST}
    known = tabulation.numbers
    if lattice.size > LARGEST_RANKED:
        nodes = best_first(lattice, grouping, score)
        while some := list(islice(nodes, _BEST_FIRST)):
            fresh = np.array(some)[~np.isin(some, known)]
            for done in tabulation.slices(fresh, **size):
                yield done, lattice.size
        return
    if share is None and seconds is None and not len(known):
        for done in tabulation.slices():
            yield done, lattice.size
        return
    wanted = ranked(lattice, grouping, score)
    if share is not None:
        wanted = wanted[: math.ceil(share_of(share) * lattice.size)]
    wanted = wanted[~np.isin(wanted, known)]
    for done in tabulation.slices(wanted, **size):
        yield done, len(known) + len(wanted)


def check_size(lattice: Lattice, seconds: float | None) -> None:
    """Refuse a lattice whose nodes cannot be numbered, or not be ranked where no time is named."""
    if lattice.size >= 1 << 63:
        message = (
            f"The lattice has {lattice.size:.3g} nodes, more than a profile can number. "
            "Use fewer quasi-identifiers or fewer levels."
        )
        raise UsageError(message)
    if lattice.size > LARGEST_RANKED and seconds is None:
        message = (
            f"The lattice has {lattice.size:,} nodes, too many to tabulate or to rank. "
            "Give seconds: the best nodes are tabulated until the time is up."
        )
        raise UsageError(message)
