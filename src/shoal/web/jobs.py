"""Jobs: long work off the event loop, one thread each, with progress and cancel.

Nothing of the data is in what a job tells: a phase, two numbers, and the text of a deliberate error.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as having
from typing import Any

from shoal.choose import stoppable
from shoal.errors import Infeasible, ShoalError
from shoal.web.answers import Status
from shoal.web.columns import Progress
from shoal.web.refusals import Unknown, field_of, surprise

Work = Callable[[Progress], Any]

AT_ONCE = 3  # jobs that run; others wait
_REMEMBERED = 50  # ended jobs of which the status is kept
PATIENCE = 1.0  # seconds that cancelled work has to stop by itself, before nobody waits for it any more


class Places:
    """How many jobs run at once; as many more may have been let go and still have to end."""

    def __init__(self, at_once: int) -> None:
        self.running = threading.Semaphore(at_once)
        self.let_go = threading.Semaphore(at_once)

    def take(self, seconds: float) -> Place | None:
        """Take a place, or none where none gets free in so many seconds."""
        return Place(self) if self.running.acquire(timeout=seconds) else None


class Place:
    """The place of one job."""

    def __init__(self, places: Places) -> None:
        self._places = places
        self._held: threading.Semaphore | None = places.running
        self._lock = threading.Lock()

    def step_aside(self) -> None:
        """Make room for another job, unless too many were let go and work on."""
        with self._lock:
            if self._held is self._places.running and self._places.let_go.acquire(blocking=False):
                self._held = self._places.let_go
                self._places.running.release()

    def leave(self) -> None:
        """Be done."""
        with self._lock:
            if self._held is not None:
                self._held.release()
            self._held = None


class Cancelled(Exception):
    """Raised inside a job's progress callback once somebody cancelled it."""


@dataclass
class Job:
    """One piece of long work."""

    id: str
    desk: str
    kind: str
    status: Status = "waiting"
    phase: str = ""
    done: int = 0
    total: int | None = None
    error: str | None = None
    field: str | None = None  # the field beside which the error belongs
    nearest: dict[str, Any] = having(default_factory=dict)  # what would do, where nothing is acceptable
    seconds: float = 0.0
    result: Any = having(default=None, repr=False)
    _cancel: threading.Event = having(default_factory=threading.Event, repr=False)
    _ended: threading.Event = having(default_factory=threading.Event, repr=False)
    _over: threading.Event = having(default_factory=threading.Event, repr=False)  # its thread too
    _place: Place | None = having(default=None, repr=False)  # while its thread works
    _lock: Any = having(default_factory=threading.Lock, repr=False)
    _stop: Callable[[], None] | None = having(default=None, repr=False)  # ends the query that it waits for

    @property
    def ended(self) -> bool:
        """Whether it is over, one way or another."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """End the query that the work waits for, or ask it to stop at its next word of progress.

        Work that gives none for long is let go. It cannot keep anything: the next word that it gives stops
        it. Until then it no longer stands in the way of other work.
        """
        if self.ended or self._cancel.is_set():
            return
        self._cancel.set()
        self._stop_query()
        waiting = threading.Timer(PATIENCE, self._let_go)
        waiting.daemon = True
        waiting.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end, at most so long; tell whether it came."""
        return self._ended.wait(seconds)

    def wait_for_thread(self, seconds: float) -> bool:
        """Wait until nothing of it runs any more."""
        return self._over.wait(seconds)

    def _end(self, status: Status, **told: Any) -> None:
        """Be over, once; what comes later is not heard."""
        with self._lock:
            if self._ended.is_set():
                return
            for name, value in told.items():
                setattr(self, name, value)
            self.status = status
            self._ended.set()

    def _stop_query(self) -> None:
        if (stop := self._stop) is not None:
            stop()

    def _fail(self, error: str, **told: Any) -> None:
        """Be over for an error, unless it came of being cancelled."""
        if self._cancel.is_set():
            self._end("cancelled")
        self._end("failed", error=error, **told)

    def _let_go(self) -> None:
        self._stop_query()  # it may have begun another
        self._end("cancelled")
        if self._place is not None:
            self._place.step_aside()

    def tell(self, phase: str, done: int, total: int | None) -> None:
        """Take word of progress, or stop the work that gives it."""
        if self._cancel.is_set():
            raise Cancelled
        self.phase, self.done, self.total = phase, int(done), None if total is None else int(total)

    def run(self, work: Work, places: Places) -> None:
        """Wait for a place, work, and keep what came of it."""
        try:
            while self._place is None:
                if self._cancel.is_set():
                    raise Cancelled
                self._place = places.take(0.1)
            start = time.perf_counter()
            try:
                self.tell(self.kind, 0, None)
                self.status = "running"
                with stoppable() as self._stop:
                    found = work(self.tell)
                self.tell(self.phase, self.done, self.total)
            finally:
                self._stop = None
                self.seconds = time.perf_counter() - start
                self._place.leave()
            self._end("done", result=found)
        except (Cancelled, KeyboardInterrupt):  # an engine's word for a query that was stopped
            self._end("cancelled")
        except ShoalError as error:
            nearest = dict(error.nearest) if isinstance(error, Infeasible) else {}
            self._fail(str(error), field=field_of(error), nearest=nearest)
        except MemoryError:
            told = "There is not enough memory for this. Use fewer columns or fewer levels."
            self._fail(told)
        except Exception as error:  # whose text may quote a value
            self._fail(surprise(error))
        finally:
            self._over.set()


class Jobs:
    """All jobs of a process. A new one of the same kind on the same desk cancels the old."""

    def __init__(self, at_once: int = AT_ONCE) -> None:
        self._places = Places(at_once)
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def start(self, desk: str, kind: str, work: Work) -> Job:
        """Begin a piece of work in a thread of its own."""
        job = Job(secrets.token_urlsafe(12), desk, kind)
        with self._lock:
            for other in self._jobs.values():
                if (other.desk, other.kind) == (desk, kind):
                    other.cancel()
                    other.result = None  # it may be large
            self._jobs[job.id] = job
            for name in [one.id for one in self._jobs.values() if one.ended][:-_REMEMBERED]:
                del self._jobs[name]
        threading.Thread(target=job.run, args=(work, self._places), name=f"shoal-{kind}", daemon=True).start()
        return job

    def job(self, desk: str, name: str) -> Job:
        """Return a desk's job; another desk's is not told of."""
        found = self._jobs.get(name)
        if found is None or found.desk != desk:
            message = "There is no such job. Those of a desk are listed with it."
            raise Unknown(message, "job")
        return found

    def of(self, desk: str) -> list[Job]:
        """Return a desk's jobs, the last of each kind."""
        with self._lock:
            return list({job.kind: job for job in self._jobs.values() if job.desk == desk}.values())

    def stop(self, desk: str) -> None:
        """Cancel all of a desk's jobs."""
        for job in self.of(desk):
            job.cancel()

    def leave(self, desk: str) -> None:
        """Cancel and forget all of a desk's jobs."""
        with self._lock:
            for name in [job.id for job in self._jobs.values() if job.desk == desk]:
                self._jobs.pop(name).cancel()

    def close(self, seconds: float = 5.0) -> None:
        """Cancel everything, wait a little for it, and keep nothing that came of it."""
        with self._lock:
            left = list(self._jobs.values())
        for job in left:
            job.cancel()
        until = time.monotonic() + seconds
        for job in left:
            job.wait_for_thread(max(0.0, until - time.monotonic()))
        with self._lock:
            self._jobs.clear()
