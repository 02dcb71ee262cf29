"""Projects: the list on the first page, the page of a project, and the offer to reuse a project."""

from __future__ import annotations

from functools import partial
from typing import Any

from shoal.web.pages import elements
from shoal.web.pages.tab import JobView, TabView, receive_file, run_in_thread
from shoal.web.workspace.project_archive import ENDING
from shoal.web.workspace.projects import ProjectSummary
from shoal.wording import plural

_MAX_LISTED = 50


class ProjectList:
    """The saved projects of the user, and the open tables of closed tabs."""

    def __init__(self, tab: TabView, job_view: JobView) -> None:
        self.tab, self.job_view = tab, job_view
        self.saving = tab.workspaces.saving
        self.box = elements.card().classes("narrow projects")
        self.draw()

    def draw(self) -> None:
        projects = [] if self.saving.store is None else self.saving.store.all(self.tab.user)
        tables = self._open_tables()
        self.box.clear()
        self.box.set_visibility(bool(projects or tables))
        with self.box:
            elements.tag("h2", "Your projects" if projects else "Your open tables")
            for project in projects[:_MAX_LISTED]:
                self._project(project)
            if len(projects) > _MAX_LISTED:
                elements.note(f"and {len(projects) - _MAX_LISTED:,} more")
            for name in tables:
                self._table(name)
            self.error = elements.error_line()

    def _open_tables(self) -> list[str]:
        """Return the workspaces with a table that are not saved as a project."""
        workspaces = self.tab.workspaces
        names = [name for name in workspaces.of(self.tab.user) if self.saving.link(name).id is None]
        return [
            name
            for name in names
            if name != self.tab.state.workspace and workspaces.peek(name).table.inspection is not None
        ]

    def _project(self, project: ProjectSummary) -> None:
        with elements.box("line spread offer-line", data_project=project.name):
            with elements.box("tight"):
                elements.tag("b", project.name)
                table_note = "with its table" if project.keeps_table else "without its table"
                saved = project.saved[:16].replace("T", " ")
                records = plural(project.records, "record")
                elements.note(f"{project.table}, {records}; saved {saved} UTC, {table_note}.")
            with elements.box("line"):
                label = f"Open {project.name}"
                elements.button("Open", partial(self.open, project), "small primary", aria_label=label)
                label = f"Delete {project.name}"
                delete = elements.button("Delete", lambda: press(), "small", aria_label=label)
        confirming = False

        async def press() -> None:
            nonlocal confirming
            if confirming:
                remove = self.saving.delete
                await run_in_thread(self.error.set_text, remove, self.tab.user, project.id)
                self.draw()
                return
            confirming = True
            delete.set_text("Delete now, with everything in it")
            delete.classes("bad")

    def _table(self, name: str) -> None:
        table = self.tab.workspaces.peek(name).table
        with elements.box("line spread offer-line"):
            with elements.box("tight"):
                elements.tag("b", table.name or "table")
                elements.note(f"{plural(table.records, 'record')}; open in this studio, not saved.")
            elements.button("Continue", lambda: self.tab.switch(name), "small")

    def open(self, project: ProjectSummary) -> None:
        """Open a project in this tab, or show the workspace in which it is already open."""
        name = self.saving.workspace_of(self.tab.user, project.id)
        if name is not None and self.tab.workspaces.peek(name).table.inspection is not None:
            self.tab.switch(name)
            return
        workspace = self.tab.state.workspace
        self.job_view.start(lambda progress: self.saving.open(workspace, project.id, progress))


class ProjectUpload:
    """The button that opens a project file."""

    def __init__(self, tab: TabView, job_view: JobView, show_error: Any) -> None:
        self.tab, self.job_view, self.show_error = tab, job_view, show_error
        limit = tab.workspaces.upload_limit
        elements.upload_button("Open a project file", self.receive, limit, accept=ENDING)

    async def receive(self, event: Any) -> None:
        saving, name = self.tab.workspaces.saving, self.tab.state.workspace
        upload = await receive_file(
            self.show_error, lambda: saving.receive_file(name, event.file.name), event
        )
        if upload is not None:
            self.job_view.start(lambda progress: saving.open_file(name, upload.path, progress))


def pending_card(tab: TabView) -> None:
    """Show which table the project waits for, and why the open table does not match."""
    link = tab.workspaces.saving.link(tab.state.workspace)
    if link.pending is None:
        return
    table = link.pending.table
    text = (
        f"The project '{link.pending.name}' needs its table, which is not kept on the server: upload "
        f"{table.name} ({plural(table.records, 'record')}), or a new version of it. {link.problem}"
    )

    def drop() -> None:
        tab.workspaces.saving.drop_pending(tab.state.workspace)
        tab.refresh()

    with elements.box("message warn tight", role="status", data_part="pending"):
        elements.tag("span", text)
        style = "align-self: flex-start"
        elements.button("Continue without the project", drop, "small", style=style)


def start_from_card(tab: TabView) -> None:
    """Offer to apply the settings of the last project whose table has the same columns."""
    saving, workspace = tab.workspaces.saving, tab.workspace
    if workspace.history.answer.undo is not None or saving.link(tab.state.workspace).id is not None:
        return
    earlier = saving.earlier(tab.state.workspace)
    if earlier is None:
        return

    async def start() -> None:
        await tab.change(tab.show_message, saving.start_from, tab.state.workspace, earlier.id)

    with elements.box("message line spread", role="status", data_part="start-from"):
        elements.tag(
            "span",
            f"You have worked on a table with these columns before: '{earlier.name}', saved "
            f"{earlier.saved[:10]}. Its roles, hierarchies and settings can be used here.",
        )
        elements.button("Start from last time", start, "small")


class ProjectView:
    """The page of the project: its name, table, file and history, and a button to delete it."""

    def __init__(self, tab: TabView) -> None:
        self.tab, self.saving = tab, tab.workspaces.saving
        self.name = tab.state.workspace
        with elements.box("split halves", style="align-items: start"):
            with elements.box("stack"):
                if self.saving.store is not None:
                    self._saved()
                self._file()
            with elements.box("stack"):
                self._history()
                self._delete()

    def _saved(self) -> None:
        link = self.saving.link(self.name)
        text = "Changes are saved automatically. Projects are kept until you delete them."
        with elements.card("Saved on the server", text):
            values = {"name": link.name or self.saving.project(self.name).name}
            form = elements.Form(values)

            async def save() -> None:
                title = values["name"].strip()
                if await run_in_thread(form.fields["name"].set_error, self.saving.save, self.name, title):
                    self.tab.refresh()

            with elements.box("line", style="align-items: flex-end"):
                form.text("name", "Name", 260)
                elements.button("Save", save, "primary")

            async def keep(on: bool) -> None:
                def change() -> None:
                    self.saving.keep_table(self.name, on)

                await run_in_thread(line.set_text, change)
                self.tab.refresh()

            keeps_table = self.saving.keeps_table(self.name)
            if self.tab.workspace.table.source.kind == "upload":
                elements.checkbox("Keep the table with the project", keeps_table, keep)
                elements.note(
                    "Without it, the project has no data: upload the table again when you open it later."
                )
            line = elements.error_line()

    def _file(self) -> None:
        address = f"/api/workspaces/{self.name}/project-file"
        with elements.card(
            "As one file",
            "Policy, hierarchies, settings and history, to open in another studio. Hierarchies may hold "
            "values of the table; keep the file private.",
        ):
            with elements.box("line"):
                link = elements.tag("a", "Download the project", "btn primary", href=address, download="")
                link._props["data-file"] = "project"
                with_data = f"{address}?table=true"
                link = elements.tag("a", "Download it with the data", "btn", href=with_data, download="")
                link._props["data-file"] = "project-with-data"
            self.error = elements.error_line()
            self.job_view = JobView(self.tab, "open", lambda _: self.tab.show_table())
            ProjectUpload(self.tab, self.job_view, partial(elements.set_error, self.error))
            elements.note("A project file without data is applied to the open table. This can be undone.")

    def _history(self) -> None:
        labels = self.tab.workspace.history.answer.labels
        with elements.card("Changes since the table was opened"):
            if not labels:
                elements.note("None.")
            with elements.box("tight", "ol", style="padding-left: 22px; max-height: 320px; overflow: auto"):
                for label in labels:
                    elements.tag("li", label)

    def _delete(self) -> None:
        with elements.card("Delete now", "The table, all results and files, and the saved project."):
            style = "align-self: flex-start"
            elements.button("Delete this project", self.tab.ask_delete, "bad", style=style)
