"""Memory and cores: how much a run may use, and whether counts fit."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from shoal.errors import PolicyError

CORES = os.cpu_count() or 1
_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_COPIES = 4  # copies of counts that exist at the same time: received, sorted, rolled up, in a hash table


def limit_of(text: str | None) -> int:
    """Parse a limit such as 4GB or 500MiB to bytes; the default is half of the machine's memory.

    >>> limit_of("4GB"), limit_of("1.5 MiB")
    (4000000000, 1572864)
    """
    if text is None:
        return machine() // 2
    match = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT])(i?)B", text.strip(), re.IGNORECASE)
    size = float(match[1]) * (1024 if match[3] else 1000) ** _UNITS[match[2].lower()] if match else 0
    if size < 1:
        raise PolicyError(f"must be a size such as 4GB or 500MB, got {text!r}.", option="memory_limit")
    return int(size)


@cache
def machine() -> int:
    """Return the memory of this machine or container, in bytes."""
    try:
        physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        physical = 8 << 30
    try:
        return min(physical, int(_CGROUP.read_text()))
    except (OSError, ValueError):
        return physical


def fits(combinations: int, words: int, limit: int) -> bool:
    """Return whether counts fit in memory; half of the limit is reserved for the engine."""
    return combinations * (words + 1) * 8 * _COPIES <= limit // 2
