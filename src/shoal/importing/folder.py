"""The folder that an ARX project becomes: closed to others, for hierarchies list values of the data."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from shoal.errors import DataError, OutputError
from shoal.importing.project import DATA, Project
from shoal.outputs import cannot, exists, written_whole

if TYPE_CHECKING:
    from shoal.arx import Import

_DATA_BYTES = 16 << 30


def write_import(
    found: Import, folder: str | Path, *, project: str | Path | None = None, force: bool = False
) -> list[Path]:
    """Write the policy and its hierarchies to a folder, and a project's data where one is given."""
    folder = Path(folder)
    files = {folder / name: text for name, text in found.files().items()}
    data = folder / "data.csv"
    targets = [*files, *([data] if project is not None else [])]
    if project is not None and not found.has_data:
        message = f"The project {str(project)!r} holds no data. Leave --data out."
        raise DataError(message)
    try:
        _make(folder, targets, force=force)
        for path, text in files.items():
            with written_whole(path) as file:
                file.write(text.encode())
        if project is not None:
            with Project(project) as opened, written_whole(data) as file:
                _copy(opened, file)
    except OSError as error:
        raise cannot(folder, error) from None
    return targets


def _make(folder: Path, targets: list[Path], *, force: bool) -> None:
    """Make the folder; refuse to replace files unless that is wished."""
    if folder.exists() and not folder.is_dir():
        message = f"The output {str(folder)!r} is a file. Name a folder."
        raise OutputError(message)
    taken = [path for path in targets if os.path.lexists(path)]
    if taken and not force:
        raise exists(str(taken[0]))
    for path in (folder, folder / "hierarchies"):
        if path == folder or any(target.parent == path for target in targets):
            path.mkdir(mode=0o700, exist_ok=True)


def _copy(project: Project, file: IO[bytes]) -> None:
    """Copy the data as it is, part by part, up to a bound."""
    left = _DATA_BYTES
    for part in project.parts(DATA):
        left -= len(part)
        if left < 0:
            message = f"The data of {str(project.path)!r} is above {_DATA_BYTES >> 30} GB. Save it from ARX."
            raise DataError(message)
        file.write(part)
