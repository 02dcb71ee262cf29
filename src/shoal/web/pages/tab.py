"""A browser tab: the view of its workspace, and the progress of jobs."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio.to_thread
from nicegui import ui
from nicegui.element import Element
from nicegui.elements.mixins.text_element import TextElement

from shoal.errors import ShoalError
from shoal.web.actions import action
from shoal.web.errors import unexpected_message
from shoal.web.pages import address, elements
from shoal.web.workspace.files import Upload
from shoal.web.workspace.jobs import Job, JobWork
from shoal.web.workspace.table import NO_TABLE
from shoal.web.workspace.workspace import StepAnswer, Workspace
from shoal.web.workspace.workspaces import Workspaces
from shoal.wording import plural

STEPS = {
    "data": "Data",
    "diagnose": "Diagnose",
    "negotiate": "Negotiate",
    "compare": "Compare",
    "release": "Release",
}
_PHASES = {
    "open": "Opening the table",
    "inspect": "Inspecting the columns",
    "count": "Counting combinations",
    "guess": "Inspecting the columns",
    "rows": "Reading",
    "search": "Searching",
    "exposure": "Checking unchanged columns",
    "recode": "Writing",
    "verify": "Verifying the release",
    "keep": "Finishing",
    "profile": "Counting all choices",
    "tabulate": "Counting all choices",
    "compile": "Preparing",
    "sets": "Checking sets of columns",
    "diagnosis": "Counting combinations",
    "question": "Counting combinations",
    "risk": "Counting combinations",
    "identifiers": "Looking for identifiers",
    "special uniques": "Looking for what makes records unique",
    "predict": "Training a classifier",
    "comparison": "Comparing",
    "compare": "Comparing",
    "preview": "Searching",
    "release": "Releasing",
    "answers": "Setting the policy",
    "utility": "Comparing the table with its release",
    "attack": "Comparing with the register",
    "measurement": "Counting combinations",
    "advice": "Searching for other choices",
    "check": "Checking the release",
}
_JOB_POLL = 0.1  # seconds


@dataclass
class TabState:
    """The state of a tab that survives a reload."""

    workspace: str  # name of the workspace
    step: str = "data"
    next_step: str | None = None  # the step to show when the table is open
    column: str | None = None  # the column whose hierarchy is edited
    dials: dict[str, Any] = field(default_factory=dict)  # the dials of a negotiation
    fields: dict[str, Any] = field(default_factory=dict)  # values of fields that are not dials


class TabView:
    """The view of a workspace in a tab."""

    def __init__(self, workspaces: Workspaces, state: TabState, *, dark: bool, user: str = "") -> None:
        self.workspaces = workspaces
        self.user = user
        self.state = state
        self.dark = dark
        self.show: dict[str, Callable[[TabView], Any]] = {}  # by step
        self.nav: Element
        self.title: Element
        self.step_buttons: dict[str, tuple[Element, TextElement]] = {}  # by step, with the dot
        self.body: Element
        self.error: TextElement
        self.on_nav: Callable[[], Any] = lambda: None  # updates the rest of the header
        self.ask_delete: Callable[[], Any] = lambda: None
        self.changing = asyncio.Lock()  # held during a change, so that changes keep the user's order

    @property
    def workspace(self) -> Workspace:
        return self.workspaces.get(self.state.workspace)

    @property
    def is_closed(self) -> bool:
        """Whether the workspace no longer exists."""
        return self.state.workspace not in self.workspaces

    def go(self, step: str) -> None:
        """Show a step, with its address as a new entry of the browser's history."""
        self.state.step = step
        self._show_address(push=True)
        self.refresh()
        self.body.client.run_javascript("window.scrollTo(0, 0); studio.focusStep()")

    def switch(self, workspace: str) -> None:
        self.state.workspace = workspace
        self.state.column = None
        self.state.dials.clear()
        self.state.fields.clear()
        self.go(self.workspaces.saving.link(workspace).step)

    def show_table(self) -> None:
        """Show the table that was opened. If a project waits for another table, show the first page."""
        self.state.fields.clear()
        self.state.dials.clear()
        self.state.column = None
        link = self.workspaces.saving.link(self.state.workspace)
        step, self.state.next_step = self.state.next_step or link.step, None
        self.go(address.START if link.pending else step)

    def _show_address(self, *, push: bool = False) -> None:
        step, saving = self.state.step, self.workspaces.saving
        project = None if self.is_closed else saving.link(self.state.workspace).id
        title = (
            f"{STEPS.get(step, 'Project')} \u2013 shoal studio" if step != address.START else "shoal studio"
        )
        arguments = json.dumps([address.path_of(step, project), title, push])
        self.body.client.run_javascript(f"studio.showAddress(...{arguments})")

    def show_message(self, text: str) -> None:
        """Show an error above the page."""
        self.error.set_text(text)
        self.error.set_visibility(True)

    def show_exception(self, error: Exception) -> None:
        """Show an exception. The text is shown only for a ShoalError: other texts may contain values."""
        if self.is_closed:
            self.refresh()
            return
        text = str(error) if isinstance(error, ShoalError) else unexpected_message(error)
        self.error.set_text(f"{text} Your last change may be lost; reloading the page keeps your work.")
        self.error.set_visibility(True)

    def refresh(self) -> None:
        """Redraw the current step."""
        self.error.set_visibility(False)
        self.body.clear()
        if self.is_closed:
            self.nav.clear()
            with self.body:
                self._closed()
            return
        self.refresh_nav()
        missing = {step.name: step.missing for step in self.workspace.steps()}
        if self.workspace.table.inspection is None:
            missing[address.PROJECT] = NO_TABLE
        with self.body:
            if text := missing.get(self.state.step):
                self._missing(text)
            else:
                self.show[self.state.step](self)

    def refresh_nav(self) -> None:
        """Show which steps are usable and done, and whether the work is saved.

        The buttons are updated in place, because a click is lost if its button is replaced during the click.
        """
        saving = self.workspaces.saving
        if self.state.step in STEPS:
            saving.link(self.state.workspace).step = self.state.step
        self._show_address()
        self.ask_before_leaving(saving.unsaved(self.state.workspace))
        self.on_nav()
        table, steps = self.workspace.table, self.workspace.steps()
        if not self.step_buttons or self.title.is_deleted:
            self._create_nav(steps)
        self.title.clear()
        if table.name is not None:
            with self.title, elements.box("tight"):
                elements.tag("span", table.name, "nowrap small", id="table-name")
                elements.tag("span", plural(table.records, "record"), "muted small nowrap")
        for number, step in enumerate(steps, 1):
            self._show_step(number, step)

    def ask_before_leaving(self, unsaved: bool) -> None:
        """Set whether the browser asks for confirmation before the page is left."""
        self.body.client.run_javascript(f"studio.unsaved = {json.dumps(unsaved)}")

    def _create_nav(self, steps: Sequence[StepAnswer]) -> None:
        self.nav.clear()
        with self.nav:
            self.title = elements.box("")
            with elements.box("steps", "nav", aria_label="Steps"):
                for step in steps:
                    button = elements.box("step", "button", type="button")
                    with button:
                        dot = elements.tag("span", "", "dot", aria_hidden="true")
                        elements.tag("span", STEPS[step.name])
                    button.on("click", lambda _, name=step.name: self.go(name), args=[])
                    self.step_buttons[step.name] = button, dot

    def _show_step(self, number: int, step: StepAnswer) -> None:
        button, dot = self.step_buttons[step.name]
        dot.set_text("\u2713" if step.done else str(number))
        button.classes(replace="step done" if step.done else "step")
        button._props["title"] = button._props["aria-description"] = step.missing or ""
        button._props["data-usable"] = "true" if step.usable else "false"
        button._props.set_optional("aria-current", "step" if step.name == self.state.step else None)
        button.update()

    async def change(
        self, show_error: Callable[[str], Any], function: Callable[..., Any], *arguments: Any
    ) -> bool:
        """Change the policy in a thread, and redraw the step. Return whether the policy was changed."""

        def change() -> None:
            function(*arguments)
            self.workspace.prepare()

        async with self.changing:
            if not await run_in_thread(show_error, change):
                return False
            self.state.dials.clear()
            self.refresh()
            return True

    def _closed(self) -> None:
        async def open_another() -> None:
            try:
                self.state.workspace = await anyio.to_thread.run_sync(self.workspaces.open, self.user)
            except ShoalError as error:
                elements.set_error(line, str(error))
                return
            self.state.step, self.state.column = address.START, None
            self.state.dials.clear()
            self.state.fields.clear()
            self.refresh()

        name = self.state.workspace
        reason = self.workspaces.reason_closed(name) if name else ""
        with elements.empty_card(reason, "Session closed" if name else "No workspace is free"):
            elements.button("Open a new workspace", open_another, "primary")
            line = elements.error_line()

    def _missing(self, text: str) -> None:
        with elements.empty_card(text, "Not yet"):
            if self.workspace.table.inspection is None:
                elements.button("Choose a table", lambda: self.go(address.START), "primary")
            else:
                elements.button("Go to Data", lambda: self.go("data"), "primary")


def next_button(tab: TabView, classes: str = "") -> None:
    """Add the button that leads to the next step."""
    names = list(STEPS)
    following = names[names.index(tab.state.step) + 1]
    elements.button(f"Next: {STEPS[following]} \u2192", lambda: tab.go(following), f"nowrap {classes}")


async def run_in_thread(
    show_error: Callable[[str], Any], function: Callable[..., Any], *arguments: Any
) -> bool:
    """Call a function in a thread. If it fails, show its error. Return whether it succeeded."""
    try:
        await anyio.to_thread.run_sync(function, *arguments)
    except ShoalError as error:
        show_error(str(error))
        return False
    return True


async def receive_file(
    show_error: Callable[[str | None], Any], begin: Callable[[], Upload], event: Any
) -> Upload | None:
    """Write an uploaded file into the private folder of the workspace, or show the error."""
    show_error(None)
    try:
        with begin() as upload:
            async for piece in event.file.iterate():
                await anyio.to_thread.run_sync(upload.write, piece)
    except ShoalError as error:
        show_error(str(error))
        return None
    finally:
        event.sender.reset()
    return upload


class JobView:
    """The progress of jobs of one kind, with a button to cancel them, and their errors."""

    def __init__(
        self,
        tab: TabView,
        kind: str,
        on_done: Callable[[Job], Any],
        on_error: Callable[[Job], bool] | None = None,
        on_cancel: Callable[[Job], Any] | None = None,
    ) -> None:
        self.tab, self.kind, self.on_done = tab, kind, on_done
        self.on_error, self.on_cancel = on_error, on_cancel
        self.job: Job | None = None
        self.line = elements.box("line", role="status")
        self.error = elements.message("", "bad")
        self.note = elements.message("", "warn")
        with self.line:
            self.bar = elements.box("", "progress", aria_label="Progress")
            self.text = elements.tag("span", "", "muted small num")
            self.cancel_button = elements.button("Cancel", self.cancel, "small")
        self.timer = ui.timer(_JOB_POLL, self.tick, active=False)
        self.show_message(None)
        self.line.set_visibility(False)
        last = next((job for job in tab.workspaces.jobs.of(tab.state.workspace) if job.kind == kind), None)
        if last is not None and not last.ended:
            self.watch(last)
        elif last is not None and last.status == "failed" and kind == "open":
            self.show_message(last.error)  # the last job may have failed before this view was created

    def start(self, work: JobWork) -> None:
        self.watch(self.tab.workspaces.start(self.tab.state.workspace, self.kind, work))

    def watch(self, job: Job) -> None:
        self.job = job
        self.show_message(None)
        self.cancel_button._props["disabled"] = False
        self.line.set_visibility(True)
        self.show_progress()
        self.timer.activate()

    def cancel(self) -> None:
        if self.job is not None:
            self.job.cancel()
            self.text.set_text("Stopping \u2026")
            self.cancel_button._props["disabled"] = True
            self.cancel_button.update()

    def show_message(self, error: str | None, note: str | None = None) -> None:
        """Show an error or a note, or remove both."""
        for element, text in ((self.error, error), (self.note, note)):
            element.set_text(text or "")
            element.set_visibility(bool(text))

    def show_progress(self) -> None:
        job = self.job
        if job is None or self.cancel_button._props.get("disabled"):
            return
        phase = "Waiting for other jobs" if job.status == "waiting" else _PHASES.get(job.phase, job.phase)
        if job.total:
            self.text.set_text(f"{phase}: {job.done:,} of {job.total:,}")
            self.bar._props.update(value=min(job.done, job.total), max=job.total)
        else:
            self.text.set_text(f"{phase} \u2026")
            self.bar._props.pop("value", None)
        self.bar.update()

    async def tick(self) -> None:
        """Update the progress, or handle the end of the job."""
        job = self.job
        if job is None or not job.ended:
            self.show_progress()
            return
        self.timer.deactivate()
        self.line.set_visibility(False)
        self.job = None
        if job.status == "cancelled":
            self.show_message(None, "Cancelled. Nothing was kept.")
            if self.on_cancel is not None:
                self.on_cancel(job)
        elif job.status == "failed":
            if not (self.on_error and self.on_error(job)):
                self.show_message(job.error)
        else:
            result = self.on_done(job)
            if inspect.isawaitable(result):
                await result


class JobForm(elements.Form):
    """A form whose values are a request to an API path. The request starts a job; its progress is shown."""

    def __init__(self, tab: TabView, path: str, defaults: Mapping[str, Any]) -> None:
        super().__init__(tab.state.fields.setdefault(path, dict(defaults)))
        self.tab, self.path, self.begin = tab, path, action.job(path)
        self.job_view: JobView

    def add_job_view(self, on_done: Callable[[], Any] | None = None) -> None:
        """Add the progress of the job. At its end, call `on_done`, or show the step again if it is None."""
        after_job = on_done or self.tab.refresh
        self.job_view = JobView(self.tab, self.path, lambda _: after_job(), self.show_job_error)

    def start(self, unchecked: Mapping[str, Any] | None = None, **request: Any) -> None:
        """Start the job with a request, or show the errors of the request beside the fields.

        The job checks the `unchecked` part itself.
        """
        errors = action.form_errors(self.begin, **request)
        self.show_errors(errors)
        if errors:
            others = [text for name, text in errors.items() if name not in self.fields]
            self.job_view.show_message(others[0] if others else None)
            return
        try:
            work = self.begin(self.tab.workspace, **request, **(unchecked or {}))
        except ShoalError as error:
            self.job_view.show_message(str(error))
            return
        self.job_view.start(work)

    def show_job_error(self, job: Job) -> bool:
        """Show an error beside the field that caused it. Return whether the form has this field."""
        name = "k" if job.field == "l" else job.field
        if name in self.fields:
            self.fields[name].set_error(job.error)
        return name in self.fields
