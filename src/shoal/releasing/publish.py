"""Publishing: a release is written beside its target, counted afresh, and only then put in place.

A run writes to temporaries whose names begin with one mark, `.NAME.<hex>.tmp`, and holds a lock on the
file of that very name for as long as it lives. Runs on one target begin and end one at a time. To end
well is to do, in this order:

1. move the old private folder, if there is one, aside;
2. put the release in place: the moment that counts, and a single rename or link;
3. put its private folder in place; its audit holds the release's SHA-256;
4. put what stands beside a release (its codebook, its second table), which waited in the private folder,
   in place.

What stood beside the old release has gone with its private folder; an audit names what it is. So no
release ever stands beside the recipe, the codebook or the second table of another. A run that is stopped
in between, even by kill -9, is settled by the next run on the target: if the release in place is the one
that the waiting private folder tells of, that folder goes home, otherwise the old one comes back; the rest
is removed. Temporaries whose lock is held are those of a run that is alive, and are left alone.
"""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.core.contracts import Engine
from shoal.core.targets import Target
from shoal.errors import OutputError, ShoalError
from shoal.outputs import appeared, cannot, check_place, exists, private_folder, write_private
from shoal.releasing.locks import abandoned, alone, hidden, lock
from shoal.releasing.stage import Stage, remove, stage_of, sync

CODEBOOK = "codebook.csv"  # where the codebook waits, in the private folder
SENSITIVE = "sensitive"  # where the second table waits, before its ending
Beside = Mapping[str, Path]  # what goes beside a release, by the name under which it waits


@dataclass(frozen=True)
class Draft:
    """A release that is not yet in place, with the private folder that goes with it."""

    stage: Stage
    force: bool
    beside: Beside

    @property
    def output(self) -> Path:
        """What the release is, or what the files that go with a table are named after."""
        return self.stage.target.path

    @property
    def mark(self) -> Path:
        """What the names of all temporaries begin with."""
        return self.stage.mark

    @property
    def private(self) -> Path:
        """Where to write what goes to the private folder."""
        return Path(f"{self.mark}.private")

    @property
    def spill(self) -> Path:
        """A folder, closed to others, for what an engine must put on disk meanwhile."""
        return Path(f"{self.mark}.spill")

    def commit(self, recipe: dict[str, Any], audit: dict[str, Any]) -> Path:
        """Put the release and its private folder in place, both or neither; return the recipe's path."""
        home = private_folder(self.output)
        try:
            waiting = [name for name in self.beside if (self.private / name).exists()]
            for name in waiting:
                sync(self.private / name)
            known = {
                "release_sha256": self.stage.digest(),
                "beside": {name: self.beside[name].name for name in waiting},
            }
            _dump(self.private / "recipe.json", recipe)
            _dump(self.private / "audit.json", audit | known)
            with alone(self.output):
                self._place(home)
                _sync_folder(self.output.parent)
        except OSError as error:
            raise cannot(self.output, error) from None
        return home / "recipe.json"

    def _place(self, home: Path) -> None:
        """Do the four steps; what an error or an interrupt leaves undone is settled as the draft ends."""
        if self.force:
            if home.exists():
                _pack(home, _told(self.output, self.beside))
                home.rename(f"{self.mark}.replaced")
        else:
            for path in _parts(self.stage.target, self.beside):
                if os.path.lexists(path):
                    raise appeared(str(path))
        self.stage.place(force=self.force)
        try:
            self.private.rename(home)
            _unpack(home, self.beside)
        except OSError:
            if not self.force:  # all can still be undone
                self.stage.undo()
                with suppress(OSError):
                    _pack(home, self.beside)
                with suppress(OSError):
                    home.rename(self.private)  # fails where it has not left
            raise


@contextmanager
def draft(target: Target, engine: Engine, *, force: bool, beside: Beside | None = None) -> Iterator[Draft]:
    """Give a place to write to; unless it is committed, nothing remains."""
    output = target.path
    check_place(output, folder=target.kind == "folder")
    beside = beside or {}
    mark = hidden(output, f"{secrets.token_hex(6)}.tmp")
    begun = Draft(stage_of(target, mark, engine), force, beside)
    held = None
    try:
        with alone(output):
            for left in _abandoned_marks(output):
                _settle(stage_of(target, left, engine), beside)
            if not force and begun.stage.exists():
                raise exists(target.name)
            _check_free(target, beside, force=force)
            begun.private.mkdir(mode=0o700)
            begun.spill.mkdir(mode=0o700)
            held = os.open(begun.mark, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
            lock(held)
        yield begun
    except OSError as error:
        if held is not None and error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS):
            raise  # what is being read may raise it too
        raise cannot(output, error) from None
    finally:
        with suppress(OSError, ShoalError), alone(output):
            if held is not None:
                os.close(held)
            _settle(begun.stage, beside)


def tells_of(private: Path, stage: Stage) -> bool:
    """Tell whether a private folder is that of the release in place, by the digest in its audit."""
    try:
        audit = json.loads((private / "audit.json").read_text(encoding="utf-8"))
        return audit["release_sha256"] is not None and audit["release_sha256"] == stage.digest_in_place()
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _settle(stage: Stage, beside: Beside) -> None:
    """Finish what a run had put in place, or undo it, and remove its temporaries."""
    output, mark = stage.target.path, stage.mark
    home, private, replaced = private_folder(output), Path(f"{mark}.private"), Path(f"{mark}.replaced")
    try:
        stage.settle()
        if private.exists() and not home.exists():
            if tells_of(private, stage):
                private.rename(home)
            elif replaced.exists():
                replaced.rename(home)
        _unpack(home, _told(output, beside))
    except OSError:
        return  # nothing may be lost: the next run tries again
    for path in _temporaries(output):
        if path.name.startswith(mark.name):
            remove(path)


def _told(output: Path, otherwise: Beside) -> Beside:
    """Return what stands beside a release as its audit tells; another run may have had more beside it."""
    try:
        audit = json.loads((private_folder(output) / "audit.json").read_text(encoding="utf-8"))
        return {waiting: output.parent / Path(name).name for waiting, name in audit["beside"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return otherwise


def _pack(home: Path, beside: Beside) -> None:
    """Let what stands beside a release go where its recipe goes."""
    for waiting, path in beside.items():
        if path.exists():
            path.replace(home / waiting)


def _unpack(home: Path, beside: Beside) -> None:
    for waiting, path in beside.items():
        if (home / waiting).exists():
            (home / waiting).replace(path)


def _temporaries(output: Path) -> list[Path]:
    begins = re.compile(rf"\.{re.escape(output.name)}\.[0-9a-f]{{12}}\.tmp")
    return [path for path in output.parent.iterdir() if begins.match(path.name)]


def _abandoned_marks(output: Path) -> list[Path]:
    length = len(hidden(output, f"{'0' * 12}.tmp").name)
    marks = {path.with_name(path.name[:length]) for path in _temporaries(output)}
    return [mark for mark in sorted(marks) if abandoned(mark)]


def _parts(target: Target, beside: Beside) -> list[Path]:
    own = [] if target.kind == "table" else [target.path]
    return [*own, private_folder(target.path), *beside.values()]


def _check_free(target: Target, beside: Beside, *, force: bool) -> None:
    for path in _parts(target, beside):
        if path.exists() and not force:
            raise exists(str(path))
    home = private_folder(target.path)
    others = home.exists() and not (home / "audit.json").exists() and (home.is_file() or any(home.iterdir()))
    foreign = [home] if others else [path for path in beside.values() if path.is_dir()]
    if foreign:
        message = f"{str(foreign[0])!r} is not of shoal's making. Move it away first."
        raise OutputError(message)


def _dump(path: Path, data: dict[str, Any]) -> None:
    # To be read by eye, unless it is large.
    write_private(path, json.dumps(data, ensure_ascii=False, indent=None if data.get("regions") else 2))


def _sync_folder(folder: Path) -> None:
    """Let the new names outlive a power cut, where the system can say so."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
