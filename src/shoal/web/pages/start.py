"""The first page: the purpose of the studio, and the ways to open a table or a project."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anyio.to_thread
from nicegui import ui

from shoal.engines.frames import WorkbookSheet
from shoal.errors import ShoalError
from shoal.web.pages import elements
from shoal.web.pages.project import ProjectList, ProjectUpload, pending_card
from shoal.web.pages.tab import JobView, TabView, receive_file
from shoal.web.workspace.files import file_types, needs_choice
from shoal.web.workspace.workspaces import format_duration

_HEAD = ("Name", "Age", "Sex", "Postcode", "Admitted", "Diagnosis")
# Three records of the bundled sample, before and after the release with its policy.
BEFORE = (
    ("Rosa Khan", "47", "female", "31252", "2025-02-18", "head injury"),
    ("Agnes Hansen", "47", "female", "33206", "2025-03-31", "forearm fracture"),
    ("Olga Novak", "43", "female", "31205", "2025-05-12", "pneumonia"),
)
AFTER = (
    ("removed", "40-59", "female", "3*", "2025-H1", "head injury"),
    ("removed", "40-59", "female", "3*", "2025-H1", "forearm fracture"),
    ("removed", "40-59", "female", "3*", "2025-H1", "pneumonia"),
)
_STEPS = {
    "Data": "Say what each column is, and how its values may be made coarser.",
    "Diagnose": "See how exposed the records are, and which columns make them so.",
    "Negotiate": "Turn dials for privacy and detail. Each answer comes at once.",
    "Compare": "See what several algorithms make of the same table.",
    "Release": "Write the table. It is read back and checked before you can download it.",
}


def introduction() -> None:
    """Add the introduction: what the studio does, for whom, three records before and after, and the steps."""
    title = "Share a table without giving away the people in it"
    with elements.card(title, data_part="introduction").classes("narrow"):
        elements.tag(
            "p",
            "The studio makes a table of people's records safe to share: names are removed, and values are "
            "made coarser until every record looks like others. It is for those who answer for such a table "
            "in a hospital, a registry, a ministry or a company, for researchers, and for ethics boards.",
        )
        elements.tag(
            "p",
            "Out come the table to share, a codebook for those who analyse it, and a report on what was "
            "guaranteed, proven and lost. Nothing leaves this machine.",
        )
        with elements.box("split halves"):
            for title, rows in (("Three of 5,000 records", BEFORE), ("Released: they look alike", AFTER)):
                with elements.box("tight"):
                    elements.tag("h3", title)
                    changed = {(row, cell): "changed" for row in range(3) for cell in (0, 1, 3, 4)}
                    marks = changed if rows is AFTER else {}
                    elements.table(_HEAD, rows, classes="fit small", cell_classes=marks)
        with elements.box("five-steps", "ol"):
            for name, text in _STEPS.items():
                with elements.box("", "li"):
                    elements.tag("b", name)
                    elements.tag("span", text, "muted small")


class TableChoice:
    """The ways to open a table: the sample, an upload, or a file below the given folder."""

    def __init__(self, tab: TabView) -> None:
        self.tab = tab
        was_open = tab.workspace.table.inspection is not None
        pending_card(tab)
        if not was_open:
            introduction()
        with elements.card(
            "Choose a table",
            f"A {file_types()} file with one record per row. It stays on this machine. This workspace and "
            f"its files are deleted after {format_duration(tab.workspaces.keep_seconds)} without use, when "
            "the studio ends, or at once with Delete above.",
        ).classes("narrow"):
            with elements.box("cards"):
                self._sample()
                self._upload()
                if tab.workspaces.data_folder.path is not None:
                    self._folder()
                if sources := tab.workspaces.sources.of(tab.workspaces.owner(tab.state.workspace)):
                    self._sources([source.name for source in sources])
            self.sheet_box = elements.box("")
            self.error = elements.error_line()
            self.job_view = JobView(tab, "open", self.show_table)
            if not was_open and tab.workspace.table.inspection is not None:  # the table was opened meanwhile
                ui.timer(0.01, lambda: self.show_table(None), once=True)
            with elements.box("line"):
                ProjectUpload(tab, self.job_view, self.show_error)
            if was_open:
                with elements.box("line"):
                    elements.button("Keep the present table", self.back, "plain")
        ProjectList(tab, self.job_view)

    def _sample(self) -> None:
        with elements.box("offer"):
            elements.tag("h3", "The sample")
            elements.note("5,000 made-up hospital admissions, with roles and hierarchies.")
            elements.button("Open the sample", self.open_sample, "primary")

    def open_sample(self) -> None:
        name = self.tab.state.workspace
        self.start(lambda progress: self.tab.workspaces.open_sample(name, progress))

    def _upload(self) -> None:
        limit = self.tab.workspaces.upload_limit
        with elements.box("offer", data_part="drop") as offer:
            elements.tag("h3", "A file of yours")
            elements.note(f"{self.tab.workspaces.upload_limits()} It is kept in a private folder.")
            upload = elements.upload_button(
                "Upload a file",
                self.receive,
                limit,
                on_begin_upload=lambda: self.show_error(None),
                on_rejected=lambda: self.show_error(f"The file is larger than {limit:,} bytes, the limit."),
            )
            elements.note("Or drop it here.")
        offer.on("dragover", js_handler="(event) => studio.dragOver(event)")
        offer.on("dragleave", js_handler="(event) => studio.dragLeave(event)")
        offer.on("drop", js_handler=f"(event) => studio.dropFile(event, {upload.id})")

    def _sources(self, names: list[str]) -> None:
        workspaces, workspace = self.tab.workspaces, self.tab.state.workspace
        with elements.box("offer", data_part="sources"):
            elements.tag("h3", "A table in a database")
            elements.note(
                "The rows stay there: only values, counts and the rows of a release leave the database. "
                f"Up to {workspaces.limits.columns:,} columns."
            )
            select = elements.select("Source", names, names[0], lambda _: None, show_label=False)

            def open_source() -> None:
                source = elements.value_of(select)
                self.start(lambda progress: workspaces.open_source(workspace, source, progress))

            elements.button("Open the source", open_source)

    def _folder(self) -> None:
        folder = self.tab.workspaces.data_folder
        with elements.box("offer"):
            elements.tag("h3", "A file below the folder")
            tables = [file.name for file in folder.tables()]
            if not tables:
                elements.note("There is no table there.")
                return
            select = elements.select("File", tables, tables[0], lambda _: None, show_label=False)

            async def open_file() -> None:
                try:
                    path = folder.resolve(elements.value_of(select))
                except ShoalError as error:
                    self.show_error(str(error))
                else:
                    await self.open_file(path, path.name)

            elements.button("Open", open_file)

    async def receive(self, event: Any) -> None:
        workspaces, name = self.tab.workspaces, self.tab.state.workspace
        upload = await receive_file(
            self.show_error, lambda: workspaces.receive_upload(name, event.file.name), event
        )
        if upload is not None:
            await self.open_file(upload.path, upload.name)

    async def open_file(self, path: Path, display_name: str) -> None:
        """Open a table. If a workbook has several sheets or rows above its header, ask for sheet and row."""
        workspaces, name = self.tab.workspaces, self.tab.state.workspace
        self.sheet_box.clear()
        self._remove_waiting()
        sheets: list[WorkbookSheet] = []
        if workspaces.saving.awaited_sheet(name) is None:
            try:
                sheets = await anyio.to_thread.run_sync(workspaces.sheets, name, path, display_name)
            except ShoalError as error:
                self.tab.state.fields["workbook"] = path
                self._remove_waiting()
                self.show_error(str(error))
                return
        if not needs_choice(sheets):
            self.start(lambda progress: workspaces.open_table(name, path, display_name, progress))
            return
        self.tab.state.fields["workbook"] = path  # until a sheet is chosen
        with self.sheet_box:
            SheetChoice(sheets, display_name, lambda sheet: self.open_sheet(path, display_name, sheet))

    def _remove_waiting(self) -> None:
        """Remove an uploaded workbook if none of its sheets was chosen."""
        path = self.tab.state.fields.pop("workbook", None)
        if path is not None and path.parent == self.tab.workspace.folder:
            path.unlink(missing_ok=True)

    def open_sheet(self, path: Path, title: str, sheet: WorkbookSheet) -> None:
        name = self.tab.state.workspace
        self.tab.state.fields.pop("workbook", None)
        self.sheet_box.clear()
        self.start(lambda progress: self.tab.workspaces.open_table(name, path, title, progress, sheet=sheet))

    def show_error(self, text: str | None) -> None:
        """Show an error, or remove the last one."""
        self.job_view.show_message(None)
        elements.set_error(self.error, text)

    def start(self, work: Any) -> None:
        self.show_error(None)
        self.job_view.start(work)

    def show_table(self, _: Any) -> None:
        self.tab.show_table()

    def back(self) -> None:
        self.tab.go("data")


class SheetChoice:
    """The choice of a sheet, and of the row that names its columns."""

    def __init__(
        self, sheets: Sequence[WorkbookSheet], display_name: str, on_open: Callable[[WorkbookSheet], Any]
    ) -> None:
        self.rows = {sheet.name: sheet.header_row for sheet in sheets}
        self.on_open = on_open
        self.name = sheets[0].name
        with elements.box("offer", data_part="sheets"):
            elements.tag("h3", f"Which sheet of {display_name}?")
            elements.note("The rows above the column names are left out.")
            with elements.box("line", style="align-items: flex-end"):
                elements.select("Sheet", list(self.rows), self.name, self.choose)
                self.form = elements.Form({"row": str(sheets[0].header_row)})
                self.form.text("row", "Row of the column names", inputmode="numeric")
                elements.button("Open this sheet", self.open, "primary")

    def choose(self, name: str) -> None:
        """Choose a sheet, and suggest the row that probably contains the column names."""
        self.name = name
        self.form.values["row"] = str(self.rows[name])
        elements.set_value(self.form.fields["row"].element, str(self.rows[name]))

    def open(self) -> Any:
        row = elements.parse_whole(self.form.values["row"])
        if not row or row > 10_000:
            self.form.show_errors({"row": "A row is a number from 1 to 10,000."})
            return None
        return self.on_open(WorkbookSheet(self.name, row))
