"""Compilation: kernels are compiled once for a machine, and again when they or what they call changed.

Numba keeps what it compiled until the kernel's own file changes. But kernels of other files are compiled into
it, and a new version of shoal may change one file and leave the other as it was, with its time. So the stamp
of a kernel's file tells of the files that its own takes kernels from, too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba import njit
from numba.core.registry import CPUDispatcher


def compiled(function: Callable[..., Any]) -> Any:
    """Compile a function when it is called first, and keep that for other processes."""
    kernel = njit(cache=True, nogil=True)(function)
    if isinstance(kernel, CPUDispatcher):  # else numba is switched off
        others = [
            other
            for other in function.__globals__.values()
            if isinstance(other, CPUDispatcher) and other.py_func.__module__ != function.__module__
        ]
        file = kernel._cache._cache_file
        file._source_stamp = (file._source_stamp, *sorted({repr(_stamp(other)) for other in others}))
    return kernel


def _stamp(kernel: Any) -> object:
    return kernel._cache._cache_file._source_stamp
