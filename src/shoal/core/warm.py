"""Compiling the kernels once for this machine, and knowing whether that was done."""

from __future__ import annotations

import os

import numpy as np


def compiled() -> bool:
    """Tell whether compiled kernels are in numba's cache on disk."""
    from shoal.core import kernels

    cache = kernels.roll_up_word._cache
    index = os.path.join(cache._cache_path, cache._cache_file._index_name)
    return os.path.exists(index)


def warm() -> None:
    """Compile what the ordinary search uses."""
    from shoal.core import kernels

    some = np.zeros(1, np.int64)
    kernels.roll_up_word(some, some, np.zeros((1, 4), np.int64), some, np.empty(0, np.int64))
