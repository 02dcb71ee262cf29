"""Import of an ARX project (.deid) as a policy and hierarchies, with a list of the unsupported settings."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from shoal.document.document import Document, Fact, HasDocument, Table, name_list
from shoal.errors import DataError, OutputError
from shoal.files.outputs import already_exists, cannot_write, check_kind, written_whole
from shoal.integrations.arx.project import DATA, Project, Settings, printable
from shoal.integrations.arx.settings import Columns, Translation
from shoal.integrations.arx.words import Unsupported, UnsupportedSettings
from shoal.policy.policy import Policy

_DATA_BYTES = 16 << 30


def write_import(
    imported: Import, folder: str | Path, *, project: str | Path | None = None, force: bool = False
) -> list[Path]:
    """Write the policy and its hierarchies to a folder; also write the data of `project`, if it is given."""
    folder = Path(folder)
    files = {folder / name: text for name, text in imported.files().items()}
    data = folder / "data.csv"
    targets = [*files, *([data] if project is not None else [])]
    if project is not None and not imported.has_data:
        raise DataError(f"The project {str(project)!r} holds no data. Leave --data out.")
    try:
        _make(folder, targets, force=force)
        for path, text in files.items():
            with written_whole(path) as file:
                file.write(text.encode())
        if project is not None:
            with Project(project) as archive, written_whole(data) as file:
                _copy(archive, file)
    except OSError as error:
        raise cannot_write(folder, error) from None
    return targets


def _make(folder: Path, targets: list[Path], *, force: bool) -> None:
    """Create the folder; refuse to replace existing files unless `force` is given."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"The output {str(folder)!r} is a file. Name a folder.")
    for path in targets:
        check_kind(path)
    existing = [path for path in targets if os.path.lexists(path)]
    if existing and not force:
        raise already_exists(str(existing[0]))
    for path in (folder, folder / "hierarchies"):
        if path == folder or any(target.parent == path for target in targets):
            path.mkdir(mode=0o700, exist_ok=True)


def _copy(project: Project, file: IO[bytes]) -> None:
    """Copy the data unchanged, in chunks; raise if there are more than `_DATA_BYTES`."""
    left = _DATA_BYTES
    for part in project.parts(DATA):
        left -= len(part)
        if left < 0:
            raise DataError(
                f"The data of {str(project.path)!r} is above {_DATA_BYTES >> 30} GB. Save it from ARX."
            )
        file.write(part)


class Reading:
    """The conversion of a project to a policy."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.unsupported = UnsupportedSettings()
        self.note = self.unsupported.note
        self.files: dict[str, list[list[str]]] = {}  # hierarchies by file name
        self.version = ""
        self.separator = ";"

    def policy(self) -> Policy:
        """Read the whole project and return its policy."""
        self.metadata()
        prefix = self.prefix()
        attributes = self.project.attributes(prefix) or []
        names = [attribute.name for attribute in attributes]
        if not names:
            raise DataError(
                f"{str(self.project.path)!r} defines no columns. Load data in ARX and save it again."
            )
        if len(set(names)) < len(names):
            raise DataError(
                f"{str(self.project.path)!r} defines a column twice. Rename one in ARX and save again."
            )
        settings = self.project.settings(prefix)
        if settings is None:
            self.note("config.xml", "the project has none, so its models are unknown.", "Add models:.")
            settings = Settings()
        reader = Columns(self.project, self.separator, self.unsupported)
        columns = {attribute.name: reader.column(attribute) for attribute in attributes}
        self.files = reader.files
        translation = Translation(settings, columns, self.unsupported)
        data = translation.models() | translation.metric(attributes) | translation.suppression()
        translation.weights(data["metric"])
        translation.types(attributes, data["models"])
        translation.other_settings(self.project)
        return Policy.load({"columns": columns, **data}).with_files(reader.rows)

    def metadata(self) -> None:
        """Read the version of ARX that wrote the project, and the separator of the project's CSV files."""
        metadata = self.project.xml("metadata.xml")
        if metadata is None:
            self.note("metadata.xml", "the project has none.", "It is read as one of ARX 3.9.")
        else:
            self.version = printable(metadata.findtext("version", "").strip(), 20)
            vocabulary = metadata.findtext("vocabulary", "").strip()
            if vocabulary not in ("1.0", "2.0"):
                reason = f"vocabulary {printable(vocabulary, 20)!r} is not known; that of ARX 3.9 is 2.0."
                self.note("metadata.xml", reason, "Known entries are read.")
        project = self.project.xml("project.xml")
        separator = "" if project is None else project.findtext("separator", "")
        self.separator = separator if len(separator) == 1 and separator not in '"\r\n' else ";"

    def prefix(self) -> str:
        """Return the folder of the current settings. If there are none, return that of the last output."""
        if not self.project.has("input/definition.xml"):
            if self.project.has("output/definition.xml"):
                self.note("input/", "the project has no current settings.", "Those of its output are read.")
                return "output/"
            raise DataError(
                f"{str(self.project.path)!r} is not an ARX project: it has no input/definition.xml."
            )
        for part in ("settings", "attributes"):
            read = getattr(self.project, part)
            of_output = read("output/")
            if of_output is not None and _without_prefix(of_output, "output/") != _without_prefix(
                read("input/"), "input/"
            ):
                reason = "the project's last output was made with settings that differ from the current ones."
                self.note(f"the {part} of the last output", reason, "The current ones (input/) are read.")
        return "input/"


def _without_prefix(content: Any, prefix: str) -> str:
    """Return the repr of content without the folder name, so that two folders can be compared."""
    return repr(content).replace(repr(prefix)[:-1], "'")


@dataclass(frozen=True)
class Import(HasDocument):
    """The result of an import: a usable policy, its hierarchy files, and the unsupported settings."""

    policy: Policy
    hierarchies: Mapping[str, list[list[str]]] = field(repr=False)  # by file name
    unsupported: tuple[Unsupported, ...]
    version: str  # the version of ARX that wrote the project
    has_data: bool

    def to_dict(self) -> dict[str, Any]:
        return {
            "arx": self.version,
            "policy": self.policy.written(),
            "hierarchies": sorted(self.hierarchies),
            "unsupported": [setting.to_dict() for setting in self.unsupported],
            "has_data": self.has_data,
        }

    def document(self) -> Document:
        rows = [(setting.setting, setting.reason, setting.nearest) for setting in self.unsupported]
        title = "What has no counterpart (also at the top of policy.yaml)"
        return Document(
            title="Import of an ARX project",
            facts=[
                Fact("version", "ARX", self.version or "version not known"),
                Fact("columns", "columns", name_list(self.policy.columns)),
                Fact("hierarchies", "hierarchies", f"{len(self.hierarchies):,} files"),
            ],
            tables=[Table(title, ("setting", "reason", "nearest"), rows, left=range(3))] if rows else [],
        )

    def policy_text(self) -> str:
        """Return the policy as text, with the unsupported settings as comments at the top."""
        lines = [f"# From a project of ARX {self.version or '(version unknown)'}."]
        if self.unsupported:
            lines.append("# What has no counterpart, and what comes nearest:")
        lines += [f"# - {printable(str(setting), 1000)}" for setting in self.unsupported]
        return "\n".join(lines) + "\n" + self.policy.to_yaml()

    def files(self) -> dict[str, str]:
        """Return the text of each file to write, by file name."""
        policy = {"policy.yaml": self.policy_text()}
        return policy | {name: hierarchy_text(rows) for name, rows in self.hierarchies.items()}


def import_arx(path: str | Path) -> Import:
    """Read a project saved by ARX as a policy; `unsupported` lists the settings without a counterpart."""
    with Project(path) as project:
        reading = Reading(project)
        policy = reading.policy()
        unsupported = tuple(reading.unsupported)
        return Import(policy, reading.files, unsupported, reading.version, project.has(DATA))


def hierarchy_text(rows: list[list[str]]) -> str:
    """Return a hierarchy as CSV in ARX's format: one row per value, from the value to its top label."""
    text = io.StringIO()
    # With a single column, no delimiter is in the file. Quotes keep a reader from guessing another one.
    quoting: Any = csv.QUOTE_ALL if rows and len(rows[0]) == 1 else csv.QUOTE_MINIMAL
    csv.writer(text, delimiter=";", quoting=quoting, lineterminator="\n").writerows(rows)
    return text.getvalue()
