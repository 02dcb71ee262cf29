"""Jobs: long computations, each in its own thread, with progress and cancellation.

A job reports no value of the data: only a phase, two numbers, and the text of a ShoalError.
"""

from __future__ import annotations

import dataclasses
import secrets
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

from shoal.core.progress import Progress
from shoal.errors import Infeasible, ShoalError
from shoal.web.errors import Unknown, unexpected_message
from shoal.wording import message
from shoal.workflow.session import interruptible_sessions

Status = Literal["waiting", "running", "done", "failed", "cancelled"]

AT_ONCE = 3  # a user's second job waits until fewer than this many jobs run in total
MOST = 8  # maximum number of running jobs; abandoned jobs do not count


class Slots:
    """The slots of jobs that wait or run, and of abandoned jobs whose threads have not ended."""

    def __init__(self, at_once: int = AT_ONCE, most: int = MOST) -> None:
        self.at_once = at_once
        self.most = max(at_once, most)
        self.changed = threading.Condition()
        self._slots: list[Slot] = []  # in the order of their requests

    def request(self, user: str) -> Slot:
        """Request a slot. The job waits until the slot is assigned."""
        with self.changed:
            slot = Slot(self, user)
            self._slots.append(slot)
            self.assign()
        return slot

    def remove(self, slot: Slot) -> None:
        """Free a slot. The lock of `changed` must be held."""
        if slot in self._slots:
            self._slots.remove(slot)
            self.assign()

    def assign(self) -> None:
        """Let waiting jobs run if possible. The lock of `changed` must be held."""
        while (slot := self._next()) is not None:
            slot.state = "running"
        self.changed.notify_all()

    def may_abandon(self, user: str) -> bool:
        """Return whether one more job of a user may be abandoned. The lock of `changed` must be held."""
        counts = self._count("abandoned")
        return counts[user] < self.at_once and counts.total() < self.most

    def _next(self) -> Slot | None:
        running = self._count("running")
        waiting = [slot for slot in self._slots if slot.state == "waiting"]
        if not waiting or running.total() >= self.most:
            return None
        slot = min(waiting, key=lambda slot: running[slot.user])  # of several, the oldest
        return slot if not running[slot.user] or running.total() < self.at_once else None

    def _count(self, state: str) -> Counter[str]:
        return Counter(slot.user for slot in self._slots if slot.state == state)


class Slot:
    """The slot of one job."""

    def __init__(self, slots: Slots, user: str) -> None:
        self.user = user
        self.state: Literal["waiting", "running", "abandoned", "left"] = "waiting"
        self._slots = slots

    def wait(self) -> bool:
        """Wait until the slot is assigned or freed; return whether the job may run."""
        with self._slots.changed:
            self._slots.changed.wait_for(lambda: self.state != "waiting")
            return self.state != "left"

    def stop_waiting(self) -> None:
        """Free the slot, unless the job may already run."""
        with self._slots.changed:
            if self.state == "waiting":
                self.leave()

    def abandon(self) -> None:
        """Free the slot while its thread still runs, unless there are too many such threads."""
        with self._slots.changed:
            if self.state == "running" and self._slots.may_abandon(self.user):
                self.state = "abandoned"
                self._slots.assign()

    def leave(self) -> None:
        with self._slots.changed:
            self.state = "left"
            self._slots.remove(self)


JobWork = Callable[[Progress], Any]

_REMEMBERED = 50  # ended jobs per workspace whose status is kept
PATIENCE = 1.0  # seconds that a cancelled job has to stop before it is abandoned
_INTERRUPT_EVERY = 0.05  # seconds between two interrupts of a cancelled job
_LARGEST = (1 << 53) - 1  # the largest integer that a browser reads exactly


class Cancelled(Exception):
    """Raised in the progress callback of a cancelled job."""


@dataclasses.dataclass
class Job:
    """One long computation of a workspace."""

    id: str
    workspace: str
    kind: str
    slot: Slot = dataclasses.field(repr=False)
    status: Status = "waiting"
    phase: str = ""
    done: int = 0
    total: int | None = None
    error: str | None = None
    field: str | None = None  # the field of the request that caused the error
    nearest: dict[str, Any] = dataclasses.field(default_factory=dict)  # alternatives, if infeasible
    seconds: float = 0.0
    result: Any = dataclasses.field(default=None, repr=False)
    _cancel: threading.Event = dataclasses.field(default_factory=threading.Event, repr=False)
    _ended: threading.Event = dataclasses.field(default_factory=threading.Event, repr=False)
    _thread_ended: threading.Event = dataclasses.field(default_factory=threading.Event, repr=False)
    _lock: Any = dataclasses.field(default_factory=threading.Lock, repr=False)
    _stop: Callable[[], None] | None = dataclasses.field(default=None, repr=False)  # interrupts a query

    @property
    def ended(self) -> bool:
        """Whether the job is done, failed or cancelled."""
        return self._ended.is_set()

    def cancel(self) -> None:
        """Cancel the job: interrupt its queries. Its next report of progress raises an exception.

        A job that does not end within PATIENCE is abandoned: it frees its slot, and its result is discarded.
        """
        if self.ended or self._cancel.is_set():
            return
        self._cancel.set()
        self.slot.stop_waiting()
        threading.Thread(target=self._stop_work, name=f"shoal-stop-{self.kind}", daemon=True).start()

    def _stop_work(self) -> None:
        """Interrupt repeatedly until the thread has ended: a query may start after an interrupt."""
        patience = time.monotonic() + PATIENCE
        self._stop_query()
        while not self._thread_ended.wait(_INTERRUPT_EVERY):
            self._stop_query()
            if not self.ended and time.monotonic() >= patience:
                self._end("cancelled")
                self.slot.abandon()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the end of the job; return whether it ended in time."""
        return self._ended.wait(seconds)

    def wait_for_thread(self, seconds: float | None) -> bool:
        """Wait for the end of the thread; return whether it ended in time."""
        return self._thread_ended.wait(seconds)

    def _end(self, status: Status, **values: Any) -> None:
        """Set the final status; later calls have no effect."""
        with self._lock:
            if self._ended.is_set():
                return
            for name, value in values.items():
                setattr(self, name, value)
            self.status = status
            self._ended.set()

    def _stop_query(self) -> None:
        if (stop := self._stop) is not None:
            stop()

    def _fail(self, error: str, **values: Any) -> None:
        """End with an error, unless the job was cancelled."""
        if self._cancel.is_set():
            self._end("cancelled")
        self._end("failed", error=error, **values)

    def report(self, phase: str, done: int, total: int | None) -> None:
        """Record progress. Raise Cancelled if the job was cancelled."""
        if self._cancel.is_set():
            raise Cancelled
        self.phase, self.done = phase, min(int(done), _LARGEST)
        # A lattice may have more nodes than a browser can count.
        self.total = None if total is None or total > _LARGEST else int(total)

    def run(self, work: JobWork) -> None:
        """Wait for the slot, do the work and record its result."""
        try:
            if self._cancel.is_set() or not self.slot.wait():
                raise Cancelled
            start = time.perf_counter()
            try:
                self.report(self.kind, 0, None)
                self.status = "running"
                with interruptible_sessions() as self._stop:
                    result = work(self.report)
                self.report(self.phase, self.done, self.total)
            finally:
                self._stop = None
                self.seconds = time.perf_counter() - start
                self.slot.leave()
            self._end("done", result=result)
        except (Cancelled, KeyboardInterrupt):  # an engine raises KeyboardInterrupt when interrupted
            self._end("cancelled")
        except ShoalError as error:
            nearest = dict(error.nearest) if isinstance(error, Infeasible) else {}
            self._fail(message(error, "web"), field=error.field, nearest=nearest)
        except MemoryError:
            self._fail("There is not enough memory for this. Use fewer columns or fewer levels.")
        except Exception as error:  # the error's text may quote a value
            self._fail(unexpected_message(error))
        finally:
            self.slot.leave()
            self._thread_ended.set()


class Jobs:
    """All jobs. A new job cancels an older one of the same kind in the same workspace."""

    def __init__(self, at_once: int = AT_ONCE, most: int = MOST) -> None:
        self._slots = Slots(at_once, most)
        self._lock = threading.Lock()
        self._jobs: dict[str, Job] = {}

    def start(self, workspace: str, kind: str, work: JobWork, user: str = "") -> Job:
        """Start a job of a user in a new thread."""
        job = Job(secrets.token_urlsafe(12), workspace, kind, self._slots.request(user))
        with self._lock:
            for other in self._jobs.values():
                if (other.workspace, other.kind) == (workspace, kind):
                    other.cancel()
                    other.result = None  # the result may be large
            self._jobs[job.id] = job
            ended = [job.id for job in self._jobs.values() if job.workspace == workspace and job.ended]
            for name in ended[:-_REMEMBERED]:
                del self._jobs[name]
        threading.Thread(target=job.run, args=(work,), name=f"shoal-{kind}", daemon=True).start()
        return job

    def job(self, workspace: str, name: str) -> Job:
        """Return a job of a workspace. Raise Unknown for a job of another workspace."""
        job = self._jobs.get(name)
        if job is None or job.workspace != workspace:
            raise Unknown("There is no such job. The state of a workspace lists its jobs.", "job")
        return job

    def of(self, workspace: str) -> list[Job]:
        """Return the last job of each kind in a workspace."""
        with self._lock:
            return list({job.kind: job for job in self._jobs.values() if job.workspace == workspace}.values())

    def cancel(self, workspace: str) -> None:
        for job in self.of(workspace):
            job.cancel()

    def remove(self, workspace: str) -> list[Job]:
        """Cancel and forget all jobs of a workspace. Return the jobs whose threads have not ended."""
        with self._lock:
            jobs = [job for job in self._jobs.values() if job.workspace == workspace]
            for job in jobs:
                del self._jobs[job.id]
        for job in jobs:
            job.cancel()
        return [job for job in jobs if not job.wait_for_thread(0)]

    def close(self, seconds: float = 5.0) -> None:
        """Cancel all jobs, wait for them and discard their results."""
        with self._lock:
            jobs = list(self._jobs.values())
        for job in jobs:
            job.cancel()
        deadline = time.monotonic() + seconds
        for job in jobs:
            job.wait_for_thread(max(0.0, deadline - time.monotonic()))
        with self._lock:
            self._jobs.clear()
