"""Signals: a signal is recorded, and the work stops at its next check. Commits are not interrupted.

On the command line, SIGINT, SIGTERM and SIGHUP are only recorded. Their handlers raise no exception: one that
is raised at an arbitrary place could be lost in a destructor or in compiled code, or break an import.

1. A thread interrupts the running query, and the next call of `check` raises KeyboardInterrupt.
2. If no check is reached within a second, or a second signal arrives, the thread removes temporary files and
   ends the process. It does not do so during a commit.
3. Work that can return partial results gets more time to reach a check (see `keeping`).

In other programs, only `commit` changes the handlers: it defers signals until its end.
"""

from __future__ import annotations

import os
import select
import signal
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from types import FrameType
from typing import Any

from shoal.files.work_folders import remove_owned

GRACE = 1.0  # seconds in which the work must reach a check after a signal
_INTERVAL = 0.1  # seconds between two interrupts, because a query may start just after the first
# SIGINT is last because its handler must be restored last: after that, KeyboardInterrupt may be raised.
_NUMBERS = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM", "SIGINT") if hasattr(signal, name)]


class Handlers:
    """The signal handlers of the command line, and the signals that arrived."""

    def __init__(self, report: Callable[[Handlers], None], announce: Callable[[Handlers], None]) -> None:
        self.number: int | None = None  # the number of the first signal
        self.raised = False  # whether KeyboardInterrupt was raised for the signal
        self.committed = False
        self.printed = False  # the result was printed as JSON
        self.written: list[Path] = []
        self.cleanups: list[Callable[[], None]] = []
        self.engines: list[weakref.ref[Any]] = []
        self.keeping = 0  # the number of open `keeping` blocks
        self.offer: Callable[[float], bool] | None = None  # asks whether to release the best result so far
        self._report = report
        self._announce = announce
        self._raising = False
        self._arrived = 0
        self._before: dict[int, Any] = {}
        self.lock = threading.Lock()  # held during a commit, and while the process is ended

    @property
    def stopping(self) -> bool:
        """Whether the work has to end without a result."""
        return self.number is not None and not self.committed

    @property
    def name(self) -> str:
        return signal.Signals(self.number or signal.SIGINT).name

    @property
    def complete(self) -> str:
        return f"The release was complete before {self.name} arrived."

    @property
    def code(self) -> int:
        """The exit code of a process that a signal ended."""
        return 128 + (self.number or signal.SIGINT)

    def install(self) -> None:
        """Handle the signals, except those that are ignored, such as SIGHUP under nohup."""
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        threading.Thread(target=self._watch, name="signals", daemon=True).start()
        if os.name == "posix":
            signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in _NUMBERS:
            if signal.getsignal(number) in (signal.SIG_DFL, signal.default_int_handler):
                self._before[number] = signal.signal(number, self._note)

    def uninstall(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        if os.name == "posix":
            signal.set_wakeup_fd(-1)
        os.close(self._pipe[1])  # closing the pipe ends the thread

    def ignore(self) -> None:
        """Ignore signals from now on. At exit, Python resets handlers, but ignored signals stay ignored."""
        for number in self._before:
            signal.signal(number, signal.SIG_IGN)

    def _note(self, number: int, _: FrameType | None) -> None:
        self.number = self.number or number
        if os.name != "posix":
            os.write(self._pipe[1], bytes([number]))
        if self._raising:
            raise self.interrupt()

    def interrupt(self) -> KeyboardInterrupt:
        """Return the exception that stops the work; later checks do not raise it again."""
        self.raised = True
        return KeyboardInterrupt()

    def resume(self) -> None:
        """Forget the signals that arrived, so that the work continues."""
        self.number, self.raised, self._arrived = None, False, 0

    @contextmanager
    def raising(self) -> Iterator[None]:
        """Let signals raise KeyboardInterrupt at once inside the block."""
        self._raising = True
        try:
            if self.stopping and not self.raised:
                raise self.interrupt()
            yield
        finally:
            self._raising = False

    def _watch(self) -> None:
        """React to signals, even while the main thread is in compiled code."""
        pipe, deadline, announced = self._pipe[0], 0.0, False
        while True:
            if select.select([pipe], [], [], _INTERVAL if self._arrived else None)[0]:
                numbers = os.read(pipe, 64)
                if not numbers:
                    os.close(pipe)
                    return
                # A server, such as that of the studio, handles signals itself while it runs.
                handled = [number for number in numbers if signal.getsignal(number) == self._note]
                if handled and not self._arrived:
                    self.number, deadline = self.number or handled[0], time.monotonic() + GRACE
                self._arrived += len(handled)
            late = time.monotonic() > deadline
            overdue = self._arrived and late and not self.raised and not self.committed
            if self._arrived > 1 or (overdue and not self.keeping):
                self._end(late=late)
            elif overdue and not announced:
                announced = True
                self._announce(self)
            if self._arrived and not self.raised:
                self._interrupt_queries()

    def _interrupt_queries(self) -> None:
        if not self.lock.acquire(blocking=False):
            return  # a commit is not interrupted
        try:
            if not self.committed:
                self._for_each_engine(lambda engine: engine.interrupt())
        finally:
            self.lock.release()

    def _for_each_engine(self, call: Callable[[Any], None]) -> None:
        for engine in [reference() for reference in self.engines]:
            with suppress(Exception):  # it may be closed at this moment
                if engine is not None:
                    call(engine)

    def _end(self, *, late: bool) -> None:
        """End the process. After a commit, do so only if the grace time is up and two signals arrived."""
        with self.lock:
            if self.committed and not (late and self._arrived > 1):
                return
            # First end the processes of engines, which could write more temporary files.
            self._for_each_engine(lambda engine: engine.abort())
            for function in (*self.cleanups[::-1], remove_owned):
                with suppress(Exception):
                    function()
            with suppress(Exception):
                self._report(self)
            os._exit(0 if self.committed else self.code)


_handlers: Handlers | None = None


def installed() -> Handlers | None:
    """Return the handlers of the command line, or None if it is not running."""
    return _handlers


def install(
    report: Callable[[Handlers], None], announce: Callable[[Handlers], None] = lambda _: None
) -> Handlers:
    """Record signals from now on.

    `report` is called before the process is ended. `announce` is called if work takes long to return its
    partial results.
    """
    global _handlers
    _handlers = Handlers(report, announce)
    _handlers.install()
    return _handlers


def uninstall() -> None:
    """Restore the previous signal handlers."""
    global _handlers
    if _handlers is not None:
        _handlers.uninstall()
    _handlers = None


def check() -> None:
    """Raise KeyboardInterrupt, once, if a signal arrived."""
    if _handlers is not None and _handlers.stopping and not _handlers.raised:
        raise _handlers.interrupt()


def stopping() -> bool:
    """Return whether a signal arrived. If a query then fails, it may have been interrupted."""
    return _handlers is not None and _handlers.stopping


def interrupted() -> KeyboardInterrupt:
    """Return the exception to raise if a query was interrupted."""
    return KeyboardInterrupt() if _handlers is None else _handlers.interrupt()


def raising() -> AbstractContextManager[None]:
    """Let signals raise KeyboardInterrupt at once inside the block, for example while a prompt waits."""
    return nullcontext() if _handlers is None else _handlers.raising()


@contextmanager
def keeping() -> Iterator[None]:
    """Mark work that returns partial results when it is stopped, and that may need time for this."""
    if (handlers := _handlers) is not None:
        handlers.keeping += 1
    try:
        yield
    finally:
        if handlers is not None:
            handlers.keeping -= 1


@contextmanager
def offering(ask: Callable[[float], bool]) -> Iterator[None]:
    """Offer the best result so far if SIGINT stops a search; `ask` gets its retained information."""
    if _handlers is None:
        yield
        return
    _handlers.offer = ask
    try:
        yield
    finally:
        _handlers.offer = None


def offers_best() -> bool:
    """Return whether the signal that arrived is one after which a search offers its best result."""
    return _handlers is not None and _handlers.offer is not None and _handlers.number == signal.SIGINT


def accepts_best(retained: float) -> bool:
    """Ask whether to release the best result so far; if so, continue as if no signal had arrived."""
    handlers = _handlers
    if handlers is None or handlers.offer is None or not handlers.offer(retained):
        return False
    handlers.resume()
    return True


@contextmanager
def commit() -> Iterator[None]:
    """Run the block without interruption by signals; raise KeyboardInterrupt if one arrived before."""
    main = threading.current_thread() is threading.main_thread()
    if _handlers is None or not main:
        with _deferred() if main else nullcontext():
            yield
        return
    with _handlers.lock:
        if _handlers.stopping:
            raise _handlers.interrupt()
        yield
        _handlers.committed = True


@contextmanager
def _deferred() -> Iterator[None]:
    """Defer signals that arrive during the block until its end."""
    arrived: list[int] = []
    before: dict[int, Any] = {}
    try:
        for number in _NUMBERS:
            if signal.getsignal(number) is not None:  # Python cannot restore a handler that it did not set
                before[number] = signal.getsignal(number)
                signal.signal(number, lambda number, _: arrived.append(number))
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for number in arrived:
            signal.raise_signal(number)


@contextmanager
def cleanup(remove: Callable[[], None]) -> Iterator[None]:
    """Call a function if a signal ends the process during the block."""
    if (handlers := _handlers) is not None:
        handlers.cleanups.append(remove)
    try:
        yield
    finally:
        if handlers is not None:
            handlers.cleanups.remove(remove)


@contextmanager
def placing(path: Path) -> Iterator[None]:
    """Check for signals, run the block that renames a complete file to `path`, and record the path."""
    if _handlers is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    with _handlers.lock:
        check()
        yield
        _handlers.written.append(path)


def interrupt_on_signal(engine: Any) -> None:
    """Interrupt the queries of an engine when a signal arrives."""
    if _handlers is not None:
        _handlers.engines.append(weakref.ref(engine))
