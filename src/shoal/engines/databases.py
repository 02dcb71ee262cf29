"""Databases in memory: to make one takes as long as to count a small table, so one that is done serves again.

Each belongs to one engine at a time, which has a session of its own in it: what it puts there goes with it.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
import weakref
from typing import Any

import duckdb
import ibis

_most = 2  # that wait for the next engine; none at the program's end
_waiting: list[Database] = []
_left: list[Any] = []  # by the process that we were forked from: its threads are not here to close them


class Database:
    """A database, and while it is used a folder of its own, to which what does not fit in memory goes."""

    def __init__(self) -> None:
        self.root = duckdb.connect(":memory:")
        self.process, self.folder = os.getpid(), ""

    def begin(self, memory: int) -> Any:
        """Open a session, and limit the memory."""
        self.folder = tempfile.mkdtemp(prefix="shoal-")
        self.root.execute("SET temp_directory = ?", [self.folder])
        self.root.execute(f"SET memory_limit = '{memory}B'")
        return self.root.cursor()

    def end(self, session: Any) -> None:
        """Close a session, and wait for the next one if this database is as it was."""
        if self.process != os.getpid():
            _left.append((self, session))
            return
        session.close()
        if len(_waiting) < _most and self._is_itself():
            _waiting.append(self)
        else:
            self.root.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _is_itself(self) -> bool:
        """Undo what a session may have changed for all; tell whether that could be done."""
        try:
            self.root.execute("SET temp_directory = ''")
            for name in self.root.list_filesystems():
                self.root.unregister_filesystem(name)
        except duckdb.Error:  # a folder was used
            return False
        return True


def connect(memory: int) -> Any:
    """Open a session in a database of its own, for as long as somebody holds it; and limit its memory."""
    try:
        database = _waiting.pop()
    except IndexError:
        database = Database()
    session = database.begin(memory)
    connection = ibis.duckdb.from_connection(session)
    weakref.finalize(connection, database.end, session)
    return connection


def _close_all() -> None:
    global _most
    _most = 0
    while _waiting:
        _waiting.pop().root.close()


def _forget() -> None:
    """Leave to the process that we were forked from what is its own."""
    _left.extend(_waiting)
    _waiting.clear()


atexit.register(_close_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
