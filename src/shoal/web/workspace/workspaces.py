"""All workspaces of a studio. Each has a random name, and a private folder that is removed with it."""

from __future__ import annotations

import atexit
import secrets
import shutil
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any

from shoal.core.progress import Progress
from shoal.engines.frames import WorkbookSheet
from shoal.errors import ShoalError
from shoal.files.limits import LONGEST_CELL, Limits, limited
from shoal.files.work_folders import create, remove_stale, temporary_folder
from shoal.policy.policy import Policy
from shoal.web.errors import NotReady, Refused, Unknown, no_workspace
from shoal.web.server.shared_pages import SharedPages
from shoal.web.workspace.files import (
    UPLOAD_ENDINGS,
    DataFolder,
    Upload,
    extract_sheet,
    format_bytes,
    is_workbook,
    sheets_of,
)
from shoal.web.workspace.jobs import Job, Jobs, JobWork
from shoal.web.workspace.saving import Saving
from shoal.web.workspace.sources import Sources
from shoal.web.workspace.table import TableSource
from shoal.web.workspace.workspace import Workspace
from shoal.wording import plural
from shoal.workflow.attack.attack import Attack

UPLOAD_LIMIT = 1 << 30  # bytes
UNPACKED_LIMIT = 4 << 30  # bytes
COLUMN_LIMIT = 5_000
WORKSPACES_PER_USER = 32
KEEP_MINUTES = 24 * 60  # a workspace that is unused for this long is deleted
NOTICE_SECONDS = 30 * 60  # how long before the expiry the page shows a notice
IN_USE_SECONDS = 10 * 60  # a workspace with a table is not closed for another one while used in this time
_PREFIX = "shoal-studio-"
_REGISTER = "register-"
_CLOSED_FOR_ANOTHER = "You opened more than {limit} workspaces, and this one was unused for the longest time."
_MAX_REASONS = 1_000  # number of closed workspaces whose reason is stored


@dataclass
class _Entry:
    workspace: Workspace
    owner: str
    last_use: float


class Workspaces:
    """The open workspaces, their owners and their jobs."""

    def __init__(
        self,
        *,
        folder: str | Path | None = None,
        data: str | Path | None = None,
        policy: str | Path | None = None,
        upload_limit: int = UPLOAD_LIMIT,
        unpacked_limit: int = UNPACKED_LIMIT,
        column_limit: int = COLUMN_LIMIT,
        workspaces_per_user: int = WORKSPACES_PER_USER,
        keep_seconds: float = KEEP_MINUTES * 60,
        projects: str | Path | None = None,
        sources: str | Path | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.data_folder = DataFolder(folder)
        self.sources = Sources.read(sources)
        self.data = None if data is None else Path(data)  # the table of every new workspace
        self.policy = None if policy is None else Policy.load(policy)
        self.upload_limit = upload_limit
        self.limits = Limits(unpacked=unpacked_limit, columns=column_limit)
        self.workspaces_per_user = workspaces_per_user
        self.keep_seconds = keep_seconds
        self._clock = clock
        self.jobs = Jobs()
        self.leftovers = remove_stale(temporary_folder(), _PREFIX)  # number of folders of killed studios
        self._work_folder = create(temporary_folder(), _PREFIX)
        self.private = self._work_folder.path
        self._entries: dict[str, _Entry] = {}
        self._reasons: dict[str, str] = {}  # why a workspace was closed
        self._lock = threading.Lock()
        self.saving = Saving(self, projects)
        self.shared_pages = SharedPages(lambda name: name in self)
        atexit.register(self.close)

    # Opening and closing.

    def open(self, owner: str = "") -> str:
        """Create a workspace of a user and return its name.

        If the user has too many workspaces, the least recently used one that is empty or idle is closed.
        Workspaces of other users are never closed.
        """
        name = secrets.token_urlsafe(16)
        with self._lock:
            closed = self._close_idle(owner)
            folder = self.private / secrets.token_hex(8)
            folder.mkdir(mode=0o700)
            workspace = Workspace(folder)
            workspace.history.on_change.append(self.saving.watch(name))
            self._entries[name] = _Entry(workspace, owner, self._clock())
        for idle, jobs in closed:
            _remove_folder(idle.folder, jobs)
        return name

    def _close_idle(self, owner: str) -> list[tuple[Workspace, list[Job]]]:
        """Close workspaces of a user until another one may be opened. The lock must be held."""
        count = self._count(owner)
        reason = _CLOSED_FOR_ANOTHER.format(limit=self.workspaces_per_user)
        idle = self._idle(owner)[: max(0, count + 1 - self.workspaces_per_user)]
        closed = [self._close(name, reason) for name in idle]
        if count - len(closed) >= self.workspaces_per_user:
            raise NotReady(
                f"You have {self.workspaces_per_user} workspaces, which is the limit, and all of them are in "
                "use. Delete one of them first.",
                "workspace",
            )
        return closed

    def _idle(self, owner: str) -> list[str]:
        """Return a user's workspaces that may be closed for another one, the least recently used first."""
        recently = self._clock() - IN_USE_SECONDS
        idle = [
            (entry.last_use, name)
            for name, entry in self._entries.items()
            if entry.owner == owner
            and not self._is_busy(name)
            and (entry.workspace.table.inspection is None or entry.last_use <= recently)
        ]
        return [name for _, name in sorted(idle, key=itemgetter(0))]

    def _count(self, owner: str) -> int:
        return sum(entry.owner == owner for entry in self._entries.values())

    def _is_busy(self, name: str) -> bool:
        return any(not job.ended for job in self.jobs.of(name))

    def check_owner(self, name: str, user: str) -> None:
        """Raise the same error for a workspace of another user as for one that does not exist."""
        with self._lock:
            entry = self._entries.get(name)
        if entry is None or entry.owner != user:
            raise no_workspace()

    def get(self, name: str) -> Workspace:
        """Return a workspace. This call counts as use of the workspace."""
        self._expire_if_idle(name)
        with self._lock:
            entry = self._entry(name)
            entry.last_use = self._clock()
            return entry.workspace

    def peek(self, name: str) -> Workspace:
        """Return a workspace. This call does not count as use."""
        with self._lock:
            return self._entry(name).workspace

    def owner(self, name: str) -> str:
        with self._lock:
            return self._entry(name).owner

    def of(self, owner: str) -> list[str]:
        """Return the workspaces of a user, the most recently used first."""
        with self._lock:
            owned = [(-e.last_use, name) for name, e in self._entries.items() if e.owner == owner]
        return [name for _, name in sorted(owned)]

    def _entry(self, name: str) -> _Entry:
        if name not in self._entries:
            raise no_workspace()
        return self._entries[name]

    def __contains__(self, name: object) -> bool:
        return name in self._entries

    def delete(self, name: str, reason: str = "You deleted it, with all its files.") -> None:
        """Delete a workspace and all its files; running jobs are cancelled."""
        with self._lock:
            workspace, jobs = self._close(name, reason)
        _remove_folder(workspace.folder, jobs)

    def delete_with_project(self, name: str) -> None:
        """Delete a workspace, and its saved project if it has one."""
        owner, project = self.owner(name), self.saving.link(name).id
        if project is None:
            self.delete(name)
        else:
            self.saving.delete(owner, project)

    def _close(self, name: str, reason: str) -> tuple[Workspace, list[Job]]:
        """Remove a workspace from the list. Return it with its unfinished jobs. The lock must be held."""
        workspace = self._entry(name).workspace
        del self._entries[name]
        workspace.close()
        self.saving.forget(name)
        self._reasons[name] = reason
        for old in list(self._reasons)[:-_MAX_REASONS]:
            del self._reasons[old]
        return workspace, self.jobs.remove(name)

    def reason_closed(self, name: str) -> str:
        """Explain why a workspace no longer exists."""
        return self._reasons.get(name, "The studio was started again, or the workspace was deleted.")

    def close(self) -> None:
        """Stop all jobs and remove the private folder."""
        atexit.unregister(self.close)
        self.saving.autosave.flush()
        self.jobs.close()
        with self._lock:  # close the databases now: open ones print messages at exit
            for entry in self._entries.values():
                entry.workspace.close()
            self._entries.clear()
        self._work_folder.remove()

    # Expiry.

    def seconds_left(self, name: str) -> float:
        """Return the seconds until a workspace expires if nobody uses it. A running job counts as use."""
        with self._lock:
            entry = self._entries.get(name)
            if entry is None:
                return 0.0
            if self._is_busy(name):
                entry.last_use = self._clock()
            return max(0.0, entry.last_use + self.keep_seconds - self._clock())

    def expire(self) -> None:
        for name in tuple(self._entries):
            self._expire_if_idle(name)

    def _expire_if_idle(self, name: str) -> None:
        if self.seconds_left(name) <= 0:
            with suppress(Unknown):
                self.delete(name, f"Nobody used it for {format_duration(self.keep_seconds)}.")

    def expiry_notice(self, name: str) -> str | None:
        """Return a notice if a workspace will soon be deleted, else None. This call does not count as use."""
        left = self.seconds_left(name)
        if left <= min(NOTICE_SECONDS, self.keep_seconds / 2):
            return f"This workspace is deleted in {format_duration(max(60.0, left))} unless it is used."
        with self._lock:
            entry = self._entries.get(name)
            full = entry is not None and self._count(entry.owner) >= self.workspaces_per_user
            if entry is not None and full and self._idle(entry.owner)[:1] == [name]:
                return (
                    f"You have {self.workspaces_per_user} workspaces, which is the limit. This one is the "
                    "longest unused: it is deleted if you open another."
                )
        return None

    # Jobs and tables.

    def start(self, name: str, kind: str, work: JobWork) -> Job:
        """Start a job. A job that opens a table cancels all other jobs of the workspace."""
        self.get(name)
        if kind == "open":
            self.jobs.cancel(name)
        with self._lock:
            return self.jobs.start(name, kind, work, self._entry(name).owner)

    def open_given_table(self, name: str, progress: Progress | None = None) -> None:
        """Open the table and the policy that were given on the command line, if any."""
        workspace = self.get(name)
        if self.data is None:
            return
        with shown_as(self.data, self.data.name), limited(Limits(columns=self.limits.columns)):
            workspace.open(self.data, self.data.name, progress)
        if self.policy is not None:
            workspace.draft.adopt(self.policy)
            workspace.history.reset()
        workspace.table.source = TableSource("given")
        self._table_opened(name, workspace)

    def open_table(
        self,
        name: str,
        path: Path,
        display_name: str,
        progress: Progress | None = None,
        *,
        sheet: WorkbookSheet | None = None,
    ) -> None:
        """Open a table. The previous upload is removed. If a new upload cannot be read, it is removed, too.

        In a workbook, `sheet` is opened, by default the first sheet.
        """
        workspace = self.get(name)
        before = workspace.table.file
        uploaded = path.parent == workspace.folder  # only uploads are removed later
        sheet = sheet or self.saving.awaited_sheet(name)
        table_path = path
        try:
            with shown_as(path, display_name), limited(self._limits_on(path, workspace)):
                if sheet is not None and is_workbook(path):
                    table_path = extract_sheet(path, sheet, workspace.folder)
                with shown_as(table_path, display_name):
                    workspace.open(table_path, display_name, progress)
        except BaseException:
            _remove_upload(path, workspace.folder)
            _remove_upload(table_path, workspace.folder)
            raise
        for old in {path, before} - {table_path, None}:
            _remove_upload(old, workspace.folder)
        source = self._source(path, uploaded=uploaded)
        workspace.table.source = replace(source, sheet=sheet if table_path != path else None)
        self._table_opened(name, workspace)

    def open_source(self, name: str, source: str, progress: Progress | None = None) -> None:
        """Open a database table if the user has access to it. The rows stay in the database."""
        workspace = self.get(name)
        before, remote = (
            workspace.table.file,
            self.sources.resolve(source, self.owner(name), workspace.folder),
        )
        with limited(Limits(columns=self.limits.columns)):
            workspace.open(remote, source, progress)
        _remove_upload(before, workspace.folder)
        workspace.table.source = TableSource("source", source)
        self._table_opened(name, workspace)

    def sheets(self, name: str, path: Path, display_name: str) -> list[WorkbookSheet]:
        """Return the sheets of a workbook to open in a workspace; an empty list for other files."""
        if not is_workbook(path):
            return []
        with shown_as(path, display_name), limited(self._limits_on(path, self.get(name))):
            return sheets_of(path)

    def _limits_on(self, path: Path, workspace: Workspace) -> Limits:
        """Return the size limits for a table. A file of the server may be larger than an upload."""
        uploaded = path.parent == workspace.folder
        return self.limits if uploaded else Limits(columns=self.limits.columns)

    def _source(self, path: Path, *, uploaded: bool) -> TableSource:
        folder = self.data_folder.path
        if uploaded or folder is None or not path.is_relative_to(folder):
            return TableSource("upload")
        return TableSource("folder", path.relative_to(folder).as_posix())

    def open_sample(self, name: str, progress: Progress | None = None) -> None:
        """Open the bundled sample with its policy."""
        workspace = self.get(name)
        before = workspace.table.file
        workspace.open_sample(progress)
        _remove_upload(before, workspace.folder)
        self._table_opened(name, workspace)

    def _table_opened(self, name: str, workspace: Workspace) -> None:
        """Apply the project that waits for this table, or begin a new one."""
        self.saving.table_changed(name)
        self.saving.apply_pending(name)
        workspace.prepare()

    def receive_register(self, name: str, file_name: str) -> Upload:
        """Prepare to receive a register of persons. A register left by an earlier attack is removed."""
        self.get(name).attack.check()
        for path in self.get(name).folder.glob(f"{_REGISTER}*"):
            path.unlink(missing_ok=True)
        return self.receive_upload(name, file_name, _REGISTER)

    def attack(
        self, name: str, register: Upload, on: Sequence[str], progress: Progress | None = None, **options: Any
    ) -> Attack:
        """Attack the release with a register that was received, and delete the register."""
        try:
            with shown_as(register.path, register.name), limited(self.limits):
                return self.get(name).attack.run(register.path, on, progress=progress, **options)
        finally:
            register.path.unlink(missing_ok=True)

    def receive_upload(self, name: str, file_name: str, prefix: str = "upload-") -> Upload:
        """Prepare to receive a table into the private folder of a workspace."""
        plain = file_name.replace("\\", "/").rpartition("/")[2].replace("\0", "")[-120:]
        ending = next((ending for ending in UPLOAD_ENDINGS if plain.lower().endswith(ending)), None)
        if ending is None:
            raise Refused(f"A table is a file that ends in {', '.join(UPLOAD_ENDINGS)}.", "file")
        path = self.get(name).folder / f"{prefix}{secrets.token_hex(6)}{ending}"
        return Upload(path, plain, self.upload_limit)

    def upload_limits(self) -> str:
        return (
            f"Up to {format_bytes(self.upload_limit)}, unpacked {format_bytes(self.limits.unpacked or 0)}, "
            f"{self.limits.columns:,} columns, and {LONGEST_CELL:,} bytes in a cell or a line of text."
        )


def format_duration(seconds: float) -> str:
    """Format a duration in hours or minutes.

    >>> format_duration(86_400), format_duration(5_400), format_duration(61)
    ('24 hours', '90 minutes', '1 minute')
    """
    minutes = round(seconds / 60)
    return plural(minutes // 60, "hour") if minutes % 60 == 0 and minutes else plural(minutes, "minute")


@contextmanager
def shown_as(path: Path, display_name: str) -> Iterator[None]:
    """Replace the path of a file in errors with the name that the user knows."""
    try:
        yield
    except ShoalError as error:
        error.file_names = {str(path): display_name}
        raise


def _remove_upload(path: Path | None, folder: Path) -> None:
    """Remove an upload. Any other table is a file of the server and is kept."""
    if path is not None and path.parent == folder and path.name.startswith("upload-"):
        path.unlink(missing_ok=True)


def _remove_folder(folder: Path, jobs: list[Job]) -> None:
    """Remove a folder now. Remove it again when the cancelled jobs have ended: they may still write there."""
    renamed = folder.with_name(f"{folder.name}-deleted")
    with suppress(OSError):
        folder.rename(renamed)  # so that a running upload does not find the folder
    shutil.rmtree(renamed, ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)

    def remove_later() -> None:
        for job in jobs:
            job.wait_for_thread(None)
        for path in (folder, renamed):
            shutil.rmtree(path, ignore_errors=True)

    if jobs:
        threading.Thread(target=remove_later, name="shoal-remove", daemon=True).start()
