"""How much work something is, in seconds of CPU time, which other programs on the machine do not use up."""

from __future__ import annotations

import time
from collections.abc import Callable


def fastest(work: Callable[[], object], enough: float = 0.0, times: int = 5) -> float:
    """Return the least CPU seconds of several runs; stop early once they are below `enough`."""
    best = float("inf")
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
        if best < enough:
            break
    return best
