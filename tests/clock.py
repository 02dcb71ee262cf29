"""How long work takes: the fastest of several, because others use the machine too."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(work: Callable[[], object], enough: float = 0.0, times: int = 5) -> float:
    """Return the least seconds that some work took; it is not done again once that is less than enough."""
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        work()
        best = min(best, time.perf_counter() - start)
        if best < enough:
            break
    return best
