"""Publishing: a release is written beside its target, counted afresh, and only then put in place."""

from __future__ import annotations

import json
import os
import secrets
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from shoal.errors import OutputError


@contextmanager
def published(
    output: Path, ending: str, *, force: bool
) -> Iterator[tuple[Path, Callable[[dict[str, Any], dict[str, Any]], Path]]]:
    """Give a temporary path to write to, and what puts it in place with its recipe and audit.

    Unless that is called, nothing remains.
    """
    _check(output, force=force)
    mark = f".{output.name}.{secrets.token_hex(6)}.tmp"
    temporary = output.parent / f"{mark}{ending}"
    private = output.parent / f"{mark}.private"
    try:
        private.mkdir(mode=0o700)
    except OSError as error:
        message = f"Cannot write to the folder {str(output.parent)!r}: {error.strerror}."
        raise OutputError(message) from None

    def commit(recipe: dict[str, Any], audit: dict[str, Any]) -> Path:
        _dump(private / "recipe.json", recipe)
        _dump(private / "audit.json", audit)
        home = private_folder(output)
        if home.exists():
            shutil.rmtree(home)
        private.rename(home)
        _place(temporary, output, force=force)
        return home / "recipe.json"

    try:
        yield temporary, commit
    finally:
        with suppress(FileNotFoundError):
            temporary.unlink()
        shutil.rmtree(private, ignore_errors=True)


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


def _place(temporary: Path, output: Path, *, force: bool) -> None:
    """Rename into place; without force, never over something that appeared meanwhile."""
    with open(temporary, "rb") as file:
        os.fsync(file.fileno())
    if force:
        temporary.replace(output)
        return
    try:
        os.link(temporary, output)
    except FileExistsError:
        message = f"{str(output)!r} appeared while this ran. Use --force to replace it."
        raise OutputError(message) from None
    except OSError:  # a file system without links
        temporary.rename(output)
