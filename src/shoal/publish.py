"""Publishing: a release is written beside its target, counted afresh, and only then put in place."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.errors import OutputError


@dataclass(frozen=True)
class Draft:
    """A release that is not yet in place, with the private folder that goes with it."""

    output: Path
    temporary: Path
    private: Path
    force: bool

    def commit(self, recipe: dict[str, Any], audit: dict[str, Any]) -> Path:
        """Put the release and its private folder in place, both or neither; return the recipe's path."""
        home = private_folder(self.output)
        replaced = self.private.with_suffix(".replaced")
        try:
            _dump(self.private / "recipe.json", recipe)
            _dump(self.private / "audit.json", audit)
            _sync(self.temporary)
            if self.force and home.exists():
                home.rename(replaced)
            self.private.rename(home)  # fails where a folder with files appeared meanwhile
        except OSError as error:
            if replaced.exists():
                replaced.rename(home)
            raise (_appeared(home) if home.exists() else _cannot(self.output, error)) from None
        try:
            self._place()
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            if replaced.exists():
                replaced.rename(home)
            raise
        shutil.rmtree(replaced, ignore_errors=True)
        return home / "recipe.json"

    def _place(self) -> None:
        """Rename into place; without force, never over something that appeared meanwhile."""
        try:
            if self.force:
                self.temporary.replace(self.output)
                return
            try:
                os.link(self.temporary, self.output)
            except (NotImplementedError, PermissionError):  # a file system without links
                if self.output.exists():
                    raise FileExistsError from None
                self.temporary.rename(self.output)
        except FileExistsError:
            raise _appeared(self.output) from None
        except OSError as error:
            raise _cannot(self.output, error) from None


@contextmanager
def draft(output: Path, ending: str, *, force: bool) -> Iterator[Draft]:
    """Give a place to write to; unless it is committed, nothing remains."""
    _check(output, force=force)
    mark = f".{output.name}.{secrets.token_hex(6)}.tmp"
    begun = Draft(output, output.parent / f"{mark}{ending}", output.parent / f"{mark}.private", force)
    try:
        begun.private.mkdir(mode=0o700)
    except OSError as error:
        raise _cannot(output, error) from None
    try:
        yield begun
    finally:
        with suppress(FileNotFoundError):
            begun.temporary.unlink()
        shutil.rmtree(begun.private, ignore_errors=True)


def private_folder(output: Path) -> Path:
    """Return where a release's recipe and audit go: the custodian's, not the public's."""
    return output.parent / f"{output.name}.private"


def _check(output: Path, *, force: bool) -> None:
    if not output.parent.is_dir():
        message = f"The folder {str(output.parent)!r} does not exist. Create it first."
        raise OutputError(message)
    if output.is_dir():
        message = f"The output {str(output)!r} is a folder. Name a file."
        raise OutputError(message)
    for path in (output, private_folder(output)):
        if path.exists() and not force:
            message = f"{str(path)!r} exists. Use --force to replace it."
            raise OutputError(message)


def _dump(path: Path, data: dict[str, Any]) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        json.dump(data, file, ensure_ascii=False, indent=2)
        file.flush()
        os.fsync(file.fileno())


def _sync(path: Path) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _appeared(path: Path) -> OutputError:
    return OutputError(f"{str(path)!r} appeared while this ran. Use --force to replace it.")


def _cannot(output: Path, error: OSError) -> OutputError:
    return OutputError(f"Cannot write {str(output)!r}: {error.strerror or 'the disk refused'}.")
