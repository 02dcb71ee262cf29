"""Saving and opening projects: in the folder of projects, automatically, and as one file."""

from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from shoal.core.progress import Progress
from shoal.engines.frames import WorkbookSheet
from shoal.errors import ShoalError
from shoal.web.errors import NotReady, Refused, type_and_line
from shoal.web.workspace.files import Upload
from shoal.web.workspace.project_archive import (
    ENDING,
    extract_table,
    read_archive,
    table_name,
    write_archive,
)
from shoal.web.workspace.project_file import MAX_BYTES, SavedProject, apply_project, project_of
from shoal.web.workspace.projects import Projects, ProjectSummary, columns_digest, table_ending
from shoal.web.workspace.release import stem
from shoal.web.workspace.table import TableSource

if TYPE_CHECKING:
    from shoal.web.workspace.workspaces import Workspaces

_NO_FOLDER = "Projects are saved on the server if it is started with --projects. Save the project as a file."
_STAYS = "The rows of this table stay in its database. The project is saved without them."
_LOG = logging.getLogger("shoal.web")
_SAVE_AFTER = 0.5  # seconds without a change before a save


@dataclass
class ProjectLink:
    """The link between a workspace and its project."""

    name: str = ""  # the name that its owner sees
    id: str | None = None  # ID of the saved project
    saved_edits: int = 0  # the number of edits at the time of the last save
    step: str = "data"
    pending: SavedProject | None = None  # a project that waits for its table
    problem: str = ""  # why the opened table does not match the project
    pending_id: str | None = None


class Saving:
    """The projects of the workspaces of a studio."""

    def __init__(self, workspaces: Workspaces, folder: str | Path | None) -> None:
        self.workspaces = workspaces
        self.store = None if folder is None else Projects(folder)
        self.autosave = Autosave(self.save)
        self._links: dict[str, ProjectLink] = {}

    # The links of workspaces.

    def link(self, name: str) -> ProjectLink:
        return self._links.setdefault(name, ProjectLink())

    def watch(self, name: str) -> Callable[[], None]:
        """Return a function that a workspace calls after each change."""

        def changed() -> None:
            if self.store is not None and self.link(name).pending is None:
                self.autosave.mark(name)

        return changed

    def forget(self, name: str) -> None:
        """Forget a workspace that was closed."""
        self.autosave.forget(name)
        self._links.pop(name, None)

    def table_changed(self, name: str) -> None:
        """Begin a new project after another table was opened, unless a project waits for its table."""
        link = self.link(name)
        if link.pending is None:
            self._links[name] = ProjectLink()

    def unsaved(self, name: str) -> bool:
        """Return whether a workspace has changes that are in no saved project and no project file."""
        if self.store is not None:  # projects are saved automatically
            return False
        return self.workspaces.peek(name).history.edits > self.link(name).saved_edits

    # Saving.

    def save(self, name: str, title: str | None = None) -> ProjectSummary:
        store = self.required_store
        workspace, owner = self.workspaces.peek(name), self.workspaces.owner(name)
        link = self.link(name)
        edits = workspace.history.edits
        project = self.project(name, title)
        if link.id is None:
            link.id = store.create(owner)
        link.name = project.name
        store.save(owner, link.id, project)
        link.saved_edits = edits
        return store.summary(owner, link.id)

    def project(self, name: str, title: str | None = None) -> SavedProject:
        workspace, link = self.workspaces.peek(name), self.link(name)
        _ = workspace.table.loaded
        project_name = (title or link.name or _stem(workspace.table.name or "table")).strip()
        return project_of(workspace, project_name or "project", link.step)

    @property
    def required_store(self) -> Projects:
        """The saved projects; raises NotReady without `--projects`."""
        if self.store is None:
            raise NotReady(_NO_FOLDER, "project")
        return self.store

    def keep_table(self, name: str, keep: bool) -> ProjectSummary:
        """Keep a copy of an uploaded table with the project, or delete the copy."""
        self.save(name)
        store, owner, link = self.required_store, self.workspaces.owner(name), self.link(name)
        workspace = self.workspaces.peek(name)
        if keep and workspace.table.remote is not None:
            raise NotReady(_STAYS, "keep")
        if keep and workspace.table.file is not None:
            store.keep_table(owner, link.id or "", workspace.table.file)
        elif workspace.table.path == store.table(owner, link.id or ""):
            raise NotReady("The table is open from this copy. Delete the project to delete it.", "keep")
        else:
            store.forget_table(owner, link.id or "")
        return self.save(name)

    def keeps_table(self, name: str) -> bool:
        """Return whether the project of a workspace has a copy of the table."""
        link = self.link(name)
        if self.store is None or link.id is None:
            return False
        return self.store.table(self.workspaces.owner(name), link.id) is not None

    # Opening.

    def open(self, name: str, project_id: str, progress: Progress | None = None) -> None:
        """Open a saved project in a workspace. If its table is not available, wait for its upload."""
        owner = self.workspaces.owner(name)
        project = self.required_store.load(owner, project_id)
        table_copy = self.required_store.table(owner, project_id)
        self._begin(name, project, project_id)
        if table_copy is not None:
            self.workspaces.open_table(name, table_copy, project.table.name, progress)
            self.workspaces.peek(name).table.source = TableSource("upload")
        else:
            self._open_known_table(name, project, progress)

    def _begin(self, name: str, project: SavedProject, project_id: str | None) -> None:
        link = self.link(name)
        link.pending, link.pending_id, link.problem = project, project_id, ""

    def _open_known_table(self, name: str, project: SavedProject, progress: Progress | None) -> None:
        """Open the table if the server has it. A path from a project file must be inside the data folder."""
        table, workspaces = project.table, self.workspaces
        if table.source == "sample":
            workspaces.open_sample(name, progress)
        elif table.source == "given" and workspaces.data is not None and workspaces.data.name == table.name:
            workspaces.open_given_table(name, progress)
        elif table.source == "source":
            with suppress(Refused):  # the file of sources has changed
                workspaces.open_source(name, table.path or "", progress)
        elif table.source == "folder" and workspaces.data_folder.path is not None:
            try:
                path = workspaces.data_folder.resolve(table.path or "")
            except ShoalError:
                return
            workspaces.open_table(name, path, path.name, progress)

    def awaited_sheet(self, name: str) -> WorkbookSheet | None:
        """Return the sheet of the workbook that the project of a workspace waits for."""
        project = self.link(name).pending
        if project is None or project.table.sheet is None:
            return None
        return WorkbookSheet(project.table.sheet, project.table.header_row or 1)

    def apply_pending(self, name: str) -> None:
        """Apply the project that waited for the table which was just opened."""
        link, workspace = self.link(name), self.workspaces.peek(name)
        project = link.pending
        if project is None:
            return
        try:
            apply_project(workspace, project)
        except ShoalError as error:
            link.problem = str(error)
            return
        link.pending, link.problem = None, ""
        link.name, link.id, link.step = project.name, link.pending_id, project.step
        link.pending_id, link.saved_edits = None, workspace.history.edits

    def drop_pending(self, name: str) -> None:
        """Discard the pending project, and continue with the open table."""
        link = self.link(name)
        link.pending, link.pending_id, link.problem = None, None, ""

    def earlier(self, name: str) -> ProjectSummary | None:
        """Return the last saved project about a table with the same columns as the open one."""
        workspace, link = self.workspaces.peek(name), self.link(name)
        if self.store is None or workspace.table.inspection is None:
            return None
        columns = columns_digest(workspace.table.loaded.names)
        others = (project for project in self.store.all(self.workspaces.owner(name)) if project.id != link.id)
        return next((project for project in others if project.columns == columns), None)

    def start_from(self, name: str, project_id: str) -> None:
        """Apply roles, hierarchies and settings of a saved project to the open table. Undo is possible."""
        project = self.required_store.load(self.workspaces.owner(name), project_id)
        apply_project(self.workspaces.peek(name), project, history=False)

    def workspace_of(self, owner: str, project_id: str) -> str | None:
        """Return the open workspace of a project, if there is one."""
        names = [name for name, link in self._links.items() if project_id in (link.id, link.pending_id)]
        return next((name for name in names if name in self.workspaces.of(owner)), None)

    def delete(self, owner: str, project_id: str) -> None:
        """Delete a project with everything in it, and the workspace in which it is open."""
        self.required_store.delete(owner, project_id)
        while (name := self.workspace_of(owner, project_id)) is not None:
            self.workspaces.delete(name)

    # One file.

    def write_file(self, name: str, *, with_table: bool) -> Path:
        """Write the project of a workspace as a file into its private folder. The caller removes the file."""
        workspace = self.workspaces.peek(name)
        edits, project = workspace.history.edits, self.project(name)
        if with_table and workspace.table.remote is not None:
            raise NotReady(_STAYS, "table")
        path = workspace.folder / f"project-{secrets.token_hex(6)}{ENDING}"
        try:
            write_archive(path, project, workspace.table.file if with_table else None)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        self.link(name).saved_edits = edits
        return path

    def file_name(self, name: str) -> str:
        return f"{stem(self.project(name).name)}{ENDING}"

    def receive_file(self, name: str, file_name: str) -> Upload:
        """Prepare to receive a project file."""
        if not file_name.lower().endswith(ENDING):
            raise Refused(f"A project is a file that ends in {ENDING}.", "file")
        path = self.workspaces.get(name).folder / f"upload-{secrets.token_hex(6)}{ENDING}"
        return Upload(path, file_name[-120:], self.workspaces.upload_limit + MAX_BYTES)

    def open_file(self, name: str, path: Path, progress: Progress | None = None) -> None:
        """Open a project file that was received, then remove the file."""
        try:
            project = read_archive(path)
            table = table_name(path)
            if table is not None:
                shown = _with_ending(project.table.name, table_ending(table))
                upload = self.workspaces.receive_upload(name, shown)
                with upload:
                    extract_table(path, upload)
                self._begin(name, project, None)
                self.workspaces.open_table(name, upload.path, upload.name, progress)
                return
        finally:
            path.unlink(missing_ok=True)
        workspace = self.workspaces.peek(name)
        if workspace.table.inspection is not None:
            apply_project(workspace, project, history=False)
            return
        self._begin(name, project, None)
        self._open_known_table(name, project, progress)


def _stem(name: str) -> str:
    try:
        return name[: -len(table_ending(name))]
    except Refused:
        return name


def _with_ending(name: str, ending: str) -> str:
    return name if name.lower().endswith(ending) else f"{name[:100]}{ending}"


class Autosave:
    """Saves workspaces by name in a thread that runs only while there are changes to save."""

    def __init__(self, save: Callable[[str], object]) -> None:
        self._save = save
        self._changed = threading.Condition()
        self._waiting: dict[str, None] = {}
        self._thread: threading.Thread | None = None
        self._hurry = False

    def mark(self, name: str) -> None:
        """Save a workspace in the thread, after a short delay."""
        with self._changed:
            self._waiting[name] = None
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="shoal-autosave", daemon=True)
                self._thread.start()

    def flush(self) -> None:
        """Save all changed workspaces immediately."""
        with self._changed:
            thread, self._hurry = self._thread, True
            self._changed.notify_all()
        if thread is not None:
            thread.join()
        self._hurry = False

    def forget(self, name: str) -> None:
        """Discard a deleted workspace without saving it."""
        with self._changed:
            self._waiting.pop(name, None)

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._hurry and self._changed.wait(_SAVE_AFTER):
                    pass  # another change: wait again
                names = list(self._waiting)
                if not names:
                    self._thread = None
                    return
            for name in names:
                with self._changed:
                    self._waiting.pop(name, None)
                try:
                    with suppress(ShoalError):  # the workspace or the project may have been deleted
                        self._save(name)
                except Exception as error:  # the error's text may quote a value
                    _LOG.error("%s while saving a project", type_and_line(error))
