"""Compiling the kernels once for a machine, and knowing whether that was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from shoal.core.arrays import IntArray


def to_compile(*, words: int, everything: bool) -> list[Callable[[], object]]:
    """Return what compiles the kernels that keys of so many words need and numba's cache does not hold."""
    from shoal.core import kernels

    needed: list[tuple[Any, Callable[[], object]]] = [(kernels.roll_up_word, _roll_up_word)]
    if words > 1:
        needed.append((kernels.roll_up_words, _roll_up_words))
    elif everything:
        needed.append((kernels.count_nodes, _count_nodes))
    return [compile_one for kernel, compile_one in needed if not _compiled(kernel)]


def _compiled(kernel: Any) -> bool:
    cache = kernel._cache
    return Path(cache._cache_path, cache._cache_file._index_name).exists()


def _zeros(*shape: int) -> IntArray:
    return np.zeros(shape, np.int64)


def _roll_up_word() -> object:
    from shoal.core import kernels

    return kernels.roll_up_word(_zeros(1), _zeros(1), _zeros(1, 4), _zeros(1), _zeros(0))


def _roll_up_words() -> object:
    from shoal.core import kernels

    return kernels.roll_up_words(_zeros(2, 1), _zeros(1), _zeros(1, 4), _zeros(1), _zeros(0))


def _count_nodes() -> object:
    from shoal.core import kernels

    tables = (_zeros(1, 3), _zeros(1, 1, 1), _zeros(1))
    space = (_zeros(4, 1), _zeros(3, 1), np.zeros(16, np.int32))
    return kernels.count_nodes(_zeros(1), _zeros(1), _zeros(1, 1), *tables, 1, *space)
