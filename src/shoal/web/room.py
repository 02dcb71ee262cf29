"""The room around a desk: what one browser tab shows, and long work with its progress."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.errors import ShoalError, so_many
from shoal.web import look
from shoal.web.answers import StepAnswer
from shoal.web.desk import Desk
from shoal.web.desks import Desks
from shoal.web.jobs import Job, Work
from shoal.web.refusals import surprise

STEPS = {
    "data": "Data",
    "diagnose": "Diagnose",
    "negotiate": "Negotiate",
    "compare": "Compare",
    "release": "Release",
}
_PHASES = {
    "open": "Opening the table",
    "inspect": "Looking at the columns",
    "count": "Counting combinations",
    "guess": "Looking at the columns",
    "rows": "Reading",
    "search": "Searching",
    "recode": "Writing",
    "verify": "Counting afresh",
    "keep": "Finishing",
    "profile": "Tabulating the lattice",
    "tabulate": "Tabulating the lattice",
    "compile": "Getting ready",
    "sets": "Looking at sets of columns",
    "diagnose": "Counting combinations",
    "risk": "Counting combinations",
    "identifiers": "Looking for identifiers",
    "special uniques": "Looking for what makes records unique",
    "predict": "Training a classifier",
    "compare": "Comparing",
    "release": "Releasing",
}
_POLL = 0.1  # seconds


@dataclass
class Seat:
    """What a tab comes back to after a reload."""

    desk: str
    step: str = "data"
    column: str | None = None  # whose hierarchy is edited
    dials: dict[str, Any] = field(default_factory=dict)  # of a negotiation
    said: dict[str, Any] = field(default_factory=dict)  # other fields


class Room:
    """One tab's view of its desk."""

    def __init__(self, desks: Desks, seat: Seat, *, dark: bool) -> None:
        self.desks = desks
        self.seat = seat
        self.dark = dark
        self.show: dict[str, Callable[[Room], Any]] = {}  # by step
        self.nav: Element
        self.body: Element
        self.accident: TextElement

    @property
    def desk(self) -> Desk:
        """The tab's desk."""
        return self.desks.desk(self.seat.desk)

    def go(self, step: str) -> None:
        """Show a step."""
        self.seat.step = step
        self.refresh()
        self.body.client.run_javascript("window.scrollTo(0, 0)")

    def surprised(self, error: Exception) -> None:
        """Say that something unforeseen happened; only a deliberate error's own text holds no value."""
        told = str(error) if isinstance(error, ShoalError) else surprise(error)
        self.accident.set_text(f"{told} Your last step may not have been taken; reloading keeps your work.")
        self.accident.set_visibility(True)

    def refresh(self) -> None:
        """Show the present step afresh."""
        self.accident.set_visibility(False)
        self.body.clear()
        if self.seat.desk not in self.desks:
            self.nav.clear()
            with self.body:
                self._closed()
            return
        self.refresh_nav()
        step = next(one for one in self.desk.steps() if one.name == self.seat.step)
        with self.body:
            if step.usable:
                self.show[step.name](self)
            else:
                self._missing(step.missing or "")

    def refresh_nav(self) -> None:
        """Show which steps are usable and done."""
        self.nav.clear()
        with self.nav:
            if self.desk.name is not None:
                with look.box("tight"):
                    look.tag("span", self.desk.name, "nowrap small", id="table-name")
                    look.tag("span", so_many(self.desk.records, "record"), "muted small nowrap")
            with look.box("steps", "nav", aria_label="Steps"):
                for number, step in enumerate(self.desk.steps(), 1):
                    self._step(number, step)

    def _step(self, number: int, step: StepAnswer) -> None:
        current = step.name == self.seat.step
        made = look.box(f"step {'done' if step.done else ''}", "button", type="button")
        made._props["title"] = step.missing or ""
        made._props["data-usable"] = "true" if step.usable else "false"
        made._props["aria-description"] = step.missing or ""
        if current:
            made._props["aria-current"] = "step"
        with made:
            look.tag("span", "\u2713" if step.done else str(number), "dot", aria_hidden="true")
            look.tag("span", STEPS[step.name])
        made.on("click", lambda _, name=step.name: self.go(name), args=[])

    def _closed(self) -> None:
        def anew() -> None:
            self.seat.desk, self.seat.step, self.seat.column = self.desks.open(), "data", None
            self.seat.dials.clear()
            self.seat.said.clear()
            self.refresh()

        with look.box("card empty"):
            look.tag("h2", "This desk was closed")
            look.tag("p", "Too many were open, and it was the one longest unused.", "muted")
            look.button("Begin anew", anew, "primary")

    def _missing(self, text: str) -> None:
        with look.box("card empty"):
            look.tag("h2", "Not yet")
            look.tag("p", text, "muted")
            look.button("Go to Data", lambda: self.go("data"), "primary")


class Worker:
    """A place for one kind of long work: its progress, a way to cancel it, and its error."""

    def __init__(self, room: Room, kind: str, then: Callable[[Job], Any], failed: Any = None) -> None:
        self.room, self.kind, self.then, self.failed = room, kind, then, failed
        self.job: Job | None = None
        self.line = look.box("line", role="status")
        self.wrong = look.told("", "bad")
        self.note = look.told("", "warn")
        with self.line:
            self.bar = look.box("", "progress", aria_label="Progress")
            self.text = look.tag("span", "", "muted small num")
            self.stop = look.button("Cancel", self.cancel, "small")
        self.timer = ui.timer(_POLL, self.tick, active=False)
        self.tell(None)
        self.line.set_visibility(False)
        last = next((job for job in room.desks.jobs.of(room.seat.desk) if job.kind == kind), None)
        if last is not None and not last.ended:
            self.watch(last)
        elif last is not None and last.status == "failed" and kind == "open":
            self.tell(last.error)  # it may have failed before anybody looked

    def start(self, work: Work) -> None:
        """Begin the work."""
        self.watch(self.room.desks.start(self.room.seat.desk, self.kind, work))

    def watch(self, job: Job) -> None:
        """Follow work that is under way."""
        self.job = job
        self.tell(None)
        self.stop._props["disabled"] = False
        self.line.set_visibility(True)
        self.show()
        self.timer.activate()

    def cancel(self) -> None:
        """Ask the work to stop."""
        if self.job is not None:
            self.job.cancel()
            self.text.set_text("Stopping \u2026")
            self.stop._props["disabled"] = True
            self.stop.update()

    def tell(self, error: str | None, note: str | None = None) -> None:
        """Say what went wrong, or that it was cancelled."""
        for place, text in ((self.wrong, error), (self.note, note)):
            place.set_text(text or "")
            place.set_visibility(bool(text))

    def show(self) -> None:
        """Show how far it is."""
        job = self.job
        if job is None or self.stop._props.get("disabled"):
            return
        phase = "Waiting for other work" if job.status == "waiting" else _PHASES.get(job.phase, job.phase)
        known = job.total is not None and job.total > 0
        self.text.set_text(f"{phase}: {job.done:,} of {job.total:,}" if known else f"{phase} \u2026")
        if known and job.total:
            self.bar._props.update(value=min(job.done, job.total), max=job.total)
        else:
            self.bar._props.pop("value", None)
        self.bar.update()

    async def tick(self) -> None:
        """Look after the work."""
        job = self.job
        if job is None or not job.ended:
            self.show()
            return
        self.timer.deactivate()
        self.line.set_visibility(False)
        self.job = None
        if job.status == "cancelled":
            self.tell(None, "Cancelled. Nothing was kept.")
        elif job.status == "failed":
            if not (self.failed and self.failed(job)):
                self.tell(job.error)
        else:
            found = self.then(job)
            if inspect.isawaitable(found):
                await found
