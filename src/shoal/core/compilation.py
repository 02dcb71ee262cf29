"""Kernels: loops that Numba compiles once per machine, and their NumPy equivalents for small inputs.

Loading Numba takes as long as processing thousands of combinations with NumPy. A process therefore begins
with the NumPy equivalents. It loads Numba in three cases: a kernel has no equivalent, NumPy would have to
sort many rows, or NumPy has already taken as much time as loading takes. The results are the same.

Large tables are processed on several cores. Python runs the outer loops, and calls compiled kernels that
release the interpreter lock (`Kernel.large`).

Numba's cache checks only the file of the kernel itself. A kernel may contain compiled kernels of other files,
which an upgrade of shoal may change. Each kernel's cache stamp therefore includes the stamps of those files.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache, cached_property
from threading import RLock
from types import FunctionType
from typing import Any

from shoal.core.progress import Progress

_MAX_SORTED_ROWS = 20_000  # maximum number of rows that NumPy sorts in one call
_UNSORTED_DISCOUNT = 10  # for NumPy, a row that is sorted costs as much as this many unsorted rows
_ROWS_PER_CALL = 600  # the number of rows that cost as much as a call
_NUMPY_BUDGET = 6_000_000  # the number of rows that NumPy processes in the time that Numba takes to load
_timers: list[CompileTimer] = []  # one for each open block
_lock = RLock()
_namespaces: dict[tuple[int, str], dict[str, Any]] = {}  # results of `_namespace`


class CompileTimer:
    """Reports compilation to a progress callback and adds up the seconds it takes."""

    def __init__(self, progress: Progress) -> None:
        self.progress, self.seconds = progress, 0.0
        self._depth, self._start = 0, 0.0

    def on_start(self) -> None:
        if self._depth == 0:
            self._start = time.perf_counter()
            self.progress("compile", 0, None)
        self._depth += 1

    def on_end(self) -> None:
        if self._depth == 0:
            return  # compilation started before this timer
        self._depth -= 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._start


@contextmanager
def compile_events(progress: Progress) -> Iterator[CompileTimer]:
    """Report and time compilation inside the block, without kernels that are loaded from Numba's cache."""
    timer = CompileTimer(progress)
    _timers.append(timer)
    try:
        yield timer
    finally:
        _timers.remove(timer)


class Work:
    """Decides, for one process, whether NumPy or compiled kernels are used."""

    def __init__(self) -> None:
        self.loaded = False  # whether a kernel has loaded Numba
        self.numpy_rows = 0  # the number of rows that NumPy has processed

    def fits_numpy(self, rows: int, *, sorts: bool = True) -> bool:
        """Return whether NumPy should process these rows; if so, count them."""
        if self.loaded or (sorts and rows > _MAX_SORTED_ROWS):
            return False
        self.add(rows if sorts else rows // _UNSORTED_DISCOUNT, 1)
        return self.numpy_rows <= _NUMPY_BUDGET

    def add(self, rows: int, calls: int) -> None:
        """Add the cost of rows and calls that NumPy processes."""
        self.numpy_rows += rows + _ROWS_PER_CALL * calls


work = Work()


class Kernel:
    """A function that is compiled at its first call; its NumPy equivalent, if any, processes small inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        numpy: Callable[..., Any] | None,
        parallel: Callable[..., Any] | None = None,  # the equivalent for large tables, on several cores
        *,
        sorts: bool = True,  # whether the NumPy equivalent sorts the rows
        **options: Any,
    ) -> None:
        self.py_func: Any = function
        self.numpy, self.sorts = numpy, sorts
        self.parallel = parallel
        self.options = options

    def __call__(self, *arguments: Any) -> Any:
        """Call the NumPy equivalent or the compiled function, depending on the size of the first argument."""
        if self.numpy is not None and work.fits_numpy(arguments[0].size, sorts=self.sorts):
            return self.numpy(*arguments)
        return self.machine(*arguments)

    @cached_property
    def uncompiled(self) -> Any:
        """The NumPy equivalent, or else the Python function, which calls other kernels uncompiled."""
        return self.numpy or _with_globals(self.py_func, _namespace(self.py_func.__globals__, "uncompiled"))

    @cached_property
    def large(self) -> Any:
        """The function for large tables: outer loops in Python, inner ones compiled."""
        if self.parallel is not None:
            return self.parallel
        if self.numpy is not None:
            return self.machine if self.options.get("cache") else self.numpy
        return _with_globals(self.py_func, _namespace(self.py_func.__globals__, "large"))

    @property
    def machine(self) -> Any:
        """The compiled function; Numba is loaded when it is first requested."""
        with _lock:
            work.loaded = True
            if "_machine" not in self.__dict__:
                _listen()
                names = _namespace(self.py_func.__globals__, "machine")
                if "_machine" not in self.__dict__:  # resolving the names may have created it
                    self.__dict__["_machine"] = self._dispatcher(names)
            return self.__dict__["_machine"]

    def _dispatcher(self, names: dict[str, Any]) -> Any:
        from numba import njit

        dispatcher = njit(**self.options)(_with_globals(self.py_func, names))
        if self.options.get("cache") and hasattr(dispatcher, "_cache"):  # none if Numba is disabled
            others = [
                kernel.machine
                for kernel in self.py_func.__globals__.values()
                if isinstance(kernel, Kernel) and kernel.py_func.__module__ != self.py_func.__module__
            ]
            _make_robust(dispatcher._cache)
            file = dispatcher._cache._cache_file
            file._source_stamp = (file._source_stamp, *sorted({repr(_stamp(other)) for other in others}))
        return dispatcher

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of Numba's dispatcher, such as its statistics."""
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.machine, name)


def inner(
    function: Callable[..., Any],
    *,
    numpy: Callable[..., Any] | None = None,
    parallel: Callable[..., Any] | None = None,
) -> Kernel:
    """Compile a function that only compiled functions of its module call, without a wrapper for Python.

    It compiles faster because it does not count references, so it must not create arrays.
    """
    return Kernel(
        function, numpy, parallel, nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, _nrt=False
    )


def inlined(function: Callable[..., Any]) -> Kernel:
    """Mark a function that is inlined in the compiled functions that call it."""
    return Kernel(function, None, inline="always")


def compiled(
    function: Callable[..., Any],
    *,
    numpy: Callable[..., Any] | None = None,
    sorts: bool = True,
    makes_arrays: bool = True,
) -> Kernel:
    """Compile a function at its first call and cache the result for other processes.

    The NumPy equivalent is used for fewer rows if it sorts them (`sorts`). A function that creates no arrays
    (`makes_arrays=False`) compiles faster, because it does not count references.
    """
    return Kernel(
        function, numpy, sorts=sorts, cache=True, nogil=True, no_cfunc_wrapper=True, _nrt=makes_arrays
    )


def _with_globals(function: Any, names: dict[str, Any]) -> FunctionType:
    """Return the same function with other globals."""
    copy = FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__qualname__, copy.__doc__ = function.__qualname__, function.__doc__
    return copy


def _namespace(source: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return globals in which kernels are replaced by their functions: `machine`, `uncompiled` or `large`."""
    key = (id(source), kind)
    if key not in _namespaces:
        names = _namespaces[key] = dict(source)
        for name, value in source.items():  # `names` is stored first, because kernels may call each other
            if isinstance(value, Kernel):
                names[name] = getattr(value, kind)
    return _namespaces[key]


@cache
def _listen() -> None:
    """Register a listener for the compilation events of Numba, which is loaded for this."""
    from numba.core.event import Event, Listener, register

    class Forward(Listener):  # type: ignore[misc]
        def on_start(self, event: Event) -> None:
            for timer in tuple(_timers):
                timer.on_start()

        def on_end(self, event: Event) -> None:
            for timer in tuple(_timers):
                timer.on_end()

    register("numba:compile", Forward())


def _make_robust(cache: Any) -> None:
    """Make a cache ignore a full or read-only disk, and flush itself if it cannot be loaded."""
    load, save = cache.load_overload, cache.save_overload

    def load_or_flush(*arguments: Any) -> Any:
        try:
            return load(*arguments)
        except Exception:
            with suppress(OSError):
                cache.flush()
            return None

    def save_if_possible(*arguments: Any) -> None:
        with suppress(OSError):
            save(*arguments)

    cache.load_overload, cache.save_overload = load_or_flush, save_if_possible


def _stamp(kernel: Any) -> object:
    return kernel._cache._cache_file._source_stamp
