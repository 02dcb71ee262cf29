"""In-memory databases: their reuse, the folders they spill to, and their errors."""

from __future__ import annotations

import gzip
import os
import re
import weakref
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import duckdb
import pyarrow as pa

from shoal.errors import DataError, OutputError
from shoal.files.signals import interrupted
from shoal.files.text import TO_UTF_8
from shoal.files.work_folders import WorkFolder, create_beside, create_temporary
from shoal.wording import Change

# Databases that a forked process has inherited. It cannot close them: their threads exist only in the parent.
_inherited: list[Database] = []
# Databases that can be reused: at most one, unless two runs end at the same moment. A deque needs no lock. A
# lock could deadlock: garbage collection ends a run, possibly while this thread holds the lock for another.
_idle: deque[Database] = deque()


class Database:
    """A database in memory, and private folders for data that does not fit in memory.

    Creating a database takes as long as counting a small table, so the last idle one is reused. Only one run
    at a time uses it, through a connection of its own. The data of a run is temporary and is dropped with the
    connection. A database that has written to its folders, or has a registered file system, is not reused.
    """

    def __init__(self) -> None:
        self.root = duckdb.connect(":memory:")
        self.root.execute("SET enable_external_file_cache = false")
        self.process = os.getpid()
        self.folders: list[WorkFolder] = []
        self.reusable = True

    def begin(self, memory: int, output: Path | None) -> None:
        """Begin a run."""
        self.session = self.root.cursor()
        self.spill(output)
        self.session.execute(f"SET memory_limit = '{memory}B'")

    def end(self) -> None:
        """End a run; close the database unless it can be reused or belongs to the parent process."""
        if self.process != os.getpid():
            _inherited.append(self)
            return
        self.session.close()
        try:
            self.root.execute("SET temp_directory = ''")
        except duckdb.Error:  # the database has used the folder
            self.reusable = False
        reused = self.reusable and not _idle
        if not reused:
            self.root.close()
        self._remove_folders()
        if reused:
            _idle.append(self)

    def spill(self, output: Path | None) -> None:
        """Store data that does not fit in memory in a private folder, next to the output if there is one."""
        self.folders.append(create_temporary() if output is None else create_beside(output))
        with suppress(duckdb.NotImplementedException):  # the database has already spilled elsewhere
            self.session.execute("SET temp_directory = ?", [str(self.folders[-1].path / "duckdb")])

    def leave_output(self) -> None:
        """Remove the folders; if the database keeps one because it has used it, remove only its files."""
        try:
            self.session.execute("SET temp_directory = ''")
        except duckdb.Error:
            for path in [path for folder in self.folders for path in folder.path.glob("duckdb/*")]:
                with suppress(OSError):
                    path.unlink()
            return
        self._remove_folders()

    @property
    def folder(self) -> Path | None:
        """The parent of the folder for data that does not fit in memory."""
        return self.folders[-1].path.parent if self.folders else None

    def _remove_folders(self) -> None:
        while self.folders:
            self.folders.pop().remove()


def connect(owner: object, memory: int, output: Path | None = None) -> Database:
    """Begin a run in a database; the run ends when its owner is garbage-collected.

    Data that does not fit in memory is stored next to the output, or else in the temporary folder.
    """
    database = _take_idle() or Database()
    database.begin(memory, output)
    weakref.finalize(owner, database.end)
    return database


def _take_idle() -> Database | None:
    while True:
        try:
            database = _idle.pop()
        except IndexError:
            return None
        if database.process == os.getpid():
            return database
        _inherited.append(database)


@contextmanager
def translate_errors(
    path: Path | None, database: Database | None, explain: Callable[[str], str]
) -> Iterator[None]:
    """Translate the database's errors to shoal's, because its messages may quote rows."""
    try:
        yield
    except (gzip.BadGzipFile, zlib.error, EOFError):
        raise _damaged(path) from None
    except UnicodeError:
        raise DataError(f"{str(path)!r} is not text that can be read. {TO_UTF_8}") from None
    except duckdb.InterruptException:
        raise interrupted() from None  # raised by the database after a signal
    except RuntimeError as error:
        if str(error) == "Query interrupted":
            raise interrupted() from None
        if not isinstance(error, pa.ArrowException):
            raise
        raise DataError(
            "A column has a type that cannot be read: lists, structs, intervals. Leave it out."
        ) from None
    except (duckdb.OutOfMemoryException, MemoryError):
        location = f" in {str(database.folder)!r}" if database and database.folder else ""
        advice = [Change("memory_limit", action="Raise {}"), Change(action=f"Free disk space{location}")]
        raise DataError("The database ran out of memory.", advice=advice) from None
    except duckdb.IOException as error:
        if (no_room := _no_room(str(error))) is not None:
            raise OutputError(no_room) from None
        if path is not None and path.suffix.lower() == ".gz":
            raise _damaged(path) from None
        file_name = repr(str(path)) if path else "a file"
        raise DataError(f"The database could not read or write {file_name}.") from None
    except (duckdb.Error, pa.ArrowException) as error:
        if re.search(r"^KeyboardInterrupt", str(error), re.MULTILINE):
            raise interrupted() from None  # raised while text was decoded for the database
        raise DataError(explain(str(error))) from None


def _no_room(error: str) -> str | None:
    """Describe a write that failed because of missing space or a limit; return None for other errors."""
    text = error.lower()
    match = re.search(r'file \\?"([^"\\]+)', error)
    folder = Path(match[1]).parent if match else None
    while folder is not None and folder.name.startswith(".") and ".tmp" in folder.name:
        folder = folder.parent  # a temporary folder, which will be removed
    location = f"in the folder {str(folder)!r}" if folder else "on the disk"
    if "no space left" in text or "quota" in text:
        return f"No space is left {location}. Free some space there and run again."
    if "file too large" in text:
        return (
            f"A file {location} would be larger than the limit on the size of files of this process "
            "(ulimit -f). Raise it and run again."
        )
    return None


def _damaged(path: Path | None) -> DataError:
    name = repr(str(path)) if path else "A file"
    return DataError(f"{name} cannot be read: its compressed content is truncated or damaged.")
