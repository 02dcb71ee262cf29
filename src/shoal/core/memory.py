"""Memory: how much a run may take, and what part of it counts, hubs and tabulations may hold."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path

from shoal.errors import PolicyError

_UNITS = {"k": 1, "m": 2, "g": 3, "t": 4}
_CGROUP = Path("/sys/fs/cgroup/memory.max")
_COPIES = 4  # of counts that are alive at once: as they arrive, sorted, rolled up, in a hash table


def limit_of(text: str | None) -> int:
    """Read a limit such as 4GB or 500MiB in bytes; without one, half of what the machine has.

    >>> limit_of("4GB"), limit_of("1.5 MiB")
    (4000000000, 1572864)
    """
    if text is None:
        return machine() // 2
    found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGT])(i?)B", text.strip(), re.IGNORECASE)
    size = float(found[1]) * (1024 if found[3] else 1000) ** _UNITS[found[2].lower()] if found else 0
    if size < 1:
        message = f"memory_limit must be a size such as 4GB or 500MB, got {text!r}."
        raise PolicyError(message)
    return int(size)


@cache
def machine() -> int:
    """Return the bytes of memory that this machine, or the container it is in, has."""
    try:
        own = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows
        own = 8 << 30
    try:
        return min(own, int(_CGROUP.read_text()))
    except (OSError, ValueError):
        return own


def fits(combinations: int, words: int, limit: int) -> bool:
    """Tell whether counts of so many combinations may be held: half of the limit is the engine's."""
    return combinations * (words + 1) * 8 * _COPIES <= limit // 2
